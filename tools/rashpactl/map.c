// SPDX-License-Identifier: GPL-2.0-only
/* rashpactl map: what a buffer looks like for a function */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "fpga.h"
#include "json-out.h"
#include "rashpa.h"
#include "rashpactl.h"

static void print_text(const char *name, unsigned int number, const struct rashpa_map *map,
		       const struct rashpa_table *table)
{
	printf("%s for fpga%u: %s, %" PRIu32 " segment%s\n", name, number,
	       rashpa_class_name(map->out_class), map->out_segments,
	       map->out_segments == 1 ? "" : "s");
	for (uint32_t i = 0; table && i < table->count; i++)
		printf("%#018" PRIx64 " %" PRIu64 "\n", (uint64_t)table->segment[i].address,
		       (uint64_t)table->segment[i].length);
	if (!table)
		printf("(addresses are not disclosed)\n");
}

static int print_json(const char *name, unsigned int number, const struct rashpa_map *map,
		      const struct rashpa_table *table)
{
	struct json_object *o = json_object_new_object(), *list, *s;

	put_text(o, "name", name);
	put_node(o, number);
	put_text(o, "class", rashpa_class_name(map->out_class));
	put_u64(o, "generation", map->out_generation);
	put_int(o, "segments", map->out_segments);
	list = table ? json_object_new_array() : NULL;
	for (uint32_t i = 0; table && i < table->count; i++) {
		s = json_object_new_object();
		put_hex(s, "address", table->segment[i].address);
		put_u64(s, "length", table->segment[i].length);
		json_object_array_add(list, s);
	}
	json_object_object_add(o, "addresses", list);
	return json_finish(o, "-") ? EXIT_FAILED : 0;
}

static int show(struct fpga *fpga, const char *name, int dmabuf, bool json)
{
	struct rashpa_map map = { .fd = dmabuf };
	const struct rashpa_table *table = NULL;
	int fd = rashpa_map(fpga->device, &map);
	int result = 0, error;

	if (fd < 0)
		return fail("buffer %s for fpga%u: %s", name, fpga->number, rashpa_reason());
	error = rashpa_table_map(fd, map.out_table_size, &table);
	if (error && error != -EPERM)
		result = fail("buffer %s for fpga%u: %s", name, fpga->number, rashpa_reason());
	else if (json)
		result = print_json(name, fpga->number, &map, table);
	else
		print_text(name, fpga->number, &map, table);
	rashpa_table_unmap(table, map.out_table_size);
	close(fd);
	return result;
}

int cmd_map(int argc, char **argv)
{
	const char *value[2];
	bool json = false;
	const struct simple simple = {
		"NAME fpgaN", "Map a buffer for a function, show the result, and release it again. "
		"Releasing stops all DMA of the function: refused while it has other maps.", 2, value, &json,
	};
	struct fpga fpga = FPGA_NONE;
	char why[WHY_SIZE];
	int buffer, dmabuf = -1, result;
	unsigned int n;

	parse_simple(&simple, argc, argv);
	if (!parse_fpga(value[1], &n)) {
		say("\"%s\" is not fpgaN: see rashpactl list", value[1]);
		return EXIT_USAGE;
	}
	buffer = rashpa_buffer_open(value[0], O_RDWR);
	if (buffer < 0)
		return fail("%s", rashpa_reason());
	dmabuf = rashpa_buffer_dmabuf(buffer);
	if (dmabuf < 0)
		result = fail("buffer %s: %s", value[0], rashpa_reason());
	else if (fpga_open(&fpga, n, why))
		result = fail("%s", why);
	else if (fpga.info.out_maps)
		result = fail("fpga%u: it has %" PRIu32 " maps, and to release one more would stop its DMA: stop the producer first",
			      n, fpga.info.out_maps);
	else
		result = show(&fpga, value[0], dmabuf, json);
	fpga_close(&fpga);
	if (dmabuf >= 0)
		close(dmabuf);
	close(buffer);
	return result;
}
