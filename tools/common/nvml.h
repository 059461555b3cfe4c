/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What NVIDIA's driver tells of a GPU by its library NVML, which is loaded if it is there. */
#ifndef NVML_H
#define NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nvml_memory {
	uint64_t bar_bytes, bar_used;	/* BAR1: what boards and processors reach */
	uint64_t bytes;			/* all of the GPU's; 0: not told */
};

/* @bdf: the function, as 0000:41:00.0. false: @why is a sentence */
bool nvml_look(const char *bdf, struct nvml_memory *memory, char *why, size_t size);

#endif /* NVML_H */
