/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames of a file of libpcap, or of an interface. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "frames/check.h"
#include "common/say.h"

struct capture {
	pcap_t *pcap;
	enum frame_link link;
	bool live;
};

/* These return 0, or -1 with the reason. */

/* Takes the file over, also where it fails. name is that of a message. */
int capture_open_file(struct capture *c, FILE *file, const char *name, char why[WHY_SIZE]);
int capture_open_interface(struct capture *c, const char *name, char why[WHY_SIZE]);

/*
 * Check what comes until the file ends, *stop, n frames (0: any number), or the time of
 * now_ns().
 */
int capture_check(struct capture *c, struct check *check, const volatile bool *stop, uint64_t n,
		  uint64_t until, char why[WHY_SIZE]);

/* Frames that came by and that we have not seen. */
uint64_t capture_lost(struct capture *c);
void capture_close(struct capture *c);

#endif /* CAPTURE_H */
