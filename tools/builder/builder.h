/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* rashpa-builder: what its commands share. */
#ifndef BUILDER_H
#define BUILDER_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "accept.h"
#include "geometry.h"
#include "model.h"
#include "rashpa-builder.h"

#define TEXT_BYTES	4096u	/* of what a rank says of itself in the end; a buffer has room */

#define BUILD_QUEUE	2048u	/* requests of a queue, of build */

struct options {
	const char *command;
	struct rashpa_fabric_options fabric;
	const char *buffer;	/* named ones, the rank behind; NULL: ordinary memory */
	bool json;
	double timeout;		/* seconds without progress */
	double gather;		/* seconds for processes to come; 0: as timeout */
	/* traffic */
	uint32_t size, jitter, buffers;
	bool one_buffer, verify;
	double slow_us;		/* that the last rank sleeps after each message */
	uint64_t messages;	/* of each pair, 0: as long as seconds last */
	double seconds, interval;
	bool one_size;		/* size was given */
	uint32_t rounds;
	const char *way;	/* of burst, NULL: all */
	/* events */
	uint32_t readouts;	/* 0: half of the processes */
	bool folded, hold;
	uint64_t events;
	double rate;		/* events a second, 0: as fast as they go */
	uint32_t block, credit, pool, sources, fragment;
	struct accept accept;		/* with from */
	const char *from, *to, *files;	/* streams: named buffers, behind which a number stands */
	struct geometry geometry;	/* of an image that is a fragment; 0 x 0: it is none */
	/* of a network that is not there */
	const char *of;		/* nton, nxn, build */
	uint32_t builders;
	struct model_fabric model;
	const char *fault;	/* missing, duplicate, late, corrupt: of source 0 of a readout */
	uint32_t fault_readout;
	uint64_t fault_event;
};

/* Memory for so many bytes of pools. 0, or an exit code, after a message. */
int make_arena(struct rashpa_fabric *fabric, const struct options *options, uint64_t bytes,
	       struct rashpa_arena **arena);
/* The sentence of the library, with the rank. EXIT_FAILED, or EXIT_TIMEOUT. */
int fail_fabric(const struct rashpa_fabric *fabric, int error, const char *what);

/* After connecting: warn where messages go from one NUMA node to another. */
void warn_nodes(const struct rashpa_fabric *fabric);

int traffic(struct rashpa_fabric *fabric, const struct options *options, const volatile bool *stop);
int build(struct rashpa_fabric *fabric, const struct options *options, const volatile bool *stop);
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
/* Is there such a way? */
bool burst_way(const char *name);
int burst(const struct options *options, const volatile bool *stop);
#endif

/* What each rank says of itself, for rank 0 to print: 0 or an exit code. */
int report_traffic(const struct options *options, struct json_object *ranks);

#endif /* BUILDER_H */
