// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/vfio.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/say.h"

#define VECTORS_MAX	32

static int group_path(const char *bdf, char *path, size_t size, char *why)
{
	char link[256];
	const char *number;
	ssize_t n;

	snprintf(path, size, "/sys/bus/pci/devices/%s/iommu_group", bdf);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return because(why, -1, "%s has no IOMMU group: boot with the IOMMU on", bdf);
	link[n] = '\0';
	number = strrchr(link, '/');
	snprintf(path, size, "/dev/vfio%s", number ? number : "/");
	return 0;
}

static int open_group(struct vfio *v, const char *bdf, char *why)
{
	struct vfio_group_status status = { .argsz = sizeof(status) };
	char path[128];

	if (group_path(bdf, path, sizeof(path), why))
		return -1;
	v->group = open(path, O_RDWR | O_CLOEXEC);
	if (v->group < 0)
		return because(why, -1, "%s: %s: bind %s to vfio-pci", path, strerror(errno), bdf);
	v->container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	if (v->container < 0)
		return because(why, -1, "/dev/vfio/vfio: %s: modprobe vfio-pci, and be allowed to open it",
			       strerror(errno));
	if (ioctl(v->group, VFIO_GROUP_GET_STATUS, &status) ||
	    !(status.flags & VFIO_GROUP_FLAGS_VIABLE))
		return because(why, -1, "%s is not viable: bind all functions of the group to vfio-pci",
			       path);
	if (ioctl(v->group, VFIO_GROUP_SET_CONTAINER, &v->container) ||
	    ioctl(v->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU))
		return because(why, -1, "%s: %s", path, strerror(errno));
	return 0;
}

int vfio_open(struct vfio *v, const char *bdf, char *why)
{
	*v = (struct vfio)VFIO_NONE;
	if (!open_group(v, bdf, why))
		return 0;
	vfio_close(v);
	return -1;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void vfio_close(struct vfio *v)
{
	close_one(&v->device);
	close_one(&v->container);
	close_one(&v->group);
}

static int region(const struct vfio *v, unsigned int index, struct vfio_region_info *info,
		  char *why)
{
	*info = (struct vfio_region_info) { .argsz = sizeof(*info), .index = index };
	if (ioctl(v->device, VFIO_DEVICE_GET_REGION_INFO, info))
		return because(why, -1, "VFIO_DEVICE_GET_REGION_INFO %u: %s", index,
			       strerror(errno));
	return 0;
}

static int set_master(const struct vfio *v, char *why)
{
	struct vfio_region_info config;
	uint16_t command;

	if (region(v, VFIO_PCI_CONFIG_REGION_INDEX, &config, why))
		return -1;
	if (pread(v->device, &command, 2, config.offset + PCI_COMMAND) != 2)
		return because(why, -1, "the command register cannot be read: %s (see the kernel log)",
			       strerror(errno));
	command |= PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	if (pwrite(v->device, &command, 2, config.offset + PCI_COMMAND) != 2)
		return because(why, -1, "bus mastering cannot be switched on: %s (see the kernel log)",
			       strerror(errno));
	return 0;
}

int vfio_open_device(struct vfio *v, const char *bdf, char *why)
{
	if (vfio_open(v, bdf, why))
		return -1;
	v->device = ioctl(v->group, VFIO_GROUP_GET_DEVICE_FD, bdf);
	if (v->device < 0)
		because(why, -1, "VFIO_GROUP_GET_DEVICE_FD %s: %s", bdf, strerror(errno));
	else if (!set_master(v, why))
		return 0;
	vfio_close(v);
	return -1;
}

void *vfio_map_bar(const struct vfio *v, unsigned int bar, size_t size, char *why)
{
	struct vfio_region_info info;
	void *base;

	if (region(v, bar, &info, why))
		return MAP_FAILED;
	if (info.size < size || !(info.flags & VFIO_REGION_INFO_FLAG_MMAP)) {
		because(why, -1, "BAR %u has %llu bytes%s, and %zu are to be mapped: does the card run the reference interface?",
			bar, (unsigned long long)info.size,
			info.flags & VFIO_REGION_INFO_FLAG_MMAP ? "" : " that cannot be mapped", size);
		return MAP_FAILED;
	}
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, v->device, info.offset);
	if (base == MAP_FAILED)
		because(why, -1, "BAR %u: mmap: %s", bar, strerror(errno));
	return base;
}

int vfio_map_dma(const struct vfio *v, void *base, size_t size, char *why)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map), .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)base, .iova = VFIO_IOVA, .size = size,
	};

	if (ioctl(v->container, VFIO_IOMMU_MAP_DMA, &map))
		return because(why, -1, "VFIO_IOMMU_MAP_DMA: %s", strerror(errno));
	return 0;
}

static int set_irqs(const struct vfio *v, struct vfio_irq_set *set, char *why)
{
	if (ioctl(v->device, VFIO_DEVICE_SET_IRQS, set))
		return because(why, -1, "VFIO_DEVICE_SET_IRQS: %s", strerror(errno));
	return 0;
}

int vfio_set_eventfd(const struct vfio *v, int fd, char *why)
{
	struct vfio_irq_info info = { .argsz = sizeof(info), .index = VFIO_PCI_MSIX_IRQ_INDEX };
	/* the fds follow the structure */
	union {
		struct vfio_irq_set set;
		uint8_t bytes[sizeof(struct vfio_irq_set) + VECTORS_MAX * sizeof(int32_t)];
	} arg = {
		.set = {
			.index = VFIO_PCI_MSIX_IRQ_INDEX,
			.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
		},
	};
	int32_t fds[VECTORS_MAX];
	uint32_t i;
	int error;

	if (ioctl(v->device, VFIO_DEVICE_GET_IRQ_INFO, &info))
		return because(why, -1, "VFIO_DEVICE_GET_IRQ_INFO: %s", strerror(errno));
	arg.set.count = info.count < VECTORS_MAX ? info.count : VECTORS_MAX;
	arg.set.argsz = sizeof(arg.set) + arg.set.count * sizeof(fds[0]);
	fds[0] = fd;
	/* if eventfd() fails, -1 leaves the vector disabled */
	for (i = 1; i < arg.set.count; i++)
		fds[i] = eventfd(0, EFD_CLOEXEC);
	memcpy(arg.bytes + sizeof(arg.set), fds, arg.set.count * sizeof(fds[0]));
	error = set_irqs(v, &arg.set, why);
	for (i = 1; i < arg.set.count; i++)
		close_one(&fds[i]);
	return error;
}

int vfio_no_eventfd(const struct vfio *v, char *why)
{
	struct vfio_irq_set set = {
		.argsz = sizeof(set), .index = VFIO_PCI_MSIX_IRQ_INDEX,
		.flags = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER,
	};

	return set_irqs(v, &set, why);
}
