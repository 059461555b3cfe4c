// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bounded queues without locks. Each cell holds the count that may use it, without the bits of its
 * index: zeros are right at the beginning, so a large queue takes no memory before it is used.
 */
#include "fabric/ring.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOKS	200	/* polls before a sleep: a few microseconds */

/* --- waiting --- */

static void futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *most)
{
	/* ignore errors: the caller checks the condition again */
	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, most, NULL, 0);
}

/*
 * A thread sets "asleep" before it checks the queue for the last time, and this function runs after
 * the push, so no push is missed. Only the first push wakes, and it wakes all threads: a system
 * call for each push would cost more than the rest.
 */
void bell_ring(struct bell *bell)
{
	if (!bell)
		return;
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&bell->asleep, memory_order_relaxed) ||
	    !atomic_exchange(&bell->asleep, false))
		return;
	atomic_fetch_add(&bell->rung, 1);
	futex(&bell->rung, FUTEX_WAKE, INT_MAX, NULL);
}

void bell_end(struct bell *bell)
{
	atomic_store(&bell->over, true);
	atomic_fetch_add(&bell->rung, 1);
	futex(&bell->rung, FUTEX_WAKE, INT_MAX, NULL);
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static bool sleep_for(struct bell *bell, struct ring *ring, uint32_t *value, int64_t left)
{
	const struct timespec most = { left / 1000000000, left % 1000000000 };
	uint32_t rung;
	bool found;

	rung = atomic_load(&bell->rung);
	atomic_store(&bell->asleep, true);
	atomic_thread_fence(memory_order_seq_cst);
	found = ring_pop(ring, value);
	if (!found && !atomic_load(&bell->over))
		futex(&bell->rung, FUTEX_WAIT, rung, left < 0 ? NULL : &most);
	return found;
}

bool ring_wait(struct ring *ring, uint32_t *value, int64_t timeout_ns)
{
	const int64_t end = timeout_ns < 0 ? -1 : now() + timeout_ns;
	int64_t left = timeout_ns;

	for (unsigned int i = 0; i < LOOKS; i++) {
		if (ring_pop(ring, value))
			return true;
		if (!timeout_ns)
			return false;
	}
	while (!atomic_load(&ring->bell->over)) {
		if (sleep_for(ring->bell, ring, value, left))
			return true;
		if (end >= 0) {
			left = end - now();
			if (left <= 0)
				break;
		}
	}
	return ring_pop(ring, value);
}

/* --- queue --- */

int ring_open(struct ring *ring, uint32_t room, struct bell *bell)
{
	uint32_t cells = 2;

	while (cells < room)
		cells *= 2;
	ring->cell = calloc(cells, sizeof(*ring->cell));
	if (!ring->cell)
		return -ENOMEM;
	ring->mask = cells - 1;
	ring->bell = bell;
	return 0;
}

void ring_close(struct ring *ring)
{
	free(ring->cell);
	ring->cell = NULL;
}

/* Claim the next cell, and advance the counter. NULL: the cell is not ready yet. */
static struct cell *claim(struct ring *ring, _Atomic uint32_t *counter, uint32_t ahead,
			  uint32_t *at)
{
	struct cell *cell;
	int32_t off;

	*at = atomic_load_explicit(counter, memory_order_relaxed);
	for (;;) {
		cell = &ring->cell[*at & ring->mask];
		off = (int32_t)(atomic_load_explicit(&cell->turn, memory_order_acquire) -
				((*at & ~ring->mask) + ahead));
		if (off < 0)
			return NULL;
		if (off > 0)
			*at = atomic_load_explicit(counter, memory_order_relaxed);
		else if (atomic_compare_exchange_weak_explicit(counter, at, *at + 1,
							       memory_order_relaxed,
							       memory_order_relaxed))
			return cell;
	}
}

bool ring_push_shared(struct ring *ring, uint32_t value)
{
	uint32_t at;
	struct cell *cell = claim(ring, &ring->in, 0, &at);

	if (!cell)
		return false;
	cell->value = value;
	atomic_store_explicit(&cell->turn, (at & ~ring->mask) + 1, memory_order_release);
	bell_ring(ring->bell);
	return true;
}

bool ring_pop_shared(struct ring *ring, uint32_t *value)
{
	uint32_t at;
	struct cell *cell = claim(ring, &ring->out, 1, &at);

	if (!cell)
		return false;
	*value = cell->value;
	atomic_store_explicit(&cell->turn, (at | ring->mask) + 1, memory_order_release);
	return true;
}

uint32_t ring_fill(const struct ring *ring)
{
	const uint32_t out = atomic_load_explicit(&ring->out, memory_order_relaxed);

	return atomic_load_explicit(&ring->in, memory_order_relaxed) - out;
}
