/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A bound function, whatever its interface. */
#ifndef FPGA_H
#define FPGA_H

#include <stdbool.h>
#include <linux/rashpa.h>

struct fpga {
	unsigned int number;
	int device;		/* /dev/rashpa/fpgaN */
	struct rashpa_device_info info;
};

#define FPGA_NONE	{ .device = -1 }

/* "3" or "fpga3" */
bool parse_fpga(const char *text, unsigned int *number);

/* 0, or -1 with the reason in why[WHY_SIZE]. */
int fpga_open(struct fpga *fpga, unsigned int number, char *why);
void fpga_close(struct fpga *fpga);

/* Registers of a function that was removed cannot be reached: end with a message, not silently. */
void fpga_catch_removal(void);
/*
 * For programs that go on without the function, after fpga_catch_removal(): call @look(@arg), which
 * reads registers. False: the function was removed, and @look was interrupted. So @look must not
 * hold resources that its caller does not know. In one thread, and one call at a time.
 */
bool fpga_outlive(void (*look)(void *arg), void *arg);

#endif /* FPGA_H */
