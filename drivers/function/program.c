// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: write the segments of maps to the address table of a function.
 */
#include <linux/capability.h>
#include <linux/io.h>
#include <linux/math64.h>
#include <linux/sched.h>

#include "core/trace.h"
#include "function/map.h"

/* -------------------------------------------------------- entries ---- */

static void rashpa_field_write(void __iomem *entry, const struct rashpa_layout *l, u32 offset,
			       u32 bits, u64 value)
{
	const u32 upper = l->flags & RASHPA_LAYOUT_UPPER_FIRST ? 0 : sizeof(u32);

	if (bits == 32)
		writel(value, entry + offset);
	if (bits != 64)
		return;
	writel(lower_32_bits(value), entry + offset + sizeof(u32) - upper);
	writel(upper_32_bits(value), entry + offset + upper);
}

/* Write the field that makes an entry valid: the control field, or without one the length. */
static void rashpa_entry_validate(void __iomem *entry, const struct rashpa_layout *l, u64 length)
{
	if (l->control_bits)
		writel(length ? l->control_set : l->control_clear, entry + l->control_offset);
	else
		rashpa_field_write(entry, l, l->length_offset, l->length_bits, length);
}

/*
 * Set an entry, or clear it if @s is empty. The function must never see half an entry: it is
 * invalid first and valid last. The barriers are needed, because the table may be write-combined:
 * x86 has one cache mode for a range, and a window may have chosen it.
 */
static void rashpa_entry_write(void __iomem *entry, const struct rashpa_layout *l,
			       const struct rashpa_segment *s, u64 sum)
{
	rashpa_entry_validate(entry, l, 0);
	/* invalid before the address changes */
	wmb();
	rashpa_field_write(entry, l, l->address_offset, l->address_bits, s->address);
	rashpa_field_write(entry, l, l->sum_offset, l->sum_bits, sum);
	if (l->control_bits)
		rashpa_field_write(entry, l, l->length_offset, l->length_bits, s->length);
	if (!s->length)
		return;
	/* the other fields before the one that makes it valid */
	wmb();
	rashpa_entry_validate(entry, l, s->length);
}

/* Entry @i of the table; hw_lock held, and the profile has a table. */
static void __iomem *rashpa_entry(const struct rashpa_device *dev, u32 i)
{
	return dev->profile.table_regs + (size_t)i * dev->profile.layout.stride;
}

static u32 rashpa_entries(const struct rashpa_device *dev)
{
	return dev->profile.fetch.about.entries ?:
	       div_u64(dev->profile.table->length, dev->profile.layout.stride);
}

/* Does a map take one entry, not one for each segment? */
static bool rashpa_one_entry(const struct rashpa_device *dev)
{
	return dev->profile.fetch.registers &&
	       !(dev->profile.fetch.about.flags & RASHPA_FETCH_SPREAD);
}

/*
 * Flush posted writes with a read. All ones may mean that the function does not answer, or be a
 * genuine value: then another register decides. With memory decoding off, the writes were lost and
 * a read may return zero.
 *
 * Return: 0, -EIO if the function does not answer.
 */
static int rashpa_entries_flush(struct rashpa_device *dev, u32 i)
{
	/* the first register of the place of a ring */
	const u32 at = dev->profile.fetch.registers ? dev->profile.fetch.registers[0].offset :
					   dev->profile.layout.address_offset;
	bool ones;

	/* combined writes leave the CPU before the read */
	mb();
	ones = dev->profile.layout.flags & RASHPA_LAYOUT_WRITE_ONLY ||
	       readl(rashpa_entry(dev, i) + at) == ~0U;
	return !rashpa_device_reachable(dev) || (ones && !rashpa_profile_answers(dev)) ? -EIO : 0;
}

/* hw_lock stays held until all entries are cleared: nothing may be unmapped before. */
static int rashpa_entries_clear(struct rashpa_device *dev, u32 first, u32 n)
{
	static const struct rashpa_segment none;
	u32 i;

	lockdep_assert_held(&dev->hw_lock);
	for (i = 0; i < n; i++) {
		if (dev->profile.fetch.registers)
			rashpa_fetch_forget(dev, first + i);
		else
			rashpa_entry_write(rashpa_entry(dev, first + i), &dev->profile.layout,
					   &none, 0);
		cond_resched();
	}
	return n ? rashpa_entries_flush(dev, first) : 0;
}

/*
 * Clear the entries of a map, outside of a reset. Return: 0, or -EIO if the function does not
 * answer. Then the map keeps its entries, unless it has ended for good.
 */
int rashpa_unprogram(struct rashpa_map *map)
{
	int err = 0;

	lockdep_assert_held(&map->dev->hw_lock);
	if (!map->programmed)
		return 0;
	/* entries is 0 for an unfinished ring, which still contains addresses */
	if (!map->dev->gone)
		err = rashpa_entries_clear(map->dev, map->first, map->entries);
	if (err && !map->ended)
		return err;
	if (map->ring)
		rashpa_fetch_clear(map);
	clear_bit(RASHPA_CHARGE_PROGRAMMED, &map->charge.flags);
	map->programmed = false;
	map->entries = 0;
	/* a map that the kernel programs again keeps its entries while it is revoked */
	if (list_empty(&map->reprogram))
		map->place = 0;
	list_del_init(&map->stale);
	return err;
}

/*
 * Clear the whole table while bus mastering is off. Return: 0, or -EIO if the function does not
 * answer.
 */
int rashpa_table_clear(struct rashpa_device *dev)
{
	return dev->profile.table ? rashpa_entries_clear(dev, 0, rashpa_entries(dev)) : 0;
}

/* -------------------------------------------------------- program ---- */

/* Number of entries written per hold of hw_lock. */
#define RASHPA_PROGRAM_BATCH	1024

/* Check that a segment fits into an entry. @sum: bytes of the segments before. */
static int rashpa_entry_fits(struct rashpa_call *call, const struct rashpa_map *map, u32 i, u64 sum)
{
	const struct rashpa_layout *l = &map->dev->profile.layout;
	const struct rashpa_segment *s = &map->table->segment[i];

	if (l->address_bits == 32 && s->address + s->length - 1 > U32_MAX)
		return rashpa_fail(call, -EOVERFLOW,
				   "segment %u is above 4 GiB, but the address field has 32 bits: set dma_bits to 32 in the profile",
				   i);
	if (l->length_bits == 32 && s->length > U32_MAX)
		return rashpa_fail(call, -EOVERFLOW,
				   "segment %u has 4 GiB or more, but the length field has 32 bits: set max_segment",
				   i);
	if (l->sum_bits == 32 && sum > U32_MAX)
		return rashpa_fail(call, -EOVERFLOW,
				   "segment %u is at offset 0x%llx of the map, but the sum field has 32 bits: map less at a time",
				   i, sum);
	return 0;
}

/* Maps must not share entries: the end of one would clear the other. */
static int rashpa_program_free(struct rashpa_call *call, struct rashpa_map *map, u32 first,
			       u32 entries)
{
	struct rashpa_map *other;

	list_for_each_entry(other, &map->dev->maps, entry) {
		if (other != map && first < other->first + other->place &&
		    other->first < first + entries)
			return rashpa_fail(call, -EBUSY,
					   "another map is programmed in these entries: choose others or close it");
	}
	return 0;
}

static int rashpa_program_stale(struct rashpa_call *call)
{
	return rashpa_fail(call, -ESTALE, "the map is revoked: restore it, or make a new one");
}

static int rashpa_program_unresponsive(struct rashpa_call *call, const struct rashpa_map *map)
{
	return rashpa_fail(call, -EIO, "fpga%d does not answer: reset it", map->dev->id);
}

/*
 * May an engine (0: the whole function) get the addresses of a map? Its end will stop the engine or
 * function, so refuse if a stream of another user may run there. Callers with CAP_SYS_RAWIO are
 * exempt: they could write the registers as well.
 *
 * Return: 0, or -EBUSY.
 */
int rashpa_map_check_others(struct rashpa_call *call, const struct rashpa_map *map, u64 engine)
{
	const struct rashpa_map *other;

	lockdep_assert_held(&map->dev->hw_lock);
	list_for_each_entry(other, &map->dev->maps, entry) {
		if (other->charge.user == map->charge.user)
			continue;
		if (!other->exposed && !(other->engines & (engine ?: ~0ULL)))
			continue;
		if (capable(CAP_SYS_RAWIO))
			return 0;
		return rashpa_fail(call, -EBUSY,
				   "%s of fpga%d has addresses of map %u of another user, and would stop with your map: use another engine, wait for the end of that map (rashpactl list names its process), or use CAP_SYS_RAWIO",
				   engine ? "the engine" : "a part", map->dev->id, other->id);
	}
	return 0;
}

/*
 * May the end of this map stop the readers of these entries? Outside the entries of one engine it
 * stops the whole function: if the profile has engines, that needs CAP_SYS_RAWIO.
 */
static int rashpa_program_check_engine(struct rashpa_call *call, const struct rashpa_map *map,
				       u32 first, u64 engine)
{
	if (map->dev->profile.n_engines && !engine && !capable(CAP_SYS_RAWIO))
		return rashpa_fail(call, -EPERM,
				   "entries from %u on are not in one engine of fpga%d alone, so the end of the map would stop all engines: choose entries of an existing engine, or use CAP_SYS_RAWIO",
				   first, map->dev->id);
	return rashpa_map_check_others(call, map, engine);
}

/* Progress of a PROGRAM call, which releases hw_lock between batches. */
struct rashpa_program_run {
	u32 resets;
	u64 generation;
	u32 written;
	u64 sum;
	bool done;
};

/* Check all segments before the old entries are cleared. */
static int rashpa_program_fits(struct rashpa_call *call, struct rashpa_map *map,
			       struct rashpa_program_run *run)
{
	const bool fetched = map->dev->profile.fetch.registers;
	u32 i = 0, count, end;
	u64 sum = 0;
	int err = 0;

	do {
		rashpa_hw_lock(map->dev);
		if (!i) {
			run->resets = map->dev->resets;
			run->generation = map->table->generation;
		}
		count = map->table->count;
		end = min(count, i + RASHPA_PROGRAM_BATCH);
		if (map->table->generation != run->generation ||
		    map->table->state != RASHPA_MAP_STATE_VALID)
			err = rashpa_program_stale(call);
		for (; i < end && !err; i++) {
			err = fetched ? rashpa_fetch_fits(call, map, i, sum) :
					rashpa_entry_fits(call, map, i, sum);
			sum += map->table->segment[i].length;
		}
		mutex_unlock(&map->dev->hw_lock);
		cond_resched();
	} while (i < count && !err);
	return err;
}

/* Clear the old entries and reserve new ones, which are still empty. */
static int rashpa_program_move(struct rashpa_call *call, struct rashpa_map *map,
			       const struct rashpa_program_run *run, u32 first, bool reprogram)
{
	struct rashpa_device *dev = map->dev;
	const bool one = rashpa_one_entry(dev);
	const u32 entries = one ? 1 : map->table->count, all = rashpa_entries(dev);
	u64 engine;
	int err;

	lockdep_assert_held(&dev->hw_lock);
	if (first > all || entries > all - first)
		return rashpa_fail(call, -ERANGE,
				   "%u %s from entry %u on exceed the %u entries of the table",
				   entries, one ? "map" : "segments", first, all);
	if (map->table->generation != run->generation)
		return rashpa_program_stale(call);
	err = rashpa_program_free(call, map, first, entries);
	if (err)
		return err;
	engine = rashpa_engine_of(dev, first, entries);
	err = rashpa_program_check_engine(call, map, first, engine);
	if (err)
		return err;
	if (rashpa_unprogram(map))
		return rashpa_program_unresponsive(call, map);
	map->programmed = true;
	map->first = first;
	map->place = entries;
	map->resets = dev->resets;
	list_del_init(&map->reprogram);
	if (reprogram)
		list_add_tail(&map->reprogram, &dev->reprogram);
	WRITE_ONCE(map->engines, map->engines | engine);
	map->exposed |= !engine;
	set_bit(RASHPA_CHARGE_PROGRAMMED, &map->charge.flags);
	return 0;
}

/*
 * Write the next batch of entries. map->entries counts them even if the function does not answer:
 * it may have received them. Since the last batch the map may have ended or moved, or a reset may
 * have cleared the entries.
 */
static int rashpa_program_more(struct rashpa_call *call, struct rashpa_map *map,
			       struct rashpa_program_run *run)
{
	const u32 end = min(map->table->count, run->written + RASHPA_PROGRAM_BATCH);

	lockdep_assert_held(&map->dev->hw_lock);
	if (map->table->generation != run->generation || !map->programmed)
		return rashpa_program_stale(call);
	if (map->dev->resets != run->resets)
		return rashpa_fail(call, -ESTALE, "fpga%d was reset meanwhile: try again",
				   map->dev->id);
	for (; run->written < end; run->written++) {
		const struct rashpa_segment *s = &map->table->segment[run->written];

		if (map->ring)
			rashpa_fetch_write(map, run->written, run->sum);
		else if (map->dev->profile.fetch.registers)
			rashpa_fetch_point(map, run->written, run->sum);
		else
			rashpa_entry_write(rashpa_entry(map->dev, map->first + run->written),
					   &map->dev->profile.layout, s, run->sum);
		run->sum += s->length;
	}
	run->done = end == map->table->count;
	/* an unfinished ring is not known to the function */
	if (map->ring && !run->done)
		return 0;
	if (map->ring)
		rashpa_fetch_point(map, 0, 0);
	map->entries = rashpa_one_entry(map->dev) ? 1 : end;
	if (rashpa_entries_flush(map->dev, map->first))
		return rashpa_program_unresponsive(call, map);
	return 0;
}

static int rashpa_program(struct rashpa_call *call, struct rashpa_map *map,
			  struct rashpa_program *p, bool reprogram)
{
	struct rashpa_program_run run = { };
	int err;

	lockdep_assert_held(&map->dev->lock);
	/* ended after rashpa_program_room() */
	if (map->dev->profile.fetch.fields && (map->ended || !map->ring))
		return rashpa_program_stale(call);
	err = rashpa_program_fits(call, map, &run);
	if (err)
		return err;
	scoped_guard(rashpa_hw, map->dev)
		err = rashpa_program_move(call, map, &run, p->first, reprogram);
	for (; !err && !run.done; cond_resched()) {
		rashpa_hw_lock(map->dev);
		err = rashpa_program_more(call, map, &run);
		p->out_entries = map->entries;
		p->out_descriptors = map->dev->profile.fetch.registers ? map->table->count : 0;
		mutex_unlock(&map->dev->hw_lock);
	}
	trace_rashpa_program(map->dev->id, map->id, p->first, p->out_entries, err);
	return err;
}

/* Program a map again after a reset or revocation, if it asks for that, and notify listeners. */
void rashpa_reprogram(struct rashpa_map *map)
{
	struct rashpa_program p = { .first = map->first };
	struct rashpa_call call = { };
	int err;

	lockdep_assert_held(&map->dev->lock);
	if (map->ended)
		return;
	scoped_guard(rashpa_hw, map->dev)
		if (list_empty(&map->reprogram) || map->table->state != RASHPA_MAP_STATE_VALID ||
		    map->dev->state != RASHPA_STATE_READY ||
		    (map->programmed && map->resets == map->dev->resets))
			return;
	err = rashpa_program(&call, map, &p, true);
	/* the cause of -ESTALE queues the work again */
	if (err == -ESTALE)
		return;
	guard(mutex)(&map->dev->hw_lock);
	rashpa_map_event(map, err ? RASHPA_MAP_STATE_UNPROGRAMMED : RASHPA_MAP_STATE_PROGRAMMED);
}

/*
 * Allocate the ring if the function fetches descriptors. The map keeps it, also after an error.
 * Large rings take long: the function is not locked meanwhile. Profiles cannot change while maps
 * exist.
 */
static int rashpa_program_room(struct rashpa_call *call, struct rashpa_map *map)
{
	struct rashpa_fetching fetch;
	int err = rashpa_device_lock(call, map->dev);

	if (err)
		return err;
	fetch = map->dev->profile.fetch;
	if (map->ended)
		err = rashpa_program_stale(call);
	mutex_unlock(&map->dev->lock);
	if (err || !fetch.fields)
		return err;
	err = mutex_lock_interruptible(&map->lock);
	if (err)
		return err;
	err = map->attach ? rashpa_fetch_room(call, map, &fetch) : rashpa_program_stale(call);
	mutex_unlock(&map->lock);
	return err;
}

int rashpa_ioc_program(struct rashpa_call *call, void *arg)
{
	struct rashpa_map *map = call->obj;
	struct rashpa_device *dev = map->dev;
	struct rashpa_program *p = arg;
	int err = rashpa_program_room(call, map);

	if (err)
		return err;
	err = rashpa_device_lock(call, dev);
	if (err)
		return err;
	guard(rashpa_locked)(dev);
	if (dev->profile.table)
		return rashpa_program(call, map, p, p->head.flags & RASHPA_PROGRAM_AGAIN);
	return rashpa_fail(call, -ENOENT, "the profile of fpga%d describes no address table",
			   dev->id);
}
