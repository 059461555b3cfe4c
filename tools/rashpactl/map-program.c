// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl map list and map program: maps of all processes, and a map held by the command */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rashpactl/held.h"
#include "common/json-out.h"
#include "rashpactl/map.h"
#include "rashpactl/memory.h"
#include "common/options.h"
#include "common/parse.h"
#include "rashpactl/rashpactl.h"

int cmd_map_list(int argc, char **argv)
{
	bool json = false;
	struct json_object *list;
	int result;

	command_simple(argc, argv, NULL, &json);
	list = json ? json_object_new_array() : NULL;
	result = maps_list(list);
	if (json)
		return json_finish(list) || result ? EXIT_FAILED : 0;
	return result;
}

/* --- program --- */

struct options {
	const char *memory, *fpga, *engine;
	uint32_t direction, first;
	bool has_first, json;
};

enum { OPT_DIRECTION = 256, OPT_FIRST, OPT_ENGINE };

static const struct argp_option options[] = {
	{ "direction", OPT_DIRECTION, "both|to-memory|from-memory", 0,
	  "direction of the DMA (default: both)", 0 },
	{ "first", OPT_FIRST, "N", 0, "first entry of the table (default: 0, or the engine's)", 0 },
	{ "engine", OPT_ENGINE, "NAME", 0, "use the entries of this engine of the profile", 0 },
	OPTION_JSON,
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case OPT_DIRECTION:
		o->direction = option_word(state, "--direction", arg, "both|to-memory|from-memory");
		break;
	case OPT_FIRST:
		if (!parse_u32(arg, &o->first))
			argp_error(state, "--first: \"%s\" is not the number of an entry", arg);
		o->has_first = true;
		break;
	case OPT_ENGINE:
		o->engine = arg;
		break;
	case 'j':
		o->json = true;
		json_to(arg);
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			return ARGP_ERR_UNKNOWN;
		*(state->arg_num ? &o->fpga : &o->memory) = arg;
		break;
	case ARGP_KEY_END:
		if (state->arg_num < 2)
			argp_error(state, "give a memory and fpgaN");
		if (o->engine && o->has_first)
			argp_error(state, "--engine and --first exclude each other: the profile gives the first entry of an engine");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* Find the entries of an engine. An exit code, after a message. */
static int find_engine(struct options *o, const struct fpga *fpga)
{
	struct rashpa_engine_info e;

	for (uint32_t i = 0; o->engine && i < fpga->info.out_engines; i++) {
		if (rashpa_device_engine(fpga->device, i, &e))
			return fail("%s: %s", o->fpga, rashpa_reason());
		if (strcmp(e.out_name, o->engine) || e.out_flags & RASHPA_ENGINE_ABSENT)
			continue;
		o->first = e.out_first;
		return 0;
	}
	if (!o->engine)
		return 0;
	return fail("%s has no engine \"%s\": rashpactl list names those of its profile", o->fpga,
		    o->engine);
}

static int print(const struct options *o, const struct rashpa_map_make *map, uint32_t entries)
{
	struct json_object *top;

	if (!o->json) {
		printf("%s for %s: map %" PRIu32 ", entries %" PRIu32 " to %" PRIu32 ", ",
		       o->memory, o->fpga, map->out_id, o->first, o->first + entries - 1);
		print_map(map);
		return 0;
	}
	top = json_object_new_object();
	put_text(top, "name", o->memory);
	put_text(top, "fpga", o->fpga);
	put_int(top, "id", map->out_id);
	put_text(top, "direction", rashpa_direction_name(map->direction));
	put_int(top, "first_entry", o->first);
	put_int(top, "entries", entries);
	put_map(top, map);
	return json_finish(top) ? EXIT_FAILED : 0;
}

static int program(const struct options *o, const struct memory *memory, const struct fpga *fpga)
{
	struct rashpa_map_make map = {
		.fd = memory->fd, .direction = o->direction,
	};
	struct rashpa_program arg = { .first = o->first };
	int fd = rashpa_device_map(fpga->device, &map), result = 0;

	if (fd < 0)
		return fail("%s for %s: %s", o->memory, o->fpga, rashpa_reason());
	if (rashpa_map_program(fd, &arg))
		result = fail("%s for %s: %s", o->memory, o->fpga, rashpa_reason());
	else
		result = print(o, &map, arg.out_entries);
	if (!result)
		result = map_hold();
	close(fd);
	return result;
}

int cmd_map_program(int argc, char **argv)
{
	static const struct argp argp = { .options = options, .parser = parse };
	struct options o = {};
	struct fpga fpga = FPGA_NONE;
	struct memory memory;
	char why[WHY_SIZE];
	int result;

	command_parse(&argp, argc, argv, &o);
	if (memory_open(&memory, o.memory,
			o.direction == RASHPA_FROM_MEMORY ? O_RDONLY : O_RDWR, why))
		return fail("%s", why);
	result = fpga_named(&fpga, o.fpga);
	if (!result)
		result = find_engine(&o, &fpga);
	if (!result)
		result = program(&o, &memory, &fpga);
	fpga_close(&fpga);
	memory_close(&memory);
	return result;
}
