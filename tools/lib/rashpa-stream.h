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
 * - A stream is a named buffer with a header. The library looks for one in the buffer, waits for
 *   one to begin, and when it has ended for the next one.
 * - Errors are negative errnos, with a sentence from rashpa_reason().
 * - A handle is for one thread at a time; only rashpa_stream_release(), rashpa_stack_image() and
 *   rashpa_stack_intact() may be called from any thread at any time until rashpa_stream_close().
 * - Times are nanoseconds; a timeout of -1 is none.
 * - Nothing is allocated while stacks are taken, and there is no system call as long as there are
 *   any.
 */

struct rfpga_lock;	/* rashpa-fpga.h */

/** struct rashpa_stream - a consumer, an observer or a producer; opaque */
struct rashpa_stream;

/** RASHPA_STREAM_OBSERVE - look on: give no credit, disturb nobody; reading is enough */
#define RASHPA_STREAM_OBSERVE		(1u << 0)
/** RASHPA_STREAM_FROM_START - begin at the first stack, also of a stream that has ended */
#define RASHPA_STREAM_FROM_START	(1u << 1)
/** RASHPA_STREAM_LATEST - with OBSERVE: of what has come, only the last stack */
#define RASHPA_STREAM_LATEST		(1u << 2)
/** RASHPA_STREAM_FRESH - only streams that begin after this call: what is left of others stays */
#define RASHPA_STREAM_FRESH		(1u << 3)
/** RASHPA_STREAM_WRITE - not with OBSERVE: the consumer may write into stacks that it holds */
#define RASHPA_STREAM_WRITE		(1u << 4)
/** RASHPA_STREAM_NO_DATA - only count: the payload is not opened, and pixels are at NULL */
#define RASHPA_STREAM_NO_DATA		(1u << 5)

/** RASHPA_STACK_INCOMPLETE - lines or messages are missing: rashpa_stack_image(), @missing */
#define RASHPA_STACK_INCOMPLETE		(1u << 0)
/** RASHPA_STACK_WRONG - metadata of an image are another stack's, or its parts several frames' */
#define RASHPA_STACK_WRONG		(1u << 1)
/** RASHPA_STACK_ROLES - an image is something else than signal: rashpa_stack_image(), role */
#define RASHPA_STACK_ROLES		(1u << 2)

/**
 * struct rashpa_stack - images that came together
 * @data: the first one's first pixel; NULL if the payload cannot be mapped, or with
 *	RASHPA_STREAM_NO_DATA. Only producers, and consumers with RASHPA_STREAM_WRITE, may write there;
 *	others get SIGSEGV
 * @number: of the stack, from the first one of the buffer on
 * @frame: number of the first image, as the detector counts
 * @images: how many; image i is @image_stride behind image i - 1
 * @flags: RASHPA_STACK_*
 * @width: of an image, pixels
 * @height: of an image, pixels
 * @pixel: enum rashpa_pixel
 * @pixel_bytes: of one pixel
 * @line_stride: bytes from line to line
 * @image_stride: bytes from image to image
 * @slot: where it is: number of the slot
 * @run: of which run it is
 * @lost: frames that were lost right before: they were overwritten before they could be taken
 * @skipped: frames that the stream has left out so far, as the frames' numbers tell
 * @missing: messages that did not come, if the producer counts messages
 * @time_ns: CLOCK_MONOTONIC when it was complete, if the producer tells; else 0
 * @event_ns: CLOCK_MONOTONIC of the event that it was waited for with, as the driver saw it; 0:
 *	it was there without a wait
 * @woken_ns: CLOCK_MONOTONIC when that wait returned, likewise
 * @user: words of the producer, if it has any
 * @stream: whose it is
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
 * @trigger: number of the trigger, if the detector tells
 * @time: of the detector's clock, if it tells
 * @role: enum rashpa_image_role, or the detector's own
 * @missing_lines: lines that did not come, of all processes
 * @known: 1: the numbers are the detector's. 0: the stream has no metadata, and they follow
 *	from the number of the stack
 * @wrong: 1: metadata are of another stack, or of several frames: what is in the image is not known
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
 * struct rashpa_stream_stat - what happened so far in this run
 * @stacks: taken
 * @frames: in them
 * @lost: frames that were overwritten before they were taken, or while they were held
 * @skipped: frames that the stream left out, as the frames' numbers tell
 * @incomplete: stacks of which something is missing
 * @held: stacks that were taken and not released
 * @behind: stacks that are complete and not taken
 * @waits: calls that had to wait
 * @events: records of complete stacks that were seen
 * @events_lost: records that found no room, as the driver tells
 * @overruns: parts of stacks that were written before their slot was given back
 * @consumed: stacks that no consumer asks for again, whoever it is
 * @state: enum rashpa_stream_state, as the producer says
 * @producer: process that has the role, 0: there is none, -1: it cannot be seen from here
 * @consumer: likewise
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

/*
 * Structs grow at their end: see "Growth" in rashpa.h. The functions without _sized call these, with
 * the sizes that the program's header has. Of a stack that comes back from the program, the library
 * reads only members that its first version had. Zeros follow the header that
 * rashpa_stream_about() returns, up to a page; none follow a &struct rashpa_stream_process.
 */
int rashpa_stream_next_sized(struct rashpa_stream *stream, struct rashpa_stack *stack,
			     int64_t timeout_ns, size_t size);
int rashpa_stack_image_sized(const struct rashpa_stack *stack, uint32_t index,
			     struct rashpa_image *image, size_t size);
void rashpa_stream_status_sized(struct rashpa_stream *stream, struct rashpa_stream_stat *stat,
				size_t size);
int rashpa_stream_tell_sized(struct rashpa_stream *stream, const struct rashpa_stream_work *work,
			     size_t size);
int rashpa_stream_told_sized(struct rashpa_stream *stream, struct rashpa_stream_work *work,
			     size_t size);
int rashpa_stream_counts_sized(struct rashpa_stream *stream, struct rashpa_stream_header *count,
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
 * @buffer: its name
 * @flags: RASHPA_STREAM_*; 0: be the consumer
 * @stream: becomes the handle; rashpa_stream_close() it
 *
 * There need not be a stream yet. A consumer gives credit, so there is only one; it goes on where
 * the one before stopped, if that left something of a paced stream.
 *
 * Return: 0 or a negative errno, -EBUSY if there is a consumer: the sentence has its process.
 */
int rashpa_stream_open(const char *buffer, unsigned int flags, struct rashpa_stream **stream);

/**
 * rashpa_stream_close() - let go of all of it
 * @stream: the handle, or NULL
 *
 * Stacks that were taken and not released are left to the next consumer.
 */
void rashpa_stream_close(struct rashpa_stream *stream);

/**
 * rashpa_stream_accept() - use what the header names, whoever wrote it
 * @stream: the handle, before rashpa_stream_begin()
 * @name: of a memory (lock_name, payload_name), or "fpgaN" of a board; copied
 *
 * Whoever may write the buffer may write a header there. Without this call the library uses a name only
 * if all of them may open that node themselves: it needs the same owner and group, and bits of its
 * mode, or it is open for everybody. A consumer opens the board for writing, memories for reading, and
 * the payload for writing with RASHPA_STREAM_WRITE only.
 *
 * Return: 0; -EINVAL: no name; -ENOSPC: too many names.
 */
int rashpa_stream_accept(struct rashpa_stream *stream, const char *name);

/**
 * rashpa_stream_begin() - wait until there is a stream
 * @stream: the handle
 * @timeout_ns: how long at most
 *
 * rashpa_stream_next() does so where that was not done.
 *
 * Return: 0, -ETIMEDOUT, -EINTR, -EPERM (rashpa_stream_accept()), or another negative errno.
 */
int rashpa_stream_begin(struct rashpa_stream *stream, int64_t timeout_ns);

/**
 * rashpa_stream_next() - take the next stack
 * @stream: the handle
 * @stack: becomes the stack; its slot is not written until rashpa_stream_release(), unless the
 *	stream overwrites (RASHPA_STREAM_OVERWRITE), or the handle is an observer's
 * @timeout_ns: how long to wait at most; 0: not at all
 *
 * Stacks come in order, each once. Whatever ends the stream, all that were complete come first;
 * after the end the next call waits for the next stream. A signal that comes right before the wait
 * does not end it: whoever is told by signals to end waits in turns.
 *
 * Return: 1; 0 at the end that the producer told; or a negative errno: -ETIMEDOUT, -EINTR (a
 * signal), -EOWNERDEAD (the producer ended without a word), -ECONNABORTED (its function was
 * stopped), -ENODEV (removed), -ESTALE (another stream began before all was taken), -EPROTO
 * (what is there cannot be true).
 */
static inline int rashpa_stream_next(struct rashpa_stream *stream, struct rashpa_stack *stack,
				     int64_t timeout_ns)
{
	return rashpa_stream_next_sized(stream, stack, timeout_ns, sizeof(*stack));
}

/**
 * rashpa_stream_release() - a stack is not needed any more
 * @stream: the handle
 * @stack: from rashpa_stream_next()
 *
 * In any order, from any thread, each once. Credit is given as far as all stacks before are
 * released. What the caller read of the stack, and wrote into it, is done before.
 *
 * Return: 0; -ESTALE if the stack was overwritten while it was held, in part at least; -EINVAL if
 * it is not held.
 */
int rashpa_stream_release(struct rashpa_stream *stream, const struct rashpa_stack *stack);

/**
 * rashpa_stream_done() - the next consumer need not ask for a stack again
 * @stream: the handle
 * @stack: from rashpa_stream_next()
 *
 * rashpa_stream_release() says so, too. After this the slot is the caller's until it is released:
 * what is written there (RASHPA_STREAM_WRITE), nobody looks at, and if somebody overwrites it nothing
 * is lost.
 *
 * Return: 0 or a negative errno as rashpa_stream_release().
 */
int rashpa_stream_done(struct rashpa_stream *stream, const struct rashpa_stack *stack);

/**
 * rashpa_stack_intact() - is it still what it was
 * @stack: from rashpa_stream_next()
 *
 * What was read before this call was the stack, if the answer is 1.
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
 * Return: 0, -ERANGE, or -ESTALE: the stream that the stack is of is over.
 */
static inline int rashpa_stack_image(const struct rashpa_stack *stack, uint32_t index,
				     struct rashpa_image *image)
{
	return rashpa_stack_image_sized(stack, index, image, sizeof(*image));
}

/**
 * rashpa_stack_missing() - which messages of a stack did not come
 * @stack: from rashpa_stream_next(), not released
 * @process: index of the process
 * @message: which of its messages, from 0 on
 *
 * Return: 1: it is missing, 0: it came, or a negative errno: -ERANGE, -ENODATA if the stream keeps
 * no map, -ESTALE if the stream is over.
 */
int rashpa_stack_missing(const struct rashpa_stack *stack, uint32_t process, uint32_t message);

/**
 * rashpa_stream_fd() - for poll(), select() and event loops
 * @stream: the handle
 *
 * Readable when something happened: then call rashpa_stream_next() with a timeout of 0 until it
 * is -ETIMEDOUT. Call it every second as well: the end of a process is no event.
 *
 * Return: a file descriptor, which stays the library's.
 */
int rashpa_stream_fd(const struct rashpa_stream *stream);

/**
 * rashpa_stream_status() - what happened so far in this run
 * @stream: the handle
 * @stat: filled in
 */
static inline void rashpa_stream_status(struct rashpa_stream *stream,
					struct rashpa_stream_stat *stat)
{
	rashpa_stream_status_sized(stream, stat, sizeof(*stat));
}

/**
 * rashpa_stream_tell() - say how the work goes, for who looks on
 * @stream: the handle of the consumer, after rashpa_stream_begin() or a stack
 * @work: of it, sequence, run and time_ns are the library's
 *
 * It stays until the next consumer. "rashpactl top" shows it. Cheap: no system call.
 *
 * Return: 0 or a negative errno: -EPERM: this is no consumer, -ENODATA: the stream has no room for
 * it, or is over.
 */
static inline int rashpa_stream_tell(struct rashpa_stream *stream,
				     const struct rashpa_stream_work *work)
{
	return rashpa_stream_tell_sized(stream, work, sizeof(*work));
}

/**
 * rashpa_stream_told() - what the consumer said of its work
 * @stream: the handle, of an observer for instance, after rashpa_stream_begin() or a stack
 * @work: becomes it; names can be printed, and stages are at most RASHPA_STREAM_STAGES
 *
 * Return: 0 or a negative errno: -ENODATA: nothing, -EAGAIN: it is always being written.
 */
static inline int rashpa_stream_told(struct rashpa_stream *stream, struct rashpa_stream_work *work)
{
	return rashpa_stream_told_sized(stream, work, sizeof(*work));
}

/**
 * rashpa_stream_about() - what the stream is
 * @stream: the handle, after rashpa_stream_begin() or a stack
 *
 * Return: the library's checked copy, valid until the next stream begins; NULL if there is none.
 */
const struct rashpa_stream_header *rashpa_stream_about(const struct rashpa_stream *stream);

/**
 * rashpa_stream_process_at() - one of its processes
 * @stream: the handle, after rashpa_stream_begin() or a stack
 * @index: below the header's processes
 *
 * Return: the library's checked copy, likewise; NULL if there is none.
 */
const struct rashpa_stream_process *rashpa_stream_process_at(const struct rashpa_stream *stream,
							     uint32_t index);

/**
 * rashpa_stream_lock() - a lock record as a whole
 * @stream: the handle, after rashpa_stream_begin() or a stack
 * @index: below the header's locks
 * @record: struct rfpga_lock of rashpa-fpga.h: filled in
 *
 * Return: 0, -ERANGE, or -EAGAIN if it was being written at each of several looks; then only the
 * number of stacks is one that there was.
 */
int rashpa_stream_lock(const struct rashpa_stream *stream, uint32_t index,
		       struct rfpga_lock *record);

/**
 * rashpa_stream_counts() - what the producer counted
 * @stream: the handle, after the end of the stream
 * @count: becomes the header as it is now: sent, dropped, lost, missed
 * @timeout_ns: how long to wait for the producer to end it
 *
 * Return: 0; or a negative errno: -ETIMEDOUT, -EINTR, -EOWNERDEAD, -ESTALE.
 */
static inline int rashpa_stream_counts(struct rashpa_stream *stream,
				       struct rashpa_stream_header *count, int64_t timeout_ns)
{
	return rashpa_stream_counts_sized(stream, count, timeout_ns, sizeof(*count));
}

/* --- producers --- */

/**
 * struct rashpa_stream_plan - what a producer wants to stream
 * @header: what is not 0 counts: width, height, pixel, bit_depth, big_endian, bunch, slots (0: as
 *	many as fit), policy, images, first_stack, sampling, phase, unit, live, dark_every,
 *	dataset_*, lock_name, payload_name, segments and map_class. The rest is the library's
 * @process: array
 * @module: array, or NULL: one module that is the image
 * @processes: elements of @process
 * @modules: elements of @module
 * @flags: RASHPA_PLAN_*
 * @close_after: a stack that messages are missing of is published when so many later ones have
 *	been begun; 0: not for that
 * @close_ns: or so long after it was begun; 0: not for that. Both are looked at in
 *	rashpa_stream_slot()
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

/** RASHPA_PLAN_META - metadata of each image */
#define RASHPA_PLAN_META	(1u << 0)
/** RASHPA_PLAN_RESUME - go on where the consumer of the last stream stopped */
#define RASHPA_PLAN_RESUME	(1u << 1)

/**
 * rashpa_stream_create() - be the producer of a buffer's stream
 * @buffer: its name
 * @plan: see &struct rashpa_stream_plan
 * @stream: becomes the handle; rashpa_stream_close() it, which ends the stream
 *
 * There is only one producer. What was here before is a stream no more; pixels that no process
 * fills are cleared. rashpa_stream_about() has what the hardware has to know now.
 *
 * Return: 0 or a negative errno: -EBUSY (the sentence has the other's process), -ENOSPC (fewer
 * slots fit than are wanted, or than two), -EINVAL, -ENODATA (nothing to resume).
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
 * Return: the open node of the buffer, for rashpa_buffer_dmabuf(); the library's.
 */
int rashpa_stream_buffer(const struct rashpa_stream *stream);

/**
 * rashpa_stream_payload() - the memory of its slots
 * @stream: of a producer, or of a consumer that has taken a stack
 *
 * For devices that write there, or that read (a GPU); pixels begin at data_offset of
 * rashpa_stream_about().
 *
 * Return: its dma-buf, which is the library's, or a negative errno: -ENODATA before there is a
 * stream.
 */
int rashpa_stream_payload(struct rashpa_stream *stream);

/**
 * rashpa_payload_listen() - offer memory of one's own to streams
 * @name: what a producer writes to payload_name; that of no named buffer
 *
 * For memory that is no named buffer, a GPU's above all. Its owner polls the socket, and calls
 * rashpa_payload_hand() when it can be read, as long as streams are to begin. The socket is
 * /run/rashpa/NAME (RASHPA_RUN is another folder), for its owner and group; the protocol is in
 * stream.rst.
 *
 * Return: the socket, the caller's, or a negative errno: -EADDRINUSE, -ENOENT (the folder).
 */
int rashpa_payload_listen(const char *name);

/**
 * rashpa_payload_hand() - hand the memory to one that has asked
 * @listener: of rashpa_payload_listen()
 * @dmabuf: the memory, all of it; the caller's
 *
 * Return: 0 or a negative errno: -EAGAIN (nobody asks), -EPIPE (who asked has gone), -EPROTO (no
 * dma-buf).
 */
int rashpa_payload_hand(int listener, int dmabuf);

/**
 * rashpa_stream_lock_memory() - the memory of its lock records
 * @stream: the handle
 *
 * Return: its open node, which is that of the buffer where they are in the buffer; the library's.
 */
int rashpa_stream_lock_memory(const struct rashpa_stream *stream);

/**
 * rashpa_stream_meta() - where the metadata of a process are
 * @stream: the handle
 * @process: index
 *
 * Return: offset of those of slot 0 in the buffer, bytes; 0 if there are none.
 */
uint64_t rashpa_stream_meta(const struct rashpa_stream *stream, uint32_t process);

/**
 * rashpa_stream_start() - the run begins: tell consumers
 * @stream: from rashpa_stream_create()
 * @segments: of the map for DMA, for people; or 0
 * @map_class: likewise, enum rashpa_class
 *
 * Hardware is started after this.
 *
 * Return: 0 or a negative errno.
 */
int rashpa_stream_start(struct rashpa_stream *stream, uint32_t segments, uint32_t map_class);

/**
 * rashpa_stream_complete() - how far the run is
 * @stream: the handle
 *
 * Return: stacks complete in all processes, those before first_stack included.
 */
uint64_t rashpa_stream_complete(const struct rashpa_stream *stream);

/**
 * rashpa_stream_again() - hardware that was stopped in the middle of the run goes on
 * @stream: from rashpa_stream_create(), started
 * @first: becomes the stack that it begins with
 *
 * Hardware is at rest before this, and is started with @first as FIRST_STACK after it. Its credit
 * begins there, so all stacks before have to be given back; of a stream that overwrites, only if
 * there is a consumer. A stack that only some processes had sent is sent again by all of them.
 *
 * Return: 0; or a negative errno: -EAGAIN: the consumer has stacks still, -ESTALE, -EINVAL.
 */
int rashpa_stream_again(struct rashpa_stream *stream, uint64_t *first);

/**
 * rashpa_stream_end() - the run is over
 * @stream: from rashpa_stream_create()
 * @count: sent, dropped, lost and missed count; NULL: they are not known
 *
 * Hardware is at rest before this. Consumers take what is complete.
 *
 * Return: 0 or a negative errno, -ESTALE if it is not ours any more.
 */
static inline int rashpa_stream_end(struct rashpa_stream *stream,
				    const struct rashpa_stream_header *count)
{
	return rashpa_stream_end_sized(stream, count, sizeof(*count));
}

/**
 * rashpa_stream_slot() - room for the next stack, where a program fills slots
 * @stream: from rashpa_stream_create(), started
 * @stack: becomes an empty stack: data, number, frame and images are set; change frame, flags,
 *	missing and user
 * @timeout_ns: how long to wait for credit at most
 *
 * Return: 1; 0 if the stack was left out or all images were sent (see rashpa_stream_status()); or a
 * negative errno, -ETIMEDOUT, -EINTR.
 */
static inline int rashpa_stream_slot(struct rashpa_stream *stream, struct rashpa_stack *stack,
				     int64_t timeout_ns)
{
	return rashpa_stream_slot_sized(stream, stack, timeout_ns, sizeof(*stack));
}

/**
 * rashpa_stream_valid() - a message of a stack has come
 * @stack: from rashpa_stream_slot()
 * @process: index of the process
 * @message: which of its messages
 *
 * From any thread.
 *
 * Return: messages that are missing still: with 0 it is time for rashpa_stream_publish(); or a
 * negative errno: -EEXIST if it was there already, -ERANGE, -ESTALE if the stack was published.
 */
int rashpa_stream_valid(const struct rashpa_stack *stack, uint32_t process, uint32_t message);

/**
 * rashpa_stack_describe() - metadata of an image, of a stream that has them (RASHPA_PLAN_META)
 * @stack: from rashpa_stream_slot()
 * @process: whose part
 * @index: of the image in the stack
 * @image: frame, role, trigger, time and missing_lines count
 *
 * Return: 0, -ERANGE, or -ENODATA if the stream has none.
 */
static inline int rashpa_stack_describe(const struct rashpa_stack *stack, uint32_t process,
					uint32_t index, const struct rashpa_image *image)
{
	return rashpa_stack_describe_sized(stack, process, index, image, sizeof(*image));
}

/**
 * rashpa_stream_publish() - a stack is complete, or given up
 * @stream: from rashpa_stream_create()
 * @stack: from rashpa_stream_slot()
 *
 * In any order; consumers see it when those before are published. Messages that did not come
 * are told as missing.
 *
 * Return: 0 or a negative errno.
 */
int rashpa_stream_publish(struct rashpa_stream *stream, const struct rashpa_stack *stack);

#ifdef __cplusplus
}
#endif

#endif /* RASHPA_STREAM_H */
