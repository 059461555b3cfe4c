// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The engine: one thread that serves the running DTPs in turn, an image at a time. For
 * every line of the region of interest it generates one descriptor {source, destination,
 * length} when its turn has come, and executes it. Lines that follow one another without
 * a gap on both sides are executed as one copy.
 */
#include "fpga/fpga.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

#include "fpga/log.h"

#define TICKS(us)	((us) * 1000ull / RFPGA_TICK_NS)
#define SPIN		TICKS(5)	/* poll the doorbells without sleep */
#define EAGER		TICKS(500)	/* then sleep shortly between polls */
#define SLEEP_MIN	TICKS(10)
#define SLEEP_MAX	TICKS(200)	/* then sleep longer and longer */
#define ARRIVAL		TICKS(1000000)	/* time limit of a reset for late data */

enum outcome { SENT, STOPPED, REFUSED };

struct pause {
	uint64_t spin_end;		/* 0: not waiting */
	uint64_t sleep;
	uint32_t dither;
};

/* A word of the DTP's doorbell page. */
static void *doorbell(struct fpga *fpga, const struct dtp *d, size_t word)
{
	return fpga->doorbell + (size_t)(d - fpga->dtp) * RFPGA_DOORBELL_PAGE + word;
}

/* Credit for this run; credit with the number of another run is ignored. */
static uint32_t read_credit(struct fpga *fpga, const struct dtp *d)
{
	uint32_t *plain = doorbell(fpga, d, RFPGA_DB_CREDIT);
	uint64_t *tagged = doorbell(fpga, d, RFPGA_DB_TAGGED), value;

	if (!d->config.run)
		return __atomic_load_n(plain, __ATOMIC_ACQUIRE);
	value = __atomic_load_n(tagged, __ATOMIC_ACQUIRE);
	return value >> 32 == d->config.run ? (uint32_t)value : d->count.credit;
}

static void preset_doorbells(struct fpga *fpga, const struct dtp *d)
{
	uint32_t *plain = doorbell(fpga, d, RFPGA_DB_CREDIT);
	uint64_t *tagged = doorbell(fpga, d, RFPGA_DB_TAGGED);
	uint64_t *verdict = doorbell(fpga, d, RFPGA_DB_VERDICT);
	uint32_t first = (uint32_t)d->config.first_stack;

	__atomic_store_n(plain, first, __ATOMIC_RELEASE);
	__atomic_store_n(tagged, first | (uint64_t)d->config.run << 32, __ATOMIC_RELEASE);
	__atomic_store_n(verdict, RFPGA_VERDICT(0, 0, d->config.run), __ATOMIC_RELEASE);
}

static bool running(const struct dtp *d)
{
	return d->status & RFPGA_DTP_RUNNING;
}

/*
 * Data on their way cannot be stopped. A reset discards lingering images; it waits for late ones,
 * but only until quiesce_end.
 */
static bool stopped(const struct fpga *fpga, const struct dtp *d)
{
	const struct engine *e = &fpga->engine;

	return (d->stop && !d->posted) ||
	       (e->quiescing && (d->lingers || (d->posted && host_ticks() > e->quiesce_end)));
}

/* ------------------------------------------------------------ one image --- */

/*
 * A line that is longer than a burst: check all of it, then copy in parts, so that
 * neither a stop nor an unmap has to wait for the whole.
 */
static enum outcome send_long(struct fpga *fpga, struct dtp *d, const uint8_t *src,
			      uint64_t dst, uint64_t length, struct bus_fault *fault)
{
	bool ok;

	host_begin(fpga->host);
	ok = bus_check(&fpga->bus, &d->dst, dst, length, fault);
	host_end(fpga->host);
	while (ok && length) {
		uint64_t n = length < BUS_BURST ? length : BUS_BURST;

		if (stopped(fpga, d))
			return STOPPED;
		host_begin(fpga->host);
		ok = bus_write(&fpga->bus, &d->dst, dst, src, n, fault);
		host_end(fpga->host);
		src += n;
		dst += n;
		length -= n;
	}
	return ok ? SENT : REFUSED;
}

static void account(struct fpga *fpga, struct dtp *d, uint64_t lines)
{
	count_add(&d->count.descriptors, lines);
	count_add(&d->count.bytes, lines * d->config.row);
	/* CLEAR writes this one too */
	atomic_fetch_add_explicit(&fpga->engine.bytes, lines * d->config.row,
				  memory_order_relaxed);
}

/* Number of the line that is sent as line @line of its image. */
static uint64_t line_at(const struct dtp *d, uint32_t line)
{
	return d->does.reorder ? d->lines - 1 - line : line;
}

/* Collect lines up to a burst, from *line on, and advance *line. */
static enum outcome send_burst(struct fpga *fpga, struct dtp *d, uint32_t *line,
			       struct bus_fault *fault)
{
	const struct dtp_config *c = &d->config;
	bool gapless = c->src_line == c->row && c->dst_line == c->row && !d->does.reorder;
	uint64_t budget = BUS_BURST;
	bool ok;

	host_begin(fpga->host);
	do {
		uint64_t left = d->lines - *line, n = 1, fit = budget / c->row;
		uint64_t from = d->src_offset + line_at(d, *line) * c->src_line;
		uint64_t to = d->dst_offset + line_at(d, *line) * c->dst_line;

		if (gapless)
			n = left < fit ? left : fit;
		ok = bus_write(&fpga->bus, &d->dst, to, fpga->memory + from, n * c->row, fault);
		if (!ok)
			break;
		account(fpga, d, n);
		*line += (uint32_t)n;
		budget -= n * c->row;
	} while (*line < d->lines && budget >= c->row && !stopped(fpga, d));
	host_end(fpga->host);
	return ok ? SENT : REFUSED;
}

/* Offsets are __uint128_t, which models the adders and carries of gateware. */

/* Begin of the region of interest, in the dataset and in the destination. */
static __uint128_t source(const struct dtp *d)
{
	const struct dtp_config *c = &d->config;

	return c->src_base + (__uint128_t)d->index * c->src_image +
	       (__uint128_t)c->src_y * c->src_line +
	       (uint64_t)c->src_x * c->pixel_bytes;
}

static __uint128_t destination(const struct dtp *d)
{
	const struct dtp_config *c = &d->config;

	return c->dst_base + (__uint128_t)d->slot * c->dst_slot +
	       (__uint128_t)d->image * c->dst_image +
	       (__uint128_t)c->dst_y * c->dst_line + (uint64_t)c->dst_x * c->pixel_bytes;
}

/* Begin of the first line, from @begin on, that ends beyond @limit. False: no such line. */
static bool line_beyond(const struct dtp_config *c, __uint128_t begin, uint64_t stride,
			__uint128_t limit, __uint128_t *line)
{
	*line = begin;
	if (begin + c->row > limit)
		return true;
	if (begin + (__uint128_t)(c->height - 1) * stride + c->row <= limit)
		return false;
	*line += ((limit - begin - c->row) / stride + 1) * stride;
	return true;
}

/* Locate source and destination of the current image; fails if they exceed their range. */
static bool locate(struct fpga *fpga, struct dtp *d, struct bus_fault *fault)
{
	const __uint128_t end = (__uint128_t)1 << FPGA_OFFSET_BITS;
	const struct dtp_config *c = &d->config;
	__uint128_t from = source(d), to = destination(d), line;

	if (line_beyond(c, from, c->src_line, fpga->memory_size, &line))
		fault->cause = RFPGA_FAULT_SOURCE;
	else if (line_beyond(c, to, c->dst_line, end, &line))
		fault->cause = RFPGA_FAULT_ENTRY;
	else
		fault->cause = RFPGA_FAULT_NONE;
	fault->addr = (uint64_t)(line % end);
	d->src_offset = (uint64_t)from;
	d->dst_offset = (uint64_t)to;
	return fault->cause == RFPGA_FAULT_NONE;
}

static bool ends_stack(const struct dtp *d)
{
	return d->image + 1 == d->config.bunch || (d->config.images && d->left == 1);
}

static enum outcome send_image(struct fpga *fpga, struct dtp *d, struct bus_fault *fault)
{
	const struct dtp_config *c = &d->config;
	enum outcome outcome = SENT;
	uint32_t line = 0;

	while (line < d->lines && outcome == SENT) {
		if (stopped(fpga, d))
			return STOPPED;
		if (c->row <= BUS_BURST) {
			outcome = send_burst(fpga, d, &line, fault);
			continue;
		}
		outcome = send_long(fpga, d,
				    fpga->memory + d->src_offset + line_at(d, line) * c->src_line,
				    d->dst_offset + line_at(d, line) * c->dst_line, c->row,
				    fault);
		if (outcome == SENT) {
			account(fpga, d, 1);
			line++;
		}
	}
	d->count.stop = fpga_ticks();
	return outcome;
}

/* ---------------------------------------------------------- end of a stack --- */

/*
 * Choose the parts of the ending stack that follow its event because of misbehaviour, and their
 * time. Lost parts are in neither group. Returns the parts that come in time.
 */
static uint32_t plan_event(struct fpga *fpga, struct dtp *d)
{
	const struct misbehaviour *m = &d->does;
	uint64_t delay = 0, last = 0;
	uint32_t event = 0;

	if (d->config.mode & RFPGA_MODE_LOCK)
		event |= FPGA_LOCK;
	if (d->config.mode & RFPGA_MODE_MSIX)
		event |= FPGA_INTERRUPT;
	if (m->lose && (d->stack + 1) % m->lose_every == 0)
		event &= ~m->lose;

	d->behind = event & m->twice;
	d->posted = false;
	d->torn = m->torn && (event & FPGA_LOCK);
	if (d->behind)
		delay = m->twice_delay;
	if (event & m->early) {
		d->behind |= FPGA_IMAGE | (event & ~m->early);
		event &= m->early;
		last = m->early_delay;
	} else if (m->late) {
		d->behind |= FPGA_IMAGE;
		d->posted = true;
		last = m->late_delay;
	}
	if (last > delay)
		delay = last;
	if (d->torn) {
		/* the rest of the record, and what follows it */
		d->behind |= event;
		event = FPGA_LOCK;
		delay = m->torn_delay > delay ? m->torn_delay : delay;
	}
	if (d->behind) {
		/* set this first: a reader of the event may release the rest at once */
		pthread_mutex_lock(&fpga->engine.lock);
		d->due = fpga_ticks();
		if (d->orders == d->obeyed &&
		    __builtin_add_overflow(d->due, delay, &d->due))
			d->due = CLOCK_NEVER;
		pthread_mutex_unlock(&fpga->engine.lock);
	}
	return event;
}

/*
 * On a real bus posted writes to one destination stay in order by themselves; the flush is
 * for payload and lock record in different destinations. A read pushes what was written
 * before it to the same place: when its answer is there, so is the payload.
 */
static enum outcome flush(struct fpga *fpga, struct dtp *d, struct bus_fault *fault)
{
	const struct dtp_config *c = &d->config;
	enum outcome outcome = SENT;
	uint32_t line = d->lines ? d->lines - 1 : 0;
	uint8_t last;
	bool ok;

	if (d->posted) {
		outcome = send_image(fpga, d, fault);
		d->behind &= ~FPGA_IMAGE;
		d->posted = false;
	}
	if (outcome != SENT)
		return outcome;
	host_begin(fpga->host);
	ok = bus_read(&fpga->bus, &d->dst, d->dst_offset + line * c->dst_line + c->row - 1,
		      &last, 1, fault);
	host_end(fpga->host);
	return ok ? SENT : REFUSED;
}

static void make_record(struct dtp *d)
{
	d->record[RFPGA_LOCK_BEGUN / 8] = d->record[RFPGA_LOCK_STACKS / 8] = d->stack + 1;
	d->record[RFPGA_LOCK_IMAGES / 8] = d->count.images;
	d->record[RFPGA_LOCK_TICKS / 8] = fpga_ticks();
	d->record[RFPGA_LOCK_OVERRUNS / 8] = d->count.overruns;
	d->record[RFPGA_LOCK_DROPPED / 8] = d->count.dropped;
	d->record[RFPGA_LOCK_RUN / 8] = d->config.run;
	d->record[RFPGA_LOCK_FRAME / 8] = d->sent_frame;
}

static bool write_lock(struct fpga *fpga, struct dtp *d, struct bus_fault *fault)
{
	size_t length = d->torn ? RFPGA_LOCK_IMAGES : RFPGA_LOCK_SIZE;
	bool ok;

	d->torn = false;
	host_begin(fpga->host);
	ok = bus_write_record(&fpga->bus, &d->lock, d->config.lock_offset, d->record, length,
			      fault);
	host_end(fpga->host);
	return ok;
}

static bool interrupt(struct fpga *fpga, struct dtp *d, struct bus_fault *fault)
{
	enum host_answer answer;

	host_begin(fpga->host);
	answer = host_interrupt(fpga->host, d->config.vector, &d->count.events);
	host_end(fpga->host);
	if (answer == HOST_NO_MASTER)
		*fault = (struct bus_fault){ .cause = RFPGA_FAULT_MASTER };
	return answer == HOST_DONE;
}

/*
 * A stack of this DTP is complete: must this DTP send the interrupt? In a group the answer is yes
 * for exactly one member, the last one. Called with engine.lock held.
 */
static bool event_is_ours(struct fpga *fpga, struct dtp *d)
{
	const uint32_t members = d->group;
	unsigned int n;

	if (!members)
		return !d->grouped;
	d->ahead++;
	for (n = 0; n < fpga->dtps; n++)
		if ((members & 1u << n) && !fpga->dtp[n].ahead)
			return false;
	for (n = 0; n < fpga->dtps; n++)
		if (members & 1u << n)
			fpga->dtp[n].ahead--;
	return true;
}

/* Send the parts of the event that come in time; late parts follow. */
static enum outcome end_stack(struct fpga *fpga, struct dtp *d, uint32_t event,
			      struct bus_fault *fault)
{
	struct engine *e = &fpga->engine;
	enum outcome outcome;

	if (d->config.mode & RFPGA_MODE_FLUSH) {
		outcome = flush(fpga, d, fault);
		if (outcome != SENT)
			return outcome;
	}
	make_record(d);
	if ((event & FPGA_LOCK) && !write_lock(fpga, d, fault))
		return REFUSED;

	pthread_mutex_lock(&e->lock);
	d->stack++;
	d->slot = d->slot + 1 < d->config.slots ? d->slot + 1 : 0;
	d->image = 0;
	count_add(&d->count.stacks, 1);
	d->count.stop = fpga_ticks();
	if (!event_is_ours(fpga, d)) {
		event &= ~FPGA_INTERRUPT;
		d->behind &= ~FPGA_INTERRUPT;
	}
	/* set before the event; RUNNING is cleared after the event */
	if (d->config.images && !d->left)
		d->status |= RFPGA_DTP_DONE;
	pthread_mutex_unlock(&e->lock);

	if ((event & FPGA_INTERRUPT) && !interrupt(fpga, d, fault))
		return REFUSED;
	return SENT;
}

/*
 * Send the parts that the event has overtaken. A stop drops unsent parts, but not an image on its
 * way.
 */
static enum outcome catch_up(struct fpga *fpga, struct dtp *d, struct bus_fault *fault)
{
	enum outcome outcome = SENT;

	if (d->behind & FPGA_IMAGE)
		outcome = send_image(fpga, d, fault);
	d->posted = false;
	if (outcome != SENT)
		return outcome;
	if (d->stop)
		return STOPPED;
	if ((d->behind & FPGA_LOCK) && !write_lock(fpga, d, fault))
		return REFUSED;
	if ((d->behind & FPGA_INTERRUPT) && !interrupt(fpga, d, fault))
		return REFUSED;
	d->behind = 0;
	return SENT;
}

/* Write the metadata of the sent image; they take the path of lock records. */
static bool write_meta(struct fpga *fpga, struct dtp *d, struct bus_fault *fault)
{
	const struct dtp_config *c = &d->config;
	const __uint128_t end = (__uint128_t)1 << FPGA_OFFSET_BITS;
	__uint128_t at = c->meta_offset +
		      ((__uint128_t)d->slot * c->bunch + d->image) * RFPGA_META_SIZE;
	const struct arrival *a = &d->arrival;
	uint32_t missing = c->height - d->lines, index = d->live.source || d->unit ? 0 : d->index;
	uint32_t status = (missing < UINT16_MAX ? missing : UINT16_MAX) << 16 |
			  (missing ? RFPGA_META_LINES : 0);
	const uint64_t record[RFPGA_META_SIZE / 8] = {
		[RFPGA_META_FRAME / 8] = d->frame,
		[RFPGA_META_STACK / 8] = d->stack,
		[RFPGA_META_TICKS / 8] = d->begun,
		[RFPGA_META_LENGTH / 8] = (uint32_t)(c->row * d->lines) | (uint64_t)status << 32,
		[RFPGA_META_INDEX / 8] = index | (uint64_t)a->role << 32,
		[RFPGA_META_TRIGGER / 8] = a->trigger,
		[RFPGA_META_TIME / 8] = d->live.source ? source_time(fpga, a->begun) : 0,
		[RFPGA_META_RUN / 8] = c->run,
	};
	bool ok;

	if (at + RFPGA_META_SIZE > end) {
		*fault = (struct bus_fault){ RFPGA_FAULT_ENTRY, (uint64_t)(at % end) };
		return false;
	}
	host_begin(fpga->host);
	ok = bus_write_record(&fpga->bus, &d->meta, (uint64_t)at, record, RFPGA_META_SIZE, fault);
	host_end(fpga->host);
	return ok;
}

/* Advance to the next image of the source. */
static void next_image(struct fpga *fpga, struct dtp *d)
{
	const struct dtp_config *c = &d->config;

	d->frame++;
	d->index += c->index_step;
	if (d->index >= c->src_images)
		d->index -= c->src_images;
	if (__builtin_add_overflow(d->next, c->period, &d->next))
		d->next = CLOCK_NEVER;
	pthread_mutex_lock(&fpga->engine.lock);
	/* a unit that was started anew meanwhile has no results yet */
	if (d->unit && unit_has_result(d))
		d->taken++;
	if (d->live.source) {
		/* images that arrived until now met this image in the FIFO */
		source_advance(fpga, fpga_ticks());
		source_pop(d);
	}
	if (c->images)
		d->left--;
	pthread_mutex_unlock(&fpga->engine.lock);
}

static void count_image(struct fpga *fpga, struct dtp *d)
{
	d->image++;
	d->sent_frame = d->frame;
	next_image(fpga, d);
	count_add(&d->count.images, 1);
}

/* Drop an image of a stack without a slot. Stack numbers do not advance. */
static void drop_image(struct fpga *fpga, struct dtp *d)
{
	next_image(fpga, d);
	d->dropping--;
	if (!d->config.images || d->left)
		return;
	pthread_mutex_lock(&fpga->engine.lock);
	d->status |= RFPGA_DTP_DONE;
	pthread_mutex_unlock(&fpga->engine.lock);
}

/* Choose the next image, which exists; with engine.lock. */
static void look_at_image(struct dtp *d)
{
	const struct live *l = &d->live;

	d->lines = d->config.height;
	d->arrival = (struct arrival){ 0 };
	if (d->unit) {
		d->frame = unit_frame(d);
		d->index = (uint32_t)(d->taken % d->config.src_images);
	}
	if (!l->source)
		return;
	d->arrival = l->fifo[l->head];
	d->frame = d->arrival.frame;
	d->index = (uint32_t)(d->frame % d->config.src_images);
	d->lines -= d->arrival.missing < d->lines ? d->arrival.missing : d->lines;
}

/* One turn of a DTP: the next image and, if it is the last of a stack, the event. */
static enum outcome serve(struct fpga *fpga, struct dtp *d, struct bus_fault *fault)
{
	const struct dtp_config *c = &d->config;
	uint32_t ahead = (uint32_t)d->stack - d->count.credit, event = 0;
	enum outcome outcome;
	bool last;

	if (d->lingers)
		return send_image(fpga, d, fault);
	if (d->behind)
		return catch_up(fpga, d, fault);
	if (!d->image && !d->dropping && (c->mode & RFPGA_MODE_DROP) && ahead >= c->slots) {
		d->dropping = c->bunch;
		count_add(&d->count.dropped, 1);
	}
	if (d->dropping) {
		drop_image(fpga, d);
		return SENT;
	}
	/* count it as begun, even if it fails */
	if (!d->image && (c->mode & RFPGA_MODE_FREERUN) && ahead >= c->slots)
		count_add(&d->count.overruns, 1);
	if (!locate(fpga, d, fault))
		return REFUSED;
	d->begun = d->live.source ? d->arrival.begun : fpga_ticks();
	last = ends_stack(d);
	if (last)
		event = plan_event(fpga, d);
	if (!(d->behind & FPGA_IMAGE)) {
		outcome = send_image(fpga, d, fault);
		if (outcome != SENT)
			return outcome;
	}
	if ((c->mode & RFPGA_MODE_META) && !write_meta(fpga, d, fault))
		return REFUSED;
	count_image(fpga, d);
	return last ? end_stack(fpga, d, event, fault) : SENT;
}

/* -------------------------------------------- the engine, engine.lock held --- */

static void record_fault(struct fpga *fpga, struct dtp *d, const struct bus_fault *fault)
{
	engine_fault(fpga, (uint32_t)(d - fpga->dtp), fault);
	count_add(&d->count.faults, 1);
	d->count.fault_cause = fault->cause;
	d->count.fault_addr = fault->addr;
	d->status |= RFPGA_DTP_FAULTED;
}

/*
 * Misbehave: report a stop while the next image is on its way. A flush would push that image
 * first, so with FLUSH this does nothing.
 */
static void linger(struct fpga *fpga, struct dtp *d)
{
	struct bus_fault fault;

	if (!d->stop || !d->told.linger || (d->config.mode & RFPGA_MODE_FLUSH) ||
	    (d->status & RFPGA_DTP_FAULTED) || fpga->engine.quiescing ||
	    (d->live.source && !d->live.waiting) || (d->unit && !unit_has_result(d)))
		return;
	look_at_image(d);
	if (!locate(fpga, d, &fault))
		return;
	d->due = fpga_ticks();
	if (__builtin_add_overflow(d->due, d->told.linger_delay, &d->due))
		d->due = CLOCK_NEVER;
	d->lingers = d->dst.sent = true;
	d->stop = false;		/* it has left already */
}

/* The other members go on without events, which the member that left can no longer complete. */
static void end_group(struct fpga *fpga, struct dtp *d)
{
	const uint32_t members = d->group;
	unsigned int n;

	for (n = 0; n < fpga->dtps; n++)
		if (members & 1u << n)
			fpga->dtp[n].group = 0;
}

static void end_run(struct fpga *fpga, struct dtp *d)
{
	dtp_stall(d, STALL_NONE, fpga_ticks());
	d->status &= ~RFPGA_DTP_RUNNING;
	/* others may still catch up with a member that is done */
	if (d->stop || !(d->status & RFPGA_DTP_DONE))
		end_group(fpga, d);
	linger(fpga, d);
	source_detach(d);
	d->unit = NULL;
	log_debug("DTP %u: %s after %llu images", (unsigned int)(d - fpga->dtp),
		  d->status & RFPGA_DTP_DONE ? "done" : "stopped",
		  (unsigned long long)d->count.images);
}

/* Is a stop of a DTP requested but not done? */
static bool stopping(const struct fpga *fpga)
{
	unsigned int n;

	for (n = 0; n < fpga->dtps; n++)
		if (running(&fpga->dtp[n]) && fpga->dtp[n].stop)
			return true;
	return false;
}

static void end_turn(struct fpga *fpga, struct dtp *d, enum outcome outcome,
		     const struct bus_fault *fault)
{
	struct engine *e = &fpga->engine;

	/* retry the same image later */
	if (e->patient && !d->stop && outcome == REFUSED && fault->cause == RFPGA_FAULT_MASTER)
		outcome = SENT;
	/* no cause: a reset cut a message short, which is not the DTP's fault */
	if (outcome == REFUSED && fault->cause != RFPGA_FAULT_NONE)
		record_fault(fpga, d, fault);
	if (outcome != SENT)
		d->behind = 0;
	if (d->lingers)
		d->lingers = d->dst.sent = false;
	else if (!d->behind && (outcome != SENT || d->stop || (d->status & RFPGA_DTP_DONE)))
		end_run(fpga, d);
	e->active = NULL;
	pthread_cond_broadcast(&e->idle);
}

/*
 * A verdict of this run counts for a stack without one. Verdicts of earlier stacks are then no
 * longer expected. Returns whether a verdict is still expected.
 */
static bool judge(struct fpga *fpga, struct dtp *d)
{
	const uint64_t told = __atomic_load_n((uint64_t *)doorbell(fpga, d, RFPGA_DB_VERDICT),
					      __ATOMIC_ACQUIRE);
	const uint32_t verdict = (uint32_t)told >> 30;
	const uint64_t open = d->config.first_stack + d->count.stacks - d->count.judged;
	const uint32_t passed = ((uint32_t)told - (uint32_t)d->count.judged) & RFPGA_VERDICT_STACK;

	if (told >> 32 != d->config.run || passed >= open)
		return open;
	if (verdict == RFPGA_VERDICT_SUCCESS) {
		count_add(&d->count.successes, 1);
		d->count.success_ticks = fpga_ticks();
	} else if (verdict == RFPGA_VERDICT_FAILURE) {
		count_add(&d->count.failures, 1);
		d->count.failure_ticks = fpga_ticks();
	} else {
		return open;
	}
	count_add(&d->count.unjudged, passed);
	count_add(&d->count.judged, passed + 1ull);
	return open > passed + 1ull;
}

static bool has_credit(struct fpga *fpga, struct dtp *d)
{
	uint32_t credit = read_credit(fpga, d);

	d->count.credit = credit;
	return (d->config.mode & RFPGA_MODE_FREERUN) || d->image ||
	       (uint32_t)d->stack - credit < d->config.slots;
}

/* Reason why a DTP cannot send its next image, and the end of that reason if known. */
static enum stall blocked(struct fpga *fpga, struct dtp *d, uint64_t now, uint64_t *until)
{
	bool credit = has_credit(fpga, d);	/* read in any case */
	bool free_running = d->config.mode & RFPGA_MODE_FREERUN;

	*until = CLOCK_NEVER;
	if (d->unit && !unit_has_result(d))
		return STALL_SOURCE;
	if (d->live.source ? !d->live.waiting : free_running && d->next > now) {
		*until = d->live.source ? source_due(d->live.source) : d->next;
		return STALL_SOURCE;
	}
	if (!credit)
		return STALL_CREDIT;
	if (fpga->engine.patient && !d->stop && !host_is_master(fpga->host))
		return STALL_BUS;
	return STALL_NONE;
}

/* The next DTP that can send, or NULL with the time of the next check. */
static struct dtp *pick(struct fpga *fpga, uint64_t now, uint64_t *due, bool *waiting)
{
	unsigned int i, n;

	*due = CLOCK_NEVER;
	*waiting = false;
	source_advance(fpga, now);
	for (i = 0; i < fpga->dtps; i++) {
		uint64_t until;
		struct dtp *d;

		n = (fpga->engine.turn + i) % fpga->dtps;
		d = &fpga->dtp[n];
		if (d->judging)
			*waiting |= judge(fpga, d);
		if (!running(d) && !d->lingers)
			continue;
		if (d->behind || d->lingers) {
			until = d->stop ? 0 : d->due;
			if (fpga->engine.patient && !d->stop && !host_is_master(fpga->host)) {
				*waiting = true;	/* a change of it wakes no thread */
				continue;
			}
		} else {
			dtp_stall(d, blocked(fpga, d, now, &until), now);
			if (d->stall == STALL_NONE)
				until = 0;
			*waiting |= d->stall == STALL_CREDIT || d->stall == STALL_BUS;
		}
		if (until > now) {
			*due = until < *due ? until : *due;
			continue;
		}
		fpga->engine.turn = n + 1;
		return d;
	}
	return NULL;
}

/*
 * Let other threads take the lock. sched_yield() does not fit: on a busy machine it gives up a
 * whole time slice, milliseconds, instead of the 10 us of a sleep.
 */
static void relax(void)
{
	for (volatile unsigned int i = 0; i < 100; i++)
		;
}

/*
 * Nothing can be sent now. Credit arrives as a plain store to the doorbell page, which wakes no
 * thread: poll it for a moment, then sleep between polls. Polls follow the host's clock, because
 * writers of credit do not wait for the board's clock.
 */
static void take_pause(struct engine *e, struct pause *p, uint64_t due, bool waiting)
{
	uint64_t now = waiting ? host_ticks() : 0, look = CLOCK_NEVER;

	if (waiting && !p->spin_end) {
		p->spin_end = now + SPIN;
		p->sleep = SLEEP_MIN;
	}
	if (waiting && now < p->spin_end) {
		pthread_mutex_unlock(&e->lock);
		relax();
		pthread_mutex_lock(&e->lock);
		return;
	}
	if (waiting) {
		/* vary the period: in step with the writer, 1 us more could cost a whole period */
		p->dither = p->dither * 1103515245 + 12345;
		look = now + p->sleep / 2 + (p->dither >> 8) % p->sleep;
		if (now > p->spin_end + EAGER)
			p->sleep = 2 * p->sleep < SLEEP_MAX ? 2 * p->sleep : SLEEP_MAX;
	}
	clock_wait(&e->wake, &e->lock, due, look);
}

/* Run a turn of a processing unit. */
static void process(struct fpga *fpga, struct unit *u)
{
	struct engine *e = &fpga->engine;
	struct bus_fault fault = { 0 };
	enum unit_turn turn;

	e->processing = u;
	pthread_mutex_unlock(&e->lock);
	turn = unit_serve(fpga, u, &fault);
	pthread_mutex_lock(&e->lock);
	unit_end_turn(fpga, u, turn, &fault);
	e->processing = NULL;
	pthread_cond_broadcast(&e->idle);
}

/* Process a datagram of a ring. */
static void ring(struct fpga *fpga, struct ring *r)
{
	struct engine *e = &fpga->engine;
	struct bus_fault fault = { 0 };
	bool served;

	e->ringing = r;
	pthread_mutex_unlock(&e->lock);
	served = ring_serve(fpga, r, &fault);
	pthread_mutex_lock(&e->lock);
	ring_end_turn(fpga, r, served, &fault);
	e->ringing = NULL;
	pthread_cond_broadcast(&e->idle);
}

/* Run a turn of a unit or of a ring; if both have work, they alternate. */
static void serve_other(struct fpga *fpga, struct unit *u, struct ring *r)
{
	struct engine *e = &fpga->engine;

	if (r && (!u || e->rings_turn)) {
		e->rings_turn = false;
		ring(fpga, r);
	} else {
		e->rings_turn = true;
		process(fpga, u);
	}
}

static void *engine_main(void *arg)
{
	struct fpga *fpga = arg;
	struct engine *e = &fpga->engine;
	struct pause pause = { 0 };

	prctl(PR_SET_NAME, "engine");
	prctl(PR_SET_TIMERSLACK, 1000);
	pthread_mutex_lock(&e->lock);
	while (!e->exit) {
		struct bus_fault fault = { 0 };
		enum outcome outcome;
		uint64_t now = fpga_ticks(), due;
		bool waiting = false, hungry;
		struct unit *u = unit_pick(fpga, &hungry);
		struct ring *r = ring_pick(fpga, &hungry);
		struct dtp *d = (u || r) && e->other_turn ? NULL : pick(fpga, now, &due, &waiting);

		/* if DTPs and others have work, they alternate */
		e->other_turn = d;
		if (!d && (u || r)) {
			pause.spin_end = 0;
			serve_other(fpga, u, r);
			continue;
		}
		if (!d) {
			if (e->unsettled) {
				e->unsettled = false;
				pthread_cond_broadcast(&e->idle);
			}
			take_pause(e, &pause, due, waiting || hungry);
			continue;
		}
		pause.spin_end = 0;
		if (!d->behind && !d->lingers) {
			d->does = d->told;
			d->obeyed = d->orders;
			d->dst.wild = d->does.wild;
			d->dst.wild_addr = d->does.wild_addr;
			d->dst.drop = d->lock.drop = d->meta.drop = d->does.drop;
			look_at_image(d);
		}
		e->active = d;
		pthread_mutex_unlock(&e->lock);
		outcome = serve(fpga, d, &fault);
		pthread_mutex_lock(&e->lock);
		end_turn(fpga, d, outcome, &fault);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

/* -------------------------------------------- for the protocol thread --- */

static void reset_counters(struct dtp *d)
{
	struct dtp_counters *c = &d->count;

	c->images = c->stacks = c->bytes = c->descriptors = c->events = 0;
	c->overruns = c->faults = c->start = c->stop = 0;
	c->fault_addr = c->dropped = c->fifo_peak = c->lost = 0;
	c->successes = c->failures = c->unjudged = c->judged = 0;
	c->success_ticks = c->failure_ticks = 0;
	c->stall[STALL_CREDIT] = c->stall[STALL_BUS] = c->stall[STALL_SOURCE] = 0;
	c->credit = c->fault_cause = 0;
}

/* Prepare a START. The DTP does not run, so the engine does not use it. */
static void begin_anew(struct fpga *fpga, struct dtp *d)
{
	reset_counters(d);
	d->status = 0;
	d->stop = d->lingers = d->grouped = d->judging = false;
	end_group(fpga, d);
}

static void begin_run(struct fpga *fpga, struct dtp *d, uint64_t now)
{
	const unsigned int n = (unsigned int)(d - fpga->dtp);
	const struct dtp_config *c = &d->config;

	bus_space_init(&d->dst, n, c->dst_first, c->dst_count);
	bus_space_init(&d->lock, n, c->lock_first, c->lock_count);
	bus_space_init(&d->meta, n, c->meta_first, c->meta_count);
	d->stack = c->first_stack;
	d->slot = c->first_slot;
	d->index = c->first_index;
	d->frame = c->first_frame;
	d->stall = STALL_NONE;
	d->image = 0;
	d->dropping = 0;
	d->behind = 0;
	d->posted = d->torn = d->lingers = false;
	d->left = c->images;
	d->count.start = now;
	d->next = d->count.start;
	d->count.credit = (uint32_t)c->first_stack;
	preset_doorbells(fpga, d);
	d->count.judged = c->first_stack;
	d->judging = c->mode & RFPGA_MODE_VERDICT;
	source_attach(fpga, d);
	unit_attach(fpga, d);
	d->status |= RFPGA_DTP_RUNNING;
	log_debug("DTP %u: started", n);
}

/* Refuse START, because the DTP has not stopped. */
static bool ignores_start(struct fpga *fpga, struct dtp *d)
{
	if (!running(d) && fpga->engine.active != d)
		return false;
	d->status |= RFPGA_DTP_IGNORED;
	log_limited("DTP %u: START while it runs, ignored", (unsigned int)(d - fpga->dtp));
	return true;
}

void engine_start(struct fpga *fpga, unsigned int n)
{
	struct engine *e = &fpga->engine;
	struct dtp *d = &fpga->dtp[n];
	struct bus_fault fault;

	pthread_mutex_lock(&e->lock);
	if (!ignores_start(fpga, d)) {
		begin_anew(fpga, d);
		if (dtp_load(fpga, n, false, &d->config, &fault))
			begin_run(fpga, d, fpga_ticks());
		else
			record_fault(fpga, d, &fault);
	}
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
}

/* Can all members start? Those that cannot record a fault; the others stay unchanged. */
static bool group_ready(struct fpga *fpga, uint32_t members, struct dtp_config *config)
{
	struct bus_fault fault;
	bool ready = true;
	unsigned int n;

	for (n = 0; n < fpga->dtps; n++) {
		struct dtp *d = &fpga->dtp[n];

		if (!(members & 1u << n))
			continue;
		if (ignores_start(fpga, d)) {
			ready = false;
		} else if (!dtp_load(fpga, n, true, &config[n], &fault)) {
			begin_anew(fpga, d);
			record_fault(fpga, d, &fault);
			ready = false;
		}
	}
	return ready;
}

/* All members or none, in one instant: the engine waits for the lock. */
void engine_start_group(struct fpga *fpga, uint32_t members)
{
	struct dtp_config config[RFPGA_DTPS_MAX];
	struct engine *e = &fpga->engine;
	uint64_t now;
	unsigned int n;

	if (!(fpga->features & RFPGA_FEATURE_GROUP) || !members || members >> fpga->dtps)
		return;
	pthread_mutex_lock(&e->lock);
	now = fpga_ticks();
	if (!group_ready(fpga, members, config))
		members = 0;
	for (n = 0; n < fpga->dtps; n++) {
		struct dtp *d = &fpga->dtp[n];

		if (!(members & 1u << n))
			continue;
		begin_anew(fpga, d);
		d->config = config[n];
		begin_run(fpga, d, now);
		d->grouped = true;
		d->ahead = 0;
	}
	/* after the loop, because each member has left its earlier group */
	for (n = 0; n < fpga->dtps; n++)
		if (members & 1u << n)
			fpga->dtp[n].group = members;
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
}

/*
 * Request a stop of all DTPs in the mask; UINT32_MAX: also of rings. Does not wait for the current
 * image. Counted when it is taken.
 */
void engine_stop(struct fpga *fpga, uint32_t mask)
{
	struct engine *e = &fpga->engine;
	unsigned int n;

	pthread_mutex_lock(&e->lock);
	for (n = 0; n < fpga->dtps && !e->stuck; n++) {
		struct dtp *d = &fpga->dtp[n];

		if (!(mask & 1u << n) || !running(d) || (mask != UINT32_MAX && d->told.deaf))
			continue;
		d->stop = true;
		if (e->active != d && !d->behind)
			end_run(fpga, d);
	}
	for (n = 0; n < fpga->rings && mask == UINT32_MAX && !e->stuck; n++)
		ring_stop(fpga, &fpga->ring[n]);
	if (!e->stuck)
		e->stops++;
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
}

void engine_set_stuck(struct fpga *fpga, bool on)
{
	pthread_mutex_lock(&fpga->engine.lock);
	fpga->engine.stuck = on;
	pthread_mutex_unlock(&fpga->engine.lock);
}

void engine_set_patient(struct fpga *fpga, bool on)
{
	pthread_mutex_lock(&fpga->engine.lock);
	fpga->engine.patient = on;
	pthread_mutex_unlock(&fpga->engine.lock);
}

void engine_quiesce(struct fpga *fpga)
{
	struct engine *e = &fpga->engine;
	unsigned int n;

	engine_set_stuck(fpga, false);
	pthread_mutex_lock(&e->lock);
	e->quiesce_end = host_ticks() + ARRIVAL;
	e->quiescing = true;
	for (n = 0; n < fpga->dtps; n++)
		if (e->active != &fpga->dtp[n])
			fpga->dtp[n].lingers = false;
	pthread_mutex_unlock(&e->lock);
	engine_stop(fpga, UINT32_MAX);
	/* the host may not answer a message before it has our answer */
	host_abort(fpga->host, true);
	pthread_mutex_lock(&e->lock);
	while (e->active || e->processing || e->ringing || stopping(fpga))
		pthread_cond_wait(&e->idle, &e->lock);
	e->quiescing = false;
	pthread_mutex_unlock(&e->lock);
	host_abort(fpga->host, false);
}

void engine_clear(struct fpga *fpga)
{
	struct engine *e = &fpga->engine;

	pthread_mutex_lock(&e->lock);
	e->faults = 0;
	e->fault_addr = 0;
	e->fault_cause = RFPGA_FAULT_NONE;
	e->fault_dtp = 0;
	e->stops = 0;
	e->bytes = 0;
	pthread_mutex_unlock(&e->lock);
}

void engine_reset(struct fpga *fpga)
{
	unsigned int n;

	engine_clear(fpga);
	pthread_mutex_lock(&fpga->engine.lock);
	for (n = 0; n < RFPGA_DTPS_MAX; n++) {
		struct dtp *d = &fpga->dtp[n];

		reset_counters(d);
		d->status = 0;
		d->grouped = d->judging = false;
		d->group = 0;
	}
	pthread_mutex_unlock(&fpga->engine.lock);
}

void engine_kick(struct fpga *fpga)
{
	pthread_mutex_lock(&fpga->engine.lock);
	fpga->engine.unsettled = true;
	pthread_cond_signal(&fpga->engine.wake);
	pthread_mutex_unlock(&fpga->engine.lock);
}

bool engine_settled(struct fpga *fpga)
{
	struct engine *e = &fpga->engine;
	uint64_t until = host_ticks() + TICKS(1000);
	bool settled;

	pthread_mutex_lock(&e->lock);
	while (e->unsettled && host_ticks() < until)
		clock_wait(&e->idle, &e->lock, CLOCK_NEVER, until);
	settled = !e->unsettled;
	pthread_mutex_unlock(&e->lock);
	return settled;
}

bool engine_runs(struct fpga *fpga, unsigned int n)
{
	return engine_status(fpga, n) & RFPGA_DTP_RUNNING;
}

uint32_t engine_status(struct fpga *fpga, unsigned int n)
{
	const struct dtp *d = &fpga->dtp[n];
	uint32_t status;

	pthread_mutex_lock(&fpga->engine.lock);
	status = d->status;
	if (running(d) && d->stop)
		status |= RFPGA_DTP_STOPPING;
	pthread_mutex_unlock(&fpga->engine.lock);
	return status;
}

/* Include a current stall in the count. */
uint64_t engine_stall(struct fpga *fpga, unsigned int n, enum stall cause)
{
	const struct dtp *d = &fpga->dtp[n];
	uint64_t ticks, now;

	pthread_mutex_lock(&fpga->engine.lock);
	now = fpga_ticks();
	source_advance(fpga, now);
	ticks = d->count.stall[cause];
	if (d->stall == cause && now > d->stalled)
		ticks += now - d->stalled;
	pthread_mutex_unlock(&fpga->engine.lock);
	return ticks;
}

bool engine_busy(struct fpga *fpga)
{
	bool busy = false;
	unsigned int n;

	pthread_mutex_lock(&fpga->engine.lock);
	for (n = 0; n < fpga->dtps; n++)
		busy |= running(&fpga->dtp[n]);
	busy |= ring_busy(fpga);
	pthread_mutex_unlock(&fpga->engine.lock);
	return busy;
}

int engine_init(struct fpga *fpga)
{
	struct engine *e = &fpga->engine;
	pthread_condattr_t attr;

	pthread_mutex_init(&e->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&e->wake, &attr);
	pthread_cond_init(&e->idle, &attr);
	pthread_condattr_destroy(&attr);
	return -pthread_create(&e->thread, NULL, engine_main, fpga);
}

void engine_destroy(struct fpga *fpga)
{
	struct engine *e = &fpga->engine;

	engine_quiesce(fpga);
	pthread_mutex_lock(&e->lock);
	e->exit = true;
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
	pthread_join(e->thread, NULL);
	pthread_cond_destroy(&e->wake);
	pthread_cond_destroy(&e->idle);
	pthread_mutex_destroy(&e->lock);
}
