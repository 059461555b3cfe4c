/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory that processes of one machine share. */
#ifndef BUILDER_SHM_H
#define BUILDER_SHM_H

#include <sys/types.h>

#include "fabric/internal.h"

#define SHM_MAGIC		0x31626473u	/* "sdb1" */

/* The sender writes tail and entries, the receiver head and status. */
struct shm_entry {
	uint64_t offset;	/* in the arena; an address if peers cannot map the arena */
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
	alignas(64) _Atomic uint32_t asleep;	/* the owner's thread sleeps */
	/* rank that makes the owner leave, plus 1; 0: none */
	_Atomic uint32_t blamed;
	struct shm_ring ring[];			/* by peer: messages to the owner */
};

struct shm_hello {
	uint32_t magic, rank, size, arenas;
	uint64_t probe;			/* address, in the sender, of a word with SHM_MAGIC */
	uint64_t length[ARENAS];
	uint8_t mappable[ARENAS];
};

struct shm_peer {
	int socket, bell;
	pid_t pid;
	struct shm_window *window;	/* the peer's */
	struct shm_ring *in, *out;
	uint32_t head;			/* position in "in" */
	uint32_t tail, acknowledged;	/* positions in "out" */
	bool news;			/* the peer must be woken */
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
