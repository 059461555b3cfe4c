// SPDX-License-Identifier: LGPL-2.1-or-later
/* The port of a card. */
#include "verbs/internal.h"
#include "lib/sized.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Thread_local char reason[512];

int net_fail(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return -error;
}

const char *rashpa_net_reason(void)
{
	return reason;
}

/* --- choice of the port --- */

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

/* Choose the address with the given index, or else the first one, preferably IPv4. */
static int choose_gid(struct rashpa_net *n, const struct ibv_port_attr *port)
{
	const int32_t wanted = n->options.gid;
	struct ibv_gid_entry entry;
	int found = -1;

	for (int i = 0; i < port->gid_tbl_len; i++) {
		if ((wanted >= 0 && i != wanted) ||
		    ibv_query_gid_ex(n->context, n->info.port, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (found >= 0 && !is_ipv4(&entry.gid))
			continue;
		found = i;
		n->gid = entry.gid;
		if (is_ipv4(&entry.gid))
			break;
	}
	if (found < 0 && wanted >= 0)
		return net_fail(EINVAL, "%s: port %u has no RoCE v2 address with index %d",
				n->info.device, n->info.port, wanted);
	if (found < 0)
		return net_fail(ENODEV, "%s: port %u has no RoCE v2 address: give its interface an IP address",
				n->info.device, n->info.port);
	n->info.gid = found;
	inet_ntop(is_ipv4(&n->gid) ? AF_INET : AF_INET6, n->gid.raw + (is_ipv4(&n->gid) ? 12 : 0),
		  n->info.address, sizeof(n->info.address));
	return 0;
}

static int choose_mtu(struct rashpa_net *n, const struct ibv_port_attr *port)
{
	const uint32_t wanted = n->options.mtu, most = 128u << port->active_mtu;

	n->info.mtu = wanted ? wanted : most;
	if (wanted > most)
		return net_fail(EINVAL, "%s: port %u has packets of %u bytes at most, not %u: raise the MTU of the interface",
				n->info.device, n->info.port, most, wanted);
	for (n->mtu = IBV_MTU_256; n->mtu <= IBV_MTU_4096; n->mtu++) {
		if (128u << n->mtu == n->info.mtu)
			return 0;
	}
	return net_fail(EINVAL, "packets have 256, 512, 1024, 2048 or 4096 bytes, not %u", wanted);
}

static int choose_port(struct rashpa_net *n, uint8_t ports)
{
	struct ibv_port_attr port;
	uint32_t first = n->options.port ? n->options.port : 1;
	uint32_t last = n->options.port ? n->options.port : ports;
	int error;

	for (n->info.port = first; n->info.port <= last; n->info.port++) {
		if (!ibv_query_port(n->context, n->info.port, &port) &&
		    port.state == IBV_PORT_ACTIVE && port.link_layer == IBV_LINK_LAYER_ETHERNET)
			break;
	}
	if (n->info.port > last)
		return net_fail(ENODEV, "%s: no Ethernet port of it is active: set its interface up",
				n->info.device);
	n->info.message = port.max_msg_sz;
	error = choose_gid(n, &port);
	return error ? error : choose_mtu(n, &port);
}

/* Driver of the card; empty for a soft one, which has no function. */
static void read_driver(struct rashpa_net *n, const struct ibv_device *device)
{
	char path[sizeof(device->ibdev_path) + 32], link[256];
	ssize_t length;

	snprintf(path, sizeof(path), "%s/device/driver", device->ibdev_path);
	length = readlink(path, link, sizeof(link) - 1);
	if (length <= 0)
		return;
	link[length] = '\0';
	snprintf(n->driver, sizeof(n->driver), "%s", basename(link));
}

/* NUMA node of the card; -1 for a virtual one. */
static int32_t numa_node(const struct ibv_device *device)
{
	char path[sizeof(device->ibdev_path) + 32];
	int32_t node = -1;
	FILE *file;

	snprintf(path, sizeof(path), "%s/device/numa_node", device->ibdev_path);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &node) != 1)
		node = -1;
	fclose(file);
	return node;
}

static int use_device(struct rashpa_net *n, struct ibv_device *device)
{
	struct ibv_device_attr attr;
	int error;

	snprintf(n->info.device, sizeof(n->info.device), "%s", ibv_get_device_name(device));
	n->context = ibv_open_device(device);
	if (!n->context)
		return net_fail(errno ? errno : EIO, "%s: cannot open the device: %s", n->info.device,
				strerror(errno));
	if (ibv_query_device(n->context, &attr))
		return net_fail(EIO, "%s: cannot query the device", n->info.device);
	n->info.pairs = attr.max_qp;
	/* each receive needs a completion */
	n->info.receives = attr.max_srq_wr < attr.max_cqe ? attr.max_srq_wr : attr.max_cqe - 1;
	n->info.numa_node = numa_node(device);
	read_driver(n, device);
	error = choose_port(n, attr.phys_port_cnt);
	if (error)
		return error;
	n->pd = ibv_alloc_pd(n->context);
	return n->pd ? 0 : net_fail(errno, "%s: cannot allocate a protection domain: %s", n->info.device,
				    strerror(errno));
}

static void release(struct rashpa_net *n)
{
	if (n->pd)
		ibv_dealloc_pd(n->pd);
	if (n->context)
		ibv_close_device(n->context);
	n->pd = NULL;
	n->context = NULL;
}

int rashpa_net_open_sized(const struct rashpa_net_options *theirs, struct rashpa_net **net, size_t size)
{
	struct rashpa_net_options ours;
	const struct rashpa_net_options *options = &ours;
	struct rashpa_net *n;
	struct ibv_device **list;
	int error = -ENODEV, count;

	sized_copy(&ours, sizeof(ours), theirs, size);
	if (options->service > RASHPA_NET_RC || options->traffic_class > 255 ||
	    options->hops > 255 || options->timeout > 31 || options->retries > 7 ||
	    options->port > 255)
		return net_fail(EINVAL, "an option of the port is out of range");
	n = calloc(1, sizeof(*n));
	if (!n)
		return net_fail(ENOMEM, "no memory");
	n->options = *options;
	list = ibv_get_device_list(&count);
	net_fail(ENODEV, options->device ? "there is no RDMA device %s" :
		 "there is no RDMA device: add one (rdma link add rxe0 type rxe netdev eth0)",
		 options->device);
	for (int i = 0; list && i < count; i++) {
		if (options->device && strcmp(options->device, ibv_get_device_name(list[i])))
			continue;
		error = use_device(n, list[i]);
		if (!error)
			break;
		release(n);
	}
	if (list)
		ibv_free_device_list(list);
	n->options.device = NULL;	/* the caller's */
	if (error)
		free(n);
	else
		*net = n;
	return error;
}

void rashpa_net_close(struct rashpa_net *n)
{
	if (!n)
		return;
	release(n);
	free(n);
}

const struct rashpa_net_info *rashpa_net_about(const struct rashpa_net *n)
{
	return &n->info;
}
