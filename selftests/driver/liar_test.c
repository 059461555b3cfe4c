// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=each,debug iommu=both seconds=15 */
/*
 * Exporters that lie, and exporters that take their memory back: rashpa_liar.ko does both
 * on request. The driver refuses lies, and stops writes to memory that is taken back. It waits
 * for exporters that need time.
 */
#include "foreign.h"

#define REVOKE_ROUNDS	tap_times(40, 300)	/* enough to meet in every step */
#define STREAM_ROUNDS	tap_times(12, 60)	/* some end in a reset, after half a second */

static struct fpga f, f2;
static bool have_f2, iommu;
static uint32_t bdf2;	/* of f2 */
static char *regs;	/* of f: BAR 0; its window stays when everything else goes */

/* ---------------------------------------------------------- exporter ---- */

static struct rashpa_liar_export lie(uint32_t kind)
{
	return liar_memory(RASHPA_LIAR_MOVABLE, kind, have_f2 ? &f2 : NULL);
}

static int export_kind(uint32_t kind)
{
	struct rashpa_liar_export arg = lie(kind);

	return liar_export(&arg);
}

static void take_back(int fd)
{
	struct rashpa_liar_state s = liar_tell(RASHPA_LIAR_REVOKE, fd, 0);

	CHECK(!s.out_mapped, "%u mappings outlive their revocation", s.out_mapped);
}

static void allow(int fd, uint32_t kind)
{
	liar_tell(RASHPA_LIAR_ALLOW, fd, kind);
}

/* --------------------------------------------------------------- maps --- */

static int make(struct rashpa_map_make *map)
{
	return call(f.fd, RASHPA_IOC_MAP_MAKE, map);
}

/* The test ends where it fails. */
static void made(struct rashpa_map_make *map)
{
	if (make(map))
		tap_bail("MAP: %s", reason);
}

static int restore(int map, struct rashpa_restore *r)
{
	*r = (struct rashpa_restore) { HEAD(*r) };
	return call(map, RASHPA_IOC_RESTORE, r);
}

/* Read the header of a map: there must be news. */
static void news(int map, struct rashpa_table *head)
{
	memset(head, 0, sizeof(*head));
	if (CHECK(wait_fd(map, POLLIN, 1000) & POLLIN, "the map has no news"))
		CHECK(read(map, head, sizeof(*head)) == sizeof(*head), "read: %s", strerror(errno));
	CHECK(!wait_fd(map, POLLIN, 0), "read once, it still has news");
}

static void is_revoked(int map, u64 before)
{
	struct rashpa_table head;

	news(map, &head);
	CHECK(head.state == RASHPA_MAP_STATE_REVOKED && !head.count, "state %u, %u segments",
	      head.state, head.count);
	CHECK(head.generation > before && !(head.generation & 1), "generation %llu after %llu",
	      head.generation, before);
	ANSWERED(fpga_program(map, 0, NULL), ESTALE, "revoked");
}

static void is_valid(int map, const struct rashpa_restore *r, u64 before)
{
	struct rashpa_table head;

	news(map, &head);
	CHECK(head.state == RASHPA_MAP_STATE_VALID && head.count == r->out_segments && head.count,
	      "state %u, %u segments", head.state, head.count);
	CHECK(head.map_class == r->out_class, "class %u, %u in the table", r->out_class,
	      head.map_class);
	CHECK(head.generation == r->out_generation && head.generation > before &&
	      !(head.generation & 1), "generation %llu after %llu", head.generation, before);
}

static u64 first_address(const struct rashpa_map_make *map)
{
	const struct rashpa_table *t = table_of(map);
	u64 address = t->segment[0].address;

	munmap((void *)t, map->out_table_size);
	return address;
}

/* ------------------------------------------------------------ streams --- */

TEST(load, "on-board memory takes a dataset")
{
	rig_load(&f);
}

/* Stream the dataset once; true when all of it has arrived. */
static bool stream_mode(const struct rig *rig, uint32_t mode, uint32_t entries)
{
	u64 end = end_of_wait(5000);
	uint32_t status;

	rig_configure(rig, 0, mode, 0, entries, IMAGES);
	rig_start(rig, 0);
	do {
		status = reg32(rig_dtp(rig, 0), RFPGA_DTP_STATUS);
		if (status & RFPGA_DTP_DONE)
			return true;
	} while (!(status & RFPGA_DTP_FAULTED) && now_ns() < end);
	return CHECK(false, "status 0x%x, cause %u at 0x%llx", status,
		     reg32(regs, RFPGA_FAULT_CAUSE),
		     reg64(regs, RFPGA_FAULT_ADDR));
}

static bool stream_once(const struct rig *rig, uint32_t entries)
{
	return stream_mode(rig, RFPGA_MODE_FREERUN | RFPGA_MODE_FLUSH, entries);
}

/* ------------------------------------------- bare addresses of a BAR ---- */

/* Check a map of the second function's on-board memory. */
static void is_peer(const struct rashpa_map_make *map, u64 bare)
{
	u64 address = first_address(map);

	CHECK(map->out_peer == bdf2 && map->out_peer_bar == RFPGA_BAR_MEMORY,
	      "it names BAR %d of 0x%llx, the memory is in BAR %d of 0x%x", map->out_peer_bar,
	      map->out_peer, RFPGA_BAR_MEMORY, bdf2);
	if (iommu) {
		CHECK(map->out_class == RASHPA_CLASS_BRIDGE, "class %u", map->out_class);
		CHECK(map->out_flags == RASHPA_MAPPED_REMAPPED, "flags 0x%x", map->out_flags);
		CHECK(address && address != bare, "the bare address 0x%llx is in the table", bare);
	} else {
		CHECK(map->out_class == RASHPA_CLASS_PEER ||
		      map->out_class == RASHPA_CLASS_BRIDGE, "class %u", map->out_class);
		CHECK(!map->out_flags, "flags 0x%x", map->out_flags);
		CHECK(address == bare, "address 0x%llx, the BAR is at 0x%llx", address, bare);
	}
}

/* Whatever the addresses are: writes to them arrive in the other board. */
TEST(bar, "the bare address of a BAR: mapped by the driver, and data arrive")
{
	struct rashpa_liar_export arg = lie(RASHPA_LIAR_BAR);
	struct rig rig;
	int fd, win;
	char *p;

	SKIP_IF(!have_f2, "only one software FPGA");
	fd = liar_export(&arg);
	win = fpga_window(&f2, RFPGA_BAR_MEMORY, 0, LIAR_LENGTH, RASHPA_CACHE_UC);
	p = map_fd(win, LIAR_LENGTH);
	memset(p, 0, LIAR_LENGTH);
	rig_up(&rig, &f, fd, 0, 0);
	is_peer(&rig.made, arg.out_bar_address);
	/* not read back: an IOMMU lets a map to memory be written only */
	if (stream_mode(&rig, RFPGA_MODE_FREERUN, rig.made.out_segments))
		CHECK(filled(p, LIAR_LENGTH, SEED), "the data did not arrive");
	rig_is_idle(regs, 0);
	rig_down(&rig);
	unmap_fd(p, LIAR_LENGTH, win);
	liar_close(fd);
}

/* A part of it: the offset must not be lost on the way. */
TEST(bar_part, "a part of a bare BAR is that part")
{
	struct rashpa_liar_export arg = lie(RASHPA_LIAR_BAR);
	struct rashpa_map_make map, rest;
	int fd;

	SKIP_IF(!have_f2, "only one software FPGA");
	arg.offset = 16 * PAGE;
	fd = liar_export(&arg);
	map = rest = default_map(fd);
	map.offset = 3 * PAGE;
	map.length = PAGE;
	rest.offset = 4 * PAGE;
	rest.max_segment = 2 * PAGE;
	made(&map);
	is_peer(&map, arg.out_bar_address + 3 * PAGE);
	close(map.out_fd);
	made(&rest);
	is_peer(&rest, arg.out_bar_address + 4 * PAGE);
	CHECK(rest.out_segments == (LIAR_LENGTH - 4 * PAGE) / (2 * PAGE), "%u segments",
	      rest.out_segments);
	close(rest.out_fd);
	liar_close(fd);
}

TEST(bar_denied, "a bare BAR behind a bridge that is denied is refused")
{
	struct rashpa_map_make map;
	int fd, err;

	SKIP_IF(!have_f2, "only one software FPGA");
	fd = export_kind(RASHPA_LIAR_BAR);
	map = default_map(fd);
	made(&map);
	close(map.out_fd);
	p2p_bridge("deny");
	map = default_map(fd);
	err = make(&map);
	if (!err && map.out_class == RASHPA_CLASS_PEER)
		tap_skip("a switch routes between the functions");
	else
		ANSWERED(err, ENXIO, "host bridge|p2p_bridge");
	if (!err)
		close(map.out_fd);
	liar_close(fd);
}

TEST(own_bar, "the importer's own BAR is refused")
{
	struct rashpa_liar_export arg = lie(RASHPA_LIAR_BAR);
	struct rashpa_map_make map;
	int fd;

	arg.bdf = bdf_of(&f);
	arg.bar = RFPGA_BAR_MEMORY;
	fd = liar_export(&arg);
	map = default_map(fd);
	if (!ANSWERED(make(&map), ENXIO, f.name))
		close(map.out_fd);
	liar_close(fd);
}

/* -------------------------------------------------- device or host? ----- */

TEST(device_flag, "host memory is not taken for a device's")
{
	int fd = export_kind(RASHPA_LIAR_HONEST), buffer = buffer_alloc(MIB, NULL);
	struct rashpa_map_make map = default_map(fd);

	map.head.flags = RASHPA_MAP_DEVICE;
	if (!ANSWERED(make(&map), EREMOTEIO, "host"))
		close(map.out_fd);
	liar_close(fd);
	map.fd = buffer;
	if (!ANSWERED(make(&map), EREMOTEIO, "host"))
		close(map.out_fd);
	close(buffer);
	if (!have_f2)
		return;
	fd = map.fd = export_kind(RASHPA_LIAR_BAR);
	made(&map);
	close(map.out_fd);
	close(fd);
}

TEST(honest, "an honest exporter's memory takes data")
{
	struct lent l;

	lent_up(&l, &f, export_kind(RASHPA_LIAR_HONEST));
	CHECK(l.rig.made.out_class == (iommu ? RASHPA_CLASS_IOVA : RASHPA_CLASS_HOST) &&
	      !l.rig.made.out_flags && !l.rig.made.out_peer &&
	      l.rig.made.out_peer_bar == -1, "class %u, flags 0x%x, peer 0x%llx",
	      l.rig.made.out_class, l.rig.made.out_flags, l.rig.made.out_peer);
	CHECK(l.rig.made.out_segments == 1, "%u segments", l.rig.made.out_segments);
	if (stream_once(&l.rig, 1))
		CHECK(filled(l.memory, LIAR_LENGTH, SEED), "the data differ");
	rig_is_idle(regs, 0);
	lent_down(&l);
}

/* Pages in reverse order: one segment each, and data where they belong. */
TEST(scattered, "pages in any order take data")
{
	const uint32_t pages = LIAR_LENGTH / PAGE;
	struct lent l;
	uint32_t i;

	lent_up(&l, &f, export_kind(RASHPA_LIAR_SCATTERED));
	CHECK(l.rig.made.out_segments == pages, "%u segments", l.rig.made.out_segments);
	stream_once(&l.rig, l.rig.made.out_segments);
	for (i = 0; i < pages; i++)
		if (!CHECK(filled(l.memory + (pages - 1 - i) * PAGE, PAGE, SEED +
				  i * PAGE / sizeof(u64)), "page %u differs", i))
			break;
	rig_is_idle(regs, 0);
	lent_down(&l);
}

/* Entries of no bytes say nothing, and are not segments either. */
TEST(empty, "entries of no bytes do no harm")
{
	struct lent l;

	lent_up(&l, &f, export_kind(RASHPA_LIAR_EMPTY));
	CHECK(l.rig.made.out_segments == 1, "%u segments", l.rig.made.out_segments);
	if (stream_once(&l.rig, l.rig.made.out_segments))
		CHECK(filled(l.memory, LIAR_LENGTH, SEED), "the data differ");
	rig_is_idle(regs, 0);
	lent_down(&l);
}

/* --------------------------------------------------------------- lies --- */

/* Where RAM ends, and a hole below 4 GiB of @length bytes, as /proc/iomem has it. */
static u64 ram_end, hole;

static void read_iomem(u64 length)
{
	FILE *file = fopen("/proc/iomem", "re");
	unsigned long long first, last;
	u64 next = MIB;
	char line[256], what[64];

	if (!file)
		tap_bail("/proc/iomem: %s", strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		if (line[0] == ' ' ||
		    sscanf(line, "%llx-%llx : %63[^\n]", &first, &last, what) != 3)
			continue;
		if (!hole && next < 4 * GIB && first >= next + length)
			hole = next;
		next = (last + PAGE) & -PAGE;
		if (!strcmp(what, "System RAM"))
			ram_end = last + 1;
	}
	fclose(file);
}

enum where { NOWHERE, ABOVE, HOLE, WRAP, LAST, ZERO, INTERRUPT, RAM_END, RAM, BAR_END };

struct lie_row {
	const char *key;
	uint32_t kind;
	enum where where;
	uint32_t dma_bits;
	uint32_t error;		/* errno of the exporter */
	int err;
	const char *says;
	bool peer;		/* needs a second function */
	bool only_iommu;
};

static const struct lie_row lies[] = {
	{ "a-table-that-ends-a-page-early", RASHPA_LIAR_SHORT, NOWHERE, 0, 0,
	  EREMOTEIO, "0x1000 bytes too early", false, false },
	{ "a-table-of-no-bytes", RASHPA_LIAR_NOTHING, NOWHERE, 0, 0,
	  EREMOTEIO, "0x80000 bytes too early", false, false },
	{ "an-address-above-the-dma-mask", RASHPA_LIAR_ADDRESS, ABOVE, 40, 0,
	  EOVERFLOW, "40 bits", false, false },
	{ "a-hole-in-the-address-space", RASHPA_LIAR_ADDRESS, HOLE, 0, 0,
	  EREMOTEIO, "exporter|neither host memory nor a BAR", false, false },
	{ "addresses-that-overflow", RASHPA_LIAR_ADDRESS, WRAP, 0, 0,
	  EOVERFLOW, "64 bits", false, false },
	{ "the-last-addresses-there-are", RASHPA_LIAR_ADDRESS, LAST, 0, 0,
	  EREMOTEIO, "exporter", false, false },
	{ "address-0", RASHPA_LIAR_ADDRESS, ZERO, 0, 0,
	  EREMOTEIO, "exporter", false, false },
	{ "the-address-that-interrupts-are-sent-to", RASHPA_LIAR_ADDRESS, INTERRUPT, 0, 0,
	  EREMOTEIO, "exporter", false, false },
	{ "memory-that-begins-in-ram-and-leaves-it", RASHPA_LIAR_ADDRESS, RAM_END, 0, 0,
	  EREMOTEIO, "exporter", false, false },
	{ "host-memory-that-the-iommu-does-not-know", RASHPA_LIAR_ADDRESS, RAM, 0, 0,
	  EREMOTEIO, "IOMMU", false, true },
	{ "memory-that-begins-in-a-bar-and-leaves-it", RASHPA_LIAR_ADDRESS, BAR_END, 0, 0,
	  EREMOTEIO, "exporter", true, false },
	{ "host-memory-and-a-bar-in-one", RASHPA_LIAR_MIX, NOWHERE, 0, 0,
	  EREMOTEIO, "exporter|different kinds", true, false },
	{ "memory-that-is-not-mapped-el3rst", RASHPA_LIAR_NO_MAP, NOWHERE, 0, EL3RST,
	  EL3RST, "exporter|map", false, false },
	{ "memory-that-is-not-mapped-errno-4095", RASHPA_LIAR_NO_MAP, NOWHERE, 0, 4095,
	  EREMOTEIO, "exporter|map|4095", false, false },
};

/* End of the BAR whose addresses lies use. */
static u64 bar_end(void)
{
	struct rashpa_liar_export arg = lie(RASHPA_LIAR_HONEST);
	int fd = liar_export(&arg);

	close(fd);
	return arg.out_bar_address + arg.out_bar_length;
}

static u64 address_of(enum where where)
{
	switch (where) {
	case ABOVE:
		return 1ULL << 41;
	case HOLE:
		return hole;
	case WRAP:
		return -(LIAR_LENGTH / 2);
	case LAST:
		return -LIAR_LENGTH;
	case INTERRUPT:
		return 0xfee00000;
	case RAM_END:
		return (ram_end & -PAGE) - PAGE;
	case RAM:
		return 256 * MIB;
	case BAR_END:
		return bar_end() - PAGE;
	default:
		return 0;
	}
}

static void profile_bits(uint32_t bits)
{
	struct rashpa_profile_set p = { HEAD(p), .dma_bits = bits };

	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
}

static struct rashpa_liar_export lie_of(const struct lie_row *row)
{
	struct rashpa_liar_export arg = lie(row->kind);

	arg.address = address_of(row->where);
	arg.error = row->error ? row->error : ENODEV;
	return arg;
}

/* Has the machine all that the row needs? Else skip with a reason. */
static bool can_lie(const struct lie_row *row)
{
	if (row->peer && !have_f2)
		tap_skip("only one software FPGA");
	else if (row->only_iommu && !iommu)
		tap_skip("without an IOMMU every host memory is known");
	else if (row->where == HOLE && !hole)
		tap_skip("no hole below 4 GiB on this machine");
	else
		return true;
	return false;
}

static void map_lie(const struct lie_row *row)
{
	struct rashpa_liar_export arg;
	struct rashpa_map_make map;
	int fd;

	if (!can_lie(row))
		return;
	arg = lie_of(row);
	fd = liar_export(&arg);
	map = default_map(fd);
	if (!ANSWERED(make(&map), row->err, row->says) && map.out_fd >= 0)
		close(map.out_fd);
	else
		CHECK(map.out_fd == -7, "out_fd was written on failure");
	liar_close(fd);
}

/* a row with a mask sets a profile, which windows and maps would prevent */
TEST_EACH(lie, lies, "%s: refused by MAP")
{
	if (row->dma_bits) {
		munmap(regs, RFPGA_BAR_REGS_SIZE);
		profile_bits(row->dma_bits);
	}
	map_lie(row);
	if (row->dma_bits) {
		ANSWERED(fpga_profile(&f, RASHPA_PROFILE_NO_RESET, NULL, 0), 0, NULL);
		regs = fpga_regs(&f);
	}
}

/* An honest exporter may lie at RESTORE. A map prevents the profile of rows with a mask. */
TEST_EACH_IF(restored_lie, lies, !row->dma_bits, "%s: refused by RESTORE")
{
	struct rashpa_liar_export arg;
	struct rashpa_restore r;
	struct rashpa_map_make map;
	u64 before;
	int fd;

	if (!can_lie(row))
		return;
	arg = lie_of(row);
	arg.kind = RASHPA_LIAR_HONEST;
	fd = liar_export(&arg);
	map = default_map(fd);
	made(&map);
	before = map.out_generation;
	take_back(fd);
	is_revoked(map.out_fd, before);
	allow(fd, row->kind);
	ANSWERED(restore(map.out_fd, &r), row->err, row->says);
	CHECK(!liar_tell(RASHPA_LIAR_COUNT, fd, 0).out_mapped, "it is mapped all the same");
	ANSWERED(fpga_program(map.out_fd, 0, NULL), ESTALE, "revoked");
	/* and can be true again */
	allow(fd, RASHPA_LIAR_HONEST);
	if (ANSWERED(restore(map.out_fd, &r), 0, NULL))
		is_valid(map.out_fd, &r, before + 2);
	close(map.out_fd);
	liar_close(fd);
}

/* ---------------------------------------------------------- revoking ---- */

TEST(revoke_running, "memory that is taken back in use: stopped, cleared, notified, restored")
{
	struct rashpa_restore res;
	u64 before;
	struct lent l;

	lent_up(&l, &f, export_kind(RASHPA_LIAR_HONEST));
	before = l.rig.made.out_generation;
	rig_run(&l.rig, 0, 1);
	take_back(l.fd);
	rig_is_idle(regs, 0);
	rig_entries_clear(regs, 1);
	is_revoked(l.rig.map, before);
	/* the memory is the exporter's again */
	memset(l.memory, 0, LIAR_LENGTH);
	rig_is_idle(regs, 0);
	CHECK(all_zero(l.memory, LIAR_LENGTH), "the FPGA still writes");

	ANSWERED(restore(l.rig.map, &res), ENODEV, "exporter");
	CHECK(!wait_fd(l.rig.map, POLLIN, 0), "a refused RESTORE makes news");
	ANSWERED(fpga_program(l.rig.map, 0, NULL), ESTALE, "revoked");
	allow(l.fd, RASHPA_LIAR_HONEST);
	REQUIRE(ANSWERED(restore(l.rig.map, &res), 0, NULL), "RESTORE");
	is_valid(l.rig.map, &res, before);
	CHECK(res.out_class == l.rig.made.out_class, "class %u", res.out_class);
	rig_entries_clear(regs, 1);
	ANSWERED(fpga_program(l.rig.map, 0, NULL), 0, NULL);
	if (stream_once(&l.rig, 1))
		CHECK(filled(l.memory, LIAR_LENGTH, SEED), "the data differ");
	rig_is_idle(regs, 0);
	lent_down(&l);
}

TEST(restore_valid, "RESTORE of a valid map does nothing")
{
	struct rashpa_restore res;
	u64 address;
	struct lent l;

	lent_up(&l, &f, export_kind(RASHPA_LIAR_HONEST));
	address = reg64(regs, RFPGA_TABLE + RFPGA_ENTRY_ADDR);
	rig_run(&l.rig, 0, 1);
	ANSWERED(restore(l.rig.map, &res), 0, NULL);
	CHECK(res.out_generation == l.rig.made.out_generation &&
	      res.out_class == l.rig.made.out_class &&
	      res.out_segments == l.rig.made.out_segments, "generation %llu, class %u",
	      res.out_generation, res.out_class);
	CHECK(!wait_fd(l.rig.map, POLLIN, 0), "it reports a change");
	CHECK(address && reg64(regs, RFPGA_TABLE + RFPGA_ENTRY_ADDR) == address,
	      "the entry has changed");
	CHECK(reg32(rig_dtp(&l.rig, 0), RFPGA_DTP_STATUS) & RFPGA_DTP_RUNNING,
	      "the stream was stopped");
	lent_down(&l);
}

TEST(restore_more, "RESTORE of more segments than there were is refused")
{
	struct rashpa_restore res;
	struct lent l;

	lent_up(&l, &f, export_kind(RASHPA_LIAR_HONEST));
	take_back(l.fd);
	is_revoked(l.rig.map, l.rig.made.out_generation);
	allow(l.fd, RASHPA_LIAR_SCATTERED);
	ANSWERED(restore(l.rig.map, &res), E2BIG, "128|segments");
	CHECK(!liar_tell(RASHPA_LIAR_COUNT, l.fd, 0).out_mapped,
	      "it is mapped all the same");
	ANSWERED(fpga_program(l.rig.map, 0, NULL), ESTALE, "revoked");
	allow(l.fd, RASHPA_LIAR_HONEST);
	ANSWERED(restore(l.rig.map, &res), 0, NULL);
	is_valid(l.rig.map, &res, l.rig.made.out_generation);
	lent_down(&l);
}

TEST(restore_fewer, "RESTORE of fewer segments works")
{
	struct rashpa_restore res;
	struct lent l;

	lent_up(&l, &f, export_kind(RASHPA_LIAR_SCATTERED));
	take_back(l.fd);
	rig_entries_clear(regs, LIAR_LENGTH / PAGE);
	is_revoked(l.rig.map, l.rig.made.out_generation);
	allow(l.fd, RASHPA_LIAR_HONEST);
	ANSWERED(restore(l.rig.map, &res), 0, NULL);
	is_valid(l.rig.map, &res, l.rig.made.out_generation);
	CHECK(res.out_segments == 1, "%u segments", res.out_segments);
	ANSWERED(fpga_program(l.rig.map, 0, NULL), 0, NULL);
	if (stream_once(&l.rig, 1))
		CHECK(filled(l.memory, LIAR_LENGTH, SEED), "the data differ");
	lent_down(&l);
}

/* As memory of a GPU moves to the host and back. */
TEST(restore_elsewhere, "RESTORE reports that the memory is elsewhere")
{
	struct rashpa_restore res;
	struct lent l;

	SKIP_IF(!have_f2, "only one software FPGA");
	lent_up(&l, &f, export_kind(RASHPA_LIAR_HONEST));
	take_back(l.fd);
	is_revoked(l.rig.map, l.rig.made.out_generation);
	allow(l.fd, RASHPA_LIAR_BAR);
	ANSWERED(restore(l.rig.map, &res), 0, NULL);
	is_valid(l.rig.map, &res, l.rig.made.out_generation);
	CHECK(res.out_class == RASHPA_CLASS_BRIDGE ||
	      (!iommu && res.out_class == RASHPA_CLASS_PEER), "class %u",
	      res.out_class);
	take_back(l.fd);
	is_revoked(l.rig.map, res.out_generation);
	allow(l.fd, RASHPA_LIAR_HONEST);
	ANSWERED(restore(l.rig.map, &res), 0, NULL);
	CHECK(res.out_class == l.rig.made.out_class, "class %u", res.out_class);
	lent_down(&l);
}

TEST(restore_device, "RESTORE does not take host memory for a device's")
{
	struct rashpa_restore res;
	struct rashpa_map_make map;
	int fd;

	SKIP_IF(!have_f2, "only one software FPGA");
	fd = export_kind(RASHPA_LIAR_BAR);
	map = default_map(fd);
	map.head.flags = RASHPA_MAP_DEVICE;
	made(&map);
	take_back(fd);
	allow(fd, RASHPA_LIAR_HONEST);
	ANSWERED(restore(map.out_fd, &res), EREMOTEIO, "host");
	allow(fd, RASHPA_LIAR_BAR);
	ANSWERED(restore(map.out_fd, &res), 0, NULL);
	close(map.out_fd);
	liar_close(fd);
}

TEST(map_revoked, "memory that was taken back is not mapped")
{
	int fd = export_kind(RASHPA_LIAR_HONEST);
	struct rashpa_map_make map = default_map(fd);

	take_back(fd);
	ANSWERED(make(&map), ENODEV, "exporter");
	liar_close(fd);
}

/* Maps of one memory end together; other streams may stop, but their maps stay valid. */
TEST(revoke_several, "only the maps of that memory are revoked")
{
	struct rashpa_map_make a, b, other;
	struct rashpa_restore res;
	int fd = export_kind(RASHPA_LIAR_HONEST), fd2 = export_kind(RASHPA_LIAR_HONEST);

	a = b = default_map(fd);
	other = default_map(fd2);
	b.length = PAGE;
	REQUIRE(!make(&a) && !make(&b) && !make(&other), "MAP: %s", reason);
	ANSWERED(fpga_program(a.out_fd, 0, NULL), 0, NULL);
	ANSWERED(fpga_program(b.out_fd, 1, NULL), 0, NULL);
	ANSWERED(fpga_program(other.out_fd, 2, NULL), 0, NULL);
	take_back(fd);
	rig_entries_clear(regs, 2);
	CHECK(reg32(regs, RFPGA_TABLE + 2 * RFPGA_ENTRY_STRIDE + RFPGA_ENTRY_CONTROL) ==
	      RFPGA_ENTRY_VALID, "the entry of another memory is gone");
	CHECK(!wait_fd(other.out_fd, POLLIN, 0), "the map of another memory has news");
	ANSWERED(fpga_program(a.out_fd, 0, NULL), ESTALE, "revoked");
	allow(fd, RASHPA_LIAR_HONEST);
	ANSWERED(restore(b.out_fd, &res), 0, NULL);
	close(a.out_fd);
	close(b.out_fd);
	close(other.out_fd);
	liar_close(fd);
	close(fd2);
}

/* The function goes while the memory is away. */
TEST(unbind_revoked, "unbinding while the memory is taken back")
{
	struct rashpa_restore res;
	struct lent l;
	int err;

	lent_up(&l, &f, export_kind(RASHPA_LIAR_HONEST));
	take_back(l.fd);
	err = fpga_unbind(&f);
	CHECK(!err, "unbind: %s", strerror(-err));
	allow(l.fd, RASHPA_LIAR_HONEST);
	ANSWERED(restore(l.rig.map, &res), ENODEV, f.name);
	liar_is_free(l.fd);
	take_back(l.fd);
	lent_down(&l);
	munmap(regs, RFPGA_BAR_REGS_SIZE);
	fpga_again(&f);
	regs = fpga_regs(&f);
}

/* --- many at once --- */

static void stream_for_ever(void *arg)
{
	struct lent l;

	lent_up(&l, &f, export_kind(RASHPA_LIAR_SCATTERED));
	rig_run(&l.rig, 0, l.rig.made.out_segments);
	if (tap_ok())
		tap_fork_hold();
}

TEST(kill_running, "killing a process that streams into foreign memory stops the stream first")
{
	int i;

	for (i = 0; i < 10 && tap_ok(); i++) {
		tap_fork_kill(tap_fork_held(stream_for_ever, NULL));
		rig_is_idle(regs, 0);
		rig_entries_clear(regs, LIAR_LENGTH / PAGE);
	}
}

/*
 * The exporter's side: takes the memory away and gives it back, again and again. Every other
 * time it waits until the importer has tried once: both must have their turn.
 */
struct revoker {
	int fd;
	char *memory;		/* checked while it is away, or NULL */
	unsigned int most;	/* rounds */
	unsigned int rounds;	/* done; atomic */
	unsigned int tries;	/* the importer's; atomic */
	bool stop;		/* atomic */
	unsigned int failed;
	unsigned int outlived;
	unsigned int written;
};

static bool has_rounds(struct revoker *r)
{
	return __atomic_load_n(&r->rounds, __ATOMIC_ACQUIRE) < r->most;
}

static void tried(struct revoker *r)
{
	__atomic_add_fetch(&r->tries, 1, __ATOMIC_RELEASE);
}

static void wait_try(struct revoker *r)
{
	unsigned int before = __atomic_load_n(&r->tries, __ATOMIC_ACQUIRE);

	while (__atomic_load_n(&r->tries, __ATOMIC_ACQUIRE) == before &&
	       !__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
		sched_yield();
}

/* Check that the memory is not written while it is away. */
static void look(struct revoker *r)
{
	if (!r->memory)
		return;
	memset(r->memory, 0, IMAGE);
	r->written += !all_zero(r->memory, IMAGE);
}

static void *revoke_often(void *arg)
{
	struct revoker *r = arg;
	struct rashpa_liar_state s;

	while (has_rounds(r) && !__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
		s = (struct rashpa_liar_state) { .fd = r->fd };
		r->failed += !!ioctl(liar, RASHPA_LIAR_REVOKE, &s);
		r->outlived += !!s.out_mapped;
		look(r);
		r->failed += !!ioctl(liar, RASHPA_LIAR_ALLOW, &s);
		if (r->rounds & 1)
			wait_try(r);
		__atomic_add_fetch(&r->rounds, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void revoker_start(struct revoker *r, pthread_t *thread)
{
	if (pthread_create(thread, NULL, revoke_often, r))
		tap_bail("pthread_create");
}

static void revoker_join(struct revoker *r, pthread_t thread)
{
	__atomic_store_n(&r->stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	CHECK(!r->failed, "%u calls to the exporter failed", r->failed);
	CHECK(!r->outlived, "%u times a mapping outlived its revocation", r->outlived);
	CHECK(!r->written, "%u times it was written afterwards", r->written);
}

/* Answers that are right at any state of the other side. */
static bool use_once(const struct rig *rig, unsigned int *used)
{
	struct rashpa_restore res;
	int err = restore(rig->map, &res);

	if (!CHECK(!err || err == -ENODEV, "RESTORE: %s, %s", strerror(-err), reason))
		return false;
	err = fpga_program(rig->map, 0, NULL);
	if (!CHECK(!err || err == -ESTALE, "PROGRAM: %s, %s", strerror(-err), reason))
		return false;
	*used += !err;
	return true;
}

/* After all that it works. */
static void works(struct lent *l)
{
	struct rashpa_restore res;

	set32(regs, RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	while (reg32(regs, RFPGA_STATUS) & RFPGA_STATUS_BUSY)
		;
	set32(regs, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	ANSWERED(restore(l->rig.map, &res), 0, NULL);
	ANSWERED(fpga_program(l->rig.map, 0, NULL), 0, NULL);
	memset(l->memory, 0, LIAR_LENGTH);
	if (stream_once(&l->rig, 1))
		CHECK(filled(l->memory, LIAR_LENGTH, SEED), "the data differ");
	rig_is_idle(regs, 0);
}

TEST(revoke_race, "taking memory back against RESTORE and PROGRAM")
{
	struct revoker revoker = { .most = REVOKE_ROUNDS };
	unsigned int used = 0;
	pthread_t thread;
	struct lent l;

	lent_up(&l, &f, export_kind(RASHPA_LIAR_HONEST));
	revoker.fd = l.fd;
	revoker_start(&revoker, &thread);
	while (has_rounds(&revoker) && use_once(&l.rig, &used))
		tried(&revoker);
	revoker_join(&revoker, thread);
	tap_note("%u rounds, programmed %u times in %u tries", revoker.rounds, used,
		 revoker.tries);
	CHECK(used, "it was never programmed");
	works(&l);
	lent_down(&l);
}

/*
 * Started again at any moment, also between the steps that stop it: then it may be found
 * stuck, and needs a reset. The test checks that no write comes late.
 */
static bool stream_against(const struct rig *rig, unsigned int *used, unsigned int *resets)
{
	struct rashpa_restore res;
	int err = restore(rig->map, &res);

	if (err == -EIO) {
		(*resets)++;
		if (!ANSWERED(fpga_reset(&f), 0, NULL))
			return false;
		err = restore(rig->map, &res);
	}
	if (!CHECK(!err || err == -ENODEV || err == -EIO, "RESTORE: %s, %s", strerror(-err),
		   reason))
		return false;
	err = fpga_program(rig->map, 0, NULL);
	if (!CHECK(!err || err == -ESTALE, "PROGRAM: %s, %s", strerror(-err), reason))
		return false;
	if (!err) {
		(*used)++;
		rig_configure(rig, 0, RFPGA_MODE_FREERUN, 0, 1, 0);
		rig_start(rig, 0);
	}
	/* an entry that was just cleared makes another fault, which is harmless */
	return CHECK(reg32(regs, RFPGA_FAULT_CAUSE) != RFPGA_FAULT_BUS,
		     "a write to 0x%llx came after its address had ended",
		     reg64(regs, RFPGA_FAULT_ADDR));
}

TEST(stream_race, "taking memory back against a stream that is started again")
{
	unsigned int used = 0, resets = 0;
	struct revoker revoker = { .most = STREAM_ROUNDS };
	struct rashpa_device_info info;
	pthread_t thread;
	struct lent l;

	lent_up(&l, &f, export_kind(RASHPA_LIAR_HONEST));
	revoker.fd = l.fd;
	revoker.memory = l.memory;
	revoker_start(&revoker, &thread);
	while (has_rounds(&revoker) && stream_against(&l.rig, &used, &resets))
		tried(&revoker);
	revoker_join(&revoker, thread);
	tap_note("%u rounds, started %u times, reset %u times", revoker.rounds, used,
		 resets);
	CHECK(used, "it was never started");
	if (!fpga_info(&f, &info) && info.out_state == RASHPA_STATE_STUCK)
		ANSWERED(fpga_reset(&f), 0, NULL);
	works(&l);
	lent_down(&l);
}

/* Maps that come and go while the memory does. */
TEST(revoke_and_map, "taking memory back against MAP")
{
	int fd = export_kind(RASHPA_LIAR_HONEST), err;
	struct revoker revoker = { .fd = fd, .most = REVOKE_ROUNDS };
	struct rashpa_map_make map;
	unsigned int made = 0;
	pthread_t thread;

	revoker_start(&revoker, &thread);
	while (has_rounds(&revoker)) {
		map = default_map(fd);
		err = make(&map);
		if (!CHECK(!err || err == -ENODEV, "MAP: %s, %s", strerror(-err), reason))
			break;
		if (!err) {
			made++;
			close(map.out_fd);
		}
		tried(&revoker);
	}
	revoker_join(&revoker, thread);
	tap_note("%u rounds, mapped %u times in %u tries", revoker.rounds, made, revoker.tries);
	CHECK(made, "it was never mapped");
	liar_close(fd);
}

/* ------------------------------------------------------ waiting for fences --- */

TEST(moving, "MAP and RESTORE wait for memory that is still moving")
{
	int fd = export_kind(RASHPA_LIAR_HONEST), node = liar_fence(RASHPA_LIAR_FENCE, fd, 0);
	struct rashpa_map_make map = default_map(fd);
	struct rashpa_restore r = { HEAD(r) };
	struct caller c = { .fd = f.fd, .cmd = RASHPA_IOC_MAP_MAKE, .arg = &map };

	CHECK(caller_waits(&c, "dma_fence"), "MAP does not wait");
	liar_arrive(node);
	CHECK(!caller_ends(&c), "MAP: %s", strerror(-c.err));
	close(node);
	take_back(fd);
	node = liar_fence(RASHPA_LIAR_FENCE, fd, 0);
	allow(fd, RASHPA_LIAR_HONEST);
	c = (struct caller) { .fd = map.out_fd, .cmd = RASHPA_IOC_RESTORE,
			      .arg = &r };
	CHECK(caller_waits(&c, "dma_fence"), "RESTORE does not wait");
	liar_arrive(node);
	CHECK(!caller_ends(&c), "RESTORE: %s", strerror(-c.err));
	close(node);
	close(map.out_fd);
	liar_close(fd);
}

static void on_signal(int number)
{
}

TEST(moving_signal, "a signal ends the wait of MAP")
{
	int fd = export_kind(RASHPA_LIAR_HONEST), node = liar_fence(RASHPA_LIAR_FENCE, fd, 0);
	struct sigaction sa = { .sa_handler = on_signal }, old;
	struct rashpa_map_make map = default_map(fd);
	struct caller c = { .fd = f.fd, .cmd = RASHPA_IOC_MAP_MAKE, .arg = &map };

	sigaction(SIGUSR1, &sa, &old);
	if (CHECK(caller_waits(&c, "dma_fence"), "MAP does not wait"))
		pthread_kill(c.thread, SIGUSR1);
	CHECK(caller_ends(&c) == -EINTR, "MAP: %s", strerror(-c.err));
	sigaction(SIGUSR1, &old, NULL);
	close(node);
	liar_close(fd);
}

static int by_unbind(struct caller *c)
{
	return fpga_unbind(c->arg);
}

/* An importer whose DMA goes on for a while: the function with the window does not go before. */
TEST(slow_importer, "unbinding waits for the importer of a window")
{
	struct caller c = { .what = by_unbind, .arg = &f2 };
	int win, node;

	SKIP_IF(!have_f2, "only one software FPGA");
	win = fpga_window(&f2, RFPGA_BAR_MEMORY, 0, LIAR_LENGTH, 0);
	REQUIRE(win >= 0, "window: %s", reason);
	node = liar_fence(RASHPA_LIAR_IMPORT, win, bdf_of(&f));
	CHECK(caller_waits(&c, "dma_fence"), "unbinding does not wait for the importer");
	liar_arrive(node);
	CHECK(!caller_ends(&c), "unbind: %s", strerror(-c.err));
	close(node);
	close(win);
	fpga_again(&f2);
}

/* ---------------------------------------------------------- the machine --- */

static void bus(const struct fpga *fpga, u64 limit, u64 offset)
{
	struct rashpa_liar_bus arg = { .bdf = bdf_of(fpga), .bar = RFPGA_BAR_MEMORY,
				       .limit = limit, .offset = offset };

	CHECK(!ioctl(liar, RASHPA_LIAR_BUS, &arg), "BUS: %s", strerror(errno));
}

/* A bus with fewer address bits than the function: the driver does not bounce the memory. */
TEST(narrow_bus, "memory beyond what the bus carries is refused")
{
	int buffer, fd;
	struct rashpa_map_make map;
	void *p;

	SKIP_IF(iommu, "behind an IOMMU all memory has an address that fits");
	buffer = buffer_alloc(PAGE, NULL);
	fd = export_kind(RASHPA_LIAR_HONEST);
	p = map_fd(buffer, PAGE);
	REQUIRE(pfn_of(p) * PAGE >= 16 * MIB, "memory of 24 bits");
	bus(&f, 16 * MIB - 1, 0);
	map = default_map(buffer);
	ANSWERED(make(&map), EOVERFLOW, "24 bits|IOMMU");
	map = default_map(fd);
	ANSWERED(make(&map), EOVERFLOW, "24 bits|IOMMU");
	bus(&f, 0, 0);
	map = default_map(buffer);
	made(&map);
	close(map.out_fd);
	unmap_fd(p, PAGE, buffer);
	close(fd);
}

#define ELSEWHERE	(1ULL << 40)

/* A host bridge that has other addresses on the bus: a function has to use those. */
TEST(bus_offset, "a window's address is that on the bus")
{
	struct rashpa_liar_export cpu = lie(RASHPA_LIAR_BAR), there = lie(RASHPA_LIAR_ADDRESS);
	struct rashpa_map_make map;
	int fd, win;

	SKIP_IF(!have_f2, "only one software FPGA");
	SKIP_IF(iommu, "an IOMMU has the addresses of CPUs");
	fd = liar_export(&cpu);
	bus(&f2, 0, -ELSEWHERE);
	win = fpga_window(&f2, RFPGA_BAR_MEMORY, 0, LIAR_LENGTH, 0);
	map = default_map(win);
	made(&map);
	is_peer(&map, cpu.out_bar_address + ELSEWHERE);
	close(map.out_fd);
	close(win);
	map = default_map(fd);
	ANSWERED(make(&map), EREMOTEIO, "CPU|bus");
	close(fd);
	there.address = cpu.out_bar_address + ELSEWHERE;
	fd = liar_export(&there);
	map = default_map(fd);
	made(&map);
	is_peer(&map, there.address);
	close(map.out_fd);
	bus(&f2, 0, 0);
	close(fd);
}

/* ------------------------------------------------------------ module ---- */

static int show(int fd)
{
	struct rashpa_liar_show arg = { .fd = fd };
	int node = open("/dev/rashpa-liar", O_RDWR | O_CLOEXEC);

	CHECK(node >= 0 && !ioctl(node, RASHPA_LIAR_SHOW, &arg), "SHOW: %s", strerror(errno));
	return node;
}

/* Another driver's file is open for writing; the dma-buf that it shows is not. */
TEST(read_only_through_another, "read-only memory stays so through another driver's file")
{
	struct rashpa_alloc a = { HEAD(a), .length = MIB, .name = "st-shown" };
	int ro, shown;
	void *p;

	REQUIRE(ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL), "no memory");
	ro = buffer_open("st-shown", O_RDONLY);
	shown = show(ro);
	p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, shown, 0);
	CHECK(p == MAP_FAILED && errno == EACCES, "it can be written through another driver");
	p = mmap(NULL, MIB, PROT_READ, MAP_SHARED, shown, 0);
	if (CHECK(p != MAP_FAILED, "it cannot be read: %s", strerror(errno))) {
		CHECK(mprotect(p, MIB, PROT_READ | PROT_WRITE) && errno == EACCES,
		      "it can be made writable");
		munmap(p, MIB);
	}
	close(shown);
	/* a file that is open for writing still can */
	shown = show(a.out_fd);
	p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, shown, 0);
	if (CHECK(p != MAP_FAILED, "it cannot be written: %s", strerror(errno))) {
		memset(p, 1, MIB);
		munmap(p, MIB);
	}
	close(shown);
	close(ro);
	buffer_end(a.out_fd, "st-shown");
}

TEST(module_stays, "an exporter's module stays while its memory is used")
{
	int fd = export_kind(RASHPA_LIAR_HONEST), err;
	struct rashpa_map_make map = default_map(fd);

	/* its own node holds it as well */
	close(liar);
	err = module_unload("liar");
	CHECK(err == -EAGAIN, "unloading under a dma-buf: %s", strerror(-err));
	made(&map);
	close(fd);
	err = module_unload("liar");
	CHECK(err == -EAGAIN, "unloading under a map: %s", strerror(-err));
	fd = map.out_fd;
	close(fd);
	liar = open("/dev/rashpa-liar", O_RDWR | O_CLOEXEC);
	CHECK(liar >= 0, "/dev/rashpa-liar: %s", strerror(errno));
}

TEST(unload, "the exporter's module unloads")
{
	int err;

	close(liar);
	err = module_unload("liar");
	CHECK(!err, "%s", strerror(-err));
	tap_after = NULL;	/* with a file less */
}

void setup(void)
{
	const char *why = module_load("liar", &liar);

	if (why)
		tap_skip_all("%s", why);
	rig_need(&f);
	have_f2 = fpga_try(&f2, 1);
	if (have_f2)
		bdf2 = bdf_of(&f2);
	iommu = fpga_iommu(&f);
	read_iomem(LIAR_LENGTH);
	regs = fpga_regs(&f);
	p2p_bridge("allow");
}

void teardown_all(void)
{
	module_unload("liar");
}
