/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files of librashpa's streams. */
#ifndef STREAM_INTERNAL_H
#define STREAM_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rashpa.h>
#include <rashpa-fpga.h>
#include <rashpa-stream.h>

#define STREAM_BOARDS	RFPGA_DTPS_MAX	/* functions of one stream */
#define STREAM_ACCEPTED	8	/* names */
#define STREAM_NUMBER_BITS	42	/* of a stack's number in words of places */
#define STREAM_STACKS_BITS	41	/* no stream has more */
#define HELD_DONE	(UINT64_C(1) << 63)
#define STREAM_TICK_NS	500000000ll	/* between looks for what makes no event */
#define STREAM_POLL_NS	10000000ll	/* between looks of those that get no events */

struct memory;
struct rashpa_stream;

/* Calls by which a stream uses its memory. They return 0 or a negative errno. */
struct memory_kind {
	int (*open)(const char *name, bool write);	/* a descriptor */
	int (*length)(int node, uint64_t *length);
	int (*dmabuf)(int node);			/* a descriptor */
	/* What follows is for the stream's own buffer. As rashpa_buffer_role() */
	int (*role)(struct rashpa_stream *s, struct rashpa_role *role);
	int (*attend)(struct rashpa_stream *s);		/* prepare waits */
	int (*listen)(struct rashpa_stream *s);		/* to processes of the stream that was found */
	/* Take a record, if any: changes after the last one end the next wait. */
	bool (*event)(struct rashpa_stream *s, struct rashpa_event *event);
	int (*wait)(struct rashpa_stream *s, int64_t ns);	/* 0 also without a change */
	void (*wake)(struct rashpa_stream *s, struct memory *m);	/* others: something changed there */
	void (*interrupt)(struct rashpa_stream *s);	/* our own wait */
	int (*fd)(struct rashpa_stream *s);		/* readable after a change */
	void (*leave)(struct rashpa_stream *s);
};

extern const struct memory_kind memory_driver;	/* named buffers: stream-attach.c */
extern const struct memory_kind memory_file;	/* names with a slash: stream-file.c */

/* A named memory, opened and mapped. */
struct memory {
	const struct memory_kind *kind;
	int node, dmabuf;	/* the dma-buf: -1 until memory_dmabuf() */
	uint32_t roles;		/* roles of this handle, only for a file */
	uint8_t *base;
	uint64_t length;
	char name[RASHPA_STREAM_NAME];
};

#define MEMORY_NONE	{ .node = -1, .dmabuf = -1 }

struct board {
	uint32_t number;
	int device, window;
	volatile uint8_t *bells;	/* doorbells, mapped for a consumer only, or NULL */
	uint64_t length;
};

/* A stack that a program fills. */
struct open_slot {
	uint64_t number;		/* + 1, 0: none */
	uint64_t begun_ns;
	uint32_t left;			/* messages that are missing */
	bool published;
};

struct rashpa_stream {
	char *name;
	unsigned int flags;
	bool producer;
	struct memory buffer, locks, payload;	/* one of the last two: not in the buffer */
	uint8_t *slots;			/* the buffer, only for reading; NULL: as it is */
	uint8_t *lock_base;
	uint8_t *data;			/* NULL: no processor reaches it */
	volatile struct rashpa_stream_header *shared;
	struct rashpa_stream_header head;	/* the checked copy */
	/* zeros, for programs whose header is longer than ours */
	uint8_t head_room[RASHPA_STREAM_PAGE - sizeof(struct rashpa_stream_header)];
	struct rashpa_stream_process *process;
	bool attached;			/* to a stream that has not ended for us */
	bool polls;			/* no events: poll for stacks */
	bool known;			/* head and the following fields are valid */

	/* events */
	int memory, channel;
	int set, timer;			/* of rashpa_stream_fd(), -1 before */
	int64_t due;			/* when the timer is readable */
	bool wake;			/* the next wait ends at once */
	struct rashpa_queue queue;
	/* In a file, instead of the queue. The channel is an eventfd, -1 before rashpa_stream_fd(). */
	uint32_t seen;			/* count of changes before the last look */
	pthread_t watcher;		/* makes the eventfd readable, as long as */
	bool leaves;			/* is false */
	uint32_t group, sources[RASHPA_STREAM_LOCKS + STREAM_BOARDS + 3], n_sources;
	struct board board[STREAM_BOARDS];
	uint32_t boards;
	uint64_t event_ns, woken_ns;	/* times of the last wait */
	int over;			/* negative errno: no more stacks will come */
	int64_t looked;			/* time of the last poll for changes without an event */

	char accepted[STREAM_ACCEPTED][RASHPA_STREAM_NAME];	/* names: rashpa_stream_accept() */
	uint32_t n_accepted;

	/* consumers and observers */
	struct rashpa_place_options options;
	char place_name[RASHPA_PLACE_NAME];
	int32_t place;			/* -1: none (yet) */
	uint32_t worker;
	bool shares;			/* the place has room for other workers */
	bool returns;			/* it was closed before, in this stream */
	bool inherits;			/* claims of a worker that has died */
	bool lingers;			/* all is taken, but other workers hold stacks */
	uint64_t orphaned;		/* count of the place whose claims were all looked at */
	uint64_t next, end;		/* stacks */
	uint64_t first;			/* first stack that we took */
	uint64_t pending;		/* frames lost, not reported yet */
	uint64_t generation;		/* generation of the stream to ignore */
	bool dead;			/* that stream had no producer, and will not get one */
	struct rashpa_stream_stat stat;
	pthread_mutex_t lock;		/* the next two, stat.held, .lost */
	uint64_t out;			/* stacks held, of this or earlier streams */
	uint64_t *held;			/* by slot: number of the stack + 1; HELD_DONE */

	/* of who fills them */
	struct open_slot *slot;		/* by slot (lock) */
	uint64_t complete;		/* stacks (lock) */
	uint64_t *map;			/* maps of messages */
	uint32_t close_after;
	uint64_t close_ns;
	uint64_t frame;			/* first frame of the next stack */
	int64_t clocked;		/* when the clock was written; 0: not yet */
	bool started, ended;
};

/* stream-format.c */
uint32_t stream_pixel_bytes(uint32_t pixel);
int stream_check(const struct rashpa_stream_header *h, uint64_t length);
/* Can it be printed, and be that of a node? */
int stream_check_name(const char *what, const char name[RASHPA_STREAM_NAME], bool node);
int stream_check_processes(const struct rashpa_stream_header *h,
			   const struct rashpa_stream_process *process);
/* Bytes from the first of a stack to the last of so many of its images. */
uint64_t stream_extent(const struct rashpa_stream_header *h, uint32_t images);
uint64_t stream_end(const struct rashpa_stream_header *h);
uint64_t stream_images(const struct rashpa_stream_header *h, uint64_t a, uint64_t b);
bool stream_possible(const struct rashpa_stream_header *h, uint64_t stacks);
/*
 * The oldest stack whose slot no process writes when the most advanced process has completed
 * @most stacks, and @credit were given back.
 */
uint64_t stream_oldest(const struct rashpa_stream_header *h, uint64_t most, uint64_t credit);
/* How many frames there were before this one for the stream to take. */
uint64_t stream_index(const struct rashpa_stream_header *h, uint64_t frame);
/* Places and strides, for a buffer of so many bytes and a payload of so many (0: in it). */
int stream_layout(struct rashpa_stream_header *h, uint64_t messages, bool meta, uint64_t length,
		  uint64_t payload);
uint8_t *stream_meta(const struct rashpa_stream *s, uint32_t process, uint64_t stack,
		     uint32_t image);
struct rashpa_stream_record *stream_record(const struct rashpa_stream *s, uint64_t stack);
uint64_t *stream_map(const struct rashpa_stream *s, uint64_t stack);

static inline uint8_t *stream_data(const struct rashpa_stream *s, uint64_t slot)
{
	return s->data ? s->data + slot * s->head.slot_stride : NULL;
}

static inline uint64_t stream_number(uint64_t word)
{
	return word & ((UINT64_C(1) << STREAM_NUMBER_BITS) - 1);
}

static inline uint64_t stream_credit(const struct rashpa_stream *s)
{
	return stream_number(__atomic_load_n(&s->shared->credit, __ATOMIC_SEQ_CST));
}

/* stream-place.c */
/* Have a place, at once or at the first stream. */
int place_open(struct rashpa_stream *s);
void place_close(struct rashpa_stream *s);
/* Take part in the stream that was found. 1; 0: another one has replaced it; or a negative errno */
int place_attend(struct rashpa_stream *s);
/* A producer makes the table; its stream begins, and all places begin there. */
int place_prepare(struct rashpa_stream *s);
int place_reset(struct rashpa_stream *s);
/*
 * Take a stack, of those before @least. Those before @first may be overwritten: skip them, and add
 * their images to *@lost.
 */
bool place_take(struct rashpa_stream *s, uint64_t least, uint64_t first, uint64_t *number,
		uint64_t *lost);
/* @state: RASHPA_CLAIM_DONE or _RELEASED */
void place_release(struct rashpa_stream *s, uint64_t number, uint32_t state);
void place_count_lost(struct rashpa_stream *s, uint64_t images);
/* All is taken. Do other workers hold stacks that may come back? */
bool place_awaits(const struct rashpa_stream *s);
/* Look for processes that have died. */
void place_tick(struct rashpa_stream *s);
/* Process of some consumer; 0: none */
int32_t place_consumer(const struct rashpa_stream *s);
/* Raise the credit to what all places have released, and ring. */
void stream_advance(struct rashpa_stream *s);
void stream_ring(struct rashpa_stream *s);
/*
 * Is the memory still this stream's? A producer retires it before it maps the buffer, some time
 * before its first stack.
 */
bool stream_undisturbed(const struct rashpa_stream *s);
/* Stacks that no consumer asks for again: in a place, and in all that are waited for. */
uint64_t stream_consumed_at(const struct rashpa_stream *s, uint32_t place);
uint64_t stream_consumed(const struct rashpa_stream *s);

/* stream-clock.c: write the clock, unless it is fresh. The lock is held. */
void stream_keep_clock(struct rashpa_stream *s, int64_t now);

/* stream-work.c */
/* Discard the report of an earlier consumer. */
void stream_forget_work(struct rashpa_stream *s);
/* It is printed. */
void stream_make_printable(char *text, size_t size);

/* stream-file.c: make a file of this length, unless there is one */
int file_make(const char *path, uint64_t length);

/* payload.c */
int payload_open(const struct rashpa_stream *s, struct memory *m, const char *name, bool write);

/* stream-trust.c: 0, or -EPERM: a writer of the header may not open what it names */
int stream_check_node(const struct rashpa_stream *s, const char *name, int node, bool write);
/* @socket: open by O_PATH; @path: to that descriptor */
int stream_check_socket(const struct rashpa_stream *s, const char *name, int socket, const char *path);

/* stream-memory.c */
/* @s: its header has the name; NULL: the caller has it from elsewhere. */
int memory_open(const struct rashpa_stream *s, struct memory *m, const char *name, bool write);
/* Get the dma-buf at the first use: only its users need it. */
int memory_dmabuf(struct memory *m);
void memory_close(struct memory *m);

/* stream-handle.c, stream-attach.c */
int stream_name_memory(struct rashpa_stream *s, struct memory *m, const char *name, bool write);
int stream_open(const char *name, unsigned int flags, bool producer, struct rashpa_stream **stream);
void stream_close(struct rashpa_stream *s);
/* Copy once, and check the copy: the other side can change its memory at any time. */
void stream_copy_words(void *to, const volatile void *from, size_t size);
/* Copy and check the header. Return: 1; 0: no header, or it is changing; or a negative errno */
int stream_copy(struct rashpa_stream *s);
bool stream_same(const struct rashpa_stream *s);
int stream_open_memories(struct rashpa_stream *s, bool write);
void stream_forget(struct rashpa_stream *s);
/* Stacks complete in all processes; *most: in the most advanced one. */
uint64_t stream_stacks(const struct rashpa_stream *s, uint64_t *most);
uint32_t stream_lock_read(const struct rashpa_stream *s, uint32_t lock, struct rfpga_lock *record);
/* Sleep for an event, until @deadline or a tick. 0, -ETIMEDOUT or -EINTR */
int stream_sleep(struct rashpa_stream *s, int64_t deadline);
static inline bool stream_event(struct rashpa_stream *s, struct rashpa_event *event)
{
	return s->buffer.kind->event(s, event);
}
static inline int stream_role(struct rashpa_stream *s, struct rashpa_role *role)
{
	return s->buffer.kind->role(s, role);
}
/* 1, 0, or a negative errno */
int stream_has_producer(struct rashpa_stream *s);
/* process that has role 0, producer, or 1, consumer; 0: none, -1: it cannot be seen from here */
static inline int32_t stream_who(const struct rashpa_role *role, uint32_t i)
{
	if (!(role->out_held >> i & 1))
		return 0;
	return role->out_pid[i] ? role->out_pid[i] : -1;
}
static inline void stream_tell(struct rashpa_stream *s, struct memory *m)
{
	s->buffer.kind->wake(s, m);
}

#endif /* STREAM_INTERNAL_H */
