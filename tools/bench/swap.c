// SPDX-License-Identifier: LGPL-2.1-or-later
/* Changes the driver of a function between this one and others. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/latency.h"

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

static int unbind(const char *bdf, char *why)
{
	char path[96];
	int error;

	snprintf(path, sizeof(path), DEVICES "%s/driver/unbind", bdf);
	error = put(path, bdf);
	if (error && error != -ENOENT)
		return because(why, -1, "%s: cannot unbind: %s", bdf, strerror(-error));
	return 0;
}

static int bind(const char *bdf, const char *driver, char *why)
{
	char path[96];
	int error;

	snprintf(path, sizeof(path), DEVICES "%s/driver_override", bdf);
	error = put(path, driver);
	snprintf(path, sizeof(path), DRIVERS "%s/bind", driver);
	if (!error)
		error = put(path, bdf);
	if (error)
		return because(why, -1, "%s: cannot bind it to %s: %s", bdf, driver,
			       strerror(-error));
	return 0;
}

/* Reads the type of the IOMMU domain; empty: no IOMMU. */
static void read_domain(const char *path, char *domain, size_t size)
{
	FILE *file = fopen(path, "re");

	*domain = '\0';
	if (file && fgets(domain, size, file))
		domain[strcspn(domain, "\n")] = '\0';
	if (file)
		fclose(file);
}

/*
 * uio_pci_generic makes no IOMMU mappings, so it needs an identity domain. The kernel allows the
 * change while the function has no driver. Other drivers get the initial domain back.
 */
static int set_domain(struct latency *l, bool identity, char *why)
{
	char path[96], now[sizeof(l->domain)];
	const char *wanted;
	int error;

	snprintf(path, sizeof(path), DEVICES "%s/iommu_group/type", l->bdf);
	read_domain(path, now, sizeof(now));
	if (!*l->domain)
		memcpy(l->domain, now, sizeof(now));
	wanted = identity && *now ? "identity" : l->domain;
	if (!strcmp(now, wanted))
		return 0;
	error = put(path, wanted);
	if (error)
		return because(why, -1, "%s: cannot change the IOMMU domain from %s to %s: %s",
			       l->bdf, now, wanted, strerror(-error));
	return 0;
}

/* Bind as an administrator would, with the profile of the function. */
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

static void close_shared(struct latency *l)
{
	for (unsigned int i = 0; i < OWNERS; i++)
		if (l->shares[i] && l->board[i].open)
			board_close(&l->board[i]);
}

static int open_board(struct latency *l, enum owner owner, char *why)
{
	struct board *b = &l->board[owner];

	switch (owner) {
	case VFIO:
		return bind(l->bdf, "vfio-pci", why) ? -1 :
		       board_open_vfio(b, l->bdf, LATENCY_BYTES, why);
	case UIO:
		return bind(l->bdf, "uio_pci_generic", why) ? -1 :
		       board_open_uio(b, l->bdf, LATENCY_BYTES, why);
	default:
		return to_rashpa(l->bdf, l->node, sizeof(l->node), why) ? -1 :
		       board_open_ours(b, l->node, LATENCY_BYTES, NULL, why);
	}
}

static int loaded(const char *driver, char *why)
{
	char path[64];

	snprintf(path, sizeof(path), DRIVERS "%s", driver);
	if (access(path, F_OK))
		return because(why, -1, "the driver is not loaded: modprobe %s", driver);
	return 0;
}

int board_to(struct latency *l, enum owner owner, char *why)
{
	if (owner == VFIO && loaded("vfio-pci", why))
		return -1;
	if (owner == UIO && loaded("uio_pci_generic", why))
		return -1;
	close_shared(l);
	if (unbind(l->bdf, why))
		return -1;
	if (l->shares[UIO] && set_domain(l, owner == UIO, why))
		return -1;
	return open_board(l, owner, why);
}
