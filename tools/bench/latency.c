// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench latency: time from an event of the FPGA to the waiting program. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/latency.h"
#include <rashpa.h>
#include "bench/settings.h"

/*
 * Warm-up, which does not count. A driver has just been bound, and schedulers, including that of
 * the host of a virtual machine, adapt within tens of milliseconds, depending on the previous path.
 */
#define WARM_UP_EVENTS	25
#define WARM_UP_NS	200000000
#define PATIENCE_MS	500	/* an event that takes twice this time counts as lost */

struct config {
	struct settings settings;
	struct latency *latency;
	bool uio;
};

enum { OPT_UIO = OPT_OWN, OPT_RATE, OPT_LOSS, OPT_PERIOD };

static const struct argp_option options[] = {
	OPTION_FPGA("an unused bound function with the reference interface"),
	{ "vfio", OPT_VFIO, "same|BDF", 0,
	  "compare with vfio-pci, by the same function, which is bound to it in turns, or by another "
	  "one that is bound to it", 0 },
	{ "uio", OPT_UIO, NULL, 0,
	  "compare with uio_pci_generic, by the same function, which is bound to it in turns", 0 },
	{ "repeat", 'r', "N", 0, "rounds, 1 to 1000 (default: 20)", 0 },
	{ "events", 'e', "N", 0, "events per path and round, 1 to 1000000 (default: 250)", 0 },
	{ "period", OPT_PERIOD, "US", 0,
	  "period of the timer that polls a lock, microseconds (default: 100)", 0 },
	{ "max-rate", OPT_RATE, "N", 0,
	  "upper limit of the search for the largest rate; 0: no search (default: 1000000)", 0 },
	{ "max-loss", OPT_LOSS, "PERCENT", 0,
	  "loss that a run at the largest rate may have, 0 to 99 (default: 0)", 0 },
	OPTION_JSON,
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;

	switch (key) {
	case OPT_UIO:
		c->uio = true;
		break;
	case 'e':
		c->latency->events = option_number(state, "--events", arg, 1, 1000000);
		break;
	case OPT_PERIOD:
		c->latency->period_us = option_number(state, "--period", arg, RASHPA_PERIOD_MIN,
						      RASHPA_PERIOD_MAX);
		break;
	case OPT_RATE:
		c->latency->max_rate = option_number(state, "--max-rate", arg, 0, 100000000);
		break;
	case OPT_LOSS:
		c->latency->max_loss = option_number(state, "--max-loss", arg, 0, 99);
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
	.doc = "Measure the time from an event of the FPGA to the waiting program, on all "
	       "paths of this driver, vfio-pci and uio_pci_generic, in rounds that alternate all "
	       "paths. Needs root.",
};

/* --- one turn of one path --- */

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

/* Wait for events. Their number, or 0 after twice PATIENCE_MS. */
static uint64_t wait_patiently(struct path *p)
{
	unsigned int start = ticks;
	uint64_t n;

	do {
		n = p->kind->wait(p);
	} while (!n && ticks - start < 2 && going_on());
	return n;
}

/*
 * The board has credit for one stack at a time, so the doorbell that acknowledges a stack makes it
 * send the next one. Each event has one cause, and the program takes both times.
 */
static void trips(struct path *p, struct result *r, unsigned int events)
{
	uint64_t begin, cpu = 0, start, n;

	r->received += wait_patiently(p);	/* the first event needs no doorbell */
	path_again(p);
	begin = now_ns();
	for (unsigned int i = 1, counted = 0; counted < events && going_on(); i++) {
		if (!cpu && i > WARM_UP_EVENTS && now_ns() - begin >= WARM_UP_NS)
			cpu = thread_ns();
		start = now_ns();
		board_credit(p->board, i);
		n = wait_patiently(p);
		if (!n)
			break;
		if (cpu) {
			samples_add(&r->trip, now_ns() - start);
			counted++;
		}
		r->received += n;
		path_again(p);
	}
	if (cpu)
		r->cpu_ns += thread_ns() - cpu;
}

static uint64_t sent(const struct path *p)
{
	return board_counter(p->board, p->kind->mode & RFPGA_MODE_MSIX ? RFPGA_DTP_C_EVENTS :
						       RFPGA_DTP_C_STACKS);
}

/* Read the real period of a timer from the driver. */
static void ask_period(struct path *p, struct result *r)
{
	struct rashpa_source_info info = { .id = p->last.source };

	if (p->kind == &path_kinds[PATH_POLL] &&
	    !rashpa_ioctl(p->channel, RASHPA_IOC_SOURCE_INFO, &info, sizeof(info)))
		r->period_ns = info.out_period_ns;
}

/* Median of the samples from "first" on; keeps the order of samples. */
static uint64_t median_from(const struct samples *all, size_t first)
{
	struct samples some = {};
	uint64_t median;

	for (size_t i = first; i < all->count; i++)
		samples_add(&some, all->value[i]);
	samples_sort(&some);
	median = percentile(some.value, some.count, 50);
	samples_free(&some);
	return median;
}

static void turn_of(struct latency *l, unsigned int i, unsigned int round)
{
	struct path *p = &l->path[i];
	struct result *r = &l->result[i];
	const size_t first = r->trip.count;
	const struct run run = { .mode = p->kind->mode | RFPGA_MODE_LOCK, .bytes = LATENCY_BYTES };
	char why[WHY_SIZE];

	if (path_open(p, why)) {
		r->out = true;
		report_leave_out(l->report, p->kind->name, "%s", why);
		return;
	}
	ticks_start(PATIENCE_MS);
	board_start(p->board, &run);
	trips(p, r, l->events);
	r->median[round] = median_from(&r->trip, first);
	ticks_start(0);
	board_stop(p->board);
	ask_period(p, r);
	r->sent += sent(p);
	if (board_faulted(p->board, why)) {
		r->out = true;
		report_leave_out(l->report, p->kind->name, "%s", why);
	}
	path_close(p);
}

/* --- all paths --- */

/* uio_pci_generic supports INTx only, which few functions still have. */
static void want_uio(struct latency *l, bool wanted)
{
	const char *const name = path_kinds[PATH_UIO].name;
	int pin;

	if (!l->board[OURS].open)
		return;
	pin = board_interrupt_pin(&l->board[OURS]);
	if (pin < 0)
		report_leave_out(l->report, name, "the interrupt pin cannot be read");
	else if (!pin)
		report_leave_out(l->report, name,
				 "it supports INTx only, and this function has no interrupt pin");
	else if (!wanted)
		report_leave_out(l->report, name, "give --uio");
	else
		l->shares[OURS] = l->shares[UIO] = true;
}

static void want_vfio(struct latency *l, const char *vfio)
{
	const char *const name = path_kinds[PATH_VFIO].name;
	char why[WHY_SIZE];

	if (!vfio) {
		report_leave_out(l->report, name,
				 "give --vfio same, or a second function bound to vfio-pci");
	} else if (!strcmp(vfio, "same")) {
		l->shares[OURS] = l->shares[VFIO] = l->board[OURS].open;
		l->report->vfio = vfio;
	} else if (board_open_vfio(&l->board[VFIO], vfio, LATENCY_BYTES, why)) {
		report_leave_out(l->report, name, "%s", why);
	} else {
		l->report->vfio = vfio;
	}
}

static void boards_open(struct latency *l, const struct config *c)
{
	struct board *ours = &l->board[OURS];
	char why[WHY_SIZE];

	if (board_open_ours(ours, c->settings.device, LATENCY_BYTES, NULL, why)) {
		report_leave_out(l->report, c->settings.device, "%s", why);
	} else {
		l->report->device = c->settings.device;
		l->report->iommu = ours->iommu;
		memcpy(l->bdf, ours->bdf, sizeof(l->bdf));
	}
	want_vfio(l, c->settings.vfio);
	want_uio(l, c->uio);
}

static void paths_init(struct latency *l)
{
	for (unsigned int i = 0; i < PATHS; i++) {
		struct path *p = &l->path[i];
		enum owner owner = path_kinds[i].owner;

		p->kind = &path_kinds[i];
		p->board = &l->board[owner];
		p->period_us = l->period_us;
		l->result[i].out = !p->board->open && !l->shares[owner];
	}
}

static void leave_out(struct latency *l, enum owner owner, const char *why)
{
	for (unsigned int i = 0; i < PATHS; i++) {
		if (path_kinds[i].owner != owner)
			continue;
		l->result[i].out = true;
		report_leave_out(l->report, path_kinds[i].name, "%s", why);
	}
}

/* Change the driver of the function. After a failure, try to bind it to this driver again. */
static void change_driver(struct latency *l, enum owner owner)
{
	char why[WHY_SIZE];

	if (!board_to(l, owner, why))
		return;
	leave_out(l, owner, why);
	if (owner != OURS && !l->board[OURS].open && board_to(l, OURS, why))
		leave_out(l, OURS, why);
}

bool path_ready(struct latency *l, unsigned int i)
{
	struct path *p = &l->path[i];

	if (!l->result[i].out && !p->board->open && l->shares[p->kind->owner])
		change_driver(l, p->kind->owner);
	return !l->result[i].out;
}

/*
 * Path number i of this round. Paths of other drivers come last, or first in reverse order, so that
 * the function seldom changes its driver. Paths of this driver take turns at being next to VFIO.
 */
static unsigned int path_of(unsigned int round, unsigned int i)
{
	unsigned int k = turn(round, i, PATHS);

	return path_kinds[k].owner != OURS ? k : (k + round / 2) % PATH_VFIO;
}

static void measure(struct latency *l)
{
	bool ready = false;

	for (unsigned int r = 0; r < l->report->repeat && going_on(); r++) {
		for (unsigned int i = 0; i < PATHS && going_on(); i++) {
			unsigned int k = path_of(r, i);

			progress_show(&l->report->progress, "latency: round %u of %u, %s", r + 1,
				      l->report->repeat, path_kinds[k].name);
			if (path_ready(l, k))
				turn_of(l, k, r);
		}
	}
	for (unsigned int i = 0; i < PATHS && going_on(); i++) {
		progress_show(&l->report->progress, "overload: %s", path_kinds[i].name);
		if (path_kinds[i].owner == OURS && path_ready(l, i))
			measure_overload(l, i);
	}
	for (unsigned int r = 0; l->max_rate && !ready && going_on(); r++) {
		ready = true;
		for (unsigned int i = 0; i < PATHS && going_on(); i++) {
			unsigned int k = path_of(r, i);

			if (l->result[k].rate.ready)
				continue;
			progress_show(&l->report->progress, "largest rate: search %u, %s", r + 1,
				      path_kinds[k].name);
			if (path_ready(l, k)) {
				measure_rate(l, k);
				ready &= l->result[k].rate.ready;
			}
		}
	}
	/* leave the function bound to this driver, as it was found */
	if (l->shares[OURS] && !l->board[OURS].open)
		change_driver(l, OURS);
	progress_end(&l->report->progress);
}

static int result(const struct config *c)
{
	const struct settings *s = &c->settings;
	const struct latency *l = c->latency;
	bool any = false, exact = true, bad = false;

	if (settings_text(s))
		latency_print(l);
	if (s->json)
		bad |= latency_json(l);
	for (unsigned int i = 0; i < PATHS; i++) {
		any |= l->result[i].trip.count > 0;
		exact &= !l->result[i].overload.done || l->result[i].overload.exact;
	}
	if (going_on() && any && !exact)
		return fail("the driver's count of lost events is wrong");
	return measured(any, bad);
}

int cmd_latency(int argc, char **argv)
{
	struct report report = { .repeat = 20, .iommu = -1 };
	struct latency l = {
		.report = &report, .events = 250,
		.board = { BOARD_NONE, BOARD_NONE, BOARD_NONE },
		.period_us = 100, .max_rate = 1000000,
	};
	struct config c = { .settings.report = &report, .latency = &l };
	uint64_t *medians;
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &c);
	medians = calloc(PATHS * (size_t)report.repeat, sizeof(*medians));
	if (!medians)
		return fail("no memory");
	for (unsigned int i = 0; i < PATHS; i++)
		l.result[i].median = medians + i * (size_t)report.repeat;
	catch_signals();
	stay_on_cpu();
	progress_init(&report.progress, true);
	boards_open(&l, &c);
	paths_init(&l);
	measure(&l);
	for (unsigned int i = 0; i < PATHS; i++)
		samples_sort(&l.result[i].trip);
	status = result(&c);
	for (unsigned int i = 0; i < PATHS; i++) {
		samples_free(&l.result[i].trip);
		samples_free(&l.result[i].rate.found);
	}
	free(medians);
	for (unsigned int i = 0; i < OWNERS; i++)
		if (l.board[i].open)
			board_close(&l.board[i]);
	report_free(&report);
	return status;
}
