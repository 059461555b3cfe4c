// SPDX-License-Identifier: GPL-2.0-only
/* rashpactl lock create */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fpga.h"
#include "json-out.h"
#include "parse.h"
#include "rashpa.h"
#include "rashpactl.h"

static int print(const struct rashpa_lock *lock, bool json)
{
	struct json_object *o;

	if (!json) {
		printf("%s: %u slots of %d bytes\n", lock->name, lock->slots, RASHPA_LOCK_SLOT);
		return 0;
	}
	o = json_object_new_object();
	put_text(o, "name", lock->name);
	put_int(o, "slots", lock->slots);
	put_u64(o, "length", lock->out_length);
	return json_finish(o, "-") ? EXIT_FAILED : 0;
}

int cmd_lock_create(int argc, char **argv)
{
	const char *value[3];	/* function, name, slots */
	bool json = false;
	const struct simple simple = {
		"fpgaN NAME SLOTS", "Make named lock memory near a function.", 3, value, &json,
	};
	struct fpga fpga = FPGA_NONE;
	struct rashpa_lock lock = {};
	int result;

	parse_simple(&simple, argc, argv);
	/* without a name it would be gone as soon as we are */
	if (!*value[1]) {
		say("NAME: the name of lock memory is empty");
		return EXIT_USAGE;
	}
	if (strlen(value[1]) >= sizeof(lock.name))
		return fail("the name \"%s\" is longer than %zu characters", value[1],
			    sizeof(lock.name) - 1);
	strcpy(lock.name, value[1]);
	if (!parse_u32(value[2], &lock.slots)) {
		say("SLOTS: \"%s\" is not a number", value[2]);
		return EXIT_USAGE;
	}
	result = fpga_named(&fpga, value[0]);
	if (result)
		return result;
	if (rashpa_lock(fpga.device, &lock) < 0) {
		result = fail("lock memory %s: %s", lock.name, rashpa_reason());
	} else {
		close(lock.out_fd);
		result = print(&lock, json);
	}
	fpga_close(&fpga);
	return result;
}
