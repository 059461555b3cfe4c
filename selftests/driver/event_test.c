// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug seconds=5 */
/* test: needs=intx iommu=on seconds=2 */
/* test: tier=nightly kernel=rt iommu=on smp=2 seconds=5 */
/* test: tier=nightly needs=amd,virtio iommu=on seconds=5 */
/* test: tier=nightly kernel=arm64 needs=virtio iommu=on seconds=5 */
/* Event channels: sources, records, loss, waiting, eventfds. */
#include <sys/eventfd.h>

#include <rashpa-fpga.h>
#include "stall.h"

static struct fpga f;

/* A channel with a software source, not blocking, or -1. */
static int software(uint32_t depth)
{
	int ch = fpga_events(&f, depth);

	if (!CHECK(ch >= 0, "EVENTS: %s", reason))
		return -1;
	fcntl(ch, F_SETFL, O_NONBLOCK);
	CHECK(source_add(ch, RASHPA_SOURCE_SOFTWARE, 0) == 1, "SOURCE_ADD: %s", reason);
	return ch;
}

/* Records read, or a negative errno. */
static int read_events(int channel, struct rashpa_event *to, int n)
{
	ssize_t got = read(channel, to, n * sizeof(*to));

	return got < 0 ? -errno : (int)(got / (ssize_t)sizeof(*to));
}

/* ------------------------------------------------------------ refused --- */

TEST(depth, "the depth of a queue has limits")
{
	static const uint32_t bad[] = { 1, 65537, 0x80000000, UINT_MAX };
	static const uint32_t good[] = { 0, 2, 3, 65536 };
	size_t i;
	int ch;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		ANSWERED(fpga_events(&f, bad[i]), EINVAL, "records|65536");
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		ch = fpga_events(&f, good[i]);
		if (!CHECK(ch >= 0, "depth %u: %s", good[i], reason))
			continue;
		CHECK(fcntl(ch, F_GETFD) == FD_CLOEXEC, "not close-on-exec");
		close(ch);
	}
}

TEST(record_size, "a channel has records of the size that the program knows")
{
	static const struct { uint32_t size; int err; } rows[] = {
		{ 0, 0 }, { 40, 0 }, { 39, EINVAL }, { 1, EINVAL }, { 48, E2BIG },
		{ UINT_MAX, E2BIG },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rashpa_channel_make e = { HEAD(e), .record_size = rows[i].size };

		ANSWERED(call(f.fd, RASHPA_IOC_CHANNEL_MAKE, &e), rows[i].err,
			 rows[i].err ? "must be 40" : NULL);
		if (!rows[i].err)
			close(e.out_fd);
	}
}

TEST(sources, "invalid sources are refused")
{
	struct rashpa_device_info info;
	int ch = fpga_events(&f, 0);
	uint32_t v;

	fpga_info(&f, &info);
	ANSWERED(source_add(ch, 0, 0), EINVAL, "kind 0");
	ANSWERED(source_add(ch, RASHPA_SOURCE_LOCK, 0), EINVAL, "bits");
	ANSWERED(source_add(ch, RASHPA_SOURCE_GROUP, 0), EINVAL, "kind 6");
	ANSWERED(source_add(ch, UINT_MAX, 0), EINVAL, "kind");
	ANSWERED(source_add(ch, RASHPA_SOURCE_VECTOR, info.out_vectors), ERANGE, f.name);
	ANSWERED(source_add(ch, RASHPA_SOURCE_VECTOR, UINT_MAX), ERANGE, f.name);
	ANSWERED(source_add(ch, RASHPA_SOURCE_DEVICE, 1), EINVAL, "index 1");
	ANSWERED(source_add(ch, RASHPA_SOURCE_SOFTWARE, UINT_MAX), EINVAL, "index");
	for (v = 0; v < info.out_vectors; v++)
		CHECK(source_add(ch, RASHPA_SOURCE_VECTOR, v) == (int)v + 1,
		      "vector %u: %s", v, reason);
	ANSWERED(source_add(ch, RASHPA_SOURCE_VECTOR, 0), EEXIST, "id 1");
	/* a free id is given again, the lowest first */
	ANSWERED(source_del(ch, 1), 0, NULL);
	CHECK(source_add(ch, RASHPA_SOURCE_DEVICE, 0) == 1, "%s", reason);
	ANSWERED(source_add(ch, RASHPA_SOURCE_DEVICE, 0), EEXIST, "id 1");
	ANSWERED(source_del(ch, 0), ENOENT, "source 0");
	ANSWERED(source_del(ch, 65), ENOENT, "source 65");
	ANSWERED(source_del(ch, UINT_MAX), ENOENT, "source");
	ANSWERED(source_del(ch, 2), 0, NULL);
	ANSWERED(source_del(ch, 2), ENOENT, "source 2");
	ANSWERED(signal_one(ch, 1), ENOENT, "software source|add");
	close(ch);
}

TEST(eventfd_fds, "an eventfd is bound to a source or to all, and taken away")
{
	int ch = software(0), event = eventfd(0, EFD_CLOEXEC);

	ANSWERED(bind_eventfd(ch, event, 2), ENOENT, "source 2");
	ANSWERED(bind_eventfd(ch, event, UINT_MAX), ENOENT, "source");
	ANSWERED(bind_eventfd(ch, -1, 0), 0, NULL);
	ANSWERED(bind_eventfd(ch, -1, 1), 0, NULL);
	close(ch);
	close(event);
}

/* ------------------------------------------------------------ records --- */

TEST(records, "a signal makes a record")
{
	struct rashpa_event e[4];
	u64 start = now_ns();
	int ch = software(0), i;

	CHECK(read_events(ch, e, 4) == -EAGAIN, "an empty queue was read");
	for (i = 0; i < 3; i++)
		ANSWERED(signal_one(ch, 100 + i), 0, NULL);
	CHECK(read_events(ch, e, 4) == 3, "not three records");
	for (i = 0; i < 3; i++) {
		CHECK(e[i].sequence == (u64)i + 1, "sequence %llu", e[i].sequence);
		CHECK(e[i].value == 100u + i, "value %llu", e[i].value);
		CHECK(e[i].source == 1 && e[i].kind == RASHPA_SOURCE_SOFTWARE && !e[i].lost,
		      "source %u, kind %u, lost %llu", e[i].source, e[i].kind, e[i].lost);
		CHECK(e[i].time_ns >= start && e[i].time_ns <= now_ns() &&
		      (!i || e[i].time_ns >= e[i - 1].time_ns), "time");
	}
	CHECK(read_events(ch, e, 4) == -EAGAIN, "they were read twice");
	close(ch);
}

TEST(lost, "records that find no room are counted")
{
	struct rashpa_event e[4] = {};
	int ch = software(2), i;

	for (i = 0; i < 5; i++)
		ANSWERED(signal_one(ch, i), 0, NULL);
	CHECK(read_events(ch, e, 4) == 2, "not two records");
	CHECK(e[0].sequence == 1 && e[1].sequence == 2, "the oldest were dropped");
	CHECK(e[0].lost == 0 && e[1].lost == 0, "lost before anything was lost");
	ANSWERED(signal_one(ch, 9), 0, NULL);
	CHECK(read_events(ch, e, 4) == 1, "no record");
	CHECK(e[0].sequence == 6 && e[0].lost == 3 && e[0].value == 9, "sequence %llu, lost %llu",
	      e[0].sequence, e[0].lost);
	/* a depth that is no power of two, and many rounds */
	close(ch);
	ch = software(3);
	for (i = 0; i < 100; i++) {
		ANSWERED(signal_one(ch, i), 0, NULL);
		ANSWERED(signal_one(ch, i), 0, NULL);
		if (!CHECK(read_events(ch, e, 4) == 2 &&
			   e[0].sequence == 2u * i + 1 && !e[0].lost, "round %d", i))
			break;
	}
	for (i = 0; i < 4; i++)
		ANSWERED(signal_one(ch, i), 0, NULL);
	CHECK(read_events(ch, e, 4) == 3, "a depth of 3 is not 3");
	close(ch);
}

TEST(del_keeps, "records of a removed source stay")
{
	struct rashpa_event e[2];
	int ch = software(0);

	ANSWERED(signal_one(ch, 5), 0, NULL);
	ANSWERED(source_del(ch, 1), 0, NULL);
	ANSWERED(signal_one(ch, 6), ENOENT, "software");
	CHECK(read_events(ch, e, 2) == 1 && e[0].value == 5, "the record is gone");
	CHECK(source_add(ch, RASHPA_SOURCE_SOFTWARE, 0) == 1, "%s", reason);
	ANSWERED(signal_one(ch, 7), 0, NULL);
	CHECK(read_events(ch, e, 2) == 1 && e[0].sequence == 1,
	      "the sequence of a new source does not begin with 1");
	close(ch);
}

TEST(independent, "a channel gets no events of another one")
{
	struct rashpa_event e[2];
	int a = software(0), b = software(0);

	ANSWERED(signal_one(a, 1), 0, NULL);
	CHECK(read_events(b, e, 2) == -EAGAIN, "a channel gets the other's signal");
	CHECK(read_events(a, e, 2) == 1, "no record");
	close(a);
	close(b);
}

/* -------------------------------------------------------------- reading - */

TEST(read_sizes, "whole records are read, as many as fit")
{
	struct rashpa_event e[20];
	char *bytes = (char *)e;
	int ch = software(0), i;

	CHECK(read(ch, e, 0) < 0 && errno == EINVAL, "size 0, empty queue");
	for (i = 0; i < 20; i++)
		ANSWERED(signal_one(ch, i), 0, NULL);
	CHECK(read(ch, e, 0) < 0 && errno == EINVAL, "size 0");
	CHECK(read(ch, e, sizeof(*e) - 1) < 0 && errno == EINVAL, "one byte too short");
	memset(e, 0x7f, sizeof(e));
	CHECK(read(ch, e, sizeof(*e) + 7) == sizeof(*e), "a record and a bit");
	CHECK(bytes[sizeof(*e)] == 0x7f, "a part of a record was written");
	CHECK(read(ch, e, 2 * sizeof(*e) - 1) == sizeof(*e) && e[0].sequence == 2,
	      "nearly two records");
	CHECK(read_events(ch, e, 11) == 11 && e[0].sequence == 3 && e[10].sequence == 13,
	      "eleven records");
	CHECK(read_events(ch, e, 20) == 7 && e[6].sequence == 20, "the rest");
	CHECK(write(ch, e, sizeof(*e)) < 0, "a channel can be written");
	close(ch);
}

TEST(read_bad_pointer, "a bad pointer takes no record away")
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rashpa_event e[16];
	int ch = software(0), i, got;

	munmap(pages + PAGE, PAGE);
	for (i = 0; i < 12; i++)
		ANSWERED(signal_one(ch, i), 0, NULL);
	CHECK(read(ch, pages + PAGE, sizeof(e)) < 0 && errno == EFAULT, "unmapped");
	/* ten records fit before the hole: as many as were taken are there */
	got = read_events(ch, (void *)(pages + PAGE - 10 * sizeof(*e)), 12);
	CHECK(got == -EFAULT || (got > 0 && got <= 10), "answer %d", got);
	if (got < 0)
		got = 0;
	CHECK(read_events(ch, e, 16) == 12 - got && e[0].sequence == (u64)got + 1,
	      "records are lost: next is %llu after %d", e[0].sequence, got);
	munmap(pages, PAGE);
	close(ch);
}

/* Wait until a thread sleeps in a system call. */
static bool sleeps(pid_t tid)
{
	char path[64], state[256];
	char *p;
	int i;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	for (i = 0; i < 10000; i++) {
		if (!read_text(path, state, sizeof(state)))
			return false;
		p = strrchr(state, ')');
		if (p && p[2] == 'S')
			return true;
		sched_yield();
	}
	return false;
}

struct reader {
	pthread_t thread;
	int channel;
	volatile pid_t tid;
	int result;
	struct rashpa_event event;
};

static void *reader(void *arg)
{
	struct reader *r = arg;

	r->tid = gettid();
	r->result = read_events(r->channel, &r->event, 1);
	return NULL;
}

static bool reader_start(struct reader *r, int channel)
{
	r->channel = channel;
	r->tid = 0;
	pthread_create(&r->thread, NULL, reader, r);
	while (!r->tid)
		sched_yield();
	return CHECK(sleeps(r->tid), "the reader does not wait");
}

TEST(blocking, "a blocking read is woken by a record")
{
	struct reader r;
	int ch = software(0);

	fcntl(ch, F_SETFL, 0);
	reader_start(&r, ch);
	ANSWERED(signal_one(ch, 77), 0, NULL);
	pthread_join(r.thread, NULL);
	CHECK(r.result == 1 && r.event.value == 77, "answer %d", r.result);
	close(ch);
}

static void on_signal(int sig)
{
}

TEST(interrupted, "a blocking read is woken by a signal")
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct reader r;
	int ch = software(0);

	sigaction(SIGUSR1, &sa, NULL);
	fcntl(ch, F_SETFL, 0);
	reader_start(&r, ch);
	pthread_kill(r.thread, SIGUSR1);
	pthread_join(r.thread, NULL);
	CHECK(r.result == -EINTR, "answer %d", r.result);
	close(ch);
}

/*
 * A reader stalls on its own memory; a non-blocking reader does not wait for it. If it does, the
 * limit of the test ends it.
 */
TEST(nonblocking, "a non-blocking reader does not wait for another reader")
{
	static struct stall s;
	struct rashpa_event e;
	int ch = software(0), got;

	ANSWERED(signal_one(ch, 1), 0, NULL);
	stall_begin(&s, NULL, STALL_READ, ch);
	if (stalls_wait()) {
		CHECK(wait_fd(ch, POLLIN, 0) == POLLIN, "the record was taken before it arrived");
		got = read_events(ch, &e, 1);
		CHECK(got == -EAGAIN, "answer %d", got);
	}
	got = stall_end(&s);
	CHECK(got == sizeof(e), "the stalled reader got %d", got);
	CHECK(read_events(ch, &e, 1) == -EAGAIN, "read twice");
	close(ch);
}

#define READERS 4

static void *read_all(void *arg)
{
	struct reader *r = arg;
	struct rashpa_event e;

	while (read_events(r->channel, &e, 1) == 1 && e.value)
		r->result++;
	return NULL;
}

TEST(many_readers, "several readers get every record once")
{
	struct reader r[READERS] = {};
	int ch = software(65536), i, sum = 0;

	fcntl(ch, F_SETFL, 0);
	for (i = 0; i < READERS; i++) {
		r[i].channel = ch;
		pthread_create(&r[i].thread, NULL, read_all, &r[i]);
	}
	for (i = 0; i < 2000; i++)
		ANSWERED(signal_one(ch, 1), 0, NULL);
	for (i = 0; i < READERS; i++)
		ANSWERED(signal_one(ch, 0), 0, NULL);
	for (i = 0; i < READERS; i++) {
		pthread_join(r[i].thread, NULL);
		sum += r[i].result;
	}
	CHECK(sum == 2000, "%d of 2000 records were read", sum);
	close(ch);
}

static void *signal_many(void *arg)
{
	int i;

	for (i = 0; i < 500; i++)
		signal_one(*(int *)arg, 1);
	return NULL;
}

/* the threads share reason[], and do not read it */
TEST(many_writers, "several signallers make one sequence")
{
	pthread_t thread[4];
	struct rashpa_event e;
	int ch = software(65536), i;

	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, signal_many, &ch);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < 2000; i++)
		if (!CHECK(read_events(ch, &e, 1) == 1 && e.sequence == (u64)i + 1,
			   "record %d has sequence %llu", i + 1, e.sequence))
			break;
	CHECK(read_events(ch, &e, 1) == -EAGAIN, "there are more");
	close(ch);
}

/* ------------------------------------------------------------- eventfd -- */

TEST(eventfd, "eventfds count every event")
{
	int all = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int one = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int ch = software(2), i;
	struct rashpa_event e[2];

	ANSWERED(bind_eventfd(ch, all, 0), 0, NULL);
	ANSWERED(bind_eventfd(ch, one, 1), 0, NULL);
	CHECK(!wait_fd(all, POLLIN, 0), "signalled before anything happened");
	for (i = 0; i < 5; i++)
		ANSWERED(signal_one(ch, i), 0, NULL);
	CHECK(wait_fd(all, POLLIN, 0) == POLLIN, "not signalled");
	/* counted although the queue had room for two */
	i = count_of(all);
	CHECK(i == 5, "the eventfd for all counts %d of 5", i);
	i = count_of(one);
	CHECK(i == 5, "the eventfd of the source counts %d of 5", i);
	CHECK(read_events(ch, e, 2) == 2, "records are not queued as well");
	/* replaced, then stopped */
	ANSWERED(bind_eventfd(ch, one, 0), 0, NULL);
	ANSWERED(bind_eventfd(ch, -1, 1), 0, NULL);
	ANSWERED(signal_one(ch, 1), 0, NULL);
	CHECK(count_of(all) == 0, "the old eventfd is still signalled");
	CHECK(count_of(one) == 1, "the new eventfd is not signalled once");
	ANSWERED(bind_eventfd(ch, -1, 0), 0, NULL);
	ANSWERED(signal_one(ch, 1), 0, NULL);
	CHECK(count_of(one) == 0, "still signalled after the end");
	/* the channel holds it when its own fd is closed */
	ANSWERED(bind_eventfd(ch, one, 0), 0, NULL);
	close(one);
	ANSWERED(signal_one(ch, 1), 0, NULL);
	close(ch);
	close(all);
}

TEST(eventfd_quiet, "a quiet source signals its eventfd, and makes no record")
{
	struct rashpa_source_add add = {
		.head = { .size = sizeof(add), .flags = RASHPA_SOURCE_QUIET },
		.kind = RASHPA_SOURCE_SOFTWARE, .device = -1, .memory = -1,
	};
	int all = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int one = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int ch = fpga_events(&f, 2), i;

	ANSWERED(call(ch, RASHPA_IOC_SOURCE_ADD, &add), 0, NULL);
	ANSWERED(bind_eventfd(ch, all, 0), 0, NULL);
	ANSWERED(bind_eventfd(ch, one, add.out_id), 0, NULL);
	for (i = 0; i < 5; i++)
		ANSWERED(signal_one(ch, i), 0, NULL);
	i = count_of(one);
	CHECK(i == 5, "the eventfd of the quiet source counts %d of 5", i);
	CHECK(!count_of(all), "the eventfd of the records is signalled without one");
	CHECK(!wait_fd(ch, POLLIN, 0), "a quiet source makes records");
	close(ch);
	close(one);
	close(all);
}

/* ------------------------------------------------------ device events --- */

TEST(quiesced, "QUIESCE is one event, the same on every channel")
{
	struct rashpa_event e[4];
	int ch = fpga_listen(&f, 0, RASHPA_SOURCE_DEVICE, 0), n;
	int other = fpga_listen(&f, 0, RASHPA_SOURCE_DEVICE, 0);

	ANSWERED(fpga_quiesce(&f), 0, NULL);
	CHECK(wait_fd(ch, POLLIN, 1000), "no event");
	n = read_events(ch, e, 4);
	CHECK(n == 1 && e[0].value == RASHPA_DEVICE_EVENT_QUIESCED &&
	      e[0].kind == RASHPA_SOURCE_DEVICE && e[0].source == 1,
	      "%d events, value %llu", n, e[0].value);
	CHECK(read_events(other, e + 1, 1) == 1 && e[1].sequence == e[0].sequence,
	      "the other channel did not get the same event");
	close(ch);
	close(other);
}

TEST(reset_event, "RESET is an event")
{
	struct rashpa_event e[8];
	int ch = fpga_listen(&f, 0, RASHPA_SOURCE_DEVICE, 0), n, i;
	bool seen = false;

	ANSWERED(fpga_reset(&f), 0, NULL);
	n = read_events(ch, e, 8);
	for (i = 0; i < n; i++)
		seen = seen || e[i].value == RASHPA_DEVICE_EVENT_RESET;
	CHECK(seen, "no event of the reset among %d", n);
	close(ch);
}

void setup(void)
{
	fpga_need(&f);
}
