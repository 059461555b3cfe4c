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
	struct json_object *list;
	int result;

	command_simple(argc, argv, NULL);
	list = command_json ? json_object_new_array() : NULL;
	result = maps_list(list);
	return list && json_finish(list) ? EXIT_FAILED : result;
}

/* --- program --- */

struct options {
	const char *name[2], *engine;	/* memory, function */
	uint32_t direction, first;
	bool has_first;
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
	case ARGP_KEY_END:
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
			return fail("%s: %s", o->name[1], rashpa_reason());
		if (strcmp(e.out_name, o->engine) || e.out_flags & RASHPA_ENGINE_ABSENT)
			continue;
		o->first = e.out_first;
		return 0;
	}
	if (!o->engine)
		return 0;
	return fail("%s has no engine \"%s\": rashpactl list names those of its profile", o->name[1],
		    o->engine);
}

static int print(const struct options *o, const struct rashpa_map_make *map, uint32_t entries)
{
	struct json_object *top;

	if (!command_json) {
		printf("%s for %s: map %" PRIu32 ", entries %" PRIu32 " to %" PRIu32 ", ",
		       o->name[0], o->name[1], map->out_id, o->first, o->first + entries - 1);
		print_map(map);
		return 0;
	}
	top = json_object_new_object();
	put_text(top, "name", o->name[0]);
	put_text(top, "fpga", o->name[1]);
	put_int(top, "id", map->out_id);
	put_text(top, "direction", rashpa_direction_name(map->direction));
	put_int(top, "first_entry", o->first);
	put_int(top, "entries", entries);
	put_map(top, map);
	return json_finish(top);
}

static int program(const struct options *o, const struct memory *memory, const struct fpga *fpga)
{
	struct rashpa_map_make map = {
		.fd = memory->fd, .direction = o->direction,
	};
	struct rashpa_program arg = { .first = o->first };
	int fd = rashpa_device_map(fpga->device, &map), result = 0;

	if (fd < 0)
		return fail("%s for %s: %s", o->name[0], o->name[1], rashpa_reason());
	if (rashpa_map_program(fd, &arg))
		result = fail("%s for %s: %s", o->name[0], o->name[1], rashpa_reason());
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

	command_read(&argp, argc, argv, &o, o.name);
	if (memory_open(&memory, o.name[0],
			o.direction == RASHPA_FROM_MEMORY ? O_RDONLY : O_RDWR, why))
		return fail("%s", why);
	result = fpga_named(&fpga, o.name[1]);
	if (!result)
		result = find_engine(&o, &fpga);
	if (!result)
		result = program(&o, &memory, &fpga);
	fpga_close(&fpga);
	memory_close(&memory);
	return result;
}
