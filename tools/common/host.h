/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Addresses of TCP as people write them. */
#ifndef HOST_H
#define HOST_H

#include <netdb.h>
#include <stdbool.h>

/*
 * HOST:PORT or [ADDRESS]:PORT; PORT alone, for an address to listen at: any of this machine.
 * NULL: freeaddrinfo() the list. Or what is wrong with it, in words that follow the text.
 */
const char *host_resolve(const char *text, bool own, struct addrinfo **list);

#endif /* HOST_H */
