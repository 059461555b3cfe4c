// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory BARs. */
#include "fpga/device.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Sealed, so that a client cannot shorten it. */
int bar_create(struct device_bar *bar, const char *name, uint64_t size, uint32_t flags)
{
	void *map = MAP_FAILED;
	int err, fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)size) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		err = -errno;
		close(fd);
		return err;
	}
	*bar = (struct device_bar){ .size = size, .flags = flags, .memory = map, .fd = fd };
	return 0;
}

void bar_destroy(struct device_bar *bar)
{
	if (!bar->memory)
		return;
	munmap(bar->memory, bar->size);
	close(bar->fd);
	bar->memory = NULL;
}
