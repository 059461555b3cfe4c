// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The registers of a DTP as a checked configuration. No products or sums are computed here:
 * dtp.c checks when it sends an image whether the image is in on-board memory, and finds its
 * destination in the address table.
 */
#include "fpga/fpga.h"

static uint64_t get64(const uint32_t *r, uint32_t offset)
{
	return r[offset / 4] | (uint64_t)r[offset / 4 + 1] << 32;
}

static void load(const uint32_t *r, struct dtp_config *c)
{
	c->mode = r[RFPGA_DTP_MODE / 4];
	c->vector = r[RFPGA_DTP_VECTOR / 4];
	c->pixel_bytes = r[RFPGA_DTP_PIXEL_BYTES / 4];
	c->bunch = r[RFPGA_DTP_BUNCH / 4];
	c->slots = r[RFPGA_DTP_SLOTS / 4];
	c->src_base = get64(r, RFPGA_DTP_SRC_BASE);
	c->src_images = r[RFPGA_DTP_SRC_IMAGES / 4];
	c->src_x = r[RFPGA_DTP_SRC_X / 4];
	c->src_y = r[RFPGA_DTP_SRC_Y / 4];
	c->width = r[RFPGA_DTP_WIDTH / 4];
	c->height = r[RFPGA_DTP_HEIGHT / 4];
	c->dst_x = r[RFPGA_DTP_DST_X / 4];
	c->dst_y = r[RFPGA_DTP_DST_Y / 4];
	c->src_line = get64(r, RFPGA_DTP_SRC_LINE);
	c->src_image = get64(r, RFPGA_DTP_SRC_IMAGE);
	c->dst_base = get64(r, RFPGA_DTP_DST_BASE);
	c->dst_line = get64(r, RFPGA_DTP_DST_LINE);
	c->dst_image = get64(r, RFPGA_DTP_DST_IMAGE);
	c->dst_slot = get64(r, RFPGA_DTP_DST_SLOT);
	c->dst_first = r[RFPGA_DTP_DST_FIRST / 4];
	c->dst_count = r[RFPGA_DTP_DST_COUNT / 4];
	c->lock_offset = get64(r, RFPGA_DTP_LOCK_OFFSET);
	c->lock_first = r[RFPGA_DTP_LOCK_FIRST / 4];
	c->lock_count = r[RFPGA_DTP_LOCK_COUNT / 4];
	c->images = get64(r, RFPGA_DTP_IMAGES);
	c->period = get64(r, RFPGA_DTP_PERIOD);
	c->source_kind = r[RFPGA_DTP_SOURCE / 4] & 0xffff;
	c->source = r[RFPGA_DTP_SOURCE / 4] >> 16;
	c->sampling = r[RFPGA_DTP_SAMPLING / 4] & 0xffff;
	c->phase = r[RFPGA_DTP_SAMPLING / 4] >> 16;
	c->first_stack = get64(r, RFPGA_DTP_FIRST_STACK);
	c->first_slot = r[RFPGA_DTP_FIRST_SLOT / 4];
	c->first_index = r[RFPGA_DTP_FIRST_INDEX / 4];
	c->index_step = r[RFPGA_DTP_INDEX_STEP / 4];
	c->run = r[RFPGA_DTP_RUN / 4];
	c->meta_offset = get64(r, RFPGA_DTP_META_OFFSET);
	c->meta_first = r[RFPGA_DTP_META_FIRST / 4];
	c->meta_count = r[RFPGA_DTP_META_COUNT / 4];
	c->first_frame = get64(r, RFPGA_DTP_FIRST_FRAME);
	c->row = (uint64_t)c->width * c->pixel_bytes;
}

/* Modes that the board supports; features may be missing. */
static uint32_t modes(const struct fpga *fpga)
{
	uint32_t f = fpga->features;

	return (f & RFPGA_FEATURE_FREERUN ? RFPGA_MODE_FREERUN : 0) |
	       (f & RFPGA_FEATURE_MSIX ? RFPGA_MODE_MSIX : 0) |
	       (f & RFPGA_FEATURE_LOCK ? RFPGA_MODE_LOCK : 0) |
	       (f & RFPGA_FEATURE_FLUSH ? RFPGA_MODE_FLUSH : 0) |
	       (f & RFPGA_FEATURE_DROP ? RFPGA_MODE_DROP : 0) |
	       (f & RFPGA_FEATURE_META ? RFPGA_MODE_META : 0) |
	       (f & RFPGA_FEATURE_VERDICT ? RFPGA_MODE_VERDICT : 0);
}

/* A DTP that drops needs a source that goes on, and decides when to drop. */
static bool drop_possible(const struct dtp_config *c, bool grouped)
{
	return !(c->mode & RFPGA_MODE_DROP) || ((c->mode & RFPGA_MODE_FREERUN) && !grouped);
}

static bool source_exists(const struct fpga *fpga, const struct dtp_config *c)
{
	if (c->source_kind == RFPGA_FROM_LIVE)
		return c->source < fpga->sources;
	if (c->source_kind == RFPGA_FROM_UNIT)
		return c->source < fpga->units;
	return c->source_kind == RFPGA_FROM_MEMORY && !c->source;
}

static bool sampling_possible(const struct dtp_config *c)
{
	if (c->source_kind == RFPGA_FROM_LIVE && c->sampling)
		return c->phase < c->sampling;
	return !c->sampling && !c->phase;
}

/* A live source and a unit set the pace; without one, a DTP that drops needs a period. */
static bool period_possible(const struct dtp_config *c)
{
	return c->source_kind != RFPGA_FROM_MEMORY ? !c->period :
	       c->period || !(c->mode & RFPGA_MODE_DROP);
}

static bool range_exists(uint32_t first, uint32_t count, uint32_t entries)
{
	return count && count <= entries && first <= entries - count;
}

static bool fits(uint64_t value, unsigned int bits)
{
	return !(value >> bits);
}

static bool counts(uint32_t value)
{
	return value && fits(value, FPGA_COUNT_BITS);
}

/* A linear space: consecutive entries, or one entry with a ring. */
static bool space_exists(const struct fpga *fpga, uint32_t first, uint32_t count)
{
	return range_exists(first, count, fpga->entries) && (!fpga->fetch || count == 1);
}

/* The first invalid register in order of offsets, or 0. */
static uint32_t find_nonsense(const struct fpga *fpga, const struct dtp_config *c, bool grouped)
{
	const uint32_t entries = fpga->entries;
	const bool lock = c->mode & RFPGA_MODE_LOCK, meta = c->mode & RFPGA_MODE_META;
	const bool live = c->source_kind != RFPGA_FROM_MEMORY;	/* it numbers its images */
	const uint64_t odd = ((uint64_t)1 << fpga->align) - 1;
	const struct { uint32_t reg; bool good; } checks[] = {
		{ RFPGA_DTP_MODE, !(c->mode & ~modes(fpga)) && drop_possible(c, grouped) },
		{ RFPGA_DTP_VECTOR, !(c->mode & RFPGA_MODE_MSIX) || c->vector < fpga->vectors },
		{ RFPGA_DTP_PIXEL_BYTES, c->pixel_bytes == 1 || c->pixel_bytes == 2 ||
					 c->pixel_bytes == 4 || c->pixel_bytes == 8 },
		{ RFPGA_DTP_BUNCH, counts(c->bunch) },
		{ RFPGA_DTP_SLOTS, counts(c->slots) },
		{ RFPGA_DTP_SRC_BASE, fits(c->src_base, FPGA_OFFSET_BITS) &&
				      !(c->src_base & odd) },
		{ RFPGA_DTP_SRC_IMAGES, counts(c->src_images) },
		{ RFPGA_DTP_SRC_X, fits(c->src_x, FPGA_COUNT_BITS) &&
				   !((uint64_t)c->src_x * c->pixel_bytes & odd) },
		{ RFPGA_DTP_SRC_Y, fits(c->src_y, FPGA_COUNT_BITS) },
		{ RFPGA_DTP_WIDTH, counts(c->width) },
		{ RFPGA_DTP_HEIGHT, counts(c->height) },
		{ RFPGA_DTP_DST_X, fits(c->dst_x, FPGA_COUNT_BITS) &&
				   !((uint64_t)c->dst_x * c->pixel_bytes & odd) },
		{ RFPGA_DTP_DST_Y, fits(c->dst_y, FPGA_COUNT_BITS) },
		{ RFPGA_DTP_SRC_LINE, fits(c->src_line, FPGA_STRIDE_BITS) &&
				      !(c->src_line & odd) },
		{ RFPGA_DTP_SRC_IMAGE, fits(c->src_image, FPGA_STRIDE_BITS) &&
				       !(c->src_image & odd) },
		{ RFPGA_DTP_DST_BASE, fits(c->dst_base, FPGA_OFFSET_BITS) &&
				      !(c->dst_base & odd) },
		{ RFPGA_DTP_DST_LINE, fits(c->dst_line, FPGA_STRIDE_BITS) &&
				      !(c->dst_line & odd) },
		{ RFPGA_DTP_DST_IMAGE, fits(c->dst_image, FPGA_STRIDE_BITS) &&
				       !(c->dst_image & odd) },
		{ RFPGA_DTP_DST_SLOT, fits(c->dst_slot, FPGA_OFFSET_BITS) &&
				      !(c->dst_slot & odd) },
		{ RFPGA_DTP_DST_FIRST, c->dst_first < entries },
		{ RFPGA_DTP_DST_COUNT, space_exists(fpga, c->dst_first, c->dst_count) },
		{ RFPGA_DTP_LOCK_OFFSET, !lock || (c->lock_offset % RFPGA_LOCK_SIZE == 0 &&
						   fits(c->lock_offset, FPGA_OFFSET_BITS)) },
		{ RFPGA_DTP_LOCK_FIRST, !lock || c->lock_first < entries },
		{ RFPGA_DTP_LOCK_COUNT,
		  !lock || space_exists(fpga, c->lock_first, c->lock_count) },
		{ RFPGA_DTP_IMAGES, fits(c->images, FPGA_OFFSET_BITS) },
		{ RFPGA_DTP_PERIOD, fits(c->period, FPGA_OFFSET_BITS) && period_possible(c) },
		{ RFPGA_DTP_FIRST_STACK, fits(c->first_stack, FPGA_OFFSET_BITS) },
		{ RFPGA_DTP_FIRST_SLOT, c->first_slot < c->slots },
		{ RFPGA_DTP_FIRST_INDEX, live || c->first_index < c->src_images },
		{ RFPGA_DTP_INDEX_STEP, live || c->index_step < c->src_images },
		{ RFPGA_DTP_SOURCE, source_exists(fpga, c) },
		{ RFPGA_DTP_SAMPLING, sampling_possible(c) },
		{ RFPGA_DTP_META_OFFSET, !meta || (c->meta_offset % RFPGA_META_SIZE == 0 &&
						   fits(c->meta_offset, FPGA_OFFSET_BITS)) },
		{ RFPGA_DTP_META_FIRST, !meta || c->meta_first < entries },
		{ RFPGA_DTP_META_COUNT,
		  !meta || space_exists(fpga, c->meta_first, c->meta_count) },
		{ RFPGA_DTP_FIRST_FRAME, live || fits(c->first_frame, FPGA_OFFSET_BITS) },
	};
	unsigned int i;

	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!checks[i].good)
			return checks[i].reg;
	return 0;
}

bool dtp_load(const struct fpga *fpga, unsigned int n, bool grouped, struct dtp_config *c,
	      struct bus_fault *fault)
{
	uint32_t nonsense;

	load(fpga->regs[n], c);
	nonsense = find_nonsense(fpga, c, grouped);
	if (!nonsense)
		return true;
	fault->cause = RFPGA_FAULT_CONFIG;
	fault->addr = RFPGA_DTP(n) + nonsense;
	return false;
}
