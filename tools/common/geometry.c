// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/geometry.h"

#include <stdio.h>
#include <string.h>

#include "common/parse.h"

static const char * const names[] = {
	[RASHPA_PIXEL_U8] = "u8", [RASHPA_PIXEL_U16] = "u16", [RASHPA_PIXEL_U32] = "u32",
};

static bool parse_pixel(const char *text, uint32_t *pixel)
{
	for (*pixel = RASHPA_PIXEL_U8; *pixel <= RASHPA_PIXEL_U32; ++*pixel) {
		if (!strcmp(text, names[*pixel]))
			return true;
	}
	return false;
}

bool parse_geometry(const char *text, struct geometry *geometry)
{
	const size_t size = strcspn(text, ",@");
	struct geometry g = { .pixel = RASHPA_PIXEL_U16 };
	struct region r;
	char region[40];

	if (size > 20 || text[size] == '@' ||
	    (text[size] && !parse_pixel(text + size + 1, &g.pixel)))
		return false;
	snprintf(region, sizeof(region), "0,0,%.*s", (int)size, text);
	if (!parse_region(region, &r) || r.width > GEOMETRY_SIDE || r.height > GEOMETRY_SIDE)
		return false;
	g.width = r.width;
	g.height = r.height;
	*geometry = g;
	return true;
}

const char *pixel_name(uint32_t pixel)
{
	return pixel < sizeof(names) / sizeof(names[0]) && names[pixel] ? names[pixel] : "?";
}

char *format_geometry(char *buf, const struct geometry *g)
{
	snprintf(buf, GEOMETRY_TEXT, "%u x %u %s", g->width, g->height, names[g->pixel]);
	return buf;
}
