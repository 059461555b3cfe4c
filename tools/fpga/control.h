/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A second socket, for tests that need hardware which fails. The protocol thread only. */
#ifndef CONTROL_H
#define CONTROL_H

#include "fpga/vfu.h"

int listen_at(const char *path);	/* a socket, or -errno */
int control_open(const char *path);
void control_close(const char *path);
int control_fd(void);			/* to poll for input, or -1 */
bool control_pending(void);		/* serve it again, also without input */
void control_serve(struct device *device, struct vfu *vfu);

#endif /* CONTROL_H */
