/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Faults that rashpa-inject can inject. */
#ifndef FAULT_H
#define FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "frames/plan.h"
#include "common/say.h"

#define FAULTS_MAX	1024
#define FRAME_MAX	65536		/* bytes of a frame, with those that a fault adds */
#define FAULT_KINDS	"icrc psn opcode drop duplicate reorder df mtu qp short length port " \
			"immediate checksum udp-checksum"

enum injected {
	INJECT_ICRC, INJECT_PSN, INJECT_OPCODE, INJECT_DROP, INJECT_DUPLICATE, INJECT_REORDER,
	INJECT_DF, INJECT_MTU, INJECT_QP, INJECT_SHORT, INJECT_LENGTH, INJECT_PORT,
	INJECT_IMMEDIATE, INJECT_CHECKSUM, INJECT_UDP_CHECKSUM, INJECTED_KINDS
};

struct injected_fault {
	enum injected kind;
	uint64_t frame;			/* from 1, of the packets without faults */
	bool told;			/* value was given */
	bool zero, swapped;		/* ICRC */
	uint32_t value;
	uint64_t sent_as;		/* number of the faulty frame on the wire; 0: none */
};

/* KIND@N[:VALUE]; 0, or -1 with the reason. */
int fault_parse(const char *text, struct injected_fault *fault, char why[WHY_SIZE]);

/* Does the packet exist, with the field to change? Sets a default value if none was given. */
int fault_fits(struct injected_fault *fault, const struct plan *plan, char why[WHY_SIZE]);

const char *fault_name(enum injected kind);

/* Before and after it becomes bytes. buf has the payload. */
void fault_in_frame(const struct injected_fault *fault, const struct plan *plan, struct frame *f,
		    uint8_t *buf);
void fault_in_bytes(const struct injected_fault *fault, uint8_t *data, size_t *size);

#endif /* FAULT_H */
