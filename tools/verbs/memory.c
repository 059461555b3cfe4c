// SPDX-License-Identifier: LGPL-2.1-or-later
/* Registered memory of a card. */
#include "verbs/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/path.h"
#include "common/text-file.h"

#define PEER_MODULE	"/sys/module/nvidia_peermem"

static int explain(const struct rashpa_net *n, int error)
{
	if (error == EFAULT)
		return net_fail(EFAULT, "%s: the memory has no pages that can be pinned, as CMA buffers and windows: use a contig buffer",
				n->info.device);
	if (error == ENOMEM)
		return net_fail(ENOMEM, "%s: too much memory to pin: see ulimit -l, and /etc/security/limits.d/rashpa.conf",
				n->info.device);
	return net_fail(error, "%s: cannot register memory: %s", n->info.device,
			strerror(error));
}

static int access_of(bool remote)
{
	return IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0);
}

/* @mr: NULL: errno says why. */
static int keep(const struct rashpa_net *n, struct ibv_mr *mr, uint64_t address, uint64_t length,
		struct rashpa_net_memory *memory)
{
	if (!mr)
		return explain(n, errno ? errno : EIO);
	*memory = (struct rashpa_net_memory) {
		.address = address,
		.length = length,
		.local = mr->lkey,
		.remote = mr->rkey,
		.private_ = mr,
	};
	return 0;
}

int rashpa_net_register(struct rashpa_net *n, void *base, uint64_t length, bool remote,
			struct rashpa_net_memory *memory)
{
	*memory = (struct rashpa_net_memory) {};
	errno = 0;
	return keep(n, ibv_reg_mr(n->pd, base, length, access_of(remote)), (uintptr_t)base, length,
		    memory);
}

static int register_dmabuf(struct rashpa_net *n, const struct rashpa_net_device *d, bool remote,
			   struct rashpa_net_memory *memory)
{
	int error;

	errno = 0;
	error = keep(n, ibv_reg_dmabuf_mr(n->pd, d->offset, d->length, d->address, d->dmabuf,
					access_of(remote)), d->address, d->length, memory);
	/* by kernels that do not know the call */
	return error == -EPROTONOSUPPORT ? -EOPNOTSUPP : error;
}

void rashpa_net_device_at(struct rashpa_net_device *d, uint64_t pci)
{
	char bdf[BDF_SIZE], text[16];

	bdf_text(bdf, pci);
	d->window = path_largest_bar("", bdf);
	d->numa_node = read_line(text, sizeof(text), "/sys/bus/pci/devices/%s/numa_node", bdf) ? atoi(text) : -1;
}

/* Neither way: name what is missing. */
static int refuse(const struct rashpa_net *n, const struct rashpa_net_device *d)
{
	const char *const card = n->info.device;
	const char *address;
	char dmabuf[192];

	if (d->dmabuf < 0)
		snprintf(dmabuf, sizeof(dmabuf), "the driver of the memory gives %s no dma-buf", card);
	else if (!*n->driver)
		snprintf(dmabuf, sizeof(dmabuf), "%s is a soft card, which takes no dma-buf (those of mlx5 do)", card);
	else
		snprintf(dmabuf, sizeof(dmabuf), "%s: its driver, %s, takes no dma-buf in this kernel", card,
			 n->driver);
	if (d->host)
		address = "the memory has no pages to pin: use a contig buffer";
	else if (!*n->driver)
		address = "memory of a device has no pages to pin: use a contig buffer";
	else if (!d->address)
		address = "nvidia-peermem takes memory of CUDA in the same process only";
	else if (access(PEER_MODULE, F_OK))
		address = "there is no nvidia-peermem: modprobe nvidia-peermem, which needs NVIDIA's RDMA drivers";
	else
		address = "nvidia-peermem does not take this memory";
	return net_fail(EOPNOTSUPP, "%s, and %s", dmabuf, address);
}

int rashpa_net_register_device(struct rashpa_net *n, struct rashpa_net_device *d, bool remote,
			       struct rashpa_net_memory *memory)
{
	const int32_t node = n->info.numa_node;

	*memory = (struct rashpa_net_memory) {};
	if (d->window && d->length > d->window)
		return net_fail(E2BIG, "%" PRIu64 " bytes of GPU memory exceed the %" PRIu64
				" bytes of its BAR: use less, or enable Resizable BAR in the firmware",
				d->length, d->window);
	d->far = node >= 0 && d->numa_node >= 0 && node != d->numa_node;
	d->by = d->host ? RASHPA_NET_BY_ADDRESS : RASHPA_NET_BY_DMABUF;
	for (int i = 0; i < 2; i++, d->by ^= 1) {
		const bool by_address = d->by == RASHPA_NET_BY_ADDRESS;
		int error;

		if (by_address ? !d->address : d->dmabuf < 0)
			continue;
		error = by_address ? rashpa_net_register(n, (void *)(uintptr_t)d->address, d->length,
							 remote, memory) :
				     register_dmabuf(n, d, remote, memory);
		if (error != (by_address ? -EFAULT : -EOPNOTSUPP))
			return error;
	}
	return refuse(n, d);
}

void rashpa_net_unregister(struct rashpa_net_memory *memory)
{
	if (memory->private_)
		ibv_dereg_mr(memory->private_);
	*memory = (struct rashpa_net_memory) {};
}
