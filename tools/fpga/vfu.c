// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fpga/vfu.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <linux/vfio.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "fpga/log.h"
#include "fpga/pci.h"

enum command {
	VERSION = 1,
	DMA_MAP = 2,
	DMA_UNMAP = 3,
	DEVICE_GET_INFO = 4,
	DEVICE_GET_REGION_INFO = 5,
	DEVICE_GET_IRQ_INFO = 7,
	DEVICE_SET_IRQS = 8,
	REGION_READ = 9,
	REGION_WRITE = 10,
	DMA_READ = 11,
	DMA_WRITE = 12,
	DEVICE_RESET = 13,
};

#define TYPE_MASK	0xfu
#define TYPE_COMMAND	0x0u
#define TYPE_REPLY	0x1u
#define FLAG_NO_REPLY	0x10u
#define FLAG_ERROR	0x20u

#define MAX_FDS		16
#define MAX_DATA	(1u << 20)	/* payload of a read or write */
/* Less than the client takes: it serves about 150 MB/s, and a stop should be quick. */
#define DMA_DATA	(128u << 10)
#define RECORD		64		/* bytes that are one write, whatever the client takes */
#define MAX_MESSAGE	(MAX_DATA + 64)
#define REGIONS		9
#define IRQS		5

struct header {
	uint16_t id;
	uint16_t command;
	uint32_t size;		/* header included */
	uint32_t flags;
	uint32_t error;
};

struct dma_map {
	uint32_t argsz, flags;
	uint64_t offset, addr, size;
};

struct dma_unmap {
	uint32_t argsz, flags;
	uint64_t addr, size;
};

struct region_access {
	uint64_t offset;
	uint32_t region, count;
};

struct dma_access {
	uint64_t addr;
	uint64_t count;
};

struct vfu {
	struct device *device;
	struct host *host;
	struct pci pci;
	int fd;				/* -1: no client */
	int end;			/* readable when the program must end */
	bool versioned;
	uint32_t max_data;		/* bytes that the client accepts in a message */

	/* the incoming message */
	struct header *header;		/* at the beginning of in */
	uint8_t *in;
	size_t have;
	int fds[MAX_FDS];
	unsigned int n_fds;
	uint8_t *out;			/* payload of the reply */

	pthread_mutex_t send_lock;

	pthread_mutex_t dma_lock;
	pthread_cond_t dma_cond;
	bool dma_open;			/* there is a client */
	bool dma_abort;
	bool dma_wait;			/* a message is under way */
	uint16_t dma_id;
	int dma_result;
	uint8_t *dma_data;		/* destination of a read's answer */
	uint32_t dma_count;
};

/* A command in work and what is answered to it. */
struct request {
	const uint8_t *data;
	size_t size;
	uint8_t *reply;
	size_t reply_size;
	int reply_fd;
};

/* ------------------------------------------------------------ sending --- */

/* Of a whole message, and of the answer to it, however often the client makes room for a little. */
static struct timespec deadline(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += HOST_PATIENCE;
	return ts;
}

/* Until there is room, but neither beyond @until nor when the program is to end. */
static int wait_for_room(const struct vfu *vfu, const struct timespec *until)
{
	struct pollfd p[] = {
		{ .fd = vfu->fd, .events = POLLOUT }, { .fd = vfu->end, .events = POLLIN },
	};
	struct timespec now;
	int64_t ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (int64_t)(until->tv_sec - now.tv_sec) * 1000 +
	     (until->tv_nsec - now.tv_nsec) / 1000000;
	if (ms <= 0)
		return -ETIMEDOUT;
	if (poll(p, 2, (int)ms) < 0)
		return errno == EINTR ? 0 : -errno;
	if (p[1].revents)
		return -ECANCELED;
	return p[0].revents & (POLLERR | POLLHUP) ? -EPIPE : 0;
}

static void attach_fd(struct msghdr *msg, void *control, size_t size, int fd)
{
	struct cmsghdr *c;

	msg->msg_control = control;
	msg->msg_controllen = size;
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
}

static void advance(struct msghdr *msg, size_t n)
{
	while (n) {
		struct iovec *v = msg->msg_iov;
		size_t part = n < v->iov_len ? n : v->iov_len;

		v->iov_base = (uint8_t *)v->iov_base + part;
		v->iov_len -= part;
		n -= part;
		if (!v->iov_len) {
			msg->msg_iov++;
			msg->msg_iovlen--;
		}
	}
}

/* A whole message, with a descriptor if fd >= 0. After a failure the stream is lost. */
static int send_message(struct vfu *vfu, struct iovec *iov, size_t n, int fd,
			const struct timespec *until)
{
	union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	size_t i, left = 0;
	int err = 0;

	for (i = 0; i < n; i++)
		left += iov[i].iov_len;
	if (fd >= 0)
		attach_fd(&msg, &control, sizeof(control), fd);

	pthread_mutex_lock(&vfu->send_lock);
	while (left && !err) {
		ssize_t sent = sendmsg(vfu->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent > 0) {
			left -= (size_t)sent;
			advance(&msg, (size_t)sent);
			msg.msg_control = NULL;
			msg.msg_controllen = 0;
		} else if (errno == EAGAIN) {
			err = wait_for_room(vfu, until);
		} else if (errno != EINTR) {
			err = -errno;
		}
	}
	if (err)
		shutdown(vfu->fd, SHUT_RDWR);	/* the protocol thread will notice */
	pthread_mutex_unlock(&vfu->send_lock);
	return err;
}

static int send_reply(struct vfu *vfu, const struct request *r, int err)
{
	struct header h = {
		.id = vfu->header->id,
		.command = vfu->header->command,
		.size = (uint32_t)(sizeof(h) + (err ? 0 : r->reply_size)),
		.flags = TYPE_REPLY | (err ? FLAG_ERROR : 0),
		.error = (uint32_t)-err,
	};
	struct iovec iov[] = {
		{ &h, sizeof(h) },
		{ r->reply, err ? 0 : r->reply_size },
	};
	const struct timespec until = deadline();

	return send_message(vfu, iov, iov[1].iov_len ? 2 : 1, err ? -1 : r->reply_fd, &until);
}

/* ------------------------------------------------- DMA messages to the client --- */

static int await_answer(struct vfu *vfu, const struct timespec *until)
{
	int err = 0;

	pthread_mutex_lock(&vfu->dma_lock);
	while (vfu->dma_wait && vfu->dma_open && !vfu->dma_abort && !err)
		err = pthread_cond_timedwait(&vfu->dma_cond, &vfu->dma_lock, until);
	if (!vfu->dma_wait)
		err = vfu->dma_result;
	else if (vfu->dma_abort || !vfu->dma_open)
		err = -ECANCELED;
	else
		err = -ETIMEDOUT;
	vfu->dma_wait = false;		/* an answer that comes later is dropped */
	pthread_mutex_unlock(&vfu->dma_lock);
	return err;
}

static int dma_message(struct vfu *vfu, bool write, uint64_t addr, void *data, size_t length)
{
	struct dma_access access = { .addr = addr, .count = length };
	struct header h = {
		.command = write ? DMA_WRITE : DMA_READ,
		.size = (uint32_t)(sizeof(h) + sizeof(access) + (write ? length : 0)),
		.flags = TYPE_COMMAND,
	};
	struct iovec iov[] = {
		{ &h, sizeof(h) },
		{ &access, sizeof(access) },
		{ data, length },
	};
	const struct timespec until = deadline();
	int err;

	pthread_mutex_lock(&vfu->dma_lock);
	if (!vfu->dma_open || vfu->dma_abort) {
		pthread_mutex_unlock(&vfu->dma_lock);
		return -ECANCELED;
	}
	h.id = ++vfu->dma_id;
	vfu->dma_wait = true;
	vfu->dma_data = write ? NULL : data;
	vfu->dma_count = (uint32_t)length;
	pthread_mutex_unlock(&vfu->dma_lock);

	err = send_message(vfu, iov, write ? 3 : 2, -1, &until);
	if (err) {
		pthread_mutex_lock(&vfu->dma_lock);
		vfu->dma_wait = false;
		pthread_mutex_unlock(&vfu->dma_lock);
		return -ECANCELED;
	}
	return await_answer(vfu, &until);
}

static int dma(void *wire, bool write, uint64_t addr, void *data, size_t length)
{
	struct vfu *vfu = wire;
	size_t most = vfu->max_data < DMA_DATA ? vfu->max_data : DMA_DATA;
	size_t done, n;
	int err = 0;

	for (done = 0; done < length && !err; done += n) {
		n = length - done < most ? length - done : most;
		err = dma_message(vfu, write, addr + done, (uint8_t *)data + done, n);
	}
	return err;
}

/* The answer to a DMA message, in vfu->in. */
static void take_answer(struct vfu *vfu)
{
	const struct header *h = vfu->header;
	const size_t fixed = sizeof(*h) + sizeof(struct dma_access);

	pthread_mutex_lock(&vfu->dma_lock);
	if (!vfu->dma_wait || h->id != vfu->dma_id) {
		log_limited("answer %u was not requested", h->id);
	} else {
		vfu->dma_result = 0;
		if (h->flags & FLAG_ERROR)
			vfu->dma_result = h->error && h->error < 4096 ? -(int)h->error : -EIO;
		else if (vfu->dma_data && h->size < fixed + vfu->dma_count)
			vfu->dma_result = -EPROTO;
		else if (vfu->dma_data)
			memcpy(vfu->dma_data, vfu->in + fixed, vfu->dma_count);
		vfu->dma_wait = false;
		pthread_cond_signal(&vfu->dma_cond);
	}
	pthread_mutex_unlock(&vfu->dma_lock);
}

static void abort_dma(void *wire, bool on)
{
	struct vfu *vfu = wire;

	pthread_mutex_lock(&vfu->dma_lock);
	vfu->dma_abort = on;
	pthread_cond_signal(&vfu->dma_cond);
	pthread_mutex_unlock(&vfu->dma_lock);
}

static void dma_set_open(struct vfu *vfu, bool open)
{
	pthread_mutex_lock(&vfu->dma_lock);
	vfu->dma_open = open;
	pthread_cond_signal(&vfu->dma_cond);
	pthread_mutex_unlock(&vfu->dma_lock);
}

/* ----------------------------------------------------------- commands --- */

/* Each returns 0 or -errno, which is what is answered. */

static int take_capabilities(struct vfu *vfu, struct json_object *version)
{
	struct json_object *caps, *value;

	vfu->max_data = MAX_DATA;
	if (!json_object_object_get_ex(version, "capabilities", &caps) ||
	    !json_object_is_type(caps, json_type_object) ||
	    !json_object_object_get_ex(caps, "max_data_xfer_size", &value))
		return 0;
	if (json_object_get_int64(value) < RECORD)
		return -EINVAL;
	if (json_object_get_int64(value) < MAX_DATA)
		vfu->max_data = (uint32_t)json_object_get_int64(value);
	return 0;
}

static int parse_version(struct vfu *vfu, const char *text, size_t size)
{
	struct json_tokener *tokener;
	struct json_object *version;
	int err = -EINVAL;

	vfu->max_data = MAX_DATA;
	if (!size)
		return 0;
	if (text[size - 1])
		return -EINVAL;
	tokener = json_tokener_new();
	if (!tokener)
		return -ENOMEM;
	version = json_tokener_parse_ex(tokener, text, (int)size);
	if (json_object_is_type(version, json_type_object))
		err = take_capabilities(vfu, version);
	json_object_put(version);
	json_tokener_free(tokener);
	return err;
}

static int do_version(struct vfu *vfu, struct request *r)
{
	static const char format[] =
		"{\"capabilities\":{\"max_msg_fds\":%u,\"max_data_xfer_size\":%u,"
		"\"pgsizes\":4096}}";
	uint16_t major;
	int err;

	if (r->size < 4)
		return -EINVAL;
	memcpy(&major, r->data, sizeof(major));
	if (major)
		return -EPROTONOSUPPORT;
	err = parse_version(vfu, (const char *)r->data + 4, r->size - 4);
	if (err)
		return err;
	vfu->versioned = true;
	memset(r->reply, 0, 4);		/* 0.0 */
	r->reply_size = 4 + 1 + (size_t)sprintf((char *)r->reply + 4, format, MAX_FDS, MAX_DATA);
	return 0;
}

static int do_dma_map(struct vfu *vfu, struct request *r)
{
	struct dma_map m;
	int err;

	if (r->size < sizeof(m) || vfu->n_fds > 1)
		return -EINVAL;
	memcpy(&m, r->data, sizeof(m));
	if (m.flags & ~(uint32_t)(HOST_READ | HOST_WRITE))
		return -EINVAL;
	err = host_map(vfu->host, m.addr, m.size, m.offset, m.flags,
		      vfu->n_fds ? vfu->fds[0] : -1);
	log_debug("map %#llx + %#llx flags %u%s: %d", (unsigned long long)m.addr,
		  (unsigned long long)m.size, m.flags, vfu->n_fds ? "" : " without fd", err);
	return err;
}

static int do_dma_unmap(struct vfu *vfu, struct request *r)
{
	struct dma_unmap u;

	if (r->size < sizeof(u))
		return -EINVAL;
	memcpy(&u, r->data, sizeof(u));
	if (u.flags & ~VFIO_DMA_UNMAP_FLAG_ALL)
		return -EOPNOTSUPP;
	if (u.flags & VFIO_DMA_UNMAP_FLAG_ALL)
		host_unmap_all(vfu->host);
	else
		host_unmap(vfu->host, u.addr, u.size);
	log_debug("unmap %#llx + %#llx flags %u", (unsigned long long)u.addr,
		  (unsigned long long)u.size, u.flags);
	memcpy(r->reply, &u, sizeof(u));
	r->reply_size = sizeof(u);
	return 0;
}

static int do_get_info(struct vfu *vfu, struct request *r)
{
	/* argsz, flags, regions, interrupts */
	const uint32_t info[4] = {
		sizeof(info), VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI, REGIONS, IRQS,
	};

	(void)vfu;
	memcpy(r->reply, info, sizeof(info));
	r->reply_size = sizeof(info);
	return 0;
}

static uint64_t region_size(const struct vfu *vfu, uint32_t index)
{
	if (index == VFIO_PCI_CONFIG_REGION_INDEX)
		return PCI_CONFIG_SIZE;
	return index < DEVICE_BARS ? vfu->device->bar[index].size : 0;
}

/* The memory that a BAR is, or NULL. */
static uint8_t *region_memory(const struct vfu *vfu, uint32_t index)
{
	return index < DEVICE_BARS ? vfu->device->bar[index].memory : NULL;
}

static int do_region_info(struct vfu *vfu, struct request *r)
{
	struct vfio_region_info info = { 0 };

	if (r->size < 12)
		return -EINVAL;
	memcpy(&info, r->data, 12);		/* argsz, flags, index */
	if (info.index >= REGIONS)
		return -EINVAL;
	info.argsz = sizeof(info);
	info.flags = 0;
	info.size = region_size(vfu, info.index);
	if (info.size)
		info.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	if (region_memory(vfu, info.index)) {
		r->reply_fd = vfu->device->bar[info.index].fd;
		info.flags |= VFIO_REGION_INFO_FLAG_MMAP;
	}
	memcpy(r->reply, &info, sizeof(info));
	r->reply_size = sizeof(info);
	return 0;
}

static int do_irq_info(struct vfu *vfu, struct request *r)
{
	struct vfio_irq_info info = { 0 };

	if (r->size < 12)
		return -EINVAL;
	memcpy(&info, r->data, 12);
	if (info.index >= IRQS)
		return -EINVAL;
	info.argsz = sizeof(info);
	info.flags = 0;
	/*
	 * Not NORESIZE, or QEMU tears all vectors down to add one. The error interrupt
	 * is never raised; QEMU warns about a function without one.
	 */
	if (info.index == VFIO_PCI_MSIX_IRQ_INDEX)
		info.count = vfu->device->vectors;
	else if (info.index == VFIO_PCI_ERR_IRQ_INDEX)
		info.count = 1;
	else if (info.index == VFIO_PCI_INTX_IRQ_INDEX)
		info.count = vfu->device->pin;
	if (info.count)
		info.flags = VFIO_IRQ_INFO_EVENTFD;
	if (info.count && info.index == VFIO_PCI_INTX_IRQ_INDEX)
		info.flags |= VFIO_IRQ_INFO_MASKABLE | VFIO_IRQ_INFO_AUTOMASKED;
	memcpy(r->reply, &info, sizeof(info));
	r->reply_size = sizeof(info);
	return 0;
}

/* Assign eventfds to [start, start + count), or with none take them away. */
static int assign_vectors(struct vfu *vfu, uint32_t start, uint32_t count)
{
	uint32_t i;

	if (vfu->n_fds && vfu->n_fds != count)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		irq_assign(&vfu->host->irq, start + i, vfu->n_fds ? vfu->fds[i] : -1);
		if (vfu->n_fds)
			vfu->fds[i] = -1;	/* kept */
	}
	return 0;
}

static int set_msix(struct vfu *vfu, const struct vfio_irq_set *set, const uint8_t *data,
		    size_t size)
{
	uint32_t action = set->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK, i;

	if (set->start > vfu->device->vectors || set->count > vfu->device->vectors - set->start)
		return -EINVAL;
	if (action == VFIO_IRQ_SET_ACTION_MASK || action == VFIO_IRQ_SET_ACTION_UNMASK)
		return 0;		/* the host masks in front of its eventfds */
	if (action != VFIO_IRQ_SET_ACTION_TRIGGER)
		return -EINVAL;

	switch (set->flags & VFIO_IRQ_SET_DATA_TYPE_MASK) {
	case VFIO_IRQ_SET_DATA_EVENTFD:
		return assign_vectors(vfu, set->start, set->count);
	case VFIO_IRQ_SET_DATA_NONE:
		if (!set->start && !set->count)
			irq_clear_all(&vfu->host->irq);
		for (i = 0; i < set->count; i++)
			irq_trigger(&vfu->host->irq, set->start + i);
		return 0;
	case VFIO_IRQ_SET_DATA_BOOL:
		if (size < set->count)
			return -EINVAL;
		for (i = 0; i < set->count; i++)
			if (data[i])
				irq_trigger(&vfu->host->irq, set->start + i);
		return 0;
	}
	return -EINVAL;
}

static int assign_intx(struct vfu *vfu)
{
	if (vfu->n_fds > 1)
		return -EINVAL;
	intx_assign(&vfu->host->irq, vfu->n_fds ? vfu->fds[0] : -1);
	if (vfu->n_fds)
		vfu->fds[0] = -1;	/* kept */
	return 0;
}

/*
 * Masks as eventfds are for KVM, which would unmask without QEMU. Without them QEMU does
 * it itself.
 */
static int set_intx(struct vfu *vfu, const struct vfio_irq_set *set, const uint8_t *data,
		    size_t size)
{
	uint32_t action = set->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK;
	uint32_t type = set->flags & VFIO_IRQ_SET_DATA_TYPE_MASK;

	if (set->start || set->count > 1)
		return -EINVAL;
	if (type == VFIO_IRQ_SET_DATA_EVENTFD && action != VFIO_IRQ_SET_ACTION_TRIGGER)
		return -EOPNOTSUPP;
	if (type == VFIO_IRQ_SET_DATA_EVENTFD)
		return set->count ? assign_intx(vfu) : -EINVAL;
	if (type == VFIO_IRQ_SET_DATA_BOOL && (!set->count || !size))
		return -EINVAL;
	if (type == VFIO_IRQ_SET_DATA_BOOL && !data[0])
		return 0;
	if (action == VFIO_IRQ_SET_ACTION_TRIGGER && !set->count)
		intx_assign(&vfu->host->irq, -1);
	else if (action == VFIO_IRQ_SET_ACTION_TRIGGER)
		intx_trigger(&vfu->host->irq);
	else if (set->count)
		intx_mask(&vfu->host->irq, action == VFIO_IRQ_SET_ACTION_MASK);
	return 0;
}

static int do_set_irqs(struct vfu *vfu, struct request *r)
{
	struct vfio_irq_set set;
	unsigned int i;

	if (r->size < sizeof(set))
		return -EINVAL;
	memcpy(&set, r->data, sizeof(set));
	log_debug("irqs: index %u flags %#x start %u count %u, %u fds", set.index, set.flags,
		  set.start, set.count, vfu->n_fds);
	if (set.index >= IRQS)
		return -EINVAL;
	for (i = 0; i < vfu->n_fds; i++)
		if (!irq_possible(vfu->fds[i]))
			return -EINVAL;
	if (set.index == VFIO_PCI_MSIX_IRQ_INDEX)
		return set_msix(vfu, &set, r->data + sizeof(set), r->size - sizeof(set));
	if (set.index == VFIO_PCI_INTX_IRQ_INDEX && vfu->device->pin)
		return set_intx(vfu, &set, r->data + sizeof(set), r->size - sizeof(set));
	return 0;			/* never raised: nothing to keep */
}

static int get_access(const struct vfu *vfu, const struct request *r, bool write,
		      struct region_access *a)
{
	uint64_t size;

	if (r->size < sizeof(*a))
		return -EINVAL;
	memcpy(a, r->data, sizeof(*a));
	if (a->region >= REGIONS || a->count > MAX_DATA)
		return -EINVAL;
	size = region_size(vfu, a->region);
	if (a->offset > size || a->count > size - a->offset)
		return -EINVAL;
	if (write && r->size - sizeof(*a) < a->count)
		return -EINVAL;
	return 0;
}

static bool answers(const struct vfu *vfu, bool config)
{
	const struct device *d = vfu->device;

	return (config || !pci_asleep(&vfu->pci)) &&
	       (!d->ops->answers || d->ops->answers(d->self, config));
}

static int do_region_read(struct vfu *vfu, struct request *r)
{
	const struct device *d = vfu->device;
	struct region_access a;
	uint8_t *data = r->reply + sizeof(a);
	int err = get_access(vfu, r, false, &a);
	bool config;

	if (err)
		return err;
	config = a.region == VFIO_PCI_CONFIG_REGION_INDEX;
	memcpy(r->reply, &a, sizeof(a));
	r->reply_size = sizeof(a) + a.count;
	if (!answers(vfu, config))
		memset(data, 0xff, a.count);
	else if (config)
		pci_read(&vfu->pci, (uint32_t)a.offset, data, a.count);
	else if (region_memory(vfu, a.region))
		memcpy(data, region_memory(vfu, a.region) + a.offset, a.count);
	else if (a.region == d->msix_bar)
		pci_msix_read(&vfu->pci, (uint32_t)a.offset, data, a.count);
	else if (a.count)
		d->ops->read(d->self, a.region, a.offset, data, a.count);
	return 0;
}

/* One word at a time where it can be: the device reads while we write. */
static void write_memory(uint8_t *memory, const uint8_t *data, uint32_t count)
{
	uint32_t word, i;

	if ((uintptr_t)memory % sizeof(word) || count % sizeof(word)) {
		memcpy(memory, data, count);
		return;
	}
	for (i = 0; i < count; i += sizeof(word)) {
		memcpy(&word, data + i, sizeof(word));
		__atomic_store_n((uint32_t *)(memory + i), word, __ATOMIC_RELEASE);
	}
}

static void reset_function(struct vfu *vfu, enum device_reset why)
{
	vfu->device->ops->reset(vfu->device->self, why);
	pci_reset(&vfu->pci);
}

static void write_bar(struct vfu *vfu, const struct region_access *a, const uint8_t *data)
{
	const struct device *d = vfu->device;

	if (region_memory(vfu, a->region)) {
		write_memory(region_memory(vfu, a->region) + a->offset, data, a->count);
		if (d->ops->written)
			d->ops->written(d->self, a->region);
	} else if (a->region == d->msix_bar) {
		pci_msix_write(&vfu->pci, (uint32_t)a->offset, data, a->count);
	} else if (a->count) {
		d->ops->write(d->self, a->region, a->offset, data, a->count);
	}
}

static int do_region_write(struct vfu *vfu, struct request *r)
{
	struct region_access a;
	const uint8_t *data = r->data + sizeof(a);
	int err = get_access(vfu, r, true, &a);
	bool config;

	if (err)
		return err;
	config = a.region == VFIO_PCI_CONFIG_REGION_INDEX;
	memcpy(r->reply, &a, sizeof(a));
	r->reply_size = sizeof(a);
	if (!answers(vfu, config))
		return 0;
	if (!config)
		write_bar(vfu, &a, data);
	else if (pci_write(&vfu->pci, (uint32_t)a.offset, data, a.count))
		reset_function(vfu, DEVICE_RESET_FLR);
	return 0;
}

static int do_reset(struct vfu *vfu, struct request *r)
{
	(void)r;
	log_debug("reset");
	reset_function(vfu, DEVICE_RESET_HOST);
	return 0;
}

static const struct {
	int (*handler)(struct vfu *vfu, struct request *r);
	bool fds;		/* may carry descriptors */
} commands[] = {
	[VERSION]		  = { do_version, false },
	[DMA_MAP]		  = { do_dma_map, true },
	[DMA_UNMAP]		  = { do_dma_unmap, false },
	[DEVICE_GET_INFO]	  = { do_get_info, false },
	[DEVICE_GET_REGION_INFO] = { do_region_info, false },
	[DEVICE_GET_IRQ_INFO]	  = { do_irq_info, false },
	[DEVICE_SET_IRQS]	  = { do_set_irqs, true },
	[REGION_READ]		  = { do_region_read, false },
	[REGION_WRITE]		  = { do_region_write, false },
	[DEVICE_RESET]		  = { do_reset, false },
};

static int run_command(struct vfu *vfu, struct request *r)
{
	uint16_t command = vfu->header->command;

	if (command >= sizeof(commands) / sizeof(commands[0]) || !commands[command].handler)
		return -EOPNOTSUPP;
	if (vfu->versioned == (command == VERSION))
		return -EINVAL;		/* first of all, and once */
	if (vfu->n_fds && !commands[command].fds)
		return -EINVAL;
	return commands[command].handler(vfu, r);
}

static void close_fds(struct vfu *vfu)
{
	while (vfu->n_fds) {
		int fd = vfu->fds[--vfu->n_fds];

		if (fd >= 0)
			close(fd);
	}
}

static int serve_command(struct vfu *vfu)
{
	struct request r = {
		.data = vfu->in + sizeof(struct header),
		.size = vfu->header->size - sizeof(struct header),
		.reply = vfu->out,
		.reply_fd = -1,
	};
	int err = run_command(vfu, &r);

	close_fds(vfu);		/* close unused ones before the client goes on */
	if (err)
		log_limited("command %u of %u bytes: %s", vfu->header->command,
			    vfu->header->size, strerror(-err));
	if (vfu->header->flags & FLAG_NO_REPLY)
		return 0;
	return send_reply(vfu, &r, err);
}

/* ---------------------------------------------------------- receiving --- */

static int take_fds(struct vfu *vfu, struct msghdr *msg)
{
	struct cmsghdr *c;
	int err = msg->msg_flags & MSG_CTRUNC ? -EMSGSIZE : 0;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n, i;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (vfu->n_fds < MAX_FDS) {
				vfu->fds[vfu->n_fds++] = fd;
			} else {
				close(fd);
				err = -EMSGSIZE;
			}
		}
	}
	return err;
}

/* Some bytes of the message, up to size in all: 1 got some, 0 there are none, < 0 end. */
static int receive_bytes(struct vfu *vfu, size_t size)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
	} control;
	struct iovec iov = { vfu->in + vfu->have, size - vfu->have };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(vfu->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int err;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	err = take_fds(vfu, &msg);
	if (err) {
		log_msg("too many file descriptors in a message");
		return err;
	}
	if (!n) {
		if (vfu->have)
			log_msg("the client left in the middle of a message");
		return -EPIPE;
	}
	vfu->have += (size_t)n;
	return 1;
}

static int check_header(const struct header *h)
{
	uint32_t type = h->flags & TYPE_MASK;

	if (h->size >= sizeof(*h) && h->size <= MAX_MESSAGE &&
	    (type == TYPE_COMMAND || type == TYPE_REPLY))
		return 0;
	log_msg("bad message: command %u, size %u, flags %#x", h->command, h->size, h->flags);
	return -EPROTO;
}

static int dispatch(struct vfu *vfu)
{
	int err = 0;

	if ((vfu->header->flags & TYPE_MASK) == TYPE_REPLY)
		take_answer(vfu);
	else
		err = serve_command(vfu);
	close_fds(vfu);
	vfu->have = 0;
	return err;
}

int vfu_receive(struct vfu *vfu)
{
	int turns = 64;		/* then let the caller look at its other descriptors */

	while (turns) {
		size_t want = sizeof(struct header);
		int n;

		if (vfu->have >= want)
			want = vfu->header->size;
		n = receive_bytes(vfu, want);
		if (n <= 0)
			return n;
		if (vfu->have < sizeof(struct header))
			continue;
		n = check_header(vfu->header);
		if (!n && vfu->have == vfu->header->size) {
			n = dispatch(vfu);
			turns--;
		}
		if (n)
			return n;
	}
	return 0;
}

/* --------------------------------------------------------- connection --- */

void vfu_connect(struct vfu *vfu, int fd)
{
	vfu->fd = fd;
	vfu->have = 0;
	vfu->versioned = false;
	vfu->max_data = MAX_DATA;
	dma_set_open(vfu, true);
	log_debug("client connected");
}

/* Nothing of the client stays: no memory, no interrupt, no state of the function. */
void vfu_disconnect(struct vfu *vfu)
{
	if (vfu->fd < 0)
		return;
	dma_set_open(vfu, false);
	reset_function(vfu, DEVICE_RESET_HOST);
	host_unmap_all(vfu->host);
	irq_clear_all(&vfu->host->irq);
	intx_assign(&vfu->host->irq, -1);
	close_fds(vfu);
	close(vfu->fd);
	vfu->fd = -1;
	log_debug("client disconnected");
}

bool vfu_connected(const struct vfu *vfu)
{
	return vfu->fd >= 0;
}

int vfu_fd(const struct vfu *vfu)
{
	return vfu->fd;
}

static void link_changed(void *wire, bool up)
{
	struct vfu *vfu = wire;

	if (up)
		pci_reset(&vfu->pci);
	else
		host_set_master(vfu->host, false);
}

static const struct host_wire wire = { .dma = dma, .abort = abort_dma, .link = link_changed };

struct vfu *vfu_new(struct device *device, struct host *host, int end)
{
	struct vfu *vfu = calloc(1, sizeof(*vfu));
	pthread_condattr_t attr;

	if (!vfu)
		return NULL;
	vfu->in = malloc(MAX_MESSAGE);
	vfu->out = malloc(MAX_MESSAGE);
	if (!vfu->in || !vfu->out) {
		free(vfu->in);
		free(vfu->out);
		free(vfu);
		return NULL;
	}
	vfu->header = (struct header *)vfu->in;
	vfu->device = device;
	vfu->host = host;
	vfu->fd = -1;
	vfu->end = end;
	pthread_mutex_init(&vfu->send_lock, NULL);
	pthread_mutex_init(&vfu->dma_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&vfu->dma_cond, &attr);
	pthread_condattr_destroy(&attr);
	pci_init(&vfu->pci, device, host);
	host_set_wire(host, &wire, vfu);
	return vfu;
}

void vfu_free(struct vfu *vfu)
{
	vfu_disconnect(vfu);
	/* also what was begun while there was no client */
	reset_function(vfu, DEVICE_RESET_HOST);
	host_set_wire(vfu->host, NULL, NULL);
	pthread_cond_destroy(&vfu->dma_cond);
	pthread_mutex_destroy(&vfu->send_lock);
	pthread_mutex_destroy(&vfu->dma_lock);
	free(vfu->in);
	free(vfu->out);
	free(vfu);
}
