// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug seconds=8 */
/* test: tier=nightly kernel=rt iommu=on smp=2 seconds=5 */
/* test: tier=nightly kernel=arm64 needs=virtio iommu=on seconds=3 */
/* The queue as memory, eventfds that wait, level semantics, slow listeners, map events. */
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "rig.h"
#include "trace.h"

static struct fpga f, f2;
static bool have_two;

/* A channel, mapped. */
struct queue {
	int fd;
	u64 size, at;
	const struct rashpa_ring *ring;
	struct rashpa_consumer *consumer;
};

static void queue_close(struct queue *q)
{
	munmap((void *)q->ring, q->size);
	munmap(q->consumer, PAGE);
	if (q->fd >= 0)
		close(q->fd);
}

/* The test ends where it fails. */
static void queue_open(struct queue *q, uint32_t depth)
{
	struct rashpa_channel_make e = { HEAD(e), .depth = depth };

	if (call(f.fd, RASHPA_IOC_CHANNEL_MAKE, &e))
		tap_bail("CHANNEL_MAKE: %s", reason);
	q->fd = e.out_fd;
	q->size = e.out_ring_size;
	q->at = e.out_consumer;
	fcntl(q->fd, F_SETFL, O_NONBLOCK);
	q->ring = mmap(NULL, q->size, PROT_READ, MAP_SHARED, q->fd, 0);
	q->consumer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, q->fd, (off_t)q->at);
	if (q->ring == MAP_FAILED || q->consumer == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
}

/* With one source. */
static void queue_of(struct queue *q, uint32_t depth, uint32_t kind)
{
	queue_open(q, depth);
	CHECK(source_add(q->fd, kind, 0) == 1, "%s", reason);
}

/* Take the next record as a consumer does; false: no record. */
static bool next(struct queue *q, struct rashpa_event *e)
{
	u64 tail = q->consumer->tail;

	if (__atomic_load_n(&q->ring->head, __ATOMIC_ACQUIRE) == tail)
		return false;
	memcpy(e, (const char *)q->ring + q->ring->record +
	       (tail & (q->ring->slots - 1)) * q->ring->record_size, sizeof(*e));
	__atomic_store_n(&q->consumer->tail, tail + 1, __ATOMIC_RELEASE);
	return true;
}

/* -------------------------------------------------------------- memory --- */

static bool refuses(const struct queue *q, u64 length, int prot, int flags, u64 at)
{
	void *p = mmap(NULL, length, prot, flags, q->fd, (off_t)at);

	if (p == MAP_FAILED)
		return true;
	munmap(p, length);
	return false;
}

TEST(mmap, "ring and consumer's page are mapped, and nothing else")
{
	const int rw = PROT_READ | PROT_WRITE;
	struct queue q;
	void *p;

	queue_open(&q, 1000);
	CHECK(q.ring->slots == 1024 && q.ring->depth == 1000 && !q.ring->head &&
	      !q.ring->lost && !q.ring->gone && !q.ring->__reserved &&
	      q.ring->record_size >= sizeof(struct rashpa_event) &&
	      q.ring->record + 1024ULL * q.ring->record_size <= q.size, "the header is wrong");
	CHECK(refuses(&q, q.size, rw, MAP_SHARED, 0), "the ring can be written");
	CHECK(refuses(&q, PAGE, PROT_READ, MAP_PRIVATE, 0), "a private mapping");
	CHECK(refuses(&q, q.size + PAGE, PROT_READ, MAP_SHARED, 0), "ring and consumer at once");
	CHECK(refuses(&q, PAGE, PROT_READ, MAP_SHARED, PAGE), "from the middle of the ring");
	CHECK(refuses(&q, 2 * PAGE, rw, MAP_SHARED, q.at), "beyond the consumer's page");
	CHECK(refuses(&q, PAGE, rw, MAP_SHARED, q.at + PAGE), "behind the consumer's page");
	CHECK(refuses(&q, PAGE, rw, MAP_SHARED, 1ULL << 62), "far away");
	CHECK(mprotect((void *)q.ring, q.size, rw) && errno == EACCES,
	      "the ring can be made writable");
	p = mremap(q.consumer, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	CHECK(p == MAP_FAILED, "the consumer's page can grow");
	/* the mapping holds the channel */
	CHECK(source_add(q.fd, RASHPA_SOURCE_DEVICE, 0) == 1, "%s", reason);
	close(q.fd);
	q.fd = -1;
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	CHECK(q.ring->head == 1, "%llu records", q.ring->head);
	queue_close(&q);
}

TEST(ring, "the ring shows what read returns")
{
	struct rashpa_event e[4];
	struct queue q;
	u64 i;

	queue_of(&q, 3, RASHPA_SOURCE_SOFTWARE);
	for (i = 0; i < 10; i++) {
		ANSWERED(signal_one(q.fd, 100 + i), 0, NULL);
		CHECK(wait_fd(q.fd, POLLIN, 0) == POLLIN, "poll does not see record %llu", i);
		CHECK(next(&q, e) && e->value == 100 + i && e->sequence == i + 1 &&
		      e->source == 1 && e->kind == RASHPA_SOURCE_SOFTWARE && !e->lost,
		      "record %llu is another", i);
		CHECK(!wait_fd(q.fd, POLLIN, 0), "poll sees a record that was taken");
		CHECK(!next(&q, e), "one more");
	}
	for (i = 0; i < 5; i++)
		ANSWERED(signal_one(q.fd, i), 0, NULL);
	CHECK(q.ring->lost == 2 && q.ring->head == 13, "%llu lost, head %llu",
	      q.ring->lost, q.ring->head);
	/* read() and the ring, from the same queue */
	CHECK(next(&q, e) && e->value == 0, "the first");
	CHECK(read(q.fd, e, sizeof(e)) == 2 * sizeof(*e) && e[0].value == 1 && e[1].value == 2,
	      "read after the ring");
	CHECK(q.consumer->tail == 13 && !next(&q, e), "the ring after read");
	ANSWERED(signal_one(q.fd, 9), 0, NULL);
	CHECK(next(&q, e) && e->value == 9 && e->lost == 2, "lost is not in the record");
	queue_close(&q);
}

/* A consumer that lies about its tail harms itself only. */
TEST(nonsense, "a tail that lies is taken as nothing consumed")
{
	static const u64 lies[] = { 1, 5, 1000, UINT64_MAX - 5, 1ULL << 63 };
	struct rashpa_event e[8];
	struct queue q;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lies); i++) {
		queue_of(&q, 4, RASHPA_SOURCE_SOFTWARE);
		q.consumer->tail = lies[i];
		CHECK(!wait_fd(q.fd, POLLIN, 0) && read(q.fd, e, sizeof(e)) < 0 &&
		      errno == EAGAIN, "records in an empty queue");
		q.consumer->tail = 0;
		ANSWERED(signal_one(q.fd, 1), 0, NULL);
		ANSWERED(signal_one(q.fd, 2), 0, NULL);
		q.consumer->tail = 2 + lies[i];
		CHECK(read(q.fd, e, sizeof(e)) == 2 * sizeof(*e) && e[1].value == 2,
		      "a tail ahead of the head is not taken as nothing consumed");
		ANSWERED(signal_one(q.fd, 3), 0, NULL);
		CHECK(read(q.fd, e, sizeof(e)) == sizeof(*e) && e->value == 3, "it does not go on");
		queue_close(&q);
	}
}

static void *take_back(void *arg)
{
	struct rashpa_consumer *consumer = arg;

	while (__atomic_load_n(&consumer->__reserved[0], __ATOMIC_RELAXED))
		__atomic_store_n(&consumer->tail, 0, __ATOMIC_RELAXED);
	return NULL;
}

/* However often the tail moves back: read returns no more than the queue can hold. */
TEST(read_ends, "a tail that moves back makes no read endless")
{
	static struct rashpa_event e[4096];
	const ssize_t most = 16 * sizeof(*e);
	pthread_t thread;
	struct queue q;
	ssize_t n;
	int i;

	queue_of(&q, 16, RASHPA_SOURCE_SOFTWARE);
	for (i = 0; i < 16; i++)
		ANSWERED(signal_one(q.fd, i), 0, NULL);
	q.consumer->__reserved[0] = 1;
	pthread_create(&thread, NULL, take_back, q.consumer);
	/* those count that find the other thread at work */
	for (i = 0; i < 400 && tap_ok(); i += n > 0) {
		n = read(q.fd, e, sizeof(e));
		CHECK(n < 0 ? errno == EAGAIN : n <= most, "%zd bytes of %zd", n, most);
		if (n < 0)
			sched_yield();
	}
	__atomic_store_n(&q.consumer->__reserved[0], 0, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	queue_close(&q);
}

/* -------------------------------------------------------------- stress --- */

static u64 stress_events(void)
{
	const char *text = getenv("RASHPA_STRESS_EVENTS");

	return text ? strtoull(text, NULL, 0) : 60000;
}

struct producer {
	pthread_t thread;
	int ch;
	u64 n;
};

static void *produce(void *arg)
{
	struct producer *p = arg;
	struct rashpa_signal s = { HEAD(s) };
	u64 i;

	for (i = 0; i < p->n; i++)
		if (ioctl(p->ch, RASHPA_IOC_SIGNAL, &s))
			break;
	return NULL;
}

/*
 * poll() says ready if and only if a record is there. Otherwise a consumer that is not woken for
 * the last record would wait for ever.
 */
TEST(level, "ready and readable are the same, under load")
{
	struct producer p[2];
	struct rashpa_event e[64];
	u64 got = 0, lost = 0, last = 0, rounds = 0;
	struct queue q;
	ssize_t n;
	int i;

	queue_of(&q, 256, RASHPA_SOURCE_SOFTWARE);
	for (i = 0; i < 2; i++) {
		p[i].ch = q.fd;
		p[i].n = stress_events() / 2;
		pthread_create(&p[i].thread, NULL, produce, &p[i]);
	}
	while (last < p[0].n + p[1].n) {
		if (!CHECK(wait_fd(q.fd, POLLIN, 20000), "asleep with head %llu, tail %llu",
			   q.ring->head, q.consumer->tail))
			break;
		n = read(q.fd, e, ++rounds % 2 ? sizeof(e) : sizeof(*e));
		if (!CHECK(n > 0, "ready, and nothing to read"))
			break;
		n /= (ssize_t)sizeof(*e);
		got += (u64)n;
		CHECK(e[0].sequence > last, "sequence %llu after %llu", e[0].sequence, last);
		last = e[n - 1].sequence;
		lost = e[n - 1].lost;
		/* the last events may be among the lost */
		if (last + q.ring->lost - lost >= p[0].n + p[1].n &&
		    __atomic_load_n(&q.ring->head, __ATOMIC_ACQUIRE) == q.consumer->tail)
			break;
	}
	for (i = 0; i < 2; i++)
		pthread_join(p[i].thread, NULL);
	while ((n = read(q.fd, e, sizeof(*e))) > 0)
		got++;
	CHECK(got + q.ring->lost == p[0].n + p[1].n, "%llu read and %llu lost of %llu", got,
	      q.ring->lost, (p[0].n + p[1].n));
	tap_note("%llu events, %llu read, %llu lost, %llu times woken", (p[0].n + p[1].n), got,
		 q.ring->lost, rounds);
	CHECK(!wait_fd(q.fd, POLLIN, 0), "ready when all was read");
	queue_close(&q);
}

/* ------------------------------------------- eight sources, three listeners --- */

#define LISTENERS	3
#define SLOW		2
#define SLOW_DEPTH	16
#define SOURCES		8
#define STACKS		60

struct heard {
	u64 events[SOURCES + 1], sequence[SOURCES + 1], lost;
};

/* Take all records, which follow without a gap. */
static void hear(struct queue *q, struct heard *h)
{
	struct rashpa_event e;

	while (next(q, &e)) {
		REQUIRE(e.source && e.source <= SOURCES, "source %u", e.source);
		CHECK(!h->events[e.source] || e.sequence == h->sequence[e.source] + 1,
		      "source %u: sequence %llu after %llu", e.source, e.sequence,
		      h->sequence[e.source]);
		h->events[e.source]++;
		h->sequence[e.source] = e.sequence;
		h->lost += e.lost;
	}
}

static u64 info_sum(const struct queue *q, u64 *lost)
{
	struct rashpa_source_info info = { HEAD(info) };
	u64 events = 0;

	*lost = 0;
	for (info.id = 1; info.id <= SOURCES; info.id++) {
		ANSWERED(call(q->fd, RASHPA_IOC_SOURCE_INFO, &info), 0, NULL);
		events += info.out_events;
		*lost += info.out_lost;
	}
	return events;
}

static u64 sum(const struct heard *h)
{
	u64 n = 0;
	int i;

	for (i = 1; i <= SOURCES; i++)
		n += h->events[i];
	return n;
}

/*
 * Have the fast listeners got the same events, and all of them, and do ring and INFO agree on the
 * losses of the slow one? The check reads all in one go: more can come at any time.
 */
static bool all_heard(struct queue q[LISTENERS], struct heard h[LISTENERS],
		      u64 events[LISTENERS], u64 lost[LISTENERS])
{
	bool same = true;
	int i;

	for (i = 0; i < LISTENERS; i++) {
		if (i != SLOW)
			hear(&q[i], &h[i]);
		events[i] = info_sum(&q[i], &lost[i]);
		same &= events[i] == events[0] &&
			(i == SLOW ? q[i].ring->lost == lost[i] : sum(&h[i]) == events[i]);
	}
	return same;
}

static void listeners_add(struct queue q[LISTENERS], uint32_t vectors)
{
	uint32_t i, v;

	for (i = 0; i < LISTENERS; i++) {
		queue_open(&q[i], i == SLOW ? SLOW_DEPTH : 8192);
		for (v = 0; v < SOURCES; v++)
			CHECK(source_add(q[i].fd, RASHPA_SOURCE_VECTOR, v) == (int)v + 1,
			      "vector %u of %u: %s", v, vectors, reason);
	}
}

/* One stack at a time, so that each makes one interrupt. */
static void slow_start(const struct rig *r, uint32_t dtp, uint32_t vector)
{
	rig_configure(r, dtp, RFPGA_MODE_MSIX, 0, r->made.out_segments, STACKS);
	set32(rig_dtp(r, dtp), RFPGA_DTP_SLOTS, 1);
	set32(rig_dtp(r, dtp), RFPGA_DTP_VECTOR, vector);
	rig_start(r, dtp);
}

/*
 * The next stack when all fast listeners have the event of the one before: no interrupt is merged
 * with another one, however long they take.
 */
static bool slow_credit(char *bells, uint32_t dtps, uint32_t vector,
			const struct heard h[LISTENERS])
{
	bool done = true;
	uint32_t i;

	for (i = 0; i < dtps && vector + i < SOURCES; i++) {
		const uint32_t source = vector + i + 1;
		const uint32_t n = (uint32_t)(h[0].events[source] < h[1].events[source] ?
					      h[0].events[source] : h[1].events[source]);

		set32(bells + i * RFPGA_DOORBELL_PAGE, 0, n);
		done &= n == STACKS;
	}
	return done;
}

TEST(slow, "eight sources, three listeners, one slow: the others notice nothing")
{
	struct queue q[LISTENERS];
	struct heard h[LISTENERS] = {};
	struct rashpa_device_info info;
	u64 events[LISTENERS], lost[LISTENERS], end;
	uint32_t i, dtps = 0, v;
	char *bells;
	struct rig r;
	int win;

	fpga_info(&f, &info);
	SKIP_IF(info.out_vectors < SOURCES, "the FPGA has %u vectors", info.out_vectors);
	rig_up(&r, &f, -1, 0, 0);
	listeners_add(q, info.out_vectors);
	win = fpga_window(&f, RFPGA_BAR_DOORBELL, 0, RFPGA_BAR_DOORBELL_SIZE, 0);
	bells = map_fd(win, RFPGA_BAR_DOORBELL_SIZE);
	close(win);
	dtps = reg32(r.regs, RFPGA_CAPS) & 0xff;
	dtps = dtps < SOURCES ? dtps : SOURCES;
	/* all vectors: a DTP after the other takes the next ones */
	for (v = 0; v < SOURCES && tap_ok(); v += dtps) {
		for (i = 0; i < dtps && v + i < SOURCES; i++)
			slow_start(&r, i, v + i);
		end = end_of_wait(60000);
		do {
			for (i = 0; i < LISTENERS; i++)
				if (i != SLOW)
					hear(&q[i], &h[i]);
		} while (!slow_credit(bells, dtps, v, h) && now_ns() < end);
		while (reg32(r.regs, RFPGA_STATUS) & RFPGA_STATUS_BUSY && now_ns() < end)
			;
		CHECK(!(reg32(r.regs, RFPGA_STATUS) & RFPGA_STATUS_BUSY), "it does not end");
	}
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	/* the last interrupts may still be on their way through the emulator */
	end = end_of_wait(60000);
	while (!all_heard(q, h, events, lost) && now_ns() < end)
		;
	for (i = 0; i < LISTENERS; i++) {
		CHECK(events[i] == SOURCES * STACKS, "listener %u: %llu events", i, events[i]);
		if (i != SLOW)
			CHECK(!lost[i] && !h[i].lost && sum(&h[i]) == events[i],
			      "listener %u: %llu lost, %llu of %llu events seen", i, lost[i],
			      sum(&h[i]), events[i]);
		else
			CHECK(lost[i] == events[i] - SLOW_DEPTH && q[i].ring->lost >= lost[i] &&
			      q[i].ring->head == SLOW_DEPTH, "the slow one: %llu of %llu lost",
			      lost[i], events[i]);
		CHECK(sum(&h[i]) == sum(&h[0]) || i == SLOW, "listeners have seen %llu and %llu",
		      sum(&h[i]), sum(&h[0]));
	}
	tap_note("%llu interrupts of %u vectors, %llu lost by the slow listener",
		 sum(&h[0]), SOURCES, q[SLOW].ring->lost);
	for (i = 0; i < LISTENERS; i++)
		queue_close(&q[i]);
	munmap(bells, RFPGA_BAR_DOORBELL_SIZE);
	rig_down(&r);
}

/* ------------------------------------------------------ other sources --- */

static int add(int ch, uint32_t kind, uint32_t index, uint32_t flags, int device)
{
	struct rashpa_source_add a = { .head.flags = flags, .kind = kind, .index = index,
				       .device = device, .memory = -1 };

	return source_make(ch, &a);
}

TEST(map_events, "the end of a map is an event, of one or of all")
{
	int buffer = buffer_alloc(PAGE, NULL), map[2];
	struct rashpa_event e = {};
	struct rashpa_map_make m[2];
	struct queue q;

	queue_open(&q, 0);
	map[0] = fpga_map(&f, buffer, RASHPA_BIDIRECTIONAL, &m[0]);
	map[1] = fpga_map(&f, buffer, RASHPA_BIDIRECTIONAL, &m[1]);
	CHECK(map[0] >= 0 && map[1] >= 0, "%s", reason);
	CHECK(m[0].out_id && m[1].out_id && m[0].out_id != m[1].out_id, "ids %u and %u",
	      m[0].out_id, m[1].out_id);
	CHECK(add(q.fd, RASHPA_SOURCE_MAP, m[1].out_id, 0, -1) == 1, "%s", reason);
	CHECK(add(q.fd, RASHPA_SOURCE_MAP, 0, 0, -1) == 2, "%s", reason);
	ANSWERED(add(q.fd, RASHPA_SOURCE_MAP, 0, 0, -1), EEXIST, "id 2");
	close(map[0]);
	CHECK(next(&q, &e) && e.source == 2 && e.kind == RASHPA_SOURCE_MAP &&
	      e.value == ((u64)m[0].out_id << 32 | RASHPA_MAP_STATE_REVOKED),
	      "source %u value 0x%llx", e.source, e.value);
	CHECK(!next(&q, &e), "an event of another map");
	close(map[1]);
	CHECK(next(&q, &e) && e.source == 1 && e.value >> 32 == m[1].out_id &&
	      e.sequence == 1, "the second map, source %u, sequence %llu: a gap without a loss",
	      e.source, e.sequence);
	CHECK(next(&q, &e) && e.source == 2 && e.value >> 32 == m[1].out_id, "the second map");
	queue_close(&q);
	close(buffer);
}

TEST(quiet, "a quiet source counts")
{
	struct rashpa_source_info info = { HEAD(info), .id = 1 };
	struct queue q;

	queue_open(&q, 0);
	CHECK(add(q.fd, RASHPA_SOURCE_SOFTWARE, 0, RASHPA_SOURCE_QUIET, -1) == 1, "%s", reason);
	ANSWERED(signal_one(q.fd, 42), 0, NULL);
	CHECK(!q.ring->head && !wait_fd(q.fd, POLLIN, 0), "a quiet source makes records");
	ANSWERED(call(q.fd, RASHPA_IOC_SOURCE_INFO, &info), 0, NULL);
	CHECK(info.out_events == 1 && info.out_value == 42 && !info.out_lost &&
	      info.out_kind == RASHPA_SOURCE_SOFTWARE && (int)info.out_device == f.index,
	      "%llu events", info.out_events);
	info.id = 2;
	ANSWERED(call(q.fd, RASHPA_IOC_SOURCE_INFO, &info), ENOENT, "source 2");
	info.id = 65;
	ANSWERED(call(q.fd, RASHPA_IOC_SOURCE_INFO, &info), ENOENT, "source 65");
	ANSWERED(add(q.fd, RASHPA_SOURCE_SOFTWARE, 0, 0, f.fd), EINVAL,
		 "no function");
	ANSWERED(add(q.fd, RASHPA_SOURCE_VECTOR, 0, RASHPA_SOURCE_POLL, -1), EINVAL, "timer");
	queue_close(&q);
}

/* ---------------------------------------- eventfds and an interrupt --- */

/* A quiet source of the rig's vector, with an eventfd. */
struct bell {
	struct rig rig;
	struct queue q;
	int id, event;
};

static void bell_open(struct bell *b)
{
	rig_up(&b->rig, &f, -1, 0, 0);
	/* the rig's own channel is another subscriber of that vector */
	close(b->rig.channel);
	b->rig.channel = -1;
	queue_open(&b->q, 0);
	b->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	b->id = add(b->q.fd, RASHPA_SOURCE_VECTOR, 1, RASHPA_SOURCE_QUIET, -1);
	CHECK(b->id > 0, "SOURCE_ADD: %s", reason);
	ANSWERED(bind_eventfd(b->q.fd, b->event, b->id), 0, NULL);
}

static void bell_close(struct bell *b)
{
	queue_close(&b->q);
	close(b->event);
	rig_down(&b->rig);
}

/* One interrupt: does the eventfd count it? */
static void bell_rings(struct bell *b, const char *when)
{
	u64 n;

	rig_configure(&b->rig, 0, RFPGA_MODE_MSIX, 0, 1, 1);
	rig_start(&b->rig, 0);
	n = eventfd_signals(b->event, 1);
	rig_wait_stopped(&b->rig, 0);
	CHECK(n == 1, "%s: %llu signals", when, n);
}

/* Make the source a member of a new group. Return: its id. */
static int bell_join(const struct bell *b)
{
	struct rashpa_member member = { .source = b->id };
	struct rashpa_group_make g = {
		HEAD(g), .members = (uintptr_t)&member, .n_members = 1,
		.member_size = sizeof(member),
	};

	ANSWERED(call(b->q.fd, RASHPA_IOC_GROUP_MAKE, &g), 0, NULL);
	return g.out_id;
}

TEST(vector_eventfd, "an eventfd counts each interrupt: alone, with others, bound again, in a group and after it")
{
	struct rashpa_source_info info = { HEAD(info) };
	int old, other, id;
	struct rashpa_event e[2] = {};
	struct bell b;

	bell_open(&b);
	bell_rings(&b, "alone");
	other = fpga_listen(&f, 0, RASHPA_SOURCE_VECTOR, 1);
	bell_rings(&b, "with another source");
	CHECK(wait_fd(other, POLLIN, 20000) && read(other, &e[0], sizeof(*e)) == sizeof(*e),
	      "no record");
	ANSWERED(source_del(other, 1), 0, NULL);
	bell_rings(&b, "alone again");
	CHECK(source_add(other, RASHPA_SOURCE_VECTOR, 1) > 0, "SOURCE_ADD: %s", reason);
	bell_rings(&b, "with a new source");
	CHECK(wait_fd(other, POLLIN, 20000) && read(other, &e[1], sizeof(*e)) == sizeof(*e) &&
	      e[1].sequence == e[0].sequence + 2, "sequence %llu after %llu", e[1].sequence,
	      e[0].sequence);
	close(other);
	old = b.event;
	b.event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ANSWERED(bind_eventfd(b.q.fd, b.event, b.id), 0, NULL);
	bell_rings(&b, "bound again");
	CHECK(!count_of(old), "the old eventfd is signalled");
	close(old);
	id = bell_join(&b);
	bell_rings(&b, "in a group");
	CHECK(wait_fd(b.q.fd, POLLIN, 20000) && next(&b.q, &e[0]) &&
	      e[0].source == (unsigned int)id && e[0].value == 1, "the group has no event");
	ANSWERED(source_del(b.q.fd, id), 0, NULL);
	bell_rings(&b, "after the group");
	CHECK(!next(&b.q, &e[0]), "an event of an ended group");
	info.id = b.id;
	ANSWERED(call(b.q.fd, RASHPA_IOC_SOURCE_INFO, &info), 0, NULL);
	CHECK(info.out_events == 7 && info.out_value == 1, "%llu events, value %llu",
	      info.out_events, info.out_value);
	bell_close(&b);
}

TEST(vector_waiters, "an interrupt wakes one waiter, also after a group, and the tasklet wakes more")
{
	struct epoll_event in = { .events = EPOLLIN };
	int waiters[2], i;
	struct bell b;

	bell_open(&b);
	ANSWERED(source_del(b.q.fd, bell_join(&b)), 0, NULL);
	for (i = 0; i < 2; i++) {
		waiters[i] = epoll_create1(EPOLL_CLOEXEC);
		REQUIRE(!epoll_ctl(waiters[i], EPOLL_CTL_ADD, b.event, &in), "epoll");
	}
	if (trace_begin("eventfd_signal_mask")) {
		bell_rings(&b, "two wait");
		CHECK(traced("call:", "eventfd_signal_mask"), "no signal is traced");
		CHECK(!traced_off("call:", "eventfd_signal_mask"), "a signal with interrupts off");
		for (i = 0; i < 2; i++)
			close(waiters[i]);
		bell_rings(&b, "one waits");
		/* handlers of a kernel for real time are threads; probes of the debug kernel trap */
		CHECK(traced_off("call:", "eventfd_signal_mask") ||
		      !access("/proc/lockdep", F_OK) || !access("/sys/kernel/realtime", F_OK),
		      "no signal in the interrupt");
		trace_end();
	}
	bell_close(&b);
}

/* ------------------------------------------------------- tracepoints --- */

static void *sleep_on(void *arg)
{
	struct pollfd p = { .fd = *(int *)arg, .events = POLLIN };

	poll(&p, 1, 20000 * tap_slow());
	return NULL;
}

/* A sleeper is woken: signals until one has found it asleep. */
static bool wakeup_traced(struct queue *q)
{
	u64 end = end_of_wait(20000);
	struct rashpa_event e;
	pthread_t thread;
	bool found = false;

	while (!found && now_ns() < end) {
		pthread_create(&thread, NULL, sleep_on, &q->fd);
		sched_yield();
		ANSWERED(signal_one(q->fd, 1), 0, NULL);
		pthread_join(thread, NULL);
		while (next(q, &e))
			;
		found = traced("rashpa_wakeup:", "records=");
	}
	return found;
}

TEST(trace, "tracepoints report a record, a wake-up, a reader and a doorbell's mapping")
{
	struct rashpa_event e;
	char words[80];
	struct queue q;
	int win;
	void *p;

	if (!trace_begin(NULL))
		return;
	queue_of(&q, 0, RASHPA_SOURCE_SOFTWARE);
	ANSWERED(signal_one(q.fd, 4711), 0, NULL);
	CHECK(read(q.fd, &e, sizeof(e)) == sizeof(e), "read");
	win = fpga_window(&f, RFPGA_BAR_DOORBELL, PAGE, PAGE, 0);
	p = map_fd(win, PAGE);
	unmap_fd(p, PAGE, win);
	CHECK(wakeup_traced(&q), "no wake-up");
	snprintf(words, sizeof(words), "fpga%d source=1 kind=3 sequence=1 time=%llu value=4711",
		 f.index, e.time_ns);
	CHECK(traced("rashpa_event:", words), "no record of \"%s\"", words);
	snprintf(words, sizeof(words), "fpga%d records=1", f.index);
	CHECK(traced("rashpa_read:", words), "no reading of \"%s\"", words);
	snprintf(words, sizeof(words), "fpga%d bar=2 offset=0x1000 length=0x1000", f.index);
	CHECK(traced("rashpa_window_mmap:", words), "no mapping of \"%s\"", words);
	trace_end();
	queue_close(&q);
}

/* A source of another function: it goes, and the channel stays. */
TEST(other_function, "a source of another function comes and goes")
{
	struct rashpa_event e = {};
	struct queue q;
	char node[64];
	int ro;

	SKIP_IF(!have_two, "needs two software FPGAs (lab run --fpga 2)");
	queue_open(&q, 0);
	snprintf(node, sizeof(node), "/dev/rashpa/%s", f2.name);
	ro = open(node, O_RDONLY | O_CLOEXEC);
	ANSWERED(add(q.fd, RASHPA_SOURCE_DEVICE, 0, 0, ro), EPERM, "writing");
	close(ro);
	CHECK(add(q.fd, RASHPA_SOURCE_DEVICE, 0, 0, -1) == 1, "%s", reason);
	CHECK(add(q.fd, RASHPA_SOURCE_DEVICE, 0, 0, f2.fd) == 2, "%s", reason);
	ANSWERED(fpga_quiesce(&f2), 0, NULL);
	CHECK(next(&q, &e) && e.source == 2 && e.value == RASHPA_DEVICE_EVENT_QUIESCED &&
	      !next(&q, &e),
	      "source %u value %llu", e.source, e.value);
	ANSWERED(fpga_unbind(&f2) ? -EIO : 0, 0, NULL);
	while (next(&q, &e))
		;
	CHECK(e.source == 2 && e.value == RASHPA_DEVICE_EVENT_GONE, "source %u value %llu",
	      e.source, e.value);
	CHECK(!q.ring->gone && !(wait_fd(q.fd, POLLIN, 0) & POLLHUP), "the channel is gone");
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	CHECK(next(&q, &e) && e.source == 1, "no more events of the channel's function");
	queue_close(&q);
	close(f2.fd);
	f2.fd = -1;
	have_two = !fpga_bind(&f2) && fpga_open(&f2, 1);
	CHECK(have_two, "it does not come back");
}

static void come_back(void)
{
	fpga_close(&f);
	CHECK(!fpga_bind(&f) && fpga_open(&f, 0), "it does not come back");
}

TEST(gone_eventfd, "a removed function signals each eventfd once")
{
	int all = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), i;
	int one = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct queue q;

	queue_of(&q, 0, RASHPA_SOURCE_VECTOR);
	ANSWERED(bind_eventfd(q.fd, all, 0), 0, NULL);
	ANSWERED(bind_eventfd(q.fd, one, 1), 0, NULL);
	ANSWERED(fpga_unbind(&f) ? -EIO : 0, 0, NULL);
	wait_fd(all, POLLIN, 20000);
	i = (int)count_of(all);
	CHECK(i == 1, "the eventfd of the channel counts %d", i);
	wait_fd(one, POLLIN, 20000);
	i = (int)count_of(one);
	CHECK(i == 1, "the eventfd of a source counts %d", i);
	/* its objects can be removed, but not added */
	ANSWERED(bind_eventfd(q.fd, one, 1), ENODEV, f.name);
	ANSWERED(bind_eventfd(q.fd, -1, 1), 0, NULL);
	ANSWERED(source_del(q.fd, 1), 0, NULL);
	ANSWERED(source_del(q.fd, 1), ENOENT, "source 1");
	ANSWERED(source_add(q.fd, RASHPA_SOURCE_SOFTWARE, 0), ENODEV, f.name);
	queue_close(&q);
	close(all);
	close(one);
	come_back();
}

TEST(gone_last, "GONE comes when no interrupt can come any more")
{
	struct rashpa_event e = {};
	char words[96];
	struct queue q;

	if (!trace_begin("free_irq"))
		return;
	queue_of(&q, 0, RASHPA_SOURCE_DEVICE);
	ANSWERED(fpga_unbind(&f) ? -EIO : 0, 0, NULL);
	while (next(&q, &e))
		;
	CHECK(e.value == RASHPA_DEVICE_EVENT_GONE, "value %llu", e.value);
	snprintf(words, sizeof(words), "sequence=%llu time=%llu value=%u ", e.sequence, e.time_ns,
		 RASHPA_DEVICE_EVENT_GONE);
	CHECK(traced("rashpa_event:", words) && traced("call:", "free_irq"), "nothing is traced");
	CHECK(!called_after("rashpa_event:", words), "interrupts end after GONE");
	trace_end();
	queue_close(&q);
	come_back();
}

TEST(gone, "a removed function is seen in the ring")
{
	struct rashpa_event e;
	struct queue q;

	SKIP_IF(!have_two, "needs two software FPGAs (lab run --fpga 2)");
	queue_open(&q, 0);
	CHECK(add(q.fd, RASHPA_SOURCE_VECTOR, 0, 0, f2.fd) == 1, "%s", reason);
	CHECK(add(q.fd, RASHPA_SOURCE_DEVICE, 0, 0, -1) == 2, "%s", reason);
	ANSWERED(fpga_unbind(&f) ? -EIO : 0, 0, NULL);
	CHECK(q.ring->gone == 1, "the ring does not show it");
	CHECK(wait_fd(q.fd, POLLIN, 0) & POLLHUP, "poll does not show it");
	while (next(&q, &e))
		;
	CHECK(read(q.fd, &e, sizeof(e)) < 0 && errno == ENODEV, "read: %s", strerror(errno));
	queue_close(&q);
	come_back();
}

void setup(void)
{
	rig_need(&f);
	have_two = rig_try(&f2, 1);
}
