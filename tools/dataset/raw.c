// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pixels and nothing else: a folder with a file for each image, or a file with all of them. */
#include "dataset/formats.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "common/say.h"

#define IMAGES_MAX	65536	/* files */

static int other_size(const struct dataset *d, const char *path, char *why)
{
	char text[GEOMETRY_TEXT];

	return because(why, -1, "%s: not one image of %s: give --geometry", path,
		       format_geometry(text, &d->geometry));
}

/* --- a folder --- */

struct folder {
	char *path;
	struct dirent **entry;
	int n;
};

static int is_raw(const struct dirent *entry)
{
	return !fnmatch("raw*.bin", entry->d_name, 0) || !fnmatch("raw*.bin.zst", entry->d_name, 0);
}

static int open_folder(struct dataset *d, const char *path, const char *inside, char *why)
{
	struct folder *f = calloc(1, sizeof(*f));

	(void)inside;
	snprintf(d->source, sizeof(d->source), "%.255s", path);
	d->file = f;
	if (f)
		f->path = strdup(path);
	if (!f || !f->path)
		return because(why, -1, "dataset %s: no memory", path);
	f->n = scandir(path, &f->entry, is_raw, versionsort);
	if (f->n < 0)
		return because(why, -1, "dataset %s: %s", path, strerror(errno));
	if (!f->n || f->n > IMAGES_MAX)
		return because(why, -1, "dataset %s: %d files raw*.bin or raw*.bin.zst, and not 1 to %d",
			       path, f->n, IMAGES_MAX);
	return dataset_set(d, f->n, d->geometry.width, d->geometry.height, d->geometry.pixel, why);
}

static int read_plain(const struct dataset *d, FILE *file, void *image, const char *path, char *why)
{
	if (fread(image, 1, dataset_bytes(d), file) != dataset_bytes(d) || fgetc(file) != EOF)
		return other_size(d, path, why);
	return 0;
}

static int read_zstd(const struct dataset *d, FILE *file, void *image, const char *path, char *why)
{
	size_t room = ZSTD_compressBound(dataset_bytes(d)) + 1, size, result;
	void *packed = malloc(room);

	if (!packed)
		return because(why, -1, "%s: no memory", path);
	size = fread(packed, 1, room, file);
	result = ZSTD_decompress(image, dataset_bytes(d), packed, size);
	free(packed);
	if (ZSTD_isError(result))
		return because(why, -1, "%s: %s", path, ZSTD_getErrorName(result));
	return result == dataset_bytes(d) ? 0 : other_size(d, path, why);
}

static int read_folder(struct dataset *d, uint32_t number, void *image, char *why)
{
	const struct folder *f = d->file;
	struct stat st;
	char *path;
	FILE *file;
	int result, fd;

	if (asprintf(&path, "%s/%s", f->path, f->entry[number]->d_name) < 0)
		return because(why, -1, "dataset %s: no memory", f->path);
	/* other users may put a pipe into the folder: do not wait for its writer */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file)
		result = because(why, -1, "%s: %s", path, strerror(errno));
	else if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		result = because(why, -1, "%s: it is no file", path);
	else if (fnmatch("*.zst", path, 0))
		result = read_plain(d, file, image, path, why);
	else
		result = read_zstd(d, file, image, path, why);
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
	free(path);
	return result;
}

static void close_folder(struct dataset *d)
{
	struct folder *f = d->file;

	if (!f)
		return;
	for (int i = 0; i < f->n; i++)
		free(f->entry[i]);
	free(f->entry);
	free(f->path);
	free(f);
}

const struct dataset_format dataset_folder = {
	.open = open_folder, .read = read_folder, .close = close_folder,
};

/* --- one file --- */

static int open_raw(struct dataset *d, const char *path, const char *inside, char *why)
{
	const uint64_t bytes = dataset_bytes(d);
	int *fd = malloc(sizeof(*fd));
	char text[GEOMETRY_TEXT];
	struct stat st;

	(void)inside;
	snprintf(d->source, sizeof(d->source), "%.255s", path);
	d->file = fd;
	if (!fd)
		return because(why, -1, "dataset %s: no memory", path);
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0 || fstat(*fd, &st))
		return because(why, -1, "dataset %s: %s", path, strerror(errno));
	if (!st.st_size || st.st_size % bytes)
		return because(why, -1, "dataset %s: it is not HDF5, and its %" PRIu64 " bytes are not raw images of %s:"
			       " give --geometry, or convert it with \"python3 -m rashpa.dataset\"", path,
			       (uint64_t)st.st_size, format_geometry(text, &d->geometry));
	return dataset_set(d, st.st_size / bytes, d->geometry.width, d->geometry.height,
			   d->geometry.pixel, why);
}

static int read_raw(struct dataset *d, uint32_t number, void *image, char *why)
{
	const size_t bytes = dataset_bytes(d);
	const int fd = *(int *)d->file;
	ssize_t n;

	for (size_t done = 0; done < bytes; done += n) {
		n = pread(fd, (char *)image + done, bytes - done, (off_t)number * bytes + done);
		if (n <= 0)
			return because(why, -1, "dataset %s: image %" PRIu32 ": %s", d->source,
				       number, n ? strerror(errno) : "the file became shorter");
	}
	return 0;
}

static void close_raw(struct dataset *d)
{
	int *fd = d->file;

	if (fd && *fd >= 0)
		close(*fd);
	free(fd);
}

const struct dataset_format dataset_raw = {
	.open = open_raw, .read = read_raw, .close = close_raw,
};
