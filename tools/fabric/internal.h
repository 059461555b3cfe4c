/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BUILDER_INTERNAL_H
#define BUILDER_INTERNAL_H

#include <pthread.h>

#include "fabric/fabric.h"
#include "fabric/ring.h"

#define ARENAS		64
#define DEPTH		8		/* default */
#define QUEUE		256		/* default */
#define TIMEOUT_MS	30000		/* default */
#define QUEUE_BITS	16		/* width of an item number, below the queue number */
#define PAGE		4096

/* Keep a sentence for rashpa_fabric_reason(). Returns -error. */
__attribute__((format(printf, 2, 3)))
int fabric_fail(int error, const char *format, ...);
/* CLOCK_MONOTONIC */
uint64_t fabric_now(void);
/* Zeroed memory, aligned to a cache line; free() it. NULL: no memory. */
void *fabric_memory(uint64_t elements, size_t size);

/* --- memory --- */

struct rashpa_pool {
	struct rashpa_arena *arena;
	uint8_t *base;
	uint32_t bytes, stride, buffers;
	struct ring free;
	struct bell bell;		/* one for each pool: wakes only threads that wait for it */
	_Atomic bool *taken;
	_Atomic uint32_t low;
	_Atomic uint64_t empty;
	struct rashpa_pool *next;
};

struct rashpa_arena {
	struct rashpa_fabric *fabric;
	uint8_t *base;
	uint64_t length, used;
	int fd;			/* file that peers on this machine can map; -1: none */
	int dmabuf;		/* dma-buf of a buffer or GPU, or -1 */
	struct rashpa_gpu *gpu;	/* NULL: memory of the host */
	struct rashpa_gpu_memory *memory;	/* the GPU's */
	bool mapped;		/* the library mapped it, and unmaps it */
	int32_t node;		/* NUMA node of its first page, -1: not known */
	void *registered;	/* the transport's */
};

/* --- queues: one for each direction of a pair --- */

struct item {
	alignas(64) struct rashpa_fabric_request request;	/* an item is a cache line */
	int32_t status;
	uint32_t length;
};

struct queue {
	struct rashpa_fabric *fabric;
	struct ring free, waiting;	/* numbers of items */
	struct item *item;
	uint32_t number;		/* among all of the fabric */
	bool receives;
	_Atomic bool open;		/* has memory, since the first request */
	/* used by the transport's thread only: items under way, by slot */
	uint32_t flight[RASHPA_FABRIC_DEPTH];
	uint8_t *order;			/* slots, oldest first; points into places */
	uint8_t places[2 * RASHPA_FABRIC_DEPTH];
	uint32_t flying;
	uint64_t room;			/* free slots, one bit each */
	uint64_t ready;			/* done slots with older ones that are not, one bit each */
	_Atomic uint64_t posted, done, bytes, polls, low;
};

struct peer {
	uint32_t rank;
	_Atomic bool gone;
	uint32_t because;	/* rank that made it leave */
	struct queue send, receive;
	void *link;			/* the transport's */
};

struct transport {
	const char *name;
	/* fills in launch; prepares everything that needs no arena */
	int (*open)(struct rashpa_fabric *fabric);
	/* called once for each arena; NULL: nothing to do */
	int (*enrol)(struct rashpa_fabric *fabric, struct rashpa_arena *arena);
	int (*connect)(struct rashpa_fabric *fabric, uint64_t end_ns);
	/* thread: start the request in a slot. 0, or a status that ends the request at once */
	int (*begin)(struct queue *queue, struct peer *peer, unsigned int slot);
	/* thread: queue_done() for completed requests. true: there were some */
	bool (*poll)(struct rashpa_fabric *fabric, struct peer *peer);
	/* thread: wait for an event; fabric->asleep is set. NULL: the thread never sleeps */
	void (*sleep)(struct rashpa_fabric *fabric);
	/* store the rank that makes this process leave, for peers. NULL: not supported */
	void (*blame)(struct rashpa_fabric *fabric, uint32_t peer);
	/* any thread: end sleep */
	void (*wake)(struct rashpa_fabric *fabric);
	void (*close)(struct rashpa_fabric *fabric);
};

struct rashpa_fabric {
	const struct transport *transport;
	struct rashpa_fabric_options options;
	char device[64];
	struct rashpa_launch launch;
	struct rashpa_arena arena[ARENAS];
	uint32_t arenas;
	struct rashpa_pool *pools;
	struct peer *peer;
	struct ring events;
	struct bell event_bell;
	pthread_t thread;
	pthread_mutex_t lock;	/* of queues that open */
	bool connected, running, threaded;
	bool failed;		/* this process leaves before the run is over */
	int32_t device_node, memory_node;
	_Atomic int32_t thread_node;
	uint32_t turn;		/* without a thread: first peer of the next round */
	_Atomic bool stop;
	_Atomic uint32_t own_asleep;
	_Atomic uint32_t *asleep;	/* 1: after a post, wake the transport's thread */
	_Atomic uint64_t rounds, idle, sleeps, registrations;
	void *link;			/* the transport's */
};

extern const struct transport shm_transport, mpi_transport, verbs_transport;

/* The same as rashpa_fabric_open(), with the transport instead of its name. */
int fabric_open_with(const struct transport *transport, const struct rashpa_fabric_options *options,
		     struct rashpa_fabric **fabric);

/* Is the range inside the arena? */
static inline bool arena_has(const struct rashpa_arena *a, const void *at, uint64_t length)
{
	const uint64_t offset = (uintptr_t)at - (uintptr_t)a->base;

	return (uintptr_t)at >= (uintptr_t)a->base && offset <= a->length &&
	       length <= a->length - offset;
}

/* The arena that contains the range, or NULL. */
struct rashpa_arena *arena_of(struct rashpa_fabric *fabric, const void *at, uint64_t length);
void arenas_close(struct rashpa_fabric *fabric);

static inline struct item *queue_flying(struct queue *queue, unsigned int slot)
{
	return &queue->item[queue->flight[slot]];
}

/*
 * Start as many waiting requests as the pipeline has room for. A transport that completes many
 * requests at a time can call it in between, so that its peer need not wait for all of them.
 */
bool queue_begin(struct queue *queue, struct peer *peer);
/* A request is done: make its event. The tag counts for receives only. */
void queue_done(struct queue *queue, unsigned int slot, int status, uint32_t length, uint32_t tag);
/*
 * Mark a peer as gone. The transport ends the requests under way. "because" is the rank that the
 * peer blames, or its own rank.
 */
void peer_gone(struct peer *peer, uint32_t because);
/* End all requests under way. */
void queue_end(struct queue *queue, int status);

static inline void count(_Atomic uint64_t *counter, uint64_t more)
{
	/* one thread writes */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
			      memory_order_relaxed);
}

#endif /* BUILDER_INTERNAL_H */
