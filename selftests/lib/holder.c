// SPDX-License-Identifier: LGPL-2.1-or-later

#include <rashpa-fpga.h>
#include "holder.h"

void open_all(struct open_things *t, const struct fpga *f)
{
	t->f = *f;
	t->buffer = buffer_alloc(MIB, NULL);
	t->window = fpga_window(f, RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
	t->map = fpga_map(f, t->buffer, RASHPA_BIDIRECTIONAL, &t->made);
	t->channel = fpga_events(f, 0);
	t->quiet = fpga_events(f, 0);	/* no source for the device */
	if (t->map < 0 || t->channel < 0 || t->quiet < 0)
		tap_bail("%s", reason);
	fcntl(t->channel, F_SETFL, O_NONBLOCK);
	fcntl(t->quiet, F_SETFL, O_NONBLOCK);
	fcntl(t->map, F_SETFL, O_NONBLOCK);
	CHECK(source_add(t->channel, RASHPA_SOURCE_DEVICE, 0) > 0, "%s", reason);
	CHECK(source_add(t->channel, RASHPA_SOURCE_SOFTWARE, 0) > 0, "%s", reason);
	CHECK(source_add(t->quiet, RASHPA_SOURCE_VECTOR, 0) > 0, "%s", reason);
	t->regs = map_fd(t->window, RFPGA_BAR_REGS_SIZE);
	t->untouched = map_fd(t->window, RFPGA_BAR_REGS_SIZE);
	t->table = mmap(NULL, t->made.out_table_size, PROT_READ, MAP_SHARED, t->map, 0);
	if (t->table == MAP_FAILED || t->table->state != RASHPA_MAP_STATE_VALID)
		tap_bail("no table of the map");
	(void)reg32(t->regs, 0);
	t->generation = t->table->generation;
}

void close_all(struct open_things *t)
{
	munmap(t->regs, RFPGA_BAR_REGS_SIZE);
	munmap(t->untouched, RFPGA_BAR_REGS_SIZE);
	munmap((void *)t->table, t->made.out_table_size);
	close(t->window);
	close(t->map);
	close(t->channel);
	close(t->quiet);
	close(t->buffer);
	close(t->f.fd);
}

static void touch(void *p)
{
	(void)reg32(p, 0);
}

void sigbus(void *p, const char *what)
{
	int status = tap_fork_wait(tap_fork_start(touch, p));

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS,
	      "touching %s: status 0x%x, expected SIGBUS", what, status);
}

static void channel_ended(int channel)
{
	struct rashpa_event e;

	CHECK(read(channel, &e, sizeof(e)) < 0 && errno == ENODEV, "read: %s", strerror(errno));
	CHECK(wait_fd(channel, POLLIN, 0) & POLLHUP, "no hang-up");
}

static void channels_gone(struct open_things *t, u64 stopped)
{
	struct rashpa_event e[8];
	bool told = false;
	int n, i;

	/* its last records, then the end */
	CHECK(wait_fd(t->channel, POLLIN, 1000) & POLLIN, "no event");
	n = read(t->channel, e, sizeof(e)) / (ssize_t)sizeof(*e);
	for (i = 0; i < n; i++)
		told = told || e[i].value == stopped;
	CHECK(n >= 1 && e[n - 1].value == RASHPA_DEVICE_EVENT_GONE, "GONE is not the last of %d",
	      n);
	CHECK(told, "no record says how the function was stopped");
	channel_ended(t->channel);
	channel_ended(t->quiet);
}

static void map_gone(struct open_things *t)
{
	struct rashpa_table head;
	struct rashpa_info info;

	CHECK(wait_fd(t->map, POLLIN, 0) & POLLIN, "the map is not ready");
	CHECK(read(t->map, &head, sizeof(head)) == sizeof(head), "read: %s", strerror(errno));
	CHECK(head.state == RASHPA_MAP_STATE_REVOKED && !head.count &&
	      head.generation > t->generation && !(head.generation & 1),
	      "state %u, %u segments", head.state, head.count);
	CHECK(t->table->state == RASHPA_MAP_STATE_REVOKED && !t->table->count,
	      "the mapped table is not revoked");
	ANSWERED(buffer_info(t->buffer, &info), 0, NULL);
	CHECK(!info.out_importers, "%u importers", info.out_importers);
}

static void window_gone(struct open_things *t)
{
	struct rashpa_info info;
	void *p;

	sigbus(t->regs, "a mapping in use");
	sigbus(t->untouched, "a mapping never touched");
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, t->window, 0);
	if (p != MAP_FAILED) {
		sigbus(p, "a mapping made afterwards");
		munmap(p, PAGE);
	}
	ANSWERED(buffer_info(t->window, &info), 0, NULL);
}

static void calls_answer_enodev(struct open_things *t)
{
	struct rashpa_device_info info;
	struct rashpa_region_info region = { HEAD(region) };
	struct rashpa_quiesce quiesce = { HEAD(quiesce) };
	struct rashpa_reset reset = { HEAD(reset) };
	struct rashpa_signal signal = { HEAD(signal) };
	struct rashpa_source_del del = { HEAD(del), .id = 1 };
	struct rashpa_eventfd_bind eventfd = { HEAD(eventfd), .fd = -1 };
	const struct fpga *f = &t->f;
	struct rashpa_map_make map;
	uint32_t n;

	ANSWERED(fpga_info(f, &info), ENODEV, f->name);
	ANSWERED(call(f->fd, RASHPA_IOC_REGION_INFO, &region), ENODEV, f->name);
	ANSWERED(fpga_profile(f, 0, NULL, 0), ENODEV, f->name);
	ANSWERED(fpga_window(f, 0, 0, PAGE, 0), ENODEV, f->name);
	ANSWERED(fpga_map(f, t->buffer, 0, &map), ENODEV, f->name);
	ANSWERED(fpga_events(f, 0), ENODEV, f->name);
	ANSWERED(call(f->fd, RASHPA_IOC_QUIESCE, &quiesce), ENODEV, f->name);
	ANSWERED(call(f->fd, RASHPA_IOC_RESET, &reset), ENODEV, f->name);
	ANSWERED(fpga_program(t->map, 0, &n), ENODEV, f->name);
	ANSWERED(source_add(t->channel, RASHPA_SOURCE_VECTOR, 0), ENODEV, f->name);
	ANSWERED(call(t->channel, RASHPA_IOC_SIGNAL, &signal), ENODEV, f->name);
	/* its resources can be released */
	ANSWERED(call(t->channel, RASHPA_IOC_SOURCE_DEL, &del), 0, NULL);
	ANSWERED(call(t->channel, RASHPA_IOC_EVENTFD_BIND, &eventfd), 0, NULL);
}

void all_gone(struct open_things *t, u64 stopped)
{
	channels_gone(t, stopped);
	map_gone(t);
	window_gone(t);
	calls_answer_enodev(t);
}
