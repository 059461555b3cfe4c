/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages between the processes of an event builder, over shared memory, MPI or
 * verbs. It handles memory, queue pairs and completions, but not events: see
 * Documentation/builder.rst.
 *
 *	fabric: this process and its peers
 *	arenas: memory, registered once, and cut into pools of equal buffers
 *	rashpa_fabric_send(), _receive(): post a request on the queue pair of a peer
 *	rashpa_fabric_next(): take completions
 *
 * A message goes from one buffer into another that was posted for it; no copy is kept in between.
 * A sender waits until the receiver has posted a buffer, so an empty pool slows senders down, and
 * memory does not grow. Functions return 0 or more, or a negative errno; rashpa_fabric_reason()
 * returns the sentence for the calling thread.
 */
#ifndef FABRIC_H
#define FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** struct rashpa_fabric - this process and its peers; opaque */
struct rashpa_fabric;
/** struct rashpa_arena - memory that is registered once; opaque */
struct rashpa_arena;
/** struct rashpa_pool - equal buffers of an arena; opaque */
struct rashpa_pool;

/** RASHPA_FABRIC_DEPTH - maximum number of requests of a queue under way at a time */
#define RASHPA_FABRIC_DEPTH	64
/** RASHPA_FABRIC_PEERS - maximum number of processes of a run */
#define RASHPA_FABRIC_PEERS	1024
/** RASHPA_FABRIC_MESSAGE - maximum message size, in bytes */
#define RASHPA_FABRIC_MESSAGE	(1u << 30)
/** RASHPA_FABRIC_TAG - largest tag */
#define RASHPA_FABRIC_TAG	0x7fffffffu

/** rashpa_fabric_reason() - why the last call of this thread failed: one sentence */
const char *rashpa_fabric_reason(void);

/*
 * Growth: options, launches and counts grow at their end; requests and events do not. The functions
 * without _sized call these with the sizes in the header that the program was built with.
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

/* --- participants --- */

/**
 * struct rashpa_launch - place of this process in the run
 * @rank: process number, from 0
 * @size: number of processes in the run
 * @job: name of the run, the same in all of its processes and in no other run
 */
struct rashpa_launch {
	uint32_t rank;
	uint32_t size;
	char job[128];
};

/**
 * rashpa_launch_read() - read the rank, the size and the job from the environment
 * @launch: filled in
 *
 * Reads RASHPA_RANK, RASHPA_SIZE and RASHPA_JOB, for processes that are started by hand; else the
 * variables of Open MPI's mpirun or of Slurm. RASHPA_MEET replaces RASHPA_JOB if that is not set.
 *
 * Return: 0, -ENOENT (no rank is set), -EINVAL (a variable is missing or invalid).
 */
static inline int rashpa_launch_read(struct rashpa_launch *launch)
{
	return rashpa_launch_read_sized(launch, sizeof(*launch));
}

/** enum rashpa_fabric_poll - how the transport "mpi" polls for completed requests */
enum rashpa_fabric_poll {
	RASHPA_FABRIC_TEST = 0,		/* the oldest, up to the first that is not done */
	RASHPA_FABRIC_TESTSOME = 1,	/* any that are done */
	RASHPA_FABRIC_TESTALL = 2,	/* all requests of a queue, or none */
	/*
	 * Block in MPI: for benchmarks of two processes that send one way, as many messages as
	 * there are receives. More processes would deadlock, and are rejected.
	 */
	RASHPA_FABRIC_WAITSOME = 3,
	RASHPA_FABRIC_WAITALL = 4,
};

/** RASHPA_FABRIC_BUFFERED - "mpi" may buffer sent messages: memory may grow without a limit */
#define RASHPA_FABRIC_BUFFERED	(1u << 0)
/**
 * RASHPA_FABRIC_DRIVEN - no thread: messages move while rashpa_fabric_next() is called
 *
 * For machines without a spare processor for a thread of the library. One thread of the program
 * posts all requests and takes all events; any thread may use pools. That thread polls and does not
 * sleep. No other function may wait: messages move, and buffers come back, only in that call.
 */
#define RASHPA_FABRIC_DRIVEN	(1u << 1)
/**
 * RASHPA_FABRIC_ONLY_USED - "verbs" connects only pairs that are used
 *
 * Those are pairs for which either process has posted a request before rashpa_fabric_connect().
 * Requests of others end with -ENOTCONN, and such a peer never counts as gone. For runs of many
 * processes, as each connection takes memory and time.
 */
#define RASHPA_FABRIC_ONLY_USED	(1u << 2)

/**
 * RASHPA_FABRIC_OPENMPI - arguments of setenv(), for a program that calls MPI_Init() itself
 *
 * Call setenv(RASHPA_FABRIC_OPENMPI, 0) before MPI_Init(). By default, Open MPI has 512 fragments
 * of shared memory, and never retries an acknowledgement that found no free one: two processes with
 * pipelines of 64 may hang.
 */
#define RASHPA_FABRIC_OPENMPI	"OMPI_MCA_btl_sm_free_list_max", "16384"

/**
 * struct rashpa_fabric_options - options of rashpa_fabric_open()
 * @transport: "shm", "mpi" or "verbs"
 * @launch: place of this process; NULL: rashpa_launch_read(). Ignored by "mpi", and by "verbs"
 *	without RASHPA_MEET, which ask MPI or PMIx
 * @device: "verbs": name of an RDMA device, as rxe0; NULL: the first usable one
 * @depth: requests of a queue that are under way at a time, 1 to 64; 0: 8
 * @queue: requests of a queue that are not done, or whose event was not taken, 1 to 65536; 0: 256
 * @poll: enum rashpa_fabric_poll
 * @flags: RASHPA_FABRIC_*
 * @cpu: processor of the transport's thread; -1: any
 * @timeout_ms: limit for peers to come and to answer, in milliseconds; 0: 30000
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
 * rashpa_fabric_has() - check whether a transport was built in
 * @transport: transport name
 *
 * Return: NULL if it was; else a sentence that names the missing part.
 */
const char *rashpa_fabric_has(const char *transport);

/**
 * rashpa_fabric_open() - take part in a run
 * @options: see &struct rashpa_fabric_options
 * @fabric: becomes the handle; rashpa_fabric_close() it
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP (the transport was not built in), -EADDRINUSE (this rank is
 * taken) or another errno.
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
 * Requests may be posted before; they begin now. The transport's thread, if any, starts now.
 *
 * Return: 0, -ETIMEDOUT (the sentence names the first missing peer), -EPROTO (a peer sent an
 * invalid message) or another errno.
 */
int rashpa_fabric_connect(struct rashpa_fabric *fabric);

/**
 * rashpa_fabric_close() - leave the run
 * @fabric: the handle, or NULL
 *
 * Drops requests that are not done, and frees arenas and pools. Peers see this process as gone.
 */
void rashpa_fabric_close(struct rashpa_fabric *fabric);

/** rashpa_fabric_rank() - number of this process */
uint32_t rashpa_fabric_rank(const struct rashpa_fabric *fabric);
/** rashpa_fabric_size() - number of processes in the run */
uint32_t rashpa_fabric_size(const struct rashpa_fabric *fabric);
/**
 * rashpa_fabric_gone() - check whether a peer has left
 * @fabric: the handle
 * @peer: rank of the peer
 *
 * Return: 1: it closed or died, and requests to it end with -EPIPE; 0: not as far as is known.
 */
int rashpa_fabric_gone(const struct rashpa_fabric *fabric, uint32_t peer);
/**
 * rashpa_fabric_blame() - record which rank makes this process leave before the end of the run
 * @fabric: the handle, before rashpa_fabric_close()
 * @peer: rank that has gone or failed; may be this process
 *
 * With "shm", peers can read the rank after this process has left, and so find the first failure.
 * With "mpi", rashpa_fabric_close() then does not wait for the others in MPI_Finalize(): the
 * launcher sees that this process has failed.
 */
void rashpa_fabric_blame(struct rashpa_fabric *fabric, uint32_t peer);
/**
 * rashpa_fabric_because() - find the rank that made a peer leave
 * @fabric: the handle
 * @peer: rank of the peer
 *
 * Return: the rank that the peer blamed; @peer if it blamed none, or if no peer can find out.
 */
uint32_t rashpa_fabric_because(const struct rashpa_fabric *fabric, uint32_t peer);

/* --- arenas: memory for messages, registered once --- */

/**
 * rashpa_arena_allocate() - memory for messages, shared with peers of this machine
 * @fabric: the handle, before rashpa_fabric_connect()
 * @length: bytes
 * @arena: becomes the handle, which ends with the fabric
 *
 * Return: 0, -ENOMEM, -EISCONN (too late), -EMFILE (there are 64 arenas).
 */
int rashpa_arena_allocate(struct rashpa_fabric *fabric, uint64_t length,
			   struct rashpa_arena **arena);

/**
 * rashpa_arena_buffer() - use a named buffer of the driver as an arena
 * @fabric: the handle, before rashpa_fabric_connect()
 * @name: buffer name
 * @arena: becomes the handle, which ends with the fabric; the buffer stays
 *
 * Return: 0, -ENOENT or another errno.
 */
int rashpa_arena_buffer(struct rashpa_fabric *fabric, const char *name,
			 struct rashpa_arena **arena);

/**
 * rashpa_arena_gpu() - use memory of a GPU as an arena; "verbs" only
 * @fabric: the handle, before rashpa_fabric_connect()
 * @name: GPU as for rashpa_gpu_open()
 * @length: bytes
 * @arena: becomes the handle, which ends with the fabric
 *
 * Return: 0, -EOPNOTSUPP (the sentence names the missing driver, module or card; or processors cannot
 * map the memory) or another errno.
 */
int rashpa_arena_gpu(struct rashpa_fabric *fabric, const char *name, uint64_t length,
		     struct rashpa_arena **arena);

/**
 * rashpa_arena_bring() - use memory of the caller as an arena
 * @fabric: the handle, before rashpa_fabric_connect()
 * @base: start of the memory, which the caller keeps until rashpa_fabric_close()
 * @length: bytes
 * @arena: becomes the handle, which ends with the fabric
 *
 * With "shm", peers read it with process_vm_readv(), which costs a system call per message and
 * which a system may forbid.
 *
 * Return: 0 or a negative errno.
 */
int rashpa_arena_bring(struct rashpa_fabric *fabric, void *base, uint64_t length,
			struct rashpa_arena **arena);

/** rashpa_arena_base() - address of the arena */
void *rashpa_arena_base(const struct rashpa_arena *arena);
/** rashpa_arena_length() - length in bytes */
uint64_t rashpa_arena_length(const struct rashpa_arena *arena);

/* --- pools: any thread may call any function except rashpa_pool_open() --- */

/**
 * struct rashpa_pool_counts - counters of a pool
 * @buffers: number of buffers
 * @free: buffers that are free now
 * @low: lowest number of free buffers so far
 * @empty: times that rashpa_pool_take() found no free buffer
 */
struct rashpa_pool_counts {
	uint64_t buffers, free, low, empty;
};

/**
 * rashpa_pool_open() - cut the next part of an arena into equal buffers
 * @arena: the arena; a buffer starts at a page if it is at least a page long, else at a cache line
 * @bytes: buffer size in bytes
 * @buffers: number of buffers
 * @pool: becomes the handle, which ends with the fabric
 *
 * Return: 0, -ENOSPC (the sentence gives the number that fits), -EINVAL, -ENOMEM.
 */
int rashpa_pool_open(struct rashpa_arena *arena, uint32_t bytes, uint32_t buffers,
		     struct rashpa_pool **pool);

/**
 * rashpa_pool_room() - compute the arena space that a pool takes
 * @bytes: buffer size in bytes
 * @buffers: number of buffers
 *
 * Return: bytes; the sum over all pools is the length for rashpa_arena_allocate().
 */
uint64_t rashpa_pool_room(uint32_t bytes, uint32_t buffers);

/**
 * rashpa_pool_take() - take a free buffer
 * @pool: the pool
 * @timeout_ns: time limit in nanoseconds; -1: no limit but rashpa_fabric_wake()
 *
 * Return: a buffer, or NULL after the time limit.
 */
void *rashpa_pool_take(struct rashpa_pool *pool, int64_t timeout_ns);

/**
 * rashpa_pool_give() - give a buffer back
 * @pool: pool that the buffer belongs to
 * @buffer: buffer from rashpa_pool_take()
 *
 * Return: 0, -EINVAL (not a buffer of this pool), -EALREADY (the buffer is free already).
 */
int rashpa_pool_give(struct rashpa_pool *pool, void *buffer);
/** rashpa_pool_bytes() - buffer size in bytes */
uint32_t rashpa_pool_bytes(const struct rashpa_pool *pool);
static inline void rashpa_pool_count(const struct rashpa_pool *pool,
				     struct rashpa_pool_counts *counts)
{
	rashpa_pool_count_sized(pool, counts, sizeof(*counts));
}

/* --- messages: any thread may call any function --- */

/**
 * struct rashpa_fabric_request - a message to send, or room for one
 * @buffer: buffer of a pool, or any address in an arena; the library owns it until the event
 * @pool: pool that the buffer belongs to, or NULL
 * @context: the caller's
 * @length: bytes of the message, or of the room
 * @peer: rank of the other side
 * @tag: sends: at most RASHPA_FABRIC_TAG; it travels with the message
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
 * struct rashpa_fabric_event - completion of a request
 * @request: request as it was posted; for receives, tag is the tag of the sender
 * @status: 0, -EMSGSIZE (the message was longer than the room), -EPIPE (the peer has gone), -EIO
 * @length: bytes that were sent or received
 * @received: 1: rashpa_fabric_receive() posted it, 0: rashpa_fabric_send()
 */
struct rashpa_fabric_event {
	struct rashpa_fabric_request request;
	int32_t status;
	uint32_t length;
	uint32_t received;
};

/**
 * rashpa_fabric_send() - post a message
 * @fabric: the handle
 * @request: copied; the caller must not change the buffer until the event, which comes after the
 *	peer has posted a receive for it
 *
 * Messages to a peer reach its receives in the order in which they were posted, and events of
 * receives come in that order. Events of sends may come in another order.
 *
 * Return: 0, -EAGAIN (the queue is full: take events), -EPIPE (the peer has gone), -EINVAL.
 */
int rashpa_fabric_send(struct rashpa_fabric *fabric, const struct rashpa_fabric_request *request);

/** rashpa_fabric_receive() - post room for the next message of a peer; see rashpa_fabric_send() */
int rashpa_fabric_receive(struct rashpa_fabric *fabric,
			  const struct rashpa_fabric_request *request);

/**
 * rashpa_fabric_next() - take events
 * @fabric: the handle
 * @events: array to fill
 * @n: length of the array
 * @timeout_ns: time limit for the first, in nanoseconds; -1: no limit but rashpa_fabric_wake()
 *
 * Return: number of events, 0 after the time limit, or a negative errno, which is final.
 */
int rashpa_fabric_next(struct rashpa_fabric *fabric, struct rashpa_fabric_event *events, uint32_t n,
		       int64_t timeout_ns);

/** rashpa_fabric_wake() - make all waiting threads return, and later calls not wait: for the end */
void rashpa_fabric_wake(struct rashpa_fabric *fabric);

/**
 * struct rashpa_queue_counts - counters of a queue
 * @posted: requests that were posted
 * @done: requests that completed or failed
 * @bytes: bytes of completed requests
 * @polls: polls for completed requests
 * @low: lowest number under way at a visit of the transport, since the first message; 0 for
 *	receives means that a sender had to wait
 */
struct rashpa_queue_counts {
	uint64_t posted, done, bytes, polls, low;
};

/**
 * rashpa_fabric_count() - read the counters of one peer
 * @fabric: the handle
 * @peer: rank of the peer
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
 * struct rashpa_fabric_counts - counters of the transport's thread
 * @rounds: rounds over all peers
 * @idle: rounds that found nothing to do
 * @sleeps: times that it slept
 * @cpu_ns: processor time in nanoseconds
 * @registrations: memory registrations
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
 * struct rashpa_fabric_nodes - NUMA nodes that messages involve; -1: not known
 * @device: node of the card ("verbs" only)
 * @memory: node of the first page of the first arena
 * @thread: node where the transport's thread last started or became idle
 */
struct rashpa_fabric_nodes {
	int32_t device, memory, thread;
};

void rashpa_fabric_nodes(const struct rashpa_fabric *fabric, struct rashpa_fabric_nodes *nodes);

/**
 * rashpa_fabric_apart() - check whether card, memory and thread are on one NUMA node
 * @nodes: result of rashpa_fabric_nodes()
 *
 * Return: NULL if no difference is known; else a sentence with the difference and the remedy.
 */
const char *rashpa_fabric_apart(const struct rashpa_fabric_nodes *nodes);

#endif /* FABRIC_H */
