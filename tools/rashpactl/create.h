/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Making a named buffer. */
#ifndef CREATE_H
#define CREATE_H

#include <linux/rashpa.h>
#include <stdbool.h>

#include "rashpactl/owner.h"

struct create {
	struct rashpa_alloc alloc;
	struct owner owner;
	__u64 huge;		/* bytes of a huge page, or 0 */
	int fpga;		/* number of the function that must reach it, or -1 */
	bool exist_ok;		/* an equal existing buffer is accepted */
	bool existed;		/* an equal buffer existed */
};

/* Returns an exit code, after a message; create->alloc receives the buffer. */
int create_buffer(int memory, struct create *create);
/* Print the buffer. */
int create_tell(const struct create *create);
struct json_object *create_json(const struct create *create);

#endif /* CREATE_H */
