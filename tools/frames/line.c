// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND		1000000000ull
#define SMALLEST	60	/* Ethernet fills up what is shorter */
#define SNAP		65535
#define SPIN_NS		60000	/* a sleep is not exact: the end of a wait is spent awake */
#define FILE_STEP_NS	1000	/* between frames of a file without a pace */

int line_open_interface(struct line *l, const char *name, char why[WHY_SIZE])
{
	struct sockaddr_ll where = { .sll_family = AF_PACKET };
	struct ifreq request = {};

	*l = (struct line) { .interface = name, .name = name, .fd = -1 };
	if (strlen(name) >= sizeof(request.ifr_name) || !if_nametoindex(name))
		return because(why, -1, "%s: there is no such interface: see ip link", name);
	strcpy(request.ifr_name, name);
	l->index = (int)if_nametoindex(name);
	where.sll_ifindex = l->index;
	/* protocol 0: nothing is received */
	l->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return because(why, -1, "%s: %s%s", name, strerror(errno),
			       errno == EPERM ? ": be root, or have CAP_NET_RAW" : "");
	if (bind(l->fd, (struct sockaddr *)&where, sizeof(where)) ||
	    ioctl(l->fd, SIOCGIFHWADDR, &request))
		return because(why, -1, "%s: %s", name, strerror(errno));
	memcpy(l->mac, request.ifr_hwaddr.sa_data, 6);
	prctl(PR_SET_TIMERSLACK, 1);
	return 0;
}

int line_address(const struct line *l, uint8_t address[4])
{
	struct ifreq request = {};
	struct sockaddr_in in;

	strcpy(request.ifr_name, l->interface);
	request.ifr_addr.sa_family = AF_INET;
	if (ioctl(l->fd, SIOCGIFADDR, &request))
		return -1;
	memcpy(&in, &request.ifr_addr, sizeof(in));
	memcpy(address, &in.sin_addr, 4);
	return 0;
}

int line_open_file(struct line *l, const char *name, char why[WHY_SIZE])
{
	*l = (struct line) { .name = name, .fd = -1 };
	l->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, SNAP,
						       PCAP_TSTAMP_PRECISION_NANO);
	if (!l->pcap)
		return because(why, -1, "%s: no memory", name);
	l->file = pcap_dump_open(l->pcap, name);
	if (!l->file)
		return because(why, -1, "%s", pcap_geterr(l->pcap));
	return 0;
}

static uint64_t gap(const struct line *l, size_t size)
{
	if (l->frames_per_second > 0)
		return (uint64_t)(SECOND / l->frames_per_second);
	if (l->bits_per_second > 0)
		return (uint64_t)((double)((size < SMALLEST ? SMALLEST : size) + CABLE_BYTES) * 8 *
				  SECOND / l->bits_per_second);
	return 0;
}

/*
 * Wait for the next frame's turn. A late frame is sent at once, and the following ones keep their
 * distance: there are no bursts.
 */
static void wait_for_turn(struct line *l)
{
	struct timespec until;
	uint64_t now = now_ns();

	if (now > l->next) {
		l->late += l->next && l->frames;
		l->next = now;
		return;
	}
	if (l->next - now > SPIN_NS) {
		until.tv_sec = (time_t)((l->next - SPIN_NS) / SECOND);
		until.tv_nsec = (long)((l->next - SPIN_NS) % SECOND);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	while (now_ns() < l->next)
		;
}

static int send_frame(struct line *l, const uint8_t *data, size_t size, char *why)
{
	struct pollfd writable = { .fd = l->fd, .events = POLLOUT };

	while (send(l->fd, data, size, 0) < 0) {
		if (errno == ENOBUFS || errno == EAGAIN || errno == EINTR) {
			poll(&writable, 1, 100);
			continue;
		}
		if (errno == EMSGSIZE)
			return because(why, -1, "%s: a frame of %zu bytes is larger than its MTU: ip link set %s mtu %zu",
				       l->name, size, l->name, size - 14);
		return because(why, -1, "%s: %s", l->name, strerror(errno));
	}
	return 0;
}

int line_send(struct line *l, const uint8_t *data, size_t size, char why[WHY_SIZE])
{
	struct pcap_pkthdr header = { .caplen = (bpf_u_int32)size, .len = (bpf_u_int32)size };
	uint64_t step = gap(l, size), now = l->next;

	if (l->file) {
		/* its unit is nanoseconds */
		header.ts.tv_sec = (time_t)(now / SECOND);
		header.ts.tv_usec = (suseconds_t)(now % SECOND);
		pcap_dump((u_char *)l->file, &header, data);
		l->next = now + (step ? step : FILE_STEP_NS);
	} else {
		if (step)
			wait_for_turn(l);
		if (send_frame(l, data, size, why))
			return -1;
		now = now_ns();
		l->next = (step ? l->next : now) + step;
	}
	if (!l->frames)
		l->begun = now;
	l->last = now;
	l->frames++;
	l->bytes += size;
	return 0;
}

int line_close(struct line *l, char why[WHY_SIZE])
{
	int error = 0;

	if (l->file) {
		if (pcap_dump_flush(l->file) || ferror(pcap_dump_file(l->file)))
			error = because(why, -1, "cannot write %s: %s", l->name,
					strerror(errno ? errno : EIO));
		pcap_dump_close(l->file);
	}
	if (l->pcap)
		pcap_close(l->pcap);
	if (l->interface && l->fd >= 0)
		close(l->fd);
	return error;
}
