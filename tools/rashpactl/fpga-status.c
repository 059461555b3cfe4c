// SPDX-License-Identifier: GPL-2.0-only
/* rashpactl fpga status: what the reference interface counts */
#include <inttypes.h>
#include <stdio.h>

#include "fpga.h"
#include "json-out.h"
#include "rashpactl.h"

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
	{ "stall_ticks", RFPGA_DTP_C_STALL },
	{ "start_ticks", RFPGA_DTP_C_START },
	{ "stop_ticks", RFPGA_DTP_C_STOP },
};

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static struct json_object *dtp_json(const struct fpga *f, unsigned int n)
{
	struct json_object *o = json_object_new_object();
	uint32_t status = fpga_read(f, RFPGA_DTP(n) + RFPGA_DTP_STATUS);

	put_int(o, "dtp", n);
	put_u64(o, "status", status);
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		put_bool(o, states[i].name, status & states[i].bit);
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		put_u64(o, counters[i].name, fpga_read64(f, RFPGA_DTP(n) + counters[i].offset));
	put_u64(o, "credit", fpga_read(f, RFPGA_DTP(n) + RFPGA_DTP_C_CREDIT));
	return o;
}

static int print_json(const struct fpga *f)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct json_object *fault = json_object_new_object();
	uint32_t caps = fpga_read(f, RFPGA_CAPS), has = fpga_read(f, RFPGA_FEATURES);
	uint32_t status = fpga_read(f, RFPGA_STATUS);

	put_node(o, f->number);
	put_hex(o, "id", fpga_read(f, RFPGA_ID));
	put_hex(o, "version", fpga_read(f, RFPGA_VERSION));
	put_int(o, "vectors", RFPGA_CAPS_VECTORS(caps));
	put_int(o, "entries", RFPGA_CAPS_ENTRIES(caps));
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		if (has & features[i].bit)
			json_object_array_add(list, json_object_new_string(features[i].name));
	}
	json_object_object_add(o, "features", list);
	put_u64(o, "memory_size", fpga_read64(f, RFPGA_MEMORY_SIZE));
	put_u64(o, "ticks", fpga_read64(f, RFPGA_TICKS));
	put_u64(o, "tick_rate", fpga_read(f, RFPGA_TICK_RATE));
	put_u64(o, "stop_time_us", fpga_read(f, RFPGA_STOP_TIME));
	put_u64(o, "status", status);
	put_bool(o, "busy", status & RFPGA_STATUS_BUSY);
	put_u64(o, "bytes", fpga_read64(f, RFPGA_BYTES));
	put_u64(o, "stops", fpga_read(f, RFPGA_STOPS));
	put_u64(o, "faults", fpga_read64(f, RFPGA_FAULTS));
	put_text(fault, "cause", fpga_cause_name(fpga_read(f, RFPGA_FAULT_CAUSE)));
	put_hex(fault, "address", fpga_read64(f, RFPGA_FAULT_ADDR));
	put_u64(fault, "dtp", fpga_read(f, RFPGA_FAULT_DTP));
	json_object_object_add(o, "last_fault", fault);
	list = json_object_new_array();
	for (unsigned int i = 0; i < fpga_processes(f); i++)
		json_object_array_add(list, dtp_json(f, i));
	json_object_object_add(o, "dtps", list);
	return json_finish(o, "-") ? EXIT_FAILED : 0;
}

static int print_text(const struct fpga *f)
{
	uint32_t caps = fpga_read(f, RFPGA_CAPS), has = fpga_read(f, RFPGA_FEATURES);
	uint32_t version = fpga_read(f, RFPGA_VERSION);
	uint64_t faults = fpga_read64(f, RFPGA_FAULTS), c;

	printf("interface  %u.%u, %u processes, %u vectors, %u table entries, features",
	       version >> 16, version & 0xffff, RFPGA_CAPS_DTPS(caps), RFPGA_CAPS_VECTORS(caps),
	       RFPGA_CAPS_ENTRIES(caps));
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		if (has & features[i].bit)
			printf(" %s", features[i].name);
	}
	printf("\nmemory     %" PRIu64 " bytes\n", fpga_read64(f, RFPGA_MEMORY_SIZE));
	printf("state      %s, stopped %u times\n",
	       fpga_read(f, RFPGA_STATUS) & RFPGA_STATUS_BUSY ? "busy" : "idle",
	       fpga_read(f, RFPGA_STOPS));
	printf("bytes      %" PRIu64 "\n", fpga_read64(f, RFPGA_BYTES));
	printf("faults     %" PRIu64, faults);
	if (faults)
		printf(", the last one: %s at %#" PRIx64 ", process %u",
		       fpga_cause_name(fpga_read(f, RFPGA_FAULT_CAUSE)),
		       fpga_read64(f, RFPGA_FAULT_ADDR), fpga_read(f, RFPGA_FAULT_DTP));
	printf("\n");
	for (unsigned int n = 0; n < fpga_processes(f); n++) {
		uint32_t status = fpga_read(f, RFPGA_DTP(n) + RFPGA_DTP_STATUS);

		/* A process that was never started has nothing to tell. */
		if (!status && !fpga_read64(f, RFPGA_DTP(n) + RFPGA_DTP_C_START))
			continue;
		printf("process %-2u", n);
		for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
			if (status & states[i].bit)
				printf(" %s", states[i].name);
		}
		for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
			c = fpga_read64(f, RFPGA_DTP(n) + counters[i].offset);
			printf(" %s %" PRIu64, counters[i].name, c);
		}
		printf("\n");
	}
	return 0;
}

int cmd_fpga_status(int argc, char **argv)
{
	struct fpga fpga = FPGA_NONE;
	const char *name;
	bool json = false;
	const struct simple simple = {
		"fpgaN", "Identity, counters and faults of the reference interface (needs CAP_SYS_RAWIO).",
		1, &name, &json,
	};
	char why[WHY_SIZE];
	unsigned int n;
	int result;

	parse_simple(&simple, argc, argv);
	if (!parse_fpga(name, &n)) {
		say("\"%s\" is not fpgaN: see rashpactl list", name);
		return EXIT_USAGE;
	}
	fpga_catch_removal();
	if (fpga_open(&fpga, n, why) || fpga_registers(&fpga, why))
		result = fail("%s", why);
	else
		result = json ? print_json(&fpga) : print_text(&fpga);
	fpga_close(&fpga);
	return result;
}
