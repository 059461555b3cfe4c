// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages by RDMA WRITE: a queue pair for each region and receiver. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json-out.h"
#include "remu/sender.h"
#include "common/text-file.h"

#define TICK_MS		100
#define SILENT_TICKS	50		/* a stopped sender waits so long for the card's next completion */
#define SOLICIT		1024		/* messages from one event to the next at most */
#define CHAIN		256		/* most writes posted together */
#define HEADERS		(12 + 16 + 4 + 4)	/* BTH, RETH, the immediate and the ICRC */

struct roce {
	struct rashpa_net *net;
	struct rashpa_net_memory memory;
};

struct pair {
	struct rashpa_net_queue *queue;
	struct rashpa_net_pair *pair;
	uint64_t posted, completed;	/* messages */
	struct rashpa_net_write chain[CHAIN];
	uint32_t chained;
};

static struct roce *roce_of(const struct worker *w)
{
	return w->receiver->sender->path;
}

static int broken(struct worker *w)
{
	return because(w->why, -1, "%s: %s", w->receiver->link.peer, rashpa_net_reason());
}

/* Wait until at most @most messages are under way. */
static int drain(struct worker *w, uint64_t most)
{
	struct pair *p = w->path;
	struct rashpa_net_done done[8];
	unsigned int silent = 0;
	int n;

	while (p->posted - p->completed > most) {
		n = rashpa_net_next(p->queue, done, 8, RASHPA_NET_ADAPTIVE, false, TICK_MS);
		if (n < 0)
			return broken(w);
		for (int i = 0; i < n; i++) {
			if (done[i].error)
				return because(w->why, -1, "%s: a write failed: is the receiver there?",
					       w->receiver->link.peer);
			p->completed = done[i].id;
		}
		w->messages = p->completed;
		silent = n ? 0 : silent + 1;
		if (silent >= SILENT_TICKS && w->receiver->sender->halt)
			return because(w->why, -1, "%s: the card did not send all",
				       w->receiver->link.peer);
	}
	return 0;
}

static int flush(struct worker *w)
{
	struct pair *p = w->path;
	const uint32_t n = p->chained;

	p->chained = 0;
	if (n && rashpa_net_write(p->pair, p->chain, n))
		return broken(w);
	p->posted += n;
	return 0;
}

/* The queue has two halves: the card sends one while we fill the other. */
static int put(struct worker *w, struct rashpa_net_write *write, bool last)
{
	const struct network_config *c = &w->receiver->sender->config->net;
	struct pair *p = w->path;
	const uint64_t half = c->writes / 2, number = p->posted + p->chained;

	if (number - p->completed >= c->writes && (flush(w) || drain(w, half)))
		return -1;
	write->id = number + 1;
	if (write->id % half == 0 || last)
		write->flags |= RASHPA_NET_SIGNALED;
	if (last || write->id % SOLICIT == 0)
		write->flags |= RASHPA_NET_SOLICITED;
	p->chain[p->chained++] = *write;
	return p->chained == c->linked || last ? flush(w) : 0;
}

static int send_message(struct worker *w, const struct message *m)
{
	const struct roce *r = roce_of(w);
	const struct receiver *to = w->receiver;
	const bool each = to->sender->config->net.immediate == CONTRACT_EACH;
	struct rashpa_net_write write = {
		.from = r->memory.address + m->from,
		.to = to->accept.address + m->to,
		.length = m->bytes,
		.local = r->memory.local,
		.remote = to->accept.key,
		.immediate = w->first + (each ? m->number : m->stack - to->accept.first_stack),
		.flags = each || m->last ? RASHPA_NET_IMMEDIATE : 0,
	};

	return put(w, &write, m->last);
}

static int drain_all(struct worker *w)
{
	return drain(w, 0);
}

/* Interface of the route; another route to the same machine may leave by another interface. */
static bool packets(const struct sender *s, struct packets *p)
{
	const struct network_config *c = &s->config->net;
	const struct rashpa_net_info *info;
	struct rashpa_net *net;
	bool known;

	if (rashpa_net_open(&c->options, &net))
		return false;
	info = rashpa_net_about(net);
	*p = (struct packets) {
		.header = HEADERS, .part = info->mtu,
		.message = c->message ? c->message : info->mtu,
	};
	known = read_line(p->interface, sizeof(p->interface),
			  "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/%u", info->device,
			  info->port, info->gid);
	rashpa_net_close(net);
	return known;
}

static int open_port(struct sender *s, char *why)
{
	const struct network_config *c = &s->config->net;
	struct dataset *d = s->dataset;
	const struct rashpa_net_info *info;
	struct roce *r = calloc(1, sizeof(*r));

	if (!r)
		return because(why, -1, "no memory");
	s->path = r;
	if (rashpa_net_open(&c->options, &r->net) ||
	    rashpa_net_register(r->net, d->pixels, (uint64_t)d->held * dataset_bytes(d), false,
				&r->memory))
		return because(why, -1, "%s", rashpa_net_reason());
	info = rashpa_net_about(r->net);
	s->message = c->message ? c->message : info->mtu;
	if (s->message > info->message)
		return because(why, -1, "%s: messages have %" PRIu32 " bytes at most, message is %"
			       PRIu32, info->device, info->message, s->message);
	return 0;
}

static int open_worker(struct worker *w, char *why)
{
	const uint32_t writes = w->receiver->sender->config->net.writes;
	struct pair *p = calloc(1, sizeof(*p));

	if (!p)
		return because(why, -1, "no memory");
	w->path = p;
	if (rashpa_net_queue_open(roce_of(w)->net, writes + 1, 0, &p->queue) ||
	    rashpa_net_pair_open(p->queue, writes + 1, w, &p->pair))
		return because(why, -1, "%s", rashpa_net_reason());
	return 0;
}

static void address(const struct worker *w, struct contract_process *process)
{
	const struct pair *p = w->path;

	rashpa_net_pair_address(p->pair, &process->end.address);
}

static uint32_t mtu(const struct sender *s)
{
	const struct roce *r = s->path;

	return rashpa_net_about(r->net)->mtu;
}

static int connect_worker(struct worker *w, char *why)
{
	const struct accept *a = &w->receiver->accept;
	struct pair *p = w->path;

	if (rashpa_net_pair_connect(p->pair, &a->end[w->index].address))
		return because(why, -1, "%s", rashpa_net_reason());
	return 0;
}

static void report(const struct sender *s, struct json_object *o)
{
	const struct roce *r = s->path;

	put_text(o, "service", s->config->net.options.service == RASHPA_NET_RC ? "rc" : "uc");
	put_text(o, "immediate", s->config->net.immediate == CONTRACT_EACH ? "each" : "stack");
	put_text(o, "device", rashpa_net_about(r->net)->device);
	put_text(o, "address", rashpa_net_about(r->net)->address);
}

static void close_worker(struct worker *w)
{
	struct pair *p = w->path;

	if (!p)
		return;
	rashpa_net_pair_close(p->pair);
	rashpa_net_queue_close(p->queue);
	free(p);
}

static void close_port(struct sender *s)
{
	struct roce *r = s->path;

	if (!r)
		return;
	rashpa_net_unregister(&r->memory);
	rashpa_net_close(r->net);
	free(r);
}

const struct sending sending_roce = {
	.run = sender_run,
	.paths = sender_paths,
	.packets = packets,
	.open = open_port,
	.open_worker = open_worker,
	.address = address,
	.mtu = mtu,
	.connect = connect_worker,
	.send = send_message,
	.drain = drain_all,
	.report = report,
	.close_worker = close_worker,
	.close = close_port,
};
