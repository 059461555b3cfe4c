// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/capture.h"

#include <poll.h>
#include <string.h>

#include "common/stop.h"

#define BUFFER		(64 << 20)
/* Whole frames, also jumbo ones: the ICRC is at the end. */
#define SNAP		(16 << 10)
#define BATCH_MS	100

static int find_link(struct capture *c, const char *name, char *why)
{
	int type = pcap_datalink(c->pcap);
	const char *text;

	switch (type) {
	case DLT_EN10MB:
		c->link = LINK_ETHERNET;
		return 0;
	case DLT_RAW:
	case DLT_IPV4:
	case DLT_IPV6:
		c->link = LINK_IP;
		return 0;
	case DLT_LINUX_SLL:
		c->link = LINK_COOKED;
		return 0;
	case DLT_LINUX_SLL2:
		c->link = LINK_COOKED_2;
		return 0;
	default:
		text = pcap_datalink_val_to_name(type);
		return because(why, -1, "%s: its frames begin with %s: give a capture of an Ethernet interface",
			       name, text ? text : "an unknown header");
	}
}

int capture_open_file(struct capture *c, FILE *file, const char *name, char why[WHY_SIZE])
{
	char text[PCAP_ERRBUF_SIZE];

	*c = (struct capture) { .pcap = pcap_fopen_offline(file, text) };
	if (!c->pcap) {
		fclose(file);
		return because(why, -1, "%s: %s: give a file of tcpdump, dumpcap or rashpa-inject",
			       name, text);
	}
	return find_link(c, name, why);
}

int capture_open_interface(struct capture *c, const char *name, char why[WHY_SIZE])
{
	struct bpf_program filter;
	char text[PCAP_ERRBUF_SIZE];
	int status;

	*c = (struct capture) { .live = true, .pcap = pcap_create(name, text) };
	if (!c->pcap)
		return because(why, -1, "%s: %s", name, text);
	pcap_set_snaplen(c->pcap, SNAP);
	pcap_set_promisc(c->pcap, 1);
	pcap_set_timeout(c->pcap, BATCH_MS);
	pcap_set_buffer_size(c->pcap, BUFFER);
	status = pcap_activate(c->pcap);
	if (status == PCAP_ERROR_PERM_DENIED)
		return because(why, -1, "%s: not permitted: be root, or have CAP_NET_RAW", name);
	if (status == PCAP_ERROR_NO_SUCH_DEVICE)
		return because(why, -1, "%s: there is no such interface: see ip link", name);
	if (status < 0)
		return because(why, -1, "%s: %s", name,
			       *pcap_geterr(c->pcap) ? pcap_geterr(c->pcap) :
			       pcap_statustostr(status));
	if (pcap_compile(c->pcap, &filter, "udp or (vlan and udp)", 1, PCAP_NETMASK_UNKNOWN))
		return because(why, -1, "%s: %s", name, pcap_geterr(c->pcap));
	status = pcap_setfilter(c->pcap, &filter);
	pcap_freecode(&filter);
	if (status || pcap_setnonblock(c->pcap, 1, text))
		return because(why, -1, "%s: %s", name, status ? pcap_geterr(c->pcap) : text);
	return find_link(c, name, why);
}

int capture_check(struct capture *c, struct check *check, const volatile bool *stop, uint64_t n,
		  uint64_t until, char why[WHY_SIZE])
{
	struct pollfd readable = { .events = POLLIN };
	struct pcap_pkthdr *header;
	const uint8_t *data;
	int status;

	readable.fd = c->live ? pcap_get_selectable_fd(c->pcap) : -1;
	while (!*stop && (!n || check->frames < n)) {
		status = pcap_next_ex(c->pcap, &header, &data);
		if (status == PCAP_ERROR_BREAK)
			return 0;
		if (status < 0)
			return because(why, -1, "after frame %llu: %s",
				       (unsigned long long)check->frames, pcap_geterr(c->pcap));
		if (status && check_frame(check, data, header->caplen, header->len, c->link))
			return because(why, -1, "no memory for the state of another queue pair");
		if (!status) {
			if (now_ns() >= until)
				return 0;
			stop_poll(&readable, 1, until);
		} else if (c->live && now_ns() >= until) {
			return 0;
		}
	}
	return 0;
}

uint64_t capture_lost(struct capture *c)
{
	struct pcap_stat stat;

	if (!c->live || pcap_stats(c->pcap, &stat))
		return 0;
	return (uint64_t)stat.ps_drop + stat.ps_ifdrop;
}

void capture_close(struct capture *c)
{
	if (c->pcap)
		pcap_close(c->pcap);
}
