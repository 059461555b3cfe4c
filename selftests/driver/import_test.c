// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=each,debug iommu=both seconds=22 */
/*
 * Importers of windows, and exporters of memory, as in other drivers: cards that pin, cards that
 * can be stopped, GPUs that move memory until, or when, it is pinned.
 */
#include "../modules/rashpa_nic.h"
#include "foreign.h"

#define ENOTSUPP	524	/* an errno of the kernel, without a name in user space */
#define ERESTARTSYS	512

static struct fpga f, f2;
static bool have_f2, iommu;
static int nic = -1;
/* Older kernels pin whatever an importer maps. */
static bool core_pins;

/* ---------------------------------------------------------- importers --- */

/* A card in the place of the first function; @card is an open file of the module. */
static int import(int card, int fd, uint32_t how)
{
	struct rashpa_nic_import arg = { .fd = fd, .bdf = bdf_of(&f), .how = how };

	return ioctl(card, RASHPA_NIC_IMPORT, &arg) ? -errno : 0;
}

static int new_card(void)
{
	int card = open("/dev/rashpa-nic", O_RDWR | O_CLOEXEC);

	CHECK(card >= 0, "/dev/rashpa-nic: %s", strerror(errno));
	return card;
}

static struct rashpa_nic_state card_state(int card)
{
	struct rashpa_nic_state s = {};

	CHECK(!ioctl(card, RASHPA_NIC_STATE, &s), "STATE: %s", strerror(errno));
	return s;
}

static int card_again(int card)
{
	struct rashpa_nic_state s;

	return ioctl(card, RASHPA_NIC_AGAIN, &s) ? -errno : 0;
}

static int peer_window(void)
{
	int win = fpga_window(&f2, RFPGA_BAR_MEMORY, 0, LIAR_LENGTH, 0);

	CHECK(win >= 0, "window: %s", reason);
	return win;
}

static uint32_t importers(int win)
{
	struct rashpa_info info = {};

	ANSWERED(buffer_info(win, &info), 0, NULL);
	return info.out_importers;
}

/* Notified when its addresses end, and mapped again later: as on-demand paging. */
TEST(revocable, "a card that can be stopped is notified, and comes back")
{
	struct rashpa_nic_state before, after;
	int win, card, err;

	SKIP_IF(!have_f2, "only one software FPGA");
	win = peer_window();
	card = new_card();
	err = import(card, win, RASHPA_NIC_REVOCABLE);
	REQUIRE(!err, "import: %s", strerror(-err));
	before = card_state(card);
	CHECK(before.out_mapped && before.out_address && !before.out_told, "mapped %u, notified %u",
	      before.out_mapped, before.out_told);
	ANSWERED(fpga_reset(&f2), 0, NULL);
	after = card_state(card);
	CHECK(!after.out_mapped && after.out_told, "mapped %u, notified %u times", after.out_mapped,
	      after.out_told);
	CHECK(!card_again(card), "it does not come back");
	CHECK(importers(win) == 1, "%u importers", importers(win));
	before = card_state(card);
	CHECK(!fpga_unbind(&f2), "unbind");
	after = card_state(card);
	CHECK(!after.out_mapped && after.out_told > before.out_told, "mapped %u, notified %u times",
	      after.out_mapped, after.out_told);
	err = card_again(card);
	CHECK(err == -ENODEV, "after the removal: %s", strerror(-err));
	close(card);
	close(win);
	fpga_again(&f2);
}

static void card_let_go(int card)
{
	struct rashpa_nic_state s;

	CHECK(!ioctl(card, RASHPA_NIC_LET_GO, &s), "LET_GO: %s", strerror(errno));
}

static int by_unbind(struct caller *c)
{
	return fpga_unbind(c->arg);
}

/* The card may use the memory until it has unmapped it: the function does not go before. */
TEST(late, "the driver waits for a card that lets go later")
{
	struct rashpa_reset reset = { HEAD(reset) };
	struct caller resets = { .fd = f2.fd, .cmd = RASHPA_IOC_RESET, .arg = &reset };
	struct caller unbinds = { .what = by_unbind, .arg = &f2 };
	struct rashpa_nic_state s;
	int win, card, err;

	SKIP_IF(!have_f2, "only one software FPGA");
	win = peer_window();
	card = new_card();
	err = import(card, win, RASHPA_NIC_LATE);
	REQUIRE(!err, "import: %s", strerror(-err));
	CHECK(caller_waits(&resets, "rashpa_window"), "RESET does not wait for the importer");
	s = card_state(card);
	CHECK(s.out_mapped && s.out_told, "mapped %u, notified %u times", s.out_mapped, s.out_told);
	card_let_go(card);
	CHECK(!caller_ends(&resets), "RESET: %s", strerror(-resets.err));
	CHECK(!card_again(card), "it does not come back");
	CHECK(caller_waits(&unbinds, "rashpa_window"), "unbinding does not wait for the importer");
	card_let_go(card);
	CHECK(!caller_ends(&unbinds), "unbind: %s", strerror(-unbinds.err));
	close(card);
	close(win);
	fpga_again(&f2);
}

/* Any process can add a fence to a window. */
TEST(fence_of_nobody, "RESET does not wait for a fence of a window without importers")
{
	struct rashpa_reset reset = { HEAD(reset) };
	struct caller resets = { .fd = f.fd, .cmd = RASHPA_IOC_RESET, .arg = &reset };
	int win = fpga_window(&f, RFPGA_BAR_MEMORY, 0, LIAR_LENGTH, 0), fence;

	REQUIRE(win >= 0, "window: %s", reason);
	fence = liar_fence(RASHPA_LIAR_FENCE, win, 0);
	CHECK(!caller_waits(&resets, "dma_fence"), "RESET waits for a fence");
	close(fence);
	CHECK(!caller_ends(&resets), "RESET: %s", strerror(-resets.err));
	close(win);
}

/* A card that cannot be stopped gets no window: it could write to a board that was replaced. */
static void refused(uint32_t how)
{
	int win, card, err;

	SKIP_IF(!have_f2, "only one software FPGA");
	win = peer_window();
	card = new_card();
	err = import(card, win, how);
	CHECK(err == -EOPNOTSUPP, "import: %s", strerror(-err));
	CHECK(!importers(win), "%u importers", importers(win));
	close(card);
	close(win);
}

TEST(pinning, "a card that pins gets no window")
{
	refused(RASHPA_NIC_PINNED);
}

TEST(static_card, "a card without move notification gets no window")
{
	refused(RASHPA_NIC_STATIC);
}

/*
 * It pins, and stops when it is notified. Newer kernels know such cards by their callback; in older
 * ones all cards that pin have one, which does nothing.
 */
TEST(revoked_once, "a card that pins and can be stopped, where the kernel knows it")
{
	struct rashpa_nic_import arg = { .how = RASHPA_NIC_REVOKED_ONCE };
	struct rashpa_nic_state s;
	int win, card, err;

	SKIP_IF(!have_f2, "only one software FPGA");
	win = peer_window();
	card = new_card();
	arg.fd = win;
	arg.bdf = bdf_of(&f);
	err = ioctl(card, RASHPA_NIC_IMPORT, &arg) ? -errno : 0;
	CHECK(err == (arg.out_deaf ? 0 : -EOPNOTSUPP), "import: %s", strerror(-err));
	if (!err) {
		ANSWERED(fpga_reset(&f2), 0, NULL);
		s = card_state(card);
		CHECK(!s.out_mapped && s.out_told, "mapped %u, notified %u times", s.out_mapped,
		      s.out_told);
	}
	close(card);
	close(win);
}

/* Other importers map a window as a whole. */
TEST(window_table, "a card maps a window before the MSI-X table of its BAR, but not one with the table")
{
	int win, card, err;

	SKIP_IF(!have_f2, "only one software FPGA");
	win = fpga_window(&f2, RFPGA_BAR_MSIX, 0, 4 * PAGE, 0);
	REQUIRE(win >= 0, "window: %s", reason);
	card = new_card();
	err = import(card, win, RASHPA_NIC_REVOCABLE);
	CHECK(err == -EBUSY, "with the table: %s", strerror(-err));
	CHECK(!importers(win), "%u importers", importers(win));
	close(win);
	win = fpga_window(&f2, RFPGA_BAR_MSIX, 0, PAGE, 0);
	err = import(card, win, RASHPA_NIC_REVOCABLE);
	CHECK(!err, "without it: %s", strerror(-err));
	close(card);
	close(win);
}

/* Host memory never goes away under an importer: any card may have it, and pin it. */
TEST(host_memory, "host memory is for any card")
{
	uint32_t how;

	for (how = 0; how < RASHPA_NIC_HOWS; how++) {
		int fd = buffer_alloc(MIB, NULL), card = new_card();
		int err = import(card, fd, how);

		CHECK(!err, "import %u: %s", how, strerror(-err));
		close(card);
		close(fd);
	}
}

/* ---------------------------------------------------------- exporters --- */

static struct rashpa_liar_export memory_of(uint32_t model, uint32_t kind)
{
	return liar_memory(model, kind, have_f2 ? &f2 : NULL);
}

static int export(uint32_t model, uint32_t kind)
{
	struct rashpa_liar_export arg = memory_of(model, kind);

	return liar_export(&arg);
}

/* Returns 0 or a negative errno. */
static int make(int fd, uint32_t flags, struct rashpa_map_make *map)
{
	*map = (struct rashpa_map_make) { HEAD(*map), .fd = fd, .out_fd = -1 };
	map->head.flags = flags;
	return call(f.fd, RASHPA_IOC_MAP_MAKE, map);
}

/* The same; the test ends where it fails. */
static void made(int fd, uint32_t flags, struct rashpa_map_make *map)
{
	if (make(fd, flags, map))
		tap_bail("MAP: %s", reason);
}

static bool is_host(uint32_t map_class)
{
	return map_class == (iommu ? RASHPA_CLASS_IOVA : RASHPA_CLASS_HOST);
}

static bool is_peer(uint32_t map_class)
{
	return map_class == RASHPA_CLASS_BRIDGE || (!iommu && map_class == RASHPA_CLASS_PEER);
}

/* Read the map until it has come to @state; @t is what it said then. */
static void becomes(int map, uint32_t state, struct rashpa_table *t)
{
	*t = (struct rashpa_table) { .state = UINT32_MAX };
	while (t->state != state)
		if (!CHECK(wait_fd(map, POLLIN, 5000), "no news after state %u",
			   t->state) ||
		    !CHECK(read(map, t, sizeof(*t)) == sizeof(*t), "read: %s", strerror(errno)))
			break;
}

/* Move other memory until it is back in a map of @fpga: earlier restores are done by then. */
static void others_come_back(const struct fpga *fpga)
{
	int fd = export(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_HONEST);
	struct rashpa_map_make map;
	struct rashpa_table t;

	if (CHECK(fpga_map(fpga, fd, RASHPA_BIDIRECTIONAL, &map) >= 0, "MAP: %s", reason)) {
		liar_tell(RASHPA_LIAR_MOVE, fd, RASHPA_LIAR_HONEST);
		becomes(map.out_fd, RASHPA_MAP_STATE_REVOKED, &t);
		becomes(map.out_fd, RASHPA_MAP_STATE_VALID, &t);
		close(map.out_fd);
	}
	close(fd);
}

static uint32_t pins(int fd)
{
	return liar_tell(RASHPA_LIAR_COUNT, fd, 0).out_pinned;
}

TEST(not_pinned, "memory is pinned only by request")
{
	int fd = export(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_HONEST);
	struct rashpa_map_make map;

	made(fd, 0, &map);
	CHECK(pins(fd) == core_pins, "%u pins", pins(fd));
	close(map.out_fd);
	made(fd, RASHPA_MAP_PIN, &map);
	CHECK(pins(fd) == 1U + core_pins, "%u pins", pins(fd));
	close(map.out_fd);
	liar_close(fd);
}

/* As amdgpu does: pinning moves device memory to the host. */
TEST(migrates, "memory that moves when it is pinned stays a device's")
{
	struct rashpa_map_make map, pinned;
	struct rashpa_table t;
	int fd;

	SKIP_IF(!have_f2, "only one software FPGA");
	fd = export(RASHPA_LIAR_MIGRATES, RASHPA_LIAR_BAR);
	if (core_pins) {
		ANSWERED(make(fd, RASHPA_MAP_DEVICE, &map), EREMOTEIO, "host");
		tap_note("this kernel pins whatever is mapped");
	} else if (ANSWERED(make(fd, RASHPA_MAP_DEVICE, &map), 0, NULL)) {
		CHECK(is_peer(map.out_class), "class %u", map.out_class);
		close(map.out_fd);
	}
	ANSWERED(make(fd, RASHPA_MAP_DEVICE | RASHPA_MAP_PIN, &map), EREMOTEIO, "host");
	liar_is_free(fd);
	made(fd, 0, &map);
	/* another one pins it: it moves under the first map, which follows */
	made(fd, RASHPA_MAP_PIN, &pinned);
	CHECK(is_host(pinned.out_class), "class %u", pinned.out_class);
	if (!core_pins) {
		becomes(map.out_fd, RASHPA_MAP_STATE_VALID, &t);
		CHECK(t.generation >= map.out_generation + 4 && is_host(t.map_class),
		      "generation %llu, class %u", t.generation, t.map_class);
	}
	close(pinned.out_fd);
	close(map.out_fd);
	liar_close(fd);
}

/* As NVIDIA's: no pages, no pinning, nothing moves. */
TEST(pageless, "an exporter without pages and pinning")
{
	struct rashpa_map_make map;
	struct lent l;
	int fd;

	rig_load(&f);
	lent_up(&l, &f, export(RASHPA_LIAR_STATIC, RASHPA_LIAR_HONEST));
	CHECK(is_host(l.rig.made.out_class), "class %u", l.rig.made.out_class);
	rig_stream(&l.rig, 0, l.rig.made.out_segments, IMAGES);
	CHECK(filled(l.memory, LIAR_LENGTH, SEED), "the data differ");
	made(l.fd, RASHPA_MAP_PIN, &map);
	close(map.out_fd);
	lent_down(&l);
	if (!have_f2)
		return;
	fd = export(RASHPA_LIAR_STATIC, RASHPA_LIAR_BAR);
	made(fd, RASHPA_MAP_DEVICE, &map);
	CHECK(is_peer(map.out_class), "class %u", map.out_class);
	close(map.out_fd);
	liar_close(fd);
}

/* As VFIO does: only for importers that can be notified. */
TEST(demanding, "an exporter that serves only importers it can stop")
{
	struct rashpa_map_make map;
	struct rashpa_table t;
	int fd, card;

	SKIP_IF(!have_f2, "only one software FPGA");
	fd = export(RASHPA_LIAR_REVOKES, RASHPA_LIAR_BAR);
	card = new_card();
	CHECK(import(card, fd, RASHPA_NIC_STATIC) == -EOPNOTSUPP, "it demands nothing");
	close(card);
	made(fd, RASHPA_MAP_DEVICE, &map);
	/* revoked while its function is reset, and there again after that */
	liar_tell(RASHPA_LIAR_REVOKE, fd, 0);
	becomes(map.out_fd, RASHPA_MAP_STATE_REVOKED, &t);
	CHECK(!t.count, "%u segments", t.count);
	liar_tell(RASHPA_LIAR_ALLOW, fd, RASHPA_LIAR_BAR);
	becomes(map.out_fd, RASHPA_MAP_STATE_VALID, &t);
	CHECK(is_peer(t.map_class), "class %u", t.map_class);
	close(map.out_fd);
	liar_close(fd);
}

/* As on Grace: memory of a device, although it has pages. */
TEST(coherent, "coherent memory of a device is a device's")
{
	struct rashpa_liar_export arg = memory_of(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_COHERENT);
	struct rashpa_map_make map;

	arg.out_fd = -1;
	if (ioctl(liar, RASHPA_LIAR_EXPORT, &arg) && errno == EOPNOTSUPP) {
		tap_skip("this kernel cannot have a device's memory with pages");
		return;
	}
	REQUIRE(arg.out_fd >= 0, "EXPORT: %s", strerror(errno));
	made(arg.out_fd, RASHPA_MAP_DEVICE, &map);
	CHECK(is_host(map.out_class), "class %u", map.out_class);
	close(map.out_fd);
	liar_close(arg.out_fd);
}

TEST(errors, "errors of exporters become errnos of user space")
{
	static const struct {
		uint32_t kind, flags, error;
		int err;
		const char *says;
	} rows[] = {
		{ RASHPA_LIAR_NO_ATTACH, 0, ENOTSUPP, EOPNOTSUPP, "attach|not support" },
		{ RASHPA_LIAR_NO_ATTACH, 0, EOPNOTSUPP, EOPNOTSUPP, "attach" },
		{ RASHPA_LIAR_NO_ATTACH, 0, ENOSPC, ENOSPC, "attach" },
		{ RASHPA_LIAR_NO_MAP, 0, ENOTSUPP, EOPNOTSUPP, "map|not support" },
		{ RASHPA_LIAR_NO_MAP, 0, ERESTARTSYS, EINTR, "signal" },
		{ RASHPA_LIAR_NO_MAP, 0, 4095, EREMOTEIO, "4095" },
		{ RASHPA_LIAR_NO_PIN, RASHPA_MAP_PIN, ENOTSUPP, EOPNOTSUPP, "pin|not support" },
		{ RASHPA_LIAR_NO_PIN, RASHPA_MAP_PIN, ENOSPC, ENOSPC, "pin" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rashpa_liar_export arg = memory_of(RASHPA_LIAR_MOVABLE, rows[i].kind);
		struct rashpa_map_make map;
		int fd;

		arg.error = rows[i].error;
		fd = liar_export(&arg);
		tap_note("error %u", rows[i].error);
		if (!ANSWERED(make(fd, rows[i].flags, &map), rows[i].err, rows[i].says))
			close(map.out_fd);
		liar_close(fd);
	}
}

TEST(errors_restore, "errors of exporters become errnos of user space in RESTORE, too")
{
	struct rashpa_liar_export arg = memory_of(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_HONEST);
	struct rashpa_map_make map;
	int fd;

	arg.error = ENOTSUPP;
	fd = liar_export(&arg);
	made(fd, 0, &map);
	liar_tell(RASHPA_LIAR_REVOKE, fd, 0);
	ANSWERED(map_restore(map.out_fd), EOPNOTSUPP, "not support");
	close(map.out_fd);
	liar_close(fd);
}

/* ------------------------------------------------- memory that moves ---- */

/*
 * It moves under a running stream. The driver stops the function, clears the entry, notifies the
 * holder, and maps the memory again. The holder must program the board again.
 */
TEST(moves, "memory that has moved is mapped again without a call")
{
	struct rashpa_table t;
	struct lent l;
	int i;

	rig_load(&f);
	lent_up(&l, &f, export(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_HONEST));
	for (i = 0; i < 3 && tap_ok(); i++) {
		u64 before = i ? t.generation : l.rig.made.out_generation;

		rig_run(&l.rig, 0, l.rig.made.out_segments);
		liar_tell(RASHPA_LIAR_MOVE, l.fd, RASHPA_LIAR_HONEST);
		rig_is_idle(l.rig.regs, 0);
		rig_entries_clear(l.rig.regs, 1);
		becomes(l.rig.map, RASHPA_MAP_STATE_VALID, &t);
		CHECK(t.generation >= before + 4, "generation %llu after %llu",
		      t.generation, before);
		rig_entries_clear(l.rig.regs, 1);
		memset(l.memory, 0, LIAR_LENGTH);
		ANSWERED(fpga_program(l.rig.map, 0, NULL), 0, NULL);
		rig_stream(&l.rig, 0, l.rig.made.out_segments, IMAGES);
		CHECK(filled(l.memory, LIAR_LENGTH, SEED), "the data differ");
	}
	lent_down(&l);
}

/* The driver follows such memory once a second, so that the function makes progress. */
TEST(moves_often, "memory that moves all the time")
{
	const u64 begin = now_ns(), second = 990000000;	/* but for a tick */
	int fd = export(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_HONEST), i;
	struct rashpa_map_make map;
	struct rashpa_table t;

	made(fd, 0, &map);
	for (i = 0; i < 3; i++) {
		liar_tell(RASHPA_LIAR_MOVE, fd, RASHPA_LIAR_HONEST);
		becomes(map.out_fd, RASHPA_MAP_STATE_VALID, &t);
	}
	CHECK(now_ns() - begin >= 3 * second, "%llu ns", (now_ns() - begin));
	close(map.out_fd);
	liar_close(fd);
}

/* Device memory that goes to the host and back, as a GPU's under pressure. */
TEST(moves_elsewhere, "memory that moves to the host and back")
{
	struct rashpa_map_make map;
	struct rashpa_table t;
	int fd;

	SKIP_IF(!have_f2, "only one software FPGA");
	fd = export(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_BAR);
	made(fd, 0, &map);
	CHECK(is_peer(map.out_class), "class %u", map.out_class);
	liar_tell(RASHPA_LIAR_MOVE, fd, RASHPA_LIAR_HONEST);
	becomes(map.out_fd, RASHPA_MAP_STATE_VALID, &t);
	CHECK(is_host(t.map_class), "class %u", t.map_class);
	liar_tell(RASHPA_LIAR_MOVE, fd, RASHPA_LIAR_BAR);
	becomes(map.out_fd, RASHPA_MAP_STATE_VALID, &t);
	CHECK(is_peer(t.map_class), "class %u", t.map_class);
	close(map.out_fd);
	/* a map of device memory only does not come back to the host */
	made(fd, RASHPA_MAP_DEVICE, &map);
	liar_tell(RASHPA_LIAR_MOVE, fd, RASHPA_LIAR_HONEST);
	ANSWERED(map_restore(map.out_fd), EREMOTEIO, "host");
	becomes(map.out_fd, RASHPA_MAP_STATE_REVOKED, &t);
	CHECK(!wait_fd(map.out_fd, POLLIN, 0), "it has come back");
	liar_tell(RASHPA_LIAR_MOVE, fd, RASHPA_LIAR_BAR);
	becomes(map.out_fd, RASHPA_MAP_STATE_VALID, &t);
	CHECK(is_peer(t.map_class), "class %u", t.map_class);
	close(map.out_fd);
	liar_close(fd);
}

/* The exporter reports the move, and a fence that the data are still on their way. */
TEST(moves_slowly, "memory is not mapped before its move has ended")
{
	struct rashpa_map_make map;
	struct rashpa_table t;
	int fd = export(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_HONEST), fence;

	made(fd, 0, &map);
	fence = liar_fence(RASHPA_LIAR_FENCE, fd, 0);
	liar_tell(RASHPA_LIAR_MOVE, fd, RASHPA_LIAR_HONEST);
	becomes(map.out_fd, RASHPA_MAP_STATE_REVOKED, &t);
	others_come_back(&f);
	CHECK(!wait_fd(map.out_fd, POLLIN, 0), "it came back before its data");
	liar_arrive(fence);
	becomes(map.out_fd, RASHPA_MAP_STATE_VALID, &t);
	close(fence);
	close(map.out_fd);
	liar_close(fd);
}

/* A map that waits to be restored ends with its file, and with its function. */
TEST(closed_while_moving, "a map of moving memory is closed, and its function unbound")
{
	int fd = export(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_HONEST), fence;
	struct rashpa_map_make map;

	fence = liar_fence(RASHPA_LIAR_FENCE, fd, 0);
	close(fence);
	made(fd, 0, &map);
	fence = liar_fence(RASHPA_LIAR_FENCE, fd, 0);
	liar_tell(RASHPA_LIAR_MOVE, fd, RASHPA_LIAR_HONEST);
	close(map.out_fd);
	liar_is_free(fd);
	close(fence);
	made(fd, 0, &map);
	fence = liar_fence(RASHPA_LIAR_FENCE, fd, 0);
	liar_tell(RASHPA_LIAR_MOVE, fd, RASHPA_LIAR_HONEST);
	CHECK(!fpga_unbind(&f), "unbind");
	liar_is_free(fd);
	close(fence);
	ANSWERED(map_restore(map.out_fd), ENODEV, f.name);
	close(map.out_fd);
	fpga_again(&f);
	close(fd);
}

/* Without a quiesce sequence the driver disables bus mastering, and enables it at RESTORE. */
TEST(moves_unstoppable, "a function that cannot be stopped goes on only after RESTORE")
{
	/* a function without a profile reaches 32 bits */
	int fd = export(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_LOW);
	struct rashpa_map_make map;
	struct rashpa_table t;

	ANSWERED(fpga_profile_none(&f), 0, NULL);
	made(fd, 0, &map);
	CHECK(fpga_is_master(&f), "bus mastering is off");
	/* addresses that were never seen need no stop */
	table_seen(&map);
	liar_tell(RASHPA_LIAR_MOVE, fd, RASHPA_LIAR_HONEST);
	becomes(map.out_fd, RASHPA_MAP_STATE_REVOKED, &t);
	if (have_f2)
		others_come_back(&f2);
	CHECK(!wait_fd(map.out_fd, POLLIN, 0), "it came back without a call");
	CHECK(!fpga_is_master(&f), "bus mastering is on");
	ANSWERED(map_restore(map.out_fd), 0, NULL);
	becomes(map.out_fd, RASHPA_MAP_STATE_VALID, &t);
	CHECK(fpga_is_master(&f), "bus mastering is off");
	close(map.out_fd);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	liar_close(fd);
}

TEST(slow_exporter, "a slow exporter holds up neither its function nor its memory")
{
	int fd = export(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_HONEST), buffer = buffer_alloc(MIB, NULL);
	int fence = liar_fence(RASHPA_LIAR_FENCE, fd, 0);
	struct rashpa_map_make map = { HEAD(map), .fd = fd, .out_fd = -1 }, other;
	struct caller c = { .fd = f.fd, .cmd = RASHPA_IOC_MAP_MAKE, .arg = &map };
	struct rashpa_device_info info;

	if (CHECK(caller_waits(&c, "dma_fence"), "MAP does not wait")) {
		ANSWERED(fpga_info(&f, &info), 0, NULL);
		CHECK(!atomic_load(&c.done), "DEVICE_INFO has waited for it");
		made(buffer, 0, &other);
		close(other.out_fd);
		CHECK(!atomic_load(&c.done), "another map has waited for it");
		liar_tell(RASHPA_LIAR_COUNT, fd, 0);
		CHECK(!atomic_load(&c.done), "its exporter has waited for it");
	}
	liar_arrive(fence);
	ANSWERED(caller_ends(&c), 0, NULL);
	close(map.out_fd);
	close(fence);
	liar_close(fd);
	close(buffer);
}

/* ---------------------------------------------------------- addresses --- */

/* The driver compares the mask with the addresses, not with the machine. */
TEST(low, "memory below 4 GiB is within reach of 32 bits, above it is not")
{
	struct rashpa_profile_set p = { HEAD(p), .dma_bits = 32 };
	struct rashpa_map_make map;
	int low, high;

	SKIP_IF(iommu, "behind an IOMMU all memory has an address that fits");
	SKIP_IF(ram_bytes() < 3 * GIB, "no memory above 4 GiB in this guest");
	low = export(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_LOW);
	high = export(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_HONEST);
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	made(low, 0, &map);
	CHECK(is_host(map.out_class), "class %u", map.out_class);
	close(map.out_fd);
	ANSWERED(make(high, 0, &map), EOVERFLOW, "32 bits|IOMMU");
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	liar_is_free(low);
	liar_is_free(high);
	close(low);
	close(high);
}

TEST(ids, "each map has another id")
{
	struct rashpa_map_make first, second;
	int fd = buffer_alloc(MIB, NULL);

	made(fd, 0, &first);
	close(first.out_fd);
	made(fd, 0, &second);
	close(second.out_fd);
	CHECK(first.out_id && second.out_id && first.out_id != second.out_id, "%u, then %u",
	      first.out_id, second.out_id);
	close(fd);
}

/* ------------------------------------------------------------------------ */

static void look_at_core(void)
{
	int fd = export(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_HONEST), card = new_card();

	CHECK(!import(card, fd, RASHPA_NIC_REVOCABLE), "import");
	core_pins = pins(fd);
	close(card);
	close(fd);
}

TEST(unload, "the modules unload")
{
	int err;

	close(nic);
	err = module_unload("nic");
	CHECK(!err, "nic: %s", strerror(-err));
	close(liar);
	err = module_unload("liar");
	CHECK(!err, "liar: %s", strerror(-err));
	tap_after = NULL;	/* with fewer files */
}

void setup(void)
{
	const char *why = module_load("liar", &liar) ?: module_load("nic", &nic);

	if (why)
		tap_skip_all("%s", why);
	fpga_need(&f);
	have_f2 = fpga_try(&f2, 1);
	iommu = fpga_iommu(&f);
	look_at_core();
	p2p_bridge("allow");
}

void teardown_all(void)
{
	module_unload("nic");
	module_unload("liar");
}
