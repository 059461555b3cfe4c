// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug seconds=8 */
/* test: needs=intx iommu=on seconds=1 */
/* Groups: one event when all members have reached a position; full slots, overruns. */
#include <sys/eventfd.h>

#include "rig.h"

#define WORDS	5
#define FIRST	100

static struct fpga f, f2;
static bool have_one, have_two;

/* Words that the test writes itself, each a member of one group. No function is needed. */
struct bench {
	int fd, ch;
	char *p;
	u64 consumer_bytes;
	uint32_t member[WORDS], group;
	struct rashpa_consumer *consumer;
};

static int group_full(int ch, const uint32_t *ids, uint32_t n, u64 slots, u64 full, u64 first)
{
	struct rashpa_member m[WORDS] = {};
	struct rashpa_group_make g = { HEAD(g), .members = (uintptr_t)m, .n_members = n,
				       .member_size = sizeof(m[0]), .slots = slots,
				       .full = full, .first = first };
	uint32_t i;
	int err;

	for (i = 0; i < n; i++)
		m[i].source = ids[i];
	err = call(ch, RASHPA_IOC_GROUP_MAKE, &g);
	return err ? err : (int)g.out_id;
}

static int group_make(int ch, const uint32_t *ids, uint32_t n, u64 slots, u64 first)
{
	return group_full(ch, ids, n, slots, RASHPA_FULL_NEVER, first);
}

static int add_word(struct bench *b, uint32_t i)
{
	struct rashpa_source_add a = word_source(b->fd, RASHPA_SOURCE_QUIET | RASHPA_SOURCE_LOOK);

	a.offset = i * RASHPA_LOCK_SLOT;
	return source_make(b->ch, &a);
}

static void store(struct bench *b, uint32_t i, u64 value)
{
	__atomic_store_n((u64 *)(b->p + (u64)i * RASHPA_LOCK_SLOT), value, __ATOMIC_RELEASE);
}

static void bench_down(struct bench *b)
{
	unmap_fd(b->p, PAGE, b->fd);
	unmap_fd(b->consumer, b->consumer_bytes, b->ch);
}

/* Words at FIRST, and a channel with a group of all of them; the test ends where it fails. */
static void bench_up(struct bench *b, u64 slots, u64 full)
{
	struct rashpa_channel_make e = { HEAD(e), .depth = 65536 };
	uint32_t i;
	int id;

	ANSWERED(call(memory, RASHPA_IOC_CHANNEL_MAKE, &e), 0, NULL);
	b->ch = e.out_fd;
	fcntl(b->ch, F_SETFL, O_NONBLOCK);
	b->consumer_bytes = e.out_consumer_size;
	b->consumer = mmap(NULL, e.out_consumer_size, PROT_READ | PROT_WRITE, MAP_SHARED, b->ch,
			   (off_t)e.out_consumer);
	b->fd = buffer_alloc(PAGE, NULL);
	b->p = map_fd(b->fd, PAGE);
	for (i = 0; i < WORDS; i++) {
		store(b, i, FIRST);
		b->member[i] = (uint32_t)add_word(b, i);
	}
	id = group_full(b->ch, b->member, WORDS, slots, full, FIRST);
	b->group = (uint32_t)id;
	if (id < 0 || b->consumer == MAP_FAILED)
		tap_bail("GROUP: %s", reason);
}

static void put(struct bench *b, uint32_t i, u64 value)
{
	store(b, i, value);
	CHECK(look_at(b->fd) >= 0, "LOOK: %s", reason);
}

static void put_all(struct bench *b, u64 value)
{
	uint32_t i;

	for (i = 0; i < WORDS; i++)
		put(b, i, value);
}

static void expect(struct bench *b, uint32_t source, uint32_t kind, u64 sequence, u64 value)
{
	struct rashpa_event e = {};

	REQUIRE(read(b->ch, &e, sizeof(e)) == sizeof(e), "no event of kind %u, value %llu",
		kind, value);
	CHECK(e.source == source && e.kind == kind && e.sequence == sequence && e.value == value &&
	      e.time_ns, "source %u kind %u sequence %llu value %llu, expected %u %u %llu %llu",
	      e.source, e.kind, e.sequence, e.value, source, kind, sequence, value);
}

static void nothing(struct bench *b)
{
	struct rashpa_event e;

	CHECK(read(b->ch, &e, sizeof(e)) < 0, "an event without a reason: kind %u, value %llu",
	      e.kind, e.value);
}

static void info_of(struct bench *b, struct rashpa_group_info *info, struct rashpa_member_info *m)
{
	*info = (struct rashpa_group_info) { HEAD(*info), .id = b->group,
					     .members = (uintptr_t)m, .n_members = WORDS,
					     .member_size = sizeof(*m) };
	ANSWERED(call(b->ch, RASHPA_IOC_GROUP_INFO, info), 0, NULL);
}

/* ------------------------------------------------------------- words --- */

TEST(all, "one event when all members have reached a position: the slowest counts")
{
	struct rashpa_member_info m[WORDS];
	struct rashpa_group_info info;
	struct bench b;
	uint32_t i;

	bench_up(&b, 0, RASHPA_FULL_NEVER);
	for (i = 0; i < WORDS - 1; i++)
		put(&b, i, FIRST + 1);
	nothing(&b);	/* one is missing */
	info_of(&b, &info, m);
	CHECK(info.out_position == FIRST && info.out_members == WORDS && !info.out_events,
	      "position %llu", info.out_position);
	CHECK(m[0].position == FIRST + 1 && m[WORDS - 1].position == FIRST &&
	      m[0].source == b.member[0] && m[0].time_ns && !m[WORDS - 1].time_ns,
	      "member 0 at %llu, the last at %llu", m[0].position, m[WORDS - 1].position);
	put(&b, WORDS - 1, FIRST + 1);
	expect(&b, b.group, RASHPA_SOURCE_GROUP, 1, FIRST + 1);
	nothing(&b);
	bench_down(&b);
}

static void ack(struct bench *b, u64 position)
{
	struct rashpa_ack a = { HEAD(a), .id = b->group, .position = position };

	ANSWERED(call(b->ch, RASHPA_IOC_ACK, &a), 0, NULL);
	CHECK(b->consumer->ack[b->group - 1] == position, "the page does not show it");
}

/* Two slots: positions up to ack + 2 are fine, each later one is an overrun, once. */
TEST(overrun, "a member that laps the consumer is reported, and counted exactly")
{
	struct rashpa_member_info m[WORDS];
	struct rashpa_group_info info;
	struct bench b;

	bench_up(&b, 2, RASHPA_FULL_NEVER);
	CHECK(b.consumer->ack[b.group - 1] == FIRST, "the consumer begins elsewhere");
	put_all(&b, FIRST + 2);
	expect(&b, b.group, RASHPA_SOURCE_GROUP, 1, FIRST + 2);
	put(&b, 2, FIRST + 3);
	expect(&b, b.member[2], RASHPA_SOURCE_OVERRUN, 1, FIRST + 3);
	put(&b, 2, FIRST + 6);
	expect(&b, b.member[2], RASHPA_SOURCE_OVERRUN, 4, FIRST + 6);
	/* credit by a store, without a call; earlier overruns still count */
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
	      info.out_ack == FIRST + 7, "%llu overruns", info.out_overruns);
	/* an absurd position does no harm */
	ack(&b, UINT64_MAX);
	put_all(&b, FIRST + 50);
	expect(&b, b.group, RASHPA_SOURCE_GROUP, 2, FIRST + 50);
	nothing(&b);
	bench_down(&b);
}

/* Four slots: the fourth stack that was not given back fills them, the fifth is an overrun. */
TEST(full, "a member that fills the slots is reported once, before anything is lost")
{
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct bench b;
	u64 n;

	bench_up(&b, 4, 0);
	/* a member's eventfd counts its words, not events about it */
	ANSWERED(bind_eventfd(b.ch, event, b.member[0]), 0, NULL);
	put(&b, 0, FIRST + 3);
	nothing(&b);
	put(&b, 0, FIRST + 4);
	expect(&b, b.member[0], RASHPA_SOURCE_FULL, 4, FIRST + 4);
	n = eventfd_signals(event, 2);
	CHECK(n == 2, "the eventfd of a member counts %llu", n);
	put(&b, 0, FIRST + 5);	/* still full, which is not repeated, and one is lost */
	expect(&b, b.member[0], RASHPA_SOURCE_OVERRUN, 1, FIRST + 5);
	nothing(&b);
	/* slots that are given back make room; filling that as well is reported again */
	ack(&b, FIRST + 2);
	put(&b, 0, FIRST + 6);
	expect(&b, b.member[0], RASHPA_SOURCE_FULL, 4, FIRST + 6);
	nothing(&b);
	/* all at once: in time first */
	put(&b, 1, FIRST + 8);
	expect(&b, b.member[1], RASHPA_SOURCE_FULL, 6, FIRST + 8);
	expect(&b, b.member[1], RASHPA_SOURCE_OVERRUN, 2, FIRST + 8);
	nothing(&b);
	/* no position is so far ahead of this one */
	ack(&b, UINT64_MAX);
	put(&b, 0, FIRST + 20);
	nothing(&b);
	bench_down(&b);
	close(event);
}

TEST(refused, "an invalid group is refused; members stay while their group exists")
{
	uint32_t twice[2];
	struct rashpa_group_info info = { HEAD(info) };
	struct rashpa_group_make g = { HEAD(g), .n_members = 1,
				       .member_size = sizeof(struct rashpa_member) };
	struct { struct rashpa_member known; uint32_t more; } grown = {};
	struct { struct rashpa_member_info known; u64 more; } large;
	struct rashpa_ack a = { HEAD(a) };
	struct bench b;

	bench_up(&b, 0, RASHPA_FULL_NEVER);
	twice[0] = twice[1] = (uint32_t)add_word(&b, WORDS);
	/* units/group_unit.c has all members that are refused */
	ANSWERED(group_make(b.ch, twice, 2, 0, 0), EEXIST, "twice");
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_MAKE, &g), EFAULT, NULL);
	/* elements grow as structs do */
	grown.known.source = twice[0];
	g.members = (uintptr_t)&grown;
	g.member_size = sizeof(grown.known) - 1;
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_MAKE, &g), EINVAL, "7 bytes");
	g.member_size = 0;
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_MAKE, &g), EINVAL, "0 bytes");
	g.member_size = sizeof(grown);
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_MAKE, &g), 0, NULL);
	grown.more = 1;
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_MAKE, &g), E2BIG, "does not know");
	ANSWERED(source_del(b.ch, g.out_id), 0, NULL);
	a.id = b.member[0];
	ANSWERED(call(b.ch, RASHPA_IOC_ACK, &a), ENOENT, "group");
	info.id = b.member[0];
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_INFO, &info), ENOENT, "group");
	info.id = b.group;
	info.n_members = 1;
	info.member_size = sizeof(large);
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_INFO, &info), EINVAL, "address 0");
	info.members = PAGE;
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_INFO, &info), EFAULT, NULL);
	info.members = (uintptr_t)&large;
	large.more = 1;
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_INFO, &info), 0, NULL);
	CHECK(large.known.source == b.member[0] && !large.more, "an unknown field is not 0");
	info.member_size = sizeof(large.known) - 1;
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_INFO, &info), EINVAL, "bytes");
	info.members = 0;
	info.n_members = 0;
	info.member_size = 0;
	ANSWERED(call(b.ch, RASHPA_IOC_GROUP_INFO, &info), 0, NULL);
	CHECK(info.out_members == WORDS, "%u members", info.out_members);
	ANSWERED(source_del(b.ch, b.member[0]), EBUSY, "member of group");
	ANSWERED(source_del(b.ch, b.group), 0, NULL);
	ANSWERED(source_del(b.ch, b.group), ENOENT, "source");
	CHECK(group_make(b.ch, b.member, 1, 0, 0) > 0, "%s", reason);
	ANSWERED(source_del(b.ch, b.member[4]), 0, NULL);
	bench_down(&b);
}

/* ---------------------------------------------------------- hardware --- */

#define MODE	(RFPGA_MODE_MSIX | RFPGA_MODE_LOCK)
#define STACKS	tap_times(20, 60)

/* One DTP, with its lock record in slot @slot. */
static void dtp_start(const struct rig *r, unsigned int n, uint32_t entries, uint32_t slot)
{
	char *d = rig_dtp(r, n);

	rig_configure(r, n, MODE, 0, r->made.out_segments, STACKS);
	set64(d, RFPGA_DTP_LOCK_OFFSET, (u64)slot * RASHPA_LOCK_SLOT);
	set32(d, RFPGA_DTP_LOCK_FIRST, r->made.out_segments);
	set32(d, RFPGA_DTP_LOCK_COUNT, entries);
	rig_start(r, n);
}

static u64 least(const char *p)
{
	u64 v, n = UINT64_MAX;
	int i;

	for (i = 0; i < WORDS; i++) {
		v = __atomic_load_n((const u64 *)(p + i * RASHPA_LOCK_SLOT), __ATOMIC_ACQUIRE);
		n = v < n ? v : n;
	}
	return n;
}

static int add_dtp(int ch, int memory_fd, uint32_t slot, int other)
{
	struct rashpa_source_add a = word_source(memory_fd, RASHPA_SOURCE_QUIET);

	a.index = 1;
	a.offset = slot * RASHPA_LOCK_SLOT;
	a.device = other;
	return source_make(ch, &a);
}

/* Give credit to all DTPs: three of one function, two of the other. */
static void credit(char *const bells[2], u64 value)
{
	int i;

	for (i = 0; i < WORDS; i++)
		set32(bells[i < 3 ? 0 : 1] + (i < 3 ? i : i - 3) * PAGE, 0, (uint32_t)value);
}

/* Each event is true, the last one comes, and the consumer is never lapped. */
static void follow(int ch, const char *words, char *const bells[2], uint32_t group)
{
	struct rashpa_ack a = { HEAD(a), .id = group };
	u64 last = 0;
	struct rashpa_event e;

	while (tap_ok() && last < STACKS) {
		if (!CHECK(wait_fd(ch, POLLIN, 20000), "no event after %llu; the words are at %llu",
			   last, least(words)))
			return;
		if (read(ch, &e, sizeof(e)) != sizeof(e) || e.kind == RASHPA_SOURCE_VECTOR)
			continue;
		CHECK(e.kind == RASHPA_SOURCE_GROUP && e.source == group, "kind %u of source %u",
		      e.kind, e.source);
		CHECK(e.value > last && e.value <= least(words),
		      "event %llu after %llu, words at %llu", e.value, last, least(words));
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
	char *p = map_fd(win, 16 * PAGE);

	close(win);
	return p;
}

/* Both functions, each with a command of @told first. */
static void two_functions(const char *const told[2])
{
	uint32_t member[WORDS], entries[2] = {}, i;
	char *bells[2], *words;
	struct rashpa_alloc lock;
	struct rashpa_map_make m;
	int map[2], group;
	struct rig r, r2;

	SKIP_IF(!have_two, "needs two software FPGAs (lab run --fpga 2)");
	for (i = 0; i < 2; i++)
		SKIP_IF(told[i] && !rig_tell(i, told[i]), "the FPGA has no command to misbehave");
	rig_up(&r, &f, -1, 0, 0);
	rig_up(&r2, &f2, -1, 0, 0);
	ANSWERED(lock_alloc(WORDS, NULL, &lock), 0, NULL);
	words = map_fd(lock.out_fd, PAGE);
	bells[0] = bells_of(&f);
	bells[1] = bells_of(&f2);
	map[0] = fpga_map(&f, lock.out_fd, RASHPA_BIDIRECTIONAL, &m);
	map[1] = fpga_map(&f2, lock.out_fd, RASHPA_BIDIRECTIONAL, &m);
	REQUIRE(map[0] >= 0 && map[1] >= 0, "%s", reason);
	ANSWERED(fpga_program(map[0], r.made.out_segments, &entries[0]), 0, NULL);
	ANSWERED(fpga_program(map[1], r2.made.out_segments, &entries[1]), 0, NULL);
	for (i = 0; i < WORDS; i++)
		member[i] = (uint32_t)add_dtp(r.channel, lock.out_fd, i, i < 3 ? -1 : f2.fd);
	group = group_make(r.channel, member, WORDS, IMAGES, 0);
	CHECK(group > 0, "%s", reason);
	for (i = 0; i < WORDS && tap_ok(); i++)
		dtp_start(i < 3 ? &r : &r2, i < 3 ? i : i - 3, entries[i < 3 ? 0 : 1], i);
	follow(r.channel, words, bells, (uint32_t)group);
	for (i = 0; i < 2; i++) {
		close(map[i]);
		munmap(bells[i], 16 * PAGE);
	}
	unmap_fd(words, PAGE, lock.out_fd);
	rig_down(&r2);
	rig_down(&r);
}

TEST(two_functions, "five members of two functions: every event is true")
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

TEST(wrong, "members that come late, twice or never: every event is true")
{
	size_t i;

	SKIP_IF(!have_two, "needs two software FPGAs (lab run --fpga 2)");
	for (i = 0; i < ARRAY_SIZE(wrong) && tap_ok(); i++) {
		tap_note("%s", wrong[i].name);
		two_functions(wrong[i].told);
		rig_tell(0, "honest");
		rig_tell(1, "honest");
	}
}

void setup(void)
{
	have_one = rig_try(&f, 0);
	have_two = rig_try(&f2, 1);
}
