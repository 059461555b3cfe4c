// SPDX-License-Identifier: LGPL-2.1-or-later
/* Completions of pairs, and their shared receives. */
#include "verbs/internal.h"
#include "lib/sized.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define CHAIN		128		/* receives that are posted at once */
#define BATCH		64		/* maximum number of completions of a poll */
#define ADAPTIVE_NS	50000		/* longer than most gaps between messages of a stream */
#define LOOKS		64		/* polls between two reads of the clock: about 1 us */
#define ACKNOWLEDGE	1024		/* events to acknowledge at once, as it takes a lock */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

/* --- receives --- */

/* Receives have no memory: a WRITE with immediate consumes a receive only. */
static int post_receives(struct rashpa_net_queue *q, uint32_t n)
{
	struct ibv_recv_wr chain[CHAIN], *bad;
	int error;

	while (n) {
		const uint32_t some = n < CHAIN ? n : CHAIN;

		memset(chain, 0, sizeof(chain[0]) * some);
		for (uint32_t i = 0; i + 1 < some; i++)
			chain[i].next = &chain[i + 1];
		error = ibv_post_srq_recv(q->srq, chain, &bad);
		if (error)
			return net_fail(error, "%s: cannot post receives: %s",
					q->net->info.device, strerror(error));
		n -= some;
	}
	return 0;
}

/* --- */

static int open_srq(struct rashpa_net_queue *q, uint32_t receives)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = receives, .max_sge = 1 } };

	if (!receives)
		return 0;
	q->srq = ibv_create_srq(q->net->pd, &attr);
	if (!q->srq)
		return net_fail(errno, "%s: cannot create a shared queue of %u receives: %s",
				q->net->info.device, receives, strerror(errno));
	q->receives = receives;
	q->counts.low = receives;
	return post_receives(q, receives);
}

static int open_cq(struct rashpa_net_queue *q, uint32_t entries)
{
	const char *device = q->net->info.device;

	q->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	q->channel = ibv_create_comp_channel(q->net->context);
	if (q->wake < 0 || !q->channel ||
	    fcntl(q->channel->fd, F_SETFL, fcntl(q->channel->fd, F_GETFL) | O_NONBLOCK))
		return net_fail(errno, "%s: cannot create a channel for completions: %s", device,
				strerror(errno));
	q->cq = ibv_create_cq(q->net->context, entries, NULL, q->channel, 0);
	if (!q->cq)
		return net_fail(errno, "%s: cannot create a queue of %u completions: %s", device, entries,
				strerror(errno));
	q->wc = calloc(BATCH, sizeof(*q->wc));
	return q->wc ? 0 : net_fail(ENOMEM, "no memory");
}

int rashpa_net_queue_open(struct rashpa_net *net, uint32_t writes, uint32_t receives,
			  struct rashpa_net_queue **queue)
{
	struct rashpa_net_queue *q = calloc(1, sizeof(*q));
	int error;

	if (!q)
		return net_fail(ENOMEM, "no memory");
	q->net = net;
	q->wake = -1;
	if (writes > UINT32_MAX / 4 || receives > net->info.receives)
		error = net_fail(EINVAL, "%s: %u receives are too many: the limit is %u",
				 net->info.device, receives, net->info.receives);
	else
		error = open_cq(q, writes + receives + 1);
	if (!error)
		error = open_srq(q, receives);
	if (error)
		rashpa_net_queue_close(q);
	else
		*queue = q;
	return error;
}

void rashpa_net_queue_close(struct rashpa_net_queue *q)
{
	if (!q)
		return;
	if (q->srq)
		ibv_destroy_srq(q->srq);
	if (q->unacknowledged)
		ibv_ack_cq_events(q->cq, q->unacknowledged);
	if (q->cq)
		ibv_destroy_cq(q->cq);
	if (q->channel)
		ibv_destroy_comp_channel(q->channel);
	if (q->wake >= 0)
		close(q->wake);
	free(q->pair);
	free(q->wc);
	free(q);
}

/* --- pairs by number --- */

static uint32_t hash(const struct rashpa_net_queue *q, uint32_t qpn)
{
	return qpn * UINT32_C(0x9e3779b1) & (q->slots - 1);
}

/* The slot of a pair, or the free one where it belongs. */
static struct rashpa_net_pair **place(const struct rashpa_net_queue *q, uint32_t qpn)
{
	uint32_t i = hash(q, qpn);

	while (q->pair[i] && q->pair[i]->qp->qp_num != qpn)
		i = (i + 1) & (q->slots - 1);
	return &q->pair[i];
}

/* Double the table, and keep its pairs. */
static int grow(struct rashpa_net_queue *q)
{
	struct rashpa_net_pair **before = q->pair;
	const uint32_t slots = q->slots;

	q->slots = slots ? slots * 2 : 64;
	q->pair = calloc(q->slots, sizeof(struct rashpa_net_pair *));
	if (!q->pair) {
		q->pair = before;
		q->slots = slots;
		return net_fail(ENOMEM, "no memory");
	}
	for (uint32_t i = 0; i < slots; i++) {
		if (before[i])
			*place(q, before[i]->qp->qp_num) = before[i];
	}
	free(before);
	return 0;
}

int queue_add(struct rashpa_net_queue *q, struct rashpa_net_pair *pair)
{
	if (q->pairs * 2 >= q->slots && grow(q))
		return -ENOMEM;
	*place(q, pair->qp->qp_num) = pair;
	q->pairs++;
	return 0;
}

/* Removes a pair, and inserts the following ones again, as they may have to move. */
void queue_remove(struct rashpa_net_queue *q, struct rashpa_net_pair *pair)
{
	struct rashpa_net_pair **at = q->slots ? place(q, pair->qp->qp_num) : NULL;
	uint32_t i;

	if (!at || *at != pair)
		return;
	*at = NULL;
	q->pairs--;
	i = at - q->pair;
	while (q->pair[i = (i + 1) & (q->slots - 1)]) {
		struct rashpa_net_pair *other = q->pair[i];

		q->pair[i] = NULL;
		*place(q, other->qp->qp_num) = other;
	}
}

/* --- */

static void tell(struct rashpa_net_queue *q, const struct ibv_wc *wc, struct rashpa_net_done *done)
{
	struct rashpa_net_pair *pair = q->slots ? *place(q, wc->qp_num) : NULL;
	/* if the request failed, only wr_id and qp_num are valid */
	const bool own = wc->wr_id & RECEIVE_BIT, shared = wc->wr_id == 0;
	const bool received = own || (wc->status ? shared : wc->opcode & IBV_WC_RECV);

	*done = (struct rashpa_net_done) {
		.pair = pair,
		.user = pair ? pair->user : NULL,
		.id = shared ? 0 : (wc->wr_id & ~RECEIVE_BIT) - 1,
		.error = wc->status ? EIO : 0,
		.received = received,
	};
	q->used += received && !own;
	if (received && !wc->status) {
		done->immediate = ntohl(wc->imm_data);
		done->length = wc->byte_len;
	}
}

/* Polls for at most n completions. Their number, or -errno. */
static int look(struct rashpa_net_queue *q, struct rashpa_net_done *done, uint32_t n)
{
	int found, error;

	/* the caller has handled the previous completions: post their receives again */
	if (q->used) {
		error = post_receives(q, q->used);
		if (error)
			return error;
		q->used = 0;
	}
	found = ibv_poll_cq(q->cq, n < BATCH ? n : BATCH, q->wc);
	if (found < 0)
		return net_fail(EIO, "%s: completions cannot be read", q->net->info.device);
	q->counts.polls++;
	q->counts.empty += !found;
	q->counts.completions += found;
	for (int i = 0; i < found; i++)
		tell(q, &q->wc[i], &done[i]);
	/* a full batch means that more messages may wait, so they add up */
	q->waiting += q->used;
	if (q->receives < q->waiting)
		q->counts.low = 0;
	else if (q->receives - q->waiting < q->counts.low)
		q->counts.low = q->receives - q->waiting;
	if ((uint32_t)found < (n < BATCH ? n : BATCH))
		q->waiting = 0;
	return found;
}

static void take_event(struct rashpa_net_queue *q)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(q->channel, &cq, &context))
		return;
	q->counts.events++;
	if (++q->unacknowledged == ACKNOWLEDGE) {
		ibv_ack_cq_events(q->cq, q->unacknowledged);
		q->unacknowledged = 0;
	}
}

static bool woken(struct rashpa_net_queue *q)
{
	uint64_t count;

	return read(q->wake, &count, sizeof(count)) > 0;
}

/* Sleeps until an event or a wake-up, or the end. false: after a wake-up, a signal or the end. */
static bool sleep_for(struct rashpa_net_queue *q, uint64_t end)
{
	struct pollfd fds[2] = {
		{ .fd = q->channel->fd, .events = POLLIN }, { .fd = q->wake, .events = POLLIN },
	};
	const uint64_t t = now();
	uint64_t left = t < end ? end - t : 0;
	struct timespec most = { left / 1000000000, left % 1000000000 };

	if (ppoll(fds, 2, end == UINT64_MAX ? NULL : &most, NULL) <= 0)
		return false;
	if (fds[0].revents)
		take_event(q);
	return !(fds[1].revents && woken(q));
}

/*
 * Polls before a sleep, as long as "how" says. Checks the clock and wake-ups only after some polls.
 */
static int spin(struct rashpa_net_queue *q, struct rashpa_net_done *done, uint32_t n, uint32_t how,
		uint64_t end)
{
	uint64_t until = end;
	int found = look(q, done, n);

	if (found || how == RASHPA_NET_EVENT)
		return found;
	if (how == RASHPA_NET_ADAPTIVE && now() + ADAPTIVE_NS < until)
		until = now() + ADAPTIVE_NS;
	while (now() < until && !(how == RASHPA_NET_POLL && woken(q))) {
		for (unsigned int i = 0; i < LOOKS && !found; i++)
			found = look(q, done, n);
		if (found)
			break;
	}
	return found;
}

int rashpa_net_next(struct rashpa_net_queue *q, struct rashpa_net_done *done, uint32_t n,
		    uint32_t how, bool solicited, int timeout_ms)
{
	const uint64_t end = timeout_ms < 0 ? UINT64_MAX : now() + timeout_ms * UINT64_C(1000000);
	bool more = true;
	int found;

	for (;;) {
		found = spin(q, done, n, how, end);
		if (found || how == RASHPA_NET_POLL || !more)
			return found;
		/* request an event for later completions, then poll again for earlier ones */
		if (ibv_req_notify_cq(q->cq, solicited))
			return net_fail(EIO, "%s: cannot request an event for completions",
					q->net->info.device);
		found = look(q, done, n);
		if (found)
			return found;
		more = sleep_for(q, end) && now() < end;
	}
}

void rashpa_net_wake(struct rashpa_net_queue *q)
{
	const uint64_t one = 1;

	if (write(q->wake, &one, sizeof(one)) < 0)
		return;	/* the counter is full: the thread wakes in any case */
}

void rashpa_net_queue_counts_sized(const struct rashpa_net_queue *q, struct rashpa_net_counts *counts,
				   size_t size)
{
	sized_copy(counts, size, &q->counts, sizeof(q->counts));
}
