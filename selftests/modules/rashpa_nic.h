/* SPDX-License-Identifier: GPL-2.0-only */
/* Between path_test and rashpa_nic.ko: importers of dma-bufs as network cards are. */
#ifndef RASHPA_NIC_H
#define RASHPA_NIC_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * enum rashpa_nic_how - how a card imports memory
 * @RASHPA_NIC_REVOCABLE: it faults pages in by itself (on-demand paging): told that its mapping
 *	ends, it has stopped before it answers, and can map again
 * @RASHPA_NIC_PINNED: it pins, and goes on whatever it is told: most of them
 * @RASHPA_NIC_REVOKED_ONCE: it pins, stops when it is told, and does not come back
 * @RASHPA_NIC_STATIC: it knows nothing of memory that moves
 * @RASHPA_NIC_LATE: as REVOCABLE, but it lets go of the mapping when RASHPA_NIC_LET_GO says so
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
 * @fd: dma-buf of anybody
 * @bdf: function that imports it, bound to a driver: domain << 16 | bus << 8 | devfn
 * @how: enum rashpa_nic_how
 * @out_deaf: an importer without a callback is possible in this kernel; written on failure, too
 *
 * Errors: EPERM (without CAP_SYS_ADMIN), EINVAL, EBADF, EBUSY (there is one already),
 * ENODEV (no such function, or no driver bound to it), ENOMEM, and what the exporter answers.
 */
struct rashpa_nic_import {
	__s32 fd;
	__u32 bdf;
	__u32 how;
	__u32 out_deaf;
};

/**
 * struct rashpa_nic_state - RASHPA_NIC_STATE, RASHPA_NIC_AGAIN, RASHPA_NIC_LET_GO
 * @out_told: how often the exporter has ended the mapping
 * @out_mapped: whether it is mapped
 * @out_address: of its first byte, while it is
 *
 * AGAIN maps it again, LET_GO unmaps it.
 *
 * Errors: EPERM, EINVAL (nothing was imported), EBUSY (it is mapped), and what the exporter
 * answers.
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
