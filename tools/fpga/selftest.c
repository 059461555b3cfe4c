// SPDX-License-Identifier: GPL-2.0-only
/* Test of rashpa-fpga without a virtual machine. Prints TAP. */
#include "client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#define HOST_SIZE	(64u << 20)
#define HOST_ADDR	0x100000000ull		/* of all host memory, for DMA */
#define REMOTE_ADDR	0x900000000ull		/* of memory without a descriptor */
#define DST		0u			/* in host memory */
#define LOCKS		(48u << 20)
#define CANARY		0xa5

static struct client client, *c = &client;
static uint8_t *host;
static int host_fd;
static const char *program;

static unsigned int test_number, test_failed;
static bool failed;

#define CHECK(cond) do {							\
	if (!(cond)) {								\
		printf("# line %d: %s\n", __LINE__, #cond);			\
		failed = true;							\
	}									\
} while (0)

#define CHECK_EQ(a, b) do {							\
	unsigned long long _a = (a), _b = (b);					\
	if (_a != _b) {								\
		printf("# line %d: %s is %#llx, not %#llx\n", __LINE__, #a, _a, _b); \
		failed = true;							\
	}									\
} while (0)

/* ------------------------------------------------------------- helpers --- */

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void set_entry(unsigned int n, uint64_t addr, uint64_t length, uint32_t control)
{
	uint32_t e = RFPGA_TABLE + n * RFPGA_ENTRY_STRIDE;

	wr(c, e + RFPGA_ENTRY_CONTROL, 0);
	wr64(c, e + RFPGA_ENTRY_ADDR, addr);
	wr64(c, e + RFPGA_ENTRY_LEN, length);
	wr(c, e + RFPGA_ENTRY_CONTROL, control);
}

/* Registers and host memory as every test finds them. */
static void fresh(void)
{
	unsigned int i;
	uint64_t events;

	client_reset(c);
	client_unmap(c, 0, UINT64_MAX);
	client_config_write(c, 4, 6, 2);
	client_config_write(c, 0x42, 0x8000, 2);	/* MSI-X */
	memset(host, CANARY, HOST_SIZE);
	CHECK_EQ(client_map(c, HOST_ADDR, HOST_SIZE, 0, 3, host_fd), 0);
	set_entry(0, HOST_ADDR + DST, 32 << 20, RFPGA_ENTRY_VALID);
	set_entry(1, HOST_ADDR + LOCKS, 4096, RFPGA_ENTRY_VALID);
	for (i = 0; i < CLIENT_VECTORS; i++)
		while (read(c->event[i], &events, sizeof(events)) > 0)
			;
}

struct dtp {
	uint32_t n, mode, vector, pixel, sampling, bunch, slots, images_in_set;
	uint32_t src_x, src_y, width, height, dst_x, dst_y, group;
	uint64_t src_base, src_line, src_image, dst_base, dst_line, dst_image, dst_slot;
	uint32_t first, count;
	uint64_t lock, images, period, first_stack;
	uint32_t run;
	uint64_t meta, first_frame;
};

/* A whole image of 64 x 32 pixels of two bytes, 16 of them, two slots of 4. */
static struct dtp plain(uint32_t n)
{
	return (struct dtp){
		.n = n, .mode = RFPGA_MODE_MSIX | RFPGA_MODE_LOCK, .pixel = 2, .sampling = 1,
		.bunch = 4, .slots = 2, .images_in_set = 16, .width = 64, .height = 32,
		.src_line = 128, .src_image = 4096, .dst_line = 128, .dst_image = 4096,
		.dst_slot = 4 * 4096, .count = 1, .lock = n * 64, .images = 16,
	};
}

static void program_dtp(const struct dtp *d)
{
	uint32_t b = RFPGA_DTP(d->n);

	wr(c, b + RFPGA_DTP_MODE, d->mode);
	wr(c, b + RFPGA_DTP_VECTOR, d->vector);
	wr(c, b + RFPGA_DTP_PIXEL_BYTES, d->pixel);
	wr(c, b + RFPGA_DTP_BUNCH, d->bunch);
	wr(c, b + RFPGA_DTP_SLOTS, d->slots);
	wr(c, b + RFPGA_DTP_SRC_IMAGES, d->images_in_set);
	wr(c, b + RFPGA_DTP_SRC_X, d->src_x);
	wr(c, b + RFPGA_DTP_SRC_Y, d->src_y);
	wr(c, b + RFPGA_DTP_WIDTH, d->width);
	wr(c, b + RFPGA_DTP_HEIGHT, d->height);
	wr(c, b + RFPGA_DTP_DST_X, d->dst_x);
	wr(c, b + RFPGA_DTP_DST_Y, d->dst_y);
	wr(c, b + RFPGA_DTP_GROUP, d->group);
	wr64(c, b + RFPGA_DTP_SRC_BASE, d->src_base);
	wr64(c, b + RFPGA_DTP_SRC_LINE, d->src_line);
	wr64(c, b + RFPGA_DTP_SRC_IMAGE, d->src_image);
	wr64(c, b + RFPGA_DTP_DST_BASE, d->dst_base);
	wr64(c, b + RFPGA_DTP_DST_LINE, d->dst_line);
	wr64(c, b + RFPGA_DTP_DST_IMAGE, d->dst_image);
	wr64(c, b + RFPGA_DTP_DST_SLOT, d->dst_slot);
	wr(c, b + RFPGA_DTP_DST_FIRST, d->first);
	wr(c, b + RFPGA_DTP_DST_COUNT, d->count);
	wr64(c, b + RFPGA_DTP_LOCK_OFFSET, d->lock);
	wr(c, b + RFPGA_DTP_LOCK_FIRST, 1);
	wr(c, b + RFPGA_DTP_LOCK_COUNT, 1);
	wr64(c, b + RFPGA_DTP_IMAGES, d->images);
	wr64(c, b + RFPGA_DTP_PERIOD, d->period);
	wr64(c, b + RFPGA_DTP_FIRST_STACK, d->first_stack);
	wr(c, b + RFPGA_DTP_FIRST_SLOT, d->slots ? d->first_stack % d->slots : 0);
	wr(c, b + RFPGA_DTP_FIRST_INDEX, (uint32_t)(d->first_stack * d->bunch % d->images_in_set *
						    d->sampling % d->images_in_set));
	wr(c, b + RFPGA_DTP_INDEX_STEP, d->sampling % d->images_in_set);
	wr(c, b + RFPGA_DTP_RUN, d->run);
	wr64(c, b + RFPGA_DTP_META_OFFSET, d->meta);
	wr(c, b + RFPGA_DTP_META_FIRST, 1);
	wr(c, b + RFPGA_DTP_META_COUNT, 1);
	wr64(c, b + RFPGA_DTP_FIRST_FRAME, d->first_frame);
}

static void start(const struct dtp *d)
{
	program_dtp(d);
	wr(c, RFPGA_DTP(d->n) + RFPGA_DTP_CONTROL, RFPGA_DTP_START);
}

static uint32_t status(uint32_t n)
{
	return rd(c, RFPGA_DTP(n) + RFPGA_DTP_STATUS);
}

static uint64_t counter(uint32_t n, uint32_t which)
{
	return rd64(c, RFPGA_DTP(n) + which);
}

static void give_credit(uint32_t n, uint32_t credit)
{
	c->doorbell[n * RFPGA_DOORBELL_PAGE / 4] = credit;
}

/* Wait until what was asked about is so, at most 2 s. */
#define EVENTUALLY(cond) ({							\
	uint64_t _end = now_us() + 2000000;					\
	bool _ok;								\
	while (!(_ok = (cond)) && now_us() < _end)				\
		usleep(200);							\
	_ok; })

static bool wait_event(uint32_t vector, uint64_t *total)
{
	struct pollfd p = { .fd = c->event[vector], .events = POLLIN };
	uint64_t n;

	if (poll(&p, 1, 2000) != 1 || read(p.fd, &n, sizeof(n)) != sizeof(n))
		return false;
	*total += n;
	return true;
}

static uint64_t events_so_far(uint32_t vector)
{
	uint64_t n = 0;

	return read(c->event[vector], &n, sizeof(n)) == sizeof(n) ? n : 0;
}

static const volatile uint64_t *lock_record(uint32_t n)
{
	return (const volatile uint64_t *)(host + LOCKS + n * RFPGA_LOCK_SIZE);
}

static bool untouched(size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++)
		if (host[i] != CANARY)
			return false;
	return true;
}

static bool same_line(const struct dtp *d, uint64_t stack, uint32_t image, uint32_t line)
{
	uint64_t frame = stack * d->bunch + image;
	uint64_t index = frame * d->sampling % d->images_in_set;
	uint64_t src = d->src_base + index * d->src_image + (d->src_y + line) * d->src_line +
		       d->src_x * d->pixel;
	uint64_t dst = d->dst_base + stack % d->slots * d->dst_slot + image * d->dst_image +
		       (d->dst_y + line) * d->dst_line + d->dst_x * d->pixel;

	return !memcmp(host + DST + dst, c->memory + src, d->width * d->pixel);
}

static bool same_image(const struct dtp *d, uint64_t stack, uint32_t image)
{
	uint32_t line;

	for (line = 0; line < d->height; line++)
		if (!same_line(d, stack, image, line))
			return false;
	return true;
}

static bool same_stack(const struct dtp *d, uint64_t stack)
{
	uint32_t image;

	for (image = 0; image < d->bunch; image++)
		if (!same_image(d, stack, image))
			return false;
	return true;
}

static bool idle(void)
{
	return !(rd(c, RFPGA_STATUS) & RFPGA_STATUS_BUSY);
}

static bool faulted(uint32_t n, uint32_t cause)
{
	return EVENTUALLY(status(n) & RFPGA_DTP_FAULTED) && idle() &&
	       rd(c, RFPGA_FAULT_CAUSE) == cause && rd(c, RFPGA_FAULT_DTP) == n &&
	       (rd(c, RFPGA_STATUS) & RFPGA_STATUS_FAULT) &&
	       counter(n, RFPGA_DTP_C_FAULTS) == 1;
}

/* -------------------------------------------------------------- tests --- */

static void test_identity(void)
{
	uint32_t b;

	CHECK_EQ(client_config_read(c, 0), RFPGA_PCI_DEVICE << 16 | RFPGA_PCI_VENDOR);
	CHECK_EQ(client_config_read(c, 8) >> 8, RFPGA_PCI_CLASS);
	CHECK_EQ(rd(c, RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(rd(c, RFPGA_VERSION), RFPGA_VERSION_VALUE);
	CHECK_EQ(RFPGA_CAPS_DTPS(rd(c, RFPGA_CAPS)), 4);
	CHECK_EQ(RFPGA_CAPS_VECTORS(rd(c, RFPGA_CAPS)), CLIENT_VECTORS);
	CHECK_EQ(RFPGA_CAPS_ENTRIES(rd(c, RFPGA_CAPS)), 1024);
	CHECK_EQ(rd64(c, RFPGA_MEMORY_SIZE), CLIENT_MEMORY);
	CHECK_EQ(rd(c, RFPGA_TICK_RATE), 1000000000 / RFPGA_TICK_NS);
	CHECK(RFPGA_LIMITS_OFFSET(rd(c, RFPGA_LIMITS)) >= 40);
	CHECK(rd(c, RFPGA_STOP_TIME) >= 1000);
	/* the list of blocks says the same as the registers, and ends */
	b = rd(c, RFPGA_BLOCKS);
	CHECK_EQ(rd(c, b + RFPGA_BLOCK_TYPE), RFPGA_BLOCK_DTP | 4 << 16);
	CHECK_EQ(rd(c, b + RFPGA_BLOCK_BASE), RFPGA_DTP(0));
	CHECK_EQ(rd(c, b + RFPGA_BLOCK_STEP), RFPGA_DTP(1) - RFPGA_DTP(0));
	CHECK_EQ(rd(c, b + RFPGA_BLOCK_DOORBELL), 0);
	b += RFPGA_BLOCK_STRIDE;
	CHECK_EQ(rd(c, b + RFPGA_BLOCK_TYPE), RFPGA_BLOCK_TABLE | 1024 << 16);
	CHECK_EQ(rd(c, b + RFPGA_BLOCK_BASE), RFPGA_TABLE);
	CHECK_EQ(rd(c, b + RFPGA_BLOCK_STEP), RFPGA_ENTRY_STRIDE);
	CHECK_EQ(rd(c, b + RFPGA_BLOCK_DOORBELL), UINT32_MAX);
	CHECK_EQ(rd(c, b + RFPGA_BLOCK_STRIDE), RFPGA_BLOCK_NONE);
	CHECK_EQ(rd(c, 0x0ffc), 0);
	CHECK_EQ(rd(c, RFPGA_DTP(4)), 0);
	wr(c, RFPGA_SCRATCH, 0x12345678);
	CHECK_EQ(rd(c, RFPGA_SCRATCH), 0x12345678);
	wr(c, RFPGA_ID, 0);
	CHECK_EQ(rd(c, RFPGA_ID), RFPGA_ID_VALUE);
	/* BAR sizing */
	client_config_write(c, 0x10, 0xffffffff, 4);
	CHECK_EQ(client_config_read(c, 0x10), 0xffff0000);
	client_config_write(c, 0x20, 0xffffffff, 4);
	CHECK_EQ(client_config_read(c, 0x20), (uint32_t)~(CLIENT_MEMORY - 1) | 0xc);
}

static void test_clock(void)
{
	/* each read is between two looks at our clock, however far those are apart */
	uint64_t before = now_us(), begin = rd64(c, RFPGA_TICKS), after = now_us(), least, us;

	usleep(20000);
	least = now_us() - after;
	us = (rd64(c, RFPGA_TICKS) - begin) * 1000000 / rd(c, RFPGA_TICK_RATE);
	CHECK(us + 2 >= least && us <= now_us() - before + 2);
}

static void test_roi(void)
{
	struct dtp d = plain(0);
	uint64_t events = 0, i;

	d.src_x = 5;
	d.src_y = 3;
	d.width = 20;
	d.height = 7;
	d.dst_x = 2;
	d.dst_y = 1;
	d.dst_line = 64;
	d.dst_image = 1024;
	d.dst_slot = 8192;
	d.dst_base = 4096;
	d.slots = 4;
	start(&d);
	while (events < 4 && wait_event(0, &events))
		;
	CHECK_EQ(events, 4);
	for (i = 0; i < 4; i++)
		CHECK(same_stack(&d, i));
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	/* what is not in the region stays as it was */
	CHECK(untouched(0, 4096 + 64 + 4));
	CHECK(untouched(4096 + 64 + 4 + 40, 4096 + 128 + 4));
	CHECK(untouched(4096 + 8 * 64, 4096 + 1024));
	CHECK(untouched(4096 + 4 * 8192, LOCKS));
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 16);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 4);
	CHECK_EQ(counter(0, RFPGA_DTP_C_DESCRIPTORS), 16 * 7);
	CHECK_EQ(counter(0, RFPGA_DTP_C_BYTES), 16 * 7 * 40);
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 4);
	CHECK_EQ(rd64(c, RFPGA_BYTES), 16 * 7 * 40);
	CHECK(counter(0, RFPGA_DTP_C_STOP) >= counter(0, RFPGA_DTP_C_START));
	CHECK_EQ(rd64(c, RFPGA_FAULTS), 0);
}

static void test_pixel_sizes(void)
{
	static const uint32_t sizes[] = { 1, 2, 4, 8 };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		struct dtp d = plain(i);

		d.pixel = sizes[i];
		d.width = 10;
		d.height = 4;
		d.src_x = 3;
		d.dst_x = 1;
		d.slots = 4;
		start(&d);
		CHECK(EVENTUALLY(status(i) == RFPGA_DTP_DONE));
		CHECK(same_stack(&d, 0) && same_stack(&d, 3));
	}
}

static void test_entries(void)
{
	struct dtp d = plain(0);
	uint8_t *first = host + (40 << 20), *second = host + (36 << 20);
	uint64_t i;

	/* the second line begins in entry 2 and ends in entry 4; entry 3 is empty */
	set_entry(2, HOST_ADDR + (40 << 20), 200, RFPGA_ENTRY_VALID);
	set_entry(3, 0, 0, RFPGA_ENTRY_VALID);
	set_entry(4, HOST_ADDR + (36 << 20), 1 << 20, RFPGA_ENTRY_VALID);
	d.first = 2;
	d.count = 3;
	d.src_line = 256;	/* a gap, so that lines are not merged */
	d.images = 1;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	for (i = 0; i < 32 * 128; i++)
		if ((i < 200 ? first[i] : second[i - 200]) !=
		    c->memory[i / 128 * 256 + i % 128])
			break;
	CHECK_EQ(i, 32 * 128);
	CHECK_EQ(first[200], CANARY);
}

static void test_pieces(void)
{
	struct dtp d = plain(0);
	unsigned int i;

	/* pages of the buffer arrive in any order, and some as one */
	client_unmap(c, HOST_ADDR, HOST_SIZE);
	for (i = 1; i < 16; i += 2)
		CHECK_EQ(client_map(c, HOST_ADDR + i * 4096, 4096, i * 4096, 3, host_fd), 0);
	for (i = 0; i < 16; i += 2)
		CHECK_EQ(client_map(c, HOST_ADDR + i * 4096, 4096, i * 4096, 3, host_fd), 0);
	CHECK_EQ(client_map(c, HOST_ADDR + LOCKS, 4096, LOCKS, 3, host_fd), 0);
	CHECK_EQ(client_map(c, HOST_ADDR + 0x3000, 4096, 0, 3, host_fd), EEXIST);
	CHECK_EQ(client_map(c, HOST_ADDR - 0x1000, 0x2000, 0, 3, host_fd), EEXIST);
	d.slots = 4;
	d.dst_base = 100;
	d.images = 12;
	start(&d);
	give_credit(0, 0);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(same_stack(&d, 0) && same_stack(&d, 2));
	/* the 9th page goes: all of a burst that needs it is refused */
	client_unmap(c, HOST_ADDR + 8 * 4096, 4096);
	memset(host, CANARY, 1 << 20);
	d.images = 4;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	d.first_stack = 1;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), HOST_ADDR + 8 * 4096);
	CHECK(same_image(&d, 1, 2));
	CHECK(untouched(7 * 4096 + 100, 1 << 20));
}

static void test_big_lines(void)
{
	struct dtp d = plain(0);

	d.pixel = 8;
	d.width = 125000;		/* a line of 1 MB, longer than a burst */
	d.height = 5;
	d.src_line = 1000000;
	d.dst_line = 1 << 20;
	d.src_image = 0;
	d.images_in_set = 1;
	d.bunch = d.slots = 1;
	d.images = 1;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(same_stack(&d, 0));
	CHECK_EQ(counter(0, RFPGA_DTP_C_DESCRIPTORS), 5);
	/* 5 MB without a gap, merged to bursts */
	d.dst_line = 1000000;
	d.dst_base = 8 << 20;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(same_stack(&d, 0));
}

static void test_credit(void)
{
	struct dtp d = plain(0);
	uint64_t events = 0, k;

	d.slots = 3;
	d.images = 0;
	start(&d);
	while (events < 3 && wait_event(0, &events))
		;
	CHECK_EQ(events, 3);
	CHECK(EVENTUALLY(status(0) == (RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING)));
	usleep(5000);
	CHECK_EQ(events_so_far(0), 0);
	for (k = 1; k <= 50; k++) {
		memset(host + (k - 1) % 3 * d.dst_slot, CANARY, d.dst_slot);
		give_credit(0, (uint32_t)k);
		CHECK(wait_event(0, &events));
		CHECK_EQ(events, k + 3);
		CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), k + 3);
		CHECK(same_stack(&d, k + 2));
	}
	/* also as a message, and a step of more than one */
	wr(c, RFPGA_DTP(0) + RFPGA_DTP_C_CREDIT, 99);
	CHECK_EQ(counter(0, RFPGA_DTP_C_CREDIT) & UINT32_MAX, 50);
	give_credit(0, 53);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 56));
	CHECK_EQ(counter(0, RFPGA_DTP_C_OVERRUNS), 0);
	/* credit from the future is no credit */
	give_credit(0, 1000);
	usleep(3000);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 56);
	wr(c, RFPGA_DTP(0), RFPGA_DTP_STOP);
	CHECK(idle());
	CHECK_EQ(rd(c, RFPGA_STOPS), 1);
	/* nearly all of its time it has waited for us */
	CHECK(counter(0, RFPGA_DTP_C_STALL) * RFPGA_TICK_NS >= 8000000);
}

/* A credit of the run before, which comes when the next one has begun. */
static void test_stale_credit(void)
{
	volatile uint64_t *tagged = (volatile uint64_t *)(c->doorbell + RFPGA_DB_TAGGED / 4);
	struct dtp d = plain(0);

	d.images = 0;
	d.run = 7;
	start(&d);
	CHECK_EQ(*tagged, 7ull << 32);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_WAITING));
	*tagged = 1 | 7ull << 32;
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	wr(c, RFPGA_DTP(0), RFPGA_DTP_STOP);
	CHECK(EVENTUALLY(idle()));
	d.run = 8;
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_WAITING));
	*tagged = 2 | 7ull << 32;
	give_credit(0, 2);			/* this word does not count, too */
	usleep(3000);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 2);
	CHECK_EQ(counter(0, RFPGA_DTP_C_CREDIT), 0);
	/* in two halves, the lower one first: the upper one is what counts */
	c->doorbell[RFPGA_DB_TAGGED / 4] = 1;
	usleep(3000);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 2);
	c->doorbell[RFPGA_DB_TAGGED / 4 + 1] = 8;
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	wr(c, RFPGA_DTP(0), RFPGA_DTP_STOP);
	CHECK(EVENTUALLY(idle()));
}

static void test_credit_wraps(void)
{
	struct dtp d = plain(0);

	d.first_stack = 0x1fffffffeull;
	d.images = 0;
	start(&d);
	CHECK_EQ(c->doorbell[0], 0xfffffffe);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
	give_credit(0, 0xffffffff);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	give_credit(0, 1);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 5));
	CHECK_EQ(lock_record(0)[0], 0x200000003ull);
	CHECK(same_stack(&d, 0x200000002ull));
}

static void test_last_stack(void)
{
	struct dtp d = plain(0);
	uint64_t events = 0;

	d.images = 6;		/* one stack and a half */
	start(&d);
	while (events < 2 && wait_event(0, &events))
		;
	CHECK_EQ(events, 2);
	CHECK(status(0) & RFPGA_DTP_DONE);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_STACKS / 8], 2);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_IMAGES / 8], 6);
	CHECK(same_image(&d, 1, 0) && same_image(&d, 1, 1));
	CHECK(untouched(d.dst_slot + 2 * d.dst_image, 2 * d.dst_slot));
}

static void test_freerun(void)
{
	struct dtp d = plain(0);

	d.mode |= RFPGA_MODE_FREERUN;
	d.images = 40;
	d.period = 50000;		/* 200 us */
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 10);
	CHECK_EQ(counter(0, RFPGA_DTP_C_OVERRUNS), 8);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_OVERRUNS / 8], 8);
	CHECK(counter(0, RFPGA_DTP_C_STOP) - counter(0, RFPGA_DTP_C_START) >= 39 * 50000);
	/* as fast as possible, with credit all the time */
	d.period = 0;
	d.slots = 10;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK_EQ(counter(0, RFPGA_DTP_C_OVERRUNS), 0);
	/* a period that never ends, nearly, can be stopped */
	d.period = (1ull << 48) - 1;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) == 1));
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(idle());
}

static const volatile uint32_t *meta_record(const struct dtp *d, uint32_t slot, uint32_t image)
{
	return (const volatile uint32_t *)(host + LOCKS + d->meta +
					   (slot * d->bunch + image) * RFPGA_META_SIZE);
}

static uint64_t meta64(const volatile uint32_t *meta, uint32_t word)
{
	return meta[word / 4] | (uint64_t)meta[word / 4 + 1] << 32;
}

static struct dtp dropping(void)
{
	struct dtp d = plain(0);

	d.mode |= RFPGA_MODE_FREERUN | RFPGA_MODE_DROP | RFPGA_MODE_META;
	d.period = 25000;		/* 100 us */
	d.meta = 1024;
	return d;
}

/* A source that goes on: what has no slot is dropped whole, and frame numbers tell which. */
static void test_drop_stacks(void)
{
	struct dtp d = dropping();
	const volatile uint32_t *meta;
	struct rfpga_lock lock;
	uint64_t frame;
	uint32_t i;

	d.images = 38;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 8);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 2);
	CHECK_EQ(counter(0, RFPGA_DTP_C_DROPPED), 8);
	CHECK_EQ(counter(0, RFPGA_DTP_C_OVERRUNS), 0);
	CHECK_EQ(events_so_far(0), 2);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_STACKS / 8], 2);
	CHECK(same_stack(&d, 0) && same_stack(&d, 1));
	for (i = 0; i < 8; i++) {
		meta = meta_record(&d, i / 4, i % 4);
		CHECK_EQ(meta64(meta, RFPGA_META_FRAME), i);
		CHECK_EQ(meta64(meta, RFPGA_META_STACK), i / 4);
		CHECK(meta64(meta, RFPGA_META_TICKS) >=
		      counter(0, RFPGA_DTP_C_START) + i * d.period);
		CHECK_EQ(meta[RFPGA_META_LENGTH / 4], 4096);
		CHECK_EQ(meta[RFPGA_META_STATUS / 4], 0);
		CHECK_EQ(meta[RFPGA_META_INDEX / 4], i);
	}
	CHECK(untouched(LOCKS + d.meta + 8 * RFPGA_META_SIZE, LOCKS + 4096));
	/* a slot that was given back is used by the next stack in number, not in frames */
	d.images = 0;
	d.first_frame = 100;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_DROPPED) >= 3));
	give_credit(0, 1);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	CHECK(rfpga_lock_read(lock_record(0), &lock));
	CHECK_EQ(lock.stacks, 3);
	CHECK(lock.dropped >= 3);
	meta = meta_record(&d, 0, 0);
	frame = meta64(meta, RFPGA_META_FRAME);
	CHECK_EQ(meta64(meta, RFPGA_META_STACK), 2);
	CHECK_EQ(frame, 100 + 8 + 4 * lock.dropped);
	CHECK_EQ(meta[RFPGA_META_INDEX / 4], (frame - 100) % 16);
	CHECK(!memcmp(host + DST, c->memory + (frame - 100) % 16 * 4096, 4096));
}

static void test_sampling(void)
{
	struct dtp d = plain(0);
	uint64_t k;

	d.sampling = 5;
	d.slots = 8;
	d.images = 32;
	d.first_stack = 3;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	for (k = 3; k < 11; k++)
		CHECK(same_stack(&d, k));
	d.sampling = 0xffffffff;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	for (k = 3; k < 11; k++)
		CHECK(same_stack(&d, k));
}

static void group_run(uint64_t stacks)
{
	static const uint32_t members[] = { 0, 1, 3 };
	struct dtp d[3];
	uint64_t events = 0, sum = 0;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		d[i] = plain(members[i]);
		d[i].group = 0xb;
		d[i].vector = 2;
		d[i].images = stacks * 4;
		d[i].slots = (uint32_t)stacks;
		d[i].dst_base = (2ull << 20) * i;
		d[i].mode |= i == 1 ? RFPGA_MODE_FREERUN : 0;
		d[i].period = i == 1 ? 5000 : 0;
		start(&d[i]);
		if (i < 2) {
			usleep(1000);
			CHECK_EQ(events_so_far(2), 0);
		}
	}
	while (events < stacks && wait_event(2, &events))
		;
	CHECK_EQ(events, stacks);
	CHECK(EVENTUALLY(idle()));
	usleep(1000);
	CHECK_EQ(events_so_far(2), 0);
	for (i = 0; i < 3; i++) {
		sum += counter(members[i], RFPGA_DTP_C_EVENTS);
		CHECK_EQ(lock_record(members[i])[0], stacks);
		CHECK(same_stack(&d[i], stacks - 1));
	}
	CHECK_EQ(sum, stacks);
}

static void test_group(void)
{
	group_run(20);
	group_run(20);		/* what is left of the first run must not count */
	group_run(3);
}

/* Start it, and wait for its end. */
static void run_to(const struct dtp *d, uint32_t end)
{
	start(d);
	CHECK(EVENTUALLY(status(d->n) == end));
}

static struct dtp member(uint32_t n, uint32_t group)
{
	struct dtp d = plain(n);

	d.group = group;
	d.vector = 2;
	d.slots = 4;
	d.dst_base = (2ull << 20) * n;
	return d;
}

/* What DTPs have sent that were no members then. */
static void test_group_strangers(void)
{
	struct dtp d = member(1, 0), other = member(0, 3);

	run_to(&d, RFPGA_DTP_DONE);
	CHECK_EQ(events_so_far(2), 4);
	d = member(3, 0xa);		/* another group, which has no 1 yet */
	run_to(&d, RFPGA_DTP_DONE);
	CHECK_EQ(events_so_far(2), 0);
	group_run(20);
	/* 1 is in the group {0, 1, 3}, not in this one */
	run_to(&other, RFPGA_DTP_DONE);
	CHECK_EQ(events_so_far(2), 0);
	d = member(1, 3);		/* joins, though it took part elsewhere */
	run_to(&d, RFPGA_DTP_DONE);
	CHECK_EQ(events_so_far(2), 4);
}

/* Members that left, and others that are done: the next run has an event when all have sent. */
static void test_group_again(void)
{
	struct dtp a = member(0, 3), b = member(1, 3), bad = a, endless = a;
	int how;

	bad.first = 7;			/* not valid */
	endless.images = 0;
	for (how = 0; how < 3; how++) {
		if (how < 2)
			run_to(&b, RFPGA_DTP_DONE);
		run_to(how < 2 ? &bad : &endless, how < 2 ? RFPGA_DTP_FAULTED :
		       RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
		if (how)
			wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
		CHECK(EVENTUALLY(idle()));
		CHECK_EQ(events_so_far(2), 0);
		run_to(how < 2 ? &a : &b, RFPGA_DTP_DONE);
		CHECK_EQ(events_so_far(2), 0);
		run_to(how < 2 ? &b : &a, RFPGA_DTP_DONE);
		CHECK_EQ(events_so_far(2), 4);
	}
}

static void test_lock(void)
{
	struct dtp d = plain(2);
	uint64_t events = 0, before, k;
	struct rfpga_lock lock = { 0 };
	int i;

	d.mode |= RFPGA_MODE_FLUSH;
	d.slots = 1;
	d.images = 0;
	before = rd64(c, RFPGA_TICKS);
	start(&d);
	for (k = 1; k <= 20; k++) {
		CHECK(EVENTUALLY(lock_record(2)[0] == k));
		CHECK(same_stack(&d, k - 1));
		CHECK(EVENTUALLY(rfpga_lock_read(lock_record(2), &lock)));
		CHECK_EQ(lock.stacks, k);
		CHECK_EQ(lock.images, 4 * k);
		CHECK(lock.ticks >= before);
		before = lock.ticks;
		for (i = 4; i < 7; i++)
			CHECK_EQ(lock_record(2)[i], 0);
		give_credit(2, (uint32_t)k);
	}
	CHECK(wait_event(0, &events));
	CHECK(untouched(LOCKS, LOCKS + 128));
	CHECK(untouched(LOCKS + 192, LOCKS + 4096));
}

/* Nothing was written, nothing runs, nobody was told. */
static void check_refused(uint32_t cause)
{
	CHECK(faulted(0, cause));
	CHECK_EQ(rd(c, RFPGA_FAULT_CAUSE), cause);
	CHECK(untouched(0, 8 << 20));
	CHECK(untouched(LOCKS, LOCKS + 4096));
	CHECK_EQ(events_so_far(0), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_BYTES), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_DESCRIPTORS), 0);
	CHECK_EQ(rd64(c, RFPGA_FAULTS), 1);
}

static void test_fault_entry(void)
{
	struct dtp d = plain(0);

	set_entry(0, HOST_ADDR, 1 << 20, 0);
	start(&d);
	check_refused(RFPGA_FAULT_ENTRY);
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	CHECK_EQ(rd64(c, RFPGA_FAULTS), 0);
	CHECK_EQ(rd(c, RFPGA_STATUS), 0);

	set_entry(0, HOST_ADDR, 1 << 20, RFPGA_ENTRY_VALID);
	d.dst_base = (1 << 20) - 100;
	d.dst_line = 256;
	start(&d);
	check_refused(RFPGA_FAULT_ENTRY);
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), 1 << 20);
}

static void test_fault_bus(void)
{
	struct dtp d = plain(0);

	set_entry(0, HOST_ADDR + HOST_SIZE, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), HOST_ADDR + HOST_SIZE);
	/* beginning inside, ending outside */
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	set_entry(0, HOST_ADDR + HOST_SIZE - 100, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
	CHECK(untouched(HOST_SIZE - 100, HOST_SIZE));
	/* around the end of the address space */
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	set_entry(0, UINT64_MAX - 50, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
	/* mapped, but only for reading */
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	client_unmap(c, HOST_ADDR, HOST_SIZE);
	CHECK_EQ(client_map(c, HOST_ADDR, HOST_SIZE, 0, 1, host_fd), 0);
	set_entry(0, HOST_ADDR, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
}

/* What is no pair has no high word: neither of it nor for it is anything latched. */
static void test_fault_latch(void)
{
	struct dtp d = plain(0);

	d.first = 7;			/* not valid */
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_FAULTED));
	CHECK_EQ(rd(c, RFPGA_FAULT_CAUSE), RFPGA_FAULT_ENTRY);
	d.n = 1;
	start(&d);
	CHECK(EVENTUALLY(status(1) & RFPGA_DTP_FAULTED));
	CHECK_EQ(rd(c, RFPGA_FAULT_DTP), 1);
	/* the two of a pair belong together, also with others between */
	set_entry(7, 1ull << 40, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	CHECK(EVENTUALLY(status(1) & RFPGA_DTP_FAULTED));
	CHECK_EQ(rd(c, RFPGA_FAULT_ADDR), 0);
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	CHECK_EQ(rd(c, RFPGA_STOPS), 0);
	CHECK_EQ(rd(c, 0x70), 0);
	CHECK_EQ(rd(c, RFPGA_FAULT_ADDR + 4), 1 << 8);
}

/* Whoever reads another pair meanwhile, the halves of this one belong together. */
static void test_latches(void)
{
	uint32_t low, high, other;
	uint64_t before;
	struct dtp d = plain(0);

	set_entry(7, 1ull << 40, 1 << 20, RFPGA_ENTRY_VALID);
	d.first = 7;
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_FAULTED));
	CHECK_EQ(rd(c, RFPGA_FAULT_ADDR), 0);
	before = rd64(c, RFPGA_TICKS);
	low = rd(c, RFPGA_TICKS);
	other = rd(c, RFPGA_BYTES);
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	high = rd(c, RFPGA_TICKS + 4);
	CHECK_EQ(other, 0);
	CHECK((low | (uint64_t)high << 32) >= before);
	CHECK_EQ(rd(c, RFPGA_FAULT_ADDR + 4), 1 << 8);
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), 0);
}

static void test_fault_master(void)
{
	struct dtp d = plain(0);

	client_config_write(c, 4, 2, 2);
	start(&d);
	check_refused(RFPGA_FAULT_MASTER);
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), HOST_ADDR);
	/* an interrupt is a transaction too */
	client_config_write(c, 4, 6, 2);
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	d.images = 0;
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_WAITING));
	client_config_write(c, 4, 2, 2);
	give_credit(0, 1);
	CHECK(faulted(0, RFPGA_FAULT_MASTER));
}

static void test_fault_source(void)
{
	struct dtp d = plain(0);

	d.src_base = CLIENT_MEMORY - 4096 + 1;
	start(&d);
	check_refused(RFPGA_FAULT_SOURCE);
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), CLIENT_MEMORY - 128 + 1);
	/* the third image is the first that is not there: it is found when it is its turn */
	d.src_base = CLIENT_MEMORY - 2 * 4096;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_SOURCE));
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), CLIENT_MEMORY);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 2);
	CHECK(same_image(&d, 0, 1));
	/* sums that 48 bits do not hold, and 64 do not either */
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	memset(host, CANARY, 1 << 20);
	d.src_base = (1ull << 48) - 1;
	d.src_line = d.src_image = UINT32_MAX;
	d.src_y = d.src_x = INT32_MAX;
	start(&d);
	check_refused(RFPGA_FAULT_SOURCE);
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	d = plain(0);
	d.slots = INT32_MAX;
	d.first_stack = INT32_MAX - 1;
	d.dst_slot = (1ull << 48) - 1;
	start(&d);
	check_refused(RFPGA_FAULT_ENTRY);
	d = plain(0);
	d.src_base = CLIENT_MEMORY - 16 * 4096;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
}

/* The register that is told for this one: of a pair the lower word. */
static uint32_t lowest(uint32_t reg)
{
	static const uint32_t single[] = {
		RFPGA_DTP_VECTOR, RFPGA_DTP_SLOTS, RFPGA_DTP_SRC_X, RFPGA_DTP_WIDTH,
		RFPGA_DTP_DST_X, RFPGA_DTP_GROUP, RFPGA_DTP_DST_COUNT, RFPGA_DTP_LOCK_COUNT,
		RFPGA_DTP_FIRST_INDEX,
	};
	unsigned int i;

	for (i = 0; i < sizeof(single) / sizeof(single[0]); i++)
		if (reg == single[i])
			return reg;
	return reg & ~4u;
}

static void test_fault_config(void)
{
	static const struct { uint32_t reg, value; } bad[] = {
		{ RFPGA_DTP_MODE, 0x40 }, { RFPGA_DTP_VECTOR, CLIENT_VECTORS },
		{ RFPGA_DTP_PIXEL_BYTES, 0 }, { RFPGA_DTP_PIXEL_BYTES, 3 },
		{ RFPGA_DTP_PIXEL_BYTES, 16 },
		{ RFPGA_DTP_BUNCH, 0 }, { RFPGA_DTP_SLOTS, 0 }, { RFPGA_DTP_SRC_IMAGES, 0 },
		{ RFPGA_DTP_WIDTH, 0 }, { RFPGA_DTP_HEIGHT, 0 },
		{ RFPGA_DTP_SLOTS, 1u << 31 }, { RFPGA_DTP_SRC_X, 1u << 31 },
		{ RFPGA_DTP_SRC_Y, 1u << 31 }, { RFPGA_DTP_DST_X, 1u << 31 },
		{ RFPGA_DTP_DST_Y, 1u << 31 }, { RFPGA_DTP_WIDTH, 1u << 31 },
		{ RFPGA_DTP_GROUP, 0x2 }, { RFPGA_DTP_GROUP, 0x11 },
		{ RFPGA_DTP_DST_FIRST, 1024 }, { RFPGA_DTP_DST_FIRST, 0xffffffff },
		{ RFPGA_DTP_DST_COUNT, 0 }, { RFPGA_DTP_DST_COUNT, 1025 },
		{ RFPGA_DTP_LOCK_OFFSET, 32 }, { RFPGA_DTP_LOCK_COUNT, 0 },
		{ RFPGA_DTP_LOCK_FIRST, 0xffffffff },
		{ RFPGA_DTP_SRC_BASE + 4, 1 << 16 }, { RFPGA_DTP_SRC_LINE + 4, 1 },
		{ RFPGA_DTP_SRC_IMAGE + 4, 1 }, { RFPGA_DTP_DST_BASE + 4, 1 << 16 },
		{ RFPGA_DTP_DST_LINE + 4, 1 }, { RFPGA_DTP_DST_IMAGE + 4, 1 },
		{ RFPGA_DTP_DST_SLOT + 4, 1 << 16 }, { RFPGA_DTP_LOCK_OFFSET + 4, 1 << 16 },
		{ RFPGA_DTP_FIRST_STACK + 4, 1 << 16 }, { RFPGA_DTP_IMAGES + 4, 1 << 16 },
		{ RFPGA_DTP_PERIOD + 4, 1 << 16 }, { RFPGA_DTP_FIRST_SLOT, 3 },
		{ RFPGA_DTP_FIRST_INDEX, 16 }, { RFPGA_DTP_INDEX_STEP, 16 },
	};
	struct dtp d = plain(0);
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		d.slots = 3;
		program_dtp(&d);
		wr(c, RFPGA_DTP(0) + bad[i].reg, bad[i].value);
		wr(c, RFPGA_DTP(0), RFPGA_DTP_START);
		if (status(0) != RFPGA_DTP_FAULTED ||
		    rd(c, RFPGA_FAULT_CAUSE) != RFPGA_FAULT_CONFIG)
			printf("# register %#x = %#x: status %#x, cause %u\n", bad[i].reg,
			       bad[i].value, status(0), rd(c, RFPGA_FAULT_CAUSE));
		check_refused(RFPGA_FAULT_CONFIG);
		CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), RFPGA_DTP(0) + lowest(bad[i].reg));
		wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR | RFPGA_CONTROL_STOP);
	}
	/* of two the lower one is told, whichever was written first */
	program_dtp(&d);
	wr(c, RFPGA_DTP(0) + RFPGA_DTP_INDEX_STEP, 16);
	wr(c, RFPGA_DTP(0) + RFPGA_DTP_SRC_IMAGES, 0);
	wr(c, RFPGA_DTP(0) + RFPGA_DTP_SRC_BASE + 4, 1 << 16);
	wr(c, RFPGA_DTP(0), RFPGA_DTP_START);
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), RFPGA_DTP(0) + RFPGA_DTP_SRC_BASE);
}

/* What a source that goes on cannot be asked for, and where metadata cannot go. */
static void test_drop_config(void)
{
	static const struct { uint32_t reg, value; } bad[] = {
		{ RFPGA_DTP_MODE, RFPGA_MODE_DROP }, { RFPGA_DTP_PERIOD, 0 },
		{ RFPGA_DTP_META_OFFSET, 32 }, { RFPGA_DTP_META_FIRST, 1024 },
		{ RFPGA_DTP_META_COUNT, 0 }, { RFPGA_DTP_FIRST_FRAME + 4, 1 << 16 },
	};
	struct dtp d = dropping();
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		program_dtp(&d);
		wr(c, RFPGA_DTP(0) + bad[i].reg, bad[i].value);
		wr(c, RFPGA_DTP(0), RFPGA_DTP_START);
		check_refused(RFPGA_FAULT_CONFIG);
		CHECK_EQ(counter(0, RFPGA_DTP_FAULT_CAUSE), RFPGA_FAULT_CONFIG);
		CHECK_EQ(counter(0, RFPGA_DTP_FAULT_ADDR), rd64(c, RFPGA_FAULT_ADDR));
		if (bad[i].reg != RFPGA_DTP_META_COUNT)
			CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), RFPGA_DTP(0) + (bad[i].reg & ~4u));
		wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	}
	d.group = 1;
	start(&d);
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), RFPGA_DTP(0) + RFPGA_DTP_MODE);
	/* the payload is there, its metadata have no place */
	d.group = 0;
	d.meta = 4096;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), 4096);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
	/* the last fault of the board is another one's, that of the DTP stays */
	d = plain(1);
	d.first = 7;
	start(&d);
	CHECK(EVENTUALLY(status(1) & RFPGA_DTP_FAULTED));
	CHECK_EQ(counter(0, RFPGA_DTP_FAULT_ADDR), 4096);
	CHECK_EQ(counter(1, RFPGA_DTP_FAULT_ADDR), 0);
}

static void test_lock_faults(void)
{
	struct dtp d = plain(0);

	set_entry(1, HOST_ADDR + LOCKS + 8, 4096, RFPGA_ENTRY_VALID);
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	set_entry(1, HOST_ADDR + LOCKS, 32, RFPGA_ENTRY_VALID);
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	CHECK(untouched(LOCKS, LOCKS + 4096));
	CHECK_EQ(events_so_far(0), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 0);
}

static void test_stop(void)
{
	struct dtp d = plain(0), e = plain(1);
	uint64_t us, worst = 0, bytes;
	int i;

	d.mode = e.mode = RFPGA_MODE_FREERUN;
	d.width = 2048;
	d.height = 1024;
	d.src_line = d.dst_line = 4096;
	d.src_image = d.dst_image = 0;
	d.images = e.images = 0;
	for (i = 0; i < 20; i++) {
		start(&d);
		start(&e);
		CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 0));
		us = now_us();
		wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
		CHECK(EVENTUALLY(idle()));
		us = now_us() - us;
		worst = us > worst ? us : worst;
		bytes = rd64(c, RFPGA_BYTES);
		memset(host, CANARY, 4 << 20);
		usleep(500);
		CHECK_EQ(rd64(c, RFPGA_BYTES), bytes);
		CHECK(untouched(0, 4 << 20));
		CHECK_EQ(rd(c, RFPGA_STOPS), i + 1);
		CHECK_EQ(status(0) | status(1), 0);
	}
	printf("# stop to idle: at most %llu us, register access included\n",
	       (unsigned long long)worst);
	wr(c, RFPGA_DTP(0), RFPGA_DTP_STOP);	/* nothing to stop counts too */
	CHECK_EQ(rd(c, RFPGA_STOPS), 21);
}

static void test_unmap(void)
{
	struct dtp d = plain(0);
	int i;

	d.mode = RFPGA_MODE_FREERUN;
	d.images = 0;
	d.width = 2048;
	d.height = 256;
	d.src_line = d.dst_line = 4096;
	d.src_image = d.dst_image = 0;
	for (i = 0; i < 20; i++) {
		wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
		start(&d);
		CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 1));
		client_unmap(c, HOST_ADDR, HOST_SIZE);
		/* from this moment on nothing may be written */
		memset(host, CANARY, 1 << 20);
		CHECK(faulted(0, RFPGA_FAULT_BUS));
		CHECK(untouched(0, 1 << 20));
		CHECK_EQ(client_map(c, HOST_ADDR, HOST_SIZE, 0, 3, host_fd), 0);
	}
	client_unmap(c, 0x5000, 0x1000);
	/* an entry that is taken away counts at once, too */
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 1));
	wr(c, RFPGA_TABLE + RFPGA_ENTRY_CONTROL, 0);
	memset(host, CANARY, 1 << 20);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	CHECK(untouched(0, 1 << 20));
}

/* The file behind memory that is mapped gets shorter: as if nothing were there any more. */
static void test_cut_off(void)
{
	const uint64_t addr = 0xa00000000ull, size = 1 << 20;
	int fd = memfd_create("short", MFD_CLOEXEC);
	struct dtp d = plain(0);

	if (fd < 0 || ftruncate(fd, (off_t)size))
		die("memfd: %s", strerror(errno));
	CHECK_EQ(client_map(c, addr, size, 0, 3, fd), 0);
	CHECK(!ftruncate(fd, 0));
	set_entry(5, addr, size, RFPGA_ENTRY_VALID);
	d.first = 5;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), addr);
	CHECK_EQ(counter(0, RFPGA_DTP_C_BYTES), 0);
	/* a lock record */
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	set_entry(1, addr, 4096, RFPGA_ENTRY_VALID);
	d.first = 0;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), addr);
	CHECK(same_image(&d, 0, 3));
	/* nothing that was held stays so, and what is back is good */
	CHECK(!ftruncate(fd, (off_t)size));
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
	client_unmap(c, addr, size);
	close(fd);
}

static void test_reset(void)
{
	struct dtp d = plain(0);
	int how;

	memset(c->memory + CLIENT_MEMORY - 4096, 0x77, 4096);
	for (how = 0; how < 3; how++) {
		fresh();
		d.images = 0;
		d.mode = RFPGA_MODE_FREERUN;
		start(&d);
		CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 0));
		c->doorbell[1024] = 5;
		if (how == 0)
			wr(c, RFPGA_CONTROL, RFPGA_CONTROL_RESET);
		else if (how == 1)
			client_config_write(c, 0x88, 0x8000, 2);
		else
			client_reset(c);
		memset(host, CANARY, 1 << 20);
		CHECK(idle());
		CHECK(untouched(0, 1 << 20));
		CHECK_EQ(status(0), 0);
		CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
		CHECK_EQ(rd(c, RFPGA_DTP(0) + RFPGA_DTP_WIDTH), 0);
		CHECK_EQ(rd(c, RFPGA_TABLE + RFPGA_ENTRY_CONTROL), 0);
		CHECK_EQ(rd64(c, RFPGA_BYTES), 0);
		CHECK_EQ(c->doorbell[1024], 0);
		CHECK_EQ(client_config_read(c, 4) & 6, how == 0 ? 6 : 0);
		CHECK_EQ(c->memory[CLIENT_MEMORY - 1], 0x77);
	}
}

/* A DTP that writes to memory without a descriptor. */
static struct dtp remote_dtp(void)
{
	struct dtp d = plain(0);

	CHECK_EQ(client_map(c, REMOTE_ADDR, c->remote_size, 0, 3, -1), 0);
	set_entry(5, REMOTE_ADDR, c->remote_size, RFPGA_ENTRY_VALID);
	d.first = 5;
	d.mode |= RFPGA_MODE_FLUSH;
	return d;
}

static void test_messages(void)
{
	struct dtp d = remote_dtp();
	size_t i;

	memset(c->remote, CANARY, c->remote_size);
	d.width = 500000;		/* needs more than one message a line */
	d.height = 2;
	d.src_line = d.dst_line = 1000000;
	d.src_image = d.dst_image = 0;
	d.images_in_set = d.bunch = d.slots = 1;
	d.images = 1;
	c->remote_messages = 0;
	start(&d);
	for (i = 0; i < 100 && !(status(0) & RFPGA_DTP_DONE); i++)
		client_serve(c, 5);
	CHECK(c->remote_messages > 8);
	CHECK(!memcmp(c->remote, c->memory, 2000000));
	CHECK_EQ(c->remote[2000000], CANARY);
	CHECK_EQ(lock_record(0)[0], 1);
	/* the host refuses */
	c->remote_size = 4096;
	start(&d);
	for (i = 0; i < 100 && !(status(0) & RFPGA_DTP_FAULTED); i++)
		client_serve(c, 5);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	c->remote_size = 4 << 20;
}

/* Two regions that are the whole address space: as one, its size would not fit into 64 bits. */
static void test_whole_space(void)
{
	const uint64_t half = 1ull << 63;
	struct dtp d = plain(0);
	size_t i;

	client_unmap(c, 0, UINT64_MAX);
	CHECK_EQ(client_map(c, 0, half, 0, 3, -1), 0);
	CHECK_EQ(client_map(c, half, half, 0, 3, -1), 0);
	set_entry(5, 0, c->remote_size, RFPGA_ENTRY_VALID);
	d.first = 5;
	d.mode = 0;
	d.images = 1;
	memset(c->remote, CANARY, c->remote_size);
	c->remote_addr = 0;
	start(&d);
	for (i = 0; i < 100 && !(status(0) & RFPGA_DTP_DONE); i++)
		client_serve(c, 5);
	CHECK(status(0) & RFPGA_DTP_DONE);
	CHECK(!memcmp(c->remote, c->memory, 4096));
	c->remote_addr = REMOTE_ADDR;
}

static void test_mute(void)
{
	struct dtp d = remote_dtp();
	uint64_t us;

	/* no answer to a message: everything else must go on */
	c->remote_mute = true;
	d.images = 0;
	start(&d);
	client_serve(c, 20);
	CHECK_EQ(status(0) & RFPGA_DTP_RUNNING, RFPGA_DTP_RUNNING);
	client_unmap(c, REMOTE_ADDR, c->remote_size);
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(!idle());			/* it is still in flight, and says so */
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING | RFPGA_DTP_STOPPING);
	/* a request is counted when it is taken, once, whoever has not stopped yet */
	CHECK_EQ(rd(c, RFPGA_STOPS), 1);
	wr(c, RFPGA_DTP(1), RFPGA_DTP_STOP);
	CHECK_EQ(rd(c, RFPGA_STOPS), 2);
	/* START while it stops is not lost in silence */
	wr(c, RFPGA_DTP(0), RFPGA_DTP_START);
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING | RFPGA_DTP_STOPPING | RFPGA_DTP_IGNORED);
	us = now_us();
	client_reset(c);
	CHECK(now_us() - us < 500000);
	CHECK(idle());
	c->remote_mute = false;
}

static void test_round_robin(void)
{
	struct dtp d[4];
	uint64_t images[4], least, most;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		d[i] = plain(i);
		d[i].mode = RFPGA_MODE_FREERUN;
		d[i].images = 0;
		d[i].dst_base = (uint64_t)i << 20;
		start(&d[i]);
	}
	for (i = 0; i < 4; i++)
		images[i] = counter(i, RFPGA_DTP_C_IMAGES);
	/* so many that reading the counters one after another does not matter */
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) - images[0] > 20000));
	for (i = 0; i < 4; i++)
		images[i] = counter(i, RFPGA_DTP_C_IMAGES) - images[i];
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	least = most = images[0];
	for (i = 1; i < 4; i++) {
		least = images[i] < least ? images[i] : least;
		most = images[i] > most ? images[i] : most;
	}
	CHECK(least > 0 && most < 2 * least);
}

static void test_restart(void)
{
	struct dtp d = plain(0);

	d.images = 0;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
	/* while it runs its configuration does not change, and START says that it does nothing */
	wr(c, RFPGA_DTP(0) + RFPGA_DTP_WIDTH, 0);
	CHECK_EQ(rd(c, RFPGA_DTP(0) + RFPGA_DTP_WIDTH), d.width);
	CHECK_EQ(status(0) & RFPGA_DTP_IGNORED, 0);
	wr(c, RFPGA_DTP(0), RFPGA_DTP_START);
	CHECK_EQ(status(0) & RFPGA_DTP_IGNORED, RFPGA_DTP_IGNORED);
	give_credit(0, 1);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	CHECK_EQ(status(0) & RFPGA_DTP_FAULTED, 0);
	wr(c, RFPGA_DTP(0), RFPGA_DTP_STOP);
	CHECK_EQ(status(0), RFPGA_DTP_IGNORED);
	d.first_stack = 3;
	start(&d);
	CHECK_EQ(status(0) & RFPGA_DTP_IGNORED, 0);
	CHECK_EQ(c->doorbell[0], 3);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
	CHECK_EQ(lock_record(0)[0], 5);
	CHECK(same_stack(&d, 4));
}

static void test_interrupts(void)
{
	struct { uint32_t argsz, flags, index, start, count; uint8_t more[4]; } set = {
		sizeof(set), 0x21, 2, 1, 2, { 0 },	/* NONE | TRIGGER: loop back */
	};
	struct dtp d = plain(0);
	struct reply r;

	client_call(c, 8, &set, 20, NULL, 0, NULL);
	CHECK_EQ(events_so_far(0), 0);
	CHECK_EQ(events_so_far(1), 1);
	CHECK_EQ(events_so_far(2), 1);
	set.start = CLIENT_VECTORS;
	client_call(c, 8, &set, 20, NULL, 0, &r);
	CHECK_EQ(r.error, EINVAL);
	/* take vector 3 away: events to it are dropped, and not counted as sent */
	set.start = 3;
	set.count = 1;
	set.flags = 0x24;
	client_call(c, 8, &set, 20, NULL, 0, NULL);
	d.vector = 3;
	d.slots = 4;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 0);
	CHECK_EQ(events_so_far(3), 0);
	client_call(c, 8, &set, 20, &c->event[3], 1, NULL);
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK_EQ(events_so_far(3), 4);
	/* a function whose MSI-X is not enabled sends none */
	client_config_write(c, 0x42, 0, 2);
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 0);
	CHECK_EQ(events_so_far(3), 0);
	/* mask and unmask are the host's */
	set.flags = 0x9;
	client_call(c, 8, &set, 20, NULL, 0, NULL);
	set.flags = 0x11;
	client_call(c, 8, &set, 20, NULL, 0, NULL);
}

/* What SET_IRQS answers to this as the listener of vector 1: 0 or an errno. */
static uint32_t set_vector(int fd)
{
	struct { uint32_t argsz, flags, index, start, count; } set = {
		sizeof(set), 0x24, 2, 1, 1,		/* EVENTFD | TRIGGER */
	};
	struct reply r;

	client_call(c, 8, &set, sizeof(set), &fd, 1, &r);
	return r.error;
}

/* Listeners that would end or hold up the board are refused; who is signalled must not. */
static void test_listeners(void)
{
	struct { uint32_t argsz, flags, index, start, count; } set = {
		sizeof(set), 0x21, 2, 1, 1,		/* NONE | TRIGGER */
	};
	const uint64_t full = UINT64_MAX - 1;
	int ends[2], terminal = posix_openpt(O_RDWR | O_NOCTTY), event = eventfd(0, 0);

	if (pipe(ends) || event < 0)
		die("pipe, eventfd: %s", strerror(errno));
	close(ends[0]);
	CHECK_EQ(set_vector(ends[1]), EINVAL);
	CHECK_EQ(set_vector(c->fd), EINVAL);
	CHECK_EQ(set_vector(host_fd), EINVAL);
	if (terminal >= 0)
		CHECK_EQ(set_vector(terminal), EINVAL);
	client_call(c, 8, &set, sizeof(set), NULL, 0, NULL);
	CHECK_EQ(rd(c, RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(events_so_far(1), 1);			/* it was not replaced */
	/* one that blocks, and is full */
	CHECK_EQ(set_vector(event), 0);
	CHECK(write(event, &full, sizeof(full)) == sizeof(full));
	client_call(c, 8, &set, sizeof(set), NULL, 0, NULL);
	CHECK_EQ(rd(c, RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(set_vector(c->event[1]), 0);
	close(ends[1]);
	close(event);
	close(terminal);
}

/* What SET_IRQS of INTx answers: 0 or an errno. */
static uint32_t set_intx(uint32_t flags, uint32_t count, int fd)
{
	struct { uint32_t argsz, flags, index, start, count; } set = {
		sizeof(set), flags, 0, 0, count,
	};
	struct reply r;

	client_call(c, 8, &set, sizeof(set), &fd, fd >= 0, &r);
	return r.error;
}

static void fill_dataset(void)
{
	uint32_t i, x = 1;

	for (i = 0; i < CLIENT_MEMORY / 4; i++) {
		x = x * 1664525 + 1013904223;
		((uint32_t *)c->memory)[i] = x;
	}
}

static void restart_program_with(const char *option)
{
	client_disconnect(c);
	CHECK_EQ(client_end(c), 0);
	c->option = option;
	client_spawn(c, program);
	client_setup(c);
	fill_dataset();
	fresh();
}

/* A board with less: what it lacks cannot be begun, and does nothing in silence. */
static void test_small_board(void)
{
	struct dtp d = plain(0);

	restart_program_with("--entries=2");
	CHECK_EQ(RFPGA_CAPS_ENTRIES(rd(c, RFPGA_CAPS)), 2);
	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	set_entry(2, HOST_ADDR, 1 << 20, RFPGA_ENTRY_VALID);
	CHECK_EQ(rd(c, RFPGA_TABLE + 2 * RFPGA_ENTRY_STRIDE + RFPGA_ENTRY_CONTROL), 0);
	d = plain(1);
	d.count = 3;
	start(&d);
	CHECK_EQ(status(1), RFPGA_DTP_FAULTED);
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), RFPGA_DTP(1) + RFPGA_DTP_DST_COUNT);
	d.first = 2;
	start(&d);
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), RFPGA_DTP(1) + RFPGA_DTP_DST_FIRST);

	restart_program_with("--without=flush");
	CHECK_EQ(rd(c, RFPGA_FEATURES) & RFPGA_FEATURE_FLUSH, 0);
	d = plain(0);
	d.mode |= RFPGA_MODE_FLUSH;
	start(&d);
	CHECK_EQ(status(0), RFPGA_DTP_FAULTED);
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), RFPGA_DTP(0) + RFPGA_DTP_MODE);
	restart_program_with("--without=group");
	d = plain(0);
	d.group = 1;
	start(&d);
	CHECK_EQ(status(0), RFPGA_DTP_FAULTED);
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), RFPGA_DTP(0) + RFPGA_DTP_GROUP);
	restart_program_with(NULL);
}

static bool intx_status(void)
{
	return client_config_read(c, 4) & 1 << 19;
}

static uint64_t signals(int event)
{
	uint64_t n = 0;

	return read(event, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

/* One more stack, and how often INTx was signalled for it. */
static uint64_t one_intx(struct dtp *d, int event)
{
	start(d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(idle());
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 1);
	return signals(event);
}

/* A level that masks itself, and lasts until it is cleared. */
static void check_intx(int event)
{
	struct dtp d = plain(0);

	client_config_write(c, 0x42, 0, 2);		/* no MSI-X */
	d.images = d.bunch;
	CHECK(!intx_status());
	CHECK_EQ(one_intx(&d, event), 1);
	CHECK(intx_status());
	CHECK_EQ(one_intx(&d, event), 0);
	CHECK_EQ(set_intx(0x11, 1, -1), 0);		/* NONE | UNMASK */
	CHECK_EQ(signals(event), 1);
	wr(c, RFPGA_INTX, 0);
	CHECK_EQ(rd(c, RFPGA_INTX), RFPGA_INTX_PENDING);
	wr(c, RFPGA_INTX, RFPGA_INTX_PENDING);
	CHECK_EQ(rd(c, RFPGA_INTX), 0);
	CHECK(!intx_status());
	CHECK_EQ(set_intx(0x11, 1, -1), 0);
	CHECK_EQ(signals(event), 0);
	/* the command register: it is asserted, and nobody hears it */
	client_config_write(c, 4, 0x406, 2);
	CHECK_EQ(one_intx(&d, event), 0);
	CHECK(intx_status());
	client_config_write(c, 4, 0x006, 2);
	CHECK_EQ(signals(event), 1);
	wr(c, RFPGA_INTX, RFPGA_INTX_PENDING);
	CHECK_EQ(set_intx(0x09, 1, -1), 0);		/* NONE | MASK */
	CHECK_EQ(one_intx(&d, event), 0);
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK(!intx_status());
	CHECK_EQ(set_intx(0x11, 1, -1), 0);
	CHECK_EQ(signals(event), 0);
}

static void test_intx(void)
{
	struct { uint32_t argsz, flags, index, count; } info = { sizeof(info), 0, 0, 0 };
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct dtp d;
	struct reply r;

	CHECK_EQ(client_config_read(c, 0x3c) >> 8, 0);
	restart_program_with("--intx");
	CHECK_EQ(client_config_read(c, 0x3c) >> 8, 1);
	client_call(c, 7, &info, sizeof(info), NULL, 0, &r);
	memcpy(&info, r.data, sizeof(info));
	CHECK_EQ(info.count, 1);
	CHECK_EQ(info.flags, 7);
	CHECK_EQ(set_intx(0x24, 1, host_fd), EINVAL);	/* EVENTFD | TRIGGER */
	CHECK_EQ(set_intx(0x24, 1, event), 0);
	CHECK_EQ(set_intx(0x14, 1, event), EOPNOTSUPP);
	CHECK_EQ(set_intx(0x11, 2, -1), EINVAL);
	check_intx(event);
	/* with MSI-X it is silent, and the vector speaks */
	fresh();
	client_config_write(c, 0x42, 0x8000, 2);
	d = plain(0);
	d.images = d.bunch;
	CHECK_EQ(one_intx(&d, event), 0);
	CHECK(!intx_status());
	CHECK_EQ(events_so_far(d.vector), 1);
	client_config_write(c, 0x42, 0, 2);
	CHECK_EQ(set_intx(0x21, 0, -1), 0);		/* no listener any more */
	CHECK_EQ(one_intx(&d, event), 0);
	CHECK(intx_status());
	close(event);
	restart_program_with(NULL);
}

static unsigned int count_fds(pid_t pid)
{
	unsigned int n = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		die("%s: %s", path, strerror(errno));
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

struct frame {
	uint16_t id, command;
	uint32_t size, flags, error;
	uint8_t data[48];
};

/* Commands that make no sense are refused, and the connection goes on. */
static void test_bad_commands(void)
{
	static const struct { uint16_t command; uint32_t size; unsigned int fds; } bad[] = {
		{ 0, 16, 0 }, { 1, 16 + 4, 0 }, { 2, 16 + 31, 0 }, { 2, 16 + 32, 2 },
		{ 3, 16 + 23, 0 }, { 4, 16 + 16, 1 }, { 5, 16 + 11, 0 }, { 5, 16 + 32, 1 },
		{ 6, 16, 0 }, { 7, 16, 0 }, { 8, 16 + 19, 1 }, { 9, 16 + 15, 0 },
		{ 10, 16 + 15, 0 }, { 10, 16 + 48, 3 }, { 11, 32, 0 }, { 12, 32, 0 },
		{ 13, 16, 1 }, { 14, 32, 0 }, { 99, 16, 16 }, { 0xffff, 64, 0 },
	};
	unsigned int i, j, fds = count_fds(c->pid);
	int fd[16];
	struct reply r;

	for (i = 0; i < 16; i++)
		fd[i] = host_fd;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct frame f = { 7, bad[i].command, bad[i].size, 0, 0, { 0 } };

		for (j = 0; j < sizeof(f.data); j++)
			f.data[j] = (uint8_t)(0xf0 + j);
		client_send(c, &f, f.size, fd, bad[i].fds);
		CHECK(client_receive(c, &r));
		if (!r.error || count_fds(c->pid) != fds)
			printf("# command %u, %u bytes: error %u, %u descriptors\n", f.command,
			       f.size, r.error, count_fds(c->pid));
		CHECK(r.error);
		CHECK_EQ(r.size, 0);
	}
	CHECK_EQ(rd(c, RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(count_fds(c->pid), fds);
	/* ranges that wrap, memory that the file does not have */
	CHECK_EQ(client_map(c, UINT64_MAX - 4095, 8192, 0, 3, host_fd), EINVAL);
	CHECK_EQ(client_map(c, 1ull << 40, HOST_SIZE, 4096, 3, host_fd), EINVAL);
	CHECK_EQ(client_map(c, 1ull << 40, 4096, UINT64_MAX - 4095, 3, host_fd), EINVAL);
	CHECK_EQ(client_map(c, 1ull << 40, 0, 0, 3, host_fd), EINVAL);
	CHECK_EQ(client_map(c, 1ull << 40, 4096, 0, 4, host_fd), EINVAL);
	CHECK_EQ(count_fds(c->pid), fds);
}

/* After these the stream cannot be trusted: the server hangs up, and takes a new client. */
static void test_bad_streams(void)
{
	static const char narrow[] =
		"\0\0\0\0{\"capabilities\":{\"max_data_xfer_size\":63}}";
	static const struct frame bad[] = {
		{ 1, 4, 15, 0, 0, { 0 } },		/* shorter than a header */
		{ 1, 4, 0, 0, 0, { 0 } },
		{ 1, 4, 0xffffffff, 0, 0, { 0 } },
		{ 1, 4, 2 << 20, 0, 0, { 0 } },
		{ 1, 4, 16, 7, 0, { 0 } },		/* neither command nor answer */
	};
	unsigned int i, fds;
	struct reply r;
	int fd[40];

	client_disconnect(c);
	usleep(10000);
	fds = count_fds(c->pid);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		client_connect(c);
		client_send(c, &bad[i], 64, NULL, 0);
		CHECK(!client_receive(c, &r));
		close(c->fd);
	}
	/* too many descriptors */
	for (i = 0; i < 40; i++)
		fd[i] = host_fd;
	client_connect(c);
	client_send(c, &(struct frame){ 1, 4, 16, 0, 0, { 0 } }, 16, fd, 40);
	CHECK(!client_receive(c, &r));
	close(c->fd);
	/* gone in the middle of a message, with descriptors */
	client_connect(c);
	client_send(c, &(struct frame){ 1, 2, 48, 0, 0, { 0 } }, 20, fd, 2);
	close(c->fd);
	/* a command before the version */
	client_connect(c);
	client_call(c, 4, NULL, 0, NULL, 0, &r);
	CHECK_EQ(r.error, EINVAL);
	/* versions that are none */
	client_call(c, 1, "\1\0\0\0", 4, NULL, 0, &r);
	CHECK(r.error);
	client_call(c, 1, "\0\0\0\0{\"capabilities\":", 20, NULL, 0, &r);
	CHECK(r.error);
	client_call(c, 1, "\0\0\0\0[1]", 8, NULL, 0, &r);
	CHECK(r.error);
	client_call(c, 1, narrow, sizeof(narrow), NULL, 0, &r);
	CHECK_EQ(r.error, EINVAL);		/* a lock record does not fit */
	client_call(c, 1, "\0\0\0\0{\"capabilities\":[]}", 24, NULL, 0, &r);
	CHECK(!r.error);
	close(c->fd);
	usleep(10000);
	CHECK_EQ(count_fds(c->pid), fds);
	client_setup(c);
	fresh();
}

static void test_reconnect(void)
{
	struct dtp d = plain(0);
	unsigned int fds, i;

	memset(c->memory, 0x5a, 16 * 4096);
	fds = count_fds(c->pid);
	for (i = 0; i < 5; i++) {
		d.images = 0;
		d.mode = RFPGA_MODE_FREERUN;
		start(&d);
		CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 0));
		client_disconnect(c);		/* it runs */
		client_setup(c);
		CHECK(idle());
		CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
		CHECK_EQ(c->memory[0], 0x5a);	/* on-board memory stays */
		/* the memory of the last client is out of reach */
		memset(host, CANARY, 1 << 20);
		set_entry(0, HOST_ADDR, 1 << 20, RFPGA_ENTRY_VALID);
		start(&d);
		CHECK(faulted(0, RFPGA_FAULT_BUS));
		CHECK(untouched(0, 1 << 20));
		fresh();
		CHECK_EQ(count_fds(c->pid), fds);
	}
}

/* Send a command to the control socket; is this the beginning of the answer? */
static bool control(int fd, const char *command, const char *expected)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char answer[512];
	size_t have = 0;
	ssize_t n;

	if (send(fd, command, strlen(command), MSG_NOSIGNAL) < 0)
		return false;
	do {
		n = poll(&p, 1, 2000) == 1 ? read(fd, answer + have, sizeof(answer) - have) : 0;
		have += n > 0 ? (size_t)n : 0;
	} while (n > 0 && have < sizeof(answer) && answer[have - 1] != '\n');
	return have >= strlen(expected) && !memcmp(answer, expected, strlen(expected));
}

static void test_control(void)
{
	struct dtp d = plain(0);
	uint64_t events = 0;
	int fd = client_open(c->control);
	char byte;

	CHECK(control(fd, "nonsense\n", "error"));
	CHECK(control(fd, "status\r\n", "ok connected=1 faults=0 "));
	/* does not stop, and a reset helps */
	d.images = 0;
	CHECK(control(fd, "stuck on\n", "ok\n"));
	start(&d);
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	usleep(2000);
	CHECK(!idle());
	CHECK_EQ(rd(c, RFPGA_STOPS), 0);
	client_reset(c);
	CHECK(idle());
	/* so does a board that is honest, as a whole */
	fresh();
	CHECK(control(fd, "stuck on\n", "ok\n"));
	CHECK(control(fd, "honest dtp 0\n", "ok\n"));
	start(&d);
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(!idle());
	CHECK(control(fd, "honest\n", "ok\n"));
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(rd(c, RFPGA_STOPS), 1);
	/* an event that comes too early */
	fresh();
	CHECK(control(fd, "early on\n", "ok\n"));
	d.images = 4;
	start(&d);
	CHECK(wait_event(0, &events));
	CHECK(EVENTUALLY(idle() && same_stack(&d, 0)));
	CHECK(lock_record(0)[RFPGA_LOCK_TICKS / 8] + 200000 < counter(0, RFPGA_DTP_C_STOP));
	CHECK(control(fd, "early off\n", "ok\n"));
	CHECK(control(fd, "disconnect\n", "ok\n"));
	CHECK_EQ(recv(c->fd, &byte, 1, 0), 0);
	CHECK(control(fd, "status\n", "ok connected=0 "));
	/* a line without end */
	memset(host, 'x', 300);
	send(fd, host, 300, MSG_NOSIGNAL);
	CHECK(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
	client_disconnect(c);
	client_setup(c);
}

/* ------------------------- order of payload, lock record and interrupt --- */

/* Is this line answered so? The connection is there for nothing else. */
static bool obeys(const char *command, const char *expected)
{
	int fd = client_open(c->control);
	char line[64];
	bool ok;

	snprintf(line, sizeof(line), "%s\n", command);
	ok = control(fd, line, expected);
	close(fd);
	return ok;
}

static void tell(const char *command)
{
	if (!obeys(command, "ok\n")) {
		printf("# not obeyed: %s\n", command);
		failed = true;
	}
}

/* One stack, with this told; what the test sees then is what a consumer would. */
static struct dtp one_stack(uint32_t mode)
{
	struct dtp d = plain(0);

	d.mode |= mode;
	d.images = d.bunch;
	return d;
}

static bool last_image_untouched(const struct dtp *d)
{
	return same_image(d, 0, d->bunch - 2) &&
	       untouched((d->bunch - 1) * d->dst_image, d->bunch * d->dst_image);
}

static bool no_record(void)
{
	return untouched(LOCKS, LOCKS + RFPGA_LOCK_SIZE);
}

static void check_released(const struct dtp *d)
{
	CHECK_EQ(status(0) & RFPGA_DTP_RUNNING, RFPGA_DTP_RUNNING);
	tell("release");
	CHECK(EVENTUALLY(idle()));
	CHECK(same_stack(d, 0));
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	CHECK_EQ(lock_record(0)[0], 1);
	CHECK_EQ(rd64(c, RFPGA_FAULTS), 0);
}

static void test_early(void)
{
	struct dtp d = one_stack(RFPGA_MODE_FLUSH);	/* which does not help */
	uint64_t events = 0;

	tell("early lock hold");
	start(&d);
	CHECK(EVENTUALLY(lock_record(0)[0] == 1));
	CHECK(last_image_untouched(&d));
	CHECK_EQ(events_so_far(0), 0);
	check_released(&d);
	CHECK(wait_event(0, &events));

	fresh();
	tell("early interrupt hold");
	start(&d);
	CHECK(wait_event(0, &events));
	CHECK(last_image_untouched(&d) && no_record());
	check_released(&d);

	fresh();
	tell("early on hold");
	start(&d);
	CHECK(wait_event(0, &events));
	CHECK(last_image_untouched(&d));
	CHECK_EQ(lock_record(0)[0], 1);
	check_released(&d);
	CHECK_EQ(events, 3);
	CHECK_EQ(events_so_far(0), 0);

	/* what was not sent when a stop came is not sent any more */
	fresh();
	start(&d);
	CHECK(wait_event(0, &events));
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	CHECK(last_image_untouched(&d));
	CHECK_EQ(rd(c, RFPGA_STOPS), 1);
	CHECK_EQ(rd64(c, RFPGA_FAULTS), 0);
	tell("honest");
}

/* Nothing that is on its way is written when its memory is gone. */
static void check_late_refused(const struct dtp *d)
{
	start(d);
	CHECK(EVENTUALLY(lock_record(0)[0] == 1));
	client_unmap(c, HOST_ADDR, HOST_SIZE);
	tell("release");
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK(last_image_untouched(d));
}

static void test_late(void)
{
	struct dtp d = one_stack(0);
	uint64_t events = 0;

	tell("late on hold");
	start(&d);
	CHECK(wait_event(0, &events));
	CHECK(last_image_untouched(&d));
	CHECK_EQ(lock_record(0)[0], 1);
	check_released(&d);

	/* after a time */
	fresh();
	tell("late on 2000");
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK(same_stack(&d, 0));
	CHECK(counter(0, RFPGA_DTP_C_START) + 500000 <= counter(0, RFPGA_DTP_C_STOP));

	/* a stop waits for what is on its way, a reset too */
	fresh();
	tell("late on hold");
	start(&d);
	CHECK(EVENTUALLY(lock_record(0)[0] == 1));
	CHECK(last_image_untouched(&d));
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	CHECK(same_stack(&d, 0));
	CHECK_EQ(rd(c, RFPGA_STOPS), 1);
	fresh();
	start(&d);
	CHECK(EVENTUALLY(lock_record(0)[0] == 1));
	client_reset(c);
	CHECK(idle());
	CHECK(same_stack(&d, 0));
	fresh();
	check_late_refused(&d);
	tell("honest");
}

/* The flush pushes what is on its way, so that it is not late: the same, with FLUSH. */
static void test_flush(void)
{
	struct dtp d = one_stack(RFPGA_MODE_FLUSH);
	uint64_t events = 0, k;

	tell("late on hold");
	d.images = 0;
	d.slots = 1;
	start(&d);
	for (k = 0; k < 20; k++) {
		CHECK(wait_event(0, &events));
		CHECK_EQ(lock_record(0)[0], k + 1);
		CHECK(same_stack(&d, k));
		give_credit(0, (uint32_t)k + 1);
	}
	tell("honest");
}

static void serve_until(uint32_t wanted)
{
	int i;

	for (i = 0; i < 100 && !(status(0) & wanted); i++)
		client_serve(c, 5);
}

/* The same by messages, to memory that is not the lock record's. */
static void test_flush_messages(void)
{
	struct dtp d = remote_dtp();
	size_t last = 3 * 4096;
	uint64_t events = 0;
	int i;

	tell("late on hold");
	d.images = d.bunch;
	memset(c->remote, CANARY, c->remote_size);
	start(&d);
	serve_until(RFPGA_DTP_DONE);
	CHECK(wait_event(0, &events));
	CHECK(!memcmp(c->remote, c->memory, last));
	CHECK_EQ(c->remote[last], (uint8_t)c->memory[last]);

	d.mode &= ~RFPGA_MODE_FLUSH;
	memset(c->remote, CANARY, c->remote_size);
	start(&d);
	serve_until(RFPGA_DTP_DONE);
	CHECK(wait_event(0, &events));
	CHECK(!memcmp(c->remote, c->memory, last));
	CHECK_EQ(c->remote[last], CANARY);
	tell("release");
	for (i = 0; i < 100 && !idle(); i++)
		client_serve(c, 5);
	CHECK(!memcmp(c->remote, c->memory, last + 4096));
	tell("honest");
}

/*
 * @d is behind while DTP 1 sends all it has. DTPs take turns: what is due would have been sent
 * before that one is done.
 */
static void check_behind(const struct dtp *d)
{
	struct dtp other = plain(1);

	start(d);
	CHECK(EVENTUALLY(lock_record(0)[0] == 1));
	other.dst_base = 1 << 20;
	other.slots = 4;
	start(&other);
	CHECK(EVENTUALLY(status(1) == RFPGA_DTP_DONE));
	CHECK(same_stack(&other, 3));
	CHECK(last_image_untouched(d));
}

/* One that is behind holds up nobody else. */
static void test_one_dtp(void)
{
	struct dtp d = one_stack(0);

	tell("late on hold dtp 0");
	check_behind(&d);
	tell("release dtp 1");
	CHECK(last_image_untouched(&d));
	check_released(&d);
	tell("honest");
}

/* Each has a delay of its own, the longest counts, and who is told off has none. */
static void test_delays(void)
{
	struct dtp d = one_stack(0);

	tell("late on hold dtp 0");
	tell("early off dtp 0");
	tell("twice interrupt 0 dtp 0");
	check_behind(&d);
	check_released(&d);
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 2);
	tell("honest");
}

static void test_reorder(void)
{
	struct dtp d = one_stack(0);

	tell("reorder on");
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK(same_stack(&d, 0));
	CHECK_EQ(counter(0, RFPGA_DTP_C_DESCRIPTORS), d.bunch * d.height);
	/* the last line has no place: that is found before anything was written */
	fresh();
	set_entry(0, HOST_ADDR + DST, 4096 - 128, RFPGA_ENTRY_VALID);
	start(&d);
	check_refused(RFPGA_FAULT_ENTRY);
	/* lines longer than a burst */
	fresh();
	d.pixel = 8;
	d.width = 50000;
	d.height = 4;
	d.src_line = d.dst_line = 400000;
	d.src_image = d.dst_image = 0;
	d.images_in_set = d.bunch = 1;
	d.images = 1;
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK(same_stack(&d, 0));
	tell("honest");
}

/* Of the second record only the beginning is there: what is read is the first, or nothing. */
static void test_torn(void)
{
	struct dtp d = plain(0);
	struct rfpga_lock lock;
	uint64_t events = 0;

	d.slots = 4;
	d.images = 2 * d.bunch;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(rfpga_lock_read(lock_record(0), &lock));
	CHECK_EQ(lock.stacks, 2);
	while (events < 2 && wait_event(0, &events))
		;
	tell("torn on hold");
	d.first_stack = 2;
	d.images = d.bunch;
	start(&d);
	/* who believes the first word, as 1.0 said, takes a count of images that is not its own */
	CHECK(EVENTUALLY(lock_record(0)[RFPGA_LOCK_BEGUN / 8] == 3));
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_IMAGES / 8], 8);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_STACKS / 8], 2);
	CHECK(!rfpga_lock_read(lock_record(0), &lock));
	CHECK_EQ(events_so_far(0), 0);
	tell("release");
	CHECK(EVENTUALLY(idle()));
	CHECK(rfpga_lock_read(lock_record(0), &lock));
	CHECK_EQ(lock.stacks, 3);
	CHECK_EQ(lock.images, 4);
	CHECK(wait_event(0, &events));
	CHECK_EQ(events, 3);
	tell("honest");
}

/* A board whose last write is still on its way when it says that it is idle. */
static struct dtp lingering(void)
{
	struct dtp d = plain(0);

	d.images = 0;
	fresh();
	tell("linger on hold");
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_WAITING));
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	memset(host, CANARY, 1 << 20);
	return d;
}

static void test_linger(void)
{
	struct dtp d = lingering(), next;

	/* the third stack would have begun in the first slot */
	tell("release");
	CHECK(EVENTUALLY(same_image(&d, 2, 0)));
	CHECK_EQ(status(0), 0);
	/* an address that is not its own any more: it is refused, and counted */
	d = lingering();
	client_unmap(c, HOST_ADDR, HOST_SIZE);
	tell("release");
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK(untouched(0, 1 << 20));
	/* without bus mastering it comes, a reset of the function is what helps */
	d = lingering();
	client_config_write(c, 4, 2, 2);
	tell("release");
	CHECK(EVENTUALLY(same_image(&d, 2, 0)));
	lingering();
	client_config_write(c, 0x88, 0x8000, 2);
	client_config_write(c, 4, 6, 2);
	set_entry(0, HOST_ADDR + DST, 32 << 20, RFPGA_ENTRY_VALID);
	set_entry(1, HOST_ADDR + LOCKS, 4096, RFPGA_ENTRY_VALID);
	tell("release");
	next = plain(1);
	next.dst_base = 1 << 20;
	run_to(&next, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	CHECK(untouched(0, 1 << 20));
	/* a flush pushes it before RUNNING is cleared */
	fresh();
	d = plain(0);
	d.mode |= RFPGA_MODE_FLUSH;
	d.images = 0;
	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	memset(host, CANARY, 1 << 20);
	tell("release");
	next.dst_base = 2 << 20;
	run_to(&next, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	CHECK(untouched(0, 1 << 20));
	tell("honest");
}

/* The second half of the memory is gone, and nobody tells the board. */
static void test_drop(void)
{
	struct dtp d = plain(0);
	uint64_t events = 0;

	tell("drop on");
	d.slots = 4;
	client_unmap(c, HOST_ADDR + 2 * d.dst_slot, 2 * d.dst_slot);
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	while (events < 4 && wait_event(0, &events))
		;
	CHECK_EQ(events, 4);
	CHECK_EQ(rd64(c, RFPGA_FAULTS), 0);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_STACKS / 8], 4);
	CHECK(same_stack(&d, 1));
	CHECK(untouched(2 * d.dst_slot, 4 * d.dst_slot));
	/* a lock record that is dropped leaves the last one */
	client_unmap(c, HOST_ADDR + LOCKS, 4096);
	d.first_stack = 4;
	d.images = d.bunch;
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_STACKS / 8], 4);
	tell("drop off");
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	tell("honest");
}

/* As long as a reset lasts, one bit is all there is. */
static void test_resetting(void)
{
	uint64_t us;

	tell("resetting 50000");
	wr(c, RFPGA_SCRATCH, 5);
	us = now_us();
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK_EQ(rd(c, RFPGA_STATUS), RFPGA_STATUS_RESETTING);
	CHECK_EQ(rd(c, RFPGA_ID), 0);
	wr(c, RFPGA_SCRATCH, 6);
	CHECK(EVENTUALLY(!rd(c, RFPGA_STATUS)));
	CHECK(now_us() - us >= 50000);
	CHECK_EQ(rd(c, RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(rd(c, RFPGA_SCRATCH), 0);
	/* that of the function is over when it is answered */
	tell("resetting 60000000");
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK_EQ(rd(c, RFPGA_STATUS), RFPGA_STATUS_RESETTING);
	client_config_write(c, 0x88, 0x8000, 2);
	CHECK_EQ(rd(c, RFPGA_STATUS), 0);
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	tell("resetting off");
	CHECK_EQ(rd(c, RFPGA_STATUS), 0);
}

static void test_twice(void)
{
	struct dtp d = one_stack(0);
	uint64_t events = 0;

	tell("twice on hold");
	start(&d);
	CHECK(wait_event(0, &events));
	CHECK_EQ(events, 1);
	CHECK(same_stack(&d, 0));
	/* as a consumer that clears the word would */
	memset(host + LOCKS, 0, RFPGA_LOCK_SIZE);
	check_released(&d);
	CHECK(wait_event(0, &events));
	CHECK_EQ(events, 2);
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 2);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 1);

	fresh();
	tell("twice lock 0");
	d.images = 16;
	d.slots = 4;
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 4);
	CHECK_EQ(lock_record(0)[0], 4);
	CHECK(same_stack(&d, 3));
	tell("honest");
}

static void test_lose(void)
{
	struct dtp d = plain(0);

	tell("lose interrupt 3");
	d.images = 0;
	d.slots = 9;
	d.dst_slot = d.bunch * d.dst_image;
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_WAITING));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 6);
	CHECK_EQ(events_so_far(0), 6);
	CHECK_EQ(lock_record(0)[0], 9);

	fresh();
	tell("lose lock 2");
	d.images = 6 * d.bunch;
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(lock_record(0)[0], 5);
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 6);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 6);

	fresh();
	tell("lose on 1");
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK(no_record());
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 0);
	CHECK(same_stack(&d, 5));
	tell("lose off");
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(lock_record(0)[0], 6);
	tell("honest");
}

/* ------------------------------------------------- the whole board --- */

/* Interrupts of the flood, as the board counts them. */
static uint64_t flood_sent(void)
{
	int fd = client_open(c->control);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	const char *found = NULL;
	char answer[512] = "";

	if (send(fd, "status\n", 7, MSG_NOSIGNAL) == 7 && poll(&p, 1, 2000) == 1 &&
	    read(fd, answer, sizeof(answer) - 1) > 0)
		found = strstr(answer, " flood=");
	close(fd);
	CHECK(found);
	return found ? strtoull(found + 7, NULL, 10) : 0;
}

static void test_dead(void)
{
	struct dtp d = plain(0);

	d.images = 0;
	d.mode |= RFPGA_MODE_FREERUN;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 8));
	tell("dead on");
	CHECK_EQ(rd(c, RFPGA_ID), UINT32_MAX);
	CHECK_EQ(rd64(c, RFPGA_BYTES), UINT64_MAX);
	CHECK_EQ(client_config_read(c, 0), 0x52501234);
	/* it does not hear the stop, and goes on */
	wr(c, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	memset(host, CANARY, 16 * 4096);
	CHECK(EVENTUALLY(same_stack(&d, 0)));
	tell("dead off");
	CHECK_EQ(rd(c, RFPGA_ID), RFPGA_ID_VALUE);
	CHECK(!idle());
	CHECK_EQ(rd(c, RFPGA_STOPS), 0);
	/* configuration space was there all the time */
	tell("dead on");
	client_config_write(c, 4, 2, 2);
	CHECK_EQ(client_config_read(c, 4) & 0xffff, 2);
	tell("dead off");
	CHECK(faulted(0, RFPGA_FAULT_MASTER));
}

static void test_no_link(void)
{
	struct dtp d = plain(0);

	d.images = 0;
	d.mode |= RFPGA_MODE_FREERUN;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 8));
	tell("dead link");
	CHECK_EQ(rd(c, RFPGA_ID), UINT32_MAX);
	CHECK_EQ(client_config_read(c, 0), UINT32_MAX);
	/* nothing goes out any more, also if somebody says it may */
	client_config_write(c, 4, 6, 2);
	memset(host, CANARY, 16 * 4096);
	usleep(20000);
	CHECK(untouched(0, 16 * 4096));
	tell("dead off");
	CHECK_EQ(client_config_read(c, 0), 0x52501234);
	CHECK_EQ(client_config_read(c, 4) & 0xffff, 0);
	CHECK_EQ(rd(c, RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
	CHECK(idle());
}

static void test_wild(void)
{
	struct dtp d = one_stack(0);

	tell("wild 0x300000000");
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK_EQ(rd64(c, RFPGA_FAULT_ADDR), 0x300000000);
	CHECK(untouched(0, HOST_SIZE));
	/* where the bus has something, nobody refuses it */
	fresh();
	tell("wild 0x101000000 dtp 0");
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(untouched(0, 16 << 20));
	CHECK(!memcmp(host + (16 << 20), c->memory, d.bunch * d.dst_image));
	CHECK_EQ(rd64(c, RFPGA_FAULTS), 0);
	fresh();
	tell("wild off");
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(same_stack(&d, 0));
}

static void test_flood(void)
{
	uint64_t events = 0, sent, began = now_us(), lasted;

	tell("flood 1000 2");
	while (events < 50 && wait_event(2, &events))
		;
	tell("flood off");
	lasted = now_us() - began;
	sent = flood_sent();
	CHECK_EQ(events + events_so_far(2), sent);
	CHECK(sent <= lasted / 1000 + 2);
	usleep(5000);
	CHECK_EQ(events_so_far(2), 0);
	CHECK_EQ(flood_sent(), sent);
	tell("flood max 1");
	CHECK(EVENTUALLY(flood_sent() > 5000));
	CHECK(wait_event(1, &events));
	/* it needs bus mastering, and a reset ends it */
	client_config_write(c, 4, 2, 2);
	sent = flood_sent();
	usleep(5000);
	CHECK_EQ(flood_sent(), sent);
	client_config_write(c, 4, 6, 2);
	CHECK(EVENTUALLY(flood_sent() > sent));
	client_reset(c);
	client_config_write(c, 4, 6, 2);
	sent = flood_sent();
	usleep(5000);
	CHECK_EQ(flood_sent(), sent);
}

/* A flood begins when it is told, however far away the next one of the flood before was. */
static void test_floods(void)
{
	int i;

	for (i = 0; i < 8; i++)
		tell("flood 1 2");
	CHECK(EVENTUALLY(flood_sent() > 0));
	tell("flood off");
}

static void test_bad_words(void)
{
	static const char * const bad[] = {
		"early", "early perhaps", "early on 5x", "early on -1", "early on hold 5",
		"late", "late lock", "late on 99999999999", "reorder", "reorder on 5",
		"early off 5", "late off hold", "twice off 0", "twice", "lose", "lose on",
		"lose on 0", "lose lock hold", "release on",
		"honest dtp", "honest dtp 4", "honest dtp x", "honest dtp 0 1",
		"late on 1 dtp 0 dtp 1 dtp 2 dtp 3",
		"torn", "torn lock", "linger hold", "drop", "drop on 5", "resetting", "resetting on",
		"dead", "dead maybe", "dead on dtp 0", "flood", "flood on", "flood 0 1", "flood 10",
		"flood max", "flood max 4096", "flood 10 1 1", "flood 10000000 1", "wild",
		"wild x", "wild -1", "wild 1 2",
	};
	struct dtp d = one_stack(0);
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (!obeys(bad[i], "error")) {
			printf("# accepted: %s\n", bad[i]);
			failed = true;
		}
	}
	/* none of them has done anything */
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK(same_stack(&d, 0));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 1);
}

static void speed(const char *what, uint32_t width, uint32_t height, uint64_t images)
{
	struct dtp d = plain(0);
	uint64_t ticks;

	d.mode = RFPGA_MODE_FREERUN | RFPGA_MODE_LOCK;
	d.width = width;
	d.height = height;
	d.src_line = 4096;
	d.dst_line = width * 2;
	d.src_image = d.dst_image = 4 << 20;
	d.images_in_set = 4;
	d.bunch = 2;
	d.slots = 3;
	d.dst_slot = 8 << 20;
	d.images = images;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	ticks = counter(0, RFPGA_DTP_C_STOP) - counter(0, RFPGA_DTP_C_START);
	printf("# %s: %.0f MB/s, %.0f ns a descriptor\n", what,
	       (double)counter(0, RFPGA_DTP_C_BYTES) / ((double)ticks * RFPGA_TICK_NS) * 1e3,
	       (double)ticks * RFPGA_TICK_NS / (double)counter(0, RFPGA_DTP_C_DESCRIPTORS));
}

static void test_speed(void)
{
	speed("whole images, 4 MiB", 2048, 1024, 100);
	speed("lines of 1 KiB", 512, 1024, 100);
	speed("lines of 64 B", 32, 1024, 400);
}

static void test_end(void)
{
	struct dtp d = plain(0);

	/* at work, with a client */
	d.images = 0;
	d.mode = RFPGA_MODE_FREERUN;
	start(&d);
	CHECK_EQ(client_end(c), 0);
	CHECK(access(c->path, F_OK) && errno == ENOENT);
	client_disconnect(c);
	/* a socket that a dead one left behind is taken over */
	client_spawn(c, program);
	kill(c->pid, SIGKILL);
	usleep(50000);
	CHECK(!access(c->path, F_OK));
	client_spawn(c, program);
	client_setup(c);
	CHECK_EQ(rd(c, RFPGA_ID), RFPGA_ID_VALUE);
	client_disconnect(c);
	CHECK_EQ(client_end(c), 0);
}

/* What the program ends with, by itself, when it is started with these; -1: it does not. */
static int ends_with(const char *socket_path, const char *control_path, const char *memory)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		execl(program, program, "--socket", socket_path, "--control", control_path,
		      "--memory", memory, "--log", "/dev/null", NULL);
		_exit(127);
	}
	return client_wait(pid);
}

static bool has_text(const char *path, const char *text)
{
	char read_back[16] = "";
	FILE *file = fopen(path, "r");
	bool same = file && fgets(read_back, sizeof(read_back), file) &&
		    !strcmp(read_back, text);

	if (file)
		fclose(file);
	return same;
}

/* A path where something else is: it stays there, and nobody waits. Or a size that is none. */
static void test_arguments(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int busy = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), queue[8], n = 0;
	char *path = addr.sun_path, free_path[sizeof(addr.sun_path)];
	FILE *file;

	snprintf(path, sizeof(addr.sun_path), "%.90s.other", c->path);
	snprintf(free_path, sizeof(free_path), "%.90s.free", c->path);
	file = fopen(path, "w");
	if (!file || fputs("mine", file) < 0 || fclose(file))
		die("%s: %s", path, strerror(errno));
	CHECK_EQ(ends_with(path, free_path, "4K"), EXIT_FAILURE);
	CHECK(has_text(path, "mine"));
	CHECK_EQ(ends_with(free_path, path, "4K"), EXIT_FAILURE);
	CHECK(has_text(path, "mine"));
	unlink(path);
	/* not as much memory as a sum that wraps */
	CHECK_EQ(ends_with(free_path, path, "17179869185G"), EX_USAGE);
	/* somebody who is alive, and busy */
	if (bind(busy, (struct sockaddr *)&addr, sizeof(addr)) || listen(busy, 0))
		die("%s: %s", path, strerror(errno));
	do {
		queue[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	} while (!connect(queue[n++], (struct sockaddr *)&addr, sizeof(addr)) && n < 8);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(ends_with(path, free_path, "4K"), EXIT_FAILURE);
	CHECK(!access(path, F_OK));
	while (n)
		close(queue[--n]);
	close(busy);
	unlink(path);
}

static const struct { const char *name; void (*run)(void); } tests[] = {
	{ "identity, capabilities, BAR sizes", test_identity },
	{ "ticks of 4 ns", test_clock },
	{ "region of interest and strides", test_roi },
	{ "pixels of 1, 2, 4 and 8 bytes", test_pixel_sizes },
	{ "a line may cross table entries", test_entries },
	{ "memory that was mapped in pieces", test_pieces },
	{ "lines and images longer than a burst", test_big_lines },
	{ "never more than SLOTS ahead of the credit", test_credit },
	{ "credit wraps at 32 bits", test_credit_wraps },
	{ "credit of the run before", test_stale_credit },
	{ "a last stack that is not full", test_last_stack },
	{ "free-running: period and overruns", test_freerun },
	{ "free-running: what has no slot is dropped", test_drop_stacks },
	{ "refused: dropping, metadata", test_drop_config },
	{ "sampling", test_sampling },
	{ "one event for a group", test_group },
	{ "a group does not count strangers", test_group_strangers },
	{ "a group begins anew", test_group_again },
	{ "lock records", test_lock },
	{ "refused: entries", test_fault_entry },
	{ "refused: bus addresses", test_fault_bus },
	{ "refused: who and why, latched by nobody else", test_fault_latch },
	{ "two readers of two pairs", test_latches },
	{ "refused: bus mastering is off", test_fault_master },
	{ "refused: source", test_fault_source },
	{ "refused: configuration", test_fault_config },
	{ "refused: lock records", test_lock_faults },
	{ "stop, and then silence", test_stop },
	{ "memory taken away while it is written", test_unmap },
	{ "memory whose file was cut off", test_cut_off },
	{ "reset by register, FLR and message", test_reset },
	{ "DMA by messages", test_messages },
	{ "all addresses in two regions", test_whole_space },
	{ "a host that does not answer", test_mute },
	{ "DTPs take turns", test_round_robin },
	{ "start, stop and resume", test_restart },
	{ "interrupt vectors", test_interrupts },
	{ "listeners that are none", test_listeners },
	{ "INTx, where it was asked for", test_intx },
	{ "fewer entries, fewer features", test_small_board },
	{ "commands that make no sense", test_bad_commands },
	{ "streams that make no sense", test_bad_streams },
	{ "the client comes back", test_reconnect },
	{ "faults by the control socket", test_control },
	{ "misbehave: an event before its image", test_early },
	{ "misbehave: an image after its event", test_late },
	{ "misbehave: a flush pushes the image", test_flush },
	{ "misbehave: a flush pushes messages", test_flush_messages },
	{ "misbehave: one of several DTPs", test_one_dtp },
	{ "misbehave: one delay does not change another", test_delays },
	{ "misbehave: lines in another order", test_reorder },
	{ "misbehave: events twice", test_twice },
	{ "misbehave: events that are lost", test_lose },
	{ "misbehave: a torn lock record", test_torn },
	{ "misbehave: a write after \"idle\"", test_linger },
	{ "misbehave: posted writes that vanish", test_drop },
	{ "a reset that takes its time", test_resetting },
	{ "the board answers all ones, and goes on", test_dead },
	{ "the board has lost its link", test_no_link },
	{ "misbehave: a wrong bus address", test_wild },
	{ "a flood of interrupts", test_flood },
	{ "a flood after another one", test_floods },
	{ "misbehave: words that make no sense", test_bad_words },
	{ "speed", test_speed },
	{ "paths where something else is, a size that is none", test_arguments },
	{ "the end, and another beginning", test_end },
};

static void prepare(char *folder)
{
	if (!mkdtemp(folder))
		die("%s: %s", folder, strerror(errno));
	snprintf(c->path, sizeof(c->path), "%s/socket", folder);
	snprintf(c->control, sizeof(c->control), "%s/control", folder);
	host_fd = memfd_create("host", MFD_CLOEXEC);
	if (host_fd < 0 || ftruncate(host_fd, HOST_SIZE))
		die("memfd: %s", strerror(errno));
	host = mmap(NULL, HOST_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, host_fd, 0);
	if (host == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	c->remote_addr = REMOTE_ADDR;
	c->remote_size = 4 << 20;
	c->remote = malloc(c->remote_size);
	client_spawn(c, program);
	client_setup(c);
	fill_dataset();
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/rashpa-fpga-selftest.XXXXXX";
	const unsigned int count = sizeof(tests) / sizeof(tests[0]);
	char beside[4096];

	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(beside, sizeof(beside), "%.*s", (int)(strlen(argv[0]) - strlen("-selftest")),
		 argv[0]);
	program = argc > 1 ? argv[1] : beside;
	printf("1..%u\n", count);
	prepare(folder);
	while (test_number < count) {
		failed = false;
		fresh();
		tests[test_number].run();
		test_failed += failed;
		printf("%s %u - %s\n", failed ? "not ok" : "ok", test_number + 1,
		       tests[test_number].name);
		test_number++;
	}
	rmdir(folder);
	free(c->remote);
	return test_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
