// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl list, limits, map release: holders of resources, and amounts */
#include "rashpactl/held.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/fpga.h"
#include "common/json-out.h"
#include "rashpactl/owner.h"
#include "common/parse.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"
#include "common/shown.h"

/* The usual interest; the others are parts of these. */
static bool is_shown(const struct rashpa_holding *h)
{
	return h->resource != RASHPA_RESOURCE_NAMES && h->resource != RASHPA_RESOURCE_SOURCES;
}

static uint64_t age_ns(const struct rashpa_holding *h)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec - h->since_ns;
}

static struct json_object *holding_json(const struct rashpa_holding *h)
{
	struct json_object *o = json_object_new_object();
	char user[64];

	put_text(o, "resource", rashpa_resource_name(h->resource));
	if (h->device >= 0)
		put_node(o, h->device);
	put_int(o, "uid", h->uid);
	put_text(o, "user", user_name(user, sizeof(user), h->uid));
	put_int(o, "pid", h->pid);
	put_text(o, "command", h->comm);
	put_u64(o, "amount", h->amount);
	put_u64(o, "memory_bytes", h->memory);
	put_u64(o, "since_ns", h->since_ns);
	put_u64(o, "serial", h->serial);
	put_int(o, "id", h->id);
	put_text(o, "name", *h->name ? h->name : NULL);
	put_bool(o, "orphan", h->flags & RASHPA_HOLDING_ORPHAN);
	put_bool(o, "programmed", h->flags & RASHPA_HOLDING_PROGRAMMED);
	return o;
}

static void holding_text(const struct rashpa_holding *h)
{
	char user[64], size[SIZE_TEXT];

	printf("%-8s", rashpa_resource_name(h->resource));
	if (h->device >= 0)
		printf(" fpga%" PRId32, h->device);
	if (h->id)
		printf(h->resource == RASHPA_RESOURCE_SOURCES ? " index %" PRIu32 : " map %" PRIu32,
		       h->id);
	if (*h->name)
		printf(" %s", SHOWN(h->name));
	if (h->memory)
		printf(", %s", format_size(size, h->memory));
	if (h->resource == RASHPA_RESOURCE_TIMERS)
		printf(", %" PRIu64 "/1000 of a CPU", (uint64_t)h->amount);
	printf(": %s, pid %" PRId32 "%s (%s), since %" PRIu64 " s%s\n",
	       user_name(user, sizeof(user), h->uid), h->pid,
	       h->flags & RASHPA_HOLDING_ORPHAN ? ", which has ended" : "", SHOWN(h->comm),
	       age_ns(h) / 1000000000,
	       h->flags & RASHPA_HOLDING_PROGRAMMED ? ", programmed" : "");
}

/* @maps: only maps */
static int print_held(struct json_object *to, bool maps)
{
	int memory = rashpa_memory_open(), n, lines = 0;
	struct rashpa_holding *held;

	n = memory < 0 ? memory : rashpa_node_list(memory, &held);
	if (memory >= 0)
		close(memory);
	if (n < 0)
		return fail("%s", rashpa_reason());
	for (int i = 0; i < n; i++) {
		if (maps && held[i].resource != RASHPA_RESOURCE_MAPS)
			continue;
		if (to)
			json_object_array_add(to, holding_json(&held[i]));
		else if (is_shown(&held[i]) && ++lines)
			holding_text(&held[i]);
	}
	if (!to && !lines)
		say(maps ? "there are no maps" : "no process holds a resource");
	free(held);
	return 0;
}

int held_list(struct json_object *to)
{
	return print_held(to, false);
}

int maps_list(struct json_object *to)
{
	return print_held(to, true);
}

static struct json_object *limit_json(const struct rashpa_limit *l)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "resource", rashpa_resource_name(l->resource));
	put_u64(o, "used", l->out_used);
	put_u64(o, "limit", l->out_limit);
	put_u64(o, "shared_used", l->out_shared_used);
	put_u64(o, "shared_limit", l->out_shared_limit);
	put_u64(o, "user_used", l->out_user_used);
	put_u64(o, "user_limit", l->out_user_limit);
	return o;
}

static const char *amount(char *buf, size_t size, uint32_t resource, uint64_t n)
{
	if (resource == RASHPA_RESOURCE_MEMORY)
		return format_size(buf, n);
	snprintf(buf, size, "%" PRIu64, n);
	return buf;
}

static void limit_text(const struct rashpa_limit *l)
{
	const uint64_t n[] = { l->out_used, l->out_limit, l->out_shared_limit, l->out_user_used,
			       l->out_user_limit };
	char text[SIZE_TEXT];

	printf("%-8s", rashpa_resource_name(l->resource));
	for (unsigned int i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		/* a limit for one user, if reached, leaves nothing to users other than root */
		const bool limit = i == 1 || i == 4 || (i == 2 && !l->out_limit);

		printf(" %11s", limit && !n[i] ? "-" :
		       amount(text, sizeof(text), l->resource, n[i]));
	}
	putchar('\n');
}

int limits_list(struct json_object *list)
{
	struct rashpa_limit limit;
	int memory, result = 0;

	memory = rashpa_memory_open();
	if (memory < 0)
		return fail("%s", rashpa_reason());
	if (!list)
		printf("%-8s %11s %11s %11s %11s %11s\n", "", "used", "limit", "not root", "yours",
		       "one user");
	for (uint32_t r = RASHPA_RESOURCE_MEMORY; r <= RASHPA_RESOURCE_TIMERS && !result; r++) {
		if (rashpa_memory_limit(memory, r, &limit))
			result = fail("%s", rashpa_reason());
		else if (list)
			json_object_array_add(list, limit_json(&limit));
		else
			limit_text(&limit);
	}
	if (!list && !geteuid())
		puts("For root, only the column \"limit\" holds.");
	close(memory);
	return result;
}

int cmd_limits(int argc, char **argv)
{
	struct json_object *list;
	int result;

	command_simple(argc, argv, NULL);
	list = command_json ? json_object_new_array() : NULL;
	result = limits_list(list);
	if (list && json_object_array_length(list) && json_finish(list))
		result = EXIT_FAILED;
	return result;
}

/* N of the function with the map, -1 if not found, -2 after a message. */
static int function_of(uint32_t id)
{
	int memory = rashpa_memory_open(), n, found = -1;
	struct rashpa_holding *held;

	n = memory < 0 ? memory : rashpa_node_list(memory, &held);
	if (memory >= 0)
		close(memory);
	if (n < 0) {
		fail("%s", rashpa_reason());
		return -2;
	}
	for (int i = 0; i < n; i++) {
		if (held[i].resource == RASHPA_RESOURCE_MAPS && held[i].id == id)
			found = held[i].device;
	}
	free(held);
	return found;
}

int cmd_map_release(int argc, char **argv)
{
	const char *text;
	struct fpga fpga = FPGA_NONE;
	char why[WHY_SIZE];
	uint32_t id;
	int number, result = 0;

	command_read(&command_bare, argc, argv, NULL, &text);
	if (!parse_u32(text, &id)) {
		say("\"%s\" is not the number of a map: see rashpactl map list", text);
		return EXIT_USAGE;
	}
	number = function_of(id);
	if (number == -1)
		return fail("there is no map %" PRIu32 ": rashpactl map list names them", id);
	if (number < 0)
		return EXIT_FAILED;
	if (fpga_open(&fpga, number, why))
		return fail("%s", why);
	if (rashpa_device_quiesce_map(fpga.device, id))
		result = fail("map %" PRIu32 ": %s", id, rashpa_reason());
	fpga_close(&fpga);
	return result;
}
