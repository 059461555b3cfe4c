// SPDX-License-Identifier: LGPL-2.1-or-later
/* The board, and memory that is mapped for board and drive. */
#include "bench/loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/say.h"

#define PAGE		4096u

uint32_t loop_place(struct loop *l, uint64_t bytes)
{
	const uint32_t at = l->length / 4;

	l->length += (bytes + PAGE - 1) / PAGE * PAGE;
	return at;
}

static int new_buffer(struct loop *l, char *why)
{
	struct rashpa_alloc alloc = { .length = l->length };
	const int node = rashpa_memory_open();

	l->dmabuf = node < 0 ? node : rashpa_memory_alloc(node, &alloc);
	if (node >= 0)
		close(node);
	return l->dmabuf < 0 ? because(why, -1, "%s", rashpa_reason()) : 0;
}

static int named_buffer(struct loop *l, const char *name, char *why)
{
	off_t have;

	l->dmabuf = rashpa_open(name, O_RDWR | O_EXCL);
	if (l->dmabuf < 0)
		return because(why, -1, "%s", rashpa_reason());
	have = lseek(l->dmabuf, 0, SEEK_END);
	if (have < (off_t)l->length)
		return because(why, -1, "buffer %s has %lld bytes, but %" PRIu64 " are needed: set fewer --events, or use a larger buffer",
			       name, (long long)have, l->length);
	return 0;
}

/* GPU memory, unless the host drives and cannot access it through a BAR. */
static int gpu_memory(struct loop *l, char *why)
{
	l->opened = !l->gpu && !rashpa_gpu_open(l->gpu_name, &l->gpu);
	if (!l->gpu || rashpa_gpu_alloc(l->gpu, l->length, &l->memory))
		return because(why, -1, "%s", rashpa_reason());
	l->word = rashpa_gpu_base(l->memory);
	l->copied = !l->word && l->drive->copy;
	if (l->copied) {
		l->word = calloc(1, l->length);
	} else if (!l->word) {
		rashpa_gpu_free(l->memory);
		l->memory = NULL;
	}
	return l->copied && !l->word ? because(why, -1, "no memory") : 0;
}

static int host_memory(struct loop *l, const char *buffer, char *why)
{
	void *base;

	if (buffer ? named_buffer(l, buffer, why) : new_buffer(l, why))
		return -1;
	base = mmap(NULL, l->length, PROT_READ | PROT_WRITE, MAP_SHARED, l->dmabuf, 0);
	if (base == MAP_FAILED)
		return because(why, -1, "mmap of a buffer: %s", strerror(errno));
	l->word = base;
	return 0;
}

/* A program on processors has its memory in the host, where a driver did not move it. */
static uint32_t map_flags(const struct loop *l)
{
	struct rashpa_gpu_info info;

	if (!l->memory)
		return 0;
	rashpa_gpu_get_info(l->gpu, &info);
	return info.flags & RASHPA_GPU_SOFTWARE ? 0 : RASHPA_MAP_DEVICE;
}

static int open_memory(struct loop *l, const char *buffer, char *why)
{
	int error;

	if ((l->gpu_name && gpu_memory(l, why)) || (!l->word && host_memory(l, buffer, why)))
		return -1;
	error = rashpa_board_map(l->board, l->kind->user,
				 l->memory ? rashpa_gpu_dmabuf(l->memory) : l->dmabuf,
				 map_flags(l), &l->target);
	if (!error)
		error = rashpa_target_get_info(l->target, l->kind->user, &l->entries);
	return error ? because(why, -1, "%s", rashpa_reason()) : 0;
}

static int open_board(struct loop *l, const char *device, const char *buffer, char *why)
{
	if (rashpa_board_open(device, &l->board) || rashpa_board_claim(l->board) ||
	    rashpa_board_get_info(l->board, &l->info) ||
	    rashpa_board_window(l->board, "doorbells", &l->doorbells))
		return because(why, -1, "%s", rashpa_reason());
	return open_memory(l, buffer, why) || l->kind->open(l, why) ? -1 : 0;
}

int loop_open(struct loop *l, const char *device, const char *buffer, char *why)
{
	l->length = 0;
	l->kind->lay_out(l);
	if (!open_board(l, device, buffer, why))
		return 0;
	loop_close(l);
	return -1;
}

void loop_close(struct loop *l)
{
	if (l->channel >= 0)
		close(l->channel);
	/* closing the target ends all DMA, so close it before the memory */
	rashpa_target_close(l->target);
	if (l->copied)
		free((void *)(uintptr_t)l->word);
	else if (l->word && !l->memory)
		munmap((void *)(uintptr_t)l->word, l->length);
	if (l->dmabuf >= 0)
		close(l->dmabuf);
	rashpa_gpu_free(l->memory);
	if (l->opened)
		rashpa_gpu_close(l->gpu);
	rashpa_board_close(l->board);
	*l = (struct loop)LOOP_NONE;
}

void loop_put(const struct loop *l, uint32_t at, uint32_t words)
{
	if (l->copied)
		l->drive->copy(l, true, at, words);
}

void loop_get(const struct loop *l, uint32_t at, uint32_t words)
{
	if (l->copied)
		l->drive->copy(l, false, at, words);
}

int loop_start(struct loop *l, char *why)
{
	memset((void *)(uintptr_t)l->word, 0, l->length);
	if (l->rings)
		loop_rings_fill(l);
	loop_put(l, 0, l->length / 4);
	return l->kind->start(l, why);
}
