// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A board that pretreats (fpga-options.rst, "Processing units"). On-board memory contains a ring
 * of raw images, the planes of the calibration, and a ring of results. DTP 0 sends each result into
 * host memory, followed by a lock record. An image is given when the result before has arrived.
 *
 * The host copies raw images to the board, or another board writes them in place, into offered
 * memory. The unit takes each place of the ring in turn. If the stream skips images, the places
 * between are processed, too, and their results dropped.
 */
#include "processing/board.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/fpga.h"
#include "common/parse.h"
#include <rashpa.h>
#include "common/say.h"

#define SLOTS		2u		/* of results, of our memory, and of raw images from us */
#define VECTOR		0u
#define LOOK_NS		100000000	/* at the board, while nothing comes of it */
#define PATIENCE_NS	10000000000ull
#define STOP_NS		1000000000ull
#define LOCK_PLACE	4096u		/* bytes behind the results, for the lock record */

struct rpu_board {
	struct fpga fpga;
	struct view memory;
	struct view offered;		/* its beginning, for raw images of others */
	struct view credit, ring;	/* doorbell pages of DTP 0 and of the unit */
	struct fpga_block unit;
	uint16_t run;
	size_t words, bytes;		/* words of an image; bytes of a raw word */
	uint32_t width, height;
	uint64_t raw, raw_step, pedestal, gain, result, result_step;	/* in on-board memory */
	uint32_t raw_slots;
	bool in_place;			/* raw images are in offered memory */
	uint32_t first;			/* first entry of the table */
	uint64_t slot;			/* bytes from result to result in our memory */

	int dmabuf, map, channel;
	struct rashpa_map_make made;
	void *ours;
	size_t length;
	struct rashpa_queue queue;
	struct rashpa_wait wait;

	uint32_t given, darks;		/* images; bits of GIVEN */
	uint64_t results;
	bool started;
	bool lost;			/* a result is outstanding, and may arrive later */
};

bool rpu_is_board(const char *name)
{
	unsigned int number;

	return !strncmp(name, "fpga", strlen("fpga")) && parse_fpga(name, &number);
}

/* --- the unit's registers --- */

static uint32_t get(const struct rpu_board *b, uint32_t reg)
{
	return fpga_read(&b->fpga, b->unit.base + reg);
}

static void set(const struct rpu_board *b, uint32_t reg, uint32_t value)
{
	fpga_write(&b->fpga, b->unit.base + reg, value);
}

static void set64(const struct rpu_board *b, uint32_t reg, uint64_t value)
{
	fpga_write64(&b->fpga, b->unit.base + reg, value);
}

static uint32_t dtp_status(const struct rpu_board *b)
{
	return fpga_read(&b->fpga, RFPGA_DTP(0) + RFPGA_DTP_STATUS);
}

/* Neither the unit nor DTP 0 runs; a program that was killed may have left the unit running. */
static bool is_at_rest(const struct rpu_board *b)
{
	return !(get(b, RFPGA_UNIT_STATUS) & RFPGA_UNIT_RUNNING) &&
	       !(dtp_status(b) & RFPGA_DTP_RUNNING);
}

static bool stop(const struct rpu_board *b)
{
	const uint64_t end = now_ns() + STOP_NS;

	fpga_write(&b->fpga, RFPGA_DTP(0) + RFPGA_DTP_CONTROL, RFPGA_DTP_STOP);
	set(b, RFPGA_UNIT_CONTROL, RFPGA_UNIT_STOP);
	while (!is_at_rest(b) && fpga_answers(&b->fpga)) {
		if (now_ns() > end)
			return false;
		usleep(100);
	}
	return true;
}

/* Why nothing comes; NULL: nothing is wrong so far. */
static const char *trouble(const struct rpu_board *b)
{
	const uint32_t unit = get(b, RFPGA_UNIT_STATUS), dtp = dtp_status(b);

	if (!fpga_answers(&b->fpga))
		return "it does not answer any more";
	if (unit & RFPGA_UNIT_FAULTED)
		return "its processing unit has a fault";
	if (dtp & RFPGA_DTP_FAULTED)
		return "sending a result, it had a fault";
	if (!(unit & RFPGA_UNIT_RUNNING) || !(dtp & RFPGA_DTP_RUNNING))
		return "another program stopped it";
	return NULL;
}

/* --- begin --- */

static int check(struct rpu_board *b, char *why)
{
	const struct fpga *f = &b->fpga;
	const uint32_t want = RFPGA_FEATURE_LOCK | RFPGA_FEATURE_MSIX;
	const uint32_t bits = RFPGA_LIMITS_COUNT(fpga_read(f, RFPGA_LIMITS));

	if (f->info.out_state == RASHPA_STATE_STUCK)
		return because(why, -1, "fpga%u: it is stuck: reset it (rashpactl fpga reset fpga%u)",
			       f->number, f->number);
	if (!fpga_unit(f, &b->unit))
		return because(why, -1, "fpga%u: it has no processing unit that pretreats: use --engine cpu",
			       f->number);
	if (b->unit.doorbell % RFPGA_DOORBELL_PAGE)
		return because(why, -1, "fpga%u: the doorbell of its processing unit at %#" PRIx32
			       " is no page", f->number, b->unit.doorbell);
	if ((fpga_read(f, RFPGA_FEATURES) & want) != want)
		return because(why, -1, "fpga%u: it has no lock records, or no MSI-X", f->number);
	if (bits < 32 && b->words >> bits)
		return because(why, -1, "fpga%u: %zu pixels are more than it counts (LIMITS)",
			       f->number, b->words);
	for (unsigned int i = 0; i < fpga_processes(f); i++)
		if (fpga_read(f, RFPGA_DTP(i) + RFPGA_DTP_STATUS) & RFPGA_DTP_RUNNING)
			return because(why, -1, "fpga%u: process %u runs: stop the producer first (rashpactl fpga quiesce fpga%u)",
				       f->number, i, f->number);
	if (!stop(b))
		return because(why, -1, "fpga%u: its processing unit does not stop", f->number);
	return 0;
}

/* The page of BAR 2 at @offset, as the profile calls it. */
static int open_doorbell(struct rpu_board *b, struct view *view, uint32_t offset, char *why)
{
	char name[32];

	snprintf(name, sizeof(name), "doorbell%" PRIu32, offset / RFPGA_DOORBELL_PAGE);
	return view_open(view, &b->fpga, name, RFPGA_BAR_DOORBELL, offset, RFPGA_DOORBELL_PAGE,
			 true, why);
}

/* Offsets that the board takes: a mask of what they must not have. */
static uint64_t odd_bits(const struct rpu_board *b)
{
	return (1ull << (RFPGA_LIMITS_ALIGN(fpga_read(&b->fpga, RFPGA_LIMITS)) & 31)) - 1;
}

/* Raw images of another board, in the part that is offered. */
static int place_theirs(struct rpu_board *b, const struct rashpa_raw_ring *ring, char *why)
{
	const uint64_t image = b->words * b->bytes;

	if (ring->slots > RFPGA_UNIT_SLOTS_MAX)
		return because(why, -1, "fpga%u: the stream has room for %" PRIu32
			       " images in its memory, and its processing unit takes %u at most: have fewer slots, or smaller stacks",
			       b->fpga.number, ring->slots, RFPGA_UNIT_SLOTS_MAX);
	if (ring->step < image || ring->step > UINT32_MAX ||
	    (ring->offset | ring->step) & (odd_bits(b) | (b->bytes - 1)))
		return because(why, -1, "fpga%u: its processing unit takes no images of %" PRIu64
			       " bytes each %" PRIu64 " bytes, from byte %" PRIu64 " on",
			       b->fpga.number, image, ring->step, ring->offset);
	if (ring->offset > b->offered.length ||
	    (ring->slots - 1) * ring->step + image > b->offered.length - ring->offset)
		return because(why, -1, "fpga%u: raw images reach out of the memory that was offered",
			       b->fpga.number);
	b->raw = ring->offset;
	b->raw_step = ring->step;
	b->raw_slots = ring->slots;
	b->in_place = true;
	return 0;
}

/* Where everything is on the board. */
static int place(struct rpu_board *b, unsigned int gains, const struct rashpa_raw_ring *ring,
		 char *why)
{
	const uint64_t odd = odd_bits(b) | 63, plane = b->words * sizeof(float);
	const uint64_t room = fpga_memory(&b->fpga, &b->memory);
	char needs[SIZE_TEXT], has[SIZE_TEXT];
	uint64_t need;

	b->result_step = (plane + odd) & ~odd;
	b->pedestal = (b->offered.length + odd) & ~odd;
	if (ring->slots) {
		if (place_theirs(b, ring, why))
			return -1;
	} else {
		b->raw = b->pedestal;
		b->raw_step = (b->words * b->bytes + odd) & ~odd;
		b->raw_slots = SLOTS;
		b->pedestal += SLOTS * b->raw_step;
	}
	b->gain = b->pedestal + ((gains * plane + odd) & ~odd);
	b->result = b->gain + ((gains * plane + odd) & ~odd);
	need = b->result + SLOTS * b->result_step;
	if (need > room || b->result_step > UINT32_MAX)
		return because(why, -1, "fpga%u: images of %" PRIu32 " x %" PRIu32
			       " pixels with their calibration take %s, on-board memory has %s",
			       b->fpga.number, b->width, b->height, format_size(needs, need),
			       format_size(has, room));
	return 0;
}

/* Memory for results, that the board may write to. */
static int make_memory(struct rpu_board *b, char *why)
{
	struct rashpa_alloc alloc = { .alignment = 0 };
	struct rashpa_program program = { };
	struct fpga_range range;
	struct rashpa_channel_make channel = { .depth = 64 };
	int memory = rashpa_memory_open(), error;

	if (fpga_range(&b->fpga, "dtp0", &range, why))
		return -1;
	b->first = program.first = range.first;
	b->slot = (b->result_step + LOCK_PLACE - 1) / LOCK_PLACE * LOCK_PLACE;
	b->length = SLOTS * b->slot + LOCK_PLACE;
	alloc.length = b->length;
	error = memory < 0 ? memory : rashpa_memory_alloc(memory, &alloc);
	if (memory >= 0)
		close(memory);
	if (error < 0)
		return because(why, -1, "memory for results: %s", rashpa_reason());
	b->dmabuf = alloc.out_fd;
	if (rashpa_mmap(b->dmabuf, 0, b->length, PROT_READ | PROT_WRITE, &b->ours))
		return because(why, -1, "memory for results: %s", rashpa_reason());
	b->made = (struct rashpa_map_make) {
		.fd = b->dmabuf, .direction = RASHPA_TO_MEMORY,
	};
	b->map = rashpa_device_map(b->fpga.device, &b->made);
	if (b->map < 0 || rashpa_map_program(b->map, &program))
		return because(why, -1, "fpga%u: memory for results: %s", b->fpga.number,
			       rashpa_reason());
	b->channel = rashpa_channel_create(b->fpga.device, &channel);
	if (b->channel < 0 || rashpa_ring_map(b->channel, &channel, &b->queue) ||
	    rashpa_channel_add(b->channel, RASHPA_SOURCE_VECTOR, VECTOR) < 0)
		return because(why, -1, "fpga%u: cannot listen to events: %s", b->fpga.number,
			       rashpa_reason());
	b->wait = (struct rashpa_wait) {
		.word = (uint8_t *)b->ours + SLOTS * b->slot + RFPGA_LOCK_STACKS, .bits = 64,
		.condition = RASHPA_CONDITION_REACHED, .queue = &b->queue,
	};
	return 0;
}

static void load(const struct rpu_board *b, const struct rpu_calibration *c, unsigned int gains)
{
	const size_t plane = b->words * sizeof(float);
	uint8_t *memory = (uint8_t *)(uintptr_t)b->memory.base;

	for (unsigned int k = 0; k < gains; k++) {
		memcpy(memory + b->pedestal + k * plane, c->pedestal[k], plane);
		memcpy(memory + b->gain + k * plane, c->per_gain[k], plane);
	}
}

static void configure(struct rpu_board *b, const struct rpu_calibration *c)
{
	uint32_t weight;

	memcpy(&weight, &c->dark_weight, sizeof(weight));
	b->run = (uint16_t)now_ns() | 1;
	set(b, RFPGA_UNIT_RUN, b->run);
	set64(b, RFPGA_UNIT_RAW, b->raw);
	set64(b, RFPGA_UNIT_RESULT, b->result);
	set64(b, RFPGA_UNIT_PEDESTAL, b->pedestal);
	set64(b, RFPGA_UNIT_GAIN, b->gain);
	set(b, RFPGA_UNIT_WIDTH, b->width);
	set(b, RFPGA_UNIT_HEIGHT, b->height);
	set(b, RFPGA_UNIT_SATURATED, c->saturated);
	set(b, RFPGA_UNIT_FORMAT, RFPGA_UNIT_BYTES(b->bytes) |
	    (c->jungfrau ? RFPGA_UNIT_JUNGFRAU : 0) | (c->whole ? RFPGA_UNIT_ROUND : 0));
	set(b, RFPGA_UNIT_DARK_WEIGHT, weight);
	set(b, RFPGA_UNIT_RAW_IMAGE, b->raw_step);
	set(b, RFPGA_UNIT_RESULT_IMAGE, b->result_step);
	set(b, RFPGA_UNIT_RAW_SLOTS, b->raw_slots);
	set(b, RFPGA_UNIT_RESULT_SLOTS, SLOTS);
}

/* A result is one line of the DTP, whatever ALIGN says of lines. */
static int start(struct rpu_board *b, char *why)
{
	const struct rfpga_dtp dtp = {
		.mode = RFPGA_MODE_MSIX | RFPGA_MODE_LOCK,
		.vector = VECTOR,
		.pixel_bytes = sizeof(float),
		.bunch = 1, .slots = SLOTS,
		.src_base = b->result, .src_images = SLOTS,
		.width = b->words, .height = 1,
		.src_line = b->result_step, .src_image = b->result_step,
		.dst_line = b->slot, .dst_image = b->slot, .dst_slot = b->slot,
		.dst_first = b->first, .dst_count = b->made.out_segments,
		.lock_offset = SLOTS * b->slot,
		.lock_first = b->first, .lock_count = b->made.out_segments,
		.source = RFPGA_FROM_UNIT, .run = b->run,
	};

	fpga_configure(&b->fpga, 0, &dtp);
	fpga_write(&b->fpga, RFPGA_DTP(0) + RFPGA_DTP_CONTROL, RFPGA_DTP_START);
	set(b, RFPGA_UNIT_CONTROL, RFPGA_UNIT_START);
	b->started = true;
	if (dtp_status(b) & RFPGA_DTP_FAULTED)
		return because(why, -1, "fpga%u: DTP 0 does not start: %s at %#" PRIx64,
			       b->fpga.number,
			       fpga_cause_name(fpga_read(&b->fpga, RFPGA_FAULT_CAUSE)),
			       fpga_read64(&b->fpga, RFPGA_FAULT_ADDR));
	if (get(b, RFPGA_UNIT_STATUS) & RFPGA_UNIT_FAULTED)
		return because(why, -1, "fpga%u: its processing unit does not start: register %#"
			       PRIx64 " makes no sense to it", b->fpga.number,
			       fpga_read64(&b->fpga, b->unit.base + RFPGA_UNIT_FAULT_ADDR));
	return 0;
}

int rpu_board_begin(struct rpu_board *b, const struct rpu_calibration *c,
		    const struct rashpa_raw_ring *ring, char *why)
{
	const unsigned int gains = c->jungfrau ? RPU_GAINS : 1;

	b->words = (size_t)c->width * c->height;
	b->bytes = (size_t)1 << (c->pixel - RASHPA_PIXEL_U8);
	b->width = c->width;
	b->height = c->height;
	if (check(b, why) || open_doorbell(b, &b->credit, 0, why) ||
	    open_doorbell(b, &b->ring, b->unit.doorbell, why) || place(b, gains, ring, why) ||
	    make_memory(b, why))
		return -1;
	load(b, c, gains);
	configure(b, c);
	return start(b, why);
}

int rpu_board_open(const char *name, struct rpu_board **board, char *why)
{
	struct rpu_board *b = calloc(1, sizeof(*b));
	unsigned int number;

	*board = NULL;
	if (!b || !parse_fpga(name, &number)) {
		free(b);
		return because(why, -1, "%s: no memory", name);
	}
	b->fpga = (struct fpga)FPGA_NONE;
	b->memory = b->offered = b->credit = b->ring = (struct view)VIEW_NONE;
	b->dmabuf = b->map = b->channel = -1;
	if (fpga_open(&b->fpga, number, why) || fpga_claim(&b->fpga, why) ||
	    fpga_registers(&b->fpga, why) ||
	    view_open(&b->memory, &b->fpga, "memory", RFPGA_BAR_MEMORY, 0, 0, true, why)) {
		rpu_board_end(b);
		return -1;
	}
	*board = b;
	return 0;
}

int rpu_board_offer(struct rpu_board *b, const void **base, uint64_t *length, char *why)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);
	const uint64_t half = fpga_memory(&b->fpga, &b->memory) / 2;
	struct rashpa_window_make window = {
		.bar = RFPGA_BAR_MEMORY, .length = half / page * page,
	};
	struct rashpa_info info = { .fd = b->memory.fd };
	const int memory = rashpa_memory_open();
	int error = memory < 0 ? memory : rashpa_memory_get_info(memory, &info);

	if (memory >= 0)
		close(memory);
	if (error)
		return because(why, -1, "fpga%u: %s", b->fpga.number, rashpa_reason());
	window.cache = info.out_cache;	/* of two windows of the same bytes it is the same */
	if (!window.length)
		return because(why, -1, "fpga%u: it has no memory", b->fpga.number);
	b->offered.fd = rashpa_device_window(b->fpga.device, &window);
	if (b->offered.fd < 0)
		return because(why, -1, "fpga%u: on-board memory for raw images: %s",
			       b->fpga.number, rashpa_reason());
	b->offered.length = *length = window.length;
	*base = (const void *)(uintptr_t)b->memory.base;
	return b->offered.fd;
}

/* --- images --- */

/* Copy a raw image to the board. The place is free: the unit has taken its last image. */
static void copy(const struct rpu_board *b, const struct rpu_raw *raw)
{
	uint8_t *to = (uint8_t *)(uintptr_t)b->memory.base + b->raw +
		      b->given % b->raw_slots * b->raw_step;
	const uint8_t *line = raw->data;
	const size_t row = b->width * b->bytes;

	if (raw->line_stride == row)
		memcpy(to, line, row * b->height);
	else
		for (uint32_t y = 0; y < b->height; y++, line += raw->line_stride, to += row)
			memcpy(to, line, row);
}

/* Give the unit the image in the next place of the ring. */
static void give(struct rpu_board *b, bool dark)
{
	const uint32_t bit = 1u << b->given % 16;

	b->darks = dark ? b->darks | bit : b->darks & ~bit;
	b->given++;
	/* orders the doorbell behind the image, also where that was combined into larger writes */
	rashpa_doorbell64(b->ring.base, RFPGA_DB_GIVEN, RFPGA_GIVEN(b->given, b->darks, b->run));
	b->lost = true;			/* until it is there */
}

static int waited(const struct rpu_board *b, uint64_t since, char *why)
{
	const char *what = trouble(b);

	if (!what && now_ns() - since > PATIENCE_NS)
		what = "nothing came of an image for 10 s";
	return what ? because(why, -1, "fpga%u: %s, after %" PRIu64 " results", b->fpga.number,
			      what, b->results) : 0;
}

/* Until its result is there; it is taken, @result: and read. */
static int take(struct rpu_board *b, float *result, char *why)
{
	const uint64_t since = now_ns();
	const uint8_t *from = (uint8_t *)b->ours + b->results % SLOTS * b->slot;
	int error;

	b->wait.value = b->results + 1;
	while ((error = rashpa_lock_wait(&b->wait, LOOK_NS, NULL))) {
		if (error == -ENODEV)
			return because(why, -1, "fpga%u: the function was removed", b->fpga.number);
		if (error != -ETIMEDOUT && error != -EINTR)
			return because(why, -1, "fpga%u: %s", b->fpga.number, rashpa_reason());
		if (waited(b, since, why))
			return -1;
	}
	if (result)
		memcpy(result, from, b->words * sizeof(float));
	b->results++;
	b->lost = false;
	rashpa_doorbell64(b->credit.base, RFPGA_DB_TAGGED,
			  (uint32_t)b->results | (uint64_t)b->run << 32);
	return 0;
}

/* The image is in the next place: copied there, or the unit goes on to where it is. */
static int bring(struct rpu_board *b, const struct rpu_raw *raw, char *why)
{
	const uint64_t at = (uintptr_t)raw->data - (uintptr_t)b->memory.base - b->raw;

	if (b->lost)
		return because(why, -1, "fpga%u: it failed before: open the pipeline again", b->fpga.number);
	if (!b->in_place) {
		copy(b, raw);
		return 0;
	}
	if (at % b->raw_step || at / b->raw_step >= b->raw_slots ||
	    raw->line_stride != b->width * b->bytes)
		return because(why, -1, "fpga%u: an image is not where its memory has them",
			       b->fpga.number);
	while (b->given % b->raw_slots != at / b->raw_step) {
		give(b, false);
		if (take(b, NULL, why))
			return -1;
	}
	return 0;
}

int rpu_board_pretreat(struct rpu_board *b, const struct rpu_raw *raw, float *result, char *why)
{
	if (bring(b, raw, why))
		return -1;
	give(b, false);
	return take(b, result, why);
}

/* A dark image has no result; wait for the unit's counter of taken images. */
int rpu_board_dark(struct rpu_board *b, const struct rpu_raw *raw, char *why)
{
	const uint64_t since = now_ns();

	if (bring(b, raw, why))
		return -1;
	give(b, true);
	while ((uint32_t)fpga_read64(&b->fpga, b->unit.base + RFPGA_UNIT_C_IN) != b->given) {
		if (waited(b, since, why))
			return -1;
		usleep(50);
	}
	b->lost = false;
	return 0;
}

void rpu_board_end(struct rpu_board *b)
{
	if (!b)
		return;
	if (b->started && !stop(b))
		rashpa_device_quiesce(b->fpga.device, NULL);
	if (b->queue.ring)
		rashpa_ring_unmap(&b->queue);
	if (b->channel >= 0)
		close(b->channel);
	/* the driver stops what still writes, before the memory can go */
	if (b->map >= 0)
		close(b->map);
	if (b->ours)
		munmap(b->ours, b->length);
	if (b->dmabuf >= 0)
		close(b->dmabuf);
	view_close(&b->ring);
	view_close(&b->credit);
	view_close(&b->offered);
	view_close(&b->memory);
	fpga_close(&b->fpga);
	free(b);
}
