// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/arp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/if_ether.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/stop.h"

#define TRIES		3
#define TRY_NS		1000000000ull

static void make_request(struct ether_arp *arp, const uint8_t *mac, const uint8_t *from,
			 const uint8_t *to)
{
	memset(arp, 0, sizeof(*arp));
	arp->arp_hrd = htons(ARPHRD_ETHER);
	arp->arp_pro = htons(ETHERTYPE_IP);
	arp->arp_hln = 6;
	arp->arp_pln = 4;
	arp->arp_op = htons(ARPOP_REQUEST);
	memcpy(arp->arp_sha, mac, 6);
	memcpy(arp->arp_spa, from, 4);
	memcpy(arp->arp_tpa, to, 4);
}

/* Was it answered before the time is over? */
static bool answered(int fd, const uint8_t *to, uint8_t *answer)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	uint64_t end = now_ns() + TRY_NS;
	struct ether_arp arp;
	ssize_t n;

	while (stop_poll(&readable, 1, end) > 0) {
		n = recv(fd, &arp, sizeof(arp), MSG_DONTWAIT);
		if (n == sizeof(arp) && arp.arp_op == htons(ARPOP_REPLY) &&
		    !memcmp(arp.arp_spa, to, 4)) {
			memcpy(answer, arp.arp_sha, 6);
			return true;
		}
		if (now_ns() >= end)
			break;
	}
	return false;
}

int arp_ask(const char *interface, int index, const uint8_t mac[6], const uint8_t from[4],
	    const uint8_t to[4], uint8_t answer[6], char why[WHY_SIZE])
{
	struct sockaddr_ll where = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ARP), .sll_ifindex = index,
		.sll_halen = 6,
	};
	char text[INET_ADDRSTRLEN];
	struct ether_arp request;
	int fd, error = 0;

	fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ARP));
	if (fd < 0 || bind(fd, (struct sockaddr *)&where, sizeof(where))) {
		error = errno;
		if (fd >= 0)
			close(fd);
		return because(why, -1, "%s: ARP: %s", interface, strerror(error));
	}
	make_request(&request, mac, from, to);
	memset(where.sll_addr, 0xff, 6);
	for (unsigned int i = 0; i < TRIES; i++) {
		if (sendto(fd, &request, sizeof(request), 0, (struct sockaddr *)&where,
			   sizeof(where)) < 0) {
			error = errno;
			break;
		}
		if (answered(fd, to, answer)) {
			close(fd);
			return 0;
		}
	}
	close(fd);
	inet_ntop(AF_INET, to, text, sizeof(text));
	if (error)
		return because(why, -1, "%s: ARP: %s", interface, strerror(error));
	return because(why, -1, "%s: no ARP reply from %s: use --destination-mac (of the router, if it is in another network)",
		       interface, text);
}
