/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * librashpa-builder: messages between the processes of an event builder, over shared memory, MPI or
 * verbs. It knows memory, queue pairs and completions, and nothing of events: see
 * Documentation/builder.rst.
 *
 *	fabric = this process among its peers
 *	arenas of memory, registered once -- pools of equal buffers
 *	rashpa_fabric_send(), _receive(): a request on the queue pair of a peer
 *	rashpa_fabric_next(): what has become of requests
 *
 * A message is sent from a buffer into a buffer that waits for it; nothing is kept in between.
 * Where no buffer waits, the sender does, so pools that are empty slow down who sends, and memory
 * stays what it was. Functions return 0 or more, or a negative errno; rashpa_fabric_reason() has
 * the sentence, of the calling thread.
 */
#ifndef RASHPA_BUILDER_H
#define RASHPA_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** struct rashpa_fabric - this process among its peers; opaque */
struct rashpa_fabric;
/** struct rashpa_arena - memory that is registered once; opaque */
struct rashpa_arena;
/** struct rashpa_pool - equal buffers of an arena; opaque */
struct rashpa_pool;

/** RASHPA_FABRIC_DEPTH - requests of a queue that are under way at a time, at most */
#define RASHPA_FABRIC_DEPTH	64
/** RASHPA_FABRIC_PEERS - processes of a run, at most */
#define RASHPA_FABRIC_PEERS	1024
/** RASHPA_FABRIC_MESSAGE - bytes of a message, at most */
#define RASHPA_FABRIC_MESSAGE	(1u << 30)
/** RASHPA_FABRIC_TAG - largest tag */
#define RASHPA_FABRIC_TAG	0x7fffffffu

/** rashpa_fabric_reason() - why the last call of this thread failed: one sentence */
const char *rashpa_fabric_reason(void);

/*
 * Growth: options, launches and counts grow at their end; requests and events do not. The functions
 * without _sized call these, with the sizes that the program's header has.
 */
struct rashpa_launch;
struct rashpa_fabric_options;
struct rashpa_pool_counts;
struct rashpa_queue_counts;
struct rashpa_fabric_counts;
int rashpa_launch_read_sized(struct rashpa_launch *launch, size_t size);
int rashpa_fabric_open_sized(const struct rashpa_fabric_options *options,
			     struct rashpa_fabric **fabric, size_t size, size_t launch_size);
void rashpa_pool_count_sized(const struct rashpa_pool *pool, struct rashpa_pool_counts *counts,
			     size_t size);
int rashpa_fabric_count_sized(const struct rashpa_fabric *fabric, uint32_t peer,
			      struct rashpa_queue_counts *send,
			      struct rashpa_queue_counts *receive, size_t size);
void rashpa_fabric_total_sized(const struct rashpa_fabric *fabric,
			       struct rashpa_fabric_counts *counts, size_t size);

/* --- who takes part --- */

/**
 * struct rashpa_launch - what the launcher says of this process
 * @rank: its number, from 0
 * @size: processes of the run
 * @job: name of the run, the same in all of its processes and in no other run
 */
struct rashpa_launch {
	uint32_t rank;
	uint32_t size;
	char job[128];
};

/**
 * rashpa_launch_read() - ask the environment
 * @launch: filled in
 *
 * RASHPA_RANK, RASHPA_SIZE and RASHPA_JOB, where somebody starts processes by hand; else what
 * mpirun of Open MPI, or Slurm, has said. RASHPA_MEET stands for RASHPA_JOB where that is not set.
 *
 * Return: 0, -ENOENT (nothing says so), -EINVAL (what is said cannot be).
 */
static inline int rashpa_launch_read(struct rashpa_launch *launch)
{
	return rashpa_launch_read_sized(launch, sizeof(*launch));
}

/** enum rashpa_fabric_poll - how the transport "mpi" looks for requests that are done */
enum rashpa_fabric_poll {
	RASHPA_FABRIC_TEST = 0,		/* the oldest ones, as far as they are done */
	RASHPA_FABRIC_TESTSOME = 1,	/* whichever */
	RASHPA_FABRIC_TESTALL = 2,	/* all of a queue, or none */
	/*
	 * MPI is waited for: for benchmarks of two processes that send one way, as many messages as
	 * there are receives. Others would wait for each other for ever, and are refused.
	 */
	RASHPA_FABRIC_WAITSOME = 3,
	RASHPA_FABRIC_WAITALL = 4,
};

/** RASHPA_FABRIC_BUFFERED - "mpi" may keep what it sends: memory may then grow without a limit */
#define RASHPA_FABRIC_BUFFERED	(1u << 0)
/**
 * RASHPA_FABRIC_DRIVEN - no thread: messages move while rashpa_fabric_next() is called
 *
 * For machines with no processor for a thread of the library. One thread of the program makes all
 * requests and takes all events; pools are any thread's. It looks all the time, and does not sleep.
 * No other function may wait then: messages move, and buffers come back, only there.
 */
#define RASHPA_FABRIC_DRIVEN	(1u << 1)

/**
 * RASHPA_FABRIC_OPENMPI - before MPI_Init() of a program that begins MPI itself: setenv(..., 0)
 *
 * Open MPI has 512 fragments of shared memory, and never comes back to an acknowledgement that
 * found none: two processes with pipelines of 64 may stand still. So it has more.
 */
#define RASHPA_FABRIC_OPENMPI	"OMPI_MCA_btl_sm_free_list_max", "16384"

/**
 * struct rashpa_fabric_options - how
 * @transport: "shm", "mpi" or "verbs"
 * @launch: who this is; "mpi" knows by itself, and so does "verbs", but with RASHPA_MEET. NULL:
 *	rashpa_launch_read()
 * @device: "verbs": name of an RDMA device, as rxe0; NULL: the first one that can
 * @depth: requests of a queue that are under way at a time, 1 to 64; 0: 8
 * @queue: requests of a queue that are not done, or whose event was not taken, 1 to 65536; 0: 256
 * @poll: enum rashpa_fabric_poll
 * @flags: RASHPA_FABRIC_*
 * @cpu: processor of the transport's thread; -1: any
 * @timeout_ms: for peers to be there, and to answer; 0: 30000
 */
struct rashpa_fabric_options {
	const char *transport;
	const struct rashpa_launch *launch;
	const char *device;
	uint32_t depth;
	uint32_t queue;
	uint32_t poll;
	uint32_t flags;
	int32_t cpu;
	uint32_t timeout_ms;
};

/**
 * rashpa_fabric_has() - was this transport built in
 * @transport: its name
 *
 * Return: NULL: it was; else the sentence that says what is missing.
 */
const char *rashpa_fabric_has(const char *transport);

/**
 * rashpa_fabric_open() - take part in a run
 * @options: see &struct rashpa_fabric_options
 * @fabric: becomes the handle; rashpa_fabric_close() it
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP (the transport was not built in), -EADDRINUSE (this rank is
 * taken) or another one.
 */
static inline int rashpa_fabric_open(const struct rashpa_fabric_options *options,
				     struct rashpa_fabric **fabric)
{
	return rashpa_fabric_open_sized(options, fabric, sizeof(*options),
					sizeof(*options->launch));
}

/**
 * rashpa_fabric_connect() - wait for all peers
 * @fabric: the handle, with all its arenas
 *
 * Requests may be posted before; they begin now. Its thread, if it has one, works from now on.
 *
 * Return: 0, -ETIMEDOUT (the sentence has the first peer that is missing), -EPROTO (what a peer
 * said cannot be) or another one.
 */
int rashpa_fabric_connect(struct rashpa_fabric *fabric);

/**
 * rashpa_fabric_close() - leave
 * @fabric: the handle, or NULL
 *
 * Requests that are not done are forgotten, and peers see this one as gone. Arenas and pools end.
 */
void rashpa_fabric_close(struct rashpa_fabric *fabric);

/** rashpa_fabric_rank() - number of this process */
uint32_t rashpa_fabric_rank(const struct rashpa_fabric *fabric);
/** rashpa_fabric_size() - processes of the run */
uint32_t rashpa_fabric_size(const struct rashpa_fabric *fabric);
/**
 * rashpa_fabric_gone() - has a peer left
 * @fabric: the handle
 * @peer: its rank
 *
 * Return: 1: it closed, or died, and requests to it end with -EPIPE; 0: not that we know.
 */
int rashpa_fabric_gone(const struct rashpa_fabric *fabric, uint32_t peer);
/**
 * rashpa_fabric_blame() - this process leaves before the run is over, because of a peer
 * @fabric: the handle, before rashpa_fabric_close()
 * @peer: rank of who has gone, or does not do what it should; or of this one
 *
 * With "shm" others can ask for that when this process has left, and so find who was first. With
 * "mpi" rashpa_fabric_close() does not wait for the others in MPI_Finalize() then: the launcher
 * sees that this process has failed.
 */
void rashpa_fabric_blame(struct rashpa_fabric *fabric, uint32_t peer);
/**
 * rashpa_fabric_because() - of whom a peer has left
 * @fabric: the handle
 * @peer: its rank
 *
 * Return: the rank that it has blamed; its own, where it has blamed nobody, or no peer can know.
 */
uint32_t rashpa_fabric_because(const struct rashpa_fabric *fabric, uint32_t peer);

/* --- arenas: memory for messages, registered once --- */

/**
 * rashpa_arena_allocate() - memory for messages, shared with peers of this machine
 * @fabric: the handle, before rashpa_fabric_connect()
 * @length: bytes
 * @arena: becomes the handle, which ends with the fabric
 *
 * Return: 0, -ENOMEM, -EISCONN (too late), -EMFILE (64 are all).
 */
int rashpa_arena_allocate(struct rashpa_fabric *fabric, uint64_t length,
			   struct rashpa_arena **arena);

/**
 * rashpa_arena_buffer() - a named buffer of the driver
 * @fabric: the handle, before rashpa_fabric_connect()
 * @name: of the buffer
 * @arena: becomes the handle, which ends with the fabric; the buffer stays
 *
 * Return: 0, -ENOENT or another one.
 */
int rashpa_arena_buffer(struct rashpa_fabric *fabric, const char *name,
			 struct rashpa_arena **arena);

/**
 * rashpa_arena_bring() - memory of one's own
 * @fabric: the handle, before rashpa_fabric_connect()
 * @base: where it begins; the caller's, until rashpa_fabric_close()
 * @length: bytes
 * @arena: becomes the handle, which ends with the fabric
 *
 * With "shm" peers read it through the kernel (process_vm_readv()), which costs a system call a
 * message, and a system may forbid.
 *
 * Return: 0 or a negative errno.
 */
int rashpa_arena_bring(struct rashpa_fabric *fabric, void *base, uint64_t length,
			struct rashpa_arena **arena);

/** rashpa_arena_base() - where it is mapped */
void *rashpa_arena_base(const struct rashpa_arena *arena);
/** rashpa_arena_length() - bytes */
uint64_t rashpa_arena_length(const struct rashpa_arena *arena);

/* --- pools: any function from any thread, but for rashpa_pool_open() --- */

/**
 * struct rashpa_pool_counts - what a pool has seen
 * @buffers: of it
 * @free: that nobody has now
 * @low: fewest that were free
 * @empty: how often there was none for who asked
 */
struct rashpa_pool_counts {
	uint64_t buffers, free, low, empty;
};

/**
 * rashpa_pool_open() - cut the next part of an arena into equal buffers
 * @arena: with room for it: buffers begin at pages where they are that long, else at cache lines
 * @bytes: of a buffer
 * @buffers: how many
 * @pool: becomes the handle, which ends with the fabric
 *
 * Return: 0, -ENOSPC (the sentence says what fits), -EINVAL, -ENOMEM.
 */
int rashpa_pool_open(struct rashpa_arena *arena, uint32_t bytes, uint32_t buffers,
		     struct rashpa_pool **pool);

/**
 * rashpa_pool_room() - how much of an arena pools take
 * @bytes: of a buffer
 * @buffers: how many
 *
 * Return: bytes, to add up for rashpa_arena_allocate().
 */
uint64_t rashpa_pool_room(uint32_t bytes, uint32_t buffers);

/**
 * rashpa_pool_take() - a buffer
 * @pool: the pool
 * @timeout_ns: how long to wait for one; -1: for ever, or until rashpa_fabric_wake()
 *
 * Return: a buffer, or NULL when the time is over.
 */
void *rashpa_pool_take(struct rashpa_pool *pool, int64_t timeout_ns);

/**
 * rashpa_pool_give() - back
 * @pool: whose it is
 * @buffer: of rashpa_pool_take()
 *
 * Return: 0; -EINVAL: it is none of this pool, -EALREADY: nobody had it.
 */
int rashpa_pool_give(struct rashpa_pool *pool, void *buffer);
/** rashpa_pool_bytes() - of a buffer */
uint32_t rashpa_pool_bytes(const struct rashpa_pool *pool);
static inline void rashpa_pool_count(const struct rashpa_pool *pool,
				     struct rashpa_pool_counts *counts)
{
	rashpa_pool_count_sized(pool, counts, sizeof(*counts));
}

/* --- messages: any function from any thread --- */

/**
 * struct rashpa_fabric_request - a message to send, or room for one
 * @buffer: of a pool, or anywhere in an arena; the library's until the event
 * @pool: whose it is, or NULL
 * @context: the caller's
 * @length: bytes of the message, or of the room
 * @peer: rank of the other side
 * @tag: of a message to send, at most RASHPA_FABRIC_TAG; it travels with the message
 */
struct rashpa_fabric_request {
	void *buffer;
	struct rashpa_pool *pool;
	void *context;
	uint32_t length;
	uint32_t peer;
	uint32_t tag;
};

/**
 * struct rashpa_fabric_event - what has become of a request
 * @request: as it was posted; of a message that was received, tag is the sender's
 * @status: 0; -EMSGSIZE (the message was longer than the room), -EPIPE (the peer has gone), -EIO
 * @length: bytes that were sent or received
 * @received: 1: it was rashpa_fabric_receive(), 0: rashpa_fabric_send()
 */
struct rashpa_fabric_event {
	struct rashpa_fabric_request request;
	int32_t status;
	uint32_t length;
	uint32_t received;
};

/**
 * rashpa_fabric_send() - a message
 * @fabric: the handle
 * @request: copied; the buffer is not to be changed until the event, which comes when the peer has
 *	a receive for it
 *
 * Messages to a peer reach its receives in the order in which they were posted, and events of
 * receives come in that order. Those of sends may come in another one.
 *
 * Return: 0; -EAGAIN: the queue is full: take events; -EPIPE: the peer has gone; -EINVAL.
 */
int rashpa_fabric_send(struct rashpa_fabric *fabric, const struct rashpa_fabric_request *request);

/** rashpa_fabric_receive() - room for the next message of a peer; as rashpa_fabric_send() */
int rashpa_fabric_receive(struct rashpa_fabric *fabric,
			  const struct rashpa_fabric_request *request);

/**
 * rashpa_fabric_next() - events
 * @fabric: the handle
 * @events: array
 * @n: elements of it
 * @timeout_ns: how long to wait for the first; -1: for ever, or until rashpa_fabric_wake()
 *
 * Return: how many; 0 when the time is over; or a negative errno that ends it all.
 */
int rashpa_fabric_next(struct rashpa_fabric *fabric, struct rashpa_fabric_event *events, uint32_t n,
		       int64_t timeout_ns);

/** rashpa_fabric_wake() - have threads that wait return, now and from now on: the end */
void rashpa_fabric_wake(struct rashpa_fabric *fabric);

/**
 * struct rashpa_queue_counts - what a queue of a peer has done
 * @posted: requests
 * @done: of these, those that were, or failed
 * @bytes: of them
 * @polls: looks for some that are done
 * @low: fewest that were under way when the transport came by, from the first message on: of
 *	receives, 0 says that a sender had to wait
 */
struct rashpa_queue_counts {
	uint64_t posted, done, bytes, polls, low;
};

/**
 * rashpa_fabric_count() - of one peer
 * @fabric: the handle
 * @peer: its rank
 * @send: filled in
 * @receive: filled in
 *
 * Return: 0 or -EINVAL.
 */
static inline int rashpa_fabric_count(const struct rashpa_fabric *fabric, uint32_t peer,
				      struct rashpa_queue_counts *send,
				      struct rashpa_queue_counts *receive)
{
	return rashpa_fabric_count_sized(fabric, peer, send, receive, sizeof(*send));
}

/**
 * struct rashpa_fabric_counts - what the transport's thread has done
 * @rounds: over all peers
 * @idle: of these, those that found nothing to do
 * @sleeps: times that it slept
 * @cpu_ns: of its thread
 * @registrations: of memory
 */
struct rashpa_fabric_counts {
	uint64_t rounds, idle, sleeps, cpu_ns, registrations;
};

static inline void rashpa_fabric_total(const struct rashpa_fabric *fabric,
				       struct rashpa_fabric_counts *counts)
{
	rashpa_fabric_total_sized(fabric, counts, sizeof(*counts));
}

/**
 * struct rashpa_fabric_nodes - where in the machine messages are, by NUMA node; -1: not known
 * @device: of "verbs": the card
 * @memory: the first arena, at its first page
 * @thread: where the transport's thread ran when it had nothing to do last, or began
 */
struct rashpa_fabric_nodes {
	int32_t device, memory, thread;
};

void rashpa_fabric_nodes(const struct rashpa_fabric *fabric, struct rashpa_fabric_nodes *nodes);

/**
 * rashpa_fabric_apart() - is something at another node than the rest
 * @nodes: of rashpa_fabric_nodes()
 *
 * Return: NULL: not that we know; else the sentence that says what, and what helps.
 */
const char *rashpa_fabric_apart(const struct rashpa_fabric_nodes *nodes);

#ifdef __cplusplus
}
#endif

#endif /* RASHPA_BUILDER_H */
