// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/fpga.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/parse.h"
#include <rashpa.h>
#include "common/say.h"
#include "common/text-file.h"

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

/* A file of procfs has a line that begins so and is a flock of the node: the process that took it. */
static int lock_in(const char *path, const char *begin, const struct stat *node)
{
	FILE *file = fopen(path, "re");
	char line[256];
	unsigned int major, minor;
	unsigned long inode;
	int pid, found = 0;

	while (file && !found && fgets(line, sizeof(line), file))
		if (!strncmp(line, begin, strlen(begin)) &&
		    sscanf(line + strlen(begin), "%*u: FLOCK %*s %*s %d %x:%x:%lu", &pid, &major,
			   &minor, &inode) == 4 &&
		    makedev(major, minor) == node->st_dev && inode == node->st_ino)
			found = pid;
	if (file)
		fclose(file);
	return found;
}

/*
 * Name the process that has claimed the board. /proc/locks names the process that took the lock.
 * Another process may have the file by now (fork(), a socket), and yet another one the number.
 */
static int because_claimed(const struct fpga *fpga, char *why)
{
	char name[64] = "", files[64];
	glob_t found = {};
	struct stat node;
	int took, pid = 0;

	if (fstat(fpga->device, &node))
		return because(why, -1, "fpga%u: %s", fpga->number, strerror(errno));
	took = lock_in("/proc/locks", "", &node);
	if (!glob("/proc/[0-9]*/fdinfo/*", 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc && !pid; i++)
			if (lock_in(found.gl_pathv[i], "lock:\t", &node))
				sscanf(found.gl_pathv[i], "/proc/%d/", &pid);
	globfree(&found);
	snprintf(files, sizeof(files), "/proc/%d/fdinfo", took);
	if (!pid && access(files, R_OK) && errno == EACCES)
		pid = took;	/* another user's process, probably the same */
	if (!pid)
		return because(why, -1, "fpga%u: another program has it to itself, which got that from process %d: stop that program (as root, fuser -v /dev/rashpa/fpga%u lists who has the node open)",
			       fpga->number, took, fpga->number);
	read_line(name, sizeof(name), "/proc/%d/comm", pid);
	return because(why, -1, "fpga%u: process %d%s%s%s has it to itself: stop the producer first (kill %d)",
		       fpga->number, pid, *name ? " (" : "", name, *name ? ")" : "", pid);
}

int fpga_idle(struct fpga *fpga, char *why)
{
	const struct rashpa_holding *first = NULL;
	struct rashpa_holding *held;
	int n, maps = 0;

	if (rashpa_device_get_info(fpga->device, &fpga->info))
		return because(why, -1, "fpga%u: %s", fpga->number, rashpa_reason());
	if (!fpga->info.out_maps)
		return 0;
	n = rashpa_node_list(fpga->device, &held);
	if (n < 0)
		return because(why, -1, "fpga%u: %s", fpga->number, rashpa_reason());
	for (int i = 0; i < n; i++) {
		if (held[i].resource != RASHPA_RESOURCE_MAPS ||
		    !(held[i].flags & (RASHPA_HOLDING_PROGRAMMED | RASHPA_HOLDING_TOLD)))
			continue;
		first = maps++ ? first : &held[i];
	}
	if (maps)
		because(why, -1, "fpga%u: it has addresses of %d maps, and to release one more would stop its DMA: stop the producer first (process %d (%s) of user %u made map %u: rashpactl map release %u)",
			fpga->number, maps, first->pid, first->comm, first->uid, first->id,
			first->id);
	free(held);
	return maps ? -1 : 0;
}

int fpga_claim(struct fpga *fpga, char *why)
{
	if (flock(fpga->device, LOCK_EX | LOCK_NB))
		return because_claimed(fpga, why);
	if (!fpga_idle(fpga, why))
		return 0;
	fpga_unclaim(fpga);
	return -1;
}

void fpga_unclaim(struct fpga *fpga)
{
	flock(fpga->device, LOCK_UN);
}

int view_map(struct view *view, const struct fpga *fpga, const char *what, char *why)
{
	void *base = mmap(NULL, view->length, PROT_READ | PROT_WRITE, MAP_SHARED, view->fd, 0);

	if (base == MAP_FAILED)
		return because(why, -1, "fpga%u: %s: cannot map it: %s", fpga->number, what,
			       errno == EBUSY ? "the kernel keeps a page of it, which the kernel's log names, for itself: use the parts before and after it" :
						strerror(errno));
	view->base = base;
	return 0;
}

int view_open(struct view *view, struct fpga *fpga, const char *name, unsigned int bar,
	      uint64_t offset, uint64_t length, bool map, char *why)
{
	struct rashpa_window_make window = {};
	struct rashpa_region_info region;
	char what[64];

	*view = (struct view)VIEW_NONE;
	strncpy(window.name, name, sizeof(window.name) - 1);
	view->fd = rashpa_device_window(fpga->device, &window);
	if (view->fd == -ENOENT) {
		if (rashpa_device_region(fpga->device, bar, &region))
			return because(why, -1, "fpga%u: BAR %u: %s", fpga->number, bar,
				       rashpa_reason());
		window = (struct rashpa_window_make) {
			.bar = bar,
			.offset = offset,
			.length = length ? length : region.out_length - offset,
		};
		view->fd = rashpa_device_window(fpga->device, &window);
	}
	if (view->fd < 0)
		return because(why, -1, "fpga%u: window \"%s\": %s", fpga->number, name,
			       rashpa_reason());
	view->length = window.out_length;
	snprintf(what, sizeof(what), "window \"%s\"", name);
	if (!map || !view_map(view, fpga, what, why))
		return 0;
	view_close(view);
	return -1;
}

void view_close(struct view *view)
{
	if (view->base)
		munmap((void *)(uintptr_t)view->base, view->length);
	if (view->fd >= 0)
		close(view->fd);
	*view = (struct view)VIEW_NONE;
}

int fpga_registers(struct fpga *fpga, char *why)
{
	uint32_t id, version;

	if (view_open(&fpga->regs, fpga, "registers", RFPGA_BAR_REGS, 0, RFPGA_BOUNDS, true, why))
		return -1;
	if (fpga->regs.length < RFPGA_BOUNDS) {
		because(why, -1, "fpga%u: the window \"registers\" is shorter than the reference interface: check the profile",
			fpga->number);
		goto out;
	}
	id = fpga_read(fpga, RFPGA_ID);
	version = fpga_read(fpga, RFPGA_VERSION);
	if (id != RFPGA_ID_VALUE) {
		because(why, -1, "fpga%u: the ID register is %#x and not %#x: not the reference interface",
			fpga->number, id, RFPGA_ID_VALUE);
		goto out;
	}
	if (version >> 16 != RFPGA_VERSION_VALUE >> 16 || version < RFPGA_VERSION_VALUE) {
		because(why, -1, "fpga%u: version %u.%u of the interface, this tool knows %u.%u and later minors",
			fpga->number, version >> 16, version & 0xffff, RFPGA_VERSION_VALUE >> 16,
			RFPGA_VERSION_VALUE & 0xffff);
		goto out;
	}
	return 0;
out:
	view_close(&fpga->regs);
	return -1;
}

void fpga_close(struct fpga *fpga)
{
	view_close(&fpga->regs);
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

#define BLOCKS_MAX	64	/* reject a list that does not end */

bool fpga_block_at(const struct fpga *fpga, unsigned int i, struct fpga_block *block)
{
	uint64_t at = fpga_read(fpga, RFPGA_BLOCKS) + (uint64_t)i * RFPGA_BLOCK_STRIDE;
	uint32_t type;

	if (i >= BLOCKS_MAX || at % 4 || at + RFPGA_BLOCK_STRIDE > fpga->regs.length)
		return false;
	type = fpga_read(fpga, at + RFPGA_BLOCK_TYPE);
	*block = (struct fpga_block) {
		.type = type & 0xffff,
		.count = type >> 16,
		.base = fpga_read(fpga, at + RFPGA_BLOCK_BASE),
		.step = fpga_read(fpga, at + RFPGA_BLOCK_STEP),
		.doorbell = fpga_read(fpga, at + RFPGA_BLOCK_DOORBELL),
	};
	return block->type != RFPGA_BLOCK_NONE;
}

bool fpga_block_find(const struct fpga *fpga, uint32_t type, uint32_t size,
		     struct fpga_block *block)
{
	for (unsigned int i = 0; fpga_block_at(fpga, i, block); i++) {
		uint64_t last = block->base + (block->count - 1ull) * block->step;

		if (block->type == type && block->count && !(block->base % 4) &&
		    !(block->step % 4) && last + size <= fpga->regs.length)
			return true;
	}
	return false;
}

bool fpga_unit(const struct fpga *fpga, struct fpga_block *unit)
{
	return fpga_block_find(fpga, RFPGA_BLOCK_UNIT, RFPGA_UNIT_SIZE, unit) &&
	       fpga_read(fpga, unit->base + RFPGA_UNIT_KIND) == RFPGA_UNIT_PRETREAT;
}

uint64_t fpga_memory(const struct fpga *fpga, const struct view *memory)
{
	const uint64_t bytes = fpga_read64(fpga, RFPGA_MEMORY_SIZE);

	return bytes < memory->length ? bytes : memory->length;
}

const char *fpga_cause_name(uint32_t cause)
{
	switch (cause) {
	case RFPGA_FAULT_NONE:		return "none";
	case RFPGA_FAULT_ENTRY:		return "entry";
	case RFPGA_FAULT_BUS:		return "bus";
	case RFPGA_FAULT_MASTER:	return "master";
	case RFPGA_FAULT_SOURCE:	return "source";
	case RFPGA_FAULT_CONFIG:	return "config";
	case RFPGA_FAULT_DESC:		return "descriptor";
	default:			return "?";
	}
}

_Static_assert(offsetof(struct rfpga_dtp, mode) == RFPGA_DTP_MODE &&
	       offsetof(struct rfpga_dtp, src_base) == RFPGA_DTP_SRC_BASE &&
	       offsetof(struct rfpga_dtp, src_line) == RFPGA_DTP_SRC_LINE &&
	       offsetof(struct rfpga_dtp, dst_first) == RFPGA_DTP_DST_FIRST &&
	       offsetof(struct rfpga_dtp, lock_offset) == RFPGA_DTP_LOCK_OFFSET &&
	       offsetof(struct rfpga_dtp, first_slot) == RFPGA_DTP_FIRST_SLOT &&
	       offsetof(struct rfpga_dtp, source) == RFPGA_DTP_SOURCE &&
	       offsetof(struct rfpga_dtp, run) == RFPGA_DTP_RUN &&
	       offsetof(struct rfpga_dtp, first_frame) == RFPGA_DTP_FIRST_FRAME,
	       "struct rfpga_dtp is not as the registers are");

int fpga_range(const struct fpga *fpga, const char *engine, struct fpga_range *range, char *why)
{
	struct rashpa_engine_info e;

	*range = (struct fpga_range) {
		.count = RFPGA_CAPS_ENTRIES(fpga_read(fpga, RFPGA_CAPS)), .engine = -1,
	};
	for (uint32_t i = 0; i < fpga->info.out_engines; i++) {
		if (rashpa_device_engine(fpga->device, i, &e))
			return because(why, -1, "fpga%u: %s", fpga->number, rashpa_reason());
		if (strcmp(e.out_name, engine) || e.out_flags & RASHPA_ENGINE_ABSENT)
			continue;
		*range = (struct fpga_range) { e.out_first, e.out_count, (int)i };
		return 0;
	}
	if (!fpga->info.out_engines)
		return 0;
	return because(why, -1, "fpga%u: its profile has engines, and no \"%s\" that is on board",
		       fpga->number, engine);
}

void fpga_configure(const struct fpga *fpga, unsigned int n, const struct rfpga_dtp *dtp)
{
	for (uint32_t at = RFPGA_DTP_MODE; at < sizeof(*dtp); at += 4)
		fpga_write(fpga, RFPGA_DTP(n) + at, rfpga_dtp_word(dtp, at));
}
