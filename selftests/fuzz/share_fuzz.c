// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The library's consumers, observers and producers, while an attacker writes into their shared
 * memory: they access only their mappings, and every call ends. An input is
 * a list of operations, of the attacker and of programs that use the library as they may.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "lib/tests/fake-driver.h"
#include "lib/stream.h"

#define BUFFER	(96 << 10)
#define OTHER	(48 << 10)	/* of "l" and "p" */
#define HELD	6
#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static uint8_t *memory[3];	/* "b", "l", "p"; "secret" belongs to no stream */
static const uint64_t length[3] = { BUFFER, OTHER, OTHER };

static const uint8_t *input;
static size_t left;

static struct rashpa_stream *producer, *reader;
static struct rashpa_stack held[HELD], filling;
static unsigned int n_held;
static bool fills;

static uint64_t number(size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes && left; i++, left--)
		value |= (uint64_t)*input++ << 8 * i;
	return value;
}

/* --- the attacker --- */

/* A value that an attacker may choose: near an edge, or any. */
static uint64_t value(void)
{
	static const uint64_t edge[] = {
		0, 1, 64, 4096, OTHER, BUFFER, INT32_MAX, UINT32_MAX, INT64_MAX,
		UINT64_C(1) << 40, UINT64_C(1) << 50, UINT64_MAX - 63, UINT64_MAX,
	};
	uint64_t kind = number(1);

	if (kind < 2 * COUNT(edge))
		return edge[kind / 2] - kind % 2;
	return number(kind % 9);
}

static void overwrite(void)
{
	const uint64_t where = number(1), word = number(2);
	const struct rashpa_stream_header *h = (const struct rashpa_stream_header *)memory[0];
	uint64_t at, new;
	unsigned int which = 0;

	switch (where % 9) {
	case 0:
		which = where / 8 % 3;
		at = word;
		break;
	case 1:
		at = h->process_offset + word % (4 * sizeof(struct rashpa_stream_process));
		break;
	case 2:
	case 3:
		which = *h->lock_name != 0;
		at = h->lock_offset + word % (2 * RFPGA_LOCK_SIZE);
		break;
	case 4:
		at = h->record_offset + word % (2 * sizeof(struct rashpa_stream_record));
		break;
	case 5:
		at = h->map_offset + word % 64;
		break;
	case 6:
		at = h->work_offset + word % sizeof(struct rashpa_stream_work);
		break;
	case 7:
		if (where & 0x20)
			at = RASHPA_STREAM_TABLE + word % sizeof(struct rashpa_stream_table);
		else
			at = h->claim_offset + word % (3 * 8 * RASHPA_STREAM_PLACES);
		break;
	default:
		at = word % sizeof(*h);
	}
	new = value();
	if (!(where & 0x80))
		at &= ~UINT64_C(3);
	if (at <= length[which] - sizeof(new))
		memcpy(memory[which] + at, &new, where & 0x40 ? 4 : 8);
}

/* A name that the header may not have, or one that it may. */
static void rename_memory(void)
{
	static const char *const names[] = {
		"secret", "p", "l", "b", "", "socket", ".", "..", "../memory", "/etc/passwd", "%s%n",
	};
	struct rashpa_stream_header *h = (struct rashpa_stream_header *)memory[0];
	const uint64_t how = number(1);
	char *name = how & 0x80 ? h->lock_name : h->payload_name;

	strncpy(name, names[how % 0x80 % COUNT(names)], RASHPA_STREAM_NAME);
	if (how & 0x40)
		name[number(1) % RASHPA_STREAM_NAME] = number(1);
}

/* --- programs --- */

static void begin_producer(void)
{
	const uint64_t how = number(1);
	const struct rashpa_stream_process process[] = {
		{ .function = how & 1, .width = 32, .height = 16, .messages = 3 },
		{ .function = how & 1, .fpga = how >> 1 & 1, .y = 16, .width = 32, .height = 16,
		  .doorbell_offset = 4096, .messages = 70 },
	};
	struct rashpa_stream_plan plan = {
		.header = {
			.width = 32, .height = 32, .pixel = RASHPA_PIXEL_U16, .bunch = 3,
			.slots = 3, .policy = how >> 2 & 3, .images = how & 0x10 ? 100 : 0,
		},
		.process = process, .processes = 2,
		.flags = (how & 0x20 ? RASHPA_PLAN_META : 0) |
			 (how & 0x80 ? RASHPA_PLAN_RESUME : 0),
		.close_after = number(1),
	};

	rashpa_stream_close(producer);
	producer = NULL;
	fills = false;
	strcpy(plan.header.lock_name, how & 0x40 ? "l" : "");
	strcpy(plan.header.payload_name, number(1) & 1 ? "p" : "");
	if (!rashpa_stream_create("b", &plan, &producer))
		rashpa_stream_start(producer, 1, 0);
}

static void begin_reader(void)
{
	static const unsigned int flags[] = {
		0, RASHPA_STREAM_OBSERVE, RASHPA_STREAM_FROM_START, RASHPA_STREAM_WRITE,
		RASHPA_STREAM_NO_DATA,
		RASHPA_STREAM_OBSERVE | RASHPA_STREAM_FROM_START,
		RASHPA_STREAM_OBSERVE | RASHPA_STREAM_LATEST,
		RASHPA_STREAM_LOSE,
	};
	const uint64_t how = number(1);
	const struct rashpa_place_options options = {
		.name = how & 0x80 ? "other" : NULL, .flags = flags[how % 0x40 % COUNT(flags)],
		.workers = how & 0x40 ? 3 : 1,
	};

	n_held = 0;
	rashpa_stream_close(reader);
	reader = NULL;
	if (!rashpa_stream_open_as("b", &options, &reader))
		rashpa_stream_begin(reader, 0);
}

/* Read the pixels, as a program does. */
static void look_at(const uint8_t *data, const struct rashpa_stack *st)
{
	volatile const uint8_t *pixel = data;

	(void)pixel[0];
	(void)pixel[(st->height - 1) * st->line_stride + (uint64_t)st->width * st->pixel_bytes - 1];
}

static void take(void)
{
	struct rashpa_stack *st = &held[n_held];

	if (n_held == HELD || rashpa_stream_next(reader, st, 0) != 1)
		return;
	n_held++;
	if (!st->images || !st->data)
		return;
	look_at(st->data, st);
	look_at((uint8_t *)st->data + (st->images - 1) * st->image_stride, st);
}

static void use(void)
{
	const unsigned int which = number(1) % HELD;
	struct rashpa_stack *st = &held[which];
	struct rashpa_image image;

	if (which >= n_held)
		return;
	if (!rashpa_stack_image(st, number(1) % (st->images + 1), &image) && image.data)
		look_at(image.data, st);
	rashpa_stack_missing(st, number(1) % 3, number(1));
	rashpa_stack_intact(st);
	/* it is ours until it is given back, whatever is in there */
	if (st->images && st->data)
		look_at(st->data, st);
}

static void give_back(void)
{
	const uint64_t how = number(1);
	const unsigned int which = how % HELD;

	if (which >= n_held)
		return;
	if (how & 0x40)
		rashpa_stream_done(reader, &held[which]);
	if (how & 0x80)
		return;
	rashpa_stream_release(reader, &held[which]);
	held[which] = held[--n_held];
}

static void tell(void)
{
	struct rashpa_stream_work work = { .engine = "cpu", .stages = number(1) };

	if (work.stages & 1)
		rashpa_stream_tell(reader, &work);
	if (rashpa_stream_told(reader, &work))
		return;
	must(work.stages <= RASHPA_STREAM_STAGES && strlen(work.engine) < RASHPA_STREAM_WORD);
	for (uint32_t i = 0; i < work.stages; i++)
		must(strlen(work.stage[i].name) < RASHPA_STREAM_WORD);
}

static void ask(void)
{
	const uint32_t index = number(1) % (RASHPA_STREAM_PLACES + 1);
	struct rashpa_stream_header count;
	struct rashpa_stream_clock clock;
	struct rashpa_stream_stat stat;
	struct rashpa_place_info info;
	struct rfpga_lock lock;

	rashpa_stream_get_clock(reader, &clock);
	if (!rashpa_stream_get_place(reader, index, &info))
		must(memchr(info.name, 0, sizeof(info.name)) && info.workers <= RASHPA_STREAM_WORKERS);

	rashpa_stream_get_stat(reader, &stat);
	rashpa_stream_lock(reader, number(1), &lock);
	rashpa_stream_process_at(reader, number(1));
	rashpa_stream_await_end(reader, &count, 0);
	rashpa_stream_fd(reader);
	tell();
}

static void fill(void)
{
	const uint64_t how = number(1);
	const struct rashpa_image image = { .frame = how };

	if (!fills)
		fills = rashpa_stream_slot(producer, &filling, 0) == 1;
	if (!fills)
		return;
	memset(filling.data, how, filling.image_stride * filling.images);
	rashpa_stack_describe(&filling, how & 1, how >> 1 & 3, &image);
	rashpa_stream_valid(&filling, how & 1, number(1));
	if (!(how & 0x80))
		return;
	rashpa_stream_publish(producer, &filling);
	fills = false;
}

static void count(void)
{
	struct rashpa_stream_stat stat;

	rashpa_stream_complete(producer);
	rashpa_stream_get_stat(producer, &stat);
	rashpa_stream_meta(producer, 1);
	if (number(1) & 1)
		rashpa_stream_end(producer, rashpa_stream_get_header(producer));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const names[] = { "b", "l", "p" };

	if (fake_driver_load())
		abort();
	atexit(fake_driver_unload);
	for (int i = 0; i < 3; i++) {
		memory[i] = fake_buffer(names[i], length[i]);
		if (!memory[i])
			abort();
		/* all that may write "b" may use the others, and not what follows */
		fake_permit(names[i], 0660);
	}
	if (!fake_buffer("secret", OTHER))
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = data;
	left = size;
	for (int i = 0; i < 3; i++)
		memset(memory[i], 0, length[i]);
	fake_has_producer = true;
	begin_producer();
	for (uint64_t n = number(1) % 8; n && left; n--)
		overwrite();
	if (number(1) & 1)
		rename_memory();
	begin_reader();
	while (left) {
		switch (number(1) % 16) {
		case 0:
			begin_producer();
			break;
		case 1:
			begin_reader();
			break;
		case 2:
			fake_has_producer = !fake_has_producer;
			break;
		case 3:
			if (reader)
				ask();
			break;
		case 4:
			if (producer)
				count();
			break;
		case 5:
		case 6:
			if (producer)
				fill();
			break;
		case 7:
		case 8:
			if (reader)
				take();
			break;
		case 9:
			use();
			break;
		case 10:
			if (reader)
				give_back();
			break;
		case 11:
			rename_memory();
			break;
		default:
			overwrite();
		}
	}
	n_held = 0;
	rashpa_stream_close(reader);
	rashpa_stream_close(producer);
	reader = producer = NULL;
	must(!fake_mapped("secret", false) && !fake_mapped("secret", true));
	return 0;
}
