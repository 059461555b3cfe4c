// SPDX-License-Identifier: GPL-2.0-only
/* DMA regions, the address table, and the transactions through both. See bus.h. */
#include "bus.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "log.h"
#include "vfu.h"

/*
 * A mapping of a file of the host. Behind an IOMMU the same memory arrives in thousands
 * of small pieces; they share one mapping of the whole file, so that a piece costs
 * neither a system call nor one of the process's limited number of mappings.
 */
struct bus_backing {
	struct bus_backing *next;
	dev_t dev;
	ino_t ino;
	uint64_t start;		/* file offset of map */
	uint64_t size;
	uint32_t prot;
	uint8_t *map;
	size_t users;		/* regions */
	bool shareable;
};

struct bus_region {
	uint64_t addr;
	uint64_t size;		/* addr + size - 1 does not overflow */
	uint64_t offset;	/* in the file */
	uint32_t prot;
	struct bus_backing *backing;	/* NULL: by messages */
};

/* A part of a transaction that is in one table entry and one region. */
struct piece {
	uint64_t addr;
	size_t length;
	uint8_t *host;		/* NULL: by messages */
};

/* --------------------------------------------- memory that is cut off --- */

static __thread sigjmp_buf cut_off;
static __thread volatile sig_atomic_t reaching;
static struct sigaction other_sigbus;

/* What nobody expected is for who was there before us: it happens again at once. */
static void on_sigbus(int number)
{
	if (reaching)
		siglongjmp(cut_off, 1);
	sigaction(number, &other_sigbus, NULL);
}

/* SA_NODEFER: the jump leaves the signal mask as it is. */
static void catch_sigbus(void)
{
	struct sigaction action = { .sa_handler = on_sigbus, .sa_flags = SA_NODEFER };

	sigaction(SIGBUS, &action, &other_sigbus);
}

static void copy_out(const struct piece *piece, void *data)
{
	memcpy(piece->host, data, piece->length);
}

static void copy_in(const struct piece *piece, void *data)
{
	memcpy(data, piece->host, piece->length);
}

/*
 * The file is the client's, which may have made it shorter since it was mapped: then this is
 * false, and something may have been copied.
 */
static bool reach(const struct piece *piece, void *data,
		  void (*copy)(const struct piece *piece, void *data))
{
	if (sigsetjmp(cut_off, 0)) {
		reaching = 0;
		return false;
	}
	reaching = 1;
	atomic_signal_fence(memory_order_seq_cst);
	copy(piece, data);
	atomic_signal_fence(memory_order_seq_cst);
	reaching = 0;
	return true;
}

int bus_init(struct bus *bus, struct vfu *vfu, uint32_t entries)
{
	pthread_rwlockattr_t attr;
	int err;

	memset(bus, 0, sizeof(*bus));
	bus->vfu = vfu;
	bus->entries = entries;
	bus->generation = 1;
	pthread_rwlockattr_init(&attr);
	/* The engine takes the lock again and again: it must not starve an unmap. */
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	err = pthread_rwlock_init(&bus->lock, &attr);
	pthread_rwlockattr_destroy(&attr);
	catch_sigbus();
	return -err;
}

void bus_destroy(struct bus *bus)
{
	bus_unmap_all(bus);
	free(bus->regions);
	pthread_rwlock_destroy(&bus->lock);
}

void bus_lock(struct bus *bus)
{
	pthread_rwlock_rdlock(&bus->lock);
}

void bus_unlock(struct bus *bus)
{
	pthread_rwlock_unlock(&bus->lock);
}

/* ------------------------------------------------------------- regions --- */

static void backing_put(struct bus *bus, struct bus_backing *backing)
{
	struct bus_backing **link = &bus->backings;

	if (!backing || --backing->users)
		return;
	while (*link != backing)
		link = &(*link)->next;
	*link = backing->next;
	munmap(backing->map, backing->size);
	free(backing);
}

static struct bus_backing *backing_find(struct bus *bus, const struct stat *st,
					uint64_t end, uint32_t prot)
{
	struct bus_backing *b;

	for (b = bus->backings; b; b = b->next)
		if (b->shareable && b->dev == st->st_dev && b->ino == st->st_ino &&
		    b->size >= end && (b->prot & prot) == prot)
			return b;
	return NULL;
}

static struct bus_backing *backing_map(struct bus *bus, const struct stat *st, int fd,
				       uint64_t start, uint64_t size, uint32_t prot)
{
	struct bus_backing *b = calloc(1, sizeof(*b));
	void *map;

	if (!b)
		return NULL;
	b->prot = BUS_READ | BUS_WRITE;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)start);
	if (map == MAP_FAILED && !(prot & BUS_WRITE)) {
		b->prot = BUS_READ;
		map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)start);
	}
	if (map == MAP_FAILED) {
		free(b);
		return NULL;
	}
	b->dev = st->st_dev;
	b->ino = st->st_ino;
	b->start = start;
	b->size = size;
	b->map = map;
	b->shareable = S_ISREG(st->st_mode) && start == 0;
	b->next = bus->backings;
	bus->backings = b;
	return b;
}

/* Called with the lock held for writing; takes no reference. */
static struct bus_backing *backing_get(struct bus *bus, int fd, uint64_t offset,
				       uint64_t size, uint32_t prot)
{
	const uint64_t page = 4096;
	struct bus_backing *b;
	struct stat st;
	uint64_t end, start;

	if (__builtin_add_overflow(offset, size, &end) || end > INT64_MAX - page) {
		errno = EINVAL;
		return NULL;
	}
	if (fstat(fd, &st))
		return NULL;
	if (S_ISREG(st.st_mode)) {
		if (end > (uint64_t)st.st_size) {
			errno = EINVAL;
			return NULL;
		}
		b = backing_find(bus, &st, end, prot);
		return b ? b : backing_map(bus, &st, fd, 0, (uint64_t)st.st_size, prot);
	}
	/* not a file of memory: map what was named and nothing else */
	start = offset & ~(page - 1);
	return backing_map(bus, &st, fd, start, end - start, prot);
}

/* Index of the first region that ends after addr. */
static size_t region_after(const struct bus *bus, uint64_t addr)
{
	size_t low = 0, high = bus->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct bus_region *r = &bus->regions[mid];

		if (r->addr + (r->size - 1) < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static const struct bus_region *region_find(struct bus *bus, uint64_t addr)
{
	const struct bus_region *r;
	size_t i = bus->last;

	if (i >= bus->count || addr - bus->regions[i].addr >= bus->regions[i].size)
		i = region_after(bus, addr);
	if (i >= bus->count)
		return NULL;
	r = &bus->regions[i];
	if (addr < r->addr)
		return NULL;
	bus->last = i;
	return r;
}

static int region_insert(struct bus *bus, size_t at, const struct bus_region *region)
{
	if (bus->count == bus->room) {
		size_t room = bus->room ? 2 * bus->room : 64;
		void *p = reallocarray(bus->regions, room, sizeof(*bus->regions));

		if (!p)
			return -ENOMEM;
		bus->regions = p;
		bus->room = room;
	}
	memmove(&bus->regions[at + 1], &bus->regions[at],
		(bus->count - at) * sizeof(*bus->regions));
	bus->regions[at] = *region;
	bus->count++;
	return 0;
}

static void region_remove(struct bus *bus, size_t at)
{
	backing_put(bus, bus->regions[at].backing);
	bus->count--;
	memmove(&bus->regions[at], &bus->regions[at + 1],
		(bus->count - at) * sizeof(*bus->regions));
}

/* Does b go on where a ends, on the bus and in the same file? Not if both are all there is. */
static bool region_joins(const struct bus_region *a, const struct bus_region *b)
{
	uint64_t size;

	return !__builtin_add_overflow(a->size, b->size, &size) &&
	       a->addr + a->size == b->addr && a->backing == b->backing &&
	       a->prot == b->prot && (!a->backing || a->offset + a->size == b->offset);
}

/* Pages of one buffer arrive one by one: keep them as one region. */
static void region_join(struct bus *bus, size_t at)
{
	struct bus_region *r = bus->regions;

	if (at + 1 < bus->count && region_joins(&r[at], &r[at + 1])) {
		r[at].size += r[at + 1].size;
		region_remove(bus, at + 1);
	}
	if (at > 0 && region_joins(&r[at - 1], &r[at])) {
		r[at - 1].size += r[at].size;
		region_remove(bus, at);
	}
}

static int map_locked(struct bus *bus, struct bus_region *region, int fd)
{
	size_t at = region_after(bus, region->addr);
	int err;

	if (at < bus->count && bus->regions[at].addr - region->addr < region->size)
		return -EEXIST;
	if (at < bus->count && bus->regions[at].addr < region->addr)
		return -EEXIST;
	if (fd >= 0) {
		region->backing = backing_get(bus, fd, region->offset, region->size,
					      region->prot);
		if (!region->backing)
			return -errno;
		region->backing->users++;
	}
	err = region_insert(bus, at, region);
	if (err)
		backing_put(bus, region->backing);
	else
		region_join(bus, at);
	return err;
}

/* The descriptor stays the caller's. fd < 0: reachable by messages only. */
int bus_map(struct bus *bus, uint64_t addr, uint64_t size, uint64_t offset,
	    uint32_t prot, int fd)
{
	struct bus_region region = {
		.addr = addr, .size = size, .offset = offset, .prot = prot,
	};
	uint64_t end;
	int err;

	if (!size || __builtin_add_overflow(addr, size - 1, &end))
		return -EINVAL;
	pthread_rwlock_wrlock(&bus->lock);
	err = map_locked(bus, &region, fd);
	pthread_rwlock_unlock(&bus->lock);
	return err;
}

/* Take [addr, last] out of region i, which overlaps it; true if the region is gone. */
static bool region_cut(struct bus *bus, size_t i, uint64_t addr, uint64_t last)
{
	struct bus_region *r = &bus->regions[i], tail = *r;
	uint64_t r_last = r->addr + (r->size - 1);

	if (addr <= r->addr && last >= r_last) {
		region_remove(bus, i);
		return true;
	}
	if (last < r_last) {
		tail.addr = last + 1;
		tail.size = r_last - last;
		tail.offset += tail.addr - r->addr;
	}
	if (addr > r->addr) {
		r->size = addr - r->addr;
		if (last >= r_last)
			return false;
		/* both ends stay; if memory is short, better too little than too much */
		if (!region_insert(bus, i + 1, &tail) && tail.backing)
			tail.backing->users++;
		return false;
	}
	*r = tail;
	return false;
}

/* Ranges that were never mapped are no error: a host unmaps more than it mapped. */
void bus_unmap(struct bus *bus, uint64_t addr, uint64_t size)
{
	uint64_t last;
	size_t i;

	if (!size)
		return;
	if (__builtin_add_overflow(addr, size - 1, &last))
		last = UINT64_MAX;
	pthread_rwlock_wrlock(&bus->lock);
	i = region_after(bus, addr);
	while (i < bus->count && bus->regions[i].addr <= last)
		if (!region_cut(bus, i, addr, last))
			i++;
	pthread_rwlock_unlock(&bus->lock);
}

void bus_unmap_all(struct bus *bus)
{
	pthread_rwlock_wrlock(&bus->lock);
	while (bus->count)
		region_remove(bus, bus->count - 1);
	pthread_rwlock_unlock(&bus->lock);
}

void bus_set_master(struct bus *bus, bool on)
{
	pthread_rwlock_wrlock(&bus->lock);
	bus->master = on;
	pthread_rwlock_unlock(&bus->lock);
}

/* ------------------------------------------------------- address table --- */

/* The protocol thread is the only writer and may read without the lock. */
uint32_t bus_table_read(const struct bus *bus, uint32_t offset)
{
	return bus->table[offset / 4];
}

void bus_table_write(struct bus *bus, uint32_t offset, uint32_t value)
{
	if (offset % RFPGA_ENTRY_STRIDE == RFPGA_ENTRY_CONTROL + 4 ||
	    offset / RFPGA_ENTRY_STRIDE >= bus->entries)
		return;
	if (offset % RFPGA_ENTRY_STRIDE == RFPGA_ENTRY_CONTROL)
		value &= RFPGA_ENTRY_VALID;
	pthread_rwlock_wrlock(&bus->lock);
	bus->table[offset / 4] = value;
	bus->generation++;
	pthread_rwlock_unlock(&bus->lock);
}

void bus_table_clear(struct bus *bus)
{
	pthread_rwlock_wrlock(&bus->lock);
	memset(bus->table, 0, sizeof(bus->table));
	bus->generation++;
	pthread_rwlock_unlock(&bus->lock);
}

void bus_space_init(struct bus_space *space, uint32_t first, uint32_t count)
{
	*space = (struct bus_space){ .first = first, .count = count };
}

static bool refuse(struct bus_fault *fault, uint32_t cause, uint64_t addr)
{
	fault->cause = cause;
	fault->addr = addr;
	return false;
}

/*
 * Find the entry that holds the offset: entries follow one another in a linear space,
 * each as long as its length says. All of them up to the wanted one must be valid.
 */
static bool space_find(const struct bus *bus, struct bus_space *space, uint64_t offset,
		       struct piece *piece, struct bus_fault *fault)
{
	uint32_t end = space->first + space->count;

	if (space->wild)
		return !__builtin_add_overflow(space->wild_addr, offset, &piece->addr) ||
		       refuse(fault, RFPGA_FAULT_BUS, space->wild_addr);
	if (space->generation != bus->generation || offset < space->base) {
		space->generation = bus->generation;
		space->cur = space->first;
		space->base = 0;
	}
	for (; space->cur < end; space->cur++) {
		const uint32_t *e = &bus->table[space->cur * (RFPGA_ENTRY_STRIDE / 4)];
		uint64_t addr = e[0] | (uint64_t)e[1] << 32;
		uint64_t length = e[2] | (uint64_t)e[3] << 32;
		uint64_t skip = offset - space->base;

		if (!(e[RFPGA_ENTRY_CONTROL / 4] & RFPGA_ENTRY_VALID))
			break;
		if (skip < length) {
			if (__builtin_add_overflow(addr, skip, &piece->addr))
				return refuse(fault, RFPGA_FAULT_BUS, addr);
			if (piece->length > length - skip)
				piece->length = length - skip;
			return true;
		}
		/* cannot overflow: length <= skip = offset - base */
		space->base += length;
	}
	space->generation = 0;
	return refuse(fault, RFPGA_FAULT_ENTRY, offset);
}

/* The part at the offset, at most length long, that is in one entry and one region. */
static bool piece_find(struct bus *bus, struct bus_space *space, uint64_t offset,
		       size_t length, uint32_t prot, struct piece *piece,
		       struct bus_fault *fault)
{
	const struct bus_region *r;
	uint64_t skip;

	piece->length = length;
	if (!space_find(bus, space, offset, piece, fault))
		return false;
	if (!bus->master && !space->sent)
		return refuse(fault, RFPGA_FAULT_MASTER, piece->addr);
	r = region_find(bus, piece->addr);
	if (!r || (r->prot & prot) != prot)
		return refuse(fault, RFPGA_FAULT_BUS, piece->addr);
	skip = piece->addr - r->addr;
	if (piece->length > r->size - skip)
		piece->length = r->size - skip;
	piece->host = NULL;
	if (r->backing)
		piece->host = r->backing->map + (r->offset - r->backing->start) + skip;
	return true;
}

/* -------------------------------------------------------- transactions --- */

/* Let the host do it; gives the lock away meanwhile. */
static bool message(struct bus *bus, const struct piece *piece, uint8_t *data, bool write,
		    struct bus_fault *fault)
{
	int err;

	bus_unlock(bus);
	err = vfu_dma(bus->vfu, write, piece->addr, data, piece->length);
	bus_lock(bus);
	if (!err)
		return true;
	if (err == -ECANCELED)
		return refuse(fault, RFPGA_FAULT_NONE, 0);
	log_limited("DMA message at %#llx: %s", (unsigned long long)piece->addr,
		    strerror(-err));
	return refuse(fault, RFPGA_FAULT_BUS, piece->addr);
}

static bool execute(struct bus *bus, const struct piece *piece, uint8_t *data, bool write,
		    struct bus_fault *fault)
{
	if (!piece->host)
		return message(bus, piece, data, write, fault);
	return reach(piece, data, write ? copy_out : copy_in) ||
	       refuse(fault, RFPGA_FAULT_BUS, piece->addr);
}

static bool check(struct bus *bus, struct bus_space *space, uint64_t offset,
		  uint64_t length, uint32_t prot, struct bus_fault *fault)
{
	struct piece piece;

	for (; length; offset += piece.length, length -= piece.length)
		if (!piece_find(bus, space, offset, length, prot, &piece, fault))
			return false;
	return true;
}

/* A posted write: that it was discarded on its way need not be told. */
static bool dropped(const struct bus_space *space, const struct bus_fault *fault)
{
	return space->drop && fault->cause == RFPGA_FAULT_BUS;
}

bool bus_check(struct bus *bus, struct bus_space *space, uint64_t offset, uint64_t length,
	       struct bus_fault *fault)
{
	return check(bus, space, offset, length, BUS_WRITE, fault) || dropped(space, fault);
}

/* All of it is looked up before the first byte moves: refused means not executed. */
static bool transfer(struct bus *bus, struct bus_space *space, uint64_t offset,
		     uint8_t *data, size_t length, bool write, struct bus_fault *fault)
{
	uint32_t prot = write ? BUS_WRITE : BUS_READ;
	struct piece piece;

	if (!piece_find(bus, space, offset, length, prot, &piece, fault))
		return false;
	if (piece.length == length)
		return execute(bus, &piece, data, write, fault);
	if (!check(bus, space, offset, length, prot, fault))
		return false;
	for (; length; length -= piece.length) {
		if (!piece_find(bus, space, offset, length, prot, &piece, fault) ||
		    !execute(bus, &piece, data, write, fault))
			return false;
		offset += piece.length;
		data += piece.length;
	}
	return true;
}

bool bus_write(struct bus *bus, struct bus_space *space, uint64_t offset, const void *data,
	       size_t length, struct bus_fault *fault)
{
	return transfer(bus, space, offset, (uint8_t *)data, length, true, fault) ||
	       dropped(space, fault);
}

bool bus_read(struct bus *bus, struct bus_space *space, uint64_t offset, void *data,
	      size_t length, struct bus_fault *fault)
{
	return transfer(bus, space, offset, data, length, false, fault);
}

/*
 * Words become visible in the order of their addresses, as those of one write on a real bus,
 * and after everything that was written before.
 */
static void copy_record(const struct piece *piece, void *data)
{
	uint64_t *host = (uint64_t *)piece->host, *record = data;
	size_t i;

	for (i = 0; i < piece->length / 8; i++)
		__atomic_store_n(&host[i], record[i], __ATOMIC_RELEASE);
}

static bool write_record(struct bus *bus, struct bus_space *space, uint64_t offset,
			 const uint64_t record[RFPGA_LOCK_SIZE / 8], size_t length,
			 struct bus_fault *fault)
{
	struct piece piece;

	if (!piece_find(bus, space, offset, RFPGA_LOCK_SIZE, BUS_WRITE, &piece, fault))
		return false;
	if (piece.length != RFPGA_LOCK_SIZE || piece.addr % RFPGA_LOCK_SIZE)
		return refuse(fault, RFPGA_FAULT_ENTRY, offset);
	piece.length = length;
	if (!piece.host)
		return message(bus, &piece, (uint8_t *)record, true, fault);
	if ((uintptr_t)piece.host % sizeof(*record) ||
	    !reach(&piece, (void *)record, copy_record))
		return refuse(fault, RFPGA_FAULT_BUS, piece.addr);
	return true;
}

bool bus_write_record(struct bus *bus, struct bus_space *space, uint64_t offset,
		      const uint64_t record[RFPGA_LOCK_SIZE / 8], size_t length,
		      struct bus_fault *fault)
{
	return write_record(bus, space, offset, record, length, fault) || dropped(space, fault);
}

/* An MSI-X message is a memory write too. */
bool bus_may_interrupt(struct bus *bus, struct bus_fault *fault)
{
	return bus->master || refuse(fault, RFPGA_FAULT_MASTER, 0);
}
