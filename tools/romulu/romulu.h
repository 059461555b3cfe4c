/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ROMULU_H
#define ROMULU_H

#include <stdbool.h>
#include <stdint.h>

#include "accept.h"
#include "daemon.h"
#include "dataset.h"
#include "network.h"
#include "options.h"
#include "rashpa-stream.h"
#include "stats.h"

struct run;

/* What was done so far, as a daemon is told. */
struct done {
	uint64_t frames, lost, bytes, stacks, missing, wrong, dropped;
	bool processes;		/* the rest is known */
	uint64_t processed, kept, unkept;
};

/*
 * What is done with stacks. All return 0, -EINTR when we were told to stop, or an exit code after
 * a message; what is NULL is not done.
 */
struct engine {
	const char *name;
	int (*open)(struct run *r);	/* before there is a stream */
	int (*begin)(struct run *r);	/* its geometry is known */
	/*
	 * Look at a stack while it is there. What was found counts only if the stack was intact
	 * until then, see stack().
	 */
	int (*look)(struct run *r, const struct rashpa_stack *stack);
	int (*stack)(struct run *r, const struct rashpa_stack *stack);	/* it was intact */
	/*
	 * The engine keeps a stack beyond stack(), and releases it later, from a thread of its own:
	 * also one of which look() found nothing, since it was overwritten.
	 */
	bool keeps;
	/* what it did so far, or in the end */
	void (*count)(struct run *r, struct done *done);
	/* nobody else asks for it any more, and its slot is still ours */
	void (*after)(struct run *r, const struct rashpa_stack *stack);
	int (*close)(struct run *r);	/* also after a failure */
};

extern const struct engine engine_check;	/* compare with the dataset */
extern const struct engine engine_count;	/* touch nothing */
extern const struct engine engine_write;	/* append to a file */
extern const struct engine engine_process;	/* photons, veto, and what is kept */

struct config {
	struct stream_options opt;
	struct daemon_options daemon;
	uint32_t full_at;		/* stacks, for who leads; 0: three quarters of the slots */
	const struct engine *engine;
	const char *write;
	const char *pipeline, *processor;	/* what is done with images, and who does */
	bool driven;			/* a GPU takes whole stacks by itself: */
	uint32_t way;			/* enum rashpa_drive_way */
	uint32_t deadline_us;		/* of a result, from its stack's event; 0: none */
	const char *offer;		/* the name of that one's memory, for raw images */
	uint64_t offer_bytes;		/* of it; 0: as the engine likes */
	bool from_start;
	struct accept accept;
	bool only_receive;		/* from the network, for another consumer */
	struct network_config net;
};

struct report {
	bool attached, interrupted, iommu;
	struct rashpa_stream_header stream;
	uint32_t fpga, vector;	/* of the first process */
	uint64_t frames, stacks, lost, bytes;
	uint64_t corrupt;	/* frames that are not what they should be, of these: */
	uint64_t duplicate;	/* show an image that was here before */
	uint64_t unwritten;	/* hold what we left in the slot */
	uint64_t incomplete;	/* frames of which the detector did not deliver all lines */
	uint64_t missing_lines;	/* so many */
	uint64_t dark;		/* frames that are dark images */
	/* frames that the stream left out, as FRAME tells, before the last one that arrived: */
	uint64_t skipped;
	/* what the board says of them, when the producer has ended */
	bool told;
	uint64_t dropped, source_lost, source_missed;	/* stacks, frames, frames */
	uint64_t unaccounted;	/* skipped, and nothing tells why; or told, and not skipped */
	uint64_t waits, stacks_without_wait, events, events_lost;
	uint64_t overruns;	/* parts of stacks that were written before we gave the slot back */
	uint64_t ns;		/* from attaching until the last stack was taken */
	struct json_object *network;	/* of it, or NULL */
	struct json_object *processing;	/* of it, or NULL */
	uint64_t unkept;		/* results that a sink lost */
	struct samples latency;	/* handler to return of the wait, of records we waited for */
};

struct run {
	const struct config *config;
	struct dataset *dataset;
	struct report *report;
	const volatile bool *stop;
	struct rashpa_stream *stream;
	const struct rashpa_stream_header *about;
	void *engine;		/* the engine's own */
	unsigned int printed;	/* wrong frames */
	bool failed;		/* not all that was to come did */
	struct lookout *lookout;	/* for a daemon, or NULL */
};

#define MISMATCHES	8	/* wrong frames that are printed */

/* Receive until the end, or a signal sets *stop. An exit code, after messages. */
int receive(const struct config *config, struct dataset *dataset, const volatile bool *stop,
	    struct report *report);

/* able.c: the daemon hears which engines there are, and how fast they are. */
void tell_able(void);

#endif /* ROMULU_H */
