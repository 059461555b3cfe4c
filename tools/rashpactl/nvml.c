// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * This file declares the functions of NVML that it calls, so the build needs no header of NVIDIA.
 * The library comes with the driver, and its calls stay as they are (nvml.h promises that).
 */
#include "rashpactl/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
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

struct calls {
	int (*init)(void);
	int (*shutdown)(void);
	int (*by_bus_id)(const char *bdf, struct nvml_device **device);
	int (*bar1)(struct nvml_device *device, struct bar1 *memory);
	int (*memory)(struct nvml_device *device, struct all *memory);
	const char *(*error)(int result);
};

static bool load(void *library, struct calls *calls)
{
	static const struct {
		const char *name;
		size_t at;
	} wanted[] = {
		{ "nvmlInit_v2", offsetof(struct calls, init) },
		{ "nvmlShutdown", offsetof(struct calls, shutdown) },
		{ "nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct calls, by_bus_id) },
		{ "nvmlDeviceGetBAR1MemoryInfo", offsetof(struct calls, bar1) },
		{ "nvmlDeviceGetMemoryInfo", offsetof(struct calls, memory) },
		{ "nvmlErrorString", offsetof(struct calls, error) },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *const pointer = dlsym(library, wanted[i].name);

		if (!pointer)
			return false;
		memcpy((char *)calls + wanted[i].at, &pointer, sizeof(pointer));
	}
	return true;
}

static bool look(const struct calls *calls, const char *bdf, struct nvml_memory *memory, char *why,
		 size_t size)
{
	struct nvml_device *device = NULL;
	struct bar1 bar1 = {};
	struct all all = {};
	int result = calls->by_bus_id(bdf, &device);

	if (!result)
		result = calls->bar1(device, &bar1);
	if (result) {
		snprintf(why, size, "NVML does not report BAR1: %s", calls->error(result));
		return false;
	}
	/* not of all GPUs: where memory is the processor's, as well */
	if (calls->memory(device, &all))
		all.total = 0;
	*memory = (struct nvml_memory) {
		.bar_bytes = bar1.total, .bar_used = bar1.used, .bytes = all.total,
	};
	return true;
}

bool nvml_look(const char *bdf, struct nvml_memory *memory, char *why, size_t size)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	struct calls calls;
	bool found = false;
	int result;

	*memory = (struct nvml_memory) {};
	if (!library) {
		snprintf(why, size, "how much of BAR1 is used is not known: there is no %s",
			 LIBRARY);
		return false;
	}
	if (!load(library, &calls)) {
		snprintf(why, size, "how much of BAR1 is used is not known: %s is too old",
			 LIBRARY);
	} else {
		result = calls.init();
		if (result) {
			snprintf(why, size, "NVML does not begin: %s", calls.error(result));
		} else {
			found = look(&calls, bdf, memory, why, size);
			calls.shutdown();
		}
	}
	dlclose(library);
	return found;
}
