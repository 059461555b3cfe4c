/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A detector that sends messages over a network: the part common to all transports. */
#ifndef REMU_SENDER_H
#define REMU_SENDER_H

#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>

#include "link/contract.h"
#include "link/control-link.h"
#include "daemon/led.h"
#include "remu/remu.h"
#include "common/say.h"

struct sender;

/* A receiver: the whole detector, or a share of it. */
struct receiver {
	struct sender *sender;
	const char *to;
	struct link link;
	struct accept accept;
	uint32_t sampling, phase;
	bool over;			/* it ended the stream, or: */
	bool gone;			/* no link (any more) */
	bool told_end;			/* the counts were sent to it */
	bool parted;			/* it has replied with its losses */
	uint64_t missing, incomplete;	/* its own counts at the end; all ones: none received */
	pthread_mutex_t lock;
	pthread_cond_t more;
	uint64_t credit;		/* stacks that have a slot; under the lock */
	uint64_t begun;			/* stacks that a worker began; under the lock */
};

/* A thread that sends a region of the images to a receiver. */
struct worker {
	struct receiver *receiver;
	const struct region *region;
	uint32_t index;			/* index of the region */
	void *path;			/* private data of the transport */
	struct cut cut;
	uint32_t first;			/* number of the first message */
	pthread_t thread;
	bool running;
	/* written by the thread, read by others; number of sent messages */
	_Atomic uint64_t messages;
	_Atomic uint64_t images;	/* complete images */
	_Atomic bool done;
	_Atomic bool holding;		/* waits between two stacks, as hold requests */
	uint64_t waited_ns;		/* time spent waiting for credit */
	char why[WHY_SIZE];
};

struct sender {
	const struct config *config;
	const struct sending *sending;
	void *path;			/* private data of the transport */
	struct dataset *dataset;
	volatile bool *stop;
	struct receiver *receiver;
	struct worker *worker;		/* workers of receiver i begin at i * regions */
	uint32_t receivers, workers;
	uint32_t message;		/* size limit of a message in bytes */
	uint64_t start_ns, end_ns;
	_Atomic bool halt;
	_Atomic bool hold;		/* begin no new stack */
	enum led_kind wish;		/* command, due when all workers hold; or LED_NONE */
	bool paused;
	/* when images are due; written while no worker sends */
	uint64_t period;		/* ticks; 0: as fast as possible */
	uint64_t base_ns, base_frame;	/* time and number of the image from which others count */
	uint64_t ramp_ns;		/* length of the ramp, from base_ns on */
	uint64_t new_period;		/* requested period */
};

/* A message of a stack. */
struct message {
	uint64_t number;		/* number within the worker, from 0 */
	uint64_t stack;			/* stack in the receiver's buffer */
	uint64_t from;			/* offset in the dataset */
	uint64_t to;			/* offset from slot 0 */
	uint32_t bytes;
	bool last;			/* last message of the stack */
};

/* Format of the packets, known before anything is open. */
struct packets {
	uint32_t header;		/* bytes around the payload */
	uint32_t part;			/* most payload bytes in a packet */
	uint32_t message;		/* most bytes of a message */
	char interface[IF_NAMESIZE];	/* outgoing interface; "": any */
};

/* struct sending's run() and paths() for messages over a network. */
int sender_run(const struct config *config, struct dataset *dataset, volatile bool *stop);
struct json_object *sender_paths(const struct config *config, struct dataset *dataset);

#endif /* REMU_SENDER_H */
