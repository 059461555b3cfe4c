/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * librashpa-processing: from raw images to photons, to those that are worth keeping, and to what is
 * kept of them. See Documentation/processing.rst.
 */
#ifndef RASHPA_PROCESSING_H
#define RASHPA_PROCESSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rashpa-stream-format.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * DOC: Pipelines
 *
 * - A pipeline is opened from JSON, begun with the geometry of a stream, and run for each image.
 * - Errors are negative errnos, with a sentence in why[RASHPA_PIPELINE_WHY].
 * - All memory is there when rashpa_pipeline_begin() and rashpa_result_new() have returned.
 * - A pipeline is for one thread at a time; OpenMP's threads help. A result is for one thread at
 *   a time, which may be another one.
 * - A pipeline stays with the process that has opened it. A process that was forked after OpenMP
 *   has run has none of its threads, and cannot begin one either: -EBUSY says so.
 */

#define RASHPA_PIPELINE_WHY	768

/** struct rashpa_pipeline - stages and what they know; opaque */
struct rashpa_pipeline;

/**
 * struct rashpa_raw_ring - where raw images are in memory of rashpa_pipeline_offer()
 * @offset: of the first one, bytes
 * @step: from image to image, bytes; lines have no gaps
 * @slots: images that there is room for; 0: they are somewhere else
 * @__reserved: 0
 */
struct rashpa_raw_ring {
	uint64_t offset, step;
	uint32_t slots;
	uint32_t __reserved;
};

/**
 * struct rashpa_geometry - what images are
 * @width: pixels
 * @height: pixels
 * @pixel: enum rashpa_pixel: u8, u16 or u32
 * @bunch: images that come together; 1: they do not
 * @ring: of those that are in the engine's memory
 */
struct rashpa_geometry {
	uint32_t width, height;
	uint32_t pixel;
	uint32_t bunch;
	struct rashpa_raw_ring ring;
};

/**
 * struct rashpa_peak - one peak of an image
 * @x: where, pixels from the middle of the first one
 * @y: likewise
 * @sum: above its background, in the unit of the image
 * @background: mean of it
 * @snr: @sum by its deviation
 * @pixels: that belong to it
 */
struct rashpa_peak {
	float x, y;
	float sum, background, snr;
	uint32_t pixels;
};

/**
 * struct rashpa_result - what became of an image; what no stage makes is NULL
 * @frame: its number, as the detector counts
 * @role: enum rashpa_image_role
 * @kept: no veto
 * @above: pixels above the veto's threshold
 * @width: of @image, pixels
 * @height: of @image, pixels
 * @image: in the unit of the calibration, NaN: invalid; NULL also where a GPU has vetoed it, which
 *	keeps it
 * @row: compressed: line y has the elements from row[y] to before row[y + 1]; NULL if there were
 *	more than fit
 * @column: of each element
 * @value: of each element
 * @elements: that were above the threshold, also if there were more than fit
 * @bins: elements of the profile
 * @intensity: mean of each bin, NaN: it has no pixel
 * @sigma: its error; NULL: none was asked for
 * @peak: peaks
 * @peaks: how many
 * @peaks_found: also those that found no room
 * @images: of which @mean and @deviation are; 0: not with this image
 * @mean: of the last images, pixel by pixel
 * @deviation: likewise, of one image
 * @signal: images of the pipeline so far, with this one; dark ones are not counted
 * @signal_kept: of them, those that no veto left out
 */
struct rashpa_result {
	uint64_t frame;
	uint32_t role;
	bool kept;
	uint64_t above;
	uint32_t width, height;
	const float *image;
	const uint32_t *row, *column;
	const float *value;
	uint64_t elements;
	uint32_t bins;
	const float *intensity, *sigma;
	const struct rashpa_peak *peak;
	uint32_t peaks, peaks_found;
	uint64_t images;
	const float *mean, *deviation;
	uint64_t signal, signal_kept;
};

/**
 * struct rashpa_stage_stat - what a stage has done
 * @name: of the stage
 * @images: that it has had
 * @lost: of a sink: of them, those that it could not keep
 * @ns: for them
 * @bytes_in: that it has read; calibration is not counted
 * @bytes_out: that it has made
 */
struct rashpa_stage_stat {
	const char *name;
	uint64_t images, lost, ns, bytes_in, bytes_out;
};

/**
 * struct rashpa_pipeline_stat - what a pipeline has done
 * @images: signal images
 * @dark: dark images
 * @vetoed: of @images
 * @overflow: how often there were more pixels, or more peaks, than there is room for
 * @stage: array
 * @stages: elements of it
 * @sink: array, likewise: bytes_in are those of results, bytes_out those that went into the file or
 *	to subscribers
 * @sinks: elements of it
 */
struct rashpa_pipeline_stat {
	uint64_t images, dark, vetoed, overflow;
	const struct rashpa_stage_stat *stage;
	uint32_t stages;
	const struct rashpa_stage_stat *sink;
	uint32_t sinks;
};

struct rashpa_drive;
struct rashpa_drive_plan;
struct rashpa_driven;
struct rashpa_drive_stat;
/*
 * Structs grow at their end: see "Growth" in rashpa.h. The functions without _sized call these, with
 * the size that the program's header has. &struct rashpa_peak and &struct rashpa_stage_stat, which
 * come as arrays, do not grow. Of an image that comes back from the program, the library reads only
 * members that the first version of &struct rashpa_driven had.
 */
int rashpa_pipeline_begin_sized(struct rashpa_pipeline *pipeline,
				const struct rashpa_geometry *geometry, char *why, size_t size);
struct rashpa_result *rashpa_result_new_sized(const struct rashpa_pipeline *pipeline, size_t size);
void rashpa_pipeline_status_sized(const struct rashpa_pipeline *pipeline,
				  struct rashpa_pipeline_stat *stat, size_t size);
int rashpa_drive_open_sized(struct rashpa_pipeline * const *pipelines, uint32_t count,
			    const struct rashpa_drive_plan *plan, struct rashpa_drive **drive,
			    char *why, size_t size);
int rashpa_drive_next_sized(struct rashpa_drive *drive, struct rashpa_driven *result,
			    int timeout_ms, char *why, size_t size);
void rashpa_drive_status_sized(const struct rashpa_drive *drive, struct rashpa_drive_stat *stat,
			       size_t size);

/**
 * rashpa_pipeline_open() - read what is to be done
 * @config: a file with JSON; or JSON itself, which begins with "{"
 * @engine: "cpu" or "reference"; NULL: "cpu"; or a GPU, as rashpa_gpu_open() calls it, that
 *	pretreats, counts for the veto, compresses and integrates, or a board, as "fpga0", that
 *	pretreats, and the cpu does the rest. A program that uses a board handles SIGBUS, which one
 *	that is removed is
 * @why: becomes the sentence
 * @pipeline: becomes the handle; rashpa_pipeline_close() it
 *
 * Return: 0 or a negative errno.
 */
int rashpa_pipeline_open(const char *config, const char *engine, char *why,
			 struct rashpa_pipeline **pipeline);

/**
 * rashpa_pipeline_near() - process where the images are
 * @node: NUMA node of their memory, as Linux counts; -1: not known
 * @why: becomes the sentence
 *
 * Binds this thread and those of OpenMP to processors of that node, as many as there are: before
 * rashpa_pipeline_begin(), so that what it makes is there as well. OMP_NUM_THREADS, OMP_PLACES,
 * OMP_PROC_BIND or GOMP_CPU_AFFINITY in the environment decide instead.
 *
 * Return: threads that were bound; 0: none, as it is all the same, or decided; or a negative errno:
 * all processors are used.
 */
int rashpa_pipeline_near(int node, char *why);

/**
 * rashpa_pipeline_offer() - have a part of the engine's memory for raw images
 * @pipeline: the handle, not begun; of a GPU or a board
 * @base: becomes where this program has it: what is given to rashpa_pipeline_run() are addresses in
 *	it. Not all memory of a GPU can be read there
 * @length: bytes that are wanted, 0: as the engine likes; becomes those that there are. A board
 *	gives half of what it has, the rest is for calibration and results; a GPU what is wanted, or
 *	64 MiB
 * @why: becomes the sentence
 *
 * For devices that write there, as another board does: rashpa_payload_hand() hands it to its
 * producer. The ring of the geometry says where images are then, and no processor copies them.
 * Somebody who can write to the dma-buf writes to that part only.
 *
 * Return: its dma-buf, the library's until rashpa_pipeline_close(), or a negative errno:
 * -EOPNOTSUPP (the engine is neither), -EBUSY, -EIO.
 */
int rashpa_pipeline_offer(struct rashpa_pipeline *pipeline, const void **base, uint64_t *length,
			  char *why);

/**
 * rashpa_pipeline_begin() - read calibration, make buffers
 * @pipeline: the handle
 * @geometry: of the images
 * @why: becomes the sentence
 *
 * Return: 0 or a negative errno.
 */
static inline int rashpa_pipeline_begin(struct rashpa_pipeline *pipeline,
					const struct rashpa_geometry *geometry, char *why)
{
	return rashpa_pipeline_begin_sized(pipeline, geometry, why, sizeof(*geometry));
}

/**
 * rashpa_result_new() - room for what becomes of an image
 * @pipeline: the handle, begun
 *
 * Return: the result, rashpa_result_free() it; NULL: no memory.
 */
static inline struct rashpa_result *rashpa_result_new(const struct rashpa_pipeline *pipeline)
{
	return rashpa_result_new_sized(pipeline, sizeof(struct rashpa_result));
}

/**
 * rashpa_result_free() - and what is in it
 * @result: or NULL
 */
void rashpa_result_free(struct rashpa_result *result);

/**
 * rashpa_pipeline_run() - process an image
 * @pipeline: the handle, begun
 * @image: its first pixel, little-endian
 * @line_stride: bytes from line to line
 * @result: frame and role are set by the caller; the rest is filled in. Images whose role is not
 *	signal or dark are processed as signal
 *
 * Return: 1: the result is to be kept; 0: veto, or a dark image; or -EIO: a board has failed;
 *	-EINVAL: it has not begun, or is finished, or the result is another pipeline's; -EBUSY: this
 *	is a fork; rashpa_pipeline_reason() says how. The image was not processed.
 */
int rashpa_pipeline_run(struct rashpa_pipeline *pipeline, const void *image, size_t line_stride,
			struct rashpa_result *result);

/**
 * rashpa_pipeline_reason() - why an image was not processed
 * @pipeline: the handle
 *
 * Return: a sentence, of the last rashpa_pipeline_run() that failed; the library's.
 */
const char *rashpa_pipeline_reason(const struct rashpa_pipeline *pipeline);

/**
 * rashpa_pipeline_axis() - where the bins of profiles are
 * @pipeline: the handle, begun
 * @bins: becomes how many there are
 * @unit: becomes their unit: 2th_deg, q_nm^-1, q_A^-1 or r_mm
 *
 * Return: the middle of each bin, the library's; NULL: there is no stage integrate.
 */
const double *rashpa_pipeline_axis(const struct rashpa_pipeline *pipeline, uint32_t *bins,
				   const char **unit);

/**
 * rashpa_pipeline_put() - give a result to where results are kept
 * @pipeline: the handle, begun
 * @result: of rashpa_pipeline_run(), which said 1
 * @why: becomes the sentence
 *
 * From another thread than rashpa_pipeline_run(), if that is wished, but always from the same one.
 * Results come in the order in which they are put.
 *
 * Return: 0; 1: a sink lost it, the sentence says which one and why, and the others have it; or a
 * negative errno: a sink lost it that must not lose any; -EINVAL: it is not to be kept.
 */
int rashpa_pipeline_put(struct rashpa_pipeline *pipeline, const struct rashpa_result *result,
			char *why);

/**
 * rashpa_pipeline_flush() - what was put is where others find it
 * @pipeline: the handle, begun
 * @why: becomes the sentence
 *
 * And it stays, also if this program ends at once. For the thread that puts results: before it lets
 * go of what they were made of.
 *
 * Return: as rashpa_pipeline_put(), for results since the last time.
 */
int rashpa_pipeline_flush(struct rashpa_pipeline *pipeline, char *why);

/**
 * rashpa_pipeline_finish() - files are complete
 * @pipeline: the handle
 * @why: becomes the sentence
 *
 * Where this is not called, files have what was put and say that they are not complete; so do those
 * that have lost a result. A pipeline that has not begun has none; one that is finished takes no
 * more images.
 *
 * Return: 0, or a negative errno: -EINVAL if it could not begin.
 */
int rashpa_pipeline_finish(struct rashpa_pipeline *pipeline, char *why);

/**
 * rashpa_pipeline_status() - what it has done so far
 * @pipeline: the handle
 * @stat: filled in; the array is the library's
 */
static inline void rashpa_pipeline_status(const struct rashpa_pipeline *pipeline,
					  struct rashpa_pipeline_stat *stat)
{
	rashpa_pipeline_status_sized(pipeline, stat, sizeof(*stat));
}

/**
 * rashpa_pipeline_close() - let go of it, and not of results
 * @pipeline: the handle, or NULL
 */
void rashpa_pipeline_close(struct rashpa_pipeline *pipeline);

/**
 * DOC: Drives
 *
 * - A drive has GPUs of CUDA or of Vulkan take images by themselves: pretreatment, a veto by
 *   pixels, and what is accepted goes to the host. It has pipelines that have begun, one of each
 *   GPU, for calibration and threshold; they run nothing meanwhile. Images go to the GPUs in turn.
 * - All images are signal ones.
 * - A drive is for one thread at a time, but for rashpa_drive_arrived().
 */

/** struct rashpa_drive - GPUs that are driven; opaque */
struct rashpa_drive;

/** enum rashpa_drive_way - who finds out that an image is there */
enum rashpa_drive_way {
	/** @RASHPA_DRIVE_LAUNCH: the host, which enqueues work then */
	RASHPA_DRIVE_LAUNCH,
	/** @RASHPA_DRIVE_AHEAD: work that was enqueued before, and waits for the lock */
	RASHPA_DRIVE_AHEAD,
	/**
	 * @RASHPA_DRIVE_POLL: a kernel of one group of lanes that stays, and polls the lock: for
	 * small images, and those of the host, or of GPUs that see what others write there in
	 * order. Other kernels have the rest of the GPU. Of Vulkan it lets go now and then, and
	 * rashpa_drive_next() starts it again
	 */
	RASHPA_DRIVE_POLL,
};

/**
 * struct rashpa_drive_plan - how GPUs are driven
 * @way: enum rashpa_drive_way
 * @images: that will come
 * @raw: slots of raw images in memory of the host, whole pages around them can be registered; NULL:
 *	they are in what the one GPU has offered
 * @step: from slot to slot, bytes, a multiple of 4
 * @slots: image s is in slot s % @slots
 * @lock: word in memory of the host that is at least s + 1 when image s is there, and only rises;
 *	of a board, or anybody. NULL: rashpa_drive_arrived() tells
 * @credits: results that are accepted, and not yet released, for each GPU; more are dropped, and
 *	counted
 * @ahead: images that are enqueued before they were computed, for each GPU
 * @window_bytes: less of what was offered than all images need is written by others: piece p of
 *	the images, half a window, is in half p & 1, the lock counts pieces, and GPUs copy them away
 *	while the next one comes. 0: all of the ring is in reach
 * @lock_images: images that @lock counts at a time, those of a stack, for a kernel that stays;
 *	0: one
 * @given: a kernel that stays owns the loop: it looks at @lock, and writes here, by one store of
 *	32 bits, how many stacks it has read, so that their slots are free: the host takes no part,
 *	and sees by rashpa_drive_next() and rashpa_drive_status() what came. Memory of the host, in
 *	another page than @lock, or a doorbell of a board. NULL: the host tells who fills slots, see
 *	rashpa_drive_taken()
 * @given_is_window: @given is in a window of a board, which this program has mapped
 * @patience_ms: nothing moves for so long: that is an error, which says who waits for what; but
 *	not while the caller has all @credits
 * @__reserved: 0
 */
struct rashpa_drive_plan {
	uint32_t way;
	uint32_t images;
	const void *raw;
	uint64_t step;
	uint32_t slots;
	const uint32_t *lock;
	uint32_t credits, ahead;
	uint64_t window_bytes;
	uint32_t patience_ms;
	uint32_t lock_images;
	uint32_t *given;
	bool given_is_window;
	uint8_t __reserved[7];
};

/**
 * struct rashpa_driven - an image that was accepted
 * @frame: its number, from 0 on
 * @above: pixels above the threshold
 * @gpu: whose it was
 * @image: pretreated, until rashpa_drive_release()
 */
struct rashpa_driven {
	uint32_t frame, above, gpu;
	const float *image;
};

/**
 * struct rashpa_drive_stat - what a drive has done
 * @images: that were computed
 * @accepted: of them
 * @vetoed: of them
 * @dropped: of them: they were to be accepted, and there was no credit
 * @results: given by rashpa_drive_next()
 * @copies_ahead: copies of results that are enqueued, and await the veto
 */
struct rashpa_drive_stat {
	uint64_t images, accepted, vetoed, dropped, results;
	uint32_t copies_ahead;
};

/**
 * rashpa_drive_open() - have GPUs take images
 * @pipelines: begun, all with an engine cuda or vulkan, and with one veto; each once, and of no
 *	other drive; they stay the caller's, and open
 * @count: elements of @pipelines, 1 to 16
 * @plan: how
 * @drive: becomes the handle; rashpa_drive_close() it
 * @why: becomes the sentence
 *
 * Return: 0 or a negative errno: -EINVAL, -EOPNOTSUPP (another engine), -EBUSY (a pipeline has a
 * drive), -ENOMEM, -EIO (a GPU refused something; one of Vulkan takes no memory of the host, or
 * its semaphores have no timeline).
 */
static inline int rashpa_drive_open(struct rashpa_pipeline * const *pipelines, uint32_t count,
				    const struct rashpa_drive_plan *plan,
				    struct rashpa_drive **drive, char *why)
{
	return rashpa_drive_open_sized(pipelines, count, plan, drive, why, sizeof(*plan));
}

/**
 * rashpa_drive_next() - the next image that was accepted
 * @drive: the handle
 * @result: filled in
 * @timeout_ms: how long to wait; -1: until there is one
 * @why: becomes the sentence
 *
 * Enqueues what is due, and tells GPUs of Vulkan that the lock has risen: call it again and again.
 *
 * Return: 1; 0: none in this time; or a negative errno: -ENODATA (all images went through),
 * -ETIMEDOUT (nothing moved for the plan's patience), -EIO.
 */
static inline int rashpa_drive_next(struct rashpa_drive *drive, struct rashpa_driven *result,
				    int timeout_ms, char *why)
{
	return rashpa_drive_next_sized(drive, result, timeout_ms, why, sizeof(*result));
}

/**
 * rashpa_drive_result() - a copy of an image that was accepted, for rashpa_pipeline_put()
 * @drive: the handle
 * @from: of rashpa_drive_next(), not released
 * @to: a result of the drive's first pipeline; its frame and role are the caller's
 */
void rashpa_drive_result(const struct rashpa_drive *drive, const struct rashpa_driven *from,
			 struct rashpa_result *to);

/**
 * rashpa_drive_release() - give a result back
 * @drive: the handle
 * @result: of rashpa_drive_next(): of one GPU in the order in which they came
 */
void rashpa_drive_release(struct rashpa_drive *drive, const struct rashpa_driven *result);

/**
 * rashpa_drive_arrived() - images are there
 * @drive: the handle, whose plan has no lock
 * @arrived: how many, all in all; of a window: pieces
 */
void rashpa_drive_arrived(struct rashpa_drive *drive, uint32_t arrived);

/**
 * rashpa_drive_taken() - slots that may be written again
 * @drive: the handle
 *
 * Return: all images before this number were taken out of their slots; of a window: pieces.
 */
uint32_t rashpa_drive_taken(const struct rashpa_drive *drive);

/**
 * rashpa_drive_status() - what it has done so far
 * @drive: the handle
 * @stat: filled in
 */
static inline void rashpa_drive_status(const struct rashpa_drive *drive,
				       struct rashpa_drive_stat *stat)
{
	rashpa_drive_status_sized(drive, stat, sizeof(*stat));
}

/**
 * rashpa_drive_close() - let go of it, before the pipelines
 * @drive: the handle, or NULL
 * @why: becomes the sentence, or NULL
 *
 * Waits that are left get what they wait for: the lock is written, and then is what it was; so who
 * writes there has to be stopped before. The lock of a kernel that stays is not written.
 *
 * Return: 0, or -EIO: a GPU does not answer, and all that it has stays as long as this program.
 */
int rashpa_drive_close(struct rashpa_drive *drive, char *why);

#ifdef __cplusplus
}
#endif

#endif /* RASHPA_PROCESSING_H */
