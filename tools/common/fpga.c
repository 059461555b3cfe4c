// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/fpga.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/parse.h"
#include <rashpa.h>
#include "common/say.h"

bool parse_fpga(const char *text, unsigned int *number)
{
	uint64_t n;

	if (!strncmp(text, "/dev/rashpa/", strlen("/dev/rashpa/")))
		text += strlen("/dev/rashpa/");
	if (!strncmp(text, "fpga", strlen("fpga")))
		text += strlen("fpga");
	if (!parse_u64(text, 0xffff, &n))
		return false;
	*number = n;
	return true;
}

int fpga_open(struct fpga *fpga, unsigned int number, char *why)
{
	*fpga = (struct fpga)FPGA_NONE;
	fpga->number = number;
	fpga->device = rashpa_device_open(number);
	if (fpga->device < 0)
		return because(why, -1, "%s", rashpa_reason());
	if (!rashpa_device_get_info(fpga->device, &fpga->info))
		return 0;
	because(why, -1, "fpga%u: %s", number, rashpa_reason());
	fpga_close(fpga);
	return -1;
}

void fpga_close(struct fpga *fpga)
{
	if (fpga->device >= 0)
		close(fpga->device);
	fpga->device = -1;
}

static char removed[128];
static sigjmp_buf way_out;
static volatile sig_atomic_t outlives;

static void on_bus_error(int number)
{
	ssize_t n;

	(void)number;
	if (outlives)
		siglongjmp(way_out, 1);
	n = write(STDERR_FILENO, removed, strlen(removed));
	(void)n;
	_exit(EXIT_FAILED);
}

void fpga_catch_removal(void)
{
	const struct sigaction action = { .sa_handler = on_bus_error };

	/* in the handler nothing can be formatted */
	snprintf(removed, sizeof(removed), "%s: the function was removed, or the memory is gone\n",
		 program_invocation_short_name);
	sigaction(SIGBUS, &action, NULL);
}

bool fpga_outlive(void (*look)(void *arg), void *arg)
{
	/* with its mask: SIGBUS is blocked in its handler */
	if (sigsetjmp(way_out, 1)) {
		outlives = false;
		return false;
	}
	outlives = true;
	look(arg);
	outlives = false;
	return true;
}
