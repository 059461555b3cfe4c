// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug iommu=on seconds=9 */
/*
 * Functions that go for good while all sorts of things are open: QEMU's edu is unplugged, a
 * board loses its power. Another board is plugged into the next slot, and streams.
 */
#include <glob.h>
#include <sys/eventfd.h>

#include "edu.h"
#include "holder.h"
#include "rig.h"

#define EDU_BUS		"\"bus\":\"fpga-port%u\""
#define PLUG_MS		30000
#define HOST		"selftests/lab/host"	/* from the folder that the lab starts tests in */

static unsigned int boards;	/* boards at the guest's start; the next port is free */

/* Ask the host, and print its error; see selftests/lab/host. */
static bool host(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static bool host(const char *fmt, ...)
{
	char ask[256], command[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(ask, sizeof(ask), fmt, args);
	va_end(args);
	snprintf(command, sizeof(command), "answer=$(" HOST " %s 2>&1) || "
		 "{ echo \"# host: $answer\"; false; }", ask);
	fflush(stdout);
	return !system(command);
}

/* A device leaves its port some time after its driver has let go of it. */
static bool port_is_empty(const char *id)
{
	const u64 end = now_ns() + PLUG_MS * 1000000ULL * tap_slow();
	char command[256];

	snprintf(command, sizeof(command), HOST " qmp qom-list "
		 "'{\"path\":\"/machine/peripheral/%s\"}' >/dev/null 2>&1", id);
	while (!system(command)) {
		if (now_ns() > end)
			return false;
	}
	return true;
}

/* Functions with these ids on all buses. */
static unsigned int count(unsigned int vendor, unsigned int device)
{
	char alias[64];
	unsigned int n = 0;
	glob_t found;
	size_t i;

	snprintf(alias, sizeof(alias), "pci:v%08Xd%08X", vendor, device);
	if (glob("/sys/bus/pci/devices/*/modalias", 0, NULL, &found))
		return 0;
	for (i = 0; i < found.gl_pathc; i++) {
		char text[128];

		n += read_text(found.gl_pathv[i], text, sizeof(text)) &&
		     !strncmp(text, alias, strlen(alias));
	}
	globfree(&found);
	return n;
}

/* One more than @before: the last one, since ports for plugging have the highest buses. */
static bool appears(struct fpga *f, unsigned int vendor, unsigned int device, unsigned int before)
{
	const u64 end = end_of_wait(PLUG_MS);

	while (count(vendor, device) == before)
		if (!CHECK(now_ns() < end, "it is not found on the bus"))
			return false;
	return CHECK(function_open(f, vendor, device, before), "it is not the last one");
}

/* --- a thread that waits for ever --- */

struct sleeper {
	pthread_t thread;
	int fd;
	volatile short revents;
};

static void *sleep_in_poll(void *arg)
{
	struct sleeper *s = arg;
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	poll(&p, 1, -1);
	s->revents = p.revents;
	return NULL;
}

static void sleeper_start(struct sleeper *s, int fd)
{
	s->fd = fd;
	s->revents = 0;
	pthread_create(&s->thread, NULL, sleep_in_poll, s);
}

static void sleeper_woken(struct sleeper *s)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 5 * tap_slow();
	if (!CHECK(!pthread_timedjoin_np(s->thread, NULL, &until), "the sleeper is not woken")) {
		pthread_cancel(s->thread);
		pthread_join(s->thread, NULL);
	}
	CHECK(s->revents & (POLLHUP | POLLERR), "poll returned 0x%x", s->revents);
}

static int signals_of(int channel)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	ANSWERED(bind_eventfd(channel, fd, 0), 0, NULL);
	return fd;
}

static void eventfd_signalled(int fd)
{
	u64 n = 0;

	wait_fd(fd, POLLIN, 20000);
	CHECK(read(fd, &n, sizeof(n)) == sizeof(n) && n, "the eventfd is not signalled");
	close(fd);
}

/* --- lock memory is the host's: it stays --- */

static int lock_open(int channel, u64 **words)
{
	struct rashpa_alloc lock;
	struct rashpa_source_add add;

	if (!ANSWERED(lock_alloc(4, NULL, &lock), 0, NULL))
		return -1;
	add = word_source(lock.out_fd, 0);
	ANSWERED(call(channel, RASHPA_IOC_SOURCE_ADD, &add), 0, NULL);
	*words = map_fd(lock.out_fd, PAGE);
	**words = 42;
	return lock.out_fd;
}

static void lock_stays(int fd, u64 *words)
{
	if (!words)
		return;
	CHECK(*words == 42, "the lock memory has changed");
	unmap_fd(words, PAGE, fd);
}

/* ------------------------------------------------------------------------ */

/* An orderly unplug: the driver is notified when the slot is being emptied. */
TEST(edu, "edu is unplugged under a map, mappings and sleepers")
{
	const unsigned int before = count(EDU_VENDOR, EDU_DEVICE);
	struct open_things t = {};
	struct sleeper sleeper;
	struct fpga edu;
	char port[32];
	int signalled;

	snprintf(port, sizeof(port), "/run/lab/fpga%u.json", boards);
	SKIP_IF(access(port, F_OK) || access(HOST, X_OK), "no port to plug an edu into");
	REQUIRE(host("qmp device_add '{\"driver\":\"edu\",\"id\":\"unplug\"," EDU_BUS "}'",
		     boards), "it cannot be plugged in");
	if (!appears(&edu, EDU_VENDOR, EDU_DEVICE, before))
		return;
	open_all(&t, &edu);
	signalled = signals_of(t.channel);
	sleeper_start(&sleeper, t.quiet);
	CHECK(host("qmp device_del '{\"id\":\"unplug\"}'"), "device_del");
	CHECK(wait_fd(t.channel, 0, PLUG_MS) & POLLHUP, "the channel does not end");
	sleeper_woken(&sleeper);
	eventfd_signalled(signalled);
	/* it has no quiesce sequence: bus mastering off is all that stops it */
	all_gone(&t, RASHPA_DEVICE_EVENT_QUIESCED);
	close_all(&t);
	CHECK(port_is_empty("unplug"), "edu stays in its port");
}

/* The process that is the board ends in mid-stream, without notice. */
static void lose_power(struct rig *r, struct open_things *t)
{
	struct rashpa_device_info info;
	struct rashpa_map_make map;

	rig_run(r, 0, r->made.out_segments);
	/* no process is left to answer */
	CHECK(!rig_tell(boards - 1, "exit"), "it is still there");
	CHECK(reg32(r->regs, RFPGA_ID) == ~0U, "the registers answer");
	ANSWERED(fpga_quiesce(&t->f), ETIMEDOUT, "idle|reset");
	ANSWERED(fpga_reset(&t->f), EIO, "configuration space|remove");
	ANSWERED(fpga_map(&t->f, t->buffer, RASHPA_BIDIRECTIONAL, &map), EIO, "reset");
	ANSWERED(fpga_info(&t->f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_STUCK && !(info.out_flags & RASHPA_DEVICE_MASTER),
	      "state %u, flags 0x%x", info.out_state, info.out_flags);
	CHECK(filled(r->memory, IMAGES * IMAGE, SEED), "the data differ");
}

TEST(power, "a board loses its power in mid-stream, and is removed")
{
	struct open_things t = {};
	struct sleeper sleeper;
	u64 *words = NULL;
	struct rig r = { .fpga = NULL };
	char path[64];
	struct fpga f;
	int signalled, lock, err;

	SKIP_IF(boards < 2, "the other tests need the only board");
	REQUIRE(fpga_open(&f, boards - 1), "there is no FPGA %u", boards - 1);
	if (fpga_profile(&f, 0, NULL, 0))
		tap_bail("profile: %s", reason);
	rig_load(&f);
	open_all(&t, &f);
	rig_up(&r, &f, -1, 0, 0);
	signalled = signals_of(t.channel);
	lock = lock_open(t.channel, &words);
	sleeper_start(&sleeper, t.quiet);
	lose_power(&r, &t);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/remove", f.bdf);
	err = write_text(path, "1");
	CHECK(!err, "remove: %s", strerror(-err));
	sleeper_woken(&sleeper);
	eventfd_signalled(signalled);
	all_gone(&t, RASHPA_DEVICE_EVENT_STUCK);
	lock_stays(lock, words);
	CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "the data differ");
	rig_down(&r);
	close_all(&t);
}

/* The board that takes its place. */
TEST(replaced, "another board is plugged in, and streams")
{
	const unsigned int before = count(RFPGA_PCI_VENDOR, RFPGA_PCI_DEVICE);
	struct fpga f;
	struct rig r;

	SKIP_IF(boards < 2, "the other tests need the only board");
	SKIP_IF(access(HOST, X_OK), "no lab around it");
	REQUIRE(host("start-fpga %u", boards) &&
		host("qmp device_add \"$(cat /run/lab/fpga%u.json)\"", boards),
		"it cannot be plugged in");
	if (!appears(&f, RFPGA_PCI_VENDOR, RFPGA_PCI_DEVICE, before))
		return;
	if (fpga_profile(&f, 0, NULL, 0))
		tap_bail("profile: %s", reason);
	rig_load(&f);
	rig_up(&r, &f, -1, 0, 0);
	rig_configure(&r, 0, RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX | RFPGA_MODE_FLUSH, 0,
		      r.made.out_segments, IMAGES);
	rig_start(&r, 0);
	CHECK(wait_fd(r.channel, POLLIN, 5000), "no event");
	CHECK(rig_wait_bytes(&r, 0, IMAGES * IMAGE), "it does not stream");
	rig_wait_stopped(&r, 0);
	CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "the data differ");
	rig_is_idle(r.regs, 0);
	rig_down(&r);
	fpga_close(&f);
}

void setup(void)
{
	const char *text = getenv("RASHPA_FPGAS");

	boards = text ? (unsigned int)atoi(text) : 0;
	if (!boards || access("/dev/virtio-ports/qmp", F_OK))
		tap_skip_all("not in the lab, or no software FPGA");
}
