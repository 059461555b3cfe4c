// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Descriptors that a function fetches: checks of fields, bytes in memory, order of
 * registers.
 * test: tier=check where=root seconds=2 run=build/selftests/units/descriptors_unit
 */
#include "../../drivers/function/profile.c"
#include "../../drivers/function/descriptors.c"
#include "unit.h"
#include "layouts.h"

/* ------------------------------------------------------------ the rest ---- */

#define SEGMENTS	12000

static struct rashpa_device dev;
static struct pci_dev pdev;
static struct rashpa_table *table;
static struct rashpa_map map = { .dev = &dev };
static size_t piece_max = SIZE_MAX;	/* largest allocation of the DMA core */
static int pieces;			/* allocations that are not freed yet */
static size_t given;			/* bytes of these allocations */
static bool interrupted;

/* Bus addresses of two pieces never follow each other. */
void *dma_alloc_coherent(struct device *d, size_t size, dma_addr_t *bus, gfp_t gfp)
{
	static u64 next = 0x1200000000;

	if (size > piece_max)
		return NULL;
	*bus = next;
	next += ALIGN(size, SZ_1G) + SZ_1G;
	pieces++;
	given += size;
	return calloc(1, size);
}

void dma_free_coherent(struct device *d, size_t size, void *p, dma_addr_t bus)
{
	memset(p, 0xff, size);
	free(p);
	pieces--;
	given -= size;
}

void rashpa_path_flush(struct pci_dev *p) { }
bool signal_pending(struct task_struct *task) { return interrupted; }

int rashpa_charge_more(struct rashpa_call *c, struct rashpa_charge *charge, u64 bytes)
{
	charge->holding.memory += bytes;
	return 0;
}

void rashpa_charge_less(struct rashpa_charge *charge, u64 bytes) { charge->holding.memory = bytes; }

/* Registers are memory, and writes are logged. */
static char registers[SZ_4K];
static struct { u32 at, bytes; u64 value; } writes[32];
static size_t n_writes;
static int barriers;

void unit_barrier(void) { barriers++; }

static void written(void *at, u32 bytes, u64 value)
{
	writes[n_writes].at = (char *)at - registers;
	writes[n_writes].bytes = bytes;
	writes[n_writes++].value = value;
	CHECK(barriers, "a register is written before the ring can be seen");
}

u32 readl(const void *at) { return *(const u32 *)at; }
void writel(u32 value, void *at) { written(at, 4, value); }
void writeq(u64 value, void *at) { written(at, 8, value); }

/* ---------------------------------------------------------- profiles ---- */

#define FIELD(_kind, _offset, _bits, _shift, _width, ...) {			\
	.kind = RASHPA_FETCH_##_kind, .offset = (_offset), .bits = (_bits),	\
	.shift = (_shift), .width = (_width), __VA_ARGS__			\
}

static struct rashpa_fetch_field fields[RASHPA_FETCH_FIELDS_MAX];
static struct rashpa_fetch_field told[RASHPA_FETCH_REGISTERS_MAX];

static u32 fill(struct rashpa_fetch_field *to, const struct rashpa_fetch_field *from)
{
	u32 n = 0;

	memset(to, 0, sizeof(fields[0]) * RASHPA_FETCH_REGISTERS_MAX);
	for (; from[n].kind; n++)
		to[n] = from[n];
	return n;
}

static const struct rashpa_fetch_field usual[] = {
	FIELD(ADDRESS, 0, 64, 0, 64), FIELD(COUNT, 8, 32, 0, 32),
	FIELD(CONSTANT, 12, 32, 0, 32, .value = 1), { }
};

static struct rashpa_fetching plan(u32 size, u32 flags, const struct rashpa_fetch_field *f,
				   const struct rashpa_fetch_field *r)
{
	return (struct rashpa_fetching) {
		.about = { .stride = 32, .flags = flags, .descriptor_size = size,
			   .n_fields = fill(fields, f), .n_registers = fill(told, r) },
		.fields = fields, .registers = told,
	};
}

static const struct rashpa_fetch_field array[] = {
	FIELD(ADDRESS, 0, 64, 0, 64), FIELD(LENGTH, 8, 32, 0, 32),
	FIELD(CONSTANT, 12, 32, 0, 1, .value = 1),
	FIELD(CONSTANT, 12, 32, 1, 1, .value = 1, .flags = RASHPA_FIELD_LAST), { }
};

/* ------------------------------------------------------------- checks ---- */

/* One value of the array above, or its registers, is made wrong. */
#define F(field)	0, offsetof(struct rashpa_fetch, field), \
			sizeof(((struct rashpa_fetch *)0)->field)
#define D(n, field)	1 + (n), offsetof(struct rashpa_fetch_field, field), \
			sizeof(((struct rashpa_fetch_field *)0)->field)
#define R(n, field)	11 + (n), offsetof(struct rashpa_fetch_field, field), \
			sizeof(((struct rashpa_fetch_field *)0)->field)

static const struct {
	int part;	/* 0: about, 1 to 10: field 0 and so on, 11: register 0 and so on */
	size_t at, size;
	u64 value;
	const char *word;	/* NULL: the check accepts it */
} changes[] = {
	{ F(flags), 4, "flag 0x4" }, { F(flags), RASHPA_FETCH_PUSH, "a descriptor" },
	{ F(entries), 128, NULL }, { F(entries), 129, "129 entries of 128" },
	{ F(__reserved), 1, "reserved" }, { F(flags), RASHPA_FETCH_CLOSED, "closed" },
	{ F(stride), 4096, NULL }, { F(stride), 16, NULL }, { F(stride), 12, "register 2" },
	{ F(descriptor_size), 0, "0 bytes" }, { F(descriptor_size), 18, "18 bytes" },
	{ F(descriptor_size), 16, NULL }, { F(descriptor_size), 12, "field 2" },
	{ F(descriptor_size), 256, NULL }, { F(descriptor_size), 260, "260 bytes" },
	{ F(descriptor_size), ~0U, "bytes" }, { F(max_descriptors), 1 << 24, NULL },
	{ F(max_descriptors), (1 << 24) + 1, "16777217" },
	{ F(segment_size), 4096, "must be 0" },
	{ D(1, kind), 0, "field 1: kind 0" }, { D(1, kind), 9, "field 1: kind 9" },
	{ D(1, kind), RASHPA_FETCH_INDEX, "no length" }, { D(1, kind), RASHPA_FETCH_END, NULL },
	{ D(0, kind), RASHPA_FETCH_SUM, "no address" },
	{ D(1, flags), 16, "flags 0x10" }, { D(1, flags), RASHPA_FIELD_LAST, "flags" },
	{ D(1, flags), RASHPA_FIELD_MINUS_ONE, NULL },
	{ D(0, flags), RASHPA_FIELD_MINUS_ONE, "flags" },
	{ D(2, flags), RASHPA_FIELD_FIRST, NULL }, { D(2, flags), RASHPA_FIELD_NOT_LAST, NULL },
	{ D(2, flags), RASHPA_FIELD_FIRST | RASHPA_FIELD_LAST, "flags 0x6" },
	{ D(2, flags), RASHPA_FIELD_MINUS_ONE, "flags 0x1" },
	{ D(1, __reserved), 1, "reserved" }, { D(1, clear), 1, "reserved" },
	{ D(1, bits), 16, "16 bits" }, { D(1, bits), 0, "0 bits" }, { D(1, bits), 64, NULL },
	{ D(1, offset), 2, "unaligned" }, { D(0, offset), 4, "unaligned" },
	{ D(1, offset), 16, "16 bytes" },
	{ D(1, offset), ~3U, "not inside" }, { D(1, offset), 4, "overlaps" },
	{ D(1, width), 0, "0 bits" }, { D(1, width), 33, "33 bits" }, { D(1, width), ~0U, "bits" },
	{ D(1, shift), 1, "bit 1" }, { D(1, shift), 32, "bit 32" }, { D(2, shift), 1, "overlaps" },
	{ D(2, shift), 31, NULL }, { D(2, shift), 32, "bit 32" }, { D(2, width), 2, "overlaps" },
	{ D(2, shift), ~0U, "field 2" }, { D(1, unit), 63, NULL }, { D(1, unit), 64, "2^64" },
	{ D(2, unit), 1, "2^1" }, { D(1, value), 1, "value 0x1" }, { D(2, value), 2, "0x2" },
	{ D(2, value), 0, NULL }, { D(0, value), 1, "field 0" },
	{ R(1, kind), RASHPA_FETCH_NEXT, "register 1: kind 5" },
	{ R(1, kind), RASHPA_FETCH_SUM, "register 1: kind 4" },
	{ R(1, kind), RASHPA_FETCH_INDEX, "register 1: kind 6" },
	{ R(1, kind), RASHPA_FETCH_LENGTH, NULL },
	{ R(0, kind), RASHPA_FETCH_COUNT, "no register" },
	{ R(1, flags), RASHPA_FIELD_MINUS_ONE, NULL }, { R(2, flags), RASHPA_FIELD_FIRST, "flags" },
	{ R(1, offset), 32, "not inside 32" }, { R(1, clear), U32_MAX, NULL },
	{ R(1, clear), 1ULL << 32, "clear" }, { R(0, clear), 1ULL << 32, NULL },
	{ R(2, offset), 8, NULL }, { R(1, kind), RASHPA_FETCH_END, "register 1: kind 8" },
	{ R(1, flags), RASHPA_FIELD_KEEP, NULL }, { R(1, flags), RASHPA_FIELD_ENTRY, "flags 0x20" },
	{ R(2, flags), RASHPA_FIELD_ENTRY, "for each of 128" },
};

TEST(checks, "invalid fields and registers are refused")
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		struct rashpa_fetching f = plan(16, 0, array, usual);
		const int part = changes[i].part;
		char *to = !part ? (char *)&f.about : (char *)(part > 10 ? &told[part - 11] :
							       &fields[part - 1]);

		memcpy(to + changes[i].at, &changes[i].value, changes[i].size);
		call.reason[0] = '\0';
		CHECK(rashpa_fetch_check(&call, &f, SZ_4K) == (changes[i].word ? -EINVAL : 0) &&
		      strstr(call.reason, changes[i].word ?: ""), "row %zu, value 0x%llx: \"%s\"",
		      i, changes[i].value, call.reason);
	}
}

/* Values that are wrong only in combination. */
TEST(checks_together, "values that are wrong only in combination are refused")
{
	static const struct rashpa_fetch_field chain[] = {
		FIELD(ADDRESS, 0, 64, 0, 64), FIELD(NEXT, 8, 64, 0, 64), { } };
	static const struct rashpa_fetch_field parts[] = {
		FIELD(ADDRESS, 0, 64, 0, 64),
		FIELD(LENGTH, 8, 32, 0, 16, .flags = RASHPA_FIELD_MINUS_ONE),
		FIELD(LENGTH, 8, 32, 16, 16, .unit = 16), { } };
	static const struct rashpa_fetch_field clears[] = {
		FIELD(ADDRESS, 0, 64, 0, 64), FIELD(COUNT, 8, 32, 0, 16, .clear = 7),
		FIELD(CONSTANT, 8, 32, 16, 1, .clear = 7), { } };
	struct rashpa_fetching f = plan(16, RASHPA_FETCH_CLOSED, chain, usual);

	f.about.segment_size = 4096;
	ANSWERS(rashpa_fetch_check(&call, &f, SZ_4K), 0, "");
	CHECK(f.chained, "it is a chain");
	f.about.segment_size = 2048;
	ANSWERS(rashpa_fetch_check(&call, &f, SZ_4K), -EINVAL, "0x800");
	f.about.segment_size = 12288;
	ANSWERS(rashpa_fetch_check(&call, &f, SZ_4K), -EINVAL, "0x3000");
	f = plan(16, 0, parts, usual);
	ANSWERS(rashpa_fetch_check(&call, &f, SZ_4K), -EINVAL, "another part");
	CHECK(!f.chained, "it is no chain");
	fields[1].unit = 16;
	fields[2].unit = 0;
	ANSWERS(rashpa_fetch_check(&call, &f, SZ_4K), -EINVAL, "another part");
	/* a copy is not another part */
	fields[1].unit = 0;
	ANSWERS(rashpa_fetch_check(&call, &f, SZ_4K), 0, "");
	f = plan(16, 0, array, parts);
	ANSWERS(rashpa_fetch_check(&call, &f, SZ_4K), -EINVAL, "register 1: one less");
	f = plan(16, 0, array, clears);
	ANSWERS(rashpa_fetch_check(&call, &f, SZ_4K), -EINVAL, "register 2: set clear");
	told[2].clear = 0;
	ANSWERS(rashpa_fetch_check(&call, &f, SZ_4K), 0, "");
	/* the last bit of the largest descriptor */
	f = plan(RASHPA_DESCRIPTOR_SIZE_MAX, 0, array, usual);
	fields[2].offset = RASHPA_DESCRIPTOR_SIZE_MAX - 4;
	fields[2].shift = 31;
	ANSWERS(rashpa_fetch_check(&call, &f, SZ_4K), 0, "");
	fields[3] = fields[2];
	ANSWERS(rashpa_fetch_check(&call, &f, SZ_4K), -EINVAL, "field 3: overlaps");
}

TEST(copy, "a profile is copied")
{
	struct rashpa_fetching from = plan(16, 0, array, usual);
	struct rashpa_profile to = { };
	struct rashpa_profile_table t = { .fetch = (uintptr_t)&from.about,
					  .fetch_size = sizeof(from.about) };

	from.about.fields = (uintptr_t)fields;
	from.about.registers = (uintptr_t)told;
	from.about.field_size = sizeof(fields[0]);
	from.about.register_size = sizeof(told[0]);
	ANSWERS(rashpa_table_fetch(&call, &t, &to), 0, "");
	CHECK(!memcmp(to.fetch.fields, fields, 4 * sizeof(fields[0])) &&
	      !memcmp(to.fetch.registers, told, 3 * sizeof(told[0])), "they differ");
	kvfree(to.fetch.fields);
	kvfree(to.fetch.registers);
	from.about.n_fields = 0;
	ANSWERS(rashpa_table_fetch(&call, &t, &to), -EINVAL, "0 fields");
	from.about.n_fields = ~0U;
	ANSWERS(rashpa_table_fetch(&call, &t, &to), -EINVAL, "fields");
	from.about.n_fields = 33;
	ANSWERS(rashpa_table_fetch(&call, &t, &to), -EINVAL, "33 fields");
	from.about.n_fields = 32;
	from.about.n_registers = 0;
	ANSWERS(rashpa_table_fetch(&call, &t, &to), -EINVAL, "0 parts");
	from.about.n_registers = 17;
	ANSWERS(rashpa_table_fetch(&call, &t, &to), -EINVAL, "17 parts");
}

/* --------------------------------------------------------------- bits ---- */

TEST(bits, "fields shift, divide and subtract one, or lose bits")
{
	static const struct {
		struct rashpa_fetch_field f;
		u64 value, word;
		bool lost;
	} rows[] = {
		{ FIELD(LENGTH, 0, 32, 0, 32), 0xffffffff, 0xffffffff, false },
		{ FIELD(LENGTH, 0, 32, 0, 32), 0x100000000, 0, true },
		{ FIELD(LENGTH, 0, 64, 0, 64), U64_MAX, U64_MAX, false },
		{ FIELD(LENGTH, 0, 32, 4, 8), 0xff, 0xff0, false },
		{ FIELD(LENGTH, 0, 32, 4, 8), 0x100, 0, true },
		{ FIELD(LENGTH, 0, 32, 31, 1), 1, 1U << 31, false },
		{ FIELD(LENGTH, 0, 64, 63, 1), 1, 1ULL << 63, false },
		{ FIELD(LENGTH, 0, 32, 0, 8, .unit = 12), 0xff000, 0xff, false },
		{ FIELD(LENGTH, 0, 32, 0, 8, .unit = 12), 0xff001, 0xff, true },
		{ FIELD(LENGTH, 0, 32, 0, 8, .unit = 12), 0x100000, 0, true },
		{ FIELD(LENGTH, 0, 64, 0, 1, .unit = 63), 1ULL << 63, 1, false },
		{ FIELD(LENGTH, 0, 32, 8, 8, .flags = RASHPA_FIELD_MINUS_ONE), 256, 0xff00, false },
		{ FIELD(LENGTH, 0, 32, 8, 8, .flags = RASHPA_FIELD_MINUS_ONE), 1, 0, false },
		{ FIELD(LENGTH, 0, 32, 8, 8, .flags = RASHPA_FIELD_MINUS_ONE), 257, 0, true },
		{ FIELD(LENGTH, 0, 32, 8, 8, .flags = RASHPA_FIELD_MINUS_ONE), 0, 0xff00, true },
		{ FIELD(LENGTH, 0, 32, 0, 4, .unit = 12, .flags = RASHPA_FIELD_MINUS_ONE), 0x10000,
		  15, false },
	};
	struct rashpa_values v = { };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		u64 is;

		v.of[RASHPA_FETCH_LENGTH] = rows[i].value;
		is = rashpa_field_bits(&rows[i].f, &v);
		CHECK(is == rows[i].word, "row %zu: 0x%llx instead of 0x%llx", i, is, rows[i].word);
		CHECK(rashpa_fields_lost(&rows[i].f, 1, &v) ==
		      (rows[i].lost ? RASHPA_FETCH_LENGTH : 0), "row %zu: lost", i);
	}
}

/* Constants of some descriptors. */
TEST(some, "constants go into the first, the last, all but the last")
{
	static const u32 flags[] = { 0, RASHPA_FIELD_FIRST, RASHPA_FIELD_LAST,
				     RASHPA_FIELD_NOT_LAST };
	/* by flag: the first of several, one in the middle, the last, the only one */
	static const bool there[][4] = { { 1, 1, 1, 1 }, { 1, 0, 0, 1 }, { 0, 0, 1, 1 },
					 { 1, 1, 0, 0 } };
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(flags); i++)
		for (j = 0; j < 4; j++) {
			const struct rashpa_fetch_field f = FIELD(CONSTANT, 0, 32, 4, 4, .value = 9,
								  .flags = flags[i]);
			const struct rashpa_values v = { .first = j == 0 || j == 3, .last = j > 1 };

			CHECK(rashpa_field_bits(&f, &v) == (there[i][j] ? 0x90 : 0), "%zu, %zu", i,
			      j);
		}
}

/* An address in several fields: each bit that one leaves out needs another field. */
TEST(parts, "an address in several fields loses no bit")
{
	struct rashpa_fetch_field f[] = {
		FIELD(ADDRESS, 0, 32, 0, 20, .unit = 12), FIELD(ADDRESS, 4, 32, 0, 16, .unit = 32),
		FIELD(ADDRESS, 8, 32, 0, 20, .unit = 12), FIELD(CONSTANT, 12, 32, 0, 1, .value = 1),
	};
	struct rashpa_values v = { .of[RASHPA_FETCH_ADDRESS] = 0x123456789000 };

	CHECK(!rashpa_fields_lost(f, 4, &v), "all of it is there");
	v.of[RASHPA_FETCH_ADDRESS] |= 1ULL << 48;
	CHECK(rashpa_fields_lost(f, 4, &v) == RASHPA_FETCH_ADDRESS, "above");
	v.of[RASHPA_FETCH_ADDRESS] = 0x123456789800;
	CHECK(rashpa_fields_lost(f, 4, &v) == RASHPA_FETCH_ADDRESS, "below");
	v.of[RASHPA_FETCH_ADDRESS] = 0x123456789000;
	f[1].unit = 33;
	CHECK(rashpa_fields_lost(f, 4, &v) == RASHPA_FETCH_ADDRESS, "a bit between");
	f[1].unit = 32;
	f[1].kind = RASHPA_FETCH_LENGTH;
	CHECK(rashpa_fields_lost(f, 4, &v) == RASHPA_FETCH_ADDRESS, "a part of something else");
}

/* -------------------------------------------------------------- memory ---- */

static void expect_chain(const struct want *w, u8 *d)
{
	le(d, 0, w->address, 8);
	le(d, 8, w->next, 8);
	le(d, 16, w->length, 4);
	le(d, 20, w->i, 4);
}

static const struct way {
	const char *what;
	u32 size, flags;
	struct rashpa_fetch_field fields[10];
	void (*expect)(const struct want *w, u8 *d);
} ways[] = {
	{ "an array", 16, 0, { FIELDS_ARRAY }, expect_array },
	{ "packed words", 8, 0, { FIELDS_PACKED }, expect_packed },
	{ "an open chain with numbers", 32, 0, { FIELDS_ODD }, expect_odd },
	{ "a closed chain with numbers", 32, RASHPA_FETCH_CLOSED, { FIELDS_ODD }, expect_odd },
	{ "descriptors of 12 bytes", 12, 0, { FIELDS_THREE }, expect_three },
	{ "a closed chain of 24 bytes", 24, RASHPA_FETCH_CLOSED, {
		FIELD(ADDRESS, 0, 64, 0, 64), FIELD(NEXT, 8, 64, 0, 64),
		FIELD(LENGTH, 16, 32, 0, 32), FIELD(INDEX, 20, 32, 0, 32),
	}, expect_chain },
};

static void segments(u32 n)
{
	u32 i;

	table->count = n;
	map.room = n;
	for (i = 0; i < n; i++)
		table->segment[i] = (struct rashpa_segment) {
			.address = 0x12345000000 + i * 0x7000ULL, .length = 0x1000 << i % 4 };
}

static int room(const struct way *way)
{
	dev.profile.fetch = plan(way->size, way->flags, way->fields, usual);
	ANSWERS(rashpa_fetch_check(&call, &dev.profile.fetch, SZ_4K), 0, "");
	mutex_lock(&map.lock);
	return rashpa_fetch_room(&call, &map, &dev.profile.fetch);
}

static void done(void)
{
	mutex_unlock(&map.lock);
	rashpa_fetch_end(&map);
	CHECK(!pieces && !given && !map.ring, "memory was not given back");
	map.charge.holding.memory = 0;
}

static void *descriptor(const struct rashpa_descriptors *ring, u32 i)
{
	return (char *)ring->piece[i / ring->per].cpu + i % ring->per * ring->size;
}

static int fits_all(u32 n)
{
	u64 sum = 0;
	int err = 0;
	u32 i;

	for (i = 0; i < n && !err; i++) {
		err = rashpa_fetch_fits(&call, &map, i, sum);
		sum += table->segment[i].length;
	}
	return err;
}

static void write_all(u64 *sum)
{
	u32 i;

	*sum = 0;
	for (i = 0; i < table->count; i++) {
		rashpa_fetch_write(&map, i, *sum);
		*sum += table->segment[i].length;
	}
}

/* All descriptors, compared byte by byte. */
static void compare(const struct way *way, u32 n)
{
	struct rashpa_descriptors *ring;
	struct want w = { .n = n };
	u64 sum;
	u8 wanted[32];

	segments(n);
	ANSWERS(room(way), 0, "");
	ring = map.ring;
	mutex_lock(&dev.hw_lock);
	ANSWERS(fits_all(n), 0, "");
	write_all(&sum);
	CHECK(ring->written == n, "%u written", ring->written);
	for (w.i = 0; w.i < n && tap_ok(); w.i++) {
		const struct rashpa_segment *s = &table->segment[w.i];
		const u64 next = w.i + 1 < n ? w.i + 1 : 0;

		w.address = s->address;
		w.length = s->length;
		w.next = !next && !(way->flags & RASHPA_FETCH_CLOSED) ? 0 :
			 ring->piece[next / ring->per].bus + next % ring->per * way->size;
		way->expect(&w, wanted);
		CHECK(!memcmp(descriptor(ring, w.i), wanted, way->size),
		      "descriptor %llu of %u in %u pieces", w.i, n, ring->n_pieces);
		w.sum += w.length;
	}
	CHECK(sum == w.sum, "the sum");
	rashpa_fetch_clear(&map);
	CHECK(!ring->written, "%u are left", ring->written);
	memset(wanted, 0, sizeof(wanted));
	for (w.i = 0; w.i < n; w.i++)
		CHECK(!memcmp(descriptor(ring, w.i), wanted, way->size),
		      "descriptor %llu was not cleared", w.i);
	mutex_unlock(&dev.hw_lock);
	done();
}

TEST(memory, "descriptors agree with their description, then are cleared")
{
	static const u32 numbers[] = { 1, 2, 3, 341, 342, SEGMENTS };
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		for (j = 0; j < ARRAY_SIZE(numbers); j++)
			compare(&ways[i], numbers[j]);
		if (!tap_ok())
			tap_note("%s", ways[i].what);
	}
}

/* Without larger memory, chains may be in pieces, down to a page. */
TEST(pieces, "rings in pieces, rings without memory")
{
	/* pieces that are cleared in several steps */
	piece_max = 2 * SZ_64K;
	compare(&ways[5], SEGMENTS);
	ANSWERS(room(&ways[5]), 0, "");
	CHECK(pieces == 3 && given == 3 * PAGE_ALIGN(SEGMENTS / 3 * 24), "%zu bytes", given);
	done();
	piece_max = PAGE_SIZE;
	compare(&ways[3], SEGMENTS);
	compare(&ways[2], 128);
	compare(&ways[2], 129);
	segments(SEGMENTS);
	ANSWERS(room(&ways[3]), 0, "");
	CHECK(pieces == DIV_ROUND_UP(SEGMENTS, 128) && given == PAGE_ALIGN(SEGMENTS * 32),
	      "%zu bytes in %d pieces", given, pieces);
	CHECK(map.charge.holding.memory == PAGE_ALIGN(SEGMENTS * 32), "charged with %llu",
	      map.charge.holding.memory);
	done();
	/* and nothing else */
	ANSWERS(room(&ways[0]), -ENOMEM, "in one piece");
	CHECK(!map.ring && !pieces && !map.charge.holding.memory, "something is left");
	mutex_unlock(&map.lock);
	piece_max = PAGE_SIZE - 1;
	ANSWERS(room(&ways[3]), -ENOMEM, "12000 descriptors");
	CHECK(!map.ring && !pieces && !map.charge.holding.memory, "something is left");
	mutex_unlock(&map.lock);
	piece_max = SIZE_MAX;
	interrupted = true;
	CHECK(room(&ways[3]) == -EINTR && !pieces && !map.charge.holding.memory, "a signal");
	mutex_unlock(&map.lock);
	interrupted = false;
}

TEST(most, "the profile limits the descriptors of a ring")
{
	segments(SEGMENTS);
	dev.profile.fetch = plan(16, 0, array, usual);
	dev.profile.fetch.about.max_descriptors = SEGMENTS - 1;
	mutex_lock(&map.lock);
	ANSWERS(rashpa_fetch_room(&call, &map, &dev.profile.fetch), -E2BIG, "12000 segments");
	dev.profile.fetch.about.max_descriptors = SEGMENTS;
	ANSWERS(rashpa_fetch_room(&call, &map, &dev.profile.fetch), 0, "");
	ANSWERS(rashpa_fetch_room(&call, &map, &dev.profile.fetch), 0, "");
	CHECK(pieces == 1, "a second ring");
	done();
}

/* ---------------------------------------------------------------- fits ---- */

static void fits(const struct way *way, u32 i, u64 address, u64 length, int err, const char *word)
{
	segments(4);
	table->segment[i].address = address;
	table->segment[i].length = length;
	ANSWERS(room(way), 0, "");
	mutex_lock(&dev.hw_lock);
	ANSWERS(fits_all(4), err, word);
	mutex_unlock(&dev.hw_lock);
	done();
}

TEST(fits, "segments that do not fit into descriptors are refused")
{
	fits(&ways[0], 2, 0x1000, U32_MAX, 0, "");
	fits(&ways[0], 2, 0, 1ULL << 32, -EOVERFLOW, "descriptor 2: a length");
	fits(&ways[1], 3, 0x1000, 4096 * 2048, 0, "");
	fits(&ways[1], 3, 0x1000, 4096 * 2049, -EOVERFLOW, "descriptor 3: a length");
	fits(&ways[1], 0, 0x1800, 4096, -EOVERFLOW, "descriptor 0: an address");
	fits(&ways[1], 0, 0x1000, 4100, -EOVERFLOW, "a length");
	fits(&ways[4], 0, 1ULL << 60, 4096, -EOVERFLOW, "an address is");
	fits(&ways[4], 0, (1ULL << 60) - 4096, 4096, 0, "");
	/* the sum of all segments before */
	fits(&ways[4], 3, 0, 0xffff000, 0, "");
	segments(3);
	table->segment[0].length = 1ULL << 32;
	table->segment[1].length = 1ULL << 44;
	dev.profile.fetch = plan(12, 0, ways[4].fields, usual);
	fields[2].width = 32;
	fields[2].offset = 12;
	fields[2].shift = 0;
	dev.profile.fetch.about.descriptor_size = 16;
	mutex_lock(&map.lock);
	ANSWERS(rashpa_fetch_check(&call, &dev.profile.fetch, SZ_4K), 0, "");
	ANSWERS(rashpa_fetch_room(&call, &map, &dev.profile.fetch), 0, "");
	mutex_lock(&dev.hw_lock);
	ANSWERS(fits_all(1), 0, "");
	ANSWERS(fits_all(2), -EOVERFLOW,
		"descriptor 1: a length");
	table->segment[1].length = (1ULL << 44) - PAGE_SIZE;
	ANSWERS(fits_all(3), -EOVERFLOW,
		"descriptor 2: a sum");
	mutex_unlock(&dev.hw_lock);
	done();
}

/* ----------------------------------------------------------- registers ---- */

/* Words in order, each once, with all its fields; then cleared from the last to the first. */
TEST(registers, "registers are written in order, and cleared in reverse")
{
	static const struct rashpa_fetch_field some[] = {
		FIELD(ADDRESS, 0, 32, 0, 32), FIELD(ADDRESS, 4, 32, 0, 32, .unit = 32),
		FIELD(LENGTH, 8, 32, 0, 16, .unit = 4, .clear = 0xc1),
		FIELD(COUNT, 8, 32, 16, 8, .flags = RASHPA_FIELD_MINUS_ONE),
		FIELD(CONSTANT, 8, 32, 31, 1, .value = 1),
		FIELD(CONSTANT, 16, 64, 60, 4, .value = 5, .clear = 1ULL << 40), { }
	};
	u64 bus, sum;

	segments(3);
	dev.profile.fetch = plan(16, 0, array, some);
	ANSWERS(rashpa_fetch_check(&call, &dev.profile.fetch, SZ_4K), 0, "");
	mutex_lock(&map.lock);
	ANSWERS(rashpa_fetch_room(&call, &map, &dev.profile.fetch), 0, "");
	bus = map.ring->piece[0].bus;
	mutex_lock(&dev.hw_lock);
	ANSWERS(rashpa_fetch_fits(&call, &map, 0, 0), 0, "");
	write_all(&sum);
	n_writes = 0;
	barriers = 0;
	rashpa_fetch_point(&map, 0, 0);
	CHECK(n_writes == 4, "%zu writes", n_writes);
	CHECK(writes[0].at == 0 && writes[0].value == (u32)bus && writes[1].at == 4 &&
	      writes[1].value == bus >> 32, "the address");
	CHECK(writes[2].at == 8 && writes[2].bytes == 4 &&
	      writes[2].value == (3 * 16 / 16 | 2 << 16 | 1U << 31), "0x%llx", writes[2].value);
	CHECK(writes[3].at == 16 && writes[3].bytes == 8 && writes[3].value == 5ULL << 60, "0x%llx",
	      writes[3].value);
	n_writes = 0;
	rashpa_fetch_forget(&dev, 0);
	CHECK(n_writes == 4 && writes[0].at == 16 && writes[0].value == 1ULL << 40 &&
	      writes[1].at == 8 && writes[1].value == 0xc1 && writes[2].at == 4 &&
	      !writes[2].value && !writes[3].at && !writes[3].value, "not cleared");
	/* values that do not fit */
	told[3].width = 1;
	ANSWERS(rashpa_fetch_fits(&call, &map, 0, 0), -EOVERFLOW, "the number of descriptors");
	told[3].width = 8;
	told[1].width = 4;
	ANSWERS(rashpa_fetch_fits(&call, &map, 0, 0), -EOVERFLOW, "an address of the ring");
	mutex_unlock(&dev.hw_lock);
	done();
}

/* A FIFO for descriptors (LitePCIe), and a bit for each entry (Wupper). */
TEST(push, "segments are pushed one after the other")
{
	static const struct rashpa_fetch_field fifo[] = {
		FIELD(CONSTANT, 28, 32, 0, 32, .value = 1, .flags = RASHPA_FIELD_FIRST, .clear = 1),
		FIELD(LENGTH, 0, 32, 0, 24), FIELD(CONSTANT, 0, 32, 24, 8, .value = 2),
		FIELD(ADDRESS, 4, 32, 0, 32, .unit = 12), FIELD(END, 8, 64, 0, 64),
		FIELD(CONSTANT, 12, 32, 0, 32, .value = 1, .flags = RASHPA_FIELD_KEEP),
		FIELD(CONSTANT, 0x400, 32, 0, 1, .value = 1,
		      .flags = RASHPA_FIELD_ENTRY | RASHPA_FIELD_LAST), { }
	};
	const u32 at = 3 * 32;
	u64 address;

	segments(2);
	map.first = 3;
	dev.profile.fetch = plan(0, RASHPA_FETCH_PUSH, &fifo[ARRAY_SIZE(fifo) - 1], fifo);
	dev.profile.fetch.fields = NULL;
	dev.profile.fetch.about.entries = 8;
	dev.profile.fetch.about.max_descriptors = 2;
	ANSWERS(rashpa_fetch_check(&call, &dev.profile.fetch, SZ_4K), 0, "");
	mutex_lock(&dev.hw_lock);
	ANSWERS(rashpa_fetch_fits(&call, &map, 0, 0), 0, "");
	n_writes = 0;
	address = table->segment[0].address;
	*(u32 *)(registers + 0x400) = 0x81;
	rashpa_fetch_point(&map, 0, 0);
	CHECK(n_writes == 5 && writes[0].at == at + 28 && writes[0].value == 1, "%zu writes",
	      n_writes);
	CHECK(writes[1].at == at && writes[1].value == (0x1000 | 2 << 24), "length and flags");
	CHECK(writes[2].at == at + 4 && writes[2].value == (u32)(address >> 12), "address");
	CHECK(writes[3].value == address + 0x1000 && writes[3].bytes == 8, "end");
	CHECK(writes[4].at == at + 12 && writes[4].value == 1, "the word that pushes");
	n_writes = 0;
	rashpa_fetch_point(&map, 1, 0x1000);
	CHECK(n_writes == 5 && writes[0].at == at && writes[4].at == 0x400 &&
	      writes[4].value == 0x89, "bit 3 is set at the end, not 0x%llx", writes[4].value);
	n_writes = 0;
	*(u32 *)(registers + 0x400) = 0x89;
	rashpa_fetch_forget(&dev, 3);
	CHECK(n_writes == 5 && writes[0].at == 0x400 && writes[0].value == 0x81 &&
	      writes[4].at == at + 28 && writes[4].value == 1, "cleared, but nothing is pushed");
	/* deeper than the FIFO; an address that its field cannot hold */
	table->segment[1].address = 0x12345678;
	ANSWERS(rashpa_fetch_fits(&call, &map, 1, 0), -EOVERFLOW, "an address");
	segments(3);
	ANSWERS(rashpa_fetch_fits(&call, &map, 0, 0), -E2BIG, "3 segments");
	mutex_unlock(&dev.hw_lock);
	/* what only the registers of segments may be */
	told[1].flags = RASHPA_FIELD_LAST;
	ANSWERS(rashpa_fetch_check(&call, &dev.profile.fetch, SZ_4K), -EINVAL, "flags");
	told[1].flags = 0;
	told[2].flags = RASHPA_FIELD_LAST;
	ANSWERS(rashpa_fetch_check(&call, &dev.profile.fetch, SZ_4K), -EINVAL, "register 2: all");
	told[2].flags = 0;
	told[6].shift = 25;
	ANSWERS(rashpa_fetch_check(&call, &dev.profile.fetch, SZ_4K), -EINVAL, "each of 8");
	told[6].shift = 0;
	told[6].offset = SZ_4K;
	ANSWERS(rashpa_fetch_check(&call, &dev.profile.fetch, SZ_4K), -EINVAL, "not inside 4096");
	map.first = 0;
}

/* A table of descriptors in a BAR: an entry for each segment. */
TEST(spread, "segments are spread over entries")
{
	static const struct rashpa_fetch_field entry[] = {
		FIELD(ADDRESS, 0, 64, 0, 64),
		FIELD(LENGTH, 8, 32, 0, 32, .flags = RASHPA_FIELD_MINUS_ONE),
		FIELD(CONSTANT, 12, 32, 0, 1, .value = 1),
		FIELD(CONSTANT, 12, 32, 1, 1, .value = 1, .flags = RASHPA_FIELD_LAST), { }
	};
	u32 i;

	segments(3);
	map.first = 5;
	dev.profile.fetch = plan(0, RASHPA_FETCH_PUSH, &entry[ARRAY_SIZE(entry) - 1], entry);
	dev.profile.fetch.fields = NULL;
	ANSWERS(rashpa_fetch_check(&call, &dev.profile.fetch, SZ_4K), -EINVAL, "register 3: all");
	dev.profile.fetch.about.flags = RASHPA_FETCH_SPREAD;
	ANSWERS(rashpa_fetch_check(&call, &dev.profile.fetch, SZ_4K), -EINVAL, "flag 0x4");
	dev.profile.fetch.about.flags |= RASHPA_FETCH_PUSH;
	ANSWERS(rashpa_fetch_check(&call, &dev.profile.fetch, SZ_4K), 0, "");
	mutex_lock(&dev.hw_lock);
	for (i = 0; i < 3; i++) {
		const u32 at = (5 + i) * 32;

		n_writes = 0;
		rashpa_fetch_point(&map, i, 0);
		CHECK(n_writes == 3 && writes[0].at == at &&
		      writes[0].value == table->segment[i].address, "address of entry %u", i);
		CHECK(writes[1].at == at + 8 && writes[1].value == table->segment[i].length - 1,
		      "length of entry %u", i);
		CHECK(writes[2].at == at + 12 && writes[2].value == (i == 2 ? 3 : 1),
		      "flags 0x%llx of entry %u", writes[2].value, i);
	}
	mutex_unlock(&dev.hw_lock);
	map.first = 0;
}

void setup(void)
{
	table = calloc(1, sizeof(*table) + SEGMENTS * sizeof(table->segment[0]));
	map.table = table;
	dev.pdev = &pdev;
	dev.profile.table_regs = registers;
	dev.profile.layout.stride = 32;
}

void teardown(void)
{
	free(table);
}
