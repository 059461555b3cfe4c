// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fabric/tests/card.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/tests/gpu-libraries/note.h"

#define PAIRS		1024
#define MEMORIES	64
#define REQUESTS	1024		/* more than a pair has */
#define FIRST		0x100		/* number of the first pair */
#define REVOKED_AFTER	20		/* writes */

struct request {
	uint64_t id;
	uint64_t address;
	uint32_t length;
	uint32_t immediate;
	bool write;		/* of no bytes: it only finds out whether the peer is there */
};

/* A write, for the process that has the memory; its bytes follow. The answer is its status. */
struct parcel {
	uint64_t to;
	uint32_t length, immediate, key, number;
	bool announced;		/* it has the immediate */
};

struct card_memory {
	struct ibv_mr mr;
	uint8_t *at;
	bool dmabuf, revoked;
	uint32_t writes;
};

struct card_domain {
	struct ibv_pd pd;
	uint32_t pairs, memories;
	bool gone;		/* memory was given back: nothing is posted after that */
};

struct list {
	struct request request[REQUESTS];
	uint32_t in, out, most;
};

struct card_pair {
	struct ibv_qp qp;
	uint32_t peer;
	pid_t process;		/* process of the peer */
	int link;		/* to that process; 0: none */
	bool failed;
	struct list sends, receives;
};

struct card_srq {
	struct ibv_srq srq;
	struct list receives;
};

struct card_queue {
	struct ibv_cq cq;
	struct ibv_wc *done;
	uint32_t room, in, out;
	bool armed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct card_pair *pairs[PAIRS];
static struct card_memory *memories[MEMORIES];
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

/* The stand-in for CUDA has files of memory, which pass for dma-bufs here. */
ssize_t readlink(const char *path, char *target, size_t size)
{
	ssize_t (*const next)(const char *, char *, size_t) = dlsym(RTLD_NEXT, "readlink");
	const ssize_t n = next(path, target, size);
	static const char ours[] = "/memfd:stand-in GPU";

	if (n >= (ssize_t)strlen(ours) && !strncmp(target, ours, strlen(ours)))
		memcpy(target, "/dmabuf:", strlen("/dmabuf:"));
	return n;
}

/* --- device --- */

static struct ibv_device device = { .name = "card0", .ibdev_path = "/nowhere" };
static struct ibv_device *devices[] = { &device, NULL };

struct ibv_device **ibv_get_device_list(int *n)
{
	const char *folder = getenv("STAND_IN_CARD");

	if (folder)
		snprintf(device.ibdev_path, sizeof(device.ibdev_path), "%s", folder);
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
	/* an address of IPv4, which is the number of the process */
	memset(entry->gid.raw + 10, 0xff, 2);
	memcpy(entry->gid.raw + 12, &(pid_t) { getpid() }, 4);
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct card_domain *d = make(1, sizeof(*d));

	d->pd.context = context;
	return &d->pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	const struct card_domain *d = (struct card_domain *)pd;

	if (d->memories || d->pairs)
		note("WRONG: dealloc_pd: %u memories, %u pairs", d->memories, d->pairs);
	free(pd);
	return 0;
}

static struct ibv_mr *add_memory(struct ibv_pd *pd, uint8_t *at, uint64_t iova, size_t length, bool dmabuf)
{
	struct card_memory *m = make(1, sizeof(*m));
	uint32_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < MEMORIES && memories[i])
		i++;
	if (i == MEMORIES)
		abort();
	memories[i] = m;
	((struct card_domain *)pd)->memories++;
	pthread_mutex_unlock(&lock);
	*m = (struct card_memory) {
		.mr = { .pd = pd, .addr = (void *)(uintptr_t)iova, .length = length, .lkey = i + 1, .rkey = i + 1 },
		.at = at, .dmabuf = dmabuf,
	};
	return &m->mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova,
				unsigned int access)
{
	note("reg_mr %zu access %u", length, access);
	if (told("no-pages")) {
		errno = EFAULT;
		return NULL;
	}
	return add_memory(pd, address, iova, length, false);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	uint8_t *at;

	note("reg_dmabuf_mr %zu offset %llu access %d", length, (unsigned long long)offset, access);
	if (told("card-no-dmabuf")) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
	return at == MAP_FAILED ? NULL : add_memory(pd, at, iova, length, true);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct card_memory *m = (struct card_memory *)mr;
	struct card_domain *d = (struct card_domain *)mr->pd;

	note("dereg_mr %zu", mr->length);
	pthread_mutex_lock(&lock);
	if (d->pairs)
		note("WRONG: dereg_mr: %u pairs can still write", d->pairs);
	memories[mr->rkey - 1] = NULL;
	d->memories--;
	d->gone = true;
	pthread_mutex_unlock(&lock);
	if (m->dmabuf)
		munmap(m->at, mr->length);
	free(m);
	return 0;
}

/* Nothing is posted where memory was given back. */
static void check_post(struct ibv_pd *pd)
{
	if (((struct card_domain *)pd)->gone)
		note("WRONG: a request after dereg_mr");
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

/* --- writes --- */

/* A receive of the pair, or a shared one. false: no receive is posted, and the message is lost. */
static bool take_receive(struct card_pair *p, uint64_t *id)
{
	struct list *l = p->qp.srq ? &((struct card_srq *)p->qp.srq)->receives : &p->receives;

	if (l->out == l->in)
		return false;
	*id = l->request[l->out++ % REQUESTS].id;
	return true;
}

/* Write into memory of this process, under the lock. */
static enum ibv_wc_status deliver(const struct parcel *parcel, const void *bytes)
{
	struct card_memory *m = parcel->key - 1 < MEMORIES ? memories[parcel->key - 1] : NULL;
	struct card_pair *p = pair_of(parcel->number);
	struct ibv_wc wc = { .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .byte_len = parcel->length,
			     .imm_data = parcel->immediate, .qp_num = parcel->number };
	uint64_t at;

	if (!p)
		return IBV_WC_RETRY_EXC_ERR;
	at = m ? parcel->to - (uintptr_t)m->mr.addr : 0;
	if (!m || at > m->mr.length || parcel->length > m->mr.length - at)
		return note("WRONG: a write out of the memory"), IBV_WC_REM_ACCESS_ERR;
	if (m->dmabuf && told("revoke") && ++m->writes > REVOKED_AFTER && !m->revoked) {
		m->revoked = true;
		note("revoked");
	}
	if (m->revoked)
		return IBV_WC_REM_ACCESS_ERR;
	memcpy(m->at + at, bytes, parcel->length);
	if (parcel->announced && take_receive(p, &wc.wr_id))
		complete(p, &wc);
	return IBV_WC_SUCCESS;
}

static bool whole(int fd, void *bytes, size_t length)
{
	return recv(fd, bytes, length, MSG_WAITALL) == (ssize_t)length;
}

/* Writes of a pair of another process, until that ends. */
static void *serve(void *arg)
{
	const int fd = (intptr_t)arg;
	struct parcel parcel;
	uint32_t status;

	while (whole(fd, &parcel, sizeof(parcel))) {
		uint8_t *bytes = make(1, parcel.length + 1);
		const bool there = !parcel.length || whole(fd, bytes, parcel.length);

		pthread_mutex_lock(&lock);
		status = there ? deliver(&parcel, bytes) : IBV_WC_GENERAL_ERR;
		pthread_mutex_unlock(&lock);
		free(bytes);
		if (!there || send(fd, &status, sizeof(status), MSG_NOSIGNAL) != sizeof(status))
			break;
	}
	close(fd);
	return NULL;
}

static struct sockaddr_un address_of(pid_t process)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "rashpa-card-%d", process);
	return a;
}

static void *listen_for_writes(void *arg)
{
	const int listener = (intptr_t)arg;
	pthread_t thread;
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd))
			abort();
		pthread_detach(thread);
	}
	return NULL;
}

static void begin_service(void)
{
	const struct sockaddr_un a = address_of(getpid());
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t thread;

	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) || listen(fd, 64) ||
	    pthread_create(&thread, NULL, listen_for_writes, (void *)(intptr_t)fd))
		abort();
	pthread_detach(thread);
}

/* As a process that has died does not answer. */
static enum ibv_wc_status send_parcel(struct card_pair *p, const struct parcel *parcel, const void *bytes)
{
	const struct sockaddr_un a = address_of(p->process);
	uint32_t status;

	if (!p->link) {
		p->link = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(p->link, (const struct sockaddr *)&a, sizeof(a)))
			return IBV_WC_RETRY_EXC_ERR;
	}
	if (send(p->link, parcel, sizeof(*parcel), MSG_NOSIGNAL) != sizeof(*parcel) ||
	    (parcel->length && send(p->link, bytes, parcel->length, MSG_NOSIGNAL) != parcel->length) ||
	    !whole(p->link, &status, sizeof(status)))
		return IBV_WC_RETRY_EXC_ERR;
	return status;
}

/* A write to another process. */
static void write_there(struct card_pair *p, const struct ibv_send_wr *wr)
{
	const struct parcel parcel = {
		.to = wr->wr.rdma.remote_addr, .key = wr->wr.rdma.rkey, .number = p->peer,
		.length = wr->num_sge ? wr->sg_list->length : 0, .immediate = wr->imm_data,
		.announced = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	struct ibv_wc wc = { .wr_id = wr->wr_id, .opcode = IBV_WC_RDMA_WRITE, .qp_num = p->qp.qp_num };

	wc.status = p->failed ? IBV_WC_WR_FLUSH_ERR :
		    send_parcel(p, &parcel, (void *)(uintptr_t)(wr->num_sge ? wr->sg_list->addr : 0));
	p->failed = wc.status;
	if (!wc.status && !(wr->send_flags & IBV_SEND_SIGNALED))
		return;
	pthread_mutex_lock(&lock);
	complete(p, &wc);
	pthread_mutex_unlock(&lock);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct card_pair *p = (struct card_pair *)qp;
	int error = 0;

	check_post(qp->pd);
	for (; wr && !error; wr = wr->next) {
		*bad = wr;
		if (p->process != getpid()) {
			write_there(p, wr);
			continue;
		}
		pthread_mutex_lock(&lock);
		error = add(&p->sends, wr->wr_id, wr->sg_list, wr->num_sge, wr->imm_data,
			    wr->opcode == IBV_WR_RDMA_WRITE);
		move(p);
		not_ready += p->sends.out != p->sends.in;
		pthread_mutex_unlock(&lock);
	}
	return error;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct card_pair *p = (struct card_pair *)qp, *from;
	int error;

	check_post(qp->pd);
	*bad = wr;
	pthread_mutex_lock(&lock);
	error = add(&p->receives, wr->wr_id, wr->sg_list, wr->num_sge, 0, false);
	from = pair_of(p->peer);
	if (from)
		move(from);
	pthread_mutex_unlock(&lock);
	return error;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int error = 0;

	check_post(srq->pd);
	pthread_mutex_lock(&lock);
	for (; wr && !error; wr = wr->next) {
		*bad = wr;
		error = add(&((struct card_srq *)srq)->receives, wr->wr_id, NULL, 0, 0, false);
	}
	pthread_mutex_unlock(&lock);
	return error;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct card_srq *q = make(1, sizeof(*q));

	q->srq = (struct ibv_srq) { .context = pd->context, .pd = pd };
	q->receives.most = attr->attr.max_wr;
	return &q->srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	free(srq);
	return 0;
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
		.qp_num = FIRST + i, .srq = attr->srq,
	};
	p->process = getpid();
	((struct card_domain *)pd)->pairs++;
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
	if (mask & IBV_QP_AV)
		memcpy(&p->process, attr->ah_attr.grh.dgid.raw + 12, sizeof(p->process));
	pthread_mutex_unlock(&lock);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct card_pair *p = (struct card_pair *)qp, *from;

	pthread_mutex_lock(&lock);
	pairs[qp->qp_num - FIRST] = NULL;
	((struct card_domain *)qp->pd)->pairs--;
	from = pair_of(p->peer);
	if (from)
		move(from);
	pthread_mutex_unlock(&lock);
	if (p->link)
		close(p->link);
	free(p);
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct verbs_context *v = make(1, sizeof(*v));

	pthread_once(&once, begin_service);
	v->sz = sizeof(*v);
	v->query_port = query_port;
	v->context = (struct ibv_context) {
		.device = d, .abi_compat = __VERBS_ABI_IS_EXTENDED,
		.ops = { .poll_cq = poll_cq, .req_notify_cq = req_notify_cq, .post_send = post_send,
			 .post_recv = post_recv, .post_srq_recv = post_srq_recv },
	};
	return &v->context;
}

int ibv_close_device(struct ibv_context *context)
{
	free(verbs_get_ctx(context));
	return 0;
}
