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
	struct rashpa_board_view memory;

	if (rashpa_board_window(l->board, "memory", &memory))
		return because(why, -1, "%s", rashpa_reason());
	if (memory.length < bytes)
		return because(why, -1, "fpga%u: %" PRIu64 " bytes on board, but %" PRIu64 " are needed",
			       l->info.number, memory.length, bytes);
	for (uint32_t i = 0; i < IMAGES; i++) {
		volatile uint32_t *word = (volatile uint32_t *)memory.base + (i << p->slot_log2);

		word[0] = i + 1;
		for (uint32_t k = 1; k < p->words; k++)
			word[k] = (i + 1) * UINT32_C(2654435761) + k + (i == BAD && k == 1);
	}
	return 0;
}

static int open_stacks(struct loop *l, char *why)
{
	if (!(l->info.features & RFPGA_FEATURE_VERDICT))
		return because(why, -1, "fpga%u does not support verdicts", l->info.number);
	l->page = l->doorbells.base;
	return put_images(l, why);
}

static bool faulted(const struct loop *l, char *why)
{
	return rashpa_board_status(l->board, RASHPA_BOARD_DTP(0), NULL, NULL) &&
	       because(why, 1, "%s", rashpa_reason());
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
		.dst_first = l->entries.first, .dst_count = l->entries.entries,
		.lock_first = l->entries.first, .lock_count = l->entries.entries,
		.lock_offset = p->events * 4, .images = p->total,
		.index_step = 1,
	};

	rashpa_board_configure(l->board, 0, &dtp);
	return rashpa_board_start(l->board, RASHPA_BOARD_DTP(0)) ?
	       because(why, -1, "%s", rashpa_reason()) : 0;
}

static void stop(struct loop *l)
{
	/* the last verdict may be under way */
	for (unsigned int ms = 0; ms < VERDICT_MS &&
	     rashpa_board_read64(l->board, RFPGA_DTP(0) + RFPGA_DTP_JUDGED) < l->plan.total; ms++)
		usleep(1000);
	rashpa_board_stop(l->board, RASHPA_BOARD_DTP(0), LOOP_STOP_MS * 1000000ll);
}

const struct loop_kind loop_stacks = {
	.user = RASHPA_BOARD_DTP(0), .lay_out = lay_out, .open = open_stacks, .start = start, .stop = stop,
	.faulted = faulted,
};
