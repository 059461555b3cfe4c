// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dataset.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "parse.h"
#include "say.h"

#define IMAGE_BYTES	(DATASET_IMAGE * sizeof(uint16_t))
#define GENERATE_IMAGES	10
#define GENERATE_SEED	1

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "pixels are used as they are stored");

/* --- generated images: integer arithmetic only, so that every machine makes the same ones --- */

/* splitmix64 */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Photons to a raw pixel: three gain stages as in a charge-integrating detector. */
static uint16_t pixel(uint32_t photons, uint32_t noise)
{
	if (photons < 300)
		return 2600 + photons * 38 + noise;			/* G0 */
	if (photons < 8000)
		return 1u << 14 | (15000 - photons + noise);		/* G1 */
	if (photons > 100000)
		photons = 100000;
	return 3u << 14 | (14500 - photons / 8 + noise);		/* G2 */
}

#define CENTRE_X	(DATASET_WIDTH / 2 + 37)
#define CENTRE_Y	(-60)		/* the beam passes beside the module */
#define PEAK		6		/* half the side of a peak, pixels */

static void add_rings(uint32_t *photons)
{
	for (int y = 0; y < DATASET_HEIGHT; y++) {
		for (int x = 0; x < DATASET_WIDTH; x++) {
			uint32_t dx = abs(x - CENTRE_X), dy = y - CENTRE_Y;
			uint32_t square = dx * dx + dy * dy;
			/* rings at equal steps of the squared radius, narrow outwards */
			uint32_t phase = square % 36000;
			uint32_t ring = phase < 2500 ? 14 * (2500 - phase) / 2500 : 0;

			photons[y * DATASET_WIDTH + x] = 1 + ring + 200000 / (square + 8000);
		}
	}
}

static void add_peaks(uint32_t *photons, uint64_t *state)
{
	unsigned int peaks = 120 + next(state) % 60;

	while (peaks--) {
		uint64_t r = next(state);
		int cx = PEAK + r % (DATASET_WIDTH - 2 * PEAK);
		int cy = PEAK + (r >> 20) % (DATASET_HEIGHT - 2 * PEAK);
		uint32_t height = 40u << ((r >> 40) % 11);	/* weak ones and very strong ones */

		for (int y = -PEAK; y <= PEAK; y++) {
			for (int x = -PEAK; x <= PEAK; x++) {
				uint32_t d = x * x + y * y;

				photons[(cy + y) * DATASET_WIDTH + cx + x] += height / (1 + d * d);
			}
		}
	}
}

void dataset_generate(uint16_t *image, uint32_t number, uint64_t seed)
{
	static uint32_t photons[DATASET_IMAGE];
	uint64_t state = seed ^ (uint64_t)(number + 1) << 32;
	uint64_t noise = 0;

	add_rings(photons);
	next(&state);
	add_peaks(photons, &state);
	for (unsigned int i = 0; i < DATASET_IMAGE; i++) {
		uint32_t p = photons[i];

		if (i % 4 == 0)
			noise = next(&state);
		/* two uniform deviates: a triangle, as wide as shot noise of few photons */
		p += (noise & 1) && p < 100 ? p / 4 : 0;
		image[i] = pixel(p, (noise >> 1 & 0x3f) + (noise >> 7 & 0x3f));
		noise >>= 16;
	}
}

static int allocate(struct dataset *dataset, uint32_t images, char *why)
{
	dataset->images = images;
	dataset->pixels = malloc(dataset_bytes(dataset));
	if (!dataset->pixels)
		return because(why, -1, "no memory for %u images: use fewer", images);
	return 0;
}

static int generate(struct dataset *dataset, const char *spec, char *why)
{
	char copy[64], *images_text = NULL, *seed_text = NULL;
	uint64_t images = GENERATE_IMAGES, seed = GENERATE_SEED;

	if (snprintf(copy, sizeof(copy), "%s", spec) >= (int)sizeof(copy))
		return because(why, -1, "dataset \"%s\" is too long", spec);
	images_text = strchr(copy, ':');
	if (images_text) {
		*images_text++ = '\0';
		seed_text = strchr(images_text, ':');
	}
	if (seed_text)
		*seed_text++ = '\0';
	if ((images_text && (!parse_u64(images_text, DATASET_IMAGES_MAX, &images) || !images)) ||
	    (seed_text && !parse_u64(seed_text, UINT64_MAX, &seed)))
		return because(why, -1, "dataset \"%s\": write generate[:IMAGES[:SEED]], with 1 to %d images",
			       spec, DATASET_IMAGES_MAX);
	if (allocate(dataset, images, why))
		return -1;
	for (uint32_t i = 0; i < images; i++)
		dataset_generate(dataset->pixels + (size_t)i * DATASET_IMAGE, i, seed);
	snprintf(dataset->source, sizeof(dataset->source), "generate:%u:%llu", dataset->images,
		 (unsigned long long)seed);
	return 0;
}

/* --- recorded images --- */

static int is_raw(const struct dirent *entry)
{
	return !fnmatch("raw*.bin", entry->d_name, 0) || !fnmatch("raw*.bin.zst", entry->d_name, 0);
}

static int read_plain(FILE *file, void *image, const char *path, char *why)
{
	if (fread(image, 1, IMAGE_BYTES, file) != IMAGE_BYTES || fgetc(file) != EOF)
		return because(why, -1, "%s: not one image of %d x %d 16-bit pixels", path,
			       DATASET_WIDTH, DATASET_HEIGHT);
	return 0;
}

static int read_zstd(FILE *file, void *image, const char *path, char *why)
{
	size_t room = ZSTD_compressBound(IMAGE_BYTES) + 1, size, result;
	void *packed = malloc(room);

	if (!packed)
		return because(why, -1, "%s: no memory", path);
	size = fread(packed, 1, room, file);
	result = ZSTD_decompress(image, IMAGE_BYTES, packed, size);
	free(packed);
	if (ZSTD_isError(result))
		return because(why, -1, "%s: %s", path, ZSTD_getErrorName(result));
	if (result != IMAGE_BYTES)
		return because(why, -1, "%s: not one image of %d x %d 16-bit pixels", path,
			       DATASET_WIDTH, DATASET_HEIGHT);
	return 0;
}

static int read_image(const char *path, void *image, char *why)
{
	bool packed = !fnmatch("*.zst", path, 0);
	FILE *file = fopen(path, "re");
	int result;

	if (!file)
		return because(why, -1, "%s: %s", path, strerror(errno));
	result = packed ? read_zstd(file, image, path, why) : read_plain(file, image, path, why);
	fclose(file);
	return result;
}

static int load_directory(struct dataset *dataset, const char *dir, char *why)
{
	struct dirent **entries;
	char *path;
	int n = scandir(dir, &entries, is_raw, versionsort);
	int result;

	if (n < 0)
		return because(why, -1, "dataset %s: %s", dir, strerror(errno));
	if (!n || n > DATASET_IMAGES_MAX) {
		result = because(why, -1, "dataset %s: %d files raw*.bin or raw*.bin.zst, and not 1 to %d",
				 dir, n, DATASET_IMAGES_MAX);
	} else {
		result = allocate(dataset, n, why);
	}
	for (int i = 0; i < n; i++) {
		if (!result && asprintf(&path, "%s/%s", dir, entries[i]->d_name) < 0)
			result = because(why, -1, "dataset %s: no memory", dir);
		if (!result) {
			result = read_image(path, dataset->pixels + (size_t)i * DATASET_IMAGE, why);
			free(path);
		}
		free(entries[i]);
	}
	free(entries);
	snprintf(dataset->source, sizeof(dataset->source), "%.255s", dir);
	return result;
}

/* One sum for all images up to each: a stream may show fewer than there are. */
static int add_up(struct dataset *dataset, char *why)
{
	const size_t words = IMAGE_BYTES / sizeof(uint64_t);
	uint64_t sum = 1, word;

	dataset->sum = calloc(dataset->images, sizeof(*dataset->sum));
	if (!dataset->sum)
		return because(why, -1, "dataset %s: no memory", dataset->source);
	for (uint32_t n = 0; n < dataset->images; n++) {
		const char *image = (const char *)dataset_line(dataset, n, 0);

		for (size_t i = 0; i < words; i++) {
			memcpy(&word, image + i * sizeof(word), sizeof(word));
			sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
			sum ^= sum >> 32;
		}
		dataset->sum[n] = sum ? sum : 1;
	}
	return 0;
}

int dataset_load(struct dataset *dataset, const char *spec, char *why)
{
	const char *data = getenv("RASHPA_DATA");
	char *path = NULL;
	struct stat st;
	int result;

	*dataset = (struct dataset) {};
	if (!spec && data && asprintf(&path, "%s/jungfrau", data) < 0)
		path = NULL;
	if (!spec)
		spec = path && !stat(path, &st) && S_ISDIR(st.st_mode) ? path : "generate";
	if (!strcmp(spec, "generate") || !strncmp(spec, "generate:", strlen("generate:")))
		result = generate(dataset, spec, why);
	else
		result = load_directory(dataset, spec, why);
	free(path);
	if (!result)
		result = add_up(dataset, why);
	if (result)
		dataset_free(dataset);
	return result;
}

void dataset_free(struct dataset *dataset)
{
	free(dataset->pixels);
	free(dataset->sum);
	dataset->pixels = NULL;
	dataset->sum = NULL;
}
