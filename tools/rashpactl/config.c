// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/config.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json-in.h"
#include "common/parse.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"

#define CONFIG_DIR	"/etc/rashpa"
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MOST		1024u	/* entries of one file */

/* --- values --- */

static int read_name(struct json_place *at, struct json_object *value, void *to)
{
	if (json_read_text(at, value, to, RASHPA_NAME_SIZE))
		return -1;
	return name_possible(to) ? 0 : json_wrong(at, "must be letters, digits and . _ -, and not begin with a dot");
}

static int read_size(struct json_place *at, struct json_object *value, void *to)
{
	if (json_read_u64(at, value, to))
		return -1;
	return *(uint64_t *)to ? 0 : json_wrong(at, "must not be 0");
}

static int read_align(struct json_place *at, struct json_object *value, void *to)
{
	const uint64_t *n = to;

	if (json_read_u64(at, value, to))
		return -1;
	return *n & (*n - 1) ? json_wrong(at, "is not a power of two") : 0;
}

/* A word from a list of names of the library. */
static int read_word(struct json_place *at, struct json_object *value, uint32_t *to,
		     const char *(*name)(unsigned int n), uint32_t first, uint32_t last)
{
	const char *words[8] = {};

	for (uint32_t n = first; n <= last; n++)
		words[n - first] = name(n);
	if (json_read_word(at, value, words, to))
		return -1;
	*to += first;
	return 0;
}

static int read_backend(struct json_place *at, struct json_object *value, void *to)
{
	return read_word(at, value, to, rashpa_backend_name, RASHPA_BACKEND_AUTO,
			 RASHPA_BACKEND_CONTIG);
}

static int read_cache(struct json_place *at, struct json_object *value, void *to)
{
	return read_word(at, value, to, rashpa_cache_name, RASHPA_CACHE_CACHED, RASHPA_CACHE_UC);
}

static int read_node(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_alloc *alloc = to;

	if (json_read_u32(at, value, &alloc->node))
		return -1;
	alloc->head.flags |= RASHPA_ALLOC_NODE;
	return 0;
}

static int read_owner(struct json_place *at, struct json_object *value, void *to)
{
	char text[256], why[WHY_SIZE];

	if (json_read_text(at, value, text, sizeof(text)))
		return -1;
	return parse_owner(text, to, why) ? json_wrong(at, "%s", why) : 0;
}

static int read_mode(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_alloc *alloc = to;
	char text[16];

	/* must be a string: the number 660 would be decimal */
	if (json_read_text(at, value, text, sizeof(text)))
		return -1;
	if (!parse_mode(text, &alloc->mode))
		return json_wrong(at, "\"%s\" is not a mode from 0 to 0666, in octal", text);
	alloc->head.flags |= RASHPA_ALLOC_MODE;
	return 0;
}

/*
 * Early at boot the nodes do not belong to the group yet, so a buffer cannot inherit it from them:
 * set it here.
 */
static int read_buffer(struct json_place *at, struct json_object *value, void *to)
{
	const struct group *group = getgrnam("rashpa");
	struct config_buffer *b = to;
	struct rashpa_alloc *a = &b->create.alloc;
	const struct json_key keys[] = {
		{ "name", true, read_name, a->name },
		{ "size", true, read_size, &a->length },
		{ "description", false, json_read_comment, NULL },
		{ "node", false, read_node, a },
		{ "dma_bits", false, json_read_u32, &a->dma_bits },
		{ "backend", false, read_backend, &a->backend },
		{ "huge", false, read_align, &b->create.huge },
		{ "align", false, read_align, &a->alignment },
		{ "cache", false, read_cache, &a->cache },
		{ "owner", false, read_owner, &b->create.owner },
		{ "mode", false, read_mode, a },
	};

	*b = (struct config_buffer) {
		.create = { .owner = OWNER_NONE, .fpga = -1, .exist_ok = true },
		.file = at->path,
	};
	if (group)
		b->create.owner.gid = group->gr_gid;
	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	return b->create.huge && a->backend ? json_wrong(at, "has both backend and huge") : 0;
}

static int read_function(struct json_place *at, struct json_object *value, void *to)
{
	struct config_board *b = to;
	int end = 0;

	if (json_read_text(at, value, b->what, sizeof(b->what)))
		return -1;
	if (parse_bdf(b->what, b->bdf))
		return 0;
	if (sscanf(b->what, "%4x:%4x%n", &b->vendor, &b->device, &end) == 2 && !b->what[end])
		return 0;
	return json_wrong(at, "\"%s\" is neither BDF (0000:01:00.0) nor VENDOR:DEVICE (1234:5250)",
			  b->what);
}

static int read_profile(struct json_place *at, struct json_object *value, void *to)
{
	struct config_board *b = to;

	return json_read_text(at, value, b->profile, sizeof(b->profile));
}

static int read_board(struct json_place *at, struct json_object *value, void *to)
{
	struct config_board *b = to;
	const struct json_key keys[] = {
		{ "function", true, read_function, b },
		{ "description", false, json_read_comment, NULL },
		{ "profile", false, read_profile, b },
		{ "take", false, json_read_bool, &b->take },
	};

	*b = (struct config_board) { .file = at->path };
	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

/* --- files --- */

/* One folder: entries of one kind, below one key, appended to those of other folders. */
struct kind {
	const char *folder, *key;
	json_reader read;
	size_t size;
	void **list;
	unsigned int *n;
};

/* Append the list of one file. */
static int read_list(struct json_place *at, struct json_object *value, void *to)
{
	const struct kind *k = to;
	unsigned int more = 0;
	size_t room = json_object_is_type(value, json_type_array) ?
		      json_object_array_length(value) : 0;
	void *list;

	if (room > MOST)
		return json_wrong(at, "has %zu entries, at most %u are allowed", room, MOST);
	list = reallocarray(*k->list, *k->n + room + 1, k->size);
	if (!list)
		return json_wrong(at, "no memory");
	*k->list = list;
	if (json_read_array(at, value, k->read, (char *)list + *k->n * k->size, k->size, MOST,
			    &more))
		return -1;
	*k->n += more;
	return 0;
}

/* Keep the name of the file as long as its entries. */
static int read_file(const struct kind *k, const char *path)
{
	char why[WHY_SIZE];
	struct json_place at = { .path = path, .why = why };
	const struct json_key keys[] = { { k->key, true, read_list, (void *)k } };
	struct json_object *root = json_parse_file(path, why);
	int result = root ? json_read_object(&at, root, keys, 1) : -1;

	json_object_put(root);
	if (result)
		say("%s", why);
	return result;
}

static int is_conf(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && !fnmatch("*.conf", entry->d_name, 0);
}

static void read_folder(struct config *config, const struct kind *k)
{
	const char *top = secure_getenv("RASHPA_CONFIG");
	struct dirent **entries;
	char dir[512], *path, **paths;
	int n;

	snprintf(dir, sizeof(dir), "%s/%s", top && *top ? top : CONFIG_DIR, k->folder);
	n = scandir(dir, &entries, is_conf, alphasort);
	if (n < 0 && errno != ENOENT) {
		say("%s: %s", dir, strerror(errno));
		config->broken++;
	}
	paths = n > 0 ? reallocarray(config->path, config->n_paths + n, sizeof(*paths)) : NULL;
	if (paths)
		config->path = paths;
	for (int i = 0; i < n; i++) {
		if (!paths || asprintf(&path, "%s/%s", dir, entries[i]->d_name) < 0) {
			say("%s/%s: no memory", dir, entries[i]->d_name);
			config->broken++;
		} else {
			config->path[config->n_paths++] = path;
			if (read_file(k, path))
				config->broken++;
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

/* A repeated name is an error, else the first one would silently win. */
static void check_names(struct config *config)
{
	for (unsigned int i = 0; i < config->n_buffers; i++) {
		const struct config_buffer *b = &config->buffer[i], *other;

		for (other = config->buffer; other < b; other++) {
			if (strcmp(other->create.alloc.name, b->create.alloc.name))
				continue;
			say("%s: the buffer %s is in %s already", b->file, b->create.alloc.name,
			    other->file);
			config->broken++;
			break;
		}
	}
}

void config_load(struct config *config)
{
	const struct kind kinds[] = {
		{
			"buffers.d", "buffers", read_buffer, sizeof(*config->buffer),
			(void **)&config->buffer, &config->n_buffers,
		}, {
			"boards.d", "boards", read_board, sizeof(*config->board),
			(void **)&config->board, &config->n_boards,
		},
	};

	*config = (struct config) {};
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		read_folder(config, &kinds[i]);
	check_names(config);
}

void config_free(struct config *config)
{
	free(config->buffer);
	free(config->board);
	while (config->n_paths)
		free(config->path[--config->n_paths]);
	free(config->path);
	*config = (struct config) {};
}
