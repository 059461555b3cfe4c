// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: needs=bounce iommu=off seconds=1 */
/* A machine that copies all DMA through bounce buffers: maps are refused, not false. */
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

TEST(buffer, "a buffer that would be bounced is refused")
{
	refused(buffer_alloc(4 * MIB, NULL));
}

TEST(foreign, "memory of another driver that would be bounced is refused")
{
	int fd = foreign_dmabuf(MIB);

	SKIP_IF(fd < 0, "no udmabuf in this kernel");
	refused(fd);
}

void setup(void)
{
	if (!bounces())
		tap_skip_all("DMA is direct here (lab run --append swiotlb=force)");
	fpga_need(&fpga);
}
