/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How GPUs are driven, whoever makes them: drive.c knows who waits for whom, and the drive of each
 * maker has streams that wait, copy and compute.
 */
#ifndef RPU_DRIVE_H
#define RPU_DRIVE_H

#include <stdatomic.h>

#include "pipeline.h"

#define RPU_DRIVE_GPUS	16

enum rpu_stream { RPU_IN, RPU_COMPUTE, RPU_OUT, RPU_STREAMS };

/* What kernels are told of a drive, as cuda.cu and vulkan-drive.glsl have it. */
struct rpu_driven {
	uint32_t least, bank_count;
	uint32_t polls;			/* in vain, all in all: then it ends; 0: it stays */
	uint32_t lock_first;		/* number of the image; of many: of the first one */
	uint32_t lock_step, images;
	uint32_t ring_step, ring_slots;	/* words */
	uint32_t lock_images;		/* that the lock counts at a time */
	uint32_t gives;			/* 1: slots, by the plan's word "given" */
};

/* One GPU: it has each count-th image. */
struct rpu_wheel {
	struct rpu_gpu *gpu;
	void *own;			/* of its driver */
	uint32_t *control;		/* RPU_CONTROL_*, for the host */
	float *results;			/* [credits], each with its record: likewise */
	uint32_t images;		/* that it will have */
	uint32_t enqueued, outs;	/* images, and copies of results that await the veto */
	uint32_t given, released;	/* results */
};

struct rashpa_drive {
	const struct rpu_drive_way *way;
	struct rashpa_drive_plan plan;
	struct rpu_wheel wheel[RPU_DRIVE_GPUS];
	uint32_t count, pieces;
	struct rpu_calibration calibration;
	float threshold;
	uint32_t least;
	size_t pixels, image_bytes, piece_bytes;
	bool direct;			/* images are in memory of the one GPU: no copy */
	atomic_uint *lock_here;
	bool lock_is_ours;
	struct rashpa_drive_stat stat;
	uint64_t moved;			/* sum of all words, when one moved last */
	unsigned long long moved_ns;
};

/**
 * struct rpu_drive_way - what the drive of a maker can do
 * @of: the maker's driver
 * @by_image: a copy of a result belongs to each image, and does nothing for one that is vetoed:
 *	streams of this maker cannot wait for a word that a kernel writes
 * @open: have streams, kernels and memory, see lock and ring: @w->own, @w->control, @w->results
 * @enter: calls for this GPU follow, in this thread: 0, or -1
 * @leave: no more
 * @wait: what the stream is given from here on begins when the word is at least @value
 * @write: and the word becomes @value, when what the stream was given so far has ended
 * @copy_in: bytes of a raw image, from byte @from of ring or window to byte @at of In[@to]
 * @compute: pretreat, count, decide, bank and publish image @k of this GPU
 * @copy_out: the result of bank @slot; by image: of image @slot of this GPU, if it was accepted
 * @poll: the kernel that stays has images from @k of this GPU on
 * @ended: that kernel has let go of the GPU; NULL: it does not
 * @flush: what was enqueued begins: 0, or -1 with the first reason why not
 * @look: bring words up to date that the GPU does not write itself; NULL: it writes all
 * @is_idle: what the stream was given has ended
 * @close: let go of all, also of a part of it
 * @abandon: it does not answer: nothing of it is given back
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

/* The image that is number k of this GPU, among all. */
static inline uint32_t rpu_number_of(const struct rashpa_drive *d, const struct rpu_wheel *w,
				     uint32_t k)
{
	return k * d->count + (w - d->wheel);
}

/* Bytes of an image with its record, as banks and results have it. */
static inline size_t rpu_bank_bytes(const struct rashpa_drive *d)
{
	return (d->pixels + RPU_RECORD) * sizeof(float);
}

/* What is told with image k of this GPU; all that follow, for the kernel that polls. */
struct rpu_push rpu_push_of(const struct rashpa_drive *d, const struct rpu_wheel *w, uint32_t k);
struct rpu_driven rpu_driven_of(const struct rashpa_drive *d, const struct rpu_wheel *w,
				uint32_t k);
/* Groups of pretreatment. */
uint64_t rpu_raw_groups(const struct rashpa_drive *d, const struct rpu_wheel *w);
/* The pages that bytes are in, of the host or of a board's window: memory, and their byte there. */
int rpu_let_see(struct rpu_gpu *gpu, const void *from, uint64_t bytes, bool window,
		struct rashpa_gpu_memory **memory, uint64_t *at, char *why);

#endif /* RPU_DRIVE_H */
