// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plane.h"

#include <errno.h>
#include <inttypes.h>
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#define H5_USE_110_API
#include <hdf5.h>

#include "say.h"

#define NPY_HEADER	4096	/* longest that we read; NumPy's have 128 */

/* What a number is. */
enum kind { U8, U16, F32, F64, KINDS };

static const size_t kind_bytes[KINDS] = { 1, 2, 4, 8 };

static int wrong_size(const char *path, size_t numbers, char *why)
{
	return because(why, -1, "%s: not %zu numbers, one for each pixel", path, numbers);
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
		case U16:
			memcpy(&u16, from, sizeof(u16));
			to[i] = u16;
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

static int take_raw(const char *path, const uint8_t *data, size_t bytes, size_t n, float *to,
		    char *why)
{
	for (int kind = 0; kind < KINDS; kind++) {
		if (bytes != n * kind_bytes[kind])
			continue;
		take(data, kind, n, to);
		return 0;
	}
	return wrong_size(path, n, why);
}

static int take_zstd(const char *path, const uint8_t *data, size_t bytes, size_t n, float *to,
		     char *why)
{
	const size_t room = n * kind_bytes[F64];
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
		result = take_raw(path, raw, got, n, to, why);
	free(raw);
	return result;
}

/* --- NumPy: the format's version 1 to 3, "NumPy Enhancement Proposal 1" --- */

static const char npy_magic[] = "\x93NUMPY";

/* The product of "(3, 512, 1024)"; 0: it is none, or beyond counting. */
static size_t npy_numbers(const char *shape)
{
	size_t n = 1, side;
	char *end;

	while (*shape && *shape != ')') {
		errno = 0;
		side = strtoull(shape, &end, 10);
		if (end == shape || errno || __builtin_mul_overflow(n, side, &n))
			return 0;
		shape = end + strspn(end, ", ");
	}
	return n;
}

static int take_npy(const char *path, const uint8_t *data, size_t bytes, size_t n, float *to,
		    char *why)
{
	static const struct { const char *name; enum kind kind; } types[] = {
		{ "|u1", U8 }, { "|b1", U8 }, { "|i1", U8 }, { "<u2", U16 }, { "<f4", F32 },
		{ "<f8", F64 },
	};
	const size_t version = bytes > 12 ? data[6] : 0, start = version == 1 ? 10 : 12;
	char header[NPY_HEADER] = "", type[8];
	regmatch_t match[3];
	size_t length, i;
	regex_t regex;
	int found;

	if (!version || version > 3)
		return because(why, -1, "%s: not a version of .npy that we know", path);
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
		return because(why, -1, "%s: its header is not that of an array in C's order of numbers: %s",
			       path, header);
	snprintf(type, sizeof(type), "%.3s", header + match[1].rm_so);
	for (i = 0; i < sizeof(types) / sizeof(types[0]) && strcmp(types[i].name, type); i++)
		;
	if (i == sizeof(types) / sizeof(types[0]))
		return because(why, -1, "%s: numbers of type %s: save them as float32, float64, uint16, uint8 or bool",
			       path, type);
	header[match[2].rm_eo] = '\0';
	if (npy_numbers(header + match[2].rm_so) != n ||
	    (bytes - start - length) / kind_bytes[types[i].kind] < n)
		return wrong_size(path, n, why);
	take(data + start + length, types[i].kind, n, to);
	return 0;
}

/* --- HDF5 --- */

static int take_hdf5(const char *path, const char *inside, size_t n, float *to, char *why)
{
	hid_t file, set = -1, space = -1;
	int result = -1;

	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
	if (file < 0)
		return because(why, -1, "%s: not HDF5", path);
	set = H5Dopen2(file, inside, H5P_DEFAULT);
	space = set < 0 ? -1 : H5Dget_space(set);
	if (space < 0)
		because(why, 0, "%s: there is no dataset %s", path, inside);
	else if (H5Sget_simple_extent_npoints(space) != (hssize_t)n)
		wrong_size(path, n, why);
	else if (H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) < 0)
		because(why, 0, "%s: %s cannot be read as numbers", path, inside);
	else
		result = 0;
	if (space >= 0)
		H5Sclose(space);
	if (set >= 0)
		H5Dclose(set);
	H5Fclose(file);
	return result;
}

/* --- a file --- */

static uint8_t *slurp(const char *path, size_t max, size_t *bytes, char *why)
{
	FILE *file = fopen(path, "re");
	uint8_t *data = NULL;
	struct stat status;

	if (!file || fstat(fileno(file), &status)) {
		because(why, 0, "%s: %s", path, strerror(errno));
	} else if (!S_ISREG(status.st_mode) || (size_t)status.st_size > max) {
		because(why, 0, "%s: not a file, or one with more than %zu bytes", path, max);
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
	return data;
}

static int read_file(const char *path, size_t n, float *to, char *why)
{
	static const uint8_t zstd_magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
	const char *inside = strstr(path, ":/");
	size_t bytes = 0;
	uint8_t *data;
	int result;

	if (inside && inside[2]) {
		char *file = strndup(path, inside - path);

		result = file ? take_hdf5(file, inside + 1, n, to, why) :
			 because(why, -1, "%s: no memory", path);
		free(file);
		return result;
	}
	data = slurp(path, n * kind_bytes[F64] + NPY_HEADER, &bytes, why);
	if (!data)
		return -1;
	if (bytes > sizeof(npy_magic) && !memcmp(data, npy_magic, sizeof(npy_magic) - 1))
		result = take_npy(path, data, bytes, n, to, why);
	else if (bytes > sizeof(zstd_magic) && !memcmp(data, zstd_magic, sizeof(zstd_magic)))
		result = take_zstd(path, data, bytes, n, to, why);
	else
		result = take_raw(path, data, bytes, n, to, why);
	free(data);
	return result;
}

int rpu_planes_read(const char * const *path, unsigned int files, unsigned int planes,
		    size_t pixels, float *to, char *why)
{
	if (files == 1)
		return read_file(path[0], planes * pixels, to, why);
	if (files != planes)
		return because(why, -1, "%s: %u files for %u planes: give one for each, or one with all",
			       path[0], files, planes);
	for (unsigned int i = 0; i < planes; i++) {
		if (read_file(path[i], pixels, to + i * pixels, why))
			return -1;
	}
	return 0;
}
