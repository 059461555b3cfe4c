/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * rashpa: detector data straight into host, GPU and FPGA memory.
 *
 * This header is the whole contract between the driver and user space.
 *
 * The calls of a usual program, by file:
 *   /dev/rashpa/memory: ALLOC; mmap() the dma-buf that it returns
 *   /dev/rashpa/fpgaN, with a profile: MAP_MAKE, CHANNEL_MAKE, and WINDOW_MAKE for registers
 *   map: PROGRAM writes its addresses to the table of the function
 *   channel: SOURCE_ADD, then read() or poll() while the hardware runs
 *   at the end: QUIESCE, close() the map, munmap(), REMOVE on /dev/rashpa/buffer/NAME
 */
#ifndef _UAPI_LINUX_RASHPA_H
#define _UAPI_LINUX_RASHPA_H

#include <linux/const.h>
#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: Rules of every ioctl
 *
 * Every argument is a pointer to a struct that begins with &struct rashpa_head. ``size`` is
 * sizeof(struct) as the caller was compiled with, so that structs can grow at the end. Numbers of
 * ioctls do not contain it. A call returns 0, or -1 and errno.
 *
 * - A ``size`` below the first published size fails with EINVAL. A tail that this kernel does not
 *   know fails with E2BIG unless all its bytes are zero.
 * - Undefined flags, reserved fields that are not zero, and values out of range fail with EINVAL.
 *   Known requests that this kernel or this memory does not support fail with EOPNOTSUPP.
 * - A call that waits may fail with EINTR when a signal arrives. Then it has done nothing.
 * - ENOTTY: the file does not support this ioctl. EFAULT: a pointer cannot be read or written.
 *   ENODEV: the device was removed. ENOMEM: no kernel memory. ENAMETOOLONG: a name without NUL.
 *   EBADF, EINVAL: a file descriptor is not open, or of the wrong kind. ENOENT: no object has this
 *   name, id or index. Lists of errors below omit these and those above, unless they mean more.
 * - The kernel writes fields named ``out_`` and ignores them on input. It never changes others.
 *   Zero is the default of every field except file descriptors. Later kernels may return flags,
 *   kinds and states that this header does not define.
 * - Pointers are passed as u64. An array has three fields: pointer ``xs``, number of elements
 *   ``n_xs``, and ``x_size``, the bytes of one element that the caller was compiled with. So
 *   elements can grow like structs, with the same errors. The kernel zeroes the parts of output
 *   elements that it does not know. Without elements it ignores pointer and size.
 * - A missing file descriptor is -1, so set it also in a zeroed struct. A field that is described
 *   with a flag or kind must be 0 without it. Output indices (NUMA node, BAR, N of fpgaN) are -1
 *   for none or not known. Ids (of sources, groups, maps) begin at 1. Ids of processes are 0 if the
 *   caller's namespace does not see them. A ``bdf`` is domain << 16 | bus << 8 | devfn.
 * - File descriptors are created close-on-exec. Texts end in NUL.
 * - Times have a suffix: ``_ns``, ``_us``, ``_ms``. Points in time are CLOCK_MONOTONIC. Lengths,
 *   sizes and offsets are bytes.
 * - Limits ``_MAX`` and ``_MIN`` may become more generous in later kernels. Sizes of arrays in
 *   structs do not change.
 * - The struct must be writable even without output fields; this is checked first. If it becomes
 *   unwritable during the call, EFAULT is returned at the end. Then a new fd and its object
 *   are gone, but objects with a name or an id (a named buffer, a source) exist and can be removed.
 * - The creator of an object that outlives the call is charged, see &enum rashpa_resource. EDQUOT
 *   comes with a sentence that names the limit.
 * - After an error, ``head.reason`` (if set) receives a sentence with the object, the reason and,
 *   if known, the remedy. A successful call leaves it as it is.
 */

#define RASHPA_IOC_TYPE		0xE7

#define RASHPA_NAME_SIZE		64	/* name of a buffer, with its NUL */
#define RASHPA_AREA_SIZE		64	/* name of a CMA area, with its NUL */
#define RASHPA_PROFILE_NAME_SIZE	32	/* name of a window or engine, with its NUL */
#define RASHPA_COMM_SIZE		16	/* name of a process, with its NUL */
#define RASHPA_REASON_SIZE		256	/* enough for every sentence */
#define RASHPA_BARS			6	/* BARs of a PCI function */

/**
 * struct rashpa_head - the beginning of every ioctl argument
 * @size: size of the whole struct in bytes, as the caller knows it
 * @flags: flags of the operation; every undefined bit must be zero
 * @reason: pointer to a buffer for a sentence on failure, or 0
 * @reason_size: size of that buffer in bytes; the sentence is cut to it and always ends in NUL
 * @__reserved: must be zero
 */
struct rashpa_head {
	__u32 size;
	__u32 flags;
	__aligned_u64 reason;
	__u32 reason_size;
	__u32 __reserved;
};

/** enum rashpa_backend - where a buffer's memory comes from */
enum rashpa_backend {
	RASHPA_BACKEND_AUTO = 0,	/* CMA if an administrator reserved an area, else contig */
	RASHPA_BACKEND_CMA = 1,		/* default CMA area (``cma=``); not INFO_REGISTRABLE */
	RASHPA_BACKEND_CONTIG = 2,	/* assembled at run time from free and movable memory */
	RASHPA_BACKEND_HUGE = 3,	/* reserved huge pages: &struct rashpa_alloc.memfd */
};

/** enum rashpa_cache - how the CPU caches a mapping */
enum rashpa_cache {
	RASHPA_CACHE_DEFAULT = 0,	/* cached for buffers, uncached for windows */
	RASHPA_CACHE_CACHED = 1,	/* write-back */
	RASHPA_CACHE_WC = 2,		/* write-combined */
	RASHPA_CACHE_UC = 3,		/* uncached */
};

/* ------------------------------------------------- /dev/rashpa/memory --- */

#define RASHPA_ALLOC_NODE	_BITUL(0)	/* take memory of NUMA node @node only */
#define RASHPA_ALLOC_EXCLUSIVE	_BITUL(1)	/* with @name: @out_fd is an exclusive lease */
#define RASHPA_ALLOC_MODE	_BITUL(2)	/* @mode is given */
#define RASHPA_ALLOC_LOCK	_BITUL(3)	/* lock memory, see below */

#define RASHPA_LOCK_SLOT	64	/* bytes of a slot of lock memory: a cache line */
#define RASHPA_LOCK_SLOTS_MAX	65536	/* slots of one lock memory */

/**
 * struct rashpa_alloc - RASHPA_IOC_ALLOC: make a buffer, contiguous and zeroed unless it is of HUGE
 * @head: flags: RASHPA_ALLOC_*
 * @length: bytes, > 0; rounded up to whole pages. With RASHPA_ALLOC_LOCK a multiple of
 *	RASHPA_LOCK_SLOT, RASHPA_LOCK_SLOTS_MAX of them at most
 * @alignment: alignment of the physical address in bytes, a power of two up to 1 GiB;
 *	0 for one page
 * @node: NUMA node, with RASHPA_ALLOC_NODE
 * @backend: enum rashpa_backend; with RASHPA_ALLOC_LOCK neither CMA nor HUGE
 * @cache: enum rashpa_cache, the same for every CPU mapping of it
 * @dma_bits: physical addresses fit into this number of bits, 24 to 64; 0 for any. For a function
 *	without an IOMMU: &struct rashpa_device_info.out_dma_bits
 * @name: NUL-terminated name; empty for an anonymous buffer, which lives as long
 *	as any fd, mapping, map or LOCK source of it. A named buffer lives until
 *	RASHPA_IOC_REMOVE and is at /dev/rashpa/buffer/NAME. Letters, digits, and
 *	``. _ -``; does not begin with a dot; all bytes after the NUL must be 0.
 * @mode: permission bits of the node, 0 to 0666, with RASHPA_ALLOC_MODE and a name
 * @out_fd: dma-buf of the buffer, for mmap() with MAP_SHARED, reading and writing
 * @out_length: the rounded length in bytes
 * @out_segments: physically contiguous pieces: 1, of HUGE at most one for each page
 * @out_backend: the backend that served, enum rashpa_backend
 * @out_node: the NUMA node of the memory, its first page
 * @memfd: with HUGE, a memfd of huge pages, see below; else 0, not -1
 *
 * The file /dev/rashpa/buffer/NAME says which users may use a named buffer: it belongs to the user
 * that made it (file system user id) and to the group of /dev/rashpa/memory, with the mode of that
 * node unless RASHPA_ALLOC_MODE gives another; chown() and chmod() change that.
 *
 * @out_fd, and each open of /dev/rashpa/buffer/NAME, is a lease of a named buffer, shared unless
 * RASHPA_ALLOC_EXCLUSIVE or O_EXCL is given. It ends with its last duplicate, mapping, map, LOCK
 * source and dma-buf of RASHPA_IOC_EXPORT. While an exclusive lease exists, open() fails with
 * EBUSY; so does O_EXCL while any lease exists. O_EXCL needs a node opened for writing (EACCES).
 * open(NAME, 3) (O_ACCMODE; it needs permission to read and write) takes no lease: it is for
 * RASHPA_IOC_REMOVE and RASHPA_IOC_INFO, which names the process with an exclusive lease.
 *
 * Lock memory (RASHPA_ALLOC_LOCK) has words that hardware writes and software waits for, see
 * RASHPA_SOURCE_LOCK. It is cached, and never of CMA, so that a GPU runtime can register it. A map
 * of it gives a function the bus address of slot 0.
 *
 * If the machine's DMA is not coherent with CPU caches (x86's is), bracket CPU accesses with
 * DMA_BUF_IOCTL_SYNC on the dma-buf. mmap() of a range with a damaged page fails with EHWPOISON.
 *
 * With HUGE, the memory is that of @memfd: memfd_create() with MFD_HUGETLB, of exactly @length
 * bytes, all of them allocated by fallocate(), and with the seals F_SEAL_SHRINK, F_SEAL_GROW and
 * F_SEAL_SEAL. @node, @alignment and @dma_bits are conditions for each of its pages. Its contents
 * stay. While the buffer exists, the kernel refuses holes in @memfd. CPU mappings begin and end at
 * whole huge pages (EINVAL). The pages go back to their pool after the last user of buffer and
 * memfd.
 *
 * Errors: EPERM (the node was opened read-only), EEXIST (name), ENOMEM (see RASHPA_IOC_QUERY),
 * ENOSPC (no minor number is free), EOPNOTSUPP (no such backend or cache mode here), EDQUOT (module
 * parameter ``limit_mib`` for all or ``user_limit_mib`` for one user). With HUGE also EACCES
 * (@memfd is not open for reading and writing), EBUSY (another buffer has it).
 */
struct rashpa_alloc {
	struct rashpa_head head;
	__aligned_u64 length;
	__aligned_u64 alignment;
	__u32 node;
	__u32 backend;
	__u32 cache;
	__u32 dma_bits;
	char name[RASHPA_NAME_SIZE];
	__u32 mode;
	__s32 out_fd;
	__aligned_u64 out_length;
	__u32 out_segments;
	__u32 out_backend;
	__s32 out_node;
	__s32 memfd;
};

/**
 * struct rashpa_pin - RASHPA_IOC_PIN: user memory as a dma-buf
 * @head: no flags
 * @address: first byte in the caller's address space, a multiple of the page size
 * @length: bytes, a multiple of the page size, > 0
 * @out_fd: dma-buf fd; cannot be mmapped: it is mapped already where it is
 * @out_segments: physically contiguous pieces
 *
 * Anonymous, shared and huge pages, across mappings, all writable. They stay where they are until
 * the dma-buf ends, and are charged as RASHPA_RESOURCE_MEMORY and to RLIMIT_MEMLOCK: part of a huge
 * page as the whole page.
 *
 * Errors: EPERM (the node was opened read-only), EFAULT (not mapped, not writable, or cannot be
 * pinned: device memory, CMA buffers, files that need write-back), ENOMEM (RLIMIT_MEMLOCK), EDQUOT
 * (as RASHPA_IOC_ALLOC).
 */
struct rashpa_pin {
	struct rashpa_head head;
	__aligned_u64 address;
	__aligned_u64 length;
	__s32 out_fd;
	__u32 out_segments;
};

#define RASHPA_QUERY_NODE	_BITUL(0)	/* answer for NUMA node @node only */

/** struct rashpa_query - RASHPA_IOC_QUERY: what would fit */
struct rashpa_query {
	struct rashpa_head head;		/* flags: RASHPA_QUERY_NODE */
	__u32 node;				/* NUMA node, with RASHPA_QUERY_NODE */
	__u32 backend;				/* enum rashpa_backend */
	__u32 out_backend;			/* that of the answer: with AUTO what ALLOC takes */
	__u32 __reserved;			/* must be zero */
	__aligned_u64 out_total;		/* bytes that the backend manages */
	__aligned_u64 out_free;			/* bytes free now */
	/*
	 * Longest run that looks free or movable. Another allocation, a page that cannot be moved
	 * after all, or an area of CMA can make it less. 0 for CMA, whose layout is not known
	 */
	__aligned_u64 out_largest;
	char out_area[RASHPA_AREA_SIZE];	/* name of the CMA area, empty for contig */
};

/** enum rashpa_kind - what a memory is */
enum rashpa_kind {
	RASHPA_KIND_BUFFER = 1,		/* a buffer of this driver */
	RASHPA_KIND_WINDOW = 2,		/* a window of a PCI BAR */
	RASHPA_KIND_FOREIGN = 3,	/* another driver's dma-buf */
	RASHPA_KIND_PINNED = 4,		/* memory of a process, see RASHPA_IOC_PIN */
	RASHPA_KIND_LOCK = 5,		/* lock memory, see RASHPA_ALLOC_LOCK */
};

#define RASHPA_INFO_REGISTRABLE	_BITUL(0)	/* RDMA, O_DIRECT, PIN accept a CPU mapping */
#define RASHPA_INFO_EXCLUSIVE	_BITUL(1)	/* its lease is exclusive */
#define RASHPA_INFO_REVOKED	_BITUL(2)	/* window: its function is gone or being reset */

/** struct rashpa_info - RASHPA_IOC_INFO: describes a memory */
struct rashpa_info {
	struct rashpa_head head;		/* no flags */
	__s32 fd;				/* memory: any dma-buf; buffer's node: -1 */
	__u32 out_kind;				/* enum rashpa_kind */
	__aligned_u64 out_length;		/* bytes */
	__u32 out_backend;			/* enum rashpa_backend, 0 if not a buffer */
	__u32 out_cache;			/* enum rashpa_cache, 0 if foreign */
	__s32 out_node;				/* NUMA node, -1 if not known */
	__u32 out_segments;			/* physically contiguous pieces, 0 if not known */
	__u32 out_importers;			/* devices that map it now; 0 if foreign */
	__u32 out_mappings;			/* CPU mappings now; 0 if foreign */
	char out_name[RASHPA_NAME_SIZE];	/* empty if it has none */
	__u32 out_flags;			/* RASHPA_INFO_* */
	__u32 out_leases;			/* leases now, see &struct rashpa_alloc */
	__u32 out_lease_uid;			/* with EXCLUSIVE: user of that lease */
	__s32 out_lease_pid;			/* and process that opened it */
	__u32 out_uid;				/* user who is charged with a buffer */
	__s32 out_pid;				/* process that made it */
	__s32 out_bar;				/* BAR of a window, -1 for other memory */
	__u32 __reserved;			/* zero */
	__aligned_u64 out_bdf;			/* PCI function of a window */
	__aligned_u64 out_page_size;		/* its page size: largest entry of a CPU mapping */
};

/* --- holders and limits --- */

/**
 * enum rashpa_resource - what programs hold, and have limits of
 * @RASHPA_RESOURCE_MEMORY: bytes: buffers, pinned memory, queues of channels, tables of maps and
 *	those that exporters make for them
 * @RASHPA_RESOURCE_NAMES: named buffers
 * @RASHPA_RESOURCE_WINDOWS: windows
 * @RASHPA_RESOURCE_MAPS: maps
 * @RASHPA_RESOURCE_CHANNELS: event channels
 * @RASHPA_RESOURCE_SOURCES: sources and groups of all channels
 * @RASHPA_RESOURCE_TIMERS: thousandths of a CPU, see &struct rashpa_source_add.budget
 *
 * All of it counts for the user that made it, until it ends, whatever process has it by then. All
 * ids of a user namespace that an ordinary user has made count as that user. Each resource has
 * a limit for all and one for each user, module parameters; with CAP_SYS_RESOURCE only the first
 * counts, and an eighth of that is for these alone.
 */
enum rashpa_resource {
	RASHPA_RESOURCE_MEMORY = 1,
	RASHPA_RESOURCE_NAMES = 2,
	RASHPA_RESOURCE_WINDOWS = 3,
	RASHPA_RESOURCE_MAPS = 4,
	RASHPA_RESOURCE_CHANNELS = 5,
	RASHPA_RESOURCE_SOURCES = 6,
	RASHPA_RESOURCE_TIMERS = 7,
};

#define RASHPA_HOLDING_ORPHAN		_BITUL(0)	/* its process has ended */
#define RASHPA_HOLDING_PROGRAMMED	_BITUL(1)	/* the function has its addresses */
#define RASHPA_HOLDING_TOLD		_BITUL(2)	/* a process mapped its table */

/** struct rashpa_holding - an object that a user is charged with */
struct rashpa_holding {
	__u32 resource;			/* enum rashpa_resource */
	__s32 device;			/* N of its /dev/rashpa/fpgaN */
	__u32 uid;			/* user that is charged */
	__s32 pid;			/* process that made it; with ORPHAN perhaps another now */
	__aligned_u64 serial;		/* unique for ever, greater than those of older objects */
	__aligned_u64 amount;		/* 1; thousandths of a CPU for TIMERS; 0 for MEMORY */
	__aligned_u64 memory;		/* bytes of any resource that count as MEMORY */
	__aligned_u64 since_ns;		/* when it was made */
	__u32 id;			/* id of a map; index of a source (vector, map); else 0 */
	__u32 flags;			/* RASHPA_HOLDING_* */
	char comm[RASHPA_COMM_SIZE];	/* name of the process then */
	/* name of the buffer that it is or uses, or of a foreign memory's exporter; or empty */
	char name[RASHPA_NAME_SIZE];
};

#define RASHPA_HOLDINGS_MAX	1024	/* that one call can return */

/** struct rashpa_list - RASHPA_IOC_LIST: objects and the users that are charged */
struct rashpa_list {
	struct rashpa_head head;	/* no flags */
	/* on /dev/rashpa/memory of all functions and none, on /dev/rashpa/fpgaN of that function */
	__aligned_u64 holdings;		/* pointer to room for &struct rashpa_holding */
	__u32 n_holdings;		/* number of them, 0 to RASHPA_HOLDINGS_MAX */
	__u32 holding_size;		/* bytes of one */
	/* only what has a greater serial, as that of the last one of an earlier call; 0 for all */
	__aligned_u64 after;
	__u32 out_holdings;		/* number of elements stored, oldest first */
	__u32 out_count;		/* objects after @after, including those that were stored */
};

/** struct rashpa_limit - RASHPA_IOC_LIMIT: how much of a resource there may be, and is */
struct rashpa_limit {
	struct rashpa_head head;	/* no flags */
	__u32 resource;			/* enum rashpa_resource */
	__u32 __reserved;		/* must be zero */
	__aligned_u64 out_used;		/* held by all: bytes, or as rashpa_holding.amount */
	__aligned_u64 out_limit;	/* limit of @out_used, 0 for none */
	__aligned_u64 out_shared_used;	/* the part that is held without CAP_SYS_RESOURCE */
	/*
	 * Limit of @out_used for callers without CAP_SYS_RESOURCE: an eighth below @out_limit, so
	 * nothing of 1. MEMORY without a limit: an eighth below the RAM, for @out_shared_used
	 */
	__aligned_u64 out_shared_limit;
	__aligned_u64 out_user_used;	/* held by the user who asks */
	__aligned_u64 out_user_limit;	/* limit of that, 0 for none; not for CAP_SYS_RESOURCE */
};

/* --- words that programs write --- */

/**
 * struct rashpa_look - RASHPA_IOC_LOOK: check the watched words of a memory now
 * @head: no flags
 * @fd: dma-buf of host memory of this driver, open for writing: a buffer, pinned or lock memory
 * @out_events: number of events that this made
 *
 * This is for producers that are programs, e.g. the thread that takes the completions of a network
 * card: write the payload, store the words (release), then call this once for all words. The call
 * checks the word of each source with RASHPA_SOURCE_LOOK in this memory, in all channels and
 * through all its dma-bufs. The kernel wakes waiters and signals eventfds later, so that they take
 * no time of the producer. Calls for the same memory wait for each other.
 *
 * Errors: EXDEV (foreign memory, or a window), EACCES (not open for writing).
 */
struct rashpa_look {
	struct rashpa_head head;
	__s32 fd;
	__u32 out_events;
};

/* -------------------------------------------- /dev/rashpa/buffer/NAME --- */

#define RASHPA_ROLE_PRODUCER	_BITUL(0)	/* writes the buffer, or has a device write it */
#define RASHPA_ROLE_CONSUMER	_BITUL(1)	/* decides what of it may be overwritten */
#define RASHPA_ROLES		2		/* number of roles: bit i is element i of arrays */

/**
 * struct rashpa_role - RASHPA_IOC_ROLE: be the only one of a kind at a named buffer
 * @head: no flags
 * @take: roles to take, RASHPA_ROLE_*: all of them or none
 * @drop: roles to give back before; those that this file has not do not matter
 * @out_mine: roles that this file has now
 * @out_held: roles that anybody has now
 * @out_uid: user that has a role, by role; 0 for none
 * @out_pid: process that opened the node, by role
 *
 * The kernel does not act on roles. By them, programs that agree on the contents of a buffer find
 * each other, and notice the end of a process. A role belongs to the open file, and ends when its
 * last descriptor is closed; dma-bufs and maps do not keep it. With neither @take nor @drop it is
 * a question, which each open node may ask.
 *
 * Errors: EACCES (@take, and the node is not open for writing), EBUSY (another file has one of
 * them: the sentence names the process).
 */
struct rashpa_role {
	struct rashpa_head head;
	__u32 take;
	__u32 drop;
	__u32 out_mine;
	__u32 out_held;
	__u32 out_uid[RASHPA_ROLES];
	__s32 out_pid[RASHPA_ROLES];
};

/** struct rashpa_export - RASHPA_IOC_EXPORT: the dma-buf of the opened buffer */
struct rashpa_export {
	struct rashpa_head head;	/* no flags */
	/*
	 * read-only if the node was opened read-only. EACCES: the node is open only for writing,
	 * and a dma-buf can be read
	 */
	__s32 out_fd;
	__u32 __reserved;		/* must be zero */
};

/**
 * struct rashpa_remove - RASHPA_IOC_REMOVE: take the name of the opened buffer away
 * @head: no flags
 *
 * On an fd of /dev/rashpa/buffer/NAME, not of the dma-buf. The memory is given back with its last
 * fd. First unmap the buffer and end its maps; open leases do not matter.
 *
 * Errors: EPERM (neither owner of the node nor CAP_FOWNER), ENOENT (the name is gone already),
 * EBUSY (a device or a process has it mapped).
 */
struct rashpa_remove {
	struct rashpa_head head;
};

/* --------------------------------------------------- /dev/rashpa/fpgaN --- */

/*
 * All calls except DEVICE_INFO, REGION_INFO, ENGINE_INFO and LIST fail with EPERM if the node was
 * opened read-only. Lists of errors omit that.
 */

/** enum rashpa_state - state of a bound function */
enum rashpa_state {
	RASHPA_STATE_READY = 0,	/* the function can do DMA */
	/* not idle in time, or does not answer: no bus mastering until RESET or the next bind */
	RASHPA_STATE_STUCK = 1,
};

#define RASHPA_DEVICE_IOMMU	_BITUL(0)	/* an IOMMU translates its addresses */
#define RASHPA_DEVICE_PROFILE	_BITUL(1)	/* a profile was applied */
#define RASHPA_DEVICE_DISCLOSE	_BITUL(2)	/* RASHPA_PROFILE_DISCLOSE is set */
#define RASHPA_DEVICE_MASTER	_BITUL(3)	/* bus mastering is on */
#define RASHPA_DEVICE_FETCH	_BITUL(4)	/* see &struct rashpa_profile_table.fetch */

/** struct rashpa_device_info - RASHPA_IOC_DEVICE_INFO: identity and state */
struct rashpa_device_info {
	struct rashpa_head head;	/* no flags */
	__u32 out_vendor;		/* PCI vendor id */
	__u32 out_device;		/* PCI device id */
	__u32 out_subvendor;		/* PCI subsystem vendor id */
	__u32 out_subdevice;		/* PCI subsystem id */
	__u32 out_domain;		/* PCI domain */
	__u32 out_bus;			/* PCI bus */
	__u32 out_devfn;		/* PCI device << 3 | function */
	__u32 out_vectors;		/* interrupt vectors that can be event sources */
	__s32 out_node;			/* NUMA node, -1 if not known */
	__u32 out_dma_bits;		/* width of the DMA mask */
	__u32 out_flags;		/* RASHPA_DEVICE_* */
	__u32 out_state;		/* enum rashpa_state */
	__u32 out_maps;			/* maps that exist now */
	__u32 out_windows;		/* windows that exist now */
	__aligned_u64 out_quiesces;	/* stops of the whole function since the bind */
	__aligned_u64 out_interrupts;	/* interrupts of all vectors since the bind */
	__u32 out_engines;		/* engines of the profile, see RASHPA_IOC_ENGINE_INFO */
	__u32 __reserved;		/* zero */
	__aligned_u64 out_engine_stops;	/* stops of single engines since the profile was applied */
};

#define RASHPA_REGION_MEMORY	_BITUL(0)	/* memory BAR, which can have windows */
#define RASHPA_REGION_PREFETCH	_BITUL(1)	/* prefetchable BAR: allows write-combining */
#define RASHPA_REGION_64BIT	_BITUL(2)	/* BAR with 64-bit addresses */

/** struct rashpa_region_info - RASHPA_IOC_REGION_INFO: describe a BAR */
struct rashpa_region_info {
	struct rashpa_head head;	/* no flags */
	__u32 bar;			/* BAR number, 0 to 5 */
	__u32 out_flags;		/* RASHPA_REGION_*; 0 if the BAR does not exist */
	__aligned_u64 out_length;	/* length in bytes, 0 if the BAR does not exist */
};

/* --- device profile --- */

#define RASHPA_PROFILE_WINDOWS_MAX	64		/* windows of a profile */
#define RASHPA_PROFILE_STEPS_MAX	32		/* steps of a quiesce sequence */
#define RASHPA_QUIESCE_US_MAX		10000000	/* microseconds of a quiesce sequence */
#define RASHPA_PROFILE_ENGINES_MAX	64		/* engines of a profile */
#define RASHPA_ENGINE_STEPS_MAX		8		/* the same of an engine */

#define RASHPA_PWINDOW_USER	_BITUL(0)	/* CAP_SYS_RAWIO is not needed for it */

/** struct rashpa_profile_window - window that the administrator declares */
struct rashpa_profile_window {
	char name[RASHPA_PROFILE_NAME_SIZE];	/* not empty, unique in the profile */
	__u32 bar;		/* BAR number, 0 to 5 */
	__u32 flags;		/* RASHPA_PWINDOW_* */
	__aligned_u64 offset;	/* offset in the BAR, a multiple of 4096 */
	__aligned_u64 length;	/* length, a multiple of 4096, > 0 */
	__u32 cache;		/* enum rashpa_cache */
	__u32 __reserved;
};

/** enum rashpa_step_op - operation of a quiesce step */
enum rashpa_step_op {
	/* write the masked bits of @value, keep the others; a mask of all ones: without reading */
	RASHPA_STEP_WRITE = 1,
	/* wait until (register & mask) == value; all ones: no answer, unless they are @value */
	RASHPA_STEP_WAIT = 2,
};

#define RASHPA_STEP_RESET	_BITUL(0)	/* WAIT, not engines: a time-out ends in a reset */

/** struct rashpa_profile_step - step of a quiesce sequence */
struct rashpa_profile_step {
	__u32 op;		/* enum rashpa_step_op */
	__u32 bar;		/* BAR number, 0 to 5 */
	__aligned_u64 offset;	/* offset of the 32-bit register in the BAR, a multiple of 4 */
	__u32 value;
	__u32 mask;
	__u32 timeout_us;	/* WAIT: time limit, 1 to RASHPA_QUIESCE_US_MAX; WRITE: 0 */
	__u32 flags;		/* RASHPA_STEP_RESET, or 0 */
};

#define RASHPA_LAYOUT_UPPER_FIRST	_BITUL(0)	/* 64-bit fields: upper word first */
#define RASHPA_LAYOUT_WRITE_ONLY	_BITUL(1)	/* entries cannot be read, see below */

/**
 * struct rashpa_layout - layout of an entry of an address table
 * @stride: bytes from entry to entry, a multiple of 4, up to 4096
 * @address_offset: offset of the address field in the entry in bytes
 * @address_bits: width of the address field, 32 or 64
 * @length_offset: offset of the length field in bytes
 * @length_bits: width of the length field, 0 (no such field), 32 or 64
 * @control_offset: offset of the control field in bytes
 * @control_bits: width of the control field, 0 (no such field) or 32
 * @control_set: value of the control field of a valid entry, written last
 * @control_clear: value of the control field of an invalid entry, written first
 * @flags: RASHPA_LAYOUT_*
 * @segment_size: bytes that an entry without a length covers, a power of two, at least 4096; 0 with
 *	a length field
 * @sum_offset: offset of the sum field in bytes
 * @sum_bits: width of the sum field, 0 (no such field), 32 or 64
 *
 * Fields are little-endian, aligned to 4, inside the stride, and do not overlap. A control or
 * length field is required, because it marks invalid entries. @control_set and @control_clear must
 * differ. Without a control field, length 0 makes an entry invalid.
 *
 * Without a length field, the kernel splits maps into segments of exactly @segment_size bytes.
 * RASHPA_IOC_MAP_MAKE fails with EINVAL if a rest would be shorter.
 *
 * The sum field holds the length of all earlier segments of the map, 0 for the first. A function
 * can use it to find an offset in a map. If entries are write-only, the kernel reads the register
 * of the last quiesce step after writes, so the profile must have a quiesce sequence.
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
	__u32 flags;
	__aligned_u64 segment_size;
	__u32 sum_offset;
	__u32 sum_bits;
};

#define RASHPA_DESCRIPTORS_MAX		16777216	/* descriptors of a ring */
#define RASHPA_DESCRIPTOR_SIZE_MAX	256		/* bytes of a descriptor */
#define RASHPA_FETCH_FIELDS_MAX		32		/* fields of a descriptor */
#define RASHPA_FETCH_REGISTERS_MAX	16		/* register fields of a ring */

/** enum rashpa_fetch_kind - content of a field; D: not of a register, unless PUSH is set */
enum rashpa_fetch_kind {
	RASHPA_FETCH_CONSTANT = 1,	/* @value of the field */
	RASHPA_FETCH_ADDRESS = 2,	/* bus address of the segment; register: of descriptor 0 */
	RASHPA_FETCH_LENGTH = 3,	/* bytes of the segment; register: of all descriptors */
	RASHPA_FETCH_SUM = 4,		/* D: bytes of all earlier segments */
	RASHPA_FETCH_NEXT = 5,		/* bus address of the next one; last: 0, or see CLOSED */
	RASHPA_FETCH_INDEX = 6,		/* D: number of the descriptor, from 0 */
	RASHPA_FETCH_COUNT = 7,		/* descriptors of the ring */
	RASHPA_FETCH_END = 8,		/* D: bus address after the last byte of the segment */
};

#define RASHPA_FIELD_MINUS_ONE	_BITUL(0)	/* LENGTH, COUNT: store the value minus 1 */
#define RASHPA_FIELD_FIRST	_BITUL(1)	/* CONSTANT: 0 in all but the first */
#define RASHPA_FIELD_LAST	_BITUL(2)	/* CONSTANT: 0 in all but the last */
#define RASHPA_FIELD_NOT_LAST	_BITUL(3)	/* CONSTANT: 0 in the last */
#define RASHPA_FIELD_KEEP	_BITUL(4)	/* register: clearing an entry skips it */
#define RASHPA_FIELD_ENTRY	_BITUL(5)	/* register: a bit for each entry, see below */

/**
 * struct rashpa_fetch_field - bit field of a descriptor or register
 * @kind: enum rashpa_fetch_kind
 * @flags: RASHPA_FIELD_*
 * @offset: offset of the word in the descriptor or table entry, a multiple of its size in bytes
 * @bits: width of the little-endian word, 32 or 64; it is written as a whole
 * @shift: lowest bit of the field in the word
 * @width: width of the field in bits
 * @unit: power of two by which the value is divided, 0 to 63
 * @__reserved: must be zero
 * @value: value of a CONSTANT; must be 0 for other kinds
 * @clear: value of the whole register without a ring, in the first field of the word; must be 0
 *	in other fields and in descriptors
 *
 * The stored value is ((value >> @unit) - (1 with MINUS_ONE)) << @shift. Several fields may hold
 * parts of one value: an address in two words has units 0 and 32. A value with MINUS_ONE cannot be
 * split. PROGRAM fails with EOVERFLOW if bits would be lost: an address is not a multiple of the
 * unit, or a length is wider than its field.
 *
 * ENTRY is for a register with a bit for each table entry, at @shift plus the number of the entry,
 * and for CONSTANT 1. Its offset begins at the table. The other bits are read and stay.
 */
struct rashpa_fetch_field {
	__u32 kind;
	__u32 flags;
	__u32 offset;
	__u32 bits;
	__u32 shift;
	__u32 width;
	__u32 unit;
	__u32 __reserved;
	__aligned_u64 value;
	__aligned_u64 clear;
};

#define RASHPA_FETCH_CLOSED	_BITUL(0)	/* NEXT of the last is the first */
#define RASHPA_FETCH_PUSH	_BITUL(1)	/* no ring: registers take each segment */
#define RASHPA_FETCH_SPREAD	_BITUL(2)	/* with PUSH: each segment has its own entry */

/**
 * struct rashpa_fetch - format of the descriptor rings that a function fetches from host memory
 * @stride: bytes from the registers of one ring (table entry) to those of the next one, a
 *	multiple of 4, up to 4096
 * @flags: RASHPA_FETCH_*
 * @descriptor_size: bytes of a descriptor, a multiple of 4, up to RASHPA_DESCRIPTOR_SIZE_MAX
 * @max_descriptors: largest number of descriptors of a ring, 0 for RASHPA_DESCRIPTORS_MAX
 * @segment_size: bytes that a descriptor without LENGTH covers, a power of two, at least
 *	4096; must be 0 with LENGTH
 * @fields: pointer to @n_fields of &struct rashpa_fetch_field, the fields of a descriptor
 * @registers: pointer to @n_registers of &struct rashpa_fetch_field, the register fields that
 *	describe a ring, in write order; adjacent fields of one word are written together
 * @n_fields: number of fields, 1 to RASHPA_FETCH_FIELDS_MAX
 * @field_size: bytes of an element of @fields
 * @n_registers: number of register fields, 1 to RASHPA_FETCH_REGISTERS_MAX
 * @register_size: bytes of an element of @registers
 * @entries: number of table entries, 0 for as many as the length of the table holds. Registers may
 *	be beyond the stride, as those of the last entry are in the table
 * @__reserved: must be zero
 *
 * ADDRESS must be in @fields and in @registers. Fields of a descriptor do not overlap. Other bits
 * are 0.
 *
 * With PUSH, @fields and @descriptor_size are 0. The words of @registers are written once for each
 * segment, @max_descriptors segments at most. A word of constants with FIRST, LAST or NOT_LAST is
 * written for these segments only. With SPREAD, segment i has entry first + i, and all its words.
 *
 * Descriptors are stored without gaps. With NEXT they may be in several pieces of memory that hold
 * whole descriptors. Without NEXT a ring is one piece, whose allocation may fail for large rings
 * without an IOMMU.
 */
struct rashpa_fetch {
	__u32 stride;
	__u32 flags;
	__u32 descriptor_size;
	__u32 max_descriptors;
	__aligned_u64 segment_size;
	__aligned_u64 fields;
	__aligned_u64 registers;
	__u32 n_fields;
	__u32 field_size;
	__u32 n_registers;
	__u32 register_size;
	__u32 entries;
	__u32 __reserved;
};

/**
 * struct rashpa_profile_table - address table of the function
 * @bar: BAR of the table, 0 to 5
 * @__reserved: must be zero
 * @offset: offset of the table in the BAR, a multiple of 4
 * @length: bytes of the whole table, > 0 and below 4 GiB
 * @layout: pointer to the &struct rashpa_layout of an entry; 0 with @fetch
 * @fetch: pointer to a &struct rashpa_fetch, or 0
 * @layout_size: bytes of the layout; 0 with @fetch
 * @fetch_size: bytes of the &struct rashpa_fetch; 0 without @fetch
 *
 * With @fetch, an entry of the table holds the place of a ring of descriptors instead of an
 * address. Rings are in host memory that no process can map. A map takes one entry, unless SPREAD.
 *
 * Windows with RASHPA_PWINDOW_USER must not overlap the table: a process that can write to it can
 * make the function write anywhere. Segments of maps are split to fit the entries.
 */
struct rashpa_profile_table {
	__u32 bar;
	__u32 __reserved;
	__aligned_u64 offset;
	__aligned_u64 length;
	__aligned_u64 layout;
	__aligned_u64 fetch;
	__u32 layout_size;
	__u32 fetch_size;
};

#define RASHPA_PENGINE_OPTIONAL	_BITUL(0)	/* it may be absent: its bounds read 0 */

/**
 * struct rashpa_profile_engine - engine: a data transfer process that can be stopped alone
 * @name: NUL-terminated name, not empty, unique among the engines
 * @flags: RASHPA_PENGINE_*
 * @bar: BAR of the bounds, 0 to 5
 * @first_offset: offset of the 32-bit register with the first table entry that the engine may
 *	use, in bytes, a multiple of 4
 * @limit_offset: offset of the register with the last such entry + 1, in bytes, a multiple of 4
 * @first: first table entry of the engine; must be 0 without entries
 * @count: number of table entries of the engine; 0 denies the engine all entries
 * @steps: pointer to @n_steps of &struct rashpa_profile_step, the quiesce sequence of the engine
 * @n_steps: number of steps, 1 to RASHPA_ENGINE_STEPS_MAX; 0 only without entries
 * @step_size: bytes of an element of @steps
 *
 * The kernel writes both bounds when all engines are stopped (profile, reset), and reads them back
 * before it relies on them. No window of the profile may contain bounds, and no window with
 * RASHPA_PWINDOW_USER a register of @steps. So users can neither give an engine the entries of
 * another one, nor make it look stopped.
 *
 * The end of a map stops only the engines in whose entries the map was programmed. The whole
 * function is stopped if a process has mapped the table, or the map was programmed outside the
 * entries of one engine. So it is if an engine does not stop in time, or bounds have changed.
 *
 * Every part of the function that reads the table must be an engine of the profile, with @count 0
 * if it has no entries.
 */
struct rashpa_profile_engine {
	char name[RASHPA_PROFILE_NAME_SIZE];
	__u32 flags;
	__u32 bar;
	__aligned_u64 first_offset;
	__aligned_u64 limit_offset;
	__u32 first;
	__u32 count;
	__aligned_u64 steps;
	__u32 n_steps;
	__u32 step_size;
};

#define RASHPA_PROFILE_DISCLOSE	_BITUL(0)	/* no CAP_SYS_RAWIO to see bus addresses */
#define RASHPA_PROFILE_NO_RESET	_BITUL(1)	/* for hardware that a reset breaks */

/**
 * struct rashpa_profile_set - RASHPA_IOC_PROFILE_SET: describe the hardware of a function
 * @head: flags: RASHPA_PROFILE_DISCLOSE, RASHPA_PROFILE_NO_RESET
 * @windows: pointer to @n_windows of &struct rashpa_profile_window
 * @steps: pointer to @n_steps of &struct rashpa_profile_step, the quiesce sequence
 * @table: pointer to the &struct rashpa_profile_table, or 0
 * @n_windows: number of windows, 0 to RASHPA_PROFILE_WINDOWS_MAX
 * @window_size: bytes of an element of @windows
 * @n_steps: number of steps, 0 to RASHPA_PROFILE_STEPS_MAX; without steps, quiescing turns bus
 *	mastering off
 * @step_size: bytes of an element of @steps
 * @table_size: bytes of @table; 0 without a table
 * @engine_size: bytes of an element of @engines
 * @dma_bits: width of the DMA mask, 24 to 64; 0 for 32, the default without a profile
 * @quiesce_us: time limit of the whole quiesce sequence, up to RASHPA_QUIESCE_US_MAX microseconds;
 *	0 for 1 s. Calls can take longer: the end of a map also clears entries, and turning bus
 *	mastering off waits up to 700 ms for pending transactions
 * @max_segment: limit of segments of all maps, see &struct rashpa_map_make
 * @boundary: the same
 * @alignment: the same
 * @engines: pointer to @n_engines of &struct rashpa_profile_engine
 * @n_engines: number of engines, 0 to RASHPA_PROFILE_ENGINES_MAX; engines require a table and a
 *	quiesce sequence of the whole function
 * @__reserved: must be zero
 *
 * The last step must be a WAIT for at least one bit: only its answer proves that the function has
 * stopped and its writes have arrived.
 *
 * A previous owner may have left the function running. So this call resets the function, if it
 * supports a function-level reset and RASHPA_PROFILE_NO_RESET is not set. Then it runs the quiesce
 * sequence, clears the whole table and writes the bounds of engines. Bus mastering is off
 * meanwhile. If one of these steps fails, the call returns ETIMEDOUT or EIO, the profile is in
 * force, and the function is stuck. A function without a profile is reset before its first map or
 * channel.
 *
 * The new profile replaces the old one completely. After any other error nothing has changed.
 *
 * Errors: EPERM (no CAP_SYS_ADMIN; no steps for a function with channels and no CAP_SYS_RAWIO; or
 * the kernel is locked down and no IOMMU limits the function to its maps), EBUSY (maps or windows
 * exist), EOPNOTSUPP (a cached window, or an unsupported DMA mask), ERANGE (a window, step or table
 * outside its BAR), EIO (the function does not answer, does not recover from its reset, or does not
 * keep the bounds of an engine), ETIMEDOUT (the function does not become idle).
 */
struct rashpa_profile_set {
	struct rashpa_head head;
	__aligned_u64 windows;
	__aligned_u64 steps;
	__aligned_u64 table;
	__u32 n_windows;
	__u32 window_size;
	__u32 n_steps;
	__u32 step_size;
	__u32 table_size;
	__u32 engine_size;
	__u32 dma_bits;
	__u32 quiesce_us;
	__aligned_u64 max_segment;
	__aligned_u64 boundary;
	__aligned_u64 alignment;
	__aligned_u64 engines;
	__u32 n_engines;
	__u32 __reserved;
};

#define RASHPA_ENGINE_ABSENT	_BITUL(0)	/* RASHPA_PENGINE_OPTIONAL and absent */

/** struct rashpa_engine_info - RASHPA_IOC_ENGINE_INFO: describe an engine of the profile */
struct rashpa_engine_info {
	struct rashpa_head head;	/* no flags */
	__u32 index;			/* in the profile, below rashpa_device_info.out_engines */
	__u32 out_flags;		/* RASHPA_ENGINE_* */
	char out_name[RASHPA_PROFILE_NAME_SIZE];	/* name in the profile */
	__u32 out_first;		/* first table entry, see &struct rashpa_program.first */
	__u32 out_count;		/* number of table entries */
	__u32 out_maps;			/* existing maps that are or were programmed for it */
	__u32 __reserved;
	__aligned_u64 out_stops;	/* stops of this engine alone */
	__aligned_u64 out_failures;	/* failed ones, each followed by a stop of the function */
};

#define RASHPA_WINDOW_BLANK	_BITUL(0)	/* no SIGBUS after a removal, see below */

/**
 * struct rashpa_window_make - RASHPA_IOC_WINDOW_MAKE: create a dma-buf of a range of a BAR
 * @head: flags: RASHPA_WINDOW_BLANK
 * @bar: BAR number, 0 to 5
 * @cache: enum rashpa_cache. Without CAP_SYS_RAWIO it must be 0 or the mode of the profile's window
 *	that contains the range
 * @offset: offset in the BAR in bytes, a multiple of the page size
 * @length: length in bytes, a multiple of the page size, > 0
 * @name: name of a window in the profile (then the four fields above are 0), or empty
 * @out_length: length in bytes
 * @out_fd: dma-buf fd, for mmap and maps by other functions
 * @__reserved: must be zero
 *
 * After a removal of the function CPU accesses raise SIGBUS, which libraries cannot handle. With
 * RASHPA_WINDOW_BLANK they read ones, and writes are lost.
 *
 * Pages with the MSI-X table or bounds of engines are for the kernel only. A window may have them
 * in it, but mmap() and maps of a part with such a page fail with EBUSY. Functions of other drivers
 * map whole windows only, so they fail, too.
 *
 * Errors: EPERM (no CAP_SYS_RAWIO, and not a window of the profile with RASHPA_PWINDOW_USER in its
 * cache mode; or the kernel is locked down, no IOMMU limits the function to its maps, and no window
 * of the profile contains the range), EINVAL (also: not whole pages of this kernel, which may be
 * larger than 4096 bytes), ERANGE (outside the memory BARs), EOPNOTSUPP (cached, or write-combining
 * in a BAR that is not prefetchable), EDQUOT, EBUSY (only pages for the kernel, or in use with
 * another cache mode).
 */
struct rashpa_window_make {
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

/** enum rashpa_direction - direction of the DMA of a map */
enum rashpa_direction {
	RASHPA_BIDIRECTIONAL = 0,	/* the function reads and writes the memory */
	/* the function only writes: an IOMMU blocks its reads, even those that flush writes */
	RASHPA_TO_MEMORY = 1,
	RASHPA_FROM_MEMORY = 2,		/* the function reads the memory */
};

/**
 * enum rashpa_class - verified kind of the addresses of a map
 * @RASHPA_CLASS_HOST: bus addresses of host memory, without an IOMMU
 * @RASHPA_CLASS_IOVA: addresses of host memory that the importer's IOMMU translates
 * @RASHPA_CLASS_PEER: bus addresses in a BAR of another function, routed by a common switch
 * @RASHPA_CLASS_BRIDGE: addresses in a BAR of another function, routed by the host bridge and
 *	translated by an IOMMU if it exists
 *
 * Without an IOMMU the kernel verifies all addresses. With an IOMMU it verifies both ends of each
 * piece and of each 2 MiB in between.
 */
enum rashpa_class {
	RASHPA_CLASS_HOST = 1,
	RASHPA_CLASS_IOVA = 2,
	RASHPA_CLASS_PEER = 3,
	RASHPA_CLASS_BRIDGE = 4,
};

#define RASHPA_MAP_DEVICE	_BITUL(0)	/* device memory only, else EREMOTEIO */
#define RASHPA_MAP_PIN		_BITUL(2)	/* the memory stays where it is */

#define RASHPA_MAPPED_REMAPPED	_BITUL(0)	/* the exporter's BAR was mapped in the IOMMU */
#define RASHPA_MAPPED_COHERENT	_BITUL(1)	/* HOST or IOVA, but device or CXL memory */

/**
 * struct rashpa_map_make - RASHPA_IOC_MAP_MAKE: map a memory for this function
 * @head: flags: RASHPA_MAP_DEVICE, RASHPA_MAP_PIN
 * @fd: dma-buf fd of any exporter, for example &struct rashpa_alloc.out_fd
 * @direction: enum rashpa_direction
 * @offset: offset of the first byte in the memory, a multiple of the page size
 * @length: length in bytes, a multiple of the page size; 0 for the rest of the memory
 * @max_segment: longest segment in bytes, a multiple of 4096; 0 for any. The stricter
 *	of this limit and the profile's applies, also for the next two
 * @boundary: power of two that no segment may cross, at least 4096; 0 for none. It reveals
 *	addresses, so it needs the same privilege as mmap of the table
 * @alignment: power of two that all addresses must be a multiple of, 0 for any. It needs the
 *	privilege of @boundary
 * @out_fd: map fd, for RASHPA_IOC_PROGRAM, mmap (struct rashpa_table), poll and read
 * @out_class: enum rashpa_class
 * @out_generation: generation of the new table, see struct rashpa_table
 * @out_segments: number of segments in the table
 * @out_id: number of the map in records of RASHPA_SOURCE_MAP, 1 to 2147483647, unique among all
 *	existing maps
 * @out_table_size: bytes to mmap for the whole table
 * @out_peer: for the classes PEER and BRIDGE, function of the memory, as a ``bdf``
 * @out_peer_bar: BAR number of @out_peer, -1 for the other classes
 * @out_flags: RASHPA_MAPPED_*
 *
 * If the exporter moves the memory, the map is revoked (see enum rashpa_map_state) and restored
 * automatically. With RASHPA_MAP_PIN it does not move it while it is mapped; it may move it first
 * (most GPU drivers pin in host memory only), and may still revoke the map.
 *
 * A map ends when its last fd is closed and its table is unmapped. The end stops all DMA of the
 * function, or only of the engines that know its addresses (&struct rashpa_profile_engine). Then
 * the entries that PROGRAM wrote are cleared, and last the memory is unmapped. Nothing is stopped
 * if the map was never programmed and its table never mapped, because the function cannot know its
 * addresses. Bus mastering is on while maps or channels exist.
 *
 * Errors: ERANGE (outside the memory), EACCES (the dma-buf is read-only and the function would
 * write), EPERM (the profile has no quiesce sequence, or @boundary or @alignment needs
 * CAP_SYS_RAWIO), EIO (the function is stuck: reset it; or does not answer), EREMOTEIO (the
 * exporter's addresses are wrong, or not device memory; see the reason), ENXIO (no path between the
 * two functions), EOVERFLOW (an address is outside the DMA mask or the limit of a bus), E2BIG (more
 * than 16777216 segments), ETIMEDOUT (the exporter did not finish moving the memory), EOPNOTSUPP
 * (the exporter does not support such importers; lock memory, and the DMA of the function is not
 * coherent with the caches), EAGAIN (the function of the memory is being reset), EHWPOISON (the
 * memory has a damaged page), EDQUOT, and errors of the exporter.
 */
struct rashpa_map_make {
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
	__u32 out_id;
	__aligned_u64 out_table_size;
	__aligned_u64 out_peer;
	__s32 out_peer_bar;
	__u32 out_flags;
};

#define RASHPA_QUIESCE_MAP	_BITUL(0)	/* end only @map and release its memory */

/**
 * struct rashpa_quiesce - RASHPA_IOC_QUIESCE: stop all DMA of the function now
 * @head: flags: RASHPA_QUIESCE_MAP
 * @map: with RASHPA_QUIESCE_MAP, &struct rashpa_map_make.out_id of a map of this function
 * @__reserved: must be zero
 * @out_time_ns: duration of the stop
 *
 * Without the flag, all maps stay, with their table entries. A later command to the hardware starts
 * it again: there is no opposite call. Only the end of a map takes its addresses away.
 *
 * With RASHPA_QUIESCE_MAP only that map ends, as if its last fd were closed, even if other
 * processes hold its file. Its state becomes RASHPA_MAP_STATE_REVOKED for good.
 *
 * Without a quiesce sequence, or if it fails, bus mastering is turned off. The next
 * RASHPA_IOC_MAP_MAKE or RASHPA_IOC_CHANNEL_MAKE turns it on again, after a failure only if
 * RASHPA_IOC_RESET came first.
 *
 * Stopping the whole function fails while it may know addresses of another user's map. The owner of
 * the node and processes with CAP_FOWNER or CAP_SYS_ADMIN are exempt. Others can end their own maps
 * with RASHPA_QUIESCE_MAP.
 *
 * Errors: EPERM (see above), ETIMEDOUT (the function did not become idle, or does not answer; bus
 * mastering is off now); with RASHPA_QUIESCE_MAP: EPERM (the map of another user needs
 * CAP_SYS_ADMIN).
 */
struct rashpa_quiesce {
	struct rashpa_head head;
	__u32 map;
	__u32 __reserved;
	__aligned_u64 out_time_ns;
};

/**
 * struct rashpa_reset - RASHPA_IOC_RESET: reset the function
 * @head: no flags
 *
 * The function is quiesced first. Its maps stay valid, but the function loses the entries that
 * PROGRAM wrote: program each map again, except those with RASHPA_PROGRAM_AGAIN. During the reset,
 * CPU accesses to windows wait. Maps of windows by other functions are revoked, and restored after
 * the reset.
 *
 * Errors: EOPNOTSUPP (the function has no reset), EPERM (no CAP_SYS_RAWIO), EAGAIN (another process
 * resets or removes the function), EIO (the function does not answer in configuration space and was
 * not reset, or does not become idle after the reset), and errors of the reset.
 */
struct rashpa_reset {
	struct rashpa_head head;
};

/* ------------------------------------------------------------- map fd --- */

/** struct rashpa_segment - contiguous range of a map */
struct rashpa_segment {
	__aligned_u64 address;	/* DMA address for the importer */
	__aligned_u64 length;	/* length in bytes */
};

/**
 * enum rashpa_map_state - state of a map
 * @RASHPA_MAP_STATE_VALID: the addresses are valid
 * @RASHPA_MAP_STATE_REVOKED: the addresses must not be used: the exporter has revoked them, or the
 *	function is gone. The driver tries for ten seconds to restore the map, and again after
 *	each notification of the exporter. RASHPA_IOC_RESTORE tries at once and reports errors
 * @RASHPA_MAP_STATE_PROGRAMMED: only in records: the kernel has programmed the map again, see
 *	RASHPA_PROGRAM_AGAIN
 * @RASHPA_MAP_STATE_UNPROGRAMMED: only in records: programming the map again has failed;
 *	RASHPA_IOC_PROGRAM reports the error
 */
enum rashpa_map_state {
	RASHPA_MAP_STATE_VALID = 1,
	RASHPA_MAP_STATE_REVOKED = 2,
	RASHPA_MAP_STATE_PROGRAMMED = 3,
	RASHPA_MAP_STATE_UNPROGRAMMED = 4,
};

/**
 * struct rashpa_table - read-only table of a map, for mmap and read() of the map fd
 * @generation: changes whenever state or segments change; odd during a change
 * @state: enum rashpa_map_state
 * @map_class: enum rashpa_class
 * @count: number of segments, never more than in the first table
 * @segment_size: bytes from one segment to the next, at least sizeof(struct rashpa_segment)
 * @__reserved: zero
 * @segment: segments in memory order
 *
 * mmap() is read-only, from offset 0 (&struct rashpa_map_make.out_table_size). Without
 * CAP_SYS_RAWIO it fails with EPERM unless the profile discloses addresses: use RASHPA_IOC_PROGRAM
 * instead. A process that has read addresses can pass them to the function, so the end of the map
 * stops the whole function. Therefore mmap without CAP_SYS_RAWIO also fails with EBUSY while the
 * function may know addresses of another user's map.
 *
 * read() is for changes: it blocks (EAGAIN with O_NONBLOCK), and poll() does not report POLLIN,
 * until the generation differs from the last one read; the first one is &struct
 * rashpa_map_make.out_generation. A new map has nothing to read. read() returns the first 64 bytes,
 * without segments; a shorter buffer: EINVAL.
 *
 * Lockless readers read @generation, the rest, and @generation again. They start over if it was odd
 * or has changed. rashpa_table_read() of librashpa does so.
 */
struct rashpa_table {
	__aligned_u64 generation;
	__u32 state;
	__u32 map_class;
	__u32 count;
	__u32 segment_size;
	__aligned_u64 __reserved[5];
	struct rashpa_segment segment[];
};

#define RASHPA_PROGRAM_AGAIN	_BITUL(0)	/* repeat the call when needed, see below */

/**
 * struct rashpa_program - RASHPA_IOC_PROGRAM: write the segments of a map to the address table
 * @head: flags: RASHPA_PROGRAM_AGAIN
 * @first: index of the first entry to write
 * @out_entries: number of written entries, 1 with RASHPA_DEVICE_FETCH
 * @out_descriptors: number of descriptors of the map's ring, 0 without RASHPA_DEVICE_FETCH
 *
 * A map occupies one range of entries; a second call moves it. The kernel clears the entries before
 * the map ends. With RASHPA_PROGRAM_AGAIN the kernel repeats the call after a reset and a restored
 * revocation, and reports RASHPA_MAP_STATE_PROGRAMMED. The entries stay reserved meanwhile, until
 * a call without the flag.
 *
 * The end of the map stops the engine of its entries, or the whole function if the profile has no
 * engines. So the call fails with EBUSY while the engine (or function) may know addresses of a map
 * of another user. It fails with EPERM if the profile has engines, but the entries are not in one
 * existing engine. CAP_SYS_RAWIO lifts both limits.
 *
 * Errors: EPERM, EBUSY (see above; also: entries of another map), ENOENT (the profile has no
 * table), ERANGE (the segments exceed the table), EOVERFLOW (an address, length or sum is wider
 * than its field or not a multiple of its unit), E2BIG (more segments than descriptors of a ring),
 * ESTALE (the map is revoked: restore it; or the function was reset meanwhile: try again), EIO (the
 * function does not answer: reset it), EDQUOT.
 */
struct rashpa_program {
	struct rashpa_head head;
	__u32 first;
	__u32 out_entries;
	__aligned_u64 out_descriptors;
};

/**
 * struct rashpa_restore - RASHPA_IOC_RESTORE: map the memory again after a revocation
 * @head: no flags
 * @out_generation: generation of the new table
 * @out_class: enum rashpa_class
 * @out_segments: number of segments in the table
 *
 * A valid map does not change. The driver also restores maps automatically, unless the stop turned
 * bus mastering off. Then this call turns it on again. The revocation has cleared the entries that
 * PROGRAM wrote: program the map again, unless it has RASHPA_PROGRAM_AGAIN.
 *
 * Errors: ENODEV (the function or that of the memory is gone, or the map was ended for good),
 * EAGAIN (the function of the memory is being reset), EIO (the function is stuck or does not
 * answer), EPERM (no quiesce sequence and no CAP_SYS_RAWIO), E2BIG (more segments than in the first
 * table: make a new map), and errors of RASHPA_IOC_MAP_MAKE about the memory.
 */
struct rashpa_restore {
	struct rashpa_head head;
	__aligned_u64 out_generation;
	__u32 out_class;
	__u32 out_segments;
};

/* --------------------------------------------------------- channel fd --- */

#define RASHPA_SOURCES_MAX	2048	/* sources and groups of one channel at most */

/**
 * struct rashpa_channel_make - RASHPA_IOC_CHANNEL_MAKE: make an event channel
 * @head: no flags
 * @depth: records that the queue holds, 2 to 65536; 0 for 1024
 * @sources: maximum number of sources and groups, 1 to RASHPA_SOURCES_MAX; 0 for 64. Their ids
 *	are 1 to this
 * @record_size: bytes of a record that read() returns: sizeof(struct rashpa_event) as the program
 *	was compiled with; 0 for 40, the first published size
 * @out_fd: the channel; read, poll, mmap, RASHPA_IOC_SOURCE_ADD, RASHPA_IOC_EVENTFD_BIND
 * @out_ring_size: bytes of &struct rashpa_ring and its records, to mmap at offset 0, read-only
 *	(EACCES). Both mappings of a channel are MAP_SHARED (EINVAL)
 * @out_consumer: mmap offset of &struct rashpa_consumer, for reading and writing
 * @out_consumer_size: bytes to mmap there, whole pages
 *
 * A channel of /dev/rashpa/fpgaN belongs to that function and ends with it. A channel of
 * /dev/rashpa/memory belongs to no function. Its sources are software, memory errors, groups, words
 * with RASHPA_SOURCE_POLL or RASHPA_SOURCE_LOOK, and all sources that name a function.
 *
 * Errors: EPERM (the node was opened read-only; the profile has no quiesce sequence: needs
 * CAP_SYS_RAWIO), E2BIG (@record_size is larger than the records of this kernel), EIO (the function
 * is stuck, or does not answer), EDQUOT.
 */
struct rashpa_channel_make {
	struct rashpa_head head;
	__u32 depth;
	__u32 sources;
	__u32 record_size;
	__s32 out_fd;
	__aligned_u64 out_ring_size;
	__aligned_u64 out_consumer;
	__aligned_u64 out_consumer_size;
};

/**
 * enum rashpa_source - sources of events
 * @RASHPA_SOURCE_VECTOR: an interrupt vector; value = number of the vector
 * @RASHPA_SOURCE_DEVICE: state of the function; value = enum rashpa_device_event in the low 32
 *	bits; the high 32 bits are zero, except with RASHPA_DEVICE_EVENT_ENGINE
 * @RASHPA_SOURCE_SOFTWARE: RASHPA_IOC_SIGNAL on the same channel
 * @RASHPA_SOURCE_LOCK: a word of host memory fulfils a condition; value = its position, see &struct
 *	rashpa_source_add
 * @RASHPA_SOURCE_MAP: state of a map of the function; value = its out_id << 32 | enum
 *	rashpa_map_state
 * @RASHPA_SOURCE_GROUP: in records: a group, see RASHPA_IOC_GROUP_MAKE; value = position that
 *	all members have reached
 * @RASHPA_SOURCE_OVERRUN: in records: a member of a group has lapped the consumer; source =
 *	the member, value = its position, sequence = number of stacks that it has overrun
 * @RASHPA_SOURCE_FULL: in records: a member of a group has filled the room of the consumer;
 *	source = the member, value = its position, sequence = distance of that from the
 *	acknowledged position
 */
enum rashpa_source {
	RASHPA_SOURCE_VECTOR = 1,
	RASHPA_SOURCE_DEVICE = 2,
	RASHPA_SOURCE_SOFTWARE = 3,
	RASHPA_SOURCE_LOCK = 4,
	RASHPA_SOURCE_MAP = 5,
	RASHPA_SOURCE_GROUP = 6,
	RASHPA_SOURCE_OVERRUN = 7,
	RASHPA_SOURCE_FULL = 8,
};

/**
 * enum rashpa_condition - condition of a lock slot
 * @RASHPA_CONDITION_CHANGED: the word differs from the last check
 * @RASHPA_CONDITION_EQUAL: the word became equal to @value
 * @RASHPA_CONDITION_REACHED: the word became greater than or equal to @value, unsigned. Then
 *	@value grows by @step until it is greater than the word. With step 0, the next event needs a
 *	check that finds the word less than @value.
 */
enum rashpa_condition {
	RASHPA_CONDITION_CHANGED = 1,
	RASHPA_CONDITION_EQUAL = 2,
	RASHPA_CONDITION_REACHED = 3,
};

/**
 * enum rashpa_device_event - values of RASHPA_SOURCE_DEVICE
 * @RASHPA_DEVICE_EVENT_QUIESCED: all DMA was stopped
 * @RASHPA_DEVICE_EVENT_RESET: a reset of the function has ended. Only RASHPA_IOC_RESET reports
 *	whether it failed, because the PCI core does not
 * @RASHPA_DEVICE_EVENT_STUCK: the function did not stop, or does not answer; bus mastering is off
 * @RASHPA_DEVICE_EVENT_GONE: the function was removed; it makes no more events. Words that a
 *	timer checks, and sources of other functions, go on until the channel is closed
 * @RASHPA_DEVICE_EVENT_ERROR: the PCI core reports an error of the function or its link
 * @RASHPA_DEVICE_EVENT_ENGINE: one engine was stopped, the others go on; its index is in the high
 *	32 bits, see RASHPA_IOC_ENGINE_INFO
 */
enum rashpa_device_event {
	RASHPA_DEVICE_EVENT_QUIESCED = 1,
	RASHPA_DEVICE_EVENT_RESET = 2,
	RASHPA_DEVICE_EVENT_STUCK = 3,
	RASHPA_DEVICE_EVENT_GONE = 4,
	RASHPA_DEVICE_EVENT_ERROR = 5,
	RASHPA_DEVICE_EVENT_ENGINE = 6,
};

#define RASHPA_SOURCE_QUIET	_BITUL(0)	/* no records: for its group and eventfd only */
#define RASHPA_SOURCE_POLL	_BITUL(1)	/* LOCK: check every @period_us */
#define RASHPA_SOURCE_LOOK	_BITUL(2)	/* LOCK: check at RASHPA_IOC_LOOK; also with POLL */
#define RASHPA_SOURCE_ONE_SHOT	_BITUL(3)	/* VECTOR, LOCK: disarmed by an event until ARM */
#define RASHPA_SOURCE_COUNTER	_BITUL(4)	/* LOCK: the masked word wraps, see below */

#define RASHPA_PERIOD_MIN	20	/* shortest @period_us */
#define RASHPA_PERIOD_MAX	1000000	/* longest @period_us */

/**
 * struct rashpa_source_add - RASHPA_IOC_SOURCE_ADD: add a source to a channel
 * @head: flags: RASHPA_SOURCE_QUIET to RASHPA_SOURCE_COUNTER
 * @kind: enum rashpa_source, up to MAP
 * @index: VECTOR: number of the vector. LOCK: number of the vector whose interrupts check the word;
 *	0 with RASHPA_SOURCE_POLL or RASHPA_SOURCE_LOOK. MAP: out_id of the map, or 0 for all. 0
 *	for the others
 * @out_id: id of the source in this channel's records
 * @__reserved: must be zero
 * @device: fd of /dev/rashpa/fpgaN, open for writing: the function of the source; -1: the channel's
 *	function. SOFTWARE: -1
 * @memory: LOCK: dma-buf fd of a buffer, pinned or lock memory of this driver. -1 for the others
 * @offset: LOCK: offset of the word in the memory, bytes, a multiple of its width
 * @mask: LOCK: bits of the word that count; 0 for all
 * @value: LOCK: value of the condition, within the mask
 * @step: LOCK: see RASHPA_CONDITION_REACHED
 * @condition: LOCK: enum rashpa_condition
 * @bits: LOCK: width of the word, 32 or 64
 * @period_us: LOCK: RASHPA_PERIOD_MIN to RASHPA_PERIOD_MAX microseconds, with RASHPA_SOURCE_POLL;
 *	else 0
 * @budget: LOCK: part of one CPU for the checks in thousandths, 1 to 1000, 0 for 10, with
 *	RASHPA_SOURCE_POLL; the period is stretched to keep it. Else 0
 *
 * The interrupt handler (or the timer, or RASHPA_IOC_LOOK) checks a word before it wakes waiters.
 * Several changes between two checks make one event, and the value is the last position. REACHED
 * and CHANGED lose no position by that; EQUAL can miss a value that was there only between two
 * checks. If the condition is true when the source is added, this is an event at once (with POLL:
 * at the first check).
 *
 * The *position* of a word is the word, masked. A word of 32 bits without a mask (0, or all bits)
 * is a counter that wraps. With RASHPA_SOURCE_COUNTER so is a word whose mask is its lowest bits.
 * Its position has 64 bits, begins with the word when the source is added, and follows the word.
 * This is right as long as the word moves by less than half of its range between two checks, in
 * either direction. CHANGED and REACHED compare positions, EQUAL the word itself.
 *
 * All timers together take no more than the module parameter ``poll_budget``. A source keeps its
 * part until it is deleted or its channel is closed, even after the removal of the function.
 *
 * With RASHPA_SOURCE_ONE_SHOT each event disarms the source until RASHPA_IOC_ARM. A vector is
 * masked while all its sources are disarmed, so a board can interrupt as often as it likes. The
 * next record has everything since the last event: LOCK as the difference of values, VECTOR of
 * sequences; interrupts during the mask count as one. Such a source is no member of a group.
 *
 * Errors: EINVAL (also: neither @device nor the channel has a function, and the source needs one),
 * EPERM (@device was opened read-only), ERANGE (no such vector; outside the memory), EXDEV (foreign
 * memory, or no host memory), EACCES (memory that is not open for reading), EEXIST (already in this
 * channel; LOCK may be there several times), ENOSPC (the channel is full; or the user, or all, have
 * the maximum of sources at this vector, memory with LOOK, or function: module parameters
 * ``user_limit_interrupt`` and ``user_limit_listeners``), EDQUOT (``poll_budget``), and as
 * RASHPA_IOC_CHANNEL_MAKE.
 */
struct rashpa_source_add {
	struct rashpa_head head;
	__u32 kind;
	__u32 index;
	__u32 out_id;
	__u32 __reserved;
	__s32 device;
	__s32 memory;
	__aligned_u64 offset;
	__aligned_u64 mask;
	__aligned_u64 value;
	__aligned_u64 step;
	__u32 condition;
	__u32 bits;
	__u32 period_us;
	__u32 budget;
};

/**
 * struct rashpa_source_del - RASHPA_IOC_SOURCE_DEL: remove a source or group
 * @head: no flags
 * @id: id of the source or group
 * @__reserved: must be zero
 *
 * Queued records stay. This works after the removal of the function, too. Errors: EBUSY (a member
 * of a group).
 */
struct rashpa_source_del {
	struct rashpa_head head;
	__u32 id;
	__u32 __reserved;
};

/** struct rashpa_source_info - RASHPA_IOC_SOURCE_INFO: counters; POLL: 0 without that flag */
struct rashpa_source_info {
	struct rashpa_head head;	/* no flags */
	__u32 id;			/* id of the source or group */
	__u32 out_kind;			/* enum rashpa_source */
	__u32 out_index;		/* as it was added */
	__s32 out_device;		/* N of its fpgaN; software, groups: the channel's */
	__aligned_u64 out_events;	/* events since it was added, with and without a record */
	__aligned_u64 out_lost;		/* records that found no room */
	__aligned_u64 out_value;	/* value of the last event */
	__aligned_u64 out_looks;	/* POLL: checks by the timer */
	__aligned_u64 out_look_ns;	/* POLL: their CPU time, without the interrupt's entry */
	__aligned_u64 out_since_ns;	/* POLL: time since the source was added */
	__aligned_u64 out_period_ns;	/* POLL: the period now, stretched to keep the budget */
};

/**
 * struct rashpa_arm - RASHPA_IOC_ARM: arm a one-shot source for the next event
 * @head: no flags
 * @id: id of a source with RASHPA_SOURCE_ONE_SHOT, else EINVAL
 * @out_events: 1 if an event came while it was disarmed: its record is queued, its eventfd is
 *	signalled, and the source is disarmed again; else 0
 * @__reserved: must be zero
 *
 * Read the records, then arm: no event is lost between the two. The call checks for earlier
 * events, and later ones reach the source. An armed source stays as it is.
 */
struct rashpa_arm {
	struct rashpa_head head;
	__u32 id;
	__u32 out_events;
	__aligned_u64 __reserved;
};

/**
 * struct rashpa_eventfd_bind - RASHPA_IOC_EVENTFD_BIND: signal an eventfd at each event
 * @head: no flags
 * @fd: eventfd; -1 to stop, also after the removal of the function
 * @id: id of a source or group, or 0 for the whole channel
 *
 * Each source has one eventfd, and the channel has one. A second call replaces the first. For one
 * signal after several stacks use RASHPA_CONDITION_REACHED with a step. Records are queued anyway.
 * The eventfd of the channel counts records, with the lost ones, so a RASHPA_SOURCE_QUIET source
 * signals only its own. OVERRUN and FULL signal only that of the channel.
 *
 * At the removal of the channel's function the kernel signals all its eventfds once more: read()
 * or &struct rashpa_ring.gone reports it. RASHPA_SOURCE_DEVICE reports the removal of another
 * function. An eventfd gets due signals before it is replaced, and before its source or channel
 * ends.
 */
struct rashpa_eventfd_bind {
	struct rashpa_head head;
	__s32 fd;
	__u32 id;
};

#define RASHPA_MEMBERS_MAX	1024			/* members of one group */
#define RASHPA_FULL_NEVER	0xffffffffffffffffULL	/* @full of a group without FULL */

/** struct rashpa_member - member of a group */
struct rashpa_member {
	__u32 source;		/* id of a source of the same channel */
	__u32 __reserved;	/* must be zero */
};

/**
 * struct rashpa_group_make - RASHPA_IOC_GROUP_MAKE: one event when all members reach a position
 * @head: no flags
 * @members: pointer to @n_members of &struct rashpa_member
 * @n_members: 1 to RASHPA_MEMBERS_MAX
 * @member_size: bytes of one of them
 * @slots: stacks that fit into the destination. A member whose position exceeds the acknowledged
 *	position by more than this has lapped the consumer (OVERRUN); 0: not checked
 * @full: a member whose position exceeds the acknowledged position by this or more has filled the
 *	destination (FULL), in time to make the producer pause; up to @slots if that is given;
 *	0 for @slots. RASHPA_FULL_NEVER: not checked, for producers that wait for credit, whose
 *	slots are usually full
 * @first: position at which all members and the consumer begin
 * @out_id: id in the records, from the same numbers as those of sources
 * @__reserved: must be zero
 *
 * Each member has a position, @first at least. For a LOCK source it is the greatest position of
 * its events; a group that is made later counts the last event. With RASHPA_CONDITION_CHANGED and
 * no event yet, it is the word at creation of the source (clear the word of an earlier run). For
 * any other source it is @first plus the number of events since then. The group's position is the
 * minimum of all. Each time it grows beyond @first, the group makes one record,
 * RASHPA_SOURCE_GROUP. A group that is made late reports at once members that are @full, or more
 * than @slots, ahead of @first.
 *
 * FULL and OVERRUN are checked at each event of a member, and reported once: FULL for the event
 * that filled the slots, OVERRUN for stacks that were not reported before.
 *
 * A word that is written twice or not at all changes no position. So a group of LOCK members with
 * RASHPA_CONDITION_CHANGED is right even if interrupts arrive twice or never. The kernel does not
 * notice an interrupt that is counted twice: members that are vectors rely on hardware.
 *
 * A source is a member of one group at most, and a group is no member. Add the same word twice for
 * two groups. RASHPA_SOURCE_DEL ends the group, not its members.
 *
 * Errors: EINVAL (also: a member is a group, or one-shot), EEXIST (twice in the list), EBUSY (a
 * member of another group), ENOSPC (the channel is full), EDQUOT.
 */
struct rashpa_group_make {
	struct rashpa_head head;
	__aligned_u64 members;
	__u32 n_members;
	__u32 member_size;
	__aligned_u64 slots;
	__aligned_u64 full;
	__aligned_u64 first;
	__u32 out_id;
	__u32 __reserved;
};

/** struct rashpa_ack - RASHPA_IOC_ACK: the same as a store to &struct rashpa_consumer.ack */
struct rashpa_ack {
	struct rashpa_head head;	/* no flags */
	__u32 id;			/* id of the group */
	__u32 __reserved;		/* must be zero */
	__aligned_u64 position;		/* all stacks up to this one may be overwritten */
};

/** struct rashpa_member_info - state of a member of a group */
struct rashpa_member_info {
	__u32 source;		/* id */
	__u32 __reserved;	/* zero */
	__aligned_u64 position;	/* see &struct rashpa_group_make */
	__aligned_u64 overruns;	/* stacks that lapped the consumer */
	__aligned_u64 time_ns;	/* time of the last event, 0 before the first */
};

/** struct rashpa_group_info - RASHPA_IOC_GROUP_INFO: state of a group */
struct rashpa_group_info {
	struct rashpa_head head;	/* no flags */
	__aligned_u64 members;		/* pointer to room for &struct rashpa_member_info, or 0 */
	__u32 id;			/* id of the group */
	__u32 n_members;		/* number of members that fit */
	__u32 member_size;		/* bytes from one to the next, at most a page (E2BIG) */
	__u32 out_members;		/* members of the group; up to @n_members were stored */
	/* all members have reached it; events go on meanwhile, so one can be beyond */
	__aligned_u64 out_position;
	__aligned_u64 out_ack;		/* position that the consumer has acknowledged */
	__aligned_u64 out_events;	/* events of the group so far */
	__aligned_u64 out_overruns;	/* sum for all members */
};

/**
 * struct rashpa_signal - RASHPA_IOC_SIGNAL: make a software event
 * @head: no flags
 * @value: value of the record
 *
 * On return the record is queued; eventfds are signalled by then or soon after. Without a source
 * RASHPA_SOURCE_SOFTWARE in the channel the call fails with ENOENT.
 */
struct rashpa_signal {
	struct rashpa_head head;
	__aligned_u64 value;
};

/**
 * struct rashpa_event - record of an event
 * @sequence: number of the event, from 1 on. VECTOR, DEVICE and MAP of all maps: counted since the
 *	bind, also while no channel listens; others: since the source was added
 * @time_ns: CLOCK_MONOTONIC, taken in the interrupt handler
 * @source: id from RASHPA_IOC_SOURCE_ADD
 * @kind: enum rashpa_source
 * @value: see enum rashpa_source
 * @lost: records of this source that this channel had no room for, so far
 *
 * read() returns whole records, as many as fit, of the size that RASHPA_IOC_CHANNEL_MAKE asked for;
 * &struct rashpa_ring.record_size is independent of that. It blocks until a record comes unless
 * O_NONBLOCK is set (EAGAIN, also while another thread reads). A buffer shorter than one record:
 * EINVAL. poll() reports POLLIN for records. After RASHPA_DEVICE_EVENT_GONE of the channel's
 * function poll() reports POLLHUP and POLLERR, and read() of the empty queue ENODEV. When the queue
 * is full, the new record is lost. PCI may merge interrupts: @sequence counts those that arrived.
 */
struct rashpa_event {
	__aligned_u64 sequence;
	__aligned_u64 time_ns;
	__u32 source;
	__u32 kind;
	__aligned_u64 value;
	__aligned_u64 lost;
};

/**
 * struct rashpa_ring - queue that mmap of a channel shows at offset 0, read-only
 * @head: records queued so far
 * @lost: records of all sources that found no room
 * @record: offset of record 0, bytes from the beginning of this struct
 * @record_size: bytes from record to record; sizeof(struct rashpa_event) or more
 * @slots: record n is at @record + (n & (@slots - 1)) * @record_size; a power of two
 * @depth: records that the queue holds
 * @gone: not 0 when the function of the channel was removed
 * @__reserved: zero
 *
 * A consumer that wants no system call for each event loads @head with acquire semantics, reads the
 * records from number &struct rashpa_consumer.tail to number @head - 1, and stores @head in tail
 * with release semantics. When the queue is empty, it waits with poll(), which is ready exactly
 * when @head and tail differ, or @gone. Load @gone with acquire semantics before @head, because the
 * last records come first. read() takes records from the same queue and advances tail. Do not use
 * both at the same time.
 */
struct rashpa_ring {
	__aligned_u64 head;
	__aligned_u64 lost;
	__u32 record;
	__u32 record_size;
	__u32 slots;
	__u32 depth;
	__u32 gone;
	__u32 __reserved;
};

/**
 * struct rashpa_consumer - positions that mmap of a channel shows at out_consumer
 * @tail: records consumed so far, 0 at first, written by the consumer and by read(). The kernel
 *	takes a value that is not between &struct rashpa_ring.head minus depth and head as head
 *	minus depth: all records are new
 * @__reserved: zero
 * @ack: for the group with id n, at index n - 1: position that the consumer has
 *	finished, written by the consumer. As many as the channel can have sources
 */
struct rashpa_consumer {
	__aligned_u64 tail;
	__aligned_u64 __reserved[7];
	__aligned_u64 ack[];
};

/* ---------------------------------------------------------- numbers ---- */

/* /dev/rashpa/memory (INFO: also on /dev/rashpa/buffer/NAME; LIST: also on /dev/rashpa/fpgaN) */
#define RASHPA_IOC_ALLOC	_IO(RASHPA_IOC_TYPE, 0x00)
#define RASHPA_IOC_PIN		_IO(RASHPA_IOC_TYPE, 0x01)
#define RASHPA_IOC_QUERY	_IO(RASHPA_IOC_TYPE, 0x02)
#define RASHPA_IOC_INFO		_IO(RASHPA_IOC_TYPE, 0x04)
#define RASHPA_IOC_LIST		_IO(RASHPA_IOC_TYPE, 0x05)
#define RASHPA_IOC_LIMIT	_IO(RASHPA_IOC_TYPE, 0x06)
#define RASHPA_IOC_LOOK		_IO(RASHPA_IOC_TYPE, 0x07)
/* /dev/rashpa/memory and /dev/rashpa/fpgaN */
#define RASHPA_IOC_CHANNEL_MAKE	_IO(RASHPA_IOC_TYPE, 0x08)
/* /dev/rashpa/buffer/NAME */
#define RASHPA_IOC_EXPORT	_IO(RASHPA_IOC_TYPE, 0x10)
#define RASHPA_IOC_REMOVE	_IO(RASHPA_IOC_TYPE, 0x11)
#define RASHPA_IOC_ROLE		_IO(RASHPA_IOC_TYPE, 0x12)
/* /dev/rashpa/fpgaN */
#define RASHPA_IOC_DEVICE_INFO	_IO(RASHPA_IOC_TYPE, 0x20)
#define RASHPA_IOC_REGION_INFO	_IO(RASHPA_IOC_TYPE, 0x21)
#define RASHPA_IOC_PROFILE_SET	_IO(RASHPA_IOC_TYPE, 0x22)
#define RASHPA_IOC_WINDOW_MAKE	_IO(RASHPA_IOC_TYPE, 0x23)
#define RASHPA_IOC_MAP_MAKE		_IO(RASHPA_IOC_TYPE, 0x24)
#define RASHPA_IOC_QUIESCE	_IO(RASHPA_IOC_TYPE, 0x25)
#define RASHPA_IOC_RESET	_IO(RASHPA_IOC_TYPE, 0x26)
#define RASHPA_IOC_ENGINE_INFO	_IO(RASHPA_IOC_TYPE, 0x27)
/* map fd */
#define RASHPA_IOC_PROGRAM	_IO(RASHPA_IOC_TYPE, 0x30)
#define RASHPA_IOC_RESTORE	_IO(RASHPA_IOC_TYPE, 0x31)
/* channel fd */
#define RASHPA_IOC_SOURCE_ADD	_IO(RASHPA_IOC_TYPE, 0x40)
#define RASHPA_IOC_SOURCE_DEL	_IO(RASHPA_IOC_TYPE, 0x41)
#define RASHPA_IOC_EVENTFD_BIND	_IO(RASHPA_IOC_TYPE, 0x42)
#define RASHPA_IOC_SIGNAL	_IO(RASHPA_IOC_TYPE, 0x43)
#define RASHPA_IOC_GROUP_MAKE	_IO(RASHPA_IOC_TYPE, 0x44)
#define RASHPA_IOC_ACK		_IO(RASHPA_IOC_TYPE, 0x45)
#define RASHPA_IOC_SOURCE_INFO	_IO(RASHPA_IOC_TYPE, 0x46)
#define RASHPA_IOC_GROUP_INFO	_IO(RASHPA_IOC_TYPE, 0x47)
#define RASHPA_IOC_ARM		_IO(RASHPA_IOC_TYPE, 0x48)

#endif /* _UAPI_LINUX_RASHPA_H */
