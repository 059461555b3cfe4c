// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: the queue of a channel, mapped. See rashpa.h and struct rashpa_ring. */
#include <rashpa.h>
#include "lib/internal.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static bool ring_makes_sense(const struct rashpa_ring *ring, uint64_t size)
{
	uint64_t slots = ring->slots;

	return slots && !(slots & (slots - 1)) && ring->depth <= slots &&
	       ring->record_size >= sizeof(struct rashpa_event) &&
	       ring->record >= sizeof(*ring) && ring->record + slots * ring->record_size <= size;
}

int rashpa_ring_map(int channel, const struct rashpa_channel_make *make,
		    struct rashpa_queue *queue)
{
	void *ring, *consumer;

	*queue = (struct rashpa_queue) { .channel = -1 };
	ring = mmap(NULL, make->out_ring_size, PROT_READ, MAP_SHARED, channel, 0);
	if (ring == MAP_FAILED)
		return fail(errno, "cannot map the records of the channel: %s", strerror(errno));
	consumer = mmap(NULL, make->out_consumer_size, PROT_READ | PROT_WRITE, MAP_SHARED, channel,
			make->out_consumer);
	if (consumer == MAP_FAILED) {
		int error = errno;

		munmap(ring, make->out_ring_size);
		return fail(error, "cannot map the pages of the consumer: %s", strerror(error));
	}
	*queue = (struct rashpa_queue) {
		.channel = channel,
		.ring = ring,
		.consumer = consumer,
		.ring_size = make->out_ring_size,
		.consumer_size = make->out_consumer_size,
	};
	if (ring_makes_sense(ring, make->out_ring_size))
		return 0;
	rashpa_ring_unmap(queue);
	return fail(EPROTO, "the driver's queue of records has a form that this library does not know");
}

void rashpa_ring_unmap(struct rashpa_queue *queue)
{
	if (queue->ring)
		munmap((void *)(uintptr_t)queue->ring, queue->ring_size);
	if (queue->consumer)
		munmap(queue->consumer, queue->consumer_size);
	*queue = (struct rashpa_queue) { .channel = -1 };
}

/*
 * The tail is read from the page and not kept: read() moves it as well. Out of range it means
 * the same to us as to the kernel: nothing was consumed.
 */
static uint64_t tail(const struct rashpa_queue *queue, uint64_t head)
{
	uint64_t at = __atomic_load_n(&queue->consumer->tail, __ATOMIC_RELAXED);

	if (head - at <= queue->ring->depth)
		return at;
	return head > queue->ring->depth ? head - queue->ring->depth : 0;
}

int rashpa_ring_next(struct rashpa_queue *queue, struct rashpa_event *event)
{
	const struct rashpa_ring *ring = queue->ring;
	/* The records are there when the head says so. */
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), at = tail(queue, head);

	if (at == head)
		return 0;
	memcpy(event, (const char *)ring + ring->record +
		      (at & (ring->slots - 1)) * (uint64_t)ring->record_size, sizeof(*event));
	/* The slot is free when the copy is complete. */
	__atomic_store_n(&queue->consumer->tail, at + 1, __ATOMIC_RELEASE);
	return 1;
}

/* 1: there are records, 0: there are none, or a negative errno: there will be none. */
static int ready(const struct rashpa_queue *queue)
{
	/* Before the head: the last records come first. */
	uint32_t gone = __atomic_load_n(&queue->ring->gone, __ATOMIC_ACQUIRE);
	uint64_t head = __atomic_load_n(&queue->ring->head, __ATOMIC_ACQUIRE);

	if (tail(queue, head) != head)
		return 1;
	return gone ? fail(ENODEV, "the function was removed") : 0;
}

int rashpa_ring_wait(struct rashpa_queue *queue, int64_t timeout_ns)
{
	struct pollfd pollfd = { .fd = queue->channel, .events = POLLIN };
	const int64_t end = deadline_of(timeout_ns);
	struct timespec left;
	int64_t ns;
	int result;

	/* Ignore a wake without a record: another thread, or read(), may have taken it. */
	while (!(result = ready(queue))) {
		ns = end == INT64_MAX ? 0 : end - clock_ns();
		if (ns <= 0 && end != INT64_MAX)
			return fail(ETIMEDOUT, "no event came in time");
		left = (struct timespec) { ns / 1000000000, ns % 1000000000 };
		if (ppoll(&pollfd, 1, end == INT64_MAX ? NULL : &left, NULL) < 0)
			return fail(errno, "cannot wait for the channel: %s", strerror(errno));
		if (pollfd.revents & POLLNVAL)
			return fail(EBADF, "cannot wait for the channel: fd %d is not open",
				    pollfd.fd);
	}
	return result < 0 ? result : 0;
}

int rashpa_ring_ack(struct rashpa_queue *queue, unsigned int id, uint64_t position)
{
	size_t ids = (queue->consumer_size - offsetof(struct rashpa_consumer, ack)) /
		     sizeof(queue->consumer->ack[0]);

	if (!id || id > ids)
		return fail(EINVAL, "group %u: an id is 1 to %zu at most", id, ids);
	/* What we have read from the stack was read before it may be overwritten. */
	__atomic_store_n(&queue->consumer->ack[id - 1], position, __ATOMIC_RELEASE);
	return 0;
}
