/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bounded queues of numbers, for any number of threads, and waiting for them. A push into a full
 * queue fails, so callers must make sure that there is room.
 */
#ifndef BUILDER_RING_H
#define BUILDER_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Where threads sleep until something was pushed. */
struct bell {
	_Atomic uint32_t rung;
	_Atomic bool asleep;	/* a thread sleeps, or is about to */
	_Atomic bool over;	/* waiting has ended */
};

struct ring {
	struct cell {
		_Atomic uint32_t turn;
		uint32_t value;
	} *cell;
	uint32_t mask;
	struct bell *bell;	/* NULL: no thread ever waits */
	bool alone;		/* only one thread pushes and pops: no atomic operations needed */
	alignas(64) _Atomic uint32_t in;
	alignas(64) _Atomic uint32_t out;
};

/* Allocate room for at least this many numbers. 0 or -ENOMEM. */
int ring_open(struct ring *ring, uint32_t room, struct bell *bell);
void ring_close(struct ring *ring);
bool ring_push_shared(struct ring *ring, uint32_t value);
bool ring_pop_shared(struct ring *ring, uint32_t *value);
/* Pop, and wait if the queue is empty; -1: no limit. false: after the limit, or bell_end(). */
bool ring_wait(struct ring *ring, uint32_t *value, int64_t timeout_ns);
/* Approximate number of entries. */
uint32_t ring_fill(const struct ring *ring);

static inline uint32_t ring_at(const _Atomic uint32_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Push, and wake waiting threads. false: the queue is full. */
static inline bool ring_push(struct ring *ring, uint32_t value)
{
	const uint32_t in = ring_at(&ring->in);

	if (!ring->alone)
		return ring_push_shared(ring, value);
	if (in - ring_at(&ring->out) > ring->mask)
		return false;
	ring->cell[in & ring->mask].value = value;
	atomic_store_explicit(&ring->in, in + 1, memory_order_relaxed);
	return true;
}

/* Pop. false: the queue is empty. */
static inline bool ring_pop(struct ring *ring, uint32_t *value)
{
	const uint32_t out = ring_at(&ring->out);

	if (!ring->alone)
		return ring_pop_shared(ring, value);
	if (out == ring_at(&ring->in))
		return false;
	*value = ring->cell[out & ring->mask].value;
	atomic_store_explicit(&ring->out, out + 1, memory_order_relaxed);
	return true;
}

/* Wake all sleeping threads; bell_end() also makes later waits return at once. */
void bell_ring(struct bell *bell);
void bell_end(struct bell *bell);

#endif /* BUILDER_RING_H */
