/* SPDX-License-Identifier: GPL-2.0-only */
/* Names that older kernels give to functions of dma-bufs, for the modules of the tests. */
#ifndef RASHPA_DMABUF_H
#define RASHPA_DMABUF_H

#include <linux/dma-buf.h>

#ifndef RASHPA_HAVE_DMABUF_INVALIDATE
#define dma_buf_invalidate_mappings	dma_buf_move_notify
#define invalidate_mappings		move_notify
#endif

#endif /* RASHPA_DMABUF_H */
