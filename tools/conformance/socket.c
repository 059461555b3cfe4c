// SPDX-License-Identifier: LGPL-2.1-or-later
/* A board at a vfio-user socket. */
#include "conformance/socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct client client;

struct client *c = &client;

static volatile void *bar(unsigned int region)
{
	return region == RFPGA_BAR_DOORBELL ? (volatile void *)c->doorbell :
	       region == RFPGA_BAR_MEMORY ? c->memory : NULL;
}

static uint64_t bar_size(unsigned int region)
{
	return region == RFPGA_BAR_MEMORY ? c->memory_size : client_region_size(c, region);
}

static uint64_t read_region(unsigned int region, uint64_t offset, unsigned int size)
{
	return client_read(c, region, (uint32_t)offset, size);
}

static void write_region(unsigned int region, uint64_t offset, uint64_t value, unsigned int size)
{
	client_write(c, region, (uint32_t)offset, value, size);
}

/* Mapped memory, for a board that accesses it by messages. */
static struct { uint64_t addr, size, offset; uint32_t flags; } maps[64];

#define MAPS	(sizeof(maps) / sizeof(maps[0]))

static uint8_t *reach(uint64_t addr, uint64_t size, bool write)
{
	size_t i;

	for (i = 0; i < MAPS; i++)
		if (addr >= maps[i].addr && addr - maps[i].addr < maps[i].size &&
		    size <= maps[i].size - (addr - maps[i].addr) &&
		    (maps[i].flags & (write ? 2 : 1)))
			return host + maps[i].offset + (addr - maps[i].addr);
	return NULL;
}

static void remember(uint64_t addr, uint64_t size, uint64_t offset, uint32_t flags)
{
	size_t i;

	for (i = 0; i < MAPS; i++)
		if (!maps[i].size) {
			maps[i].addr = addr;
			maps[i].size = size;
			maps[i].offset = offset;
			maps[i].flags = flags;
			return;
		}
}

static void forget(uint64_t addr, uint64_t size)
{
	size_t i;

	for (i = 0; i < MAPS; i++)
		if (maps[i].addr - addr < size)
			maps[i].size = 0;
}

static uint32_t map(uint64_t addr, uint64_t size, uint64_t offset, uint32_t flags)
{
	uint32_t err = client_map(c, addr, size, offset, flags, host_fd);

	if (!err)
		remember(addr, size, offset, flags);
	return err;
}

static void unmap(uint64_t addr, uint64_t size)
{
	client_unmap(c, addr, size);
	forget(addr, size);
}

static int event(uint32_t vector)
{
	return c->event[vector] > 0 ? c->event[vector] : -1;
}

static void msix(bool on)
{
	config_write(config_capability(0x11) + 2, on ? 0x8000 : 0, 2);
}

static void reset(void)
{
	client_reset(c);
}

static void serve(void)
{
	if (c->fd >= 0)
		client_serve(c, 0);
}

const struct target_ops socket_ops = {
	.bar = bar, .bar_size = bar_size, .read = read_region, .write = write_region,
	.map = map, .unmap = unmap, .event = event, .msix = msix, .reset = reset,
	.serve = serve, .reset_is_bare = true, .refuses_reads = true,
};

/* Remedy for an error of connect(). */
static const char *remedy(int err)
{
	switch (err) {
	case ENOENT:
		return "start the simulation first, e.g. rashpa-fpga --socket PATH";
	case ECONNREFUSED:
		return "the simulation has ended: start it again";
	case EACCES:
		return "run as the user that started the simulation, or make the socket writable";
	case EPROTOTYPE:
		return "the socket has another type: use the socket for QEMU";
	default:
		return "use the socket at which a simulation listens";
	}
}

const char *socket_open(const char *path)
{
	static char why[384];
	struct stat file;

	if (!*path)
		return "--socket: the path is empty: use the socket at which a simulation listens";
	if (strlen(path) >= sizeof(c->path)) {
		snprintf(why, sizeof(why),
			 "%s: longer than the %zu bytes that a socket's path can have: use another folder",
			 path, sizeof(c->path) - 1);
		return why;
	}
	if (!stat(path, &file) && !S_ISSOCK(file.st_mode)) {
		snprintf(why, sizeof(why),
			 "%s: no socket: use the one at which a simulation listens", path);
		return why;
	}
	strcpy(c->path, path);
	c->patience_ms = 60000;		/* a simulation */
	c->reach = reach;
	c->fd = client_try(path);
	if (c->fd < 0) {
		snprintf(why, sizeof(why), "%s: %s: %s", path, strerror(errno), remedy(errno));
		return why;
	}
	target = &socket_ops;
	client_setup_on(c);
	return NULL;
}
