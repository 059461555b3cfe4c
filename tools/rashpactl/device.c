// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl fpga quiesce, reset */
#include <stdio.h>

#include "common/fpga.h"
#include "common/json-out.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"

int fpga_named(struct fpga *fpga, const char *text)
{
	char why[WHY_SIZE];
	unsigned int n;

	if (!parse_fpga(text, &n)) {
		say("\"%s\" is not fpgaN: see rashpactl list", text);
		return EXIT_USAGE;
	}
	return fpga_open(fpga, n, why) ? fail("%s", why) : 0;
}

int cmd_fpga_quiesce(int argc, char **argv)
{
	struct fpga fpga = FPGA_NONE;
	const char *name;
	struct json_object *o;
	uint64_t ns = 0;
	int result;

	command_simple(argc, argv, &name);
	result = fpga_named(&fpga, name);
	if (result)
		return result;
	if (rashpa_device_quiesce(fpga.device, &ns)) {
		result = fail("fpga%u: %s", fpga.number, rashpa_reason());
	} else if (command_json) {
		o = json_object_new_object();
		put_u64(o, "time_ns", ns);
		result = json_finish(o);
	} else {
		printf("fpga%u: stopped in %.3f ms\n", fpga.number, ns / 1e6);
	}
	fpga_close(&fpga);
	return result;
}

int cmd_fpga_reset(int argc, char **argv)
{
	struct fpga fpga = FPGA_NONE;
	const char *name;
	int result;

	command_read(&command_bare, argc, argv, NULL, &name);
	result = fpga_named(&fpga, name);
	if (!result && rashpa_device_reset(fpga.device))
		result = fail("fpga%u: %s", fpga.number, rashpa_reason());
	fpga_close(&fpga);
	return result;
}
