// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=10 */
/*
 * librashpa's streams, between programs: whatever happens to one of them, the others are notified
 * and lose nothing. No board is needed: a program fills the slots.
 */
#include <sys/socket.h>

#include <rashpa.h>
#include <rashpa-stream.h>
#include <rashpa-stream-format.h>
#include "common.h"

#define NAME	"st-stream"
#define OTHER	"st-payload"
#define LENGTH	(4u << 20)
#define SECOND	1000000000ll

/* Shared by two processes. */
struct talk {
	uint32_t allowed;	/* stacks that the producer may publish */
	uint32_t published;
	uint32_t seen[4096];	/* how often a stack was used */
};

static struct talk *talk;

static void set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

/* Wait for *@word to reach @least, ten seconds at most. */
static bool await(uint32_t *word, uint32_t least)
{
	for (unsigned int i = 0; i < 100000 * tap_slow(); i++) {
		if (__atomic_load_n(word, __ATOMIC_SEQ_CST) >= least)
			return true;
		usleep(100);
	}
	return false;
}

/* --- images --- */

static const struct rashpa_stream_process whole = { .width = 64, .height = 32 };

static struct rashpa_stream_plan plan_of(uint64_t stacks, uint32_t slots, uint32_t policy)
{
	return (struct rashpa_stream_plan) {
		.header = { .width = 64, .height = 32, .pixel = RASHPA_PIXEL_U16, .bunch = 4,
			    .slots = slots, .policy = policy, .images = 4 * stacks },
		.process = &whole,
		.processes = 1,
	};
}

static uint16_t pixel_of(uint64_t frame, uint32_t i)
{
	return frame * 31 + i;
}

static void paint(const struct rashpa_stack *st)
{
	for (uint32_t k = 0; k < st->images; k++) {
		uint16_t *p = rashpa_stack_pixels(st, k);

		for (uint32_t i = 0; i < 64 * 32; i++)
			p[i] = pixel_of(st->frame + k, i);
	}
}

/* Is each image the one that it says? */
static bool right(const struct rashpa_stack *st)
{
	struct rashpa_image image;

	for (uint32_t k = 0; k < st->images; k++) {
		const uint16_t *p;

		if (rashpa_stack_image(st, k, &image) || image.wrong ||
		    image.frame != st->frame + k)
			return false;
		p = image.data;
		for (uint32_t i = 0; i < 64 * 32; i++) {
			if (p[i] != pixel_of(image.frame, i))
				return false;
		}
	}
	return true;
}

/* Publishes stacks as far as it is allowed to, until all images were sent. */
static void produce(void *arg)
{
	const struct rashpa_stream_plan *plan = arg;
	struct rashpa_stream *s;
	struct rashpa_stack st;
	int got = 0;

	REQUIRE(!rashpa_stream_create(NAME, plan, &s), "create: %s", rashpa_reason());
	REQUIRE(!rashpa_stream_start(s, 0, 0), "start: %s", rashpa_reason());
	for (uint32_t n = 0; await(&talk->allowed, n + 1); n++) {
		got = rashpa_stream_slot(s, &st, 30 * SECOND * tap_slow());
		if (got <= 0)
			break;
		paint(&st);
		CHECK(!rashpa_stream_publish(s, &st), "publish: %s", rashpa_reason());
		set(&talk->published, n + 1);
	}
	CHECK(!got, "slot: %s", rashpa_reason());
	rashpa_stream_close(s);
}

static struct rashpa_stream *open_as(unsigned int flags)
{
	struct rashpa_stream *s;

	CHECK(!rashpa_stream_open(NAME, flags, &s), "open: %s", rashpa_reason());
	return s;
}

/* A producer that has started, and its consumer; the test ends where it fails. */
static struct rashpa_stream *both(const struct rashpa_stream_plan *plan, struct rashpa_stream **p)
{
	if (rashpa_stream_create(NAME, plan, p) || rashpa_stream_start(*p, 0, 0))
		tap_bail("create: %s", rashpa_reason());
	return open_as(0);
}

static int next(struct rashpa_stream *s, struct rashpa_stack *st)
{
	return rashpa_stream_next(s, st, 20 * SECOND * tap_slow());
}

/* From its first stack on, to the end of the stream. */
static void takes(struct rashpa_stream *s, unsigned int stacks)
{
	struct rashpa_stack st;
	unsigned int n = 0;

	for (; next(s, &st) > 0; n++) {
		CHECK(st.number == n && right(&st), "stack %llu instead of %u",
		      (unsigned long long)st.number, n);
		rashpa_stream_release(s, &st);
	}
	CHECK(n == stacks, "%u stacks", n);
}

/* --- tests --- */

TEST(all_arrive, "all stacks arrive, and the end")
{
	struct rashpa_stream_plan plan = plan_of(300, 7, RASHPA_STREAM_WAIT);
	struct rashpa_stream_stat stat;
	struct rashpa_stream *s;
	struct rashpa_stack st;
	uint64_t n = 0;
	pid_t pid;
	int got;

	s = open_as(0);
	REQUIRE(s, "no consumer");
	CHECK(rashpa_stream_next(s, &st, 0) == -ETIMEDOUT, "a stream before there is one");
	pid = tap_fork_start(produce, &plan);
	while ((got = next(s, &st)) > 0) {
		CHECK(st.number == n && st.frame == 4 * n && st.images == 4 && right(&st),
		      "stack %llu is wrong", (unsigned long long)n);
		n++;
		ANSWERED(rashpa_stream_release(s, &st), 0, NULL);
		CHECK(rashpa_stream_release(s, &st) == -EINVAL, "released twice");
	}
	CHECK(!got && n == 300, "%llu stacks, then %d: %s", (unsigned long long)n, got,
	      rashpa_reason());
	/* all frames have arrived, perhaps before the producer reports its end */
	tap_fork_end(pid);
	rashpa_stream_get_stat(s, &stat);
	CHECK(stat.stacks == 300 && stat.frames == 1200 && !stat.lost && !stat.held &&
	      !stat.skipped, "%llu stacks, %llu lost, %llu held", (unsigned long long)stat.stacks,
	      (unsigned long long)stat.lost, (unsigned long long)stat.held);
	CHECK(stat.state == RASHPA_STREAM_ENDED && stat.consumer == getpid(),
	      "state %u, consumer %d", stat.state, stat.consumer);
	/* a stream that has ended is not delivered again */
	CHECK(rashpa_stream_next(s, &st, 0) == -ETIMEDOUT, "an old stream again");
	plan.header.images = 8;
	pid = tap_fork_start(produce, &plan);
	takes(s, 2);
	tap_fork_end(pid);
	rashpa_stream_close(s);
}

#define WORKERS		8
#define JOBS		16

struct job {
	struct rashpa_stack st;
	uint32_t full;
};

static struct {
	struct rashpa_stream *s;
	struct job job[JOBS];
	uint32_t wrong, done;
} pool;

/* Takes stacks from its own two places in turn, checks each twice, and releases it. */
static void *work(void *arg)
{
	struct job *mine = (struct job *)arg;

	for (unsigned int i = 0;; i ^= 1) {
		struct job *j = &mine[i];

		if (!await(&j->full, 1) || j->full == 2)
			return NULL;
		if (!right(&j->st) || (sched_yield(), !right(&j->st)) ||
		    rashpa_stream_release(pool.s, &j->st))
			__atomic_add_fetch(&pool.wrong, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&pool.done, 1, __ATOMIC_SEQ_CST);
		set(&j->full, 0);
	}
}

TEST(threads, "eight threads release in any order")
{
	struct rashpa_stream_plan plan = plan_of(2000, 12, RASHPA_STREAM_WAIT);
	pthread_t worker[WORKERS];
	struct rashpa_stack st;
	uint32_t turn[WORKERS] = {}, n = 0;
	pid_t pid;

	memset(&pool, 0, sizeof(pool));
	pool.s = open_as(0);
	REQUIRE(pool.s, "no consumer");
	for (unsigned int i = 0; i < WORKERS; i++)
		pthread_create(&worker[i], NULL, work, &pool.job[2 * i]);
	pid = tap_fork_start(produce, &plan);
	while (next(pool.s, &st) > 0) {
		/* the slowest goes last: workers get stacks that are far apart */
		unsigned int w = n * 5 % WORKERS;
		struct job *j = &pool.job[2 * w + turn[w]];

		turn[w] ^= 1;
		while (__atomic_load_n(&j->full, __ATOMIC_SEQ_CST))
			sched_yield();
		j->st = st;
		set(&j->full, 1);
		n++;
	}
	CHECK(n == 2000 && await(&pool.done, n), "%u stacks, %u used: %s", n, pool.done,
	      rashpa_reason());
	for (unsigned int i = 0; i < WORKERS; i++) {
		set(&pool.job[2 * i].full, 2);
		set(&pool.job[2 * i + 1].full, 2);
		pthread_join(worker[i], NULL);
	}
	CHECK(!pool.wrong, "%u stacks were overwritten, or not released", pool.wrong);
	tap_fork_end(pid);
	rashpa_stream_close(pool.s);
}

TEST(held, "a slot that is held is not written")
{
	struct rashpa_stream_plan plan = plan_of(10, 3, RASHPA_STREAM_WAIT);
	struct rashpa_stack st[4], slot;
	struct rashpa_stream *p, *s;

	s = both(&plan, &p);
	for (unsigned int i = 0; i < 3; i++) {
		CHECK(rashpa_stream_slot(p, &slot, 0) == 1, "slot: %s", rashpa_reason());
		paint(&slot);
		ANSWERED(rashpa_stream_publish(p, &slot), 0, NULL);
		CHECK(next(s, &st[i]) == 1, "next: %s", rashpa_reason());
	}
	CHECK(rashpa_stream_slot(p, &slot, 0) == -ETIMEDOUT, "a slot that is held");
	/* credit ends at the first slot that is held */
	ANSWERED(rashpa_stream_release(s, &st[1]), 0, NULL);
	ANSWERED(rashpa_stream_release(s, &st[2]), 0, NULL);
	CHECK(rashpa_stream_slot(p, &slot, 0) == -ETIMEDOUT, "a slot after one that is held");
	CHECK(right(&st[0]) && rashpa_stack_intact(&st[0]), "it is not what it was");
	ANSWERED(rashpa_stream_release(s, &st[0]), 0, NULL);
	for (unsigned int i = 0; i < 3; i++) {
		CHECK(rashpa_stream_slot(p, &slot, 0) == 1, "slot: %s", rashpa_reason());
		ANSWERED(rashpa_stream_publish(p, &slot), 0, NULL);
	}
	rashpa_stream_close(s);
	rashpa_stream_close(p);
}

TEST(one_consumer, "there is one consumer")
{
	struct rashpa_stream *s, *other, *observer;
	char who[32];

	s = open_as(0);
	snprintf(who, sizeof(who), "process %d ", getpid());
	CHECK(rashpa_stream_open(NAME, 0, &other) == -EBUSY && strstr(rashpa_reason(), who) &&
	      !other, "a second consumer: %s", rashpa_reason());
	observer = open_as(RASHPA_STREAM_OBSERVE);
	rashpa_stream_close(observer);
	rashpa_stream_close(s);
	s = open_as(0);
	rashpa_stream_close(s);
}

/* The producer does not wait; both observers see each stack before the next one comes. */
TEST(observers, "only a slow observer has losses")
{
	struct rashpa_stream_plan plan = plan_of(50, 4, RASHPA_STREAM_OVERWRITE);
	struct rashpa_stream *p, *slow, *watch[2];
	struct rashpa_stream_stat stat;
	struct rashpa_stack st, held;
	uint64_t lost = 0, got = 0;

	slow = both(&plan, &p);
	watch[0] = open_as(RASHPA_STREAM_OBSERVE);
	watch[1] = open_as(RASHPA_STREAM_OBSERVE);
	for (uint64_t n = 0; n < 50; n++) {
		CHECK(rashpa_stream_slot(p, &st, 0) == 1, "slot: %s", rashpa_reason());
		paint(&st);
		ANSWERED(rashpa_stream_publish(p, &st), 0, NULL);
		for (unsigned int i = 0; i < 2; i++) {
			CHECK(next(watch[i], &st) == 1 && st.number == n && right(&st) && !st.lost,
			      "observer %u: stack %llu", i, (unsigned long long)st.number);
			ANSWERED(rashpa_stream_release(watch[i], &st), 0, NULL);
		}
		if (!n)
			CHECK(next(slow, &held) == 1 && right(&held), "the first stack");
		if (n % 10 != 9)
			continue;
		if (n == 9)
			CHECK(!rashpa_stack_intact(&held) &&
			      rashpa_stream_release(slow, &held) == -ESTALE,
			      "it was overwritten, without an error");
		CHECK(next(slow, &st) == 1 && right(&st) && !rashpa_stream_release(slow, &st),
		      "the slow one: %s", rashpa_reason());
		lost += st.lost;
		got += st.images;
	}
	for (unsigned int i = 0; i < 2; i++) {
		rashpa_stream_get_stat(watch[i], &stat);
		CHECK(!stat.lost && stat.stacks == 50, "observer %u has lost %llu", i,
		      (unsigned long long)stat.lost);
		rashpa_stream_close(watch[i]);
	}
	rashpa_stream_end(p, NULL);
	while (next(slow, &st) > 0) {
		lost += st.lost;
		got += st.images;
		rashpa_stream_release(slow, &st);
	}
	rashpa_stream_get_stat(slow, &stat);
	CHECK(lost && lost + 4 == stat.lost && got + stat.lost == 200,
	      "%llu frames, %llu lost, %llu reported", (unsigned long long)got,
	      (unsigned long long)stat.lost, (unsigned long long)lost);
	rashpa_stream_close(slow);
	rashpa_stream_close(p);
}

/* --- processes that are killed --- */

static void consume(void *arg)
{
	struct rashpa_stream *s = open_as(0);
	struct rashpa_stack st;

	REQUIRE(s, "no consumer");
	while (next(s, &st) > 0) {
		CHECK(right(&st), "stack %llu", (unsigned long long)st.number);
		__atomic_add_fetch(&talk->seen[st.number], 1, __ATOMIC_SEQ_CST);
		rashpa_stream_release(s, &st);
	}
	rashpa_stream_close(s);
}

TEST(consumer_killed, "a consumer that is killed twenty times loses and repeats nothing")
{
	struct rashpa_stream_plan plan = plan_of(200, 8, RASHPA_STREAM_WAIT);
	struct rashpa_stream *observer;
	struct rashpa_stream_stat stat;
	pid_t producer, consumer;

	set(&talk->allowed, 0);
	producer = tap_fork_start(produce, &plan);
	observer = open_as(RASHPA_STREAM_OBSERVE | RASHPA_STREAM_FROM_START);
	REQUIRE(!rashpa_stream_begin(observer, 20 * SECOND), "%s", rashpa_reason());
	for (uint32_t n = 10; n <= 200; n += 10) {
		consumer = tap_fork_start(consume, NULL);
		set(&talk->allowed, n < 200 ? n : UINT32_MAX);
		do {
			rashpa_stream_get_stat(observer, &stat);
		} while (stat.consumed < n && !usleep(100));
		if (n < 200) {
			tap_fork_kill(consumer);
			continue;
		}
		tap_fork_end(producer);
		tap_fork_end(consumer);
	}
	for (uint32_t n = 0; n < 200; n++)
		CHECK(talk->seen[n] == 1, "stack %u was used %u times", n, talk->seen[n]);
	rashpa_stream_close(observer);
}

/* Takes a stack, and keeps it. */
static void keep(void *arg)
{
	struct rashpa_stream *s = open_as(0);
	struct rashpa_stack st;

	CHECK(next(s, &st) == 1, "next: %s", rashpa_reason());
	set(&talk->seen[0], 1);
	pause();
}

TEST(holder_killed, "the next consumer gets the stack that a killed one held")
{
	struct rashpa_stream_plan plan = plan_of(5, 3, RASHPA_STREAM_WAIT);
	struct rashpa_stream *s;
	pid_t producer, holder;

	producer = tap_fork_start(produce, &plan);
	holder = tap_fork_start(keep, NULL);
	CHECK(await(&talk->seen[0], 1) && await(&talk->published, 3), "no stack");
	tap_fork_kill(holder);
	s = open_as(0);
	takes(s, 5);
	tap_fork_end(producer);
	rashpa_stream_close(s);
}

TEST(fresh, "a consumer that wants a fresh stream gets nothing of a killed producer")
{
	struct rashpa_stream_plan plan = plan_of(5, 8, RASHPA_STREAM_WAIT);
	struct rashpa_stream *s, *none;
	pid_t pid;

	set(&talk->allowed, 3);
	pid = tap_fork_start(produce, &plan);
	CHECK(await(&talk->published, 3), "no stacks");
	tap_fork_kill(pid);
	ANSWERED(rashpa_stream_open(NAME, RASHPA_STREAM_FRESH | RASHPA_STREAM_FROM_START, &none),
		 EINVAL, NULL);
	s = open_as(RASHPA_STREAM_FRESH);
	CHECK(rashpa_stream_begin(s, SECOND / 10) == -ETIMEDOUT, "a stream that is over began");
	set(&talk->allowed, UINT32_MAX);
	pid = tap_fork_start(produce, &plan);
	takes(s, 5);
	tap_fork_end(pid);
	rashpa_stream_close(s);
}

TEST(again, "a producer that goes on in the middle waits until all stacks are given back")
{
	struct rashpa_stream_plan plan = plan_of(8, 4, RASHPA_STREAM_WAIT);
	struct rashpa_stream *producer, *s;
	struct rashpa_stack st;
	uint64_t first = 77;

	REQUIRE(!rashpa_stream_create(NAME, &plan, &producer), "create: %s", rashpa_reason());
	ANSWERED(rashpa_stream_again(producer, &first), EINVAL, NULL);
	REQUIRE(!rashpa_stream_start(producer, 0, 0), "start: %s", rashpa_reason());
	s = open_as(0);
	REQUIRE(!rashpa_stream_begin(s, SECOND), "begin: %s", rashpa_reason());
	ANSWERED(rashpa_stream_again(s, &first), EINVAL, NULL);
	CHECK(!rashpa_stream_again(producer, &first) && first == 0, "nothing was sent: %s",
	      rashpa_reason());
	REQUIRE(rashpa_stream_slot(producer, &st, SECOND) > 0, "slot: %s", rashpa_reason());
	paint(&st);
	CHECK(!rashpa_stream_publish(producer, &st), "publish: %s", rashpa_reason());
	ANSWERED(rashpa_stream_again(producer, &first), EAGAIN, NULL);
	REQUIRE(next(s, &st) == 1, "next: %s", rashpa_reason());
	ANSWERED(rashpa_stream_again(producer, &first), EAGAIN, NULL);
	CHECK(right(&st), "the stack is not whole any more");
	rashpa_stream_release(s, &st);
	CHECK(!rashpa_stream_again(producer, &first) && first == 1, "%llu: %s",
	      (unsigned long long)first, rashpa_reason());
	rashpa_stream_close(producer);
	rashpa_stream_close(s);
}

TEST(producer_killed, "a late consumer gets the stacks of a killed producer, then the error")
{
	struct rashpa_stream_plan plan = plan_of(100, 8, RASHPA_STREAM_WAIT);
	struct rashpa_stream *s;
	struct rashpa_stack st;
	unsigned int n = 0;
	pid_t pid;
	int got;

	set(&talk->allowed, 5);
	pid = tap_fork_start(produce, &plan);
	CHECK(await(&talk->published, 5), "no stacks");
	tap_fork_kill(pid);
	/* no consumer was there while it lived, and its stacks are kept */
	s = open_as(0);
	while ((got = next(s, &st)) > 0) {
		CHECK(st.number == n++ && right(&st), "stack %llu", (unsigned long long)st.number);
		rashpa_stream_release(s, &st);
	}
	CHECK(n == 5 && got == -EOWNERDEAD, "%u stacks, then %d: %s", n, got, rashpa_reason());
	CHECK(rashpa_stream_next(s, &st, 0) == -ETIMEDOUT, "the dead one is a stream again");
	/* the rest of the dead producer does not exclude the next one */
	set(&talk->allowed, UINT32_MAX);
	pid = tap_fork_start(produce, &plan);
	takes(s, 100);
	tap_fork_end(pid);
	rashpa_stream_close(s);
}

TEST(replaced, "a stream that replaces another one")
{
	struct rashpa_stream_plan plan = plan_of(100, 4, RASHPA_STREAM_WAIT);
	struct rashpa_stack st, first;
	struct rashpa_stream *s, *p;
	pid_t pid;

	set(&talk->allowed, 2);
	pid = tap_fork_start(produce, &plan);
	s = open_as(0);
	CHECK(next(s, &first) == 1, "next: %s", rashpa_reason());
	CHECK(await(&talk->published, 2), "no stacks");
	tap_fork_kill(pid);
	REQUIRE(!rashpa_stream_create(NAME, &plan, &p), "create: %s", rashpa_reason());
	CHECK(!rashpa_stack_intact(&first), "a stack of the old stream");
	REQUIRE(!rashpa_stream_start(p, 0, 0), "start: %s", rashpa_reason());
	CHECK(next(s, &st) == -ESTALE && strstr(rashpa_reason(), "another stream"), "%s",
	      rashpa_reason());
	CHECK(rashpa_stream_slot(p, &st, 0) == 1 && !rashpa_stream_publish(p, &st), "slot");
	CHECK(next(s, &st) == 1 && !st.number, "the new stream: %s", rashpa_reason());
	CHECK(rashpa_stream_release(s, &first) == -ESTALE, "credit for the old stream");
	ANSWERED(rashpa_stream_release(s, &st), 0, NULL);
	rashpa_stream_close(p);
	rashpa_stream_close(s);
}

/* --- kinds of stacks --- */

TEST(incomplete, "messages that are missing are named")
{
	const struct rashpa_stream_process half[2] = {
		{ .width = 64, .height = 16, .messages = 3 },
		{ .y = 16, .width = 64, .height = 16, .messages = 70 },
	};
	struct rashpa_stream_plan plan = plan_of(8, 6, RASHPA_STREAM_WAIT);
	struct rashpa_stack slot[4], st;
	struct rashpa_stream *p, *s;
	int left = 0;

	plan.process = half;
	plan.processes = 2;
	plan.close_after = 2;
	s = both(&plan, &p);
	CHECK(rashpa_stream_slot(p, &slot[0], 0) == 1, "slot: %s", rashpa_reason());
	for (uint32_t i = 0; i < 70; i++)
		left = i == 66 ? left : rashpa_stream_valid(&slot[0], 1, i);
	CHECK(left == 4, "%d are missing", left);
	CHECK(rashpa_stream_valid(&slot[0], 1, 69) == -EEXIST, "it came twice");
	CHECK(rashpa_stream_valid(&slot[0], 1, 70) == -ERANGE &&
	      rashpa_stream_valid(&slot[0], 2, 0) == -ERANGE, "there is no such message");
	CHECK(rashpa_stream_valid(&slot[0], 0, 1) == 3, "one of the other process");
	/* stacks 1 and 2 are begun: that is when 0 is given up */
	for (unsigned int i = 1; i < 4; i++)
		CHECK(rashpa_stream_slot(p, &slot[i], 0) == 1, "slot: %s", rashpa_reason());
	CHECK(next(s, &st) == 1 && st.flags & RASHPA_STACK_INCOMPLETE && st.missing == 3 &&
	      !st.number, "%llu missing: %s", (unsigned long long)st.missing, rashpa_reason());
	CHECK(rashpa_stack_missing(&st, 1, 66) == 1 && !rashpa_stack_missing(&st, 1, 67) &&
	      rashpa_stack_missing(&st, 0, 0) == 1 && !rashpa_stack_missing(&st, 0, 1) &&
	      rashpa_stack_missing(&st, 0, 3) == -ERANGE, "others are missing");
	CHECK(rashpa_stream_valid(&slot[0], 0, 0) == -ESTALE, "it is late");
	ANSWERED(rashpa_stream_release(s, &st), 0, NULL);
	/* published in any order, seen in order */
	for (uint32_t i = 0; i < 70; i++)
		rashpa_stream_valid(&slot[2], 1, i);
	for (uint32_t i = 0; i < 3; i++)
		left = rashpa_stream_valid(&slot[2], 0, i);
	CHECK(!left, "%d are missing", left);
	slot[2].user[7] = 0x1234;
	ANSWERED(rashpa_stream_publish(p, &slot[2]), 0, NULL);
	CHECK(rashpa_stream_publish(p, &slot[2]) == -ESTALE, "published twice");
	CHECK(rashpa_stream_next(s, &st, 0) == -ETIMEDOUT, "stack %llu before its turn",
	      (unsigned long long)st.number);
	ANSWERED(rashpa_stream_publish(p, &slot[1]), 0, NULL);
	CHECK(next(s, &st) == 1 && st.number == 1 && st.missing == 73, "stack 1");
	CHECK(next(s, &st) == 1 && st.number == 2 && !st.flags && st.user[7] == 0x1234 &&
	      st.time_ns, "stack 2");
	rashpa_stream_close(s);
	rashpa_stream_close(p);
}

TEST(metadata, "metadata of images")
{
	struct rashpa_stream_plan plan = plan_of(2, 2, RASHPA_STREAM_WAIT);
	struct rashpa_image image = { .frame = 7000, .role = RASHPA_IMAGE_DARK, .trigger = 5,
				      .time = 99, .missing_lines = 3 };
	struct rashpa_stream *p, *s;
	struct rashpa_stack st;

	plan.flags = RASHPA_PLAN_META;
	s = both(&plan, &p);
	CHECK(rashpa_stream_slot(p, &st, 0) == 1, "slot: %s", rashpa_reason());
	for (uint32_t i = 0; i < 4; i++) {
		ANSWERED(rashpa_stack_describe(&st, 0, i, &image), 0, NULL);
		image.frame += 2;
		image.role = RASHPA_IMAGE_SIGNAL;
		image.missing_lines = 0;
	}
	CHECK(rashpa_stack_describe(&st, 0, 4, &image) == -ERANGE, "a fifth image");
	ANSWERED(rashpa_stream_publish(p, &st), 0, NULL);
	CHECK(next(s, &st) == 1 && st.frame == 7000 && st.skipped == 7003 &&
	      st.flags == (RASHPA_STACK_INCOMPLETE | RASHPA_STACK_ROLES), "frame %llu, skipped %llu, flags %u",
	      (unsigned long long)st.frame, (unsigned long long)st.skipped, st.flags);
	CHECK(!rashpa_stack_image(&st, 0, &image) && image.role == RASHPA_IMAGE_DARK &&
	      image.trigger == 5 && image.time == 99 && image.missing_lines == 3 && image.known,
	      "image 0 is another one");
	CHECK(!rashpa_stack_image(&st, 3, &image) && image.frame == 7006 && !image.role,
	      "image 3 is another one");
	CHECK(rashpa_stack_image(&st, 4, &image) == -ERANGE, "image 4");
	/* a stack without metadata of its images is marked */
	rashpa_stream_release(s, &st);
	CHECK(rashpa_stream_slot(p, &st, 0) == 1 && !rashpa_stream_publish(p, &st), "slot");
	CHECK(next(s, &st) == 1 && st.flags & RASHPA_STACK_WRONG, "flags %u", st.flags);
	rashpa_stream_close(s);
	rashpa_stream_close(p);
}

/* Every third image is dark, as the header says; a role from the detector takes precedence. */
TEST(darks, "dark images")
{
	static const uint32_t wanted[2][8] = {
		{ 0, 0, RASHPA_IMAGE_DARK, 0, 0, RASHPA_IMAGE_DARK, 0, 0 },
		{ 0, 0, RASHPA_IMAGE_DARK, 0, 0, 7, 0, 0 },
	};
	struct rashpa_stream_plan plan = plan_of(2, 2, RASHPA_STREAM_WAIT);
	struct rashpa_stream *p, *s;
	struct rashpa_image image;
	struct rashpa_stack st;

	plan.header.dark_every = 3;
	for (int meta = 0; meta < 2; meta++) {
		plan.flags = meta ? RASHPA_PLAN_META : 0;
		s = both(&plan, &p);
		for (uint32_t frame = 0; frame < 8; frame++) {
			if (frame % 4 == 0)
				CHECK(rashpa_stream_slot(p, &st, 0) == 1, "%s", rashpa_reason());
			image = (struct rashpa_image) {
				.frame = frame, .role = frame == 5 ? 7 : 0,
			};
			if (meta)
				ANSWERED(rashpa_stack_describe(&st, 0, frame % 4, &image), 0, NULL);
			if (frame % 4 == 3)
				ANSWERED(rashpa_stream_publish(p, &st), 0, NULL);
		}
		for (uint32_t frame = 0; frame < 8; frame++) {
			if (frame % 4 == 0)
				CHECK(next(s, &st) == 1 && st.flags == RASHPA_STACK_ROLES,
				      "flags %u: %s", st.flags, rashpa_reason());
			CHECK(!rashpa_stack_image(&st, frame % 4, &image) &&
			      image.role == wanted[meta][frame],
			      "image %u, metadata %d: role %u", frame, meta, image.role);
			if (frame % 4 == 3)
				rashpa_stream_release(s, &st);
		}
		rashpa_stream_close(s);
		rashpa_stream_close(p);
	}
}

TEST(shapes, "images of any size and type")
{
	static const struct {
		uint32_t width, height, pixel, bunch, bytes;
	} shapes[] = {
		{ 1, 1, RASHPA_PIXEL_U8, 1000, 1 }, { 3, 5, RASHPA_PIXEL_F64, 2, 8 },
		{ 515, 514, RASHPA_PIXEL_I32, 1, 4 }, { 100000, 1, RASHPA_PIXEL_F32, 1, 4 },
	};

	for (unsigned int i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct rashpa_stream_process process = {
			.width = shapes[i].width, .height = shapes[i].height,
		};
		struct rashpa_stream_plan plan = {
			.header = { .width = shapes[i].width, .height = shapes[i].height,
				    .pixel = shapes[i].pixel, .bunch = shapes[i].bunch,
				    .images = 2 * shapes[i].bunch - 1 },
			.process = &process, .processes = 1,
		};
		struct rashpa_stream *p, *s;
		struct rashpa_stack st;

		if (!CHECK(!rashpa_stream_create(NAME, &plan, &p) &&
			   !rashpa_stream_start(p, 0, 0), "create: %s", rashpa_reason()))
			continue;
		s = open_as(0);
		for (uint32_t n = 0; shapes[i].bunch > 1 || !n; n++) {
			int got = rashpa_stream_slot(p, &st, 0);

			if (got != 1)
				break;
			memset(st.data, n + 1, (st.images - 1) * st.image_stride +
			       (size_t)st.width * st.height * st.pixel_bytes);
			ANSWERED(rashpa_stream_publish(p, &st), 0, NULL);
			CHECK(next(s, &st) == 1 && st.pixel_bytes == shapes[i].bytes &&
			      st.images == shapes[i].bunch - n &&
			      st.line_stride == shapes[i].width * shapes[i].bytes &&
			      *((char *)st.data + (st.images - 1) * st.image_stride) ==
			      (char)(n + 1), "shape %u stack %u: %u images", i, n, st.images);
			rashpa_stream_release(s, &st);
		}
		rashpa_stream_end(p, NULL);
		CHECK(!next(s, &st), "it does not end");
		rashpa_stream_close(s);
		rashpa_stream_close(p);
	}
}

TEST(unfilled, "pixels that no DTP fills are cleared, and show no earlier stream")
{
	struct rashpa_stream_process upper = { .width = 64, .height = 31 };
	struct rashpa_stream_process twice[2] = { upper, { .y = 30, .width = 64, .height = 2 } };
	struct rashpa_stream_plan plan = plan_of(2, 2, RASHPA_STREAM_WAIT);
	struct rashpa_stream *p, *s;
	struct rashpa_stack st;
	char *all;
	int fd;

	fd = buffer_open(NAME, O_RDWR);
	all = map_fd(fd, LENGTH);
	memset(all, 0x77, LENGTH);
	plan.process = &upper;
	s = both(&plan, &p);
	CHECK(rashpa_stream_slot(p, &st, 0) == 1 && !rashpa_stream_publish(p, &st) &&
	      next(s, &st) == 1, "%s", rashpa_reason());
	CHECK(!*((char *)st.data + 31 * st.line_stride) && !*(char *)st.data, "old pixels");
	rashpa_stream_close(s);
	rashpa_stream_close(p);
	plan.process = twice;
	plan.processes = 2;
	CHECK(rashpa_stream_create(NAME, &plan, &p) == -EINVAL &&
	      strstr(rashpa_reason(), "same pixels"), "%s", rashpa_reason());
	unmap_fd(all, LENGTH, fd);
}

TEST(payload_elsewhere, "the payload in another memory")
{
	struct rashpa_stream_plan plan = plan_of(3, 2, RASHPA_STREAM_WAIT);
	struct rashpa_stream *p, *s;
	struct rashpa_stack st;
	unsigned int n = 0;
	char *there;
	int fd;

	close(buffer_alloc(1 << 20, OTHER));
	strcpy(plan.header.payload_name, OTHER);
	s = both(&plan, &p);
	fd = buffer_open(OTHER, O_RDONLY);
	there = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	while (rashpa_stream_slot(p, &st, 0) == 1) {
		paint(&st);
		rashpa_stream_publish(p, &st);
		CHECK(next(s, &st) == 1 && right(&st), "stack %u", n);
		CHECK(n || !memcmp(there, st.data, 4096), "it is not in " OTHER);
		n++;
		rashpa_stream_release(s, &st);
	}
	CHECK(n == 3, "%u stacks", n);
	unmap_fd(there, 4096, fd);
	rashpa_stream_close(s);
	rashpa_stream_close(p);
	ANSWERED(buffer_remove(OTHER), 0, NULL);
}

/* --- memory of a program --- */

static char folder[] = "/tmp/consumer_test.XXXXXX";

enum answer { GOOD, SILENT, NOTHING, WRONG, FILE_ONLY, TWO };

struct owner {
	enum answer answer;
	int listener, dmabuf;
};

/* Not as the library does it: an owner that cannot be believed. */
static void answer_badly(const struct owner *o)
{
	uint64_t text[2] = { RASHPA_PAYLOAD_MAGIC + (o->answer == WRONG), 1 << 20 };
	struct iovec part = { .iov_base = text, .iov_len = sizeof(text) };
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = {};
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int fds[2] = { o->dmabuf, o->dmabuf }, n = o->answer == TWO ? 2 : 1;
	int fd = accept(o->listener, NULL, NULL);

	if (o->answer == FILE_ONLY) {
		fds[0] = memfd_create("file", 0);
		CHECK(!ftruncate(fds[0], 1 << 20), "a file");
	}
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
	if (o->answer != NOTHING) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	if (o->answer == SILENT)
		pause();
	CHECK(sendmsg(fd, &message, 0) == sizeof(text), "an answer");
	close(fd);
}

static void own(void *arg)
{
	const struct owner *o = arg;
	struct pollfd pollfd = { .fd = o->listener, .events = POLLIN };

	while (poll(&pollfd, 1, -1) > 0) {
		int error = 0;

		if (o->answer == GOOD)
			error = rashpa_payload_hand(o->listener, o->dmabuf);
		else
			answer_badly(o);
		/* a client that only checks for an owner does not wait for the memory */
		CHECK(!error || error == -EPIPE, "%s", rashpa_reason());
	}
}

TEST(payload_of_program, "the payload in memory of a program")
{
	struct rashpa_stream_plan plan = plan_of(3, 2, RASHPA_STREAM_WAIT);
	struct owner owner = { .listener = rashpa_payload_listen(OTHER) };
	struct rashpa_stream *p, *s;
	struct rashpa_stack st;
	unsigned int n = 0;
	char *there;
	pid_t pid;

	owner.dmabuf = buffer_alloc(1 << 20, NULL);
	REQUIRE(owner.listener >= 0, "listen: %s", rashpa_reason());
	CHECK(rashpa_payload_hand(owner.listener, owner.dmabuf) == -EAGAIN, "nobody asked");
	CHECK(rashpa_payload_hand(owner.listener, owner.listener) == -EPROTO, "a socket");
	strcpy(plan.header.payload_name, OTHER);
	pid = tap_fork_start(own, &owner);
	CHECK(rashpa_payload_listen(OTHER) == -EADDRINUSE, "two owners of one name");
	close(owner.listener);
	s = both(&plan, &p);
	CHECK(rashpa_stream_payload(s) == -ENODATA, "memory before there is a stream");
	there = map_fd(owner.dmabuf, 1 << 20);
	while (rashpa_stream_slot(p, &st, 0) == 1) {
		paint(&st);
		rashpa_stream_publish(p, &st);
		CHECK(next(s, &st) == 1 && right(&st), "stack %u: %s", n, rashpa_reason());
		CHECK(!memcmp(there + st.slot * rashpa_stream_get_header(s)->slot_stride, st.data,
			      4096),
		      "it is not in the memory of the program");
		n++;
		rashpa_stream_release(s, &st);
	}
	CHECK(n == 3, "%u stacks", n);
	CHECK(rashpa_stream_payload(s) >= 0 && rashpa_stream_payload(p) >= 0, "no dma-buf: %s",
	      rashpa_reason());
	munmap(there, 1 << 20);
	rashpa_stream_close(s);
	rashpa_stream_close(p);
	tap_fork_kill(pid);
	/* the owner has gone, its socket is there */
	CHECK(rashpa_stream_create(NAME, &plan, &p) == -ECONNREFUSED, "a dead owner: %s",
	      rashpa_reason());
	close(owner.dmabuf);
}

TEST(bad_owners, "owners of memory that cannot be believed")
{
	static const int errors[] = { [SILENT] = -ETIMEDOUT, [NOTHING] = -EPROTO,
				      [WRONG] = -EPROTO, [FILE_ONLY] = -EPROTO, [TWO] = -EPROTO };
	struct rashpa_stream_plan plan = plan_of(3, 2, RASHPA_STREAM_WAIT);
	struct owner owner = {};
	struct rashpa_stream *p;
	unsigned int before;
	pid_t pid;
	int error;

	strcpy(plan.header.payload_name, OTHER);
	owner.dmabuf = buffer_alloc(1 << 20, NULL);
	for (enum answer a = SILENT; a <= TWO; a++) {
		owner.answer = a;
		owner.listener = rashpa_payload_listen(OTHER);
		REQUIRE(owner.listener >= 0, "in the place of a dead one: %s", rashpa_reason());
		pid = tap_fork_start(own, &owner);
		close(owner.listener);
		before = fds_open();
		error = rashpa_stream_create(NAME, &plan, &p);
		CHECK(error == errors[a], "owner %d: %d: %s", a, error, rashpa_reason());
		CHECK(fds_open() == before, "owner %d: %u files more", a, fds_open() - before);
		tap_fork_kill(pid);
	}
	CHECK(rashpa_payload_listen("../x") == -EPROTO, "a name that is a path");
	close(owner.dmabuf);
}

TEST(event_loop, "an event loop")
{
	struct rashpa_stream_plan plan = plan_of(30, 4, RASHPA_STREAM_WAIT);
	struct rashpa_stream *s;
	struct rashpa_stack st;
	struct pollfd pollfd = { .events = POLLIN };
	unsigned int n = 0, wakes = 0;
	pid_t pid;
	int got = -ETIMEDOUT;

	s = open_as(0);
	pid = tap_fork_start(produce, &plan);
	pollfd.fd = rashpa_stream_fd(s);
	while (got == -ETIMEDOUT && poll(&pollfd, 1, 10000) > 0) {
		wakes++;
		while ((got = rashpa_stream_next(s, &st, 0)) > 0) {
			CHECK(right(&st), "stack %u", n);
			n++;
			rashpa_stream_release(s, &st);
		}
	}
	CHECK(!got && n == 30, "%u stacks in %u wakes, then %d: %s", n, wakes, got,
	      rashpa_reason());
	tap_fork_end(pid);
	rashpa_stream_close(s);
}

TEST(event_loop_dead, "an event loop notices that the producer was killed")
{
	struct rashpa_stream_plan plan = plan_of(100, 8, RASHPA_STREAM_WAIT);
	struct pollfd pollfd = { .events = POLLIN };
	struct rashpa_stream *s = open_as(0);
	struct rashpa_stack st;
	unsigned int n = 0;
	pid_t pid;
	int got = -ETIMEDOUT;

	set(&talk->allowed, 5);
	pid = tap_fork_start(produce, &plan);
	pollfd.fd = rashpa_stream_fd(s);
	while (got == -ETIMEDOUT && poll(&pollfd, 1, 10000 * tap_slow()) > 0) {
		while ((got = rashpa_stream_next(s, &st, 0)) > 0) {
			rashpa_stream_release(s, &st);
			if (++n == 5)
				tap_fork_kill(pid);
		}
	}
	CHECK(got == -EOWNERDEAD && n == 5, "%u stacks, then %d: %s", n, got, rashpa_reason());
	rashpa_stream_close(s);
}

static void *wake(void *stream)
{
	rashpa_stream_wake(stream);
	return NULL;
}

TEST(woken, "a thread ends the wait of another one")
{
	struct rashpa_stream *s = open_as(0);
	struct rashpa_stack st;
	pthread_t other;

	REQUIRE(s && !pthread_create(&other, NULL, wake, s), "no thread");
	CHECK(rashpa_stream_next(s, &st, -1) == -EINTR, "not woken: %s", rashpa_reason());
	pthread_join(other, NULL);
	rashpa_stream_close(s);
}

void setup_all(void)
{
	setenv("RASHPA_RUN", mkdtemp(folder), 1);
}

void teardown_all(void)
{
	rmdir(folder);
}

void setup(void)
{
	talk = mmap(NULL, sizeof(*talk), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (talk == MAP_FAILED)
		tap_bail("no memory");
	set(&talk->allowed, UINT32_MAX);
	close(buffer_alloc(LENGTH, NAME));
}

void teardown(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", folder, OTHER);
	unlink(path);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}
