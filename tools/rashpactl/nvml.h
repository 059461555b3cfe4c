/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of a GPU, as NVIDIA's driver reports it through NVML. NVML is loaded if installed. */
#ifndef NVML_H
#define NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nvml_memory {
	uint64_t bar_bytes, bar_used;	/* BAR1: memory that boards and processors reach */
	uint64_t bytes;			/* all memory of the GPU; 0: not known */
};

/* @bdf: the function, as 0000:41:00.0. false: @why is a sentence */
bool nvml_look(const char *bdf, struct nvml_memory *memory, char *why, size_t size);

#endif /* NVML_H */
