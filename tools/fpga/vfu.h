/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Server side of the vfio-user protocol, version 0.0, for one client at a time, as far
 * as a PCI function needs it. The specification comes with QEMU: docs/interop/vfio-user.
 *
 * The protocol thread receives; it and the device's threads send. Locks, both innermost:
 *   send_lock   a message leaves as a whole
 *   dma_lock    the one DMA message under way (the device asks, the protocol thread
 *		 hands over the answer), and whether there is a client at all
 */
#ifndef VFU_H
#define VFU_H

#include <stdbool.h>

#include "fpga/host.h"

struct vfu;

/* @end: a descriptor that can be read when nothing is to be waited for any more; -1: never */
struct vfu *vfu_new(struct device *device, struct host *host, int end);
void vfu_free(struct vfu *vfu);

/* for the protocol thread */
void vfu_connect(struct vfu *vfu, int fd);	/* fd becomes the server's */
void vfu_disconnect(struct vfu *vfu);
bool vfu_connected(const struct vfu *vfu);
int vfu_fd(const struct vfu *vfu);
int vfu_receive(struct vfu *vfu);		/* what there is; < 0: disconnect */

#endif /* VFU_H */
