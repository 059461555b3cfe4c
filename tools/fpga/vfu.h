/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Server side of the vfio-user protocol, version 0.0, for one client at a time, as far
 * as a PCI function needs it. The specification comes with QEMU: docs/interop/vfio-user.
 *
 * The protocol thread receives; both threads send. Locks, all innermost:
 *   send_lock   a message leaves as a whole
 *   dma_lock    the one DMA message under way (the engine asks, the protocol thread
 *		 hands over the answer), and whether there is a client at all
 *   irq_lock    the eventfds of the interrupt vectors, the state of INTx
 */
#ifndef VFU_H
#define VFU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fpga;
struct vfu;

#define VFU_PATIENCE	5	/* seconds for the client to take or answer a message */

struct vfu *vfu_new(struct fpga *fpga);
void vfu_free(struct vfu *vfu);

/* for the protocol thread */
void vfu_connect(struct vfu *vfu, int fd);	/* fd becomes the server's */
void vfu_disconnect(struct vfu *vfu);
bool vfu_connected(const struct vfu *vfu);
int vfu_fd(const struct vfu *vfu);
int vfu_receive(struct vfu *vfu);		/* what there is; < 0: disconnect */
void vfu_dma_abort(struct vfu *vfu, bool on);	/* refuse, also the one under way */
void vfu_intx_control(struct vfu *vfu, bool disabled, bool msix);	/* as the host wrote */
void vfu_intx_clear(struct vfu *vfu);
bool vfu_intx_pending(struct vfu *vfu);

/* for the engine */
int vfu_dma(struct vfu *vfu, bool write, uint64_t addr, void *data, size_t length);
/* The vector; or INTx if there is one, and MSI-X is not enabled. */
void vfu_interrupt(struct vfu *vfu, uint32_t vector, _Atomic uint64_t *counter);

#endif /* VFU_H */
