// SPDX-License-Identifier: LGPL-2.1-or-later
/* Boards that fetch addresses: each format, and invalid descriptors. */
#include "fpga/tests/selftest.h"

#include <stdio.h>
#include <string.h>

#define RING	(56u << 20)	/* in host memory */
#define SEGMENT	8192u		/* bytes of a segment; segments are shuffled */
#define N	64u		/* segments: 512 KiB, two slots of plain() */

/* Offset of segment @i of the destination. */
static uint64_t place(uint32_t i)
{
	return HOST_ADDR + (i ^ 5u) * SEGMENT;
}

static void put(uint64_t at, uint64_t value, unsigned int bytes)
{
	memcpy(host + at, &value, bytes);
}

static void put_array(uint32_t i)
{
	const uint64_t at = RING + i * RFPGA_ARRAY_SIZE;

	put(at + RFPGA_ARRAY_ADDR, place(i), 8);
	put(at + RFPGA_ARRAY_LEN, SEGMENT, 4);
	put(at + RFPGA_ARRAY_FLAGS, RFPGA_ARRAY_VALID | (i == N - 1 ? RFPGA_ARRAY_LAST : 0), 4);
}

/* Descriptors of a chain may be anywhere, in any order. */
static uint64_t link_at(uint32_t i)
{
	return RING + i * 37 % N * 4096u;
}

static void put_chain(uint32_t i)
{
	const uint64_t at = link_at(i);

	put(at + RFPGA_CHAIN_CONTROL, RFPGA_CHAIN_MAGIC << 16, 4);
	put(at + RFPGA_CHAIN_LEN, SEGMENT, 4);
	put(at + RFPGA_CHAIN_SUM, (uint64_t)i * SEGMENT, 8);
	put(at + RFPGA_CHAIN_ADDR, place(i), 8);
	put(at + RFPGA_CHAIN_NEXT, HOST_ADDR + link_at((i + 1) % N), 8);
}

static void put_packed(uint32_t i)
{
	put(RING + i * RFPGA_PACKED_SIZE, place(i) | (SEGMENT / 4096 - 1) << 1 | 1, 8);
}

static void set_ring(uint64_t base, uint32_t count, uint32_t tail)
{
	wr64(RFPGA_TABLE + RFPGA_FETCH_BASE, base);
	wr(RFPGA_TABLE + RFPGA_FETCH_COUNT, count);
	wr(RFPGA_TABLE + RFPGA_FETCH_TAIL, tail);
	wr(RFPGA_TABLE + RFPGA_FETCH_CONTROL, RFPGA_FETCH_VALID);
}

static uint32_t why(void)
{
	return rd(RFPGA_TABLE + RFPGA_FETCH_STATUS);
}

/* Stream 512 KiB of images, with several wraps. */
static struct dtp rounds(void)
{
	struct dtp d = plain(0);

	d.mode = RFPGA_MODE_FREERUN;
	d.slots = N * SEGMENT / (uint32_t)d.dst_slot;
	d.images = 4ull * d.slots * d.bunch;
	return d;
}

/* Each image is at the addresses of the descriptors. */
static bool arrived(const struct dtp *d)
{
	uint64_t at, n;

	for (n = 0; n < (uint64_t)d->slots * d->bunch; n++)
		for (at = n * d->dst_image; at < (n + 1) * d->dst_image; at += 4096)
			if (memcmp(host + (place((uint32_t)(at / SEGMENT)) - HOST_ADDR) +
				   at % SEGMENT,
				   dataset + n % d->images_in_set * board.image + at % d->dst_image,
				   4096))
				return false;
	return true;
}

static void faults(const struct dtp *d, uint32_t cause, uint32_t because)
{
	start(d);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(counter(0, RFPGA_DTP_FAULT_CAUSE), cause);
	CHECK_EQ(why(), because);
}

static void streams(const char *option, void (*put_one)(uint32_t i), uint64_t base)
{
	struct dtp d;

	restart_program_with(option);
	CHECK(rd(RFPGA_FEATURES) & RFPGA_FEATURE_FETCH);
	for (uint32_t i = 0; i < N; i++)
		put_one(i);
	set_ring(HOST_ADDR + base, N, N);
	d = rounds();
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(arrived(&d));
	CHECK(rd(RFPGA_TABLE + RFPGA_FETCH_FETCHED) >= 4 * N);
	/* up to the tail */
	set_ring(HOST_ADDR + base, N, N - 1);
	faults(&d, RFPGA_FAULT_ENTRY, 0);
	CHECK_EQ(counter(0, RFPGA_DTP_FAULT_ADDR), (N - 1) * SEGMENT);
	/* a linear space may use only one ring */
	set_ring(HOST_ADDR + base, N, N);
	d.count = 2;
	faults(&d, RFPGA_FAULT_CONFIG, 0);
	d.count = 1;
	tell("poison on");
	faults(&d, RFPGA_FAULT_BUS, RFPGA_FETCH_POISON);
	CHECK_EQ(counter(0, RFPGA_DTP_FAULT_ADDR), HOST_ADDR + base);
	tell("poison off");
	set_ring(HOST_ADDR + base, N, N);
	run_to(&d, RFPGA_DTP_DONE);
	set_ring(HOST_ADDR + HOST_SIZE, N, N);
	faults(&d, RFPGA_FAULT_BUS, RFPGA_FETCH_REFUSED);
	wr(RFPGA_TABLE + RFPGA_FETCH_CONTROL, 0);
	faults(&d, RFPGA_FAULT_ENTRY, RFPGA_FETCH_REFUSED);
}

static void test_array(void)
{
	struct dtp d = rounds();

	streams("--fetch=array", put_array, RING);
	/* an invalid length is a fault only in its turn; so is a flag that ends the stream */
	set_ring(HOST_ADDR + RING, N, N);
	put(RING + 40 * RFPGA_ARRAY_SIZE + RFPGA_ARRAY_LEN, SEGMENT + 1, 4);
	faults(&d, RFPGA_FAULT_DESC, RFPGA_FETCH_INVALID);
	CHECK_EQ(counter(0, RFPGA_DTP_FAULT_ADDR), HOST_ADDR + RING + 40 * RFPGA_ARRAY_SIZE);
	put_array(40);
	put(RING + 20 * RFPGA_ARRAY_SIZE + RFPGA_ARRAY_FLAGS,
	    RFPGA_ARRAY_VALID | RFPGA_ARRAY_LAST, 4);
	set_ring(HOST_ADDR + RING, N, N);
	faults(&d, RFPGA_FAULT_ENTRY, 0);
	CHECK_EQ(counter(0, RFPGA_DTP_FAULT_ADDR), 21 * SEGMENT);
	CHECK_EQ(config_read(0), RFPGA_PCI_FETCH_ARRAY << 16 | RFPGA_PCI_VENDOR);
	restart_program_with(NULL);
}

static void test_chain(void)
{
	struct dtp d = rounds();

	streams("--fetch=chain", put_chain, link_at(0));
	put(link_at(9) + RFPGA_CHAIN_SUM, 0, 8);
	set_ring(HOST_ADDR + link_at(0), N, N);
	faults(&d, RFPGA_FAULT_DESC, RFPGA_FETCH_INVALID);
	restart_program_with(NULL);
}

static void test_packed(void)
{
	struct dtp d = rounds();

	streams("--fetch=packed", put_packed, RING);
	put(RING, place(0), 8);
	set_ring(HOST_ADDR + RING, N, N);
	faults(&d, RFPGA_FAULT_DESC, RFPGA_FETCH_INVALID);
	restart_program_with(NULL);
}

static const struct test list[] = {
	{ "array", "addresses are fetched from an array of descriptors", test_array },
	{ "chain", "from a chain with descriptors anywhere", test_chain },
	{ "packed", "from words with flags in the address", test_packed },
};

const struct suite fetch_suite = SUITE("fetch", list);
