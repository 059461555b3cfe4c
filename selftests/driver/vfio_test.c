// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A board that vfio-pci owns uses memory and events of this driver.
 * test: tier=check kernel=each iommu=on seconds=6
 * test: tier=all kernel=debug iommu=off seconds=3
 */
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/eventfd.h>

#include "rig.h"

#define NAME		"st-vfio"
#define VFIO_PCI	"/sys/bus/pci/drivers/vfio-pci"
#define IOVA		(1ULL << 32)	/* no bridge and no interrupt has it */
#define WORD		(IMAGES * IMAGE)	/* offset of the lock record in the buffer */

static struct fpga f;
static bool iommu;

/* ----------------------------------------------------------- binding ---- */

static int bind_to(const char *driver, const char *file)
{
	char path[96];
	int err;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver_override", f.bdf);
	err = write_text(path, driver);
	return err ?: write_text(file, f.bdf);
}

/* In the program itself, as each test runs in a separate process. */
void setup_all(void)
{
	if (access("/dev/rashpa/memory", F_OK) || !fpga_open(&f, 0))
		return;		/* setup() reports it */
	iommu = fpga_iommu(&f);
	close(f.fd);
	if (fpga_unbind(&f) || system("modprobe vfio-pci"))
		tap_bail("%s cannot be given to vfio-pci", f.bdf);
	if (!iommu)		/* fails on kernels without CONFIG_VFIO_NOIOMMU */
		write_text("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "1");
	bind_to("vfio-pci", VFIO_PCI "/bind");
}

void teardown_all(void)
{
	if (!f.bdf[0])
		return;
	write_text(VFIO_PCI "/unbind", f.bdf);
	if (!iommu)
		write_text("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "0");
	if (fpga_bind(&f))
		tap_bail("%s cannot be bound again", f.bdf);
}

void setup(void)
{
	char path[96];

	if (!f.bdf[0])
		tap_skip_all("no software FPGA");
	snprintf(path, sizeof(path), VFIO_PCI "/%s", f.bdf);
	if (access(path, F_OK))
		tap_skip_all("no IOMMU, and this kernel has no CONFIG_VFIO_NOIOMMU");
}

/* -------------------------------------------------------------- VFIO ---- */

struct board {
	int container, group, device;
	struct rig rig;		/* only @regs */
};

static void *board_bar(const struct board *b, uint32_t bar, size_t size)
{
	struct vfio_region_info info = { .argsz = sizeof(info), .index = bar };
	void *p;

	if (ioctl(b->device, VFIO_DEVICE_GET_REGION_INFO, &info))
		tap_bail("BAR %u: %s", bar, strerror(errno));
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, b->device, info.offset);
	if (p == MAP_FAILED)
		tap_bail("mmap of BAR %u: %s", bar, strerror(errno));
	return p;
}

static void board_master(const struct board *b)
{
	struct vfio_region_info info = {
		.argsz = sizeof(info), .index = VFIO_PCI_CONFIG_REGION_INDEX,
	};
	uint16_t command;

	if (ioctl(b->device, VFIO_DEVICE_GET_REGION_INFO, &info) ||
	    pread(b->device, &command, 2, info.offset + PCI_COMMAND) != 2)
		tap_bail("configuration space: %s", strerror(errno));
	command |= PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	if (pwrite(b->device, &command, 2, info.offset + PCI_COMMAND) != 2)
		tap_bail("configuration space: %s", strerror(errno));
}

static void board_open(struct board *b)
{
	char path[96], link[256] = "", *number;
	void *dataset;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group", f.bdf);
	if (readlink(path, link, sizeof(link) - 1) < 0)
		tap_bail("%s: %s", path, strerror(errno));
	number = strrchr(link, '/') + 1;
	snprintf(path, sizeof(path), "/dev/vfio/%s%.16s", iommu ? "" : "noiommu-", number);
	b->group = open(path, O_RDWR | O_CLOEXEC);
	b->container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	if (b->group < 0 || b->container < 0 ||
	    ioctl(b->group, VFIO_GROUP_SET_CONTAINER, &b->container) ||
	    ioctl(b->container, VFIO_SET_IOMMU, iommu ? VFIO_TYPE1v2_IOMMU : VFIO_NOIOMMU_IOMMU))
		tap_bail("%s: %s", path, strerror(errno));
	b->device = ioctl(b->group, VFIO_GROUP_GET_DEVICE_FD, f.bdf);
	if (b->device < 0)
		tap_bail("VFIO_GROUP_GET_DEVICE_FD: %s", strerror(errno));
	board_master(b);
	b->rig.regs = board_bar(b, RFPGA_BAR_REGS, RFPGA_BAR_REGS_SIZE);
	dataset = board_bar(b, RFPGA_BAR_MEMORY, IMAGES * IMAGE);
	fill(dataset, IMAGES * IMAGE, SEED);
	munmap(dataset, IMAGES * IMAGE);
}

static void board_close(struct board *b)
{
	munmap(b->rig.regs, RFPGA_BAR_REGS_SIZE);
	close(b->device);
	close(b->group);
	close(b->container);
}

/* Let the board reach @length bytes at @p: its table has one entry. Returns 0 or a negative errno. */
static int board_map(const struct board *b, const void *p, u64 length)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map), .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)p, .iova = IOVA, .size = length,
	};

	if (iommu && ioctl(b->container, VFIO_IOMMU_MAP_DMA, &map))
		return -errno;
	set64(b->rig.regs, RFPGA_TABLE + RFPGA_ENTRY_ADDR, iommu ? IOVA : pfn_of(p) * PAGE);
	set64(b->rig.regs, RFPGA_TABLE + RFPGA_ENTRY_LEN, length);
	set32(b->rig.regs, RFPGA_TABLE + RFPGA_ENTRY_CONTROL, RFPGA_ENTRY_VALID);
	return 0;
}

/* An eventfd of interrupt vector 0. */
static int board_interrupt(const struct board *b)
{
	struct {
		struct vfio_irq_set set;
		int32_t fd;
	} arg = {
		.set = {
			.argsz = sizeof(arg), .index = VFIO_PCI_MSIX_IRQ_INDEX, .count = 1,
			.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
		},
		.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};

	if (ioctl(b->device, VFIO_DEVICE_SET_IRQS, &arg.set))
		tap_bail("VFIO_DEVICE_SET_IRQS: %s", strerror(errno));
	return arg.fd;
}

/* Send the dataset, and a lock record after each image; 0: for ever. */
static void board_start(const struct board *b, u64 images)
{
	char *dtp = rig_dtp(&b->rig, 0);

	rig_configure(&b->rig, 0, RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX | RFPGA_MODE_LOCK, 0, 1,
		      images);
	set32(dtp, RFPGA_DTP_VECTOR, 0);
	set64(dtp, RFPGA_DTP_LOCK_OFFSET, WORD);
	set32(dtp, RFPGA_DTP_LOCK_FIRST, 0);
	set32(dtp, RFPGA_DTP_LOCK_COUNT, 1);
	rig_start(&b->rig, 0);
}

/* ------------------------------------------------------------- tests ---- */

/* A channel that waits for the last image. */
static int consumer(int buffer)
{
	struct rashpa_source_add add = word_source(buffer, RASHPA_SOURCE_LOOK);
	int channel = memory_channel();

	add.offset = WORD + RFPGA_LOCK_STACKS;
	add.condition = RASHPA_CONDITION_REACHED;
	add.value = IMAGES;
	ANSWERED(call(channel, RASHPA_IOC_SOURCE_ADD, &add), 0, NULL);
	return channel;
}

static const struct {
	const char *key;
	const char *name;
	u64 length;
} buffers[] = {
	{ "anonymous", NULL, WORD + PAGE },
	{ "named", NAME, WORD + PAGE },
	{ "huge", NAME, 8 * MIB },
};

/* The owner of the board waits for VFIO's eventfd, then calls LOOK. */
TEST_EACH(stream, buffers, "a board of vfio-pci writes into a buffer (%s), and a channel reports it")
{
	int buffer = buffer_alloc(row->length, row->name), interrupt, channel;
	char *p = map_fd(buffer, row->length);
	struct rashpa_event e = {};
	struct board b;

	board_open(&b);
	interrupt = board_interrupt(&b);
	channel = consumer(buffer);
	ANSWERED(board_map(&b, p, row->length), 0, NULL);
	board_start(&b, IMAGES);
	while (read(channel, &e, sizeof(e)) < 0) {
		if (!CHECK(wait_fd(interrupt, POLLIN, 5000), "no interrupt"))
			break;
		count_of(interrupt);
		CHECK(look_at(buffer) >= 0, "LOOK: %s", reason);
	}
	CHECK(e.value == IMAGES, "position %llu", (u64)e.value);
	CHECK(filled(p, WORD, SEED), "the data differ");
	rig_is_idle(b.rig.regs, 0);
	close(channel);
	close(interrupt);
	board_close(&b);
	unmap_fd(p, row->length, buffer);
	if (row->name)
		ANSWERED(buffer_remove(row->name), 0, NULL);
}

/* Map the named buffer for the board, start an endless stream, wait to be killed. */
static void stream_until_killed(void *arg)
{
	struct board own, *b = arg ?: &own;
	int buffer = buffer_open(NAME, O_RDWR);

	if (!arg)
		board_open(b);
	ANSWERED(board_map(b, map_fd(buffer, WORD + PAGE), WORD + PAGE), 0, NULL);
	board_start(b, 0);
	CHECK(rig_wait_bytes(&b->rig, 0, 3 * IMAGE), "nothing moves");
	tap_fork_hold();
}

TEST(killed, "after the death of the program of VFIO the board is idle and the memory free")
{
	u64 before = bytes_allocated();
	struct board b;

	close(buffer_alloc(WORD + PAGE, NAME));
	tap_fork_kill(tap_fork_held(stream_until_killed, NULL));
	ANSWERED(buffer_remove(NAME), 0, NULL);
	CHECK(bytes_allocated() == before, "%llu bytes are left", bytes_allocated() - before);
	board_open(&b);
	rig_is_idle(b.rig.regs, 0);
	board_close(&b);
}

/* Is the page free? 10 is KPF_BUDDY. */
static bool page_free(u64 pfn)
{
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	u64 flags = 0;

	CHECK(pread(fd, &flags, sizeof(flags), pfn * sizeof(flags)) == sizeof(flags),
	      "no flags of page %llu", pfn);
	close(fd);
	return flags >> 10 & 1;
}

/*
 * The pin of VFIO has a reference to the pages. So a buffer without a user stays, and is charged,
 * until VFIO unmaps it.
 */
TEST(pinned, "the pages of a removed buffer stay while VFIO maps them for the board")
{
	u64 before = bytes_allocated(), pfn, bytes;
	struct board b;
	int buffer;
	char *p;

	SKIP_IF(!iommu, "VFIO maps and pins nothing without an IOMMU");
	board_open(&b);
	buffer = buffer_alloc(WORD + PAGE, NAME);
	p = map_fd(buffer, WORD + PAGE);
	pfn = pfn_of(p);
	unmap_fd(p, WORD + PAGE, buffer);
	/* the files of VFIO are shared, so they outlive the child */
	tap_fork_kill(tap_fork_held(stream_until_killed, &b));
	ANSWERED(buffer_remove(NAME), 0, NULL);
	/* LIMIT first gives back what has come free */
	CHECK(bytes_allocated() >= before + WORD, "the buffer is not charged any more");
	bytes = reg64(rig_dtp(&b.rig, 0), RFPGA_DTP_C_BYTES);
	CHECK(rig_wait_bytes(&b.rig, 0, bytes + 3 * IMAGE), "the stream has ended");
	CHECK(!reg64(b.rig.regs, RFPGA_FAULTS), "the board was refused");
	CHECK(pfn && !page_free(pfn), "the page is free");
	board_close(&b);
	CHECK(bytes_allocated() == before, "%llu bytes are left", bytes_allocated() - before);
}

/* VFIO could not keep such pages, which it must not map then. */
TEST(cma, "a buffer of CMA cannot be mapped by address")
{
	struct rashpa_alloc a = { HEAD(a), .length = MIB, .backend = RASHPA_BACKEND_CMA };
	struct board b;
	void *p;

	SKIP_IF(!iommu, "VFIO maps nothing without an IOMMU");
	SKIP_IF(!cma_here(), "no CMA area");
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL);
	p = map_fd(a.out_fd, MIB);
	board_open(&b);
	CHECK(board_map(&b, p, MIB) < 0, "VFIO maps it");
	board_close(&b);
	unmap_fd(p, MIB, a.out_fd);
}
