/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * librashpa-processing: converts raw images to photons, selects images, and reduces and stores
 * them. See Documentation/processing.rst.
 */
#ifndef RASHPA_PROCESSING_H
#define RASHPA_PROCESSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rashpa.h"
#include "rashpa-stream-format.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * DOC: Pipelines
 *
 * - A pipeline is opened from JSON, begun with the geometry of a stream, and run for each image.
 * - Errors and timeouts are as in rashpa.h.
 * - rashpa_pipeline_begin() and rashpa_result_new() allocate all memory.
 * - One thread at a time may use a pipeline, which computes with OpenMP's threads. One thread at a
 *   time may use a result; it may be another thread.
 * - Only the process that opened a pipeline may use it. A process that was forked after OpenMP ran
 *   lacks its threads, and cannot begin a pipeline either. These calls fail with -EBUSY.
 */

/** struct rashpa_pipeline - stages and their state; opaque */
struct rashpa_pipeline;

/**
 * struct rashpa_raw_ring - ring of raw images in the memory of rashpa_pipeline_offer()
 * @offset: offset of the first image, bytes
 * @step: distance of images, bytes; lines have no gaps
 * @slots: number of images in the ring; 0: images are in other memory
 * @__reserved: 0
 */
struct rashpa_raw_ring {
	uint64_t offset, step;
	uint32_t slots;
	uint32_t __reserved;
};

/**
 * struct rashpa_geometry - size and type of images
 * @width: pixels
 * @height: pixels
 * @pixel: enum rashpa_pixel: u8, u16 or u32
 * @bunch: images that arrive together; 1: single images
 * @ring: ring of raw images in the engine's memory
 */
struct rashpa_geometry {
	uint32_t width, height;
	uint32_t pixel;
	uint32_t bunch;
	struct rashpa_raw_ring ring;
};

/**
 * struct rashpa_peak - one peak of an image
 * @x: horizontal position, pixels from the middle of the first pixel
 * @y: vertical position, pixels
 * @sum: sum above the background, in the unit of the image
 * @background: mean background
 * @snr: @sum divided by its deviation
 * @pixels: pixels of the peak
 */
struct rashpa_peak {
	float x, y;
	float sum, background, snr;
	uint32_t pixels;
};

/**
 * struct rashpa_result - result of an image; arrays of stages that are not configured are NULL
 * @frame: frame number, as the detector counts
 * @role: enum rashpa_image_role
 * @kept: the image passed the veto
 * @above: pixels above the veto's threshold
 * @width: width of @image, pixels
 * @height: height of @image, pixels
 * @image: pixels in the unit of the calibration, NaN: invalid; NULL also for an image that a GPU
 *	has vetoed, which stays in the GPU's memory
 * @row: compressed: line y has the elements from row[y] to before row[y + 1]; NULL if there were
 *	more than fit
 * @column: column of each element
 * @value: value of each element
 * @elements: number of elements above the threshold, which may exceed the capacity
 * @bins: elements of the profile
 * @intensity: mean of each bin; NaN: the bin has no pixel
 * @sigma: error of each bin; NULL: not configured
 * @peak: peaks
 * @peaks: number of elements of @peak
 * @peaks_found: number of peaks found, which may exceed the capacity
 * @images: number of images in @mean and @deviation; 0: no statistics with this image
 * @mean: mean of the last images, pixel by pixel
 * @deviation: deviation of a single image, pixel by pixel
 * @signal: images of the pipeline so far, this one included, without dark images
 * @signal_kept: images among @signal that passed the veto
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
 * struct rashpa_stage_stat - statistics of a stage or sink
 * @name: name of the stage
 * @images: images processed
 * @lost: images that a sink could not keep
 * @ns: time for all images
 * @bytes_in: bytes read, without calibration
 * @bytes_out: bytes written
 */
struct rashpa_stage_stat {
	const char *name;
	uint64_t images, lost, ns, bytes_in, bytes_out;
};

/**
 * struct rashpa_pipeline_stat - statistics of a pipeline
 * @images: signal images
 * @dark: dark images
 * @vetoed: images among @images that a veto left out
 * @overflow: images with more pixels or peaks than the capacity
 * @stage: array of stages
 * @stages: number of elements of @stage
 * @sink: array of sinks: bytes_in counts results, bytes_out counts bytes for the file or for
 *	subscribers
 * @sinks: number of elements of @sink
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
 * come as arrays, do not grow. If the program returns a &struct rashpa_driven, the library reads
 * only the members of its first version.
 */
int rashpa_pipeline_begin_sized(struct rashpa_pipeline *pipeline,
				const struct rashpa_geometry *geometry, size_t size);
struct rashpa_result *rashpa_result_new_sized(const struct rashpa_pipeline *pipeline, size_t size);
void rashpa_pipeline_get_stat_sized(const struct rashpa_pipeline *pipeline,
				    struct rashpa_pipeline_stat *stat, size_t size);
int rashpa_drive_open_sized(struct rashpa_pipeline * const *pipelines, uint32_t count,
			    const struct rashpa_drive_plan *plan, struct rashpa_drive **drive,
			    size_t size);
int rashpa_drive_next_sized(struct rashpa_drive *drive, struct rashpa_driven *result,
			    int64_t timeout_ns, size_t size);
void rashpa_drive_get_stat_sized(const struct rashpa_drive *drive, struct rashpa_drive_stat *stat,
				 size_t size);

/**
 * rashpa_pipeline_open() - read the configuration of a pipeline
 * @config: a file with JSON; or JSON itself, which begins with "{"
 * @engine: "cpu" or "reference"; NULL: "cpu"; or a GPU, named as in rashpa_gpu_open(), that
 *	pretreats, counts for the veto, compresses and integrates; or a board, as "fpga0", that
 *	pretreats. The CPU does the rest. A program that uses a board must handle SIGBUS, which
 *	it receives if the board is removed
 * @pipeline: becomes the handle; release it by rashpa_pipeline_close()
 *
 * Return: 0 or a negative errno.
 */
int rashpa_pipeline_open(const char *config, const char *engine,
			 struct rashpa_pipeline **pipeline);

/**
 * rashpa_pipeline_near() - process on the NUMA node of the images
 * @node: NUMA node of their memory, as Linux counts; -1: unknown
 *
 * Binds this thread and those of OpenMP to the processors of that node, one thread for each. Call
 * it before rashpa_pipeline_begin(), whose buffers are then on that node, too. OMP_NUM_THREADS,
 * OMP_PLACES, OMP_PROC_BIND or GOMP_CPU_AFFINITY in the environment take precedence.
 *
 * Return: number of bound threads; 0: none, since the node makes no difference or the environment
 * decides; or a negative errno: all processors are used.
 */
int rashpa_pipeline_near(int node);

/**
 * rashpa_pipeline_offer() - offer a part of the engine's memory for raw images
 * @pipeline: handle of a pipeline that has not begun, whose engine is a GPU or a board
 * @base: becomes the address in this program; pass addresses in this range to
 *	rashpa_pipeline_run(). The program cannot read all kinds of GPU memory there
 * @length: requested bytes, 0: default; becomes the size. A board offers half of its memory, and
 *	keeps the rest for calibration and results; the default of a GPU is 64 MiB
 *
 * Other devices, such as another board, can write there: rashpa_payload_hand() passes the memory
 * to their producer. Set the ring of the geometry to the place of the images; no CPU copies them.
 * The dma-buf gives access to the offered part only.
 *
 * Return: the dma-buf, which the library owns until rashpa_pipeline_close(), or a negative errno:
 * -EOPNOTSUPP (the engine is neither GPU nor board), -EBUSY, -EIO.
 */
int rashpa_pipeline_offer(struct rashpa_pipeline *pipeline, const void **base, uint64_t *length);

/**
 * rashpa_pipeline_begin() - read calibration, allocate buffers
 * @pipeline: the handle
 * @geometry: geometry of the images
 *
 * Return: 0 or a negative errno.
 */
static inline int rashpa_pipeline_begin(struct rashpa_pipeline *pipeline,
					const struct rashpa_geometry *geometry)
{
	return rashpa_pipeline_begin_sized(pipeline, geometry, sizeof(*geometry));
}

/**
 * rashpa_result_new() - allocate the result of an image
 * @pipeline: the handle, begun
 *
 * Return: the result, to release by rashpa_result_free(); NULL: no memory.
 */
static inline struct rashpa_result *rashpa_result_new(const struct rashpa_pipeline *pipeline)
{
	return rashpa_result_new_sized(pipeline, sizeof(struct rashpa_result));
}

/**
 * rashpa_result_free() - release a result and its arrays
 * @result: the result, or NULL
 */
void rashpa_result_free(struct rashpa_result *result);

/**
 * rashpa_pipeline_run() - process an image
 * @pipeline: the handle, begun
 * @image: its first pixel, little-endian; a sink of raw images reads it in rashpa_pipeline_put(), too
 * @line_stride: bytes from line to line
 * @result: frame and role are set by the caller; the rest is filled in. Images whose role is not
 *	signal or dark are processed as signal
 *
 * Return: 1: keep the result; 0: veto, or a dark image; or a negative errno if the image was not
 *	processed: -EIO (a board or GPU failed), -EINVAL (the pipeline
 *	has not begun or is finished, or the result belongs to another one), -EBUSY (this process is
 *	a fork).
 */
int rashpa_pipeline_run(struct rashpa_pipeline *pipeline, const void *image, size_t line_stride,
			struct rashpa_result *result);

/**
 * rashpa_pipeline_worker() - let other threads process images of a pipeline
 * @pipeline: the handle, begun, with engine cpu or reference
 * @worker: becomes a handle for rashpa_pipeline_run() with results of @pipeline; release it by
 *	rashpa_pipeline_close() before @pipeline
 *
 * Workers process an image each, in one thread. All share the calibration, which a dark
 * image changes: run one while no other worker runs. Then rashpa_pipeline_put() takes each result,
 * kept or not, in the order of images: it counts them, and accumulates.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int rashpa_pipeline_worker(const struct rashpa_pipeline *pipeline, struct rashpa_pipeline **worker);

/**
 * rashpa_pipeline_axis() - positions of the bins of profiles
 * @pipeline: the handle, begun
 * @bins: becomes the number of bins
 * @unit: becomes their unit: 2th_deg, q_nm^-1, q_A^-1 or r_mm
 *
 * Return: the middle of each bin, owned by the library; NULL: there is no stage integrate.
 */
const double *rashpa_pipeline_axis(const struct rashpa_pipeline *pipeline, uint32_t *bins,
				   const char **unit);

/**
 * rashpa_pipeline_put() - write a result to the sinks
 * @pipeline: the handle, begun
 * @result: result for which rashpa_pipeline_run() returned 1, or each one of a worker
 *
 * The thread may differ from that of rashpa_pipeline_run(), but must always be the same. Sinks
 * write results in the order of the calls.
 *
 * Return: 0; 1: a sink with "go_on" lost the result, the sentence names it and the reason, and the
 * other sinks have the result; or a negative errno: another sink lost it; -EINVAL: the result is
 * not one to keep.
 */
int rashpa_pipeline_put(struct rashpa_pipeline *pipeline, const struct rashpa_result *result);

/**
 * rashpa_pipeline_flush() - make all results visible to readers
 * @pipeline: the handle, begun
 *
 * They survive the end of this program, too. The thread that puts results calls it before it
 * releases their raw images.
 *
 * Return: as rashpa_pipeline_put(), for results since the last flush.
 */
int rashpa_pipeline_flush(struct rashpa_pipeline *pipeline);

/**
 * rashpa_pipeline_finish() - complete the files of sinks
 * @pipeline: the handle
 *
 * Without this call files contain the results so far and are marked as incomplete. So are files
 * that have lost a result. A pipeline that has not begun has no files. A finished one takes no more
 * images.
 *
 * Return: 0, or a negative errno: -EINVAL if it could not begin.
 */
int rashpa_pipeline_finish(struct rashpa_pipeline *pipeline);

/**
 * rashpa_pipeline_get_stat() - what it has done so far
 * @pipeline: the handle
 * @stat: filled in; the array is the library's
 */
static inline void rashpa_pipeline_get_stat(const struct rashpa_pipeline *pipeline,
					    struct rashpa_pipeline_stat *stat)
{
	rashpa_pipeline_get_stat_sized(pipeline, stat, sizeof(*stat));
}

/**
 * rashpa_pipeline_close() - release a pipeline, but not its results
 * @pipeline: the handle, or NULL
 */
void rashpa_pipeline_close(struct rashpa_pipeline *pipeline);

/**
 * DOC: Drives
 *
 * - With a drive, GPUs of CUDA or Vulkan fetch images without the CPU. They pretreat, apply a veto
 *   by pixels, and copy accepted images to the host. A drive uses the calibration and threshold
 *   of one begun pipeline for each GPU, which must not run meanwhile. The GPUs take images in turn.
 * - Dark images move the pedestal, as in the pipeline: rashpa_drive_role() names them.
 * - One thread at a time may use a drive, except for rashpa_drive_arrived() and
 *   rashpa_drive_role().
 */

/** struct rashpa_drive - GPUs that fetch images; opaque */
struct rashpa_drive;

/** enum rashpa_drive_way - how a drive detects that an image has arrived */
enum rashpa_drive_way {
	/** @RASHPA_DRIVE_LAUNCH: the host detects it, and enqueues work then */
	RASHPA_DRIVE_LAUNCH,
	/** @RASHPA_DRIVE_AHEAD: the host enqueues work before, which waits for the lock */
	RASHPA_DRIVE_AHEAD,
	/**
	 * @RASHPA_DRIVE_POLL: a persistent kernel of one group of lanes polls the lock. It suits
	 * small images in host memory, or in memory of a GPU that sees writes of others in order.
	 * Other kernels may use the rest of the GPU. On Vulkan the kernel ends now and then, and
	 * rashpa_drive_next() starts it again
	 */
	RASHPA_DRIVE_POLL,
};

/**
 * struct rashpa_drive_plan - parameters of a drive
 * @way: enum rashpa_drive_way
 * @images: total number of images
 * @raw: slots of raw images in host memory whose whole pages can be registered; NULL: in the
 *	memory that the only GPU has offered
 * @step: distance of slots, bytes, a multiple of 4
 * @slots: image s is in slot s % @slots
 * @lock: word in host memory that is at least s + 1 when image s has arrived, and only rises; a
 *	board or any program writes it. NULL: the program calls rashpa_drive_arrived()
 * @credits: most accepted results that are not yet released, for each GPU; more are dropped and
 *	counted
 * @ahead: images that are enqueued before they were computed, for each GPU
 * @window_bytes: size of the window, if it is smaller than the offered memory: piece p of the
 *	images, half a window long, is in half p & 1. The lock counts pieces, and GPUs copy a piece
 *	while the next one arrives. 0: the whole ring is accessible
 * @lock_images: images of a stack, which @lock counts at a time, for a persistent kernel; 0: one
 * @given: a persistent kernel writes here the number of stacks whose slots are free, by one store
 *	of 32 bits, so that it works without the host; rashpa_drive_next() and
 *	rashpa_drive_get_stat() report its results. Host memory in another page than @lock, or a doorbell of a board. NULL:
 *	the host releases slots, see rashpa_drive_taken()
 * @given_is_window: @given is in a window of a board, which this program has mapped
 * @patience_ns: longest time without progress; the error then names the blocking wait. It does not
 *	count while the caller holds all @credits
 * @__reserved: 0
 * @trace: a file for a timeline in Chrome's trace format: when images were copied in, computed and
 *	copied out, as rashpa_drive_next() saw it; replaced if it exists. NULL: none
 * @pairs: image 2N + 1 is computed before image 2N, whose dark image it is; for one GPU, without
 *	@given and @window_bytes
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
	uint64_t patience_ns;
	uint32_t *given;
	uint32_t lock_images;
	bool given_is_window;
	uint8_t __reserved[3];
	const char *trace;
	bool pairs;
};

/**
 * struct rashpa_driven - an image that was accepted
 * @frame: number of the image, from 0
 * @above: pixels above the threshold
 * @gpu: index of the GPU that computed it
 * @image: pretreated image, valid until rashpa_drive_release()
 */
struct rashpa_driven {
	uint32_t frame, above, gpu;
	const float *image;
};

/**
 * struct rashpa_drive_stat - statistics of a drive
 * @images: images computed, dark ones included
 * @accepted: images accepted
 * @vetoed: images vetoed
 * @dropped: images that passed the veto, but found no credit
 * @results: results returned by rashpa_drive_next()
 * @copies_ahead: enqueued copies of results that await the veto
 * @dark: dark images among @images
 */
struct rashpa_drive_stat {
	uint64_t images, accepted, vetoed, dropped, results;
	uint32_t copies_ahead;
	uint64_t dark;
};

/**
 * rashpa_drive_open() - start a drive
 * @pipelines: different begun pipelines with engine cuda or vulkan, the same veto, and no other
 *	drive; the caller owns them, and keeps them open
 * @count: elements of @pipelines, 1 to 16
 * @plan: parameters
 * @drive: becomes the handle; release it by rashpa_drive_close()
 *
 * Return: 0 or a negative errno: -EINVAL, -EOPNOTSUPP (another engine), -EBUSY (a pipeline has a
 * drive), -ENOMEM, -EIO (a GPU refused a call, or a Vulkan GPU supports no imported host memory or
 * no timeline semaphores).
 */
static inline int rashpa_drive_open(struct rashpa_pipeline * const *pipelines, uint32_t count,
				    const struct rashpa_drive_plan *plan,
				    struct rashpa_drive **drive)
{
	return rashpa_drive_open_sized(pipelines, count, plan, drive, sizeof(*plan));
}

/**
 * rashpa_drive_next() - get the next accepted image
 * @drive: the handle
 * @result: filled in
 * @timeout_ns: longest wait
 *
 * Enqueues due work, and signals a risen lock to GPUs of Vulkan: call it repeatedly.
 *
 * Return: 1; 0: all images were processed; or a negative errno: -ETIMEDOUT, -EIO (a GPU failed, or there
 * was no progress for the plan's patience).
 */
static inline int rashpa_drive_next(struct rashpa_drive *drive, struct rashpa_driven *result,
				    int64_t timeout_ns)
{
	return rashpa_drive_next_sized(drive, result, timeout_ns, sizeof(*result));
}

/**
 * rashpa_drive_result() - copy an accepted image for rashpa_pipeline_put()
 * @drive: the handle
 * @from: image from rashpa_drive_next(), not released
 * @to: a result of the drive's first pipeline; the caller sets its frame and role
 */
void rashpa_drive_result(const struct rashpa_drive *drive, const struct rashpa_driven *from,
			 struct rashpa_result *to);

/**
 * rashpa_drive_release() - release a result
 * @drive: the handle
 * @result: image from rashpa_drive_next(); release those of one GPU in their order
 */
void rashpa_drive_release(struct rashpa_drive *drive, const struct rashpa_driven *result);

/**
 * rashpa_drive_role() - set the role of an image, before it arrives
 * @drive: the handle
 * @image: number of the image
 * @role: enum rashpa_image_role. A program that calls this for one image calls it for all, in their
 *	order, and not before the image @slots earlier is computed. Images of others are signals
 *
 * Another thread may call this.
 *
 * Return: 0 or -EINVAL (a dark image, and several GPUs).
 */
int rashpa_drive_role(struct rashpa_drive *drive, uint32_t image, uint32_t role);

/**
 * rashpa_drive_arrived() - announce images
 * @drive: the handle, whose plan has no lock
 * @arrived: total number of images so far, or of pieces with a window
 */
void rashpa_drive_arrived(struct rashpa_drive *drive, uint32_t arrived);

/**
 * rashpa_drive_taken() - get the slots that may be overwritten
 * @drive: the handle
 *
 * Return: the slots of all images before this number are free, or pieces with a window.
 */
uint32_t rashpa_drive_taken(const struct rashpa_drive *drive);

/**
 * rashpa_drive_get_stat() - what it has done so far
 * @drive: the handle
 * @stat: filled in
 */
static inline void rashpa_drive_get_stat(const struct rashpa_drive *drive,
					 struct rashpa_drive_stat *stat)
{
	rashpa_drive_get_stat_sized(drive, stat, sizeof(*stat));
}

/**
 * rashpa_drive_close() - release a drive, before its pipelines
 * @drive: the handle, or NULL
 *
 * Stop the writer of the lock first: the call raises the lock for a moment to end the remaining
 * waits, then restores it. It does not write the lock of a persistent kernel.
 *
 * Return: 0, or -EIO: a GPU does not answer, and its memory is released only when this program
 * ends.
 */
int rashpa_drive_close(struct rashpa_drive *drive);

#ifdef __cplusplus
}
#endif

#endif /* RASHPA_PROCESSING_H */
