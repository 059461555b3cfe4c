// SPDX-License-Identifier: GPL-2.0-only
/* Groups: one event when all members have got equally far, who is late, who laps. */
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../../tools/lib/rashpa-fpga.h"
#include "common.h"
#include "rig.h"

#define WORDS	5
#define FIRST	100

static struct fpga f, f2;
static bool have_two;

/* Words that the test writes itself, each a member of one group. */
struct bench {
	struct rashpa_alloc lock;
	char *p;
	int ch;
	uint32_t member[WORDS], group;
	struct rashpa_consumer *consumer;
};

static int group_make(int ch, const uint32_t *ids, uint32_t n, uint32_t slots, uint64_t first,
		      uint64_t lag)
{
	struct rashpa_member m[RASHPA_MEMBERS_MAX + 1] = {};
	struct rashpa_group_make g = { HEAD(g), .members = (uintptr_t)m, .n_members = n,
				  .slots = slots, .first = first, .lag = lag };
	uint32_t i;
	int err;

	for (i = 0; i < n && i < ARRAY_SIZE(m); i++)
		m[i].source = ids[i];
	err = call(ch, RASHPA_IOC_GROUP_MAKE, &g);
	return err ? err : (int)g.out_id;
}

static int add_word(struct bench *b, uint32_t i, uint32_t flags)
{
	struct rashpa_source_add a = {
		.head = { .size = sizeof(a), .flags = flags | RASHPA_SOURCE_POLL },
		.kind = RASHPA_SOURCE_LOCK, .memory = b->lock.out_fd,
		.offset = i * RASHPA_LOCK_SLOT, .condition = RASHPA_CONDITION_CHANGED,
		.bits = 64, .period_us = RASHPA_PERIOD_MIN, .budget = 20,
	};
	int err = call(b->ch, RASHPA_IOC_SOURCE_ADD, &a);

	return err ? err : (int)a.out_id;
}

static void bench_down(struct bench *b)
{
	if (b->p)
		munmap(b->p, PAGE);
	if (b->consumer)
		munmap(b->consumer, PAGE);
	if (b->lock.out_fd >= 0)
		close(b->lock.out_fd);
	if (b->ch >= 0)
		close(b->ch);
}

static bool bench_up(struct bench *b, uint32_t slots, uint64_t lag)
{
	struct rashpa_channel_make e = { HEAD(e) };
	uint32_t i;
	int id;

	memset(b, 0, sizeof(*b));
	b->lock.out_fd = -1;
	b->ch = -1;
	if (!ANSWERED(call(f.fd, RASHPA_IOC_CHANNEL_MAKE, &e), 0, NULL) ||
	    !ANSWERED(lock_alloc(f.fd, WORDS, NULL, &b->lock), 0, NULL))
		return false;
	b->ch = e.out_fd;
	fcntl(b->ch, F_SETFL, O_NONBLOCK);
	b->consumer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, b->ch,
			   (off_t)e.out_consumer);
	b->p = map_fd(b->lock.out_fd, PAGE);
	if (!CHECK(b->consumer != MAP_FAILED && b->p, "mmap: %s", strerror(errno)))
		return false;
	for (i = 0; i < WORDS; i++) {
		*(uint64_t *)(b->p + i * RASHPA_LOCK_SLOT) = FIRST;
		id = add_word(b, i, RASHPA_SOURCE_QUIET);
		if (!CHECK(id > 0, "%s", reason))
			return false;
		b->member[i] = (uint32_t)id;
	}
	id = group_make(b->ch, b->member, WORDS, slots, FIRST, lag);
	b->group = (uint32_t)id;
	return CHECK(id > 0, "GROUP: %s", reason);
}

static uint64_t looks(struct bench *b, uint32_t i)
{
	struct rashpa_source_info info = { HEAD(info), .id = b->member[i] };

	ANSWERED(call(b->ch, RASHPA_IOC_SOURCE_INFO, &info), 0, NULL);
	return info.out_looks;
}

/* Write a word, and wait until it has been looked at for sure. */
static void put(struct bench *b, uint32_t i, uint64_t value)
{
	uint64_t end = end_of_wait(10000), before;

	__atomic_store_n((uint64_t *)(b->p + i * RASHPA_LOCK_SLOT), value, __ATOMIC_RELEASE);
	before = looks(b, i);
	while (looks(b, i) < before + 2 && now_ns() < end)
		;
}

static void put_all(struct bench *b, uint64_t value)
{
	uint32_t i;

	for (i = 0; i < WORDS; i++)
		put(b, i, value);
}

static void expect(struct bench *b, uint32_t source, uint32_t kind, uint64_t sequence,
		   uint64_t value)
{
	struct rashpa_event e = {};

	if (!CHECK(read(b->ch, &e, sizeof(e)) == sizeof(e), "no event of kind %u, value %llu",
		   kind, (unsigned long long)value))
		return;
	CHECK(e.source == source && e.kind == kind && e.sequence == sequence &&
	      e.value == value && e.time_ns,
	      "source %u kind %u sequence %llu value %llu, expected %u %u %llu %llu", e.source,
	      e.kind, (unsigned long long)e.sequence, (unsigned long long)e.value, source, kind,
	      (unsigned long long)sequence, (unsigned long long)value);
}

static void nothing(struct bench *b)
{
	struct rashpa_event e;

	CHECK(read(b->ch, &e, sizeof(e)) < 0, "an event without a reason: kind %u, value %llu",
	      e.kind, (unsigned long long)e.value);
}

static void info_of(struct bench *b, struct rashpa_group_info *info,
		    struct rashpa_member_info *m)
{
	*info = (struct rashpa_group_info) { HEAD(*info), .id = b->group,
					     .members = (uintptr_t)m, .n_members = WORDS };
	ANSWERED(call(b->ch, RASHPA_IOC_GROUP_INFO, info), 0, NULL);
}

/* ------------------------------------------------------------- words --- */

static void test_all(void)
{
	struct rashpa_member_info m[WORDS];
	struct rashpa_group_info info;
	struct bench b;
	uint32_t i;

	if (!bench_up(&b, 0, 0))
		goto out;
	for (i = 0; i < WORDS - 1; i++)
		put(&b, i, FIRST + 1);
	nothing(&b);	/* one is missing */
	info_of(&b, &info, m);
	CHECK(info.out_position == FIRST && info.out_members == WORDS && !info.out_events,
	      "position %llu", (unsigned long long)info.out_position);
	CHECK(m[0].position == FIRST + 1 && !m[0].lag && m[WORDS - 1].lag == 1 &&
	      m[WORDS - 1].position == FIRST && m[0].source == b.member[0] && m[0].time_ns &&
	      !m[WORDS - 1].time_ns, "member 0 at %llu, the last at %llu, %llu behind",
	      (unsigned long long)m[0].position, (unsigned long long)m[WORDS - 1].position,
	      (unsigned long long)m[WORDS - 1].lag);
	put(&b, WORDS - 1, FIRST + 1);
	expect(&b, b.group, RASHPA_SOURCE_GROUP, 1, FIRST + 1);
	nothing(&b);
	/* some are faster than others: the slowest counts, and stacks are told together */
	put(&b, 0, FIRST + 9);
	put(&b, 1, FIRST + 3);
	put(&b, 2, FIRST + 4);
	put(&b, 3, FIRST + 5);
	nothing(&b);
	put(&b, 4, FIRST + 7);
	expect(&b, b.group, RASHPA_SOURCE_GROUP, 2, FIRST + 3);
	put(&b, 1, FIRST + 9);
	expect(&b, b.group, RASHPA_SOURCE_GROUP, 3, FIRST + 4);
	nothing(&b);
out:
	bench_down(&b);
}

/* Words that go back, or come twice, move nothing. */
static void test_repeats(void)
{
	struct rashpa_member_info m[WORDS];
	struct rashpa_group_info info;
	struct bench b;

	if (!bench_up(&b, 0, 0))
		goto out;
	put_all(&b, FIRST + 2);
	expect(&b, b.group, RASHPA_SOURCE_GROUP, 1, FIRST + 2);
	put(&b, 3, FIRST + 1);	/* the record of a stack that was told already */
	put(&b, 3, FIRST + 2);
	put(&b, 3, FIRST + 2);	/* not even seen: the same word */
	nothing(&b);
	info_of(&b, &info, m);
	CHECK(m[3].repeats == 2 && m[3].position == FIRST + 2 && m[3].skips == 1 &&
	      !m[2].repeats, "%llu repeats, %llu skips", (unsigned long long)m[3].repeats,
	      (unsigned long long)m[3].skips);
	put_all(&b, FIRST + 3);
	expect(&b, b.group, RASHPA_SOURCE_GROUP, 2, FIRST + 3);
out:
	bench_down(&b);
}

/* A group that is made while its members are on their way begins where they are. */
static void test_late_group(void)
{
	struct bench b;
	int id;

	if (!bench_up(&b, 0, 0))
		goto out;
	put_all(&b, FIRST + 5);
	put(&b, 2, FIRST + 4);
	expect(&b, b.group, RASHPA_SOURCE_GROUP, 1, FIRST + 5);
	id = group_make(b.ch, b.member, WORDS, 0, FIRST + 3, 0);
	CHECK(id > 0, "%s", reason);
	expect(&b, (uint32_t)id, RASHPA_SOURCE_GROUP, 1, FIRST + 4);
	nothing(&b);
	put(&b, 2, FIRST + 5);
	expect(&b, (uint32_t)id, RASHPA_SOURCE_GROUP, 2, FIRST + 5);
	/* one that begins ahead of its members waits for them */
	id = group_make(b.ch, b.member, 2, 0, FIRST + 6, 0);
	nothing(&b);
	put(&b, 0, FIRST + 7);
	put(&b, 1, FIRST + 7);
	expect(&b, (uint32_t)id, RASHPA_SOURCE_GROUP, 1, FIRST + 7);
out:
	bench_down(&b);
}

/* And tells at once who is late already, and who has lapped a consumer that begins at first. */
static void test_late_told(void)
{
	struct bench b;
	uint32_t i;
	int id;

	if (!bench_up(&b, 0, 0))
		goto out;
	for (i = 0; i < WORDS - 1; i++)
		put(&b, i, FIRST + 5);
	nothing(&b);
	CHECK(group_make(b.ch, b.member, WORDS, 0, FIRST, 6) > 0, "%s", reason);
	nothing(&b);
	CHECK(group_make(b.ch, b.member, WORDS, 5, FIRST, 3) > 0, "%s", reason);
	expect(&b, b.member[WORDS - 1], RASHPA_SOURCE_LAG, 5, FIRST);
	nothing(&b);
	id = group_make(b.ch, b.member, 3, 2, FIRST, 0);
	CHECK(id > 0, "%s", reason);
	for (i = 0; i < 3; i++)
		expect(&b, b.member[i], RASHPA_SOURCE_OVERRUN, 3, FIRST + 5);
	expect(&b, (uint32_t)id, RASHPA_SOURCE_GROUP, 1, FIRST + 5);
	nothing(&b);
out:
	bench_down(&b);
}

/* Where a word with a condition is does not depend on when its group was made. */
static void test_late_condition(void)
{
	struct rashpa_source_del del = { HEAD(del) };
	struct rashpa_source_add a = {
		.head = { .size = sizeof(a), .flags = RASHPA_SOURCE_POLL | RASHPA_SOURCE_QUIET },
		.kind = RASHPA_SOURCE_LOCK, .offset = 4 * RASHPA_LOCK_SLOT, .bits = 64,
		.condition = RASHPA_CONDITION_REACHED, .value = FIRST + 2, .step = 10,
		.period_us = RASHPA_PERIOD_MIN, .budget = 20,
	};
	struct bench b;
	int early, late;

	if (!bench_up(&b, 0, 0))
		goto out;
	/* the budget is for five: this one in the place of the last */
	del.id = b.group;
	ANSWERED(call(b.ch, RASHPA_IOC_SOURCE_DEL, &del), 0, NULL);
	del.id = b.member[4];
	ANSWERED(call(b.ch, RASHPA_IOC_SOURCE_DEL, &del), 0, NULL);
	a.memory = b.lock.out_fd;
	ANSWERED(call(b.ch, RASHPA_IOC_SOURCE_ADD, &a), 0, NULL);
	b.member[4] = a.out_id;
	early = group_make(b.ch, &a.out_id, 1, 0, FIRST, 0);
	CHECK(early > 0, "%s", reason);
	put(&b, 4, FIRST + 3);
	expect(&b, (uint32_t)early, RASHPA_SOURCE_GROUP, 1, FIRST + 3);
	put(&b, 4, FIRST + 7);	/* seen, but no event: the next one is at 12 */
	nothing(&b);
	late = group_make(b.ch, &a.out_id, 1, 0, FIRST, 0);
	expect(&b, (uint32_t)late, RASHPA_SOURCE_GROUP, 1, FIRST + 3);
	put(&b, 4, FIRST + 12);
	expect(&b, (uint32_t)early, RASHPA_SOURCE_GROUP, 2, FIRST + 12);
	expect(&b, (uint32_t)late, RASHPA_SOURCE_GROUP, 2, FIRST + 12);
	nothing(&b);
out:
	bench_down(&b);
}

static void test_lag(void)
{
	int late = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct bench b;
	uint64_t n;
	uint32_t i;

	if (!bench_up(&b, 0, 3))
		goto out;
	/* its own counts what it does, not what is said of it */
	ANSWERED(bind_eventfd(b.ch, late, b.member[0], 0, 0), 0, NULL);
	for (i = 1; i < WORDS; i++)
		put(&b, i, FIRST + 2);
	nothing(&b);
	put(&b, 1, FIRST + 3);
	expect(&b, b.member[0], RASHPA_SOURCE_LAG, 3, FIRST);
	put(&b, 1, FIRST + 4);
	nothing(&b);	/* told once */
	n = count_of(late);
	CHECK(!n, "the eventfd of a member that did nothing counts %llu", (unsigned long long)n);
	put(&b, 0, FIRST + 2);
	CHECK(count_of(late) == 1, "the eventfd of a member does not count its event");
	expect(&b, b.group, RASHPA_SOURCE_GROUP, 1, FIRST + 2);
	nothing(&b);
	put(&b, 1, FIRST + 5);	/* and once more when it is late again: all but one */
	for (i = 0; i < WORDS; i++)
		if (i != 1)
			expect(&b, b.member[i], RASHPA_SOURCE_LAG, 3, FIRST + 2);
	nothing(&b);
out:
	bench_down(&b);
	close(late);
}

static void ack(struct bench *b, uint64_t position)
{
	struct rashpa_ack a = { HEAD(a), .id = b->group, .position = position };

	ANSWERED(call(b->ch, RASHPA_IOC_ACK, &a), 0, NULL);
	CHECK(b->consumer->ack[b->group - 1] == position, "the page does not show it");
}

/* Two slots: positions up to ack + 2 are fine, each one behind is an overrun, once. */
static void test_overrun(void)
{
	struct rashpa_member_info m[WORDS];
	struct rashpa_group_info info;
	struct bench b;

	if (!bench_up(&b, 2, 0))
		goto out;
	CHECK(b.consumer->ack[b.group - 1] == FIRST, "the consumer begins elsewhere");
	put_all(&b, FIRST + 2);
	expect(&b, b.group, RASHPA_SOURCE_GROUP, 1, FIRST + 2);
	put(&b, 2, FIRST + 3);
	expect(&b, b.member[2], RASHPA_SOURCE_OVERRUN, 1, FIRST + 3);
	put(&b, 2, FIRST + 6);
	expect(&b, b.member[2], RASHPA_SOURCE_OVERRUN, 4, FIRST + 6);
	/* by a store, without a call; what has happened is not forgotten */
	__atomic_store_n(&b.consumer->ack[b.group - 1], FIRST + 2, __ATOMIC_RELEASE);
	put(&b, 2, FIRST + 7);
	expect(&b, b.member[2], RASHPA_SOURCE_OVERRUN, 5, FIRST + 7);
	ack(&b, FIRST + 7);
	put(&b, 2, FIRST + 9);
	nothing(&b);
	put(&b, 3, FIRST + 10);
	expect(&b, b.member[3], RASHPA_SOURCE_OVERRUN, 1, FIRST + 10);
	info_of(&b, &info, m);
	CHECK(info.out_overruns == 6 && m[2].overruns == 5 && m[3].overruns == 1 &&
	      info.out_ack == FIRST + 7, "%llu overruns", (unsigned long long)info.out_overruns);
	/* nonsense harms nobody else */
	ack(&b, UINT64_MAX);
	put_all(&b, FIRST + 50);
	expect(&b, b.group, RASHPA_SOURCE_GROUP, 2, FIRST + 50);
	nothing(&b);
out:
	bench_down(&b);
}

static void test_refused(void)
{
	uint32_t twice[2], none = 60, i;
	struct rashpa_source_del del = { HEAD(del) };
	struct rashpa_group_info info = { HEAD(info) };
	struct rashpa_group_make g = { HEAD(g), .n_members = 1 };
	struct rashpa_ack a = { HEAD(a) };
	struct bench b;

	if (!bench_up(&b, 0, 0))
		goto out;
	twice[0] = twice[1] = b.member[1];
	ANSWERED(group_make(b.ch, b.member, 0, 0, 0, 0), EINVAL, "0 members");
	ANSWERED(group_make(b.ch, b.member, 33, 0, 0, 0), EINVAL, "33 members");
	ANSWERED(group_make(b.ch, b.member, UINT_MAX, 0, 0, 0), EINVAL, "members");
	ANSWERED(group_make(b.ch, twice, 2, 0, 0, 0), EEXIST, "twice");
	ANSWERED(group_make(b.ch, &none, 1, 0, 0, 0), ENOENT, "source 60");
	ANSWERED(group_make(b.ch, &b.group, 1, 0, 0, 0), EINVAL, "is a group");
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_MAKE, &g), EFAULT, NULL);
	a.id = b.member[0];
	ANSWERED(call(b.ch, RASHPA_IOC_ACK, &a), ENOENT, "group");
	info.id = b.member[0];
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_INFO, &info), ENOENT, "group");
	info.id = b.group;
	info.n_members = 1;
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_INFO, &info), EINVAL, "address 0");
	info.members = PAGE;
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_INFO, &info), EFAULT, NULL);
	info.members = 0;
	info.n_members = 0;
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_INFO, &info), 0, NULL);
	CHECK(info.out_members == WORDS, "%u members", info.out_members);
	del.id = b.member[0];
	ANSWERED(call(b.ch, RASHPA_IOC_SOURCE_DEL, &del), EBUSY, "member of group");
	/* four groups a source */
	for (i = 0; i < 3; i++)
		CHECK(group_make(b.ch, b.member, 2, 0, 0, 0) > 0, "%s", reason);
	ANSWERED(group_make(b.ch, b.member, 1, 0, 0, 0), ENOSPC, "4 groups");
	CHECK(group_make(b.ch, b.member + 2, 1, 0, 0, 0) > 0, "%s", reason);
	del.id = b.group;
	ANSWERED(call(b.ch, RASHPA_IOC_SOURCE_DEL, &del), 0, NULL);
	ANSWERED(call(b.ch, RASHPA_IOC_SOURCE_DEL, &del), ENOENT, "source");
	CHECK(group_make(b.ch, b.member, 1, 0, 0, 0) > 0, "%s", reason);
	del.id = b.member[4];
	ANSWERED(call(b.ch, RASHPA_IOC_SOURCE_DEL, &del), 0, NULL);
out:
	bench_down(&b);
}

/* ---------------------------------------------------------- hardware --- */

#define MODE	(RFPGA_MODE_MSIX | RFPGA_MODE_LOCK)
#define STACKS	60

/* One DTP, with its lock record in slot @slot. */
static void dtp_start(const struct rig *r, unsigned int n, uint32_t entries, uint32_t slot)
{
	char *d = rig_dtp(r, n);

	rig_configure(r, n, MODE, 0, r->made.out_segments, STACKS);
	set64(d, RFPGA_DTP_LOCK_OFFSET, (uint64_t)slot * RASHPA_LOCK_SLOT);
	set32(d, RFPGA_DTP_LOCK_FIRST, r->made.out_segments);
	set32(d, RFPGA_DTP_LOCK_COUNT, entries);
	rig_start(r, n);
}

static uint64_t least(const char *p)
{
	uint64_t v, n = UINT64_MAX;
	int i;

	for (i = 0; i < WORDS; i++) {
		v = __atomic_load_n((const uint64_t *)(p + i * RASHPA_LOCK_SLOT), __ATOMIC_ACQUIRE);
		n = v < n ? v : n;
	}
	return n;
}

static int add_dtp(int ch, int memory_fd, uint32_t slot, int other)
{
	struct rashpa_source_add a = {
		.head = { .size = sizeof(a), .flags = RASHPA_SOURCE_QUIET },
		.kind = RASHPA_SOURCE_LOCK, .index = 1, .memory = memory_fd,
		.offset = slot * RASHPA_LOCK_SLOT, .condition = RASHPA_CONDITION_CHANGED,
		.bits = 64,
	};
	int err;

	if (other >= 0) {
		a.head.flags |= RASHPA_SOURCE_OF;
		a.device = other;
	}
	err = call(ch, RASHPA_IOC_SOURCE_ADD, &a);
	return err ? err : (int)a.out_id;
}

/* Give credit to all DTPs: three of one function, two of the other. */
static void credit(char *const bells[2], uint64_t value)
{
	int i;

	for (i = 0; i < WORDS; i++)
		set32(bells[i < 3 ? 0 : 1] + (i < 3 ? i : i - 3) * PAGE, 0, (uint32_t)value);
}

/* Each event is true, none is missing at the end, and none comes for a lapped consumer. */
static void follow(int ch, const char *words, char *const bells[2], uint32_t group)
{
	struct rashpa_ack a = { HEAD(a), .id = group };
	uint64_t last = 0;
	struct rashpa_event e;

	while (tap_ok() && last < STACKS) {
		if (!CHECK(wait_fd(ch, POLLIN, 20000), "no event after %llu; the words are at %llu",
			   (unsigned long long)last, (unsigned long long)least(words)))
			return;
		if (read(ch, &e, sizeof(e)) != sizeof(e) || e.kind == RASHPA_SOURCE_VECTOR)
			continue;
		CHECK(e.kind == RASHPA_SOURCE_GROUP && e.source == group, "kind %u of source %u",
		      e.kind, e.source);
		CHECK(e.value > last && e.value <= least(words), "event %llu after %llu, words at %llu",
		      (unsigned long long)e.value, (unsigned long long)last,
		      (unsigned long long)least(words));
		last = e.value;
		/* the acknowledgement before the credit: the function must not be ahead of it */
		a.position = last;
		ANSWERED(call(ch, RASHPA_IOC_ACK, &a), 0, NULL);
		credit(bells, last);
	}
}

static char *bells_of(const struct fpga *fpga)
{
	int win = fpga_window(fpga, RFPGA_BAR_DOORBELL, 0, 16 * PAGE, 0);
	char *p = win >= 0 ? map_fd(win, 16 * PAGE) : NULL;

	CHECK(p, "doorbells: %s", reason);
	if (win >= 0)
		close(win);
	return p;
}

/* Both functions, with what is told to them first. */
static void two_functions(const char *const told[2])
{
	struct rashpa_alloc lock = { .out_fd = -1 };
	uint32_t member[WORDS], entries[2] = {}, i;
	char *bells[2] = { NULL, NULL }, *words = NULL;
	int map[2] = { -1, -1 }, group;
	struct rig r, r2;
	struct rashpa_map_make m;

	SKIP_IF(!have_two, "needs two software FPGAs (lab run --fpga 2)");
	for (i = 0; i < 2; i++)
		SKIP_IF(told[i] && !rig_tell(i, told[i]),
			"the FPGA cannot be told to misbehave");
	memset(&r2, 0, sizeof(r2));
	r2.window = r2.channel = r2.buffer = r2.map = -1;
	if (!rig_up(&r, &f, -1, 0, 0) || !rig_up(&r2, &f2, -1, 0, 0) ||
	    !ANSWERED(lock_alloc(f.fd, WORDS, NULL, &lock), 0, NULL))
		goto out;
	words = map_fd(lock.out_fd, PAGE);
	bells[0] = bells_of(&f);
	bells[1] = bells_of(&f2);
	map[0] = fpga_map(&f, lock.out_fd, RASHPA_BIDIRECTIONAL, &m);
	map[1] = fpga_map(&f2, lock.out_fd, RASHPA_BIDIRECTIONAL, &m);
	if (!CHECK(map[0] >= 0 && map[1] >= 0 && words && bells[0] && bells[1], "%s", reason))
		goto out;
	ANSWERED(fpga_program(map[0], r.window, r.made.out_segments, &entries[0]), 0, NULL);
	ANSWERED(fpga_program(map[1], r2.window, r2.made.out_segments, &entries[1]), 0, NULL);
	for (i = 0; i < WORDS; i++)
		member[i] = (uint32_t)add_dtp(r.channel, lock.out_fd, i, i < 3 ? -1 : f2.fd);
	group = group_make(r.channel, member, WORDS, IMAGES, 0, 0);
	CHECK(group > 0, "%s", reason);
	for (i = 0; i < WORDS && tap_ok(); i++)
		dtp_start(i < 3 ? &r : &r2, i < 3 ? i : i - 3, entries[i < 3 ? 0 : 1], i);
	follow(r.channel, words, bells, (uint32_t)group);
out:
	for (i = 0; i < 2; i++) {
		if (map[i] >= 0)
			close(map[i]);
		if (bells[i])
			munmap(bells[i], 16 * PAGE);
	}
	if (words)
		munmap(words, PAGE);
	if (lock.out_fd >= 0)
		close(lock.out_fd);
	rig_down(&r2);
	rig_down(&r);
}

static void test_two_functions(void)
{
	two_functions((const char *const [2]) { NULL, NULL });
}

/* Records and interrupts that come twice, late or never: still every event is true. */
static const struct {
	const char *name, *told[2];
} wrong[] = {
	{ "lock records come twice", { "twice lock dtp 1", "twice lock" } },
	{ "interrupts come twice", { "twice interrupt", "twice interrupt dtp 0" } },
	{ "every seventh lock record is missing", { "lose lock 7 dtp 2", NULL } },
	{ "every seventh interrupt is missing", { NULL, "lose interrupt 7" } },
	{ "records come twice, the second one late",
	  { "twice lock 2000 dtp 0", "twice lock 1000" } },
};

static void test_wrong(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong) && tap_ok(); i++) {
		tap_note("%s", wrong[i].name);
		two_functions(wrong[i].told);
		rig_tell(0, "honest");
		rig_tell(1, "honest");
	}
}

int main(void)
{
	if (!rig_open("group", &f))
		return tap_exit();
	have_two = rig_open_nth(&f2, 1);
	tap_run("one event when all have got there, and the slowest counts", test_all);
	tap_run("what comes twice or goes back moves nothing", test_repeats);
	tap_run("a group that is made late begins where its members are", test_late_group);
	tap_run("and tells at once who is late, and who has lapped", test_late_told);
	tap_run("a word with a condition is where its last event was", test_late_condition);
	tap_run("who is late is told once", test_lag);
	tap_run("who laps the consumer is told and counted exactly", test_overrun);
	tap_run("what is no group is refused; members stay while it is there", test_refused);
	tap_run("five members of two functions: every event is true", test_two_functions);
	tap_run("members that come late, twice or never: every event is true", test_wrong);
	if (have_two)
		fpga_close(&f2);
	fpga_close(&f);
	return tap_exit();
}
