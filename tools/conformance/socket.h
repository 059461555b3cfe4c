/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The board behind a socket, for tests that know that it is one. */
#ifndef CONFORMANCE_SOCKET_H
#define CONFORMANCE_SOCKET_H

#include "conformance/client.h"
#include "conformance/target.h"

extern struct client *c;
extern const struct target_ops socket_ops;

#endif /* CONFORMANCE_SOCKET_H */
