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

#include "core/account.h"
#include "core/call.h"
#include "core/origin.h"

/* ---------------------------------------------- memory/pages.c --- */

/* Physically contiguous pages. */
struct rashpa_extent {
	struct page *first;
	unsigned long count;
};

/*
 * Memory of a buffer: physically contiguous, except that of a memfd. Constant while a buffer has
 * users. @cache and @given change when the last one is gone, under rashpa_lingering_lock if pages
 * are still held.
 */
struct rashpa_pages {
	struct page *first;
	unsigned long count;
	unsigned int order;		/* order of its smallest compound page; 0 from CMA */
	u32 backend;			/* enum rashpa_backend */
	u32 cache;			/* enum rashpa_cache, not DEFAULT */
	u64 longest;			/* bytes of the longest run, if the search failed */
	unsigned long *given;		/* a bit for each page block that was given back */
	struct file *memfd;		/* HUGE: its pages, each with one reference; else NULL */
	struct rashpa_extent *extents;	/* of @memfd */
	u32 n_extents;
};

/* A request for memory; on the stack of the caller. */
struct rashpa_want {
	u64 length;			/* bytes, a multiple of the page size */
	u64 alignment;			/* bytes, a power of two, at least a page */
	u64 last;			/* highest physical address that is of use */
	int node;			/* NUMA node or NUMA_NO_NODE */
	u32 backend;			/* enum rashpa_backend */
	u32 cache;			/* enum rashpa_cache */
	int memfd;			/* file descriptor, HUGE only */
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

void rashpa_contig_check(void);
void rashpa_search_exit(void);
int rashpa_pages_alloc(struct rashpa_call *call, struct rashpa_pages *pages,
		       const struct rashpa_want *want);
bool rashpa_pages_damaged(struct page *first, unsigned long count);
u64 rashpa_pages_free(struct rashpa_pages *pages);
void rashpa_pages_drop(struct rashpa_pages *pages);
int rashpa_pages_query(struct rashpa_call *call, struct rashpa_query *query, int node);

/* ---------------------------------------------------------- memory --- */

struct rashpa_memory;

/* What differs between buffers and pinned memory. */
struct rashpa_memory_ops {
	/* fill in what rashpa_memory_info() does not */
	void (*info)(struct rashpa_memory *memory, struct rashpa_info *info);
	/* map it for the CPU; NULL if it cannot be mapped */
	int (*mmap)(struct rashpa_memory *memory, struct vm_area_struct *vma);
};

/* Words of one memory that programs write. */
struct rashpa_words {
	struct rashpa_origin origin;	/* fired only by RASHPA_IOC_LOOK, in parts */
	struct mutex lock;		/* one LOOK at a time; no data */
};

/* Importers of one memory, through all its dma-bufs, and watchers of its words. */
struct rashpa_importers {
	atomic_t count;			/* attachments now; no lock */
	struct mutex lock;		/* attachments, and their fields */
	struct list_head attachments;	/* protected by @lock */
	struct rashpa_words words;	/* has its own locks */
};

/*
 * Host memory of this driver, as its dma-bufs know it. All but @importers is set before the first
 * dma-buf, and constant after.
 */
struct rashpa_memory {
	const struct rashpa_memory_ops *ops;
	const struct rashpa_extent *extents;	/* in the order of the offsets */
	u32 n_extents;
	u64 length;				/* bytes */
	const char *name;			/* name of the buffer; NULL for pinned memory */
	struct rashpa_importers importers;
};

/* --------------------------------------------- memory/export.c --- */

void rashpa_memory_setup(struct rashpa_memory *memory, const struct rashpa_memory_ops *ops);
bool rashpa_memory_damaged(const struct rashpa_memory *memory, unsigned long first,
			   unsigned long count);
int rashpa_memory_check(struct rashpa_call *call, const struct rashpa_memory *memory, u64 offset,
			u64 length);
int rashpa_export(struct rashpa_call *call, struct rashpa_memory *memory, struct kref *ref,
		  void (*end)(struct kref *ref), int flags);
void rashpa_memory_info(struct rashpa_memory *memory, struct rashpa_info *info);
struct rashpa_memory *rashpa_dmabuf_memory(struct dma_buf *dmabuf);
bool rashpa_export_info(struct dma_buf *dmabuf, struct rashpa_info *info);

/* ----------------------------------------------- memory/mmap.c --- */

int rashpa_buffer_mmap(struct rashpa_memory *memory, struct vm_area_struct *vma);

/* --------------------------------------------- memory/buffer.c --- */

/*
 * Memory that this driver allocated. Fields without a lock are set before the first dma-buf or
 * lease, and constant after.
 */
struct rashpa_buffer {
	struct kref ref;		/* one for each dma-buf and lease, one for the name */
	struct rashpa_memory memory;
	struct rashpa_pages pages;
	struct rashpa_extent extent;	/* the part of @pages that the user asked for */
	struct rashpa_charge charge;
	atomic_t mappings;		/* CPU mappings now; no lock */
	char name[RASHPA_NAME_SIZE];	/* empty if anonymous */
	bool lock_memory;		/* made with RASHPA_ALLOC_LOCK */
	struct mutex lock;		/* leases, exclusive, roles */
	u32 leases;			/* their number now, for a named buffer */
	struct rashpa_lease *exclusive;	/* the one lease, if it is exclusive, or NULL */
	struct rashpa_lease *roles[RASHPA_ROLES]; /* the holder of each role, or NULL */
	struct list_head entry;		/* in rashpa_lingering (its lock) */
};

extern const struct rashpa_memory_ops rashpa_buffer_ops;

void rashpa_buffer_free(struct kref *ref);
void rashpa_info_clear(struct rashpa_info *info);
void rashpa_buffers_sweep(void);
void rashpa_buffers_exit(void);

/* ----------------------------------------------- memory/name.c --- */

/*
 * One open of a named buffer: kept by its file, and by dma-bufs exported from that. All fields are
 * constant.
 */
struct rashpa_lease {
	struct kref ref;
	struct rashpa_buffer *buffer;	/* one reference */
	kuid_t uid;			/* the user and the process that opened it */
	struct pid *pid;
};

struct rashpa_named;

struct rashpa_lease *rashpa_lease_new(struct rashpa_buffer *buffer, bool exclusive);
int rashpa_lease_export(struct rashpa_call *call, struct rashpa_lease *lease, int flags);
void rashpa_lease_put(struct rashpa_lease *lease);
struct rashpa_named *rashpa_named_new(struct rashpa_call *call, const struct rashpa_alloc *alloc);
int rashpa_named_publish(struct rashpa_call *call, struct rashpa_named *named,
			 struct rashpa_buffer *buffer);
void rashpa_named_drop(struct rashpa_named *named);
extern const struct file_operations rashpa_buffer_fops;
rashpa_handler rashpa_ioc_buffer_info, rashpa_ioc_export, rashpa_ioc_remove, rashpa_ioc_role;

/* ------------------------------------------------ memory/pin.c --- */

rashpa_handler rashpa_ioc_pin;

/* ---------------------------------------------- memory/alloc.c --- */

rashpa_handler rashpa_ioc_alloc, rashpa_ioc_query, rashpa_ioc_buffers_limit;

#endif /* RASHPA_MEMORY_H */
