// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl buffer create */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rashpactl/create.h"
#include "rashpactl/follow.h"
#include "common/json-out.h"
#include "common/parse.h"
#include "rashpactl/query.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"

enum { OPT_NODE = 256, OPT_FOR, OPT_BACKEND, OPT_HUGE, OPT_CACHE, OPT_EXIST_OK };

static const struct argp_option options[] = {
	{ "node", OPT_NODE, "N", 0, "only memory of this NUMA node", 0 },
	{ "for", OPT_FOR, "fpgaN", 0, "memory that this function reaches, of its NUMA node if possible", 0 },
	{ "backend", OPT_BACKEND, "auto|cma|contig", 0, "source of the memory (default: auto)", 0 },
	{ "huge", OPT_HUGE, "SIZE", 0, "reserved huge pages of this size (2M, 1G)", 0 },
	{ "align", 'a', "SIZE", 0, "alignment of the physical address, a power of two", 0 },
	{ "cache", OPT_CACHE, "cached|wc|uc", 0, "cache mode of CPU mappings (default: cached)", 0 },
	{ "owner", 'o', "USER[:GROUP]", 0, "owner of the buffer (default: the caller)", 0 },
	{ "mode", 'm', "OCTAL", 0, "permission bits (default: those of /dev/rashpa/memory)", 0 },
	{ "exist-ok", OPT_EXIST_OK, NULL, 0, "succeed if the same buffer exists already", 0 },
	OPTION_JSON,
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct create *c = state->input;
	unsigned int number;
	uint64_t size;

	switch (key) {
	case OPT_NODE:
		option_node(state, arg, &c->alloc.node);
		c->alloc.head.flags |= RASHPA_ALLOC_NODE;
		break;
	case OPT_FOR:
		option_fpga(state, "--for", arg, &number);
		c->fpga = number;
		break;
	case OPT_BACKEND:
		option_backend(state, arg, &c->alloc.backend);
		break;
	case OPT_HUGE:
	case 'a':
		if (!parse_size(arg, &size) || (size & (size - 1)))
			argp_error(state, "%s: \"%s\" is not a power of two",
				   key == 'a' ? "--align" : "--huge", arg);
		if (key == 'a')
			c->alloc.alignment = size;
		else
			c->huge = size;
		break;
	case OPT_CACHE:
		c->alloc.cache = RASHPA_CACHE_CACHED + option_word(state, "--cache", arg, "cached|wc|uc");
		break;
	case 'o':
		option_owner(state, arg, &c->owner);
		break;
	case 'm':
		option_mode(state, arg, &c->alloc.mode);
		c->alloc.head.flags |= RASHPA_ALLOC_MODE;
		break;
	case OPT_EXIST_OK:
		c->exist_ok = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			option_buffer(state, arg, c->alloc.name);
		else if (state->arg_num > 1)
			return ARGP_ERR_UNKNOWN;
		else if (!parse_size(arg, &size) || !size)
			argp_error(state,
				   "\"%s\" is not a size: write bytes, or a number with K, M, G or T",
				   arg);
		else
			c->alloc.length = size;
		break;
	case ARGP_KEY_END:
		if (state->arg_num < 2)
			argp_error(state, "give NAME and SIZE");
		if (c->huge && c->fpga >= 0)
			argp_error(state, "--for excludes --huge, as the pool decides where huge pages are: give --node instead");
		if (c->huge && c->alloc.backend)
			argp_error(state, "--huge: omit --backend, huge pages have none");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* The buffer did not fit: print a size that would. */
static void advise(int memory, const struct rashpa_alloc *alloc, bool refused)
{
	const struct question question = {
		.size = alloc->length,
		.node = alloc->node,
		.backend = alloc->backend,
		.has_node = alloc->head.flags & RASHPA_ALLOC_NODE,
		.refused = refused,
	};
	struct answer answer[2];
	unsigned int n = ask(memory, &question, answer);
	struct json_object *lines = explain_answers(&question, answer, n);
	char fit[SIZE_TEXT];

	for (size_t i = 0; i < json_object_array_length(lines); i++)
		say("%s", json_object_get_string(json_object_array_get_idx(lines, i)));
	/* memory that looked free but could not be allocated is no remedy */
	if (!refused)
		say("would fit: %s at most", format_size(fit, would_fit(answer, n)));
	json_object_put(lines);
}

struct json_object *create_json(const struct create *c)
{
	const struct rashpa_alloc *a = &c->alloc;
	struct json_object *o = json_object_new_object();

	put_text(o, "name", a->name);
	put_u64(o, "length_bytes", a->out_length);
	put_int(o, "segments", a->out_segments);
	put_text(o, "backend", rashpa_backend_name(a->out_backend));
	put_int(o, "numa_node", a->out_node);
	put_bool(o, "existed", c->existed);
	return o;
}

int create_tell(const struct create *c)
{
	const struct rashpa_alloc *a = &c->alloc;
	char size[SIZE_TEXT];

	if (command_json)
		return json_finish(create_json(c));
	printf("%s: %s, %s, node %" PRId32 "%s\n", a->name, format_size(size, a->out_length),
	       rashpa_backend_name(a->out_backend), a->out_node, c->existed ? ", existed" : "");
	return 0;
}

/* First difference of an existing buffer from the requested one; NULL: none. */
static const char *difference(const struct rashpa_alloc *want, uint64_t huge,
			      const struct rashpa_info *have)
{
	const uint64_t page = huge ? huge : (uint64_t)sysconf(_SC_PAGESIZE);

	if (have->out_kind != RASHPA_KIND_BUFFER)
		return "kind";
	if (huge && (have->out_backend != RASHPA_BACKEND_HUGE || have->out_page_size != huge))
		return "huge pages";
	/* the driver rounds up to pages */
	if (have->out_length != (want->length + page - 1) / page * page)
		return "size";
	if (want->head.flags & RASHPA_ALLOC_NODE && have->out_node != (int32_t)want->node)
		return "node";
	if (want->backend != RASHPA_BACKEND_AUTO && have->out_backend != want->backend)
		return "backend";
	if (have->out_cache != (want->cache ? want->cache : RASHPA_CACHE_CACHED))
		return "cache";
	return NULL;
}

/* Owner and mode are kept: they may have been changed on purpose. */
static int settle_for(struct create *c)
{
	struct rashpa_alloc *alloc = &c->alloc;
	int fd = rashpa_buffer_open(alloc->name, O_ACCMODE);
	struct rashpa_info info = { .fd = -1 };
	char have[SIZE_TEXT], want[SIZE_TEXT];
	const char *what;
	int error = fd < 0 ? fd : rashpa_memory_get_info(fd, &info);

	if (fd >= 0)
		close(fd);
	if (error)
		return fail("buffer %s exists, and its properties cannot be read: %s", alloc->name,
			    rashpa_reason());
	what = difference(alloc, c->huge, &info);
	if (what)
		return fail("buffer %s exists (%s), and differs from the requested one (%s): %s: remove it first (rashpactl buffer remove %s), or request the same",
			    alloc->name, format_size(have, info.out_length),
			    format_size(want, alloc->length), what, alloc->name);
	/* the user that made it may have it open, whatever its mode becomes */
	if (info.out_uid && info.out_uid != geteuid() && info.out_uid != c->owner.uid)
		return fail("buffer %s exists, and user %u, its creator, can read and write it: remove it first (rashpactl buffer remove %s), or request that owner",
			    alloc->name, info.out_uid, alloc->name);
	c->existed = true;
	alloc->out_length = info.out_length;
	alloc->out_segments = info.out_segments;
	alloc->out_backend = info.out_backend;
	alloc->out_node = info.out_node;
	return 0;
}

int create_buffer(int memory, struct create *c)
{
	struct rashpa_alloc *alloc = &c->alloc;
	char size[SIZE_TEXT], what[RASHPA_NAME_SIZE + SIZE_TEXT + 16];
	const bool give = c->owner.uid != (uint32_t)-1 || c->owner.gid != (uint32_t)-1;
	const int device = c->fpga < 0 ? -1 : rashpa_device_open(c->fpga);
	struct follow follow;
	int fd, result = 0;

	if (c->fpga >= 0 && device < 0)
		return fail("%s", rashpa_reason());

	/* the pool may have no pages for another one */
	fd = c->huge && c->exist_ok ? rashpa_buffer_open(alloc->name, O_ACCMODE) : -1;
	if (fd >= 0) {
		close(fd);
		return settle_for(c);
	}
	/* Until the new owner is set, no other process may open it. */
	if (give)
		alloc->head.flags |= RASHPA_ALLOC_EXCLUSIVE;
	snprintf(what, sizeof(what), "buffer %s of %s", alloc->name,
		 format_size(size, alloc->length));
	follow_begin(&follow, what);
	if (c->huge)
		fd = rashpa_memory_alloc_huge(memory, c->huge, alloc);
	else if (c->fpga < 0)
		fd = rashpa_memory_alloc(memory, alloc);
	else
		fd = rashpa_memory_alloc_for(memory, device, alloc);
	follow_end(&follow);
	if (device >= 0)
		close(device);
	if (fd == -EEXIST && c->exist_ok)
		return settle_for(c);
	if (fd < 0) {
		result = fail("buffer %s of %s: %s", alloc->name, format_size(size, alloc->length),
			      rashpa_reason());
		if (!c->huge && (fd == -ENOMEM || fd == -EDQUOT))
			advise(memory, alloc, fd == -ENOMEM);
		return result;
	}
	if (give)
		result = apply_owner(alloc->name, &c->owner);
	close(fd);
	/* Remove the buffer rather than leave it to the wrong owner. */
	if (result && rashpa_buffer_remove(alloc->name))
		say("buffer %s: %s", alloc->name, rashpa_reason());
	return result;
}

int cmd_buffer_create(int argc, char **argv)
{
	static const struct argp argp = { .options = options, .parser = parse };
	struct create c = { .owner = OWNER_NONE, .fpga = -1 };
	int memory, result;

	command_parse(&argp, argc, argv, &c);
	memory = rashpa_memory_open();
	if (memory < 0)
		return fail("%s", rashpa_reason());
	result = create_buffer(memory, &c);
	close(memory);
	return result ? result : create_tell(&c);
}
