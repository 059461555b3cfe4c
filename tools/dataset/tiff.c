// SPDX-License-Identifier: LGPL-2.1-or-later
/* TIFF: each page is an image. */
#include "formats.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

#include "say.h"

struct tiff {
	TIFF *tiff;
	uint8_t *tile;
	char error[256];	/* last message of the library */
};

bool dataset_is_tiff(const char *path)
{
	static const char magic[][4] = { "II*", "MM\0*", "II+", "MM\0+" };
	FILE *file = fopen(path, "re");
	char begin[4];
	bool is = false;

	if (!file)
		return false;
	if (fread(begin, sizeof(begin), 1, file) == 1) {
		for (size_t i = 0; i < sizeof(magic) / sizeof(magic[0]); i++)
			is |= !memcmp(begin, magic[i], sizeof(begin));
	}
	fclose(file);
	return is;
}

__attribute__((format(printf, 4, 0)))
static int on_error(TIFF *tiff, void *data, const char *module, const char *format, va_list args)
{
	struct tiff *t = data;

	(void)tiff;
	(void)module;
	vsnprintf(t->error, sizeof(t->error), format, args);
	return 1;
}

__attribute__((format(printf, 4, 0)))
static int on_warning(TIFF *tiff, void *data, const char *module, const char *format, va_list args)
{
	(void)tiff;
	(void)data;
	(void)module;
	(void)format;
	(void)args;
	return 1;
}

static int broken(const struct dataset *d, uint32_t page, char *why)
{
	const struct tiff *t = d->file;

	return because(why, -1, "dataset %s: page %" PRIu32 ": %s", d->source, page,
		       *t->error ? t->error : "it cannot be read");
}

/* The page that is current. */
static int look(const struct dataset *d, uint32_t page, struct geometry *g, char *why)
{
	static const enum rashpa_pixel pixels[] = {
		[1] = RASHPA_PIXEL_U8, [2] = RASHPA_PIXEL_U16, [4] = RASHPA_PIXEL_U32,
	};
	const struct tiff *t = d->file;
	uint16_t samples, bits, format, photometric;
	const char *reason = NULL;

	if (!TIFFGetField(t->tiff, TIFFTAG_IMAGEWIDTH, &g->width) ||
	    !TIFFGetField(t->tiff, TIFFTAG_IMAGELENGTH, &g->height))
		return broken(d, page, why);
	TIFFGetFieldDefaulted(t->tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
	TIFFGetFieldDefaulted(t->tiff, TIFFTAG_BITSPERSAMPLE, &bits);
	TIFFGetFieldDefaulted(t->tiff, TIFFTAG_SAMPLEFORMAT, &format);
	if (!TIFFGetField(t->tiff, TIFFTAG_PHOTOMETRIC, &photometric))
		photometric = PHOTOMETRIC_MINISBLACK;
	if (samples != 1)
		reason = "several values";
	else if (photometric != PHOTOMETRIC_MINISBLACK)
		reason = "colours, or black for the largest number, in place of one number";
	else if (format == SAMPLEFORMAT_INT)
		reason = "a signed number";
	else if (format == SAMPLEFORMAT_IEEEFP)
		reason = "a floating-point number";
	else if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID)
		reason = "a number of unknown format";
	if (reason)
		return because(why, -1, "dataset %s: page %" PRIu32
			       ": a pixel has %s: u8, u16 and u32 are possible", d->source, page,
			       reason);
	if (bits != 8 && bits != 16 && bits != 32)
		return because(why, -1, "dataset %s: page %" PRIu32 ": a pixel has %" PRIu16
			       " bits: u8, u16 and u32 are possible", d->source, page, bits);
	g->pixel = pixels[bits / 8];
	return 0;
}

static int open_tiff(struct dataset *d, const char *path, const char *inside, char *why)
{
	TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
	struct tiff *t = calloc(1, sizeof(*t));
	struct geometry g;
	uint64_t pages;

	(void)inside;
	snprintf(d->source, sizeof(d->source), "%.255s", path);
	d->file = t;
	if (t && options) {
		TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, t);
		TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, t);
		t->tiff = TIFFOpenExt(path, "r", options);
	}
	TIFFOpenOptionsFree(options);
	if (!t || !t->tiff)
		return because(why, -1, "dataset %s: %s", path, t ? t->error : "no memory");
	pages = TIFFNumberOfDirectories(t->tiff);
	/* a chain of pages that breaks off has fewer of them */
	if (*t->error || !TIFFSetDirectory(t->tiff, 0))
		return broken(d, pages, why);
	if (look(d, 0, &g, why))
		return -1;
	return dataset_set(d, pages, g.width, g.height, g.pixel, why);
}

static int read_strips(const struct dataset *d, uint8_t *image)
{
	const struct tiff *t = d->file;
	const uint32_t height = d->geometry.height;
	const size_t line = dataset_line_bytes(d);
	uint32_t rows;

	TIFFGetFieldDefaulted(t->tiff, TIFFTAG_ROWSPERSTRIP, &rows);
	if (!rows || TIFFScanlineSize64(t->tiff) != line)
		return -1;
	for (uint32_t y = 0, n; y < height; y += n) {
		tmsize_t bytes;

		n = rows < height - y ? rows : height - y;
		bytes = n * line;
		if (TIFFReadEncodedStrip(t->tiff, TIFFComputeStrip(t->tiff, y, 0), image + y * line,
					 bytes) != bytes)
			return -1;
	}
	return 0;
}

/* Tiles reach over the edges. */
static int read_tiles(const struct dataset *d, uint8_t *image)
{
	struct tiff *t = d->file;
	const struct geometry *g = &d->geometry;
	const size_t pixel = pixel_bytes(g->pixel), line = dataset_line_bytes(d);
	uint32_t width = 0, height = 0;
	tmsize_t bytes;

	TIFFGetField(t->tiff, TIFFTAG_TILEWIDTH, &width);
	TIFFGetField(t->tiff, TIFFTAG_TILELENGTH, &height);
	bytes = TIFFTileSize(t->tiff);
	if (!width || !height || bytes <= 0 || bytes % (width * pixel) ||
	    bytes / (width * pixel) != height)
		return -1;
	free(t->tile);
	t->tile = malloc(bytes);
	if (!t->tile)
		return -1;
	for (uint64_t y = 0; y < g->height; y += height) {
		for (uint64_t x = 0; x < g->width; x += width) {
			const size_t n = width < g->width - x ? width : g->width - x;

			if (TIFFReadEncodedTile(t->tiff, TIFFComputeTile(t->tiff, x, y, 0, 0),
						t->tile, bytes) != bytes)
				return -1;
			for (uint64_t i = 0; i < height && y + i < g->height; i++)
				memcpy(image + (y + i) * line + x * pixel,
				       t->tile + i * width * pixel, n * pixel);
		}
	}
	return 0;
}

static int read_tiff(struct dataset *d, uint32_t number, void *image, char *why)
{
	struct tiff *t = d->file;
	struct geometry g;
	char is[GEOMETRY_TEXT], first[GEOMETRY_TEXT];

	*t->error = '\0';
	if (!TIFFSetDirectory(t->tiff, number))
		return broken(d, number, why);
	if (look(d, number, &g, why))
		return -1;
	if (memcmp(&g, &d->geometry, sizeof(g)))
		return because(why, -1, "dataset %s: page %" PRIu32 " has %s, the first one %s",
			       d->source, number, format_geometry(is, &g),
			       format_geometry(first, &d->geometry));
	if (TIFFIsTiled(t->tiff) ? read_tiles(d, image) : read_strips(d, image))
		return broken(d, number, why);
	return 0;
}

static void close_tiff(struct dataset *d)
{
	struct tiff *t = d->file;

	if (!t)
		return;
	if (t->tiff)
		TIFFClose(t->tiff);
	free(t->tile);
	free(t);
}

const struct dataset_format dataset_tiff = {
	.open = open_tiff, .read = read_tiff, .close = close_tiff,
};
