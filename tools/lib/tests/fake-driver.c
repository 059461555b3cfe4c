// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tests/fake-driver.h"
#include <rashpa-fpga.h>
#include <rashpa.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE		4096
#define WINDOW		0x10000
#define DEVICES		2

static char root[] = "/dev/shm/rashpa-fake-XXXXXX";
static struct {
	char name[32];
	void *base;
	uint64_t length;
	ino_t node;
	unsigned int mapped[2];		/* [1]: for writing */
} buffers[8];
static unsigned int n_buffers, sources;
bool fake_has_producer;

void *__real_mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *address, size_t length);
int __real_munmap(void *address, size_t length);
int __wrap_ioctl(int fd, unsigned long request, ...);

static size_t pages(size_t length)
{
	return (length + PAGE - 1) / PAGE * PAGE;
}

static void count_mapping(int fd, int prot)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return;
	for (unsigned int i = 0; i < n_buffers; i++) {
		if (buffers[i].node == st.st_ino)
			buffers[i].mapped[prot & PROT_WRITE ? 1 : 0]++;
	}
}

void *__wrap_mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset)
{
	char *base = __real_mmap(NULL, pages(length) + 2 * PAGE, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *at;

	if (base == MAP_FAILED)
		return base;
	at = __real_mmap(base + PAGE, length, prot, flags | MAP_FIXED, fd, offset);
	if (at == MAP_FAILED)
		__real_munmap(base, pages(length) + 2 * PAGE);
	else
		count_mapping(fd, prot);
	(void)address;
	return at;
}

int __wrap_munmap(void *address, size_t length)
{
	return __real_munmap((char *)address - PAGE, pages(length) + 2 * PAGE);
}

static int memory_file(size_t length)
{
	int fd = memfd_create("fake", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, length)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int make_channel(struct rashpa_channel_make *make)
{
	const struct rashpa_ring ring = {
		.record = sizeof(ring), .record_size = sizeof(struct rashpa_event),
		.slots = 1, .depth = 1,
	};

	make->out_ring_size = make->out_consumer = make->out_consumer_size = PAGE;
	make->out_fd = memory_file(2 * PAGE);
	return make->out_fd < 0 || pwrite(make->out_fd, &ring, sizeof(ring), 0) < 0 ? -1 : 0;
}

static int make_window(struct rashpa_window_make *window)
{
	/* registers of an idle board with two DTPs, a vector and 16 entries */
	const uint32_t words[] = {
		RFPGA_ID_VALUE, RFPGA_VERSION_VALUE, 16 << 16 | 1 << 8 | 2,
		RFPGA_FEATURE_MSIX | RFPGA_FEATURE_LOCK | RFPGA_FEATURE_FREERUN | RFPGA_FEATURE_DROP,
	};

	window->out_length = WINDOW;
	window->out_fd = memory_file(WINDOW);
	return window->out_fd < 0 || (!strcmp(window->name, "registers") &&
	       pwrite(window->out_fd, words, sizeof(words), RFPGA_ID) < 0) ? -1 : 0;
}

static int make_map(struct rashpa_map_make *map)
{
	map->out_segments = 1;
	map->out_fd = memory_file(PAGE);
	return map->out_fd < 0 ? -1 : 0;
}

static int info(int fd, struct rashpa_info *about)
{
	struct stat st;

	if (fstat(fd, &st))
		return -1;
	about->out_length = st.st_size;
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	switch (request) {
	case RASHPA_IOC_INFO:
		return info(fd, arg);
	case RASHPA_IOC_EXPORT:
		((struct rashpa_export *)arg)->out_fd = dup(fd);
		return 0;
	case RASHPA_IOC_ROLE:
		if (fake_has_producer)
			((struct rashpa_role *)arg)->out_held = RASHPA_ROLE_PRODUCER;
		return 0;
	case RASHPA_IOC_CHANNEL_MAKE:
		return make_channel(arg);
	case RASHPA_IOC_WINDOW_MAKE:
		return make_window(arg);
	case RASHPA_IOC_MAP_MAKE:
		return make_map(arg);
	case RASHPA_IOC_SOURCE_ADD:
		((struct rashpa_source_add *)arg)->out_id = ++sources;
		return 0;
	case RASHPA_IOC_GROUP_MAKE:
		((struct rashpa_group_make *)arg)->out_id = 1;
		return 0;
	case RASHPA_IOC_DEVICE_INFO:
	case RASHPA_IOC_LIST:
	case RASHPA_IOC_PROGRAM:
	case RASHPA_IOC_SOURCE_DEL:
	case RASHPA_IOC_GROUP_INFO:
	case RASHPA_IOC_LOOK:
	case RASHPA_IOC_SIGNAL:
		return 0;
	}
	errno = ENOTTY;
	return -1;
}

static int make_file(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		perror(path);
	return fd;
}

int fake_driver_load(void)
{
	char path[128], name[16];

	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/buffer", root);
	if (mkdir(path, 0700) || setenv("RASHPA_DEV", root, 1))
		return -1;
	close(make_file("memory"));
	for (int i = 0; i < DEVICES; i++) {
		snprintf(name, sizeof(name), "fpga%d", i);
		close(make_file(name));
	}
	return 0;
}

void fake_driver_unload(void)
{
	char command[128];

	while (n_buffers) {
		n_buffers--;
		__real_munmap(buffers[n_buffers].base, buffers[n_buffers].length);
	}
	snprintf(command, sizeof(command), "rm -rf %s", root);
	if (system(command))
		perror(root);
}

void *fake_buffer(const char *name, uint64_t length)
{
	void *base = MAP_FAILED;
	struct stat st = {};
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "buffer/%s", name);
	fd = make_file(path);
	if (fd >= 0 && n_buffers < sizeof(buffers) / sizeof(buffers[0]) && !ftruncate(fd, length))
		base = __real_mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		fstat(fd, &st);
	if (fd >= 0)
		close(fd);
	if (base == MAP_FAILED)
		return NULL;
	snprintf(buffers[n_buffers].name, sizeof(buffers[n_buffers].name), "%s", name);
	buffers[n_buffers].node = st.st_ino;
	buffers[n_buffers].mapped[0] = buffers[n_buffers].mapped[1] = 0;
	buffers[n_buffers].base = base;
	buffers[n_buffers++].length = length;
	return base;
}

int fake_permit(const char *name, unsigned int mode)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/buffer/%s", root, name);
	return chmod(path, mode);
}

unsigned int fake_mapped(const char *name, bool write)
{
	for (unsigned int i = 0; i < n_buffers; i++) {
		if (!strcmp(buffers[i].name, name))
			return buffers[i].mapped[write];
	}
	return 0;
}
