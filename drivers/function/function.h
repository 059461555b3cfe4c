/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PCI functions: their life, their registers, and what memory they reach at which address.
 *
 * Locks, their order in core/call.h:
 *
 *   rashpa_device.lock	life of the function: gone, profile, lists of maps and windows, users.
 *			Taken by every ioctl on the function and by removal.
 *   rashpa_map.lock	held while an exporter attaches, maps or lets go. Taken under
 *			rashpa_device.lock only for a map that nobody else has yet: nobody waits
 *			for an exporter with that
 *   rashpa_device.bars_lock	held while the function is being reset: CPUs wait. A reset of
 *			the bus holds those of several functions
 *   rashpa_device.windows_lock	list of its windows
 *   rashpa_device.hw_lock	registers, bus mastering, state, programmed entries. A leaf for
 *			sleeping code: taken from dma-buf callbacks and reset handlers. Who
 *			writes registers waits for the end of a reset (rashpa_hw_lock()), but
 *			not with a reservation lock, which the reset may need. An exporter that
 *			gives memory back to the system takes it: no allocation under it waits
 */
#ifndef RASHPA_FUNCTION_H
#define RASHPA_FUNCTION_H

#include <linux/cdev.h>
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

#define RASHPA_VECTORS_MAX	64

/* Width of the DMA mask, where nobody has said more: what each PCI function can do. */
#define RASHPA_DMA_BITS		32

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
 * struct rashpa_engine - an engine of the profile
 * @about: as the profile has it
 * @wanted: its quiesce sequence, until it is mapped
 * @steps: its quiesce sequence, mapped
 * @first: register of its first entry, NULL until it is mapped
 * @limit: register of the entry behind its last one
 * @absent: the board has no such engine
 * @stops: times stopped without the others (hw_lock)
 * @failures: times that it did not stop (hw_lock)
 */
struct rashpa_engine {
	struct rashpa_profile_engine about;
	struct rashpa_profile_step *wanted;
	struct rashpa_step *steps;
	void __iomem *first;
	void __iomem *limit;
	bool absent;
	u64 stops;
	u64 failures;
};

/**
 * struct rashpa_fetching - how a function fetches addresses, see function/descriptors.c
 * @about: as the profile has it; its pointers are user space's
 * @fields: of a descriptor, NULL: it does not fetch
 * @registers: what it is told of a ring
 * @chained: descriptors lead to the next one
 */
struct rashpa_fetching {
	struct rashpa_fetch about;
	struct rashpa_fetch_field *fields;
	struct rashpa_fetch_field *registers;
	bool chained;
};

/**
 * struct rashpa_profile - a profile on its way from user space
 * @windows: named windows
 * @steps: quiesce sequence
 * @table: address table, NULL if there is none
 * @table_regs: the same, mapped
 * @layout: of its entries; where it says where rings are, only their stride and segment_size
 * @fetch: and what is in these rings
 * @engines: its engines
 * @n_engines: their number
 */
struct rashpa_profile {
	struct rashpa_profile_window *windows;
	struct rashpa_profile_step *steps;
	struct rashpa_profile_table *table;
	void __iomem *table_regs;
	struct rashpa_layout layout;
	struct rashpa_fetching fetch;
	struct rashpa_engine *engines;
	u32 n_engines;
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
 * @translated: an IOMMU translates what it sends; does not change while it is bound
 * @gone: removal has begun (written under @lock and @hw_lock)
 * @afresh: what it was left running with was stopped, or it is stuck (@lock)
 * @disclose: members of the group may see addresses (@lock)
 * @have_profile: a profile was applied (@lock)
 * @windows: declared by the profile (@lock)
 * @n_windows: their number
 * @table: address table of the profile, length 0 if it has none (@lock)
 * @table_layout: of its entries (@lock)
 * @table_regs: the table, NULL if the profile has none (@hw_lock)
 * @fetch: its entries say where rings are (written under @lock and @hw_lock, while there is no map)
 * @max_segment: limits of the segments of maps (@lock)
 * @boundary: likewise
 * @alignment: likewise
 * @maps: maps of this importer (written under @lock and @hw_lock)
 * @n_maps: their number
 * @n_imports: memories that are attached, or about to be; removal waits until there is none
 * @imports_wait: for that
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
 * @resets: how often it has been there again (@hw_lock)
 * @reset_wait: for the end of it
 * @stale: maps whose addresses have ended, and whose entries are still to be cleared (@hw_lock)
 * @again: maps that are to be programmed again by the kernel (@hw_lock)
 * @state: enum rashpa_state (@hw_lock)
 * @master: bus mastering is on (@hw_lock)
 * @steps: quiesce sequence (@hw_lock)
 * @n_steps: their number
 * @quiesce_us: time limit of the sequence, 0 for the default (@hw_lock)
 * @quiesces: times stopped as a whole (@hw_lock)
 * @engines: of the profile (written under @lock and @hw_lock)
 * @n_engines: their number
 * @engines_lost: their bounds were not what they were (@hw_lock)
 * @engine_stops: times that one of them was stopped alone (@hw_lock)
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

	bool translated;

	struct mutex lock;		/* life, profile, maps, windows */
	bool gone;
	bool afresh;
	bool disclose;
	bool have_profile;
	struct rashpa_profile_window *windows;
	u32 n_windows;
	struct rashpa_bar_range table;
	struct rashpa_layout table_layout;
	void __iomem *table_regs;
	struct rashpa_fetching fetch;
	u64 max_segment;
	u64 boundary;
	u64 alignment;
	struct list_head maps;
	u32 n_maps;
	atomic_t n_imports;
	wait_queue_head_t imports_wait;
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
	u32 resets;
	wait_queue_head_t reset_wait;
	struct list_head stale;
	struct list_head again;
	u32 state;
	bool master;
	struct rashpa_step *steps;
	u32 n_steps;
	u32 quiesce_us;
	u64 quiesces;
	struct rashpa_engine *engines;
	u32 n_engines;
	bool engines_lost;
	u64 engine_stops;

	struct rashpa_vector *vectors;
	u32 n_vectors;
	struct rashpa_origin events;
	struct rashpa_origin map_events;
	struct rashpa_origin end;
};

/* ----------------------------------------------- function/hw.c --- */

int rashpa_device_removed(struct rashpa_call *call, struct rashpa_device *dev);
int rashpa_device_lock(struct rashpa_call *call, struct rashpa_device *dev);
bool rashpa_bar_is_memory(struct rashpa_device *dev, u32 bar);
bool rashpa_bar_range_ok(struct rashpa_device *dev, u32 bar, u64 offset, u64 length);
bool rashpa_bridges_open(struct pci_dev *pdev);
bool rashpa_device_reachable(struct rashpa_device *dev);
void rashpa_hw_lock(struct rashpa_device *dev);
int rashpa_lockdown_check(struct rashpa_call *call, struct rashpa_device *dev, const char *what);
void rashpa_master_off(struct rashpa_device *dev);
void rashpa_device_event(struct rashpa_device *dev, u64 what);
bool rashpa_device_used(const struct rashpa_device *dev);
void rashpa_device_rest(struct rashpa_device *dev);
void rashpa_device_leave(struct rashpa_device *dev);

/* --------------------------------------------- function/path.c --- */

/* As many as a ring has descriptors: 64 GiB of single pages; more is a mistake, not a plan. */
#define RASHPA_SEGMENTS_MAX	RASHPA_DESCRIPTORS_MAX

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
 * @peer: function that has the memory in a BAR, one reference; or NULL
 * @peer_bar: that BAR
 * @coherent: a device's memory that is reached as the host's
 * @remapped: some pieces are
 * @count: pieces
 * @size: bytes of this, and of the exporter's table
 * @piece: in order of the memory
 */
struct rashpa_pieces {
	struct rashpa_device *dev;
	enum dma_data_direction dir;
	u32 class;
	struct pci_dev *peer;
	u32 peer_bar;
	bool coherent;
	bool remapped;
	u32 count;
	u64 size;
	struct rashpa_piece piece[];
};

/* A function in one number, as struct rashpa_info and struct rashpa_map_make tell it. */
static inline u64 rashpa_bdf(struct pci_dev *pdev)
{
	return (u64)(u32)pci_domain_nr(pdev->bus) << 16 | pci_dev_id(pdev);
}

bool rashpa_pci_translated(struct pci_dev *pdev);
u64 rashpa_dma_limit(struct device *dev);
bool rashpa_dma_reaches(struct device *dev, dma_addr_t address, u64 length);
int rashpa_path_between(struct rashpa_call *call, struct pci_dev *importer, struct pci_dev *peer);
void rashpa_path_flush(struct pci_dev *pdev);
struct rashpa_pieces *rashpa_pieces_get(struct rashpa_call *call, struct rashpa_device *dev,
					struct sg_table *sgt, enum dma_data_direction dir,
					u64 offset, u64 length);
int rashpa_segments_fail(struct rashpa_call *call);
int rashpa_pieces_check(struct rashpa_call *call, struct rashpa_device *dev,
			struct rashpa_pieces *pieces, bool host, bool device_only);
void rashpa_pieces_put(struct rashpa_pieces *pieces);

/* ------------------------------------------ function/quiesce.c --- */

ktime_t rashpa_profile_deadline(struct rashpa_device *dev);
int rashpa_steps_run(struct rashpa_step *steps, u32 n, ktime_t end);
int rashpa_steps_check(struct rashpa_call *call, struct rashpa_device *dev, const char *whose,
		       const struct rashpa_profile_step *s, u32 n);
struct rashpa_step *rashpa_steps_map(struct rashpa_device *dev,
				     const struct rashpa_profile_step *in, u32 n);
void rashpa_steps_free(struct rashpa_device *dev, struct rashpa_step *steps, u32 n);
bool rashpa_profile_answers(struct rashpa_device *dev);
u64 rashpa_device_cut(struct rashpa_device *dev, int err);
u64 rashpa_device_stop_locked(struct rashpa_device *dev, ktime_t end);
int rashpa_device_stop(struct rashpa_device *dev);

/* ------------------------------------------- function/layout.c --- */

int rashpa_layout_fetch(struct rashpa_call *call, u64 from, u32 size, struct rashpa_layout *l);
int rashpa_layout_check(struct rashpa_call *call, const struct rashpa_layout *l);

/* ------------------------------------------- function/engine.c --- */

int rashpa_engines_fetch(struct rashpa_call *call, const struct rashpa_profile_set *p,
			 struct rashpa_profile *profile);
int rashpa_engines_check(struct rashpa_call *call, struct rashpa_device *dev,
			 const struct rashpa_profile_set *p, const struct rashpa_profile *profile);
int rashpa_engines_map(struct rashpa_device *dev, struct rashpa_profile *profile);
void rashpa_engines_free(struct rashpa_device *dev, struct rashpa_engine *engines, u32 n);
int rashpa_engines_bound(struct rashpa_device *dev);
u64 rashpa_engine_of(struct rashpa_device *dev, u32 first, u32 n);
int rashpa_engines_stop(struct rashpa_device *dev, u64 which, ktime_t end);
void rashpa_engines_stopped(struct rashpa_device *dev, u64 which);
bool rashpa_engines_have(struct rashpa_device *dev, u32 bar, u64 offset, u64 length);

/* -------------------------------------- function/descriptors.c --- */

int rashpa_fetch_copy(struct rashpa_call *call, const struct rashpa_profile_table *table,
		      struct rashpa_fetching *fetch);
int rashpa_fetch_check(struct rashpa_call *call, struct rashpa_fetching *fetch);
void rashpa_fetch_free(struct rashpa_fetching *fetch);
void rashpa_fetch_forget(struct rashpa_device *dev, void __iomem *regs);
u32 rashpa_fetch_register(struct rashpa_device *dev);

/* ------------------------------------------ function/profile.c --- */

int rashpa_profile_fetch(struct rashpa_call *call, const struct rashpa_profile_set *p,
			 struct rashpa_profile *profile);
int rashpa_profile_check(struct rashpa_call *call, struct rashpa_device *dev,
			 const struct rashpa_profile_set *p, struct rashpa_profile *profile);
void rashpa_profile_keep(struct rashpa_device *dev, const struct rashpa_profile_set *p,
			 struct rashpa_profile *profile, struct rashpa_step *steps);
int rashpa_profile_map(struct rashpa_device *dev, struct rashpa_profile *profile);
void rashpa_profile_drop(struct rashpa_device *dev, struct rashpa_profile *profile);
void rashpa_profile_free(struct rashpa_device *dev);
const struct rashpa_profile_window *
rashpa_profile_find(struct rashpa_device *dev, const char *name);
const struct rashpa_profile_window *
rashpa_profile_cover(struct rashpa_device *dev, u32 bar, u64 offset, u64 length, u32 flags);

/* ------------------------------------------- function/window.c --- */

/* What others have to finish first (fences of a dma-buf) is not waited for longer, in seconds. */
#define RASHPA_FENCE_LIMIT	10

rashpa_handler rashpa_ioc_window;
struct rashpa_device *rashpa_window_of(struct dma_buf *dmabuf);
dma_addr_t rashpa_window_bus(struct dma_buf *dmabuf);
bool rashpa_dmabuf_is_window(struct dma_buf *dmabuf);
void rashpa_window_trust(struct dma_buf_attachment *attach);
void rashpa_window_info(struct dma_buf *dmabuf, struct rashpa_info *info);
void rashpa_windows_revoke(struct rashpa_device *dev);
void rashpa_windows_suspend(struct rashpa_device *dev);
void rashpa_windows_resume(struct rashpa_device *dev, void (*back)(struct dma_buf *dmabuf));

/* ------------------------------------------ function/program.c --- */

rashpa_handler rashpa_ioc_program;
int rashpa_table_clear(struct rashpa_device *dev);

/* ------------------------------------------- function/revoke.c --- */

int rashpa_maps_clear_stale(struct rashpa_device *dev);
void rashpa_maps_again(struct rashpa_device *dev);
void rashpa_maps_restore(struct dma_buf *dmabuf);

/* -------------------------------------------- function/reset.c --- */

extern const struct pci_error_handlers rashpa_err_handlers;
extern const struct dev_pm_ops rashpa_pm_ops;

int rashpa_device_master(struct rashpa_call *call, struct rashpa_device *dev);
int rashpa_device_hold(struct rashpa_call *call, struct rashpa_device *dev);
int rashpa_device_afresh(struct rashpa_call *call, struct rashpa_device *dev, bool reset);
void rashpa_shutdown(struct pci_dev *pdev);

/* ---------------------------------------------- function/map.c --- */

rashpa_handler rashpa_ioc_map, rashpa_ioc_restore;
u32 rashpa_maps_of_engine(struct rashpa_device *dev, u64 engine);
void rashpa_maps_end(struct rashpa_device *dev, struct list_head *ended);
int rashpa_maps_check_stop(struct rashpa_call *call, struct rashpa_device *dev);
int rashpa_map_quiesce(struct rashpa_call *call, struct rashpa_device *dev, u32 id,
		       struct list_head *ended);
void rashpa_maps_release(struct list_head *ended);
int rashpa_maps_init(void);
void rashpa_maps_exit(void);

/* ------------------------------------------- function/vector.c --- */

int rashpa_vectors_init(struct rashpa_device *dev);
void rashpa_vectors_free(struct rashpa_device *dev, u32 requested);
void rashpa_vector_free(struct rashpa_vector *vector);
u64 rashpa_vectors_sum(struct rashpa_device *dev);

/* ---------------------------------------------- function/pci.c --- */

struct rashpa_device *rashpa_device_of(struct file *file);
rashpa_handler rashpa_ioc_device_info, rashpa_ioc_region_info, rashpa_ioc_device_list,
	rashpa_ioc_quiesce, rashpa_ioc_engine_info, rashpa_ioc_profile, rashpa_ioc_reset;
int rashpa_pci_init(void);
void rashpa_pci_exit(void);

#endif /* RASHPA_FUNCTION_H */
