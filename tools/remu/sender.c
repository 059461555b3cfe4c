// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sender over a network: contract, control links and schedule. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/json-out.h"
#include "common/shown.h"
#include "daemon/led.h"
#include "remu/sender.h"
#include <rashpa-fpga.h>
#include "link/route-probe.h"

#define HANDSHAKE_MS	30000		/* other modules may take long to come */
#define BYE_MS		30000		/* the receiver waits for what is under way */
#define TICK_MS		100
#define HOLD_MS		2		/* between checks of workers that are to hold */

/* --- a worker --- */

/* Index in the dataset of an image for this receiver, which may share images or stacks. */
static uint32_t shown(const struct worker *w, uint64_t stack, uint32_t image)
{
	const struct config *c = w->receiver->sender->config;
	const uint64_t n = w->receiver->sender->dataset->held;
	const uint64_t frame = stack * c->bunch + image;

	if (c->net.share == SHARE_STACKS)
		return ((stack * w->receiver->sampling + w->receiver->phase) * c->bunch + image) %
		       n;
	return (frame % n * (w->receiver->sampling % n) + w->receiver->phase) % n;
}

/* Detector frame at which an image is due; each of the receivers that share gets one of @shares. */
static uint64_t detector_frame(const struct worker *w, uint64_t stack, uint32_t image)
{
	const struct config *c = w->receiver->sender->config;
	const uint64_t shares = c->net.share == SHARE_NONE ? 1 : c->net.receivers;

	return (stack * c->bunch + image) * shares;
}

/* Start slowly: bursts at full rate overrun queues of switches before they can react. */
static uint64_t due_ns(const struct sender *s, uint64_t frame)
{
	const double period = (double)s->period * RFPGA_TICK_NS, ramp = s->ramp_ns;
	const double ramped = ramp / period / 2;

	if (frame < ramped)
		return sqrt(2 * frame * period * ramp);
	return ramp / 2 + frame * period;
}

static void pace(const struct worker *w, uint64_t stack, uint32_t image)
{
	const struct sender *s = w->receiver->sender;
	const uint64_t frame = detector_frame(w, stack, image);
	uint64_t due;
	struct timespec t;

	if (!s->period)
		return;
	due = s->base_ns + due_ns(s, frame > s->base_frame ? frame - s->base_frame : 0);
	t = (struct timespec) { due / 1000000000, due % 1000000000 };
	while (!s->halt && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static int send_image(struct worker *w, uint64_t stack, uint32_t image, bool last)
{
	const struct sender *s = w->receiver->sender;
	const struct accept *a = &w->receiver->accept;
	const uint32_t pixel = pixel_bytes(s->dataset->geometry.pixel);
	const struct region *r = w->region;
	const uint64_t from = shown(w, stack, image) * dataset_bytes(s->dataset) +
			      (uint64_t)r->x * pixel;
	const uint64_t to = (a->first_stack + stack) % a->slots * a->slot_stride +
			    image * a->image_stride + (uint64_t)r->to_x * pixel;

	for (uint32_t i = 0; i < w->cut.messages; i++) {
		const struct piece p = cut_piece(&w->cut, i);
		const struct message m = {
			.number = (stack * s->config->bunch + image) * w->cut.messages + i,
			.stack = a->first_stack + stack,
			.from = from + (uint64_t)(r->y + p.y) * dataset_line_bytes(s->dataset) +
				p.offset,
			.to = to + (uint64_t)(r->to_y + p.y) * a->line_stride + p.offset,
			.bytes = p.bytes,
			.last = last && i + 1 == w->cut.messages,
		};

		if (s->sending->send(w, &m))
			return -1;
	}
	return 0;
}

/*
 * 1: a slot is free for this stack; 0: the stream ends. At the end slower workers complete the
 * stacks that others began, so that all regions of a stack are sent.
 */
static int await_credit(struct worker *w, uint64_t stack)
{
	struct receiver *r = w->receiver;
	const struct sender *s = r->sender;
	uint64_t begin = 0;
	bool free;

	pthread_mutex_lock(&r->lock);
	while (!r->over && !s->halt &&
	       (s->hold || (s->config->policy == RASHPA_STREAM_WAIT &&
			    r->accept.first_stack + stack >= r->credit))) {
		w->holding = s->hold;
		begin = begin ? begin : now_ns();
		pthread_cond_wait(&r->more, &r->lock);
	}
	w->holding = false;
	free = !r->over && (!s->halt || stack < r->begun);
	if (free && stack >= r->begun)
		r->begun = stack + 1;
	pthread_mutex_unlock(&r->lock);
	w->waited_ns += begin ? now_ns() - begin : 0;
	return free;
}

/* Number of images for this receiver. */
static uint64_t images_of(const struct receiver *r)
{
	const struct config *c = r->sender->config;
	const uint64_t shares = r->sender->receivers, mine = r - r->sender->receiver;
	uint64_t stacks, rest;

	if (c->net.share == SHARE_IMAGES)
		return (c->images + shares - 1 - mine) / shares;
	if (c->net.share != SHARE_STACKS)
		return c->images;
	stacks = c->images / c->bunch;
	rest = stacks % shares == mine ? c->images % c->bunch : 0;
	return (stacks + shares - 1 - mine) / shares * c->bunch + rest;
}

static int send_all(struct worker *w)
{
	const struct config *c = w->receiver->sender->config;
	const uint64_t images = images_of(w->receiver);

	for (uint64_t stack = 0; !images || stack * c->bunch < images; stack++) {
		const uint64_t left = images ? images - stack * c->bunch : c->bunch;
		const uint32_t n = left < c->bunch ? left : c->bunch;

		if (!await_credit(w, stack))
			break;
		for (uint32_t i = 0; i < n; i++) {
			pace(w, stack, i);
			if (send_image(w, stack, i, i + 1 == n))
				return -1;
		}
		w->images += n;
	}
	return 0;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	if (!send_all(w))
		w->receiver->sender->sending->drain(w);
	w->done = true;
	return NULL;
}

/* --- the contract with a receiver --- */

static struct worker *worker_of(const struct receiver *r, uint32_t region)
{
	return &r->sender->worker[(r - r->sender->receiver) * r->sender->config->regions + region];
}

/* Whether lines of the regions follow each other in the dataset. */
static bool adjacent(const struct sender *s)
{
	for (unsigned int i = 0; i < s->config->regions; i++) {
		if (s->config->region[i].width != s->dataset->geometry.width)
			return false;
	}
	return true;
}

static int say_hello(struct receiver *r, char *why)
{
	const struct sender *s = r->sender;
	const struct config *c = s->config;
	const uint32_t n = c->regions;
	struct contract_process process[RFPGA_DTPS_MAX] = {};
	struct hello hello = {
		.transport = s->config->net.transport,
		.service = c->net.options.service,
		.immediate = c->net.immediate,
		.mtu = s->sending->mtu(s),
		.message = s->message,
		.adjacent = adjacent(s),
		.paced = c->policy == RASHPA_STREAM_WAIT,
		.pixel = s->dataset->geometry.pixel,
		.bunch = c->bunch,
		.images = images_of(r),
		.sampling = r->sampling, .phase = r->phase,
		.unit = c->net.share == SHARE_STACKS ? RASHPA_STREAM_STACKS : RASHPA_STREAM_IMAGES,
		.dark_every = s->dataset->dark_every,
		.dataset_images = s->dataset->held,
		.dataset_sum = s->dataset->sum[s->dataset->held - 1],
		.processes = n,
		.process = process,
	};

	/* the receiver refuses half of a character, and controls */
	show_text(hello.dataset, sizeof(hello.dataset), s->dataset->source);
	for (uint32_t i = 0; i < n; i++) {
		const struct region *region = &c->region[i];

		process[i] = (struct contract_process) {
			.x = region->to_x, .y = region->to_y,
			.width = region->width, .height = region->height,
			.origin_x = region->x, .origin_y = region->y,
			.first = worker_of(r, i)->first,
		};
		if (s->sending->address)
			s->sending->address(worker_of(r, i), &process[i]);
	}
	return link_send(&r->link, hello_write(&hello), why);
}

/* The contract that the receiver accepts must match ours. */
static int take_accept(struct receiver *r, char *why)
{
	const struct sender *s = r->sender;
	const struct config *c = s->config;
	struct json_object *message;
	const struct hello want = { .transport = s->config->net.transport, .processes = c->regions };
	int result = link_await(&r->link, CONTRACT_ACCEPT, false, HANDSHAKE_MS, s->stop, &message, why);

	if (result)
		return -1;
	result = accept_read(message, &want, &r->accept, why);
	json_object_put(message);
	if (!result && r->accept.mtu != s->sending->mtu(s))
		result = because(why, -1, "%s: its packets have %" PRIu32 " bytes, ours %" PRIu32
				 ": give both the same mtu", r->link.peer, r->accept.mtu,
				 s->sending->mtu(s));
	for (uint32_t i = 0; i < c->regions && !result; i++) {
		struct worker *w = worker_of(r, i);
		const struct region *region = &c->region[i];

		w->cut = cut_region(region->width, region->height,
				    pixel_bytes(s->dataset->geometry.pixel),
				    adjacent(s) && region->width == r->accept.width,
				    s->message);
		result = s->sending->connect(w, why);
	}
	return result;
}

static void set_credit(struct receiver *r, uint64_t credit)
{
	pthread_mutex_lock(&r->lock);
	if (credit > r->credit)
		r->credit = credit;
	pthread_cond_broadcast(&r->more);
	pthread_mutex_unlock(&r->lock);
}

static int take_credit(struct receiver *r, struct json_object *message, char *why)
{
	uint64_t credit;

	if (credit_read(message, &credit, why))
		return -1;
	set_credit(r, credit);
	return 0;
}

/* Send without a contract: the receiver knows the format, and if it can wait so does send(). */
static int send_unasked(struct sender *s, char *why)
{
	int result = 0;

	for (uint32_t i = 0; i < s->workers && !result; i++) {
		struct worker *w = &s->worker[i];

		w->receiver->gone = true;
		w->receiver->credit = UINT64_MAX;
		w->receiver->accept.slots = 1;
		w->cut = cut_region(w->region->width, w->region->height,
				    pixel_bytes(s->dataset->geometry.pixel), true, s->message);
		result = s->sending->connect(w, why);
	}
	return result;
}

static int agree(struct sender *s, char *why)
{
	struct json_object *message;
	int result = 0;

	if (!(s->config->net.transport->has & TRANSPORT_CONTRACT))
		return send_unasked(s, why);
	for (uint32_t i = 0; i < s->receivers && !result; i++) {
		struct receiver *r = &s->receiver[i];

		result = link_connect(&r->link, r->to, s->config->net.tls, why);
		if (!result)
			result = say_hello(r, why);
	}
	for (uint32_t i = 0; i < s->receivers && !result; i++)
		result = take_accept(&s->receiver[i], why);
	for (uint32_t i = 0; i < s->receivers && !result; i++)
		result = link_send(&s->receiver[i].link, link_message(CONTRACT_READY), why);
	for (uint32_t i = 0; i < s->receivers && !result; i++) {
		result = link_await(&s->receiver[i].link, CONTRACT_GO, false, HANDSHAKE_MS, s->stop,
				    &message, why);
		if (result)
			break;
		result = take_credit(&s->receiver[i], message, why);
		json_object_put(message);
	}
	return result;
}

/* --- the run --- */

static int open_all(struct sender *s, char *why)
{
	const struct config *c = s->config;
	struct dataset *d = s->dataset;

	for (uint32_t i = 0; i < c->net.receivers; i++) {
		struct receiver *r = &s->receiver[i];

		*r = (struct receiver) {
			.sender = s, .to = c->net.to[i], .link = LINK_NONE,
			.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER,
			.sampling = c->sampling, .phase = c->phase,
			.missing = UINT64_MAX, .incomplete = UINT64_MAX,
		};
		if (c->net.share == SHARE_IMAGES) {
			r->sampling *= c->net.receivers;
			r->phase += i * c->sampling;
		} else if (c->net.share == SHARE_STACKS) {
			r->sampling = c->net.receivers;
			r->phase = i;
		}
	}
	s->receivers = c->net.receivers;
	s->workers = s->receivers * c->regions;
	if (dataset_hold(d, d->images, why))
		return -1;
	if (s->sending->open(s, why))
		return -1;
	for (uint32_t i = 0; i < s->workers; i++) {
		struct worker *w = &s->worker[i];

		w->receiver = &s->receiver[i / c->regions];
		w->index = i % c->regions;
		w->region = &c->region[w->index];
		if (getrandom(&w->first, sizeof(w->first), GRND_NONBLOCK) != sizeof(w->first))
			w->first = 0;
		if (c->net.first_given)
			w->first = c->net.first;
		if (s->sending->open_worker(w, why))
			return -1;
	}
	return 0;
}

/* A receiver that ended the stream stops only its own flow. */
static void give_up(struct receiver *r)
{
	pthread_mutex_lock(&r->lock);
	r->over = true;
	pthread_cond_broadcast(&r->more);
	pthread_mutex_unlock(&r->lock);
}

static int take_bye(struct receiver *r, struct json_object *message, char *why)
{
	char what[WHY_SIZE];

	if (!r->told_end)
		return because(why, -1, "%s: it ended the stream early", r->link.peer);
	if (bye_read(message, &r->missing, &r->incomplete, what))
		return because(why, -1, "%s: %s", r->link.peer, what);
	r->parted = true;
	return 0;
}

static int listen_to(struct receiver *r)
{
	struct json_object *message;
	char why[WHY_SIZE], text[256];
	const char *kind;
	int result = 0;

	for (unsigned int i = 0; i < LINK_AT_ONCE && !r->parted; i++) {
		result = link_take(&r->link, &message, why);
		if (result <= 0)
			break;
		kind = link_kind(message);
		if (!strcmp(kind, CONTRACT_STOP))
			give_up(r);
		else if (link_error_read(message, text, sizeof(text)))
			result = because(why, -1, "%s: %s", r->link.peer, text);
		else if (!strcmp(kind, CONTRACT_CREDIT))
			result = take_credit(r, message, why);
		else if (!strcmp(kind, CONTRACT_BYE))
			result = take_bye(r, message, why);
		json_object_put(message);
		if (result < 0)
			break;
	}
	if (result >= 0)
		return 0;
	say("%s", why);
	r->gone = true;
	give_up(r);
	return -1;
}

/* Images whose messages are all sent; the card may have failed before. */
static uint64_t images_sent(const struct receiver *r)
{
	uint64_t images = UINT64_MAX;

	for (uint32_t i = 0; i < r->sender->config->regions; i++) {
		const struct worker *w = worker_of(r, i);
		const uint64_t whole = w->cut.messages ? w->messages / w->cut.messages : 0;

		images = w->images < images ? w->images : images;
		images = whole < images ? whole : images;
	}
	return images;
}

static int tell_progress(struct receiver *r, const char *kind)
{
	struct json_object *sent = json_object_new_array();
	/* read this before the messages, whose number grows meanwhile */
	const uint64_t images = images_sent(r);
	char why[WHY_SIZE];

	for (uint32_t i = 0; i < r->sender->config->regions; i++)
		json_object_array_add(sent, json_object_new_uint64(worker_of(r, i)->messages));
	if (!link_send(&r->link, sent_write(kind, images, sent), why))
		return 0;
	say("%s", why);
	r->gone = true;
	give_up(r);
	return -1;
}

static bool all_sent(const struct receiver *r)
{
	for (uint32_t i = 0; i < r->sender->config->regions; i++) {
		if (!worker_of(r, i)->done)
			return false;
	}
	return true;
}

/* Drain all messages, then send the counts. */
static int tell_end(struct receiver *r)
{
	r->told_end = true;
	return tell_progress(r, CONTRACT_END);
}

static uint64_t sum_messages(const struct sender *s, bool *all_done)
{
	uint64_t sum = 0;

	*all_done = true;
	for (uint32_t i = 0; i < s->workers; i++) {
		sum += s->worker[i].messages;
		*all_done &= s->worker[i].done;
	}
	return sum;
}

/* Notify a receiver as soon as it has all; slower receivers do not delay it. */
static void look_at_receivers(struct sender *s, bool tell, int *result)
{
	for (uint32_t i = 0; i < s->receivers; i++) {
		struct receiver *r = &s->receiver[i];
		int error;

		if (r->gone || r->parted)
			continue;
		error = listen_to(r);
		if (!error && !r->told_end && all_sent(r))
			error = tell_end(r);
		else if (!error && !r->told_end && tell)
			error = tell_progress(r, CONTRACT_PROGRESS);
		if (error)
			*result = EXIT_FAILED;
	}
}

static void wait_for_receivers(const struct sender *s)
{
	struct pollfd fds[RECEIVERS_MOST + 1];

	for (uint32_t i = 0; i < s->receivers; i++) {
		const struct receiver *r = &s->receiver[i];

		fds[i] = link_poll(&r->link);
		if (r->gone || r->parted)
			fds[i].fd = -1;
	}
	fds[s->receivers] = (struct pollfd) { .fd = led_fd(), .events = POLLIN };
	poll(fds, s->receivers + 1, s->wish ? HOLD_MS : TICK_MS);
}

/* --- commands of the leader --- */

static void wake_workers(struct sender *s)
{
	for (uint32_t i = 0; i < s->receivers; i++) {
		pthread_mutex_lock(&s->receiver[i].lock);
		pthread_cond_broadcast(&s->receiver[i].more);
		pthread_mutex_unlock(&s->receiver[i].lock);
	}
}

static void take_command(struct sender *s)
{
	const struct led_command command = led_take();

	if (command.kind < LED_PAUSE)
		return;
	if (command.kind == LED_RATE && !s->period) {
		led_refuse("this stream has no rate: its receivers set the pace");
		return;
	}
	s->wish = command.kind;
	s->new_period = command.kind == LED_RATE ? 1e9 / RFPGA_TICK_NS / command.rate + 0.5 : 0;
	s->hold = true;
	wake_workers(s);
}

static bool all_hold(const struct sender *s)
{
	for (uint32_t i = 0; i < s->workers; i++) {
		if (!s->worker[i].holding && !s->worker[i].done)
			return false;
	}
	return true;
}

/* Restart the schedule: the next image is due now. */
static void begin_anew(struct sender *s)
{
	uint64_t next = 0, frame;

	for (uint32_t i = 0; i < s->workers; i++) {
		const struct worker *w = &s->worker[i];

		frame = detector_frame(w, w->images / s->config->bunch, 0);
		next = frame > next ? frame : next;
	}
	s->base_ns = now_ns();
	s->base_frame = next;
	s->ramp_ns = 0;
	s->period = s->new_period ? s->new_period : s->period;
}

static void fulfil(struct sender *s)
{
	static const char * const said[] = {
		[LED_PAUSE] = "paused", [LED_RESUME] = "resumed", [LED_RATE] = "rated",
	};

	if (!s->wish || !all_hold(s))
		return;
	if (s->wish != LED_RATE)
		s->paused = s->wish == LED_PAUSE;
	begin_anew(s);
	if (!s->paused) {
		s->hold = false;
		wake_workers(s);
	}
	led_say(said[s->wish], NULL);
	s->wish = LED_NONE;
}

static struct json_object *counts_json(const struct sender *s)
{
	struct json_object *o = json_object_new_object(), *links = json_object_new_array(), *all;
	uint64_t sum = 0, waited = 0;

	for (uint32_t i = 0; i < s->receivers; i++) {
		struct json_object *link = json_object_new_object();
		struct json_object *counts = json_object_new_object();
		const struct receiver *r = &s->receiver[i];
		const uint64_t images = images_sent(r);

		for (uint32_t k = 0; k < s->config->regions; k++) {
			const struct worker *w = worker_of(r, k);

			waited = w->waited_ns > waited ? w->waited_ns : waited;
		}
		sum += images;
		put_text(link, "to", r->to);
		put_u64(counts, "images", images);
		if (r->missing != UINT64_MAX)
			put_u64(counts, "missing", r->missing);
		json_object_object_add(link, "counts", counts);
		json_object_array_add(links, link);
	}
	all = json_object_new_object();
	put_u64(all, "images", sum);
	put_u64(all, "waited", waited);
	json_object_object_add(o, "counts", all);
	json_object_object_add(o, "links", links);
	return o;
}

static int watch(struct sender *s)
{
	const uint64_t timeout = s->config->opt.timeout * 1e9;
	uint64_t moved = now_ns(), told = moved, last = 0, now, sum;
	struct progress progress;
	int result = 0;
	bool done;

	progress_init(&progress, s->config->opt.progress);
	while (!*s->stop) {
		sum = sum_messages(s, &done);
		if (done)
			break;
		now = now_ns();
		moved = sum == last && !s->paused ? moved : now;
		last = sum;
		look_at_receivers(s, now - told >= TICK_MS * 1000000ull, &result);
		told = now - told >= TICK_MS * 1000000ull ? now : told;
		take_command(s);
		fulfil(s);
		if (led_due())
			led_say("status", counts_json(s));
		progress_show(&progress, "%" PRIu64 " messages sent", sum);
		if (timeout && now - moved >= timeout) {
			say("no progress for %g s after %" PRIu64 " messages: does the receiver take stacks?",
			    s->config->opt.timeout, sum);
			result = EXIT_TIMEOUT;
			break;
		}
		wait_for_receivers(s);
	}
	progress_end(&progress);
	return result;
}

/* Collect the final account of each receiver. */
static int part(struct sender *s)
{
	struct json_object *message;
	char why[WHY_SIZE];
	int result = 0;

	for (uint32_t i = 0; i < s->receivers; i++) {
		if (!s->receiver[i].gone && !s->receiver[i].told_end && tell_end(&s->receiver[i]))
			result = EXIT_FAILED;
	}
	for (uint32_t i = 0; i < s->receivers; i++) {
		struct receiver *r = &s->receiver[i];

		if (r->gone || r->parted)
			continue;
		if (link_await(&r->link, CONTRACT_BYE, true, BYE_MS, NULL, &message, why)) {
			result = fail("%s", why);
			continue;
		}
		if (take_bye(r, message, why))
			result = fail("%s", why);
		json_object_put(message);
	}
	return result;
}

static void halt(struct sender *s)
{
	s->halt = true;
	for (uint32_t i = 0; i < s->receivers; i++)
		set_credit(&s->receiver[i], 0);
}

static int run(struct sender *s)
{
	int result = 0;

	s->start_ns = now_ns();
	s->base_ns = s->start_ns;
	s->ramp_ns = s->config->net.ramp * 1e9;
	s->period = s->config->period;
	for (uint32_t i = 0; i < s->workers; i++) {
		struct worker *w = &s->worker[i];

		w->running = !cpus_thread(&w->thread, work, w, s->config->net.cpus, i);
		if (!w->running)
			result = EXIT_FAILED;
	}
	if (!result)
		result = watch(s);
	halt(s);
	for (uint32_t i = 0; i < s->workers; i++) {
		if (s->worker[i].running)
			pthread_join(s->worker[i].thread, NULL);
		if (*s->worker[i].why)
			result = fail("%s", s->worker[i].why);
	}
	s->end_ns = now_ns();
	if (part(s) && !result)
		result = EXIT_FAILED;
	if (led())
		led_say("status", counts_json(s));
	return result;
}

/* Images flow on a command of the leader. */
static int arm(struct sender *s)
{
	led_say("armed", NULL);
	if (!led_await(LED_START, s->stop)) {
		part(s);
		return 0;
	}
	return run(s);
}

/* --- report --- */

static struct json_object *receiver_json(const struct receiver *r)
{
	struct json_object *o = json_object_new_object();
	uint64_t messages = 0, waited = 0;

	for (uint32_t i = 0; i < r->sender->config->regions; i++) {
		const struct worker *w = worker_of(r, i);

		messages += w->messages;
		waited = w->waited_ns > waited ? w->waited_ns : waited;
	}
	put_text(o, "receiver", r->to);
	put_u64(o, "images", images_sent(r));
	put_u64(o, "messages", messages);
	if (r->missing == UINT64_MAX) {
		put_text(o, "missing_messages", NULL);
		put_text(o, "incomplete_stacks", NULL);
	} else {
		put_u64(o, "missing_messages", r->missing);
		put_u64(o, "incomplete_stacks", r->incomplete);
	}
	put_real(o, "credit_wait_seconds", waited / 1e9);
	return o;
}

static uint64_t sum_bytes(const struct sender *s)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < s->workers; i++) {
		const struct region *r = s->worker[i].region;

		bytes += s->worker[i].images * r->width * r->height *
			 pixel_bytes(s->dataset->geometry.pixel);
	}
	return bytes;
}

static int report(const struct sender *s)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	const double seconds = (s->end_ns - s->start_ns) / 1e9;
	const uint64_t bytes = sum_bytes(s);

	put_text(o, "transport", s->config->net.transport->name);
	if (s->sending->report)
		s->sending->report(s, o);
	put_int(o, "mtu_bytes", s->sending->mtu(s));
	put_int(o, "message_bytes", s->message);
	put_text(o, "dataset", s->dataset->source);
	put_int(o, "processes", s->config->regions);
	put_int(o, "bunch", s->config->bunch);
	put_bool(o, "paced", s->config->policy == RASHPA_STREAM_WAIT);
	put_bool(o, "interrupted", *s->stop);
	for (uint32_t i = 0; i < s->receivers; i++)
		json_object_array_add(list, receiver_json(&s->receiver[i]));
	json_object_object_add(o, "receivers", list);
	put_u64(o, "bytes", bytes);
	put_real(o, "seconds", seconds);
	put_real(o, "bytes_per_second", bytes / seconds);
	if (s->config->opt.json)
		return json_finish(o);
	for (uint32_t i = 0; i < s->receivers; i++) {
		char *one = json_shown(json_object_array_get_idx(list, i), JSON_C_TO_STRING_SPACED);

		if (one)
			puts(one);
		free(one);
	}
	printf("bytes       %" PRIu64 "\ntime        %.6f s, %.6f GB/s\n", bytes, seconds,
	       bytes / seconds / 1e9);
	json_object_put(o);
	return 0;
}

static void close_all(struct sender *s)
{
	for (uint32_t i = 0; i < s->workers; i++) {
		if (s->worker[i].receiver)
			s->sending->close_worker(&s->worker[i]);
	}
	for (uint32_t i = 0; i < s->receivers; i++) {
		accept_free(&s->receiver[i].accept);
		link_close(&s->receiver[i].link);
	}
	if (s->sending->close)
		s->sending->close(s);
	free(s->receiver);
	free(s->worker);
}

/* Payload of the longest UDP packet in bytes. */
static uint32_t longest(const struct sender *s, const struct packets *p)
{
	uint32_t most = 0;

	for (unsigned int i = 0; i < s->config->regions; i++) {
		const struct region *r = &s->config->region[i];
		const struct cut cut = cut_region(r->width, r->height,
						  pixel_bytes(s->dataset->geometry.pixel),
						  adjacent(s), p->message);
		const uint32_t bytes = cut_piece(&cut, 0).bytes;

		most = bytes > most ? bytes : most;
	}
	most = most < p->part ? most : p->part;
	/* RDMA fills words */
	return p->header + (most + 3) / 4 * 4;
}

struct json_object *sender_paths(const struct config *config, struct dataset *dataset)
{
	const struct network_config *c = &config->net;
	const struct sender s = {
		.config = config, .sending = c->sending, .dataset = dataset,
	};
	struct json_object *list = json_object_new_array();
	struct route_probe probe[RECEIVERS_MOST];
	struct packets packets;

	if (!s.sending->packets(&s, &packets))
		return list;
	for (uint32_t i = 0; i < c->receivers; i++)
		probe[i] = (struct route_probe) {
			.to = c->to[i], .interface = packets.interface,
			.payload = longest(&s, &packets),
		};
	route_probe(probe, c->receivers);
	for (uint32_t i = 0; i < c->receivers; i++) {
		struct json_object *o;

		if (!probe[i].carries)
			continue;
		o = json_object_new_object();
		put_text(o, "to", probe[i].to);
		put_int(o, "needs", probe[i].needs);
		put_int(o, "carries", probe[i].carries);
		json_object_array_add(list, o);
	}
	return list;
}

int sender_run(const struct config *config, struct dataset *dataset, volatile bool *stop)
{
	struct sender s = {
		.config = config, .sending = config->net.sending,
		.dataset = dataset, .stop = stop,
		.receiver = calloc(config->net.receivers, sizeof(*s.receiver)),
		.worker = calloc((size_t)config->net.receivers * config->regions,
				 sizeof(*s.worker)),
	};
	char why[WHY_SIZE];
	int result;

	if (!s.receiver || !s.worker)
		result = fail("no memory");
	else if (open_all(&s, why) || agree(&s, why))
		result = *stop ? 0 : fail("%s", why);
	else
		result = arm(&s);
	if (s.end_ns && report(&s) && !result)
		result = EXIT_FAILED;
	close_all(&s);
	return result;
}
