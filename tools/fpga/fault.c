// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Faults of the whole board, commanded by the control socket:
 *
 *   dead on|link|off	every read answers all ones, writes are ignored. "on": only in the BARs;
 *			configuration space still answers, and streams go on. "link":
 *			everywhere, and no data leave the board any more; "off" then resets the
 *			board
 *   flood max|N V	send interrupt vector V N times a second, or as often as possible
 *   flood off
 *   resetting US|off	CONTROL.RESET takes US microseconds; a reset of the function ends it
 *   stuck on|off	ignore stop requests (a reset works, and ends this)
 *   poison on|off	fetched descriptors are poisoned
 *   flr on|off		advertise function-level reset, or not; the host reads this in a bus scan
 *   flr dies		advertise it, and act as "dead link" after the next one
 *   patient on|off	a stream waits while bus mastering is off, and then goes on; off: that
 *			is a fault, which ends the stream
 *
 * Messages do not reach pages of BARs that the host maps (doorbells, on-board memory): these
 * still answer.
 */
#include "fpga/fpga.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#define TICKS_A_SECOND	(1000000000u / RFPGA_TICK_NS)
#define RATE_MAX	1000000u

/* An interrupt is a write: it needs bus mastering. */
static void send_one(struct fpga *fpga, uint32_t vector)
{
	host_begin(fpga->host);
	host_interrupt(fpga->host, vector, &fpga->faults.flood_sent);
	host_end(fpga->host);
}

static void *flood_main(void *arg)
{
	struct fpga *fpga = arg;
	struct faults *f = &fpga->faults;
	uint64_t now;

	prctl(PR_SET_NAME, "flood");
	pthread_mutex_lock(&f->lock);
	while (!f->exit) {
		if (!f->flooding) {
			pthread_cond_wait(&f->wake, &f->lock);
			continue;
		}
		now = fpga_ticks();
		if (f->period && f->due > now) {
			clock_wait(&f->wake, &f->lock, f->due, CLOCK_NEVER);
			continue;
		}
		/* missed interrupts are not made up for */
		f->due += f->period;
		if (f->due < now)
			f->due = now;
		f->sending = true;
		pthread_mutex_unlock(&f->lock);
		send_one(fpga, f->vector);
		pthread_mutex_lock(&f->lock);
		f->sending = false;
		pthread_cond_broadcast(&f->idle);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* When this returns, the last interrupt of the previous flood has been sent. */
static void flood_set(struct fpga *fpga, bool on, uint32_t vector, uint64_t period)
{
	struct faults *f = &fpga->faults;

	pthread_mutex_lock(&f->lock);
	f->flooding = false;
	while (f->sending)
		pthread_cond_wait(&f->idle, &f->lock);
	f->vector = vector;
	f->period = period;
	f->due = fpga_ticks();
	f->flooding = on;
	if (on)
		f->flood_sent = 0;
	pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
}

void fault_kick(struct fpga *fpga)
{
	pthread_mutex_lock(&fpga->faults.lock);
	pthread_cond_signal(&fpga->faults.wake);
	pthread_mutex_unlock(&fpga->faults.lock);
}

/* No interrupt is due; a flood at full rate has no ticks. */
static bool rests(const struct faults *f)
{
	return !f->flooding || !f->period || (!f->sending && f->due > fpga_ticks());
}

bool fault_settled(struct fpga *fpga)
{
	uint64_t until = host_ticks() + TICKS_A_SECOND / 1000;
	struct faults *f = &fpga->faults;
	bool settled;

	pthread_mutex_lock(&f->lock);
	while (!rests(f) && host_ticks() < until)
		clock_wait(&f->idle, &f->lock, CLOCK_NEVER, until);
	settled = rests(f);
	pthread_mutex_unlock(&f->lock);
	return settled;
}

void fault_reset(struct fpga *fpga)
{
	flood_set(fpga, false, 0, 0);
}

int fault_init(struct fpga *fpga)
{
	struct faults *f = &fpga->faults;
	pthread_condattr_t attr;

	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->wake, &attr);
	pthread_cond_init(&f->idle, &attr);
	pthread_condattr_destroy(&attr);
	return -pthread_create(&f->thread, NULL, flood_main, fpga);
}

void fault_destroy(struct fpga *fpga)
{
	struct faults *f = &fpga->faults;

	fault_reset(fpga);
	pthread_mutex_lock(&f->lock);
	f->exit = true;
	pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	pthread_cond_destroy(&f->wake);
	pthread_cond_destroy(&f->idle);
	pthread_mutex_destroy(&f->lock);
}

bool fault_dead(const struct fpga *fpga, bool config)
{
	return config ? fpga->faults.no_link : fpga->faults.dead;
}

static void set_dead(struct fpga *fpga, bool dead, bool link)
{
	struct faults *f = &fpga->faults;

	/* a returning link has reset the board */
	if (f->no_link && link) {
		f->no_link = false;
		fpga->device.ops->reset(fpga, DEVICE_RESET_HOST);
		host_link(fpga->host, true);
	}
	f->dead = dead;
	f->no_link = !link;
	if (!link)
		host_link(fpga->host, false);
}

/* After a function-level reset. */
void fault_flr(struct fpga *fpga)
{
	if (!fpga->faults.flr_dies)
		return;
	fpga->faults.flr_dies = false;
	set_dead(fpga, true, false);
}

static bool flood(struct fpga *fpga, const char *text)
{
	unsigned int rate, vector;
	char end;

	if (!strcmp(text, "off")) {
		flood_set(fpga, false, 0, 0);
		return true;
	}
	if (sscanf(text, "max %u%c", &vector, &end) == 1)
		rate = 0;
	else if (sscanf(text, "%u %u%c", &rate, &vector, &end) != 2 || !rate || rate > RATE_MAX)
		return false;
	if (vector >= fpga->vectors)
		return false;
	flood_set(fpga, true, vector, rate ? TICKS_A_SECOND / rate : 0);
	return true;
}

/* Set the duration of later resets; "off" also ends a current one. */
static bool set_resetting(struct fpga *fpga, const char *text)
{
	unsigned int us = 0;
	char end;

	if (strcmp(text, "off") && sscanf(text, "%u%c", &us, &end) != 1)
		return false;
	fpga->faults.reset_delay = us * 1000ull / RFPGA_TICK_NS;
	if (!us)
		fpga->resetting = 0;
	return true;
}

bool fault_command(struct fpga *fpga, const char *command)
{
	if (!strcmp(command, "dead on"))
		set_dead(fpga, true, true);
	else if (!strcmp(command, "dead link"))
		set_dead(fpga, true, false);
	else if (!strcmp(command, "dead off"))
		set_dead(fpga, false, true);
	else if (!strncmp(command, "flood ", 6))
		return flood(fpga, command + 6);
	else if (!strncmp(command, "resetting ", 10))
		return set_resetting(fpga, command + 10);
	else if (!strcmp(command, "stuck on") || !strcmp(command, "stuck off"))
		engine_set_stuck(fpga, !strcmp(command, "stuck on"));
	else if (!strcmp(command, "patient on") || !strcmp(command, "patient off"))
		engine_set_patient(fpga, !strcmp(command, "patient on"));
	else if (!strcmp(command, "poison on") || !strcmp(command, "poison off"))
		fpga->bus.poison = !strcmp(command, "poison on");
	else if (!strcmp(command, "flr on") || !strcmp(command, "flr off"))
		fpga->device.no_flr = !strcmp(command, "flr off");
	else if (!strcmp(command, "flr dies"))
		fpga->faults.flr_dies = true;
	else
		return false;
	return true;
}
