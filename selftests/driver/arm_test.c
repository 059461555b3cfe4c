// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug seconds=1 */
/* One-shot sources: they rest after an event, and nothing is lost while they do. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "rig.h"

static struct fpga f;
static bool have_fpga;

/* id, or a negative errno */
static int add_word(int ch, int fd, uint32_t flags)
{
	struct rashpa_source_add a = {
		HEAD(a), .kind = RASHPA_SOURCE_LOCK, .memory = fd, .bits = 64,
		.condition = RASHPA_CONDITION_CHANGED,
	};
	int err;

	a.head.flags = flags;
	if (flags & RASHPA_SOURCE_POLL)
		a.period_us = 200;
	err = call(ch, RASHPA_IOC_SOURCE_ADD, &a);
	return err ? err : (int)a.out_id;
}

/* 1: there is an event at once; or a negative errno */
static int arm(int ch, uint32_t id)
{
	struct rashpa_arm a = { HEAD(a), .id = id };
	int err = call(ch, RASHPA_IOC_ARM, &a);

	return err ? err : (int)a.out_events;
}

static uint32_t look(int fd)
{
	struct rashpa_look l = { HEAD(l), .fd = fd };

	ANSWERED(call(memory, RASHPA_IOC_LOOK, &l), 0, NULL);
	return l.out_events;
}

static bool next(int ch, struct rashpa_event *e)
{
	return read(ch, e, sizeof(*e)) == sizeof(*e);
}

static u64 looks(int ch, uint32_t id)
{
	struct rashpa_source_info i = { HEAD(i), .id = id };

	ANSWERED(call(ch, RASHPA_IOC_SOURCE_INFO, &i), 0, NULL);
	return i.out_looks;
}

TEST(refused, "what cannot rest is refused")
{
	struct rashpa_member member = {};
	struct rashpa_group_make g = {
		HEAD(g), .members = (uintptr_t)&member, .n_members = 1,
		.member_size = sizeof(member),
	};
	struct rashpa_source_add a = { HEAD(a), .kind = RASHPA_SOURCE_SOFTWARE };
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

/* One event, whatever comes; then one for all that came. */
TEST(look, "one event, and one for all that came meanwhile")
{
	int ch = memory_channel(), fd = buffer_alloc(PAGE, NULL), id;
	u64 *word = map_fd(fd, PAGE);
	struct rashpa_event e;

	id = add_word(ch, fd, RASHPA_SOURCE_LOOK | RASHPA_SOURCE_ONE_SHOT);
	CHECK(id > 0, "SOURCE_ADD: %s", reason);
	CHECK(arm(ch, id) == 0, "there is an event at once, of nothing");
	*word = 1;
	CHECK(look(fd) == 1 && next(ch, &e) && e.value == 1, "no event");
	*word = 2;
	CHECK(!look(fd) && !next(ch, &e), "there is an event while it rests");
	*word = 7;
	CHECK(arm(ch, id) == 1 && next(ch, &e) && e.value == 7, "what came is not told");
	CHECK(!next(ch, &e), "there is another one");
	CHECK(arm(ch, id) == 0 && !next(ch, &e), "there is an event of nothing");
	CHECK(arm(ch, id) == 0, "armed twice: %s", reason);
	*word = 8;
	CHECK(look(fd) == 1 && next(ch, &e) && e.value == 8, "it does not hear again");
	munmap(word, PAGE);
	close(fd);
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
	CHECK(wait_fd(ch, POLLIN, 5000) & POLLIN && next(ch, &e) && e.value == 1, "no event");
	before = looks(ch, id);
	__atomic_store_n(word, 5, __ATOMIC_RELEASE);
	/* another timer is the clock: it has looked when this one could have */
	end = add_word(ch, fd, RASHPA_SOURCE_POLL);
	__atomic_store_n(word, 6, __ATOMIC_RELEASE);
	CHECK(wait_fd(ch, POLLIN, 5000) & POLLIN && next(ch, &e) && e.source == end,
	      "the other source tells of nothing");
	CHECK(looks(ch, id) <= before + 1, "it has looked %llu times while it rests",
	      (looks(ch, id) - before));
	CHECK(arm(ch, id) == 1 && next(ch, &e) && e.value == 6, "what came is not told");
	CHECK(arm(ch, id) == 0, "it is not armed");
	__atomic_store_n(word, 9, __ATOMIC_RELEASE);
	do
		CHECK(wait_fd(ch, POLLIN, 5000) & POLLIN && next(ch, &e), "it looks no more");
	while (tap_ok() && (e.source != (uint32_t)id || e.value != 9));
	munmap(word, PAGE);
	close(fd);
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
 * Words change and are looked at while the consumer takes what there is and arms again. Would
 * something come between, and not be told, the last one would be waited for in vain.
 */
static void consume(int ch, int id)
{
	u64 seen = 0, events = 0;
	struct rashpa_event e;

	while (seen < WORDS && tap_ok()) {
		if (!CHECK(wait_fd(ch, POLLIN, 10000) & POLLIN, "nothing comes after %llu", seen))
			return;
		while (next(ch, &e)) {
			CHECK(e.value > seen && !e.lost, "%llu after %llu, %llu lost", e.value,
			      seen, e.lost);
			seen = e.value;
			events++;
		}
		CHECK(arm(ch, id) >= 0, "ARM: %s", reason);
	}
	CHECK(seen == WORDS, "%llu", seen);
	tap_note("%d steps were told by %llu events", WORDS, events);
}

TEST(race, "nothing is lost between the last look and arming")
{
	int ch = memory_channel(), id;
	struct producer p = { .fd = buffer_alloc(PAGE, NULL) };
	pthread_t thread;

	p.word = map_fd(p.fd, PAGE);
	REQUIRE(p.word, "no memory");
	id = add_word(ch, p.fd, RASHPA_SOURCE_LOOK | RASHPA_SOURCE_ONE_SHOT);
	REQUIRE(!pthread_create(&thread, NULL, produce, &p), "thread");
	consume(ch, id);
	pthread_join(thread, NULL);
	munmap(p.word, PAGE);
	close(p.fd);
	close(ch);
}

/* ------------------------------------------------------- a vector --- */

static u64 interrupts(void)
{
	struct rashpa_device_info info;

	return fpga_info(&f, &info) ? 0 : info.out_interrupts;
}

/* A board that sends as fast as it can is heard once, and then when it is wanted to be. */
TEST(vector, "a vector is masked while all who listen rest")
{
	struct rashpa_source_add a = { HEAD(a), .kind = RASHPA_SOURCE_VECTOR, .index = 1 };
	u64 before, sequence = 0, stacks = 0, end;
	struct rashpa_event e = {};
	int ch, other;
	struct rig r;

	SKIP_IF(!have_fpga, "no software FPGA");
	rig_up(&r, &f, -1, 0, 0);
	/* the rig's own channel listens to that vector, and never rests */
	close(r.channel);
	r.channel = -1;
	ch = fpga_events(&f, 0);
	fcntl(ch, F_SETFL, O_NONBLOCK);
	a.head.flags = RASHPA_SOURCE_ONE_SHOT;
	ANSWERED(call(ch, RASHPA_IOC_SOURCE_ADD, &a), 0, NULL);
	before = interrupts();
	rig_configure(&r, 0, RFPGA_MODE_MSIX | RFPGA_MODE_FREERUN, 0, 1, 2000);
	rig_start(&r, 0);
	CHECK(wait_fd(ch, POLLIN, 10000) & POLLIN && next(ch, &e), "no event");
	sequence = e.sequence;
	rig_wait_stopped(&r, 0);
	stacks = reg64(rig_dtp(&r, 0), RFPGA_DTP_C_STACKS);
	/* once more: of all that was sent before, a slow machine may have made one interrupt */
	rig_start(&r, 0);
	rig_wait_stopped(&r, 0);
	rig_settle(&r);
	/* one that had its handler masked it, another one may have been on its way */
	CHECK(interrupts() - before <= 2 + RIG_SETTLE,
	      "%llu interrupts of %llu stacks while it rests", interrupts() - before, stacks);
	CHECK(!next(ch, &e), "there is an event while it rests");
	/* what is pending comes when it is armed, in whatever call */
	CHECK(arm(ch, a.out_id) >= 0, "ARM: %s", reason);
	CHECK(wait_fd(ch, POLLIN, 10000) & POLLIN && next(ch, &e) && e.sequence > sequence,
	      "what was pending does not come");
	/* who does not rest takes the mask away */
	other = fpga_events(&f, 0);
	CHECK(source_add(other, RASHPA_SOURCE_VECTOR, 1) > 0, "SOURCE_ADD: %s", reason);
	before = interrupts();
	rig_configure(&r, 0, RFPGA_MODE_MSIX, 0, 1, 1);
	rig_start(&r, 0);
	CHECK(wait_fd(other, POLLIN, 10000) & POLLIN, "another one hears nothing");
	/* that may be of one which was on its way before: this one comes, too */
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
