/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A ring of the board under test, in the memory of entry 0. */
#ifndef CONFORMANCE_RING_H
#define CONFORMANCE_RING_H

#include <stdbool.h>
#include <stdint.h>

#define RING_RUN		0x5eedu
#define RING_TX_LOG2		3u
#define RING_EVENTS_LOG2	4u
#define RING_RECEIVE_LOG2	8u

/* offsets in that memory */
#define RING_DESCRIPTORS	0x0000u
#define RING_EVENTS		0x2000u
#define RING_RECEIVE		0x4000u
#define RING_SOURCE		0x8000u

extern uint32_t ring_base, ring_doorbell;	/* the first ring's */
extern uint32_t ring_tail, ring_consumed;	/* numbers that ring_tell() writes */

void ring_find(void);				/* skips the test without a ring */
void ring_program(void);			/* in loopback, not started */
void ring_go(void);
void ring_end(void);
void ring_tell(void);

/* Descriptor @n, with payload at @source; @off is added to its generation. */
void ring_describe(uint32_t n, uint64_t source, uint32_t length, uint32_t off);
uint32_t ring_descriptor(uint32_t n);		/* its offset */
void ring_put32(uint32_t at, uint32_t value);

/* Event @n: does it exist, does it arrive, a part of it, its status. */
bool ring_has(uint32_t n);
bool ring_comes(uint32_t n);
uint64_t ring_event(uint32_t n, uint32_t word, unsigned int size);
uint32_t ring_status(uint32_t n);
uint64_t ring_counter(uint32_t which);

#endif /* CONFORMANCE_RING_H */
