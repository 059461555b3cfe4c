// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/nics.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text-file.h"

#define CARDS	"/sys/class/infiniband"

/* The last part of a link's target; false: there is no link. */
static bool target_of(char *name, size_t size, const char *root, const char *card, const char *link)
{
	char path[512], target[512];
	ssize_t n;

	snprintf(path, sizeof(path), "%s" CARDS "/%s/%s", root, card, link);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	snprintf(name, size, "%s", basename(target));
	return true;
}

/* In Device Control of the PCIe capability, of which the kernel shows nothing to other users. */
static void read_order(struct nic *nic, const char *root)
{
	uint8_t config[256];
	char path[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s" CARDS "/%s/device/config", root, nic->name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, config, sizeof(config));
	if (fd >= 0)
		close(fd);
	if (n < (ssize_t)sizeof(config))
		return;
	/* not more than there is room for, if the list is a circle */
	for (unsigned int at = config[PCI_CAPABILITY_LIST] & 0xfc, left = 48; at >= 0x40 && left; left--) {
		if (config[at] == PCI_CAP_ID_EXP && at + PCI_EXP_DEVCTL < sizeof(config)) {
			nic->order = config[at + PCI_EXP_DEVCTL] & PCI_EXP_DEVCTL_RELAX_EN ?
				     ORDER_RELAXED : ORDER_STRICT;
			return;
		}
		at = config[at + PCI_CAP_LIST_NEXT] & 0xfc;
	}
}

static void read_nic(struct nic *nic, const char *root, const char *name)
{
	unsigned int domain, bus, device, function;
	char text[64];

	*nic = (struct nic) { .node = -1 };
	snprintf(nic->name, sizeof(nic->name), "%.63s", name);
	if (!target_of(text, sizeof(text), root, name, "device") || !parse_bdf(text, nic->bdf))
		return;
	if (sscanf(nic->bdf, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4)
		nic->function = PCI_BDF(domain, bus, device << 3 | function);
	target_of(nic->driver, sizeof(nic->driver), root, name, "device/driver");
	if (read_line(text, sizeof(text), "%s" CARDS "/%s/device/numa_node", root, name))
		nic->node = atoi(text);
	read_order(nic, root);
}

unsigned int nics_look(struct nic *nic, unsigned int most, const char *root)
{
	struct dirent **entry;
	unsigned int found = 0;
	char path[512];
	int n;

	snprintf(path, sizeof(path), "%s" CARDS, root);
	n = scandir(path, &entry, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (*entry[i]->d_name != '.') {
			if (found < most)
				read_nic(&nic[found], root, entry[i]->d_name);
			found++;
		}
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	return found;
}

enum nic_verdict nic_judge(const struct nic *nic, bool peermem, char *text, size_t size,
			   const char **remedy)
{
	static const char *const orders[] = {
		[ORDER_UNKNOWN] = "not known (only root can read it)", [ORDER_STRICT] = "off",
		[ORDER_RELAXED] = "on",
	};
	const bool dmabuf = !strcmp(nic->driver, "mlx5_core");

	*remedy = NULL;
	if (!*nic->bdf) {
		snprintf(text, size, "%s: a soft card: it writes into contig buffers, but not into memory of GPUs and boards",
			 nic->name);
		return NIC_OK;
	}
	snprintf(text, size, "%s: %s at %s, memory of GPUs and boards by dma-buf: %s, nvidia-peermem %sloaded, relaxed ordering %s",
		 nic->name, *nic->driver ? nic->driver : "no driver", nic->bdf,
		 dmabuf ? "yes (Linux 5.12)" : "not known of this driver", peermem ? "" : "not ",
		 orders[nic->order]);
	if (!dmabuf && !peermem)
		*remedy = "if registration is refused: modprobe nvidia-peermem (NVIDIA's GPUs)";
	else if (nic->order == ORDER_STRICT)
		*remedy = "switch on relaxed ordering in the firmware, if writes into a GPU are slow";
	return *remedy ? NIC_NOTE : NIC_OK;
}
