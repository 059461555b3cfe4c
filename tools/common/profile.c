// SPDX-License-Identifier: LGPL-2.1-or-later
#include "profile.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parse.h"
#include "rashpa.h"
#include "say.h"

#ifndef PROFILE_DIR
#define PROFILE_DIR	"/usr/local/share/rashpa/profiles.d"
#endif

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define PAGE		4096
#define FILE_MAX	(1 << 20)

/* Where we are in the file, for messages. */
struct place {
	const char *path;
	char key[256];
	char *why;
};

__attribute__((format(printf, 2, 3)))
static int wrong(struct place *at, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return because(at->why, -1, "%s: %s: %s", at->path, at->key, text);
}

typedef int (*reader)(struct place *at, struct json_object *value, void *to);

/* One key of an object: who reads it, where to. */
struct key {
	const char *name;
	bool required;
	reader read;
	void *to;
};

/* Go one step down: key or [index]; returns what to pass to leave(). */
static size_t enter(struct place *at, const char *key, int index)
{
	size_t length = strlen(at->key);

	if (key)
		snprintf(at->key + length, sizeof(at->key) - length, "%s%s", length ? "." : "",
			 key);
	else
		snprintf(at->key + length, sizeof(at->key) - length, "[%d]", index);
	return length;
}

static void leave(struct place *at, size_t length)
{
	at->key[length] = '\0';
}

static int read_object(struct place *at, struct json_object *object, const struct key *keys,
		       size_t n_keys)
{
	const struct key *k;
	size_t back;

	if (!json_object_is_type(object, json_type_object))
		return wrong(at, "must be an object");
	json_object_object_foreach(object, name, value) {
		for (k = keys; k < keys + n_keys && strcmp(k->name, name); k++)
			;
		back = enter(at, name, 0);
		if (k == keys + n_keys)
			return wrong(at, "unknown key");
		if (k->read(at, value, k->to))
			return -1;
		leave(at, back);
	}
	for (k = keys; k < keys + n_keys; k++) {
		if (k->required && !json_object_object_get_ex(object, k->name, NULL)) {
			enter(at, k->name, 0);
			return wrong(at, "is missing");
		}
	}
	return 0;
}

/* An array: read each element into the next place of an array. */
static int read_array(struct place *at, struct json_object *array, reader read, void *to,
		      size_t size, unsigned int max, unsigned int *count)
{
	size_t n, back;

	if (!json_object_is_type(array, json_type_array))
		return wrong(at, "must be an array");
	n = json_object_array_length(array);
	if (n > max)
		return wrong(at, "has %zu entries, at most %u are allowed", n, max);
	for (size_t i = 0; i < n; i++) {
		back = enter(at, NULL, i);
		if (read(at, json_object_array_get_idx(array, i), (char *)to + i * size))
			return -1;
		leave(at, back);
	}
	*count = n;
	return 0;
}

/* A number, or a string: "0x10", "32K". */
static int read_u64(struct place *at, struct json_object *value, void *to)
{
	int64_t number;

	switch (json_object_get_type(value)) {
	case json_type_int:
		number = json_object_get_int64(value);
		if (number < 0)
			return wrong(at, "must not be negative");
		*(uint64_t *)to = number;
		return 0;
	case json_type_string:
		if (parse_size(json_object_get_string(value), to))
			return 0;
		return wrong(at, "\"%s\" is not a number", json_object_get_string(value));
	default:
		return wrong(at, "must be a number, or a string with one (\"0x10\", \"32K\")");
	}
}

static int read_u32(struct place *at, struct json_object *value, void *to)
{
	uint64_t number = 0;

	if (read_u64(at, value, &number))
		return -1;
	if (number > UINT32_MAX)
		return wrong(at, "does not fit into 32 bits");
	*(uint32_t *)to = number;
	return 0;
}

static int read_bool(struct place *at, struct json_object *value, void *to)
{
	if (!json_object_is_type(value, json_type_boolean))
		return wrong(at, "must be true or false");
	*(bool *)to = json_object_get_boolean(value);
	return 0;
}

static int read_text(struct place *at, struct json_object *value, char *to, size_t size)
{
	if (!json_object_is_type(value, json_type_string))
		return wrong(at, "must be a string");
	if (!json_object_get_string_len(value))
		return wrong(at, "must not be empty");
	if ((size_t)json_object_get_string_len(value) >= size)
		return wrong(at, "is longer than %zu bytes", size - 1);
	memset(to, 0, size);
	strcpy(to, json_object_get_string(value));
	return 0;
}

static int read_name(struct place *at, struct json_object *value, void *to)
{
	return read_text(at, value, to, RASHPA_PROFILE_NAME_SIZE);
}

/* What the driver takes for the name of a window. */
static int read_window_name(struct place *at, struct json_object *value, void *to)
{
	if (read_name(at, value, to))
		return -1;
	return name_possible(to) ? 0 : wrong(at, "must be letters, digits and . _ -, and not begin with a dot");
}

static int read_title(struct place *at, struct json_object *value, void *to)
{
	return read_text(at, value, to, sizeof(((struct profile *)0)->name));
}

static int read_comment(struct place *at, struct json_object *value, void *to)
{
	(void)to;
	return json_object_is_type(value, json_type_string) ? 0 : wrong(at, "must be a string");
}

static int read_bar(struct place *at, struct json_object *value, void *to)
{
	if (read_u32(at, value, to))
		return -1;
	return *(uint32_t *)to < RASHPA_BARS ? 0 : wrong(at, "must be 0 to %d", RASHPA_BARS - 1);
}

static int read_id(struct place *at, struct json_object *value, void *to)
{
	if (read_u32(at, value, to))
		return -1;
	return *(uint32_t *)to <= 0xffff ? 0 : wrong(at, "is not a PCI id (0 to 0xffff)");
}

static int read_reset(struct place *at, struct json_object *value, void *to)
{
	bool reset = true;

	if (read_bool(at, value, &reset))
		return -1;
	*(bool *)to = !reset;
	return 0;
}

static int read_match(struct place *at, struct json_object *value, void *to)
{
	uint32_t *match = to;
	const struct key keys[] = {
		{ "vendor", true, read_id, &match[0] },
		{ "device", true, read_id, &match[1] },
	};

	return read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int read_matches(struct place *at, struct json_object *value, void *to)
{
	struct profile *p = to;

	if (read_array(at, value, read_match, p->match, sizeof(p->match[0]),
		       PROFILE_MATCHES_MAX, &p->n_matches))
		return -1;
	return p->n_matches ? 0 : wrong(at, "names no device");
}

static int read_cache(struct place *at, struct json_object *value, void *to)
{
	const char *text = json_object_get_string(value);

	if (!json_object_is_type(value, json_type_string))
		return wrong(at, "must be a string");
	for (uint32_t i = RASHPA_CACHE_DEFAULT; i <= RASHPA_CACHE_UC; i++) {
		if (i != RASHPA_CACHE_CACHED && !strcmp(text, rashpa_cache_name(i))) {
			*(uint32_t *)to = i;
			return 0;
		}
	}
	return wrong(at, "\"%s\" is not one of default, wc, uc", text);
}

static int read_page(struct place *at, struct json_object *value, void *to)
{
	if (read_u64(at, value, to))
		return -1;
	return *(uint64_t *)to % PAGE ? wrong(at, "must be a multiple of %d", PAGE) : 0;
}

static int read_power(struct place *at, struct json_object *value, void *to)
{
	uint64_t *n = to;

	if (read_u64(at, value, to))
		return -1;
	return *n & (*n - 1) ? wrong(at, "must be a power of two, or 0 for none") : 0;
}

static int read_boundary(struct place *at, struct json_object *value, void *to)
{
	return read_page(at, value, to) || read_power(at, value, to);
}

static int read_window(struct place *at, struct json_object *value, void *to)
{
	struct rashpa_profile_window *w = to;
	bool user = false;
	const struct key keys[] = {
		{ "name", true, read_window_name, w->name },
		{ "description", false, read_comment, NULL },
		{ "bar", true, read_bar, &w->bar },
		{ "offset", false, read_page, &w->offset },
		{ "length", true, read_page, &w->length },
		{ "cache", false, read_cache, &w->cache },
		{ "user", false, read_bool, &user },
	};

	if (read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	w->flags = user ? RASHPA_PWINDOW_USER : 0;
	return 0;
}

static int read_windows(struct place *at, struct json_object *value, void *to)
{
	struct profile *p = to;

	if (read_array(at, value, read_window, p->window, sizeof(p->window[0]),
		       RASHPA_PROFILE_WINDOWS_MAX, &p->n_windows))
		return -1;
	for (unsigned int i = 1; i < p->n_windows; i++) {
		for (unsigned int j = 0; j < i; j++) {
			if (strcmp(p->window[i].name, p->window[j].name))
				continue;
			enter(at, NULL, i);
			return wrong(at, "the name \"%s\" is given twice", p->window[i].name);
		}
	}
	return 0;
}

static int read_register(struct place *at, struct json_object *value, void *to)
{
	if (read_u64(at, value, to))
		return -1;
	return *(uint64_t *)to % 4 ? wrong(at, "must be a multiple of 4") : 0;
}

static int read_timeout(struct place *at, struct json_object *value, void *to)
{
	uint32_t ms = 0;

	if (read_u32(at, value, &ms))
		return -1;
	if (ms < 1 || ms > RASHPA_QUIESCE_US_MAX / 1000)
		return wrong(at, "must be 1 to %d milliseconds", RASHPA_QUIESCE_US_MAX / 1000);
	*(uint32_t *)to = ms * 1000;
	return 0;
}

static int read_write_step(struct place *at, struct json_object *value, void *to)
{
	struct rashpa_profile_step *s = to;
	const struct key keys[] = {
		{ "bar", true, read_bar, &s->bar },
		{ "offset", true, read_register, &s->offset },
		{ "value", true, read_u32, &s->value },
		{ "mask", false, read_u32, &s->mask },
	};

	s->op = RASHPA_STEP_WRITE;
	s->mask = UINT32_MAX;
	return read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int read_wait_step(struct place *at, struct json_object *value, void *to)
{
	struct rashpa_profile_step *s = to;
	const struct key keys[] = {
		{ "bar", true, read_bar, &s->bar },
		{ "offset", true, read_register, &s->offset },
		{ "value", true, read_u32, &s->value },
		{ "mask", false, read_u32, &s->mask },
		{ "timeout_ms", true, read_timeout, &s->timeout_us },
	};

	s->op = RASHPA_STEP_WAIT;
	s->mask = UINT32_MAX;
	if (read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	if (s->value & ~s->mask)
		return wrong(at, "value has bits outside the mask: that never comes");
	return 0;
}

static int read_step(struct place *at, struct json_object *value, void *to)
{
	const struct key keys[] = {
		{ "write", false, read_write_step, to },
		{ "wait", false, read_wait_step, to },
	};

	if (json_object_is_type(value, json_type_object) && json_object_object_length(value) != 1)
		return wrong(at, "must be one of {\"write\": ...} and {\"wait\": ...}");
	return read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int read_steps(struct place *at, struct json_object *value, void *to)
{
	struct profile *p = to;

	const struct rashpa_profile_step *last;

	if (read_array(at, value, read_step, p->step, sizeof(p->step[0]),
		       RASHPA_PROFILE_STEPS_MAX, &p->n_steps))
		return -1;
	last = &p->step[p->n_steps ? p->n_steps - 1 : 0];
	if (!p->n_steps || (last->op == RASHPA_STEP_WAIT && last->mask))
		return 0;
	enter(at, NULL, p->n_steps - 1);
	return wrong(at, "the last step must wait for a bit that says that nothing is in flight");
}

static int read_vectors(struct place *at, struct json_object *value, void *to)
{
	struct profile *p = to;

	return read_array(at, value, read_name, p->vector, sizeof(p->vector[0]),
			  PROFILE_VECTORS_MAX, &p->n_vectors);
}

static int read_limits(struct place *at, struct json_object *value, void *to)
{
	struct profile *p = to;
	const struct key keys[] = {
		{ "max_length", false, read_page, &p->max_segment },
		{ "boundary", false, read_boundary, &p->boundary },
		{ "alignment", false, read_power, &p->alignment },
	};

	return read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int read_dma_bits(struct place *at, struct json_object *value, void *to)
{
	if (read_u32(at, value, to))
		return -1;
	if (*(uint32_t *)to < 24 || *(uint32_t *)to > 64)
		return wrong(at, "must be 24 to 64");
	return 0;
}

/* A field of a table entry: address, length, control or sum. */
struct field {
	uint32_t *offset, *bits;
	bool narrow;		/* 32 bits only */
	uint32_t *set, *clear;	/* NULL: it has no such values */
};

static int read_field(struct place *at, struct json_object *value, void *to)
{
	const struct field *f = to;
	const struct key keys[] = {
		{ "offset", true, read_u32, f->offset },
		{ "bits", true, read_u32, f->bits },
		{ "set", true, read_u32, f->set },
		{ "clear", true, read_u32, f->clear },
	};

	if (read_object(at, value, keys, f->set ? 4 : 2))
		return -1;
	if (*f->bits == 32 || (*f->bits == 64 && !f->narrow))
		return 0;
	return wrong(at, "bits must be 32%s", f->narrow ? "" : " or 64");
}

/* Inside the entry, and apart from each other. */
static int check_fields(struct place *at, const struct field *const field[], size_t n,
			uint32_t stride)
{
	for (size_t i = 0; i < n; i++) {
		const uint32_t offset = *field[i]->offset, size = *field[i]->bits / 8;

		if (offset % 4 || offset > stride || size > stride - offset)
			return wrong(at, "a field of %" PRIu32 " bits at %" PRIu32
				     " is crooked, or outside the stride of %" PRIu32,
				     *field[i]->bits, offset, stride);
		for (size_t j = 0; j < i; j++) {
			if (size && *field[j]->bits &&
			    offset < *field[j]->offset + *field[j]->bits / 8 &&
			    *field[j]->offset < offset + size)
				return wrong(at, "two fields overlap at %" PRIu32, offset);
		}
	}
	return 0;
}

static int read_table(struct place *at, struct json_object *value, void *to)
{
	struct profile *p = to;
	struct rashpa_layout *l = &p->table.layout;
	struct field address = { .offset = &l->address_offset, .bits = &l->address_bits };
	struct field length = { .offset = &l->length_offset, .bits = &l->length_bits };
	struct field control = {
		.offset = &l->control_offset, .bits = &l->control_bits, .narrow = true,
		.set = &l->control_set, .clear = &l->control_clear,
	};
	struct field sum = { .offset = &l->sum_offset, .bits = &l->sum_bits };
	const struct field *const fields[] = { &address, &length, &control, &sum };
	const struct key keys[] = {
		{ "window", true, read_name, p->table.window },
		{ "offset", false, read_register, &p->table.offset },
		{ "length", true, read_register, &p->table.length },
		{ "stride", true, read_u32, &l->stride },
		{ "address", true, read_field, &address },
		{ "length_field", false, read_field, &length },
		{ "segment_size", false, read_u64, &l->segment_size },
		{ "control", false, read_field, &control },
		{ "sum", false, read_field, &sum },
	};

	if (read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	if (!l->stride || l->stride % 4 || l->stride > PAGE)
		return wrong(at, "stride must be a multiple of 4 up to %d", PAGE);
	if (l->length_bits && l->segment_size)
		return wrong(at, "has both length_field and segment_size");
	if (!l->length_bits && !l->control_bits)
		return wrong(at, "has neither length_field nor control: an entry could not be made invalid");
	if (!l->length_bits &&
	    (l->segment_size < PAGE || l->segment_size & (l->segment_size - 1)))
		return wrong(at, "has no length_field: segment_size must be a power of two, at least %d, as long as the board takes an entry to be",
			     PAGE);
	if (l->control_bits && l->control_set == l->control_clear)
		return wrong(at, "control: set and clear are the same: an entry could not be made invalid");
	if (!p->table.length)
		return wrong(at, "length must not be 0");
	if (check_fields(at, fields, ARRAY_SIZE(fields), l->stride))
		return -1;
	p->has_table = true;
	return 0;
}

/* What a range that begins here reaches; a length of 0 is to the end of the BAR. */
static uint64_t range_end(uint64_t offset, uint64_t length)
{
	uint64_t end;

	return !length || __builtin_add_overflow(offset, length, &end) ? UINT64_MAX : end;
}

/* The window of the table holds it, and no user's window reaches it. */
static int check_table(struct place *at, const struct profile *p)
{
	const struct rashpa_profile_window *t = NULL, *w;
	uint64_t begin, end;

	for (w = p->window; w < p->window + p->n_windows && !t; w++)
		t = strcmp(w->name, p->table.window) ? NULL : w;
	snprintf(at->key, sizeof(at->key), "table.window");
	if (!t)
		return wrong(at, "there is no window \"%s\"", p->table.window);
	begin = t->offset + p->table.offset;
	end = range_end(begin, p->table.length);
	if (begin < t->offset || end > range_end(t->offset, t->length))
		return wrong(at, "the table is outside the window \"%s\"", t->name);
	for (w = p->window; w < p->window + p->n_windows; w++) {
		if (w->flags & RASHPA_PWINDOW_USER && w->bar == t->bar && w->offset < end &&
		    begin < range_end(w->offset, w->length))
			return wrong(at, "the window \"%s\" is for users and overlaps the table",
				     w->name);
	}
	return 0;
}

static int read_profile(struct place *at, struct json_object *value, struct profile *p)
{
	const struct key keys[] = {
		{ "name", true, read_title, p->name },
		{ "description", false, read_comment, NULL },
		{ "match", true, read_matches, p },
		{ "disclose", false, read_bool, &p->disclose },
		{ "dma_bits", false, read_dma_bits, &p->dma_bits },
		{ "segments", false, read_limits, p },
		{ "windows", false, read_windows, p },
		{ "vectors", false, read_vectors, p },
		{ "quiesce", false, read_steps, p },
		{ "quiesce_ms", false, read_timeout, &p->quiesce_us },
		{ "reset", false, read_reset, &p->no_reset },
		{ "table", false, read_table, p },
	};
	struct json_object *match;
	size_t back;

	if (!json_object_is_type(value, json_type_object))
		return because(at->why, -1, "%s: must be one JSON object", at->path);
	/* First of all, so that a broken profile still says whose it is. */
	if (json_object_object_get_ex(value, "match", &match)) {
		back = enter(at, "match", 0);
		if (read_matches(at, match, p))
			return -1;
		leave(at, back);
	}
	if (read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	return p->has_table ? check_table(at, p) : 0;
}

static struct json_object *parse(const char *path, const char *text, size_t length, char *why)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *root;
	enum json_tokener_error error;
	size_t line = 1, end;

	if (!tokener) {
		because(why, 0, "%s: no memory", path);
		return NULL;
	}
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	/* The final NUL tells the parser that this is all. */
	root = json_tokener_parse_ex(tokener, text, length + 1);
	error = json_tokener_get_error(tokener);
	end = json_tokener_get_parse_end(tokener);
	if (error != json_tokener_success) {
		for (size_t i = 0; i < end && i < length; i++)
			line += text[i] == '\n';
		because(why, 0, "%s:%zu: not JSON: %s", path, line, json_tokener_error_desc(error));
		json_object_put(root);
		root = NULL;
	}
	json_tokener_free(tokener);
	return root;
}

static char *slurp(const char *path, size_t *length, char *why)
{
	FILE *file = fopen(path, "re");
	char *text = file ? malloc(FILE_MAX + 1) : NULL;

	if (!text) {
		because(why, 0, "%s: %s", path, strerror(errno));
	} else {
		*length = fread(text, 1, FILE_MAX, file);
		text[*length] = '\0';
		if (ferror(file) || *length == FILE_MAX || strlen(text) != *length) {
			because(why, 0, "%s: cannot be read, is not text, or is longer than 1 MiB",
				path);
			free(text);
			text = NULL;
		}
	}
	if (file)
		fclose(file);
	return text;
}

int profile_load(struct profile *profile, const char *path, char *why)
{
	struct place at = { .path = path, .why = why };
	struct json_object *root;
	size_t length;
	char *text;
	int result;

	*profile = (struct profile) {};
	snprintf(profile->path, sizeof(profile->path), "%s", path);
	text = slurp(path, &length, why);
	if (!text)
		return -1;
	root = parse(path, text, length, why);
	free(text);
	if (!root)
		return -1;
	result = read_profile(&at, root, profile);
	json_object_put(root);
	return result;
}

bool profile_matches(const struct profile *profile, uint32_t vendor, uint32_t device)
{
	for (unsigned int i = 0; i < profile->n_matches; i++) {
		if (profile->match[i].vendor == vendor && profile->match[i].device == device)
			return true;
	}
	return false;
}

static int is_json(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && !fnmatch("*.json", entry->d_name, 0);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Once a program: profiles are looked up for many functions. */
static void warn(const char *why)
{
	static void *said;
	char *text = strdup(why);
	char **node = text ? tsearch(text, &said, by_text) : NULL;

	if (node && *node == text)
		say("%s (no profile until that is put right)", why);
	else
		free(text);
}

/* 1 it is this function's, 0 it is not, -1 it would be but is broken. */
static int try_file(struct profile *profile, const char *path, uint32_t vendor, uint32_t device,
		    char *why)
{
	const int error = profile_load(profile, path, why);

	if (profile_matches(profile, vendor, device))
		return error ? error : 1;
	if (error)
		warn(why);
	return 0;
}

static int find_in(struct profile *profile, const char *dir, uint32_t vendor, uint32_t device,
		   char *why)
{
	struct dirent **entries;
	char path[512];
	int n = scandir(dir, &entries, is_json, alphasort);
	int result = 0;

	if (n < 0)
		return errno == ENOENT ? 0 : because(why, -1, "%s: %s", dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		if (!result) {
			const char *name = entries[i]->d_name;

			if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
				result = because(why, -1, "%s: the path is too long", dir);
			else
				result = try_file(profile, path, vendor, device, why);
		}
		free(entries[i]);
	}
	free(entries);
	return result;
}

int profile_find(struct profile *profile, uint32_t vendor, uint32_t device, char *why)
{
	const char *more = secure_getenv("RASHPA_PROFILES");
	char dirs[4096], *rest = dirs, *dir;
	int result = 0;

	snprintf(dirs, sizeof(dirs), "%s:/etc/rashpa/profiles.d:" PROFILE_DIR, more ? more : "");
	while (!result && (dir = strsep(&rest, ":"))) {
		if (*dir)
			result = find_in(profile, dir, vendor, device, why);
	}
	return result;
}

int profile_apply(const struct profile *profile, int device, char *why)
{
	struct rashpa_profile_window window[RASHPA_PROFILE_WINDOWS_MAX];
	struct rashpa_profile_table table = {
		.length = profile->table.length,
		.layout = (uintptr_t)&profile->table.layout,
		.layout_size = sizeof(profile->table.layout),
	};
	struct rashpa_profile_set arg = {
		.head.flags = (profile->disclose ? RASHPA_PROFILE_DISCLOSE : 0) |
			      (profile->no_reset ? RASHPA_PROFILE_NO_RESET : 0),
		.windows = (uintptr_t)window,
		.n_windows = profile->n_windows,
		.window_size = sizeof(window[0]),
		.steps = (uintptr_t)profile->step,
		.n_steps = profile->n_steps,
		.step_size = sizeof(profile->step[0]),
		.tables = (uintptr_t)&table,
		.n_tables = profile->has_table,
		.table_size = sizeof(table),
		.dma_bits = profile->dma_bits,
		.quiesce_us = profile->quiesce_us,
		.max_segment = profile->max_segment,
		.boundary = profile->boundary,
		.alignment = profile->alignment,
	};
	struct rashpa_region_info region;

	memcpy(window, profile->window, sizeof(window));
	for (unsigned int i = 0; i < profile->n_windows; i++) {
		struct rashpa_profile_window *w = &window[i];

		if (w->length)
			continue;
		if (rashpa_device_region(device, w->bar, &region))
			return because(why, -1, "%s: window \"%s\": BAR %u: %s", profile->path,
				       w->name, w->bar, rashpa_reason());
		if (region.out_length <= w->offset)
			return because(why, -1, "%s: window \"%s\" begins at %" PRIu64
				       ", but BAR %u has %" PRIu64 " bytes",
				       profile->path, w->name, (uint64_t)w->offset, w->bar,
				       (uint64_t)region.out_length);
		w->length = region.out_length - w->offset;
	}
	for (unsigned int i = 0; profile->has_table && i < profile->n_windows; i++) {
		if (strcmp(window[i].name, profile->table.window))
			continue;
		if (profile->table.offset > window[i].length ||
		    profile->table.length > window[i].length - profile->table.offset)
			return because(why, -1, "%s: the table is outside the window \"%s\"",
				       profile->path, profile->table.window);
		table.bar = window[i].bar;
		table.offset = window[i].offset + profile->table.offset;
	}
	if (rashpa_device_profile(device, &arg))
		return because(why, -1, "%s: %s", profile->path, rashpa_reason());
	return 0;
}
