/* SPDX-License-Identifier: GPL-2.0-only */
/* The stream header of a buffer: layout and validation. */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "rashpa-stream.h"

/*
 * Take a copy of the header at the beginning of a buffer of length bytes, and believe only
 * what is inside the buffer. 0, or -1 with the reason in why[WHY_SIZE]; -1 and an empty
 * reason if there is no stream (no magic), or if the header was being changed.
 */
int stream_copy(const volatile struct rashpa_stream *shared, uint64_t length,
		struct rashpa_stream *copy, char *why);

/* The second half: check a copy. */
int stream_check(const struct rashpa_stream *s, uint64_t length, char *why);

/*
 * Given width, height, pixel_bytes, bunch and dtps: strides and offsets of a buffer, and
 * how many slots fit into length bytes. Metadata are behind the slots: stream_place_meta() when
 * it is known how many those are.
 */
uint64_t stream_layout(struct rashpa_stream *s, uint64_t length, bool meta);
void stream_place_meta(struct rashpa_stream *s);
/* Where the metadata of an image of dtp[i] are, in the buffer. */
uint64_t stream_meta(const struct rashpa_stream *s, unsigned int i, uint64_t stack,
		     uint32_t image);
uint64_t stream_bytes(const struct rashpa_stream *s, uint64_t slots);

/* Bytes from the first of a stack to the last of so many of its images: what may be touched. */
uint64_t stream_extent(const struct rashpa_stream *s, uint32_t images);

/* Images in stack k of this run: bunch, or what is left for the last one, or 0. */
uint32_t stream_stack_images(const struct rashpa_stream *s, uint64_t k);

/* Images of this run in the stacks from a to before b. */
uint64_t stream_images(const struct rashpa_stream *s, uint64_t a, uint64_t b);

/* Number of the first stack after this run; UINT64_MAX if it is endless. */
uint64_t stream_end(const struct rashpa_stream *s);

/* Can so many stacks be complete? The FPGA, or who maps the buffer, wrote that number. */
bool stream_possible(const struct rashpa_stream *s, uint64_t stacks);

/*
 * The oldest stack whose slot nobody writes when the most advanced process has completed
 * @most stacks, and @credit were given back: a paced producer waits for that before the next
 * one, another does not.
 */
uint64_t stream_oldest(const struct rashpa_stream *s, uint64_t most, uint64_t credit);

#endif /* STREAM_H */
