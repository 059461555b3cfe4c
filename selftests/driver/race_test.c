// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any iommu=on seconds=11 */
/* test: kernel=debug iommu=on smp=2 seconds=15 */
/* test: tier=nightly iommu=on smp=2 seconds=15 */
/*
 * Races that cannot be missed: calls stall while they read or write user memory, and the test
 * takes their objects away meanwhile.
 */
#include "stall.h"

static struct stall stalls[STALLS_MAX];
static struct calls_state before;

static const char *const places[] = {
	"the size", "the struct", "a pointer", "the sentence", "the answer", "read()",
};

/* Does @op stall there? */
static bool can_stall(const struct op *op, enum stall_at at)
{
	if ((op->node > BUFFER || op->function) && !calls.have_fpga)
		return false;
	if (at == STALL_POINTER)
		return op->pointers[0].at;
	if (at == STALL_ANSWER)
		return op_answers(op);
	return at == STALL_SIZE || !op->variant;
}

static void told(const struct stall *s, bool ok)
{
	if (!ok)
		tap_note("%s, stalled at %s: answer %d, reason \"%s\"",
			 s->op ? op_name(s->op) : "read", places[s->at], -s->err, s->reason);
}

/* Is this the answer of a call that was stalled, but not disturbed? */
static bool undisturbed(const struct stall *s)
{
	if (s->at == STALL_REASON)
		return s->err == -EINVAL && !memcmp(s->pages + PAGE, "flags 0x", 8);
	/* windows and maps were made after it was begun */
	if (s->op->idle)
		return !s->err || s->err == -EBUSY;
	return !s->err;
}

static void each_at(enum stall_at at, void (*fn)(const struct op *op, enum stall_at at))
{
	size_t i;

	for (i = 0; i < n_ops; i++)
		if (can_stall(&ops[i], at))
			fn(&ops[i], at);
}

/* --- its own file is closed --- */

static void close_file(const struct op *op, enum stall_at at)
{
	struct stall *s = &stalls[0];
	unsigned int fds;
	int fd;

	fd = calls_node(op->node);
	REQUIRE(fd >= 0, "%s: %s", op_name(op), reason);
	fds = fds_open();
	stall_begin(s, op, at, fd);
	if (stalls_wait()) {
		/* the one more is that of userfaultfd */
		CHECK(fds_open() == fds + 1, "%s: a file before its answer", op_name(op));
		close(fd);
	}
	stall_end_undo(s);
	told(s, CHECK(undisturbed(s), "closed under it"));
}

TEST(close, "calls whose file is closed under them end well")
{
	enum stall_at at;

	calls_state_get(&before);
	for (at = STALL_SIZE; at <= STALL_ANSWER; at++)
		each_at(at, close_file);
	calls_state_same(&before, "close");
}

/* --- a file that it names is closed, or another one --- */

static void exchange(const struct op *op, const struct fd_field *f, int with)
{
	struct stall *s = &stalls[0];
	int32_t fd, own = 700;

	stall_begin(s, op, STALL_SIZE, calls.nodes[op->node]);
	if (stalls_wait()) {
		/* the number that was there all the time counts when it goes on */
		memcpy(&fd, s->rest + f->at - 8, sizeof(fd));
		dup3(fd, own, O_CLOEXEC);
		memcpy(s->rest + f->at - 8, &own, sizeof(own));
		if (with < 0)
			close(own);
		else
			dup3(with, own, O_CLOEXEC);
	}
	stall_end_undo(s);
	if (with < 0)
		told(s, CHECK(s->err == -EBADF, "closed"));
	else
		told(s, CHECK(s->err == -EINVAL || s->err == -EBADF || s->err == -EXDEV,
			      "exchanged"));
	CHECK(strstr(s->reason, "700"), "the reason \"%s\" does not name the fd", s->reason);
	close(own);
}

TEST(exchange, "calls see the file that an fd names when they use it")
{
	size_t i;

	calls_state_get(&before);
	for (i = 0; i < n_ops; i++) {
		const struct fd_field *f = &ops[i].fds[0];

		if (!f->at || !can_stall(&ops[i], STALL_SIZE) || f->takes == 1U << FD_NONE)
			continue;
		exchange(&ops[i], f, -1);
		exchange(&ops[i], f, calls.fds[FD_PIPE]);
		exchange(&ops[i], f, calls.fds[FD_MEMORY]);
	}
	calls_state_same(&before, "exchange");
}

/* --- the struct changes after its size was read --- */

static void change_size(const struct op *op, enum stall_at at)
{
	static const uint32_t sizes[] = { 0, 0xffffffff, 23, 4096 };
	struct stall *s = &stalls[0];
	size_t i;

	for (i = 0; i < tap_times(2, ARRAY_SIZE(sizes)); i++) {
		stall_begin(s, op, at, calls.nodes[op->node]);
		/* a tail that a larger size would bring to light */
		memset(s->rest + op->size - 8, 0xff, sizeof(s->rest) - op->size + 8);
		if (stalls_wait())
			*(volatile uint32_t *)s->arg = sizes[i];
		stall_end_undo(s);
		told(s, CHECK(undisturbed(s), "size %u", sizes[i]));
		CHECK(s->arg[op->size] == (char)0xff, "%s: written behind the struct", op_name(op));
	}
}

/* Flags that come after the first reading count: they are checked where they are used. */
static void change_flags(const struct op *op, enum stall_at at)
{
	struct stall *s = &stalls[0];

	stall_begin(s, op, at, calls.nodes[op->node]);
	if (stalls_wait())
		((volatile struct rashpa_head *)s->arg)->flags = 1U << 31;
	stall_end_undo(s);
	told(s, CHECK(s->err == -EINVAL && strstr(s->reason, "flags 0x80000000"),
		      "a flag that is not defined"));
}

TEST(change, "the size counts as it was read first, flags as they are used")
{
	calls_state_get(&before);
	each_at(STALL_SIZE, change_size);
	each_at(STALL_SIZE, change_flags);
	calls_state_same(&before, "change");
}

/* --- the answer cannot be stored any more --- */

static void lose_page(const struct op *op, enum stall_at at, unsigned int page)
{
	struct stall *s = &stalls[0];
	bool silent = op->cmd == RASHPA_IOC_PROFILE_SET;	/* has no answer */
	struct calls_state now;

	calls_state_get(&before);
	calls_function_idle(op->idle);
	stall_begin(s, op, at, calls.nodes[op->node]);
	if (stalls_wait())
		mprotect(s->pages + page * PAGE, PAGE, PROT_READ);
	stall_end(s);
	if (silent)
		told(s, CHECK(undisturbed(s), "no answer to store"));
	else
		told(s, CHECK(s->err == -EFAULT, "stored in a read-only page"));
	if (op_stays(op)) {
		calls_state_get(&now);
		told(s, CHECK(now.holdings > before.holdings, "its object is not listed"));
		op_lost(op, (union call_arg *)s->arg);
	}
	calls_function_idle(false);
	calls_state_same(&before, op_name(op));
}

static void lose_answer(const struct op *op, enum stall_at at)
{
	lose_page(op, at, 0);
	/* the beginning can be stored */
	if (at == STALL_ANSWER)
		lose_page(op, at, 1);
}

TEST(lose_answer, "an answer that cannot be stored leaves only what has a name or an id")
{
	each_at(STALL_POINTER, lose_answer);
	each_at(STALL_ANSWER, lose_answer);
}

/* --- names --- */

/* @name instead of the one at @at in the part of the struct that is yet to be read. */
static void set_name(struct stall *s, size_t at, const char *name)
{
	snprintf(memset(s->rest + at - 8, 0, RASHPA_NAME_SIZE), RASHPA_NAME_SIZE, "%s", name);
}

/* A name that was free when the call began. */
static void take_name(void)
{
	struct stall *s = &stalls[0];
	size_t i;

	for (i = 0; ops[i].cmd != RASHPA_IOC_ALLOC; i++)
		;
	stall_begin(s, &ops[i], STALL_SIZE, memory);
	set_name(s, offsetof(struct rashpa_alloc, name), "st-taken");
	if (stalls_wait())
		close(buffer_alloc(PAGE, "st-taken"));
	stall_end_undo(s);
	told(s, CHECK(s->err == -EEXIST && strstr(s->reason, "st-taken"), "taken"));
	ANSWERED(buffer_remove("st-taken"), 0, NULL);
}

/* The name goes before the call answers, and another buffer gets that name. */
static void exchange_name(const struct op *op, size_t at, bool lost)
{
	char name[RASHPA_NAME_SIZE];
	struct stall *s = &stalls[0];
	struct rashpa_info info;
	int again;

	stall_begin(s, op, STALL_ANSWER, calls.nodes[op->node]);
	memcpy(name, s->arg + at, sizeof(name));
	if (stalls_wait()) {
		ANSWERED(buffer_remove(name), 0, NULL);
		close(buffer_alloc(2 * PAGE, name));
		if (lost)
			mprotect(s->pages, PAGE, PROT_READ);
	}
	stall_end(s);
	told(s, CHECK(s->err == (lost ? -EFAULT : 0), "removed"));
	if (!s->err) {
		CHECK(!buffer_info(op_fd(op, (union call_arg *)s->arg), &info) &&
		      info.out_length == PAGE, "%s: another buffer", op_name(op));
		close(op_fd(op, (union call_arg *)s->arg));
	}
	again = buffer_open(name, O_RDWR);
	if (!CHECK(again >= 0, "the name of the other one is gone: %s", reason)) {
		tap_note("%s", op_name(op));
	} else {
		close(again);
		buffer_remove(name);
	}
}

static void lose_name_early(const struct op *op, enum stall_at at)
{
	int lost;

	for (lost = 0; op->cmd == RASHPA_IOC_ALLOC && op->undo && lost < 2; lost++)
		exchange_name(op, offsetof(struct rashpa_alloc, name), lost);
}

TEST(names_early, "names that go and come before the answer")
{
	calls_state_get(&before);
	each_at(STALL_ANSWER, lose_name_early);
	calls_state_same(&before, "names");
}

TEST(names, "names that go and come under a call")
{
	take_name();
}

/* --- read() --- */

static void *read_one(void *arg)
{
	struct rashpa_event e;

	return (void *)(intptr_t)read(*(int *)arg, &e, sizeof(e));
}

TEST(read, "read() that waits for its memory holds up no other caller")
{
	struct stall *s = &stalls[0];
	pthread_t other;
	void *got;
	int fd;

	SKIP_IF(!calls.have_fpga, "no software FPGA");
	fd = calls_node(CHANNEL);
	REQUIRE(fd >= 0, "%s", reason);
	ANSWERED(signal_one(fd, 0), 0, NULL);
	stall_begin(s, NULL, STALL_READ, fd);
	/* records go on coming, the queue can be asked, a second reader waits for its turn */
	if (stalls_wait()) {
		CHECK(wait_fd(fd, POLLIN, 0) == POLLIN, "the record was taken too early");
		ANSWERED(signal_one(fd, 0), 0, NULL);
		pthread_create(&other, NULL, read_one, &fd);
	}
	CHECK(stall_end(s) > 0, "read: %s", strerror(-s->err));
	/* both records at once: the other reader needs a third one */
	if (s->err != sizeof(struct rashpa_event))
		ANSWERED(signal_one(fd, 0), 0, NULL);
	pthread_join(other, &got);
	CHECK((intptr_t)got == sizeof(struct rashpa_event), "the second reader");
	close(fd);
}

TEST(read_lost, "a record that could not be stored is there for the next reader")
{
	struct stall *s = &stalls[0];
	struct rashpa_event e;
	int fd;

	SKIP_IF(!calls.have_fpga, "no software FPGA");
	fd = calls_node(CHANNEL);
	ANSWERED(signal_one(fd, 0), 0, NULL);
	stall_begin(s, NULL, STALL_READ, fd);
	if (stalls_wait())
		mprotect(s->pages + PAGE, PAGE, PROT_READ);
	CHECK(stall_end(s) == -EFAULT, "answer %d", s->err);
	CHECK(next_event(fd, &e) && e.sequence == 1, "the record is lost");
	close(fd);
}

/* --- all of them at once, and the function is reset or taken away --- */

static unsigned int begin_all(void)
{
	enum stall_at at;
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < n_ops; i++)
		for (at = STALL_SIZE; at <= STALL_POINTER; at++)
			if (ops[i].node > BUFFER && can_stall(&ops[i], at) &&
			    (at != STALL_STRUCT || !ops[i].pointers[0].at))
				stall_begin(&stalls[n++], &ops[i], at, calls.nodes[ops[i].node]);
	ANSWERED(signal_one(calls.nodes[CHANNEL], 0), 0, NULL);
	stall_begin(&stalls[n++], NULL, STALL_READ, calls.nodes[CHANNEL]);
	CHECK(stalls_wait(), "%u calls", n);
	return n;
}

/* One after the other: all calls are done, but not a single answer is stored. */
static unsigned int begin_answers(void)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < n_ops; i++) {
		if (ops[i].node <= BUFFER || !can_stall(&ops[i], STALL_ANSWER))
			continue;
		stall_begin(&stalls[n++], &ops[i], STALL_ANSWER, calls.nodes[ops[i].node]);
		if (!stalls_wait())
			break;
	}
	return n;
}

static void reset_under(unsigned int (*begin)(void))
{
	unsigned int i, n;

	SKIP_IF(!calls.have_fpga, "no software FPGA");
	calls_state_get(&before);
	n = begin();
	ANSWERED(fpga_reset(&calls.fpga), 0, NULL);
	for (i = 0; i < n; i++) {
		stall_end_undo(&stalls[i]);
		told(&stalls[i], CHECK(stalls[i].op ? undisturbed(&stalls[i]) :
				       stalls[i].err > 0, "reset"));
	}
	calls_state_same(&before, "reset");
}

TEST(reset, "calls in the middle of which the function is reset")
{
	reset_under(begin_all);
}

TEST(reset_answers, "answers before which the function is reset")
{
	reset_under(begin_answers);
}

static void unbind(void *f)
{
	int err = fpga_unbind(f);

	CHECK(!err, "unbind: %s", strerror(-err));
}

/* Calls that do not need the function: they answer as before. */
static bool needs_no_function(const struct op *op)
{
	return op->cmd == RASHPA_IOC_SOURCE_INFO || op->cmd == RASHPA_IOC_GROUP_INFO ||
	       op->cmd == RASHPA_IOC_ACK || op->cmd == RASHPA_IOC_ARM;
}

/* Objects from before show that their function is gone. */
static void check_gone(const struct op *op, int fd)
{
	struct rashpa_table table = {};
	struct rashpa_info info;
	struct rashpa_event e;

	if (op->cmd == RASHPA_IOC_WINDOW_MAKE)
		CHECK(!buffer_info(fd, &info) && info.out_flags & RASHPA_INFO_REVOKED,
		      "the window is not revoked");
	else if (op->cmd == RASHPA_IOC_MAP_MAKE)
		CHECK(read(fd, &table, sizeof(table)) == sizeof(table) &&
		      table.state == RASHPA_MAP_STATE_REVOKED, "the map is not revoked");
	else if (op->cmd == RASHPA_IOC_CHANNEL_MAKE)
		CHECK(read(fd, &e, sizeof(e)) < 0 && errno == ENODEV, "the channel waits for ever");
}

static void end_answer(struct stall *s, bool lost)
{
	if (lost)
		mprotect(s->pages, PAGE, PROT_READ);
	stall_end(s);
	told(s, CHECK(s->err == (lost ? -EFAULT : 0), "unbound"));
	if (s->err) {
		op_lost(s->op, (union call_arg *)s->arg);
		return;
	}
	if (s->op->out_fd)
		check_gone(s->op, op_fd(s->op, (union call_arg *)s->arg));
	op_undo(s->op, (union call_arg *)s->arg);
}

static void unbind_under(unsigned int (*begin)(void), bool lost)
{
	unsigned int i, n;

	SKIP_IF(!calls.have_fpga, "no software FPGA");
	calls_state_get(&before);
	n = begin();
	/* the driver holds no lock while it waits for user memory: unbind ends before they go on */
	tap_fork(unbind, &calls.fpga);
	for (i = 0; i < n; i++) {
		struct stall *s = &stalls[i];

		if (s->at == STALL_ANSWER) {
			end_answer(s, lost);
			continue;
		}
		stall_end(s);
		if (!s->op)
			told(s, CHECK(s->err > 0, "the record that was there"));
		/* LIST stores its holdings after it has used the function */
		else if (needs_no_function(s->op) ||
			 (s->op->cmd == RASHPA_IOC_LIST && s->at == STALL_POINTER))
			told(s, CHECK(!s->err, "unbound"));
		/* a source can be removed, once */
		else if (s->op->cmd == RASHPA_IOC_SOURCE_DEL)
			told(s, CHECK(!s->err || s->err == -ENOENT, "unbound"));
		else
			told(s, CHECK(s->err == -ENODEV &&
				      strstr(s->reason, calls.fpga.name), "unbound"));
	}
	calls_function_again();
	calls_state_same(&before, "unbind");
}

TEST(unbind, "calls in the middle of which the function is unbound")
{
	unbind_under(begin_all, false);
}

TEST(unbind_answers, "answers before which the function is unbound")
{
	unbind_under(begin_answers, false);
	unbind_under(begin_answers, true);
}

CALLS_SETUP
