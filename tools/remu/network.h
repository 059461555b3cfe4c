/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A detector that sends over a network: what does not depend on how messages go. */
#ifndef REMU_NETWORK_H
#define REMU_NETWORK_H

#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>

#include "contract.h"
#include "control-link.h"
#include "led.h"
#include "remu.h"
#include "say.h"

struct sender;

/* A receiver: the whole detector, or a share of it. */
struct receiver {
	struct sender *sender;
	const char *to;
	struct link link;
	struct accept accept;
	uint32_t sampling, phase;
	bool over;			/* it does not want any more, or: */
	bool gone;
	bool told_end;			/* what was sent to it */
	bool parted;			/* and it has said what is missing */
	uint64_t missing, incomplete;	/* as it says at the end; all ones: it did not say */
	pthread_mutex_t lock;
	pthread_cond_t more;
	uint64_t credit;		/* stacks that have a slot; lock */
	uint64_t begun;			/* that a worker has; lock */
};

/* A region of the images, on its way to a receiver: a thread. */
struct worker {
	struct receiver *receiver;
	const struct region *region;
	uint32_t index;			/* of the region */
	void *path;			/* the transport's */
	struct cut cut;
	uint32_t first;			/* number of the first message */
	pthread_t thread;
	bool running;
	/* written by the thread, looked at by others; messages that have left */
	_Atomic uint64_t messages;
	_Atomic uint64_t images;	/* complete ones */
	_Atomic bool done;
	_Atomic bool holding;		/* it waits between two stacks, since all are to */
	uint64_t waited_ns;		/* for credit */
	char why[WHY_SIZE];
};

struct sender {
	const struct config *config;
	const struct transport *transport;
	void *path;			/* the transport's */
	struct dataset *dataset;
	volatile bool *stop;
	struct receiver *receiver;
	struct worker *worker;		/* of receiver i: regions from i * regions on */
	uint32_t receivers, workers;
	uint32_t message;		/* most bytes of one */
	uint64_t start_ns, end_ns;
	_Atomic bool halt;
	_Atomic bool hold;		/* no stack is begun */
	enum led_kind wish;		/* of who leads, for when all workers hold; or LED_NONE */
	bool paused;
	/* when images are due; written while no worker sends */
	uint64_t period;		/* ticks; 0: as fast as it goes */
	uint64_t base_ns, base_frame;	/* this image is due then, and others after it */
	uint64_t ramp_ns;		/* from base_ns on */
	uint64_t new_period;		/* wished */
};

/* A message of a stack. */
struct message {
	uint64_t number;		/* of the worker, from 0 on */
	uint64_t stack;			/* of the receiver's buffer */
	uint64_t from;			/* behind the first byte of the dataset */
	uint64_t to;			/* behind the first byte of slot 0 */
	uint32_t bytes;
	bool last;			/* of the stack */
};

/* What packets will be, before anything is open. */
struct packets {
	uint32_t header;		/* bytes before and behind what is of the message */
	uint32_t part;			/* most bytes of a message in one */
	uint32_t message;		/* most bytes of a message */
	char interface[IF_NAMESIZE];	/* that they leave by; "": any */
};

/* How messages go. All return 0, or -1 and why; @why of a worker is its own. */
struct transport {
	const char *name;
	uint32_t number;		/* enum contract_transport, if it is */
	bool linked;			/* by a contract; else address and accept are not there */
	/* false: not known */
	bool (*packets)(const struct sender *s, struct packets *p);
	/* sets sender->message, unless it was given */
	int (*open)(struct sender *s, char *why);
	int (*open_worker)(struct worker *w, char *why);
	/* what the receiver has to know of a worker */
	void (*address)(const struct worker *w, struct contract_process *process);
	uint32_t (*mtu)(const struct sender *s);
	/* receiver->accept is there */
	int (*connect)(struct worker *w, char *why);
	int (*send)(struct worker *w, const struct message *m);
	/* all has left the machine */
	int (*drain)(struct worker *w);
	void (*report)(const struct sender *s, struct json_object *o);
	void (*close_worker)(struct worker *w);
	void (*close)(struct sender *s);
};

extern const struct transport transport_roce, transport_udp, transport_jungfrau;

#endif /* REMU_NETWORK_H */
