// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which packets are ours: plain ones of UDP, whole, to an address and port that are in the table.
 * The kernel goes on with all others, and its socket gets what has options or comes in pieces.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "romulu/xdp.h"

#define FRAGMENT	0x3fff		/* offset, and whether there are more */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XDP_ENDS);
	__type(key, struct xdp_end);
	__type(value, __u8);
} ends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} queues SEC(".maps");

SEC("xdp.frags")
int divert(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ethhdr *eth = data;
	const struct iphdr *v4 = data + sizeof(*eth);
	const struct ipv6hdr *v6 = data + sizeof(*eth);
	const struct udphdr *udp;
	struct xdp_end to = {};

	if ((void *)(v4 + 1) > end)
		return XDP_PASS;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		if (v4->version != 4 || v4->ihl != 5 || v4->protocol != IPPROTO_UDP ||
		    v4->frag_off & bpf_htons(FRAGMENT))
			return XDP_PASS;
		to.address[2] = bpf_htonl(0xffff);
		to.address[3] = v4->daddr;
		udp = (void *)(v4 + 1);
	} else if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		if ((void *)(v6 + 1) > end || v6->version != 6 || v6->nexthdr != IPPROTO_UDP)
			return XDP_PASS;
		__builtin_memcpy(to.address, &v6->daddr, sizeof(to.address));
		udp = (void *)(v6 + 1);
	} else {
		return XDP_PASS;
	}
	if ((void *)(udp + 1) > end)
		return XDP_PASS;
	to.port = udp->dest;
	if (!bpf_map_lookup_elem(&ends, &to))
		return XDP_PASS;
	return bpf_redirect_map(&queues, ctx->rx_queue_index, XDP_PASS);
}

char LICENSE[] SEC("license") = "LGPL-2.1-or-later";
