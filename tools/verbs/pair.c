// SPDX-License-Identifier: LGPL-2.1-or-later
/* Queue pairs and writes. */
#include "verbs/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PSN_MASK	0xffffff
#define TIMEOUT		14		/* 67 ms */
#define FOR_EVER	7		/* value of rnr_retry for no limit */
#define HOPS		64
#define CHAIN		64		/* writes that are posted at once */

struct work {
	struct ibv_send_wr request;
	struct ibv_sge part;
};

static int to_init(struct rashpa_net_pair *p)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = p->queue->net->info.port,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	return ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					   IBV_QP_ACCESS_FLAGS);
}

static int to_receive(struct rashpa_net_pair *p)
{
	const struct rashpa_net *n = p->queue->net;
	const bool rc = n->options.service == RASHPA_NET_RC;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = n->mtu,
		.dest_qp_num = p->peer.qpn,
		.rq_psn = p->peer.psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.port_num = n->info.port,
			.grh = {
				.sgid_index = n->info.gid,
				.hop_limit = n->options.hops ? n->options.hops : HOPS,
				.traffic_class = n->options.traffic_class,
			},
		},
	};

	memcpy(attr.ah_attr.grh.dgid.raw, p->peer.gid, sizeof(p->peer.gid));
	return ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					   (rc ? IBV_QP_MAX_DEST_RD_ATOMIC |
						 IBV_QP_MIN_RNR_TIMER : 0));
}

static int to_send(struct rashpa_net_pair *p)
{
	const struct rashpa_net_options *o = &p->queue->net->options;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = p->psn,
		.timeout = o->timeout ? o->timeout : TIMEOUT,
		.retry_cnt = o->retries,
		.rnr_retry = p->messages ? FOR_EVER : o->retries,
		.max_rd_atomic = 1,
	};

	return ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
			     (o->service == RASHPA_NET_RC ?
			      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			      IBV_QP_MAX_QP_RD_ATOMIC : 0));
}

/* receives: number of private receives; 0: the pair uses those of the queue */
static int open_pair(struct rashpa_net_queue *q, uint32_t writes, uint32_t receives, void *user,
		     struct rashpa_net_pair **pair)
{
	const struct rashpa_net *n = q->net;
	struct ibv_qp_init_attr attr = {	/* ibv_create_qp_ex() is not in all providers */
		.send_cq = q->cq,
		.recv_cq = q->cq,
		.srq = q->srq,
		.cap = { .max_send_wr = writes ? writes : 1, .max_send_sge = 1,
			 .max_recv_wr = q->srq ? 0 : receives ? receives : 1,
			 .max_recv_sge = q->srq ? 0 : 1 },
		.qp_type = n->options.service == RASHPA_NET_RC ? IBV_QPT_RC : IBV_QPT_UC,
	};
	struct rashpa_net_pair *p = calloc(1, sizeof(*p));
	int error;

	if (!p)
		return net_fail(ENOMEM, "no memory");
	p->queue = q;
	p->user = user;
	p->messages = receives;
	p->qp = ibv_create_qp(n->pd, &attr);
	if (!p->qp) {
		error = net_fail(errno, "%s: cannot create a queue pair for %u writes: %s", n->info.device,
				 writes, strerror(errno));
		free(p);
		return error;
	}
	if (getrandom(&p->psn, sizeof(p->psn), GRND_NONBLOCK) != sizeof(p->psn))
		p->psn = p->qp->qp_num;
	p->psn &= PSN_MASK;
	error = queue_add(q, p);
	if (!error && to_init(p))
		error = net_fail(errno, "%s: cannot initialize a queue pair: %s", n->info.device,
				 strerror(errno));
	if (error)
		rashpa_net_pair_close(p);
	else
		*pair = p;
	return error;
}

int rashpa_net_pair_open(struct rashpa_net_queue *q, uint32_t writes, void *user,
			 struct rashpa_net_pair **pair)
{
	return open_pair(q, writes, 0, user, pair);
}

int rashpa_net_pair_messages(struct rashpa_net_queue *q, uint32_t sends, uint32_t receives,
			     void *user, struct rashpa_net_pair **pair)
{
	if (q->srq || !receives)
		return net_fail(EINVAL, "a pair for messages needs receives, and a queue without shared receives");
	return open_pair(q, sends, receives, user, pair);
}

void rashpa_net_pair_close(struct rashpa_net_pair *p)
{
	if (!p)
		return;
	queue_remove(p->queue, p);
	ibv_destroy_qp(p->qp);
	free(p);
}

void rashpa_net_pair_address(const struct rashpa_net_pair *p, struct rashpa_net_address *mine)
{
	*mine = (struct rashpa_net_address) { .qpn = p->qp->qp_num, .psn = p->psn };
	memcpy(mine->gid, p->queue->net->gid.raw, sizeof(mine->gid));
}

int rashpa_net_pair_connect(struct rashpa_net_pair *p, const struct rashpa_net_address *theirs)
{
	if (theirs->qpn > PSN_MASK || theirs->psn > PSN_MASK)
		return net_fail(EINVAL, "queue pair %#x or packet %#x has more than 24 bits",
				theirs->qpn, theirs->psn);
	p->peer = *theirs;
	if (to_receive(p) || to_send(p))
		return net_fail(errno, "%s: cannot connect to queue pair %#x: %s",
				p->queue->net->info.device, theirs->qpn, strerror(errno));
	p->connected = true;
	return 0;
}

int rashpa_net_pair_again(struct rashpa_net_pair *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	if (!p->connected)
		return net_fail(ENOTCONN, "the queue pair is not connected");
	if (ibv_modify_qp(p->qp, &attr, IBV_QP_STATE) || to_init(p) || to_receive(p) || to_send(p))
		return net_fail(errno, "%s: cannot reconnect to queue pair %#x: %s",
				p->queue->net->info.device, p->peer.qpn, strerror(errno));
	return 0;
}

static int post_error(struct rashpa_net_pair *p, int error, uint32_t n, const char *what)
{
	return error ? net_fail(error, "%s: cannot post %u %s: %s", p->queue->net->info.device, n,
				what, strerror(error)) : 0;
}

static void describe(struct work *work, const struct ibv_send_wr *request, uint64_t address,
		     uint32_t length, uint32_t key)
{
	work->part = (struct ibv_sge) { .addr = address, .length = length, .lkey = key };
	work->request = *request;
	work->request.wr_id++;		/* 0 stands for shared receives */
	work->request.sg_list = &work->part;
	work->request.num_sge = length > 0;
}

static int post_chain(struct rashpa_net_pair *p, const struct rashpa_net_write *write, uint32_t n)
{
	struct work work[CHAIN];
	struct ibv_send_wr *bad;

	for (uint32_t i = 0; i < n; i++) {
		const struct rashpa_net_write *w = &write[i];
		const struct ibv_send_wr request = {
			.wr_id = w->id,
			.next = i + 1 < n ? &work[i + 1].request : NULL,
			.opcode = w->flags & RASHPA_NET_IMMEDIATE ? IBV_WR_RDMA_WRITE_WITH_IMM :
								    IBV_WR_RDMA_WRITE,
			.send_flags = (w->flags & RASHPA_NET_SOLICITED ? IBV_SEND_SOLICITED : 0) |
				      (w->flags & RASHPA_NET_SIGNALED ? IBV_SEND_SIGNALED : 0),
			.imm_data = htonl(w->immediate),
			.wr.rdma = { .remote_addr = w->to, .rkey = w->remote },
		};

		describe(&work[i], &request, w->from, w->length, w->local);
	}
	return post_error(p, ibv_post_send(p->qp, &work->request, &bad), n, "writes");
}

int rashpa_net_write(struct rashpa_net_pair *p, const struct rashpa_net_write *write, uint32_t n)
{
	int error = 0;

	for (uint32_t done = 0, some; done < n && !error; done += some) {
		some = n - done < CHAIN ? n - done : CHAIN;
		error = post_chain(p, write + done, some);
	}
	return error;
}

int rashpa_net_send(struct rashpa_net_pair *p, const struct rashpa_net_message *m)
{
	const struct ibv_send_wr request = {
		.wr_id = m->id, .opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(m->immediate),
	};
	struct ibv_send_wr *bad;
	struct work work;

	describe(&work, &request, m->address, m->length, m->local);
	return post_error(p, ibv_post_send(p->qp, &work.request, &bad), 1, "messages");
}

int rashpa_net_receive(struct rashpa_net_pair *p, const struct rashpa_net_message *m)
{
	struct ibv_sge room = { .addr = m->address, .length = m->length, .lkey = m->local };
	struct ibv_recv_wr work = {
		.wr_id = (m->id + 1) | RECEIVE_BIT, .sg_list = &room, .num_sge = 1,
	}, *bad;

	return post_error(p, ibv_post_recv(p->qp, &work, &bad), 1, "receives");
}
