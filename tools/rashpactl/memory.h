/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A named memory: a buffer, or a window of a function. */
#ifndef MEMORY_H
#define MEMORY_H

#include "common/fpga.h"
#include <rashpa.h>

struct memory {
	const char *name;		/* NAME, or fpgaN:WINDOW */
	int node, fd;			/* the buffer's node or -1; dma-buf */
	struct fpga fpga;		/* function of a window */
	struct rashpa_info info;
};

#define MEMORY_NONE	{ .node = -1, .fd = -1, .fpga = FPGA_NONE }

/*
 * Open it and read its properties; flags: O_RDWR or O_RDONLY, for buffers. 0, or -1 with the
 * reason in why[WHY_SIZE].
 */
int memory_open(struct memory *memory, const char *name, int flags, char *why);
void memory_close(struct memory *memory);

#endif /* MEMORY_H */
