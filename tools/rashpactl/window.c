// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl window list, info */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/json-out.h"
#include "rashpactl/memory.h"
#include "common/parse.h"
#include "rashpactl/profile-file.h"
#include "rashpactl/rashpactl.h"
#include "common/shown.h"

/* A window with values of the profile file, or of the driver if it could be made. */
struct row {
	struct rashpa_profile_window window;
	bool differs;			/* then offset and owner are not known */
	const char *state;
};

/* Compare the driver's window with that of the file, and take over the driver's values. */
static const char *compare(int memory, int window, const struct fpga *fpga, struct row *row)
{
	struct rashpa_profile_window *w = &row->window;
	struct rashpa_info info = { .fd = window };
	struct rashpa_region_info region;

	if (rashpa_memory_get_info(memory, &info) ||
	    rashpa_device_region(fpga->device, w->bar, &region))
		return rashpa_reason();
	row->differs = (uint32_t)info.out_bar != w->bar ||
		       (w->cache && info.out_cache != w->cache) ||
		       info.out_length != (w->length ? w->length : region.out_length - w->offset);
	w->bar = info.out_bar;
	w->length = info.out_length;
	w->cache = info.out_cache;
	return row->differs ? "differs" : "ok";
}

/*
 * The driver does not report which windows a profile declared. The profile file lists them, and the
 * driver reports whether it knows each. The driver may have the profile of another file.
 */
static const char *state_of(int memory, const struct fpga *fpga, struct row *row)
{
	struct rashpa_window_make window = {};
	const char *state;
	int fd;

	memcpy(window.name, row->window.name, sizeof(window.name));
	fd = rashpa_device_window(fpga->device, &window);
	if (fd >= 0) {
		state = compare(memory, fd, fpga, row);
		close(fd);
		return state;
	}
	if (fd == -EPERM)
		return "privileged";	/* for us */
	return fd == -ENOENT ? "not applied" : rashpa_reason();
}

static void print_row(const struct row *row)
{
	const struct rashpa_profile_window *w = &row->window;
	char size[SIZE_TEXT], offset[24] = "-";
	const char *user = "-";

	if (!row->differs) {
		snprintf(offset, sizeof(offset), "%#" PRIx64, (uint64_t)w->offset);
		user = w->flags & RASHPA_PWINDOW_USER ? "yes" : "no";
	}
	printf("%-32s %3" PRIu32 " %10s %10s  %-7s %-4s  %s\n", w->name, w->bar, offset,
	       w->length ? format_size(size, w->length) : "to its end",
	       rashpa_cache_name(w->cache), user, SHOWN(row->state));
}

static struct json_object *row_json(const struct row *row)
{
	const struct rashpa_profile_window *w = &row->window;
	struct json_object *o = json_object_new_object();

	put_text(o, "name", w->name);
	put_int(o, "bar", w->bar);
	if (row->differs)
		put_text(o, "offset_bytes", NULL);
	else
		put_u64(o, "offset_bytes", w->offset);
	put_u64(o, "length_bytes", w->length);
	put_text(o, "cache", rashpa_cache_name(w->cache));
	if (row->differs)
		put_text(o, "user", NULL);
	else
		put_bool(o, "user", w->flags & RASHPA_PWINDOW_USER);
	put_text(o, "state", row->state);
	return o;
}

static int list(struct fpga *fpga, const struct profile *profile)
{
	struct json_object *o;
	int memory = rashpa_memory_open();

	if (memory < 0)
		return fail("%s", rashpa_reason());
	o = command_json ? json_object_new_array() : NULL;
	if (!o)
		printf("%-32s %3s %10s %10s  %-7s %-4s  %s\n", "NAME", "BAR", "OFFSET", "LENGTH",
		       "CACHE", "USER", "STATE");
	for (unsigned int i = 0; i < profile->n_windows; i++) {
		struct row row = { .window = profile->window[i] };

		row.state = state_of(memory, fpga, &row);
		if (o)
			json_object_array_add(o, row_json(&row));
		else
			print_row(&row);
	}
	close(memory);
	return o ? json_finish(o) : 0;
}

int cmd_window_list(int argc, char **argv)
{
	static struct profile profile;
	struct fpga fpga = FPGA_NONE;
	const char *name;
	char why[WHY_SIZE];
	int found, result;

	command_simple(argc, argv, &name);
	result = fpga_named(&fpga, name);
	if (result)
		return result;
	found = profile_find(&profile, fpga.info.out_vendor, fpga.info.out_device, why);
	if (found < 0)
		result = fail("%s", why);
	else if (!found)
		result = fail("fpga%u: no profile is installed for %04" PRIx32 ":%04" PRIx32 ": write one (rashpactl(1)), and bind again",
			      fpga.number, fpga.info.out_vendor, fpga.info.out_device);
	else
		result = list(&fpga, &profile);
	fpga_close(&fpga);
	return result;
}

static struct json_object *info_json(const struct memory *m)
{
	struct json_object *o = json_object_new_object();
	char bdf[BDF_SIZE];

	put_text(o, "name", m->name);
	put_text(o, "kind", rashpa_kind_name(m->info.out_kind));
	put_text(o, "bdf", bdf_text(bdf, m->info.out_bdf));
	put_int(o, "bar", m->info.out_bar);
	put_u64(o, "length_bytes", m->info.out_length);
	put_text(o, "cache", rashpa_cache_name(m->info.out_cache));
	put_int(o, "numa_node", m->info.out_node);
	put_bool(o, "revoked", m->info.out_flags & RASHPA_INFO_REVOKED);
	put_int(o, "importers", m->info.out_importers);
	put_int(o, "mappings", m->info.out_mappings);
	return o;
}

int cmd_window_info(int argc, char **argv)
{
	const char *name;
	struct memory m;
	char why[WHY_SIZE], size[SIZE_TEXT], bdf[BDF_SIZE];
	int result = 0;

	command_simple(argc, argv, &name);
	if (!strchr(name, ':')) {
		say("\"%s\" is not fpgaN:WINDOW: see rashpactl window list", name);
		return EXIT_USAGE;
	}
	if (memory_open(&m, name, O_RDWR, why))
		return fail("%s", why);
	if (command_json) {
		result = json_finish(info_json(&m));
	} else {
		printf("name       %s\n", m.name);
		printf("function   %s BAR %" PRId32 "\n", bdf_text(bdf, m.info.out_bdf),
		       m.info.out_bar);
		printf("length     %" PRIu64 " (%s)\n", (uint64_t)m.info.out_length,
		       format_size(size, m.info.out_length));
		printf("cache      %s\n", rashpa_cache_name(m.info.out_cache));
		printf("node       %d\n", m.info.out_node);
		printf("importers  %" PRIu32 "\n", m.info.out_importers);
		printf("mappings   %" PRIu32 "\n", m.info.out_mappings);
	}
	memory_close(&m);
	return result;
}
