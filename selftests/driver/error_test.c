// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug seconds=2 */
/* Errors that the PCI core reports of a function are events. */
#include "common.h"

/* a network card that can report errors, behind a root port */
#define VENDOR	0x8086
#define DEVICE	0x10d3
#define STATUS	0x8	/* a register in BAR 0 */

/* format of /dev/aer_inject, see drivers/pci/pcie/aer_inject.c of Linux */
struct injection {
	uint8_t bus, dev, fn;
	uint32_t uncorrectable, correctable, header[4];
	uint32_t domain;
};

/* An error, and its counters in the PCI core: of the function, and of the port above it. */
struct error {
	uint32_t uncorrectable, correctable;
	const char *function, *total, *port;
	const char *done;	/* in the kernel's log when the core has done with it, or NULL */
	bool of_link;		/* the core need not be able to read the function's status */
};

static const struct error poisoned_tlp = {
	.uncorrectable = 0x1000, .done = "device recovery",
	.function = "aer_dev_nonfatal", .total = "TOTAL_ERR_NONFATAL",
	.port = "../aer_rootport_total_err_nonfatal",
};

static const struct error bad_tlp = {
	.correctable = 0x40,
	.function = "aer_dev_correctable", .total = "TOTAL_ERR_COR",
	.port = "../aer_rootport_total_err_cor",
};

/* fatal: the PCI core resets the link; before 6.2 it does not ask the function before */
static const struct error data_link = {
	.uncorrectable = 0x10, .done = "device recovery", .of_link = true,
	.function = "aer_dev_fatal", .total = "TOTAL_ERR_FATAL",
	.port = "../aer_rootport_total_err_fatal",
};

static struct fpga f;

/* The number after @word in a file of the function in sysfs. */
static u64 counted(const char *name, const char *word)
{
	char path[96], text[4096], *at;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", f.bdf, name);
	if (!CHECK(read_file(path, text, sizeof(text)), "%s: %s", path, strerror(errno)))
		return 0;
	at = strstr(text, word);
	return CHECK(at, "%s has no %s", path, word) ? strtoull(at + strlen(word), NULL, 10) : 0;
}

/* Wait until the kernel's log, read from the position of @log, has a line with @text. */
static bool logged(int log, const char *text)
{
	char line[1024];
	ssize_t n;

	for (;;) {
		n = read(log, line, sizeof(line) - 1);
		line[n > 0 ? n : 0] = '\0';
		if (strstr(line, text))
			return true;
		/* EPIPE: lines were overwritten before they were read */
		if (n < 0 && errno != EPIPE && !(errno == EAGAIN && wait_fd(log, POLLIN, 20000)))
			return false;
	}
}

static bool write_injection(const struct error *error)
{
	struct injection i = { .uncorrectable = error->uncorrectable,
			       .correctable = error->correctable };
	int fd = open("/dev/aer_inject", O_WRONLY | O_CLOEXEC);
	unsigned int domain, bus, dev, fn;
	bool good;

	if (!CHECK(fd >= 0, "aer_inject: %s", strerror(errno)))
		return false;
	good = CHECK(sscanf(f.bdf, "%x:%x:%x.%x", &domain, &bus, &dev, &fn) == 4, "%s", f.bdf);
	i.domain = domain;
	i.bus = (uint8_t)bus;
	i.dev = (uint8_t)dev;
	i.fn = (uint8_t)fn;
	/* EBUSY: the registers show the error, and the interrupt of an earlier one is to come */
	good = good && CHECK(write(fd, &i, sizeof(i)) == sizeof(i) || errno == EBUSY,
			     "injecting: %s", strerror(errno));
	close(fd);
	return good;
}

/*
 * Inject an error, and wait until the PCI core has reported and handled it. The core notifies
 * drivers first and clears the function's status later; it merges errors in between into one.
 * The port then reports the second one, which the core does not find in the function. If the
 * core does not report the error, the test is skipped.
 */
static bool inject(const struct error *error)
{
	const u64 before = counted(error->function, error->total);
	const u64 port = counted(error->port, "");
	const u64 end = end_of_wait(20000);
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	bool told, done = false;

	CHECK(log >= 0 && lseek(log, 0, SEEK_END) >= 0, "/dev/kmsg: %s", strerror(errno));
	if (tap_ok() && write_injection(error)) {
		do
			told = counted(error->function, error->total) > before ||
			       (error->of_link && counted(error->port, "") > port);
		while (tap_ok() && !told && now_ns() < end);
		done = told && (!error->done || logged(log, error->done));
		if (tap_ok() && !done)
			tap_skip("the PCI core has not %s it (%s: %llu more of the port, %llu of the function)",
				 told ? "handled" : "reported", error->total,
				 (counted(error->port, "") - port),
				 (counted(error->function, error->total) -
						      before));
	}
	close(log);
	return tap_ok() && done;
}

TEST(error, "an error that the PCI core reports is an event")
{
	struct rashpa_event e = {}, second = {};
	int ch = fpga_listen(&f, 0, RASHPA_SOURCE_DEVICE, 0);

	/* an error that hardware has corrected makes no event */
	if (inject(&poisoned_tlp) && CHECK(read(ch, &e, sizeof(e)) == sizeof(e) &&
					   e.value == RASHPA_DEVICE_EVENT_ERROR &&
					   e.source == 1 && e.kind == RASHPA_SOURCE_DEVICE,
					   "value %llu of kind %u", e.value, e.kind) &&
	    inject(&bad_tlp) && CHECK(read(ch, &second, sizeof(second)) < 0 && errno == EAGAIN,
				      "value %llu of a corrected error", second.value) &&
	    inject(&poisoned_tlp))
		CHECK(read(ch, &second, sizeof(second)) == sizeof(second) &&
		      second.sequence == e.sequence + 1 && read(ch, &second, sizeof(second)) < 0,
		      "sequence %llu after %llu", second.sequence, e.sequence);
	close(ch);
}

/*
 * Read events until the link was reset and the function has answered. It is stuck from the error
 * on, where the PCI core asks the function before it resets the link.
 */
static bool wait_stuck(int channel)
{
	struct rashpa_device_info info;
	struct rashpa_event e = {};

	while (e.value != RASHPA_DEVICE_EVENT_STUCK) {
		if (!CHECK(wait_fd(channel, POLLIN, 20000) &&
			   read(channel, &e, sizeof(e)) == sizeof(e),
			   "no event after %llu", e.value))
			return false;
		if (e.value == RASHPA_DEVICE_EVENT_ERROR)
			CHECK(!fpga_info(&f, &info) && info.out_state == RASHPA_STATE_STUCK,
			      "state %u after the error", info.out_state);
	}
	return true;
}

/* RESET makes a function that has its registers usable again. */
static void reset_helps(void *regs)
{
	const u64 end = end_of_wait(10000);
	struct rashpa_device_info info;
	int err;

	/* the PCI core may not have finished with it */
	do
		err = fpga_reset(&f);
	while (err == -EAGAIN && now_ns() < end);
	ANSWERED(err, 0, NULL);
	CHECK(reg32(regs, STATUS) != ~0U, "its BARs are not where they were");
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_READY && info.out_flags & RASHPA_DEVICE_MASTER,
	      "state %u", info.out_state);
}

/*
 * The reset of the link clears the function's state: the function answers, but needs a RESET.
 * The test does this twice, as some kernels lose the saved state in the first reset.
 */
TEST(fatal, "after a fatal error the function answers, and needs a reset")
{
	int ch = fpga_listen(&f, 0, RASHPA_SOURCE_DEVICE, 0), i;
	int win = fpga_window(&f, 0, 0, PAGE, 0);
	struct rashpa_device_info info;
	void *regs = map_fd(win, PAGE);

	CHECK(reg32(regs, STATUS) != ~0U, "it has no BARs");
	for (i = 0; i < 2 && tap_ok() && inject(&data_link) && wait_stuck(ch); i++) {
		CHECK(reg32(regs, STATUS) != ~0U, "its BARs are not where they were");
		ANSWERED(fpga_info(&f, &info), 0, NULL);
		CHECK(info.out_state == RASHPA_STATE_STUCK &&
		      !(info.out_flags & RASHPA_DEVICE_MASTER), "state %u", info.out_state);
		CHECK(fpga_events(&f, 0) == -EIO, "it may be used without a reset");
		reset_helps(regs);
	}
	unmap_fd(regs, PAGE, win);
	close(ch);
}

void setup(void)
{
	if (system("modprobe -q aer_inject") || !function_open(&f, VENDOR, DEVICE, 0))
		tap_skip_all("no function that reports errors (lab run --device e1000e)");
	fpga_watch(&f);
}

/*
 * aer_inject intercepts every configuration access, with a lock that may sleep on some kernels:
 * lockdep would report that later, and then turn itself off.
 */
void teardown_all(void)
{
	if (system("modprobe -rq aer_inject"))
		tap_note("aer_inject cannot be removed");
	if (function_open(&f, VENDOR, DEVICE, 0)) {
		close(f.fd);
		fpga_unbind(&f);
	}
}
