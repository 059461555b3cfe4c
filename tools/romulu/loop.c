// SPDX-License-Identifier: LGPL-2.1-or-later
/* The receiver's loop: it takes stacks, uses them, and counts all that is missing. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/led.h"
#include "romulu/lookout.h"
#include <rashpa.h>
#include <rashpa-fpga.h>
#include "romulu/romulu.h"
#include "common/say.h"

#define END_NS		10000000000ll	/* for a producer to end when all was sent */
/* A signal that comes right before a wait does not end it: look again after so long. */
#define LOOK_NS		250000000ll
#define AGAIN		(-EAGAIN)	/* no exit code: wait for another stream */
#define LATENCIES	(1 << 20)	/* samples kept: a stream can last for weeks */

/* --timeout, the longest time without a stack; -1: no limit. */
static int64_t timeout_ns(const struct run *r)
{
	return r->config->opt.timeout > 0 ? (int64_t)(r->config->opt.timeout * 1e9) : -1;
}

static int await_stream(struct run *r)
{
	const uint64_t begin = now_ns();
	const int64_t whole = timeout_ns(r);
	struct progress progress;
	int64_t left;
	int result;

	progress_init(&progress, r->config->opt.progress);
	do {
		progress_show(&progress, "waiting for a stream in buffer %s",
			      r->config->opt.buffer);
		left = whole - (int64_t)(now_ns() - begin);
		if (whole < 0 || left > 250000000)
			left = 250000000;
		result = rashpa_stream_begin(r->stream, left < 0 ? 0 : left);
	} while ((result == -ETIMEDOUT && (whole < 0 || (int64_t)(now_ns() - begin) < whole)) ||
		 (result == -EINTR && !*r->stop));
	progress_end(&progress);
	if (!result || *r->stop)
		return 0;
	if (result != -ETIMEDOUT)
		return fail("%s", rashpa_reason());
	say("%s", rashpa_reason());
	return EXIT_TIMEOUT;
}

/* Whether an IOMMU stands between the board and memory, for the report. */
static void ask_function(struct run *r)
{
	const struct rashpa_stream_process *p = rashpa_stream_process_at(r->stream, 0);
	struct rashpa_device_info info;
	int device;

	r->report->board = p->function == RASHPA_STREAM_FPGA;
	r->report->fpga = p->fpga;
	r->report->vector = p->vector;
	device = r->report->board ? rashpa_device_open(p->fpga) : -1;
	if (device < 0)
		return;
	memset(&info, 0, sizeof(info));
	if (!rashpa_device_get_info(device, &info))
		r->report->iommu = info.out_flags & RASHPA_DEVICE_IOMMU;
	close(device);
}

/* --- one stack --- */

static uint64_t payload(const struct run *r)
{
	uint64_t pixels = 0;

	for (uint32_t i = 0; i < r->about->processes; i++) {
		const struct rashpa_stream_process *p = rashpa_stream_process_at(r->stream, i);

		pixels += (uint64_t)p->width * p->height;
	}
	return pixels;
}

/* Counts from a stack's metadata, added to the report only if the stack was intact. */
struct account {
	uint64_t incomplete, missing_lines, dark;
	uint32_t wrong, first_wrong;	/* images */
};

static void account(const struct rashpa_stack *st, struct account *a)
{
	struct rashpa_image image;

	*a = (struct account) {};
	if (!st->flags)
		return;
	for (uint32_t i = 0; i < st->images && !rashpa_stack_image(st, i, &image); i++) {
		a->dark += image.role == RASHPA_IMAGE_DARK;
		if (image.wrong && !a->wrong++)
			a->first_wrong = i;
		if (image.wrong)
			continue;
		a->incomplete += image.missing_lines > 0;
		a->missing_lines += image.missing_lines;
	}
	if (st->flags & RASHPA_STACK_WRONG && !a->wrong)
		a->wrong = 1;
}

static void keep_account(struct run *r, const struct rashpa_stack *st, const struct account *a)
{
	struct report *report = r->report;

	report->skipped = st->skipped;
	report->incomplete += a->incomplete;
	report->missing_lines += a->missing_lines;
	report->dark += a->dark;
	report->corrupt += a->wrong;
	if (a->wrong && r->printed++ < MISMATCHES)
		say("stack %" PRIu64 " image %" PRIu32 ": its metadata are not of this stack, or its parts not of one frame",
		    st->number, a->first_wrong);
	report->frames += st->images;
	report->stacks++;
	report->bytes += st->images * payload(r) * st->pixel_bytes;
}

/* Use a stack, and give its slot back. Returns as functions of struct use do. */
static int use_stack(struct run *r, const struct rashpa_stack *st)
{
	const struct use *use = r->config->use;
	struct account a;
	int result;

	if (st->woken_ns && st->event_ns)
		samples_add(&r->report->latency, st->woken_ns - st->event_ns);
	r->report->stacks_without_wait += !st->woken_ns;
	if (use->look && !st->data)
		return fail("buffer %s: the images are in memory %s, which no program can read: only count them (no --check, --write or --pipeline)",
			    r->config->opt.buffer, r->about->payload_name);
	result = use->look ? use->look(r, st) : 0;
	account(st, &a);
	/* The data read so far are valid only if the stack was not overwritten meanwhile. */
	if (!result && !rashpa_stack_intact(st)) {
		rashpa_stream_release(r->stream, st);
		return 0;
	}
	if (!result && use->stack)
		result = use->stack(r, st);
	if (result)
		return result;	/* it is the next receiver's */
	keep_account(r, st, &a);
	if (use->keeps)
		return 0;
	rashpa_stream_done(r->stream, st);
	if (use->after)
		use->after(r, st);
	rashpa_stream_release(r->stream, st);
	return 0;
}

/* --- the end --- */

/* A stream that leaves stacks out has fewer than it could have; all that were sent were taken. */
static bool all_sent(const struct run *r, uint64_t sent)
{
	const struct rashpa_stream_header *h = r->about;

	return h->policy == RASHPA_STREAM_DROP && r->report->told && h->images &&
	       sent + r->report->dropped * h->bunch >= h->images && r->report->frames >= sent;
}

/*
 * Read the board's counts of left out frames, which the producer reports at its end. It may have
 * lost more frames after our last one, unless we received the whole run.
 */
static uint64_t ask_board(struct run *r, bool whole)
{
	const struct rashpa_stream_header *h = r->about;
	struct report *report = r->report;
	struct rashpa_stream_header count;
	struct rfpga_lock lock;
	uint64_t rest;
	int result;

	if (!h->live && h->policy != RASHPA_STREAM_DROP)
		return 0;
	do {
		result = rashpa_stream_await_end(r->stream, &count, END_NS);
	} while (result == -EINTR && !*r->stop);
	if (result)
		return 0;
	report->told = true;
	report->dropped = count.dropped;
	report->source_lost = count.lost;
	report->source_missed = count.missed;
	if (!report->stacks || rashpa_stream_lock(r->stream, 0, &lock) ||
	    rashpa_stream_complete(r->stream) != lock.stacks)
		return count.sent;
	/* skipped lacks stacks left out after the last one that arrived */
	rest = lock.dropped * h->bunch;
	if (report->skipped < rest)
		report->unaccounted = rest - report->skipped;
	else if (report->skipped - rest > report->source_lost + report->source_missed)
		report->unaccounted = report->skipped - rest - report->source_lost -
				      report->source_missed;
	else if (whole && report->skipped - rest < report->source_lost)
		report->unaccounted = report->source_lost - (report->skipped - rest);
	return count.sent;
}

/* So many images are wanted, 0: all. How many a stack has is known when there is a stream. */
static uint64_t asked(const struct run *r)
{
	return depth_images(&r->config->opt.images, r->about->bunch);
}

/* The stream is over, and more was to come. */
static int too_short(const struct run *r, int over)
{
	const char *why = "the producer ended the stream";
	uint64_t want = asked(r) ? asked(r) : r->about->images;
	char of[32] = "";

	if (over == -EOWNERDEAD)
		why = "the producer is gone";
	else if (over == -ENODEV)
		why = "the function was removed";
	else if (over == -ECONNABORTED)
		why = "the function was stopped";
	if (want)
		snprintf(of, sizeof(of), " of %" PRIu64, want);
	return fail("buffer %s: %s after %" PRIu64 "%s images", r->config->opt.buffer, why,
		    r->report->frames + r->report->lost, of);
}

static void count(struct run *r)
{
	struct rashpa_stream_stat stat;

	rashpa_stream_get_stat(r->stream, &stat);
	r->report->lost = stat.lost;
	r->report->waits = stat.waits;
	r->report->events = stat.events;
	r->report->events_lost = stat.events_lost;
	r->report->overruns = stat.overruns;
}

/* @over: 0, or why there are no more stacks */
static int end(struct run *r, int over, uint64_t first)
{
	const struct rashpa_stream_header *h = r->about;
	struct report *report = r->report;
	uint64_t want = h->images - (first - h->first_stack) * h->bunch, sent;

	sent = ask_board(r, report->frames + report->lost >= want);
	if (*r->stop)
		return 0;
	if (asked(r))
		want = asked(r);
	else if (!h->images)
		want = 0;
	if ((over < 0 && over != -EINTR) ||
	    (report->frames + report->lost < want && !r->config->share && !all_sent(r, sent)))
		return too_short(r, over);
	return 0;
}

static bool enough(const struct run *r)
{
	const uint64_t images = asked(r);

	return images && r->report->frames + r->report->lost >= images;
}

/*
 * As rashpa_stream_next(), for as long as --timeout allows, however many signals come (uses have
 * timers). *since: when a wait began. Some machines ask the kernel for the time, so it is asked for
 * where there is a wait only.
 */
static int next_stack(struct run *r, struct rashpa_stack *st, uint64_t *since)
{
	const int64_t whole = timeout_ns(r);
	int result = rashpa_stream_next(r->stream, st, 0);
	int64_t left = LOOK_NS;

	if (result != -ETIMEDOUT)
		return result;
	*since = now_ns();
	while (!*r->stop) {
		if (whole >= 0)
			left = whole - (int64_t)(now_ns() - *since);
		if (left <= 0)
			return -ETIMEDOUT;
		result = rashpa_stream_next(r->stream, st, left < LOOK_NS ? left : LOOK_NS);
		if (result != -ETIMEDOUT && result != -EINTR)
			return result;
	}
	return -EINTR;
}

/*
 * For another stream. A daemon's run ends with its producer, though; and a use that keeps
 * stacks has begun its files.
 */
static bool may_wait(const struct run *r)
{
	const struct config *c = r->config;

	return !r->report->stacks && !r->report->lost && !*r->stop && !led() && !c->net.listen &&
	       !c->from_start && !c->use->keeps;
}

static int loop(struct run *r)
{
	struct report *report = r->report;
	uint64_t begin = now_ns(), taken = begin, first = 0;
	struct progress progress;
	char why[WHY_SIZE] = "";
	struct rashpa_stack st;
	int result = 0, over = 0;

	progress_init(&progress, r->config->opt.progress);
	while (!result && !*r->stop && !enough(r)) {
		over = next_stack(r, &st, &taken);
		if (over == -EINTR)
			continue;
		if (over < 0)
			snprintf(why, sizeof(why), "%s", rashpa_reason());
		if (over <= 0)
			break;
		if (!report->stacks && !report->lost)
			first = st.number;
		report->lost += st.lost;
		result = use_stack(r, &st);
		lookout_note(r);
		progress_show(&progress, r->config->use == &use_check || report->corrupt ?
			      "%" PRIu64 " frames, %" PRIu64 " lost, %" PRIu64 " corrupt" :
			      "%" PRIu64 " frames, %" PRIu64 " lost",
			      report->frames, report->lost, report->corrupt);
	}
	progress_end(&progress);
	report->interrupted = *r->stop;
	if (over != -ETIMEDOUT)
		taken = now_ns();
	if (report->stacks)
		report->ns = taken - begin;
	count(r);
	if (result == -EINTR)	/* in the middle of a stack */
		return 0;
	if (result)
		return result;
	if (over == -ETIMEDOUT) {
		say("buffer %s: no stack arrived for %g s after %" PRIu64 " frames",
		    r->config->opt.buffer, r->config->opt.timeout, report->frames);
		return EXIT_TIMEOUT;
	}
	/* a dead stream, of which we took no stack */
	if ((over == -ESTALE || over == -EOWNERDEAD) && may_wait(r))
		return AGAIN;
	if (over < 0 && over != -EOWNERDEAD && over != -ECONNABORTED && over != -ENODEV &&
	    over != -EINTR)
		return fail("%s", why);
	return enough(r) ? 0 : end(r, over, first);
}

/* The user's names, and those that are ours. */
static int accept_all(struct run *r)
{
	const struct config *c = r->config;
	int error = accept_names(&c->accept, r->stream);

	if (!error && c->offer)
		error = rashpa_stream_accept(r->stream, c->offer);
	if (!error && c->net.payload)
		error = rashpa_stream_accept(r->stream, c->net.payload);
	return error ? fail("%s", rashpa_reason()) : 0;
}

static int run(struct run *r)
{
	const struct use *use = r->config->use;
	/* who leads us has the detector begin after this: what others left is not this run's */
	const bool fresh = led() && !r->config->net.listen;
	/* a stream that we receive is ours from its first stack on, however late we look */
	const bool first = r->config->from_start || r->config->net.listen;
	/* a GPU's driver and io_uring pin pages for writing only; --check marks what it compared */
	const bool pins = use == &use_record || (r->config->driven && !r->config->offer);
	const unsigned int writes = pins ? RASHPA_STREAM_WRITE | RASHPA_STREAM_PIN : 0;
	unsigned int flags = (first ? RASHPA_STREAM_FROM_START : 0) |
			     (fresh && !first ? RASHPA_STREAM_FRESH : 0) |
			     (use->after ? RASHPA_STREAM_WRITE : writes) |
			     (use->look ? 0 : RASHPA_STREAM_NO_DATA);
	struct report *report = r->report;
	const struct rashpa_place_options place = {
		.name = "romulu", .flags = flags, .workers = r->config->share,
	};
	int result;

	/* Where there is no buffer no file is made. */
	if (rashpa_stream_open_as(r->config->opt.buffer, &place, &r->stream))
		return fail("%s", rashpa_reason());
	result = accept_all(r);
	if (!result && use->open && !r->data)
		result = use->open(r);
	if (!result && !r->config->net.listen)
		led_say("armed", NULL);
	if (!result)
		result = await_stream(r);
	if (result || *r->stop)
		return result;
	r->about = rashpa_stream_get_header(r->stream);
	result = use->begin ? use->begin(r) : 0;
	if (result)
		return result;
	ask_function(r);
	report->attached = true;
	report->stream = *r->about;
	result = loop(r);
	if (!result && (report->lost || report->corrupt || report->skipped ||
			report->incomplete || report->dropped || report->unaccounted))
		result = EXIT_DATA;
	return result;
}

int receive(const struct config *config, struct dataset *dataset, const volatile bool *stop,
	    struct report *report)
{
	struct run r = {
		.config = config,
		.dataset = dataset,
		.report = report,
		.stop = stop,
	};
	struct network_config net = config->net;
	struct network *network = NULL;
	int result = 0;

	report->latency.limit = LATENCIES;
	/* senders stream into what is offered */
	if (config->net.listen && config->offer)
		result = config->use->open(&r);
	if (config->net.listen && !result) {
		/* only CUDA's is an address of the GPU, too */
		if (config->offer && config->net.payload &&
		    !strcmp(config->offer, config->net.payload) && !strncmp(config->engine, "cuda", 4))
			net.there = r.offered;
		net.timeout = config->opt.timeout;
		net.images = depth_images(&config->opt.images, net.bunch);
		result = receiver_open(&net, config->opt.buffer, stop, &network);
		if (!result && config->only_receive && !*stop)
			receiver_await(network);
	}
	if (!result && !config->only_receive && !*stop)
		result = lookout_begin(&r);
	if (!result && !config->only_receive && !*stop)
		result = run(&r);
	while (result == AGAIN) {
		result = config->use->close ? config->use->close(&r) : 0;
		r.data = NULL;
		rashpa_stream_close(r.stream);
		r.stream = NULL;
		report->attached = false;
		if (!result)
			result = run(&r);
	}
	if (network) {
		const int ended = receiver_end(network, &report->network);

		result = result ? result : ended;
	}
	/* no card writes into memory of a pipeline that is closed */
	if (config->offer) {
		receiver_close(network);
		network = NULL;
	}
	r.failed = result == EXIT_FAILED;
	if (config->use->close && config->use->close(&r) && !result)
		result = EXIT_FAILED;
	if (!result && report->unkept)
		result = EXIT_DATA;
	lookout_end(&r);
	rashpa_stream_close(r.stream);
	receiver_close(network);
	return result;
}
