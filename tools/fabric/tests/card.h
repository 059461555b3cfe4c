/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An RDMA card in memory, instead of libibverbs: reliable connections between threads of a process,
 * and writes into another process that has it. It has no ibv_create_qp_ex().
 *
 * It logs as the stand-ins of GPUs do (note.h), and requests in a wrong order as WRONG. STAND_IN:
 * card-no-dmabuf, no-pages (nor an address of memory), revoke (a dma-buf after some writes).
 * STAND_IN_CARD: its folder, which may have the link device/driver.
 */
#ifndef FABRIC_CARD_H
#define FABRIC_CARD_H

#include <stdint.h>

/* Messages that found no receive, since the last call: another card would send them again later. */
uint32_t card_not_ready(void);

#endif /* FABRIC_CARD_H */
