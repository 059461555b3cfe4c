/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef NETWORK_INTERNAL_H
#define NETWORK_INTERNAL_H

#include <infiniband/verbs.h>

#include "verbs/verbs.h"

/* Keep a sentence for rashpa_net_reason(). Returns -error. */
__attribute__((format(printf, 2, 3)))
int net_fail(int error, const char *format, ...);

struct rashpa_net {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct rashpa_net_options options;
	struct rashpa_net_info info;
	char driver[64];		/* driver of the card; empty for a soft card */
	uint8_t info_room[256];		/* zeros, for programs with a longer struct */
	union ibv_gid gid;
	enum ibv_mtu mtu;
};

struct rashpa_net_queue {
	struct rashpa_net *net;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;		/* NULL: its pairs share no receives */
	uint32_t receives;
	uint32_t used;			/* receives to post again */
	uint64_t waiting;		/* messages found by full batches in a row */
	uint32_t unacknowledged;	/* events not acknowledged yet */
	int wake;			/* eventfd */
	struct ibv_wc *wc;
	struct rashpa_net_counts counts;
	/* hash table of pairs by number; slots: a power of two, at most half of them used */
	struct rashpa_net_pair **pair;
	uint32_t slots, pairs;
};

struct rashpa_net_pair {
	struct rashpa_net_queue *queue;
	struct ibv_qp *qp;
	void *user;
	uint32_t psn;
	bool connected;
	bool messages;		/* the pair has private receives */
	struct rashpa_net_address peer;
};

#define RECEIVE_BIT	(UINT64_C(1) << 63)	/* set in the ids of private receives of a pair */

/* Register a pair, so that its completions can be assigned to it. */
int queue_add(struct rashpa_net_queue *queue, struct rashpa_net_pair *pair);
void queue_remove(struct rashpa_net_queue *queue, struct rashpa_net_pair *pair);

#endif /* NETWORK_INTERNAL_H */
