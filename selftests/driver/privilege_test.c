// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=8 */
/*
 * Privileges: every row of Documentation/privileges.rst, tried as an outsider, as a member of the
 * group rashpa, as a member with CAP_SYS_RAWIO, and as root. A call that capabilities allow is
 * tried with each of them alone, and with all others.
 */
#include <glob.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <rashpa-fpga.h>
#include "common.h"

enum role { NOBODY, MEMBER, RAWIO, ROOT, ROLES, ALONE = ROLES, OTHERS };

static const char *const role_names[] = {
	"nobody", "a member", "a member with CAP_SYS_RAWIO", "root",
	"a member with one capability alone", "a member with all other capabilities",
};

#define CAP(name)	(1ULL << CAP_##name)

#define OTHER		"st-priv-root"		/* root's, mode 0600 */
#define SHARED		"st-priv-shared"	/* root's, group rashpa, mode 0660 */
#define NOBODY_ID	65534
#define PLACES		(RASHPA_LISTENERS_VECTOR / 2)	/* of one user at a vector */

static struct fpga f;
static gid_t group;
static void *held;

/* In a child, for good; of the capabilities that root has, those in @keep stay. */
static void become(enum role role, u64 keep)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	int i;

	if (role == ROOT)
		return;
	if (setgroups(role == NOBODY ? 0 : 1, &group) || setresgid(NOBODY_ID, NOBODY_ID,
								   NOBODY_ID) ||
	    prctl(PR_SET_KEEPCAPS, 1) || setresuid(NOBODY_ID, NOBODY_ID, NOBODY_ID) ||
	    syscall(SYS_capget, &head, data))
		tap_bail("not %s: %s", role_names[role], strerror(errno));
	for (i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(keep >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &head, data))
		tap_bail("capset: %s", strerror(errno));
}

/* ------------------------------------------- things to do: 0 or -errno --- */

/* @name: in /dev/rashpa, or a path */
static int node(const char *name, int flags)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s%s", name[0] == '/' ? "" : "/dev/rashpa/", name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int call_node(const char *name, int flags, unsigned long cmd, void *arg)
{
	int fd = node(name, flags);

	return fd < 0 ? fd : call(fd, cmd, arg);
}

static int on_memory(unsigned long cmd, void *arg)
{
	return call_node("memory", O_RDWR, cmd, arg);
}

static int on_fpga(unsigned long cmd, void *arg)
{
	return call_node(f.name, O_RDWR, cmd, arg);
}

static int do_info(void)
{
	struct rashpa_info info = { HEAD(info), .fd = buffer_open(SHARED, O_RDONLY) };

	return info.fd < 0 ? info.fd : on_memory(RASHPA_IOC_INFO, &info);
}

static int do_export(void)
{
	return buffer_open(SHARED, O_RDWR);
}

/* A name that stays: the owner may take it away, so this is for others. */
static int do_remove(void)
{
	struct rashpa_remove r = { HEAD(r) };
	int err = call_node("buffer/" SHARED, O_ACCMODE, RASHPA_IOC_REMOVE, &r);

	/* root may, unless the buffer is mapped, as it is here */
	return err == -EBUSY ? 0 : err;
}

static int do_permit_other(void)
{
	return buffer_permit(OTHER, -1, -1, 0600);
}

static int permit_own(int uid, int gid)
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE, .name = "st-priv-own" };
	int err = on_memory(RASHPA_IOC_ALLOC, &a);

	if (err)
		return err;
	err = buffer_permit("st-priv-own", uid, gid, -1);
	close(a.out_fd);
	return err;
}

static int do_permit_uid(void)
{
	return permit_own(1, -1);
}

static int do_permit_gid(void)
{
	return permit_own(-1, 1);
}

static int do_permit_own_gid(void)
{
	return permit_own(-1, (int)group);
}

static int do_pin(void)
{
	static char pages[17 * PAGE];
	struct rlimit limit = { .rlim_cur = 8 * PAGE, .rlim_max = 8 * PAGE };
	struct rashpa_pin pin = { HEAD(pin), .length = 16 * PAGE };

	memset(pages, 1, sizeof(pages));
	pin.address = ((uintptr_t)pages + PAGE - 1) & -PAGE;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	return on_memory(RASHPA_IOC_PIN, &pin);
}

/* more than user_limit_mib */
static int do_pin_much(void)
{
	void *pages = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	struct rashpa_pin pin = { HEAD(pin), .address = (uintptr_t)pages, .length = 2 * MIB };

	madvise(pages, 2 * MIB, MADV_NOHUGEPAGE);
	return on_memory(RASHPA_IOC_PIN, &pin);
}

/* this profile has no engine */
static int do_engine_info(void)
{
	struct rashpa_engine_info info = { HEAD(info) };
	int err = call_node(f.name, O_RDONLY, RASHPA_IOC_ENGINE_INFO, &info);

	return err == -ENOENT ? 0 : err;
}

/* an invalid profile: privileges are checked first, even if the function is busy */
static int do_profile(void)
{
	struct rashpa_profile_set p = { HEAD(p), .dma_bits = 1 };
	int err = on_fpga(RASHPA_IOC_PROFILE_SET, &p);

	return err == -EINVAL || err == -EBUSY ? 0 : err;
}

static int do_user_window(void)
{
	struct rashpa_window_make w = { HEAD(w), .name = "user" };
	int err = on_fpga(RASHPA_IOC_WINDOW_MAKE, &w);

	return err ? err : w.out_fd;
}

static int map_with(struct rashpa_map_make *m)
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE };
	int err = on_memory(RASHPA_IOC_ALLOC, &a);

	m->head.size = sizeof(*m);
	m->fd = a.out_fd;
	return err ? err : on_fpga(RASHPA_IOC_MAP_MAKE, m);
}

static int do_map(void)
{
	struct rashpa_map_make m = {};

	return map_with(&m);
}

static int do_map_boundary(void)
{
	struct rashpa_map_make m = { .boundary = PAGE };

	return map_with(&m);
}

static int do_map_alignment(void)
{
	struct rashpa_map_make m = { .alignment = PAGE };

	return map_with(&m);
}

static int do_table(void)
{
	struct rashpa_map_make m = {};
	int err = map_with(&m);

	if (err)
		return err;
	return mmap(NULL, m.out_table_size, PROT_READ, MAP_SHARED, m.out_fd, 0) ==
	       MAP_FAILED ? -errno : 0;
}

static int do_read_map(void)
{
	struct rashpa_table t;
	struct rashpa_map_make m = {};
	int err = map_with(&m);

	if (err)
		return err;
	/* nothing has changed since MAP: there is nothing to read, and no reader is refused */
	fcntl(m.out_fd, F_SETFL, O_NONBLOCK);
	if (read(m.out_fd, &t, sizeof(t)) == sizeof(t) || errno == EAGAIN)
		return 0;
	return -errno;
}

static int do_program(void)
{
	struct rashpa_map_make m = {};
	int err = map_with(&m);

	return err ? err : fpga_program(m.out_fd, 0, NULL);
}

/* in other entries than those of root's map */
static int do_program_beside(void)
{
	struct rashpa_map_make m = {};
	int err = map_with(&m);

	return err ? err : fpga_program(m.out_fd, 16, NULL);
}

static int do_events(void)
{
	struct rashpa_channel_make e = { HEAD(e) };

	return on_fpga(RASHPA_IOC_CHANNEL_MAKE, &e);
}

static int do_flock_read_only(void)
{
	const int fd = node(f.name, O_RDONLY);

	return fd < 0 ? fd : flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
}

/* words that are looked at by each interrupt of vector 0 */
static int do_vector(void)
{
	struct rashpa_source_add a = word_source(-1, 0);
	struct rashpa_channel_make e = { HEAD(e), .sources = PLACES + 1 };
	struct rashpa_alloc words = { HEAD(words), .length = PAGE };
	int err = on_fpga(RASHPA_IOC_CHANNEL_MAKE, &e);

	if (!err)
		err = on_memory(RASHPA_IOC_ALLOC, &words);
	a.memory = words.out_fd;
	for (int i = 0; !err && i <= PLACES; i++)
		err = call(e.out_fd, RASHPA_IOC_SOURCE_ADD, &a);
	return err;
}

static int do_source(void)
{
	struct rashpa_channel_make e = { HEAD(e) };
	int err = on_fpga(RASHPA_IOC_CHANNEL_MAKE, &e);

	return err ? err : source_add(e.out_fd, RASHPA_SOURCE_SOFTWARE, 0);
}

static int do_quiesce(void)
{
	struct rashpa_quiesce q = { HEAD(q) };

	return on_fpga(RASHPA_IOC_QUIESCE, &q);
}

/* root's maps, made by try_function(): one for each role, which ends it if it may */
static uint32_t maps_of_root[OTHERS + 1];
static enum role trying;

static int do_quiesce_map(void)
{
	struct rashpa_quiesce q = { HEAD(q), .map = maps_of_root[trying] };

	q.head.flags = RASHPA_QUIESCE_MAP;
	return on_fpga(RASHPA_IOC_QUIESCE, &q);
}

/* two objects where there may be one */
static int twice(int (*make)(void))
{
	int err = make();

	return err ? err : make();
}

static int do_names(void)
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE, .name = "st-priv-own" }, b = a;
	int err = on_memory(RASHPA_IOC_ALLOC, &a);

	strcpy(b.name, "st-priv-own2");
	return err ? err : on_memory(RASHPA_IOC_ALLOC, &b);
}

static int do_maps(void)
{
	return twice(do_map);
}

static int do_windows(void)
{
	int fd = do_user_window();

	return fd < 0 ? fd : do_user_window();
}

static int do_channels(void)
{
	return twice(do_events);
}

static int do_sources(void)
{
	struct rashpa_channel_make e = { HEAD(e) };
	int err = on_fpga(RASHPA_IOC_CHANNEL_MAKE, &e) ?:
		  source_add(e.out_fd, RASHPA_SOURCE_SOFTWARE, 0);

	return err < 0 ? err : source_add(e.out_fd, RASHPA_SOURCE_DEVICE, 0);
}

static int do_timer(void)
{
	struct rashpa_source_add a = word_source(-1, RASHPA_SOURCE_POLL);
	struct rashpa_alloc memory_of = { HEAD(memory_of), .length = PAGE };
	struct rashpa_channel_make e = { HEAD(e) };
	int err = on_fpga(RASHPA_IOC_CHANNEL_MAKE, &e);

	a.budget = 2;
	a.period_us = RASHPA_PERIOD_MAX;
	if (!err)
		err = on_memory(RASHPA_IOC_ALLOC, &memory_of);
	a.memory = memory_of.out_fd;
	return err ? err : call(e.out_fd, RASHPA_IOC_SOURCE_ADD, &a);
}

/* A channel without a function, with @n words for LOOK. */
static int words_of(uint32_t n)
{
	struct rashpa_channel_make e = { HEAD(e), .sources = n };
	struct rashpa_source_add add = word_source(-1, RASHPA_SOURCE_LOOK);
	struct rashpa_alloc a = { HEAD(a), .length = PAGE };
	struct rashpa_look look = { HEAD(look) };
	int err = on_memory(RASHPA_IOC_ALLOC, &a);

	if (!err)
		err = on_memory(RASHPA_IOC_CHANNEL_MAKE, &e);
	add.memory = a.out_fd;
	while (!err && n--)
		err = call(e.out_fd, RASHPA_IOC_SOURCE_ADD, &add);
	look.fd = a.out_fd;
	return err ?: on_memory(RASHPA_IOC_LOOK, &look);
}

static int do_look(void)
{
	return words_of(1);
}

static int do_look_many(void)
{
	return words_of(RASHPA_LISTENERS_USER / 2 + 1);
}

/* A reader of a buffer may add a source of its words, but not call LOOK. */
static int do_look_shared(void)
{
	int node = open("/dev/rashpa/buffer/" SHARED, O_RDONLY | O_CLOEXEC);
	struct rashpa_export get = { HEAD(get) };
	struct rashpa_look look = { HEAD(look) };
	int err = node < 0 ? -errno : call(node, RASHPA_IOC_EXPORT, &get);

	look.fd = get.out_fd;
	return err ?: on_memory(RASHPA_IOC_LOOK, &look);
}

/* 0: one of all can be written */
static int do_parameter_any(void)
{
	glob_t found;
	int err = -ENOENT;

	if (glob(PARAMETERS "*", 0, NULL, &found))
		return err;
	for (size_t i = 0; err && i < found.gl_pathc; i++)
		err = node(found.gl_pathv[i], O_WRONLY);
	globfree(&found);
	return err;
}

/* --------------------------------------------------------------- rows --- */

struct row {
	const char *key;
	struct {
		int (*fn)(void);	/* or: */
		const char *node;	/* in /dev/rashpa, or a path; NULL: the function's */
		int flags;
		unsigned long cmd;	/* 0: open it only */
		void *arg;
	} what;
	struct {
		int to[ROLES];	/* errno */
		u64 caps;	/* each of these alone lets a member do it; 0: none does */
	} answer;
	const char *says;	/* where EPERM is answered */
};

#define DO(function)		{ .fn = do_##function }
#define OPEN(path, mode)	{ .node = path, .flags = mode }
#define CALL(path, mode, name, type, ...)	{					\
	.node = path, .flags = mode, .cmd = RASHPA_IOC_##name,				\
	.arg = &(struct rashpa_##type){ .head.size = sizeof(struct rashpa_##type), __VA_ARGS__ }, \
}

#define CAN_OPEN		{ { EACCES, 0, 0, 0 }, 0 }
#define NEEDS_RAWIO		{ { EACCES, EPERM, 0, 0 }, CAP(SYS_RAWIO) }
#define REFUSED(error, name)	{ { EACCES, error, error, 0 }, CAP(name) }
#define NEEDS(name)		REFUSED(EPERM, name)
#define FILE_OF_ROOT		REFUSED(EACCES, DAC_OVERRIDE)
#define NOT_EVEN_ROOT		{ { EACCES, EPERM, EPERM, EPERM }, 0 }

static const struct row memory_rows[] = {
	{ "open", OPEN("memory", O_RDWR), CAN_OPEN, NULL },
	{ "alloc", CALL("memory", O_RDWR, ALLOC, alloc, .length = PAGE), CAN_OPEN, NULL },
	{ "alloc-on-a-node-that-is-open-for-reading",
	  CALL("memory", O_RDONLY, ALLOC, alloc, .length = PAGE), NOT_EVEN_ROOT, "read-only" },
	{ "alloc-above-user_limit_mib",
	  CALL("memory", O_RDWR, ALLOC, alloc, .length = 2 * MIB, .backend = RASHPA_BACKEND_CONTIG),
	  REFUSED(EDQUOT, SYS_RESOURCE), NULL },
	{ "query", CALL("memory", O_RDONLY, QUERY, query), CAN_OPEN, NULL },
	{ "list", CALL("memory", O_RDONLY, LIST, list), CAN_OPEN, NULL },
	{ "limit", CALL("memory", O_RDONLY, LIMIT, limit, .resource = RASHPA_RESOURCE_MEMORY),
	  CAN_OPEN, NULL },
	{ "info", DO(info), CAN_OPEN, NULL },
	{ "info-on-a-buffers-node-without-a-lease",
	  CALL("buffer/" SHARED, O_ACCMODE, INFO, info, .fd = -1), CAN_OPEN, NULL },
	{ "export-of-a-buffer-of-the-group", DO(export), CAN_OPEN, NULL },
	{ "remove-of-somebodys-buffer", DO(remove), NEEDS(FOWNER), "not yours" },
	{ "chmod-of-somebodys-buffer", DO(permit_other),
	  { { EPERM, EPERM, EPERM, 0 }, CAP(FOWNER) }, NULL },
	{ "chown-of-a-buffer-another-owner", DO(permit_uid), NEEDS(CHOWN), NULL },
	{ "chown-a-group-that-is-not-ones-own", DO(permit_gid), NEEDS(CHOWN), NULL },
	{ "chown-a-group-of-ones-own", DO(permit_own_gid), CAN_OPEN, NULL },
	{ "pin-above-rlimit_memlock", DO(pin), REFUSED(ENOMEM, IPC_LOCK), NULL },
	{ "pin-above-user_limit_mib", DO(pin_much), REFUSED(EDQUOT, SYS_RESOURCE), NULL },
	{ "node-of-a-buffer-with-mode-0600", OPEN("buffer/" OTHER, O_RDWR), FILE_OF_ROOT, NULL },
	{ "channel_make-source_add-look", DO(look), CAN_OPEN, NULL },
	{ "channel_make-on-a-node-that-is-open-for-reading",
	  CALL("memory", O_RDONLY, CHANNEL_MAKE, channel_make), NOT_EVEN_ROOT, "read-only" },
	{ "look-at-memory-that-is-open-for-reading", DO(look_shared),
	  { { EACCES, EACCES, EACCES, EACCES }, 0 }, NULL },
	{ "role-node-open-for-reading",
	  CALL("buffer/" SHARED, O_RDONLY, ROLE, role, .take = RASHPA_ROLE_CONSUMER),
	  { { EACCES, EACCES, EACCES, EACCES }, 0 }, NULL },
	{ "129-sources-that-look-at-one-memory", DO(look_many),
	  REFUSED(ENOSPC, SYS_RESOURCE), NULL },
};

static const struct row function_rows[] = {
	{ "open", OPEN(NULL, O_RDWR), CAN_OPEN, NULL },
	{ "device_info", CALL(NULL, O_RDONLY, DEVICE_INFO, device_info), CAN_OPEN, NULL },
	{ "engine_info", DO(engine_info), CAN_OPEN, NULL },
	{ "region_info", CALL(NULL, O_RDONLY, REGION_INFO, region_info), CAN_OPEN, NULL },
	{ "profile", DO(profile), NEEDS(SYS_ADMIN), "CAP_SYS_ADMIN" },
	{ "window-of-the-profile-for-users", DO(user_window), CAN_OPEN, NULL },
	{ "window-of-the-profile-not-for-users",
	  CALL(NULL, O_RDWR, WINDOW_MAKE, window_make, .name = "admin"),
	  NEEDS_RAWIO, "CAP_SYS_RAWIO" },
	{ "window-anywhere", CALL(NULL, O_RDWR, WINDOW_MAKE, window_make, .length = PAGE),
	  NEEDS_RAWIO, "CAP_SYS_RAWIO" },
	{ "map", DO(map), CAN_OPEN, NULL },
	{ "map-with-a-boundary-of-ones-own", DO(map_boundary), NEEDS_RAWIO, "boundary" },
	{ "map-with-an-alignment-of-ones-own", DO(map_alignment), NEEDS_RAWIO, "alignment" },
	{ "read-of-a-map-its-header", DO(read_map), CAN_OPEN, NULL },
	{ "program-into-the-profiles-table", DO(program), CAN_OPEN, NULL },
	{ "events", DO(events), CAN_OPEN, NULL },
	{ "events-on-a-node-that-is-open-for-reading",
	  CALL(NULL, O_RDONLY, CHANNEL_MAKE, channel_make), NOT_EVEN_ROOT, "read-only" },
	{ "flock-of-a-node-that-is-open-for-reading", DO(flock_read_only),
	  { { EACCES, EBADF, EBADF, EBADF }, 0 }, NULL },
	{ "33-sources-of-one-vector", DO(vector), REFUSED(ENOSPC, SYS_RESOURCE), NULL },
	{ "source_add", DO(source), CAN_OPEN, NULL },
	{ "quiesce", DO(quiesce), CAN_OPEN, NULL },
	{ "quiesce-on-a-node-that-is-open-for-reading", CALL(NULL, O_RDONLY, QUIESCE, quiesce),
	  NOT_EVEN_ROOT, "read-only" },
	{ "quiesce-of-one-map-of-somebodys", DO(quiesce_map), NEEDS(SYS_ADMIN), "CAP_SYS_ADMIN" },
	{ "reset", CALL(NULL, O_RDWR, RESET, reset), NEEDS_RAWIO, "CAP_SYS_RAWIO" },
};

/* each user may have one */
static const struct row limited_rows[] = {
	{ "more-names-than-a-user-may-have", DO(names), REFUSED(EDQUOT, SYS_RESOURCE), NULL },
	{ "more-windows-than-a-user-may-have", DO(windows), REFUSED(EDQUOT, SYS_RESOURCE), NULL },
	{ "more-maps-than-a-user-may-have", DO(maps), REFUSED(EDQUOT, SYS_RESOURCE), NULL },
	{ "more-channels-than-a-user-may-have", DO(channels), REFUSED(EDQUOT, SYS_RESOURCE), NULL },
	{ "more-sources-than-a-user-may-have", DO(sources), REFUSED(EDQUOT, SYS_RESOURCE), NULL },
	{ "more-timers-than-a-user-may-have", DO(timer), REFUSED(EDQUOT, SYS_RESOURCE), NULL },
};

static const char *const limited[] = {
	"user_limit_names", "user_limit_windows", "user_limit_maps", "user_limit_channels", "user_limit_sources",
	"user_poll_budget",
};

/* mmap of a map gives no sentence */
static const struct row table_rows[] = {
	{ "mmap-of-a-map-the-addresses", DO(table), NEEDS_RAWIO, NULL },
};

static const struct row disclosed_rows[] = {
	{ "mmap-of-a-map-where-the-profile-discloses", DO(table), CAN_OPEN, NULL },
};

/* the function has addresses of root's map */
static const struct row busy_rows[] = {
	{ "program-where-a-map-of-another-user-is", DO(program_beside),
	  { { EACCES, EBUSY, 0, 0 }, CAP(SYS_RAWIO) }, NULL },
	{ "quiesce-where-a-map-of-another-user-is", DO(quiesce),
	  { { EACCES, EPERM, EPERM, 0 }, CAP(SYS_ADMIN) | CAP(FOWNER) }, "CAP_SYS_ADMIN" },
};

static const struct row shown_rows[] = {
	{ "mmap-of-a-map-where-a-map-of-another-user-is", DO(table),
	  { { EACCES, EBUSY, 0, 0 }, CAP(SYS_RAWIO) }, NULL },
};

static const struct row bare_rows[] = {
	{ "map-without-a-quiesce-sequence", DO(map), NEEDS_RAWIO, "CAP_SYS_RAWIO" },
	{ "events-without-a-quiesce-sequence", DO(events), NEEDS_RAWIO, "CAP_SYS_RAWIO" },
	{ "quiesce-without-a-quiesce-sequence", DO(quiesce), CAN_OPEN, NULL },
};

static const struct row file_rows[] = {
	{ "bind", OPEN("/sys/bus/pci/drivers/rashpa/bind", O_WRONLY), FILE_OF_ROOT, NULL },
	{ "parameter-limit_mib", OPEN(PARAMETERS "limit_mib", O_WRONLY), FILE_OF_ROOT, NULL },
	{ "parameter-user_limit_mib", OPEN(PARAMETERS "user_limit_mib", O_WRONLY),
	  FILE_OF_ROOT, NULL },
	{ "parameter-poll_budget", OPEN(PARAMETERS "poll_budget", O_WRONLY), FILE_OF_ROOT, NULL },
	{ "parameter-p2p_bridge", OPEN(PARAMETERS "p2p_bridge", O_WRONLY), FILE_OF_ROOT, NULL },
	{ "parameter-any", DO(parameter_any), FILE_OF_ROOT, NULL },
	{ "parameters-for-reading", OPEN(PARAMETERS "limit_mib", O_RDONLY), {}, NULL },
	{ "tracepoints", OPEN("/sys/kernel/tracing/events/rashpa/enable", O_WRONLY),
	  FILE_OF_ROOT, NULL },
	{ "debugfs-other-drivers-view-of-our-dma-bufs",
	  OPEN("/sys/kernel/debug/dma_buf/bufinfo", O_RDONLY),
	  { { EACCES, EACCES, EACCES, 0 }, 0 }, NULL },
};

struct trial {
	const struct row *row;
	enum role role;
	u64 alone;
};

/* Files are only opened: writing there would disturb another test. */
static int open_and_call(const struct row *row)
{
	int fd = node(row->what.node ?: f.name, row->what.flags);

	return fd < 0 || !row->what.cmd ? fd : call(fd, row->what.cmd, row->what.arg);
}

static void try(void *arg)
{
	const struct trial *t = arg;
	const u64 keep[] = {
		[RAWIO] = CAP(SYS_RAWIO), [ALONE] = t->alone,
		[OTHERS] = ~t->row->answer.caps,
	};
	int want = t->role == ALONE ? 0 : t->row->answer.to[t->role == OTHERS ? MEMBER : t->role];
	int got;

	trying = t->role;
	become(t->role, keep[t->role]);
	memset(reason, 0, sizeof(reason));
	got = t->row->what.fn ? t->row->what.fn() : open_and_call(t->row);
	if (got > 0)
		got = 0;
	CHECK(got == -want, "%s: answer %d (%s), expected %d (%s), reason \"%s\"",
	      role_names[t->role], -got, strerror(-got), want, strerror(want), reason);
	if (want == EPERM && t->row->says)
		CHECK(strstr(reason, t->row->says), "%s: reason \"%s\" does not name \"%s\"",
		      role_names[t->role], reason, t->row->says);
}

static void try_role(const struct row *row, enum role role, u64 alone)
{
	struct trial t = { .row = row, .role = role, .alone = alone };

	tap_fork(try, &t);
	buffer_remove("st-priv-own");
	buffer_remove("st-priv-own2");
}

static void try_row(const struct row *row)
{
	const u64 caps = row->answer.caps;
	enum role role;
	u64 left;

	for (role = NOBODY; role < ROLES; role++)
		try_role(row, role, 0);
	for (left = caps; left; left &= left - 1)
		try_role(row, ALONE, left & -left);
	if (caps)
		try_role(row, OTHERS, 0);
}

/* --------------------------------------------------------------- nodes --- */

static void check_mode(const char *name)
{
	char path[96];
	struct stat st;

	snprintf(path, sizeof(path), "/dev/rashpa/%s", name);
	REQUIRE(!stat(path, &st), "%s: %s", path, strerror(errno));
	CHECK(S_ISCHR(st.st_mode) && (st.st_mode & 07777) == 0660, "%s has mode %o", path,
	      st.st_mode & 07777);
	CHECK(!st.st_uid, "%s belongs to %u", path, st.st_uid);
}

TEST(modes, "nodes belong to root, and other users have no access")
{
	check_mode("memory");
	if (f.fd >= 0)
		check_mode(f.name);
}

/* As the udev rule does; there is no udev in the lab's guests. */
static void give_node(const char *name, uid_t uid, gid_t gid)
{
	char path[96];

	snprintf(path, sizeof(path), "/dev/rashpa/%s", name);
	if (chown(path, uid, gid))
		tap_bail("chown of %s: %s", path, strerror(errno));
}

static int named(const char *name, uint32_t mode)
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE, .mode = mode };

	a.head.flags = RASHPA_ALLOC_MODE;
	strcpy(a.name, name);
	if (call(memory, RASHPA_IOC_ALLOC, &a))
		tap_bail("ALLOC of %s: %s", name, reason);
	return a.out_fd;
}

static const struct rashpa_profile_window windows[] = {
	{ .name = "user", .bar = 2, .flags = RASHPA_PWINDOW_USER, .offset = PAGE, .length = PAGE },
	{ .name = "admin", .bar = 2, .offset = 4 * PAGE, .length = PAGE },
};

/* Once for all rows of a table. */
static void profile(uint32_t flags)
{
	static bool done;

	if (!done && fpga_profile(&f, flags | RASHPA_PROFILE_NO_RESET, windows,
				  ARRAY_SIZE(windows)))
		tap_bail("profile: %s", reason);
	done = true;
}

TEST_EACH(memory, memory_rows, "%s")
{
	param_set("user_limit_mib", 1);
	try_row(row);
	parameters_restore();
}

TEST_EACH(function, function_rows, "%s")
{
	struct rashpa_map_make m[OTHERS + 1];
	int buffer = buffer_alloc(PAGE, NULL);
	size_t i;

	SKIP_IF(f.fd < 0, "no software FPGA");
	profile(0);
	for (i = 0; i < ARRAY_SIZE(m); i++) {
		if (fpga_map(&f, buffer, RASHPA_BIDIRECTIONAL, &m[i]) < 0)
			tap_bail("MAP_MAKE: %s", reason);
		maps_of_root[i] = m[i].out_id;
	}
	try_row(row);
	for (i = 0; i < ARRAY_SIZE(m); i++)
		close(m[i].out_fd);
	close(buffer);
}

TEST_EACH(limited, limited_rows, "%s")
{
	SKIP_IF(f.fd < 0, "no software FPGA");
	profile(0);
	for (size_t i = 0; i < ARRAY_SIZE(limited); i++)
		param_set(limited[i], 1);
	try_row(row);
	parameters_restore();
}

TEST_EACH(table, table_rows, "%s")
{
	SKIP_IF(f.fd < 0, "no software FPGA");
	profile(0);
	try_row(row);
}

TEST_EACH(disclosed, disclosed_rows, "%s")
{
	SKIP_IF(f.fd < 0, "no software FPGA");
	profile(RASHPA_PROFILE_DISCLOSE);
	try_row(row);
}

/* A map of root's that is programmed. */
static void map_busy(uint32_t flags, struct rashpa_map_make *m)
{
	struct rashpa_program p = { HEAD(p) };
	int buffer = buffer_alloc(PAGE, NULL);

	profile(flags);
	if (fpga_map(&f, buffer, RASHPA_BIDIRECTIONAL, m) < 0 ||
	    call(m->out_fd, RASHPA_IOC_PROGRAM, &p))
		tap_bail("a map of root's: %s", reason);
	close(buffer);
}

static void try_busy(const struct row *row, uint32_t flags)
{
	struct rashpa_map_make m;

	map_busy(flags, &m);
	try_row(row);
	close(m.out_fd);
}

TEST_EACH(busy, busy_rows, "%s")
{
	SKIP_IF(f.fd < 0, "no software FPGA");
	try_busy(row, 0);
}

TEST_EACH(shown, shown_rows, "%s")
{
	SKIP_IF(f.fd < 0, "no software FPGA");
	try_busy(row, RASHPA_PROFILE_DISCLOSE);
}

static void quiesce_as_owner(void *arg)
{
	become(MEMBER, 0);
	ANSWERED(do_quiesce(), 0, NULL);
	ANSWERED(do_quiesce_map(), EPERM, "CAP_SYS_ADMIN");
}

TEST(owner, "the owner of a function's node stops it, and ends no map of another user")
{
	struct rashpa_map_make m;

	SKIP_IF(f.fd < 0, "no software FPGA");
	map_busy(0, &m);
	maps_of_root[trying] = m.out_id;
	give_node(f.name, NOBODY_ID, group);
	tap_fork(quiesce_as_owner, NULL);
	give_node(f.name, 0, group);
	close(m.out_fd);
}

TEST_EACH(bare, bare_rows, "%s")
{
	SKIP_IF(f.fd < 0, "no software FPGA");
	if (fpga_profile_none(&f))
		tap_bail("profile: %s", reason);
	try_row(row);
}

TEST_EACH(file, file_rows, "%s")
{
	try_row(row);
}

void setup(void)
{
	struct group *rashpa = getgrnam("rashpa");

	if (!rashpa)
		tap_bail("no group rashpa");
	group = rashpa->gr_gid;
	if (fpga_try(&f, 0))
		give_node(f.name, 0, group);
	give_node("memory", 0, group);
	close(named(OTHER, 0600));
	held = map_fd(named(SHARED, 0660), PAGE);
}

void teardown(void)
{
	munmap(held, PAGE);
	buffer_remove(OTHER);
	buffer_remove(SHARED);
	give_node("memory", 0, 0);
	if (f.fd >= 0)
		give_node(f.name, 0, 0);
}
