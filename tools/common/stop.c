// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/stop.h"

#include <signal.h>
#include <stddef.h>

#include "common/say.h"

/* A signal that comes right before poll() does not end it: look again after so long. */
#define LOOK_NS		200000000ull

static volatile bool stop;

static void on_signal(int number)
{
	(void)number;
	stop = true;
}

volatile bool *stop_on_signals(void)
{
	const struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	return &stop;
}

struct timespec time_left(uint64_t now, uint64_t end, uint64_t most)
{
	uint64_t left = end > now ? end - now : 0;

	left = left < most ? left : most;
	return (struct timespec) { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
}

int stop_poll(struct pollfd *fds, unsigned int n, uint64_t end)
{
	struct timespec left;
	uint64_t now;
	int ready;

	do {
		now = now_ns();
		left = time_left(now, end, LOOK_NS);
		ready = ppoll(fds, n, &left, NULL);
	} while (ready <= 0 && !stop && now < end);
	return ready;
}
