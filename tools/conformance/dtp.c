// SPDX-License-Identifier: LGPL-2.1-or-later
#include "conformance/dtp.h"

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

	target->reset();
	target->unmap(0, UINT64_MAX);
	bus_master(true);
	target->msix(true);
	memset(host, CANARY, HOST_SIZE);
	CHECK_EQ(target->map(HOST_ADDR, HOST_SIZE, 0, 3), 0);
	set_entry(0, HOST_ADDR + DST, board.entries > 1 ? 32 << 20 : HOST_SIZE, RFPGA_ENTRY_VALID);
	if (board.entries > 1)
		set_entry(1, HOST_ADDR + LOCKS, 4096, RFPGA_ENTRY_VALID);
	for (i = 0; i < board.vectors; i++)
		while (read(vector_event(i), &events, sizeof(events)) > 0)
			;
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
	const uint32_t images = board.dataset / board.image;

	return (struct dtp){
		.n = n, .pixel = 2, .sampling = 1,
		.bunch = 4, .slots = 2, .images = 16, .width = board.line / 2,
		.images_in_set = images < 16 ? images : 16,
		.height = board.image / board.line, .src_line = board.line,
		.src_image = board.image, .dst_line = board.line, .dst_image = board.image,
		.dst_slot = 4ull * board.image, .count = 1, .lock = n * 64,
		.mode = (board.features & RFPGA_FEATURE_MSIX ? RFPGA_MODE_MSIX : 0) |
			(board.features & RFPGA_FEATURE_LOCK ? RFPGA_MODE_LOCK : 0),
	};
}

struct dtp large(uint32_t lines)
{
	struct dtp d = plain(0);

	d.width = 2048;
	d.height = board.dataset / 4096 < lines ? board.dataset / 4096 : lines;
	d.src_line = d.dst_line = 4096;
	d.src_image = d.dst_image = 0;
	return d;
}

void fit_images(struct dtp *d)
{
	const uint64_t size = (d->src_y + d->height - 1) * d->src_line +
			      (d->src_x + d->width) * d->pixel;
	uint64_t left = board.dataset - d->src_base - size;

	if (d->src_base + size > board.dataset)
		skip("needs %llu bytes of on-board memory, tests see %u",
		     (unsigned long long)(d->src_base + size), board.dataset);
	if (d->src_image && left / d->src_image < d->images_in_set - 1)
		d->images_in_set = (uint32_t)(left / d->src_image) + 1;
}

static void fits(const char *name, uint64_t value, unsigned int bits, bool aligned)
{
	if (value > most(bits))
		skip("needs a %s of %llu, LIMITS allow %llu", name, (unsigned long long)value,
		     (unsigned long long)most(bits));
	if (aligned && value != down(value))
		skip("needs a %s of %llu bytes, ALIGN asks for multiples of %u", name,
		     (unsigned long long)value, board.align);
}

static void check_limits(const struct dtp *d, uint64_t locks)
{
	const unsigned int offset = board.offset_bits, stride = board.stride_bits;
	const unsigned int count = board.count_bits;

	fits("BUNCH", d->bunch, count, false);
	fits("SLOTS", d->slots, count, false);
	fits("SRC_IMAGES", d->images_in_set, count, false);
	fits("SRC_X", d->src_x, count, false);
	fits("SRC_Y", d->src_y, count, false);
	fits("WIDTH", d->width, count, false);
	fits("HEIGHT", d->height, count, false);
	fits("DST_X", d->dst_x, count, false);
	fits("DST_Y", d->dst_y, count, false);
	fits("SRC_BASE", d->src_base, offset, true);
	fits("SRC_LINE", d->src_line, stride, true);
	fits("SRC_IMAGE", d->src_image, stride, true);
	fits("DST_BASE", d->dst_base, offset, true);
	fits("DST_LINE", d->dst_line, stride, true);
	fits("DST_IMAGE", d->dst_image, stride, true);
	fits("DST_SLOT", d->dst_slot, offset, true);
	fits("destination", d->dst_base + (d->slots - 1) * d->dst_slot +
	     (d->bunch - 1) * d->dst_image + (d->dst_y + d->height) * d->dst_line - 1, offset,
	     false);
	fits("region at SRC_X", (uint64_t)d->src_x * d->pixel, 64, true);
	fits("region at DST_X", (uint64_t)d->dst_x * d->pixel, 64, true);
	if (d->mode & RFPGA_MODE_LOCK)
		fits("LOCK_OFFSET", locks + d->lock, offset, false);
	if (d->mode & RFPGA_MODE_META)
		fits("META_OFFSET", locks + d->meta, offset, false);
	fits("IMAGES", d->images, offset, false);
	fits("PERIOD", d->period, offset, false);
	fits("FIRST_STACK", d->first_stack, offset, false);
	fits("FIRST_FRAME", d->first_frame, offset, false);
}

void program_dtp(const struct dtp *d)
{
	const uint32_t lock_entry = board.entries > 1;
	const uint64_t locks = lock_entry ? 0 : LOCKS - DST;
	const struct rfpga_dtp r = {
		.mode = d->mode,
		.vector = d->vector,
		.pixel_bytes = d->pixel,
		.bunch = d->bunch,
		.slots = d->slots,
		.src_base = d->src_base,
		.src_images = d->images_in_set,
		.src_x = d->src_x,
		.src_y = d->src_y,
		.width = d->width,
		.height = d->height,
		.dst_x = d->dst_x,
		.dst_y = d->dst_y,
		.src_line = d->src_line,
		.src_image = d->src_image,
		.dst_base = d->dst_base,
		.dst_line = d->dst_line,
		.dst_image = d->dst_image,
		.dst_slot = d->dst_slot,
		.dst_first = d->first,
		.dst_count = d->count,
		.lock_offset = locks + d->lock,
		.lock_first = lock_entry,
		.lock_count = 1,
		.images = d->images,
		.period = d->period,
		.first_stack = d->first_stack,
		.first_slot = d->slots ? d->first_stack % d->slots : 0,
		.first_index = d->first_stack * d->bunch % d->images_in_set * d->sampling %
			       d->images_in_set,
		.index_step = d->sampling % d->images_in_set,
		.source = d->source,
		.sampling = d->live_sampling,
		.run = d->run,
		.meta_offset = locks + d->meta,
		.meta_first = lock_entry,
		.meta_count = 1,
		.first_frame = d->first_frame,
	};
	uint32_t at;

	check_limits(d, locks);
	for (at = RFPGA_DTP_MODE; at < sizeof(r); at += 4)
		wr(DTP(d->n) + at, rfpga_dtp_word(&r, at));
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

/* Compare with on-board memory; true if BAR 4 does not show that part. */
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

bool shows(const struct dtp *d, uint32_t slot, uint32_t image, uint64_t index)
{
	return !memcmp(host + DST + d->dst_base + slot * d->dst_slot + image * d->dst_image,
		       dataset + index % d->images_in_set * board.image, board.image);
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

void run_to_at(const char *file, int line, const struct dtp *d, uint32_t end)
{
	uint32_t is;
	bool reached;

	start(d);
	reached = EVENTUALLY((is = status(d->n)) == end);
	if (!reached)
		wrong(file, line, "STATUS of DTP %u is %#x, and does not become %#x", d->n, is,
		      end);
}

void take_away(struct dtp *d, void (*take)(void), void (*give)(void), uint32_t cause)
{
	int i;

	d->mode = RFPGA_MODE_FREERUN;
	d->images = 0;
	for (i = 0; i < 20; i++) {
		wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
		start(d);
		CHECK(EVENTUALLY(counter(d->n, RFPGA_DTP_C_IMAGES) > 1));
		take();
		memset(host, CANARY, 1 << 20);
		CHECK(faulted(d->n, cause));
		CHECK(untouched(0, 1 << 20));
		give();
	}
}

void note_dtps(void)
{
	static const char * const states[] = {
		"RUNNING", "WAITING", "DONE", "FAULTED", "STOPPING", "IGNORED",
	};
	static const char * const causes[] = {
		"NONE", "ENTRY", "BUS", "MASTER", "SOURCE", "CONFIG",
	};
	uint32_t n, is, bit, asleep = 0;

	if (rd(RFPGA_ID) != RFPGA_ID_VALUE) {
		note("the board does not answer: ID reads %#x", rd(RFPGA_ID));
		return;
	}
	for (n = 0; n < board.dtps; n++) {
		uint64_t cause = counter(n, RFPGA_DTP_FAULT_CAUSE);
		char text[64] = "";

		is = status(n);
		asleep += !is;
		if (!is)
			continue;
		for (bit = 0; bit < sizeof(states) / sizeof(states[0]); bit++)
			if (is & 1u << bit) {
				strcat(text, " ");
				strcat(text, states[bit]);
			}
		note("DTP %u: STATUS %#x%s, FAULT_CAUSE %llu %s, FAULT_ADDR %#llx, %llu images, %llu stacks",
		     n, is, text, (unsigned long long)cause,
		     cause < sizeof(causes) / sizeof(causes[0]) ? causes[cause] : "?",
		     (unsigned long long)counter(n, RFPGA_DTP_FAULT_ADDR),
		     (unsigned long long)counter(n, RFPGA_DTP_C_IMAGES),
		     (unsigned long long)counter(n, RFPGA_DTP_C_STACKS));
	}
	if (asleep == board.dtps)
		note("STATUS of each DTP is 0");
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
