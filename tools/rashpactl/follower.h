/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Follow a stream as an observer, without writing to it. */
#ifndef FOLLOWER_H
#define FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>

#include <rashpa.h>
#include <rashpa-stream.h>
#include "common/say.h"
#include "common/stats.h"

/* Records of one stream that are timed in an interval; more add no precision. */
#define FOLLOWER_SAMPLES	256

struct follower {
	char name[RASHPA_NAME_SIZE];	/* name of the buffer */
	char why[WHY_SIZE];		/* reason why it is not followed, or empty */
	struct rashpa_stream *stream;	/* observer; NULL: no stream runs */
	struct rashpa_stream_header about;	/* header of the stream, also after its end */
	struct rashpa_stream_process process;	/* the first one */
	int device, channel;
	const char *state;		/* empty: no stream */
	bool gone;			/* the board was removed, but the producer still runs */
	bool missing;			/* the buffer cannot be opened */
	/* at the last check; lost: images overwritten before their slot was released */
	uint64_t when, stacks, most, consumed, lost;
	uint64_t told;			/* events of the channel's source at that time */
	unsigned int source;
	/* rates of the interval between the last two checks */
	double time, images_per_second, bytes_per_second;
	uint64_t events;
	struct samples latency;
	struct rashpa_place_info place[RASHPA_STREAM_PLACES];
	uint32_t places;
	/* work that the consumer reports, now and before; stages 0: none */
	struct rashpa_stream_work work, before;
	bool fresh;			/* no check yet */
};

void follower_init(struct follower *f, const char *name);

/*
 * Check the buffer: attach to a running stream, detach at its end, and compute the rates of the
 * interval. Without a running stream it holds nothing open.
 */
void follower_look(struct follower *f);

/* Take available records; time: measure their age. */
void follower_take(struct follower *f, bool time);

/* Is there a descriptor to poll? */
static inline bool follower_wants(const struct follower *f)
{
	return f->channel >= 0 && f->latency.count < FOLLOWER_SAMPLES;
}

/* Bytes of an image without gaps between lines; needs a stream. */
uint64_t follower_image_bytes(const struct follower *f);

/* Begin a new interval. */
void follower_begin(struct follower *f);

void follower_close(struct follower *f);

#endif /* FOLLOWER_H */
