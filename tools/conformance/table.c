// SPDX-License-Identifier: LGPL-2.1-or-later
/* The address table: entries, sums, and the bounds of DTPs in it. */
#include "conformance/dtp.h"

#include <stdlib.h>
#include <string.h>

#define PAGE	4096u
#define AREA	(64u << 10)

/* Random numbers, the same in each run. */
static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Every page of the space is an image and a stack. */
static struct dtp pages(uint32_t first, uint32_t count)
{
	struct dtp d = plain(0);

	d.mode = 0;
	d.bunch = 1;
	d.slots = 16;
	d.dst_slot = PAGE;
	d.first = first;
	d.count = count;
	return d;
}

static void test_words(void)
{
	const uint32_t e = ENTRY(board.entries - 1);
	uint32_t word;

	for (word = 0; word < RFPGA_ENTRY_STRIDE; word += 4)
		wr(e + word, UINT32_MAX);
	CHECK_EQ(rd64(e + RFPGA_ENTRY_ADDR), -(uint64_t)PAGE);
	CHECK_EQ(rd64(e + RFPGA_ENTRY_LEN), -(uint64_t)PAGE);
	CHECK_EQ(rd64(e + RFPGA_ENTRY_SUM), -(uint64_t)PAGE);
	CHECK_EQ(rd(e + RFPGA_ENTRY_CONTROL), RFPGA_ENTRY_VALID);
	CHECK_EQ(rd(e + RFPGA_ENTRY_CONTROL + 4), 0);
	wr(e + RFPGA_ENTRY_CONTROL, 0);
	CHECK_EQ(rd(e + RFPGA_ENTRY_CONTROL), 0);
}

/* Offsets all over a map of many segments, one at a time. */
static void test_halving(void)
{
	enum { FIRST = 20 };
	/* fewer than 389, a prime number, which shuffles them */
	const uint32_t entries = board.entries < 389 + FIRST ? board.entries - FIRST : 388;
	static uint32_t page[3 * 389];		/* page of host memory, by page of the space */
	uint32_t state = 1, sum = 0, i, at;
	struct dtp d = pages(FIRST, entries);

	if (!entries)
		return;			/* cannot happen: the table of tests requires more */
	for (i = 0; i < entries; i++) {
		const uint32_t length = 1 + next_random(&state) % 3;
		const uint32_t where = (i * 389 % entries) * 3;

		set_segment(FIRST + i, HOST_ADDR + (uint64_t)where * PAGE, length * PAGE,
			    (uint64_t)sum * PAGE);
		for (at = 0; at < length; at++)
			page[sum++] = where + at;
	}
	d.images_in_set = d.slots = d.images = 1;
	for (i = 0; i < 300; i++) {
		at = i ? i == 1 ? 0 : next_random(&state) % sum : sum - 1;
		memset(host + (size_t)page[at] * PAGE, CANARY, PAGE);
		d.dst_base = (uint64_t)at * PAGE;
		start(&d);
		if (!EVENTUALLY(status(0) == RFPGA_DTP_DONE) ||
		    memcmp(host + (size_t)page[at] * PAGE, dataset, board.image))
			break;
	}
	CHECK_EQ(i, 300);
	/* no entry follows the last one */
	d.dst_base = (uint64_t)sum * PAGE;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), (uint64_t)sum * PAGE);
}

/* A stream through all entries, up and down. */
static void test_forward(void)
{
	struct dtp d = pages(8, 5);
	uint32_t i;

	for (i = 0; i < 5; i++)
		set_segment(8 + i, HOST_ADDR + (5 - i) * AREA, 4 * PAGE, i * 4 * PAGE);
	d.mode = RFPGA_MODE_FREERUN;
	d.images = 3 * d.slots;
	run_to(&d, RFPGA_DTP_DONE);
	for (i = 0; i < d.slots; i++)
		CHECK(!memcmp(host + (5 - i / 4) * AREA + i % 4 * PAGE,
			      dataset + (2 * d.slots + i) % d.images_in_set * board.image,
			      board.image));
	CHECK(untouched(AREA, 2 * AREA));
	CHECK(untouched(5 * AREA + 4 * PAGE, 6 * AREA));
}

/* Only the used entry must be valid; a range may begin in the middle of a map. */
static void test_one_valid(void)
{
	struct dtp d = pages(8, 4);
	uint32_t i;

	for (i = 0; i < 4; i++)
		set_segment(8 + i, HOST_ADDR + i * AREA, 2 * PAGE, i * 2 * PAGE);
	for (i = 0; i < 4; i += 1 + (i == 1))
		wr(ENTRY(8 + i) + RFPGA_ENTRY_CONTROL, 0);
	d.images = 1;
	d.dst_base = 5 * PAGE;
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(!memcmp(host + 2 * AREA + PAGE, dataset, board.image));
	d.images = 2;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), 6 * PAGE);

	d.first = 10;
	d.count = 2;
	d.images = 1;
	memset(host + 2 * AREA, CANARY, 2 * PAGE);
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(!memcmp(host + 2 * AREA + PAGE, dataset, board.image));
	d.dst_base = 3 * PAGE;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), 3 * PAGE);
	/* a hole in the sums is a hole in the space */
	set_segment(11, HOST_ADDR + 3 * AREA, 2 * PAGE, 8 * PAGE);
	d.dst_base = 5 * PAGE;
	d.images = 2;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), 6 * PAGE);
	CHECK(untouched(3 * AREA, 4 * AREA));
}

/* Invalid sums lead to a valid entry, or to none. */
static void test_nonsense(void)
{
	static bool valid[8];
	uint32_t state = 7, turn, i, length;
	struct dtp d = pages(8, 8);
	unsigned int sent = 0, refused = 0;

	d.images = d.slots = 4;
	for (turn = 0; turn < 200; turn++) {
		memset(host, CANARY, 10 * AREA);
		for (i = 0; i < 8; i++) {
			valid[i] = next_random(&state) % 4;
			length = 4 * PAGE;
			set_segment(8 + i, HOST_ADDR + (1 + i) * AREA, length,
				    next_random(&state) % 8 * PAGE);
			wr(ENTRY(8 + i) + RFPGA_ENTRY_CONTROL,
			   valid[i]);
		}
		d.dst_base = next_random(&state) % 8 * PAGE;
		start(&d);
		CHECK(EVENTUALLY(idle()));
		if (status(0) == RFPGA_DTP_DONE)
			sent++;
		else
			refused += faulted(0, RFPGA_FAULT_ENTRY);
		CHECK(untouched(0, AREA));
		for (i = 0; i < 8; i++)
			CHECK(untouched((1 + i) * AREA + (valid[i] ? length : 0), (2 + i) * AREA));
		CHECK(untouched(9 * AREA, 10 * AREA));
	}
	CHECK_EQ(sent + refused, 200);
	CHECK(sent && refused);
}

/* Entries from before a reset are not used. */
static void test_stale(void)
{
	struct dtp d = pages(8, 4);
	uint32_t i;

	for (i = 0; i < 4; i++)
		set_segment(8 + i, HOST_ADDR + (1 + i) * AREA, AREA, i * AREA);
	fresh();
	d.images = 1;
	for (i = 0; i < 4; i++) {
		d.dst_base = i * AREA;
		start(&d);
		CHECK(faulted(0, RFPGA_FAULT_ENTRY));
		CHECK_EQ(rd64(RFPGA_FAULT_ADDR), i * AREA);
	}
	CHECK(untouched(AREA, 5 * AREA));
	/* sums of invalid entries are used for the search only */
	for (i = 0; i < 4; i++)
		wr64(ENTRY(8 + i) + RFPGA_ENTRY_SUM, i * 2 * PAGE);
	set_segment(10, HOST_ADDR + AREA, 2 * PAGE, 4 * PAGE);
	d.dst_base = 5 * PAGE;
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(!memcmp(host + AREA + PAGE, dataset, board.image));
	CHECK(untouched(AREA + 2 * PAGE, 5 * AREA));
}

/* Of a range wider than the bounds, only entries within the bounds are used. */
static void test_bounds_within(void)
{
	struct dtp d = pages(8, 4);
	uint32_t i;

	for (i = 0; i < 4; i++)
		set_segment(8 + i, HOST_ADDR + (1 + i) * AREA, PAGE, i * PAGE);
	wr(BOUNDS(0) + RFPGA_BOUNDS_FIRST, 9);
	wr(BOUNDS(0) + RFPGA_BOUNDS_LIMIT, 11);
	d.images = 1;
	for (i = 0; i < 4; i++) {
		d.dst_base = i * PAGE;
		start(&d);
		if (i == 1 || i == 2) {
			CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
			CHECK(!memcmp(host + (1 + i) * AREA, dataset, board.image));
		} else {
			CHECK(faulted(0, RFPGA_FAULT_ENTRY));
			CHECK_EQ(rd64(RFPGA_FAULT_ADDR), i * PAGE);
			CHECK(untouched((1 + i) * AREA, (2 + i) * AREA));
		}
	}
	/* two words of 11 bits, in one access or two, and two missing ones */
	wr64(BOUNDS(0), UINT64_MAX);
	wr64(BOUNDS(0) + 8, UINT64_MAX);
	CHECK_EQ(rd(BOUNDS(0) + RFPGA_BOUNDS_FIRST), RFPGA_BOUNDS_MASK);
	CHECK_EQ(rd(BOUNDS(0) + RFPGA_BOUNDS_LIMIT), RFPGA_BOUNDS_MASK);
	CHECK_EQ(rd64(BOUNDS(0) + 8), 0);
	run_to(&d, RFPGA_DTP_FAULTED);
	wr(BOUNDS(0) + RFPGA_BOUNDS_FIRST, 0);
	run_to(&d, RFPGA_DTP_DONE);
}

static void test_bounds(void)
{
	const uint32_t bounds = BOUNDS(1);
	struct dtp d = plain(1), other = plain(0);
	uint32_t how;

	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_FIRST), 0);
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_LIMIT), board.entries);
	d.dst_base = 1 << 20;
	for (how = 0; how < 3; how++) {
		/* its lock record is in entry 1, its payload in entry 0 */
		wr(bounds + RFPGA_BOUNDS_FIRST, how == 1);
		wr(bounds + RFPGA_BOUNDS_LIMIT, how == 2 ? 1 : 2);
		CHECK_EQ(rd(bounds + RFPGA_BOUNDS_FIRST), how == 1);
		CHECK_EQ(rd(bounds + RFPGA_BOUNDS_LIMIT), how == 2 ? 1 : 2);
		wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
		memset(host, CANARY, 2 << 20);
		start(&d);
		if (how) {
			CHECK(faulted(1, RFPGA_FAULT_ENTRY));
			CHECK_EQ(rd64(RFPGA_FAULT_ADDR), how == 1 ? 1 << 20 : 64);
		} else {
			CHECK(EVENTUALLY(counter(1, RFPGA_DTP_C_STACKS) == 2));
			stop_dtp(1);
		}
		CHECK_EQ(untouched(1 << 20, 2 << 20), how == 1);
	}
	/* bounds of another DTP do not apply */
	run_to(&other, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK(EVENTUALLY(!(rd(RFPGA_STATUS) & RFPGA_STATUS_RESETTING)));
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_FIRST), 0);
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_LIMIT), board.entries);
}

static void narrow(void)
{
	wr(BOUNDS(0) + RFPGA_BOUNDS_FIRST, 1);
	rd(RFPGA_ID);
}

static void widen(void)
{
	wr(BOUNDS(0) + RFPGA_BOUNDS_FIRST, 0);
}

/* Bounds are narrowed under a stream: after a read nothing goes to excluded entries. */
static void test_bounds_fence(void)
{
	struct dtp d = large(16);

	take_away(&d, narrow, widen, RFPGA_FAULT_ENTRY);
}

static const struct test tests[] = {
	{ "words", "entries are whole pages", test_words },
	{ "halving", "an offset is found among many entries", test_halving, .entries = 40 },
	{ "forward", "a stream goes through the entries, again and again", test_forward,
	  .entries = 13, .features = RFPGA_FEATURE_FREERUN },
	{ "one-valid", "only the used entry must be valid", test_one_valid,
	  .entries = 12 },
	{ "stale", "entries from before a reset are not used", test_stale, .entries = 12 },
	{ "nonsense", "wrong sums lead to valid entries or to none", test_nonsense, .entries = 16 },
	{ "bounds", "nothing outside the bounds of a DTP is used", test_bounds, .dtps = 2,
	  .entries = 2, .features = RFPGA_FEATURE_LOCK },
	{ "bounds-within", "a range that is wider than the bounds", test_bounds_within,
	  .entries = 12 },
	{ "bounds-fence", "narrowed bounds apply at once", test_bounds_fence,
	  .features = RFPGA_FEATURE_FREERUN },
};

const struct suite table_suite = SUITE("table", tests);
