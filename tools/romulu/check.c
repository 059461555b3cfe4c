// SPDX-License-Identifier: GPL-2.0-only
/* Is a frame, byte for byte, the image that it should be? */
#include <inttypes.h>
#include <string.h>

#include "romulu.h"
#include "say.h"

int check_possible(const struct rashpa_stream *stream, const struct dataset *dataset, char *why)
{
	if (stream->pixel_bytes != sizeof(uint16_t))
		return because(why, -1, "pixels of %" PRIu32 " bytes cannot be compared: use --no-check",
			       stream->pixel_bytes);
	if (stream->dataset_images > dataset->images)
		return because(why, -1, "the stream shows %" PRIu32
			       " images, the dataset %s has %" PRIu32
			       ": give the producer's --dataset",
			       stream->dataset_images, dataset->source, dataset->images);
	for (unsigned int i = 0; i < stream->dtps; i++) {
		const struct rashpa_stream_dtp *d = &stream->dtp[i];
		const struct rashpa_stream_origin *o = &stream->origin[i];

		if (o->x + d->width > DATASET_WIDTH || o->y + d->height > DATASET_HEIGHT)
			return because(why, -1, "process %" PRIu32 " shows a region outside the dataset's images: use --no-check",
				       d->dtp);
	}
	return 0;
}

/* Compare all regions with one image of the dataset; where they differ first. */
static bool same(const struct rashpa_stream *s, const struct dataset *dataset, uint32_t number,
		 const uint8_t *frame, struct mismatch *m)
{
	for (unsigned int i = 0; i < s->dtps; i++) {
		const struct rashpa_stream_dtp *d = &s->dtp[i];

		for (uint32_t y = 0; y < d->height; y++) {
			const uint8_t *line = frame + (d->y + y) * s->line_stride +
					      (uint64_t)d->x * 2;
			const uint16_t *want = dataset_line(dataset, number, s->origin[i].y + y) +
					       s->origin[i].x;
			uint16_t got;

			if (!memcmp(line, want, (size_t)d->width * 2))
				continue;
			for (uint32_t x = 0; m && x < d->width; x++) {
				memcpy(&got, line + (size_t)x * 2, sizeof(got));
				if (got == want[x])
					continue;
				m->line = d->y + y;
				m->pixel = d->x + x;
				m->expected = want[x];
				m->got = got;
				break;
			}
			return false;
		}
	}
	return true;
}

static uint32_t shown(const struct rashpa_stream *s, uint64_t frame)
{
	return frame % s->dataset_images * (s->sampling % s->dataset_images) % s->dataset_images;
}

bool check_frame(const struct rashpa_stream *stream, const struct dataset *dataset,
		 const void *image, uint64_t stack, uint32_t number, struct mismatch *mismatch)
{
	uint64_t frame = stack * stream->bunch + number;
	uint64_t before[2] = { 1, (uint64_t)stream->slots * stream->bunch };
	uint32_t right = shown(stream, frame);

	*mismatch = (struct mismatch) { .stack = stack, .image = number };
	if (same(stream, dataset, right, image, mismatch))
		return true;
	mismatch->unwritten = mismatch->got == POISON_PIXEL;
	for (int i = 0; i < 2 && !mismatch->duplicate; i++) {
		uint32_t other = frame >= before[i] ? shown(stream, frame - before[i]) : right;

		mismatch->duplicate = other != right && same(stream, dataset, other, image, NULL);
	}
	return false;
}
