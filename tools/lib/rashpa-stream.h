/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Stream header: what is in a buffer that detector data streams into.
 *
 * The producer (remu, or a detector's control software) writes it at offset 0 of the
 * named buffer, so that a consumer needs nothing but the buffer. The consumer must
 * check every field against the buffer's length: another process wrote it.
 *
 * Layout of the buffer:
 *   0              struct rashpa_stream                 (one page)
 *   lock_offset    lock records, 64 bytes per DTP       (one page; or elsewhere: lock_name)
 *   data_offset    slots x (bunch images, image_stride apart), slot_stride apart
 *   meta_offset    dtps x slots x (bunch records of RFPGA_META_SIZE, meta_slot bytes), if any
 *
 * Stack k is in slot k % slots. The metadata of an image have its FRAME, of the DTP that wrote
 * them: number s of dtp[], slot n, image i at meta_offset + (s * slots + n) * meta_slot +
 * i * RFPGA_META_SIZE. They are of stack k if STACK is k and RUN is run. Without metadata nothing
 * is left out, and image i of stack k is frame k * bunch + i.
 *
 * Of a dataset in memory, frame f shows image (f * sampling + phase) % dataset_images. The frames
 * of a live source are those of the detector: one of sampling is taken behind phase others,
 * and the software FPGA shows image f % dataset_images. What a stream leaves out, FRAME jumps over.
 */
#ifndef RASHPA_STREAM_H
#define RASHPA_STREAM_H

#include <stdint.h>

#define RASHPA_STREAM_MAGIC	0x3154535048534152ull	/* "RASHPST1" */
#define RASHPA_STREAM_DTPS	16
#define RASHPA_STREAM_PAGE	4096
#define RASHPA_STREAM_NAME	64

enum rashpa_stream_state {
	RASHPA_STREAM_IDLE = 0,
	RASHPA_STREAM_RUNNING = 1,
	RASHPA_STREAM_ENDED = 2,	/* all images were sent, or the producer stopped */
};

/* What becomes of a stack for which there is no slot. */
enum rashpa_stream_policy {
	RASHPA_STREAM_WAIT = 0,		/* the DTP waits; a live source loses images meanwhile */
	RASHPA_STREAM_OVERWRITE = 1,	/* the oldest one is overwritten */
	RASHPA_STREAM_DROP = 2,		/* it is left out */
};

/** struct rashpa_stream_dtp - one data transfer process of the stream */
struct rashpa_stream_dtp {
	uint32_t dtp;			/* number in the FPGA */
	uint32_t x, y, width, height;	/* region of the image that it fills, pixels */
	uint32_t __reserved;
	uint64_t lock_offset;		/* of its RFPGA_LOCK_*, in the buffer or lock_name; bytes */
	uint64_t doorbell_offset;	/* of its RFPGA_DB_TAGGED in the FPGA's BAR 2, bytes */
};

/** struct rashpa_stream_origin - where a DTP's region comes from */
struct rashpa_stream_origin {
	uint32_t x, y;			/* in the image of the dataset, pixels */
};

/** struct rashpa_stream - header at offset 0 of the buffer */
struct rashpa_stream {
	uint64_t magic;			/* written last; 0 while the rest changes */
	uint64_t generation;		/* counts configurations of this buffer */
	uint32_t header_size;		/* sizeof(struct rashpa_stream) */
	uint32_t state;			/* enum rashpa_stream_state */
	uint32_t fpga;			/* N of /dev/rashpa/fpgaN */
	uint32_t vector;		/* event source: one interrupt per complete stack */
	uint32_t width, height;		/* of an image, pixels */
	uint32_t pixel_bytes;
	uint32_t bunch;			/* images per stack */
	uint32_t slots;			/* stacks in the buffer */
	uint32_t sampling;		/* 1 of N */
	uint32_t dataset_images;
	uint32_t dtps;			/* entries of dtp[] */
	uint64_t data_offset;
	uint64_t line_stride, image_stride, slot_stride;
	uint64_t images;		/* that will be sent in this run, 0: endless */
	uint64_t first_stack;		/* number of the first stack of this run */
	uint32_t paced;			/* 1: no slot is written without credit; 0: it is */
	uint32_t segments;		/* of the map, for information */
	uint32_t map_class;		/* enum rashpa_class, for information */
	uint32_t run;			/* upper word of each credit, see RFPGA_DTP_RUN */
	uint64_t consumed;		/* written by the consumer: stacks given back */
	struct rashpa_stream_dtp dtp[RASHPA_STREAM_DTPS];
	struct rashpa_stream_origin origin[RASHPA_STREAM_DTPS];	/* of dtp[] of the same index */
	/* lock memory that has the lock records; empty: they are in the buffer */
	char lock_name[RASHPA_STREAM_NAME];
	/* CLOCK_MONOTONIC when state became RUNNING: older device events are not about this run */
	uint64_t start_ns;
	uint32_t policy;		/* enum rashpa_stream_policy */
	uint32_t live;			/* 1: from a live source */
	uint32_t phase;			/* frames that pass first, see sampling; below it */
	uint32_t __reserved;
	uint64_t meta_offset;		/* in the buffer */
	uint64_t meta_slot;		/* bytes of metadata for a slot of a DTP; 0: none */
	/* what dtp[0] counted, written by the producer before state becomes ENDED */
	uint64_t sent;			/* images */
	uint64_t dropped;		/* stacks */
	uint64_t lost;			/* images of a live source that found no room */
	uint64_t missed;		/* images that the live source's detector did not deliver */
	/* tells the dataset's images from others, as the producer adds them up; 0: not told */
	uint64_t dataset_sum;
};

#endif /* RASHPA_STREAM_H */
