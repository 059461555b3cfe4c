/* SPDX-License-Identifier: GPL-2.0-only */
/* A named buffer, opened and mapped. */
#ifndef BUFFER_H
#define BUFFER_H

#include <stdbool.h>

#include <linux/rashpa.h>

/*
 * Open the node of a buffer for reading and writing, ask what it is, map all of it. The
 * fd, or -1 with the reason in why[WHY_SIZE]; undone with munmap(*base, info->out_length)
 * and close().
 */
int buffer_open(const char *name, struct rashpa_info *info, void **base, char *why);

/* Has a device mapped it for DMA? */
bool buffer_mapped(int fd);

/*
 * Have it to ourselves, as its producer: false while another one has claimed it, or a device
 * maps it. It ends when the fd is closed.
 */
bool buffer_claim(int fd);

#endif /* BUFFER_H */
