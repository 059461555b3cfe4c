/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GPUs of this machine, from sysfs: can a board write into their memory? */
#ifndef GPUS_H
#define GPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/path.h"

#define GPU_DRIVER	64

struct gpu {
	char bdf[BDF_SIZE];
	uint64_t function;	/* PCI_BDF() */
	uint16_t vendor;
	char driver[GPU_DRIVER];	/* empty: none */
	bool open;		/* nvidia: the open modules */
	bool windows;		/* nvidia: not only root may register windows of boards */
	int node;		/* NUMA, -1: not told */
	uint64_t bar_bytes;	/* its largest BAR of memory */
	uint64_t memory_bytes;	/* all of its memory; 0: not told */
	bool used_is_known;	/* nvidia, behind gpu_ask(): what follows */
	uint64_t bar_used;	/* bytes of the BAR that are mapped, for boards and processors */
};

enum gpu_verdict {
	GPU_GIVES,	/* memory to boards */
	GPU_NOTE,	/* it does not, or not all: there is something to be done */
	GPU_OTHER,	/* no driver, or one that is not known */
};

/*
 * At most @most of them; root: "" or a folder with other /sys and /proc, for tests. How many there
 * are: functions of the classes display and processing accelerator.
 */
unsigned int gpus_look(struct gpu *gpu, unsigned int most, const char *root);

/*
 * Ask the driver's library for the used part of the BAR, which sysfs does not show. false: not
 * known, and @why is a sentence, or empty for drivers without such a library.
 */
bool gpu_ask(struct gpu *gpu, char *why, size_t size);

/*
 * Whether the driver gives its memory to boards. @p2pdma: the kernel has CONFIG_PCI_P2PDMA, or does
 * not tell. A sentence for @text; *remedy is what to do, or NULL.
 */
enum gpu_verdict gpu_judge(const struct gpu *gpu, bool p2pdma, char *text, size_t size,
			   const char **remedy);

#endif /* GPUS_H */
