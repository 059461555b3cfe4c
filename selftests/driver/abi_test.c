// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=7 */
/* The rules that every ioctl keeps, tried on every ioctl. */
#include "calls.h"

/* all that the header defines, see Makefile */
#define NUMBER(name)	{ #name, RASHPA_IOC_##name },
static const struct { const char *name; unsigned int cmd; } numbers[] = {
#include "numbers.h"
};

_Static_assert(ARRAY_SIZE(numbers) > 20, "the header is not understood");

static union call_arg arg;

static void prepare(const struct op *op)
{
	op_prepare(op, &arg);
}

/* Call with @arg as it is, then release the object that the call made. */
static int run(const struct op *op)
{
	return op_run(op, calls.nodes[op->node], &arg);
}

static void test_short(const struct op *op)
{
	uint32_t size;

	for (size = 0; size < op->first; size += size < 32 ? 1 : 8) {
		prepare(op);
		arg.head.size = size;
		if (!ANSWERED(run(op), EINVAL, size < 24 ? NULL : "size"))
			break;
	}
	prepare(op);
	arg.head.size = op->first - 1;
	ANSWERED(run(op), EINVAL, op->first - 1 < 24 ? NULL : "size");
}

/* the struct as first published */
static void test_first(const struct op *op)
{
	uint32_t size;

	if (op->first == op->size)
		return;
	prepare(op);
	arg.head.size = op->first;
	/* the kernel neither reads nor writes fields that the caller does not know */
	memset(arg.bytes + op->first, 0xa5, op->size - op->first);
	ANSWERED(run(op), 0, NULL);
	for (size = op->first; size < op->size; size++)
		if (!CHECK(arg.bytes[size] == (char)0xa5, "byte %u was written", size))
			break;
}

static void test_long(const struct op *op)
{
	static const uint32_t large[] = { 4097, 65536, 0x80000000, 0xffffffff };
	size_t i;

	prepare(op);
	arg.head.size = op->size + 1;
	ANSWERED(run(op), 0, NULL);
	prepare(op);
	arg.head.size = 4096;
	ANSWERED(run(op), 0, NULL);

	/* a tail that is not zero */
	prepare(op);
	arg.head.size = op->size + 8;
	arg.bytes[op->size] = 1;
	ANSWERED(run(op), E2BIG, "does not know");
	prepare(op);
	arg.head.size = op->size + 1;
	arg.bytes[op->size] = (char)0x80;
	ANSWERED(run(op), E2BIG, "does not know");
	prepare(op);
	arg.head.size = 4096;
	arg.bytes[4095] = 1;
	ANSWERED(run(op), E2BIG, "does not know");
	for (i = 0; i < ARRAY_SIZE(large); i++) {
		prepare(op);
		arg.head.size = large[i];
		ANSWERED(run(op), E2BIG, NULL);
	}
}

/*
 * The driver knows each defined flag: it takes the flag, or refuses it with a sentence, as the
 * other fields do not allow it.
 */
static void test_defined_flag(const struct op *op, uint32_t flag)
{
	int err;

	prepare(op);
	arg.head.flags ^= flag;
	err = run(op);
	CHECK(!err || (reason[0] && !strstr(reason, "are not defined")),
	      "flag 0x%x: answer %d, reason \"%s\"", flag, -err, reason);
	CHECK(!err || err == -EINVAL || err == -ENOMEM || err == -EREMOTEIO || err == -EOPNOTSUPP ||
	      err == -EBUSY || err == -EBADF, "flag 0x%x: %s", flag, strerror(-err));
}

static void test_flags(const struct op *op)
{
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		if (op->apart & 1U << bit)
			continue;
		if (op->flags & 1U << bit) {
			test_defined_flag(op, 1U << bit);
			continue;
		}
		prepare(op);
		arg.head.flags |= 1U << bit;
		ANSWERED(run(op), EINVAL, "flags 0x");
	}
}

static void refused_reserved(const struct op *op, size_t at)
{
	int i;

	for (i = 0; i < 4; i++) {
		prepare(op);
		arg.bytes[at + i] = (char)(i & 1 ? 0x80 : 1);
		ANSWERED(run(op), EINVAL, "reserved");
	}
}

static void test_reserved(const struct op *op)
{
	size_t i;

	refused_reserved(op, offsetof(struct rashpa_head, __reserved));
	for (i = 0; i < ARRAY_SIZE(op->reserved) && op->reserved[i]; i++)
		refused_reserved(op, op->reserved[i]);
}

TEST_OPS(again, true, "%s: a valid call succeeds, again and again")
{
	prepare(op);
	ANSWERED(run(op), 0, NULL);
	prepare(op);
	ANSWERED(run(op), 0, NULL);
	CHECK(arg.head.size == op->size, "the size was changed to %u", arg.head.size);
}

/* the head of a variant is that of the call's first row */
TEST_OPS(size, !op->variant, "%s: short structs are refused, long ones if their tail is not zero")
{
	test_short(op);
	test_first(op);
	test_long(op);
}

TEST_OPS(undefined, !op->variant, "%s: undefined flags and bytes of reserved fields are refused")
{
	test_flags(op);
	test_reserved(op);
}

TEST(all_numbers, "every call of the header is in the table")
{
	enum node node;
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		for (node = MEMORY; node < NODES; node++)
			if (op_served(node, numbers[i].cmd))
				break;
		CHECK(node < NODES, "RASHPA_IOC_%s is in the header, not in calls.c",
		      numbers[i].name);
		for (j = 0; j < i; j++)
			CHECK(numbers[i].cmd != numbers[j].cmd, "%s and %s have one number",
			      numbers[i].name, numbers[j].name);
	}
	/* a row of a removed call would not compile */
}

static const struct { const char *key; enum node node; } nodes[] = {
	{ "memory", MEMORY }, { "doomed", DOOMED }, { "buffer", BUFFER }, { "fpga", FPGA },
	{ "map", MAP }, { "channel", CHANNEL },
};

TEST_EACH(numbers, nodes, "other numbers on the node %s are ENOTTY")
{
	unsigned int nr, dir;
	int fd = calls.nodes[row->node];

	SKIP_IF(row->node > BUFFER && !calls.have_fpga, "no software FPGA");
	for (nr = 0; nr < 256; nr++) {
		for (dir = 0; dir < 4; dir++) {
			unsigned int cmd = _IOC(dir, RASHPA_IOC_TYPE, nr, 0);

			if (op_served(row->node, cmd))
				continue;
			memset(&arg, 0, sizeof(arg.head));
			arg.head.size = 64;
			if (!CHECK(call(fd, cmd, &arg) == -ENOTTY, "number 0x%x", cmd))
				break;
		}
	}
	CHECK(call(fd, _IO('x', 0), &arg) == -ENOTTY, "another type");
	CHECK(call(fd, _IO(0xe6, 0), &arg) == -ENOTTY, "another type");
	CHECK(ioctl(fd, _IOWR(RASHPA_IOC_TYPE, 0, struct rashpa_alloc), NULL) &&
	      errno == ENOTTY, "with a size in the number");
}

/* --- the sentence --- */

static int fail_with(u64 to, uint32_t size)
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE, .name = "st bad name" };

	a.head.reason = to;
	a.head.reason_size = size;
	return ioctl(memory, RASHPA_IOC_ALLOC, &a) ? -errno : 0;
}

TEST(reason, "the reason is a sentence, cut to the caller's room")
{
	char text[RASHPA_REASON_SIZE + 1];
	char whole[RASHPA_REASON_SIZE];
	uint32_t size;

	memset(whole, 0x7f, sizeof(whole));
	CHECK(fail_with((uintptr_t)whole, sizeof(whole)) == -EINVAL, "answer");
	CHECK(memchr(whole, 0, sizeof(whole)), "no NUL");
	CHECK(strstr(whole, "0x20"), "\"%s\" names nothing", whole);
	CHECK(whole[strlen(whole) - 1] != '\n', "it ends with a line end");
	for (size = 0; size <= RASHPA_REASON_SIZE; size++) {
		memset(text, 0x7f, sizeof(text));
		CHECK(fail_with((uintptr_t)text, size) == -EINVAL, "answer");
		CHECK(text[size] == 0x7f, "more than %u bytes were written", size);
		if (size && !CHECK(strnlen(text, size) < size &&
				   !strncmp(text, whole, strlen(text)),
				   "size %u: \"%s\"", size, text))
			break;
		CHECK(!size || size > strlen(whole) || strlen(text) == size - 1,
		      "size %u: cut to %zu", size, strlen(text));
	}
	CHECK(fail_with((uintptr_t)whole, UINT32_MAX) == -EINVAL, "answer");
}

TEST(reason_pointer, "a bad pointer to the reason does not change the errno")
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(pages + PAGE, PAGE);
	CHECK(fail_with(0, 256) == -EINVAL, "NULL");
	CHECK(fail_with(8, 256) == -EINVAL, "8");
	CHECK(fail_with(-1, 256) == -EINVAL, "-1");
	CHECK(fail_with(1ULL << 63, 256) == -EINVAL, "kernel half");
	CHECK(fail_with(0xffff888000000000, 256) == -EINVAL, "kernel memory");
	CHECK(fail_with((uintptr_t)(pages + PAGE), 256) == -EINVAL, "unmapped");
	CHECK(fail_with((uintptr_t)(pages + PAGE - 4), 256) == -EINVAL, "partly unmapped");
	mprotect(pages, PAGE, PROT_READ);
	CHECK(fail_with((uintptr_t)pages, 256) == -EINVAL, "read-only");
	munmap(pages, PAGE);
}

TEST(reason_success, "a success leaves the reason alone")
{
	char text[RASHPA_REASON_SIZE];
	struct rashpa_query q = { HEAD(q) };

	memset(text, 0x7f, sizeof(text));
	q.head.reason = (uintptr_t)text;
	q.head.reason_size = sizeof(text);
	CHECK(!ioctl(memory, RASHPA_IOC_QUERY, &q), "QUERY");
	CHECK(text[0] == 0x7f, "a sentence without a failure");
}

/* --- the first reading counts --- */

static struct rashpa_info racing;
static volatile bool racing_done;

static void *change_size(void *unused)
{
	volatile uint32_t *size = &racing.head.size;

	while (!racing_done) {
		*size = sizeof(racing);
		*size = 0xffffffff;
		*size = 0;
	}
	return NULL;
}

TEST(size_race, "a size that changes meanwhile does no harm")
{
	pthread_t thread;
	int i, err;

	racing.fd = calls.fds[FD_BUFFER];
	racing_done = false;
	pthread_create(&thread, NULL, change_size, NULL);
	for (i = 0; i < 20000; i++) {
		err = ioctl(memory, RASHPA_IOC_INFO, &racing) ? errno : 0;
		if (!CHECK(!err || err == EINVAL || err == E2BIG, "answer %d", err))
			break;
	}
	racing_done = true;
	pthread_join(thread, NULL);
}

CALLS_SETUP
