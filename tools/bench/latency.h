/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* rashpa-bench latency: what was measured of each path. */
#ifndef LATENCY_H
#define LATENCY_H

#include "bench.h"
#include "event.h"

/* A free-running function and a consumer that is too slow: is what was lost counted? */
struct overload {
	bool done;
	uint64_t written;	/* stacks, by the FPGA */
	uint64_t sent;		/* interrupts that arrived: the driver's sequence */
	uint64_t interrupts;	/* the same, as the function's own counter has it */
	uint64_t received;	/* records read */
	uint64_t lost;		/* as the driver counts them */
	bool exact;		/* lost = sent - received, and both counters agree */
};

/* Events a second, of which a run can be that loses no more than it may. */
struct rate {
	struct samples found;	/* by each search, sorted */
	bool ready;		/* needs no further one */
	bool board;		/* as fast as the board sends */
	bool agreed;		/* the best three are within 10 % */
	uint64_t runs, lossy;	/* at all rates that were tried, and those that lost something */
	uint64_t lost;		/* events, in these */
	uint64_t merged;	/* of these: interrupts that were one when a driver saw them */
};

struct result {
	bool out;		/* cannot be measured: the report says why */
	struct samples trip;	/* doorbell until the program has the event, ns */
	uint64_t *median;	/* of the same, of each round; 0: not measured */
	uint64_t cpu_ns;	/* of the waiting thread, for all of trip */
	uint64_t sent, received;
	struct rate rate;
	uint64_t period_ns;	/* of a timer, as the driver kept it; 0: not known */
	struct overload overload;
};

struct latency {
	struct report *report;
	struct board board[OWNERS];
	bool shares[OWNERS];	/* it is one function, which only one of these has */
	char bdf[BDF_SIZE];
	char node[32];		/* of ours: fpgaN */
	char domain[16];	/* of its IOMMU group as it was found; empty: no IOMMU */
	struct path path[PATHS];
	struct result result[PATHS];
	unsigned int events;	/* of a round */
	unsigned int period_us;
	uint64_t max_rate;
	unsigned int max_loss;	/* of a run that finds it, percent */
};

/* Bytes of a stack: so few that the payload costs nothing */
#define LATENCY_BYTES	64

/* --- swap.c: 0, or -1 with the reason in why[WHY_SIZE] --- */
int board_to(struct latency *l, enum owner owner, char *why);

/* --- latency.c --- */

/* The board of this path is there; else the path is out, and the report says why. */
bool path_ready(struct latency *l, unsigned int i);

/* --- load.c: how many, and too many --- */
/* One more search, until it is ready. */
void measure_rate(struct latency *l, unsigned int i);
void measure_overload(struct latency *l, unsigned int i);

/*
 * Median of all rounds' own ratios: what was measured within a second is compared, and a
 * machine that is slow for a while is so for both. NAN if there is no peer.
 */
double latency_ratio(const struct latency *l, unsigned int i);

/* --- latency-out.c --- */
void latency_print(const struct latency *l);
int latency_json(const struct latency *l);
int latency_svg(const struct latency *l, const char *path);

#endif /* LATENCY_H */
