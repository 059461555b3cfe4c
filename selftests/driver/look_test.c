// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug seconds=9 */
/*
 * Channels that belong to no function, and words that a program writes: a consumer treats a
 * program like a board.
 */
#include <sys/eventfd.h>

#include "rig.h"
#include "trace.h"

static struct fpga f;
static bool have_one;

static int channel_of(int node, uint32_t sources, struct rashpa_channel_make *e)
{
	int err;

	*e = (struct rashpa_channel_make) { HEAD(*e), .sources = sources };
	err = call(node, RASHPA_IOC_CHANNEL_MAKE, e);
	if (err)
		return err;
	fcntl(e->out_fd, F_SETFL, O_NONBLOCK);
	return e->out_fd;
}

static int add_word(int ch, int fd, uint32_t condition, u64 value, uint32_t bits, u64 offset)
{
	struct rashpa_source_add a = word_source(fd, RASHPA_SOURCE_LOOK);

	a.condition = condition;
	a.value = value;
	a.bits = bits;
	a.offset = offset;
	a.step = condition == RASHPA_CONDITION_REACHED;
	return source_make(ch, &a);
}

static void expect(int ch, int source, u64 sequence, u64 value)
{
	struct rashpa_event e = {};

	CHECK(read(ch, &e, sizeof(e)) == sizeof(e) && (int)e.source == source &&
	      e.sequence == sequence && e.value == value && e.time_ns,
	      "source %u sequence %llu value %llx, expected %d %llu %llx", e.source, e.sequence,
	      e.value, source, sequence, value);
}

static void nothing(int ch)
{
	struct rashpa_event e;

	CHECK(read(ch, &e, sizeof(e)) < 0 && errno == EAGAIN, "an event without a reason: %llx",
	      e.value);
}

static void set_word(void *p, u64 value, uint32_t bits)
{
	if (bits == 32)
		__atomic_store_n((uint32_t *)p, (uint32_t)value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((u64 *)p, value, __ATOMIC_RELEASE);
}

/* ----------------------------------------------- without a function --- */

TEST(channel, "a channel of the memory node needs no function")
{
	struct rashpa_source_info info = { HEAD(info), .id = 1 };
	const struct rashpa_ring *ring;
	struct rashpa_channel_make e;
	int ch = channel_of(memory, 0, &e);

	REQUIRE(ch >= 0, "CHANNEL_MAKE: %s", reason);
	CHECK(e.out_consumer_size == PAGE, "%llu bytes for the consumer", e.out_consumer_size);
	ring = mmap(NULL, e.out_ring_size, PROT_READ, MAP_SHARED, ch, 0);
	CHECK(ring != MAP_FAILED && !ring->gone && !ring->head, "the ring");
	CHECK(source_add(ch, RASHPA_SOURCE_SOFTWARE, 0) == 1, "%s", reason);
	ANSWERED(source_add(ch, RASHPA_SOURCE_SOFTWARE, 0), EEXIST, "id 1");
	ANSWERED(signal_one(ch, 7), 0, NULL);
	expect(ch, 1, 1, 7);
	ANSWERED(call(ch, RASHPA_IOC_SOURCE_INFO, &info), 0, NULL);
	CHECK(info.out_device == -1 && info.out_events == 1, "function %d", info.out_device);
	unmap_fd((void *)ring, e.out_ring_size, ch);
}

TEST(needs_function, "such a channel refuses a function's sources, unless they name it")
{
	static const uint32_t kinds[] = {
		RASHPA_SOURCE_VECTOR, RASHPA_SOURCE_DEVICE, RASHPA_SOURCE_MAP,
	};
	int ch = memory_channel(), fd = buffer_alloc(PAGE, NULL);
	struct rashpa_source_add a = word_source(fd, 0);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		ANSWERED(source_add(ch, kinds[i], 0), EINVAL, "no function|device");
	ANSWERED(source_make(ch, &a), EINVAL, "no function|RASHPA_SOURCE_LOOK|RASHPA_SOURCE_POLL");
	a.device = 999;
	ANSWERED(source_make(ch, &a), EBADF, "device: fd 999");
	a.device = -1;
	a.head.flags = RASHPA_SOURCE_LOOK;
	a.index = 1;
	ANSWERED(source_make(ch, &a), EINVAL, "vector 1");
	a.index = 0;
	CHECK(source_make(ch, &a) == 1, "%s", reason);
	CHECK(source_add(ch, RASHPA_SOURCE_SOFTWARE, 0) == 2, "%s", reason);
	a = (struct rashpa_source_add) { .head.flags = RASHPA_SOURCE_LOOK,
					 .kind = RASHPA_SOURCE_SOFTWARE, .memory = -1, .device = -1 };
	ANSWERED(source_make(ch, &a), EINVAL, "RASHPA_IOC_LOOK");
	close(ch);
	close(fd);
}

TEST(of, "such a channel gets events of a function, and outlives it")
{
	struct rashpa_source_info info = { HEAD(info), .id = 1 };
	struct rashpa_source_add a = { .kind = RASHPA_SOURCE_DEVICE, .device = f.fd, .memory = -1 };
	int ch = memory_channel(), event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct rashpa_event e = {};

	SKIP_IF(!have_one, "no software FPGA");
	CHECK(source_make(ch, &a) == 1, "%s", reason);
	CHECK(source_add(ch, RASHPA_SOURCE_SOFTWARE, 0) == 2, "%s", reason);
	ANSWERED(bind_eventfd(ch, event, 2), 0, NULL);
	ANSWERED(call(ch, RASHPA_IOC_SOURCE_INFO, &info), 0, NULL);
	CHECK(info.out_device == f.index, "function %d", info.out_device);
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	CHECK(read(ch, &e, sizeof(e)) == sizeof(e) && e.source == 1 &&
	      e.value == RASHPA_DEVICE_EVENT_QUIESCED, "value %llu", e.value);
	/* the function goes, the channel stays: it does not belong to it */
	fpga_close(&f);
	ANSWERED(fpga_unbind(&f) ? -EIO : 0, 0, NULL);
	while (read(ch, &e, sizeof(e)) == sizeof(e))
		;
	CHECK(errno == EAGAIN, "the channel has gone: %s", strerror(errno));
	CHECK(e.source == 1 && e.value == RASHPA_DEVICE_EVENT_GONE, "value %llu", e.value);
	CHECK(!wait_fd(ch, POLLIN, 0) && !count_of(event), "poll, or the eventfd, report an end");
	ANSWERED(signal_one(ch, 3), 0, NULL);
	expect(ch, 2, 1, 3);
	CHECK(!fpga_bind(&f) && fpga_open(&f, 0), "it does not come back");
	close(ch);
	close(event);
}

TEST(sources, "a channel has as many sources as it was made for, with an acknowledgement each")
{
	struct rashpa_group_make g = { HEAD(g), .n_members = 1,
				       .member_size = sizeof(struct rashpa_member) };
	int fd = buffer_alloc(PAGE, NULL), ch, i, id = 0;
	struct rashpa_member m = { .source = 1 };
	struct rashpa_consumer *consumer;
	struct rashpa_channel_make e;

	ANSWERED(channel_of(memory, 2049, &e), EINVAL, "2049 sources|2048");
	ANSWERED(channel_of(memory, UINT_MAX, &e), EINVAL, "sources");
	ch = channel_of(memory, 3, &e);
	for (i = 1; i <= 3; i++)
		CHECK(add_word(ch, fd, RASHPA_CONDITION_CHANGED, 0, 64, 0) == i, "%s", reason);
	ANSWERED(add_word(ch, fd, RASHPA_CONDITION_CHANGED, 0, 64, 0), ENOSPC, "3 sources|2048");
	close(ch);
	ch = channel_of(memory, 2048, &e);
	REQUIRE(ch >= 0, "%s", reason);
	CHECK(e.out_consumer_size >= sizeof(*consumer) + 2048 * sizeof(consumer->ack[0]) &&
	      !(e.out_consumer_size % PAGE), "%llu bytes for the consumer", e.out_consumer_size);
	consumer = mmap(NULL, e.out_consumer_size, PROT_READ | PROT_WRITE, MAP_SHARED, ch,
			(off_t)e.out_consumer);
	REQUIRE(consumer != MAP_FAILED, "mmap: %s", strerror(errno));
	CHECK(mmap(NULL, e.out_consumer_size + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ch,
		   (off_t)e.out_consumer) == MAP_FAILED, "beyond the consumer's pages");
	for (i = 1; i < 2048 && id >= 0; i++)
		id = add_word(ch, fd, RASHPA_CONDITION_CHANGED, 0, 64, 8 * (u64)i % PAGE);
	CHECK(id == 2047, "source %d: %s", i, reason);
	g.members = (uintptr_t)&m;
	g.first = 4711;
	ANSWERED(call(ch, RASHPA_IOC_GROUP_MAKE, &g), 0, NULL);
	CHECK(g.out_id == 2048 && consumer->ack[2047] == 4711, "group %u", g.out_id);
	m.source = 2;
	ANSWERED(call(ch, RASHPA_IOC_GROUP_MAKE, &g), ENOSPC, "2048 sources");
	unmap_fd(consumer, e.out_consumer_size, ch);
	close(fd);
}

/* ------------------------------------------------------------- look --- */

/* Through any fd of the memory, for all channels; a word that did not change makes no event. */
TEST(look, "LOOK makes the events of words that have changed")
{
	struct rashpa_export get = { HEAD(get) };
	int fd = buffer_alloc(2 * PAGE, "st-look"), other = buffer_alloc(PAGE, NULL);
	int node = buffer_node("st-look", O_RDWR), a = memory_channel(), b = memory_channel();
	u64 *p = map_fd(fd, 2 * PAGE);

	REQUIRE(node >= 0, "no memory");
	ANSWERED(call(node, RASHPA_IOC_EXPORT, &get), 0, NULL);
	CHECK(look_at(fd) == 0, "an event without a source");
	CHECK(add_word(a, fd, RASHPA_CONDITION_CHANGED, 0, 64, 0) == 1, "%s", reason);
	CHECK(add_word(a, fd, RASHPA_CONDITION_EQUAL, 5, 64, 0) == 2, "%s", reason);
	CHECK(add_word(b, get.out_fd, RASHPA_CONDITION_REACHED, 2, 64, PAGE) == 1, "%s", reason);
	CHECK(add_word(b, other, RASHPA_CONDITION_CHANGED, 0, 64, 0) == 2, "%s", reason);
	set_word(p, 4, 64);
	nothing(a);	/* LOOK was not called yet */
	CHECK(look_at(other) == 0, "another memory");
	nothing(a);
	CHECK(look_at(get.out_fd) == 1, "one event");
	expect(a, 1, 1, 4);
	set_word(p, 5, 64);
	set_word(p + PAGE / 8, 3, 64);
	CHECK(look_at(fd) == 3, "three events");
	expect(a, 1, 2, 5);
	expect(a, 2, 1, 5);
	expect(b, 1, 1, 3);
	CHECK(look_at(fd) == 0, "nothing has changed");
	/* a new source reports the present value without LOOK */
	CHECK(add_word(a, fd, RASHPA_CONDITION_REACHED, 5, 64, 0) == 3, "%s", reason);
	expect(a, 3, 1, 5);
	nothing(a);
	nothing(b);
	/* a source outlives all fds of its memory */
	close(fd);
	close(get.out_fd);
	set_word(p, 6, 64);
	ANSWERED(call(node, RASHPA_IOC_EXPORT, &get), 0, NULL);
	CHECK(look_at(get.out_fd) == 2, "the sources have gone");
	close(get.out_fd);
	munmap(p, 2 * PAGE);
	close(a);
	close(b);
	close(other);
	buffer_end(node, "st-look");
}

/* The timer helps where a producer forgets to call LOOK. */
TEST(look_and_poll, "LOOK works with a source that has a timer, too")
{
	int fd = buffer_alloc(PAGE, NULL), ch = memory_channel(), n;
	struct rashpa_source_add s = word_source(fd, RASHPA_SOURCE_LOOK | RASHPA_SOURCE_POLL);
	u64 *p = map_fd(fd, PAGE);

	s.period_us = 1000;
	CHECK(source_make(ch, &s) == 1, "%s", reason);
	set_word(p, 1, 64);
	n = look_at(fd);	/* or the timer was first */
	CHECK(n == 0 || n == 1, "%d events", n);
	expect(ch, 1, 1, 1);
	set_word(p, 2, 64);
	CHECK(wait_fd(ch, POLLIN, 5000), "the timer does not poll");
	expect(ch, 1, 2, 2);
	nothing(ch);
	unmap_fd(p, PAGE, fd);
	close(ch);
}

/* ------------------------------------------------------- notification --- */

#define WORDS	40

TEST(look_counts, "eventfds count each event of a LOOK")
{
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), fd = buffer_alloc(PAGE, NULL), i;
	int all = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), ch = memory_channel(), n;
	u64 *p = map_fd(fd, PAGE);

	ANSWERED(bind_eventfd(ch, all, 0), 0, NULL);
	for (i = 0; i < WORDS; i++) {
		CHECK(add_word(ch, fd, RASHPA_CONDITION_CHANGED, 0, 64, 8 * i) == i + 1, "%s",
		      reason);
		ANSWERED(bind_eventfd(ch, event, i + 1), 0, NULL);
	}
	for (i = 0; i < WORDS; i++)
		set_word(p + i, 1, 64);
	CHECK(look_at(fd) == WORDS, "%s", reason);
	n = (int)eventfd_signals(event, WORDS);
	CHECK(n == WORDS, "the eventfd of the sources counts %d", n);
	n = (int)eventfd_signals(all, WORDS);
	CHECK(n == WORDS, "the eventfd of the channel counts %d", n);
	unmap_fd(p, PAGE, fd);
	close(ch);
	close(all);
	close(event);
}

/* The time of a wake-up depends on the waiters, so interrupts are on: in LOOK, and in a timer. */
TEST(told_open, "waiters are woken with interrupts on")
{
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), fd = buffer_alloc(PAGE, NULL);
	struct rashpa_source_add s = word_source(fd, RASHPA_SOURCE_POLL);
	int ch = memory_channel();
	u64 *p = map_fd(fd, PAGE);

	if (!trace_begin("eventfd_signal_mask"))
		return;
	CHECK(add_word(ch, fd, RASHPA_CONDITION_CHANGED, 0, 64, 0) == 1, "%s", reason);
	ANSWERED(bind_eventfd(ch, event, 0), 0, NULL);
	set_word(p, 1, 64);
	CHECK(look_at(fd) == 1 && eventfd_signals(event, 1) == 1, "%s", reason);
	CHECK(traced("call:", "eventfd_signal_mask"), "no signal is traced");
	s.offset = 8;
	s.period_us = 1000;
	CHECK(source_make(ch, &s) == 2, "%s", reason);
	set_word(p + 1, 1, 64);
	CHECK(wait_fd(event, POLLIN, 20000), "the timer does not poll");
	CHECK(!traced_off("call:", "eventfd_signal_mask"), "a signal with interrupts off");
	trace_end();
	unmap_fd(p, PAGE, fd);
	close(ch);
	close(event);
}

#define LOOKERS	3

struct looker {
	pthread_t thread;
	int fd;
	bool stop;
	int err;
};

static void *look_often(void *arg)
{
	struct looker *k = arg;
	struct rashpa_look l = { HEAD(l), .fd = k->fd };

	while (!k->err && !__atomic_load_n(&k->stop, __ATOMIC_RELAXED))
		k->err = ioctl(memory, RASHPA_IOC_LOOK, &l) ? errno : 0;
	return NULL;
}

static void lookers_begin(struct looker k[LOOKERS], int fd)
{
	int i;

	for (i = 0; i < LOOKERS; i++) {
		k[i] = (struct looker) { .fd = fd };
		pthread_create(&k[i].thread, NULL, look_often, &k[i]);
	}
}

static void lookers_end(struct looker k[LOOKERS])
{
	int i;

	for (i = 0; i < LOOKERS; i++)
		__atomic_store_n(&k[i].stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < LOOKERS; i++) {
		pthread_join(k[i].thread, NULL);
		CHECK(!k[i].err, "LOOK: %s", strerror(k[i].err));
	}
}

/* The records of a source are in the order of their times. */
TEST(look_order, "several threads that LOOK make one order")
{
	int fd = buffer_alloc(PAGE, NULL), ch = memory_channel();
	struct rashpa_event e = {}, last = {};
	u64 *p = map_fd(fd, PAGE), n = 0;
	struct looker k[LOOKERS];

	CHECK(add_word(ch, fd, RASHPA_CONDITION_CHANGED, 0, 64, 0) == 1, "%s", reason);
	lookers_begin(k, fd);
	while (last.sequence < 300 && tap_ok()) {
		set_word(p, ++n, 64);
		sched_yield();
		while (read(ch, &e, sizeof(e)) == sizeof(e)) {
			CHECK(e.sequence > last.sequence && e.time_ns >= last.time_ns,
			      "%llu ns at %llu, %llu ns at %llu", last.time_ns, last.sequence,
			      e.time_ns, e.sequence);
			last = e;
		}
	}
	lookers_end(k);
	unmap_fd(p, PAGE, fd);
	close(ch);
}

TEST(look_ends, "sources, eventfds and channels can end during LOOK and polls")
{
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), fd = buffer_alloc(PAGE, NULL);
	struct rashpa_source_add polled = word_source(fd, RASHPA_SOURCE_POLL);
	u64 *p = map_fd(fd, PAGE), n = 0;
	struct looker k[LOOKERS];
	int ch, i, rounds;

	polled.period_us = RASHPA_PERIOD_MIN;
	lookers_begin(k, fd);
	for (rounds = 0; rounds < 40 && tap_ok(); rounds++) {
		ch = memory_channel();
		for (i = 0; i < 20; i++) {
			CHECK(add_word(ch, fd, RASHPA_CONDITION_CHANGED, 0, 64, 0) == i + 1, "%s",
			      reason);
			ANSWERED(bind_eventfd(ch, event, i + 1), 0, NULL);
			set_word(p, ++n, 64);
		}
		CHECK(source_make(ch, &polled) == 21, "%s", reason);
		ANSWERED(bind_eventfd(ch, event, 0), 0, NULL);
		set_word(p, ++n, 64);
		ANSWERED(bind_eventfd(ch, event, 0), 0, NULL);
		ANSWERED(source_del(ch, 1), 0, NULL);
		set_word(p, ++n, 64);
		ANSWERED(bind_eventfd(ch, -1, 2), 0, NULL);
		close(ch);
	}
	lookers_end(k);
	unmap_fd(p, PAGE, fd);
	close(event);
}

TEST(look_pinned, "LOOK works in pinned memory, too")
{
	struct rashpa_pin pin = { HEAD(pin), .length = 2 * PAGE };
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ch = memory_channel();

	pin.address = (uintptr_t)p;
	REQUIRE(ANSWERED(call(memory, RASHPA_IOC_PIN, &pin), 0, NULL), "no pinned memory");
	CHECK(add_word(ch, pin.out_fd, RASHPA_CONDITION_CHANGED, 0, 64, PAGE) == 1, "%s", reason);
	set_word(p + PAGE, 1, 64);
	CHECK(look_at(pin.out_fd) == 1, "%s", reason);
	expect(ch, 1, 1, 1);
	close(ch);
	close(pin.out_fd);
	munmap(p, 2 * PAGE);
}

TEST(look_refused, "LOOK needs a file that is open for writing")
{
	int fd = buffer_alloc(PAGE, "st-look"), ro = buffer_open("st-look", O_RDONLY);
	int ch = memory_channel(), foreign = foreign_dmabuf(PAGE), window;
	u64 *p = map_fd(fd, PAGE);

	if (foreign >= 0)
		ANSWERED(look_at(foreign), EXDEV, "host memory");
	if (have_one) {
		window = fpga_window(&f, RFPGA_BAR_REGS, 0, PAGE, 0);
		ANSWERED(look_at(window), EXDEV, "host memory");
		close(window);
	}
	/* a reader may add a source, but not call LOOK */
	CHECK(add_word(ch, ro, RASHPA_CONDITION_CHANGED, 0, 64, 0) == 1, "%s", reason);
	set_word(p, 1, 64);
	ANSWERED(look_at(ro), EACCES, "not open for writing");
	nothing(ch);
	CHECK(look_at(fd) == 1, "%s", reason);
	expect(ch, 1, 1, 1);
	unmap_fd(p, PAGE, fd);
	close(ro);
	close(ch);
	if (foreign >= 0)
		close(foreign);
	CHECK(!buffer_remove("st-look"), "%s", reason);
}

/* ------------------------------------ one consumer, two kinds of producer --- */

#define MODULES		2
#define SLOTS		IMAGES
#define STACKS		60
#define WORD_OF(m)	((m) * RASHPA_LOCK_SLOT)

/* A stream's description for its consumer. */
struct stream {
	int node;		/* node that makes its channel */
	uint32_t flags, index;	/* flags and index of its words' sources */
	int words_fd;
	const char *words;	/* one of each module */
	bool eventfd;		/* wait for that, or for the channel */
	bool (*right)(const struct stream *s, u64 stack);
	void (*credit)(const struct stream *s, u64 stacks);
	void *priv;
};

/* It does not know the producer: complete stacks come once each, in order, and are right. */
static void consume(const struct stream *s)
{
	struct rashpa_member m[MODULES] = {};
	struct rashpa_group_make g = { HEAD(g), .members = (uintptr_t)m, .n_members = MODULES,
				       .member_size = sizeof(m[0]), .slots = SLOTS,
				       .full = RASHPA_FULL_NEVER };
	int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), ch, i;
	struct rashpa_channel_make e;
	struct rashpa_event event;
	u64 next = 1, k;

	ch = channel_of(s->node, 0, &e);
	REQUIRE(ch >= 0, "%s", reason);
	for (i = 0; i < MODULES; i++) {
		struct rashpa_source_add a = word_source(s->words_fd,
							 s->flags | RASHPA_SOURCE_QUIET);

		a.index = s->index;
		a.offset = WORD_OF(i);
		m[i].source = (uint32_t)source_make(ch, &a);
		CHECK((int)m[i].source > 0, "%s", reason);
	}
	ANSWERED(call(ch, RASHPA_IOC_GROUP_MAKE, &g), 0, NULL);
	if (s->eventfd)
		ANSWERED(bind_eventfd(ch, wake, g.out_id), 0, NULL);
	s->credit(s, 0);
	while (tap_ok() && next <= STACKS) {
		if (!CHECK(wait_fd(s->eventfd ? wake : ch, POLLIN, 20000), "nothing after stack %llu",
			   next - 1))
			break;
		count_of(wake);
		while (read(ch, &event, sizeof(event)) == sizeof(event)) {
			struct rashpa_ack a = { HEAD(a), .id = g.out_id, .position = event.value };

			CHECK(event.kind == RASHPA_SOURCE_GROUP && event.value >= next,
			      "kind %u value %llu after %llu", event.kind, event.value, next - 1);
			for (k = next; k <= event.value && tap_ok(); k++)
				CHECK(s->right(s, k), "stack %llu is not right", k);
			next = event.value + 1;
			ANSWERED(call(ch, RASHPA_IOC_ACK, &a), 0, NULL);
			s->credit(s, event.value);
		}
	}
	close(ch);
	close(wake);
}

/* A program that fills slots, as the thread of a network card's completions does. */
struct program {
	int payload_fd, words_fd, credit_fd;
	char *payload, *words;
};

#define PART	PAGE

static char *part_of(const struct program *p, u64 stack, int module)
{
	return p->payload + ((stack - 1) % SLOTS * MODULES + module) * PART;
}

static bool program_right(const struct stream *s, u64 stack)
{
	int m;

	for (m = 0; m < MODULES; m++)
		if (!filled(part_of(s->priv, stack, m), PART, stack * MODULES + m))
			return false;
	return true;
}

static void program_credit(const struct stream *s, u64 stacks)
{
	const struct program *p = s->priv;

	CHECK(write(p->credit_fd, &stacks, sizeof(stacks)) == sizeof(stacks), "credit: %s",
	      strerror(errno));
}

/* Returns 0, or the failed step. It has what a producer has: memories, and credit by a pipe. */
static int produce(const struct program *p, int credit_fd)
{
	u64 stack, given = 0;
	int m;

	for (stack = 1; stack <= STACKS; stack++) {
		while (stack > given + SLOTS)
			if (read(credit_fd, &given, sizeof(given)) != sizeof(given))
				return 1;
		for (m = 0; m < MODULES; m++) {
			fill(part_of(p, stack, m), PART, stack * MODULES + m);
			set_word(p->words + WORD_OF(m), stack, 64);
		}
		if (look_at(p->words_fd) < 1)
			return 2;
	}
	return 0;
}

static void program_stream(bool with_eventfd)
{
	struct program p = {};
	struct stream s = { .node = memory, .flags = RASHPA_SOURCE_LOOK, .eventfd = with_eventfd,
			    .right = program_right, .credit = program_credit, .priv = &p };
	int credit[2], status = -1;
	pid_t pid;

	p.payload_fd = buffer_alloc(SLOTS * MODULES * PART, NULL);
	p.words_fd = buffer_alloc(PAGE, NULL);
	p.payload = map_fd(p.payload_fd, SLOTS * MODULES * PART);
	p.words = map_fd(p.words_fd, PAGE);
	REQUIRE(!pipe2(credit, O_CLOEXEC), "no memory");
	s.words_fd = p.words_fd;
	s.words = p.words;
	p.credit_fd = credit[1];
	pid = fork();
	if (!pid) {
		/* the first credit says that the consumer is there */
		close(credit[1]);
		if (read(credit[0], &(u64){ 0 }, sizeof(u64)) != sizeof(u64))
			_exit(3);
		_exit(produce(&p, credit[0]));
	}
	consume(&s);
	close(credit[1]);	/* one that waits ends */
	close(credit[0]);	/* not before: the last credit needs a reader */
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status),
	      "the producer: status 0x%x", status);
	unmap_fd(p.payload, SLOTS * MODULES * PART, p.payload_fd);
	unmap_fd(p.words, PAGE, p.words_fd);
}

TEST(program, "the same consumer and a program")
{
	program_stream(false);
}

TEST(program_eventfd, "the same, woken by an eventfd")
{
	program_stream(true);
}

/* The same consumer, and a board. */
struct board {
	struct rig r;
	char *bells;
	uint32_t entries;
	bool started;
};

static bool board_right(const struct stream *s, u64 stack)
{
	const struct board *b = s->priv;

	return filled(b->r.memory + (stack - 1) % IMAGES * IMAGE, IMAGE,
		      SEED + (stack - 1) % IMAGES * (IMAGE / 8));
}

static void board_credit(const struct stream *s, u64 stacks)
{
	struct board *b = s->priv;
	unsigned int n;

	for (n = 0; n < MODULES; n++) {
		char *d = rig_dtp(&b->r, n);

		set32(b->bells + n * PAGE, 0, (uint32_t)stacks);
		if (b->started)
			continue;
		rig_configure(&b->r, n, RFPGA_MODE_MSIX | RFPGA_MODE_LOCK, 0,
			      b->r.made.out_segments, STACKS);
		set64(d, RFPGA_DTP_LOCK_OFFSET, WORD_OF(n));
		set32(d, RFPGA_DTP_LOCK_FIRST, b->r.made.out_segments);
		set32(d, RFPGA_DTP_LOCK_COUNT, b->entries);
		rig_start(&b->r, n);
	}
	b->started = true;
}

TEST(board, "a consumer and a board")
{
	struct stream s = { .index = 1, .right = board_right, .credit = board_credit };
	struct rashpa_map_make m;
	int words, win, map;
	struct board b = {};
	char *p;

	SKIP_IF(!have_one, "no software FPGA");
	words = buffer_alloc(PAGE, NULL);
	p = map_fd(words, PAGE);
	win = fpga_window(&f, RFPGA_BAR_DOORBELL, 0, 16 * PAGE, 0);
	b.bells = map_fd(win, 16 * PAGE);
	rig_up(&b.r, &f, -1, 0, 0);
	map = fpga_map(&f, words, RASHPA_BIDIRECTIONAL, &m);
	REQUIRE(map >= 0, "%s", reason);
	ANSWERED(fpga_program(map, b.r.made.out_segments, &b.entries), 0, NULL);
	s.node = f.fd;
	s.words_fd = words;
	s.words = p;
	s.priv = &b;
	consume(&s);
	close(map);
	unmap_fd(b.bells, 16 * PAGE, win);
	unmap_fd(p, PAGE, words);
	rig_down(&b.r);
}

/* ------------------------------------------------------------ limits --- */

/* An ordinary user with a channel and a memory. */
struct somebody {
	uid_t uid;
	int ch, fd, most;
	const char *why;
};

/* Add sources, and check the reason when there are no more. */
static void many_listeners(void *arg)
{
	const struct somebody *who = arg;
	int n = 0;

	become_user(who->uid);
	while (n < who->most && CHECK(add_word(who->ch, who->fd, RASHPA_CONDITION_CHANGED, 0, 64,
					       0) > 0, "source %d: %s", n + 1, reason))
		n++;
	if (who->why)
		ANSWERED(add_word(who->ch, who->fd, RASHPA_CONDITION_CHANGED, 0, 64, 0), ENOSPC,
			 who->why);
}

/* Number of that memory's sources in LIST. */
static int listed(const char *name)
{
	static struct rashpa_holding held[RASHPA_HOLDINGS_MAX];
	struct rashpa_list list = { HEAD(list), .holdings = (uintptr_t)held,
				    .n_holdings = RASHPA_HOLDINGS_MAX,
				    .holding_size = sizeof(held[0]) };
	uint32_t i;
	int n = 0;

	ANSWERED(call(memory, RASHPA_IOC_LIST, &list), 0, NULL);
	for (i = 0; i < list.out_holdings; i++)
		n += held[i].resource == RASHPA_RESOURCE_SOURCES && !strcmp(held[i].name, name);
	return n;
}

/* The time of an interrupt is for all: no user has it alone, not even root. */
TEST(share, "no user takes all places at one memory")
{
	const int half = RASHPA_LISTENERS_USER / 2;
	struct somebody a = { .uid = 1001, .most = half, .why = "this user|user_limit_listeners" };
	struct somebody b = { .uid = 1002, .most = 1 };
	int fd = buffer_alloc(PAGE, "st-share"), ch, i, id = 1;
	struct rashpa_channel_make e;

	ch = channel_of(memory, RASHPA_LISTENERS_MAX, &e);
	a.ch = b.ch = ch;
	a.fd = b.fd = fd;
	tap_fork(many_listeners, &a);
	tap_fork(many_listeners, &b);
	i = listed("st-share");
	CHECK(i == half + 1, "%d sources of the memory are listed", i);
	/* all of them together */
	b.most = half - 1;
	b.why = "256 sources of users|CAP_SYS_RESOURCE";
	tap_fork(many_listeners, &b);
	/* there, not everywhere; an administrator can give one user all */
	a.fd = buffer_alloc(PAGE, NULL);
	param_set("user_limit_listeners", 0);
	a.most = RASHPA_LISTENERS_USER;
	a.why = "256 sources of users|CAP_SYS_RESOURCE";
	tap_fork(many_listeners, &a);
	parameters_restore();
	close(a.fd);
	/* root's are not held against others */
	a.fd = buffer_alloc(PAGE, NULL);
	for (i = 0; i < RASHPA_LISTENERS_USER && id > 0; i++)
		id = add_word(ch, a.fd, RASHPA_CONDITION_CHANGED, 0, 64, 0);
	CHECK(id > 0, "source %d: %s", i, reason);
	a.most = 1;
	a.why = NULL;
	tap_fork(many_listeners, &a);
	close(a.fd);
	close(ch);
	buffer_end(fd, "st-share");
}

/* Without a place the kernel does not check the word, not even during the call. */
static void no_place(void *arg)
{
	int ch = memory_channel(), full = channel_of(memory, 2048, &(struct rashpa_channel_make){ 0 });
	int fd = buffer_alloc(PAGE, NULL), i;
	struct rashpa_source_add s = word_source(fd, RASHPA_SOURCE_LOOK | RASHPA_SOURCE_POLL);

	s.condition = RASHPA_CONDITION_EQUAL;
	s.period_us = RASHPA_PERIOD_MIN;
	drop_privileges();
	while (add_word(full, fd, RASHPA_CONDITION_CHANGED, 0, 64, 0) > 0)
		;
	for (i = 0; i < 2000 && tap_ok(); i++) {
		ANSWERED(source_make(ch, &s), ENOSPC, "subscribe already");
		nothing(ch);
	}
	close(full);
	close(ch);
	close(fd);
}

TEST(no_place, "without a place no word is checked")
{
	tap_fork(no_place, NULL);
}

TEST(limit, "one memory has a limited number of sources")
{
	int fd = buffer_alloc(PAGE, NULL), ch[2], i, id = 0;
	struct rashpa_channel_make e;
	u64 *p = map_fd(fd, PAGE), begin, idle, busy;

	ch[0] = channel_of(memory, RASHPA_LISTENERS_MAX, &e);
	ch[1] = memory_channel();
	for (i = 0; i < RASHPA_LISTENERS_MAX && id >= 0; i++)
		id = add_word(ch[0], fd, RASHPA_CONDITION_CHANGED, 0, 64, 8 * (u64)i % PAGE);
	CHECK(id == RASHPA_LISTENERS_MAX, "source %d: %s", i, reason);
	ANSWERED(add_word(ch[1], fd, RASHPA_CONDITION_CHANGED, 0, 64, 0), ENOSPC, "2048");
	begin = now_ns();
	CHECK(!look_at(fd), "an event");
	idle = now_ns() - begin;
	memset(p, 1, PAGE);
	begin = now_ns();
	CHECK(look_at(fd) == RASHPA_LISTENERS_MAX, "not all were events");
	busy = now_ns() - begin;
	tap_note("%d words checked in %llu us; with an event each in %llu us",
		 RASHPA_LISTENERS_MAX, idle / 1000, busy / 1000);
	close(ch[0]);
	CHECK(add_word(ch[1], fd, RASHPA_CONDITION_CHANGED, 0, 64, 0) == 1, "%s", reason);
	close(ch[1]);
	unmap_fd(p, PAGE, fd);
}

void setup(void)
{
	have_one = rig_try(&f, 0);
}
