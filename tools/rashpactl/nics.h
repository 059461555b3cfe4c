/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* RDMA cards of this machine, from sysfs: can they write into memory of GPUs and boards? */
#ifndef NICS_H
#define NICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/path.h"

struct nic {
	char name[64];			/* as mlx5_0 */
	char bdf[BDF_SIZE];		/* empty: a soft card, which has no function */
	uint64_t function;		/* PCI_BDF() */
	char driver[64];
	int node;			/* NUMA, -1: not known */
	/* relaxed ordering of its writes; not known to users other than root */
	enum { ORDER_UNKNOWN, ORDER_STRICT, ORDER_RELAXED } order;
};

enum nic_verdict { NIC_OK, NIC_NOTE };

/* At most @most of them; root: "" or a folder with another /sys, for tests. Their number. */
unsigned int nics_look(struct nic *nic, unsigned int most, const char *root);

/* @peermem: nvidia-peermem is loaded. A sentence for @text; *remedy is what to do, or NULL. */
enum nic_verdict nic_judge(const struct nic *nic, bool peermem, char *text, size_t size,
			   const char **remedy);

#endif /* NICS_H */
