// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rings: descriptors and events in memory of the host. All tests use loopback, so no wire is
 * needed: the board receives the datagrams that it sends.
 */
#include "conformance/ring.h"

#include "conformance/dtp.h"

#include <string.h>

#include "common/words.h"

#define LENGTH		96u

uint32_t ring_base, ring_doorbell, ring_tail, ring_consumed;

static uint32_t rings;

void ring_find(void)
{
	ring_base = block(RFPGA_BLOCK_RING, &rings);
	if (!rings || rd(ring_base + RFPGA_RING_KIND) != RFPGA_RING_WIRE)
		skip("it has no ring");
	ring_doorbell = block_doorbell(RFPGA_BLOCK_RING) + RFPGA_DB_RING;
}

void ring_program(void)
{
	wr(ring_base + RFPGA_RING_MODE, RFPGA_RING_LOOPBACK);
	wr(ring_base + RFPGA_RING_VECTOR, 0);
	wr(ring_base + RFPGA_RING_RUN, RING_RUN);
	wr(ring_base + RFPGA_RING_FIRST, 0);
	wr(ring_base + RFPGA_RING_COUNT, 1);
	wr64(ring_base + RFPGA_RING_DESCRIPTORS, RING_DESCRIPTORS);
	wr64(ring_base + RFPGA_RING_EVENTS, RING_EVENTS);
	wr(ring_base + RFPGA_RING_DESCRIPTORS_LOG2, RING_TX_LOG2);
	wr(ring_base + RFPGA_RING_EVENTS_LOG2, RING_EVENTS_LOG2);
	wr(ring_base + RFPGA_RING_PAYLOAD_FIRST, 0);
	wr(ring_base + RFPGA_RING_PAYLOAD_COUNT, 1);
	wr64(ring_base + RFPGA_RING_RECEIVE, RING_RECEIVE);
	wr(ring_base + RFPGA_RING_RECEIVE_LOG2, RING_RECEIVE_LOG2);
	wr(ring_base + RFPGA_RING_DEADLINE, 0);
}

void ring_go(void)
{
	ring_tail = ring_consumed = 0;
	wr(ring_base + RFPGA_RING_CONTROL, RFPGA_RING_START);
	CHECK_EQ(rd(ring_base + RFPGA_RING_STATUS), RFPGA_RING_RUNNING);
}

static void start_ring(void)
{
	ring_find();
	ring_program();
	ring_go();
}

static bool rests(void)
{
	return !(rd(ring_base + RFPGA_RING_STATUS) & RFPGA_RING_RUNNING);
}

void ring_end(void)
{
	wr(ring_base + RFPGA_RING_CONTROL, RFPGA_RING_STOP);
	CHECK(EVENTUALLY(rests()));
	CHECK_EQ(rd(RFPGA_STATUS) & RFPGA_STATUS_BUSY, 0);
}

void ring_tell(void)
{
	doorbell_write64(ring_doorbell, RFPGA_RING_BELL(ring_tail, ring_consumed, RING_RUN));
}

uint64_t ring_counter(uint32_t which)
{
	return rd64(ring_base + which);
}

void ring_put32(uint32_t at, uint32_t value)
{
	memcpy(host + DST + at, &value, sizeof(value));
}

static void put64(uint32_t at, uint64_t value)
{
	memcpy(host + DST + at, &value, sizeof(value));
}

uint32_t ring_descriptor(uint32_t n)
{
	return RING_DESCRIPTORS + n % (1u << RING_TX_LOG2) * RFPGA_TX_SIZE;
}

void ring_describe(uint32_t n, uint64_t source, uint32_t length, uint32_t off)
{
	const uint32_t at = ring_descriptor(n);

	memset(host + DST + at, 0, RFPGA_TX_SIZE);
	put64(at + RFPGA_TX_SOURCE, source);
	ring_put32(at + RFPGA_TX_LENGTH, length);
	ring_put32(at + RFPGA_TX_ADDRESS, 0x7f000001);
	ring_put32(at + RFPGA_TX_PORT, 9);
	put64(at + RFPGA_TX_CONTEXT, 1000ull + n);
	ring_put32(at + RFPGA_TX_GENERATION,
		   RFPGA_RING_GENERATION(RING_RUN, n, RING_TX_LOG2) + off);
}

static void put_payload(uint32_t n)
{
	unsigned int i;

	for (i = 0; i < LENGTH; i++)
		host[DST + RING_SOURCE + n % (1u << RING_TX_LOG2) * 256 + i] = (uint8_t)(n * 7 + i);
}

/* Add the next datagram to the ring; the caller rings the doorbell. */
static void give_one(void)
{
	put_payload(ring_tail);
	ring_describe(ring_tail, RING_SOURCE + ring_tail % (1u << RING_TX_LOG2) * 256, LENGTH, 0);
	ring_tail++;
}

uint64_t ring_event(uint32_t n, uint32_t word, unsigned int size)
{
	const uint32_t at = RING_EVENTS + n % (1u << RING_EVENTS_LOG2) * RFPGA_EVENT_SIZE;

	return word_read(host + DST + at + word, size);
}

bool ring_has(uint32_t n)
{
	return ring_event(n, RFPGA_EVENT_GENERATION, 4) ==
	       RFPGA_RING_GENERATION(RING_RUN, n, RING_EVENTS_LOG2);
}

bool ring_comes(uint32_t n)
{
	return EVENTUALLY(ring_has(n));
}

uint32_t ring_status(uint32_t n)
{
	return RFPGA_EVENT_STATUS((uint32_t)ring_event(n, RFPGA_EVENT_KIND, 4));
}

/* Event @n reports that descriptor @d was sent, or its error. */
static void check_sent(uint32_t n, uint32_t d, uint32_t status_bits)
{
	CHECK(ring_comes(n));
	CHECK_EQ(ring_event(n, RFPGA_EVENT_KIND, 2), RFPGA_EVENT_SENT);
	CHECK_EQ(ring_status(n), status_bits);
	CHECK_EQ(ring_event(n, RFPGA_EVENT_CONTEXT, 8), 1000 + d);
	CHECK_EQ(ring_event(n, RFPGA_EVENT_OFFSET, 4), d);
}

/* Event @n reports that datagram @d arrived, and its payload is right. */
static void check_received(uint32_t n, uint32_t d)
{
	uint32_t at;
	unsigned int i, differ = 0;

	CHECK(ring_comes(n));
	CHECK_EQ(ring_event(n, RFPGA_EVENT_KIND, 4), RFPGA_EVENT_RECEIVED);
	CHECK_EQ(ring_event(n, RFPGA_EVENT_CONTEXT, 8), d);
	CHECK_EQ(ring_event(n, RFPGA_EVENT_LENGTH, 4), LENGTH);
	at = (uint32_t)ring_event(n, RFPGA_EVENT_OFFSET, 4);
	CHECK_EQ(at, n % (1u << RING_EVENTS_LOG2) << RING_RECEIVE_LOG2);
	for (i = 0; i < LENGTH; i++)
		differ += word_read(host + DST + RING_RECEIVE + at + i, 1) != (uint8_t)(d * 7 + i);
	CHECK_EQ(differ, 0);
}

static void test_registers(void)
{
	uint32_t at;

	ring_find();
	for (at = 0; at < RFPGA_RING_SIZE; at += 4)
		CHECK(at == RFPGA_RING_KIND || (at >= RFPGA_RING_DATAGRAM_MAX &&
						at <= RFPGA_RING_PORT) || !rd(ring_base + at));
	CHECK(rd(ring_base + RFPGA_RING_DATAGRAM_MAX) >= 1024);
	CHECK(rd(ring_base + RFPGA_RING_FIFO) >= 1);
	ring_program();
	CHECK_EQ(rd64(ring_base + RFPGA_RING_RECEIVE), RING_RECEIVE);
	CHECK_EQ(rd(ring_base + RFPGA_RING_RUN), RING_RUN);
	wr(ring_base + RFPGA_RING_KIND, 7);
	CHECK_EQ(rd(ring_base + RFPGA_RING_KIND), RFPGA_RING_WIRE);
	ring_go();
	CHECK_EQ(rd(ring_base + RFPGA_RING_CONTROL), 0);
	CHECK_EQ(rd(RFPGA_STATUS) & RFPGA_STATUS_BUSY, RFPGA_STATUS_BUSY);
	CHECK_EQ(doorbell_read64(ring_doorbell), RFPGA_RING_BELL(0, 0, RING_RUN));
	wr(ring_base + RFPGA_RING_RUN, 77);
	CHECK_EQ(rd(ring_base + RFPGA_RING_RUN), RING_RUN);
	/* a stop of the whole board stops it too, because it writes to memory of the host */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(!(rd(RFPGA_STATUS) & RFPGA_STATUS_BUSY)));
	CHECK_EQ(rd(ring_base + RFPGA_RING_STATUS), 0);
	CHECK_EQ(rd(RFPGA_STOPS), 1);
	ring_go();
	wr(ring_base + RFPGA_RING_CONTROL, RFPGA_RING_START | RFPGA_RING_STOP);
	CHECK(EVENTUALLY(!rd(ring_base + RFPGA_RING_STATUS)));
	CHECK_EQ(rd(RFPGA_STOPS), 2);
	ring_go();
	wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK(EVENTUALLY(!(rd(RFPGA_STATUS) & RFPGA_STATUS_RESETTING)));
	CHECK_EQ(rd(ring_base + RFPGA_RING_STATUS) | rd(ring_base + RFPGA_RING_RUN), 0);
	CHECK_EQ(doorbell_read64(ring_doorbell), 0);
}

static void test_config(void)
{
	const uint32_t wide = too_wide(board.offset_bits);
	const struct { uint32_t reg, value; } bad[] = {
		{ RFPGA_RING_MODE, 1 }, { RFPGA_RING_MODE, 0x10 },
		{ RFPGA_RING_RUN, 0 }, { RFPGA_RING_RUN, 0x10000 },
		{ RFPGA_RING_FIRST, board.entries }, { RFPGA_RING_COUNT, 0 },
		{ RFPGA_RING_COUNT, board.entries + 1 },
		{ RFPGA_RING_DESCRIPTORS, 32 }, { RFPGA_RING_EVENTS, 16 },
		{ RFPGA_RING_DESCRIPTORS_LOG2, 16 }, { RFPGA_RING_EVENTS_LOG2, 0 },
		{ RFPGA_RING_EVENTS_LOG2, 16 },
		{ RFPGA_RING_PAYLOAD_FIRST, UINT32_MAX }, { RFPGA_RING_PAYLOAD_COUNT, 0 },
		{ RFPGA_RING_PAYLOAD_COUNT, UINT32_MAX },
		{ RFPGA_RING_RECEIVE, 32 }, { RFPGA_RING_RECEIVE_LOG2, 5 },
		{ RFPGA_RING_RECEIVE_LOG2, 17 },
		{ RFPGA_RING_DESCRIPTORS + 4, wide }, { RFPGA_RING_EVENTS + 4, wide },
		{ RFPGA_RING_RECEIVE + 4, wide },
	};
	unsigned int i;

	ring_find();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const bool high = i >= sizeof(bad) / sizeof(bad[0]) - 3;

		if (high && board.offset_bits >= 64)
			break;
		ring_program();
		wr(ring_base + bad[i].reg, bad[i].value);
		wr(ring_base + RFPGA_RING_CONTROL, RFPGA_RING_START);
		CHECK_EQ(rd(ring_base + RFPGA_RING_STATUS), RFPGA_RING_FAULTED);
		CHECK_EQ(rd(ring_base + RFPGA_RING_FAULT_CAUSE), RFPGA_FAULT_CONFIG);
		CHECK_EQ(rd64(ring_base + RFPGA_RING_FAULT_ADDR),
			 ring_base + bad[i].reg - (high ? 4 : 0));
		CHECK_EQ(rd64(RFPGA_FAULTS), i + 1);
		CHECK_EQ(rd(RFPGA_FAULT_DTP), RFPGA_FAULT_RING(0));
	}
	ring_program();
	wr(ring_base + RFPGA_RING_VECTOR, board.vectors);
	ring_go();				/* the vector is not used */
	CHECK_EQ(rd(ring_base + RFPGA_RING_FAULT_CAUSE), RFPGA_FAULT_NONE);
	ring_end();
}

/* Ring and queue wrap many times; no datagram is lost, repeated or out of order. */
static void test_loop(void)
{
	uint32_t n, rounds = 300;

	start_ring();
	for (n = 0; n < rounds && !failed; n++) {
		give_one();
		ring_tell();
		check_sent(2 * n, n, 0);
		check_received(2 * n + 1, n);
		ring_consumed += 2;
	}
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), rounds);
	CHECK_EQ(ring_counter(RFPGA_RING_C_RECEIVED), rounds);
	CHECK_EQ(ring_counter(RFPGA_RING_C_EVENTS), 2 * rounds);
	CHECK_EQ(ring_counter(RFPGA_RING_C_BYTES), (uint64_t)rounds * LENGTH);
	CHECK_EQ(ring_counter(RFPGA_RING_C_ERRORS) + ring_counter(RFPGA_RING_C_LATE) +
		 ring_counter(RFPGA_RING_C_LOST) + ring_counter(RFPGA_RING_C_HELD), 0);
	ring_end();
}

/* Without a consumer the board holds datagrams without room, counts them, and resumes with room. */
static void test_full(void)
{
	const uint32_t fit = (1u << RING_EVENTS_LOG2) / 2;
	uint32_t n;

	start_ring();
	for (n = 0; n < fit; n++)
		give_one();
	ring_tell();
	for (n = 0; n < fit; n++)
		check_received(2 * n + 1, n);
	CHECK_EQ(rd(ring_base + RFPGA_RING_STATUS), RFPGA_RING_RUNNING);
	for (n = 0; n < 3; n++)
		give_one();
	ring_tell();
	CHECK(EVENTUALLY(rd(ring_base + RFPGA_RING_STATUS) ==
			 (RFPGA_RING_RUNNING | RFPGA_RING_WAITING)));
	pass_us(5000);
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), fit);
	CHECK_EQ(ring_counter(RFPGA_RING_C_HELD), 1);
	for (n = 0; n < 2 * fit; n++)
		CHECK(ring_has(n));
	/* room for one event is not enough: a datagram in loopback makes two */
	ring_consumed = 1;
	ring_tell();
	pass_us(5000);
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), fit);
	CHECK(!ring_has(2 * fit));
	for (n = 0; n < 3; n++) {
		ring_consumed = 2 * n + 2;
		ring_tell();
		check_sent(2 * (fit + n), fit + n, 0);
		check_received(2 * (fit + n) + 1, fit + n);
	}
	CHECK_EQ(ring_counter(RFPGA_RING_C_HELD), 3);
	CHECK_EQ(ring_counter(RFPGA_RING_C_LOST), 0);
	CHECK_EQ(rd(ring_base + RFPGA_RING_STATUS), RFPGA_RING_RUNNING);
	ring_end();
}

static void check_bell_fault(void)
{
	CHECK(EVENTUALLY(rd(ring_base + RFPGA_RING_STATUS) == RFPGA_RING_FAULTED));
	CHECK_EQ(rd(ring_base + RFPGA_RING_FAULT_CAUSE), RFPGA_FAULT_CONFIG);
	CHECK_EQ(rd64(ring_base + RFPGA_RING_FAULT_ADDR), ring_doorbell);
	CHECK_EQ(rd(RFPGA_FAULT_DTP), RFPGA_FAULT_RING(0));
	CHECK_EQ(rd(RFPGA_STATUS) & RFPGA_STATUS_BUSY, 0);
}

/* Doorbells of another run are ignored; a tail too far, or events never sent, end the ring. */
static void test_doorbell(void)
{
	start_ring();
	give_one();
	doorbell_write64(ring_doorbell, RFPGA_RING_BELL(1, 0, RING_RUN - 1));
	pass_us(5000);
	CHECK_EQ(ring_counter(RFPGA_RING_C_EVENTS), 0);
	/* the lower half first: it counts when both are there */
	doorbell_write(ring_doorbell, 1);
	pass_us(5000);
	CHECK_EQ(ring_counter(RFPGA_RING_C_EVENTS), 0);
	doorbell_write(ring_doorbell + 4, RING_RUN);
	check_received(1, 0);
	CHECK_EQ(ring_counter(RFPGA_RING_SEEN), RFPGA_RING_BELL(1, 0, RING_RUN));
	/* the run is set, so the lower half is enough */
	give_one();
	ring_consumed = 2;
	doorbell_write(ring_doorbell, (uint32_t)RFPGA_RING_BELL(2, 2, RING_RUN));
	check_received(3, 1);
	ring_tail += (1u << RING_TX_LOG2) + 1;
	ring_tell();
	check_bell_fault();
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), 2);
	ring_go();
	ring_consumed = 1;
	ring_tell();
	check_bell_fault();
	ring_go();
	ring_tail = UINT16_MAX;		/* backwards */
	ring_tell();
	check_bell_fault();
}

/* Descriptors that are missing or of the previous lap are reported and not sent. */
static void test_stale(void)
{
	uint32_t n;

	start_ring();
	give_one();
	ring_describe(ring_tail, RING_SOURCE, LENGTH, 1);
	ring_tail++;
	ring_describe(ring_tail, RING_SOURCE, LENGTH, 0x10000);
	ring_tail++;
	give_one();
	ring_tell();
	check_received(1, 0);
	check_sent(2, 1, RFPGA_EVENT_STALE);
	check_sent(3, 2, RFPGA_EVENT_STALE);
	CHECK_EQ(ring_event(3, RFPGA_EVENT_LENGTH, 4), 0);
	check_sent(4, 3, 0);
	CHECK_EQ(ring_counter(RFPGA_RING_C_ERRORS), 2);
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), 2);
	ring_consumed = 6;
	for (n = 4; n < 1u << RING_TX_LOG2; n++)
		give_one();
	ring_tell();
	CHECK(ring_comes(5 + 2 * (n - 4)));
	ring_consumed = 6 + 2 * (n - 4);
	ring_tail++;				/* the first one again, of the previous lap */
	ring_tell();
	CHECK(ring_comes(ring_consumed));
	CHECK_EQ(ring_status(ring_consumed), RFPGA_EVENT_STALE);
	CHECK_EQ(ring_counter(RFPGA_RING_C_ERRORS), 3);
	ring_end();
}

/* Datagrams that cannot be sent are reported, and the ring goes on. */
static void test_wrong(void)
{
	const uint32_t longest = rd(block(RFPGA_BLOCK_RING, &rings) + RFPGA_RING_DATAGRAM_MAX);
	const uint64_t beyond = board.entries > 1 ? 32 << 20 : HOST_SIZE;
	unsigned int i;

	start_ring();
	ring_describe(0, RING_SOURCE, longest + 1, 0);
	ring_describe(1, RING_SOURCE, LENGTH, 0);
	ring_put32(RING_DESCRIPTORS + RFPGA_TX_SIZE + RFPGA_TX_PORT, 0);
	ring_describe(2, RING_SOURCE, LENGTH, 0);
	ring_put32(RING_DESCRIPTORS + 2 * RFPGA_TX_SIZE + RFPGA_TX_FLAGS, 2);
	ring_describe(3, beyond, LENGTH, 0);
	ring_describe(4, beyond - 1, LENGTH, 0);
	ring_describe(5, UINT64_MAX, LENGTH, 0);
	ring_describe(6, RING_SOURCE, 0, 0);
	ring_tail = 7;
	ring_tell();
	for (i = 0; i < 6; i++)
		check_sent(i, i, i < 3 ? RFPGA_EVENT_INVALID : RFPGA_EVENT_REFUSED);
	check_sent(6, 6, 0);
	CHECK(ring_comes(7));
	CHECK_EQ(ring_event(7, RFPGA_EVENT_LENGTH, 4), 0);
	CHECK_EQ(ring_counter(RFPGA_RING_C_ERRORS), 6);
	/* a refused descriptor is not a fault of the board */
	CHECK_EQ(rd64(RFPGA_FAULTS), 0);
	ring_end();
}

/* A datagram larger than its room is cut and marked; memory after its room stays. */
static void test_cut(void)
{
	ring_find();
	ring_program();
	wr(ring_base + RFPGA_RING_RECEIVE_LOG2, 6);
	ring_go();
	give_one();
	ring_tell();
	CHECK(ring_comes(1));
	CHECK_EQ(ring_status(1), RFPGA_EVENT_CUT);
	CHECK_EQ(ring_event(1, RFPGA_EVENT_LENGTH, 4), 64);
	CHECK_EQ(host[DST + RING_RECEIVE + 64 + 63], 63);
	CHECK_EQ(host[DST + RING_RECEIVE + 128], CANARY);
	ring_end();
	/* without a receive buffer there is one event less */
	ring_program();
	wr(ring_base + RFPGA_RING_RECEIVE_LOG2, 0);
	ring_go();
	memset(host + DST + RING_EVENTS, 0, 1u << 12);
	give_one();
	give_one();
	ring_tell();
	check_sent(0, 0, 0);
	check_sent(1, 1, 0);
	CHECK_EQ(ring_counter(RFPGA_RING_C_RECEIVED), 0);
	ring_end();
}

/* An answer after its deadline is sent, reported and counted; other datagrams have no deadline. */
static void test_late(void)
{
	uint32_t at = RING_DESCRIPTORS, since;

	ring_find();
	ring_program();
	wr(ring_base + RFPGA_RING_DEADLINE, board.tick_rate);	/* a second */
	ring_go();
	give_one();
	ring_tell();
	check_received(1, 0);
	since = (uint32_t)ring_event(1, RFPGA_EVENT_TICKS, 4);
	give_one();
	ring_put32(at + RFPGA_TX_SIZE + RFPGA_TX_SINCE, since - board.tick_rate);
	give_one();
	ring_put32(at + 2 * RFPGA_TX_SIZE + RFPGA_TX_SINCE, since - board.tick_rate);
	ring_put32(at + 2 * RFPGA_TX_SIZE + RFPGA_TX_FLAGS, RFPGA_TX_ANSWER);
	ring_tell();
	check_sent(2, 1, 0);
	check_sent(4, 2, RFPGA_EVENT_LATE);
	check_received(5, 2);
	CHECK_EQ(ring_counter(RFPGA_RING_C_LATE), 1);
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), 3);
	ring_end();
	/* without a deadline nothing is late */
	ring_program();
	ring_go();
	give_one();
	ring_put32(at + RFPGA_TX_SINCE, since - board.tick_rate);
	ring_put32(at + RFPGA_TX_FLAGS, RFPGA_TX_ANSWER);
	memset(host + DST + RING_EVENTS, 0, 1u << 12);
	ring_tell();
	check_sent(0, 0, 0);
	CHECK_EQ(ring_counter(RFPGA_RING_C_LATE), 0);
	ring_end();
}

/* Table entries that a ring may use, for its payload and for itself. */
static void test_bounds(void)
{
	uint32_t n, bounds = block(RFPGA_BLOCK_RING_BOUNDS, &n);

	ring_find();
	CHECK_EQ(n, rings);
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_FIRST), 0);
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_LIMIT), board.entries);
	/* the payload has a separate entry: after its removal the queue goes on */
	set_entry(2, HOST_ADDR + (40u << 20), 1 << 20, RFPGA_ENTRY_VALID);
	ring_program();
	wr(ring_base + RFPGA_RING_PAYLOAD_FIRST, 2);
	wr(ring_base + RFPGA_RING_RECEIVE_LOG2, 0);
	ring_go();
	ring_describe(0, 0, LENGTH, 0);
	ring_describe(1, 0, LENGTH, 0);
	ring_describe(2, 0, LENGTH, 0);
	ring_tail = 1;
	ring_tell();
	check_sent(0, 0, 0);
	wr(bounds + RFPGA_BOUNDS_LIMIT, 2);
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_LIMIT), 2);
	ring_tail = 2;
	ring_tell();
	check_sent(1, 1, RFPGA_EVENT_REFUSED);
	wr(bounds + RFPGA_BOUNDS_LIMIT, 3);
	wr(bounds + RFPGA_BOUNDS_FIRST, 1);
	ring_tail = 3;
	ring_tell();
	CHECK(EVENTUALLY(rd(ring_base + RFPGA_RING_STATUS) == RFPGA_RING_FAULTED));
	CHECK_EQ(rd(ring_base + RFPGA_RING_FAULT_CAUSE), RFPGA_FAULT_ENTRY);
	CHECK_EQ(rd64(ring_base + RFPGA_RING_FAULT_ADDR), RING_DESCRIPTORS + 2 * RFPGA_TX_SIZE);
	CHECK_EQ(rd(RFPGA_FAULT_DTP), RFPGA_FAULT_RING(0));
	CHECK(!ring_has(2));
	/* bounds of DTPs do not apply */
	CHECK_EQ(rd(BOUNDS(0) + RFPGA_BOUNDS_FIRST), 0);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK(EVENTUALLY(!(rd(RFPGA_STATUS) & RFPGA_STATUS_RESETTING)));
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_FIRST), 0);
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_LIMIT), board.entries);
}

/* An entry is cleared during the run: after the next read nothing is written there. */
static void test_taken(void)
{
	unsigned int i;

	start_ring();
	give_one();
	ring_tell();
	check_received(1, 0);
	ring_consumed = 2;
	wr(ENTRY(0) + RFPGA_ENTRY_CONTROL, 0);
	CHECK_EQ(rd(ENTRY(0) + RFPGA_ENTRY_CONTROL), 0);
	memset(host + DST + RING_EVENTS, CANARY, 0x4000);
	give_one();
	ring_tell();
	CHECK(EVENTUALLY(rd(ring_base + RFPGA_RING_STATUS) == RFPGA_RING_FAULTED));
	CHECK_EQ(rd(ring_base + RFPGA_RING_FAULT_CAUSE), RFPGA_FAULT_ENTRY);
	CHECK(untouched(DST + RING_EVENTS, DST + RING_EVENTS + 0x4000));
	wr(ENTRY(0) + RFPGA_ENTRY_CONTROL, RFPGA_ENTRY_VALID);
	/* without bus mastering nothing is read either */
	for (i = 0; i < 2; i++) {
		ring_go();
		give_one();
		bus_master(false);
		ring_tell();
		CHECK(EVENTUALLY(rd(ring_base + RFPGA_RING_STATUS) == RFPGA_RING_FAULTED));
		CHECK_EQ(rd(ring_base + RFPGA_RING_FAULT_CAUSE), RFPGA_FAULT_MASTER);
		bus_master(true);
	}
	CHECK_EQ(rd64(RFPGA_FAULTS), 3);
	CHECK(untouched(DST + RING_EVENTS, DST + RING_EVENTS + 0x4000));
}

static void test_interrupt(void)
{
	uint32_t n;

	ring_find();
	ring_program();
	wr(ring_base + RFPGA_RING_MODE, RFPGA_RING_LOOPBACK | RFPGA_RING_MSIX |
	   (board.features & RFPGA_FEATURE_FLUSH ? RFPGA_RING_FLUSH : 0));
	wr(ring_base + RFPGA_RING_VECTOR, board.vectors - 1);
	ring_go();
	for (n = 0; n < 3; n++)
		give_one();
	ring_tell();
	CHECK(told(board.vectors - 1, 6));
	for (n = 0; n < 3; n++)
		check_received(2 * n + 1, n);
	ring_end();
	CHECK(silent(board.vectors - 1));
}

/* After STOP nothing is fetched; the next run uses nothing of the previous one. */
static void test_again(void)
{
	uint32_t n;

	start_ring();
	for (n = 0; n < 4; n++)
		give_one();
	ring_tell();
	check_received(7, 3);
	ring_end();
	ring_consumed = 8;
	give_one();
	ring_tell();
	pass_us(5000);
	CHECK_EQ(ring_counter(RFPGA_RING_C_EVENTS), 8);
	wr(ring_base + RFPGA_RING_RUN, RING_RUN + 1);
	wr(ring_base + RFPGA_RING_CONTROL, RFPGA_RING_START);
	CHECK_EQ(ring_counter(RFPGA_RING_C_EVENTS), 0);
	/* a late doorbell of the previous run, then its descriptors */
	ring_tell();
	pass_us(5000);
	CHECK_EQ(ring_counter(RFPGA_RING_C_EVENTS), 0);
	doorbell_write64(ring_doorbell, RFPGA_RING_BELL(1, 0, RING_RUN + 1));
	CHECK(EVENTUALLY(ring_event(0, RFPGA_EVENT_GENERATION, 4) ==
			 RFPGA_RING_GENERATION(RING_RUN + 1, 0, RING_EVENTS_LOG2)));
	CHECK_EQ(ring_status(0), RFPGA_EVENT_STALE);
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), 0);
	ring_end();
}

static const struct test tests[] = {
	{ "registers", "registers, start, stop, what a reset leaves", test_registers },
	{ "config", "refused: configurations that make no sense", test_config },
	{ "loop", "descriptors and events wrap, in order", test_loop },
	{ "full", "a full queue holds, and loses nothing", test_full },
	{ "doorbell", "doorbells of another run, and numbers that are too large", test_doorbell },
	{ "stale", "descriptors of another lap or run are not sent", test_stale },
	{ "wrong", "descriptors that cannot be sent", test_wrong },
	{ "cut", "datagrams without room, and without a receiver", test_cut },
	{ "late", "answers after their deadline", test_late },
	{ "bounds", "a ring reaches what its bounds allow", test_bounds, .entries = 3 },
	{ "taken", "memory revoked during the run", test_taken },
	{ "interrupt", "an interrupt after each event", test_interrupt,
	  .features = RFPGA_FEATURE_MSIX },
	{ "again", "stop, and another run", test_again },
};

const struct suite ring_suite = SUITE("ring", tests);
