// SPDX-License-Identifier: GPL-2.0-only
/* The registers of a DTP as a checked configuration: nothing in it can overflow later. */
#include "fpga.h"

#define MODES	(RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX | RFPGA_MODE_LOCK | RFPGA_MODE_FLUSH)

static uint64_t get64(const uint32_t *r, uint32_t offset)
{
	return r[offset / 4] | (uint64_t)r[offset / 4 + 1] << 32;
}

static void load(const uint32_t *r, struct dtp_config *c)
{
	c->mode = r[RFPGA_DTP_MODE / 4];
	c->vector = r[RFPGA_DTP_VECTOR / 4];
	c->pixel_bytes = r[RFPGA_DTP_PIXEL_BYTES / 4];
	c->sampling = r[RFPGA_DTP_SAMPLING / 4];
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
	c->group = r[RFPGA_DTP_GROUP / 4];
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
	c->first_stack = get64(r, RFPGA_DTP_FIRST_STACK);
	c->row = (uint64_t)c->width * c->pixel_bytes;
}

/* sum += a * b; false on overflow */
static bool add(uint64_t *sum, uint64_t a, uint64_t b)
{
	uint64_t product;

	return !__builtin_mul_overflow(a, b, &product) &&
	       !__builtin_add_overflow(*sum, product, sum);
}

/* End of the last byte that the dataset's region of interest touches. */
static bool source_end(const struct dtp_config *c, uint64_t *end)
{
	*end = c->src_base;
	return add(end, c->src_images - 1, c->src_image) &&
	       add(end, (uint64_t)c->src_y + c->height - 1, c->src_line) &&
	       add(end, (uint64_t)c->src_x + c->width, c->pixel_bytes);
}

static bool destination_end(const struct dtp_config *c, uint64_t *end)
{
	*end = c->dst_base;
	return add(end, c->slots - 1, c->dst_slot) &&
	       add(end, c->bunch - 1, c->dst_image) &&
	       add(end, (uint64_t)c->dst_y + c->height - 1, c->dst_line) &&
	       add(end, (uint64_t)c->dst_x + c->width, c->pixel_bytes);
}

static bool entries_exist(uint32_t first, uint32_t count)
{
	return count >= 1 && count <= BUS_ENTRIES && first <= BUS_ENTRIES - count;
}

/* The first register that makes no sense, or 0. */
static uint32_t find_nonsense(const struct fpga *fpga, unsigned int n,
			      const struct dtp_config *c)
{
	uint64_t end, frames = 0;

	if (c->mode & ~MODES)
		return RFPGA_DTP_MODE;
	if ((c->mode & RFPGA_MODE_MSIX) && c->vector >= fpga->vectors)
		return RFPGA_DTP_VECTOR;
	if (c->pixel_bytes != 1 && c->pixel_bytes != 2 && c->pixel_bytes != 4 &&
	    c->pixel_bytes != 8)
		return RFPGA_DTP_PIXEL_BYTES;
	if (!c->sampling)
		return RFPGA_DTP_SAMPLING;
	if (!c->bunch)
		return RFPGA_DTP_BUNCH;
	if (!c->slots)
		return RFPGA_DTP_SLOTS;
	if (!c->src_images)
		return RFPGA_DTP_SRC_IMAGES;
	if (!c->width)
		return RFPGA_DTP_WIDTH;
	if (!c->height)
		return RFPGA_DTP_HEIGHT;
	if (c->group && (c->group >> fpga->dtps || !(c->group & 1u << n)))
		return RFPGA_DTP_GROUP;
	if (!source_end(c, &end))
		return RFPGA_DTP_SRC_BASE;
	if (!destination_end(c, &end))
		return RFPGA_DTP_DST_BASE;
	if (!entries_exist(c->dst_first, c->dst_count))
		return RFPGA_DTP_DST_FIRST;
	if (c->mode & RFPGA_MODE_LOCK) {
		if (c->lock_offset % RFPGA_LOCK_SIZE)
			return RFPGA_DTP_LOCK_OFFSET;
		if (!entries_exist(c->lock_first, c->lock_count))
			return RFPGA_DTP_LOCK_FIRST;
	}
	/* frame numbers must fit, those of the images to come included */
	if (!add(&frames, c->first_stack, c->bunch) || !add(&frames, c->images, 1))
		return RFPGA_DTP_FIRST_STACK;
	return 0;
}

bool dtp_load(const struct fpga *fpga, unsigned int n, struct dtp_config *c,
	      struct bus_fault *fault)
{
	uint32_t nonsense;
	uint64_t end;

	load(fpga->regs[n], c);
	nonsense = find_nonsense(fpga, n, c);
	if (nonsense) {
		fault->cause = RFPGA_FAULT_CONFIG;
		fault->addr = RFPGA_DTP(n) + nonsense;
		return false;
	}
	if (!source_end(c, &end) || end > fpga->memory_size) {
		fault->cause = RFPGA_FAULT_SOURCE;
		fault->addr = end;
		return false;
	}
	return true;
}
