/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The software FPGA inside a fuzzer: no process, no sockets in the file system. */
#ifndef FUZZ_BOARD_H
#define FUZZ_BOARD_H

#include <stddef.h>
#include <stdint.h>

#include "fpga/fpga.h"
#include "fpga/vfu.h"

/* The configuration of rashpa-fpga-selftest, so that its recordings can be seeds. */
#define BOARD_MEMORY	(16u << 20)
#define BOARD_DTPS	4
#define BOARD_VECTORS	4

extern struct fpga board;
extern struct host board_host;
extern struct vfu *board_vfu;

/* Start the board once; every input begins with a reset board. */
void board_init(void);
/* Undo all commands of the control socket. */
void board_honest(void);
/* Check that nothing of the previous input is left; returns board_next_fd(). */
int board_begin(void);
/* Aborts, so that the fuzzer keeps the input. */
#define board_assert(cond) board_check(cond, #cond, __LINE__)
void board_check(bool good, const char *what, int line);
/* The descriptor that the next open would return: rises when one leaked. */
int board_next_fd(void);

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* FUZZ_BOARD_H */
