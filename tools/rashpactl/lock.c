// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl lock create */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/fpga.h"
#include "common/json-out.h"
#include "common/parse.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"

static int print(const struct rashpa_alloc *lock, uint32_t slots)
{
	struct json_object *o;

	if (!command_json) {
		printf("%s: %u slots of %d bytes\n", lock->name, slots, RASHPA_LOCK_SLOT);
		return 0;
	}
	o = json_object_new_object();
	put_text(o, "name", lock->name);
	put_int(o, "slots", slots);
	put_u64(o, "length_bytes", lock->out_length);
	return json_finish(o);
}

/* Allocate near the function that will write it; 0 or an exit code. */
static int create(int device, struct rashpa_alloc *lock)
{
	int memory = rashpa_memory_open(), result = 0;

	if (memory < 0)
		return fail("%s", rashpa_reason());
	if (rashpa_memory_alloc_for(memory, device, lock) < 0)
		result = fail("lock memory %s: %s", lock->name, rashpa_reason());
	else
		close(lock->out_fd);
	close(memory);
	return result;
}

int cmd_lock_create(int argc, char **argv)
{
	const char *value[3];	/* function, name, slots */
	struct fpga fpga = FPGA_NONE;
	struct rashpa_alloc lock = {
		.head.flags = RASHPA_ALLOC_LOCK,
	};
	uint32_t slots;
	int result;

	command_simple(argc, argv, value);
	/* without a name it would end with this process */
	if (!*value[1]) {
		say("NAME: the name of lock memory is empty");
		return EXIT_USAGE;
	}
	if (strlen(value[1]) >= sizeof(lock.name))
		return fail("the name \"%s\" is longer than %zu characters", value[1],
			    sizeof(lock.name) - 1);
	strcpy(lock.name, value[1]);
	if (!parse_u32(value[2], &slots)) {
		say("SLOTS: \"%s\" is not a number", value[2]);
		return EXIT_USAGE;
	}
	result = fpga_named(&fpga, value[0]);
	if (result)
		return result;
	lock.length = (uint64_t)slots * RASHPA_LOCK_SLOT;
	result = create(fpga.device, &lock);
	fpga_close(&fpga);
	return result ? result : print(&lock, slots);
}
