// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: device profiles: registers, windows, engines, formats and limits of a board: copied,
 * checked, kept.
 */
#include <linux/bitmap.h>
#include <linux/capability.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "function/function.h"

/* Check a number of a profile. */
static int rashpa_number_check(struct rashpa_call *call, u64 n, u32 min, u32 max, const char *what)
{
	if (n >= min && n <= max)
		return 0;
	return rashpa_fail(call, -EINVAL, "%llu %s: must be %u to %u", n, what, min, max);
}

/* A segment needs a length: either in each entry or descriptor (@what), or one for all. */
static int rashpa_length_check(struct rashpa_call *call, const char *what, bool length,
			       u64 segment_size)
{
	if (length ? !segment_size : is_power_of_2(segment_size) && segment_size >= SZ_4K)
		return 0;
	return rashpa_fail(call, -EINVAL,
			   "%s have %s length, and a segment_size of 0x%llx: must be %s", what,
			   length ? "a" : "no", segment_size,
			   length ? "0" : "a power of two, at least 4096");
}

/* Check the limits of segments of a profile or map. Return: 0 or -EINVAL. */
int rashpa_limits_check(struct rashpa_call *call, u64 max_segment, u64 boundary, u64 alignment)
{
	if (!IS_ALIGNED(max_segment, SZ_4K))
		return rashpa_fail(call, -EINVAL, "max_segment must be whole pages of 4 KiB");
	if (boundary && (!is_power_of_2(boundary) || boundary < SZ_4K))
		return rashpa_fail(call, -EINVAL,
				   "boundary must be a power of two, at least 4096");
	if (alignment && !is_power_of_2(alignment))
		return rashpa_fail(call, -EINVAL, "alignment must be a power of two");
	return 0;
}

/* ----------------------------------------------------------- windows ---- */

/* Find a window by a checked name. */
const struct rashpa_profile_window *
rashpa_profile_find(const struct rashpa_profile *profile, const char *name)
{
	u32 i;

	for (i = 0; i < profile->n_windows; i++)
		if (!strcmp(profile->windows[i].name, name))
			return &profile->windows[i];
	return NULL;
}

/* Find a window that contains the range, if possible one for users. */
const struct rashpa_profile_window *
rashpa_profile_cover(const struct rashpa_profile *profile,
		     const struct rashpa_profile_window *range)
{
	const struct rashpa_profile_window *w, *found = NULL;

	for (w = profile->windows; w < profile->windows + profile->n_windows; w++)
		if (w->bar == range->bar && range->offset >= w->offset &&
		    range->length <= w->length &&
		    range->offset - w->offset <= w->length - range->length &&
		    (!found || w->flags & ~found->flags & RASHPA_PWINDOW_USER))
			found = w;
	return found;
}

/*
 * Check registers, named @what: in a memory BAR, and unless @profile is NULL, in no window that has
 * these flags.
 */
static int rashpa_registers_check(struct rashpa_call *call, struct rashpa_device *dev,
				  const char *what, u32 bar, u64 offset, u64 length,
				  const struct rashpa_profile *profile, u32 flags)
{
	u32 i;

	if (!length || !IS_ALIGNED(offset, sizeof(u32)))
		return rashpa_fail(call, -EINVAL,
				   "%s: 0x%llx bytes at 0x%llx: must be at a multiple of 4, and not empty",
				   what, length, offset);
	if (!rashpa_bar_range_ok(dev, bar, offset, length))
		return rashpa_fail(call, -ERANGE,
				   "%s: 0x%llx + 0x%llx is outside BAR %u of fpga%d, or that is no memory BAR",
				   what, offset, length, bar, dev->id);
	for (i = 0; profile && i < profile->n_windows; i++) {
		const struct rashpa_profile_window *w = &profile->windows[i];

		if (w->bar == bar && (w->flags & flags) == flags &&
		    rashpa_ranges_overlap(w->offset, w->length, offset, length))
			return rashpa_fail(call, -EINVAL,
					   "%s: 0x%llx is in window %s, which is for %s: only the kernel may access it",
					   what, offset, w->name, w->flags & RASHPA_PWINDOW_USER ?
					   "users" : "privileged users");
	}
	return 0;
}

/* Check the range and cache mode of a window of the profile, or of another one, without a name. */
int rashpa_pwindow_check(struct rashpa_call *call, struct rashpa_device *dev,
			 const struct rashpa_profile_window *w)
{
	char what[RASHPA_PROFILE_NAME_SIZE + 64];

	snprintf(what, sizeof(what), "window %s%s0x%llx + 0x%llx of BAR %u", w->name,
		 *w->name ? ", " : "", w->offset, w->length, w->bar);
	if (w->cache > RASHPA_CACHE_UC)
		return rashpa_fail(call, -EINVAL, "%s: cache mode %u is not defined", what,
				   w->cache);
	if (w->cache == RASHPA_CACHE_CACHED)
		return rashpa_fail(call, -EOPNOTSUPP, "%s: cannot be cached", what);
	if (!w->length || !IS_ALIGNED(w->offset | w->length, SZ_4K))
		return rashpa_fail(call, -EINVAL,
				   "%s: offset and length must be whole pages of 4 KiB", what);
	return rashpa_registers_check(call, dev, what, w->bar, w->offset, w->length, NULL, 0);
}

static int rashpa_pwindows_check(struct rashpa_call *call, struct rashpa_device *dev,
				 const struct rashpa_profile *profile)
{
	const struct rashpa_profile_window *w = profile->windows;
	u32 i;
	int err = 0;

	for (i = 0; i < profile->n_windows && !err; i++) {
		err = rashpa_check_name(call, w[i].name, sizeof(w[i].name));
		if (err)
			return err;
		if (rashpa_profile_find(profile, w[i].name) != &w[i])
			return rashpa_fail(call, -EINVAL, "window %s: named twice", w[i].name);
		if (w[i].__reserved || w[i].flags & ~RASHPA_PWINDOW_USER)
			return rashpa_fail(call, -EINVAL,
					   "window %s: undefined flag or reserved field",
					   w[i].name);
		err = rashpa_pwindow_check(call, dev, &w[i]);
	}
	return err;
}

/* --------------------------------------------------------- sequences ---- */

/* Copy a sequence of @n steps of @size bytes from user space, without checks. */
static int rashpa_sequence_fetch(struct rashpa_call *call, struct rashpa_sequence *s, u64 from,
				 u32 n, u32 size)
{
	int err = rashpa_copy(call, &s->step, from, n, size, flags);

	s->n = err ? 0 : n;
	return err;
}

static int rashpa_step_check(struct rashpa_call *call, struct rashpa_device *dev,
			     const char *what, const struct rashpa_profile_step *s,
			     const struct rashpa_profile *profile)
{
	const bool wait = s->op == RASHPA_STEP_WAIT;

	if (!wait && s->op != RASHPA_STEP_WRITE)
		return rashpa_fail(call, -EINVAL, "%s: operation %u is not defined", what, s->op);
	if (s->flags & ~(wait && !profile ? RASHPA_STEP_RESET : 0))
		return rashpa_fail(call, -EINVAL,
				   "%s: flags 0x%x are reserved, or not for this step", what,
				   s->flags);
	if (wait ? !s->timeout_us || s->timeout_us > RASHPA_QUIESCE_US_MAX : s->timeout_us)
		return rashpa_fail(call, -EINVAL,
				   "%s: a wait has a time limit of 1 to %u microseconds, a write has no time limit",
				   what, RASHPA_QUIESCE_US_MAX);
	if (wait && s->value & ~s->mask)
		return rashpa_fail(call, -EINVAL, "%s: waits for bits outside its mask", what);
	return rashpa_registers_check(call, dev, what, s->bar, s->offset, sizeof(u32), profile,
				      RASHPA_PWINDOW_USER);
}

/*
 * @owner begins each error sentence. The last step must be a WAIT for at least one bit: a write is
 * posted, and an empty mask always matches. @profile: NULL for the sequence of the whole function.
 * Registers of an engine's sequence are in none of its windows for users.
 */
static int rashpa_sequence_check(struct rashpa_call *call, struct rashpa_device *dev,
				 const char *owner, const struct rashpa_sequence *s,
				 const struct rashpa_profile *profile)
{
	char what[RASHPA_PROFILE_NAME_SIZE + 32];
	u32 i;
	int err = 0;

	for (i = 0; i < s->n && !err; i++) {
		snprintf(what, sizeof(what), "%s%sstep %u", owner, *owner ? ", " : "", i);
		err = rashpa_step_check(call, dev, what, &s->step[i], profile);
	}
	if (!err && s->n && (s->step[i - 1].op != RASHPA_STEP_WAIT || !s->step[i - 1].mask))
		err = rashpa_fail(call, -EINVAL,
				  "%s: the last step must wait for a bit that says that nothing is in flight",
				  what);
	return err;
}

/* Map the registers of a checked sequence. */
static int rashpa_sequence_map(struct rashpa_device *dev, struct rashpa_sequence *s)
{
	u32 i;

	s->reg = kcalloc(s->n, sizeof(*s->reg), GFP_KERNEL);
	if (!s->reg)
		return -ENOMEM;
	for (i = 0; i < s->n; i++) {
		s->reg[i] = pci_iomap_range(dev->pdev, s->step[i].bar, s->step[i].offset,
					    sizeof(u32));
		if (!s->reg[i])
			return -ENOMEM;
	}
	return 0;
}

/* Free what rashpa_sequence_fetch() and rashpa_sequence_map() allocated, also after an error. */
static void rashpa_sequence_free(struct rashpa_device *dev, struct rashpa_sequence *s)
{
	u32 i;

	for (i = 0; s->reg && i < s->n; i++)
		if (s->reg[i])
			pci_iounmap(dev->pdev, s->reg[i]);
	kfree(s->reg);
	kvfree(s->step);
}

/* ----------------------------------------------------------- formats ---- */

static int rashpa_layout_check(struct rashpa_call *call, const struct rashpa_layout *l)
{
	const struct {
		const char *name;
		u32 offset, bits, least, most;
	} f[] = {
		{ "address", l->address_offset, l->address_bits, 32, 64 },
		{ "length", l->length_offset, l->length_bits, 0, 64 },
		{ "control", l->control_offset, l->control_bits, 0, 32 },
		{ "sum", l->sum_offset, l->sum_bits, 0, 64 },
	};
	size_t i, j;
	int err;

	if (l->flags & ~(RASHPA_LAYOUT_UPPER_FIRST | RASHPA_LAYOUT_WRITE_ONLY))
		return rashpa_fail(call, -EINVAL, "layout: flag 0x%x is not defined", l->flags);
	/* address 0 is a valid address: another field must mark an entry as invalid */
	if (!l->length_bits && !l->control_bits)
		return rashpa_fail(call, -EINVAL,
				   "entries have neither a control field nor a length: a cleared entry would be address 0");
	err = rashpa_length_check(call, "entries", l->length_bits, l->segment_size);
	if (err)
		return err;
	if (l->control_bits && l->control_set == l->control_clear)
		return rashpa_fail(call, -EINVAL,
				   "control_set and control_clear are both 0x%x: an entry could not be made invalid",
				   l->control_set);
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		if (f[i].bits % 32 || f[i].bits < f[i].least || f[i].bits > f[i].most)
			return rashpa_fail(call, -EINVAL,
					   "%s field of %u bits: must be %u to %u, a multiple of 32",
					   f[i].name, f[i].bits, f[i].least, f[i].most);
		if (!f[i].bits && f[i].offset)
			return rashpa_fail(call, -EINVAL, "%s field without bits has an offset",
					   f[i].name);
		if (!IS_ALIGNED(f[i].offset, sizeof(u32)) ||
		    f[i].offset > l->stride || f[i].bits / 8 > l->stride - f[i].offset)
			return rashpa_fail(call, -EINVAL,
					   "%s field at %u of %u bits is not inside the stride of %u",
					   f[i].name, f[i].offset, f[i].bits, l->stride);
		for (j = 0; j < i; j++)
			if (f[i].bits && f[j].bits &&
			    rashpa_ranges_overlap(f[i].offset, f[i].bits / 8,
						  f[j].offset, f[j].bits / 8))
				return rashpa_fail(call, -EINVAL,
						   "the %s and %s fields of the layout overlap",
						   f[j].name, f[i].name);
	}
	return 0;
}

static const u32 rashpa_field_some = RASHPA_FIELD_FIRST | RASHPA_FIELD_LAST | RASHPA_FIELD_NOT_LAST;

static int rashpa_field_flags(struct rashpa_call *call, const struct rashpa_fetch_field *f,
			      const char *what, bool descriptor, bool push)
{
	/* kinds that the registers of a ring do not have */
	const u32 others = BIT(RASHPA_FETCH_SUM) | BIT(RASHPA_FETCH_INDEX) | BIT(RASHPA_FETCH_END);
	const u32 refused = descriptor ? 0 : BIT(RASHPA_FETCH_NEXT) | (push ? 0 : others);
	const u32 keep = descriptor ? 0 : RASHPA_FIELD_KEEP;
	const u32 all[RASHPA_FETCH_END + 1] = {
		[RASHPA_FETCH_CONSTANT] = (descriptor || push ? rashpa_field_some : 0) |
					  (keep ? RASHPA_FIELD_ENTRY : 0),
		[RASHPA_FETCH_LENGTH] = RASHPA_FIELD_MINUS_ONE,
		[RASHPA_FETCH_COUNT] = RASHPA_FIELD_MINUS_ONE,
	};

	if (!f->kind || f->kind >= ARRAY_SIZE(all) || BIT(f->kind) & refused)
		return rashpa_fail(call, -EINVAL, "%s: kind %u is not defined there", what,
				   f->kind);
	if (f->flags & ~(all[f->kind] | keep) || hweight32(f->flags & rashpa_field_some) > 1)
		return rashpa_fail(call, -EINVAL, "%s: flags 0x%x are not for its kind", what,
				   f->flags);
	return 0;
}

static int rashpa_field_check(struct rashpa_call *call, const struct rashpa_fetch_field *f,
			      u32 i, u32 size, bool descriptor, bool push)
{
	char what[24];
	int err;

	snprintf(what, sizeof(what), "%s %u", descriptor ? "field" : "register", i);
	err = rashpa_field_flags(call, f, what, descriptor, push);
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

/*
 * Check the fields of a descriptor, or the registers of an entry: of a ring, or with @push of a
 * segment. @table: bytes of the table. Return: bitmap of their kinds.
 */
static int rashpa_fields_check(struct rashpa_call *call, const struct rashpa_fetch_field *f, u32 n,
			       u32 size, bool descriptor, bool push, u32 table)
{
	u32 i, j, kinds = 0;
	int err;

	for (i = 0; i < n; i++) {
		err = rashpa_field_check(call, &f[i], i,
					 f[i].flags & RASHPA_FIELD_ENTRY ? table : size,
					 descriptor, push);
		if (err)
			return err;
		kinds |= BIT(f[i].kind);
		/* the subtraction may change all parts of a value */
		for (j = 0; j < n; j++)
			if (f[i].flags & RASHPA_FIELD_MINUS_ONE && f[i].kind == f[j].kind &&
			    f[i].unit != f[j].unit)
				return rashpa_fail(call, -EINVAL,
						   "%s %u: one less than a value cannot be split, but %u holds another part",
						   descriptor ? "field" : "register", i, j);
	}
	if (kinds & BIT(RASHPA_FETCH_ADDRESS))
		return kinds;
	return rashpa_fail(call, -EINVAL, descriptor ? "descriptors have no address" :
			   "no register has the address of a %s", push ? "segment" : "ring");
}

static int rashpa_descriptor_check(struct rashpa_call *call, struct rashpa_fetching *fetch)
{
	const struct rashpa_fetch *f = &fetch->about;
	DECLARE_BITMAP(bits, RASHPA_DESCRIPTOR_SIZE_MAX * 8) = { };
	u32 i;
	int kinds = rashpa_fields_check(call, fetch->fields, f->n_fields, f->descriptor_size, true,
					false, 0);

	if (kinds < 0)
		return kinds;
	for (i = 0; i < f->n_fields; i++) {
		const struct rashpa_fetch_field *field = &fetch->fields[i];
		const u32 from = field->offset * 8 + field->shift;

		if (find_next_bit(bits, from + field->width, from) < from + field->width)
			return rashpa_fail(call, -EINVAL, "field %u: overlaps one before it", i);
		bitmap_set(bits, from, field->width);
	}
	fetch->chained = kinds & BIT(RASHPA_FETCH_NEXT);
	if (f->flags & RASHPA_FETCH_CLOSED && !fetch->chained)
		return rashpa_fail(call, -EINVAL,
				   "a closed ring of descriptors that do not lead to the next one");
	return rashpa_length_check(call, "descriptors", kinds & (BIT(RASHPA_FETCH_LENGTH) |
				   BIT(RASHPA_FETCH_END)), f->segment_size);
}

/* Check the registers of an entry. @table: bytes of the table, which has @entries. */
static int rashpa_place_check(struct rashpa_call *call, const struct rashpa_fetching *fetch,
			      u32 table, u32 entries)
{
	const struct rashpa_fetch_field *r = fetch->registers;
	const struct rashpa_fetch *f = &fetch->about;
	const bool push = f->flags & RASHPA_FETCH_PUSH;
	/* registers of entries may be apart: those of the last one are in the table */
	const u32 size = f->entries ? table - (entries - 1) * f->stride : f->stride;
	int kinds = rashpa_fields_check(call, r, f->n_registers, size, false, push, table);
	u32 i;

	for (i = 0; kinds >= 0 && i < f->n_registers; i++) {
		if (r[i].flags & RASHPA_FIELD_ENTRY &&
		    (!i || r[i].bits != 32 || r[i].width != 1 || !r[i].value || r[i].clear ||
		     entries > 32 - r[i].shift))
			return rashpa_fail(call, -EINVAL,
					   "register %u: not the first, 32 bits, and one for each of %u entries",
					   i, entries);
		if (!i || !rashpa_same_word(&r[i], &r[i - 1]))
			continue;
		if (r[i].clear || r[i].flags & RASHPA_FIELD_KEEP)
			return rashpa_fail(call, -EINVAL,
					   "register %u: set clear in the first field of a word only",
					   i);
		if ((r[i].flags ^ r[i - 1].flags) & rashpa_field_some &&
		    !(f->flags & RASHPA_FETCH_SPREAD))
			return rashpa_fail(call, -EINVAL,
					   "register %u: all parts of a word are written, or none",
					   i);
	}
	if (kinds < 0 || !push)
		return min(kinds, 0);
	return rashpa_length_check(call, "registers", kinds & (BIT(RASHPA_FETCH_LENGTH) |
				   BIT(RASHPA_FETCH_END)), f->segment_size);
}

static int rashpa_fetch_check(struct rashpa_call *call, struct rashpa_fetching *fetch, u32 table)
{
	struct rashpa_fetch *f = &fetch->about;
	const u32 fit = table / f->stride, entries = f->entries ?: fit;
	const bool push = f->flags & RASHPA_FETCH_PUSH;

	if (f->flags & ~(push ? RASHPA_FETCH_PUSH | RASHPA_FETCH_SPREAD : RASHPA_FETCH_CLOSED))
		return rashpa_fail(call, -EINVAL, "the ring has an undefined flag 0x%x", f->flags);
	if (f->__reserved || entries > fit || (push && f->descriptor_size))
		return rashpa_fail(call, -EINVAL,
				   "%u entries of %u, a reserved field that is not zero, or a descriptor of a table without any",
				   entries, fit);
	if (push)
		return rashpa_place_check(call, fetch, table, entries);
	if (!f->descriptor_size || f->descriptor_size > RASHPA_DESCRIPTOR_SIZE_MAX ||
	    !IS_ALIGNED(f->descriptor_size, sizeof(u32)))
		return rashpa_fail(call, -EINVAL,
				   "a descriptor of %u bytes: must be a multiple of 4 up to %u",
				   f->descriptor_size, RASHPA_DESCRIPTOR_SIZE_MAX);
	return rashpa_number_check(call, f->max_descriptors, 0, RASHPA_DESCRIPTORS_MAX,
				   "descriptors of a ring") ?:
	       rashpa_descriptor_check(call, fetch) ?:
	       rashpa_place_check(call, fetch, table, entries);
}

static int rashpa_table_check(struct rashpa_call *call, struct rashpa_device *dev,
			      struct rashpa_profile *profile)
{
	const struct rashpa_profile_table *t = profile->table;
	const u32 stride = profile->layout.stride;
	int err;

	if (!t)
		return 0;
	if (t->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field of the table is not zero");
	err = rashpa_registers_check(call, dev, "the table", t->bar, t->offset, t->length, profile,
				     RASHPA_PWINDOW_USER);
	if (err)
		return err;
	/* entries are numbered by 32 bits, and the whole table is mapped */
	if (t->length > U32_MAX)
		return rashpa_fail(call, -EINVAL, "a table of 0x%llx bytes: must be below 4 GiB",
				   t->length);
	if (!stride || stride > SZ_4K || !IS_ALIGNED(stride, sizeof(u32)))
		return rashpa_fail(call, -EINVAL,
				   "a stride of %u: must be a multiple of 4 up to 4096", stride);
	if (profile->layout.flags & RASHPA_LAYOUT_WRITE_ONLY && !profile->quiesce.n)
		return rashpa_fail(call, -EINVAL,
				   "a write-only table needs a quiesce sequence, whose last register is read instead");
	return t->fetch ? rashpa_fetch_check(call, &profile->fetch, t->length) :
			  rashpa_layout_check(call, &profile->layout);
}

/* ----------------------------------------------------------- engines ---- */

/*
 * Copy the engines of a profile from user space, without checks. The caller drops the profile, also
 * after an error.
 */
static int rashpa_engines_fetch(struct rashpa_call *call, const struct rashpa_profile_set *p,
				struct rashpa_profile *profile)
{
	struct rashpa_profile_engine *in;
	char what[32];
	int err;
	u32 i;

	err = rashpa_copy(call, &in, p->engines, p->n_engines, p->engine_size, step_size);
	if (err || !in)
		return err;
	profile->engines = kcalloc(p->n_engines, sizeof(*profile->engines), GFP_KERNEL_ACCOUNT);
	if (profile->engines)
		profile->n_engines = p->n_engines;
	else
		err = -ENOMEM;
	for (i = 0; i < profile->n_engines && !err; i++) {
		profile->engines[i].about = in[i];
		snprintf(what, sizeof(what), "steps of engine %u", i);
		err = rashpa_number_check(call, in[i].n_steps, 0, RASHPA_ENGINE_STEPS_MAX, what) ?:
		      rashpa_sequence_fetch(call, &profile->engines[i].quiesce, in[i].steps,
					    in[i].n_steps, in[i].step_size);
	}
	kvfree(in);
	return err;
}

/* A bounds register must exist, must not be shared, and must not be in a window or the table. */
static int rashpa_bound_check(struct rashpa_call *call, struct rashpa_device *dev,
			      const struct rashpa_profile *profile,
			      const struct rashpa_engine *engine, u64 offset)
{
	const struct rashpa_profile_engine *e = &engine->about;
	const struct rashpa_profile_table *t = profile->table;
	char what[RASHPA_PROFILE_NAME_SIZE + 16];
	const struct rashpa_engine *other;
	u32 same = 0;
	int err;

	snprintf(what, sizeof(what), "engine %s, bounds", e->name);
	if (t->bar == e->bar && rashpa_ranges_overlap(t->offset, t->length, offset, sizeof(u32)))
		return rashpa_fail(call, -EINVAL, "%s: 0x%llx is in the table", what, offset);
	err = rashpa_registers_check(call, dev, what, e->bar, offset, sizeof(u32), profile, 0);
	if (err)
		return err;
	for (other = profile->engines; other <= engine; other++)
		if (other->about.bar == e->bar)
			same += (other->about.first_offset == offset) +
				(other->about.limit_offset == offset);
	if (same > 1)
		return rashpa_fail(call, -EINVAL, "%s: 0x%llx is named twice", what, offset);
	return 0;
}

/* Check an engine after the windows, the sequence and the table of its profile. */
static int rashpa_engine_check(struct rashpa_call *call, struct rashpa_device *dev,
			       const struct rashpa_profile *profile,
			       const struct rashpa_engine *engine)
{
	const u64 entries = div64_u64(profile->table->length, profile->layout.stride);
	const struct rashpa_profile_engine *e = &engine->about;
	char what[RASHPA_PROFILE_NAME_SIZE + 16];
	const struct rashpa_engine *other;
	int err;

	err = rashpa_check_name(call, e->name, sizeof(e->name));
	if (err)
		return err;
	snprintf(what, sizeof(what), "engine %s", e->name);
	if (e->flags & ~RASHPA_PENGINE_OPTIONAL)
		return rashpa_fail(call, -EINVAL, "%s: undefined flag", what);
	if (e->count && !e->n_steps)
		return rashpa_fail(call, -EINVAL, "%s: has entries, but no quiesce sequence", what);
	if (!e->count && e->first)
		return rashpa_fail(call, -EINVAL, "%s: no entries, but a first one", what);
	if ((u64)e->first + e->count > entries)
		return rashpa_fail(call, -ERANGE,
				   "%s: %u entries from entry %u on are not in the table of %llu",
				   what, e->count, e->first, entries);
	for (other = profile->engines; other < engine; other++) {
		if (!strcmp(other->about.name, e->name))
			return rashpa_fail(call, -EINVAL, "%s: named twice", what);
		if (e->count && other->about.count &&
		    rashpa_ranges_overlap(e->first, e->count, other->about.first,
					  other->about.count))
			return rashpa_fail(call, -EINVAL,
					   "%s: some of its entries are those of engine %s", what,
					   other->about.name);
	}
	return rashpa_bound_check(call, dev, profile, engine, e->first_offset) ?:
	       rashpa_bound_check(call, dev, profile, engine, e->limit_offset) ?:
	       rashpa_sequence_check(call, dev, what, &engine->quiesce, profile);
}

/* ----------------------------------------------------------- profile ---- */

static int rashpa_profile_limits(struct rashpa_call *call, const struct rashpa_profile_set *p)
{
	int err = rashpa_number_check(call, p->n_windows, 0, RASHPA_PROFILE_WINDOWS_MAX,
				      "windows") ?:
		  rashpa_number_check(call, p->n_steps, 0, RASHPA_PROFILE_STEPS_MAX, "steps") ?:
		  rashpa_number_check(call, p->n_engines, 0, RASHPA_PROFILE_ENGINES_MAX,
				      "engines") ?:
		  rashpa_number_check(call, p->quiesce_us, 0, RASHPA_QUIESCE_US_MAX,
				      "microseconds of a quiesce sequence") ?:
		  rashpa_number_check(call, p->dma_bits ?: RASHPA_DMA_BITS, 24, 64,
				      "bits of a DMA mask");

	if (err)
		return err;
	if (p->n_engines && (!p->table || !p->n_steps))
		return rashpa_fail(call, -EINVAL,
				   "engines without %s: they need a table and a quiesce sequence of the whole function",
				   p->table ? "a quiesce sequence of the whole function" :
					      "a table");
	if (!p->table && p->table_size)
		return rashpa_fail(call, -EINVAL, "a table has a size but no address");
	return rashpa_limits_check(call, p->max_segment, p->boundary, p->alignment);
}

/* Free a profile that no function uses, or with hw_lock held that of a function. */
void rashpa_profile_drop(struct rashpa_device *dev, struct rashpa_profile *profile)
{
	struct rashpa_engine *e;

	kvfree(profile->windows);
	rashpa_sequence_free(dev, &profile->quiesce);
	kvfree(profile->table);
	if (profile->table_regs)
		pci_iounmap(dev->pdev, profile->table_regs);
	kvfree(profile->fetch.fields);
	kvfree(profile->fetch.registers);
	for (e = profile->engines; e < profile->engines + profile->n_engines; e++) {
		rashpa_sequence_free(dev, &e->quiesce);
		if (e->first)
			pci_iounmap(dev->pdev, e->first);
		if (e->limit)
			pci_iounmap(dev->pdev, e->limit);
	}
	kfree(profile->engines);
	*profile = (struct rashpa_profile) { };
}

/* Copy the format of table entries: addresses, or places of rings. */
static int rashpa_table_fetch(struct rashpa_call *call, const struct rashpa_profile_table *t,
			      struct rashpa_profile *profile)
{
	struct rashpa_fetching *fetch = &profile->fetch;
	struct rashpa_fetch *f = &fetch->about, *in;
	struct rashpa_layout *layout;
	bool ring;
	int err;

	if (!t->fetch && !t->fetch_size) {
		err = rashpa_copy(call, &layout, t->layout, 1, t->layout_size, sum_bits);
		if (err)
			return err;
		profile->layout = *layout;
		kvfree(layout);
		return 0;
	}
	if (t->layout || t->layout_size)
		return rashpa_fail(call, -EINVAL,
				   "the layout of an entry and the format of a ring exclude each other");
	err = rashpa_copy(call, &in, t->fetch, 1, t->fetch_size, register_size);
	if (err)
		return err;
	*f = *in;
	kvfree(in);
	profile->layout.stride = f->stride;
	profile->layout.segment_size = f->segment_size;
	ring = !(f->flags & RASHPA_FETCH_PUSH);
	return rashpa_number_check(call, f->n_fields, ring, ring * RASHPA_FETCH_FIELDS_MAX,
				   "fields of a descriptor") ?:
	       rashpa_number_check(call, f->n_registers, 1, RASHPA_FETCH_REGISTERS_MAX,
				   "parts of registers describe a ring") ?:
	       rashpa_copy(call, &fetch->fields, f->fields, f->n_fields, f->field_size, clear) ?:
	       rashpa_copy(call, &fetch->registers, f->registers, f->n_registers,
			   f->register_size, clear);
}

/* Copy a profile from user space. The caller calls rashpa_profile_drop(), also after an error. */
int rashpa_profile_fetch(struct rashpa_call *call, const struct rashpa_profile_set *p,
			 struct rashpa_profile *profile)
{
	int err = rashpa_profile_limits(call, p);

	if (err)
		return err;
	err = rashpa_copy(call, &profile->windows, p->windows, p->n_windows, p->window_size,
			  __reserved);
	if (err)
		return err;
	profile->n_windows = p->n_windows;
	profile->quiesce_us = p->quiesce_us;
	profile->limits.max_segment = p->max_segment;
	profile->limits.boundary = p->boundary;
	profile->limits.alignment = p->alignment;
	err = rashpa_sequence_fetch(call, &profile->quiesce, p->steps, p->n_steps, p->step_size);
	if (!err)
		err = rashpa_copy(call, &profile->table, p->table, !!p->table, p->table_size,
				  fetch_size);
	if (!err && profile->table)
		err = rashpa_table_fetch(call, profile->table, profile);
	profile->limits.segment_size = profile->layout.segment_size;
	return err ?: rashpa_engines_fetch(call, p, profile);
}

/* Map all registers that a checked profile names. Return: 0 or -ENOMEM. */
static int rashpa_profile_map(struct rashpa_device *dev, struct rashpa_profile *profile)
{
	const struct rashpa_profile_table *t = profile->table;
	struct rashpa_engine *e;
	int err;

	if (t) {
		profile->table_regs = pci_iomap_range(dev->pdev, t->bar, t->offset, t->length);
		if (!profile->table_regs)
			return -ENOMEM;
	}
	err = rashpa_sequence_map(dev, &profile->quiesce);
	for (e = profile->engines; e < profile->engines + profile->n_engines && !err; e++) {
		e->first = pci_iomap_range(dev->pdev, e->about.bar, e->about.first_offset,
					   sizeof(u32));
		e->limit = pci_iomap_range(dev->pdev, e->about.bar, e->about.limit_offset,
					   sizeof(u32));
		err = e->first && e->limit ? rashpa_sequence_map(dev, &e->quiesce) : -ENOMEM;
	}
	return err;
}

/* Check a profile for a function, and map all registers that it names. */
int rashpa_profile_check(struct rashpa_call *call, struct rashpa_device *dev,
			 struct rashpa_profile *profile)
{
	const struct rashpa_engine *e;
	int err;

	if (dev->n_maps || dev->n_open_windows)
		return rashpa_fail(call, -EBUSY,
				   "fpga%d has %u maps and %u windows: close them first",
				   dev->id, dev->n_maps, dev->n_open_windows);
	/* the channels would need bus mastering, which rashpa_device_master() would refuse */
	if (!profile->quiesce.n && dev->n_users && !capable(CAP_SYS_RAWIO))
		return rashpa_fail(call, -EPERM,
				   "fpga%d has channels, but the profile no quiesce sequence: close the channels, add a sequence, or use CAP_SYS_RAWIO",
				   dev->id);
	/* all of these give control over registers */
	if (profile->n_windows || profile->quiesce.n || profile->table) {
		err = rashpa_lockdown_check(call, dev, "a profile that names registers");
		if (err)
			return err;
	}
	err = rashpa_pwindows_check(call, dev, profile) ?:
	      rashpa_sequence_check(call, dev, "", &profile->quiesce, NULL) ?:
	      rashpa_table_check(call, dev, profile);
	for (e = profile->engines; e < profile->engines + profile->n_engines && !err; e++)
		err = rashpa_engine_check(call, dev, profile, e);
	return err ?: rashpa_profile_map(dev, profile);
}
