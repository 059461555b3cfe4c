/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An RDMA card in memory, instead of libibverbs: reliable connections between threads of a process.
 * It has no ibv_create_qp_ex().
 */
#ifndef FABRIC_CARD_H
#define FABRIC_CARD_H

#include <stdint.h>

/* Messages that found no receive, since the last call: another card would send them again later. */
uint32_t card_not_ready(void);

#endif /* FABRIC_CARD_H */
