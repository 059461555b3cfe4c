/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Everything that can be open on a function, and checks of it after the function is removed. */
#ifndef HOLDER_H
#define HOLDER_H

#include "common.h"

struct open_things {
	struct fpga f;			/* owns f.fd */
	int window, map, channel, quiet, buffer;
	void *regs, *untouched;		/* mappings of the window */
	const struct rashpa_table *table;
	struct rashpa_map_make made;
	u64 generation;		/* generation of the map when it was made */
};

/* The test ends where it fails. The node's fd goes with the rest. */
void open_all(struct open_things *t, const struct fpga *f);
void close_all(struct open_things *t);

/* Check: touching it is a SIGBUS. */
void sigbus(void *p, const char *what);

/*
 * Check: the function is gone for all of them, after a RASHPA_DEVICE_* event that reports how
 * it was stopped.
 */
void all_gone(struct open_things *t, u64 stopped);

#endif /* HOLDER_H */
