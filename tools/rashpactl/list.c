// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl list: bound functions, functions known to a profile, and holders of resources */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/fpga.h"
#include "rashpactl/held.h"
#include "common/json-out.h"
#include "common/parse.h"
#include "rashpactl/profile-file.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"
#include "common/shown.h"

static struct json_object *bars_json(const struct fpga *fpga)
{
	struct json_object *list = json_object_new_array(), *o;
	struct rashpa_region_info region;

	for (unsigned int bar = 0; bar < RASHPA_BARS; bar++) {
		if (rashpa_device_region(fpga->device, bar, &region) || !region.out_length)
			continue;
		o = json_object_new_object();
		put_int(o, "bar", bar);
		put_u64(o, "length_bytes", region.out_length);
		put_bool(o, "memory", region.out_flags & RASHPA_REGION_MEMORY);
		put_bool(o, "prefetch", region.out_flags & RASHPA_REGION_PREFETCH);
		put_bool(o, "64bit", region.out_flags & RASHPA_REGION_64BIT);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *bound_json(const struct pci_function *f, const struct fpga *fpga)
{
	const struct rashpa_device_info *i = &fpga->info;
	struct json_object *o = json_object_new_object();
	char name[256];

	put_node(o, f->fpga);
	put_text(o, "bdf", f->bdf);
	put_id(o, "vendor", f->vendor);
	put_id(o, "device", f->device);
	put_id(o, "subvendor", i->out_subvendor);
	put_id(o, "subdevice", i->out_subdevice);
	put_text(o, "name", pci_name(name, sizeof(name), f->vendor, f->device));
	json_object_object_add(o, "bars", bars_json(fpga));
	put_int(o, "vectors", i->out_vectors);
	put_int(o, "numa_node", i->out_node);
	put_int(o, "dma_bits", i->out_dma_bits);
	put_bool(o, "iommu", i->out_flags & RASHPA_DEVICE_IOMMU);
	put_bool(o, "profile", i->out_flags & RASHPA_DEVICE_PROFILE);
	put_bool(o, "disclose", i->out_flags & RASHPA_DEVICE_DISCLOSE);
	put_bool(o, "master", i->out_flags & RASHPA_DEVICE_MASTER);
	put_text(o, "state", rashpa_state_name(i->out_state));
	put_int(o, "maps", i->out_maps);
	put_int(o, "windows", i->out_windows);
	put_u64(o, "quiesces", i->out_quiesces);
	put_u64(o, "interrupts", i->out_interrupts);
	return o;
}

static void bound_text(const struct pci_function *f, const struct fpga *fpga)
{
	const struct rashpa_device_info *i = &fpga->info;
	struct rashpa_region_info region;
	char text[256];
	const char *name = pci_name(text, sizeof(text), f->vendor, f->device);

	printf("fpga%d  %s  %04" PRIx32 ":%04" PRIx32 "  %s\n", f->fpga, f->bdf, f->vendor,
	       f->device, name ? name : "");
	printf("       %s, profile %s, bus master %s, iommu %s, node %d, %" PRIu32 "-bit DMA\n",
	       rashpa_state_name(i->out_state),
	       i->out_flags & RASHPA_DEVICE_PROFILE ? "applied" : "missing",
	       i->out_flags & RASHPA_DEVICE_MASTER ? "on" : "off",
	       i->out_flags & RASHPA_DEVICE_IOMMU ? "on" : "off", i->out_node, i->out_dma_bits);
	printf("       %" PRIu32 " vectors, %" PRIu64 " interrupts, %" PRIu32 " maps, %" PRIu32
	       " windows, stopped %" PRIu64 " times\n",
	       i->out_vectors, (uint64_t)i->out_interrupts, i->out_maps, i->out_windows,
	       (uint64_t)i->out_quiesces);
	for (unsigned int bar = 0; bar < RASHPA_BARS; bar++) {
		if (rashpa_device_region(fpga->device, bar, &region) || !region.out_length)
			continue;
		printf("       BAR %u %s%s%s%s\n", bar, format_size(text, region.out_length),
		       region.out_flags & RASHPA_REGION_MEMORY ? "" : ", I/O ports",
		       region.out_flags & RASHPA_REGION_64BIT ? ", 64 bit" : "",
		       region.out_flags & RASHPA_REGION_PREFETCH ? ", prefetchable" : "");
	}
}

/* Properties of a bound function from the driver, or a message. */
static int list_bound(const struct pci_function *f, struct json_object *to)
{
	struct fpga fpga = FPGA_NONE;
	char why[WHY_SIZE];

	if (fpga_open(&fpga, f->fpga, why))
		return fail("%s: %s", f->bdf, why);
	if (to)
		json_object_array_add(to, bound_json(f, &fpga));
	else
		bound_text(f, &fpga);
	fpga_close(&fpga);
	return 0;
}

static int list_candidate(const struct pci_function *f, struct json_object *to)
{
	static struct profile profile;
	struct json_object *o;
	char why[WHY_SIZE], text[256];
	const char *name;
	int found = profile_find(&profile, f->vendor, f->device, why);

	if (found < 0)
		return fail("%s", why);
	if (!found)
		return 0;
	name = pci_name(text, sizeof(text), f->vendor, f->device);
	if (!to) {
		printf("-      %s  %04" PRIx32 ":%04" PRIx32 "  %s\n       profile %s, driver %s: rashpactl bind %s\n",
		       f->bdf, f->vendor, f->device, name ? name : "", SHOWN(profile.name),
		       *f->driver ? SHOWN(f->driver) : "none", f->bdf);
		return 0;
	}
	o = json_object_new_object();
	put_text(o, "bdf", f->bdf);
	put_id(o, "vendor", f->vendor);
	put_id(o, "device", f->device);
	put_text(o, "name", name);
	put_text(o, "driver", *f->driver ? f->driver : NULL);
	put_text(o, "profile", profile.name);
	json_object_array_add(to, o);
	return 0;
}

int list_all(struct json_object *o)
{
	struct json_object *bound = NULL, *candidates = NULL, *held = NULL;
	struct pci_function *functions;
	int n, result = 0;

	n = pci_list(&functions);
	if (n < 0)
		return EXIT_FAILED;
	if (o) {
		bound = json_object_new_array();
		candidates = json_object_new_array();
		held = json_object_new_array();
		json_object_object_add(o, "devices", bound);
		json_object_object_add(o, "candidates", candidates);
		json_object_object_add(o, "holdings", held);
	}
	/* a function that cannot be described does not hide the others */
	for (int i = 0; i < n; i++) {
		if (functions[i].fpga >= 0)
			result |= list_bound(&functions[i], bound);
	}
	for (int i = 0; i < n; i++) {
		if (functions[i].fpga < 0)
			result |= list_candidate(&functions[i], candidates);
	}
	result |= held_list(held);
	free(functions);
	pci_name_done();
	return result;
}

int cmd_list(int argc, char **argv)
{
	struct json_object *o;
	int result;

	command_simple(argc, argv, NULL);
	o = command_json ? json_object_new_object() : NULL;
	result = list_all(o);
	if (o && json_object_object_length(o) && json_finish(o))
		result = EXIT_FAILED;
	return result;
}
