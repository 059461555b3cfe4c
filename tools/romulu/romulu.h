/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ROMULU_H
#define ROMULU_H

#include <stdbool.h>
#include <stdint.h>

#include "common/accept.h"
#include "daemon/daemon.h"
#include "dataset/dataset.h"
#include "romulu/receiver.h"
#include "romulu/recording.h"
#include "common/options.h"
#include <rashpa-stream.h>
#include "common/stats.h"

struct run;

/* Counts so far, as reported to the daemon. */
struct done {
	uint64_t frames, lost, bytes, stacks, missing, wrong, dropped;
	bool processes;		/* the following counts are valid */
	uint64_t processed, kept, unkept;
};

/*
 * What happens to the received stacks. All functions return 0, -EINTR if the run was stopped, or
 * an exit code after a message. Functions that are NULL are skipped.
 */
struct use {
	const char *name;
	int (*open)(struct run *r);	/* before the stream begins */
	int (*begin)(struct run *r);	/* the stream's geometry is known */
	/*
	 * Examine a stack while it is in its slot. The findings count only if the stack was still
	 * intact afterwards: then stack() is called.
	 */
	int (*look)(struct run *r, const struct rashpa_stack *stack);
	int (*stack)(struct run *r, const struct rashpa_stack *stack);	/* the stack was intact */
	/*
	 * The use keeps each stack after stack() and releases it later, from another thread.
	 * This includes stacks that were overwritten before look() had finished.
	 */
	bool keeps;
	/* counts so far, or final counts */
	void (*count)(struct run *r, struct done *done);
	/* the stack is no longer needed, but its slot is not yet released */
	void (*after)(struct run *r, const struct rashpa_stack *stack);
	int (*close)(struct run *r);	/* called after failures, too */
};

extern const struct use use_check;	/* compare with the dataset */
extern const struct use use_none;	/* touch nothing */
extern const struct use use_record;	/* record in folders */
extern const struct use use_write;	/* append to a file */
extern const struct use use_process;	/* run a pipeline: photons, veto, sinks */

struct config {
	struct stream_options opt;
	const struct tune *tunes;
	struct daemon_options daemon;
	uint32_t full_at;		/* stacks when full; 0: three quarters of the slots */
	const struct use *use;
	const char *write[RECORDING_FOLDERS];	/* a file, or folders */
	uint32_t writes;
	enum recording_sync sync;
	char *nexus;			/* pipeline that writes a file of NeXus */
	const char *pipeline, *engine;	/* processing of images, and its engine (NULL: cpu) */
	bool driven;			/* the GPU fetches images without the CPU: */
	uint32_t way;			/* enum rashpa_drive_way */
	bool pairs;			/* image 2N + 1 of a stack is the dark one of image 2N */
	const char *trace;		/* file of its timeline, or NULL */
	uint32_t share;			/* receivers that share the stacks; 0: this one has all */
	uint32_t workers;		/* threads that process a stack each; 0: share each image */
	uint32_t deadline_us;		/* from a stack's event to its results; 0: none */
	const char *offer;		/* name under which the engine's memory is offered */
	uint64_t offer_bytes;		/* size of that memory; 0: engine's default */
	bool from_start;
	struct accept accept;
	bool only_receive;		/* receive for another consumer */
	struct network_config net;
};

struct report {
	bool attached, interrupted, board, iommu;
	struct rashpa_stream_header stream;
	uint32_t fpga, vector;	/* of the first process, if it is a board's */
	uint64_t frames, stacks, lost, bytes;
	uint64_t corrupt;	/* frames that differ from the dataset; among them: */
	uint64_t duplicate;	/* frames that show an earlier image */
	uint64_t unwritten;	/* frames that still hold the poison of the slot */
	uint64_t incomplete;	/* frames with lines that the detector did not deliver */
	uint64_t missing_lines;	/* lines that these frames lack */
	uint64_t dark;		/* frames that are dark images */
	/* frames left out before the last one that arrived, from gaps in FRAME numbers: */
	uint64_t skipped;
	/* counts that the board reported when the producer ended: */
	bool told;
	uint64_t dropped, source_lost, source_missed;	/* stacks, frames, frames */
	uint64_t unaccounted;	/* difference of skipped and the board's counts */
	uint64_t waits, stacks_without_wait, events, events_lost;
	uint64_t overruns;	/* parts of stacks written before their slot was released */
	uint64_t ns;		/* from attaching until the last stack was taken */
	struct json_object *network;	/* report of the network, or NULL */
	struct json_object *processing;	/* report of the pipeline, or NULL */
	uint64_t unkept;		/* results that a sink lost */
	struct samples latency;	/* from the interrupt handler to the end of the wait */
};

struct run {
	const struct config *config;
	struct dataset *dataset;
	struct report *report;
	const volatile bool *stop;
	struct rashpa_stream *stream;
	const struct rashpa_stream_header *about;
	void *data;		/* private data of the use */
	const void *offered;	/* address of the offered memory, or NULL */
	unsigned int printed;	/* wrong frames that were printed */
	bool failed;		/* the stream ended early */
	struct lookout *lookout;	/* NULL without a daemon */
};

#define MISMATCHES	8	/* wrong frames that are printed */

/* Receive until the stream ends or a signal sets *stop. Returns an exit code, after messages. */
int receive(const struct config *config, struct dataset *dataset, const volatile bool *stop,
	    struct report *report);

/* able.c: report the available engines and their speed to the daemon. */
void tell_able(void);

#endif /* ROMULU_H */
