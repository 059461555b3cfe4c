/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the files of the driver.
 *
 * Locks, outermost first:
 *
 *   rashpa_names_lock	the list of named buffers
 *   rashpa_buffer.lock	owner and leases of one buffer
 *   rashpa_device.lock	life of the function: gone, profile, lists of maps and windows.
 *			Taken by every ioctl on the function and by removal.
 *   rashpa_channel.sources_lock	table of its sources and groups, against other ioctls. One
 *			device lock at most is held outside of it: that of the source
 *   mmap_lock		as page faults take it
 *   rashpa_device.bars_lock	held while the function is being reset: CPUs wait. A reset of
 *			the bus holds those of several functions
 *   rashpa_device.windows_lock	list of its windows
 *   dma_resv		of a dma-buf, as its rules demand
 *   rashpa_device.hw_lock	registers, bus mastering, state, programmed entries. A leaf for
 *			sleeping code: taken from dma-buf callbacks and reset handlers. Who
 *			writes registers waits for the end of a reset (rashpa_hw_lock()), but
 *			not with a reservation lock, which the reset may need
 *   rashpa_origin.lock	ears of one event source (hard interrupt)
 *   rashpa_channel.lock	queue of one channel, its sources' counters, watched words,
 *			groups and eventfds; writing the table (hard interrupt)
 *
 * rashpa_account_lock, rashpa_importers.lock and rashpa_budget_lock are leaves;
 * rashpa_channel.read_lock, one reader at a time, has only page faults and
 * rashpa_channel.lock inside.
 */
#ifndef RASHPA_H
#define RASHPA_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/dma-buf.h>
#include <linux/dma-direction.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/pci.h>
#include <linux/rashpa.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>

#include "rashpa_call.h"
#include "rashpa_node.h"
#include "rashpa_origin.h"

struct cma;
struct eventfd_ctx;

/**
 * struct rashpa_progress - how far the ALLOC on an open memory node is
 * @stage: enum rashpa_stage
 * @done: bytes of the stage that are done
 * @todo: bytes of the stage
 *
 * For people who wait: written and read without a lock.
 */
struct rashpa_progress {
	u32 stage;
	u64 done;
	u64 todo;
};

/* ---------------------------------------------------- rashpa_account.c --- */

struct rashpa_user;

/**
 * struct rashpa_charge - what an object is charged with
 * @user: who is charged, NULL for nobody
 * @bytes: how much
 */
struct rashpa_charge {
	struct rashpa_user *user;
	u64 bytes;
};

int rashpa_charge(struct rashpa_call *call, struct rashpa_charge *charge, u64 bytes);
void rashpa_uncharge(struct rashpa_charge *charge);
void rashpa_account_query(struct rashpa_query *query);
int rashpa_memlock(struct rashpa_call *call, unsigned long pages);

/* ----------------------------------------------------- rashpa_contig.c --- */

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
 * @order: order of the compound pages it consists of; 0 from CMA
 * @backend: enum rashpa_backend
 * @cache: enum rashpa_cache, not DEFAULT
 * @node: NUMA node
 * @cma: area it came from, or NULL
 * @dma: it came from the CMA area of a node, through the DMA core
 * @longest: bytes of the longest run that a search without success could take
 */
struct rashpa_pages {
	struct page *first;
	unsigned long count;
	unsigned int order;
	u32 backend;
	u32 cache;
	int node;
	struct cma *cma;
	bool dma;
	u64 longest;
};

/**
 * struct rashpa_want - what is asked for
 * @length: bytes, a multiple of the page size
 * @alignment: bytes, a power of two, at least a page
 * @node: NUMA node or NUMA_NO_NODE
 * @backend: enum rashpa_backend
 * @cache: enum rashpa_cache
 */
struct rashpa_want {
	u64 length;
	u64 alignment;
	int node;
	u32 backend;
	u32 cache;
};

static inline u64 rashpa_pages_size(const struct rashpa_pages *pages)
{
	return (u64)pages->count << PAGE_SHIFT;
}

/* CMA pages move when somebody pins them for long: nobody may. */
static inline bool rashpa_pages_pinnable(const struct rashpa_pages *pages)
{
	return pages->backend != RASHPA_BACKEND_CMA;
}

void rashpa_contig_init(void);
int rashpa_pages_alloc(struct rashpa_call *call, struct rashpa_pages *pages,
		       const struct rashpa_want *want);
void rashpa_pages_free(struct rashpa_pages *pages);
int rashpa_pages_query(struct rashpa_call *call, struct rashpa_query *query,
		       int node);

/* ----------------------------------------------------- rashpa_buffer.c --- */

/**
 * struct rashpa_importers - who has attached one memory, through whatever dma-buf of it
 * @count: attachments now
 * @lock: protects @attachments and what is in them
 * @attachments: all of them
 */
struct rashpa_importers {
	atomic_t count;
	struct mutex lock;		/* attachments */
	struct list_head attachments;
};

/**
 * struct rashpa_buffer - memory that this driver allocated
 * @ref: one for each dma-buf and lease, one for the name
 * @pages: the memory
 * @extent: the part of it that the user asked for
 * @length: bytes that the user asked for, rounded to pages
 * @charge: what it is charged with
 * @importers: of all its dma-bufs
 * @mappings: CPU mappings now
 * @name: empty if anonymous
 * @lock: protects the rest
 * @uid: owner of a named buffer
 * @gid: its group
 * @mode: its permission bits
 * @leases: opens of it now
 * @exclusive: the one lease is exclusive
 * @lock_memory: made by RASHPA_IOC_LOCK
 */
struct rashpa_buffer {
	struct kref ref;
	struct rashpa_pages pages;
	struct rashpa_extent extent;
	u64 length;
	struct rashpa_charge charge;
	struct rashpa_importers importers;
	atomic_t mappings;
	char name[RASHPA_NAME_SIZE];
	struct mutex lock;		/* owner, leases */
	kuid_t uid;
	kgid_t gid;
	umode_t mode;
	u32 leases;
	bool exclusive;
	bool lock_memory;
};

void rashpa_buffer_put(struct rashpa_buffer *buffer);
void rashpa_buffer_info(struct rashpa_buffer *buffer, struct rashpa_info *info);
int rashpa_ioc_alloc(struct rashpa_call *call, void *arg);
int rashpa_lock_memory(struct rashpa_call *call, struct rashpa_lock *lock, int node);
int rashpa_ioc_query(struct rashpa_call *call, void *arg);
int rashpa_ioc_info(struct rashpa_call *call, void *arg);
int rashpa_ioc_buffer_info(struct rashpa_call *call, void *arg);

/* ------------------------------------------------------- rashpa_name.c --- */

/**
 * struct rashpa_lease - one open of a named buffer, and what came of it
 * @ref: references
 * @buffer: the buffer; one reference
 * @exclusive: nobody else has one
 */
struct rashpa_lease {
	struct kref ref;
	struct rashpa_buffer *buffer;
	bool exclusive;
};

struct rashpa_lease *rashpa_lease_new(struct rashpa_call *call,
				      struct rashpa_buffer *buffer, bool exclusive);
void rashpa_lease_hold(struct rashpa_lease *lease);
void rashpa_lease_put(struct rashpa_lease *lease);
int rashpa_named_add(struct rashpa_call *call, struct rashpa_buffer *buffer);
void rashpa_named_undo(struct rashpa_call *call);
bool rashpa_name_taken(const char *name);
int rashpa_ioc_open(struct rashpa_call *call, void *arg);
int rashpa_ioc_remove(struct rashpa_call *call, void *arg);
int rashpa_ioc_permit(struct rashpa_call *call, void *arg);
int rashpa_ioc_dmabuf(struct rashpa_call *call, void *arg);

/* -------------------------------------------------------- rashpa_pin.c --- */

struct rashpa_pinned;

void rashpa_pinned_free(struct rashpa_pinned *pinned);
const struct rashpa_extent *rashpa_pinned_extents(const struct rashpa_pinned *pinned,
						  u32 *count);
int rashpa_ioc_pin(struct rashpa_call *call, void *arg);

/* ------------------------------------------------------- rashpa_mmap.c --- */

int rashpa_buffer_mmap(struct rashpa_buffer *buffer, struct vm_area_struct *vma);

/* ----------------------------------------------------- rashpa_export.c --- */

void rashpa_importers_init(struct rashpa_importers *importers);
struct dma_buf *rashpa_export_buffer(struct rashpa_buffer *buffer,
				     struct rashpa_lease *lease, int flags);
struct dma_buf *rashpa_export_pinned(struct rashpa_pinned *pinned, u64 length);
const struct rashpa_extent *rashpa_dmabuf_extents(struct dma_buf *dmabuf, u32 *count);
bool rashpa_export_info(struct dma_buf *dmabuf, struct rashpa_info *info);

/* -------------------------------------------------------- rashpa_pci.c --- */

#define RASHPA_VECTORS_MAX	64

/**
 * struct rashpa_vector - one interrupt vector
 * @dev: the function
 * @origin: its listeners
 * @index: number, from 0
 * @irq: Linux interrupt
 * @name: in /proc/interrupts
 */
struct rashpa_vector {
	struct rashpa_device *dev;
	struct rashpa_origin origin;
	u32 index;
	int irq;
	char name[24];
};

/**
 * struct rashpa_step - one step of the quiesce sequence, mapped
 * @step: what to do
 * @reg: the register
 */
struct rashpa_step {
	struct rashpa_profile_step step;
	void __iomem *reg;
};

/**
 * struct rashpa_bar_range - a part of a BAR
 * @bar: BAR
 * @offset: bytes
 * @length: bytes, 0 for none
 */
struct rashpa_bar_range {
	u32 bar;
	u64 offset;
	u64 length;
};

/**
 * struct rashpa_device - a bound PCI function
 * @dev: its class device; its reference count is the life of this struct
 * @cdev: /dev/rashpa/fpgaN
 * @pdev: the function; registers may be touched only while not @gone
 * @id: N
 * @saved: its configuration space when it was bound
 * @msix: MSI-X table and pending bits
 * @lock: see the top of this file
 * @gone: removal has begun (written under @lock and @hw_lock)
 * @disclose: members of the group may see addresses (@lock)
 * @have_profile: a profile was applied (@lock)
 * @windows: declared by the profile (@lock)
 * @n_windows: their number
 * @table: address table of the profile, length 0 if it has none (@lock)
 * @table_layout: of its entries (@lock)
 * @max_segment: default segment limits of maps (@lock)
 * @boundary: likewise
 * @alignment: likewise
 * @maps: maps of this importer (@lock)
 * @n_maps: their number
 * @n_kept: those that no process holds any more
 * @windows_key: lock class of its own for @windows_lock
 * @bars_key: and for @bars_lock
 * @windows_lock: protects the next two
 * @open_windows: windows made
 * @n_open_windows: their number
 * @bars_lock: held by page faults in windows for reading, by reset for writing
 * @suspended: the function is being reset (@bars_lock)
 * @n_users: who expects to be served, besides maps (@lock)
 * @hw_lock: see the top of this file
 * @resetting: between the handlers of a reset: its registers are not there (@hw_lock)
 * @reset_wait: for the end of it
 * @stale: maps that ended meanwhile, whose entries are still to be cleared (@hw_lock)
 * @state: enum rashpa_state (@hw_lock)
 * @master: bus mastering is on (@hw_lock)
 * @steps: quiesce sequence (@hw_lock)
 * @n_steps: their number
 * @quiesces: times stopped (@hw_lock)
 * @vectors: event sources
 * @n_vectors: their number
 * @events: device events (quiesced, reset, gone)
 * @map_events: state of its maps
 * @end: fires once, when the function is gone and nothing more will come
 */
struct rashpa_device {
	struct device dev;
	struct cdev cdev;
	struct pci_dev *pdev;
	int id;
	struct pci_saved_state *saved;
	struct rashpa_bar_range msix[2];

	struct mutex lock;		/* life, profile, maps, windows */
	bool gone;
	bool disclose;
	bool have_profile;
	struct rashpa_profile_window *windows;
	u32 n_windows;
	struct rashpa_bar_range table;
	struct rashpa_layout table_layout;
	u64 max_segment;
	u64 boundary;
	u64 alignment;
	struct list_head maps;
	u32 n_maps;
	u32 n_kept;
	u32 n_users;

	/* a reset of the bus holds these of several functions, in the order of the bus */
	struct lock_class_key windows_key;
	struct lock_class_key bars_key;
	struct mutex windows_lock;	/* list of windows */
	struct list_head open_windows;
	u32 n_open_windows;
	struct rw_semaphore bars_lock;	/* CPU access to the BARs */
	bool suspended;

	struct mutex hw_lock;		/* registers, master, state, steps */
	bool resetting;
	wait_queue_head_t reset_wait;
	struct list_head stale;
	u32 state;
	bool master;
	struct rashpa_step *steps;
	u32 n_steps;
	u64 quiesces;

	struct rashpa_vector *vectors;
	u32 n_vectors;
	struct rashpa_origin events;
	struct rashpa_origin map_events;
	struct rashpa_origin end;
};

struct rashpa_device *rashpa_device_of(struct file *file);

int rashpa_device_lock(struct rashpa_call *call, struct rashpa_device *dev);
int rashpa_device_master(struct rashpa_call *call, struct rashpa_device *dev);
int rashpa_device_hold(struct rashpa_call *call, struct rashpa_device *dev);
void rashpa_device_leave(struct rashpa_device *dev);
void rashpa_device_event(struct rashpa_device *dev, u64 what);
void rashpa_hw_lock(struct rashpa_device *dev);
u64 rashpa_device_stop_locked(struct rashpa_device *dev);
int rashpa_device_stop(struct rashpa_device *dev);
void rashpa_device_rest(struct rashpa_device *dev);
bool rashpa_pci_translated(struct pci_dev *pdev);
bool rashpa_bar_is_memory(struct rashpa_device *dev, u32 bar);
bool rashpa_bar_range_ok(struct rashpa_device *dev, u32 bar, u64 offset,
			 u64 length);
int rashpa_ioc_device_info(struct rashpa_call *call, void *arg);
int rashpa_ioc_region_info(struct rashpa_call *call, void *arg);
int rashpa_ioc_quiesce(struct rashpa_call *call, void *arg);
int rashpa_ioc_reset(struct rashpa_call *call, void *arg);
int rashpa_pci_init(void);
void rashpa_pci_exit(void);

/* ---------------------------------------------------- rashpa_profile.c --- */

int rashpa_ioc_profile(struct rashpa_call *call, void *arg);
bool rashpa_device_reachable(struct rashpa_device *dev);
int rashpa_profile_run_steps(struct rashpa_device *dev);
bool rashpa_profile_answers(struct rashpa_device *dev);
void rashpa_profile_free(struct rashpa_device *dev);
const struct rashpa_profile_window *
rashpa_profile_find(struct rashpa_device *dev, const char *name);
const struct rashpa_profile_window *
rashpa_profile_cover(struct rashpa_device *dev, u32 bar, u64 offset, u64 length);

/* ----------------------------------------------------- rashpa_window.c --- */

/* What others have to finish first (fences of a dma-buf) is not waited for longer, in seconds. */
#define RASHPA_FENCE_LIMIT	10

int rashpa_ioc_window(struct rashpa_call *call, void *arg);
struct rashpa_device *rashpa_window_of(struct dma_buf *dmabuf);
int rashpa_window_phys(struct dma_buf *dmabuf, struct rashpa_device *dev,
		       u64 offset, u64 length, phys_addr_t *phys);
dma_addr_t rashpa_window_bus(struct dma_buf *dmabuf);
bool rashpa_dmabuf_is_window(struct dma_buf *dmabuf);
void rashpa_window_info(struct dma_buf *dmabuf, struct rashpa_info *info);
void rashpa_windows_revoke(struct rashpa_device *dev);
void rashpa_windows_suspend(struct rashpa_device *dev);
void rashpa_windows_resume(struct rashpa_device *dev);

/* ------------------------------------------------------- rashpa_path.c --- */

/**
 * struct rashpa_piece - contiguous for the importer
 * @address: DMA address
 * @length: bytes
 * @remapped: the driver mapped it, because the exporter had not
 */
struct rashpa_piece {
	u64 address;
	u64 length;
	bool remapped;
};

/**
 * struct rashpa_pieces - what an exporter mapped for a function
 * @dev: the function
 * @dir: direction
 * @class: enum rashpa_class, checked
 * @peer: function that has the memory: domain << 16 | bus << 8 | devfn
 * @peer_bar: its BAR
 * @remapped: some pieces are
 * @count: pieces
 * @piece: in order of the memory
 */
struct rashpa_pieces {
	struct rashpa_device *dev;
	enum dma_data_direction dir;
	u32 class;
	u32 peer;
	u32 peer_bar;
	bool remapped;
	u32 count;
	struct rashpa_piece piece[];
};

/* A function in one number, as struct rashpa_info and struct rashpa_map_make tell it. */
static inline u32 rashpa_bdf(struct pci_dev *pdev)
{
	return pci_domain_nr(pdev->bus) << 16 | pdev->bus->number << 8 | pdev->devfn;
}

u64 rashpa_dma_limit(struct device *dev);
bool rashpa_dma_reaches(struct device *dev, dma_addr_t address, u64 length);
int rashpa_path_between(struct rashpa_call *call, struct pci_dev *importer,
			struct pci_dev *peer);
struct rashpa_pieces *rashpa_pieces_get(struct rashpa_call *call, struct rashpa_device *dev,
					struct sg_table *sgt, enum dma_data_direction dir,
					u64 offset, u64 length);
int rashpa_pieces_check(struct rashpa_call *call, struct rashpa_device *dev,
			struct rashpa_pieces *pieces, bool device_only);
void rashpa_pieces_put(struct rashpa_pieces *pieces);

/* -------------------------------------------------------- rashpa_map.c --- */

int rashpa_ioc_map(struct rashpa_call *call, void *arg);
int rashpa_ioc_program(struct rashpa_call *call, void *arg);
int rashpa_ioc_restore(struct rashpa_call *call, void *arg);
int rashpa_layout_check(struct rashpa_call *call, const struct rashpa_layout *l);
void rashpa_maps_clear_stale(struct rashpa_device *dev);
void rashpa_maps_close(struct rashpa_device *dev, bool all, struct list_head *ended);
void rashpa_maps_free(struct list_head *ended);
void rashpa_maps_restore(struct dma_buf *dmabuf);
int rashpa_maps_init(void);
void rashpa_maps_exit(void);

/* ------------------------------------------------------ rashpa_event.c --- */

int rashpa_ioc_events(struct rashpa_call *call, void *arg);
int rashpa_ioc_source_add(struct rashpa_call *call, void *arg);
int rashpa_ioc_source_del(struct rashpa_call *call, void *arg);
int rashpa_ioc_signal(struct rashpa_call *call, void *arg);
int rashpa_ioc_source_info(struct rashpa_call *call, void *arg);

/* ------------------------------------------------------- rashpa_lock.c --- */

int rashpa_ioc_lock(struct rashpa_call *call, void *arg);

/* ----------------------------------------------------- rashpa_notify.c --- */

int rashpa_ioc_eventfd(struct rashpa_call *call, void *arg);

/* ------------------------------------------------------ rashpa_group.c --- */

int rashpa_ioc_group(struct rashpa_call *call, void *arg);
int rashpa_ioc_ack(struct rashpa_call *call, void *arg);
int rashpa_ioc_group_info(struct rashpa_call *call, void *arg);

#endif /* RASHPA_H */
