/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* rashpa-bench latency: results of each path. */
#ifndef LATENCY_H
#define LATENCY_H

#include "bench/bench.h"
#include "bench/event.h"

/* A free-running function and a slow consumer: does the driver count all lost events? */
struct overload {
	bool done;
	uint64_t written;	/* stacks that the FPGA wrote */
	uint64_t sent;		/* interrupts that arrived, from the driver's sequence */
	uint64_t interrupts;	/* the same, from the interrupt counter of the function */
	uint64_t received;	/* records read */
	uint64_t lost;		/* events lost, from the driver's counter */
	bool exact;		/* lost = sent - received, and both counters agree */
};

/* The largest rate, in events a second, at which a run loses no more than allowed. */
struct rate {
	struct samples found;	/* results of searches, sorted */
	bool ready;		/* no further search needed */
	bool board;		/* the board is the limit */
	bool agreed;		/* the best three are within 10 % */
	uint64_t runs, lossy;	/* runs at all rates, runs that lost events */
	uint64_t lost;		/* lost events in these */
	uint64_t merged;	/* lost events whose interrupts merged before the driver saw them */
};

struct result {
	bool out;		/* cannot be measured: the report has the reason */
	struct samples trip;	/* time from the doorbell to the event in the program, ns */
	uint64_t *median;	/* by round: median of trip, ns; 0: not measured */
	uint64_t cpu_ns;	/* CPU time of the waiting thread, for all of trip */
	uint64_t sent, received;
	struct rate rate;
	uint64_t period_ns;	/* real period of the timer; 0: not known */
	struct overload overload;
};

struct latency {
	struct report *report;
	struct board board[OWNERS];
	bool shares[OWNERS];	/* drivers that take turns with the same function */
	char bdf[BDF_SIZE];
	char node[32];		/* this driver: fpgaN */
	char domain[16];	/* initial type of its IOMMU group; empty: no IOMMU */
	struct path path[PATHS];
	struct result result[PATHS];
	unsigned int events;	/* events per round */
	unsigned int period_us;
	uint64_t max_rate;
	unsigned int max_loss;	/* loss that a run may have, percent */
};

/* stack size in bytes: small, so that the time of the payload is negligible */
#define LATENCY_BYTES	64

/* --- swap.c: 0, or -1 with the reason in why[WHY_SIZE] --- */
int board_to(struct latency *l, enum owner owner, char *why);

/* --- latency.c --- */

/* Make the board of this path ready. false: the path is out, and the report has the reason. */
bool path_ready(struct latency *l, unsigned int i);

/* --- load.c: largest rate, overload --- */
/* Make one more search; sets rate.ready after the last one. */
void measure_rate(struct latency *l, unsigned int i);
void measure_overload(struct latency *l, unsigned int i);

/* --- latency-out.c --- */
void latency_print(const struct latency *l);
int latency_json(const struct latency *l);

#endif /* LATENCY_H */
