/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks frames of RoCE v2, by source, destination and queue pair. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frames/frame.h"
#include "frames/sequence.h"

enum fault {
	FAULT_ICRC,
	FAULT_PSN,		/* the number of one packet is wrong, or the first one */
	FAULT_PSN_GAP,
	FAULT_PSN_DUPLICATE,
	FAULT_PSN_ORDER,
	FAULT_PSN_BACK,
	FAULT_OPCODE,
	FAULT_LENGTH,
	FAULT_MTU,
	FAULT_DF,
	FAULT_FRAGMENT,
	FAULT_SHORT,
	FAULT_CHECKSUM,
	FAULT_PORT,
	FAULT_HEADER,
	FAULT_QUEUE_PAIR,
	FAULT_IMMEDIATE,
	FAULT_IMMEDIATE_GAP,
	FAULT_IMMEDIATE_DUPLICATE,
	FAULT_IMMEDIATE_ORDER,
	FAULT_IMMEDIATE_BACK,
	FAULTS
};

extern const char * const fault_names[FAULTS];

#define CHECK_FLOWS_MAX	65536
#define FINDING_TEXT	256

struct finding {
	uint64_t frame;			/* number in the capture, from 1 */
	enum fault fault;
	uint64_t expected, got;
	char text[FINDING_TEXT];
};

struct queue_pair {
	uint32_t qpn, first_psn;
	bool psn_told;
};

struct check_options {
	const struct queue_pair *queue_pairs;	/* n_queue_pairs 0: any */
	unsigned int n_queue_pairs;
	uint32_t path_mtu;			/* 0: taken from first packets of messages */
	uint32_t mtu;				/* largest IP packet; 0: any */
	bool no_immediate;			/* immediate values are no sequence */
};

struct packet {
	uint64_t number;
	uint8_t opcode;
	bool icrc_wrong, lengths_wrong;	/* already reported */
	uint32_t psn, length, immediate;
	size_t payload;
};

/* One direction of one queue pair. */
struct flow {
	struct {
		unsigned int ip;
		uint8_t from[16], to[16];
		uint32_t qpn;
	} key;
	uint64_t packets, bytes, messages, responses;
	uint64_t faults[FAULTS];
	uint64_t missing, immediates_missing;
	uint32_t first_psn, last_psn, path_mtu;
	uint8_t opcode;			/* opcode of the first packet */

	struct sequence psn, immediates;
	bool first_told;		/* the first PSN is given, and has not arrived yet */
	bool doubt;			/* held waits for the next packet */
	struct packet held;
	bool immediate_doubt;
	uint64_t immediate_number;
	uint32_t immediate_held;

	enum { MESSAGE_UNKNOWN, MESSAGE_NONE, MESSAGE_OPEN } message;
	bool length_known;
	uint64_t length, so_far;
	unsigned int kind;		/* PART_SEND or PART_WRITE */
};

struct check {
	struct check_options options;
	void (*found)(void *arg, const struct finding *finding);
	void *arg;

	uint64_t frames, others, cut, roce, no_icrc, not_followed;
	uint64_t faults[FAULTS];
	struct flow **flows;		/* in order of arrival */
	unsigned int n_flows;
	void *tree;
};

/* found is called for each fault, in the order of detection. */
void check_begin(struct check *c, const struct check_options *options,
		 void (*found)(void *arg, const struct finding *finding), void *arg);

/* The next frame of the capture: 0, or -1: no memory. */
int check_frame(struct check *c, const uint8_t *data, size_t captured, size_t wire,
		enum frame_link link);

/* The capture has ended. */
void check_end(struct check *c);
void check_free(struct check *c);

uint64_t check_faults(const struct check *c);

/* flow.c: check a packet of a flow, and the end of a flow. */
void flow_packet(struct check *c, struct flow *f, const struct packet *p);
void flow_end(struct check *c, struct flow *f);

#define FLOW_TEXT	(2 * ADDRESS_TEXT + 32)
const char *flow_text(char text[FLOW_TEXT], const struct flow *f);

/* Report a fault. f may be NULL. */
__attribute__((format(printf, 7, 8)))
void found(struct check *c, struct flow *f, uint64_t number, enum fault fault, uint64_t expected,
	   uint64_t got, const char *format, ...);

#endif /* CHECK_H */
