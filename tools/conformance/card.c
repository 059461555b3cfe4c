// SPDX-License-Identifier: LGPL-2.1-or-later
/* A card bound to vfio-pci. */
#include "conformance/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/vfio.h"
#include "common/say.h"
#include "conformance/test.h"

#define BARS	6

static struct vfio vfio = VFIO_NONE;
static struct vfio_region_info regions[REGION_CONFIG + 1];
static volatile void *bars[BARS];
static int events[VECTORS_MAX];
static unsigned int n_events;

/* maps, so that each can be taken away as a whole */
static struct { uint64_t addr, size; } maps[64];

#define MAPS	(sizeof(maps) / sizeof(maps[0]))

static volatile void *bar(unsigned int region)
{
	return region < BARS ? bars[region] : NULL;
}

static uint64_t bar_size(unsigned int region)
{
	return regions[region].size;
}

static uint64_t read_region(unsigned int region, uint64_t offset, unsigned int size)
{
	uint64_t value = 0;

	if (pread(vfio.device, &value, size, (off_t)(regions[region].offset + offset)) != size)
		die("read of region %u at %#llx: %s", region, (unsigned long long)offset,
		    strerror(errno));
	return value;
}

static void write_region(unsigned int region, uint64_t offset, uint64_t value, unsigned int size)
{
	if (pwrite(vfio.device, &value, size, (off_t)(regions[region].offset + offset)) != size)
		die("write of region %u at %#llx: %s", region, (unsigned long long)offset,
		    strerror(errno));
}

static uint32_t map(uint64_t addr, uint64_t size, uint64_t offset, uint32_t flags)
{
	struct vfio_iommu_type1_dma_map arg = {
		.argsz = sizeof(arg), .vaddr = (uintptr_t)host + offset, .iova = addr,
		.size = size,
		.flags = (flags & 1 ? VFIO_DMA_MAP_FLAG_READ : 0) |
			 (flags & 2 ? VFIO_DMA_MAP_FLAG_WRITE : 0),
	};
	size_t i;

	for (i = 0; i < MAPS && maps[i].size; i++)
		;
	if (i == MAPS)
		die("more than %zu maps", MAPS);
	if (ioctl(vfio.container, VFIO_IOMMU_MAP_DMA, &arg)) {
		if (errno == ENOMEM)
			die("%llu bytes of memory cannot be pinned: raise the limit of locked memory (ulimit -l), or run as root",
			    (unsigned long long)size);
		return (uint32_t)errno;
	}
	maps[i].addr = addr;
	maps[i].size = size;
	return 0;
}

static void unmap(uint64_t addr, uint64_t size)
{
	size_t i;

	for (i = 0; i < MAPS; i++) {
		struct vfio_iommu_type1_dma_unmap arg = {
			.argsz = sizeof(arg), .iova = maps[i].addr, .size = maps[i].size,
		};

		if (!maps[i].size || maps[i].addr - addr >= size)
			continue;
		if (ioctl(vfio.container, VFIO_IOMMU_UNMAP_DMA, &arg))
			die("VFIO_IOMMU_UNMAP_DMA: %s", strerror(errno));
		maps[i].size = 0;
	}
}

static int event(uint32_t vector)
{
	return vector < n_events ? events[vector] : -1;
}

static void msix(bool on)
{
	/* the descriptors follow the structure */
	union {
		struct vfio_irq_set set;
		uint8_t bytes[sizeof(struct vfio_irq_set) + sizeof(events)];
	} arg = {
		.set = {
			.argsz = sizeof(arg.set), .index = VFIO_PCI_MSIX_IRQ_INDEX,
			.flags = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER,
		},
	};
	static bool is_on;

	if (on == is_on)
		return;
	is_on = on;
	if (on) {
		arg.set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
		arg.set.count = n_events;
		arg.set.argsz += (uint32_t)(n_events * sizeof(events[0]));
		memcpy(arg.bytes + sizeof(arg.set), events, n_events * sizeof(events[0]));
	}
	if (ioctl(vfio.device, VFIO_DEVICE_SET_IRQS, &arg))
		die("VFIO_DEVICE_SET_IRQS: %s", strerror(errno));
}

/* Reset the function. The kernel restores its configuration space, MSI-X included. */
static void reset(void)
{
	if (ioctl(vfio.device, VFIO_DEVICE_RESET))
		die("function level reset: %s: each test begins with one",
		    strerror(errno));
}

static const struct target_ops card_ops = {
	.bar = bar, .bar_size = bar_size, .read = read_region, .write = write_region,
	.map = map, .unmap = unmap, .event = event, .msix = msix, .reset = reset,
	.merges = true,
};

/* Which driver holds the function, if not vfio-pci? */
static int check_driver(const char *name, char *why)
{
	char path[128], link[PATH_MAX];
	const char *driver;
	ssize_t n;

	if (!*name)
		return because(why, -1, "--vfio: the name is empty: use a PCI function, as lspci -D lists them");
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", name);
	if (strchr(name, '/') || *name == '.' || access(path, F_OK))
		return because(why, -1, "%s: there is no such PCI function: lspci -D lists them",
			       name);
	strcat(path, "/driver");
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return because(why, -1, "%s: no driver has it: bind it to vfio-pci (echo vfio-pci "
			       ">/sys/bus/pci/devices/%s/driver_override; echo %s "
			       ">/sys/bus/pci/drivers_probe)", name, name, name);
	link[n] = '\0';
	driver = strrchr(link, '/') + 1;
	if (!strcmp(driver, "vfio-pci"))
		return 0;
	return because(why, -1, "%s: the driver %s holds it: end what uses it, take it away "
		       "(echo %s >/sys/bus/pci/drivers/%s/unbind) and bind it to vfio-pci",
		       name, driver, name, driver);
}

static int map_bars(const char *name, char *why)
{
	const struct { unsigned int bar; uint64_t size; } needed[] = {
		{ RFPGA_BAR_REGS, RFPGA_BAR_REGS_SIZE },
		{ RFPGA_BAR_DOORBELL, RFPGA_BAR_DOORBELL_SIZE }, { RFPGA_BAR_MEMORY, 4096 },
	};
	struct vfio_region_info *info;
	unsigned int i;

	for (i = 0; i <= REGION_CONFIG; i++) {
		regions[i] = (struct vfio_region_info){ .argsz = sizeof(*info), .index = i };
		if (ioctl(vfio.device, VFIO_DEVICE_GET_REGION_INFO, regions + i))
			return because(why, -1, "%s: region %u: %s", name, i, strerror(errno));
	}
	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		info = regions + needed[i].bar;
		if (info->size < needed[i].size)
			return because(why, -1, "%s: BAR %u is %llu bytes, and not at least %llu",
				       name, needed[i].bar, (unsigned long long)info->size,
				       (unsigned long long)needed[i].size);
		if (!(info->flags & VFIO_REGION_INFO_FLAG_MMAP))
			continue;	/* by access then */
		bars[needed[i].bar] = mmap(NULL, info->size, PROT_READ | PROT_WRITE, MAP_SHARED,
					   vfio.device, (off_t)info->offset);
		if (bars[needed[i].bar] == MAP_FAILED)
			return because(why, -1, "%s: BAR %u: mmap: %s", name, needed[i].bar,
				       strerror(errno));
	}
	return 0;
}

static int make_events(const char *name, char *why)
{
	struct vfio_irq_info info = { .argsz = sizeof(info), .index = VFIO_PCI_MSIX_IRQ_INDEX };
	struct vfio_device_info device = { .argsz = sizeof(device) };
	unsigned int i;

	if (ioctl(vfio.device, VFIO_DEVICE_GET_INFO, &device) ||
	    !(device.flags & VFIO_DEVICE_FLAGS_RESET))
		return because(why, -1, "%s: the kernel cannot reset it: a function "
			       "level reset is required", name);
	if (ioctl(vfio.device, VFIO_DEVICE_GET_IRQ_INFO, &info) || !info.count)
		return because(why, -1, "%s: it has no MSI-X", name);
	n_events = info.count < VECTORS_MAX ? info.count : VECTORS_MAX;
	for (i = 0; i < n_events; i++) {
		events[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (events[i] < 0)
			return because(why, -1, "eventfd: %s", strerror(errno));
	}
	return 0;
}

const char *card_open(const char *name)
{
	static char why[WHY_SIZE];

	if (check_driver(name, why) || vfio_open_device(&vfio, name, why) ||
	    map_bars(name, why) || make_events(name, why))
		return why;
	target = &card_ops;
	return NULL;
}
