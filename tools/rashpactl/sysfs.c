// SPDX-License-Identifier: LGPL-2.1-or-later
#include <dirent.h>
#include <errno.h>
#include <pci/pci.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rashpactl.h"

/* The class device below a function has the number. */
int fpga_number(const char *bdf)
{
	char path[128];
	struct dirent *entry;
	unsigned int n;
	int result = -1;
	DIR *dir;

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/rashpa", bdf);
	dir = opendir(path);
	if (!dir)
		return -1;
	while (result < 0 && (entry = readdir(dir))) {
		if (sscanf(entry->d_name, "fpga%u", &n) == 1)
			result = n;
	}
	closedir(dir);
	return result;
}

static void fill(struct pci_function *f, const char *bdf)
{
	struct pci_function fresh = { .fpga = fpga_number(bdf) };
	char text[512], path[128];
	ssize_t n;

	/* bdf may be the one in *f */
	snprintf(fresh.bdf, sizeof(fresh.bdf), "%.*s", BDF_SIZE - 1, bdf);
	*f = fresh;
	bdf = f->bdf;
	if (read_line(text, sizeof(text), PCI_DEVICES "/%s/vendor", bdf))
		f->vendor = strtoul(text, NULL, 16);
	if (read_line(text, sizeof(text), PCI_DEVICES "/%s/device", bdf))
		f->device = strtoul(text, NULL, 16);
	snprintf(path, sizeof(path), PCI_DEVICES "/%s/driver", bdf);
	n = readlink(path, text, sizeof(text) - 1);
	if (n < 0)
		return;
	text[n] = '\0';
	snprintf(f->driver, sizeof(f->driver), "%.63s",
		 strrchr(text, '/') ? strrchr(text, '/') + 1 : text);
}

bool pci_read(const char *bdf, struct pci_function *function)
{
	char path[128];

	snprintf(path, sizeof(path), PCI_DEVICES "/%s", bdf);
	if (access(path, F_OK)) {
		say("there is no PCI function %s: see lspci, or rashpactl list", bdf);
		return false;
	}
	fill(function, bdf);
	return true;
}

static int is_function(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int pci_list(struct pci_function **functions)
{
	struct dirent **entries;
	int n = scandir(PCI_DEVICES, &entries, is_function, alphasort);

	*functions = NULL;
	if (n < 0) {
		if (errno == ENOENT)
			return 0;
		say(PCI_DEVICES ": %s", strerror(errno));
		return -1;
	}
	*functions = calloc(n + 1, sizeof(**functions));
	for (int i = 0; i < n; i++) {
		if (*functions)
			fill(&(*functions)[i], entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	if (*functions)
		return n;
	say("no memory for the list of PCI functions");
	return -1;
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
	/* libpci has a text for what it does not know, too: that is no name */
	return buf[0] && !strstr(buf, "Unknown") ? buf : NULL;
}

void pci_name_done(void)
{
	if (access_names)
		pci_cleanup(access_names);
	access_names = NULL;
}
