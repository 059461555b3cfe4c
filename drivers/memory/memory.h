/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of this driver: buffers, named or not, and pinned pages, as dma-bufs. It knows of no
 * function: a function maps a memory through its dma-buf.
 *
 * Locks, their order in core/call.h:
 *
 *   rashpa_names_lock	the names of buffers
 *   rashpa_buffer.lock	leases of one buffer
 *   rashpa_lingering_lock	buffers without a user whose pages are still held
 *   rashpa_importers.lock	attachments of one memory; a leaf
 *   rashpa_user.turn	one search of each user
 *   rashpa_search_lock	one search for contiguous memory; a leaf
 */
#ifndef RASHPA_MEMORY_H
#define RASHPA_MEMORY_H

#include <linux/dma-buf.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rashpa.h>
#include <linux/pid.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

#include "core/account.h"
#include "core/call.h"
#include "core/origin.h"

/* ---------------------------------------------- memory/pages.c --- */

/**
 * struct rashpa_extent - physically contiguous pages
 * @first: first page
 * @count: pages
 */
struct rashpa_extent {
	struct page *first;
	unsigned long count;
};

/**
 * struct rashpa_pages - physically contiguous, zeroed memory
 * @first: first page
 * @count: pages
 * @order: order of the least of the compound pages it consists of; 0 from CMA
 * @backend: enum rashpa_backend
 * @cache: enum rashpa_cache, not DEFAULT
 * @node: NUMA node
 * @longest: bytes of the longest run that a search without success has seen
 * @given: one bit for each page block: it was given back
 */
struct rashpa_pages {
	struct page *first;
	unsigned long count;
	unsigned int order;
	u32 backend;
	u32 cache;
	int node;
	u64 longest;
	unsigned long *given;
};

/**
 * struct rashpa_want - what is asked for
 * @length: bytes, a multiple of the page size
 * @alignment: bytes, a power of two, at least a page
 * @last: highest physical address that is of use
 * @node: NUMA node or NUMA_NO_NODE
 * @backend: enum rashpa_backend
 * @cache: enum rashpa_cache
 * @turn: held while memory is searched for
 */
struct rashpa_want {
	u64 length;
	u64 alignment;
	u64 last;
	int node;
	u32 backend;
	u32 cache;
	struct mutex *turn;		/* one search of the user; no data */
};

static inline u64 rashpa_pages_size(const struct rashpa_pages *pages)
{
	return (u64)pages->count << PAGE_SHIFT;
}

/* A pin for long moves pages out of CMA, and these cannot move. */
static inline bool rashpa_pages_pinnable(const struct rashpa_pages *pages)
{
	return pages->backend != RASHPA_BACKEND_CMA;
}

int rashpa_search_init(void);
void rashpa_search_exit(void);
int rashpa_pages_alloc(struct rashpa_call *call, struct rashpa_pages *pages,
		       const struct rashpa_want *want);
bool rashpa_pages_damaged(struct page *first, unsigned long count);
u64 rashpa_pages_free(struct rashpa_pages *pages);
void rashpa_pages_drop(struct rashpa_pages *pages);
int rashpa_pages_query(struct rashpa_call *call, struct rashpa_query *query, int node);

/* ---------------------------------------------------------- memory --- */

struct rashpa_memory;

/**
 * struct rashpa_memory_ops - what each kind of memory does in its way
 * @info: describes it; the answer was cleared
 * @mmap: a CPU mapping of it, NULL: it has none
 */
struct rashpa_memory_ops {
	void (*info)(struct rashpa_memory *memory, struct rashpa_info *info);
	int (*mmap)(struct rashpa_memory *memory, struct vm_area_struct *vma);
};

/**
 * struct rashpa_words - words of one memory that programs write
 * @origin: listeners that watch them; fired only by RASHPA_IOC_LOOK, in parts
 * @lock: one LOOK at a time
 */
struct rashpa_words {
	struct rashpa_origin origin;
	struct mutex lock;		/* one LOOK at a time */
};

/**
 * struct rashpa_importers - who has attached one memory, or watches words of it, through whatever
 *	dma-buf of it
 * @count: attachments now
 * @lock: protects @attachments and what is in them
 * @attachments: all of them
 * @words: words in it that programs write
 */
struct rashpa_importers {
	atomic_t count;
	struct mutex lock;		/* attachments */
	struct list_head attachments;
	struct rashpa_words words;
};

/**
 * struct rashpa_memory - host memory of ours: what its dma-bufs know of it
 * @ops: operations of its kind
 * @extents: the memory, in order
 * @n_extents: their number
 * @length: bytes
 * @importers: importers of all its dma-bufs
 */
struct rashpa_memory {
	const struct rashpa_memory_ops *ops;
	const struct rashpa_extent *extents;
	u32 n_extents;
	u64 length;
	struct rashpa_importers importers;
};

/* --------------------------------------------- memory/export.c --- */

void rashpa_memory_setup(struct rashpa_memory *memory, const struct rashpa_memory_ops *ops);
int rashpa_memory_check(struct rashpa_call *call, const struct rashpa_memory *memory, u64 offset,
			u64 length);
struct dma_buf *rashpa_export(struct rashpa_memory *memory, struct kref *ref,
			      void (*end)(struct kref *ref), int flags);
struct rashpa_memory *rashpa_dmabuf_memory(struct dma_buf *dmabuf);
bool rashpa_export_info(struct dma_buf *dmabuf, struct rashpa_info *info);

/* ----------------------------------------------- memory/mmap.c --- */

int rashpa_buffer_mmap(struct rashpa_memory *memory, struct vm_area_struct *vma);

/* --------------------------------------------- memory/buffer.c --- */

/**
 * struct rashpa_buffer - memory that this driver allocated
 * @ref: one for each dma-buf and lease, one for the name
 * @memory: as its dma-bufs show it
 * @pages: the memory
 * @extent: the part of it that the user asked for
 * @charge: its charge
 * @mappings: CPU mappings now
 * @name: empty if anonymous
 * @lock_memory: made with RASHPA_ALLOC_LOCK
 * @lock: protects the next three
 * @leases: their number now, for a named buffer
 * @exclusive: the one lease, if it is exclusive, or NULL
 * @roles: the lease of the open node that has a role, or NULL
 * @entry: in the list of those that linger
 */
struct rashpa_buffer {
	struct kref ref;
	struct rashpa_memory memory;
	struct rashpa_pages pages;
	struct rashpa_extent extent;
	struct rashpa_charge charge;
	atomic_t mappings;
	char name[RASHPA_NAME_SIZE];
	bool lock_memory;
	struct mutex lock;		/* leases */
	u32 leases;
	struct rashpa_lease *exclusive;
	struct rashpa_lease *roles[RASHPA_ROLES];
	struct list_head entry;
};

extern const struct rashpa_memory_ops rashpa_buffer_ops;

void rashpa_buffer_free(struct kref *ref);
void rashpa_info_clear(struct rashpa_info *info);
void rashpa_buffers_sweep(void);
void rashpa_buffers_exit(void);

/* ----------------------------------------------- memory/name.c --- */

/**
 * struct rashpa_lease - one open of a named buffer, and what came of it
 * @ref: references
 * @buffer: the buffer; one reference
 * @uid: the user that opened it
 * @pid: the process that opened it
 */
struct rashpa_lease {
	struct kref ref;
	struct rashpa_buffer *buffer;
	kuid_t uid;
	struct pid *pid;
};

struct rashpa_named;

struct rashpa_lease *rashpa_lease_new(struct rashpa_buffer *buffer, bool exclusive);
struct dma_buf *rashpa_lease_export(struct rashpa_lease *lease, int flags);
void rashpa_lease_put(struct rashpa_lease *lease);
struct rashpa_named *rashpa_named_new(struct rashpa_call *call, const struct rashpa_alloc *alloc);
int rashpa_named_publish(struct rashpa_call *call, struct rashpa_named *named,
			 struct rashpa_buffer *buffer);
void rashpa_named_drop(struct rashpa_named *named);
rashpa_handler rashpa_ioc_buffer_info, rashpa_ioc_export, rashpa_ioc_remove, rashpa_ioc_role;

/* ------------------------------------------------ memory/pin.c --- */

rashpa_handler rashpa_ioc_pin;

/* ---------------------------------------------- memory/alloc.c --- */

rashpa_handler rashpa_ioc_alloc, rashpa_ioc_query, rashpa_ioc_buffers_limit;

#endif /* RASHPA_MEMORY_H */
