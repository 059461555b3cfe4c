// SPDX-License-Identifier: LGPL-2.1-or-later
/* Helpers that all tests share: calls with their reasons, buffers, the software FPGA. */
#include <dirent.h>
#include <grp.h>
#include <linux/udmabuf.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include <rashpa-fpga.h>
#include "common.h"

char reason[RASHPA_REASON_SIZE];
int memory = -1;

/* ------------------------------------------------------------- calls ---- */

int call(int fd, unsigned long cmd, void *arg)
{
	struct rashpa_head *head = arg;

	memset(reason, 0, sizeof(reason));
	head->reason = (uintptr_t)reason;
	head->reason_size = sizeof(reason);
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

static bool says_all(const char *text, const char *says)
{
	char copy[256], *rest = copy, *word;

	snprintf(copy, sizeof(copy), "%s", says);
	while ((word = strsep(&rest, "|")))
		if (!strstr(text, word))
			return false;
	return true;
}

bool answered(const char *file, int line, int got, int want, const char *says)
{
	bool ok = true;

	if (got != -want) {
		tap_fail(file, line, "answer %d (%s), expected %d (%s), reason \"%s\"", -got,
			 strerror(got < 0 ? -got : 0), want, strerror(want), reason);
		ok = false;
	}
	if (says && want && (!reason[0] || !says_all(reason, says))) {
		tap_fail(file, line, "reason \"%s\" does not name \"%s\"", reason, says);
		ok = false;
	}
	return ok;
}

bool read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return false;
	buf[n] = '\0';
	return true;
}

bool read_text(const char *path, char *buf, size_t size)
{
	if (!read_file(path, buf, size))
		return false;
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

long read_kib(const char *path, const char *key)
{
	const size_t length = strlen(key);
	char line[128];
	long kib = -1;
	FILE *f = fopen(path, "re");

	while (f && kib < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, length) && line[length] == ':')
			kib = strtol(line + length + 1, NULL, 10);
	if (f)
		fclose(f);
	return kib;
}

bool read_fdinfo(int fd, char *buf, size_t size)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return read_file(path, buf, size);
}

int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

unsigned int fds_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	if (!dir)
		tap_bail("/proc/self/fd cannot be read");
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

u64 bytes_allocated(void)
{
	struct rashpa_limit limit = { HEAD(limit), .resource = RASHPA_RESOURCE_MEMORY };

	if (ioctl(memory, RASHPA_IOC_LIMIT, &limit))
		tap_bail("LIMIT: %s", strerror(errno));
	return limit.out_used;
}

long page_faults(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return r.ru_minflt + r.ru_majflt;
}

u64 ram_bytes(void)
{
	return (u64)sysconf(_SC_PHYS_PAGES) * PAGE;
}

void param_set(const char *name, unsigned int value)
{
	char path[96], text[16];

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	snprintf(text, sizeof(text), "%u", value);
	if (write_text(path, text))
		tap_bail("%s cannot be set", name);
}

void become_user(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		tap_bail("privileges cannot be dropped");
}

void drop_privileges(void)
{
	become_user(65534);
}

void p2p_bridge(const char *policy)
{
	if (write_text(PARAMETERS "p2p_bridge", policy))
		tap_bail("p2p_bridge cannot be set");
}

static struct {
	char path[96], value[32];
} parameters[64];

void parameters_keep(void)
{
	DIR *dir = opendir(PARAMETERS);
	struct dirent *entry;
	size_t n = 0;

	while (dir && n < ARRAY_SIZE(parameters) && (entry = readdir(dir))) {
		snprintf(parameters[n].path, sizeof(parameters[n].path), PARAMETERS "%.48s",
			 entry->d_name);
		n += entry->d_name[0] != '.' &&
		     read_text(parameters[n].path, parameters[n].value,
			       sizeof(parameters[n].value));
	}
	if (dir)
		closedir(dir);
}

void parameters_restore(void)
{
	char now[sizeof(parameters[0].value)];
	size_t n;

	for (n = 0; n < ARRAY_SIZE(parameters) && parameters[n].value[0]; n++)
		if (read_text(parameters[n].path, now, sizeof(now)) &&
		    strcmp(now, parameters[n].value))
			write_text(parameters[n].path, parameters[n].value);
}

/* --- nothing may change --- */

static unsigned int fds_before;
static u64 allocated_before;
static bool others_work;

/* the bound functions that are watched */
static struct {
	const struct fpga *f;
	struct rashpa_device_info info;
} watched[2];

void not_alone(void)
{
	others_work = true;
}

static void remember(void)
{
	size_t i;

	fds_before = fds_open();
	allocated_before = bytes_allocated();
	for (i = 0; i < ARRAY_SIZE(watched); i++)
		if (watched[i].f && fpga_info(watched[i].f, &watched[i].info))
			tap_bail("DEVICE_INFO: %s", reason);
}

static void compare(void)
{
	struct rashpa_device_info info;
	size_t i;

	CHECK(fds_open() == fds_before, "%u file descriptors before, %u after",
	      fds_before, fds_open());
	CHECK(others_work || bytes_allocated() == allocated_before,
	      "%llu bytes allocated before, %llu after", allocated_before, bytes_allocated());
	for (i = 0; i < ARRAY_SIZE(watched); i++) {
		if (!watched[i].f)
			continue;
		if (!CHECK(!fpga_info(watched[i].f, &info), "DEVICE_INFO: %s", reason))
			continue;
		CHECK(info.out_maps == watched[i].info.out_maps, "%u maps before, %u after",
		      watched[i].info.out_maps, info.out_maps);
		CHECK(info.out_windows == watched[i].info.out_windows,
		      "%u windows before, %u after", watched[i].info.out_windows, info.out_windows);
		CHECK(info.out_state == RASHPA_STATE_READY, "the function is stuck");
	}
}

/* Named buffers of a test that has died. */
static void remove_left(void)
{
	DIR *dir = opendir("/dev/rashpa/buffer");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, "st-", 3))
			buffer_remove(entry->d_name);
	if (dir)
		closedir(dir);
}

void common_init(void)
{
	memory = open("/dev/rashpa/memory", O_RDWR | O_CLOEXEC);
	if (memory < 0 && errno == ENOENT)
		tap_skip_all("the module rashpa is not loaded (modprobe rashpa)");
	if (memory < 0)
		tap_bail("/dev/rashpa/memory: %s (are you root?)", strerror(errno));
	remove_left();
	tap_before = remember;
	tap_after = compare;
}

__attribute__((constructor)) static void init_tests(void)
{
	tap_init = common_init;
	tap_begin = parameters_keep;
	tap_restore = parameters_restore;
}

/* ----------------------------------------------------------- buffers ---- */

int buffer_alloc(u64 length, const char *name)
{
	struct rashpa_alloc a = { HEAD(a), .length = length,
				  .backend = RASHPA_BACKEND_CONTIG };

	if (name)
		snprintf(a.name, sizeof(a.name), "%s", name);
	if (call(memory, RASHPA_IOC_ALLOC, &a))
		tap_bail("ALLOC: %s", reason);
	return a.out_fd;
}

int buffer_remove(const char *name)
{
	struct rashpa_remove r = { HEAD(r) };
	int node = buffer_node(name, O_ACCMODE), err;

	if (node < 0)
		return -errno;
	err = call(node, RASHPA_IOC_REMOVE, &r);
	close(node);
	return err;
}

void buffer_end(int fd, const char *name)
{
	close(fd);
	ANSWERED(buffer_remove(name), 0, NULL);
}

int buffer_open(const char *name, int flags)
{
	struct rashpa_export e = { HEAD(e) };
	int node = buffer_node(name, flags), err;

	if (node < 0)
		return -errno;
	err = call(node, RASHPA_IOC_EXPORT, &e);
	close(node);
	return err ?: e.out_fd;
}

int buffer_permit(const char *name, int uid, int gid, int mode)
{
	char path[128];

	snprintf(path, sizeof(path), "/dev/rashpa/buffer/%s", name);
	if (chown(path, uid, gid) || (mode >= 0 && chmod(path, mode)))
		return -errno;
	return 0;
}

int lock_alloc(u64 slots, const char *name, struct rashpa_alloc *alloc)
{
	*alloc = (struct rashpa_alloc) {
		HEAD(*alloc), .length = slots * RASHPA_LOCK_SLOT, .out_fd = -1,
	};
	alloc->head.flags = RASHPA_ALLOC_LOCK;
	if (name)
		snprintf(alloc->name, sizeof(alloc->name), "%s", name);
	return call(memory, RASHPA_IOC_ALLOC, alloc);
}

int buffer_node(const char *name, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "/dev/rashpa/buffer/%s", name);
	return open(path, flags | O_CLOEXEC);
}

int buffer_info(int fd, struct rashpa_info *info)
{
	memset(info, 0, sizeof(*info));
	info->head.size = sizeof(*info);
	info->fd = fd;
	return call(memory, RASHPA_IOC_INFO, info);
}

bool cma_here(void)
{
	struct rashpa_query q = { HEAD(q), .backend = RASHPA_BACKEND_CMA };

	return !ioctl(memory, RASHPA_IOC_QUERY, &q);
}

void *map_fd(int fd, u64 length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		tap_bail("mmap of %llu bytes: %s, %s", length, strerror(errno), reason);
	return p;
}

void unmap_fd(void *p, u64 length, int fd)
{
	munmap(p, length);
	close(fd);
}

void fill(void *p, size_t length, u64 seed)
{
	u64 *word = p;
	size_t i;

	for (i = 0; i < length / sizeof(*word); i++)
		word[i] = (i + seed) * 0x9e3779b97f4a7c15ULL;
}

bool filled(const void *p, size_t length, u64 seed)
{
	const u64 *word = p;
	size_t i;

	for (i = 0; i < length / sizeof(*word); i++)
		if (word[i] != (i + seed) * 0x9e3779b97f4a7c15ULL)
			return false;
	return true;
}

bool all_zero(const void *p, size_t length)
{
	const u64 *word = p;
	u64 any = 0;
	size_t i;

	for (i = 0; i < length / sizeof(*word); i++)
		any |= word[i];
	return !any;
}

void pfns_of(const void *p, u64 *pfns, size_t n)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t size = n * sizeof(*pfns), i;

	/* the first access makes the entries; not those of registers, which have them */
	madvise((void *)((uintptr_t)p & -(uintptr_t)PAGE), n * PAGE, MADV_POPULATE_READ);
	if (pread(fd, pfns, size, (uintptr_t)p / PAGE * sizeof(*pfns)) != (ssize_t)size)
		memset(pfns, 0, size);
	close(fd);
	for (i = 0; i < n; i++)
		pfns[i] = pfns[i] >> 63 ? pfns[i] & ((1ULL << 55) - 1) : 0;
}

u64 pfn_of(const void *p)
{
	u64 pfn;

	pfns_of(p, &pfn, 1);
	return pfn;
}

int foreign_dmabuf(u64 length)
{
	struct udmabuf_create create = { .size = length };
	int dev, fd;

	if (access("/dev/udmabuf", F_OK) && system("modprobe -q udmabuf"))
		return -1;
	dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return -1;
	create.memfd = memfd_create("foreign", MFD_ALLOW_SEALING);
	if (ftruncate(create.memfd, length) || fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		tap_bail("memfd: %s", strerror(errno));
	create.flags = UDMABUF_FLAGS_CLOEXEC;
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	close(create.memfd);
	close(dev);
	return fd;
}

/* ------------------------------------------------------------- FPGA ----- */

#define PCI_DEVICES	"/sys/bus/pci/devices"
#define PCI_DRIVER	"/sys/bus/pci/drivers/rashpa"

static bool has_ids(const char *bdf, unsigned int vendor_id, unsigned int device_id)
{
	char path[128], vendor[16], device[16];

	snprintf(path, sizeof(path), PCI_DEVICES "/%.16s/vendor", bdf);
	if (!read_text(path, vendor, sizeof(vendor)))
		return false;
	snprintf(path, sizeof(path), PCI_DEVICES "/%.16s/device", bdf);
	return read_text(path, device, sizeof(device)) &&
	       strtoul(vendor, NULL, 16) == vendor_id &&
	       strtoul(device, NULL, 16) == device_id;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static bool find_bdf(struct fpga *f, unsigned int vendor, unsigned int device, unsigned int nth)
{
	struct dirent **list;
	int i, n = scandir(PCI_DEVICES, &list, NULL, by_name);
	bool found = false;

	for (i = 0; i < n; i++) {
		if (!found && has_ids(list[i]->d_name, vendor, device) && !nth--) {
			snprintf(f->bdf, sizeof(f->bdf), "%.15s", list[i]->d_name);
			found = true;
		}
		free(list[i]);
	}
	free(list);
	return found;
}

/* N of the fpgaN that the function is bound as, or -1. */
static int find_index(const struct fpga *f)
{
	char path[64];
	struct dirent *entry;
	int index = -1;
	DIR *dir;

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/rashpa", f->bdf);
	dir = opendir(path);
	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		if (sscanf(entry->d_name, "fpga%d", &index) == 1)
			break;
	closedir(dir);
	return index;
}

int fpga_bind(const struct fpga *f)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/driver_override", f->bdf);
	err = write_text(path, "rashpa");
	return err ? err : write_text(PCI_DRIVER "/bind", f->bdf);
}

int fpga_unbind(const struct fpga *f)
{
	char path[64];
	int err;

	/* otherwise the module binds it again when it is loaded */
	snprintf(path, sizeof(path), PCI_DEVICES "/%s/driver_override", f->bdf);
	err = write_text(path, "\n");
	return err ? err : write_text(PCI_DRIVER "/unbind", f->bdf);
}

static void watch(const struct fpga *f, bool on)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(watched); i++) {
		if (watched[i].f == (on ? NULL : f)) {
			watched[i].f = on ? f : NULL;
			return;
		}
	}
}

static void open_node(struct fpga *f)
{
	char path[48];
	int err;

	f->index = find_index(f);
	if (f->index < 0) {
		err = fpga_bind(f);
		if (err)
			tap_bail("bind of %s: %s", f->bdf, strerror(-err));
		f->index = find_index(f);
	}
	snprintf(f->name, sizeof(f->name), "fpga%d", f->index);
	snprintf(path, sizeof(path), "/dev/rashpa/%s", f->name);
	f->fd = open(path, O_RDWR | O_CLOEXEC);
	if (f->fd < 0)
		tap_bail("%s: %s", path, strerror(errno));
}

bool function_open(struct fpga *f, unsigned int vendor, unsigned int device, unsigned int nth)
{
	if (!find_bdf(f, vendor, device, nth))
		return false;
	open_node(f);
	return true;
}

bool fpga_open(struct fpga *f, unsigned int nth)
{
	return function_open(f, RFPGA_PCI_VENDOR, RFPGA_PCI_DEVICE, nth);
}

/* Is it still as with_profile() left it? */
static bool has_profile(const struct fpga *f)
{
	struct rashpa_device_info info;
	const uint32_t flags = RASHPA_DEVICE_PROFILE | RASHPA_DEVICE_DISCLOSE | RASHPA_DEVICE_FETCH;

	return !fpga_info(f, &info) && (info.out_flags & flags) == RASHPA_DEVICE_PROFILE &&
	       info.out_dma_bits == 64 && !info.out_engines &&
	       info.out_state == RASHPA_STATE_READY;
}

/* A reset takes time, and so does the table: only where something may have changed. */
static void with_profile(struct fpga *f)
{
	if ((tap_fresh || !has_profile(f)) && fpga_profile(f, 0, NULL, 0))
		tap_bail("profile: %s", reason);
	fpga_watch(f);
}

bool fpga_try(struct fpga *f, unsigned int nth)
{
	f->fd = -1;
	if (!fpga_open(f, nth))
		return false;
	with_profile(f);
	return true;
}

void fpga_need(struct fpga *f)
{
	if (!fpga_try(f, 0))
		tap_skip_all("no software FPGA");
}

void fpga_again(struct fpga *f)
{
	fpga_close(f);
	open_node(f);
	with_profile(f);
}

bool fpga_iommu(const struct fpga *f)
{
	struct rashpa_device_info info;

	if (fpga_info(f, &info))
		tap_bail("DEVICE_INFO: %s", reason);
	return info.out_flags & RASHPA_DEVICE_IOMMU;
}

void fpga_watch(const struct fpga *f)
{
	watch(f, true);
}

void fpga_close(struct fpga *f)
{
	watch(f, false);
	close(f->fd);
	f->fd = -1;
}

int fpga_info(const struct fpga *f, struct rashpa_device_info *info)
{
	memset(info, 0, sizeof(*info));
	info->head.size = sizeof(*info);
	return call(f->fd, RASHPA_IOC_DEVICE_INFO, info);
}

bool fpga_is_master(const struct fpga *f)
{
	struct rashpa_device_info info;

	return !fpga_info(f, &info) && info.out_flags & RASHPA_DEVICE_MASTER;
}

const struct rashpa_profile_step fpga_stop[2] = {
	{ .op = RASHPA_STEP_WRITE, .bar = RFPGA_BAR_REGS, .offset = RFPGA_CONTROL,
	  .value = RFPGA_CONTROL_STOP, .mask = ~0U },
	{ .op = RASHPA_STEP_WAIT, .bar = RFPGA_BAR_REGS, .offset = RFPGA_STATUS,
	  .mask = RFPGA_STATUS_BUSY, .timeout_us = 1000000 },
};

int fpga_profile(const struct fpga *f, uint32_t flags,
		 const struct rashpa_profile_window *windows, uint32_t n)
{
	struct rashpa_profile_set p = { HEAD(p), ARRAY(window, windows, n),
					STEPS(fpga_stop), TABLE(fpga_table), .dma_bits = 64 };

	p.head.flags = flags;
	return call(f->fd, RASHPA_IOC_PROFILE_SET, &p);
}

int fpga_profile_none(const struct fpga *f)
{
	struct rashpa_profile_set p = { HEAD(p) };

	return call(f->fd, RASHPA_IOC_PROFILE_SET, &p);
}

int fpga_quiesce(const struct fpga *f)
{
	struct rashpa_quiesce quiesce = { HEAD(quiesce) };

	return call(f->fd, RASHPA_IOC_QUIESCE, &quiesce);
}

int fpga_reset(const struct fpga *f)
{
	struct rashpa_reset reset = { HEAD(reset) };

	return call(f->fd, RASHPA_IOC_RESET, &reset);
}

int fpga_window(const struct fpga *f, uint32_t bar, u64 offset, u64 length, uint32_t cache)
{
	struct rashpa_window_make w = { HEAD(w), .bar = bar, .cache = cache,
				   .offset = offset, .length = length };
	int err = call(f->fd, RASHPA_IOC_WINDOW_MAKE, &w);

	return err ? err : w.out_fd;
}

char *fpga_regs(const struct fpga *f)
{
	int window = fpga_window(f, RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
	char *regs = map_fd(window, RFPGA_BAR_REGS_SIZE);

	close(window);
	return regs;
}

int fpga_map(const struct fpga *f, int memory_fd, uint32_t direction, struct rashpa_map_make *map)
{
	int err;

	memset(map, 0, sizeof(*map));
	map->head.size = sizeof(*map);
	map->fd = memory_fd;
	map->direction = direction;
	err = call(f->fd, RASHPA_IOC_MAP_MAKE, map);
	return err ? err : map->out_fd;
}

struct rashpa_map_make default_map(int fd)
{
	return (struct rashpa_map_make) { HEAD(struct rashpa_map_make), .fd = fd, .out_fd = -7 };
}

const struct rashpa_table *table_of(const struct rashpa_map_make *map)
{
	void *p = mmap(NULL, map->out_table_size, PROT_READ, MAP_SHARED, map->out_fd, 0);

	if (p == MAP_FAILED)
		tap_bail("mmap of the table: %s", strerror(errno));
	return p;
}

void table_seen(const struct rashpa_map_make *map)
{
	munmap((void *)table_of(map), map->out_table_size);
}

int map_restore(int map)
{
	struct rashpa_restore restore = { HEAD(restore) };

	return call(map, RASHPA_IOC_RESTORE, &restore);
}

int fpga_events(const struct fpga *f, uint32_t depth)
{
	struct rashpa_channel_make e = { HEAD(e), .depth = depth };
	int err = call(f->fd, RASHPA_IOC_CHANNEL_MAKE, &e);

	return err ? err : e.out_fd;
}

int fpga_listen(const struct fpga *f, uint32_t depth, uint32_t kind, uint32_t index)
{
	int ch = fpga_events(f, depth);

	CHECK(ch >= 0 && source_add(ch, kind, index) == 1, "a channel: %s", reason);
	fcntl(ch, F_SETFL, O_NONBLOCK);
	return ch;
}

int memory_channel(void)
{
	struct rashpa_channel_make m = { HEAD(m) };

	if (!CHECK(!call(memory, RASHPA_IOC_CHANNEL_MAKE, &m), "CHANNEL_MAKE: %s", reason))
		return -1;
	fcntl(m.out_fd, F_SETFL, O_NONBLOCK);
	return m.out_fd;
}

const struct rashpa_layout fpga_layout = RFPGA_LAYOUT;

struct rashpa_profile_table fpga_table = {
	.bar = RFPGA_BAR_REGS, .offset = RFPGA_TABLE, .length = RFPGA_TABLE_SIZE,
	.layout_size = sizeof(fpga_layout),
};

/* in 32-bit programs an address is not a 64-bit constant */
__attribute__((constructor)) static void fpga_table_layout(void)
{
	fpga_table.layout = (uintptr_t)&fpga_layout;
}

int fpga_program(int map, uint32_t first, uint32_t *entries)
{
	struct rashpa_program p = { HEAD(p), .first = first };
	int err = call(map, RASHPA_IOC_PROGRAM, &p);

	if (entries)
		*entries = p.out_entries;
	return err;
}

int source_del(int channel, uint32_t id)
{
	struct rashpa_source_del del = { HEAD(del), .id = id };

	return call(channel, RASHPA_IOC_SOURCE_DEL, &del);
}

int signal_one(int channel, u64 value)
{
	struct rashpa_signal s = { HEAD(s), .value = value };

	return call(channel, RASHPA_IOC_SIGNAL, &s);
}

int source_make(int channel, struct rashpa_source_add *add)
{
	int err;

	add->head.size = sizeof(*add);
	err = call(channel, RASHPA_IOC_SOURCE_ADD, add);
	return err ? err : (int)add->out_id;
}

int source_add(int channel, uint32_t kind, uint32_t index)
{
	struct rashpa_source_add add = { .kind = kind, .index = index, .device = -1, .memory = -1 };

	return source_make(channel, &add);
}

struct rashpa_source_add word_source(int fd, uint32_t flags)
{
	return (struct rashpa_source_add) {
		HEAD(struct rashpa_source_add), .head.flags = flags, .kind = RASHPA_SOURCE_LOCK,
		.memory = fd, .condition = RASHPA_CONDITION_CHANGED, .bits = 64, .device = -1,
	};
}

int look_at(int fd)
{
	struct rashpa_look l = { HEAD(l), .fd = fd };
	int err = call(memory, RASHPA_IOC_LOOK, &l);

	return err ? err : (int)l.out_events;
}

bool next_event(int channel, struct rashpa_event *e)
{
	return read(channel, e, sizeof(*e)) == sizeof(*e);
}

int bind_eventfd(int channel, int fd, uint32_t id)
{
	struct rashpa_eventfd_bind e = { HEAD(e), .fd = fd, .id = id };

	return call(channel, RASHPA_IOC_EVENTFD_BIND, &e);
}

u64 count_of(int event)
{
	u64 n = 0;

	return read(event, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

u64 eventfd_signals(int event, u64 n)
{
	u64 sum = 0;

	while (sum < n && wait_fd(event, POLLIN, 20000))
		sum += count_of(event);
	return sum;
}

int wait_fd(int fd, int events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms * (int)tap_slow()) > 0 ? p.revents : 0;
}

u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000 + t.tv_nsec;
}

u64 end_of_wait(unsigned int ms)
{
	return now_ns() + (u64)ms * tap_slow() * 1000000;
}
