/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * librashpa-network: RDMA WRITE over RoCE v2 into memory of another machine. It knows queue pairs,
 * memory and completions, and nothing of detectors: see Documentation/network.rst.
 *
 *	machine that sends			machine that receives
 *	net, memory, queue			net, memory, queue with receives
 *	pair  -- rashpa_net_address, by any channel -->  pair
 *	rashpa_net_write(): chains of WRITE	rashpa_net_next(): who wrote, which immediate
 *
 * All functions return 0 or more, or a negative errno; rashpa_net_reason() has the sentence, of the
 * calling thread.
 */
#ifndef RASHPA_NETWORK_H
#define RASHPA_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** struct rashpa_net - an open port of a network card; opaque */
struct rashpa_net;
/** struct rashpa_net_queue - a queue of completions; opaque */
struct rashpa_net_queue;
/** struct rashpa_net_pair - a queue pair; opaque */
struct rashpa_net_pair;

/** rashpa_net_reason() - why the last call of this thread failed: one sentence */
const char *rashpa_net_reason(void);

/*
 * Growth: options, info and counts grow at their end; addresses, memories, writes, messages and
 * completions do not. The functions without _sized call these, with the sizes that the program's
 * header has.
 */
struct rashpa_net_options;
struct rashpa_net_counts;
int rashpa_net_open_sized(const struct rashpa_net_options *options, struct rashpa_net **net,
			  size_t size);
void rashpa_net_queue_counts_sized(const struct rashpa_net_queue *queue,
				   struct rashpa_net_counts *counts, size_t size);

/* --- the port of a network card --- */

/** enum rashpa_net_service - transport service */
enum rashpa_net_service {
	RASHPA_NET_UC = 0,	/* unreliable connection: what is lost is not sent again */
	RASHPA_NET_RC = 1,	/* reliable connection */
};

/**
 * struct rashpa_net_options - which port, and how
 * @device: name of an RDMA device, as rxe0; NULL: the first one with a RoCE v2 address
 * @port: from 1; 0: the first one that is active
 * @gid: index of its address; -1: the first RoCE v2 one, one of IPv4 if there is one
 * @mtu: payload of a packet: 256, 512, 1024, 2048 or 4096 bytes; 0: what the port has
 * @service: enum rashpa_net_service
 * @traffic_class: of IP: the upper six bits are DSCP
 * @hops: most routers between; 0: 64
 * @timeout: RC: of an acknowledgement, 4.096 us * 2^timeout, 0 to 31; 0: 14
 * @retries: RC: 0 to 7, where nobody answers; soft-RoCE takes 7 for ever
 */
struct rashpa_net_options {
	const char *device;
	uint32_t port;
	int32_t gid;
	uint32_t mtu;
	uint32_t service;
	uint32_t traffic_class;
	uint32_t hops;
	uint32_t timeout;
	uint32_t retries;
};

/**
 * struct rashpa_net_info - what a port is
 * @device: name of the RDMA device
 * @address: IP address in text
 * @mtu: payload of a packet, bytes
 * @numa_node: of the card, -1: it has none
 * @message: largest message, bytes
 * @pairs: most queue pairs
 * @receives: most receives of a queue
 * @gid: index of its address
 * @port: of the device, from 1
 * @__reserved: not used
 */
struct rashpa_net_info {
	char device[64];
	char address[48];
	uint32_t port;
	uint32_t mtu;
	int32_t numa_node;
	uint32_t message;
	uint32_t pairs;
	uint32_t receives;
	uint32_t gid;
	uint32_t __reserved;
};

/** rashpa_net_open() - use a port. Return: 0, -ENODEV (there is none, or it is down), -EINVAL */
static inline int rashpa_net_open(const struct rashpa_net_options *options, struct rashpa_net **net)
{
	return rashpa_net_open_sized(options, net, sizeof(*options));
}
/** rashpa_net_close() - NULL is nothing. Its pairs, queues and memory are closed before */
void rashpa_net_close(struct rashpa_net *net);
/** rashpa_net_about() - valid until it is closed; 256 zeros follow, for longer versions */
const struct rashpa_net_info *rashpa_net_about(const struct rashpa_net *net);

/* --- memory --- */

/**
 * struct rashpa_net_memory - memory that the card may use
 * @address: where it begins, as the other machine has to say it
 * @length: bytes
 * @local: key for one's own writes
 * @remote: key for writes of others
 * @private_: the library's
 */
struct rashpa_net_memory {
	uint64_t address;
	uint64_t length;
	uint32_t local;
	uint32_t remote;
	void *private_;
};

/**
 * rashpa_net_register() - let the card use memory
 * @net: the port
 * @base: its address here; NULL: by @dmabuf
 * @dmabuf: where @base is NULL, as of a GPU or an FPGA, from its offset 0 on
 * @length: bytes
 * @remote: others may write to it
 * @memory: becomes what has to be said of it
 *
 * Done once: it pins pages, and takes long. Buffers of contig memory, and of the processes, can be
 * registered by address; CMA buffers and windows by dma-buf only, which not all cards can.
 *
 * Return: 0, -EFAULT (memory without pages), -EOPNOTSUPP (the card takes no dma-buf), -ENOMEM.
 */
int rashpa_net_register(struct rashpa_net *net, void *base, int dmabuf, uint64_t length,
			bool remote, struct rashpa_net_memory *memory);

/** enum rashpa_net_by - how memory of a device was registered */
enum rashpa_net_by {
	RASHPA_NET_BY_DMABUF = 0,
	RASHPA_NET_BY_PEER_MODULE = 1,	/* nvidia-peermem */
};

/**
 * struct rashpa_net_device - memory of a GPU, one piece
 * @address: as the GPU has it, rashpa_gpu_address(); 0: not for nvidia-peermem
 * @length: bytes
 * @window: of the BAR that others reach its memory through, bytes; 0: not known
 * @dmabuf: rashpa_gpu_dmabuf()
 * @numa_node: of the GPU, -1: not known
 * @by: becomes enum rashpa_net_by
 * @far: becomes 1 if card and GPU are at different processors, which costs throughput
 */
struct rashpa_net_device {
	uint64_t address;
	uint64_t length;
	uint64_t window;
	int32_t dmabuf;
	int32_t numa_node;
	uint32_t by;
	uint32_t far;
};

/**
 * rashpa_net_register_device() - let the card use memory of a GPU
 * @net: the port
 * @device: its memory
 * @remote: others may write to it
 * @memory: becomes what has to be said of it; rashpa_net_unregister() it, before the GPU's memory
 *	goes
 *
 * By its dma-buf; where the card's driver takes none, by its address, for which the kernel's module
 * nvidia-peermem has to be there.
 *
 * Return: 0, -E2BIG (more than the BAR has), -EOPNOTSUPP (neither), -ENOMEM.
 */
int rashpa_net_register_device(struct rashpa_net *net, struct rashpa_net_device *device,
			       bool remote, struct rashpa_net_memory *memory);
void rashpa_net_unregister(struct rashpa_net_memory *memory);

/* --- completions --- */

/** enum rashpa_net_wait - how to wait for completions */
enum rashpa_net_wait {
	RASHPA_NET_EVENT = 0,		/* sleep */
	RASHPA_NET_POLL = 1,		/* look all the time: one processor */
	RASHPA_NET_ADAPTIVE = 2,	/* look for a while, then sleep */
};

/**
 * struct rashpa_net_done - a completion
 * @pair: whose
 * @user: of the pair
 * @id: of the write or message; receives that pairs share have none
 * @immediate: of a message that was received
 * @length: bytes of that
 * @error: 0, or that of a write that failed: the pair does nothing any more
 * @received: 1: a message of the other side, 0: a write of ours
 */
struct rashpa_net_done {
	struct rashpa_net_pair *pair;
	void *user;
	uint64_t id;
	uint32_t immediate;
	uint32_t length;
	int32_t error;
	uint32_t received;
};

/**
 * struct rashpa_net_counts - what a queue has done
 * @polls: looks
 * @empty: of these, those that found nothing
 * @events: sleeps that ended by an event
 * @completions: that were found
 * @low: fewest receives that were left, as messages that were found in a row tell
 */
struct rashpa_net_counts {
	uint64_t polls, empty, events, completions, low;
};

/**
 * rashpa_net_queue_open() - completions, for one thread
 * @net: the port
 * @writes: most writes of its pairs that are under way
 * @receives: receives that its pairs share; 0: they only write
 * @queue: becomes the handle
 *
 * Return: 0, -EINVAL (more than the card has), -ENOMEM or another one.
 */
int rashpa_net_queue_open(struct rashpa_net *net, uint32_t writes, uint32_t receives,
			  struct rashpa_net_queue **queue);
/** rashpa_net_queue_close() - after its pairs */
void rashpa_net_queue_close(struct rashpa_net_queue *queue);

/**
 * rashpa_net_next() - completions, as they come
 * @queue: the queue, whose only thread this is
 * @done: array
 * @n: elements of it
 * @how: enum rashpa_net_wait
 * @solicited: sleep until a message that asks for an event, or an error
 * @timeout_ms: how long; -1: for ever
 *
 * Receives that were used are posted again by the next call: until then the caller decides what may
 * be written over.
 *
 * Return: how many; 0 when the time is over, or by rashpa_net_wake(), or by a signal.
 */
int rashpa_net_next(struct rashpa_net_queue *queue, struct rashpa_net_done *done, uint32_t n,
		    uint32_t how, bool solicited, int timeout_ms);
/** rashpa_net_wake() - have the thread that sleeps in rashpa_net_next() return. From any thread */
void rashpa_net_wake(struct rashpa_net_queue *queue);
static inline void rashpa_net_queue_counts(const struct rashpa_net_queue *queue,
					   struct rashpa_net_counts *counts)
{
	rashpa_net_queue_counts_sized(queue, counts, sizeof(*counts));
}

/* --- queue pairs --- */

/**
 * struct rashpa_net_address - what the other side has to know of a pair
 * @gid: address of the port
 * @qpn: number of the queue pair, 24 bits
 * @psn: number of the first packet, 24 bits
 */
struct rashpa_net_address {
	uint8_t gid[16];
	uint32_t qpn;
	uint32_t psn;
};

/**
 * rashpa_net_pair_open() - a queue pair
 * @queue: for its completions, and its receives
 * @writes: most writes under way
 * @user: given back with each completion
 * @pair: becomes the handle
 *
 * No thread may be in rashpa_net_next() of this queue meanwhile.
 *
 * Return: 0, -ENOMEM (the card has no more) or another one.
 */
int rashpa_net_pair_open(struct rashpa_net_queue *queue, uint32_t writes, void *user,
			 struct rashpa_net_pair **pair);
void rashpa_net_pair_close(struct rashpa_net_pair *pair);
/** rashpa_net_pair_address() - for the other side */
void rashpa_net_pair_address(const struct rashpa_net_pair *pair, struct rashpa_net_address *mine);
/** rashpa_net_pair_connect() - with that of the other side: messages can come and go */
int rashpa_net_pair_connect(struct rashpa_net_pair *pair, const struct rashpa_net_address *theirs);

/**
 * rashpa_net_pair_again() - receive again
 * @pair: connected; it only receives
 *
 * For a pair that nothing comes from although the other side sends: some cards wait for ever for
 * the rest of a message of which a packet was lost.
 *
 * Return: 0, -ENOTCONN or another one.
 */
int rashpa_net_pair_again(struct rashpa_net_pair *pair);

/** RASHPA_NET_* - flags of a write */
#define RASHPA_NET_IMMEDIATE	(1u << 0)	/* the other side is told: a completion there */
#define RASHPA_NET_SOLICITED	(1u << 1)	/* and woken, if it waits for those only */
#define RASHPA_NET_SIGNALED	(1u << 2)	/* a completion here */

/** struct rashpa_net_write - bytes from here to there */
struct rashpa_net_write {
	uint64_t from, to;	/* addresses */
	uint32_t length;
	uint32_t local;		/* key of the memory here */
	uint32_t remote;	/* key of that there */
	uint32_t immediate;
	uint32_t flags;		/* RASHPA_NET_* */
	uint32_t __reserved;
	uint64_t id;
};

/**
 * rashpa_net_write() - post writes, in one go
 * @pair: connected
 * @write: array
 * @n: elements of it; the caller has counted that there is room for them
 *
 * Return: 0, -ENOMEM (there was no room) or another one: none of them was posted.
 */
int rashpa_net_write(struct rashpa_net_pair *pair, const struct rashpa_net_write *write,
		     uint32_t n);

/* --- messages, between pairs that have receives of their own --- */

/**
 * struct rashpa_net_message - a message to send, or room for one
 * @address: of the bytes here
 * @length: bytes
 * @local: key of their memory
 * @immediate: of a message to send
 * @__reserved: not used
 * @id: given back with the completion, below 2^62
 */
struct rashpa_net_message {
	uint64_t address;
	uint32_t length;
	uint32_t local;
	uint32_t immediate;
	uint32_t __reserved;
	uint64_t id;
};

/**
 * rashpa_net_pair_messages() - a queue pair for messages, also for writes without immediate
 * @queue: for its completions, opened without receives, and with as many writes as all of its pairs
 *	have sends, writes and receives
 * @sends: most messages and writes under way
 * @receives: most receives that wait
 * @user: given back with each completion
 * @pair: becomes the handle; connected as others
 *
 * Of a reliable connection, a sender waits for the receiver's room. No thread may be
 * in rashpa_net_next() of this queue meanwhile.
 *
 * Return: 0, -EINVAL (the queue shares receives), -ENOMEM (the card has no more) or another one.
 */
int rashpa_net_pair_messages(struct rashpa_net_queue *queue, uint32_t sends, uint32_t receives,
			     void *user, struct rashpa_net_pair **pair);
/** rashpa_net_send() - a message, with a completion here. Return: 0, -ENOMEM or another one */
int rashpa_net_send(struct rashpa_net_pair *pair, const struct rashpa_net_message *message);
/** rashpa_net_receive() - room for a message, also before it is connected. Return: likewise */
int rashpa_net_receive(struct rashpa_net_pair *pair, const struct rashpa_net_message *message);

#ifdef __cplusplus
}
#endif

#endif /* RASHPA_NETWORK_H */
