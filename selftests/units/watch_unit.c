// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events of words in memory: conditions, masks, words that wrap, timers, LOOK.
 * test: tier=check where=root seconds=2 run=build/selftests/units/watch_unit
 */
#include <stdbool.h>

static bool poisoned;			/* all memory is bad */
static void meanwhile(void);		/* called when LOOK lets other tasks run */

#define virt_to_page(address)	((void)(address), NULL)
#define PageHWPoison(page)	((void)(page), poisoned)
#define PageHuge(page)		((void)(page), false)
#define compound_head(page)	(page)
#define hrtimer_is_queued(timer)	((void)(timer), false)
#undef cond_resched
#define cond_resched()		meanwhile()

#include "../../drivers/events/watch.c"
#include "unit.h"

/* ------------------------------------------------------------ the rest ---- */

static struct page pages[23];
static u64 store[ARRAY_SIZE(pages)][PAGE_SIZE / sizeof(u64)];	/* their content */
static u64 *const word = store[0];
static struct file file;
static struct dma_buf memory = { &file, 0 };
static struct rashpa_extent extents[3];
static struct rashpa_memory ours = { .extents = extents };
static struct rashpa_channel channel;
static struct rashpa_listener listener = { .channel = &channel };
static ktime_t now;
static u64 events;			/* made by a timer */
static ktime_t forwarded;

struct dma_buf *dma_buf_get(int fd) { return fd < 0 ? ERR_PTR(-EBADF) : &memory; }
void dma_buf_put(struct dma_buf *dmabuf) { }
void *page_address(const struct page *page) { return store[page - pages]; }
ktime_t ktime_get(void) { return now += 500; }
void hrtimer_forward_now(struct hrtimer *timer, ktime_t interval) { forwarded = interval; }
void rashpa_uncharge(struct rashpa_charge *charge) { }

struct rashpa_memory *rashpa_dmabuf_memory(struct dma_buf *dmabuf)
{
	return ours.n_extents ? &ours : NULL;
}

void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *t),
		   int clock, int mode)
{
	timer->fn = fn;
}

int rashpa_charge(struct rashpa_call *c, struct rashpa_charge *charge,
		  enum rashpa_resource resource, s32 device, u64 amount, u64 bytes)
{
	charge->holding.amount = amount;
	return 0;
}

void rashpa_listener_event(struct rashpa_listener *l, u64 sequence, u64 time, u64 value)
{
	events++;
	l->value = value;
	l->disarmed = l->one_shot;
}

/* --------------------------------------------------------- conditions ---- */

#define NONE	U64_MAX

static struct rashpa_watch *watch(struct rashpa_source_add add)
{
	struct rashpa_watch *w = NULL;
	int err;

	extents[0] = (struct rashpa_extent) { &pages[0], 1 };
	ours.n_extents = 1;
	file.f_mode = FMODE_READ;
	err = rashpa_watch_new(&call, &add, RASHPA_NO_DEVICE, &w);
	if (err)
		tap_bail("%d: %s", err, call.reason);
	w->listener = &listener;
	listener.watch = w;
	return w;
}

/* The value of the event, or NONE. */
static u64 look(struct rashpa_watch *w, u64 value)
{
	bool fires;
	u64 at;

	word[0] = value;
	spin_lock(&channel.lock);
	fires = rashpa_watch_look(&listener, &at);
	spin_unlock(&channel.lock);
	return fires ? at : NONE;
}

static void looks(const char *what, struct rashpa_source_add add, u64 first,
		  const u64 (*of)[2], size_t n)
{
	struct rashpa_watch *w;
	size_t i;
	u64 is;

	word[0] = first;
	w = watch(add);
	for (i = 0; i < n; i++) {
		is = look(w, of[i][0]);
		CHECK(is == of[i][1], "%s, word %zu, 0x%llx: 0x%llx instead of 0x%llx", what, i,
		      of[i][0], is, of[i][1]);
	}
	rashpa_watch_free(w);
}

/* @add, the word when it is added, then pairs of a word and the value of its event. */
#define LOOKS(what, first, pairs, ...) do {						\
	static const u64 _of[][2] = { UNPACK pairs };					\
	looks(what, (struct rashpa_source_add) { __VA_ARGS__ }, first, _of, ARRAY_SIZE(_of)); \
} while (0)
#define UNPACK(...)	__VA_ARGS__
#define CONDITION(c)	.condition = RASHPA_CONDITION_##c

TEST(changed, "CHANGED makes events for bits under the mask")
{
	LOOKS("64 bits", 5,
	      ({ 5, NONE }, { 6, 6 }, { 6, NONE }, { 0, 0 }, { 1ULL << 63, 1ULL << 63 }),
	      CONDITION(CHANGED), .bits = 64);
	LOOKS("only bits of the mask", 0xf0,
	      ({ 0xff, NONE }, { 0x1ff, 0x100 }, { 0, 0 }, { 0xf0, NONE }),
	      CONDITION(CHANGED), .bits = 64, .mask = 0xf00);
	LOOKS("32 bits of 64", 1ULL << 32,
	      ({ 0, NONE }, { 7ULL << 32 | 1, 1 }),
	      CONDITION(CHANGED), .bits = 32);
}

TEST(equal, "EQUAL makes one event each time it becomes true")
{
	LOOKS("once each time", 0,
	      ({ 7, 7 }, { 7, NONE }, { 8, NONE }, { 7, 7 }),
	      CONDITION(EQUAL), .bits = 64, .value = 7);
	LOOKS("when it is added", 7,
	      ({ 7, 7 }, { 7, NONE }),
	      CONDITION(EQUAL), .bits = 64, .value = 7);
	LOOKS("bits outside the mask do not end it", 0,
	      ({ 0x70, 0x70 }, { 0xf7f, NONE }, { 0x60, NONE }, { 0x71, 0x70 }),
	      CONDITION(EQUAL), .bits = 32, .mask = 0xf0, .value = 0x70);
	LOOKS("a word of 32 bits is no counter", 0xffffffff,
	      ({ 0, 0 }, { 0xffffffff, NONE }, { 0, 0 }),
	      CONDITION(EQUAL), .bits = 32, .value = 0);
}

TEST(reached, "REACHED makes one event for each step, until the last step")
{
	LOOKS("each step once", 0,
	      ({ 9, NONE }, { 10, 10 }, { 14, NONE }, { 15, 15 }, { 15, NONE }, { 14, NONE },
	       { 15, NONE }, { 20, 20 }),
	      CONDITION(REACHED), .bits = 64, .value = 10, .step = 5);
	LOOKS("several steps at once", 0,
	      ({ 24, 24 }, { 24, NONE }, { 25, 25 }, { 39, 39 }, { 40, 40 }),
	      CONDITION(REACHED), .bits = 64, .value = 10, .step = 5);
	LOOKS("no step after the last", 0,
	      ({ 100, 100 }, { 255, 255 }, { 50, NONE }, { 255, NONE }),
	      CONDITION(REACHED), .bits = 64, .mask = 255, .value = 100, .step = 100);
	LOOKS("the last step is the greatest word", 0,
	      ({ 250, 250 }, { 254, NONE }, { 255, 255 }, { 255, NONE }),
	      CONDITION(REACHED), .bits = 64, .mask = 255, .value = 5, .step = 50);
	LOOKS("a step that overflows", 0,
	      ({ 1, 1 }, { U64_MAX - 1, NONE }),
	      CONDITION(REACHED), .bits = 64, .value = 1, .step = U64_MAX);
	LOOKS("steps that overflow together", 0,
	      ({ 1, 1 }, { (1ULL << 63) + 1, (1ULL << 63) + 1 }, { U64_MAX - 1, NONE }),
	      CONDITION(REACHED), .bits = 64, .value = 1, .step = 1ULL << 63);
}

TEST(reached_again, "REACHED without a step makes the next event only after it was less")
{
	LOOKS("after it was less", 0,
	      ({ 9, NONE }, { 10, 10 }, { 11, NONE }, { 9, NONE }, { 12, 12 }),
	      CONDITION(REACHED), .bits = 64, .value = 10);
	LOOKS("always", 0, ({ 0, 0 }, { 5, NONE }), CONDITION(REACHED), .bits = 64);
}

/* The greatest word equals NONE, so this test reads the result itself. */
TEST(greatest, "REACHED makes one event of the greatest word")
{
	struct rashpa_watch *w;
	bool fires;
	u64 at;

	word[0] = 0;
	w = watch((struct rashpa_source_add) { CONDITION(REACHED), .bits = 64, .step = 1 });
	word[0] = U64_MAX;
	spin_lock(&channel.lock);
	fires = rashpa_watch_look(&listener, &at);
	CHECK(fires && at == U64_MAX, "0x%llx", at);
	CHECK(w->ended && !rashpa_watch_look(&listener, &at), "twice");
	spin_unlock(&channel.lock);
	rashpa_watch_free(w);
}

#define G4	(1ULL << 32)

TEST(wrap, "words of 32 bits have positions of 64")
{
	LOOKS("it wraps", 0xfffffff0,
	      ({ 0xfffffff8, 0xfffffff8 }, { 8, G4 + 8 }, { 0x80000000, G4 + 0x80000000 },
	       { 0xffffffff, G4 + 0xffffffff }, { 0, 2 * G4 }),
	      CONDITION(CHANGED), .bits = 32);
	LOOKS("and back", 8,
	      ({ 0x70000000, 0x70000000 }, { 0xd0000000, 0xd0000000 }, { 16, G4 + 16 },
	       { 0xfffffff0, 0xfffffff0 }, { 15, G4 + 15 }),
	      CONDITION(CHANGED), .bits = 32);
	LOOKS("not before the beginning", 8,
	      ({ 0xfffffff0, 0xfffffff0 }),
	      CONDITION(CHANGED), .bits = 32);
	LOOKS("half of it goes back", 0x80000000, ({ 0, 0 }), CONDITION(CHANGED), .bits = 32);
	LOOKS("one less than half goes on", 0x80000001,
	      ({ 0, G4 }),
	      CONDITION(CHANGED), .bits = 32);
	LOOKS("a mask of all", 0xffffffff,
	      ({ 1, G4 + 1 }),
	      CONDITION(CHANGED), .bits = 32, .mask = U32_MAX);
	LOOKS("not with a mask", 0xffff,
	      ({ 1, 1 }),
	      CONDITION(CHANGED), .bits = 32, .mask = 0xffff);
	LOOKS("not of 64 bits", 0xffffffff, ({ 1, 1 }), CONDITION(CHANGED), .bits = 64);
	LOOKS("a value after 2^32", 0xfffffff0,
	      ({ 0xffffffff, NONE }, { 0, NONE }, { 0x10, G4 + 16 }, { 0x1f, NONE },
	       { 0x20, G4 + 32 }),
	      CONDITION(REACHED), .bits = 32, .value = G4 + 16, .step = 16);
}

TEST(wrap_some, "the lowest bits of a word are a counter, if that is asked for")
{
	LOOKS("24 bits, and others above", 0x80fffff0,
	      ({ 0x80fffff0, NONE }, { 0xfffff0, NONE }, { 0x80fffff8, 0xfffff8 },
	       { 8, 0x1000008 }, { 0xfffff0, 0xfffff0 }),
	      CONDITION(CHANGED), .bits = 32, .mask = 0xffffff, .head.flags = RASHPA_SOURCE_COUNTER);
	LOOKS("16 bits of 64, step by step", 0xfffe,
	      ({ 0xffff, NONE }, { 0xabcd0001, 0x10001 }, { 3, NONE }, { 5, 0x10005 }),
	      CONDITION(REACHED), .bits = 64, .mask = 0xffff, .value = 0x10001, .step = 4,
	      .head.flags = RASHPA_SOURCE_COUNTER);
	LOOKS("one bit", 0, ({ 1, 1 }, { 0, 0 }, { 1, 1 }),
	      CONDITION(CHANGED), .bits = 32, .mask = 1, .head.flags = RASHPA_SOURCE_COUNTER);
	LOOKS("64 bits", U64_MAX - 1, ({ 1, 1 }, { U64_MAX - 2, U64_MAX - 2 }),
	      CONDITION(CHANGED), .bits = 64, .head.flags = RASHPA_SOURCE_COUNTER);
}

/* Compared with a counter of 64 bits, whose lowest @bits are the word. */
static void wrap_at_random(struct rashpa_source_add add, u32 bits)
{
	const u32 half = (1ULL << (bits - 1)) - 1;
	struct rashpa_watch *w;
	u64 at = 0, is;
	int i;

	word[0] = 0;
	w = watch(add);
	for (i = 0; i < 100000; i++) {
		const u32 way = unit_random() % half + 1;

		if (unit_random() % 4 || way > at)
			at += way;
		else
			at -= way;
		is = look(w, (u32)at);
		REQUIRE(is == at, "0x%llx instead of 0x%llx", is, at);
	}
	CHECK(at >> bits > 100, "it has not wrapped");
	rashpa_watch_free(w);
}

TEST(wrap_random, "100000 random moves agree with a counter of 64 bits")
{
	wrap_at_random((struct rashpa_source_add) { CONDITION(CHANGED), .bits = 32 }, 32);
	wrap_at_random((struct rashpa_source_add) { CONDITION(CHANGED), .bits = 32,
			.mask = 0xffffff, .head.flags = RASHPA_SOURCE_COUNTER }, 24);
}

/* ------------------------------------------------------------- checks ---- */

#define BAD(word, ...)	{ word, EINVAL, { __VA_ARGS__ } }

static const struct {
	const char *word;
	int err;
	struct rashpa_source_add add;
} bad[] = {
	BAD("16 bits", CONDITION(CHANGED), .bits = 16),
	BAD("0 bits", CONDITION(CHANGED)),
	BAD("0x4", CONDITION(CHANGED), .bits = 64, .offset = 4),
	BAD("0x2", CONDITION(CHANGED), .bits = 32, .offset = 2),
	BAD("condition 0", .bits = 32),
	BAD("condition 4", .condition = 4, .bits = 32),
	BAD("mask", CONDITION(CHANGED), .bits = 32, .mask = G4),
	BAD("outside the mask", CONDITION(EQUAL), .bits = 32, .value = G4),
	BAD("outside the mask", CONDITION(REACHED), .bits = 32, .value = 16, .mask = 15),
	BAD("outside the mask", CONDITION(REACHED), .bits = 64, .value = 16, .mask = 15),
	BAD("no value", CONDITION(CHANGED), .bits = 64, .value = 1),
	BAD("lowest bits", CONDITION(CHANGED), .bits = 32, .mask = 0xff0,
	    .head.flags = RASHPA_SOURCE_COUNTER),
	BAD("EQUAL", CONDITION(EQUAL), .bits = 32, .head.flags = RASHPA_SOURCE_COUNTER),
	BAD("step", CONDITION(CHANGED), .bits = 64, .step = 1),
	BAD("step", CONDITION(EQUAL), .bits = 64, .step = 1),
	BAD("vector 1", CONDITION(CHANGED), .bits = 64, .index = 1,
	    .head.flags = RASHPA_SOURCE_LOOK),
	BAD("RASHPA_SOURCE_POLL", CONDITION(CHANGED), .bits = 64, .period_us = 100),
	BAD("RASHPA_SOURCE_POLL", CONDITION(CHANGED), .bits = 64, .budget = 1),
	BAD("period", CONDITION(CHANGED), .bits = 64, .head.flags = RASHPA_SOURCE_POLL),
	BAD("period", CONDITION(CHANGED), .bits = 64, .head.flags = RASHPA_SOURCE_POLL,
	    .period_us = RASHPA_PERIOD_MIN - 1),
	BAD("period", CONDITION(CHANGED), .bits = 64, .head.flags = RASHPA_SOURCE_POLL,
	    .period_us = RASHPA_PERIOD_MAX + 1),
	BAD("budget", CONDITION(CHANGED), .bits = 64, .head.flags = RASHPA_SOURCE_POLL,
	    .period_us = 100, .budget = 1001),
	{ "fd -1", EBADF, { CONDITION(CHANGED), .bits = 64, .memory = -1 } },
	{ "0x3000", ERANGE, { CONDITION(CHANGED), .bits = 64, .offset = 3 * PAGE_SIZE } },
	{ "0xfffffffffffffff8", ERANGE, { CONDITION(CHANGED), .bits = 64, .offset = -8ULL } },
};

static int refusal(const struct rashpa_source_add *add)
{
	struct rashpa_watch *w;

	return rashpa_watch_new(&call, add, RASHPA_NO_DEVICE, &w);
}

TEST(refused, "invalid words and conditions are refused")
{
	const struct rashpa_source_add good = { CONDITION(CHANGED), .bits = 64 };
	size_t i;

	extents[0] = (struct rashpa_extent) { &pages[0], 3 };
	ours.n_extents = 1;
	file.f_mode = FMODE_READ;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		ANSWERS(refusal(&bad[i].add), -bad[i].err, bad[i].word);
	file.f_mode = FMODE_WRITE;
	ANSWERS(refusal(&good), -EACCES, "reading");
	ours.n_extents = 0;
	ANSWERS(refusal(&good), -EXDEV, "host memory");
}

/* Memory in several pieces. */
TEST(pieces, "a word is found in memory of several pieces")
{
	static const struct {
		u64 offset;
		long page;	/* page of all extents; -1: outside */
		u32 at;
	} rows[] = {
		{ 0, 0, 0 }, { 4088, 0, 4088 }, { 4096, 10, 0 }, { 3 * 4096 - 4, 11, 4092 },
		{ 3 * 4096, 20, 0 }, { 6 * 4096 - 8, 22, 4088 }, { 6 * 4096, -1, 0 },
	};
	size_t i;

	extents[0] = (struct rashpa_extent) { &pages[0], 1 };
	extents[1] = (struct rashpa_extent) { &pages[10], 2 };
	extents[2] = (struct rashpa_extent) { &pages[20], 3 };
	ours.n_extents = 3;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *is = rashpa_word_find(&ours, rows[i].offset);

		CHECK(is == (rows[i].page < 0 ? NULL : (char *)store[rows[i].page] + rows[i].at),
		      "offset 0x%llx", rows[i].offset);
	}
}

/* ------------------------------------------------------------- timers ---- */

TEST(timer, "a timer makes events, and a one-shot source rests")
{
	struct rashpa_watch *w;

	word[0] = 0;
	w = watch((struct rashpa_source_add) { CONDITION(CHANGED), .bits = 64, .period_us = 100,
		  .budget = 1000, .head.flags = RASHPA_SOURCE_POLL });
	events = 0;
	listener.one_shot = false;
	CHECK(w->timer.fn(&w->timer) == HRTIMER_RESTART && !events, "nothing has changed");
	word[0] = 1;
	CHECK(w->timer.fn(&w->timer) == HRTIMER_RESTART && events == 1 && listener.value == 1,
	      "%llu events", events);
	CHECK(forwarded == 100 * NSEC_PER_USEC, "the next check is in %lld ns", forwarded);
	/* one event, then it rests until it is armed */
	listener.one_shot = true;
	word[0] = 2;
	CHECK(w->timer.fn(&w->timer) == HRTIMER_NORESTART && events == 2, "it does not rest");
	word[0] = 3;
	CHECK(w->timer.fn(&w->timer) == HRTIMER_NORESTART && events == 2, "it checks while it rests");
	listener.disarmed = false;
	CHECK(w->timer.fn(&w->timer) == HRTIMER_NORESTART && events == 3 && listener.value == 3,
	      "a change while it rested is no event");
	listener.one_shot = false;
	listener.disarmed = false;
	rashpa_watch_free(w);
}

/* Slow checks are made less often: they take a fixed share of a processor at most. */
TEST(budget, "the period follows the budget")
{
	static const struct { u64 cost; u32 budget; u64 period; } rows[] = {
		{ 0, 1000, 100000 }, { 49000, 1000, 100000 }, { 199000, 1000, 200000 },
		{ 4000, 10, 500000 }, { 0, 10, 100000 }, { 0, 1, 1000000 },
	};
	size_t i;
	int j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rashpa_watch *w = watch((struct rashpa_source_add) { CONDITION(CHANGED),
			.bits = 64, .period_us = 100, .budget = rows[i].budget,
			.head.flags = RASHPA_SOURCE_POLL });

		for (j = 0; j < 100; j++)
			rashpa_watch_account(w, rows[i].cost);
		CHECK(w->period_now <= rows[i].period && w->period_now > rows[i].period * 98 / 100,
		      "row %zu: %llu ns instead of %llu", i, w->period_now, rows[i].period);
		CHECK(w->looks == 100 && w->look_ns == 100 * rows[i].cost, "looks");
		rashpa_watch_free(w);
	}
}

/* --------------------------------------------------------------- LOOK ---- */

static u32 fired[100];
static u32 quiet_from, quiet_end;	/* these words make no event */
static struct list_head *looked;
static struct rashpa_subscriber *comes, *goes;	/* between the words of a LOOK */

bool rashpa_listener_fire(struct rashpa_listener *l, u64 sequence, u64 time, u64 value)
{
	CHECK(sequence == 1, "sequence %llu", sequence);
	fired[l->index]++;
	return l->id;
}

void rashpa_channel_wake_later(struct rashpa_channel *ch)
{
	lockdep_assert_held(&ch->lock);
}

static void meanwhile(void)
{
	if (goes)
		list_del_init(&goes->entry);
	if (comes)
		list_add_tail(&comes->entry, looked);
	goes = NULL;
	comes = NULL;
}

/* LOOK with @n words, @per for each channel; every @every-th word makes an event. */
static void look_at(u32 n, u32 per, u32 every)
{
	static struct rashpa_channel channels[ARRAY_SIZE(fired)];
	static struct rashpa_listener of[ARRAY_SIZE(fired)];
	struct rashpa_words words = { .origin.n_subscribers = n };
	u32 i, made, wanted = 0;

	INIT_LIST_HEAD(&words.origin.subscribers);
	memset(fired, 0, sizeof(fired));
	for (i = 0; i < n; i++) {
		of[i] = (struct rashpa_listener) { .channel = &channels[i / per], .index = i,
						   .id = every && i % every == 0 &&
							 (i < quiet_from || i >= quiet_end) };
		wanted += of[i].id;
		list_add_tail(&of[i].subscriber.entry, &words.origin.subscribers);
	}
	mutex_lock(&words.lock);
	made = rashpa_words_look(&words);
	mutex_unlock(&words.lock);
	CHECK(made == wanted, "%u words: %u events", n, made);
	for (i = 0; i < n; i++)
		CHECK(fired[i] == 1, "%u words: word %u was checked %u times", n, i, fired[i]);
	for (i = 0; words.origin.subscribers.next != &words.origin.subscribers; i++)
		list_del_init(words.origin.subscribers.next);
	CHECK(i == n, "%u words are left of %u", i, n);
}

TEST(look, "LOOK checks each word once")
{
	look_at(0, 1, 1);
	look_at(1, 1, 1);
	look_at(5, 5, 1);
	look_at(5, 5, 0);
	look_at(RASHPA_LOOK_BATCH, 1, 1);
	look_at(RASHPA_LOOK_BATCH + 1, 1, 1);
	look_at(100, 1, 1);
	look_at(100, 1, 7);
	look_at(100, 100, 1);
	look_at(97, 10, 10);
	/* fewer channels than there is room for, then more */
	quiet_from = 10;
	quiet_end = RASHPA_LOOK_BATCH;
	look_at(100, 1, 1);
}

TEST(poisoned, "a word whose memory went bad keeps its last value")
{
	struct rashpa_source_add add = { CONDITION(CHANGED), .bits = 64 };
	struct rashpa_watch *w;

	word[0] = 5;
	w = watch(add);
	poisoned = true;
	CHECK(look(w, 7) == NONE, "an event of a word that cannot be read");
	poisoned = false;
	CHECK(look(w, 7) == 7, "no event of a word that can be read again");
	rashpa_watch_free(w);
}

TEST(look_changes, "words come and go during LOOK")
{
	static struct rashpa_channel ch;
	static struct rashpa_listener of[ARRAY_SIZE(fired)];
	static struct rashpa_channel channels[ARRAY_SIZE(fired)];
	struct rashpa_words words = { .origin.n_subscribers = 40 };
	u32 i, made;

	INIT_LIST_HEAD(&words.origin.subscribers);
	looked = &words.origin.subscribers;
	memset(fired, 0, sizeof(fired));
	for (i = 0; i < 41; i++) {
		of[i] = (struct rashpa_listener) { .channel = i == 40 ? &ch : &channels[i],
						   .index = i, .id = 1 };
		if (i < 40)
			list_add_tail(&of[i].subscriber.entry, looked);
	}
	comes = &of[40].subscriber;
	mutex_lock(&words.lock);
	made = rashpa_words_look(&words);
	CHECK(made == 40 && !fired[40], "%u events, %u of the new word", made, fired[40]);
	goes = &of[39].subscriber;
	words.origin.sequence = 0;
	words.origin.n_subscribers = 41;
	made = rashpa_words_look(&words);
	mutex_unlock(&words.lock);
	CHECK(made == 40 && fired[39] == 1 && fired[40] == 1,
	      "%u events, %u of the removed word", made, fired[39]);
}
