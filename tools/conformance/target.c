// SPDX-License-Identifier: LGPL-2.1-or-later
#include "target.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

const struct target_ops *target;
struct board board = { .slowness = 1 };
uint8_t *host;
int host_fd = -1;
uint8_t *dataset;

static char why[256];

/* ------------------------------------------------------------- access --- */

static uint64_t region_read(unsigned int region, uint64_t offset, unsigned int size)
{
	const volatile uint8_t *at = target->bar(region);

	if (!at)
		return target->read(region, offset, size);
	at += offset;
	switch (size) {
	case 1: return *at;
	case 2: return *(const volatile uint16_t *)at;
	case 4: return *(const volatile uint32_t *)at;
	default: return *(const volatile uint64_t *)at;
	}
}

static void region_write(unsigned int region, uint64_t offset, uint64_t value, unsigned int size)
{
	volatile uint8_t *at = target->bar(region);

	if (!at) {
		target->write(region, offset, value, size);
		return;
	}
	at += offset;
	switch (size) {
	case 1:
		*at = (uint8_t)value;
		break;
	case 2:
		*(volatile uint16_t *)at = (uint16_t)value;
		break;
	case 4:
		*(volatile uint32_t *)at = (uint32_t)value;
		break;
	default:
		*(volatile uint64_t *)at = value;
	}
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

/* Whole words: what a card takes of parts, and of copies that memcpy() makes, is not defined. */
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
	uint32_t at, left = 48;		/* a list that is a ring ends, too */

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

uint32_t dma_map(uint64_t addr, uint64_t size, uint64_t offset, uint32_t flags)
{
	return target->map(addr, size, offset, flags);
}

void dma_unmap(uint64_t addr, uint64_t size)
{
	target->unmap(addr, size);
}

int vector_event(uint32_t vector)
{
	if (target->serve)
		target->serve();
	return target->event(vector);
}

void msix_enable(bool on)
{
	target->msix(on);
}

void function_reset(void)
{
	target->reset();
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

/* Where the blocks are, and how many of each. */
static const char *look_at_blocks(void)
{
	uint32_t at = rd(RFPGA_BLOCKS), type, left = 256;

	board.dtps = 0;
	board.entries = 0;
	for (; left && at < RFPGA_BAR_REGS_SIZE; at += RFPGA_BLOCK_STRIDE, left--) {
		type = rd(at + RFPGA_BLOCK_TYPE);
		switch (type & 0xffff) {
		case RFPGA_BLOCK_NONE:
			return board.dtps && board.entries ? NULL :
			       "the list of blocks has no DTP or no address table";
		case RFPGA_BLOCK_DTP:
			board.dtps = type >> 16;
			board.dtp = rd(at + RFPGA_BLOCK_BASE);
			board.dtp_step = rd(at + RFPGA_BLOCK_STEP);
			board.doorbell = rd(at + RFPGA_BLOCK_DOORBELL);
			break;
		case RFPGA_BLOCK_TABLE:
			board.entries = type >> 16;
			board.table = rd(at + RFPGA_BLOCK_BASE);
			board.table_step = rd(at + RFPGA_BLOCK_STEP);
			break;
		case RFPGA_BLOCK_BOUNDS:
			board.bounds = rd(at + RFPGA_BLOCK_BASE);
			board.bounds_step = rd(at + RFPGA_BLOCK_STEP);
			break;
		}
	}
	return "the list of blocks does not end";
}

/* A simulation needs seconds for what a board does in microseconds. */
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

const char *board_look(void)
{
	const char *bad;

	bus_master(true);
	if (rd(RFPGA_ID) != RFPGA_ID_VALUE) {
		snprintf(why, sizeof(why),
			 "BAR 0 begins with %#x, not with %#x: this is no board with the reference interface",
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
	board.vectors = RFPGA_CAPS_VECTORS(rd(RFPGA_CAPS));
	board.features = rd(RFPGA_FEATURES);
	board.offset_bits = RFPGA_LIMITS_OFFSET(rd(RFPGA_LIMITS));
	board.stride_bits = RFPGA_LIMITS_STRIDE(rd(RFPGA_LIMITS));
	board.count_bits = RFPGA_LIMITS_COUNT(rd(RFPGA_LIMITS));
	board.align = 1u << RFPGA_LIMITS_ALIGN(rd(RFPGA_LIMITS));
	board.tick_rate = rd(RFPGA_TICK_RATE);
	board.stop_time = rd(RFPGA_STOP_TIME);
	board.memory = rd64(RFPGA_MEMORY_SIZE);
	board.shown = target->bar_size(RFPGA_BAR_MEMORY);
	if (board.shown > board.memory)
		board.shown = board.memory;
	board.dataset = board.shown < DATASET_MAX ? (uint32_t)board.shown : DATASET_MAX;
	if (board.vectors > VECTORS_MAX)
		board.vectors = VECTORS_MAX;
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
