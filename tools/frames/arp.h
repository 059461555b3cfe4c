/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Resolves an IPv4 address by ARP, as an FPGA would, without the kernel's table. */
#ifndef ARP_H
#define ARP_H

#include <stdint.h>

#include "common/say.h"

/* 0, or -1 with the reason. */
int arp_ask(const char *interface, int index, const uint8_t mac[6], const uint8_t from[4],
	    const uint8_t to[4], uint8_t answer[6], char why[WHY_SIZE]);

#endif /* ARP_H */
