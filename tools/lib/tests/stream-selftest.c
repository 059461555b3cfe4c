// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=1 run=build/tools/stream-selftest */
/* Tests of the library's checks of streams, without the driver: TAP. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "lib/tests/fake-driver.h"
#include "lib/stream.h"
#include <rashpa-board.h>
#include "tests/tap.h"

#define LENGTH		(UINT64_C(64) << 20)
#define STRIDE		(UINT64_C(8) << 20)	/* bytes between the slots of good_stream() */
#define HEADER		((uint64_t)sizeof(struct rashpa_stream_header))
#define WORK		sizeof(struct rashpa_stream_work)
#define PROCESSES	2
#define FIRST		((uint64_t)RASHPA_STREAM_TABLES)	/* after the header and the places */

/* 7 slots of 8 MiB, their metadata, records and maps: 58740720 bytes with all in front */
static void good_stream(struct rashpa_stream_header *h)
{
	*h = (struct rashpa_stream_header) {
		.magic = RASHPA_STREAM_MAGIC,
		.generation = 3,
		.run = 1,
		.state = RASHPA_STREAM_RUNNING,
		.width = 1024, .height = 512, .pixel = RASHPA_PIXEL_U16,
		.bunch = 8,
		.images = 100, .first_stack = 4, .credit = 5,
		.sampling = 1, .dataset_images = 10,
		.processes = PROCESSES, .modules = 2, .locks = 2,
		.record_size = sizeof(struct rashpa_stream_record),
	};
	if (stream_layout(h, 128, true, LENGTH, 0))
		ok(false, "good-stream: %s", rashpa_reason());
}

static void good_processes(struct rashpa_stream_process process[PROCESSES])
{
	process[0] = (struct rashpa_stream_process) {
		.function = RASHPA_STREAM_FPGA,
		.width = 1024, .height = 256, .messages = 100,
	};
	process[1] = (struct rashpa_stream_process) {
		.function = RASHPA_STREAM_FPGA,
		.number = 1, .vector = 1, .y = 256, .width = 1024, .height = 256,
		.origin_y = 256, .module = 1, .lock = 1,
		.doorbell_offset = 4096 + RFPGA_DB_TAGGED, .message = 100, .messages = 28,
	};
}

/* A value of a field: is it believed? The words are little-endian, as the format has them. */
struct value {
	const char *field;
	size_t offset, size;
	uint64_t value;
	bool good;
};

/* --- the header --- */

#define VALUE(name, value, good)	{ #name, offsetof(struct rashpa_stream_header, name), \
		sizeof(((struct rashpa_stream_header *)0)->name), value, good }
#define IN(name, value)		VALUE(name, value, true)
#define OUT(name, value)	VALUE(name, value, false)

static const struct value header_values[] = {
	IN(header_size, HEADER), OUT(header_size, HEADER - 8), OUT(header_size, HEADER + 4),
	OUT(header_size, 0), OUT(header_size, UINT32_MAX - 7),
	/* the nearest table begins after it */
	IN(header_size, 2048), OUT(header_size, 2056),
	IN(process_size, 72), OUT(process_size, 64), OUT(process_size, 76), IN(process_size, 80),
	OUT(process_size, 0), OUT(process_size, UINT32_MAX - 7),
	IN(module_size, 32), OUT(module_size, 24), OUT(module_size, 36), IN(module_size, 40),
	OUT(module_size, 0), OUT(module_size, UINT32_MAX - 7),
	IN(state, 0), IN(state, 3), OUT(state, 4), OUT(state, UINT32_MAX),

	OUT(width, 0), IN(width, 1), IN(width, 1024), OUT(width, 1025), OUT(width, UINT32_MAX),
	OUT(height, 0), IN(height, 1), IN(height, 512), OUT(height, 513), OUT(height, UINT32_MAX),
	OUT(pixel, 0), IN(pixel, RASHPA_PIXEL_U8), OUT(pixel, RASHPA_PIXEL_U32),
	IN(pixel, RASHPA_PIXEL_I16), OUT(pixel, RASHPA_PIXEL_F64), OUT(pixel, 11),
	OUT(pixel, UINT32_MAX),
	IN(bit_depth, 16), OUT(bit_depth, 17), OUT(bit_depth, UINT32_MAX),
	IN(big_endian, 1), OUT(big_endian, 2), IN(live, 1), OUT(live, 2),
	IN(unit, 1), OUT(unit, 2),
	OUT(bunch, 0), OUT(bunch, 7), OUT(bunch, 9), OUT(bunch, UINT32_MAX),
	OUT(slots, 0), IN(slots, 1), IN(slots, 7), OUT(slots, 8), OUT(slots, INT32_MAX),
	OUT(slots, 1u << 31), OUT(slots, UINT32_MAX),
	IN(policy, 2), OUT(policy, 3), OUT(policy, UINT32_MAX),
	OUT(sampling, 0), IN(sampling, UINT32_MAX), OUT(phase, 1), OUT(phase, UINT32_MAX),
	OUT(line_stride, 0), OUT(line_stride, 2046), OUT(line_stride, 2047),
	IN(line_stride, 2048), OUT(line_stride, 2049), OUT(line_stride, 2050),
	OUT(line_stride, UINT64_MAX - 1),
	OUT(image_stride, 0), OUT(image_stride, (1 << 20) - 2), IN(image_stride, 1 << 20),
	OUT(image_stride, (1 << 20) + 1), OUT(image_stride, (1 << 20) + 2),
	OUT(image_stride, UINT64_MAX - 1),
	OUT(slot_stride, 0), OUT(slot_stride, STRIDE - 2), IN(slot_stride, STRIDE),
	OUT(slot_stride, STRIDE + 1), IN(slot_stride, STRIDE + 2), OUT(slot_stride, LENGTH),
	OUT(slot_stride, UINT64_MAX - 1), OUT(slot_stride, UINT64_MAX / 6 * 2),

	IN(images, 0), IN(images, 1), IN(images, (UINT64_C(1) << 56) - 1),
	OUT(images, UINT64_C(1) << 56), OUT(images, UINT64_MAX),
	IN(first_stack, 0), IN(first_stack, 5), OUT(first_stack, 6), OUT(first_stack, UINT64_MAX),
	OUT(credit, 3), IN(credit, 4), IN(credit, 17), OUT(credit, 18), OUT(credit, UINT64_MAX),
	/* places that joined */
	IN(credit, UINT64_C(7) << STREAM_NUMBER_BITS | 4),

	OUT(processes, 0), IN(processes, 1024), OUT(processes, 1025), OUT(processes, UINT32_MAX),
	OUT(modules, 0), IN(modules, 1024), OUT(modules, 1025), OUT(modules, UINT32_MAX),
	OUT(locks, 0), IN(locks, 64), OUT(locks, 65), OUT(locks, UINT32_MAX),

	/* places: between the header and the end of the buffer */
	OUT(data_offset, 0), OUT(data_offset, FIRST - 4096), IN(data_offset, FIRST),
	OUT(data_offset, FIRST - 1), OUT(data_offset, FIRST + 8),
	IN(data_offset, LENGTH - 7 * STRIDE), OUT(data_offset, LENGTH - 7 * STRIDE + 4096),
	OUT(data_offset, LENGTH), OUT(data_offset, UINT64_MAX - 4095),
	OUT(process_offset, 0), OUT(process_offset, HEADER), OUT(process_offset, FIRST - 8),
	IN(process_offset, FIRST), OUT(process_offset, FIRST + 4), IN(process_offset, LENGTH - 144),
	OUT(process_offset, LENGTH - 136), OUT(process_offset, UINT64_MAX - 7),
	OUT(module_offset, 0), OUT(module_offset, HEADER), OUT(module_offset, FIRST - 8),
	IN(module_offset, FIRST), OUT(module_offset, FIRST + 4),
	IN(module_offset, LENGTH - 64), OUT(module_offset, LENGTH - 56),
	OUT(module_offset, UINT64_MAX - 7),
	OUT(lock_offset, 0), OUT(lock_offset, HEADER), OUT(lock_offset, FIRST - 64),
	IN(lock_offset, FIRST), OUT(lock_offset, FIRST + 8), IN(lock_offset, LENGTH - 128), OUT(lock_offset, LENGTH - 64),
	OUT(lock_offset, UINT64_MAX - 63),

	IN(meta_slot, 0), OUT(meta_slot, 8), OUT(meta_slot, 448), IN(meta_slot, 512),
	OUT(meta_slot, 576), OUT(meta_slot, UINT64_MAX - 511),
	OUT(meta_offset, 0), OUT(meta_offset, HEADER), OUT(meta_offset, FIRST - 64),
	IN(meta_offset, FIRST), OUT(meta_offset, FIRST + 8), IN(meta_offset, LENGTH - 7168),
	OUT(meta_offset, LENGTH - 7104), OUT(meta_offset, UINT64_MAX - 63),
	IN(record_size, 0), OUT(record_size, 8), OUT(record_size, 120), IN(record_size, 128),
	OUT(record_size, 129), IN(record_size, 136), OUT(record_size, UINT64_MAX - 7),
	OUT(record_offset, 0), OUT(record_offset, HEADER), OUT(record_offset, FIRST - 8),
	IN(record_offset, FIRST), OUT(record_offset, FIRST + 4), IN(record_offset, LENGTH - 896),
	OUT(record_offset, LENGTH - 888), OUT(record_offset, UINT64_MAX - 7),
	IN(map_slot, 0), IN(map_slot, 16), OUT(map_slot, 20), IN(map_slot, 24),
	OUT(map_slot, UINT64_MAX - 7), OUT(map_slot, UINT64_MAX / 7),
	OUT(map_offset, 0), OUT(map_offset, HEADER), OUT(map_offset, FIRST - 8),
	IN(map_offset, FIRST), OUT(map_offset, FIRST + 4), IN(map_offset, LENGTH - 112), OUT(map_offset, LENGTH - 104),
	OUT(map_offset, UINT64_MAX - 7),
	IN(work_offset, 0), OUT(work_offset, 8), OUT(work_offset, HEADER - 8),
	IN(work_offset, HEADER), OUT(work_offset, HEADER + 4), IN(work_offset, 4032 - WORK),
	OUT(work_offset, 4040 - WORK), OUT(work_offset, FIRST - 8), IN(work_offset, FIRST),
	IN(work_offset, LENGTH - WORK),
	OUT(work_offset, LENGTH - WORK + 8), OUT(work_offset, UINT64_MAX - 7),
	OUT(claim_offset, 0), OUT(claim_offset, HEADER), OUT(claim_offset, FIRST - 8),
	IN(claim_offset, FIRST), OUT(claim_offset, FIRST + 4), IN(claim_offset, LENGTH - 7 * 128),
	OUT(claim_offset, LENGTH - 7 * 128 + 8), OUT(claim_offset, UINT64_MAX - 7),
	IN(content, RASHPA_CONTENT_PEAKS), IN(content, UINT32_MAX),
};

static void judge(const struct value *v, int error)
{
	const bool good = v->good ? !error : error == -EPROTO && *rashpa_reason();

	ok(good, "judge: %s = %#" PRIx64 "%s%s", v->field, v->value, error ? ": " : "",
	   error ? rashpa_reason() : "");
}

static void test_header(void)
{
	struct rashpa_stream_header h;

	good_stream(&h);
	ok(!stream_check(&h, LENGTH), "good-header: a good header");
	for (size_t i = 0; i < sizeof(header_values) / sizeof(header_values[0]); i++) {
		const struct value *v = &header_values[i];

		good_stream(&h);
		memcpy((char *)&h + v->offset, &v->value, v->size);
		judge(v, stream_check(&h, LENGTH));
	}
}

/* Fields that count only with others. */
static void test_together(void)
{
	struct rashpa_stream_header h;

	good_stream(&h);
	h.sampling = 2;
	h.phase = 1;
	ok(!stream_check(&h, LENGTH), "one-image-two: one image of two, and the other one");
	good_stream(&h);
	h.meta_slot = 0;
	h.live = 1;
	ok(stream_check(&h, LENGTH) && strstr(rashpa_reason(), "RASHPA_PLAN_META"),
	   "live-stream-without: a live stream without metadata: %s", rashpa_reason());
	h.live = 0;
	h.policy = RASHPA_STREAM_DROP;
	ok(!stream_check(&h, LENGTH), "stream-drops-records: a stream that drops, whose records name the images");
	h.record_size = 0;
	ok(stream_check(&h, LENGTH), "one-nothing: one without such records: %s", rashpa_reason());

	/* the offset of an absent table does not matter */
	good_stream(&h);
	h.meta_slot = h.record_size = h.map_slot = 0;
	h.meta_offset = h.record_offset = h.map_offset = UINT64_MAX;
	ok(!stream_check(&h, LENGTH), "metadata-records-maps: neither metadata nor records nor maps");

	good_stream(&h);
	h.slots = INT32_MAX;
	h.slot_stride = UINT64_C(1) << 62;
	ok(stream_check(&h, UINT64_MAX - 1), "buffer: more than any buffer could have: %s",
	   rashpa_reason());
	good_stream(&h);
	h.line_stride = h.image_stride = h.slot_stride = UINT64_MAX;
	h.pixel = RASHPA_PIXEL_U8;
	ok(stream_check(&h, UINT64_MAX - 1), "strides-lead-around: strides that lead around the world: %s",
	   rashpa_reason());

	/* numbers of frames do not wrap */
	good_stream(&h);
	h.images = 0;
	h.first_stack = h.credit = (UINT64_C(1) << 40) - 1;
	ok(!stream_check(&h, LENGTH), "late-stack: a late stack");
	h.first_stack = h.credit = UINT64_C(1) << 40;
	ok(stream_check(&h, LENGTH), "one-late: one that is too late: %s", rashpa_reason());
	h.first_stack = 0;
	h.credit = (UINT64_C(1) << 41) - 1;
	ok(!stream_check(&h, LENGTH), "stacks-consumed: many stacks were consumed");
	h.credit = UINT64_C(1) << 41;
	ok(stream_check(&h, LENGTH), "too-many: too many: %s", rashpa_reason());
}

static void test_names(void)
{
	static const char *const bad[] = {
		"\033[2J", "\xff", "../x", ".x", "a/b", "a b", "a\nb", "a,b",
	};
	struct rashpa_stream_header h;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		good_stream(&h);
		strcpy(h.lock_name, bad[i]);
		ok(stream_check(&h, LENGTH) && !strstr(rashpa_reason(), bad[i]),
		   "lock-name-number-refused: lock_name number %zu is refused: %s", i, rashpa_reason());
		good_stream(&h);
		strcpy(h.payload_name, bad[i]);
		ok(stream_check(&h, LENGTH) && !strstr(rashpa_reason(), bad[i]),
		   "payload-name-number-refused: payload_name number %zu is refused: %s", i, rashpa_reason());
	}
	good_stream(&h);
	memset(h.lock_name, 'x', sizeof(h.lock_name));
	ok(stream_check(&h, LENGTH), "name-without-end: a name without an end: %s", rashpa_reason());
	good_stream(&h);
	memset(h.payload_name, 'x', sizeof(h.payload_name));
	ok(stream_check(&h, LENGTH), "name/name-without-end: a name without an end: %s", rashpa_reason());
	good_stream(&h);
	memset(h.dataset, 'x', sizeof(h.dataset));
	ok(stream_check(&h, LENGTH), "name-without-end-2: a name without an end: %s", rashpa_reason());
	strcpy(h.dataset, "Lysozyme, 2 \xc2\xb5m");
	ok(!stream_check(&h, LENGTH), "dataset-name-people: a dataset has a name for people");
	strcpy(h.dataset, "\033[2J");
	ok(stream_check(&h, LENGTH), "none-terminal: but none for their terminal: %s", rashpa_reason());

	good_stream(&h);
	strcpy(h.lock_name, "Ring-0_1.locks");
	h.lock_offset = 1;
	ok(!stream_check(&h, LENGTH), "place-other-memory: a place in other memory is not asked of this one");
	good_stream(&h);
	strcpy(h.payload_name, "p");
	h.data_offset = UINT64_C(1) << 40;
	ok(!stream_check(&h, LENGTH), "same-payload: the same with the payload");
	h.data_offset++;
	ok(stream_check(&h, LENGTH), "begins-page: which begins with a page: %s", rashpa_reason());
	h.data_offset = UINT64_MAX - 4095;
	ok(stream_check(&h, LENGTH), "end: and has an end: %s", rashpa_reason());
}

/* --- processes --- */

#undef VALUE
#define VALUE(name, value, good)	{ #name, offsetof(struct rashpa_stream_process, name), \
		sizeof(((struct rashpa_stream_process *)0)->name), value, good }

/* values of the second process */
static const struct value process_values[] = {
	IN(function, 0), OUT(function, 2), OUT(function, UINT32_MAX),
	IN(fpga, 0xffff), OUT(fpga, 0x10000), OUT(fpga, UINT32_MAX),
	IN(vector, 0x7ff), OUT(vector, 0x800), OUT(vector, UINT32_MAX),
	OUT(x, 1), OUT(x, UINT32_MAX), IN(y, 256), OUT(y, 257), OUT(y, UINT32_MAX),
	OUT(width, 0), IN(width, 1), OUT(width, 1025), OUT(width, UINT32_MAX),
	OUT(height, 0), IN(height, 1), OUT(height, 257), OUT(height, UINT32_MAX),
	IN(origin_x, UINT32_MAX - 1024), OUT(origin_x, UINT32_MAX - 1023),
	OUT(origin_x, UINT32_MAX),
	IN(origin_y, UINT32_MAX - 256), OUT(origin_y, UINT32_MAX - 255), OUT(origin_y, UINT32_MAX),
	IN(module, 1), OUT(module, 2), OUT(module, UINT32_MAX),
	OUT(lock, 0), IN(lock, 1), OUT(lock, 2), OUT(lock, UINT32_MAX),
	IN(doorbell_offset, 8), OUT(doorbell_offset, 4), OUT(doorbell_offset, 1),
	IN(message, 100), OUT(message, 101), OUT(message, UINT32_MAX),
	IN(messages, 28), OUT(messages, 29), OUT(messages, UINT32_MAX), IN(messages, 0),
	IN(message_lines, 1), IN(line_messages, 1),
};

static void test_processes(void)
{
	struct rashpa_stream_process process[PROCESSES];
	struct rashpa_stream_header h;

	good_stream(&h);
	good_processes(process);
	ok(!stream_check_processes(&h, process), "good-processes: good processes");
	for (size_t i = 0; i < sizeof(process_values) / sizeof(process_values[0]); i++) {
		const struct value *v = &process_values[i];

		good_processes(process);
		memcpy((char *)&process[1] + v->offset, &v->value, v->size);
		judge(v, stream_check_processes(&h, process));
	}
	good_processes(process);
	process[0].width = 0;
	ok(stream_check_processes(&h, process), "first-one-looked: the first one is looked at as well: %s",
	   rashpa_reason());
	good_processes(process);
	process[1].lock = 0;
	process[0].function = RASHPA_STREAM_SOFTWARE;
	ok(stream_check_processes(&h, process), "program-shares-no: a program shares no lock record with a function: %s",
	   rashpa_reason());
	process[1].function = RASHPA_STREAM_SOFTWARE;
	ok(!stream_check_processes(&h, process), "programs-share-one: programs share one");
	h.map_slot = 0;
	process[0].messages = process[1].message = process[1].messages = 0;
	ok(!stream_check_processes(&h, process), "no-map-no-messages: no map, no messages");
	process[1].messages = 1;
	ok(stream_check_processes(&h, process), "no-map-one: no map, and one: %s", rashpa_reason());
}

/* --- places --- */

/* Where the last part of what is kept ends. */
static uint64_t end_of(const struct rashpa_stream_header *h)
{
	return h->claim_offset + UINT64_C(8) * RASHPA_STREAM_PLACES * h->slots;
}

static void test_layout(void)
{
	struct rashpa_stream_header h, one;
	uint64_t end;

	good_stream(&h);
	ok(h.slots == 7 && h.process_offset == FIRST && h.module_offset == FIRST + 2 * 72 &&
	   h.lock_offset == FIRST + 4096 && h.data_offset == FIRST + 8192 && h.line_stride == 2048 &&
	   h.image_stride == 1 << 20 && h.slot_stride == STRIDE,
	   "tables-lock-records: tables, lock records, slots");
	ok(h.meta_offset == h.data_offset + 7 * STRIDE && h.meta_slot == 512 &&
	   h.record_offset == h.meta_offset + UINT64_C(2) * 7 * 512 && h.map_slot == 16 &&
	   h.map_offset == h.record_offset + UINT64_C(7) * 128 &&
	   h.claim_offset == h.map_offset + UINT64_C(7) * 16, "known: and what is known of them");

	/* as many as fit, and not one more */
	end = end_of(&h);
	one = h;
	one.slots = 0;
	ok(!stream_layout(&one, 128, true, end, 0) && one.slots == 7 &&
	   !stream_check(&one, end) && end_of(&one) == end, "7-slots-fill: 7 slots fill a buffer");
	one.slots = 0;
	ok(!stream_layout(&one, 128, true, end - 1, 0) && one.slots == 6 &&
	   !stream_check(&one, end - 1), "one-byte-less: one byte less holds 6 slots");
	one.slots = 7;
	ok(stream_layout(&one, 128, true, end - 1, 0) == -ENOSPC, "7-refused: 7 are refused: %s",
	   rashpa_reason());
	one.slots = 0;
	ok(stream_layout(&one, 128, true, 2 * STRIDE, 0) == -ENOSPC, "fewer-two: fewer than two: %s",
	   rashpa_reason());
	one.slots = 1;
	ok(!stream_layout(&one, 128, true, 2 * STRIDE, 0) && one.slots == 1, "one-wanted: one that is wanted");
	one.slots = 0;
	ok(stream_layout(&one, 128, true, 4096, 0) == -ENOSPC &&
	   stream_layout(&one, 128, true, 0, 0) == -ENOSPC, "no-room-tables: no room for the tables: %s",
	   rashpa_reason());

	one = h;
	one.width = one.height = one.bunch = UINT32_MAX;
	one.slots = 0;
	ok(stream_layout(&one, 128, true, LENGTH, 0) == -ENOSPC, "images-larger-anything: images larger than anything: %s",
	   rashpa_reason());
	one = h;
	one.slots = UINT32_MAX;
	ok(stream_layout(&one, UINT32_MAX / 2, true, LENGTH, 0) == -ENOSPC,
	   "fit: more than fit: %s", rashpa_reason());
	one = h;
	one.record_size = 0;
	one.slots = 0;
	ok(!stream_layout(&one, 0, false, LENGTH, 0) && !one.meta_offset && !one.meta_slot &&
	   !one.record_offset && !one.map_offset && !one.map_slot && !stream_check(&one, LENGTH),
	   "nothing-kept: nothing is kept of them");
	one.slots = 0;
	ok(!stream_layout(&one, 1, false, LENGTH, 0) && one.map_slot == 8 &&
	   !stream_layout(&one, 64, false, LENGTH, 0) && one.map_slot == 8 &&
	   !stream_layout(&one, 65, false, LENGTH, 0) && one.map_slot == 16,
	   "bit-message-words: a bit for each message, in words");
}

static void test_layout_elsewhere(void)
{
	struct rashpa_stream_header h;
	uint64_t end;

	good_stream(&h);
	strcpy(h.lock_name, "locks");
	h.slots = 0;
	ok(!stream_layout(&h, 128, true, LENGTH, 0) && !h.lock_offset && h.data_offset == FIRST + 4096 &&
	   !stream_check(&h, LENGTH), "lock-records-other: lock records in other memory");
	good_stream(&h);
	strcpy(h.payload_name, "payload");
	h.slots = 0;
	ok(!stream_layout(&h, 128, true, LENGTH, 9 * STRIDE + 1) && h.slots == 9 &&
	   !h.data_offset && h.meta_offset == FIRST + 8192 && !stream_check(&h, LENGTH),
	   "slots-other-memory: slots in other memory");
	h.slots = 0;
	ok(!stream_layout(&h, 128, true, FIRST + 8192 + 3 * (2 * 512 + 128 + 16 + 128), 9 * STRIDE) &&
	   h.slots == 3, "kept-fit-well: metadata, records and maps must fit as well");
	h.slots = 10;
	ok(stream_layout(&h, 128, true, LENGTH, 10 * STRIDE - 1) == -ENOSPC,
	   "other-memory: more than the other memory has: %s", rashpa_reason());
	h.record_size = 0;
	h.slots = 0;
	ok(!stream_layout(&h, 0, false, LENGTH, 9 * STRIDE) && h.slots == 9,
	   "slots-other-memory-nothing: slots in other memory, and nothing kept of them");
	h.slots = 0;
	end = FIRST + 8192 + 9 * 128;
	ok(!stream_layout(&h, 0, false, end, 9 * STRIDE) && h.slots == 9 &&
	   !stream_check(&h, end), "buffer-no-tables: in a buffer that has no more than the tables");
	h.slots = 0;
	ok(stream_layout(&h, 0, false, FIRST + 8191, 9 * STRIDE) == -ENOSPC, "not-even: or not even those: %s",
	   rashpa_reason());
}

/* The part of a slot that a checked header permits a reader to touch. */
static void test_extent(void)
{
	struct rashpa_stream_header h;
	uint64_t image;

	good_stream(&h);
	image = h.image_stride;
	ok(stream_extent(&h, 0) == 0 && stream_extent(&h, 1) == image &&
	   stream_extent(&h, 8) == 8 * image, "images-without-gaps: images without gaps");
	h.meta_slot = 64;
	h.bunch = 1;
	h.image_stride = UINT64_C(1) << 40;
	ok(!stream_check(&h, LENGTH) && h.data_offset + stream_extent(&h, 1) <= LENGTH,
	   "stride-no-second: a stride that no second image follows");
	good_stream(&h);
	h.meta_slot = 128;
	h.bunch = 2;
	h.line_stride += 64;
	h.image_stride = 512 * h.line_stride + 4096;
	h.slot_stride = stream_extent(&h, 2);
	ok(!stream_check(&h, LENGTH) && h.slot_stride == h.image_stride + 512 * 2112 - 64,
	   "padded-lines-images: padded lines and images, and slots without a gap");
	h.width = h.height = UINT32_MAX;
	h.line_stride = UINT64_MAX;
	ok(stream_extent(&h, UINT32_MAX) == UINT64_MAX, "too-much-is-as: too much is as much as there can be");
}

static void test_places(void)
{
	static uint64_t memory[8192 / 8];
	struct rashpa_stream s = { .buffer.base = (uint8_t *)memory };

	good_stream(&s.head);
	/* sums of offsets, not places that could be looked at */
	s.head.meta_offset = 64;
	s.head.record_offset = 128;
	s.head.map_offset = 256;
	ok(stream_meta(&s, 0, 7, 0) == s.buffer.base + 64 &&
	   stream_meta(&s, 1, 13, 7) == s.buffer.base + 64 + (2 * 7 * 8 - 1) * RFPGA_META_SIZE,
	   "metadata-process-slot: metadata by process, slot and image");
	ok((uint8_t *)stream_record(&s, 14) == s.buffer.base + 128 &&
	   (uint8_t *)stream_record(&s, 20) == s.buffer.base + 128 + 6 * 128, "records-slot: records by slot");
	ok((uint8_t *)stream_map(&s, 14) == s.buffer.base + 256 &&
	   (uint8_t *)stream_map(&s, UINT64_MAX / 7 * 7 - 1) == s.buffer.base + 256 + 6 * 16,
	   "maps-slot: maps by slot");
}

/* --- numbers --- */

static void test_numbers(void)
{
	static const uint32_t bytes[] = { 0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 0 };
	struct rashpa_stream_header h;
	bool good = true;

	for (uint32_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
		good &= stream_pixel_bytes(i) == bytes[i];
	ok(good && !stream_pixel_bytes(UINT32_MAX), "bytes-pixel: bytes of a pixel");

	good_stream(&h);
	ok(stream_end(&h) == 17 && stream_images(&h, 4, 5) == 8 && stream_images(&h, 15, 16) == 8 &&
	   stream_images(&h, 16, 17) == 4 && !stream_images(&h, 17, 18),
	   "100-images-12: 100 images are 12 stacks of 8 and one of 4");
	ok(stream_images(&h, 4, 17) == 100 && stream_images(&h, 15, 17) == 12 &&
	   stream_images(&h, 5, 5) == 0 && stream_images(&h, 16, UINT64_MAX) == 4 &&
	   stream_images(&h, 0, 5) == 8, "images-several-stacks: images of several stacks");
	ok(stream_possible(&h, 0) && stream_possible(&h, 17) && !stream_possible(&h, 18) &&
	   !stream_possible(&h, UINT64_MAX), "no-stacks-run: no more stacks than the run has");
	h.images = 104;
	ok(stream_end(&h) == 17, "last-stack-whole: the last stack may be a whole one");
	h.images = 0;
	ok(stream_end(&h) == UINT64_MAX && stream_images(&h, 1000, 1001) == 8 &&
	   stream_images(&h, 10, 1010) == 8000, "endless-stream: an endless stream");
	ok(stream_possible(&h, (UINT64_C(1) << 41) - 1) && !stream_possible(&h, UINT64_C(1) << 41) &&
	   !stream_possible(&h, UINT64_C(1) << 62) && !stream_possible(&h, UINT64_MAX),
	   "no-stacks-absurd: no stacks in absurd numbers");

	good_stream(&h);
	ok(stream_index(&h, 32) == 0 && stream_index(&h, 45) == 13,
	   "images-before-one: the number of images before one of a dataset");
	h.live = 1;
	h.sampling = 3;
	h.phase = 2;
	ok(stream_index(&h, 2) == 0 && stream_index(&h, 32) == 10,
	   "before-one-live: and before one of a live source");
}

/* Slots that are written during a read. */
static void test_oldest(void)
{
	static const struct {
		const char *what;
		uint32_t policy, slots;
		uint64_t images, most, credit, oldest;
	} cases[] = {
		{ "nothing is complete", RASHPA_STREAM_WAIT, 2, 0, 0, 0, 0 },
		{ "overwriting, the first slots", RASHPA_STREAM_OVERWRITE, 2, 0, 1, 0, 0 },
		{ "overwriting, one is being written", RASHPA_STREAM_OVERWRITE, 2, 0, 11, 0, 10 },
		{ "overwriting, to the end", RASHPA_STREAM_OVERWRITE, 2, 88, 11, 0, 9 },
		{ "overwriting, one slot", RASHPA_STREAM_OVERWRITE, 1, 0, 11, 0, 11 },
		{ "waits for credit", RASHPA_STREAM_WAIT, 2, 0, 12, 10, 10 },
		{ "writes what credit was given for", RASHPA_STREAM_WAIT, 2, 0, 11, 10, 10 },
		{ "credit for two", RASHPA_STREAM_WAIT, 2, 0, 10, 10, 9 },
		{ "credit for all slots but one", RASHPA_STREAM_WAIT, 4, 0, 11, 10, 8 },
		{ "waiting, to the end", RASHPA_STREAM_WAIT, 2, 88, 11, 11, 9 },
		{ "did not wait", RASHPA_STREAM_WAIT, 2, 0, 15, 10, 13 },
		{ "drops without credit", RASHPA_STREAM_DROP, 2, 0, 12, 10, 10 },
		{ "drops, writes what credit was given for", RASHPA_STREAM_DROP, 2, 0, 11, 10, 10 },
		{ "nothing is known of credit", RASHPA_STREAM_WAIT, 2, 0, 12, UINT64_MAX / 2, 11 },
		{ "absurd", RASHPA_STREAM_WAIT, 2, 0, UINT64_MAX, 10, UINT64_MAX - 2 },
	};
	struct rashpa_stream_header h;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t oldest;

		good_stream(&h);
		h.first_stack = 0;
		h.policy = cases[i].policy;
		h.slots = cases[i].slots;
		h.images = cases[i].images;
		oldest = stream_oldest(&h, cases[i].most, cases[i].credit);
		ok(oldest == cases[i].oldest, "stack: %s: stack %" PRIu64 " is the oldest", cases[i].what,
		   oldest);
	}
}

/* --- against programs that write arbitrary values --- */

#define BUFFER	(UINT64_C(1) << 20)
#define HANG_S	20	/* until something that does not end is ended */
#define SOCKET_PATH	sizeof(((struct sockaddr_un *)0)->sun_path)

static uint8_t *buffer;

static uint64_t *lock_word(const struct rashpa_stream *producer, unsigned int word)
{
	return (uint64_t *)(buffer + rashpa_stream_get_header(producer)->lock_offset + word);
}

/* A program fills slots of four images of one page, of an endless stream. */
static struct rashpa_stream *produce(const char *payload, uint32_t policy)
{
	const struct rashpa_stream_process whole = { .width = 64, .height = 64, .messages = 2 };
	struct rashpa_stream_plan plan = {
		.header = {
			.width = 64, .height = 64, .pixel = RASHPA_PIXEL_U8, .bunch = 4,
			.policy = policy,
		},
		.process = &whole, .processes = 1,
	};
	struct rashpa_stream *s;

	strcpy(plan.header.payload_name, payload);
	fake_has_producer = true;
	if (rashpa_stream_create("b", &plan, &s) || rashpa_stream_start(s, 0, 0)) {
		ok(false, "producer: a producer: %s", rashpa_reason());
		exit(1);
	}
	return s;
}

static void publish(struct rashpa_stream *s, unsigned int stacks)
{
	struct rashpa_stack stack;

	while (stacks--) {
		if (rashpa_stream_slot(s, &stack, 0) != 1 || rashpa_stream_publish(s, &stack)) {
			ok(false, "publish: a stack: %s", rashpa_reason());
			exit(1);
		}
	}
}

static struct rashpa_stream *consume(unsigned int flags)
{
	struct rashpa_stream *s;

	if (rashpa_stream_open("b", flags, &s) || rashpa_stream_begin(s, 0)) {
		ok(false, "consumer: a consumer: %s", rashpa_reason());
		exit(1);
	}
	return s;
}

/* An impossible number of stacks is counted as lost at once, without a long loop. */
static void test_leap(void)
{
	static const unsigned int flags[] = { 0, RASHPA_STREAM_OBSERVE,
					      RASHPA_STREAM_OBSERVE | RASHPA_STREAM_LATEST };
	const uint64_t far = UINT64_C(1) << 40;
	struct rashpa_stack held, last;

	for (int i = 0; i < 6; i++) {
		struct rashpa_stream *producer = produce("", i / 3);
		struct rashpa_stream *s = consume(flags[i % 3]);
		int got;

		publish(producer, 3);
		ok(rashpa_stream_next(s, &held, 0) == 1, "consumer/stack: a stack");
		*lock_word(producer, RFPGA_LOCK_STACKS) = far;
		alarm(HANG_S);
		got = rashpa_stream_next(s, &last, 0);
		ok(got == 1 && last.number < far && last.number + 256 >= far,
		   "one: and one %" PRIu64 " stacks later", last.number - held.number);
		ok(i % 3 || stream_credit(s) == held.number, "held-not-given: a held stack is not given back");
		/* the record belongs to another stack */
		ok(rashpa_stream_release(s, &last) == -ESTALE, "leap: %s", rashpa_reason());
		ok(rashpa_stream_release(s, &held) == -ESTALE &&
		   (i % 3 || stream_credit(s) == last.number + 1),
		   "last-stack-all: up to the last stack all is given back");
		alarm(0);
		rashpa_stream_close(s);
		rashpa_stream_close(producer);
	}
}

/* Stacks that are taken stay where they are, whatever streams come. */
static void test_payloads(void)
{
	struct rashpa_stream *producer = produce("p", RASHPA_STREAM_OVERWRITE);
	struct rashpa_stream *s = consume(RASHPA_STREAM_WRITE);
	struct rashpa_stack old, stack;

	publish(producer, 1);
	ok(rashpa_stream_next(s, &old, 0) == 1, "stack-other-memory: a stack in other memory");
	memset(old.data, 0x5a, 4096);
	rashpa_stream_close(producer);
	ok(rashpa_stream_next(s, &stack, 0) == 0, "stream-ends: the stream ends");
	producer = produce("p", RASHPA_STREAM_OVERWRITE);
	publish(producer, 1);
	ok(rashpa_stream_next(s, &stack, 0) == 1 && !rashpa_stream_release(s, &stack),
	   "another-stream-same: another stream in the same memory");
	rashpa_stream_close(producer);
	ok(rashpa_stream_next(s, &stack, 0) == 0, "ends-well: ends as well");
	producer = produce("q", RASHPA_STREAM_OVERWRITE);
	publish(producer, 1);
	ok(rashpa_stream_next(s, &stack, 0) == -EBUSY, "one-elsewhere-wait: one elsewhere has to wait: %s",
	   rashpa_reason());
	ok(*(volatile uint8_t *)old.data == 0x5a, "long-first-stack: as long as the first stack is held");
	ok(rashpa_stream_release(s, &old) == -ESTALE, "no-stream: which is of no stream now: %s",
	   rashpa_reason());
	ok(rashpa_stream_next(s, &stack, 0) == 1, "and-then-it: and then it comes: %s", rashpa_reason());
	rashpa_stream_close(s);
	rashpa_stream_close(producer);
}

/* Does a program that writes there die of it? */
static bool write_faults(uint8_t *data)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		/* a sanitizer handles them */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		*(volatile uint8_t *)data = 1;
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS);
}

/* Wherever slots are, only a consumer that asks for it can write there. */
static void test_writing(void)
{
	static const struct {
		const char *id;
		unsigned int flags;
		bool writes;
	} cases[] = {
		{ "consumer", 0, false },
		{ "observer", RASHPA_STREAM_OBSERVE, false },
		{ "in-place", RASHPA_STREAM_WRITE, true },
	};
	static const char *const where[] = { "", "p" };
	struct rashpa_stack stack;
	struct rashpa_stream *s;

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const char *payload = where[i % 2];
		struct rashpa_stream *producer = produce(payload, RASHPA_STREAM_OVERWRITE);

		s = consume(cases[i / 2].flags);
		publish(producer, 1);
		ok(rashpa_stream_next(s, &stack, 0) == 1 &&
		   write_faults(stack.data) == !cases[i / 2].writes &&
		   !rashpa_stream_release(s, &stack),
		   "writing-%s%s%s: can it write there", cases[i / 2].id, *payload ? "-" : "", payload);
		rashpa_stream_close(s);
		rashpa_stream_close(producer);
	}
	ok(rashpa_stream_open("b", RASHPA_STREAM_OBSERVE | RASHPA_STREAM_WRITE, &s) == -EINVAL &&
	   strstr(rashpa_reason(), "observer"), "writing-refused: an observer that asks for it: %s",
	   rashpa_reason());
}

/* --- sockets --- */

static char sockets[] = "/dev/shm/rashpa-sockets-XXXXXX";
static bool exchanges;		/* the socket, while the library judges it */

static void path_of(const char *name, char path[SOCKET_PATH])
{
	snprintf(path, SOCKET_PATH, "%s/%s", sockets, name);
}

/* The library asks for lists after the mode. */
ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t size);
ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t size)
{
	char from[SOCKET_PATH], to[SOCKET_PATH];

	path_of("other", from);
	path_of("m", to);
	if (exchanges && rename(from, to))
		ok(false, "socket-rename: another socket in its place: %s", strerror(errno));
	exchanges = false;
	(void)path, (void)name, (void)value, (void)size;
	errno = ENODATA;
	return -1;
}

static int socket_at(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	path_of(name, at.sun_path);
	unlink(at.sun_path);
	return fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof(at)) ? -1 : fd;
}

/* The library connects to the socket that it checked. Only the socket "other" has a listener. */
static void test_socket(void)
{
	struct rashpa_stream *producer, *s;
	char from[SOCKET_PATH], to[SOCKET_PATH];

	if (!mkdtemp(sockets) || setenv("RASHPA_RUN", sockets, 1)) {
		ok(false, "socket-folder: no folder for sockets");
		return;
	}
	path_of("other", from);
	path_of("m", to);
	for (int link = 0; link < 2; link++) {
		int judged = link ? -1 : socket_at("m"), other = socket_at("other"), error;

		listen(other, 1);
		if (link && (unlink(to), symlink(from, to)))
			ok(false, "socket-symlink: no link");
		exchanges = !link;
		producer = produce("p", RASHPA_STREAM_OVERWRITE);
		strcpy(((struct rashpa_stream_header *)buffer)->payload_name, "m");
		error = rashpa_stream_open("b", 0, &s);
		if (!error)
			error = rashpa_stream_begin(s, 0);
		ok(error == -ECONNREFUSED && !exchanges && accept(other, NULL, NULL) < 0,
		   "socket-%s: the other one is not asked: %s", link ? "link" : "exchanged",
		   rashpa_reason());
		rashpa_stream_close(s);
		rashpa_stream_close(producer);
		close(other);
		close(judged);
	}
	unlink(from);
	unlink(to);
	rmdir(sockets);
}

/* A program that only counts opens no payload, and so needs no right there. */
static void test_counting(void)
{
	static const unsigned int flags[] = { 0, RASHPA_STREAM_OBSERVE };
	struct rashpa_image image;
	struct rashpa_stack stack;
	struct rashpa_stream *s;

	for (size_t i = 0; i < 2; i++) {
		struct rashpa_stream *producer = produce("p", RASHPA_STREAM_OVERWRITE);
		const unsigned int reads = fake_mapped("p", false), writes = fake_mapped("p", true);

		fake_permit("b", 0660);
		s = consume(flags[i] | RASHPA_STREAM_NO_DATA);
		fake_permit("b", 0600);
		publish(producer, 1);
		ok(rashpa_stream_next(s, &stack, 0) == 1 && !stack.data && stack.images == 4 &&
		   !rashpa_stack_image(&stack, 3, &image) && !image.data &&
		   rashpa_stream_payload(s) == -EINVAL &&
		   fake_mapped("p", false) == reads && fake_mapped("p", true) == writes,
		   "counting-%zu: foreign memory is not opened", i);
		rashpa_stream_close(s);
		rashpa_stream_close(producer);
	}
	ok(rashpa_stream_open("b", RASHPA_STREAM_WRITE | RASHPA_STREAM_NO_DATA, &s) == -EINVAL &&
	   strstr(rashpa_reason(), "data"), "counting-refused: to write without data: %s",
	   rashpa_reason());
}

/* A consumer of a stream in "p", with these permissions of "b" and "p"; the reason is in @why. */
static int attach_with(unsigned int flags, unsigned int header, unsigned int memory, bool accept,
		       char why[RASHPA_REASON_SIZE])
{
	struct rashpa_stream *producer = produce("p", RASHPA_STREAM_OVERWRITE), *s = NULL;
	int error;

	fake_permit("b", header);
	fake_permit("p", memory);
	error = rashpa_stream_open("b", flags, &s);
	if (!error && accept)
		error = rashpa_stream_accept(s, "p");
	if (!error)
		error = rashpa_stream_begin(s, 0);
	snprintf(why, RASHPA_REASON_SIZE, "%s", error ? rashpa_reason() : "used");
	rashpa_stream_close(s);
	rashpa_stream_close(producer);
	fake_permit("b", 0600);
	fake_permit("p", 0600);
	return error;
}

/* A name in a header counts for what all writers of the header may open. */
static void test_rights(void)
{
	static const struct {
		const char *id;
		unsigned int flags, header, memory;
		bool good;
	} cases[] = {
		{ "rights-owner", 0, 0600, 0600, true },
		{ "rights-same", 0, 0660, 0660, true },
		{ "rights-owner-only", 0, 0600, 0660, true },
		{ "rights-all", 0, 0666, 0666, true },
		{ "rights-consumer-reads", 0, 0660, 0640, true },
		{ "rights-writes", RASHPA_STREAM_WRITE, 0660, 0660, true },
		{ "rights-group-reads", RASHPA_STREAM_OBSERVE, 0660, 0640, true },
		{ "rights-private", 0, 0660, 0600, false },
		{ "rights-private-observer", RASHPA_STREAM_OBSERVE, 0660, 0600, false },
		{ "rights-group-writes-not", RASHPA_STREAM_WRITE, 0660, 0640, false },
		{ "rights-others", 0, 0666, 0660, false },
		{ "rights-write-only", 0, 0620, 0620, false },
	};
	char why[RASHPA_REASON_SIZE];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const unsigned int reads = fake_mapped("p", false), writes = fake_mapped("p", true);
		const bool good = cases[i].good, write = cases[i].flags & RASHPA_STREAM_WRITE;
		const int got = attach_with(cases[i].flags, cases[i].header, cases[i].memory, false,
					    why);

		/* the producer has mapped it once, for writing */
		ok(got == (good ? 0 : -EPERM) &&
		   fake_mapped("p", false) - reads == (good && !write ? 1u : 0u) &&
		   fake_mapped("p", true) - writes == (good && write ? 2u : 1u) &&
		   (good || (strstr(why, "buffer b") && strstr(why, "--accept p"))),
		   "%s: header %#o, memory %#o: %s", cases[i].id, cases[i].header, cases[i].memory,
		   why);
	}
	ok(!attach_with(0, 0660, 0600, true, why),
	   "rights-accepted: a name that the consumer accepts needs no rights: %s", why);
}

/* A consumer that never waits hears that there will be no more, and not before it has all. */
static void test_polled(void)
{
	struct rashpa_stream *producer = produce("", RASHPA_STREAM_WAIT), *s = consume(0);
	struct rashpa_stack stack;
	int got;

	publish(producer, 1);
	ok(rashpa_stream_next(s, &stack, 0) == 1 && !rashpa_stream_release(s, &stack) &&
	   rashpa_stream_next(s, &stack, 0) == -ETIMEDOUT, "all-stream-far: all of a stream, so far");
	publish(producer, 1);
	fake_has_producer = false;
	ok(rashpa_stream_next(s, &stack, 0) == 1 && !rashpa_stream_release(s, &stack),
	   "producer-sent-last: and what its producer sent last");
	alarm(HANG_S);
	do {
		got = rashpa_stream_next(s, &stack, 0);
	} while (got == -ETIMEDOUT);
	alarm(0);
	ok(got == -EOWNERDEAD, "then-it-is: then it is gone: %s", rashpa_reason());
	rashpa_stream_close(s);
	rashpa_stream_close(producer);
}

/* Handles and stacks of the wrong kind. */
static void test_mistaken(void)
{
	struct rashpa_stream *producer = produce("", RASHPA_STREAM_WAIT), *s = consume(0);
	const struct rashpa_image image = {};
	struct rashpa_stack out, in;
	struct rfpga_lock lock;

	ok(rashpa_stream_slot(producer, &out, 0) == 1 &&
	   rashpa_stream_release(producer, &out) == -EINVAL &&
	   rashpa_stream_done(producer, &out) == -EINVAL, "producer-holds-no: a producer holds no stack: %s",
	   rashpa_reason());
	ok(rashpa_stream_valid(&out, 0, 2) == -ERANGE &&
	   rashpa_stream_valid(&out, 1, 0) == -ERANGE &&
	   rashpa_stream_valid(&out, 0, 1) == 1 && rashpa_stream_valid(&out, 0, 1) == -EEXIST &&
	   rashpa_stream_valid(&out, 0, 0) == 0, "messages-counted-once: messages are counted once");
	memset(buffer + rashpa_stream_get_header(producer)->map_offset, 0, 8);
	ok(rashpa_stream_valid(&out, 0, 0) == -EEXIST, "whatever-becomes-map: whatever becomes of the map");
	ok(!rashpa_stream_publish(producer, &out) && rashpa_stream_next(s, &in, 0) == 1,
	   "whatever/stack: a stack");
	ok(rashpa_stream_valid(&in, 0, 0) == -EINVAL &&
	   rashpa_stack_describe(&in, 0, 0, &image) == -EINVAL &&
	   rashpa_stream_publish(s, &in) == -EINVAL, "consumer-fills-none: a consumer fills none: %s", rashpa_reason());
	/* its writer was killed in the middle of it */
	++*lock_word(producer, RFPGA_LOCK_BEGUN);
	ok(rashpa_stream_lock(s, 0, &lock) == -EAGAIN && strstr(rashpa_reason(), "lock record 0"),
	   "lock-torn: a lock record that is never whole: %s", rashpa_reason());
	--*lock_word(producer, RFPGA_LOCK_BEGUN);
	ok(!rashpa_stream_lock(s, 0, &lock), "lock-whole: and one that is");
	rashpa_stream_close(s);
	rashpa_stream_close(producer);
}

/* --- places of consumers --- */

static struct rashpa_stream *enter(const char *name, unsigned int flags, uint32_t workers,
				   int64_t keep_ns)
{
	const struct rashpa_place_options options = {
		.name = name, .flags = flags, .workers = workers, .keep_ns = keep_ns,
	};
	struct rashpa_stream *s;

	if (rashpa_stream_open_as("b", &options, &s)) {
		ok(false, "enter: %s: %s", name, rashpa_reason());
		exit(1);
	}
	return s;
}

/* As if its process was killed: its locks end, and it writes nothing any more. */
static void die(struct rashpa_stream *s)
{
	const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(nowhere, s->buffer.node);
	close(nowhere);
	s->place = -1;
	rashpa_stream_close(s);
}

/* Take so many stacks, from @number on, and release them. */
static bool takes(struct rashpa_stream *s, uint64_t number, unsigned int stacks)
{
	struct rashpa_stack stack;

	for (; stacks; stacks--, number++) {
		if (rashpa_stream_next(s, &stack, 0) != 1 || stack.number != number ||
		    rashpa_stream_release(s, &stack))
			return false;
	}
	return true;
}

static bool takes_nothing(struct rashpa_stream *s)
{
	struct rashpa_stack stack;

	return rashpa_stream_next(s, &stack, 0) == -ETIMEDOUT;
}

static struct rashpa_stream_place *find_place(const char *name)
{
	struct rashpa_stream_table *t = (void *)(buffer + RASHPA_STREAM_TABLE);

	for (int i = 0; i < RASHPA_STREAM_PLACES; i++) {
		if (t->place[i].state && !strcmp(t->place[i].name, name))
			return &t->place[i];
	}
	return NULL;
}

static void test_joining(void)
{
	struct rashpa_stream *a = enter("a", 0, 1, 0), *b = enter("b", 0, 1, 0), *c, *p;
	struct rashpa_stack one, two, stack;

	p = produce("", RASHPA_STREAM_WAIT);
	publish(p, 3);
	ok(takes(a, 0, 3) && !stream_credit(p), "places-wait: a place that has taken nothing is waited for");
	ok(takes(b, 0, 1) && stream_credit(p) == 1, "places-least: credit is the least count");
	ok(rashpa_stream_next(b, &one, 0) == 1 && rashpa_stream_next(b, &two, 0) == 1 &&
	   !rashpa_stream_release(b, &two) && stream_credit(p) == 1 &&
	   !rashpa_stream_release(b, &one) && stream_credit(p) == 3, "places-order: released in any order");
	publish(p, 2);
	c = enter("c", 0, 1, 0);
	ok(takes(b, 3, 2) && takes(a, 3, 1) && takes_nothing(b), "places-go-on: others take more");
	ok(takes(c, 4, 1) && stream_credit(p) == 4, "places-join: a third one begins with what is not given back");
	ok(takes(a, 4, 1) && stream_credit(p) == 5, "places-all: all of them");
	publish(p, 2);
	ok(takes(a, 5, 2) && takes(b, 5, 2) && rashpa_stream_next(c, &stack, 0) == 1, "places-hold: one holds");
	rashpa_stream_close(c);
	ok(stream_credit(p) == 7 && find_place("c")->state == RASHPA_PLACE_LEFT,
	   "places-leave: credit does not wait for one that has left");
	ok(rashpa_stream_open_as("b", &(struct rashpa_place_options) { .name = "a" }, &c) == -EBUSY &&
	   strstr(rashpa_reason(), "process"), "places-busy: a place has one consumer: %s", rashpa_reason());
	rashpa_stream_close(a);
	rashpa_stream_close(b);
	rashpa_stream_close(p);
}

/* Others are slower than a consumer that closes its handle, and opens another one. */
static void test_return(void)
{
	struct rashpa_stream *a = enter("a", 0, 1, -1), *b = enter("b", 0, 1, 0), *p;

	p = produce("", RASHPA_STREAM_WAIT);
	publish(p, 6);
	ok(takes(a, 0, 4) && takes(b, 0, 1), "return-first: both take part");
	rashpa_stream_close(a);
	a = enter("a", 0, 1, 0);
	ok(takes(a, 4, 2) && !find_place("a")->lost && stream_credit(p) == 1,
	   "return: it goes on where it stopped");
	rashpa_stream_close(a);
	rashpa_stream_close(b);
	rashpa_stream_close(p);
}

/* Another stream replaces the one that a consumer has found, before the consumer takes part. */
static void test_late_joining(void)
{
	struct rashpa_stream *p = produce("", RASHPA_STREAM_WAIT), *c = enter("c", 0, 1, 0);
	const bool found = stream_copy(c) == 1;
	volatile uint64_t *claim = (volatile uint64_t *)(c->buffer.base + c->head.claim_offset) +
				   (uint64_t)c->place * c->head.slots;

	p->shared->generation++;
	*claim = UINT64_MAX;
	ok(found && !place_attend(c) && *claim == UINT64_MAX,
	   "late-joining: it clears no claims of the stream before");
	p->shared->generation--;
	*claim = 0;
	ok(place_attend(c) == 1 && find_place("c")->state == RASHPA_PLACE_ACTIVE,
	   "late-joined: it takes part in the stream that is there");
	rashpa_stream_close(c);
	rashpa_stream_close(p);
}

/* A place stays for its successor, as long as it asked. */
static void test_successor(void)
{
	struct rashpa_stream *a = enter("a", 0, 1, -1), *b = enter("b", 0, 1, 0), *p;
	struct rashpa_stack one, two;

	p = produce("", RASHPA_STREAM_WAIT);
	publish(p, 6);
	ok(rashpa_stream_next(a, &one, 0) == 1 && rashpa_stream_next(a, &two, 0) == 1 &&
	   !rashpa_stream_release(a, &two) && takes(b, 0, 6), "successor-first: a place releases its second stack");
	die(a);
	place_tick(b);
	ok(!stream_credit(p), "successor-kept: its place is kept");
	a = enter("a", 0, 1, 0);
	ok(rashpa_stream_next(a, &one, 0) == 1 && one.number == 0 && rashpa_stream_next(a, &two, 0) == 1 &&
	   two.number == 2 && !rashpa_stream_release(a, &one) && stream_credit(p) == 2,
	   "successor: it gets what was held, and not what was released");
	die(a);
	place_tick(b);
	ok(stream_credit(p) == 6 && find_place("a")->state == RASHPA_PLACE_GIVEN_UP &&
	   find_place("a")->given_up == 1, "successor-given-up: a place that is not kept is given up");
	publish(p, 2);
	ok(takes(b, 6, 2) && stream_credit(p) == 8, "successor-others: others go on");
	publish(p, 1);
	a = enter("a", 0, 1, 0);
	ok(takes(a, 8, 1) && find_place("a")->lost == 6 * 4, "successor-late: a late one lost what came meanwhile");
	/* without any other */
	rashpa_stream_close(a);
	ok(takes(b, 8, 1), "successor-alone: one stays");
	publish(p, 3);
	ok(rashpa_stream_next(b, &one, 0) == 1 && rashpa_stream_next(b, &two, 0) == 1 &&
	   !rashpa_stream_done(b, &one), "successor-holds: and holds");
	die(b);
	a = enter("other", 0, 1, 0);
	ok(takes(a, 10, 2) && stream_credit(p) == 12 && !find_place("b"),
	   "successor-any: another place goes on where the last one stopped");
	rashpa_stream_close(a);
	rashpa_stream_close(p);
}

/* Credit does not wait for a place that may lose. */
static void test_losing(void)
{
	struct rashpa_stream *l = enter("l", RASHPA_STREAM_LOSE, 1, 0), *a = enter("a", 0, 1, 0), *p;
	const uint32_t slots = 248;
	struct rashpa_stack st;

	p = produce("", RASHPA_STREAM_WAIT);
	publish(p, 1);
	ok(takes(l, 0, 1) && takes(a, 0, 1) && stream_credit(p) == 1, "losing: both take");
	ok(rashpa_stream_get_header(p)->slots < slots, "losing-slots: few slots");
	publish(p, 1);
	ok(rashpa_stream_next(l, &st, 0) == 1 && st.number == 1, "losing-holds: one holds a stack");
	for (uint32_t i = 1; i <= slots; i++) {
		publish(p, 1);
		ok(i > 1 || takes(a, 1, 1), "losing-others-%u: the other one goes on", i);
		if (!takes(a, i + 1, 1))
			ok(false, "losing-goes-on-%u: %s", i, rashpa_reason());
	}
	ok(rashpa_stream_release(l, &st) == -ESTALE, "losing-stale: its stack was overwritten: %s", rashpa_reason());
	ok(rashpa_stream_next(l, &st, 0) == 1 && st.number == slots + 1 && st.lost == (slots - 1) * 4 &&
	   find_place("l")->lost == slots * 4, "losing-newest: it goes on with the newest one");
	rashpa_stream_release(l, &st);
	rashpa_stream_close(a);
	ok(stream_credit(p) == slots + 2, "losing-alone: %" PRIu64, stream_credit(p));
	publish(p, 3);
	ok(takes(l, slots + 2, 2) && stream_credit(p) == slots + 5,
	   "losing-only: without others, credit is what is complete");
	rashpa_stream_close(l);
	rashpa_stream_close(p);
}

/* Each stack goes to one worker. */
static void test_workers(void)
{
	struct rashpa_stream *w[3], *p = produce("", RASHPA_STREAM_WAIT), *no;
	struct rashpa_stack st[6];

	for (int i = 0; i < 3; i++)
		w[i] = enter("w", 0, 3, -1);
	ok(rashpa_stream_open_as("b", &(struct rashpa_place_options) { .name = "w", .workers = 3 },
				 &no) == -EBUSY, "workers-full: no more: %s", rashpa_reason());
	publish(p, 6);
	for (int i = 0; i < 6; i++) {
		ok(rashpa_stream_next(w[i % 3], &st[i], 0) == 1 && st[i].number == (uint64_t)i,
		   "workers-%d: each takes the next one", i);
	}
	ok(takes_nothing(w[0]) && rashpa_stream_release(w[1], &st[0]) == -EINVAL,
	   "workers-other: none releases another one's stack");
	for (int i = 5; i; i--)
		rashpa_stream_release(w[i % 3], &st[i]);
	ok(!stream_credit(p) && !rashpa_stream_release(w[0], &st[0]) && stream_credit(p) == 6,
	   "workers-order: released in any order");
	publish(p, 4);
	for (int i = 0; i < 4; i++)
		rashpa_stream_next(w[i % 3], &st[i], 0);
	die(w[0]);
	rashpa_stream_close(w[1]);
	ok(rashpa_stream_next(w[2], &st[4], 0) == 1 && st[4].number == 7, "workers-leaves: another one's stack");
	place_tick(w[2]);
	ok(rashpa_stream_next(w[2], &st[0], 0) == 1 && st[0].number == 6 &&
	   rashpa_stream_next(w[2], &st[3], 0) == 1 && st[3].number == 9 && takes_nothing(w[2]),
	   "workers-dies: and those of a dead one");
	rashpa_stream_release(w[2], &st[0]);
	rashpa_stream_release(w[2], &st[4]);
	rashpa_stream_release(w[2], &st[3]);
	ok(!rashpa_stream_release(w[2], &st[2]) && stream_credit(p) == 10, "workers-all: all come back");
	/* the end is there when all were released */
	w[0] = enter("w", 0, 3, -1);
	publish(p, 1);
	ok(rashpa_stream_next(w[0], &st[0], 0) == 1 && !rashpa_stream_end(p, NULL) && takes_nothing(w[2]) &&
	   !rashpa_stream_next(w[0], &st[1], 0), "workers-end: a worker waits for the others");
	die(w[0]);
	place_tick(w[2]);
	ok(takes(w[2], 10, 1) && !rashpa_stream_next(w[2], &st[0], 0), "workers-last: which may die");
	rashpa_stream_close(p);
	/* killed between its claim and the next number */
	p = produce("", RASHPA_STREAM_WAIT);
	w[0] = enter("w", 0, 3, -1);
	publish(p, 1);
	rashpa_stream_next(w[0], &st[0], 0);
	find_place("w")->next--;
	die(w[0]);
	rashpa_stream_begin(w[2], 0);
	place_tick(w[2]);
	ok(takes(w[2], 0, 1) && takes_nothing(w[2]) && stream_credit(p) == 1, "workers-between: its claim counts");
	/* the oldest stack of all slots */
	w[0] = enter("w", 0, 3, -1);
	publish(p, p->head.slots);
	ok(rashpa_stream_next(w[0], &st[0], 0) == 1 && st[0].number == 1 &&
	   takes(w[2], 2, p->head.slots - 1) && takes_nothing(w[2]), "workers-full-slots: all others are released");
	die(w[0]);
	place_tick(w[2]);
	ok(takes(w[2], 1, 1) && stream_credit(p) == p->head.slots + 1, "workers-oldest: its stack comes");
	rashpa_stream_close(w[2]);
	rashpa_stream_close(p);
}

/* Places stay from one stream to the next. */
static void test_next_stream(void)
{
	struct rashpa_stream *a = enter("a", 0, 1, 0), *b = enter("b", 0, 1, 0), *p;
	struct rashpa_stack st;

	for (int i = 0; i < 3; i++) {
		p = produce("", RASHPA_STREAM_WAIT);
		publish(p, 4);
		ok(takes(a, 0, 4) && !stream_credit(p) && takes(b, 0, 4) && stream_credit(p) == 4,
		   "again-%d: both take all", i);
		rashpa_stream_close(p);
		ok(!rashpa_stream_next(a, &st, 0) && !rashpa_stream_next(b, &st, 0), "again-%d-end: both get the end", i);
	}
	rashpa_stream_close(a);
	rashpa_stream_close(b);
	a = enter("b", RASHPA_STREAM_FROM_START, 1, 0);
	ok(takes(a, 0, 4) && !rashpa_stream_next(a, &st, 0), "again-from-start: the last one once more");
	rashpa_stream_close(a);
}

static void test_info(void)
{
	struct rashpa_stream *a = enter("a", RASHPA_STREAM_LOSE, 2, 7), *o, *p;
	struct rashpa_place_info info;
	struct rashpa_stream_table *t = (void *)(buffer + RASHPA_STREAM_TABLE);
	const uint32_t at = find_place("a") - t->place;
	struct rashpa_stream_clock clock;
	struct rashpa_stack st;
	uint32_t *sequence;

	p = produce("", RASHPA_STREAM_WAIT);
	publish(p, 3);
	ok(takes(a, 0, 1) && rashpa_stream_next(a, &st, 0) == 1, "info-takes: one is released, one is held");
	o = consume(RASHPA_STREAM_OBSERVE);
	strcpy(find_place("a")->name, "\033[2J");
	ok(!rashpa_stream_get_place(o, at, &info) && !strcmp(info.name, "?[2J") && info.loses == 1 &&
	   info.state == RASHPA_PLACE_ACTIVE && info.workers == 1 && info.workers_max == 2 &&
	   info.process == getpid() && info.consumed == 1 && info.behind == 2 && info.held == 1 &&
	   info.keep_ns == 7 && !info.left_ns && !info.lost && !info.given_up, "info: of a place: %s", info.name);
	ok(rashpa_stream_get_place(o, at + 1, &info) == -ENOENT &&
	   rashpa_stream_get_place(o, RASHPA_STREAM_PLACES, &info) == -ERANGE, "info-none: no other");
	ok(!rashpa_stream_get_clock(o, &clock) && llabs((int64_t)(st.time_ns - clock.monotonic_ns)) < HANG_S * 1000000000ll &&
	   llabs((int64_t)clock.tai_ns / 1000000000 - clock.utc_s - time(NULL)) <= HANG_S && !clock.tick_of,
	   "clock: the time of day");
	sequence = &((struct rashpa_stream_header *)buffer)->clock_sequence;
	++*sequence;
	ok(rashpa_stream_get_clock(o, &clock) == -EAGAIN, "clock-torn: %s", rashpa_reason());
	p->clocked = 0;
	publish(p, 1);
	ok(!rashpa_stream_get_clock(o, &clock) && !(*sequence & 1), "clock-again: the next stack writes it");
	rashpa_stream_close(o);
	rashpa_stream_close(a);
	rashpa_stream_close(p);
	ok(rashpa_stream_open("q", 0, &o) == 0 && rashpa_stream_get_clock(o, &clock) == -ENODATA &&
	   rashpa_stream_get_place(o, 0, &info) == -ENODATA, "clock-none: without a stream");
	rashpa_stream_close(o);
}

static void test_options(void)
{
	static const struct {
		const char *id;
		struct rashpa_place_options options;
	} bad[] = {
		{ "empty", { .name = "" } }, { "slash", { .name = "a/b" } }, { "dot", { .name = ".a" } },
		{ "long", { .name = "12345678901234567890123456789012" } },
		{ "workers", { .workers = RASHPA_STREAM_WORKERS + 1 } },
		{ "observer", { .flags = RASHPA_STREAM_LOSE | RASHPA_STREAM_OBSERVE } },
		{ "pin", { .flags = RASHPA_STREAM_PIN } },
	};
	struct rashpa_stream *s, *all[RASHPA_STREAM_PLACES];
	uint64_t *magic = (uint64_t *)buffer;
	char name[8];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(rashpa_stream_open_as("b", &bad[i].options, &s) == -EINVAL && *rashpa_reason(),
		   "options-%s: %s", bad[i].id, rashpa_reason());
	for (int i = 0; i < RASHPA_STREAM_PLACES; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		all[i] = enter(name, 0, 1, 0);
	}
	ok(rashpa_stream_open("b", 0, &s) == -ENOSPC, "options-full: %s", rashpa_reason());
	ok(rashpa_stream_open("b", RASHPA_STREAM_WRITE, &s) == -EBUSY, "options-writes: %s", rashpa_reason());
	for (int i = 0; i < RASHPA_STREAM_PLACES; i++)
		rashpa_stream_close(all[i]);
	all[0] = enter("w", RASHPA_STREAM_WRITE, 1, 0);
	ok(rashpa_stream_open("b", 0, &s) == -EBUSY, "options-written: %s", rashpa_reason());
	rashpa_stream_close(all[0]);
	all[0] = enter("r", RASHPA_STREAM_WRITE | RASHPA_STREAM_PIN, 1, 0);
	all[1] = enter("a", 0, 1, 0);
	ok(rashpa_stream_open("b", RASHPA_STREAM_WRITE, &s) == -EBUSY, "options-pinned: %s", rashpa_reason());
	rashpa_stream_close(all[1]);
	rashpa_stream_close(all[0]);
	s = enter("x", 0, 1, 0);
	*magic -= UINT64_C(1) << 56;
	ok(rashpa_stream_begin(s, 0) == -EPROTO && strstr(rashpa_reason(), "RASHPST2"),
	   "options-format: an old format is refused: %s", rashpa_reason());
	*magic += UINT64_C(1) << 56;
	rashpa_stream_close(s);
	/* locks of another node are not seen */
	((struct rashpa_stream_table *)(buffer + RASHPA_STREAM_TABLE))->inode++;
	ok(rashpa_stream_open("b", 0, &s) == -EXDEV, "options-node: %s", rashpa_reason());
	((struct rashpa_stream_table *)(buffer + RASHPA_STREAM_TABLE))->inode--;
}

static const char *bound, *led_to;	/* a socket, and what a link in its place leads to */

int __real_bind(int fd, const struct sockaddr *at, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *at, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *at, socklen_t size)
{
	const int error = __real_bind(fd, at, size);

	return error || unlink(bound) || symlink(led_to, bound) ? -1 : 0;
}

/* All members may write in the folder of sockets. */
static void test_wake(void)
{
	struct rashpa_stream *s;
	struct rashpa_stack st;

	if (!ok(!rashpa_stream_open("q", 0, &s), "wake-open: a consumer waits for a stream"))
		return;
	rashpa_stream_wake(s);
	ok(rashpa_stream_next(s, &st, 0) == -ETIMEDOUT && rashpa_stream_next(s, &st, -1) == -EINTR &&
	   rashpa_stream_next(s, &st, 1000000) == -ETIMEDOUT, "wake: it ends the next wait, and no other one");
	rashpa_stream_close(s);
}

/* A consumer notifies a producer that polls its descriptor: no channel of this driver can be polled. */
static void test_waiting(void)
{
	struct rashpa_stream *p = produce("", RASHPA_STREAM_WAIT);
	struct rashpa_stream *s = consume(0);
	struct rashpa_stack in, out;

	publish(p, rashpa_stream_get_header(p)->slots);
	ok(rashpa_stream_slot(p, &out, 0) == -ETIMEDOUT && !p->shared->waiting,
	   "waiting-not: a producer waits only in the call");
	p->set = dup(p->channel);
	p->timer = dup(p->channel);
	ok(rashpa_stream_slot(p, &out, 0) == -ETIMEDOUT && p->shared->waiting,
	   "waiting: unless it polls its descriptor");
	ok(rashpa_stream_next(s, &in, 0) == 1 && !rashpa_stream_release(s, &in) &&
	   rashpa_stream_slot(p, &out, 0) == 1 && !p->shared->waiting,
	   "waiting-over: with a slot it waits no more");
	rashpa_stream_close(s);
	rashpa_stream_close(p);
}

/* Boards that count nothing, since nothing runs there. */
static void test_board(void)
{
	const struct rashpa_stream_process dtp = {
		.function = RASHPA_STREAM_FPGA, .width = 32, .height = 32,
	};
	const struct rashpa_stream_plan plan = {
		.header = {
			.width = 32, .height = 32, .pixel = RASHPA_PIXEL_U16, .bunch = 4,
			.policy = RASHPA_STREAM_DROP,
		},
		.process = &dtp, .processes = 1, .flags = RASHPA_PLAN_META,
	};
	const struct rashpa_run_plan none = {};
	const uint32_t status = RFPGA_DTP(1) + RFPGA_DTP_STATUS;
	struct rashpa_board *board, *second;
	struct rashpa_board_view view;
	struct rashpa_stream *s = NULL;
	struct rashpa_run *run = NULL;

	if (!ok(!rashpa_board_open("fpga0", &board) && !rashpa_board_open("fpga0", &second),
		"board: two programs open a board: %s", rashpa_reason()))
		return;
	rashpa_board_write(board, status, RFPGA_DTP_RUNNING);
	ok(rashpa_board_claim(board) == -EBUSY && !rashpa_board_claim(second),
	   "board-refused: a claim that fails leaves the board to others: %s", rashpa_reason());
	rashpa_board_close(second);
	rashpa_board_write(board, status, 0);
	ok(rashpa_board_window(board, "a name of more than 31 characters", &view) == -EINVAL,
	   "board-window: a name without an end: %s", rashpa_reason());
	ok(!rashpa_board_claim(board) && !rashpa_stream_create("b", &plan, &s) &&
	   !rashpa_run_open(board, s, &none, &run) && !rashpa_run_start(run, 0, 0) &&
	   !rashpa_run_stop(run, 0), "run: a run starts and stops: %s", rashpa_reason());
	ok(run && rashpa_run_start(run, 1, 0) == -ENOTSUP,
	   "run-again: not again if it has dropped images meanwhile: %s", rashpa_reason());
	rashpa_run_close(run);
	rashpa_stream_close(s);
	rashpa_board_close(board);
}

/* Without a consumer no slot is given back. */
static void test_dropping(void)
{
	struct rashpa_stream *p = produce("", RASHPA_STREAM_DROP);
	struct rashpa_stack st = {};

	publish(p, rashpa_stream_get_header(p)->slots - 1);
	ok(rashpa_stream_slot(p, &st, -1) == 1 && rashpa_stack_pixels(&st, 0) == st.data &&
	   rashpa_stack_pixels(&st, 3) == (char *)st.data + 3 * st.image_stride,
	   "pixels: images of a stack follow each other");
	ok(rashpa_stream_slot(p, &st, -1) == -ENOBUFS && strstr(rashpa_reason(), "left out"),
	   "dropping: a stack without a slot is left out: %s", rashpa_reason());
	ok(!rashpa_stream_end(p, NULL) && p->shared->dropped == 1 &&
	   p->shared->sent == (p->head.slots - 1) * p->head.bunch, "ended: it counts what was published");
	rashpa_stream_close(p);
}

static void test_link(void)
{
	char folder[] = "/tmp/rashpa-socket-XXXXXX", other[64], name[64];
	struct stat st = {};
	FILE *file = NULL;

	if (mkdtemp(folder)) {
		snprintf(other, sizeof(other), "%s/other", folder);
		snprintf(name, sizeof(name), "%s/m", folder);
		file = fopen(other, "w");
	}
	if (!file) {
		ok(false, "link-folder: no folder");
		return;
	}
	bound = name;
	led_to = other;
	setenv("RASHPA_RUN", folder, 1);
	if (fclose(file) || chmod(other, 0604) || rashpa_payload_listen("m") >= 0 || stat(other, &st))
		st.st_mode = 0;
	ok((st.st_mode & 0777) == 0604,
	   "socket-link: a link that takes the place of the socket does not lead to another file's mode: %o, %s",
	   st.st_mode & 0777, rashpa_reason());
	unlink(name);
	unlink(other);
	rmdir(folder);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_header();
	test_together();
	test_names();
	test_processes();
	test_layout();
	test_layout_elsewhere();
	test_extent();
	test_places();
	test_numbers();
	test_oldest();
	test_link();
	if (fake_driver_load())
		ok(false, "no-nodes: no nodes");
	buffer = fake_buffer("b", BUFFER);
	if (buffer && fake_buffer("p", BUFFER) && fake_buffer("q", BUFFER)) {
		test_leap();
		test_payloads();
		test_rights();
		test_writing();
		test_counting();
		test_socket();
		test_polled();
		test_mistaken();
		test_wake();
		test_waiting();
		test_board();
		test_dropping();
		test_joining();
		test_return();
	test_late_joining();
		test_successor();
		test_losing();
		test_workers();
		test_next_stream();
		test_info();
		test_options();
	} else {
		ok(false, "no-buffers: no buffers");
	}
	fake_driver_unload();
	return tap_end();
}
