// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * This file declares the functions of NVML that it calls, so the build needs no header of NVIDIA.
 * The library comes with the driver, and its calls stay as they are (nvml.h promises that).
 */
#include "common/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY		"libnvidia-ml.so.1"

struct nvml_device;

/* nvmlBAR1Memory_t, nvmlMemory_t */
struct bar1 {
	unsigned long long total, free, used;
};

struct all {
	unsigned long long total, free, used;
};

/* nvmlUtilization_t */
struct rates {
	unsigned int gpu, memory;
};

struct nvml {
	void *library;
	struct nvml_device *device;
	int (*init)(void);
	int (*shutdown)(void);
	int (*by_bus_id)(const char *bdf, struct nvml_device **device);
	int (*bar1)(struct nvml_device *device, struct bar1 *memory);
	int (*memory)(struct nvml_device *device, struct all *memory);
	int (*rates)(struct nvml_device *device, struct rates *rates);
	int (*power)(struct nvml_device *device, unsigned int *milliwatt);
	const char *(*error)(int result);
};

static bool load(struct nvml *n)
{
	static const struct {
		const char *name;
		size_t at;
	} wanted[] = {
		{ "nvmlInit_v2", offsetof(struct nvml, init) },
		{ "nvmlShutdown", offsetof(struct nvml, shutdown) },
		{ "nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct nvml, by_bus_id) },
		{ "nvmlDeviceGetBAR1MemoryInfo", offsetof(struct nvml, bar1) },
		{ "nvmlDeviceGetMemoryInfo", offsetof(struct nvml, memory) },
		{ "nvmlDeviceGetUtilizationRates", offsetof(struct nvml, rates) },
		{ "nvmlDeviceGetPowerUsage", offsetof(struct nvml, power) },
		{ "nvmlErrorString", offsetof(struct nvml, error) },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *const pointer = dlsym(n->library, wanted[i].name);

		if (!pointer)
			return false;
		memcpy((char *)n + wanted[i].at, &pointer, sizeof(pointer));
	}
	return true;
}

struct nvml *nvml_open(const char *bdf, char *why, size_t size)
{
	struct nvml *n = calloc(1, sizeof(*n));
	int result;

	if (!n) {
		snprintf(why, size, "no memory");
		return NULL;
	}
	n->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!n->library) {
		snprintf(why, size, "NVML is missing: there is no %s", LIBRARY);
		goto free;
	}
	if (!load(n)) {
		snprintf(why, size, "NVML is missing: %s is too old", LIBRARY);
		goto close;
	}
	result = n->init();
	if (result) {
		snprintf(why, size, "NVML does not begin: %s", n->error(result));
		goto close;
	}
	result = n->by_bus_id(bdf, &n->device);
	if (!result)
		return n;
	snprintf(why, size, "NVML does not know the GPU: %s", n->error(result));
	n->shutdown();
close:
	dlclose(n->library);
free:
	free(n);
	return NULL;
}

void nvml_close(struct nvml *n)
{
	if (!n)
		return;
	n->shutdown();
	dlclose(n->library);
	free(n);
}

bool nvml_memory(const struct nvml *n, struct nvml_memory *memory, char *why, size_t size)
{
	struct bar1 bar1 = {};
	struct all all = {};
	const int result = n->bar1(n->device, &bar1);

	if (result) {
		snprintf(why, size, "NVML does not report BAR1: %s", n->error(result));
		return false;
	}
	/* not of all GPUs: where memory is the processor's, as well */
	if (n->memory(n->device, &all))
		all.total = 0;
	*memory = (struct nvml_memory) {
		.bar_bytes = bar1.total, .bar_used = bar1.used, .bytes = all.total,
	};
	return true;
}

void nvml_load(const struct nvml *n, double *percent, double *watt)
{
	struct rates rates;
	unsigned int milliwatt;

	*percent = n->rates(n->device, &rates) ? NAN : rates.gpu;
	*watt = n->power(n->device, &milliwatt) ? NAN : milliwatt / 1e3;
}
