// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rashpa-builder nton, nxn: send messages as fast as possible, in order, and measure rate and cost.
 * Four threads: the sender, the transport's, the handler of completions, and the sampler.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <zlib.h>

#include "builder/builder.h"
#include "common/json-out.h"
#include "common/say.h"

#define TAG_END		0x40000000u	/* last message of a sender: the number of its messages */
#define TAG_RESULT	0x40000001u	/* result of a rank, to rank 0 */
#define TAG_MASK	0x3fffffffu	/* range of sequence numbers */
#define LOOK_NS		INT64_C(50000000)
#define SAMPLES		4096

/* Head of a message with --verify. */
struct head {
	uint32_t from, to;
	uint64_t sequence;
	uint32_t length, checksum;	/* data after this head: bytes, CRC */
};

struct flow {
	struct rashpa_pool *pool;
	uint8_t *memory;	/* the buffer of --one-buffer */
	bool used, ended;
	uint64_t messages, bytes, total;	/* total: sent with TAG_END */
	uint64_t next;		/* expected sequence number */
};

struct run {
	struct rashpa_fabric *f;
	const struct options *o;
	const volatile bool *stop;
	uint32_t rank, size, room;
	struct flow *out, *in;
	uint32_t sources, ended;
	_Atomic uint64_t sent, sent_done, received, sent_bytes, received_bytes;
	uint64_t duplicate, wrong, lost, late;
	_Atomic bool all_sent, done, failed, told;
	int result;
	struct json_object **said;	/* rank 0: results by rank */
	uint32_t results;
	/* samples */
	double *rate;
	uint32_t samples;
	pthread_mutex_t lock;
	pthread_cond_t change;
};

static double seconds(uint64_t ns)
{
	return ns / 1e9;
}

static void end(struct run *r, int result)
{
	pthread_mutex_lock(&r->lock);
	if (result && !r->result)
		r->result = result;
	if (result)
		atomic_store(&r->failed, true);
	atomic_store(&r->done, true);
	pthread_cond_broadcast(&r->change);
	pthread_mutex_unlock(&r->lock);
}

/* Only the first thread that sees an error prints it. */
static int went(struct run *r, uint32_t peer, int error, const char *what)
{
	/* if ranks leave one after the other, this is the first one */
	const uint32_t because = rashpa_fabric_because(r->f, peer);

	if (atomic_exchange(&r->told, true))
		return EXIT_FAILED;
	rashpa_fabric_blame(r->f, because);
	fail("rank %u: %s rank %u: %s", r->rank, what, because,
	     error == -EPIPE ? "it has gone" : strerror(-error));
	return EXIT_FAILED;
}

/* --- messages --- */

static uint32_t length_of(const struct run *r, uint64_t sequence)
{
	const uint32_t size = r->o->size, spread = (uint64_t)size * r->o->jitter / 100;
	const uint64_t mixed = (sequence + r->rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t length = spread ? size - spread + (mixed >> 32) % (2 * spread + 1) : size;

	if (r->o->verify && length < sizeof(struct head))
		length = sizeof(struct head);
	return length ? length : 1;
}

static void fill(const struct run *r, uint8_t *buffer, uint32_t to, uint64_t sequence,
		 uint32_t length)
{
	struct head head = {
		.from = r->rank, .to = to, .sequence = sequence, .length = length - sizeof(head),
	};

	memset(buffer + sizeof(head), (int)(sequence * 37 + to * 11 + r->rank), head.length);
	head.checksum = crc32(0, buffer + sizeof(head), head.length);
	memcpy(buffer, &head, sizeof(head));
}

static bool right(const struct run *r, const struct rashpa_fabric_event *e)
{
	const uint8_t *buffer = e->request.buffer;
	struct head head;

	if (e->length < sizeof(head))
		return false;
	memcpy(&head, buffer, sizeof(head));
	return head.from == e->request.peer && head.to == r->rank &&
	       (head.sequence & TAG_MASK) == e->request.tag &&
	       head.length == e->length - sizeof(head) &&
	       head.checksum == crc32(0, buffer + sizeof(head), head.length);
}

/* --- sender --- */

static int post(struct run *r, struct flow *to, uint32_t peer, void *buffer, uint32_t length,
		uint32_t tag)
{
	const struct rashpa_fabric_request request = {
		.buffer = buffer, .pool = to->pool, .length = length, .peer = peer, .tag = tag,
	};
	const int error = rashpa_fabric_send(r->f, &request);

	if (error && to->pool)
		rashpa_pool_give(to->pool, buffer);
	if (!error)
		atomic_fetch_add(&r->sent, 1);
	return error;
}

/* Send one message. 1; 0: no room now; or a negative errno. */
static int send_one(struct run *r, uint32_t peer, int64_t wait_ns)
{
	struct flow *to = &r->out[peer];
	const uint32_t length = length_of(r, to->messages);
	void *buffer = to->pool ? rashpa_pool_take(to->pool, wait_ns) : to->memory;
	int error;

	if (!buffer)
		return 0;
	if (r->o->verify)
		fill(r, buffer, peer, to->messages, length);
	error = post(r, to, peer, buffer, length, to->messages & TAG_MASK);
	if (error)
		return error == -EAGAIN ? 0 : error;
	to->messages++;
	return 1;
}

static int send_end(struct run *r, uint32_t peer)
{
	struct flow *to = &r->out[peer];
	uint64_t *buffer;
	int error = -EAGAIN;

	while (error == -EAGAIN && !atomic_load(&r->failed)) {
		buffer = to->pool ? rashpa_pool_take(to->pool, LOOK_NS) : (void *)to->memory;
		if (!buffer)
			continue;
		*buffer = to->messages;
		error = post(r, to, peer, buffer, sizeof(*buffer), TAG_END);
	}
	return error;
}

/* Send to each peer in turn; sleep briefly if there was room for none. */
static int send_round(struct run *r, uint32_t *first, bool *more)
{
	bool any = false;
	int n;

	*more = false;
	for (uint32_t i = 0; i < r->size; i++) {
		const uint32_t peer = (*first + i) % r->size;

		if (!r->out[peer].used ||
		    (r->o->messages && r->out[peer].messages == r->o->messages))
			continue;
		*more = true;
		n = send_one(r, peer, 0);
		if (n < 0) {
			*first = peer;
			return n;
		}
		any |= n;
	}
	++*first;
	if (any || !*more)
		return 0;
	/* wait for a buffer of one peer, and of the next one in the next round */
	while (!r->out[*first % r->size].used)
		++*first;
	if (!r->out[*first % r->size].pool) {
		const struct timespec pause = { .tv_nsec = 20000 };

		nanosleep(&pause, NULL);
		return 0;
	}
	if (r->o->messages && r->out[*first % r->size].messages == r->o->messages)
		return 0;
	n = send_one(r, *first % r->size, 1000000);
	return n < 0 ? n : 0;
}

static void *sender(void *arg)
{
	struct run *r = arg;
	const uint64_t until = now_ns() + (r->o->messages ? UINT64_C(1) << 62 :
						       (uint64_t)(r->o->seconds * 1e9));
	uint32_t first = r->rank;
	bool more = true;
	int error = 0;

	while (!error && more && !*r->stop && !atomic_load(&r->failed) && now_ns() < until)
		error = send_round(r, &first, &more);
	for (uint32_t i = 0; i < r->size && !error; i++) {
		if (r->out[i].used)
			error = send_end(r, first = i);
	}
	if (error && !atomic_load(&r->failed))
		end(r, went(r, first % r->size, error, "message to"));
	atomic_store(&r->all_sent, true);
	return NULL;
}

/* --- handler --- */

static int room_for(struct run *r, uint32_t peer, void *buffer)
{
	const struct flow *from = &r->in[peer];
	const struct rashpa_fabric_request request = {
		.buffer = buffer, .pool = from->pool, .length = r->room, .peer = peer,
	};

	return rashpa_fabric_receive(r->f, &request);
}

/* Check the sequence: messages keep their order. */
static void sequence(struct run *r, struct flow *from, uint32_t tag)
{
	const uint64_t ahead = (tag - from->next) & TAG_MASK;

	if (ahead > TAG_MASK / 2) {
		r->duplicate++;
		return;
	}
	r->lost += ahead;
	from->next += ahead + 1;
	r->late += from->ended;
}

static void message(struct run *r, struct flow *from, const struct rashpa_fabric_event *e)
{
	from->messages++;
	from->bytes += e->length;
	atomic_fetch_add_explicit(&r->received, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->received_bytes, e->length, memory_order_relaxed);
	sequence(r, from, e->request.tag);
	if (r->o->verify && !right(r, e))
		r->wrong++;
}

/* --slow: the last rank receives more slowly than the others send. */
static void linger(const struct run *r)
{
	const uint64_t ns = r->rank == r->size - 1 ? r->o->slow_us * 1e3 : 0;
	const struct timespec pause = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	if (ns)
		nanosleep(&pause, NULL);
}

static void take_result(struct run *r, const struct rashpa_fabric_event *e)
{
	struct json_object *said;
	char text[TEXT_BYTES];

	if (r->rank || e->length >= sizeof(text) || r->said[e->request.peer])
		return;
	memcpy(text, e->request.buffer, e->length);
	text[e->length] = 0;
	said = json_tokener_parse(text);
	if (!said)
		return;
	r->said[e->request.peer] = said;
	r->results++;
}

/* Handle a received message. A failed request ends the run. */
static int received(struct run *r, const struct rashpa_fabric_event *e)
{
	const uint32_t peer = e->request.peer;
	struct flow *from = &r->in[peer];

	if (e->status == -EPIPE && (r->rank ? from->ended : !!r->said[peer]))
		return 0;	/* the peer has sent everything, and left */
	if (e->status)
		return went(r, peer, e->status, "message from");
	if (e->request.tag == TAG_END && e->length == sizeof(from->total) && !from->ended) {
		memcpy(&from->total, e->request.buffer, sizeof(from->total));
		from->ended = true;
		r->ended++;
	} else if (e->request.tag == TAG_RESULT) {
		take_result(r, e);
	} else if (e->request.tag <= TAG_MASK) {
		message(r, from, e);
		linger(r);
	} else {
		r->wrong++;
	}
	if (room_for(r, peer, e->request.buffer) && !rashpa_fabric_gone(r->f, peer))
		return fail_fabric(r->f, 0, "");
	return 0;
}

static int handle(struct run *r, const struct rashpa_fabric_event *e)
{
	if (e->received)
		return received(r, e);
	if (e->request.pool)
		rashpa_pool_give(e->request.pool, e->request.buffer);
	atomic_fetch_add(&r->sent_done, 1);
	atomic_fetch_add_explicit(&r->sent_bytes, e->length, memory_order_relaxed);
	return e->status ? went(r, e->request.peer, e->status, "message to") : 0;
}

static bool complete(const struct run *r)
{
	return r->ended == r->sources && atomic_load(&r->all_sent) &&
	       atomic_load(&r->sent_done) == atomic_load(&r->sent);
}

/* Handle completions until all messages have come, and all sent ones have arrived. */
static void *handler(void *arg)
{
	struct run *r = arg;
	struct rashpa_fabric_event e[64];
	uint64_t moved = now_ns();
	int n, result = 0;

	while (!result && !complete(r)) {
		n = rashpa_fabric_next(r->f, e, 64, LOOK_NS);
		for (int i = 0; i < n && !result; i++)
			result = handle(r, &e[i]);
		if (n)
			moved = now_ns();
		else if (seconds(now_ns() - moved) > r->o->timeout)
			result = EXIT_TIMEOUT;
		if (atomic_load(&r->failed))
			break;
	}
	if (result == EXIT_TIMEOUT)
		fail("rank %u: no progress for %.3g s: %llu messages sent, %llu of them arrived, %llu received, %u of %u sources at their end",
		     r->rank, r->o->timeout, (unsigned long long)atomic_load(&r->sent),
		     (unsigned long long)atomic_load(&r->sent_done),
		     (unsigned long long)atomic_load(&r->received), r->ended, r->sources);
	end(r, result);
	return NULL;
}

/* --- samples --- */

static void *sampler(void *arg)
{
	struct run *r = arg;
	const uint64_t every = r->o->interval * 1e9;
	struct timespec until;
	uint64_t before = 0, then = now_ns();

	clock_gettime(CLOCK_MONOTONIC, &until);
	pthread_mutex_lock(&r->lock);
	while (!atomic_load(&r->done)) {
		const uint64_t next = until.tv_nsec + every;

		until.tv_sec += next / 1000000000;
		until.tv_nsec = next % 1000000000;
		while (!atomic_load(&r->done) &&
		       pthread_cond_timedwait(&r->change, &r->lock, &until) != ETIMEDOUT)
			;
		if (!atomic_load(&r->done) && r->samples < SAMPLES) {
			/* nton: senders count the messages that arrived */
			const uint64_t bytes = atomic_load(r->sources ? &r->received_bytes :
									&r->sent_bytes);
			const uint64_t now = now_ns();

			r->rate[r->samples++] = (bytes - before) / seconds(now - then);
			before = bytes;
			then = now;
		}
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* --- results --- */

static void put_samples(const struct run *r, struct json_object *to)
{
	double least = 0, most = 0, sum = 0;
	uint32_t n = 0;

	for (uint32_t i = 1; i + 1 < r->samples; i++, n++) {
		least = n && least < r->rate[i] ? least : r->rate[i];
		most = most > r->rate[i] ? most : r->rate[i];
		sum += r->rate[i];
	}
	put_u64(to, "samples", n);
	put_real(to, "mean_bytes_per_second", n ? sum / n : 0);
	put_real(to, "least_bytes_per_second", least);
	put_real(to, "most_bytes_per_second", most);
}

static void put_queues(const struct run *r, struct json_object *to)
{
	uint64_t polls = 0, done = 0, low[2] = { UINT64_MAX, UINT64_MAX };
	uint64_t pools[2] = { UINT64_MAX, UINT64_MAX }, empty = 0;
	struct rashpa_queue_counts c[2];
	struct rashpa_pool_counts p;

	for (uint32_t i = 0; i < r->size; i++) {
		const struct flow * const flow[2] = { &r->out[i], &r->in[i] };

		rashpa_fabric_count(r->f, i, &c[0], &c[1]);
		for (unsigned int j = 0; j < 2; j++) {
			if (!flow[j]->used)
				continue;
			polls += c[j].polls;
			done += c[j].done;
			low[j] = c[j].low < low[j] ? c[j].low : low[j];
			if (!flow[j]->pool)
				continue;
			rashpa_pool_count(flow[j]->pool, &p);
			pools[j] = p.low < pools[j] ? p.low : pools[j];
			if (!j)
				empty += p.empty;
		}
	}
	put_real(to, "polls_per_message", done ? (double)polls / done : 0);
	put_int(to, "send_queue_low", low[0] == UINT64_MAX ? -1 : (int64_t)low[0]);
	put_int(to, "receive_queue_low", low[1] == UINT64_MAX ? -1 : (int64_t)low[1]);
	put_int(to, "send_pool_low", pools[0] == UINT64_MAX ? -1 : (int64_t)pools[0]);
	put_u64(to, "send_pool_empty", empty);
}

static uint64_t data_messages(const struct run *r)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->size; i++)
		sum += r->out[i].messages;
	return sum;
}

static struct json_object *say_all(struct run *r, uint64_t began)
{
	struct json_object *o = json_object_new_object();
	struct rashpa_fabric_counts c;
	struct rashpa_fabric_nodes nodes;
	struct rusage used;

	for (uint32_t i = 0; i < r->size; i++) {
		if (r->in[i].used && r->in[i].total > r->in[i].next)
			r->lost += r->in[i].total - r->in[i].next;
	}
	getrusage(RUSAGE_SELF, &used);
	rashpa_fabric_total(r->f, &c);
	put_u64(o, "rank", r->rank);
	put_u64(o, "sent", data_messages(r));
	put_u64(o, "received", atomic_load(&r->received));
	put_u64(o, "sent_bytes", atomic_load(&r->sent_bytes));
	put_u64(o, "received_bytes", atomic_load(&r->received_bytes));
	put_u64(o, "lost", r->lost);
	put_u64(o, "duplicate", r->duplicate);
	put_u64(o, "late", r->late);
	put_u64(o, "wrong", r->wrong);
	put_samples(r, o);
	put_queues(r, o);
	put_real(o, "seconds", seconds(now_ns() - began));
	put_real(o, "cpu_s", used.ru_utime.tv_sec + used.ru_stime.tv_sec +
			     (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
	put_real(o, "transport_cpu_s", seconds(c.cpu_ns));
	put_u64(o, "sleeps", c.sleeps);
	put_u64(o, "registrations", c.registrations);
	rashpa_fabric_nodes(r->f, &nodes);
	put_int(o, "device_node", nodes.device);
	put_int(o, "memory_node", nodes.memory);
	put_int(o, "thread_node", nodes.thread);
	put_u64(o, "resident_bytes", used.ru_maxrss * UINT64_C(1024));
	return o;
}

/* Rank 0 collects the results of all ranks. */
static int gather(struct run *r, struct json_object *mine)
{
	const char *text = json_object_to_json_string_ext(mine, JSON_C_TO_STRING_PLAIN);
	const size_t length = strlen(text);
	const uint64_t until = now_ns() + (uint64_t)(r->o->timeout * 1e9);
	struct rashpa_fabric_event e;
	uint64_t wanted;
	void *buffer;
	int result = 0, error = 0;

	if (r->rank == 0) {
		r->said[0] = json_object_get(mine);
		r->results++;
	} else {
		buffer = r->out[0].pool ? rashpa_pool_take(r->out[0].pool, -1) : r->out[0].memory;
		memcpy(buffer, text, length < TEXT_BYTES ? length : TEXT_BYTES);
		error = post(r, &r->out[0], 0, buffer, length, TAG_RESULT);
	}
	if (error)
		return fail_fabric(r->f, error, "");
	wanted = atomic_load(&r->sent);
	while (!result && (r->rank ? atomic_load(&r->sent_done) < wanted : r->results < r->size)) {
		if (rashpa_fabric_next(r->f, &e, 1, LOOK_NS) == 1) {
			/* ranks that have sent their result may leave */
			if (e.received && e.status == -EPIPE && r->rank)
				continue;
			result = handle(r, &e);
		} else if (now_ns() > until) {
			result = EXIT_TIMEOUT;
			fail("rank %u: the results of other ranks did not come within %.3g s", r->rank,
			     r->o->timeout);
		}
	}
	return result;
}

/* --- preparation --- */

static bool sends(const struct run *r, uint32_t rank)
{
	return !strcmp(r->o->command, "nxn") || rank < r->size / 2;
}

static bool receives(const struct run *r, uint32_t rank)
{
	return !strcmp(r->o->command, "nxn") || rank >= r->size / 2;
}

static int open_flow(struct run *r, struct rashpa_arena *a, struct flow *flow, bool one)
{
	int error = rashpa_pool_open(a, r->room, one ? 1 : r->o->buffers, &flow->pool);

	if (error)
		return fail_fabric(r->f, error, "");
	if (one) {
		flow->memory = rashpa_pool_take(flow->pool, 0);
		flow->pool = NULL;
	}
	return 0;
}

static int post_rooms(struct run *r, uint32_t peer, uint32_t n)
{
	struct flow *from = &r->in[peer];
	int error = 0;

	while (n-- && !error)
		error = room_for(r, peer, from->pool ? rashpa_pool_take(from->pool, 0) :
						       (void *)from->memory);
	return error ? fail_fabric(r->f, error, "") : 0;
}

static int prepare(struct run *r)
{
	const uint64_t largest = (uint64_t)r->o->size * (100 + r->o->jitter) / 100 + 1;
	const bool one = r->o->one_buffer;
	struct rashpa_arena *a;
	uint64_t bytes = 0;
	int result;

	r->room = largest < TEXT_BYTES ? TEXT_BYTES : largest;
	for (uint32_t i = 0; i < r->size; i++) {
		r->out[i].used = sends(r, r->rank) && receives(r, i);
		r->in[i].used = sends(r, i) && receives(r, r->rank);
		r->sources += r->in[i].used;
		bytes += rashpa_pool_room(r->room, one || !r->out[i].used ? 1 : r->o->buffers);
		bytes += rashpa_pool_room(r->room, one || !r->in[i].used ? 1 : r->o->buffers);
	}
	result = make_arena(r->f, r->o, bytes, &a);
	for (uint32_t i = 0; i < r->size && !result; i++) {
		/* queues without messages are used for the results */
		result = open_flow(r, a, &r->out[i], one || !r->out[i].used);
		if (!result)
			result = open_flow(r, a, &r->in[i], one || !r->in[i].used);
		/* rank 0 gets at least the result */
		if (!result && (r->in[i].used || (!r->rank && i)))
			result = post_rooms(r, i, r->in[i].used ? r->o->buffers : 1);
	}
	if (result)
		return result;
	result = rashpa_fabric_connect(r->f);
	if (result)
		return fail_fabric(r->f, result, "");
	warn_nodes(r->f);
	return 0;
}

static int work(struct run *r)
{
	void *(* const thread[3])(void *) = { sender, handler, sampler };
	const uint64_t began = now_ns();
	struct json_object *mine;
	pthread_t id[3];
	int started = 0, result;

	for (; started < 3; started++) {
		if (pthread_create(&id[started], NULL, thread[started], r)) {
			end(r, fail("cannot start a thread"));
			break;
		}
	}
	for (int i = 0; i < started; i++)
		pthread_join(id[i], NULL);
	if (r->result)
		return r->result;
	mine = say_all(r, began);
	result = gather(r, mine);
	json_object_put(mine);
	return result;
}

static int print(struct run *r)
{
	struct json_object *ranks = json_object_new_array();

	for (uint32_t i = 0; i < r->size; i++)
		json_object_array_add(ranks, json_object_get(r->said[i]));
	return report_traffic(r->o, ranks);
}

int traffic(struct rashpa_fabric *f, const struct options *o, const volatile bool *stop)
{
	struct run r = {
		.f = f, .o = o, .stop = stop,
		.rank = rashpa_fabric_rank(f), .size = rashpa_fabric_size(f),
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	pthread_condattr_t monotonic;
	int result;

	if (r.size < 2 && strcmp(o->command, "nxn"))
		return fail("nton needs two processes or more: mpirun -n 4 rashpa-builder nton");
	if (r.size % 2 && strcmp(o->command, "nxn"))
		return fail("nton needs as many senders as receivers: start an even number of processes, not %u",
			    r.size);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&r.change, &monotonic);
	r.out = calloc(r.size, sizeof(*r.out));
	r.in = calloc(r.size, sizeof(*r.in));
	r.said = calloc(r.size, sizeof(struct json_object *));
	r.rate = calloc(SAMPLES, sizeof(*r.rate));
	if (r.out && r.in && r.said && r.rate)
		result = prepare(&r);
	else
		result = fail("no memory");
	if (!result)
		result = work(&r);
	if (!result && !r.rank)
		result = print(&r);
	if (!result && (r.lost || r.duplicate || r.wrong || r.late))
		result = EXIT_DATA;
	for (uint32_t i = 0; i < r.size && r.said; i++)
		json_object_put(r.said[i]);
	free(r.out);
	free(r.in);
	free(r.said);
	free(r.rate);
	return result;
}
