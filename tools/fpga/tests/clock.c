// SPDX-License-Identifier: LGPL-2.1-or-later
/* The clock of the board, when a test holds it. */
#include "fpga/tests/selftest.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static uint64_t meta_ticks(const struct dtp *d, uint32_t slot, uint32_t image)
{
	size_t at = LOCKS + d->meta + (slot * d->bunch + image) * RFPGA_META_SIZE;
	uint64_t ticks;

	memcpy(&ticks, host + at + RFPGA_META_TICKS, sizeof(ticks));
	return ticks;
}

static bool last_image_untouched(const struct dtp *d)
{
	return same_image(d, 0, d->bunch - 2) &&
	       untouched((d->bunch - 1) * d->dst_image, d->bunch * d->dst_image);
}

static void step_to(uint64_t images, uint64_t ticks)
{
	char text[40];

	snprintf(text, sizeof(text), "clock step %llu", (unsigned long long)ticks);
	tell(text);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), images);
}

/* Work is done at its tick, and before the answer; the clock continues from the held tick. */
static void test_held_clock(void)
{
	static const uint64_t begun[] = { 0, 1000, 4500, 4500, 4500, 5000 };
	const uint64_t never = UINT64_MAX;
	struct dtp d = plain(0);
	uint64_t tick, now;
	unsigned int i;
	int fd;

	tell("clock hold");
	tick = rd64(RFPGA_TICKS);
	d.mode |= RFPGA_MODE_FREERUN | RFPGA_MODE_META;
	d.meta = 1024;
	d.period = 1000;
	d.images = 6;
	start(&d);
	step_to(1, 0);
	step_to(1, 999);
	step_to(2, 1);
	/* work during a step is done at the end of the step */
	step_to(5, 3500);
	step_to(5, 499);
	step_to(6, 1);
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	CHECK_EQ(rd64(RFPGA_TICKS), tick + 5000);
	CHECK_EQ(counter(0, RFPGA_DTP_C_START), tick);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STOP), tick + 5000);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_TICKS / 8], tick + 5000);
	for (i = 0; i < 6; i++)
		CHECK_EQ(meta_ticks(&d, i / 4, i % 4), tick + begun[i]);
	/* without credit */
	d.mode = RFPGA_MODE_LOCK;
	d.images = 0;
	start(&d);
	step_to(8, 0);
	step_to(8, 12345);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STALL), 12345);
	/* a delay */
	fresh();
	d.mode = RFPGA_MODE_LOCK | RFPGA_MODE_MSIX;
	d.images = 4;
	tell("early interrupt 1000");
	start(&d);
	step_to(4, 249999);
	CHECK_EQ(events_so_far(0), 1);
	CHECK(!idle() && last_image_untouched(&d));
	step_to(4, 1);
	CHECK(idle() && same_stack(&d, 0));
	tell("honest");
	fd = client_open(c->control);
	CHECK(control(fd, "clock\n", "error"));
	CHECK(control(fd, "clock step\n", "error"));
	CHECK(control(fd, "clock step -1\n", "error"));
	CHECK(control(fd, "clock step 1 2\n", "error"));
	CHECK(control(fd, "clock step 18446744073709551615\n", "error"));
	tick = rd64(RFPGA_TICKS);
	CHECK(control(fd, "clock run\n", "ok\n"));
	now = rd64(RFPGA_TICKS);
	CHECK(now >= tick && now < tick + never / 2);
	CHECK(EVENTUALLY(rd64(RFPGA_TICKS) > now));
	CHECK(control(fd, "clock step 1\n", "error"));
	close(fd);
}

/* The engine waits for an answer of the host: it arrives while a clock step is served. */
static void test_held_messages(void)
{
	struct dtp d = remote_dtp();
	unsigned int i;
	int fd;

	memset(c->remote, CANARY, c->remote_size);
	d.mode = RFPGA_MODE_FREERUN;
	d.period = 100;
	d.images = 8;
	tell("clock hold");
	start(&d);
	fd = client_open(c->control);
	CHECK_EQ(send(fd, "clock step 700\n", 15, MSG_NOSIGNAL), 15);
	for (i = 0; i < 100 && status(0) != RFPGA_DTP_DONE; i++)
		client_serve(c, 5);
	CHECK(control(fd, "", "ok\n"));
	CHECK(!memcmp(c->remote, dataset, 8 * 4096));
	close(fd);
	tell("clock run");
}

static const struct test tests[] = {
	{ "held", "a clock that is held: to the tick", test_held_clock },
	{ "messages", "a clock that is held: DMA by messages", test_held_messages },
};

const struct suite clock_suite = SUITE("clock", tests);
