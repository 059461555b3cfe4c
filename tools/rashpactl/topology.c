// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/topology.h"

#include <hwloc.h>
#include <pci/pci.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "rashpactl/rashpactl.h"

const char *topology_root = "";
static struct pci_access *bus;

static struct pci_dev *find_function(uint64_t bdf)
{
	struct pci_dev *d;
	char path[512];

	if (!bus) {
		bus = pci_alloc();
		snprintf(path, sizeof(path), "%s/sys/bus/pci", topology_root);
		pci_set_param(bus, (char *)(uintptr_t)"sysfs.path", path);
		pci_init(bus);
		pci_scan_bus(bus);
	}
	for (d = bus->devices; d; d = d->next) {
		if (PCI_BDF(d->domain, d->bus, d->dev << 3 | d->func) == bdf)
			return d;
	}
	return NULL;
}

bool topology_chain(uint64_t bdf, struct chain *chain)
{
	struct pci_dev *d = find_function(bdf);
	char text[BDF_SIZE];

	chain->n = 0;
	for (; d && chain->n < CHAIN_MAX; d = d->parent) {
		chain->at[chain->n++] = PCI_BDF(d->domain, d->bus, d->dev << 3 | d->func);
		pci_fill_info(d, PCI_FILL_PARENT);
	}
	if (!chain->n)
		say("there is no PCI function %s any more", bdf_text(text, bdf));
	return chain->n;
}

enum acs topology_acs(const struct chain *chain, uint64_t below, uint64_t *port)
{
	enum acs result = ACS_OFF;

	/* Check the ports between the function and the common bridge. */
	for (unsigned int i = 1; i < chain->n && chain->at[i] != below; i++) {
		struct pci_dev *d = find_function(chain->at[i]);
		struct pci_cap *cap = NULL;

		if (d) {
			pci_fill_info(d, PCI_FILL_CAPS | PCI_FILL_EXT_CAPS);
			cap = pci_find_cap(d, PCI_EXT_CAP_ID_ACS, PCI_CAP_EXTENDED);
			/* Without privilege the kernel shows no capabilities at all. */
			if (!d->first_cap)
				result = ACS_UNKNOWN;
		}
		if (cap && pci_read_word(d, cap->addr + PCI_ACS_CTRL) & PCI_ACS_CTRL_REQ_RED) {
			*port = chain->at[i];
			return ACS_REDIRECTS;
		}
	}
	return result;
}

static hwloc_topology_t machine;

static bool load_machine(void)
{
	if (machine)
		return true;
	if (hwloc_topology_init(&machine))
		return false;
	if (!hwloc_topology_load(machine))
		return true;
	hwloc_topology_destroy(machine);
	machine = NULL;
	return false;
}

static hwloc_obj_t socket_of(unsigned int node)
{
	hwloc_obj_t o = hwloc_get_numanode_obj_by_os_index(machine, node);

	return o ? hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_PACKAGE, o) : NULL;
}

enum distance topology_nodes(int a, int b)
{
	hwloc_obj_t x, y;

	if (!load_machine())
		return NODE_UNKNOWN;
	/* Firmware of machines with one node often does not assign devices to it. */
	if (hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_NUMANODE) == 1 || (a >= 0 && a == b))
		return NODE_SAME;
	if (a < 0 || b < 0)
		return NODE_UNKNOWN;
	x = socket_of(a);
	y = socket_of(b);
	if (!x || !y)
		return NODE_UNKNOWN;
	return x == y ? NODE_SOCKET : NODE_OTHER_SOCKET;
}

static uint32_t read_width(const char *bdf, const char *name)
{
	char text[32];
	uint32_t width;

	/* The kernel reports 0 or 255 without a link. */
	if (!read_line(text, sizeof(text), PCI_DEVICES "/%s/%s", bdf, name) ||
	    !parse_u32(text, &width) || width > 32)
		return 0;
	return width;
}

static void read_speed(char *buf, size_t size, const char *bdf, const char *name)
{
	if (!read_line(buf, size, PCI_DEVICES "/%s/%s", bdf, name) || !strncmp(buf, "Unknown", 7))
		buf[0] = '\0';
}

void topology_link(uint64_t function, struct link *link)
{
	char bdf[BDF_SIZE];

	bdf_text(bdf, function);
	read_speed(link->speed, sizeof(link->speed), bdf, "current_link_speed");
	read_speed(link->max_speed, sizeof(link->max_speed), bdf, "max_link_speed");
	link->width = read_width(bdf, "current_link_width");
	link->max_width = read_width(bdf, "max_link_width");
}

void topology_done(void)
{
	if (bus)
		pci_cleanup(bus);
	bus = NULL;
	if (machine)
		hwloc_topology_destroy(machine);
	machine = NULL;
}
