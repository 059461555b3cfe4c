// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/path.h"
#include "common/say.h"

static int open_buffer(struct memory *m, int flags, char *why)
{
	m->node = rashpa_buffer_open(m->name, flags);
	if (m->node < 0)
		return because(why, -1, "%s", rashpa_reason());
	m->info = (struct rashpa_info) { .fd = -1 };
	m->fd = rashpa_buffer_dmabuf(m->node);
	if (m->fd < 0 || rashpa_memory_get_info(m->node, &m->info))
		return because(why, -1, "buffer %s: %s", m->name, rashpa_reason());
	return 0;
}

/* Only the memory node describes foreign dma-bufs. */
static int ask(struct memory *m, char *why)
{
	int node = rashpa_memory_open(), error;

	if (node < 0)
		return because(why, -1, "%s", rashpa_reason());
	m->info = (struct rashpa_info) { .fd = m->fd };
	error = rashpa_memory_get_info(node, &m->info);
	close(node);
	return error ? because(why, -1, "%s: %s", m->name, rashpa_reason()) : 0;
}

static int open_window(struct memory *m, size_t length, const char *window, char *why)
{
	struct rashpa_window_make arg = {};
	unsigned int number;
	char fpga[32];

	snprintf(fpga, sizeof(fpga), "%.*s", (int)length, m->name);
	if (length >= sizeof(fpga) || !parse_fpga(fpga, &number))
		return because(why, -1, "\"%s\" is not fpgaN:WINDOW: see rashpactl list", m->name);
	if (!*window || strlen(window) >= sizeof(arg.name))
		return because(why, -1, "\"%s\" is not the name of a window", window);
	if (fpga_open(&m->fpga, number, why))
		return -1;
	strcpy(arg.name, window);
	m->fd = rashpa_device_window(m->fpga.device, &arg);
	if (m->fd < 0)
		return because(why, -1, "fpga%u: window \"%s\": %s", number, window,
			       rashpa_reason());
	if (ask(m, why))
		return -1;
	/* known, because we opened the window */
	m->info.out_bdf = PCI_BDF(m->fpga.info.out_domain, m->fpga.info.out_bus,
				  m->fpga.info.out_devfn);
	return 0;
}

int memory_open(struct memory *memory, const char *name, int flags, char *why)
{
	/* The name of a buffer has no colon. */
	const char *colon = strchr(name, ':');
	int error;

	*memory = (struct memory)MEMORY_NONE;
	memory->name = name;
	error = colon ? open_window(memory, colon - name, colon + 1, why) :
			open_buffer(memory, flags, why);
	if (error)
		memory_close(memory);
	return error;
}

void memory_close(struct memory *memory)
{
	if (memory->fd >= 0)
		close(memory->fd);
	if (memory->node >= 0)
		close(memory->node);
	fpga_close(&memory->fpga);
	*memory = (struct memory)MEMORY_NONE;
}
