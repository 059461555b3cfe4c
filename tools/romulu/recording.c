// SPDX-License-Identifier: LGPL-2.1-or-later
/* The files of a recording. A stack belongs to it when the index has all of its images. */
#include "romulu/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/say.h"

#define MAGIC		"RASHPREC"
#define VERSION		1
#define STEP		(UINT64_C(4) << 30)	/* most bytes that are allocated at a time */
#define STACKS		16			/* fewest stacks, of a stream without an end */

_Static_assert(sizeof(struct recording_header) == 128 && sizeof(struct recording_image) == 64,
	       "readers know these sizes");

static int cannot(const struct recording *rec, uint32_t file, const char *what)
{
	return fail("%s: cannot %s: %s", rec->folder[file], what, strerror(errno));
}

/* A file of this program alone; -1 after a message. */
static int open_file(const struct recording *rec, uint32_t file, const char *name, int flags)
{
	const int folder = open(rec->folder[file], O_PATH | O_DIRECTORY | O_CLOEXEC);
	const int fd = folder < 0 ? -1 : openat(folder, name, flags | O_RDWR | O_CREAT | O_CLOEXEC,
						0666);

	if (fd < 0)
		cannot(rec, file, "record there");
	if (folder >= 0)
		close(folder);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		fail("%s: another program records there", rec->folder[file]);
		close(fd);
		return -1;
	}
	return fd;
}

static uint64_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_size;
}

static uint64_t index_size(const struct recording *rec)
{
	return sizeof(rec->header) + rec->images * sizeof(rec->last);
}

/* Bytes of a file that stacks of the recording have. */
static uint64_t end_of(const struct recording *rec, uint32_t file)
{
	return (rec->stacks + rec->files - 1 - file) / rec->files * rec->header.pitch;
}

/* A receiver that was killed may have left a part of a stack: that is not in the recording. */
static int find_end(struct recording *rec)
{
	struct recording_header *h = &rec->header;
	const uint64_t size = size_of(rec->index);
	struct recording_image *last = &rec->last;

	if (pread(rec->index, h, sizeof(*h), 0) != sizeof(*h) ||
	    memcmp(h->magic, MAGIC, sizeof(h->magic)) || h->version != VERSION ||
	    h->header_size != sizeof(*h) || h->record_size != sizeof(*last) || !h->pitch)
		return fail("%s: frames.index is not an index of version %d", *rec->folder, VERSION);
	if (h->files != rec->files)
		return fail("%s: it was recorded in %" PRIu32 " folders, not in %" PRIu32,
			    *rec->folder, h->files, rec->files);
	rec->images = (size - sizeof(*h)) / sizeof(*last);
	while (rec->images) {
		if (pread(rec->index, last, sizeof(*last), index_size(rec) - sizeof(*last)) !=
		    sizeof(*last))
			return cannot(rec, 0, "read frames.index");
		if (last->index + 1 == last->images)
			break;
		rec->images--;
		last->images = 0;
	}
	if (rec->images)
		rec->stacks = last->offset / h->pitch * h->files + last->file + 1;
	return 0;
}

int recording_open(struct recording *rec, const char * const *folder, uint32_t folders,
		   enum recording_sync sync)
{
	const int flags = sync == RECORDING_EACH ? O_DSYNC : 0;
	char name[32];
	int result;

	rec->folder = folder;
	rec->sync = sync == RECORDING_END;
	rec->index = open_file(rec, 0, "frames.index", flags);
	if (rec->index < 0)
		return EXIT_FAILED;
	for (; rec->files < folders; rec->files++) {
		snprintf(name, sizeof(name), "frames-%" PRIu32 ".raw", rec->files);
		rec->file[rec->files] = open_file(rec, rec->files, name, flags);
		if (rec->file[rec->files] < 0)
			return EXIT_FAILED;
	}
	result = size_of(rec->index) ? find_end(rec) : 0;
	for (uint32_t i = 0; i < folders && !result; i++) {
		rec->allocated[i] = size_of(rec->file[i]);
		if (!rec->header.pitch && rec->allocated[i])
			result = fail("%s: it holds frames of a recording whose index is not in %s",
				      folder[i], *folder);
		else if (rec->allocated[i] < end_of(rec, i))
			result = fail("%s: frames of the recording are missing", folder[i]);
	}
	rec->direct = true;
	for (uint32_t i = 0; i < folders && rec->direct; i++) {
		if (fcntl(rec->file[i], F_SETFL, O_DIRECT))
			recording_indirect(rec, errno);
	}
	return result;
}

int recording_begin(struct recording *rec, const struct rashpa_stream_header *h)
{
	const uint64_t bytes = (h->bunch - 1) * h->image_stride + h->height * h->line_stride;
	const struct recording_header header = {
		.magic = MAGIC, .version = VERSION, .header_size = sizeof(header),
		.record_size = sizeof(rec->last), .files = rec->files,
		.width = h->width, .height = h->height, .pixel = h->pixel,
		.bit_depth = h->bit_depth, .big_endian = h->big_endian, .bunch = h->bunch,
		.line_stride = h->line_stride, .image_stride = h->image_stride,
		.pitch = (bytes + RECORDING_BLOCK - 1) / RECORDING_BLOCK * RECORDING_BLOCK,
	};

	if (rec->header.pitch && memcmp(&header, &rec->header, sizeof(header)))
		return fail("%s: it holds images or stacks of another size or type: give other folders",
			    *rec->folder);
	if (!rec->header.pitch && pwrite(rec->index, &header, sizeof(header), 0) != sizeof(header))
		return cannot(rec, 0, "write frames.index");
	rec->header = header;
	rec->begun = true;
	rec->step = header.pitch * (h->images ? h->images / h->bunch / rec->files + 1 : STACKS);
	return ftruncate(rec->index, index_size(rec)) ? cannot(rec, 0, "write frames.index") : 0;
}

uint64_t recording_place(struct recording *rec, uint64_t k)
{
	const uint64_t pitch = rec->header.pitch, offset = k / rec->files * pitch;
	const uint32_t file = k % rec->files;
	uint64_t *allocated = &rec->allocated[file];
	uint64_t step = *allocated < rec->step ? rec->step : *allocated;

	if (offset + pitch <= *allocated)
		return offset;
	/* a write that makes a file longer waits for all others; a disk that is full says so then */
	if (step > STEP)
		step = STEP < pitch ? pitch : STEP;
	*allocated = fallocate(rec->file[file], 0, offset, step) ? UINT64_MAX : offset + step;
	return offset;
}

void recording_indirect(struct recording *rec, int error)
{
	if (!rec->direct)
		return;
	for (uint32_t i = 0; i < rec->files; i++)
		fcntl(rec->file[i], F_SETFL, 0);
	rec->direct = false;
	say("%s: frames go through the page cache, because O_DIRECT fails: %s", *rec->folder,
	    strerror(error));
}

int recording_add(struct recording *rec, const struct rashpa_stack *st)
{
	const uint64_t k = rec->stacks + rec->added_stacks;
	const uint32_t file = k % rec->files;
	const size_t all = rec->added + st->images;
	struct rashpa_image image;

	if (all > rec->room) {
		struct recording_image *more = reallocarray(rec->entry, all, 2 * sizeof(*more));

		if (!more)
			return fail("%s: no memory for the index", *rec->folder);
		rec->entry = more;
		rec->room = 2 * all;
	}
	for (uint32_t i = 0; i < st->images; i++) {
		image = (struct rashpa_image) {};
		rashpa_stack_image(st, i, &image);
		rec->entry[rec->added++] = (struct recording_image) {
			.frame = image.frame, .trigger = image.trigger, .time = image.time,
			.stack = st->number, .run = st->run, .file = file,
			.offset = k / rec->files * rec->header.pitch + i * st->image_stride,
			.flags = (st->flags & RASHPA_STACK_INCOMPLETE) |
				 (image.wrong ? RASHPA_STACK_WRONG : 0),
			.role = image.role, .missing_lines = image.missing_lines,
			.index = i, .images = st->images,
		};
	}
	rec->added_stacks++;
	return 0;
}

int recording_keep(struct recording *rec)
{
	const size_t bytes = rec->added * sizeof(*rec->entry);
	const ssize_t written = pwrite(rec->index, rec->entry, bytes, index_size(rec));

	if (written != (ssize_t)bytes) {
		errno = written < 0 ? errno : ENOSPC;
		return cannot(rec, 0, "write frames.index");
	}
	rec->last = rec->entry[rec->added - 1];
	rec->images += rec->added;
	rec->stacks += rec->added_stacks;
	rec->added = rec->added_stacks = 0;
	return 0;
}

/* Room that was allocated and not used is given back. */
int recording_close(struct recording *rec)
{
	int result = 0;

	for (uint32_t i = 0; i < rec->files; i++) {
		if (rec->begun && ftruncate(rec->file[i], end_of(rec, i)))
			result = cannot(rec, i, "end the file of frames");
		if (rec->sync && fsync(rec->file[i]))
			result = cannot(rec, i, "write frames");
		close(rec->file[i]);
	}
	free(rec->entry);
	if (rec->index < 0)
		return result;
	if (rec->begun && ftruncate(rec->index, index_size(rec)))
		result = cannot(rec, 0, "end frames.index");
	if (rec->sync && fsync(rec->index))
		result = cannot(rec, 0, "write frames.index");
	close(rec->index);
	return result;
}
