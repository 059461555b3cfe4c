// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fpga/irq.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fpga/log.h"

#define SIGNALS		64		/* completions that the kernel keeps */

/*
 * Signal an eventfd of the client without waiting. A write would wait while the counter is full,
 * because the client may clear O_NONBLOCK. Asynchronous I/O never waits: the kernel signals the
 * eventfd when a read completes. Ours reads an empty file, so the read is complete when
 * io_submit() returns. A full counter stays full.
 */
static int signal_open(struct irq *irq)
{
	int err = 0;

	irq->empty = memfd_create("rashpa-fpga-empty", MFD_CLOEXEC);
	if (irq->empty < 0 || syscall(SYS_io_setup, SIGNALS, &irq->aio))
		err = -errno;
	if (err)
		log_msg("interrupts need a kernel with CONFIG_AIO, and fs.aio-max-nr with %u left",
			SIGNALS);
	if (err && irq->empty >= 0)
		close(irq->empty);
	return err;
}

static void signal_close(struct irq *irq)
{
	syscall(SYS_io_destroy, irq->aio);
	close(irq->empty);
}

static bool signal_fd(const struct irq *irq, int fd)
{
	struct io_event ended[SIGNALS];
	uint8_t nothing;
	struct iocb read = {
		.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = (uint32_t)irq->empty,
		.aio_buf = (uintptr_t)&nothing, .aio_nbytes = sizeof(nothing),
		.aio_flags = IOCB_FLAG_RESFD, .aio_resfd = (uint32_t)fd,
	};
	struct iocb *list = &read;

	if (syscall(SYS_io_submit, irq->aio, 1, &list) == 1)
		return true;
	/* the completions fill the queue: remove them */
	return errno == EAGAIN &&
	       syscall(SYS_io_getevents, irq->aio, 0, SIGNALS, ended, NULL) > 0 &&
	       syscall(SYS_io_submit, irq->aio, 1, &list) == 1;
}

int irq_init(struct irq *irq)
{
	unsigned int i;

	memset(irq, 0, sizeof(*irq));
	for (i = 0; i < DEVICE_VECTORS_MAX; i++)
		irq->event[i] = -1;
	irq->intx = -1;
	pthread_mutex_init(&irq->lock, NULL);
	return signal_open(irq);
}

void irq_destroy(struct irq *irq)
{
	irq_clear_all(irq);
	intx_assign(irq, -1);
	signal_close(irq);
	pthread_mutex_destroy(&irq->lock);
}

/*
 * Accept only an eventfd, which the kernel counts. A pipe could end us with a signal, and a
 * terminal or a file system of the client could block us for ever. No other file can have this
 * name, because other names begin with a slash or with their own kind.
 */
bool irq_possible(int fd)
{
	static const char wanted[] = "anon_inode:[eventfd]";
	char path[32], name[sizeof(wanted)];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, name, sizeof(name)) == sizeof(wanted) - 1 &&
	       !memcmp(name, wanted, sizeof(wanted) - 1);
}

/* Increment the counter before the interrupt can be seen. The lock is held. */
static void send_vector(struct irq *irq, uint32_t vector, _Atomic uint64_t *counter)
{
	if (vector >= DEVICE_VECTORS_MAX || irq->event[vector] < 0) {
		log_limited("vector %u: not set up, interrupt dropped", vector);
		return;
	}
	if (counter)
		++*counter;
	if (!signal_fd(irq, irq->event[vector]))
		log_limited("vector %u: interrupt lost", vector);
}

/*
 * INTx is a level: unmasking it while asserted signals it again. A signal masks it, as announced to
 * the client (AUTOMASKED). The lock is held.
 */
static void update_intx(struct irq *irq)
{
	if (!irq->pending || irq->masked || irq->disabled || irq->msix ||
	    irq->intx < 0)
		return;
	irq->masked = true;
	if (!signal_fd(irq, irq->intx))
		log_limited("INTx: interrupt lost");
}

void irq_send(struct irq *irq, uint32_t vector, _Atomic uint64_t *counter)
{
	pthread_mutex_lock(&irq->lock);
	if (irq->pin && !irq->msix) {
		++*counter;
		irq->pending = true;
		update_intx(irq);
	} else if (irq->msix) {
		send_vector(irq, vector, counter);
	} else {
		log_limited("vector %u: MSI-X is not enabled, interrupt dropped", vector);
	}
	pthread_mutex_unlock(&irq->lock);
}

void irq_control(struct irq *irq, bool pin, bool disabled, bool msix)
{
	pthread_mutex_lock(&irq->lock);
	irq->pin = pin;
	irq->disabled = disabled;
	irq->msix = msix;
	update_intx(irq);
	pthread_mutex_unlock(&irq->lock);
}

void intx_clear(struct irq *irq)
{
	pthread_mutex_lock(&irq->lock);
	irq->pending = false;
	pthread_mutex_unlock(&irq->lock);
}

bool intx_pending(struct irq *irq)
{
	bool pending;

	pthread_mutex_lock(&irq->lock);
	pending = irq->pending;
	pthread_mutex_unlock(&irq->lock);
	return pending;
}

void intx_mask(struct irq *irq, bool on)
{
	pthread_mutex_lock(&irq->lock);
	irq->masked = on;
	update_intx(irq);
	pthread_mutex_unlock(&irq->lock);
}

/* A new listener starts unmasked. */
void intx_assign(struct irq *irq, int fd)
{
	pthread_mutex_lock(&irq->lock);
	if (irq->intx >= 0)
		close(irq->intx);
	irq->intx = fd;
	irq->masked = false;
	update_intx(irq);
	pthread_mutex_unlock(&irq->lock);
}

/* Act as if INTx had been asserted for a moment: the client tests its interrupt path. */
void intx_trigger(struct irq *irq)
{
	pthread_mutex_lock(&irq->lock);
	if (irq->intx >= 0 && !signal_fd(irq, irq->intx))
		log_limited("INTx: interrupt lost");
	pthread_mutex_unlock(&irq->lock);
}

void irq_trigger(struct irq *irq, uint32_t vector)
{
	pthread_mutex_lock(&irq->lock);
	send_vector(irq, vector, NULL);
	pthread_mutex_unlock(&irq->lock);
}

void irq_assign(struct irq *irq, uint32_t vector, int fd)
{
	pthread_mutex_lock(&irq->lock);
	if (irq->event[vector] >= 0)
		close(irq->event[vector]);
	irq->event[vector] = fd;
	pthread_mutex_unlock(&irq->lock);
}

void irq_clear_all(struct irq *irq)
{
	uint32_t i;

	for (i = 0; i < DEVICE_VECTORS_MAX; i++)
		irq_assign(irq, i, -1);
}
