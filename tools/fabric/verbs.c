// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transport over reliable connections of RDMA devices. A sender has a credit for each receive that
 * the peer has posted. Messages carry credits back; if there are none, messages of a second queue
 * pair do, which has receives for those only. Addresses of queue pairs go through an exchange.
 */
#include "fabric/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "fabric/exchange.h"
#include <rashpa-gpu.h>
#include "verbs/verbs.h"

/*
 * 0.5 s, as a busy machine answers late: if packets of a long message come twice, soft-RoCE ends
 * the connection (Linux 7.3).
 */
#define TIMEOUT		17
#define RETRIES		6	/* then the peer has gone; with 7, soft-RoCE retries for ever */
#define ALIVE_MS	500	/* between two checks that peers are alive */
#define ASK		UINT64_C(1000)	/* id of the request for that check, above all slots */
#define BATCH		32
/*
 * Messages with credits: one is sent if the peer has none left, or if half of a pipeline waits to
 * be granted. So three at most wait for the peer's thread, and find a receive.
 */
#define GRANTS		4
#define CREDIT		(RASHPA_FABRIC_TAG + 1)	/* bit above the tag: the message carries a credit */

struct verbs_peer {
	struct peer *peer;
	struct rashpa_net_pair *pair, *grants;
	bool asked;		/* a check is under way */
	uint32_t held;		/* newest requests to send, which wait for credits */
	uint32_t credits;	/* messages that the peer has room for */
	uint32_t owed;		/* posted receives that the peer does not know of */
	uint32_t granted;	/* and those that it knows of */
	uint32_t granting;	/* messages with credits under way */
};

/* What peers exchange. */
struct address {
	struct rashpa_net_address pair, grants;
};

struct verbs {
	const struct exchange *exchange;
	void *exchange_link;
	struct rashpa_net *net;
	struct rashpa_net_queue *queue;
	struct rashpa_net_memory memory[ARENAS];
	uint32_t memories;
	uint64_t asked_ns;
	uint32_t first;		/* peer whose poll polls for all */
};

static int net_error(int error)
{
	return fabric_fail(-error, "%s", rashpa_net_reason());
}

/* --- connection --- */

/* The exchange, depending on the environment. */
static const struct exchange *way(void)
{
	if (getenv("RASHPA_MEET"))
		return &meet_exchange;
#ifdef BUILDER_NO_PMIX
	fabric_fail(EOPNOTSUPP, "this program was built without PMIx (libpmix-dev): set RASHPA_MEET=HOST:PORT to an address where processes meet");
	return NULL;
#else
	return &pmix_exchange;
#endif
}

static void close_exchange(struct verbs *v)
{
	if (v->exchange)
		v->exchange->close(v->exchange_link);
	v->exchange = NULL;
}

static int verbs_open(struct rashpa_fabric *f)
{
	const struct rashpa_net_options options = {
		.device = f->options.device, .gid = -1, .service = RASHPA_NET_RC,
		.timeout = TIMEOUT, .retries = RETRIES,
	};
	struct verbs *v = calloc(1, sizeof(*v));
	int error;

	if (!v)
		return fabric_fail(ENOMEM, "no memory");
	f->link = v;
	v->exchange = way();
	error = v->exchange ? v->exchange->open(&f->launch, &v->exchange_link) : -EOPNOTSUPP;
	if (error)
		return error;
	error = rashpa_net_open(&options, &v->net);
	if (error)
		return net_error(error);
	f->device_node = rashpa_net_about(v->net)->numa_node;
	return 0;
}

static int verbs_enrol(struct rashpa_fabric *f, struct rashpa_arena *a)
{
	struct verbs *v = f->link;
	struct rashpa_net_memory *m = &v->memory[v->memories];
	struct rashpa_net_device device = {
		.address = (uintptr_t)a->base, .length = a->length, .dmabuf = a->dmabuf,
		.numa_node = a->node, .host = !a->gpu,
	};
	struct rashpa_gpu_info gpu;
	int error;

	if (a->gpu) {
		rashpa_gpu_get_info(a->gpu, &gpu);
		if (gpu.pci != RASHPA_GPU_NOWHERE)
			rashpa_net_device_at(&device, gpu.pci);
		a->node = device.numa_node;
	}
	error = rashpa_net_register_device(v->net, &device, false, m);

	if (error)
		return net_error(error);
	v->memories++;
	a->registered = m;
	return 0;
}

static int open_pair(struct rashpa_fabric *f, uint32_t i, struct address *mine)
{
	const uint32_t depth = f->options.depth;
	struct verbs_peer *l = calloc(1, sizeof(*l));
	struct verbs *v = f->link;
	int error;

	if (!l)
		return fabric_fail(ENOMEM, "no memory");
	l->peer = &f->peer[i];
	f->peer[i].link = l;
	/* one more send for the check */
	error = rashpa_net_pair_messages(v->queue, depth + 1, depth, l, &l->pair);
	if (!error)
		error = rashpa_net_pair_messages(v->queue, GRANTS, GRANTS, l, &l->grants);
	for (uint32_t j = 0; j < GRANTS && !error; j++)
		error = rashpa_net_receive(l->grants, &(struct rashpa_net_message) { .id = j });
	if (error)
		return net_error(error);
	rashpa_net_pair_address(l->pair, &mine[i].pair);
	rashpa_net_pair_address(l->grants, &mine[i].grants);
	return 0;
}

/* Open a pair to each peer that this process or the peer uses. */
static int open_pairs(struct rashpa_fabric *f, struct address *mine, const struct address *theirs)
{
	const bool all = !(f->options.flags & RASHPA_FABRIC_ONLY_USED);
	int error = 0;

	for (uint32_t i = 0; i < f->launch.size && !error; i++) {
		const struct peer *p = &f->peer[i];

		if (i != f->launch.rank && !p->link &&
		    (all || atomic_load(&p->send.open) || atomic_load(&p->receive.open) || theirs[i].pair.qpn))
			error = open_pair(f, i, mine);
	}
	return error;
}

static int connect_pairs(struct rashpa_fabric *f, const struct address *theirs)
{
	int error = 0;

	for (uint32_t i = 0; i < f->launch.size && !error; i++) {
		struct verbs_peer *l = f->peer[i].link;

		if (l)
			error = rashpa_net_pair_connect(l->pair, &theirs[i].pair);
		if (l && !error)
			error = rashpa_net_pair_connect(l->grants, &theirs[i].grants);
	}
	return error ? net_error(error) : 0;
}

static int verbs_connect(struct rashpa_fabric *f, uint64_t end)
{
	struct verbs *v = f->link;
	const uint32_t entries = f->launch.size * (2 * (f->options.depth + GRANTS) + 1);
	struct address *mine = calloc(f->launch.size, sizeof(*mine));
	struct address *theirs = calloc(f->launch.size, sizeof(*theirs));
	int error = rashpa_net_queue_open(v->net, entries, 0, &v->queue);

	v->first = f->launch.rank ? 0 : 1;
	if (error)
		net_error(error);
	else if (!mine || !theirs)
		error = fabric_fail(ENOMEM, "no memory");
	/* the second time also those that only the peer uses */
	for (unsigned int i = 0; i < 2 && !error; i++) {
		error = open_pairs(f, mine, theirs);
		if (!error)
			error = v->exchange->swap(v->exchange_link, mine, sizeof(*mine), theirs, end);
	}
	if (!error)
		error = connect_pairs(f, theirs);
	/* wait until all ranks have connected their pairs, before any message is sent */
	if (!error)
		error = v->exchange->swap(v->exchange_link, NULL, 0, NULL, end);
	free(mine);
	free(theirs);
	/* Slurm ends a job that has lost a process of PMIx */
	close_exchange(v);
	return error;
}

/* --- the thread --- */

/* The card has given the connection up: it does not access memory for it any more. */
static void lose(struct verbs_peer *l)
{
	l->held = 0;
	peer_gone(l->peer, l->peer->rank);
	queue_end(&l->peer->send, -EPIPE);
	queue_end(&l->peer->receive, -EPIPE);
}

static int post(struct queue *q, struct verbs_peer *l, unsigned int slot, uint32_t flags)
{
	const struct rashpa_fabric_request *r = &queue_flying(q, slot)->request;
	const struct rashpa_arena *a = r->pool ? r->pool->arena :
						 arena_of(q->fabric, r->buffer, r->length);
	const struct rashpa_net_memory *memory = a->registered;
	const struct rashpa_net_message m = {
		.address = (uintptr_t)r->buffer, .length = r->length, .local = memory->local,
		.immediate = r->tag | flags, .id = slot,
	};

	return q->receives ? rashpa_net_receive(l->pair, &m) : rashpa_net_send(l->pair, &m);
}

/* Send the oldest messages that wait, as many as the peer has room for. */
static void send_held(struct verbs_peer *l)
{
	struct queue *q = &l->peer->send;

	while (l->held && l->credits) {
		const bool carry = l->owed;

		if (post(q, l, q->order[q->flying - l->held], carry ? CREDIT : 0)) {
			lose(l);
			return;
		}
		l->held--;
		l->credits--;
		l->owed -= carry;
		l->granted += carry;
	}
}

/* Grant receives to the peer, if it may have to wait for them. */
static void grant(struct verbs_peer *l)
{
	const uint32_t depth = l->peer->send.fabric->options.depth;
	const struct rashpa_net_message m = { .immediate = l->owed };

	if (!l->owed || (l->granted && l->owed < (depth + 1) / 2) || l->granting == GRANTS)
		return;
	if (rashpa_net_send(l->grants, &m)) {
		lose(l);
		return;
	}
	l->granting++;
	l->granted += l->owed;
	l->owed = 0;
}

static int verbs_begin(struct queue *q, struct peer *peer, unsigned int slot)
{
	struct verbs_peer *l = peer->link;
	int error = 0;

	if (!l)
		return -ENOTCONN;
	if (q->receives) {
		error = post(q, l, slot, 0);
		l->owed += !error;
		grant(l);
	} else {
		l->held++;
		send_held(l);
	}
	return error;
}

/* The peer has posted more receives, or a message that said so has arrived there. */
static void take_grant(struct verbs_peer *l, const struct rashpa_net_done *d)
{
	const struct rashpa_net_message again = { .id = d->id };

	if (!d->received) {
		l->granting--;
		grant(l);
		return;
	}
	l->credits += d->immediate;
	if (rashpa_net_receive(l->grants, &again))
		lose(l);
	else
		send_held(l);
}

static void take(const struct rashpa_net_done *d)
{
	struct verbs_peer *l = d->user;
	struct queue *q;

	if (!l || atomic_load_explicit(&l->peer->gone, memory_order_relaxed))
		return;
	if (d->error) {
		lose(l);
		return;
	}
	if (d->pair == l->grants) {
		take_grant(l, d);
		return;
	}
	if (!d->received && d->id == ASK) {
		l->asked = false;
		return;
	}
	q = d->received ? &l->peer->receive : &l->peer->send;
	queue_done(q, d->id, 0, d->received ? d->length : queue_flying(q, d->id)->request.length,
		   d->immediate & RASHPA_FABRIC_TAG);
	l->granted -= d->received;
	if (d->received && d->immediate & CREDIT) {
		l->credits++;
		send_held(l);
	}
	grant(l);
}

/*
 * Check that peers are alive: an empty write fails if the peer has gone. With many ranks more rarely, as
 * the checks of all ranks on a machine grow with their square.
 */
static void ask(struct rashpa_fabric *f, struct verbs *v)
{
	const struct rashpa_net_write nothing = { .flags = RASHPA_NET_SIGNALED, .id = ASK };
	const uint64_t period = ALIVE_MS * UINT64_C(1000000) * (1 + f->launch.size / 16);

	if (fabric_now() - v->asked_ns < period)
		return;
	v->asked_ns = fabric_now();
	for (uint32_t i = 0; i < f->launch.size; i++) {
		struct verbs_peer *l = f->peer[i].link;

		if (l && !l->asked && !atomic_load(&l->peer->gone))
			l->asked = !rashpa_net_write(l->pair, &nothing, 1);
	}
}

static bool look(struct rashpa_fabric *f, uint32_t how, int timeout_ms)
{
	struct rashpa_net_done done[BATCH];
	struct verbs *v = f->link;
	const int n = rashpa_net_next(v->queue, done, BATCH, how, false, timeout_ms);

	for (int i = 0; i < n; i++)
		take(&done[i]);
	ask(f, v);
	return n > 0;
}

/* All peers share one completion queue, which is polled once a round. */
static bool verbs_poll(struct rashpa_fabric *f, struct peer *peer)
{
	const struct verbs *v = f->link;

	count(&peer->send.polls, 1);
	return peer->rank == v->first && look(f, RASHPA_NET_POLL, 0);
}

static void verbs_sleep(struct rashpa_fabric *f)
{
	look(f, RASHPA_NET_EVENT, ALIVE_MS);
}

static void verbs_wake(struct rashpa_fabric *f)
{
	struct verbs *v = f->link;

	rashpa_net_wake(v->queue);
}

static void verbs_close(struct rashpa_fabric *f)
{
	struct verbs *v = f->link;

	if (!v)
		return;
	for (uint32_t i = 0; f->peer && i < f->launch.size; i++) {
		struct verbs_peer *l = f->peer[i].link;

		if (l) {
			rashpa_net_pair_close(l->pair);
			rashpa_net_pair_close(l->grants);
		}
		free(l);
	}
	rashpa_net_queue_close(v->queue);
	for (uint32_t i = 0; i < v->memories; i++)
		rashpa_net_unregister(&v->memory[i]);
	rashpa_net_close(v->net);
	close_exchange(v);
	free(v);
}

const struct transport verbs_transport = {
	.name = "verbs",
	.open = verbs_open,
	.enrol = verbs_enrol,
	.connect = verbs_connect,
	.begin = verbs_begin,
	.poll = verbs_poll,
	.sleep = verbs_sleep,
	.wake = verbs_wake,
	.close = verbs_close,
};
