// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug seconds=1 */
/* One-shot sources: they rest after an event, and nothing is lost while they do. */
#include "rig.h"

static struct fpga f;
static bool have_fpga;

/* id, or a negative errno */
static int add_word(int ch, int fd, uint32_t flags)
{
	struct rashpa_source_add a = word_source(fd, flags);

	if (flags & RASHPA_SOURCE_POLL)
		a.period_us = 200;
	return source_make(ch, &a);
}

/* 1: there is an event at once; or a negative errno */
static int arm(int ch, uint32_t id)
{
	struct rashpa_arm a = { HEAD(a), .id = id };
	int err = call(ch, RASHPA_IOC_ARM, &a);

	return err ? err : (int)a.out_events;
}

static u64 looks(int ch, uint32_t id)
{
	struct rashpa_source_info i = { HEAD(i), .id = id };

	ANSWERED(call(ch, RASHPA_IOC_SOURCE_INFO, &i), 0, NULL);
	return i.out_looks;
}

TEST(refused, "a source that cannot rest is refused")
{
	struct rashpa_member member = {};
	struct rashpa_group_make g = {
		HEAD(g), .members = (uintptr_t)&member, .n_members = 1,
		.member_size = sizeof(member),
	};
	struct rashpa_source_add a = {
		HEAD(a), .kind = RASHPA_SOURCE_SOFTWARE, .device = -1, .memory = -1,
	};
	int ch = memory_channel(), fd = buffer_alloc(PAGE, NULL);

	a.head.flags = RASHPA_SOURCE_ONE_SHOT;
	ANSWERED(call(ch, RASHPA_IOC_SOURCE_ADD, &a), EINVAL, "vectors and lock slots");
	ANSWERED(arm(ch, 1), ENOENT, "no source 1");
	a.head.flags = 0;
	ANSWERED(call(ch, RASHPA_IOC_SOURCE_ADD, &a), 0, NULL);
	ANSWERED(arm(ch, a.out_id), EINVAL, "not one-shot|always armed");
	member.source = add_word(ch, fd, RASHPA_SOURCE_LOOK | RASHPA_SOURCE_ONE_SHOT);
	ANSWERED(call(ch, RASHPA_IOC_GROUP_MAKE, &g), EINVAL, "one-shot|group");
	close(fd);
	close(ch);
}

TEST(look, "one event, then one for all later values")
{
	int ch = memory_channel(), fd = buffer_alloc(PAGE, NULL), id;
	u64 *word = map_fd(fd, PAGE);
	struct rashpa_event e;

	id = add_word(ch, fd, RASHPA_SOURCE_LOOK | RASHPA_SOURCE_ONE_SHOT);
	CHECK(id > 0, "SOURCE_ADD: %s", reason);
	CHECK(arm(ch, id) == 0, "arming makes an event without a new value");
	*word = 1;
	CHECK(look_at(fd) == 1 && next_event(ch, &e) && e.value == 1, "no event");
	*word = 2;
	CHECK(!look_at(fd) && !next_event(ch, &e), "there is an event while it rests");
	*word = 7;
	CHECK(arm(ch, id) == 1 && next_event(ch, &e) && e.value == 7, "the value is not reported");
	CHECK(!next_event(ch, &e), "there is another one");
	CHECK(arm(ch, id) == 0 && !next_event(ch, &e), "there is an event without a new value");
	CHECK(arm(ch, id) == 0, "armed twice: %s", reason);
	*word = 8;
	CHECK(look_at(fd) == 1 && next_event(ch, &e) && e.value == 8, "there is no event after arming");
	unmap_fd(word, PAGE, fd);
	close(ch);
}

/* Its timer costs nothing while it rests. */
TEST(poll, "a timer rests, too")
{
	int ch = memory_channel(), fd = buffer_alloc(PAGE, NULL), id;
	u64 *word = map_fd(fd, PAGE), before, end;
	struct rashpa_event e;

	id = add_word(ch, fd, RASHPA_SOURCE_POLL | RASHPA_SOURCE_ONE_SHOT);
	CHECK(id > 0, "SOURCE_ADD: %s", reason);
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	CHECK(wait_fd(ch, POLLIN, 5000) & POLLIN && next_event(ch, &e) && e.value == 1, "no event");
	before = looks(ch, id);
	__atomic_store_n(word, 5, __ATOMIC_RELEASE);
	/* another timer is the clock: when it has polled, this one could have, too */
	end = add_word(ch, fd, RASHPA_SOURCE_POLL);
	__atomic_store_n(word, 6, __ATOMIC_RELEASE);
	CHECK(wait_fd(ch, POLLIN, 5000) & POLLIN && next_event(ch, &e) && e.source == end,
	      "the other source has no event");
	CHECK(looks(ch, id) <= before + 1, "polled %llu times while it rests",
	      (looks(ch, id) - before));
	CHECK(arm(ch, id) == 1 && next_event(ch, &e) && e.value == 6, "the value is not reported");
	CHECK(arm(ch, id) == 0, "it is not armed");
	__atomic_store_n(word, 9, __ATOMIC_RELEASE);
	do
		CHECK(wait_fd(ch, POLLIN, 5000) & POLLIN && next_event(ch, &e), "it polls no more");
	while (tap_ok() && (e.source != (uint32_t)id || e.value != 9));
	unmap_fd(word, PAGE, fd);
	close(ch);
}

/* ------------------------------------------------- nothing is lost --- */

#define WORDS	20000

struct producer {
	int fd;
	u64 *word;
};

static void *produce(void *arg)
{
	const struct producer *p = arg;
	struct rashpa_look l = { HEAD(l), .fd = p->fd };
	u64 i;

	for (i = 1; i <= WORDS; i++) {
		__atomic_store_n(p->word, i, __ATOMIC_RELEASE);
		ioctl(memory, RASHPA_IOC_LOOK, &l);
	}
	return NULL;
}

/*
 * Another thread changes the word and calls LOOK while the consumer takes events and arms again.
 * If a change in between went unreported, the consumer would wait for the last value in vain.
 */
static void consume(int ch, int id)
{
	u64 seen = 0, events = 0;
	struct rashpa_event e;

	while (seen < WORDS && tap_ok()) {
		REQUIRE(wait_fd(ch, POLLIN, 10000) & POLLIN, "nothing comes after %llu", seen);
		while (next_event(ch, &e)) {
			CHECK(e.value > seen && !e.lost, "%llu after %llu, %llu lost", e.value,
			      seen, e.lost);
			seen = e.value;
			events++;
		}
		CHECK(arm(ch, id) >= 0, "ARM: %s", reason);
	}
	CHECK(seen == WORDS, "%llu", seen);
	tap_note("%d steps in %llu events", WORDS, events);
}

TEST(race, "no change between the last poll and arming is lost")
{
	int ch = memory_channel(), id;
	struct producer p = { .fd = buffer_alloc(PAGE, NULL) };
	pthread_t thread;

	p.word = map_fd(p.fd, PAGE);
	id = add_word(ch, p.fd, RASHPA_SOURCE_LOOK | RASHPA_SOURCE_ONE_SHOT);
	REQUIRE(!pthread_create(&thread, NULL, produce, &p), "thread");
	consume(ch, id);
	pthread_join(thread, NULL);
	unmap_fd(p.word, PAGE, p.fd);
	close(ch);
}

/* ------------------------------------------------------- a vector --- */

static u64 interrupts(void)
{
	struct rashpa_device_info info;

	return fpga_info(&f, &info) ? 0 : info.out_interrupts;
}

/* A board that sends at full speed interrupts once, then only after the source was armed. */
TEST(vector, "a vector is masked while all its sources rest")
{
	struct rashpa_source_add a = {
		HEAD(a), .kind = RASHPA_SOURCE_VECTOR, .index = 1, .device = -1, .memory = -1,
	};
	u64 before, sequence = 0, stacks = 0, end;
	struct rashpa_event e = {};
	int ch, other;
	struct rig r;

	SKIP_IF(!have_fpga, "no software FPGA");
	rig_up(&r, &f, -1, 0, 0);
	/* the rig's own channel has a source of that vector, which never rests */
	close(r.channel);
	r.channel = -1;
	ch = fpga_events(&f, 0);
	fcntl(ch, F_SETFL, O_NONBLOCK);
	a.head.flags = RASHPA_SOURCE_ONE_SHOT;
	ANSWERED(call(ch, RASHPA_IOC_SOURCE_ADD, &a), 0, NULL);
	before = interrupts();
	rig_configure(&r, 0, RFPGA_MODE_MSIX | RFPGA_MODE_FREERUN, 0, 1, 2000);
	rig_start(&r, 0);
	CHECK(wait_fd(ch, POLLIN, 10000) & POLLIN && next_event(ch, &e), "no event");
	sequence = e.sequence;
	rig_wait_stopped(&r, 0);
	stacks = reg64(rig_dtp(&r, 0), RFPGA_DTP_C_STACKS);
	/* once more: a slow machine may have merged all stacks so far into one interrupt */
	rig_start(&r, 0);
	rig_wait_stopped(&r, 0);
	rig_settle(&r);
	/* the first interrupt masked the vector, another one may have been on its way */
	CHECK(interrupts() - before <= 2 + RIG_SETTLE,
	      "%llu interrupts of %llu stacks while it rests", interrupts() - before, stacks);
	CHECK(!next_event(ch, &e), "there is an event while it rests");
	/* arming delivers the pending event, in this call or a later one */
	CHECK(arm(ch, a.out_id) >= 0, "ARM: %s", reason);
	CHECK(wait_fd(ch, POLLIN, 10000) & POLLIN && next_event(ch, &e) && e.sequence > sequence,
	      "the pending event does not come");
	/* a source that does not rest unmasks the vector */
	other = fpga_listen(&f, 0, RASHPA_SOURCE_VECTOR, 1);
	before = interrupts();
	rig_configure(&r, 0, RFPGA_MODE_MSIX, 0, 1, 1);
	rig_start(&r, 0);
	CHECK(wait_fd(other, POLLIN, 10000) & POLLIN, "the other channel has no event");
	/* that event may stem from an interrupt that was on its way: the new one comes, too */
	end = end_of_wait(10000);
	while (interrupts() <= before && CHECK(now_ns() < end, "no interrupt"))
		sched_yield();
	close(other);
	close(ch);
	rig_down(&r);
}

void setup(void)
{
	have_fpga = rig_try(&f, 0);
}
