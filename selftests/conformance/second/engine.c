// SPDX-License-Identifier: LGPL-2.1-or-later
/* The second board: its engine. */
#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "board.h"

static bool refuse(struct dtp *dtp, uint32_t cause, uint64_t addr)
{
	pthread_mutex_lock(&dtp->board->lock);
	board_fault(dtp, cause, addr);
	pthread_mutex_unlock(&dtp->board->lock);
	return false;
}

/* ------------------------------------------------------------ additions and halving --- */

static void add(struct sum *sum, uint64_t value)
{
	if (__builtin_add_overflow(sum->value, value, &sum->value))
		sum->over = true;
}

static void add_sum(struct sum *sum, const struct sum *other)
{
	sum->over |= other->over;
	add(sum, other->value);
}

/* bit by bit */
static struct sum product(uint64_t value, uint32_t factor)
{
	struct sum sum = { 0, false };
	bool lost = false;

	for (; factor; factor >>= 1) {
		if (factor & 1) {
			sum.over |= lost;
			add(&sum, value);
		}
		lost |= value >> 63;
		value <<= 1;
	}
	return sum;
}

/*
 * "Linear destination space": the last entry with SUM <= @at, if it contains @at and the DTP may
 * use it. Between host_begin() and host_end().
 */
static const struct entry *find(const struct dtp *dtp, uint32_t first, uint32_t entries,
				uint64_t at)
{
	const struct entry *entry;
	uint32_t half;

	while (entries > 1) {
		half = entries / 2;
		if (dtp->board->table[first + half].sum <= at) {
			first += half;
			entries -= half;
		} else {
			entries = half;
		}
	}
	entry = &dtp->board->table[first];
	if (first < dtp->table_first || first >= dtp->table_limit || !entry->valid)
		return NULL;
	return at >= entry->sum && at - entry->sum < entry->len ? entry : NULL;
}

/* ------------------------------------------------------------------- transactions --- */

/* modulo 2^OFFSET */
static uint64_t modulo(const struct dtp *dtp, uint64_t offset)
{
	return offset & (((uint64_t)1 << dtp->board->limits.offset) - 1);
}

/* a transaction that the table allows; on failure *@cause and *@addr give the reason */
static bool execute(struct dtp *dtp, unsigned int how, const struct entry *entry, uint64_t at,
		    void *data, size_t length, uint32_t *cause, uint64_t *addr)
{
	uint64_t bus = entry->addr + (at - entry->sum), refused = bus;

	*cause = RFPGA_FAULT_BUS;
	*addr = entry->addr;
	if (bus < entry->addr)
		return false;
	switch (host_access(dtp->board->host, how, bus, data, length, &refused)) {
	case HOST_DONE:
		return true;
	case HOST_NOTHING:
		*addr = refused;
		return false;
	case HOST_NO_MASTER:
		*cause = RFPGA_FAULT_MASTER;
		*addr = bus;
		return false;
	default:
		*cause = RFPGA_FAULT_NONE;
		return false;
	}
}

/*
 * One request, which does not cross 4 KiB, in the linear space of the entries that register @first
 * and the next register name. False: it was not made, which is a fault, except during a reset.
 */
static bool transaction(struct dtp *dtp, unsigned int how, unsigned int first,
			const struct sum *at, void *data, size_t length)
{
	uint64_t addr = modulo(dtp, at->value);
	uint32_t cause = RFPGA_FAULT_ENTRY;
	const struct entry *entry = NULL;
	bool done = false;

	host_begin(dtp->board->host);
	if (dtp->board->halt)
		cause = RFPGA_FAULT_NONE;
	else if (!at->over && below(at->value, dtp->board->limits.offset))
		entry = find(dtp, word(dtp, first), word(dtp, first + 4), at->value);
	if (entry)
		done = execute(dtp, how, entry, at->value, data, length, &cause, &addr);
	host_end(dtp->board->host);
	if (!done && cause != RFPGA_FAULT_NONE && !dtp->run.ending)
		refuse(dtp, cause, addr);
	return done;
}

/* payload that was sent, up to the byte before @next */
static void account(struct dtp *dtp, const struct sum *next, uint64_t bytes)
{
	dtp->run.sent = true;
	dtp->run.last = *next;
	dtp->run.last.value--;
	pthread_mutex_lock(&dtp->board->lock);
	dtp->count.bytes += bytes;
	dtp->board->bytes += bytes;
	dtp->count.stop = board_ticks();
	pthread_mutex_unlock(&dtp->board->lock);
}

/* "Descriptors": send one */
static bool send_line(struct dtp *dtp, const struct sum *source, struct sum dest)
{
	uint64_t memory = dtp->board->options.memory, length = line_length(dtp);
	uint64_t from = source->value, part;

	if (source->over || from > memory || memory - from < length)
		return refuse(dtp, RFPGA_FAULT_SOURCE, modulo(dtp, from));
	for (; length; length -= part, from += part) {
		part = RFPGA_ENTRY_PAGE - (dest.value & ENTRY_PAGE_MASK);
		if (part > length)
			part = length;
		if (dtp->stop)
			return false;
		if (!transaction(dtp, HOST_WRITE, RFPGA_DTP_DST_FIRST, &dest,
				 dtp->board->device.bar[RFPGA_BAR_MEMORY].memory + from, part))
			return false;
		add(&dest, part);
		account(dtp, &dest, part);
	}
	pthread_mutex_lock(&dtp->board->lock);
	dtp->count.descriptors++;
	pthread_mutex_unlock(&dtp->board->lock);
	return true;
}

/* metadata or a lock record: one write */
static bool send_record(struct dtp *dtp, unsigned int first, const struct sum *at,
			uint64_t *data)
{
	if (!transaction(dtp, HOST_WRITE | HOST_WORDS, first, at, data, RFPGA_LOCK_SIZE))
		return false;
	pthread_mutex_lock(&dtp->board->lock);
	dtp->count.stop = board_ticks();
	pthread_mutex_unlock(&dtp->board->lock);
	return true;
}

/* "Metadata" */
static bool send_metadata(struct dtp *dtp, uint64_t begun, uint64_t length)
{
	struct run *run = &dtp->run;
	struct sum at = { pair(dtp, RFPGA_DTP_META_OFFSET), false };
	uint64_t number = run->records + run->image;
	uint64_t data[RFPGA_META_SIZE / 8] = {
		[RFPGA_META_FRAME / 8] = htole64(run->frame),
		[RFPGA_META_STACK / 8] = htole64(run->stack),
		[RFPGA_META_TICKS / 8] = htole64(begun),
		[RFPGA_META_LENGTH / 8] = htole64((uint32_t)length),
		[RFPGA_META_INDEX / 8] = htole64(run->index),
		[RFPGA_META_RUN / 8] = htole64(word(dtp, RFPGA_DTP_RUN)),
	};

	at.over = !below(number, 64 - 6);
	add(&at, number << 6);
	return send_record(dtp, RFPGA_DTP_META_FIRST, &at, data);
}

/*
 * An image, and its metadata, which follow even after a STOP. False: stopped, or a fault.
 */
static bool send_image(struct dtp *dtp)
{
	struct run *run = &dtp->run;
	struct sum source = run->source, dest = run->dest;
	uint64_t begun = board_ticks(), length = 0;
	uint32_t line;

	add(&source, run->index_at);
	add_sum(&dest, &run->slot_at);
	add_sum(&dest, &run->image_at);
	for (line = 0; line < word(dtp, RFPGA_DTP_HEIGHT); line++) {
		if (dtp->stop || !send_line(dtp, &source, dest))
			return false;
		length += line_length(dtp);
		add(&source, pair(dtp, RFPGA_DTP_SRC_LINE));
		add(&dest, pair(dtp, RFPGA_DTP_DST_LINE));
	}
	if (mode(dtp, RFPGA_MODE_META) && !send_metadata(dtp, begun, length))
		return false;
	pthread_mutex_lock(&dtp->board->lock);
	dtp->count.images++;
	pthread_mutex_unlock(&dtp->board->lock);
	return true;
}

/* ------------------------------------------------------- "Events and their order" --- */

static bool read_back(struct dtp *dtp, unsigned int first, const struct sum *at)
{
	uint8_t byte;

	return transaction(dtp, HOST_READ, first, at, &byte, 1);
}

static bool read_back_lock(struct dtp *dtp)
{
	struct sum at = { pair(dtp, RFPGA_DTP_LOCK_OFFSET) + RFPGA_LOCK_SIZE - 1, false };

	return read_back(dtp, RFPGA_DTP_LOCK_FIRST, &at);
}

/* "Lock record" of the stack whose last image precedes run.frame */
static bool send_lock(struct dtp *dtp)
{
	const struct run *run = &dtp->run;
	struct sum at = { pair(dtp, RFPGA_DTP_LOCK_OFFSET), false };
	uint64_t data[RFPGA_LOCK_SIZE / 8] = {
		[RFPGA_LOCK_BEGUN / 8] = htole64(run->stack + 1),
		[RFPGA_LOCK_IMAGES / 8] = htole64(dtp->count.images),
		[RFPGA_LOCK_TICKS / 8] = htole64(board_ticks()),
		[RFPGA_LOCK_OVERRUNS / 8] = htole64(dtp->count.overruns),
		[RFPGA_LOCK_DROPPED / 8] = htole64(dtp->count.dropped),
		[RFPGA_LOCK_RUN / 8] = htole64(word(dtp, RFPGA_DTP_RUN)),
		[RFPGA_LOCK_FRAME / 8] = htole64(run->frame - 1),
		[RFPGA_LOCK_STACKS / 8] = htole64(run->stack + 1),
	};

	if (!send_record(dtp, RFPGA_DTP_LOCK_FIRST, &at, data))
		return false;
	dtp->run.lock_sent = true;
	return true;
}

static bool send_interrupt(struct dtp *dtp)
{
	enum host_answer answer = HOST_GONE;

	host_begin(dtp->board->host);
	if (!dtp->board->halt)
		answer = host_interrupt(dtp->board->host, word(dtp, RFPGA_DTP_VECTOR),
					&dtp->events);
	host_end(dtp->board->host);
	if (answer == HOST_NO_MASTER)
		return refuse(dtp, RFPGA_FAULT_MASTER, 0);
	return answer == HOST_DONE;
}

static bool was_last(const struct run *run)
{
	return !run->endless && !run->left;
}

/* count a complete stack as sent or dropped */
static void account_stack(struct dtp *dtp, bool sent)
{
	pthread_mutex_lock(&dtp->board->lock);
	dtp->count.stacks += sent;
	if (was_last(&dtp->run))
		dtp->status |= RFPGA_DTP_DONE;
	pthread_mutex_unlock(&dtp->board->lock);
}

static bool send_event(struct dtp *dtp)
{
	if (mode(dtp, RFPGA_MODE_FLUSH) &&
	    !read_back(dtp, RFPGA_DTP_DST_FIRST, &dtp->run.last))
		return false;
	if (mode(dtp, RFPGA_MODE_LOCK) && !send_lock(dtp))
		return false;
	account_stack(dtp, true);
	return !mode(dtp, RFPGA_MODE_MSIX) || send_interrupt(dtp);
}

/* ------------------------------------------------------------------------ "Pacing" --- */

/* the next DTP with something to send, from @number on; with board->lock */
static struct dtp *next_turn(struct board *board, unsigned int number)
{
	unsigned int n;

	for (n = 0; n < RFPGA_DTPS_MAX; n++, number++)
		if (board->wanted & 1u << number % RFPGA_DTPS_MAX)
			return &board->dtp[number % RFPGA_DTPS_MAX];
	return NULL;
}

/* the DTP has nothing to send for now; with board->lock */
static void leave_turns(struct dtp *dtp)
{
	struct board *board = dtp->board;

	board->wanted &= ~(1u << dtp->number);
	if (board->turn != dtp)
		return;
	board->turn = next_turn(board, dtp->number);
	pthread_cond_broadcast(&board->change);
}

static bool has_credit(const struct dtp *dtp)
{
	return (uint32_t)dtp->run.stack - dtp->credit < word(dtp, RFPGA_DTP_SLOTS);
}

/* end and count the current stall, and begin @counter's (NULL: none); with dtp->board->lock */
static void stall(struct dtp *dtp, uint64_t *counter)
{
	uint64_t now = board_ticks();

	if (dtp->stalled)
		*dtp->stalled += now - dtp->stalled_since;
	dtp->stalled = counter;
	dtp->stalled_since = now;
}

static void sleep_until(struct dtp *dtp, uint64_t due)
{
	uint64_t now = board_ticks(), second = 1000000000 / BOARD_TICK_NS;
	struct timespec until;

	if (due - now > second)
		due = now + second;
	until.tv_sec = (time_t)(due / second);
	until.tv_nsec = (long)(due % second * BOARD_TICK_NS);
	pthread_cond_timedwait(&dtp->board->change, &dtp->board->lock, &until);
}

/* wait for the time of the next image; false: stopped */
static bool wait_period(struct dtp *dtp)
{
	bool go;

	pthread_mutex_lock(&dtp->board->lock);
	if (!dtp->stop && board_ticks() < dtp->run.due) {
		leave_turns(dtp);
		stall(dtp, &dtp->count.stall_source);
		while (!dtp->stop && board_ticks() < dtp->run.due)
			sleep_until(dtp, dtp->run.due);
		stall(dtp, NULL);
	}
	go = !dtp->stop;
	pthread_mutex_unlock(&dtp->board->lock);
	return go;
}

/* wait for credit; false: stopped */
static bool wait_credit(struct dtp *dtp)
{
	bool go;

	pthread_mutex_lock(&dtp->board->lock);
	if (!dtp->stop && !has_credit(dtp)) {
		leave_turns(dtp);
		stall(dtp, &dtp->count.stall);
		dtp->status |= RFPGA_DTP_WAITING;
		while (!dtp->stop && !has_credit(dtp))
			pthread_cond_wait(&dtp->board->change, &dtp->board->lock);
		dtp->status &= ~(uint32_t)RFPGA_DTP_WAITING;
		stall(dtp, NULL);
	}
	go = !dtp->stop;
	pthread_mutex_unlock(&dtp->board->lock);
	return go;
}

/* begin a stack; false: stopped */
static bool begin_stack(struct dtp *dtp, bool *drop)
{
	*drop = false;
	if (!mode(dtp, RFPGA_MODE_FREERUN))
		return wait_credit(dtp);
	if (!wait_period(dtp))
		return false;
	pthread_mutex_lock(&dtp->board->lock);
	if (!has_credit(dtp)) {
		*drop = mode(dtp, RFPGA_MODE_DROP);
		dtp->count.dropped += *drop;
		dtp->count.overruns += !*drop;
	}
	pthread_mutex_unlock(&dtp->board->lock);
	return true;
}

/* ----------------------------------------------------------------------- the engine --- */

/* the products */
static void begin_run(struct dtp *dtp)
{
	struct run *run = &dtp->run;
	unsigned int shift = pixel_shift(dtp);
	uint64_t step = pair(dtp, RFPGA_DTP_SRC_IMAGE);
	struct sum part;

	*run = (struct run){
		.stack = pair(dtp, RFPGA_DTP_FIRST_STACK),
		.frame = pair(dtp, RFPGA_DTP_FIRST_FRAME),
		.left = pair(dtp, RFPGA_DTP_IMAGES),
		.endless = !pair(dtp, RFPGA_DTP_IMAGES),
		.slot = word(dtp, RFPGA_DTP_FIRST_SLOT),
		.index = word(dtp, RFPGA_DTP_FIRST_INDEX),
		.due = dtp->count.start,
	};
	run->source.value = pair(dtp, RFPGA_DTP_SRC_BASE);
	part = product(pair(dtp, RFPGA_DTP_SRC_LINE), word(dtp, RFPGA_DTP_SRC_Y));
	add_sum(&run->source, &part);
	add(&run->source, (uint64_t)word(dtp, RFPGA_DTP_SRC_X) << shift);
	run->dest.value = pair(dtp, RFPGA_DTP_DST_BASE);
	part = product(pair(dtp, RFPGA_DTP_DST_LINE), word(dtp, RFPGA_DTP_DST_Y));
	add_sum(&run->dest, &part);
	add(&run->dest, (uint64_t)word(dtp, RFPGA_DTP_DST_X) << shift);
	run->slot_at = product(pair(dtp, RFPGA_DTP_DST_SLOT), run->slot);
	run->index_at = product(step, run->index).value;
	run->step = product(step, word(dtp, RFPGA_DTP_INDEX_STEP)).value;
	run->round = product(step, word(dtp, RFPGA_DTP_SRC_IMAGES)).value;
	run->records = product(run->slot, word(dtp, RFPGA_DTP_BUNCH)).value;
}

static void next_image(struct dtp *dtp)
{
	struct run *run = &dtp->run;

	run->frame++;
	run->due += pair(dtp, RFPGA_DTP_PERIOD);
	run->left -= !run->endless;
	run->image++;
	add(&run->image_at, pair(dtp, RFPGA_DTP_DST_IMAGE));
	run->index += word(dtp, RFPGA_DTP_INDEX_STEP);
	run->index_at += run->step;
	if (run->index >= word(dtp, RFPGA_DTP_SRC_IMAGES)) {
		run->index -= word(dtp, RFPGA_DTP_SRC_IMAGES);
		run->index_at -= run->round;
	}
}

static void next_stack(struct dtp *dtp)
{
	struct run *run = &dtp->run;

	run->stack++;
	run->slot++;
	add(&run->slot_at, pair(dtp, RFPGA_DTP_DST_SLOT));
	run->records += word(dtp, RFPGA_DTP_BUNCH);
	if (run->slot == word(dtp, RFPGA_DTP_SLOTS)) {
		run->slot = 0;
		run->slot_at = (struct sum){ 0, false };
		run->records = 0;
	}
}

/* "Running DTPs are served in turn", one stack at a time; false: stopped */
static bool take_turn(struct dtp *dtp)
{
	struct board *board = dtp->board;
	bool taken;

	pthread_mutex_lock(&board->lock);
	board->wanted |= 1u << dtp->number;
	if (!board->turn)
		board->turn = dtp;
	while (board->turn != dtp && !dtp->stop)
		pthread_cond_wait(&board->change, &board->lock);
	taken = board->turn == dtp;
	pthread_mutex_unlock(&board->lock);
	return taken;
}

static void pass_turn(struct dtp *dtp)
{
	struct board *board = dtp->board;

	pthread_mutex_lock(&board->lock);
	if (board->turn == dtp) {
		board->turn = next_turn(board, dtp->number + 1);
		pthread_cond_broadcast(&board->change);
	}
	pthread_mutex_unlock(&board->lock);
}

/* false: stopped, or a fault */
static bool run_stack(struct dtp *dtp)
{
	struct run *run = &dtp->run;
	uint32_t bunch = word(dtp, RFPGA_DTP_BUNCH);
	bool drop;

	run->image = 0;
	run->image_at = (struct sum){ 0, false };
	if (!begin_stack(dtp, &drop))
		return false;
	do {
		if (mode(dtp, RFPGA_MODE_FREERUN) && !wait_period(dtp))
			return false;
		if (!drop && !(take_turn(dtp) && send_image(dtp)))
			return false;
		next_image(dtp);
	} while (run->image < bunch && !was_last(run));
	pass_turn(dtp);
	if (drop) {
		account_stack(dtp, false);
		return true;
	}
	if (!send_event(dtp))
		return false;
	next_stack(dtp);
	return true;
}

/* "Stop and idle": wait until the last writes have left, and clear RUNNING */
static void end_run(struct dtp *dtp)
{
	dtp->run.ending = true;
	pthread_mutex_lock(&dtp->board->lock);
	leave_turns(dtp);
	pthread_mutex_unlock(&dtp->board->lock);
	if (mode(dtp, RFPGA_MODE_FLUSH) && dtp->run.sent)
		read_back(dtp, RFPGA_DTP_DST_FIRST, &dtp->run.last);
	if (mode(dtp, RFPGA_MODE_FLUSH) && dtp->run.lock_sent)
		read_back_lock(dtp);
	usleep(BOARD_LATENCY_US);
	pthread_mutex_lock(&dtp->board->lock);
	dtp->status &= ~(uint32_t)(RFPGA_DTP_RUNNING | RFPGA_DTP_STOPPING);
	if (dtp->count.faults)
		dtp->status |= RFPGA_DTP_FAULTED;
	dtp->stop = false;
	pthread_cond_broadcast(&dtp->board->change);
	pthread_mutex_unlock(&dtp->board->lock);
}

/* CONTROL.RESET, when no DTP has a transaction under way any more; with board->lock */
static void reset(struct board *board)
{
	pthread_mutex_unlock(&board->lock);
	usleep(BOARD_LATENCY_US);
	pthread_mutex_lock(&board->lock);
	if (board->resetting && !is_busy(board)) /* and no other reset was faster */
		board_reset_registers(board);
}

void *board_engine(void *argument)
{
	struct dtp *dtp = argument;
	struct board *board = dtp->board;

	pthread_mutex_lock(&board->lock);
	for (;;) {
		if (dtp->status & RFPGA_DTP_RUNNING) {
			pthread_mutex_unlock(&board->lock);
			begin_run(dtp);
			while (run_stack(dtp) && !was_last(&dtp->run))
				;
			end_run(dtp);
			pthread_mutex_lock(&board->lock);
		} else if (board->resetting && !dtp->number && !is_busy(board)) {
			reset(board);
		} else {
			pthread_cond_wait(&board->change, &board->lock);
		}
	}
	return NULL;
}
