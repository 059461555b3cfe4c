// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pixels are brought to where they are seen: modules with gaps between them, wide pixels between
 * chips, flipped and rotated; and blocks of them become one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "processing/pipeline.h"
#include "common/say.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* --- the configuration --- */

RPU_READS(u32, read_side, 1, RPU_SIDE)

/* A pixel is at one border of its chip. */
RPU_READS(u32, read_chip, 2, RPU_SIDE)
RPU_READS(u32, read_place, 0, RPU_SIDE)
RPU_READS(u32, read_block, 1, 64)

static int read_rotate(struct json_place *at, struct json_object *value, void *to)
{
	if (rpu_read_u32(at, value, 0, 270, to))
		return -1;
	return *(uint32_t *)to % 90 ? json_wrong(at, "is not 0, 90, 180 or 270") : 0;
}

RPU_READS_WORD(uint32_t, read_flip, "none", "x", "y")

static int read_module(struct json_place *at, struct json_object *value, void *to)
{
	struct rpu_module *m = to;
	const struct json_key keys[] = {
		{ "x", true, read_place, &m->x }, { "y", true, read_place, &m->y },
		{ "width", true, read_side, &m->width }, { "height", true, read_side, &m->height },
		{ "to_x", true, read_place, &m->to_x }, { "to_y", true, read_place, &m->to_y },
		{ "rotate", false, read_rotate, &m->turn.rotate },
		{ "flip", false, read_flip, &m->turn.flip },
	};

	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int read_modules(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;

	if (json_read_array(at, value, read_module, p->assemble.module,
			    sizeof(*p->assemble.module), RPU_MODULES, &p->assemble.modules))
		return -1;
	return p->assemble.modules ? 0 : json_wrong(at, "names no module");
}

static int assemble_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	const struct json_key keys[] = {
		{ "modules", false, read_modules, p },
		{ "wide_every_x", false, read_chip, &p->assemble.wide_x },
		{ "wide_every_y", false, read_chip, &p->assemble.wide_y },
		{ "rotate", false, read_rotate, &p->assemble.turn.rotate },
		{ "flip", false, read_flip, &p->assemble.turn.flip },
		{ "bin_x", false, read_block, &p->assemble.bin.x },
		{ "bin_y", false, read_block, &p->assemble.bin.y },
	};

	p->assemble.bin.x = 1;
	p->assemble.bin.y = 1;
	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

/* --- where pixels go --- */

/* Pixels of a side, those at the borders of chips twice as wide: 1024 of 256 each become 1030. */
static uint32_t wide_side(uint32_t side, uint32_t every)
{
	return every ? side + 2 * ((side - 1) / every) : side;
}

/* Where a pixel of a side begins, and how many places it has. */
static uint32_t wide_places(uint32_t i, uint32_t side, uint32_t every, uint32_t *first)
{
	const bool begins = every && i && !(i % every);
	const bool ends = every && i + 1 < side && !((i + 1) % every);

	*first = every ? i + 2 * (i / every) - begins : i;
	return 1 + (begins || ends);
}

/* Where a pixel of a picture is when that was flipped, and then rotated clockwise. */
static void turned(const struct rpu_turn *turn, uint32_t width, uint32_t height, uint32_t *x,
		   uint32_t *y)
{
	const uint32_t fx = turn->flip == 1 ? width - 1 - *x : *x;
	const uint32_t fy = turn->flip == 2 ? height - 1 - *y : *y;

	switch (turn->rotate) {
	case 90:
		*x = height - 1 - fy;
		*y = fx;
		break;
	case 180:
		*x = width - 1 - fx;
		*y = height - 1 - fy;
		break;
	case 270:
		*x = fy;
		*y = width - 1 - fx;
		break;
	default:
		*x = fx;
		*y = fy;
	}
}

static bool on_its_side(const struct rpu_turn *turn)
{
	return turn->rotate % 180;
}

struct picture {
	uint32_t width, height;
	uint32_t *source;
	float *weight;
};

/* One pixel of a module, at all its places. False: something is there already. */
static bool place(const struct rashpa_pipeline *p, const struct rpu_module *m, uint32_t x,
		  uint32_t y, const struct picture *to)
{
	const uint32_t wide = wide_side(m->width, p->assemble.wide_x);
	const uint32_t high = wide_side(m->height, p->assemble.wide_y);
	uint32_t x0, y0;
	const uint32_t nx = wide_places(x, m->width, p->assemble.wide_x, &x0);
	const uint32_t ny = wide_places(y, m->height, p->assemble.wide_y, &y0);

	for (uint32_t i = 0; i < nx * ny; i++) {
		uint32_t px = x0 + i % nx, py = y0 + i / nx;
		size_t at;

		turned(&m->turn, wide, high, &px, &py);
		px += m->to_x;
		py += m->to_y;
		turned(&p->assemble.turn, to->width, to->height, &px, &py);
		at = (size_t)py * (on_its_side(&p->assemble.turn) ? to->height : to->width) + px;
		if (to->source[at] != RPU_NOTHING)
			return false;
		to->source[at] = (size_t)(m->y + y) * p->width + m->x + x;
		if (to->weight)
			to->weight[at] = 1.f / (nx * ny);
	}
	return true;
}

static void module_extent(const struct rashpa_pipeline *p, const struct rpu_module *m,
			  struct picture *to)
{
	const uint32_t wide = wide_side(m->width, p->assemble.wide_x);
	const uint32_t high = wide_side(m->height, p->assemble.wide_y);
	const uint32_t right = m->to_x + (on_its_side(&m->turn) ? high : wide);
	const uint32_t bottom = m->to_y + (on_its_side(&m->turn) ? wide : high);

	to->width = right > to->width ? right : to->width;
	to->height = bottom > to->height ? bottom : to->height;
}

static int make_map(struct rashpa_pipeline *p, char *why)
{
	struct rpu_assembly *map = &p->assemble.map;
	struct picture to = {};

	for (unsigned int i = 0; i < p->assemble.modules; i++) {
		const struct rpu_module *m = &p->assemble.module[i];

		if (m->x + m->width > p->width || m->y + m->height > p->height)
			return because(why, -1, "pipeline: assemble.modules[%u]: is not in an image of %"
				       PRIu32 " x %" PRIu32 " pixels", i, p->width, p->height);
		module_extent(p, m, &to);
	}
	map->pixels = (size_t)to.width * to.height;
	if (map->pixels > INT32_MAX)
		return because(why, -1, "pipeline: assemble: %" PRIu32 " x %" PRIu32 " pixels are too many",
			       to.width, to.height);
	map->source = rpu_memory(map->pixels, sizeof(*map->source));
	if (p->assemble.wide_x || p->assemble.wide_y)
		map->weight = rpu_memory(map->pixels, sizeof(*map->weight));
	if (!map->source || ((p->assemble.wide_x || p->assemble.wide_y) && !map->weight))
		return because(why, -1, "no memory to assemble images");
	memset(map->source, 0xff, map->pixels * sizeof(*map->source));
	to.source = map->source;
	to.weight = map->weight;
	for (unsigned int i = 0; i < p->assemble.modules; i++) {
		const struct rpu_module *m = &p->assemble.module[i];

		for (size_t k = 0; k < (size_t)m->width * m->height; k++) {
			if (!place(p, m, k % m->width, k / m->width, &to))
				return because(why, -1, "pipeline: assemble.modules[%u]: another one is where its pixel %zu, %zu comes (x, y)",
					       i, k % m->width, k / m->width);
		}
	}
	p->width = on_its_side(&p->assemble.turn) ? to.height : to.width;
	p->height = on_its_side(&p->assemble.turn) ? to.width : to.height;
	return 0;
}

static int assemble_begin(struct rashpa_pipeline *p, char *why)
{
	struct rpu_binning *b = &p->assemble.bin;

	if (!p->assemble.modules) {
		p->assemble.modules = 1;
		p->assemble.module[0] = (struct rpu_module) {
			.width = p->width, .height = p->height,
		};
	}
	if (make_map(p, why))
		return -1;
	if (b->x * b->y == 1)
		return 0;
	if (p->width % b->x || p->height % b->y)
		return because(why, -1, "pipeline: assemble: %" PRIu32 " x %" PRIu32
			       " pixels are not whole blocks of %" PRIu32 " x %" PRIu32
			       " (bin_x, bin_y): cut some off by \"modules\", or give numbers that divide them",
			       p->width, p->height, b->x, b->y);
	p->width /= b->x;
	p->height /= b->y;
	b->width = p->width;
	b->height = p->height;
	return 0;
}

static int assemble_scratch(struct rashpa_pipeline *p, char *why)
{
	if (p->assemble.bin.x * p->assemble.bin.y == 1)
		return 0;
	p->assemble.fine = rpu_memory(p->assemble.map.pixels, sizeof(float));
	return p->assemble.fine ? 0 : because(why, -1, "no memory to assemble images");
}

static int assemble_room(const struct rashpa_pipeline *p, struct rpu_work *w)
{
	w->assembled = rpu_memory(rpu_pixels(p), sizeof(*w->assembled));
	return w->assembled ? 0 : -1;
}

static int assemble_run(struct rashpa_pipeline *p, struct rpu_work *w)
{
	struct rashpa_stage_stat *stat = &p->stage_stat[RPU_ASSEMBLE];
	float *fine = p->assemble.fine ? p->assemble.fine : w->assembled;

	p->engine->assemble(&p->assemble.map, w->image, fine);
	if (p->assemble.fine)
		p->engine->bin(&p->assemble.bin, fine, w->assembled);
	stat->bytes_in += (size_t)p->geometry.width * p->geometry.height * sizeof(*w->image);
	stat->bytes_out += rpu_pixels(p) * sizeof(*w->assembled);
	w->image = w->assembled;
	w->result.image = w->image;
	return 1;
}

static bool assemble_whole(const struct rashpa_pipeline *p)
{
	return !p->assemble.map.weight;
}

static void assemble_end(struct rashpa_pipeline *p)
{
	free(p->assemble.fine);
	if (p->of)
		return;
	free(p->assemble.map.source);
	free(p->assemble.map.weight);
}

const struct rpu_stage rpu_stage_assemble = {
	.name = "assemble", .changes = true, .read = assemble_read, .begin = assemble_begin,
	.scratch = assemble_scratch, .room = assemble_room, .run = assemble_run, .whole = assemble_whole, .end = assemble_end,
};
