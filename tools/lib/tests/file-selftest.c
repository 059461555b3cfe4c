// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=4 run=build/tools/file-selftest */
/* Tests of streams in files, between processes, without the driver: TAP. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rashpa.h>
#include <rashpa-stream.h>
#define TAP_WHY rashpa_reason()
#include "tests/tap.h"

#define WIDTH	64
#define HEIGHT	32
#define BUNCH	4
#define HANG_S	120		/* only for hangs */
#define FOREVER	(-1)

static char folder[] = "/dev/shm/rashpa-file-XXXXXX", path[64];

static struct rashpa_stream *create(const char *name, uint32_t slots, uint64_t images)
{
	static const struct rashpa_stream_process whole = { .width = WIDTH, .height = HEIGHT };
	struct rashpa_stream_plan plan = {
		.header = {
			.width = WIDTH, .height = HEIGHT, .pixel = RASHPA_PIXEL_U16,
			.bunch = BUNCH, .slots = slots, .images = images,
		},
		.process = &whole, .processes = 1,
	};
	struct rashpa_stream *s;

	return rashpa_stream_create(name, &plan, &s) ? NULL : s;
}

static void fill(const struct rashpa_stack *st)
{
	for (uint32_t i = 0; i < st->images; i++) {
		uint16_t *pixel = rashpa_stack_pixels(st, i);

		for (uint32_t k = 0; k < WIDTH * HEIGHT; k++)
			pixel[k] = st->frame + i;
	}
}

static bool filled(const struct rashpa_stack *st)
{
	for (uint32_t i = 0; i < st->images; i++) {
		const uint16_t *pixel = rashpa_stack_pixels(st, i);

		for (uint32_t k = 0; k < WIDTH * HEIGHT; k++) {
			if (pixel[k] != (uint16_t)(st->frame + i))
				return false;
		}
	}
	return true;
}

static int publish(struct rashpa_stream *s, uint64_t stacks)
{
	struct rashpa_stack st;
	int result = 1;

	while (stacks-- && (result = rashpa_stream_slot(s, &st, FOREVER)) > 0) {
		fill(&st);
		rashpa_stream_publish(s, &st);
	}
	return result;
}

/* A process that sends so many stacks, then waits to be killed, or ends the stream. */
static pid_t producer(uint32_t slots, uint64_t stacks, bool ends)
{
	struct rashpa_stream *s;
	pid_t pid = fork();

	if (pid)
		return pid;
	alarm(HANG_S);
	s = create(path, slots, 0);
	if (!s || rashpa_stream_start(s, 0, 0) || publish(s, stacks) < 0)
		_exit(1);
	while (!ends)
		pause();
	rashpa_stream_close(s);
	_exit(0);
}

static void end(pid_t pid, int signal_number)
{
	if (signal_number)
		kill(pid, signal_number);
	waitpid(pid, NULL, 0);
}

static struct rashpa_stream *consume(unsigned int flags)
{
	struct rashpa_stream *s;

	return rashpa_stream_open(path, flags, &s) ? NULL : s;
}

/* Take and release stacks until @result is not 1, at most so many; all as they were filled. */
static uint64_t take(struct rashpa_stream *s, uint64_t most, int *result)
{
	uint64_t n = 0, next = 0;
	struct rashpa_stack st;

	for (*result = 1; n < most; n++) {
		*result = rashpa_stream_next(s, &st, FOREVER);
		if (*result <= 0)
			break;
		if (!filled(&st) || (n && st.number != next)) {
			*result = -EILSEQ;
			break;
		}
		next = st.number + 1;
		rashpa_stream_release(s, &st);
	}
	return n;
}

static unsigned int entries(void)
{
	char command[96];
	unsigned int n = 0;
	FILE *f;

	snprintf(command, sizeof(command), "ls -A %s | wc -l", folder);
	f = popen(command, "r");
	if (f && fscanf(f, "%u", &n) != 1)
		n = 0;
	if (f)
		pclose(f);
	return n;
}

static void *opened(const char *name)
{
	struct rashpa_stream *s;
	int error = rashpa_stream_open(name, 0, &s);

	rashpa_stream_close(s);
	return (void *)(intptr_t)error;
}

/* --- the file --- */

static void test_file(void)
{
	struct rashpa_stream *s, *second;
	struct rashpa_stream_stat counts;
	struct stat st = {};
	char other[80];
	void *base;
	int fd;

	ok((intptr_t)opened(path) == -ENOENT && strstr(rashpa_reason(), "fallocate"),
	   "no-file: a consumer says how a file is made");
	umask(027);
	s = create(path, 3, 0);
	ok(s && !stat(path, &st) && (st.st_mode & 0777) == 0640 && entries() == 1,
	   "made: its producer makes the file, of the user's mask, and nothing else");
	ok(s && rashpa_stream_get_header(s)->slots == 3, "slots: with the slots that it wants");
	second = create(path, 3, 0);
	ok(!second && strstr(rashpa_reason(), "has a producer"), "one-producer: a second one is refused");
	rashpa_stream_close(s);
	s = create(path, 0, 0);
	ok(s && rashpa_stream_get_header(s)->slots == 3, "again: the next producer takes it as it is");
	rashpa_stream_start(s, 0, 0);
	second = consume(0);
	ok(second && !consume(0) && strstr(rashpa_reason(), "has a consumer"),
	   "one-consumer: a second one is refused");
	rashpa_stream_get_stat(second, &counts);
	ok(counts.producer == getpid() && counts.consumer == getpid(), "who: the processes are known");
	fd = dup(rashpa_stream_payload(s));
	base = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	ok(base != MAP_FAILED && ((struct rashpa_stream_header *)base)->magic == RASHPA_STREAM_MAGIC,
	   "payload: the file can be mapped");
	rashpa_stream_close(second);
	rashpa_stream_close(s);
	s = create(path, 0, 0);
	ok(s, "payload-kept: a descriptor that a program keeps is no role");
	rashpa_stream_close(s);
	munmap(base, st.st_size);
	close(fd);
	s = create(path, 100, 0);
	ok(!s && strstr(rashpa_reason(), "slots"), "too-small: a file that is too small stays");
	unlink(path);
	s = create(path, 4096, 0);
	ok(s, "many-slots: a file is made with all that its slots need");
	rashpa_stream_close(s);
	unlink(path);

	snprintf(other, sizeof(other), "%s/fifo", folder);
	mkfifo(other, 0600);
	ok((intptr_t)opened(other) == -EINVAL && (intptr_t)opened("/dev/null") == -EINVAL &&
	   (intptr_t)opened(folder) != 0, "no-files: FIFOs, devices and folders are refused");
	unlink(other);
	snprintf(other, sizeof(other), "%s/short", folder);
	close(open(other, O_CREAT | O_RDWR, 0600));
	ok((intptr_t)opened(other) == -EPROTO, "empty: an empty file is refused");
	ok(!truncate(other, 100) && (intptr_t)opened(other) == -EPROTO,
	   "short: one without room for a header, too");
	unlink(other);
}

static void test_full(void)
{
	static const struct rashpa_stream_process whole = { .width = 65536, .height = 65536 };
	struct rashpa_stream_plan plan = {
		.header = {
			.width = 65536, .height = 65536, .pixel = RASHPA_PIXEL_U64,
			.bunch = 1024, .slots = 2,
		},
		.process = &whole, .processes = 1,
	};
	struct rashpa_stream *s;

	ok(rashpa_stream_create(path, &plan, &s) && strstr(rashpa_reason(), "no room"),
	   "full: memory that is not there is an error of the call");
	ok(!entries(), "nothing-left: and no file is left");
}

static void test_memfd(void)
{
	int fd = memfd_create("stream", MFD_CLOEXEC | MFD_ALLOW_SEALING), result;
	struct rashpa_stream *s, *c;
	char name[32];

	snprintf(name, sizeof(name), "/proc/%d/fd/%d", getpid(), fd);
	ok(!ftruncate(fd, 1 << 20) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW),
	   "sealed: a memfd that cannot be cut");
	s = create(name, 4, 8 * BUNCH);
	ok(s && !rashpa_stream_start(s, 0, 0), "memfd: has a stream by its path");
	ok(!rashpa_stream_open(name, RASHPA_STREAM_FROM_START, &c) && publish(s, 2) > 0 &&
	   take(c, 2, &result) == 2 && result > 0, "memfd-taken: which is taken");
	rashpa_stream_close(c);
	rashpa_stream_close(s);
	close(fd);
}

/* --- to wait --- */

/* Each of so many stacks needs a wake, of one side or of the other: a tick each would hang. */
static void test_wait(void)
{
	enum { STACKS = 2000 };
	struct rashpa_stream *s;
	pid_t pid = producer(1, STACKS, true);
	uint64_t n;
	int result;

	do
		s = consume(RASHPA_STREAM_FROM_START);
	while (!s);
	n = take(s, UINT64_MAX, &result);
	ok(n == STACKS && !result, "wait: %" PRIu64 " stacks through one slot (%d)", n, result);
	end(pid, 0);
	rashpa_stream_close(s);
	unlink(path);
}

static void test_poll(void)
{
	enum { STACKS = 2000 };
	struct pollfd both[2] = { { .events = POLLIN }, { .events = POLLIN } };
	struct rashpa_stream *s = create(path, 2, 0), *c;
	uint64_t sent = 0, taken = 0;
	struct rashpa_stack st;
	int result = 0;

	rashpa_stream_start(s, 0, 0);
	c = consume(0);
	both[0].fd = rashpa_stream_fd(s);
	both[1].fd = rashpa_stream_fd(c);
	ok(both[0].fd >= 0 && both[1].fd >= 0 && rashpa_stream_fd(c) == both[1].fd,
	   "fd: both have a descriptor");
	while (taken < STACKS && poll(both, 2, HANG_S * 1000) > 0) {
		while (sent < STACKS && both[0].revents && (result = rashpa_stream_slot(s, &st, 0)) > 0) {
			fill(&st);
			rashpa_stream_publish(s, &st);
			sent++;
		}
		while (both[1].revents && (result = rashpa_stream_next(c, &st, 0)) > 0) {
			taken += filled(&st);
			rashpa_stream_release(c, &st);
		}
		if (result < 0 && result != -ETIMEDOUT)
			break;
	}
	ok(taken == STACKS, "poll: all are taken by it, %" PRIu64 " (%s)", taken, rashpa_reason());
	rashpa_stream_close(c);
	rashpa_stream_close(s);
	unlink(path);
}

static void *waits(void *stream)
{
	struct rashpa_stack st;

	return (void *)(intptr_t)rashpa_stream_next(stream, &st, FOREVER);
}

static void on_signal(int number)
{
	(void)number;
}

static void test_interrupt(void)
{
	const struct sigaction restarts = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct rashpa_stream *s = create(path, 2, 0), *c;
	pthread_t thread;
	void *result;

	rashpa_stream_start(s, 0, 0);
	for (unsigned int flags = 0; flags <= RASHPA_STREAM_OBSERVE; flags += RASHPA_STREAM_OBSERVE) {
		c = consume(flags);
		pthread_create(&thread, NULL, waits, c);
		rashpa_stream_wake(c);
		pthread_join(thread, &result);
		ok((intptr_t)result == -EINTR, "wake/%s: another thread ends the wait",
		   flags ? "observer" : "consumer");
		rashpa_stream_close(c);
	}
	sigaction(SIGUSR1, &restarts, NULL);
	c = consume(0);
	pthread_create(&thread, NULL, waits, c);
	while (pthread_tryjoin_np(thread, &result))
		pthread_kill(thread, SIGUSR1);
	ok((intptr_t)result == -EINTR, "signal: so does a signal");
	rashpa_stream_close(c);
	rashpa_stream_close(s);
	unlink(path);
}

/* --- deaths --- */

static void test_producer_dies(void)
{
	struct rashpa_stream *s;
	uint64_t n;
	int result;
	pid_t pid = producer(8, 5, false);

	do
		s = consume(RASHPA_STREAM_FROM_START);
	while (!s);
	n = take(s, 3, &result);
	ok(n == 3 && result > 0, "before: stacks of a producer that lives");
	end(pid, SIGKILL);
	n = take(s, UINT64_MAX, &result);
	ok(result == -EOWNERDEAD && n <= 2, "producer-dies: all that is complete, then EOWNERDEAD (%d)", result);
	pid = producer(8, 5, true);
	n = take(s, UINT64_MAX, &result);
	ok(n == 5 && !result, "next-producer: the next one's stream begins");
	end(pid, 0);
	rashpa_stream_close(s);
	unlink(path);
}

static void test_consumer_dies(void)
{
	struct rashpa_stream *s = create(path, 4, 0), *c;
	struct rashpa_stack st;
	int pipes[2], result;
	char byte;
	pid_t pid;

	rashpa_stream_start(s, 0, 0);
	publish(s, 4);
	if (pipe(pipes))
		return;
	pid = fork();
	if (!pid) {
		alarm(HANG_S);
		c = consume(0);
		take(c, 1, &result);
		rashpa_stream_next(c, &st, FOREVER);	/* and holds it */
		result = write(pipes[1], "", 1);
		for (;;)
			pause();
	}
	result = read(pipes[0], &byte, 1);
	ok(!consume(0), "consumer-lives: it has the role");
	end(pid, SIGKILL);
	c = consume(0);
	ok(c && rashpa_stream_next(c, &st, FOREVER) > 0 && st.number == 1 && filled(&st),
	   "consumer-dies: its successor goes on with the stack that it held");
	rashpa_stream_close(c);
	rashpa_stream_close(s);
	close(pipes[0]);
	close(pipes[1]);
	unlink(path);
}

static void test_cut(void)
{
	struct rashpa_stream *s = create(path, 4, 0), *c;
	struct rashpa_stack st;
	int result;

	rashpa_stream_start(s, 0, 0);
	c = consume(0);
	ok(rashpa_stream_begin(c, FOREVER) == 0, "begun: a stream");
	/* what programs look at all the time stays */
	result = truncate(path, rashpa_stream_get_header(c)->data_offset + 4096);
	do
		result = rashpa_stream_next(c, &st, 0);
	while (result == -ETIMEDOUT);
	ok(result == -EPROTO && strstr(rashpa_reason(), "was cut"), "cut: a file that was cut is an error (%d)",
	   result);
	rashpa_stream_close(c);
	rashpa_stream_close(s);
	unlink(path);
}

/* No board writes a file. */
static void test_hostile(void)
{
	static const struct rashpa_stream_process board = {
		.function = RASHPA_STREAM_FPGA, .width = WIDTH, .height = HEIGHT,
	};
	struct rashpa_stream_plan plan = {
		.header = { .width = WIDTH, .height = HEIGHT, .pixel = RASHPA_PIXEL_U16, .bunch = 1 },
		.process = &board, .processes = 1,
	};
	struct rashpa_stream_process *process;
	struct rashpa_stream_file *words;
	struct rashpa_stream *s, *c;
	struct rashpa_stream_stat counts;
	struct rashpa_stack st;
	struct stat file = {};
	uint8_t *base;
	int fd, result;

	ok(rashpa_stream_create(path, &plan, &s) == -ENOTSUP && !entries(),
	   "no-board: a plan with a board makes no file");
	s = create(path, 2, 0);
	rashpa_stream_start(s, 0, 0);
	fd = open(path, O_RDWR);
	fstat(fd, &file);
	base = mmap(NULL, file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	process = (struct rashpa_stream_process *)(base + rashpa_stream_get_header(s)->process_offset);
	process->function = RASHPA_STREAM_FPGA;
	c = consume(0);
	ok(rashpa_stream_next(c, &st, 0) == -ENOTSUP, "claimed-board: a board in the header is refused");
	rashpa_stream_close(c);
	process->function = RASHPA_STREAM_SOFTWARE;
	words = (struct rashpa_stream_file *)(base + RASHPA_STREAM_FILE);
	words->holder[0] = words->holder[1] = -5;
	words->wake = UINT32_MAX;
	c = consume(0);
	ok(publish(s, 1) > 0 && take(c, 1, &result) == 1 && result > 0,
	   "any-words: stacks come, whatever the words of the file are");
	rashpa_stream_get_stat(c, &counts);
	ok(counts.producer == -1 && counts.consumer == getpid(), "unknown: an impossible process id is not believed");
	rashpa_stream_close(c);
	rashpa_stream_close(s);
	munmap(base, file.st_size);
	unlink(path);
}

int main(void)
{
	alarm(HANG_S);
	/* no driver, wherever this runs */
	if (!mkdtemp(folder) || setenv("RASHPA_DEV", folder, 1))
		return 1;
	snprintf(path, sizeof(path), "%s/stream", folder);
	test_file();
	test_full();
	test_memfd();
	test_wait();
	test_poll();
	test_interrupt();
	test_producer_dies();
	test_consumer_dies();
	test_cut();
	test_hostile();
	rmdir(folder);
	return tap_end();
}
