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

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/parse.h"
#include <rashpa-board.h>
#include "common/say.h"

#define SLOTS		2u		/* of results, of our memory, and of raw images from us */
#define VECTOR		0u
#define LOOK_NS		100000000	/* at the board, while nothing comes of it */
#define PATIENCE_NS	10000000000ull
#define STOP_NS		1000000000ull
#define LOCK_PLACE	4096u		/* bytes behind the results, for the lock record */

struct rpu_board {
	struct rashpa_board *board;
	struct rashpa_board_info info;
	struct rashpa_board_view memory;
	int offered;			/* window of its beginning, for raw images of others; -1 */
	uint64_t offered_length;
	struct rashpa_board_view credit, ring;	/* doorbell pages of DTP 0 and of the unit */
	struct rashpa_block unit;
	uint16_t run;
	size_t words, bytes;		/* words of an image; bytes of a raw word */
	uint32_t width, height;
	uint64_t raw, raw_step, pedestal, gain, result, result_step;	/* in on-board memory */
	uint32_t raw_slots;
	bool in_place;			/* raw images are in offered memory */
	uint64_t slot;			/* bytes from result to result in our memory */

	int dmabuf, channel;
	struct rashpa_target *target;
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
	return !strncmp(name, "fpga", strlen("fpga")) && isdigit((unsigned char)name[strlen("fpga")]);
}

/* --- the unit's registers --- */

static uint32_t get(const struct rpu_board *b, uint32_t reg)
{
	return rashpa_board_read(b->board, b->unit.base + reg);
}

static void set(const struct rpu_board *b, uint32_t reg, uint32_t value)
{
	rashpa_board_write(b->board, b->unit.base + reg, value);
}

static void set64(const struct rpu_board *b, uint32_t reg, uint64_t value)
{
	rashpa_board_write64(b->board, b->unit.base + reg, value);
}

/* A program that was killed may have left the unit running. */
static bool stop(const struct rpu_board *b)
{
	const uint64_t end = now_ns() + STOP_NS;
	int error;

	set(b, RFPGA_UNIT_CONTROL, RFPGA_UNIT_STOP);
	error = rashpa_board_stop(b->board, RASHPA_BOARD_DTP(0), STOP_NS);
	while (!error && get(b, RFPGA_UNIT_STATUS) & RFPGA_UNIT_RUNNING) {
		if (now_ns() > end)
			return false;
		usleep(100);
	}
	return error != -ETIMEDOUT;
}

/* The board does nothing for us any more: -1 with the reason. */
static int trouble(const struct rpu_board *b, char *why)
{
	const uint32_t unit = get(b, RFPGA_UNIT_STATUS);
	uint32_t dtp;

	if (rashpa_board_status(b->board, RASHPA_BOARD_DTP(0), &dtp, NULL))
		return because(why, -1, "%s, after %" PRIu64 " results", rashpa_reason(), b->results);
	if (unit & RFPGA_UNIT_FAULTED || !(unit & RFPGA_UNIT_RUNNING) || !(dtp & RFPGA_DTP_RUNNING))
		return because(why, -1, "fpga%u: %s, after %" PRIu64 " results", b->info.number,
			       unit & RFPGA_UNIT_FAULTED ? "a fault stopped its processing unit" :
							   "another program stopped it", b->results);
	return 0;
}

/* --- begin --- */

static int check(struct rpu_board *b, char *why)
{
	const uint32_t want = RFPGA_FEATURE_LOCK | RFPGA_FEATURE_MSIX;

	if (rashpa_board_claim(b->board))
		return because(why, -1, "%s", rashpa_reason());
	if (!b->info.units || rashpa_board_find_block(b->board, RFPGA_BLOCK_UNIT, RFPGA_UNIT_SIZE,
						      &b->unit))
		return because(why, -1, "fpga%u: it has no processing unit that pretreats: use --engine cpu",
			       b->info.number);
	if (b->unit.doorbell % RFPGA_DOORBELL_PAGE)
		return because(why, -1, "fpga%u: the doorbell of its processing unit at %#" PRIx32
			       " is no page", b->info.number, b->unit.doorbell);
	if ((b->info.features & want) != want)
		return because(why, -1, "fpga%u: it has no lock records, or no MSI-X",
			       b->info.number);
	if (b->words > b->info.count_most)
		return because(why, -1, "fpga%u: %zu pixels are more than it counts (LIMITS)",
			       b->info.number, b->words);
	if (!stop(b))
		return because(why, -1, "fpga%u: its processing unit does not stop",
			       b->info.number);
	return 0;
}

/* The page of BAR 2 at @offset. */
static int open_doorbell(struct rpu_board *b, uint32_t offset, struct rashpa_board_view *view,
			 char *why)
{
	char name[32];

	snprintf(name, sizeof(name), "doorbell%" PRIu32, offset / RFPGA_DOORBELL_PAGE);
	return rashpa_board_window(b->board, name, view) ?
	       because(why, -1, "%s", rashpa_reason()) : 0;
}

/* Raw images of another board, in the part that is offered. */
static int place_theirs(struct rpu_board *b, const struct rashpa_raw_ring *ring, char *why)
{
	const uint64_t image = b->words * b->bytes;

	if (ring->slots > RFPGA_UNIT_SLOTS_MAX)
		return because(why, -1, "fpga%u: the stream has room for %" PRIu32
			       " images in its memory, and its processing unit takes %u at most: have fewer slots, or smaller stacks",
			       b->info.number, ring->slots, RFPGA_UNIT_SLOTS_MAX);
	if (ring->step < image || ring->step > UINT32_MAX ||
	    (ring->offset | ring->step) & ((b->info.align - 1) | (b->bytes - 1)))
		return because(why, -1, "fpga%u: its processing unit takes no slots of %" PRIu64
			       " bytes at steps of %" PRIu64 " from offset %" PRIu64 " (ALIGN)",
			       b->info.number, image, ring->step, ring->offset);
	if (ring->offset > b->offered_length ||
	    (ring->slots - 1) * ring->step + image > b->offered_length - ring->offset)
		return because(why, -1, "fpga%u: raw images reach out of the memory that was offered",
			       b->info.number);
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
	const uint64_t odd = (b->info.align - 1) | 63, plane = b->words * sizeof(float);
	const uint64_t room = b->memory.length;
	char needs[SIZE_TEXT], has[SIZE_TEXT];
	uint64_t need;

	b->result_step = (plane + odd) & ~odd;
	b->pedestal = (b->offered_length + odd) & ~odd;
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
			       b->info.number, b->width, b->height, format_size(needs, need),
			       format_size(has, room));
	return 0;
}

/* Memory for results, that the board may write to. */
static int make_memory(struct rpu_board *b, char *why)
{
	struct rashpa_alloc alloc = { .alignment = 0 };
	struct rashpa_channel_make channel = { .depth = 64 };
	int memory = rashpa_memory_open(), error;

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
	if (rashpa_board_map(b->board, RASHPA_BOARD_DTP(0), b->dmabuf, 0, &b->target))
		return because(why, -1, "memory for results: %s", rashpa_reason());
	b->channel = rashpa_channel_create(rashpa_board_device(b->board), &channel);
	if (b->channel < 0 || rashpa_ring_map(b->channel, &channel, &b->queue) ||
	    rashpa_channel_add(b->channel, RASHPA_SOURCE_VECTOR, VECTOR) < 0)
		return because(why, -1, "fpga%u: cannot listen to events: %s", b->info.number,
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
	struct rashpa_target_info to;
	struct rfpga_dtp dtp = {
		.mode = RFPGA_MODE_MSIX | RFPGA_MODE_LOCK,
		.vector = VECTOR,
		.pixel_bytes = sizeof(float),
		.bunch = 1, .slots = SLOTS,
		.src_base = b->result, .src_images = SLOTS,
		.width = b->words, .height = 1,
		.src_line = b->result_step, .src_image = b->result_step,
		.dst_line = b->slot, .dst_image = b->slot, .dst_slot = b->slot,
		.lock_offset = SLOTS * b->slot,
		.source = RFPGA_FROM_UNIT, .run = b->run,
	};

	rashpa_target_get_info(b->target, RASHPA_BOARD_DTP(0), &to);
	dtp.dst_first = dtp.lock_first = to.first;
	dtp.dst_count = dtp.lock_count = to.entries;
	rashpa_board_configure(b->board, 0, &dtp);
	b->started = true;
	if (rashpa_board_start(b->board, RASHPA_BOARD_DTP(0)))
		return because(why, -1, "%s", rashpa_reason());
	set(b, RFPGA_UNIT_CONTROL, RFPGA_UNIT_START);
	if (get(b, RFPGA_UNIT_STATUS) & RFPGA_UNIT_FAULTED)
		return because(why, -1, "fpga%u: its processing unit does not start: register %#"
			       PRIx64 " makes no sense to it", b->info.number,
			       rashpa_board_read64(b->board, b->unit.base + RFPGA_UNIT_FAULT_ADDR));
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
	if (check(b, why) || open_doorbell(b, 0, &b->credit, why) ||
	    open_doorbell(b, b->unit.doorbell, &b->ring, why) || place(b, gains, ring, why) ||
	    make_memory(b, why))
		return -1;
	load(b, c, gains);
	configure(b, c);
	return start(b, why);
}

int rpu_board_open(const char *name, struct rpu_board **board, char *why)
{
	struct rpu_board *b = calloc(1, sizeof(*b));

	*board = NULL;
	if (!b)
		return because(why, -1, "%s: no memory", name);
	b->offered = b->dmabuf = b->channel = -1;
	if (rashpa_board_open(name, &b->board) || rashpa_board_claim(b->board) ||
	    rashpa_board_window(b->board, "memory", &b->memory) ||
	    rashpa_board_get_info(b->board, &b->info)) {
		because(why, -1, "%s", rashpa_reason());
		rpu_board_end(b);
		return -1;
	}
	*board = b;
	return 0;
}

int rpu_board_offer(struct rpu_board *b, const void **base, uint64_t *length, char *why)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);
	const uint64_t half = b->memory.length / 2;
	struct rashpa_window_make window = {
		.bar = RFPGA_BAR_MEMORY, .length = half / page * page,
	};
	struct rashpa_info info = { .fd = b->memory.fd };
	const int memory = rashpa_memory_open();
	int error = memory < 0 ? memory : rashpa_memory_get_info(memory, &info);

	if (memory >= 0)
		close(memory);
	if (error)
		return because(why, -1, "fpga%u: %s", b->info.number, rashpa_reason());
	window.cache = info.out_cache;	/* of two windows of the same bytes it is the same */
	if (!window.length)
		return because(why, -1, "fpga%u: it has no memory", b->info.number);
	b->offered = rashpa_device_window(rashpa_board_device(b->board), &window);
	if (b->offered < 0)
		return because(why, -1, "fpga%u: on-board memory for raw images: %s",
			       b->info.number, rashpa_reason());
	b->offered_length = *length = window.length;
	*base = (const void *)(uintptr_t)b->memory.base;
	return b->offered;
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
	if (trouble(b, why))
		return -1;
	if (now_ns() - since <= PATIENCE_NS)
		return 0;
	return because(why, -1, "fpga%u: no result for 10 s, after %" PRIu64 " results",
		       b->info.number, b->results);
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
			return because(why, -1, "fpga%u: the function was removed", b->info.number);
		if (error != -ETIMEDOUT && error != -EINTR)
			return because(why, -1, "fpga%u: %s", b->info.number, rashpa_reason());
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
		return because(why, -1, "fpga%u: it failed before: open the pipeline again", b->info.number);
	if (!b->in_place) {
		copy(b, raw);
		return 0;
	}
	if (at % b->raw_step || at / b->raw_step >= b->raw_slots ||
	    raw->line_stride != b->width * b->bytes)
		return because(why, -1, "fpga%u: an image is not in a slot of the offered memory",
			       b->info.number);
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
	while ((uint32_t)rashpa_board_read64(b->board, b->unit.base + RFPGA_UNIT_C_IN) != b->given) {
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
		rashpa_device_quiesce(rashpa_board_device(b->board), NULL);
	if (b->queue.ring)
		rashpa_ring_unmap(&b->queue);
	if (b->channel >= 0)
		close(b->channel);
	/* the driver stops what still writes, before the memory can go */
	rashpa_target_close(b->target);
	if (b->ours)
		munmap(b->ours, b->length);
	if (b->dmabuf >= 0)
		close(b->dmabuf);
	if (b->offered >= 0)
		close(b->offered);
	rashpa_board_close(b->board);
	free(b);
}
