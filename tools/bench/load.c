// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events as fast as the FPGA is told to send them, whether anybody keeps up or not. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "latency.h"
#include "rashpa.h"

#define NS		1000000000.0

/* --- the largest rate --- */

#define RATE_DEPTH	16	/* records that may wait */
#define RATE_FIRST	1000
#define RATE_TRIES	10	/* one without loss suffices: others use the machine, too */
#define RATE_STEPS	4	/* between a good rate and its double */
#define RATE_SEARCHES	5	/* at most: a gap of the machine ends one early */
#define RATE_ROUNDS	8	/* one search for so many rounds */
#define TICK_MS		20

static uint64_t rate_events(double rate)
{
	/* 50 ms, and several times what a queue can hide */
	return rate / 20 > 4 * RATE_DEPTH ? rate / 20 : 4 * RATE_DEPTH;
}

/* Until all are had, or the board is ready and nothing comes any more. */
static uint64_t consume(struct path *p, uint64_t events)
{
	unsigned int quiet = 0;
	uint64_t n, all = 0;

	while (all < events && quiet < 3 && going_on()) {
		n = p->kind->wait(p);
		all += n;
		if (n)
			path_again(p);
		quiet = n || board_stacks(p->board) < events ? 0 : quiet + 1;
	}
	return all;
}

/* One run at this rate: the rate that it really had, 0 if events were lost, < 0: failed. */
static double rate_once(struct path *p, double rate, char *why)
{
	const struct run run = {
		.mode = p->kind->mode | RFPGA_MODE_LOCK | RFPGA_MODE_FREERUN,
		.bytes = LATENCY_BYTES, .stacks = rate_events(rate), .period = NS / rate,
	};
	uint64_t received, span;

	if (path_open(p, why))
		return -1;
	ticks_start(TICK_MS);
	board_start(p->board, &run);
	received = consume(p, run.stacks);
	ticks_start(0);
	board_stop(p->board);
	path_close(p);
	if (board_faulted(p->board, why))
		return -1;
	span = board_counter(p->board, RFPGA_DTP_C_STOP) -
	       board_counter(p->board, RFPGA_DTP_C_START);
	return received == run.stacks && span ? run.stacks * NS / (span * RFPGA_TICK_NS) : 0;
}

static double rate_tries(struct path *p, double rate, char *why)
{
	double got = 0;

	for (unsigned int i = 0; i < RATE_TRIES && !got && going_on(); i++)
		got = rate_once(p, rate, why);
	return got;
}

/* The last good rate of a doubling series, then halve the gap to the first bad one. */
static double rate_search(struct path *p, double most, char *why)
{
	double rate = RATE_FIRST < most ? RATE_FIRST : most, bad = 0, best = 0, good = 0, got;

	for (unsigned int steps = 0; steps < RATE_STEPS && going_on();) {
		got = rate_tries(p, rate, why);
		if (got < 0)
			return got;
		if (got > best)
			best = got;
		/* a board that cannot send so fast was not asked for more */
		if (got && got < rate * 0.9)
			break;
		if (got)
			good = rate;
		else
			bad = rate;
		if (good >= most)
			break;
		if (good && bad)
			steps++;
		if (!good && rate < 10)
			break;
		rate = !bad ? 2 * rate : !good ? rate / 2 : (good + bad) / 2;
		if (rate > most)
			rate = most;
	}
	return best;
}

void measure_rate(struct latency *l, unsigned int i)
{
	struct path *p = &l->path[i];
	char why[WHY_SIZE];
	unsigned int want = l->report->repeat / RATE_ROUNDS, n;
	struct samples all = {};
	double rate = 0;

	want = want < 1 ? 1 : want > RATE_SEARCHES ? RATE_SEARCHES : want;
	p->depth = RATE_DEPTH;
	for (n = 0; n < want && rate >= 0 && going_on(); n++) {
		rate = rate_search(p, l->max_rate, why);
		if (rate >= 0)
			samples_add(&all, rate);
	}
	p->depth = 0;
	if (rate < 0) {
		report_leave_out(l->report, p->kind->name, "largest rate: %s", why);
	} else if (all.count) {
		samples_sort(&all);
		l->result[i].max_rate = percentile(all.value, all.count, 50);
		l->result[i].least_rate = all.value[0];
		l->result[i].most_rate = all.value[all.count - 1];
	}
	samples_free(&all);
}

/* --- too many --- */

#define OVERLOAD_DEPTH	16
#define OVERLOAD_STACKS	10000
#define OVERLOAD_RATE	20000.0
#define OVERLOAD_LOOKS	8		/* times that the consumer looks meanwhile */
#define OVERLOAD_QUIET	50		/* ms without a record: all are here */
#define OVERLOAD_MARK	5000		/* ms for a single one, however slow the machine is */

/* All records that are there, and that come within a moment. */
static uint64_t drain(struct path *p, int ms)
{
	struct pollfd ready = { .fd = p->channel, .events = POLLIN };
	uint64_t all = 0;

	while (poll(&ready, 1, ms) > 0 && ready.revents & POLLIN && going_on())
		all += p->kind->wait(p);
	return all;
}

/* One event when all is quiet: its record has the driver's counts up to here. */
static uint64_t mark(struct path *p)
{
	const uint64_t sequence = p->last.sequence;
	const uint64_t end = now_ns() + OVERLOAD_MARK * 1000000ULL;
	const struct run run = {
		.mode = p->kind->mode | RFPGA_MODE_LOCK | RFPGA_MODE_FREERUN,
		.bytes = LATENCY_BYTES, .stacks = 1,
	};
	uint64_t all = 0;

	board_start(p->board, &run);
	while (p->last.sequence == sequence && now_ns() < end && going_on())
		all += drain(p, OVERLOAD_QUIET);
	return all;
}

/*
 * The consumer looks a few times only, so that its queue is full each time, however few interrupts
 * this machine takes in a second.
 */
static uint64_t flood(struct path *p)
{
	const struct run run = {
		.mode = p->kind->mode | RFPGA_MODE_LOCK | RFPGA_MODE_FREERUN,
		.bytes = LATENCY_BYTES, .stacks = OVERLOAD_STACKS, .period = NS / OVERLOAD_RATE,
	};
	const struct timespec pause = { .tv_nsec = 2000000 };
	uint64_t all = 0, written, next = 0;

	board_start(p->board, &run);
	while ((written = board_stacks(p->board)) < run.stacks && going_on()) {
		nanosleep(&pause, NULL);
		if (written < next)
			continue;
		next += OVERLOAD_STACKS / OVERLOAD_LOOKS;
		all += drain(p, 0);
	}
	return all + drain(p, OVERLOAD_QUIET);
}

static uint64_t interrupts(const struct path *p)
{
	struct rashpa_device_info info;

	return rashpa_device_status(p->board->fpga.device, &info) ? 0 : info.out_interrupts;
}

/* A path without records (an eventfd, a lock) has no queue that could overflow. */
static bool has_records(const struct path *p)
{
	return p->kind == &path_kinds[PATH_READ] || p->kind == &path_kinds[PATH_RING];
}

void measure_overload(struct latency *l, unsigned int i)
{
	struct overload *o = &l->result[i].overload;
	struct path *p = &l->path[i];
	uint64_t first, before;
	char why[WHY_SIZE];

	if (!has_records(p))
		return;
	p->depth = OVERLOAD_DEPTH;
	p->last = (struct rashpa_event){};
	if (path_open(p, why)) {
		report_leave_out(l->report, p->kind->name, "overload: %s", why);
		return;
	}
	before = interrupts(p);
	ticks_start(TICK_MS);
	o->received = mark(p);
	first = p->last.sequence;
	o->received += flood(p);
	o->written = 2 + board_counter(p->board, RFPGA_DTP_C_STACKS);
	o->received += mark(p);
	ticks_start(0);
	o->sent = p->last.sequence - first + 1;
	o->lost = p->last.lost;
	o->interrupts = interrupts(p) - before;
	o->exact = o->lost == o->sent - o->received && o->sent == o->interrupts;
	o->done = going_on();
	board_stop(p->board);
	path_close(p);
	p->depth = 0;
}
