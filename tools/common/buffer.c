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

int buffer_claim(int fd, char *why)
{
	int mapped;

	if (flock(fd, LOCK_EX | LOCK_NB))
		return because(why, -1, "another producer has it: stop the other producer first");
	mapped = buffer_mapped(fd, why);
	if (mapped > 0)
		because(why, -1, "a device maps it: stop the other producer first");
	if (mapped)
		flock(fd, LOCK_UN);
	return mapped ? -1 : 0;
}

int buffer_mapped(int fd, char *why)
{
	struct rashpa_info info = { .fd = -1 };

	if (rashpa_info(fd, &info))
		return because(why, -1, "whether a device maps it is not known: %s",
			       rashpa_reason());
	return info.out_importers > 0;
}
