/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Drives of GPUs. drive.c defines the order of waits for all APIs; the drive of each API provides
 * streams that wait, copy and compute.
 */
#ifndef RPU_DRIVE_H
#define RPU_DRIVE_H

#include <stdatomic.h>
#include <stdio.h>

#include "processing/pipeline.h"

#define RPU_DRIVE_GPUS	16

enum rpu_stream { RPU_IN, RPU_COMPUTE, RPU_OUT, RPU_STREAMS };

/* Arguments of a drive's kernels, as in cuda.cu and vulkan-drive.glsl. */
struct rpu_driven {
	uint32_t least, bank_count;
	uint32_t polls;			/* polls in vain before the kernel ends; 0: never */
	uint32_t lock_first;		/* number of the (first) image */
	uint32_t lock_step, images;
	uint32_t ring_step, ring_slots;	/* words */
	uint32_t lock_images;		/* images per count of the lock */
	uint32_t gives;			/* 1: release slots by the plan's word "given" */
	uint32_t pairs;			/* 1: image 2N + 1 is computed before image 2N */
};

/* When the host saw what of a GPU's images, in rings of [size]; times begin with the drive. */
struct rpu_timeline {
	uint32_t size, arrivals, seen[RPU_STREAMS];
	uint64_t *arrived, *copied, *computed, last[RPU_STREAMS];
};

/* One GPU of a drive: it computes each count-th image. */
struct rpu_wheel {
	struct rpu_gpu *gpu;
	void *own;			/* private data of the driver */
	uint32_t *control;		/* RPU_CONTROL_*, for the host */
	float *results;			/* [credits], each with its record, for the host */
	uint32_t images;		/* images that this GPU will compute */
	uint32_t enqueued, outs;	/* images, and copies of results that await the veto */
	uint32_t given, released;	/* results */
	unsigned int queue[RPU_STREAMS];	/* those with one number take turns */
	struct rpu_timeline timeline;
};

struct rashpa_drive {
	const struct rpu_drive_way *way;
	struct rashpa_drive_plan plan;
	struct rpu_wheel wheel[RPU_DRIVE_GPUS];
	uint32_t count, pieces;
	struct rpu_calibration calibration;
	float threshold, dark_weight;
	uint32_t least;
	size_t pixels, image_bytes, piece_bytes;
	bool direct;			/* images are in memory of the only GPU: no copy */
	atomic_uint *lock_here;
	bool lock_is_ours;
	struct rashpa_drive_stat stat;
	uint64_t moved;			/* sum of all words at the last change */
	unsigned long long moved_ns;
	FILE *trace;			/* NULL: no timeline */
	unsigned long long traced_ns;	/* its begin */
};

/**
 * struct rpu_drive_way - operations of a drive, for each API
 * @of: driver of the API
 * @by_image: enqueue a copy of a result after each image, which does nothing for vetoed images:
 *	streams of this API cannot wait for a word that a kernel writes
 * @open: create streams, kernels and memory, map lock and ring; set @w->own, @w->control,
 *	@w->results
 * @enter: begin calls for this GPU in this thread: 0, or -1
 * @leave: end these calls
 * @wait: later work of the stream begins when the word is at least @value
 * @write: set the word to @value when the stream's earlier work has ended
 * @copy_in: copy bytes of a raw image, from byte @from of ring or window to byte @at of In[@to]
 * @compute: pretreat, count, decide, bank and publish image @k of this GPU
 * @copy_out: copy the result of bank @slot; by image: of image @slot of this GPU, if accepted
 * @poll: start the persistent kernel at image @k of this GPU
 * @ended: has that kernel returned? NULL: it never does before STOP
 * @flush: submit enqueued work: 0, or -1 with the reason of the first failure
 * @look: update words that the GPU does not write itself; NULL: it writes all
 * @is_idle: has all work of the stream ended?
 * @close: release everything, even after a failed open
 * @abandon: the GPU does not answer: release nothing
 */
struct rpu_drive_way {
	const struct rpu_gpu_driver *of;
	bool by_image;
	int (*open)(struct rashpa_drive *d, struct rpu_wheel *w, char *why);
	int (*enter)(struct rpu_wheel *w);
	void (*leave)(struct rpu_wheel *w);
	void (*wait)(const struct rashpa_drive *d, struct rpu_wheel *w, enum rpu_stream stream,
		     unsigned int word, uint32_t value);
	void (*write)(struct rpu_wheel *w, enum rpu_stream stream, unsigned int word,
		      uint32_t value);
	void (*copy_in)(const struct rashpa_drive *d, struct rpu_wheel *w, unsigned int to,
			uint64_t at, uint64_t from, size_t bytes);
	void (*compute)(const struct rashpa_drive *d, struct rpu_wheel *w, uint32_t k);
	void (*copy_out)(const struct rashpa_drive *d, struct rpu_wheel *w, uint32_t slot);
	void (*poll)(const struct rashpa_drive *d, struct rpu_wheel *w, uint32_t k);
	bool (*ended)(struct rpu_wheel *w);
	int (*flush)(struct rpu_wheel *w, char *why);
	void (*look)(const struct rashpa_drive *d, struct rpu_wheel *w);
	bool (*is_idle)(struct rpu_wheel *w, enum rpu_stream stream);
	void (*close)(struct rpu_wheel *w);
	void (*abandon)(struct rpu_wheel *w);
};

extern const struct rpu_drive_way rpu_cuda_drive, rpu_vulkan_drive;

/* Number among all images of the k-th image of this GPU. */
static inline uint32_t rpu_number_of(const struct rashpa_drive *d, const struct rpu_wheel *w,
				     uint32_t k)
{
	return k * d->count + (w - d->wheel);
}

/* The lock when image s of the order of computing is there. */
static inline uint32_t rpu_arrival(const struct rashpa_drive *d, uint32_t s)
{
	return (s | d->plan.pairs) + 1;
}

/* Bytes of an image with its record in banks and results. */
static inline size_t rpu_bank_bytes(const struct rashpa_drive *d)
{
	return (d->pixels + RPU_RECORD) * sizeof(float);
}

extern const char * const rpu_streams[RPU_STREAMS];	/* their names */
/* The word of images with a decision. */
static inline unsigned int rpu_decided(const struct rashpa_drive *d)
{
	return d->way->by_image ? RPU_CONTROL_DECIDED : RPU_CONTROL_COMPUTED;
}

/* Make the timeline's file: 0 or a negative errno. */
int rpu_trace_open(struct rashpa_drive *d);
/* Add what is new in the words of this GPU. */
void rpu_trace_look(struct rashpa_drive *d, struct rpu_wheel *w);
int rpu_trace_close(struct rashpa_drive *d);

/* Bytes of the control block, with the roles of images. */
static inline size_t rpu_control_bytes(const struct rashpa_drive *d)
{
	return (RPU_CONTROLS + (size_t)d->plan.slots + RPU_ROLES_MORE) * sizeof(uint32_t);
}

/* Arguments for image k of this GPU; for the polling kernel, from image k on. */
struct rpu_push rpu_push_of(const struct rashpa_drive *d, const struct rpu_wheel *w, uint32_t k);
struct rpu_driven rpu_driven_of(const struct rashpa_drive *d, const struct rpu_wheel *w,
				uint32_t k);
/* Groups of the pretreatment kernel. */
uint64_t rpu_raw_groups(const struct rashpa_drive *d, const struct rpu_wheel *w);
/* Map the pages of host memory or a board's window. Sets the memory, and the offset of @from. */
int rpu_let_see(struct rpu_gpu *gpu, const void *from, uint64_t bytes, bool window,
		struct rashpa_gpu_memory **memory, uint64_t *at, char *why);

#endif /* RPU_DRIVE_H */
