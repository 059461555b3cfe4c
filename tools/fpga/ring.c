// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rings: transmit descriptors and events in memory of the host or of a GPU, whose program drives
 * the board. A turn of the engine sends or receives one datagram.
 *
 * Event n is in slot n of the queue, its payload in slot n of the receive buffer. So room for
 * one is room for both, and a consumed event returns both.
 *
 * Commands of the control socket:
 *   ring lose N	do not write events whose number + 1 is a multiple of N
 *   ring stale		send descriptors of any generation
 *   ring full		write events even without room
 *   ring honest	end all of these
 */
#include "fpga/fpga.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fpga/log.h"

#define PAYLOAD_UNIT	64u	/* alignment of descriptors and received payload */

/* --- registers --- */

static bool is_config(uint32_t offset)
{
	return offset >= RFPGA_RING_MODE && offset <= RFPGA_RING_DEADLINE;
}

static void load(const uint32_t *r, struct ring_config *c)
{
#define GET64(reg) (r[(reg) / 4] | (uint64_t)r[(reg) / 4 + 1] << 32)
	*c = (struct ring_config) {
		.mode = r[RFPGA_RING_MODE / 4], .vector = r[RFPGA_RING_VECTOR / 4],
		.run = r[RFPGA_RING_RUN / 4],
		.first = r[RFPGA_RING_FIRST / 4], .count = r[RFPGA_RING_COUNT / 4],
		.descriptors = GET64(RFPGA_RING_DESCRIPTORS), .events = GET64(RFPGA_RING_EVENTS),
		.descriptors_log2 = r[RFPGA_RING_DESCRIPTORS_LOG2 / 4],
		.events_log2 = r[RFPGA_RING_EVENTS_LOG2 / 4],
		.payload_first = r[RFPGA_RING_PAYLOAD_FIRST / 4],
		.payload_count = r[RFPGA_RING_PAYLOAD_COUNT / 4],
		.receive = GET64(RFPGA_RING_RECEIVE),
		.receive_log2 = r[RFPGA_RING_RECEIVE_LOG2 / 4],
		.deadline = r[RFPGA_RING_DEADLINE / 4],
	};
#undef GET64
}

static bool is_offset(uint64_t offset, uint32_t multiple)
{
	return !(offset >> FPGA_OFFSET_BITS) && !(offset % multiple);
}

/* The first invalid register, or 0; like that of DTPs, without products. */
static uint32_t find_nonsense(const struct fpga *fpga, const struct ring_config *c)
{
	const uint32_t flush = fpga->features & RFPGA_FEATURE_FLUSH ? RFPGA_RING_FLUSH : 0;
	const uint32_t msix = fpga->features & RFPGA_FEATURE_MSIX ? RFPGA_RING_MSIX : 0;
	const struct { uint32_t reg; bool good; } checks[] = {
		{ RFPGA_RING_MODE, !(c->mode & ~(flush | msix | RFPGA_RING_LOOPBACK)) },
		{ RFPGA_RING_VECTOR, !(c->mode & RFPGA_RING_MSIX) || c->vector < fpga->vectors },
		{ RFPGA_RING_RUN, c->run && c->run <= UINT16_MAX },
		{ RFPGA_RING_FIRST, c->first < fpga->entries },
		{ RFPGA_RING_COUNT, c->count && (c->first >= fpga->entries ||
						 c->count <= fpga->entries - c->first) },
		{ RFPGA_RING_DESCRIPTORS, is_offset(c->descriptors, PAYLOAD_UNIT) },
		{ RFPGA_RING_EVENTS, is_offset(c->events, RFPGA_EVENT_SIZE) },
		{ RFPGA_RING_DESCRIPTORS_LOG2, c->descriptors_log2 <= RFPGA_RING_LOG2_MAX },
		{ RFPGA_RING_EVENTS_LOG2, c->events_log2 &&
					  c->events_log2 <= RFPGA_RING_LOG2_MAX },
		{ RFPGA_RING_PAYLOAD_FIRST, c->payload_first < fpga->entries },
		{ RFPGA_RING_PAYLOAD_COUNT,
		  c->payload_count && (c->payload_first >= fpga->entries ||
				       c->payload_count <= fpga->entries - c->payload_first) },
		{ RFPGA_RING_RECEIVE, is_offset(c->receive, PAYLOAD_UNIT) },
		{ RFPGA_RING_RECEIVE_LOG2,
		  !c->receive_log2 || (c->receive_log2 >= 6 && c->receive_log2 <= 16) },
	};
	unsigned int i;

	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!checks[i].good)
			return checks[i].reg;
	return 0;
}

static void add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* --- the wire --- */

/* Open a socket for each ring. Returns 0 or -errno. */
static int open_wire(const struct fpga *fpga, struct ring *r)
{
	const unsigned int n = (unsigned int)(r - fpga->ring);
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(fpga->wire.address),
		.sin_port = htons((uint16_t)(fpga->wire.port ? fpga->wire.port + n : 0)),
	};
	socklen_t size = sizeof(at);
	const int on = 1;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&at, size) ||
	    getsockname(fd, (struct sockaddr *)&at, &size) ||
	    setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on))) {
		int err = -errno;

		close(fd);
		return err;
	}
	r->wire = fd;
	r->address = ntohl(at.sin_addr.s_addr);
	r->port = ntohs(at.sin_port);
	log_msg("ring %u: wire at UDP port %u", n, r->port);
	return 0;
}

int ring_init(struct fpga *fpga)
{
	unsigned int n;
	int err = 0;

	for (n = 0; n < FPGA_RINGS_MAX; n++)
		fpga->ring[n].wire = -1;
	for (n = 0; n < fpga->rings && fpga->wire.address && !err; n++)
		err = open_wire(fpga, &fpga->ring[n]);
	return err;
}

void ring_destroy(struct fpga *fpga)
{
	unsigned int n;

	for (n = 0; n < FPGA_RINGS_MAX; n++)
		if (fpga->ring[n].wire >= 0)
			close(fpga->ring[n].wire);
}

/* Number of datagrams that the kernel dropped since the socket was opened. */
static uint32_t dropped(struct msghdr *message, uint32_t before)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL)
			memcpy(&before, CMSG_DATA(c), sizeof(before));
	return before;
}

/* Take a datagram from the socket; false: no datagram. */
static bool take(struct ring *r, struct datagram *d)
{
	char control[CMSG_SPACE(sizeof(uint32_t))] __attribute__((aligned(8)));
	struct iovec data = { d->data, sizeof(d->data) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	const ssize_t n = recvmsg(r->wire, &message, MSG_DONTWAIT);
	uint32_t before = r->dropped;

	if (n < 0)
		return false;
	d->length = (uint32_t)n;
	d->cut = message.msg_flags & MSG_TRUNC;
	d->ticks = (uint32_t)fpga_ticks();
	r->dropped = dropped(&message, before);
	add(&r->count.lost, r->dropped - before);
	return true;
}

/* Move received datagrams to the FIFO, or count them as lost: a wire cannot wait. */
static void listen_to_wire(struct ring *r)
{
	static struct datagram nowhere;
	unsigned int i;

	if (r->wire < 0 || !r->config.receive_log2 || (r->config.mode & RFPGA_RING_LOOPBACK))
		return;
	for (i = 0; i < FPGA_FIFO; i++) {
		const bool full = r->waiting == FPGA_FIFO;

		if (!take(r, full ? &nowhere : &r->fifo[(r->oldest + r->waiting) % FPGA_FIFO]))
			return;
		if (full)
			add(&r->count.lost, 1);
		else
			r->waiting++;
	}
}

/* --- a turn of the engine --- */

static uint64_t *doorbell(struct fpga *fpga, const struct ring *r)
{
	return (uint64_t *)(fpga->doorbell + (fpga->dtps + fpga->units +
			    (size_t)(r - fpga->ring)) * RFPGA_DOORBELL_PAGE + RFPGA_DB_RING);
}

static uint64_t slot_of(const struct ring *r, uint64_t event)
{
	return event & ((1u << r->config.events_log2) - 1);
}

/* Write an event, and send its interrupt. */
static bool write_event(struct fpga *fpga, struct ring *r, uint64_t context, uint32_t offset,
			uint32_t length, uint32_t kind, uint32_t ticks, struct bus_fault *fault)
{
	const struct ring_config *c = &r->config;
	const uint32_t generation = RFPGA_RING_GENERATION(c->run, r->written, c->events_log2);
	const uint64_t event[RFPGA_EVENT_SIZE / 8] = {
		context, offset | (uint64_t)length << 32, kind | (uint64_t)ticks << 32,
		(uint64_t)generation << 32,
	};
	const bool lost = r->does.lose_every && (r->written + 1) % r->does.lose_every == 0;
	bool ok;

	host_begin(fpga->host);
	ok = lost || bus_write_words(&fpga->bus, &r->queue,
				     c->events + slot_of(r, r->written) * RFPGA_EVENT_SIZE, event,
				     sizeof(event), fault);
	if (ok)
		add(&r->count.events, 1);
	if (ok && (c->mode & RFPGA_RING_MSIX) &&
	    host_interrupt(fpga->host, c->vector, &r->count.interrupts) == HOST_NO_MASTER) {
		*fault = (struct bus_fault){ RFPGA_FAULT_MASTER, 0 };
		ok = false;
	}
	host_end(fpga->host);
	r->written++;
	return ok;
}

/* Write the payload of a datagram, then its event. */
static bool receive(struct fpga *fpga, struct ring *r, const struct datagram *d,
		    struct bus_fault *fault)
{
	const struct ring_config *c = &r->config;
	const uint64_t slot = slot_of(r, r->written) << c->receive_log2;
	const uint32_t room = 1u << c->receive_log2;
	const uint32_t length = d->length < room ? d->length : room;
	const bool cut = d->cut || d->length > room;
	uint8_t last;
	bool ok = true;

	host_begin(fpga->host);
	if (length)
		ok = bus_write(&fpga->bus, &r->payload, c->receive + slot, d->data, length, fault);
	if (ok && length && (c->mode & RFPGA_RING_FLUSH))
		ok = bus_read(&fpga->bus, &r->payload, c->receive + slot + length - 1, &last, 1,
			      fault);
	host_end(fpga->host);
	if (!ok)
		return false;
	add(&r->count.received, 1);
	return write_event(fpga, r, r->number++, (uint32_t)slot, length,
			   RFPGA_EVENT_RECEIVED | (cut ? RFPGA_EVENT_CUT << 16 : 0), d->ticks,
			   fault);
}

struct descriptor {
	uint64_t source;
	uint32_t length, generation, address, port;
	uint64_t context;
	uint32_t since, flags;
	uint64_t reserved[3];
};

_Static_assert(sizeof(struct descriptor) == RFPGA_TX_SIZE, "a descriptor");

static bool put_on_wire(const struct ring *r, const struct descriptor *d, const uint8_t *data)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(d->address),
		.sin_port = htons((uint16_t)d->port),
	};

	if (r->config.mode & RFPGA_RING_LOOPBACK)
		return true;
	return r->wire >= 0 && sendto(r->wire, data, d->length, MSG_DONTWAIT | MSG_NOSIGNAL,
				      (const struct sockaddr *)&to, sizeof(to)) ==
			       (ssize_t)d->length;
}

/* Read payload, limited to the ring's bounds. Returns 0, or a STATUS. */
static uint32_t read_and_send(struct fpga *fpga, struct ring *r, const struct descriptor *d)
{
	const struct ring_config *c = &r->config;
	struct bus_fault fault;
	bool ok = true;

	if (d->generation != RFPGA_RING_GENERATION(c->run, r->head, c->descriptors_log2) &&
	    !r->does.stale)
		return RFPGA_EVENT_STALE;
	if (d->length > FPGA_DATAGRAM || !d->port || d->port > UINT16_MAX ||
	    (d->flags & ~RFPGA_TX_ANSWER))
		return RFPGA_EVENT_INVALID;
	if (d->source >> FPGA_OFFSET_BITS)
		return RFPGA_EVENT_REFUSED;
	host_begin(fpga->host);
	if (d->length)
		ok = bus_read(&fpga->bus, &r->payload, d->source, r->sent.data, d->length, &fault);
	host_end(fpga->host);
	if (!ok)
		return RFPGA_EVENT_REFUSED;
	return put_on_wire(r, d, r->sent.data) ? 0 : RFPGA_EVENT_UNSENT;
}

static bool transmit(struct fpga *fpga, struct ring *r, struct bus_fault *fault)
{
	const struct ring_config *c = &r->config;
	const uint64_t slot = r->head & ((1u << c->descriptors_log2) - 1);
	struct descriptor d = { 0 };
	uint32_t wrong, ticks;
	bool ok, late;

	host_begin(fpga->host);
	ok = bus_read(&fpga->bus, &r->queue, c->descriptors + slot * RFPGA_TX_SIZE, &d, sizeof(d),
		      fault);
	host_end(fpga->host);
	if (!ok)
		return false;
	wrong = read_and_send(fpga, r, &d);
	ticks = (uint32_t)fpga_ticks();
	late = !wrong && c->deadline && (d.flags & RFPGA_TX_ANSWER) &&
	       ticks - d.since > c->deadline;
	if (wrong) {
		add(&r->count.errors, 1);
		log_limited("ring %u: descriptor %llu was not sent, status %#x",
			    (unsigned int)(r - fpga->ring), (unsigned long long)r->head, wrong);
	} else {
		add(&r->count.sent, 1);
		add(&r->count.bytes, d.length);
	}
	add(&r->count.late, late);
	if (!write_event(fpga, r, d.context, (uint32_t)r->head++, wrong ? 0 : d.length,
			 RFPGA_EVENT_SENT | (wrong | (late ? RFPGA_EVENT_LATE : 0)) << 16, ticks,
			 fault))
		return false;
	if (wrong || !(c->mode & RFPGA_RING_LOOPBACK) || !c->receive_log2)
		return true;
	r->sent.length = d.length;
	r->sent.cut = false;
	r->sent.ticks = ticks;
	return receive(fpga, r, &r->sent, fault);
}

bool ring_serve(struct fpga *fpga, struct ring *r, struct bus_fault *fault)
{
	return r->sends ? transmit(fpga, r, fault) : receive(fpga, r, &r->fifo[r->oldest], fault);
}

/* --- with engine.lock --- */

static void end_run(struct ring *r)
{
	r->status &= RFPGA_RING_FAULTED;
	r->stop = false;
}

static void fail(struct fpga *fpga, struct ring *r, const struct bus_fault *fault)
{
	r->status = RFPGA_RING_FAULTED;
	r->fault_cause = fault->cause;
	r->fault_addr = fault->addr;
	engine_fault(fpga, RFPGA_FAULT_RING((uint32_t)(r - fpga->ring)), fault);
}

/*
 * Read the doorbell, if it is of this run. More descriptors than fit, or more consumed events
 * than were written, are an error of the driver of the ring: the ring ends with a fault.
 */
static bool look_at_doorbell(struct fpga *fpga, struct ring *r)
{
	const uint64_t bell = __atomic_load_n(doorbell(fpga, r), __ATOMIC_ACQUIRE);
	const uint16_t given = (uint16_t)((uint16_t)bell - (uint16_t)r->tail);
	const uint16_t consumed = (uint16_t)((uint16_t)(bell >> 16) - (uint16_t)r->consumed);

	if (bell >> 32 != r->config.run)
		return true;
	r->seen = bell;
	if (given > (1u << r->config.descriptors_log2) - (r->tail - r->head) ||
	    consumed > r->written - r->consumed) {
		const struct bus_fault fault = {
			RFPGA_FAULT_CONFIG,
			(uint64_t)((uint8_t *)doorbell(fpga, r) - fpga->doorbell),
		};

		fail(fpga, r, &fault);
		return false;
	}
	r->tail += given;
	r->consumed += consumed;
	return true;
}

/* A datagram waits for room: count each once. */
static void hold(struct ring *r, bool *held)
{
	r->status |= RFPGA_RING_WAITING;
	if (!*held)
		add(&r->count.held, 1);
	*held = true;
}

/* Is there a datagram to send or to receive, and room for its event? */
static bool has_work(struct fpga *fpga, struct ring *r)
{
	const struct ring_config *c = &r->config;
	uint64_t room, needs = c->mode & RFPGA_RING_LOOPBACK && c->receive_log2 ? 2 : 1;
	bool sends, receives;

	r->status &= ~RFPGA_RING_WAITING;
	listen_to_wire(r);
	if (!look_at_doorbell(fpga, r))
		return false;
	r->does = fpga->ring_told;
	room = r->does.full ? UINT32_MAX :
	       (1u << c->events_log2) - (r->written - r->consumed);
	sends = r->tail != r->head;
	receives = r->waiting;
	if (sends && room < needs) {
		hold(r, &r->send_held);
		sends = false;
	}
	if (receives && !room) {
		hold(r, &r->receive_held);
		receives = false;
	}
	/* with both, sending and receiving alternate */
	r->sends = sends && (!receives || !r->sends);
	return sends || receives;
}

struct ring *ring_pick(struct fpga *fpga, bool *waiting)
{
	unsigned int i;

	if (fpga->engine.quiescing)
		return NULL;
	for (i = 0; i < fpga->rings; i++) {
		struct ring *r = &fpga->ring[(fpga->engine.ring_turn + i) % fpga->rings];

		if (!(r->status & RFPGA_RING_RUNNING))
			continue;
		if (has_work(fpga, r)) {
			fpga->engine.ring_turn = (unsigned int)(r - fpga->ring) + 1;
			return r;
		}
		*waiting |= (r->status & RFPGA_RING_RUNNING) != 0;
	}
	return NULL;
}

void ring_end_turn(struct fpga *fpga, struct ring *r, bool served, const struct bus_fault *fault)
{
	if (r->sends) {
		r->send_held = false;
	} else {
		r->receive_held = false;
		r->oldest = (r->oldest + 1) % FPGA_FIFO;
		r->waiting--;
	}
	/* no cause: a reset interrupted it, and ends the ring */
	if (!served && fault->cause != RFPGA_FAULT_NONE)
		fail(fpga, r, fault);
	if (r->stop || !served)
		end_run(r);
}

void ring_stop(struct fpga *fpga, struct ring *r)
{
	if (!(r->status & RFPGA_RING_RUNNING))
		return;
	r->stop = true;
	if (fpga->engine.ringing != r)
		end_run(r);
}

bool ring_busy(const struct fpga *fpga)
{
	unsigned int n;

	for (n = 0; n < fpga->rings; n++)
		if (fpga->ring[n].status & RFPGA_RING_RUNNING)
			return true;
	return false;
}

/* --- for the protocol thread --- */

static void begin(struct fpga *fpga, struct ring *r)
{
	const unsigned int n = (unsigned int)(r - fpga->ring);
	struct bus_fault fault = { RFPGA_FAULT_CONFIG, 0 };
	uint32_t nonsense;

	/* discard earlier datagrams, and earlier drops of the kernel */
	while (r->wire >= 0 && take(r, &r->fifo[0]))
		;
	r->count = (struct ring_counters){ 0 };
	r->head = r->tail = r->written = r->consumed = r->number = 0;
	r->oldest = r->waiting = 0;
	r->sends = r->send_held = r->receive_held = r->stop = false;
	r->status = r->fault_cause = 0;
	r->fault_addr = 0;
	load(fpga->ring_regs[n], &r->config);
	nonsense = find_nonsense(fpga, &r->config);
	if (nonsense) {
		fault.addr = FPGA_RINGS + n * RFPGA_RING_SIZE + nonsense;
		fail(fpga, r, &fault);
		return;
	}
	bus_space_init(&r->queue, RFPGA_DTPS_MAX + n, r->config.first, r->config.count);
	bus_space_init(&r->payload, RFPGA_DTPS_MAX + n, r->config.payload_first,
		       r->config.payload_count);
	r->seen = RFPGA_RING_BELL(0, 0, r->config.run);
	__atomic_store_n(doorbell(fpga, r), r->seen, __ATOMIC_RELEASE);
	r->status = RFPGA_RING_RUNNING;
}

static void control(struct fpga *fpga, struct ring *r, uint32_t value)
{
	struct engine *e = &fpga->engine;

	pthread_mutex_lock(&e->lock);
	if (value & RFPGA_RING_STOP) {
		if (!e->stuck) {
			e->stops++;
			ring_stop(fpga, r);
		}
	} else if ((value & RFPGA_RING_START) && !(r->status & RFPGA_RING_RUNNING)) {
		begin(fpga, r);
	}
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
}

void ring_write(struct fpga *fpga, unsigned int n, uint32_t offset, uint32_t value)
{
	if (offset == RFPGA_RING_CONTROL)
		control(fpga, &fpga->ring[n], value);
	else if (is_config(offset) &&
		 !(ring_read(fpga, n, RFPGA_RING_STATUS) & RFPGA_RING_RUNNING))
		fpga->ring_regs[n][offset / 4] = value;
}

/* Read a value that the engine keeps under its lock. */
static uint64_t read_state(struct fpga *fpga, const struct ring *r, uint32_t offset)
{
	uint64_t value;

	pthread_mutex_lock(&fpga->engine.lock);
	if (offset == RFPGA_RING_STATUS)
		value = r->status | (r->stop ? RFPGA_RING_STOPPING : 0);
	else if (offset == RFPGA_RING_FAULT_CAUSE)
		value = r->fault_cause;
	else if (offset == RFPGA_RING_FAULT_ADDR)
		value = r->fault_addr;
	else
		value = r->seen;
	pthread_mutex_unlock(&fpga->engine.lock);
	return value;
}

uint64_t ring_read(struct fpga *fpga, unsigned int n, uint32_t offset)
{
	const struct ring *r = &fpga->ring[n];

	switch (offset) {
	case RFPGA_RING_STATUS:
	case RFPGA_RING_FAULT_CAUSE:
	case RFPGA_RING_FAULT_ADDR:
	case RFPGA_RING_SEEN:		return read_state(fpga, r, offset);
	case RFPGA_RING_KIND:		return RFPGA_RING_WIRE;
	case RFPGA_RING_DATAGRAM_MAX:	return FPGA_DATAGRAM;
	case RFPGA_RING_FIFO:		return FPGA_FIFO;
	case RFPGA_RING_ADDRESS:	return r->address;
	case RFPGA_RING_PORT:		return r->port;
	case RFPGA_RING_C_EVENTS:	return r->count.events;
	case RFPGA_RING_C_SENT:		return r->count.sent;
	case RFPGA_RING_C_RECEIVED:	return r->count.received;
	case RFPGA_RING_C_HELD:		return r->count.held;
	case RFPGA_RING_C_LATE:		return r->count.late;
	case RFPGA_RING_C_LOST:		return r->count.lost;
	case RFPGA_RING_C_ERRORS:	return r->count.errors;
	case RFPGA_RING_C_BYTES:	return r->count.bytes;
	}
	return is_config(offset) ? fpga->ring_regs[n][offset / 4] : 0;
}

bool ring_command(struct fpga *fpga, const char *command)
{
	struct ring_misbehaviour told = { 0 };
	unsigned int every = 0;
	char end;

	if (strncmp(command, "ring ", 5))
		return false;
	command += 5;
	if (sscanf(command, "lose %u%c", &every, &end) == 1 && every)
		told.lose_every = every;
	else if (!strcmp(command, "stale"))
		told.stale = true;
	else if (!strcmp(command, "full"))
		told.full = true;
	else if (strcmp(command, "honest"))
		return false;
	pthread_mutex_lock(&fpga->engine.lock);
	fpga->ring_told = told;
	pthread_mutex_unlock(&fpga->engine.lock);
	return true;
}

void ring_reset(struct fpga *fpga)
{
	unsigned int n;

	pthread_mutex_lock(&fpga->engine.lock);
	for (n = 0; n < FPGA_RINGS_MAX; n++) {
		struct ring *r = &fpga->ring[n];

		r->count = (struct ring_counters){ 0 };
		r->status = r->fault_cause = 0;
		r->fault_addr = r->seen = 0;
	}
	pthread_mutex_unlock(&fpga->engine.lock);
	memset(fpga->ring_regs, 0, sizeof(fpga->ring_regs));
}
