// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bench/network/gpu-memory.h"

#include <math.h>

#include "common/json-out.h"
#include "common/path.h"

static void open_nvml(struct gpu_memory *g)
{
	char bdf[BDF_SIZE];

	if (g->info.pci == RASHPA_GPU_NOWHERE)
		because(g->no_nvml, 0, "%s has no PCI address", g->info.name);
	else
		g->nvml = nvml_open(bdf_text(bdf, g->info.pci), g->no_nvml, sizeof(g->no_nvml));
}

int gpu_memory_open(struct gpu_memory *g, const char *name, uint64_t length, char *why)
{
	double percent;

	if (rashpa_gpu_open(name, &g->gpu))
		return because(why, -1, "%s", rashpa_reason());
	rashpa_gpu_get_info(g->gpu, &g->info);
	open_nvml(g);
	gpu_memory_load(g, &percent, &g->idle_watt);
	if (rashpa_gpu_alloc(g->gpu, length, &g->memory))
		return because(why, -1, "%s", rashpa_reason());
	gpu_memory_load(g, &percent, &g->allocated_watt);
	g->device = (struct rashpa_net_device) {
		.address = rashpa_gpu_address(g->memory), .length = length, .numa_node = -1,
		.dmabuf = rashpa_gpu_dmabuf(g->memory),
	};
	if (g->info.pci != RASHPA_GPU_NOWHERE)
		rashpa_net_device_at(&g->device, g->info.pci);
	return 0;
}

void gpu_memory_close(struct gpu_memory *g)
{
	rashpa_gpu_free(g->memory);
	rashpa_gpu_close(g->gpu);
	nvml_close(g->nvml);
}

void gpu_memory_load(const struct gpu_memory *g, double *percent, double *watt)
{
	*percent = *watt = NAN;
	if (g->nvml)
		nvml_load(g->nvml, percent, watt);
}

struct json_object *gpu_memory_json(const struct gpu_memory *g)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "name", g->info.name);
	put_text(o, "driver", g->info.driver);
	put_text(o, "registered_by", g->device.by == RASHPA_NET_BY_DMABUF ? "dma-buf" : "nvidia-peermem");
	put_bool(o, "other_node", g->device.far);
	put_u64(o, "window_bytes", g->device.window);
	if (!isnan(g->idle_watt))
		put_real(o, "idle_watt", g->idle_watt);
	if (!isnan(g->allocated_watt))
		put_real(o, "allocated_watt", g->allocated_watt);
	if (!g->nvml)
		put_text(o, "no_load", g->no_nvml);
	return o;
}
