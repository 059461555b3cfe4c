// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A stand-in for libze_loader.so.1, for memory: it writes down what is called (STAND_IN_LOG). Two
 * drivers: one has an accelerator that is no GPU, the other one a GPU. STAND_IN: full, none,
 * no-dmabuf.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "note.h"

#define CALL(name)	__attribute__((visibility("default"))) unsigned int ze##name

static char memory[1 << 20] __attribute__((aligned(4096)));
static size_t used;
static int fd = -1;

/* Offsets of ze_api.h. */
static void put(void *to, size_t at, uint64_t value, size_t bytes)
{
	memcpy((char *)to + at, &value, bytes);
}

static uint32_t type_of(const void *what)
{
	uint32_t type;

	memcpy(&type, what, sizeof(type));
	return type;
}

static void *next_of(const void *what)
{
	void *next;

	memcpy(&next, (const char *)what + 8, sizeof(next));
	return next;
}

CALL(Init)(uint32_t flags)
{
	note("Init %u", flags);
	return told("none") ? 0x78000001 : 0;
}

CALL(DriverGet)(uint32_t *count, void **drivers)
{
	*count = 2;
	drivers[0] = (void *)1;
	drivers[1] = (void *)2;
	return 0;
}

CALL(DeviceGet)(void *driver, uint32_t *count, void **devices)
{
	*count = 1;
	devices[0] = (char *)driver + 10;
	return 0;
}

CALL(DeviceGetProperties)(void *device, void *properties)
{
	if (type_of(properties) != 3)
		note("WRONG: DeviceGetProperties");
	put(properties, 16, device == (void *)12 ? 1 : 4, 4);
	put(properties, 40, sizeof(memory), 8);
	strcpy((char *)properties + 112, "stand-in for a GPU of Level Zero");
	return 0;
}

CALL(DeviceGetMemoryProperties)(void *device, uint32_t *count, void *properties)
{
	if (type_of(properties) != 7 || *count != 1 || device != (void *)12)
		note("WRONG: DeviceGetMemoryProperties");
	put(properties, 32, UINT64_C(16) << 30, 8);
	return 0;
}

CALL(DevicePciGetPropertiesExt)(void *device, void *properties)
{
	if (type_of(properties) != 0x10008 || device != (void *)12)
		note("WRONG: DevicePciGetPropertiesExt");
	put(properties, 16, 0, 4);
	put(properties, 20, 0x3a, 4);
	return 0;
}

CALL(ContextCreate)(void *driver, const void *wanted, void **context)
{
	note(type_of(wanted) == 13 && driver == (void *)2 ? "ContextCreate" :
	     "WRONG: ContextCreate");
	*context = (void *)7;
	return 0;
}

CALL(ContextDestroy)(void *context)
{
	note(context == (void *)7 && !used ? "ContextDestroy" : "WRONG: ContextDestroy");
	return 0;
}

CALL(MemAllocDevice)(void *context, const void *wanted, size_t bytes, size_t alignment,
		     void *device, void **address)
{
	const void *next = next_of(wanted);

	if (told("full"))
		return 0x70000003;
	if (context != (void *)7 || type_of(wanted) != 21 || device != (void *)12 || !next ||
	    type_of(next) != 24 || ((const uint32_t *)next)[4] != 2)
		note("WRONG: MemAllocDevice");
	note("MemAllocDevice %zu %zu for a dma-buf", bytes, alignment);
	*address = memory;
	used = bytes;
	return 0;
}

CALL(MemFree)(void *context, void *address)
{
	note(context == (void *)7 && address == memory ? "MemFree" : "WRONG: MemFree");
	used = 0;
	close(fd);
	return 0;
}

CALL(MemGetAllocProperties)(void *context, const void *address, void *properties, void **device)
{
	void *next = next_of(properties);

	if (context != (void *)7 || address != memory || device || type_of(properties) != 23 ||
	    !next || type_of(next) != 26 || ((const uint32_t *)next)[4] != 2)
		note("WRONG: MemGetAllocProperties");
	note("MemGetAllocProperties dma-buf");
	fd = told("no-dmabuf") ? -1 : memfd_create("stand-in GPU memory", MFD_CLOEXEC);
	put(next, 20, (unsigned int)fd, 4);
	return fd >= 0 && ftruncate(fd, used) ? 1 : 0;
}
