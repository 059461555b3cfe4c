// SPDX-License-Identifier: LGPL-2.1-or-later
/* The board as a device of the server: memory, start and end. */
#include "fpga/fpga.h"

#include <linux/pci_regs.h>
#include <string.h>
#include <time.h>

static void reset(void *self, enum device_reset why)
{
	struct fpga *fpga = self;

	fault_reset(fpga);
	engine_quiesce(fpga);
	engine_reset(fpga);
	source_reset(fpga);
	unit_reset(fpga);
	ring_reset(fpga);
	regs_reset(fpga);
	memset(fpga->doorbell, 0, RFPGA_BAR_DOORBELL_SIZE);
	if (why == DEVICE_RESET_FLR)
		fault_flr(fpga);
}

static bool answers(void *self, bool config)
{
	return !fault_dead(self, config);
}

static void written(void *self, unsigned int bar)
{
	if (bar == RFPGA_BAR_DOORBELL)
		engine_kick(self);
}

static const struct device_ops ops = {
	.read = regs_read, .write = regs_write, .reset = reset, .written = written,
	.answers = answers, .command = fpga_command,
};

static int describe(struct fpga *fpga)
{
	static const uint16_t ids[] = {
		[FETCH_NONE] = RFPGA_PCI_DEVICE,
		[FETCH_ARRAY] = RFPGA_PCI_FETCH_ARRAY,
		[FETCH_CHAIN] = RFPGA_PCI_FETCH_CHAIN,
		[FETCH_PACKED] = RFPGA_PCI_FETCH_PACKED,
	};
	struct device *d = &fpga->device;
	int err;

	d->ops = &ops;
	d->self = fpga;
	d->vendor = RFPGA_PCI_VENDOR;
	d->id = ids[fpga->fetch];
	d->class = RFPGA_PCI_CLASS;
	d->revision = RFPGA_VERSION_VALUE >> 16;
	d->vectors = fpga->vectors;
	d->msix_bar = RFPGA_BAR_MSIX;
	d->bar[RFPGA_BAR_REGS].size = RFPGA_BAR_REGS_SIZE;
	/* memory that another function can write to, around the table */
	err = bar_create(&d->bar[RFPGA_BAR_MSIX], "rashpa-fpga-msix", DEVICE_MSIX_SIZE, 0);
	if (!err)
		err = bar_create(&d->bar[RFPGA_BAR_DOORBELL], "rashpa-fpga-doorbell",
				 RFPGA_BAR_DOORBELL_SIZE, PCI_BASE_ADDRESS_MEM_TYPE_64);
	if (!err)
		err = bar_create(&d->bar[RFPGA_BAR_MEMORY], "rashpa-fpga-memory",
				 fpga->memory_size,
				 PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
	fpga->doorbell = d->bar[RFPGA_BAR_DOORBELL].memory;
	fpga->memory = d->bar[RFPGA_BAR_MEMORY].memory;
	return err;
}

static void free_memories(struct fpga *fpga)
{
	bar_destroy(&fpga->device.bar[RFPGA_BAR_MSIX]);
	bar_destroy(&fpga->device.bar[RFPGA_BAR_DOORBELL]);
	bar_destroy(&fpga->device.bar[RFPGA_BAR_MEMORY]);
}

static uint64_t tai_at_tick_0(void)
{
	struct timespec now;

	clock_gettime(CLOCK_TAI, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec -
	       fpga_ticks() * RFPGA_TICK_NS;
}

/* The caller sets the fields that are fixed after the start; all others are zero. */
int fpga_init(struct fpga *fpga)
{
	int err = describe(fpga);

	bus_init(&fpga->bus, fpga->host, fpga->entries, fpga->fetch);
	slow_init(fpga);
	build_init(fpga);
	fpga->tai = tai_at_tick_0();
	if (!err)
		err = ring_init(fpga);
	if (!err)
		err = engine_init(fpga);
	if (!err) {
		err = fault_init(fpga);
		if (!err)
			return 0;
		engine_destroy(fpga);
	}
	ring_destroy(fpga);
	free_memories(fpga);
	return err;
}

void fpga_destroy(struct fpga *fpga)
{
	fault_destroy(fpga);
	engine_destroy(fpga);
	ring_destroy(fpga);
	free_memories(fpga);
}
