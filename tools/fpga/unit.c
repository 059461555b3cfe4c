// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Processing units: raw images in on-board memory become results there, which DTPs send. Some lines
 * are processed in a turn of the engine, so that streams do not wait for an image.
 *
 * The processing library does the arithmetic (arithmetic.h).
 */
#include "fpga/fpga.h"

#include <math.h>
#include <string.h>

#include "processing/arithmetic.h"
#include "fpga/log.h"

#define GAINS		3u
#define TURN		65536u		/* pixels of a turn, but at least a line */

/* --- registers --- */

static const struct { uint32_t first, end; } writable[] = {
	{ RFPGA_UNIT_RUN, RFPGA_UNIT_DARK_WEIGHT + 4 },
	{ RFPGA_UNIT_RAW_IMAGE, RFPGA_UNIT_RESULT_SLOTS + 4 },
};

static bool is_config(uint32_t offset)
{
	unsigned int i;

	for (i = 0; i < sizeof(writable) / sizeof(writable[0]); i++)
		if (offset >= writable[i].first && offset < writable[i].end)
			return true;
	return false;
}

static void load(const uint32_t *r, struct unit_config *c)
{
	const uint32_t format = r[RFPGA_UNIT_FORMAT / 4];

#define GET64(reg) (r[(reg) / 4] | (uint64_t)r[(reg) / 4 + 1] << 32)
	*c = (struct unit_config) {
		.run = r[RFPGA_UNIT_RUN / 4],
		.raw = GET64(RFPGA_UNIT_RAW), .result = GET64(RFPGA_UNIT_RESULT),
		.pedestal = GET64(RFPGA_UNIT_PEDESTAL), .gain = GET64(RFPGA_UNIT_GAIN),
		.width = r[RFPGA_UNIT_WIDTH / 4], .height = r[RFPGA_UNIT_HEIGHT / 4],
		.saturated = r[RFPGA_UNIT_SATURATED / 4],
		.bytes = format & 0xff, .jungfrau = format & RFPGA_UNIT_JUNGFRAU,
		.whole = format & RFPGA_UNIT_ROUND,
		.raw_image = r[RFPGA_UNIT_RAW_IMAGE / 4],
		.result_image = r[RFPGA_UNIT_RESULT_IMAGE / 4],
		.raw_slots = r[RFPGA_UNIT_RAW_SLOTS / 4],
		.result_slots = r[RFPGA_UNIT_RESULT_SLOTS / 4],
	};
#undef GET64
	memcpy(&c->dark_weight, &r[RFPGA_UNIT_DARK_WEIGHT / 4], sizeof(c->dark_weight));
}

static bool is_slots(uint32_t n)
{
	return n && n <= RFPGA_UNIT_SLOTS_MAX;
}

/* The lowest register that makes no sense, or 0: as of DTPs, without a product. */
static uint32_t find_nonsense(const struct fpga *fpga, const uint32_t *r,
			      const struct unit_config *c)
{
	const uint64_t odd = ((uint64_t)1 << fpga->align) - 1;
	const uint64_t word = odd | 3;		/* results and planes are of words */
	const uint32_t known = 0xff | RFPGA_UNIT_JUNGFRAU | RFPGA_UNIT_ROUND;
	const bool raw = c->bytes == 1 || c->bytes == 2 || c->bytes == 4;
	const struct { uint32_t reg; bool good; } checks[] = {
		{ RFPGA_UNIT_RUN, c->run <= UINT16_MAX },
		{ RFPGA_UNIT_RAW, !(c->raw >> FPGA_OFFSET_BITS) && !(c->raw & odd) &&
				  !(raw && (c->raw & (c->bytes - 1))) },
		{ RFPGA_UNIT_RESULT, !(c->result >> FPGA_OFFSET_BITS) && !(c->result & word) },
		{ RFPGA_UNIT_PEDESTAL,
		  !(c->pedestal >> FPGA_OFFSET_BITS) && !(c->pedestal & word) },
		{ RFPGA_UNIT_GAIN, !(c->gain >> FPGA_OFFSET_BITS) && !(c->gain & word) },
		{ RFPGA_UNIT_WIDTH, c->width && !(c->width >> 16) },
		{ RFPGA_UNIT_HEIGHT, c->height && !(c->height >> 16) },
		{ RFPGA_UNIT_FORMAT, raw && !(r[RFPGA_UNIT_FORMAT / 4] & ~known) &&
				     !(c->jungfrau && c->bytes != 2) },
		/* not a number is not between them either */
		{ RFPGA_UNIT_DARK_WEIGHT, c->dark_weight >= 0 && c->dark_weight <= 1 },
		{ RFPGA_UNIT_RAW_IMAGE, !(c->raw_image & odd) &&
					!(raw && (c->raw_image & (c->bytes - 1))) },
		{ RFPGA_UNIT_RESULT_IMAGE, !(c->result_image & word) },
		{ RFPGA_UNIT_RAW_SLOTS, is_slots(c->raw_slots) },
		{ RFPGA_UNIT_RESULT_SLOTS, is_slots(c->result_slots) },
	};
	unsigned int i;

	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!checks[i].good)
			return checks[i].reg;
	return 0;
}

/* --- images; the engine's --- */

static uint64_t *doorbell(struct fpga *fpga, const struct unit *u)
{
	return (uint64_t *)(fpga->doorbell + (fpga->dtps + (size_t)(u - fpga->unit)) *
			    RFPGA_DOORBELL_PAGE + RFPGA_DB_GIVEN);
}

/* So many bytes of on-board memory; the caller has looked whether they are there. */
static void *memory_at(struct fpga *fpga, uint64_t offset)
{
	return fpga->memory + offset;
}

static bool exists(const struct fpga *fpga, uint64_t offset, uint64_t length,
		   struct bus_fault *fault)
{
	if (length <= fpga->memory_size && offset <= fpga->memory_size - length)
		return true;
	*fault = (struct bus_fault){ RFPGA_FAULT_SOURCE,
				     offset < fpga->memory_size ? fpga->memory_size : offset };
	return false;
}

static uint64_t raw_at(const struct unit *u)
{
	return u->config.raw + u->in % u->config.raw_slots * (uint64_t)u->config.raw_image;
}

static uint64_t result_at(const struct unit *u)
{
	return u->config.result + u->out % u->config.result_slots *
	       (uint64_t)u->config.result_image;
}

/* Is all of the image and of what it needs on the board? Looked at when an image begins. */
static bool is_there(const struct fpga *fpga, const struct unit *u, struct bus_fault *fault)
{
	const struct unit_config *c = &u->config;
	const uint64_t n = (uint64_t)c->width * c->height;
	const uint64_t planes = (c->jungfrau ? GAINS : 1) * n * sizeof(float);

	return exists(fpga, raw_at(u), n * c->bytes, fault) &&
	       (u->dark || exists(fpga, result_at(u), n * sizeof(float), fault)) &&
	       exists(fpga, c->pedestal, planes, fault) && exists(fpga, c->gain, planes, fault);
}

static uint32_t raw_word(const uint8_t *at, uint32_t bytes)
{
	uint32_t word = 0;

	memcpy(&word, at, bytes);
	return word;
}

static float result_of(const struct unit_config *c, uint32_t raw, const float *pedestal,
		       const float *per_gain, size_t plane, size_t i)
{
	float x;

	if (c->jungfrau) {
		i += rpu_stage(raw) * plane;
		x = rpu_valid(raw) ? rpu_convert(raw, pedestal[i], per_gain[i]) : NAN;
	} else {
		x = raw < c->saturated ? rpu_scale(raw, pedestal[i], per_gain[i]) : NAN;
	}
	return c->whole ? rpu_round(x) : x;
}

static void move_pedestal(const struct unit_config *c, float *pedestal, uint32_t raw)
{
	if (c->jungfrau)
		*pedestal = rpu_dark_mean(*pedestal, raw, c->dark_weight);
	else if (raw < c->saturated)
		*pedestal = rpu_mean_of(*pedestal, rpu_scale(raw, 0, 1), c->dark_weight);
}

/* The pixels from @first to before @end. Returns how many results are invalid. */
static uint64_t process(struct fpga *fpga, const struct unit *u, size_t first, size_t end)
{
	const struct unit_config *c = &u->config;
	const size_t plane = (size_t)c->width * c->height;
	const uint8_t *raw = memory_at(fpga, raw_at(u));
	const float *per_gain = memory_at(fpga, c->gain);
	float *pedestal = memory_at(fpga, c->pedestal);
	float *result = u->dark ? NULL : memory_at(fpga, result_at(u));
	uint64_t invalid = 0;
	size_t i;

	for (i = first; i < end; i++) {
		const uint32_t word = raw_word(raw + i * c->bytes, c->bytes);

		if (result) {
			result[i] = result_of(c, word, pedestal, per_gain, plane, i);
			invalid += isnan(result[i]);
		} else if (c->dark_weight > 0) {
			move_pedestal(c, pedestal + i, word);
		}
	}
	return invalid;
}

enum unit_turn unit_serve(struct fpga *fpga, struct unit *u, struct bus_fault *fault)
{
	const struct unit_config *c = &u->config;
	const uint32_t lines = TURN / c->width ? TURN / c->width : 1;
	uint32_t end = c->height - u->line > lines ? u->line + lines : c->height;

	if (!u->line && !is_there(fpga, u, fault))
		return UNIT_REFUSED;
	u->invalid += process(fpga, u, (size_t)u->line * c->width, (size_t)end * c->width);
	u->line = end;
	return end < c->height ? UNIT_GOES_ON : UNIT_IMAGE;
}

/* --- with engine.lock --- */

static void fail(struct fpga *fpga, struct unit *u, uint32_t cause, uint64_t addr)
{
	u->status = RFPGA_UNIT_FAULTED;
	u->fault_cause = cause;
	u->fault_addr = addr;
	log_limited("unit %u: fault, cause %u, address %#llx", (unsigned int)(u - fpga->unit),
		    cause, (unsigned long long)addr);
}

/* Has each DTP that takes results of this unit sent so many that there is room for one more? */
static bool has_room(const struct fpga *fpga, const struct unit *u)
{
	unsigned int n;

	for (n = 0; n < fpga->dtps; n++) {
		const struct dtp *d = &fpga->dtp[n];

		if (d->unit == u && u->out - d->taken >= u->config.result_slots)
			return false;
	}
	return true;
}

/* Is there an image, and room for its result? */
static bool has_work(struct fpga *fpga, struct unit *u)
{
	const uint64_t given = __atomic_load_n(doorbell(fpga, u), __ATOMIC_ACQUIRE);
	const uint32_t images = (uint32_t)given - (uint32_t)u->in;

	u->status &= ~RFPGA_UNIT_WAITING;
	if (u->stop) {
		unit_stop(u);
		return false;
	}
	if (u->line)
		return true;
	if (given >> 48 != u->config.run || !images)
		return false;
	if (images > u->config.raw_slots) {
		fail(fpga, u, RFPGA_FAULT_CONFIG,
		     (uint64_t)((uint8_t *)doorbell(fpga, u) - fpga->doorbell));
		return false;
	}
	u->dark = given >> 32 & 1u << u->in % 16;
	if (u->dark || has_room(fpga, u))
		return true;
	u->status |= RFPGA_UNIT_WAITING;
	return false;
}

struct unit *unit_pick(struct fpga *fpga, bool *waiting)
{
	unsigned int n;

	*waiting = false;
	if (fpga->engine.quiescing)
		return NULL;
	for (n = 0; n < fpga->units; n++) {
		struct unit *u = &fpga->unit[n];

		if (!(u->status & RFPGA_UNIT_RUNNING))
			continue;
		if (has_work(fpga, u))
			return u;
		*waiting |= (u->status & RFPGA_UNIT_RUNNING) != 0;
	}
	return NULL;
}

void unit_end_turn(struct fpga *fpga, struct unit *u, enum unit_turn turn,
		   const struct bus_fault *fault)
{
	if (turn == UNIT_REFUSED)
		fail(fpga, u, fault->cause, fault->addr);
	if (turn != UNIT_IMAGE)
		return;
	u->line = 0;
	if (u->dark)
		u->darks++;
	else
		u->number[u->out++ % RFPGA_UNIT_SLOTS_MAX] = u->in;
	u->in++;
}

/* Stop the unit; an unfinished image is discarded. */
void unit_stop(struct unit *u)
{
	u->status &= RFPGA_UNIT_FAULTED;
	u->stop = false;
	u->line = 0;
}

bool unit_has_result(const struct dtp *d)
{
	return d->unit->out > d->taken;
}

uint64_t unit_frame(const struct dtp *d)
{
	return d->unit->number[d->taken % RFPGA_UNIT_SLOTS_MAX];
}

void unit_attach(struct fpga *fpga, struct dtp *d)
{
	d->unit = d->config.source_kind == RFPGA_FROM_UNIT ? &fpga->unit[d->config.source] : NULL;
	d->taken = d->unit ? d->unit->out : 0;
}

/* --- for the protocol thread --- */

static void begin(struct fpga *fpga, struct unit *u)
{
	const uint32_t *regs = fpga->unit_regs[u - fpga->unit];
	uint32_t nonsense;
	unsigned int n;

	u->in = u->out = u->invalid = u->darks = 0;
	u->status = u->fault_cause = 0;
	u->fault_addr = 0;
	u->line = 0;
	u->stop = false;
	load(regs, &u->config);
	nonsense = find_nonsense(fpga, regs, &u->config);
	if (nonsense) {
		fail(fpga, u, RFPGA_FAULT_CONFIG,
		     FPGA_UNITS + (uint32_t)(u - fpga->unit) * RFPGA_UNIT_SIZE + nonsense);
		return;
	}
	for (n = 0; n < fpga->dtps; n++)
		if (fpga->dtp[n].unit == u)
			fpga->dtp[n].taken = 0;
	__atomic_store_n(doorbell(fpga, u), RFPGA_GIVEN(0, 0, u->config.run), __ATOMIC_RELEASE);
	u->status = RFPGA_UNIT_RUNNING;
}

static void control(struct fpga *fpga, struct unit *u, uint32_t value)
{
	struct engine *e = &fpga->engine;

	pthread_mutex_lock(&e->lock);
	if (value & RFPGA_UNIT_STOP) {
		if (e->processing == u)
			u->stop = true;		/* the engine does it when it has time for it */
		else
			unit_stop(u);
	} else if ((value & RFPGA_UNIT_START) && !(u->status & RFPGA_UNIT_RUNNING)) {
		begin(fpga, u);
	}
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
}

static uint32_t status(struct fpga *fpga, const struct unit *u)
{
	uint32_t value;

	pthread_mutex_lock(&fpga->engine.lock);
	value = u->status;
	pthread_mutex_unlock(&fpga->engine.lock);
	return value;
}

static uint64_t fault(struct fpga *fpga, const struct unit *u, bool addr)
{
	uint64_t value;

	pthread_mutex_lock(&fpga->engine.lock);
	value = addr ? u->fault_addr : u->fault_cause;
	pthread_mutex_unlock(&fpga->engine.lock);
	return value;
}

void unit_write(struct fpga *fpga, unsigned int n, uint32_t offset, uint32_t value)
{
	if (offset == RFPGA_UNIT_CONTROL)
		control(fpga, &fpga->unit[n], value);
	else if (is_config(offset) && !(status(fpga, &fpga->unit[n]) & RFPGA_UNIT_RUNNING))
		fpga->unit_regs[n][offset / 4] = value;
}

uint64_t unit_read(struct fpga *fpga, unsigned int n, uint32_t offset)
{
	const struct unit *u = &fpga->unit[n];

	switch (offset) {
	case RFPGA_UNIT_STATUS:		return status(fpga, u);
	case RFPGA_UNIT_KIND:		return RFPGA_UNIT_PRETREAT;
	case RFPGA_UNIT_C_IN:		return u->in;
	case RFPGA_UNIT_C_OUT:		return u->out;
	case RFPGA_UNIT_C_INVALID:	return u->invalid;
	case RFPGA_UNIT_C_DARK:		return u->darks;
	case RFPGA_UNIT_FAULT_CAUSE:	return fault(fpga, u, false);
	case RFPGA_UNIT_FAULT_ADDR:	return fault(fpga, u, true);
	}
	return is_config(offset) ? fpga->unit_regs[n][offset / 4] : 0;
}

void unit_reset(struct fpga *fpga)
{
	unsigned int n;

	pthread_mutex_lock(&fpga->engine.lock);
	for (n = 0; n < FPGA_UNITS_MAX; n++)
		fpga->unit[n] = (struct unit){ 0 };
	pthread_mutex_unlock(&fpga->engine.lock);
	memset(fpga->unit_regs, 0, sizeof(fpga->unit_regs));
}
