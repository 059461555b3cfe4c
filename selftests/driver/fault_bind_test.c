// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: kernel=debug iommu=off seconds=15 */
/*
 * Bind, unbind and load of the module while an allocation fails: they fail, or succeed without
 * it, and a second try works.
 */
#include <sys/syscall.h>

#include "common.h"
#include "fault.h"

#define POINTS		400		/* of unbind, at most */

static struct fpga f;
static int bind_fd = -1, unbind_fd = -1;

/* One write, so that nothing but the attribute itself can fail. */
static int write_bdf(int fd)
{
	return write(fd, f.bdf, strlen(f.bdf)) < 0 ? -errno : 0;
}

static bool bound(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/rashpa/%s", f.bdf);
	return !access(path, F_OK);
}

/*
 * There are hundreds of places. The test tries those of the driver: at the beginning, and at
 * the end, where it makes its node. Between them the core makes files of each interrupt in
 * /proc, ignores failures of that, and warns when it cannot remove a missing file (lab/allow).
 * The number of places varies, so the test may hit some of these.
 */
#define BIND_FIRST	20
#define BIND_LAST	20

static bool bind_at(unsigned int n)
{
	int err = write_bdf(unbind_fd), failed;

	CHECK(!err && !bound(), "unbind: %s", strerror(-err));
	faults_arm(n);
	failed = write_bdf(bind_fd);
	faults_disarm();
	CHECK(!failed == bound(), "place %u: answer %d, but %s", n, -failed,
	      bound() ? "bound" : "not bound");
	if (!failed)
		return false;
	/* EBUSY: a BAR without a struct resource */
	CHECK(fault_answer(failed) || failed == -EBUSY, "place %u: %s", n, strerror(-failed));
	err = write_bdf(bind_fd);
	CHECK(!err && bound(), "bind after place %u: %s", n, strerror(-err));
	return true;
}

TEST(bind, "bind: a place in it fails")
{
	unsigned int n, all, failed = 0;
	int err;

	err = write_bdf(unbind_fd);
	REQUIRE(!err && !bound(), "unbind: %s", strerror(-err));
	faults_arm(FAULTS_NEVER);
	err = write_bdf(bind_fd);
	all = FAULTS_NEVER - faults_disarm();
	REQUIRE(!err && bound() && all > BIND_FIRST + BIND_LAST, "bind: %s, %u places",
		strerror(-err), all);
	for (n = 1; n <= all && tap_ok(); n++) {
		if (n == BIND_FIRST)
			n = all - BIND_LAST;
		failed += bind_at(n);
	}
	CHECK(failed, "no place of %u made it fail", all);
	tap_note("bind: %u places, %u made it fail", all, failed);
}

TEST(unbind, "unbind: each place in it fails")
{
	unsigned int n, left = 0;
	int err;

	for (n = 1; n <= POINTS && tap_ok() && !left; n++) {
		faults_arm(n);
		err = write_bdf(unbind_fd);
		left = faults_disarm();
		CHECK(!err == !bound(), "place %u: answer %d, but %s", n, -err,
		      bound() ? "bound" : "not bound");
		CHECK(fault_answer(err), "place %u: %s", n, strerror(-err));
		if (!bound()) {
			err = write_bdf(bind_fd);
			CHECK(!err, "bind after place %u: %s", n, strerror(-err));
		}
	}
	CHECK(left, "it does not succeed");
	tap_note("unbind: %u places", n - 2);
}

/* ------------------------------------------------------------ module --- */

#define MODULE_PLACES	7

/* Read once: the faults must not reach the file system of the file. */
static void *image;
static size_t image_size;

static bool image_read(void)
{
	char path[96];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "build/modules/%s/rashpa.ko", getenv("RASHPA_KERNEL") ?: "");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st))
		tap_bail("%s: %s", path, strerror(errno));
	image_size = st.st_size;
	image = malloc(image_size);
	if (!image || read(fd, image, image_size) != (ssize_t)image_size)
		tap_bail("%s cannot be read", path);
	close(fd);
	return true;
}

static int load(const char *parameters)
{
	return syscall(__NR_init_module, image, image_size, parameters) ? -errno : 0;
}

static int unload(void)
{
	return syscall(__NR_delete_module, "rashpa", 0) ? -errno : 0;
}

static int load_failing(unsigned int n, const char *parameters, unsigned int *left)
{
	int err;

	faults_arm(n);
	err = load(parameters);
	*left = faults_disarm();
	return err;
}

/*
 * Thousands of places are the kernel's own. The module begins after its parameters, so a wrong
 * parameter shows where that is. The test tries some of the places from there to the end: a load
 * takes seconds here, and the kernel does without many of the allocations in a row.
 */
TEST(module, "load: a place in it fails")
{
	unsigned int n, first, step, all, left, failed = 0;
	int err;

	SKIP_IF(!image_read(), "the module is not in build/modules");
	close(bind_fd);
	close(unbind_fd);
	close(memory);
	err = unload();
	REQUIRE(!err, "unload: %s", strerror(-err));
	err = load_failing(FAULTS_NEVER, "limit_mib=nonsense", &left);
	REQUIRE(err == -EINVAL, "a wrong parameter: %s", strerror(-err));
	first = FAULTS_NEVER - left + 1;
	err = load_failing(FAULTS_NEVER, "", &left);
	REQUIRE(!err, "load: %s", strerror(-err));
	all = FAULTS_NEVER - left;
	REQUIRE(all >= first + MODULE_PLACES, "the module has %u places, from %u on", all, first);
	step = (all - first) / MODULE_PLACES;
	for (n = first; n <= all && tap_ok(); n += step) {
		err = unload();
		CHECK(!err, "unload after place %u: %s", n, strerror(-err));
		err = load_failing(n, "", &left);
		if (!err)
			continue;
		failed++;
		CHECK(fault_answer(err), "place %u: %s", n, strerror(-err));
		CHECK(access("/sys/module/rashpa", F_OK) && access("/sys/class/rashpa", F_OK) &&
		      access("/sys/bus/pci/drivers/rashpa", F_OK), "place %u: left", n);
		err = load("");
		CHECK(!err, "load after place %u: %s", n, strerror(-err));
	}
	CHECK(failed, "no place from %u to %u made it fail", first, all);
	tap_note("load: each %u. place from %u to %u, %u made it fail", step, first, all, failed);
	/* the state is not compared: its node went with the module */
	tap_after = NULL;
}

void setup(void)
{
	if (!faults_open())
		tap_skip_all("this kernel cannot inject faults");
	fpga_need(&f);
	fpga_close(&f);
	bind_fd = open("/sys/bus/pci/drivers/rashpa/bind", O_WRONLY | O_CLOEXEC);
	unbind_fd = open("/sys/bus/pci/drivers/rashpa/unbind", O_WRONLY | O_CLOEXEC);
}

void teardown(void)
{
	faults_close();
}
