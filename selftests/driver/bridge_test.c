// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The driver does not assume that an unknown host bridge routes between functions.
 * test: tier=all kernel=6.1,6.12 iommu=both seconds=3
 */
#include <sys/utsname.h>

#include <rashpa-fpga.h>
#include "common.h"

#define POLICY	"/sys/module/rashpa/parameters/p2p_bridge"

static struct fpga f, peer;

/* Does the kernel have a list of host bridges? */
static bool kernel_knows(void)
{
	static char config[1 << 20];
	struct utsname name;
	char path[128];

	uname(&name);
	snprintf(path, sizeof(path), "/boot/config-%s", name.release);
	if (!read_file(path, config, sizeof(config)))
		return true;
	return strstr(config, "CONFIG_PCI_P2PDMA=y");
}

static void try_it(int want, const char *says)
{
	struct rashpa_map_make m;
	int win = fpga_window(&peer, RFPGA_BAR_MEMORY, 0, PAGE, 0), err;

	CHECK(win >= 0, "%s", reason);
	err = fpga_map(&f, win, RASHPA_TO_MEMORY, &m);
	ANSWERED(err < 0 ? err : 0, want, says);
	if (err >= 0)
		close(err);
	close(win);
}

TEST(auto_policy, "p2p_bridge=auto refuses an unknown host bridge")
{
	char before[16];

	SKIP_IF(kernel_knows(), "the kernel has a list of host bridges");
	REQUIRE(read_text(POLICY, before, sizeof(before)), "no p2p_bridge");
	CHECK(!write_text(POLICY, "auto"), "p2p_bridge=auto");
	try_it(ENXIO, "host bridge|p2p_bridge=allow");
	CHECK(!write_text(POLICY, "allow"), "p2p_bridge=allow");
	try_it(0, NULL);
	CHECK(!write_text(POLICY, before), "p2p_bridge=%s", before);
}

void setup(void)
{
	fpga_need(&f);
	if (!fpga_try(&peer, 1))
		tap_skip_all("no second software FPGA");
	if (fpga_profile(&f, 0, NULL, 0) || fpga_profile(&peer, 0, NULL, 0))
		tap_bail("profile: %s", reason);
}
