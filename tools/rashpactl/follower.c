// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/follower.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <rashpa-fpga.h>

void follower_init(struct follower *f, const char *name)
{
	*f = (struct follower) { .device = -1, .channel = -1, .state = "" };
	strncpy(f->name, name, sizeof(f->name) - 1);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Detach; keep the results. */
static void let_go(struct follower *f)
{
	rashpa_stream_close(f->stream);
	f->stream = NULL;
	close_fd(&f->channel);
	close_fd(&f->device);
}

void follower_close(struct follower *f)
{
	let_go(f);
	samples_free(&f->latency);
}

/* --- attach --- */

/* False: no stream. */
static bool open_stream(struct follower *f)
{
	const unsigned int flags = RASHPA_STREAM_OBSERVE | RASHPA_STREAM_FROM_START |
				   RASHPA_STREAM_NO_DATA;
	int error = rashpa_stream_open(f->name, flags, &f->stream);

	f->missing = error;
	if (!error)
		error = rashpa_stream_begin(f->stream, 0);
	if (error) {
		because(f->why, -1, "%s", error == -ETIMEDOUT ? "there is no stream in it" :
								 rashpa_reason());
		return false;
	}
	f->about = *rashpa_stream_get_header(f->stream);
	f->process = *rashpa_stream_process_at(f->stream, 0);
	return true;
}

/*
 * A channel turns bus mastering on, so open it only for a running stream, where it is on already.
 * Without a channel only the latencies are missing.
 */
static void open_channel(struct follower *f)
{
	int source;

	f->told = 0;
	f->channel = rashpa_channel_open(f->device, 0);
	if (f->channel >= 0 && !fcntl(f->channel, F_SETFL, O_NONBLOCK)) {
		source = rashpa_channel_add(f->channel, RASHPA_SOURCE_VECTOR, f->process.vector);
		f->source = source;
		if (source > 0)
			return;
	}
	because(f->why, -1, "no latencies: %s", rashpa_reason());
	close_fd(&f->channel);
}

static void board_went(struct follower *f)
{
	f->state = "gone";
	because(f->why, -1, "fpga%u was removed, or unbound: its stream has ended",
		f->process.fpga);
}

/* The producer died without ending its stream, maybe because its board was removed. */
static void producer_died(struct follower *f)
{
	int device = -1;

	f->state = "dead";
	if (f->process.function == RASHPA_STREAM_FPGA)
		device = rashpa_device_open(f->process.fpga);
	if (device == -ENOENT || device == -ENODEV)
		board_went(f);
	else if (device >= 0)
		close(device);
}

static void attach(struct follower *f)
{
	static const char *const states[] = { "idle", "running", "draining", "ended" };
	struct rashpa_stream_stat stat;

	f->why[0] = '\0';
	f->state = "";
	f->fresh = true;
	if (!open_stream(f))
		return let_go(f);
	rashpa_stream_get_stat(f->stream, &stat);
	f->state = states[stat.state % 4];
	f->gone = false;
	if (stat.state == RASHPA_STREAM_RUNNING && !stat.producer)
		producer_died(f);
	if (stat.state != RASHPA_STREAM_RUNNING || !stat.producer)
		return let_go(f);
	if (f->process.function != RASHPA_STREAM_FPGA)
		return;
	f->device = rashpa_device_open(f->process.fpga);
	if (f->device >= 0)
		open_channel(f);
	else
		because(f->why, -1, "no latencies: %s", rashpa_reason());
}

/* --- look --- */

uint64_t follower_image_bytes(const struct follower *f)
{
	uint64_t pixels = 0;

	for (uint32_t i = 0; i < f->about.processes; i++) {
		const struct rashpa_stream_process *p = rashpa_stream_process_at(f->stream, i);

		pixels += (uint64_t)p->width * p->height;
	}
	/* lines are packed, or padded */
	return pixels * (f->about.line_stride / f->about.width);
}

/* The producer waits for credit when all slots are full. */
static const char *running(const struct follower *f)
{
	return f->about.policy != RASHPA_STREAM_OVERWRITE &&
	       f->most >= f->consumed + f->about.slots ? "waiting" : "running";
}

/* The driver counts all events: we take few of the records, and the queue drops the others. */
static void count_events(struct follower *f)
{
	struct rashpa_source_info info = { .id = f->source };

	f->events = 0;
	if (f->channel < 0 || rashpa_source_get_info(f->channel, &info))
		return;
	f->events = info.out_events - f->told;
	f->told = info.out_events;
}

/* Greater numbers than before mean that a new consumer reports: forget the old ones. */
static void look_at_work(struct follower *f)
{
	f->before = f->work;
	if (rashpa_stream_told(f->stream, &f->work))
		f->work.stages = 0;
	if (f->before.run != f->work.run || f->before.images > f->work.images ||
	    f->before.stages > f->work.stages)
		f->before = (struct rashpa_stream_work) {};
}

static void look_at_places(struct follower *f)
{
	f->places = 0;
	for (uint32_t i = 0; i < RASHPA_STREAM_PLACES; i++)
		f->places += !rashpa_stream_get_place(f->stream, i, &f->place[f->places]);
}

static void measure(struct follower *f, uint64_t consumed)
{
	uint64_t least = UINT64_MAX, before = f->stacks, last = f->when, overruns = 0;
	struct rfpga_lock lock;

	f->when = now_ns();
	/* returned stacks had arrived */
	f->consumed = consumed;
	f->most = 0;
	for (uint32_t i = 0; i < f->about.locks; i++) {
		/* A record that is always being written changes so fast that its numbers are recent. */
		rashpa_stream_lock(f->stream, i, &lock);
		least = lock.stacks < least ? lock.stacks : least;
		f->most = lock.stacks > f->most ? lock.stacks : f->most;
		/* A stack counts as lost once, even if several of its parts are lost. */
		overruns = lock.overruns > overruns ? lock.overruns : overruns;
	}
	f->lost = overruns * f->about.bunch;
	f->stacks = least;
	f->state = running(f);
	if (f->gone)
		board_went(f);
	f->time = f->fresh ? 0 : (f->when - last) / 1e9;
	f->images_per_second = f->bytes_per_second = 0;
	if (f->time > 0 && f->stacks > before) {
		f->images_per_second = (f->stacks - before) * f->about.bunch / f->time;
		f->bytes_per_second = f->images_per_second * follower_image_bytes(f);
	}
	f->fresh = false;
	count_events(f);
	look_at_places(f);
	look_at_work(f);
}

void follower_look(struct follower *f)
{
	struct rashpa_stream_stat stat;

	if (f->stream)
		rashpa_stream_get_stat(f->stream, &stat);
	/* another stream, or no stream */
	if (f->stream && (stat.state != RASHPA_STREAM_RUNNING || !stat.producer))
		let_go(f);
	if (!f->stream) {
		attach(f);
		if (f->stream)
			rashpa_stream_get_stat(f->stream, &stat);
	}
	if (f->stream)
		measure(f, stat.consumed);
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
		/* Later records arrived during this call. */
		if (time)
			return;
	}
	if (f->channel >= 0 && n < 0 && errno == ENODEV) {
		f->gone = true;
		close_fd(&f->channel);
	}
}
