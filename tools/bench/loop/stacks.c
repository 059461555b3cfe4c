// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * DTP 0 with verdicts, and its memory:
 *
 *   told | lock record | stacks of one image, one for each place in the window
 *
 * The board has IMAGES different stacks. One of them is bad: a word does not match the first one.
 */
#include <inttypes.h>
#include <unistd.h>

#include "bench/loop/loop.h"
#include <rashpa-fpga.h>
#include "common/say.h"

#define PAGE		4096u
#define IMAGES		8u
#define BAD		5u
#define VERDICT_MS	100u

static void lay_out(struct loop *l)
{
	struct loop_plan *p = &l->plan;

	p->told = loop_place(l, PAGE);
	p->events = loop_place(l, PAGE);
	p->receive = loop_place(l, ((uint64_t)p->window << p->slot_log2) * 4);
}

/* Write the images: words that are computed from the first one, as in drive.h. */
static int put_images(struct loop *l, char *why)
{
	const struct loop_plan *p = &l->plan;
	const uint64_t bytes = ((uint64_t)IMAGES << p->slot_log2) * 4;
	struct view memory;

	if (view_open(&memory, &l->fpga, "memory", RFPGA_BAR_MEMORY, 0, 0, true, why))
		return -1;
	if (fpga_memory(&l->fpga, &memory) < bytes) {
		because(why, -1, "fpga%u: %" PRIu64 " bytes on board, but %" PRIu64 " are needed",
			l->fpga.number, fpga_memory(&l->fpga, &memory), bytes);
		view_close(&memory);
		return -1;
	}
	for (uint32_t i = 0; i < IMAGES; i++) {
		const uint32_t at = i << p->slot_log2;

		view_write(&memory, at * 4, i + 1);
		for (uint32_t k = 1; k < p->words; k++)
			view_write(&memory, (at + k) * 4,
				   (i + 1) * UINT32_C(2654435761) + k + (i == BAD && k == 1));
	}
	view_close(&memory);
	return 0;
}

static int open_stacks(struct loop *l, char *why)
{
	if (!(fpga_read(&l->fpga, RFPGA_FEATURES) & RFPGA_FEATURE_VERDICT))
		return because(why, -1, "fpga%u does not support verdicts", l->fpga.number);
	l->page = l->doorbells.base;
	return put_images(l, why);
}

static bool faulted(const struct loop *l, char *why)
{
	if (!(fpga_read(&l->fpga, RFPGA_DTP(0) + RFPGA_DTP_STATUS) & RFPGA_DTP_FAULTED))
		return false;
	because(why, 0, "a fault has stopped DTP 0: %s, at %#" PRIx64,
		fpga_cause_name(fpga_read(&l->fpga, RFPGA_DTP(0) + RFPGA_DTP_FAULT_CAUSE)),
		fpga_read64(&l->fpga, RFPGA_DTP(0) + RFPGA_DTP_FAULT_ADDR));
	return true;
}

static int start(struct loop *l, char *why)
{
	const struct loop_plan *p = &l->plan;
	const uint32_t slot = 4u << p->slot_log2;
	const struct rfpga_dtp dtp = {
		.mode = RFPGA_MODE_LOCK | RFPGA_MODE_VERDICT, .pixel_bytes = 4, .bunch = 1,
		.slots = p->window, .src_images = IMAGES, .width = p->words, .height = 1,
		.src_line = slot, .src_image = slot, .dst_line = slot, .dst_image = slot,
		.dst_slot = slot, .dst_base = p->receive * 4,
		.dst_first = l->first, .dst_count = l->entries, .lock_first = l->first,
		.lock_offset = p->events * 4, .lock_count = l->entries, .images = p->total,
		.index_step = 1,
	};

	fpga_configure(&l->fpga, 0, &dtp);
	fpga_write(&l->fpga, RFPGA_DTP(0) + RFPGA_DTP_CONTROL, RFPGA_DTP_START);
	return faulted(l, why) ? -1 : 0;
}

static void stop(struct loop *l)
{
	/* the last verdict may be under way */
	for (unsigned int ms = 0; ms < VERDICT_MS &&
	     fpga_read64(&l->fpga, RFPGA_DTP(0) + RFPGA_DTP_JUDGED) < l->plan.total; ms++)
		usleep(1000);
	fpga_write(&l->fpga, RFPGA_DTP(0) + RFPGA_DTP_CONTROL, RFPGA_DTP_STOP);
	loop_await_stop(l, RFPGA_DTP(0) + RFPGA_DTP_STATUS, RFPGA_DTP_RUNNING);
}

const struct loop_kind loop_stacks = {
	.engine = "dtp0", .lay_out = lay_out, .open = open_stacks, .start = start, .stop = stop,
	.faulted = faulted,
};
