// SPDX-License-Identifier: GPL-2.0-only
/* One function, now with this driver, now with vfio-pci. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fpga.h"
#include "latency.h"

#define DEVICES	"/sys/bus/pci/devices/"
#define DRIVERS	"/sys/bus/pci/drivers/"

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		error = -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

static int to_vfio(const char *bdf, char *why)
{
	char path[96];
	int error;

	snprintf(path, sizeof(path), DEVICES "%s/driver/unbind", bdf);
	error = put(path, bdf);
	if (error && error != -ENOENT)
		return because(why, -1, "%s: cannot unbind: %s", bdf, strerror(-error));
	snprintf(path, sizeof(path), DEVICES "%s/driver_override", bdf);
	error = put(path, "vfio-pci");
	if (!error)
		error = put(DRIVERS "vfio-pci/bind", bdf);
	if (error)
		return because(why, -1, "%s: vfio-pci does not take it: %s", bdf, strerror(-error));
	return 0;
}

/* As an administrator would: with the profile that belongs to the function. */
static int to_rashpa(const char *bdf, char *node, size_t size, char *why)
{
	char command[64];
	FILE *answer;

	snprintf(command, sizeof(command), "rashpactl bind --force %s", bdf);
	answer = popen(command, "re");
	*node = '\0';
	if (answer && !fgets(node, size, answer))
		*node = '\0';
	if (!answer || pclose(answer) || !*node)
		return because(why, -1, "\"%s\" failed", command);
	node[strcspn(node, "\n")] = '\0';
	return 0;
}

int board_to_vfio(struct latency *l, char *why)
{
	if (access(DRIVERS "vfio-pci", F_OK))
		return because(why, -1, "the driver is not loaded: modprobe vfio-pci");
	board_close(&l->ours);
	if (to_vfio(l->bdf, why))
		return -1;
	return board_open_vfio(&l->vfio, l->bdf, LATENCY_BYTES, why);
}

int board_to_rashpa(struct latency *l, char *why)
{
	if (l->vfio.open)
		board_close(&l->vfio);
	if (to_rashpa(l->bdf, l->node, sizeof(l->node), why))
		return -1;
	return board_open_ours(&l->ours, l->node, LATENCY_BYTES, why);
}
