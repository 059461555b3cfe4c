// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=2 */
/*
 * A successful call writes its whole answer, a failed one writes nothing, and no call writes
 * old content of memory.
 */
#include <sys/resource.h>

#include "calls.h"

#define LEFT		0xa5

static union call_arg arg, given;

/* The memory at the call's pointer, if the kernel writes there, or NULL. */
static unsigned char *out_target(const struct op *op, size_t *bytes)
{
	const struct pointer_field *p = &op->pointers[0];
	u64 to;

	*bytes = p->bytes;
	if (!p->out || p->pages)
		return NULL;
	memcpy(&to, arg.bytes + p->at, sizeof(to));
	return (unsigned char *)(uintptr_t)to;
}

/* A valid argument, with @pattern wherever the kernel writes. */
static void prepare(const struct op *op, unsigned char pattern)
{
	unsigned char *target;
	size_t at, bytes;

	op_prepare(op, &arg);
	for (at = 0; at < op->size; at++)
		if (op_out(op, at))
			arg.bytes[at] = (char)pattern;
	target = out_target(op, &bytes);
	if (target)
		memset(target, pattern, bytes);
}

/* Count for each byte how often it stayed the same: an answer may equal a pattern once. */
static bool count_kept(const struct op *op, unsigned int *kept, unsigned int *kept_target,
		       unsigned char pattern)
{
	unsigned char *target;
	size_t at, bytes;

	memcpy(&given, &arg, op->size);
	if (!ANSWERED(call(calls.nodes[op->node], op->cmd, &arg), 0, NULL))
		return false;
	for (at = sizeof(arg.head); at < op->size; at++)
		if (op_out(op, at))
			kept[at] += arg.bytes[at] == (char)pattern;
		else
			CHECK(arg.bytes[at] == given.bytes[at], "byte %zu was changed", at);
	target = out_target(op, &bytes);
	for (at = 0; target && at < bytes; at++)
		kept_target[at] += target[at] == pattern;
	op_undo(op, &arg);
	return true;
}

/* @fd: value of the call's first field for a file descriptor, or NULL */
static void check_written(const struct op *op, const int *fd)
{
	static const unsigned char patterns[] = { LEFT, 0x5a, 0x3c, 0xc3 };
	unsigned int kept[256] = {}, kept_target[256] = {};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		prepare(op, patterns[i]);
		if (fd)
			memcpy(arg.bytes + op->fds[0].at, fd, sizeof(*fd));
		if (!count_kept(op, kept, kept_target, patterns[i]))
			return;
	}
	for (i = 0; i < ARRAY_SIZE(kept); i++) {
		CHECK(kept[i] < ARRAY_SIZE(patterns), "byte %zu was not written", i);
		CHECK(kept_target[i] < ARRAY_SIZE(patterns), "byte %zu was not written there", i);
	}
}

TEST_OPS(written, op_answers(op), "%s: a successful call writes its whole answer")
{
	const struct fd_field *f0 = &op->fds[0];
	enum fd_kind kind;

	if (!f0->at)
		check_written(op, NULL);
	for (kind = 0; kind < FD_KINDS; kind++)
		if (f0->takes & 1U << kind && (calls.fds[kind] >= 0 || kind == FD_NONE))
			check_written(op, &calls.fds[kind]);
}

/* Call with @arg as it is. Returns its answer; if it fails it has written nothing. */
static int call_untouched(const struct op *op)
{
	size_t at;
	int err;

	memcpy(&given, &arg, op->size);
	err = call(calls.nodes[op->node], op->cmd, &arg);
	if (!err) {
		op_undo(op, &arg);
		return 0;
	}
	for (at = sizeof(arg.head); at < op->size; at++)
		if (!CHECK(arg.bytes[at] == given.bytes[at],
			   "%s has failed (%s) and written byte %zu", op_name(op),
			   strerror(-err), at))
			break;
	return err;
}

static void fails(const struct op *op, const char *why)
{
	CHECK(call_untouched(op), "it does not fail: %s", why);
}

static void fails_u32(const struct op *op, size_t at, uint32_t value, const char *why)
{
	prepare(op, LEFT);
	memcpy(arg.bytes + at, &value, sizeof(value));
	fails(op, why);
}

TEST_OPS(failures, op_answers(op), "%s: a failed call writes nothing")
{
	struct rlimit limit, none;
	u64 nowhere = 8;
	size_t i;

	fails_u32(op, offsetof(struct rashpa_head, flags), 1U << 31, "a flag");
	for (i = 0; i < ARRAY_SIZE(op->reserved) && op->reserved[i]; i++)
		fails_u32(op, op->reserved[i], 1, "a reserved field");
	for (i = 0; i < ARRAY_SIZE(op->fds) && op->fds[i].at; i++)
		fails_u32(op, op->fds[i].at, calls.fds[FD_CLOSED], "a closed file");
	for (i = 0; i < ARRAY_SIZE(op->pointers) && op->pointers[i].at; i++) {
		prepare(op, LEFT);
		memcpy(arg.bytes + op->pointers[i].at, &nowhere, sizeof(nowhere));
		fails(op, "a pointer");
	}
	if (op->out_fd) {
		getrlimit(RLIMIT_NOFILE, &limit);
		none = (struct rlimit){ 0, limit.rlim_max };
		prepare(op, LEFT);
		setrlimit(RLIMIT_NOFILE, &none);
		fails(op, "no file descriptor");
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

TEST(failures_gone, "calls that fail after the function's removal write nothing")
{
	unsigned int failed = 0;
	size_t i;

	SKIP_IF(!calls.have_fpga, "no software FPGA");
	REQUIRE(!fpga_unbind(&calls.fpga), "unbind");
	for (i = 0; i < n_ops; i++) {
		if (ops[i].node <= BUFFER || !op_answers(&ops[i]))
			continue;
		prepare(&ops[i], LEFT);
		failed += !!call_untouched(&ops[i]);
	}
	CHECK(failed >= 10, "only %u calls need the function", failed);
	calls_function_again();
}

CALLS_SETUP
