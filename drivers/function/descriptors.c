// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: rings of descriptors in host memory, for functions that fetch their addresses.
 *
 * A process that can write a descriptor can make the function write anywhere. So only the kernel
 * accesses a ring: no file maps it and no dma-buf exports it. A map has at most one ring, with
 * room for all segments that it can ever have, so programming it again allocates nothing. The
 * ring is freed with the mapping, after the stop that ends both.
 *
 * A ring can have half a GiB. It is allocated and zeroed under the lock of the map only, so other
 * users of the function do not wait.
 */
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "function/map.h"

/* Largest piece of a chained ring: larger ones gain nothing and are harder to allocate. */
#define RASHPA_PIECE_MAX	SZ_4M

/* Ring of a map. */
struct rashpa_descriptors {
	u32 size;	/* bytes of a descriptor */
	u32 per;	/* descriptors of each piece */
	u32 written;	/* number of written descriptors, counted from the first one (hw_lock) */
	u32 n_pieces;	/* number of allocated pieces */
	struct rashpa_ring_piece {
		void *cpu;
		dma_addr_t bus;
	} piece[];	/* allocations that are contiguous for the function */
};

/* --------------------------------------------------------- fields ---- */

/* Values for the fields of one descriptor or of the registers, by enum rashpa_fetch_kind. */
struct rashpa_values {
	u64 of[RASHPA_FETCH_END + 1];
	bool first;
	bool last;
};

static bool rashpa_field_absent(const struct rashpa_fetch_field *f, const struct rashpa_values *v)
{
	return (f->flags & RASHPA_FIELD_FIRST && !v->first) ||
	       (f->flags & RASHPA_FIELD_LAST && !v->last) ||
	       (f->flags & RASHPA_FIELD_NOT_LAST && v->last);
}

/* Bits of the field, shifted to their place in the word. */
static u64 rashpa_field_bits(const struct rashpa_fetch_field *f, const struct rashpa_values *v)
{
	u64 value = f->kind == RASHPA_FETCH_CONSTANT ? f->value : v->of[f->kind];

	if (rashpa_field_absent(f, v))
		return 0;
	value = (value >> f->unit) - !!(f->flags & RASHPA_FIELD_MINUS_ONE);
	return (value & rashpa_field_mask(f)) << f->shift;
}

/* Does another field of this kind begin (or @end) at this bit of the value? */
static bool rashpa_field_adjoins(const struct rashpa_fetch_field *f, u32 n, u32 kind, u32 bit,
				 bool end)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (f[i].kind == kind && f[i].unit + (end ? f[i].width : 0) == bit)
			return true;
	return false;
}

/*
 * Bits of a value outside a field must be in an adjoining field: the upper word of an address is
 * an example. Fields with the same bits are copies.
 *
 * Return: 0, or the kind of a value that the fields cannot hold.
 */
static u32 rashpa_fields_lost(const struct rashpa_fetch_field *f, u32 n,
			      const struct rashpa_values *v)
{
	u64 value, above;
	u32 i;

	for (i = 0; i < n; i++) {
		if (f[i].kind == RASHPA_FETCH_CONSTANT)
			continue;
		value = v->of[f[i].kind];
		above = (value >> f[i].unit) - !!(f[i].flags & RASHPA_FIELD_MINUS_ONE);
		if (above & ~rashpa_field_mask(&f[i]) &&
		    !rashpa_field_adjoins(f, n, f[i].kind, f[i].unit + f[i].width, false))
			return f[i].kind;
		if (value != value >> f[i].unit << f[i].unit &&
		    !rashpa_field_adjoins(f, n, f[i].kind, f[i].unit, true))
			return f[i].kind;
	}
	return 0;
}

/* ------------------------------------------------------------ memory ---- */

static size_t rashpa_piece_size(const struct rashpa_descriptors *ring)
{
	return PAGE_ALIGN((size_t)ring->per * ring->size);
}

static void *rashpa_descriptor(const struct rashpa_descriptors *ring, u32 i)
{
	return ring->piece[i / ring->per].cpu + (size_t)(i % ring->per) * ring->size;
}

static u64 rashpa_descriptor_bus(const struct rashpa_descriptors *ring, u32 i)
{
	return ring->piece[i / ring->per].bus + (u64)(i % ring->per) * ring->size;
}

static void rashpa_ring_free(struct device *d, struct rashpa_descriptors *ring)
{
	while (ring->n_pieces--) {
		dma_free_coherent(d, rashpa_piece_size(ring), ring->piece[ring->n_pieces].cpu,
				  ring->piece[ring->n_pieces].bus);
		cond_resched();
	}
	kvfree(ring);
}

/* Allocate zeroed pieces of one size, with at most @most descriptors each. */
static struct rashpa_descriptors *rashpa_ring_alloc(struct device *d, u32 size, u32 room, u32 most)
{
	const u32 per = DIV_ROUND_UP(room, DIV_ROUND_UP(room, most));
	const u32 pieces = DIV_ROUND_UP(room, per);
	struct rashpa_descriptors *ring;
	int err = 0;

	ring = kvzalloc(struct_size(ring, piece, pieces), GFP_KERNEL_ACCOUNT);
	if (!ring)
		return ERR_PTR(-ENOMEM);
	ring->size = size;
	ring->per = per;
	while (ring->n_pieces < pieces && !err) {
		struct rashpa_ring_piece *p = &ring->piece[ring->n_pieces];

		p->cpu = dma_alloc_coherent(d, rashpa_piece_size(ring), &p->bus,
					    GFP_KERNEL_ACCOUNT | __GFP_NOWARN |
					    __GFP_RETRY_MAYFAIL);
		ring->n_pieces += !!p->cpu;
		if (!p->cpu)
			err = -ENOMEM;
		else if (signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	if (!err)
		return ring;
	rashpa_ring_free(d, ring);
	return ERR_PTR(err);
}

/*
 * Allocate a ring for all segments that a map can have, before it is detached. @fetch: copy of the
 * function's format, whose pointers are not used. Return: 0, -E2BIG, -EDQUOT, -ENOMEM, -EINTR.
 */
int rashpa_fetch_room(struct rashpa_call *call, struct rashpa_map *map,
		      const struct rashpa_fetching *fetch)
{
	const u32 size = fetch->about.descriptor_size;
	const u64 bytes = PAGE_ALIGN((u64)map->room * size);
	const u32 most = fetch->about.max_descriptors ?: RASHPA_DESCRIPTORS_MAX;
	struct rashpa_descriptors *ring;
	size_t piece = RASHPA_PIECE_MAX;
	int err;

	lockdep_assert_held(&map->lock);
	if (map->ring)
		return 0;
	if (map->room > most)
		return rashpa_fail(call, -E2BIG,
				   "the map has %u segments, a ring at most %u descriptors: map less at a time, or a contiguous buffer",
				   map->room, most);
	err = rashpa_charge_more(call, &map->charge, bytes);
	if (err)
		return err;
	/* one piece, or for chained descriptors smaller and smaller pieces */
	do {
		ring = rashpa_ring_alloc(&map->dev->pdev->dev, size, map->room,
					 fetch->chained ? piece / size : map->room);
		piece /= 2;
	} while (fetch->chained && ring == ERR_PTR(-ENOMEM) && piece >= PAGE_SIZE);
	if (!IS_ERR(ring)) {
		map->ring = ring;
		return 0;
	}
	rashpa_charge_less(&map->charge, map->charge.holding.memory - bytes);
	if (ring != ERR_PTR(-ENOMEM))
		return PTR_ERR(ring);
	return rashpa_fail(call, -ENOMEM,
			   "no memory for a ring of %u descriptors, %llu bytes%s: map a contiguous buffer, or enable the IOMMU",
			   map->room, bytes, fetch->chained ? "" : " in one piece");
}

/* Free the ring of an ended map, whose function has stopped and is still bound. */
void rashpa_fetch_end(struct rashpa_map *map)
{
	if (!map->ring)
		return;
	rashpa_ring_free(&map->dev->pdev->dev, map->ring);
	map->ring = NULL;
	/* the DMA core may flush the IOMMU later, but has freed the pages already */
	rashpa_path_flush(map->dev->pdev);
}

/* ----------------------------------------------------------- writing ---- */

static void rashpa_fetch_values(const struct rashpa_map *map, u32 i, u64 sum,
				struct rashpa_values *v)
{
	const struct rashpa_fetch *f = &map->dev->profile.fetch.about;
	const struct rashpa_segment *s = &map->table->segment[i];
	const u32 count = map->table->count;

	*v = (struct rashpa_values) { .first = !i, .last = i == count - 1 };
	v->of[RASHPA_FETCH_ADDRESS] = s->address;
	v->of[RASHPA_FETCH_LENGTH] = s->length;
	v->of[RASHPA_FETCH_SUM] = sum;
	v->of[RASHPA_FETCH_INDEX] = i;
	v->of[RASHPA_FETCH_COUNT] = count;
	v->of[RASHPA_FETCH_END] = s->address + s->length;
	if (map->ring && (!v->last || f->flags & RASHPA_FETCH_CLOSED))
		v->of[RASHPA_FETCH_NEXT] = rashpa_descriptor_bus(map->ring, v->last ? 0 : i + 1);
}

static void rashpa_register_values(const struct rashpa_map *map, struct rashpa_values *v)
{
	*v = (struct rashpa_values) { };
	v->of[RASHPA_FETCH_ADDRESS] = rashpa_descriptor_bus(map->ring, 0);
	v->of[RASHPA_FETCH_LENGTH] = (u64)map->table->count * map->ring->size;
	v->of[RASHPA_FETCH_COUNT] = map->table->count;
}

/* Errors name the kind only: some of the values are secret addresses. */
static const char * const rashpa_kind_names[] = {
	[RASHPA_FETCH_ADDRESS] = "an address",
	[RASHPA_FETCH_LENGTH] = "a length",
	[RASHPA_FETCH_SUM] = "a sum",
	[RASHPA_FETCH_NEXT] = "the address of the next one",
	[RASHPA_FETCH_INDEX] = "a number",
	[RASHPA_FETCH_COUNT] = "the number of descriptors",
	[RASHPA_FETCH_END] = "an end address",
};

/*
 * Check that a segment fits into a descriptor, and with the first one, that the registers can
 * describe the ring. @sum: bytes of the segments before. Return: 0, -EOVERFLOW, -E2BIG.
 */
int rashpa_fetch_fits(struct rashpa_call *call, const struct rashpa_map *map, u32 i, u64 sum)
{
	const struct rashpa_fetching *fetch = &map->dev->profile.fetch;
	const u32 most = fetch->about.max_descriptors;
	struct rashpa_values v;
	u32 lost = 0;

	lockdep_assert_held(&map->dev->hw_lock);
	if (!fetch->fields && most && map->table->count > most)
		return rashpa_fail(call, -E2BIG,
				   "the map has %u segments, an entry takes %u: map less at a time, or a contiguous buffer",
				   map->table->count, most);
	if (!i && fetch->fields) {
		rashpa_register_values(map, &v);
		lost = rashpa_fields_lost(fetch->registers, fetch->about.n_registers, &v);
	}
	if (lost)
		return rashpa_fail(call, -EOVERFLOW,
				   "%s of the ring is wider than its register or not a multiple of its unit",
				   rashpa_kind_names[lost]);
	rashpa_fetch_values(map, i, sum, &v);
	lost = fetch->fields ? rashpa_fields_lost(fetch->fields, fetch->about.n_fields, &v) :
	       rashpa_fields_lost(fetch->registers, fetch->about.n_registers, &v);
	if (!lost)
		return 0;
	return rashpa_fail(call, -EOVERFLOW,
			   "descriptor %u: %s is wider than its field or not a multiple of its unit: change segments or dma_bits in the profile",
			   i, rashpa_kind_names[lost]);
}

/*
 * Write the descriptor after the last written one, whose segment fits: composed on the stack, so
 * that the ring is written once and in order. @sum: bytes of the segments before.
 */
void rashpa_fetch_write(struct rashpa_map *map, u32 i, u64 sum)
{
	const struct rashpa_fetching *fetch = &map->dev->profile.fetch;
	__le64 image[RASHPA_DESCRIPTOR_SIZE_MAX / sizeof(__le64)];
	struct rashpa_values v;
	u32 j;

	lockdep_assert_held(&map->dev->hw_lock);
	memset(image, 0, map->ring->size);
	rashpa_fetch_values(map, i, sum, &v);
	for (j = 0; j < fetch->about.n_fields; j++) {
		const struct rashpa_fetch_field *f = &fetch->fields[j];
		const u64 bits = rashpa_field_bits(f, &v);

		if (f->bits == 64)
			image[f->offset / sizeof(__le64)] |= cpu_to_le64(bits);
		else
			((__le32 *)image)[f->offset / sizeof(__le32)] |= cpu_to_le32(bits);
	}
	memcpy(rashpa_descriptor(map->ring, i), image, map->ring->size);
	map->ring->written = i + 1;
}

/* Write a word of the registers of an entry; of one with a bit for each entry only that bit. */
static void rashpa_register_write(struct rashpa_device *dev, u32 entry,
				  const struct rashpa_fetch_field *f, u64 word)
{
	void __iomem *reg = dev->profile.table_regs + f->offset;

	/* descriptors and earlier words before this one: the table may be write-combined */
	wmb();
	if (f->flags & RASHPA_FIELD_ENTRY) {
		writel((readl(reg) & ~(BIT(f->shift) << entry)) | (u32)word << entry, reg);
		return;
	}
	reg += (size_t)entry * dev->profile.layout.stride;
	if (f->bits == 64)
		writeq(word, reg);
	else
		writel(word, reg);
}

/*
 * Write the registers of an entry: the place of a complete ring, or with RASHPA_FETCH_PUSH the next
 * segment. With RASHPA_FETCH_SPREAD each segment has its entry. @sum: bytes of the segments before.
 */
void rashpa_fetch_point(struct rashpa_map *map, u32 i, u64 sum)
{
	const struct rashpa_fetching *fetch = &map->dev->profile.fetch;
	const struct rashpa_fetch_field *f = fetch->registers, *end = f + fetch->about.n_registers;
	const bool spread = fetch->about.flags & RASHPA_FETCH_SPREAD;
	struct rashpa_values v;
	u64 word = 0;

	lockdep_assert_held(&map->dev->hw_lock);
	if (map->ring)
		rashpa_register_values(map, &v);
	else
		rashpa_fetch_values(map, i, sum, &v);
	for (; f < end; f++) {
		word |= rashpa_field_bits(f, &v);
		if (f + 1 < end && rashpa_same_word(f, f + 1))
			continue;
		if (spread || !rashpa_field_absent(f, &v))
			rashpa_register_write(map->dev, map->first + spread * i, f, word);
		word = 0;
	}
}

/* Clear the registers of an entry. */
void rashpa_fetch_forget(struct rashpa_device *dev, u32 entry)
{
	const struct rashpa_fetching *fetch = &dev->profile.fetch;
	const struct rashpa_fetch_field *f = fetch->registers;
	u32 i;

	lockdep_assert_held(&dev->hw_lock);
	for (i = fetch->about.n_registers; i--;)
		if (!(f[i].flags & RASHPA_FIELD_KEEP) &&
		    (!i || !rashpa_same_word(&f[i], &f[i - 1])))
			rashpa_register_write(dev, entry, &f[i], f[i].clear);
}

/* Zero the ring of a map, after a stop and rashpa_fetch_forget(). */
void rashpa_fetch_clear(struct rashpa_map *map)
{
	struct rashpa_descriptors *ring = map->ring;
	u32 i, n;

	lockdep_assert_held(&map->dev->hw_lock);
	for (i = 0; i < ring->written; i += n) {
		n = min(ring->per - i % ring->per, ring->written - i);
		/* up to half a GiB: reschedule in between */
		n = min_t(u32, n, SZ_64K / ring->size);
		memset(rashpa_descriptor(ring, i), 0, (size_t)n * ring->size);
		cond_resched();
	}
	ring->written = 0;
}
