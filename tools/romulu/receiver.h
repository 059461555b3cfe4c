/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The receiver of a stream over RoCE v2: it is the producer of the buffer's stream. */
#ifndef ROMULU_RECEIVER_H
#define ROMULU_RECEIVER_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "link/cpus.h"
#include "verbs/rashpa-network.h"

enum transport_number { TRANSPORT_ROCE, TRANSPORT_UDP, TRANSPORT_JUNGFRAU };

struct network_config {
	uint32_t transport;		/* enum transport_number */
	struct rashpa_net_options options;
	const char *listen;		/* NULL: no network */
	const char *payload;		/* name of the memory for images; NULL: in the buffer */
	uint32_t senders;		/* detectors, or modules, that fill the buffer together */
	uint32_t threads;
	hwloc_const_bitmap_t cpus;	/* of them; NULL: any */
	uint32_t receives;		/* receives per thread */
	uint32_t slots;			/* 0: as many as fit */
	uint32_t close_after;		/* stacks */
	uint32_t settle_ms;		/* outstanding messages then count as missing */
	uint32_t stall_ms;		/* a pair silent for this time is set up again */
	uint32_t wait;			/* enum rashpa_net_wait */
	bool unsolicited;		/* an event for each message */
	bool xdp;			/* packets of UDP come by AF_XDP */
	uint32_t columns, rows;		/* of modules, which tell nothing */
	uint32_t bunch;			/* of those */
	uint64_t images;		/* of those; 0: not known */
	double idle;			/* seconds without a packet of those */
	double timeout;			/* seconds, for senders to come; 0: for ever */
};

struct network;

/* Agree with the senders, and begin the stream. An exit code, after messages. */
int network_open(const struct network_config *config, const char *buffer,
		 const volatile bool *stop, struct network **network);
/* Until the senders have ended, or stop. */
void network_await(struct network *network);
/* End the stream, even if senders continue. Sets @report; returns an exit code. */
int network_end(struct network *network, struct json_object **report);
void network_close(struct network *network);

#endif /* ROMULU_RECEIVER_H */
