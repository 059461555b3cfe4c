// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug iommu=both seconds=6 */
/* test: tier=nightly kernel=arm64 needs=virtio iommu=on seconds=3 */
/* DMA: the function writes into buffers, and stops before they go. */
#include "rig.h"

static struct fpga f;
static bool iommu;

/* Events of vector 1 until @n have come, or five seconds passed. */
static u64 wait_events(const struct rig *r, u64 n)
{
	struct rashpa_event e[16];
	u64 first = 0, last = 0;
	ssize_t got;

	while (!first || last - first + 1 < n) {
		if (!wait_fd(r->channel, POLLIN, 5000))
			break;
		got = read(r->channel, e, sizeof(e));
		if (got <= 0)
			break;
		if (!first)
			first = e[0].sequence;
		last = e[got / sizeof(*e) - 1].sequence;
	}
	return first ? last - first + 1 : 0;
}

/* ------------------------------------------------------------------------ */

static void transfer(u64 max_segment)
{
	struct rig r;

	rig_up(&r, &f, -1, 0, max_segment);
	rig_configure(&r, 0, RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX | RFPGA_MODE_FLUSH,
		  0, r.made.out_segments, IMAGES);
	rig_start(&r, 0);
	CHECK(rig_wait_bytes(&r, 0, IMAGES * IMAGE), "%llu bytes",
	      reg64(rig_dtp(&r, 0), RFPGA_DTP_C_BYTES));
	CHECK(wait_events(&r, 1) >= 1, "no event");
	while (!(reg32(rig_dtp(&r, 0), RFPGA_DTP_STATUS) & RFPGA_DTP_DONE))
		;
	CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "the data differ");
	CHECK(reg64(rig_dtp(&r, 0), RFPGA_DTP_C_IMAGES) == IMAGES, "%llu images",
	      reg64(rig_dtp(&r, 0), RFPGA_DTP_C_IMAGES));
	rig_is_idle(r.regs, 0);
	rig_down(&r);
}

TEST(transfer, "data arrive as they were sent")
{
	transfer(0);
}

TEST(transfer_pieces, "data arrive through a table of many pieces")
{
	transfer(3 * PAGE);
}

/* One image, one event at a time: when the event is there, so are the data. */
TEST(events, "every event comes once, after its data")
{
	struct rashpa_device_info info;
	struct rashpa_event e;
	struct rig r;
	u64 interrupts, last = 0;
	int i;

	fpga_info(&f, &info);
	interrupts = info.out_interrupts;
	rig_up(&r, &f, -1, 0, 0);
	for (i = 0; i < IMAGES && rig_send_image(&r, i, &e); i++) {
		CHECK(e.kind == RASHPA_SOURCE_VECTOR && e.value == 1 && e.source == 1 &&
		      !e.lost, "kind %u, value %llu", e.kind, e.value);
		CHECK(!last || e.sequence == last + 1, "sequence %llu after %llu",
		      e.sequence, last);
		last = e.sequence;
		CHECK(filled(r.memory + i * IMAGE, IMAGE, SEED + i * IMAGE / 8),
		      "image %d differs when its event is there", i);
		/* the event comes first, and START while it runs is ignored */
		rig_wait_stopped(&r, 0);
	}
	rig_settle(&r);
	CHECK(read(r.channel, &e, sizeof(e)) < 0 && errno == EAGAIN, "there are more events");
	fpga_info(&f, &info);
	CHECK(info.out_interrupts == interrupts + IMAGES + RIG_SETTLE, "%llu interrupts",
	      (info.out_interrupts - interrupts));
	rig_is_idle(r.regs, 0);
	rig_down(&r);
}

TEST(unmap_running, "closing the map of a running stream stops it first")
{
	char *regs = fpga_regs(&f);
	struct rig r;
	int i;

	for (i = 0; i < 5 && tap_ok(); i++) {
		rig_up(&r, &f, -1, 0, 64 * KIB);
		rig_run(&r, 0, r.made.out_segments);
		rig_end_map(&r);
		rig_is_idle(regs, 0);
		rig_entries_clear(regs, r.made.out_segments);
		/* the memory is ours again: the FPGA does not write into it */
		rig_nobody_writes(r.memory);
		rig_is_idle(regs, 0);
		rig_down(&r);
	}
	munmap(regs, RFPGA_BAR_REGS_SIZE);
}

TEST(unbind_running, "unbind stops a running stream first")
{
	struct rig r;
	int err;

	rig_up(&r, &f, -1, 0, 64 * KIB);
	rig_configure(&r, 0, RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX, 0, r.made.out_segments, 0);
	rig_start(&r, 0);
	CHECK(rig_wait_bytes(&r, 0, 2 * IMAGE), "it does not run");
	err = fpga_unbind(&f);
	CHECK(!err, "unbind: %s", strerror(-err));
	rig_nobody_writes(r.memory);
	rig_down(&r);
	fpga_again(&f);
}

static void stream_for_ever(void *arg)
{
	struct rig r;

	rig_up(&r, &f, -1, 0, 64 * KIB);
	rig_configure(&r, 0, RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX, 0, r.made.out_segments, 0);
	rig_start(&r, 0);
	if (rig_wait_bytes(&r, 0, IMAGE))
		tap_fork_hold();
}

TEST(kill_running, "killing a streaming process stops the stream first, 20 times")
{
	char *regs = fpga_regs(&f);
	int i;

	for (i = 0; i < 20 && tap_ok(); i++) {
		tap_fork_kill(tap_fork_held(stream_for_ever, NULL));
		rig_is_idle(regs, 0);
		rig_entries_clear(regs, IMAGES * IMAGE / (64 * KIB));
	}
	munmap(regs, RFPGA_BAR_REGS_SIZE);
}

/* Buffers are freed under the DMA, and used by others at once. */
TEST(kill_and_reuse, "memory freed under a stream is clean for the next one")
{
	int i, fd;
	void *p;

	for (i = 0; i < 5 && tap_ok(); i++) {
		tap_fork_kill(tap_fork_held(stream_for_ever, NULL));
		fd = buffer_alloc(IMAGES * IMAGE, NULL);
		p = map_fd(fd, IMAGES * IMAGE);
		CHECK(all_zero(p, IMAGES * IMAGE), "the next one sees DMA");
		unmap_fd(p, IMAGES * IMAGE, fd);
	}
}

TEST(invalid_entry, "an entry that is not valid is a fault, and nothing is written")
{
	struct rig r;

	rig_up(&r, &f, -1, 0, 0);
	/* entry 100 has no map */
	rig_configure(&r, 0, RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX, 100, 1, 1);
	rig_start(&r, 0);
	while (!(reg32(rig_dtp(&r, 0), RFPGA_DTP_STATUS) & RFPGA_DTP_FAULTED))
		;
	CHECK(reg64(r.regs, RFPGA_FAULTS) == 1, "%llu faults", reg64(r.regs, RFPGA_FAULTS));
	CHECK(reg32(r.regs, RFPGA_FAULT_CAUSE) == RFPGA_FAULT_ENTRY, "cause %u",
	      reg32(r.regs, RFPGA_FAULT_CAUSE));
	CHECK(!reg64(rig_dtp(&r, 0), RFPGA_DTP_C_BYTES), "bytes were written");
	CHECK(all_zero(r.memory, IMAGES * IMAGE), "something was written");
	set32(r.regs, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	rig_down(&r);
}

/* A stream by an entry that no map has written: it ends with this fault. */
static void faults(const struct rig *r, u64 address, u64 length, uint32_t cause)
{
	set64(r->regs, RFPGA_TABLE + RFPGA_ENTRY_ADDR, address);
	set64(r->regs, RFPGA_TABLE + RFPGA_ENTRY_LEN, length);
	set64(r->regs, RFPGA_TABLE + RFPGA_ENTRY_SUM, 0);
	set32(r->regs, RFPGA_TABLE + RFPGA_ENTRY_CONTROL, RFPGA_ENTRY_VALID);
	rig_configure(r, 0, RFPGA_MODE_FREERUN, 0, 1, 1);
	rig_start(r, 0);
	while (!(reg32(rig_dtp(r, 0), RFPGA_DTP_STATUS) & (RFPGA_DTP_FAULTED | RFPGA_DTP_DONE)))
		;
	CHECK(reg32(r->regs, RFPGA_FAULT_CAUSE) == cause, "cause %u",
	      reg32(r->regs, RFPGA_FAULT_CAUSE));
}

/* An address that was valid before its map went. */
TEST(stale_address, "an address whose map is gone is refused")
{
	const struct rashpa_table *t;
	u64 address;
	struct rig r;

	SKIP_IF(!iommu, "without an IOMMU nothing refuses an address");
	rig_up(&r, &f, -1, 0, 0);
	t = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, r.map, 0);
	address = t->segment[0].address;
	munmap((void *)t, PAGE);
	rig_end_map(&r);
	/* as firmware with a defect would use it */
	faults(&r, address, IMAGES * IMAGE, RFPGA_FAULT_BUS);
	CHECK(all_zero(r.memory, IMAGES * IMAGE), "it was written all the same");
	set32(r.regs, RFPGA_TABLE + RFPGA_ENTRY_CONTROL, 0);
	set64(r.regs, RFPGA_TABLE + RFPGA_ENTRY_ADDR, 0);
	set64(r.regs, RFPGA_TABLE + RFPGA_ENTRY_LEN, 0);
	set32(r.regs, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	rig_down(&r);
}

/* Bus mastering is off until a process has a map or a channel. */
TEST(master_off, "a function that was just bound can do no DMA")
{
	struct rashpa_device_info info;
	struct rig r = { .window = -1 };

	CHECK(!fpga_unbind(&f), "unbind");
	fpga_again(&f);
	fpga_info(&f, &info);
	CHECK(!(info.out_flags & RASHPA_DEVICE_MASTER), "bus mastering is on");
	r.regs = fpga_regs(&f);
	faults(&r, 0x1000000, IMAGE, RFPGA_FAULT_MASTER);
	set32(r.regs, RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	set32(r.regs, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	munmap(r.regs, RFPGA_BAR_REGS_SIZE);
}

TEST(quiesce_running, "QUIESCE stops a stream, and it can go on")
{
	struct rig r;

	rig_up(&r, &f, -1, 0, 64 * KIB);
	rig_run(&r, 0, r.made.out_segments);
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	rig_is_idle(r.regs, 0);
	/* the map is still good: go on */
	rig_streams(&r, 0, r.made.out_segments);
	rig_down(&r);
}

/* Without a quiesce sequence the function is stopped by taking bus mastering away. */
TEST(no_steps, "without a quiesce sequence closing a map ends bus mastering")
{
	struct rashpa_profile_set p = { HEAD(p), TABLE(fpga_table), .dma_bits = 64 };
	struct rashpa_device_info info;
	struct rig r;

	if (call(f.fd, RASHPA_IOC_PROFILE_SET, &p))
		tap_bail("profile: %s", reason);
	rig_up(&r, &f, -1, 0, 64 * KIB);
	rig_run(&r, 0, r.made.out_segments);
	rig_end_map(&r);
	fpga_info(&f, &info);
	CHECK(!(info.out_flags & RASHPA_DEVICE_MASTER), "bus mastering is on");
	memset(r.memory, 0, IMAGES * IMAGE);
	while (!(reg32(rig_dtp(&r, 0), RFPGA_DTP_STATUS) & RFPGA_DTP_FAULTED))
		;
	CHECK(all_zero(r.memory, IMAGES * IMAGE), "the FPGA still writes");
	set32(r.regs, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	rig_down(&r);
	if (fpga_profile(&f, 0, NULL, 0))
		tap_bail("profile: %s", reason);
}

void setup(void)
{
	rig_need(&f);
	iommu = fpga_iommu(&f);
}
