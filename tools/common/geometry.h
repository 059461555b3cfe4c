/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Format of an image: WxH[,u8|u16|u32]; the default is u16. */
#ifndef GEOMETRY_H
#define GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include <rashpa-stream-format.h>

struct geometry {
	uint32_t width, height;	/* pixels, 1 to GEOMETRY_SIDE */
	uint32_t pixel;		/* enum rashpa_pixel: u8, u16 or u32 */
};

#define GEOMETRY_SIDE	65536

/* "u16" */
const char *pixel_name(uint32_t pixel);

bool parse_geometry(const char *text, struct geometry *geometry);

/* "1024 x 512 u16"; buf is at least GEOMETRY_TEXT bytes, returned. */
char *format_geometry(char *buf, const struct geometry *geometry);
#define GEOMETRY_TEXT	40

static inline uint32_t pixel_bytes(uint32_t pixel)
{
	return 1u << (pixel - RASHPA_PIXEL_U8);
}

#endif /* GEOMETRY_H */
