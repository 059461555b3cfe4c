// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Commands of the control socket. Tests use them to check how software copes with failing
 * hardware.
 *
 *   status	     counters, even when the host cannot read them any more
 *   peek A N	     N bytes, 1 to 64, at bus address A, in hexadecimal, as the board reads them
 *   clock hold|run  hold the clock, let it go on
 *   clock step N    advance a held clock by N ticks, after all work that is due. This command and
 *		     "hold" are answered when the engine and a flood have done all work that is due
 *		     at the new tick
 *
 * More commands: source.c (images that a detector misses), slow.c (sensor values), ring.c (faults
 * of rings), fault.c (faults of the whole board) and misbehave.c (wrong order, loss and duplication
 * of images, lock records and interrupts).
 */
#include "fpga/fpga.h"

#include <stdio.h>
#include <string.h>

static uint64_t settle_end;	/* deadline for the engine to settle, in host_ticks() */
static uint64_t jump;		/* ticks of the step that follows */

static void say(char *answer, const char *text)
{
	snprintf(answer, DEVICE_COMMAND_SIZE, "%s", text);
}

static void tell_status(struct fpga *fpga, char *answer)
{
	struct engine *e = &fpga->engine;

	pthread_mutex_lock(&e->lock);
	snprintf(answer, DEVICE_COMMAND_SIZE,
		 "ok faults=%llu cause=%u address=%#llx dtp=%u stops=%u bytes=%llu flood=%llu",
		 (unsigned long long)e->faults, e->fault_cause,
		 (unsigned long long)e->fault_addr, e->fault_dtp, e->stops,
		 (unsigned long long)e->bytes, (unsigned long long)fpga->faults.flood_sent);
	pthread_mutex_unlock(&e->lock);
}

#define PEEK_MAX	64u

/* Memory that the host shares; other memory would need messages to this thread. */
static void peek(struct fpga *fpga, const char *text, char *answer)
{
	unsigned long long addr;
	uint8_t data[PEEK_MAX];
	enum host_answer done;
	unsigned int n, i;
	char end;

	if (sscanf(text, "%llx %u%c", &addr, &n, &end) != 2 || !n || n > PEEK_MAX) {
		say(answer, "error: peek ADDRESS N, in hexadecimal and up to 64: rashpa-fpga(1)");
		return;
	}
	host_begin(fpga->host);
	done = host_access(fpga->host, HOST_READ, addr, data, n, NULL);
	host_end(fpga->host);
	if (done != HOST_DONE) {
		say(answer, "error: it cannot be read");
		return;
	}
	say(answer, "ok ");
	for (i = 0; i < n; i++)
		snprintf(answer + 3 + 2 * i, 3, "%02x", data[i]);
}

static void kick(struct fpga *fpga)
{
	engine_kick(fpga);
	fault_kick(fpga);
	settle_end = host_ticks() + HOST_PATIENCE * 1000000000ull / RFPGA_TICK_NS;
}

static void obey_clock(struct fpga *fpga, const char *text, char *answer)
{
	unsigned long long ticks = 0;
	char end;

	if (!strcmp(text, "hold")) {
		clock_hold();
	} else if (!strcmp(text, "run")) {
		clock_run();
		say(answer, "ok");
	} else if (!clock_held() || sscanf(text, "step %llu%c", &ticks, &end) != 1) {
		say(answer,
		    "error: clock hold, run, or, while it is held, step TICKS: rashpa-fpga(1)");
	}
	jump = ticks;
	kick(fpga);
}

/*
 * Work that is due before a step is done before it. The protocol goes on meanwhile, because the
 * engine may wait for an answer of the host.
 */
static void settle(struct fpga *fpga, char *answer)
{
	uint64_t ticks = jump;

	if (!engine_settled(fpga) || !fault_settled(fpga)) {
		if (host_ticks() > settle_end)
			say(answer, "error: a stream that never waits is running");
		return;
	}
	jump = 0;
	if (!clock_step(ticks))
		say(answer, "error: the clock cannot be stepped to tick 2^61: step less");
	else if (ticks)
		kick(fpga);
	else
		say(answer, "ok");
}

bool fpga_command(void *self, const char *line, char *answer)
{
	struct fpga *fpga = self;

	if (!line) {
		settle(fpga, answer);
	} else if (!strcmp(line, "status")) {
		tell_status(fpga, answer);
	} else if (!strncmp(line, "peek ", 5)) {
		peek(fpga, line + 5, answer);
	} else if (!strncmp(line, "clock ", 6)) {
		obey_clock(fpga, line + 6, answer);
	} else if (fault_command(fpga, line) || misbehave(fpga, line) ||
		   source_command(fpga, line) || sensor_command(fpga, line) ||
		   ring_command(fpga, line)) {
		say(answer, "ok");
	} else {
		say(answer, "error: disconnect, exit, status, peek, clock, sensor, miss, ring; dead, flood, stuck, resetting, "
		    "poison, flr, patient; early, late, reorder, twice, lose, torn, linger, drop, wild, "
		    "release, honest: rashpa-fpga(1)");
	}
	return true;
}
