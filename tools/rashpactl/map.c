// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl map make: the addresses of a memory as a function sees them */
#include "rashpactl/map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/json-out.h"
#include <rashpa-board.h>
#include "rashpactl/memory.h"
#include "rashpactl/rashpactl.h"
#include "common/stop.h"

static bool is_peer(const struct rashpa_map_make *map)
{
	return map->out_class == RASHPA_CLASS_PEER || map->out_class == RASHPA_CLASS_BRIDGE;
}

void put_map(struct json_object *to, const struct rashpa_map_make *map)
{
	char bdf[BDF_SIZE];

	put_text(to, "class", rashpa_class_name(map->out_class));
	put_u64(to, "generation", map->out_generation);
	put_int(to, "segments", map->out_segments);
	put_bool(to, "remapped", map->out_flags & RASHPA_MAPPED_REMAPPED);
	put_bool(to, "coherent", map->out_flags & RASHPA_MAPPED_COHERENT);
	put_text(to, "peer", is_peer(map) ? bdf_text(bdf, map->out_peer) : NULL);
	if (is_peer(map))
		put_int(to, "peer_bar", map->out_peer_bar);
	else
		put_text(to, "peer_bar", NULL);
}

void print_map(const struct rashpa_map_make *map)
{
	char bdf[BDF_SIZE];

	printf("%s", rashpa_class_name(map->out_class));
	if (is_peer(map))
		printf(", in BAR %" PRId32 " of %s", map->out_peer_bar,
		       bdf_text(bdf, map->out_peer));
	if (map->out_flags & RASHPA_MAPPED_REMAPPED)
		printf(", mapped by the driver itself");
	if (map->out_flags & RASHPA_MAPPED_COHERENT)
		printf(", memory of a device");
	printf(", %" PRIu32 " segment%s\n", map->out_segments, map->out_segments == 1 ? "" : "s");
}

struct options {
	const char *name[2];		/* memory, function */
	struct rashpa_map_make map;
	bool hold;
};

enum {
	OPT_BOUNDARY = 256, OPT_ALIGNMENT, OPT_MAX_SEGMENT, OPT_DEVICE, OPT_HOLD, OPT_PIN,
	OPT_DIRECTION,
};

static const struct argp_option options[] = {
	{ "direction", OPT_DIRECTION, "both|to-memory|from-memory", 0,
	  "direction of the DMA (default: both)", 0 },
	{ "max-segment", OPT_MAX_SEGMENT, "SIZE", 0, "longest segment", 0 },
	{ "boundary", OPT_BOUNDARY, "SIZE", 0,
	  "boundary that no segment may cross, a power of two", 0 },
	{ "alignment", OPT_ALIGNMENT, "SIZE", 0, "alignment of every address, a power of two", 0 },
	{ "device-memory", OPT_DEVICE, NULL, 0, "refuse host memory", 0 },
	{ "pin", OPT_PIN, NULL, 0, "keep the exporter from moving the memory", 0 },
	{ "hold", OPT_HOLD, NULL, 0, "hold the map until a signal", 0 },
	OPTION_JSON,
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case OPT_DIRECTION:
		o->map.direction = option_word(state, "--direction", arg, "both|to-memory|from-memory");
		break;
	case OPT_MAX_SEGMENT:
		option_size(state, "--max-segment", arg, &o->map.max_segment);
		break;
	case OPT_BOUNDARY:
		option_size(state, "--boundary", arg, &o->map.boundary);
		break;
	case OPT_ALIGNMENT:
		option_size(state, "--alignment", arg, &o->map.alignment);
		break;
	case OPT_DEVICE:
		o->map.head.flags |= RASHPA_MAP_DEVICE;
		break;
	case OPT_HOLD:
		o->hold = true;
		break;
	case OPT_PIN:
		o->map.head.flags |= RASHPA_MAP_PIN;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int print_json(const struct options *o, unsigned int number,
		      const struct rashpa_table *table)
{
	struct json_object *top = json_object_new_object(), *list, *s;

	put_text(top, "name", o->name[0]);
	put_node(top, number);
	put_text(top, "direction", rashpa_direction_name(o->map.direction));
	put_map(top, &o->map);
	list = table ? json_object_new_array() : NULL;
	for (uint32_t i = 0; table && i < table->count; i++) {
		s = json_object_new_object();
		put_hex(s, "address", table->segment[i].address);
		put_u64(s, "length_bytes", table->segment[i].length);
		json_object_array_add(list, s);
	}
	json_object_object_add(top, "addresses", list);
	return json_finish(top);
}

static void print_text(const struct options *o, unsigned int number,
		       const struct rashpa_table *table)
{
	printf("%s for fpga%u: ", o->name[0], number);
	print_map(&o->map);
	for (uint32_t i = 0; table && i < table->count; i++)
		printf("%#018" PRIx64 " %" PRIu64 "\n", (uint64_t)table->segment[i].address,
		       (uint64_t)table->segment[i].length);
	if (!table)
		puts("the addresses are not disclosed");
}

/* Make a consistent copy; NULL if addresses are not disclosed. 0 or a negative errno. */
static int copy_table(int fd, const struct rashpa_map_make *map, struct rashpa_table **copy)
{
	const struct rashpa_table *table;
	int n, error = rashpa_table_map(fd, map->out_table_size, &table);

	*copy = NULL;
	if (error)
		return error == -EPERM ? 0 : error;
	*copy = malloc(sizeof(**copy) + map->out_segments * sizeof((*copy)->segment[0]));
	n = *copy ? rashpa_table_read(table, *copy, map->out_segments) : -ENOMEM;
	rashpa_table_unmap(table, map->out_table_size);
	if (n >= 0)
		return 0;
	free(*copy);
	*copy = NULL;
	return n;
}

int map_hold(void)
{
	if (flush_output())
		return EXIT_FAILED;
	stop_on_signals();
	stop_poll(NULL, 0, UINT64_MAX);
	return 0;
}

/*
 * Map the memory. Without --hold release the map before output, whose reader may block us. *@held
 * receives the fd of a held map.
 */
static int make(struct options *o, const struct memory *memory, struct fpga *fpga,
		struct rashpa_table **table, int *held)
{
	int fd, error;

	o->map.fd = memory->fd;
	fd = rashpa_device_map(fpga->device, &o->map);
	error = fd < 0 ? fd : copy_table(fd, &o->map, table);
	if (error)
		fail("%s for fpga%u: %s", o->name[0], fpga->number, rashpa_reason());
	if (o->hold && !error) {
		*held = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return error ? EXIT_FAILED : 0;
}

static int show(struct options *o, const struct memory *memory, struct fpga *fpga)
{
	struct rashpa_table *table = NULL;
	int result, held = -1;

	/* Releasing a map with disclosed addresses stops its function: not while others use it. */
	if (!o->hold && rashpa_device_claim(fpga->device))
		return fail("%s", rashpa_reason());
	result = make(o, memory, fpga, &table, &held);
	if (!o->hold)
		flock(fpga->device, LOCK_UN);
	if (!result && command_json)
		result = print_json(o, fpga->number, table);
	else if (!result)
		print_text(o, fpga->number, table);
	if (held >= 0) {
		result = result ? result : map_hold();
		close(held);
	}
	free(table);
	return result;
}

int cmd_map_make(int argc, char **argv)
{
	static const struct argp argp = { .options = options, .parser = parse };
	struct options o = {};
	struct fpga fpga = FPGA_NONE;
	struct memory memory;
	char why[WHY_SIZE];
	int result;

	command_read(&argp, argc, argv, &o, o.name);
	if (memory_open(&memory, o.name[0],
			o.map.direction == RASHPA_FROM_MEMORY ? O_RDONLY : O_RDWR, why))
		return fail("%s", why);
	result = fpga_named(&fpga, o.name[1]);
	if (!result)
		result = show(&o, &memory, &fpga);
	fpga_close(&fpga);
	memory_close(&memory);
	return result;
}
