/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests of rashpa-fpga that boards need not pass: options, control socket, misbehaviour, and the
 * protocol.
 */
#ifndef SELFTEST_H
#define SELFTEST_H

#include "conformance/dtp.h"
#include "conformance/socket.h"

#define REMOTE_ADDR	0x900000000ull		/* address of memory without a descriptor */

extern const struct suite bus_suite, protocol_suite, intx_suite, control_suite, clock_suite,
			  misbehave_suite, program_suite, live_suite, options_suite, wire_suite,
			  fetch_suite;

extern const char *program;
void start_program(void);		/* after the previous one ended */
void restart_program_with(const char *option);	/* NULL: no more options */

/* A DTP that writes to memory without a descriptor. */
struct dtp remote_dtp(void);
/* One stack, whose memory the test can check as a consumer does. */
struct dtp one_stack(uint32_t mode);

/* Send a command to the control socket; does the answer begin with @expected? */
bool control(int fd, const char *command, const char *expected);
/* The same by a connection for this command only. */
bool obeys(const char *command, const char *expected);
void tell(const char *command);			/* fails the test unless the answer is "ok" */

#endif /* SELFTEST_H */
