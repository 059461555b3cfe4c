// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fabric/tests/card.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PAIRS		1024
#define REQUESTS	256		/* more than a pair has */
#define FIRST		0x100		/* number of the first pair */

struct request {
	uint64_t id;
	uint64_t address;
	uint32_t length;
	uint32_t immediate;
	bool write;		/* of no bytes: it only finds out whether the peer is there */
};

struct list {
	struct request request[REQUESTS];
	uint32_t in, out, most;
};

struct card_pair {
	struct ibv_qp qp;
	uint32_t peer;
	struct list sends, receives;
};

struct card_queue {
	struct ibv_cq cq;
	struct ibv_wc *done;
	uint32_t room, in, out;
	bool armed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct card_pair *pairs[PAIRS];
static uint32_t not_ready;

static void *make(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		abort();
	return p;
}

uint32_t card_not_ready(void)
{
	uint32_t n;

	pthread_mutex_lock(&lock);
	n = not_ready;
	not_ready = 0;
	pthread_mutex_unlock(&lock);
	return n;
}

/* --- device --- */

static struct ibv_device device = { .name = "card0", .ibdev_path = "/nowhere" };
static struct ibv_device *devices[] = { &device, NULL };

struct ibv_device **ibv_get_device_list(int *n)
{
	*n = 1;
	return devices;
}

void ibv_free_device_list(struct ibv_device **list)
{
	(void)list;
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	*attr = (struct ibv_device_attr) {
		.max_qp = PAIRS, .max_srq_wr = REQUESTS, .max_cqe = 1 << 16, .phys_port_cnt = 1,
	};
	return 0;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	(void)context;
	(void)port;
	memset(attr, 0, size);
	attr->state = IBV_PORT_ACTIVE;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->active_mtu = IBV_MTU_4096;
	attr->max_msg_sz = 1 << 30;
	attr->gid_tbl_len = 1;
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	(void)context;
	(void)port;
	(void)index;
	(void)flags;
	memset(entry, 0, size);
	entry->gid_type = IBV_GID_TYPE_ROCE_V2;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = make(1, sizeof(*pd));

	pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova,
				unsigned int access)
{
	struct ibv_mr *mr = make(1, sizeof(*mr));

	(void)access;
	*mr = (struct ibv_mr) { .pd = pd, .addr = address, .length = iova ? length : 0, .lkey = 1 };
	return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

/* --- completions --- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = make(1, sizeof(*channel));

	channel->context = context;
	channel->fd = eventfd(0, EFD_CLOEXEC);
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	free(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int n, void *user,
			     struct ibv_comp_channel *channel, int vector)
{
	struct card_queue *q = make(1, sizeof(*q));

	(void)vector;
	q->cq = (struct ibv_cq) { .context = context, .channel = channel, .cq_context = user };
	q->room = n;
	q->done = make(n, sizeof(*q->done));
	return &q->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct card_queue *q = (struct card_queue *)cq;

	free(q->done);
	free(q);
	return 0;
}

static void complete(struct card_pair *p, const struct ibv_wc *wc)
{
	struct card_queue *q = (struct card_queue *)p->qp.send_cq;
	const uint64_t one = 1;

	if (q->in - q->out == q->room)
		abort();	/* a card would lose completions */
	q->done[q->in++ % q->room] = *wc;
	if (q->armed && write(q->cq.channel->fd, &one, sizeof(one)) != sizeof(one))
		abort();
	q->armed = false;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct card_queue *q = (struct card_queue *)cq;
	int found = 0;

	pthread_mutex_lock(&lock);
	while (found < n && q->out != q->in)
		wc[found++] = q->done[q->out++ % q->room];
	pthread_mutex_unlock(&lock);
	return found;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	(void)solicited;
	pthread_mutex_lock(&lock);
	((struct card_queue *)cq)->armed = true;
	pthread_mutex_unlock(&lock);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **user)
{
	uint64_t n;

	(void)cq;
	(void)user;
	return read(channel->fd, &n, sizeof(n)) == sizeof(n) ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}

/* --- pairs --- */

static struct card_pair *pair_of(uint32_t number)
{
	return number - FIRST < PAIRS ? pairs[number - FIRST] : NULL;
}

static void sent(struct card_pair *p, enum ibv_wc_status status)
{
	const struct ibv_wc wc = {
		.wr_id = p->sends.request[p->sends.out++ % REQUESTS].id,
		.status = status, .opcode = IBV_WC_SEND, .qp_num = p->qp.qp_num,
	};

	complete(p, &wc);
}

static void arrive(struct card_pair *to, const struct request *s)
{
	const struct request *r = &to->receives.request[to->receives.out++ % REQUESTS];
	const struct ibv_wc wc = {
		.wr_id = r->id, .opcode = IBV_WC_RECV, .qp_num = to->qp.qp_num,
		.byte_len = s->length, .imm_data = s->immediate,
		.status = s->length > r->length ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS,
	};

	if (!wc.status && s->length)
		memcpy((void *)(uintptr_t)r->address, (void *)(uintptr_t)s->address, s->length);
	complete(to, &wc);
}

/* Move the messages of a pair: all that have a receive. */
static void move(struct card_pair *p)
{
	while (p->sends.out != p->sends.in) {
		const struct request *s = &p->sends.request[p->sends.out % REQUESTS];
		struct card_pair *to = pair_of(p->peer);

		if (!to) {
			sent(p, IBV_WC_RETRY_EXC_ERR);
			continue;
		}
		if (!s->write && to->receives.out == to->receives.in)
			return;
		if (!s->write)
			arrive(to, s);
		sent(p, IBV_WC_SUCCESS);
	}
}

static int add(struct list *l, uint64_t id, const struct ibv_sge *part, int parts, uint32_t immediate,
	       bool write)
{
	if (l->in - l->out == l->most)
		return ENOMEM;
	l->request[l->in++ % REQUESTS] = (struct request) {
		.id = id, .immediate = immediate, .write = write,
		.address = parts ? part->addr : 0, .length = parts ? part->length : 0,
	};
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct card_pair *p = (struct card_pair *)qp;
	int error;

	*bad = wr;
	pthread_mutex_lock(&lock);
	error = add(&p->sends, wr->wr_id, wr->sg_list, wr->num_sge, wr->imm_data,
		    wr->opcode == IBV_WR_RDMA_WRITE);
	move(p);
	not_ready += p->sends.out != p->sends.in;
	pthread_mutex_unlock(&lock);
	return error;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct card_pair *p = (struct card_pair *)qp, *from;
	int error;

	*bad = wr;
	pthread_mutex_lock(&lock);
	error = add(&p->receives, wr->wr_id, wr->sg_list, wr->num_sge, 0, false);
	from = pair_of(p->peer);
	if (from)
		move(from);
	pthread_mutex_unlock(&lock);
	return error;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct card_pair *p = make(1, sizeof(*p));
	uint32_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < PAIRS && pairs[i])
		i++;
	if (i < PAIRS)
		pairs[i] = p;
	pthread_mutex_unlock(&lock);
	if (i == PAIRS || attr->cap.max_send_wr > REQUESTS || attr->cap.max_recv_wr > REQUESTS) {
		errno = ENOMEM;
		return NULL;
	}
	p->qp = (struct ibv_qp) {
		.context = pd->context, .pd = pd, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq,
		.qp_num = FIRST + i,
	};
	p->sends.most = attr->cap.max_send_wr;
	p->receives.most = attr->cap.max_recv_wr;
	return &p->qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct card_pair *p = (struct card_pair *)qp;

	pthread_mutex_lock(&lock);
	if (mask & IBV_QP_DEST_QPN)
		p->peer = attr->dest_qp_num;
	pthread_mutex_unlock(&lock);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct card_pair *p = (struct card_pair *)qp, *from;

	pthread_mutex_lock(&lock);
	pairs[qp->qp_num - FIRST] = NULL;
	from = pair_of(p->peer);
	if (from)
		move(from);
	pthread_mutex_unlock(&lock);
	free(p);
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	struct verbs_context *v = make(1, sizeof(*v));

	v->sz = sizeof(*v);
	v->query_port = query_port;
	v->context = (struct ibv_context) {
		.device = d, .abi_compat = __VERBS_ABI_IS_EXTENDED,
		.ops = { .poll_cq = poll_cq, .req_notify_cq = req_notify_cq, .post_send = post_send,
			 .post_recv = post_recv },
	};
	return &v->context;
}

int ibv_close_device(struct ibv_context *context)
{
	free(verbs_get_ctx(context));
	return 0;
}
