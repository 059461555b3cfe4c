/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * librashpa: boards with the reference interface. See Documentation/fpga-interface.rst.
 */
#ifndef RASHPA_BOARD_H
#define RASHPA_BOARD_H

#include <stdint.h>

#include "rashpa.h"
#include "rashpa-fpga.h"
#include "rashpa-stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * DOC: Boards
 *
 * - A program opens a board, claims it, maps memory for its DTPs, and configures and starts them.
 *   A *run* does all this for a stream (rashpa-stream.h).
 * - Errors are as in rashpa.h: a negative errno, and a sentence from rashpa_reason().
 * - A board, its targets and its runs are for one thread at a time.
 * - Ticks are those of the board: @tick_rate of &struct rashpa_board_info. Timeouts are nanoseconds.
 * - A function that was removed reads as all ones, or raises SIGBUS.
 * - Structs grow as in rashpa.h, but &struct rashpa_board_view and &struct rashpa_block do not.
 */

/** struct rashpa_board - an open board; opaque */
struct rashpa_board;

/** struct rashpa_target - memory that DTPs or rings of a board can reach; opaque */
struct rashpa_target;

/** struct rashpa_run - DTPs of a board that fill a stream; opaque */
struct rashpa_run;

/** RASHPA_BOARD_DTP() - bit of DTP n, 0 to 15, in a mask of users */
#define RASHPA_BOARD_DTP(n)	(1u << (n))
/** RASHPA_BOARD_RING() - bit of ring n, 0 to 15, in a mask of users */
#define RASHPA_BOARD_RING(n)	(1u << (16 + (n)))

/**
 * struct rashpa_board_info - properties of a board
 * @number: N of /dev/rashpa/fpgaN
 * @version: version of the interface, major << 16 | minor
 * @dtps: number of DTPs, at most RFPGA_DTPS_MAX
 * @vectors: number of interrupt vectors that board and driver have
 * @entries: number of entries of the address table
 * @features: RFPGA_FEATURE_*
 * @tick_rate: ticks per second
 * @stop_time_us: longest time from STOP to idle, microseconds
 * @count_most: largest value of the registers that count, for example images of the dataset
 * @align: alignment of offsets in on-board memory and in a target, bytes
 * @device_flags: RASHPA_DEVICE_*
 * @units: number of processing units that pretreat images
 */
struct rashpa_board_info {
	uint32_t number;
	uint32_t version;
	uint32_t dtps;
	uint32_t vectors;
	uint32_t entries;
	uint32_t features;
	uint32_t tick_rate;
	uint32_t stop_time_us;
	uint32_t count_most;
	uint32_t align;
	uint32_t device_flags;
	uint32_t units;
};

/**
 * struct rashpa_board_view - a mapped window of a board
 * @base: its first byte
 * @length: usable bytes; of "memory" at most the memory that the board has
 * @fd: dma-buf of the window
 */
struct rashpa_board_view {
	volatile uint8_t *base;
	uint64_t length;
	int fd;
};

/**
 * struct rashpa_block - an entry of the board's list of blocks
 * @type: RFPGA_BLOCK_*
 * @count: number of such blocks
 * @base: offset of the first block in BAR 0, bytes
 * @step: bytes from block to block
 * @doorbell: offset of the first doorbell page in BAR 2, bytes; UINT32_MAX: none
 */
struct rashpa_block {
	uint32_t type;
	uint32_t count;
	uint32_t base;
	uint32_t step;
	uint32_t doorbell;
};

/**
 * struct rashpa_target_info - entries of the address table that a user has for a target
 * @first: first entry
 * @entries: number of entries
 * @segments: segments of the map
 * @map_class: enum rashpa_class of the map
 * @engine: engine of the profile that the entries belong to; -1: the profile has no engines
 */
struct rashpa_target_info {
	uint32_t first;
	uint32_t entries;
	uint32_t segments;
	uint32_t map_class;
	int32_t engine;
};

/**
 * struct rashpa_dtp_stat - counters of DTPs
 * @images: images that all of them have sent
 * @stacks: stacks that all of them have sent
 * @bytes: payload
 * @descriptors: descriptors executed
 * @events: interrupts sent
 * @overruns: stacks begun without credit
 * @faults: DTPs that a fault has stopped
 * @dropped: stacks dropped
 * @lost: images of a live source that found no room
 * @stall: ticks without credit
 * @stall_bus: ticks in which the bus accepted nothing
 * @stall_source: ticks without an image to send
 * @start: tick of the first START
 * @stop: tick of the last payload or record
 * @fifo_peak: most images of a live source that waited at once
 * @missed: images that the live source did not deliver; rashpa_run_get_stat() only
 */
struct rashpa_dtp_stat {
	uint64_t images;
	uint64_t stacks;
	uint64_t bytes;
	uint64_t descriptors;
	uint64_t events;
	uint64_t overruns;
	uint64_t faults;
	uint64_t dropped;
	uint64_t lost;
	uint64_t stall;
	uint64_t stall_bus;
	uint64_t stall_source;
	uint64_t start;
	uint64_t stop;
	uint64_t fifo_peak;
	uint64_t missed;
};

/**
 * struct rashpa_run_plan - images in on-board memory that a run sends
 * @offset: first image in on-board memory, bytes
 * @line_stride: bytes from line to line
 * @image_stride: bytes from image to image
 *
 * A stream whose header says live takes the images of the board's first live source instead.
 */
struct rashpa_run_plan {
	uint64_t offset;
	uint64_t line_stride;
	uint64_t image_stride;
};

/* The functions without _sized call these, with the sizes in the program's header. */
int rashpa_board_get_info_sized(const struct rashpa_board *board, struct rashpa_board_info *info,
				size_t size);
int rashpa_target_get_info_sized(const struct rashpa_target *target, uint32_t user,
				 struct rashpa_target_info *info, size_t size);
int rashpa_board_get_stat_sized(const struct rashpa_board *board, uint32_t dtps,
				struct rashpa_dtp_stat *stat, size_t size);
int rashpa_run_open_sized(struct rashpa_board *board, struct rashpa_stream *stream,
			  const struct rashpa_run_plan *plan, struct rashpa_run **run, size_t size);
int rashpa_run_get_stat_sized(const struct rashpa_run *run, struct rashpa_dtp_stat *stat,
			      size_t size);

/* --- board --- */

/**
 * rashpa_device_claim() - claim a function, whatever its interface, before mapping memory for it
 * @device: from rashpa_device_open()
 *
 * The end of a map stops DMA. So a function is claimed only if no other program has claimed it, and
 * if it has no addresses of other maps. A second call checks both again. The claim ends with
 * @device and its duplicates, or with flock(@device, LOCK_UN).
 *
 * Return: 0 or a negative errno: -EBUSY: the sentence names the other process.
 */
int rashpa_device_claim(int device);

/**
 * rashpa_board_open() - open a board with the reference interface
 * @name: "fpgaN", "N", or the path of the node
 * @board: becomes the handle; rashpa_board_close() it. It is set before the first register is read,
 *	for programs that leave this call in a handler of SIGBUS; NULL after a failure
 *
 * Maps the registers, which needs CAP_SYS_RAWIO.
 *
 * Return: 0 or a negative errno: -EINVAL (no such name), -ENOTSUP (another interface).
 */
int rashpa_board_open(const char *name, struct rashpa_board **board);

/**
 * rashpa_board_close() - close a board, its targets and its views
 * @board: the handle, or NULL
 *
 * Close its runs before.
 */
void rashpa_board_close(struct rashpa_board *board);

/**
 * rashpa_board_claim() - claim the board, before mapping memory for it
 * @board: the handle
 *
 * Call it again before the first map if much time has passed: not all producers claim a board.
 *
 * Return: 0 or a negative errno as rashpa_device_claim(), -EBUSY also while a DTP runs, -EIO if the
 * board is stuck, -ENODEV if it does not answer.
 */
int rashpa_board_claim(struct rashpa_board *board);

/**
 * rashpa_board_get_info() - properties of the board
 * @board: the handle
 * @info: filled in
 *
 * Return: 0, or -ENODEV if the board does not answer.
 */
static inline int rashpa_board_get_info(const struct rashpa_board *board,
					struct rashpa_board_info *info)
{
	return rashpa_board_get_info_sized(board, info, sizeof(*info));
}

/**
 * rashpa_board_device() - the board's node, for functions of rashpa.h
 * @board: the handle
 *
 * Return: the file descriptor, which stays the library's.
 */
int rashpa_board_device(const struct rashpa_board *board);

/** rashpa_board_read() - register at this offset of BAR 0, below RFPGA_BOUNDS */
uint32_t rashpa_board_read(const struct rashpa_board *board, uint32_t offset);
/** rashpa_board_read64() - register pair at this offset, likewise */
uint64_t rashpa_board_read64(const struct rashpa_board *board, uint32_t offset);
/** rashpa_board_write() - store a register at this offset, likewise */
void rashpa_board_write(const struct rashpa_board *board, uint32_t offset, uint32_t value);
/** rashpa_board_write64() - store a register pair at this offset, likewise */
void rashpa_board_write64(const struct rashpa_board *board, uint32_t offset, uint64_t value);

/**
 * rashpa_board_window() - map a window of the board
 * @board: the handle
 * @name: "registers", "memory", "doorbells", "doorbellN" (page N), "bounds", or a window of the profile
 * @view: filled in; the library owns it until rashpa_board_close()
 *
 * The first five are mapped also without a profile. A second call returns the same view.
 *
 * Return: 0 or a negative errno.
 */
int rashpa_board_window(struct rashpa_board *board, const char *name,
			struct rashpa_board_view *view);

/**
 * rashpa_board_block() - an entry of the board's list of blocks
 * @board: the handle
 * @index: number of the entry, from 0
 * @block: filled in
 *
 * Return: 0, or -ENOENT after the last entry.
 */
int rashpa_board_block(const struct rashpa_board *board, unsigned int index,
		       struct rashpa_block *block);

/**
 * rashpa_board_find_block() - the first blocks of a type
 * @board: the handle
 * @type: RFPGA_BLOCK_*
 * @size: bytes of registers that a block must have; all blocks are in the mapped registers
 * @block: filled in
 *
 * Return: 0, or -ENOENT: the board has none.
 */
int rashpa_board_find_block(const struct rashpa_board *board, uint32_t type, uint32_t size,
			    struct rashpa_block *block);

/* --- DTPs --- */

/**
 * rashpa_board_map() - let DTPs and rings reach a memory
 * @board: the handle, claimed
 * @users: mask of RASHPA_BOARD_DTP() and RASHPA_BOARD_RING()
 * @dmabuf: the memory; stays the caller's
 * @flags: RASHPA_MAP_*
 * @target: becomes the handle; rashpa_target_close() it
 *
 * Maps the memory in both directions, since a board may read back what it wrote, and writes its
 * segments to free entries of the address table: one map for each engine of the profile.
 *
 * Return: 0 or a negative errno: -ENOSPC (the board has too few entries for the segments), -ENOENT
 * (the profile has no engine for a user), or as RASHPA_IOC_MAP_MAKE and RASHPA_IOC_PROGRAM.
 */
int rashpa_board_map(struct rashpa_board *board, uint32_t users, int dmabuf, uint32_t flags,
		     struct rashpa_target **target);

/**
 * rashpa_target_close() - end the maps of a memory
 * @target: from rashpa_board_map(), or NULL
 *
 * The driver stops the engines of these maps, without engines the whole board.
 */
void rashpa_target_close(struct rashpa_target *target);

/**
 * rashpa_target_get_info() - the entries of one user
 * @target: from rashpa_board_map()
 * @user: RASHPA_BOARD_DTP() or RASHPA_BOARD_RING()
 * @info: filled in
 *
 * Return: 0, or -EINVAL if the memory was not mapped for @user.
 */
static inline int rashpa_target_get_info(const struct rashpa_target *target, uint32_t user,
					 struct rashpa_target_info *info)
{
	return rashpa_target_get_info_sized(target, user, info, sizeof(*info));
}

/**
 * rashpa_board_configure() - write the configuration of a DTP
 * @board: the handle
 * @dtp: number of the DTP, which must not run
 * @config: its registers, see &struct rfpga_dtp; START checks them
 */
void rashpa_board_configure(const struct rashpa_board *board, unsigned int dtp,
			    const struct rfpga_dtp *config);

/**
 * rashpa_board_start() - start DTPs
 * @board: the handle
 * @dtps: mask of RASHPA_BOARD_DTP(), configured
 *
 * Several DTPs start together if the board supports groups.
 *
 * Return: 0, or as rashpa_board_status(): a refused START is a fault.
 */
int rashpa_board_start(const struct rashpa_board *board, uint32_t dtps);

/**
 * rashpa_board_stop() - stop DTPs, and wait until they have stopped
 * @board: the handle
 * @dtps: mask of RASHPA_BOARD_DTP()
 * @timeout_ns: longest wait; -1: for ever
 *
 * Return: 0, -ENODEV if the board does not answer, or -ETIMEDOUT. After an error
 * rashpa_device_quiesce() makes the driver stop the board.
 */
int rashpa_board_stop(const struct rashpa_board *board, uint32_t dtps, int64_t timeout_ns);

/**
 * rashpa_board_status() - state of DTPs
 * @board: the handle
 * @dtps: mask of RASHPA_BOARD_DTP()
 * @any: becomes the bits RFPGA_DTP_* that are set in the status of any of them; or NULL
 * @all: becomes the bits that are set in all of them; or NULL
 *
 * Return: 0, -EIO if a fault has stopped one of them (the sentence has the cause and the address),
 * or -ENODEV if the board does not answer.
 */
int rashpa_board_status(const struct rashpa_board *board, uint32_t dtps, uint32_t *any,
			uint32_t *all);

/**
 * rashpa_board_get_stat() - counters of DTPs since their START
 * @board: the handle
 * @dtps: mask of RASHPA_BOARD_DTP()
 * @stat: filled in: sums, except where &struct rashpa_dtp_stat says otherwise
 *
 * Return: 0, or -ENODEV if the board does not answer: then @stat has no meaning.
 */
static inline int rashpa_board_get_stat(const struct rashpa_board *board, uint32_t dtps,
					struct rashpa_dtp_stat *stat)
{
	return rashpa_board_get_stat_sized(board, dtps, stat, sizeof(*stat));
}

/**
 * rashpa_fault_name() - "entry", "bus", "master", "source", "config", "descriptor", "none", or "?"
 * @cause: RFPGA_FAULT_*
 *
 * Return: one of these.
 */
const char *rashpa_fault_name(uint32_t cause);

/* --- runs --- */

/**
 * rashpa_run_open() - prepare the DTPs that fill a stream
 * @board: the handle, claimed; the caller closes it after the run
 * @stream: from rashpa_stream_create(), likewise
 * @plan: the images to send; see &struct rashpa_run_plan
 * @run: becomes the handle; rashpa_run_close() it
 *
 * Each process of the stream whose function is RASHPA_STREAM_FPGA, and whose fpga is this board, is
 * a DTP with the same number. Other processes are not touched: several boards may fill one stream.
 * Maps the payload, the header's buffer and the lock memory for these DTPs.
 *
 * Return: 0 or a negative errno: -EINVAL (no process of the stream is this board's), -ENOTSUP (the
 * board lacks something that the stream needs), or as rashpa_board_map().
 */
static inline int rashpa_run_open(struct rashpa_board *board, struct rashpa_stream *stream,
				  const struct rashpa_run_plan *plan, struct rashpa_run **run)
{
	return rashpa_run_open_sized(board, stream, plan, run, sizeof(*plan));
}

/**
 * rashpa_run_start() - start the DTPs, and the live source if the stream has one
 * @run: from rashpa_run_open()
 * @first: number of the stack to begin with: first_stack of the header, or after rashpa_run_stop()
 *	that of rashpa_stream_again()
 * @period: ticks from image to image, for a live source and for streams that do not wait; 0: as
 *	fast as possible, not with a live source
 *
 * Begins the stream, too, unless it runs: rashpa_stream_start(). Open the runs of all boards before
 * the first start. A stream of a live source, or one that drops stacks, starts only once.
 *
 * Return: 0, or a negative errno as rashpa_stream_start() and rashpa_board_start(); -ENOTSUP: this
 * stream does not start again.
 */
int rashpa_run_start(struct rashpa_run *run, uint64_t first, uint64_t period);

/**
 * rashpa_run_stop() - stop the DTPs and the live source
 * @run: from rashpa_run_open()
 * @timeout_ns: longest wait; -1: for ever
 *
 * Return: as rashpa_board_stop().
 */
int rashpa_run_stop(struct rashpa_run *run, int64_t timeout_ns);

/**
 * rashpa_run_ended_by() - check whether an event has stopped the run
 * @run: from rashpa_run_open(), started
 * @event: any record of a channel of the board
 *
 * Return: 1 if the driver stopped the DTPs of the run, 0 if the event does not concern it.
 */
int rashpa_run_ended_by(const struct rashpa_run *run, const struct rashpa_event *event);

/**
 * rashpa_run_get_stat() - counters of the run since its first start
 * @run: from rashpa_run_open()
 * @stat: filled in; stacks that were sent again count once in images and stacks
 *
 * Return: as rashpa_board_get_stat().
 */
static inline int rashpa_run_get_stat(const struct rashpa_run *run, struct rashpa_dtp_stat *stat)
{
	return rashpa_run_get_stat_sized(run, stat, sizeof(*stat));
}

/**
 * rashpa_run_end() - end the stream with the counts of this run
 * @run: from rashpa_run_open(), stopped
 *
 * rashpa_stream_end() with the numbers of one DTP of @run.
 *
 * Return: as rashpa_stream_end().
 */
int rashpa_run_end(const struct rashpa_run *run);

/**
 * rashpa_run_close() - end the maps of a run, which stops its DTPs
 * @run: from rashpa_run_open(), or NULL
 */
void rashpa_run_close(struct rashpa_run *run);

#ifdef __cplusplus
}
#endif

#endif /* RASHPA_BOARD_H */
