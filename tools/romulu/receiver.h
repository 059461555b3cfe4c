/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The receiver of messages over a network: it is the producer of the buffer's stream. */
#ifndef ROMULU_RECEIVER_H
#define ROMULU_RECEIVER_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "link/cpus.h"
#include "link/transport.h"
#include "verbs/verbs.h"

struct network_config {
	const struct transport *transport;
	const struct receiving *receiving;
	struct rashpa_net_options options;
	const char *listen;		/* NULL: no network */
	struct wire_tls *tls;		/* NULL: no TLS */
	const char *payload;		/* name of the memory for images; NULL: in the buffer */
	const void *there;		/* its address in CUDA and this process, or NULL */
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
	double timeout;			/* seconds, for senders to come; 0: for ever */
	/* without a contract: */
	uint32_t columns, rows;		/* of modules */
	uint32_t bunch;
	uint64_t images;		/* 0: not known */
	double idle;			/* seconds without a packet */
};

struct network;

/* Agree with the senders, and begin the stream. An exit code, after messages. */
int receiver_open(const struct network_config *config, const char *buffer,
		 const volatile bool *stop, struct network **network);
/* Until the senders have ended, or stop. */
void receiver_await(struct network *network);
/* End the stream, even if senders continue. Sets @report; returns an exit code. */
int receiver_end(struct network *network, struct json_object **report);
void receiver_close(struct network *network);

struct flow;
struct sender;
struct hello;
struct accept;

/*
 * romulu's half of a transport: how messages come into the buffer. Functions that return int return
 * 0, or an exit code after a message. The threads of the transport call flow_place() and
 * flow_take(), and end when network->halt is set.
 */
struct receiving {
	bool direct;				/* the card writes messages into the buffer */
	int (*open)(struct network *n);		/* before the first sender */
	int (*prepare)(struct network *n);	/* the stream and its flows are known */
	/* with a contract: fill in the answer to a sender; -1 and why: the sender does not fit */
	int (*accept)(struct network *n, struct sender *s, struct accept *accept, char *why);
	/* without: fill in a hello from the options */
	int (*plan)(const struct network_config *c, struct hello *hello);
	int (*start)(struct network *n);	/* start threads */
	/* most that can arrive unseen; NULL: none */
	uint64_t (*messages)(const struct network *n);
	int (*again)(struct flow *f);		/* restart a stalled pair; NULL: never needed */
	/* why a thread has ended, or NULL; NULL: none does */
	const char *(*failed)(const struct network *n);
	void (*join)(struct network *n);	/* join threads after halt; may be repeated */
	void (*report)(const struct network *n, struct json_object *o);
	void (*close)(struct network *n);
};

#define RECEIVING(transport, ...) extern const struct receiving receiving_##transport;
TRANSPORTS(RECEIVING)
#undef RECEIVING

#endif /* ROMULU_RECEIVER_H */
