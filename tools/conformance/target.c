// SPDX-License-Identifier: LGPL-2.1-or-later
#include "conformance/target.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/say.h"
#include "common/words.h"
#include "conformance/test.h"

const struct target_ops *target;
struct board board = { .slowness = 1 };
uint8_t *host;
int host_fd = -1;
uint8_t *dataset;

static char why[256];

/* ------------------------------------------------------------- access --- */

uint64_t now_us(void)
{
	return now_ns() / 1000;
}

static uint64_t region_read(unsigned int region, uint64_t offset, unsigned int size)
{
	const volatile uint8_t *at = target->bar(region);

	return at ? word_read(at + offset, size) : target->read(region, offset, size);
}

static void region_write(unsigned int region, uint64_t offset, uint64_t value, unsigned int size)
{
	volatile uint8_t *at = target->bar(region);

	if (at)
		word_write(at + offset, value, size);
	else
		target->write(region, offset, value, size);
}

uint64_t reg_read(uint32_t offset, unsigned int size)
{
	return region_read(RFPGA_BAR_REGS, offset, size);
}

void reg_write(uint32_t offset, uint64_t value, unsigned int size)
{
	region_write(RFPGA_BAR_REGS, offset, value, size);
}

uint32_t rd(uint32_t offset)
{
	return (uint32_t)reg_read(offset, 4);
}

uint64_t rd64(uint32_t offset)
{
	return reg_read(offset, 8);
}

void wr(uint32_t offset, uint32_t value)
{
	reg_write(offset, value, 4);
}

void wr64(uint32_t offset, uint64_t value)
{
	reg_write(offset, value, 8);
}

uint32_t doorbell_read(uint32_t offset)
{
	return (uint32_t)region_read(RFPGA_BAR_DOORBELL, offset, 4);
}

void doorbell_write(uint32_t offset, uint32_t value)
{
	region_write(RFPGA_BAR_DOORBELL, offset, value, 4);
}

uint64_t doorbell_read64(uint32_t offset)
{
	return region_read(RFPGA_BAR_DOORBELL, offset, 8);
}

void doorbell_write64(uint32_t offset, uint64_t value)
{
	region_write(RFPGA_BAR_DOORBELL, offset, value, 8);
}

/* Whole words only: partial writes, and copies by memcpy(), are not defined for a card. */
void memory_write(uint64_t offset, const void *data, size_t size)
{
	const uint8_t *from = data;
	unsigned int n;

	for (; size; offset += n, from += n, size -= n) {
		uint64_t word = 0;

		n = offset % 8 || size < 8 ? 1 : 8;
		memcpy(&word, from, n);
		region_write(RFPGA_BAR_MEMORY, offset, word, n);
	}
}

void memory_read(uint64_t offset, void *data, size_t size)
{
	uint8_t *to = data;
	unsigned int n;

	for (; size; offset += n, to += n, size -= n) {
		uint64_t word;

		n = offset % 8 || size < 8 ? 1 : 8;
		word = region_read(RFPGA_BAR_MEMORY, offset, n);
		memcpy(to, &word, n);
	}
}

uint32_t config_read(uint32_t offset)
{
	return (uint32_t)target->read(REGION_CONFIG, offset, 4);
}

void config_write(uint32_t offset, uint32_t value, unsigned int size)
{
	target->write(REGION_CONFIG, offset, value, size);
}

uint32_t config_capability(uint8_t id)
{
	uint32_t at, left = 48;		/* ends even if the list is circular */

	if (!(config_read(PCI_COMMAND) >> 16 & PCI_STATUS_CAP_LIST))
		return 0;
	at = config_read(PCI_CAPABILITY_LIST) & 0xfc;
	while (at && left--) {
		uint32_t head = config_read(at);

		if ((head & 0xff) == id)
			return at;
		at = head >> 8 & 0xfc;
	}
	return 0;
}

void bus_master(bool on)
{
	config_write(PCI_COMMAND, PCI_COMMAND_MEMORY | (on ? PCI_COMMAND_MASTER : 0), 2);
}

int vector_event(uint32_t vector)
{
	if (target->serve)
		target->serve();
	return target->event(vector);
}

/* -------------------------------------------------------------- facts --- */

const char *host_alloc(void)
{
	host_fd = memfd_create("host", MFD_CLOEXEC);
	if (host_fd >= 0 && !ftruncate(host_fd, HOST_SIZE))
		host = mmap(NULL, HOST_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, host_fd, 0);
	dataset = malloc(DATASET_MAX);
	if (host && host != MAP_FAILED && dataset)
		return NULL;
	snprintf(why, sizeof(why), "%u bytes of host memory: %s", HOST_SIZE, strerror(errno));
	return why;
}

static struct block { uint32_t count, base, step, doorbell; } blocks[RFPGA_BLOCK_RING_BOUNDS + 1];

uint32_t block(uint32_t type, uint32_t *count)
{
	*count = blocks[type].count;
	return blocks[type].base;
}

uint32_t block_doorbell(uint32_t type)
{
	return blocks[type].doorbell;
}

/* Bytes of BAR 0 for a block of this type. */
static uint32_t block_size(uint32_t type)
{
	switch (type) {
	case RFPGA_BLOCK_DTP:		return RFPGA_DTP(1) - RFPGA_DTP(0);
	case RFPGA_BLOCK_TABLE:		return RFPGA_ENTRY_STRIDE;
	case RFPGA_BLOCK_SOURCE:	return RFPGA_SOURCE_SIZE;
	case RFPGA_BLOCK_UNIT:		return RFPGA_UNIT_SIZE;
	case RFPGA_BLOCK_RING:		return RFPGA_RING_SIZE;
	default:			return 16;
	}
}

/* Are the doorbells of this block pages of BAR 2, apart from those of DTPs? */
static const char *look_at_doorbells(const struct block *b, const char *what)
{
	if (!b->count || !(b->doorbell % RFPGA_DOORBELL_PAGE || b->count > RFPGA_DTPS_MAX ||
			   b->doorbell > RFPGA_BAR_DOORBELL_SIZE -
					 b->count * RFPGA_DOORBELL_PAGE ||
			   (b->doorbell < board.doorbell + board.dtps * RFPGA_DOORBELL_PAGE &&
			    b->doorbell + b->count * RFPGA_DOORBELL_PAGE > board.doorbell)))
		return NULL;
	snprintf(why, sizeof(why),
		 "the list of blocks has %u %s with doorbells from %#x on: these are not theirs",
		 b->count, what, b->doorbell);
	return why;
}

/* Read offset and number of the blocks; none may extend beyond its BAR. */
static const char *look_at_blocks(void)
{
	uint32_t at = rd(RFPGA_BLOCKS), left = 256, type = UINT32_MAX, size;
	const char *bad;
	struct block *b;

	memset(blocks, 0, sizeof(blocks));
	for (; left && at <= RFPGA_BAR_REGS_SIZE - RFPGA_BLOCK_STRIDE && at % 4 == 0;
	     at += RFPGA_BLOCK_STRIDE, left--) {
		type = rd(at + RFPGA_BLOCK_TYPE);
		if (!(type & 0xffff))
			break;
		if ((type & 0xffff) > RFPGA_BLOCK_RING_BOUNDS || !(type >> 16))
			continue;
		b = &blocks[type & 0xffff];
		if (b->count)
			continue;
		size = block_size(type & 0xffff);
		b->count = type >> 16;
		b->base = rd(at + RFPGA_BLOCK_BASE);
		b->step = rd(at + RFPGA_BLOCK_STEP);
		b->doorbell = rd(at + RFPGA_BLOCK_DOORBELL);
		if ((b->base | b->step) % 4 || (b->count > 1 && b->step < size) ||
		    (b->count - 1ull) * b->step + b->base > RFPGA_BAR_REGS_SIZE - size) {
			snprintf(why, sizeof(why),
				 "the list of blocks has %u of type %u from %#x on, %#x apart, of %#x bytes each: these do not fit into BAR 0",
				 b->count, type & 0xffff, b->base, b->step, size);
			return why;
		}
	}
	if (type & 0xffff)
		return "the list of blocks does not end";
	b = &blocks[RFPGA_BLOCK_DTP];
	board.dtps = b->count;
	board.dtp = b->base;
	board.dtp_step = b->step;
	board.doorbell = b->doorbell;
	if (board.dtps > RFPGA_DTPS_MAX || board.doorbell % 4 ||
	    board.doorbell > RFPGA_BAR_DOORBELL_SIZE - board.dtps * RFPGA_DOORBELL_PAGE) {
		snprintf(why, sizeof(why),
			 "the list of blocks has %u DTPs with doorbells from %#x on: BAR 2 has pages for %u",
			 board.dtps, board.doorbell, RFPGA_DTPS_MAX);
		return why;
	}
	bad = look_at_doorbells(&blocks[RFPGA_BLOCK_UNIT], "processing units");
	if (!bad)
		bad = look_at_doorbells(&blocks[RFPGA_BLOCK_RING], "rings");
	if (bad)
		return bad;
	b = &blocks[RFPGA_BLOCK_TABLE];
	board.entries = b->count;
	board.table = b->base;
	board.table_step = b->step;
	board.bounds = blocks[RFPGA_BLOCK_BOUNDS].base;
	board.bounds_step = blocks[RFPGA_BLOCK_BOUNDS].step;
	if (blocks[RFPGA_BLOCK_BOUNDS].count < board.dtps)
		return "the list of blocks has bounds for fewer DTPs than there are";
	return board.dtps && board.entries ? NULL :
	       "the list of blocks has no DTP or no address table";
}

/* A simulation takes seconds for actions that take a board microseconds. */
static void look_at_clock(void)
{
	uint64_t begin = now_us(), first = rd64(RFPGA_TICKS), ticks, us;

	do {
		usleep(1000);
		ticks = rd64(RFPGA_TICKS) - first;
		us = now_us() - begin;
	} while (ticks < board.tick_rate / 100 && us < 5000000);
	us = ticks ? us * board.tick_rate / 1000000 / ticks : 1;
	board.slowness = us ? (unsigned int)us : 1;
}

static uint32_t at_most(uint64_t value, uint32_t most)
{
	return value < most ? (uint32_t)value : most;
}

/* As many lines as fit, so that there are 16 different images if memory allows. */
static void look_at_images(void)
{
	board.image = 4096;
	while (16 * board.image > board.dataset)
		board.image /= 2;
	board.line = 128;
	if (board.align > board.line && board.align <= board.dataset)
		board.line = board.align;
	if (board.image < board.line)
		board.image = board.line;
}

const char *board_look(void)
{
	const char *bad;
	uint32_t limits, vectors;

	bus_master(true);
	if (rd(RFPGA_ID) != RFPGA_ID_VALUE) {
		snprintf(why, sizeof(why),
			 "BAR 0 begins with %#x, not with %#x: this board lacks the reference interface",
			 rd(RFPGA_ID), RFPGA_ID_VALUE);
		return why;
	}
	if (rd(RFPGA_VERSION) >> 16 != RFPGA_VERSION_VALUE >> 16 ||
	    rd(RFPGA_VERSION) < RFPGA_VERSION_VALUE) {
		snprintf(why, sizeof(why), "VERSION is %#x: these tests are for %#x",
			 rd(RFPGA_VERSION), RFPGA_VERSION_VALUE);
		return why;
	}
	bad = look_at_blocks();
	if (bad)
		return bad;
	board.features = rd(RFPGA_FEATURES);
	limits = rd(RFPGA_LIMITS);
	board.offset_bits = at_most(RFPGA_LIMITS_OFFSET(limits), 64);
	board.stride_bits = at_most(RFPGA_LIMITS_STRIDE(limits), 64);
	board.count_bits = at_most(RFPGA_LIMITS_COUNT(limits), 31);
	board.align = 1u << at_most(RFPGA_LIMITS_ALIGN(limits), 31);
	board.tick_rate = rd(RFPGA_TICK_RATE);
	board.stop_time = rd(RFPGA_STOP_TIME);
	board.memory = rd64(RFPGA_MEMORY_SIZE);
	board.shown = target->bar_size(RFPGA_BAR_MEMORY);
	if (board.shown > board.memory)
		board.shown = board.memory;
	if (board.shown < MEMORY_MIN) {
		snprintf(why, sizeof(why),
			 "BAR 4 shows %llu bytes of on-board memory: tests need %u of them",
			 (unsigned long long)board.shown, MEMORY_MIN);
		return why;
	}
	board.dataset = at_most(board.shown, DATASET_MAX);
	look_at_images();
	/* those that are listed and exist */
	vectors = at_most(RFPGA_CAPS_VECTORS(rd(RFPGA_CAPS)), VECTORS_MAX);
	for (board.vectors = 0; board.vectors < vectors; board.vectors++)
		if (target->event(board.vectors) < 0)
			break;
	look_at_clock();
	return NULL;
}

void board_fill(uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < board.dataset / 4; i++) {
		seed = seed * 1664525 + 1013904223;
		((uint32_t *)dataset)[i] = seed;
	}
	memory_write(0, dataset, board.dataset);
}
