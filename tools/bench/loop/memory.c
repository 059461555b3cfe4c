// SPDX-License-Identifier: LGPL-2.1-or-later
/* The board, and memory that is mapped for board and drive. */
#include "bench/loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rashpa-fpga.h>
#include <rashpa.h>
#include "common/say.h"

#define PAGE		4096u
#define STOP_MS		6000u	/* longer than any STOP_TIME */

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

/* GPU memory that this process can access through the BAR. */
static int gpu_memory(struct loop *l, struct rashpa_map_make *map, char *why)
{
	if (rashpa_gpu_open(l->gpu_name, &l->gpu) ||
	    rashpa_gpu_alloc(l->gpu, l->length, &l->memory))
		return because(why, -1, "%s", rashpa_reason());
	l->word = rashpa_gpu_base(l->memory);
	if (!l->word)
		return because(why, -1, "%s: the host cannot access its memory, so it cannot drive",
			       l->gpu_name);
	l->map = rashpa_gpu_map(l->fpga.device, l->memory, map);
	return l->map < 0 ? because(why, -1, "%s", rashpa_reason()) : 0;
}

static int host_memory(struct loop *l, const char *buffer, struct rashpa_map_make *map, char *why)
{
	void *base;

	if (buffer ? named_buffer(l, buffer, why) : new_buffer(l, why))
		return -1;
	base = mmap(NULL, l->length, PROT_READ | PROT_WRITE, MAP_SHARED, l->dmabuf, 0);
	if (base == MAP_FAILED)
		return because(why, -1, "mmap of a buffer: %s", strerror(errno));
	l->word = base;
	map->fd = l->dmabuf;
	l->map = rashpa_device_map(l->fpga.device, map);
	return l->map < 0 ? because(why, -1, "%s", rashpa_reason()) : 0;
}

static int open_memory(struct loop *l, const char *buffer, char *why)
{
	struct rashpa_map_make map = { .direction = RASHPA_BIDIRECTIONAL };
	struct rashpa_program program = { };
	struct fpga_range range;

	if (fpga_range(&l->fpga, l->kind->engine, &range, why))
		return -1;
	l->bounded = range.engine >= 0;
	l->first = program.first = range.first;
	if (l->gpu_name ? gpu_memory(l, &map, why) : host_memory(l, buffer, &map, why))
		return -1;
	/* the driver writes addresses to the table; a ring refers to entries only */
	if (map.out_segments > range.count)
		return because(why, -1, "fpga%u: the memory has %" PRIu32 " segments, but %s takes only %"
			       PRIu32, l->fpga.number, map.out_segments, l->kind->engine,
			       range.count);
	if (rashpa_map_program(l->map, &program))
		return because(why, -1, "%s", rashpa_reason());
	l->entries = map.out_segments;
	return 0;
}

static int open_board(struct loop *l, const char *device, const char *buffer, char *why)
{
	unsigned int number;

	if (!parse_fpga(device, &number))
		return because(why, -1, "\"%s\" is not fpgaN: see rashpactl list", device);
	if (fpga_open(&l->fpga, number, why) || fpga_claim(&l->fpga, why) ||
	    fpga_registers(&l->fpga, why) ||
	    view_open(&l->doorbells, &l->fpga, "doorbells", RFPGA_BAR_DOORBELL, 0, 0, true, why))
		return -1;
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
	/* closing the map ends all DMA, so close it before the memory */
	if (l->map >= 0)
		close(l->map);
	if (l->word && !l->memory)
		munmap((void *)(uintptr_t)l->word, l->length);
	if (l->dmabuf >= 0)
		close(l->dmabuf);
	rashpa_gpu_free(l->memory);
	rashpa_gpu_close(l->gpu);
	view_close(&l->bounds);
	view_close(&l->doorbells);
	fpga_close(&l->fpga);
	*l = (struct loop)LOOP_NONE;
}

int loop_start(struct loop *l, char *why)
{
	memset((void *)(uintptr_t)l->word, 0, l->length);
	return l->kind->start(l, why);
}

void loop_await_stop(const struct loop *l, uint32_t status, uint32_t running)
{
	/* only the register reports the stop; it stays all ones after a loss of the link */
	for (unsigned int ms = 0; ms < STOP_MS && fpga_read(&l->fpga, status) & running; ms++)
		usleep(1000);
}
