// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug iommu=on seconds=1 */
/* A user rings the doorbell that the profile gives him, and reaches nothing else. */
#include <setjmp.h>
#include <sys/uio.h>

#include "rig.h"

#define DTP	1

static struct fpga f;
static sigjmp_buf back;
static struct rig rig;

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

/* Nothing that is needed after a fault is in a variable of the function that it returns to. */
static bool touch(volatile uint8_t *at, uint8_t (*access)(volatile uint8_t *))
{
	if (sigsetjmp(back, 1))
		return false;
	access(at);
	return true;
}

static uint8_t load(volatile uint8_t *at)
{
	return *at;
}

static uint8_t store(volatile uint8_t *at)
{
	*at = 0xff;
	return 0;
}

/* Does the CPU fault on this address? */
static bool faults(volatile uint8_t *at, bool write)
{
	struct sigaction sa = { .sa_handler = on_fault }, old[2];
	bool good;

	sigaction(SIGSEGV, &sa, &old[0]);
	sigaction(SIGBUS, &sa, &old[1]);
	good = touch(at, write ? store : load);
	sigaction(SIGSEGV, &old[0], NULL);
	sigaction(SIGBUS, &old[1], NULL);
	return !good;
}

static int named(const char *name)
{
	struct rashpa_window_make w = { HEAD(w) };
	int err;

	strcpy(w.name, name);
	err = call(f.fd, RASHPA_IOC_WINDOW_MAKE, &w);
	return err ? err : w.out_fd;
}

/* Neither the next page, nor /proc, nor a longer mapping reaches more. */
static void try_beside(char *bell, int win)
{
	u64 word = 0;
	struct iovec here = { &word, sizeof(word) }, there = { bell + PAGE, sizeof(word) };
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	void *p;

	CHECK(faults((uint8_t *)bell - 1, false) && faults((uint8_t *)bell - 1, true),
	      "the byte before it can be reached");
	CHECK(faults((uint8_t *)bell + PAGE, false) && faults((uint8_t *)bell + PAGE, true),
	      "the byte after it can be reached");
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, win, 0);
	CHECK(p == MAP_FAILED, "two pages of one");
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, win, PAGE);
	CHECK(p == MAP_FAILED, "the page after it");
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, win, -(off_t)PAGE);
	CHECK(p == MAP_FAILED, "the page before it");
	p = mremap(bell, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	CHECK(p == MAP_FAILED, "it grew");
	p = mremap(bell, 0, PAGE * 2, MREMAP_MAYMOVE);
	CHECK(p == MAP_FAILED, "it was copied, and grew");
	CHECK(process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0, "process_vm_readv");
	if (mem >= 0) {
		CHECK(pread(mem, &word, sizeof(word), (off_t)(uintptr_t)(bell + PAGE)) < 0,
		      "/proc/self/mem");
		close(mem);
	}
	CHECK(faults((uint8_t *)bell + PAGE, false), "afterwards");
}

/* Map the doorbell between two unmapped pages, so that its neighbours are known. */
static char *map_alone(int win)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || munmap(p, PAGE) || munmap(p + 2 * PAGE, PAGE))
		return NULL;
	p = mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, win, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void as_user(void *arg)
{
	int win, cache = *(int *)arg;
	char *bell;

	drop_privileges();
	ANSWERED(named("other"), EPERM, "CAP_SYS_RAWIO");
	ANSWERED(fpga_window(&f, RFPGA_BAR_DOORBELL, 0, PAGE, cache), EPERM, "CAP_SYS_RAWIO");
	ANSWERED(fpga_window(&f, RFPGA_BAR_DOORBELL, (DTP + 1) * PAGE, PAGE, cache), EPERM,
		 "CAP_SYS_RAWIO");
	ANSWERED(fpga_window(&f, RFPGA_BAR_REGS, 0, PAGE, cache), EPERM, "CAP_SYS_RAWIO");
	win = named("bell");
	REQUIRE(win >= 0, "his own: %s", reason);
	bell = map_alone(win);
	REQUIRE(bell, "mmap: %s", strerror(errno));
	set32(bell, 0, 8);
	CHECK(reg32(bell, 0) == 8, "it reads %u", reg32(bell, 0));
	try_beside(bell, win);
}

/* It rings: the function goes on after the user's write. */
TEST(ring, "a user rings his doorbell, and reaches no byte next to it")
{
	static const struct rashpa_profile_window windows[] = {
		{ .name = "bell", .bar = RFPGA_BAR_DOORBELL, .flags = RASHPA_PWINDOW_USER,
		  .offset = DTP * PAGE, .length = PAGE },
		{ .name = "other", .bar = RFPGA_BAR_DOORBELL, .offset = (DTP + 1) * PAGE,
		  .length = PAGE },
	};
	int cache = 0;

	ANSWERED(fpga_profile(&f, 0, windows, 2), 0, NULL);
	rig_up(&rig, &f, -1, 0, 0);
	rig_configure(&rig, DTP, 0, 0, rig.made.out_segments, 2 * IMAGES);
	rig_start(&rig, DTP);
	/* as many stacks as there are slots, then it waits */
	CHECK(rig_wait_bytes(&rig, DTP, IMAGES * IMAGE), "it does not start");
	tap_fork(as_user, &cache);
	CHECK(rig_wait_bytes(&rig, DTP, 2 * IMAGES * IMAGE), "the doorbell has no effect");
	rig_down(&rig);
	ANSWERED(fpga_profile_none(&f), 0, NULL);
}

void setup(void)
{
	rig_need(&f);
}
