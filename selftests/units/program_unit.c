// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Entries of address tables: layouts, order of writes, places of maps.
 * test: tier=check where=root seconds=2 run=build/selftests/units/program_unit
 */
#include "../../drivers/function/profile.c"
#include "../../drivers/function/program.c"
#include "unit.h"

/* ------------------------------------------------------------ the rest ---- */

#define BATCH	RASHPA_PROGRAM_BATCH
#define ENTRIES	(3 * BATCH)

static struct pci_dev pdev;
static struct rashpa_profile_table about = { .length = SZ_64K };
static struct rashpa_device dev = { .pdev = &pdev, .profile.table = &about };
static struct rashpa_map map = { .dev = &dev };
static struct rashpa_table *table;
static u32 memory[ENTRIES * 64];
static bool reachable = true, answers = true;

/* Log of writes and barriers; a barrier has the offset BARRIER. */
#define BARRIER	0xffffffff
static struct { u32 at, value; } writes[64];
static size_t n_writes;

static void note(u32 at, u32 value)
{
	if (n_writes == ARRAY_SIZE(writes))
		return;
	writes[n_writes].at = at;
	writes[n_writes++].value = value;
}

void unit_barrier(void) { note(BARRIER, 0); }

void writel(u32 value, void *at)
{
	*(u32 *)at = value;
	note((char *)at - (char *)memory, value);
}

u32 readl(const void *at) { return *(const u32 *)at; }
bool rashpa_device_reachable(struct rashpa_device *d) { return reachable; }
bool rashpa_profile_answers(struct rashpa_device *d) { return answers; }
void rashpa_hw_lock(struct rashpa_device *d) { mutex_lock(&d->hw_lock); }
u64 rashpa_engine_of(struct rashpa_device *d, u32 first, u32 n) { return 0; }
void rashpa_fetch_forget(struct rashpa_device *d, u32 entry) { }

/* ------------------------------------------------------------- layouts ---- */

static const struct rashpa_layout usual = {
	.stride = 32, .address_offset = 0, .address_bits = 64, .length_offset = 8,
	.length_bits = 64, .control_offset = 16, .control_bits = 32, .control_set = 1,
	.sum_offset = 24, .sum_bits = 64,
};

static const struct rashpa_layout narrow = {
	.stride = 20, .address_offset = 16, .address_bits = 32, .length_offset = 4,
	.length_bits = 32, .control_bits = 32, .control_set = 0x80000001, .control_clear = 0x10,
	.sum_offset = 8, .sum_bits = 32,
};

static const struct rashpa_layout no_control = {
	.stride = 12, .address_bits = 64, .length_offset = 8, .length_bits = 32,
};

static const struct rashpa_layout no_length = {
	.stride = 12, .address_bits = 64, .control_offset = 8, .control_bits = 32, .control_set = 7,
	.control_clear = 3, .segment_size = SZ_64K,
};

#define L(field)	offsetof(struct rashpa_layout, field), \
			sizeof(((struct rashpa_layout *)0)->field)

/* One value of the usual layout is changed. */
static const struct {
	size_t at, size;
	u64 value;
	const char *word;	/* NULL: the check accepts it */
} changes[] = {
	{ L(stride), 0, "stride of 0" }, { L(stride), 2, "stride of 2" },
	{ L(stride), 28, "field at 24" }, { L(stride), 36, NULL }, { L(stride), 4096, NULL },
	{ L(address_bits), 0, "address field of 0" }, { L(address_bits), 48, "of 48" },
	{ L(address_bits), 32, NULL }, { L(address_bits), ~0U, "address" },
	{ L(length_bits), 16, "length field of 16" }, { L(length_bits), 32, NULL },
	{ L(length_bits), 0, "segment_size of 0x0" },
	{ L(control_bits), 64, "control field of 64" },
	{ L(control_bits), 16, "of 16" }, { L(control_bits), 0, "offset" },
	{ L(sum_bits), 16, "sum field of 16" }, { L(sum_bits), 0, "offset" },
	{ L(sum_bits), 32, NULL },
	{ L(control_set), 0, "both 0x0" }, { L(control_clear), 1, "both 0x1" },
	{ L(control_clear), 2, NULL }, { L(segment_size), 4096, "must be 0" },
	{ L(flags), 4, "flag 0x4" }, { L(flags), 3, NULL },
	{ L(address_offset), 2, "field at 2" }, { L(address_offset), 28, "field at 28" },
	{ L(address_offset), 32, "field at 32" }, { L(address_offset), ~3U, "field at" },
	{ L(length_offset), 4, "overlap" }, { L(length_offset), 0, "overlap" },
	{ L(length_offset), 12, "overlap" }, { L(control_offset), 20, NULL },
	{ L(control_offset), 12, "overlap" }, { L(control_offset), 4, "overlap" },
	{ L(control_offset), 28, "overlap" }, { L(control_offset), 32, "field at 32" },
	{ L(control_offset), ~3U, "field at" }, { L(sum_offset), 20, NULL },
	{ L(sum_offset), 16, "overlap" }, { L(sum_offset), 12, "overlap" },
	{ L(sum_offset), 28, "field at 28" }, { L(sum_offset), 22, "field at 22" },
};

TEST(layouts, "invalid layouts are refused")
{
	struct rashpa_layout l;
	size_t i;

	ANSWERS(rashpa_layout_check(&call, &usual), 0, "");
	ANSWERS(rashpa_layout_check(&call, &narrow), 0, "");
	ANSWERS(rashpa_layout_check(&call, &no_control), 0, "");
	ANSWERS(rashpa_layout_check(&call, &no_length), 0, "");
	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		l = usual;
		memcpy((char *)&l + changes[i].at, &changes[i].value, changes[i].size);
		call.reason[0] = '\0';
		CHECK(rashpa_layout_check(&call, &l) == (changes[i].word ? -EINVAL : 0) &&
		      strstr(call.reason, changes[i].word ?: ""), "row %zu, value 0x%llx: \"%s\"",
		      i, changes[i].value, call.reason);
	}
	l = no_length;
	l.segment_size = 2048;
	ANSWERS(rashpa_layout_check(&call, &l), -EINVAL, "0x800");
	l.segment_size = 12288;
	ANSWERS(rashpa_layout_check(&call, &l), -EINVAL, "0x3000");
	l = no_control;
	l.length_bits = 0;
	l.length_offset = 0;
	l.segment_size = 4096;
	ANSWERS(rashpa_layout_check(&call, &l), -EINVAL, "neither");
}

/* ------------------------------------------------------------- entries ---- */

static const struct rashpa_segment none;
static const struct rashpa_segment one = { .address = 0x123456789000, .length = 0x6789a000 };

/* Check that each write, in order, is that of the row. */
static void wrote(const char *what, const u32 (*rows)[2], size_t n)
{
	size_t i;

	CHECK(n_writes == n, "%s: %zu writes instead of %zu", what, n_writes, n);
	for (i = 0; i < n && i < n_writes; i++)
		CHECK(writes[i].at == rows[i][0] && writes[i].value == rows[i][1],
		      "%s, write %zu: 0x%x at 0x%x instead of 0x%x at 0x%x", what, i,
		      writes[i].value, writes[i].at, rows[i][1], rows[i][0]);
	n_writes = 0;
}

#define WROTE(what, ...) do {						\
	static const u32 _rows[][2] = { __VA_ARGS__ };			\
	wrote(what, _rows, ARRAY_SIZE(_rows));				\
} while (0)

static const struct rashpa_layout upper_first = {
	.stride = 16, .address_bits = 64, .length_offset = 8, .length_bits = 64,
	.flags = RASHPA_LAYOUT_UPPER_FIRST,
};

/* Invalid, barrier, the rest, barrier, valid. */
TEST(entry, "an entry is written in order, and valid last")
{
	n_writes = 0;
	rashpa_entry_write(memory, &usual, &one, 0xabcdef0123);
	WROTE("64 bits", { 16, 0 }, { BARRIER, 0 }, { 0, 0x56789000 }, { 4, 0x1234 },
	      { 24, 0xcdef0123 }, { 28, 0xab }, { 8, 0x6789a000 }, { 12, 0 }, { BARRIER, 0 },
	      { 16, 1 });
	rashpa_entry_write(memory, &narrow, &one, 0x1000);
	WROTE("32 bits", { 0, 0x10 }, { BARRIER, 0 }, { 16, 0x56789000 }, { 8, 0x1000 },
	      { 4, 0x6789a000 }, { BARRIER, 0 }, { 0, 0x80000001 });
	rashpa_entry_write(memory, &no_control, &one, 0x1000);
	WROTE("without control", { 8, 0 }, { BARRIER, 0 }, { 0, 0x56789000 }, { 4, 0x1234 },
	      { BARRIER, 0 }, { 8, 0x6789a000 });
	rashpa_entry_write(memory, &no_length, &one, 0x1000);
	WROTE("without length", { 8, 3 }, { BARRIER, 0 }, { 0, 0x56789000 }, { 4, 0x1234 },
	      { BARRIER, 0 }, { 8, 7 });
	rashpa_entry_write(memory, &upper_first, &one, 0);
	WROTE("upper word first", { 12, 0 }, { 8, 0 }, { BARRIER, 0 }, { 4, 0x56789000 },
	      { 0, 0x1234 }, { BARRIER, 0 }, { 12, 0x6789a000 }, { 8, 0 });
}

TEST(entry_clear, "an entry is invalid before it is cleared")
{
	n_writes = 0;
	rashpa_entry_write(memory, &usual, &none, 0);
	WROTE("64 bits", { 16, 0 }, { BARRIER, 0 }, { 0, 0 }, { 4, 0 }, { 24, 0 }, { 28, 0 },
	      { 8, 0 }, { 12, 0 });
	rashpa_entry_write(memory, &narrow, &none, 0);
	WROTE("32 bits", { 0, 0x10 }, { BARRIER, 0 }, { 16, 0 }, { 8, 0 }, { 4, 0 });
	rashpa_entry_write(memory, &no_control, &none, 0);
	WROTE("without control", { 8, 0 }, { BARRIER, 0 }, { 0, 0 }, { 4, 0 });
	rashpa_entry_write(memory, &no_length, &none, 0);
	WROTE("without length", { 8, 3 }, { BARRIER, 0 }, { 0, 0 }, { 4, 0 });
}

/* All ones, or an absent function, mean that the writes were lost. */
TEST(flush, "a flush reports an absent function")
{
	static const struct { bool ones, reachable, answers; int err; } rows[] = {
		{ false, true, true, 0 }, { true, true, true, 0 }, { true, true, false, -EIO },
		{ false, true, false, 0 }, { false, false, true, -EIO },
		{ true, false, false, -EIO },
	};
	size_t i;

	dev.profile.layout = narrow;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		memory[4] = rows[i].ones ? ~0U : 0;
		reachable = rows[i].reachable;
		answers = rows[i].answers;
		CHECK(rashpa_entries_flush(&dev, 0) == rows[i].err, "row %zu", i);
	}
	/* a write-only table is not read: another register shows whether the function answers */
	dev.profile.layout.flags = RASHPA_LAYOUT_WRITE_ONLY;
	memory[4] = 0;
	reachable = true;
	answers = false;
	CHECK(rashpa_entries_flush(&dev, 0) == -EIO, "a write-only table was read");
	answers = true;
	CHECK(!rashpa_entries_flush(&dev, 0), "a function that answers");
}

/* ---------------------------------------------------------------- fits ---- */

static void segments(u32 n, u64 address, u64 length)
{
	u32 i;

	table->count = n;
	table->state = RASHPA_MAP_STATE_VALID;
	for (i = 0; i < n; i++)
		table->segment[i] = (struct rashpa_segment) { .address = address + i * length,
							      .length = length };
}

static int fits(void)
{
	struct rashpa_program_run run = { };

	return rashpa_program_fits(&call, &map, &run);
}

TEST(fits, "segments that are wider than their fields are refused")
{
	static const struct {
		const struct rashpa_layout *l;
		u32 n;
		u64 address, length;
		int err;
		const char *word;
	} rows[] = {
		{ &narrow, 1, 0xfffff000, 0x1000, 0, "" },
		{ &narrow, 1, 0xfffff000, 0x1001, -EOVERFLOW, "segment 0 is above" },
		{ &narrow, 2, 0xfffff000, 0x1000, -EOVERFLOW, "segment 1 is above" },
		{ &narrow, 1, 1ULL << 32, 0x1000, -EOVERFLOW, "segment 0 is above" },
		{ &narrow, 1, 0, 0xfffff000, 0, "" }, { &narrow, 1, 0, U32_MAX, 0, "" },
		{ &narrow, 1, 0, 1ULL << 32, -EOVERFLOW, "length field" },
		{ &no_control, 1, 1ULL << 40, U32_MAX, 0, "" },
		{ &no_control, 3, 1ULL << 40, 1ULL << 32, -EOVERFLOW, "segment 0 has 4 GiB" },
		{ &no_length, 3, 1ULL << 40, SZ_64K, 0, "" },
		{ &usual, 3, 1ULL << 40, 1ULL << 40, 0, "" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		segments(rows[i].n, rows[i].address, rows[i].length);
		dev.profile.layout = *rows[i].l;
		ANSWERS(fits(), rows[i].err, rows[i].word);
	}
	/* the sum of the last one does not count */
	dev.profile.layout = usual;
	dev.profile.layout.sum_bits = 32;
	segments(3, 0, 0x80000000);
	ANSWERS(fits(), -EOVERFLOW, "segment 2 is at offset 0x100000000");
	table->segment[1].length--;
	ANSWERS(fits(), 0, "");
	segments(2, 0, 0x80000000);
	ANSWERS(fits(), 0, "");
}

/* -------------------------------------------------------------- places ---- */

static int place(const struct rashpa_layout *l, u32 first, u64 length)
{
	struct rashpa_program p = { .first = first };
	int err;

	mutex_lock(&dev.lock);
	dev.profile.layout = *l;
	about.length = length;
	err = rashpa_program(&call, &map, &p, false);
	mutex_unlock(&dev.lock);
	CHECK(err || p.out_entries == table->count, "%u entries", p.out_entries);
	return err;
}

static void leave(void)
{
	mutex_lock(&dev.hw_lock);
	CHECK(!rashpa_unprogram(&map), "unprogram");
	mutex_unlock(&dev.hw_lock);
}

/* Entries for more than one batch, each with the sum of all before. */
TEST(batches, "entries are written in batches, and cleared")
{
	static const u32 numbers[] = { 1, BATCH - 1, BATCH, BATCH + 1, ENTRIES - 2 };
	u32 i, k;

	for (k = 0; k < ARRAY_SIZE(numbers); k++) {
		const u32 n = numbers[k];

		segments(n, 1ULL << 33, 0x3000);
		memset(memory, 0x55, sizeof(memory));
		ANSWERS(place(&usual, 2, ENTRIES * 32), 0, "");
		for (i = 0; i < n && tap_ok(); i++) {
			const u32 *e = &memory[(i + 2) * 8];
			const u64 sum = i * 0x3000ULL;

			CHECK((e[0] | (u64)e[1] << 32) == (1ULL << 33) + sum && e[2] == 0x3000 &&
			      !e[3] && e[4] == 1 && e[5] == 0x55555555 &&
			      (e[6] | (u64)e[7] << 32) == sum, "entry %u of %u", i, n);
		}
		leave();
		for (i = 0; i < n && tap_ok(); i++)
			CHECK(!memory[(i + 2) * 8] && !memory[(i + 2) * 8 + 4], "entry %u is left",
			      i);
		CHECK(memory[2 * 8 - 1] == 0x55555555 && memory[(n + 2) * 8] == 0x55555555,
		      "the next entry was written");
	}
}

TEST(range, "maps fill the table to its last entry")
{
	segments(4, 0, 0x1000);
	ANSWERS(place(&narrow, 0, 4 * 20), 0, "");
	ANSWERS(place(&narrow, 0, 4 * 20 - 1), -ERANGE,
		"4 segments from entry 0 on exceed the 3");
	ANSWERS(place(&narrow, 6, 10 * 20), 0, "");
	ANSWERS(place(&narrow, 7, 10 * 20), -ERANGE, "the 10 entries");
	ANSWERS(place(&narrow, 10, 10 * 20), -ERANGE, "entry 10");
	ANSWERS(place(&narrow, U32_MAX, 10 * 20), -ERANGE, "4294967295");
	CHECK(map.first == 6 && map.entries == 4, "a refused call moved it");
	leave();
	CHECK(!map.programmed && !map.entries && !map.place, "it is still there");
	table->state = RASHPA_MAP_STATE_REVOKED;
	ANSWERS(place(&narrow, 0, 10 * 20), -ESTALE, "revoked");
}

/* Two maps never share an entry; a map may be programmed again at its place. */
TEST(beside, "maps are not programmed over each other")
{
	struct rashpa_map other = { .dev = &dev, .first = 5, .place = 3 };
	static const struct { u32 first; int err; } rows[] = {
		{ 0, 0 }, { 3, 0 }, { 4, -EBUSY }, { 5, -EBUSY }, { 7, -EBUSY }, { 8, 0 },
		{ 7, -EBUSY },
		{ 8, 0 }, { 9, 0 },
	};
	size_t i;

	segments(2, 0, 0x1000);
	list_add(&map.entry, &dev.maps);
	list_add(&other.entry, &dev.maps);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		n_writes = 0;
		ANSWERS(place(&usual, rows[i].first, ENTRIES * 32), rows[i].err, "another map");
		CHECK(!n_writes == !!rows[i].err, "row %zu: %zu writes", i, n_writes);
	}
	CHECK(map.first == 9, "the map is at %u", map.first);
	leave();
	/* a map that is not programmed occupies no entry */
	other.place = 0;
	ANSWERS(place(&usual, 5, ENTRIES * 32), 0, "");
	leave();
	INIT_LIST_HEAD(&dev.maps);
}

/* A reset, or a revocation of the map, between two batches. */
TEST(meanwhile, "reset, revocation and loss between two batches")
{
	struct rashpa_program_run run = { .generation = 1, .resets = dev.resets };

	segments(2 * BATCH, 0, 0x1000);
	table->generation = 1;
	ANSWERS(place(&usual, 0, ENTRIES * 32), 0, "");
	mutex_lock(&dev.hw_lock);
	map.entries = BATCH;
	run.written = BATCH;
	run.generation = 2;
	ANSWERS(rashpa_program_more(&call, &map, &run), -ESTALE, "revoked");
	run.generation = 1;
	dev.resets++;
	ANSWERS(rashpa_program_more(&call, &map, &run), -ESTALE, "reset");
	dev.resets--;
	answers = false;
	reachable = false;
	ANSWERS(rashpa_program_more(&call, &map, &run), -EIO, "does not answer");
	CHECK(map.entries == 2 * BATCH, "the map forgot entries that may be valid");
	CHECK(rashpa_unprogram(&map) == -EIO && map.programmed && map.entries == 2 * BATCH,
	      "entries are forgotten that may be valid");
	answers = true;
	reachable = true;
	CHECK(!rashpa_unprogram(&map) && !map.programmed, "unprogram");
	mutex_unlock(&dev.hw_lock);
}

/* The whole table, with all its entries. */
TEST(table_clear, "the whole table is cleared")
{
	about.length = 3 * 20 + 19;
	dev.profile.layout = narrow;
	dev.profile.table_regs = memory + 1024 + 5;
	memset(memory, 0x55, sizeof(memory));
	mutex_lock(&dev.hw_lock);
	CHECK(!rashpa_table_clear(&dev), "it fails");
	mutex_unlock(&dev.hw_lock);
	CHECK(memory[1024 + 5] == 0x10 && memory[1024 + 15] == 0x10 && !memory[1024 + 19],
	      "entries");
	CHECK(memory[1024 + 4] == 0x55555555 && memory[1024 + 20] == 0x55555555, "the next entry was written");
}

void setup(void)
{
	table = calloc(1, sizeof(*table) + ENTRIES * sizeof(table->segment[0]));
	map.table = table;
	dev.profile.table_regs = memory;
	INIT_LIST_HEAD(&dev.maps);
	INIT_LIST_HEAD(&dev.reprogram);
	INIT_LIST_HEAD(&map.reprogram);
	INIT_LIST_HEAD(&map.stale);
}

void teardown(void)
{
	free(table);
}
