/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host as a device reaches it (device.h): memory mapped for DMA by bus address, bus mastering,
 * and interrupts.
 *
 * host.lock protects the first two. A transaction holds it for reading while it copies at most
 * HOST_BURST bytes; the protocol thread is the only writer. So when an unmap or
 * a cleared bus master bit has been answered, no earlier access is in flight any more.
 * host_exclude() is the same for changes by a device that affect its transactions.
 *
 * Regions without a file descriptor (BARs of other devices) are an exception: messages access them.
 * The lock is dropped while waiting for the answer, because the answer may need the
 * protocol thread, which may be waiting for the lock; the host looks up the address itself when
 * it serves such a message.
 */
#ifndef HOST_H
#define HOST_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fpga/device.h"
#include "fpga/irq.h"

#define HOST_REGIONS	65535u		/* as VFIO allows a container (dma_entry_limit) */

/* How the server asks the client; all may be called while host.lock is held but dma. */
struct host_wire {
	int (*dma)(void *wire, bool write, uint64_t addr, void *data, size_t length);
	void (*abort)(void *wire, bool on);
	void (*link)(void *wire, bool up);
};

struct host_backing;
struct host_region;

struct host {
	pthread_rwlock_t lock;
	/* written under the lock; polls may read it without */
	_Atomic bool master;
	struct host_region *regions;	/* sorted by address, no overlaps */
	size_t count, room;
	_Atomic size_t last;		/* last hit */
	struct host_backing *backings;
	/* bytes of the largest backing so far; written under the lock */
	_Atomic uint64_t mapped_most;
	struct irq irq;
	/* as long as a server runs */
	const struct host_wire *wire;
	void *server;
};

int host_init(struct host *host);
void host_destroy(struct host *host);
void host_set_wire(struct host *host, const struct host_wire *wire, void *server);

/* for the protocol thread; the lock is taken inside */
int host_map(struct host *host, uint64_t addr, uint64_t size, uint64_t offset, uint32_t prot,
	     int fd);
void host_unmap(struct host *host, uint64_t addr, uint64_t size);
void host_unmap_all(struct host *host);
void host_set_master(struct host *host, bool on);

#endif /* HOST_H */
