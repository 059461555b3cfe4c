// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: see rashpa.h */
#include <rashpa.h>
#include "lib/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define HUGE_PAGE	(UINT64_C(2) << 20)
#define GIANT_PAGE	(UINT64_C(1) << 30)
/* readings of a table that the kernel changes; it needs a few microseconds */
#define TABLE_TRIES	100000

/* the driver writes at most RASHPA_REASON_SIZE; sentences about files have a path */
static _Thread_local char reason[768];

const char *rashpa_reason(void)
{
	return reason;
}

int rashpa_fail(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return -error;
}

int librashpa_prefix(int error, const char *format, ...)
{
	char old[sizeof(reason)];
	va_list args;
	int n;

	memcpy(old, reason, sizeof(old));
	va_start(args, format);
	n = vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof(reason))
		snprintf(reason + n, sizeof(reason) - n, "%s", old);
	return error;
}

const char *rashpa_version(void)
{
	return RASHPA_VERSION;
}

const char *rashpa_device_directory(void)
{
	const char *dir = secure_getenv("RASHPA_DEV");

	return dir && *dir ? dir : "/dev/rashpa";
}

int rashpa_ioctl(int fd, unsigned long request, void *arg, size_t size)
{
	struct rashpa_head *head = arg;
	int error;

	reason[0] = '\0';
	head->size = size;
	head->reason = (uintptr_t)reason;
	head->reason_size = sizeof(reason);
	if (ioctl(fd, request, arg) >= 0)
		return 0;

	error = errno;
	if (error == ENOTTY)
		return fail(error, "this is not a rashpa node, or its driver is older than this library");
	if (!reason[0])
		fail(error, "%s", strerror(error));
	return -error;
}

static int open_node(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);
	int error = errno;

	if (fd >= 0)
		return fd;
	switch (error) {
	case ENOENT:
		return fail(error, "%s does not exist", path);
	case EACCES:
		return fail(error,
			    "%s may not be opened: become a member of the group rashpa, or root",
			    path);
	default:
		return fail(error, "%s: %s", path, strerror(error));
	}
}

/* After ENOENT: without the driver no node exists, so report that as the reason. */
static bool fail_unloaded(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/memory", rashpa_device_directory());
	if (!access(path, F_OK) || errno != ENOENT)
		return false;
	fail(ENOENT, "%s does not exist: load the driver (modprobe rashpa)", path);
	return true;
}

/* --- memory --- */

int rashpa_memory_open(void)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/memory", rashpa_device_directory());
	fd = open_node(path, O_RDWR);
	if (fd == -ENOENT)
		fail_unloaded();
	return fd;
}

int rashpa_node_list_sized(int node, struct rashpa_holding **holdings, size_t size)
{
	enum { STEP = 256 };
	struct rashpa_list list = {};
	char *all = NULL, *more;
	uint64_t after = 0;
	size_t n = 0;
	int error;

	*holdings = NULL;
	do {
		more = realloc(all, (n + STEP) * size);
		if (!more) {
			free(all);
			return fail(ENOMEM, "no memory for %zu holdings", n + STEP);
		}
		all = more;
		list = (struct rashpa_list) {
			.holdings = (uintptr_t)(all + n * size), .n_holdings = STEP,
			.holding_size = size, .after = after,
		};
		error = rashpa_ioctl(node, RASHPA_IOC_LIST, &list, sizeof(list));
		if (error) {
			free(all);
			return error;
		}
		n += list.out_holdings;
		if (n)
			after = ((struct rashpa_holding *)(all + (n - 1) * size))->serial;
	} while (list.out_count > list.out_holdings);
	if (!n) {
		free(all);
		all = NULL;
	}
	*holdings = (struct rashpa_holding *)all;
	return n;
}

/*
 * mmap() itself does not know the memory's alignment. So reserve more addresses than needed, and
 * keep the part that begins where a huge entry can.
 */
static void *map_aligned(int fd, uint64_t offset, uint64_t length, int prot)
{
	/* the address space of 32 bits has no room for that */
	const uint64_t align = length % GIANT_PAGE || sizeof(void *) < 8 ? HUGE_PAGE : GIANT_PAGE;
	uint64_t page = sysconf(_SC_PAGESIZE), skip;
	size_t room;
	char *base, *at;

	if (__builtin_add_overflow(length, align + page, &room)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	/* The kernel maps whole pages: the rest of the last one is not ours to unmap. */
	length = (length + page - 1) & -page;
	room = length + align;
	base = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return base;
	skip = (offset - (uintptr_t)base) & (align - 1);
	at = mmap(base + skip, length, prot, MAP_SHARED | MAP_FIXED, fd, offset);
	if (at == MAP_FAILED) {
		int error = errno;

		munmap(base, room);
		errno = error;
		return at;
	}
	if (skip)
		munmap(base, skip);
	munmap(at + length, room - skip - length);
	return at;
}

int rashpa_mmap(int fd, uint64_t offset, uint64_t length, int prot, void **address)
{
	void *p = length < HUGE_PAGE ? mmap(NULL, length, prot, MAP_SHARED, fd, offset) :
				       map_aligned(fd, offset, length, prot);

	*address = NULL;
	if (p == MAP_FAILED)
		return fail(errno, "cannot map %llu bytes at offset %llu: %s",
			    (unsigned long long)length, (unsigned long long)offset,
			    strerror(errno));
	*address = p;
	return 0;
}

static int synchronise(int dmabuf, int prot, uint64_t which)
{
	struct dma_buf_sync sync = { .flags = which };

	if (!prot || prot & ~(PROT_READ | PROT_WRITE))
		return fail(EINVAL, "PROT_READ, PROT_WRITE or both, not %#x", prot);
	if (prot & PROT_READ)
		sync.flags |= DMA_BUF_SYNC_READ;
	if (prot & PROT_WRITE)
		sync.flags |= DMA_BUF_SYNC_WRITE;
	while (ioctl(dmabuf, DMA_BUF_IOCTL_SYNC, &sync)) {
		if (errno == EINTR || errno == EAGAIN)
			continue;
		if (errno == ENOTTY)
			return fail(errno, "this is not a dma-buf");
		return fail(errno, "cannot synchronise the memory: %s", strerror(errno));
	}
	return 0;
}

int rashpa_sync_begin(int dmabuf, int prot)
{
	return synchronise(dmabuf, prot, DMA_BUF_SYNC_START);
}

int rashpa_sync_end(int dmabuf, int prot)
{
	return synchronise(dmabuf, prot, DMA_BUF_SYNC_END);
}

/* --- buffers --- */

/* Name the process with the exclusive lease. That question needs no lease. */
static int fail_leased(const char *name, const char *path)
{
	struct rashpa_info info = { .fd = -1 };
	int fd = open(path, O_ACCMODE | O_CLOEXEC);
	bool told = fd >= 0 && !rashpa_memory_get_info(fd, &info) &&
		    info.out_flags & RASHPA_INFO_EXCLUSIVE;

	if (fd >= 0)
		close(fd);
	if (!told)
		return fail(EBUSY, "the buffer \"%s\" is in use: another process has an exclusive lease of it",
			    name);
	return fail(EBUSY, "the buffer \"%s\" is in use: process %d of user %u has an exclusive lease of it",
		    name, info.out_lease_pid, info.out_lease_uid);
}

int rashpa_buffer_open(const char *name, int flags)
{
	char path[PATH_MAX];
	int fd;

	/* A name is one file in one directory, whatever the caller was given. */
	if (!*name || *name == '.' || strchr(name, '/'))
		return fail(EINVAL, "\"%s\" is not the name of a buffer", name);
	if (strlen(name) >= RASHPA_NAME_SIZE)
		return fail(ENAMETOOLONG, "the name \"%s\" is longer than %d characters", name,
			    RASHPA_NAME_SIZE - 1);
	snprintf(path, sizeof(path), "%s/buffer/%s", rashpa_device_directory(), name);
	fd = open_node(path, flags);
	if (fd == -ENOENT && !fail_unloaded())
		fail(ENOENT, "there is no buffer \"%s\": make it (rashpactl buffer create %s SIZE)",
		     name, name);
	if (fd == -EACCES)
		fail(EACCES, "the buffer \"%s\" may not be opened: its owner can permit it (chown, chmod, or rashpactl buffer permit)",
		     name);
	if (fd == -EBUSY && flags & O_EXCL)
		fail(EBUSY, "the buffer \"%s\" is in use: an exclusive lease requires that no other process has it open",
		     name);
	else if (fd == -EBUSY)
		fail_leased(name, path);
	return fd;
}

int rashpa_buffer_dmabuf(int buffer)
{
	struct rashpa_export arg = {};
	int error = rashpa_ioctl(buffer, RASHPA_IOC_EXPORT, &arg, sizeof(arg));

	return error ? error : arg.out_fd;
}

static int is_buffer(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int rashpa_open(const char *name, int flags)
{
	int buffer = rashpa_buffer_open(name, flags), fd;

	if (buffer < 0)
		return buffer;
	fd = rashpa_buffer_dmabuf(buffer);
	close(buffer);
	return fd;
}

int rashpa_buffer_remove(const char *name)
{
	struct rashpa_remove arg = {};
	int buffer = rashpa_buffer_open(name, O_ACCMODE), error;

	/* its owner need not be allowed to write */
	if (buffer == -EACCES)
		buffer = rashpa_buffer_open(name, O_RDONLY);
	if (buffer < 0)
		return buffer;
	error = rashpa_ioctl(buffer, RASHPA_IOC_REMOVE, &arg, sizeof(arg));
	close(buffer);
	return error;
}

int rashpa_buffer_list(char ***names)
{
	struct dirent **entries;
	char path[PATH_MAX];
	char **list;
	int i, n;

	*names = NULL;
	snprintf(path, sizeof(path), "%s/buffer", rashpa_device_directory());
	n = scandir(path, &entries, is_buffer, versionsort);
	/* the folder goes with the last one */
	if (n < 0 && errno == ENOENT)
		return fail_unloaded() ? -ENOENT : 0;
	if (n < 0)
		return fail(errno, "%s: %s", path, strerror(errno));
	list = calloc(n + 1, sizeof(*list));
	for (i = 0; i < n; i++) {
		if (list)
			list[i] = strdup(entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	for (i = 0; list && i < n; i++) {
		if (list[i])
			continue;
		rashpa_buffer_list_free(list, n);
		list = NULL;
	}
	if (!list)
		return fail(ENOMEM, "no memory for the list of buffers");
	*names = list;
	return n;
}

void rashpa_buffer_list_free(char **names, int count)
{
	for (int i = 0; names && i < count; i++)
		free(names[i]);
	free(names);
}

/* --- bound PCI functions --- */

static int is_device(const struct dirent *entry)
{
	unsigned int number;
	int end = 0;

	return sscanf(entry->d_name, "fpga%u%n", &number, &end) == 1 && !entry->d_name[end];
}

int rashpa_device_list(unsigned int **numbers)
{
	struct dirent **entries;
	const char *path = rashpa_device_directory();
	unsigned int *list;
	int i, n;

	*numbers = NULL;
	n = scandir(path, &entries, is_device, versionsort);
	if (n < 0 && errno == ENOENT)
		return fail_unloaded() ? -ENOENT : 0;
	if (n < 0)
		return fail(errno, "%s: %s", path, strerror(errno));
	list = calloc(n + 1, sizeof(*list));
	for (i = 0; i < n; i++) {
		if (list)
			list[i] = strtoul(entries[i]->d_name + strlen("fpga"), NULL, 10);
		free(entries[i]);
	}
	free(entries);
	if (!list)
		return fail(ENOMEM, "no memory for the list of devices");
	*numbers = list;
	return n;
}

int rashpa_device_open(unsigned int number)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/fpga%u", rashpa_device_directory(), number);
	fd = open_node(path, O_RDWR);
	if (fd == -ENOENT && !fail_unloaded())
		fail(ENOENT, "%s does not exist: bind a function (rashpactl list, rashpactl bind)",
		     path);
	return fd;
}

int rashpa_memory_alloc_for_sized(int memory, int device, struct rashpa_alloc *alloc, size_t size)
{
	struct rashpa_device_info info;
	int error = rashpa_device_get_info(device, &info);

	if (error)
		return error;
	alloc->dma_bits = info.out_flags & RASHPA_DEVICE_IOMMU ? 0 : info.out_dma_bits;
	error = -ENOMEM;
	if (info.out_node >= 0 && !(alloc->head.flags & RASHPA_ALLOC_NODE)) {
		alloc->head.flags |= RASHPA_ALLOC_NODE;
		alloc->node = info.out_node;
		error = rashpa_ioctl(memory, RASHPA_IOC_ALLOC, alloc, size);
		alloc->head.flags &= ~RASHPA_ALLOC_NODE;
		alloc->node = 0;
	}
	/* the node may have no memory, or not enough */
	if (error == -ENOMEM || error == -EINVAL)
		error = rashpa_ioctl(memory, RASHPA_IOC_ALLOC, alloc, size);
	return error ? error : alloc->out_fd;
}

int rashpa_table_map(int map, uint64_t size, const struct rashpa_table **table)
{
	void *address = mmap(NULL, size, PROT_READ, MAP_SHARED, map, 0);

	*table = NULL;
	if (address == MAP_FAILED && (errno == EPERM || errno == EACCES))
		return fail(EPERM, "the addresses are not disclosed: CAP_SYS_RAWIO or a profile with \"disclose\" is needed");
	if (address == MAP_FAILED)
		return fail(errno, "cannot map the table of addresses: %s", strerror(errno));
	*table = address;
	return 0;
}

void rashpa_table_unmap(const struct rashpa_table *table, uint64_t size)
{
	if (table)
		munmap((void *)(uintptr_t)table, size);
}

/* All readings are atomic: the compiler must neither tear nor repeat them. */
#define READ(field)	__atomic_load_n(&(field), __ATOMIC_RELAXED)

static uint32_t table_copy(const struct rashpa_table *table, struct rashpa_table *copy,
			   uint32_t room, size_t size)
{
	/* A later kernel may have larger segments than this library knows. */
	const uint32_t stride = READ(table->segment_size);
	const char *at = (const char *)table->segment;
	char *to = (char *)copy->segment;
	uint32_t n;

	*copy = (struct rashpa_table) {
		.state = READ(table->state),
		.map_class = READ(table->map_class),
		.count = READ(table->count),
		.segment_size = size,
	};
	n = copy->count < room ? copy->count : room;
	for (uint32_t i = 0; i < n; i++, at += stride, to += size) {
		const struct rashpa_segment *from = (const void *)at;
		const struct rashpa_segment segment = {
			.address = READ(from->address), .length = READ(from->length),
		};

		sized_copy(to, size, &segment, sizeof(segment));
	}
	return copy->count;
}

int rashpa_table_read_sized(const struct rashpa_table *table, struct rashpa_table *copy,
			    uint32_t room, size_t size)
{
	uint64_t before;
	uint32_t count;

	for (unsigned int i = 0; i < TABLE_TRIES; i++) {
		before = __atomic_load_n(&table->generation, __ATOMIC_ACQUIRE);
		if (!(before & 1)) {
			count = table_copy(table, copy, room, size);
			/* The copy is complete before the generation is read again. */
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			copy->generation = READ(table->generation);
			if (copy->generation == before)
				return count;
		}
		sched_yield();
	}
	return fail(EAGAIN, "the table of addresses is being changed all the time");
}

#undef READ

int rashpa_device_quiesce(int device, uint64_t *time_ns)
{
	struct rashpa_quiesce arg = {};
	int error = rashpa_ioctl(device, RASHPA_IOC_QUIESCE, &arg, sizeof(arg));

	if (!error && time_ns)
		*time_ns = arg.out_time_ns;
	return error;
}

int rashpa_device_quiesce_map(int device, uint32_t id)
{
	struct rashpa_quiesce arg = { .head.flags = RASHPA_QUIESCE_MAP, .map = id };

	return rashpa_ioctl(device, RASHPA_IOC_QUIESCE, &arg, sizeof(arg));
}

int rashpa_device_reset(int device)
{
	struct rashpa_reset arg = {};

	return rashpa_ioctl(device, RASHPA_IOC_RESET, &arg, sizeof(arg));
}

/* --- events --- */

int rashpa_channel_open(int node, unsigned int depth)
{
	struct rashpa_channel_make arg = { .depth = depth };

	return rashpa_channel_create(node, &arg);
}

int rashpa_memory_look(int memory, int fd)
{
	struct rashpa_look arg = { .fd = fd };
	int error = rashpa_ioctl(memory, RASHPA_IOC_LOOK, &arg, sizeof(arg));

	return error ? error : (int)arg.out_events;
}

int rashpa_channel_add(int channel, unsigned int kind, unsigned int index)
{
	struct rashpa_source_add arg = {
		.kind = kind, .index = index, .device = -1, .memory = -1,
	};

	return rashpa_channel_listen(channel, &arg);
}

int rashpa_channel_del(int channel, unsigned int id)
{
	struct rashpa_source_del arg = { .id = id };

	return rashpa_ioctl(channel, RASHPA_IOC_SOURCE_DEL, &arg, sizeof(arg));
}

int rashpa_channel_ack(int channel, unsigned int id, uint64_t position)
{
	struct rashpa_ack arg = { .id = id, .position = position };

	return rashpa_ioctl(channel, RASHPA_IOC_ACK, &arg, sizeof(arg));
}

int rashpa_channel_eventfd(int channel, unsigned int id, int fd)
{
	struct rashpa_eventfd_bind arg = { .fd = fd, .id = id };

	return rashpa_ioctl(channel, RASHPA_IOC_EVENTFD_BIND, &arg, sizeof(arg));
}

int rashpa_channel_signal(int channel, uint64_t value)
{
	struct rashpa_signal arg = { .value = value };

	return rashpa_ioctl(channel, RASHPA_IOC_SIGNAL, &arg, sizeof(arg));
}

int rashpa_channel_arm(int channel, unsigned int id)
{
	struct rashpa_arm arg = { .id = id };
	int error = rashpa_ioctl(channel, RASHPA_IOC_ARM, &arg, sizeof(arg));

	return error ? error : (int)arg.out_events;
}

/* --- names --- */

static const char *pick(const char *const *names, size_t count, unsigned int n)
{
	return n < count && names[n] ? names[n] : "?";
}

#define NAMES(function, ...)						\
	const char *function(unsigned int n)				\
	{								\
		static const char *const names[] = { __VA_ARGS__ };	\
									\
		return pick(names, ARRAY_SIZE(names), n);		\
	}

NAMES(rashpa_backend_name, "auto", "cma", "contig", "huge")
NAMES(rashpa_cache_name, "default", "cached", "wc", "uc")
NAMES(rashpa_direction_name, "both", "to-memory", "from-memory")
NAMES(rashpa_class_name, NULL, "host", "iova", "peer", "bridge")
NAMES(rashpa_map_state_name, NULL, "valid", "revoked")
NAMES(rashpa_resource_name, NULL, "memory", "name", "window", "map", "channel", "source", "timer")
NAMES(rashpa_kind_name, NULL, "buffer", "window", "foreign", "pinned", "lock")
NAMES(rashpa_source_name, NULL, "vector", "device", "software", "lock", "map", "group", "overrun",
      "full")
NAMES(rashpa_condition_name, NULL, "changed", "equal", "reached")
NAMES(rashpa_device_event_name, NULL, "quiesced", "reset", "stuck", "gone", "error",
      "engine stopped")
NAMES(rashpa_state_name, "ready", "stuck")
