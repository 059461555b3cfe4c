/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* rashpa-builder: declarations that its commands share. */
#ifndef BUILDER_H
#define BUILDER_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/accept.h"
#include "common/geometry.h"
#include "builder/model.h"
#include "fabric/fabric.h"

#define TEXT_BYTES	4096u	/* maximum size of the result of a rank; fits in a buffer */

#define BUILD_QUEUE	2048u	/* requests of a queue in the command build */

struct options {
	unsigned int set;	/* IN() of the command, see main.c */
	const char *command;
	struct rashpa_fabric_options fabric;
	const char *gpu;	/* messages are in its memory; NULL: in the host's */
	const char *buffer;	/* name of buffers, before the rank; NULL: ordinary memory */
	bool json;
	double timeout;		/* seconds without progress */
	double gather;		/* seconds for processes to come; 0: same as timeout */
	/* traffic */
	uint32_t size, jitter, buffers;
	bool one_buffer, verify;
	double slow_us;		/* sleep of the last rank after each message */
	uint64_t messages;	/* number for each pair; 0: limited by seconds only */
	double seconds, interval;
	bool one_size;		/* size was given */
	uint32_t rounds;
	const char *way;	/* burst: the only variant to measure; NULL: all */
	/* events */
	uint32_t readouts;	/* 0: half of the processes */
	bool folded, hold;
	uint64_t events;
	double rate;		/* events a second; 0: no limit */
	uint32_t block, credit, pool, sources, fragment;
	struct accept accept;		/* with from */
	const char *from, *to, *files;	/* from, to: names of buffers, before the number */
	struct geometry geometry;	/* fragment that is an image; 0 x 0: no images */
	/* model */
	uint32_t builders;
	struct model_fabric model;
	const char *fault;	/* missing, duplicate, late, corrupt: at source 0 of a readout */
	uint32_t fault_readout;
	uint64_t fault_event;
};

/* Allocate memory for pools of this many bytes. 0, or an exit code after a message. */
int make_arena(struct rashpa_fabric *fabric, const struct options *options, uint64_t bytes,
	       struct rashpa_arena **arena);
/* Print the sentence of the library, with the rank. EXIT_FAILED or EXIT_TIMEOUT. */
int fail_fabric(const struct rashpa_fabric *fabric, int error, const char *what);

/* After connecting: warn if messages go from one NUMA node to another. */
void warn_nodes(const struct rashpa_fabric *fabric);

int traffic(struct rashpa_fabric *fabric, const struct options *options, const volatile bool *stop);
int build_events(struct rashpa_fabric *fabric, const struct options *options, const volatile bool *stop);
int model(const struct options *options);
#ifdef BUILDER_NO_MPI
static inline int burst(const struct options *options, const volatile bool *stop)
{
	(void)options;
	(void)stop;
	return -1;	/* refused before */
}

static inline bool burst_way(const char *name)
{
	return name;
}
#else
/* Does burst have a variant with this name? */
bool burst_way(const char *name);
int burst(const struct options *options, const volatile bool *stop);
#endif

/* Rank 0: print the results of all ranks. 0 or an exit code. */
int report_traffic(const struct options *options, struct json_object *ranks);

#endif /* BUILDER_H */
