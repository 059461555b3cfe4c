/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ROMULU_RECEIVER_INTERNAL_H
#define ROMULU_RECEIVER_INTERNAL_H

#include "link/contract.h"
#include "romulu/intake.h"
#include "link/control-link.h"
#include "romulu/receiver.h"
#include "common/say.h"

#define TICK_MS		50

struct sender {
	struct link link;
	struct hello hello;
	uint32_t first_flow;
	bool ended, gone, said_bye;
	uint64_t images;		/* images sent */
};

struct network {
	const struct network_config *config;
	const struct transport *transport;
	void *path;			/* private data of the transport */
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
	pthread_mutex_t offering;	/* protects offered */
	uint64_t offered;		/* credit that senders have, in stacks */
	/* halt: threads must end; over: the thread of the links has ended the stream */
	_Atomic bool halt, over;
	char why[WHY_SIZE];		/* failure of the thread of the links */
};

/*
 * A transport of messages. Functions that return int return 0, or an exit code after a message.
 * Its threads call flow_place() and flow_take(), and end when network->halt is set.
 */
struct transport {
	const char *name;
	uint32_t number;			/* enum contract_transport, if linked */
	bool linked;		/* uses contracts; else packets describe images */
	bool direct;				/* the card writes messages into the buffer */
	int (*open)(struct network *n);		/* before the first sender */
	int (*prepare)(struct network *n);	/* the stream and its flows are known */
	/* fill in the answer to a sender; -1 and why: the sender does not fit */
	int (*accept)(struct network *n, struct sender *s, struct accept *accept, char *why);
	int (*start)(struct network *n);	/* start threads */
	uint64_t (*messages)(const struct network *n);	/* most that can arrive unseen */
	int (*again)(struct flow *f);		/* restart a stalled pair; NULL: never needed */
	const char *(*failed)(const struct network *n);	/* why a thread has ended, or NULL */
	void (*join)(struct network *n);	/* join threads after halt; may be repeated */
	void (*report)(const struct network *n, struct json_object *o);
	void (*close)(struct network *n);
};

extern const struct transport transport_roce, transport_udp, transport_jungfrau;

#endif /* ROMULU_RECEIVER_INTERNAL_H */
