/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording: stacks in files of several folders, and an index of their images. Documentation:
 * "The bytes" in recording.rst. All numbers are little-endian.
 */
#ifndef ROMULU_RECORDING_H
#define ROMULU_RECORDING_H

#include <rashpa-stream.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORDING_FOLDERS	64
#define RECORDING_BLOCK		4096u		/* places of stacks are multiples of it */

/** enum recording_sync - when the data are on the disk; RECORDING_END: at the end of the run */
enum recording_sync { RECORDING_END, RECORDING_NEVER, RECORDING_EACH };

/**
 * struct recording_header - begins the index
 *
 * Stack k is in file k % @files, at k / @files * @pitch. It is as it was in its slot.
 */
struct recording_header {
	char magic[8];			/* "RASHPREC" */
	uint32_t version;		/* 1 */
	uint32_t header_size, record_size;
	uint32_t files;
	uint32_t width, height;		/* pixels */
	uint32_t pixel;			/* enum rashpa_pixel */
	uint32_t bit_depth, big_endian;
	uint32_t bunch;			/* most images of a stack */
	uint64_t line_stride, image_stride, pitch;
	uint64_t __reserved[7];		/* 0 */
};

/** struct recording_image - follows the header, for each image */
struct recording_image {
	uint64_t frame, trigger, time;	/* as in struct rashpa_image */
	uint64_t stack;			/* number of its stack in the stream */
	uint64_t offset;		/* place of its first pixel in the file */
	uint16_t file;
	uint16_t flags;			/* RASHPA_STACK_INCOMPLETE, RASHPA_STACK_WRONG */
	uint32_t run;			/* id of the run */
	uint32_t role;			/* enum rashpa_image_role */
	uint32_t missing_lines;
	uint32_t index, images;		/* number in its stack, and images there */
};

struct recording {
	const char * const *folder;
	uint32_t files;
	int file[RECORDING_FOLDERS], index;
	uint64_t allocated[RECORDING_FOLDERS];	/* bytes; UINT64_MAX: no more */
	uint64_t step;			/* least bytes that are allocated at a time */
	_Atomic bool direct;		/* O_DIRECT */
	bool sync;			/* at the end */
	bool begun;
	struct recording_header header;
	uint64_t stacks, images;	/* kept */
	struct recording_image last;	/* of them; images 0: none */
	struct recording_image *entry;	/* of stacks that are added and not kept */
	size_t room, added, added_stacks;
};

/* Make or open the files, for this program alone. All return 0, or an exit code after a message. */
int recording_open(struct recording *rec, const char * const *folder, uint32_t folders,
		   enum recording_sync sync);
/* Images like these follow. */
int recording_begin(struct recording *rec, const struct rashpa_stream_header *h);
/* Offset of stack @k of the recording in its file, with room for it. */
uint64_t recording_place(struct recording *rec, uint64_t k);
/* Write through the page cache from now on. */
void recording_indirect(struct recording *rec, int error);
/* The next stack is in its place. */
int recording_add(struct recording *rec, const struct rashpa_stack *stack);
/* From now on these stacks, one at least, belong to the recording. */
int recording_keep(struct recording *rec);
int recording_close(struct recording *rec);

#endif /* ROMULU_RECORDING_H */
