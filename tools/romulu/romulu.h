/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ROMULU_H
#define ROMULU_H

#include <stdbool.h>
#include <stdint.h>

#include "dataset.h"
#include "options.h"
#include "rashpa-stream.h"
#include "stats.h"

enum mode {
	MODE_CHECK,	/* compare with the dataset */
	MODE_COUNT,	/* touch nothing */
	MODE_WRITE,	/* append to a file */
};

struct config {
	struct stream_options opt;
	const char *write;
	enum mode mode;
	bool from_start;
};

struct report {
	bool attached, interrupted, iommu;
	struct rashpa_stream stream;
	uint64_t frames, stacks, lost, bytes;
	uint64_t corrupt;	/* frames that are not what they should be, of these: */
	uint64_t duplicate;	/* show an image that was here before */
	uint64_t unwritten;	/* hold what we left in the slot */
	uint64_t incomplete;	/* frames of which the detector did not deliver all lines */
	uint64_t missing_lines;	/* so many */
	/* frames that the stream left out, as FRAME tells, before the last one that arrived: */
	uint64_t skipped;
	/* what the board says of them, when the producer has ended */
	bool told;
	uint64_t dropped, source_lost, source_missed;	/* stacks, frames, frames */
	uint64_t unaccounted;	/* skipped, and nothing tells why; or told, and not skipped */
	uint64_t reads, stacks_without_read, events, events_lost;
	bool group;		/* the processes were a group: */
	uint64_t overruns;	/* parts of stacks that were written before we gave the slot back */
	uint64_t skips;		/* stacks that came without an event of their own */
	uint64_t ns;		/* from attaching until the last stack was taken */
	struct samples latency;	/* handler to return of read(), of records we waited for */
};

/* What is known of an image, by each process; without metadata what must be so. */
struct about {
	uint64_t frame[RASHPA_STREAM_DTPS];
	uint32_t missing[RASHPA_STREAM_DTPS];	/* lines */
	bool wrong;		/* the records are of another stack, or of several frames */
};

/* The first wrong pixel of a frame. */
struct mismatch {
	uint64_t stack;
	uint32_t image, line, pixel;
	uint16_t expected, got;
	bool duplicate, unwritten;
};

#define POISON_BYTE	0xa5
#define POISON_PIXEL	0xa5a5

/* Can this dataset be what the stream shows? -1 and the reason in why[WHY_SIZE] if not. */
int check_possible(const struct rashpa_stream *stream, const struct dataset *dataset, char *why);

/* What the metadata in the buffer at @base say of an image. */
void read_about(const struct rashpa_stream *stream, const uint8_t *base, uint64_t stack,
		uint32_t number, struct about *about);

/* How many frames there were before this one for the stream to take. */
uint64_t frame_index(const struct rashpa_stream *stream, uint64_t frame);

/* Compare one frame, whose first byte is at image. True if it is right. */
bool check_frame(const struct rashpa_stream *stream, const struct dataset *dataset,
		 const void *image, uint64_t stack, uint32_t number, const struct about *about,
		 struct mismatch *mismatch);

/* Receive until the end, or a signal sets *stop. An exit code, after messages. */
int receive(const struct config *config, const struct dataset *dataset, volatile bool *stop,
	    struct report *report);

#endif /* ROMULU_H */
