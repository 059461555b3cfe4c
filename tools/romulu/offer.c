// SPDX-License-Identifier: LGPL-2.1-or-later
#include "romulu/offer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rashpa.h>
#include <rashpa-stream.h>
#include "common/say.h"

struct offer {
	const char *name;
	int dmabuf, listener, over;
	pthread_t thread;
};

/* A failure with one client is reported, and the next one is served. */
static void *hand(void *argument)
{
	const struct offer *o = argument;
	struct pollfd wait[] = {
		{ .fd = o->listener, .events = POLLIN },
		{ .fd = o->over, .events = POLLIN },
	};

	for (;;) {
		int error;

		if (poll(wait, 2, -1) < 0 && errno != EINTR)
			break;
		if (wait[1].revents)
			break;
		error = wait[0].revents ? rashpa_payload_hand(o->listener, o->dmabuf) : 0;
		if (error && error != -EAGAIN)
			say("memory %s: %s", o->name, rashpa_reason());
	}
	return NULL;
}

int offer_open(const char *name, int dmabuf, struct offer **offer)
{
	struct offer *o = malloc(sizeof(*o));
	int error;

	if (!o)
		return fail("no memory to offer memory");
	*o = (struct offer) { .name = name, .dmabuf = dmabuf, .over = -1 };
	o->listener = rashpa_payload_listen(name);
	if (o->listener < 0) {
		error = fail("memory %s cannot be offered: %s", name, rashpa_reason());
		goto free;
	}
	o->over = eventfd(0, EFD_CLOEXEC);
	error = o->over < 0 ? errno : pthread_create(&o->thread, NULL, hand, o);
	if (!error) {
		*offer = o;
		return 0;
	}
	error = fail("memory %s cannot be offered: %s", name, strerror(error));
	if (o->over >= 0)
		close(o->over);
	close(o->listener);
free:
	free(o);
	return error;
}

void offer_close(struct offer *o)
{
	if (!o)
		return;
	while (eventfd_write(o->over, 1) && errno == EINTR)
		;
	pthread_join(o->thread, NULL);
	close(o->over);
	close(o->listener);
	free(o);
}
