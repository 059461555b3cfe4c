// SPDX-License-Identifier: GPL-2.0-only
/* Is a frame, byte for byte, the image that it should be? */
#include <inttypes.h>
#include <string.h>

#include "rashpa-fpga.h"
#include "romulu.h"
#include "say.h"
#include "stream.h"

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
	if (stream->dataset_sum && stream->dataset_sum != dataset->sum[stream->dataset_images - 1])
		return because(why, -1, "the stream shows other images than those of the dataset %s: give the producer's --dataset",
			       dataset->source);
	for (unsigned int i = 0; i < stream->dtps; i++) {
		const struct rashpa_stream_dtp *d = &stream->dtp[i];
		const struct rashpa_stream_origin *o = &stream->origin[i];

		if (o->x + d->width > DATASET_WIDTH || o->y + d->height > DATASET_HEIGHT)
			return because(why, -1, "process %" PRIu32 " shows a region outside the dataset's images: use --no-check",
				       d->dtp);
	}
	return 0;
}

void read_about(const struct rashpa_stream *s, const uint8_t *base, uint64_t stack,
		uint32_t number, struct about *about)
{
	*about = (struct about) {};
	for (unsigned int i = 0; i < s->dtps; i++) {
		uint32_t record[RFPGA_META_SIZE / 4];
		uint64_t at[2];

		about->frame[i] = stack * s->bunch + number;
		if (!s->meta_slot)
			continue;
		memcpy(record, base + stream_meta(s, i, stack, number), sizeof(record));
		memcpy(at, record, sizeof(at));		/* FRAME, STACK */
		about->frame[i] = at[0];
		if (record[RFPGA_META_STATUS / 4] & RFPGA_META_LINES)
			about->missing[i] = RFPGA_META_MISSING(record[RFPGA_META_STATUS / 4]);
		about->wrong |= at[1] != stack || record[RFPGA_META_RUN / 4] != s->run ||
				at[0] != about->frame[0];
	}
}

uint64_t frame_index(const struct rashpa_stream *s, uint64_t frame)
{
	return s->live ? (frame - s->phase) / s->sampling : frame - s->first_stack * s->bunch;
}

/* Which image of the dataset a frame shows. */
static uint32_t shown(const struct rashpa_stream *s, uint64_t frame)
{
	uint64_t image = frame % s->dataset_images;

	if (s->live)
		return image;
	return (image * (s->sampling % s->dataset_images) + s->phase) % s->dataset_images;
}

/* Compare the region of dtp[i] with an image; so many lines may differ. Where the first does. */
static bool same_region(const struct rashpa_stream *s, const struct dataset *dataset,
			uint32_t number, unsigned int i, uint32_t missing, const uint8_t *frame,
			struct mismatch *m)
{
	const struct rashpa_stream_dtp *d = &s->dtp[i];
	uint32_t wrong = 0;

	for (uint32_t y = 0; y < d->height; y++) {
		const uint8_t *line = frame + (d->y + y) * s->line_stride + (uint64_t)d->x * 2;
		const uint16_t *want = dataset_line(dataset, number, s->origin[i].y + y) +
				       s->origin[i].x;
		uint16_t got;

		if (!memcmp(line, want, (size_t)d->width * 2) || ++wrong <= missing)
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
	return true;
}

/* Is it frame @frame? */
static bool same(const struct rashpa_stream *s, const struct dataset *dataset, uint64_t frame,
		 const struct about *about, const uint8_t *image, struct mismatch *m)
{
	for (unsigned int i = 0; i < s->dtps; i++) {
		if (!same_region(s, dataset, shown(s, frame), i, about->missing[i], image, m))
			return false;
	}
	return true;
}

bool check_frame(const struct rashpa_stream *stream, const struct dataset *dataset,
		 const void *image, uint64_t stack, uint32_t number, const struct about *about,
		 struct mismatch *mismatch)
{
	uint64_t frame = about->frame[0];
	uint64_t before[2] = { 1, (uint64_t)stream->slots * stream->bunch };

	*mismatch = (struct mismatch) { .stack = stack, .image = number };
	if (same(stream, dataset, frame, about, image, mismatch))
		return true;
	mismatch->unwritten = mismatch->got == POISON_PIXEL;
	for (int i = 0; i < 2 && !mismatch->duplicate; i++) {
		uint64_t other = frame >= before[i] ? frame - before[i] : frame;

		mismatch->duplicate = shown(stream, other) != shown(stream, frame) &&
				      same(stream, dataset, other, about, image, NULL);
	}
	return false;
}
