/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What processes of one machine share. */
#ifndef BUILDER_SHM_H
#define BUILDER_SHM_H

#include <sys/types.h>

#include "internal.h"

#define SHM_MAGIC		0x31626473u	/* "sdb1" */

/* One writes tail and entries, the other one head and status. */
struct shm_entry {
	uint64_t offset;	/* in the arena; an address, if it is one that cannot be mapped */
	uint32_t arena;
	uint32_t length;
	uint32_t tag;
	int32_t status;
};

struct shm_ring {
	alignas(64) _Atomic uint32_t tail;
	alignas(64) _Atomic uint32_t head;
	alignas(64) struct shm_entry entry[RASHPA_FABRIC_DEPTH];
};

struct shm_window {
	alignas(64) _Atomic uint32_t asleep;	/* the owner's thread */
	/* the owner's: a rank and 1, because of which it leaves; 0: none */
	_Atomic uint32_t blamed;
	struct shm_ring ring[];			/* of each peer, to the owner */
};

struct shm_hello {
	uint32_t magic, rank, size, arenas;
	uint64_t probe;			/* address of this word of the sender's: what it is */
	uint64_t length[ARENAS];
	uint8_t mappable[ARENAS];
};

struct shm_peer {
	int socket, bell;
	pid_t pid;
	struct shm_window *window;	/* the peer's */
	struct shm_ring *in, *out;
	uint32_t head;			/* of in */
	uint32_t tail, acknowledged;	/* of out */
	bool news;			/* that the peer has to hear */
	uint32_t arenas;
	uint64_t length[ARENAS];
	const uint8_t *base[ARENAS];	/* NULL: read through the kernel */
};

struct shm {
	int listener, bell, epoll, window_fd;
	struct shm_window *window;
	size_t window_bytes;
	uint64_t probe;
	uint32_t looks;
};

#endif /* BUILDER_SHM_H */
