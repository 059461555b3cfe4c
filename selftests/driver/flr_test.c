// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: needs=switch iommu=on seconds=65 */
/*
 * A function that does not come back from its function-level reset. The PCI core waits a minute
 * for it, so one guest runs this.
 */
#include "rig.h"

static struct fpga f;

/* A reset that failed has not stopped the function's DMA. */
TEST(dies, "a board that does not survive its reset is stuck until it is bound again")
{
	struct rashpa_device_info info;
	struct rashpa_map_make map;
	int fd = buffer_alloc(PAGE, NULL);

	REQUIRE(rig_tell(0, "flr dies"), "no control of the FPGA");
	ANSWERED(fpga_profile(&f, 0, NULL, 0), EIO, "does not answer|bind it again");
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_STUCK && !(info.out_flags & RASHPA_DEVICE_MASTER),
	      "state %u, flags 0x%x", info.out_state, info.out_flags);
	ANSWERED(fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map), EIO, "reset");
	/* it answers again, but has lost its BARs */
	CHECK(rig_tell(0, "dead off"), "no control of the FPGA");
	ANSWERED(fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map), EIO, "reset");
	close(f.fd);
	REQUIRE(!fpga_unbind(&f) && !fpga_bind(&f) && fpga_open(&f, 0), "bind");
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_READY, "state %u", info.out_state);
	CHECK(fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map) >= 0, "MAP: %s", reason);
	close(map.out_fd);
	close(fd);
}

void setup(void)
{
	rig_need_control(&f);
}
