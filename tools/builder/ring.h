/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bounded queues of numbers for any threads, and waiting for them. A full queue refuses; who pushes
 * has counted that there is room.
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
	_Atomic bool asleep;	/* somebody, since it was rung */
	_Atomic bool over;	/* nobody waits any more */
};

struct ring {
	struct cell {
		_Atomic uint32_t turn;
		uint32_t value;
	} *cell;
	uint32_t mask;
	struct bell *bell;	/* NULL: nobody waits */
	bool alone;		/* one thread pushes and pops: nothing has to be atomic */
	alignas(64) _Atomic uint32_t in;
	alignas(64) _Atomic uint32_t out;
};

/* Room for so many at least. 0 or -ENOMEM. */
int ring_open(struct ring *ring, uint32_t room, struct bell *bell);
void ring_close(struct ring *ring);
bool ring_push_shared(struct ring *ring, uint32_t value);
bool ring_pop_shared(struct ring *ring, uint32_t *value);
/* The same, and wait for it: -1: for ever. false: the time, or all, is over. */
bool ring_wait(struct ring *ring, uint32_t *value, int64_t timeout_ns);
/* How many there are, about. */
uint32_t ring_fill(const struct ring *ring);

static inline uint32_t ring_at(const _Atomic uint32_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* false: it is full. A thread that waits is woken. */
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

/* false: it is empty. */
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

/* Threads that sleep look again; or go on from now on. */
void bell_ring(struct bell *bell);
void bell_end(struct bell *bell);

#endif /* BUILDER_RING_H */
