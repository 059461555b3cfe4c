// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program that uses streams and boards, for growth.sh: the library may have larger structs than this program (an
 * older program with a newer library), or smaller ones (GROWN: a newer program). Behind each struct that the
 * library fills are bytes that it must not touch. TAP.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/tests/fake-driver.h"
#include <rashpa-board.h>
#include "tests/tap.h"

#define BYTE	0xa5
#define BEHIND	512

/* A struct full of rubbish, and a guard after it. */
#define GUARDED(type)							\
	struct {							\
		type it;						\
		unsigned char behind[BEHIND];				\
	}
#define SPOIL(guarded)	memset(&(guarded), BYTE, sizeof(guarded))

static bool untouched(const unsigned char *behind)
{
	for (size_t i = 0; i < BEHIND; i++) {
		if (behind[i] != BYTE)
			return false;
	}
	return true;
}

/* What only this program's version of a struct has: 0 comes from an older library. */
#ifdef GROWN
#define NEW_IS_ZERO(it)	(!(it).grown[0] && !(it).grown[3])
#else
#define NEW_IS_ZERO(it)	true
#endif

#define CHECK(guarded, name)							\
	ok(untouched((guarded).behind) && NEW_IS_ZERO((guarded).it),		\
	   name ": the library keeps to the program's %zu bytes", sizeof((guarded).it))

static struct rashpa_stream *begin(void)
{
	static const struct rashpa_stream_process process[2] = {
		{ .width = 32, .height = 16, .messages = 1 },
		{ .y = 16, .width = 32, .height = 16, .messages = 2, .module = 1 },
	};
	static const struct rashpa_stream_module module[2] = {
		{ .width = 32, .height = 16, .number = 7 },
		{ .y = 16, .width = 32, .height = 16, .number = 8 },
	};
	const struct rashpa_stream_plan plan = {
		.header = {
			.width = 32, .height = 32, .pixel = RASHPA_PIXEL_U16, .bunch = 2,
			.dataset = "grown",
		},
		.process = process, .module = module, .processes = 2, .modules = 2,
		.flags = RASHPA_PLAN_META, .close_after = 5,
	};
	struct rashpa_stream *s;

	fake_has_producer = true;
	if (rashpa_stream_create("b", &plan, &s) || rashpa_stream_start(s, 0, 0)) {
		ok(false, "begin: a stream begins: %s", rashpa_reason());
		exit(tap_end());
	}
	return s;
}

/* Of the producer. */
static void fill(struct rashpa_stream *s)
{
	const struct rashpa_image image = { .frame = 40, .trigger = 41, .role = 3 };
	GUARDED(struct rashpa_stack) slot;

	SPOIL(slot);
	ok(rashpa_stream_slot(s, &slot.it, 0) == 1 && slot.it.images == 2 && slot.it.stream == s,
	   "slot: a slot: %s", rashpa_reason());
	CHECK(slot, "slot-size");
	ok(!rashpa_stack_describe(&slot.it, 0, 0, &image) &&
	   !rashpa_stack_describe(&slot.it, 1, 0, &image) &&
	   rashpa_stream_valid(&slot.it, 0, 0) == 2 && rashpa_stream_valid(&slot.it, 1, 1) == 1,
	   "describe: metadata, and messages of both processes: %s", rashpa_reason());
	slot.it.user[7] = 77;
	ok(!rashpa_stream_publish(s, &slot.it), "publish: a stack: %s", rashpa_reason());
}

static void look(struct rashpa_stream *s, const struct rashpa_stream *producer)
{
	const struct rashpa_stream_header *about = rashpa_stream_get_header(s);
	GUARDED(struct rashpa_stack) stack;
	GUARDED(struct rashpa_image) image;
	GUARDED(struct rashpa_stream_stat) stat;

	SPOIL(stack);
	ok(rashpa_stream_next(s, &stack.it, 0) == 1 && !stack.it.number &&
	   stack.it.user[7] == 77 && stack.it.missing == 1 && stack.it.stream == s,
	   "next: the stack: %s", rashpa_reason());
	CHECK(stack, "next-size");
	SPOIL(image);
	ok(!rashpa_stack_image(&stack.it, 0, &image.it) && image.it.trigger == 41 &&
	   image.it.role == 3, "image: its image: %s", rashpa_reason());
	CHECK(image, "image-size");
	SPOIL(stat);
	rashpa_stream_get_stat(s, &stat.it);
	ok(stat.it.stacks == 1 && stat.it.state == RASHPA_STREAM_RUNNING, "status: the status");
	CHECK(stat, "status-size");
	ok(about->width == 32 && about->processes == 2 && !strcmp(about->dataset, "grown") &&
	   NEW_IS_ZERO(*about), "about: the header");
	ok(rashpa_stream_process_at(s, 1)->y == 16 && rashpa_stream_process_at(s, 1)->messages == 2 &&
	   rashpa_stream_process_at(producer, 0)->messages == 1,
	   "processes: elements of the program's arrays are found");
	ok(!rashpa_stream_release(s, &stack.it), "release: it is given back: %s", rashpa_reason());
}

static void talk(struct rashpa_stream *s)
{
	struct rashpa_stream_work work = {
		.engine = "growth", .images = 5, .stages = 1, .late = 9,
		.stage = { { .name = "only", .bytes_out = 6 } },
	};
	GUARDED(struct rashpa_stream_work) told;

	SPOIL(told);
	ok(!rashpa_stream_tell(s, &work) && !rashpa_stream_told(s, &told.it) &&
	   !strcmp(told.it.engine, "growth") && told.it.late == 9 && told.it.stage[0].bytes_out == 6,
	   "told: the consumer's report: %s", rashpa_reason());
	CHECK(told, "told-size");
}

static void end(struct rashpa_stream *producer, struct rashpa_stream *s)
{
	const struct rashpa_stream_header sent = { .sent = 2, .missed = 3 };
	GUARDED(struct rashpa_stream_header) count;

	SPOIL(count);
	ok(!rashpa_stream_end(producer, &sent) && !rashpa_stream_await_end(s, &count.it, 0) &&
	   count.it.sent == 2 && count.it.missed == 3 && count.it.width == 32,
	   "counts: the producer's counts: %s", rashpa_reason());
	CHECK(count, "counts-size");
}

/* Structs of the driver: it reads and writes as many bytes as head.size says. */
static void ask(void)
{
	GUARDED(struct rashpa_info) info;
	GUARDED(struct rashpa_role) role;
	int node = rashpa_buffer_open("b", 2);

	SPOIL(info);
	memset(&info.it, 0, sizeof(info.it));
	SPOIL(role);
	memset(&role.it, 0, sizeof(role.it));
	ok(!rashpa_memory_get_info(node, &info.it) && info.it.head.size == sizeof(info.it) &&
	   !rashpa_buffer_role(node, &role.it) && role.it.head.size == sizeof(role.it),
	   "driver-size: the driver hears the program's sizes, %zu and %zu", sizeof(info.it),
	   sizeof(role.it));
}

/* A table as the kernel maps it, with segments of two numbers. */
static void read_table(void)
{
	static union {
		struct rashpa_table it;
		uint64_t word[16];
	} table;
	GUARDED(union { struct rashpa_table it; uint64_t word[64]; }) copy;
	uint64_t *segment = (uint64_t *)table.it.segment;

	table.it.count = 2;
	table.it.segment_size = 2 * sizeof(uint64_t);
	for (uint64_t i = 0; i < 4; i++)
		segment[i] = 100 + i;
	SPOIL(copy);
	ok(rashpa_table_read(&table.it, &copy.it.it, 2) == 2 &&
	   copy.it.it.segment_size == sizeof(copy.it.it.segment[0]) &&
	   copy.it.it.segment[1].address == 102 && copy.it.it.segment[1].length == 103 &&
	   NEW_IS_ZERO(copy.it.it.segment[1]) &&
	   *(unsigned char *)&copy.it.it.segment[2] == BYTE,
	   "table: segments are as far apart as in the program");
}

/* A run of a stream, and what the board counts of it. */
static void run_board(struct rashpa_board *board)
{
	static const struct rashpa_stream_process dtp = {
		.function = RASHPA_STREAM_FPGA, .width = 32, .height = 32,
	};
	const struct rashpa_stream_plan stream = {
		.header = { .width = 32, .height = 32, .pixel = RASHPA_PIXEL_U16, .bunch = 2 },
		.process = &dtp, .processes = 1,
	};
	const struct rashpa_run_plan plan = { .offset = 4096, .image_stride = 2048 };
	GUARDED(struct rashpa_dtp_stat) stat;
	struct rashpa_stream *s = NULL;
	struct rashpa_run *run = NULL;

	ok(!rashpa_stream_create("b", &stream, &s) && !rashpa_run_open(board, s, &plan, &run) &&
	   !rashpa_run_start(run, 0, 0) &&
	   rashpa_board_read64(board, RFPGA_DTP(0) + RFPGA_DTP_SRC_BASE) == 4096 &&
	   rashpa_board_read64(board, RFPGA_DTP(0) + RFPGA_DTP_SRC_IMAGE) == 2048,
	   "run: a run with the program's plan: %s", rashpa_reason());
	rashpa_board_write64(board, RFPGA_DTP(0) + RFPGA_DTP_C_BYTES, 9);
	SPOIL(stat);
	ok(run && !rashpa_run_get_stat(run, &stat.it) && stat.it.bytes == 9 && !stat.it.missed,
	   "run-stat: its counts");
	CHECK(stat, "run-stat-size");
	SPOIL(stat);
	ok(!rashpa_board_get_stat(board, RASHPA_BOARD_DTP(0), &stat.it) && stat.it.bytes == 9,
	   "board-stat: those of the board");
	CHECK(stat, "board-stat-size");
	rashpa_run_close(run);
	rashpa_stream_close(s);
}

static void use_board(void)
{
	GUARDED(struct rashpa_target_info) place;
	GUARDED(struct rashpa_board_info) info;
	struct rashpa_target *target = NULL;
	struct rashpa_board *board;
	const int fd = rashpa_open("b", O_RDWR);

	SPOIL(info);
	if (!ok(!rashpa_board_open("fpga0", &board) && !rashpa_board_claim(board) &&
		!rashpa_board_get_info(board, &info.it) && info.it.dtps == 2 && info.it.entries == 16,
		"board: a board: %s", rashpa_reason()))
		return;
	CHECK(info, "board-size");
	SPOIL(place);
	ok(!rashpa_board_map(board, RASHPA_BOARD_DTP(0), fd, 0, &target) &&
	   !rashpa_target_get_info(target, RASHPA_BOARD_DTP(0), &place.it) && place.it.entries == 1 &&
	   place.it.engine == -1, "target: memory for its DTP: %s", rashpa_reason());
	CHECK(place, "target-size");
	rashpa_target_close(target);
	close(fd);
	run_board(board);
	rashpa_board_close(board);
}

int main(void)
{
	struct rashpa_stream *producer, *s;

	if (fake_driver_load() || !fake_buffer("b", 1 << 20)) {
		ok(false, "driver: a driver of files");
		return tap_end();
	}
	producer = begin();
	fill(producer);
	if (rashpa_stream_open("b", RASHPA_STREAM_FROM_START, &s) || rashpa_stream_begin(s, 0)) {
		ok(false, "consumer: a consumer: %s", rashpa_reason());
	} else {
		look(s, producer);
		talk(s);
		end(producer, s);
		rashpa_stream_close(s);
	}
	rashpa_stream_close(producer);
	ask();
	read_table();
	use_board();
	fake_driver_unload();
	return tap_end();
}
