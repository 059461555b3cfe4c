// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Stream from an engine whose profile has a table: engine BUFFER fpgaN STACKS each|round
 *
 * The kernel writes addresses into the table, and the last word that it writes starts the engine. An
 * interrupt says that a stack is complete. With "each" one slot after the other is mapped and programmed
 * when it is free. With "round" all slots are programmed once, and the engine goes round: it waits for
 * no consumer.
 */
#include <err.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rashpa.h>
#include <rashpa-stream.h>

#define WIDTH	256u
#define HEIGHT	128u
#define SLOTS	8u

static void check(int error)
{
	if (error < 0)
		errx(1, "%s", rashpa_reason());
}

/* Map slots, and start the engine with them; the end of the map stops it. Return: the map. */
static int start(int device, int dmabuf, const struct rashpa_stream_header *h, uint32_t slot,
		 uint32_t slots)
{
	struct rashpa_map_make make = {
		.fd = dmabuf, .direction = RASHPA_TO_MEMORY,
		.offset = h->data_offset + slot * h->slot_stride,
		.length = slots * h->slot_stride, .max_segment = h->slot_stride,
	};
	struct rashpa_program entry = { .first = 0 };

	check(rashpa_device_map(device, &make));
	check(rashpa_map_program(make.out_fd, &entry));
	return make.out_fd;
}

static void wait_interrupt(int channel)
{
	struct pollfd interrupt = { .fd = channel, .events = POLLIN };
	struct rashpa_event event;

	if (poll(&interrupt, 1, 10000) <= 0 || read(channel, &event, sizeof(event)) <= 0)
		errx(1, "no interrupt");
	if (event.lost)
		errx(1, "%llu interrupts were lost", (unsigned long long)event.lost);
}

int main(int argc, char **argv)
{
	struct rashpa_stream_process whole = { .width = WIDTH, .height = HEIGHT };
	struct rashpa_stream_plan plan = {
		.header = { .width = WIDTH, .height = HEIGHT, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
			    .slots = SLOTS },
		.process = &whole, .processes = 1,
	};
	const struct rashpa_stream_header *h;
	struct rashpa_stream *s;
	struct rashpa_stack st;
	int device, channel, dmabuf, map = -1, more;
	bool round;

	if (argc != 5 || strncmp(argv[2], "fpga", 4))
		errx(2, "usage: engine BUFFER fpgaN STACKS each|round");
	round = !strcmp(argv[4], "round");
	plan.header.images = strtoull(argv[3], NULL, 0);
	plan.header.policy = round ? RASHPA_STREAM_OVERWRITE : RASHPA_STREAM_WAIT;
	check(device = rashpa_device_open(strtoul(argv[2] + 4, NULL, 10)));
	check(channel = rashpa_channel_open(device, 0));
	check(rashpa_channel_add(channel, RASHPA_SOURCE_VECTOR, 0));
	check(rashpa_stream_create(argv[1], &plan, &s));
	h = rashpa_stream_get_header(s);
	check(dmabuf = rashpa_stream_payload(s));
	check(rashpa_stream_start(s, 0, 0));
	if (round)
		map = start(device, dmabuf, h, 0, SLOTS);
	while ((more = rashpa_stream_slot(s, &st, -1)) > 0) {
		if (!round)
			map = start(device, dmabuf, h, st.slot, 1);
		wait_interrupt(channel);
		if (!round)
			close(map);
		check(rashpa_stream_publish(s, &st));
	}
	check(more);
	if (round)
		close(map);
	check(rashpa_stream_end(s, NULL));
	rashpa_stream_close(s);
	return 0;
}
