/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rashpa-bench network: messages from a writer into the memory of a sink, and a control link. The
 * writer sends hello with its plan, and the sink sends accept. The messages of each repetition are:
 * begin, ready, count (warm-up is over), counting (warm-up of all writers is over), stop, end (with
 * the number of messages sent), result.
 */
#ifndef BENCH_NETWORK_H
#define BENCH_NETWORK_H

#include <argp.h>
#include <json-c/json.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/bench.h"
#include "link/control-link.h"
#include "bench/network/gpu-memory.h"
#include "bench/network/pages.h"
#include "verbs/verbs.h"
#include "bench/network/sequence.h"

#define PAIRS_MOST	4096
#define THREADS_MOST	2048
#define WRITERS_MOST	16
#define DESTINATIONS_MOST	(1u << 24)
#define MESSAGE_MOST	(1u << 30)
#define TICK_MS		100
#define HANDSHAKE_MS	60000

/* --- the plan of the writer --- */

/* Transport. */
enum way { WAY_WRITE, WAY_UDP, WAY_ZMQ, WAYS };

struct plan {
	uint32_t way;			/* enum way */
	uint32_t service;		/* enum rashpa_net_service */
	uint32_t size;			/* message size, bytes */
	uint32_t pairs;			/* queue pairs, or sockets */
	uint32_t linked;		/* writes that are posted together */
	uint32_t solicited;		/* 1: only the last of them asks for an event */
	uint32_t destinations;		/* number of places in memory, used in turn */
	uint32_t repeats;
	uint32_t mtu;			/* RDMA packet payload */
	uint64_t messages;		/* messages per pair and repetition; 0: limited by time */
};

const char *way_name(uint32_t way);

/* RDMA: bytes of a message on the line, including headers, preambles and gaps. */
uint64_t wire_bytes(const struct plan *plan);

/* Conversion of a plan to and from a message. 0, or -1 and why. */
struct json_object *plan_write(const struct plan *plan, const char *kind);
int plan_read(struct json_object *from, struct plan *plan, char *why);
/* conversion of queue pairs to and from an array */
void ends_add(struct json_object *array, const struct rashpa_net_pair *pair);
int end_read(struct json_object *array, uint32_t index, struct rashpa_net_address *end, char *why);

/* --- options of both --- */

struct network_settings {
	struct rashpa_net_options port;
	uint32_t threads, wait;		/* enum rashpa_net_wait */
	const char *pages, *buffer;
	bool json;
};

enum {
	OPT_NET_THREADS = 3000, OPT_NET_WAIT, OPT_NET_PAGES, OPT_NET_BUFFER, OPT_NET_OWN = 3100,
};

#define NETWORK_SETTINGS \
	OPTION_JSON, \
	{ "threads", OPT_NET_THREADS, "N", 0, "threads that share the queue pairs (default: 1)", 0 }, \
	{ "wait", OPT_NET_WAIT, "event|poll|adaptive", 0, \
	  "way to wait for completions (default: event)", 0 }, \
	{ "pages", OPT_NET_PAGES, "thp|4K|2M|1G", 0, "page size of the memory (default: thp)", 0 }, \
	{ "buffer", OPT_NET_BUFFER, "NAME", 0, "use this named buffer of the driver", 0 }, \
	NETWORK_DEVICE NETWORK_OPTIONS

error_t network_setting(int key, char *arg, struct argp_state *state,
			struct network_settings *settings);
const char *wait_name(uint32_t wait);

/* Print the result of a repetition in a line. */
void lap_print(size_t number, struct json_object *lap);

/* --- sink --- */

struct sink;

/* A thread that receives. */
struct receiver {
	struct sink *sink;
	uint32_t index;
	pthread_t thread;
	bool running;
	void *path;			/* private to the transport */
	char why[WHY_SIZE];
};

/* A writer. */
struct guest {
	struct link link;
	struct plan plan;
	uint64_t offset, bytes;		/* its part of the memory */
	struct sequence *sequence;	/* by pair */
	void **pair;			/* private to the transport */
	uint64_t *sent;			/* by pair: messages sent, from the writer */
	uint64_t least;			/* lowest number of messages sent by a pair so far */
	bool counts, stopped, ended;
};

struct arrivals {
	uint64_t polls, empty, events, least;
};

struct sink {
	const struct sink_config *config;
	struct pages memory;		/* memory of a GPU has no file, and no address if processors cannot map it */
	struct gpu_memory gpu;
	uint64_t used;			/* bytes assigned to writers */
	struct guest guest[WRITERS_MOST];
	uint32_t guests;
	struct receiver receiver[THREADS_MOST];
	uint32_t receivers;
	const struct sink_way *way;
	void *path;			/* private to the transport */
	const struct rashpa_net_info *port;	/* NULL: none */
	volatile bool halt;
	volatile bool *stop;
};

struct sink_config {
	struct network_settings common;
	const char *listen, *gpu;	/* gpu: NULL: memory of the host */
	uint64_t memory;
	uint32_t writers, receives, settle_ms, stall_ms, interval_ms;
	bool unsolicited, verify, series, private;
};

/* All return 0, or -1 and why. */
struct sink_way {
	/* called with the plan of the first guest; sets sink->receivers */
	int (*open)(struct sink *s, char *why);
	/* adds to the message "accept" */
	int (*accept)(struct sink *s, struct guest *g, struct json_object *hello,
		      struct json_object *acceptance, char *why);
	int (*receive)(struct receiver *r);
	void (*arrivals)(const struct sink *s, struct arrivals *arrivals);	/* or NULL */
	int (*again)(struct sink *s, struct guest *g, uint32_t pair, char *why);	/* or NULL */
	void (*close)(struct sink *s);
};

/* Run a repetition, and add its result. 0, or -1 and why. */
int sink_lap(struct sink *sink, struct json_object *laps, char *why);

extern const struct sink_way sink_write, sink_udp, sink_zmq;

/* Address of a message. */
static inline uint8_t *destination(const struct sink *s, const struct guest *g, uint32_t pair,
				   uint64_t number)
{
	return (uint8_t *)s->memory.base + g->offset +
	       (number * g->plan.pairs + pair) % g->plan.destinations * g->plan.size;
}

/* --- writer --- */

struct writer;

/* A queue pair, or a socket. */
struct lane {
	struct target *target;
	uint32_t index;			/* in the target */
	uint64_t number;		/* number of the next message */
	uint64_t left;			/* messages left in this repetition */
	void *path;			/* private to the transport */
	/* read by other threads */
	_Atomic uint64_t sent;
	_Atomic uint64_t completed;	/* number of the last completed message, plus one */
};

/* A sink. */
struct target {
	struct writer *writer;
	struct link link;
	const char *to;
	uint64_t address;
	uint32_t key;
	struct lane *lane;
};

/* A sending thread, with its lanes. */
struct sender {
	struct writer *writer;
	uint32_t index;
	pthread_t thread;
	bool running;
	struct lane **lane;
	uint32_t lanes;
	uint64_t rate;			/* bytes a second; 0: no limit */
	uint64_t full;			/* rounds in which nothing could be posted */
	uint64_t cpu_ns;
	void *path;			/* private to the transport */
	char why[WHY_SIZE];
};

struct writer {
	const struct write_config *config;
	const struct writer_way *way;
	struct plan plan;
	struct pages memory;
	struct target target[WRITERS_MOST];
	uint32_t targets;
	struct sender sender[THREADS_MOST];
	uint32_t senders;
	void *path;			/* private to the transport */
	const struct rashpa_net_info *port;	/* NULL: none */
	_Atomic bool halt;		/* the time is over */
	_Atomic uint32_t done;		/* threads that have sent all messages */
	volatile bool *stop;
};

struct write_config {
	struct network_settings common;
	struct plan plan;
	const char *to[WRITERS_MOST];
	uint32_t targets;
	double time, warm_up;		/* seconds */
	uint32_t depth, sources;
	uint64_t rate;
};

struct writer_way {
	int (*open)(struct writer *w, char *why);	/* called with memory */
	int (*open_sender)(struct sender *s, char *why);
	/* adds to the message "hello" */
	int (*open_lane)(struct lane *l, struct sender *s, struct json_object *ends, char *why);
	int (*connect)(struct lane *l, struct json_object *acceptance, char *why);
	int (*send)(struct sender *s);		/* until writer->halt; the reason goes to s->why */
	void (*arrivals)(const struct writer *w, struct arrivals *arrivals);	/* or NULL */
	void (*close_lane)(struct lane *l);
	void (*close_sender)(struct sender *s);
	void (*close)(struct writer *w);
};

/* Run a repetition, and add its result. 0, or -1 and why. */
int writer_lap(struct writer *writer, struct json_object *laps, char *why);

extern const struct writer_way writer_write, writer_udp, writer_zmq;

/* Number of messages that this lane may send now, at most n. */
uint32_t lane_may(const struct lane *lane, uint32_t n);
void lane_sent(struct lane *lane, uint32_t n);
/* Has the thread sent all its messages? */
bool sender_done(const struct sender *sender);
/* Wait until the rate allows this number of bytes since start. */
void sender_pace(const struct sender *sender, uint64_t start, uint64_t bytes);

#endif /* BENCH_NETWORK_H */
