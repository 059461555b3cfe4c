/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ROMULU_NETWORK_INTERNAL_H
#define ROMULU_NETWORK_INTERNAL_H

#include "contract.h"
#include "intake.h"
#include "control-link.h"
#include "network.h"
#include "say.h"

#define TICK_MS		50

struct sender {
	struct link link;
	struct hello hello;
	uint32_t first_flow;
	bool ended, gone, said_bye;
	uint64_t images;		/* that it sent */
};

struct network {
	const struct network_config *config;
	const struct transport *transport;
	void *path;			/* the transport's */
	const char *buffer;
	const volatile bool *stop;
	int listener;
	struct sender *sender;
	uint32_t senders;
	struct rashpa_stream *stream;
	const struct rashpa_stream_header *about;
	struct rashpa_stream_process *process;
	struct intake in;
	pthread_t links, credit;
	bool armed, have_links, have_credit;
	pthread_mutex_t offering;	/* credit that was told: */
	uint64_t offered;		/* stacks */
	/* for the threads to end; the thread of the links has ended the stream */
	_Atomic bool halt, over;
	char why[WHY_SIZE];		/* of the thread of the links */
};

/*
 * How messages come. All that return int: 0 or an exit code, after a message. Threads of it take
 * them by flow_place() and flow_take(), and end when network->halt is set.
 */
struct transport {
	const char *name;
	uint32_t number;			/* enum contract_transport, if it is linked: */
	bool linked;		/* by contracts; else packets describe images */
	bool direct;				/* messages are there before they are told */
	int (*open)(struct network *n);		/* before there is a sender */
	int (*prepare)(struct network *n);	/* the stream and its flows are known */
	/* what a sender has to know; -1 and why: it does not fit */
	int (*accept)(struct network *n, struct sender *s, struct accept *accept, char *why);
	int (*start)(struct network *n);	/* threads */
	uint64_t (*messages)(const struct network *n);	/* that can arrive before they are taken */
	int (*again)(struct flow *f);		/* receive again; NULL: never needed */
	const char *(*failed)(const struct network *n);	/* why a thread has ended, or NULL */
	void (*join)(struct network *n);	/* threads, halt is set; any number of times */
	void (*report)(const struct network *n, struct json_object *o);
	void (*close)(struct network *n);
};

extern const struct transport transport_roce, transport_udp, transport_jungfrau;

#endif /* ROMULU_NETWORK_INTERNAL_H */
