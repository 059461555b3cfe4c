// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls that stall half-way. */
#include <linux/userfaultfd.h>
#include <sys/syscall.h>
#include <time.h>

#include "stall.h"

static int uffd = -1;
static char *area;		/* two pages for each */
static struct stall *stalls[STALLS_MAX];
static unsigned int begun, standing, ended;

static void stalls_open(void)
{
	struct uffdio_api api = { .api = UFFD_API,
				  .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };

	uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
		tap_skip_all("userfaultfd: %s", strerror(errno));
	/* that of earlier calls, whose answers the test has read until now */
	if (area)
		munmap(area, STALLS_MAX * 2 * PAGE);
	area = mmap(NULL, STALLS_MAX * 2 * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		tap_bail("no memory to stall in");
}

static void *run(void *data)
{
	struct stall *s = data;

	if (s->at == STALL_READ)
		s->err = read(s->fd, s->pages + PAGE, 4 * sizeof(struct rashpa_event));
	else
		s->err = ioctl(s->fd, s->op->cmd, s->arg);
	if (s->err < 0)
		s->err = -errno;
	return NULL;
}

/* Put the argument into the pages; its end, or its pointer's target, goes to @s->rest. */
static void place(struct stall *s)
{
	static union call_arg arg;
	u64 second = (uintptr_t)s->pages + PAGE, from;
	size_t before = s->at == STALL_SIZE || s->at == STALL_ANSWER ? 8 :
			s->at == STALL_STRUCT ? sizeof(arg.head) : 0;

	if (before >= s->op->size)
		before = 8;
	op_prepare(s->op, &arg);
	arg.head.reason = (uintptr_t)s->reason;
	arg.head.reason_size = sizeof(s->reason);
	s->arg = s->pages + PAGE - before;
	switch (s->at) {
	case STALL_POINTER:
		memcpy(&from, arg.bytes + s->field->at, sizeof(from));
		memcpy(s->rest, (void *)(uintptr_t)from, s->field->bytes);
		memcpy(arg.bytes + s->field->at, &second, sizeof(second));
		s->arg = s->pages;
		break;
	case STALL_REASON:
		arg.head.flags = 1U << 31;
		arg.head.reason = second;
		s->arg = s->pages;
		break;
	case STALL_ANSWER:
		break;
	default:
		memcpy(s->rest, arg.bytes + before, s->op->size - before);
		memcpy(s->arg, &arg, before);
		return;
	}
	memcpy(s->arg, &arg, s->op->size);
}

/* Write-protect @pages, or allow writes and wake the threads that wait for that. */
static void protect(const char *pages, size_t length, bool on)
{
	struct uffdio_writeprotect wp = {
		.range = { .start = (uintptr_t)pages, .len = length },
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	if (ioctl(uffd, UFFDIO_WRITEPROTECT, &wp))
		tap_bail("UFFDIO_WRITEPROTECT: %s", strerror(errno));
}

void stall_begin(struct stall *s, const struct op *op, enum stall_at at, int fd)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (!begun)
		stalls_open();
	if (begun == STALLS_MAX)
		tap_bail("too many stalls");
	s->op = op;
	s->at = at;
	s->fd = fd;
	s->field = op ? &op->pointers[0] : NULL;
	s->probed = false;
	s->pages = area + begun * 2 * PAGE;
	stalls[begun++] = s;
	memset(s->rest, 0, sizeof(s->rest));
	memset(s->reason, 0, sizeof(s->reason));
	memset(s->pages, 0, PAGE);
	if (op)
		place(s);
	reg.range.start = (uintptr_t)s->pages + PAGE;
	reg.range.len = PAGE;
	if (at == STALL_ANSWER) {
		reg.mode = UFFDIO_REGISTER_MODE_WP;
		reg.range.start -= PAGE;
		reg.range.len += PAGE;
	}
	if (ioctl(uffd, UFFDIO_REGISTER, &reg))
		tap_bail("UFFDIO_REGISTER: %s", strerror(errno));
	if (at == STALL_ANSWER)
		protect(s->pages, 2 * PAGE, true);
	if (pthread_create(&s->thread, NULL, run, s))
		tap_bail("no thread");
}

/*
 * It waits for the page at @address: is that where it should stall? The driver stores twice:
 * first the struct it has read, as a probe, and then the answer. The probe may write the second
 * page; then the first page is protected again, and stalls the answer.
 */
static bool stands(struct stall *s, const char *address)
{
	if (s->at != STALL_ANSWER || (s->probed && address < s->pages + PAGE))
		return true;
	if (address >= s->pages + PAGE) {
		s->probed = true;
		protect(s->pages, PAGE, true);
	}
	protect(address, PAGE, false);
	return false;
}

bool stalls_wait(void)
{
	struct uffd_msg msg;
	char *address;

	while (standing < begun) {
		if (!CHECK(wait_fd(uffd, POLLIN, 20000), "%u of %u calls are stalled", standing,
			   begun))
			return false;
		if (read(uffd, &msg, sizeof(msg)) != sizeof(msg) ||
		    msg.event != UFFD_EVENT_PAGEFAULT)
			continue;
		address = (char *)(uintptr_t)(msg.arg.pagefault.address & -PAGE);
		standing += stands(stalls[(address - area) / (2 * PAGE)], address);
	}
	return true;
}

int stall_end(struct stall *s)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)s->pages + PAGE, .src = (uintptr_t)s->rest, .len = PAGE,
	};
	struct timespec until;

	if (s->at == STALL_ANSWER)
		protect(s->pages, 2 * PAGE, false);
	else if (ioctl(uffd, UFFDIO_COPY, &copy))
		tap_bail("UFFDIO_COPY: %s", strerror(errno));
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	if (pthread_timedjoin_np(s->thread, NULL, &until))
		tap_bail("%s does not end", s->op ? op_name(s->op) : "read()");
	if (++ended == begun) {
		close(uffd);
		begun = standing = ended = 0;
	}
	return s->err;
}

int stall_end_undo(struct stall *s)
{
	int err = stall_end(s), node;

	if (err || !s->op)
		return err;
	/* undo on the file that it was called on */
	node = calls.nodes[s->op->node];
	calls.nodes[s->op->node] = s->fd;
	op_undo(s->op, (union call_arg *)s->arg);
	calls.nodes[s->op->node] = node;
	return err;
}
