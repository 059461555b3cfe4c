// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl fpga status: print the counters of the reference interface */
#include <inttypes.h>
#include <stdio.h>

#include "common/fpga.h"
#include "common/json-out.h"
#include "rashpactl/parts.h"
#include "rashpactl/rashpactl.h"
#include "common/shown.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *name;
	uint32_t bit;
} features[] = {
	{ "msix", RFPGA_FEATURE_MSIX },
	{ "lock", RFPGA_FEATURE_LOCK },
	{ "freerun", RFPGA_FEATURE_FREERUN },
	{ "flush", RFPGA_FEATURE_FLUSH },
	{ "group", RFPGA_FEATURE_GROUP },
	{ "drop", RFPGA_FEATURE_DROP },
	{ "meta", RFPGA_FEATURE_META },
	{ "verdict", RFPGA_FEATURE_VERDICT },
}, states[] = {
	{ "running", RFPGA_DTP_RUNNING },
	{ "waiting", RFPGA_DTP_WAITING },
	{ "done", RFPGA_DTP_DONE },
	{ "faulted", RFPGA_DTP_FAULTED },
	{ "stopping", RFPGA_DTP_STOPPING },
	{ "start ignored", RFPGA_DTP_IGNORED },
};

static const struct {
	const char *name;
	size_t offset;
} counters[] = {
	{ "images", RFPGA_DTP_C_IMAGES },
	{ "stacks", RFPGA_DTP_C_STACKS },
	{ "bytes", RFPGA_DTP_C_BYTES },
	{ "descriptors", RFPGA_DTP_C_DESCRIPTORS },
	{ "events", RFPGA_DTP_C_EVENTS },
	{ "overruns", RFPGA_DTP_C_OVERRUNS },
	{ "faults", RFPGA_DTP_C_FAULTS },
	{ "dropped", RFPGA_DTP_C_DROPPED },
	{ "lost", RFPGA_DTP_C_LOST },
	{ "fifo_peak", RFPGA_DTP_FIFO_PEAK },
	{ "stall_ticks", RFPGA_DTP_C_STALL },
	{ "stall_bus_ticks", RFPGA_DTP_C_STALL_BUS },
	{ "stall_source_ticks", RFPGA_DTP_C_STALL_SOURCE },
	{ "successes", RFPGA_DTP_C_SUCCESSES },
	{ "failures", RFPGA_DTP_C_FAILURES },
	{ "unjudged", RFPGA_DTP_C_UNJUDGED },
	{ "success_ticks", RFPGA_DTP_SUCCESS_TICKS },
	{ "failure_ticks", RFPGA_DTP_FAILURE_TICKS },
	{ "start_ticks", RFPGA_DTP_C_START },
	{ "stop_ticks", RFPGA_DTP_C_STOP },
};

static const char *block_name(uint32_t type)
{
	static const char * const names[] = {
		[RFPGA_BLOCK_DTP] = "dtp", [RFPGA_BLOCK_TABLE] = "table",
		[RFPGA_BLOCK_SOURCE] = "source", [RFPGA_BLOCK_SENSOR] = "sensor",
		[RFPGA_BLOCK_BOUNDS] = "bounds", [RFPGA_BLOCK_MAILBOX] = "mailbox",
		[RFPGA_BLOCK_UNIT] = "unit", [RFPGA_BLOCK_RING] = "ring",
		[RFPGA_BLOCK_RING_BOUNDS] = "ring bounds",
	};

	return type < ARRAY_SIZE(names) && names[type] ? names[type] : "?";
}

struct sensor {
	const char *kind, *unit;
	double value;			/* value in that unit */
	char name[9];
};

static void read_sensor(const struct rashpa_board *f, size_t at, struct sensor *s)
{
	static const struct { const char *kind, *unit; } kinds[] = {
		{ "?", "?" }, { "temperature", "°C" }, { "voltage", "V" }, { "current", "A" },
	};
	uint32_t kind = rashpa_board_read(f, at + RFPGA_SENSOR_KIND), word;
	size_t n = 0;

	kind = kind < ARRAY_SIZE(kinds) ? kind : 0;
	s->kind = kinds[kind].kind;
	s->unit = kinds[kind].unit;
	s->value = (int32_t)rashpa_board_read(f, at + RFPGA_SENSOR_VALUE) / 1000.0;
	for (unsigned int i = 0; i < 8; i++) {
		word = rashpa_board_read(f, at + RFPGA_SENSOR_NAME + i / 4 * 4) >> i % 4 * 8 & 0xff;
		if (word && word != ' ')
			s->name[n++] = (char)word;
	}
	s->name[n] = '\0';
}

static const struct {
	const char *name;
	size_t offset;
} source_values[] = {
	{ "period_ticks", RFPGA_SOURCE_PERIOD },
	{ "frames", RFPGA_SOURCE_FRAMES },
	{ "triggers", RFPGA_SOURCE_TRIGGERS },
	{ "missed", RFPGA_SOURCE_MISSED },
	{ "lines_missed", RFPGA_SOURCE_LINES_MISSED },
	{ "time_ns", RFPGA_SOURCE_TIME },
};

static bool source_runs(const struct rashpa_board *f, size_t at)
{
	return rashpa_board_read(f, at + RFPGA_SOURCE_STATUS) & RFPGA_SOURCE_RUNNING;
}

/* Images per second; 0: no period. */
static double source_rate(const struct rashpa_board *f, size_t at)
{
	uint64_t period = rashpa_board_read64(f, at + RFPGA_SOURCE_PERIOD);

	return period ? (double)rashpa_board_read(f, RFPGA_TICK_RATE) / (double)period : 0;
}

static struct json_object *source_json(const struct rashpa_board *f, unsigned int n, size_t at)
{
	struct json_object *o = json_object_new_object();
	double rate = source_rate(f, at);

	put_int(o, "source", n);
	put_bool(o, "running", source_runs(f, at));
	if (rate > 0)
		put_real(o, "rate", rate);
	else
		put_text(o, "rate", NULL);
	put_u64(o, "role", rashpa_board_read(f, at + RFPGA_SOURCE_ROLE));
	put_u64(o, "fifo", rashpa_board_read(f, at + RFPGA_SOURCE_FIFO));
	for (size_t i = 0; i < ARRAY_SIZE(source_values); i++)
		put_u64(o, source_values[i].name, rashpa_board_read64(f, at + source_values[i].offset));
	return o;
}

static struct json_object *sensor_json(const struct rashpa_board *f, size_t at)
{
	struct json_object *o = json_object_new_object();
	struct sensor s;

	read_sensor(f, at, &s);
	put_text(o, "name", s.name);
	put_text(o, "kind", s.kind);
	put_real(o, "value", s.value);
	put_text(o, "unit", s.unit);
	return o;
}

static struct json_object *block_json(const struct rashpa_block *b)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "name", block_name(b->type));
	put_int(o, "type", b->type);
	put_int(o, "count", b->count);
	put_hex(o, "base", b->base);
	put_hex(o, "step", b->step);
	return o;
}

/* Blocks, sources and sensors of the board. */
static void put_blocks(struct json_object *o, const struct rashpa_board *f)
{
	struct json_object *blocks = json_object_new_array(), *sources = json_object_new_array();
	struct json_object *sensors = json_object_new_array();
	struct rashpa_block b;

	for (unsigned int i = 0; !rashpa_board_block(f, i, &b); i++)
		json_object_array_add(blocks, block_json(&b));
	if (!rashpa_board_find_block(f, RFPGA_BLOCK_SOURCE, RFPGA_SOURCE_SIZE, &b))
		for (unsigned int i = 0; i < b.count; i++)
			json_object_array_add(sources, source_json(f, i, b.base + i * b.step));
	if (!rashpa_board_find_block(f, RFPGA_BLOCK_SENSOR, RFPGA_SENSOR_SIZE, &b))
		for (unsigned int i = 0; i < b.count; i++)
			json_object_array_add(sensors, sensor_json(f, b.base + i * b.step));
	json_object_object_add(o, "blocks", blocks);
	json_object_object_add(o, "sources", sources);
	json_object_object_add(o, "sensors", sensors);
	parts_json(o, f);
}

static void print_blocks(const struct rashpa_board *f)
{
	struct rashpa_block b;
	struct sensor s;
	size_t at;

	printf("blocks    ");
	for (unsigned int i = 0; !rashpa_board_block(f, i, &b); i++)
		printf(" %u %s", b.count, block_name(b.type));
	printf("\n");
	for (unsigned int i = 0; !rashpa_board_find_block(f, RFPGA_BLOCK_SENSOR, RFPGA_SENSOR_SIZE, &b) &&
	     i < b.count; i++) {
		read_sensor(f, b.base + i * b.step, &s);
		printf("sensor %-3u %s %.3f %s, %s\n", i, s.kind, s.value, s.unit, SHOWN(s.name));
	}
	for (unsigned int i = 0; !rashpa_board_find_block(f, RFPGA_BLOCK_SOURCE, RFPGA_SOURCE_SIZE, &b) &&
	     i < b.count; i++) {
		at = b.base + i * b.step;
		printf("source %-3u %s, %g images/s, role %u, FIFO %u,", i,
		       source_runs(f, at) ? "running" : "stopped", source_rate(f, at),
		       rashpa_board_read(f, at + RFPGA_SOURCE_ROLE), rashpa_board_read(f, at + RFPGA_SOURCE_FIFO));
		for (size_t k = 0; k < ARRAY_SIZE(source_values); k++)
			printf(" %s %" PRIu64, source_values[k].name,
			       rashpa_board_read64(f, at + source_values[k].offset));
		printf("\n");
	}
	parts_print(f);
}

static struct json_object *engine_json(const struct rashpa_engine_info *e)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "name", e->out_name);
	put_bool(o, "absent", e->out_flags & RASHPA_ENGINE_ABSENT);
	put_u64(o, "first", e->out_first);
	put_u64(o, "entries", e->out_count);
	put_u64(o, "maps", e->out_maps);
	put_u64(o, "stops", e->out_stops);
	put_u64(o, "failures", e->out_failures);
	return o;
}

/* An engine of the profile; false: there are no more, or the board was removed. */
static bool engine(const struct rashpa_board *f, unsigned int i, struct rashpa_engine_info *e)
{
	return !rashpa_device_engine(rashpa_board_device(f), i, e);
}

static void put_engines(struct json_object *o, const struct rashpa_board *f)
{
	struct json_object *list = json_object_new_array();
	struct rashpa_device_info about = {};
	struct rashpa_engine_info e;

	for (unsigned int i = 0; engine(f, i, &e); i++)
		json_object_array_add(list, engine_json(&e));
	json_object_object_add(o, "engines", list);
	rashpa_device_get_info(rashpa_board_device(f), &about);
	put_u64(o, "engine_stops", about.out_engine_stops);
}

/* Engines with entries or stops. */
static void print_engines(const struct rashpa_board *f)
{
	struct rashpa_device_info about = {};
	struct rashpa_engine_info e;
	unsigned int n = 0;

	rashpa_device_get_info(rashpa_board_device(f), &about);
	for (unsigned int i = 0; engine(f, i, &e); i++)
		n += !(e.out_flags & RASHPA_ENGINE_ABSENT) && e.out_count;
	if (!about.out_engines) {
		printf("engines    none in the profile: the end of a map stops all\n");
		return;
	}
	printf("engines    %u, stopped without the rest %" PRIu64 " times\n", n,
	       (uint64_t)about.out_engine_stops);
	for (unsigned int i = 0; engine(f, i, &e); i++)
		if (e.out_maps || e.out_stops || e.out_failures)
			printf("engine     %s entries %" PRIu32 " to %" PRIu32 ", %" PRIu32
			       " maps, stopped %" PRIu64 " times, in vain %" PRIu64 " times\n",
			       e.out_name, e.out_first, e.out_first + e.out_count - 1, e.out_maps,
			       (uint64_t)e.out_stops, (uint64_t)e.out_failures);
}

static void build_id(const struct rashpa_board *f, char text[8 * RFPGA_BUILD_ID_WORDS + 1])
{
	uint32_t word;

	for (unsigned int i = 0; i < 4 * RFPGA_BUILD_ID_WORDS; i++) {
		word = rashpa_board_read(f, RFPGA_BUILD_ID + i / 4 * 4);
		sprintf(text + 2 * i, "%02x", word >> i % 4 * 8 & 0xff);
	}
}

static struct json_object *dtp_json(const struct rashpa_board *f, unsigned int n)
{
	struct json_object *o = json_object_new_object();
	uint32_t status = rashpa_board_read(f, RFPGA_DTP(n) + RFPGA_DTP_STATUS);

	put_int(o, "dtp", n);
	put_u64(o, "status", status);
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		put_bool(o, states[i].name, status & states[i].bit);
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		put_u64(o, counters[i].name, rashpa_board_read64(f, RFPGA_DTP(n) + counters[i].offset));
	put_u64(o, "credit", rashpa_board_read(f, RFPGA_DTP(n) + RFPGA_DTP_C_CREDIT));
	return o;
}

static int print_json(const struct rashpa_board *f, const struct rashpa_board_info *info)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct json_object *fault = json_object_new_object();
	uint32_t caps = rashpa_board_read(f, RFPGA_CAPS);
	uint32_t status = rashpa_board_read(f, RFPGA_STATUS), fault_of = rashpa_board_read(f, RFPGA_FAULT_DTP);
	char id[8 * RFPGA_BUILD_ID_WORDS + 1];

	put_node(o, info->number);
	put_hex(o, "id", rashpa_board_read(f, RFPGA_ID));
	put_hex(o, "version", info->version);
	build_id(f, id);
	put_text(o, "build_id", id);
	put_int(o, "vectors", RFPGA_CAPS_VECTORS(caps));
	put_int(o, "entries", info->entries);
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		if (info->features & features[i].bit)
			json_object_array_add(list, json_object_new_string(features[i].name));
	}
	json_object_object_add(o, "features", list);
	put_u64(o, "memory_bytes", rashpa_board_read64(f, RFPGA_MEMORY_SIZE));
	put_u64(o, "align", info->align);
	put_u64(o, "ticks", rashpa_board_read64(f, RFPGA_TICKS));
	put_u64(o, "tick_rate_hz", info->tick_rate);
	put_u64(o, "stop_time_us", info->stop_time_us);
	put_u64(o, "status", status);
	put_bool(o, "busy", status & RFPGA_STATUS_BUSY);
	put_u64(o, "bytes", rashpa_board_read64(f, RFPGA_BYTES));
	put_u64(o, "stops", rashpa_board_read(f, RFPGA_STOPS));
	put_u64(o, "faults", rashpa_board_read64(f, RFPGA_FAULTS));
	put_text(fault, "cause", rashpa_fault_name(rashpa_board_read(f, RFPGA_FAULT_CAUSE)));
	put_hex(fault, "address", rashpa_board_read64(f, RFPGA_FAULT_ADDR));
	if (fault_of < RFPGA_FAULT_RING(0))
		put_u64(fault, "dtp", fault_of);
	else
		put_u64(fault, "ring", fault_of - RFPGA_FAULT_RING(0));
	json_object_object_add(o, "last_fault", fault);
	list = json_object_new_array();
	for (unsigned int i = 0; i < info->dtps; i++)
		json_object_array_add(list, dtp_json(f, i));
	json_object_object_add(o, "dtps", list);
	put_engines(o, f);
	put_blocks(o, f);
	return json_finish(o);
}

static int print_text(const struct rashpa_board *f, const struct rashpa_board_info *info)
{
	uint64_t faults = rashpa_board_read64(f, RFPGA_FAULTS), c;
	uint32_t fault_of = rashpa_board_read(f, RFPGA_FAULT_DTP);
	char id[8 * RFPGA_BUILD_ID_WORDS + 1];

	printf("interface  %u.%u, %u DTPs, %u vectors, %u table entries, features",
	       info->version >> 16, info->version & 0xffff, info->dtps,
	       RFPGA_CAPS_VECTORS(rashpa_board_read(f, RFPGA_CAPS)), info->entries);
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		if (info->features & features[i].bit)
			printf(" %s", features[i].name);
	}
	build_id(f, id);
	printf("\nbuild      %s\n", id);
	printf("memory     %" PRIu64 " bytes, offsets of whole %" PRIu32 " bytes\n",
	       rashpa_board_read64(f, RFPGA_MEMORY_SIZE), info->align);
	print_blocks(f);
	printf("state      %s, stopped %u times\n",
	       rashpa_board_read(f, RFPGA_STATUS) & RFPGA_STATUS_BUSY ? "busy" : "idle",
	       rashpa_board_read(f, RFPGA_STOPS));
	print_engines(f);
	printf("bytes      %" PRIu64 "\n", rashpa_board_read64(f, RFPGA_BYTES));
	printf("faults     %" PRIu64, faults);
	if (faults)
		printf(", the last one: %s at %#" PRIx64 ", %s %u",
		       rashpa_fault_name(rashpa_board_read(f, RFPGA_FAULT_CAUSE)),
		       rashpa_board_read64(f, RFPGA_FAULT_ADDR),
		       fault_of < RFPGA_FAULT_RING(0) ? "DTP" : "ring",
		       fault_of % RFPGA_FAULT_RING(0));
	printf("\n");
	for (unsigned int n = 0; n < info->dtps; n++) {
		uint32_t status = rashpa_board_read(f, RFPGA_DTP(n) + RFPGA_DTP_STATUS);

		/* A DTP that was never started has no counts. */
		if (!status && !rashpa_board_read64(f, RFPGA_DTP(n) + RFPGA_DTP_C_START))
			continue;
		printf("DTP %-6u", n);
		for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
			if (status & states[i].bit)
				printf(" %s", states[i].name);
		}
		for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
			c = rashpa_board_read64(f, RFPGA_DTP(n) + counters[i].offset);
			printf(" %s %" PRIu64, counters[i].name, c);
		}
		printf("\n");
	}
	return 0;
}

int cmd_fpga_status(int argc, char **argv)
{
	struct rashpa_board *board = NULL;
	struct rashpa_board_info info;
	const char *name;
	unsigned int n;
	int result;

	command_simple(argc, argv, &name);
	if (!parse_fpga(name, &n)) {
		say("\"%s\" is not fpgaN: see rashpactl list", name);
		return EXIT_USAGE;
	}
	fpga_catch_removal();
	if (rashpa_board_open(name, &board) || rashpa_board_get_info(board, &info))
		result = fail("%s", rashpa_reason());
	else
		result = command_json ? print_json(board, &info) : print_text(board, &info);
	rashpa_board_close(board);
	return result;
}
