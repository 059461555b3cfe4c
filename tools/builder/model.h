/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rashpa-builder model: simulated links and switches. Packets go from queue to queue. Each queue is
 * bounded and belongs to a link, and a packet leaves only when the next queue has room, as in
 * lossless networks. Two machines share a cable; more use two stages of switches: each machine has
 * one link to a leaf, and each leaf has some links to each spine. Times are in nanoseconds.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>

struct model_fabric {
	double gbps;		/* rate of each link, 10^9 bits a second */
	double latency_us;	/* delay of a link and its switch, microseconds */
	double cost_us;		/* processor time to send or receive a message, microseconds */
	double copy_gbps;	/* copy rate of a process, 10^9 bytes a second; 0: no copy */
	uint32_t ranks;		/* processes per machine */
	uint32_t leaves;	/* 0: one switch for all */
	uint32_t spines, cables;	/* number of spines, and of links from a leaf to each */
	uint64_t packet, head, buffer;	/* bytes of a packet, its headers, a queue */
	uint64_t rendezvous;	/* messages of so many bytes ask before they are sent; 0: none do */
	bool mixed;		/* distribute machines over the leaves in turn */
	bool credits;		/* a sender waits for credits of the receiver, as with verbs */
};

struct net;

/* Called when a message has arrived, and when its sender has the acknowledgement. */
struct net_hooks {
	void (*arrived)(void *user, uint32_t from, uint32_t to, uint64_t bytes, uint64_t tag);
	void (*acknowledged)(void *user, uint32_t from, uint32_t to, uint64_t tag);
	void *user;
};

/* NULL: no memory */
struct net *net_open(const struct model_fabric *fabric, uint32_t processes, uint32_t depth,
		     const struct net_hooks *hooks);
void net_close(struct net *net);
/* Messages of a pair keep their order; at most depth of them are under way. 0 or -ENOMEM */
int net_send(struct net *net, uint32_t from, uint32_t to, uint64_t bytes, uint64_t tag);
/* Process the next event. false: no event is left, or no memory */
bool net_step(struct net *net);
uint64_t net_now(const struct net *net);
uint64_t net_steps(const struct net *net);
/* Highest fill of a queue of a switch, in bytes. */
uint64_t net_fullest(const struct net *net);
/* Busy time of the busiest link between leaves and spines, and of the busiest one to a machine. */
void net_busiest(const struct net *net, uint64_t *core_ns, uint64_t *down_ns);

#endif /* MODEL_H */
