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

/* Has a device mapped it for DMA? 1, 0, or -1 with the reason in why[WHY_SIZE]. */
int buffer_mapped(int fd, char *why);

/*
 * Have it to ourselves, as its producer, until the fd is closed. 0, or -1 with the reason in
 * why[WHY_SIZE]: another one has claimed it, a device maps it, or that cannot be found out.
 */
int buffer_claim(int fd, char *why);

#endif /* BUFFER_H */
