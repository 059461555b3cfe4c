// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Queue pairs, and the thread that serves them in turn. All request numbers are
 * allocated at the beginning, so that no queue can overflow.
 */
#include "fabric/internal.h"
#include "lib/sized.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOKS	100	/* idle rounds before the thread sleeps */

uint64_t fabric_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

/* --- transports --- */

static const struct {
	const char *name, *missing;
	const struct transport *transport;
} transports[] = {
	{ "shm", NULL, &shm_transport },
#ifdef BUILDER_NO_MPI
	{ "mpi", "this program was built without MPI (libopenmpi-dev)", NULL },
#else
	{ "mpi", NULL, &mpi_transport },
#endif
	{ "verbs", NULL, &verbs_transport },
};

static const struct transport *find(const char *name)
{
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
		if (strcmp(transports[i].name, name))
			continue;
		if (!transports[i].transport)
			fabric_fail(EOPNOTSUPP, "%s", transports[i].missing);
		return transports[i].transport;
	}
	fabric_fail(EOPNOTSUPP, "\"%s\" is not shm, mpi or verbs", name);
	return NULL;
}

const char *rashpa_fabric_has(const char *name)
{
	return find(name) ? NULL : rashpa_fabric_reason();
}

/* --- queues --- */

static bool driven(const struct rashpa_fabric *f)
{
	return f->options.flags & RASHPA_FABRIC_DRIVEN;
}

static void close_queue(struct queue *q)
{
	ring_close(&q->free);
	ring_close(&q->waiting);
	free(q->item);
	q->item = NULL;
}

static void init_queue(struct rashpa_fabric *f, struct queue *q, uint32_t number, bool receives)
{
	q->fabric = f;
	q->number = number;
	q->order = q->places;
	q->receives = receives;
	q->room = f->options.depth == 64 ? UINT64_MAX : (UINT64_C(1) << f->options.depth) - 1;
	atomic_init(&q->low, f->options.depth);
}

static int queue_memory(struct queue *q)
{
	const uint32_t n = q->fabric->options.queue;

	q->item = aligned_alloc(alignof(struct item), n * sizeof(*q->item));
	if (!q->item || ring_open(&q->free, n, NULL) || ring_open(&q->waiting, n, NULL))
		return fabric_fail(ENOMEM, "no memory");
	q->free.alone = q->waiting.alone = driven(q->fabric);
	for (uint32_t i = 0; i < n; i++)
		ring_push(&q->free, i);
	atomic_store_explicit(&q->open, true, memory_order_release);
	return 0;
}

/* Most pairs of many processes never have a message: their queues take no memory. */
static int open_queue(struct queue *q)
{
	int error = 0;

	if (atomic_load_explicit(&q->open, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&q->fabric->lock);
	if (!atomic_load_explicit(&q->open, memory_order_relaxed)) {
		error = queue_memory(q);
		if (error)
			close_queue(q);
	}
	pthread_mutex_unlock(&q->fabric->lock);
	return error;
}

static struct queue *queue_of(struct rashpa_fabric *f, uint32_t number)
{
	struct peer *peer = &f->peer[number >> QUEUE_BITS >> 1];

	return number >> QUEUE_BITS & 1 ? &peer->receive : &peer->send;
}

/* Frees the slot of a request that has ended. */
static void leave(struct queue *q, unsigned int at)
{
	const unsigned int slot = q->order[at];
	const struct item *item = queue_flying(q, slot);

	q->flying--;
	if (at)
		memmove(&q->order[at], &q->order[at + 1], q->flying - at);
	else
		q->order++;
	q->room |= UINT64_C(1) << slot;
	q->ready &= ~(UINT64_C(1) << slot);
	count(&q->done, 1);
	count(&q->bytes, item->length);
	ring_push(&q->fabric->events, q->number << QUEUE_BITS | q->flight[slot]);
}

void queue_done(struct queue *q, unsigned int slot, int status, uint32_t length, uint32_t tag)
{
	struct item *item = queue_flying(q, slot);
	unsigned int at = 0;

	item->status = status;
	item->length = length;
	if (!q->receives) {
		while (q->order[at] != slot)
			at++;
		leave(q, at);
		return;
	}
	/* events come in the order in which messages were sent, not in that of completions */
	item->request.tag = tag;
	q->ready |= UINT64_C(1) << slot;
	while (q->flying && q->ready >> q->order[0] & 1)
		leave(q, 0);
}

void queue_end(struct queue *q, int status)
{
	while (q->flying)
		queue_done(q, q->order[0], status, 0, queue_flying(q, q->order[0])->request.tag);
}

void peer_gone(struct peer *peer, uint32_t because)
{
	peer->because = because;
	atomic_store(&peer->gone, true);
}

bool queue_begin(struct queue *q, struct peer *peer)
{
	const struct rashpa_fabric *f = q->fabric;
	const bool gone = atomic_load_explicit(&peer->gone, memory_order_relaxed);
	bool any = false;
	uint32_t i;

	if (!atomic_load_explicit(&q->open, memory_order_acquire))
		return false;
	if (atomic_load_explicit(&q->done, memory_order_relaxed) &&
	    q->flying < atomic_load_explicit(&q->low, memory_order_relaxed))
		atomic_store_explicit(&q->low, q->flying, memory_order_relaxed);
	while (q->room && ring_pop(&q->waiting, &i)) {
		const unsigned int slot = __builtin_ctzll(q->room);
		int status = gone ? -EPIPE : 0;

		any = true;
		q->flight[slot] = i;
		if (q->order + q->flying == q->places + sizeof(q->places))
			q->order = memcpy(q->places, q->order, q->flying);
		q->order[q->flying++] = slot;
		q->room &= ~(UINT64_C(1) << slot);
		if (!gone && peer->rank != f->launch.rank)
			status = f->transport->begin(q, peer, slot);
		if (status)
			queue_done(q, slot, status, 0, q->item[i].request.tag);
	}
	return any;
}

/* --- messages of this process to itself --- */

static bool match(struct peer *self)
{
	struct queue *to = &self->receive, *from = &self->send;
	bool any = false;

	count(&to->polls, 1);
	count(&from->polls, 1);
	while (from->flying && to->flying) {
		const struct rashpa_fabric_request *s, *r;
		uint32_t length;
		int status;

		s = &queue_flying(from, from->order[0])->request;
		r = &queue_flying(to, to->order[0])->request;
		status = s->length <= r->length ? 0 : -EMSGSIZE;
		length = status ? 0 : s->length;
		memcpy(r->buffer, s->buffer, length);
		queue_done(to, to->order[0], status, length, s->tag);
		queue_done(from, from->order[0], status, length, 0);
		any = true;
	}
	return any;
}

/* --- the thread --- */

/* No peer may start more than its pipeline in a round. */
static bool begin(struct peer *peer)
{
	const bool any = queue_begin(&peer->receive, peer);

	return queue_begin(&peer->send, peer) || any;
}

static bool round_of(struct rashpa_fabric *f, uint32_t first)
{
	bool any = false;

	for (uint32_t i = 0; i < f->launch.size; i++) {
		struct peer *peer = &f->peer[(first + i) % f->launch.size];

		any |= begin(peer);
		if (peer->rank == f->launch.rank)
			any |= match(peer);
		else
			any |= f->transport->poll(f, peer);
	}
	return any;
}

static void here(struct rashpa_fabric *f)
{
	unsigned int node;

	if (!getcpu(NULL, &node))
		atomic_store_explicit(&f->thread_node, node, memory_order_relaxed);
}

static void *serve(void *arg)
{
	struct rashpa_fabric *f = arg;
	uint32_t first = 0, looks = 0;

	here(f);

	while (!atomic_load_explicit(&f->stop, memory_order_relaxed)) {
		const bool any = round_of(f, first++ % f->launch.size);

		count(&f->rounds, 1);
		count(&f->idle, !any);
		looks = any ? 0 : looks + 1;
		if (looks < LOOKS || !f->transport->sleep)
			continue;
		here(f);
		/* later posts wake this thread; the next round finds earlier ones */
		atomic_fetch_or(f->asleep, 1);
		if (!round_of(f, first % f->launch.size) && !atomic_load(&f->stop)) {
			count(&f->sleeps, 1);
			f->transport->sleep(f);
		}
		atomic_store(f->asleep, 0);
		looks = 0;
	}
	return NULL;
}

/* Without a thread: serves peers until there is an event, or the time is over. */
static void drive(struct rashpa_fabric *f, int64_t timeout_ns)
{
	const uint64_t end = timeout_ns > 0 ? fabric_now() + timeout_ns : 0;
	uint32_t looks = 0;

	do {
		const bool any = round_of(f, f->turn++ % f->launch.size);

		count(&f->rounds, 1);
		count(&f->idle, !any);
		if (ring_fill(&f->events) || !timeout_ns) {
			/* peers can work while the caller handles the events */
			for (uint32_t i = 0; i < f->launch.size; i++)
				begin(&f->peer[i]);
			break;
		}
		looks = any ? 0 : looks + 1;
		if (looks > LOOKS)
			sched_yield();
	} while (!atomic_load_explicit(&f->event_bell.over, memory_order_relaxed) &&
		 (timeout_ns < 0 || looks <= LOOKS || fabric_now() < end));
}

static void rouse(struct rashpa_fabric *f)
{
	if (f->running && !driven(f) && f->transport->wake && atomic_fetch_or(f->asleep, 0))
		f->transport->wake(f);
}

/* --- requests --- */

static int check(struct rashpa_fabric *f, const struct rashpa_fabric_request *r)
{
	const struct rashpa_pool *p = r->pool;

	if (r->peer >= f->launch.size)
		return fabric_fail(EINVAL, "there is no peer %u: the last rank is %u", r->peer,
				   f->launch.size - 1);
	if (r->tag > RASHPA_FABRIC_TAG)
		return fabric_fail(EINVAL, "tag %#x is above the limit %#x", r->tag, RASHPA_FABRIC_TAG);
	if (r->length > RASHPA_FABRIC_MESSAGE)
		return fabric_fail(EINVAL, "a message of %u bytes is above the limit of %u", r->length,
				   RASHPA_FABRIC_MESSAGE);
	if (p && (p->arena->fabric != f || (uintptr_t)r->buffer < (uintptr_t)p->base ||
		  ((uintptr_t)r->buffer - (uintptr_t)p->base) / p->stride >= p->buffers ||
		  ((uintptr_t)r->buffer - (uintptr_t)p->base) % p->stride ||
		  r->length > p->bytes))
		return fabric_fail(EINVAL, "%u bytes are not a buffer of the pool", r->length);
	if (!p && !arena_of(f, r->buffer, r->length))
		return fabric_fail(EINVAL, "the %u bytes are not in an arena: bring their memory by rashpa_arena_bring()",
				   r->length);
	return 0;
}

static int post(struct rashpa_fabric *f, const struct rashpa_fabric_request *r, bool receives)
{
	struct queue *q;
	uint32_t i;
	int error = check(f, r);

	if (error)
		return error;
	if (atomic_load_explicit(&f->peer[r->peer].gone, memory_order_relaxed))
		return fabric_fail(EPIPE, "peer %u has gone", r->peer);
	q = receives ? &f->peer[r->peer].receive : &f->peer[r->peer].send;
	error = open_queue(q);
	if (error)
		return error;
	if (!ring_pop(&q->free, &i))
		return fabric_fail(EAGAIN, "the queue of peer %u is full (%u requests): take events", r->peer,
				   f->options.queue);
	q->item[i].request = *r;
	if (driven(f))
		count(&q->posted, 1);
	else
		atomic_fetch_add_explicit(&q->posted, 1, memory_order_relaxed);
	ring_push(&q->waiting, i);
	rouse(f);
	return 0;
}

int rashpa_fabric_send(struct rashpa_fabric *f, const struct rashpa_fabric_request *r)
{
	return post(f, r, false);
}

int rashpa_fabric_receive(struct rashpa_fabric *f, const struct rashpa_fabric_request *r)
{
	return post(f, r, true);
}

int rashpa_fabric_next(struct rashpa_fabric *f, struct rashpa_fabric_event *events, uint32_t n,
		       int64_t timeout_ns)
{
	uint32_t number, found = 0;

	if (f->running && !f->threaded) {
		drive(f, timeout_ns);
		timeout_ns = 0;
	}
	while (found < n && (found ? ring_pop(&f->events, &number) :
				     ring_wait(&f->events, &number, timeout_ns))) {
		struct queue *q = queue_of(f, number);
		const uint32_t i = number & ((1u << QUEUE_BITS) - 1);

		events[found++] = (struct rashpa_fabric_event) {
			.request = q->item[i].request,
			.status = q->item[i].status,
			.length = q->item[i].length,
			.received = q->receives,
		};
		ring_push(&q->free, i);
	}
	return found;
}

void rashpa_fabric_wake(struct rashpa_fabric *f)
{
	bell_end(&f->event_bell);
	for (struct rashpa_pool *p = f->pools; p; p = p->next)
		bell_end(&p->bell);
}

/* --- life --- */

static int check_options(struct rashpa_fabric *f)
{
	struct rashpa_fabric_options *o = &f->options;

	o->depth = o->depth ? o->depth : DEPTH;
	o->queue = o->queue ? o->queue : QUEUE;
	o->timeout_ms = o->timeout_ms ? o->timeout_ms : TIMEOUT_MS;
	if (o->depth > RASHPA_FABRIC_DEPTH)
		return fabric_fail(EINVAL, "the depth of a pipeline is 1 to %d, not %u",
				   RASHPA_FABRIC_DEPTH, o->depth);
	if (o->queue > 1u << QUEUE_BITS)
		return fabric_fail(EINVAL, "a queue has 1 to %u requests, not %u",
				   1u << QUEUE_BITS, o->queue);
	if (o->poll > RASHPA_FABRIC_WAITALL ||
	    o->flags & ~(RASHPA_FABRIC_BUFFERED | RASHPA_FABRIC_DRIVEN | RASHPA_FABRIC_ONLY_USED))
		return fabric_fail(EINVAL, "unknown way to poll: see enum rashpa_fabric_poll");
	if (o->device)
		snprintf(f->device, sizeof(f->device), "%s", o->device);
	o->device = o->device ? f->device : NULL;
	return 0;
}

static int check_launch(const struct rashpa_launch *l)
{
	if (!l->size || l->size > RASHPA_FABRIC_PEERS || l->rank >= l->size ||
	    !memchr(l->job, 0, sizeof(l->job)))
		return fabric_fail(EINVAL, "rank %u of %u processes is invalid: a run has 1 to %d processes, and ranks start at 0",
				   l->rank, l->size, RASHPA_FABRIC_PEERS);
	return 0;
}

static int open_peers(struct rashpa_fabric *f)
{
	const uint32_t queue = f->options.queue, size = f->launch.size;
	/* without a thread, no call sleeps */
	struct bell *bell = driven(f) ? NULL : &f->event_bell;

	f->peer = fabric_memory(size, sizeof(*f->peer));
	if (!f->peer || ring_open(&f->events, size * 2 * queue, bell))
		return fabric_fail(ENOMEM, "no memory");
	f->events.alone = driven(f);
	for (uint32_t i = 0; i < size; i++) {
		f->peer[i].rank = i;
		init_queue(f, &f->peer[i].send, 2 * i, false);
		init_queue(f, &f->peer[i].receive, 2 * i + 1, true);
	}
	return 0;
}

int rashpa_fabric_open_sized(const struct rashpa_fabric_options *options,
			     struct rashpa_fabric **fabric, size_t size, size_t launch_size)
{
	struct rashpa_fabric_options ours;
	const struct transport *transport;
	struct rashpa_launch launch;

	sized_copy(&ours, sizeof(ours), options, size);
	if (ours.launch) {
		sized_copy(&launch, sizeof(launch), ours.launch, launch_size);
		ours.launch = &launch;
	}
	transport = find(ours.transport);
	return transport ? fabric_open_with(transport, &ours, fabric) : -EOPNOTSUPP;
}

int fabric_open_with(const struct transport *transport, const struct rashpa_fabric_options *options,
		     struct rashpa_fabric **fabric)
{
	struct rashpa_fabric *f;
	int error;

	f = fabric_memory(1, sizeof(*f));
	if (!f)
		return fabric_fail(ENOMEM, "no memory");
	f->transport = transport;
	pthread_mutex_init(&f->lock, NULL);
	f->options = *options;
	f->asleep = &f->own_asleep;
	f->device_node = -1;
	f->memory_node = -1;
	atomic_init(&f->thread_node, -1);
	error = check_options(f);
	if (!error && options->launch)
		f->launch = *options->launch;
	if (!error)
		error = transport->open(f);
	if (!error)
		error = check_launch(&f->launch);
	f->options.launch = NULL;	/* the caller's */
	if (!error)
		error = open_peers(f);
	if (error)
		rashpa_fabric_close(f);
	else
		*fabric = f;
	return error;
}

static int start(struct rashpa_fabric *f)
{
	const int32_t cpu = f->options.cpu;
	pthread_attr_t attr;
	cpu_set_t set;
	int error;

	f->running = true;
	here(f);
	if (driven(f))
		return 0;
	if (cpu >= CPU_SETSIZE) {
		f->running = false;
		return fabric_fail(EINVAL, "there is no processor %d: give another --cpu", cpu);
	}
	pthread_attr_init(&attr);
	if (cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	}
	error = pthread_create(&f->thread, &attr, serve, f);
	pthread_attr_destroy(&attr);
	f->threaded = !error;
	if (error) {
		f->running = false;
		return fabric_fail(error, "cannot start a thread on processor %d: %s", cpu, strerror(error));
	}
	pthread_setname_np(f->thread, "transport");
	return 0;
}

int rashpa_fabric_connect(struct rashpa_fabric *f)
{
	int error;

	if (f->connected)
		return fabric_fail(EISCONN, "peers are connected already");
	f->connected = true;
	error = f->transport->connect(f, fabric_now() + f->options.timeout_ms * UINT64_C(1000000));
	return error ? error : start(f);
}

void rashpa_fabric_close(struct rashpa_fabric *f)
{
	if (!f)
		return;
	atomic_store(&f->stop, true);
	if (f->threaded) {
		if (f->transport->wake)
			f->transport->wake(f);
		pthread_join(f->thread, NULL);
	}
	f->transport->close(f);
	for (uint32_t i = 0; f->peer && i < f->launch.size; i++) {
		close_queue(&f->peer[i].send);
		close_queue(&f->peer[i].receive);
	}
	free(f->peer);
	pthread_mutex_destroy(&f->lock);
	ring_close(&f->events);
	arenas_close(f);
	free(f);
}

/* --- state and counters --- */

uint32_t rashpa_fabric_rank(const struct rashpa_fabric *f)
{
	return f->launch.rank;
}

uint32_t rashpa_fabric_size(const struct rashpa_fabric *f)
{
	return f->launch.size;
}

int rashpa_fabric_gone(const struct rashpa_fabric *f, uint32_t peer)
{
	return peer < f->launch.size && atomic_load(&f->peer[peer].gone);
}

void rashpa_fabric_blame(struct rashpa_fabric *f, uint32_t peer)
{
	f->failed = true;
	if (f->transport->blame && f->connected && peer < f->launch.size)
		f->transport->blame(f, peer);
}

uint32_t rashpa_fabric_because(const struct rashpa_fabric *f, uint32_t peer)
{
	return rashpa_fabric_gone(f, peer) ? f->peer[peer].because : peer;
}

static void tell(const struct queue *q, struct rashpa_queue_counts *counts)
{
	*counts = (struct rashpa_queue_counts) {
		.posted = atomic_load_explicit(&q->posted, memory_order_relaxed),
		.done = atomic_load_explicit(&q->done, memory_order_relaxed),
		.bytes = atomic_load_explicit(&q->bytes, memory_order_relaxed),
		.polls = atomic_load_explicit(&q->polls, memory_order_relaxed),
		.low = atomic_load_explicit(&q->low, memory_order_relaxed),
	};
}

int rashpa_fabric_count_sized(const struct rashpa_fabric *f, uint32_t peer,
			      struct rashpa_queue_counts *send,
			      struct rashpa_queue_counts *receive, size_t size)
{
	struct rashpa_queue_counts counts = {};

	if (peer >= f->launch.size)
		return fabric_fail(EINVAL, "there is no peer %u: the last rank is %u", peer,
				   f->launch.size - 1);
	tell(&f->peer[peer].send, &counts);
	sized_copy(send, size, &counts, sizeof(counts));
	tell(&f->peer[peer].receive, &counts);
	sized_copy(receive, size, &counts, sizeof(counts));
	return 0;
}

void rashpa_fabric_total_sized(const struct rashpa_fabric *f, struct rashpa_fabric_counts *counts,
			       size_t size)
{
	struct rashpa_fabric_counts total;
	struct timespec cpu = {};
	clockid_t clock;

	if (f->threaded && !pthread_getcpuclockid(f->thread, &clock))
		clock_gettime(clock, &cpu);
	total = (struct rashpa_fabric_counts) {
		.rounds = atomic_load_explicit(&f->rounds, memory_order_relaxed),
		.idle = atomic_load_explicit(&f->idle, memory_order_relaxed),
		.sleeps = atomic_load_explicit(&f->sleeps, memory_order_relaxed),
		.cpu_ns = cpu.tv_sec * UINT64_C(1000000000) + cpu.tv_nsec,
		.registrations = atomic_load_explicit(&f->registrations, memory_order_relaxed),
	};
	sized_copy(counts, size, &total, sizeof(total));
}

void rashpa_fabric_nodes(const struct rashpa_fabric *f, struct rashpa_fabric_nodes *nodes)
{
	*nodes = (struct rashpa_fabric_nodes) {
		.device = f->device_node, .memory = f->memory_node,
		.thread = atomic_load_explicit(&f->thread_node, memory_order_relaxed),
	};
}

const char *rashpa_fabric_apart(const struct rashpa_fabric_nodes *n)
{
	const int32_t at = n->device >= 0 ? n->device : n->memory;

	if (n->device >= 0 && n->memory >= 0 && n->device != n->memory)
		fabric_fail(0, "messages are at NUMA node %d, and the card at node %d: start with numactl --cpunodebind=%d --membind=%d, or use a buffer there",
			    n->memory, at, at, at);
	else if (at >= 0 && n->thread >= 0 && n->thread != at)
		fabric_fail(0, "the transport's thread is at NUMA node %d, and %s at node %d: set --cpu, or start with numactl --cpunodebind=%d",
			    n->thread, n->device >= 0 ? "the card" : "messages", at, at);
	else
		return NULL;
	return rashpa_fabric_reason();
}
