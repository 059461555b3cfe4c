// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Unlike strtoull(), refuse blanks and signs, and octal numbers, since they mislead. */
static bool number(const char *text, char **end, uint64_t *value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');

	if (hex ? !isxdigit((unsigned char)text[2]) : !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoull(text, end, hex ? 16 : 10);
	return !errno;
}

bool parse_u64(const char *text, uint64_t max, uint64_t *value)
{
	uint64_t v;
	char *end;

	if (!number(text, &end, &v) || *end || v > max)
		return false;
	*value = v;
	return true;
}

bool parse_u32(const char *text, uint32_t *value)
{
	uint64_t v;

	if (!parse_u64(text, UINT32_MAX, &v))
		return false;
	*value = v;
	return true;
}

bool parse_mode(const char *text, uint32_t *value)
{
	uint32_t mode = 0;

	for (const char *c = text; *c; c++) {
		if (*c < '0' || *c > '7' || mode > 0666)
			return false;
		mode = mode << 3 | (*c - '0');
	}
	if (!*text || mode & ~0666)
		return false;
	*value = mode;
	return true;
}

bool name_possible(const char *name)
{
	for (const char *c = name; *c; c++) {
		if (!isascii(*c) || !(isalnum(*c) || strchr("._-", *c)))
			return false;
	}
	return *name != '.';
}

bool parse_size(const char *text, uint64_t *value)
{
	static const char units[] = "KMGT";
	unsigned int shift = 0;
	const char *unit;
	uint64_t v;
	char *end;

	if (!number(text, &end, &v))
		return false;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit)
			return false;
		shift = 10 * (unit - units + 1);
		end++;
		if (!strcmp(end, "iB"))
			end += 2;
	}
	if (*end || (v << shift) >> shift != v)
		return false;
	*value = v << shift;
	return true;
}

bool parse_depth(const char *text, uint64_t max, struct depth *depth)
{
	static const char * const units[] = {
		[DEPTH_NOT_SAID] = "", [DEPTH_IMAGES] = "image", [DEPTH_STACKS] = "stack",
	};
	struct depth d;
	size_t length;
	char *end;

	if (!number(text, &end, &d.n) || d.n > max)
		return false;
	end += *end == ' ' && end[1];
	for (d.unit = DEPTH_STACKS; d.unit > DEPTH_NOT_SAID; d.unit--) {
		length = strlen(units[d.unit]);
		if (!strncmp(end, units[d.unit], length) &&
		    (!end[length] || !strcmp(end + length, "s")))
			break;
	}
	if (d.unit == DEPTH_NOT_SAID && *end)
		return false;
	*depth = d;
	return true;
}

uint64_t depth_images(const struct depth *depth, uint32_t bunch)
{
	uint64_t images = depth->n;

	if (depth->unit == DEPTH_STACKS && __builtin_mul_overflow(images, bunch, &images))
		return UINT64_MAX;
	return images;
}

uint64_t depth_stacks(const struct depth *depth, uint32_t bunch)
{
	if (depth->unit != DEPTH_IMAGES)
		return depth->n;
	return depth->n / bunch + !!(depth->n % bunch);
}

bool parse_real(const char *text, double *value)
{
	char *end;
	double v;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	errno = 0;
	v = strtod(text, &end);
	if (errno || *end || !isfinite(v))
		return false;
	*value = v;
	return true;
}

/* A number and the character after it, which is skipped. */
static bool field(const char **text, char stop, uint32_t *value)
{
	uint64_t v;
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	v = strtoull(*text, &end, 10);
	if (errno || v > UINT32_MAX || *end != stop)
		return false;
	*value = v;
	*text = end + (stop != '\0');
	return true;
}

bool parse_region(const char *text, struct region *region)
{
	bool moved = strchr(text, '@');
	struct region r;

	if (!field(&text, ',', &r.x) || !field(&text, ',', &r.y) || !field(&text, 'x', &r.width) ||
	    !field(&text, moved ? '@' : '\0', &r.height))
		return false;
	r.to_x = r.x;
	r.to_y = r.y;
	if (moved && (!field(&text, ',', &r.to_x) || !field(&text, '\0', &r.to_y)))
		return false;
	if (!r.width || !r.height || (uint64_t)r.x + r.width > UINT32_MAX ||
	    (uint64_t)r.y + r.height > UINT32_MAX || (uint64_t)r.to_x + r.width > UINT32_MAX ||
	    (uint64_t)r.to_y + r.height > UINT32_MAX)
		return false;
	*region = r;
	return true;
}

void split_regions(uint32_t width, uint32_t height, unsigned int n, struct region *regions)
{
	for (unsigned int i = 0; i < n; i++) {
		uint32_t top = (uint64_t)height * i / n;
		uint32_t bottom = (uint64_t)height * (i + 1) / n;

		regions[i] = (struct region) {
			.y = top, .to_y = top, .width = width, .height = bottom - top,
		};
	}
}

bool regions_overlap(const struct region *a, const struct region *b)
{
	return a->to_x < b->to_x + b->width && b->to_x < a->to_x + a->width &&
	       a->to_y < b->to_y + b->height && b->to_y < a->to_y + a->height;
}

char *format_size(char *buf, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = bytes;
	unsigned int u = 0;

	while (v >= 1024 && u + 1 < sizeof(units) / sizeof(units[0])) {
		v /= 1024;
		u++;
	}
	snprintf(buf, SIZE_TEXT, u && v != (uint64_t)v ? "%.1f %s" : "%.0f %s", v, units[u]);
	return buf;
}
