// SPDX-License-Identifier: LGPL-2.1-or-later
/* PCI functions: properties from udev, and names. */
#include <libudev.h>
#include <pci/pci.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rashpactl/rashpactl.h"

/* Devices of a subsystem with matching names, valid until *scan is unreferenced; NULL: none. */
static struct udev_list_entry *scan_for(struct udev_enumerate **scan, struct udev *udev,
					const char *subsystem, const char *names)
{
	*scan = udev_enumerate_new(udev);
	if (!*scan || udev_enumerate_add_match_subsystem(*scan, subsystem) < 0 ||
	    udev_enumerate_add_match_sysname(*scan, names) < 0 ||
	    udev_enumerate_scan_devices(*scan) < 0)
		return NULL;
	return udev_enumerate_get_list_entry(*scan);
}

/* N if this is the node fpgaN of the function, or -1. */
static int number_of(struct udev_device *node, const char *bdf)
{
	struct udev_device *parent = node ? udev_device_get_parent(node) : NULL;
	unsigned int n;

	if (!parent || strcmp(udev_device_get_sysname(parent), bdf) ||
	    sscanf(udev_device_get_sysname(node), "fpga%u", &n) != 1)
		return -1;
	return n;
}

/*
 * N of the function's /dev/rashpa/fpgaN, or -1: the class device below it has the number. Named
 * buffers have class devices, too, and there may be thousands.
 */
static int fpga_number(struct udev *udev, const char *bdf)
{
	struct udev_enumerate *scan;
	struct udev_list_entry *entry, *nodes = scan_for(&scan, udev, "rashpa", "fpga*");
	struct udev_device *node;
	int n = -1;

	udev_list_entry_foreach(entry, nodes) {
		node = udev_device_new_from_syspath(udev, udev_list_entry_get_name(entry));
		n = number_of(node, bdf);
		udev_device_unref(node);
		if (n >= 0)
			break;
	}
	udev_enumerate_unref(scan);
	return n;
}

static uint32_t id_of(struct udev_device *function, const char *name)
{
	const char *text = udev_device_get_sysattr_value(function, name);

	return text ? strtoul(text, NULL, 16) : 0;
}

static void fill(struct pci_function *f, struct udev *udev, struct udev_device *device)
{
	const char *driver = udev_device_get_driver(device);

	*f = (struct pci_function) {
		.vendor = id_of(device, "vendor"),
		.device = id_of(device, "device"),
		.fpga = fpga_number(udev, udev_device_get_sysname(device)),
	};
	snprintf(f->bdf, sizeof(f->bdf), "%s", udev_device_get_sysname(device));
	snprintf(f->driver, sizeof(f->driver), "%s", driver ? driver : "");
}

bool pci_read(const char *bdf, struct pci_function *function)
{
	struct udev *udev = udev_new();
	struct udev_device *device =
		udev ? udev_device_new_from_subsystem_sysname(udev, "pci", bdf) : NULL;

	if (device)
		fill(function, udev, device);
	else
		say("there is no PCI function %s: see lspci, or rashpactl list", bdf);
	udev_device_unref(device);
	udev_unref(udev);
	return device;
}

static int by_bdf(const void *a, const void *b)
{
	const struct pci_function *one = a, *other = b;

	return strverscmp(one->bdf, other->bdf);
}

int pci_list(struct pci_function **functions)
{
	struct udev *udev = udev_new();
	struct udev_enumerate *scan = NULL;
	struct udev_list_entry *all = udev ? scan_for(&scan, udev, "pci", "*") : NULL, *entry;
	struct udev_device *device;
	int n = 0;

	udev_list_entry_foreach(entry, all)
		n++;
	*functions = udev ? calloc(n + 1, sizeof(**functions)) : NULL;
	n = 0;
	udev_list_entry_foreach(entry, *functions ? all : NULL) {
		device = udev_device_new_from_syspath(udev, udev_list_entry_get_name(entry));
		/* the function was just removed */
		if (!device)
			continue;
		fill(&(*functions)[n++], udev, device);
		udev_device_unref(device);
	}
	udev_enumerate_unref(scan);
	udev_unref(udev);
	if (!*functions) {
		say("no memory for the list of PCI functions");
		return -1;
	}
	qsort(*functions, n, sizeof(**functions), by_bdf);
	return n;
}

static struct pci_access *access_names;

const char *pci_name(char *buf, size_t size, uint32_t vendor, uint32_t device)
{
	if (!access_names) {
		access_names = pci_alloc();
		if (access_names)
			pci_init(access_names);
	}
	buf[0] = '\0';
	if (access_names)
		pci_lookup_name(access_names, buf, size,
				PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE | PCI_LOOKUP_NO_NUMBERS,
				vendor, device);
	/* libpci returns a text even for unknown ids: that is no name */
	return buf[0] && !strstr(buf, "Unknown") ? buf : NULL;
}

void pci_name_done(void)
{
	if (access_names)
		pci_cleanup(access_names);
	access_names = NULL;
}
