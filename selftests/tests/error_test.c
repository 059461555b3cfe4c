// SPDX-License-Identifier: GPL-2.0-only
/* Errors that the PCI core reports of a function are events. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"

/* a network card that can report errors, behind a root port */
#define VENDOR	0x8086
#define DEVICE	0x10d3
#define STATUS	0x8	/* a register in BAR 0 */

/* what /dev/aer_inject takes, see drivers/pci/pcie/aer_inject.c of Linux */
struct injection {
	uint8_t bus, dev, fn;
	uint32_t uncorrectable, correctable, header[4];
	uint32_t domain;
};

#define POISONED_TLP	0x1000
#define BAD_TLP		0x40
#define DATA_LINK	0x10	/* fatal: the PCI core resets the link */

static struct fpga f;

static bool inject(uint32_t uncorrectable, uint32_t correctable)
{
	unsigned int domain, bus, dev, fn;
	struct injection i = { .uncorrectable = uncorrectable, .correctable = correctable };
	int fd = open("/dev/aer_inject", O_WRONLY | O_CLOEXEC);
	const uint64_t end = end_of_wait(10000);
	bool good;

	if (!CHECK(fd >= 0, "aer_inject: %s", strerror(errno)))
		return false;
	if (sscanf(f.bdf, "%x:%x:%x.%x", &domain, &bus, &dev, &fn) != 4) {
		close(fd);
		return false;
	}
	i.domain = domain;
	i.bus = (uint8_t)bus;
	i.dev = (uint8_t)dev;
	i.fn = (uint8_t)fn;
	/* the port is busy while it recovers from the one before */
	do
		good = write(fd, &i, sizeof(i)) == sizeof(i);
	while (!good && errno == EBUSY && now_ns() < end);
	CHECK(good, "injecting: %s", strerror(errno));
	close(fd);
	return good;
}

static void test_error(void)
{
	struct rashpa_event e = {};
	int ch = fpga_events(&f, 0), id;

	REQUIRE(ch >= 0, "EVENTS: %s", reason);
	fcntl(ch, F_SETFL, O_NONBLOCK);
	id = source_add(ch, RASHPA_SOURCE_DEVICE, 0);
	if (inject(POISONED_TLP, 0)) {
		CHECK(wait_fd(ch, POLLIN, 20000), "no event");
		CHECK(read(ch, &e, sizeof(e)) == sizeof(e) && e.value == RASHPA_DEVICE_ERROR &&
		      (int)e.source == id && e.kind == RASHPA_SOURCE_DEVICE,
		      "value %llu of kind %u", (unsigned long long)e.value, e.kind);
	}
	/* what hardware has corrected is no event */
	if (inject(0, BAD_TLP) && inject(POISONED_TLP, 0)) {
		CHECK(wait_fd(ch, POLLIN, 20000), "no second event");
		CHECK(read(ch, &e, sizeof(e)) == sizeof(e) && e.sequence == 2 &&
		      read(ch, &e, sizeof(e)) < 0, "sequence %llu",
		      (unsigned long long)e.sequence);
	}
	close(ch);
}

/* Until the link was reset and the function has answered; what comes before is left out. */
static bool wait_stuck(int channel)
{
	struct rashpa_event e = {};

	while (e.value != RASHPA_DEVICE_STUCK)
		if (!CHECK(wait_fd(channel, POLLIN, 20000) &&
			   read(channel, &e, sizeof(e)) == sizeof(e),
			   "no event after %llu", (unsigned long long)e.value))
			return false;
	return true;
}

/* RESET of what has its registers makes it whole. */
static void reset_helps(void *regs)
{
	struct rashpa_reset reset = { HEAD(reset) };
	const uint64_t end = end_of_wait(10000);
	struct rashpa_device_info info;
	int err;

	/* the PCI core may not have finished with it */
	do
		err = call(f.fd, RASHPA_IOC_RESET, &reset);
	while (err == -EAGAIN && now_ns() < end);
	ANSWERED(err, 0, NULL);
	CHECK(reg32(regs, STATUS) != ~0U, "its BARs are not where they were");
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_READY && info.out_flags & RASHPA_DEVICE_MASTER,
	      "state %u", info.out_state);
}

/*
 * The link is reset, and with it all that the function had: it answers, until it is reset.
 * And once more: some kernels have forgotten after a reset what is to be restored.
 */
static void test_fatal(void)
{
	int ch = fpga_events(&f, 0), win = fpga_window(&f, 0, 0, PAGE, 0), i;
	struct rashpa_device_info info;
	void *regs = map_fd(win, PAGE);

	REQUIRE(ch >= 0 && regs, "EVENTS, WINDOW: %s", reason);
	source_add(ch, RASHPA_SOURCE_DEVICE, 0);
	CHECK(reg32(regs, STATUS) != ~0U, "it has no BARs");
	for (i = 0; i < 2 && tap_ok() && inject(DATA_LINK, 0) && wait_stuck(ch); i++) {
		CHECK(reg32(regs, STATUS) != ~0U, "its BARs are not where they were");
		ANSWERED(fpga_info(&f, &info), 0, NULL);
		CHECK(info.out_state == RASHPA_STATE_STUCK &&
		      !(info.out_flags & RASHPA_DEVICE_MASTER), "state %u", info.out_state);
		CHECK(fpga_events(&f, 0) == -EIO, "it may be used without a reset");
		reset_helps(regs);
	}
	munmap(regs, PAGE);
	close(win);
	close(ch);
}

int main(void)
{
	common_init();
	if (system("modprobe -q aer_inject") || !function_open(&f, VENDOR, DEVICE, 0)) {
		tap_skip_all("error", "no function that reports errors (lab run --device e1000e)");
		return tap_exit();
	}
	fpga_watch(&f);
	tap_run("an error that the PCI core reports is an event", test_error);
	tap_run("after a fatal one the function is there, and to be reset", test_fatal);
	fpga_close(&f);
	/*
	 * It stands between every configuration access and the bus, with a lock that may
	 * sleep on some kernels: lockdep would see that later, and look no further.
	 */
	if (system("modprobe -r aer_inject"))
		tap_bail("aer_inject cannot be removed");
	return tap_exit();
}
