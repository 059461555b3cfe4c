// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rashpa-bench loop: a program drives the board by a ring, as in NaNet (Martinelli 2017). It
 * polls events in memory, and answers by descriptors in memory; only the doorbell crosses the bus.
 * Each datagram and each event is checked.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "common/json-out.h"
#include "bench/loop/loop.h"
#include "common/parse.h"
#include <rashpa-gpu.h>
#include <rashpa.h>
#include "bench/settings.h"
#include "common/shown.h"

/* words that a drive reports, as TOLD_* and LOOP_* in drive.h, which only drives include */
enum {
	STOP, END, RECEIVED, SENT, EVENTS, STALE, LATE, DISORDER, CONTENT, DOUBLED, EVENT, STATUS,
	BEGUN,
};

enum { DONE = 1, STOPPED, MISSING, OVERWRITTEN, UNSENT };

#define LOOK_US		2000u		/* watching period, long enough not to disturb the drive */
#define PATIENCE_NS	30000000000ull	/* time limit without an event */
#define COMPILE_NS	600000000000ull	/* time limit for compiling and starting a shader */
#define TOLD		16u		/* words */
#define DRIVES		3u
#define LAUNCHES	10u		/* launches have this part of the events */

/* counters of the board */
struct counters {
	/* ring */
	uint64_t sent, received, events, held, late, lost, errors;
	/* DTP */
	uint64_t successes, failures, unjudged, start_ticks, success_ticks, failure_ticks;
};

/* Result of a drive. */
struct outcome {
	char drive[RASHPA_GPU_NAME + 16];	/* empty: not used */
	const char *way;
	bool ran, in_gpu;		/* has the GPU the memory? */
	uint32_t told[TOLD];
	uint64_t missing;		/* datagrams that never came */
	uint64_t interrupts;
	double fit_ns;
	uint32_t rings, wrong_rings;	/* answers: fits that were compared, and differ */
	struct counters board;
	struct samples answer;		/* ns */
	char why[WHY_SIZE];		/* error; empty: none */
};

struct config {
	struct settings settings;
	const struct loop_kind *kind;
	const char *buffer, *gpu, *memory, *flush, *only;
	uint32_t events, window, ring, queue, bytes, deadline_us, compute_us, stale, tail;
	bool rings;
	struct outcome outcome[DRIVES];
};

enum {
	OPT_BUFFER = OPT_OWN, OPT_GPU, OPT_WINDOW, OPT_RING, OPT_QUEUE, OPT_SIZE, OPT_DEADLINE,
	OPT_STALE, OPT_TAIL, OPT_VERDICTS, OPT_MEMORY, OPT_FLUSH, OPT_COMPUTE, OPT_RINGS, OPT_ONLY,
};

static const struct argp_option options[] = {
	OPTION_FPGA("an unused bound function with a ring"),
	{ "events", 'e', "N", 0,
	  "number of events, two for each datagram, or of stacks (default: 100000)", 0 },
	{ "gpu", OPT_GPU, "NAME", 0,
	  "also answer by launches on this GPU (a tenth of the events), then let a thread of it drive the board: vulkan[:N] or cuda[:N]",
	  0 },
	{ "only", OPT_ONLY, "host|launches|gpu", 0, "drive in this way only", 0 },
	{ "buffer", OPT_BUFFER, "NAME", 0,
	  "put the ring into this buffer (default: a new one)", 0 },
	{ "memory", OPT_MEMORY, "NAME", 0,
	  "put events, ring and payload into the memory of this GPU; gpu: the one of --gpu", 0 },
	{ "flush", OPT_FLUSH, "on|off", 0,
	  "the board flushes payload by a read before its event (default: on with --memory, else off)",
	  0 },
	{ "window", OPT_WINDOW, "N", 0,
	  "datagrams under way at a time (default: 4), or stacks (default: 1)", 0 },
	{ "ring", OPT_RING, "N", 0, "number of descriptors, a power of two (default: 64)", 0 },
	{ "queue", OPT_QUEUE, "N", 0, "length of the event queue, a power of two (default: 256)", 0 },
	{ "size", OPT_SIZE, "BYTES", 0, "datagram size, a multiple of 4 (default: 256)", 0 },
	{ "deadline", OPT_DEADLINE, "US", 0,
	  "time limit of an answer; late answers are counted; 0: no limit (default: 1000)", 0 },
	{ "compute", OPT_COMPUTE, "US", 0,
	  "a dummy computation of so many microseconds in each answer (default: 0)", 0 },
	{ "rings", OPT_RINGS, NULL, 0,
	  "datagrams are hits of a Cherenkov ring, and answers its centre and radius", 0 },
	{ "stale", OPT_STALE, "N", 0,
	  "leave descriptor N unwritten, and check that the board reports it", 0 },
	{ "overrun", OPT_TAIL, "N", 0,
	  "from descriptor N on, ring for more than the ring has, and check that the ring ends", 0 },
	{ "verdicts", OPT_VERDICTS, NULL, 0,
	  "no ring: report to DTP 0 whether each of its stacks is good, by one store each", 0 },
	OPTION_JSON,
	{}
};

static uint32_t power_of_two(struct argp_state *state, const char *what, const char *arg,
			     uint32_t least)
{
	const uint32_t n = option_number(state, what, arg, least, 1u << RFPGA_RING_LOG2_MAX);

	if (n & (n - 1))
		argp_error(state, "%s: \"%s\" is not a power of two", what, arg);
	return n;
}

#define AT(member)	offsetof(struct config, member)

static const struct option_value values[] = {
	{ 'e', VALUE_U32, "--events", AT(events), 2, 10000000 },
	{ OPT_GPU, VALUE_TEXT, "--gpu", AT(gpu), 0, 0 },
	{ OPT_MEMORY, VALUE_TEXT, "--memory", AT(memory), 0, 0 },
	{ OPT_BUFFER, VALUE_TEXT, "--buffer", AT(buffer), 0, 0 },
	{ OPT_WINDOW, VALUE_U32, "--window", AT(window), 1, 1u << RFPGA_RING_LOG2_MAX },
	{ OPT_DEADLINE, VALUE_U32, "--deadline", AT(deadline_us), 0, 10000000 },
	{ OPT_COMPUTE, VALUE_U32, "--compute", AT(compute_us), 0, 1000000 },
	{ OPT_STALE, VALUE_U32, "--stale", AT(stale), 0, 1000000 },
	{ OPT_TAIL, VALUE_U32, "--overrun", AT(tail), 0, 1000000 },
	{}
};

static error_t parse_own(struct config *c, int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case OPT_FLUSH:
		option_word(state, "--flush", arg, "on|off");
		c->flush = arg;
		break;
	case OPT_RING:
		c->ring = power_of_two(state, "--ring", arg, 1);
		break;
	case OPT_QUEUE:
		c->queue = power_of_two(state, "--queue", arg, 2);
		break;
	case OPT_SIZE:
		c->bytes = option_number(state, "--size", arg, 4, 8192);
		if (c->bytes % 4)
			argp_error(state, "--size: \"%s\" is not a multiple of 4", arg);
		break;
	case OPT_ONLY:
		option_word(state, "--only", arg, "host|launches|gpu");
		c->only = arg;
		break;
	case OPT_RINGS:
		c->rings = true;
		break;
	case OPT_VERDICTS:
		c->kind = &loop_stacks;
		break;
	default:
		return option_set(values, key, arg, state);
	}
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;

	if (key == ARGP_KEY_END) {
		settings_need_device(&c->settings, state);
		if (c->memory && c->buffer)
			argp_error(state, "--memory excludes --buffer, which is host memory");
		if (!c->gpu && c->memory && !strcmp(c->memory, "gpu"))
			argp_error(state, "--memory gpu needs --gpu");
		if (!c->gpu && c->only && strcmp(c->only, "host"))
			argp_error(state, "--only %s needs --gpu", c->only);
		if (c->rings && (c->kind != &loop_ring || c->bytes < LOOP_RINGS_BYTES))
			argp_error(state, "--rings needs --size of at least %u, and no --verdicts",
				   LOOP_RINGS_BYTES);
		/* with one stack under way, the board sees each verdict */
		if (!c->window)
			c->window = c->kind == &loop_ring ? 4 : 1;
		if (c->kind == &loop_ring && c->window > c->ring)
			argp_error(state, "--window %u exceeds the %u descriptors of --ring",
				   c->window, c->ring);
		return 0;
	}
	return parse_own(c, key, arg, state) ? settings_parse(&c->settings, key, arg, state) : 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Drive the board by a ring, in loopback: each datagram that comes back lets the next "
	       "one go. First a thread of this machine drives. With --gpu, interrupts wake this thread "
	       "next, which launches a shader for each datagram; then a shader that stays drives, on "
	       "a GPU that can access the board's doorbell. The program checks that each event and "
	       "each datagram comes once, in order and unchanged. The board measures the time of "
	       "answers. With --verdicts, the board sends stacks, the drive reports success or "
	       "failure of each, and the program checks the counters of the board. Needs root."
	       "\vExit status: 0 all came, without errors except those asked for; 1 failure or "
	       "interruption; 2 usage error.",
};

/* --- one drive --- */

static bool judges(const struct loop *l)
{
	return l->kind == &loop_stacks;
}

static uint32_t told(const struct loop *l, unsigned int what)
{
	return __atomic_load_n(&l->word[l->plan.told + what], __ATOMIC_ACQUIRE);
}

static void tell_stop(struct loop *l)
{
	__atomic_store_n(&l->word[l->plan.told + STOP], 1, __ATOMIC_RELEASE);
	loop_put(l, l->plan.told + STOP, 1);
}

/* Wait for the end of the drive. true, with the reason: the drive must be stopped. */
static bool watch(const struct config *c, struct loop *l, const char *name, char *why)
{
	const uint64_t begin = now_ns();
	uint64_t moved = begin;
	uint32_t before = 0;

	while (loop_get(l, l->plan.told, TOLD), !told(l, END)) {
		if (!told(l, BEGUN) && now_ns() - begin > COMPILE_NS) {
			because(why, 0, "the drive does not start");
			return true;
		}
		usleep(LOOK_US);
		progress_show(&c->settings.report->progress, "loop by %s: %" PRIu32 " of %" PRIu32 " %s",
			      name, told(l, EVENTS), l->plan.total * (judges(l) ? 1 : 2),
			      judges(l) ? "stacks" : "events");
		if (told(l, EVENTS) != before || !told(l, BEGUN))
			moved = now_ns();
		before = told(l, EVENTS);
		if (l->kind->faulted(l, why))
			return true;
		if (now_ns() - moved > PATIENCE_NS || !going_on()) {
			because(why, 0, "%s after %" PRIu32 " %s", going_on() ? "nothing came" :
				"interrupted", before, judges(l) ? "stacks" : "events");
			return true;
		}
	}
	return false;
}

static void read_counters(const struct loop *l, struct counters *board)
{
	const uint32_t d = RFPGA_DTP(0);

	if (judges(l))
		*board = (struct counters) {
			.successes = rashpa_board_read64(l->board, d + RFPGA_DTP_C_SUCCESSES),
			.failures = rashpa_board_read64(l->board, d + RFPGA_DTP_C_FAILURES),
			.unjudged = rashpa_board_read64(l->board, d + RFPGA_DTP_C_UNJUDGED),
			.start_ticks = rashpa_board_read64(l->board, d + RFPGA_DTP_C_START),
			.success_ticks = rashpa_board_read64(l->board, d + RFPGA_DTP_SUCCESS_TICKS),
			.failure_ticks = rashpa_board_read64(l->board, d + RFPGA_DTP_FAILURE_TICKS),
		};
	else
		*board = (struct counters) {
			.sent = loop_ring_counter(l, RFPGA_RING_C_SENT),
			.received = loop_ring_counter(l, RFPGA_RING_C_RECEIVED),
			.events = loop_ring_counter(l, RFPGA_RING_C_EVENTS),
			.held = loop_ring_counter(l, RFPGA_RING_C_HELD),
			.late = loop_ring_counter(l, RFPGA_RING_C_LATE),
			.lost = loop_ring_counter(l, RFPGA_RING_C_LOST),
			.errors = loop_ring_counter(l, RFPGA_RING_C_ERRORS),
		};
}

/* With a window of one stack, the board sees each verdict, as the credit comes after it. */
static void judge_verdicts(const struct loop *l, struct outcome *o)
{
	const struct counters *b = &o->board;
	const uint32_t bad = o->told[CONTENT], all = l->plan.total;

	if (b->successes + b->failures + b->unjudged != all ||
	    (l->plan.window == 1 && (b->unjudged || b->failures != bad)))
		because(o->why, 0, "of %" PRIu32 " verdicts with %" PRIu32
			" failures, the board has counted %" PRIu64 " with %" PRIu64
			" failures, and missed %" PRIu64, all, bad, b->successes + b->failures, b->failures,
			b->unjudged);
}

/* Compare the report of the drive with the counters of the board and the injected errors. */
static void judge(const struct config *c, struct outcome *o)
{
	const uint32_t *t = o->told, stale = c->stale != LOOP_NEVER;
	const struct counters *b = &o->board;

	if (t[END] == MISSING)
		because(o->why, 0, "event %" PRIu32 " is missing: the next one came",
			t[EVENT]);
	else if (t[END] == OVERWRITTEN)
		because(o->why, 0, "event %" PRIu32 " was overwritten before it was consumed",
			t[EVENT]);
	else if (t[END] == UNSENT)
		because(o->why, 0, "the board could not send: event %" PRIu32 ", status %#" PRIx32,
			t[EVENT], t[STATUS]);
	else if (t[CONTENT] || t[DOUBLED] || o->missing || (t[DISORDER] && !stale))
		because(o->why, 0, "%" PRIu32 " datagrams differ, %" PRIu32 " came twice, %" PRIu64
			" never, %" PRIu32 " out of order", t[CONTENT], t[DOUBLED], o->missing,
			t[DISORDER]);
	else if (b->sent != t[RECEIVED] || b->received != t[RECEIVED] || b->events != t[EVENTS] ||
		 b->late != t[LATE] || b->errors != t[STALE] || b->lost)
		because(o->why, 0, "the counters of the board differ: sent %" PRIu64 ", received %" PRIu64
			", events %" PRIu64 ", late %" PRIu64 ", lost %" PRIu64 ", errors %" PRIu64,
			b->sent, b->received, b->events, b->late, b->lost, b->errors);
	else if (o->wrong_rings)
		because(o->why, 0, "%" PRIu32 " of %" PRIu32 " rings differ from the reference",
			o->wrong_rings, o->rings);
	else if (t[STALE] != stale)
		because(o->why, 0, "%" PRIu32 " descriptors were stale instead of %" PRIu32,
			t[STALE], stale);
}

static void take_samples(const struct loop *l, struct outcome *o)
{
	const uint64_t rate = l->info.tick_rate;

	for (uint32_t i = 0; i < l->plan.total; i++) {
		o->missing += !l->word[l->plan.came + i];
		if (i >= l->plan.window && rate)
			samples_add(&o->answer,
				    l->word[l->plan.answers + i] * UINT64_C(1000000000) / rate);
	}
	samples_sort(&o->answer);
	o->interrupts = loop_ring_interrupts(l);
	if (!l->rings)
		return;
	o->rings = l->plan.total > l->plan.window ? l->plan.total - l->plan.window : 0;
	o->wrong_rings = loop_rings_wrong(l);
	o->fit_ns = l->fit_ns;
}

static int run(const struct config *c, struct loop *l, struct loop_drive *d, struct outcome *o)
{
	char why[WHY_SIZE];
	bool given_up;
	int error;

	if (loop_start(l, o->why))
		return -1;
	error = d->begin(d, l, o->why);
	given_up = error || watch(c, l, d->name, o->why);
	if (given_up)
		tell_stop(l);
	o->ran = !error;
	o->in_gpu = l->memory;
	error = d->end(d, why);
	if (!error)
		loop_get(l, 0, l->length / 4);
	l->kind->stop(l);
	if (!o->ran)
		return -1;
	for (unsigned int i = 0; i < sizeof(o->told) / sizeof(o->told[0]); i++)
		o->told[i] = told(l, i);
	read_counters(l, &o->board);
	if (!judges(l))
		take_samples(l, o);
	if (!given_up && judges(l))
		judge_verdicts(l, o);
	else if (!given_up)
		judge(c, o);
	return error ? because(o->why, -1, "%s", why) : 0;
}

static uint32_t log2_of(uint32_t power)
{
	return __builtin_ctz(power);
}

/* Logarithm of the slot size in words: the smallest power of two that a datagram fits in. */
static uint32_t slot_log2(uint32_t words)
{
	uint32_t log2 = 4;		/* minimum of a ring */

	while (1u << log2 < words)
		log2++;
	return log2;
}

static int drive_once(const struct config *c, struct loop_drive *d, struct outcome *o)
{
	const uint32_t events = d->launch ? c->events / LAUNCHES : c->events;
	struct loop l = LOOP_NONE;
	int error;

	l.kind = c->kind;
	l.drive = d;
	l.deadline_us = c->deadline_us;
	l.compute_us = c->compute_us;
	l.rings = c->rings;
	if (c->memory) {
		l.gpu_name = strcmp(c->memory, "gpu") ? c->memory : c->gpu;
		l.gpu = l.gpu_name == c->gpu ? d->gpu : NULL;
	}
	/* through a bridge, only a flush keeps payload and events in order */
	l.flush = c->flush ? !strcmp(c->flush, "on") : !!c->memory;
	l.plan = (struct loop_plan) {
		.descriptors_log2 = log2_of(c->ring), .events_log2 = log2_of(c->queue),
		.slot_log2 = slot_log2(c->bytes / 4), .words = c->bytes / 4,
		.total = c->kind == &loop_ring ? events / 2 : events, .window = c->window,
		.stale_at = c->stale, .tail_at = c->tail,
	};
	if (loop_open(&l, c->settings.device, c->buffer, o->why)) {
		d->close(d);
		return -1;
	}
	c->settings.report->device = c->settings.device;
	c->settings.report->iommu = !!(l.info.device_flags & RASHPA_DEVICE_IOMMU);
	error = run(c, &l, d, o);
	if (d->lost)
		return error;
	loop_close(&l);
	d->close(d);
	return error;
}

static const char * const ways[DRIVES] = { "host", "launches", "gpu" };

static int open_drive(const struct config *c, unsigned int way, struct loop_drive *drive, char *why)
{
	if (way)
		return (c->gpu[0] == 'c' ? loop_by_cuda : loop_by_vulkan)(drive, c->gpu, way == 1, why);
	loop_by_host(drive);
	return 0;
}

static bool skipped(const struct config *c, unsigned int way)
{
	/* stacks have no answer, and mistakes are those of a ring, not of a way */
	if (way == 1 && (c->kind != &loop_ring || c->stale != LOOP_NEVER || c->tail != LOOP_NEVER))
		return true;
	return (way && !c->gpu) || (c->only && strcmp(c->only, ways[way])) || !going_on();
}

static void measure(struct config *c)
{
	for (unsigned int way = 0; way < DRIVES; way++) {
		struct outcome *o = &c->outcome[way];
		struct loop_drive drive = {};

		if (skipped(c, way))
			continue;
		o->way = ways[way];
		snprintf(o->drive, sizeof(o->drive), "%s", c->gpu ? c->gpu : "");
		if (open_drive(c, way, &drive, o->why))
			continue;
		strcpy(o->drive, drive.name);
		drive_once(c, &drive, o);
	}
}

/* --- the result --- */

static uint64_t nth(const struct outcome *o, double p)
{
	return percentile(o->answer.value, o->answer.count, p);
}

static void print_verdicts(const struct config *c)
{
	printf("%-36s %9s %9s %9s %9s\n", "driven by", "stacks", "successes", "failures", "missed");
	for (const struct outcome *o = c->outcome; o < c->outcome + DRIVES; o++) {
		if (o->ran)
			printf("%-36.36s %9" PRIu32 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 "\n",
			       o->drive, o->told[EVENTS], o->board.successes, o->board.failures,
			       o->board.unjudged);
		if (*o->why)
			printf("%s: %s\n", o->drive, SHOWN(o->why));
	}
}

static void print(const struct config *c)
{
	printf("time from the arrival of a datagram to its answer on the wire, by the counter of the board\n"
	       "%-36s %9s %10s %6s %6s %6s %9s %9s %9s %9s\n", "driven by", "events", "interrupts",
	       "stale", "held", "late", "min us", "p50 us", "p99 us", "max us");
	for (const struct outcome *o = c->outcome; o < c->outcome + DRIVES; o++) {
		if (o->ran && o->answer.count)
			printf("%-36.36s %9" PRIu32 " %10" PRIu64 " %6" PRIu32 " %6" PRIu64 " %6" PRIu32
			       " %9.1f %9.1f %9.1f %9.1f\n",
			       o->drive, o->told[EVENTS], o->interrupts, o->told[STALE],
			       o->board.held, o->told[LATE], nth(o, 0) / 1e3, nth(o, 50) / 1e3,
			       nth(o, 99) / 1e3, nth(o, 100) / 1e3);
		if (o->ran && o->rings)
			printf("  %" PRIu32 " of %" PRIu32 " rings are right; a fit of many at once takes %.0f ns\n",
			       o->rings - o->wrong_rings, o->rings, o->fit_ns);
		if (*o->why)
			printf("%s: %s\n", o->drive, SHOWN(o->why));
	}
}

static struct json_object *verdicts_json(const struct outcome *o)
{
	struct json_object *e = json_object_new_object();

	put_text(e, "drive", o->drive);
	put_text(e, "wrong", *o->why ? o->why : NULL);
	put_u64(e, "stacks", o->told[EVENTS]);
	put_u64(e, "bad", o->told[CONTENT]);
	put_u64(e, "successes", o->board.successes);
	put_u64(e, "failures", o->board.failures);
	put_u64(e, "missed", o->board.unjudged);
	put_u64(e, "start_ticks", o->board.start_ticks);
	put_u64(e, "last_success_ticks", o->board.success_ticks);
	put_u64(e, "last_failure_ticks", o->board.failure_ticks);
	return e;
}

static struct json_object *outcome_json(const struct outcome *o)
{
	struct json_object *e = json_object_new_object(), *b = json_object_new_object();

	put_text(e, "drive", o->drive);
	put_text(e, "way", o->way);
	put_text(e, "wrong", *o->why ? o->why : NULL);
	put_u64(e, "events", o->told[EVENTS]);
	put_u64(e, "datagrams", o->told[RECEIVED]);
	put_u64(e, "missing", o->missing);
	put_u64(e, "doubled", o->told[DOUBLED]);
	put_u64(e, "differ", o->told[CONTENT]);
	put_u64(e, "out_of_turn", o->told[DISORDER]);
	put_u64(e, "stale", o->told[STALE]);
	put_u64(e, "late", o->told[LATE]);
	put_bool(e, "in_gpu", o->in_gpu);
	put_u64(e, "interrupts", o->interrupts);
	put_u64(e, "rings", o->rings);
	put_u64(e, "wrong_rings", o->wrong_rings);
	put_real(e, "fit_ns", o->fit_ns);
	put_u64(b, "sent", o->board.sent);
	put_u64(b, "received", o->board.received);
	put_u64(b, "events", o->board.events);
	put_u64(b, "held", o->board.held);
	put_u64(b, "late", o->board.late);
	put_u64(b, "lost", o->board.lost);
	put_u64(b, "errors", o->board.errors);
	json_object_object_add(e, "board", b);
	if (o->answer.count) {
		put_u64(e, "answer_min_ns", nth(o, 0));
		put_u64(e, "answer_p50_ns", nth(o, 50));
		put_u64(e, "answer_p99_ns", nth(o, 99));
		put_u64(e, "answer_max_ns", nth(o, 100));
	}
	return e;
}

static int write_json(const struct config *c)
{
	struct json_object *o = report_json_head(c->settings.report, "loop");
	struct json_object *rows = json_object_new_array();

	put_text(o, "memory", c->memory ? c->memory : "host");
	put_bool(o, "flush", c->flush ? !strcmp(c->flush, "on") : !!c->memory);
	put_u64(o, "deadline_us", c->deadline_us);
	put_u64(o, "compute_us", c->compute_us);
	put_u64(o, "window", c->window);
	put_u64(o, "ring", c->ring);
	put_u64(o, "queue", c->queue);
	put_u64(o, "size_bytes", c->bytes);
	for (const struct outcome *r = c->outcome; r < c->outcome + DRIVES; r++) {
		if (*r->drive)
			json_object_array_add(rows, c->kind == &loop_ring ? outcome_json(r) :
					      verdicts_json(r));
	}
	json_object_object_add(o, "rows", rows);
	return json_finish(o);
}

int cmd_loop(int argc, char **argv)
{
	struct report report = { .repeat = 1, .iommu = -1 };
	struct config c = {
		.settings.report = &report, .kind = &loop_ring, .events = 100000, .ring = 64,
		.queue = 256, .bytes = 256, .deadline_us = 1000, .stale = LOOP_NEVER,
		.tail = LOOP_NEVER,
	};
	bool bad = false;

	argp_parse(&argp, argc, argv, 0, NULL, &c);
	catch_signals();
	progress_init(&report.progress, true);
	measure(&c);
	progress_end(&report.progress);
	if (settings_text(&c.settings) && c.kind == &loop_ring)
		print(&c);
	else if (settings_text(&c.settings))
		print_verdicts(&c);
	if (c.settings.json)
		bad |= write_json(&c);
	for (struct outcome *o = c.outcome; o < c.outcome + DRIVES; o++) {
		bad |= *o->drive && (!o->ran || *o->why);
		if (*o->drive && *o->why && !settings_text(&c.settings))
			say("%s: %s", o->drive, SHOWN(o->why));
		samples_free(&o->answer);
	}
	report_free(&report);
	return measured(true, bad);
}
