/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers, sizes and regions as people write them. */
#ifndef PARSE_H
#define PARSE_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal or 0x hexadecimal, nothing before or after; false if not, or above max. */
bool parse_u64(const char *text, uint64_t max, uint64_t *value);
bool parse_u32(const char *text, uint32_t *value);

/* Does the driver take this for a name? Letters, digits and . _ -, no dot first; also empty. */
bool name_possible(const char *name);

/* Bytes: a number with an optional K, M, G or T (powers of 1024). */
bool parse_size(const char *text, uint64_t *value);

/*
 * How many images or stacks: a number, and what is counted where it is not what everybody expects:
 * "8", "8images", "1 stack".
 */
struct depth {
	uint64_t n;
	enum depth_unit { DEPTH_NOT_SAID, DEPTH_IMAGES, DEPTH_STACKS } unit;
};

bool parse_depth(const char *text, uint64_t max, struct depth *depth);

/* In images where a number alone means them; in stacks, also begun ones, where it means those. */
uint64_t depth_images(const struct depth *depth, uint32_t bunch);
uint64_t depth_stacks(const struct depth *depth, uint32_t bunch);

/* Permission bits in octal, as chmod takes them, 0 to 0666: a buffer cannot be executed. */
bool parse_mode(const char *text, uint32_t *value);

/* "12.5" and the like, >= 0 and finite. */
bool parse_real(const char *text, double *value);

/* X,Y,WxH[@DX,DY]: a region of the source image and where it goes. */
struct region {
	uint32_t x, y, width, height;
	uint32_t to_x, to_y;	/* x, y if not given */
};

bool parse_region(const char *text, struct region *region);

/* N horizontal bands that make the whole image; the last one takes the rest. */
void split_regions(uint32_t width, uint32_t height, unsigned int n, struct region *regions);

bool regions_overlap(const struct region *a, const struct region *b);

/* "12.0 MiB"; buf is at least 24 bytes, returned. */
char *format_size(char *buf, uint64_t bytes);
#define SIZE_TEXT	24

#endif /* PARSE_H */
