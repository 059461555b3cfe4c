/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages of one queue pair, as packets. */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "frames/frame.h"

struct plan {
	struct frame like;		/* addresses, ports, queue pair, key; the first PSN */
	uint8_t transport;
	uint32_t path_mtu;
	uint32_t size;			/* bytes of a message */
	uint64_t messages;		/* 0: no end */
	uint64_t address, region;	/* region 0: all messages at one address */
	bool has_immediate, solicited;
	uint32_t immediate;		/* immediate of the first message */
	const uint8_t *data;		/* NULL: the pattern */
	uint64_t data_size;
};

/* Packets of a message, and of all of them (UINT64_MAX: no end). */
uint64_t plan_per_message(const struct plan *p);
uint64_t plan_frames(const struct plan *p);

uint8_t plan_opcode(const struct plan *p, uint64_t n);

/* Make packet n, from 0; buf receives its payload. */
void plan_frame(const struct plan *p, uint64_t n, struct frame *f, uint8_t *buf);

#endif /* PLAN_H */
