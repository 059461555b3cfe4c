/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * /dev/rashpa-bare: measures the kernel's calls that map a dma-buf for a PCI function, and
 * nothing else; and sends interrupts without a board. Shared by the module and by rashpa-bench.
 */
#ifndef RASHPA_BARE_H
#define RASHPA_BARE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define RASHPA_BARE_PATH	"/dev/rashpa-bare"
/** RASHPA_BARE_REPEAT_MAX - repetitions of one call */
#define RASHPA_BARE_REPEAT_MAX	10000

/**
 * struct rashpa_bare - RASHPA_BARE_MAP: attach, map, unmap, detach
 * @fd: dma-buf fd of any exporter
 * @direction: 0 both, 1 the function writes the memory, 2 it reads it
 * @bdf: the PCI function, bound to a driver: domain << 16 | bus << 8 | devfn
 * @repeat: 1 to RASHPA_BARE_REPEAT_MAX
 * @out_map_ns: time of dma_buf_attach() and mapping, sum of all repetitions
 * @out_unmap_ns: time of unmapping and dma_buf_detach(), sum of all repetitions
 * @out_segments: entries of the table
 * @__reserved: must be zero
 *
 * Errors: EPERM (without CAP_SYS_ADMIN), EINVAL, EBADF, ENODEV (no such function, or
 * no driver bound to it), EINTR, and errors of the exporter.
 */
struct rashpa_bare {
	__s32 fd;
	__u32 direction;
	__u32 bdf;
	__u32 repeat;
	__aligned_u64 out_map_ns;
	__aligned_u64 out_unmap_ns;
	__u32 out_segments;
	__u32 __reserved;
};

#define RASHPA_BARE_MAP		_IOWR(0xE7, 0x80, struct rashpa_bare)

/*
 * The processor sends itself the interrupt of this number, which is one of MSI or MSI-X; 0: none,
 * which measures the call alone. Errors: EPERM, EINVAL (no such interrupt).
 */
#define RASHPA_BARE_FIRE	_IO(0xE7, 0x81)

#endif /* RASHPA_BARE_H */
