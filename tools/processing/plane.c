// SPDX-License-Identifier: LGPL-2.1-or-later
#include "processing/plane.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "processing/hdf5-regular.h"
#include "common/say.h"

#define NPY_HEADER	4096	/* longest that we read; NumPy's have 128 */

/* Types of numbers; those of raw files first. */
enum kind { U8, U16, F32, F64, RAW_KINDS, I8 = RAW_KINDS, I16, KINDS };

static const size_t kind_bytes[KINDS] = { 1, 2, 4, 8, 1, 2 };

static size_t numbers(const struct rpu_shape *s)
{
	return (size_t)s->planes * s->height * s->width;
}

/* "3 x 512 x 1024" */
static const char *shape_text(const struct rpu_shape *s, char *text, size_t size)
{
	size_t n = 0;

	if (s->planes > 1)
		n = snprintf(text, size, "%" PRIu32 " x ", s->planes);
	snprintf(text + n, size - n, "%" PRIu32 " x %" PRIu32, s->height, s->width);
	return text;
}

static int wrong_size(const char *name, const char *has, const struct rpu_shape *s, char *why)
{
	char wanted[48];

	return because(why, -1, "%s: it has %s, not %s numbers (lines x pixels)", name, has,
		       shape_text(s, wanted, sizeof(wanted)));
}

/* An array of these sides: that shape, or one line of all. Sides of 1 are none. */
static bool has_shape(const uint64_t *side, unsigned int sides, const struct rpu_shape *s)
{
	const uint64_t want[] = { s->planes, s->height, s->width };
	uint64_t all = 1;
	unsigned int at = 0, more = 0;
	bool same = true;

	for (unsigned int i = 0; i < sides; i++) {
		if (__builtin_mul_overflow(all, side[i], &all))
			return false;
		if (side[i] == 1)
			continue;
		more++;
		while (at < 3 && want[at] == 1)
			at++;
		same &= at < 3 && want[at++] == side[i];
	}
	return all == numbers(s) && (same || more == 1);
}

static void take(const uint8_t *from, enum kind kind, size_t n, float *to)
{
	uint16_t u16;
	double f64;

	for (size_t i = 0; i < n; i++, from += kind_bytes[kind]) {
		switch (kind) {
		case U8:
			to[i] = *from;
			break;
		case I8:
			to[i] = (int8_t)*from;
			break;
		case U16:
		case I16:
			memcpy(&u16, from, sizeof(u16));
			to[i] = kind == U16 ? u16 : (int16_t)u16;
			break;
		case F32:
			memcpy(&to[i], from, sizeof(to[i]));
			break;
		default:
			memcpy(&f64, from, sizeof(f64));
			to[i] = f64;
		}
	}
}

/* --- raw --- */

static int take_raw(const char *path, const uint8_t *data, size_t bytes,
		    const struct rpu_shape *shape, float *to, char *why)
{
	const size_t n = numbers(shape);
	char has[48];

	for (int kind = 0; kind < RAW_KINDS; kind++) {
		if (bytes != n * kind_bytes[kind])
			continue;
		take(data, kind, n, to);
		return 0;
	}
	snprintf(has, sizeof(has), "%zu bytes", bytes);
	return wrong_size(path, has, shape, why);
}

static int take_zstd(const char *path, const uint8_t *data, size_t bytes,
		     const struct rpu_shape *shape, float *to, char *why)
{
	const size_t n = numbers(shape), room = n * kind_bytes[F64];
	uint8_t *raw = malloc(room);
	int result;
	size_t got;

	if (!raw)
		return because(why, -1, "%s: no memory", path);
	got = ZSTD_decompress(raw, room, data, bytes);
	if (ZSTD_isError(got))
		result = because(why, -1, "%s: zstd: %s, or more than %zu numbers", path,
				 ZSTD_getErrorName(got), n);
	else
		result = take_raw(path, raw, got, shape, to, why);
	free(raw);
	return result;
}

/* --- NumPy: the format's version 1 to 3, "NumPy Enhancement Proposal 1" --- */

static const char npy_magic[] = "\x93NUMPY";

#define SIDES	32	/* NumPy's most */

/* Sides of "3, 512, 1024"; more than SIDES: it is nonsense. */
static unsigned int npy_sides(const char *shape, uint64_t side[SIDES])
{
	unsigned int n = 0;
	char *end;

	while (*shape && n < SIDES) {
		errno = 0;
		side[n++] = strtoull(shape, &end, 10);
		if (end == shape || errno)
			return SIDES + 1;
		shape = end + strspn(end, ", ");
	}
	return *shape ? SIDES + 1 : n;
}

static int take_npy(const char *path, const uint8_t *data, size_t bytes,
		    const struct rpu_shape *shape, float *to, char *why)
{
	static const struct { const char *name; enum kind kind; } types[] = {
		{ "|u1", U8 }, { "|b1", U8 }, { "|i1", I8 }, { "<u2", U16 }, { "<i2", I16 },
		{ "<f4", F32 }, { "<f8", F64 },
	};
	const size_t version = bytes > 12 ? data[6] : 0, start = version == 1 ? 10 : 12;
	char header[NPY_HEADER] = "", type[8], has[128];
	regmatch_t match[3];
	uint64_t side[SIDES];
	unsigned int sides;
	size_t length, i;
	regex_t regex;
	int found;

	if (!version || version > 3)
		return because(why, -1, "%s: unknown version of the .npy format", path);
	length = data[8] | data[9] << 8;
	if (version > 1)
		length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
	if (length >= sizeof(header) || length > bytes - start)
		return because(why, -1, "%s: its header is cut off, or longer than %zu bytes",
			       path, sizeof(header));
	memcpy(header, data + start, length);
	if (regcomp(&regex, "'descr': *'([^']{3})', *'fortran_order': *False, *'shape': *\\(([0-9, ]*)\\)",
		    REG_EXTENDED))
		return because(why, -1, "%s: no memory", path);
	found = regexec(&regex, header, 3, match, 0);
	regfree(&regex);
	if (found)
		return because(why, -1, "%s: its header is not that of an array of numbers in C's order (numpy.ascontiguousarray() makes one): %s",
			       path, header);
	snprintf(type, sizeof(type), "%.3s", header + match[1].rm_so);
	for (i = 0; i < sizeof(types) / sizeof(types[0]) && strcmp(types[i].name, type); i++)
		;
	if (i == sizeof(types) / sizeof(types[0]))
		return because(why, -1, "%s: numbers of type %s: save them as float32, float64, uint16, int16, uint8, int8 or bool",
			       path, type);
	header[match[2].rm_eo] = '\0';
	sides = npy_sides(header + match[2].rm_so, side);
	if (sides > SIDES || !has_shape(side, sides, shape)) {
		snprintf(has, sizeof(has), "(%.100s)", header + match[2].rm_so);
		return wrong_size(path, has, shape, why);
	}
	if ((bytes - start - length) / kind_bytes[types[i].kind] < numbers(shape))
		return because(why, -1, "%s: it is cut off", path);
	take(data + start + length, types[i].kind, numbers(shape), to);
	return 0;
}

/* --- HDF5 --- */

static int read_set(const char *path, const char *inside, hid_t set, const struct rpu_shape *shape,
		    float *to, char *why)
{
	hid_t space = H5Dget_space(set);
	const int sides = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
	hsize_t side[H5S_MAX_RANK] = {};
	char has[128] = "", name[WHY_SIZE];
	uint64_t sizes[H5S_MAX_RANK] = {};
	int result = 0;

	if (sides >= 0)
		H5Sget_simple_extent_dims(space, side, NULL);
	if (space >= 0)
		H5Sclose(space);
	for (int i = 0; i < sides; i++) {
		const size_t n = strlen(has);

		sizes[i] = side[i];
		snprintf(has + n, sizeof(has) - n, "%s%" PRIu64, i ? " x " : "", sizes[i]);
	}
	snprintf(name, sizeof(name), "%s:%s", path, inside);
	if (sides < 0 || !has_shape(sizes, sides, shape))
		return wrong_size(name, *has ? has : "no array", shape, why);
	if (H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) < 0)
		result = because(why, -1, "%s: cannot be read as numbers", name);
	return result;
}

static int take_set(hid_t file, const char *path, const char *inside, const struct rpu_shape *shape,
		    float *to, char *why)
{
	hid_t set = H5Dopen2(file, inside, H5P_DEFAULT);
	int result = -1;

	if (set >= 0 && rpu_regular_storage(set))
		result = read_set(path, inside, set, shape, to, why);
	else if (set < 0)
		because(why, 0, "%s: there is no dataset %s", path, inside);
	/* even after a successful read: missing parts of a virtual dataset read as fill values */
	if (rpu_regular_refused())
		result = because(why, -1, "%s:%s: it leads to %s, which is not a file", path,
				 inside, rpu_regular_refused());
	if (set >= 0)
		H5Dclose(set);
	return result;
}

static int take_hdf5(const char *path, const char *inside, const struct rpu_shape *shape, float *to,
		     char *why)
{
	hid_t file, access;
	struct stat status;
	int result;

	if (stat(path, &status))
		return because(why, -1, "%s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return because(why, -1, "%s: not a file", path);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	access = rpu_regular_access();
	file = access < 0 ? -1 : H5Fopen(path, H5F_ACC_RDONLY, access);
	if (access >= 0)
		H5Pclose(access);
	if (file < 0)
		return because(why, -1, "%s: not HDF5, or it cannot be read", path);
	result = take_set(file, path, inside, shape, to, why);
	H5Fclose(file);
	return result;
}

/* --- a file --- */

static uint8_t *slurp(const char *path, size_t max, size_t *bytes, char *why)
{
	/* a pipe would be waited for */
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	uint8_t *data = NULL;
	struct stat status;

	if (!file || fstat(fileno(file), &status)) {
		because(why, 0, "%s: %s", path, strerror(errno));
	} else if (!S_ISREG(status.st_mode)) {
		because(why, 0, "%s: not a file", path);
	} else if ((size_t)status.st_size > max) {
		because(why, 0, "%s: it has %lld bytes, and %zu at most can be right",
			path, (long long)status.st_size, max);
	} else {
		data = malloc(status.st_size + 1);
		*bytes = data ? fread(data, 1, status.st_size, file) : 0;
		if (!data || ferror(file)) {
			because(why, 0, "%s: %s", path, strerror(errno));
			free(data);
			data = NULL;
		}
	}
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
	return data;
}

static int read_file(const char *path, const struct rpu_shape *shape, float *to, char *why)
{
	static const uint8_t zstd_magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
	const char *inside = strstr(path, ":/");
	size_t bytes = 0;
	uint8_t *data;
	int result;

	if (inside && inside[2]) {
		char *file = strndup(path, inside - path);

		result = file ? take_hdf5(file, inside + 1, shape, to, why) :
			 because(why, -1, "%s: no memory", path);
		free(file);
		return result;
	}
	data = slurp(path, numbers(shape) * kind_bytes[F64] + NPY_HEADER, &bytes, why);
	if (!data)
		return -1;
	if (bytes > sizeof(npy_magic) && !memcmp(data, npy_magic, sizeof(npy_magic) - 1))
		result = take_npy(path, data, bytes, shape, to, why);
	else if (bytes > sizeof(zstd_magic) && !memcmp(data, zstd_magic, sizeof(zstd_magic)))
		result = take_zstd(path, data, bytes, shape, to, why);
	else
		result = take_raw(path, data, bytes, shape, to, why);
	free(data);
	return result;
}

int rpu_planes_read(const char * const *path, unsigned int files, const struct rpu_shape *shape,
		    float *to, char *why)
{
	const struct rpu_shape plane = { 1, shape->height, shape->width };

	if (files == 1)
		return read_file(path[0], shape, to, why);
	if (files != shape->planes)
		return because(why, -1, "%s: %u files for %" PRIu32 " planes: use one file per plane, or one with all",
			       path[0], files, shape->planes);
	for (unsigned int i = 0; i < files; i++) {
		if (read_file(path[i], &plane, to + i * numbers(&plane), why))
			return -1;
	}
	return 0;
}
