// SPDX-License-Identifier: GPL-2.0-only
#include "buffer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rashpa.h"
#include "say.h"

int buffer_open(const char *name, struct rashpa_info *info, void **base, char *why)
{
	int fd = rashpa_buffer_open(name, O_RDWR);

	*base = NULL;
	if (fd < 0)
		return because(why, -1, "%s", rashpa_reason());
	*info = (struct rashpa_info) { .fd = -1 };
	if (!rashpa_info(fd, info) &&
	    !rashpa_mmap(fd, 0, info->out_length, PROT_READ | PROT_WRITE, base))
		return fd;
	because(why, -1, "buffer %s: %s", name, rashpa_reason());
	close(fd);
	return -1;
}

bool buffer_claim(int fd)
{
	return !flock(fd, LOCK_EX | LOCK_NB) && !buffer_mapped(fd);
}

bool buffer_mapped(int fd)
{
	struct rashpa_info info = { .fd = -1 };

	return !rashpa_info(fd, &info) && info.out_importers;
}
