// SPDX-License-Identifier: LGPL-2.1-or-later
/* The wire of rings: UDP. Conformance tests check misbehaviour of rings. */
#include "fpga/tests/selftest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conformance/ring.h"

#define LENGTH	100u
#define BOARD_FIFO	16u

static struct sockaddr_in board_at, here;
static int wire = -1;

/* A board with a wire, and a socket at its other end. */
static void plug(void)
{
	socklen_t size = sizeof(here);

	restart_program_with("--wire=127.0.0.1:0");
	ring_find();
	CHECK_EQ(rd(ring_base + RFPGA_RING_ADDRESS), 0x7f000001);
	board_at = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)rd(ring_base + RFPGA_RING_PORT)),
	};
	here = board_at;
	here.sin_port = 0;
	wire = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (wire < 0 || bind(wire, (struct sockaddr *)&here, size) ||
	    getsockname(wire, (struct sockaddr *)&here, &size))
		die("a socket: %s", strerror(errno));
	ring_program();
	wr(ring_base + RFPGA_RING_MODE, 0);
}

static void unplug(void)
{
	ring_end();
	close(wire);
	restart_program_with(NULL);
}

static void send_here(uint8_t byte, size_t length)
{
	static uint8_t data[65536];

	memset(data, byte, length);
	CHECK_EQ(sendto(wire, data, length, 0, (struct sockaddr *)&board_at, sizeof(board_at)),
		 length);
}

/* Receive a datagram: returns its length and first byte; 0: none within a second. */
static size_t take_here(uint8_t *byte)
{
	static uint8_t data[65536];
	const struct timeval second = { .tv_sec = 1 };
	ssize_t n;

	setsockopt(wire, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	n = recv(wire, data, sizeof(data), 0);
	*byte = data[0];
	return n > 0 ? (size_t)n : 0;
}

static uint8_t received(uint32_t n)
{
	return host[DST + RING_RECEIVE + ring_event(n, RFPGA_EVENT_OFFSET, 4)];
}

/* Receive, event, send, event: each once; datagrams before START are discarded. */
static void test_echo(void)
{
	uint32_t n;
	uint8_t byte;

	plug();
	send_here(0xee, 10);
	ring_go();
	for (n = 0; n < 20; n++) {
		send_here((uint8_t)n, LENGTH + n);
		CHECK(ring_comes(2 * n));
		CHECK_EQ(ring_event(2 * n, RFPGA_EVENT_KIND, 4), RFPGA_EVENT_RECEIVED);
		CHECK_EQ(ring_event(2 * n, RFPGA_EVENT_CONTEXT, 8), n);
		CHECK_EQ(ring_event(2 * n, RFPGA_EVENT_LENGTH, 4), LENGTH + n);
		CHECK_EQ(received(2 * n), n);
		ring_describe(n, RING_RECEIVE + ring_event(2 * n, RFPGA_EVENT_OFFSET, 4),
			      LENGTH + n, 0);
		ring_put32(ring_descriptor(n) + RFPGA_TX_PORT, ntohs(here.sin_port));
		ring_tail = n + 1;
		ring_consumed = 2 * n + 1;
		ring_tell();
		CHECK(ring_comes(2 * n + 1));
		CHECK_EQ(ring_status(2 * n + 1), 0);
		CHECK_EQ(take_here(&byte), LENGTH + n);
		CHECK_EQ(byte, n);
	}
	CHECK_EQ(ring_counter(RFPGA_RING_C_RECEIVED), 20);
	CHECK_EQ(ring_counter(RFPGA_RING_C_LOST), 0);
	unplug();
}

/* Without a consumer queue and FIFO fill up, and each further datagram is counted. */
static void test_lost(void)
{
	const uint32_t queue = 1u << RING_EVENTS_LOG2;
	uint32_t n;

	plug();
	CHECK_EQ(rd(ring_base + RFPGA_RING_FIFO), BOARD_FIFO);
	ring_go();
	for (n = 0; n < queue + BOARD_FIFO; n++) {
		send_here((uint8_t)n, LENGTH);
		CHECK(n >= queue || ring_comes(n));
	}
	CHECK(EVENTUALLY(rd(ring_base + RFPGA_RING_STATUS) & RFPGA_RING_WAITING));
	CHECK_EQ(ring_counter(RFPGA_RING_C_HELD), 1);
	send_here(0xaa, LENGTH);
	CHECK(EVENTUALLY(ring_counter(RFPGA_RING_C_LOST) == 1));
	send_here(0xaa, LENGTH);
	CHECK(EVENTUALLY(ring_counter(RFPGA_RING_C_LOST) == 2));
	for (n = 0; n < queue; n++)
		CHECK_EQ(received(n), n);
	ring_consumed = queue;
	ring_tell();
	for (n = queue; n < queue + BOARD_FIFO; n++) {
		CHECK(ring_comes(n));
		CHECK_EQ(received(n), n);
		CHECK_EQ(ring_event(n, RFPGA_EVENT_CONTEXT, 8), n);
	}
	CHECK_EQ(ring_counter(RFPGA_RING_C_LOST), 2);
	unplug();
}

/* A datagram that is too long, an unused port, and a board without a wire. */
static void test_limits(void)
{
	plug();
	wr(ring_base + RFPGA_RING_RECEIVE_LOG2, 14);
	ring_go();
	send_here(7, 20000);
	CHECK(ring_comes(0));
	CHECK_EQ(ring_status(0), RFPGA_EVENT_CUT);
	CHECK_EQ(ring_event(0, RFPGA_EVENT_LENGTH, 4), rd(ring_base + RFPGA_RING_DATAGRAM_MAX));
	/* the wire takes it without an error */
	ring_describe(0, RING_SOURCE, LENGTH, 0);
	ring_tail = 1;
	ring_tell();
	CHECK(ring_comes(1));
	CHECK_EQ(ring_status(1), 0);
	/* there is no route to it */
	ring_describe(1, RING_SOURCE, LENGTH, 0);
	ring_put32(ring_descriptor(1) + RFPGA_TX_ADDRESS, 0xffffffff);
	ring_tail = 2;
	ring_tell();
	CHECK(ring_comes(2));
	CHECK_EQ(ring_status(2), RFPGA_EVENT_UNSENT);
	unplug();
	ring_find();
	CHECK_EQ(rd(ring_base + RFPGA_RING_ADDRESS) | rd(ring_base + RFPGA_RING_PORT), 0);
	ring_program();
	wr(ring_base + RFPGA_RING_MODE, 0);
	ring_go();
	ring_describe(0, RING_SOURCE, LENGTH, 0);
	ring_tail = 1;
	ring_tell();
	CHECK(ring_comes(0));
	CHECK_EQ(ring_status(0), RFPGA_EVENT_UNSENT);
	CHECK_EQ(ring_counter(RFPGA_RING_C_ERRORS), 1);
	ring_end();
}

/* Rings have their own bounds, doorbells and wires; a board without rings has none. */
static void test_number(void)
{
	uint32_t n;

	restart_program_with("--rings=0");
	CHECK_EQ(block(RFPGA_BLOCK_RING, &n) | n, 0);
	CHECK_EQ(block(RFPGA_BLOCK_RING_BOUNDS, &n) | n, 0);
	CHECK_EQ(rd(0x3000 + RFPGA_RING_KIND), 0);
	restart_program_with("--rings=4");
	ring_find();
	CHECK(block(RFPGA_BLOCK_RING, &n) && n == 4);
	ring_base += 3 * RFPGA_RING_SIZE;
	ring_doorbell += 3 * RFPGA_DOORBELL_PAGE;
	ring_program();
	ring_go();
	ring_describe(0, RING_SOURCE, LENGTH, 0);
	ring_tail = 1;
	ring_tell();
	CHECK(ring_comes(1));
	wr(block(RFPGA_BLOCK_RING_BOUNDS, &n) + 3 * RFPGA_BOUNDS_STRIDE + RFPGA_BOUNDS_LIMIT, 0);
	ring_tail = 2;
	ring_tell();
	CHECK(EVENTUALLY(rd(ring_base + RFPGA_RING_STATUS) == RFPGA_RING_FAULTED));
	CHECK_EQ(rd(RFPGA_FAULT_DTP), RFPGA_FAULT_RING(3));
	restart_program_with(NULL);
}

static void test_commands(void)
{
	CHECK(obeys("ring lose 0", "error") && obeys("ring", "error") &&
	      obeys("ring lose 3 4", "error") && obeys("ring full on", "error"));
	tell("ring honest");
}

static const struct test tests[] = {
	{ "echo", "datagrams arrive, and return to their sender", test_echo },
	{ "lost", "datagrams without room wait, then are lost and counted", test_lost },
	{ "limits", "too long, nowhere, no wire", test_limits },
	{ "number", "no ring, and four", test_number },
	{ "commands", "commands of rings", test_commands },
};

const struct suite wire_suite = SUITE("wire", tests);
