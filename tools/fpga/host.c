// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory of the host, by bus address. See host.h. */
#include "fpga/host.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fpga/log.h"

/*
 * A mapping of a file of the host. Behind an IOMMU the same memory arrives in thousands
 * of small pieces; they share one mapping of the whole file, so that a piece costs
 * neither a system call nor one of the process's limited number of mappings.
 */
struct host_backing {
	struct host_backing *next, **link;	/* link: the pointer to this one */
	dev_t dev;
	ino_t ino;
	uint64_t start;		/* file offset of map */
	uint64_t size;
	uint32_t prot;
	uint8_t *map;
	size_t users;		/* regions */
	bool shareable;
};

struct host_region {
	uint64_t addr;
	uint64_t size;		/* addr + size - 1 does not overflow */
	uint64_t offset;	/* in the file */
	uint32_t prot;
	struct host_backing *backing;	/* NULL: by messages */
};

/* A part of a transaction within one region. */
struct piece {
	uint64_t addr;
	size_t length;
	uint8_t *host;		/* NULL: by messages */
};

/* --------------------------------------------- memory that is cut off --- */

static __thread sigjmp_buf cut_off;
static __thread volatile sig_atomic_t reaching;
static struct sigaction other_sigbus;

/* An unexpected SIGBUS goes to the previous handler: the access faults again at once. */
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

/* Words become visible in the order of their addresses, after all earlier writes. */
static void copy_words(const struct piece *piece, void *data)
{
	uint64_t *host = (uint64_t *)piece->host, *word = data;
	size_t i;

	for (i = 0; i < piece->length / sizeof(*word); i++)
		__atomic_store_n(&host[i], word[i], __ATOMIC_RELEASE);
}

/*
 * The client may have shortened its file since it was mapped. Then this returns false, and may
 * have copied a part.
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

int host_init(struct host *host)
{
	pthread_rwlockattr_t attr;
	int err;

	memset(host, 0, sizeof(*host));
	err = irq_init(&host->irq);
	if (err)
		return err;
	pthread_rwlockattr_init(&attr);
	/* A device takes the lock repeatedly, and must not starve an unmap. */
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	err = pthread_rwlock_init(&host->lock, &attr);
	pthread_rwlockattr_destroy(&attr);
	catch_sigbus();
	return -err;
}

void host_destroy(struct host *host)
{
	host_unmap_all(host);
	free(host->regions);
	irq_destroy(&host->irq);
	pthread_rwlock_destroy(&host->lock);
}

void host_set_wire(struct host *host, const struct host_wire *wire, void *server)
{
	host->wire = wire;
	host->server = server;
}

void host_begin(struct host *host)
{
	pthread_rwlock_rdlock(&host->lock);
}

void host_end(struct host *host)
{
	pthread_rwlock_unlock(&host->lock);
}

void host_exclude(struct host *host)
{
	pthread_rwlock_wrlock(&host->lock);
}

/* ------------------------------------------------------------- regions --- */

static void backing_put(struct host_backing *backing)
{
	if (!backing || --backing->users)
		return;
	*backing->link = backing->next;
	if (backing->next)
		backing->next->link = backing->link;
	munmap(backing->map, backing->size);
	free(backing);
}

static struct host_backing *backing_find(struct host *host, const struct stat *st,
					uint64_t end, uint32_t prot)
{
	struct host_backing *b;

	for (b = host->backings; b; b = b->next)
		if (b->shareable && b->dev == st->st_dev && b->ino == st->st_ino &&
		    b->size >= end && (b->prot & prot) == prot)
			return b;
	return NULL;
}

static struct host_backing *backing_map(struct host *host, const struct stat *st, int fd,
				       uint64_t start, uint64_t size, uint32_t prot)
{
	struct host_backing *b = calloc(1, sizeof(*b));
	void *map;

	if (!b)
		return NULL;
	b->prot = HOST_READ | HOST_WRITE;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)start);
	if (map == MAP_FAILED && !(prot & HOST_WRITE)) {
		b->prot = HOST_READ;
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
	b->link = &host->backings;
	b->next = host->backings;
	if (b->next)
		b->next->link = &b->next;
	host->backings = b;
	if (size > host->mapped_most)
		host->mapped_most = size;
	return b;
}

/* Called with the lock held for writing; takes no reference. */
static struct host_backing *backing_get(struct host *host, int fd, uint64_t offset,
				       uint64_t size, uint32_t prot)
{
	const uint64_t page = 4096;
	struct host_backing *b;
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
		b = backing_find(host, &st, end, prot);
		return b ? b : backing_map(host, &st, fd, 0, (uint64_t)st.st_size, prot);
	}
	/* not a file of memory: map only the named range */
	start = offset & ~(page - 1);
	return backing_map(host, &st, fd, start, end - start, prot);
}

/* Index of the first region that ends after addr. */
static size_t region_after(const struct host *host, uint64_t addr)
{
	size_t low = 0, high = host->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct host_region *r = &host->regions[mid];

		if (r->addr + (r->size - 1) < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static const struct host_region *region_find(struct host *host, uint64_t addr)
{
	const struct host_region *r;
	size_t i = atomic_load_explicit(&host->last, memory_order_relaxed);

	if (i >= host->count || addr - host->regions[i].addr >= host->regions[i].size)
		i = region_after(host, addr);
	if (i >= host->count)
		return NULL;
	r = &host->regions[i];
	if (addr < r->addr)
		return NULL;
	atomic_store_explicit(&host->last, i, memory_order_relaxed);
	return r;
}

static int region_insert(struct host *host, size_t at, const struct host_region *region)
{
	if (host->count == HOST_REGIONS) {
		log_limited("more than %u DMA regions: map fewer, and larger ones", HOST_REGIONS);
		return -ENOSPC;
	}
	if (host->count == host->room) {
		size_t room = host->room ? 2 * host->room : 64;
		void *p = reallocarray(host->regions, room, sizeof(*host->regions));

		if (!p)
			return -ENOMEM;
		host->regions = p;
		host->room = room;
	}
	memmove(&host->regions[at + 1], &host->regions[at],
		(host->count - at) * sizeof(*host->regions));
	host->regions[at] = *region;
	host->count++;
	return 0;
}

static void regions_remove(struct host *host, size_t at, size_t n)
{
	size_t i;

	if (!n)
		return;
	for (i = 0; i < n; i++)
		backing_put(host->regions[at + i].backing);
	host->count -= n;
	memmove(&host->regions[at], &host->regions[at + n],
		(host->count - at) * sizeof(*host->regions));
}

/* Is b adjacent to a, on the bus and in the same file? No, if together they cover all addresses. */
static bool region_joins(const struct host_region *a, const struct host_region *b)
{
	uint64_t size;

	return !__builtin_add_overflow(a->size, b->size, &size) &&
	       a->addr + a->size == b->addr && a->backing == b->backing &&
	       a->prot == b->prot && (!a->backing || a->offset + a->size == b->offset);
}

/* Pages of a buffer arrive one by one: merge them into one region. */
static void region_join(struct host *host, size_t at)
{
	struct host_region *r = host->regions;

	if (at + 1 < host->count && region_joins(&r[at], &r[at + 1])) {
		r[at].size += r[at + 1].size;
		regions_remove(host, at + 1, 1);
	}
	if (at > 0 && region_joins(&r[at - 1], &r[at])) {
		r[at - 1].size += r[at].size;
		regions_remove(host, at, 1);
	}
}

static int map_locked(struct host *host, struct host_region *region, int fd)
{
	size_t at = region_after(host, region->addr);
	int err;

	if (at < host->count && host->regions[at].addr - region->addr < region->size)
		return -EEXIST;
	if (at < host->count && host->regions[at].addr < region->addr)
		return -EEXIST;
	if (fd >= 0) {
		region->backing = backing_get(host, fd, region->offset, region->size,
					      region->prot);
		if (!region->backing)
			return -errno;
		region->backing->users++;
	}
	err = region_insert(host, at, region);
	if (err)
		backing_put(region->backing);
	else
		region_join(host, at);
	return err;
}

/* The descriptor stays the caller's. fd < 0: reachable by messages only. */
int host_map(struct host *host, uint64_t addr, uint64_t size, uint64_t offset,
	    uint32_t prot, int fd)
{
	struct host_region region = {
		.addr = addr, .size = size, .offset = offset, .prot = prot,
	};
	uint64_t end;
	int err;

	if (!size || __builtin_add_overflow(addr, size - 1, &end))
		return -EINVAL;
	pthread_rwlock_wrlock(&host->lock);
	err = map_locked(host, &region, fd);
	pthread_rwlock_unlock(&host->lock);
	return err;
}

static uint64_t region_last(const struct host_region *r)
{
	return r->addr + (r->size - 1);
}

/* Remove [addr, last] from region i, which overlaps it and remains in part. */
static void region_cut(struct host *host, size_t i, uint64_t addr, uint64_t last)
{
	struct host_region *r = &host->regions[i], tail = *r;
	uint64_t r_last = region_last(r);

	if (last < r_last) {
		tail.addr = last + 1;
		tail.size = r_last - last;
		tail.offset += tail.addr - r->addr;
	}
	if (addr > r->addr) {
		r->size = addr - r->addr;
		if (last >= r_last)
			return;
		/* both ends stay; without room, unmap too much rather than too little */
		if (!region_insert(host, i + 1, &tail) && tail.backing)
			tail.backing->users++;
		return;
	}
	*r = tail;
}

/* Ranges that were never mapped are no error: a host unmaps more than it mapped. */
void host_unmap(struct host *host, uint64_t addr, uint64_t size)
{
	uint64_t last;
	size_t i, n = 0;

	if (!size)
		return;
	if (__builtin_add_overflow(addr, size - 1, &last))
		last = UINT64_MAX;
	pthread_rwlock_wrlock(&host->lock);
	i = region_after(host, addr);
	if (i < host->count && host->regions[i].addr < addr)
		region_cut(host, i++, addr, last);
	while (i + n < host->count && region_last(&host->regions[i + n]) <= last)
		n++;
	regions_remove(host, i, n);
	if (i < host->count && host->regions[i].addr <= last)
		region_cut(host, i, addr, last);
	pthread_rwlock_unlock(&host->lock);
}

void host_unmap_all(struct host *host)
{
	pthread_rwlock_wrlock(&host->lock);
	regions_remove(host, 0, host->count);
	pthread_rwlock_unlock(&host->lock);
}

void host_set_master(struct host *host, bool on)
{
	pthread_rwlock_wrlock(&host->lock);
	host->master = on;
	pthread_rwlock_unlock(&host->lock);
}

/* -------------------------------------------------------- transactions --- */

static enum host_answer refuse(enum host_answer why, uint64_t addr, uint64_t *refused)
{
	if (refused)
		*refused = addr;
	return why;
}

/* Find the part of @length bytes at @piece->addr that lies in one region. */
static enum host_answer piece_find(struct host *host, unsigned int how, uint64_t length,
				   struct piece *piece)
{
	const unsigned int prot = how & (HOST_READ | HOST_WRITE);
	const struct host_region *r;
	uint64_t skip;

	if (!host->master && !(how & HOST_LEFT))
		return HOST_NO_MASTER;
	r = region_find(host, piece->addr);
	if (!r || (r->prot & prot) != prot)
		return HOST_NOTHING;
	skip = piece->addr - r->addr;
	piece->length = length < r->size - skip ? length : r->size - skip;
	piece->host = NULL;
	if (r->backing)
		piece->host = r->backing->map + (r->offset - r->backing->start) + skip;
	return HOST_DONE;
}

/* Let the host execute it; drops the lock meanwhile. */
static enum host_answer message(struct host *host, unsigned int how, const struct piece *piece,
				uint8_t *data)
{
	int err;

	host_end(host);
	err = host->wire->dma(host->server, how & HOST_WRITE, piece->addr, data,
			      piece->length);
	host_begin(host);
	if (!err)
		return HOST_DONE;
	if (err == -ECANCELED)
		return HOST_GONE;
	log_limited("DMA message at %#llx: %s", (unsigned long long)piece->addr,
		    strerror(-err));
	return HOST_NOTHING;
}

static enum host_answer execute(struct host *host, unsigned int how, const struct piece *piece,
				uint8_t *data)
{
	void (*copy)(const struct piece *piece, void *data) = how & HOST_WRITE ? copy_out : copy_in;

	if (!piece->host)
		return message(host, how, piece, data);
	if (how & HOST_WORDS) {
		/* regions may begin and end at any byte */
		if ((uintptr_t)piece->host % sizeof(uint64_t) || piece->length % sizeof(uint64_t))
			return HOST_NOTHING;
		copy = copy_words;
	}
	return reach(piece, data, copy) ? HOST_DONE : HOST_NOTHING;
}

enum host_answer host_check(struct host *host, unsigned int how, uint64_t addr, uint64_t length,
			    uint64_t *refused)
{
	struct piece piece = { .addr = addr };

	for (; length; piece.addr += piece.length, length -= piece.length) {
		enum host_answer answer = piece_find(host, how, length, &piece);

		if (answer != HOST_DONE)
			return refuse(answer, piece.addr, refused);
	}
	return HOST_DONE;
}

enum host_answer host_access(struct host *host, unsigned int how, uint64_t addr, void *data,
			     size_t length, uint64_t *refused)
{
	struct piece piece = { .addr = addr };
	enum host_answer answer;
	uint8_t *at = data;

	answer = piece_find(host, how, length, &piece);
	if (answer == HOST_DONE && piece.length < length)
		answer = host_check(host, how, addr, length, &piece.addr);
	if (answer != HOST_DONE)
		return refuse(answer, piece.addr, refused);
	for (; length; piece.addr += piece.length, length -= piece.length, at += piece.length) {
		answer = piece_find(host, how, length, &piece);
		if (answer == HOST_DONE)
			answer = execute(host, how, &piece, at);
		if (answer != HOST_DONE)
			return refuse(answer, piece.addr, refused);
	}
	return HOST_DONE;
}

enum host_answer host_interrupt(struct host *host, uint32_t vector, _Atomic uint64_t *sent)
{
	if (!host->master)
		return HOST_NO_MASTER;
	irq_send(&host->irq, vector, sent);
	return HOST_DONE;
}

bool host_is_master(struct host *host)
{
	return host->master;
}

bool host_intx_pending(struct host *host)
{
	return intx_pending(&host->irq);
}

void host_intx_clear(struct host *host)
{
	intx_clear(&host->irq);
}

void host_abort(struct host *host, bool on)
{
	if (host->wire)
		host->wire->abort(host->server, on);
}

void host_link(struct host *host, bool up)
{
	host->wire->link(host->server, up);
}
