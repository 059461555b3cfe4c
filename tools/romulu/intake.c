// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The account of loss: numbers show missing, late and duplicate messages, and when a stack is
 * complete, or is published without them.
 */
#include "romulu/intake.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/json-out.h"
#include "common/say.h"

#define JUMP		(1 << 26)	/* messages that a sequence can miss */
#define NONE		UINT64_MAX
#define REORDER_NS	100000000ull	/* so late may a packet be that others have overtaken */

bool intake_paced(const struct intake *in)
{
	return in->about->policy == RASHPA_STREAM_WAIT;
}

static struct slot *slot_of(const struct intake *in, uint64_t stack)
{
	return &in->slot[stack % in->about->slots];
}

/* --- slots; intake->lock is held --- */

/* Images that the last stack does not have. */
static void fill_rest(const struct intake *in, const struct rashpa_stack *st)
{
	for (uint32_t i = 0; i < in->flows && st->images < in->about->bunch; i++) {
		const struct flow *f = &in->flow[i];

		for (uint32_t m = st->images * f->per_image; f->per_image && m < f->per_stack; m++)
			rashpa_stream_valid(st, i, m);
	}
}

static void publish(struct intake *in, struct slot *slot)
{
	if (slot->published)
		return;
	pthread_rwlock_wrlock(&in->content);
	slot->published = true;
	pthread_rwlock_unlock(&in->content);
	rashpa_stream_publish(in->stream, &slot->stack);
	if (in->progress >= 0 && eventfd_write(in->progress, 1))
		return;		/* it is full: that wakes as well */
}

/* A stack that all flows have passed, or that another one needs the slot of. */
static void give_up(struct intake *in, struct slot *slot)
{
	if (!slot->published)
		in->incomplete++;
	publish(in, slot);
}

/* Also of images of which nothing will come. */
static void number_images(const struct intake *in, const struct rashpa_stack *st)
{
	for (uint32_t i = 0; i < in->flows; i++) {
		for (uint32_t k = 0; k < in->about->bunch; k++)
			rashpa_stack_describe(st, i, k, &(struct rashpa_image) {
				.frame = st->number * in->about->bunch + k,
			});
	}
}

static void use_slot(struct intake *in, const struct rashpa_stack *st)
{
	struct slot *slot = slot_of(in, st->number);

	fill_rest(in, st);
	if (in->about->meta_slot)
		number_images(in, st);
	pthread_rwlock_wrlock(&in->content);
	slot->stack = *st;
	slot->behind = in->flows;
	slot->published = false;
	/* a flow that lagged a whole round has passed the stack meanwhile */
	for (uint32_t i = 0; i < in->flows; i++)
		slot->behind -= in->flow[i].passed > st->number;
	slot->number = st->number + 1;
	pthread_rwlock_unlock(&in->content);
	in->opened = st->number + 1;
}

/*
 * A message was written into a slot that was not open, since the numbers jumped too far. A consumer
 * that still holds the slot's stack detects it. A consumer that has released the stack may have
 * read some of the message. More messages may be in the following slots.
 */
static void count_overrun(struct intake *in, uint64_t stack)
{
	const uint64_t first = in->opened, last = stack + in->ahead;
	const uint64_t most = first - in->about->first_stack;	/* were there */
	uint64_t slots = last - first + 1;

	slots = slots < in->about->slots ? slots : in->about->slots;
	in->overrun += slots < most ? slots : most;
}

/* Without credit: the slot of the oldest stack is needed, complete or not. */
static void open_up_to(struct intake *in, uint64_t stack)
{
	struct rashpa_stack st;

	while (in->opened <= stack) {
		const int result = rashpa_stream_slot(in->stream, &st, 0);

		if (result > 0)
			use_slot(in, &st);
		if (!result)
			return;			/* there are not so many */
		if (result < 0)
			give_up(in, slot_of(in, rashpa_stream_complete(in->stream)));
	}
}

/* A flow is behind these stacks: none of its messages can come any more. */
static void pass(struct flow *f, uint64_t stack)
{
	struct intake *in = f->intake;

	for (; f->passed < stack; f->passed++) {
		struct slot *slot = slot_of(in, f->passed);

		if (slot->number == f->passed + 1 && !--slot->behind)
			give_up(in, slot);
	}
}

/* --- a message --- */

static int wrong(const struct flow *f, uint64_t stack, const char *what, char *why)
{
	return because(why, -1, "%s, process %" PRIu32 ", stack %" PRIu64 ": %s", f->peer,
		       f->process, stack, what);
}

/* The number is that of the sequence, by the nearest to the expected one. */
int flow_place(struct flow *f, uint32_t number, struct place *place, char *why)
{
	struct intake *in = f->intake;
	const uint64_t expected = f->expected;
	const int32_t ahead = number - f->first - (uint32_t)expected;

	place->ahead = ahead;
	place->number = expected + ahead;
	place->stack = in->about->first_stack + place->number / f->per_stack;
	place->message = place->number % f->per_stack;
	if (ahead > JUMP || (ahead < 0 && (uint64_t)-(int64_t)ahead > expected))
		return wrong(f, place->stack, "the number of a message is out of range: it is of another run", why);
	if (in->about->images && place->stack - in->about->first_stack >=
				 (in->about->images + in->about->bunch - 1) / in->about->bunch)
		return wrong(f, place->stack, "it is after the last announced stack", why);
	if (place->stack + in->ahead < in->opened)
		return 0;
	if (intake_paced(in))
		return wrong(f, place->stack, "it was sent without credit", why);
	pthread_mutex_lock(&in->lock);
	if (in->direct && place->stack >= in->opened)
		count_overrun(in, place->stack);
	open_up_to(in, place->stack + in->ahead);
	pthread_mutex_unlock(&in->lock);
	return 0;
}

bool flow_hold(struct flow *f, const struct place *place)
{
	const struct slot *slot = slot_of(f->intake, place->stack);

	pthread_rwlock_rdlock(&f->intake->content);
	if (slot->number == place->stack + 1 && !slot->published)
		return true;
	pthread_rwlock_unlock(&f->intake->content);
	return false;
}

void flow_let_go(struct flow *f)
{
	pthread_rwlock_unlock(&f->intake->content);
}

const struct rashpa_stack *flow_slot(const struct flow *f, const struct place *place)
{
	return &slot_of(f->intake, place->stack)->stack;
}

static void keep_sequence(struct flow *f, uint64_t number, bool fresh)
{
	const uint64_t expected = f->expected;
	uint64_t gap;

	if (number < expected) {
		f->reordered += fresh;
		f->missing -= fresh;
		return;
	}
	gap = number - expected;
	if (gap && f->first_missing == NONE)
		f->first_missing = expected;
	f->missing += gap;
	f->longest_gap = gap > f->longest_gap ? gap : f->longest_gap;
	f->expected = number + 1;
}

static void leave_behind(struct flow *f, uint64_t stack)
{
	struct intake *in = f->intake;
	const uint64_t lag = in->close_after;

	if (stack < lag || stack - lag <= f->passed)
		return;
	pthread_mutex_lock(&in->lock);
	pass(f, stack - lag);
	pthread_mutex_unlock(&in->lock);
}

void flow_take(struct flow *f, const struct place *place)
{
	struct intake *in = f->intake;
	struct rashpa_stack st = { .stream = in->stream, .number = place->stack };
	struct slot *slot = slot_of(in, place->stack);
	bool twice;
	int left;

	f->moved_ns = now_ns();
	left = rashpa_stream_valid(&st, f->process, place->message);
	/* a reassigned slot has no map; without missing messages this one is a duplicate */
	twice = left == -EEXIST || (place->number < f->expected && !f->missing);
	f->received++;
	f->duplicate += twice;
	f->late += left == -ESTALE && !twice;
	keep_sequence(f, place->number, !twice);
	if (!left) {
		pthread_mutex_lock(&in->lock);
		if (slot->number == place->stack + 1)
			publish(in, slot);
		pthread_mutex_unlock(&in->lock);
	}
	if (place->ahead >= 0)
		leave_behind(f, place->stack);
}

/* --- the end of messages --- */

bool flow_silent(const struct flow *f, uint64_t now, uint64_t ns)
{
	const uint64_t moved = f->moved_ns;	/* which may be later than now */

	return moved < now && now - moved >= ns;
}

bool flow_settled(const struct flow *f, uint64_t now)
{
	const struct intake *in = f->intake;

	if (f->expected < f->sent)
		return flow_silent(f, now, in->settle_ns);
	/* RDMA keeps the order, so a missing message was lost */
	return in->direct || !f->missing ||
	       flow_silent(f, now, in->settle_ns < REORDER_NS ? in->settle_ns : REORDER_NS);
}

void flow_count_tail(struct flow *f)
{
	if (f->sent <= f->expected)
		return;
	keep_sequence(f, f->sent, false);
	f->expected = f->sent;
}

/* 1 + number of the last stack that this flow's sender has begun. */
static uint64_t sent_up_to(const struct flow *f)
{
	const uint64_t messages = f->sent > f->expected ? f->sent : f->expected;

	return f->intake->about->first_stack + (messages + f->per_stack - 1) / f->per_stack;
}

/*
 * Behind the last stack that there is: slots that were opened for later ones stay empty. A sender
 * that has gone without a word may have sent more.
 */
static uint64_t last_begun(const struct intake *in)
{
	uint64_t last = in->about->first_stack;

	for (uint32_t i = 0; i < in->flows; i++) {
		const struct flow *f = &in->flow[i];
		const uint64_t over = sent_up_to(f);

		if (f->gone && !f->ended)
			return in->opened;
		last = over > last ? over : last;
	}
	return last < in->opened ? last : in->opened;
}

/*
 * No message opens a slot for stacks that were lost as a whole at the end of a stream: the sender's
 * count does, so that they are published as incomplete, as those are that were lost before. A count
 * further away than a message can be opens nothing.
 */
static void open_tail(struct flow *f)
{
	struct intake *in = f->intake;

	if (f->ended && !intake_paced(in) && f->sent > f->expected &&
	    f->sent - f->expected <= JUMP)
		open_up_to(in, sent_up_to(f) - 1);
}

void intake_close_quiet(struct intake *in, uint64_t now)
{
	for (uint32_t i = 0; i < in->flows; i++) {
		struct flow *f = &in->flow[i];
		const uint64_t over = in->about->first_stack + f->sent / f->per_stack;

		if (f->gone ? !flow_silent(f, now, in->settle_ns) : !flow_settled(f, now))
			continue;
		pthread_mutex_lock(&in->lock);
		open_tail(f);
		pass(f, f->ended || f->gone || over > in->opened ? last_begun(in) : over);
		pthread_mutex_unlock(&in->lock);
	}
}

void intake_give_up(struct intake *in)
{
	pthread_mutex_lock(&in->lock);
	for (uint32_t i = 0; i < in->flows; i++)
		pass(&in->flow[i], last_begun(in));
	pthread_mutex_unlock(&in->lock);
}

/* --- */

int intake_credit(struct intake *in, int64_t timeout_ns)
{
	struct rashpa_stack st;
	const int result = rashpa_stream_slot(in->stream, &st, timeout_ns);

	if (result <= 0)
		return result;
	pthread_mutex_lock(&in->lock);
	use_slot(in, &st);
	pthread_mutex_unlock(&in->lock);
	return 1;
}

uint64_t intake_allowed(const struct intake *in)
{
	const uint64_t end = rashpa_stream_complete(in->stream) + in->window;

	return in->opened < end ? in->opened : end;
}

void intake_init(struct intake *in)
{
	pthread_rwlockattr_t attr;

	*in = (struct intake) { .progress = -1 };
	pthread_mutex_init(&in->lock, NULL);
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&in->content, &attr);
	pthread_rwlockattr_destroy(&attr);
}

int intake_open(struct intake *in, struct rashpa_stream *stream)
{
	in->stream = stream;
	in->about = rashpa_stream_get_header(stream);
	in->opened = in->about->first_stack;
	in->window = in->about->slots;
	in->slot = calloc(in->about->slots, sizeof(*in->slot));
	if (!in->slot)
		return fail("no memory for %" PRIu32 " slots", in->about->slots);
	if (!intake_paced(in) && in->about->slots < 3)
		return fail("a detector that does not wait needs 3 slots, there are %" PRIu32 ": use a larger buffer, or a smaller --bunch",
			    in->about->slots);
	for (uint32_t i = 0; i < in->flows; i++) {
		in->flow[i].intake = in;
		in->flow[i].passed = in->about->first_stack;
		in->flow[i].first_missing = NONE;
		in->flow[i].moved_ns = now_ns();
	}
	return 0;
}

void intake_close(struct intake *in)
{
	if (in->progress >= 0)
		close(in->progress);
	free(in->slot);
	free(in->flow);
	pthread_rwlock_destroy(&in->content);
	pthread_mutex_destroy(&in->lock);
}

/* Messages of a stack, of the process that has the fewest: all others may be silent meanwhile. */
static uint64_t fewest(const struct intake *in)
{
	uint64_t n = UINT64_MAX;

	for (uint32_t i = 0; i < in->flows; i++)
		n = in->flow[i].per_stack < n ? in->flow[i].per_stack : n;
	return n;
}

uint64_t intake_unseen(const struct intake *in)
{
	return intake_paced(in) ? UINT64_MAX : (in->about->slots - 2) * fewest(in);
}

void intake_begin(struct intake *in, uint64_t messages)
{
	if (intake_paced(in)) {
		while (intake_credit(in, 0) > 0)
			;
		return;
	}
	in->ahead = (messages + fewest(in) - 1) / fewest(in);
	pthread_mutex_lock(&in->lock);
	open_up_to(in, in->opened + in->ahead);
	pthread_mutex_unlock(&in->lock);
}

struct json_object *flow_json(const struct flow *f)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "sender", f->peer);
	put_int(o, "process", f->process);
	put_u64(o, "received", f->received);
	put_u64(o, "missing", f->missing);
	put_u64(o, "duplicate", f->duplicate);
	put_u64(o, "reordered", f->reordered);
	put_u64(o, "late", f->late);
	if (f->first_missing == NONE)
		put_text(o, "first_missing", NULL);
	else
		put_u64(o, "first_missing", f->first_missing);
	put_u64(o, "longest_gap", f->longest_gap);
	put_u64(o, "received_again", f->again);
	return o;
}
