// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug iommu=on seconds=14 */
/*
 * Limits of resources: the holdings of a member of the group are bounded, counted and listed,
 * and root gets its reserve.
 */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "foreign.h"

#define NOBODY_ID	65534
#define MANY		400

static struct fpga f;
static bool have_fpga;

static struct rashpa_limit limit_of(uint32_t resource)
{
	struct rashpa_limit limit = { HEAD(limit), .resource = resource };

	if (call(memory, RASHPA_IOC_LIMIT, &limit))
		tap_bail("LIMIT: %s", reason);
	return limit;
}

/* Store up to @n holdings at @to; return the number of all holdings. */
static unsigned int list(int node, struct rashpa_holding *to, unsigned int n, u64 after)
{
	struct rashpa_list list = { HEAD(list), .holdings = (uintptr_t)to, .n_holdings = n,
				    .holding_size = sizeof(*to), .after = after };

	if (!ANSWERED(call(node, RASHPA_IOC_LIST, &list), 0, NULL))
		return 0;
	CHECK(list.out_holdings == (list.out_count < n ? list.out_count : n),
	      "%u of %u stored in room for %u", list.out_holdings, list.out_count, n);
	return list.out_count;
}

/* --- things to make: a file or a kept object, 0 or -errno --- */

static int shared_memory = -1;	/* root's, for maps */

/* A map by which alone its buffer lives. */
static int make_owner(void)
{
	struct rashpa_alloc a = { HEAD(a), .length = 4 * MIB };
	struct rashpa_map_make m = { HEAD(m) };
	int err = call(memory, RASHPA_IOC_ALLOC, &a);

	if (err)
		return err;
	m.fd = a.out_fd;
	err = call(f.fd, RASHPA_IOC_MAP_MAKE, &m);
	close(a.out_fd);
	return err;
}

static int make_channel_of(uint32_t depth)
{
	struct rashpa_channel_make c = { HEAD(c), .depth = depth };

	return call(f.fd, RASHPA_IOC_CHANNEL_MAKE, &c);
}

static int make_channel(void)
{
	return make_channel_of(2);
}

static int make_ring(void)
{
	return make_channel_of(65536);
}

static int make_map_of(u64 segment)
{
	struct rashpa_map_make m = { HEAD(m), .fd = shared_memory, .max_segment = segment };

	return call(f.fd, RASHPA_IOC_MAP_MAKE, &m);
}

static int make_map(void)
{
	return make_map_of(0);
}

static int make_table(void)
{
	return make_map_of(PAGE);
}

static int make_window(void)
{
	struct rashpa_window_make w = { HEAD(w), .name = "user" };

	return call(f.fd, RASHPA_IOC_WINDOW_MAKE, &w);
}

static int sources = -1;	/* a channel */
static int words = -1;		/* lock memory */

/* one source by its map, again and again another */
static int make_source(void)
{
	static uint32_t n;
	int id = source_add(sources, RASHPA_SOURCE_MAP, getpid() * MANY + n++);

	return id < 0 ? id : 0;
}

static int make_timer_of(uint32_t budget)
{
	struct rashpa_source_add a = word_source(words, RASHPA_SOURCE_POLL);

	a.period_us = RASHPA_PERIOD_MAX;
	a.budget = budget;
	return call(sources, RASHPA_IOC_SOURCE_ADD, &a);
}

static int make_timer(void)
{
	return make_timer_of(10);
}

static int make_name(void)
{
	static unsigned int n;
	struct rashpa_alloc a = { HEAD(a), .length = PAGE };
	int err;

	snprintf(a.name, sizeof(a.name), "st-limit-%d-%u", getpid(), n++);
	err = call(memory, RASHPA_IOC_ALLOC, &a);
	if (!err)
		close(a.out_fd);
	return err;
}

/*
 * Pinned by a child that shares the table of files, and ends: RLIMIT_MEMLOCK, which counts for
 * each of them, ends with it.
 */
static int make_pinned(void)
{
	struct {
		struct rashpa_pin pin;
		char reason[sizeof(reason)];
		int err;
	} *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err;
	pid_t pid;

	shared->err = -ECHILD;
	pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid) {
		void *p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		madvise(p, 4 * MIB, MADV_NOHUGEPAGE);
		shared->pin = (struct rashpa_pin) { HEAD(shared->pin), .length = 4 * MIB,
						    .address = (uintptr_t)p };
		shared->err = call(memory, RASHPA_IOC_PIN, &shared->pin);
		memcpy(shared->reason, reason, sizeof(reason));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	memcpy(reason, shared->reason, sizeof(reason));
	err = shared->err;
	munmap(shared, PAGE);
	return err;
}

static void remove_names(pid_t pid)
{
	char name[64];
	unsigned int n;

	for (n = 0; n < MANY; n++) {
		snprintf(name, sizeof(name), "st-limit-%d-%u", pid, n);
		if (buffer_remove(name))
			return;
	}
}

/* --- rows: a resource, what takes it, and the two limits --- */

struct row {
	const char *key;
	uint32_t resource;
	int (*make)(void);
	const char *user, *all;	/* parameters */
	unsigned int limit, many;	/* of @user; as many can be made then, about */
};

static const struct row rows[] = {
	{ "buffers-that-live-by-maps", RASHPA_RESOURCE_MEMORY, make_owner,
	  "user_limit_mib", "limit_mib", 33, 8 },
	{ "memory-that-children-pin", RASHPA_RESOURCE_MEMORY, make_pinned, "user_limit_mib",
	  "limit_mib", 33, 8 },
	{ "queues-of-channels", RASHPA_RESOURCE_MEMORY, make_ring, "user_limit_mib", "limit_mib",
	  12, 4 },
	{ "tables-of-maps", RASHPA_RESOURCE_MEMORY, make_table, "user_limit_mib", "limit_mib",
	  1, 3 },
	{ "names", RASHPA_RESOURCE_NAMES, make_name, "user_limit_names", "limit_names", 8, 8 },
	{ "windows", RASHPA_RESOURCE_WINDOWS, make_window, "user_limit_windows",
	  "limit_windows", 8, 8 },
	{ "maps", RASHPA_RESOURCE_MAPS, make_map, "user_limit_maps", "limit_maps", 8, 8 },
	{ "channels", RASHPA_RESOURCE_CHANNELS, make_channel, "user_limit_channels",
	  "limit_channels", 8, 8 },
	{ "sources", RASHPA_RESOURCE_SOURCES, make_source, "user_limit_sources",
	  "limit_sources", 8, 8 },
	{ "timers", RASHPA_RESOURCE_TIMERS, make_timer, "user_poll_budget", "poll_budget",
	  40, 4 },
};

/* Make as many as possible; the last answer must name @param. */
static unsigned int take(const struct row *row, const char *param)
{
	unsigned int n = 0;
	int err;

	do
		err = row->make();
	while (!err && ++n < MANY);
	CHECK(n < MANY, "%u were made, without a refusal", n);
	ANSWERED(err, EDQUOT, param);
	CHECK(strstr(reason, "rashpactl list"), "\"%s\" does not say how to list holders",
	      reason);
	return n;
}

static void take_as_member(void *arg)
{
	const struct row *row = arg;
	unsigned int n;

	drop_privileges();
	n = take(row, row->user);
	CHECK(n <= row->many && n >= row->many - 1, "%u were had", n);
}

static void take_as_root(void *arg)
{
	const struct row *row = arg;
	int err = row->make();

	CHECK(!err, "root is refused: %s", reason);
}

static void take_all(void *arg)
{
	const struct row *row = arg;

	drop_privileges();
	take(row, row->all);
}

static void take_none(void *arg)
{
	const struct row *row = arg;

	drop_privileges();
	CHECK(!take(row, row->all), "a member gets root's reserve");
}

/* In a child, whose end ends all but named objects, which remove_names() ends. */
static pid_t child(void (*fn)(void *), const struct row *row)
{
	pid_t pid = tap_fork_start(fn, (void *)row);

	tap_fork_end(pid);
	return pid;
}

static void up(const struct row *row)
{
	if (row->resource == RASHPA_RESOURCE_SOURCES || row->resource == RASHPA_RESOURCE_TIMERS)
		sources = fpga_events(&f, 2);
}

static void down(void)
{
	if (sources >= 0)
		close(sources);
	sources = -1;
}

/* Skip the test if the row needs something that is missing. */
static bool lacks(const struct row *row)
{
	if (!have_fpga && row->make != make_name && row->make != make_pinned)
		tap_skip("no software FPGA");
	else
		return false;
	return true;
}

TEST_EACH(user, rows, "%s: one user has a limit, root another")
{
	const u64 before = limit_of(row->resource).out_used;
	pid_t member, root;

	if (lacks(row))
		return;
	up(row);
	param_set(row->user, row->limit);
	member = child(take_as_member, row);
	/* the limit is not for root */
	param_set(row->user, 1);
	root = child(take_as_root, row);
	parameters_restore();
	down();
	remove_names(member);
	remove_names(root);
	CHECK(limit_of(row->resource).out_used == before, "%llu are held, before it was %llu",
	      limit_of(row->resource).out_used, before);
}

static void hold_all(void *arg)
{
	take_all(arg);
	if (tap_ok())
		tap_fork_hold();
}

/* Members take all that they can get: the reserve is left, and root gets it. */
TEST_EACH(reserve, rows, "%s: root gets its reserve")
{
	const struct rashpa_limit before = limit_of(row->resource);
	const unsigned int shift = row->resource == RASHPA_RESOURCE_MEMORY ? 20 : 0;
	struct rashpa_limit now;
	pid_t member, root;

	if (lacks(row))
		return;
	up(row);
	param_set(row->user, 0);
	param_set(row->all, (before.out_used >> shift) + (shift ? 64 : 40) +
		  (row->make == make_timer ? 200 : 0));
	member = tap_fork_held(hold_all, (void *)row);
	now = limit_of(row->resource);
	CHECK(now.out_shared_used <= now.out_shared_limit && now.out_shared_limit < now.out_limit,
	      "%llu of %llu, %llu for all", now.out_shared_used, now.out_shared_limit,
	      now.out_limit);
	root = child(take_as_root, row);
	tap_fork_kill(member);
	remove_names(member);
	parameters_restore();
	down();
	remove_names(root);
}

/* --- the defaults --- */

TEST(defaults, "each resource has a limit for one user, and a reserve")
{
	const u64 quarter = ram_bytes() / 4;
	struct rashpa_limit l;
	uint32_t r;

	for (r = RASHPA_RESOURCE_MEMORY; r <= RASHPA_RESOURCE_TIMERS; r++) {
		l = limit_of(r);
		CHECK(l.out_user_limit, "resource %u has no limit for one user", r);
		CHECK(l.out_shared_limit, "resource %u has no reserve", r);
		CHECK(l.out_user_limit < l.out_shared_limit,
		      "resource %u: one user may have all: %llu of %llu", r, l.out_user_limit,
		      l.out_shared_limit);
	}
	l = limit_of(RASHPA_RESOURCE_MEMORY);
	CHECK(l.out_user_limit <= quarter + MIB && l.out_user_limit >= quarter * 9 / 10,
	      "%llu bytes for one user, a quarter is %llu", l.out_user_limit, quarter);
	CHECK(l.out_shared_limit <= quarter * 4 - quarter / 2, "%llu bytes for all but root",
	      l.out_shared_limit);
	l = (struct rashpa_limit){ HEAD(l) };
	ANSWERED(call(memory, RASHPA_IOC_LIMIT, &l), EINVAL, "resource 0");
	l.resource = RASHPA_RESOURCE_TIMERS + 1;
	ANSWERED(call(memory, RASHPA_IOC_LIMIT, &l), EINVAL, "not defined");
}

TEST(one, "a limit of one is for root alone")
{
	static const struct row name = { .make = make_name, .all = "limit_names" };

	param_set("limit_names", 1);
	CHECK(limit_of(RASHPA_RESOURCE_NAMES).out_limit == 1 &&
	      !limit_of(RASHPA_RESOURCE_NAMES).out_shared_limit, "a member may have the one");
	child(take_none, &name);
	remove_names(child(take_as_root, &name));
}

/* Names leave some minor numbers free, so that boards can always be bound. */
TEST(minors, "names leave minor numbers to functions")
{
	char path[64];
	struct stat st;
	int fd;

	fd = buffer_alloc(PAGE, "st-limit-minor");
	CHECK(!stat("/dev/rashpa/buffer/st-limit-minor", &st) && minor(st.st_rdev) >= 256,
	      "a name has minor %u", minor(st.st_rdev));
	close(fd);
	buffer_remove("st-limit-minor");
	snprintf(path, sizeof(path), "/dev/rashpa/%s", have_fpga ? f.name : "memory");
	CHECK(!stat(path, &st) && minor(st.st_rdev) < 256, "%s has minor %u", path,
	      minor(st.st_rdev));
	CHECK(!stat("/dev/rashpa/memory", &st) && minor(st.st_rdev) < 256,
	      "memory has minor %u", minor(st.st_rdev));
}

/* --- LIST --- */

static struct rashpa_holding held[MANY];

/* The first one of @resource, made after @after. */
static struct rashpa_holding *find(uint32_t resource, u64 after)
{
	unsigned int i, n = list(memory, held, MANY, after);

	for (i = 0; i < n; i++)
		if (held[i].resource == resource)
			return &held[i];
	tap_fail(__FILE__, __LINE__, "no holding of resource %u", resource);
	return NULL;
}

static u64 last_serial(void)
{
	unsigned int n = list(memory, held, MANY, 0);

	return n ? held[n - 1].serial : 0;
}

static void make_one(void *arg)
{
	const struct row *row = arg;

	drop_privileges();
	CHECK(!row->make(), "%s", reason);
}

static void hold_one(void *arg)
{
	make_one(arg);
	if (tap_ok())
		tap_fork_hold();
}

/* Holder, object and time, also after the holder's end. */
TEST(list, "LIST names holders and their holdings, names after the holder's end, too")
{
	static const struct row owner = { .make = make_owner }, named = { .make = make_name };
	const u64 before = last_serial();
	struct rashpa_holding *h, one;
	u64 start = now_ns();
	pid_t holder;

	SKIP_IF(!have_fpga, "no software FPGA");
	holder = tap_fork_held(hold_one, (void *)&owner);
	h = find(RASHPA_RESOURCE_MAPS, before);
	if (h) {
		one = *h;
		CHECK(one.uid == NOBODY_ID && one.pid == holder, "uid %u, pid %d", one.uid,
		      one.pid);
		CHECK(one.device == f.index, "device %d", one.device);
		CHECK(one.amount == 1 && one.memory >= PAGE && one.id, "amount %llu, memory %llu, id %u",
		      one.amount, one.memory, one.id);
		CHECK(!one.flags, "flags 0x%x", one.flags);
		CHECK(!strcmp(one.comm, "limit_test"), "command \"%.16s\"", one.comm);
		CHECK(one.since_ns >= start && one.since_ns <= now_ns(), "made at another time");
	}
	h = find(RASHPA_RESOURCE_MEMORY, before);
	if (h)
		CHECK(h->uid == NOBODY_ID && h->memory >= 4 * MIB && !h->amount && h->device == -1,
		      "uid %u, memory %llu", h->uid, h->memory);
	tap_fork_kill(holder);
	CHECK(!list(memory, NULL, 0, before), "the map and its memory outlive the process");
	/* a name outlives its process, and LIST still has the process */
	holder = child(make_one, &named);
	h = find(RASHPA_RESOURCE_NAMES, before);
	if (h)
		CHECK(h->uid == NOBODY_ID && h->pid == holder &&
		      h->flags == RASHPA_HOLDING_ORPHAN,
		      "uid %u, pid %d, flags 0x%x", h->uid, h->pid, h->flags);
	remove_names(holder);
	CHECK(!list(memory, NULL, 0, before), "a removed buffer is still listed");
}

static int scattered = -1;	/* 1024 pieces, each a page */

/* Bytes that a map of @length is charged with. */
static u64 charged(u64 length)
{
	struct rashpa_map_make m = { HEAD(m), .fd = scattered, .length = length };
	const u64 before = last_serial();
	struct rashpa_holding *h;

	if (!ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL))
		return 0;
	h = find(RASHPA_RESOURCE_MAPS, before);
	close(m.out_fd);
	return h ? h->memory : 0;
}

/* Charged are its segments, its pieces, and the exporter's pieces of the whole memory. */
TEST(scattered, "maps of scattered memory are charged with all that they take")
{
	const u64 each = 24, n = 1024;
	u64 bytes;

	SKIP_IF(scattered < 0, "no software FPGA, or no module");
	bytes = charged(0);
	CHECK(bytes >= n * (16 + each + each), "%llu bytes for all of it", bytes);
	bytes = charged(PAGE);
	CHECK(bytes >= PAGE + n * each && bytes < PAGE + n * (each + each),
	      "%llu bytes for a page of it", bytes);
}

TEST(pages, "LIST in parts, and for callers that know more")
{
	const u64 before = last_serial();
	struct rashpa_list l = { HEAD(l) };
	char bytes[2][sizeof(struct rashpa_holding) + 24];
	struct rashpa_holding two[2];
	int fds[3], i;

	for (i = 0; i < 3; i++)
		fds[i] = buffer_alloc(PAGE, NULL);
	CHECK(list(memory, NULL, 0, before) == 3, "counted without room");
	CHECK(list(memory, two, 2, before) == 3 && two[0].serial < two[1].serial, "two of three");
	CHECK(list(memory, two, 2, two[1].serial) == 1, "one after these");
	CHECK(list(memory, two, 2, two[0].serial) == 0, "none after the last one");
	/* a caller that knows more of an element than the driver finds zeros there */
	memset(bytes, 0x5a, sizeof(bytes));
	l.holdings = (uintptr_t)bytes;
	l.n_holdings = 2;
	l.holding_size = sizeof(bytes[0]);
	l.after = before;
	ANSWERED(call(memory, RASHPA_IOC_LIST, &l), 0, NULL);
	for (i = 0; i < 2; i++) {
		memcpy(two, bytes[i], sizeof(*two));
		CHECK(two->resource == RASHPA_RESOURCE_MEMORY && two->memory == PAGE,
		      "element %d: resource %u", i, two->resource);
		CHECK(all_zero(bytes[i] + sizeof(*two), 24), "element %d: the tail", i);
	}
	l.holding_size = sizeof(struct rashpa_holding) - 1;
	ANSWERED(call(memory, RASHPA_IOC_LIST, &l), EINVAL, "135 bytes");
	l.holding_size = 4097;
	ANSWERED(call(memory, RASHPA_IOC_LIST, &l), E2BIG, "4097 bytes");
	l.holding_size = sizeof(struct rashpa_holding);
	l.n_holdings = RASHPA_HOLDINGS_MAX + 1;
	ANSWERED(call(memory, RASHPA_IOC_LIST, &l), EINVAL, "1025");
	for (i = 0; i < 3; i++)
		close(fds[i]);
	CHECK(!list(memory, NULL, 0, before), "closed, and listed");
}

#define HELD		(16 * RASHPA_HOLDINGS_MAX)
#define LISTERS		4
#define ROUNDS		50

static void list_for_ever(void *arg)
{
	unsigned int *ended = arg;

	drop_privileges();
	while (list(memory, NULL, 0, 0) >= HELD)
		__atomic_add_fetch(ended, 1, __ATOMIC_RELAXED);
}

TEST(long_list, "a call that is charged does not wait for the end of a long LIST")
{
	const struct rlimit many = { HELD + 256, HELD + 256 };
	unsigned int i, before, waits = 0, *ended;
	const struct sched_param first = { .sched_priority = 1 };
	pid_t pids[LISTERS];
	void *shared;
	u64 end;
	int fd;

	if (!access("/proc/lockdep", F_OK)) {
		tap_skip("lockdep makes a step of LIST longer than a turn of the scheduler");
		return;
	}
	REQUIRE(!setrlimit(RLIMIT_NOFILE, &many), "setrlimit: %s", strerror(errno));
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(shared != MAP_FAILED, "mmap: %s", strerror(errno));
	ended = shared;
	for (i = 0; i < HELD; i++)
		fd = buffer_alloc(PAGE, NULL);
	end = end_of_wait(60000);
	for (i = 0; i < LISTERS; i++)
		pids[i] = tap_fork_start(list_for_ever, shared);
	/* it waits for the lock, and not for a processor */
	CHECK(!sched_setscheduler(0, SCHED_FIFO, &first), "FIFO: %s", strerror(errno));
	for (i = 0; i < ROUNDS && now_ns() < end; i++) {
		/* a LIST ends, and others go on */
		before = __atomic_load_n(ended, __ATOMIC_RELAXED);
		while (__atomic_load_n(ended, __ATOMIC_RELAXED) == before && now_ns() < end)
			usleep(100);
		before = __atomic_load_n(ended, __ATOMIC_RELAXED);
		limit_of(RASHPA_RESOURCE_MEMORY);
		waits += __atomic_load_n(ended, __ATOMIC_RELAXED) - before;
	}
	CHECK(i == ROUNDS, "%u rounds in a minute", i);
	tap_note("%u LISTs ended during %u LIMITs", waits, i);
	CHECK(waits < ROUNDS, "%u LIMITs wait for %u LISTs", i, waits);
	for (i = 0; i < LISTERS; i++)
		tap_fork_kill(pids[i]);
	munmap(shared, PAGE);
	close_range(fd - HELD + 1, fd, 0);
}

/* A part of a huge page holds all of it, and counts so. */
TEST(pinned, "pinned memory is listed as what it holds")
{
	const u64 before = last_serial();
	char *p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *huge = (char *)(uintptr_t)(((uintptr_t)p + 2 * MIB - 1) & -(2 * MIB));
	struct rashpa_pin pin = { HEAD(pin), .address = (uintptr_t)huge + PAGE, .length = PAGE };
	struct rashpa_holding *h;

	madvise(huge, 2 * MIB, MADV_HUGEPAGE);
	memset(huge, 1, 2 * MIB);
	SKIP_IF(pfn_of(huge) + 511 != pfn_of(huge + 511 * PAGE), "no huge page");
	if (ANSWERED(call(memory, RASHPA_IOC_PIN, &pin), 0, NULL)) {
		h = find(RASHPA_RESOURCE_MEMORY, before);
		if (h)
			CHECK(h->memory == 2 * MIB && !h->amount && h->pid == getpid() &&
			      h->device == -1, "%llu bytes of process %d", h->memory, h->pid);
		close(pin.out_fd);
	}
	CHECK(!list(memory, NULL, 0, before), "closed, and listed");
	munmap(p, 4 * MIB);
}

/* The child shares the table of files. */
TEST(passed, "the maker of an object is charged, even if another process has the file")
{
	const u64 before = last_serial();
	struct rashpa_channel_make *c;
	struct rashpa_holding *h;
	int status;
	pid_t pid;

	SKIP_IF(!have_fpga, "no software FPGA");
	c = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	c->head.size = sizeof(*c);
	c->out_fd = -1;
	pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid) {
		drop_privileges();
		_exit(ioctl(f.fd, RASHPA_IOC_CHANNEL_MAKE, c) ? 1 : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status, "the channel was not made");
	h = find(RASHPA_RESOURCE_CHANNELS, before);
	if (h)
		CHECK(h->uid == NOBODY_ID && h->pid == pid && h->memory > PAGE &&
		      h->flags == RASHPA_HOLDING_ORPHAN, "uid %u, pid %d, flags 0x%x", h->uid,
		      h->pid, h->flags);
	if (c->out_fd >= 0)
		close(c->out_fd);
	CHECK(!list(memory, NULL, 0, before), "closed, and listed");
	munmap(c, PAGE);
}

/* A function's node lists holdings of that function only. */
TEST(of_function, "LIST of one function")
{
	const u64 before = last_serial();
	int buffer, channel;

	SKIP_IF(!have_fpga, "no software FPGA");
	buffer = buffer_alloc(PAGE, NULL);
	channel = fpga_events(&f, 2);
	CHECK(list(memory, held, MANY, before) == 2, "two things");
	CHECK(list(f.fd, held, MANY, before) == 1 && held[0].resource == RASHPA_RESOURCE_CHANNELS &&
	      held[0].device == f.index, "one of them is the function's");
	close(channel);
	close(buffer);
}

/* --- ends of maps --- */

static u64 quiesces(void)
{
	struct rashpa_device_info info;

	if (fpga_info(&f, &info))
		tap_bail("DEVICE_INFO: %s", reason);
	return info.out_quiesces;
}

static void make_and_close(void *arg)
{
	struct rashpa_map_make m = { HEAD(m), .fd = shared_memory };

	drop_privileges();
	if (!ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL))
		return;
	if (arg)
		ANSWERED(fpga_program(m.out_fd, 0, NULL), 0, NULL);
	close(m.out_fd);
}

/* A map that the function cannot know of ends without stopping the streams of others. */
TEST(untold, "a map that was never programmed ends without stopping the function")
{
	struct rashpa_map_make m = { HEAD(m), .fd = shared_memory };
	u64 before;

	SKIP_IF(!have_fpga, "no software FPGA");
	/* so that bus mastering stays on */
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL);
	before = quiesces();
	tap_fork(make_and_close, NULL);
	CHECK(quiesces() == before, "a map that was never programmed stopped the function");
	tap_fork(make_and_close, "");
	CHECK(quiesces() == before + 1, "a map that was programmed did not stop the function");
	/* the addresses were seen */
	table_seen(&m);
	before = quiesces();
	close(m.out_fd);
	CHECK(quiesces() == before + 1, "a map whose table was mapped did not stop the function");
}

static void end_own(void *arg)
{
	struct rashpa_map_make m = { HEAD(m), .fd = shared_memory };
	struct rashpa_quiesce q = { HEAD(q) };

	drop_privileges();
	if (!ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL))
		return;
	q.head.flags = RASHPA_QUIESCE_MAP;
	q.map = m.out_id;
	ANSWERED(call(f.fd, RASHPA_IOC_QUIESCE, &q), 0, NULL);
}

static void stop_root(void *arg)
{
	drop_privileges();
	if (arg)
		ANSWERED(fpga_quiesce(&f), EPERM,
			 "another user|RASHPA_QUIESCE_MAP|CAP_SYS_ADMIN");
	else
		ANSWERED(fpga_quiesce(&f), 0, NULL);
}

TEST(quiesce_others, "a member of the group cannot stop the stream of another user")
{
	struct rashpa_map_make m = { HEAD(m), .fd = shared_memory };
	u64 before;

	SKIP_IF(!have_fpga, "no software FPGA");
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL);
	before = quiesces();
	tap_fork(stop_root, NULL);
	CHECK(quiesces() == before + 1, "a map that was never programmed prevents the stop");
	ANSWERED(fpga_program(m.out_fd, 0, NULL), 0, NULL);
	before = quiesces();
	tap_fork(stop_root, "");
	CHECK(quiesces() == before, "it was stopped");
	close(m.out_fd);
}

TEST(quiesce_map, "QUIESCE ends one map, for its owner and for root")
{
	struct rashpa_map_make m = { HEAD(m), .fd = shared_memory }, other = m;
	struct rashpa_quiesce q = { HEAD(q) };
	struct rashpa_table table = {};

	SKIP_IF(!have_fpga, "no software FPGA");
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL);
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &other), 0, NULL);
	tap_fork(end_own, NULL);
	q.map = m.out_id;
	ANSWERED(call(f.fd, RASHPA_IOC_QUIESCE, &q), EINVAL, "RASHPA_QUIESCE_MAP");
	q.head.flags = RASHPA_QUIESCE_MAP;
	ANSWERED(call(f.fd, RASHPA_IOC_QUIESCE, &q), 0, NULL);
	ANSWERED(call(f.fd, RASHPA_IOC_QUIESCE, &q), ENOENT, NULL);
	q.map = 0;
	ANSWERED(call(f.fd, RASHPA_IOC_QUIESCE, &q), ENOENT, "no map 0");
	/* its file shows the end, and no call brings it back */
	CHECK(read(m.out_fd, &table, sizeof(table)) == sizeof(table) &&
	      table.state == RASHPA_MAP_STATE_REVOKED, "state %u", table.state);
	ANSWERED(map_restore(m.out_fd), ENODEV, "ended for good");
	ANSWERED(fpga_program(m.out_fd, 0, NULL), ESTALE, NULL);
	ANSWERED(fpga_program(other.out_fd, 0, NULL), 0, NULL);
	close(m.out_fd);
	close(other.out_fd);
}

void setup(void)
{
	static const struct rashpa_profile_window windows[] = {
		{ .name = "user", .bar = 2, .flags = RASHPA_PWINDOW_USER, .length = PAGE },
	};
	struct rashpa_liar_export lie = { .kind = RASHPA_LIAR_SCATTERED, .error = ENODEV,
					  .length = 4 * MIB };
	struct rashpa_window_make w = { HEAD(w), .name = "user" };

	have_fpga = fpga_try(&f, 0);
	if (!have_fpga)
		return;
	/* mostly the test before has left it so */
	if (!call(f.fd, RASHPA_IOC_WINDOW_MAKE, &w))
		close(w.out_fd);
	else if (fpga_profile(&f, RASHPA_PROFILE_NO_RESET, windows, ARRAY_SIZE(windows)))
		tap_bail("profile: %s", reason);
	shared_memory = buffer_alloc(64 * MIB, NULL);
	words = buffer_alloc(PAGE, NULL);
	if (!module_load("liar", &liar))
		scattered = liar_export(&lie);
}

void teardown_all(void)
{
	module_unload("liar");
}
