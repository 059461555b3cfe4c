// SPDX-License-Identifier: LGPL-2.1-or-later
#include "json-out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "say.h"

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

static const char *to;	/* NULL: standard output */

void json_to(const char *file)
{
	to = file && strcmp(file, "-") ? file : NULL;
}

bool json_elsewhere(void)
{
	return to;
}

/* more: a line, which others may follow. */
static int write_json(struct json_object *object, int flags, bool more)
{
	const char *text = json_object_to_json_string_ext(object, flags);
	static FILE *file;
	int error = 0;

	if (to && !file)
		file = fopen(to, "we");
	if (!to)
		puts(text);
	else if (!file || fprintf(file, "%s\n", text) < 0 || fflush(file))
		error = errno;
	if (file && !more) {
		if (fclose(file) && !error)
			error = errno;
		file = NULL;
	}
	json_object_put(object);
	if (error)
		say("cannot write %s: %s", to, strerror(error));
	return error || (!to && flush_output()) ? -1 : 0;
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
