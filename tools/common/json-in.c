// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/json-in.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "common/say.h"

#define FILE_MAX	(1 << 20)

int json_wrong(struct json_place *at, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return because(at->why, -1, "%s: %s: %s", at->path, at->key, text);
}

/* Go one step down: key or [index]; returns what to pass to json_leave(). */
size_t json_enter(struct json_place *at, const char *key, int index)
{
	size_t length = strlen(at->key);

	if (key)
		snprintf(at->key + length, sizeof(at->key) - length, "%s%s", length ? "." : "",
			 key);
	else
		snprintf(at->key + length, sizeof(at->key) - length, "[%d]", index);
	return length;
}

void json_leave(struct json_place *at, size_t length)
{
	at->key[length] = '\0';
}

int json_read_object(struct json_place *at, struct json_object *object, const struct json_key *keys,
		       size_t n_keys)
{
	const struct json_key *k;
	size_t back;

	if (!json_object_is_type(object, json_type_object))
		return json_wrong(at, "must be an object");
	json_object_object_foreach(object, name, value) {
		for (k = keys; k < keys + n_keys && strcmp(k->name, name); k++)
			;
		back = json_enter(at, name, 0);
		if (k == keys + n_keys)
			return json_wrong(at, "unknown key");
		if (k->read(at, value, k->to))
			return -1;
		json_leave(at, back);
	}
	for (k = keys; k < keys + n_keys; k++) {
		if (k->required && !json_object_object_get_ex(object, k->name, NULL)) {
			json_enter(at, k->name, 0);
			return json_wrong(at, "is missing");
		}
	}
	return 0;
}

/* An array: read each element into the next place of an array. */
int json_read_array(struct json_place *at, struct json_object *array, json_reader read, void *to,
		      size_t size, unsigned int max, unsigned int *count)
{
	size_t n, back;

	if (!json_object_is_type(array, json_type_array))
		return json_wrong(at, "must be an array");
	n = json_object_array_length(array);
	if (n > max)
		return json_wrong(at, "has %zu entries, at most %u are allowed", n, max);
	for (size_t i = 0; i < n; i++) {
		back = json_enter(at, NULL, i);
		if (read(at, json_object_array_get_idx(array, i), (char *)to + i * size))
			return -1;
		json_leave(at, back);
	}
	*count = n;
	return 0;
}

/* A number, or a string: "0x10", "32K". */
int json_read_u64(struct json_place *at, struct json_object *value, void *to)
{
	int64_t number;

	switch (json_object_get_type(value)) {
	case json_type_int:
		number = json_object_get_int64(value);
		if (number < 0)
			return json_wrong(at, "must not be negative");
		*(uint64_t *)to = number;
		return 0;
	case json_type_string:
		if (parse_size(json_object_get_string(value), to))
			return 0;
		return json_wrong(at, "\"%s\" is not a number", json_object_get_string(value));
	default:
		return json_wrong(at, "must be a whole number, or a string with one (\"0x10\", \"32K\")");
	}
}

int json_read_u32(struct json_place *at, struct json_object *value, void *to)
{
	uint64_t number = 0;

	if (json_read_u64(at, value, &number))
		return -1;
	if (number > UINT32_MAX)
		return json_wrong(at, "does not fit into 32 bits");
	*(uint32_t *)to = number;
	return 0;
}

int json_read_bool(struct json_place *at, struct json_object *value, void *to)
{
	if (!json_object_is_type(value, json_type_boolean))
		return json_wrong(at, "must be true or false");
	*(bool *)to = json_object_get_boolean(value);
	return 0;
}

int json_read_text(struct json_place *at, struct json_object *value, char *to, size_t size)
{
	if (!json_object_is_type(value, json_type_string))
		return json_wrong(at, "must be a string");
	if (!json_object_get_string_len(value))
		return json_wrong(at, "must not be empty");
	if ((size_t)json_object_get_string_len(value) != strlen(json_object_get_string(value)))
		return json_wrong(at, "has a NUL character");
	if ((size_t)json_object_get_string_len(value) >= size)
		return json_wrong(at, "is longer than %zu bytes", size - 1);
	memset(to, 0, size);
	strcpy(to, json_object_get_string(value));
	return 0;
}

int json_read_word(struct json_place *at, struct json_object *value, const char * const *words,
		  unsigned int *index)
{
	char text[64], all[160] = "";

	if (json_read_text(at, value, text, sizeof(text)))
		return -1;
	for (*index = 0; words[*index]; ++*index) {
		if (!strcmp(words[*index], text))
			return 0;
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", *index ? ", " : "",
			 words[*index]);
	}
	return json_wrong(at, "\"%s\" is not one of %s", text, all);
}

int json_read_real(struct json_place *at, struct json_object *value, void *to)
{
	if (!json_object_is_type(value, json_type_double) &&
	    !json_object_is_type(value, json_type_int))
		return json_wrong(at, "must be a number");
	*(double *)to = json_object_get_double(value);
	return isfinite(*(double *)to) ? 0 : json_wrong(at, "must be finite");
}

int json_read_comment(struct json_place *at, struct json_object *value, void *to)
{
	(void)to;
	return json_object_is_type(value, json_type_string) ? 0 : json_wrong(at, "must be a string");
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
		if (ferror(file)) {
			because(why, 0, "%s: %s", path, strerror(errno));
			free(text);
			text = NULL;
		} else if (*length == FILE_MAX || strlen(text) != *length) {
			because(why, 0, "%s: is not text, or is longer than 1 MiB",
				path);
			free(text);
			text = NULL;
		}
	}
	if (file)
		fclose(file);
	return text;
}

struct json_object *json_parse_text(const char *path, const char *text, size_t length, char *why)
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

struct json_object *json_parse_file(const char *path, char *why)
{
	struct json_object *root;
	size_t length;
	char *text = slurp(path, &length, why);

	if (!text)
		return NULL;
	root = json_parse_text(path, text, length, why);
	free(text);
	return root;
}
