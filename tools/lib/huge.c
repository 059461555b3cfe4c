// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: buffers of reserved huge pages. See rashpa.h. */
#include <rashpa.h>
#include "lib/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/mempolicy.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES	1024	/* more than any kernel has */
#define BITS	(8 * sizeof(unsigned long))

struct policy {
	int mode;
	unsigned long nodes[NODES / BITS];
};

/* A number of a pool, of one node or of all; -1: unknown. */
static long pool(const struct rashpa_alloc *alloc, uint64_t page, const char *what)
{
	char path[128] = "/sys/kernel/mm";
	FILE *file;
	long n = -1;

	if (alloc->head.flags & RASHPA_ALLOC_NODE)
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u", alloc->node);
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/hugepages/hugepages-%llukB/%s",
		 (unsigned long long)page >> 10, what);
	file = fopen(path, "re");
	if (file && fscanf(file, "%ld", &n) != 1)
		n = -1;
	if (file)
		fclose(file);
	return n;
}

static int fail_pool(const struct rashpa_alloc *alloc, uint64_t page)
{
	char node[32] = "";

	if (alloc->head.flags & RASHPA_ALLOC_NODE)
		snprintf(node, sizeof(node), " of node %u", alloc->node);
	return fail(ENOMEM,
		    "%llu huge pages of %llu KiB wanted, %ld of %ld%s are free: reserve more, by nr_hugepages below /sys/kernel/mm/hugepages (per node: /sys/devices/system/node), or at boot (hugepagesz=, hugepages=)",
		    (unsigned long long)(alloc->length / page), (unsigned long long)page >> 10,
		    pool(alloc, page, "free_hugepages"), pool(alloc, page, "nr_hugepages"), node);
}

/* Allocate the pages: of the caller's policy, or of one node. Return: 0 or an errno. */
static int fill(int memfd, const struct rashpa_alloc *alloc)
{
	const bool bind = alloc->head.flags & RASHPA_ALLOC_NODE;
	struct policy old = {}, new = {};
	int error = 0;

	if (bind) {
		if (alloc->node >= NODES)
			return EINVAL;
		new.nodes[alloc->node / BITS] = 1UL << alloc->node % BITS;
		if (syscall(SYS_get_mempolicy, &old.mode, old.nodes, NODES, NULL, 0) ||
		    syscall(SYS_set_mempolicy, MPOL_BIND, new.nodes, NODES))
			return errno;
	}
	if (fallocate(memfd, 0, 0, alloc->length))
		error = errno;
	if (bind)
		syscall(SYS_set_mempolicy, old.mode, old.nodes, NODES);
	return error;
}

int rashpa_memory_alloc_huge_sized(int memory, uint64_t page, struct rashpa_alloc *alloc, size_t size)
{
	const unsigned int shift = page ? __builtin_ctzll(page) : 0;
	int error;

	if (!page || page >> shift != 1 ||
	    __builtin_add_overflow(alloc->length, page - 1, &alloc->length))
		return fail(EINVAL, "huge pages of %llu bytes: must be a power of two",
			    (unsigned long long)page);
	alloc->length &= -page;
	alloc->backend = RASHPA_BACKEND_HUGE;
	alloc->memfd = memfd_create(*alloc->name ? alloc->name : "rashpa",
				    MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB |
				    shift << MFD_HUGE_SHIFT);
	if (alloc->memfd < 0)
		return fail(EINVAL,
			    "there are no huge pages of %llu KiB: /sys/kernel/mm/hugepages has a folder for each size (%s)",
			    (unsigned long long)page >> 10, strerror(errno));
	if (ftruncate(alloc->memfd, alloc->length))
		error = errno;
	else
		error = fill(alloc->memfd, alloc);
	if (!error && fcntl(alloc->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		error = errno;
	if (!error)
		error = rashpa_ioctl(memory, RASHPA_IOC_ALLOC, alloc, size);
	close(alloc->memfd);
	alloc->memfd = 0;
	/* the pool has its pages again */
	if (error == ENOSPC || error == ENOMEM)
		return fail_pool(alloc, page);
	if (error > 0)
		return fail(error, "%llu bytes of huge pages: %s",
			    (unsigned long long)alloc->length, strerror(error));
	return error ? error : alloc->out_fd;
}
