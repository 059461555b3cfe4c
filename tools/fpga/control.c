// SPDX-License-Identifier: GPL-2.0-only
/*
 * The control socket: what a test needs to see how software stands hardware that fails.
 * Lines of text, each answered by one line: "ok", or "error: ..." and why.
 *
 *   disconnect	     drop the connection to the host
 *   exit	     end at once, as if the board had lost its power
 *   status	     counters, also when the host cannot read them any more
 *   clock hold|run  the clock stands still, goes on
 *   clock step N    a held clock jumps N ticks, when the engine has nothing more to do before.
 *		     This and "hold" are answered when it has nothing more to do at that tick
 *
 * those of source.c, what a detector does not deliver, and of slow.c, what a sensor reads; those
 * of fault.c, which the whole board does wrong, and those of misbehave.c, which get a stack and
 * its event wrong.
 */
#include "fpga.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"

static int listener = -1;
static int client = -1;
static char line[FPGA_COMMAND_SIZE];
static size_t have;
static uint64_t settle_end;	/* by host_ticks(): how long the engine may take to settle; or 0 */
static uint64_t jump;		/* when it has: ticks of a step */

int control_open(const char *path)
{
	listener = listen_at(path);
	return listener < 0 ? listener : 0;
}

static void hang_up(void)
{
	close(client);
	client = -1;
	have = 0;
	settle_end = 0;
}

void control_close(const char *path)
{
	unlink(path);
	if (client >= 0)
		hang_up();
	close(listener);
	listener = -1;
}

int control_fd(void)
{
	return client >= 0 ? client : listener;
}

static void answer(const char *text)
{
	send(client, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	send(client, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void tell_status(struct fpga *fpga)
{
	struct engine *e = &fpga->engine;
	char text[FPGA_COMMAND_SIZE];

	pthread_mutex_lock(&e->lock);
	snprintf(text, sizeof(text),
		 "ok connected=%d faults=%llu cause=%u address=%#llx dtp=%u stops=%u bytes=%llu flood=%llu",
		 vfu_connected(fpga->vfu), (unsigned long long)e->faults, e->fault_cause,
		 (unsigned long long)e->fault_addr, e->fault_dtp, e->stops,
		 (unsigned long long)e->bytes, (unsigned long long)fpga->faults.flood_sent);
	pthread_mutex_unlock(&e->lock);
	answer(text);
}

/* Answer when the engine has done all that is due now. */
static void await(struct fpga *fpga)
{
	engine_kick(fpga);
	fault_kick(fpga);
	settle_end = host_ticks() + VFU_PATIENCE * 1000000000ull / RFPGA_TICK_NS;
}

static void obey_clock(struct fpga *fpga, const char *text)
{
	unsigned long long ticks = 0;
	char end;

	if (!strcmp(text, "run")) {
		clock_run();
		engine_kick(fpga);
		fault_kick(fpga);
		answer("ok");
		return;
	}
	if (!strcmp(text, "hold")) {
		clock_hold();
	} else if (!clock_held() || sscanf(text, "step %llu%c", &ticks, &end) != 1) {
		answer("error: clock hold, run, or, while it is held, step TICKS: rashpa-fpga(1)");
		return;
	}
	jump = ticks;
	await(fpga);
}

/*
 * What was due before a step happens before it. The protocol goes on meanwhile: the engine may
 * wait for an answer of the host.
 */
static void settle(struct fpga *fpga)
{
	uint64_t ticks = jump;

	if (!engine_settled(fpga)) {
		if (host_ticks() < settle_end)
			return;
		answer("error: a stream that never waits is running");
	} else if (!clock_step(ticks)) {
		answer("error: so far the clock cannot count");
	} else if (ticks) {
		jump = 0;
		await(fpga);
		return;
	} else {
		answer("ok");
	}
	settle_end = 0;
}

bool control_pending(void)
{
	return settle_end;
}

static void obey(struct fpga *fpga, const char *command)
{
	log_msg("control: %s", command);
	if (!strcmp(command, "exit"))
		_exit(0);
	if (!strcmp(command, "status")) {
		tell_status(fpga);
		return;
	}
	if (!strncmp(command, "clock ", 6)) {
		obey_clock(fpga, command + 6);
		return;
	}
	if (!strcmp(command, "disconnect")) {
		vfu_disconnect(fpga->vfu);
	} else if (!fault_command(fpga, command) && !misbehave(fpga, command) &&
		   !source_command(fpga, command) && !sensor_command(fpga, command)) {
		answer("error: disconnect, exit, status, clock, sensor, miss; "
		       "dead, flood, stuck, resetting, flr, patient; "
		       "early, late, reorder, twice, lose, torn, linger, drop, wild, release, "
		       "honest: rashpa-fpga(1)");
		return;
	}
	answer("ok");
}

static void take_lines(struct fpga *fpga)
{
	char *end;

	while (client >= 0 && !settle_end && (end = memchr(line, '\n', have))) {
		size_t length = (size_t)(end - line) + 1;

		*end = '\0';
		if (length > 1 && line[length - 2] == '\r')
			line[length - 2] = '\0';
		if (*line)
			obey(fpga, line);
		memmove(line, line + length, have - length);
		have -= length;
	}
}

void control_serve(struct fpga *fpga)
{
	ssize_t n;

	if (client < 0) {
		client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		return;
	}
	if (settle_end) {
		settle(fpga);
		take_lines(fpga);
		return;
	}
	n = read(client, line + have, sizeof(line) - have);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		hang_up();
		return;
	}
	have += (size_t)n;
	take_lines(fpga);
	if (have == sizeof(line) && !memchr(line, '\n', have))
		hang_up();		/* no command is that long */
}
