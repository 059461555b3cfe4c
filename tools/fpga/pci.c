// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Configuration space: IDs and BARs of a struct device, and the capabilities of all devices: MSI-X,
 * PCI Express with function level reset, power management.
 *
 * There is no interrupt pin unless requested: at the first INTx the host disables the mapping of
 * our BARs, and every doorbell is a message until MSI-X is enabled.
 */
#include "fpga/pci.h"

#include <linux/pci_regs.h>
#include <string.h>

#include "fpga/log.h"

#define CAP_MSIX	0x40
#define CAP_PM		0x50
#define CAP_EXPRESS	0x80

/* in a page inside of their BAR, as on boards that have registers in the same one */
#define MSIX_TABLE	0x1000
#define MSIX_PBA	0x1800

#define DEVCAP		(CAP_EXPRESS + PCI_EXP_DEVCAP)
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

/* Writable address bits are those above the size, a power of two. */
static void add_bar(struct pci *pci, unsigned int bar, uint64_t size, uint32_t flags)
{
	uint32_t offset = PCI_BASE_ADDRESS_0 + 4 * bar;
	uint64_t mask = ~(size - 1);

	set32(pci->config, offset, flags);
	set32(pci->mask, offset, (uint32_t)mask);
	if (flags & PCI_BASE_ADDRESS_MEM_TYPE_64)
		set32(pci->mask, offset + 4, (uint32_t)(mask >> 32));
}

static void add_msix(struct pci *pci)
{
	uint8_t *p = pci->config + CAP_MSIX;

	p[PCI_CAP_LIST_ID] = PCI_CAP_ID_MSIX;
	p[PCI_CAP_LIST_NEXT] = CAP_PM;
	set16(p, PCI_MSIX_FLAGS, pci->device->vectors - 1);
	set32(p, PCI_MSIX_TABLE, MSIX_TABLE | pci->device->msix_bar);
	set32(p, PCI_MSIX_PBA, MSIX_PBA | pci->device->msix_bar);
	set16(pci->mask + CAP_MSIX, PCI_MSIX_FLAGS,
	      PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
}

/* D0 and D3hot; the transition keeps the state. */
static void add_power(struct pci *pci)
{
	uint8_t *p = pci->config + CAP_PM;

	p[PCI_CAP_LIST_ID] = PCI_CAP_ID_PM;
	p[PCI_CAP_LIST_NEXT] = CAP_EXPRESS;
	set16(p, PCI_PM_PMC, 3);	/* the version of the capability */
	set16(p, PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
}

bool pci_asleep(const struct pci *pci)
{
	return pci->config[CAP_PM + PCI_PM_CTRL] & PCI_PM_CTRL_STATE_MASK;
}

/* An endpoint, Gen3 x16, like the emulated boards. */
static void add_express(struct pci *pci)
{
	uint8_t *p = pci->config + CAP_EXPRESS, *mask = pci->mask + CAP_EXPRESS;

	p[PCI_CAP_LIST_ID] = PCI_CAP_ID_EXP;
	set16(p, PCI_EXP_FLAGS, 2 | PCI_EXP_TYPE_ENDPOINT << 4);
	set32(p, PCI_EXP_DEVCAP, 1 | PCI_EXP_DEVCAP_EXT_TAG | PCI_EXP_DEVCAP_RBER);
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

static void fill(struct pci *pci)
{
	const struct device *d = pci->device;
	uint8_t *p = pci->config, *mask = pci->mask;
	unsigned int i;

	memset(p, 0, PCI_CONFIG_SIZE);
	memset(mask, 0, PCI_CONFIG_SIZE);

	set16(p, PCI_VENDOR_ID, d->vendor);
	set16(p, PCI_DEVICE_ID, d->id);
	set16(p, PCI_SUBSYSTEM_VENDOR_ID, d->vendor);
	set16(p, PCI_SUBSYSTEM_ID, d->id);
	set32(p, PCI_CLASS_REVISION, d->class << 8 | d->revision);
	set16(p, PCI_STATUS, PCI_STATUS_CAP_LIST);
	p[PCI_CAPABILITY_LIST] = CAP_MSIX;
	set16(mask, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
	      PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	mask[PCI_CACHE_LINE_SIZE] = 0xff;
	mask[PCI_INTERRUPT_LINE] = 0xff;
	p[PCI_INTERRUPT_PIN] = d->pin;		/* INTA */

	for (i = 0; i < DEVICE_BARS; i++)
		if (d->bar[i].size)
			add_bar(pci, i, d->bar[i].size, d->bar[i].flags);
	add_msix(pci);
	add_power(pci);
	add_express(pci);
}

static void tell_interrupts(struct pci *pci)
{
	irq_control(&pci->host->irq, pci->device->pin,
		    get16(pci->config, PCI_COMMAND) & PCI_COMMAND_INTX_DISABLE,
		    get16(pci->config, CAP_MSIX + PCI_MSIX_FLAGS) & PCI_MSIX_FLAGS_ENABLE);
}

void pci_reset(struct pci *pci)
{
	fill(pci);
	tell_interrupts(pci);
	host_set_master(pci->host, false);
	memset(pci->msix, 0, sizeof(pci->msix));
}

void pci_init(struct pci *pci, const struct device *device, struct host *host)
{
	pci->device = device;
	pci->host = host;
	pci_reset(pci);
}

static void update_master(struct pci *pci)
{
	host_set_master(pci->host, (get16(pci->config, PCI_COMMAND) & PCI_COMMAND_MASTER) &&
		       !pci_asleep(pci));
}

/* An unsupported state leaves the function in its current state. */
static void set_power(struct pci *pci, uint8_t value)
{
	uint8_t *p = pci->config + CAP_PM + PCI_PM_CTRL, state = value & PCI_PM_CTRL_STATE_MASK;

	if (state != 0 && state != 3)
		return;
	*p = (uint8_t)((*p & ~PCI_PM_CTRL_STATE_MASK) | state);
	log_debug("power state D%u", state);
	update_master(pci);
}

static bool touches(uint32_t offset, uint32_t count, uint32_t reg, uint32_t size)
{
	return offset < reg + size && reg < offset + count;
}

void pci_read(const struct pci *pci, uint32_t offset, uint8_t *data, uint32_t count)
{
	memcpy(data, pci->config + offset, count);
	/* state kept elsewhere is not in the array */
	if (touches(offset, count, PCI_STATUS, 1) && intx_pending(&pci->host->irq))
		data[PCI_STATUS - offset] |= PCI_STATUS_INTERRUPT;
	if (touches(offset, count, DEVCAP + 3, 1) && !pci->device->no_flr)
		data[DEVCAP + 3 - offset] |= PCI_EXP_DEVCAP_FLR >> 24;
}

bool pci_write(struct pci *pci, uint32_t offset, const uint8_t *data, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint8_t mask = pci->mask[offset + i];
		uint8_t *p = &pci->config[offset + i];

		*p = (uint8_t)((*p & ~mask) | (data[i] & mask));
	}
	tell_interrupts(pci);
	if (touches(offset, count, PCI_COMMAND, 2)) {
		log_debug("command register %#x", get16(pci->config, PCI_COMMAND));
		update_master(pci);
	}
	if (touches(offset, count, CAP_PM + PCI_PM_CTRL, 1))
		set_power(pci, data[CAP_PM + PCI_PM_CTRL - offset]);
	if (pci->device->no_flr || !touches(offset, count, DEVCTL + 1, 1) ||
	    !(data[DEVCTL + 1 - offset] & (PCI_EXP_DEVCTL_BCR_FLR >> 8)))
		return false;
	log_debug("function level reset");
	return true;
}

void pci_msix_read(const struct pci *pci, uint32_t offset, uint8_t *data, uint32_t count)
{
	memcpy(data, pci->msix + offset, count);
}

/* The host uses its own table; this one is for reading back, and the PBA is read-only. */
void pci_msix_write(struct pci *pci, uint32_t offset, const uint8_t *data, uint32_t count)
{
	if (!touches(offset, count, MSIX_PBA, sizeof(uint64_t)))
		memcpy(pci->msix + offset, data, count);
}
