/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * rashpa: detector data straight into host, GPU and FPGA memory.
 *
 * This header is the whole contract between the driver and user space.
 */
#ifndef _UAPI_LINUX_RASHPA_H
#define _UAPI_LINUX_RASHPA_H

#include <linux/const.h>
#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: Rules of every ioctl
 *
 * Every argument is a struct that begins with &struct rashpa_head. ``size`` is
 * the size the caller was compiled with, so that structs can grow at the end.
 *
 * - ``size`` below the first published size: EINVAL. A tail that this kernel
 *   does not know: E2BIG unless all its bytes are zero.
 * - A flag that this header does not define, a reserved field that is not zero,
 *   a value outside its range: EINVAL. A known request that this kernel or
 *   this memory cannot serve: EOPNOTSUPP.
 * - A number that the node does not serve: ENOTTY. A pointer that cannot be read
 *   or written: EFAULT. A device that was removed: ENODEV.
 * - Fields named ``out_`` are written by the kernel and ignored on input. All
 *   others are read only. Zero is always the safe default.
 * - File descriptors are created close-on-exec, and only when nothing can fail
 *   any more. Pointers travel as u64.
 * - Times are CLOCK_MONOTONIC in nanoseconds, lengths and offsets are bytes.
 * - The struct must be writable, also where nothing is returned: this is found out
 *   before anything is done.
 * - On failure, if ``head.reason`` is set, a sentence is stored there that says
 *   what is wrong with which thing and, where it is known, what would help.
 */

#define RASHPA_IOC_TYPE		0xE7

/** RASHPA_NAME_SIZE - bytes of a buffer's name, the final NUL included */
#define RASHPA_NAME_SIZE	64
/** RASHPA_REASON_SIZE - bytes that are enough for every sentence */
#define RASHPA_REASON_SIZE	256
/** RASHPA_BARS - BARs of a PCI function */
#define RASHPA_BARS		6

/**
 * struct rashpa_head - the beginning of every ioctl argument
 * @size: size of the whole struct in bytes, as the caller knows it
 * @flags: flags of the operation; every undefined bit must be zero
 * @reason: pointer to a buffer for a sentence on failure, or 0
 * @reason_size: size of that buffer in bytes; the sentence is cut to it and
 *	always ends in NUL
 * @__reserved: must be zero
 */
struct rashpa_head {
	__u32 size;
	__u32 flags;
	__aligned_u64 reason;
	__u32 reason_size;
	__u32 __reserved;
};

/**
 * enum rashpa_backend - where a buffer's memory comes from
 * @RASHPA_BACKEND_AUTO: CMA if an administrator reserved an area, else contig
 * @RASHPA_BACKEND_CMA: the default CMA area (boot parameter ``cma=``); cannot be
 *	registered by address (RDMA, O_DIRECT), only as dma-buf
 * @RASHPA_BACKEND_CONTIG: assembled at run time from free and movable memory
 */
enum rashpa_backend {
	RASHPA_BACKEND_AUTO = 0,
	RASHPA_BACKEND_CMA = 1,
	RASHPA_BACKEND_CONTIG = 2,
};

/**
 * enum rashpa_cache - how the CPU caches a mapping
 * @RASHPA_CACHE_DEFAULT: cached for buffers, uncached for windows
 * @RASHPA_CACHE_CACHED: write-back
 * @RASHPA_CACHE_WC: write-combined
 * @RASHPA_CACHE_UC: uncached
 */
enum rashpa_cache {
	RASHPA_CACHE_DEFAULT = 0,
	RASHPA_CACHE_CACHED = 1,
	RASHPA_CACHE_WC = 2,
	RASHPA_CACHE_UC = 3,
};

/* ------------------------------------------------- /dev/rashpa/memory --- */

/** RASHPA_ALLOC_NODE - @node is given: take memory of that NUMA node only */
#define RASHPA_ALLOC_NODE	_BITUL(0)

/**
 * struct rashpa_alloc - RASHPA_IOC_ALLOC: make a contiguous, zeroed buffer
 * @head: flags: RASHPA_ALLOC_NODE
 * @length: bytes, > 0; rounded up to whole pages
 * @alignment: of the physical address in bytes, a power of two up to 1 GiB;
 *	0 for one page
 * @node: NUMA node, with RASHPA_ALLOC_NODE; must be 0 without
 * @backend: enum rashpa_backend
 * @cache: enum rashpa_cache
 * @out_fd: dma-buf of the buffer, readable and writable
 * @name: NUL-terminated name; empty for an anonymous buffer, which lives as long
 *	as any fd, mapping or map of it. A named buffer lives until
 *	RASHPA_IOC_REMOVE and is at /dev/rashpa/buffer/NAME. Letters, digits, and
 *	``. _ -``; does not begin with a dot; all bytes after the NUL must be 0.
 * @out_length: the rounded length in bytes
 * @out_segments: physically contiguous pieces: 1
 * @out_backend: the backend that served, enum rashpa_backend
 * @out_node: the NUMA node of the memory
 * @__reserved: must be zero
 *
 * The call can be interrupted by a signal while it searches and zeroes.
 *
 * Errors: EPERM (the node was opened read-only), EINVAL, EEXIST (name), ENAMETOOLONG
 * (no NUL), ENOMEM (see RASHPA_IOC_QUERY), EOPNOTSUPP (backend or cache mode not
 * here), EINTR, EDQUOT (the limit that the administrator set in the module parameter
 * ``limit_mib`` is reached).
 */
struct rashpa_alloc {
	struct rashpa_head head;
	__aligned_u64 length;
	__aligned_u64 alignment;
	__u32 node;
	__u32 backend;
	__u32 cache;
	__s32 out_fd;
	char name[RASHPA_NAME_SIZE];
	__aligned_u64 out_length;
	__u32 out_segments;
	__u32 out_backend;
	__u32 out_node;
	__u32 __reserved;
};

/**
 * struct rashpa_open - RASHPA_IOC_OPEN: a dma-buf fd of a named buffer
 * @head: no flags
 * @name: name of the buffer
 * @out_fd: dma-buf fd
 * @__reserved: must be zero
 *
 * Errors: ENOENT, EINVAL, ENAMETOOLONG.
 */
struct rashpa_open {
	struct rashpa_head head;
	char name[RASHPA_NAME_SIZE];
	__s32 out_fd;
	__u32 __reserved;
};

/**
 * struct rashpa_remove - RASHPA_IOC_REMOVE: take a name away
 * @head: no flags
 * @name: name of the buffer
 *
 * The memory itself is given back with its last fd and mapping.
 *
 * Errors: EPERM (the node was opened read-only), ENOENT, EINVAL, ENAMETOOLONG, EBUSY
 * (an importer maps it, or a process has it mapped).
 */
struct rashpa_remove {
	struct rashpa_head head;
	char name[RASHPA_NAME_SIZE];
};

/** RASHPA_QUERY_NODE - @node is given: answer for that NUMA node only */
#define RASHPA_QUERY_NODE	_BITUL(0)

/**
 * struct rashpa_query - RASHPA_IOC_QUERY: what would fit
 * @head: flags: RASHPA_QUERY_NODE
 * @node: NUMA node, with RASHPA_QUERY_NODE; must be 0 without
 * @backend: enum rashpa_backend; AUTO answers for the backend it would take
 * @out_total: bytes that the backend manages
 * @out_free: bytes free now
 * @out_largest: longest run in bytes that looks free or movable; another
 *	allocation, or a page that cannot be moved after all, can make it less. 0 for
 *	CMA, whose layout the kernel keeps to itself
 * @out_allocated: bytes that rashpa buffers hold now
 * @out_limit: administrator's limit for all buffers in bytes, 0 for none
 * @out_backend: backend that the answer is for, enum rashpa_backend
 * @__reserved: must be zero
 *
 * Errors: EINVAL, EOPNOTSUPP (the backend is not in this kernel).
 */
struct rashpa_query {
	struct rashpa_head head;
	__u32 node;
	__u32 backend;
	__aligned_u64 out_total;
	__aligned_u64 out_free;
	__aligned_u64 out_largest;
	__aligned_u64 out_allocated;
	__aligned_u64 out_limit;
	__u32 out_backend;
	__u32 __reserved;
};

/**
 * enum rashpa_kind - what a memory is
 * @RASHPA_KIND_BUFFER: a buffer of this driver
 * @RASHPA_KIND_WINDOW: a window of a PCI BAR
 * @RASHPA_KIND_FOREIGN: another driver's dma-buf
 */
enum rashpa_kind {
	RASHPA_KIND_BUFFER = 1,
	RASHPA_KIND_WINDOW = 2,
	RASHPA_KIND_FOREIGN = 3,
};

/**
 * struct rashpa_info - RASHPA_IOC_INFO: what a memory is
 * @head: no flags
 * @fd: on /dev/rashpa/memory any dma-buf fd; on a buffer's node -1
 * @out_kind: enum rashpa_kind
 * @out_length: bytes
 * @out_backend: enum rashpa_backend, 0 if not a buffer
 * @out_cache: enum rashpa_cache, 0 if foreign
 * @out_node: NUMA node, -1 if not known
 * @out_segments: physically contiguous pieces, 0 if not known
 * @out_importers: devices that map it now; 0 if foreign (not known)
 * @out_mappings: CPU mappings now; 0 if foreign (not known)
 * @out_name: name, empty if it has none
 *
 * Errors: EBADF, EINVAL (not a dma-buf).
 */
struct rashpa_info {
	struct rashpa_head head;
	__s32 fd;
	__u32 out_kind;
	__aligned_u64 out_length;
	__u32 out_backend;
	__u32 out_cache;
	__s32 out_node;
	__u32 out_segments;
	__u32 out_importers;
	__u32 out_mappings;
	char out_name[RASHPA_NAME_SIZE];
};

/* -------------------------------------------- /dev/rashpa/buffer/NAME --- */

/**
 * struct rashpa_dmabuf - RASHPA_IOC_DMABUF: the dma-buf of the opened buffer
 * @head: no flags
 * @out_fd: dma-buf fd; read-only if the node was opened read-only
 * @__reserved: must be zero
 */
struct rashpa_dmabuf {
	struct rashpa_head head;
	__s32 out_fd;
	__u32 __reserved;
};

/* --------------------------------------------------- /dev/rashpa/fpgaN --- */

/*
 * Everything but DEVICE_INFO and REGION_INFO needs the node to be open for writing:
 * EPERM.
 */

/**
 * enum rashpa_state - of a bound function
 * @RASHPA_STATE_READY: can do DMA
 * @RASHPA_STATE_STUCK: did not become idle in time; bus mastering is off until
 *	RASHPA_IOC_RESET or the next bind
 */
enum rashpa_state {
	RASHPA_STATE_READY = 0,
	RASHPA_STATE_STUCK = 1,
};

/** RASHPA_DEVICE_IOMMU - an IOMMU translates what this function sends */
#define RASHPA_DEVICE_IOMMU	_BITUL(0)
/** RASHPA_DEVICE_PROFILE - a profile was applied */
#define RASHPA_DEVICE_PROFILE	_BITUL(1)
/** RASHPA_DEVICE_DISCLOSE - the profile lets unprivileged users see addresses */
#define RASHPA_DEVICE_DISCLOSE	_BITUL(2)
/** RASHPA_DEVICE_MASTER - bus mastering is on */
#define RASHPA_DEVICE_MASTER	_BITUL(3)

/**
 * struct rashpa_device_info - RASHPA_IOC_DEVICE_INFO: identity and state
 * @head: no flags
 * @out_vendor: PCI vendor id
 * @out_device: PCI device id
 * @out_subvendor: PCI subsystem vendor id
 * @out_subdevice: PCI subsystem id
 * @out_domain: PCI domain
 * @out_bus: PCI bus
 * @out_devfn: PCI device << 3 | function
 * @out_vectors: interrupt vectors that can be event sources
 * @out_node: NUMA node, -1 if not known
 * @out_dma_bits: width of the DMA mask
 * @out_flags: RASHPA_DEVICE_*
 * @out_state: enum rashpa_state
 * @out_maps: maps that exist now
 * @out_windows: windows that exist now
 * @out_quiesces: times that DMA was stopped since the bind
 * @out_interrupts: interrupts of all vectors since the bind
 */
struct rashpa_device_info {
	struct rashpa_head head;
	__u32 out_vendor;
	__u32 out_device;
	__u32 out_subvendor;
	__u32 out_subdevice;
	__u32 out_domain;
	__u32 out_bus;
	__u32 out_devfn;
	__u32 out_vectors;
	__s32 out_node;
	__u32 out_dma_bits;
	__u32 out_flags;
	__u32 out_state;
	__u32 out_maps;
	__u32 out_windows;
	__aligned_u64 out_quiesces;
	__aligned_u64 out_interrupts;
};

/** RASHPA_REGION_MEMORY - a memory BAR (windows can be made in it) */
#define RASHPA_REGION_MEMORY	_BITUL(0)
/** RASHPA_REGION_PREFETCH - prefetchable (write-combining is harmless) */
#define RASHPA_REGION_PREFETCH	_BITUL(1)
/** RASHPA_REGION_64BIT - decodes 64-bit addresses */
#define RASHPA_REGION_64BIT	_BITUL(2)

/**
 * struct rashpa_region_info - RASHPA_IOC_REGION_INFO: one BAR
 * @head: no flags
 * @bar: 0 to 5
 * @out_flags: RASHPA_REGION_*; 0 if the BAR is not there
 * @out_length: bytes, 0 if the BAR is not there
 *
 * Errors: EINVAL.
 */
struct rashpa_region_info {
	struct rashpa_head head;
	__u32 bar;
	__u32 out_flags;
	__aligned_u64 out_length;
};

/* --- device profile --- */

#define RASHPA_PROFILE_NAME_SIZE	32
#define RASHPA_PROFILE_WINDOWS_MAX	64
#define RASHPA_PROFILE_STEPS_MAX	32

/** RASHPA_PWINDOW_USER - may be mapped without CAP_SYS_RAWIO */
#define RASHPA_PWINDOW_USER	_BITUL(0)

/**
 * struct rashpa_profile_window - a window that the administrator declares
 * @name: NUL-terminated, not empty, unique in the profile
 * @bar: 0 to 5
 * @flags: RASHPA_PWINDOW_*
 * @offset: in the BAR, bytes, a multiple of the page size
 * @length: bytes, a multiple of the page size, > 0
 * @cache: enum rashpa_cache
 * @__reserved: must be zero
 */
struct rashpa_profile_window {
	char name[RASHPA_PROFILE_NAME_SIZE];
	__u32 bar;
	__u32 flags;
	__aligned_u64 offset;
	__aligned_u64 length;
	__u32 cache;
	__u32 __reserved;
};

/**
 * enum rashpa_step_op - one step of the quiesce sequence
 * @RASHPA_STEP_WRITE: register = value (bits outside the mask are kept; a mask
 *	of all ones does not read first)
 * @RASHPA_STEP_WAIT: wait until (register & mask) == value, at most @timeout_us
 */
enum rashpa_step_op {
	RASHPA_STEP_WRITE = 1,
	RASHPA_STEP_WAIT = 2,
};

/**
 * struct rashpa_profile_step - one step of the quiesce sequence
 * @op: enum rashpa_step_op
 * @bar: 0 to 5
 * @offset: in the BAR, bytes, a multiple of 4
 * @value: 32-bit value
 * @mask: 32-bit mask
 * @timeout_us: of a WAIT, 1 to 1000000 microseconds; 0 for WRITE
 * @__reserved: must be zero
 *
 * A WAIT that reads all ones under a full-ones register is taken as a device
 * that does not answer.
 */
struct rashpa_profile_step {
	__u32 op;
	__u32 bar;
	__aligned_u64 offset;
	__u32 value;
	__u32 mask;
	__u32 timeout_us;
	__u32 __reserved;
};

/**
 * struct rashpa_layout - how one entry of a function's address table looks
 * @stride: bytes from entry to entry, a multiple of 4, up to 4096
 * @address_offset: of the address field in the entry
 * @address_bits: 32 or 64 (low word first)
 * @length_offset: of the length field
 * @length_bits: 0 (no such field), 32 or 64
 * @control_offset: of the control field
 * @control_bits: 0 (no such field) or 32
 * @control_set: value of the control field of a valid entry, written last
 * @control_clear: value of the control field of an invalid entry, written first
 * @__reserved: must be zero
 *
 * @control_set and @control_clear differ. Fields are little-endian, aligned to 4,
 * inside the stride, and do not overlap.
 */
struct rashpa_layout {
	__u32 stride;
	__u32 address_offset;
	__u32 address_bits;
	__u32 length_offset;
	__u32 length_bits;
	__u32 control_offset;
	__u32 control_bits;
	__u32 control_set;
	__u32 control_clear;
	__u32 __reserved;
};

/** RASHPA_PROFILE_DISCLOSE - members of the group may see bus addresses */
#define RASHPA_PROFILE_DISCLOSE	_BITUL(0)

/** RASHPA_PROFILE_TABLE - the fields of the address table are given */
#define RASHPA_PROFILE_TABLE	_BITUL(1)

/**
 * struct rashpa_profile - RASHPA_IOC_PROFILE: what differs from board to board
 * @head: flags: RASHPA_PROFILE_DISCLOSE, RASHPA_PROFILE_TABLE
 * @windows: pointer to @n_windows of struct rashpa_profile_window
 * @steps: pointer to @n_steps of struct rashpa_profile_step, the quiesce sequence
 * @n_windows: 0 to RASHPA_PROFILE_WINDOWS_MAX
 * @n_steps: 0 to RASHPA_PROFILE_STEPS_MAX; with none, quiescing is bus mastering
 *	off
 * @dma_bits: width of the DMA mask, 24 to 64; 0 for 64
 * @__reserved: must be zero
 * @max_segment: default segment limits of maps, see struct rashpa_map
 * @boundary: likewise
 * @alignment: likewise
 * @table_offset: of the function's address table in its BAR, a multiple of 4
 * @table_length: bytes of the whole table, > 0
 * @table_bar: 0 to 5
 * @__reserved2: must be zero
 * @table_layout: of one entry
 *
 * Without RASHPA_PROFILE_TABLE the fields of the table must be zero. A window with
 * RASHPA_PWINDOW_USER must not overlap the table: who can write there can make the
 * function write anywhere.
 *
 * The last step must be a WAIT for at least one bit: only its answer tells that the
 * function has stopped and that all its writes have arrived.
 *
 * Replaces the profile as a whole, or changes nothing.
 *
 * Errors: EPERM (without CAP_SYS_ADMIN), EBUSY (maps or windows exist), EINVAL,
 * EOPNOTSUPP (a cached window), ERANGE (a window or step outside its BAR), EIO (the
 * DMA mask does not work on this machine).
 */
struct rashpa_profile {
	struct rashpa_head head;
	__aligned_u64 windows;
	__aligned_u64 steps;
	__u32 n_windows;
	__u32 n_steps;
	__u32 dma_bits;
	__u32 __reserved;
	__aligned_u64 max_segment;
	__aligned_u64 boundary;
	__aligned_u64 alignment;
	__aligned_u64 table_offset;
	__aligned_u64 table_length;
	__u32 table_bar;
	__u32 __reserved2;
	struct rashpa_layout table_layout;
};

/**
 * struct rashpa_window - RASHPA_IOC_WINDOW: a range of a BAR as memory
 * @head: no flags
 * @bar: 0 to 5; must be 0 with a name
 * @cache: enum rashpa_cache; must be 0 with a name
 * @offset: in the BAR, a multiple of the page size; must be 0 with a name
 * @length: a multiple of the page size, > 0; must be 0 with a name
 * @name: name of a window in the profile, or empty
 * @out_length: bytes
 * @out_fd: dma-buf fd; mmap it to reach the registers
 * @__reserved: must be zero
 *
 * Errors: EPERM (CAP_SYS_RAWIO needed, except for a window of the profile with
 * RASHPA_PWINDOW_USER), EINVAL, ERANGE (outside the BAR), ENOENT (name), EOPNOTSUPP
 * (not a memory BAR, or write-combining on a BAR that is not prefetchable),
 * EBUSY (the range holds the MSI-X table), ENODEV.
 */
struct rashpa_window {
	struct rashpa_head head;
	__u32 bar;
	__u32 cache;
	__aligned_u64 offset;
	__aligned_u64 length;
	char name[RASHPA_PROFILE_NAME_SIZE];
	__aligned_u64 out_length;
	__s32 out_fd;
	__u32 __reserved;
};

/**
 * enum rashpa_direction - of the DMA through a map
 * @RASHPA_BIDIRECTIONAL: both
 * @RASHPA_TO_MEMORY: the function writes the memory
 * @RASHPA_FROM_MEMORY: the function reads the memory
 */
enum rashpa_direction {
	RASHPA_BIDIRECTIONAL = 0,
	RASHPA_TO_MEMORY = 1,
	RASHPA_FROM_MEMORY = 2,
};

/**
 * enum rashpa_class - what the addresses of a map are, checked
 * @RASHPA_CLASS_HOST: bus addresses of host memory, no IOMMU in the way
 * @RASHPA_CLASS_IOVA: addresses that the importer's IOMMU translates
 * @RASHPA_CLASS_PEER: in another function's BAR; with an IOMMU an address that it
 *	translates
 */
enum rashpa_class {
	RASHPA_CLASS_HOST = 1,
	RASHPA_CLASS_IOVA = 2,
	RASHPA_CLASS_PEER = 3,
};

/**
 * struct rashpa_map - RASHPA_IOC_MAP: translate a memory for this function
 * @head: no flags
 * @fd: dma-buf fd of any exporter
 * @direction: enum rashpa_direction
 * @offset: first byte, a multiple of the page size
 * @length: bytes, a multiple of the page size; 0 for all from @offset on
 * @max_segment: longest segment in bytes, a multiple of the page size; 0 for the
 *	profile's
 * @boundary: power of two that no segment may cross, at least a page; 0 for the
 *	profile's
 * @alignment: power of two that every address must be a multiple of; 0 for the
 *	profile's
 * @out_fd: the map; RASHPA_IOC_PROGRAM, mmap (struct rashpa_table), poll, read
 * @out_class: enum rashpa_class
 * @out_generation: of the new table, see struct rashpa_table
 * @out_segments: entries of the table
 * @__reserved: must be zero
 * @out_table_size: bytes to mmap for the whole table
 *
 * The end of the map (its last fd and the last mapping of its table, also by death of
 * their holders) stops all DMA of the function (quiesce), clears what PROGRAM wrote,
 * and only then unmaps. Bus mastering is on while there is a map or a channel.
 *
 * Errors: EBADF, EINVAL, ERANGE (not within the memory), EACCES (the dma-buf is
 * read-only and the function would write), EPERM (the profile has no quiesce
 * sequence: needs CAP_SYS_RAWIO), ENODEV, EIO (function is stuck: reset
 * it), EREMOTEIO (the exporter's table is not true; see the reason), ENXIO (no
 * path between the two functions), EOVERFLOW (an address outside the DMA mask),
 * and what the exporter answers.
 */
struct rashpa_map {
	struct rashpa_head head;
	__s32 fd;
	__u32 direction;
	__aligned_u64 offset;
	__aligned_u64 length;
	__aligned_u64 max_segment;
	__aligned_u64 boundary;
	__aligned_u64 alignment;
	__s32 out_fd;
	__u32 out_class;
	__aligned_u64 out_generation;
	__u32 out_segments;
	__u32 __reserved;
	__aligned_u64 out_table_size;
};

/**
 * struct rashpa_events - RASHPA_IOC_EVENTS: make an event channel
 * @head: no flags
 * @depth: records that the queue holds, 2 to 65536; 0 for 1024
 * @out_fd: the channel; read, poll, RASHPA_IOC_SOURCE_ADD, RASHPA_IOC_EVENTFD
 *
 * Errors: EINVAL, ENOMEM, EPERM (the profile has no quiesce sequence: needs
 * CAP_SYS_RAWIO), EIO (function is stuck), ENODEV.
 */
struct rashpa_events {
	struct rashpa_head head;
	__u32 depth;
	__s32 out_fd;
};

/**
 * struct rashpa_quiesce - RASHPA_IOC_QUIESCE: stop all DMA of the function now
 * @head: no flags
 * @out_time_ns: how long it took
 *
 * Without a quiesce sequence in the profile, and where the sequence fails, bus
 * mastering is turned off; the next MAP or EVENTS turns it on again (after a failure:
 * not before RESET).
 *
 * Errors: ETIMEDOUT (it did not become idle; bus mastering is off now), ENODEV.
 */
struct rashpa_quiesce {
	struct rashpa_head head;
	__aligned_u64 out_time_ns;
};

/**
 * struct rashpa_reset - RASHPA_IOC_RESET: function reset
 * @head: no flags
 *
 * Quiesces first. Windows and maps stay valid, but the function has forgotten the
 * entries that PROGRAM wrote: program each map again. After a failed quiesce the next
 * MAP or EVENTS turns bus mastering on.
 *
 * Errors: EOPNOTSUPP (the function has no reset), EPERM (without CAP_SYS_RAWIO),
 * ENODEV, and what the reset answers.
 */
struct rashpa_reset {
	struct rashpa_head head;
};

/* ------------------------------------------------------------- map fd --- */

/**
 * struct rashpa_segment - one piece of a map
 * @address: DMA address for the importer
 * @length: bytes
 */
struct rashpa_segment {
	__aligned_u64 address;
	__aligned_u64 length;
};

/**
 * enum rashpa_map_state - of a map
 * @RASHPA_MAP_VALID: the addresses may be used
 * @RASHPA_MAP_REVOKED: the memory or the function is gone
 */
enum rashpa_map_state {
	RASHPA_MAP_VALID = 1,
	RASHPA_MAP_REVOKED = 2,
};

/**
 * struct rashpa_table - what mmap of a map fd shows, read-only
 * @generation: changes whenever state or segments change; odd while the kernel
 *	changes them
 * @state: enum rashpa_map_state
 * @map_class: enum rashpa_class
 * @count: segments
 * @__reserved: zero
 * @segment: the segments in order of the memory
 *
 * mmap is allowed with CAP_SYS_RAWIO, or if the profile discloses addresses; else
 * EPERM: use RASHPA_IOC_PROGRAM.
 *
 * read() of the map fd returns this header without segments, and blocks (or is not
 * readable for poll) until its generation differs from the one read last.
 */
struct rashpa_table {
	__aligned_u64 generation;
	__u32 state;
	__u32 map_class;
	__u32 count;
	__u32 __reserved;
	struct rashpa_segment segment[];
};

/**
 * struct rashpa_program - RASHPA_IOC_PROGRAM: the kernel writes the table into the
 *	function, so that user space need not see addresses
 * @head: no flags
 * @window: -1 for the table that the profile describes; or dma-buf fd of a window of the
 *	same function (needs CAP_SYS_RAWIO)
 * @first: index of the first entry to write
 * @offset: of entry 0 in the window, bytes, a multiple of 4; 0 with -1
 * @length: of the function's whole table, bytes; all entries must be inside; 0 with -1
 * @layout: of one entry; all zero with -1
 * @out_entries: entries written
 * @__reserved: must be zero
 *
 * A map has at most one programmed place; a second call moves it. The entries are
 * cleared before the map goes.
 *
 * Errors: EPERM (a window without CAP_SYS_RAWIO), ENOENT (the profile has no table),
 * EBADF, EINVAL, EXDEV (window of another function), ERANGE (outside the window, or
 * more segments than entries), EBUSY (another map is programmed there), EOVERFLOW (an
 * address or length wider than its field), ESTALE (the map is revoked), ENODEV.
 */
struct rashpa_program {
	struct rashpa_head head;
	__s32 window;
	__u32 first;
	__aligned_u64 offset;
	__aligned_u64 length;
	struct rashpa_layout layout;
	__u32 out_entries;
	__u32 __reserved;
};

/* --------------------------------------------------------- channel fd --- */

/**
 * enum rashpa_source - what can make events
 * @RASHPA_SOURCE_VECTOR: an interrupt vector; value = the vector's number
 * @RASHPA_SOURCE_DEVICE: state of the function; value = enum rashpa_device_event
 * @RASHPA_SOURCE_SOFTWARE: RASHPA_IOC_SIGNAL on the same channel
 */
enum rashpa_source {
	RASHPA_SOURCE_VECTOR = 1,
	RASHPA_SOURCE_DEVICE = 2,
	RASHPA_SOURCE_SOFTWARE = 3,
};

/**
 * enum rashpa_device_event - values of RASHPA_SOURCE_DEVICE
 * @RASHPA_DEVICE_QUIESCED: all DMA was stopped
 * @RASHPA_DEVICE_RESET: the function was reset
 * @RASHPA_DEVICE_STUCK: the function did not stop; bus mastering is off
 * @RASHPA_DEVICE_GONE: the function was removed; no more events will come
 */
enum rashpa_device_event {
	RASHPA_DEVICE_QUIESCED = 1,
	RASHPA_DEVICE_RESET = 2,
	RASHPA_DEVICE_STUCK = 3,
	RASHPA_DEVICE_GONE = 4,
};

/**
 * struct rashpa_source_add - RASHPA_IOC_SOURCE_ADD: listen to a source
 * @head: no flags
 * @kind: enum rashpa_source
 * @index: vector number; 0 for the other kinds
 * @out_id: id of the source in this channel's records, from 1 on
 * @__reserved: must be zero
 *
 * Errors: EINVAL, ERANGE (no such vector), EEXIST (already in this channel), ENOSPC
 * (more than 64 sources in the channel, or listeners to the source), ENODEV.
 */
struct rashpa_source_add {
	struct rashpa_head head;
	__u32 kind;
	__u32 index;
	__u32 out_id;
	__u32 __reserved;
};

/**
 * struct rashpa_source_del - RASHPA_IOC_SOURCE_DEL: stop listening
 * @head: no flags
 * @id: of the source
 * @__reserved: must be zero
 *
 * Records already queued stay. Errors: ENOENT, EINVAL.
 */
struct rashpa_source_del {
	struct rashpa_head head;
	__u32 id;
	__u32 __reserved;
};

/**
 * struct rashpa_eventfd - RASHPA_IOC_EVENTFD: signal an eventfd as well
 * @head: no flags
 * @fd: eventfd; -1 to stop
 * @id: source, or 0 for all sources of the channel
 *
 * One eventfd a source and one for all; a second call replaces the first. Records are
 * queued all the same. Errors: EBADF, EINVAL (not an eventfd), ENOENT (source).
 */
struct rashpa_eventfd {
	struct rashpa_head head;
	__s32 fd;
	__u32 id;
};

/**
 * struct rashpa_signal - RASHPA_IOC_SIGNAL: a software event
 * @head: no flags
 * @value: goes into the record
 *
 * Errors: ENOENT (RASHPA_SOURCE_SOFTWARE was not added).
 */
struct rashpa_signal {
	struct rashpa_head head;
	__aligned_u64 value;
};

/**
 * struct rashpa_event - one record, as read() of a channel returns it
 * @sequence: counts the events of the source since the bind, from 1 on, whether
 *	anybody listened or not (SOFTWARE: since the source was added)
 * @time_ns: CLOCK_MONOTONIC, taken in the interrupt handler
 * @source: id from RASHPA_IOC_SOURCE_ADD
 * @kind: enum rashpa_source
 * @value: see enum rashpa_source
 * @lost: records of this source that this channel had no room for, so far
 *
 * read() returns whole records, as many as fit; it blocks until there is one
 * unless O_NONBLOCK is set (EAGAIN). A buffer shorter than one record: EINVAL. After
 * RASHPA_DEVICE_GONE and an empty queue: ENODEV. When the queue is full the newest
 * record is dropped and counted. PCI may merge interrupts: @sequence counts
 * those that arrived; what hardware wrote is counted by its lock slot.
 */
struct rashpa_event {
	__aligned_u64 sequence;
	__aligned_u64 time_ns;
	__u32 source;
	__u32 kind;
	__aligned_u64 value;
	__aligned_u64 lost;
};

/* ---------------------------------------------------------- numbers ---- */

/* /dev/rashpa/memory (INFO: also on /dev/rashpa/buffer/NAME) */
#define RASHPA_IOC_ALLOC	_IO(RASHPA_IOC_TYPE, 0x00)
#define RASHPA_IOC_OPEN		_IO(RASHPA_IOC_TYPE, 0x01)
#define RASHPA_IOC_REMOVE	_IO(RASHPA_IOC_TYPE, 0x02)
#define RASHPA_IOC_QUERY	_IO(RASHPA_IOC_TYPE, 0x03)
#define RASHPA_IOC_INFO		_IO(RASHPA_IOC_TYPE, 0x04)
/* /dev/rashpa/buffer/NAME */
#define RASHPA_IOC_DMABUF	_IO(RASHPA_IOC_TYPE, 0x10)
/* /dev/rashpa/fpgaN */
#define RASHPA_IOC_DEVICE_INFO	_IO(RASHPA_IOC_TYPE, 0x20)
#define RASHPA_IOC_REGION_INFO	_IO(RASHPA_IOC_TYPE, 0x21)
#define RASHPA_IOC_PROFILE	_IO(RASHPA_IOC_TYPE, 0x22)
#define RASHPA_IOC_WINDOW	_IO(RASHPA_IOC_TYPE, 0x23)
#define RASHPA_IOC_MAP		_IO(RASHPA_IOC_TYPE, 0x24)
#define RASHPA_IOC_EVENTS	_IO(RASHPA_IOC_TYPE, 0x25)
#define RASHPA_IOC_QUIESCE	_IO(RASHPA_IOC_TYPE, 0x26)
#define RASHPA_IOC_RESET	_IO(RASHPA_IOC_TYPE, 0x27)
/* map fd */
#define RASHPA_IOC_PROGRAM	_IO(RASHPA_IOC_TYPE, 0x30)
/* channel fd */
#define RASHPA_IOC_SOURCE_ADD	_IO(RASHPA_IOC_TYPE, 0x40)
#define RASHPA_IOC_SOURCE_DEL	_IO(RASHPA_IOC_TYPE, 0x41)
#define RASHPA_IOC_EVENTFD	_IO(RASHPA_IOC_TYPE, 0x42)
#define RASHPA_IOC_SIGNAL	_IO(RASHPA_IOC_TYPE, 0x43)

#endif /* _UAPI_LINUX_RASHPA_H */
