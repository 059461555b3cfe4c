// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check iommu=on seconds=9 */
/*
 * Litmus tests of Documentation/memory-order.rst: data that a CPU may rely on after a lock record
 * or an interrupt. At each place of payload and lock record, a consumer that follows the rules
 * never catches an honest board, and always one that misbehaves. FLUSH helps where it must. Late
 * writes wait until the test releases them, so nothing here depends on time.
 */
#include "rig.h"

#define PLACE		(4 * MIB)	/* offset in the peer's memory, after its dataset */
#define RECORD		(IMAGES * IMAGE / 2)	/* offset in the payload's memory */
#define MANY		tap_times(30, 100)	/* stacks of an honest board */
#define FEW		tap_times(3, 6)	/* of one that misbehaves */
#define PERIOD		50000		/* of free-running images: 200 us */
#define WAIT_MS		30000		/* the limit of a busy machine */

static struct fpga f, f2;
static bool have_f2, have_control;

/* Where things are. */
struct row {
	const char *key;
	bool peer;		/* payload in another function, else in a host buffer */
	bool together;		/* lock record in the same memory, else in a host buffer */
};

static const struct row rows[] = {
	{ "payload-in-host-memory-lock-record-beside-it", false, true },
	{ "payload-in-host-memory-lock-record-in-another-buffer", false, false },
	{ "payload-in-a-peer-lock-record-beside-it", true, true },
	{ "payload-in-a-peer-lock-record-in-host-memory", true, false },
};

/* One consumer, and its findings when it follows the rules. */
struct place {
	const struct row *row;
	struct rig r;
	int window, doorbell_fd, lock_fd, lock_map;
	char *payload;
	u64 *record;
	uint32_t *doorbell;
	uint32_t slots;
	bool freerun;

	u64 next;		/* the stack to consume */
	u64 right, wrong;	/* stacks, by what they hold */
	u64 jumps;		/* looks that found several new stacks */
	u64 nothing;	/* looks that found none */
	u64 overrun;	/* stacks that were overwritten, or perhaps */
	u64 base, sequence;	/* interrupts: before the first, and so far */
};

/* --------------------------------------------------------------- places -- */

/* The test ends where it fails. */
static void place_up(struct place *p, const struct row *row)
{
	struct rashpa_map_make map;

	memset(p, 0, sizeof(*p));
	p->row = row;
	p->window = -1;
	if (row->peer) {
		p->window = fpga_window(&f2, RFPGA_BAR_MEMORY, PLACE, IMAGES * IMAGE, 0);
		p->payload = map_fd(p->window, IMAGES * IMAGE);
	}
	p->doorbell_fd = fpga_window(&f, RFPGA_BAR_DOORBELL, 0, PAGE, 0);
	p->doorbell = map_fd(p->doorbell_fd, PAGE);
	rig_up(&p->r, &f, p->window, 0, 0);
	if (!row->peer)
		p->payload = p->r.memory;
	p->record = (u64 *)(p->payload + RECORD);
	if (row->together)
		return;
	p->lock_fd = buffer_alloc(PAGE, NULL);
	p->record = map_fd(p->lock_fd, PAGE);
	p->lock_map = fpga_map(&f, p->lock_fd, RASHPA_TO_MEMORY, &map);
	if (fpga_program(p->lock_map, p->r.made.out_segments, NULL))
		tap_bail("lock record: %s", reason);
}

static void place_down(struct place *p)
{
	if (!p->row->together) {
		close(p->lock_map);
		unmap_fd(p->record, PAGE, p->lock_fd);
	}
	rig_down(&p->r);
	if (p->row->peer) {
		unmap_fd(p->payload, IMAGES * IMAGE, p->window);
	}
	unmap_fd(p->doorbell, PAGE, p->doorbell_fd);
}

/* Stacks @first to @first + @count - 1, an image each. */
static void begin(struct place *p, uint32_t mode, uint32_t slots, u64 first, u64 count)
{
	char *d = rig_dtp(&p->r, 0);

	p->slots = slots;
	p->freerun = mode & RFPGA_MODE_FREERUN;
	rig_configure(&p->r, 0, mode | RFPGA_MODE_LOCK | RFPGA_MODE_MSIX, 0,
		      p->r.made.out_segments, count);
	set32(d, RFPGA_DTP_SLOTS, slots);
	set64(d, RFPGA_DTP_FIRST_STACK, first);
	set32(d, RFPGA_DTP_FIRST_SLOT, first % slots);
	set32(d, RFPGA_DTP_FIRST_INDEX, first % IMAGES);
	set64(d, RFPGA_DTP_LOCK_OFFSET, p->row->together ? RECORD : 0);
	set32(d, RFPGA_DTP_LOCK_FIRST, p->row->together ? 0 : p->r.made.out_segments);
	set32(d, RFPGA_DTP_LOCK_COUNT, p->row->together ? p->r.made.out_segments : 1);
	set64(d, RFPGA_DTP_PERIOD, p->freerun ? PERIOD : 0);
	rig_start(&p->r, 0);
}

static bool becomes_idle(const struct place *p)
{
	u64 end = end_of_wait(WAIT_MS);

	while (reg32(p->r.regs, RFPGA_STATUS) & RFPGA_STATUS_BUSY)
		if (!CHECK(now_ns() < end, "the board does not come to an end"))
			return false;
	return true;
}

/* ------------------------------------------------------------- the rules -- */

/* Later reads see all data that were written before the word. */
static u64 stacks(const struct place *p)
{
	u64 n = __atomic_load_n(&p->record[RFPGA_LOCK_STACKS / 8], __ATOMIC_ACQUIRE);

	/* reads of a window are not ordered like those of memory */
	if (p->row->peer)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return n;
}

/* The second look: after everything that was read before. */
static u64 stacks_again(const struct place *p)
{
	__atomic_thread_fence(p->row->peer ? __ATOMIC_SEQ_CST : __ATOMIC_ACQUIRE);
	return __atomic_load_n(&p->record[RFPGA_LOCK_STACKS / 8], __ATOMIC_RELAXED);
}

/* Does the slot of stack @k hold the data of only this stack? */
static bool is_there(const struct place *p, u64 k)
{
	return filled(p->payload + k % p->slots * IMAGE, IMAGE, SEED + k % IMAGES * (IMAGE / 8));
}

static void consume(struct place *p, u64 k)
{
	bool there = is_there(p, k);

	/* free-running, stack k + SLOTS may be on its way when the one before is complete */
	if (p->freerun && stacks_again(p) >= k + p->slots)
		p->overrun++;
	else if (there)
		p->right++;
	else
		p->wrong++;
}

/* Consume new stacks by the lock word, whatever the hint was. False: no new stack. */
static bool look(struct place *p)
{
	u64 n = stacks(p);

	CHECK(n >= p->next, "STACKS is %llu after %llu", n, p->next);
	if (n <= p->next) {
		p->nothing++;
		return false;
	}
	if (n > p->next + 1)
		p->jumps++;
	if (n - p->next > p->slots) {
		CHECK(p->freerun, "%llu stacks in %u slots", (n - p->next), p->slots);
		p->overrun += n - p->slots - p->next;
		p->next = n - p->slots;
	}
	for (; p->next < n; p->next++)
		consume(p, p->next);
	return true;
}

static void give_credit(const struct place *p)
{
	__atomic_store_n(p->doorbell, (uint32_t)p->next, __ATOMIC_RELEASE);
}

static bool wait_stacks(const struct place *p, u64 n)
{
	u64 end = end_of_wait(WAIT_MS);

	while (stacks(p) < n)
		if (!CHECK(now_ns() < end, "no lock record %llu", n))
			return false;
	return true;
}

/* Takes one record from the channel; its sequence counts interrupts. */
static bool take_interrupt(struct place *p)
{
	struct rashpa_event e;

	if (read(p->r.channel, &e, sizeof(e)) != sizeof(e))
		return false;
	CHECK(e.kind == RASHPA_SOURCE_VECTOR && !e.lost, "kind %u, lost %llu", e.kind, e.lost);
	if (!p->base)
		p->base = e.sequence - 1;
	p->sequence = e.sequence;
	return true;
}

static bool wait_interrupt(struct place *p)
{
	return CHECK(wait_fd(p->r.channel, POLLIN, WAIT_MS) & POLLIN, "no interrupt") &&
	       CHECK(take_interrupt(p), "no record");
}

static u64 interrupts(const struct place *p)
{
	return p->sequence - p->base;
}

static void found(const struct place *p, u64 right, u64 jumps, u64 nothing)
{
	CHECK(p->right == right && !p->wrong && p->jumps == jumps && p->nothing == nothing &&
	      !p->overrun, "%llu right, %llu wrong, %llu jumps, %llu nothing, %llu overrun",
	      p->right, p->wrong, p->jumps, p->nothing, p->overrun);
}

/* ------------------------------------------------------- honest, or nearly -- */

/* Polls the lock word and nothing else. */
static void follow_lock(struct place *p, uint32_t mode, u64 count)
{
	u64 jumps;

	begin(p, mode, 2, 0, count);
	while (p->next < count && wait_stacks(p, p->next + 1)) {
		look(p);
		give_credit(p);
	}
	jumps = p->jumps;
	found(p, count, jumps, 0);
}

/* Payload in a peer needs FLUSH, unless the signal is a lock record in the same memory. */
static uint32_t needed(const struct row *row, bool signal_is_lock)
{
	return row->peer && !(signal_is_lock && row->together) ? RFPGA_MODE_FLUSH : 0;
}

static void honest_lock(struct place *p)
{
	follow_lock(p, needed(p->row, true), MANY);
}

/* One slot, so that interrupts cannot merge: every one has its stack. */
static void honest_interrupt(struct place *p)
{
	u64 k;

	begin(p, needed(p->row, false), 1, 0, MANY);
	for (k = 0; k < MANY && wait_interrupt(p); k++) {
		if (!CHECK(is_there(p, k), "stack %llu is not there", k))
			break;
		CHECK(interrupts(p) == k + 1, "interrupt %llu for stack %llu", interrupts(p), k);
		CHECK(look(p), "its lock record is not there");
		give_credit(p);
	}
	found(p, MANY, 0, 0);
}

/* At times faster than this consumer: stacks that the second look accepts are right. */
static void free_running(struct place *p)
{
	const u64 count = 4 * MANY;

	begin(p, RFPGA_MODE_FREERUN | needed(p->row, true), 4, 0, count);
	while (p->next < count && wait_stacks(p, p->next + 1))
		look(p);
	CHECK(!p->wrong, "%llu stacks are wrong that looked right", p->wrong);
	CHECK(p->right + p->overrun == count, "%llu stacks are not accounted for",
	      (count - p->right - p->overrun));
	tap_note("%llu right, %llu overrun", p->right, p->overrun);
}

static void reordered(struct place *p)
{
	rig_do("reorder on");
	follow_lock(p, needed(p->row, true), FEW);
}

/* On its way for a while, each time: only the flush keeps the order. */
static void late_flushed(struct place *p)
{
	rig_do("late on hold");
	follow_lock(p, RFPGA_MODE_FLUSH, 4 * FEW);
}

/* -------------------------------------------- an event that overtakes data -- */

/*
 * One stack, of which @lock and @interrupt can be seen and the payload not. Then it is
 * released, and everything is there once.
 */
static void caught(struct place *p, uint32_t mode, u64 k, bool lock, bool interrupt)
{
	u64 wrong = p->wrong;

	begin(p, mode, 2, k, 1);
	if (interrupt && !wait_interrupt(p))
		return;
	if (lock && !wait_stacks(p, k + 1))
		return;
	if (lock) {
		/* the record is there, and the payload in the slot is not */
		look(p);
		CHECK(p->wrong == wrong + 1, "the payload is there already");
	} else {
		/* an interrupt is a hint: nothing to be consumed yet */
		CHECK(!look(p), "the lock record is there already");
		CHECK(!is_there(p, k), "the payload is there already");
	}
	CHECK(interrupt || !take_interrupt(p), "the interrupt is there already");
	rig_do("release");
	if (!becomes_idle(p) || (!interrupt && !wait_interrupt(p)))
		return;
	CHECK(lock || look(p), "no lock record");
	CHECK(stacks(p) == k + 1 && is_there(p, k), "it never arrives");
	CHECK(interrupts(p) == k + 1, "%llu interrupts", interrupts(p));
}

static void caught_often(struct place *p, uint32_t mode, bool lock, bool interrupt)
{
	u64 k;

	for (k = 0; k < FEW && tap_ok(); k++)
		caught(p, mode, k, lock, interrupt);
	CHECK(p->wrong == (lock ? FEW : 0) && p->right == (lock ? 0 : FEW),
	      "%llu wrong, %llu right", p->wrong, p->right);
}

static void early_lock(struct place *p)
{
	rig_do("early lock hold");
	caught_often(p, 0, true, false);
}

static void early_lock_flushed(struct place *p)
{
	rig_do("early lock hold");
	caught_often(p, RFPGA_MODE_FLUSH, true, false);
}

static void early_interrupt(struct place *p)
{
	rig_do("early interrupt hold");
	caught_often(p, 0, false, true);
}

static void early_both(struct place *p)
{
	rig_do("early on hold");
	caught_often(p, 0, true, true);
}

static void late(struct place *p)
{
	rig_do("late on hold");
	caught_often(p, 0, true, true);
}

/* -------------------------------------------------- twice, and not at all -- */

static void twice_lock(struct place *p)
{
	u64 k;

	rig_do("twice lock hold");
	for (k = 0; k < FEW && tap_ok(); k++) {
		begin(p, needed(p->row, true), 2, k, 1);
		if (!wait_stacks(p, k + 1) || !wait_interrupt(p))
			return;
		look(p);
		/* to see that it comes again; a real consumer writes nothing here */
		__atomic_store_n(&p->record[RFPGA_LOCK_TICKS / 8], 0, __ATOMIC_SEQ_CST);
		rig_do("release");
		if (!becomes_idle(p))
			return;
		CHECK(p->record[RFPGA_LOCK_TICKS / 8], "the record is not written again");
		CHECK(!look(p), "a stack is there twice");
	}
	found(p, FEW, 0, FEW);
}

static void twice_interrupt(struct place *p)
{
	u64 k;

	rig_do("twice interrupt hold");
	for (k = 0; k < FEW && tap_ok(); k++) {
		begin(p, needed(p->row, true), 2, k, 1);
		if (!wait_interrupt(p))
			return;
		CHECK(look(p), "no stack");
		rig_do("release");
		if (!wait_interrupt(p) || !becomes_idle(p))
			return;
		CHECK(!look(p), "a stack is there twice");
	}
	found(p, FEW, 0, FEW);
	CHECK(interrupts(p) == 2 * FEW, "%llu interrupts", interrupts(p));
}

/* Every other record is missing: the next one counts both stacks, and no stack is lost. */
static void lost_lock(struct place *p)
{
	const u64 count = 2 * FEW + 1;

	rig_do("lose lock 2");
	begin(p, needed(p->row, true), 2, 0, count);
	while (p->next < count && wait_stacks(p, p->next + 1)) {
		look(p);
		give_credit(p);
	}
	found(p, count, FEW, 0);
}

/* Every other interrupt is missing: the lock word counts on, and shows how many. */
static void lost_interrupt(struct place *p)
{
	const u64 count = 2 * FEW + 1;

	rig_do("lose interrupt 2");
	begin(p, needed(p->row, true), 1, 0, count);
	while (p->next < count && wait_stacks(p, p->next + 1)) {
		look(p);
		if (p->next % 2 && !wait_interrupt(p))
			return;
		give_credit(p);
	}
	found(p, count, 0, 0);
	rig_settle(&p->r);
	while (take_interrupt(p))
		;
	CHECK(reg64(rig_dtp(&p->r, 0), RFPGA_DTP_C_EVENTS) == count - FEW, "%llu were sent",
	      reg64(rig_dtp(&p->r, 0), RFPGA_DTP_C_EVENTS));
	CHECK(p->next - interrupts(p) == FEW, "%llu interrupts are missing",
	      (p->next - interrupts(p)));
}

/*
 * Only the first word of the record is there. A consumer that waits for the last word sees no
 * stack, and a consumer that reads the whole record rejects it.
 */
static void torn_lock(struct place *p)
{
	const volatile u64 *begun = p->record + RFPGA_LOCK_BEGUN / 8;
	u64 k, end = end_of_wait(WAIT_MS);
	struct rfpga_lock lock;

	rig_do("torn on hold");
	for (k = 0; k < FEW && tap_ok(); k++) {
		begin(p, needed(p->row, true), 2, k, 1);
		while (*begun != k + 1 && CHECK(now_ns() < end, "no record begins"))
			;
		CHECK(!look(p), "half of a record was taken for one");
		CHECK(!rfpga_lock_read(p->record, &lock), "half of a record is one");
		rig_do("release");
		if (!becomes_idle(p) || !CHECK(look(p), "no stack"))
			return;
		CHECK(rfpga_lock_read(p->record, &lock) && lock.stacks == k + 1 && lock.images == 1,
		      "stack %llu, image %llu", (u64)lock.stacks, (u64)lock.images);
	}
	found(p, FEW, 0, FEW);
}

/* ------------------------------------------------------------------------ */

/* Payload and lock record at all places of the table. */
#define TEST_ORDER(fn, told, text)		\
	TEST_EACH(fn, rows, "%s: " text)	\
	{					\
		run(row, fn, told);		\
	}

static void run(const struct row *row, void (*fn)(struct place *p), bool told)
{
	struct place p;

	SKIP_IF(row->peer && !have_f2, "only one software FPGA");
	SKIP_IF(told && !have_control, "no way to reach the FPGA's control socket");
	place_up(&p, row);
	memset(p.payload, 0, IMAGES * IMAGE);
	memset(p.record, 0, RFPGA_LOCK_SIZE);
	fn(&p);
	if (told)
		rig_do("honest");
	set32(p.r.regs, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	becomes_idle(&p);
	rig_is_idle(p.r.regs, 0);
	place_down(&p);
}

TEST_ORDER(honest_lock, false, "after the lock record the payload is visible")
TEST_ORDER(honest_interrupt, false, "after the interrupt both are visible")
TEST_ORDER(free_running, false, "free-running, stacks that the second look accepts are right")
TEST_ORDER(reordered, true, "lines in another order do no harm")
TEST_ORDER(early_lock, true, "a lock record before its payload is caught")
TEST_ORDER(early_lock_flushed, true,
	   "a lock record before its payload is caught, FLUSH does not hide it")
TEST_ORDER(early_interrupt, true, "an interrupt before its payload is a hint")
TEST_ORDER(early_both, true, "an event before its payload is caught")
TEST_ORDER(late, true, "payload that arrives late is caught")
TEST_ORDER(late_flushed, true, "payload that would arrive late is pushed by FLUSH")
TEST_ORDER(twice_lock, true, "a lock record that comes twice is one stack")
TEST_ORDER(twice_interrupt, true, "an interrupt that comes twice is one stack")
TEST_ORDER(lost_lock, true, "a lock record that is lost loses no stack")
TEST_ORDER(lost_interrupt, true, "interrupts that are lost are counted")
TEST_ORDER(torn_lock, true, "a torn lock record is rejected")

void setup(void)
{
	rig_need(&f);
	have_f2 = fpga_try(&f2, 1);
	p2p_bridge("allow");
	have_control = rig_tell(0, "honest");
}
