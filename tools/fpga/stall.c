// SPDX-License-Identifier: LGPL-2.1-or-later
/* Why an engine waits, and for how long; its faults. engine.lock is held. */
#include "fpga/fpga.h"

#include "fpga/log.h"

void engine_fault(struct fpga *fpga, uint32_t who, const struct bus_fault *fault)
{
	struct engine *e = &fpga->engine;

	e->faults++;
	e->fault_addr = fault->addr;
	e->fault_cause = fault->cause;
	e->fault_dtp = who;
	log_limited("%s %u: fault, cause %u, address %#llx",
		    who < RFPGA_FAULT_RING(0) ? "DTP" : "ring", who % RFPGA_FAULT_RING(0),
		    fault->cause, (unsigned long long)fault->addr);
}

void dtp_stall(struct dtp *d, enum stall cause, uint64_t now)
{
	if (cause == d->stall)
		return;
	if (d->stall != STALL_NONE && now > d->stalled)
		count_add(&d->count.stall[d->stall], now - d->stalled);
	d->stall = cause;
	d->stalled = now;
	if (cause == STALL_CREDIT)
		d->status |= RFPGA_DTP_WAITING;
	else
		d->status &= ~RFPGA_DTP_WAITING;
}
