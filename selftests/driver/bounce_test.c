// SPDX-License-Identifier: LGPL-2.1-or-later
/* A machine that copies all DMA through bounce buffers: maps are refused, not false. */
#include <string.h>
#include <unistd.h>

#include "common.h"

static struct fpga fpga;

static bool bounces(void)
{
	char line[1024] = "";

	return read_text("/proc/cmdline", line, sizeof(line)) && strstr(line, "swiotlb=force");
}

static void refused(int fd)
{
	struct rashpa_map_make map;
	int got;

	REQUIRE(fd >= 0, "no memory: %s", reason);
	got = fpga_map(&fpga, fd, RASHPA_TO_MEMORY, &map);
	ANSWERED(got < 0 ? got : 0, EREMOTEIO, "bounce|swiotlb=force|IOMMU");
	if (got >= 0)
		close(got);
	close(fd);
}

static void test_buffer(void)
{
	refused(buffer_alloc(4 * MIB, NULL));
}

static void test_foreign(void)
{
	int fd = foreign_dmabuf(MIB);

	SKIP_IF(fd < 0, "no udmabuf in this kernel");
	refused(fd);
}

int main(void)
{
	common_init();
	if (!bounces()) {
		tap_skip_all("bounce buffers", "DMA is direct here (lab run --append swiotlb=force)");
		return tap_exit();
	}
	if (!fpga_open(&fpga, 0)) {
		tap_skip_all("bounce buffers", "no software FPGA in this guest");
		return tap_exit();
	}
	fpga_watch(&fpga);
	tap_run("a buffer that would be bounced is refused", test_buffer);
	tap_run("memory of another driver, too", test_foreign);
	fpga_close(&fpga);
	return tap_exit();
}
