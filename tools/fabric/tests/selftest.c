// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=6 run=build/tools/builder-selftest */
/* Tests of queues, pools and shared memory of the fabric: TAP. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/tests/card.h"
#include "fabric/tests/selftest.h"
#include "fabric/shm.h"
#include "verbs/verbs.h"
#define TAP_LINKAGE	/* other files use the functions, too */
#include "tests/tap.h"

#define SECOND		INT64_C(1000000000)
#define LIMIT_S		120		/* ends a test that hangs */

/* --- queues --- */

static void test_ring(void)
{
	struct ring r = {};
	uint32_t value, wrong = 0;

	ring_open(&r, 3, NULL);	/* four cells */
	ok(!ring_pop(&r, &value), "empty-queue-nothing: an empty queue returns nothing");
	for (uint32_t i = 0; i < 4; i++)
		wrong += !ring_push(&r, i);
	ok(!wrong && !ring_push(&r, 4) && ring_fill(&r) == 4, "full-one-takes: a full queue refuses more");
	atomic_store(&r.in, UINT32_MAX - 5);	/* counters wrap */
	atomic_store(&r.out, UINT32_MAX - 5);
	for (uint32_t i = 0; i < 4; i++)
		atomic_store(&r.cell[(UINT32_MAX - 5 + i) & 3].turn, (UINT32_MAX - 5 + i) & ~3u);
	for (uint32_t i = 0; i < 1000; i++)
		wrong += !ring_push(&r, i) || !ring_pop(&r, &value) || value != i;
	ok(!wrong, "counters-round: all numbers come out in order, also when counters wrap");
	ring_close(&r);
}

#define NUMBERS	200000

static struct ring shared_ring;
static _Atomic uint64_t sum;

static void *feed(void *arg)
{
	for (uint32_t i = 1; i <= NUMBERS; i++) {
		while (!ring_push(&shared_ring, i))
			sched_yield();
	}
	return arg;
}

static void *drain(void *arg)
{
	uint32_t value;

	for (uint32_t i = 0; i < NUMBERS; i++) {
		if (!ring_wait(&shared_ring, &value, LIMIT_S * SECOND))
			break;
		atomic_fetch_add(&sum, value);
	}
	return arg;
}

static void test_threads(void)
{
	struct bell bell = {};
	pthread_t thread[4];
	uint32_t value;

	ring_open(&shared_ring, 16, &bell);
	for (unsigned int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, i & 1 ? feed : drain, NULL);
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ok(atomic_load(&sum) == UINT64_C(2) * NUMBERS * (NUMBERS + 1) / 2,
	   "two-threads-push: two threads push, two pop: each number comes out once");
	ok(!ring_wait(&shared_ring, &value, SECOND / 100), "wait-ends-time: a wait ends after its time limit");
	bell_end(&bell);
	ok(!ring_wait(&shared_ring, &value, -1), "all: a wait ends with bell_end()");
	ring_close(&shared_ring);
}

/* --- one process: pools, and invalid calls --- */

static struct rashpa_launch alone = { .size = 1 };

static struct rashpa_fabric *open_alone(uint32_t depth, uint32_t queue)
{
	const struct rashpa_fabric_options o = {
		.transport = "shm", .launch = &alone, .depth = depth, .queue = queue, .cpu = -1,
	};
	struct rashpa_fabric *f = NULL;

	if (rashpa_fabric_open(&o, &f))
		printf("# %s\n", rashpa_fabric_reason());
	return f;
}

static struct rashpa_pool *give_later;
static void *later;

static void *give_back(void *arg)
{
	rashpa_pool_give(give_later, later);
	return arg;
}

static void *take_other(void *arg)
{
	return rashpa_pool_take(arg, LIMIT_S * SECOND);
}

/* Both threads wait; a returned buffer wakes the one that waits for its pool. */
static void test_waiters(struct rashpa_pool *p, struct rashpa_pool *other)
{
	void *left[8], *mine = NULL, *got;
	pthread_t thread[2];

	for (unsigned int i = 0; i < 8; i++)
		left[i] = rashpa_pool_take(other, 0);
	pthread_create(&thread[0], NULL, take_other, p);
	while (!atomic_load(&p->bell.asleep))
		sched_yield();
	pthread_create(&thread[1], NULL, take_other, other);
	while (!atomic_load(&other->bell.asleep))
		sched_yield();
	rashpa_pool_give(other, left[3]);
	pthread_join(thread[1], &got);
	ok(got == left[3], "two-wait-two: two threads wait for two pools: the right one is woken");
	rashpa_fabric_wake(p->arena->fabric);
	pthread_join(thread[0], &mine);
	ok(!mine, "other-one-end: the other one returns without a buffer at the end");
}

static void test_pool(void)
{
	struct rashpa_fabric *f = open_alone(0, 0);
	struct rashpa_pool_counts c;
	struct rashpa_arena *a;
	struct rashpa_pool *p, *other;
	pthread_t thread;
	void *buffer[4];
	uint32_t wrong = 0;

	ok(!rashpa_arena_allocate(f, rashpa_pool_room(5000, 4) + rashpa_pool_room(100, 8), &a),
	   "memory: memory");
	ok(!rashpa_pool_open(a, 5000, 4, &p) && !rashpa_pool_open(a, 100, 8, &other),
	   "two-pools-fill: two pools fill it");
	refused(rashpa_pool_open(a, 64, 1, &p), ENOSPC, "0 buffers fit", "a third one");
	refused(rashpa_pool_open(a, 0, 1, &p), EINVAL, "0 bytes", "buffers of 0 bytes");
	refused(rashpa_pool_open(a, 64, 0, &p), EINVAL, "0 buffers", "no buffers");
	for (unsigned int i = 0; i < 4; i++) {
		buffer[i] = rashpa_pool_take(p, 0);
		wrong += !buffer[i] || (uintptr_t)buffer[i] % PAGE;
	}
	ok(!wrong, "four-buffers-page: four buffers, each at a page");
	ok(!rashpa_pool_take(p, 0) && !rashpa_pool_take(p, SECOND / 100),
	   "fifth-not-nothing: there is no fifth buffer, and nothing is allocated");
	rashpa_pool_count(p, &c);
	ok(c.buffers == 4 && !c.free && !c.low && c.empty == 2, "pool-counts: the counters of the pool are right");
	refused(rashpa_pool_give(p, (char *)buffer[0] + 64), EINVAL, "not from this pool", "the middle of a buffer");
	refused(rashpa_pool_give(other, buffer[0]), EINVAL, "not from this pool", "a buffer of another pool");
	ok(!rashpa_pool_give(p, buffer[1]), "buffer-back: a buffer is given back");
	refused(rashpa_pool_give(p, buffer[1]), EALREADY, "twice", "a buffer that is free already");
	ok(rashpa_pool_take(p, 0) == buffer[1], "taken-again: the buffer can be taken again");
	give_later = p;
	later = buffer[2];
	pthread_create(&thread, NULL, give_back, NULL);
	ok(rashpa_pool_take(p, LIMIT_S * SECOND) == buffer[2], "waits-back: a waiting thread gets the buffer that is given back");
	pthread_join(thread, NULL);
	test_waiters(p, other);
	rashpa_fabric_close(f);
}

static void apart(int32_t device, int32_t memory, int32_t thread, const char *said)
{
	const struct rashpa_fabric_nodes n = { device, memory, thread };
	const char *sentence = rashpa_fabric_apart(&n);

	ok(said ? sentence && strstr(sentence, said) : !sentence, "numa/card-memory-thread: NUMA: card %d, memory %d, thread %d: %s",
	   device, memory, thread, said ? said : "together");
}

static void test_nodes(void)
{
	struct rashpa_fabric *f = open_alone(0, 0);
	struct rashpa_fabric_nodes n;
	struct rashpa_arena *a;

	rashpa_fabric_nodes(f, &n);
	ok(n.device == -1 && n.memory == -1 && n.thread == -1, "nothing-known-beginning: no node is known at the beginning");
	ok(!rashpa_arena_allocate(f, PAGE, &a) && !rashpa_fabric_connect(f), "one-connected: a fabric is connected");
	rashpa_fabric_nodes(f, &n);
	ok(n.device == -1 && n.memory >= 0 && n.thread >= 0, "memory-thread-node: the nodes of memory and thread are known");
	rashpa_fabric_close(f);
	apart(-1, -1, -1, NULL);
	apart(1, 1, 1, NULL);
	apart(-1, 0, 0, NULL);
	apart(1, 0, 1, "messages are at NUMA node 0, and the card at node 1");
	apart(1, 1, 0, "thread is at NUMA node 0, and the card at node 1");
	apart(-1, 1, 0, "thread is at NUMA node 0, and messages at node 1");
}

static void test_options(void)
{
	struct rashpa_launch launch = { .rank = 2, .size = 2 };
	struct rashpa_fabric_options o = { .transport = "shm", .launch = &alone, .cpu = -1 };
	struct rashpa_fabric *f, *second;

	o.transport = "pigeon";
	refused(rashpa_fabric_open(&o, &f), EOPNOTSUPP, "pigeon", "an unknown transport");
	ok(!rashpa_fabric_has("shm") && rashpa_fabric_has("pigeon"), "shm-others-not: shm is built in, an unknown transport is not");
	o.transport = "shm";
	o.depth = 65;
	refused(rashpa_fabric_open(&o, &f), EINVAL, "1 to 64", "a depth of 65");
	o.depth = 0;
	o.queue = 65537;
	refused(rashpa_fabric_open(&o, &f), EINVAL, "65536", "a queue of 65537");
	o.queue = 0;
	o.poll = 5;
	refused(rashpa_fabric_open(&o, &f), EINVAL, "poll", "another way to poll");
	o.poll = 0;
	o.launch = &launch;
	refused(rashpa_fabric_open(&o, &f), EINVAL, "rank 2 of 2", "rank 2 of 2");
	launch.size = RASHPA_FABRIC_PEERS + 1;
	refused(rashpa_fabric_open(&o, &f), EINVAL, "1024", "1025 processes");
	launch = (struct rashpa_launch) { .size = 2 };
	snprintf(launch.job, sizeof(launch.job), "options-%d", getpid());
	o.timeout_ms = 50;
	ok(!rashpa_fabric_open(&o, &f), "one-two: one of two");
	refused(rashpa_fabric_open(&o, &second), EADDRINUSE, "rank 0", "the same rank twice");
	refused(rashpa_fabric_connect(f), ETIMEDOUT, "rank 1 of 2", "the other one does not come");
	rashpa_fabric_close(f);
	rashpa_fabric_close(NULL);
}

static void test_launch(void)
{
	struct rashpa_launch l;

	refused(rashpa_launch_read(&l), ENOENT, "mpirun or srun", "no rank in the environment");
	setenv("RASHPA_RANK", "1", 1);
	refused(rashpa_launch_read(&l), EINVAL, "RASHPA_SIZE", "no number of processes");
	setenv("RASHPA_SIZE", "0", 1);
	refused(rashpa_launch_read(&l), EINVAL, "1 to 1024", "no processes");
	setenv("RASHPA_SIZE", "4", 1);
	refused(rashpa_launch_read(&l), EINVAL, "RASHPA_JOB", "no name");
	setenv("RASHPA_JOB", "test", 1);
	ok(!rashpa_launch_read(&l) && l.rank == 1 && l.size == 4 && !strcmp(l.job, "test"),
	   "rank-1-4-hand: rank 1 of 4, started by hand");
	unsetenv("RASHPA_JOB");
	setenv("RASHPA_MEET", "node0:7000", 1);
	ok(!rashpa_launch_read(&l) && l.rank == 1 && !strcmp(l.job, "node0:7000"),
	   "processes-meet-names: the address where processes meet can name the run");
	unsetenv("RASHPA_MEET");
	setenv("RASHPA_RANK", "-1", 1);
	refused(rashpa_launch_read(&l), EINVAL, "-1", "rank -1");
	setenv("RASHPA_RANK", "4", 1);
	refused(rashpa_launch_read(&l), EINVAL, "0 to 3", "rank 4 of 4");
	setenv("RASHPA_RANK", "1x", 1);
	refused(rashpa_launch_read(&l), EINVAL, "1x", "rank 1x");
	unsetenv("RASHPA_RANK");
	setenv("SLURM_PROCID", "2", 1);
	setenv("SLURM_STEP_NUM_TASKS", "3", 1);
	setenv("SLURM_JOB_ID", "77", 1);
	setenv("SLURM_STEP_ID", "0", 1);
	ok(!rashpa_launch_read(&l) && l.rank == 2 && l.size == 3 && !strcmp(l.job, "77.0"),
	   "rank-2-3-slurm: rank 2 of 3, started by Slurm");
	setenv("OMPI_COMM_WORLD_RANK", "0", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
	setenv("PMIX_NAMESPACE", "prterun-here-1@1", 1);
	ok(!rashpa_launch_read(&l) && l.rank == 0 && l.size == 8 &&
	   !strcmp(l.job, "prterun-here-1@1"), "rank-0-8-mpirun: rank 0 of 8, started by mpirun");
	for (const char * const *name = (const char * const []) { "SLURM_PROCID",
		"OMPI_COMM_WORLD_RANK", "RASHPA_SIZE", "RASHPA_JOB", NULL }; *name; name++)
		unsetenv(*name);
}

static void test_requests(void)
{
	struct rashpa_fabric *f = open_alone(2, 4);
	struct rashpa_fabric_request r = { .length = 100 };
	struct rashpa_queue_counts send, receive;
	struct rashpa_fabric_event e[8];
	struct rashpa_arena *a;
	struct rashpa_pool *p = NULL;
	char stranger[100];
	int got, wrong = 0;

	ok(!rashpa_arena_allocate(f, 1 << 20, &a) && !rashpa_pool_open(a, 4096, 16, &p), "rank/memory: memory");
	r.pool = p;
	r.buffer = rashpa_pool_take(p, 0);
	r.peer = 1;
	refused(rashpa_fabric_send(f, &r), EINVAL, "no peer 1", "a peer that is not there");
	r.peer = 0;
	r.tag = 1u << 31;
	refused(rashpa_fabric_send(f, &r), EINVAL, "tag", "a tag that is too large");
	r.tag = 0;
	r.length = 4097;
	refused(rashpa_fabric_send(f, &r), EINVAL, "4097", "more than the buffer");
	r.pool = NULL;
	r.length = UINT32_MAX;
	refused(rashpa_fabric_send(f, &r), EINVAL, "above", "more than there can be");
	r.length = 1 << 20;
	r.buffer = (char *)rashpa_arena_base(a) + 1;
	refused(rashpa_fabric_send(f, &r), EINVAL, "not in an arena", "a byte after the arena");
	r.buffer = stranger;
	r.length = 100;
	refused(rashpa_fabric_receive(f, &r), EINVAL, "bring", "memory that is not an arena");

	/* a queue of four requests, not connected yet */
	r.buffer = rashpa_arena_base(a);
	for (r.tag = 0; r.tag < 4; r.tag++)
		wrong += rashpa_fabric_send(f, &r);
	ok(!wrong, "four-messages-wait: four messages wait");
	refused(rashpa_fabric_send(f, &r), EAGAIN, "full", "a fifth: back-pressure");
	ok(!rashpa_fabric_connect(f), "begins: the fabric connects");
	refused(rashpa_fabric_connect(f), EISCONN, "already", "connecting twice");
	refused(rashpa_arena_bring(f, stranger, 100, &a), EISCONN, "before", "an arena after connecting");
	ok(!rashpa_fabric_next(f, e, 8, SECOND / 50), "nothing-sent-before: no message is sent before there is room");
	memset(r.buffer, 7, 100);
	r.buffer = (char *)r.buffer + 8192;
	r.length = 4096;
	r.tag = 0;
	for (unsigned int i = 0; i < 3; i++)
		wrong += rashpa_fabric_receive(f, &r);
	r.length = 99;
	wrong += rashpa_fabric_receive(f, &r);
	for (got = 0; got < 8;) {
		const int n = rashpa_fabric_next(f, e + got, 8 - got, LIMIT_S * SECOND);

		if (n <= 0)
			break;
		got += n;
	}
	ok(got == 8 && !wrong, "room-eight-events: with room there are eight events");
	for (int i = 0; i < got; i++) {
		const bool last = e[i].request.tag == 3;

		wrong += e[i].status != (last ? -EMSGSIZE : 0) || e[i].length != (last ? 0 : 100) ||
			 e[i].received != (e[i].request.length != 100);
	}
	ok(!wrong, "tag-message-one: the tag comes with the message, and both ends see that a message is too long");
	rashpa_fabric_count(f, 0, &send, &receive);
	ok(send.posted == 4 && send.done == 4 && send.bytes == 300 && receive.posted == 4 &&
	   receive.bytes == 300, "queues-count: the counters of the queues are right");
	rashpa_fabric_wake(f);
	ok(!rashpa_fabric_next(f, e, 8, -1), "waits-ever-woken: a wait without a limit ends with rashpa_fabric_wake()");
	rashpa_fabric_close(f);
}

/* --- fairness: a transport that completes all requests at once --- */

static int fake_open(struct rashpa_fabric *f)
{
	f->launch = *f->options.launch;
	return 0;
}

static int fake_connect(struct rashpa_fabric *f, uint64_t end)
{
	return f->connected && end ? 0 : -1;
}

static int fake_begin(struct queue *q, struct peer *peer, unsigned int slot)
{
	return q->flying > q->fabric->options.depth || peer->gone || slot > 63 ? -EIO : 0;
}

/* Complete all requests, the youngest first, as a network may do. */
static bool fake_poll(struct rashpa_fabric *f, struct peer *peer)
{
	struct queue *q = &peer->send, *r = &peer->receive;
	const bool any = (q->flying || r->flying) && f;

	while (q->flying)
		queue_done(q, q->order[q->flying - 1], 0, 1, 0);
	for (uint32_t i = r->flying; i--;)
		queue_done(r, r->order[i], 0, 1, i);
	return any;
}

static void fake_close(struct rashpa_fabric *f)
{
	f->asleep = NULL;
}

static void test_fairness(void)
{
	static const struct transport fake = {
		.open = fake_open, .connect = fake_connect, .begin = fake_begin, .poll = fake_poll,
		.close = fake_close,
	};
	const struct rashpa_launch launch = { .rank = 4, .size = 5 };
	const struct rashpa_fabric_options o = {
		.transport = "fake", .launch = &launch, .depth = 3, .queue = 300, .cpu = -1,
	};
	struct rashpa_fabric *f;
	struct rashpa_fabric_request r = { .length = 1 };
	struct rashpa_fabric_event e;
	struct rashpa_arena *a;
	uint32_t done[4] = {}, wrong = 0, total = 0;

	ok(!fabric_open_with(&fake, &o, &f) && !rashpa_arena_allocate(f, PAGE, &a),
	   "transport-test: the transport of the test opens");
	r.buffer = rashpa_arena_base(a);
	/* peer 0 gets most messages, and gets them first */
	for (r.peer = 0; r.peer < 4; r.peer++) {
		for (unsigned int i = 0; i < (r.peer ? 60 : 300); i++)
			wrong += rashpa_fabric_send(f, &r);
	}
	rashpa_fabric_connect(f);
	while (total < 480 && rashpa_fabric_next(f, &e, 1, LIMIT_S * SECOND) == 1) {
		done[e.request.peer]++;
		total++;
		/* while all peers have messages, no peer is ahead by more than a round */
		for (unsigned int i = 1; i < 4; i++)
			wrong += done[i] < 60 && (done[0] > done[i] + 3 || done[i] > done[0] + 3);
	}
	ok(total == 480 && !wrong, "nobody-ahead-round: no peer is ahead by more than a round of the pipeline");
	r.peer = 0;
	for (r.context = &done[0]; r.context != &done[3]; r.context = (uint32_t *)r.context + 1)
		wrong += rashpa_fabric_receive(f, &r);
	for (total = 0; total < 3; total++)
		wrong += rashpa_fabric_next(f, &e, 1, LIMIT_S * SECOND) != 1 ||
			 e.request.context != &done[total];
	ok(!wrong, "messages-order-however: events come in the order of messages, not of completions");
	rashpa_fabric_close(f);
}

/* --- several processes --- */

struct part {
	uint32_t rank, size;
	uint32_t depth, queue, messages;
	bool brought;
	bool verbs;		/* ranks are threads, with a card of the test between them */
	uint32_t flags;
	struct rashpa_launch launch;
	struct rashpa_fabric *f;
	struct rashpa_arena *a;
	int (*body)(struct part *t);
};

static int open_part(struct part *t, uint64_t bytes)
{
	const struct rashpa_fabric_options o = {
		.transport = t->verbs ? "verbs" : "shm", .launch = &t->launch, .depth = t->depth,
		.queue = t->queue, .cpu = -1, .flags = t->flags,
	};
	int error = rashpa_fabric_open(&o, &t->f);

	if (!error)
		error = t->brought ? rashpa_arena_bring(t->f, malloc(bytes), bytes, &t->a) :
				     rashpa_arena_allocate(t->f, bytes, &t->a);
	if (error)
		printf("# rank %u: %s\n", t->rank, rashpa_fabric_reason());
	return error;
}

static int connect_part(struct part *t)
{
	const int error = rashpa_fabric_connect(t->f);

	if (error)
		printf("# rank %u: %s\n", t->rank, rashpa_fabric_reason());
	return error;
}

/* Start a process for each rank. Returns the number of successes; sets the number of kills. */
static unsigned int run(struct part *like, int (*body)(struct part *t), unsigned int *killed)
{
	static unsigned int runs;
	unsigned int good = 0;
	int status;

	snprintf(like->launch.job, sizeof(like->launch.job), "selftest-%d-%u", getpid(), runs++);
	like->launch.size = like->size;
	fflush(stdout);
	for (uint32_t i = 0; i < like->size; i++) {
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			alarm(LIMIT_S);
			like->rank = i;
			like->launch.rank = i;
			status = body(like);
			fflush(stdout);
			_exit(status);
		}
	}
	if (killed)
		*killed = 0;
	for (uint32_t i = 0; i < like->size && wait(&status) > 0; i++) {
		good += WIFEXITED(status) && !WEXITSTATUS(status);
		if (killed)
			*killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	}
	return good;
}

static void *rank_of(void *arg)
{
	struct part *t = arg;

	return t->body(t) ? arg : NULL;
}

/* The same with a thread for each rank. */
static unsigned int run_threads(const struct part *like, int (*body)(struct part *t))
{
	struct part part[8];
	pthread_t thread[8];
	unsigned int good = 0;
	void *failed;

	choose_port();
	for (uint32_t i = 0; i < like->size; i++) {
		part[i] = *like;
		part[i].verbs = true;
		part[i].body = body;
		part[i].rank = i;
		part[i].launch = (struct rashpa_launch) { .rank = i, .size = like->size, .job = "test" };
		pthread_create(&thread[i], NULL, rank_of, &part[i]);
	}
	for (uint32_t i = 0; i < like->size; i++) {
		pthread_join(thread[i], &failed);
		good += !failed;
	}
	unsetenv("RASHPA_MEET");
	return good;
}

static uint32_t length_of(uint32_t from, uint32_t to, uint32_t i)
{
	return (from * 7919 + to * 104729 + i * 31) % 9000;
}

static uint8_t byte_of(uint32_t from, uint32_t to, uint32_t i)
{
	return from * 3 + to * 5 + i;
}

struct slot {
	uint32_t peer, i;
};

static int post_message(struct part *t, struct rashpa_pool *pool, uint32_t peer, uint32_t i)
{
	struct rashpa_fabric_request r = {
		.buffer = rashpa_pool_take(pool, -1), .pool = pool, .peer = peer, .tag = i,
		.length = length_of(t->rank, peer, i),
	};

	memset(r.buffer, byte_of(t->rank, peer, i), r.length);
	return rashpa_fabric_send(t->f, &r);
}

static int post_room(struct part *t, struct rashpa_pool *pool, uint32_t peer, void *buffer)
{
	struct rashpa_fabric_request r = {
		.buffer = buffer ? buffer : rashpa_pool_take(pool, 0), .pool = pool, .peer = peer,
		.length = 9000,
	};

	return rashpa_fabric_receive(t->f, &r);
}

static bool right(const struct part *t, const struct rashpa_fabric_event *e, uint32_t expected)
{
	const uint32_t from = e->request.peer;
	const uint8_t *data = e->request.buffer;
	const uint8_t want = byte_of(from, t->rank, expected);

	if (e->status || e->request.tag != expected ||
	    e->length != length_of(from, t->rank, expected))
		return false;
	for (uint32_t i = 0; i < e->length; i++) {
		if (data[i] != want)
			return false;
	}
	return true;
}

/* All ranks send to all, including themselves, as fast as buffers come back. */
static int everyone(struct part *t)
{
	const uint32_t room = t->queue < 16 ? t->queue : 16;
	struct rashpa_pool *out[8], *in[8];
	uint32_t sent[8] = {}, received[8] = {}, acknowledged = 0, left;
	struct rashpa_fabric_event e[32];
	int n, wrong = 0;

	if (open_part(t, 16 << 20))
		return 1;
	for (uint32_t p = 0; p < t->size; p++) {
		wrong |= rashpa_pool_open(t->a, 9000, room, &out[p]);
		wrong |= rashpa_pool_open(t->a, 9000, room, &in[p]);
		for (uint32_t i = 0; i < room; i++)
			wrong |= post_room(t, in[p], p, NULL);
	}
	if (wrong || connect_part(t))
		return 1;
	for (uint32_t p = 0; p < t->size; p++) {
		for (; sent[p] < room && sent[p] < t->messages; sent[p]++)
			wrong |= post_message(t, out[p], p, sent[p]);
	}
	left = t->messages * t->size * 2;
	while (left && !wrong) {
		n = rashpa_fabric_next(t->f, e, 32, LIMIT_S * SECOND);
		if (n <= 0)
			break;
		for (int i = 0; i < n; i++, left--) {
			const uint32_t p = e[i].request.peer;

			if (e[i].received) {
				wrong |= !right(t, &e[i], received[p]++);
				wrong |= received[p] + room <= t->messages &&
					 post_room(t, in[p], p, e[i].request.buffer);
				continue;
			}
			wrong |= e[i].status;
			acknowledged++;
			rashpa_pool_give(out[p], e[i].request.buffer);
			if (sent[p] < t->messages)
				wrong |= post_message(t, out[p], p, sent[p]++);
		}
	}
	if (left || wrong)
		printf("# rank %u: %u left, wrong %d: %s\n", t->rank, left, wrong,
		       rashpa_fabric_reason());
	rashpa_fabric_close(t->f);
	return left || wrong || acknowledged != t->messages * t->size;
}

static void test_everyone(void)
{
	static const uint32_t sizes[] = { 2, 4, 8 }, depths[] = { 1, 8, 64 };

	for (unsigned int i = 0; i < 3; i++) {
		for (unsigned int j = 0; j < 3; j++) {
			struct part t = {
				.size = sizes[i], .depth = depths[j], .queue = 64, .messages = 500,
			};

			ok(run(&t, everyone, NULL) == t.size,
			   "processes-depth/message-right-order: %u to %u processes, depth %u: all messages are right, in order",
			   t.size, t.size, t.depth);
		}
	}
	for (unsigned int j = 0; j < 2; j++) {
		struct part t = {
			.size = 3, .depth = 8, .queue = 1 + 15 * j, .messages = 500,
			.brought = true,
		};
		const unsigned int good = run(&t, everyone, NULL);

		ok(good == t.size, "3-3-memory-queues: 3 to 3 processes, memory of the caller, queues of %u", t.queue);
	}
}

/* Rank 1 has no room for a while: rank 0 waits, and no message is lost. */
static int press(struct part *t)
{
	const struct rashpa_fabric_request go = { .length = 0 };
	struct rashpa_fabric_request r = { .length = 64, .peer = !t->rank };
	struct rashpa_fabric_event e;
	uint32_t sent = 0, got = 0, wrong = 0;

	if (open_part(t, 1 << 20))
		return 1;
	r.buffer = rashpa_arena_base(t->a);
	if (t->rank) {
		struct rashpa_fabric_request say = go;

		if (connect_part(t))
			return 1;
		/* the first message shows that the queue of rank 0 is full; then make room */
		say = r;
		wrong += !!rashpa_fabric_receive(t->f, &say);
		while (got < t->queue + 1) {
			if (rashpa_fabric_next(t->f, &e, 1, LIMIT_S * SECOND) != 1)
				return 1;
			wrong += e.status || e.request.tag != got++;
			if (got < t->queue + 1)
				wrong += !!rashpa_fabric_receive(t->f, &say);
		}
		/* confirm that all messages came */
		wrong += !!rashpa_fabric_send(t->f, &say);
		return rashpa_fabric_next(t->f, &e, 1, LIMIT_S * SECOND) != 1 || wrong;
	}
	for (; sent < t->queue; r.tag = ++sent)
		wrong += !!rashpa_fabric_send(t->f, &r);
	wrong += rashpa_fabric_send(t->f, &r) != -EAGAIN;
	if (connect_part(t))
		return 1;
	if (rashpa_fabric_next(t->f, &e, 1, LIMIT_S * SECOND) != 1)
		return 1;
	wrong += !!rashpa_fabric_send(t->f, &r);	/* an event was taken: room for one more */
	wrong += !!rashpa_fabric_receive(t->f, &r);
	for (got = 1; got < t->queue + 2; got++) {
		if (rashpa_fabric_next(t->f, &e, 1, LIMIT_S * SECOND) != 1)
			return 1;
		wrong += !!e.status;
	}
	return wrong;
}

static int pressure(struct part *t)
{
	const int wrong = press(t);

	rashpa_fabric_close(t->f);
	return wrong;
}

/* One way, and the receiver is late: it posts a receive when no message comes any more. */
static int late(struct part *t)
{
	struct rashpa_fabric_request r = { .length = 64, .peer = !t->rank };
	struct rashpa_fabric_event e;
	uint32_t wrong = 0;

	if (open_part(t, 1 << 20) || connect_part(t))
		return 1;
	r.buffer = rashpa_arena_base(t->a);
	for (r.tag = 0; r.tag < t->messages; r.tag++) {
		wrong += !!(t->rank ? rashpa_fabric_receive(t->f, &r) : rashpa_fabric_send(t->f, &r));
		wrong += t->rank && (rashpa_fabric_next(t->f, &e, 1, LIMIT_S * SECOND) != 1 || e.status ||
				     e.request.tag != r.tag);
		if (wrong)
			return 1;
	}
	while (!t->rank && r.tag--)
		wrong += rashpa_fabric_next(t->f, &e, 1, LIMIT_S * SECOND) != 1 || e.status;
	rashpa_fabric_close(t->f);
	return wrong;
}

/* Rank 1 leaves with messages of rank 0 waiting for receives. */
static int leaves(struct part *t)
{
	struct rashpa_fabric_request r = { .length = 64, .peer = 1 };
	struct rashpa_fabric_event e = {};
	unsigned int ended = 0;

	if (open_part(t, 1 << 20) || connect_part(t))
		return 1;
	r.buffer = rashpa_arena_base(t->a);
	for (r.tag = 0; !t->rank && r.tag < t->queue; r.tag++) {
		if (rashpa_fabric_send(t->f, &r))
			return 1;
	}
	while (!t->rank && ended < t->queue &&
	       rashpa_fabric_next(t->f, &e, 1, LIMIT_S * SECOND) == 1 && e.status == -EPIPE)
		ended++;
	rashpa_fabric_close(t->f);
	return !t->rank && ended != t->queue;
}

/* Only rank 1 says before connecting that it uses the pair of ranks 0 and 1. */
static int only_used(struct part *t)
{
	struct rashpa_fabric_request r = { .length = 64, .peer = !t->rank };
	const bool last = t->rank == 2;
	struct rashpa_fabric_event e = {};
	int wrong = 0;

	t->flags = RASHPA_FABRIC_ONLY_USED;
	if (open_part(t, 1 << 20))
		return 1;
	r.buffer = rashpa_arena_base(t->a);
	if (t->rank == 1)
		wrong = rashpa_fabric_receive(t->f, &r);
	if (connect_part(t))
		return 1;
	if (t->rank != 1)
		wrong |= rashpa_fabric_send(t->f, &r);
	wrong |= rashpa_fabric_next(t->f, &e, 1, LIMIT_S * SECOND) != 1 || e.status != (last ? -ENOTCONN : 0);
	rashpa_fabric_close(t->f);
	return wrong;
}

/* Rank 1 dies with messages under way in both directions. */
static int die(struct part *t)
{
	struct rashpa_fabric_request r = { .length = 4096, .peer = !t->rank };
	struct rashpa_fabric_event e = {};
	unsigned int asked = 0, ended = 0;
	int error = 0;

	if (open_part(t, 1 << 20) || connect_part(t))
		return 1;
	r.buffer = rashpa_arena_base(t->a);
	/* rank 0 may see the death before all requests are posted: then the rest fail */
	for (r.tag = 0; r.tag < 15 && !error; r.tag++) {
		error = r.tag % 3 == 2 ? rashpa_fabric_receive(t->f, &r) :
					 rashpa_fabric_send(t->f, &r);
		asked += !error;
	}
	if (error && (error != -EPIPE || t->rank))
		return 1;
	if (t->rank) {
		/* wait until at least one request has completed */
		rashpa_fabric_next(t->f, &e, 1, LIMIT_S * SECOND);
		kill(getpid(), SIGKILL);
	}
	while (ended < asked && rashpa_fabric_next(t->f, &e, 1, LIMIT_S * SECOND) == 1)
		ended++;
	if (ended != asked || (e.status && e.status != -EPIPE) || !rashpa_fabric_gone(t->f, 1) ||
	    rashpa_fabric_send(t->f, &r) != -EPIPE)
		return 1;
	rashpa_fabric_close(t->f);
	return 0;
}

/* Rank 1 writes invalid data into the memory that it shares with rank 0, in one of several ways. */
static unsigned int mischief;

static int lie(struct part *t)
{
	struct rashpa_fabric_request r = { .length = 4096, .peer = !t->rank };
	const uint64_t one = 1;
	struct shm_peer *l;
	struct rashpa_fabric_event e = {};

	if (open_part(t, 1 << 20))
		return 1;
	r.buffer = rashpa_arena_base(t->a);
	if (!t->rank) {
		/* post before rank 1 can write invalid data */
		if (rashpa_fabric_receive(t->f, &r) || rashpa_fabric_send(t->f, &r) ||
		    connect_part(t))
			return 1;
		return rashpa_fabric_next(t->f, &e, 1, LIMIT_S * SECOND) != 1 || !e.status;
	}
	if (connect_part(t))
		return 1;
	l = t->f->peer[0].link;
	l->out->entry[0] = (struct shm_entry) { .length = 4096 };
	switch (mischief) {
	case 0:
		l->out->entry[0].arena = 1;
		break;
	case 1:
		l->out->entry[0].arena = UINT32_MAX;
		break;
	case 2:
		l->out->entry[0].offset = (1 << 20) - 4095;
		break;
	case 3:
		l->out->entry[0].offset = UINT64_MAX - 100;
		break;
	case 4:
		l->out->entry[0].length = UINT32_MAX;
		break;
	case 5:	/* more taken than sent */
		atomic_store(&l->in->head, 1000);
		break;
	}
	atomic_store(&l->out->tail, mischief == 5 ? 0 : mischief == 6 ? 65 : 1);
	/* rank 0 may sleep: ring its bell until it has gone */
	while (!rashpa_fabric_gone(t->f, 0)) {
		if (write(l->bell, &one, sizeof(one)) != sizeof(one))
			return 1;
		rashpa_fabric_next(t->f, &e, 1, SECOND / 1000);
	}
	return 0;
}

/* A round that consumes a ring of the bell must report activity. */
static int hear(struct part *t)
{
	struct rashpa_fabric_event e;
	bool heard = false;

	t->flags = RASHPA_FABRIC_DRIVEN;	/* this thread drives the transport */
	if (open_part(t, 1 << 20) || connect_part(t))
		return 1;
	while (t->rank && !rashpa_fabric_gone(t->f, 0))
		rashpa_fabric_next(t->f, &e, 1, SECOND / 1000);
	if (!t->rank) {
		t->f->transport->wake(t->f);
		for (unsigned int i = 0; i < 10000 && !heard; i++)
			heard = t->f->transport->poll(t->f, &t->f->peer[1]);
	}
	rashpa_fabric_close(t->f);
	return !t->rank && !heard;
}

static void test_peers(void)
{
	static const char * const lies[] = {
		"a missing arena", "the arena UINT32_MAX", "data after the end of an arena",
		"an offset near UINT64_MAX", "a length of UINT32_MAX", "more taken than sent",
		"more messages than the ring has",
	};
	unsigned int good = 0, killed;
	struct part t = { .size = 2, .depth = 4, .queue = 32 };

	ok(run(&t, pressure, NULL) == 2, "full-queue-waits: a full queue waits for room, and loses no message");
	for (unsigned int i = 0; i < 10; i++) {
		good += run(&t, die, &killed) == 1;
		good += killed == 1;
	}
	ok(run(&t, hear, NULL) == 2, "bell-rung-before: a ring of the bell before a sleep is not lost");
	ok(good == 20, "kill-9-peer-all: after kill -9 of a peer, all requests under way end");
	for (mischief = 0; mischief < 7; mischief++)
		ok(run(&t, lie, NULL) == 2, "peer-not-believed: a peer that claims %s is dropped", lies[mischief]);
}

/* The card cannot pin the pages of this memory: it takes the dma-buf, if there is one. */
static int without_pages(struct part *t)
{
	const struct rashpa_fabric_options o = { .transport = "verbs", .launch = &t->launch, .cpu = -1 };
	struct rashpa_arena a = { .length = PAGE, .fd = -1, .node = -1 };
	bool good;

	a.dmabuf = memfd_create("arena", MFD_CLOEXEC);
	if (a.dmabuf < 0 || ftruncate(a.dmabuf, PAGE) || rashpa_fabric_open(&o, &t->f))
		return 1;
	a.base = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, a.dmabuf, 0);
	good = !t->f->transport->enrol(t->f, &a) &&
	       ((const struct rashpa_net_memory *)a.registered)->address == (uintptr_t)a.base;
	close(a.dmabuf);
	a.dmabuf = -1;
	good &= t->f->transport->enrol(t->f, &a) == -EOPNOTSUPP && strstr(rashpa_fabric_reason(), "contig");
	rashpa_fabric_close(t->f);
	munmap(a.base, PAGE);
	return !good;
}

/* The same with verbs: no message may come before its receive. */
static void test_verbs(void)
{
	static const uint32_t sizes[] = { 2, 4, 8 }, depths[] = { 1, 2, 3, 8, 64 };
	struct part t = { .queue = 64, .messages = 500 };
	unsigned int good;

	card_not_ready();
	for (unsigned int i = 0; i < 3; i++) {
		for (unsigned int j = 0; j < 5; j++) {
			t.size = sizes[i];
			t.depth = depths[j];
			good = run_threads(&t, everyone);
			ok(good == t.size && !card_not_ready(),
			   "verbs-everyone/%u/%u: verbs: %u to %u ranks, depth %u: all messages are right, and find a receive",
			   t.size, t.depth, t.size, t.size, t.depth);
		}
	}
	t.size = 2;
	for (unsigned int j = 0; j < 5; j++) {
		t.depth = depths[j];
		good = run_threads(&t, pressure);
		ok(good == 2 && !card_not_ready(),
		   "verbs-full/%u: verbs, depth %u: a full queue waits for room, and nothing at the card", t.depth, t.depth);
		t.queue = 500;
		good = run_threads(&t, late);
		ok(good == 2 && !card_not_ready(),
		   "verbs-late/%u: verbs, depth %u: each receive of a late receiver is used", t.depth, t.depth);
		t.queue = 64;
	}
	t.size = 3;
	ok(run_threads(&t, only_used) == 3, "verbs-only-used: verbs: pairs are connected that one side uses, and no others");
	t.size = 2;
	ok(run_threads(&t, leaves) == 2, "verbs-leaves: verbs: messages that wait for receives end with the peer");
	setenv("STAND_IN", "no-pages", 1);
	ok(run_threads(&t, without_pages) == 2, "verbs-no-pages: verbs: memory without pages is registered by its dma-buf, or refused");
	unsetenv("STAND_IN");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_ring();
	test_threads();
	test_pool();
	test_nodes();
	test_options();
	test_launch();
	test_requests();
	test_fairness();
	test_everyone();
	test_peers();
	test_verbs();
	test_meet();
	test_ranges();
	return tap_end();
}
