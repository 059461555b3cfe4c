// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug iommu=both seconds=15 */
/* test: tier=nightly needs=amd,virtio iommu=on seconds=6 */
/* test: tier=nightly kernel=arm64 needs=boardless iommu=on seconds=6 */
/*
 * Devices that are not ours, served unchanged. QEMU's edu is a conventional PCI function with
 * registers, an interrupt and DMA. It reads and writes by addresses from the tables of maps. BAR 2
 * of ivshmem is memory.
 */
#include "edu.h"

#define LEN		(4 * MIB)

#define NET_VENDOR	0x8086	/* e1000e */
#define NET_DEVICE	0x10d3
#define NET_IO_BAR	2

#define SHM_VENDOR	0x1af4
#define SHM_DEVICE	0x1110
#define SHM_BAR		2

static struct fpga edu;		/* reaches all addresses */
static struct fpga narrow;	/* another one, which reaches 28 bits */
static struct fpga shm;
static bool have_narrow, have_shm;

/* a memory as one importer sees it */
struct mapped {
	int fd;
	struct rashpa_map_make map;
	const struct rashpa_table *table;
};

/* The driver assumes the 32 bits that each function reaches. */
TEST(no_profile, "edu: 32 bits without a profile")
{
	struct rashpa_device_info info;

	SKIP_IF(!have_narrow, "no second edu");
	ANSWERED(fpga_info(&narrow, &info), 0, NULL);
	CHECK(info.out_dma_bits == 32 && !(info.out_flags & RASHPA_DEVICE_PROFILE),
	      "%u bits", info.out_dma_bits);
}

/* edu is idle when its RUN bit is clear: it has no way to be stopped. */
static int profile(const struct fpga *f, uint32_t dma_bits)
{
	const struct rashpa_profile_step wait = {
		.op = RASHPA_STEP_WAIT, .bar = 0, .offset = EDU_DMA_CMD,
		.mask = EDU_DMA_RUN, .timeout_us = 1000000 };
	struct rashpa_profile_set p = { HEAD(p), STEP(wait), .dma_bits = dma_bits };

	return call(f->fd, RASHPA_IOC_PROFILE_SET, &p);
}

/* The test ends where it fails. */
static void map_for(const struct fpga *f, int fd, struct mapped *m)
{
	m->fd = fpga_map(f, fd, RASHPA_BIDIRECTIONAL, &m->map);
	if (m->fd < 0)
		tap_bail("MAP: %s (%s)", strerror(-m->fd), reason);
	m->table = table_of(&m->map);
}

static void unmap(struct mapped *m)
{
	unmap_fd((void *)m->table, m->map.out_table_size, m->fd);
}

/* DMA address of byte @offset of a memory */
static u64 address(const struct mapped *m, u64 offset)
{
	uint32_t i;

	for (i = 0; i < m->table->count; i++) {
		if (offset < m->table->segment[i].length)
			return m->table->segment[i].address + offset;
		offset -= m->table->segment[i].length;
	}
	tap_fail(__FILE__, __LINE__, "the table ends before its memory");
	return 0;
}

static bool dma_done(volatile void *regs)
{
	u64 end = end_of_wait(20000);

	while (edu_runs(regs))
		if (!CHECK(now_ns() < end, "edu does not finish a transfer"))
			return false;
	return true;
}

/* One chunk from one address to another, through edu. */
static bool copy(volatile void *regs, u64 from, u64 to)
{
	edu_start(regs, from, EDU_BUFFER, EDU_DMA_FROM);
	if (!dma_done(regs))
		return false;
	edu_start(regs, EDU_BUFFER, to, EDU_DMA_TO);
	return dma_done(regs);
}

/* All registers of an edu; their window ends with munmap(). */
static volatile void *registers(const struct fpga *f)
{
	int fd = fpga_window(f, 0, 0, MIB, RASHPA_CACHE_DEFAULT);
	void *regs = map_fd(fd, MIB);

	close(fd);
	return regs;
}

TEST(registers, "edu: registers through a window")
{
	struct rashpa_device_info info;
	volatile void *regs = registers(&edu);

	ANSWERED(fpga_info(&edu, &info), 0, NULL);
	CHECK(info.out_vendor == EDU_VENDOR && info.out_device == EDU_DEVICE,
	      "ids %04x:%04x", info.out_vendor, info.out_device);
	CHECK(reg32(regs, EDU_ID) == EDU_ID_MAGIC, "id 0x%08x", reg32(regs, EDU_ID));
	set32(regs, EDU_LIVE, 0x12345678);
	CHECK(reg32(regs, EDU_LIVE) == ~0x12345678U, "the live check reads 0x%08x",
	      reg32(regs, EDU_LIVE));
	munmap((void *)regs, MIB);
}

static void copy_inside(const struct fpga *f, volatile void *regs, int buffer)
{
	struct mapped m;
	char *p = map_fd(buffer, LEN);

	map_for(f, buffer, &m);
	fill(p, CHUNK, 51);
	CHECK(copy(regs, address(&m, 0), address(&m, 3 * MIB + CHUNK)), "no copy");
	CHECK(filled(p + 3 * MIB + CHUNK, CHUNK, 51), "edu wrote something else");
	CHECK(filled(p, CHUNK, 51), "the source has changed");
	CHECK(all_zero(p + CHUNK, 3 * MIB) && all_zero(p + 3 * MIB + 2 * CHUNK, MIB - 2 * CHUNK),
	      "edu wrote somewhere else, too");
	unmap(&m);
	munmap(p, LEN);
}

TEST(dma, "edu: DMA out of a buffer and into it")
{
	int buffer = buffer_alloc(LEN, NULL);
	volatile void *regs = registers(&edu);

	copy_inside(&edu, regs, buffer);
	munmap((void *)regs, MIB);
	close(buffer);
}

TEST(class, "edu: addresses match their class")
{
	int buffer = buffer_alloc(LEN, NULL);
	u64 phys;
	struct mapped m;
	char *p = map_fd(buffer, LEN);

	map_for(&edu, buffer, &m);
	phys = pfn_of(p) * PAGE;
	CHECK(m.map.out_segments == 1, "%u segments", m.map.out_segments);
	if (fpga_iommu(&edu)) {
		CHECK(m.map.out_class == RASHPA_CLASS_IOVA, "class %u", m.map.out_class);
		CHECK(address(&m, 0) != phys, "an IOVA that is the physical address");
	} else {
		CHECK(m.map.out_class == RASHPA_CLASS_HOST, "class %u", m.map.out_class);
		CHECK(address(&m, 0) == phys, "0x%llx instead of 0x%llx", address(&m, 0), phys);
	}
	unmap(&m);
	unmap_fd(p, LEN, buffer);
}

/* memory -> edu -> BAR of another function -> edu -> memory */
static void test_peer(void)
{
	int buffer = buffer_alloc(LEN, NULL), window;
	volatile void *regs = registers(&edu);
	struct mapped host, peer;
	char *p, *bar;

	window = fpga_window(&shm, SHM_BAR, 0, MIB, RASHPA_CACHE_DEFAULT);
	REQUIRE(window >= 0, "WINDOW: %s (%s)", strerror(-window), reason);
	p = map_fd(buffer, LEN);
	bar = map_fd(window, MIB);
	map_for(&edu, buffer, &host);
	map_for(&edu, window, &peer);
	CHECK(peer.map.out_class == RASHPA_CLASS_BRIDGE ||
	      peer.map.out_class == RASHPA_CLASS_PEER, "class %u", peer.map.out_class);
	memset(bar, 0, 4 * CHUNK);
	fill(p, CHUNK, 61);
	CHECK(copy(regs, address(&host, 0), address(&peer, CHUNK)), "no copy");
	CHECK(filled(bar + CHUNK, CHUNK, 61), "the BAR holds something else");
	CHECK(all_zero(bar, CHUNK) && all_zero(bar + 2 * CHUNK, 2 * CHUNK),
	      "edu wrote somewhere else, too");
	CHECK(copy(regs, address(&peer, CHUNK), address(&host, MIB)), "no copy");
	CHECK(filled(p + MIB, CHUNK, 61), "other data came back");
	unmap(&peer);
	unmap(&host);
	unmap_fd(p, LEN, buffer);
	unmap_fd(bar, MIB, window);
	munmap((void *)regs, MIB);
}

static void expect_interrupt(int channel, volatile void *regs, const char *what)
{
	struct rashpa_event event;

	CHECK(wait_fd(channel, POLLIN, 20000) & POLLIN, "%s: no event", what);
	REQUIRE(read(channel, &event, sizeof(event)) == sizeof(event), "%s: no record", what);
	CHECK(event.kind == RASHPA_SOURCE_VECTOR && event.value == 0 && !event.lost,
	      "%s: kind %u, value %llu, lost %llu", what, event.kind, event.value, event.lost);
	set32(regs, EDU_IRQ_ACK, ~0U);
}

TEST(interrupt, "edu: interrupts are events")
{
	int channel = fpga_listen(&edu, 0, RASHPA_SOURCE_VECTOR, 0);
	int buffer = buffer_alloc(LEN, NULL);
	volatile void *regs = registers(&edu);
	struct mapped m;

	set32(regs, EDU_IRQ_RAISE, 1);
	expect_interrupt(channel, regs, "a register raises it");
	map_for(&edu, buffer, &m);
	edu_start(regs, address(&m, 0), EDU_BUFFER, EDU_DMA_FROM | EDU_DMA_IRQ);
	expect_interrupt(channel, regs, "the end of a transfer raises it");
	CHECK(!edu_runs(regs), "it still runs");
	unmap(&m);
	close(channel);
	close(buffer);
	munmap((void *)regs, MIB);
}

/* edu cannot be stopped: the end of a map waits until it has finished. */
TEST(quiesce, "edu: a map does not end before a transfer")
{
	int buffer = buffer_alloc(LEN, NULL);
	volatile void *regs = registers(&edu);
	char *p = map_fd(buffer, LEN);
	struct mapped m;

	fill(p, CHUNK, 71);
	map_for(&edu, buffer, &m);
	edu_start(regs, address(&m, 0), EDU_BUFFER, EDU_DMA_FROM);
	CHECK(dma_done(regs), "the first half fails");
	edu_start(regs, EDU_BUFFER, address(&m, 2 * MIB), EDU_DMA_TO);
	unmap(&m);
	CHECK(!edu_runs(regs),
	      "the map went while a transfer ran");
	CHECK(filled(p + 2 * MIB, CHUNK, 71), "the transfer was cut off");
	unmap_fd(p, LEN, buffer);
	munmap((void *)regs, MIB);
}

/* Wait until the kernel's log has a line with both; @log: from where on. */
static bool logged(int log, const char *what, const char *where)
{
	u64 end = end_of_wait(20000);
	char line[1024];
	ssize_t n;

	while (now_ns() < end) {
		n = read(log, line, sizeof(line) - 1);
		line[n > 0 ? n : 0] = '\0';
		if (strstr(line, what) && strstr(line, where))
			return true;
	}
	return false;
}

/* edu still has the address of an ended map, and uses it: the IOMMU must refuse it. */
static void refused(volatile void *regs, char *p, u64 old)
{
	int log = open("/dev/kmsg", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	bool vtd = !access("/sys/class/iommu/dmar0", F_OK);	/* other emulated ones log no address */
	char where[64];

	REQUIRE(log >= 0, "/dev/kmsg: %s", strerror(errno));
	lseek(log, 0, SEEK_END);
	if (vtd)	/* newer kernels name the domain, too */
		snprintf(where, sizeof(where), "%s] fault addr 0x%llx ", edu.bdf + 5, old);
	else
		snprintf(where, sizeof(where), "%s", edu.bdf);
	dprintf(log, "lab: expects: %s\n", where);	/* else the run fails for it */
	edu_start(regs, EDU_BUFFER, old, EDU_DMA_TO);
	CHECK(dma_done(regs), "the transfer does not end");
	CHECK(!vtd || logged(log, "DMAR: [DMA Write", where), "no fault with \"%s\" in the log", where);
	CHECK(filled(p, CHUNK, 82), "edu wrote into memory that was not mapped for it");
	dprintf(log, "lab: expects:\n");
	close(log);
}

/* A map of another buffer stays, so that bus mastering is on and edu's access goes out. */
TEST(unmapped, "edu: the IOMMU refuses an address whose map has ended")
{
	int buffer, other;
	struct mapped m, stays;
	volatile void *regs;
	u64 old;
	char *p, *q;

	SKIP_IF(!fpga_iommu(&edu), "there is no IOMMU to refuse it");
	buffer = buffer_alloc(LEN, NULL);
	other = buffer_alloc(LEN, NULL);
	regs = registers(&edu);
	p = map_fd(buffer, LEN);
	q = map_fd(other, LEN);
	map_for(&edu, other, &stays);
	map_for(&edu, buffer, &m);
	old = address(&m, 0);
	fill(q, CHUNK, 81);
	CHECK(copy(regs, address(&stays, 0), old), "no copy while it is mapped");
	CHECK(filled(p, CHUNK, 81), "edu wrote something else");
	unmap(&m);
	fill(p, CHUNK, 82);
	refused(regs, p, old);
	unmap(&stays);
	memset(p, 0, LEN);
	copy_inside(&edu, regs, buffer);
	unmap_fd(p, LEN, buffer);
	unmap_fd(q, LEN, other);
	munmap((void *)regs, MIB);
}

/* QEMU's host bridge routes, but newer kernels have it in no list: say so for them. */
TEST(peer_allowed, "edu: DMA into another function's BAR and out of it")
{
	SKIP_IF(!have_shm, "no ivshmem in this guest (lab run --device ivshmem-plain)");
	p2p_bridge("allow");
	test_peer();
}

/* A buffer whose physical address has more than 28 bits. */
static int high_buffer(void)
{
	struct rashpa_alloc a = { HEAD(a), .length = LEN, .alignment = GIB / 2,
				  .backend = RASHPA_BACKEND_CONTIG };

	return ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL) ? a.out_fd : -1;
}

/* The refusal recommends a buffer for this function. */
TEST(narrow_for, "28 bits: a buffer with dma_bits can be mapped")
{
	struct rashpa_alloc a = { HEAD(a), .length = 64 * KIB, .dma_bits = 28 };
	struct mapped m;

	SKIP_IF(!have_narrow, "no second edu in this guest (lab run --device edu)");
	ANSWERED(profile(&narrow, 28), 0, NULL);
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL);
	map_for(&narrow, a.out_fd, &m);
	CHECK(address(&m, a.length - 1) < 1ULL << 28, "address 0x%llx", address(&m, a.length - 1));
	unmap(&m);
	close(a.out_fd);
}

TEST(narrow, "28 bits: memory that is too high is refused, or the IOMMU helps")
{
	int buffer, foreign;
	struct rashpa_device_info info;
	volatile void *regs;
	struct rashpa_map_make map;
	struct mapped m;

	SKIP_IF(!have_narrow, "no second edu in this guest (lab run --device edu)");
	ANSWERED(profile(&narrow, 28), 0, NULL);
	buffer = high_buffer();
	ANSWERED(fpga_info(&narrow, &info), 0, NULL);
	CHECK(info.out_dma_bits == 28, "a mask of %u bits", info.out_dma_bits);
	if (!fpga_iommu(&edu)) {
		ANSWERED(fpga_map(&narrow, buffer, RASHPA_BIDIRECTIONAL, &map), EOVERFLOW,
			 "28 bits|dma_bits|IOMMU");
		foreign = foreign_dmabuf(LEN);
		if (foreign >= 0) {
			ANSWERED(fpga_map(&narrow, foreign, RASHPA_BIDIRECTIONAL, &map),
				 EOVERFLOW, "28 bits|IOMMU");
			close(foreign);
		}
		close(buffer);
		return;
	}
	/* behind the IOMMU the same memory has an address that fits */
	map_for(&narrow, buffer, &m);
	CHECK(address(&m, LEN - 1) < 1ULL << 28, "address 0x%llx", address(&m, LEN - 1));
	unmap(&m);
	regs = registers(&narrow);
	copy_inside(&narrow, regs, buffer);
	munmap((void *)regs, MIB);
	close(buffer);
}

/* More than 28 bits can address: an error, also with an IOMMU. */
TEST(narrow_full, "28 bits: 264 MiB are refused")
{
	const bool translated = fpga_iommu(&edu);
	struct rashpa_map_make map;
	int buffer, got;

	SKIP_IF(!have_narrow, "no second edu in this guest (lab run --device edu)");
	ANSWERED(profile(&narrow, 28), 0, NULL);
	buffer = buffer_alloc(264 * MIB, NULL);
	got = fpga_map(&narrow, buffer, RASHPA_BIDIRECTIONAL, &map);
	if (translated)
		ANSWERED(got, ENOMEM, narrow.name);
	else
		ANSWERED(got, EOVERFLOW, "28 bits|IOMMU");
	if (got >= 0)
		close(got);
	close(buffer);
}

static void end(struct fpga *f)
{
	fpga_close(f);
	fpga_unbind(f);
}

/* I/O ports are not used: nothing fails where they are not available. */
TEST(io_bar, "a function with an I/O BAR is bound without it")
{
	struct rashpa_region_info region = { HEAD(region), .bar = NET_IO_BAR };
	char ports[16 * KIB];
	struct fpga net;
	int win;

	if (!function_open(&net, NET_VENDOR, NET_DEVICE, 0)) {
		tap_skip("no e1000e in this guest (lab run --device e1000e)");
		return;
	}
	ANSWERED(call(net.fd, RASHPA_IOC_REGION_INFO, &region), 0, NULL);
	CHECK(region.out_length && !(region.out_flags & RASHPA_REGION_MEMORY), "%llu bytes, flags %x",
	      region.out_length, region.out_flags);
	CHECK(read_file("/proc/ioports", ports, sizeof(ports)) && strstr(ports, net.bdf) &&
	      !strstr(ports, "rashpa"), "its ports are taken");
	ANSWERED(fpga_window(&net, NET_IO_BAR, 0, PAGE, 0), ERANGE, "BAR 2|memory BAR");
	win = fpga_window(&net, 0, 0, PAGE, 0);
	CHECK(win >= 0, "its registers: %s", reason);
	close(win);
	end(&net);
}

void setup(void)
{
	if (!function_open(&edu, EDU_VENDOR, EDU_DEVICE, 0))
		tap_skip_all("no edu in this guest (lab run --device edu,dma_mask=...)");
	have_narrow = function_open(&narrow, EDU_VENDOR, EDU_DEVICE, 1);
	have_shm = function_open(&shm, SHM_VENDOR, SHM_DEVICE, 0);
	/* narrow: one test needs it without a profile */
	if (profile(&edu, 64))
		tap_bail("PROFILE: %s", reason);
	fpga_watch(&edu);
}

void teardown(void)
{
	end(&edu);
	if (have_narrow)
		end(&narrow);
	if (have_shm)
		end(&shm);
}
