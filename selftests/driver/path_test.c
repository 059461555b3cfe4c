// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=each,debug iommu=both seconds=12 */
/* test: needs=switch iommu=on seconds=15 */
/* test: tier=nightly needs=passthrough,amd iommu=on seconds=12 */
/* Maps of other functions' memory, maps that end and come back, maps that are kept. */
#include <sys/mount.h>

#include "rig.h"
#include "trace.h"

#define POLICY	"/sys/module/rashpa/parameters/p2p_bridge"
/* offset in the peer's on-board memory, after its dataset */
#define PLACE	(4 * MIB)

static struct fpga f, f2;
static bool have_f2, iommu;
/* A window of the second FPGA's on-board memory, and its CPU mapping. */
static int peer_window(char **p)
{
	int win = fpga_window(&f2, RFPGA_BAR_MEMORY, PLACE, IMAGES * IMAGE, 0);

	CHECK(win >= 0, "window: %s", reason);
	*p = map_fd(win, IMAGES * IMAGE);
	return win;
}

/* Read the map until it has come to @state; return its generation then. */
static u64 map_becomes(int map, uint32_t state, u64 before)
{
	struct rashpa_table t = { .state = UINT32_MAX };

	while (t.state != state) {
		if (!CHECK(wait_fd(map, POLLIN, 5000), "no news of the map after state %u",
			   t.state) ||
		    !CHECK(read(map, &t, sizeof(t)) == sizeof(t), "read: %s", strerror(errno)))
			return before;
		CHECK(t.generation > before && !(t.generation & 1), "generation %llu after %llu",
		      t.generation, before);
	}
	return t.generation;
}

static void stream_once(const struct rig *r)
{
	rig_stream(r, 0, r->made.out_segments, IMAGES);
	CHECK(reg64(rig_dtp(r, 0), RFPGA_DTP_C_BYTES) == IMAGES * IMAGE, "%llu bytes",
	      reg64(rig_dtp(r, 0), RFPGA_DTP_C_BYTES));
	rig_is_idle(r->regs, 0);
}

/* --------------------------------------------------------------- peers -- */

TEST(peer_stream, "a function writes into the on-board memory of another")
{
	struct rashpa_info info;
	struct rig r;
	char *p;
	int win;

	SKIP_IF(!have_f2, "only one software FPGA");
	win = peer_window(&p);
	if (!buffer_info(win, &info)) {
		CHECK(info.out_kind == RASHPA_KIND_WINDOW && info.out_bar == RFPGA_BAR_MEMORY,
		      "kind %u, BAR %d", info.out_kind, info.out_bar);
	}
	memset(p, 0, IMAGES * IMAGE);
	rig_up(&r, &f, win, RASHPA_MAP_DEVICE, 0);
	CHECK(r.made.out_class == RASHPA_CLASS_BRIDGE ||
	      (!iommu && r.made.out_class == RASHPA_CLASS_PEER),
	      "class %u", r.made.out_class);
	CHECK(r.made.out_peer == info.out_bdf && r.made.out_peer_bar == RFPGA_BAR_MEMORY,
	      "peer %llx, BAR %d", r.made.out_peer, r.made.out_peer_bar);
	CHECK(!r.made.out_flags, "flags %x", r.made.out_flags);
	stream_once(&r);
	CHECK(filled(p, IMAGES * IMAGE, SEED), "the data differ");
	rig_down(&r);
	unmap_fd(p, IMAGES * IMAGE, win);
}

/* The other function's MSI-X table is in the second page of its BAR 1, which is memory otherwise. */
#define SIDE	(4 * PAGE)

static int map_part(int win, u64 offset, u64 length, struct rashpa_map_make *map)
{
	*map = (struct rashpa_map_make) { HEAD(*map), .fd = win, .offset = offset,
					  .length = length };
	return call(f.fd, RASHPA_IOC_MAP_MAKE, map);
}

TEST(peer_table, "a function reaches the memory around the MSI-X table of another, not the table")
{
	struct rashpa_map_make map;
	struct rig r;
	char *p;
	int win;

	SKIP_IF(!have_f2, "only one software FPGA");
	win = fpga_window(&f2, RFPGA_BAR_MSIX, 0, SIDE, 0);
	REQUIRE(win >= 0, "window: %s", reason);
	ANSWERED(map_part(win, 0, 0, &map), EBUSY, "0x1000 of BAR 1|MSI-X|before and after");
	ANSWERED(map_part(win, PAGE, PAGE, &map), EBUSY, "MSI-X");
	ANSWERED(map_part(win, 0, 2 * PAGE, &map), EBUSY, "MSI-X");
	ANSWERED(map_part(win, PAGE, SIDE - PAGE, &map), EBUSY, "MSI-X");
	if (ANSWERED(map_part(win, 0, PAGE, &map), 0, NULL))
		close(map.out_fd);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, win, 2 * PAGE);
	REQUIRE(p != MAP_FAILED, "mmap: %s", strerror(errno));
	memset(p, 0, 2 * PAGE);
	rig_up(&r, &f, -1, 0, 0);
	if (ANSWERED(map_part(win, 2 * PAGE, 2 * PAGE, &map), 0, NULL)) {
		CHECK(map.out_peer_bar == RFPGA_BAR_MSIX, "BAR %d", map.out_peer_bar);
		ANSWERED(fpga_program(map.out_fd, 100, NULL), 0, NULL);
		/* one line to the beginning of its second page */
		rig_configure(&r, 0, RFPGA_MODE_FREERUN | RFPGA_MODE_FLUSH, 100, map.out_segments, 1);
		set32(rig_dtp(&r, 0), RFPGA_DTP_HEIGHT, 1);
		set64(rig_dtp(&r, 0), RFPGA_DTP_DST_BASE, PAGE);
		rig_start(&r, 0);
		CHECK(rig_wait_bytes(&r, 0, LINE), "%llu bytes",
		      reg64(rig_dtp(&r, 0), RFPGA_DTP_C_BYTES));
		CHECK(filled(p + PAGE, LINE, SEED) && all_zero(p, PAGE), "it is elsewhere");
		close(map.out_fd);
	}
	rig_down(&r);
	unmap_fd(p, 2 * PAGE, win);
}

TEST(policy, "the administrator decides about host bridges")
{
	struct rashpa_map_make map = {};
	char *p;
	int win, m;

	SKIP_IF(!have_f2, "only one software FPGA");
	win = peer_window(&p);
	m = fpga_map(&f, win, RASHPA_TO_MEMORY, &map);
	if (m >= 0 && map.out_class == RASHPA_CLASS_PEER) {
		tap_note("a switch routes: the host bridge does not matter");
		p2p_bridge("deny");
		close(m);
		m = fpga_map(&f, win, RASHPA_TO_MEMORY, &map);
		CHECK(m >= 0, "%s", reason);
	} else {
		close(m);
		p2p_bridge("deny");
		m = fpga_map(&f, win, RASHPA_TO_MEMORY, &map);
		ANSWERED(m, ENXIO, "host bridge|p2p_bridge");
		p2p_bridge("auto");
		m = fpga_map(&f, win, RASHPA_TO_MEMORY, &map);
		/* older kernels do not know; newer have a list on which QEMU's is not */
		if (m < 0)
			ANSWERED(m, ENXIO, "does not know|p2p_bridge=allow");
	}
	close(m);
	CHECK(write_text(POLICY, "perhaps") == -EINVAL, "p2p_bridge=perhaps is accepted");
	p2p_bridge("allow");
	unmap_fd(p, IMAGES * IMAGE, win);
}

/* ----------------------------------------------- revoked and restored --- */

/* The other function is reset while this one writes into its memory: alone, or by @bus. */
static void peer_reset(const char *bus)
{
	struct rashpa_info info;
	u64 generation;
	struct rig r;
	int win, err;
	char *p;

	win = peer_window(&p);
	rig_up(&r, &f, win, 0, 0);
	generation = r.made.out_generation;
	rig_run(&r, 0, r.made.out_segments);
	err = bus ? write_text(bus, "1") : fpga_reset(&f2);
	CHECK(!err, "%s: %s", bus ?: "RESET", strerror(-err));
	/* stopped before the peer was reset: nothing went astray */
	rig_is_idle(r.regs, 0);
	rig_entries_clear(r.regs, r.made.out_segments);
	/* the map ended, and comes back without a call, maybe before this check */
	CHECK(map_becomes(r.map, RASHPA_MAP_STATE_VALID, generation) >= generation + 4,
	      "it was never revoked");
	ANSWERED(map_restore(r.map), 0, NULL);
	if (!buffer_info(win, &info))
		CHECK(!(info.out_flags & RASHPA_INFO_REVOKED), "INFO says that it is revoked");
	memset(p, 0, IMAGES * IMAGE);
	ANSWERED(fpga_program(r.map, 0, NULL), 0, NULL);
	stream_once(&r);
	CHECK(filled(p, IMAGES * IMAGE, SEED), "the data differ");
	rig_down(&r);
	unmap_fd(p, IMAGES * IMAGE, win);
}

TEST(peer_reset, "the reset of a peer ends its maps, and restores them")
{
	SKIP_IF(!have_f2, "only one software FPGA");
	peer_reset(NULL);
}

/* Was this state of the map reported, and then the traced function called by the same task? */
static void called_after_state(uint32_t id, uint32_t state, const char *otherwise)
{
	char words[48];

	snprintf(words, sizeof(words), " value=%llu ", (u64)id << 32 | state);
	CHECK(traced("rashpa_event:", words), "no record of \"%s\"", words);
	CHECK(called_after("rashpa_event:", words), "%s", otherwise);
	trace_end();
}

/*
 * The driver reports a restored map before its exporter can end it again, which needs the lock
 * of the memory. Otherwise the last record could say VALID of a map that is not.
 */
TEST(restored_told, "a restored map is reported before it can end again")
{
	int win, m, ch = fpga_listen(&f, 0, RASHPA_SOURCE_MAP, 0);
	struct rashpa_map_make map;
	char *p;

	SKIP_IF(!have_f2, "only one software FPGA");
	win = peer_window(&p);
	if (!trace_begin("ww_mutex_unlock"))
		return;
	m = fpga_map(&f, win, RASHPA_TO_MEMORY, &map);
	CHECK(m >= 0, "%s", reason);
	ANSWERED(fpga_reset(&f2), 0, NULL);
	map_becomes(m, RASHPA_MAP_STATE_VALID, map.out_generation);
	/* waits for the end of the restore */
	ANSWERED(map_restore(m), 0, NULL);
	called_after_state(map.out_id, RASHPA_MAP_STATE_VALID,
			   "the lock was free before the record");
	close(m);
	unmap_fd(p, IMAGES * IMAGE, win);
	close(ch);
}

/*
 * A function's writes to a peer arrive before the memory is let go. The answer that the function
 * has stopped took another path, so the driver reads from the peer.
 */
TEST(peer_flushed, "writes to a peer arrive before its memory is let go")
{
	int win, m, ch = fpga_listen(&f, 0, RASHPA_SOURCE_MAP, 0);
	struct rashpa_map_make map;
	char *p;

	SKIP_IF(!have_f2, "only one software FPGA");
	win = peer_window(&p);
	m = fpga_map(&f, win, RASHPA_TO_MEMORY, &map);
	if (CHECK(m >= 0, "%s", reason) && trace_begin("pci_read_config_word")) {
		close(m);
		called_after_state(map.out_id, RASHPA_MAP_STATE_REVOKED, "the peer was not read");
	}
	unmap_fd(p, IMAGES * IMAGE, win);
	close(ch);
}

/* The bridge above both functions that can reset them together; false: none. */
static bool common_bridge(char *path, size_t size)
{
	char link[64], a[PATH_MAX], b[PATH_MAX];
	size_t i, end = 0;

	snprintf(link, sizeof(link), "/sys/bus/pci/devices/%s", f.bdf);
	if (!realpath(link, a))
		return false;
	snprintf(link, sizeof(link), "/sys/bus/pci/devices/%s", f2.bdf);
	if (!realpath(link, b))
		return false;
	for (i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			end = i;
	snprintf(path, size, "%.*s/reset_subordinate", (int)end, a);
	return !access(path, W_OK);
}

/*
 * One thread stops the functions one after the other: a map that it revokes for the second
 * may be a map of the first.
 */
TEST(bus_reset, "a reset of the bus with a map of the one in the other")
{
	char path[PATH_MAX + 32];

	SKIP_IF(!have_f2, "only one software FPGA");
	SKIP_IF(!common_bridge(path, sizeof(path)),
		"no bridge that can reset both (7.2 and later, lab run --topology switch)");
	peer_reset(path);
}

/*
 * The port above is reset and closed before the driver is notified: the driver reports no stuck
 * function, and the function's users go on.
 */
TEST(bus_reset_quiet, "a reset of the bus reports no stuck function")
{
	struct rashpa_device_info info;
	char path[PATH_MAX + 32];
	struct rashpa_event e;
	int device;
	struct rig r;

	SKIP_IF(!have_f2, "only one software FPGA");
	SKIP_IF(!common_bridge(path, sizeof(path)),
		"no bridge that can reset both (7.2 and later, lab run --topology switch)");
	device = fpga_listen(&f, 0, RASHPA_SOURCE_DEVICE, 0);
	rig_up(&r, &f, -1, 0, 0);
	CHECK(!write_text(path, "1"), "%s: %s", path, strerror(errno));
	CHECK(read(device, &e, sizeof(e)) == sizeof(e) &&
	      e.value == RASHPA_DEVICE_EVENT_RESET, "the first record is %llu", e.value);
	CHECK(read(device, &e, sizeof(e)) < 0, "one more: %llu", e.value);
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_READY && info.out_flags & RASHPA_DEVICE_MASTER,
	      "state %u, flags 0x%x", info.out_state, info.out_flags);
	rig_load(&f);
	ANSWERED(fpga_program(r.map, 0, NULL), 0, NULL);
	rig_send_image(&r, 0, &e);
	rig_wait_stopped(&r, 0);
	rig_down(&r);
	close(device);
}

TEST(peer_gone, "the removal of a peer ends its maps for good")
{
	struct rashpa_info info;
	struct rig r;
	char *p;
	int win;

	SKIP_IF(!have_f2, "only one software FPGA");
	win = peer_window(&p);
	munmap(p, IMAGES * IMAGE);
	rig_up(&r, &f, win, 0, 0);
	rig_run(&r, 0, r.made.out_segments);
	CHECK(!fpga_unbind(&f2), "unbind");
	rig_is_idle(r.regs, 0);
	map_becomes(r.map, RASHPA_MAP_STATE_REVOKED, r.made.out_generation);
	ANSWERED(fpga_program(r.map, 0, NULL), ESTALE, "revoked|restore");
	ANSWERED(map_restore(r.map), ENODEV, "window|removed");
	if (!buffer_info(win, &info))
		CHECK(info.out_flags & RASHPA_INFO_REVOKED, "INFO does not say so");
	rig_down(&r);
	close(win);
	fpga_again(&f2);
}

struct toucher {
	pthread_t thread;
	volatile uint32_t *reg;
	atomic_int tid;
	atomic_bool stop;
	u64 reads, wrong;
};

static void *touch(void *arg)
{
	struct toucher *t = arg;

	atomic_store(&t->tid, gettid());
	while (!atomic_load(&t->stop)) {
		t->wrong += *t->reg != RFPGA_ID_VALUE;
		t->reads++;
	}
	return NULL;
}

TEST(touch_reset, "an access to a register waits for the end of a reset")
{
	struct toucher t = {};
	void *p = fpga_regs(&f);
	int i;

	t.reg = p;
	REQUIRE(!pthread_create(&t.thread, NULL, touch, &t), "no thread");
	for (i = 0; i < 3; i++)
		ANSWERED(fpga_reset(&f), 0, NULL);
	atomic_store(&t.stop, true);
	pthread_join(t.thread, NULL);
	CHECK(t.reads && !t.wrong, "%llu of %llu reads were wrong", t.wrong, t.reads);
	munmap(p, RFPGA_BAR_REGS_SIZE);
}

#define RESETS	20

struct resetter {
	pthread_t thread;
	atomic_bool over, enough;
	int err;
};

static void *reset_often(void *arg)
{
	struct resetter *r = arg;
	int i;

	for (i = 0; i < RESETS && !r->err && !atomic_load(&r->enough); i++) {
		struct rashpa_reset reset = { HEAD(reset) };

		r->err = ioctl(f.fd, RASHPA_IOC_RESET, &reset) ? errno : 0;
	}
	atomic_store(&r->over, true);
	return NULL;
}

/* Does it wait for the end of a reset, without a read after @reads? */
static bool waits_since(struct toucher *t, u64 reads)
{
	char path[64], where[64] = "";

	snprintf(path, sizeof(path), "/proc/self/task/%d/wchan", atomic_load(&t->tid));
	return read_text(path, where, sizeof(where)) && strstr(where, "rashpa_window") &&
	       *(volatile u64 *)&t->reads == reads;
}

/* While a thread waits for a register, other threads of its process can map and unmap. */
TEST(touch_alone, "a thread that waits for a register holds up no other one")
{
	void *p = fpga_regs(&f), *q;
	struct resetter r = {};
	struct toucher t = {};
	u64 reads;

	t.reg = p;
	REQUIRE(!pthread_create(&t.thread, NULL, touch, &t), "no thread");
	REQUIRE(!pthread_create(&r.thread, NULL, reset_often, &r), "no thread");
	while (!atomic_load(&r.over)) {
		reads = *(volatile u64 *)&t.reads;
		if (!waits_since(&t, reads))
			continue;
		q = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		*(volatile char *)q = 1;
		munmap(q, PAGE);
		if (waits_since(&t, reads))
			atomic_store(&r.enough, true);
	}
	atomic_store(&t.stop, true);
	pthread_join(r.thread, NULL);
	pthread_join(t.thread, NULL);
	CHECK(!r.err, "RESET: %s", strerror(r.err));
	CHECK(!t.wrong, "%llu reads were wrong", t.wrong);
	CHECK(atomic_load(&r.enough), "in %u resets nothing was mapped meanwhile", RESETS);
	munmap(p, RFPGA_BAR_REGS_SIZE);
}

/* Without a quiesce sequence QUIESCE disables bus mastering, and RESTORE must not enable it. */
TEST(restore_quiesced, "RESTORE of a valid map does not undo QUIESCE")
{
	struct rashpa_map_make map;
	int fd = buffer_alloc(MIB, NULL), m;

	ANSWERED(fpga_profile_none(&f), 0, NULL);
	m = fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map);
	CHECK(m >= 0 && fpga_is_master(&f), "bus mastering is off");
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	CHECK(!fpga_is_master(&f), "bus mastering is on");
	ANSWERED(map_restore(m), 0, NULL);
	CHECK(!fpga_is_master(&f), "RESTORE of a valid map has turned bus mastering on");
	close(m);
	close(fd);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
}

/* -------------------------------------------------------- disclosure ---- */

static void oracle(void *arg)
{
	struct rashpa_map_make map = { HEAD(map), .fd = *(int *)arg };

	drop_privileges();
	map.alignment = 2 * MIB;
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &map), EPERM, "alignment|CAP_SYS_RAWIO");
	map.alignment = 0;
	map.boundary = 2 * MIB;
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &map), EPERM, "boundary|profile");
	map.boundary = 0;
	map.max_segment = 64 * KIB;
	if (ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &map), 0, NULL)) {
		CHECK(map.out_segments == MIB / (64 * KIB), "%u segments", map.out_segments);
		close(map.out_fd);
	}
}

static void disclosed(void *arg)
{
	struct rashpa_map_make map = { HEAD(map), .fd = *(int *)arg, .alignment = PAGE };

	drop_privileges();
	if (ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &map), 0, NULL))
		close(map.out_fd);
}

TEST(oracle, "limits of segments are no oracle for addresses")
{
	int fd = buffer_alloc(MIB, NULL);

	tap_fork(oracle, &fd);
	ANSWERED(fpga_profile(&f, RASHPA_PROFILE_DISCLOSE, NULL, 0), 0, NULL);
	tap_fork(disclosed, &fd);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	close(fd);
}

/* ------------------------------------------------------------ tables ---- */

#define CGROUP		"/tmp/cgroup2"
#define TABLES		16
/* 16384 segments of 16 bytes and a header */
#define TABLE_MEMORY	(64 * MIB)
#define TABLE_BYTES	(TABLE_MEMORY / PAGE * sizeof(struct rashpa_segment))

/* Number of maps with large tables at the same time. */
static void map_tables(int buffer, int *maps)
{
	int i;

	for (i = 0; i < TABLES; i++) {
		struct rashpa_map_make map = { HEAD(map), .fd = buffer, .max_segment = PAGE };

		ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &map), 0, NULL);
		CHECK(map.out_table_size >= TABLE_BYTES, "a table of %llu bytes",
		      map.out_table_size);
		maps[i] = map.out_fd;
	}
}

static u64 charged(void)
{
	char text[32];

	if (!read_text(CGROUP "/st/memory.current", text, sizeof(text)))
		tap_bail("memory.current cannot be read");
	return strtoull(text, NULL, 10);
}

static void in_cgroup(void *arg)
{
	int maps[TABLES], i;
	u64 before;

	CHECK(!write_text(CGROUP "/st/cgroup.procs", "0"), "the group takes no process");
	before = charged();
	map_tables(*(int *)arg, maps);
	/* the kernel charges in batches of some pages */
	CHECK(charged() > before + TABLES * TABLE_BYTES * 3 / 4,
	      "%llu bytes charged for %llu bytes of tables",
	      (charged() - before), TABLES * TABLE_BYTES);
	for (i = 0; i < TABLES; i++)
		close(maps[i]);
	CHECK(charged() < before + TABLES * TABLE_BYTES / 4, "%llu bytes stay charged",
	      (charged() - before));
}

TEST(table_charged, "tables are charged to the memory cgroup")
{
	int fd;

	mkdir(CGROUP, 0700);
	if (mount("none", CGROUP, "cgroup2", 0, NULL)) {
		tap_skip("no cgroup2: %s", strerror(errno));
		return;
	}
	if (write_text(CGROUP "/cgroup.subtree_control", "+memory") || mkdir(CGROUP "/st", 0700)) {
		tap_skip("no memory controller");
	} else {
		fd = buffer_alloc(TABLE_MEMORY, NULL);
		tap_fork(in_cgroup, &fd);
		close(fd);
		CHECK(!rmdir(CGROUP "/st"), "the group stays: %s", strerror(errno));
	}
	umount(CGROUP);
	rmdir(CGROUP);
}

/* Tables do not come from vmalloc(), and must not be given back to it. */
TEST(table_counted, "tables do not change the kernel's count of vmalloc()")
{
	int fd = buffer_alloc(TABLE_MEMORY, NULL), maps[TABLES], round, i;
	const long before = read_kib("/proc/meminfo", "VmallocUsed");
	long after;

	for (round = 0; round < 8; round++) {
		map_tables(fd, maps);
		for (i = 0; i < TABLES; i++)
			close(maps[i]);
	}
	close(fd);
	after = read_kib("/proc/meminfo", "VmallocUsed");
	/* others use it as well, but not that much */
	CHECK(before >= 0 && after > before - 8 * 1024 && after < before + 8 * 1024,
	      "VmallocUsed was %ld kB, is %ld kB", before, after);
}

/* --------------------------------------------------------------- end ---- */

static uint32_t maps(void)
{
	struct rashpa_device_info info;

	return fpga_info(&f, &info) ? UINT32_MAX : info.out_maps;
}

static void *reset_by_sysfs(void *arg)
{
	const struct fpga *who = arg;
	char path[64];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", who->bdf);
	return (void *)(intptr_t)write_text(path, "1");
}

/*
 * A map of a window is closed while its restore, after the reset of the window's function,
 * waits already: the end of the map holds the function until a register has the value of its
 * sequence.
 */
TEST(restore_closed, "a map is closed while its restore waits")
{
	struct rashpa_profile_step step = {
		.op = RASHPA_STEP_WAIT, .bar = RFPGA_BAR_REGS, .offset = RFPGA_SCRATCH,
		.mask = ~0U, .timeout_us = 1000000,
	};
	struct rashpa_profile_set p = { HEAD(p), STEP(step) };
	struct rashpa_map_make map = { HEAD(map) };
	int win, seen, err;
	char *regs, *mem;
	pthread_t thread;
	void *result;

	SKIP_IF(!have_f2, "only one software FPGA");
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	regs = fpga_regs(&f);
	win = peer_window(&mem);
	seen = fpga_map(&f, win, RASHPA_TO_MEMORY, &map);
	map = (struct rashpa_map_make) { HEAD(map), .fd = win, .direction = RASHPA_TO_MEMORY };
	err = call(f.fd, RASHPA_IOC_MAP_MAKE, &map);
	REQUIRE(seen >= 0 && !err, "%s", reason);
	/* the end of a map whose addresses were seen stops the function */
	table_seen(&map);
	pthread_create(&thread, NULL, reset_by_sysfs, &f2);
	map_becomes(seen, RASHPA_MAP_STATE_REVOKED, 0);
	set32(regs, RFPGA_SCRATCH, 1);
	close(map.out_fd);
	CHECK(maps() == 1, "%u maps", maps());
	pthread_join(thread, &result);
	CHECK(!result, "reset: %s", strerror(-(int)(intptr_t)result));
	set32(regs, RFPGA_SCRATCH, 0);
	ANSWERED(fpga_reset(&f), 0, NULL);
	ANSWERED(map_restore(seen), 0, NULL);	/* it still has its function */
	close(seen);
	unmap_fd(mem, IMAGES * IMAGE, win);
	munmap(regs, RFPGA_BAR_REGS_SIZE);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
}

static void stream_until_killed(void *arg)
{
	struct rig r;

	rig_up(&r, &f, *(int *)arg, 0, 64 * KIB);
	rig_run(&r, 0, r.made.out_segments);
	tap_fork_hold();
}

TEST(killed, "the DMA of a killed process ends with it")
{
	int buffer = buffer_alloc(IMAGES * IMAGE, NULL);
	char *regs = fpga_regs(&f), *p;
	struct rashpa_info info;

	tap_fork_kill(tap_fork_held(stream_until_killed, &buffer));
	CHECK(!maps(), "%u maps", maps());
	rig_is_idle(regs, 0);
	rig_entries_clear(regs, 4);
	if (!buffer_info(buffer, &info))
		CHECK(!info.out_importers, "%u importers", info.out_importers);
	p = map_fd(buffer, IMAGES * IMAGE);
	CHECK(!all_zero(p, IMAGES * IMAGE), "nothing was written");
	unmap_fd(p, IMAGES * IMAGE, buffer);
	munmap(regs, RFPGA_BAR_REGS_SIZE);
}

TEST(no_reset, "a function without a reset refuses RESET")
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset_method", f.bdf);
	CHECK(!write_text(path, "\n"), "%s", path);
	ANSWERED(fpga_reset(&f), EOPNOTSUPP, "no function reset");
	CHECK(!write_text(path, "default"), "%s", path);
	ANSWERED(fpga_reset(&f), 0, NULL);
}

void setup(void)
{
	rig_need(&f);
	have_f2 = fpga_try(&f2, 1);
	iommu = fpga_iommu(&f);
	p2p_bridge("allow");
}
