// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: needs=engines iommu=on seconds=10 */
/*
 * Words that an engine of others writes: XDMA's number of completed descriptors is a part of a word of 32
 * bits, wherever it lies. A source takes it as it is.
 */
#include "common.h"

#define BAR		0x10000
#define CONTROL		0x1004
#define STATUS		0x1040
#define WRITE_BACK	0x1088
#define FIRST		0x5080
#define RUN		1u
#define ON_COMPLETED	(1u << 2)
#define COUNT_BACK	(1u << 26)
#define STOP		(1u << 0)
#define COMPLETED	(1u << 1)
#define MAGIC		0xad4b0000u

#define WORD		(RASHPA_LOCK_SLOT + 12)	/* offset in the lock memory */
#define DESCRIPTORS	4u
#define MASK		0xffffffu

struct descriptor { uint32_t flags, length; u64 source, destination, next; };

static struct fpga f;

static u64 address_of(int fd, struct rashpa_map_make *map)
{
	const struct rashpa_table *table;
	u64 address;

	if (fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, map) < 0)
		tap_bail("map: %s", reason);
	table = table_of(map);
	address = table->segment[0].address;
	munmap((void *)table, map->out_table_size);
	return address;
}

TEST(word, "a number in a part of a word, at any offset, is a source of events")
{
	static const struct rashpa_profile_step steps[] = {
		{ .op = RASHPA_STEP_WRITE, .offset = CONTROL + 8, .value = RUN, .mask = ~0U },
		{ .op = RASHPA_STEP_WAIT, .offset = STATUS, .mask = RUN, .timeout_us = 500000 },
	};
	struct rashpa_profile_set p = { HEAD(p), STEPS(steps), .dma_bits = 64 };
	struct rashpa_map_make buffer_map, lock_map;
	struct rashpa_source_add add;
	struct rashpa_alloc lock;
	struct descriptor *d;
	struct rashpa_event e;
	int fd, channel, window;
	uint32_t *words;
	u64 buffer, at, last = 0;
	unsigned int i;
	char *regs;

	SKIP_IF(!function_open(&f, 0x1234, 0x5257, 0), "no model of XDMA");
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	fd = buffer_alloc((DESCRIPTORS + 1) * PAGE, NULL);
	ANSWERED(lock_alloc(2, NULL, &lock), 0, NULL);
	buffer = address_of(fd, &buffer_map);
	at = address_of(lock.out_fd, &lock_map) + WORD;
	words = map_fd(lock.out_fd, PAGE);
	d = map_fd(fd, (DESCRIPTORS + 1) * PAGE);
	for (i = 0; i < DESCRIPTORS; i++)
		d[i] = (struct descriptor) {
			.flags = MAGIC | COMPLETED | (i == DESCRIPTORS - 1 ? STOP : 0),
			.length = PAGE, .destination = buffer + (i + 1) * PAGE,
			.next = buffer + (i + 1) * sizeof(*d),
		};
	channel = fpga_events(&f, 0);
	fcntl(channel, F_SETFL, O_NONBLOCK);
	add = word_source(lock.out_fd, RASHPA_SOURCE_POLL | RASHPA_SOURCE_COUNTER);
	add.bits = 32;
	add.mask = MASK;
	add.offset = WORD;
	add.period_us = 1000;
	ANSWERED(call(channel, RASHPA_IOC_SOURCE_ADD, &add), 0, NULL);
	/* bits outside of the mask are no event */
	words[WORD / 4] = ~MASK;

	window = fpga_window(&f, 0, 0, BAR, 0);
	regs = map_fd(window, BAR);
	set64(regs, WRITE_BACK, at);
	set64(regs, FIRST, buffer);
	set32(regs, CONTROL, RUN | ON_COMPLETED | COUNT_BACK);
	while (last < DESCRIPTORS && CHECK(wait_fd(channel, POLLIN, 5000), "no event after %llu", last))
		while (next_event(channel, &e)) {
			CHECK(e.value > last && e.value <= DESCRIPTORS, "%llu after %llu", e.value, last);
			last = e.value;
		}
	CHECK(words[WORD / 4] == DESCRIPTORS, "the word is 0x%x", words[WORD / 4]);
	for (i = 0; i < DESCRIPTORS; i++)
		CHECK(((uint16_t *)d)[(i + 2) * PAGE / 2 - 1] == i, "page %u", i);
	unmap_fd(regs, BAR, window);
	close(channel);
	close(buffer_map.out_fd);
	close(lock_map.out_fd);
	unmap_fd(d, (DESCRIPTORS + 1) * PAGE, fd);
	unmap_fd(words, PAGE, lock.out_fd);
	fpga_close(&f);
	CHECK(!fpga_unbind(&f), "it cannot be unbound");
}

void setup(void)
{
}
