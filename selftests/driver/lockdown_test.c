// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: needs=contig iommu=off seconds=1 */
/* test: needs=intx iommu=on seconds=1 */
/*
 * A kernel that is locked down refuses, also to root, calls that lead through registers to all
 * memory. Locks the kernel down for good, so a guest runs it last.
 */
#include <sys/mount.h>

#include <rashpa-fpga.h>
#include "common.h"

#define LOCKDOWN	"/sys/kernel/security/lockdown"

static const struct rashpa_profile_window declared = {
	.name = "declared", .bar = RFPGA_BAR_DOORBELL, .length = 2 * PAGE,
};

static struct fpga f;
static int refused;	/* errno */
static const char *says;
static int window;	/* of all registers, made before */

static void try_profile(void)
{
	const struct rashpa_profile_step step = { .op = RASHPA_STEP_WAIT, .bar = 0,
						  .offset = RFPGA_STATUS, .mask = 1,
						  .timeout_us = 1000 };
	struct rashpa_profile_set with_step = { HEAD(with_step), STEP(step) };
	struct rashpa_profile_set with_table = { HEAD(with_table), TABLE(fpga_table) };
	struct rashpa_profile_set with_window = { HEAD(with_window), ARRAY(window, &declared, 1) };

	close(window);
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &with_step), refused, says);
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &with_table), refused, says);
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &with_window), refused, says);
	window = fpga_window(&f, RFPGA_BAR_DOORBELL, PAGE, PAGE, 0);
}

static void try_window(void)
{
	struct rashpa_window_make named = { HEAD(named), .name = "declared" };
	int part = fpga_window(&f, RFPGA_BAR_DOORBELL, PAGE, PAGE, 0);
	int raw = fpga_window(&f, RFPGA_BAR_DOORBELL, 2 * PAGE, PAGE, 0);

	ANSWERED(raw < 0 ? raw : 0, refused, says);
	CHECK(part >= 0, "a part of a declared window");
	ANSWERED(call(f.fd, RASHPA_IOC_WINDOW_MAKE, &named), 0, NULL);
	close(named.out_fd);
	close(part);
	close(raw);
}

/* In this order: the window has to be older than the lockdown, and would keep the profile. */
static const struct { const char *key; void (*fn)(void); } tries[] = {
	{ "a-window-that-the-profile-does-not-have", try_window },
	{ "a-profile-that-names-registers", try_profile },
};

TEST_EACH(locked, tries, "locked down: %s")
{
	row->fn();
}

void setup(void)
{
	fpga_need(&f);
	if (fpga_profile(&f, 0, &declared, 1))
		tap_bail("profile: %s", reason);
	window = fpga_window(&f, RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
	if (window < 0)
		tap_bail("window: %s", reason);
	mount("securityfs", "/sys/kernel/security", "securityfs", 0, NULL);
	if (write_text(LOCKDOWN, "integrity"))
		tap_skip_all("this kernel cannot be locked down, or is already");
	/* with an IOMMU a function reaches only its maps, even if a process has its registers */
	if (!fpga_iommu(&f)) {
		refused = EPERM;
		says = "locked down|IOMMU";
	}
}
