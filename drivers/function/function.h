/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PCI functions: lifetime, registers, and the memory that they can reach.
 *
 * Locks (core/call.h lists their order):
 *
 *   rashpa_device.lock	lifetime of the function, profile, lists of maps and windows, users.
 *			Taken by every ioctl on the function and by removal.
 *   rashpa_map.lock	held while an exporter attaches, maps or unmaps, which may take long.
 *			Taken under rashpa_device.lock only for a new, still private map.
 *   rashpa_device.bars_lock	held for writing during a reset: page faults in windows wait.
 *			A bus reset holds those of several functions.
 *   rashpa_device.windows_lock	list of windows.
 *   rashpa_device.hw_lock	registers, bus mastering, state, programmed entries. Innermost
 *			sleeping lock: dma-buf callbacks and reset handlers take it. Writers of
 *			registers wait for the end of a reset (rashpa_hw_lock()), unless they
 *			hold a reservation lock, which the reset may need. Memory reclaim can
 *			take it through an exporter: allocations under it must not wait.
 */
#ifndef RASHPA_FUNCTION_H
#define RASHPA_FUNCTION_H

#include <linux/cdev.h>
#include <linux/cleanup.h>
#include <linux/device.h>
#include <linux/dma-buf.h>
#include <linux/dma-direction.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rashpa.h>
#include <linux/rwsem.h>
#include <linux/sizes.h>
#include <linux/wait.h>

#include "core/account.h"
#include "core/call.h"
#include "core/origin.h"

/* Default width of the DMA mask: every PCI function supports 32 bits. */
#define RASHPA_DMA_BITS		32

/*
 * One interrupt vector. All fields but @origin are set before the interrupt is requested, and
 * constant after.
 */
struct rashpa_vector {
	struct rashpa_device *dev;	/* function that raises the interrupt */
	struct rashpa_origin origin;	/* listeners */
	u32 index;	/* vector number, counted from 0 */
	int irq;	/* Linux interrupt number */
	char name[24];	/* in /proc/interrupts */
} ____cacheline_aligned_in_smp;	/* each may interrupt another CPU */

/* A quiesce sequence: a part of a profile, with its locks. */
struct rashpa_sequence {
	struct rashpa_profile_step *step;	/* steps as the profile defines them */
	void __iomem **reg;	/* mapped register of each step, NULL until they are mapped */
	u32 n;	/* number of steps */
	u32 at;	/* step that ran last (hw_lock) */
	u32 seen;	/* value that the last wait read (hw_lock) */
};

/* An engine of the profile. The first four are a part of a profile, with its locks. */
struct rashpa_engine {
	struct rashpa_profile_engine about;	/* definition in the profile */
	struct rashpa_sequence quiesce;	/* steps that stop the engine alone */
	/* register with the index of the first entry, NULL until it is mapped */
	void __iomem *first;
	/* register with the index after the last entry, NULL until it is mapped */
	void __iomem *limit;
	bool absent;	/* the hardware lacks this optional engine (written under hw_lock) */
	u64 stops;	/* number of stops of this engine alone (written under hw_lock) */
	u64 failures;	/* number of failed stops (written under hw_lock) */
};

/*
 * How a function fetches descriptors, see function/descriptors.c. A part of a profile, with its
 * locks.
 */
struct rashpa_fetching {
	/* definition in the profile; its pointers are user pointers */
	struct rashpa_fetch about;
	/* fields of a descriptor; NULL if the function fetches none */
	struct rashpa_fetch_field *fields;
	/* register fields that describe a ring or segment to the function; NULL for a layout */
	struct rashpa_fetch_field *registers;
	bool chained;	/* each descriptor holds the address of the next one */
};

/* Limits of the segments of a map. */
struct rashpa_limits {
	u64 max_segment;	/* longest segment in bytes, 0 for any */
	u64 boundary;	/* power of two that no segment crosses, 0 for none */
	u64 alignment;	/* power of two that segments are aligned to, 0 for any */
	u64 segment_size;	/* exact segment size in bytes, 0 for any */
};

/*
 * A profile, of a function or not yet applied. PROFILE_SET alone has a profile that is not yet
 * applied. All fields are set before it is applied, and constant until another one replaces it
 * (rashpa_device.profile).
 */
struct rashpa_profile {
	struct rashpa_profile_window *windows;	/* named windows */
	u32 n_windows;	/* number of @windows */
	struct rashpa_sequence quiesce;	/* steps that stop the whole function */
	u32 quiesce_us;	/* time limit of @quiesce, 0 for the default */
	struct rashpa_profile_table *table;	/* address table, or NULL */
	void __iomem *table_regs;	/* mapped registers of the address table, or NULL */
	/* layout of a table entry; only stride if entries point to rings */
	struct rashpa_layout layout;
	struct rashpa_fetching fetch;	/* format of the rings */
	struct rashpa_limits limits;	/* limits of the segments of each map */
	struct rashpa_engine *engines;	/* engines of the profile */
	u32 n_engines;	/* number of @engines */
};

/* A part of a BAR, empty with length 0. */
struct rashpa_bar_range {
	u32 bar;
	u64 offset;
	u64 length;
};

/*
 * A bound PCI function. A lock in brackets protects the field; with W it is held for each write.
 * Fields with none of them are constant.
 */
struct rashpa_device {
	struct device dev;		/* class device; its references keep this struct */
	struct cdev cdev;		/* /dev/rashpa/fpgaN */
	struct pci_dev *pdev;		/* its registers may be accessed only while not @gone */
	int id;				/* N in fpgaN */
	struct pci_saved_state *saved;	/* configuration space at bind time */
	struct rashpa_bar_range msix[2];	/* MSI-X table and pending bits */
	bool translated;		/* an IOMMU translates the function's addresses */

	struct mutex lock;		/* see the top of this file */
	bool gone;			/* removal has begun (W lock and hw_lock) */
	/*
	 * rashpa_device_reinit() has run: DMA of a previous owner was stopped, or the function is
	 * stuck (lock)
	 */
	bool initialized;
	bool disclose;			/* members of the group may see addresses (W lock) */
	bool have_profile;		/* a profile was applied (W lock) */
	/* the applied profile (W lock and hw_lock, while no map exists) */
	struct rashpa_profile profile;
	struct list_head maps;		/* maps of this importer (W lock and hw_lock) */
	u32 n_maps;			/* number of @maps (W lock) */
	u32 n_users;			/* users other than maps that need bus mastering (lock) */
	/* attached memories and pending attachments: removal waits for 0 (atomic) */
	atomic_t n_imports;
	wait_queue_head_t imports_wait;	/* woken up when @n_imports becomes 0 */

	/* separate lock classes: a bus reset holds these locks of several functions in bus order */
	struct lock_class_key windows_key;
	struct lock_class_key bars_key;
	struct mutex windows_lock;	/* protects the next two */
	struct list_head open_windows;	/* existing windows */
	u32 n_open_windows;		/* number of @open_windows */
	struct rw_semaphore bars_lock;	/* page faults in windows read, a reset writes */
	bool suspended;			/* the function is being reset (W bars_lock) */

	struct mutex hw_lock;		/* see the top of this file */
	/* between the handlers of a reset: registers are not accessible (hw_lock) */
	bool resetting;
	u32 resets;			/* number of finished resets (hw_lock) */
	wait_queue_head_t reset_wait;	/* woken up at the end of a reset */
	struct list_head stale;		/* revoked maps with entries to clear (hw_lock) */
	/* maps that the kernel programs again after a reset or revocation (hw_lock) */
	struct list_head reprogram;
	u32 state;			/* enum rashpa_state (W hw_lock) */
	bool master;			/* bus mastering is on (W hw_lock) */
	bool reset_due;			/* a step with RASHPA_STEP_RESET timed out (hw_lock) */
	u64 quiesces;			/* stops of the whole function (W hw_lock) */
	bool engines_lost;		/* the bounds of an engine have changed (hw_lock) */
	u64 engine_stops;		/* stops of single engines (W hw_lock) */

	struct rashpa_vector *vectors;	/* interrupt vectors */
	u32 n_vectors;			/* number of @vectors */
	/*
	 * Origins have their locks. The first two fire under hw_lock for what it protects: so the
	 * last record is the current state
	 */
	struct rashpa_origin events;	/* device events: quiesced, reset, gone */
	struct rashpa_origin map_events;	/* states of maps */
	struct rashpa_origin end;	/* fires once: the function is gone, the last event */
};

static inline bool rashpa_ranges_overlap(u64 a, u64 a_length, u64 b, u64 b_length)
{
	return a < b + b_length && b < a + a_length;
}

static inline u64 rashpa_field_mask(const struct rashpa_fetch_field *f)
{
	return GENMASK_ULL(f->width - 1, 0);
}

static inline bool rashpa_same_word(const struct rashpa_fetch_field *a,
				    const struct rashpa_fetch_field *b)
{
	return a->offset == b->offset && a->bits == b->bits &&
	       !((a->flags | b->flags) & RASHPA_FIELD_ENTRY);
}

/* ----------------------------------------------- function/hw.c --- */

void rashpa_hw_lock(struct rashpa_device *dev);

/* a guard for a lock that rashpa_device_lock() took */
DEFINE_GUARD(rashpa_locked, struct rashpa_device *, lockdep_assert_held(&_T->lock),
	     mutex_unlock(&_T->lock))
DEFINE_GUARD(rashpa_hw, struct rashpa_device *, rashpa_hw_lock(_T), mutex_unlock(&_T->hw_lock))

int rashpa_device_removed(struct rashpa_call *call, struct rashpa_device *dev);
int rashpa_device_lock(struct rashpa_call *call, struct rashpa_device *dev);
bool rashpa_bar_range_ok(struct rashpa_device *dev, u32 bar, u64 offset, u64 length);
bool rashpa_bridges_open(struct pci_dev *pdev);
bool rashpa_device_reachable(struct rashpa_device *dev);
int rashpa_lockdown_check(struct rashpa_call *call, struct rashpa_device *dev, const char *what);
void rashpa_master_off(struct rashpa_device *dev);
bool rashpa_device_used(const struct rashpa_device *dev);
void rashpa_device_idle(struct rashpa_device *dev);
void rashpa_device_leave(struct rashpa_device *dev);

/* --------------------------------------------- function/path.c --- */

/* A range that is contiguous for the importer. */
struct rashpa_piece {
	u64 address;	/* DMA address */
	u64 length;	/* length in bytes */
	bool remapped;	/* this driver mapped it, because the exporter had not */
};

struct rashpa_memory;

/*
 * Address ranges that an exporter mapped for a function. One thread fills it; constant since it is
 * in rashpa_map.pieces.
 */
struct rashpa_pieces {
	struct rashpa_device *dev;	/* importing function */
	enum dma_data_direction dir;	/* DMA direction */
	u32 class;	/* verified enum rashpa_class */
	/* function whose BAR holds the memory, with one reference; or NULL */
	struct pci_dev *peer;
	u32 peer_bar;	/* BAR number of @peer */
	bool coherent;	/* device memory that is accessed like host memory */
	bool remapped;	/* at least one piece was remapped */
	u32 count;	/* number of pieces */
	u64 size;	/* bytes of this struct and of the exporter's table, to charge */
	struct rashpa_piece piece[];	/* pieces in memory order */
};

/* Address of a function as one number, see struct rashpa_info and struct rashpa_map_make. */
static inline u64 rashpa_bdf(struct pci_dev *pdev)
{
	return (u64)(u32)pci_domain_nr(pdev->bus) << 16 | pci_dev_id(pdev);
}

bool rashpa_pci_translated(struct pci_dev *pdev);
bool rashpa_dma_reaches(struct device *dev, dma_addr_t address, u64 length);
int rashpa_dma_fail(struct rashpa_call *call, struct rashpa_device *dev);
int rashpa_path_between(struct rashpa_call *call, struct pci_dev *importer, struct pci_dev *peer);
void rashpa_path_flush(struct pci_dev *pdev);
struct rashpa_pieces *rashpa_pieces_get(struct rashpa_call *call, struct rashpa_device *dev,
					struct sg_table *sgt, enum dma_data_direction dir,
					u64 offset, u64 length);
int rashpa_pieces_check(struct rashpa_call *call, struct rashpa_device *dev,
			struct rashpa_pieces *pieces, const struct rashpa_memory *host,
			bool device_only);
void rashpa_pieces_put(struct rashpa_pieces *pieces);

/* ------------------------------------------ function/quiesce.c --- */

ktime_t rashpa_profile_deadline(struct rashpa_device *dev);
int rashpa_sequence_run(struct rashpa_sequence *s, ktime_t end);
int rashpa_sequence_stop(struct rashpa_sequence *s, ktime_t end);
int rashpa_sequence_fail(struct rashpa_call *call, const struct rashpa_device *dev);
bool rashpa_profile_answers(struct rashpa_device *dev);
u64 rashpa_device_set_stuck(struct rashpa_device *dev, int err);
u64 rashpa_device_stop_locked(struct rashpa_device *dev, ktime_t end);
void rashpa_device_stopped(struct rashpa_device *dev, u64 what);
int rashpa_device_stop(struct rashpa_device *dev);

/* ------------------------------------------- function/engine.c --- */

int rashpa_engines_bound(struct rashpa_device *dev);
u64 rashpa_engine_of(struct rashpa_device *dev, u32 first, u32 n);
int rashpa_engines_stop(struct rashpa_device *dev, u64 which, ktime_t end);
void rashpa_engines_stopped(struct rashpa_device *dev, u64 which);

/* -------------------------------------- function/descriptors.c --- */

void rashpa_fetch_forget(struct rashpa_device *dev, u32 entry);

/* ------------------------------------------ function/profile.c --- */

int rashpa_limits_check(struct rashpa_call *call, u64 max_segment, u64 boundary, u64 alignment);
int rashpa_profile_fetch(struct rashpa_call *call, const struct rashpa_profile_set *p,
			 struct rashpa_profile *profile);
int rashpa_profile_check(struct rashpa_call *call, struct rashpa_device *dev,
			 struct rashpa_profile *profile);
void rashpa_profile_drop(struct rashpa_device *dev, struct rashpa_profile *profile);
const struct rashpa_profile_window *
rashpa_profile_find(const struct rashpa_profile *profile, const char *name);
const struct rashpa_profile_window *
rashpa_profile_cover(const struct rashpa_profile *profile,
		     const struct rashpa_profile_window *range);
int rashpa_pwindow_check(struct rashpa_call *call, struct rashpa_device *dev,
			 const struct rashpa_profile_window *w);

/* ------------------------------------------- function/window.c --- */

/* Longest wait for the fences of a dma-buf, in seconds. */
#define RASHPA_FENCE_LIMIT	10

rashpa_handler rashpa_ioc_window;
struct rashpa_device *rashpa_window_of(struct dma_buf *dmabuf);
dma_addr_t rashpa_window_bus(struct dma_buf *dmabuf);
void rashpa_window_trust(struct dma_buf_attachment *attach, u64 offset, u64 length);
int rashpa_window_check_part(struct rashpa_call *call, struct dma_buf *dmabuf, u64 offset,
			     u64 length);
bool rashpa_window_info(struct dma_buf *dmabuf, struct rashpa_info *info);
void rashpa_windows_revoke(struct rashpa_device *dev);
void rashpa_windows_suspend(struct rashpa_device *dev);
void rashpa_windows_resume(struct rashpa_device *dev, void (*back)(struct dma_buf *dmabuf));

/* ------------------------------------------ function/program.c --- */

rashpa_handler rashpa_ioc_program;
int rashpa_table_clear(struct rashpa_device *dev);

/* ----------------------------------------- function/segments.c --- */

int rashpa_table_mmap(void *table, size_t size, struct vm_area_struct *vma);

/* ------------------------------------------- function/revoke.c --- */

int rashpa_maps_clear_stale(struct rashpa_device *dev);
void rashpa_maps_reprogram(struct rashpa_device *dev);
void rashpa_maps_restore(struct dma_buf *dmabuf);

/* -------------------------------------------- function/reset.c --- */

extern const struct pci_error_handlers rashpa_err_handlers;
extern const struct dev_pm_ops rashpa_pm_ops;

int rashpa_device_master(struct rashpa_call *call, struct rashpa_device *dev);
int rashpa_device_hold(struct rashpa_call *call, struct rashpa_device *dev);
int rashpa_device_reinit(struct rashpa_call *call, struct rashpa_device *dev, bool reset);
bool rashpa_device_recover(struct rashpa_device *dev);
void rashpa_shutdown(struct pci_dev *pdev);

/* ---------------------------------------------- function/map.c --- */

extern const struct file_operations rashpa_map_fops;
rashpa_handler rashpa_ioc_map, rashpa_ioc_restore, rashpa_ioc_quiesce;
void rashpa_maps_end(struct rashpa_device *dev, struct list_head *ended);
void rashpa_maps_release(struct list_head *ended);
int rashpa_maps_init(void);
void rashpa_maps_exit(void);

/* ------------------------------------------- function/vector.c --- */

int rashpa_vectors_init(struct rashpa_device *dev);
void rashpa_vectors_free(struct rashpa_device *dev, u32 requested);
u64 rashpa_vectors_sum(struct rashpa_device *dev);

/* ---------------------------------------------- function/pci.c --- */

extern const struct file_operations rashpa_fpga_fops;
struct rashpa_device *rashpa_device_of(struct file *file);
rashpa_handler rashpa_ioc_device_info, rashpa_ioc_region_info, rashpa_ioc_list,
	rashpa_ioc_engine_info, rashpa_ioc_profile, rashpa_ioc_reset;
int rashpa_pci_init(void);
void rashpa_pci_exit(void);

#endif /* RASHPA_FUNCTION_H */
