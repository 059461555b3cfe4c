// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tests of processes that meet without a launcher, and of strangers at the same port. */
#include "fabric/meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/exchange.h"
#include "fabric/internal.h"
#include "fabric/tests/selftest.h"

#define MOST	32		/* processes */
#define LIMIT_MS 60000
#define PIECE	24

/* How each process ended. */
static struct end {
	int error;
	bool wrong;		/* pieces */
	char reason[512];
} *ends;

static pid_t child[MOST];
static struct sockaddr_in there;
static bool in_vain;		/* rank 0 did not answer in time, so later visits give up at once */

void choose_port(void)
{
	const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(there);
	char at[40];

	in_vain = false;
	there = (struct sockaddr_in) {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	if (bind(s, (struct sockaddr *)&there, size) ||
	    getsockname(s, (struct sockaddr *)&there, &size))
		printf("# no port: %s\n", strerror(errno));
	close(s);
	snprintf(at, sizeof(at), "127.0.0.1:%u", ntohs(there.sin_port));
	setenv("RASHPA_MEET", at, 1);
}

static uint64_t after(unsigned int ms)
{
	return fabric_now() + ms * UINT64_C(1000000);
}

static void fill(uint8_t *piece, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < PIECE; i++)
		piece[i] = from * 7 + to * 31 + i;
}

/* With "once", leave after the first exchange, before all ranks know that all have come. */
static int take_part(uint32_t rank, uint32_t size, unsigned int ms, bool once, bool *wrong)
{
	struct rashpa_launch launch = { .rank = rank, .size = size, .job = "meet" };
	uint8_t mine[MOST][PIECE], theirs[MOST][PIECE], expected[PIECE];
	const uint64_t end = after(ms);
	void *link = NULL;
	int error = meet_exchange.open(&launch, &link);

	for (uint32_t i = 0; i < size; i++)
		fill(mine[i], rank, i);
	memset(theirs, 0xee, sizeof(theirs));
	if (!error)
		error = meet_exchange.swap(link, mine, PIECE, theirs, end);
	for (uint32_t i = 0; i < size && !error && size > 1; i++) {
		fill(expected, i, rank);
		*wrong |= !!memcmp(theirs[i], expected, PIECE);
	}
	if (!error && !once)
		error = meet_exchange.swap(link, NULL, 0, NULL, end);
	meet_exchange.close(link);
	return error;
}

static void start(unsigned int place, uint32_t rank, uint32_t size, unsigned int ms, bool once)
{
	ends[place] = (struct end) {};
	child[place] = fork();
	if (child[place])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(3 * LIMIT_MS / 1000);	/* ends a process that would wait for ever */
	ends[place].error = take_part(rank, size, ms, once, &ends[place].wrong);
	snprintf(ends[place].reason, sizeof(ends[place].reason), "%s", rashpa_fabric_reason());
	_exit(0);
}

/* true: the process exited, with this error and this word in its sentence */
static bool ended(unsigned int place, int error, const char *word)
{
	const struct end *e = &ends[place];
	int status;
	bool good;

	waitpid(child[place], &status, 0);
	good = status == 0 && e->error == -error && !e->wrong && (!word || strstr(e->reason, word));
	if (!good)
		printf("# process %u: status %#x, %d, %s: %s\n", place, status, e->error,
		       e->wrong ? "wrong pieces" : "pieces are right", e->reason);
	return good;
}

static void test_all(uint32_t size, bool first)
{
	bool good = true;

	choose_port();
	for (uint32_t i = 0; i < size; i++) {
		const uint32_t rank = first ? i : size - 1 - i;

		start(rank, rank, size, LIMIT_MS, false);
	}
	for (uint32_t i = 0; i < size; i++)
		good &= ended(i, 0, NULL);
	ok(good, "processes-meet-rank/pieces: %u processes meet, rank 0 %s: each gets its pieces", size, first ? "first" : "last");
}

static void test_ipv6(void)
{
	const struct sockaddr_in6 loopback = {
		.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};
	const int s = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool good = s >= 0 && !bind(s, (const struct sockaddr *)&loopback, sizeof(loopback));
	char at[40];

	if (s >= 0)
		close(s);
	if (!good) {
		ok(true, "address-ipv6-skip: an address of IPv6 # SKIP this machine has none");
		return;
	}
	choose_port();
	snprintf(at, sizeof(at), "[::1]:%u", ntohs(there.sin_port));
	setenv("RASHPA_MEET", at, 1);
	start(0, 0, 2, LIMIT_MS, false);
	start(1, 1, 2, LIMIT_MS, false);
	good = ended(0, 0, NULL);
	good &= ended(1, 0, NULL);
	ok(good, "address-ipv6: an address of IPv6");
}

/* --- strangers --- */

/* Connect as soon as rank 0 listens. */
static int visit(void)
{
	const struct timeval most = { .tv_sec = LIMIT_MS / 1000 };
	const uint64_t end = after(LIMIT_MS);
	int s;

	while (!in_vain) {
		s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
		if (!connect(s, (struct sockaddr *)&there, sizeof(there)))
			return s;
		close(s);
		sched_yield();
		in_vain = fabric_now() >= end;
	}
	return -1;
}

static void say_as(int s, const void *what, size_t bytes)
{
	if (send(s, what, bytes, MSG_NOSIGNAL) < 0)
		return;	/* rank 0 has closed the connection already */
}

/* As a frame, of which so many bytes are sent. */
static void say_frame(int s, const void *what, size_t bytes, size_t sent)
{
	uint32_t length = htonl(bytes);
	uint8_t frame[sizeof(length) + 1024];

	memcpy(frame, &length, sizeof(length));
	memcpy(frame + sizeof(length), what, bytes);
	say_as(s, frame, sent < sizeof(length) + bytes ? sent : sizeof(length) + bytes);
}

/* Was the connection refused: with this word in the answer, or without an answer? */
static bool sent_away(int s, const char *word)
{
	struct { uint32_t length; struct meet_answer a; } frame = {};
	const ssize_t n = recv(s, &frame, sizeof(frame), MSG_WAITALL);
	const struct meet_answer a = frame.a;

	close(s);
	if (!word)
		return n <= 0;
	return n == sizeof(frame) && a.magic == MEET_MAGIC && a.error &&
	       !!memmem(a.sentence, sizeof(a.sentence), word, strlen(word));
}

static bool visit_as(struct meet_hello hello, const char *word)
{
	const struct { struct meet_hello hello; uint8_t pieces[3 * PIECE]; } said = { .hello = hello };
	const int s = visit();
	bool good;

	say_frame(s, &said, sizeof(said), SIZE_MAX);
	good = sent_away(s, word);
	if (!good)
		printf("# rank %u of %u, %u bytes of \"%.20s\": not sent away\n", hello.rank,
		       hello.size, hello.bytes, hello.job);
	return good;
}

static void test_strangers(void)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: nowhere\r\n\r\n";
	const struct meet_hello right = {
		.magic = MEET_MAGIC, .rank = 1, .size = 3, .bytes = PIECE, .job = "meet",
	};
	struct meet_hello h = right;
	uint8_t noise[4096];
	int silent[2 * MEET_STRANGERS], s;
	bool good = true;

	choose_port();
	start(0, 0, 3, LIMIT_MS, false);
	s = visit();
	say_as(s, request, sizeof(request));
	ok(sent_away(s, NULL), "nonsense-sent-away: rank 0 refuses nonsense");
	h.size = 4;
	good &= visit_as(h, "not the one of 4");
	h = right;
	h.bytes = UINT32_MAX;
	good &= visit_as(h, "this is the run");
	h = right;
	memset(h.job, 'x', sizeof(h.job));
	good &= visit_as(h, "\"meet\"");
	h = right;
	h.rank = 0;
	good &= visit_as(h, "no rank 0");
	h.rank = 3;
	good &= visit_as(h, "no rank 3");
	h.rank = UINT32_MAX;
	good &= visit_as(h, "ranks are 1 to 2");
	h = right;
	h.magic = 0x6d657431;
	good &= visit_as(h, NULL);
	ok(good, "another-run-another: rank 0 refuses another run, another size, invalid ranks, another byte order");
	srand(1);
	for (unsigned int i = 0; i < 500; i++) {
		s = visit();
		for (size_t j = 0; j < sizeof(noise); j++)
			noise[j] = rand();
		if (i & 1)
			memcpy(noise, &right, sizeof(uint32_t) * (1 + i % 3));
		if (i & 1)
			say_frame(s, noise, i, SIZE_MAX);
		else
			say_as(s, noise, rand() % sizeof(noise));
		close(s);
	}
	/* a rank leaves, and comes again below */
	s = visit();
	memcpy(noise, &right, sizeof(right));
	say_frame(s, noise, sizeof(right) + 3 * PIECE, SIZE_MAX);
	close(s);
	for (unsigned int i = 0; i < 2 * MEET_STRANGERS; i++) {
		silent[i] = visit();
		say_frame(silent[i], &right, sizeof(right), i % sizeof(right));
	}
	start(1, 1, 3, LIMIT_MS, false);
	start(2, 2, 3, LIMIT_MS, false);
	good = ended(0, 0, NULL);
	good &= ended(1, 0, NULL);
	good &= ended(2, 0, NULL);
	ok(good, "noise-nothing-half: neither these, nor noise, nor silent or incomplete callers delay a run");
	for (unsigned int i = 0; i < 2 * MEET_STRANGERS; i++)
		close(silent[i]);
}

/* --- failures --- */

static void test_missing(void)
{
	bool good;

	choose_port();
	start(1, 1, 4, LIMIT_MS, false);
	start(3, 3, 4, LIMIT_MS, false);
	start(0, 0, 4, 4000, false);
	good = ended(0, ETIMEDOUT, "rank 2 did not come to 127.0.0.1:");
	good &= ended(1, ETIMEDOUT, "rank 2 did not come");
	good &= ended(3, ETIMEDOUT, "rank 2 did not come");
	ok(good, "all-one-not: all ranks name the one that did not come");
	choose_port();
	start(1, 1, 2, 100, false);
	ok(ended(1, ETIMEDOUT, "rank 0 did not answer"), "rank-0: also if it is rank 0");
}

static void test_twice(void)
{
	bool good;

	choose_port();
	start(0, 0, 3, LIMIT_MS, false);
	start(1, 1, 3, LIMIT_MS, false);
	start(3, 1, 3, LIMIT_MS, false);
	/* one of them waits for rank 2, after rank 0 has refused the other one */
	while (!ends[1].error && !ends[3].error)
		sched_yield();
	start(2, 2, 3, LIMIT_MS, false);
	good = ends[1].error ? ended(1, EPROTO, "rank 1 is there already") && ended(3, 0, NULL) :
			       ended(3, EPROTO, "rank 1 is there already") && ended(1, 0, NULL);
	good &= ended(0, 0, NULL);
	good &= ended(2, 0, NULL);
	ok(good, "same-rank-twice/one-sent-away: the same rank twice: rank 0 refuses one of them, and the run goes on");
}

static void test_leaving(void)
{
	bool good;

	choose_port();
	start(0, 0, 3, LIMIT_MS, false);
	start(1, 1, 3, LIMIT_MS, false);
	start(2, 2, 3, LIMIT_MS, true);
	good = ended(0, EPIPE, "rank 2 left");
	good &= ended(1, EPROTO, "rank 2 left");
	good &= ended(2, 0, NULL);
	ok(good, "one-leaves-between: all name a rank that leaves in between");
}

/* A process that is not rank 0 answers rank 1 with so many bytes of this frame. */
static bool told_by(const void *what, size_t bytes, size_t sent, int error, const char *word)
{
	const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool good;
	int peer;

	choose_port();
	if (bind(s, (struct sockaddr *)&there, sizeof(there)) || listen(s, 1))
		return false;
	start(1, 1, 2, LIMIT_MS, false);
	peer = accept4(s, NULL, NULL, SOCK_CLOEXEC);
	if (bytes)
		say_frame(peer, what, bytes, sent);
	else
		say_as(peer, what, sent);
	shutdown(peer, SHUT_WR);
	good = ended(1, error, word);
	close(peer);
	close(s);
	return good;
}

static void test_liars(void)
{
	struct meet_answer a = { .magic = MEET_MAGIC, .error = EINVAL };
	bool good;

	good = told_by("SSH-2.0-OpenSSH\r\n", 0, 17, EPIPE, "not a program of rashpa");
	memset(a.sentence, 'y', sizeof(a.sentence));
	memcpy(a.sentence, "\033[2J\n", 5);
	good &= told_by(&a, sizeof(a), SIZE_MAX, EPROTO, "says: \\x1b[2J\\x0ayyy");
	a.error = 0;
	good &= told_by(&a, sizeof(a), SIZE_MAX, EPROTO, "is not rank 0 of this run");
	good &= told_by(&a, 10, SIZE_MAX, EPROTO, "is not rank 0 of this run");
	good &= told_by(&a, sizeof(a), 10, EPIPE, "left before");
	good &= told_by(&a, 0, 0, EPIPE, "left before");
	ok(good, "not-rank-0-not: rank 1 rejects answers that are not from a rank 0, and escapes their text");
}

static void test_addresses(void)
{
	const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool wrong;

	choose_port();
	if (!bind(s, (struct sockaddr *)&there, sizeof(there)) && !listen(s, 1))
		refused(take_part(0, 2, 100, false, &wrong), EADDRNOTAVAIL, "a free port",
			"a port in use");
	close(s);
	setenv("RASHPA_MEET", "", 1);
	refused(take_part(0, 2, 100, false, &wrong), EINVAL, "not HOST:PORT", "no port");
	setenv("RASHPA_MEET", "7000", 1);
	refused(take_part(1, 2, 100, false, &wrong), EINVAL, "not HOST:PORT", "no host");
	setenv("RASHPA_MEET", "127.0.0.1:no-such-service", 1);
	refused(take_part(1, 2, 100, false, &wrong), EINVAL, "RASHPA_MEET=127.0.0.1:no-such",
		"an unknown port");
	setenv("RASHPA_MEET", "192.0.2.1:7000", 1);
	refused(take_part(0, 2, 100, false, &wrong), EADDRNOTAVAIL, "address of this machine",
		"another machine's address");
}

void test_meet(void)
{
	ends = mmap(NULL, MOST * sizeof(*ends), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ends == MAP_FAILED) {
		ok(false, "memory: memory");
		return;
	}
	test_all(1, true);
	test_all(2, true);
	test_all(5, false);
	test_all(MOST, true);
	test_ipv6();
	test_strangers();
	test_missing();
	test_twice();
	test_leaving();
	test_liars();
	test_addresses();
	unsetenv("RASHPA_MEET");
	munmap(ends, MOST * sizeof(*ends));
}
