/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What parts of the server ask of the program. For a device see device.h. */
#ifndef SERVER_H
#define SERVER_H

#include "fpga/device.h"

int listen_at(const char *path);	/* a socket, or -errno */

#endif /* SERVER_H */
