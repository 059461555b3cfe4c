/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_NETWORK_SWEEP_H
#define BENCH_NETWORK_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/network/network.h"

#define TRIALS_MOST	16		/* maximum number of trials in a group */
#define SIDE_WORDS	16

/* Programs to compare with. */
enum peer { PEER_NONE, PEER_WRITE_BW, PEER_SEND_BW };

/* A measurement: a writer and a sink, or several of one of them. */
struct trial {
	const char *name;		/* NULL ends a list */
	enum peer peer;
	struct plan plan;		/* 0 stands for 1 */
	uint32_t threads, receives, depth, wait;	/* 0: default of the option */
	uint32_t writers, sinks;	/* 0 stands for 1 */
	const char *pages;		/* pages of the sink; NULL: thp */
	uint64_t rate;			/* bytes a second; 0: no limit */
};

/* Results; NAN: not known. */
enum metric {
	METRIC_GOODPUT,			/* received bytes a second */
	METRIC_SINK_CPU,		/* CPU time of the sink process, seconds for 10^9 bytes */
	METRIC_CPU,			/* CPU time of the machine, which both ends may share */
	METRIC_EVENTS,			/* events for 10^9 bytes */
	METRIC_POLLS,			/* polls for 10^9 bytes */
	METRIC_MISSING,			/* missing messages, percent */
	METRICS
};

struct outcome {
	double value[METRICS];
};

/* One end: how to start programs there, and their device. */
struct side {
	char *before[SIDE_WORDS];	/* prefix of each command, as "ip netns exec a" */
	unsigned int words;
	const char *device;
};

struct sweep {
	struct report *report;
	struct side sink, writer;
	const char *address;		/* address of the sink */
	uint32_t port;			/* next port */
	double time, warm_up;
	const char *only;		/* experiments; NULL: all */
	volatile bool *stop;
	char program[512];
};

/* Run a trial once. 0, or -1 and why. */
int trial_run(struct sweep *sweep, const struct trial *trial, struct outcome *outcome, char *why);

/* --- processes --- */

#define ARGUMENTS_MOST	96

struct command {
	char *argv[ARGUMENTS_MOST + 1];
	char text[ARGUMENTS_MOST][96];
	unsigned int n;
	bool quiet;			/* hide standard error */
};

void command_begin(struct command *command, const struct side *side, const char *program);
__attribute__((format(printf, 2, 3)))
void command_add(struct command *command, const char *format, ...);
/* out: a descriptor for standard output, or -1 to drop it. The process id, or -1 and why. */
int command_start(const struct command *command, int out, char *why);
/* Wait for a process, and return its exit status. Kills it after the time limit or a signal. */
int command_end(int pid, double seconds, const volatile bool *stop);
/* Kill a process without waiting for its end. */
void command_kill(int pid);

/* peers.c: run a trial of perftest */
int peer_run(struct sweep *sweep, const struct trial *trial, struct outcome *outcome, char *why);

/* experiments.c: list of measurements */
struct group {
	const char *experiment;		/* name in the man page */
	const struct trial *trial;	/* trials in turn; the first is compared with the others */
};

extern const struct group experiments[];
extern const unsigned int n_experiments;

#endif /* BENCH_NETWORK_SWEEP_H */
