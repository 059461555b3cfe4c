// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-builder build: do all ranks have the same options? */
#include "builder/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json-out.h"

#define NAMED	8	/* ranks of an option that are named */

struct agree {
	struct json_object *mine, **said;	/* by rank */
	uint32_t n;
};

static struct json_object *options_of(const struct build *b)
{
	const struct options *o = b->o;
	struct json_object *all = json_object_new_object();
	char text[GEOMETRY_TEXT];

	put_u64(all, "readouts", b->readouts);
	put_bool(all, "folded", o->folded);
	put_bool(all, "hold", o->hold);
	put_u64(all, "block", o->block);
	put_u64(all, "credit", o->credit);
	put_u64(all, "sources", o->sources);
	put_u64(all, "fragment", o->fragment);
	put_u64(all, "jitter", o->jitter);
	put_text(all, "geometry", o->geometry.width ? format_geometry(text, &o->geometry) : "none");
	put_text(all, "from", o->from ? o->from : "nothing");
	put_real(all, "timeout", o->timeout);
	return all;
}

int agree_say(struct build *b)
{
	const struct message m = { .kind = KIND_HELLO };
	struct json_object *mine = options_of(b);
	const int result = say_to(b, 0, &m, json_object_to_json_string_ext(mine,
									   JSON_C_TO_STRING_PLAIN));

	json_object_put(mine);
	return result;
}

static void differs(struct build *b, const char *key, struct json_object *mine, FILE *to)
{
	const char *value = json_object_get_string(mine);
	const struct agree *a = b->agree;
	uint32_t n = 0;

	for (uint32_t i = 1; i < b->size; i++) {
		/* as text: a number that was parsed again may have another type */
		const char *other = json_object_get_string(json_object_object_get(a->said[i], key));

		other = other ? other : "unknown";
		if (!strcmp(value, other))
			continue;
		if (!n)
			fprintf(to, "%s--%s is %s at rank 0", ftell(to) ? "; " : "", key, value);
		if (n++ < NAMED)
			fprintf(to, ", %s at rank %u", other, i);
	}
	if (n > NAMED)
		fprintf(to, ", and other than at rank 0 at %u more", n - NAMED);
}

static int compare(struct build *b)
{
	char *text = NULL;
	size_t length = 0;
	FILE *to = open_memstream(&text, &length);
	int result = 0;

	if (!to)
		return fail("no memory");
	json_object_object_foreach(b->agree->mine, key, mine) {
		differs(b, key, mine, to);
	}
	fclose(to);
	if (length)
		result = end_run(b, EXIT_FAILED, 0,
				 "%s: give all processes of a run the same options", text);
	free(text);
	return result;
}

static struct agree *open_agree(struct build *b)
{
	struct agree *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	b->agree = a;
	a->said = calloc(b->size, sizeof(struct json_object *));
	a->mine = options_of(b);
	return a->said && a->mine ? a : NULL;
}

int agree_heard(struct build *b, uint32_t rank, const char *text, size_t length)
{
	struct json_tokener *t = json_tokener_new();
	struct agree *a = b->agree ? b->agree : open_agree(b);

	if (!t || !a) {
		json_tokener_free(t);
		return fail("no memory");
	}
	if (!a->said[rank]) {
		a->said[rank] = json_tokener_parse_ex(t, text, length);
		a->n += json_object_is_type(a->said[rank], json_type_object);
	}
	json_tokener_free(t);
	if (!json_object_is_type(a->said[rank], json_type_object))
		return end_run(b, EXIT_FAILED, rank, "rank %u sent an invalid message: no options",
			       rank);
	return agree_complete(b) ? compare(b) : 0;
}

bool agree_complete(const struct build *b)
{
	return b->agree && b->agree->n == b->size - 1;
}

void agree_close(struct build *b)
{
	struct agree *a = b->agree;

	if (!a)
		return;
	for (uint32_t i = 0; a->said && i < b->size; i++)
		json_object_put(a->said[i]);
	json_object_put(a->mine);
	free(a->said);
	free(a);
}
