// SPDX-License-Identifier: GPL-2.0-only
/*
 * What nobody gets to see: bus and kernel addresses without privilege, and what was in
 * memory, in a struct or in a page before.
 */
#include <ctype.h>
#include <dirent.h>
#include <sys/stat.h>

#include "../../tools/lib/rashpa-fpga.h"
#include "common.h"

#define TRACEPOINTS	"/sys/kernel/tracing/events/rashpa"
#define LEFT		0xa5
/* in the kernel's half, at the same place in every process of every x86 kernel that has it */
#define VSYSCALL	0xffffffffff600000

static struct fpga f;

/* --------------------------------------------------------- addresses --- */

/* of BARs, of a map's segments, of a buffer's pages; not 0 */
static uint64_t secrets[64];
static unsigned int n_secrets;

/* Hexadecimal digits that are not zero. */
static unsigned int digits(uint64_t n)
{
	unsigned int count = 0;

	for (; n; n >>= 4)
		count += !!(n & 15);
	return count;
}

static void keep_secret(uint64_t address)
{
	/* small numbers stand everywhere, and so do round ones: offsets, flags (02000000) */
	if (address >= MIB && digits(address) >= 2 && n_secrets < ARRAY_SIZE(secrets))
		secrets[n_secrets++] = address;
}

static bool is_secret(uint64_t word)
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

/* Does a word of the text, in hexadecimal, tell an address? */
static void check_text(const char *where, const char *text)
{
	const char *p = text;
	uint64_t word;
	char *end;

	while (*p) {
		if (!isxdigit(*p)) {
			p++;
			continue;
		}
		word = strtoull(p, &end, 16);
		if (end == p || (end[0] == 'x' && end == p + 1))
			end = (char *)p + 2;	/* 0x */
		else if (word >= 0x1000 && !CHECK(!is_secret(word), "%s tells \"%.*s\"", where,
						  (int)(end - p), p))
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
		return;		/* so it tells nothing */
	while ((n = read(fd, text + have, sizeof(text) - 1 - have)) > 0)
		have += n;
	close(fd);
	text[have] = '\0';
	check_text(path, text);
}

/* The files of a folder and of those below; links lead to what is not ours. */
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

/* What a process has that uses all of it. */
static struct {
	int buffer, window, map, channel, lock;
	void *memory, *regs;
	struct rashpa_map made;
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

static void hold(void)
{
	static const struct rashpa_profile_window windows[] = {
		{ .name = "user", .bar = 2, .flags = RASHPA_PWINDOW_USER, .length = PAGE },
	};
	struct rashpa_lock lock = { HEAD(lock), .slots = 1 };
	struct rashpa_window w = { HEAD(w), .name = "user" };
	const struct rashpa_table *t;
	uint32_t i;

	if (fpga_profile(&f, 0, windows, 1))
		tap_bail("profile: %s", reason);
	held.buffer = buffer_alloc(4 * MIB, NULL);
	held.memory = map_fd(held.buffer, 4 * MIB);
	held.map = fpga_map(&f, held.buffer, RASHPA_BIDIRECTIONAL, &held.made);
	held.channel = fpga_events(&f, 0);
	if (!held.memory || held.map < 0 || held.channel < 0 ||
	    call(f.fd, RASHPA_IOC_LOCK, &lock) || call(f.fd, RASHPA_IOC_WINDOW, &w))
		tap_bail("nothing to hold: %s", reason);
	held.lock = lock.out_fd;
	held.window = w.out_fd;
	held.regs = map_fd(held.window, PAGE);
	memset(held.memory, 1, 4 * MIB);

	learn_bars();
	keep_secret(pfn_of(held.memory) * PAGE);
	t = mmap(NULL, held.made.out_table_size, PROT_READ, MAP_SHARED, held.map, 0);
	if (t == MAP_FAILED)
		tap_bail("table: %s", strerror(errno));
	for (i = 0; i < t->count; i++)
		keep_secret(t->segment[i].address);
	munmap((void *)t, held.made.out_table_size);
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

/* The test itself: it sees what is there to see. */
static void test_finds(void)
{
	char text[32];
	uint64_t word;

	hold();
	snprintf(text, sizeof(text), "at 0x%llx.", (unsigned long long)secrets[0]);
	word = strtoull(text + 3, NULL, 16);
	CHECK(is_secret(word) && is_secret(secrets[1]) && is_secret(0xffff888012345678),
	      "an address is not known for one");
	CHECK(!is_secret(0x1000) && !is_secret(0x7fff12345678), "what is none is");
	let_go();
}

static void look_as_user(void *arg)
{
	char path[64];
	int fds[] = { held.buffer, held.window, held.map, held.channel, held.lock, f.fd,
		      memory };
	size_t i;

	(void)arg;
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

static void test_files(void)
{
	hold();
	tap_fork(look_as_user, NULL);
	let_go();
}

/* The header of a map is for all: read() gives no segment, however long the buffer. */
static void read_as_user(void *arg)
{
	uint64_t room[16];
	ssize_t n;
	size_t i;

	(void)arg;
	drop_privileges();
	memset(room, LEFT, sizeof(room));
	n = read(held.map, room, sizeof(room));
	CHECK(n == sizeof(struct rashpa_table), "read gives %zd bytes", n);
	CHECK(!((struct rashpa_table *)room)->__reserved, "reserved");
	for (i = 0; i < ARRAY_SIZE(room); i++)
		CHECK(!is_secret(room[i]), "word %zu is an address", i);
	for (i = sizeof(struct rashpa_table) / 8; i < ARRAY_SIZE(room); i++)
		CHECK(room[i] == 0xa5a5a5a5a5a5a5a5, "word %zu was written", i);
}

/* A map has something to read when its state has changed: the function is gone. */
static void test_read(void)
{
	hold();
	fcntl(held.map, F_SETFL, O_NONBLOCK);
	REQUIRE(!fpga_unbind(&f), "unbind");
	tap_fork(read_as_user, NULL);
	let_go();
	CHECK(!fpga_bind(&f), "bind");
}

static void refuse(unsigned long cmd, void *arg, int fd)
{
	int err = call(fd, cmd, arg);

	CHECK(err, "0x%lx was not refused", cmd);
	check_text("a reason", reason);
}

static void fail_as_user(void *arg)
{
	struct rashpa_map m = { HEAD(m), .fd = held.buffer, .offset = 8 * MIB };
	struct rashpa_map aligned = { HEAD(aligned), .fd = held.buffer, .alignment = GIB };
	struct rashpa_map window = { HEAD(window), .fd = held.window };
	struct rashpa_window w = { HEAD(w), .offset = GIB, .length = PAGE };
	struct rashpa_window admin = { HEAD(admin), .length = PAGE };
	struct rashpa_alloc a = { HEAD(a), .length = 1ULL << 50 };
	struct rashpa_info i = { HEAD(i), .fd = held.map };
	struct rashpa_program p = { HEAD(p), .window = held.window, .length = PAGE };
	struct rashpa_pin pin = { HEAD(pin), .address = (uintptr_t)held.memory & -PAGE,
				  .length = PAGE };

	(void)arg;
	drop_privileges();
	refuse(RASHPA_IOC_MAP, &m, f.fd);
	refuse(RASHPA_IOC_MAP, &aligned, f.fd);
	refuse(RASHPA_IOC_MAP, &window, f.fd);
	refuse(RASHPA_IOC_WINDOW, &w, f.fd);
	refuse(RASHPA_IOC_WINDOW, &admin, f.fd);
	refuse(RASHPA_IOC_PROGRAM, &p, held.map);
	refuse(RASHPA_IOC_ALLOC, &a, memory);
	refuse(RASHPA_IOC_INFO, &i, memory);
	pin.address = (uintptr_t)held.regs;
	refuse(RASHPA_IOC_PIN, &pin, memory);
}

static void test_reasons(void)
{
	hold();
	tap_fork(fail_as_user, NULL);
	let_go();
}

static void test_log(void)
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

/* Field names and types of all tracepoints. */
static void test_tracepoints(void)
{
	static const char *const words[] = { "addr", "phys", "iova", "dma", "*", "pfn" };
	char path[320], line[256];
	struct dirent *e;
	unsigned int n = 0;
	FILE *file;
	size_t i;
	DIR *dir;

	if (access("/sys/kernel/tracing/events", F_OK))
		system("mount -t tracefs tracefs /sys/kernel/tracing");
	dir = opendir(TRACEPOINTS);
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

/* ------------------------------------------------------- old content --- */

#define ROUNDS	8

static int make_buffer(uint64_t length)
{
	return buffer_alloc(length, NULL);
}

static int make_named(uint64_t length)
{
	return buffer_alloc(length, "st-old");
}

static int make_lock(uint64_t length)
{
	struct rashpa_lock lock = { HEAD(lock), .slots = length / RASHPA_LOCK_SLOT };

	return ANSWERED(call(f.fd, RASHPA_IOC_LOCK, &lock), 0, NULL) ? lock.out_fd : -1;
}

/* the one owner writes, the next one looks; the same pages, if we are lucky */
static bool again(int (*make)(uint64_t length), uint64_t length, uint64_t *pfn)
{
	int fd = make(length);
	char *p = fd < 0 ? NULL : map_fd(fd, length);
	bool same;

	if (!p)
		return false;
	CHECK(all_zero(p, length), "memory is not zero");
	same = pfn_of(p) == *pfn;
	*pfn = pfn_of(p);
	memset(p, LEFT, length);
	munmap(p, length);
	close(fd);
	if (make == make_named)
		buffer_remove("st-old");
	return same;
}

static void test_old_memory(void)
{
	static const struct {
		int (*make)(uint64_t length);
		uint64_t length;
		const char *name;
	} kinds[] = {
		{ make_buffer, PAGE, "a page" }, { make_buffer, 2 * MIB, "2 MiB" },
		{ make_buffer, 3 * MIB + PAGE, "3 MiB and a page" },
		{ make_named, 2 * MIB, "2 MiB with a name" },
		{ make_lock, PAGE, "lock memory" },
	};
	uint64_t pfn = 0;
	size_t i, k;
	unsigned int same = 0;

	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (kinds[k].make == make_lock && f.fd < 0)
			continue;
		for (i = 0; i < ROUNDS; i++) {
			/* the memory that a buffer had, and that a process had */
			char *p = mmap(NULL, kinds[k].length, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

			memset(p, LEFT, kinds[k].length);
			munmap(p, kinds[k].length);
			same += again(kinds[k].make, kinds[k].length, &pfn);
		}
	}
	/* else nothing was tried */
	CHECK(same, "no memory was ever given out twice");
	tap_note("%u of %zu times the same memory", same, ROUNDS * ARRAY_SIZE(kinds));
}

/* what was pinned is an ordinary process's again, and buffers may get it */
static void test_old_pinned(void)
{
	struct rashpa_pin pin = { HEAD(pin), .length = 2 * MIB };
	uint64_t pfn = 0;
	char *p;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		p = mmap(NULL, pin.length, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		REQUIRE(p != MAP_FAILED, "mmap: %s", strerror(errno));
		memset(p, LEFT, pin.length);
		pin.address = (uintptr_t)p;
		REQUIRE(ANSWERED(call(memory, RASHPA_IOC_PIN, &pin), 0, NULL), "PIN");
		munmap(p, pin.length);
		close(pin.out_fd);
		again(make_buffer, pin.length, &pfn);
		p = mmap(NULL, pin.length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(all_zero(p, pin.length), "a process sees old memory");
		munmap(p, pin.length);
	}
}

/* ----------------------------------------------- structs and pages ----- */

/* What is written is written whole, and where a call fails nothing is. */
static void check_written(const char *name, int fd, unsigned long cmd, void *arg,
			  size_t size, size_t from)
{
	unsigned char *bytes = arg;
	uint32_t word;
	size_t i;

	memset(bytes + from, LEFT, size - from);
	if (!ANSWERED(call(fd, cmd, arg), 0, NULL))
		return;
	for (i = from; i < size; i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		CHECK(word != 0xa5a5a5a5, "%s: byte %zu was not written", name, i);
	}
}

#define WRITTEN(fd, cmd, arg, first) \
	check_written(#cmd, fd, RASHPA_IOC_##cmd, &(arg), sizeof(arg), \
		      offsetof(__typeof__(arg), first))

static void test_structs(void)
{
	struct rashpa_device_info device = { HEAD(device) };
	struct rashpa_region_info region = { HEAD(region), .bar = 5 };
	struct rashpa_source_info source = { HEAD(source), .id = 1 };
	struct rashpa_events events = { HEAD(events) };
	struct rashpa_quiesce quiesce = { HEAD(quiesce) };
	struct rashpa_info info = { HEAD(info) };

	hold();
	info.fd = held.buffer;
	WRITTEN(memory, INFO, info, out_kind);
	info.fd = held.window;
	WRITTEN(memory, INFO, info, out_kind);
	info.fd = held.lock;
	WRITTEN(memory, INFO, info, out_kind);
	WRITTEN(f.fd, DEVICE_INFO, device, out_vendor);
	WRITTEN(f.fd, REGION_INFO, region, out_flags);
	WRITTEN(f.fd, QUIESCE, quiesce, out_time_ns);
	CHECK(source_add(held.channel, RASHPA_SOURCE_SOFTWARE, 0) == 1, "%s", reason);
	WRITTEN(held.channel, SOURCE_INFO, source, out_kind);
	WRITTEN(f.fd, EVENTS, events, out_fd);
	close(events.out_fd);
	let_go();
}

static void check_untouched(const char *name, int fd, unsigned long cmd, void *arg,
			    size_t size, size_t from)
{
	unsigned char *bytes = arg;
	size_t i;

	memset(bytes + from, LEFT, size - from);
	CHECK(call(fd, cmd, arg) < 0, "%s did not fail", name);
	for (i = from; i < size; i++)
		if (!CHECK(bytes[i] == LEFT, "%s has failed and written byte %zu", name, i))
			break;
}

#define UNTOUCHED(fd, cmd, arg, first) \
	check_untouched(#cmd, fd, RASHPA_IOC_##cmd, &(arg), sizeof(arg), \
			offsetof(__typeof__(arg), first))

static void test_failures(void)
{
	struct rashpa_info info = { HEAD(info), .fd = -1 };
	struct rashpa_region_info region = { HEAD(region), .bar = 6 };
	struct rashpa_source_info source = { HEAD(source), .id = 9 };
	struct rashpa_events events = { HEAD(events), .depth = 1 };
	struct rashpa_lock lock = { HEAD(lock) };

	hold();
	UNTOUCHED(memory, INFO, info, out_kind);
	UNTOUCHED(f.fd, REGION_INFO, region, out_flags);
	UNTOUCHED(held.channel, SOURCE_INFO, source, out_kind);
	UNTOUCHED(f.fd, EVENTS, events, out_fd);
	UNTOUCHED(f.fd, LOCK, lock, out_fd);
	let_go();
}

/* Pages that the kernel shares hold what the header says, and behind it nothing. */
static void test_pages(void)
{
	struct rashpa_events e = { HEAD(e), .depth = 16 };
	struct rashpa_signal sig = { HEAD(sig), .value = 1 };
	struct rashpa_ring *ring;
	struct rashpa_consumer *consumer;
	struct rashpa_table *table;
	unsigned char record[64];
	size_t used, end;

	hold();
	REQUIRE(ANSWERED(call(f.fd, RASHPA_IOC_EVENTS, &e), 0, NULL), "EVENTS");
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
	CHECK(!table->__reserved && all_zero((char *)table + used, end - used),
	      "something is behind the table");

	CHECK(source_add(e.out_fd, RASHPA_SOURCE_SOFTWARE, 0) == 1, "%s", reason);
	ANSWERED(call(e.out_fd, RASHPA_IOC_SIGNAL, &sig), 0, NULL);
	memset(record, LEFT, sizeof(record));
	CHECK(read(e.out_fd, record, sizeof(record)) == sizeof(struct rashpa_event), "read");
	for (used = sizeof(struct rashpa_event); used < sizeof(record); used++)
		CHECK(record[used] == LEFT, "byte %zu behind the record was written", used);
	munmap(ring, (e.out_ring_size + PAGE - 1) & -PAGE);
	munmap(consumer, PAGE);
	munmap(table, held.made.out_table_size);
	close(e.out_fd);
	let_go();
}

int main(void)
{
	bool have_fpga;

	common_init();
	f.fd = -1;
	have_fpga = fpga_open(&f, 0);
	tap_run("memory is zeroed whoever had it before", test_old_memory);
	tap_run("what was pinned comes back zeroed", test_old_pinned);
	tap_run("tracepoints have no addresses", test_tracepoints);
	if (!have_fpga) {
		tap_skip_all("addresses", "no software FPGA");
		return tap_exit();
	}
	if (fpga_profile_none(&f))
		tap_bail("profile: %s", reason);
	fpga_watch(&f);
	tap_run("an address would be found", test_finds);
	tap_run("no file tells an address to nobody", test_files);
	tap_run("no reason tells an address", test_reasons);
	tap_run("the log tells no address", test_log);
	tap_run("what is returned is written whole", test_structs);
	tap_run("a call that fails writes nothing", test_failures);
	tap_run("shared pages hold nothing else", test_pages);
	/* again, and not watched: it goes */
	fpga_close(&f);
	fpga_open(&f, 0);
	tap_run("read of a map tells no address", test_read);
	fpga_close(&f);
	return tap_exit();
}
