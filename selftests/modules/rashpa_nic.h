/* SPDX-License-Identifier: GPL-2.0-only */
/* Interface of rashpa_nic.ko for path_test: importers of dma-bufs that act as network cards. */
#ifndef RASHPA_NIC_H
#define RASHPA_NIC_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * enum rashpa_nic_how - how a card imports memory
 * @RASHPA_NIC_REVOCABLE: handles page faults (on-demand paging): when its mapping ends, it stops
 *	before the callback returns, and can map again
 * @RASHPA_NIC_PINNED: pins, and ignores the end of its mapping, as most cards do
 * @RASHPA_NIC_REVOKED_ONCE: pins, stops when its mapping ends, and cannot map again
 * @RASHPA_NIC_STATIC: does not support move notification
 * @RASHPA_NIC_LATE: as REVOCABLE, but keeps the mapping until RASHPA_NIC_LET_GO
 */
enum rashpa_nic_how {
	RASHPA_NIC_REVOCABLE = 0,
	RASHPA_NIC_PINNED = 1,
	RASHPA_NIC_REVOKED_ONCE = 2,
	RASHPA_NIC_STATIC = 3,
	RASHPA_NIC_LATE = 4,
	RASHPA_NIC_HOWS
};

/**
 * struct rashpa_nic_import - RASHPA_NIC_IMPORT: map a dma-buf, until the file is closed
 * @fd: dma-buf of any exporter
 * @bdf: function that imports it, bound to a driver: domain << 16 | bus << 8 | devfn
 * @how: enum rashpa_nic_how
 * @out_deaf: an importer without a callback is possible in this kernel; written on failure, too
 *
 * Errors: EPERM (without CAP_SYS_ADMIN), EINVAL, EBADF, EBUSY (the file has one already),
 * ENODEV (no such function, or no driver bound to it), ENOMEM, and errors of the exporter.
 */
struct rashpa_nic_import {
	__s32 fd;
	__u32 bdf;
	__u32 how;
	__u32 out_deaf;
};

/**
 * struct rashpa_nic_state - RASHPA_NIC_STATE, RASHPA_NIC_AGAIN, RASHPA_NIC_LET_GO
 * @out_told: number of mappings that the exporter ended
 * @out_mapped: 1 while the memory is mapped
 * @out_address: address of its first byte while it is mapped
 *
 * AGAIN maps it again, LET_GO unmaps it.
 *
 * Errors: EPERM, EINVAL (nothing was imported), EBUSY (it is mapped), and errors of the
 * exporter.
 */
struct rashpa_nic_state {
	__u32 out_told;
	__u32 out_mapped;
	__aligned_u64 out_address;
};

#define RASHPA_NIC_IMPORT	_IOWR(0xE9, 0, struct rashpa_nic_import)
#define RASHPA_NIC_STATE	_IOR(0xE9, 1, struct rashpa_nic_state)
#define RASHPA_NIC_AGAIN	_IOR(0xE9, 2, struct rashpa_nic_state)
#define RASHPA_NIC_LET_GO	_IOR(0xE9, 3, struct rashpa_nic_state)

#endif /* RASHPA_NIC_H */
