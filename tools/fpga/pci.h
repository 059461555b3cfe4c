/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* PCI configuration space, and the MSI-X table. The protocol thread only. */
#ifndef PCI_H
#define PCI_H

#include "fpga/host.h"

#define PCI_CONFIG_SIZE	4096

struct pci {
	const struct device *device;
	struct host *host;
	uint8_t config[PCI_CONFIG_SIZE];
	uint8_t mask[PCI_CONFIG_SIZE];	/* bits that can be written */
	uint8_t msix[DEVICE_MSIX_SIZE];
};

void pci_init(struct pci *pci, const struct device *device, struct host *host);
void pci_reset(struct pci *pci);
bool pci_asleep(const struct pci *pci);	/* in D3hot */
void pci_read(const struct pci *pci, uint32_t offset, uint8_t *data, uint32_t count);
/* True: a function-level reset was asked for. */
bool pci_write(struct pci *pci, uint32_t offset, const uint8_t *data, uint32_t count);
void pci_msix_read(const struct pci *pci, uint32_t offset, uint8_t *data, uint32_t count);
void pci_msix_write(struct pci *pci, uint32_t offset, const uint8_t *data, uint32_t count);

#endif /* PCI_H */
