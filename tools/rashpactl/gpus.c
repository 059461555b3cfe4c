// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/gpus.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/nvml.h"
#include "common/parse.h"
#include "common/text-file.h"

#define DEVICES		"/sys/bus/pci/devices"
#define CLASS_DISPLAY	0x03
#define CLASS_PROCESSOR	0x12		/* processing accelerators */
#define NVIDIA		0x10de

static uint64_t number(const char *root, const char *bdf, const char *name)
{
	char text[64];

	if (!read_line(text, sizeof(text), "%s" DEVICES "/%s/%s", root, bdf, name))
		return 0;
	return strtoull(text, NULL, 0);
}

static bool read_driver(char driver[GPU_DRIVER], const char *root, const char *device)
{
	char path[512], link[512];
	const char *name;
	ssize_t n;

	snprintf(path, sizeof(path), "%s" DEVICES "/%s/driver", root, device);
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	name = strrchr(link, '/');
	snprintf(driver, GPU_DRIVER, "%.63s", name ? name + 1 : link);
	return true;
}

/* The function's driver is that of the bus virtio; below it is the one of the GPU. */
static void read_virtio(char driver[GPU_DRIVER], const char *root, const char *bdf)
{
	char path[512], device[600];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s" DEVICES "/%s", root, bdf);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		snprintf(device, sizeof(device), "%s/%s", bdf, entry->d_name);
		if (!strncmp(entry->d_name, "virtio", 6) && read_driver(driver, root, device))
			break;
	}
	if (dir)
		closedir(dir);
}

/* A line of /proc/driver/nvidia/params: NAME: VALUE */
static bool read_parameter(const char *root, const char *name, const char *value)
{
	char path[512], line[1024];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/driver/nvidia/params", root);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = !strncmp(line, name, strlen(name)) && strstr(line, value);
	if (file)
		fclose(file);
	return found;
}

static void read_gpu(struct gpu *gpu, const char *root, const char *bdf)
{
	unsigned int domain, bus, device, function;
	char text[256];

	*gpu = (struct gpu) { .vendor = number(root, bdf, "vendor"), .node = -1 };
	snprintf(gpu->bdf, sizeof(gpu->bdf), "%.*s", BDF_SIZE - 1, bdf);
	if (sscanf(bdf, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4)
		gpu->function = PCI_BDF(domain, bus, device << 3 | function);
	if (read_line(text, sizeof(text), "%s" DEVICES "/%s/numa_node", root, bdf))
		gpu->node = atoi(text);
	if (read_driver(gpu->driver, root, bdf) && !strcmp(gpu->driver, "virtio-pci"))
		read_virtio(gpu->driver, root, bdf);
	/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64 …" */
	gpu->open = gpu->vendor == NVIDIA &&
		    read_line(text, sizeof(text), "%s/proc/driver/nvidia/version", root) &&
		    strstr(text, "Open Kernel Module");
	gpu->windows = read_parameter(root, "RegistryDwords", "PeerMappingOverride=1");
	gpu->bar_bytes = path_largest_bar(root, bdf);
	gpu->memory_bytes = number(root, bdf, "mem_info_vram_total");	/* amdgpu */
}

unsigned int gpus_look(struct gpu *gpu, unsigned int most, const char *root)
{
	char path[512];
	struct dirent **entry;
	unsigned int found = 0;
	int n;

	snprintf(path, sizeof(path), "%s" DEVICES, root);
	n = scandir(path, &entry, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		const uint64_t class = number(root, entry[i]->d_name, "class") >> 16;

		if (class == CLASS_DISPLAY || class == CLASS_PROCESSOR) {
			if (found < most)
				read_gpu(&gpu[found], root, entry[i]->d_name);
			found++;
		}
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	return found;
}

bool gpu_ask(struct gpu *gpu, char *why, size_t size)
{
	struct nvml_memory memory;
	struct nvml *nvml;
	bool found;

	*why = '\0';
	nvml = strcmp(gpu->driver, "nvidia") ? NULL : nvml_open(gpu->bdf, why, size);
	found = nvml && nvml_memory(nvml, &memory, why, size);
	nvml_close(nvml);
	if (!found)
		return false;
	gpu->used_is_known = true;
	gpu->bar_bytes = memory.bar_bytes;
	gpu->bar_used = memory.bar_used;
	gpu->memory_bytes = memory.bytes;
	return true;
}

/* --- what a driver does when a board asks for its memory (from the drivers' sources) --- */

struct habit {
	const char *driver;
	enum gpu_verdict verdict;
	const char *says, *remedy;
};

static const struct habit habits[] = {
	{ "xe", GPU_GIVES, "gives its memory to boards", NULL },
	{ "virtio_gpu", GPU_GIVES, "gives memory that its host has put into the BAR (blobs) to boards",
	  NULL },
	{ "i915", GPU_NOTE, "moves memory to the host's before a board gets it",
	  "boot with i915.force_probe=!ID xe.force_probe=ID (its PCI id): xe gives it to boards" },
	{ "nouveau", GPU_NOTE, "moves memory to the host's before a board gets it",
	  "install NVIDIA's open kernel modules (Turing and newer)" },
	{ "vfio-pci", GPU_NOTE,
	  "is for virtual machines and user-space drivers: it gives no memory to boards",
	  "rashpactl doctor in the virtual machine that has it" },
};

static const struct habit nvidia_open = {
	"nvidia", GPU_GIVES,
	"(open modules) gives memory of cuMemGetHandleForAddressRange to boards", NULL,
};

static const struct habit nvidia_closed = {
	"nvidia", GPU_NOTE, "(closed modules) gives its memory to no board",
	"install the open kernel modules (Turing and newer); an older GPU reads host buffers: cuMemHostRegister",
};

static const struct habit amdgpu_p2p = {
	"amdgpu", GPU_GIVES, "gives its memory to boards", NULL,
};

static const struct habit amdgpu_host = {
	"amdgpu", GPU_NOTE,
	"moves memory to the host's before a board gets it: this kernel has no P2PDMA",
	"a kernel with CONFIG_PCI_P2PDMA (Debian's from 7.2)",
};

static const struct habit *habit_of(const struct gpu *gpu, bool p2pdma)
{
	if (!strcmp(gpu->driver, "nvidia"))
		return gpu->open ? &nvidia_open : &nvidia_closed;
	if (!strcmp(gpu->driver, "amdgpu"))
		return p2pdma ? &amdgpu_p2p : &amdgpu_host;
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
		if (!strcmp(gpu->driver, habits[i].driver))
			return &habits[i];
	}
	return NULL;
}

enum gpu_verdict gpu_judge(const struct gpu *gpu, bool p2pdma, char *text, size_t size,
			   const char **remedy)
{
	const struct habit *habit = habit_of(gpu, p2pdma);
	char bar[SIZE_TEXT], all[SIZE_TEXT], used[SIZE_TEXT], in_bar[128] = "";

	*remedy = NULL;
	format_size(bar, gpu->bar_bytes);
	if (gpu->used_is_known)
		snprintf(in_bar, sizeof(in_bar), ", BAR1 %s, %s of it used", bar,
			 format_size(used, gpu->bar_used));
	else if (gpu->bar_bytes)
		snprintf(in_bar, sizeof(in_bar), ", BAR %s", bar);
	if (!*gpu->driver) {
		snprintf(text, size, "%s: no driver has it", gpu->bdf);
		return GPU_OTHER;
	}
	if (!habit) {
		/* a display of a server's board controller, most often */
		snprintf(text, size, "%s: %s%s: this driver's handling of GPU memory is not known",
			 gpu->bdf, gpu->driver, in_bar);
		return GPU_OTHER;
	}
	snprintf(text, size, "%s: %s %s%s", gpu->bdf, gpu->driver, habit->says, in_bar);
	*remedy = habit->remedy;
	if (habit->verdict == GPU_GIVES && gpu->memory_bytes > gpu->bar_bytes) {
		snprintf(text, size, "%s: %s %s, but only %s of %s are in its BAR%s", gpu->bdf,
			 gpu->driver, habit->says, bar, format_size(all, gpu->memory_bytes),
			 gpu->used_is_known ? in_bar : "");
		*remedy = "switch on Resizable BAR (above 4G decoding) in the firmware";
		return GPU_NOTE;
	}
	return habit->verdict;
}
