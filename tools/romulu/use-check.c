// SPDX-License-Identifier: LGPL-2.1-or-later
/* Frames are compared, byte for byte, with the images of a dataset. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "romulu/romulu.h"
#include "common/say.h"

#define HOLD_STEP	16	/* images from one look at signals to the next */
#define POISON_BYTE	0xa5
#define POISON_PIXEL	0xa5a5a5a5

/* The first wrong pixel of a frame. */
struct mismatch {
	uint64_t stack;
	uint32_t image, line, pixel;
	uint32_t expected, got;
	bool duplicate, unwritten;
};

/* Findings in a stack, counted only if the stack was intact. */
struct finding {
	struct mismatch wrong[MISMATCHES];
	uint64_t n_wrong, duplicate, unwritten;
};

static int check_open(struct run *r)
{
	r->data = calloc(1, sizeof(struct finding));
	return r->data ? 0 : fail("no memory to compare");
}

/* The rest of a large dataset, as far as the stream shows it. */
static int hold(struct run *r, uint32_t images)
{
	struct dataset *d = r->dataset;
	char why[WHY_SIZE];

	while (d->held < images) {
		if (*r->stop)
			return -EINTR;
		if (dataset_hold(d, images - d->held < HOLD_STEP ? images : d->held + HOLD_STEP,
				 why))
			return fail("%s", why);
	}
	return 0;
}

/* A detector does not know its images: then we do. */
static uint32_t images_shown(const struct run *r)
{
	return r->about->dataset_images ? r->about->dataset_images : r->dataset->images;
}

/* Can the dataset be what the stream shows? */
static int check_begin(struct run *r)
{
	const struct rashpa_stream_header *h = r->about;
	const char *buffer = r->config->opt.buffer;
	struct dataset *dataset = r->dataset;
	const struct geometry *g = &dataset->geometry;
	int result;

	if (!h->dataset_images && !r->config->opt.dataset)
		return fail("buffer %s: the stream names no dataset to compare with: give --dataset, or leave out --check",
			    buffer);
	if (h->pixel != g->pixel || h->big_endian)
		return fail("buffer %s: the stream's pixels are of another type than those of the dataset %s: give the producer's --dataset, or leave out --check",
			    buffer, dataset->source);
	if (h->dataset_images > dataset->images)
		return fail("buffer %s: the stream shows %" PRIu32
			    " images, the dataset %s has %" PRIu32
			    ": give the producer's --dataset",
			    buffer, h->dataset_images, dataset->source, dataset->images);
	result = hold(r, images_shown(r));
	if (result)
		return result;
	if (h->dataset_sum && h->dataset_sum != dataset->sum[h->dataset_images - 1])
		return fail("buffer %s: the stream shows other images than those of the dataset %s: give the producer's --dataset",
			    buffer, dataset->source);
	for (uint32_t i = 0; i < h->processes; i++) {
		const struct rashpa_stream_process *p = rashpa_stream_process_at(r->stream, i);

		if ((uint64_t)p->origin_x + p->width > g->width ||
		    (uint64_t)p->origin_y + p->height > g->height)
			return fail("buffer %s: process %" PRIu32 " shows a region outside the dataset's images: leave out --check",
				    buffer, p->number);
	}
	return 0;
}

/* Which image of the dataset a frame shows. */
static uint32_t shown(const struct run *r, uint64_t frame)
{
	const struct rashpa_stream_header *h = r->about;
	const uint32_t n = images_shown(r);

	if (h->live)
		return frame % n;
	if (h->unit == RASHPA_STREAM_STACKS)
		return ((frame / h->bunch * h->sampling + h->phase) * h->bunch +
			frame % h->bunch) % n;
	return (frame % n * (h->sampling % n) + h->phase) % n;
}

/* Did a part of the line not come, by the map of messages? */
static bool line_missing(const struct run *r, const struct rashpa_stack *st, uint32_t process,
			 uint32_t image, uint32_t y)
{
	const struct rashpa_stream_process *p = rashpa_stream_process_at(r->stream, process);
	const uint32_t each = p->messages / r->about->bunch;
	uint32_t first = image * each, n = 1;

	if (!st->missing || !p->messages)
		return false;
	if (p->message_lines) {
		first += y / p->message_lines;
	} else if (p->line_messages) {
		first += y * p->line_messages;
		n = p->line_messages;
	} else {
		first = 0;
		n = p->messages;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (rashpa_stack_missing(st, process, first + i) > 0)
			return true;
	}
	return false;
}

/* Compare a process's region with an image; so many lines may differ. Where the first does. */
static bool same_region(const struct run *r, const struct rashpa_stack *st, uint32_t number,
			uint32_t process, uint32_t index, uint32_t *missing,
			const uint8_t *frame, struct mismatch *m)
{
	const struct rashpa_stream_process *p = rashpa_stream_process_at(r->stream, process);
	const size_t pixel = st->pixel_bytes;

	for (uint32_t y = 0; y < p->height; y++) {
		const uint8_t *line = frame + (p->y + y) * st->line_stride + p->x * pixel;
		const uint8_t *want = dataset_line(r->dataset, number, p->origin_y + y) +
				      p->origin_x * pixel;

		if (!memcmp(line, want, p->width * pixel) ||
		    line_missing(r, st, process, index, y))
			continue;
		if (*missing) {
			--*missing;
			continue;
		}
		for (uint32_t x = 0; m && x < p->width; x++) {
			if (!memcmp(line + x * pixel, want + x * pixel, pixel))
				continue;
			m->line = p->y + y;
			m->pixel = p->x + x;
			memcpy(&m->expected, want + x * pixel, pixel);
			memcpy(&m->got, line + x * pixel, pixel);
			break;
		}
		return false;
	}
	return true;
}

static bool same(const struct run *r, const struct rashpa_stack *st, uint64_t frame, uint32_t index,
		 const struct rashpa_image *image, struct mismatch *m)
{
	/* where messages are counted it is known which lines */
	uint32_t missing = r->about->map_slot ? 0 : image->missing_lines;

	for (uint32_t i = 0; i < r->about->processes; i++) {
		if (!same_region(r, st, shown(r, frame), i, index, &missing, image->data,
				 m))
			return false;
	}
	return true;
}

static bool check_frame(const struct run *r, const struct rashpa_stack *st, uint32_t number,
			const struct rashpa_image *image, struct mismatch *m)
{
	const struct rashpa_stream_header *h = r->about;
	uint64_t before[2] = { 1, (uint64_t)h->slots * h->bunch };

	*m = (struct mismatch) { .stack = st->number, .image = number };
	if (same(r, st, image->frame, number, image, m))
		return true;
	m->unwritten = m->got == POISON_PIXEL >> (32 - 8 * st->pixel_bytes);
	for (int i = 0; i < 2 && !m->duplicate; i++) {
		uint64_t other = image->frame >= before[i] ? image->frame - before[i] :
							     image->frame;

		m->duplicate = shown(r, other) != shown(r, image->frame) &&
			       same(r, st, other, number, image, NULL);
	}
	return false;
}

/* The last image first: if the event came before the data, that one is late. */
static int check_look(struct run *r, const struct rashpa_stack *st)
{
	struct finding *f = r->data;
	struct rashpa_image image;
	struct mismatch m;

	*f = (struct finding) {};
	for (uint32_t i = st->images; i-- > 0;) {
		if (rashpa_stack_image(st, i, &image) || image.wrong ||
		    check_frame(r, st, i, &image, &m))
			continue;
		if (f->n_wrong < MISMATCHES)
			f->wrong[f->n_wrong] = m;
		f->n_wrong++;
		f->duplicate += m.duplicate;
		f->unwritten += m.unwritten;
	}
	return 0;
}

static int check_stack(struct run *r, const struct rashpa_stack *st)
{
	const struct finding *f = r->data;

	const int digits = 2 * st->pixel_bytes;

	r->report->corrupt += f->n_wrong;
	r->report->duplicate += f->duplicate;
	r->report->unwritten += f->unwritten;
	for (unsigned int i = 0; i < f->n_wrong && i < MISMATCHES; i++) {
		const struct mismatch *m = &f->wrong[i];

		if (r->printed++ < MISMATCHES)
			say("stack %" PRIu64 " image %" PRIu32 " line %" PRIu32 " pixel %" PRIu32 ": expected 0x%0*x, got 0x%0*x%s%s",
			    m->stack, m->image, m->line, m->pixel, digits, m->expected, digits,
			    m->got,
			    m->unwritten ? " (never written)" : "",
			    m->duplicate ? " (an image that was here before)" : "");
		else if (r->printed == MISMATCHES + 1)
			say("more wrong frames are only counted");
	}
	return 0;
}

/* A slot that is not written again must not look right. */
static void check_after(struct run *r, const struct rashpa_stack *st)
{
	uint8_t *image = st->data;

	if (r->about->policy == RASHPA_STREAM_OVERWRITE)
		return;
	/* check before each store, and keep stores small: the slot may have a new owner */
	for (uint32_t i = 0; i < st->images && rashpa_stack_intact(st); i++)
		memset(image + i * st->image_stride, POISON_BYTE,
		       (st->height - 1) * st->line_stride + (size_t)st->width * st->pixel_bytes);
}

static int check_close(struct run *r)
{
	free(r->data);
	return 0;
}

const struct use use_check = {
	.name = "check",
	.open = check_open,
	.begin = check_begin,
	.look = check_look,
	.stack = check_stack,
	.after = check_after,
	.close = check_close,
};
