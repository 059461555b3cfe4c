// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory of a GPU as target of RDMA: which functions of libibverbs are called, with what. Stand-ins
 * for those are here, and no card does anything: rdma WORDS LENGTH WINDOW CARD-NODE GPU-NODE.
 * WORDS: no-dmabuf (the card takes none), old (nor does the kernel), none (the memory has none),
 * no-module, no-pages (the address is not taken), no-address, full, host, soft, or none of them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/internal.h"

static const char *words;
static struct ibv_mr region = { .lkey = 3, .rkey = 4 };

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	(void)pd;
	printf("reg_dmabuf_mr offset %llu length %zu iova %llu fd %d access %d; ",
	       (unsigned long long)offset, length, (unsigned long long)iova, fd, access);
	errno = strstr(words, "full") ? ENOMEM : strstr(words, "old") ? EPROTONOSUPPORT : EOPNOTSUPP;
	return strstr(words, "no-dmabuf") || strstr(words, "old") || strstr(words, "full") ? NULL : &region;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova,
				unsigned int access)
{
	(void)pd;
	printf("reg_mr %p length %zu iova %#llx access %u; ", address, length,
	       (unsigned long long)iova, access);
	errno = EFAULT;
	return strstr(words, "no-module") || strstr(words, "no-pages") ? NULL : &region;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	printf("%s\n", mr == &region ? "dereg_mr" : "WRONG: dereg_mr");
	return 0;
}

/* Only the module is looked for. */
int access(const char *path, int mode)
{
	(void)path;
	(void)mode;
	return strstr(words, "no-module") ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct rashpa_net net = { .info = { .device = "card" }, .driver = "mlx9" };
	struct rashpa_net_device device = {
		.dmabuf = 7, .address = 0x7f0000000000, .offset = 0x2000,
	};
	struct rashpa_net_memory memory;
	int error;

	if (argc < 6)
		return 2;
	words = argv[1];
	device.length = strtoull(argv[2], NULL, 0);
	device.window = strtoull(argv[3], NULL, 0);
	net.info.numa_node = atoi(argv[4]);
	device.numa_node = atoi(argv[5]);
	if (strstr(words, "no-address"))
		device.address = 0;
	if (strstr(words, "none"))
		device.dmabuf = -1;
	if (strstr(words, "soft"))
		*net.driver = '\0';
	device.host = !!strstr(words, "host");
	error = rashpa_net_register_device(&net, &device, true, &memory);
	if (error) {
		printf("%s: %s\n", strerrorname_np(-error), rashpa_net_reason());
		return 1;
	}
	printf("by %u, far %u, at %#llx, key %u; ", device.by, device.far,
	       (unsigned long long)memory.address, memory.remote);
	rashpa_net_unregister(&memory);
	return 0;
}
