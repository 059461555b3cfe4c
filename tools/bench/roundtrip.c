// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rashpa-bench roundtrip: time of doorbell, DMA, notification and acknowledgement, from the
 * counter of the FPGA.
 */
#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/event.h"
#include "common/json-out.h"
#include "common/parse.h"
#include "bench/settings.h"

#define FREE_STACKS	200	/* stacks of the run without acknowledgements */
#define PATIENCE_MS	500

struct trip {
	const char *path;
	uint64_t size;
	struct samples cycle;	/* ns */
	uint64_t dma_ns;	/* time of a stack and its lock record, without any wait */
};

struct config {
	struct settings settings;
	uint64_t size[SIZES_MAX];
	size_t sizes;
	unsigned int trips;
	const char *memory, *flush;
	struct trip *trip;	/* sizes x ways */
};

/* Ways to notify the program */
static const unsigned int ways[] = { PATH_LOCK, PATH_READ, PATH_EVENTFD, PATH_RING };

#define WAYS	(sizeof(ways) / sizeof(ways[0]))

enum { OPT_MEMORY = OPT_OWN, OPT_FLUSH };

static const struct argp_option options[] = {
	OPTION_FPGA("an unused bound function with the reference interface"),
	{ "sizes", 's', "SIZE,...", 0,
	  "bytes of a transfer, multiples of 8 (default: 1K,4K,16K,64K,256K,1M,4M)", 0 },
	{ "repeat", 'r', "N", 0, "rounds, 1 to 1000 (default: 5)", 0 },
	{ "events", 'e', "N", 0, "round trips in a round, 1 to 1000000 (default: 200)", 0 },
	{ "memory", OPT_MEMORY, "NAME", 0,
	  "put the payload into the memory of this GPU, as of loop (default: the host)", 0 },
	{ "flush", OPT_FLUSH, "on|off", 0,
	  "the board flushes payload by a read before its notification (default: on with --memory, else off)",
	  0 },
	OPTION_JSON,
	{}
};

static void check_size(struct argp_state *state, const char *word, uint64_t size)
{
	if (!size || size % 8 || size > UINT64_C(1) << 30)
		argp_error(state, "--sizes: \"%s\" is not a multiple of 8 up to 1G", word);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;

	switch (key) {
	case 's':
		c->sizes = option_sizes(state, arg, c->size, check_size);
		break;
	case 'e':
		c->trips = option_number(state, "--events", arg, 1, 1000000);
		break;
	case OPT_MEMORY:
		c->memory = arg;
		break;
	case OPT_FLUSH:
		option_word(state, "--flush", arg, "on|off");
		c->flush = arg;
		break;
	case ARGP_KEY_END:
		settings_need_device(&c->settings, state);
		break;
	default:
		return settings_parse(&c->settings, key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Measure the round trip of a transfer by the clock of the FPGA. A doorbell "
	       "starts the transfer, the FPGA writes data and a notification, and the program "
	       "acknowledges by the next doorbell. Needs root.",
};

/* --- one turn --- */

/* Into a GPU, the notification may overtake payload that is not flushed. */
static bool flushes(const struct config *c)
{
	return c->flush ? !strcmp(c->flush, "on") : !!c->memory;
}

static uint32_t mode(const struct config *c)
{
	return RFPGA_MODE_LOCK | (flushes(c) ? RFPGA_MODE_FLUSH : 0);
}

static uint64_t lock_ticks(const struct board *b)
{
	return __atomic_load_n(board_lock(b) + RFPGA_LOCK_TICKS / 8, __ATOMIC_RELAXED);
}

static bool answered(struct path *p)
{
	unsigned int start = ticks;

	while (!p->kind->wait(p))
		if (ticks - start >= 2 || !going_on())
			return false;
	return true;
}

/*
 * Time from the FPGA's time stamp in one lock record to that in the next. The program sees the
 * notification and rings the doorbell; the FPGA sees it, sends data, and makes the next
 * notification.
 */
static bool trips(struct path *p, struct trip *t, unsigned int n)
{
	uint64_t before, now;

	if (!answered(p))
		return false;
	before = lock_ticks(p->board);
	for (unsigned int i = 1; i <= n; i++) {
		board_credit(p->board, i);
		if (!answered(p))
			return false;
		now = lock_ticks(p->board);
		samples_add(&t->cycle, (now - before) * RFPGA_TICK_NS);
		before = now;
	}
	return true;
}

static int turn_of(struct config *c, struct path *p, struct trip *t, char *why)
{
	const struct run run = { .mode = p->kind->mode | mode(c), .bytes = t->size };
	bool good;

	if (path_open(p, why))
		return -1;
	ticks_start(PATIENCE_MS);
	board_start(p->board, &run);
	good = trips(p, t, c->trips);
	ticks_start(0);
	board_stop(p->board);
	path_close(p);
	if (board_faulted(p->board, why))
		return -1;
	return good || !going_on() ? 0 : because(why, -1, "an event did not come");
}

/* Time of a stack when the engine runs freely: the lower limit of a round trip. */
static uint64_t dma_ns(const struct config *c, struct board *b, uint64_t size)
{
	const struct run run = {
		.mode = mode(c) | RFPGA_MODE_FREERUN, .bytes = size, .stacks = FREE_STACKS,
	};
	uint64_t span;

	board_start(b, &run);
	while (board_stacks(b) < run.stacks && going_on())
		;
	board_stop(b);
	span = board_counter(b, RFPGA_DTP_C_STOP) - board_counter(b, RFPGA_DTP_C_START);
	return span * RFPGA_TICK_NS / FREE_STACKS;
}

static void measure_size(struct config *c, struct board *b, size_t s)
{
	char why[WHY_SIZE], text[SIZE_TEXT];
	bool out[WAYS] = {};

	for (unsigned int r = 0; r < c->settings.report->repeat; r++) {
		for (size_t i = 0; i < WAYS && going_on(); i++) {
			size_t w = turn(r, i, WAYS);
			struct trip *t = &c->trip[s * WAYS + w];
			struct path p = { .kind = &path_kinds[ways[w]], .board = b };

			progress_show(&c->settings.report->progress, "round trip: %s, round %u of %u, %s",
				      format_size(text, t->size), r + 1, c->settings.report->repeat,
				      t->path);
			if (out[w] || !turn_of(c, &p, t, why))
				continue;
			out[w] = true;
			report_leave_out(c->settings.report, t->path, "%s", why);
		}
	}
	if (!going_on())
		return;
	for (size_t w = 0; w < WAYS; w++)
		c->trip[s * WAYS + w].dma_ns = w ? c->trip[s * WAYS].dma_ns : dma_ns(c, b, c->size[s]);
}

static void measure(struct config *c)
{
	struct board board = BOARD_NONE;
	uint64_t most = 0;
	char why[WHY_SIZE];

	for (size_t s = 0; s < c->sizes; s++)
		most = c->size[s] > most ? c->size[s] : most;
	if (board_open_ours(&board, c->settings.device, most, c->memory, why)) {
		report_leave_out(c->settings.report, c->settings.device, "%s", why);
		return;
	}
	c->settings.report->device = c->settings.device;
	c->settings.report->iommu = board.iommu;
	for (size_t s = 0; s < c->sizes && going_on(); s++)
		measure_size(c, &board, s);
	progress_end(&c->settings.report->progress);
	board_close(&board);
}

/* --- the result --- */

static uint64_t nth(const struct trip *t, double p)
{
	return percentile(t->cycle.value, t->cycle.count, p);
}

static bool shown(const struct trip *t)
{
	return t->cycle.count && t->dma_ns;
}

static void print(const struct config *c)
{
	char text[SIZE_TEXT];

	printf("from one notification to the next, by the FPGA's counter of %u ns\n"
	       "%12s  %-18s %10s %10s %10s %10s %9s\n", RFPGA_TICK_NS, "size", "path", "min us",
	       "p50 us", "p99 us", "DMA us", "MB/s");
	for (size_t i = 0; i < c->sizes * WAYS; i++) {
		const struct trip *t = &c->trip[i];

		if (shown(t))
			printf("%12s  %-18s %10.1f %10.1f %10.1f %10.1f %9.1f\n",
			       format_size(text, t->size), t->path, nth(t, 0) / 1e3,
			       nth(t, 50) / 1e3, nth(t, 99) / 1e3, t->dma_ns / 1e3,
			       t->size * 1e3 / nth(t, 50));
	}
	report_print_left_out(c->settings.report);
}

static int write_json(const struct config *c)
{
	struct json_object *o = report_json_head(c->settings.report, "roundtrip");
	struct json_object *rows = json_object_new_array(), *e;

	put_u64(o, "events", c->trips);
	put_u64(o, "tick_ns", RFPGA_TICK_NS);
	put_text(o, "memory", c->memory ? c->memory : "host");
	put_bool(o, "flush", flushes(c));
	for (size_t i = 0; i < c->sizes * WAYS; i++) {
		const struct trip *t = &c->trip[i];

		if (!shown(t))
			continue;
		e = json_object_new_object();
		put_text(e, "path", t->path);
		put_u64(e, "size_bytes", t->size);
		put_u64(e, "min_ns", nth(t, 0));
		put_u64(e, "p50_ns", nth(t, 50));
		put_u64(e, "p99_ns", nth(t, 99));
		put_u64(e, "dma_ns", t->dma_ns);
		put_u64(e, "trips", t->cycle.count);
		json_object_array_add(rows, e);
	}
	json_object_object_add(o, "rows", rows);
	report_json_left_out(c->settings.report, o);
	return json_finish(o);
}

static int result(const struct config *c)
{
	const struct settings *s = &c->settings;
	bool any = false, bad = false;

	for (size_t i = 0; i < c->sizes * WAYS; i++)
		any |= shown(&c->trip[i]);
	if (settings_text(s))
		print(c);
	if (s->json)
		bad |= write_json(c);
	return measured(any, bad);
}

static int trips_new(struct config *c)
{
	c->trip = calloc(c->sizes * WAYS, sizeof(*c->trip));
	if (!c->trip)
		return -1;
	for (size_t s = 0; s < c->sizes; s++) {
		for (size_t w = 0; w < WAYS; w++) {
			c->trip[s * WAYS + w].path = path_kinds[ways[w]].name;
			c->trip[s * WAYS + w].size = c->size[s];
		}
	}
	return 0;
}

int cmd_roundtrip(int argc, char **argv)
{
	struct report report = { .repeat = 5, .iommu = -1 };
	struct config c = {
		.settings.report = &report, .trips = 200, .sizes = 7,
		.size = { 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20 },
	};
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &c);
	if (trips_new(&c))
		return fail("no memory");
	catch_signals();
	stay_on_cpu();
	progress_init(&report.progress, true);
	measure(&c);
	for (size_t i = 0; i < c.sizes * WAYS; i++)
		samples_sort(&c.trip[i].cycle);
	status = result(&c);
	for (size_t i = 0; i < c.sizes * WAYS; i++)
		samples_free(&c.trip[i].cycle);
	free(c.trip);
	report_free(&report);
	return status;
}
