// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dtp.h"

#include <string.h>
#include <unistd.h>

static void write_entry(unsigned int n, uint64_t addr, uint64_t length, uint64_t sum,
			uint32_t control)
{
	uint32_t e = ENTRY(n);

	wr(e + RFPGA_ENTRY_CONTROL, 0);
	wr64(e + RFPGA_ENTRY_ADDR, addr);
	wr64(e + RFPGA_ENTRY_LEN, length);
	wr64(e + RFPGA_ENTRY_SUM, sum);
	wr(e + RFPGA_ENTRY_CONTROL, control);
}

void set_entry(unsigned int n, uint64_t addr, uint64_t length, uint32_t control)
{
	write_entry(n, addr, length, 0, control);
}

void set_segment(unsigned int n, uint64_t addr, uint64_t length, uint64_t sum)
{
	write_entry(n, addr, length, sum, RFPGA_ENTRY_VALID);
}

void fresh(void)
{
	unsigned int i;
	uint64_t events;

	function_reset();
	dma_unmap(0, UINT64_MAX);
	bus_master(true);
	msix_enable(true);
	memset(host, CANARY, HOST_SIZE);
	CHECK_EQ(dma_map(HOST_ADDR, HOST_SIZE, 0, 3), 0);
	set_entry(0, HOST_ADDR + DST, 32 << 20, RFPGA_ENTRY_VALID);
	set_entry(1, HOST_ADDR + LOCKS, 4096, RFPGA_ENTRY_VALID);
	for (i = 0; i < board.vectors; i++)
		while (read(vector_event(i), &events, sizeof(events)) > 0)
			;
}

uint32_t block(uint32_t type, uint32_t *count)
{
	uint32_t b = rd(RFPGA_BLOCKS), word;

	for (; (word = rd(b + RFPGA_BLOCK_TYPE)); b += RFPGA_BLOCK_STRIDE) {
		if ((word & 0xffff) != type)
			continue;
		*count = word >> 16;
		return rd(b + RFPGA_BLOCK_BASE);
	}
	*count = 0;
	return 0;
}

const volatile uint32_t *meta_record(const struct dtp *d, uint32_t slot, uint32_t image)
{
	return (const volatile uint32_t *)(host + LOCKS + d->meta +
					   (slot * d->bunch + image) * RFPGA_META_SIZE);
}

uint64_t meta64(const volatile uint32_t *meta, uint32_t word)
{
	return meta[word / 4] | (uint64_t)meta[word / 4 + 1] << 32;
}

struct dtp plain(uint32_t n)
{
	return (struct dtp){
		.n = n, .pixel = 2, .sampling = 1,
		.bunch = 4, .slots = 2, .images_in_set = 16, .width = 64, .height = 32,
		.src_line = 128, .src_image = 4096, .dst_line = 128, .dst_image = 4096,
		.dst_slot = 4 * 4096, .count = 1, .lock = n * 64, .images = 16,
		.mode = (board.features & RFPGA_FEATURE_MSIX ? RFPGA_MODE_MSIX : 0) |
			(board.features & RFPGA_FEATURE_LOCK ? RFPGA_MODE_LOCK : 0),
	};
}

void program_dtp(const struct dtp *d)
{
	uint32_t b = DTP(d->n);

	wr(b + RFPGA_DTP_MODE, d->mode);
	wr(b + RFPGA_DTP_VECTOR, d->vector);
	wr(b + RFPGA_DTP_PIXEL_BYTES, d->pixel);
	wr(b + RFPGA_DTP_BUNCH, d->bunch);
	wr(b + RFPGA_DTP_SLOTS, d->slots);
	wr(b + RFPGA_DTP_SRC_IMAGES, d->images_in_set);
	wr(b + RFPGA_DTP_SRC_X, d->src_x);
	wr(b + RFPGA_DTP_SRC_Y, d->src_y);
	wr(b + RFPGA_DTP_WIDTH, d->width);
	wr(b + RFPGA_DTP_HEIGHT, d->height);
	wr(b + RFPGA_DTP_DST_X, d->dst_x);
	wr(b + RFPGA_DTP_DST_Y, d->dst_y);
	wr64(b + RFPGA_DTP_SRC_BASE, d->src_base);
	wr64(b + RFPGA_DTP_SRC_LINE, d->src_line);
	wr64(b + RFPGA_DTP_SRC_IMAGE, d->src_image);
	wr64(b + RFPGA_DTP_DST_BASE, d->dst_base);
	wr64(b + RFPGA_DTP_DST_LINE, d->dst_line);
	wr64(b + RFPGA_DTP_DST_IMAGE, d->dst_image);
	wr64(b + RFPGA_DTP_DST_SLOT, d->dst_slot);
	wr(b + RFPGA_DTP_DST_FIRST, d->first);
	wr(b + RFPGA_DTP_DST_COUNT, d->count);
	wr64(b + RFPGA_DTP_LOCK_OFFSET, d->lock);
	wr(b + RFPGA_DTP_LOCK_FIRST, 1);
	wr(b + RFPGA_DTP_LOCK_COUNT, 1);
	wr64(b + RFPGA_DTP_IMAGES, d->images);
	wr64(b + RFPGA_DTP_PERIOD, d->period);
	wr64(b + RFPGA_DTP_FIRST_STACK, d->first_stack);
	wr(b + RFPGA_DTP_FIRST_SLOT, d->slots ? d->first_stack % d->slots : 0);
	wr(b + RFPGA_DTP_FIRST_INDEX, (uint32_t)(d->first_stack * d->bunch % d->images_in_set *
						    d->sampling % d->images_in_set));
	wr(b + RFPGA_DTP_INDEX_STEP, d->sampling % d->images_in_set);
	wr(b + RFPGA_DTP_RUN, d->run);
	wr64(b + RFPGA_DTP_META_OFFSET, d->meta);
	wr(b + RFPGA_DTP_META_FIRST, 1);
	wr(b + RFPGA_DTP_META_COUNT, 1);
	wr64(b + RFPGA_DTP_FIRST_FRAME, d->first_frame);
	wr(b + RFPGA_DTP_SOURCE, d->source);
	wr(b + RFPGA_DTP_SAMPLING, d->live_sampling);
}

void start(const struct dtp *d)
{
	program_dtp(d);
	wr(DTP(d->n) + RFPGA_DTP_CONTROL, RFPGA_DTP_START);
}

uint32_t status(uint32_t n)
{
	return rd(DTP(n) + RFPGA_DTP_STATUS);
}

uint64_t counter(uint32_t n, uint32_t which)
{
	return rd64(DTP(n) + which);
}

void give_credit(uint32_t n, uint32_t credit)
{
	doorbell_write(DOORBELL(n) + RFPGA_DB_CREDIT, credit);
}

bool wait_event(uint32_t vector, uint64_t *total)
{
	uint64_t n = 0;

	EVENTUALLY((n = events_so_far(vector)));
	*total += n;
	return n;
}

bool told(uint32_t vector, uint64_t n)
{
	uint64_t sum = 0;

	EVENTUALLY((sum += events_so_far(vector)) >= (target->merges ? 1 : n));
	if (target->merges && sum < n) {
		pass_us(1000);
		sum += events_so_far(vector);
	}
	return sum && sum <= n && (sum == n || target->merges);
}

bool silent(uint32_t vector)
{
	pass_us(1000);
	return !events_so_far(vector);
}

uint64_t events_so_far(uint32_t vector)
{
	uint64_t n = 0;

	return read(vector_event(vector), &n, sizeof(n)) == sizeof(n) ? n : 0;
}

const volatile uint64_t *lock_record(uint32_t n)
{
	return (const volatile uint64_t *)(host + LOCKS + n * RFPGA_LOCK_SIZE);
}

bool untouched(size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++)
		if (host[i] != CANARY)
			return false;
	return true;
}

/* What is in on-board memory; true if that cannot be known, for BAR 4 does not show it. */
static bool same_bytes(const uint8_t *here, uint64_t source, size_t size)
{
	uint8_t chunk[4096];
	size_t n;

	if (source + size <= board.dataset)
		return !memcmp(here, dataset + source, size);
	for (; size && source + size <= board.shown; here += n, source += n, size -= n) {
		n = size < sizeof(chunk) ? size : sizeof(chunk);
		memory_read(source, chunk, n);
		if (memcmp(here, chunk, n))
			return false;
	}
	return true;
}

static bool same_line(const struct dtp *d, uint64_t stack, uint32_t image, uint32_t line)
{
	uint64_t frame = stack * d->bunch + image;
	uint64_t index = frame * d->sampling % d->images_in_set;
	uint64_t src = d->src_base + index * d->src_image + (d->src_y + line) * d->src_line +
		       d->src_x * d->pixel;
	uint64_t dst = d->dst_base + stack % d->slots * d->dst_slot + image * d->dst_image +
		       (d->dst_y + line) * d->dst_line + d->dst_x * d->pixel;

	return same_bytes(host + DST + dst, src, (size_t)d->width * d->pixel);
}

bool same_image(const struct dtp *d, uint64_t stack, uint32_t image)
{
	uint32_t line;

	for (line = 0; line < d->height; line++)
		if (!same_line(d, stack, image, line))
			return false;
	return true;
}

bool same_stack(const struct dtp *d, uint64_t stack)
{
	uint32_t image;

	for (image = 0; image < d->bunch; image++)
		if (!same_image(d, stack, image))
			return false;
	return true;
}

bool idle(void)
{
	return !(rd(RFPGA_STATUS) & RFPGA_STATUS_BUSY);
}

bool faulted(uint32_t n, uint32_t cause)
{
	return EVENTUALLY(status(n) & RFPGA_DTP_FAULTED) && idle() &&
	       rd(RFPGA_FAULT_CAUSE) == cause && rd(RFPGA_FAULT_DTP) == n &&
	       (rd(RFPGA_STATUS) & RFPGA_STATUS_FAULT) &&
	       counter(n, RFPGA_DTP_C_FAULTS) == 1;
}

void run_to(const struct dtp *d, uint32_t end)
{
	start(d);
	CHECK(EVENTUALLY(status(d->n) == end));
}

void check_cut(uint32_t cause)
{
	CHECK(faulted(0, cause));
	CHECK_EQ(rd(RFPGA_FAULT_CAUSE), cause);
	CHECK_EQ(counter(0, RFPGA_DTP_FAULT_CAUSE), cause);
	CHECK_EQ(counter(0, RFPGA_DTP_FAULT_ADDR), rd64(RFPGA_FAULT_ADDR));
	CHECK(untouched(LOCKS, LOCKS + 4096));
	CHECK_EQ(events_so_far(0), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 0);
	CHECK_EQ(rd64(RFPGA_FAULTS), 1);
}

void check_refused(uint32_t cause)
{
	check_cut(cause);
	CHECK(untouched(0, 8 << 20));
	CHECK_EQ(counter(0, RFPGA_DTP_C_BYTES), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_DESCRIPTORS), 0);
}
