// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Control software of a board without the reference interface: edu BUFFER fpgaN STACKS [records]
 *
 * QEMU's edu copies between its own 4 KiB and the host, then interrupts. Pixels of frame n have the
 * value n mod 2 + 1. This program publishes the slots; with "records" edu writes the lock records.
 */
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rashpa.h>
#include <rashpa-fpga.h>
#include <rashpa-stream.h>

#define SRC		0x80
#define DST		0x88
#define COUNT		0x90
#define COMMAND		0x98
#define FROM_HOST	(1u | 4u)	/* start, interrupt at the end */
#define TO_HOST		(1u | 2u | 4u)
#define INSIDE		0x40000u	/* address of its 4 KiB */
#define RECORD		3072u		/* offset of a lock record there, after the images */
#define WIDTH		32u
#define HEIGHT		16u
#define IMAGE		(WIDTH * HEIGHT * sizeof(uint16_t))
#define IMAGES		2u

static int device, channel;
static volatile char *regs;
static uint64_t buffer, notes;	/* bus addresses of the stream, and of a page of the program */

static void check(int error)
{
	if (error < 0)
		errx(1, "%s", rashpa_reason());
}

/* Map a memory for the board until the program ends. Return: its bus address. */
static uint64_t map(int dmabuf)
{
	struct rashpa_map_make make = { .fd = dmabuf };
	const struct rashpa_table *table;

	check(dmabuf);
	check(rashpa_device_map(device, &make));
	check(rashpa_table_map(make.out_fd, make.out_table_size, &table));
	if (table->count != 1)
		errx(1, "%u segments: create a contiguous buffer", table->count);
	return table->segment[0].address;
}

static void copy(uint64_t from, uint64_t to, uint64_t bytes, uint64_t command)
{
	struct pollfd interrupt = { .fd = channel, .events = POLLIN };
	struct rashpa_event event;

	*(volatile uint64_t *)(regs + SRC) = from;
	*(volatile uint64_t *)(regs + DST) = to;
	*(volatile uint64_t *)(regs + COUNT) = bytes;
	rashpa_doorbell64((void *)(uintptr_t)regs, COMMAND, command);
	if (poll(&interrupt, 1, 10000) <= 0 || read(channel, &event, sizeof(event)) <= 0)
		errx(1, "no interrupt");
	if (event.kind != RASHPA_SOURCE_VECTOR)
		errx(1, "%s", rashpa_device_event_name(event.value));
}

static void publish(struct rashpa_stream *s)
{
	const struct rashpa_stream_header *h = rashpa_stream_get_header(s);
	struct rashpa_stack st;
	int more;

	while ((more = rashpa_stream_slot(s, &st, -1)) > 0) {
		copy(INSIDE + st.number % IMAGES * IMAGE,
		     buffer + h->data_offset + st.slot * h->slot_stride, IMAGE, TO_HOST);
		check(rashpa_stream_publish(s, &st));
	}
	check(more);
	check(rashpa_stream_end(s, NULL));
}

/* The board's part of a stream, if edu had logic: image, record, its last word, interrupt. */
static void write_records(struct rashpa_stream *s, volatile uint64_t *record)
{
	const struct rashpa_stream_header *h = rashpa_stream_get_header(s);
	struct rashpa_stream_header *now;

	check(rashpa_mmap(rashpa_stream_buffer(s), 0, RASHPA_STREAM_PAGE, PROT_READ, (void **)&now));
	for (uint64_t n = h->first_stack; n < h->first_stack + h->images; n++) {
		while (n >= __atomic_load_n(&now->credit, __ATOMIC_ACQUIRE) + h->slots)
			usleep(1000);	/* consumers also write it to the doorbell */
		copy(INSIDE + n % IMAGES * IMAGE,
		     buffer + h->data_offset + n % h->slots * h->slot_stride, IMAGE, TO_HOST);
		record[RFPGA_LOCK_BEGUN / 8] = record[RFPGA_LOCK_STACKS / 8] = n + 1;
		record[RFPGA_LOCK_IMAGES / 8] = n + 1 - h->first_stack;
		record[RFPGA_LOCK_RUN / 8] = h->run;
		record[RFPGA_LOCK_FRAME / 8] = n;
		copy(notes, INSIDE + RECORD, RFPGA_LOCK_SIZE, FROM_HOST);
		copy(INSIDE + RECORD, buffer + h->lock_offset, RFPGA_LOCK_STACKS, TO_HOST);
		copy(INSIDE + RECORD + RFPGA_LOCK_STACKS,
		     buffer + h->lock_offset + RFPGA_LOCK_STACKS, 8, TO_HOST);
	}
	check(rashpa_stream_end(s, &(struct rashpa_stream_header){ .sent = h->images }));
}

int main(int argc, char **argv)
{
	struct rashpa_stream_process whole = { .width = WIDTH, .height = HEIGHT };
	struct rashpa_stream_plan plan = {
		.header = { .width = WIDTH, .height = HEIGHT, .pixel = RASHPA_PIXEL_U16, .bunch = 1 },
		.process = &whole, .processes = 1,
	};
	struct rashpa_window_make window = { .name = "registers" };
	struct rashpa_alloc page = { .length = RASHPA_STREAM_PAGE };
	struct rashpa_stream *s;
	void *memory;

	if (argc < 4 || strncmp(argv[2], "fpga", 4))
		errx(2, "usage: edu BUFFER fpgaN STACKS [records]");
	plan.header.images = strtoull(argv[3], NULL, 0);
	whole.fpga = strtoul(argv[2] + 4, NULL, 10);
	whole.function = argc > 4 ? RASHPA_STREAM_FPGA : RASHPA_STREAM_SOFTWARE;
	check(device = rashpa_device_open(whole.fpga));
	check(rashpa_mmap(rashpa_device_window(device, &window), 0, RASHPA_STREAM_PAGE,
			  PROT_READ | PROT_WRITE, (void **)&regs));
	check(channel = rashpa_channel_open(device, 0));
	check(rashpa_channel_add(channel, RASHPA_SOURCE_VECTOR, 0));
	check(rashpa_channel_add(channel, RASHPA_SOURCE_DEVICE, 0));	/* stopped, reset, removed */
	/* the images, into the board */
	check(rashpa_memory_alloc_for(rashpa_memory_open(), device, &page));
	check(rashpa_mmap(page.out_fd, 0, RASHPA_STREAM_PAGE, PROT_READ | PROT_WRITE, &memory));
	notes = map(page.out_fd);
	for (uint32_t i = 0; i < IMAGES * IMAGE / 2; i++)
		((volatile uint16_t *)memory)[i] = i / (IMAGE / 2) + 1;
	copy(notes, INSIDE, IMAGES * IMAGE, FROM_HOST);

	check(rashpa_stream_create(argv[1], &plan, &s));
	buffer = map(rashpa_buffer_dmabuf(rashpa_stream_buffer(s)));
	check(rashpa_stream_start(s, 1, 0));
	if (argc > 4)
		write_records(s, memory);
	else
		publish(s);
	rashpa_stream_close(s);
	return 0;
}
