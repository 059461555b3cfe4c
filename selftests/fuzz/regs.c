// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The registers of the software FPGA, written and read at random by a guest that owns it:
 * regs [SEED [SECONDS]]. The table leads to one of three buffers. With any content of the
 * registers, the other two must not change, the board must obey STOP, and after a reset it must
 * stream as before.
 */
#include <inttypes.h>

#include "common/words.h"
#include "../lib/rig.h"
#include "fuzz.h"

#define PAGES	32		/* pages of each buffer */
#define SIZE	(PAGES * PAGE)
#define ROUND	400		/* steps between two checks of the guards */
#define ROUNDS	4		/* between two resets */

static struct fpga fpga;
static uint64_t seed = 1, seconds = 3, steps, streams;
static char *regs, *doorbell, *guard[2];
static struct rng rng;

static bool guards_hold(void)
{
	return filled(guard[0], SIZE, 11) && filled(guard[1], SIZE, 12);
}

/* ------------------------------------------------------------- access ---- */

/* Any width, any place, also across the words. */
static void access_any(char *window, size_t size)
{
	uint32_t width = 1u << below(&rng, 4);
	char *at = window + rng_next(&rng) % (size - 8);

	if (!one_in(&rng, 4))
		at = (char *)((uintptr_t)at & -(uintptr_t)width);
	if (one_in(&rng, 2))
		word_read(at, width);
	else
		word_write(at, odd_number(&rng), width);
}

/* One register of a DTP: mostly what makes a stream go on, at the edge of its memory. */
static void change_dtp(void)
{
	char *d = regs + RFPGA_DTP(below(&rng, 8));
	uint32_t at = RFPGA_DTP_MODE + 4 * below(&rng, (RFPGA_DTP_RUN + 4) / 4 - 2);
	uint64_t small = below(&rng, 4) << below(&rng, 14);

	set32(d, at, (uint32_t)(one_in(&rng, 4) ? odd_number(&rng) : small));
}

/* An entry that begins near what is mapped and is as long as it likes. */
static void change_table(void)
{
	uint32_t entry = RFPGA_TABLE + RFPGA_ENTRY_STRIDE * below(&rng, one_in(&rng, 4) ? 1024 : 8);
	uint64_t address = reg64(regs, RFPGA_TABLE + RFPGA_ENTRY_ADDR);

	if (one_in(&rng, 2))
		address += (below(&rng, 2 * PAGES) - (uint64_t)PAGES) * PICK(&rng, PAGE, 64);
	if (one_in(&rng, 4))
		address = odd_number(&rng);
	/* entry 0 is where the address is known from */
	if (entry != RFPGA_TABLE)
		set64(regs, entry + RFPGA_ENTRY_ADDR, address);
	set64(regs, entry + RFPGA_ENTRY_LEN,
	      one_in(&rng, 2) ? below(&rng, 64) * PAGE : odd_number(&rng));
	/* mostly the first entry of a space, or the next one of a space with entries of a page */
	set64(regs, entry + RFPGA_ENTRY_SUM,
	      one_in(&rng, 2) ? below(&rng, 8) * PAGE : one_in(&rng, 2) ? 0 : odd_number(&rng));
	set32(regs, entry + RFPGA_ENTRY_CONTROL, !one_in(&rng, 4));
}

static void any_step(const struct rig *r)
{
	uint32_t n = below(&rng, 8);

	switch (below(&rng, 8)) {
	case 0:
		access_any(regs, RFPGA_BAR_REGS_SIZE);
		break;
	case 1:
		access_any(doorbell, RFPGA_BAR_DOORBELL_SIZE);
		break;
	case 2:
		change_table();
		break;
	case 3:
		/* something that works, to be bent by what follows */
		rig_configure(r, n, below(&rng, 16), below(&rng, 8), 1 + below(&rng, 8),
			      below(&rng, 4));
		break;
	case 4:
	case 5:
		change_dtp();
		break;
	case 6:
		if (one_in(&rng, 4))
			set32(regs, RFPGA_GROUP_START, below(&rng, 256));
		else if (one_in(&rng, 8))
			set32(regs, RFPGA_BOUNDS + n * RFPGA_BOUNDS_STRIDE +
			      PICK(&rng, RFPGA_BOUNDS_FIRST, RFPGA_BOUNDS_LIMIT),
			      PICK(&rng, 0, 1, below(&rng, 16), 1024));
		else
			set32(regs + RFPGA_DTP(n), RFPGA_DTP_CONTROL,
			      one_in(&rng, 4) ? RFPGA_DTP_STOP : RFPGA_DTP_START);
		break;
	default:
		set32(doorbell, n * RFPGA_DOORBELL_PAGE, (uint32_t)odd_number(&rng));
	}
}

/* -------------------------------------------------------------- tests ---- */

static bool known_good_stream(void)
{
	struct rig r;
	bool ok = false;

	rig_up(&r, &fpga, -1, 0, 0);
	rig_configure(&r, 0, RFPGA_MODE_MSIX | RFPGA_MODE_FLUSH, 0, r.made.out_segments,
		      IMAGES);
	rig_start(&r, 0);
	ok = CHECK(rig_wait_bytes(&r, 0, IMAGES * IMAGE), "the stream stopped half-way") &&
	     CHECK(filled(r.memory, IMAGES * IMAGE, SEED), "wrong data after a reset");
	rig_down(&r);
	streams += ok;
	return ok;
}

/* From a reset to the next one. */
static bool one_life(int memory_fd)
{
	struct rashpa_map_make map = { HEAD(map), .fd = memory_fd };
	struct rashpa_quiesce quiesce = { HEAD(quiesce) };
	struct rashpa_reset reset = { HEAD(reset) };
	struct rig r = { .fpga = &fpga, .regs = regs };
	int window = fpga_window(&fpga, RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0), i, j;
	bool ok;

	ok = CHECK(window >= 0, "%s", reason) &&
	     ANSWERED(call(fpga.fd, RASHPA_IOC_MAP_MAKE, &map), 0, NULL) &&
	     ANSWERED(fpga_program(map.out_fd, 0, NULL), 0, NULL);
	for (i = 0; ok && i < ROUNDS; i++) {
		for (j = 0; j < ROUND; j++, steps++)
			any_step(&r);
		ok = CHECK(guards_hold(), "a buffer that is not mapped was written") &&
		     CHECK(reg32(regs, RFPGA_ID) == RFPGA_ID_VALUE, "the board does not answer");
	}
	ok &= ANSWERED(call(fpga.fd, RASHPA_IOC_QUIESCE, &quiesce), 0, NULL);
	ok &= CHECK(!(reg32(regs, RFPGA_STATUS) & RFPGA_STATUS_BUSY), "busy after quiesce");
	ok &= ANSWERED(call(fpga.fd, RASHPA_IOC_RESET, &reset), 0, NULL);
	ok &= CHECK(guards_hold(), "a buffer that is not mapped was written");
	if (map.out_fd > 0)
		close(map.out_fd);
	if (window >= 0)
		close(window);
	return ok && known_good_stream();
}

/* fd of a buffer; those that follow one another are neighbours, mostly. */
static int guard_alloc(unsigned int n)
{
	int fd = buffer_alloc(SIZE, NULL);

	guard[n] = fd >= 0 ? map_fd(fd, SIZE) : NULL;
	if (guard[n])
		fill(guard[n], SIZE, 11 + n);
	return fd;
}

TEST(registers, "random registers")
{
	int regs_fd, doorbell_fd, fd[3];
	uint64_t end = now_ns() + seconds * 1000000000ULL;
	unsigned int i;

	SKIP_IF(!getenv("RASHPA_IOMMU") || strcmp(getenv("RASHPA_IOMMU"), "on"),
		"without an IOMMU a wrong table entry reaches any memory");
	rig_load(&fpga);
	regs_fd = fpga_window(&fpga, RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
	doorbell_fd = fpga_window(&fpga, RFPGA_BAR_DOORBELL, 0, RFPGA_BAR_DOORBELL_SIZE, 0);
	fd[0] = guard_alloc(0);
	fd[1] = buffer_alloc(SIZE, NULL);
	fd[2] = guard_alloc(1);
	REQUIRE(regs_fd >= 0 && doorbell_fd >= 0 && fd[1] >= 0 && guard[0] && guard[1], "%s",
		reason);
	regs = map_fd(regs_fd, RFPGA_BAR_REGS_SIZE);
	doorbell = map_fd(doorbell_fd, RFPGA_BAR_DOORBELL_SIZE);
	REQUIRE(regs && doorbell, "not mapped");
	rng.state = seed;
	while (one_life(fd[1]) && now_ns() < end)
		tap_note("%" PRIu64 " steps", steps);
	munmap(regs, RFPGA_BAR_REGS_SIZE);
	munmap(doorbell, RFPGA_BAR_DOORBELL_SIZE);
	for (i = 0; i < 2; i++)
		munmap(guard[i], SIZE);
	for (i = 0; i < 3; i++)
		close(fd[i]);
	close(regs_fd);
	close(doorbell_fd);
	tap_note("{\"seed\": %" PRIu64 ", \"steps\": %" PRIu64 ", \"streams\": %" PRIu64 "}", seed,
		 steps, streams);
}

void setup(void)
{
	fpga_need(&fpga);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		seconds = strtoull(argv[2], NULL, 0);
	return tap_main(1, argv);
}
