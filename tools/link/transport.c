// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/transport.h"

#include <stdio.h>
#include <string.h>

#include "link/packet.h"

#define ROW(transport, ...) { .name = #transport, __VA_ARGS__ },

const struct transport transports[] = { TRANSPORTS(ROW) {} };

const struct transport *transport_named(const char *name)
{
	for (const struct transport *t = transports; t->name; t++) {
		if (!strcmp(t->name, name))
			return t;
	}
	return NULL;
}

char *transport_names(uint32_t has, const char *between, const char *before_last)
{
	char *names = NULL;
	unsigned int left = 0;
	size_t size;
	FILE *f = open_memstream(&names, &size);

	for (const struct transport *t = transports; t->name; t++)
		left += (t->has & has) == has;
	for (const struct transport *t = transports; f && t->name; t++) {
		if ((t->has & has) == has)
			fprintf(f, "%s%s", t->name, --left > 1 ? between : left ? before_last : "");
	}
	if (f)
		fclose(f);
	return names;
}

void transport_option(struct argp_option *options, int key, uint32_t has)
{
	while (options->key != key)
		options++;
	options->arg = transport_names(has, "|", "|") ?: "NAME";
}

uint32_t transport_regions(const struct transport *t, uint32_t height)
{
	if (t->lines)
		return height < t->lines ? 1 : height / t->lines;
	return height < 2 ? 1 : 2;
}
