// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any iommu=on seconds=11 */
/* test: kernel=debug iommu=on smp=2 seconds=15 */
/* test: tier=nightly iommu=on smp=2 seconds=15 */
/* test: tier=nightly kernel=rt iommu=on smp=2 seconds=15 */
/*
 * Many callers at once: each call against close() of its file and against unbind of its function,
 * eight threads with random calls, processes that are killed. The winner is random, but
 * afterwards nothing may be left, and every call must work.
 */
#include "calls.h"

#define CLOSE_MS	tap_times(15, 40)	/* for each call */
#define STORM_MS	tap_times(800, 2000)
#define THREADS		8

static struct calls_state before;

static void every_call_works(void)
{
	static union call_arg arg;
	size_t i;

	for (i = 0; i < n_ops; i++) {
		if (ops[i].idle || (ops[i].node > BUFFER && !calls.have_fpga))
			continue;
		op_prepare(&ops[i], &arg);
		if (!ANSWERED(op_run(&ops[i], calls.nodes[ops[i].node], &arg), 0, NULL))
			tap_note("%s", op_name(&ops[i]));
	}
}

/* --- close() --- */

static atomic_int to_close;	/* -1: nothing, -2: end */

static void *closer(void *unused)
{
	int fd;

	while ((fd = atomic_load(&to_close)) != -2) {
		if (fd < 0) {
			sched_yield();
			continue;
		}
		close(fd);
		atomic_store(&to_close, -1);
	}
	return NULL;
}

static void against_close(const struct op *op)
{
	u64 end = now_ns() + CLOSE_MS * 1000000ULL;
	static union call_arg arg;
	unsigned int rounds = 0;
	int fd, err;

	do {
		fd = calls_node(op->node);
		REQUIRE(fd >= 0, "%s: %s", op_name(op), strerror(-fd));
		op_prepare(op, &arg);
		atomic_store(&to_close, fd);
		err = ioctl(fd, op->cmd, &arg) ? errno : 0;
		while (atomic_load(&to_close) != -1)
			sched_yield();
		/* objects of a map or a channel have gone with it */
		if (!err && op->node <= FPGA)
			op_undo(op, &arg);
		REQUIRE(!err || err == EBADF || (op->idle && err == EBUSY),
			"%s: %s", op_name(op), strerror(err));
	} while (++rounds < 2 || now_ns() < end);
}

TEST(close, "each call while its file is closed")
{
	pthread_t thread;
	size_t i;

	calls_state_get(&before);
	atomic_store(&to_close, -1);
	pthread_create(&thread, NULL, closer, NULL);
	for (i = 0; i < n_ops && tap_ok(); i++)
		if (ops[i].node <= BUFFER || calls.have_fpga)
			against_close(&ops[i]);
	atomic_store(&to_close, -2);
	pthread_join(thread, NULL);
	calls_state_same(&before, "close");
	every_call_works();
}

/* --- random calls --- */

struct caller {
	pthread_t thread;
	unsigned int seed;
	unsigned int calls, failed;
	bool function_goes;
};

static atomic_bool storming;

/* Calls with a fixed name or place disturb each other, as they should. */
static bool expected(const struct caller *c, int err)
{
	switch (err) {
	case 0:
	case ENOENT:	/* a name, a source */
	case EEXIST:
	case EBUSY:	/* a member, a window, a table entry */
	case ENOSPC:	/* sources of a channel */
	case EDQUOT:	/* the budget of all timers */
	case EINVAL:	/* an id that is a group's now */
	case EAGAIN:	/* two resets */
		return true;
	case EBADF:
	case ENODEV:
		return c->function_goes;
	default:
		return false;
	}
}

/* ids come from the call itself, or are guessed: sources that others are about to make */
static void change_id(struct caller *c, const struct op *op, union call_arg *arg)
{
	uint32_t id = rand_r(&c->seed) % 12;

	if (op->cmd == RASHPA_IOC_SOURCE_DEL)
		((struct rashpa_source_del *)arg)->id = id;
	else if (op->cmd == RASHPA_IOC_SOURCE_INFO)
		((struct rashpa_source_info *)arg)->id = id;
	else if (op->cmd == RASHPA_IOC_GROUP_INFO)
		((struct rashpa_group_info *)arg)->id = id;
}

/* A file that the call made; objects without one go with the channel. */
static void drop(const struct op *op, union call_arg *arg)
{
	if (op->node <= FPGA)
		op_undo(op, arg);
}

static void *storm(void *data)
{
	struct caller *c = data;
	union call_arg *arg = calloc(1, sizeof(*arg));
	int err;

	while (arg && atomic_load(&storming)) {
		const struct op *op = &ops[rand_r(&c->seed) % n_ops];

		if (op->node > BUFFER && !calls.have_fpga)
			continue;
		/* a reset takes a while, and an empty profile would end the maps of all */
		if (op->cmd == RASHPA_IOC_RESET && rand_r(&c->seed) % 16)
			continue;
		op_prepare(op, arg);
		change_id(c, op, arg);
		err = ioctl(calls.nodes[op->node], op->cmd, arg) ? errno : 0;
		if (!err)
			drop(op, arg);
		else if (!expected(c, err) && !c->failed++)
			tap_note("%s, %s: %s", op->name, op->variant ?: "plain", strerror(err));
		c->calls++;
	}
	free(arg);
	return NULL;
}

static struct caller callers[THREADS];

static void storm_begin(bool function_goes)
{
	const unsigned int seed = tap_seed();
	size_t i;

	atomic_store(&storming, true);
	for (i = 0; i < THREADS; i++) {
		callers[i] = (struct caller) { .seed = seed + i,
					       .function_goes = function_goes };
		pthread_create(&callers[i].thread, NULL, storm, &callers[i]);
	}
}

static void storm_end(void)
{
	unsigned int n = 0;
	size_t i;

	atomic_store(&storming, false);
	for (i = 0; i < THREADS; i++) {
		pthread_join(callers[i].thread, NULL);
		CHECK(!callers[i].failed, "%u calls failed with a wrong errno",
		      callers[i].failed);
		n += callers[i].calls;
	}
	tap_note("%u calls", n);
}

/* Make all objects anew: the old channel has an unknown number of sources. */
static void all_anew(void)
{
	calls_close();
	calls_open();
	every_call_works();
}

static void wait_ms(unsigned int ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

TEST(threads, "eight threads make random calls on the same files")
{
	calls_state_get(&before);
	storm_begin(false);
	wait_ms(STORM_MS);
	storm_end();
	all_anew();
	calls_state_same(&before, "eight threads");
}

TEST(unbind, "eight threads make random calls, and the function goes")
{
	int round, err;

	SKIP_IF(!calls.have_fpga, "no software FPGA");
	calls_state_get(&before);
	for (round = 0; round < 3; round++) {
		storm_begin(true);
		wait_ms(20 * (round + 1));
		err = fpga_unbind(&calls.fpga);
		CHECK(!err, "unbind: %s", strerror(-err));
		wait_ms(20);
		storm_end();
		calls_close();
		err = fpga_bind(&calls.fpga);
		CHECK(!err, "bind: %s", strerror(-err));
		calls_open();
	}
	every_call_works();
	calls_state_same(&before, "unbind");
}

/* --- processes that share files --- */

static void storm_child(void *arg)
{
	struct caller c = { .seed = *(unsigned int *)arg };

	atomic_store(&storming, true);
	storm(&c);
}

TEST(killed, "processes are killed in the middle of calls on shared files")
{
	unsigned int i, seed;
	pid_t pid[4];

	calls_state_get(&before);
	storm_begin(false);
	for (seed = 100; seed < 102; seed++) {
		for (i = 0; i < ARRAY_SIZE(pid); i++) {
			unsigned int own = seed * 10 + i;

			pid[i] = tap_fork_start(storm_child, &own);
		}
		wait_ms(100);
		for (i = 0; i < ARRAY_SIZE(pid); i++)
			tap_fork_kill(pid[i]);
	}
	storm_end();
	/* a child that was killed leaves its names: that is the rule */
	buffer_remove("st-calls-new");
	buffer_remove("st-calls-lock");
	all_anew();
	calls_state_same(&before, "killed");
}

/* The child ends while its parent goes on with the same files. */
static void one_of_each(void *unused)
{
	every_call_works();
}

TEST(fork, "a child that ends takes nothing from its parent")
{
	int i;

	for (i = 0; i < 3; i++) {
		tap_fork(one_of_each, NULL);
		every_call_works();
	}
}

CALLS_SETUP
