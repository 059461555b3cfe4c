// SPDX-License-Identifier: LGPL-2.1-or-later
/* Output of results by path: table, JSON and picture. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/json-out.h"
#include "bench/latency.h"

static uint64_t nth(const struct result *r, double p)
{
	return percentile(r->trip.value, r->trip.count, p);
}

static double cpu_ns(const struct result *r)
{
	return (double)r->cpu_ns / r->trip.count;
}

/* The n-th best search, from 0; the worst one if there are fewer. */
static uint64_t rate(const struct result *r, size_t n)
{
	const struct samples *all = &r->rate.found;

	if (!all->count)
		return 0;
	return n < all->count ? all->value[all->count - 1 - n] : all->value[0];
}

static uint64_t lost(const struct result *r)
{
	return r->sent - r->received;
}

/*
 * Median of the ratios of all rounds. A ratio compares measurements of the same second, so periods
 * of a slow machine affect both. NAN if there is no peer.
 */
static double ratio_of(const struct latency *l, unsigned int i)
{
	const struct result *ours = &l->result[i], *theirs = &l->result[PATH_VFIO];
	struct samples ratios = {};
	double ratio = NAN;

	for (unsigned int r = 0; i != PATH_VFIO && r < l->report->repeat; r++)
		if (ours->median[r] && theirs->median[r])
			samples_add(&ratios, ours->median[r] * 1000000 / theirs->median[r]);
	samples_sort(&ratios);
	if (ratios.count)
		ratio = percentile(ratios.value, ratios.count, 50) / 1e6;
	samples_free(&ratios);
	return ratio;
}

/* --- text --- */

static void print_row(const struct latency *l, unsigned int i)
{
	const struct result *r = &l->result[i];
	double x = ratio_of(l, i);

	printf("%-21s %9.1f %9.1f %9.1f %9.1f", path_kinds[i].name, nth(r, 50) / 1e3,
	       nth(r, 99) / 1e3, nth(r, 99.9) / 1e3, cpu_ns(r) / 1e3);
	printf(" %8" PRIu64 " %8" PRIu64 " %5" PRIu64, r->sent, r->received, lost(r));
	if (isnan(x))
		printf(" %7s\n", "-");
	else
		printf(" %7.3f\n", x);
}

static const char *rate_note(const struct rate *r)
{
	if (r->board)
		return "  as fast as the board sends";
	return r->agreed || r->found.count < 3 ? "" : "  the best three differ by more than 10 %";
}

static void print_rates(const struct latency *l)
{
	bool title = false;

	for (unsigned int i = 0; i < PATHS; i++) {
		const struct result *r = &l->result[i];

		if (!r->rate.found.count)
			continue;
		if (!title)
			printf("\nlargest rate: one run of five loses at most %u %% of its events\n"
			       "%-21s %9s %9s %9s %9s %8s %8s %7s %7s\n", l->max_loss, "path",
			       "rate/s", "best", "third", "searches", "runs", "lossy", "lost",
			       "merged");
		title = true;
		printf("%-21s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9zu %8" PRIu64 " %8" PRIu64
		       " %7" PRIu64 " %7" PRIu64 "%s\n", path_kinds[i].name, rate(r, 1), rate(r, 0),
		       rate(r, 2), r->rate.found.count, r->rate.runs, r->rate.lossy, r->rate.lost,
		       r->rate.merged, rate_note(&r->rate));
	}
}

static void print_overload(const struct latency *l)
{
	bool title = false;

	for (unsigned int i = 0; i < PATHS; i++) {
		const struct overload *o = &l->result[i].overload;

		if (!o->done)
			continue;
		if (!title)
			printf("\noverload: the consumer is too slow, and its queue is full\n"
			       "%-21s %9s %10s %9s %9s  %s\n", "path", "stacks", "interrupts",
			       "received", "lost", "lost = interrupts - received");
		title = true;
		printf("%-21s %9" PRIu64 " %10" PRIu64 " %9" PRIu64 " %9" PRIu64 "  %s\n",
		       path_kinds[i].name, o->written, o->sent, o->received, o->lost,
		       o->exact ? "yes" : "NO");
	}
}

void latency_print(const struct latency *l)
{
	printf("time from the doorbell that makes the FPGA send, to the event in the program\n"
	       "%-21s %9s %9s %9s %9s %8s %8s %5s %7s\n", "path", "p50 us", "p99 us",
	       "p99.9 us", "CPU us", "sent", "received", "lost", "ratio");
	for (unsigned int i = 0; i < PATHS; i++)
		if (l->result[i].trip.count)
			print_row(l, i);
	if (l->result[PATH_POLL].period_ns)
		printf("lock, timer: requested period %u us, real period %.1f us\n",
		       l->period_us, l->result[PATH_POLL].period_ns / 1e3);
	print_rates(l);
	print_overload(l);
	report_print_left_out(l->report);
}

/* --- JSON --- */

static void put_positive(struct json_object *to, const char *key, double value)
{
	if (value > 0)
		put_real(to, key, value);
	else
		json_object_object_add(to, key, NULL);
}

static struct json_object *overload_json(const struct overload *o)
{
	struct json_object *e = json_object_new_object();

	put_u64(e, "stacks", o->written);
	put_u64(e, "sent", o->sent);
	put_u64(e, "received", o->received);
	put_u64(e, "events_lost", o->lost);
	put_u64(e, "interrupts", o->interrupts);
	put_bool(e, "exact", o->exact);
	return e;
}

static struct json_object *row_json(const struct latency *l, unsigned int i)
{
	const struct result *r = &l->result[i];
	struct json_object *e = json_object_new_object();

	put_text(e, "path", path_kinds[i].name);
	put_u64(e, "p50_ns", nth(r, 50));
	put_u64(e, "p99_ns", nth(r, 99));
	put_u64(e, "p999_ns", nth(r, 99.9));
	put_real(e, "cpu_ns_per_event", cpu_ns(r));
	put_positive(e, "max_rate_hz", rate(r, 1));
	put_positive(e, "max_rate_best_hz", rate(r, 0));
	put_positive(e, "max_rate_third_hz", rate(r, 2));
	put_bool(e, "rate_agreed", r->rate.agreed);
	put_bool(e, "rate_of_board", r->rate.board);
	put_u64(e, "rate_searches", r->rate.found.count);
	put_u64(e, "rate_runs", r->rate.runs);
	put_u64(e, "rate_runs_with_loss", r->rate.lossy);
	put_u64(e, "rate_events_lost", r->rate.lost);
	put_u64(e, "rate_events_merged", r->rate.merged);
	put_u64(e, "sent", r->sent);
	put_u64(e, "received", r->received);
	put_u64(e, "events_lost", lost(r));
	put_positive(e, "ratio", ratio_of(l, i));
	if (r->period_ns)
		put_u64(e, "period_ns", r->period_ns);
	json_object_object_add(e, "overload",
			       r->overload.done ? overload_json(&r->overload) : NULL);
	return e;
}

int latency_json(const struct latency *l)
{
	struct json_object *o = report_json_head(l->report, "latency");
	struct json_object *rows = json_object_new_array();

	put_u64(o, "events", l->events);
	put_u64(o, "max_loss_percent", l->max_loss);
	for (unsigned int i = 0; i < PATHS; i++)
		if (l->result[i].trip.count)
			json_object_array_add(rows, row_json(l, i));
	json_object_object_add(o, "rows", rows);
	report_json_left_out(l->report, o);
	return json_finish(o);
}
