// SPDX-License-Identifier: GPL-2.0-only
#include "follower.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "buffer.h"
#include "rashpa-fpga.h"
#include "stream.h"

void follower_init(struct follower *f, const char *name)
{
	*f = (struct follower) {
		.buffer = -1, .device = -1, .channel = -1, .state = "", .locks = LOCKS_NONE,
	};
	strncpy(f->name, name, sizeof(f->name) - 1);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* All but what was found out. */
static void let_go(struct follower *f)
{
	locks_close(&f->locks);
	if (f->shared)
		munmap((void *)(uintptr_t)f->shared, f->stream.data_offset);
	f->shared = NULL;
	close_fd(&f->channel);
	close_fd(&f->device);
	close_fd(&f->buffer);
}

void follower_close(struct follower *f)
{
	let_go(f);
	samples_free(&f->latency);
}

/* --- attach --- */

/* The header, checked, by a mapping that does not stay. False: there is no stream. */
static bool copy_header(struct follower *f)
{
	void *page = mmap(NULL, RASHPA_STREAM_PAGE, PROT_READ, MAP_SHARED, f->buffer, 0);
	int error;

	if (page == MAP_FAILED) {
		because(f->why, -1, "cannot map it: %s", strerror(errno));
		return false;
	}
	error = stream_copy(page, f->length, &f->stream, f->why);
	munmap(page, RASHPA_STREAM_PAGE);
	if (error && !*f->why)
		because(f->why, -1, "there is no stream in it");
	return !error;
}

static bool open_buffer(struct follower *f)
{
	struct rashpa_info info = { .fd = -1 };

	f->buffer = rashpa_buffer_open(f->name, O_RDONLY);
	f->missing = f->buffer < 0;
	if (f->missing || rashpa_info(f->buffer, &info)) {
		because(f->why, -1, "%s", rashpa_reason());
		return false;
	}
	f->length = info.out_length;
	return copy_header(f);
}

/*
 * A channel turns bus mastering on: only where a stream runs, and it is on. Without one there
 * are no latencies, and everything else.
 */
static void open_channel(struct follower *f)
{
	int source;

	f->told = 0;
	f->channel = rashpa_events(f->device, 0);
	if (f->channel >= 0 && !fcntl(f->channel, F_SETFL, O_NONBLOCK)) {
		source = rashpa_source_add(f->channel, RASHPA_SOURCE_VECTOR, f->stream.vector);
		f->source = source;
		if (source > 0)
			return;
	}
	because(f->why, -1, "no latencies: %s", rashpa_reason());
	close_fd(&f->channel);
}

static void map_head(struct follower *f)
{
	void *head = mmap(NULL, f->stream.data_offset, PROT_READ, MAP_SHARED, f->buffer, 0);

	if (head == MAP_FAILED) {
		because(f->why, -1, "cannot map it: %s", strerror(errno));
		return;
	}
	if (locks_open(&f->locks, &f->stream, f->buffer, head, false, f->why))
		munmap(head, f->stream.data_offset);
	else
		f->shared = head;
}

static void attach(struct follower *f)
{
	int mapped;

	f->why[0] = '\0';
	f->state = "";
	f->fresh = true;
	if (!open_buffer(f))
		return let_go(f);
	f->device = rashpa_device_open(f->stream.fpga);
	if (f->stream.state != RASHPA_STREAM_RUNNING) {
		f->state = f->stream.state == RASHPA_STREAM_ENDED ? "ended" : "idle";
		return let_go(f);
	}
	mapped = buffer_mapped(f->buffer, f->why);
	if (mapped <= 0) {
		f->state = mapped ? "" : "dead";
		return let_go(f);
	}
	map_head(f);
	if (!f->shared)
		return let_go(f);
	if (f->device >= 0)
		open_channel(f);
	else
		because(f->why, -1, "no latencies: %s", rashpa_reason());
}

/* --- look --- */

/* Another stream, or none any more; what cannot be found out attach() tells. */
static bool over(const struct follower *f)
{
	char why[WHY_SIZE];

	return __atomic_load_n(&f->shared->magic, __ATOMIC_ACQUIRE) != RASHPA_STREAM_MAGIC ||
	       f->shared->generation != f->stream.generation ||
	       __atomic_load_n(&f->shared->state, __ATOMIC_ACQUIRE) != RASHPA_STREAM_RUNNING ||
	       buffer_mapped(f->buffer, why) <= 0;
}

static uint64_t image_bytes(const struct rashpa_stream *s)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < s->dtps; i++)
		bytes += (uint64_t)s->dtp[i].width * s->dtp[i].height * s->pixel_bytes;
	return bytes;
}

/* The producer waits for credit when all slots are full. */
static const char *running(const struct follower *f)
{
	return f->stream.paced && f->most >= f->consumed + f->stream.slots ? "waiting" : "running";
}

/* The driver counts all of them: we take few of the records, and the queue drops the others. */
static void count_events(struct follower *f)
{
	struct rashpa_source_info info = { .id = f->source };

	f->events = 0;
	if (f->channel < 0 || rashpa_source_info(f->channel, &info))
		return;
	f->events = info.out_events - f->told;
	f->told = info.out_events;
}

static void measure(struct follower *f)
{
	const struct rashpa_stream *s = &f->stream;
	uint64_t least = UINT64_MAX, before = f->stacks, last = f->when, overruns = 0;
	struct rfpga_lock lock;

	f->when = now_ns();
	/* in this order: what was given back had arrived */
	f->consumed = __atomic_load_n(&f->shared->consumed, __ATOMIC_ACQUIRE);
	f->most = 0;
	for (unsigned int i = 0; i < s->dtps; i++) {
		/* One that is always being written is so fast that its numbers are new. */
		locks_read(&f->locks, s, i, &lock);
		least = lock.stacks < least ? lock.stacks : least;
		f->most = lock.stacks > f->most ? lock.stacks : f->most;
		/* A stack is lost once, however many of its parts are. */
		overruns = lock.overruns > overruns ? lock.overruns : overruns;
	}
	f->lost = overruns * s->bunch;
	f->stacks = least;
	f->state = running(f);
	f->time = f->fresh ? 0 : (f->when - last) / 1e9;
	f->images_per_second = f->bytes_per_second = 0;
	if (f->time > 0 && f->stacks > before) {
		f->images_per_second = (f->stacks - before) * s->bunch / f->time;
		f->bytes_per_second = f->images_per_second * image_bytes(s);
	}
	f->fresh = false;
	count_events(f);
}

void follower_look(struct follower *f)
{
	if (f->shared && over(f))
		let_go(f);
	if (!f->shared)
		attach(f);
	if (f->shared)
		measure(f);
}

/* --- records --- */

void follower_begin(struct follower *f)
{
	follower_take(f, false);
	f->latency.count = 0;
}

void follower_take(struct follower *f, bool time)
{
	struct rashpa_event event[64];
	uint64_t now;
	ssize_t n;

	while (f->channel >= 0) {
		n = read(f->channel, event, sizeof(event));
		now = now_ns();
		if (n <= 0)
			break;
		n /= sizeof(event[0]);
		for (ssize_t i = 0; time && i < n && f->latency.count < FOLLOWER_SAMPLES; i++)
			samples_add(&f->latency, now - event[i].time_ns);
		/* What more there is came while we looked. */
		if (time)
			return;
	}
	if (f->channel >= 0 && n < 0 && errno == ENODEV)
		close_fd(&f->channel);
}
