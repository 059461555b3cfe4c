/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Interrupts of the function: eventfds of the MSI-X vectors, and the state of INTx. The lock is
 * innermost; senders and the protocol thread take it.
 */
#ifndef IRQ_H
#define IRQ_H

#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fpga/device.h"

struct irq {
	pthread_mutex_t lock;
	int event[DEVICE_VECTORS_MAX];
	int intx;			/* eventfd */
	bool pending;			/* INTx is asserted until software clears it */
	bool masked;			/* INTx, by its own signal, or by the client */
	bool disabled;			/* INTx, in the command register */
	bool pin;			/* there is INTx */
	bool msix;			/* enabled */
	aio_context_t aio;
	int empty;			/* a file without a byte */
};

int irq_init(struct irq *irq);
void irq_destroy(struct irq *irq);

/* for a device: the vector; or INTx if there is one, and MSI-X is not enabled */
void irq_send(struct irq *irq, uint32_t vector, _Atomic uint64_t *counter);
void intx_clear(struct irq *irq);
bool intx_pending(struct irq *irq);

/* for the protocol thread; descriptors become the irq's */
bool irq_possible(int fd);
void irq_assign(struct irq *irq, uint32_t vector, int fd);	/* -1: none any more */
void irq_clear_all(struct irq *irq);
void irq_trigger(struct irq *irq, uint32_t vector);
void irq_control(struct irq *irq, bool pin, bool disabled, bool msix);	/* as the host wrote */
void intx_assign(struct irq *irq, int fd);
void intx_mask(struct irq *irq, bool on);
void intx_trigger(struct irq *irq);

#endif /* IRQ_H */
