// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl quiesce, reset, profile */
#include <inttypes.h>
#include <stdio.h>

#include "fpga.h"
#include "json-out.h"
#include "profile.h"
#include "rashpa.h"
#include "rashpactl.h"

int fpga_named(struct fpga *fpga, const char *text)
{
	char why[WHY_SIZE];
	unsigned int n;

	if (!parse_fpga(text, &n)) {
		say("\"%s\" is not fpgaN: see rashpactl list", text);
		return EXIT_USAGE;
	}
	return fpga_open(fpga, n, why) ? fail("%s", why) : 0;
}

int cmd_quiesce(int argc, char **argv)
{
	struct fpga fpga = FPGA_NONE;
	const char *name;
	bool json = false;
	const struct simple simple = {
		"fpgaN", "Stop all DMA of a function, now.", 1, &name, &json,
	};
	struct json_object *o;
	uint64_t ns = 0;
	int result;

	parse_simple(&simple, argc, argv);
	result = fpga_named(&fpga, name);
	if (result)
		return result;
	if (rashpa_device_quiesce(fpga.device, &ns)) {
		result = fail("fpga%u: %s", fpga.number, rashpa_reason());
	} else if (json) {
		o = json_object_new_object();
		put_u64(o, "time_ns", ns);
		result = json_finish(o) ? EXIT_FAILED : 0;
	} else {
		printf("fpga%u: stopped in %.3f ms\n", fpga.number, ns / 1e6);
	}
	fpga_close(&fpga);
	return result;
}

int cmd_reset(int argc, char **argv)
{
	struct fpga fpga = FPGA_NONE;
	const char *name;
	const struct simple simple = {
		"fpgaN", "Reset a function. All DMA is stopped before.", 1, &name, NULL,
	};
	int result;

	parse_simple(&simple, argc, argv);
	result = fpga_named(&fpga, name);
	if (!result && rashpa_device_reset(fpga.device))
		result = fail("fpga%u: %s", fpga.number, rashpa_reason());
	fpga_close(&fpga);
	return result;
}

/* A field of the table's entries; NULL where they have none. */
static struct json_object *put_field(struct json_object *to, const char *name, uint32_t offset,
				     uint32_t bits)
{
	struct json_object *field = bits ? json_object_new_object() : NULL;

	json_object_object_add(to, name, field);
	if (field) {
		put_u64(field, "offset_bytes", offset);
		put_u64(field, "bits", bits);
	}
	return field;
}

void put_table(struct json_object *to, const struct profile *profile)
{
	struct json_object *control, *table = NULL;
	const struct rashpa_layout *l;

	if (profile && profile->has_table)
		table = json_object_new_object();
	json_object_object_add(to, "table", table);
	if (!table)
		return;
	l = &profile->table.layout;
	put_text(table, "window", profile->table.window);
	put_u64(table, "offset_bytes", profile->table.offset);
	put_u64(table, "length_bytes", profile->table.length);
	put_u64(table, "stride_bytes", l->stride);
	put_u64(table, "segment_bytes", l->segment_size);
	put_field(table, "address", l->address_offset, l->address_bits);
	put_field(table, "length", l->length_offset, l->length_bits);
	put_field(table, "sum", l->sum_offset, l->sum_bits);
	control = put_field(table, "control", l->control_offset, l->control_bits);
	if (control) {
		put_u64(control, "set", l->control_set);
		put_u64(control, "clear", l->control_clear);
	}
}

static void print_field(const char *name, uint32_t offset, uint32_t bits)
{
	if (bits)
		printf(", %s %" PRIu32 " bits at %" PRIu32, name, bits, offset);
	else
		printf(", no %s", name);
}

static void print_profile(const struct profile *profile)
{
	const struct rashpa_layout *l = &profile->table.layout;

	printf("%s: %u windows, %u quiesce steps, %s\n", profile->name, profile->n_windows,
	       profile->n_steps, profile->has_table ? "an address table" : "no address table");
	if (!profile->has_table)
		return;
	if (profile->n_engines)
		printf("engines: %u, each of which is stopped without the others\n",
		       profile->n_engines);
	printf("table: %" PRIu64 " entries of %" PRIu32 " bytes", profile->table.length / l->stride,
	       l->stride);
	print_field("address", l->address_offset, l->address_bits);
	print_field("length", l->length_offset, l->length_bits);
	print_field("control", l->control_offset, l->control_bits);
	print_field("running sum", l->sum_offset, l->sum_bits);
	if (l->segment_size)
		printf(", segments of %" PRIu64 " bytes", (uint64_t)l->segment_size);
	putchar('\n');
}

int cmd_profile(int argc, char **argv)
{
	static struct profile profile;
	char why[WHY_SIZE];
	const char *path;
	bool json = false;
	const struct simple simple = {
		"FILE", "Check a device profile, without a device.", 1, &path, &json,
	};
	struct json_object *o;

	parse_simple(&simple, argc, argv);
	if (profile_load(&profile, path, why))
		return fail("%s", why);
	if (!json) {
		print_profile(&profile);
		return 0;
	}
	o = json_object_new_object();
	put_text(o, "name", profile.name);
	put_u64(o, "windows", profile.n_windows);
	put_u64(o, "quiesce_steps", profile.n_steps);
	put_u64(o, "engines", profile.n_engines);
	put_table(o, &profile);
	return json_finish(o) ? EXIT_FAILED : 0;
}
