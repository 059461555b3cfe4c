/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_NETWORK_SWEEP_H
#define BENCH_NETWORK_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "network.h"

#define TRIALS_MOST	16		/* of a group */
#define SIDE_WORDS	16

/* By another program. */
enum peer { PEER_NONE, PEER_WRITE_BW, PEER_SEND_BW };

/* What is measured: a writer and a sink, or several of one of them. */
struct trial {
	const char *name;		/* NULL ends a list */
	enum peer peer;
	struct plan plan;		/* 0 is 1 */
	uint32_t threads, receives, depth, wait;	/* 0: as they are without an option */
	uint32_t writers, sinks;	/* 0 is 1 */
	const char *pages;		/* of the sink; NULL: huge ones where there are some */
	uint64_t rate;			/* bytes a second; 0: no limit */
};

/* What was found, NAN: it is not known. */
enum metric {
	METRIC_GOODPUT,			/* bytes a second that arrived */
	METRIC_SINK_CPU,		/* seconds for 10^9 bytes, of the sink's process */
	METRIC_CPU,			/* of the machine, which both ends may share */
	METRIC_EVENTS,			/* for 10^9 bytes */
	METRIC_POLLS,
	METRIC_MISSING,			/* part of the messages, percent */
	METRICS
};

struct outcome {
	double value[METRICS];
};

/* One end: how its programs are started, and what they use. */
struct side {
	char *before[SIDE_WORDS];	/* words in front of each command, as "ip netns exec a" */
	unsigned int words;
	const char *device;
};

struct sweep {
	struct report *report;
	struct side sink, writer;
	const char *address;		/* of the sink */
	uint32_t port;			/* the next one */
	double time, warm_up;
	const char *only;		/* experiments; NULL: all */
	volatile bool *stop;
	char program[512];
};

/* Once. 0, or -1 and why. */
int trial_run(struct sweep *sweep, const struct trial *trial, struct outcome *outcome, char *why);

/* --- processes --- */

#define ARGUMENTS_MOST	96

struct command {
	char *argv[ARGUMENTS_MOST + 1];
	char text[ARGUMENTS_MOST][96];
	unsigned int n;
	bool quiet;			/* what it says of errors is not shown */
};

void command_begin(struct command *command, const struct side *side, const char *program);
__attribute__((format(printf, 2, 3)))
void command_add(struct command *command, const char *format, ...);
/* out: a descriptor, or -1 for nowhere. The process, or -1 and why. */
int command_start(const struct command *command, int out, char *why);
/* Its exit status; it is ended when the time is over, or by a signal to us. */
int command_end(int pid, double seconds, const volatile bool *stop);
/* Without waiting. */
void command_kill(int pid);

/* peers.c: by perftest */
int peer_run(struct sweep *sweep, const struct trial *trial, struct outcome *outcome, char *why);

/* experiments.c: what there is to measure */
struct group {
	const char *experiment;		/* of the man page */
	const struct trial *trial;	/* take turns; the first one is compared with the others */
};

extern const struct group experiments[];
extern const unsigned int n_experiments;

#endif /* BENCH_NETWORK_SWEEP_H */
