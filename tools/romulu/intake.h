/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Account of the messages of a stream that arrive by network: the stack of each message, missing
 * messages, and when a stack can be published. This part is independent of the transport.
 */
#ifndef ROMULU_INTAKE_H
#define ROMULU_INTAKE_H

#include <json-c/json.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rashpa-stream.h>

struct intake;

/* The numbered messages of a region, taken by one thread at a time. */
struct flow {
	struct intake *intake;
	const char *peer;
	uint32_t process;
	uint32_t first;			/* number of the first message, as sent */
	uint32_t per_image, per_stack;	/* messages; per_image 0: one message per stack */
	/* written by that thread, read by others */
	_Atomic uint64_t expected;	/* highest message number so far, plus 1 */
	_Atomic uint64_t moved_ns;
	_Atomic uint64_t missing;
	uint64_t received, duplicate, reordered, late, first_missing, longest_gap;
	uint64_t passed;		/* stacks that it has finished; intake->lock */
	/* used by the thread of the links only */
	uint64_t sent;			/* messages, as reported by the sender */
	uint64_t again, again_sent;	/* restarts of the pair; sent at the last one */
	bool ended, gone;		/* state of the sender */
	bool stalls;			/* a pair may stall, see rashpa_net_pair_again() */
	void *path;			/* private data of the transport */
};

/* A slot of the buffer. */
struct slot {
	_Atomic uint64_t number;	/* stack number + 1 */
	struct rashpa_stack stack;
	uint32_t behind;		/* flows that have not passed it yet */
	_Atomic bool published;
};

struct intake {
	struct rashpa_stream *stream;
	const struct rashpa_stream_header *about;
	struct flow *flow;
	uint32_t flows;
	uint32_t close_after;		/* stacks */
	uint64_t settle_ns;		/* a message this late counts as lost */
	pthread_mutex_t lock;		/* slots, passed */
	/* read-locked to copy into a slot, write-locked to reassign it; within lock */
	pthread_rwlock_t content;
	struct slot *slot;
	_Atomic uint64_t opened;	/* stacks below this number have a slot */
	uint64_t ahead;			/* stacks open after a message's stack; without credit */
	uint64_t incomplete;		/* incomplete stacks */
	bool direct;			/* the card writes messages before they are placed */
	uint64_t window;		/* stacks in flight at a time; with credit */
	int progress;			/* eventfd: a stack was published; -1: not needed */
	uint64_t overrun;		/* stacks perhaps overwritten before this was reported */
};

void intake_init(struct intake *in);
/* Begin with a stream whose flows and settings are known. 0 or an exit code, after a message. */
int intake_open(struct intake *in, struct rashpa_stream *stream);
void intake_close(struct intake *in);

/*
 * Open the first slots. messages: most messages that can arrive before they are taken.
 * If senders wait for credit, a thread must call intake_credit().
 */
void intake_begin(struct intake *in, uint64_t messages);

bool intake_paced(const struct intake *in);
/* Most messages that may be in slots unseen; more could reach a slot that a consumer holds. */
uint64_t intake_unseen(const struct intake *in);
/*
 * Wait for a slot that the consumer gives back. 1: got one; 0: there are no more; < 0: not yet.
 */
int intake_credit(struct intake *in, int64_t timeout_ns);
/* Stacks that may be sent. */
uint64_t intake_allowed(const struct intake *in);

/* Where a message belongs. */
struct place {
	uint64_t number;		/* message number in its flow */
	uint64_t stack;
	uint32_t message;		/* message number in its stack */
	int32_t ahead;			/* distance from the expected message */
};

/*
 * Find the place of a message, and open a slot for its stack unless the stack was published.
 * number: as sent, modulo 2^32. -1: the number is impossible; why is set.
 */
int flow_place(struct flow *f, uint32_t number, struct place *place, char *why);
/*
 * Allow writes to the slot until flow_let_go(). false: the stack was published, or the slot
 * belongs to another stack.
 */
bool flow_hold(struct flow *f, const struct place *place);
void flow_let_go(struct flow *f);
const struct rashpa_stack *flow_slot(const struct flow *f, const struct place *place);
/* Count the message as received. */
void flow_take(struct flow *f, const struct place *place);

/* Has nothing arrived for @ns? */
bool flow_silent(const struct flow *f, uint64_t now, uint64_t ns);
/* Has every message sent so far arrived, or is it lost? */
bool flow_settled(const struct flow *f, uint64_t now);
/* Count messages sent after the last one that arrived as missing. */
void flow_count_tail(struct flow *f);

/* Close stacks whose last messages were lost: no later message reveals the loss. */
void intake_close_quiet(struct intake *in, uint64_t now);
/* No more messages arrive: publish the open stacks. */
void intake_give_up(struct intake *in);

struct json_object *flow_json(const struct flow *f);

#endif /* ROMULU_INTAKE_H */
