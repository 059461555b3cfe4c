/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What NVIDIA's driver reports of a GPU through NVML. NVML is loaded if installed. */
#ifndef NVML_H
#define NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nvml_memory {
	uint64_t bar_bytes, bar_used;	/* BAR1: memory that boards and processors reach */
	uint64_t bytes;			/* all memory of the GPU; 0: not known */
};

struct nvml;

/* @bdf: the function, as 0000:41:00.0. NULL: @why is a sentence */
struct nvml *nvml_open(const char *bdf, char *why, size_t size);
/* NULL is allowed. */
void nvml_close(struct nvml *nvml);
/* false: @why is a sentence */
bool nvml_memory(const struct nvml *nvml, struct nvml_memory *memory, char *why, size_t size);
/* Time that kernels ran, percent, and power, watt; of the driver's last interval. NAN: not known */
void nvml_load(const struct nvml *nvml, double *percent, double *watt);

#endif /* NVML_H */
