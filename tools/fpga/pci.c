// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI configuration space: identity, BARs, MSI-X, power management, PCI Express with function
 * level reset.
 *
 * No interrupt pin if nobody asked for it: the host switches the mapping of our BARs off at
 * the first INTx, and every doorbell is a message until MSI-X is enabled.
 */
#include "fpga.h"

#include <linux/pci_regs.h>
#include <string.h>

#include "log.h"

#define CAP_MSIX	0x40
#define CAP_PM		0x50
#define CAP_EXPRESS	0x80

#define DEVCTL		(CAP_EXPRESS + PCI_EXP_DEVCTL)

static void set16(uint8_t *p, uint32_t offset, uint32_t value)
{
	p[offset] = (uint8_t)value;
	p[offset + 1] = (uint8_t)(value >> 8);
}

static void set32(uint8_t *p, uint32_t offset, uint32_t value)
{
	set16(p, offset, value);
	set16(p, offset + 2, value >> 16);
}

static uint32_t get16(const uint8_t *p, uint32_t offset)
{
	return p[offset] | (uint32_t)p[offset + 1] << 8;
}

/* Address bits that can be written are those above the size, a power of two. */
static void add_bar(struct fpga *fpga, unsigned int bar, uint64_t size, uint32_t flags)
{
	uint32_t offset = PCI_BASE_ADDRESS_0 + 4 * bar;
	uint64_t mask = ~(size - 1);

	set32(fpga->config, offset, flags);
	set32(fpga->config_mask, offset, (uint32_t)mask);
	if (flags & PCI_BASE_ADDRESS_MEM_TYPE_64)
		set32(fpga->config_mask, offset + 4, (uint32_t)(mask >> 32));
}

static void add_msix(struct fpga *fpga)
{
	uint8_t *p = fpga->config + CAP_MSIX;

	p[PCI_CAP_LIST_ID] = PCI_CAP_ID_MSIX;
	p[PCI_CAP_LIST_NEXT] = CAP_PM;
	set16(p, PCI_MSIX_FLAGS, fpga->vectors - 1);
	set32(p, PCI_MSIX_TABLE, 0 | RFPGA_BAR_MSIX);
	set32(p, PCI_MSIX_PBA, FPGA_MSIX_PBA | RFPGA_BAR_MSIX);
	set16(fpga->config_mask + CAP_MSIX, PCI_MSIX_FLAGS,
	      PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
}

/* D0 and D3hot, on the way between which nothing is lost. */
static void add_power(struct fpga *fpga)
{
	uint8_t *p = fpga->config + CAP_PM;

	p[PCI_CAP_LIST_ID] = PCI_CAP_ID_PM;
	p[PCI_CAP_LIST_NEXT] = CAP_EXPRESS;
	set16(p, PCI_PM_PMC, 3);	/* the version of the capability */
	set16(p, PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
}

bool pci_asleep(const struct fpga *fpga)
{
	return fpga->config[CAP_PM + PCI_PM_CTRL] & PCI_PM_CTRL_STATE_MASK;
}

void pci_offer_flr(struct fpga *fpga, bool on)
{
	fpga->faults.no_flr = !on;
	set32(fpga->config + CAP_EXPRESS, PCI_EXP_DEVCAP,
	      1 | PCI_EXP_DEVCAP_EXT_TAG | PCI_EXP_DEVCAP_RBER | (on ? PCI_EXP_DEVCAP_FLR : 0));
}

/* An endpoint, Gen3 x16, as the boards that this stands for. */
static void add_express(struct fpga *fpga)
{
	uint8_t *p = fpga->config + CAP_EXPRESS, *mask = fpga->config_mask + CAP_EXPRESS;

	p[PCI_CAP_LIST_ID] = PCI_CAP_ID_EXP;
	set16(p, PCI_EXP_FLAGS, 2 | PCI_EXP_TYPE_ENDPOINT << 4);
	pci_offer_flr(fpga, !fpga->faults.no_flr);
	set16(p, PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN |
	      PCI_EXP_DEVCTL_READRQ_512B);
	set16(mask, PCI_EXP_DEVCTL, 0xffff & ~PCI_EXP_DEVCTL_BCR_FLR);
	set32(p, PCI_EXP_LNKCAP, PCI_EXP_LNKCAP_SLS_8_0GB | 16 << 4);
	set16(p, PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_CLS_8_0GB | 16 << PCI_EXP_LNKSTA_NLW_SHIFT);
	set16(mask, PCI_EXP_LNKCTL, PCI_EXP_LNKCTL_ASPMC | PCI_EXP_LNKCTL_CCC);
	set32(p, PCI_EXP_LNKCAP2, PCI_EXP_LNKCAP2_SLS_2_5GB | PCI_EXP_LNKCAP2_SLS_5_0GB |
	      PCI_EXP_LNKCAP2_SLS_8_0GB);
	set16(p, PCI_EXP_LNKCTL2, PCI_EXP_LNKCTL2_TLS_8_0GT);
}

void pci_init(struct fpga *fpga)
{
	uint8_t *p = fpga->config, *mask = fpga->config_mask;

	memset(p, 0, FPGA_CONFIG_SIZE);
	memset(mask, 0, FPGA_CONFIG_SIZE);

	set16(p, PCI_VENDOR_ID, RFPGA_PCI_VENDOR);
	set16(p, PCI_DEVICE_ID, RFPGA_PCI_DEVICE);
	set16(p, PCI_SUBSYSTEM_VENDOR_ID, RFPGA_PCI_VENDOR);
	set16(p, PCI_SUBSYSTEM_ID, RFPGA_PCI_DEVICE);
	set32(p, PCI_CLASS_REVISION, RFPGA_PCI_CLASS << 8 | RFPGA_VERSION_VALUE >> 16);
	set16(p, PCI_STATUS, PCI_STATUS_CAP_LIST);
	p[PCI_CAPABILITY_LIST] = CAP_MSIX;
	set16(mask, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
	      PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	mask[PCI_CACHE_LINE_SIZE] = 0xff;
	mask[PCI_INTERRUPT_LINE] = 0xff;
	p[PCI_INTERRUPT_PIN] = fpga->intx;	/* INTA */

	add_bar(fpga, RFPGA_BAR_REGS, RFPGA_BAR_REGS_SIZE, 0);
	add_bar(fpga, RFPGA_BAR_MSIX, FPGA_MSIX_SIZE, 0);
	add_bar(fpga, RFPGA_BAR_DOORBELL, RFPGA_BAR_DOORBELL_SIZE,
		PCI_BASE_ADDRESS_MEM_TYPE_64);
	add_bar(fpga, RFPGA_BAR_MEMORY, fpga->memory_size,
		PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
	add_msix(fpga);
	add_power(fpga);
	add_express(fpga);
}

static void tell_intx(struct fpga *fpga)
{
	vfu_intx_control(fpga->vfu,
			 get16(fpga->config, PCI_COMMAND) & PCI_COMMAND_INTX_DISABLE,
			 get16(fpga->config, CAP_MSIX + PCI_MSIX_FLAGS) & PCI_MSIX_FLAGS_ENABLE);
}

void pci_reset(struct fpga *fpga)
{
	pci_init(fpga);
	tell_intx(fpga);
	host_set_master(&fpga->host, false);
	memset(fpga->msix, 0, sizeof(fpga->msix));
}

static void update_master(struct fpga *fpga)
{
	host_set_master(&fpga->host, (get16(fpga->config, PCI_COMMAND) & PCI_COMMAND_MASTER) &&
		       !pci_asleep(fpga));
}

/* A state that there is not leaves the function in the one it is in. */
static void set_power(struct fpga *fpga, uint8_t value)
{
	uint8_t *p = fpga->config + CAP_PM + PCI_PM_CTRL, state = value & PCI_PM_CTRL_STATE_MASK;

	if (state != 0 && state != 3)
		return;
	*p = (uint8_t)((*p & ~PCI_PM_CTRL_STATE_MASK) | state);
	log_debug("power state D%u", state);
	update_master(fpga);
}

static bool touches(uint32_t offset, uint32_t count, uint32_t reg, uint32_t size)
{
	return offset < reg + size && reg < offset + count;
}

void pci_read(struct fpga *fpga, uint32_t offset, uint8_t *data, uint32_t count)
{
	memcpy(data, fpga->config + offset, count);
	/* the engine asserts it, so it is not in the array */
	if (touches(offset, count, PCI_STATUS, 1) && vfu_intx_pending(fpga->vfu))
		data[PCI_STATUS - offset] |= PCI_STATUS_INTERRUPT;
}

void pci_write(struct fpga *fpga, uint32_t offset, const uint8_t *data, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint8_t mask = fpga->config_mask[offset + i];
		uint8_t *p = &fpga->config[offset + i];

		*p = (uint8_t)((*p & ~mask) | (data[i] & mask));
	}
	tell_intx(fpga);
	if (touches(offset, count, PCI_COMMAND, 2)) {
		log_debug("command register %#x", get16(fpga->config, PCI_COMMAND));
		update_master(fpga);
	}
	if (touches(offset, count, CAP_PM + PCI_PM_CTRL, 1))
		set_power(fpga, data[CAP_PM + PCI_PM_CTRL - offset]);
	if (!fpga->faults.no_flr && touches(offset, count, DEVCTL + 1, 1) &&
	    (data[DEVCTL + 1 - offset] & (PCI_EXP_DEVCTL_BCR_FLR >> 8))) {
		log_debug("function level reset");
		fpga_reset(fpga);
		fault_flr(fpga);
	}
}
