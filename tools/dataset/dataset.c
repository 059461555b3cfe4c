// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dataset/dataset.h"
#include "dataset/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/say.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "pixels are used as they are stored");

/* FILE, or FILE:/inside where there is no FILE of this whole name. */
static int open_path(struct dataset *d, char *path, char *why)
{
	char *inside = NULL, *last = NULL;
	struct stat st;

	if (stat(path, &st)) {
		for (char *at = path; (at = strstr(at, ":/")); at++)
			last = at;
		inside = last ? last + 1 : NULL;
		if (last)
			*last = '\0';
		if (!last || stat(path, &st))
			return because(why, -1, "dataset %s: %s", path, strerror(errno));
	}
	if (S_ISDIR(st.st_mode))
		d->format = &dataset_folder;
	else if (S_ISREG(st.st_mode))
		d->format = dataset_is_hdf5(path) ? &dataset_hdf5 : &dataset_raw;
	else
		return because(why, -1, "dataset %s: it is neither a file nor a folder", path);
	if (inside && d->format != &dataset_hdf5)
		return because(why, -1, "dataset %s: only HDF5 files have datasets inside, not \"%s\"",
			       path, inside);
	return d->format->open(d, path, inside, why);
}

static bool is_generated(const char *spec)
{
	return !strcmp(spec, "generate") || !strncmp(spec, "generate:", strlen("generate:"));
}

/* The geometry of the option must match the dataset. */
static int check_geometry(const struct dataset *d, const struct geometry *wanted, char *why)
{
	const struct geometry *g = &d->geometry;
	char is[GEOMETRY_TEXT], option[GEOMETRY_TEXT];

	if (!wanted || !wanted->width || !memcmp(g, wanted, sizeof(*g)))
		return 0;
	return because(why, -1, "dataset %s has images of %s, and --geometry says %s: leave the option out",
		       d->source, format_geometry(is, g), format_geometry(option, wanted));
}

int dataset_open(struct dataset *d, const char *spec, const struct geometry *wanted, char *why)
{
	const char *data = getenv("RASHPA_DATA");
	char *path = NULL;
	struct stat st;
	int result;

	*d = (struct dataset) { .geometry = { 1024, 512, RASHPA_PIXEL_U16 } };
	if (wanted && wanted->width)
		d->geometry = *wanted;
	if (!spec && data && asprintf(&path, "%s/jungfrau", data) < 0)
		path = NULL;
	if (!spec)
		spec = path && !stat(path, &st) && S_ISDIR(st.st_mode) ? path : "generate";
	if (is_generated(spec)) {
		d->format = &dataset_generated;
		result = d->format->open(d, spec, NULL, why);
	} else {
		char *copy = strdup(spec);

		result = copy ? open_path(d, copy, why) :
				because(why, -1, "dataset %s: no memory", spec);
		free(copy);
	}
	free(path);
	if (!result)
		result = check_geometry(d, wanted, why);
	if (result)
		dataset_close(d);
	return result;
}

void dataset_close(struct dataset *d)
{
	if (d->format)
		d->format->close(d);
	free(d->pixels);
	free(d->sum);
	*d = (struct dataset) {};
}

int dataset_read(struct dataset *d, uint32_t number, void *image, char *why)
{
	return d->format->read(d, number, image, why);
}

uint64_t dataset_add(const struct dataset *d, uint64_t sum, const void *image)
{
	const size_t bytes = dataset_bytes(d);
	uint64_t word;

	sum = sum ? sum : 1;
	for (size_t i = 0; i < bytes; i += sizeof(word)) {
		size_t rest = bytes - i;

		word = 0;
		memcpy(&word, (const char *)image + i, rest < sizeof(word) ? rest : sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
		sum ^= sum >> 32;
	}
	return sum ? sum : 1;
}

/* Room for more does not cost what is there. */
static bool grow(struct dataset *d, uint32_t images)
{
	size_t bytes;
	void *more;

	if (__builtin_mul_overflow(dataset_bytes(d), images, &bytes))
		return false;
	more = realloc(d->pixels, bytes);
	if (!more)
		return false;
	d->pixels = more;
	more = realloc(d->sum, images * sizeof(*d->sum));
	if (!more)
		return false;
	d->sum = more;
	return true;
}

int dataset_hold(struct dataset *d, uint32_t images, char *why)
{
	if (images <= d->held)
		return 0;
	if (!grow(d, images))
		return because(why, -1, "dataset %s: no memory for %" PRIu32 " images", d->source,
			       images);
	while (d->held < images) {
		uint8_t *image = d->pixels + d->held * dataset_bytes(d);

		if (dataset_read(d, d->held, image, why))
			return -1;
		d->sum[d->held] = dataset_add(d, d->held ? d->sum[d->held - 1] : 0, image);
		d->held++;
	}
	return 0;
}
