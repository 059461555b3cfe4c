// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Processing units: raw images become results, which DTPs send. All numbers have a short binary
 * fraction, so that boards with any rounding get the same results.
 */
#include "conformance/dtp.h"

#include <math.h>
#include <string.h>

#include "common/words.h"

#define PIXELS		32u
#define WIDTH		8u
#define RAW_SLOTS	4u
#define RESULT_SLOTS	2u
#define RUN		0xbeefu

static uint32_t base, doorbell, units;
static uint32_t raw_step, result_step;		/* from image to image */
static uint64_t raw, pedestal, gain, result, end;	/* in on-board memory */

/* Find a unit that pretreats, and memory for it. */
static void find_unit(void)
{
	base = block(RFPGA_BLOCK_UNIT, &units);
	if (!units || rd(base + RFPGA_UNIT_KIND) != RFPGA_UNIT_PRETREAT)
		skip("it has no processing unit that pretreats");
	doorbell = block_doorbell(RFPGA_BLOCK_UNIT) + RFPGA_DB_GIVEN;
	raw_step = (uint32_t)up(PIXELS * 4);
	result_step = (uint32_t)up(PIXELS * 4);
	raw = 0;
	pedestal = raw + RAW_SLOTS * raw_step;
	gain = pedestal + up(3 * PIXELS * 4);
	result = gain + up(3 * PIXELS * 4);
	end = result + RESULT_SLOTS * result_step;
	if (end > board.dataset)
		skip("needs %llu bytes of on-board memory, tests see %u",
		     (unsigned long long)end, board.dataset);
}

/* Restore on-board memory for other tests. */
static void give_memory_back(void)
{
	memory_write(0, dataset, end);
}

static void put_plane(uint64_t plane, unsigned int k, float value)
{
	float number[PIXELS];
	unsigned int i;

	for (i = 0; i < PIXELS; i++)
		number[i] = value;
	memory_write(plane + k * sizeof(number), number, sizeof(number));
}

static void put_pixel(uint64_t plane, unsigned int i, float value)
{
	memory_write(plane + i * sizeof(value), &value, sizeof(value));
}

/* Fill raw image @n in its slot with this word. */
static void put_raw(uint32_t n, uint32_t bytes, uint32_t word)
{
	uint8_t image[PIXELS * 4];
	unsigned int i;

	for (i = 0; i < PIXELS; i++)
		memcpy(image + i * bytes, &word, bytes);
	memory_write(raw + n % RAW_SLOTS * raw_step, image, (size_t)PIXELS * bytes);
}

static float result_pixel(uint32_t n, unsigned int i)
{
	float value;

	memory_read(result + n % RESULT_SLOTS * result_step + i * sizeof(value), &value,
		    sizeof(value));
	return value;
}

static bool result_is(uint32_t n, float value)
{
	unsigned int i;

	for (i = 0; i < PIXELS; i++)
		if (result_pixel(n, i) != value)
			return false;
	return true;
}

static uint32_t weight_bits(float weight)
{
	uint32_t bits;

	memcpy(&bits, &weight, sizeof(bits));
	return bits;
}

static void program_unit(uint32_t format, float dark_weight)
{
	wr(base + RFPGA_UNIT_RUN, RUN);
	wr64(base + RFPGA_UNIT_RAW, raw);
	wr64(base + RFPGA_UNIT_RESULT, result);
	wr64(base + RFPGA_UNIT_PEDESTAL, pedestal);
	wr64(base + RFPGA_UNIT_GAIN, gain);
	wr(base + RFPGA_UNIT_WIDTH, WIDTH);
	wr(base + RFPGA_UNIT_HEIGHT, PIXELS / WIDTH);
	wr(base + RFPGA_UNIT_SATURATED, UINT32_MAX);
	wr(base + RFPGA_UNIT_FORMAT, format);
	wr(base + RFPGA_UNIT_DARK_WEIGHT, weight_bits(dark_weight));
	wr(base + RFPGA_UNIT_RAW_IMAGE, raw_step);
	wr(base + RFPGA_UNIT_RESULT_IMAGE, result_step);
	wr(base + RFPGA_UNIT_RAW_SLOTS, RAW_SLOTS);
	wr(base + RFPGA_UNIT_RESULT_SLOTS, RESULT_SLOTS);
}

static void start_unit(uint32_t format, float dark_weight)
{
	program_unit(format, dark_weight);
	wr(base + RFPGA_UNIT_CONTROL, RFPGA_UNIT_START);
	CHECK_EQ(rd(base + RFPGA_UNIT_STATUS), RFPGA_UNIT_RUNNING);
}

static void stop_unit(void)
{
	wr(base + RFPGA_UNIT_CONTROL, RFPGA_UNIT_STOP);
	CHECK(EVENTUALLY(!(rd(base + RFPGA_UNIT_STATUS) & RFPGA_UNIT_RUNNING)));
}

static void give(uint32_t n, uint32_t darks)
{
	doorbell_write64(doorbell, RFPGA_GIVEN(n, darks, RUN));
}

static bool taken(uint64_t n)
{
	return EVENTUALLY(rd64(base + RFPGA_UNIT_C_IN) == n);
}

/* A DTP that sends results of one line. */
static struct dtp sender(void)
{
	struct dtp d = plain(0);

	d.source = RFPGA_FROM_UNIT;
	d.pixel = 4;
	d.width = PIXELS;
	d.height = 1;
	d.src_base = result;
	d.images_in_set = RESULT_SLOTS;
	d.src_line = d.src_image = result_step;
	d.dst_line = d.dst_image = up(PIXELS * 4);
	d.bunch = 1;
	d.slots = 16;
	d.dst_slot = d.dst_image;
	d.images = 0;
	return d;
}

static bool arrived(const struct dtp *d, uint32_t slot, float value)
{
	const volatile uint8_t *at = host + DST + slot * d->dst_slot;
	float pixel;
	unsigned int i;

	for (i = 0; i < PIXELS; i++) {
		uint32_t word = (uint32_t)word_read(at + i * sizeof(word), sizeof(word));

		memcpy(&pixel, &word, sizeof(pixel));
		if (pixel != value)
			return false;
	}
	return true;
}

static void test_registers(void)
{
	uint32_t at;

	find_unit();
	for (at = 0; at < RFPGA_UNIT_SIZE; at += 4)
		CHECK(at == RFPGA_UNIT_KIND || !rd(base + at));
	program_unit(RFPGA_UNIT_BYTES(2), 0.5);
	CHECK_EQ(rd64(base + RFPGA_UNIT_GAIN), gain);
	CHECK_EQ(rd(base + RFPGA_UNIT_HEIGHT), PIXELS / WIDTH);
	CHECK_EQ(rd(base + RFPGA_UNIT_DARK_WEIGHT), weight_bits(0.5));
	wr(base + RFPGA_UNIT_KIND, 7);
	wr64(base + RFPGA_UNIT_C_OUT, 7);
	CHECK_EQ(rd(base + RFPGA_UNIT_KIND), RFPGA_UNIT_PRETREAT);
	CHECK_EQ(rd64(base + RFPGA_UNIT_C_OUT), 0);
	wr(base + RFPGA_UNIT_CONTROL, RFPGA_UNIT_START);
	CHECK_EQ(rd(base + RFPGA_UNIT_CONTROL), 0);
	CHECK_EQ(rd(base + RFPGA_UNIT_STATUS), RFPGA_UNIT_RUNNING);
	wr(base + RFPGA_UNIT_HEIGHT, 77);
	CHECK_EQ(rd(base + RFPGA_UNIT_HEIGHT), PIXELS / WIDTH);
	/* a stop of all DTPs does not stop the unit, which does not write to the bus */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK_EQ(rd(base + RFPGA_UNIT_STATUS), RFPGA_UNIT_RUNNING);
	wr(base + RFPGA_UNIT_CONTROL, RFPGA_UNIT_START | RFPGA_UNIT_STOP);
	CHECK(EVENTUALLY(!rd(base + RFPGA_UNIT_STATUS)));
	wr(base + RFPGA_UNIT_CONTROL, RFPGA_UNIT_START);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK(EVENTUALLY(!(rd(RFPGA_STATUS) & RFPGA_STATUS_RESETTING)));
	for (at = 0; at < RFPGA_UNIT_SIZE; at += 4)
		CHECK(at == RFPGA_UNIT_KIND || !rd(base + at));
}

static void test_config(void)
{
	const struct { uint32_t reg, value; } bad[] = {
		{ RFPGA_UNIT_RUN, 0x10000 },
		{ RFPGA_UNIT_RAW, 1 }, { RFPGA_UNIT_RESULT, 2 }, { RFPGA_UNIT_PEDESTAL, 1 },
		{ RFPGA_UNIT_GAIN, 3 },
		{ RFPGA_UNIT_WIDTH, 0 }, { RFPGA_UNIT_WIDTH, 0x10000 },
		{ RFPGA_UNIT_HEIGHT, 0 }, { RFPGA_UNIT_HEIGHT, 0x10000 },
		{ RFPGA_UNIT_FORMAT, 0 }, { RFPGA_UNIT_FORMAT, 3 }, { RFPGA_UNIT_FORMAT, 8 },
		{ RFPGA_UNIT_FORMAT, RFPGA_UNIT_BYTES(4) | RFPGA_UNIT_JUNGFRAU },
		{ RFPGA_UNIT_FORMAT, RFPGA_UNIT_BYTES(2) | 1u << 31 },
		{ RFPGA_UNIT_DARK_WEIGHT, weight_bits(-1) },
		{ RFPGA_UNIT_DARK_WEIGHT, weight_bits(2) },
		{ RFPGA_UNIT_DARK_WEIGHT, weight_bits(NAN) },
		{ RFPGA_UNIT_RAW_IMAGE, 1 }, { RFPGA_UNIT_RESULT_IMAGE, 2 },
		{ RFPGA_UNIT_RAW_SLOTS, 0 }, { RFPGA_UNIT_RAW_SLOTS, 17 },
		{ RFPGA_UNIT_RESULT_SLOTS, 0 }, { RFPGA_UNIT_RESULT_SLOTS, 17 },
	};
	struct dtp d;
	unsigned int i;

	find_unit();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		program_unit(RFPGA_UNIT_BYTES(2) | RFPGA_UNIT_JUNGFRAU, 1);
		wr(base + bad[i].reg, bad[i].value);
		wr(base + RFPGA_UNIT_CONTROL, RFPGA_UNIT_START);
		CHECK_EQ(rd(base + RFPGA_UNIT_STATUS), RFPGA_UNIT_FAULTED);
		CHECK_EQ(rd(base + RFPGA_UNIT_FAULT_CAUSE), RFPGA_FAULT_CONFIG);
		CHECK_EQ(rd64(base + RFPGA_UNIT_FAULT_ADDR), base + bad[i].reg);
	}
	/* a valid start clears the fault */
	start_unit(RFPGA_UNIT_BYTES(2), 1);
	CHECK_EQ(rd(base + RFPGA_UNIT_FAULT_CAUSE), RFPGA_FAULT_NONE);
	stop_unit();
	/* missing units, and a period */
	d = sender();
	d.source |= units << 16;
	start(&d);
	check_refused(RFPGA_FAULT_CONFIG);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), DTP(0) + RFPGA_DTP_SOURCE);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	d = sender();
	d.period = 1;
	start(&d);
	check_refused(RFPGA_FAULT_CONFIG);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), DTP(0) + RFPGA_DTP_PERIOD);
}

/* The three gains, and all reasons for an invalid pixel. */
static void test_jungfrau(void)
{
	static const struct { uint32_t word; float value; } of[] = {
		{ 100, (100 - 20) * 0.5f },
		{ 0x4000 | 1000, (1000 - 8000) * -0.25f },
		{ 0xc000 | 9000, (9000 - 12000) * -2.0f },
		{ 0, -20 * 0.5f }, { 0x3fff, (16383 - 20) * 0.5f },
	};
	uint32_t i;

	find_unit();
	put_plane(pedestal, 0, 20);
	put_plane(pedestal, 1, 8000);
	put_plane(pedestal, 2, 12000);
	put_plane(gain, 0, 0.5);
	put_plane(gain, 1, -0.25);
	put_plane(gain, 2, -2);
	start_unit(RFPGA_UNIT_BYTES(2) | RFPGA_UNIT_JUNGFRAU, 1);
	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		put_raw(i, 2, of[i].word);
		give(i + 1, 0);
		CHECK(taken(i + 1));
		CHECK(result_is(i, of[i].value));
	}
	CHECK_EQ(rd64(base + RFPGA_UNIT_C_OUT), i);
	CHECK_EQ(rd64(base + RFPGA_UNIT_C_INVALID), 0);
	/* an unused code, a missing word, and an unknown gain */
	put_raw(i, 2, 0x8000 | 5);
	give(++i, 0);
	CHECK(taken(i));
	CHECK(isnan(result_pixel(i - 1, 0)));
	put_raw(i, 2, 0xc000);
	give(++i, 0);
	CHECK(taken(i));
	CHECK(isnan(result_pixel(i - 1, PIXELS - 1)));
	CHECK_EQ(rd64(base + RFPGA_UNIT_C_INVALID), 2 * PIXELS);
	put_pixel(gain, 5, NAN);
	put_raw(i, 2, 100);
	give(++i, 0);
	CHECK(taken(i));
	CHECK(isnan(result_pixel(i - 1, 5)));
	CHECK_EQ(result_pixel(i - 1, 4) == 40, 1);
	CHECK_EQ(result_pixel(i - 1, 6) == 40, 1);
	CHECK_EQ(rd64(base + RFPGA_UNIT_C_INVALID), 2 * PIXELS + 1);
	stop_unit();
	give_memory_back();
}

/* One gain: words of each size, saturation, and whole results. */
static void test_counting(void)
{
	static const struct { uint32_t bytes, word, saturated; float value; } of[] = {
		{ 1, 200, 256, 100 }, { 1, 200, 201, 100 }, { 1, 200, 200, NAN },
		{ 2, 40000, 40001, 20000 }, { 2, 0xffff, 0xffff, NAN },
		{ 4, 1000000, UINT32_MAX, 500000 }, { 4, UINT32_MAX, UINT32_MAX, NAN },
		{ 2, 5, 100, 3 }, { 2, 0, 100, 0 },
	};
	unsigned int i;

	find_unit();
	put_plane(pedestal, 0, 0);
	put_plane(gain, 0, 0.5);
	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		program_unit(RFPGA_UNIT_BYTES(of[i].bytes) | RFPGA_UNIT_ROUND, 1);
		wr(base + RFPGA_UNIT_SATURATED, of[i].saturated);
		put_raw(0, of[i].bytes, of[i].word);
		wr(base + RFPGA_UNIT_CONTROL, RFPGA_UNIT_START);
		give(1, 0);
		CHECK(taken(1));
		CHECK(isnan(of[i].value) ? isnan(result_pixel(0, 0)) : result_is(0, of[i].value));
		stop_unit();
	}
	/* halves round up, also negative ones; and unrounded */
	put_plane(pedestal, 0, 5);
	for (i = 0; i < 2; i++) {
		put_raw(0, 2, 0);
		start_unit(RFPGA_UNIT_BYTES(2) | (i ? 0 : RFPGA_UNIT_ROUND), 1);
		give(1, 0);
		CHECK(taken(1));
		CHECK(result_is(0, i ? -2.5f : -2));
		stop_unit();
	}
	give_memory_back();
}

/* Dark images move the pedestal of the highest gain, and have no result. */
static void test_dark(void)
{
	static const float weight[] = { 1, 0.5, 0 }, moved[] = { 60, 40, 20 };
	unsigned int i;

	find_unit();
	for (i = 0; i < 3; i++) {
		put_plane(pedestal, 0, 20);
		put_plane(pedestal, 1, 8000);
		put_plane(pedestal, 2, 12000);
		put_plane(gain, 0, 1);
		put_plane(gain, 1, -1);
		put_plane(gain, 2, -1);
		put_raw(0, 2, 60);
		put_raw(1, 2, 0x4000 | 90);	/* another gain does not count */
		put_raw(2, 2, 100);
		put_raw(3, 2, 0x4000 | 9000);
		start_unit(RFPGA_UNIT_BYTES(2) | RFPGA_UNIT_JUNGFRAU, weight[i]);
		give(4, 3);
		CHECK(taken(4));
		CHECK_EQ(rd64(base + RFPGA_UNIT_C_DARK), 2);
		CHECK_EQ(rd64(base + RFPGA_UNIT_C_OUT), 2);
		CHECK(result_is(0, 100 - moved[i]));
		CHECK(result_is(1, -1000));
		stop_unit();
	}
	give_memory_back();
}

/* A DTP sends each result once, with the number of its raw image; the rings wrap. */
static void test_stream(void)
{
	const bool locks = board.features & RFPGA_FEATURE_LOCK;
	struct rfpga_lock lock = { 0 };
	struct dtp d;
	uint32_t i;

	find_unit();
	put_plane(pedestal, 0, 0);
	put_plane(gain, 0, 0.5);
	d = sender();
	d.images = 12;
	start(&d);
	start_unit(RFPGA_UNIT_BYTES(2), 0);
	/* image 3 is dark and has no result */
	for (i = 0; i < 13; i++) {
		put_raw(i, 2, 2 * i);
		give(i + 1, 1 << 3);
		CHECK(taken(i + 1));
	}
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	for (i = 0; i < 12; i++)
		CHECK(arrived(&d, i, i + (i >= 3)));
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 12);
	CHECK_EQ(rd64(base + RFPGA_UNIT_C_OUT), 12);
	if (locks) {
		CHECK(rfpga_lock_read(lock_record(0), &lock));
		CHECK_EQ(lock.stacks, 12);
		CHECK_EQ(lock.frame, 12);
	}
	stop_unit();
	give_memory_back();
}

/* A DTP without credit: first results wait, then raw images, and none is lost. */
static void test_wait(void)
{
	struct dtp d;
	uint32_t i;

	find_unit();
	put_plane(pedestal, 0, 0);
	put_plane(gain, 0, 1);
	d = sender();
	d.slots = 1;
	start(&d);
	start_unit(RFPGA_UNIT_BYTES(2), 1);
	for (i = 0; i < RAW_SLOTS; i++)
		put_raw(i, 2, 10 + i);
	give(RAW_SLOTS, 0);
	/* one was sent, two wait, one is not processed */
	CHECK(EVENTUALLY(rd(base + RFPGA_UNIT_STATUS) ==
			 (RFPGA_UNIT_RUNNING | RFPGA_UNIT_WAITING)));
	CHECK_EQ(rd64(base + RFPGA_UNIT_C_IN), 1 + RESULT_SLOTS);
	CHECK(arrived(&d, 0, 10));
	for (i = 1; i < RAW_SLOTS; i++) {
		give_credit(0, i);
		CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == i + 1));
		CHECK(arrived(&d, 0, 10 + i));
	}
	CHECK_EQ(rd64(base + RFPGA_UNIT_C_IN), RAW_SLOTS);
	CHECK_EQ(rd(base + RFPGA_UNIT_STATUS), RFPGA_UNIT_RUNNING);
	stop_board();
	/* it does not wait for a stopped DTP */
	for (i = 0; i < 3 * RAW_SLOTS; i++) {
		give(RAW_SLOTS + i + 1, 0);
		CHECK(taken(RAW_SLOTS + i + 1));
	}
	stop_unit();
	give_memory_back();
}

/* Doorbells of another run are ignored; a number beyond the room is a fault. */
static void test_doorbell(void)
{
	find_unit();
	put_plane(pedestal, 0, 0);
	put_plane(gain, 0, 1);
	put_raw(0, 2, 1);
	start_unit(RFPGA_UNIT_BYTES(2), 1);
	CHECK_EQ(doorbell_read64(doorbell), RFPGA_GIVEN(0, 0, RUN));
	doorbell_write64(doorbell, RFPGA_GIVEN(2, 0, RUN - 1));
	pass_us(10000);
	CHECK_EQ(rd64(base + RFPGA_UNIT_C_IN), 0);
	/* the lower half first: it counts when both are there */
	doorbell_write64(doorbell, RFPGA_GIVEN(0, 0, RUN - 1));
	doorbell_write(doorbell, 1);
	pass_us(10000);
	CHECK_EQ(rd64(base + RFPGA_UNIT_C_IN), 0);
	doorbell_write(doorbell + 4, RUN << 16);
	CHECK(taken(1));
	give(1 + RAW_SLOTS + 1, 0);
	CHECK(EVENTUALLY(rd(base + RFPGA_UNIT_STATUS) == RFPGA_UNIT_FAULTED));
	CHECK_EQ(rd(base + RFPGA_UNIT_FAULT_CAUSE), RFPGA_FAULT_CONFIG);
	CHECK_EQ(rd64(base + RFPGA_UNIT_FAULT_ADDR), doorbell);
	CHECK_EQ(rd64(base + RFPGA_UNIT_C_IN), 1);
	give_memory_back();
}

/* Addresses outside on-board memory are neither read nor written. */
static void test_fault(void)
{
	static const uint32_t regs[] = {
		RFPGA_UNIT_RAW, RFPGA_UNIT_RESULT, RFPGA_UNIT_PEDESTAL, RFPGA_UNIT_GAIN,
	};
	const uint64_t beyond = up(board.memory);
	unsigned int i;

	find_unit();
	if (beyond > most(board.offset_bits))
		skip("needs an offset of %llu, LIMITS allow %llu", (unsigned long long)beyond,
		     (unsigned long long)most(board.offset_bits));
	for (i = 0; i < sizeof(regs) / sizeof(regs[0]); i++) {
		program_unit(RFPGA_UNIT_BYTES(2) | RFPGA_UNIT_JUNGFRAU, 1);
		wr64(base + regs[i], beyond);
		wr(base + RFPGA_UNIT_CONTROL, RFPGA_UNIT_START);
		give(1, 0);
		CHECK(EVENTUALLY(rd(base + RFPGA_UNIT_STATUS) == RFPGA_UNIT_FAULTED));
		CHECK_EQ(rd(base + RFPGA_UNIT_FAULT_CAUSE), RFPGA_FAULT_SOURCE);
		CHECK_EQ(rd64(base + RFPGA_UNIT_FAULT_ADDR), beyond);
		CHECK_EQ(rd64(base + RFPGA_UNIT_C_IN), 0);
	}
	/* part of an image is not enough */
	if (board.align > 4)
		return;
	program_unit(RFPGA_UNIT_BYTES(2), 1);
	wr64(base + RFPGA_UNIT_RESULT, board.memory - 4);
	wr(base + RFPGA_UNIT_CONTROL, RFPGA_UNIT_START);
	give(1, 0);
	CHECK(EVENTUALLY(rd(base + RFPGA_UNIT_STATUS) == RFPGA_UNIT_FAULTED));
	CHECK_EQ(rd64(base + RFPGA_UNIT_FAULT_ADDR), board.memory);
}

static const struct test tests[] = {
	{ "registers", "registers, start, stop, what a reset leaves", test_registers },
	{ "config", "refused: configurations that make no sense", test_config },
	{ "jungfrau", "three gains, and invalid pixels", test_jungfrau },
	{ "counting", "one gain, words of each size, saturation, rounding", test_counting },
	{ "dark", "dark images move the pedestal and have no result", test_dark },
	{ "stream", "a DTP sends each result once", test_stream },
	{ "wait", "results wait for a DTP without credit", test_wait },
	{ "doorbell", "doorbells of another run, and of too many images", test_doorbell },
	{ "fault", "addresses outside on-board memory are not accessed", test_fault },
};

const struct suite unit_suite = SUITE("unit", tests);
