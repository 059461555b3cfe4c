// SPDX-License-Identifier: LGPL-2.1-or-later
/* The daemon's clients: their identity, telegrams to them, and the right to lead. */
#include "daemon/internal.h"

#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char * const states[STATES] = {
	[IDLE] = "idle", [CONFIGURING] = "configuring", [CONFIGURED] = "configured",
	[ARMING] = "arming", [ARMED] = "armed", [RUNNING] = "running", [PAUSING] = "pausing",
	[PAUSED] = "paused", [STOPPING] = "stopping", [ENDED] = "ended",
};

const char *state_name(enum state state)
{
	return states[state];
}

struct client *client_of(struct daemon *d, uint64_t number)
{
	for (unsigned int i = 0; number && i < CLIENTS; i++) {
		if (d->client[i].number == number)
			return &d->client[i];
	}
	return NULL;
}

/* The run goes on without a leader, for a while. */
void client_close(struct daemon *d, struct client *c)
{
	if (d->leader == c->number) {
		d->leader = 0;
		if (d->state != IDLE && d->state != ENDED && !c->going)
			say("%s has gone: the run has no leader", c->name);
		d->orphan_ns = now_ns() + ORPHAN_NS;
	}
	wire_close(c->wire);
	*c = (struct client) {};
}

static unsigned int count(const struct daemon *d, bool hello)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < CLIENTS; i++)
		n += d->client[i].number && d->client[i].hello == hello;
	return n;
}

/* Links of each user or machine: a hash table by origin, which is never full. */
#define SHARES		(2 * CLIENTS)

struct share {
	uint64_t origin;
	unsigned int n;			/* 0: the place is free */
	unsigned int spoke;		/* of these, links that have sent something */
};

static struct share *share_of(struct share *shares, uint64_t origin)
{
	unsigned int i = (origin * 0x9e3779b97f4a7c15) >> 32;

	for (i %= SHARES; shares[i].n && shares[i].origin != origin;)
		i = (i + 1) % SHARES;
	shares[i].origin = origin;
	return &shares[i];
}

/*
 * The user or machine with most places, including the new client, gives one away: of its links that
 * have sent something and of its silent ones, the larger part loses the oldest stranger or the newest
 * observer. So no user or machine pushes out one with fewer places, a leader always finds a place, and
 * silent links do not push out one of their machine that shakes hands.
 */
static struct client *who_yields(struct daemon *d, bool hello, uint64_t origin)
{
	struct share shares[SHARES] = {};
	struct client *goes = NULL;
	unsigned int most = 0, part = 0;
	struct share *s;

	share_of(shares, origin)->n++;
	for (unsigned int i = 0; i < CLIENTS; i++) {
		const struct client *c = &d->client[i];

		if (!c->number || c->hello != hello)
			continue;
		s = share_of(shares, wire_other_end(c->wire)->origin);
		s->n++;
		s->spoke += c->spoke;
	}
	for (unsigned int i = 0; i < CLIENTS; i++) {
		struct client *c = &d->client[i];
		unsigned int of;

		if (!c->number || c->hello != hello || c->number == d->leader)
			continue;
		s = share_of(shares, wire_other_end(c->wire)->origin);
		of = c->spoke ? s->spoke : s->n - s->spoke;
		if (!goes || s->n > most || (s->n == most && (of > part || (of == part &&
				(c->number < goes->number) != hello)))) {
			goes = c;
			most = s->n;
			part = of;
		}
	}
	return goes;
}

struct client *client_place(struct daemon *d, uint64_t origin)
{
	struct client *c = d->client;

	if (count(d, false) == STRANGERS)
		client_close(d, who_yields(d, false, origin));
	while (c->number)
		c++;
	return c;
}

void client_admit(struct daemon *d, struct client *c)
{
	if (!c->hello && count(d, true) == MANAGERS)
		client_close(d, who_yields(d, true, wire_other_end(c->wire)->origin));
	c->hello = true;
	wire_limit(c->wire, WIRE_MOST);
}

xmlDoc *client_telegram(struct client *c, const char *name, uint64_t re, xmlNode **content)
{
	return telegram_new(name, ++c->id, re, content);
}

void client_send(struct daemon *d, struct client *c, xmlDoc *telegram)
{
	char why[WHY_SIZE];
	size_t size;
	char *text = telegram_write(telegram, &size);

	xmlFreeDoc(telegram);
	if (!text || wire_send(c->wire, text, size, why)) {
		say("%s: %s", c->name, text ? why : "no memory for a telegram");
		client_close(d, c);
	}
	xmlFree(text);
}

void client_refuse(struct daemon *d, struct client *c, uint64_t re, const char *code,
		   const char *format, ...)
{
	char text[WHY_SIZE];
	xmlNode *error;
	xmlDoc *doc = client_telegram(c, "error", re, &error);
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	attribute_add(error, "code", code);
	attribute_add(error, "state", state_name(d->state));
	element_set_line(error, text);
	client_send(d, c, doc);
}

void client_done(struct daemon *d, struct client *c, uint64_t re)
{
	xmlNode *done;
	xmlDoc *doc = client_telegram(c, "done", re, &done);

	attribute_add(done, "state", state_name(d->state));
	client_send(d, c, doc);
}

/* --- who may lead --- */

static bool in_group(const struct wire_peer *peer, const char *name)
{
	const struct group *g = getgrnam(name);
	const struct passwd *p;
	gid_t list[256];
	int n = sizeof(list) / sizeof(list[0]);

	if (!g)
		return false;
	p = getpwuid(peer->uid);
	if (peer->gid == g->gr_gid)
		return true;
	if (!p || getgrouplist(p->pw_name, p->pw_gid, list, &n) < 0)
		return false;
	while (n--) {
		if (list[n] == g->gr_gid)
			return true;
	}
	return false;
}

static bool has_certificate(const struct wire_peer *peer, const char *name)
{
	if (!strcmp(peer->common_name, name))
		return true;
	for (unsigned int i = 0; i < peer->dns_names; i++) {
		if (!strcmp(peer->dns[i], name))
			return true;
	}
	return false;
}

static bool is_leader(const struct wire_peer *peer, const char *who)
{
	const char *name = strchr(who, ':');
	const struct passwd *p;

	if (!name)
		return true;	/* anyone */
	name++;
	if (*who == 'c')
		return peer->kind == WIRE_TLS && has_certificate(peer, name);
	if (peer->kind != WIRE_UNIX)
		return false;
	if (*who == 'g')
		return in_group(peer, name);
	p = getpwnam(name);
	return p && p->pw_uid == peer->uid;
}

bool client_may_lead(const struct daemon *d, const struct client *c)
{
	const struct daemon_options *o = d->options;
	const struct wire_peer *peer = wire_other_end(c->wire);

	if (!o->leaders)
		return peer->kind == WIRE_UNIX && (!peer->uid || peer->uid == geteuid());
	for (unsigned int i = 0; i < o->leaders; i++) {
		if (is_leader(peer, o->leader[i]))
			return true;
	}
	return false;
}
