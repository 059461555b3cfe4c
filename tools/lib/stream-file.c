// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * librashpa: streams in ordinary files, of /dev/shm, of hugetlbfs, or a memfd. Programs wake each
 * other by a futex in the header's page; roles are locks of bytes of the file, which end with the
 * open file, as those of the driver's buffers.
 */
#include "lib/stream.h"
#include "lib/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(RASHPA_STREAM_FILE + sizeof(struct rashpa_stream_file) == RASHPA_STREAM_PAGE,
	       "it ends with the page");
_Static_assert(RASHPA_STREAM_PAGE / 2 + sizeof(struct rashpa_stream_work) <= RASHPA_STREAM_FILE,
	       "and the consumer's report ends before");

static struct rashpa_stream_file *words(const struct memory *m)
{
	return (struct rashpa_stream_file *)(m->base + RASHPA_STREAM_FILE);
}

/* --- the file --- */

static int open_file(const char *path, bool write)
{
	/* without O_NONBLOCK a FIFO would wait for its other end */
	int fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return fail(ENOENT, "there is no file %s: start its producer, or make it (fallocate -l SIZE %s)",
			    path, path);
	if (fd < 0)
		return fail(errno, "file %s: %s", path, strerror(errno));
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return fail(EINVAL, "%s is not a file: name a buffer of the driver without a folder", path);
}

static int file_length(int fd, uint64_t *length)
{
	struct stat st;

	if (fstat(fd, &st))
		return fail(errno, "%s", strerror(errno));
	*length = st.st_size;
	return *length ? 0 : fail(EPROTO, "the file is empty");
}

static int no_room(int error, const char *path, int fd, uint64_t length)
{
	struct statvfs fs = {};

	fstatvfs(fd, &fs);
	return fail(error, "file %s: no room for %" PRIu64 " bytes: %s (%" PRIu64 " are free where it is)",
		    path, length, strerror(error), (uint64_t)fs.f_bavail * fs.f_frsize);
}

/* All pages are there from now on: a store into one that memory has no room for would be SIGBUS. */
static int reserve(const char *path, int fd, uint64_t length)
{
	if (!fallocate(fd, 0, 0, length) || errno == EOPNOTSUPP)
		return 0;
	return no_room(errno, path, fd, length);
}

/* Nobody sees it under its name before it has its size. */
int file_make(const char *path, uint64_t length)
{
	char name[PATH_MAX];
	struct stat st;
	int fd, error = 0;

	if (!access(path, F_OK))
		return 0;
	if (snprintf(name, sizeof(name), "%s.XXXXXX", path) >= (int)sizeof(name))
		return fail(ENAMETOOLONG, "the path of the file is too long");
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return fail(errno, "file %s cannot be made: %s", path, strerror(errno));
	/* of huge pages, whole ones */
	if (!fstat(fd, &st) && length <= (uint64_t)INT64_MAX - st.st_blksize)
		length = (length + st.st_blksize - 1) / st.st_blksize * st.st_blksize;
	if (ftruncate(fd, length))
		error = no_room(errno, path, fd, length);
	if (!error)
		error = reserve(path, fd, length);
	if (!error) {
		const mode_t mask = umask(0);

		umask(mask);
		/* another producer may have made it meanwhile */
		if (fchmod(fd, 0660 & ~mask) || (link(name, path) && errno != EEXIST))
			error = fail(errno, "file %s cannot be made: %s", path, strerror(errno));
	}
	unlink(name);
	close(fd);
	return error;
}

/* No dma-buf, but it can be mapped. It is opened again, since a program may keep it for longer than our locks. */
static int file_dmabuf(int fd)
{
	char path[32];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, (fcntl(fd, F_GETFL) & O_ACCMODE) | O_CLOEXEC);
	return again < 0 ? fail(errno, "%s: %s", path, strerror(errno)) : again;
}

/* --- roles --- */

static struct flock range(unsigned int role)
{
	return (struct flock) { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = role, .l_len = 1 };
}

static int32_t holder(const struct memory *m, unsigned int role)
{
	const int32_t pid = __atomic_load_n(&words(m)->holder[role], __ATOMIC_RELAXED);

	return pid > 0 ? pid : 0;
}

static int take(struct rashpa_stream *s, unsigned int role)
{
	static const char * const names[] = { "producer", "consumer" };
	struct memory *m = &s->buffer;
	struct flock lock = range(role);

	if (fcntl(m->node, F_OFD_SETLK, &lock)) {
		if (errno != EAGAIN && errno != EACCES)
			return fail(errno, "file %s: it cannot be locked: %s", s->name, strerror(errno));
		return fail(EBUSY, "file %s has a %s: process %" PRId32, s->name, names[role],
			    holder(m, role));
	}
	m->roles |= 1u << role;
	__atomic_store_n(&words(m)->holder[role], getpid(), __ATOMIC_RELAXED);
	return 0;
}

static int file_role(struct rashpa_stream *s, struct rashpa_role *role)
{
	struct memory *m = &s->buffer;
	uint64_t length;
	int error = file_length(m->node, &length);

	/* each user who may write the file may cut it */
	if (!error && length < m->length)
		error = fail(EPROTO, "file %s was cut from %" PRIu64 " to %" PRIu64 " bytes", s->name,
			     m->length, length);
	if (!error && role->take & RASHPA_ROLE_PRODUCER)
		error = reserve(s->name, m->node, m->length);
	for (unsigned int i = 0; i < RASHPA_ROLES && !error; i++) {
		struct flock lock = range(i);

		if (role->take >> i & 1)
			error = take(s, i);
		/* our own lock is no conflict */
		if (!error && fcntl(m->node, F_OFD_GETLK, &lock))
			error = fail(errno, "file %s: its locks are not known: %s", s->name,
				     strerror(errno));
		if (!error && (m->roles >> i & 1 || lock.l_type != F_UNLCK)) {
			role->out_held |= 1u << i;
			role->out_pid[i] = holder(m, i);
		}
	}
	return error;
}

/* --- to wait, and to wake --- */

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static bool file_event(struct rashpa_stream *s, struct rashpa_event *event)
{
	uint64_t n;

	(void)event;
	if (s->channel >= 0 && read(s->channel, &n, sizeof(n)) < 0)
		n = 0;
	/* what changes after this ends the next wait */
	s->seen = __atomic_load_n(&words(&s->buffer)->wake, __ATOMIC_ACQUIRE);
	return false;
}

static int file_wait(struct rashpa_stream *s, int64_t ns)
{
	const struct timespec left = { ns / 1000000000, ns % 1000000000 };

	if (!futex(&words(&s->buffer)->wake, FUTEX_WAIT, s->seen, &left) || errno == EAGAIN ||
	    errno == ETIMEDOUT)
		return 0;
	return fail(errno, "cannot wait for file %s: %s", s->name, strerror(errno));
}

static void file_wake(struct rashpa_stream *s, struct memory *m)
{
	uint32_t *word = &words(&s->buffer)->wake;

	(void)m;
	/* observers may not write: of theirs only the sleep ends */
	if (!(s->flags & RASHPA_STREAM_OBSERVE))
		__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
	futex(word, FUTEX_WAKE, INT_MAX, NULL);
}

static void file_interrupt(struct rashpa_stream *s)
{
	file_wake(s, &s->buffer);
	if (s->channel >= 0)
		eventfd_write(s->channel, 1);
}

/* --- a descriptor for poll() --- */

/* A futex has none: this thread makes one readable whenever the word changes. */
static void *watch(void *arg)
{
	const struct timespec tick = { .tv_nsec = STREAM_TICK_NS };
	struct rashpa_stream *s = arg;
	uint32_t *word = &words(&s->buffer)->wake, seen = s->seen, now;

	while (!__atomic_load_n(&s->leaves, __ATOMIC_ACQUIRE)) {
		futex(word, FUTEX_WAIT, seen, &tick);
		now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		if (now != seen)
			eventfd_write(s->channel, 1);
		seen = now;
	}
	return NULL;
}

static int file_fd(struct rashpa_stream *s)
{
	sigset_t all, before;
	int error;

	/* the caller may have failed after this */
	if (s->channel >= 0)
		return s->channel;
	s->channel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->channel < 0)
		return fail(errno, "file %s: no descriptor for poll(): %s", s->name, strerror(errno));
	/* the program's signals are for its own threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&s->watcher, NULL, watch, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		close(s->channel);
		s->channel = -1;
		return fail(error, "file %s: no thread for poll(): %s", s->name, strerror(error));
	}
	return s->channel;
}

static void file_leave(struct rashpa_stream *s)
{
	if (s->channel < 0)
		return;
	__atomic_store_n(&s->leaves, true, __ATOMIC_RELEASE);
	/* it may be about to sleep */
	do
		futex(&words(&s->buffer)->wake, FUTEX_WAKE, INT_MAX, NULL);
	while (pthread_tryjoin_np(s->watcher, NULL));
}

static int file_attend(struct rashpa_stream *s)
{
	s->seen = __atomic_load_n(&words(&s->buffer)->wake, __ATOMIC_ACQUIRE);
	return 0;
}

static int file_listen(struct rashpa_stream *s)
{
	for (uint32_t i = 0; i < s->head.processes; i++) {
		if (s->process[i].function != RASHPA_STREAM_SOFTWARE)
			return fail(ENOTSUP, "file %s: process %" PRIu32 " is a board: only buffers of the driver have its events",
				    s->name, i);
	}
	return 0;
}

const struct memory_kind memory_file = {
	.open = open_file,
	.length = file_length,
	.dmabuf = file_dmabuf,
	.role = file_role,
	.attend = file_attend,
	.listen = file_listen,
	.event = file_event,
	.wait = file_wait,
	.wake = file_wake,
	.interrupt = file_interrupt,
	.fd = file_fd,
	.leave = file_leave,
};
