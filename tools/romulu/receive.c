// SPDX-License-Identifier: GPL-2.0-only
/* The receiver's loop: at most one system call per stack, a read of one group event. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "buffer.h"
#include "fpga.h"
#include "locks.h"
#include "rashpa.h"
#include "romulu.h"
#include "say.h"
#include "stream.h"

#define TICK_NS		500000000ull
#define WAIT_MS		20	/* between looks for a stream */
#define END_NS		10000000000ull	/* for a producer to end when all was sent */
#define MISMATCHES	8	/* that are printed */
#define LATENCIES	(1 << 20)	/* that are kept: a stream can last for weeks */

struct run {
	const struct config *config;
	const struct dataset *dataset;
	struct report *report;
	const volatile bool *stop;
	int buffer, channel, file;
	uint64_t length;
	volatile struct rashpa_stream *shared;
	struct rashpa_stream stream;	/* the checked copy */
	struct locks locks;
	struct fpga fpga;
	struct view doorbells;
	int group;			/* id of the group of all processes, 0: there is none */
	uint64_t told;			/* position of its last record */
	struct rashpa_queue queue;	/* of the channel, for acknowledging */
	void *bounce;			/* one stack: a file may take longer than it is ours */
	uint64_t written;		/* bytes of the stack that is being written */
	uint64_t next, end;		/* stacks */
	uint64_t credit;		/* stacks given back */
	uint64_t moved, moved_to;	/* when we last saw progress, and how far it was */
	uint64_t woken;			/* when the last read() returned */
	uint64_t taken, taken_to;	/* when we had taken all there was, and how far it was */
	unsigned int printed;
	bool have_timer;
	timer_t timer;
	const char *over;		/* why no more stacks will come */
};

/* --- attach --- */

static int open_buffer(struct run *r)
{
	struct rashpa_info info;
	char why[WHY_SIZE];
	void *base;

	r->buffer = buffer_open(r->config->opt.buffer, &info, &base, why);
	if (r->buffer < 0)
		return fail("%s", why);
	r->length = info.out_length;
	r->shared = base;
	return 0;
}

/* Where there is no buffer no file is made. */
static int open_file(struct run *r)
{
	const char *path = r->config->write;

	if (!path)
		return 0;
	r->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	return r->file < 0 ? fail("cannot write %s: %s", path, strerror(errno)) : 0;
}

/* Does the header still say what we copied? Who begins another stream changes it first of all. */
static bool same_stream(const struct run *r)
{
	/* what was read before is older than the answer */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&r->shared->magic, __ATOMIC_ACQUIRE) == RASHPA_STREAM_MAGIC &&
	       r->shared->generation == r->stream.generation;
}

/*
 * Is the memory still this stream's? A producer retires it before it maps the buffer, some time
 * before its first stack. This is no lock: it can happen right after we looked. Thus look
 * right before each store, and let each be small.
 */
static bool undisturbed(const struct run *r)
{
	return same_stream(r) &&
	       __atomic_load_n(&r->shared->state, __ATOMIC_ACQUIRE) != RASHPA_STREAM_IDLE;
}

/*
 * A producer that died leaves RUNNING behind, but its map is gone. In this order: a new one
 * ends that state before it maps the buffer. 1, 0, or -1 with the reason.
 */
static int alive(const struct run *r, char *why)
{
	const int mapped = buffer_mapped(r->buffer, why);

	if (mapped <= 0)
		return mapped;
	return same_stream(r) &&
	       __atomic_load_n(&r->shared->state, __ATOMIC_ACQUIRE) == RASHPA_STREAM_RUNNING;
}

/* Stacks that nobody has taken; none are known of where the lock memory has been removed. */
static bool left_over(struct run *r)
{
	char why[WHY_SIZE];
	uint64_t most;
	bool result;

	if (locks_open(&r->locks, &r->stream, r->buffer, r->shared, false, why))
		return false;
	result = locks_stacks(&r->locks, &r->stream, &most) > r->stream.consumed;
	locks_close(&r->locks);
	return result;
}

/*
 * Is there something for us? A stream that runs, one that began after us (it may have
 * ended already), one that ended and left stacks that nobody has taken: a paced FPGA
 * overwrites none of those. 1, 0, or -1 with the reason.
 */
static int worth_it(struct run *r, uint64_t generation, char *why)
{
	const struct rashpa_stream *s = &r->stream;

	if (s->generation != generation || (r->config->from_start && s->state))
		return 1;
	if (s->state == RASHPA_STREAM_RUNNING)
		return alive(r, why);
	return s->state == RASHPA_STREAM_ENDED && s->paced && left_over(r);
}

static int await_stream(struct run *r)
{
	struct rashpa_stream *s = &r->stream;
	uint64_t begin = now_ns(), generation = r->shared->generation;
	struct progress progress;
	char why[WHY_SIZE];
	int worth;

	progress_init(&progress, r->config->opt.progress);
	for (; !*r->stop; poll(NULL, 0, WAIT_MS)) {
		worth = stream_copy(r->shared, r->length, s, why) ? -!!*why :
			worth_it(r, generation, why);
		if (worth > 0)
			break;
		if (worth < 0) {
			progress_end(&progress);
			return fail("buffer %s: %s", r->config->opt.buffer, why);
		}
		if (r->config->opt.timeout > 0 && now_ns() - begin > r->config->opt.timeout * 1e9) {
			progress_end(&progress);
			say("buffer %s: no stream began within %g s: start a producer (remu)",
			    r->config->opt.buffer, r->config->opt.timeout);
			return EXIT_TIMEOUT;
		}
		progress_show(&progress, "waiting for a stream in buffer %s",
			      r->config->opt.buffer);
	}
	progress_end(&progress);
	return 0;
}

/* --- events --- */

/*
 * The lock record of a process is a source for the group, looked at when the stream's vector
 * interrupts. Its id, or a negative errno.
 */
static int add_member(struct run *r, int dmabuf, unsigned int i)
{
	struct rashpa_source_add add = {
		.head.flags = RASHPA_SOURCE_QUIET,
		.kind = RASHPA_SOURCE_LOCK,
		.index = r->stream.vector,
		.memory = dmabuf,
		.offset = r->stream.dtp[i].lock_offset + RFPGA_LOCK_STACKS,
		.condition = RASHPA_CONDITION_CHANGED,
		.bits = 64,
	};

	return rashpa_listen(r->channel, &add);
}

/* One event for each stack that is complete in all processes. 0 or a negative errno. */
static int add_group(struct run *r, int dmabuf)
{
	struct rashpa_member member[RASHPA_STREAM_DTPS] = {};
	struct rashpa_group_make group = {
		.members = (uintptr_t)member,
		.n_members = r->stream.dtps,
		.member_size = sizeof(member[0]),
		.slots = r->stream.slots,
		.full = RASHPA_FULL_NEVER,
		.first = r->credit,
	};
	int id;

	for (unsigned int i = 0; i < r->stream.dtps; i++) {
		id = add_member(r, dmabuf, i);
		if (id < 0)
			return id;
		member[i].source = id;
	}
	id = rashpa_group(r->channel, &group);
	if (id < 0)
		return id;
	r->group = id;
	r->told = r->credit;
	return 0;
}

static int make_group(struct run *r, const struct rashpa_channel_make *events)
{
	int dmabuf = rashpa_buffer_dmabuf(r->locks.fd), error;

	if (dmabuf < 0)
		return dmabuf;
	error = rashpa_ring_map(r->channel, events, &r->queue);
	if (!error)
		error = add_group(r, dmabuf);
	close(dmabuf);
	return error;
}

/*
 * A group tells of complete stacks, and sees who laps us. A driver without groups has the vector:
 * an FPGA that groups its processes interrupts once a stack.
 */
static int open_channel(struct run *r)
{
	const struct rashpa_stream *s = &r->stream;
	struct rashpa_channel_make events = {};

	r->channel = rashpa_channel_make(r->fpga.device, &events);
	if (r->channel < 0 || rashpa_source_add(r->channel, RASHPA_SOURCE_DEVICE, 0) < 0)
		return fail("fpga%" PRIu32 ": cannot listen to events: %s", s->fpga,
			    rashpa_reason());
	if (!make_group(r, &events))
		return 0;
	say("fpga%" PRIu32 ": no group of the stream's processes: %s; listening to vector %" PRIu32 " instead, overruns are not counted",
	    s->fpga, rashpa_reason(), s->vector);
	if (rashpa_source_add(r->channel, RASHPA_SOURCE_VECTOR, s->vector) < 0)
		return fail("fpga%" PRIu32 ": cannot listen to vector %" PRIu32 ": %s", s->fpga,
			    s->vector, rashpa_reason());
	return 0;
}

/* What the group counted, as long as there is one. */
static void count_group(struct run *r)
{
	struct rashpa_group_info info = { .id = r->group };

	r->report->group = r->group;
	if (r->group && !rashpa_group_info(r->channel, &info))
		r->report->overruns = info.out_overruns;
}

static int open_fpga(struct run *r)
{
	const struct rashpa_stream *s = &r->stream;
	char why[WHY_SIZE];

	if (fpga_open(&r->fpga, s->fpga, why))
		return fail("%s", why);
	if (open_channel(r))
		return EXIT_FAILED;
	if (view_open(&r->doorbells, &r->fpga, "doorbells", RFPGA_BAR_DOORBELL, 0, 0, true, why)) {
		/* Nobody waits for credit when the producer runs freely. */
		return s->paced ? fail("%s", why) : 0;
	}
	for (unsigned int i = 0; i < s->dtps; i++) {
		if (s->dtp[i].doorbell_offset + 8 > r->doorbells.length)
			return fail("fpga%" PRIu32 ": the doorbell of process %" PRIu32 " is outside the window \"doorbells\"",
				    s->fpga, s->dtp[i].dtp);
	}
	return 0;
}

/* A successor goes on from here if we are killed. */
static void store_consumed(struct run *r)
{
	if (same_stream(r))
		__atomic_store_n(&r->shared->consumed, r->credit, __ATOMIC_RELEASE);
}

/*
 * The doorbells of a function that was removed cannot be reached any more: that ends the
 * stream, and not the program.
 */
static sigjmp_buf no_doorbell;
static volatile bool ringing;

static void on_bus_error(int number)
{
	if (ringing)
		siglongjmp(no_doorbell, 1);
	signal(number, SIG_DFL);
	raise(number);
}

static void give_credit(struct run *r)
{
	/* All that we read from the slots, and wrote into them, is done before. */
	__sync_synchronize();
	if (r->group)
		rashpa_ring_ack(&r->queue, r->group, r->credit);
	if (!r->doorbells.base || !undisturbed(r))
		return;
	if (sigsetjmp(no_doorbell, 0)) {
		ringing = false;
		view_close(&r->doorbells);
		r->over = "the function was removed";
		return;
	}
	ringing = true;
	/* The number of the run: should it be over before this arrives, the next one ignores it. */
	for (unsigned int i = 0; i < r->stream.dtps; i++)
		rashpa_doorbell64(r->doorbells.base, r->stream.dtp[i].doorbell_offset,
				  (uint32_t)r->credit | (uint64_t)r->stream.run << 32);
	ringing = false;
}

static int begin(struct run *r)
{
	const struct rashpa_stream *s = &r->stream;
	char why[WHY_SIZE];

	r->end = stream_end(s);
	if (s->consumed < s->first_stack || s->consumed > r->end)
		return fail("buffer %s: consumed is %" PRIu64
			    ", but the run goes from stack %" PRIu64 " to %" PRIu64,
			    r->config->opt.buffer, s->consumed, s->first_stack, r->end);
	r->credit = s->consumed;
	r->next = r->config->from_start ? s->first_stack : s->consumed;
	if (r->config->mode == MODE_CHECK && check_possible(s, r->dataset, why))
		return fail("buffer %s: %s", r->config->opt.buffer, why);
	if (r->config->mode == MODE_WRITE) {
		r->bounce = malloc(stream_extent(s, s->bunch));
		if (!r->bounce)
			return fail("no memory for a copy of one stack");
	}
	if (locks_open(&r->locks, s, r->buffer, r->shared, false, why))
		return fail("buffer %s: %s", r->config->opt.buffer, why);
	if (open_fpga(r))
		return EXIT_FAILED;
	/* If we were killed between storing consumed and ringing: ring now. */
	if (s->state == RASHPA_STREAM_RUNNING)
		give_credit(r);
	return 0;
}

/* --- one stack --- */

static void explain(struct run *r, const struct mismatch *m)
{
	if (m->unwritten)
		r->report->unwritten++;
	if (m->duplicate)
		r->report->duplicate++;
	r->report->corrupt++;
	if (r->printed++ < MISMATCHES)
		say("stack %" PRIu64 " image %" PRIu32 " line %" PRIu32 " pixel %" PRIu32 ": expected %#06x, got %#06x%s%s",
		    m->stack, m->image, m->line, m->pixel, m->expected, m->got,
		    m->unwritten ? " (never written)" : "",
		    m->duplicate ? " (an image that was here before)" : "");
	else if (r->printed == MISMATCHES + 1)
		say("more wrong frames are only counted");
}

/* 0, -EINTR when we were told to stop, or an exit code. Ticks interrupt a write that waits. */
static int write_all(struct run *r, const void *data, size_t size)
{
	const double timeout = r->config->opt.timeout;
	uint64_t stalled = 0;	/* since when nothing is taken */

	while (size) {
		ssize_t n = write(r->file, data, size);

		if (n > 0) {
			data = (const char *)data + n;
			size -= n;
			r->written += n;
			stalled = 0;
			continue;
		}
		if (!n || errno != EINTR)
			return fail("cannot write %s: %s", r->config->write, strerror(errno));
		if (*r->stop)
			return -EINTR;
		if (!stalled)
			stalled = now_ns();
		if (timeout > 0 && now_ns() - stalled > timeout * 1e9) {
			say("cannot write %s: nobody took anything for %g s", r->config->write,
			    timeout);
			return EXIT_TIMEOUT;
		}
	}
	return 0;
}

/* The next receiver appends this stack, as a whole. What a pipe has, it has. */
static void unwrite(struct run *r)
{
	off_t end = r->written ? lseek(r->file, 0, SEEK_CUR) : -1;

	if (end >= 0 && ftruncate(r->file, end - r->written))
		say("%s ends with a part of a stack: %s", r->config->write, strerror(errno));
}

static int write_images(struct run *r, uint32_t images)
{
	const struct rashpa_stream *s = &r->stream;
	size_t line = (size_t)s->width * s->pixel_bytes;
	int result;

	for (uint32_t i = 0; i < images; i++) {
		const uint8_t *image = (const uint8_t *)r->bounce + i * s->image_stride;

		if (line == s->line_stride) {
			result = write_all(r, image, line * s->height);
			if (result)
				return result;
			continue;
		}
		for (uint32_t y = 0; y < s->height; y++) {
			result = write_all(r, image + y * s->line_stride, line);
			if (result)
				return result;
		}
	}
	return 0;
}

static int write_stack(struct run *r, uint32_t images)
{
	int result;

	r->written = 0;
	result = write_images(r, images);
	if (result)
		unwrite(r);
	return result;
}

/* A slot that is not written again must not look right. */
static void poison(struct run *r, uint8_t *slot, uint32_t images)
{
	const struct rashpa_stream *s = &r->stream;

	for (uint32_t i = 0; i < images && undisturbed(r); i++)
		memset(slot + i * s->image_stride, POISON_BYTE, stream_extent(s, 1));
}

static uint64_t payload(const struct rashpa_stream *s)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < s->dtps; i++)
		bytes += (uint64_t)s->dtp[i].width * s->dtp[i].height * s->pixel_bytes;
	return bytes;
}

/* What the metadata of a stack tell, until it is known whether it was ours. */
struct account {
	uint64_t skipped, incomplete, missing_lines;
	uint32_t wrong, first_wrong;	/* images */
};

/* Frames that were left out can only become more. */
static bool in_order(const struct run *r, uint32_t i, const struct about *about,
		     struct account *a)
{
	const struct rashpa_stream *s = &r->stream;
	uint64_t place = (r->next - s->first_stack) * s->bunch + i;
	uint64_t index = frame_index(s, about->frame[0]);

	if (index < place || index - place < a->skipped)
		return false;
	a->skipped = index - place;
	return true;
}

static void account(const struct run *r, uint32_t images, struct account *a)
{
	struct about about;

	for (uint32_t i = 0; i < images; i++) {
		uint64_t missing = 0;

		read_about(&r->stream, (const uint8_t *)(uintptr_t)r->shared, r->next, i, &about);
		if (about.wrong || !in_order(r, i, &about, a)) {
			a->first_wrong = a->wrong++ ? a->first_wrong : i;
			continue;
		}
		for (unsigned int d = 0; d < r->stream.dtps; d++)
			missing += about.missing[d];
		a->incomplete += missing > 0;
		a->missing_lines += missing;
	}
}

static void keep_account(struct run *r, const struct account *a)
{
	r->report->skipped = a->skipped;
	r->report->incomplete += a->incomplete;
	r->report->missing_lines += a->missing_lines;
	r->report->corrupt += a->wrong;
	if (a->wrong && r->printed++ < MISMATCHES)
		say("stack %" PRIu64 " image %" PRIu32 ": its metadata are not of this stack, or its parts not of one frame",
		    r->next, a->first_wrong);
}

/* Of a stream that leaves stacks out, only the last lock record knows how long the last one is. */
static uint32_t images_of_next(struct run *r)
{
	const struct rashpa_stream *s = &r->stream;
	struct rfpga_lock lock;
	uint64_t before = (r->next - s->first_stack) * s->bunch;

	if (s->policy == RASHPA_STREAM_DROP && locks_read(&r->locks, s, 0, &lock) &&
	    lock.stacks == r->next + 1 && lock.images - before <= s->bunch)
		return lock.images - before;
	return stream_stack_images(s, r->next);
}

/* Stack r->next is complete: use it, and give its slot back. As write_all(). */
static int take_stack(struct run *r)
{
	const struct rashpa_stream *s = &r->stream;
	uint8_t *base = (uint8_t *)(uintptr_t)r->shared;
	uint8_t *slot = base + s->data_offset + r->next % s->slots * s->slot_stride;
	uint32_t images = images_of_next(r);
	struct account a = { .skipped = r->report->skipped };
	struct mismatch wrong[MISMATCHES], m;
	uint64_t most, more_wrong = 0, duplicate = 0, unwritten = 0;
	unsigned int n_wrong = 0;
	struct about about;
	bool lost;
	int result;

	if (r->config->mode == MODE_CHECK) {
		/* The last image first: if the event came before the data, that one is late. */
		for (uint32_t i = images; i-- > 0;) {
			read_about(s, base, r->next, i, &about);
			if (about.wrong || check_frame(s, r->dataset, slot + i * s->image_stride,
						       r->next, i, &about, &m))
				continue;
			if (n_wrong < MISMATCHES) {
				wrong[n_wrong++] = m;
				continue;
			}
			more_wrong++;
			duplicate += m.duplicate;
			unwritten += m.unwritten;
		}
	} else if (r->bounce) {
		memcpy(r->bounce, slot, stream_extent(s, images));
	}
	account(r, images, &a);

	/* What we read was this stack only if nobody has begun to overwrite it since. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	locks_stacks(&r->locks, &r->stream, &most);
	lost = stream_oldest(s, most, r->credit) > r->next || !same_stream(r);
	if (lost) {
		r->report->lost += images;
	} else {
		keep_account(r, &a);
		for (unsigned int i = 0; i < n_wrong; i++)
			explain(r, &wrong[i]);
		r->report->corrupt += more_wrong;
		r->report->duplicate += duplicate;
		r->report->unwritten += unwritten;
		result = r->bounce ? write_stack(r, images) : 0;
		if (result)
			return result;
		r->report->frames += images;
		r->report->stacks++;
		r->report->bytes += images * payload(s);
	}
	if (++r->next <= r->credit)
		return 0;
	r->credit = r->next;
	store_consumed(r);
	/*
	 * The slot is ours until we give credit, and after consumed was stored no successor looks
	 * at what we spoil.
	 */
	if (r->config->mode == MODE_CHECK && s->paced && !lost)
		poison(r, slot, images);
	give_credit(r);
	return 0;
}

/* --- waiting --- */

static void on_tick(int number)
{
	(void)number;
}

/* A timer interrupts read(): it can end without a call more per stack. */
static int start_ticks(struct run *r)
{
	const struct sigaction action = { .sa_handler = on_tick };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	const struct itimerspec interval = {
		.it_value.tv_nsec = TICK_NS, .it_interval.tv_nsec = TICK_NS,
	};

	sigaction(SIGALRM, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &r->timer) ||
	    timer_settime(r->timer, 0, &interval, NULL))
		return fail("cannot make a timer: %s", strerror(errno));
	r->have_timer = true;
	return 0;
}

/*
 * There is nothing to take now, or nothing more. Some machines ask the kernel for the time: it is
 * asked for around a wait, not once a stack.
 */
static void all_taken(struct run *r)
{
	if (r->next == r->taken_to)
		return;
	r->taken_to = r->next;
	r->taken = now_ns();
}

/* A group's record has the number of the last complete stack: those between came together. */
static void count_skips(struct run *r, const struct rashpa_event *e)
{
	if (e->kind != RASHPA_SOURCE_GROUP)
		return;
	r->report->skips += e->value - r->told - 1;
	r->told = e->value;
}

/* One read() on the channel; -EINTR on a tick. */
static int wait_event(struct run *r)
{
	struct rashpa_event event[64];
	uint64_t newest = 0, most;
	ssize_t n;

	all_taken(r);
	n = read(r->channel, event, sizeof(event));
	if (n < 0 && errno == EINTR)
		return -EINTR;
	r->woken = now_ns();
	r->report->reads++;
	if (n < 0 && errno == ENODEV) {
		r->over = "the function was removed";
		return 0;
	}
	if (n < 0)
		return fail("fpga%u: event channel: %s", r->fpga.number, strerror(errno));
	for (size_t i = 0; i < n / sizeof(event[0]); i++) {
		const struct rashpa_event *e = &event[i];

		if (e->kind == RASHPA_SOURCE_VECTOR || e->kind == RASHPA_SOURCE_GROUP) {
			r->report->events++;
			r->report->events_lost = e->lost;
			newest = e->time_ns;
			count_skips(r, e);
		} else if (e->kind == RASHPA_SOURCE_DEVICE && e->time_ns >= r->stream.start_ns) {
			r->over = e->value == RASHPA_DEVICE_EVENT_GONE ?
				  "the function was removed" : "the function was stopped";
		}
	}
	/* A record of a stack that we took without asking tells nothing about waking up. */
	if (newest && locks_stacks(&r->locks, &r->stream, &most) > r->next)
		samples_add(&r->report->latency, r->woken - newest);
	return 0;
}

static bool stream_over(struct run *r)
{
	if (!r->over &&
	    __atomic_load_n(&r->shared->state, __ATOMIC_ACQUIRE) != RASHPA_STREAM_RUNNING)
		r->over = "the producer ended the stream";
	return r->over;
}

/* A tick while nothing arrives. */
static int on_idle(struct run *r)
{
	uint64_t now = now_ns(), idle;
	char why[WHY_SIZE];
	int mapped;

	if (r->next != r->moved_to)
		r->moved = now;
	r->moved_to = r->next;
	idle = now - r->moved;
	/* An event that says so may have come before our channel existed. */
	if (idle > 1000000000ull) {
		mapped = buffer_mapped(r->buffer, why);
		if (mapped < 0)
			return fail("buffer %s: %s", r->config->opt.buffer, why);
		if (!mapped)
			r->over = "the producer is gone";
	}
	if (!r->over && r->config->opt.timeout > 0 && idle > r->config->opt.timeout * 1e9) {
		say("buffer %s: no stack arrived for %g s after %" PRIu64 " frames",
		    r->config->opt.buffer, r->config->opt.timeout, r->report->frames);
		return EXIT_TIMEOUT;
	}
	return 0;
}

/* A stream that leaves stacks out has fewer than it could have; all that were sent were taken. */
static bool all_sent(const struct run *r)
{
	const struct rashpa_stream *s = &r->stream;

	return s->policy == RASHPA_STREAM_DROP && r->report->told && s->images &&
	       r->shared->sent + r->report->dropped * s->bunch >= s->images &&
	       s->first_stack + (r->shared->sent + s->bunch - 1) / s->bunch <= r->next;
}

/*
 * What the board says of what the stream left out: the producer tells when it has ended. It may
 * have lost more behind the last frame that we have, but not if all the run was ours.
 */
static void ask_board(struct run *r)
{
	const struct rashpa_stream *s = &r->stream;
	struct report *report = r->report;
	uint64_t begin = now_ns(), rest;
	struct rfpga_lock lock;
	char why[WHY_SIZE];

	if (!s->live && s->policy != RASHPA_STREAM_DROP)
		return;
	while (!*r->stop && alive(r, why) > 0 && now_ns() - begin < END_NS)
		poll(NULL, 0, WAIT_MS);
	if (!same_stream(r) ||
	    __atomic_load_n(&r->shared->state, __ATOMIC_ACQUIRE) != RASHPA_STREAM_ENDED)
		return;
	report->told = true;
	report->dropped = r->shared->dropped;
	report->source_lost = r->shared->lost;
	report->source_missed = r->shared->missed;
	if (!report->stacks || !locks_read(&r->locks, s, 0, &lock) || lock.stacks != r->next)
		return;
	/* stacks that were left out behind the last one that came are not in skipped */
	rest = lock.dropped * s->bunch;
	if (report->skipped < rest)
		report->unaccounted = rest - report->skipped;
	else if (report->skipped - rest > report->source_lost + report->source_missed)
		report->unaccounted = report->skipped - rest - report->source_lost -
				      report->source_missed;
	else if (r->next == r->end && report->skipped - rest < report->source_lost)
		report->unaccounted = report->source_lost - (report->skipped - rest);
}

/* The stream is over, and more was to come. */
static int too_short(const struct run *r)
{
	const struct rashpa_stream *s = &r->stream;
	uint64_t got = stream_images(s, s->first_stack, r->next), want = s->images;

	if (r->config->opt.images) {
		got = r->report->frames + r->report->lost;
		want = r->config->opt.images;
	}
	return fail("buffer %s: %s after %" PRIu64 " of %" PRIu64 " images",
		    r->config->opt.buffer, r->over, got, want);
}

/* What is in the buffer is not ours any more; @complete stacks were seen while it was. */
static int replaced(struct run *r, uint64_t complete)
{
	struct report *report = r->report;

	if (complete > r->next)
		report->lost += stream_images(&r->stream, r->next, complete);
	return fail("buffer %s: the producer began another stream after %" PRIu64
		    " images of this one that we know of, %" PRIu64
		    " of them lost: how many more there were nobody knows",
		    r->config->opt.buffer, report->frames + report->lost, report->lost);
}

static int loop(struct run *r)
{
	const struct rashpa_stream *s = &r->stream;
	struct report *report = r->report;
	uint64_t least, most, oldest, complete = 0, read_for = UINT64_MAX, begin = now_ns();
	struct progress progress;
	int result = 0;
	bool over;

	r->moved = r->taken = begin;
	r->moved_to = r->taken_to = r->next;
	progress_init(&progress, r->config->opt.progress);
	while (!result && !*r->stop && r->next < r->end) {
		if (r->config->opt.images && report->frames + report->lost >= r->config->opt.images)
			break;
		over = stream_over(r);	/* before the locks: what was complete then is in them */
		least = locks_stacks(&r->locks, &r->stream, &most);
		/* the records of another stream tell nothing of ours */
		if (!same_stream(r)) {
			result = replaced(r, complete);
			break;
		}
		if (!stream_possible(s, most)) {
			result = fail("buffer %s: a lock record tells of %" PRIu64
				      " complete stacks, which cannot be",
				      r->config->opt.buffer, most);
			break;
		}
		complete = least;
		oldest = stream_oldest(s, most, r->credit);
		if (oldest > r->next) {
			report->lost += stream_images(s, r->next, oldest);
			r->next = oldest;
			continue;
		}
		if (least > r->next) {
			report->stacks_without_read += read_for != r->next;
			result = take_stack(r);
			progress_show(&progress, "%" PRIu64 " frames, %" PRIu64 " lost, %" PRIu64 " corrupt",
				      report->frames, report->lost, report->corrupt);
			continue;
		}
		if (over)
			break;
		result = wait_event(r);
		if (result == -EINTR)
			result = on_idle(r);
		else
			read_for = r->next;
	}
	progress_end(&progress);
	report->interrupted = *r->stop;
	all_taken(r);
	if (report->stacks)
		report->ns = r->taken - begin;
	if (result == -EINTR)	/* in the middle of a stack */
		result = 0;
	if (!result)
		ask_board(r);
	if (!result && !*r->stop && r->over && r->next < r->end && !all_sent(r) &&
	    (s->images || r->config->opt.images))
		result = too_short(r);
	if (!result && (report->lost || report->corrupt || report->skipped ||
			report->incomplete || report->dropped || report->unaccounted))
		result = EXIT_DATA;
	return result;
}

static int close_all(struct run *r)
{
	int result = 0;

	if (r->have_timer)
		timer_delete(r->timer);
	view_close(&r->doorbells);
	rashpa_ring_unmap(&r->queue);
	if (r->channel >= 0)
		close(r->channel);
	fpga_close(&r->fpga);
	locks_close(&r->locks);
	if (r->shared)
		munmap((void *)(uintptr_t)r->shared, r->length);
	if (r->buffer >= 0)
		close(r->buffer);
	if (r->file >= 0 && close(r->file))
		result = fail("cannot write %s: %s", r->config->write, strerror(errno));
	free(r->bounce);
	return result;
}

int receive(const struct config *config, const struct dataset *dataset, volatile bool *stop,
	    struct report *report)
{
	struct run r = {
		.config = config,
		.dataset = dataset,
		.report = report,
		.stop = stop,
		.buffer = -1, .channel = -1, .file = -1,
		.fpga = FPGA_NONE,
		.doorbells = VIEW_NONE,
		.locks = LOCKS_NONE,
	};
	const struct sigaction bus_error = { .sa_handler = on_bus_error, .sa_flags = SA_NODEFER };
	int result;

	report->latency.limit = LATENCIES;
	sigaction(SIGBUS, &bus_error, NULL);
	result = open_buffer(&r);
	if (!result)
		result = open_file(&r);
	if (!result)
		result = await_stream(&r);
	if (!result && !*stop)
		result = begin(&r);
	if (!result && !*stop)
		result = start_ticks(&r);
	if (!result && !*stop) {
		report->attached = true;
		report->stream = r.stream;
		report->iommu = r.fpga.info.out_flags & RASHPA_DEVICE_IOMMU;
		result = loop(&r);
		count_group(&r);
	}
	return close_all(&r) ? EXIT_FAILED : result;
}
