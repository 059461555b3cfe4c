// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl fpga read, write, dump: registers of any board, e.g. to find out how to stop it */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/fpga.h"
#include "common/json-out.h"
#include "common/parse.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"

#define DUMP_MAX	(1u << 20)
#define LINE		16u	/* bytes of a line */

/* Words of a BAR, in the pages that have them. */
struct place {
	struct fpga fpga;
	int window;		/* dma-buf of these pages */
	volatile uint32_t *view;
	uint64_t length;	/* bytes of the view */
	uint32_t bar;
	uint64_t offset;	/* in the BAR */
	uint64_t base;		/* in the BAR, of the view */
};

/* BAR:OFFSET */
static bool parse_place(const char *text, struct place *p)
{
	const char *colon = strchr(text, ':');
	char bar[16];
	uint64_t n;

	if (!colon || colon - text >= (int)sizeof(bar))
		return false;
	snprintf(bar, sizeof(bar), "%.*s", (int)(colon - text), text);
	if (!parse_u64(bar, RASHPA_BARS - 1, &n) ||
	    !parse_u64(colon + 1, UINT64_MAX / 2, &p->offset) || p->offset % 4)
		return false;
	p->bar = (uint32_t)n;
	return true;
}

static int open_view(struct place *p, uint64_t length)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct rashpa_window_make window = { .bar = p->bar };
	void *view;
	int error;

	p->base = p->offset / page * page;
	window.offset = p->base;
	window.length = (p->offset + length + page - 1) / page * page - p->base;
	error = p->window = rashpa_device_window(p->fpga.device, &window);
	if (error >= 0)
		error = rashpa_mmap(p->window, 0, window.length, PROT_READ | PROT_WRITE, &view);
	if (error)
		return fail("fpga%u: BAR %" PRIu32 ": %s%s", p->fpga.number, p->bar, rashpa_reason(),
			    error == -EBUSY ? ": the kernel's log names a page that it keeps for itself" : "");
	p->length = window.length;
	p->view = view;
	return 0;
}

static void close_place(struct place *p)
{
	if (p->view)
		munmap((void *)(uintptr_t)p->view, p->length);
	if (p->window >= 0)
		close(p->window);
	fpga_close(&p->fpga);
}

/* An exit code, after a message. */
static int open_place(struct place *p, const char *device, const char *where, uint64_t length)
{
	int result;

	*p = (struct place){ .fpga = FPGA_NONE, .window = -1 };
	if (!parse_place(where, p)) {
		say("\"%s\" is not BAR:OFFSET, as in 0:0x10, with a multiple of 4", where);
		return EXIT_USAGE;
	}
	fpga_catch_removal();
	result = fpga_named(&p->fpga, device);
	if (!result)
		result = open_view(p, length);
	if (result)
		close_place(p);
	return result;
}

static uint32_t word_at(const struct place *p, uint64_t offset)
{
	return p->view[(offset - p->base) / 4];
}

static struct json_object *word_json(const struct place *p, uint64_t offset, uint32_t value)
{
	struct json_object *o = json_object_new_object();

	put_int(o, "bar", p->bar);
	put_hex(o, "offset", offset);
	put_hex(o, "value", value);
	return o;
}

static int tell(const struct place *p, uint32_t value)
{
	if (command_json)
		return json_finish(word_json(p, p->offset, value));
	printf("0x%08" PRIx32 "\n", value);
	return 0;
}

int cmd_fpga_read(int argc, char **argv)
{
	const char *value[2];
	struct place p;
	int result;

	command_simple(argc, argv, value);
	result = open_place(&p, value[0], value[1], 4);
	if (result)
		return result;
	result = tell(&p, word_at(&p, p.offset));
	close_place(&p);
	return result;
}

int cmd_fpga_write(int argc, char **argv)
{
	const char *value[3];
	struct place p;
	uint32_t word;
	int result;

	command_simple(argc, argv, value);
	if (!parse_u32(value[2], &word)) {
		say("\"%s\" is not a number of 32 bits", value[2]);
		return EXIT_USAGE;
	}
	result = open_place(&p, value[0], value[1], 4);
	if (result)
		return result;
	p.view[(p.offset - p.base) / 4] = word;
	result = tell(&p, word_at(&p, p.offset));
	close_place(&p);
	return result;
}

static void dump_text(const struct place *p, uint64_t length)
{
	for (uint64_t i = 0; i < length; i += 4) {
		if (!(i % LINE))
			printf("%s0x%04" PRIx64 ":", i ? "\n" : "", p->offset + i);
		printf(" %08" PRIx32, word_at(p, p->offset + i));
	}
	printf("\n");
}

static int dump_json(const struct place *p, uint64_t length)
{
	struct json_object *list = json_object_new_array();

	for (uint64_t i = 0; i < length; i += 4)
		json_object_array_add(list, word_json(p, p->offset + i,
						      word_at(p, p->offset + i)));
	return json_finish(list);
}

int cmd_fpga_dump(int argc, char **argv)
{
	const char *value[3];
	uint64_t length;
	struct place p;
	int result;

	command_simple(argc, argv, value);
	if (!parse_size(value[2], &length) || !length || length % 4 || length > DUMP_MAX) {
		say("\"%s\" is not a length: a multiple of 4 up to 1M", value[2]);
		return EXIT_USAGE;
	}
	result = open_place(&p, value[0], value[1], length);
	if (result)
		return result;
	if (command_json)
		result = dump_json(&p, length);
	else
		dump_text(&p, length);
	close_place(&p);
	return result;
}
