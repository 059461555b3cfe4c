/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rashpa-builder build: rank 0 is the event manager; others are readouts, builders, or both
 * (folded). Builders ask for blocks of events, and the manager assigns each block to a builder.
 * Each readout sends that builder its fragments of the block in one message, and the builder
 * assembles the block.
 */
#ifndef BUILD_H
#define BUILD_H

#include "builder/builder.h"
#include "common/say.h"

#define CONTROL_BYTES	1024u	/* size of a message without fragments */
#define NO_BLOCK	UINT64_MAX
#define ROLE_BYTES	64u	/* size of the name of a rank in sentences */

/* --- messages: all processes must have the same byte order --- */

enum kind {
	KIND_ASK = 1,	/* builder to manager: more blocks */
	KIND_BUILT,	/* builder to manager: a block is assembled, but not handed on yet */
	KIND_DONE,	/* builder to manager: it was handed on; asks for another one */
	KIND_TELL,	/* readout to manager: the range of events that its sources have */
	KIND_ASSIGN,	/* manager to readouts: the builder of a block */
	KIND_RELEASE,	/* manager to readouts: the block need not be held any more */
	KIND_COMMIT,	/* manager to builder: hand the block on */
	KIND_END,	/* manager to all: there are no more blocks; send the result */
	KIND_RESULT,	/* all to manager: the result in JSON follows */
	KIND_BYE,	/* manager to all: all results have come; leave */
	KIND_DATA,	/* readout to builder: struct event_head for each event */
	KIND_HELLO,	/* all to manager: options in JSON follow */
	KIND_ALIVE,	/* all to manager, and back: sign of life, and the rank waited for */
	KIND_GONE,	/* readout, builder to manager: a readout has gone */
	KIND_FAIL,	/* manager to all: the run ends; a sentence follows */
};

struct message {
	uint32_t kind, from;
	uint64_t block;		/* number of the assignment */
	uint64_t instead;	/* ASSIGN: replaced block, whose builder has gone; or NO_BLOCK */
	/* event; TELL: the last event plus one, with the first in block; ALIVE: steps done */
	uint64_t first;
	/* ASK: blocks; BUILT: events with something missing or wrong; FAIL: exit code */
	uint32_t events;
	uint32_t builder;	/* rank; ALIVE: rank waited for; GONE: lost rank */
	uint64_t bytes;		/* length of the data that follow */
};

struct event_head {
	uint64_t event;
	uint32_t fragments, bytes;	/* that follow; bytes include heads of fragments */
};

struct fragment_head {
	uint32_t source;
	uint32_t flags;		/* FRAGMENT_* */
	uint32_t length;	/* bytes that follow, before up to 7 bytes of padding */
	uint32_t checksum;	/* CRC-32 of these bytes */
};

#define FRAGMENT_MISSING	1u
#define FRAGMENT_DAMAGED	2u	/* parts of it are missing or wrong */

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
	uint64_t steps;		/* messages, except KIND_ALIVE, and fragments handled so far */
	uint64_t *moved_ns;	/* by rank: time of its first block, or of its last progress */
	struct watch *watch;
	struct agree *agree;
	struct manager *manager;
	struct readout *readout;
	struct assembly *assembly;
	uint32_t unsent;	/* messages without a completion yet */
	bool telling;		/* one of them is TELL */
	bool reported;		/* GONE was sent */
	/* manager: why the run ends, and the rank to blame, which does not get that message */
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

/* Send a message without fragments. 0, also if the peer has gone, or an exit code. */
int say_to(struct build *b, uint32_t peer, const struct message *m, const char *text);
/* Post room for the next message of a peer, in a used buffer, or a new one if NULL. */
int listen_to(struct build *b, uint32_t peer, struct rashpa_pool *pool, void *buffer);

/* "readout 0 (rank 1)", in so[ROLE_BYTES] */
const char *role_of(const struct build *b, uint32_t rank, char *so);
/*
 * End the run with a sentence and an exit code. The manager sends both to all ranks except the
 * culprit; 0: no rank is to blame.
 */
__attribute__((format(printf, 4, 5)))
int end_run(struct build *b, int code, uint32_t culprit, const char *format, ...);

/* Each: 0 or an exit code, after a message. */
int manager_open(struct build *b);
int manager_heard(struct build *b, const struct message *m, const char *text, size_t length);
int manager_turn(struct build *b);	/* called regularly, also without messages */
int manager_gone(struct build *b, uint32_t peer);
/* Does a rank owe a block or its result? */
bool manager_owed(const struct build *b, uint32_t rank);
int manager_result(struct build *b);
void manager_close(struct build *b);

int readout_open(struct build *b);
int readout_heard(struct build *b, const struct message *m);
int readout_sent(struct build *b, const struct rashpa_fabric_event *e);
int readout_turn(struct build *b);
/* The rank that it waits for: its own rank while its source has no data; 0: none */
uint32_t readout_waits(const struct build *b);
void readout_close(struct build *b);

int assembly_open(struct build *b);
int assembly_heard(struct build *b, const struct message *m);
int assembly_data(struct build *b, const struct rashpa_fabric_event *e);
int assembly_turn(struct build *b);
/* The rank that it waits for: its own rank while its sink has no room; 0: none */
uint32_t assembly_waits(const struct build *b);
void assembly_close(struct build *b);

/* --- sources: fragments, one event after the other --- */

struct fragment {
	uint64_t event;
	const uint8_t *data;
	uint32_t length;
	bool spoilt;		/* for tests: flip a bit after the checksum was computed */
	bool damaged;		/* parts of it are missing */
};

int sources_open(const struct options *o, uint32_t readout, struct sources **sources);
void sources_close(struct sources *sources);
/* Maximum size of a fragment, in bytes. */
uint32_t sources_most(const struct options *o);
/* The oldest fragment that a source has: 1, 0: none now, or a negative errno. It stays. */
int sources_peek(struct sources *sources, uint32_t source, struct fragment *fragment);
/* The fragment is not needed any more. */
void sources_drop(struct sources *sources, uint32_t source);
/* A stream: its first event, and its last one plus one so far; ended: no more events come. */
int sources_have(struct sources *sources, uint64_t *first, uint64_t *behind, bool *ended);

/* --- sinks: built events --- */

int sink_open(const struct options *o, uint32_t rank, uint32_t builder, uint32_t readouts,
	      struct sink **sink);
/*
 * Hand on a block: the messages of all readouts, in their order. 0, -EAGAIN (no room now: try again
 * later), -EEXIST (this block was handed on before) or another errno.
 */
int sink_take(struct sink *sink, const struct message *block, void * const *message,
	      uint32_t readouts);
void sink_close(struct sink *sink);

#endif /* BUILD_H */
