// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug iommu=on seconds=12 */
/*
 * Hardware that misbehaves in mid-stream, and comes back. Delivered data stay right, every call
 * answers in time with a reason, and memory is kept while the function can still write it.
 * Functions that go for good are in unplug_test.c.
 */
#include <linux/pci_regs.h>

#include "rig.h"

#define ALL_ONES	0xffffffffU
#define IN_TIME_MS	20000
#define FLOOD_VECTOR	5
#define ENDLESS		0

static struct fpga f;
static bool iommu;

/* ----------------------------------------------- a stream, and its end --- */

static void start(const struct rig *r, uint32_t mode, u64 images)
{
	rig_configure(r, 0, mode | RFPGA_MODE_FLUSH, 0, r->made.out_segments, images);
	rig_start(r, 0);
}

/*
 * The dataset has as many images as there are slots: the buffer never changes again. The test ends
 * where it fails.
 */
static void stream(struct rig *r)
{
	rig_up(r, &f, -1, 0, 64 * KIB);
	start(r, RFPGA_MODE_FREERUN, ENDLESS);
	if (!rig_wait_bytes(r, 0, 2 * IMAGES * IMAGE) || !filled(r->memory, IMAGES * IMAGE, SEED))
		tap_bail("it does not run");
}

/* The map is still good. */
static void map_streams(struct rig *r)
{
	ANSWERED(fpga_program(r->map, 0, NULL), 0, NULL);
	rig_streams(r, 0, r->made.out_segments);
}

static void state_is(uint32_t state)
{
	struct rashpa_device_info info;

	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == state, "state %u", info.out_state);
	if (state == RASHPA_STATE_STUCK)
		CHECK(!(info.out_flags & RASHPA_DEVICE_MASTER), "bus mastering is on");
}

/* A fault of cause @cause or @other has stopped the DTP. */
static void refused_for(const struct rig *r, uint32_t cause, uint32_t other)
{
	u64 end = end_of_wait(IN_TIME_MS);
	uint32_t seen;

	while (!(reg32(rig_dtp(r, 0), RFPGA_DTP_STATUS) & RFPGA_DTP_FAULTED))
		REQUIRE(now_ns() < end, "nothing was refused");
	CHECK(reg64(r->regs, RFPGA_FAULTS) >= 1, "no fault is counted");
	seen = reg32(r->regs, RFPGA_FAULT_CAUSE);
	CHECK(seen == cause || seen == other, "cause %u", seen);
}

static void refused(const struct rig *r, uint32_t cause)
{
	refused_for(r, cause, cause);
}

/* A whole stream with events, in new memory; @old, if any, ends before. */
static void streams_again(struct rig *old)
{
	struct rashpa_event e;
	struct rig r;

	if (old)
		rig_down(old);
	state_is(RASHPA_STATE_READY);
	/* the dataset on board may be lost by now */
	rig_load(&f);
	rig_up(&r, &f, -1, 0, 0);
	start(&r, RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX, IMAGES);
	CHECK(rig_wait_bytes(&r, 0, IMAGES * IMAGE), "it does not stream again");
	CHECK(wait_fd(r.channel, POLLIN, 5000) && read(r.channel, &e, sizeof(e)) > 0, "no event");
	rig_wait_stopped(&r, 0);
	CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "the data differ");
	rig_is_idle(r.regs, 0);
	rig_down(&r);
}

/* @where: the function, "", or the port above it, "/.." */
static void set_config(const char *where, off_t at, uint16_t clear, uint16_t set)
{
	uint16_t value;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s%s/config", f.bdf, where);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || pread(fd, &value, sizeof(value), at) != sizeof(value))
		tap_bail("configuration space: %s", strerror(errno));
	value = (value & ~clear) | set;
	CHECK(pwrite(fd, &value, sizeof(value), at) == sizeof(value), "%s: %s", path,
	      strerror(errno));
	close(fd);
}

static void set_command(uint16_t clear, uint16_t set)
{
	set_config("", PCI_COMMAND, clear, set);
}

/* -------------------------------------------------- it does not answer --- */

TEST(dead, "all ones: not taken for idle, and not for reset")
{
	struct rashpa_map_make map;
	struct rig r;
	int m;

	stream(&r);
	rig_do("dead on");
	CHECK(reg32(r.regs, RFPGA_ID) == ALL_ONES, "the registers answer");
	/* the driver has not noticed: it makes a map, but cannot write the board's table */
	m = fpga_map(&f, r.buffer, RASHPA_BIDIRECTIONAL, &map);
	CHECK(m >= 0, "MAP: %s", reason);
	ANSWERED(fpga_program(m, 100, NULL), EIO, "does not answer|reset");
	ANSWERED(fpga_quiesce(&f), ETIMEDOUT, "idle|reset");
	state_is(RASHPA_STATE_STUCK);
	close(m);
	CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "the data differ");
	ANSWERED(fpga_map(&f, r.buffer, RASHPA_BIDIRECTIONAL, &map), EIO, "reset");
	ANSWERED(fpga_reset(&f), EIO, "was reset|still");
	state_is(RASHPA_STATE_STUCK);
	rig_end_map(&r);
	rig_nobody_writes(r.memory);
	rig_do("dead off");
	ANSWERED(fpga_reset(&f), 0, NULL);
	streams_again(&r);
}

/* A step that checks the whole register, and waits for a value other than all ones. */
TEST(dead_whole, "all ones: not taken for a whole register that is idle")
{
	const struct rashpa_profile_step step = {
		.op = RASHPA_STEP_WAIT, .bar = RFPGA_BAR_REGS, .offset = RFPGA_SCRATCH,
		.mask = ~0U, .timeout_us = 1000,
	};
	struct rashpa_profile_set p = { HEAD(p), STEP(step) };
	int channel;

	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	channel = fpga_events(&f, 0);
	CHECK(channel >= 0, "EVENTS: %s", reason);
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	state_is(RASHPA_STATE_READY);
	rig_do("dead on");
	ANSWERED(fpga_quiesce(&f), ETIMEDOUT, "idle|reset");
	state_is(RASHPA_STATE_STUCK);
	ANSWERED(fpga_reset(&f), EIO, "was reset|still");
	state_is(RASHPA_STATE_STUCK);
	rig_do("dead off");
	ANSWERED(fpga_reset(&f), 0, NULL);
	close(channel);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	streams_again(NULL);
}

/* Only the last map is closed, and the memory is free at once. */
TEST(dead_close, "all ones: the memory of a map that is closed is safe")
{
	struct rig r;

	stream(&r);
	rig_do("dead on");
	rig_end_map(&r);
	state_is(RASHPA_STATE_STUCK);
	rig_nobody_writes(r.memory);
	rig_do("dead off");
	/* it went on until it was refused: only that has stopped it */
	refused(&r, RFPGA_FAULT_MASTER);
	ANSWERED(fpga_reset(&f), 0, NULL);
	streams_again(&r);
}

static void write_sysfs(const char *name)
{
	char path[80];
	int err;

	snprintf(path, sizeof(path), "/sys/bus/pci/%s", name);
	err = write_text(path, "1");
	CHECK(!err, "%s: %s", path, strerror(-err));
}

TEST(link, "link lost: answers at once, removal and scan bring it back")
{
	struct rashpa_device_info info;
	struct rashpa_map_make map;
	struct rashpa_event e;
	char remove[40];
	struct rig r;

	stream(&r);
	rig_do("dead link");
	CHECK(reg32(r.regs, RFPGA_ID) == ALL_ONES, "the registers answer");
	ANSWERED(fpga_quiesce(&f), ETIMEDOUT, "idle|reset");
	state_is(RASHPA_STATE_STUCK);
	ANSWERED(fpga_reset(&f), EIO, "configuration space|remove");
	ANSWERED(fpga_map(&f, r.buffer, RASHPA_BIDIRECTIONAL, &map), EIO, "reset");
	CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "the data differ");
	snprintf(remove, sizeof(remove), "devices/%s/remove", f.bdf);
	write_sysfs(remove);
	ANSWERED(fpga_info(&f, &info), ENODEV, f.name);
	CHECK(read(r.channel, &e, sizeof(e)) < 0 && errno == ENODEV, "read: %s",
	      strerror(errno));
	rig_nobody_writes(r.memory);
	rig_do("dead off");
	rig_down(&r);
	fpga_close(&f);
	write_sysfs("rescan");
	if (!fpga_open(&f, 0) || fpga_profile(&f, 0, NULL, 0))
		tap_bail("it does not come back: %s", reason);
	streams_again(NULL);
}

TEST(link_idle, "link lost while idle: the first calls notice it")
{
	struct rashpa_map_make map;
	int buffer = buffer_alloc(PAGE, NULL);

	rig_do("dead link");
	ANSWERED(fpga_map(&f, buffer, RASHPA_BIDIRECTIONAL, &map), EIO, "does not answer|link");
	ANSWERED(fpga_events(&f, 0), EIO, "does not answer|link");
	state_is(RASHPA_STATE_READY);
	close(buffer);
	rig_do("dead off");
	/* a function that has lost its link has lost its BARs */
	fpga_close(&f);
	CHECK(!fpga_unbind(&f), "unbind");
	fpga_again(&f);
	streams_again(NULL);
}

/* ------------------------------------------- left running by others --- */

/* Remove the function, and let the kernel find it again. */
static void scan_again(void)
{
	char remove[40];

	fpga_close(&f);
	snprintf(remove, sizeof(remove), "devices/%s/remove", f.bdf);
	write_sysfs(remove);
	write_sysfs("rescan");
}

/*
 * A board without a function-level reset is unbound in mid-stream, when the driver cannot reach
 * it. Its table keeps the entries, and the board waits until it may go on.
 */
TEST(left_running, "left running by others: stopped, and its table cleared, before a map")
{
	int buffer = buffer_alloc(PAGE, NULL);
	struct rashpa_map_make map = { .out_fd = -1 };
	struct rig r;
	char *regs;

	rig_do("flr off");
	scan_again();
	fpga_again(&f);
	stream(&r);
	rig_do("patient on");
	rig_do("dead on");
	CHECK(!fpga_unbind(&f), "unbind");
	rig_do("dead off");
	rig_nobody_writes(r.memory);
	fpga_again(&f);
	state_is(RASHPA_STATE_READY);
	CHECK(fpga_map(&f, buffer, RASHPA_BIDIRECTIONAL, &map) >= 0, "MAP: %s", reason);
	rig_nobody_writes(r.memory);
	regs = fpga_regs(&f);
	rig_is_idle(regs, 0);
	rig_entries_clear(regs, RFPGA_TABLE_SIZE / RFPGA_ENTRY_STRIDE);
	munmap(regs, RFPGA_BAR_REGS_SIZE);
	rig_down(&r);
	close(map.out_fd);
	close(buffer);
	rig_do("patient off");
	rig_do("flr on");
	scan_again();
	fpga_again(&f);
	streams_again(NULL);
}

TEST(left_deaf, "left running by others, and does not stop: stuck, and no map")
{
	int buffer = buffer_alloc(PAGE, NULL);
	struct rashpa_map_make map;

	fpga_close(&f);
	CHECK(!fpga_unbind(&f) && !fpga_bind(&f) && fpga_open(&f, 0), "bind: %s", reason);
	rig_do("dead on");
	ANSWERED(fpga_profile(&f, 0, NULL, 0), EIO, "does not answer|reset");
	state_is(RASHPA_STATE_STUCK);
	ANSWERED(fpga_map(&f, buffer, RASHPA_BIDIRECTIONAL, &map), EIO, "reset");
	rig_do("dead off");
	ANSWERED(fpga_reset(&f), 0, NULL);
	state_is(RASHPA_STATE_READY);
	close(buffer);
	streams_again(NULL);
}

/* ---------------------------------------------------- it does not stop --- */

TEST(stuck_close, "never idle: the memory of a map that is closed is safe")
{
	struct rig r;

	stream(&r);
	rig_do("stuck on");
	rig_end_map(&r);
	state_is(RASHPA_STATE_STUCK);
	rig_nobody_writes(r.memory);
	/* its entry is cleared as well: a slow board may read it only now */
	refused_for(&r, RFPGA_FAULT_MASTER, RFPGA_FAULT_ENTRY);
	ANSWERED(fpga_reset(&f), 0, NULL);
	streams_again(&r);
}

TEST(stuck_unbind, "never idle: unbind, and bind again")
{
	struct rig r;

	stream(&r);
	rig_do("stuck on");
	CHECK(!fpga_unbind(&f), "unbind");
	rig_nobody_writes(r.memory);
	rig_down(&r);
	fpga_again(&f);
	streams_again(NULL);
}

/* ------------------------------------------------- it writes elsewhere --- */

TEST(wild, "addresses outside its maps are refused")
{
	char command[40], *victim;
	u64 where[3];
	struct rig r;
	size_t i;
	int fd;

	SKIP_IF(!iommu, "without an IOMMU nothing refuses an address");
	fd = buffer_alloc(IMAGES * IMAGE, NULL);
	victim = map_fd(fd, IMAGES * IMAGE);
	fill(victim, IMAGES * IMAGE, 7);
	where[0] = pfn_of(victim) * PAGE;	/* real memory, but of another process */
	where[1] = 0;
	where[2] = 1ULL << 46;
	for (i = 0; i < ARRAY_SIZE(where) && tap_ok(); i++) {
		stream(&r);
		snprintf(command, sizeof(command), "wild 0x%llx", where[i]);
		rig_do(command);
		refused(&r, RFPGA_FAULT_BUS);
		CHECK(reg64(r.regs, RFPGA_FAULT_ADDR) - where[i] < IMAGES * IMAGE,
		      "refused was 0x%llx", reg64(r.regs, RFPGA_FAULT_ADDR));
		CHECK(filled(victim, IMAGES * IMAGE, 7), "memory of others was hit");
		CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "the data differ");
		rig_do("wild off");
		rig_down(&r);
		streams_again(NULL);	/* needs no reset */
	}
	unmap_fd(victim, IMAGES * IMAGE, fd);
}

/* Writes only: the answer to a flush would report the fault. */
static void stream_unflushed(struct rig *r)
{
	rig_up(r, &f, -1, 0, 64 * KIB);
	rig_run(r, 0, r->made.out_segments);
}

/* The board gets no error for a refused write, and the stream goes on. */
TEST(drop, "a write is refused without an error to the board")
{
	struct rig r;

	SKIP_IF(!iommu, "without an IOMMU nothing refuses an address");
	stream_unflushed(&r);
	rig_do("drop on");
	rig_do("wild 0x400000000000");
	CHECK(rig_wait_bytes(&r, 0, reg64(rig_dtp(&r, 0), RFPGA_DTP_C_BYTES) +
			     2 * IMAGES * IMAGE), "it does not go on");
	CHECK(!reg64(r.regs, RFPGA_FAULTS), "the board counts a fault");
	rig_nobody_writes(r.memory);
	rig_do("honest");
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	streams_again(&r);
}

/* The board says that it is idle, and sends its last image after the end of the map. */
TEST(linger, "an image that arrives after \"idle\" reaches no memory")
{
	struct rig r;

	rig_do("linger on hold");
	stream_unflushed(&r);
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	rig_is_idle(r.regs, 0);
	rig_nobody_writes(r.memory);
	rig_end_map(&r);
	rig_do("release");
	refused_for(&r, RFPGA_FAULT_BUS, RFPGA_FAULT_ENTRY);
	CHECK(all_zero(r.memory, IMAGES * IMAGE), "memory that was given back was hit");
	rig_do("honest");
	set32(r.regs, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	streams_again(&r);
}

/* ------------------------------------------------ it never stops talking --- */

static u64 flood_sent(void)
{
	char answer[512] = "", *found = NULL;

	if (CHECK(rig_ask(0, "status", answer, sizeof(answer)), "no status"))
		found = strstr(answer, " flood=");
	return found ? strtoull(found + 7, NULL, 10) : 0;
}

static u64 lost_of(int channel, uint32_t id, u64 *events)
{
	struct rashpa_source_info info = { HEAD(info), .id = id };

	ANSWERED(call(channel, RASHPA_IOC_SOURCE_INFO, &info), 0, NULL);
	*events = info.out_events;
	return info.out_lost;
}

/* Reads all records; they must follow one another but for those that are counted as lost. */
static u64 drain(int channel, u64 *last)
{
	struct rashpa_event e;
	u64 n = 0, lost = 0;

	while (read(channel, &e, sizeof(e)) == sizeof(e)) {
		CHECK(!*last || e.sequence == *last + 1 + (e.lost - lost),
		      "sequence %llu after %llu, %llu lost", e.sequence,
		      *last, (e.lost - lost));
		*last = e.sequence;
		lost = e.lost;
		n++;
	}
	return n;
}

TEST(flood, "a flood of interrupts: all counted, others served")
{
	struct rashpa_device_info before, after;
	u64 sent, records, lost, events, last = 0, end;
	struct rashpa_event e;
	struct rig r;
	int flooded = fpga_listen(&f, 16, RASHPA_SOURCE_VECTOR, FLOOD_VECTOR);
	int quiet = fpga_listen(&f, 16, RASHPA_SOURCE_VECTOR, FLOOD_VECTOR), i;

	fpga_info(&f, &before);
	rig_do("flood max 5");
	/* others are served meanwhile: one image, one event at a time */
	rig_up(&r, &f, -1, 0, 0);
	for (i = 0; i < IMAGES && rig_send_image(&r, i, &e); i++) {
		CHECK(!e.lost, "%llu lost before event %d", e.lost, i);
		rig_wait_stopped(&r, 0);
	}
	CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "the data differ");
	rig_is_idle(r.regs, 0);
	/* a channel can go, another one come */
	close(quiet);
	quiet = fpga_listen(&f, 16, RASHPA_SOURCE_VECTOR, FLOOD_VECTOR);
	CHECK(wait_fd(quiet, POLLIN, 5000), "the new channel has no event");
	end = end_of_wait(IN_TIME_MS);
	while (!lost_of(flooded, 1, &events) && tap_ok())
		CHECK(now_ns() < end, "%llu events only", events);
	rig_do("flood off");
	sent = flood_sent();
	rig_settle(&r);
	records = drain(flooded, &last);
	lost = lost_of(flooded, 1, &events);
	fpga_info(&f, &after);
	CHECK(events > 16 && events <= sent, "%llu events, the board sent %llu", events, sent);
	CHECK(records + lost == events, "%llu events: %llu records, %llu lost",
	      events, records, lost);
	CHECK(after.out_interrupts - before.out_interrupts == events + IMAGES + RIG_SETTLE,
	      "%llu interrupts, %llu events",
	      (after.out_interrupts - before.out_interrupts), events);
	tap_note("%llu interrupts sent, %llu arrived, %llu lost", sent, events, lost);
	/* the kernel has not given the vector up */
	rig_do("flood 100 5");
	CHECK(wait_fd(flooded, POLLIN, 5000), "the vector is dead");
	rig_down(&r);
	close(quiet);
	/* the last channel goes during the flood */
	rig_do("flood max 5");
	close(flooded);
	rig_do("flood off");
	streams_again(NULL);
}

/* ---------------------------------------------- the consumer is late --- */

#define STACKS	20

struct consumer {
	int channel, ready[2];
};

static void consume(void *arg)
{
	struct consumer *c = arg;
	u64 n = 0, lost = 0, last = 0;
	struct rashpa_event e;

	if (write(c->ready[1], "x", 1) != 1)
		return;
	/* the record of the signal is the last one */
	while (read(c->channel, &e, sizeof(e)) == sizeof(e) && e.kind != RASHPA_SOURCE_SOFTWARE) {
		CHECK(!last || e.sequence == last + 1 + (e.lost - lost), "a gap");
		last = e.sequence;
		lost = e.lost;
		n++;
	}
	n = n << 32 | lost;
	CHECK(write(c->ready[1], &n, sizeof(n)) == sizeof(n), "write");
}

TEST(late_consumer, "a consumer stopped for longer than its queue holds")
{
	u64 counted = 0, seen, events, now, sent = 0, lost, end;
	struct consumer c;
	struct rig r;
	pid_t pid;
	char x;

	REQUIRE(!pipe(c.ready), "pipe");
	c.channel = fpga_events(&f, 16);
	CHECK(source_add(c.channel, RASHPA_SOURCE_VECTOR, 1) == 1, "%s", reason);
	CHECK(source_add(c.channel, RASHPA_SOURCE_SOFTWARE, 0) == 2, "%s", reason);
	rig_up(&r, &f, -1, 0, 0);
	pid = tap_fork_start(consume, &c);
	CHECK(read(c.ready[0], &x, 1) == 1, "the child did not begin");
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	end = end_of_wait(IN_TIME_MS);
	/* PCI merges interrupts where this processor is slow: send until enough arrive */
	do {
		start(&r, RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX, STACKS);
		rig_wait_stopped(&r, 0);
		sent += reg64(rig_dtp(&r, 0), RFPGA_DTP_C_EVENTS);
		lost = lost_of(c.channel, 1, &events);
	} while (lost < STACKS && CHECK(now_ns() < end, "too few events"));
	CHECK(events <= sent && events == lost + 16, "%llu sent, %llu arrived, %llu lost",
	      sent, events, lost);
	kill(pid, SIGCONT);
	/* one more when there is room again: its record has the number of lost ones */
	end = end_of_wait(IN_TIME_MS);
	while (wait_fd(c.channel, POLLIN, 0))
		if (!CHECK(now_ns() < end, "the consumer does not go on"))
			break;
	start(&r, RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX, 1);
	rig_wait_stopped(&r, 0);
	/* the signal must come after it */
	end = end_of_wait(IN_TIME_MS);
	/* an earlier interrupt that is late may be lost meanwhile, and does not count */
	do
		lost = lost_of(c.channel, 1, &now);
	while (now - lost <= 16 && CHECK(now_ns() < end, "no event"));
	ANSWERED(signal_one(c.channel, 0), 0, NULL);
	CHECK(read(c.ready[0], &counted, sizeof(counted)) == sizeof(counted), "read");
	/* events that arrived are seen or counted as lost; interrupts may still be on their way */
	lost_of(c.channel, 1, &events);
	seen = counted >> 32;
	counted &= UINT32_MAX;
	CHECK(seen > 16 && counted >= lost && seen + counted >= now && seen + counted <= events,
	      "%llu seen, %llu lost, %llu to %llu arrived", seen, counted, now, events);
	CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "the data differ");
	tap_fork_end(pid);
	rig_is_idle(r.regs, 0);
	rig_down(&r);
	close(c.channel);
	close(c.ready[0]);
	close(c.ready[1]);
}

/* -------------------------------------- others reach for the function --- */

TEST(reset_running, "a reset in mid-stream, by RESET and by sysfs")
{
	char path[64];
	struct rig r;
	int i, err;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", f.bdf);
	for (i = 0; i < 2; i++) {
		stream(&r);
		err = i ? write_text(path, "1") : fpga_reset(&f);
		CHECK(!err, "%s: %s %s", i ? path : "RESET", strerror(-err), reason);
		rig_is_idle(r.regs, 0);
		rig_entries_clear(r.regs, r.made.out_segments);
		CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "the data differ");
		map_streams(&r);
		rig_is_idle(r.regs, 0);
		rig_down(&r);
	}
	streams_again(NULL);
}

/* setpci switches bus mastering off */
TEST(master, "bus mastering is switched off by another program")
{
	struct rig r;

	stream(&r);
	set_command(PCI_COMMAND_MASTER, 0);
	refused(&r, RFPGA_FAULT_MASTER);
	CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "the data differ");
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	/* a reset switches bus mastering on again if there are maps */
	ANSWERED(fpga_reset(&f), 0, NULL);
	map_streams(&r);
	streams_again(&r);
}

/* setpci switches the BARs off, and on again */
TEST(decoding, "the BARs are switched off by another program")
{
	struct rig r;

	stream(&r);
	set_command(PCI_COMMAND_MEMORY, 0);
	tap_note("registers read 0x%x without decoding", reg32(r.regs, RFPGA_ID));
	CHECK(reg32(r.regs, RFPGA_ID) != RFPGA_ID_VALUE, "the registers answer");
	set32(r.regs, RFPGA_SCRATCH, 1);
	ANSWERED(fpga_quiesce(&f), ETIMEDOUT, "idle|reset");
	state_is(RASHPA_STATE_STUCK);
	CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "the data differ");
	ANSWERED(fpga_reset(&f), EIO, "was reset|still");
	rig_end_map(&r);
	rig_nobody_writes(r.memory);
	/* a reset does not switch them on; after it the registers show nothing */
	set_command(0, PCI_COMMAND_MEMORY);
	ANSWERED(fpga_reset(&f), 0, NULL);
	streams_again(&r);
}

/*
 * Bus mastering is off already, so the driver does not stop the function again. Entries of a map
 * that ends must not become valid with the next map.
 */
TEST(uncleared, "entries that cannot be cleared cut the function off")
{
	struct rashpa_profile_set p = { HEAD(p), TABLE(fpga_table), .dma_bits = 64 };
	int fd = buffer_alloc(MIB, NULL), m;
	struct rashpa_map_make map;

	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	m = fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map);
	ANSWERED(fpga_program(m, 0, NULL), 0, NULL);
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	set_command(PCI_COMMAND_MEMORY, 0);
	/* the map keeps its place, as it cannot be cleared there */
	ANSWERED(fpga_program(m, 100, NULL), EIO, "does not answer|reset");
	close(m);
	state_is(RASHPA_STATE_STUCK);
	set_command(0, PCI_COMMAND_MEMORY);
	ANSWERED(fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map), EIO, "reset");
	ANSWERED(fpga_reset(&f), 0, NULL);
	state_is(RASHPA_STATE_READY);
	close(fd);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	streams_again(NULL);
}

/*
 * As the PCI core does when a link fails, before it notifies the driver. The function has lost
 * its BARs, and a RESET just then must not save that state.
 */
TEST(link_reset, "the link is reset by another program")
{
	struct rig r;

	rig_up(&r, &f, -1, 0, 64 * KIB);
	set_config("/..", PCI_BRIDGE_CONTROL, 0, PCI_BRIDGE_CTL_BUS_RESET);
	set_config("/..", PCI_BRIDGE_CONTROL, PCI_BRIDGE_CTL_BUS_RESET, 0);
	CHECK(reg32(r.regs, RFPGA_ID) != RFPGA_ID_VALUE, "it has its BARs");
	ANSWERED(fpga_reset(&f), 0, NULL);
	CHECK(reg32(r.regs, RFPGA_ID) == RFPGA_ID_VALUE, "its BARs are lost");
	streams_again(&r);
}

void setup(void)
{
	rig_need_control(&f);
	iommu = fpga_iommu(&f);
}
