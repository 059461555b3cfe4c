/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interface of rashpa_liar.ko for tests: an exporter of dma-bufs that gives false tables on
 * request, a slow importer, and a bus with altered addresses.
 */
#ifndef RASHPA_LIAR_H
#define RASHPA_LIAR_H

#include <linux/ioctl.h>
#include <linux/types.h>

/** RASHPA_LIAR_LENGTH_MAX - maximum bytes of an export */
#define RASHPA_LIAR_LENGTH_MAX	(1 << 22)

/**
 * enum rashpa_liar_kind - the table that the exporter gives to importers
 * @RASHPA_LIAR_HONEST: host memory, mapped for the importer, in one piece
 * @RASHPA_LIAR_SCATTERED: the same, its pages in reverse order: one piece each
 * @RASHPA_LIAR_SHORT: the same in one piece, without the last page
 * @RASHPA_LIAR_EMPTY: one half, nothing, the other half, nothing
 * @RASHPA_LIAR_NOTHING: one entry of no bytes
 * @RASHPA_LIAR_BAR: the bare address of a BAR, not mapped for the importer
 * @RASHPA_LIAR_MIX: host memory first, from the middle on a BAR
 * @RASHPA_LIAR_ADDRESS: any address, not mapped for the importer
 * @RASHPA_LIAR_NO_PIN: pinning fails
 * @RASHPA_LIAR_NO_MAP: mapping fails
 * @RASHPA_LIAR_NO_ATTACH: attaching fails
 * @RASHPA_LIAR_COHERENT: memory of a device with pages, coherent for CPUs; its addresses lead
 *	nowhere. Only as the kind of an export; EOPNOTSUPP where the kernel cannot
 * @RASHPA_LIAR_LOW: as HONEST, below 4 GiB; only as the kind of an export
 */
enum rashpa_liar_kind {
	RASHPA_LIAR_HONEST = 0,
	RASHPA_LIAR_SCATTERED = 1,
	RASHPA_LIAR_SHORT = 2,
	RASHPA_LIAR_EMPTY = 3,
	RASHPA_LIAR_NOTHING = 4,
	RASHPA_LIAR_BAR = 5,
	RASHPA_LIAR_MIX = 6,
	RASHPA_LIAR_ADDRESS = 7,
	RASHPA_LIAR_NO_PIN = 8,
	RASHPA_LIAR_NO_MAP = 9,
	RASHPA_LIAR_NO_ATTACH = 10,
	RASHPA_LIAR_COHERENT = 11,
	RASHPA_LIAR_LOW = 12,
	RASHPA_LIAR_KINDS
};

/**
 * enum rashpa_liar_model - requirements of the exporter for importers
 * @RASHPA_LIAR_MOVABLE: nothing; it moves its memory, unless that is pinned
 * @RASHPA_LIAR_STATIC: a PCI function that takes tables without pages, and peer-to-peer; the
 *	exporter never moves anything and cannot pin, as NVIDIA's
 * @RASHPA_LIAR_MIGRATES: a pin moves the memory to the host, whatever its kind, as amdgpu's
 * @RASHPA_LIAR_REVOKES: a callback for the end of a mapping, as VFIO's
 */
enum rashpa_liar_model {
	RASHPA_LIAR_MOVABLE = 0,
	RASHPA_LIAR_STATIC = 1,
	RASHPA_LIAR_MIGRATES = 2,
	RASHPA_LIAR_REVOKES = 3,
	RASHPA_LIAR_MODELS
};

/**
 * struct rashpa_liar_export - RASHPA_LIAR_EXPORT: make a dma-buf
 * @kind: enum rashpa_liar_kind
 * @bdf: function whose BAR is meant: domain << 16 | bus << 8 | devfn; 0 for none
 * @bar: 0 to 5
 * @error: positive errno that failing calls answer with, 1 to 4095
 * @offset: in the BAR, whole pages
 * @length: bytes of the dma-buf, whole pages, two at least; mmap maps its host memory
 * @address: address that RASHPA_LIAR_ADDRESS gives to importers
 * @out_bar_address: bus address of the BAR at @offset
 * @out_bar_length: bytes from there to the end of the BAR
 * @out_fd: the dma-buf
 * @model: enum rashpa_liar_model
 *
 * Errors: EPERM (without CAP_SYS_ADMIN), EINVAL, ENODEV (no such function), ERANGE
 * (outside the BAR), ENOMEM, EOPNOTSUPP.
 */
struct rashpa_liar_export {
	__u32 kind;
	__u32 bdf;
	__u32 bar;
	__u32 error;
	__aligned_u64 offset;
	__aligned_u64 length;
	__aligned_u64 address;
	__aligned_u64 out_bar_address;
	__aligned_u64 out_bar_length;
	__s32 out_fd;
	__u32 model;
};

/**
 * struct rashpa_liar_state - RASHPA_LIAR_REVOKE, RASHPA_LIAR_ALLOW, RASHPA_LIAR_MOVE,
 *	RASHPA_LIAR_COUNT
 * @fd: dma-buf of RASHPA_LIAR_EXPORT
 * @kind: ALLOW, MOVE: kind from now on, enum rashpa_liar_kind; else 0
 * @out_mapped: importers' mappings now
 * @out_pinned: importers' pins now
 *
 * REVOKE ends all mappings; new ones fail with @error of the export until ALLOW. MOVE ends all
 * mappings; importers can map again at once. MOVE acts as a driver that must give memory back to
 * the system, which any allocation can demand.
 *
 * Errors: EPERM, EBADF, EINVAL.
 */
struct rashpa_liar_state {
	__s32 fd;
	__u32 kind;
	__u32 out_mapped;
	__u32 out_pinned;
};

/**
 * struct rashpa_liar_show - RASHPA_LIAR_SHOW: mmap of this file maps a dma-buf of any exporter
 * @fd: dma-buf; drivers of GPUs import one in the same way and map it for their users
 * @__reserved: must be zero
 *
 * Errors: EPERM, EBADF, EINVAL, EBUSY (the file maps one already).
 */
struct rashpa_liar_show {
	__s32 fd;
	__u32 __reserved;
};

/**
 * struct rashpa_liar_fence - RASHPA_LIAR_FENCE, RASHPA_LIAR_IMPORT, RASHPA_LIAR_SIGNAL
 * @fd: FENCE, IMPORT: dma-buf of any exporter; SIGNAL: 0
 * @bdf: IMPORT: function that imports it, bound to a driver; else 0
 *
 * FENCE marks the memory as still moving to where it is mapped; SIGNAL completes the move. IMPORT
 * maps a dma-buf; when the exporter ends the mapping, the DMA continues until SIGNAL, which
 * releases the memory. An open file has at most one of them, and its close ends it.
 *
 * Errors: EPERM, EBADF, EINVAL, EBUSY (the file has one already), ENODEV (no such function),
 * ENOMEM, and errors of the exporter.
 */
struct rashpa_liar_fence {
	__s32 fd;
	__u32 bdf;
};

/**
 * struct rashpa_liar_bus - RASHPA_LIAR_BUS: set false properties of a bus
 * @bdf: function
 * @bar: BAR of the function, 0 to 5
 * @limit: last address that the bus carries from the function, 0 for any
 * @offset: CPU address minus bus address, for the BAR and all else in the same window of the host
 *	bridge
 *
 * The change lasts until both are 0 again.
 *
 * Errors: EPERM, EINVAL, ENODEV (no such function, no such window).
 */
struct rashpa_liar_bus {
	__u32 bdf;
	__u32 bar;
	__aligned_u64 limit;
	__aligned_u64 offset;
};

#define RASHPA_LIAR_EXPORT	_IOWR(0xE8, 0, struct rashpa_liar_export)
#define RASHPA_LIAR_REVOKE	_IOWR(0xE8, 1, struct rashpa_liar_state)
#define RASHPA_LIAR_ALLOW	_IOWR(0xE8, 2, struct rashpa_liar_state)
#define RASHPA_LIAR_COUNT	_IOWR(0xE8, 3, struct rashpa_liar_state)
#define RASHPA_LIAR_SHOW	_IOW(0xE8, 4, struct rashpa_liar_show)
#define RASHPA_LIAR_FENCE	_IOW(0xE8, 5, struct rashpa_liar_fence)
#define RASHPA_LIAR_IMPORT	_IOW(0xE8, 6, struct rashpa_liar_fence)
#define RASHPA_LIAR_SIGNAL	_IOW(0xE8, 7, struct rashpa_liar_fence)
#define RASHPA_LIAR_BUS		_IOW(0xE8, 8, struct rashpa_liar_bus)
#define RASHPA_LIAR_MOVE	_IOWR(0xE8, 9, struct rashpa_liar_state)

#endif /* RASHPA_LIAR_H */
