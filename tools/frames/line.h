/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Destination of frames: an interface, at a pace, or a libpcap file. */
#ifndef LINE_H
#define LINE_H

#include <net/if.h>
#include <pcap/pcap.h>
#include <stdint.h>

#include "common/say.h"

/* Extra bytes of each frame on a cable: preamble, check sequence and gap. */
#define CABLE_BYTES	24

struct line {
	const char *interface;		/* NULL: a file */
	int fd, index;
	uint8_t mac[6];			/* MAC address of the interface */
	pcap_t *pcap;
	pcap_dumper_t *file;
	const char *name;

	double frames_per_second, bits_per_second;	/* 0: no pace */
	uint64_t next, begun, last;	/* ns; from 0 in a file */
	uint64_t late;			/* frames that could not be sent in time */
	uint64_t frames, bytes;		/* sent so far */
};

/* These return 0, or -1 with the reason. */
int line_open_interface(struct line *l, const char *name, char why[WHY_SIZE]);
int line_open_file(struct line *l, const char *name, char why[WHY_SIZE]);
/* Get the interface's IPv4 address: 0, or -1 if it has none. */
int line_address(const struct line *l, uint8_t address[4]);
int line_send(struct line *l, const uint8_t *data, size_t size, char why[WHY_SIZE]);
int line_close(struct line *l, char why[WHY_SIZE]);

#endif /* LINE_H */
