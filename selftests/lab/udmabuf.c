// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Loaded into virgl_render_server where the host has no /dev/udmabuf: Mesa's lavapipe asks that for
 * the dma-buf of a memfd, to share memory with QEMU. QEMU only maps the file, so a memfd suffices.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

static int device = -1;		/* descriptor that stands for /dev/udmabuf */

static int open_as(const char *name, const char *path, int flags, mode_t mode)
{
	__typeof__(open) *of_libc = dlsym(RTLD_NEXT, name);

	if (strcmp(path, "/dev/udmabuf"))
		return of_libc(path, flags, mode);
	device = memfd_create("udmabuf", MFD_CLOEXEC);
	return device;
}

int open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list more;

	va_start(more, flags);
	mode = va_arg(more, mode_t);
	va_end(more);
	return open_as("open", path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	mode_t mode;
	va_list more;

	va_start(more, flags);
	mode = va_arg(more, mode_t);
	va_end(more);
	return open_as("open64", path, flags, mode);
}

int ioctl(int fd, unsigned long request, ...)
{
	__typeof__(ioctl) *of_libc = dlsym(RTLD_NEXT, "ioctl");
	const struct udmabuf_create *create;
	va_list more;
	void *arg;

	va_start(more, request);
	arg = va_arg(more, void *);
	va_end(more);
	if (fd < 0 || fd != device || (unsigned int)request != (unsigned int)UDMABUF_CREATE)
		return of_libc(fd, request, arg);
	create = arg;
	if (!create->offset)
		return fcntl(create->memfd, F_DUPFD_CLOEXEC, 0);
	errno = EINVAL;		/* a part of the memfd has no separate descriptor */
	return -1;
}
