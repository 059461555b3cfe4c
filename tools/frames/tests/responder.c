// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A receiver of RDMA WRITE with immediate that knows nothing of its sender:
 * responder DEVICE PEER uc|rc BYTES LAST FILE. It says "QPN RKEY ADDRESS" in a line, waits for the
 * message whose immediate is LAST, at most 60 seconds between two, and says in a second line which
 * immediates have come; an error ends it, and is the end of this line. FILE gets the memory. The
 * first PSN is 0, the path MTU 1024.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVES	256
#define PATIENCE_MS	60000
#define GID		1	/* index of the IPv4 GID: see rxe.sh */

static void die(const char *what)
{
	fprintf(stderr, "responder: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (unsigned int i = 0; list && list[i]; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return ibv_open_device(list[i]);
	}
	return NULL;
}

static void ready(struct ibv_qp *qp, const char *peer, bool rc)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

	if (ibv_modify_qp(qp, &attr, mask))
		die("INIT");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = 0x100,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = { .sgid_index = GID, .hop_limit = 64 },
		},
	};
	memset(attr.ah_attr.grh.dgid.raw + 10, 0xff, 2);
	if (inet_pton(AF_INET, peer, attr.ah_attr.grh.dgid.raw + 12) != 1)
		die(peer);
	mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (rc)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (ibv_modify_qp(qp, &attr, mask))
		die("RTR");
}

static void post(struct ibv_qp *qp)
{
	struct ibv_recv_wr one = {}, *bad;

	if (ibv_post_recv(qp, &one, &bad))
		die("receive");
}

/* A completion, or the end. */
static struct ibv_wc next(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	struct pollfd readable = { .fd = channel->fd, .events = POLLIN };
	struct ibv_wc wc;
	void *context;
	int n;

	for (;;) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n == 1)
			return wc;
		if (n < 0)
			die("poll");
		if (poll(&readable, 1, PATIENCE_MS) != 1) {
			errno = ETIMEDOUT;
			die("no message");
		}
		if (ibv_get_cq_event(channel, &cq, &context) || ibv_req_notify_cq(cq, 0))
			die("event");
		ibv_ack_cq_events(cq, 1);
	}
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = { .cap = { .max_recv_wr = RECEIVES, .max_send_wr = 1 } };
	struct ibv_comp_channel *channel;
	struct ibv_context *device;
	uint32_t immediate, last;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	void *memory;
	size_t bytes;
	FILE *file;
	bool rc;

	if (argc != 7) {
		fprintf(stderr, "responder DEVICE PEER uc|rc BYTES LAST FILE\n");
		return 2;
	}
	rc = !strcmp(argv[3], "rc");
	bytes = strtoul(argv[4], NULL, 0);
	last = (uint32_t)strtoul(argv[5], NULL, 0);
	device = open_device(argv[1]);
	memory = calloc(1, bytes);
	if (!device || !memory)
		die(argv[1]);
	pd = ibv_alloc_pd(device);
	channel = ibv_create_comp_channel(device);
	if (!pd || !channel)
		die("device");
	mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.recv_cq = ibv_create_cq(device, 2 * RECEIVES, NULL, channel, 0);
	init.send_cq = init.recv_cq;
	init.qp_type = rc ? IBV_QPT_RC : IBV_QPT_UC;
	if (!mr || !init.recv_cq || ibv_req_notify_cq(init.recv_cq, 0))
		die("memory");
	qp = ibv_create_qp(pd, &init);
	if (!qp)
		die("queue pair");
	ready(qp, argv[2], rc);
	for (unsigned int i = 0; i < RECEIVES; i++)
		post(qp);
	printf("%#x %#x %#" PRIxPTR "\n", qp->qp_num, mr->rkey, (uintptr_t)memory);
	fflush(stdout);
	do {
		wc = next(channel, init.recv_cq);
		if (wc.status) {
			printf("%s", ibv_wc_status_str(wc.status));
			break;
		}
		if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
			fprintf(stderr, "responder: a completion of another kind: %d\n", wc.opcode);
			return 1;
		}
		immediate = ntohl(wc.imm_data);
		printf("%" PRIu32 "%s", immediate, immediate == last ? "" : " ");
		post(qp);
	} while (immediate != last);
	putchar('\n');
	file = fopen(argv[6], "we");
	if (!file || fwrite(memory, bytes, 1, file) != 1 || fclose(file))
		die(argv[6]);
	return 0;
}
