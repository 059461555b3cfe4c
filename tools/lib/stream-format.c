// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: read and check the header of a stream. */
#include "lib/stream.h"
#include "lib/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#define PAGE		RASHPA_STREAM_PAGE
#define IMAGES_BITS	56	/* no run has more images */
#define META		RFPGA_META_SIZE
#define CLAIMS		(UINT64_C(8) * RASHPA_STREAM_PLACES)	/* of a slot */

/* a + b * c, or UINT64_MAX on overflow */
static uint64_t reach(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t r;

	if (__builtin_mul_overflow(b, c, &r) || __builtin_add_overflow(a, r, &r))
		return UINT64_MAX;
	return r;
}

static uint64_t up(uint64_t value, uint64_t to)
{
	return value > UINT64_MAX - to ? UINT64_MAX : (value + to - 1) / to * to;
}

uint32_t stream_pixel_bytes(uint32_t pixel)
{
	static const uint8_t bytes[] = {
		[RASHPA_PIXEL_U8] = 1, [RASHPA_PIXEL_U16] = 2, [RASHPA_PIXEL_U32] = 4,
		[RASHPA_PIXEL_U64] = 8, [RASHPA_PIXEL_I8] = 1, [RASHPA_PIXEL_I16] = 2,
		[RASHPA_PIXEL_I32] = 4, [RASHPA_PIXEL_I64] = 8, [RASHPA_PIXEL_F32] = 4,
		[RASHPA_PIXEL_F64] = 8,
	};

	return pixel < sizeof(bytes) ? bytes[pixel] : 0;
}

uint64_t stream_extent(const struct rashpa_stream_header *h, uint32_t images)
{
	uint64_t line = reach(0, h->width, stream_pixel_bytes(h->pixel));
	uint64_t image = reach(line, h->height - 1, h->line_stride);

	/* lines and images may be padded, but the next slot may begin right after the last pixel */
	return images ? reach(image, images - 1, h->image_stride) : 0;
}

uint64_t stream_end(const struct rashpa_stream_header *h)
{
	if (!h->images)
		return UINT64_MAX;
	return h->first_stack + (h->images + h->bunch - 1) / h->bunch;
}

/* Images of this run before stack k. */
static uint64_t images_before(const struct rashpa_stream_header *h, uint64_t k)
{
	uint64_t images = k < h->first_stack ? 0 : reach(0, k - h->first_stack, h->bunch);

	return h->images && images > h->images ? h->images : images;
}

uint64_t stream_images(const struct rashpa_stream_header *h, uint64_t a, uint64_t b)
{
	return images_before(h, b) - images_before(h, a);
}

bool stream_possible(const struct rashpa_stream_header *h, uint64_t stacks)
{
	return stacks <= stream_end(h) && !(stacks >> STREAM_STACKS_BITS) &&
	       !(images_before(h, stacks) >> IMAGES_BITS);
}

uint64_t stream_oldest(const struct rashpa_stream_header *h, uint64_t most, uint64_t credit)
{
	bool writing = most < stream_end(h) && (h->policy == RASHPA_STREAM_OVERWRITE ||
						most < credit + h->slots);
	uint64_t past = most + writing;

	return past > h->slots ? past - h->slots : 0;
}

uint64_t stream_index(const struct rashpa_stream_header *h, uint64_t frame)
{
	return h->live ? (frame - h->phase) / h->sampling : frame - h->first_stack * h->bunch;
}

static int check_image(const struct rashpa_stream_header *h)
{
	uint32_t pixel = stream_pixel_bytes(h->pixel);

	if (!h->width || !h->height)
		return fail(EPROTO, "the image has no pixels");
	if (!pixel)
		return fail(EPROTO, "pixel type %" PRIu32 " is not defined", h->pixel);
	if (h->bit_depth > pixel * 8)
		return fail(EPROTO, "bit_depth %" PRIu32 " is more than a pixel has", h->bit_depth);
	if (h->big_endian > 1 || h->live > 1 || h->unit > RASHPA_STREAM_STACKS)
		return fail(EPROTO, "big_endian, live, unit or a reserved field has a value that is not defined");
	if (!h->bunch || !h->slots || h->slots > INT32_MAX || !h->sampling ||
	    h->phase >= h->sampling)
		return fail(EPROTO, "bunch, slots or sampling is 0, or phase not below sampling");
	if (h->policy > RASHPA_STREAM_DROP)
		return fail(EPROTO, "policy %" PRIu32 " is not defined", h->policy);
	if (h->line_stride < (uint64_t)h->width * pixel || h->line_stride % pixel)
		return fail(EPROTO, "line_stride %" PRIu64 " is too small or not whole pixels",
			    h->line_stride);
	if (h->image_stride < stream_extent(h, 1) || h->image_stride % pixel)
		return fail(EPROTO, "image_stride %" PRIu64 " is too small or not whole pixels",
			    h->image_stride);
	if (h->slot_stride < stream_extent(h, h->bunch) || h->slot_stride % pixel)
		return fail(EPROTO, "slot_stride %" PRIu64 " is too small or not whole pixels",
			    h->slot_stride);
	return 0;
}

int stream_check_name(const char *what, const char name[RASHPA_STREAM_NAME], bool node)
{
	if (!memchr(name, 0, RASHPA_STREAM_NAME))
		return fail(EPROTO, "%s does not end", what);
	if (*name == '.' && node)
		return fail(EPROTO, "%s begins with a dot", what);
	for (; *name; name++) {
		/* it is printed */
		if ((*name > 0 && *name < ' ') || *name == 0x7f)
			return fail(EPROTO, "%s has a control character", what);
		if (node && !((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
			      (*name >= '0' && *name <= '9') || strchr("._-", *name)))
			return fail(EPROTO, "%s is not made of letters, digits and . _ -", what);
	}
	return 0;
}

/* Is something of so many parts, so far apart, in the buffer, and not in the header or the places? */
static int check_place(const struct rashpa_stream_header *h, const char *what, uint64_t offset,
		       uint64_t parts, uint64_t apart, uint64_t align, uint64_t length)
{
	if (offset % align || offset < h->header_size || offset < RASHPA_STREAM_TABLES ||
	    reach(offset, parts, apart) > length)
		return fail(EPROTO, "%s: %" PRIu64 " x %" PRIu64 " bytes at %" PRIu64
			    " are in the header, in the places, or not in the buffer's %" PRIu64
			    " bytes", what, parts, apart, offset, length);
	return 0;
}

/* In the rest of the header's page, or after the places. */
static int check_work(const struct rashpa_stream_header *h, uint64_t length)
{
	const uint64_t size = sizeof(struct rashpa_stream_work);

	if (h->work_offset % 8 == 0 && h->work_offset >= h->header_size &&
	    reach(h->work_offset, 1, size) <= PAGE - 64)
		return 0;
	return check_place(h, "the consumer's work", h->work_offset, 1, size, 8, length);
}

static int check_places(const struct rashpa_stream_header *h, uint64_t length)
{
	uint64_t slots = reach(stream_extent(h, h->bunch), h->slots - 1, h->slot_stride);
	int error = 0;

	if (!*h->payload_name)
		error = check_place(h, "slots", h->data_offset, 1, slots, PAGE, length);
	else if (h->data_offset % PAGE || reach(h->data_offset, 1, slots) == UINT64_MAX)
		error = fail(EPROTO, "data_offset is not at a page");
	if (!error)
		error = check_place(h, "processes", h->process_offset, h->processes,
				    h->process_size, 8, length);
	if (!error)
		error = check_place(h, "modules", h->module_offset, h->modules, h->module_size,
				    8, length);
	if (!error && !*h->lock_name)
		error = check_place(h, "lock records", h->lock_offset, h->locks,
				    RFPGA_LOCK_SIZE, RFPGA_LOCK_SIZE, length);
	if (!error && h->meta_slot)
		error = check_place(h, "metadata", h->meta_offset,
				    reach(0, h->processes, h->slots), h->meta_slot, META, length);
	if (!error && h->record_size)
		error = check_place(h, "records", h->record_offset, h->slots, h->record_size,
				    8, length);
	if (!error && h->work_offset)
		error = check_work(h, length);
	if (!error)
		error = check_place(h, "claims", h->claim_offset,
				    reach(0, RASHPA_STREAM_PLACES, h->slots), 8, 8, length);
	if (!error && h->map_slot)
		error = check_place(h, "maps", h->map_offset, h->slots, h->map_slot, 8, length);
	return error;
}

int stream_check(const struct rashpa_stream_header *h, uint64_t length)
{
	const uint64_t credit = stream_number(h->credit);
	int error;

	if (h->header_size < sizeof(*h) || h->process_size < sizeof(struct rashpa_stream_process) ||
	    h->module_size < sizeof(struct rashpa_stream_module) ||
	    (h->header_size | h->process_size | h->module_size) % 8)
		return fail(EPROTO, "header of %" PRIu32 " bytes, processes of %" PRIu32
			    ", modules of %" PRIu32 ": its producer is older than this library",
			    h->header_size, h->process_size, h->module_size);
	if (h->state > RASHPA_STREAM_ENDED)
		return fail(EPROTO, "state %" PRIu32 " is not defined", h->state);
	if (!h->processes || h->processes > RASHPA_STREAM_PROCESSES || !h->modules ||
	    h->modules > RASHPA_STREAM_PROCESSES || !h->locks || h->locks > RASHPA_STREAM_LOCKS)
		return fail(EPROTO, "%" PRIu32 " processes, %" PRIu32 " modules, %" PRIu32
			    " lock records: not 1 to %d, %d, %d", h->processes, h->modules,
			    h->locks, RASHPA_STREAM_PROCESSES, RASHPA_STREAM_PROCESSES,
			    RASHPA_STREAM_LOCKS);
	error = check_image(h);
	if (!error)
		error = stream_check_name("lock_name", h->lock_name, true);
	if (!error)
		error = stream_check_name("payload_name", h->payload_name, true);
	if (!error)
		error = stream_check_name("dataset", h->dataset, false);
	if (!error)
		error = check_places(h, length);
	if (error)
		return error;
	/* metadata are complete or absent; a stream that leaves images out must name the rest */
	if (h->meta_slot ? h->meta_slot != (uint64_t)h->bunch * META :
			   h->live || (h->policy == RASHPA_STREAM_DROP && !h->record_size))
		return fail(EPROTO, "metadata of %" PRIu64 " bytes a slot for %" PRIu32 " images%s",
			    h->meta_slot, h->bunch, h->meta_slot ? "" : ": RASHPA_PLAN_META is missing");
	if (h->record_size % 8 ||
	    (h->record_size && h->record_size < sizeof(struct rashpa_stream_record)))
		return fail(EPROTO, "records of %" PRIu64 " bytes", h->record_size);
	if (h->map_slot % 8)
		return fail(EPROTO, "maps of %" PRIu64 " bytes: not whole words", h->map_slot);
	/* Frame numbers stay far from wrapping. */
	if (h->first_stack >> 40 || h->images >> IMAGES_BITS || credit >> STREAM_STACKS_BITS)
		return fail(EPROTO, "first_stack, images or credit is above its limit of 40, 56 or %d bits",
			    STREAM_STACKS_BITS);
	if (credit < h->first_stack || credit > stream_end(h))
		return fail(EPROTO, "credit is %" PRIu64 ", but the run goes from stack %" PRIu64
			    " to %" PRIu64, credit, h->first_stack, stream_end(h));
	return 0;
}

static int check_process(const struct rashpa_stream_header *h,
			 const struct rashpa_stream_process *p, uint32_t i)
{
	if (!p->width || !p->height ||
	    (uint64_t)p->x + p->width > h->width || (uint64_t)p->y + p->height > h->height)
		return fail(EPROTO, "process %" PRIu32 " has a region outside the image", i);
	if ((uint64_t)p->origin_x + p->width > UINT32_MAX ||
	    (uint64_t)p->origin_y + p->height > UINT32_MAX)
		return fail(EPROTO, "process %" PRIu32 ": its origin is outside any image", i);
	if (p->lock >= h->locks || p->module >= h->modules ||
	    (p->message_lines && p->line_messages))
		return fail(EPROTO, "process %" PRIu32 " has a lock record or module that is not there",
			    i);
	if ((uint64_t)p->message + p->messages > h->map_slot * 8)
		return fail(EPROTO, "process %" PRIu32 ": its messages are not in the map", i);
	if (p->function == RASHPA_STREAM_SOFTWARE)
		return 0;
	if (p->function != RASHPA_STREAM_FPGA || p->fpga > 0xffff || p->vector > 0x7ff)
		return fail(EPROTO, "process %" PRIu32 ": there is no such function or vector", i);
	if (p->doorbell_offset % 8)
		return fail(EPROTO, "process %" PRIu32 ": its doorbell is not a word", i);
	return 0;
}

int stream_check_processes(const struct rashpa_stream_header *h,
			   const struct rashpa_stream_process *process)
{
	int error = 0;

	for (uint32_t i = 0; i < h->processes && !error; i++) {
		error = check_process(h, &process[i], i);
		for (uint32_t j = 0; j < i && !error; j++) {
			if (process[i].lock == process[j].lock &&
			    (process[i].function || process[j].function))
				error = fail(EPROTO, "processes %" PRIu32 " and %" PRIu32
					     " have one lock record", j, i);
		}
	}
	return error;
}

/* Including metadata, records, maps and claims. */
static uint64_t slot_bytes(const struct rashpa_stream_header *h)
{
	return reach(reach(h->record_size + h->map_slot + CLAIMS, h->processes, h->meta_slot), 1,
		     *h->payload_name ? 0 : h->slot_stride);
}

int stream_layout(struct rashpa_stream_header *h, uint64_t messages, bool meta, uint64_t length,
		  uint64_t payload)
{
	const uint32_t wanted = h->slots ? h->slots : 2;
	uint64_t behind, each, fit;

	h->header_size = sizeof(*h);
	h->process_size = sizeof(struct rashpa_stream_process);
	h->module_size = sizeof(struct rashpa_stream_module);
	h->line_stride = reach(0, h->width, stream_pixel_bytes(h->pixel));
	h->image_stride = reach(0, h->line_stride, h->height);
	h->slot_stride = up(reach(0, h->image_stride, h->bunch), PAGE);
	h->process_offset = RASHPA_STREAM_TABLES;
	h->work_offset = PAGE / 2;
	h->module_offset = h->process_offset + (uint64_t)h->processes * h->process_size;
	behind = up(h->module_offset + (uint64_t)h->modules * h->module_size, PAGE);
	h->lock_offset = *h->lock_name ? 0 : behind;
	if (!*h->lock_name)
		behind = up(behind + (uint64_t)h->locks * RFPGA_LOCK_SIZE, PAGE);
	h->meta_slot = meta ? (uint64_t)h->bunch * META : 0;
	h->map_slot = (messages + 63) / 64 * 8;
	h->data_offset = *h->payload_name ? 0 : behind;

	each = slot_bytes(h);
	fit = length < behind ? 0 : (length - behind) / each;
	if (*h->payload_name && fit > payload / h->slot_stride)
		fit = payload / h->slot_stride;
	if (fit < wanted)
		return fail(ENOSPC, "%" PRIu64 " slots of %" PRIu64 " KiB fit, but %" PRIu32
			    " are wanted: make a larger buffer, or stacks of fewer images",
			    fit, h->slot_stride >> 10, wanted);
	if (!h->slots)
		h->slots = fit < INT32_MAX ? fit : INT32_MAX;
	if (!*h->payload_name)
		behind += h->slots * h->slot_stride;
	h->meta_offset = meta ? behind : 0;
	behind += (uint64_t)h->processes * h->slots * h->meta_slot;
	h->record_offset = h->record_size ? behind : 0;
	behind += h->slots * h->record_size;
	h->map_offset = h->map_slot ? behind : 0;
	h->claim_offset = behind + h->slots * h->map_slot;
	return 0;
}

uint8_t *stream_meta(const struct rashpa_stream *s, uint32_t process, uint64_t stack,
		     uint32_t image)
{
	const struct rashpa_stream_header *h = &s->head;

	return s->buffer.base + h->meta_offset +
	       ((uint64_t)process * h->slots + stack % h->slots) * h->meta_slot +
	       (uint64_t)image * META;
}

struct rashpa_stream_record *stream_record(const struct rashpa_stream *s, uint64_t stack)
{
	return (struct rashpa_stream_record *)(s->buffer.base + s->head.record_offset +
					       stack % s->head.slots * s->head.record_size);
}

uint64_t *stream_map(const struct rashpa_stream *s, uint64_t stack)
{
	return (uint64_t *)(s->buffer.base + s->head.map_offset +
			    stack % s->head.slots * s->head.map_slot);
}

_Static_assert(offsetof(struct rashpa_stream_header, credit) % 64 == 0 &&
	       offsetof(struct rashpa_stream_header, waiting) % 64 == 0 &&
	       offsetof(struct rashpa_stream_header, clock_sequence) % 64 == 0,
	       "each writer has a cache line");
_Static_assert(sizeof(struct rashpa_stream_header) <= PAGE, "the header is one page");
#define PLACE(member, at) (offsetof(struct rashpa_stream_header, member) == (at))
_Static_assert(PLACE(run, 24) && PLACE(width, 40) && PLACE(data_offset, 72) && PLACE(images, 104) && PLACE(live, 132) &&
	       PLACE(dataset, 152) && PLACE(process_offset, 232) && PLACE(lock_name, 256) && PLACE(meta_offset, 384) &&
	       PLACE(segments, 432) && PLACE(sent, 440) && PLACE(credit, 512) && PLACE(waiting, 576) &&
	       PLACE(work_offset, 584) && PLACE(clock_sequence, 640) && PLACE(tick_of, 676), "the header does not move");
_Static_assert(sizeof(struct rashpa_stream_process) == 72, "a format");
_Static_assert(sizeof(struct rashpa_stream_record) == 128, "a format");
