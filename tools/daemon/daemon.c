// SPDX-License-Identifier: LGPL-2.1-or-later
/* The loop of the daemon: the only place that waits, for telegrams, the child and times. */
#include "daemon/internal.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/fpga.h"
#include "common/stop.h"

/* Limits of a turn, which takes at most one telegram of each client. */
#define ACCEPTED	64	/* new links of a listener, so others wait a few turns only */
#define GREETED		8	/* strangers of different origin: a handshake takes milliseconds */

/* Files for poll(): listeners, the child's three, clients. */
enum { CHILD_PROCESS, CHILD_LED, CHILD_SAID, CHILD_FDS };

static int listen_all(struct daemon *d)
{
	const struct daemon_options *o = d->options;
	char why[WHY_SIZE];

	if (o->files.certificate && wire_tls_open(&o->files, &d->tls, why))
		return fail("%s", why);
	for (unsigned int i = 0; i < o->addresses; i++) {
		if (wire_listen(o->at[i], d->tls, &d->listener[i], why))
			return fail("%s", why);
		d->listeners++;
	}
	return 0;
}

/* False: the client has gone. */
static bool accept_one(struct daemon *d, struct wire_listener *listener)
{
	struct client *c;
	struct wire *wire;
	char why[WHY_SIZE];
	const int result = wire_accept(listener, &wire, why);

	if (result < 0)
		say("%s: %s", listener->at, why);
	if (result <= 0)
		return false;
	c = client_place(d, wire_other_end(wire)->origin);
	*c = (struct client) {
		.wire = wire, .number = ++d->clients, .due_ns = now_ns() + HELLO_NS,
	};
	wire_limit(wire, TELEGRAM_ASKED);
	snprintf(c->name, sizeof(c->name), "%s", wire_other_end(wire)->name);
	return true;
}

static void serve(struct daemon *d, struct client *c)
{
	const uint64_t number = c->number;
	const char *frame;
	char why[WHY_SIZE] = "";
	size_t size;
	int result = wire_take(c->wire, &frame, &size, why);

	if (result > 0 && !c->going)
		request(d, c, frame, size);
	if (c->number != number)
		return;		/* it took too little */
	if (result >= 0 && !(c->going && wire_sent(c->wire)))
		return;
	if (*why)
		say("%s", why);
	client_close(d, c);
}

static void on_time(struct daemon *d, struct client *c, uint64_t now)
{
	if (!c->due_ns || now < c->due_ns)
		return;
	if (!c->hello) {
		say("%s: it sent no hello", c->name);
		client_close(d, c);
		return;
	}
	c->due_ns += c->interval_ns;
	if (c->due_ns < now)
		c->due_ns = now + c->interval_ns;
	tell_status(d, c, 0);
}

/* No manager has taken the lead of this run in time. */
static void orphaned(struct daemon *d)
{
	d->orphan_ns = 0;
	if (d->state == RUNNING && !d->orphan_stop) {
		say("run %llu of %s has no leader: it goes on to its end",
		    (unsigned long long)d->run, d->experiment);
	} else if (d->state != IDLE && d->state != ENDED && d->state != STOPPING) {
		say("run %llu of %s has no leader: it is stopped", (unsigned long long)d->run,
		    d->experiment);
		run_stop(d);
	}
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return b && b < a ? b : a;
}

/* The earliest time when something is due. */
static uint64_t next_due(const struct daemon *d)
{
	uint64_t due = sooner(sooner(UINT64_MAX, d->kill_ns), d->orphan_ns);

	for (unsigned int i = 0; i < CLIENTS; i++) {
		const struct client *c = &d->client[i];

		if (!c->number)
			continue;
		due = sooner(due, c->due_ns);
		due = sooner(due, wire_pending(c->wire) ? 1 : wire_deadline(c->wire));
	}
	return due;
}

static void look_at_time(struct daemon *d)
{
	const uint64_t now = now_ns();

	if (d->kill_ns && now >= d->kill_ns) {
		say("the program does not end: it is killed");
		d->kill_ns = 0;
		child_signal(&d->child, SIGKILL);
	}
	if (d->orphan_ns && now >= d->orphan_ns)
		orphaned(d);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		if (d->client[i].number)
			on_time(d, &d->client[i], now);
	}
}

struct greeted {
	uint64_t origin[GREETED];
	unsigned int n;
};

/*
 * Whether a stranger is served in this turn: one of each user or machine. So a machine with many
 * links delays only these. The next turn begins after the first one served, or with the first one
 * left out.
 */
static bool greet(struct daemon *d, unsigned int place, struct greeted *g)
{
	const uint64_t origin = wire_other_end(d->client[place].wire)->origin;

	for (unsigned int i = 0; i < g->n && i < GREETED; i++) {
		if (g->origin[i] == origin)
			return false;
	}
	if (!g->n)
		d->first = (place + 1) % CLIENTS;
	else if (g->n == GREETED)
		d->first = place;
	if (g->n < GREETED)
		g->origin[g->n] = origin;
	return g->n++ < GREETED;
}

static void turn(struct daemon *d)
{
	struct pollfd fds[DAEMON_ADDRESSES + CHILD_FDS + CLIENTS];
	struct pollfd *const child = fds + d->listeners, *const clients = child + CHILD_FDS;
	uint64_t number[CLIENTS];
	struct greeted greeted = { .n = 0 };

	for (unsigned int i = 0; i < d->listeners; i++)
		fds[i] = (struct pollfd) { .fd = d->listener[i].fd, .events = POLLIN };
	child[CHILD_PROCESS] = (struct pollfd) { .fd = d->child.process, .events = POLLIN };
	child[CHILD_LED] = (struct pollfd) { .fd = d->child.led, .events = POLLIN };
	child[CHILD_SAID] = (struct pollfd) { .fd = d->child.said, .events = POLLIN };
	for (unsigned int i = 0; i < CLIENTS; i++) {
		number[i] = d->client[i].number;
		clients[i] = (struct pollfd) { .fd = -1 };
		if (number[i])
			clients[i] = (struct pollfd) {
				.fd = wire_fd(d->client[i].wire),
				.events = wire_events(d->client[i].wire),
			};
	}
	stop_poll(fds, d->listeners + CHILD_FDS + CLIENTS, next_due(d));
	/* messages of the child come before its end */
	if (child[CHILD_PROCESS].revents || child[CHILD_LED].revents || child[CHILD_SAID].revents)
		run_look(d, child[CHILD_PROCESS].revents);
	for (unsigned int n = 0, i = d->first; n < CLIENTS; n++, i = (i + 1) % CLIENTS) {
		struct client *c = &d->client[i];

		if (!c->number || c->number != number[i] ||
		    !(clients[i].revents || wire_pending(c->wire) || c->going ||
		      wire_deadline(c->wire) <= now_ns()))
			continue;
		if (!c->hello && !greet(d, i, &greeted))
			continue;
		c->spoke = true;
		serve(d, c);
	}
	for (unsigned int i = 0; i < d->listeners; i++) {
		for (unsigned int n = 0; fds[i].revents && n < ACCEPTED; n++) {
			if (!accept_one(d, &d->listener[i]))
				break;
		}
	}
	look_at_time(d);
}

/* Ask the program for its capabilities, before the first request. */
static int look_around(struct daemon *d)
{
	const uint64_t end = now_ns() + STOP_NS;
	char why[WHY_SIZE];

	if (run_probe(d, why))
		return fail("%s", why);
	while (d->child.pid && now_ns() < end && !*d->stop) {
		struct pollfd fds[] = {
			{ .fd = d->child.process, .events = POLLIN },
			{ .fd = d->child.led, .events = POLLIN },
			{ .fd = d->child.said, .events = POLLIN },
		};

		stop_poll(fds, sizeof(fds) / sizeof(fds[0]), end);
		run_look(d, fds[0].revents);
	}
	run_forget(d);
	return 0;
}

static void wait_for_child(struct daemon *d)
{
	struct pollfd pollfd = { .fd = d->child.process, .events = POLLIN };
	const uint64_t end = now_ns() + STOP_NS;

	if (!d->child.pid)
		return;
	/* wait without stop_poll(), which the signal that ends us has ended; it may come again */
	child_signal(&d->child, SIGTERM);
	while (now_ns() < end && poll(&pollfd, 1, (end - now_ns()) / 1000000 + 1) < 0)
		;
}

static void close_all(struct daemon *d)
{
	for (unsigned int i = 0; i < CLIENTS; i++) {
		if (d->client[i].number)
			wire_close(d->client[i].wire);
	}
	for (unsigned int i = 0; i < d->listeners; i++)
		wire_unlisten(&d->listener[i]);
	wire_tls_close(d->tls);
	json_object_put(d->able);
	run_forget(d);
}

/* Raise the limit of open files to the most that the daemon may need. */
static int have_files(void)
{
	const rlim_t least = DAEMON_ADDRESSES + CHILD_FDS + CLIENTS + 64;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= least)
		return 0;
	limit.rlim_cur = limit.rlim_max < least ? limit.rlim_max : least;
	if (limit.rlim_cur < least || setrlimit(RLIMIT_NOFILE, &limit))
		return fail("a daemon needs %llu open files: raise the limit (ulimit -n)",
			    (unsigned long long)least);
	return 0;
}

int daemon_run(const struct daemon_options *options, bool detector, char **argv, const struct tune *tunes,
	       const volatile bool *stop)
{
	struct daemon *d = calloc(1, sizeof(*d));
	int result;

	if (!d)
		return fail("no memory");
	signal(SIGPIPE, SIG_IGN);
	fpga_catch_removal();
	d->options = options;
	d->detector = detector;
	d->argv = argv;
	d->tunes = tunes;
	d->stop = stop;
	d->child = (struct child)CHILD_NONE;
	result = have_files();
	if (!result)
		result = listen_all(d);
	if (!result)
		result = look_around(d);
	while (!result && !*stop)
		turn(d);
	wait_for_child(d);
	close_all(d);
	free(d);
	return result;
}
