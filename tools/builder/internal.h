/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BUILDER_INTERNAL_H
#define BUILDER_INTERNAL_H

#include <pthread.h>

#include "rashpa-builder.h"
#include "ring.h"

#define ARENAS		64
#define DEPTH		8		/* default */
#define QUEUE		256		/* default */
#define TIMEOUT_MS	30000		/* default */
#define QUEUE_BITS	16		/* of the number of an item, below that of its queue */
#define PAGE		4096

/* Keep a sentence for rashpa_fabric_reason(). Returns -error. */
__attribute__((format(printf, 2, 3)))
int fabric_fail(int error, const char *format, ...);
/* CLOCK_MONOTONIC */
uint64_t fabric_now(void);
/* Zeroed, from the beginning of a cache line on; free() it. NULL: there is none. */
void *fabric_memory(uint64_t elements, size_t size);

/* --- memory --- */

struct rashpa_pool {
	struct rashpa_arena *arena;
	uint8_t *base;
	uint32_t bytes, stride, buffers;
	struct ring free;
	struct bell bell;		/* of its own: who is woken waits for this pool */
	_Atomic bool *taken;
	_Atomic uint32_t low;
	_Atomic uint64_t empty;
	struct rashpa_pool *next;
};

struct rashpa_arena {
	struct rashpa_fabric *fabric;
	uint8_t *base;
	uint64_t length, used;
	int fd;			/* that a peer of this machine can map; -1: none */
	bool mapped;		/* by us */
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
	/* the transport's thread's: items under way by slot, slots from the oldest on */
	uint32_t flight[RASHPA_FABRIC_DEPTH];
	uint8_t *order;			/* in places: who goes first takes the beginning along */
	uint8_t places[2 * RASHPA_FABRIC_DEPTH];
	uint32_t flying;
	uint64_t room;			/* slots that are free, a bit each */
	uint64_t ready;			/* done, behind older ones that are not */
	_Atomic uint64_t posted, done, bytes, polls, low;
};

struct peer {
	uint32_t rank;
	_Atomic bool gone;
	uint32_t because;	/* of which rank it has */
	struct queue send, receive;
	void *link;			/* the transport's */
};

struct transport {
	const char *name;
	/* who this is, in launch; what can be known before arenas are there */
	int (*open)(struct rashpa_fabric *fabric);
	/* once an arena; NULL: nothing to do */
	int (*enrol)(struct rashpa_fabric *fabric, struct rashpa_arena *arena);
	int (*connect)(struct rashpa_fabric *fabric, uint64_t end_ns);
	/* the thread's: a request is under way in a slot; not 0: a status that ends it at once */
	int (*begin)(struct queue *queue, struct peer *peer, unsigned int slot);
	/* the thread's: queue_done() for what is done. true: something was */
	bool (*poll)(struct rashpa_fabric *fabric, struct peer *peer);
	/* the thread's: until something can have happened; fabric->asleep is set. NULL: never */
	void (*sleep)(struct rashpa_fabric *fabric);
	/* for peers to read when this one has left: because of whom. NULL: they cannot */
	void (*blame)(struct rashpa_fabric *fabric, uint32_t peer);
	/* of sleep, by any thread */
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
	bool connected, running, threaded;
	bool failed;		/* it leaves because of somebody, before others do */
	int32_t device_node, memory_node;
	_Atomic int32_t thread_node;
	uint32_t turn;		/* without a thread: peer that is first in the next round */
	_Atomic bool stop;
	_Atomic uint32_t own_asleep;
	_Atomic uint32_t *asleep;	/* 1: who posts has to wake the thread */
	_Atomic uint64_t rounds, idle, sleeps, registrations;
	void *link;			/* the transport's */
};

extern const struct transport shm_transport, mpi_transport, verbs_transport;

/* As rashpa_fabric_open(), which finds the transport by its name. */
int fabric_open_with(const struct transport *transport, const struct rashpa_fabric_options *options,
		     struct rashpa_fabric **fabric);

/* An arena has all of this. */
static inline bool arena_has(const struct rashpa_arena *a, const void *at, uint64_t length)
{
	const uint64_t offset = (uintptr_t)at - (uintptr_t)a->base;

	return (uintptr_t)at >= (uintptr_t)a->base && offset <= a->length &&
	       length <= a->length - offset;
}

/* Which one, or NULL. */
struct rashpa_arena *arena_of(struct rashpa_fabric *fabric, const void *at, uint64_t length);
void arenas_close(struct rashpa_fabric *fabric);

static inline struct item *queue_flying(struct queue *queue, unsigned int slot)
{
	return &queue->item[queue->flight[slot]];
}

/*
 * Requests that wait are under way, as many as there is room for in the pipeline. A transport that
 * ends many at a time can call it in between, so that its peer does not wait for all their events.
 */
bool queue_begin(struct queue *queue, struct peer *peer);
/* A request under way is done: its event. The tag is that of a message that was received. */
void queue_done(struct queue *queue, unsigned int slot, int status, uint32_t length, uint32_t tag);
/*
 * Nothing comes from a peer, and nothing goes there. What is under way the transport ends. It left
 * because of another one, as far as it says: else of itself.
 */
void peer_gone(struct peer *peer, uint32_t because);
/* End what is under way. */
void queue_end(struct queue *queue, int status);

static inline void count(_Atomic uint64_t *counter, uint64_t more)
{
	/* one thread writes */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
			      memory_order_relaxed);
}

#endif /* BUILDER_INTERNAL_H */
