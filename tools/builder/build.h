/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rashpa-builder build: rank 0 is the event manager; others are readouts, builders, or both
 * (folded). Builders ask for blocks of events, the manager says to all readouts who gets which,
 * readouts send what their sources have of a block in one message, builders put blocks together.
 */
#ifndef BUILD_H
#define BUILD_H

#include "builder.h"
#include "say.h"

#define CONTROL_BYTES	1024u	/* of a message without fragments */
#define NO_BLOCK	UINT64_MAX
#define ROLE_BYTES	64u	/* of how a sentence names a rank */

/* --- messages. All processes have the same byte order. --- */

enum kind {
	KIND_ASK = 1,	/* builder to manager: more blocks */
	KIND_BUILT,	/* builder to manager: a block is whole, and not handed on yet */
	KIND_DONE,	/* builder to manager: it was handed on, and another one is asked for */
	KIND_TELL,	/* readout to manager: its sources have events up to */
	KIND_ASSIGN,	/* manager to readouts */
	KIND_RELEASE,	/* manager to readouts: need not be held any more */
	KIND_COMMIT,	/* manager to builder: hand it on */
	KIND_END,	/* manager to all: there are no more; say what has become of it */
	KIND_RESULT,	/* all to manager: text in JSON follows */
	KIND_BYE,	/* manager to all: all have said so */
	KIND_DATA,	/* readout to builder: struct event_head for each event */
	KIND_HELLO,	/* all to manager: options in JSON follow */
	KIND_ALIVE,	/* all to manager, and back: is there, and waits for whom */
	KIND_GONE,	/* readout, builder to manager: it sees that a readout has gone */
	KIND_FAIL,	/* manager to all: the run ends; a sentence follows */
};

struct message {
	uint32_t kind, from;
	uint64_t block;		/* number of the assignment */
	uint64_t instead;	/* ASSIGN: of this one, whose builder has gone; or NO_BLOCK */
	/* event; TELL: the one behind the last, and the first in block; ALIVE: what was done */
	uint64_t first;
	/* ASK: blocks; BUILT: events with something missing or wrong; FAIL: exit code */
	uint32_t events;
	uint32_t builder;	/* rank; ALIVE: that is waited for; GONE: that has gone */
	uint64_t bytes;		/* that follow */
};

struct event_head {
	uint64_t event;
	uint32_t fragments, bytes;	/* that follow, heads of fragments as well */
};

struct fragment_head {
	uint32_t source;
	uint32_t flags;		/* FRAGMENT_* */
	uint32_t length;	/* bytes that follow, and up to 7 more */
	uint32_t checksum;	/* CRC-32 of them */
};

#define FRAGMENT_MISSING	1u
#define FRAGMENT_DAMAGED	2u	/* parts of it did not come, or came otherwise */

static inline uint64_t padded(uint64_t bytes)
{
	return (bytes + 7) & ~UINT64_C(7);
}

/* --- a process --- */

struct counts {
	uint64_t blocks, events, incomplete, fragments, bytes;
	uint64_t missing, late, duplicate, corrupt, foreign, resent;
};

struct sources;
struct sink;

struct build {
	struct rashpa_fabric *f;
	const struct options *o;
	const volatile bool *stop;
	uint32_t rank, size, readouts, builders, most;	/* most: blocks that are under way */
	bool reads, builds, ending, over;
	struct rashpa_pool *control_out, *control_in, *data_out, **data_in;
	uint32_t data_bytes;
	struct counts counts;
	uint64_t steps;		/* done so far: messages, but for KIND_ALIVE, and fragments */
	struct watch *watch;
	struct agree *agree;
	struct manager *manager;
	struct readout *readout;
	struct assembly *assembly;
	uint32_t unsent;	/* messages whose event did not come yet */
	bool telling;		/* one of them is TELL */
	bool reported;		/* of a readout that has gone */
	/* of the manager: why the run ends, and whom that is not told */
	char reason[WHY_SIZE];
	uint32_t culprit;
};

static inline bool is_readout(const struct build *b, uint32_t rank)
{
	return rank && (b->o->folded || rank <= b->readouts);
}

static inline bool is_builder(const struct build *b, uint32_t rank)
{
	return rank && (b->o->folded || rank > b->readouts);
}

/* index of a readout: its place in a block */
static inline uint32_t readout_index(uint32_t rank)
{
	return rank - 1;
}

/* A message without fragments. 0 or an exit code; who has gone gets none, and that is no error. */
int say_to(struct build *b, uint32_t peer, const struct message *m, const char *text);
/* Room for the next message of a peer, in a buffer that was used, or NULL: another one. */
int listen_to(struct build *b, uint32_t peer, struct rashpa_pool *pool, void *buffer);

/* "readout 0 (rank 1)", in so[ROLE_BYTES] */
const char *role_of(const struct build *b, uint32_t rank, char *so);
/*
 * A sentence about why the run ends, and the exit code. The manager tells it to all, but the rank
 * that is to blame; 0: none is.
 */
__attribute__((format(printf, 4, 5)))
int end_run(struct build *b, int code, uint32_t culprit, const char *format, ...);

/* Each: 0 or an exit code, after a message. */
int manager_open(struct build *b);
int manager_heard(struct build *b, const struct message *m, const char *text, size_t length);
int manager_turn(struct build *b);	/* now and then: what is to be done by itself */
int manager_gone(struct build *b, uint32_t peer);
/* Does a rank owe something? */
bool manager_owed(const struct build *b, uint32_t rank);
int manager_result(struct build *b);
void manager_close(struct build *b);

int readout_open(struct build *b);
int readout_heard(struct build *b, const struct message *m);
int readout_sent(struct build *b, const struct rashpa_fabric_event *e);
int readout_turn(struct build *b);
/* For whom it waits: a rank, its own for its source, or 0 */
uint32_t readout_waits(const struct build *b);
void readout_close(struct build *b);

int assembly_open(struct build *b);
int assembly_heard(struct build *b, const struct message *m);
int assembly_data(struct build *b, const struct rashpa_fabric_event *e);
int assembly_turn(struct build *b);
/* For whom it waits: a rank, its own for where events go, or 0 */
uint32_t assembly_waits(const struct build *b);
void assembly_close(struct build *b);

/* --- where fragments come from: one event after the other, as sources have them --- */

struct fragment {
	uint64_t event;
	const uint8_t *data;
	uint32_t length;
	bool spoilt;		/* for tests: a bit of it is to be wrong, behind its checksum */
	bool damaged;		/* parts of it are missing */
};

int sources_open(const struct options *o, uint32_t readout, struct sources **sources);
void sources_close(struct sources *sources);
/* bytes of a fragment, at most */
uint32_t sources_most(const struct options *o);
/* The oldest fragment that a source has: 1, 0: none now, or a negative errno. It stays. */
int sources_peek(struct sources *sources, uint32_t source, struct fragment *fragment);
/* It is not needed any more. */
void sources_drop(struct sources *sources, uint32_t source);
/* Of a stream: its first event, the one behind the last that is there; ended: no more come. */
int sources_have(struct sources *sources, uint64_t *first, uint64_t *behind, bool *ended);

/* --- where events go --- */

int sink_open(const struct options *o, uint32_t rank, uint32_t builder, uint32_t readouts,
	      struct sink **sink);
/*
 * A block: messages of all readouts, in their order. 0, -EAGAIN (there is no room now: again,
 * later), -EEXIST (there was one already) or another one.
 */
int sink_take(struct sink *sink, const struct message *block, void * const *message,
	      uint32_t readouts);
void sink_close(struct sink *sink);

#endif /* BUILD_H */
