/* SPDX-License-Identifier: GPL-2.0-only */
/* The board behind a socket, for tests that know that it is one. */
#ifndef CONFORMANCE_SOCKET_H
#define CONFORMANCE_SOCKET_H

#include "client.h"
#include "target.h"

extern struct client *c;
extern const struct target_ops socket_ops;

#endif /* CONFORMANCE_SOCKET_H */
