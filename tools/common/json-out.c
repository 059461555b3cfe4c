// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/json-out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/say.h"
#include "common/shown.h"

void put_real(struct json_object *to, const char *key, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.9g", value);
	json_object_object_add(to, key, json_object_new_double_s(value, text));
}

void put_hex(struct json_object *to, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	put_text(to, key, text);
}

void put_id(struct json_object *to, const char *key, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "0x%04" PRIx32, value);
	put_text(to, key, text);
}

void put_node(struct json_object *to, unsigned int number)
{
	char text[32];

	snprintf(text, sizeof(text), "fpga%u", number);
	put_text(to, "node", text);
	put_int(to, "number", number);
}

static const char *json_file;	/* NULL: standard output */

void json_to(const char *file)
{
	json_file = file && strcmp(file, "-") ? file : NULL;
}

bool json_elsewhere(void)
{
	return json_file;
}

/* A character without a picture as JSON writes it, a byte that is no UTF-8 as the text \xNN. */
static size_t put_escape(char *to, unsigned int code, bool character)
{
	if (!character)
		return sprintf(to, "\\\\x%02x", code);
	if (code < 0x10000)
		return sprintf(to, "\\u%04x", code);
	code -= 0x10000;
	return sprintf(to, "\\u%04x\\u%04x", 0xd800 + (code >> 10), 0xdc00 + (code & 0x3ff));
}

/* Beyond ASCII there are only strings in it; control characters are escaped there already. */
char *json_shown(struct json_object *object, int flags)
{
	const char *text = json_object_to_json_string_ext(object, flags);
	/* a byte becomes six at most: DEL */
	char *shown = malloc(6 * strlen(text) + 1), *to = shown;
	unsigned int code;
	size_t bytes;
	bool plain;

	while (shown && *text) {
		bytes = shown_next(text, &code, &plain);
		if (plain || (bytes == 1 && code < ' ')) {
			memcpy(to, text, bytes);
			to += bytes;
		} else {
			to += put_escape(to, code, bytes);
		}
		text += bytes ? bytes : 1;
	}
	if (shown)
		*to = '\0';
	return shown;
}

/* more: a line, and more may follow. */
static int write_json(struct json_object *object, int flags, bool more)
{
	char *text = json_shown(object, flags);
	static FILE *file;
	int error = 0;

	if (!text) {
		json_object_put(object);
		return fail("no memory to write JSON");
	}
	if (json_file && !file)
		file = fopen(json_file, "we");
	if (!json_file)
		puts(text);
	else if (!file || fprintf(file, "%s\n", text) < 0 || fflush(file))
		error = errno;
	if (file && !more) {
		if (fclose(file) && !error)
			error = errno;
		file = NULL;
	}
	free(text);
	json_object_put(object);
	if (error)
		return fail("cannot write %s: %s", json_file, strerror(error));
	return json_file ? 0 : flush_output();
}

int json_finish(struct json_object *object)
{
	return write_json(object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
			  JSON_C_TO_STRING_NOSLASHESCAPE, false);
}

int json_line(struct json_object *object)
{
	return write_json(object, JSON_C_TO_STRING_PLAIN, true);
}
