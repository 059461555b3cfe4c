/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A board that pretreats: raw images go into its memory, results come back by DMA. */
#ifndef RPU_BOARD_H
#define RPU_BOARD_H

#include "processing/engine.h"
#include <rashpa-processing.h>

struct rpu_board;

/* Is this the name of a board, as fpga3? */
bool rpu_is_board(const char *name);

/* Have the board to ourselves. -1 with the reason. */
int rpu_board_open(const char *name, struct rpu_board **board, char *why);

/*
 * A part of on-board memory for raw images of others: a dma-buf, the board's, where it is mapped,
 * and how many bytes. Before it begins. -1 with the reason.
 */
int rpu_board_offer(struct rpu_board *b, const void **base, uint64_t *length, char *why);

/*
 * Give it the calibration, and start it. Of @c only the geometry and what its planes have now is
 * used: they are on the board then. With @ring->slots raw images are where that says. -1 with the
 * reason.
 */
int rpu_board_begin(struct rpu_board *b, const struct rpu_calibration *c,
		    const struct rashpa_raw_ring *ring, char *why);

/* An image becomes numbers: 0, or -1 with the reason. */
int rpu_board_pretreat(struct rpu_board *b, const struct rpu_raw *raw, float *result, char *why);

/* A dark image moves the pedestal on the board; likewise. */
int rpu_board_dark(struct rpu_board *b, const struct rpu_raw *raw, char *why);

/* Stop it, and let go of it; NULL: nothing. */
void rpu_board_end(struct rpu_board *b);

#endif /* RPU_BOARD_H */
