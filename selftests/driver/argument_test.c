// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug seconds=10 */
/*
 * Wrong pointers and wrong file descriptors, in every place of every call that takes one;
 * nodes that are open read-only.
 */
#include "calls.h"

#define HIGH	(1UL << 63)

static union call_arg arg;
static struct calls_state before;

/* One page that is there, one that is not. */
static char *pages;

static void prepare(const struct op *op)
{
	op_prepare(op, &arg);
}

static int run(const struct op *op)
{
	return op_run(op, calls.nodes[op->node], &arg);
}

static void begin(void)
{
	calls_state_get(&before);
}

/* Nothing may be left, and the same call works. */
static void end(const struct op *op)
{
	calls_state_same(&before, "wrong arguments");
	prepare(op);
	ANSWERED(run(op), 0, NULL);
}

/* --- the struct --- */

static void efault(const struct op *op, unsigned long at, const char *what)
{
	CHECK(ioctl(calls.nodes[op->node], op->cmd, at) < 0 && errno == EFAULT, "%s: %s", what,
	      strerror(errno));
}

/* The struct ends @missing bytes after the end of the mapped page. */
static void efault_cut(const struct op *op, uint32_t missing, const char *what)
{
	char *at = pages + PAGE - (op->size - missing);

	prepare(op);
	memcpy(at, &arg, op->size - missing);
	efault(op, (unsigned long)at, what);
}

TEST_OPS(bad_struct, !op->variant,
	 "%s: a struct that is not there, or read-only, is EFAULT, and leaves nothing")
{
	begin();
	efault(op, 0, "NULL");
	efault(op, 8, "8");
	efault(op, (unsigned long)pages + PAGE, "not accessible");
	efault(op, -1UL, "-1");
	efault(op, HIGH, "kernel half");
	efault(op, 0xffff888000000000, "kernel memory");
	efault(op, 0xffffffff81000000, "kernel text");
	efault(op, (unsigned long)pages + PAGE - 2, "the end is in the size");
	*(uint32_t *)(pages + PAGE - 8) = op->size;
	efault(op, (unsigned long)pages + PAGE - 8, "the end is in the head");
	efault_cut(op, 4, "the end is 4 bytes early");
	efault_cut(op, 1, "the end is a byte early");

	/* read-only: nothing was done */
	prepare(op);
	memcpy(pages, &arg, op->size);
	mprotect(pages, PAGE, PROT_READ);
	efault(op, (unsigned long)pages, "read-only");
	mprotect(pages, PAGE, PROT_READ | PROT_WRITE);
	CHECK(!memcmp(pages, &arg, op->size), "it was written");

	/* two pages, the second read-only: the answer can be stored in part */
	mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE);
	memcpy(pages + PAGE - 8, &arg, op->size);
	mprotect(pages + PAGE, PAGE, PROT_READ);
	efault(op, (unsigned long)pages + PAGE - 8, "read-only in part");
	mprotect(pages + PAGE, PAGE, PROT_NONE);
	end(op);
}

/* --- what it points to --- */

static void set_pointer(const struct op *op, const struct pointer_field *p, u64 to)
{
	prepare(op);
	memcpy(arg.bytes + p->at, &to, sizeof(to));
}

static void refused_pointer(const struct op *op, const struct pointer_field *p, u64 to,
			    int err, const char *what)
{
	set_pointer(op, p, to);
	if (!ANSWERED(run(op), err, NULL))
		tap_note("the pointer at %zu is %s", p->at, what);
}

/* Copy the target of a valid argument's pointer to @to. */
static void copy_target(const struct op *op, const struct pointer_field *p, char *to)
{
	u64 from;

	prepare(op);
	memcpy(&from, arg.bytes + p->at, sizeof(from));
	memcpy(to, (void *)(uintptr_t)from, p->bytes);
}

static void test_target_reserved(const struct op *op, const struct pointer_field *p)
{
	int i;

	for (i = 0; p->reserved && i < 4; i++) {
		copy_target(op, p, pages);
		pages[p->reserved + i] = 1;
		set_pointer(op, p, (uintptr_t)pages);
		ANSWERED(run(op), EINVAL, "reserved");
	}
}

static void try_pointer(const struct op *op, const struct pointer_field *p)
{
	u64 at = (uintptr_t)pages;

	begin();
	refused_pointer(op, p, 0, p->null, "NULL");
	refused_pointer(op, p, at + PAGE, EFAULT, "not accessible");
	refused_pointer(op, p, HIGH, EFAULT, "in the kernel's half");
	refused_pointer(op, p, 0xffff888000000000, EFAULT, "kernel memory");
	refused_pointer(op, p, 0xffffffff81000000, EFAULT, "kernel text");
	refused_pointer(op, p, -PAGE, EFAULT, "the last page");
	if (p->pages) {
		refused_pointer(op, p, at + 8, EINVAL, "not at a page");
	} else {
		refused_pointer(op, p, 8, EFAULT, "8");
		copy_target(op, p, pages + PAGE - p->bytes);
		set_pointer(op, p, at + PAGE - p->bytes);
		if (!p->out)
			ANSWERED(run(op), 0, NULL);
		refused_pointer(op, p, at + PAGE - p->bytes + 1, EFAULT, "a byte short of its end");
		test_target_reserved(op, p);
	}
	copy_target(op, p, pages);
	mprotect(pages, PAGE, PROT_READ);
	set_pointer(op, p, at);
	ANSWERED(run(op), p->out ? EFAULT : 0, NULL);
	mprotect(pages, PAGE, PROT_READ | PROT_WRITE);
	end(op);
}

TEST_OPS(pointer, op->pointers[0].at, "%s: a pointer in it that leads nowhere is refused")
{
	for (size_t i = 0; i < ARRAY_SIZE(op->pointers) && op->pointers[i].at; i++)
		try_pointer(op, &op->pointers[i]);
}

/* --- file descriptors --- */

static void try_fd(const struct op *op, const struct fd_field *f)
{
	enum fd_kind kind;
	int32_t fd;
	int err;

	begin();
	for (kind = 0; kind < FD_KINDS; kind++) {
		fd = calls.fds[kind];
		if (fd < 0 && kind != FD_NONE)
			continue;
		prepare(op);
		memcpy(arg.bytes + f->at, &fd, sizeof(fd));
		err = run(op);
		if (f->takes & 1U << kind) {
			if (!ANSWERED(err, 0, NULL))
				tap_note("with %s", fd_names[kind]);
			continue;
		}
		/* -1 may have a meaning, which the other fields do not fit */
		if (f->takes != 1U << FD_NONE && (kind == FD_CLOSED || kind == FD_PATH))
			CHECK(err == -EBADF, "%s: answer %d", fd_names[kind], -err);
		else if (kind >= FD_FILE && kind < FD_BUFFER)
			CHECK(err == -EINVAL, "%s: answer %d", fd_names[kind], -err);
		else
			CHECK(err == -EINVAL || err == -EBADF || err == -EXDEV || err == -ENXIO ||
			      err == -EPERM, "%s: answer %d", fd_names[kind], -err);
		CHECK(reason[0] && strstr(reason, f->says), "%s: reason \"%s\"",
		      fd_names[kind], reason);
	}
	end(op);
}

TEST_OPS(fd, op->fds[0].at, "%s: an fd in it of the wrong kind is refused")
{
	for (size_t i = 0; i < ARRAY_SIZE(op->fds) && op->fds[i].at; i++)
		try_fd(op, &op->fds[i]);
}

/* The same number, another file: a closed fd, then one of the wrong kind in its place. */
static void try_fd_again(const struct op *op, const struct fd_field *f)
{
	int32_t fd, again;
	int err;

	begin();
	prepare(op);
	memcpy(&fd, arg.bytes + f->at, sizeof(fd));
	if (fd < 0)
		return;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 500);
	memcpy(arg.bytes + f->at, &fd, sizeof(fd));
	ANSWERED(run(op), 0, NULL);
	close(fd);
	prepare(op);
	memcpy(arg.bytes + f->at, &fd, sizeof(fd));
	ANSWERED(run(op), EBADF, f->says);
	again = dup3(calls.fds[FD_PIPE], fd, O_CLOEXEC);
	CHECK(again == fd, "dup3");
	prepare(op);
	memcpy(arg.bytes + f->at, &fd, sizeof(fd));
	err = run(op);
	CHECK(err == -EINVAL || err == -EBADF, "a pipe: answer %d", -err);
	close(fd);
	end(op);
}

TEST_OPS(fd_again, op->fds[0].at, "%s: an fd that is closed and used again names the new file")
{
	for (size_t i = 0; i < ARRAY_SIZE(op->fds) && op->fds[i].at; i++)
		try_fd_again(op, &op->fds[i]);
}

/* --- nodes that are open read-only, or not open at all --- */

static int node_read_only(enum node node)
{
	if (node == MEMORY)
		return open("/dev/rashpa/memory", O_RDONLY | O_CLOEXEC);
	if (node == FPGA)
		return fcntl(calls.fds[FD_FPGA_READ], F_DUPFD_CLOEXEC, 0);
	return -1;
}

TEST_OPS(read_only, !op->variant && (op->node == MEMORY || op->node == FPGA),
	 "%s on a node that is open read-only: refused if it writes")
{
	int fd;

	begin();
	fd = node_read_only(op->node);
	CHECK(fd >= 0, "open: %s", strerror(errno));
	prepare(op);
	ANSWERED(op_run(op, fd, &arg), op->write ? EPERM : 0, "read-only");
	close(fd);
	end(op);
}

TEST_OPS(wrong_node, !op->variant, "%s: no other file answers the call")
{
	static const enum node node_of[FD_KINDS] = {	/* and one */
		[FD_MEMORY] = MEMORY + 1, [FD_NODE] = BUFFER + 1, [FD_FPGA] = FPGA + 1,
		[FD_FPGA_READ] = FPGA + 1, [FD_MAP] = MAP + 1, [FD_CHANNEL] = CHANNEL + 1,
	};
	enum fd_kind kind;
	int err;

	begin();
	for (kind = 0; kind < FD_KINDS; kind++) {
		if (calls.fds[kind] < 0 || (node_of[kind] && op_served(node_of[kind] - 1, op->cmd)))
			continue;
		prepare(op);
		err = call(calls.fds[kind], op->cmd, &arg);
		if (kind == FD_CLOSED || kind == FD_PATH)
			CHECK(err == -EBADF, "%s: answer %d", fd_names[kind], -err);
		else
			CHECK(err == -ENOTTY, "%s: answer %d", fd_names[kind], -err);
	}
	end(op);
}

void setup(void)
{
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE))
		tap_bail("no pages");
	calls_open();
}

void teardown(void)
{
	calls_close();
}
