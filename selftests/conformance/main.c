// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Plays random streams of operations into two device programs until they differ. Shortens the
 * stream that differs as far as possible, and saves it as text that can be played again.
 */
#include "differ.h"

#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SHRINK_SECONDS	60

struct options {
	const char *program[2], *replay, *save, *tell;
	uint64_t seed;
	unsigned int seconds, streams;
};

static struct options options = { .save = "differ.txt", .seconds = 5 };
static struct stream stream;
static char folder[] = "/tmp/differ.XXXXXX";

static const struct argp_option option_list[] = {
	{ "seed", 's', "N", 0, "the first stream is made from this number (1)", 0 },
	{ "seconds", 't', "N", 0, "play for N seconds (5)", 0 },
	{ "minutes", 'm', "N", 0, "play for N minutes", 0 },
	{ "streams", 'n', "N", 0, "play N streams, without a time limit", 0 },
	{ "replay", 'r', "FILE", 0, "play only this stream", 0 },
	{ "save", 'o', "FILE", 0, "save a stream that differs (differ.txt)", 0 },
	{ "tell", 'c', "COMMAND", 0, "send this to the second program's control socket", 0 },
	{ 0 },
};

static uint64_t number(const char *text, const struct argp_state *state)
{
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (*text < '0' || *text > '9' || *end || errno)
		argp_error(state, "%s is not a number", text);
	return value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 's':
		options.seed = number(arg, state);
		return 0;
	case 't':
		options.seconds = (unsigned int)number(arg, state);
		return 0;
	case 'm':
		options.seconds = (unsigned int)number(arg, state) * 60;
		return 0;
	case 'n':
		options.streams = (unsigned int)number(arg, state);
		return 0;
	case 'r':
		options.replay = arg;
		return 0;
	case 'o':
		options.save = arg;
		return 0;
	case 'c':
		options.tell = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			argp_error(state, "more than two programs");
		options.program[state->arg_num] = arg;
		return 0;
	case ARGP_KEY_END:
		if (!options.program[1])
			argp_error(state, "two programs are needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list, .parser = parse_option, .args_doc = "PROGRAM PROGRAM",
	.doc = "Plays random streams of operations into two device programs, and compares them.",
};

/* The client calls this as well: a program that dies or does not answer is a finding. */
void die(const char *fmt, ...)
{
	va_list args;

	printf("Bail out! ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	if (stream.count && !options.replay &&
	    stream_save(&stream, options.save, "the program ended in this stream"))
		printf("# the stream is in %s\n", options.save);
	exit(EXIT_FAILURE);
}

/* -------------------------------------------------------- two programs --- */

static void tell(struct client *c, const char *command)
{
	int fd = client_open(c->control);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[256];
	int length = snprintf(text, sizeof(text), "%s\n", command);

	if (send(fd, text, (size_t)length, MSG_NOSIGNAL) != length || poll(&p, 1, 5000) != 1 ||
	    recv(fd, text, sizeof(text), 0) < 2 || memcmp(text, "ok", 2))
		die("the second program refused: %s", command);
	close(fd);
}

static void open_side(struct side *s, unsigned int number_of)
{
	struct client *c = &s->client;
	uint32_t *word, i, x = 1;

	snprintf(c->path, sizeof(c->path), "%s/socket%u", folder, number_of);
	snprintf(c->control, sizeof(c->control), "%s/control%u", folder, number_of);
	s->host_fd = memfd_create("host", MFD_CLOEXEC);
	if (s->host_fd < 0 || ftruncate(s->host_fd, HOST_SIZE))
		die("memory: %s", strerror(errno));
	s->host = mmap(NULL, HOST_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, s->host_fd, 0);
	if (s->host == MAP_FAILED)
		die("memory: %s", strerror(errno));
	c->option = "--log=/dev/null";
	client_spawn(c, options.program[number_of]);
	client_setup(c);
	if (!c->memory)
		die("%s: on-board memory cannot be mapped", options.program[number_of]);
	word = (uint32_t *)c->memory;
	for (i = 0; i < CLIENT_MEMORY / 4; i++)
		word[i] = x = x * 1664525 + 1013904223;
}

static void close_sides(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		client_disconnect(&side[i].client);
		client_end(&side[i].client);
	}
	rmdir(folder);
}

/* Boards with different properties would differ anyway; but one may have no groups. */
static void check_boards(void)
{
	static const uint32_t words[] = { RFPGA_FEATURES, RFPGA_ID, RFPGA_VERSION, RFPGA_CAPS,
					  RFPGA_LIMITS };
	unsigned int i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		uint64_t a = client_read(&side[0].client, RFPGA_BAR_REGS, words[i], 4);
		uint64_t b = client_read(&side[1].client, RFPGA_BAR_REGS, words[i], 4);

		if (!i) {
			groups = a & b & RFPGA_FEATURE_GROUP;
			a |= RFPGA_FEATURE_GROUP;
			b |= RFPGA_FEATURE_GROUP;
		}
		if (a != b)
			die("these are different boards: register %#x is %#x, %#x", words[i],
			    (uint32_t)a, (uint32_t)b);
	}
}

/* -------------------------------------------------------------- search --- */

/* Is it the same difference? The text after " at " and ":" may change. */
static bool same_thing(const char *why, const char *other)
{
	const char *end = strstr(why, " at ");
	size_t length = end ? (size_t)(end - why) : strcspn(why, ":");

	return !strncmp(why, other, length);
}

/*
 * If the stream without the operations [from, to) still shows the same difference, remove them.
 * Entries stay, as boards may find any entry if sums do not ascend.
 */
static bool leave_out(unsigned int from, unsigned int to, char *why)
{
	static struct stream shorter;
	char other[WHY_SIZE];
	unsigned int i;

	shorter.count = 0;
	for (i = 0; i < stream.count; i++)
		if (i < from || i >= to || stream.op[i].kind == ENTRY)
			shorter.op[shorter.count++] = stream.op[i];
	if (shorter.count == stream.count)
		return false;
	if (play(&shorter, other) || !same_thing(why, other))
		return false;
	stream = shorter;
	memcpy(why, other, WHY_SIZE);
	return true;
}

static void shrink(char *why)
{
	time_t end = time(NULL) + SHRINK_SECONDS;
	unsigned int size, at;

	for (size = stream.count / 2; size; size /= 2)
		for (at = 0; at < stream.count && time(NULL) < end; )
			if (at + size > stream.count || !leave_out(at, at + size, why))
				at += size;
}

static bool report(uint64_t seed, char *why)
{
	unsigned int was = stream.count;
	char comment[WHY_SIZE + 64];

	printf("# stream %llu of %u operations: %s\n", (unsigned long long)seed, was, why);
	shrink(why);
	snprintf(comment, sizeof(comment), "stream %llu: %s", (unsigned long long)seed, why);
	if (!stream_save(&stream, options.save, comment))
		die("%s: %s", options.save, strerror(errno));
	printf("# %u operations are enough: %s\n# play them again: --replay %s\n", stream.count,
	       why, options.save);
	return false;
}

static bool search(void)
{
	time_t end = time(NULL) + options.seconds;
	uint64_t seed = options.seed, compares = 0;
	unsigned int n, i;
	char why[WHY_SIZE];

	for (n = 0; options.streams ? n < options.streams : time(NULL) < end; n++, seed++) {
		generate(&stream, seed);
		if (!play(&stream, why))
			return report(seed, why);
		for (i = 0; i < stream.count; i++)
			compares += stream.op[i].kind == COMPARE;
	}
	printf("# %u streams, %llu comparisons\n", n, (unsigned long long)compares);
	return n;
}

static bool replay(void)
{
	char why[WHY_SIZE];

	stream_load(&stream, options.replay);
	if (play(&stream, why))
		return true;
	printf("# %s\n", why);
	return false;
}

int main(int argc, char **argv)
{
	unsigned int i;
	bool same;

	setvbuf(stdout, NULL, _IOLBF, 0);
	options.seed = 1;
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	if (!mkdtemp(folder))
		die("%s: %s", folder, strerror(errno));
	for (i = 0; i < 2; i++)
		open_side(&side[i], i);
	check_boards();
	if (options.tell)
		tell(&side[1].client, options.tell);
	same = options.replay ? replay() : search();
	close_sides();
	printf("%sok 1 - %s and %s do the same\n1..1\n", same ? "" : "not ", options.program[0],
	       options.program[1]);
	return same ? EXIT_SUCCESS : EXIT_FAILURE;
}
