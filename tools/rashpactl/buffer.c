// SPDX-License-Identifier: GPL-2.0-only
/* rashpactl buffer create, list, info, remove */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "json-out.h"
#include "parse.h"
#include "rashpa.h"
#include "rashpactl.h"

/* --- create --- */

struct create {
	const char *name;
	uint64_t size, align;
	uint32_t node, backend;
	bool has_node, json;
};

static const struct argp_option create_options[] = {
	{ "node", 'n', "N", 0, "only memory of this NUMA node", 0 },
	{ "backend", 'b', "auto|cma|contig", 0, "where the memory comes from (default auto)", 0 },
	{ "align", 'a', "SIZE", 0, "of the physical address, a power of two", 0 },
	{ "json", 'j', NULL, 0, "JSON on standard output", 0 },
	{}
};

static error_t parse_create(int key, char *arg, struct argp_state *state)
{
	struct create *c = state->input;

	switch (key) {
	case 'n':
		if (!parse_u32(arg, &c->node))
			argp_error(state, "--node: \"%s\" is not a number", arg);
		c->has_node = true;
		break;
	case 'b':
		for (c->backend = 0; c->backend <= RASHPA_BACKEND_CONTIG; c->backend++) {
			if (!strcmp(arg, rashpa_backend_name(c->backend)))
				return 0;
		}
		argp_error(state, "--backend: \"%s\" is not auto, cma or contig", arg);
		break;
	case 'a':
		if (!parse_size(arg, &c->align) || (c->align & (c->align - 1)))
			argp_error(state, "--align: \"%s\" is not a power of two", arg);
		break;
	case 'j':
		c->json = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			c->name = arg;
		else if (state->arg_num > 1)
			return ARGP_ERR_UNKNOWN;
		else if (!parse_size(arg, &c->size) || !c->size)
			argp_error(state, "\"%s\" is not a size: write bytes, or a number with K, M, G or T", arg);
		break;
	case ARGP_KEY_END:
		if (state->arg_num < 2)
			argp_error(state, "give NAME and SIZE");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* The allocation failed: say what would fit. */
static void advise(int memory, const struct create *c)
{
	char free[SIZE_TEXT], largest[SIZE_TEXT];

	for (uint32_t backend = RASHPA_BACKEND_CMA; backend <= RASHPA_BACKEND_CONTIG; backend++) {
		struct rashpa_query query = {
			.head.flags = c->has_node ? RASHPA_QUERY_NODE : 0,
			.node = c->node,
			.backend = backend,
		};

		if (rashpa_query(memory, &query)) {
			say("%s: %s", rashpa_backend_name(backend), rashpa_reason());
			continue;
		}
		say("%s: %s free, the longest run that looks free or movable is %s",
		    rashpa_backend_name(backend), format_size(free, query.out_free),
		    format_size(largest, query.out_largest));
	}
	say("create buffers soon after boot; or reserve memory with the boot parameter cma=SIZE (kernels with CMA, as Debian's from 7.2: rashpactl doctor tells)");
}

int cmd_buffer_create(int argc, char **argv)
{
	static const struct argp argp = {
		create_options, parse_create, "NAME SIZE",
		"Make a contiguous, zeroed buffer that lives until it is removed.",
		NULL, NULL, NULL,
	};
	struct create c = { .json = want_json };
	struct rashpa_alloc alloc = {};
	struct json_object *o;
	char size[SIZE_TEXT];
	int memory, fd, result = 0;

	argp_parse(&argp, argc, argv, 0, NULL, &c);
	if (strlen(c.name) >= sizeof(alloc.name))
		return fail("the name \"%s\" is longer than %zu characters", c.name, sizeof(alloc.name) - 1);
	alloc.head.flags = c.has_node ? RASHPA_ALLOC_NODE : 0;
	alloc.length = c.size;
	alloc.alignment = c.align;
	alloc.node = c.node;
	alloc.backend = c.backend;
	strcpy(alloc.name, c.name);

	memory = rashpa_memory_open();
	if (memory < 0)
		return fail("%s", rashpa_reason());
	fd = rashpa_alloc(memory, &alloc);
	if (fd < 0) {
		result = fail("buffer %s of %s: %s", c.name, format_size(size, c.size), rashpa_reason());
		if (fd == -ENOMEM)
			advise(memory, &c);
	} else if (c.json) {
		o = json_object_new_object();
		put_text(o, "name", c.name);
		put_u64(o, "length", alloc.out_length);
		put_int(o, "segments", alloc.out_segments);
		put_text(o, "backend", rashpa_backend_name(alloc.out_backend));
		put_int(o, "numa_node", alloc.out_node);
		result = json_finish(o, "-") ? EXIT_FAILED : 0;
	} else {
		printf("%s: %s, %s, node %" PRIu32 "\n", c.name, format_size(size, alloc.out_length),
		       rashpa_backend_name(alloc.out_backend), alloc.out_node);
	}
	if (fd >= 0)
		close(fd);
	close(memory);
	return result;
}

/* --- list, info --- */

static int get_info(const char *name, struct rashpa_info *info)
{
	int fd = rashpa_buffer_open(name, O_RDONLY), error;

	if (fd < 0)
		return fd;
	*info = (struct rashpa_info) { .fd = -1 };
	error = rashpa_info(fd, info);
	close(fd);
	return error;
}

static struct json_object *info_json(const char *name, const struct rashpa_info *info)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "name", name);
	put_u64(o, "length", info->out_length);
	put_text(o, "kind", rashpa_kind_name(info->out_kind));
	put_text(o, "backend", rashpa_backend_name(info->out_backend));
	put_text(o, "cache", rashpa_cache_name(info->out_cache));
	put_int(o, "numa_node", info->out_node);
	put_int(o, "segments", info->out_segments);
	put_int(o, "importers", info->out_importers);
	put_int(o, "mappings", info->out_mappings);
	return o;
}

int cmd_buffer_list(int argc, char **argv)
{
	bool json = false;
	const struct simple simple = { "", "All named buffers.", 0, NULL, &json };
	struct json_object *list = NULL;
	struct rashpa_info info;
	char size[SIZE_TEXT];
	char **names;
	int n, error, result = 0;

	parse_simple(&simple, argc, argv);
	n = rashpa_buffer_list(&names);
	if (n < 0)
		return fail("%s", rashpa_reason());
	if (json)
		list = json_object_new_array();
	else if (n)
		printf("%-24s %10s  %-7s %4s %9s %8s\n", "NAME", "SIZE", "BACKEND", "NODE", "IMPORTERS",
		       "MAPPINGS");
	for (int i = 0; i < n; i++) {
		error = get_info(names[i], &info);
		if (error == -ENOENT)
			continue;	/* removed since we looked */
		if (error)
			result = fail("buffer %s: %s", names[i], rashpa_reason());
		else if (json)
			json_object_array_add(list, info_json(names[i], &info));
		else
			printf("%-24s %10s  %-7s %4d %9" PRIu32 " %8" PRIu32 "\n", names[i],
			       format_size(size, info.out_length),
			       rashpa_backend_name(info.out_backend), info.out_node,
			       info.out_importers, info.out_mappings);
	}
	rashpa_list_free(names, n);
	if (json && json_finish(list, "-"))
		result = EXIT_FAILED;
	return result;
}

int cmd_buffer_info(int argc, char **argv)
{
	const char *name;
	bool json = false;
	const struct simple simple = { "NAME", "What a named buffer is.", 1, &name, &json };
	struct rashpa_info info;
	char size[SIZE_TEXT];

	parse_simple(&simple, argc, argv);
	if (get_info(name, &info))
		return fail("buffer %s: %s", name, rashpa_reason());
	if (json)
		return json_finish(info_json(name, &info), "-") ? EXIT_FAILED : 0;
	printf("name       %s\n", name);
	printf("length     %" PRIu64 " (%s)\n", (uint64_t)info.out_length,
	       format_size(size, info.out_length));
	printf("backend    %s\n", rashpa_backend_name(info.out_backend));
	printf("cache      %s\n", rashpa_cache_name(info.out_cache));
	printf("node       %d\n", info.out_node);
	printf("segments   %" PRIu32 "\n", info.out_segments);
	printf("importers  %" PRIu32 "\n", info.out_importers);
	printf("mappings   %" PRIu32 "\n", info.out_mappings);
	return 0;
}

int cmd_buffer_remove(int argc, char **argv)
{
	const char *name;
	const struct simple simple = { "NAME", "Take the name of a buffer away; its memory is "
		"given back with its last user.", 1, &name, NULL };
	int memory, result = 0;

	parse_simple(&simple, argc, argv);
	memory = rashpa_memory_open();
	if (memory < 0)
		return fail("%s", rashpa_reason());
	if (rashpa_remove(memory, name))
		result = fail("buffer %s: %s", name, rashpa_reason());
	close(memory);
	return result;
}
