/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rashpa-builder model: links and switches that are not there. Packets go from queue to queue; each
 * queue belongs to a link and is bounded, and a packet leaves only when the next queue has room, as
 * in networks without loss. Two machines have a cable; more have two stages of switches: machines
 * have one link to a leaf, leaves have some to each spine. Times are nanoseconds.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>

struct model_fabric {
	double gbps;		/* of each link, 10^9 bits a second */
	double latency_us;	/* of a link and the switch behind it */
	double cost_us;		/* of a process for a message, and for each that it receives */
	double copy_gbps;	/* of a process, 10^9 bytes a second; 0: it does not touch them */
	uint32_t ranks;		/* processes of a machine */
	uint32_t leaf;		/* machines of a leaf; 0: all have one switch */
	uint32_t spines, cables;	/* spines, and links from a leaf to each */
	uint64_t packet, head, buffer;	/* bytes: of a packet, of what is before it, of a queue */
	bool mixed;		/* one machine after the other goes to the next leaf */
};

struct net;

/* What became of a message: it is there; its sender knows. */
struct net_hooks {
	void (*arrived)(void *user, uint32_t from, uint32_t to, uint64_t bytes, uint64_t tag);
	void (*acknowledged)(void *user, uint32_t from, uint32_t to, uint64_t tag);
	void *user;
};

/* NULL: no memory */
struct net *net_open(const struct model_fabric *fabric, uint32_t processes, uint32_t depth,
		     const struct net_hooks *hooks);
void net_close(struct net *net);
/* In the order of a pair; at most depth of a pair are under way. 0 or -ENOMEM */
int net_send(struct net *net, uint32_t from, uint32_t to, uint64_t bytes, uint64_t tag);
/* The next thing that happens. false: nothing will */
bool net_step(struct net *net);
uint64_t net_now(const struct net *net);
uint64_t net_steps(const struct net *net);
/* Most bytes that a queue of a switch had. */
uint64_t net_fullest(const struct net *net);
/* Of links between leaves and spines, and of those to machines: time that the busiest one sent. */
void net_busiest(const struct net *net, uint64_t *core_ns, uint64_t *down_ns);

#endif /* MODEL_H */
