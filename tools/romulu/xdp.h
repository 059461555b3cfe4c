/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Datagrams by AF_XDP: a small program at the network interface hands those that are ours to memory
 * of this process, and leaves all else to the kernel.
 */
#ifndef ROMULU_XDP_H
#define ROMULU_XDP_H

#include <linux/types.h>
#ifndef __bpf__
#include <json-c/json.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* None of the functions is there where romulu was built without: see ROMULU_NO_XDP. */
#define MAYBE __attribute__((weak))
#endif

/* Where a datagram goes to, as it stands in the packet; of IPv4 as ::ffff:ADDRESS. */
struct xdp_end {
	__u32 address[4];
	__u16 port, zero;
};

#define XDP_ENDS	4096u		/* most, of a program */

#ifndef __bpf__
struct xdp;

/* bytes 0: it was not whole, if it came this way. Addresses of IPv4 are as those of xdp_end. */
struct datagram {
	struct in6_addr from;
	in_port_t port;			/* destination port, big-endian */
	const char *data;
	size_t bytes;
};

typedef void xdp_taker(void *to, const struct datagram *d);

/*
 * Of the interface that has the address of listen; its queues are dealt to threads. All that return
 * int: 0 or an exit code, after a message.
 */
MAYBE int xdp_open(struct xdp **xdp, const char *listen, uint32_t threads);
/* From now on, datagrams to there come this way; those that the program leaves alone do not. */
MAYBE int xdp_divert(struct xdp *x, const struct in6_addr *to, in_port_t port);
/* With data.ptr NULL, when there are some for the thread. */
MAYBE int xdp_watch(const struct xdp *x, uint32_t thread, int epoll);
/* false: there were none. */
MAYBE bool xdp_look(struct xdp *x, uint32_t thread, xdp_taker *taker, void *to);
/* Packets that found no room are added. */
MAYBE void xdp_report(const struct xdp *x, struct json_object *o, uint64_t *dropped);
/* Also of what xdp_open() left when it failed. */
MAYBE void xdp_close(struct xdp *x);
#endif

#endif /* ROMULU_XDP_H */
