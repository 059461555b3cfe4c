// SPDX-License-Identifier: LGPL-2.1-or-later
#include "romulu/driven.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/say.h"

#define AHEAD		4u	/* images that are enqueued before they were computed */
#define PATIENCE_NS	60000000000ull
#define ENDLESS		(INT32_MAX / 2u - 1)

struct driven {
	struct rashpa_drive *drive;
	uint32_t told;		/* images announced to the drive */
	uint32_t through;	/* images of stacks that are computed */
	struct rashpa_driven got;
	bool has;		/* @got is an image of a later stack */
};

static const char * const ways[] = {
	[RASHPA_DRIVE_LAUNCH] = "launch", [RASHPA_DRIVE_AHEAD] = "ahead",
	[RASHPA_DRIVE_POLL] = "persistent",
};

const char *driven_name(uint32_t way)
{
	return ways[way];
}

bool driven_way(const char *text, uint32_t *way)
{
	for (uint32_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		*way = i;
		if (!strcmp(text, ways[i]))
			return true;
	}
	return false;
}

/* A drive needs images without gaps, from slot 0 on, that stay until it has read them. */
static int check(const struct run *r, const struct rashpa_stack *first)
{
	const struct rashpa_stream_header *h = r->about;
	const char *buffer = r->config->opt.buffer;

	if (h->policy == RASHPA_STREAM_OVERWRITE)
		return fail("buffer %s: its images may be overwritten while a GPU takes them: stream with --policy wait",
			    buffer);
	if (h->line_stride != h->width * first->pixel_bytes ||
	    (h->bunch > 1 && h->slot_stride != h->bunch * h->image_stride))
		return fail("buffer %s: there are gaps between its lines or stacks, which a drive does not take: leave --drive out, or stream with --bunch 1",
			    buffer);
	if (first->number % h->slots)
		return fail("buffer %s: the first stack is number %" PRIu64 ", and a drive begins with slot 0: start romulu before the producer",
			    buffer, first->number);
	return 0;
}

int driven_open(const struct run *r, struct rashpa_pipeline *pipeline,
		const struct rashpa_stack *first, const void *raw, uint32_t depth,
		struct driven **driven)
{
	const struct rashpa_stream_header *h = r->about;
	const struct rashpa_drive_plan plan = {
		.way = r->config->way,
		.images = h->images && h->images < ENDLESS ? h->images : ENDLESS,
		.raw = raw, .slots = h->slots * h->bunch,
		.step = h->bunch > 1 ? h->image_stride : h->slot_stride,
		/* no image of the announced stacks lacks one */
		.credits = depth * h->bunch, .ahead = AHEAD, .patience_ns = PATIENCE_NS,
		.trace = r->config->trace, .pairs = r->config->pairs,
	};
	struct driven *d;

	if (check(r, first))
		return EXIT_FAILED;
	d = calloc(1, sizeof(*d));
	if (!d)
		return fail("no memory for a drive");
	*driven = d;
	if (rashpa_drive_open(&pipeline, 1, &plan, &d->drive))
		return fail("--drive: %s", rashpa_reason());
	return 0;
}

int driven_tell(struct driven *d, const struct run *r, const struct rashpa_stack *st)
{
	const struct rashpa_stream_header *h = r->about;
	struct rashpa_image image;

	if (d->told % (h->slots * h->bunch) != st->slot * h->bunch)
		return fail("buffer %s: a stack before number %" PRIu64 " has less than %u images, and a drive takes full ones up to the last: leave --drive out, or stream with --bunch 1",
			    r->config->opt.buffer, st->number, h->bunch);

	for (uint32_t i = 0; i < st->images && !rashpa_stack_image(st, i, &image); i++) {
		/* one whose metadata are wrong moves no pedestal */
		rashpa_drive_role(d->drive, d->told + i,
				  image.wrong ? RASHPA_IMAGE_SIGNAL : image.role);
	}
	if (st->images > ENDLESS - d->told)
		return fail("buffer %s: the drive has taken its %u images: start romulu again for more",
			    r->config->opt.buffer, ENDLESS);
	d->told += st->images;
	rashpa_drive_arrived(d->drive, d->told);
	return 0;
}

/* Are all images up to this number computed, and their results taken? */
static bool is_through(const struct driven *d, uint32_t end)
{
	struct rashpa_drive_stat stat;

	rashpa_drive_get_stat(d->drive, &stat);
	return stat.images >= end && stat.results >= stat.accepted;
}

int driven_stack(struct driven *d, const struct rashpa_stack *st, uint64_t deadline_ns,
		 struct rashpa_result * const *to, uint32_t *kept, uint64_t *late)
{
	const uint32_t first = d->through;
	struct rashpa_image image;
	int result;

	d->through += st->images;
	while (d->has || !is_through(d, d->through)) {
		result = d->has ? 1 : rashpa_drive_next(d->drive, &d->got, 1000000);
		if (result < 0 && result != -ETIMEDOUT)
			return fail("--drive: %s", rashpa_reason());
		d->has = result > 0;
		/* results are in the order of images: this stack has no more */
		if (d->has && d->got.frame >= d->through)
			break;
		if (!d->has)
			continue;
		if (!rashpa_stack_image(st, d->got.frame - first, &image) && !image.wrong) {
			to[*kept]->frame = image.frame;
			to[*kept]->role = image.role;
			rashpa_drive_result(d->drive, &d->got, to[(*kept)++]);
			*late += deadline_ns && now_ns() > deadline_ns;
		}
		rashpa_drive_release(d->drive, &d->got);
		d->has = false;
	}
	return 0;
}

void driven_status(const struct driven *d, struct rashpa_drive_stat *stat)
{
	rashpa_drive_get_stat(d->drive, stat);
}

void driven_close(struct driven *d)
{
	if (d && rashpa_drive_close(d->drive))
		say("--drive: %s", rashpa_reason());
	free(d);
}
