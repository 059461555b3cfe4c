/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * As much of the driver as streams need, in one process: nodes are files, and ioctl() and mmap()
 * of programs that are linked with this (fake in meson.build) come here. Nothing makes
 * events: wait with a timeout of 0. Guard pages that cannot be touched surround each mapping.
 * Boards are registers that nothing changes: each open one has others.
 */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the producer's role is held. The consumer's role is never reported as held. */
extern bool fake_has_producer;

/* 0: the nodes are there. */
int fake_driver_load(void);
void fake_driver_unload(void);
/* A named buffer of so many bytes, whole pages; where anybody can write into it, or NULL. */
void *fake_buffer(const char *name, uint64_t length);
/* Its permissions, as chmod() has them; 0600 at first. */
int fake_permit(const char *name, unsigned int mode);
/* How often the code under test has mapped it, for reading, and for writing, too. */
unsigned int fake_mapped(const char *name, bool write);

#endif /* FAKE_DRIVER_H */
