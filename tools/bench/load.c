// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events at a fixed rate of the FPGA, which may be too high for the consumer. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "bench/latency.h"
#include <rashpa.h>

#define NS		1000000000.0

/* --- the largest rate --- */

#define RATE_DEPTH	16	/* depth of the queue of records */
#define RATE_FIRST	1000	/* first rate, events a second */
#define RATE_LEAST	10	/* lowest rate, events a second */
#define RATE_RARE	5	/* one good run in RATE_RARE suffices, as the machine is shared */
#define RATE_STEP	1.03	/* factor between rates, after doubling and halving */
#define RATE_TRIES	50	/* runs with these steps */
#define RATE_LIMIT	5	/* weight of a run at the maximum rate */
#define RATE_ROUNDS	8	/* rounds for each search */
#define RATE_SEARCHES	5	/* searches, if the best ones agree */
#define RATE_AGREE	3	/* number of best searches that must agree */
#define RATE_ENDLESS	12	/* searches, if the best ones never agree */
#define RATE_NEAR	1.1	/* factor within which searches agree */
#define TICK_MS		20

/* One run at a rate. */
struct attempt {
	double rate;		/* real rate */
	uint64_t lost;
	uint64_t merged;	/* lost events whose interrupts merged before the driver saw them */
};

static uint64_t rate_events(double rate)
{
	/* 50 ms of events, but several times the depth of the queue */
	return rate / 20 > 4 * RATE_DEPTH ? rate / 20 : 4 * RATE_DEPTH;
}

static uint64_t interrupts(const struct path *p)
{
	struct rashpa_device_info info;

	return rashpa_device_get_info(p->board->device, &info) ? 0 : info.out_interrupts;
}

/* Takes events until all have come, or the board is done and no more come. */
static uint64_t consume(struct path *p, uint64_t events)
{
	unsigned int quiet = 0;
	uint64_t n, all = 0;

	while (all < events && quiet < 2 && going_on()) {
		n = p->kind->wait(p);
		all += n;
		if (n)
			path_again(p);
		quiet = n || board_stacks(p->board) < events ? 0 : quiet + 1;
	}
	return all;
}

/* Other drivers count in an eventfd or in the handler, so only merged interrupts are lost. */
static uint64_t merged(const struct path *p, const struct attempt *a, uint64_t sent, uint64_t seen)
{
	uint64_t missing;

	if (!(p->kind->mode & RFPGA_MODE_MSIX))
		return 0;
	if (p->kind->owner != OURS)
		return a->lost;
	/* a one-shot source has fewer interrupts than events, and loses none */
	missing = seen < sent ? sent - seen : 0;
	return missing < a->lost ? missing : a->lost;
}

static int rate_once(struct path *p, double rate, struct attempt *a, char *why)
{
	const struct run run = {
		.mode = p->kind->mode | RFPGA_MODE_LOCK | RFPGA_MODE_FREERUN,
		.bytes = LATENCY_BYTES, .stacks = rate_events(rate), .period = NS / rate,
	};
	uint64_t before, span;

	if (path_open(p, why))
		return -1;
	before = interrupts(p);
	ticks_start(TICK_MS);
	board_start(p->board, &run);
	a->lost = run.stacks - consume(p, run.stacks);
	a->merged = merged(p, a, run.stacks, interrupts(p) - before);
	ticks_start(0);
	board_stop(p->board);
	path_close(p);
	if (board_faulted(p->board, why))
		return -1;
	span = board_counter(p->board, RFPGA_DTP_C_STOP) -
	       board_counter(p->board, RFPGA_DTP_C_START);
	a->rate = span ? run.stacks * NS / (span * RFPGA_TICK_NS) : rate;
	return 0;
}

/*
 * Finds the rate at which one run in RATE_RARE loses no more than allowed. First doubles and halves
 * the rate. Then goes up after a good run, RATE_RARE - 1 times as far as down after a bad one. The
 * result is the mean rate of these runs. At the maximum rate of the machine or the board, the rate
 * stays, and fewer runs are needed. Later searches start at the best result so far.
 */
static int rate_search(struct path *p, const struct latency *l, struct rate *r, char *why)
{
	const double most = l->max_rate, up = pow(RATE_STEP, RATE_RARE - 1);
	double rate = RATE_FIRST < most ? RATE_FIRST : most, sum = 0;
	bool good, limit, any = false, fine = r->found.count;
	unsigned int n = 0, bad = 0, board = 0, weight;
	struct attempt a = {};

	if (fine)
		rate = r->found.value[r->found.count - 1];
	while (n < RATE_TRIES && going_on()) {
		if (rate_once(p, rate, &a, why))
			return -1;
		r->runs++;
		r->lossy += !!a.lost;
		r->lost += a.lost;
		r->merged += a.merged;
		good = a.lost * 100 <= rate_events(rate) * l->max_loss;
		limit = good && (rate >= most || a.rate < rate / 2);
		any |= good;
		bad = good ? 0 : bad + 1;
		fine |= limit || rate <= RATE_LEAST;
		if (fine) {
			weight = limit ? RATE_LIMIT : 1;
			n += weight;
			sum += weight * a.rate;
			if (limit)
				board += rate < most ? weight : 0;
			else
				rate = good ? rate * up : rate / RATE_STEP;
		} else if (good) {
			rate *= 2;
		} else if (bad >= RATE_RARE) {
			rate /= any ? sqrt(2) : 2;
			fine = any;
			bad = 0;
		}
		rate = fmin(fmax(rate, RATE_LEAST), most);
	}
	if (n)
		samples_add(&r->found, sum / n);
	/* not after a single run, as the software FPGA may have had no processor in it */
	r->board = 2 * board > n;
	return 0;
}

/*
 * Other work on the machine lowers rates, and nothing raises them. So the best searches measure the
 * path, if they agree.
 */
static bool rate_ready(struct rate *r, unsigned int rounds)
{
	const size_t want = rounds / RATE_ROUNDS, n = r->found.count;

	samples_sort(&r->found);
	r->agreed = n >= RATE_AGREE &&
		    r->found.value[n - 1] <= r->found.value[n - RATE_AGREE] * RATE_NEAR;
	if (want < RATE_SEARCHES)
		return n >= want;
	return n >= RATE_ENDLESS || (n >= RATE_SEARCHES && r->agreed);
}

void measure_rate(struct latency *l, unsigned int i)
{
	struct rate *r = &l->result[i].rate;
	struct path *p = &l->path[i];
	char why[WHY_SIZE];

	p->depth = RATE_DEPTH;
	if (rate_search(p, l, r, why)) {
		report_leave_out(l->report, p->kind->name, "largest rate: %s", why);
		l->result[i].out = true;
	}
	p->depth = 0;
	r->ready = rate_ready(r, l->report->repeat) || l->result[i].out;
}

/* --- overload --- */

#define OVERLOAD_DEPTH	16
#define OVERLOAD_STACKS	10000
#define OVERLOAD_RATE	20000.0
#define OVERLOAD_LOOKS	8		/* number of times that the consumer reads */
#define OVERLOAD_QUIET	50		/* after this time without a record, all have come, ms */
#define OVERLOAD_MARK	5000		/* limit for a single record on a slow machine, ms */

/* Takes all records that come with no gap longer than ms. */
static uint64_t drain(struct path *p, int ms)
{
	struct pollfd ready = { .fd = p->channel, .events = POLLIN };
	uint64_t all = 0;

	while (poll(&ready, 1, ms) > 0 && ready.revents & POLLIN && going_on())
		all += p->kind->wait(p);
	return all;
}

/* Causes one event: its record has the current counters of the driver. */
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
 * The consumer reads a few times only, so its queue is full each time, even if the machine handles
 * few interrupts a second.
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

/* Paths without records (eventfd, lock) have no queue that could overflow. */
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
