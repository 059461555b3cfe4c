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
 * - Any call may fail with EINTR when a signal arrives while it waits; nothing was done then.
 * - A number that the node does not serve: ENOTTY. A pointer that cannot be read
 *   or written: EFAULT. A device that was removed: ENODEV.
 * - Fields named ``out_`` are written by the kernel and ignored on input. All
 *   others are read only. Zero is the default of every field that is no file descriptor.
 *   Later kernels may answer with flags, kinds and states that this header does not name.
 * - Pointers travel as u64. An array has three fields: the pointer ``xs``, the number
 *   ``n_xs``, and ``x_size``, the bytes of one element as the caller was compiled with, so that
 *   elements can grow as structs do: below the first published size EINVAL, a tail that this
 *   kernel does not know E2BIG unless it is zero. Of an array that the kernel fills, what it
 *   does not know of an element becomes zero. With no elements pointer and size do not matter.
 * - A file descriptor that is not given is -1, or 0 where a flag would have to ask for it. An
 *   index (NUMA node, BAR, vector, N of fpgaN) counts only where a flag or a kind says so, and
 *   must be 0 elsewhere; as a result it is -1 for none. Ids (of sources, groups, maps) begin
 *   at 1.
 * - File descriptors are created close-on-exec.
 * - The end of a name tells the unit: ``_ns``, ``_us``, ``_ms`` are times, those of the clock are
 *   CLOCK_MONOTONIC. Lengths, sizes and offsets are bytes.
 * - What is called ``_MAX``, ``_MIN`` or ``_DEFAULT`` may become more generous in later kernels;
 *   sizes of arrays in structs stay.
 * - The struct must be writable, also where nothing is returned: this is found out
 *   before anything is done. When it cannot be written any more after the work, EFAULT comes
 *   after the work: a new fd is not there, and what lives by it is gone; what has a name or
 *   an id (a named buffer, a source) is there, can be listed and removed.
 * - Who makes something that outlives the call is charged with it, see &enum rashpa_resource:
 *   EDQUOT, with a sentence that names the limit.
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
/** RASHPA_ALLOC_EXCLUSIVE - @out_fd holds an exclusive lease */
#define RASHPA_ALLOC_EXCLUSIVE	_BITUL(1)
/** RASHPA_ALLOC_MODE - @mode is given */
#define RASHPA_ALLOC_MODE	_BITUL(2)
/**
 * RASHPA_ALLOC_LOCK - lock memory: words that hardware writes and software waits for, in slots
 * of RASHPA_LOCK_SLOT bytes. Cached, never of CMA, so that a GPU runtime can register it. A
 * memory like any other: map it for a function (RASHPA_IOC_MAP_MAKE) to give it the bus
 * address of slot 0. Its pages are a few, so that it may be mapped apart from the payload.
 * RASHPA_SOURCE_LOCK makes events of it
 */
#define RASHPA_ALLOC_LOCK	_BITUL(3)
/**
 * RASHPA_ALLOC_DEVICE - @device is given: take memory that its DMA mask reaches, of its NUMA
 * node while that has some
 */
#define RASHPA_ALLOC_DEVICE	_BITUL(4)

/** RASHPA_LOCK_SLOT - bytes of a slot of lock memory: a cache line */
#define RASHPA_LOCK_SLOT	64
/** RASHPA_LOCK_SLOTS_MAX - slots of one lock memory */
#define RASHPA_LOCK_SLOTS_MAX	65536

/**
 * struct rashpa_alloc - RASHPA_IOC_ALLOC: make a contiguous, zeroed buffer
 * @head: flags: RASHPA_ALLOC_*
 * @length: bytes, > 0; rounded up to whole pages. With RASHPA_ALLOC_LOCK a multiple of
 *	RASHPA_LOCK_SLOT, RASHPA_LOCK_SLOTS_MAX of them at most
 * @alignment: of the physical address in bytes, a power of two up to 1 GiB;
 *	0 for one page
 * @node: NUMA node, with RASHPA_ALLOC_NODE; must be 0 without
 * @backend: enum rashpa_backend; with RASHPA_ALLOC_LOCK not CMA
 * @cache: enum rashpa_cache; what is not cached is so for every CPU mapping of it
 * @device: fd of /dev/rashpa/fpgaN, with RASHPA_ALLOC_DEVICE; must be 0 or -1 without
 * @name: NUL-terminated name; empty for an anonymous buffer, which lives as long
 *	as any fd, mapping or map of it. A named buffer lives until
 *	RASHPA_IOC_REMOVE and is at /dev/rashpa/buffer/NAME. Letters, digits, and
 *	``. _ -``; does not begin with a dot; all bytes after the NUL must be 0.
 * @mode: permission bits of the node, 0 to 0666, with RASHPA_ALLOC_MODE; must be 0
 *	without, and with an anonymous buffer
 * @out_fd: dma-buf of the buffer, readable and writable
 * @out_length: the rounded length in bytes
 * @out_segments: physically contiguous pieces: 1
 * @out_backend: the backend that served, enum rashpa_backend
 * @out_node: the NUMA node of the memory
 * @__reserved: must be zero
 *
 * The file /dev/rashpa/buffer/NAME says who may use a named buffer: it belongs to who made it
 * (file system user id) and to the group of /dev/rashpa/memory, with the mode of that node
 * unless RASHPA_ALLOC_MODE gives another; chown() and chmod() change that.
 *
 * Who has a named buffer has a lease of it: this fd, and each open of the node
 * /dev/rashpa/buffer/NAME, shared unless asked for otherwise (RASHPA_ALLOC_EXCLUSIVE, O_EXCL).
 * It ends with the last of what came of it: duplicates, mappings, maps, the dma-bufs of
 * RASHPA_IOC_EXPORT. While there is an exclusive one open() fails with EBUSY; so does
 * O_EXCL while there is any. O_EXCL is only for who opens it for writing (EACCES). The access
 * mode 3 (neither O_RDONLY, O_WRONLY nor O_RDWR; the kernel asks the mode for both) takes none: it
 * is for RASHPA_IOC_INFO, which names who has an exclusive one, and RASHPA_IOC_REMOVE.
 *
 * The call can be interrupted by a signal while it searches and zeroes. How far it
 * is, RASHPA_IOC_PROGRESS tells in another thread. One search runs at a time, of CMA as well;
 * that of a process with CAP_SYS_RESOURCE goes first, that of others begins again behind it. For
 * one that hangs it waits two seconds.
 *
 * Errors: EPERM (the node was opened read-only), EINVAL, EBADF (@device), EEXIST (name),
 * ENAMETOOLONG (no NUL), ENOMEM (see RASHPA_IOC_QUERY), ENOSPC (no minor number is free),
 * EOPNOTSUPP (backend or cache mode not
 * here), EINTR, EDQUOT (the limit that the administrator set in the module parameter
 * ``limit_mib`` for all or ``user_limit_mib`` for one user is reached).
 */
struct rashpa_alloc {
	struct rashpa_head head;
	__aligned_u64 length;
	__aligned_u64 alignment;
	__u32 node;
	__u32 backend;
	__u32 cache;
	__s32 device;
	char name[RASHPA_NAME_SIZE];
	__u32 mode;
	__s32 out_fd;
	__aligned_u64 out_length;
	__u32 out_segments;
	__u32 out_backend;
	__s32 out_node;
	__u32 __reserved;
};

/**
 * struct rashpa_pin - RASHPA_IOC_PIN: user memory as a dma-buf
 * @head: no flags
 * @address: of the first byte in the caller's address space, a multiple of the page size
 * @length: bytes, a multiple of the page size, > 0
 * @out_fd: dma-buf fd; cannot be mmapped: it is mapped already where it is
 * @out_segments: physically contiguous pieces
 *
 * Anonymous, shared and huge pages, across mappings, all writable. They stay where they
 * are until the dma-buf ends, and are charged as RASHPA_RESOURCE_MEMORY and to RLIMIT_MEMLOCK: a
 * part of a huge page with the whole of it, because that is what stays.
 *
 * Errors: EPERM (the node was opened read-only), EINVAL, EFAULT (not mapped, not
 * writable, or cannot be pinned: device memory, CMA buffers, files that need
 * write-back), ENOMEM (RLIMIT_MEMLOCK), EDQUOT (the limits of RASHPA_IOC_ALLOC), EINTR.
 */
struct rashpa_pin {
	struct rashpa_head head;
	__aligned_u64 address;
	__aligned_u64 length;
	__s32 out_fd;
	__u32 out_segments;
};

/** RASHPA_QUERY_NODE - @node is given: answer for that NUMA node only */
#define RASHPA_QUERY_NODE	_BITUL(0)
/**
 * RASHPA_QUERY_TRY - find @out_largest out by allocating and giving back at once: up to what
 * the caller could still be charged with, see &struct rashpa_limit. True for CMA as well, but
 * moves the memory of others, and takes time: @try_ms at most
 */
#define RASHPA_QUERY_TRY	_BITUL(1)
/**
 * RASHPA_QUERIED_UNFINISHED - in @out_flags: RASHPA_QUERY_TRY ran out of time, or made way for an
 * ALLOC or an administrator. @out_largest can be had, more may be
 */
#define RASHPA_QUERIED_UNFINISHED	_BITUL(0)

/** RASHPA_TRY_MS_MAX - longest time of RASHPA_QUERY_TRY in milliseconds */
#define RASHPA_TRY_MS_MAX	60000

/** RASHPA_AREA_SIZE - bytes of the name of a CMA area, the final NUL included */
#define RASHPA_AREA_SIZE	64

/**
 * struct rashpa_query - RASHPA_IOC_QUERY: what would fit
 * @head: flags: RASHPA_QUERY_NODE, RASHPA_QUERY_TRY
 * @node: NUMA node, with RASHPA_QUERY_NODE; must be 0 without
 * @backend: enum rashpa_backend; AUTO answers for the backend it would take
 * @out_backend: backend that the answer is for, enum rashpa_backend
 * @out_flags: RASHPA_QUERIED_UNFINISHED, or 0
 * @try_ms: with RASHPA_QUERY_TRY, how long it may take in milliseconds, at most
 *	RASHPA_TRY_MS_MAX; 0 for 2000. Must be 0 without
 * @__reserved: must be zero
 * @out_total: bytes that the backend manages
 * @out_free: bytes free now
 * @out_largest: longest run in bytes that looks free or movable; another
 *	allocation, a page that cannot be moved after all, or an area of CMA, which looks
 *	like any memory, can make it less. 0 for CMA without RASHPA_QUERY_TRY: the kernel
 *	keeps its layout to itself
 * @out_area: name of the CMA area, empty for contig
 *
 * Errors: EINVAL, EPERM (RASHPA_QUERY_TRY on a node that was opened read-only), EINTR,
 * EOPNOTSUPP (the backend is not in this kernel).
 */
struct rashpa_query {
	struct rashpa_head head;
	__u32 node;
	__u32 backend;
	__u32 out_backend;
	__u32 out_flags;
	__u32 try_ms;
	__u32 __reserved;
	__aligned_u64 out_total;
	__aligned_u64 out_free;
	__aligned_u64 out_largest;
	char out_area[RASHPA_AREA_SIZE];
};

/**
 * enum rashpa_stage - what an ALLOC is doing
 * @RASHPA_STAGE_IDLE: there is none
 * @RASHPA_STAGE_SEARCH: moving others out of the way; RASHPA_QUERY_TRY as well
 * @RASHPA_STAGE_ZERO: zeroing
 */
enum rashpa_stage {
	RASHPA_STAGE_IDLE = 0,
	RASHPA_STAGE_SEARCH = 1,
	RASHPA_STAGE_ZERO = 2,
};

/**
 * struct rashpa_progress - RASHPA_IOC_PROGRESS: how far is the ALLOC on the same open file
 * @head: no flags
 * @out_stage: enum rashpa_stage
 * @__reserved: must be zero
 * @out_done: bytes of the stage that are done
 * @out_todo: bytes of the whole stage
 *
 * For another thread, or another process with the same open file.
 *
 * Errors: EINVAL.
 */
struct rashpa_progress {
	struct rashpa_head head;
	__u32 out_stage;
	__u32 __reserved;
	__aligned_u64 out_done;
	__aligned_u64 out_todo;
};

/**
 * enum rashpa_kind - what a memory is
 * @RASHPA_KIND_BUFFER: a buffer of this driver
 * @RASHPA_KIND_WINDOW: a window of a PCI BAR
 * @RASHPA_KIND_FOREIGN: another driver's dma-buf
 * @RASHPA_KIND_PINNED: memory of a process, see RASHPA_IOC_PIN
 * @RASHPA_KIND_LOCK: lock memory, see RASHPA_ALLOC_LOCK
 */
enum rashpa_kind {
	RASHPA_KIND_BUFFER = 1,
	RASHPA_KIND_WINDOW = 2,
	RASHPA_KIND_FOREIGN = 3,
	RASHPA_KIND_PINNED = 4,
	RASHPA_KIND_LOCK = 5,
};

/**
 * RASHPA_INFO_REGISTRABLE - a CPU mapping of it can be registered by address: RDMA
 * (ibv_reg_mr), direct I/O, RASHPA_IOC_PIN
 */
#define RASHPA_INFO_REGISTRABLE	_BITUL(0)
/** RASHPA_INFO_EXCLUSIVE - its lease is exclusive */
#define RASHPA_INFO_EXCLUSIVE	_BITUL(1)
/** RASHPA_INFO_REVOKED - a window whose function is gone or being reset */
#define RASHPA_INFO_REVOKED	_BITUL(2)
/**
 * RASHPA_INFO_DAMAGED - a buffer of which a page has lost its contents to a memory error, see
 * RASHPA_SOURCE_DAMAGE
 */
#define RASHPA_INFO_DAMAGED	_BITUL(3)

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
 * @out_flags: RASHPA_INFO_*
 * @out_leases: leases of a named buffer now, see RASHPA_IOC_ALLOC
 * @out_lease_uid: user id of who has the exclusive lease, with RASHPA_INFO_EXCLUSIVE
 * @out_lease_pid: and the process that opened it, 0 if it cannot be seen from here
 * @out_uid: user who is charged with a buffer
 * @out_pid: process that made it, 0 if it cannot be seen from here
 * @out_bar: BAR of a window, -1 if it is none
 * @__reserved: zero
 * @out_bdf: PCI function of a window: domain << 16 | bus << 8 | devfn
 * @out_page_size: bytes of the pages that a buffer is made of: the largest entry
 *	that a CPU mapping of it can have
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
	__u32 out_flags;
	__u32 out_leases;
	__u32 out_lease_uid;
	__s32 out_lease_pid;
	__u32 out_uid;
	__s32 out_pid;
	__s32 out_bar;
	__u32 __reserved;
	__aligned_u64 out_bdf;
	__aligned_u64 out_page_size;
};

/* --- who holds what --- */

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
 * All of it counts against who made it, until it ends, whatever process has it by then. Whoever
 * acts in a user namespace that an ordinary user has made counts as that user. Each resource has
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

/** RASHPA_HOLDING_ORPHAN - the process that made it has ended */
#define RASHPA_HOLDING_ORPHAN		_BITUL(0)
/** RASHPA_HOLDING_PROGRAMMED - a map whose addresses the function has */
#define RASHPA_HOLDING_PROGRAMMED	_BITUL(1)
/** RASHPA_HOLDING_TOLD - a map whose addresses were seen (mmap): the function may have them */
#define RASHPA_HOLDING_TOLD		_BITUL(2)

/** RASHPA_COMM_SIZE - bytes of the name of a process, the final NUL included */
#define RASHPA_COMM_SIZE	16

/**
 * struct rashpa_holding - something that somebody holds
 * @resource: enum rashpa_resource
 * @device: N of /dev/rashpa/fpgaN that it is of, -1 for none
 * @uid: who is charged with it
 * @pid: process that made it, 0 if it is in a namespace that the caller does not see. With
 *	RASHPA_HOLDING_ORPHAN the number may be another process's by now
 * @serial: number that nothing else ever has, greater than those of all that is older
 * @amount: of @resource: 1, or thousandths of a CPU; 0 for RASHPA_RESOURCE_MEMORY
 * @memory: bytes, of whatever resource it is: they count as RASHPA_RESOURCE_MEMORY
 * @since_ns: when it was made
 * @id: of a map; of a source the index (vector, map); else 0
 * @flags: RASHPA_HOLDING_*
 * @comm: name of the process then
 * @name: of a named buffer, its memory, or the memory of a map or of a source; of foreign memory
 *	the exporter's; else empty
 */
struct rashpa_holding {
	__u32 resource;
	__s32 device;
	__u32 uid;
	__s32 pid;
	__aligned_u64 serial;
	__aligned_u64 amount;
	__aligned_u64 memory;
	__aligned_u64 since_ns;
	__u32 id;
	__u32 flags;
	char comm[RASHPA_COMM_SIZE];
	char name[RASHPA_NAME_SIZE];
};

/** RASHPA_HOLDINGS_MAX - that one call can return */
#define RASHPA_HOLDINGS_MAX	1024

/**
 * struct rashpa_list - RASHPA_IOC_LIST: who holds what
 * @head: no flags
 * @holdings: pointer to room for @n_holdings of &struct rashpa_holding
 * @n_holdings: how many fit, 0 to RASHPA_HOLDINGS_MAX
 * @holding_size: bytes of one
 * @after: only what has a greater serial; 0 for all
 * @out_holdings: how many were stored, oldest first
 * @out_count: how many there are behind @after, those that were stored included
 *
 * On /dev/rashpa/memory of all functions and none, on /dev/rashpa/fpgaN of that function. To
 * see more than fit, call again with @after the serial of the last one.
 *
 * Errors: EINVAL, E2BIG, EFAULT, ENOMEM, ENODEV (the function was removed).
 */
struct rashpa_list {
	struct rashpa_head head;
	__aligned_u64 holdings;
	__u32 n_holdings;
	__u32 holding_size;
	__aligned_u64 after;
	__u32 out_holdings;
	__u32 out_count;
};

/**
 * struct rashpa_limit - RASHPA_IOC_LIMIT: how much of a resource there may be, and is
 * @head: no flags
 * @resource: enum rashpa_resource
 * @__reserved: must be zero
 * @out_used: held by all, in bytes, or as &struct rashpa_holding.amount counts
 * @out_limit: of that, 0 for none
 * @out_shared_used: of that, by who has no CAP_SYS_RESOURCE
 * @out_shared_limit: that @out_used must not exceed for who has no CAP_SYS_RESOURCE: an eighth
 *	less than @out_limit, and so nothing of 1. Of RASHPA_RESOURCE_MEMORY without a limit an
 *	eighth less than the RAM, for @out_shared_used. 0 for none where @out_limit is 0
 * @out_user_used: held by the user who asks
 * @out_user_limit: of that, 0 for none; not for CAP_SYS_RESOURCE
 *
 * Errors: EINVAL (a resource that is not defined: later kernels may have more).
 */
struct rashpa_limit {
	struct rashpa_head head;
	__u32 resource;
	__u32 __reserved;
	__aligned_u64 out_used;
	__aligned_u64 out_limit;
	__aligned_u64 out_shared_used;
	__aligned_u64 out_shared_limit;
	__aligned_u64 out_user_used;
	__aligned_u64 out_user_limit;
};

/* --- words that programs write --- */

/**
 * struct rashpa_look - RASHPA_IOC_LOOK: look at the watched words of a memory now
 * @head: no flags
 * @fd: dma-buf of host memory of this driver, open for writing: a buffer, pinned or lock memory
 * @out_events: events that this made
 *
 * For producers that are programs, e.g. the thread that takes a network card's completions: write
 * the payload, store the words (release), then call this once for all of them. Each source with
 * RASHPA_SOURCE_LOOK of a word in this memory, in whatever channel, looks at its word, as it
 * would at an interrupt; through which dma-buf of the memory makes no difference. The
 * kernel wakes waiters and signals eventfds soon after: their number takes no time of the
 * producer. One call waits for another one at the same memory.
 *
 * Errors: EBADF, EINVAL (not a dma-buf), EXDEV (memory of somebody else, or a window), EACCES (not
 * open for writing), EINTR.
 */
struct rashpa_look {
	struct rashpa_head head;
	__s32 fd;
	__u32 out_events;
};

/* -------------------------------------------- /dev/rashpa/buffer/NAME --- */

/** RASHPA_ROLE_PRODUCER - writes what is in the buffer, or has a device write it */
#define RASHPA_ROLE_PRODUCER	_BITUL(0)
/** RASHPA_ROLE_CONSUMER - says what of it may be overwritten */
#define RASHPA_ROLE_CONSUMER	_BITUL(1)
/** RASHPA_ROLES - how many roles there are: bit i of a set is element i of an array */
#define RASHPA_ROLES		2

/**
 * struct rashpa_role - RASHPA_IOC_ROLE: be the only one of a kind at a named buffer
 * @head: no flags
 * @take: roles to take, RASHPA_ROLE_*: all of them or none
 * @drop: roles to give back before; those that this file has not do not matter
 * @out_mine: roles that this file has now
 * @out_held: roles that anybody has now
 * @out_uid: user id of who has them, by role; 0 where nobody has
 * @out_pid: and the process that opened the node, 0 if it cannot be seen from here
 *
 * The kernel does not act on roles. Programs that agree on what is in a buffer find out by them
 * who else is at work, and that a process ended which could not say so: a role belongs to the
 * open file, and ends when its last descriptor is closed, or with all processes that have one;
 * what came of it (dma-bufs, maps) does not keep it. With neither @take nor @drop it is a
 * question, which each open node may ask.
 *
 * Errors: EINVAL, EACCES (a role is asked for, and the node is not open for writing), EBUSY
 * (another file has one of them: the sentence names the process).
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

/**
 * struct rashpa_export - RASHPA_IOC_EXPORT: the dma-buf of the opened buffer
 * @head: no flags
 * @out_fd: dma-buf fd; read-only if the node was opened read-only
 * @__reserved: must be zero
 *
 * Errors: EINVAL, EACCES (the node is open only for writing, and a dma-buf can be read).
 */
struct rashpa_export {
	struct rashpa_head head;
	__s32 out_fd;
	__u32 __reserved;
};

/**
 * struct rashpa_remove - RASHPA_IOC_REMOVE: take the name of the opened buffer away
 * @head: no flags
 *
 * The memory itself is given back with its last fd and mapping.
 *
 * Errors: EPERM (neither owner of the node nor CAP_FOWNER), ENOENT (somebody has done so),
 * EBUSY (an importer maps it, or a process has it mapped).
 */
struct rashpa_remove {
	struct rashpa_head head;
};

/* --------------------------------------------------- /dev/rashpa/fpgaN --- */

/*
 * Everything but DEVICE_INFO, REGION_INFO, ENGINE_INFO and LIST needs the node to be open for
 * writing: EPERM.
 */

/**
 * enum rashpa_state - of a bound function
 * @RASHPA_STATE_READY: can do DMA
 * @RASHPA_STATE_STUCK: did not become idle in time, or does not answer; bus mastering is
 *	off until RASHPA_IOC_RESET or the next bind
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
 * RASHPA_DEVICE_FETCH - the entries of the profile's table are places of rings of descriptors, see
 * &struct rashpa_profile_table: a map takes one entry, however many segments it has
 */
#define RASHPA_DEVICE_FETCH	_BITUL(4)

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
 * @out_quiesces: times that all its DMA was stopped since the bind
 * @out_interrupts: interrupts of all vectors since the bind
 * @out_engines: engines of the profile, see RASHPA_IOC_ENGINE_INFO
 * @__reserved: zero
 * @out_engine_stops: times that one of them was stopped without the others since the profile
 *	was applied
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
	__u32 out_engines;
	__u32 __reserved;
	__aligned_u64 out_engine_stops;
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

/** RASHPA_PROFILE_NAME_SIZE - bytes of a window's name, the final NUL included */
#define RASHPA_PROFILE_NAME_SIZE	32
/** RASHPA_PROFILE_WINDOWS_MAX - windows of a profile */
#define RASHPA_PROFILE_WINDOWS_MAX	64
/** RASHPA_PROFILE_STEPS_MAX - steps of a quiesce sequence */
#define RASHPA_PROFILE_STEPS_MAX	32
/** RASHPA_QUIESCE_US_MAX - longest time limit of a quiesce sequence, in microseconds */
#define RASHPA_QUIESCE_US_MAX	10000000
/** RASHPA_PROFILE_ENGINES_MAX - engines of a profile */
#define RASHPA_PROFILE_ENGINES_MAX	64
/** RASHPA_ENGINE_STEPS_MAX - steps of the quiesce sequence of one engine */
#define RASHPA_ENGINE_STEPS_MAX	8

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
 * @timeout_us: of a WAIT, 1 to RASHPA_QUIESCE_US_MAX microseconds; 0 for WRITE
 * @__reserved: must be zero
 *
 * A WAIT that reads all ones from the register is taken as a device that does not answer,
 * unless all ones is the value that it waits for.
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

/** RASHPA_LAYOUT_UPPER_FIRST - fields of 64 bits have the upper word at the lower offset */
#define RASHPA_LAYOUT_UPPER_FIRST	_BITUL(0)
/**
 * RASHPA_LAYOUT_WRITE_ONLY - entries are never read: after writes the register of the last step
 * of the quiesce sequence is read instead, so the profile must have one
 */
#define RASHPA_LAYOUT_WRITE_ONLY	_BITUL(1)

/**
 * struct rashpa_layout - how one entry of a function's address table looks
 * @stride: bytes from entry to entry, a multiple of 4, up to 4096
 * @address_offset: of the address field in the entry
 * @address_bits: 32 or 64
 * @length_offset: of the length field
 * @length_bits: 0 (no such field), 32 or 64
 * @control_offset: of the control field
 * @control_bits: 0 (no such field) or 32
 * @control_set: value of the control field of a valid entry, written last
 * @control_clear: value of the control field of an invalid entry, written first
 * @flags: RASHPA_LAYOUT_*
 * @segment_size: bytes that an entry without a length covers, a power of two, at least
 *	4096; must be 0 with a length field
 * @sum_offset: of the sum field
 * @sum_bits: 0 (no such field), 32 or 64
 *
 * @control_set and @control_clear differ. Fields are little-endian, aligned to 4,
 * inside the stride, and do not overlap. One of the two, length or control, must be there: it is
 * what tells that an entry leads nowhere. Without a control field it is invalid with length 0.
 *
 * What has no length is as long as the function takes it to be: each segment that is written
 * there is exactly @segment_size, or it is refused.
 *
 * The sum of an entry is the length of all segments of its map before this one, 0 for the first:
 * with it a function finds an offset in a map without adding up what is before it.
 *
 * Passed by a pointer and a size, by the rules of structs: it can grow.
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

/** RASHPA_DESCRIPTORS_MAX - descriptors of one ring */
#define RASHPA_DESCRIPTORS_MAX	16777216
/** RASHPA_DESCRIPTOR_SIZE_MAX - bytes of one descriptor */
#define RASHPA_DESCRIPTOR_SIZE_MAX	256
/** RASHPA_FETCH_FIELDS_MAX - fields of a descriptor */
#define RASHPA_FETCH_FIELDS_MAX	32
/** RASHPA_FETCH_REGISTERS_MAX - parts of registers that are told of a ring */
#define RASHPA_FETCH_REGISTERS_MAX	16

/**
 * enum rashpa_fetch_kind - what is in a field of a descriptor, or of a register
 * @RASHPA_FETCH_CONSTANT: @value of the field
 * @RASHPA_FETCH_ADDRESS: of a descriptor: bus address of the segment. Of a register: that of the
 *	first descriptor
 * @RASHPA_FETCH_LENGTH: of a descriptor: bytes of the segment. Of a register: bytes of all
 *	descriptors, which is of use where they follow each other
 * @RASHPA_FETCH_SUM: of a descriptor: bytes of all segments before this one
 * @RASHPA_FETCH_NEXT: of a descriptor: bus address of the next one; in the last one that of the
 *	first with RASHPA_FETCH_CLOSED, else 0
 * @RASHPA_FETCH_INDEX: of a descriptor: its number, from 0 on
 * @RASHPA_FETCH_COUNT: how many descriptors there are
 */
enum rashpa_fetch_kind {
	RASHPA_FETCH_CONSTANT = 1,
	RASHPA_FETCH_ADDRESS = 2,
	RASHPA_FETCH_LENGTH = 3,
	RASHPA_FETCH_SUM = 4,
	RASHPA_FETCH_NEXT = 5,
	RASHPA_FETCH_INDEX = 6,
	RASHPA_FETCH_COUNT = 7,
};

/** RASHPA_FIELD_MINUS_ONE - the stored value is one less; for LENGTH and COUNT */
#define RASHPA_FIELD_MINUS_ONE	_BITUL(0)
/** RASHPA_FIELD_FIRST - a CONSTANT that only the first descriptor has, the others have 0 there */
#define RASHPA_FIELD_FIRST	_BITUL(1)
/** RASHPA_FIELD_LAST - likewise the last one */
#define RASHPA_FIELD_LAST	_BITUL(2)
/** RASHPA_FIELD_NOT_LAST - likewise all but the last one */
#define RASHPA_FIELD_NOT_LAST	_BITUL(3)

/**
 * struct rashpa_fetch_field - some bits of a word of a descriptor, or of a register
 * @kind: enum rashpa_fetch_kind
 * @flags: RASHPA_FIELD_*
 * @offset: of the word in the descriptor, or in the entry of the table; a multiple of its bytes
 * @bits: of the word, 32 or 64: it is stored as a whole, little-endian
 * @shift: lowest bit of the field in the word
 * @width: bits of the field
 * @unit: what is stored is the value divided by 2 to this power, 0 to 63
 * @__reserved: must be zero
 * @value: of a CONSTANT; must be 0 with another kind
 * @clear: of a register: the whole word when there is no ring; of the first field of a word. Must
 *	be 0 in others, and in descriptors
 *
 * What is stored is ((value >> @unit) - (one, if MINUS_ONE)) << @shift. Several fields may have
 * parts of one value, e.g. an address in two words: unit 0 and 32. A map of which something would
 * be lost so is refused (EOVERFLOW): an address that is not a multiple of the unit, a length that
 * is wider than its field. A value of which one is subtracted has no parts.
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

/** RASHPA_FETCH_CLOSED - the NEXT of the last descriptor leads to the first one */
#define RASHPA_FETCH_CLOSED	_BITUL(0)

/**
 * struct rashpa_fetch - how a function fetches addresses from host memory
 * @stride: bytes from entry to entry of the table: from the registers of one ring to those of
 *	the next one; a multiple of 4, up to 4096
 * @flags: RASHPA_FETCH_*
 * @descriptor_size: bytes of a descriptor, a multiple of 4, up to RASHPA_DESCRIPTOR_SIZE_MAX
 * @max_descriptors: that one ring may have, up to RASHPA_DESCRIPTORS_MAX; 0 for that
 * @segment_size: bytes that a descriptor without LENGTH covers, a power of two, at least
 *	4096; must be 0 with LENGTH
 * @fields: pointer to @n_fields of &struct rashpa_fetch_field, the descriptor
 * @registers: pointer to @n_registers of &struct rashpa_fetch_field, what the function is told
 *	of a ring, in this order; fields of one word follow each other, and are one write
 * @n_fields: 1 to RASHPA_FETCH_FIELDS_MAX
 * @field_size: bytes of an element of @fields
 * @n_registers: 1 to RASHPA_FETCH_REGISTERS_MAX
 * @register_size: bytes of an element of @registers
 *
 * ADDRESS must be in @fields and in @registers. Fields of a descriptor do not overlap. Bits that
 * no field has are 0.
 *
 * Descriptors follow each other without a gap. With NEXT they may be in several pieces of memory,
 * each of which holds whole descriptors; without, they are in one, which may not be found where
 * there are many and no IOMMU.
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
};

/**
 * struct rashpa_profile_table - where the function has an address table
 * @bar: BAR of the table, 0 to 5
 * @__reserved: must be zero
 * @offset: offset of the table in the BAR, a multiple of 4
 * @length: bytes of the whole table, > 0
 * @layout: pointer to the &struct rashpa_layout of an entry; 0 with @fetch
 * @fetch: pointer to a &struct rashpa_fetch, or 0
 * @layout_size: bytes of the layout; 0 with @fetch
 * @fetch_size: bytes of the &struct rashpa_fetch; 0 without
 *
 * With @fetch the function fetches addresses: an entry of the table has no address, but the
 * place of a ring of descriptors. The kernel has the ring in host memory, which no process can
 * map. An entry takes one map.
 *
 * A window with RASHPA_PWINDOW_USER must not overlap it: who can write there can make the
 * function write anywhere. All maps of the function are cut so that they fit into it.
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

/**
 * RASHPA_PENGINE_OPTIONAL - boards may not have it: both registers of its bounds then read 0,
 * whatever is written to them
 */
#define RASHPA_PENGINE_OPTIONAL	_BITUL(0)

/**
 * struct rashpa_profile_engine - a data transfer process that can be stopped without the others
 * @name: NUL-terminated, not empty, unique among the engines
 * @flags: RASHPA_PENGINE_*
 * @bar: BAR of its bounds, 0 to 5
 * @first_offset: 32-bit register in it, a multiple of 4: the engine uses no entry of the table
 *	before this one
 * @limit_offset: likewise: nor this one or one behind it
 * @first: its first entry; must be 0 if it has none
 * @count: entries that it has; 0: it is kept out of the table
 * @steps: pointer to @n_steps of &struct rashpa_profile_step, its quiesce sequence
 * @n_steps: 1 to RASHPA_ENGINE_STEPS_MAX; 0 only without entries
 * @step_size: bytes of an element of @steps
 *
 * The kernel writes the bounds whenever it has stopped the function for good (profile, reset), and
 * reads them back: also each time that it relies on them. No window may hold them, whoever
 * asks for it, and none with RASHPA_PWINDOW_USER a register of @steps: so a member of the group
 * can neither give an engine the entries of another one, nor make it look stopped.
 *
 * A map whose addresses only engines have, because it was programmed in their ranges and nowhere
 * else, and because its table was never mapped, ends with these: the others go on. All else stops
 * the function as a whole, and so does an engine that does not stop in time, and bounds
 * that are not what they were.
 *
 * This is right only if each part of the function that reads the table is an engine of the
 * profile: one that is to have no entries has @count 0.
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

/** RASHPA_PROFILE_DISCLOSE - members of the group may see bus addresses */
#define RASHPA_PROFILE_DISCLOSE	_BITUL(0)

/**
 * RASHPA_PROFILE_NO_RESET - no function-level reset when the profile is applied: for hardware
 * that does not come back from one
 */
#define RASHPA_PROFILE_NO_RESET	_BITUL(1)

/**
 * struct rashpa_profile_set - RASHPA_IOC_PROFILE_SET: what differs from board to board
 * @head: flags: RASHPA_PROFILE_DISCLOSE, RASHPA_PROFILE_NO_RESET
 * @windows: pointer to @n_windows of &struct rashpa_profile_window
 * @steps: pointer to @n_steps of &struct rashpa_profile_step, the quiesce sequence
 * @table: pointer to the &struct rashpa_profile_table, or 0 for none
 * @n_windows: 0 to RASHPA_PROFILE_WINDOWS_MAX
 * @window_size: bytes of an element of @windows
 * @n_steps: 0 to RASHPA_PROFILE_STEPS_MAX; with none, quiescing is bus mastering
 *	off
 * @step_size: bytes of an element of @steps
 * @table_size: bytes of @table; 0 for none
 * @engine_size: bytes of an element of @engines
 * @dma_bits: width of the DMA mask, 24 to 64; 0 for 32, which is also that of a function
 *	without a profile
 * @quiesce_us: time limit of the whole quiesce sequence, up to RASHPA_QUIESCE_US_MAX
 *	microseconds; 0 for 1 s. Besides, clearing entries takes what the bus takes for it, and
 *	what is on its way when bus mastering is turned off is waited for up to 700 ms
 * @max_segment: limits of the segments of all maps, see &struct rashpa_map_make
 * @boundary: likewise
 * @alignment: likewise
 * @engines: pointer to @n_engines of &struct rashpa_profile_engine
 * @n_engines: 0 to RASHPA_PROFILE_ENGINES_MAX; with one, there must be a table and a quiesce
 *	sequence of the whole function
 * @__reserved: must be zero
 *
 * The last step must be a WAIT for at least one bit: only its answer tells that the
 * function has stopped and that all its writes have arrived.
 *
 * Whoever had the function before may have left it running. So a profile, when it is applied,
 * resets the function (if it has a function-level reset, and without RASHPA_PROFILE_NO_RESET),
 * runs the quiesce sequence, clears the whole table and writes the bounds of engines, all of it
 * with bus mastering off. If one of them fails, the profile is there, the function is stuck, and
 * the call fails with ETIMEDOUT
 * or EIO. A function without a profile is reset, if it has such a reset, before its first map or
 * channel.
 *
 * Replaces the profile as a whole, or, with any other error, changes nothing.
 *
 * Errors: EPERM (without CAP_SYS_ADMIN; no steps where the function has channels, without
 * CAP_SYS_RAWIO; or the kernel is locked down, and no IOMMU keeps the function to its maps), EBUSY
 * (maps or windows exist), EINVAL, ENAMETOOLONG (a name without NUL), E2BIG (an element, or a
 * layout, that has more than this kernel knows), EOPNOTSUPP (a cached window; a DMA mask that does
 * not work on this machine), ERANGE (a window, step or table outside its BAR), ENOMEM, ENODEV, EIO
 * (the function does not answer, does not come back from its reset, its table cannot be
 * cleared, or it does not keep the bounds of an engine), ETIMEDOUT (it does not become idle).
 *
 * What comes next has its place at the ends.
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

/** RASHPA_ENGINE_ABSENT - the board has no such engine, see RASHPA_PENGINE_OPTIONAL */
#define RASHPA_ENGINE_ABSENT	_BITUL(0)

/**
 * struct rashpa_engine_info - RASHPA_IOC_ENGINE_INFO: an engine of the profile
 * @head: no flags
 * @index: 0 to &struct rashpa_device_info.out_engines - 1, in the order of the profile
 * @out_flags: RASHPA_ENGINE_*
 * @out_name: its name in the profile
 * @out_first: its first entry of the table, see &struct rashpa_program.first
 * @out_count: entries from there on
 * @out_maps: maps that exist now, and whose addresses it has or had
 * @__reserved: zero
 * @out_stops: times that it was stopped without the others
 * @out_failures: times that it did not stop, and the function had to
 *
 * Errors: ENOENT (there are fewer), ENODEV, EINTR.
 */
struct rashpa_engine_info {
	struct rashpa_head head;
	__u32 index;
	__u32 out_flags;
	char out_name[RASHPA_PROFILE_NAME_SIZE];
	__u32 out_first;
	__u32 out_count;
	__u32 out_maps;
	__u32 __reserved;
	__aligned_u64 out_stops;
	__aligned_u64 out_failures;
};

/**
 * RASHPA_WINDOW_BLANK - when the function is gone, CPUs that have the window mapped find a page of
 * ones, and what they write is lost, as with a board that does not answer; without, touching it
 * raises SIGBUS. It is one page for the
 * whole window, and for all who have it. For libraries, which have no say in signals
 */
#define RASHPA_WINDOW_BLANK	_BITUL(0)

/**
 * struct rashpa_window_make - RASHPA_IOC_WINDOW_MAKE: a range of a BAR as memory
 * @head: flags: RASHPA_WINDOW_BLANK
 * @bar: 0 to 5; must be 0 with a name
 * @cache: enum rashpa_cache; must be 0 with a name. Without CAP_SYS_RAWIO 0, or that of the
 *	profile's window which has the range
 * @offset: in the BAR, a multiple of the page size; must be 0 with a name
 * @length: a multiple of the page size, > 0; must be 0 with a name
 * @name: name of a window in the profile, or empty
 * @out_length: bytes
 * @out_fd: dma-buf fd; mmap it to reach the registers
 * @__reserved: must be zero
 *
 * Errors: EPERM (CAP_SYS_RAWIO needed, except for a window of the profile with
 * RASHPA_PWINDOW_USER in its cache mode; or the kernel is locked down, no IOMMU keeps the function
 * to its maps, and the profile has no window that holds the range), EINVAL, ENAMETOOLONG (no
 * NUL), ERANGE (outside the BAR), ENOENT (name), EOPNOTSUPP (not a memory BAR, or write-combining
 * on a BAR that is not prefetchable), EDQUOT,
 * EBUSY (the range holds the MSI-X table, or bounds of engines, or is in use with another cache
 * mode: by a window, by the kernel for quiesce steps and programmed maps, or by somebody else),
 * ENODEV.
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

/**
 * enum rashpa_direction - of the DMA through a map
 * @RASHPA_BIDIRECTIONAL: both
 * @RASHPA_TO_MEMORY: the function writes the memory, and never reads it: an IOMMU refuses
 *	also the read that flushes its writes
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
 * @RASHPA_CLASS_PEER: in another function's BAR, by bus addresses that a common
 *	switch routes
 * @RASHPA_CLASS_BRIDGE: in another function's BAR, through the host bridge; with an
 *	IOMMU addresses that it translates
 *
 * The class is what the addresses were found to lead to: behind an IOMMU at both ends of
 * every piece and each 2 MiB between, else everywhere.
 */
enum rashpa_class {
	RASHPA_CLASS_HOST = 1,
	RASHPA_CLASS_IOVA = 2,
	RASHPA_CLASS_PEER = 3,
	RASHPA_CLASS_BRIDGE = 4,
};

/** RASHPA_MAP_DEVICE - the memory must be a device's, not the host's: else EREMOTEIO */
#define RASHPA_MAP_DEVICE	_BITUL(0)
/**
 * RASHPA_MAP_PIN - the exporter does not move the memory while it is mapped. It may have to move
 * it before: most drivers of GPUs pin only in host memory. What it still ends, it revokes
 */
#define RASHPA_MAP_PIN		_BITUL(2)

/**
 * RASHPA_MAPPED_REMAPPED - the exporter handed out addresses of a BAR that the
 * importer's IOMMU does not know; the driver mapped them itself
 */
#define RASHPA_MAPPED_REMAPPED	_BITUL(0)
/**
 * RASHPA_MAPPED_COHERENT - the class is HOST or IOVA, but the memory is a device's that CPUs reach
 * as their own, or memory behind CXL, which looks the same
 */
#define RASHPA_MAPPED_COHERENT	_BITUL(1)

/**
 * struct rashpa_map_make - RASHPA_IOC_MAP_MAKE: translate a memory for this function
 * @head: flags: RASHPA_MAP_DEVICE, RASHPA_MAP_PIN
 * @fd: dma-buf fd of any exporter
 * @direction: enum rashpa_direction
 * @offset: first byte, a multiple of the page size
 * @length: bytes, a multiple of the page size; 0 for all from @offset on
 * @max_segment: longest segment in bytes, a multiple of the page size; 0 for any. Here and
 *	below the narrower limit counts, this one or the profile's
 * @boundary: power of two that no segment may cross, at least a page; 0 for none. One of
 *	one's own tells of addresses: needs what their mmap needs
 * @alignment: power of two that every address must be a multiple of; 0 for any. Likewise
 * @out_fd: the map; RASHPA_IOC_PROGRAM, mmap (struct rashpa_table), poll, read
 * @out_class: enum rashpa_class
 * @out_generation: of the new table, see struct rashpa_table
 * @out_segments: entries of the table
 * @out_id: number of the map among all of the driver, 1 to 2147483647, in the records of
 *	RASHPA_SOURCE_MAP; no two maps have the same at a time
 * @out_table_size: bytes to mmap for the whole table
 * @out_peer: with the classes PEER and BRIDGE the function that has the memory: domain
 *	<< 16 | bus << 8 | devfn
 * @out_peer_bar: and its BAR, -1 with the other classes
 * @out_flags: RASHPA_MAPPED_*
 *
 * The memory is not pinned, unless that is asked for. If the exporter moves it, the map is
 * revoked (see enum rashpa_map_state) and comes back by itself.
 *
 * The end of the map (its last fd and the last mapping of its table, also by death of
 * their holders) stops all DMA of the function (quiesce), or only the engines that have its
 * addresses (&struct rashpa_profile_engine), clears what PROGRAM wrote, and only then unmaps. A map
 * that was never programmed, and whose table was never mapped, ends
 * without stopping the function, which cannot know its addresses. Bus mastering is on while
 * there is a map or a channel.
 *
 * Errors: EBADF, EINVAL, ERANGE (not within the memory), EACCES (the dma-buf is
 * read-only and the function would write), EPERM (the profile has no quiesce
 * sequence: needs CAP_SYS_RAWIO; or a boundary or an alignment of one's own), ENODEV,
 * EIO (function is stuck: reset it; or it does not answer), EREMOTEIO (the exporter's
 * table is not true, or the memory is not a device's; see the reason), ENXIO (no path
 * between the two functions), EOVERFLOW (an address outside the DMA mask, or above what a bus on
 * the way carries), E2BIG (more than 16777216 segments), ETIMEDOUT (the exporter did not finish
 * moving the memory), EOPNOTSUPP (the exporter does not serve such importers), EAGAIN (the
 * memory's function is being reset), EHWPOISON (a page of it has a memory error),
 * ENOMEM, EDQUOT, EINTR, and what the exporter answers.
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

/** RASHPA_QUIESCE_MAP - end @map, and let its memory go */
#define RASHPA_QUIESCE_MAP	_BITUL(0)

/**
 * struct rashpa_quiesce - RASHPA_IOC_QUIESCE: stop all DMA of the function now
 * @head: flags: RASHPA_QUIESCE_MAP
 * @map: id of a map of this function, with RASHPA_QUIESCE_MAP; must be 0 without
 * @__reserved: must be zero
 * @out_time_ns: how long it took
 *
 * With RASHPA_QUIESCE_MAP only that map ends, whoever has its file, as it would with its last
 * fd; its state is RASHPA_MAP_STATE_REVOKED for good.
 *
 * Without a quiesce sequence in the profile, and where the sequence fails, bus
 * mastering is turned off; the next RASHPA_IOC_MAP_MAKE or RASHPA_IOC_CHANNEL_MAKE turns it on
 * again (after a failure: not before RESET).
 *
 * The whole function is not stopped by a user while it may have addresses of a map that another
 * one is charged with, unless he owns the node (or has CAP_FOWNER, or CAP_SYS_ADMIN): with
 * RASHPA_QUIESCE_MAP he ends what is his own.
 *
 * Errors: EPERM (a map of somebody else is programmed), ETIMEDOUT (it did not become idle, or does
 * not answer; bus mastering is off now), ENODEV, EINVAL; with RASHPA_QUIESCE_MAP: ENOENT (no such
 * map), EPERM (somebody else is charged with it: needs CAP_SYS_ADMIN).
 */
struct rashpa_quiesce {
	struct rashpa_head head;
	__u32 map;
	__u32 __reserved;
	__aligned_u64 out_time_ns;
};

/**
 * struct rashpa_reset - RASHPA_IOC_RESET: function reset
 * @head: no flags
 *
 * Quiesces first. Its maps stay valid, but the function has forgotten the entries that
 * PROGRAM wrote: program each map again, but those with RASHPA_PROGRAM_AGAIN. Its windows cannot
 * be reached during the reset: a CPU that touches one waits, maps of them by other functions are
 * revoked, and restored afterwards. After a failed quiesce the next RASHPA_IOC_MAP_MAKE or
 * RASHPA_IOC_CHANNEL_MAKE turns bus mastering on.
 *
 * Errors: EOPNOTSUPP (the function has no reset), EPERM (without CAP_SYS_RAWIO),
 * EAGAIN (somebody else resets or removes it), EIO (it does not answer in configuration
 * space: no reset was tried; or it does not become idle after the reset either), ENODEV,
 * and what the reset answers.
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
 * @RASHPA_MAP_STATE_VALID: the addresses may be used
 * @RASHPA_MAP_STATE_REVOKED: they may not: the exporter has ended them, or the function is
 *	gone. The driver tries for ten seconds to make them valid again, and once more whenever
 *	the exporter says that something has changed; RASHPA_IOC_RESTORE tries at once, and
 *	tells why it fails
 * @RASHPA_MAP_STATE_PROGRAMMED: only in records: the kernel has programmed it again, as
 *	RASHPA_PROGRAM_AGAIN asks for
 * @RASHPA_MAP_STATE_UNPROGRAMMED: only in records: it was to do so and could not; PROGRAM tells why
 */
enum rashpa_map_state {
	RASHPA_MAP_STATE_VALID = 1,
	RASHPA_MAP_STATE_REVOKED = 2,
	RASHPA_MAP_STATE_PROGRAMMED = 3,
	RASHPA_MAP_STATE_UNPROGRAMMED = 4,
};

/**
 * struct rashpa_table - what mmap of a map fd shows, read-only
 * @generation: changes whenever state or segments change; odd while the kernel
 *	changes them
 * @state: enum rashpa_map_state
 * @map_class: enum rashpa_class
 * @count: segments
 * @segment_size: bytes from one to the next; sizeof(struct rashpa_segment) or more
 * @__reserved: zero
 * @segment: the segments in order of the memory
 *
 * mmap is allowed with CAP_SYS_RAWIO, or if the profile discloses addresses; else
 * EPERM: use RASHPA_IOC_PROGRAM. A reader of addresses may give them to the function, which stops
 * when the map ends: without CAP_SYS_RAWIO mmap answers EBUSY while the function may
 * have addresses of a map that another user is charged with.
 *
 * read() of the map fd returns this header without segments, 64 bytes, and blocks (or is not
 * readable for poll) until its generation differs from the one read last.
 *
 * To read without a lock: read @generation; if odd, start again; read the rest; if
 * @generation has changed, start again. librashpa's rashpa_table_read() does so. The
 * segments never become more than there were at first.
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

/**
 * RASHPA_PROGRAM_AGAIN - the kernel does the same by itself when the function was reset, and when
 * the map was revoked and is valid again. See RASHPA_MAP_STATE_PROGRAMMED
 */
#define RASHPA_PROGRAM_AGAIN	_BITUL(0)

/**
 * struct rashpa_program - RASHPA_IOC_PROGRAM: the kernel writes a map's segments into the
 *	table of the function that the profile describes
 * @head: flags: RASHPA_PROGRAM_AGAIN
 * @first: index of the first entry to write
 * @out_entries: entries written; 1 if the function fetches addresses (RASHPA_DEVICE_FETCH)
 * @out_descriptors: descriptors of the map's ring, 0 if the function does not fetch addresses
 *
 * A map has at most one programmed place; a second call moves it. The entries are
 * cleared before the map goes. With RASHPA_PROGRAM_AGAIN the place stays the map's while it is
 * revoked; a second call without ends that.
 *
 * When the map ends, the engine that has its entries is stopped, or the function where the profile
 * has no engines. So the engine, or the function, is of one user at a time: EBUSY while it may have
 * addresses of a map that another user is charged with. Where there are engines, entries that are
 * not in one engine alone, or in one that is absent, are refused: EPERM. CAP_SYS_RAWIO lifts both.
 *
 * Memory of a ring is charged as RASHPA_RESOURCE_MEMORY to who made the map (EDQUOT), and lives as
 * long as the map. It is given back when the function, or the engine, has stopped and forgotten it.
 *
 * Errors: EPERM (entries of no engine), ENOENT (the profile has no table), EINVAL (a segment is not
 * what an entry without a length covers), ERANGE (more segments than entries), EBUSY (another map
 * is programmed there, or the engine is another user's), EOVERFLOW (an address, length or sum is
 * wider than its field, or no multiple of its unit), E2BIG (more segments than a ring may have
 * descriptors), ESTALE (the map is revoked: restore it; or the function was reset meanwhile: call
 * once more), EIO (the function does not answer: reset it), ENOMEM, EDQUOT, EINTR, ENODEV.
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
 * @out_generation: of the new table
 * @out_class: enum rashpa_class
 * @out_segments: entries of the table
 *
 * Nothing happens to a map that is valid. Maps are restored without being asked, too, unless the
 * function had to be cut off from memory (it has no quiesce sequence, or is stuck): then bus
 * mastering comes back with this call. What PROGRAM wrote was cleared either way: program the map
 * again, but one with RASHPA_PROGRAM_AGAIN.
 *
 * Errors: ENODEV (the function or the memory's is gone, or the map was ended for good), EAGAIN
 * (the memory's function is being reset), EIO (the function is stuck, or does not answer), EPERM
 * (it has no quiesce sequence: needs CAP_SYS_RAWIO), E2BIG (more segments than at first: make a
 * new map), and those of RASHPA_IOC_MAP_MAKE that tell of the memory.
 */
struct rashpa_restore {
	struct rashpa_head head;
	__aligned_u64 out_generation;
	__u32 out_class;
	__u32 out_segments;
};

/* --------------------------------------------------------- channel fd --- */

/** RASHPA_SOURCES_DEFAULT - sources and groups of a channel that does not say how many */
#define RASHPA_SOURCES_DEFAULT	64
/** RASHPA_SOURCES_MAX - sources and groups of one channel at most */
#define RASHPA_SOURCES_MAX	2048

/**
 * struct rashpa_channel_make - RASHPA_IOC_CHANNEL_MAKE: make an event channel
 * @head: no flags
 * @depth: records that the queue holds, 2 to 65536; 0 for 1024
 * @sources: how many sources and groups it can have, 1 to RASHPA_SOURCES_MAX; 0 for
 *	RASHPA_SOURCES_DEFAULT. Their ids are 1 to this
 * @out_fd: the channel; read, poll, mmap, RASHPA_IOC_SOURCE_ADD, RASHPA_IOC_EVENTFD_BIND
 * @__reserved: must be zero
 * @out_ring_size: bytes of &struct rashpa_ring and its records: mmap so much at offset 0,
 *	read-only
 * @out_consumer: mmap offset of &struct rashpa_consumer, for reading and writing
 * @out_consumer_size: bytes to mmap there, whole pages
 *
 * A channel of /dev/rashpa/fpgaN belongs to that function and ends with it. One of
 * /dev/rashpa/memory belongs to none: its sources are software, words that a timer or
 * RASHPA_IOC_LOOK looks at, groups, and with RASHPA_SOURCE_OF all those of any function.
 *
 * Errors: EPERM (the node was opened read-only), EINVAL, ENOMEM; of a function also: EPERM (the
 * profile has no quiesce sequence: needs CAP_SYS_RAWIO), EIO (it is stuck, or does not answer),
 * ENODEV.
 */
struct rashpa_channel_make {
	struct rashpa_head head;
	__u32 depth;
	__u32 sources;
	__s32 out_fd;
	__u32 __reserved;
	__aligned_u64 out_ring_size;
	__aligned_u64 out_consumer;
	__aligned_u64 out_consumer_size;
};

/**
 * enum rashpa_source - what can make events
 * @RASHPA_SOURCE_VECTOR: an interrupt vector; value = the vector's number
 * @RASHPA_SOURCE_DEVICE: state of the function; value = enum rashpa_device_event in the low 32
 *	bits; the others are zero, but for RASHPA_DEVICE_EVENT_ENGINE
 * @RASHPA_SOURCE_SOFTWARE: RASHPA_IOC_SIGNAL on the same channel
 * @RASHPA_SOURCE_LOCK: a word of host memory fulfils a condition; value = its position, see &struct
 *	rashpa_source_add
 * @RASHPA_SOURCE_MAP: state of a map of the function; value = its out_id << 32 | enum
 *	rashpa_map_state
 * @RASHPA_SOURCE_GROUP: in records: a group, see RASHPA_IOC_GROUP_MAKE; value = the position that
 *	all members have reached
 * @RASHPA_SOURCE_OVERRUN: in records: a member of a group has lapped the consumer; source =
 *	the member, value = its position, sequence = stacks that it has overrun so far
 * @RASHPA_SOURCE_FULL: in records: a member of a group has filled what the consumer has room for;
 *	source = the member, value = its position, sequence = by how much that is ahead of what was
 *	acknowledged
 * @RASHPA_SOURCE_DAMAGE: a page of a buffer has lost its contents to a memory error; value = its
 *	offset in the buffer. It is told whenever the kernel tells of it, and so may be several
 *	times. From then on who touches the page gets SIGBUS (BUS_MCEERR_AR), nobody else anything;
 *	maps go on, new ones of that page are refused (EHWPOISON). Of what was before tells
 *	RASHPA_INFO_DAMAGED
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
	RASHPA_SOURCE_DAMAGE = 9,
};

/**
 * enum rashpa_condition - when a lock slot makes an event
 * @RASHPA_CONDITION_CHANGED: the word is another than at the last look
 * @RASHPA_CONDITION_EQUAL: the word became equal to @value
 * @RASHPA_CONDITION_REACHED: the word became greater than or equal to @value, unsigned; then
 *	@value grows by @step until it is greater than the word, and the source waits again.
 *	With step 0 it waits until the word was less than @value in between.
 */
enum rashpa_condition {
	RASHPA_CONDITION_CHANGED = 1,
	RASHPA_CONDITION_EQUAL = 2,
	RASHPA_CONDITION_REACHED = 3,
};

/**
 * enum rashpa_device_event - values of RASHPA_SOURCE_DEVICE
 * @RASHPA_DEVICE_EVENT_QUIESCED: all DMA was stopped
 * @RASHPA_DEVICE_EVENT_RESET: a reset of the function has ended. The PCI core does not say
 *	whether it failed; RASHPA_IOC_RESET does
 * @RASHPA_DEVICE_EVENT_STUCK: the function did not stop, or does not answer; bus mastering is off
 * @RASHPA_DEVICE_EVENT_GONE: the function was removed; no more events of its vectors, its maps
 *	and its state will come. Words of memory that a timer looks at, and sources of other
 *	functions, go on until the channel is closed
 * @RASHPA_DEVICE_EVENT_ERROR: the PCI core reports an error of the function or its link
 * @RASHPA_DEVICE_EVENT_ENGINE: one engine was stopped, and the others were not: that with the index
 *	in the high 32 bits, see RASHPA_IOC_ENGINE_INFO
 */
enum rashpa_device_event {
	RASHPA_DEVICE_EVENT_QUIESCED = 1,
	RASHPA_DEVICE_EVENT_RESET = 2,
	RASHPA_DEVICE_EVENT_STUCK = 3,
	RASHPA_DEVICE_EVENT_GONE = 4,
	RASHPA_DEVICE_EVENT_ERROR = 5,
	RASHPA_DEVICE_EVENT_ENGINE = 6,
};

/** RASHPA_SOURCE_OF - the source is one of the function @device, not of the channel's own */
#define RASHPA_SOURCE_OF	_BITUL(0)
/** RASHPA_SOURCE_QUIET - no records: the source is there for groups and its own eventfd */
#define RASHPA_SOURCE_QUIET	_BITUL(1)
/** RASHPA_SOURCE_POLL - LOCK: look every @period_us, not at an interrupt */
#define RASHPA_SOURCE_POLL	_BITUL(2)
/**
 * RASHPA_SOURCE_LOOK - LOCK: look at each RASHPA_IOC_LOOK of the memory, not at an interrupt; with
 * RASHPA_SOURCE_POLL as well
 */
#define RASHPA_SOURCE_LOOK	_BITUL(3)
/**
 * RASHPA_SOURCE_ONE_SHOT - VECTOR, LOCK: rest after each event, until RASHPA_IOC_ARM. While all
 * that listen to a vector rest it is masked
 */
#define RASHPA_SOURCE_ONE_SHOT	_BITUL(4)

/** RASHPA_PERIOD_MIN - shortest @period_us */
#define RASHPA_PERIOD_MIN	20
/** RASHPA_PERIOD_MAX - longest @period_us */
#define RASHPA_PERIOD_MAX	1000000

/**
 * RASHPA_LISTENERS_VECTOR - sources without CAP_SYS_RESOURCE that may listen to one vector, of all
 * users; of one user half of that (module parameter ``user_limit_interrupt``). Each counts once
 * more for each group that it is a member of
 */
#define RASHPA_LISTENERS_VECTOR	64
/**
 * RASHPA_LISTENERS_USER - sources without CAP_SYS_RESOURCE that may LOOK at one memory, or listen
 * to the state or the maps of one function, of all users; of one user half of that (module
 * parameter ``user_limit_listeners``)
 */
#define RASHPA_LISTENERS_USER	256
/** RASHPA_LISTENERS_MAX - sources in all, those with CAP_SYS_RESOURCE included */
#define RASHPA_LISTENERS_MAX	2048

/**
 * struct rashpa_source_add - RASHPA_IOC_SOURCE_ADD: listen to a source
 * @head: flags: RASHPA_SOURCE_OF, RASHPA_SOURCE_QUIET, RASHPA_SOURCE_POLL, RASHPA_SOURCE_LOOK,
 *	RASHPA_SOURCE_ONE_SHOT
 * @kind: enum rashpa_source, up to MAP, or DAMAGE
 * @index: VECTOR: vector number. LOCK: the vector at whose interrupts the word is looked at;
 *	0 with RASHPA_SOURCE_POLL or RASHPA_SOURCE_LOOK. MAP: out_id of the map, or 0 for all. 0
 *	for the others
 * @out_id: id of the source in this channel's records, from 1 on
 * @__reserved: must be zero
 * @device: fd of /dev/rashpa/fpgaN, open for writing, with RASHPA_SOURCE_OF; else -1 or 0
 * @memory: LOCK: dma-buf fd of a buffer, pinned or lock memory of this driver; DAMAGE: of a buffer
 *	or lock memory; else -1 or 0
 * @offset: LOCK: of the word in the memory, bytes, a multiple of its width
 * @mask: LOCK: bits of the word that count; 0 for all
 * @value: LOCK: of the condition; no bits outside the mask, where there is one
 * @step: LOCK: see RASHPA_CONDITION_REACHED
 * @condition: LOCK: enum rashpa_condition
 * @bits: LOCK: width of the word, 32 or 64
 * @period_us: LOCK: RASHPA_PERIOD_MIN to RASHPA_PERIOD_MAX microseconds, with
 *	RASHPA_SOURCE_POLL; else 0
 * @budget: LOCK: part of one CPU in thousandths that looking may take, 1 to 1000, with
 *	RASHPA_SOURCE_POLL, 0 for 10; the period is stretched to keep it. Else 0
 *
 * All fields but @kind, @index and the fds are 0 for a kind that does not name them.
 *
 * A word is looked at in the interrupt handler (or by the timer, or in RASHPA_IOC_LOOK), before
 * waiters are woken: what comes together makes one event, and the value tells how far it is.
 * REACHED and CHANGED lose no position by that; EQUAL can miss a value that was there only between
 * two looks. A condition that is true already when the source is added is an event at once (with
 * POLL: at the first look).
 *
 * The *position* of a word is the word, masked. A word of 32 bits without a mask (0, or all bits)
 * is a counter that wraps: its position has 64 bits, begins with the word as it is when the source
 * is added, and follows it; the low 32 bits of the position are the word. This is right as long
 * as the word moves by less than 2^31 between two looks, in either direction. CHANGED and REACHED
 * tell and compare positions. EQUAL is for words that are no counters: the word itself.
 *
 * All timers together take no more than the module parameter ``poll_budget``: a source has its
 * part of that until it is deleted or its channel is closed, also when the function is gone.
 *
 * Each source costs time in the interrupt: at most RASHPA_LISTENERS_VECTOR may listen to one
 * vector, and RASHPA_LISTENERS_USER to the maps or the state of one function, or LOOK at one
 * memory, half of them of one user. Those with CAP_SYS_RESOURCE do not count there; in all there
 * are RASHPA_LISTENERS_MAX.
 *
 * A source with RASHPA_SOURCE_ONE_SHOT makes one event, and rests until RASHPA_IOC_ARM: a million
 * interrupts a second are for a consumer that is busy one, because the vector is masked while all
 * that listen to it rest. What came since the event before is in the record: with LOCK the
 * difference of the values, with VECTOR that of the sequences, in which interrupts count as one
 * that came while the vector was masked. It is no member of a group.
 *
 * Errors: EINVAL (also: a source of a function in a channel that has none, without
 * RASHPA_SOURCE_OF; an fd that is not what it should be), EBADF (an fd that is not open), EPERM
 * (@device was opened read-only), ERANGE (no such vector; outside the memory), EXDEV (memory of
 * somebody else, or not host memory), EACCES (memory that is not open for reading), EEXIST
 * (already in this channel; LOCK may be there several times), ENOSPC (more sources and groups than
 * the channel was made for, or listeners to the source), EDQUOT (``poll_budget``), ENODEV, and as
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
 * struct rashpa_source_del - RASHPA_IOC_SOURCE_DEL: stop listening
 * @head: no flags
 * @id: of the source or group
 * @__reserved: must be zero
 *
 * Records already queued stay. Also when the function of the channel was removed. Errors: ENOENT,
 * EINVAL, EBUSY (a member of a group).
 */
struct rashpa_source_del {
	struct rashpa_head head;
	__u32 id;
	__u32 __reserved;
};

/**
 * struct rashpa_source_info - RASHPA_IOC_SOURCE_INFO: what a source has done so far
 * @head: no flags
 * @id: of the source or group
 * @out_kind: enum rashpa_source
 * @out_index: as it was added
 * @out_device: N of /dev/rashpa/fpgaN whose source it is, of software and groups that of the
 *	channel; -1 for none
 * @out_events: since it was added, those without a record included
 * @out_lost: records that found no room
 * @out_value: of the last event
 * @out_looks: RASHPA_SOURCE_POLL: times the word was looked at
 * @out_look_ns: RASHPA_SOURCE_POLL: CPU time that took, without entering the interrupt
 * @out_since_ns: RASHPA_SOURCE_POLL: time since the source was added
 * @out_period_ns: RASHPA_SOURCE_POLL: the period now, stretched where the budget asks for it
 *
 * Errors: ENOENT.
 */
struct rashpa_source_info {
	struct rashpa_head head;
	__u32 id;
	__u32 out_kind;
	__u32 out_index;
	__s32 out_device;
	__aligned_u64 out_events;
	__aligned_u64 out_lost;
	__aligned_u64 out_value;
	__aligned_u64 out_looks;
	__aligned_u64 out_look_ns;
	__aligned_u64 out_since_ns;
	__aligned_u64 out_period_ns;
};

/**
 * struct rashpa_arm - RASHPA_IOC_ARM: a one-shot source shall tell of the next event
 * @head: no flags
 * @id: of a source with RASHPA_SOURCE_ONE_SHOT
 * @out_events: 1 if there is one at once, because something came while it rested: its record is
 *	queued, its eventfd signalled, and it rests again; else 0
 * @__reserved: must be zero
 *
 * Take what there is, then arm: nothing is lost between the two. What came before the call is
 * looked at by it, what comes later is heard of. Nothing happens to a source that does not rest.
 *
 * Errors: EINVAL (not one-shot), ENOENT.
 */
struct rashpa_arm {
	struct rashpa_head head;
	__u32 id;
	__u32 out_events;
	__aligned_u64 __reserved;
};

/**
 * struct rashpa_eventfd_bind - RASHPA_IOC_EVENTFD_BIND: signal an eventfd as well
 * @head: no flags
 * @fd: eventfd; -1 to stop
 * @id: source or group, or 0 for all of the channel
 * @every: signal once for so many events; 0: do not count them (1 if @delay_us is 0, too). Of a
 *	one-shot source there is no second one before it is armed
 * @delay_us: signal at the latest so many microseconds after the first event that was not
 *	signalled; 0: wait for @every events however long it takes; up to 10 s
 *
 * One eventfd a source and one for all; a second call replaces the first. Records are
 * queued all the same; the one for all is for them, so RASHPA_SOURCE_QUIET signals only the
 * source's. OVERRUN and FULL, which tell of a member of a group, signal only the one for all.
 *
 * When the channel's function is removed all its eventfds are signalled once more, whatever @every
 * and @delay_us say: read() or &struct rashpa_ring.gone tells. For the removal of another function
 * (RASHPA_SOURCE_OF) listen to its RASHPA_SOURCE_DEVICE. One that is replaced or stopped, or whose
 * source or channel ends, is signalled at once if there are events that @delay_us holds back.
 *
 * Errors: EBADF, EINVAL (not an eventfd), ENOENT (source), ENODEV (not with @fd -1).
 */
struct rashpa_eventfd_bind {
	struct rashpa_head head;
	__s32 fd;
	__u32 id;
	__u32 every;
	__u32 delay_us;
};

/** RASHPA_MEMBERS_MAX - members of one group */
#define RASHPA_MEMBERS_MAX	1024
/** RASHPA_FULL_NEVER - @full of a group that does not want to be told */
#define RASHPA_FULL_NEVER	0xffffffffffffffffULL
/** RASHPA_GROUP_DEPTH - groups one inside the other: this is told in the interrupt, too */
#define RASHPA_GROUP_DEPTH	4

/**
 * struct rashpa_member - of a group
 * @source: id of a source or group of the same channel
 * @__reserved: must be zero
 */
struct rashpa_member {
	__u32 source;
	__u32 __reserved;
};

/**
 * struct rashpa_group_make - RASHPA_IOC_GROUP_MAKE: one event when all members have got so far
 * @head: no flags
 * @members: pointer to @n_members of &struct rashpa_member
 * @n_members: 1 to RASHPA_MEMBERS_MAX
 * @member_size: bytes of one of them
 * @slots: stacks that fit into the destination: a member whose position is more than this
 *	ahead of what was acknowledged has lapped the consumer (OVERRUN); 0: not looked at
 * @full: a member whose position is so much or more ahead of what was acknowledged has filled
 *	what there is (FULL), in time to make the producer pause; up to @slots if that is given;
 *	0 for @slots. RASHPA_FULL_NEVER: not looked at, for producers that wait for credit, whose
 *	slots are full as a rule
 * @first: position at which all members and the consumer begin
 * @out_id: id in the records, from the same numbers as those of sources
 * @__reserved: must be zero
 *
 * Each member has a position, @first at least: a LOCK source the greatest of its events,
 * beginning with the last one before the group was made, with RASHPA_CONDITION_CHANGED if there
 * was none the word that it was added with (clear what an earlier run left there); a group its
 * position; any other source @first plus the number of its events since then. The group's position
 * is the smallest of them; when it is greater than @first, and whenever it grows, there is one
 * record, RASHPA_SOURCE_GROUP. A group that is made late tells at once of members that are
 * @full, or more than @slots, ahead of @first.
 *
 * FULL and OVERRUN are looked at with each event of a member, and told once: FULL when this event
 * took it there, OVERRUN for stacks that were not told before.
 *
 * A word that is written twice or not at all changes no position: with LOCK members (and
 * RASHPA_CONDITION_CHANGED) the group is right whatever interrupts arrive twice or never. An
 * interrupt that is counted twice is not noticed: members that are vectors rely on hardware.
 *
 * A source may be in several groups (4), a group in one, with at most RASHPA_GROUP_DEPTH groups one
 * inside the other. RASHPA_SOURCE_DEL ends the group, not its members.
 *
 * Errors: EINVAL, EFAULT, E2BIG (members have fields that this kernel does not know), ENOENT
 * (source), EEXIST (twice in the list), ENOSPC, ENOMEM.
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

/**
 * struct rashpa_ack - RASHPA_IOC_ACK: the consumer of a group has got so far
 * @head: no flags
 * @id: of the group
 * @__reserved: must be zero
 * @position: all stacks up to this one may be overwritten
 *
 * The same as a store to &struct rashpa_consumer, without a mapping.
 *
 * Errors: ENOENT.
 */
struct rashpa_ack {
	struct rashpa_head head;
	__u32 id;
	__u32 __reserved;
	__aligned_u64 position;
};

/**
 * struct rashpa_member_info - how far a member of a group is
 * @source: id
 * @__reserved: zero
 * @position: see &struct rashpa_group_make
 * @overruns: stacks that lapped the consumer
 * @time_ns: of its last event, 0 if there was none
 */
struct rashpa_member_info {
	__u32 source;
	__u32 __reserved;
	__aligned_u64 position;
	__aligned_u64 overruns;
	__aligned_u64 time_ns;
};

/**
 * struct rashpa_group_info - RASHPA_IOC_GROUP_INFO: how far a group is
 * @head: no flags
 * @members: pointer to room for @n_members of &struct rashpa_member_info; 0 for none
 * @id: of the group
 * @n_members: how many fit
 * @member_size: bytes from one to the next
 * @out_members: how many there are; no more than fit were stored
 * @out_position: that all members have reached
 * @out_ack: that the consumer has acknowledged
 * @out_events: global events so far
 * @out_overruns: of all members
 *
 * Events go on meanwhile: a member may be told farther than @out_position says.
 *
 * Errors: ENOENT, EFAULT, EINVAL, E2BIG (@member_size beyond a page), ENOMEM.
 */
struct rashpa_group_info {
	struct rashpa_head head;
	__aligned_u64 members;
	__u32 id;
	__u32 n_members;
	__u32 member_size;
	__u32 out_members;
	__aligned_u64 out_position;
	__aligned_u64 out_ack;
	__aligned_u64 out_events;
	__aligned_u64 out_overruns;
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
 *	anybody listened or not (SOFTWARE, LOCK, GROUP, and MAP of one map: since the source
 *	was added)
 * @time_ns: CLOCK_MONOTONIC, taken in the interrupt handler
 * @source: id from RASHPA_IOC_SOURCE_ADD
 * @kind: enum rashpa_source
 * @value: see enum rashpa_source
 * @lost: records of this source that this channel had no room for, so far
 *
 * read() returns whole records, as many as fit, of 40 bytes each: a record of read() never grows.
 * It blocks until there is one unless O_NONBLOCK is set (EAGAIN, also while another thread
 * reads). It returns no more than the queue holds. A buffer shorter than one record:
 * EINVAL. After RASHPA_DEVICE_EVENT_GONE of the channel's function, if it has one, and an empty
 * queue: ENODEV. When the queue is full the newest record is dropped and counted. PCI may merge
 * interrupts: @sequence counts those that arrived; what hardware wrote is counted by its lock slot.
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
 * struct rashpa_ring - what mmap of a channel shows at offset 0, read-only
 * @head: records queued so far
 * @lost: records that found no room, of all sources
 * @record: offset of record 0, bytes from the beginning of this struct
 * @record_size: bytes from record to record; sizeof(struct rashpa_event) or more
 * @slots: record n is at @record + (n & (@slots - 1)) * @record_size; a power of two
 * @depth: records that the queue holds
 * @gone: not 0 when the function of the channel was removed
 * @__reserved: zero
 *
 * A consumer that wants no system call for each event: load @head with acquire semantics; the
 * records from &struct rashpa_consumer.tail up to it are there. Read them, then store
 * tail with release semantics. When there is none, poll() the channel: it is ready exactly
 * when @head and tail differ, or @gone. Load @gone with acquire semantics before @head: the last
 * records come first. read() takes records from the same queue.
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
 * struct rashpa_consumer - what mmap of a channel shows at out_consumer
 * @tail: records consumed so far; the consumer's to write. A value that is not between
 *	&struct rashpa_ring.head minus depth and head is taken as head minus depth: nothing
 *	was consumed
 * @__reserved: zero
 * @ack: for the group with id n, at index n - 1: the position that the consumer has
 *	finished; the consumer's to write. As many as the channel can have sources
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
#define RASHPA_IOC_PROGRESS	_IO(RASHPA_IOC_TYPE, 0x03)
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
