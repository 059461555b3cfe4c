// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * librashpa-builder: reliable connections of RDMA devices, with receives that wait. A sender whose
 * receiver has none is told so by the card, and tries again. Addresses go over PMIx, so that who
 * started the processes has to know nothing.
 */
#include "internal.h"

#include <errno.h>
#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#include "rashpa-network.h"

#define RETRIES		7	/* for ever, where there is no room */
#define ALIVE_MS	500	/* from one question whether a peer is there to the next */
#define ASK		UINT64_C(1000)	/* number of that question, behind all slots */
#define BATCH		32

struct verbs_peer {
	struct peer *peer;
	struct rashpa_net_pair *pair;
	bool asked;		/* the question is under way */
};

struct verbs {
	bool pmix;
	pmix_proc_t me;
	struct rashpa_net *net;
	struct rashpa_net_queue *queue;
	struct rashpa_net_memory memory[ARENAS];
	uint32_t memories;
	uint64_t asked_ns;
	uint32_t first;		/* peer whose turn is the turn of all */
};

static int net_error(int error)
{
	return fabric_fail(-error, "%s", rashpa_net_reason());
}

/* --- PMIx --- */

static int pmix_error(pmix_status_t status, const char *what)
{
	return fabric_fail(status == PMIX_ERR_TIMEOUT ? ETIMEDOUT : EIO, "PMIx: %s: %s", what,
			   PMIx_Error_string(status));
}

static int begin_pmix(struct rashpa_fabric *f, struct verbs *v)
{
	pmix_proc_t all;
	pmix_value_t *value;
	pmix_status_t status = PMIx_Init(&v->me, NULL, 0);

	if (status != PMIX_SUCCESS)
		return fabric_fail(ENOENT, "nobody says which process of a run this is (PMIx: %s): start it by mpirun, or srun --mpi=pmix",
				   PMIx_Error_string(status));
	v->pmix = true;
	PMIX_PROC_CONSTRUCT(&all);
	PMIX_LOAD_PROCID(&all, v->me.nspace, PMIX_RANK_WILDCARD);
	status = PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value);
	if (status != PMIX_SUCCESS)
		return pmix_error(status, "no number of processes");
	f->launch = (struct rashpa_launch) { .rank = v->me.rank, .size = value->data.uint32 };
	PMIX_VALUE_RELEASE(value);
	return 0;
}

/* Until all are here; what they have put is known then. */
static int fence(const struct verbs *v, uint64_t end)
{
	const uint64_t now = fabric_now();
	int seconds = now < end ? (end - now + 999999999) / 1000000000 : 1;
	bool collect = true;
	pmix_info_t info[2];
	pmix_proc_t all;
	pmix_status_t status;

	PMIX_PROC_CONSTRUCT(&all);
	PMIX_LOAD_PROCID(&all, v->me.nspace, PMIX_RANK_WILDCARD);
	PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
	PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
	status = PMIx_Fence(&all, 1, info, 2);
	return status == PMIX_SUCCESS ? 0 : pmix_error(status, "not all processes came");
}

static int publish(const struct verbs *v, void *addresses, size_t bytes)
{
	pmix_value_t value = { .type = PMIX_BYTE_OBJECT };
	pmix_status_t status;

	value.data.bo.bytes = addresses;
	value.data.bo.size = bytes;
	status = PMIx_Put(PMIX_GLOBAL, "rashpa.builder", &value);
	if (status == PMIX_SUCCESS)
		status = PMIx_Commit();
	return v && status == PMIX_SUCCESS ? 0 : pmix_error(status, "addresses are not taken");
}

/* Of the pair that a peer has for us. */
static int address_of(const struct verbs *v, uint32_t peer, uint32_t size,
		      struct rashpa_net_address *address)
{
	pmix_value_t *value;
	pmix_proc_t whose;
	pmix_status_t status;
	int error = 0;

	PMIX_LOAD_PROCID(&whose, v->me.nspace, peer);
	status = PMIx_Get(&whose, "rashpa.builder", NULL, 0, &value);
	if (status != PMIX_SUCCESS)
		return pmix_error(status, "a peer has no address");
	if (value->type != PMIX_BYTE_OBJECT || value->data.bo.size != size * sizeof(*address))
		error = fabric_fail(EPROTO, "what rank %u says of its addresses cannot be", peer);
	else
		memcpy(address, value->data.bo.bytes + v->me.rank * sizeof(*address),
		       sizeof(*address));
	PMIX_VALUE_RELEASE(value);
	return error;
}

/* --- connection --- */

static int verbs_open(struct rashpa_fabric *f)
{
	const struct rashpa_net_options options = {
		.device = f->options.device, .gid = -1, .service = RASHPA_NET_RC,
		.retries = RETRIES,
	};
	struct verbs *v = calloc(1, sizeof(*v));
	int error;

	if (!v)
		return fabric_fail(ENOMEM, "no memory");
	f->link = v;
	error = begin_pmix(f, v);
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
	const int error = rashpa_net_register(v->net, a->base, -1, a->length, false, m);

	if (error)
		return net_error(error);
	v->memories++;
	a->registered = m;
	return 0;
}

static int open_pairs(struct rashpa_fabric *f, struct verbs *v, struct rashpa_net_address *mine)
{
	const uint32_t depth = f->options.depth;
	int error = rashpa_net_queue_open(v->net, f->launch.size * (2 * depth + 1), 0, &v->queue);

	for (uint32_t i = 0; i < f->launch.size && !error; i++) {
		struct verbs_peer *l;

		if (i == f->launch.rank)
			continue;
		l = calloc(1, sizeof(*l));
		if (!l)
			return fabric_fail(ENOMEM, "no memory");
		l->peer = &f->peer[i];
		f->peer[i].link = l;
		/* and one for the question */
		error = rashpa_net_pair_messages(v->queue, depth + 1, depth, l, &l->pair);
		if (!error)
			rashpa_net_pair_address(l->pair, &mine[i]);
	}
	return error ? net_error(error) : 0;
}

static int connect_pairs(struct rashpa_fabric *f, struct verbs *v)
{
	struct rashpa_net_address theirs;
	int error = 0;

	for (uint32_t i = 0; i < f->launch.size && !error; i++) {
		struct verbs_peer *l = f->peer[i].link;

		if (!l)
			continue;
		error = address_of(v, i, f->launch.size, &theirs);
		if (error)
			return error;
		error = rashpa_net_pair_connect(l->pair, &theirs);
	}
	return error ? net_error(error) : 0;
}

static int verbs_connect(struct rashpa_fabric *f, uint64_t end)
{
	struct verbs *v = f->link;
	struct rashpa_net_address *mine = calloc(f->launch.size, sizeof(*mine));
	int error = mine ? open_pairs(f, v, mine) : fabric_fail(ENOMEM, "no memory");

	v->first = f->launch.rank ? 0 : 1;
	if (!error)
		error = publish(v, mine, f->launch.size * sizeof(*mine));
	free(mine);
	if (!error)
		error = fence(v, end);
	if (!error)
		error = connect_pairs(f, v);
	/* nothing is sent to who does not listen yet */
	return error ? error : fence(v, end);
}

/* --- the thread --- */

/* The card has given the connection up: it does nothing with our memory any more. */
static void lose(struct peer *peer)
{
	peer_gone(peer);
	queue_end(&peer->send, -EPIPE);
	queue_end(&peer->receive, -EPIPE);
}

static int verbs_begin(struct queue *q, struct peer *peer, unsigned int slot)
{
	struct verbs_peer *l = peer->link;
	const struct rashpa_fabric_request *r = &queue_flying(q, slot)->request;
	const struct rashpa_arena *a = r->pool ? r->pool->arena :
						 arena_of(q->fabric, r->buffer, r->length);
	const struct rashpa_net_memory *memory = a->registered;
	const struct rashpa_net_message m = {
		.address = (uintptr_t)r->buffer, .length = r->length, .local = memory->local,
		.immediate = r->tag, .id = slot,
	};

	return q->receives ? rashpa_net_receive(l->pair, &m) : rashpa_net_send(l->pair, &m);
}

static void take(const struct rashpa_net_done *d)
{
	struct verbs_peer *l = d->user;
	struct queue *q;

	if (!l || atomic_load_explicit(&l->peer->gone, memory_order_relaxed))
		return;
	if (d->error) {
		lose(l->peer);
		return;
	}
	if (!d->received && d->id == ASK) {
		l->asked = false;
		return;
	}
	q = d->received ? &l->peer->receive : &l->peer->send;
	queue_done(q, d->id, 0, d->received ? d->length : queue_flying(q, d->id)->request.length,
		   d->immediate & RASHPA_FABRIC_TAG);
}

/* A write of nothing fails where nobody is there any more. */
static void ask(struct rashpa_fabric *f, struct verbs *v)
{
	const struct rashpa_net_write nothing = { .flags = RASHPA_NET_SIGNALED, .id = ASK };

	if (fabric_now() - v->asked_ns < ALIVE_MS * UINT64_C(1000000))
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

/* All have one queue of completions: it is looked at once a round. */
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

		if (l)
			rashpa_net_pair_close(l->pair);
		free(l);
	}
	rashpa_net_queue_close(v->queue);
	for (uint32_t i = 0; i < v->memories; i++)
		rashpa_net_unregister(&v->memory[i]);
	rashpa_net_close(v->net);
	if (v->pmix)
		PMIx_Finalize(NULL, 0);
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
