// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl map explain: location of a memory, and the path of DMA to it */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/json-out.h"
#include <rashpa-board.h>
#include "rashpactl/map.h"
#include "rashpactl/memory.h"
#include "common/parse.h"
#include "rashpactl/rashpactl.h"
#include "common/shown.h"
#include "rashpactl/topology.h"

struct explanation {
	const struct memory *memory;
	struct fpga *fpga;
	uint64_t bdf;			/* PCI address of the function */
	bool peer;			/* the memory is in a BAR */
	struct chain from, to;		/* to: with peer */
	enum meeting meeting;		/* with peer */
	uint64_t where;
	enum distance distance;
	struct link link;
	struct json_object *costs;	/* array of sentences */
	struct rashpa_map_make map;
	bool checked, refused;
	char reason[WHY_SIZE];		/* reason why it was not checked, or refused */
};

__attribute__((format(printf, 2, 3)))
static void cost(struct explanation *e, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_object_array_add(e->costs, json_object_new_string(text));
}

/* --- find out --- */

static void cost_of_distance(struct explanation *e)
{
	switch (e->distance) {
	case NODE_SAME:
		cost(e, "stays on one NUMA node");
		break;
	case NODE_SOCKET:
		cost(e, "crosses from one NUMA node to another of the same socket");
		break;
	case NODE_OTHER_SOCKET:
		cost(e, "crosses the socket interconnect, which all traffic between the sockets shares");
		break;
	case NODE_UNKNOWN:
		cost(e, "the machine does not report whether another NUMA node is crossed");
		break;
	}
}

static void cost_of_switch(struct explanation *e)
{
	char at[BDF_SIZE], port_text[BDF_SIZE];
	uint64_t port = 0;
	enum acs acs = topology_acs(&e->from, e->where, &port);

	bdf_text(at, e->where);
	if (acs == ACS_OFF)
		acs = topology_acs(&e->to, e->where, &port);
	if (acs == ACS_REDIRECTS)
		cost(e, "below one switch (%s), but port %s sends requests up to the host bridge (ACS): known to run at a part of the link rate on many platforms",
		     at, bdf_text(port_text, port));
	else
		cost(e, "stays below one switch (%s): the host bridge is not touched%s", at,
		     acs != ACS_UNKNOWN ? "" :
		     ", unless its ports redirect requests (ACS: only root may read that)");
}

static void cost_of_peer(struct explanation *e)
{
	char at[BDF_SIZE];

	switch (e->meeting) {
	case MEET_SAME:
		cost(e, "the function's own memory");
		break;
	case MEET_DEVICE:
		cost(e, "between functions of one device: it depends on the device whether a request leaves it");
		break;
	case MEET_SWITCH:
		cost_of_switch(e);
		break;
	case MEET_PORT:
		cost(e, "meets at root port %s", bdf_text(at, e->where));
		break;
	case MEET_BRIDGE:
		cost(e, "through the host bridge: known to run at a part of the link rate on many platforms");
		break;
	case MEET_NOWHERE:
		cost(e, "through two host bridges: known to run at a part of the link rate on many platforms, and not to be routed at all on some");
		cost_of_distance(e);
		break;
	}
}

static void cost_of_link(struct explanation *e)
{
	const struct link *l = &e->link;

	if (!*l->speed || !l->width)
		return;
	if ((*l->max_speed && strcmp(l->speed, l->max_speed)) || l->width < l->max_width)
		cost(e, "the link of fpga%u runs at %s x%" PRIu32
		     ", the function could do %s x%" PRIu32 ": check the slot",
		     e->fpga->number, l->speed, l->width, l->max_speed, l->max_width);
}

/* Let the driver decide: make the map, and release it. */
static void check(struct explanation *e)
{
	int fd;

	if (rashpa_device_claim(e->fpga->device)) {
		snprintf(e->reason, sizeof(e->reason), "%s", rashpa_reason());
		return;
	}
	e->map.fd = e->memory->fd;
	fd = rashpa_device_map(e->fpga->device, &e->map);
	if (fd < 0) {
		e->refused = true;
		snprintf(e->reason, sizeof(e->reason), "%s", rashpa_reason());
	} else {
		e->checked = true;
		close(fd);
	}
	flock(e->fpga->device, LOCK_UN);
}

static bool find_out(struct explanation *e)
{
	const struct rashpa_device_info *info = &e->fpga->info;

	e->bdf = PCI_BDF(info->out_domain, info->out_bus, info->out_devfn);
	e->peer = e->memory->info.out_kind == RASHPA_KIND_WINDOW;
	if (!topology_chain(e->bdf, &e->from))
		return false;
	e->distance = topology_nodes(info->out_node, e->memory->info.out_node);
	if (e->peer) {
		if (!topology_chain(e->memory->info.out_bdf, &e->to))
			return false;
		e->meeting = chains_meet(&e->from, &e->to, &e->where);
		cost_of_peer(e);
	} else {
		cost_of_distance(e);
	}
	if (info->out_flags & RASHPA_DEVICE_IOMMU)
		cost(e, "the IOMMU translates addresses of fpga%u: few long segments need few of its entries",
		     e->fpga->number);
	topology_link(e->bdf, &e->link);
	cost_of_link(e);
	check(e);
	return true;
}

/* --- tell --- */

static void print_node(int node)
{
	if (node < 0)
		printf(", NUMA node not known");
	else
		printf(", NUMA node %d", node);
}

static void print_memory(const struct explanation *e)
{
	const struct rashpa_info *i = &e->memory->info;
	char size[SIZE_TEXT], bdf[BDF_SIZE];

	printf("memory    %s ", format_size(size, i->out_length));
	if (e->peer)
		printf("in BAR %" PRId32 " of %s", i->out_bar, bdf_text(bdf, i->out_bdf));
	else
		printf("of host memory, %s", rashpa_backend_name(i->out_backend));
	print_node(i->out_node);
	putchar('\n');
}

static void print_function(const struct explanation *e)
{
	const struct link *l = &e->link;
	char bdf[BDF_SIZE];

	printf("function  fpga%u, %s", e->fpga->number, bdf_text(bdf, e->bdf));
	print_node(e->fpga->info.out_node);
	if (*l->speed && l->width)
		printf(", link %s x%" PRIu32, l->speed, l->width);
	else
		printf(", link not known");
	printf(", IOMMU %s\n", e->fpga->info.out_flags & RASHPA_DEVICE_IOMMU ? "on" : "off");
}

static void print_path(const struct explanation *e)
{
	char bdf[BDF_SIZE];

	printf("path      %s", bdf_text(bdf, e->bdf));
	for (unsigned int i = 1; i < e->from.n && !(e->peer && e->meeting == MEET_SAME); i++) {
		printf(" > %s", bdf_text(bdf, e->from.at[i]));
		if (e->peer && e->from.at[i] == e->where)
			break;
	}
	if (!e->peer || e->meeting == MEET_BRIDGE)
		printf(" > host bridge");
	if (e->peer && e->meeting == MEET_NOWHERE)
		printf(" > host bridge > host bridge");
	if (!e->peer)
		printf(" > memory");
	for (unsigned int i = e->to.n; i-- > 0;) {
		/* down again, from the common bridge */
		bool shared = false;

		for (unsigned int j = 0; j < e->from.n; j++)
			shared |= e->from.at[j] == e->to.at[i];
		if (!shared)
			printf(" > %s", bdf_text(bdf, e->to.at[i]));
	}
	putchar('\n');
}

static void print_text(const struct explanation *e)
{
	printf("%s for fpga%u\n", e->memory->name, e->fpga->number);
	print_memory(e);
	print_function(e);
	print_path(e);
	for (size_t i = 0; i < json_object_array_length(e->costs); i++)
		printf("%-9s %s\n", i ? "" : "cost",
		       SHOWN(json_object_get_string(json_object_array_get_idx(e->costs, i))));
	if (e->checked) {
		printf("checked   class ");
		print_map(&e->map);
	} else {
		printf("%-9s %s\n", e->refused ? "refused" : "unchecked", SHOWN(e->reason));
	}
}

static struct json_object *memory_json(const struct explanation *e)
{
	const struct rashpa_info *i = &e->memory->info;
	struct json_object *o = json_object_new_object();
	char bdf[BDF_SIZE];

	put_text(o, "kind", rashpa_kind_name(i->out_kind));
	put_u64(o, "length_bytes", i->out_length);
	put_int(o, "numa_node", i->out_node);
	if (e->peer) {
		put_text(o, "bdf", bdf_text(bdf, i->out_bdf));
		put_int(o, "bar", i->out_bar);
	} else {
		put_text(o, "backend", rashpa_backend_name(i->out_backend));
	}
	return o;
}

static struct json_object *chain_json(const struct chain *chain)
{
	struct json_object *list = json_object_new_array();
	char bdf[BDF_SIZE];

	for (unsigned int i = 0; i < chain->n; i++)
		json_object_array_add(list, json_object_new_string(bdf_text(bdf, chain->at[i])));
	return list;
}

static struct json_object *link_json(const struct link *l)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "speed", *l->speed ? l->speed : NULL);
	put_int(o, "width", l->width);
	put_text(o, "max_speed", *l->max_speed ? l->max_speed : NULL);
	put_int(o, "max_width", l->max_width);
	return o;
}

static struct json_object *path_json(const struct explanation *e)
{
	static const char *const distances[] = {
		[NODE_UNKNOWN] = NULL, [NODE_SAME] = "same-node",
		[NODE_SOCKET] = "same-socket", [NODE_OTHER_SOCKET] = "other-socket",
	};
	struct json_object *o = json_object_new_object();
	char bdf[BDF_SIZE];

	json_object_object_add(o, "up", chain_json(&e->from));
	json_object_object_add(o, "down", e->peer ? chain_json(&e->to) : NULL);
	put_text(o, "meets", e->peer ? meeting_name(e->meeting) : "memory");
	put_text(o, "at", e->where ? bdf_text(bdf, e->where) : NULL);
	put_text(o, "distance", distances[e->distance]);
	return o;
}

static int print_json(const struct explanation *e)
{
	struct json_object *o = json_object_new_object(), *map = NULL;
	char bdf[BDF_SIZE];

	put_text(o, "name", e->memory->name);
	put_node(o, e->fpga->number);
	put_text(o, "bdf", bdf_text(bdf, e->bdf));
	put_int(o, "numa_node", e->fpga->info.out_node);
	put_bool(o, "iommu", e->fpga->info.out_flags & RASHPA_DEVICE_IOMMU);
	json_object_object_add(o, "link", link_json(&e->link));
	json_object_object_add(o, "memory", memory_json(e));
	json_object_object_add(o, "path", path_json(e));
	json_object_object_add(o, "costs", json_object_get(e->costs));
	if (e->checked) {
		map = json_object_new_object();
		put_map(map, &e->map);
	}
	json_object_object_add(o, "checked", map);
	put_bool(o, "refused", e->refused);
	put_text(o, "reason", *e->reason ? e->reason : NULL);
	return json_finish(o);
}

/* --- command --- */

enum { OPT_FOR = 256 };

static const struct argp_option options[] = {
	{ "for", OPT_FOR, "fpgaM", 0, "the function that does the DMA (required)", 0 },
	OPTION_JSON,
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **fpga = state->input;

	switch (key) {
	case OPT_FOR:
		*fpga = arg;
		break;
	case ARGP_KEY_END:
		if (!*fpga)
			argp_error(state, "the function is missing: give --for fpgaM");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cmd_map_explain(int argc, char **argv)
{
	static const struct argp argp = { .options = options, .parser = parse };
	const char *name, *function = NULL;
	struct fpga fpga = FPGA_NONE;
	struct memory memory;
	struct explanation e = { .memory = &memory, .fpga = &fpga };
	char why[WHY_SIZE];
	int result;

	command_read(&argp, argc, argv, &function, &name);
	if (memory_open(&memory, name, O_RDWR, why))
		return fail("%s", why);
	e.costs = json_object_new_array();
	result = fpga_named(&fpga, function);
	if (!result && !find_out(&e))
		result = EXIT_FAILED;
	if (!result && command_json)
		result = print_json(&e);
	else if (!result)
		print_text(&e);
	if (e.refused)
		result = EXIT_FAILED;
	json_object_put(e.costs);
	topology_done();
	fpga_close(&fpga);
	memory_close(&memory);
	return result;
}
