// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The receiver's side of the contract, and of the control links: senders, credit, the end. intake.c
 * counts missing messages.
 */
#include "romulu/receiver-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/json-out.h"
#include "daemon/led.h"
#include <rashpa.h>

#define READY_NS	30000000000ull	/* for a sender that was accepted */
#define READY_SOON_NS	10000000000ull	/* the same while another sender waits */
#define HELLO_NS	30000000000ull
#define STRANGERS	16		/* links that have not said hello */
#define END_NS		10000000000ull	/* for a sender to end */
#define IMAGES		(UINT64_C(1) << 48)
#define MESSAGES	(UINT64_C(1) << 56)	/* most messages of a process */
#define COME_AGAIN	(-1)		/* internal: retry with other senders */

static bool has_contract(const struct network *n)
{
	return n->config->transport->has & TRANSPORT_CONTRACT;
}

/* --- links --- */

static void tell_all(struct network *n, struct json_object *message)
{
	char why[WHY_SIZE];

	for (uint32_t i = 0; i < n->senders; i++) {
		struct sender *s = &n->sender[i];

		/* the next read reports a lost link */
		if (!s->gone && !s->said_bye && s->link.wire)
			link_send(&s->link, json_object_get(message), why);
	}
	json_object_put(message);
}

/* Grant new credit to the senders after slots were released or stacks completed. */
static void offer(struct network *n)
{
	uint64_t stacks;

	pthread_mutex_lock(&n->offering);
	stacks = intake_allowed(&n->in);
	if (stacks > n->offered) {
		n->offered = stacks;
		tell_all(n, credit_write(CONTRACT_CREDIT, stacks));
	}
	pthread_mutex_unlock(&n->offering);
}

/* Slots that the consumer gives back become credit. */
static void *give_credit(void *arg)
{
	struct network *n = arg;
	int result = 1;

	while (!n->halt && result) {
		result = intake_credit(&n->in, TICK_MS * INT64_C(1000000));
		if (result > 0)
			offer(n);
	}
	return NULL;
}

/* Take a sender's count of messages; it cannot decrease or exceed the stream. */
static int take_sent(struct network *n, struct sender *s, struct json_object *message, char *why)
{
	const uint64_t images = s->hello.images ? s->hello.images : IMAGES;
	struct json_object *list;

	if (sent_read(message, s->hello.processes, s->images, images, &s->images, &list, why))
		return -1;
	for (uint32_t i = 0; i < s->hello.processes; i++) {
		struct flow *f = &n->in.flow[s->first_flow + i];
		const bool each = s->hello.immediate == CONTRACT_EACH;
		const bool few = each && images < MESSAGES / f->per_image;
		uint64_t sent;

		if (sent_element(list, i, each ? f->sent : 0,
				 few ? images * f->per_image : MESSAGES, &sent, why))
			return -1;
		/* from now on it can be silent for too long */
		if (f->sent <= f->expected)
			f->moved_ns = now_ns();
		f->sent = each ? sent : (s->images + n->about->bunch - 1) / n->about->bunch;
	}
	return 0;
}

/* Tell a sender why it goes no further. */
static void turn_away(struct sender *s, const char *why)
{
	char ignored[WHY_SIZE];

	link_send(&s->link, link_error(why), ignored);
}

/* Messages after the sender's end are ignored. < 0: the link or the protocol failed. */
static int take_messages(struct network *n, struct sender *s, char *why)
{
	struct json_object *message;
	char what[WHY_SIZE];
	const char *kind;
	int result = 0;

	for (unsigned int i = 0; i < LINK_AT_ONCE && !s->ended; i++) {
		result = link_take(&s->link, &message, why);
		if (result <= 0)
			break;
		kind = link_kind(message);
		if (!strcmp(kind, CONTRACT_PROGRESS) || !strcmp(kind, CONTRACT_END))
			result = take_sent(n, s, message, what);
		s->ended = result >= 0 && !strcmp(kind, CONTRACT_END);
		json_object_put(message);
		if (result < 0) {
			turn_away(s, what);
			return because(why, -1, "%s: %s", s->link.peer, what);
		}
	}
	return result;
}

/* A sender that breaks the protocol or has gone sends no more messages. */
static void listen_to(struct network *n, struct sender *s)
{
	char why[WHY_SIZE];
	const int result = take_messages(n, s, why);

	s->gone = result < 0;
	for (uint32_t i = 0; i < s->hello.processes; i++) {
		n->in.flow[s->first_flow + i].ended = s->ended;
		n->in.flow[s->first_flow + i].gone = s->gone;
	}
	if (s->gone && !s->ended && !*n->why)
		because(n->why, -1, "%s", why);
}

/*
 * After a lost packet some responders wait for ever for the rest of its message, and later messages
 * do not arrive. Restart such pairs.
 */
static void wake_stalled(struct network *n, uint64_t now)
{
	for (uint32_t i = 0; n->receiving->again && i < n->in.flows; i++) {
		struct flow *f = &n->in.flow[i];

		/* once for what was sent: it may wait for credit */
		if (!f->stalls || f->gone || f->ended || f->sent <= f->expected ||
		    f->sent == f->again_sent ||
		    !flow_silent(f, now, n->config->stall_ms * UINT64_C(1000000)))
			continue;
		n->receiving->again(f);
		f->again++;
		f->again_sent = f->sent;
	}
}

static bool flows_settled(const struct network *n, const struct sender *s, uint64_t now)
{
	for (uint32_t i = 0; i < s->hello.processes; i++) {
		if (!flow_settled(&n->in.flow[s->first_flow + i], now))
			return false;
	}
	return true;
}

static void say_bye(struct network *n, struct sender *s)
{
	uint64_t missing = 0;
	char why[WHY_SIZE];

	for (uint32_t i = 0; i < s->hello.processes; i++) {
		flow_count_tail(&n->in.flow[s->first_flow + i]);
		missing += n->in.flow[s->first_flow + i].missing;
	}
	link_send(&s->link, bye_write(missing, n->in.incomplete), why);
	s->said_bye = true;
}

static bool look_at_senders(struct network *n, uint64_t now)
{
	bool over = true;

	for (uint32_t i = 0; i < n->senders; i++) {
		struct sender *s = &n->sender[i];

		if (!s->gone && !s->said_bye)
			listen_to(n, s);
		/* its stacks are closed before others hear of the end */
		if (s->ended && !s->said_bye && flows_settled(n, s, now)) {
			intake_close_quiet(&n->in, now);
			say_bye(n, s);
		}
		over &= s->said_bye || (s->gone && flows_settled(n, s, now));
	}
	return over;
}

static void wait_for_senders(struct network *n)
{
	struct pollfd fds[64 + 1];
	const uint32_t most = n->senders < 64 ? n->senders : 64;
	eventfd_t published;

	for (uint32_t i = 0; i < most; i++) {
		const struct sender *s = &n->sender[i];

		fds[i] = link_poll(&s->link);
		if (s->gone || s->ended)
			fds[i].fd = -1;
	}
	fds[most] = (struct pollfd) { .fd = n->in.progress, .events = POLLIN };
	poll(fds, most + 1, TICK_MS);
	if (n->in.progress >= 0 && !eventfd_read(n->in.progress, &published))
		offer(n);
}

/*
 * Senders that tell nothing: what one of them has sent the others have, too, and it is over when
 * all images have come, or nothing comes any more.
 */
static bool look_at_flows(struct network *n, uint64_t now)
{
	const uint64_t idle = n->config->idle * 1e9;
	struct sender *s = n->sender;
	uint64_t most = 0;
	bool over = true;

	for (uint32_t i = 0; i < n->in.flows; i++) {
		if (n->in.flow[i].expected > most)
			most = n->in.flow[i].expected;
		over &= flow_silent(&n->in.flow[i], now, idle);
	}
	s->images = most ? (most - 1) / n->in.flow->per_image + 1 : 0;
	for (uint32_t i = 0; i < n->in.flows; i++)
		n->in.flow[i].sent = s->images * n->in.flow[i].per_image;
	over = (over && most) || (n->about->images && s->images >= n->about->images &&
				  flows_settled(n, s, now));
	for (uint32_t i = 0; over && i < n->in.flows; i++)
		flow_count_tail(&n->in.flow[i]);
	return over;
}

static void end_stream(struct network *n)
{
	struct rashpa_stream_header count = { .sent = UINT64_MAX };

	for (uint32_t i = 0; i < n->senders; i++)
		count.sent = n->sender[i].images < count.sent ? n->sender[i].images : count.sent;
	rashpa_stream_end(n->stream, &count);
}

static void *watch_links(void *arg)
{
	struct network *n = arg;
	const char *failed = NULL;
	bool over = false;
	uint64_t now;

	while (!n->halt && !over && !failed) {
		wait_for_senders(n);
		now = now_ns();
		over = has_contract(n) ? look_at_senders(n, now) : look_at_flows(n, now);
		wake_stalled(n, now);
		intake_close_quiet(&n->in, now);
		failed = n->receiving->failed ? n->receiving->failed(n) : NULL;
	}
	if (failed) {
		if (!*n->why)
			because(n->why, -1, "%s", failed);
		tell_all(n, link_message(CONTRACT_STOP));
	}
	intake_give_up(&n->in);
	end_stream(n);
	n->over = true;
	return NULL;
}

/* --- the contract --- */

static void refuse(struct sender *s, const char *why)
{
	turn_away(s, why);
	say("%s: %s", s->link.peer, why);
}

/* All senders fill one stream: where they differ, or NULL. */
static const char *difference(const struct hello *a, const struct hello *b)
{
	const struct {
		bool same;
		const char *what;
	} members[] = {
		{ a->pixel == b->pixel, "another type of pixels" },
		{ a->bunch == b->bunch, "another bunch" },
		{ a->images == b->images, "another number of --images" },
		{ a->sampling == b->sampling && a->phase == b->phase && a->unit == b->unit,
		  "another share of the images" },
		{ a->paced == b->paced, "another policy" },
		{ a->service == b->service, "another service" },
		{ a->immediate == b->immediate, "another immediate" },
		{ a->mtu == b->mtu, "another mtu" },
	};

	for (unsigned int i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (!members[i].same)
			return members[i].what;
	}
	return NULL;
}

static bool overlap(const struct contract_process *a, const struct contract_process *b)
{
	return a->x < b->x + b->width && b->x < a->x + a->width &&
	       a->y < b->y + b->height && b->y < a->y + a->height;
}

/* Does a region overlap another one? Each pixel must belong to exactly one process. */
static bool writes_twice(const struct network *n, const struct sender *s)
{
	for (uint32_t i = 0; i < s->hello.processes; i++) {
		for (const struct sender *o = n->sender; o <= s; o++) {
			const uint32_t most = o == s ? i : o->hello.processes;

			for (uint32_t k = 0; k < most; k++) {
				if (overlap(&s->hello.process[i], &o->hello.process[k]))
					return true;
			}
		}
	}
	return false;
}

/* A hello that fits makes its link a sender. -1: it is refused. */
static int take_hello(struct network *n, struct link *link, struct json_object *message)
{
	struct sender *s = &n->sender[n->senders];
	char why[WHY_SIZE];
	const char *what = NULL;
	int result;

	*s = (struct sender) { .link = LINK_NONE };
	link_move(&s->link, link);
	result = strcmp(link_kind(message), CONTRACT_HELLO) ?
		 because(why, -1, "it says \"%.40s\" instead of \"hello\"", link_kind(message)) :
		 hello_read(message, &s->hello, why);
	if (!result && s->hello.transport != n->config->transport)
		result = because(why, -1, "it uses another transport than %s",
				 n->config->transport->name);
	if (!result && s != n->sender)
		what = difference(&n->sender->hello, &s->hello);
	if (what)
		result = because(why, -1, "it has %s than the sender before: start all with the same options", what);
	if (!result && writes_twice(n, s))
		result = because(why, -1, "its regions overlap each other, or those of another sender");
	if (result) {
		refuse(s, why);
		link_close(&s->link);
		hello_free(&s->hello);
		return -1;
	}
	s->first_flow = n->in.flows;
	n->in.flows += s->hello.processes;
	n->senders++;
	return 0;
}

/* A sender that has gone before there is a stream keeps no other one out, such as its next try. */
static void drop_gone(struct network *n)
{
	char why[WHY_SIZE];
	uint32_t kept = 0;

	n->in.flows = 0;
	for (uint32_t i = 0; i < n->senders; i++) {
		struct sender *s = &n->sender[i], *to = &n->sender[kept];

		if (link_gone(&s->link, why)) {
			say("%s", why);
			link_close(&s->link);
			hello_free(&s->hello);
			continue;
		}
		if (to != s) {
			link_move(&to->link, &s->link);
			to->hello = s->hello;
		}
		to->first_flow = n->in.flows;
		n->in.flows += to->hello.processes;
		kept++;
	}
	n->senders = kept;
}

/* Links without a hello so far; strangers among them do not block senders. */
struct waiting {
	struct link link[STRANGERS];
	uint64_t since[STRANGERS];
};

/* Where there is no room the one that has waited longest goes. */
static void let_in(struct network *n, struct waiting *w)
{
	unsigned int oldest = 0;
	char why[WHY_SIZE];

	for (unsigned int i = 0; i < STRANGERS; i++) {
		if (!w->link[i].wire) {
			oldest = i;
			break;
		}
		if (w->since[i] < w->since[oldest])
			oldest = i;
	}
	link_close(&w->link[oldest]);
	w->since[oldest] = now_ns();
	link_accept(&n->listener, &w->link[oldest], why);	/* or it has gone again */
}

static void listen_to_waiting(struct network *n, struct waiting *w)
{
	struct json_object *message;
	char why[WHY_SIZE];

	for (unsigned int i = 0; i < STRANGERS && n->senders < n->config->senders; i++) {
		struct link *l = &w->link[i];
		const int result = !l->wire ? 0 : link_take(l, &message, why);

		if (result > 0) {
			take_hello(n, l, message);
			json_object_put(message);
		} else if (result < 0) {
			say("%s", why);
			link_close(l);
		} else if (l->wire && now_ns() - w->since[i] > HELLO_NS) {
			say("%s: it sent no hello", l->peer);
			link_close(l);
		}
	}
}

static void poll_waiting(const struct network *n, const struct waiting *w, bool *comes)
{
	struct pollfd fds[STRANGERS + 1];

	for (unsigned int i = 0; i < STRANGERS; i++)
		fds[i] = link_poll(&w->link[i]);
	fds[STRANGERS] = (struct pollfd) { .fd = n->listener.fd, .events = POLLIN };
	*comes = poll(fds, STRANGERS + 1, TICK_MS) > 0 && fds[STRANGERS].revents;
}

static int await_senders(struct network *n, uint64_t end_ns)
{
	struct progress progress;
	struct waiting waiting;
	int result = 0;
	bool comes;

	for (unsigned int i = 0; i < STRANGERS; i++)
		waiting.link[i] = (struct link)LINK_NONE;
	progress_init(&progress, false);
	while (n->senders < n->config->senders && !*n->stop && !result) {
		if (now_ns() >= end_ns) {
			say("%s: %" PRIu32 " of %" PRIu32 " senders came within %g s: start them (remu --transport %s --to)",
			    n->config->listen, n->senders, n->config->senders, n->config->timeout,
			    n->config->transport->name);
			result = EXIT_TIMEOUT;
		}
		progress_show(&progress, "waiting for a sender at %s", n->config->listen);
		poll_waiting(n, &waiting, &comes);
		if (comes)
			let_in(n, &waiting);
		drop_gone(n);
		listen_to_waiting(n, &waiting);
	}
	progress_end(&progress);
	for (unsigned int i = 0; i < STRANGERS; i++)
		link_close(&waiting.link[i]);
	return result;
}

/* Plan the flows of a detector without a control link, from the options. */
static int plan_alone(struct network *n)
{
	struct sender *s = n->sender;
	int result;

	*s = (struct sender) { .link = LINK_NONE };
	snprintf(s->link.peer, sizeof(s->link.peer), "%s", n->config->transport->name);
	result = n->receiving->plan(n->config, &s->hello);
	n->senders = !result;
	n->in.flows = s->hello.processes;
	return result;
}

static void plan_process(struct network *n, struct sender *s, uint32_t i, uint32_t width)
{
	const struct contract_process *p = &s->hello.process[i];
	struct flow *f = &n->in.flow[s->first_flow + i];
	const struct cut cut = cut_of(&s->hello, p, width);
	const bool each = s->hello.immediate == CONTRACT_EACH;

	*f = (struct flow) {
		.peer = s->link.peer, .process = s->first_flow + i, .first = p->first,
		.per_image = each ? cut.messages : 0,
		.per_stack = each ? cut.messages * s->hello.bunch : 1,
		/* a message of one packet cannot stall */
		.stalls = s->hello.service == RASHPA_NET_UC && s->hello.message > s->hello.mtu,
	};
	n->process[s->first_flow + i] = (struct rashpa_stream_process) {
		.function = RASHPA_STREAM_SOFTWARE,
		.number = s->first_flow + i,
		.x = p->x, .y = p->y, .width = p->width, .height = p->height,
		.origin_x = p->origin_x, .origin_y = p->origin_y,
		.messages = f->per_stack,
		.message_lines = each ? cut.lines : 0,
		.line_messages = each && !cut.lines ? cut.parts : 0,
	};
}

static int create_stream(struct network *n)
{
	const struct hello *h = &n->sender->hello;
	struct rashpa_stream_plan plan = {
		.header = {
			.pixel = h->pixel, .bunch = h->bunch, .slots = n->config->slots,
			.policy = h->paced ? RASHPA_STREAM_WAIT : RASHPA_STREAM_OVERWRITE,
			.images = h->images, .sampling = h->sampling, .phase = h->phase,
			.unit = h->unit, .dark_every = h->dark_every,
			.dataset_images = h->dataset_images, .dataset_sum = h->dataset_sum,
		},
		.processes = n->in.flows,
		.flags = n->config->transport->has & TRANSPORT_METADATA ? RASHPA_PLAN_META : 0,
	};
	int error;

	n->process = calloc(n->in.flows, sizeof(*n->process));
	n->in.flow = calloc(n->in.flows, sizeof(*n->in.flow));
	if (!n->process || !n->in.flow)
		return fail("no memory for %" PRIu32 " processes", n->in.flows);
	for (uint32_t i = 0; i < n->senders; i++) {
		const struct hello *one = &n->sender[i].hello;

		for (uint32_t k = 0; k < one->processes; k++) {
			const struct contract_process *p = &one->process[k];

			if (plan.header.width < p->x + p->width)
				plan.header.width = p->x + p->width;
			if (plan.header.height < p->y + p->height)
				plan.header.height = p->y + p->height;
		}
	}
	for (uint32_t i = 0; i < n->senders; i++) {
		for (uint32_t k = 0; k < n->sender[i].hello.processes; k++)
			plan_process(n, &n->sender[i], k, plan.header.width);
	}
	memcpy(plan.header.dataset, h->dataset, sizeof(plan.header.dataset));
	if (n->config->payload)
		snprintf(plan.header.payload_name, sizeof(plan.header.payload_name), "%s",
			 n->config->payload);
	plan.process = n->process;
	error = rashpa_stream_create(n->buffer, &plan, &n->stream);
	if (error) {
		say("%s", rashpa_reason());
		/* the senders chose what does not fit */
		return error == -ENOSPC || error == -EINVAL || error == -EPROTO ? COME_AGAIN :
		       EXIT_FAILED;
	}
	n->about = rashpa_stream_get_header(n->stream);
	n->in.close_after = n->config->close_after;
	n->in.settle_ns = n->config->settle_ms * UINT64_C(1000000);
	n->in.direct = n->receiving->direct;
	return intake_open(&n->in, n->stream);
}

static int accept_sender(struct network *n, struct sender *s)
{
	const struct rashpa_stream_header *h = n->about;
	struct accept accept = {
		.slots = h->slots, .width = h->width, .line_stride = h->line_stride,
		.image_stride = h->image_stride, .slot_stride = h->slot_stride,
		.first_stack = h->first_stack,
		.ends = s->hello.processes,
		.end = calloc(s->hello.processes, sizeof(*accept.end)),
	};
	char why[WHY_SIZE];
	int result = 0;

	if (!accept.end)
		return fail("no memory");
	if (n->receiving->accept(n, s, &accept, why)) {
		refuse(s, why);
		link_close(&s->link);
		result = COME_AGAIN;
	} else if (link_send(&s->link, accept_write(&s->hello, &accept), why)) {
		say("%s", why);
		link_close(&s->link);
		result = COME_AGAIN;
	}
	free(accept.end);
	return result;
}

/* The senders that are still there get @why instead of a stream. */
static void turn_all_away(struct network *n, const char *why)
{
	for (uint32_t i = 0; i < n->senders; i++) {
		if (n->sender[i].link.wire)
			turn_away(&n->sender[i], why);
	}
}

static bool another_waits(const struct network *n)
{
	struct pollfd pollfd = { .fd = n->listener.fd, .events = POLLIN };

	return poll(&pollfd, 1, 0) > 0;
}

/* A sender that closes its link, or stays silent, keeps no other one out. */
static int await_ready(struct network *n, struct sender *s)
{
	const uint64_t begin = now_ns();
	struct json_object *message;
	char why[WHY_SIZE];
	int result;

	do {
		result = link_await(&s->link, CONTRACT_READY, false, TICK_MS, n->stop, &message, why);
	} while (result == -2 &&
		 now_ns() - begin < (another_waits(n) ? READY_SOON_NS : READY_NS));
	if (!result) {
		json_object_put(message);
		return 0;
	}
	if (result == -2)
		because(why, -1, "it was accepted and did not say \"ready\" in time");
	if (!*n->stop)
		refuse(s, why);
	link_close(&s->link);
	return COME_AGAIN;
}

static int agree(struct network *n)
{
	int result = 0;

	if (!has_contract(n))
		return 0;
	for (uint32_t i = 0; i < n->senders && !result; i++)
		result = accept_sender(n, &n->sender[i]);
	for (uint32_t i = 0; i < n->senders && !result; i++)
		result = await_ready(n, &n->sender[i]);
	return result;
}

/* --- */

static int start(struct network *n)
{
	int result;

	if (rashpa_stream_start(n->stream, 0, 0))
		return fail("%s", rashpa_reason());
	intake_begin(&n->in, n->receiving->messages ? n->receiving->messages(n) : 0);
	n->offered = n->in.opened;
	if (intake_paced(&n->in)) {
		n->offered = intake_allowed(&n->in);
		n->in.progress = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (n->in.progress < 0)
			return fail("no eventfd: %s", strerror(errno));
	}
	result = n->receiving->start(n);
	if (result)
		return result;
	if (pthread_create(&n->links, NULL, watch_links, n))
		return fail("no thread");
	n->have_links = true;
	tell_all(n, credit_write(CONTRACT_GO, n->offered));
	if (!intake_paced(&n->in))
		return 0;
	if (pthread_create(&n->credit, NULL, give_credit, n))
		return fail("no thread");
	n->have_credit = true;
	return 0;
}

/* All that was made for these senders. */
static void undo(struct network *n)
{
	for (uint32_t i = 0; i < n->senders; i++) {
		link_close(&n->sender[i].link);
		hello_free(&n->sender[i].hello);
	}
	n->senders = 0;
	if (n->path)
		n->receiving->close(n);
	n->path = NULL;
	rashpa_stream_close(n->stream);
	n->stream = NULL;
	intake_close(&n->in);
	free(n->process);
	n->process = NULL;
}

/* Agree with senders that come until @end_ns. */
static int begin_with_senders(struct network *n, uint64_t end_ns)
{
	int result = n->receiving->open(n);
	char why[WHY_SIZE];

	/* once: a sender that comes finds all of it */
	if (!result && has_contract(n) && n->listener.fd < 0 &&
	    wire_listen_open(n->config->listen, n->config->tls, &n->listener, why))
		return fail("%s", why);
	if (!result && !n->armed) {
		led_say("armed", NULL);
		n->armed = true;
	}
	if (!result)
		result = has_contract(n) ? await_senders(n, end_ns) : plan_alone(n);
	if (result || *n->stop)
		return result;
	result = create_stream(n);
	if (!result)
		result = n->receiving->prepare(n);
	return result ? result : agree(n);
}

static int begin(struct network *n)
{
	const double timeout = n->config->timeout;
	const uint64_t end_ns = timeout > 0 ? now_ns() + timeout * 1e9 : UINT64_MAX;
	int result;

	for (;;) {
		result = begin_with_senders(n, end_ns);
		if (*n->stop)
			return 0;
		if (result != COME_AGAIN)
			break;
		turn_all_away(n, "no stream begins with all of these senders, and the receiver prints why: come again");
		undo(n);
		intake_init(&n->in);
	}
	if (!result)
		result = start(n);
	if (result)
		turn_all_away(n, "the receiver cannot begin the stream, and prints why");
	return result;
}

int receiver_open(const struct network_config *config, const char *buffer,
		 const volatile bool *stop, struct network **network)
{
	struct network *n = calloc(1, sizeof(*n));

	if (!n)
		return fail("no memory");
	*network = n;
	n->config = config;
	n->buffer = buffer;
	n->stop = stop;
	n->listener.fd = -1;
	intake_init(&n->in);
	pthread_mutex_init(&n->offering, NULL);
	n->receiving = config->receiving;
	n->sender = calloc(config->senders, sizeof(*n->sender));
	if (!n->sender)
		return fail("no memory");
	return begin(n);
}

void receiver_await(struct network *n)
{
	while (!n->over && !*n->stop)
		poll(NULL, 0, TICK_MS);
}

static void join(struct network *n)
{
	n->halt = true;
	if (n->path)
		n->receiving->join(n);
	if (n->have_links)
		pthread_join(n->links, NULL);
	if (n->have_credit)
		pthread_join(n->credit, NULL);
	n->have_links = n->have_credit = false;
}

static struct json_object *report_json(const struct network *n)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	uint64_t received = 0, missing = 0;

	for (uint32_t i = 0; i < n->in.flows; i++) {
		received += n->in.flow[i].received;
		missing += n->in.flow[i].missing;
		json_object_array_add(list, flow_json(&n->in.flow[i]));
	}
	put_text(o, "transport", n->config->transport->name);
	put_u64(o, "received_messages", received);
	put_u64(o, "missing_messages", missing);
	put_u64(o, "incomplete_stacks", n->in.incomplete);
	put_u64(o, "overrun_stacks", n->in.overrun);
	n->receiving->report(n, o);
	json_object_object_add(o, "flows", list);
	return o;
}

int receiver_end(struct network *n, struct json_object **report)
{
	const uint64_t end = now_ns() + END_NS;
	const bool ran = n->have_links;
	int result = 0;

	/* senders report their final counts, then end; without a contract, what came last is counted */
	if (n->have_links)
		tell_all(n, link_message(CONTRACT_STOP));
	while (n->have_links && !n->over && now_ns() < end)
		poll(NULL, 0, TICK_MS);
	join(n);
	if (*n->why)
		result = fail("%s", n->why);
	*report = ran ? report_json(n) : NULL;
	if (!result && n->in.overrun) {
		say("%" PRIu64 " stacks may have been overwritten before the buffer reported it: use --policy wait, or more memory for a buffer with more slots",
		    n->in.overrun);
		result = EXIT_DATA;
	}
	return result;
}

void receiver_close(struct network *n)
{
	if (!n)
		return;
	join(n);
	undo(n);
	wire_unlisten(&n->listener);
	pthread_mutex_destroy(&n->offering);
	free(n->sender);
	free(n);
}
