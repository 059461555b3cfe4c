// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Control software of a board with the reference interface: board BUFFER fpgaN STACKS
 *
 * Stores eight images in the board's memory, and lets two DTPs stream them into a buffer, each DTP
 * half of each image. All pixels of frame n have the value n mod 8.
 */
#include <err.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <rashpa-board.h>

#define WIDTH	256u
#define HEIGHT	128u
#define LINE	(WIDTH * sizeof(uint16_t))
#define BUNCH	4u
#define IMAGES	8u	/* in on-board memory; they go round and round */
#define DTPS	2u
#define STOP_NS	1000000000

static void check(int error)
{
	if (error < 0)
		errx(1, "%s", rashpa_reason());
}

/* Store the images. A read afterwards returns when they have arrived. */
static void load(struct rashpa_board *board)
{
	struct rashpa_board_view memory;
	volatile uint16_t *pixel;

	check(rashpa_board_window(board, "memory", &memory));
	if (memory.length < IMAGES * HEIGHT * LINE)
		errx(1, "on-board memory is too small");
	pixel = (volatile uint16_t *)memory.base;
	for (uint32_t i = 0; i < IMAGES; i++)
		for (uint32_t k = 0; k < WIDTH * HEIGHT; k++)
			*pixel++ = i;
	rashpa_board_read(board, RFPGA_STATUS);
}

/* Become the producer of the buffer. DTP n sends the nth part of the lines, by vector 0. */
static struct rashpa_stream *create(const char *buffer, const struct rashpa_board_info *info,
				    uint64_t stacks)
{
	struct rashpa_stream_process dtp[DTPS] = {};
	const struct rashpa_stream_plan plan = {
		.header = {
			.width = WIDTH, .height = HEIGHT, .pixel = RASHPA_PIXEL_U16,
			.bunch = BUNCH, .images = stacks * BUNCH, .dataset_images = IMAGES,
		},
		.process = dtp, .processes = DTPS,
		.flags = info->features & RFPGA_FEATURE_META ? RASHPA_PLAN_META : 0,
	};
	struct rashpa_stream *stream;

	for (uint32_t n = 0; n < DTPS; n++)
		dtp[n] = (struct rashpa_stream_process) {
			.function = RASHPA_STREAM_FPGA, .fpga = info->number, .number = n,
			.y = n * HEIGHT / DTPS, .origin_y = n * HEIGHT / DTPS,
			.width = WIDTH, .height = HEIGHT / DTPS,
			.doorbell_offset = n * RFPGA_DOORBELL_PAGE + RFPGA_DB_TAGGED,
		};
	check(rashpa_stream_create(buffer, &plan, &stream));
	return stream;
}

/* Wait until all DTPs have sent all their images, or something stops them. */
static void wait_done(struct rashpa_board *board, struct rashpa_run *run, uint32_t dtps)
{
	const int channel = rashpa_channel_open(rashpa_board_device(board), 0);
	struct pollfd poll_channel = { .fd = channel, .events = POLLIN };
	struct rashpa_event event;
	uint32_t all = 0;

	check(channel);
	check(rashpa_channel_add(channel, RASHPA_SOURCE_DEVICE, 0));
	check(rashpa_channel_add(channel, RASHPA_SOURCE_VECTOR, 0));
	while (!(all & RFPGA_DTP_DONE)) {
		/* the event of the last stack may come before the DTP says that it is done */
		if (poll(&poll_channel, 1, 100) > 0 &&
		    read(channel, &event, sizeof(event)) == sizeof(event) &&
		    rashpa_run_ended_by(run, &event))
			errx(1, "the board was stopped: %s",
			     rashpa_device_event_name((uint32_t)event.value));
		check(rashpa_board_status(board, dtps, NULL, &all));
	}
	close(channel);
}

int main(int argc, char **argv)
{
	const struct rashpa_run_plan plan = { .line_stride = LINE, .image_stride = HEIGHT * LINE };
	const uint32_t dtps = RASHPA_BOARD_DTP(DTPS) - 1;
	struct rashpa_dtp_stat counts;
	struct rashpa_board_info info;
	struct rashpa_stream *stream;
	struct rashpa_board *board;
	struct rashpa_run *run;

	if (argc != 4)
		errx(2, "usage: board BUFFER fpgaN STACKS");
	check(rashpa_board_open(argv[2], &board));
	check(rashpa_board_claim(board));
	check(rashpa_board_get_info(board, &info));
	load(board);
	stream = create(argv[1], &info, strtoull(argv[3], NULL, 0));
	check(rashpa_run_open(board, stream, &plan, &run));

	/* consumers attach here; they give credit to the board themselves */
	check(rashpa_run_start(run, rashpa_stream_get_header(stream)->first_stack, 0));
	wait_done(board, run, dtps);
	if (rashpa_run_stop(run, STOP_NS))
		check(rashpa_device_quiesce(rashpa_board_device(board), NULL));

	check(rashpa_run_get_stat(run, &counts));
	printf("%" PRIu64 " images, %" PRIu64 " bytes, %" PRIu64 " interrupts, %g s\n",
	       counts.images, counts.bytes, counts.events,
	       (double)(counts.stop - counts.start) / info.tick_rate);
	check(rashpa_run_end(run));
	rashpa_run_close(run);
	rashpa_stream_close(stream);
	rashpa_board_close(board);
	return 0;
}
