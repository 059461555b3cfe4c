/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where frames go: an interface, at a pace, or a file of libpcap. */
#ifndef LINE_H
#define LINE_H

#include <net/if.h>
#include <pcap/pcap.h>
#include <stdint.h>

#include "say.h"

/* Of each frame on a cable: preamble, check sequence, and the gap behind it. */
#define CABLE_BYTES	24

struct line {
	const char *interface;		/* NULL: a file */
	int fd, index;
	uint8_t mac[6];			/* of the interface */
	pcap_t *pcap;
	pcap_dumper_t *file;
	const char *name;

	double frames_per_second, bits_per_second;	/* 0: no pace */
	uint64_t next, begun, last;	/* ns; of a file from 0 on */
	uint64_t late;			/* frames that could not be sent in time */
	uint64_t frames, bytes;		/* sent so far */
};

/* These return 0, or -1 with the reason. */
int line_open_interface(struct line *l, const char *name, char why[WHY_SIZE]);
int line_open_file(struct line *l, const char *name, char why[WHY_SIZE]);
/* The interface's own address: 0, or -1 if it has none. */
int line_address(const struct line *l, uint8_t address[4]);
int line_send(struct line *l, const uint8_t *data, size_t size, char why[WHY_SIZE]);
int line_close(struct line *l, char why[WHY_SIZE]);

#endif /* LINE_H */
