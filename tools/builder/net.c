// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-builder model: discrete-event simulation of links, switches and processes. */
#include "builder/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE		UINT32_MAX
#define FOREVER_NS	1e12	/* limit of a copy time, so that sums do not overflow */
#define CONTROL		64	/* bytes of a message of the protocol itself */

enum what { LINK_FREE, PACKET_THERE, MESSAGE_OUT, MESSAGE_IN, MESSAGE_ACK };

struct step {
	uint64_t at;
	uint64_t order;		/* at equal times, the step that was added first is first */
	enum what what;
	uint32_t which;
};

/* Messages of a process, and of protocols: may I send, send, use more receives. */
enum kind { DATA, ASK, ANSWER, GRANT };

/* Messages of a pair of processes form a list. */
struct message {
	uint32_t pair, next;
	uint64_t bytes, left, tag;	/* GRANT: tag is their number; ASK, ANSWER: the message */
	enum kind kind;
	bool carries;		/* a credit for the other direction */
};

struct packet {
	uint32_t message, next, hop, bytes;
	bool last;
};

struct link {
	uint64_t room;		/* bytes that its queue can take */
	uint32_t first, last;	/* packets that wait */
	uint32_t waiting, wait_last;	/* links that wait for room here */
	uint32_t wait_next;		/* next link in the list that this link waits in */
	bool busy, waits;
	uint64_t busy_ns;
};

struct pair {
	uint32_t from, to, flying;
	uint32_t credits;	/* messages that the sender may begin */
	uint32_t owed;		/* credits that the receiver has not granted */
	uint32_t waits_first, waits_last;	/* messages that are not under way */
	uint32_t first, last;			/* messages that go to the link */
	uint32_t next;				/* next pair in the ring of its machine */
	bool active;
};

/* Array of equal items, with a list of free ones. */
struct store {
	void *at;
	size_t size;
	uint32_t n, room, free;
};

struct net {
	struct model_fabric f;
	struct net_hooks hooks;
	uint32_t processes, machines, leaves, uplinks, links, depth;
	struct link *link;
	uint32_t *ring;		/* by machine: ring of pairs with messages; the last one served */
	uint64_t *free_at;	/* by process: time when it is free */
	uint32_t *pair_of;	/* from * processes + to */
	struct store messages, packets, pairs;
	struct step *heap;
	size_t steps, heap_room;
	uint64_t now, order, done, fullest;
	bool cable;		/* two machines without a switch */
	bool failed;		/* no memory */
};

/* --- memory --- */

/* The first four bytes of a free item hold the number of the next free one. */
static uint32_t get(struct store *s)
{
	uint32_t i = s->free;

	if (i != NONE) {
		memcpy(&s->free, (char *)s->at + i * s->size, sizeof(i));
		return i;
	}
	if (s->n == s->room) {
		const uint32_t room = s->room ? 2 * s->room : 1024;
		void *at = realloc(s->at, room * s->size);

		if (!at)
			return NONE;
		s->at = at;
		s->room = room;
	}
	return s->n++;
}

static void put(struct store *s, uint32_t i)
{
	memcpy((char *)s->at + i * s->size, &s->free, sizeof(i));
	s->free = i;
}

static struct message *message(struct net *n, uint32_t i)
{
	return (struct message *)n->messages.at + i;
}

static struct packet *packet(struct net *n, uint32_t i)
{
	return (struct packet *)n->packets.at + i;
}

static struct pair *pair(struct net *n, uint32_t i)
{
	return (struct pair *)n->pairs.at + i;
}

/* --- steps: a heap, ordered by time --- */

static bool before(const struct step *a, const struct step *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void at(struct net *n, uint64_t when, enum what what, uint32_t which)
{
	const struct step new = { when, n->order++, what, which };
	size_t i = n->steps;

	if (n->steps == n->heap_room) {
		const size_t room = n->heap_room ? 2 * n->heap_room : 4096;
		struct step *heap = realloc(n->heap, room * sizeof(*heap));

		if (!heap) {
			n->failed = true;
			return;
		}
		n->heap = heap;
		n->heap_room = room;
	}
	n->steps++;
	for (; i && before(&new, &n->heap[(i - 1) / 2]); i = (i - 1) / 2)
		n->heap[i] = n->heap[(i - 1) / 2];
	n->heap[i] = new;
}

static struct step earliest(struct net *n)
{
	const struct step first = n->heap[0], last = n->heap[--n->steps];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < n->steps) {
		if (child + 1 < n->steps && before(&n->heap[child + 1], &n->heap[child]))
			child++;
		if (!before(&n->heap[child], &last))
			break;
		n->heap[i] = n->heap[child];
		i = child;
	}
	n->heap[i] = last;
	return first;
}

/* --- numbers of links: up from machines, down to them, up from leaves, down to leaves --- */

static uint32_t leaf_of(const struct net *n, uint32_t machine)
{
	return n->f.mixed ? machine % n->leaves : machine * n->leaves / n->machines;
}

/* The path from a leaf to a machine is fixed, as with static routes. NONE: packet has arrived. */
static uint32_t link_of(const struct net *n, const struct pair *p, uint32_t hop)
{
	const uint32_t from = p->from / n->f.ranks, to = p->to / n->f.ranks;
	const uint32_t there = leaf_of(n, to), here = leaf_of(n, from);
	const uint32_t place = n->f.mixed ? to / n->leaves :
				to - (there * n->machines + n->leaves - 1) / n->leaves;
	const uint32_t way = n->uplinks ? place % n->uplinks : 0;

	if (from == to)
		return NONE;
	if (!hop)
		return from;
	if (n->cable)
		return NONE;
	if (here == there)
		return hop == 1 ? n->machines + to : NONE;
	switch (hop) {
	case 1:
		return 2 * n->machines + here * n->uplinks + way;
	case 2:
		return 2 * n->machines + (n->leaves + there) * n->uplinks + way;
	case 3:
		return n->machines + to;
	}
	return NONE;
}

static uint64_t hops(const struct net *n, const struct pair *p)
{
	const uint32_t from = p->from / n->f.ranks, to = p->to / n->f.ranks;

	if (from == to)
		return 0;
	if (n->cable)
		return 1;
	return leaf_of(n, from) == leaf_of(n, to) ? 2 : 4;
}

/* --- links --- */

static void start(struct net *n, uint32_t l);

/* The next packet of a machine. Its pairs take turns, one packet each. */
static uint32_t next_packet(struct net *n, uint32_t machine)
{
	const uint32_t previous = n->ring[machine];
	struct pair *p;
	struct message *m;
	uint32_t i, which;

	if (previous == NONE)
		return NONE;
	which = pair(n, previous)->next;
	p = pair(n, which);
	m = message(n, p->first);
	i = get(&n->packets);
	if (i == NONE) {
		n->failed = true;
		return NONE;
	}
	*packet(n, i) = (struct packet) {
		.message = p->first, .next = NONE,
		.bytes = m->left < n->f.packet ? m->left : n->f.packet,
	};
	m->left -= packet(n, i)->bytes;
	packet(n, i)->last = !m->left;
	n->ring[machine] = which;
	if (m->left)
		return i;
	p->first = m->next;
	if (p->first != NONE)
		return i;
	/* the pair has no more packets, and leaves the ring */
	p->active = false;
	if (previous == which)
		n->ring[machine] = NONE;
	else
		pair(n, previous)->next = p->next;
	if (previous != which)
		n->ring[machine] = previous;
	return i;
}

static void push(struct net *n, uint32_t l, uint32_t i)
{
	struct link *link = &n->link[l];

	packet(n, i)->next = NONE;
	if (link->first == NONE)
		link->first = i;
	else
		packet(n, link->last)->next = i;
	link->last = i;
}

static void start(struct net *n, uint32_t l)
{
	struct link *link = &n->link[l];
	const struct packet *p;
	uint32_t next;
	uint64_t ns;

	if (link->busy || link->waits)
		return;
	if (link->first == NONE && l < n->machines) {
		const uint32_t i = next_packet(n, l);

		if (i != NONE)
			push(n, l, i);
	}
	if (link->first == NONE)
		return;
	p = packet(n, link->first);
	next = link_of(n, pair(n, message(n, p->message)->pair), p->hop + 1);
	if (next != NONE && n->link[next].room < p->bytes) {
		link->waits = true;
		link->wait_next = NONE;
		if (n->link[next].waiting == NONE)
			n->link[next].waiting = l;
		else
			n->link[n->link[next].wait_last].wait_next = l;
		n->link[next].wait_last = l;
		return;
	}
	if (next != NONE) {
		n->link[next].room -= p->bytes;
		if (n->f.buffer - n->link[next].room > n->fullest)
			n->fullest = n->f.buffer - n->link[next].room;
	}
	ns = (p->bytes + n->f.head) * 8 / n->f.gbps + 0.5;
	link->busy = true;
	link->busy_ns += ns;
	at(n, n->now + ns, LINK_FREE, l);
}

static void wake(struct net *n, uint32_t l)
{
	uint32_t waiting = n->link[l].waiting, next;

	n->link[l].waiting = NONE;
	for (; waiting != NONE; waiting = next) {
		next = n->link[waiting].wait_next;
		n->link[waiting].waits = false;
		start(n, waiting);
	}
}

static void link_free(struct net *n, uint32_t l)
{
	struct link *link = &n->link[l];
	const uint32_t i = link->first;

	link->first = packet(n, i)->next;
	link->busy = false;
	if (l >= n->machines) {
		link->room += packet(n, i)->bytes;
		wake(n, l);
	}
	at(n, n->now + (uint64_t)(n->f.latency_us * 1e3), PACKET_THERE, i);
	start(n, l);
}

/* --- messages --- */

/* A process handles one message at a time. Returns the time when it is done with this one. */
static uint64_t works(struct net *n, uint32_t process, uint64_t bytes)
{
	const double ns = n->f.copy_gbps > 0 ? bytes / n->f.copy_gbps : 0;
	const double copy = ns < FOREVER_NS ? ns : FOREVER_NS;
	const uint64_t begin = n->free_at[process] > n->now ? n->free_at[process] : n->now;

	n->free_at[process] = begin + (uint64_t)(n->f.cost_us * 1e3 + copy);
	return n->free_at[process];
}

static void packet_there(struct net *n, uint32_t i)
{
	struct packet *p = packet(n, i);
	const struct message *m = message(n, p->message);
	const struct pair *of = pair(n, m->pair);
	const uint32_t next = link_of(n, of, ++p->hop);
	const uint32_t which = p->message;

	if (next != NONE) {
		push(n, next, i);
		start(n, next);
		return;
	}
	if (p->last)
		at(n, works(n, of->to, m->bytes), MESSAGE_IN, which);
	put(&n->packets, i);
}

static uint32_t find_pair(struct net *n, uint32_t from, uint32_t to)
{
	uint32_t *known = &n->pair_of[(size_t)from * n->processes + to];

	if (*known != NONE)
		return *known;
	*known = get(&n->pairs);
	if (*known != NONE)
		*pair(n, *known) = (struct pair) {
			.from = from, .to = to, .waits_first = NONE, .first = NONE, .credits = n->depth,
		};
	n->failed |= *known == NONE;
	return *known;
}

static void control(struct net *n, uint32_t which, enum kind kind, uint64_t tag)
{
	const uint32_t i = which == NONE ? NONE : get(&n->messages);

	if (i == NONE) {
		n->failed = true;
		return;
	}
	*message(n, i) = (struct message) {
		.pair = which, .bytes = CONTROL, .left = CONTROL, .kind = kind, .tag = tag,
	};
	at(n, works(n, pair(n, which)->from, 0), MESSAGE_OUT, i);
}

static uint32_t reverse(struct net *n, uint32_t which)
{
	return find_pair(n, pair(n, which)->to, pair(n, which)->from);
}

/* A message takes a credit with it, as the library's messages do. */
static void carry(struct net *n, uint32_t which, uint32_t i)
{
	const uint32_t other = reverse(n, which);

	pair(n, which)->credits--;
	if (other == NONE || !pair(n, other)->owed)
		return;
	pair(n, other)->owed--;
	message(n, i)->carries = true;
}

static void begin(struct net *n, uint32_t which)
{
	while (pair(n, which)->flying < n->depth && pair(n, which)->credits &&
	       pair(n, which)->waits_first != NONE && !n->failed) {
		struct pair *p = pair(n, which);
		const uint32_t i = p->waits_first;
		const uint64_t bytes = message(n, i)->bytes;

		p->waits_first = message(n, i)->next;
		p->flying++;
		if (n->f.rendezvous && bytes >= n->f.rendezvous)
			control(n, which, ASK, i);
		else
			at(n, works(n, p->from, bytes), MESSAGE_OUT, i);
		if (n->f.credits)
			carry(n, which, i);
	}
}

static void message_out(struct net *n, uint32_t i)
{
	struct message *m = message(n, i);
	const uint32_t which = m->pair;
	struct pair *p = pair(n, which);
	const uint32_t machine = p->from / n->f.ranks;

	if (p->to / n->f.ranks == machine) {
		at(n, works(n, p->to, m->bytes), MESSAGE_IN, i);
		return;
	}
	m->next = NONE;
	/* messages of a protocol have a separate queue pair */
	if (p->active && m->kind != DATA && p->first != p->last) {
		m->next = message(n, p->first)->next;
		message(n, p->first)->next = i;
		return;
	}
	if (p->active) {
		message(n, p->last)->next = i;
		p->last = i;
		return;
	}
	p->first = i;
	p->last = i;
	p->active = true;
	if (n->ring[machine] == NONE) {
		p->next = which;
	} else {
		p->next = pair(n, n->ring[machine])->next;
		pair(n, n->ring[machine])->next = which;
	}
	n->ring[machine] = which;
	start(n, machine);
}

/* The receiver has posted another receive, and grants half of a pipeline at a time. */
static void grant(struct net *n, uint32_t which)
{
	const uint32_t half = (n->depth + 1) / 2;

	if (++pair(n, which)->owed < half)
		return;
	pair(n, which)->owed -= half;
	control(n, reverse(n, which), GRANT, half);
}

static void use(struct net *n, uint32_t which, uint32_t credits)
{
	if (which == NONE)
		return;
	pair(n, which)->credits += credits;
	begin(n, which);
}

static void message_in(struct net *n, uint32_t i)
{
	const struct message m = *message(n, i);
	const struct pair p = *pair(n, m.pair);

	if (m.kind != DATA)
		put(&n->messages, i);
	else
		at(n, n->now + hops(n, &p) * (uint64_t)(n->f.latency_us * 1e3), MESSAGE_ACK, i);
	switch (m.kind) {
	case ASK:
		control(n, reverse(n, m.pair), ANSWER, m.tag);
		break;
	case ANSWER:
		at(n, works(n, p.to, message(n, m.tag)->bytes), MESSAGE_OUT, m.tag);
		break;
	case GRANT:
		use(n, reverse(n, m.pair), m.tag);
		break;
	case DATA:
		if (n->f.credits)
			grant(n, m.pair);
		if (m.carries)
			use(n, reverse(n, m.pair), 1);
		n->hooks.arrived(n->hooks.user, p.from, p.to, m.bytes, m.tag);
		break;
	}
}

static void message_ack(struct net *n, uint32_t i)
{
	const struct message m = *message(n, i);
	const uint32_t from = pair(n, m.pair)->from, to = pair(n, m.pair)->to;

	put(&n->messages, i);
	pair(n, m.pair)->flying--;
	begin(n, m.pair);
	n->hooks.acknowledged(n->hooks.user, from, to, m.tag);
}

int net_send(struct net *n, uint32_t from, uint32_t to, uint64_t bytes, uint64_t tag)
{
	const uint32_t which = find_pair(n, from, to), i = get(&n->messages);
	struct pair *p;

	if (which == NONE || i == NONE)
		return -ENOMEM;
	p = pair(n, which);
	*message(n, i) = (struct message) {
		.pair = which, .next = NONE, .bytes = bytes, .left = bytes, .tag = tag,
	};
	if (p->waits_first == NONE)
		p->waits_first = i;
	else
		message(n, p->waits_last)->next = i;
	p->waits_last = i;
	begin(n, which);
	return n->failed ? -ENOMEM : 0;
}

/* --- the network --- */

bool net_step(struct net *n)
{
	struct step s;

	if (!n->steps || n->failed)
		return false;
	s = earliest(n);
	n->now = s.at;
	n->done++;
	switch (s.what) {
	case LINK_FREE:
		link_free(n, s.which);
		break;
	case PACKET_THERE:
		packet_there(n, s.which);
		break;
	case MESSAGE_OUT:
		message_out(n, s.which);
		break;
	case MESSAGE_IN:
		message_in(n, s.which);
		break;
	case MESSAGE_ACK:
		message_ack(n, s.which);
		break;
	}
	return !n->failed;
}

static struct store store_of(size_t size)
{
	return (struct store) { .size = size, .free = NONE };
}

static void shape(struct net *n)
{
	n->machines = (n->processes + n->f.ranks - 1) / n->f.ranks;
	n->cable = !n->f.leaves && n->machines == 2;
	n->leaves = n->f.leaves ? n->f.leaves : 1;
	if (n->leaves > n->machines)
		n->leaves = n->machines;
	n->uplinks = n->leaves > 1 ? n->f.spines * n->f.cables : 0;
	n->links = 2 * n->machines + 2 * n->leaves * n->uplinks;
}

struct net *net_open(const struct model_fabric *fabric, uint32_t processes, uint32_t depth,
		     const struct net_hooks *hooks)
{
	const size_t pairs = (size_t)processes * processes;
	struct net *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->f = *fabric;
	n->hooks = *hooks;
	n->processes = processes;
	n->depth = depth;
	n->messages = store_of(sizeof(struct message));
	n->packets = store_of(sizeof(struct packet));
	n->pairs = store_of(sizeof(struct pair));
	shape(n);
	n->link = calloc(n->links, sizeof(*n->link));
	n->ring = calloc(n->machines, sizeof(*n->ring));
	n->free_at = calloc(processes, sizeof(*n->free_at));
	n->pair_of = calloc(pairs, sizeof(*n->pair_of));
	if (!n->link || !n->ring || !n->free_at || !n->pair_of) {
		net_close(n);
		return NULL;
	}
	for (uint32_t i = 0; i < n->links; i++)
		n->link[i] = (struct link) {
			.room = n->f.buffer, .first = NONE, .waiting = NONE,
		};
	for (uint32_t i = 0; i < n->machines; i++)
		n->ring[i] = NONE;
	for (size_t i = 0; i < pairs; i++)
		n->pair_of[i] = NONE;
	return n;
}

void net_close(struct net *n)
{
	if (!n)
		return;
	free(n->link);
	free(n->ring);
	free(n->free_at);
	free(n->pair_of);
	free(n->messages.at);
	free(n->packets.at);
	free(n->pairs.at);
	free(n->heap);
	free(n);
}

uint64_t net_now(const struct net *n)
{
	return n->now;
}

uint64_t net_fullest(const struct net *n)
{
	return n->fullest;
}

uint64_t net_steps(const struct net *n)
{
	return n->done;
}

void net_busiest(const struct net *n, uint64_t *core_ns, uint64_t *down_ns)
{
	*core_ns = 0;
	*down_ns = 0;
	for (uint32_t i = n->cable ? 0 : n->machines; i < n->links; i++) {
		uint64_t *most = i < 2 * n->machines ? down_ns : core_ns;

		*most = n->link[i].busy_ns > *most ? n->link[i].busy_ns : *most;
	}
}
