/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The software FPGA: one PCI function with its registers, memories and engine, behind the
 * server (device.h).
 *
 * Two threads. The protocol thread (main) serves the host's messages: configuration
 * space, registers, DMA regions, interrupts. The engine thread moves the data. A third one
 * sleeps until a test wants a flood of interrupts.
 *
 *   host_begin()   what may be reached by DMA; the address table
 *   engine.lock    state of the DTPs and the live sources, faults; never held while data moves
 *   faults.lock    the flood
 *   clock's lock   see clock.h
 *   the server's   see host.h, irq.h, vfu.h
 *
 * None of them is taken while another one is held, but the innermost ones of the clock
 * and of the server.
 * Everything else belongs to the protocol thread. Counters are atomic: the engine writes and
 * the registers read them.
 */
#ifndef FPGA_H
#define FPGA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fpga/clock.h"
#include "fpga/device.h"
#include "fpga/table.h"

#define FPGA_SOURCES_MAX	4
#define FPGA_FIFO		16	/* images that a DTP keeps of a live source; datagrams */
#define FPGA_UNITS_MAX		4
#define FPGA_UNITS		0x5000u		/* where they are, BAR 0 */
#define FPGA_RINGS_MAX		BUS_RINGS_MAX
#define FPGA_RINGS		0x3000u
#define FPGA_DATAGRAM		8192u		/* bytes of the longest datagram */

/* Parts of the end of a stack. */
#define FPGA_IMAGE		1u	/* its last image */
#define FPGA_LOCK		2u
#define FPGA_INTERRUPT		4u

#define FPGA_HOLD		UINT64_MAX	/* a delay that ends with "release" */

/* Configuration of a DTP as it was at START, checked. */
struct dtp_config {
	uint32_t mode, vector, pixel_bytes, bunch, slots;
	uint32_t source_kind, source, sampling, phase;	/* sampling: one of so many, or 0 */
	uint32_t src_images, src_x, src_y, width, height, dst_x, dst_y;
	uint64_t src_base, src_line, src_image;
	uint64_t dst_base, dst_line, dst_image, dst_slot;
	uint32_t dst_first, dst_count, lock_first, lock_count;
	uint64_t lock_offset, images, period, first_stack;
	uint32_t first_slot, first_index, index_step, run;
	uint64_t meta_offset, first_frame;
	uint32_t meta_first, meta_count;
	uint64_t row;			/* bytes of a line of the region of interest */
};

/* Reason why a running DTP cannot send. */
enum stall { STALL_NONE, STALL_CREDIT, STALL_BUS, STALL_SOURCE, STALLS };

struct dtp_counters {
	_Atomic uint64_t images, stacks, bytes, descriptors, events, overruns, faults;
	_Atomic uint64_t fault_addr, dropped, fifo_peak, lost, stall[STALLS];
	_Atomic uint64_t start, stop;
	_Atomic uint64_t successes, failures, unjudged, success_ticks, failure_ticks, judged;
	_Atomic uint32_t credit, fault_cause;
};

/* Misbehaviour of a DTP, see misbehave.c; all 0: none. */
struct misbehaviour {
	uint32_t early, twice, lose;	/* FPGA_LOCK, FPGA_INTERRUPT */
	uint64_t lose_every;		/* in stacks; 0 only if nothing is lost */
	/* delays of late parts, in ticks, or FPGA_HOLD */
	uint64_t early_delay, late_delay, twice_delay, torn_delay, linger_delay;
	uint64_t wild_addr;		/* bus address of the payload's destination */
	bool late, reorder, wild, torn, linger, drop, deaf;
};

/* A detector, see source.c; under engine.lock. */
struct source {
	bool running;
	uint32_t role, role_begun;	/* as set; role of the image that has begun */
	uint64_t period, start;		/* ticks */
	uint64_t frames;		/* images since START */
	uint64_t first_trigger;		/* trigger of image 0 */
	uint64_t missed, lines_missed;
};

/* Losses of the detectors: 1 of @frames images, and @count lines of 1 of @lines images; 0: none. */
struct miss {
	uint64_t frames, lines;
	uint32_t count;
};

/* An image that arrived. */
struct arrival {
	uint64_t frame, trigger, begun;	/* begun: tick */
	uint32_t role, missing;		/* missing: lines */
};

/* A DTP's place in its live source; under engine.lock. */
struct live {
	struct source *source;		/* NULL: memory */
	uint64_t from;			/* images before this one had begun before START */
	uint64_t pass;			/* images that pass before the next is taken */
	unsigned int head, waiting;
	struct arrival fifo[FPGA_FIFO];
};

/* Registers of a processing unit, checked at START. */
struct unit_config {
	uint64_t raw, result, pedestal, gain;
	uint32_t width, height, bytes, saturated, run;
	uint32_t raw_image, result_image, raw_slots, result_slots;
	float dark_weight;
	bool jungfrau, whole;
};

/* A processing unit, see unit.c. */
struct unit {
	/* written at START, while the engine does not look; then the engine's */
	struct unit_config config;
	uint32_t line;			/* next line of the current image */
	bool dark;			/* the image is dark */
	_Atomic uint64_t in, out, invalid, darks;

	/* under engine.lock */
	uint32_t status;		/* RFPGA_UNIT_RUNNING ... */
	bool stop;
	uint64_t number[RFPGA_UNIT_SLOTS_MAX];	/* raw image of each result */
	uint32_t fault_cause;
	uint64_t fault_addr;
};

/* What all rings do wrong; all 0: nothing. */
struct ring_misbehaviour {
	uint64_t lose_every;		/* events */
	bool stale, full;		/* ignore generations; ignore the consumed position */
};

/* Registers of a ring, checked at START. */
struct ring_config {
	uint32_t mode, vector, run, first, count, descriptors_log2, events_log2;
	uint32_t payload_first, payload_count, receive_log2, deadline;
	uint64_t descriptors, events, receive;
};

struct ring_counters {
	_Atomic uint64_t events, sent, received, held, late, lost, errors, bytes, interrupts;
};

struct datagram {
	uint32_t length, ticks;
	bool cut;
	uint8_t data[FPGA_DATAGRAM];
};

/* A ring, see ring.c. */
struct ring {
	/* fixed after the start of the program */
	int wire;			/* a socket, or -1 */
	uint32_t address, port;

	/* written at START, while the engine does not look; then the engine's */
	struct ring_config config;
	struct bus_space queue, payload;
	uint64_t head, tail;		/* numbers of descriptors */
	uint64_t written, consumed;	/* events */
	uint64_t number;		/* number of the next received datagram */
	uint32_t dropped;		/* datagrams dropped by the socket, modulo 2^32 */
	struct ring_misbehaviour does;	/* misbehaviour of this turn */
	bool sends;			/* this turn sends, or the last one did */
	bool send_held, receive_held;
	unsigned int oldest, waiting;
	struct datagram fifo[FPGA_FIFO], sent;
	struct ring_counters count;

	/* under engine.lock */
	uint32_t status;		/* RFPGA_RING_RUNNING ... */
	bool stop;
	uint32_t fault_cause;
	uint64_t fault_addr, seen;
};

struct dtp {
	/* written at START, while the engine does not look; then the engine's */
	struct dtp_config config;
	struct bus_space dst, lock, meta;
	uint64_t stack;			/* number of the stack in work */
	uint32_t image;			/* image in the stack */
	uint32_t slot;			/* slot of that stack */
	uint32_t index;			/* index of that image in the dataset */
	uint64_t frame;			/* number of that image */
	uint64_t sent_frame;		/* number of the previous image, if sent */
	struct arrival arrival;		/* data of that image from its live source */
	uint32_t lines;			/* lines of that image that arrived */
	uint32_t dropping;		/* images to drop of a dropped stack */
	uint64_t begun;			/* tick at which that image began */
	uint64_t left;			/* images to send, if config.images */
	uint64_t next;			/* tick of the next image, free-running */
	uint64_t src_offset, dst_offset;	/* offsets of the region of interest */
	uint64_t record[RFPGA_LOCK_SIZE / 8];
	struct misbehaviour does;	/* misbehaviour of this image */
	unsigned int obeyed;		/* value of orders at that time */
	uint32_t behind;		/* parts of a stack that follow its event */
	bool posted;			/* the image is one of them, and on its way */
	bool torn;			/* only the first word of the record is sent */
	struct dtp_counters count;
	_Atomic bool stop;		/* asks the engine to leave the image it is in */

	/* under engine.lock */
	uint32_t status;		/* RFPGA_DTP_RUNNING ... */
	struct live live;
	struct unit *unit;		/* source of results; NULL: none */
	uint64_t taken;			/* results of the unit that were sent */
	bool judging;			/* verdicts count, also after the run */
	enum stall stall;
	uint64_t stalled;		/* tick at which the stall began */
	bool grouped;			/* started by GROUP_START */
	uint32_t group;			/* members of its group; 0: it has ended, or none */
	uint32_t ahead;			/* stacks without an event of the group so far */
	struct misbehaviour told;
	unsigned int orders;		/* counts changes of told */
	uint64_t due;			/* tick at which late parts are sent */
	bool lingers;			/* stopped, with an image on its way */
};

struct engine {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;		/* the engine has work to check */
	pthread_cond_t idle;		/* active became NULL, or unsettled false */
	struct dtp *active;		/* the DTP in work */
	struct unit *processing;	/* likewise; all but one of these are NULL */
	struct ring *ringing;
	bool other_turn;		/* the next turn goes to a unit or ring with work */
	bool rings_turn;		/* and of these, to a ring */
	unsigned int ring_turn;		/* round robin */
	bool exit;
	unsigned int turn;		/* round robin */
	bool stuck;			/* misbehave: ignore stop requests */
	_Atomic bool quiescing;		/* data on their way must arrive; also read unlocked */
	uint64_t quiesce_end;		/* deadline in host_ticks(); set before quiescing */
	bool unsettled;			/* kicked, and not all work that is due is done */
	bool patient;			/* misbehave: wait while bus mastering is off */

	uint64_t faults, fault_addr;	/* number of faults; address of the last one */
	uint32_t fault_cause, fault_dtp;
	uint32_t stops;
	_Atomic uint64_t bytes;		/* payload of all DTPs; not under the lock */
};

/* Faults of the whole board, see fault.c. */
struct faults {
	bool dead, no_link, flr_dies;	/* the protocol thread's */
	uint64_t reset_delay;		/* ticks that CONTROL.RESET takes; likewise */

	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;		/* the thread has something to do */
	pthread_cond_t idle;		/* sending became false */
	bool exit, flooding, sending;
	uint32_t vector;		/* fixed while it sends */
	uint64_t period;		/* ticks; 0: as fast as possible */
	uint64_t due;			/* tick of the next one */
	_Atomic uint64_t flood_sent;	/* since the last flood began; not under the lock */
};

#define SLOW_SENSORS	3u
#define SLOW_WORDS	16u		/* behind the mailbox */

struct mailbox {
	uint32_t address, data, error;
	uint64_t until;			/* busy, ticks */
	uint32_t word[SLOW_WORDS];
};

struct fpga {
	/* fixed after the start of the program */
	uint32_t dtps, vectors, entries, features, sources, units, rings;
	struct { uint32_t address, port; } wire;	/* peer of the rings; address 0: none */
	enum fetch_format fetch;
	uint32_t align;			/* of offsets, as a power of two */
	uint32_t build_id[RFPGA_BUILD_ID_WORDS];
	uint64_t tai;			/* TAI at tick 0, ns */
	uint64_t memory_size;
	struct host *host;
	struct device device;		/* no_flr and link: the protocol thread's */
	uint8_t *memory;		/* BAR 4 */
	uint8_t *doorbell;		/* BAR 2 */

	struct bus bus;
	struct engine engine;
	struct faults faults;
	struct dtp dtp[RFPGA_DTPS_MAX];
	struct source source[FPGA_SOURCES_MAX];
	struct unit unit[FPGA_UNITS_MAX];
	struct ring ring[FPGA_RINGS_MAX];
	struct ring_misbehaviour ring_told;	/* under engine.lock */
	struct miss miss;		/* under engine.lock, as the sources */

	/* the protocol thread's */
	uint32_t regs[RFPGA_DTPS_MAX][0x100 / 4];	/* DTP configuration as written */
	uint32_t unit_regs[FPGA_UNITS_MAX][RFPGA_UNIT_SIZE / 4];	/* likewise */
	uint32_t ring_regs[FPGA_RINGS_MAX][RFPGA_RING_SIZE / 4];
	uint32_t scratch;
	struct { int32_t sensor[SLOW_SENSORS]; struct mailbox mailbox; } slow;
	uint32_t latch[RFPGA_TABLE / 4];	/* high words, as of the reads of low ones */
	uint64_t resetting;		/* until this tick */
};

/* fpga.c */
int fpga_init(struct fpga *fpga);
void fpga_destroy(struct fpga *fpga);

/* regs.c */
void regs_reset(struct fpga *fpga);
void regs_read(void *self, unsigned int bar, uint64_t offset, uint8_t *data, uint32_t count);
void regs_write(void *self, unsigned int bar, uint64_t offset, const uint8_t *data,
		uint32_t count);

/* dtp.c: for the protocol thread */
int engine_init(struct fpga *fpga);
void engine_destroy(struct fpga *fpga);
void engine_start(struct fpga *fpga, unsigned int n);
void engine_start_group(struct fpga *fpga, uint32_t members);
void engine_stop(struct fpga *fpga, uint32_t mask);
void engine_quiesce(struct fpga *fpga);	/* returns when nothing is in flight */
void engine_reset(struct fpga *fpga);	/* after engine_quiesce() */
void engine_kick(struct fpga *fpga);	/* a doorbell was written, the clock was changed */
/* Has it done all that was due at the last kick? Waits a millisecond for it. */
bool engine_settled(struct fpga *fpga);
void engine_clear(struct fpga *fpga);
void engine_set_stuck(struct fpga *fpga, bool on);
void engine_set_patient(struct fpga *fpga, bool on);
bool engine_busy(struct fpga *fpga);
uint32_t engine_status(struct fpga *fpga, unsigned int n);	/* of a DTP */
bool engine_runs(struct fpga *fpga, unsigned int n);
uint64_t engine_stall(struct fpga *fpga, unsigned int n, enum stall cause);
/* with engine.lock: the last fault is of this DTP or ring, as FAULT_DTP tells them */
static inline void count_add(_Atomic uint64_t *counter, uint64_t n)
{
	/* a single writer: no need for a locked addition */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

void engine_fault(struct fpga *fpga, uint32_t who, const struct bus_fault *fault);
void dtp_stall(struct dtp *d, enum stall cause, uint64_t now);	/* with engine.lock */

/* source.c: with engine.lock; take in images until tick @now */
void source_advance(struct fpga *fpga, uint64_t now);
void source_attach(struct fpga *fpga, struct dtp *d);
void source_detach(struct dtp *d);
void source_pop(struct dtp *d);		/* the first image of the FIFO was sent, or dropped */
uint64_t source_due(const struct source *s);	/* tick at which the next image comes */
/* for the protocol thread */
void source_write(struct fpga *fpga, unsigned int n, uint32_t offset, uint32_t value);
uint64_t source_read(struct fpga *fpga, unsigned int n, uint32_t offset);	/* all of a pair */
void source_reset(struct fpga *fpga);
bool source_command(struct fpga *fpga, const char *command);
uint64_t source_time(const struct fpga *fpga, uint64_t tick);	/* for all */

/* unit.c: for the protocol thread */
void unit_write(struct fpga *fpga, unsigned int n, uint32_t offset, uint32_t value);
uint64_t unit_read(struct fpga *fpga, unsigned int n, uint32_t offset);	/* all of a pair */
void unit_reset(struct fpga *fpga);	/* after engine_quiesce() */
/* with engine.lock: a unit with work; waiting: a unit waits for work */
struct unit *unit_pick(struct fpga *fpga, bool *waiting);
bool unit_has_result(const struct dtp *d);
uint64_t unit_frame(const struct dtp *d);	/* whose result is next */
void unit_attach(struct fpga *fpga, struct dtp *d);
void unit_stop(struct unit *u);
/* the engine's: a part of an image; then, with engine.lock, what has come of it */
enum unit_turn { UNIT_GOES_ON, UNIT_IMAGE, UNIT_REFUSED };
enum unit_turn unit_serve(struct fpga *fpga, struct unit *u, struct bus_fault *fault);
void unit_end_turn(struct fpga *fpga, struct unit *u, enum unit_turn turn,
		   const struct bus_fault *fault);

/* ring.c: for the protocol thread */
int ring_init(struct fpga *fpga);
void ring_destroy(struct fpga *fpga);	/* after engine_destroy() */
void ring_write(struct fpga *fpga, unsigned int n, uint32_t offset, uint32_t value);
uint64_t ring_read(struct fpga *fpga, unsigned int n, uint32_t offset);	/* all of a pair */
bool ring_command(struct fpga *fpga, const char *command);
void ring_reset(struct fpga *fpga);	/* after engine_quiesce() */
/* with engine.lock: a ring with work; waiting: a ring waits for work */
struct ring *ring_pick(struct fpga *fpga, bool *waiting);
void ring_stop(struct fpga *fpga, struct ring *r);
bool ring_busy(const struct fpga *fpga);
/* the engine's: a datagram; then, with engine.lock, what has come of it */
bool ring_serve(struct fpga *fpga, struct ring *r, struct bus_fault *fault);
void ring_end_turn(struct fpga *fpga, struct ring *r, bool served, const struct bus_fault *fault);

/* slow.c: the protocol thread's */
void slow_init(struct fpga *fpga);
void slow_reset(struct fpga *fpga);
uint32_t sensor_read(const struct fpga *fpga, unsigned int n, uint32_t offset);
bool sensor_command(struct fpga *fpga, const char *command);
uint32_t mailbox_read(const struct fpga *fpga, uint32_t offset);
void mailbox_write(struct fpga *fpga, uint32_t offset, uint32_t value);

/* build.c */
void build_init(struct fpga *fpga);

/* command.c */
bool fpga_command(void *self, const char *line, char *answer);

/* misbehave.c: a command of the control socket; false: unknown */
bool misbehave(struct fpga *fpga, const char *command);

/* fault.c: commands of the control socket, likewise */
int fault_init(struct fpga *fpga);
void fault_destroy(struct fpga *fpga);
void fault_reset(struct fpga *fpga);	/* at a reset of the function */
bool fault_command(struct fpga *fpga, const char *command);
void fault_kick(struct fpga *fpga);	/* the clock was changed */
bool fault_settled(struct fpga *fpga);	/* a flood with a rate has sent all interrupts due */
void fault_flr(struct fpga *fpga);	/* after a function-level reset */
/* Are reads all ones and writes ignored? @config: in configuration space */
bool fault_dead(const struct fpga *fpga, bool config);

/* config.c */
#define FPGA_FEATURES	(RFPGA_FEATURE_MSIX | RFPGA_FEATURE_LOCK | RFPGA_FEATURE_FREERUN | \
			 RFPGA_FEATURE_FLUSH | RFPGA_FEATURE_GROUP | RFPGA_FEATURE_DROP | \
			 RFPGA_FEATURE_META | RFPGA_FEATURE_VERDICT)
#define FPGA_OFFSET_BITS	48
#define FPGA_STRIDE_BITS	32
#define FPGA_COUNT_BITS		31
bool dtp_load(const struct fpga *fpga, unsigned int n, bool grouped, struct dtp_config *c,
	      struct bus_fault *fault);

#endif /* FPGA_H */
