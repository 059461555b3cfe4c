/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef REMU_H
#define REMU_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "link/cpus.h"
#include "daemon/daemon.h"
#include "dataset/dataset.h"
#include "link/transport.h"
#include "common/options.h"
#include "common/parse.h"
#include <rashpa-board.h>
#include <rashpa-fpga.h>
#include "verbs/verbs.h"
#include <rashpa-stream.h>

#define RECEIVERS_MOST	64

/* Over a network. */
struct network_config {
	const struct transport *transport;
	const struct sending *sending;
	struct rashpa_net_options options;
	const char *to[RECEIVERS_MOST];
	uint32_t receivers;
	struct wire_tls *tls;		/* NULL: no TLS */
	enum share {
		SHARE_NONE,		/* each receiver gets all */
		SHARE_IMAGES, SHARE_STACKS,	/* each gets 1 of N, for N receivers */
	} share;
	uint32_t immediate;		/* enum contract_immediate */
	uint32_t message;		/* size limit of a message in bytes; 0: a packet */
	uint32_t linked;		/* writes posted together */
	uint32_t writes;		/* most writes under way in each process */
	double ramp;			/* in seconds */
	hwloc_const_bitmap_t cpus;	/* processors for the threads; NULL: any */
	uint32_t first;			/* immediate of the first message */
	bool first_given;
};

struct config {
	struct stream_options opt;
	const struct tune *tunes;
	struct daemon_options daemon;
	unsigned int fpga;
	struct region region[RFPGA_DTPS_MAX];
	unsigned int regions, split;
	uint32_t bunch, sampling, phase, vector;
	struct depth depth;				/* size of the buffer, as given */
	uint32_t slots;					/* size in stacks; 0: as many as fit */
	uint64_t images;				/* images to send; 0: no limit */
	uint64_t period;				/* ticks, with a rate */
	uint32_t policy;				/* enum rashpa_stream_policy */
	bool policy_given, live, resume;
	struct network_config net;
	const char *lock;		/* name of lock memory, NULL: lock records in the buffer */
	const char *payload;		/* name of the slots' memory, NULL: in the buffer */
};

/* Counts of the FPGA. */
struct report {
	uint32_t dtps, segments, map_class;
	bool iommu, interrupted;
	bool counted;			/* false: the board did not answer, no counts */
	struct rashpa_dtp_stat count;
	uint64_t first_stack;
	uint64_t load_ns, load_bytes;	/* loading of the dataset into on-board memory */
	uint32_t loaded;		/* images in on-board memory */
	uint32_t slots;
};

extern const char * const policies[];	/* names, by enum rashpa_stream_policy */

/* All of a stream that does not depend on who writes it. */
void plan_stream(struct rashpa_stream_plan *plan, struct rashpa_stream_process *process,
		 const struct config *config, const struct dataset *dataset);

/* Prints the report of a board. An exit code. */
int report_board(const struct config *config, const struct dataset *dataset,
		 const struct report *report);

struct sender;
struct worker;
struct message;
struct packets;
struct contract_process;

/* remu's half of a transport: how images are sent. */
struct sending {
	/*
	 * Stream until all images are sent, or a signal sets *stop, and report. An exit code, after
	 * messages.
	 */
	int (*run)(const struct config *config, struct dataset *dataset, volatile bool *stop);
	/* array of the paths to receivers, with limits as far as they can be found out now; or NULL */
	struct json_object *(*paths)(const struct config *config, struct dataset *dataset);

	/*
	 * What follows is for sender_run(), which sends messages. Calls return 0, or -1 and a reason in
	 * @why; a worker has its own.
	 */
	/* false: not known */
	bool (*packets)(const struct sender *s, struct packets *p);
	/* sets sender->message, unless it was given */
	int (*open)(struct sender *s, char *why);
	int (*open_worker)(struct worker *w, char *why);
	/* fills in the worker's addresses, which the receiver needs; or NULL */
	void (*address)(const struct worker *w, struct contract_process *process);
	uint32_t (*mtu)(const struct sender *s);
	/* after receiver->accept is set */
	int (*connect)(struct worker *w, char *why);
	int (*send)(struct worker *w, const struct message *m);
	/* returns when all messages have left the machine */
	int (*drain)(struct worker *w);
	void (*report)(const struct sender *s, struct json_object *o);	/* or NULL */
	void (*close_worker)(struct worker *w);
	void (*close)(struct sender *s);				/* or NULL */
};

#define SENDING(transport, ...) extern const struct sending sending_##transport;
TRANSPORTS(SENDING)
#undef SENDING

#endif /* REMU_H */
