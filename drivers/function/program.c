// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: address tables of functions: the segments of maps, where the kernel writes them.
 */
#include <linux/capability.h>
#include <linux/dma-buf.h>
#include <linux/io.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>

#include "function/map.h"

/* -------------------------------------------------------- entries ---- */

static void rashpa_entry_write(void __iomem *entry, u32 offset, u32 bits, u64 value)
{
	writel(lower_32_bits(value), entry + offset);
	if (bits == 64)
		writel(upper_32_bits(value), entry + offset + sizeof(u32));
}

/* By the control field; where there is none, an entry of no length leads nowhere. */
static void rashpa_entry_invalidate(void __iomem *entry, const struct rashpa_layout *l)
{
	if (l->control_bits)
		writel(l->control_clear, entry + l->control_offset);
	else
		rashpa_entry_write(entry, l->length_offset, l->length_bits, 0);
	/* not valid before another address */
	wmb();
}

/*
 * Valid last: the function must never see half an entry. The CPU may combine writes, where
 * somebody has a write-combined window of the table: x86 knows one mode for a range.
 */
static void rashpa_entry_set(void __iomem *entry, const struct rashpa_layout *l,
			     const struct rashpa_segment *s, u64 sum)
{
	rashpa_entry_invalidate(entry, l);
	rashpa_entry_write(entry, l->address_offset, l->address_bits, s->address);
	if (l->sum_bits)
		rashpa_entry_write(entry, l->sum_offset, l->sum_bits, sum);
	if (!l->control_bits)
		/* address and sum before the length, which makes it valid */
		wmb();
	if (l->length_bits)
		rashpa_entry_write(entry, l->length_offset, l->length_bits, s->length);
	if (l->control_bits) {
		/* the other fields before it is valid */
		wmb();
		writel(l->control_set, entry + l->control_offset);
	}
}

static void rashpa_entry_clear(void __iomem *entry, const struct rashpa_layout *l)
{
	rashpa_entry_invalidate(entry, l);
	rashpa_entry_write(entry, l->address_offset, l->address_bits, 0);
	if (l->length_bits)
		rashpa_entry_write(entry, l->length_offset, l->length_bits, 0);
	if (l->sum_bits)
		rashpa_entry_write(entry, l->sum_offset, l->sum_bits, 0);
}

/*
 * Writes are posted: a read makes sure that they have arrived. No address of a page ends in
 * all ones, but a table may be write-only: then another register tells. Where the BARs are
 * switched off, nobody has heard them, and what is read may be zero.
 *
 * Return: 0, -EIO if the function does not answer.
 */
static int rashpa_entries_flush(struct rashpa_device *dev, void __iomem *regs,
				const struct rashpa_layout *l, bool fetched)
{
	bool ones;

	/* what was combined leaves the CPU before the read */
	mb();
	ones = readl(regs + (fetched ? rashpa_fetch_register(dev) : l->address_offset)) == ~0U;
	return !rashpa_device_reachable(dev) || (ones && !rashpa_profile_answers(dev)) ? -EIO : 0;
}

/*
 * Memory that can be reached is not given back before: nobody else has the lock until it is
 * done.
 */
static int rashpa_entries_clear(struct rashpa_device *dev, void __iomem *regs,
				const struct rashpa_layout *l, bool fetched, u64 n)
{
	u64 i;

	lockdep_assert_held(&dev->hw_lock);
	if (!n)
		return 0;
	for (i = 0; i < n; i++) {
		if (fetched)
			rashpa_fetch_forget(dev, regs + i * l->stride);
		else
			rashpa_entry_clear(regs + i * l->stride, l);
		cond_resched();
	}
	return rashpa_entries_flush(dev, regs, l, fetched);
}

/**
 * rashpa_unprogram() - clear the entries of a map
 * @map: the map; hw_lock of its function held, which is not being reset
 *
 * Return: 0; -EIO if the function does not answer: the entries stay the map's, unless that has
 * ended for good.
 */
int rashpa_unprogram(struct rashpa_map *map)
{
	int err = 0;

	lockdep_assert_held(&map->dev->hw_lock);
	if (!map->regs)
		return 0;
	/* a ring of which it was not told yet is no entry, but there are addresses in it */
	if (!map->dev->gone)
		err = rashpa_entries_clear(map->dev, map->regs, &map->layout, map->fetched,
					   map->entries);
	if (err && !map->ended)
		return err;
	if (map->fetched)
		rashpa_fetch_clear(map);
	iounmap(map->regs);
	clear_bit(RASHPA_CHARGE_PROGRAMMED, &map->charge.flags);
	map->regs = NULL;
	map->entries = 0;
	/* nobody else gets its place while it is revoked */
	if (list_empty(&map->again))
		map->place = 0;
	list_del_init(&map->stale);
	return err;
}

/*
 * Exporters that give memory back to the system wait for hw_lock: what is allocated under it must
 * not wait for them.
 */
static void __iomem *rashpa_entries_map(struct rashpa_device *dev, phys_addr_t phys, u64 length)
{
	const unsigned int flags = memalloc_noreclaim_save();
	void __iomem *regs = ioremap(phys, length);

	lockdep_assert_held(&dev->hw_lock);
	memalloc_noreclaim_restore(flags);
	return regs;
}

/**
 * rashpa_table_clear() - clear the whole table that the profile declares
 * @dev: the function, hw_lock held; its bus mastering is off
 *
 * Return: 0, -EIO if the function does not answer, -ENOMEM.
 */
int rashpa_table_clear(struct rashpa_device *dev)
{
	const struct rashpa_bar_range *t = &dev->table;
	void __iomem *regs;
	int err;

	lockdep_assert_held(&dev->hw_lock);
	if (!t->length)
		return 0;
	regs = rashpa_entries_map(dev, pci_resource_start(dev->pdev, t->bar) + t->offset,
				  t->length);
	if (!regs)
		return -ENOMEM;
	err = rashpa_entries_clear(dev, regs, &dev->table_layout, dev->fetch.fields,
				   div64_u64(t->length, dev->table_layout.stride));
	iounmap(regs);
	return err;
}

/* -------------------------------------------------------- program ---- */

/* Entries that are written before others get at the lock. */
#define RASHPA_PROGRAM_BATCH	1024

static int rashpa_program_fits(struct rashpa_call *call,
			       const struct rashpa_map *map,
			       const struct rashpa_layout *l)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < map->table->count; i++) {
		const struct rashpa_segment *s = &map->table->segment[i];

		if (l->address_bits == 32 && s->address + s->length - 1 > U32_MAX)
			return rashpa_fail(call, -EOVERFLOW,
					   "segment %u is above 4 GiB, the address field has 32 bits: set dma_bits to 32 in the profile",
					   i);
		if (l->length_bits == 32 && s->length > U32_MAX)
			return rashpa_fail(call, -EOVERFLOW,
					   "segment %u is 4 GiB or longer, the length field has 32 bits: set max_segment",
					   i);
		if (l->segment_size && s->length != l->segment_size)
			return rashpa_fail(call, -EINVAL,
					   "segment %u has 0x%llx bytes, an entry without a length covers 0x%llx: map in such segments",
					   i, s->length, l->segment_size);
		if (l->sum_bits == 32 && sum > U32_MAX)
			return rashpa_fail(call, -EOVERFLOW,
					   "segment %u begins 0x%llx bytes behind the map's beginning, the sum field has 32 bits: map less at a time",
					   i, sum);
		sum += s->length;
		cond_resched();
	}
	return 0;
}

/* Two maps in one place: the end of the first would clear the second. */
static int rashpa_program_free(struct rashpa_call *call, struct rashpa_map *map,
			       phys_addr_t phys, u64 length)
{
	struct rashpa_map *other;

	list_for_each_entry(other, &map->dev->maps, entry) {
		if (other != map && phys < other->regs_phys + other->place &&
		    other->regs_phys < phys + length)
			return rashpa_fail(call, -EBUSY,
					   "another map is programmed in these entries: choose others or close it");
	}
	return 0;
}

/**
 * struct rashpa_place - where a map is to be programmed
 * @phys: CPU address of entry 0
 * @length: of the whole table, bytes
 * @layout: of an entry
 * @fetched: an entry says where a ring is
 * @again: the kernel does it by itself from now on
 */
struct rashpa_place {
	phys_addr_t phys;
	u64 length;
	struct rashpa_layout layout;
	bool fetched;
	bool again;
};

static int rashpa_program_stale(struct rashpa_call *call)
{
	return rashpa_fail(call, -ESTALE, "the map is revoked: restore it, or make a new one");
}

static int rashpa_program_deaf(struct rashpa_call *call, const struct rashpa_map *map)
{
	return rashpa_fail(call, -EIO, "fpga%d does not answer: reset it", map->dev->id);
}

/**
 * rashpa_map_check_others() - may the function get the addresses of a map?
 * @call: the ioctl, for the reason; or NULL
 * @map: the map; hw_lock of its function held
 * @engine: the bit for the one that will have them; 0 for the function
 *
 * The end of the map stops that engine, or the function. Refused if another user's stream may
 * run there, unless the caller has CAP_SYS_RAWIO: he could write the registers as well.
 *
 * Return: 0, -EBUSY.
 */
int rashpa_map_check_others(struct rashpa_call *call, const struct rashpa_map *map, u64 engine)
{
	const struct rashpa_map *other;

	lockdep_assert_held(&map->dev->hw_lock);
	list_for_each_entry(other, &map->dev->maps, entry) {
		if (other->charge.user == map->charge.user)
			continue;
		if (!other->told && !(other->engines & (engine ?: ~0ULL)))
			continue;
		if (capable(CAP_SYS_RAWIO))
			return 0;
		return call ? rashpa_fail(call, -EBUSY,
					  "%s of fpga%d has addresses of map %u, which is somebody else's: it would be stopped with this map. Use another engine, wait for the end of that map (rashpactl list names its process), or use CAP_SYS_RAWIO",
					  engine ? "the engine" : "something", map->dev->id,
					  other->id) : -EBUSY;
	}
	return 0;
}

/*
 * May the end of this map stop what reads these entries? The end of a map in entries of no engine
 * stops the whole function: where there are engines, that needs CAP_SYS_RAWIO.
 */
static int rashpa_program_alone(struct rashpa_call *call, const struct rashpa_map *map,
				u32 first, u64 engine)
{
	if (map->dev->n_engines && !engine && !capable(CAP_SYS_RAWIO))
		return rashpa_fail(call, -EPERM,
				   "entries from %u on are not in one engine of fpga%d alone: its end would stop all engines. Choose entries of an engine that the board has, or use CAP_SYS_RAWIO",
				   first, map->dev->id);
	return rashpa_map_check_others(call, map, engine);
}

/* Leave the old place for a new one, which is still empty. */
static int rashpa_program_move(struct rashpa_call *call, struct rashpa_map *map, u32 first,
			       const struct rashpa_place *at)
{
	const u32 entries = at->fetched ? 1 : map->table->count;
	const u64 stride = at->layout.stride;
	const u64 start = first * stride, length = entries * stride;
	void __iomem *regs;
	u64 engine;
	int err;

	lockdep_assert_held(&map->dev->hw_lock);
	if (start > at->length || length > at->length - start)
		return rashpa_fail(call, -ERANGE,
				   "%u %s from entry %u on do not fit into the %llu entries of the table",
				   entries, at->fetched ? "ring" : "segments", first,
				   div64_u64(at->length, stride));
	if (map->table->state != RASHPA_MAP_STATE_VALID)
		return rashpa_program_stale(call);
	err = at->fetched ? rashpa_fetch_fits_registers(call, map) :
			    rashpa_program_fits(call, map, &at->layout);
	if (err)
		return err;
	err = rashpa_program_free(call, map, at->phys + start, length);
	if (err)
		return err;
	engine = rashpa_engine_of(map->dev, at->phys + start, length);
	err = rashpa_program_alone(call, map, first, engine);
	if (err)
		return err;
	regs = rashpa_entries_map(map->dev, at->phys + start, length);
	if (!regs)
		return -ENOMEM;
	if (rashpa_unprogram(map)) {
		iounmap(regs);
		return rashpa_program_deaf(call, map);
	}
	map->regs = regs;
	map->regs_phys = at->phys + start;
	map->place = length;
	map->layout = at->layout;
	map->fetched = at->fetched;
	map->first = first;
	map->resets = map->dev->resets;
	list_del_init(&map->again);
	if (at->again)
		list_add_tail(&map->again, &map->dev->again);
	WRITE_ONCE(map->engines, map->engines | engine);
	map->told |= !engine;
	set_bit(RASHPA_CHARGE_PROGRAMMED, &map->charge.flags);
	return 0;
}

/*
 * The function is told of a ring when all of it is there.
 *
 * Return: whether it was.
 */
static bool rashpa_program_ring(struct rashpa_map *map, u64 *sum)
{
	if (!rashpa_fetch_more(map, RASHPA_PROGRAM_BATCH, sum))
		return false;
	rashpa_fetch_point(map);
	map->entries = 1;
	return true;
}

/* How far is a map on its way into a function? */
struct rashpa_so_far {
	u32 resets;
	u64 generation;
	u64 sum;
	bool done;
};

/*
 * The next entries. Each is the map's to clear from here on, also if the function does not
 * answer: it may have heard. The map may have ended since the last ones, and with it the place,
 * or come back with other addresses; and a reset, which the function forgets them by, may have come
 * between.
 */
static int rashpa_program_more(struct rashpa_call *call, struct rashpa_map *map,
			       struct rashpa_so_far *so_far)
{
	const u32 end = min(map->table->count, map->entries + RASHPA_PROGRAM_BATCH);

	lockdep_assert_held(&map->dev->hw_lock);
	if (map->table->generation != so_far->generation || !map->regs)
		return rashpa_program_stale(call);
	if (map->dev->resets != so_far->resets)
		return rashpa_fail(call, -ESTALE, "fpga%d was reset meanwhile: once more",
				   map->dev->id);
	so_far->done = map->fetched ? rashpa_program_ring(map, &so_far->sum) :
				      end == map->table->count;
	if (map->fetched && !so_far->done)
		return 0;
	while (!map->fetched && map->entries < end) {
		const struct rashpa_segment *s = &map->table->segment[map->entries];

		rashpa_entry_set(map->regs + (size_t)map->entries * map->layout.stride,
				 &map->layout, s, so_far->sum);
		so_far->sum += s->length;
		map->entries++;
	}
	if (rashpa_entries_flush(map->dev, map->regs, &map->layout, map->fetched))
		return rashpa_program_deaf(call, map);
	return 0;
}

/* Before the old place is left. There may be millions: others get at the lock meanwhile. */
static int rashpa_program_ring_fits(struct rashpa_call *call, struct rashpa_map *map,
				    const struct rashpa_so_far *so_far)
{
	u32 from, end, count;
	u64 sum = 0;
	int err = 0;

	for (from = 0, count = 1; from < count && !err; from = end) {
		rashpa_hw_lock(map->dev);
		count = map->table->count;
		end = min(count, from + RASHPA_PROGRAM_BATCH);
		if (map->table->generation != so_far->generation || !count)
			err = rashpa_program_stale(call);
		else
			err = rashpa_fetch_fits(call, map, from, end, &sum);
		mutex_unlock(&map->dev->hw_lock);
		cond_resched();
	}
	return err;
}

static int rashpa_program_at(struct rashpa_call *call, struct rashpa_map *map,
			     struct rashpa_program *p, const struct rashpa_place *at)
{
	struct rashpa_so_far so_far = { };
	int err;

	lockdep_assert_held(&map->dev->lock);
	/* it has ended since it had room for a ring */
	if (at->fetched && (map->ended || !map->ring))
		return rashpa_program_stale(call);
	rashpa_hw_lock(map->dev);
	so_far.resets = map->dev->resets;
	so_far.generation = map->table->generation;
	mutex_unlock(&map->dev->hw_lock);
	err = at->fetched ? rashpa_program_ring_fits(call, map, &so_far) : 0;
	if (err)
		return err;
	rashpa_hw_lock(map->dev);
	err = rashpa_program_move(call, map, p->first, at);
	mutex_unlock(&map->dev->hw_lock);
	for (; !err && !so_far.done; cond_resched()) {
		rashpa_hw_lock(map->dev);
		err = rashpa_program_more(call, map, &so_far);
		p->out_entries = map->entries;
		p->out_descriptors = map->fetched ? map->table->count : 0;
		mutex_unlock(&map->dev->hw_lock);
	}
	return err;
}

/* The profile's table, which does not change while there is a map. */
static void rashpa_place_profile(struct rashpa_device *dev, struct rashpa_place *at)
{
	lockdep_assert_held(&dev->lock);
	at->phys = pci_resource_start(dev->pdev, dev->table.bar) + dev->table.offset;
	at->length = dev->table.length;
	at->layout = dev->table_layout;
	at->fetched = dev->fetch.fields;
}

/* Is it valid, and does the function not have it, although it was to? */
static bool rashpa_program_due(struct rashpa_map *map)
{
	bool due;

	lockdep_assert_held(&map->dev->lock);
	if (map->ended)
		return false;
	rashpa_hw_lock(map->dev);
	due = !list_empty(&map->again) && map->table->state == RASHPA_MAP_STATE_VALID &&
	      map->dev->state == RASHPA_STATE_READY &&
	      (!map->regs || map->resets != map->dev->resets);
	mutex_unlock(&map->dev->hw_lock);
	return due;
}

/**
 * rashpa_program_again() - program a map that asks for it, where its function has lost it
 * @map: the map; its function is locked
 *
 * Return: enum rashpa_map_state, for readers; 0: there is nothing to report.
 */
u32 rashpa_program_again(struct rashpa_map *map)
{
	struct rashpa_place at = { .again = true };
	struct rashpa_program p = { .first = map->first };
	struct rashpa_call call = { };
	int err;

	if (!rashpa_program_due(map))
		return 0;
	rashpa_place_profile(map->dev, &at);
	err = rashpa_program_at(&call, map, &p, &at);
	/* what made it stale brings the worker here once more */
	if (err == -ESTALE)
		return 0;
	return err ? RASHPA_MAP_STATE_UNPROGRAMMED : RASHPA_MAP_STATE_PROGRAMMED;
}

/* The table that the profile describes: anybody's, because the kernel alone writes it. */
static int rashpa_program_profile(struct rashpa_call *call,
				  struct rashpa_map *map,
				  struct rashpa_program *p)
{
	struct rashpa_device *dev = map->dev;
	struct rashpa_place at = { .again = p->head.flags & RASHPA_PROGRAM_AGAIN };

	if (p->offset || p->length || p->layout || p->layout_size)
		return rashpa_fail(call, -EINVAL,
				   "the profile's table, and a place of your own, exclude each other");
	if (!dev->table.length)
		return rashpa_fail(call, -ENOENT,
				   "the profile of fpga%d describes no address table", dev->id);
	rashpa_place_profile(dev, &at);
	return rashpa_program_at(call, map, p, &at);
}

static int rashpa_program_window(struct rashpa_call *call,
				 struct rashpa_map *map,
				 struct rashpa_program *p, struct rashpa_place *at)
{
	struct dma_buf *window;
	int err;

	if (!IS_ALIGNED(p->offset, sizeof(u32)))
		return rashpa_fail(call, -EINVAL, "offset 0x%llx is not a multiple of 4",
				   p->offset);
	if (p->head.flags & RASHPA_PROGRAM_AGAIN)
		return rashpa_fail(call, -EINVAL,
				   "RASHPA_PROGRAM_AGAIN is for the table that the profile describes");
	err = rashpa_layout_check(call, &at->layout);
	if (err)
		return err;
	/* The caller chooses what is written where: the same as writing it himself. */
	if (!capable(CAP_SYS_RAWIO))
		return rashpa_fail(call, -EPERM,
				   "a place of your own needs CAP_SYS_RAWIO: describe the table in the profile");
	err = rashpa_lockdown_check(call, map->dev, "a table at a place of your own");
	if (err)
		return err;
	window = dma_buf_get(p->window);
	if (IS_ERR(window))
		return rashpa_fail(call, PTR_ERR(window), "fd %d is not a window", p->window);
	err = rashpa_window_phys(window, map->dev, p->offset, p->length, &at->phys);
	switch (err) {
	case -EINVAL:
		rashpa_fail(call, err, "fd %d is not a window", p->window);
		break;
	case -EXDEV:
		rashpa_fail(call, err, "the window is of another function than fpga%d",
			    map->dev->id);
		break;
	case -ERANGE:
		rashpa_fail(call, err,
			    "the table at 0x%llx of 0x%llx bytes is outside the window of 0x%llx bytes",
			    p->offset, p->length, (u64)window->size);
		break;
	case 0:
		err = rashpa_program_at(call, map, p, at);
		break;
	}
	dma_buf_put(window);
	return err;
}

/*
 * Room for a ring, where the profile's table says where rings are: it stays the map's, whatever
 * comes of this. It takes long if it is large: nobody who needs the function waits for it. A
 * profile does not change as long as it has maps.
 */
static int rashpa_program_room(struct rashpa_call *call, struct rashpa_map *map)
{
	struct rashpa_fetching fetch;
	int err;

	err = rashpa_device_lock(call, map->dev);
	if (err)
		return err;
	fetch = map->dev->fetch;
	if (map->ended)
		err = rashpa_program_stale(call);
	mutex_unlock(&map->dev->lock);
	if (err || !fetch.fields)
		return err;
	if (mutex_lock_interruptible(&map->lock))
		return rashpa_fail(call, -EINTR, "interrupted by a signal");
	err = map->attach ? rashpa_fetch_room(call, map, &fetch) : rashpa_program_stale(call);
	mutex_unlock(&map->lock);
	return err;
}

int rashpa_ioc_program(struct rashpa_call *call, void *arg)
{
	struct rashpa_map_file *mf = call->obj;
	struct rashpa_program *p = arg;
	struct rashpa_place at = { .length = p->length };
	int err = 0;

	p->out_descriptors = 0;
	/* not with locks: its memory may take as long to come as its owner likes */
	if (p->window != -1)
		err = rashpa_layout_fetch(call, p->layout, p->layout_size, &at.layout);
	else
		err = rashpa_program_room(call, mf->map);
	if (err)
		return err;
	err = rashpa_device_lock(call, mf->map->dev);
	if (err)
		return err;
	if (p->window == -1)
		err = rashpa_program_profile(call, mf->map, p);
	else
		err = rashpa_program_window(call, mf->map, p, &at);
	mutex_unlock(&mf->map->dev->lock);
	return err;
}
