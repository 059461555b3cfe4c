/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The messages of a stream that a network brings: which stack they belong to, which came, and when
 * a stack is as complete as it will be. Nothing here knows how they come.
 */
#ifndef ROMULU_INTAKE_H
#define ROMULU_INTAKE_H

#include <json-c/json.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rashpa-stream.h"

struct intake;

/* The numbered messages of a region; one thread at a time takes them. */
struct flow {
	struct intake *intake;
	const char *peer;
	uint32_t process;
	uint32_t first;			/* number of the first message, as it is sent */
	uint32_t per_image, per_stack;	/* messages; per_image 0: one tells of a whole stack */
	/* written by that thread, looked at by others */
	_Atomic uint64_t expected;	/* number of the message behind the last one */
	_Atomic uint64_t moved_ns;
	_Atomic uint64_t missing;
	uint64_t received, duplicate, reordered, late, first_missing, longest_gap;
	uint64_t passed;		/* stacks that it has left behind; intake->lock */
	/* of the thread that watches */
	uint64_t sent;			/* as the sender says */
	uint64_t again, again_sent;	/* how often it was made to receive again, and after what */
	bool ended, gone;		/* its sender */
	bool stalls;			/* its path may, see rashpa_net_pair_again() */
	void *path;			/* the transport's */
};

/* A slot of the buffer. */
struct slot {
	_Atomic uint64_t number;	/* of the stack + 1 */
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
	uint64_t settle_ns;		/* what was sent and has not come by then does not come */
	pthread_mutex_t lock;		/* slots, passed */
	/* a thread that copies into a slot reads, one that gives it away writes; within lock */
	pthread_rwlock_t content;
	struct slot *slot;
	_Atomic uint64_t opened;	/* stacks up to here have a slot */
	uint64_t ahead;			/* stacks that are open behind a message's; no credit */
	uint64_t incomplete;		/* stacks */
	bool direct;			/* messages are in the memory before they are placed */
	uint64_t window;		/* stacks that may be under way at a time, with credit */
	int progress;			/* eventfd: a stack was published; -1: nobody waits */
	uint64_t overrun;		/* stacks, maybe overwritten before that was told */
};

void intake_init(struct intake *in);
/* The stream is there, its flows, and what of it is config. 0 or an exit code, after a message. */
int intake_open(struct intake *in, struct rashpa_stream *stream);
void intake_close(struct intake *in);

/*
 * Open the first slots. messages: that can have arrived before they are taken.
 * A stream whose senders wait for credit has a thread for intake_credit().
 */
void intake_begin(struct intake *in, uint64_t messages);

bool intake_paced(const struct intake *in);
/* So many messages may lie in slots unseen, at most: else they are in one that a consumer has. */
uint64_t intake_unseen(const struct intake *in);
/*
 * Wait for a slot that the consumer gives back: 1; 0: there are no more; < 0: not yet.
 */
int intake_credit(struct intake *in, int64_t timeout_ns);
/* Stacks that may be sent. */
uint64_t intake_allowed(const struct intake *in);

/* Where a message belongs. */
struct place {
	uint64_t number;		/* of the message in its flow */
	uint64_t stack;
	uint32_t message;		/* of the stack */
	int32_t ahead;			/* of the expected one */
};

/*
 * Its stack has a slot from now on, or not any more. number: as it was sent, modulo 2^32.
 * -1: that cannot be, and why.
 */
int flow_place(struct flow *f, uint32_t number, struct place *place, char *why);
/*
 * Memory of its slot may be written, until flow_let_go(). false: the stack was published, or the
 * slot is another's.
 */
bool flow_hold(struct flow *f, const struct place *place);
void flow_let_go(struct flow *f);
const struct rashpa_stack *flow_slot(const struct flow *f, const struct place *place);
/* It is there. */
void flow_take(struct flow *f, const struct place *place);

/* Nothing came for so long. */
bool flow_silent(const struct flow *f, uint64_t now, uint64_t ns);
/* All of what was sent so far has come, or does not come. */
bool flow_settled(const struct flow *f, uint64_t now);
/* What was sent behind the last message that came is missing, too. */
void flow_count_tail(struct flow *f);

/* Stacks whose last messages were lost: nothing comes behind them that would tell. */
void intake_close_quiet(struct intake *in, uint64_t now);
/* Nothing comes any more. */
void intake_give_up(struct intake *in);

struct json_object *flow_json(const struct flow *f);

#endif /* ROMULU_INTAKE_H */
