/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Transports of images: what each one has, for all programs that ask. How remu sends, and how romulu
 * receives, is in a file of theirs.
 */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

enum transport_has {
	/* images go to receivers, which have the buffer: remu --to, romulu --listen */
	TRANSPORT_NETWORK = 1 << 0,
	/* or remu has it: --buffer, --slots, --payload, --live; lock, resume */
	TRANSPORT_BUFFER = 1 << 1,
	/*
	 * Both ends agree over a control link (contract.h), and detectors say when it is over. Without,
	 * the receiver plans the stream from its options, and ends it when nothing comes any more.
	 */
	TRANSPORT_CONTRACT = 1 << 2,
	/*
	 * Policies, with overwrite: images wait for credit (of the contract, of the board, or in
	 * send()); stacks are left out.
	 */
	TRANSPORT_WAIT = 1 << 3,
	TRANSPORT_DROP = 1 << 4,
	/* queue pairs are the ends of the contract; immediates; both ends have one MTU */
	TRANSPORT_RDMA = 1 << 5,
	/* packets of UDP; ports are the ends of the contract */
	TRANSPORT_DATAGRAMS = 1 << 6,
	/* messages have their image's number and time, which go to the stream's metadata */
	TRANSPORT_METADATA = 1 << 7,
};

struct transport {
	const char *name;
	const char *to;			/* form of a receiver's address */
	uint32_t has;			/* bits of enum transport_has */
	uint32_t packet;		/* UDP payload of each packet, bytes; 0: as message says */
	uint32_t lines;			/* lines of each region; 0: any */
};

/* The tables of programs have this order: transport - transports is the index. */
#define TRANSPORTS(ROW) \
	ROW(pcie, .has = TRANSPORT_BUFFER | TRANSPORT_WAIT | TRANSPORT_DROP) \
	ROW(memory, .has = TRANSPORT_BUFFER | TRANSPORT_WAIT | TRANSPORT_DROP) \
	ROW(roce, .to = "HOST:PORT", .has = TRANSPORT_NETWORK | TRANSPORT_CONTRACT | \
	    TRANSPORT_WAIT | TRANSPORT_RDMA) \
	ROW(udp, .to = "HOST:PORT", .has = TRANSPORT_NETWORK | TRANSPORT_CONTRACT | \
	    TRANSPORT_WAIT | TRANSPORT_DATAGRAMS) \
	ROW(jungfrau, .to = "HOST:PORT", .has = TRANSPORT_NETWORK | TRANSPORT_DATAGRAMS | \
	    TRANSPORT_METADATA, .packet = sizeof(struct jungfrau) + JUNGFRAU_BYTES, \
	    .lines = JUNGFRAU_HEIGHT)

/* The last one has no name. */
extern const struct transport transports[];

/* NULL: there is no such transport */
const struct transport *transport_named(const char *name);
/* Names of all that have these bits, as "a, b or c"; free() them. */
char *transport_names(uint32_t has, const char *between, const char *before_last);
/* The words of the option with this key are the names of all that have these bits. */
void transport_option(struct argp_option *options, int key, uint32_t has);
/* Regions of an image by default. */
uint32_t transport_regions(const struct transport *transport, uint32_t height);

#endif /* TRANSPORT_H */
