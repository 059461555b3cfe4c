// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The header that a producer puts at the beginning of a buffer, as the library checks it:
 * whatever is believed lies inside the buffer. An input is what differs from a good header and
 * its processes: the buffer's length, the header, and the table.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "lib/stream.h"

#define LENGTH	(64 << 20)
#define BASE	((uintptr_t)4096)	/* address of a buffer that is never read */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *input;
static size_t left;

/* The input changes the beginning of it; the rest stays. */
static void change(void *what, size_t size)
{
	uint8_t *byte = what;

	for (size_t i = 0; i < size && left; i++, left--)
		byte[i] ^= *input++;
}

/* Without the arithmetic of the code under test: wide enough not to overflow. */
static void must_lie(const struct rashpa_stream_header *h, uint64_t offset, uint64_t align,
		     unsigned __int128 bytes, uint64_t length)
{
	must(offset % align == 0 && offset >= RASHPA_STREAM_TABLES && offset >= h->header_size &&
	     offset + bytes <= length);
}

static unsigned __int128 slots_of(const struct rashpa_stream_header *h)
{
	unsigned __int128 end = (unsigned __int128)(h->slots - 1) * h->slot_stride;

	end += (unsigned __int128)(h->bunch - 1) * h->image_stride;
	end += (unsigned __int128)(h->height - 1) * h->line_stride;
	return end + (unsigned __int128)h->width * stream_pixel_bytes(h->pixel);
}

static void must_fit(const struct rashpa_stream_header *h, uint64_t length)
{
	if (!*h->payload_name)
		must_lie(h, h->data_offset, RASHPA_STREAM_PAGE, slots_of(h), length);
	else
		must(h->data_offset + slots_of(h) < UINT64_MAX);
	must_lie(h, h->process_offset, 8, (unsigned __int128)h->processes * h->process_size,
		 length);
	must_lie(h, h->module_offset, 8, (unsigned __int128)h->modules * h->module_size, length);
	must(h->process_size >= sizeof(struct rashpa_stream_process) && h->process_size % 8 == 0 &&
	     h->module_size >= sizeof(struct rashpa_stream_module));
	must(h->locks && h->locks <= RASHPA_STREAM_LOCKS);
	if (!*h->lock_name)
		must_lie(h, h->lock_offset, RFPGA_LOCK_SIZE,
			 (unsigned __int128)h->locks * RFPGA_LOCK_SIZE, length);
	if (h->meta_slot) {
		must(h->meta_slot == (unsigned __int128)h->bunch * RFPGA_META_SIZE);
		must_lie(h, h->meta_offset, RFPGA_META_SIZE,
			 (unsigned __int128)h->processes * h->slots * h->meta_slot, length);
	} else {
		must(!h->live && (h->policy != RASHPA_STREAM_DROP || h->record_size));
	}
	if (h->record_size) {
		must(h->record_size >= sizeof(struct rashpa_stream_record) &&
		     h->record_size % 8 == 0);
		must_lie(h, h->record_offset, 8, (unsigned __int128)h->slots * h->record_size,
			 length);
	}
	if (h->map_slot) {
		must(h->map_slot % 8 == 0);
		must_lie(h, h->map_offset, 8, (unsigned __int128)h->slots * h->map_slot, length);
	}
	if (h->work_offset >= RASHPA_STREAM_PAGE)
		must_lie(h, h->work_offset, 8, sizeof(struct rashpa_stream_work), length);
	else if (h->work_offset)
		must(h->work_offset % 8 == 0 && h->work_offset >= h->header_size &&
		     h->work_offset + sizeof(struct rashpa_stream_work) <= RASHPA_STREAM_PAGE);
	must_lie(h, h->claim_offset, 8,
		 (unsigned __int128)8 * RASHPA_STREAM_PLACES * h->slots, length);
	must(memchr(h->lock_name, 0, sizeof(h->lock_name)) && !strchr(h->lock_name, '/') &&
	     memchr(h->payload_name, 0, sizeof(h->payload_name)) &&
	     !strchr(h->payload_name, '/') && memchr(h->dataset, 0, sizeof(h->dataset)));
}

/* Computations of readers with the header, for any stack number in a lock record. */
static void numbers(const struct rashpa_stream_header *h, uint64_t stack, uint64_t frame)
{
	const uint64_t end = stream_end(h), credit = stream_number(h->credit);
	uint64_t oldest;

	must(credit >= h->first_stack && credit <= end);
	must(stream_images(h, h->first_stack, h->first_stack + 1) <= h->bunch &&
	     stream_images(h, h->first_stack, h->first_stack + 1));
	must(!h->images || stream_images(h, end - 1, end));
	must(!h->images || !stream_images(h, end, end + 1));
	must(stream_extent(h, 1) <= stream_extent(h, h->bunch));
	must(stream_possible(h, h->first_stack) && stream_possible(h, credit));
	oldest = stream_oldest(h, stack, credit);
	must(oldest <= stack && stack - oldest <= h->slots);
	if (stream_possible(h, stack))
		must(stack <= end && stream_images(h, stack, stack + 1) <= h->bunch);
	stream_index(h, frame);
}

static void must_reach(const struct rashpa_stream_header *h,
		       const struct rashpa_stream_process *process, uint64_t stack)
{
	const struct rashpa_stream s = { .head = *h, .buffer.base = (uint8_t *)BASE };
	const uint64_t slot = stack % h->slots;

	for (uint32_t i = 0; i < h->processes; i++) {
		const struct rashpa_stream_process *p = &process[i];

		must(p->width && p->height && (uint64_t)p->x + p->width <= h->width &&
		     (uint64_t)p->y + p->height <= h->height);
		must((uint64_t)p->origin_x + p->width <= UINT32_MAX &&
		     (uint64_t)p->origin_y + p->height <= UINT32_MAX);
		must(p->lock < h->locks && p->module < h->modules && p->function <= 1);
		must((uint64_t)p->message + p->messages <= h->map_slot * (unsigned __int128)8);
		must(p->function == RASHPA_STREAM_SOFTWARE || p->doorbell_offset % 8 == 0);
		for (uint32_t j = 0; j < i; j++)
			must(p->lock != process[j].lock ||
			     (p->function | process[j].function) == RASHPA_STREAM_SOFTWARE);
		if (!h->meta_slot)
			continue;
		must((uintptr_t)stream_meta(&s, i, stack, h->bunch - 1) - BASE ==
		     h->meta_offset + (i * (uint64_t)h->slots + slot) * h->meta_slot +
		     (h->bunch - UINT64_C(1)) * RFPGA_META_SIZE);
	}
	must(!h->record_size || (uintptr_t)stream_record(&s, stack) - BASE ==
	     h->record_offset + slot * h->record_size);
	must(!h->map_slot || (uintptr_t)stream_map(&s, stack) - BASE ==
	     h->map_offset + slot * h->map_slot);
}

/* 128 messages, 7 slots, metadata and records */
static void good(struct rashpa_stream_header *h, struct rashpa_stream_process *process)
{
	*h = (struct rashpa_stream_header) {
		.run = 1,
		.state = RASHPA_STREAM_RUNNING,
		.width = 1024, .height = 512, .pixel = RASHPA_PIXEL_U16,
		.bunch = 8,
		.images = 100, .first_stack = 4, .credit = 5,
		.sampling = 1, .dataset_images = 10,
		.processes = 2, .modules = 2, .locks = 2,
		.record_size = sizeof(struct rashpa_stream_record),
	};
	must(!stream_layout(h, 128, true, LENGTH, 0));
	for (uint32_t i = 0; i < 2; i++)
		process[i] = (struct rashpa_stream_process) {
			.function = RASHPA_STREAM_FPGA, .number = i, .lock = i, .module = i,
			.y = i * 256, .width = 1024, .height = 256, .doorbell_offset = i * 4096,
			.message = i * 64, .messages = 64,
		};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rashpa_stream_process process[RASHPA_STREAM_PROCESSES];
	struct rashpa_stream_header h;
	uint64_t word[3] = { LENGTH };	/* length, a stack, a frame */

	input = data;
	left = size;
	memset(process, 0, sizeof(process));
	good(&h, process);
	change(word, sizeof(word));
	change(&h, sizeof(h));
	change(process, sizeof(process));
	/* mappings are shorter */
	if (word[0] > INT64_MAX || stream_check(&h, word[0]))
		return 0;
	must_fit(&h, word[0]);
	numbers(&h, word[1], word[2]);
	if (!stream_check_processes(&h, process))
		must_reach(&h, process, word[1]);
	return 0;
}
