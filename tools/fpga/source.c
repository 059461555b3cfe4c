// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Live sources: detectors that deliver images at their own pace, and the FIFO of each DTP. No
 * thread waits for images: each use of a source first takes in all images that arrived until then,
 * by source_advance(). So the content and losses of a DTP depend on the clock, not on the
 * time of the use.
 *
 *   miss frames N		the detector misses each image whose number + 1 is a multiple
 *				of N
 *   miss lines N [COUNT]	COUNT lines of these images are missing
 *   miss frames|lines off
 *
 * All of this is under engine.lock, and called with the lock held unless said otherwise.
 */
#include "fpga/fpga.h"

#include <stdio.h>
#include <string.h>

#define MISS_MAX	65536

static bool is_missed(uint64_t every, uint64_t frame)
{
	return every && (frame + 1) % every == 0;
}

/* Number of missed images from @from to before @end. */
static uint64_t missed_between(uint64_t every, uint64_t from, uint64_t end)
{
	return every ? end / every - from / every : 0;
}

static uint64_t begins(const struct source *s, uint64_t frame)
{
	uint64_t tick;

	if (__builtin_mul_overflow(frame, s->period, &tick) ||
	    __builtin_add_overflow(tick, s->start, &tick))
		return UINT64_MAX;
	return tick;
}

uint64_t source_due(const struct source *s)
{
	return s->running ? begins(s, s->frames + 1) : UINT64_MAX;
}

static uint64_t step(const struct dtp *d)
{
	return d->config.sampling ? d->config.sampling : 1;
}

/* The FIFO may already hold all images of the rest of a run: later ones are not lost. */
static bool wants_more(const struct dtp *d)
{
	return !d->config.images || d->live.waiting < d->left;
}

/* Put image @frame, which the DTP takes, into the FIFO; there is room. */
static void accept_image(struct fpga *fpga, struct dtp *d, const struct source *s, uint64_t frame)
{
	struct live *l = &d->live;
	struct arrival *a = &l->fifo[(l->head + l->waiting) % FPGA_FIFO];

	if (is_missed(fpga->miss.frames, frame))
		return;
	*a = (struct arrival) {
		.frame = frame,
		.begun = begins(s, frame),
		.trigger = s->first_trigger + frame,
		.role = frame == s->frames ? s->role_begun : s->role,
		.missing = is_missed(fpga->miss.lines, frame) ? fpga->miss.count : 0,
	};
	if (!l->waiting++)
		dtp_stall(d, STALL_NONE, begins(s, frame + 1));
	if (l->waiting > d->count.fifo_peak)
		d->count.fifo_peak = l->waiting;
}

/* Number of missed images among @n: @from, @from + step ... @every is at most MISS_MAX. */
static uint64_t missed_of(uint64_t every, uint64_t from, uint64_t step, uint64_t n)
{
	uint64_t missed = 0, rest, i;

	if (!every)
		return 0;
	rest = n % every;
	for (i = 0; i < every && i < n; i++)
		if (is_missed(every, from + i * step))
			missed += n / every + (i < rest);
	return missed;
}

/* Images offered from @from on are lost, or no longer needed. */
static void lose(struct fpga *fpga, struct dtp *d, uint64_t from, uint64_t end)
{
	uint64_t n = (end - 1 - from) / step(d) + 1;
	uint64_t missed = missed_of(fpga->miss.frames, from, step(d), n);

	if (wants_more(d))
		d->count.lost += n - missed;
	d->live.pass = from + n * step(d) - end;
}

/* Take in the images from @from to before @end. */
static void take(struct fpga *fpga, struct dtp *d, const struct source *s, uint64_t from,
		 uint64_t end)
{
	struct live *l = &d->live;

	if (from < l->from)
		from = l->from;
	while (from < end) {
		if (l->pass >= end - from) {
			l->pass -= end - from;
			return;
		}
		from += l->pass;
		/* the FIFO is full, or all of the DTP's images were missed */
		if (l->waiting == FPGA_FIFO || !wants_more(d) ||
		    (is_missed(fpga->miss.frames, from) && !(step(d) % fpga->miss.frames))) {
			lose(fpga, d, from, end);
			return;
		}
		accept_image(fpga, d, s, from++);
		l->pass = step(d) - 1;
	}
}

void source_advance(struct fpga *fpga, uint64_t now)
{
	unsigned int i, n;

	for (i = 0; i < fpga->sources; i++) {
		struct source *s = &fpga->source[i];
		uint64_t end = s->running ? (now - s->start) / s->period : s->frames;

		if (end <= s->frames)
			continue;
		for (n = 0; n < fpga->dtps; n++)
			if (fpga->dtp[n].live.source == s)
				take(fpga, &fpga->dtp[n], s, s->frames, end);
		s->missed += missed_between(fpga->miss.frames, s->frames, end);
		s->lines_missed += missed_between(fpga->miss.lines, s->frames, end) *
				   fpga->miss.count;
		s->role_begun = s->role;
		s->frames = end;
	}
}

void source_attach(struct fpga *fpga, struct dtp *d)
{
	struct live *l = &d->live;

	memset(l, 0, sizeof(*l));
	if (d->config.source_kind != RFPGA_FROM_LIVE)
		return;
	source_advance(fpga, d->count.start);
	l->source = &fpga->source[d->config.source];
	l->from = l->source->running ? l->source->frames + 1 : 0;
	l->pass = d->config.phase;
	dtp_stall(d, STALL_SOURCE, d->count.start);
}

void source_detach(struct dtp *d)
{
	d->live.source = NULL;
}

void source_pop(struct dtp *d)
{
	d->live.head = (d->live.head + 1) % FPGA_FIFO;
	d->live.waiting--;
}

/* ------------------------------------------ for the protocol thread, without the lock --- */

static void start(struct fpga *fpga, struct source *s, uint64_t now)
{
	unsigned int n;

	if (s->running || !s->period || s->period >> FPGA_OFFSET_BITS)
		return;
	s->running = true;
	s->start = now;
	s->role_begun = s->role;
	s->first_trigger += s->frames;
	s->frames = 0;
	for (n = 0; n < fpga->dtps; n++)
		if (fpga->dtp[n].live.source == s)
			fpga->dtp[n].live.from = 0;
}

static void stop(struct source *s)
{
	/* the image that had begun used a trigger */
	s->first_trigger += s->running;
	s->running = false;
}

static void set_half(uint64_t *value, uint32_t offset, uint32_t word)
{
	if (offset & 4)
		*value = (uint32_t)*value | (uint64_t)word << 32;
	else
		*value = *value >> 32 << 32 | word;
}

void source_write(struct fpga *fpga, unsigned int n, uint32_t offset, uint32_t value)
{
	struct source *s = &fpga->source[n];
	uint64_t now;

	pthread_mutex_lock(&fpga->engine.lock);
	now = fpga_ticks();
	source_advance(fpga, now);
	if (offset == RFPGA_SOURCE_CONTROL && (value & RFPGA_SOURCE_STOP))
		stop(s);
	else if (offset == RFPGA_SOURCE_CONTROL && (value & RFPGA_SOURCE_START))
		start(fpga, s, now);
	else if (offset == RFPGA_SOURCE_ROLE)
		s->role = value;
	else if ((offset & ~4u) == RFPGA_SOURCE_PERIOD && !s->running)
		set_half(&s->period, offset, value);
	pthread_cond_signal(&fpga->engine.wake);
	pthread_mutex_unlock(&fpga->engine.lock);
}

static uint64_t value_of(const struct fpga *fpga, const struct source *s, uint32_t offset,
			 uint64_t now)
{
	switch (offset) {
	case RFPGA_SOURCE_STATUS:
		return s->running ? RFPGA_SOURCE_RUNNING : 0;
	case RFPGA_SOURCE_FIFO:
		return FPGA_FIFO;
	case RFPGA_SOURCE_ROLE:
		return s->role;
	case RFPGA_SOURCE_PERIOD:
		return s->period;
	case RFPGA_SOURCE_FRAMES:
		return s->frames;
	case RFPGA_SOURCE_TRIGGERS:
		return s->first_trigger + s->frames;
	case RFPGA_SOURCE_TIME:
		return source_time(fpga, now);
	case RFPGA_SOURCE_MISSED:
		return s->missed;
	case RFPGA_SOURCE_LINES_MISSED:
		return s->lines_missed;
	default:
		return 0;
	}
}

uint64_t source_read(struct fpga *fpga, unsigned int n, uint32_t offset)
{
	uint64_t now, value;

	pthread_mutex_lock(&fpga->engine.lock);
	now = fpga_ticks();
	source_advance(fpga, now);
	value = value_of(fpga, &fpga->source[n], offset, now);
	pthread_mutex_unlock(&fpga->engine.lock);
	return value;
}

void source_reset(struct fpga *fpga)
{
	pthread_mutex_lock(&fpga->engine.lock);
	memset(fpga->source, 0, sizeof(fpga->source));
	pthread_mutex_unlock(&fpga->engine.lock);
}

/* TIME at a tick: follows the board's clock, and stops with it. */
uint64_t source_time(const struct fpga *fpga, uint64_t tick)
{
	return fpga->tai + tick * RFPGA_TICK_NS;
}

bool source_command(struct fpga *fpga, const char *command)
{
	struct miss miss = fpga->miss;
	unsigned long long every = 0;
	unsigned int count = 1;
	bool lines = false;
	char end;

	if (!strcmp(command, "miss lines off"))
		miss.lines = 0;
	else if (!strcmp(command, "miss frames off") ||
		 sscanf(command, "miss frames %llu%c", &every, &end) == 1)
		miss.frames = every;
	else if (sscanf(command, "miss lines %llu%c", &every, &end) == 1 ||
		 sscanf(command, "miss lines %llu %u%c", &every, &count, &end) == 2)
		lines = true;
	else
		return false;
	if (strchr(command, '-') || every > MISS_MAX ||
	    ((lines || !strstr(command, "off")) && (!every || !count)))
		return false;
	if (lines) {
		miss.lines = every;
		miss.count = count;
	}
	pthread_mutex_lock(&fpga->engine.lock);
	source_advance(fpga, fpga_ticks());
	fpga->miss = miss;
	pthread_mutex_unlock(&fpga->engine.lock);
	return true;
}
