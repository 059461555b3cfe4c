// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rings: descriptors and events in memory of the host. All of it in loopback, so that no wire is
 * needed: what is sent is received.
 */
#include "dtp.h"

#include <string.h>

#include "../common/words.h"

#define RUN		0x5eedu
#define TX_LOG2		3u
#define EVENTS_LOG2	4u
#define RECEIVE_LOG2	8u
#define LENGTH		96u

/* offsets in the memory that entry 0 has */
#define DESCRIPTORS	0x0000u
#define EVENTS		0x2000u
#define RECEIVE		0x4000u
#define SOURCE		0x8000u

static uint32_t base, doorbell, rings;
static uint32_t tail, consumed;			/* as the doorbell was told */

static void find_ring(void)
{
	base = block(RFPGA_BLOCK_RING, &rings);
	if (!rings || rd(base + RFPGA_RING_KIND) != RFPGA_RING_WIRE)
		skip("it has no ring");
	doorbell = block_doorbell(RFPGA_BLOCK_RING) + RFPGA_DB_RING;
}

static void program_ring(void)
{
	wr(base + RFPGA_RING_MODE, RFPGA_RING_LOOPBACK);
	wr(base + RFPGA_RING_VECTOR, 0);
	wr(base + RFPGA_RING_RUN, RUN);
	wr(base + RFPGA_RING_FIRST, 0);
	wr(base + RFPGA_RING_COUNT, 1);
	wr64(base + RFPGA_RING_DESCRIPTORS, DESCRIPTORS);
	wr64(base + RFPGA_RING_EVENTS, EVENTS);
	wr(base + RFPGA_RING_DESCRIPTORS_LOG2, TX_LOG2);
	wr(base + RFPGA_RING_EVENTS_LOG2, EVENTS_LOG2);
	wr(base + RFPGA_RING_PAYLOAD_FIRST, 0);
	wr(base + RFPGA_RING_PAYLOAD_COUNT, 1);
	wr64(base + RFPGA_RING_RECEIVE, RECEIVE);
	wr(base + RFPGA_RING_RECEIVE_LOG2, RECEIVE_LOG2);
	wr(base + RFPGA_RING_DEADLINE, 0);
}

static void go(void)
{
	tail = consumed = 0;
	wr(base + RFPGA_RING_CONTROL, RFPGA_RING_START);
	CHECK_EQ(rd(base + RFPGA_RING_STATUS), RFPGA_RING_RUNNING);
}

static void start_ring(void)
{
	find_ring();
	program_ring();
	go();
}

static bool rests(void)
{
	return !(rd(base + RFPGA_RING_STATUS) & RFPGA_RING_RUNNING);
}

static void stop_ring(void)
{
	wr(base + RFPGA_RING_CONTROL, RFPGA_RING_STOP);
	CHECK(EVENTUALLY(rests()));
	CHECK_EQ(rd(RFPGA_STATUS) & RFPGA_STATUS_BUSY, 0);
}

static void ring_bell(void)
{
	doorbell_write64(doorbell, RFPGA_RING_BELL(tail, consumed, RUN));
}

static uint64_t ring_counter(uint32_t which)
{
	return rd64(base + which);
}

static void put32(uint32_t at, uint32_t value)
{
	memcpy(host + DST + at, &value, sizeof(value));
}

static void put64(uint32_t at, uint64_t value)
{
	memcpy(host + DST + at, &value, sizeof(value));
}

/* Descriptor @n, of payload from @source on; the generation is another one by @off. */
static void describe(uint32_t n, uint64_t source, uint32_t length, uint32_t off)
{
	const uint32_t at = DESCRIPTORS + n % (1u << TX_LOG2) * RFPGA_TX_SIZE;

	memset(host + DST + at, 0, RFPGA_TX_SIZE);
	put64(at + RFPGA_TX_SOURCE, source);
	put32(at + RFPGA_TX_LENGTH, length);
	put32(at + RFPGA_TX_ADDRESS, 0x7f000001);
	put32(at + RFPGA_TX_PORT, 9);
	put64(at + RFPGA_TX_CONTEXT, 1000ull + n);
	put32(at + RFPGA_TX_GENERATION, RFPGA_RING_GENERATION(RUN, n, TX_LOG2) + off);
}

static void put_payload(uint32_t n)
{
	unsigned int i;

	for (i = 0; i < LENGTH; i++)
		host[DST + SOURCE + n % (1u << TX_LOG2) * 256 + i] = (uint8_t)(n * 7 + i);
}

/* The next datagram is in the ring; the doorbell is the caller's. */
static void give_one(void)
{
	put_payload(tail);
	describe(tail, SOURCE + tail % (1u << TX_LOG2) * 256, LENGTH, 0);
	tail++;
}

static uint64_t event_word(uint32_t n, uint32_t word, unsigned int size)
{
	return word_read(host + DST + EVENTS + n % (1u << EVENTS_LOG2) * RFPGA_EVENT_SIZE + word,
			 size);
}

static bool is_event(uint32_t n)
{
	return event_word(n, RFPGA_EVENT_GENERATION, 4) ==
	       RFPGA_RING_GENERATION(RUN, n, EVENTS_LOG2);
}

static bool comes(uint32_t n)
{
	return EVENTUALLY(is_event(n));
}

static uint32_t event_status(uint32_t n)
{
	return RFPGA_EVENT_STATUS((uint32_t)event_word(n, RFPGA_EVENT_KIND, 4));
}

/* Event @n tells that descriptor @d was sent, or what has come of it. */
static void check_sent(uint32_t n, uint32_t d, uint32_t status_bits)
{
	CHECK(comes(n));
	CHECK_EQ(event_word(n, RFPGA_EVENT_KIND, 2), RFPGA_EVENT_SENT);
	CHECK_EQ(event_status(n), status_bits);
	CHECK_EQ(event_word(n, RFPGA_EVENT_CONTEXT, 8), 1000 + d);
	CHECK_EQ(event_word(n, RFPGA_EVENT_OFFSET, 4), d);
}

/* Event @n tells that datagram @d came, and there it is. */
static void check_received(uint32_t n, uint32_t d)
{
	uint32_t at;
	unsigned int i, differ = 0;

	CHECK(comes(n));
	CHECK_EQ(event_word(n, RFPGA_EVENT_KIND, 4), RFPGA_EVENT_RECEIVED);
	CHECK_EQ(event_word(n, RFPGA_EVENT_CONTEXT, 8), d);
	CHECK_EQ(event_word(n, RFPGA_EVENT_LENGTH, 4), LENGTH);
	at = (uint32_t)event_word(n, RFPGA_EVENT_OFFSET, 4);
	CHECK_EQ(at, n % (1u << EVENTS_LOG2) << RECEIVE_LOG2);
	for (i = 0; i < LENGTH; i++)
		differ += word_read(host + DST + RECEIVE + at + i, 1) != (uint8_t)(d * 7 + i);
	CHECK_EQ(differ, 0);
}

static void test_registers(void)
{
	uint32_t at;

	find_ring();
	for (at = 0; at < RFPGA_RING_SIZE; at += 4)
		CHECK(at == RFPGA_RING_KIND || (at >= RFPGA_RING_DATAGRAM_MAX &&
						at <= RFPGA_RING_PORT) || !rd(base + at));
	CHECK(rd(base + RFPGA_RING_DATAGRAM_MAX) >= 1024);
	CHECK(rd(base + RFPGA_RING_FIFO) >= 1);
	program_ring();
	CHECK_EQ(rd64(base + RFPGA_RING_RECEIVE), RECEIVE);
	CHECK_EQ(rd(base + RFPGA_RING_RUN), RUN);
	wr(base + RFPGA_RING_KIND, 7);
	CHECK_EQ(rd(base + RFPGA_RING_KIND), RFPGA_RING_WIRE);
	go();
	CHECK_EQ(rd(base + RFPGA_RING_CONTROL), 0);
	CHECK_EQ(rd(RFPGA_STATUS) & RFPGA_STATUS_BUSY, RFPGA_STATUS_BUSY);
	CHECK_EQ(doorbell_read64(doorbell), RFPGA_RING_BELL(0, 0, RUN));
	wr(base + RFPGA_RING_RUN, 77);
	CHECK_EQ(rd(base + RFPGA_RING_RUN), RUN);
	/* one to stop all of the board stops it too: it writes to memory of the host */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(!(rd(RFPGA_STATUS) & RFPGA_STATUS_BUSY)));
	CHECK_EQ(rd(base + RFPGA_RING_STATUS), 0);
	CHECK_EQ(rd(RFPGA_STOPS), 1);
	go();
	wr(base + RFPGA_RING_CONTROL, RFPGA_RING_START | RFPGA_RING_STOP);
	CHECK(EVENTUALLY(!rd(base + RFPGA_RING_STATUS)));
	CHECK_EQ(rd(RFPGA_STOPS), 2);
	go();
	wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK(EVENTUALLY(!(rd(RFPGA_STATUS) & RFPGA_STATUS_RESETTING)));
	CHECK_EQ(rd(base + RFPGA_RING_STATUS) | rd(base + RFPGA_RING_RUN), 0);
	CHECK_EQ(doorbell_read64(doorbell), 0);
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

	find_ring();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const bool high = i >= sizeof(bad) / sizeof(bad[0]) - 3;

		if (high && board.offset_bits >= 64)
			break;
		program_ring();
		wr(base + bad[i].reg, bad[i].value);
		wr(base + RFPGA_RING_CONTROL, RFPGA_RING_START);
		CHECK_EQ(rd(base + RFPGA_RING_STATUS), RFPGA_RING_FAULTED);
		CHECK_EQ(rd(base + RFPGA_RING_FAULT_CAUSE), RFPGA_FAULT_CONFIG);
		CHECK_EQ(rd64(base + RFPGA_RING_FAULT_ADDR), base + bad[i].reg - (high ? 4 : 0));
		CHECK_EQ(rd64(RFPGA_FAULTS), i + 1);
		CHECK_EQ(rd(RFPGA_FAULT_DTP), RFPGA_FAULT_RING(0));
	}
	program_ring();
	wr(base + RFPGA_RING_VECTOR, board.vectors);
	go();				/* nobody looks at it */
	CHECK_EQ(rd(base + RFPGA_RING_FAULT_CAUSE), RFPGA_FAULT_NONE);
	stop_ring();
}

/* Ring and queue go round many times; nothing is lost, doubled or out of turn. */
static void test_loop(void)
{
	uint32_t n, rounds = 300;

	start_ring();
	for (n = 0; n < rounds && !failed; n++) {
		give_one();
		ring_bell();
		check_sent(2 * n, n, 0);
		check_received(2 * n + 1, n);
		consumed += 2;
	}
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), rounds);
	CHECK_EQ(ring_counter(RFPGA_RING_C_RECEIVED), rounds);
	CHECK_EQ(ring_counter(RFPGA_RING_C_EVENTS), 2 * rounds);
	CHECK_EQ(ring_counter(RFPGA_RING_C_BYTES), (uint64_t)rounds * LENGTH);
	CHECK_EQ(ring_counter(RFPGA_RING_C_ERRORS) + ring_counter(RFPGA_RING_C_LATE) +
		 ring_counter(RFPGA_RING_C_LOST) + ring_counter(RFPGA_RING_C_HELD), 0);
	stop_ring();
}

/* Nobody consumes: the board holds what has no room, counts it, and goes on when there is some. */
static void test_full(void)
{
	const uint32_t fit = (1u << EVENTS_LOG2) / 2;
	uint32_t n;

	start_ring();
	for (n = 0; n < fit; n++)
		give_one();
	ring_bell();
	for (n = 0; n < fit; n++)
		check_received(2 * n + 1, n);
	CHECK_EQ(rd(base + RFPGA_RING_STATUS), RFPGA_RING_RUNNING);
	for (n = 0; n < 3; n++)
		give_one();
	ring_bell();
	CHECK(EVENTUALLY(rd(base + RFPGA_RING_STATUS) ==
			 (RFPGA_RING_RUNNING | RFPGA_RING_WAITING)));
	pass_us(5000);
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), fit);
	CHECK_EQ(ring_counter(RFPGA_RING_C_HELD), 1);
	for (n = 0; n < 2 * fit; n++)
		CHECK(is_event(n));
	/* room for one event is not enough: a datagram in loopback has two */
	consumed = 1;
	ring_bell();
	pass_us(5000);
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), fit);
	CHECK(!is_event(2 * fit));
	for (n = 0; n < 3; n++) {
		consumed = 2 * n + 2;
		ring_bell();
		check_sent(2 * (fit + n), fit + n, 0);
		check_received(2 * (fit + n) + 1, fit + n);
	}
	CHECK_EQ(ring_counter(RFPGA_RING_C_HELD), 3);
	CHECK_EQ(ring_counter(RFPGA_RING_C_LOST), 0);
	CHECK_EQ(rd(base + RFPGA_RING_STATUS), RFPGA_RING_RUNNING);
	stop_ring();
}

static void check_bell_fault(void)
{
	CHECK(EVENTUALLY(rd(base + RFPGA_RING_STATUS) == RFPGA_RING_FAULTED));
	CHECK_EQ(rd(base + RFPGA_RING_FAULT_CAUSE), RFPGA_FAULT_CONFIG);
	CHECK_EQ(rd64(base + RFPGA_RING_FAULT_ADDR), doorbell);
	CHECK_EQ(rd(RFPGA_FAULT_DTP), RFPGA_FAULT_RING(0));
	CHECK_EQ(rd(RFPGA_STATUS) & RFPGA_STATUS_BUSY, 0);
}

/* Doorbells of another run mean nothing; a tail too far, or events that never were, end it. */
static void test_doorbell(void)
{
	start_ring();
	give_one();
	doorbell_write64(doorbell, RFPGA_RING_BELL(1, 0, RUN - 1));
	pass_us(5000);
	CHECK_EQ(ring_counter(RFPGA_RING_C_EVENTS), 0);
	/* the lower half first: it counts when both are there */
	doorbell_write(doorbell, 1);
	pass_us(5000);
	CHECK_EQ(ring_counter(RFPGA_RING_C_EVENTS), 0);
	doorbell_write(doorbell + 4, RUN);
	check_received(1, 0);
	CHECK_EQ(ring_counter(RFPGA_RING_SEEN), RFPGA_RING_BELL(1, 0, RUN));
	/* the run is known, and the lower half alone is enough */
	give_one();
	consumed = 2;
	doorbell_write(doorbell, (uint32_t)RFPGA_RING_BELL(2, 2, RUN));
	check_received(3, 1);
	tail += (1u << TX_LOG2) + 1;
	ring_bell();
	check_bell_fault();
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), 2);
	go();
	consumed = 1;
	ring_bell();
	check_bell_fault();
	go();
	tail = UINT16_MAX;		/* backwards */
	ring_bell();
	check_bell_fault();
}

/* What was rung for and is not there, or of a lap before, is told and not sent. */
static void test_stale(void)
{
	uint32_t n;

	start_ring();
	give_one();
	describe(tail, SOURCE, LENGTH, 1);
	tail++;
	describe(tail, SOURCE, LENGTH, 0x10000);
	tail++;
	give_one();
	ring_bell();
	check_received(1, 0);
	check_sent(2, 1, RFPGA_EVENT_STALE);
	check_sent(3, 2, RFPGA_EVENT_STALE);
	CHECK_EQ(event_word(3, RFPGA_EVENT_LENGTH, 4), 0);
	check_sent(4, 3, 0);
	CHECK_EQ(ring_counter(RFPGA_RING_C_ERRORS), 2);
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), 2);
	consumed = 6;
	for (n = 4; n < 1u << TX_LOG2; n++)
		give_one();
	ring_bell();
	CHECK(comes(5 + 2 * (n - 4)));
	consumed = 6 + 2 * (n - 4);
	tail++;				/* the first one again, as it was a lap before */
	ring_bell();
	CHECK(comes(consumed));
	CHECK_EQ(event_status(consumed), RFPGA_EVENT_STALE);
	CHECK_EQ(ring_counter(RFPGA_RING_C_ERRORS), 3);
	stop_ring();
}

/* What cannot be sent is told, and the ring goes on. */
static void test_wrong(void)
{
	const uint32_t longest = rd(block(RFPGA_BLOCK_RING, &rings) + RFPGA_RING_DATAGRAM_MAX);
	const uint64_t beyond = board.entries > 1 ? 32 << 20 : HOST_SIZE;
	unsigned int i;

	start_ring();
	describe(0, SOURCE, longest + 1, 0);
	describe(1, SOURCE, LENGTH, 0);
	put32(DESCRIPTORS + RFPGA_TX_SIZE + RFPGA_TX_PORT, 0);
	describe(2, SOURCE, LENGTH, 0);
	put32(DESCRIPTORS + 2 * RFPGA_TX_SIZE + RFPGA_TX_FLAGS, 2);
	describe(3, beyond, LENGTH, 0);
	describe(4, beyond - 1, LENGTH, 0);
	describe(5, UINT64_MAX, LENGTH, 0);
	describe(6, SOURCE, 0, 0);
	tail = 7;
	ring_bell();
	for (i = 0; i < 6; i++)
		check_sent(i, i, i < 3 ? RFPGA_EVENT_INVALID : RFPGA_EVENT_REFUSED);
	check_sent(6, 6, 0);
	CHECK(comes(7));
	CHECK_EQ(event_word(7, RFPGA_EVENT_LENGTH, 4), 0);
	CHECK_EQ(ring_counter(RFPGA_RING_C_ERRORS), 6);
	/* what is refused in this way is no fault of the board's */
	CHECK_EQ(rd64(RFPGA_FAULTS), 0);
	stop_ring();
}

/* More than there is room for is cut, and says so; what was there behind it stays. */
static void test_cut(void)
{
	find_ring();
	program_ring();
	wr(base + RFPGA_RING_RECEIVE_LOG2, 6);
	go();
	give_one();
	ring_bell();
	CHECK(comes(1));
	CHECK_EQ(event_status(1), RFPGA_EVENT_CUT);
	CHECK_EQ(event_word(1, RFPGA_EVENT_LENGTH, 4), 64);
	CHECK_EQ(host[DST + RECEIVE + 64 + 63], 63);
	CHECK_EQ(host[DST + RECEIVE + 128], CANARY);
	stop_ring();
	/* who receives nothing has one event less */
	program_ring();
	wr(base + RFPGA_RING_RECEIVE_LOG2, 0);
	go();
	memset(host + DST + EVENTS, 0, 1u << 12);
	give_one();
	give_one();
	ring_bell();
	check_sent(0, 0, 0);
	check_sent(1, 1, 0);
	CHECK_EQ(ring_counter(RFPGA_RING_C_RECEIVED), 0);
	stop_ring();
}

/* An answer behind its deadline is sent, told and counted; one that is none has none. */
static void test_late(void)
{
	uint32_t at = DESCRIPTORS, since;

	find_ring();
	program_ring();
	wr(base + RFPGA_RING_DEADLINE, board.tick_rate);	/* a second */
	go();
	give_one();
	ring_bell();
	check_received(1, 0);
	since = (uint32_t)event_word(1, RFPGA_EVENT_TICKS, 4);
	give_one();
	put32(at + RFPGA_TX_SIZE + RFPGA_TX_SINCE, since - board.tick_rate);
	give_one();
	put32(at + 2 * RFPGA_TX_SIZE + RFPGA_TX_SINCE, since - board.tick_rate);
	put32(at + 2 * RFPGA_TX_SIZE + RFPGA_TX_FLAGS, RFPGA_TX_ANSWER);
	ring_bell();
	check_sent(2, 1, 0);
	check_sent(4, 2, RFPGA_EVENT_LATE);
	check_received(5, 2);
	CHECK_EQ(ring_counter(RFPGA_RING_C_LATE), 1);
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), 3);
	stop_ring();
	/* without a deadline nothing is late */
	program_ring();
	go();
	give_one();
	put32(at + RFPGA_TX_SINCE, since - board.tick_rate);
	put32(at + RFPGA_TX_FLAGS, RFPGA_TX_ANSWER);
	memset(host + DST + EVENTS, 0, 1u << 12);
	ring_bell();
	check_sent(0, 0, 0);
	CHECK_EQ(ring_counter(RFPGA_RING_C_LATE), 0);
	stop_ring();
}

/* What a ring may name of the table: for its payload, and for itself. */
static void test_bounds(void)
{
	uint32_t n, bounds = block(RFPGA_BLOCK_RING_BOUNDS, &n);

	find_ring();
	CHECK_EQ(n, rings);
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_FIRST), 0);
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_LIMIT), board.entries);
	/* the payload in an entry of its own, which is taken away, and the queue goes on */
	set_entry(2, HOST_ADDR + (40u << 20), 1 << 20, RFPGA_ENTRY_VALID);
	program_ring();
	wr(base + RFPGA_RING_PAYLOAD_FIRST, 2);
	wr(base + RFPGA_RING_RECEIVE_LOG2, 0);
	go();
	describe(0, 0, LENGTH, 0);
	describe(1, 0, LENGTH, 0);
	describe(2, 0, LENGTH, 0);
	tail = 1;
	ring_bell();
	check_sent(0, 0, 0);
	wr(bounds + RFPGA_BOUNDS_LIMIT, 2);
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_LIMIT), 2);
	tail = 2;
	ring_bell();
	check_sent(1, 1, RFPGA_EVENT_REFUSED);
	wr(bounds + RFPGA_BOUNDS_LIMIT, 3);
	wr(bounds + RFPGA_BOUNDS_FIRST, 1);
	tail = 3;
	ring_bell();
	CHECK(EVENTUALLY(rd(base + RFPGA_RING_STATUS) == RFPGA_RING_FAULTED));
	CHECK_EQ(rd(base + RFPGA_RING_FAULT_CAUSE), RFPGA_FAULT_ENTRY);
	CHECK_EQ(rd64(base + RFPGA_RING_FAULT_ADDR), DESCRIPTORS + 2 * RFPGA_TX_SIZE);
	CHECK_EQ(rd(RFPGA_FAULT_DTP), RFPGA_FAULT_RING(0));
	CHECK(!is_event(2));
	/* of DTPs they are not */
	CHECK_EQ(rd(BOUNDS(0) + RFPGA_BOUNDS_FIRST), 0);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK(EVENTUALLY(!(rd(RFPGA_STATUS) & RFPGA_STATUS_RESETTING)));
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_FIRST), 0);
	CHECK_EQ(rd(bounds + RFPGA_BOUNDS_LIMIT), board.entries);
}

/* An entry that goes while it runs: behind the read that follows, nothing is written there. */
static void test_taken(void)
{
	unsigned int i;

	start_ring();
	give_one();
	ring_bell();
	check_received(1, 0);
	consumed = 2;
	wr(ENTRY(0) + RFPGA_ENTRY_CONTROL, 0);
	CHECK_EQ(rd(ENTRY(0) + RFPGA_ENTRY_CONTROL), 0);
	memset(host + DST + EVENTS, CANARY, 0x4000);
	give_one();
	ring_bell();
	CHECK(EVENTUALLY(rd(base + RFPGA_RING_STATUS) == RFPGA_RING_FAULTED));
	CHECK_EQ(rd(base + RFPGA_RING_FAULT_CAUSE), RFPGA_FAULT_ENTRY);
	CHECK(untouched(DST + EVENTS, DST + EVENTS + 0x4000));
	wr(ENTRY(0) + RFPGA_ENTRY_CONTROL, RFPGA_ENTRY_VALID);
	/* no bus master: neither is anything read */
	for (i = 0; i < 2; i++) {
		go();
		give_one();
		bus_master(false);
		ring_bell();
		CHECK(EVENTUALLY(rd(base + RFPGA_RING_STATUS) == RFPGA_RING_FAULTED));
		CHECK_EQ(rd(base + RFPGA_RING_FAULT_CAUSE), RFPGA_FAULT_MASTER);
		bus_master(true);
	}
	CHECK_EQ(rd64(RFPGA_FAULTS), 3);
	CHECK(untouched(DST + EVENTS, DST + EVENTS + 0x4000));
}

static void test_interrupt(void)
{
	uint32_t n;

	find_ring();
	program_ring();
	wr(base + RFPGA_RING_MODE, RFPGA_RING_LOOPBACK | RFPGA_RING_MSIX |
	   (board.features & RFPGA_FEATURE_FLUSH ? RFPGA_RING_FLUSH : 0));
	wr(base + RFPGA_RING_VECTOR, board.vectors - 1);
	go();
	for (n = 0; n < 3; n++)
		give_one();
	ring_bell();
	CHECK(told(board.vectors - 1, 6));
	for (n = 0; n < 3; n++)
		check_received(2 * n + 1, n);
	stop_ring();
	CHECK(silent(board.vectors - 1));
}

/* Behind STOP nothing more is fetched; another run begins anew, and takes nothing of the old one. */
static void test_again(void)
{
	uint32_t n, at = base + RFPGA_RING_RUN;

	start_ring();
	for (n = 0; n < 4; n++)
		give_one();
	ring_bell();
	check_received(7, 3);
	stop_ring();
	consumed = 8;
	give_one();
	ring_bell();
	pass_us(5000);
	CHECK_EQ(ring_counter(RFPGA_RING_C_EVENTS), 8);
	at = base + RFPGA_RING_RUN;
	wr(at, RUN + 1);
	wr(base + RFPGA_RING_CONTROL, RFPGA_RING_START);
	CHECK_EQ(ring_counter(RFPGA_RING_C_EVENTS), 0);
	/* a doorbell of the run before that was on its way, then descriptors of it */
	ring_bell();
	pass_us(5000);
	CHECK_EQ(ring_counter(RFPGA_RING_C_EVENTS), 0);
	doorbell_write64(doorbell, RFPGA_RING_BELL(1, 0, RUN + 1));
	CHECK(EVENTUALLY(event_word(0, RFPGA_EVENT_GENERATION, 4) ==
			 RFPGA_RING_GENERATION(RUN + 1, 0, EVENTS_LOG2)));
	CHECK_EQ(event_status(0), RFPGA_EVENT_STALE);
	CHECK_EQ(ring_counter(RFPGA_RING_C_SENT), 0);
	stop_ring();
}

static const struct test tests[] = {
	{ "registers", "registers, start, stop, what a reset leaves", test_registers },
	{ "config", "refused: configurations that make no sense", test_config },
	{ "loop", "descriptors and events go round, in their order", test_loop },
	{ "full", "a full queue holds, and loses nothing", test_full },
	{ "doorbell", "doorbells of another run, and what is too much", test_doorbell },
	{ "stale", "descriptors of another lap or run are not sent", test_stale },
	{ "wrong", "descriptors that cannot be sent", test_wrong },
	{ "cut", "datagrams without room, and without a receiver", test_cut },
	{ "late", "answers behind their deadline", test_late },
	{ "bounds", "a ring reaches what its bounds allow", test_bounds, .entries = 3 },
	{ "taken", "memory that goes while it runs", test_taken },
	{ "interrupt", "an interrupt behind each event", test_interrupt,
	  .features = RFPGA_FEATURE_MSIX },
	{ "again", "stop, and a run behind another", test_again },
};

const struct suite ring_suite = SUITE("ring", tests);
