// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The registers in BAR 0, for the protocol thread only. Values that the engine changes are read
 * under its lock, or are atomic.
 */
#include "fpga/fpga.h"

#include <string.h>

#define DTP_STRIDE	(RFPGA_DTP(1) - RFPGA_DTP(0))

/* offsets of blocks that a board may place freely */
#define MAILBOX		0x0090u
#define BLOCKS		0x0100u		/* the list of blocks */
#define SENSORS		0x0800u
#define SOURCES		0x4000u
#define RING_BOUNDS	(RFPGA_BOUNDS + RFPGA_DTPS_MAX * RFPGA_BOUNDS_STRIDE)

void regs_reset(struct fpga *fpga)
{
	memset(fpga->regs, 0, sizeof(fpga->regs));
	fpga->scratch = 0;
	memset(fpga->latch, 0, sizeof(fpga->latch));
	fpga->resetting = 0;
	slow_reset(fpga);
	host_intx_clear(fpga->host);
	bus_reset(&fpga->bus);
}

/*
 * Read one half of a 64-bit value. Each pair has its own latch for the high word, which a read of
 * the low word fills: readers of different pairs do not disturb each other.
 */
static uint32_t half(struct fpga *fpga, uint32_t offset, uint64_t value)
{
	if (offset & 4)
		return fpga->latch[offset / 4];
	fpga->latch[offset / 4 + 1] = (uint32_t)(value >> 32);
	return (uint32_t)value;
}

static uint32_t read_status(struct fpga *fpga)
{
	uint32_t status = engine_busy(fpga) ? RFPGA_STATUS_BUSY : 0;

	pthread_mutex_lock(&fpga->engine.lock);
	if (fpga->engine.faults)
		status |= RFPGA_STATUS_FAULT;
	pthread_mutex_unlock(&fpga->engine.lock);
	return status;
}

/* Read a value that the engine keeps under its lock. Only pairs use the latch. */
static uint32_t read_engine(struct fpga *fpga, uint32_t offset)
{
	struct engine *e = &fpga->engine;
	bool pair = false;
	uint64_t value = 0;

	pthread_mutex_lock(&e->lock);
	switch (offset) {
	case RFPGA_FAULTS:
	case RFPGA_FAULTS + 4:
		value = e->faults;
		pair = true;
		break;
	case RFPGA_FAULT_ADDR:
	case RFPGA_FAULT_ADDR + 4:
		value = e->fault_addr;
		pair = true;
		break;
	case RFPGA_FAULT_CAUSE:
		value = e->fault_cause;
		break;
	case RFPGA_FAULT_DTP:
		value = e->fault_dtp;
		break;
	case RFPGA_STOPS:
		value = e->stops;
		break;
	}
	pthread_mutex_unlock(&e->lock);
	return pair ? half(fpga, offset, value) : (uint32_t)value;
}

static uint32_t read_block(const struct fpga *fpga, uint32_t offset)
{
	const struct { uint32_t type, count, base, step, doorbell; } blocks[] = {
		{ RFPGA_BLOCK_DTP, fpga->dtps, RFPGA_DTP(0), DTP_STRIDE, 0 },
		{ RFPGA_BLOCK_TABLE, fpga->entries, RFPGA_TABLE, RFPGA_ENTRY_STRIDE, UINT32_MAX },
		{ RFPGA_BLOCK_BOUNDS, fpga->dtps, RFPGA_BOUNDS, RFPGA_BOUNDS_STRIDE, UINT32_MAX },
		{ RFPGA_BLOCK_SENSOR, SLOW_SENSORS, SENSORS, RFPGA_SENSOR_SIZE, UINT32_MAX },
		{ RFPGA_BLOCK_MAILBOX, 1, MAILBOX, RFPGA_MAILBOX_SIZE, UINT32_MAX },
		{ RFPGA_BLOCK_SOURCE, fpga->sources, SOURCES, RFPGA_SOURCE_SIZE, UINT32_MAX },
		{ RFPGA_BLOCK_UNIT, fpga->units, FPGA_UNITS, RFPGA_UNIT_SIZE,
		  fpga->dtps * RFPGA_DOORBELL_PAGE },
		{ RFPGA_BLOCK_RING, fpga->rings, FPGA_RINGS, RFPGA_RING_SIZE,
		  (fpga->dtps + fpga->units) * RFPGA_DOORBELL_PAGE },
		{ RFPGA_BLOCK_RING_BOUNDS, fpga->rings, RING_BOUNDS, RFPGA_BOUNDS_STRIDE,
		  UINT32_MAX },
	};
	uint32_t n = offset / RFPGA_BLOCK_STRIDE, i;

	for (i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		if (!blocks[i].count || n--)
			continue;
		switch (offset % RFPGA_BLOCK_STRIDE) {
		case RFPGA_BLOCK_TYPE:	return blocks[i].type | blocks[i].count << 16;
		case RFPGA_BLOCK_BASE:	return blocks[i].base;
		case RFPGA_BLOCK_STEP:	return blocks[i].step;
		default:		return blocks[i].doorbell;
		}
	}
	return 0;
}

static uint32_t read_global(struct fpga *fpga, uint32_t offset)
{
	switch (offset) {
	case RFPGA_ID:
		return RFPGA_ID_VALUE;
	case RFPGA_VERSION:
		return RFPGA_VERSION_VALUE;
	case RFPGA_CAPS:
		return fpga->dtps | fpga->vectors << 8 | fpga->entries << 16;
	case RFPGA_FEATURES:
		return fpga->features;
	case RFPGA_LIMITS:
		return FPGA_OFFSET_BITS | FPGA_STRIDE_BITS << 8 | FPGA_COUNT_BITS << 16 |
		       fpga->align << 24;
	case RFPGA_TICK_RATE:
		return 1000000000 / RFPGA_TICK_NS;
	case RFPGA_BLOCKS:
		return BLOCKS;
	case RFPGA_STOP_TIME:
		return HOST_PATIENCE * 1000000 + 1000;
	case RFPGA_STATUS:
		return read_status(fpga);
	case RFPGA_MEMORY_SIZE:
	case RFPGA_MEMORY_SIZE + 4:
		return half(fpga, offset, fpga->memory_size);
	case RFPGA_TICKS:
	case RFPGA_TICKS + 4:
		return half(fpga, offset, fpga_ticks());
	case RFPGA_SCRATCH:
		return fpga->scratch;
	case RFPGA_BYTES:
	case RFPGA_BYTES + 4:
		return half(fpga, offset, fpga->engine.bytes);
	case RFPGA_INTX:
		return host_intx_pending(fpga->host) ? RFPGA_INTX_PENDING : 0;
	default:
		if (offset >= SENSORS && offset < SENSORS + SLOW_SENSORS * RFPGA_SENSOR_SIZE)
			return sensor_read(fpga, (offset - SENSORS) / RFPGA_SENSOR_SIZE,
					   offset % RFPGA_SENSOR_SIZE);
		if (offset >= RFPGA_BUILD_ID && offset < RFPGA_BUILD_ID + sizeof(fpga->build_id))
			return fpga->build_id[(offset - RFPGA_BUILD_ID) / 4];
		if (offset >= MAILBOX && offset < MAILBOX + RFPGA_MAILBOX_SIZE)
			return mailbox_read(fpga, offset - MAILBOX);
		if (offset >= BLOCKS)
			return read_block(fpga, offset - BLOCKS);
		return read_engine(fpga, offset);
	}
}

/* Does this word of a DTP belong to a writable register? */
static bool is_config(uint32_t offset)
{
	/* between them are two registers of version 1.0 */
	return (offset >= RFPGA_DTP_MODE && offset <= RFPGA_DTP_PIXEL_BYTES) ||
	       (offset >= RFPGA_DTP_BUNCH && offset <= RFPGA_DTP_DST_Y) ||
	       (offset >= RFPGA_DTP_SRC_LINE && offset < RFPGA_DTP_FIRST_FRAME + 8);
}

static uint32_t read_dtp(struct fpga *fpga, unsigned int n, uint32_t offset)
{
	struct dtp_counters *c = &fpga->dtp[n].count;

	switch (offset & ~4u) {
	case RFPGA_DTP_C_IMAGES:	return half(fpga, RFPGA_DTP(n) + offset, c->images);
	case RFPGA_DTP_C_STACKS:	return half(fpga, RFPGA_DTP(n) + offset, c->stacks);
	case RFPGA_DTP_C_BYTES:		return half(fpga, RFPGA_DTP(n) + offset, c->bytes);
	case RFPGA_DTP_C_DESCRIPTORS:	return half(fpga, RFPGA_DTP(n) + offset, c->descriptors);
	case RFPGA_DTP_C_EVENTS:	return half(fpga, RFPGA_DTP(n) + offset, c->events);
	case RFPGA_DTP_C_OVERRUNS:	return half(fpga, RFPGA_DTP(n) + offset, c->overruns);
	case RFPGA_DTP_C_FAULTS:	return half(fpga, RFPGA_DTP(n) + offset, c->faults);
	case RFPGA_DTP_C_START:		return half(fpga, RFPGA_DTP(n) + offset, c->start);
	case RFPGA_DTP_C_STOP:		return half(fpga, RFPGA_DTP(n) + offset, c->stop);
	case RFPGA_DTP_C_STALL:		return half(fpga, RFPGA_DTP(n) + offset,
						    engine_stall(fpga, n, STALL_CREDIT));
	case RFPGA_DTP_C_STALL_BUS:	return half(fpga, RFPGA_DTP(n) + offset,
						    engine_stall(fpga, n, STALL_BUS));
	case RFPGA_DTP_C_STALL_SOURCE:	return half(fpga, RFPGA_DTP(n) + offset,
						    engine_stall(fpga, n, STALL_SOURCE));
	case RFPGA_DTP_FIFO_PEAK:	return half(fpga, RFPGA_DTP(n) + offset, c->fifo_peak);
	case RFPGA_DTP_C_LOST:		return half(fpga, RFPGA_DTP(n) + offset, c->lost);
	case RFPGA_DTP_C_SUCCESSES:	return half(fpga, RFPGA_DTP(n) + offset, c->successes);
	case RFPGA_DTP_C_FAILURES:	return half(fpga, RFPGA_DTP(n) + offset, c->failures);
	case RFPGA_DTP_C_UNJUDGED:	return half(fpga, RFPGA_DTP(n) + offset, c->unjudged);
	case RFPGA_DTP_SUCCESS_TICKS:	return half(fpga, RFPGA_DTP(n) + offset, c->success_ticks);
	case RFPGA_DTP_FAILURE_TICKS:	return half(fpga, RFPGA_DTP(n) + offset, c->failure_ticks);
	case RFPGA_DTP_JUDGED:		return half(fpga, RFPGA_DTP(n) + offset, c->judged);
	case RFPGA_DTP_C_DROPPED:	return half(fpga, RFPGA_DTP(n) + offset, c->dropped);
	case RFPGA_DTP_FAULT_ADDR:	return half(fpga, RFPGA_DTP(n) + offset, c->fault_addr);
	case RFPGA_DTP_FAULT_CAUSE:	return offset & 4 ? 0 : c->fault_cause;
	case RFPGA_DTP_C_CREDIT:	return offset & 4 ? 0 : c->credit;
	}
	if (offset == RFPGA_DTP_STATUS)
		return engine_status(fpga, n);
	if (is_config(offset))
		return fpga->regs[n][offset / 4];
	return 0;
}

static uint32_t read_source(struct fpga *fpga, unsigned int n, uint32_t offset)
{
	uint32_t pair = offset & ~4u;

	if (pair == RFPGA_SOURCE_PERIOD)	/* rw, so without a latch */
		return (uint32_t)(source_read(fpga, n, pair) >> (offset & 4 ? 32 : 0));
	if (pair > RFPGA_SOURCE_PERIOD)
		return half(fpga, SOURCES + n * RFPGA_SOURCE_SIZE + offset,
			    source_read(fpga, n, pair));
	return (uint32_t)source_read(fpga, n, offset);
}

static uint32_t read_unit(struct fpga *fpga, unsigned int n, uint32_t offset)
{
	if (offset < RFPGA_UNIT_C_IN)		/* pairs are rw, so without a latch */
		return (uint32_t)unit_read(fpga, n, offset);
	return half(fpga, FPGA_UNITS + n * RFPGA_UNIT_SIZE + offset,
		    unit_read(fpga, n, offset & ~4u));
}

static bool is_unit(const struct fpga *fpga, uint32_t offset)
{
	return offset >= FPGA_UNITS && offset < FPGA_UNITS + fpga->units * RFPGA_UNIT_SIZE;
}

static uint32_t read_ring(struct fpga *fpga, unsigned int n, uint32_t offset)
{
	if (offset < RFPGA_RING_C_EVENTS)	/* pairs are rw, so without a latch */
		return (uint32_t)ring_read(fpga, n, offset);
	return half(fpga, FPGA_RINGS + n * RFPGA_RING_SIZE + offset,
		    ring_read(fpga, n, offset & ~4u));
}

static bool is_ring(const struct fpga *fpga, uint32_t offset)
{
	return offset >= FPGA_RINGS && offset < FPGA_RINGS + fpga->rings * RFPGA_RING_SIZE;
}

static bool is_bounds(const struct fpga *fpga, uint32_t offset)
{
	return (offset >= RFPGA_BOUNDS &&
		offset < RFPGA_BOUNDS + fpga->dtps * RFPGA_BOUNDS_STRIDE) ||
	       (offset >= RING_BOUNDS &&
		offset < RING_BOUNDS + fpga->rings * RFPGA_BOUNDS_STRIDE);
}

static bool resetting(const struct fpga *fpga)
{
	return fpga->resetting && fpga_ticks() < fpga->resetting;
}

static uint32_t read_word(struct fpga *fpga, uint32_t offset)
{
	if (resetting(fpga))
		return offset == RFPGA_STATUS ? RFPGA_STATUS_RESETTING : 0;
	if (offset >= RFPGA_TABLE)
		return bus_table_read(&fpga->bus, offset - RFPGA_TABLE);
	if (is_bounds(fpga, offset))
		return bus_bounds_read(&fpga->bus, offset - RFPGA_BOUNDS);
	if (offset < RFPGA_DTP(0))
		return read_global(fpga, offset);
	if (offset >= SOURCES && offset < SOURCES + fpga->sources * RFPGA_SOURCE_SIZE)
		return read_source(fpga, (offset - SOURCES) / RFPGA_SOURCE_SIZE,
				   offset % RFPGA_SOURCE_SIZE);
	if (is_unit(fpga, offset))
		return read_unit(fpga, (offset - FPGA_UNITS) / RFPGA_UNIT_SIZE,
				 offset % RFPGA_UNIT_SIZE);
	if (is_ring(fpga, offset))
		return read_ring(fpga, (offset - FPGA_RINGS) / RFPGA_RING_SIZE,
				 offset % RFPGA_RING_SIZE);
	if (offset < RFPGA_DTP(fpga->dtps))
		return read_dtp(fpga, (offset - RFPGA_DTP(0)) / DTP_STRIDE,
				(offset - RFPGA_DTP(0)) % DTP_STRIDE);
	return 0;
}

static void control(struct fpga *fpga, uint32_t value)
{
	if (value & RFPGA_CONTROL_STOP)
		engine_stop(fpga, UINT32_MAX);
	if (value & RFPGA_CONTROL_RESET) {
		fpga->device.ops->reset(fpga, DEVICE_RESET_HOST);
		if (fpga->faults.reset_delay &&
		    __builtin_add_overflow(fpga_ticks(), fpga->faults.reset_delay,
					   &fpga->resetting))
			fpga->resetting = UINT64_MAX;
	}
	if (value & RFPGA_CONTROL_CLEAR)
		engine_clear(fpga);
}

static void write_dtp(struct fpga *fpga, unsigned int n, uint32_t offset, uint32_t value)
{
	if (offset == RFPGA_DTP_CONTROL && (value & RFPGA_DTP_STOP))
		engine_stop(fpga, 1u << n);
	else if (offset == RFPGA_DTP_CONTROL && (value & RFPGA_DTP_START))
		engine_start(fpga, n);
	else if (is_config(offset) && !engine_runs(fpga, n))
		fpga->regs[n][offset / 4] = value;
}

static void write_word(struct fpga *fpga, uint32_t offset, uint32_t value)
{
	if (resetting(fpga))
		return;
	if (offset >= RFPGA_TABLE)
		bus_table_write(&fpga->bus, offset - RFPGA_TABLE, value);
	else if (is_bounds(fpga, offset))
		bus_bounds_write(&fpga->bus, offset - RFPGA_BOUNDS, value);
	else if (offset >= RFPGA_DTP(0) && offset < RFPGA_DTP(fpga->dtps))
		write_dtp(fpga, (offset - RFPGA_DTP(0)) / DTP_STRIDE,
			  (offset - RFPGA_DTP(0)) % DTP_STRIDE, value);
	else if (offset >= SOURCES && offset < SOURCES + fpga->sources * RFPGA_SOURCE_SIZE)
		source_write(fpga, (offset - SOURCES) / RFPGA_SOURCE_SIZE,
			     offset % RFPGA_SOURCE_SIZE, value);
	else if (is_unit(fpga, offset))
		unit_write(fpga, (offset - FPGA_UNITS) / RFPGA_UNIT_SIZE,
			   offset % RFPGA_UNIT_SIZE, value);
	else if (is_ring(fpga, offset))
		ring_write(fpga, (offset - FPGA_RINGS) / RFPGA_RING_SIZE,
			   offset % RFPGA_RING_SIZE, value);
	else if (offset >= MAILBOX && offset < MAILBOX + RFPGA_MAILBOX_SIZE)
		mailbox_write(fpga, offset - MAILBOX, value);
	else if (offset == RFPGA_CONTROL)
		control(fpga, value);
	else if (offset == RFPGA_GROUP_START)
		engine_start_group(fpga, value);
	else if (offset == RFPGA_SCRATCH)
		fpga->scratch = value;
	else if (offset == RFPGA_INTX && (value & RFPGA_INTX_PENDING))
		host_intx_clear(fpga->host);
}

/* Access any part of the BAR; the caller checked the range. */
void regs_read(void *self, unsigned int bar, uint64_t at, uint8_t *data, uint32_t count)
{
	uint32_t offset = (uint32_t)at, skip = offset % 4, word, n;

	(void)bar;			/* always BAR 0 */
	for (offset -= skip; count; offset += 4, data += n, count -= n, skip = 0) {
		n = count < 4 - skip ? count : 4 - skip;
		word = read_word(self, offset);
		memcpy(data, (uint8_t *)&word + skip, n);
	}
}

/* Partial writes of a word are ignored, even next to whole words of the same write. */
void regs_write(void *self, unsigned int bar, uint64_t at, const uint8_t *data, uint32_t count)
{
	const uint32_t skip = -(uint32_t)at % 4;
	uint32_t offset = (uint32_t)at + skip, word;

	(void)bar;
	for (data += skip; count >= skip + 4; offset += 4, data += 4, count -= 4) {
		memcpy(&word, data, sizeof(word));
		write_word(self, offset, word);
	}
}
