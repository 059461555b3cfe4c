/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A function bound to vfio-pci, through the type 1 interface. */
#ifndef BENCH_VFIO_H
#define BENCH_VFIO_H

#include <stddef.h>
#include <stdint.h>

struct vfio {
	int container, group, device;
};

#define VFIO_NONE { .container = -1, .group = -1, .device = -1 }

/* An address that no bridge window and no interrupt range has on a PC */
#define VFIO_IOVA	(UINT64_C(1) << 32)

/* Open container and group. 0, or -1 with the reason in why[WHY_SIZE]. */
int vfio_open(struct vfio *vfio, const char *bdf, char *why);
void vfio_close(struct vfio *vfio);

/* Also open the function, and enable its DMA. */
int vfio_open_device(struct vfio *vfio, const char *bdf, char *why);
/* Map all of a BAR, or MAP_FAILED with the reason. */
void *vfio_map_bar(const struct vfio *vfio, unsigned int bar, size_t size, char *why);
/* Map memory of this process for the function, at VFIO_IOVA. */
int vfio_map_dma(const struct vfio *vfio, void *base, size_t size, char *why);
/*
 * Signal an eventfd at each interrupt of MSI-X vector 0. Enables the other vectors, too, as this
 * driver does, so that their cost is the same.
 */
int vfio_set_eventfd(const struct vfio *vfio, int fd, char *why);
int vfio_no_eventfd(const struct vfio *vfio, char *why);

#endif /* BENCH_VFIO_H */
