// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: boards with the reference interface. See rashpa-board.h. */
#include <rashpa-board.h>
#include "lib/internal.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BLOCKS_MAX	64	/* reject a list that does not end */
#define USERS		32	/* bits of a mask of users */
#define RINGS		16	/* first bit of a ring */

struct window {
	struct window *next;
	char name[32];
	struct rashpa_board_view view;
	uint64_t mapped;		/* bytes */
};

struct rashpa_board {
	unsigned int number;
	int device;			/* /dev/rashpa/fpgaN */
	struct rashpa_device_info about;
	volatile uint8_t *registers;
	uint64_t length;		/* bytes of registers */
	struct window *windows;
	struct rashpa_target *targets;
};

struct rashpa_target {
	struct rashpa_board *board;
	struct rashpa_target *next;
	struct {
		int map;		/* 0: none, or that of an earlier user */
		struct rashpa_target_info info;
	} user[USERS];
};

/* --- claims --- */

/* A file of procfs has a line that begins so and is a flock of the node: the process that took it. */
static int lock_in(const char *path, const char *begin, const struct stat *node)
{
	FILE *file = fopen(path, "re");
	char line[256];
	unsigned int major, minor;
	unsigned long inode;
	int pid, found = 0;

	while (file && !found && fgets(line, sizeof(line), file))
		if (!strncmp(line, begin, strlen(begin)) &&
		    sscanf(line + strlen(begin), "%*u: FLOCK %*s %*s %d %x:%x:%lu", &pid, &major,
			   &minor, &inode) == 4 &&
		    makedev(major, minor) == node->st_dev && inode == node->st_ino)
			found = pid;
	if (file)
		fclose(file);
	return found;
}

/*
 * Name the process that has claimed the function. /proc/locks names the process that took the lock.
 * Another process may have the file by now (fork(), a socket), and yet another one the number.
 */
static int fail_claimed(int device, const char *node)
{
	char name[64] = "", path[64];
	glob_t found = {};
	struct stat st;
	int took, pid = 0;
	FILE *file;

	if (fstat(device, &st))
		return fail(errno, "%s: %s", node, strerror(errno));
	took = lock_in("/proc/locks", "", &st);
	if (!glob("/proc/[0-9]*/fdinfo/*", 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc && !pid; i++)
			if (lock_in(found.gl_pathv[i], "lock:\t", &st))
				sscanf(found.gl_pathv[i], "/proc/%d/", &pid);
	globfree(&found);
	snprintf(path, sizeof(path), "/proc/%d/fdinfo", took);
	if (!pid && access(path, R_OK) && errno == EACCES)
		pid = took;	/* another user's process, probably the same */
	if (!pid)
		return fail(EBUSY, "%s: another program has claimed it by a descriptor of process %d: stop that program (as root, fuser -v /dev/rashpa/%s lists who has the node open)",
			    node, took, node);
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (file && fgets(name, sizeof(name), file))
		name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
	return fail(EBUSY, "%s: process %d%s%s%s has claimed it: stop the producer first (kill %d)",
		    node, pid, *name ? " (" : "", name, *name ? ")" : "", pid);
}

/*
 * Check that the function has no addresses. The end of one more map could stop a stream that uses
 * them. A map that was never programmed, nor seen, is harmless.
 */
static int check_maps(int device, const char *node)
{
	const struct rashpa_holding *first = NULL;
	struct rashpa_holding *held;
	int n, maps = 0;

	n = rashpa_node_list(device, &held);
	if (n < 0)
		return librashpa_prefix(n, "%s: ", node);
	for (int i = 0; i < n; i++) {
		if (held[i].resource != RASHPA_RESOURCE_MAPS ||
		    !(held[i].flags & (RASHPA_HOLDING_PROGRAMMED | RASHPA_HOLDING_TOLD)))
			continue;
		first = maps++ ? first : &held[i];
	}
	if (maps)
		fail(EBUSY, "%s: it has addresses of %d maps, and to release one more would stop its DMA: stop the producer first (process %d (%s) of user %u made map %u: rashpactl map release %u)",
		     node, maps, first->pid, first->comm, first->uid, first->id, first->id);
	free(held);
	return maps ? -EBUSY : 0;
}

int rashpa_device_claim(int device)
{
	char path[32], link[PATH_MAX];
	const char *node = link;
	ssize_t n;
	int error;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", device);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return fail(EBADF, "this is not a node");
	link[n] = '\0';
	if (strrchr(link, '/'))
		node = strrchr(link, '/') + 1;
	if (flock(device, LOCK_EX | LOCK_NB))
		return fail_claimed(device, node);
	error = check_maps(device, node);
	if (error)
		flock(device, LOCK_UN);
	return error;
}

/* --- registers --- */

uint32_t rashpa_board_read(const struct rashpa_board *b, uint32_t offset)
{
	return *(volatile uint32_t *)(b->registers + offset);
}

uint64_t rashpa_board_read64(const struct rashpa_board *b, uint32_t offset)
{
	return *(volatile uint64_t *)(b->registers + offset);
}

void rashpa_board_write(const struct rashpa_board *b, uint32_t offset, uint32_t value)
{
	*(volatile uint32_t *)(b->registers + offset) = value;
}

void rashpa_board_write64(const struct rashpa_board *b, uint32_t offset, uint64_t value)
{
	*(volatile uint64_t *)(b->registers + offset) = value;
}

/* A removed function reads as all ones. Ask after the reads that matter. */
static int check_answer(const struct rashpa_board *b)
{
	return rashpa_board_read(b, RFPGA_ID) == RFPGA_ID_VALUE ? 0 :
	       fail(ENODEV, "fpga%u: it does not answer any more", b->number);
}

/* The range that the window has in a board without a profile. */
static bool usual_window(const char *name, struct rashpa_window_make *window)
{
	static const struct {
		const char *name;
		uint32_t bar, offset, length;	/* length 0: to the end of the BAR */
	} usual[] = {
		{ "registers", RFPGA_BAR_REGS, 0, RFPGA_BOUNDS },
		{ "bounds", RFPGA_BAR_REGS, RFPGA_BOUNDS, RFPGA_TABLE - RFPGA_BOUNDS },
		{ "doorbells", RFPGA_BAR_DOORBELL, 0, 0 },
		{ "memory", RFPGA_BAR_MEMORY, 0, 0 },
	};
	unsigned int page;
	int end;

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
		if (strcmp(usual[i].name, name))
			continue;
		*window = (struct rashpa_window_make) {
			.bar = usual[i].bar, .offset = usual[i].offset, .length = usual[i].length,
		};
		return true;
	}
	if (sscanf(name, "doorbell%u%n", &page, &end) != 1 || name[end])
		return false;
	*window = (struct rashpa_window_make) {
		.bar = RFPGA_BAR_DOORBELL, .offset = (uint64_t)page * RFPGA_DOORBELL_PAGE,
		.length = RFPGA_DOORBELL_PAGE,
	};
	return true;
}

/* The window with this name in the profile, or without one the usual range of the BAR. */
static int make_window(const struct rashpa_board *b, struct window *w)
{
	struct rashpa_window_make window = {};
	struct rashpa_region_info region;
	int fd;

	snprintf(window.name, sizeof(window.name), "%s", w->name);
	fd = rashpa_device_window(b->device, &window);
	if (fd == -ENOENT && usual_window(w->name, &window)) {
		fd = rashpa_device_region(b->device, window.bar, &region);
		if (!window.length)
			window.length = region.out_length - window.offset;
		if (!fd)
			fd = rashpa_device_window(b->device, &window);
	}
	w->mapped = window.out_length;
	return fd;
}

static int open_window(struct rashpa_board *b, struct window *w)
{
	void *base;

	w->view.fd = make_window(b, w);
	if (w->view.fd < 0)
		return librashpa_prefix(w->view.fd, "fpga%u: window \"%s\": ", b->number, w->name);
	base = mmap(NULL, w->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, w->view.fd, 0);
	if (base == MAP_FAILED) {
		const int error = errno;

		close(w->view.fd);
		return fail(error, "fpga%u: window \"%s\": cannot map it: %s", b->number, w->name,
			    error == EBUSY ? "the kernel keeps a page of it, which the kernel's log names, for itself: use the parts before and after it" :
					     strerror(error));
	}
	w->view.base = base;
	w->view.length = w->mapped;
	return 0;
}

int rashpa_board_window(struct rashpa_board *b, const char *name, struct rashpa_board_view *view)
{
	struct window *w;
	uint64_t bytes;
	int error;

	if (strlen(name) >= sizeof(w->name))
		return fail(EINVAL, "fpga%u: \"%s\" is too long for the name of a window", b->number,
			    name);
	for (w = b->windows; w && strcmp(w->name, name); w = w->next)
		;
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w)
			return fail(ENOMEM, "fpga%u: no memory", b->number);
		snprintf(w->name, sizeof(w->name), "%s", name);
		error = open_window(b, w);
		if (error) {
			free(w);
			return error;
		}
		w->next = b->windows;
		b->windows = w;
		if (!strcmp(name, "memory")) {
			bytes = rashpa_board_read64(b, RFPGA_MEMORY_SIZE);
			w->view.length = bytes < w->mapped ? bytes : w->mapped;
		}
	}
	*view = w->view;
	return 0;
}

/* "fpga3", "3", "/dev/rashpa/fpga3" */
static bool parse_name(const char *name, unsigned int *number)
{
	const char *slash = strrchr(name, '/');
	unsigned long n;
	char *end;

	name = slash ? slash + 1 : name;
	if (!strncmp(name, "fpga", strlen("fpga")))
		name += strlen("fpga");
	n = strtoul(name, &end, 10);
	*number = n;
	return isdigit((unsigned char)*name) && !*end && n <= UINT16_MAX;
}

static int open_registers(struct rashpa_board *b)
{
	struct rashpa_board_view view;
	int error = rashpa_board_window(b, "registers", &view);
	uint32_t id, version;

	if (error)
		return error;
	b->registers = view.base;
	b->length = view.length;
	if (view.length < RFPGA_BOUNDS)
		return fail(ENOTSUP, "fpga%u: the window \"registers\" is shorter than the reference interface: check the profile",
			    b->number);
	id = rashpa_board_read(b, RFPGA_ID);
	version = rashpa_board_read(b, RFPGA_VERSION);
	if (id != RFPGA_ID_VALUE)
		return fail(ENOTSUP, "fpga%u: the ID register is %#x and not %#x: not the reference interface",
			    b->number, id, RFPGA_ID_VALUE);
	if (version >> 16 != RFPGA_VERSION_VALUE >> 16 || version < RFPGA_VERSION_VALUE)
		return fail(ENOTSUP, "fpga%u: version %u.%u of the interface, this library knows %u.%u and later minors",
			    b->number, version >> 16, version & 0xffff, RFPGA_VERSION_VALUE >> 16,
			    RFPGA_VERSION_VALUE & 0xffff);
	return 0;
}

int rashpa_board_open(const char *name, struct rashpa_board **board)
{
	struct rashpa_board *b = calloc(1, sizeof(*b));
	int error;

	*board = NULL;
	if (!b)
		return fail(ENOMEM, "%s: no memory", name);
	b->device = -1;
	if (!parse_name(name, &b->number)) {
		free(b);
		return fail(EINVAL, "\"%s\" is not fpgaN: see rashpactl list", name);
	}
	*board = b;
	b->device = error = rashpa_device_open(b->number);
	if (error >= 0) {
		error = rashpa_device_get_info(b->device, &b->about);
		if (error)
			librashpa_prefix(error, "fpga%u: ", b->number);
	}
	if (!error)
		error = open_registers(b);
	if (error) {
		rashpa_board_close(b);
		*board = NULL;
	}
	return error;
}

void rashpa_board_close(struct rashpa_board *b)
{
	struct window *w;

	if (!b)
		return;
	while (b->targets)
		rashpa_target_close(b->targets);
	while ((w = b->windows)) {
		b->windows = w->next;
		munmap((void *)(uintptr_t)w->view.base, w->mapped);
		close(w->view.fd);
		free(w);
	}
	if (b->device >= 0)
		close(b->device);
	free(b);
}

int rashpa_board_device(const struct rashpa_board *b)
{
	return b->device;
}

static unsigned int dtps_of(const struct rashpa_board *b)
{
	const unsigned int n = RFPGA_CAPS_DTPS(rashpa_board_read(b, RFPGA_CAPS));

	return n < RFPGA_DTPS_MAX ? n : RFPGA_DTPS_MAX;
}

static uint32_t status_of(const struct rashpa_board *b, unsigned int dtp)
{
	return rashpa_board_read(b, RFPGA_DTP(dtp) + RFPGA_DTP_STATUS);
}

int rashpa_board_claim(struct rashpa_board *b)
{
	int error = rashpa_device_claim(b->device);

	if (!error)
		error = rashpa_device_get_info(b->device, &b->about);
	if (!error && b->about.out_state == RASHPA_STATE_STUCK)
		error = fail(EIO, "fpga%u: it is stuck: reset it (rashpactl fpga reset fpga%u)",
			     b->number, b->number);
	if (!error)
		error = check_answer(b);
	for (unsigned int i = 0; i < dtps_of(b) && !error; i++)
		if (status_of(b, i) & RFPGA_DTP_RUNNING)
			error = fail(EBUSY, "fpga%u: DTP %u runs already: stop the other producer first (rashpactl fpga quiesce fpga%u)",
				     b->number, i, b->number);
	if (error)
		flock(b->device, LOCK_UN);
	return error;
}

int rashpa_board_get_info_sized(const struct rashpa_board *b, struct rashpa_board_info *info,
				size_t size)
{
	const uint32_t caps = rashpa_board_read(b, RFPGA_CAPS);
	const uint32_t limits = rashpa_board_read(b, RFPGA_LIMITS);
	const uint32_t vectors = RFPGA_CAPS_VECTORS(caps), bits = RFPGA_LIMITS_COUNT(limits);
	struct rashpa_board_info all = {
		.number = b->number,
		.version = rashpa_board_read(b, RFPGA_VERSION),
		.dtps = dtps_of(b),
		.vectors = vectors < b->about.out_vectors ? vectors : b->about.out_vectors,
		.entries = RFPGA_CAPS_ENTRIES(caps),
		.features = rashpa_board_read(b, RFPGA_FEATURES),
		.tick_rate = rashpa_board_read(b, RFPGA_TICK_RATE),
		.stop_time_us = rashpa_board_read(b, RFPGA_STOP_TIME),
		.count_most = bits && bits < 32 ? (1u << bits) - 1 : UINT32_MAX,
		.align = 1u << (RFPGA_LIMITS_ALIGN(limits) & 31),
		.device_flags = b->about.out_flags,
	};
	struct rashpa_block unit;

	if (!rashpa_board_find_block(b, RFPGA_BLOCK_UNIT, RFPGA_UNIT_SIZE, &unit) &&
	    rashpa_board_read(b, unit.base + RFPGA_UNIT_KIND) == RFPGA_UNIT_PRETREAT)
		all.units = unit.count;
	sized_copy(info, size, &all, sizeof(all));
	return check_answer(b);
}

int rashpa_board_block(const struct rashpa_board *b, unsigned int i, struct rashpa_block *block)
{
	const uint64_t at = rashpa_board_read(b, RFPGA_BLOCKS) + (uint64_t)i * RFPGA_BLOCK_STRIDE;
	uint32_t type = RFPGA_BLOCK_NONE;

	if (i < BLOCKS_MAX && !(at % 4) && at + RFPGA_BLOCK_STRIDE <= b->length)
		type = rashpa_board_read(b, at + RFPGA_BLOCK_TYPE);
	if ((type & 0xffff) == RFPGA_BLOCK_NONE)
		return fail(ENOENT, "fpga%u: its list of blocks has ended", b->number);
	*block = (struct rashpa_block) {
		.type = type & 0xffff,
		.count = type >> 16,
		.base = rashpa_board_read(b, at + RFPGA_BLOCK_BASE),
		.step = rashpa_board_read(b, at + RFPGA_BLOCK_STEP),
		.doorbell = rashpa_board_read(b, at + RFPGA_BLOCK_DOORBELL),
	};
	return 0;
}

int rashpa_board_find_block(const struct rashpa_board *b, uint32_t type, uint32_t size,
			    struct rashpa_block *block)
{
	int error;

	for (unsigned int i = 0; !(error = rashpa_board_block(b, i, block)); i++) {
		const uint64_t last = block->base + (block->count - 1ull) * block->step;

		if (block->type == type && block->count && !(block->base % 4) &&
		    !(block->step % 4) && last + size <= b->length)
			break;
	}
	return error;
}

/* --- targets --- */

/* Entries of the table that a user may have. */
static int entries_of(const struct rashpa_board *b, unsigned int user,
		      struct rashpa_target_info *range)
{
	struct rashpa_engine_info e;
	char name[16];
	int error;

	*range = (struct rashpa_target_info) {
		.entries = RFPGA_CAPS_ENTRIES(rashpa_board_read(b, RFPGA_CAPS)), .engine = -1,
	};
	snprintf(name, sizeof(name), user < RINGS ? "dtp%u" : "ring%u", user % RINGS);
	for (uint32_t i = 0; i < b->about.out_engines; i++) {
		error = rashpa_device_engine(b->device, i, &e);
		if (error)
			return librashpa_prefix(error, "fpga%u: ", b->number);
		if (strcmp(e.out_name, name) || e.out_flags & RASHPA_ENGINE_ABSENT)
			continue;
		range->first = e.out_first;
		range->entries = e.out_count;
		range->engine = (int)i;
		return 0;
	}
	if (!b->about.out_engines)
		return 0;
	return fail(ENOENT, "fpga%u: its profile has engines, and no \"%s\" that is on board",
		    b->number, name);
}

/* A target that has one of these entries: the entry after its last one; 0: they are free. */
static uint32_t taken(const struct rashpa_board *b, uint32_t first, uint32_t count)
{
	for (const struct rashpa_target *t = b->targets; t; t = t->next) {
		for (unsigned int i = 0; i < USERS; i++) {
			const struct rashpa_target_info *has = &t->user[i].info;

			if (has->first < first + count && first < has->first + has->entries)
				return has->first + has->entries;
		}
	}
	return 0;
}

static int map_for(struct rashpa_target *t, unsigned int user, int dmabuf, uint32_t flags)
{
	struct rashpa_map_make map = {
		.head.flags = flags, .fd = dmabuf, .direction = RASHPA_BIDIRECTIONAL,
	};
	struct rashpa_program program = {};
	struct rashpa_board *b = t->board;
	struct rashpa_target_info range;
	uint32_t need, next;
	int error = entries_of(b, user, &range);

	if (error)
		return error;
	t->user[user].map = rashpa_device_map(b->device, &map);
	if (t->user[user].map < 0)
		return librashpa_prefix(t->user[user].map, "cannot map it for fpga%u: ", b->number);
	need = b->about.out_flags & RASHPA_DEVICE_FETCH ? 1 : map.out_segments;
	program.first = range.first;
	while ((next = taken(b, program.first, need)))
		program.first = next;
	if ((uint64_t)program.first + need > (uint64_t)range.first + range.entries)
		return fail(ENOSPC, "its map has %" PRIu32 " segments, but fpga%u keeps only %" PRIu32
			    " entries for it: make a contiguous buffer", map.out_segments,
			    b->number, range.first + range.entries - program.first);
	error = rashpa_map_program(t->user[user].map, &program);
	if (error)
		return librashpa_prefix(error, "fpga%u: cannot program the address table: ",
					b->number);
	t->user[user].info = (struct rashpa_target_info) {
		.first = program.first, .entries = need, .segments = map.out_segments,
		.map_class = map.out_class, .engine = range.engine,
	};
	return 0;
}

/* An engine reads only its own entries, so each engine gets a map; without engines, all share one. */
int rashpa_board_map(struct rashpa_board *b, uint32_t users, int dmabuf, uint32_t flags,
		     struct rashpa_target **target)
{
	struct rashpa_target *t = calloc(1, sizeof(*t));
	const unsigned int first = users ? __builtin_ctz(users) : 0;
	int error = 0;

	*target = NULL;
	if (!t)
		return fail(ENOMEM, "fpga%u: no memory", b->number);
	t->board = b;
	t->next = b->targets;
	b->targets = t;
	for (unsigned int i = first; i < USERS && !error; i++) {
		if (!(users & 1u << i))
			continue;
		if (i > first && !b->about.out_engines)
			t->user[i].info = t->user[first].info;
		else
			error = map_for(t, i, dmabuf, flags);
	}
	if (error)
		rashpa_target_close(t);
	else
		*target = t;
	return error;
}

void rashpa_target_close(struct rashpa_target *t)
{
	struct rashpa_target **link;

	if (!t)
		return;
	for (unsigned int i = 0; i < USERS; i++)
		if (t->user[i].map > 0)
			close(t->user[i].map);
	for (link = &t->board->targets; *link != t; link = &(*link)->next)
		;
	*link = t->next;
	free(t);
}

int rashpa_target_get_info_sized(const struct rashpa_target *t, uint32_t user,
				 struct rashpa_target_info *info, size_t size)
{
	const unsigned int i = user ? __builtin_ctz(user) : 0;

	if (!user || !t->user[i].info.entries)
		return fail(EINVAL, "fpga%u: the memory is not mapped for that user", t->board->number);
	sized_copy(info, size, &t->user[i].info, sizeof(t->user[i].info));
	return 0;
}

/* --- DTPs --- */

_Static_assert(offsetof(struct rfpga_dtp, mode) == RFPGA_DTP_MODE &&
	       offsetof(struct rfpga_dtp, src_base) == RFPGA_DTP_SRC_BASE &&
	       offsetof(struct rfpga_dtp, src_line) == RFPGA_DTP_SRC_LINE &&
	       offsetof(struct rfpga_dtp, dst_first) == RFPGA_DTP_DST_FIRST &&
	       offsetof(struct rfpga_dtp, lock_offset) == RFPGA_DTP_LOCK_OFFSET &&
	       offsetof(struct rfpga_dtp, first_slot) == RFPGA_DTP_FIRST_SLOT &&
	       offsetof(struct rfpga_dtp, source) == RFPGA_DTP_SOURCE &&
	       offsetof(struct rfpga_dtp, run) == RFPGA_DTP_RUN &&
	       offsetof(struct rfpga_dtp, first_frame) == RFPGA_DTP_FIRST_FRAME,
	       "struct rfpga_dtp is not as the registers are");

void rashpa_board_configure(const struct rashpa_board *b, unsigned int dtp,
			    const struct rfpga_dtp *config)
{
	for (uint32_t at = RFPGA_DTP_MODE; at < sizeof(*config); at += 4)
		rashpa_board_write(b, RFPGA_DTP(dtp) + at, rfpga_dtp_word(config, at));
}

#define FOR_EACH(n, dtps)	for (unsigned int n = 0; n < RFPGA_DTPS_MAX; n++) if ((dtps) & 1u << (n))

static void command(const struct rashpa_board *b, uint32_t dtps, uint32_t control)
{
	FOR_EACH(n, dtps)
		rashpa_board_write(b, RFPGA_DTP(n) + RFPGA_DTP_CONTROL, control);
}

int rashpa_board_start(const struct rashpa_board *b, uint32_t dtps)
{
	/* members of a group start together and share events */
	if (dtps & (dtps - 1) && rashpa_board_read(b, RFPGA_FEATURES) & RFPGA_FEATURE_GROUP)
		rashpa_board_write(b, RFPGA_GROUP_START, dtps);
	else
		command(b, dtps, RFPGA_DTP_START);
	return rashpa_board_status(b, dtps, NULL, NULL);
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int rashpa_board_stop(const struct rashpa_board *b, uint32_t dtps, int64_t timeout_ns)
{
	const int64_t begin = now();
	uint32_t any;
	int error;

	command(b, dtps, RFPGA_DTP_STOP);
	while (error = rashpa_board_status(b, dtps, &any, NULL), any & RFPGA_DTP_RUNNING) {
		if (error == -ENODEV)
			return error;
		if (timeout_ns >= 0 && now() - begin > timeout_ns)
			return fail(ETIMEDOUT, "fpga%u: it ignores STOP: reset it (rashpactl fpga reset fpga%u)",
				    b->number, b->number);
		poll(NULL, 0, 1);
	}
	return 0;
}

const char *rashpa_fault_name(uint32_t cause)
{
	static const char * const names[] = {
		[RFPGA_FAULT_NONE] = "none", [RFPGA_FAULT_ENTRY] = "entry",
		[RFPGA_FAULT_BUS] = "bus", [RFPGA_FAULT_MASTER] = "master",
		[RFPGA_FAULT_SOURCE] = "source", [RFPGA_FAULT_CONFIG] = "config",
		[RFPGA_FAULT_DESC] = "descriptor",
	};

	return cause < ARRAY_SIZE(names) ? names[cause] : "?";
}

int rashpa_board_status(const struct rashpa_board *b, uint32_t dtps, uint32_t *any, uint32_t *all)
{
	uint32_t some = 0, each = UINT32_MAX, one, at = 0;
	int error;

	FOR_EACH(n, dtps) {
		one = status_of(b, n);
		some |= one;
		each &= one;
		at = one & RFPGA_DTP_FAULTED ? RFPGA_DTP(n) : at;
	}
	if (any)
		*any = some;
	if (all)
		*all = each;
	error = check_answer(b);
	if (error || !at)
		return error;
	return fail(EIO, "fpga%u: DTP %" PRIu32 " stopped with a fault: %s at address %#" PRIx64,
		    b->number, (at - RFPGA_DTP(0)) / (RFPGA_DTP(1) - RFPGA_DTP(0)),
		    rashpa_fault_name(rashpa_board_read(b, at + RFPGA_DTP_FAULT_CAUSE)),
		    rashpa_board_read64(b, at + RFPGA_DTP_FAULT_ADDR));
}

/* Members of struct rashpa_dtp_stat from bytes on, which are sums. */
static const uint32_t sums[] = {
	RFPGA_DTP_C_BYTES, RFPGA_DTP_C_DESCRIPTORS, RFPGA_DTP_C_EVENTS, RFPGA_DTP_C_OVERRUNS,
	RFPGA_DTP_C_FAULTS, RFPGA_DTP_C_DROPPED, RFPGA_DTP_C_LOST, RFPGA_DTP_C_STALL,
	RFPGA_DTP_C_STALL_BUS, RFPGA_DTP_C_STALL_SOURCE,
};

#define SUMS		(offsetof(struct rashpa_dtp_stat, bytes) / sizeof(uint64_t))

_Static_assert(offsetof(struct rashpa_dtp_stat, start) == (SUMS + ARRAY_SIZE(sums)) * sizeof(uint64_t),
	       "sums are not the members from bytes to stall_source");

static int count(const struct rashpa_board *b, uint32_t dtps, struct rashpa_dtp_stat *c)
{
	uint64_t *sum = (uint64_t *)c + SUMS;

	*c = (struct rashpa_dtp_stat) {
		.images = UINT64_MAX, .stacks = UINT64_MAX, .start = UINT64_MAX,
	};
	FOR_EACH(n, dtps) {
		const uint32_t dtp = RFPGA_DTP(n);
		const uint64_t images = rashpa_board_read64(b, dtp + RFPGA_DTP_C_IMAGES);
		const uint64_t stacks = rashpa_board_read64(b, dtp + RFPGA_DTP_C_STACKS);
		const uint64_t first = rashpa_board_read64(b, dtp + RFPGA_DTP_C_START);
		const uint64_t last = rashpa_board_read64(b, dtp + RFPGA_DTP_C_STOP);
		const uint64_t peak = rashpa_board_read64(b, dtp + RFPGA_DTP_FIFO_PEAK);

		/* An image is complete when all DTPs have sent it. */
		c->images = images < c->images ? images : c->images;
		c->stacks = stacks < c->stacks ? stacks : c->stacks;
		c->start = first < c->start ? first : c->start;
		c->stop = last > c->stop ? last : c->stop;
		c->fifo_peak = peak > c->fifo_peak ? peak : c->fifo_peak;
		for (size_t i = 0; i < ARRAY_SIZE(sums); i++)
			sum[i] += rashpa_board_read64(b, dtp + sums[i]);
	}
	return check_answer(b);
}

int rashpa_board_get_stat_sized(const struct rashpa_board *b, uint32_t dtps,
				struct rashpa_dtp_stat *stat, size_t size)
{
	struct rashpa_dtp_stat all;
	const int error = count(b, dtps, &all);

	sized_copy(stat, size, &all, sizeof(all));
	return error;
}
