/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A ring of the board under test: its memory is what entry 0 has. */
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

extern uint32_t ring_base, ring_doorbell;	/* of the first one */
extern uint32_t ring_tail, ring_consumed;	/* what ring_tell() tells */

void ring_find(void);				/* or the test is skipped */
void ring_program(void);			/* in loopback, not started */
void ring_go(void);
void ring_end(void);
void ring_tell(void);

/* Descriptor @n, of payload from @source on; the generation is another one by @off. */
void ring_describe(uint32_t n, uint64_t source, uint32_t length, uint32_t off);
uint32_t ring_descriptor(uint32_t n);		/* where it is */
void ring_put32(uint32_t at, uint32_t value);

/* Of event @n: is it there, does it come, a part of it, what is in its status. */
bool ring_has(uint32_t n);
bool ring_comes(uint32_t n);
uint64_t ring_event(uint32_t n, uint32_t word, unsigned int size);
uint32_t ring_status(uint32_t n);
uint64_t ring_counter(uint32_t which);

#endif /* CONFORMANCE_RING_H */
