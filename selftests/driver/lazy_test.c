// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An IOMMU refuses an unmapped address at once, also where the kernel flushes it lazily. A transfer
 * of QEMU's edu that is on its way when its map ends reaches no memory. Its quiesce sequence lies,
 * as firmware may: the function does not stop. Skipped where the IOMMU has caching mode (CM=1).
 * test: kernel=6.1,newest iommu=on needs=lazy seconds=15
 * test: tier=nightly kernel=6.12 iommu=on needs=lazy seconds=15
 */
#include "edu.h"

#define TRANSFER_MS	100	/* between the command and the transfer */
#define ROUNDS		60
#define ENOUGH		5	/* transfers that came after the end of their map */

static struct fpga edu;

/* "DMA-FQ": the kernel's IOMMU code collects addresses before it flushes them. */
static bool is_lazy(void)
{
	char path[96], type[32] = "";

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group/type", edu.bdf);
	return read_text(path, type, sizeof(type)) && !strcmp(type, "DMA-FQ");
}

/* A profile whose condition is always true. */
static int profile(void)
{
	const struct rashpa_profile_step wait = {
		.op = RASHPA_STEP_WAIT, .bar = 0, .offset = EDU_ID, .mask = ~0U,
		.value = EDU_ID_MAGIC, .timeout_us = 1000 };
	struct rashpa_profile_set p = { HEAD(p), STEP(wait), .dma_bits = 64 };

	return call(edu.fd, RASHPA_IOC_PROFILE_SET, &p);
}

static void start(volatile char *regs, uint64_t to)
{
	edu_start(regs, EDU_BUFFER, to, EDU_DMA_TO);
}

static void wait_until(uint64_t ns)
{
	while (now_ns() < ns)
		;
}

/* The buffer's bus address, -1 after a failed check. */
static uint64_t map(int buffer, struct rashpa_map_make *m)
{
	const struct rashpa_table *table;
	uint64_t address;

	*m = (struct rashpa_map_make) { HEAD(*m), .fd = buffer };
	if (!ANSWERED(call(edu.fd, RASHPA_IOC_MAP_MAKE, m), 0, NULL))
		return -1;
	table = table_of(m);
	address = table->segment[0].address;
	munmap((void *)table, m->out_table_size);
	return address;
}

/*
 * End the map shortly before the transfer, whose time is not known: the caller tries later and
 * later times, until transfers are too early.
 *
 * Return: did the transfer come after the end?
 */
static bool late(volatile char *regs, char *p, int buffer, uint64_t after_us)
{
	struct rashpa_map_make m;
	uint64_t address = map(buffer, &m), begin;
	bool was_late;

	/* the IOMMU has read the entry now */
	memset(p, 1, CHUNK);
	start(regs, address);
	while (edu_runs(regs))
		;
	CHECK(p[0] != 1, "no transfer while it is mapped");
	memset(p, 1, CHUNK);
	begin = now_ns();
	start(regs, address);
	wait_until(begin + after_us * 1000);
	close(m.out_fd);
	was_late = edu_runs(regs) && p[0] == 1;
	while (edu_runs(regs))
		;
	if (was_late)
		CHECK(p[0] == 1 && p[CHUNK - 1] == 1,
		      "edu wrote where nothing is mapped, %llu us after its command",
		      (unsigned long long)after_us);
	return was_late;
}

TEST(refused, "a transfer that is late reaches no memory")
{
	int log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC), buffer = buffer_alloc(PAGE, NULL);
	int other = buffer_alloc(PAGE, NULL), win;
	struct rashpa_map_make stays;
	unsigned int i, n = 0;
	char *p = map_fd(buffer, PAGE);
	volatile char *regs;

	SKIP_IF(!is_lazy(), "the IOMMU is flushed at once here");
	win = fpga_window(&edu, 0, 0, PAGE, 0);
	regs = map_fd(win, PAGE);
	REQUIRE(map(other, &stays) != (uint64_t)-1, "%s", reason);
	dprintf(log, "lab: expects: DMAR\n");	/* else the run fails for it */
	for (i = 0; i < ROUNDS && tap_ok(); i++)
		n += late(regs, p, buffer, (TRANSFER_MS - 12) * 1000 + i % 20 * 600);
	dprintf(log, "lab: expects:\n");
	tap_note("%u of %u transfers came after the end of their map", n, i);
	CHECK(!tap_ok() || n >= ENOUGH, "only %u transfers came after the end of their map", n);
	close(stays.out_fd);
	unmap_fd((void *)regs, PAGE, win);
	unmap_fd(p, PAGE, buffer);
	close(other);
	close(log);
}

void setup(void)
{
	if (!function_open(&edu, EDU_VENDOR, EDU_DEVICE, 0))
		tap_skip_all("no edu device");
	if (profile())
		tap_bail("profile: %s", reason);
}

void teardown_all(void)
{
	if (function_open(&edu, EDU_VENDOR, EDU_DEVICE, 0)) {
		close(edu.fd);
		fpga_unbind(&edu);
	}
}
