// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A stand-in for libnvidia-ml.so.1, with one simulated GPU: it logs the calls.
 * STAND_IN: none (no driver), lost (it does not know the GPU), small (BAR1 of 256 MiB), no-total, no-power.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/tests/gpu-libraries/note.h"

#define CALL(name)	__attribute__((visibility("default"))) int nvml##name
#define UNINITIALIZED	1
#define INVALID		2
#define NOT_SUPPORTED	3
#define NOT_FOUND	6
#define NO_DRIVER	9

struct memory {
	unsigned long long total, free, used;
};

static int begun;
static int the_gpu;

CALL(Init_v2)(void)
{
	note("nvmlInit");
	if (told("none"))
		return NO_DRIVER;
	begun++;
	return 0;
}

CALL(Shutdown)(void)
{
	note("nvmlShutdown");
	if (!begun)
		return note("WRONG: nvmlShutdown: it has not begun"), UNINITIALIZED;
	begun--;
	return 0;
}

CALL(DeviceGetHandleByPciBusId_v2)(const char *bdf, void **device)
{
	note("nvmlDeviceGetHandleByPciBusId %s", bdf);
	if (!begun)
		return note("WRONG: no nvmlInit"), UNINITIALIZED;
	if (told("lost"))
		return NOT_FOUND;
	*device = &the_gpu;
	return 0;
}

static int tell(void *device, struct memory *memory, unsigned long long total)
{
	if (device != &the_gpu)
		return note("WRONG: unknown GPU"), INVALID;
	*memory = (struct memory) { total, total - (3 << 20), 3 << 20 };
	return 0;
}

CALL(DeviceGetBAR1MemoryInfo)(void *device, struct memory *memory)
{
	note("nvmlDeviceGetBAR1MemoryInfo");
	return tell(device, memory, UINT64_C(1) << (told("small") ? 28 : 37));
}

CALL(DeviceGetMemoryInfo)(void *device, struct memory *memory)
{
	note("nvmlDeviceGetMemoryInfo");
	return told("no-total") ? NOT_SUPPORTED : tell(device, memory, UINT64_C(80) << 30);
}

CALL(DeviceGetUtilizationRates)(void *device, unsigned int rates[2])
{
	if (device != &the_gpu)
		return note("WRONG: unknown GPU"), INVALID;
	rates[0] = 17;
	rates[1] = 23;
	return 0;
}

/* more each time */
CALL(DeviceGetPowerUsage)(void *device, unsigned int *milliwatt)
{
	static unsigned int more;

	if (device != &the_gpu)
		return note("WRONG: unknown GPU"), INVALID;
	*milliwatt = 36000 + 500 * more++;
	return told("no-power") ? NOT_SUPPORTED : 0;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int result)
{
	(void)result;
	return "said by a stand-in";
}
