/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Addresses of TCP as people write them, and connections. */
#ifndef HOST_H
#define HOST_H

#include <netdb.h>
#include <stdbool.h>

/*
 * HOST:PORT or [ADDRESS]:PORT; PORT alone, for an address to listen at: any of this machine.
 * NULL: freeaddrinfo() the list. Or what is wrong with it, in words that follow the text.
 */
const char *host_resolve(const char *text, bool own, struct addrinfo **list);

/* A connection sends at once, and fails if its peer takes no data, or its machine is gone, for 20 s. */
void host_tune(int fd);

#endif /* HOST_H */
