/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * librashpa: streams. A consumer is ten lines, see Documentation/stream.rst.
 */
#ifndef RASHPA_STREAM_H
#define RASHPA_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "rashpa-stream-format.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * DOC: Streams
 *
 * - A stream is a named buffer with a header. A name with a slash is the path of a file instead:
 *   stream.rst lists the differences. The library waits until a stream begins in the
 *   buffer. When that has ended, it waits for the next stream.
 * - Errors and timeouts are as in rashpa.h.
 * - A handle is for one thread at a time; only rashpa_stream_release(), rashpa_stack_image(),
 *   rashpa_stack_intact(), rashpa_stream_get_clock() and rashpa_stream_wake() may be called from any thread at any time until
 *   rashpa_stream_close().
 * - Taking stacks allocates nothing. It makes no system call while complete stacks are available.
 */

struct rfpga_lock;	/* rashpa-fpga.h */

/** struct rashpa_stream - a consumer, an observer or a producer; opaque */
struct rashpa_stream;

/** RASHPA_STREAM_OBSERVE - observe only: give no credit; read permission is enough */
#define RASHPA_STREAM_OBSERVE		(1u << 0)
/**
 * RASHPA_STREAM_FROM_START - begin at the first stack, also of a stream that has ended. Stacks that
 * others gave back before may be overwritten while they are held: rashpa_stack_intact()
 */
#define RASHPA_STREAM_FROM_START	(1u << 1)
/** RASHPA_STREAM_LATEST - with OBSERVE: take only the latest complete stack */
#define RASHPA_STREAM_LATEST		(1u << 2)
/** RASHPA_STREAM_FRESH - only streams that begin after this call; leave the rest of earlier ones */
#define RASHPA_STREAM_FRESH		(1u << 3)
/**
 * RASHPA_STREAM_WRITE - not with OBSERVE: the consumer may write into stacks that it holds. No other
 * place has a consumer meanwhile
 */
#define RASHPA_STREAM_WRITE		(1u << 4)
/** RASHPA_STREAM_NO_DATA - only count: the payload is not opened, and pixels are at NULL */
#define RASHPA_STREAM_NO_DATA		(1u << 5)
/** RASHPA_STREAM_LOSE - not with OBSERVE: credit does not wait; after a loss the newest stack is next */
#define RASHPA_STREAM_LOSE		(1u << 6)
/**
 * RASHPA_STREAM_PIN - with WRITE: the consumer changes no pixel, and only pins slots in a way that needs
 * the right to write, as io_uring does. Other places may have consumers
 */
#define RASHPA_STREAM_PIN		(1u << 7)

/** RASHPA_STACK_INCOMPLETE - lines or messages are missing: rashpa_stack_image(), @missing */
#define RASHPA_STACK_INCOMPLETE		(1u << 0)
/** RASHPA_STACK_WRONG - metadata of an image are another stack's, or its parts several frames' */
#define RASHPA_STACK_WRONG		(1u << 1)
/** RASHPA_STACK_ROLES - an image is something else than signal: rashpa_stack_image(), role */
#define RASHPA_STACK_ROLES		(1u << 2)

/**
 * struct rashpa_stack - images that came together
 * @data: first pixel of the first image; NULL if the payload cannot be mapped, or with
 *	RASHPA_STREAM_NO_DATA. Only producers, and consumers with RASHPA_STREAM_WRITE, may write there;
 *	others get SIGSEGV
 * @number: stack number, counted from the first stack in the buffer
 * @frame: frame number of the first image, as the detector counts
 * @images: number of images; image i begins @image_stride after image i - 1
 * @flags: RASHPA_STACK_*
 * @width: image width, pixels
 * @height: image height, pixels
 * @pixel: enum rashpa_pixel
 * @pixel_bytes: bytes per pixel
 * @line_stride: bytes from line to line
 * @image_stride: bytes from image to image
 * @slot: number of the slot that holds the stack
 * @run: id of the run that the stack belongs to
 * @lost: frames lost right before this stack: they were overwritten before they could be taken
 * @skipped: frames that the stream has left out so far, by the frame numbers
 * @missing: messages that did not come, if the producer counts messages
 * @time_ns: CLOCK_MONOTONIC when it was complete, if the producer reports it; else 0
 * @event_ns: CLOCK_MONOTONIC of the event that ended the wait for the stack, as the driver saw it;
 *	0: the stack was complete without a wait
 * @woken_ns: CLOCK_MONOTONIC when that wait returned, likewise
 * @user: the producer's user words, if it sets any
 * @stream: stream that the stack belongs to
 */
struct rashpa_stack {
	void *data;
	uint64_t number;
	uint64_t frame;
	uint32_t images;
	uint32_t flags;
	uint32_t width;
	uint32_t height;
	uint32_t pixel;
	uint32_t pixel_bytes;
	uint64_t line_stride;
	uint64_t image_stride;
	uint32_t slot;
	uint32_t run;
	uint64_t lost;
	uint64_t skipped;
	uint64_t missing;
	uint64_t time_ns;
	uint64_t event_ns;
	uint64_t woken_ns;
	uint64_t user[8];
	struct rashpa_stream *stream;
};

/**
 * struct rashpa_image - one image of a stack
 * @data: its first pixel
 * @frame: its number, as the detector counts
 * @trigger: number of the trigger, if the detector reports it
 * @time: time of the detector's clock, if the detector reports it
 * @role: enum rashpa_image_role, or the detector's own
 * @missing_lines: lines that did not come, of all processes
 * @known: 1: the numbers are the detector's. 0: the stream has no metadata, and they follow
 *	from the number of the stack
 * @wrong: 1: metadata belong to another stack, or to several frames, so the pixels are unreliable
 */
struct rashpa_image {
	void *data;
	uint64_t frame;
	uint64_t trigger;
	uint64_t time;
	uint32_t role;
	uint32_t missing_lines;
	uint32_t known;
	uint32_t wrong;
};

/**
 * struct rashpa_stream_stat - counts of this run so far
 * @stacks: stacks taken
 * @frames: frames in these stacks
 * @lost: frames that were overwritten before they were taken, or while they were held
 * @skipped: frames that the stream left out, by the frame numbers
 * @incomplete: stacks with missing lines or messages
 * @held: stacks that were taken and not released
 * @behind: stacks that are complete and not taken
 * @waits: calls that had to wait
 * @events: records of complete stacks that were seen
 * @events_lost: records that found no room in the driver's queue
 * @overruns: parts of stacks that were written before their slot was given back
 * @consumed: stacks that no consumer, present or future, asks for again
 * @state: enum rashpa_stream_state, as the producer wrote it
 * @producer: process id of the producer; 0: no producer; -1: not visible from here
 * @consumer: process id of the consumer, likewise
 * @__reserved: not used
 */
struct rashpa_stream_stat {
	uint64_t stacks;
	uint64_t frames;
	uint64_t lost;
	uint64_t skipped;
	uint64_t incomplete;
	uint64_t held;
	uint64_t behind;
	uint64_t waits;
	uint64_t events;
	uint64_t events_lost;
	uint64_t overruns;
	uint64_t consumed;
	uint32_t state;
	int32_t producer;
	int32_t consumer;
	uint32_t __reserved;
};

/**
 * struct rashpa_place_info - a place of a stream
 * @name: its name, printable
 * @state: enum rashpa_place_state
 * @loses: 1: the producer does not wait for it
 * @workers: workers that live
 * @workers_max: most workers
 * @process: process of the first of them, as it wrote it; 0: none
 * @given_up: how often it was given up in this stream
 * @consumed: stacks that no worker asks for again
 * @behind: complete stacks that are not released
 * @held: stacks that workers hold, or that a dead one left
 * @lost: images that the place could not have
 * @keep_ns: how long it is kept without a worker; UINT64_MAX: no limit
 * @left_ns: CLOCK_MONOTONIC when it was seen without a worker; 0: it has one
 */
struct rashpa_place_info {
	char name[RASHPA_PLACE_NAME];
	uint32_t state;
	uint32_t loses;
	uint32_t workers;
	uint32_t workers_max;
	int32_t process;
	uint32_t given_up;
	uint64_t consumed;
	uint64_t behind;
	uint64_t held;
	uint64_t lost;
	uint64_t keep_ns;
	uint64_t left_ns;
};

/**
 * struct rashpa_stream_clock - one moment in two clocks, and the detector's clock
 * @monotonic_ns: CLOCK_MONOTONIC
 * @tai_ns: CLOCK_TAI at that moment, nanoseconds since 1970-01-01 00:00:00 TAI
 * @utc_s: seconds from UTC to TAI; 0: the system does not know them, and TAI shows UTC
 * @tick_ns: a tick of the detector takes @tick_ns / @tick_of ns
 * @tick_of: 0: the producer does not know the detector's clock
 * @__reserved: not used
 * @tick_tai_ns: CLOCK_TAI of tick 0
 */
struct rashpa_stream_clock {
	uint64_t monotonic_ns;
	uint64_t tai_ns;
	int32_t utc_s;
	uint32_t tick_ns;
	uint32_t tick_of;
	uint32_t __reserved;
	uint64_t tick_tai_ns;
};

/*
 * Structs grow at their end: see "Growth" in rashpa.h. The functions without _sized call these, with
 * the sizes in the program's header. From a stack that the program hands back, the library reads
 * only the members of its first version. Zeros follow the header that rashpa_stream_get_header()
 * returns, up to a page. No zeros follow a &struct rashpa_stream_process.
 */
int rashpa_stream_next_sized(struct rashpa_stream *stream, struct rashpa_stack *stack,
			     int64_t timeout_ns, size_t size);
int rashpa_stack_image_sized(const struct rashpa_stack *stack, uint32_t index,
			     struct rashpa_image *image, size_t size);
void rashpa_stream_get_stat_sized(struct rashpa_stream *stream, struct rashpa_stream_stat *stat,
				  size_t size);
int rashpa_stream_tell_sized(struct rashpa_stream *stream, const struct rashpa_stream_work *work,
			     size_t size);
int rashpa_stream_told_sized(struct rashpa_stream *stream, struct rashpa_stream_work *work,
			     size_t size);
int rashpa_stream_get_place_sized(struct rashpa_stream *stream, uint32_t index,
				  struct rashpa_place_info *info, size_t size);
int rashpa_stream_get_clock_sized(struct rashpa_stream *stream, struct rashpa_stream_clock *clock,
				  size_t size);
int rashpa_stream_await_end_sized(struct rashpa_stream *stream, struct rashpa_stream_header *count,
				  int64_t timeout_ns, size_t size);
struct rashpa_stream_plan;
int rashpa_stream_create_sized(const char *buffer, const struct rashpa_stream_plan *plan,
			       struct rashpa_stream **stream, size_t plan_size,
			       size_t header_size, size_t process_size, size_t module_size);
int rashpa_stream_end_sized(struct rashpa_stream *stream, const struct rashpa_stream_header *count,
			    size_t size);
int rashpa_stream_slot_sized(struct rashpa_stream *stream, struct rashpa_stack *stack,
			     int64_t timeout_ns, size_t size);
int rashpa_stack_describe_sized(const struct rashpa_stack *stack, uint32_t process, uint32_t index,
				const struct rashpa_image *image, size_t size);

/**
 * rashpa_stream_open() - take part in the stream of a buffer
 * @buffer: name of the buffer, or path of a file
 * @flags: RASHPA_STREAM_*; 0: be the consumer
 * @stream: becomes the handle; rashpa_stream_close() it
 *
 * The stream may begin later. A consumer has the place "default": rashpa_stream_open_as() with
 * nothing but flags.
 *
 * Return: 0 or a negative errno, -EBUSY if the place has a consumer: the sentence names its
 * process.
 */
int rashpa_stream_open(const char *buffer, unsigned int flags, struct rashpa_stream **stream);

/**
 * struct rashpa_place_options - place of a consumer among others
 * @name: its name, up to 31 letters, digits and . _ -; NULL: "default"
 * @flags: RASHPA_STREAM_*
 * @workers: processes or threads that share this place, each with its own handle, at most
 *	RASHPA_STREAM_WORKERS; 0 or 1: one consumer
 * @keep_ns: how long the place is kept for a successor of the same name when its process has died; -1:
 *	no limit. Until then the producer waits for it
 *
 * A stream has RASHPA_STREAM_PLACES places. Each place gets all stacks. Credit is given for stacks that
 * all places have released, but those with RASHPA_STREAM_LOSE. A place that joins during a stream begins
 * with the first stack that is not given back. If all consumers have left, the next one begins where
 * the last one stopped. A place that closes its last handle is not kept if others take part.
 *
 * Workers of a place get each stack once. If one dies or closes its handle, others get the stacks
 * that it held. So a worker's rashpa_stream_next() returns the end after all others have released
 * theirs.
 */
struct rashpa_place_options {
	const char *name;
	uint32_t flags;
	uint32_t workers;
	int64_t keep_ns;
};

int rashpa_stream_open_as_sized(const char *buffer, const struct rashpa_place_options *options,
				struct rashpa_stream **stream, size_t size);

/**
 * rashpa_stream_open_as() - take part in the stream of a buffer, in a place with a name
 * @buffer: name of the buffer
 * @options: see &struct rashpa_place_options
 * @stream: becomes the handle; rashpa_stream_close() it
 *
 * Return: 0 or a negative errno: -EBUSY (the place has a consumer, or all its workers, or one of two places
 * writes into stacks; the sentence names a process), -ENOSPC (no place is free), -EINVAL, -EXDEV (other consumers opened another node of
 * the buffer).
 */
static inline int rashpa_stream_open_as(const char *buffer,
					const struct rashpa_place_options *options,
					struct rashpa_stream **stream)
{
	return rashpa_stream_open_as_sized(buffer, options, stream, sizeof(*options));
}

/**
 * rashpa_stream_close() - close the stream and free its resources
 * @stream: the handle, or NULL
 *
 * Stacks that were taken and not released are left to the next consumer.
 */
void rashpa_stream_close(struct rashpa_stream *stream);

/**
 * rashpa_stream_accept() - accept a name in the header, whichever user wrote it
 * @stream: the handle, before rashpa_stream_begin()
 * @name: name of a memory (lock_name, payload_name), or "fpgaN" of a board; copied
 *
 * Every user who may write the buffer can write a header there. Without this call the library uses
 * a name only if all these users may open that node themselves. So the node must have the same
 * owner and group, and at least the mode bits of the buffer, or be open for all users. A consumer
 * opens the board for writing and memories for reading. It opens the payload for writing with
 * RASHPA_STREAM_WRITE only.
 *
 * Return: 0; -EINVAL: no name; -ENOSPC: too many names.
 */
int rashpa_stream_accept(struct rashpa_stream *stream, const char *name);

/**
 * rashpa_stream_begin() - wait until a stream begins
 * @stream: the handle
 * @timeout_ns: longest wait
 *
 * Optional: rashpa_stream_next() waits for the stream, too.
 *
 * Return: 0, -ETIMEDOUT, -EINTR, -EPERM (rashpa_stream_accept()), or another negative errno.
 */
int rashpa_stream_begin(struct rashpa_stream *stream, int64_t timeout_ns);

/**
 * rashpa_stream_next() - take the next stack
 * @stream: the handle
 * @stack: becomes the stack; its slot is not written until rashpa_stream_release(), unless the
 *	stream overwrites (RASHPA_STREAM_OVERWRITE), or the handle is an observer's
 * @timeout_ns: longest wait; 0: do not wait
 *
 * Stacks come in order, each once. Whatever ends the stream, all complete stacks come first.
 * After the end the next call waits for the next stream. A signal that comes right before the wait
 * does not end it. So a program that ends by a signal needs a finite timeout in a loop.
 *
 * Return: 1; 0 if the producer ended the stream; or a negative errno: -ETIMEDOUT, -EINTR (a
 * signal), -EOWNERDEAD (the producer died without ending the stream), -ECONNABORTED (its function
 * was stopped), -ENODEV (its function was removed), -ESTALE (another stream began before all
 * stacks were taken), -EPROTO (impossible values in the buffer).
 */
static inline int rashpa_stream_next(struct rashpa_stream *stream, struct rashpa_stack *stack,
				     int64_t timeout_ns)
{
	return rashpa_stream_next_sized(stream, stack, timeout_ns, sizeof(*stack));
}

/**
 * rashpa_stream_release() - give a stack back
 * @stream: the handle
 * @stack: from rashpa_stream_next()
 *
 * Call it in any order, from any thread, once for each stack. A slot is credited when all stacks
 * before it are released as well. The caller's reads and writes of the stack are complete before.
 *
 * Return: 0; -ESTALE if the stack, or a part of it, was overwritten while it was held; -EINVAL if
 * it is not held.
 */
int rashpa_stream_release(struct rashpa_stream *stream, const struct rashpa_stack *stack);

/**
 * rashpa_stream_done() - mark a stack as consumed, but keep its slot
 * @stream: the handle
 * @stack: from rashpa_stream_next()
 *
 * The next consumer does not ask for the stack again. rashpa_stream_release() includes this. After
 * this call the slot is scratch memory of the caller (RASHPA_STREAM_WRITE) until its release: no
 * other process reads it, and no data are lost if it is overwritten.
 *
 * Return: 0 or a negative errno as rashpa_stream_release().
 */
int rashpa_stream_done(struct rashpa_stream *stream, const struct rashpa_stack *stack);

/**
 * rashpa_stack_intact() - check that a stack has not been overwritten
 * @stack: from rashpa_stream_next()
 *
 * After 1, all data read from the stack before this call are valid.
 *
 * Return: 1 or 0.
 */
int rashpa_stack_intact(const struct rashpa_stack *stack);

/**
 * rashpa_stack_image() - one image of a stack
 * @stack: from rashpa_stream_next(), not released
 * @index: below @stack->images
 * @image: filled in
 *
 * Return: 0, -ERANGE, or -ESTALE: the stream of the stack is over.
 */
static inline int rashpa_stack_image(const struct rashpa_stack *stack, uint32_t index,
				     struct rashpa_image *image)
{
	return rashpa_stack_image_sized(stack, index, image, sizeof(*image));
}

/**
 * rashpa_stack_pixels() - first pixel of an image
 * @stack: from rashpa_stream_next() or rashpa_stream_slot(), not released
 * @index: below @stack->images
 *
 * Return: its address; NULL if the stack has no data.
 */
static inline void *rashpa_stack_pixels(const struct rashpa_stack *stack, uint32_t index)
{
	return stack->data ? (char *)stack->data + index * stack->image_stride : NULL;
}

/**
 * rashpa_stack_missing() - check whether a message of a stack is missing
 * @stack: from rashpa_stream_next(), not released
 * @process: index of the process
 * @message: index of the message in the process
 *
 * Return: 1: it is missing, 0: it came, or a negative errno: -ERANGE, -ENODATA if the stream keeps
 * no map, -ESTALE if the stream is over.
 */
int rashpa_stack_missing(const struct rashpa_stack *stack, uint32_t process, uint32_t message);

/**
 * rashpa_stream_fd() - file descriptor for poll(), select() and event loops
 * @stream: the handle
 *
 * When it is readable, call rashpa_stream_next() with a timeout of 0 until that returns
 * -ETIMEDOUT; a producer calls rashpa_stream_slot(). It becomes readable twice a second at least, since
 * the death of a process raises no event.
 *
 * Return: a file descriptor, which stays the library's, or a negative errno.
 */
int rashpa_stream_fd(struct rashpa_stream *stream);

/**
 * rashpa_stream_wake() - end a wait of another thread
 * @stream: the handle
 *
 * The wait returns -EINTR. If no thread waits, the next wait returns it.
 */
void rashpa_stream_wake(struct rashpa_stream *stream);

/**
 * rashpa_stream_get_stat() - counts of this run so far
 * @stream: the handle
 * @stat: filled in
 */
static inline void rashpa_stream_get_stat(struct rashpa_stream *stream,
					  struct rashpa_stream_stat *stat)
{
	rashpa_stream_get_stat_sized(stream, stat, sizeof(*stat));
}

/**
 * rashpa_stream_tell() - report the consumer's progress to observers
 * @stream: the handle of the consumer, after rashpa_stream_begin() or a stack
 * @work: the report; the library sets sequence, run and time_ns
 *
 * The report stays until the next consumer. "rashpactl top" shows it. Cheap: no system call.
 *
 * Return: 0 or a negative errno: -EPERM: the handle is not the consumer's, -ENODATA: the stream has
 * no room for a report, or is over.
 */
static inline int rashpa_stream_tell(struct rashpa_stream *stream,
				     const struct rashpa_stream_work *work)
{
	return rashpa_stream_tell_sized(stream, work, sizeof(*work));
}

/**
 * rashpa_stream_told() - read the consumer's report
 * @stream: the handle, for example of an observer, after rashpa_stream_begin() or a stack
 * @work: becomes the report; names are printable, stages are at most RASHPA_STREAM_STAGES
 *
 * Return: 0 or a negative errno: -ENODATA: no report, -EAGAIN: it kept changing.
 */
static inline int rashpa_stream_told(struct rashpa_stream *stream, struct rashpa_stream_work *work)
{
	return rashpa_stream_told_sized(stream, work, sizeof(*work));
}

/**
 * rashpa_stream_get_place() - state of a place
 * @stream: the handle, for example of an observer, after rashpa_stream_begin() or a stack
 * @index: index of the place, below RASHPA_STREAM_PLACES
 * @info: filled in
 *
 * Return: 0 or a negative errno: -ERANGE, -ENOENT: the place is free, -ENODATA: no stream.
 */
static inline int rashpa_stream_get_place(struct rashpa_stream *stream, uint32_t index,
					  struct rashpa_place_info *info)
{
	return rashpa_stream_get_place_sized(stream, index, info, sizeof(*info));
}

/**
 * rashpa_stream_get_clock() - times of the stream as times of day
 * @stream: the handle, after rashpa_stream_begin() or a stack
 * @clock: filled in. The time t of CLOCK_MONOTONIC is tai_ns + t - monotonic_ns of TAI, and utc_s
 *	seconds less of UTC
 *
 * The producer's library keeps it fresh, so that it follows a clock that was set meanwhile.
 *
 * Return: 0 or a negative errno: -ENODATA: no stream, or its producer writes no clock; -EAGAIN: the
 * producer was killed while it wrote.
 */
static inline int rashpa_stream_get_clock(struct rashpa_stream *stream,
					  struct rashpa_stream_clock *clock)
{
	return rashpa_stream_get_clock_sized(stream, clock, sizeof(*clock));
}

/**
 * rashpa_stream_get_header() - header of the stream
 * @stream: the handle, after rashpa_stream_begin() or a stack
 *
 * Return: the library's checked copy, valid until the next stream begins; NULL without a stream.
 */
const struct rashpa_stream_header *rashpa_stream_get_header(const struct rashpa_stream *stream);

/**
 * rashpa_stream_process_at() - one process of the stream
 * @stream: the handle, after rashpa_stream_begin() or a stack
 * @index: index of the process, below the header's processes
 *
 * Return: the library's checked copy, likewise; NULL without a stream, or if @index is too large.
 */
const struct rashpa_stream_process *rashpa_stream_process_at(const struct rashpa_stream *stream,
							     uint32_t index);

/**
 * rashpa_stream_lock() - read a lock record consistently
 * @stream: the handle, after rashpa_stream_begin() or a stack
 * @index: index of the lock record, below the header's locks
 * @record: struct rfpga_lock of rashpa-fpga.h: filled in
 *
 * Return: 0, -ERANGE, or -EAGAIN if the record kept changing; then only its number of stacks is
 * valid.
 */
int rashpa_stream_lock(const struct rashpa_stream *stream, uint32_t index,
		       struct rfpga_lock *record);

/**
 * rashpa_stream_await_end() - the producer's final counts
 * @stream: the handle, after the end of the stream
 * @count: becomes the current header: sent (images), dropped (stacks), lost, missed (images)
 * @timeout_ns: longest wait for the producer to end the stream
 *
 * Return: 0; or a negative errno: -ETIMEDOUT, -EINTR, -EOWNERDEAD, -ESTALE.
 */
static inline int rashpa_stream_await_end(struct rashpa_stream *stream,
					  struct rashpa_stream_header *count, int64_t timeout_ns)
{
	return rashpa_stream_await_end_sized(stream, count, timeout_ns, sizeof(*count));
}

/* --- producers --- */

/**
 * struct rashpa_stream_plan - layout of a producer's stream
 * @header: the library reads width, height, pixel, bit_depth, big_endian, bunch, slots (0: as
 *	many as fit), policy, images, first_stack, sampling, phase, unit, live, dark_every,
 *	dataset_*, tick_*, lock_name, payload_name, segments and map_class; it sets the other fields
 * @process: array of processes; a program that fills all is one
 * @module: array of modules, or NULL: one module that covers the image
 * @processes: elements of @process
 * @modules: elements of @module
 * @flags: RASHPA_PLAN_*
 * @close_after: number of later stacks that have begun when an incomplete stack is published;
 *	0: no such limit
 * @close_ns: time after its beginning when an incomplete stack is published; 0: no such limit.
 *	rashpa_stream_slot() checks both
 * @__reserved: 0
 */
struct rashpa_stream_plan {
	struct rashpa_stream_header header;
	const struct rashpa_stream_process *process;
	const struct rashpa_stream_module *module;
	uint32_t processes;
	uint32_t modules;
	uint32_t flags;
	uint32_t close_after;
	uint64_t close_ns;
	uint64_t __reserved[3];
};

/** RASHPA_PLAN_META - store metadata of each image */
#define RASHPA_PLAN_META	(1u << 0)
/** RASHPA_PLAN_RESUME - continue where the consumer of the last stream stopped */
#define RASHPA_PLAN_RESUME	(1u << 1)

/**
 * rashpa_stream_create() - become the producer of a buffer's stream
 * @buffer: name of the buffer, or path of a file, which is made if it is not there
 * @plan: see &struct rashpa_stream_plan
 * @stream: becomes the handle; rashpa_stream_close() it, which ends the stream
 *
 * A buffer has only one producer. A new stream replaces the previous one, and clears pixels that no
 * process fills. After this call rashpa_stream_get_header() returns the values for the hardware.
 *
 * Return: 0 or a negative errno: -EBUSY (the sentence names the other producer's process), -ENOSPC
 * (fewer slots fit than are wanted, or than two; or no memory for a file), -EINVAL, -ENODATA (nothing to resume).
 */
static inline int rashpa_stream_create(const char *buffer, const struct rashpa_stream_plan *plan,
				       struct rashpa_stream **stream)
{
	return rashpa_stream_create_sized(buffer, plan, stream, sizeof(*plan), sizeof(plan->header),
					  sizeof(*plan->process), sizeof(*plan->module));
}

/**
 * rashpa_stream_buffer() - the memory of a stream
 * @stream: the handle
 *
 * Return: the open node of the buffer, for rashpa_buffer_dmabuf(); the library owns it.
 */
int rashpa_stream_buffer(const struct rashpa_stream *stream);

/**
 * rashpa_stream_payload() - the memory of the slots
 * @stream: handle of a producer, or of a consumer that has taken a stack
 *
 * For devices that write or read there, for example a GPU. Pixels begin at data_offset of
 * rashpa_stream_get_header().
 *
 * Return: a dma-buf, which the library owns, or a negative errno: -ENODATA before a stream begins.
 * Of a file it is a descriptor that can only be mapped.
 */
int rashpa_stream_payload(struct rashpa_stream *stream);

/**
 * rashpa_payload_listen() - offer the caller's memory to streams
 * @name: name that producers write to payload_name; not the name of a named buffer
 *
 * For memory that is not a named buffer, mainly GPU memory. As long as streams may begin, its
 * owner polls the socket and calls rashpa_payload_hand() when it is readable. The socket is
 * /run/rashpa/NAME, for its owner and group. The environment variable RASHPA_RUN names another
 * folder. stream.rst describes the protocol.
 *
 * Return: the socket, which the caller owns, or a negative errno: -EADDRINUSE, -ENOENT (the
 * folder).
 */
int rashpa_payload_listen(const char *name);

/**
 * rashpa_payload_hand() - hand the memory to a process that has asked for it
 * @listener: from rashpa_payload_listen()
 * @dmabuf: the whole memory; stays the caller's
 *
 * Return: 0 or a negative errno: -EAGAIN (no process asks), -EPIPE (the process has gone), -EPROTO
 * (not a dma-buf).
 */
int rashpa_payload_hand(int listener, int dmabuf);

/**
 * rashpa_stream_lock_memory() - the memory of the lock records
 * @stream: the handle
 *
 * Return: the open node of that memory, or of the buffer if the records are there; the library
 * owns it.
 */
int rashpa_stream_lock_memory(const struct rashpa_stream *stream);

/**
 * rashpa_stream_meta() - offset of the metadata of a process
 * @stream: the handle
 * @process: index of the process
 *
 * Return: offset of the metadata of slot 0 in the buffer, bytes; 0 if the stream has no metadata.
 */
uint64_t rashpa_stream_meta(const struct rashpa_stream *stream, uint32_t process);

/**
 * rashpa_stream_start() - begin the run and notify consumers
 * @stream: from rashpa_stream_create()
 * @segments: segments of the DMA map, for display only; or 0
 * @map_class: enum rashpa_class of the DMA map, likewise
 *
 * Start the hardware after this.
 *
 * Return: 0 or a negative errno.
 */
int rashpa_stream_start(struct rashpa_stream *stream, uint32_t segments, uint32_t map_class);

/**
 * rashpa_stream_complete() - progress of the run
 * @stream: the handle
 *
 * Return: stacks complete in all processes, including those before first_stack.
 */
uint64_t rashpa_stream_complete(const struct rashpa_stream *stream);

/**
 * rashpa_stream_again() - continue a run whose hardware was stopped
 * @stream: from rashpa_stream_create(), started
 * @first: becomes the stack to begin with
 *
 * Stop the hardware before this, and start it with @first as FIRST_STACK afterwards. Its credit
 * begins there, so the consumer must have given back all earlier stacks. A stream that overwrites
 * needs that only if it has a consumer. If only some processes had sent a stack, all of them send
 * it again.
 *
 * Return: 0; or a negative errno: -EAGAIN: the consumer still holds stacks, -ESTALE, -EINVAL.
 */
int rashpa_stream_again(struct rashpa_stream *stream, uint64_t *first);

/**
 * rashpa_stream_end() - end the run
 * @stream: from rashpa_stream_create()
 * @count: the library reads sent, dropped, lost and missed; NULL: they are not known, except for
 *	stacks that rashpa_stream_publish() has published
 *
 * Stop the hardware before this. Consumers still take the complete stacks.
 *
 * Return: 0 or a negative errno, -ESTALE if another stream has replaced this one.
 */
static inline int rashpa_stream_end(struct rashpa_stream *stream,
				    const struct rashpa_stream_header *count)
{
	return rashpa_stream_end_sized(stream, count, sizeof(*count));
}

/**
 * rashpa_stream_slot() - get the slot of the next stack, for programs that fill slots
 * @stream: from rashpa_stream_create(), started
 * @stack: becomes an empty stack: data, number, frame and images are set; the caller may change
 *	frame, flags, missing and user
 * @timeout_ns: longest wait for credit
 *
 * Return: 1; 0 if all images were sent; or a negative errno: -ETIMEDOUT, -EINTR, -ENOBUFS (the stack is
 * left out, see RASHPA_STREAM_DROP).
 */
static inline int rashpa_stream_slot(struct rashpa_stream *stream, struct rashpa_stack *stack,
				     int64_t timeout_ns)
{
	return rashpa_stream_slot_sized(stream, stack, timeout_ns, sizeof(*stack));
}

/**
 * rashpa_stream_valid() - mark a message of a stack as received
 * @stack: from rashpa_stream_slot()
 * @process: index of the process
 * @message: index of the message in the process
 *
 * May be called from any thread.
 *
 * Return: number of messages still missing: after 0 call rashpa_stream_publish(); or a negative
 * errno: -EEXIST if the message came before, -ERANGE, -ESTALE if the stack was published.
 */
int rashpa_stream_valid(const struct rashpa_stack *stack, uint32_t process, uint32_t message);

/**
 * rashpa_stack_describe() - set the metadata of an image, in a stream with RASHPA_PLAN_META
 * @stack: from rashpa_stream_slot()
 * @process: index of the process that fills this part
 * @index: index of the image in the stack
 * @image: the library reads frame, role, trigger, time and missing_lines
 *
 * Return: 0, -ERANGE, or -ENODATA if the stream has no metadata.
 */
static inline int rashpa_stack_describe(const struct rashpa_stack *stack, uint32_t process,
					uint32_t index, const struct rashpa_image *image)
{
	return rashpa_stack_describe_sized(stack, process, index, image, sizeof(*image));
}

/**
 * rashpa_stream_publish() - publish a stack that is complete, or given up
 * @stream: from rashpa_stream_create()
 * @stack: from rashpa_stream_slot()
 *
 * Call it in any order; consumers see a stack when all earlier ones are published. Messages that
 * did not come are reported as missing.
 *
 * Return: 0 or a negative errno.
 */
int rashpa_stream_publish(struct rashpa_stream *stream, const struct rashpa_stack *stack);

#ifdef __cplusplus
}
#endif

#endif /* RASHPA_STREAM_H */
