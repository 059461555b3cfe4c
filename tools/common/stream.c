// SPDX-License-Identifier: GPL-2.0-only
#include "stream.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include <linux/rashpa.h>

#include "parse.h"
#include "rashpa-fpga.h"
#include "say.h"

#define PAGE	RASHPA_STREAM_PAGE
#define IMAGES_BITS	56	/* no run has more images */
/* of any lock memory */
#define LOCK_OFFSET_MAX	((RASHPA_LOCK_SLOTS_MAX - 1) * (uint64_t)RASHPA_LOCK_SLOT)

/* a + b * c, or UINT64_MAX if that is too much */
static uint64_t reach(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t r;

	if (__builtin_mul_overflow(b, c, &r) || __builtin_add_overflow(a, r, &r))
		return UINT64_MAX;
	return r;
}

static int check_dtp(const struct rashpa_stream *s, unsigned int i, char *why)
{
	const struct rashpa_stream_dtp *d = &s->dtp[i];
	const struct rashpa_stream_origin *o = &s->origin[i];

	if (d->dtp >= RFPGA_DTPS_MAX)
		return because(why, -1, "dtp[%u].dtp is %" PRIu32 ", more than %d", i, d->dtp,
			       RFPGA_DTPS_MAX - 1);
	if (!d->width || !d->height ||
	    (uint64_t)d->x + d->width > s->width || (uint64_t)d->y + d->height > s->height)
		return because(why, -1, "dtp[%u] has a region outside the image", i);
	if ((uint64_t)o->x + d->width > UINT32_MAX || (uint64_t)o->y + d->height > UINT32_MAX)
		return because(why, -1, "origin[%u] is not a place in an image", i);
	if (d->__reserved)
		return because(why, -1, "dtp[%u].__reserved is not 0", i);
	if (*s->lock_name && (d->lock_offset % RFPGA_LOCK_SIZE || d->lock_offset > LOCK_OFFSET_MAX))
		return because(why, -1, "dtp[%u].lock_offset %" PRIu64 " is not in lock memory", i,
			       d->lock_offset);
	if (!*s->lock_name && (d->lock_offset % RFPGA_LOCK_SIZE || d->lock_offset < sizeof(*s) ||
			       reach(d->lock_offset, 1, RFPGA_LOCK_SIZE) > s->data_offset))
		return because(why, -1, "dtp[%u].lock_offset %" PRIu64 " is not between header and data",
			       i, d->lock_offset);
	if (d->doorbell_offset % 8 || d->doorbell_offset > RFPGA_BAR_DOORBELL_SIZE - 8)
		return because(why, -1, "dtp[%u].doorbell_offset %" PRIu64 " is not in the doorbell BAR",
			       i, d->doorbell_offset);
	for (unsigned int j = 0; j < i; j++) {
		if (s->dtp[j].dtp == d->dtp || s->dtp[j].lock_offset == d->lock_offset)
			return because(why, -1, "dtp[%u] and dtp[%u] are the same process or lock record",
				       j, i);
	}
	return 0;
}

/* They are all behind the slots; who leaves images out says by them which. */
static int check_meta(const struct rashpa_stream *s, uint64_t length, char *why)
{
	uint64_t end = reach(s->meta_offset, (uint64_t)s->dtps * s->slots, s->meta_slot);

	if (!s->meta_slot)
		return s->live || s->policy == RASHPA_STREAM_DROP ?
		       because(why, -1, "a stream that leaves images out has no metadata") : 0;
	if (s->meta_slot != (uint64_t)s->bunch * RFPGA_META_SIZE)
		return because(why, -1, "meta_slot %" PRIu64 " is not %" PRIu32 " records",
			       s->meta_slot, s->bunch);
	if (s->meta_offset % RFPGA_META_SIZE ||
	    s->meta_offset < reach(s->data_offset, s->slots, s->slot_stride) || end > length)
		return because(why, -1, "meta_offset %" PRIu64
			       " is not behind the slots, or too near to the end",
			       s->meta_offset);
	return 0;
}

int stream_check(const struct rashpa_stream *s, uint64_t length, char *why)
{
	const bool paced = s->policy != RASHPA_STREAM_OVERWRITE;
	uint64_t line, image, slot, end;

	if (s->magic != RASHPA_STREAM_MAGIC)
		return because(why, -1, "there is no stream header (magic %#" PRIx64 ")", s->magic);
	if (s->header_size != sizeof(*s))
		return because(why, -1, "header_size is %" PRIu32 " and not %zu: producer and consumer are of different versions",
			       s->header_size, sizeof(*s));
	if (s->state > RASHPA_STREAM_ENDED)
		return because(why, -1, "state is %" PRIu32, s->state);
	if (!s->width || !s->height)
		return because(why, -1, "the image has no pixels");
	if (s->pixel_bytes != 1 && s->pixel_bytes != 2 && s->pixel_bytes != 4 &&
	    s->pixel_bytes != 8)
		return because(why, -1, "pixel_bytes is %" PRIu32 ", not 1, 2, 4 or 8",
			       s->pixel_bytes);
	if (!s->bunch || !s->slots || !s->sampling || !s->dataset_images)
		return because(why, -1, "bunch, slots, sampling or dataset_images is 0");
	if (!s->dtps || s->dtps > RASHPA_STREAM_DTPS)
		return because(why, -1, "dtps is %" PRIu32 ", not 1 to %d", s->dtps,
			       RASHPA_STREAM_DTPS);
	if (s->fpga > 0xffff || s->vector > 0x7ff)
		return because(why, -1, "fpga %" PRIu32 " or vector %" PRIu32 " is no such number",
			       s->fpga, s->vector);
	if (s->policy > RASHPA_STREAM_DROP || s->paced != paced)
		return because(why, -1, "policy %" PRIu32 " with paced %" PRIu32, s->policy,
			       s->paced);
	if (s->live > 1 || s->phase >= s->sampling || s->__reserved)
		return because(why, -1, "live is %" PRIu32 ", or phase is not below sampling",
			       s->live);
	if (!memchr(s->lock_name, 0, sizeof(s->lock_name)))
		return because(why, -1, "lock_name does not end");
	if (!name_possible(s->lock_name))
		return because(why, -1, "lock_name is not made of letters, digits and . _ -");
	if (s->data_offset < sizeof(*s) || s->data_offset % PAGE)
		return because(why, -1, "data_offset %" PRIu64 " is in the header or not at a page",
			       s->data_offset);

	line = reach(0, s->width, s->pixel_bytes);
	if (s->line_stride < line || s->line_stride % s->pixel_bytes)
		return because(why, -1, "line_stride %" PRIu64 " is too small or not whole pixels",
			       s->line_stride);
	image = stream_extent(s, 1);
	if (s->image_stride < image || s->image_stride % s->pixel_bytes)
		return because(why, -1, "image_stride %" PRIu64 " is too small or not whole pixels",
			       s->image_stride);
	slot = stream_extent(s, s->bunch);
	if (s->slot_stride < slot || s->slot_stride % s->pixel_bytes)
		return because(why, -1, "slot_stride %" PRIu64 " is too small or not whole pixels",
			       s->slot_stride);
	end = s->data_offset + slot < slot ? UINT64_MAX :
	      reach(s->data_offset + slot, s->slots - 1, s->slot_stride);
	if (slot == UINT64_MAX || end == UINT64_MAX || end > length)
		return because(why, -1, "%" PRIu32 " slots of %" PRIu64 " bytes at %" PRIu64
			       " are more than the buffer's %" PRIu64 " bytes",
			       s->slots, s->slot_stride, s->data_offset, length);

	if (check_meta(s, length, why))
		return -1;

	/* Frame numbers stay far from wrapping. */
	if (s->first_stack >> 40 || s->images >> IMAGES_BITS)
		return because(why, -1, "first_stack or images is absurdly large");
	if (s->consumed >> 41)
		return because(why, -1, "consumed is absurdly large");

	for (unsigned int i = 0; i < s->dtps; i++) {
		if (check_dtp(s, i, why))
			return -1;
	}
	return 0;
}

int stream_copy(const volatile struct rashpa_stream *shared, uint64_t length,
		struct rashpa_stream *copy, char *why)
{
	const volatile uint64_t *from = (const volatile uint64_t *)shared;
	uint64_t *to = (uint64_t *)copy;

	why[0] = '\0';
	if (length < sizeof(*shared))
		return because(why, -1, "the buffer is shorter than a stream header");
	if (__atomic_load_n(&shared->magic, __ATOMIC_ACQUIRE) != RASHPA_STREAM_MAGIC)
		return -1;
	/* Copy once, and check the copy: the other side can change its memory at any time. */
	for (size_t i = 0; i < sizeof(*shared) / sizeof(*to); i++)
		to[i] = from[i];
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&shared->magic, __ATOMIC_RELAXED) != RASHPA_STREAM_MAGIC ||
	    shared->generation != copy->generation)
		return -1;
	copy->magic = RASHPA_STREAM_MAGIC;
	return stream_check(copy, length, why);
}

uint64_t stream_extent(const struct rashpa_stream *s, uint32_t images)
{
	uint64_t image = reach(reach(0, s->width, s->pixel_bytes), s->height - 1, s->line_stride);

	/* lines and images may be padded, but behind the last pixel the next slot may begin */
	return images ? reach(image, images - 1, s->image_stride) : 0;
}

/* With its metadata. */
static uint64_t slot_bytes(const struct rashpa_stream *s)
{
	return reach(s->slot_stride, s->dtps, s->meta_slot);
}

uint64_t stream_bytes(const struct rashpa_stream *s, uint64_t slots)
{
	return reach(s->data_offset, slots, slot_bytes(s));
}

void stream_place_meta(struct rashpa_stream *s)
{
	s->meta_offset = s->meta_slot ? reach(s->data_offset, s->slots, s->slot_stride) : 0;
}

uint64_t stream_meta(const struct rashpa_stream *s, unsigned int i, uint64_t stack,
		     uint32_t image)
{
	return s->meta_offset + ((uint64_t)i * s->slots + stack % s->slots) * s->meta_slot +
	       (uint64_t)image * RFPGA_META_SIZE;
}

uint64_t stream_layout(struct rashpa_stream *s, uint64_t length, bool meta)
{
	s->data_offset = 2 * PAGE;
	s->line_stride = reach(0, s->width, s->pixel_bytes);
	s->image_stride = reach(0, s->line_stride, s->height);
	s->slot_stride = reach(PAGE - 1, s->image_stride, s->bunch) & ~(uint64_t)(PAGE - 1);
	for (unsigned int i = 0; i < s->dtps; i++)
		s->dtp[i].lock_offset = (*s->lock_name ? 0 : PAGE) + i * RFPGA_LOCK_SIZE;
	s->meta_slot = meta ? (uint64_t)s->bunch * RFPGA_META_SIZE : 0;
	return length < s->data_offset ? 0 : (length - s->data_offset) / slot_bytes(s);
}

uint64_t stream_end(const struct rashpa_stream *s)
{
	if (!s->images)
		return UINT64_MAX;
	return s->first_stack + (s->images + s->bunch - 1) / s->bunch;
}

/* Images of this run before stack k. */
static uint64_t images_before(const struct rashpa_stream *s, uint64_t k)
{
	uint64_t images = k < s->first_stack ? 0 : reach(0, k - s->first_stack, s->bunch);

	return s->images && images > s->images ? s->images : images;
}

uint64_t stream_images(const struct rashpa_stream *s, uint64_t a, uint64_t b)
{
	return images_before(s, b) - images_before(s, a);
}

uint32_t stream_stack_images(const struct rashpa_stream *s, uint64_t k)
{
	return stream_images(s, k, k + 1);
}

bool stream_possible(const struct rashpa_stream *s, uint64_t stacks)
{
	return stacks <= stream_end(s) && !(images_before(s, stacks) >> IMAGES_BITS);
}

uint64_t stream_oldest(const struct rashpa_stream *s, uint64_t most, uint64_t credit)
{
	bool writing = most < stream_end(s) && (!s->paced || most < credit + s->slots);
	uint64_t past = most + writing;

	return past > s->slots ? past - s->slots : 0;
}

_Static_assert(sizeof(struct rashpa_stream) % sizeof(uint64_t) == 0, "copied in words");
_Static_assert(sizeof(struct rashpa_stream) <= PAGE, "the header is one page");
