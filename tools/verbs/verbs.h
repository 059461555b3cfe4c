/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * RDMA WRITE over RoCE v2 into the memory of another machine. It handles queue
 * pairs, memory and completions, but not detectors: see Documentation/network.rst.
 *
 *	sending machine				receiving machine
 *	net, memory, queue			net, memory, queue with receives
 *	pair  -- rashpa_net_address, by any channel -->  pair
 *	rashpa_net_write(): chains of WRITE	rashpa_net_next(): pair and immediate of a write
 *
 * All functions return 0 or more, or a negative errno; rashpa_net_reason() returns the sentence for
 * the calling thread.
 */
#ifndef VERBS_H
#define VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 * completions do not. The functions without _sized call these with the sizes in the header that the
 * program was built with.
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
	RASHPA_NET_UC = 0,	/* unreliable connection: no retransmission */
	RASHPA_NET_RC = 1,	/* reliable connection */
};

/**
 * struct rashpa_net_options - options of rashpa_net_open()
 * @device: name of an RDMA device, as rxe0; NULL: the first one with a RoCE v2 address
 * @port: port number, from 1; 0: the first active one
 * @gid: address index; -1: the first RoCE v2 address, preferably IPv4
 * @mtu: packet payload: 256, 512, 1024, 2048 or 4096 bytes; 0: MTU of the port
 * @service: enum rashpa_net_service
 * @traffic_class: IP traffic class; its upper six bits are the DSCP
 * @hops: hop limit; 0: 64
 * @timeout: RC: limit of an acknowledgement, 4.096 us * 2^timeout, 0 to 31; 0: 14
 * @retries: RC: retries without an answer, 0 to 7; for soft-RoCE, 7 means no limit
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
 * struct rashpa_net_info - properties of a port
 * @device: name of the RDMA device
 * @address: IP address as text
 * @mtu: packet payload, bytes
 * @numa_node: NUMA node of the card; -1: not known
 * @message: maximum message size, bytes
 * @pairs: maximum number of queue pairs
 * @receives: maximum number of receives of a queue
 * @gid: address index
 * @port: port number, from 1
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

/** rashpa_net_open() - open a port. Return: 0, -ENODEV (missing or down), -EINVAL or another one */
static inline int rashpa_net_open(const struct rashpa_net_options *options, struct rashpa_net **net)
{
	return rashpa_net_open_sized(options, net, sizeof(*options));
}
/** rashpa_net_close() - close a port, after its pairs, queues and memory. NULL does nothing */
void rashpa_net_close(struct rashpa_net *net);
/** rashpa_net_about() - properties, valid until the port is closed; 256 zeros follow, for growth */
const struct rashpa_net_info *rashpa_net_about(const struct rashpa_net *net);

/* --- memory --- */

/**
 * struct rashpa_net_memory - memory that the card may use
 * @address: start address for writes of the other machine
 * @length: bytes
 * @local: key for writes of this machine
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
 * @base: address in this process
 * @length: bytes
 * @remote: true: others may write to it
 * @memory: filled in; rashpa_net_unregister() it
 *
 * Call it once: it pins pages, which takes long.
 *
 * Return: 0, -EFAULT (memory without pages: rashpa_net_register_device()), -ENOMEM.
 */
int rashpa_net_register(struct rashpa_net *net, void *base, uint64_t length, bool remote,
			struct rashpa_net_memory *memory);

/** enum rashpa_net_by - how memory was registered */
enum rashpa_net_by {
	RASHPA_NET_BY_DMABUF = 0,
	RASHPA_NET_BY_ADDRESS = 1,	/* memory of a GPU: nvidia-peermem */
};

/**
 * struct rashpa_net_device - memory that may have no pages: of a GPU, of a board, or a buffer
 * @address: its address; other memory than the host's: in CUDA and this process, for nvidia-peermem;
 *	0: none
 * @offset: first byte in its dma-buf, a multiple of the page size
 * @length: bytes
 * @window: size of the BAR through which others access GPU memory, bytes; 0: not known
 * @dmabuf: its dma-buf; -1: none
 * @numa_node: its NUMA node; -1: not known
 * @host: 1: memory of the host, which most often has pages
 * @by: becomes enum rashpa_net_by
 * @far: becomes 1 if card and memory are on different NUMA nodes, which costs throughput
 * @__reserved: not used
 */
struct rashpa_net_device {
	uint64_t address;
	uint64_t offset;
	uint64_t length;
	uint64_t window;
	int32_t dmabuf;
	int32_t numa_node;
	uint32_t host;
	uint32_t by;
	uint32_t far;
	uint32_t __reserved;
};

/** rashpa_net_device_at() - fill in window and node of a GPU with this PCI_BDF(), from sysfs */
void rashpa_net_device_at(struct rashpa_net_device *device, uint64_t pci);

/**
 * rashpa_net_register_device() - let the card use memory that may have no pages
 * @net: the port
 * @device: the memory
 * @remote: true: others may write to it
 * @memory: filled in, with the address of @device whichever way is taken; rashpa_net_unregister() it
 *	before the memory is freed
 *
 * The host's memory is registered by its address; if it has no pages, by its dma-buf. Other memory
 * is registered by its dma-buf; if the driver of the card takes none, by its address, which needs the
 * kernel module nvidia-peermem.
 *
 * Return: 0, -E2BIG (longer than the BAR), -EOPNOTSUPP (the sentence names the missing driver,
 * module or card), -ENOMEM.
 */
int rashpa_net_register_device(struct rashpa_net *net, struct rashpa_net_device *device,
			       bool remote, struct rashpa_net_memory *memory);
void rashpa_net_unregister(struct rashpa_net_memory *memory);

/* --- completions --- */

/** enum rashpa_net_wait - how to wait for completions */
enum rashpa_net_wait {
	RASHPA_NET_EVENT = 0,		/* sleep */
	RASHPA_NET_POLL = 1,		/* poll all the time: keeps a processor busy */
	RASHPA_NET_ADAPTIVE = 2,	/* poll for 50 us, then sleep */
};

/**
 * struct rashpa_net_done - a completion
 * @pair: pair of the write or message
 * @user: user pointer of the pair
 * @id: id of the write or message; 0 for receives that pairs share
 * @immediate: immediate of a received message
 * @length: bytes of a received message
 * @error: 0, or errno of a failed request: the pair cannot be used any more
 * @received: 1: message of the other side; 0: request of this side
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
 * struct rashpa_net_counts - counters of a queue
 * @polls: number of polls
 * @empty: polls without a completion
 * @events: sleeps that an event ended
 * @completions: number of completions
 * @low: lowest number of free receives, estimated from messages that were found in a row
 */
struct rashpa_net_counts {
	uint64_t polls, empty, events, completions, low;
};

/**
 * rashpa_net_queue_open() - open a completion queue, for one thread
 * @net: the port
 * @writes: maximum number of writes of its pairs under way
 * @receives: receives that its pairs share; 0: they only write
 * @queue: becomes the handle
 *
 * Return: 0, -EINVAL (more than the card supports), -ENOMEM or another errno.
 */
int rashpa_net_queue_open(struct rashpa_net *net, uint32_t writes, uint32_t receives,
			  struct rashpa_net_queue **queue);
/** rashpa_net_queue_close() - close a queue, after its pairs */
void rashpa_net_queue_close(struct rashpa_net_queue *queue);

/**
 * rashpa_net_next() - take completions, in their order
 * @queue: the queue; only one thread may use it
 * @done: array to fill
 * @n: length of the array
 * @how: enum rashpa_net_wait
 * @solicited: true: only a message that asks for an event, or an error, ends the sleep
 * @timeout_ms: time limit in milliseconds; -1: none
 *
 * The next call posts used receives again. Until then, the sender cannot use them for new data.
 *
 * Return: number of completions; 0 after the time limit, rashpa_net_wake() or a signal; or a
 * negative errno.
 */
int rashpa_net_next(struct rashpa_net_queue *queue, struct rashpa_net_done *done, uint32_t n,
		    uint32_t how, bool solicited, int timeout_ms);
/** rashpa_net_wake() - make rashpa_net_next() return in its thread. From any thread */
void rashpa_net_wake(struct rashpa_net_queue *queue);
static inline void rashpa_net_queue_counts(const struct rashpa_net_queue *queue,
					   struct rashpa_net_counts *counts)
{
	rashpa_net_queue_counts_sized(queue, counts, sizeof(*counts));
}

/* --- queue pairs --- */

/**
 * struct rashpa_net_address - address of a pair, for the other side
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
 * rashpa_net_pair_open() - open a queue pair
 * @queue: queue for its completions, with the shared receives
 * @writes: maximum number of writes under way
 * @user: returned with each completion
 * @pair: becomes the handle
 *
 * No thread may be in rashpa_net_next() of this queue meanwhile.
 *
 * Return: 0, -ENOMEM (the card has no more) or another errno.
 */
int rashpa_net_pair_open(struct rashpa_net_queue *queue, uint32_t writes, void *user,
			 struct rashpa_net_pair **pair);
void rashpa_net_pair_close(struct rashpa_net_pair *pair);
/** rashpa_net_pair_address() - get the address for the other side */
void rashpa_net_pair_address(const struct rashpa_net_pair *pair, struct rashpa_net_address *mine);
/** rashpa_net_pair_connect() - connect to the address of the other side; then data can flow */
int rashpa_net_pair_connect(struct rashpa_net_pair *pair, const struct rashpa_net_address *theirs);

/**
 * rashpa_net_pair_again() - reset and reconnect a pair that only receives
 * @pair: a connected pair
 *
 * For a pair that receives nothing although the other side sends: after the loss of a packet, some
 * cards wait for ever for the rest of the message.
 *
 * Return: 0, -ENOTCONN or another errno.
 */
int rashpa_net_pair_again(struct rashpa_net_pair *pair);

/** RASHPA_NET_* - flags of a write */
#define RASHPA_NET_IMMEDIATE	(1u << 0)	/* makes a completion on the other side */
#define RASHPA_NET_SOLICITED	(1u << 1)	/* wakes a thread that waits for such writes only */
#define RASHPA_NET_SIGNALED	(1u << 2)	/* makes a completion on this side */

/** struct rashpa_net_write - write of local memory to remote memory */
struct rashpa_net_write {
	uint64_t from, to;	/* addresses */
	uint32_t length;
	uint32_t local;		/* key of the local memory */
	uint32_t remote;	/* key of the remote memory */
	uint32_t immediate;
	uint32_t flags;		/* RASHPA_NET_* */
	uint32_t __reserved;
	uint64_t id;
};

/**
 * rashpa_net_write() - post writes
 * @pair: a connected pair
 * @write: array of writes
 * @n: length of the array; the caller keeps count of free room
 *
 * Return: 0, -ENOMEM (no room) or another errno; then close the pair, as some may be under way
 */
int rashpa_net_write(struct rashpa_net_pair *pair, const struct rashpa_net_write *write,
		     uint32_t n);

/* --- messages, between pairs with private receives --- */

/**
 * struct rashpa_net_message - a message to send, or room for one
 * @address: local address
 * @length: bytes
 * @local: key of the memory
 * @immediate: sends: immediate of the message
 * @__reserved: not used
 * @id: returned with the completion, below 2^62
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
 * rashpa_net_pair_messages() - open a queue pair for messages, and for writes without immediate
 * @queue: queue for its completions, opened without receives; its number of writes must cover the
 *	sends, writes and receives of all its pairs
 * @sends: maximum number of messages and writes under way
 * @receives: maximum number of posted receives
 * @user: returned with each completion
 * @pair: becomes the handle; connect it by rashpa_net_pair_connect()
 *
 * With a reliable connection, a sender waits until the receiver has room. No thread may be in
 * rashpa_net_next() of this queue meanwhile.
 *
 * Return: 0, -EINVAL (the queue shares receives), -ENOMEM (the card has no more) or another errno.
 */
int rashpa_net_pair_messages(struct rashpa_net_queue *queue, uint32_t sends, uint32_t receives,
			     void *user, struct rashpa_net_pair **pair);
/** rashpa_net_send() - post a message; makes a completion. Return: 0, -ENOMEM or another errno */
int rashpa_net_send(struct rashpa_net_pair *pair, const struct rashpa_net_message *message);
/** rashpa_net_receive() - post room for a message, also before connecting. Return: see above */
int rashpa_net_receive(struct rashpa_net_pair *pair, const struct rashpa_net_message *message);

#endif /* VERBS_H */
