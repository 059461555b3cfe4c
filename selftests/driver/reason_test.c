// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * If an address does not fit, PROGRAM's reason for boards that fetch addresses does not show it.
 * test: tier=check iommu=both needs=fetch seconds=1
 */
#include "rig.h"

static struct fpga f;

#define FIELD(_kind, _offset, _bits, _shift, _width, ...) \
	{ .kind = RASHPA_FETCH_##_kind, .offset = _offset, .bits = _bits, .shift = _shift, \
	  .width = _width, __VA_ARGS__ }

/* A chain with the bits of its fields: the address, the next descriptor, the ring's register. */
static int profile(uint32_t address, uint32_t next, uint32_t ring)
{
	struct rashpa_fetch_field fields[] = {
		FIELD(LENGTH, 4, 32, 0, 28), FIELD(ADDRESS, 16, 64, 0, address),
		FIELD(NEXT, 24, 64, 0, next),
	}, registers[] = {
		FIELD(ADDRESS, RFPGA_FETCH_BASE, 64, 0, ring),
		FIELD(COUNT, RFPGA_FETCH_COUNT, 32, 0, 32),
	};
	struct rashpa_fetch fetch = {
		.stride = RFPGA_ENTRY_STRIDE, .descriptor_size = RFPGA_CHAIN_SIZE,
		.fields = (uintptr_t)fields, .n_fields = ARRAY_SIZE(fields),
		.field_size = sizeof(fields[0]),
		.registers = (uintptr_t)registers, .n_registers = ARRAY_SIZE(registers),
		.register_size = sizeof(registers[0]),
	};
	struct rashpa_profile_table table = {
		.bar = RFPGA_BAR_REGS, .offset = RFPGA_TABLE, .length = RFPGA_TABLE_SIZE,
		.fetch = (uintptr_t)&fetch,
		.fetch_size = sizeof(fetch),
	};
	struct rashpa_profile_set p = { HEAD(p), STEPS(fpga_stop), TABLE(table), .dma_bits = 64 };

	p.head.flags = RASHPA_PROFILE_NO_RESET;
	return call(f.fd, RASHPA_IOC_PROFILE_SET, &p);
}

/* As a member, who gets the reason, but no address. */
static void program(void *arg)
{
	struct rashpa_map_make m = { HEAD(m), .fd = *(int *)arg, .max_segment = PAGE };
	struct rashpa_program p = { HEAD(p) };

	drop_privileges();
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL);
	ANSWERED(call(m.out_fd, RASHPA_IOC_PROGRAM, &p), EOVERFLOW, "address|wider");
	CHECK(!strstr(reason, "0x"), "\"%s\" has a number", reason);
	close(m.out_fd);
}

static void test_of(uint32_t address, uint32_t next, uint32_t ring)
{
	int fd = buffer_alloc(4 * PAGE, NULL);

	if (ANSWERED(profile(address, next, ring), 0, NULL))
		tap_fork(program, &fd);
	close(fd);
}

TEST(address, "the address of a segment is not shown")
{
	test_of(12, 64, 64);
}

TEST(next, "the address of the next descriptor is not shown")
{
	test_of(64, 12, 64);
}

TEST(ring, "the address of the ring is not shown")
{
	test_of(64, 64, 12);
}

void setup(void)
{
	if (!function_open(&f, RFPGA_PCI_VENDOR, RFPGA_PCI_FETCH_CHAIN, 0))
		tap_skip_all("no board that fetches");
	fpga_watch(&f);
}
