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
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "function/map.h"

/* Largest piece of a chained ring: larger ones gain nothing and are harder to allocate. */
#define RASHPA_PIECE_MAX	SZ_4M

/**
 * struct rashpa_descriptors - ring of a map
 * @size: bytes of a descriptor
 * @per: descriptors of each piece
 * @written: number of written descriptors, counted from the first one (hw_lock)
 * @n_pieces: number of allocated pieces
 * @piece: allocations that are contiguous for the function
 */
struct rashpa_descriptors {
	u32 size;
	u32 per;
	u32 written;
	u32 n_pieces;
	struct rashpa_ring_piece {
		void *cpu;
		dma_addr_t bus;
	} piece[];
};

/* --------------------------------------------------------- fields ---- */

/* Values for the fields of one descriptor or of the registers, by enum rashpa_fetch_kind. */
struct rashpa_values {
	u64 of[RASHPA_FETCH_COUNT + 1];
	bool first;
	bool last;
};

static u64 rashpa_field_mask(const struct rashpa_fetch_field *f)
{
	return GENMASK_ULL(f->width - 1, 0);
}

/* Bits of the field, shifted to their place in the word. */
static u64 rashpa_field_bits(const struct rashpa_fetch_field *f, const struct rashpa_values *v)
{
	u64 value = f->kind == RASHPA_FETCH_CONSTANT ? f->value : v->of[f->kind];

	if ((f->flags & RASHPA_FIELD_FIRST && !v->first) ||
	    (f->flags & RASHPA_FIELD_LAST && !v->last) ||
	    (f->flags & RASHPA_FIELD_NOT_LAST && v->last))
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

/* ------------------------------------------------- from user space --- */

void rashpa_fetch_free(struct rashpa_fetching *fetch)
{
	kvfree(fetch->fields);
	kvfree(fetch->registers);
	*fetch = (struct rashpa_fetching) { };
}

/*
 * Copy the format of rings from user space; only the numbers of fields are checked. The caller
 * frees it, also after an error.
 */
int rashpa_fetch_copy(struct rashpa_call *call, const struct rashpa_profile_table *table,
		      struct rashpa_fetching *fetch)
{
	const struct rashpa_fetch *f = &fetch->about;
	struct rashpa_fetch *in;
	int err;

	err = rashpa_copy(call, &in, table->fetch, 1, table->fetch_size, register_size);
	if (err)
		return err;
	fetch->about = *in;
	kvfree(in);
	return rashpa_number_check(call, f->n_fields, 1, RASHPA_FETCH_FIELDS_MAX,
				   "fields of a descriptor") ?:
	       rashpa_number_check(call, f->n_registers, 1, RASHPA_FETCH_REGISTERS_MAX,
				   "parts of registers describe a ring") ?:
	       rashpa_copy(call, &fetch->fields, f->fields, f->n_fields, f->field_size, clear) ?:
	       rashpa_copy(call, &fetch->registers, f->registers, f->n_registers,
			   f->register_size, clear);
}

static int rashpa_field_flags(struct rashpa_call *call, const struct rashpa_fetch_field *f,
			      const char *what, bool descriptor)
{
	const u32 some = RASHPA_FIELD_FIRST | RASHPA_FIELD_LAST | RASHPA_FIELD_NOT_LAST;
	u32 all = 0;

	switch (f->kind) {
	case RASHPA_FETCH_CONSTANT:
		all = descriptor ? some : 0;
		break;
	case RASHPA_FETCH_LENGTH:
	case RASHPA_FETCH_COUNT:
		all = RASHPA_FIELD_MINUS_ONE;
		break;
	case RASHPA_FETCH_ADDRESS:
		break;
	case RASHPA_FETCH_SUM:
	case RASHPA_FETCH_NEXT:
	case RASHPA_FETCH_INDEX:
		if (descriptor)
			break;
		fallthrough;
	default:
		return rashpa_fail(call, -EINVAL, "%s: kind %u is not defined there", what,
				   f->kind);
	}
	if (f->flags & ~all || hweight32(f->flags & some) > 1)
		return rashpa_fail(call, -EINVAL, "%s: flags 0x%x are not for its kind", what,
				   f->flags);
	return 0;
}

static int rashpa_field_check(struct rashpa_call *call, const struct rashpa_fetch_field *f,
			      u32 i, u32 size, bool descriptor)
{
	char what[24];
	int err;

	snprintf(what, sizeof(what), "%s %u", descriptor ? "field" : "register", i);
	err = rashpa_field_flags(call, f, what, descriptor);
	if (err)
		return err;
	if (f->__reserved || (descriptor && f->clear))
		return rashpa_fail(call, -EINVAL, "%s: a reserved field is not zero", what);
	if (f->bits != 32 && f->bits != 64)
		return rashpa_fail(call, -EINVAL, "%s: a word of %u bits: must be 32 or 64", what,
				   f->bits);
	if (!IS_ALIGNED(f->offset, f->bits / 8) || f->offset > size ||
	    f->bits / 8 > size - f->offset)
		return rashpa_fail(call, -EINVAL,
				   "%s: the word at %u of %u bits is unaligned or not inside %u bytes",
				   what, f->offset, f->bits, size);
	if (!f->width || f->shift >= f->bits || f->width > f->bits - f->shift)
		return rashpa_fail(call, -EINVAL,
				   "%s: %u bits from bit %u on are not inside a word of %u bits",
				   what, f->width, f->shift, f->bits);
	if (f->unit > 63 || (f->unit && f->kind == RASHPA_FETCH_CONSTANT))
		return rashpa_fail(call, -EINVAL, "%s: a unit of 2^%u is not possible", what,
				   f->unit);
	if (f->kind == RASHPA_FETCH_CONSTANT ? f->value & ~rashpa_field_mask(f) : f->value)
		return rashpa_fail(call, -EINVAL,
				   "%s: the value 0x%llx is wider than %u bits, or its kind takes none",
				   what, f->value, f->width);
	if (f->bits == 32 && f->clear > U32_MAX)
		return rashpa_fail(call, -EINVAL, "%s: clear is wider than the word", what);
	return 0;
}

/* Mark the bits of a field in the bitmap of a descriptor. */
static int rashpa_field_claim(struct rashpa_call *call, const struct rashpa_fetch_field *f, u32 i,
			      unsigned long *bits)
{
	const u32 from = f->offset * 8 + f->shift;

	if (find_next_bit(bits, from + f->width, from) < from + f->width)
		return rashpa_fail(call, -EINVAL, "field %u: overlaps one before it", i);
	bitmap_set(bits, from, f->width);
	return 0;
}

static bool rashpa_fields_have(const struct rashpa_fetch_field *f, u32 n, u32 kind)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (f[i].kind == kind)
			return true;
	return false;
}

static bool rashpa_same_word(const struct rashpa_fetch_field *a, const struct rashpa_fetch_field *b)
{
	return a->offset == b->offset && a->bits == b->bits;
}

/* A value minus one cannot be split: the subtraction may change all of its parts. */
static int rashpa_parts_check(struct rashpa_call *call, const struct rashpa_fetch_field *f, u32 n,
			      const char *what)
{
	u32 i, j;

	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++)
			if (f[i].flags & RASHPA_FIELD_MINUS_ONE && f[i].kind == f[j].kind &&
			    f[i].unit != f[j].unit)
				return rashpa_fail(call, -EINVAL,
						   "%s %u: one less than a value cannot be split, but %u holds another part",
						   what, i, j);
	return 0;
}

static int rashpa_descriptor_check(struct rashpa_call *call, struct rashpa_fetching *fetch)
{
	const struct rashpa_fetch *f = &fetch->about;
	DECLARE_BITMAP(bits, RASHPA_DESCRIPTOR_SIZE_MAX * 8) = { };
	int err;
	u32 i;

	for (i = 0; i < f->n_fields; i++) {
		err = rashpa_field_check(call, &fetch->fields[i], i, f->descriptor_size, true) ?:
		      rashpa_field_claim(call, &fetch->fields[i], i, bits);
		if (err)
			return err;
	}
	if (!rashpa_fields_have(fetch->fields, f->n_fields, RASHPA_FETCH_ADDRESS))
		return rashpa_fail(call, -EINVAL, "descriptors have no address");
	err = rashpa_parts_check(call, fetch->fields, f->n_fields, "field");
	if (err)
		return err;
	fetch->chained = rashpa_fields_have(fetch->fields, f->n_fields, RASHPA_FETCH_NEXT);
	if (f->flags & RASHPA_FETCH_CLOSED && !fetch->chained)
		return rashpa_fail(call, -EINVAL,
				   "a closed ring of descriptors that do not lead to the next one");
	return rashpa_length_check(call, "descriptors",
				   rashpa_fields_have(fetch->fields, f->n_fields,
						      RASHPA_FETCH_LENGTH), f->segment_size);
}

static int rashpa_place_check(struct rashpa_call *call, const struct rashpa_fetching *fetch)
{
	const struct rashpa_fetch_field *r = fetch->registers;
	const struct rashpa_fetch *f = &fetch->about;
	int err;
	u32 i;

	for (i = 0; i < f->n_registers; i++) {
		err = rashpa_field_check(call, &r[i], i, f->stride, false);
		if (err)
			return err;
		if (i && rashpa_same_word(&r[i], &r[i - 1]) && r[i].clear)
			return rashpa_fail(call, -EINVAL,
					   "register %u: set clear in the first field of a word only",
					   i);
	}
	if (!rashpa_fields_have(r, f->n_registers, RASHPA_FETCH_ADDRESS))
		return rashpa_fail(call, -EINVAL, "no register has the address of a ring");
	return rashpa_parts_check(call, r, f->n_registers, "register");
}

int rashpa_fetch_check(struct rashpa_call *call, struct rashpa_fetching *fetch)
{
	struct rashpa_fetch *f = &fetch->about;

	if (f->flags & ~RASHPA_FETCH_CLOSED)
		return rashpa_fail(call, -EINVAL, "the ring has an undefined flag 0x%x", f->flags);
	if (!f->descriptor_size || f->descriptor_size > RASHPA_DESCRIPTOR_SIZE_MAX ||
	    !IS_ALIGNED(f->descriptor_size, sizeof(u32)))
		return rashpa_fail(call, -EINVAL,
				   "a descriptor of %u bytes: must be a multiple of 4 up to %u",
				   f->descriptor_size, RASHPA_DESCRIPTOR_SIZE_MAX);
	return rashpa_number_check(call, f->max_descriptors, 0, RASHPA_DESCRIPTORS_MAX,
				   "descriptors of a ring") ?:
	       rashpa_descriptor_check(call, fetch) ?: rashpa_place_check(call, fetch);
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

/* Allocate one piece, or for chained descriptors smaller and smaller pieces. */
static struct rashpa_descriptors *rashpa_ring_find(struct pci_dev *pdev, u32 size, u32 room,
						   bool chained)
{
	struct device *d = &pdev->dev;
	struct rashpa_descriptors *ring;
	size_t piece = RASHPA_PIECE_MAX;

	if (!chained)
		return rashpa_ring_alloc(d, size, room, room);
	do {
		ring = rashpa_ring_alloc(d, size, room, piece / size);
		piece /= 2;
	} while (ring == ERR_PTR(-ENOMEM) && piece >= PAGE_SIZE);
	return ring;
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
	ring = rashpa_ring_find(map->dev->pdev, size, map->room, fetch->chained);
	if (!IS_ERR(ring)) {
		map->ring = ring;
		return 0;
	}
	rashpa_charge_less(&map->charge, map->charge.memory - bytes);
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
	if (!v->last)
		v->of[RASHPA_FETCH_NEXT] = rashpa_descriptor_bus(map->ring, i + 1);
	else if (f->flags & RASHPA_FETCH_CLOSED)
		v->of[RASHPA_FETCH_NEXT] = rashpa_descriptor_bus(map->ring, 0);
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
};

/*
 * Check that a segment fits into a descriptor. @sum: bytes of the segments before. Return: 0,
 * -EOVERFLOW.
 */
int rashpa_fetch_fits(struct rashpa_call *call, const struct rashpa_map *map, u32 i, u64 sum)
{
	const struct rashpa_fetching *fetch = &map->dev->profile.fetch;
	struct rashpa_values v;
	u32 lost;

	lockdep_assert_held(&map->dev->hw_lock);
	rashpa_fetch_values(map, i, sum, &v);
	lost = rashpa_fields_lost(fetch->fields, fetch->about.n_fields, &v);
	if (!lost)
		return 0;
	return rashpa_fail(call, -EOVERFLOW,
			   "descriptor %u: %s is wider than its field or not a multiple of its unit: change segments in the profile",
			   i, rashpa_kind_names[lost]);
}

/* Can the registers describe the ring of a valid map? Return: 0 or -EOVERFLOW. */
int rashpa_fetch_fits_registers(struct rashpa_call *call, const struct rashpa_map *map)
{
	const struct rashpa_fetching *fetch = &map->dev->profile.fetch;
	struct rashpa_values v;
	u32 lost;

	lockdep_assert_held(&map->dev->hw_lock);
	rashpa_register_values(map, &v);
	lost = rashpa_fields_lost(fetch->registers, fetch->about.n_registers, &v);
	if (lost)
		return rashpa_fail(call, -EOVERFLOW,
				   "%s of the ring is wider than its register or not a multiple of its unit",
				   rashpa_kind_names[lost]);
	return 0;
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

static void rashpa_register_write(void __iomem *regs, const struct rashpa_fetch_field *f, u64 word)
{
	if (f->bits == 64)
		writeq(word, regs + f->offset);
	else
		writel(word, regs + f->offset);
}

/* Write the place of a complete ring to the registers of a table entry. */
void rashpa_fetch_point(struct rashpa_map *map, void __iomem *regs)
{
	const struct rashpa_fetching *fetch = &map->dev->profile.fetch;
	const u32 n = fetch->about.n_registers;
	struct rashpa_values v;
	u64 word = 0;
	u32 i;

	lockdep_assert_held(&map->dev->hw_lock);
	rashpa_register_values(map, &v);
	/* descriptors before the register that makes the function fetch them */
	dma_wmb();
	for (i = 0; i < n; i++) {
		word |= rashpa_field_bits(&fetch->registers[i], &v);
		if (i + 1 < n && rashpa_same_word(&fetch->registers[i], &fetch->registers[i + 1]))
			continue;
		rashpa_register_write(regs, &fetch->registers[i], word);
		word = 0;
	}
}

/* Clear the registers that hold the place of a ring. */
void rashpa_fetch_forget(struct rashpa_device *dev, void __iomem *regs)
{
	const struct rashpa_fetching *fetch = &dev->profile.fetch;
	u32 i;

	lockdep_assert_held(&dev->hw_lock);
	for (i = fetch->about.n_registers; i--;)
		if (!i || !rashpa_same_word(&fetch->registers[i], &fetch->registers[i - 1]))
			rashpa_register_write(regs, &fetch->registers[i],
					      fetch->registers[i].clear);
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
