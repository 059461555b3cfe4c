// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: kernel=debug iommu=on seconds=20 */
/*
 * Each allocation, and each copy from or to user space, of each call fails once. The call then
 * fails, leaves nothing, and works when it is made again.
 */
#include "calls.h"
#include "fault.h"

#define POINTS		400		/* of one call, at most */

static struct calls_state before;
/* How often a call failed because of a fault; both must have been seen somewhere. */
static unsigned int no_copy, no_memory;

/* ------------------------------------------------- one thing at a time --- */

/* A thing to try: @run answers 0 or -errno, @undo takes a success back. */
struct thing {
	const char *name;
	int (*run)(void *data);
	void (*undo)(void *data);
	void (*lost)(void *data);	/* undoes the part that may stay after EFAULT */
	void *data;
};

/* Returns the number of places that can fail. */
static unsigned int places(const struct thing *t)
{
	unsigned int left;
	int err;

	faults_arm(FAULTS_NEVER);
	err = t->run(t->data);
	left = faults_disarm();
	if (!CHECK(!err, "%s: %s", t->name, strerror(-err)))
		return 0;
	if (t->undo)
		t->undo(t->data);
	return FAULTS_NEVER - left;
}

/* Fail at place @n. Returns false when the call has no such place any more. */
static bool fail_at(const struct thing *t, unsigned int n)
{
	bool hit;
	int err;

	faults_arm(n);
	err = t->run(t->data);
	hit = !faults_disarm();
	CHECK(fault_answer(err), "%s, place %u: %s", t->name, n, strerror(-err));
	CHECK(hit || !err, "%s: %s without a fault", t->name, strerror(-err));
	no_copy += err == -EFAULT;
	no_memory += err == -ENOMEM;
	if (!err && t->undo)
		t->undo(t->data);
	if (err == -EFAULT && t->lost)
		t->lost(t->data);
	calls_state_same(&before, t->name);
	if (err) {
		err = t->run(t->data);
		CHECK(!err, "%s, after place %u: %s", t->name, n, strerror(-err));
		if (!err && t->undo)
			t->undo(t->data);
	}
	return hit;
}

static void fail_everywhere(const struct thing *t)
{
	unsigned int n = 0, all = places(t);

	/* pending softirqs of a busy host allocate in this process's name, too */
	for (unsigned int again = 0; all > POINTS && again < 3; again++)
		all = places(t);
	REQUIRE(all <= POINTS, "%s: %u places", t->name, all);
	calls_state_get(&before);
	while (tap_ok() && fail_at(t, ++n))
		CHECK(n <= POINTS, "%s does not succeed", t->name);
	if (!tap_ok())
		tap_note("%s: place %u of %u", t->name, n, all);
	else
		tap_note("%s: %u places", t->name, n - 1);
}

/* --------------------------------------------------------- every call --- */

static union call_arg arg;

static int run_op(void *data)
{
	const struct op *op = data;

	return ioctl(calls.nodes[op->node], op->cmd, &arg) ? -errno : 0;
}

/* Undone: the next argument is ready, because making it must not fail. */
static void undo_op(void *data)
{
	const struct op *op = data;

	op_undo(op, &arg);
	op_prepare(op, &arg);
}

static void lost_op(void *data)
{
	op_lost(data, &arg);
}

TEST_OPS(call, true, "%s: each place in it fails")
{
	struct thing t = { op_name(op), run_op, undo_op, lost_op, (void *)op };
	unsigned int memory_before = no_memory;

	no_copy = 0;
	op_prepare(op, &arg);
	fail_everywhere(&t);
	/* each call copies its argument, and a call that makes an object allocates */
	CHECK(no_copy, "no copy was made to fail");
	CHECK(!op->out_fd || no_memory > memory_before, "no allocation was made to fail");
}

/* --- the sentence: only its errno counts --- */

static char sentence[RASHPA_REASON_SIZE];

static int run_refused(void *unused)
{
	struct rashpa_info i = { HEAD(i), .fd = -1 };
	int err;

	i.head.reason = (uintptr_t)sentence;
	i.head.reason_size = sizeof(sentence);
	err = ioctl(memory, RASHPA_IOC_INFO, &i) ? -errno : 0;
	return err == -EBADF ? 0 : err ?: -EINVAL;
}

/* ------------------------------------------------------ other entries --- */

static int made = -1;

static void close_made(void *unused)
{
	close(made);
}

static int run_open(void *data)
{
	made = open(data, O_RDWR | O_CLOEXEC);
	return made < 0 ? -errno : 0;
}

/* mmap of one object, and its first byte */
struct mapped {
	int fd, prot;
	off_t offset;
	size_t length;
	void *at;
};

static int run_mmap(void *data)
{
	struct mapped *m = data;

	m->at = mmap(NULL, m->length, m->prot, MAP_SHARED, m->fd, m->offset);
	if (m->at == MAP_FAILED)
		return -errno;
	/* a page fault that finds no memory is tried again */
	(void)*(volatile char *)m->at;
	return 0;
}

static void undo_mmap(void *data)
{
	struct mapped *m = data;

	munmap(m->at, m->length);
}

static int run_read(void *unused)
{
	struct rashpa_event e;

	return read(calls.nodes[CHANNEL], &e, sizeof(e)) < 0 ? -errno : 0;
}

static void queue_record(void *unused)
{
	struct rashpa_signal signal = { HEAD(signal) };

	ioctl(calls.nodes[CHANNEL], RASHPA_IOC_SIGNAL, &signal);
}

static int run_poll(void *data)
{
	struct pollfd p[] = {
		{ .fd = calls.nodes[CHANNEL], .events = POLLIN },
		{ .fd = calls.nodes[MAP], .events = POLLIN },
	};

	return poll(p, ARRAY_SIZE(p), 0) < 0 ? -errno : 0;
}

static void try_one(const char *name, int (*run)(void *), void (*undo)(void *), void *data)
{
	struct thing t = { name, run, undo, NULL, data };

	fail_everywhere(&t);
}

static void try_mmap(const char *name, int fd, int prot, off_t offset, size_t length)
{
	struct mapped m = { fd, prot, offset, length, NULL };

	try_one(name, run_mmap, undo_mmap, &m);
}

/* An object whose last file is closed goes, whatever fails. */
TEST_OPS(close, op->out_fd && !op->variant, "%s: each place in close() of its object fails")
{
	unsigned int n, left = 0;

	calls_state_get(&before);
	for (n = 1; n <= POINTS && tap_ok() && !left; n++) {
		op_prepare(op, &arg);
		if (!ANSWERED(call(calls.nodes[op->node], op->cmd, &arg), 0, NULL))
			break;
		made = op_fd(op, &arg);
		faults_arm(n);
		close(made);
		left = faults_disarm();
		calls_state_same(&before, "close");
	}
	CHECK(left, "it does not end");
}

TEST(sentence, "the sentence: each place in it fails")
{
	try_one("the sentence", run_refused, NULL, NULL);
}

TEST(open, "open of each node: each place in it fails")
{
	char path[48];

	try_one("the memory node", run_open, close_made, "/dev/rashpa/memory");
	try_one("a buffer's node", run_open, close_made, "/dev/rashpa/buffer/st-calls");
	SKIP_IF(!calls.have_fpga, "no software FPGA");
	snprintf(path, sizeof(path), "/dev/rashpa/%s", calls.fpga.name);
	try_one("a function", run_open, close_made, path);
}

TEST(mmap, "mmap of each object: each place in it fails")
{
	struct rashpa_channel_make events = { HEAD(events) };

	try_mmap("a buffer", calls.fds[FD_BUFFER], PROT_READ | PROT_WRITE, 0, PAGE);
	try_mmap("a buffer's node", calls.nodes[BUFFER], PROT_READ | PROT_WRITE, 0, PAGE);
	SKIP_IF(!calls.have_fpga, "no software FPGA");
	try_mmap("a window", calls.fds[FD_WINDOW], PROT_READ | PROT_WRITE, 0, PAGE);
	try_mmap("a map", calls.nodes[MAP], PROT_READ, 0, PAGE);
	REQUIRE(!call(calls.fpga.fd, RASHPA_IOC_CHANNEL_MAKE, &events), "%s", reason);
	try_mmap("a queue", events.out_fd, PROT_READ, 0, events.out_ring_size);
	try_mmap("a consumer's page", events.out_fd, PROT_READ | PROT_WRITE, events.out_consumer,
		 PAGE);
	close(events.out_fd);
}

TEST(read, "read and poll of a channel: each place in it fails")
{
	SKIP_IF(!calls.have_fpga, "no software FPGA");
	queue_record(NULL);
	try_one("read", run_read, queue_record, NULL);
	try_one("poll", run_poll, NULL, NULL);
}

void setup(void)
{
	if (!faults_open())
		tap_skip_all("this kernel cannot inject faults");
	calls_open();
}

void teardown(void)
{
	calls_close();
	faults_close();
}
