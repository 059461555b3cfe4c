/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A function bound to uio_pci_generic. */
#ifndef BENCH_UIO_H
#define BENCH_UIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uio {
	unsigned int number;	/* uioN */
	int device, config;
};

#define UIO_NONE { .device = -1, .config = -1 }

/* Open the device, and enable its DMA. 0, or -1 with the reason in why[WHY_SIZE]. */
int uio_open(struct uio *uio, const char *bdf, char *why);
void uio_close(struct uio *uio);
/* Map the start of a BAR, or MAP_FAILED with the reason. */
void *uio_map_bar(const char *bdf, unsigned int bar, size_t size, char *why);
/* Read the number of interrupts so far. */
int uio_count(const struct uio *uio, uint64_t *count, char *why);
/* Enable or disable INTx in the command register; the kernel disables it at each interrupt. */
int uio_enable(const struct uio *uio, bool on, char *why);
/* Physical address of a page of this process. The kernel may move pages of user memory. */
int uio_physical(const void *page, uint64_t *addr, char *why);

#endif /* BENCH_UIO_H */
