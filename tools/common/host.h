/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Addresses of TCP as people write them, and connections. */
#ifndef HOST_H
#define HOST_H

#include <netdb.h>

#define HOST_SIZE	256

/* PORT alone stands for an own address: any of this machine, or its loopback address. */
enum host_use { HOST_OTHER, HOST_OWN, HOST_LOOPBACK };

/*
 * HOST:PORT, [ADDRESS]:PORT, or PORT. NULL: freeaddrinfo() the list; host[HOST_SIZE] is HOST. Or what is wrong with
 * the text, in words that follow it, and *list is NULL.
 */
const char *host_resolve(const char *text, enum host_use use, char *host, struct addrinfo **list);

/* A connection sends at once, and fails if its peer takes no data, or its machine is gone, for 20 s. */
void host_tune(int fd);

#endif /* HOST_H */
