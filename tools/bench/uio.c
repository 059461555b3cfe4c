// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bench/uio.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/say.h"

#define DEVICES		"/sys/bus/pci/devices/"

/* A page's word in /proc/self/pagemap */
#define PAGE_THERE	(UINT64_C(1) << 63)
#define PAGE_NUMBER	((UINT64_C(1) << 55) - 1)

static int find(struct uio *u, const char *bdf, char *why)
{
	const struct dirent *entry;
	bool found = false;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), DEVICES "%s/uio", bdf);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir)))
		found = sscanf(entry->d_name, "uio%u", &u->number) == 1;
	if (dir)
		closedir(dir);
	return found ? 0 : because(why, -1, "%s is not bound to uio_pci_generic", bdf);
}

static int change_command(const struct uio *u, uint16_t set, uint16_t clear, char *why)
{
	uint16_t command;

	if (pread(u->config, &command, 2, PCI_COMMAND) == 2) {
		command = (command & ~clear) | set;
		if (pwrite(u->config, &command, 2, PCI_COMMAND) == 2)
			return 0;
	}
	return because(why, -1, "configuration space: %s", strerror(errno));
}

static int open_files(struct uio *u, const char *bdf, char *why)
{
	char path[64];

	if (find(u, bdf, why))
		return -1;
	snprintf(path, sizeof(path), "/dev/uio%u", u->number);
	u->device = open(path, O_RDWR | O_CLOEXEC);
	if (u->device < 0)
		return because(why, -1, "%s: %s", path, strerror(errno));
	snprintf(path, sizeof(path), DEVICES "%s/config", bdf);
	u->config = open(path, O_RDWR | O_CLOEXEC);
	if (u->config < 0)
		return because(why, -1, "%s: %s", path, strerror(errno));
	return change_command(u, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
			      PCI_COMMAND_INTX_DISABLE, 0, why);
}

int uio_open(struct uio *u, const char *bdf, char *why)
{
	*u = (struct uio)UIO_NONE;
	if (!open_files(u, bdf, why))
		return 0;
	uio_close(u);
	return -1;
}

void uio_close(struct uio *u)
{
	if (u->config >= 0)
		close(u->config);
	if (u->device >= 0)
		close(u->device);
	*u = (struct uio)UIO_NONE;
}

void *uio_map_bar(const char *bdf, unsigned int bar, size_t size, char *why)
{
	void *base = MAP_FAILED;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), DEVICES "%s/resource%u", bdf, bar);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		because(why, -1, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return base;
}

int uio_count(const struct uio *u, uint64_t *count, char *why)
{
	char path[64];
	bool good;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/uio/uio%u/event", u->number);
	file = fopen(path, "re");
	good = file && fscanf(file, "%" SCNu64, count) == 1;
	if (file)
		fclose(file);
	return good ? 0 : because(why, -1, "%s cannot be read", path);
}

int uio_enable(const struct uio *u, bool on, char *why)
{
	return change_command(u, on ? 0 : PCI_COMMAND_INTX_DISABLE,
			      on ? PCI_COMMAND_INTX_DISABLE : 0, why);
}

int uio_physical(const void *page, uint64_t *addr, char *why)
{
	const uint64_t size = sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	if (fd >= 0 && pread(fd, &entry, sizeof(entry),
			     (uintptr_t)page / size * sizeof(entry)) != sizeof(entry))
		entry = 0;
	if (fd >= 0)
		close(fd);
	if (!(entry & PAGE_THERE) || !(entry & PAGE_NUMBER))
		return because(why, -1, "/proc/self/pagemap does not show physical addresses: run this as root");
	*addr = (entry & PAGE_NUMBER) * size;
	return 0;
}
