/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host as a device reaches it, by bus address: what it has mapped for DMA, and whether the
 * function is a bus master.
 *
 * host.lock protects both. Who makes a transaction reads, and holds it while it copies, at most
 * HOST_BURST bytes at a time; the protocol thread is the only writer. So when an unmap or a
 * cleared bus master bit has been answered, nothing that was granted before is in flight any
 * more. host_exclude() is the same for a device that changes what its transactions depend on.
 *
 * The one exception are regions without a file descriptor (BARs of other devices), which are
 * reached by messages. The lock is dropped while the answer is awaited, because it may need the
 * protocol thread, which may be waiting for the lock; the host looks up the address itself when
 * it serves such a message.
 */
#ifndef HOST_H
#define HOST_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_BURST	(256u << 10)	/* bytes copied under one hold of the lock */

/* how a transaction is made, and what a region allows */
#define HOST_READ	1u		/* as VFIO_DMA_MAP_FLAG_READ */
#define HOST_WRITE	2u		/* as VFIO_DMA_MAP_FLAG_WRITE */
#define HOST_WORDS	4u		/* a write of 64-bit words, visible from the first to the last */
#define HOST_LEFT	8u		/* it left while bus mastering was on */

enum host_answer {
	HOST_DONE,
	HOST_NOTHING,			/* nothing is there, or it may not be reached so */
	HOST_NO_MASTER,			/* bus mastering is off */
	HOST_GONE,			/* cut short by a reset */
};

struct vfu;
struct host_backing;
struct host_region;

struct host {
	pthread_rwlock_t lock;
	atomic_bool master;		/* written under the lock; who only waits for it needs none */
	struct host_region *regions;	/* sorted by address, no overlaps */
	size_t count, room;
	_Atomic size_t last;		/* last hit */
	struct host_backing *backings;
	struct vfu *vfu;
};

int host_init(struct host *host, struct vfu *vfu);
void host_destroy(struct host *host);

/* for the protocol thread; the lock is taken inside */
int host_map(struct host *host, uint64_t addr, uint64_t size, uint64_t offset, uint32_t prot,
	     int fd);
void host_unmap(struct host *host, uint64_t addr, uint64_t size);
void host_unmap_all(struct host *host);
void host_set_master(struct host *host, bool on);

void host_begin(struct host *host);	/* nothing is taken away until host_end() */
void host_end(struct host *host);
void host_exclude(struct host *host);	/* no transaction is under way until host_end() */

/*
 * Between host_begin() and host_end(), which may be interrupted. All of it is looked up before
 * the first byte moves: refused means not executed. @refused: where, unless it is NULL.
 */
enum host_answer host_access(struct host *host, unsigned int how, uint64_t addr, void *data,
			     size_t length, uint64_t *refused);
enum host_answer host_check(struct host *host, unsigned int how, uint64_t addr, uint64_t length,
			    uint64_t *refused);

#endif /* HOST_H */
