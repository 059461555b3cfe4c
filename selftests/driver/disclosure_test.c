// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug iommu=on seconds=11 */
/*
 * A process never sees old content of memory, of structs or of pages. Without privilege, it
 * sees no bus or kernel addresses.
 */
#include <ctype.h>
#include <dirent.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "rig.h"
#include "trace.h"

#define TRACING		"/sys/kernel/tracing"
#define TRACEPOINTS	TRACING "/events/rashpa"
#define LEFT		0xa5
/* in the kernel's half, at the same place in every process of every x86 kernel that has it */
#define VSYSCALL	0xffffffffff600000

static struct fpga f;

/* --------------------------------------------------------- addresses --- */

/* addresses of BARs, of a map's segments, of a buffer's pages; never 0 */
static u64 secrets[64];
static unsigned int n_secrets;

/* Hexadecimal digits that are not zero. */
static unsigned int digits(u64 n)
{
	unsigned int count = 0;

	for (; n; n >>= 4)
		count += !!(n & 15);
	return count;
}

static void keep_secret(u64 address)
{
	/* small and round numbers are everywhere: offsets, flags (02000000) */
	if (address >= MIB && digits(address) >= 2 && n_secrets < ARRAY_SIZE(secrets))
		secrets[n_secrets++] = address;
}

static bool is_secret(u64 word)
{
	unsigned int i;

	if (word == VSYSCALL || word == VSYSCALL + PAGE)
		return false;
	if (word >> 47 == 0x1ffff)		/* the kernel's half */
		return true;
	for (i = 0; i < n_secrets; i++)
		if (word == secrets[i] || word == secrets[i] / PAGE)
			return true;
	return false;
}

/* A number in decimal. A page's number is as short as any other, and proves nothing. */
static bool is_secret_decimal(u64 number)
{
	unsigned int i;

	for (i = 0; i < n_secrets; i++)
		if (number == secrets[i])
			return true;
	return number >> 47 == 0x1ffff;
}

/* Is a word of the text, in hexadecimal or decimal, an address? */
static void check_text(const char *where, const char *text)
{
	const char *p = text;
	u64 word;
	char *end;

	while (*p) {
		if (!isxdigit(*p)) {
			p++;
			continue;
		}
		word = strtoull(p, &end, 16);
		if (end == p || (end[0] == 'x' && end == p + 1))
			end = (char *)p + 2;	/* 0x */
		else if (word >= 0x1000 &&
			 !CHECK(!is_secret(word) && !is_secret_decimal(strtoull(p, NULL, 10)),
				"%s shows \"%.*s\"", where, (int)(end - p), p))
			return;
		p = end;
	}
}

static void check_file(const char *path)
{
	static char text[1 << 16];
	size_t have = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;		/* so it shows nothing */
	while ((n = read(fd, text + have, sizeof(text) - 1 - have)) > 0)
		have += n;
	close(fd);
	text[have] = '\0';
	check_text(path, text);
}

/* The files of a folder and of those below, without links, which lead elsewhere. */
static unsigned int check_folder(const char *path)
{
	char child[512];
	unsigned int n = 0;
	struct dirent *e;
	struct stat st;
	DIR *dir = opendir(path);

	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(child, sizeof(child), "%s/%s", path, e->d_name);
		if (lstat(child, &st))
			continue;
		if (S_ISDIR(st.st_mode)) {
			n += check_folder(child);
		} else if (S_ISREG(st.st_mode)) {
			check_file(child);
			n++;
		}
	}
	if (dir)
		closedir(dir);
	return n;
}

/* The objects of a process that uses all calls. */
static struct {
	int buffer, window, map, channel, lock;
	void *memory, *regs;
	struct rashpa_map_make made;
} held;

static void learn_bars(void)
{
	char path[80], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource", f.bdf);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		keep_secret(strtoull(line, NULL, 16));
	if (file)
		fclose(file);
}

static void learn_map(int map, u64 size, const void *first)
{
	const struct rashpa_table *t = mmap(NULL, size, PROT_READ, MAP_SHARED, map, 0);
	uint32_t i;

	if (t == MAP_FAILED)
		tap_bail("table: %s", strerror(errno));
	for (i = 0; i < t->count; i++)
		keep_secret(t->segment[i].address);
	munmap((void *)t, size);
	keep_secret(pfn_of(first) * PAGE);
}

static void hold(void)
{
	static const struct rashpa_profile_window windows[] = {
		{ .name = "user", .bar = 2, .flags = RASHPA_PWINDOW_USER, .length = PAGE },
	};
	struct rashpa_alloc lock;
	struct rashpa_window_make w = { HEAD(w), .name = "user" };

	if (fpga_profile(&f, 0, windows, 1))
		tap_bail("profile: %s", reason);
	held.buffer = buffer_alloc(4 * MIB, NULL);
	held.memory = map_fd(held.buffer, 4 * MIB);
	held.map = fpga_map(&f, held.buffer, RASHPA_BIDIRECTIONAL, &held.made);
	held.channel = fpga_events(&f, 0);
	if (!held.memory || held.map < 0 || held.channel < 0 ||
	    lock_alloc(1, NULL, &lock) || call(f.fd, RASHPA_IOC_WINDOW_MAKE, &w))
		tap_bail("nothing to hold: %s", reason);
	held.lock = lock.out_fd;
	held.window = w.out_fd;
	held.regs = map_fd(held.window, PAGE);
	memset(held.memory, 1, 4 * MIB);

	n_secrets = 0;
	learn_bars();
	learn_map(held.map, held.made.out_table_size, held.memory);
	CHECK(n_secrets >= 3, "only %u addresses are known", n_secrets);
}

static void let_go(void)
{
	munmap(held.memory, 4 * MIB);
	munmap(held.regs, PAGE);
	close(held.map);
	close(held.buffer);
	close(held.window);
	close(held.channel);
	close(held.lock);
	fpga_profile_none(&f);
}

TEST(finds, "this test finds an address")
{
	char text[32];
	u64 word;

	hold();
	snprintf(text, sizeof(text), "at 0x%llx.", secrets[0]);
	word = strtoull(text + 3, NULL, 16);
	CHECK(is_secret(word) && is_secret(secrets[1]) && is_secret(0xffff888012345678),
	      "an address is not known for one");
	CHECK(!is_secret(0x1000) && !is_secret(0x7fff12345678), "a number is taken for one");
	let_go();
}

static void look_as_user(void *arg)
{
	char path[64];
	int fds[] = { held.buffer, held.window, held.map, held.channel, held.lock, f.fd,
		      memory };
	size_t i;

	drop_privileges();
	CHECK(check_folder("/sys/class/rashpa/../../devices/virtual/rashpa") > 0, "no files");
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/rashpa", f.bdf);
	CHECK(check_folder(path) > 0, "no files in %s", path);
	check_folder("/sys/module/rashpa/parameters");
	check_file("/proc/self/maps");
	check_file("/proc/self/smaps");
	check_file("/proc/interrupts");
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fds[i]);
		check_file(path);
	}
	CHECK(mmap(NULL, held.made.out_table_size, PROT_READ, MAP_SHARED, held.map, 0) ==
	      MAP_FAILED && errno == EPERM, "the table can be mapped");
}

TEST(files, "no file shows an address to a user")
{
	hold();
	tap_fork(look_as_user, NULL);
	let_go();
}

/* The header of a map is for all: read() gives no segment, however long the buffer. */
static void read_as_user(void *arg)
{
	u64 room[16];
	ssize_t n;
	size_t i;

	drop_privileges();
	memset(room, LEFT, sizeof(room));
	n = read(held.map, room, sizeof(room));
	CHECK(n == sizeof(struct rashpa_table), "read gives %zd bytes", n);
	CHECK(all_zero(&((struct rashpa_table *)room)->__reserved,
		       sizeof(((struct rashpa_table *)room)->__reserved)), "reserved");
	for (i = 0; i < ARRAY_SIZE(room); i++)
		CHECK(!is_secret(room[i]), "word %zu is an address", i);
	for (i = sizeof(struct rashpa_table) / 8; i < ARRAY_SIZE(room); i++)
		CHECK(room[i] == 0xa5a5a5a5a5a5a5a5, "word %zu was written", i);
}

/* A map has something to read when its state has changed: the function is gone. */
TEST(read, "read of a map returns no address")
{
	hold();
	fcntl(held.map, F_SETFL, O_NONBLOCK);
	REQUIRE(!fpga_unbind(&f), "unbind");
	tap_fork(read_as_user, NULL);
	let_go();
	fpga_again(&f);
}

static void refuse(unsigned long cmd, void *arg, int fd)
{
	int err = call(fd, cmd, arg);

	CHECK(err, "0x%lx was not refused", cmd);
	check_text("a reason", reason);
}

static void fail_as_user(void *arg)
{
	struct rashpa_map_make m = { HEAD(m), .fd = held.buffer, .offset = 8 * MIB };
	struct rashpa_map_make aligned = { HEAD(aligned), .fd = held.buffer, .alignment = GIB };
	struct rashpa_map_make window = { HEAD(window), .fd = held.window };
	struct rashpa_window_make w = { HEAD(w), .offset = GIB, .length = PAGE };
	struct rashpa_window_make admin = { HEAD(admin), .length = PAGE };
	struct rashpa_alloc a = { HEAD(a), .length = 1ULL << 50 };
	struct rashpa_info i = { HEAD(i), .fd = held.map };
	struct rashpa_program p = { HEAD(p), .first = ~0U };
	struct rashpa_pin pin = { HEAD(pin), .address = (uintptr_t)held.memory & -PAGE,
				  .length = PAGE };

	drop_privileges();
	refuse(RASHPA_IOC_MAP_MAKE, &m, f.fd);
	refuse(RASHPA_IOC_MAP_MAKE, &aligned, f.fd);
	refuse(RASHPA_IOC_MAP_MAKE, &window, f.fd);
	refuse(RASHPA_IOC_WINDOW_MAKE, &w, f.fd);
	refuse(RASHPA_IOC_WINDOW_MAKE, &admin, f.fd);
	refuse(RASHPA_IOC_PROGRAM, &p, held.map);
	refuse(RASHPA_IOC_ALLOC, &a, memory);
	refuse(RASHPA_IOC_INFO, &i, memory);
	pin.address = (uintptr_t)held.regs;
	refuse(RASHPA_IOC_PIN, &pin, memory);
}

TEST(reasons, "no reason contains an address")
{
	hold();
	tap_fork(fail_as_user, NULL);
	let_go();
}

TEST(log, "the log contains no address")
{
	char record[8192];
	int fd = open("/dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	unsigned int lines = 0;
	ssize_t n;

	REQUIRE(fd >= 0, "/dev/kmsg: %s", strerror(errno));
	hold();
	for (;;) {
		n = read(fd, record, sizeof(record) - 1);
		if (n < 0 && errno == EPIPE)	/* overwritten meanwhile */
			continue;
		if (n <= 0)
			break;
		record[n] = '\0';
		if (strstr(record, "rashpa") && strchr(record, ';')) {
			lines++;
			check_text("the log", strchr(record, ';'));
		}
	}
	CHECK(lines, "the log has no line of rashpa");
	let_go();
	close(fd);
}

/* The folder of all tracepoints, or NULL. */
static DIR *open_tracepoints(void)
{
	if (access(TRACING "/events", F_OK))
		system("mount -t tracefs tracefs " TRACING);
	return opendir(TRACEPOINTS);
}

/* Field names and types of all tracepoints. */
TEST(tracepoints, "tracepoints have no addresses")
{
	static const char *const words[] = { "addr", "phys", "iova", "dma", "*", "pfn" };
	char path[320], line[256];
	struct dirent *e;
	unsigned int n = 0;
	FILE *file;
	size_t i;
	DIR *dir;

	dir = open_tracepoints();
	SKIP_IF(!dir, "this kernel has no tracepoints of modules");
	while ((e = readdir(dir))) {
		snprintf(path, sizeof(path), TRACEPOINTS "/%s/format", e->d_name);
		file = e->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (!file)
			continue;
		n++;
		while (fgets(line, sizeof(line), file)) {
			if (strncmp(line, "\tfield:", 7))
				continue;
			for (i = 0; i < ARRAY_SIZE(words); i++)
				CHECK(!strstr(line, words[i]), "%s: %s", e->d_name, line);
		}
		fclose(file);
	}
	closedir(dir);
	CHECK(n >= 5, "%u tracepoints", n);
	CHECK(access("/sys/kernel/debug/rashpa", F_OK), "there is a folder in debugfs");
}

/* Check the lines of @event, without the time, which looks like a page's number. */
static unsigned int check_trace(const char *event)
{
	struct trace_line l = {};
	char name[NAME_MAX + 3];
	unsigned int n = 0;
	const char *text;

	snprintf(name, sizeof(name), " %s: ", event);
	while (trace_next(&l)) {
		text = strstr(l.text, name);
		if (!text)
			continue;
		check_text(event, text + strlen(name));
		n++;
	}
	return n;
}

/* Do all that raises a tracepoint. */
static void make_traces(void)
{
	u64 end = end_of_wait(20000);
	struct rashpa_event e;
	struct rig r;

	rig_up(&r, &f, -1, 0, 0);
	learn_map(r.map, r.made.out_table_size, r.memory);
	/* until an event has woken a reader */
	while (rig_send_image(&r, 0, &e) && !check_trace("rashpa_wakeup") && now_ns() < end)
		rig_wait_stopped(&r, 0);
	CHECK(source_add(r.channel, RASHPA_SOURCE_SOFTWARE, 0) > 0, "%s", reason);
	CHECK(source_add(r.channel, RASHPA_SOURCE_DEVICE, 0) > 0, "%s", reason);
	CHECK(source_add(r.channel, RASHPA_SOURCE_MAP, 0) > 0, "%s", reason);
	ANSWERED(signal_one(r.channel, 1), 0, NULL);
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	rig_down(&r);
}

TEST(traces, "no trace contains an address")
{
	DIR *dir = open_tracepoints();
	struct dirent *e;

	SKIP_IF(!dir, "this kernel has no tracepoints of modules");
	if (!trace_begin(NULL))
		return;
	hold();
	make_traces();
	let_go();
	trace_end();
	while ((e = readdir(dir)))
		if (!strncmp(e->d_name, "rashpa_", 7))
			/* else nothing was tried */
			CHECK(check_trace(e->d_name), "%s is not in the trace", e->d_name);
	closedir(dir);
}

/* ------------------------------------------------------- old content --- */

#define ROUNDS		tap_times(3, 8)
#define OWNERS_MAX	16

static int make_buffer(u64 length)
{
	return buffer_alloc(length, NULL);
}

static int make_named(u64 length)
{
	return buffer_alloc(length, "st-old");
}

static int make_lock(u64 length)
{
	struct rashpa_alloc lock;

	return ANSWERED(lock_alloc(length / RASHPA_LOCK_SLOT, NULL, &lock), 0, NULL) ?
	       lock.out_fd : -1;
}

/* One bit for each page of the first 16 GiB that was filled and given back. */
static u64 left[16 * GIB / PAGE / 64];

static void leave(char *p, u64 length)
{
	u64 pfn[512], at, i, n;

	memset(p, LEFT, length);
	for (at = 0; at < length / PAGE; at += n) {
		n = length / PAGE - at < ARRAY_SIZE(pfn) ? length / PAGE - at : ARRAY_SIZE(pfn);
		pfns_of(p + at * PAGE, pfn, n);
		for (i = 0; i < n; i++)
			if (pfn[i] / 64 < ARRAY_SIZE(left))
				left[pfn[i] / 64] |= 1ULL << pfn[i] % 64;
	}
}

/* private memory of this process, filled */
static char *leave_private(u64 length)
{
	char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	leave(p, length);
	return p;
}

/* Number of such pages in the contiguous memory at @p. */
static unsigned int has_left(const char *p, u64 length)
{
	const u64 first = pfn_of(p);
	unsigned int n = 0;
	u64 i;

	for (i = first; first && i < first + length / PAGE && i / 64 < ARRAY_SIZE(left); i++)
		n += left[i / 64] >> i % 64 & 1;
	return n;
}

/* Fill nearly all free memory, so that later owners get used pages. */
static void leave_all(void)
{
	const u64 spare = 128 * MIB;
	struct sysinfo s;

	sysinfo(&s);
	if (s.freeram * s.mem_unit > 2 * spare)
		munmap(leave_private(s.freeram * s.mem_unit - spare),
		       s.freeram * s.mem_unit - spare);
}

/* The next owners check and write their memory. Returns how many of its pages were left. */
static unsigned int again(int (*make)(u64 length), u64 length, unsigned int owners)
{
	char *p[OWNERS_MAX];
	unsigned int n = 0, i;
	int fd;

	for (i = 0; i < owners; i++) {
		fd = make(length);
		p[i] = fd < 0 ? NULL : map_fd(fd, length);
		if (!p[i])
			tap_bail("no memory: %s", reason);
		/* the mapping holds it */
		close(fd);
		CHECK(all_zero(p[i], length), "memory is not zero");
		n += has_left(p[i], length);
	}
	for (i = 0; i < owners; i++) {
		leave(p[i], length);
		munmap(p[i], length);
	}
	if (make == make_named)
		buffer_remove("st-old");
	return n;
}

TEST(old_memory, "memory is zeroed, whichever process had it before")
{
	static const struct {
		int (*make)(u64 length);
		u64 length;
		unsigned int owners;	/* at a time: others want single pages, too */
		const char *name;
	} kinds[] = {
		{ make_buffer, PAGE, OWNERS_MAX, "a page" },
		{ make_buffer, 2 * MIB, 1, "2 MiB" },
		{ make_buffer, 3 * MIB + PAGE, 1, "3 MiB and a page" },
		{ make_named, 2 * MIB, 1, "2 MiB with a name" },
		{ make_lock, PAGE, OWNERS_MAX, "lock memory" },
	};
	size_t i, k;
	unsigned int same;

	leave_all();
	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (kinds[k].make == make_lock && f.fd < 0)
			continue;
		same = 0;
		/* the memory that a buffer had, and that a process had */
		for (i = 0; i < ROUNDS || (!same && i < 8 * ROUNDS); i++) {
			munmap(leave_private(kinds[k].length), kinds[k].length);
			same += !!again(kinds[k].make, kinds[k].length, kinds[k].owners);
		}
		/* else nothing was tried */
		CHECK(same, "%s: nothing was ever given out twice", kinds[k].name);
		tap_note("%s: %u of %zu times used memory", kinds[k].name, same, i);
	}
}

/* pinned pages belong to an ordinary process again, and buffers may get them */
TEST(old_pinned, "pages that were pinned come back zeroed")
{
	struct rashpa_pin pin = { HEAD(pin), .length = 2 * MIB };
	unsigned int i, same = 0;
	char *p;

	memset(left, 0, sizeof(left));
	/* the longer the buffer, the more there is that it may get: 2 to 128 MiB */
	for (i = 0; !same && i < 7 * 4; i++) {
		p = leave_private(pin.length);
		pin.address = (uintptr_t)p;
		REQUIRE(ANSWERED(call(memory, RASHPA_IOC_PIN, &pin), 0, NULL), "PIN");
		unmap_fd(p, pin.length, pin.out_fd);
		same = again(make_buffer, 2 * MIB << i % 7, 1);
		p = mmap(NULL, pin.length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(all_zero(p, pin.length), "a process sees old memory");
		munmap(p, pin.length);
	}
	/* else nothing was tried */
	CHECK(same, "no buffer has got pages that were pinned");
}

/* ------------------------------------------------------------- pages ----- */

/* Pages that the kernel shares hold the fields of the header, then zeroes. */
TEST(pages, "shared pages hold nothing else")
{
	struct rashpa_channel_make e = { HEAD(e), .depth = 16 };
	struct rashpa_ring *ring;
	struct rashpa_consumer *consumer;
	struct rashpa_table *table;
	unsigned char record[64];
	size_t used, end;

	hold();
	REQUIRE(ANSWERED(call(f.fd, RASHPA_IOC_CHANNEL_MAKE, &e), 0, NULL), "EVENTS");
	end = (e.out_ring_size + PAGE - 1) & -PAGE;
	ring = mmap(NULL, end, PROT_READ, MAP_SHARED, e.out_fd, 0);
	consumer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, e.out_fd, e.out_consumer);
	table = mmap(NULL, held.made.out_table_size, PROT_READ, MAP_SHARED, held.map, 0);
	REQUIRE(ring != MAP_FAILED && consumer != MAP_FAILED && table != MAP_FAILED, "mmap: %s",
		strerror(errno));
	CHECK(all_zero(ring + 1, end - sizeof(*ring)), "the ring is not empty");
	CHECK(!ring->__reserved && all_zero(consumer, PAGE), "the consumer's page");
	used = sizeof(*table) + table->count * sizeof(table->segment[0]);
	end = (held.made.out_table_size + PAGE - 1) & -PAGE;
	CHECK(all_zero(table->__reserved, sizeof(table->__reserved)) &&
	      all_zero((char *)table + used, end - used), "something is behind the table");

	CHECK(source_add(e.out_fd, RASHPA_SOURCE_SOFTWARE, 0) == 1, "%s", reason);
	ANSWERED(signal_one(e.out_fd, 1), 0, NULL);
	memset(record, LEFT, sizeof(record));
	CHECK(read(e.out_fd, record, sizeof(record)) == sizeof(struct rashpa_event), "read");
	for (used = sizeof(struct rashpa_event); used < sizeof(record); used++)
		CHECK(record[used] == LEFT, "byte %zu behind the record was written", used);
	unmap_fd(ring, (e.out_ring_size + PAGE - 1) & -PAGE, e.out_fd);
	munmap(consumer, PAGE);
	munmap(table, held.made.out_table_size);
	let_go();
}

void setup(void)
{
	fpga_need(&f);
}
