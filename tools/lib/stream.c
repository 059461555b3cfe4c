// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: consumers and observers of streams. See rashpa-stream.h. */
#include "lib/stream.h"
#include "lib/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int check_flags(unsigned int flags)
{
	const unsigned int known = RASHPA_STREAM_OBSERVE | RASHPA_STREAM_FROM_START |
				   RASHPA_STREAM_LATEST | RASHPA_STREAM_FRESH |
				   RASHPA_STREAM_WRITE | RASHPA_STREAM_NO_DATA | RASHPA_STREAM_LOSE |
				   RASHPA_STREAM_PIN;

	if (flags & ~known)
		return fail(EINVAL, "flags %#x are not defined", flags & ~known);
	if (flags & RASHPA_STREAM_LATEST && !(flags & RASHPA_STREAM_OBSERVE))
		return fail(EINVAL, "only an observer leaves stacks out: a consumer takes all of them");
	if (flags & RASHPA_STREAM_WRITE && flags & RASHPA_STREAM_OBSERVE)
		return fail(EINVAL, "an observer does not write into slots: only the consumer may");
	if (flags & RASHPA_STREAM_LOSE && flags & RASHPA_STREAM_OBSERVE)
		return fail(EINVAL, "RASHPA_STREAM_LOSE is for consumers: no stream waits for an observer");
	if (flags & RASHPA_STREAM_PIN && !(flags & RASHPA_STREAM_WRITE))
		return fail(EINVAL, "slots that are not mapped for writing need no flag to be pinned");
	if (flags & RASHPA_STREAM_WRITE && flags & RASHPA_STREAM_NO_DATA)
		return fail(EINVAL, "a consumer without data cannot write into slots");
	if (flags & RASHPA_STREAM_FRESH && flags & RASHPA_STREAM_FROM_START)
		return fail(EINVAL, "flags for an existing stream and for a new one exclude each other");
	return 0;
}

static int check_options(const struct rashpa_place_options *o)
{
	char name[RASHPA_STREAM_NAME] = "";

	if (o->workers > RASHPA_STREAM_WORKERS)
		return fail(EINVAL, "%" PRIu32 " workers: at most %d share a place", o->workers,
			    RASHPA_STREAM_WORKERS);
	if (!*o->name || strlen(o->name) >= RASHPA_PLACE_NAME)
		return fail(EINVAL, "the name of a place has 1 to %d letters", RASHPA_PLACE_NAME - 1);
	strcpy(name, o->name);
	return stream_check_name("the name of the place", name, true) ? -EINVAL : 0;
}

int rashpa_stream_open_as_sized(const char *buffer, const struct rashpa_place_options *options,
				struct rashpa_stream **stream, size_t size)
{
	struct rashpa_place_options o;
	struct rashpa_stream *s;
	int error;

	*stream = NULL;
	sized_copy(&o, sizeof(o), options, size);
	if (!o.name)
		o.name = "default";
	if (!o.workers)
		o.workers = 1;
	error = check_flags(o.flags);
	if (!error)
		error = check_options(&o);
	if (!error)
		error = stream_open(buffer, o.flags, false, stream);
	if (error)
		return error;
	s = *stream;
	s->options = o;
	strcpy(s->place_name, o.name);
	s->options.name = s->place_name;
	/* ignore a stream that has ended, unless stacks of it are left to be taken */
	s->generation = s->shared->generation;
	if (!(o.flags & RASHPA_STREAM_OBSERVE))
		error = place_open(s);
	if (error) {
		stream_close(s);
		*stream = NULL;
	}
	return error;
}

int rashpa_stream_open(const char *buffer, unsigned int flags, struct rashpa_stream **stream)
{
	return rashpa_stream_open_as(buffer, &(struct rashpa_place_options) { .flags = flags },
				     stream);
}

void rashpa_stream_close(struct rashpa_stream *s)
{
	if (!s)
		return;
	if (s->producer && s->started && !s->ended)
		rashpa_stream_end(s, NULL);
	stream_close(s);
}

static bool observes(const struct rashpa_stream *s)
{
	return s->flags & RASHPA_STREAM_OBSERVE;
}

/* Credit of which an observer knows nothing is endless: then the oldest stack is in danger. */
static uint64_t oldest(const struct rashpa_stream *s, uint64_t most)
{
	return stream_oldest(&s->head, most, observes(s) ? UINT64_MAX / 2 : stream_credit(s));
}

/* --- to find a stream --- */

/* Whether stacks are left that no consumer has taken: a paced producer does not overwrite them. */
static bool left_over(struct rashpa_stream *s)
{
	uint64_t most;

	return s->head.state != RASHPA_STREAM_IDLE && !observes(s) &&
	       s->head.policy != RASHPA_STREAM_OVERWRITE &&
	       stream_stacks(s, &most) > stream_consumed_at(s, s->place) &&
	       most <= stream_end(&s->head);
}

/*
 * A stream that runs, or one that began after us (it may have ended already). 1, 0, or a negative
 * errno.
 */
static int begins(struct rashpa_stream *s)
{
	const struct rashpa_stream_header *h = &s->head;
	int alive;

	if (h->generation != s->generation || s->flags & RASHPA_STREAM_FROM_START)
		return h->state != RASHPA_STREAM_IDLE;
	if (h->state != RASHPA_STREAM_RUNNING || s->dead)
		return 0;
	alive = stream_has_producer(s);
	/* the next producer has its role before its stream replaces this one */
	s->dead = !alive;
	return alive;
}

static int attach(struct rashpa_stream *s)
{
	const struct rashpa_stream_header *h = &s->head;
	int error, alive;

	s->held = calloc(h->slots, sizeof(*s->held));
	if (!s->held)
		return fail(ENOMEM, "no memory for %" PRIu32 " slots", h->slots);
	if (observes(s))
		s->next = s->flags & RASHPA_STREAM_FROM_START ? h->first_stack : stream_consumed(s);
	s->lingers = false;
	s->end = stream_end(h);
	s->stat = (struct rashpa_stream_stat) {};
	s->pending = 0;
	s->over = 0;
	s->looked = s->due = 0;
	/* a stream that is over makes no events; and listening turns bus mastering on */
	alive = h->state == RASHPA_STREAM_RUNNING ? stream_has_producer(s) : 0;
	error = alive > 0 ? s->buffer.kind->listen(s) : alive;
	/* an observer can poll instead */
	s->polls = error && observes(s);
	if (s->polls) {
		stream_forget(s);
		error = 0;
	}
	if (error)
		return error;
	s->attached = s->known = true;
	s->generation = h->generation;
	s->dead = false;
	stream_forget_work(s);
	/* If the consumer before us was killed between raising the credit and ringing: ring now. */
	if (alive && !observes(s))
		stream_ring(s);
	return 0;
}

/* Check once. Return: 1, 0 without a stream, or a negative errno */
static int look_for_stream(struct rashpa_stream *s)
{
	int found, error;

	found = stream_copy(s);
	if (found <= 0)
		return found;
	if (s->flags & RASHPA_STREAM_FRESH && s->head.generation == s->generation)
		return 0;
	found = begins(s);
	if (found < 0)
		return found;
	error = stream_open_memories(s, s->flags & RASHPA_STREAM_WRITE);
	/* the memory of an old stream may have gone, and is not needed */
	if (error)
		return found ? error : 0;
	error = observes(s) ? 1 : place_attend(s);
	if (error <= 0)
		return error;
	if (!found && !left_over(s))
		return 0;
	error = attach(s);
	return error ? error : 1;
}

/*
 * A stream that is over stays until the next one begins. Threads may still hold stacks of it, and
 * use them.
 */
static int look_for_next(struct rashpa_stream *s)
{
	int found = 0;

	if (s->known && s->shared->generation == s->generation)
		return 0;
	pthread_mutex_lock(&s->lock);
	if (s->known)
		stream_forget(s);
	s->known = false;
	free(s->held);
	s->held = NULL;
	found = look_for_stream(s);
	if (found < 0)
		stream_forget(s);
	pthread_mutex_unlock(&s->lock);
	return found;
}

int rashpa_stream_begin(struct rashpa_stream *s, int64_t timeout_ns)
{
	const int64_t deadline = deadline_of(timeout_ns);
	struct rashpa_event event;
	int found;

	while (!s->attached) {
		while (stream_event(s, &event))
			;
		found = look_for_next(s);
		if (found < 0)
			return found;
		if (found)
			break;
		found = stream_sleep(s, deadline);
		if (found == -ETIMEDOUT)
			return fail(ETIMEDOUT, "buffer %s: no stream began in time: start a producer (remu)",
				    s->name);
		if (found)
			return found;
	}
	return 0;
}

/* --- what is known of a stack --- */

static bool read_image(const struct rashpa_stream *s, uint64_t stack, uint32_t index,
		       struct rashpa_image *image)
{
	const struct rashpa_stream_header *h = &s->head;
	uint64_t lines = 0;

	*image = (struct rashpa_image) {
		.data = stream_data(s, stack % h->slots),
		.frame = stack * h->bunch + index,
	};
	if (image->data)
		image->data = (uint8_t *)image->data + index * h->image_stride;
	if (!h->meta_slot)
		return false;
	for (uint32_t i = 0; i < h->processes; i++) {
		uint32_t word[RFPGA_META_SIZE / 4];
		uint64_t at[2], frame;

		memcpy(word, stream_meta(s, i, stack, index), sizeof(word));
		memcpy(at, word, sizeof(at));		/* FRAME, STACK */
		frame = i ? image->frame : at[0];
		image->frame = frame;
		if (word[RFPGA_META_STATUS / 4] & RFPGA_META_LINES)
			lines += RFPGA_META_MISSING(word[RFPGA_META_STATUS / 4]);
		image->wrong |= at[1] != stack || word[RFPGA_META_RUN / 4] != h->run ||
				at[0] != frame;
		if (i)
			continue;
		image->role = word[RFPGA_META_ROLE / 4];
		memcpy(&image->trigger, word + RFPGA_META_TRIGGER / 4, sizeof(image->trigger));
		memcpy(&image->time, word + RFPGA_META_TIME / 4, sizeof(image->time));
	}
	image->missing_lines = lines > UINT32_MAX ? UINT32_MAX : lines;
	image->known = !image->wrong;
	return true;
}

static bool is_missing(const struct rashpa_stream *s, uint64_t stack, uint32_t bit)
{
	return !(stream_map(s, stack)[bit / 64] >> bit % 64 & 1);
}

/* Of a process: its messages of an image are lines, or parts of them; or it is not told. */
static uint64_t lines_missing(const struct rashpa_stream *s, uint64_t stack, uint32_t index,
			      const struct rashpa_stream_process *p)
{
	const uint32_t images = s->head.bunch, each = p->messages / images;
	const bool told = p->message_lines || p->line_messages;
	const uint32_t first = p->message + (told ? index * each : 0);
	const uint32_t n = told ? each : p->messages;
	uint32_t line, last = UINT32_MAX;
	uint64_t lines = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!is_missing(s, stack, first + i))
			continue;
		if (!told)
			return p->height;
		if (p->message_lines) {
			line = i * p->message_lines;
			lines += line < p->height && p->height - line < p->message_lines ?
				 p->height - line : p->message_lines;
			continue;
		}
		line = i / p->line_messages;
		lines += line != last;
		last = line;
	}
	return lines;
}

/* By the map of messages. */
static void add_missing(const struct rashpa_stream *s, uint64_t stack, uint32_t index,
			struct rashpa_image *image)
{
	uint64_t lines = image->missing_lines;

	for (uint32_t i = 0; i < s->head.processes; i++)
		lines += lines_missing(s, stack, index, &s->process[i]);
	image->missing_lines = lines > UINT32_MAX ? UINT32_MAX : lines;
}

/* The detector's word goes before the header's. */
static uint32_t role_of(const struct rashpa_stream *s, const struct rashpa_image *image)
{
	const uint32_t every = s->head.dark_every;

	if (image->role || !every || image->frame % every != every - 1)
		return image->role;
	return RASHPA_IMAGE_DARK;
}

/* s->lock is held. */
static bool ours(const struct rashpa_stream *s, const struct rashpa_stack *stack)
{
	return s->known && stack->run == s->head.run;
}

int rashpa_stack_image_sized(const struct rashpa_stack *stack, uint32_t index,
			     struct rashpa_image *to, size_t size)
{
	struct rashpa_stream *s = stack->stream;
	struct rashpa_image image = {};
	int error = 0;

	if (index >= stack->images)
		return fail(ERANGE, "stack %" PRIu64 " has %" PRIu32 " images", stack->number,
			    stack->images);
	pthread_mutex_lock(&s->lock);
	if (!ours(s, stack))
		error = fail(ESTALE, "stack %" PRIu64 " belongs to a stream that has ended",
			     stack->number);
	else if (!read_image(s, stack->number, index, &image) && s->head.record_size)
		image.frame = stack->frame + index;
	if (!error && stack->missing && s->head.map_slot)
		add_missing(s, stack->number, index, &image);
	if (!error)
		image.role = role_of(s, &image);
	pthread_mutex_unlock(&s->lock);
	if (!error)
		sized_copy(to, size, &image, sizeof(image));
	return error;
}

int rashpa_stack_missing(const struct rashpa_stack *stack, uint32_t process, uint32_t message)
{
	struct rashpa_stream *s = stack->stream;
	uint32_t bit;
	int result;

	pthread_mutex_lock(&s->lock);
	if (!ours(s, stack)) {
		result = fail(ESTALE, "stack %" PRIu64 " belongs to a stream that has ended",
			      stack->number);
	} else if (!s->head.map_slot) {
		result = fail(ENODATA, "the stream keeps no map of messages");
	} else if (process >= s->head.processes || message >= s->process[process].messages) {
		result = fail(ERANGE, "there is no message %" PRIu32 " of process %" PRIu32,
			      message, process);
	} else {
		bit = s->process[process].message + message;
		result = !(stream_map(s, stack->number)[bit / 64] >> bit % 64 & 1);
	}
	pthread_mutex_unlock(&s->lock);
	return result;
}

/* Frames that were left out can only become more. */
static bool in_order(const struct rashpa_stream *s, const struct rashpa_stack *st, uint32_t i,
		     const struct rashpa_image *image, uint64_t *skipped)
{
	uint64_t place = (st->number - s->head.first_stack) * s->head.bunch + i;
	uint64_t index = stream_index(&s->head, image->frame);

	if (index < place || index - place < *skipped)
		return false;
	*skipped = index - place;
	return true;
}

static void read_images(const struct rashpa_stream *s, struct rashpa_stack *st)
{
	struct rashpa_image image;
	uint64_t skipped = st->skipped;

	for (uint32_t i = 0; i < st->images; i++) {
		if (!read_image(s, st->number, i, &image))
			return;
		if (!i)
			st->frame = image.frame;
		if (image.wrong || !in_order(s, st, i, &image, &skipped))
			st->flags |= RASHPA_STACK_WRONG;
		if (image.missing_lines)
			st->flags |= RASHPA_STACK_INCOMPLETE;
		if (role_of(s, &image))
			st->flags |= RASHPA_STACK_ROLES;
	}
	st->skipped = skipped;
}

static bool record_of(const struct rashpa_stream *s, uint64_t stack,
		      struct rashpa_stream_record *copy)
{
	const volatile struct rashpa_stream_record *r = stream_record(s, stack);
	uint64_t last = __atomic_load_n(&r->stack, __ATOMIC_ACQUIRE);

	stream_copy_words(copy, r, sizeof(*copy));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return last == stack + 1 && copy->run == s->head.run &&
	       __atomic_load_n(&r->begun, __ATOMIC_RELAXED) == stack + 1;
}

/* Of a stream that leaves stacks out, only the last lock record knows how long the last one is. */
static uint32_t images_of(const struct rashpa_stream *s, uint64_t stack)
{
	const struct rashpa_stream_header *h = &s->head;
	uint64_t before = (stack - h->first_stack) * h->bunch;
	struct rfpga_lock lock;

	if (h->policy == RASHPA_STREAM_DROP && stream_lock_read(s, 0, &lock) &&
	    lock.stacks == stack + 1 && lock.images - before <= h->bunch)
		return lock.images - before;
	return stream_images(h, stack, stack + 1);
}

static void describe(struct rashpa_stream *s, uint64_t number, struct rashpa_stack *st)
{
	const struct rashpa_stream_header *h = &s->head;
	struct rashpa_stream_record record;

	*st = (struct rashpa_stack) {
		.stream = s,
		.number = number,
		.frame = number * h->bunch,
		.slot = number % h->slots,
		.run = h->run,
		.width = h->width,
		.height = h->height,
		.pixel = h->pixel,
		.pixel_bytes = stream_pixel_bytes(h->pixel),
		.line_stride = h->line_stride,
		.image_stride = h->image_stride,
		.skipped = s->stat.skipped,
		.lost = s->pending,
		.event_ns = s->event_ns,
		.woken_ns = s->woken_ns,
	};
	st->data = stream_data(s, st->slot);
	if (!h->record_size) {
		st->images = images_of(s, st->number);
	} else if (record_of(s, st->number, &record) && record.images <= h->bunch) {
		st->images = record.images;
		st->frame = record.frame;
		st->time_ns = record.time_ns;
		st->missing = record.missing;
		memcpy(st->user, record.user, sizeof(st->user));
		if (record.missing)
			st->flags |= RASHPA_STACK_INCOMPLETE;
		if (record.frame > st->number * h->bunch && !h->meta_slot)
			st->skipped = record.frame - st->number * h->bunch;
	} else {
		st->images = stream_images(h, st->number, st->number + 1);
		st->flags |= RASHPA_STACK_WRONG;
	}
	if (h->meta_slot)
		read_images(s, st);
	else if (h->dark_every && (st->frame + st->images) / h->dark_every >
				  st->frame / h->dark_every)
		st->flags |= RASHPA_STACK_ROLES;
}

/* --- to take stacks --- */

/* s->lock is held. */
static bool intact(const struct rashpa_stream *s, const struct rashpa_stack *stack)
{
	const volatile struct rashpa_stream_record *r;
	uint64_t most;

	/* earlier reads come before the check */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!ours(s, stack) || !stream_same(s))
		return false;
	if (s->head.record_size) {
		r = stream_record(s, stack->number);
		if (__atomic_load_n(&r->begun, __ATOMIC_ACQUIRE) != stack->number + 1)
			return false;
	}
	stream_stacks(s, &most);
	return oldest(s, most) <= stack->number;
}

int rashpa_stack_intact(const struct rashpa_stack *stack)
{
	struct rashpa_stream *s = stack->stream;
	bool result;

	pthread_mutex_lock(&s->lock);
	result = intact(s, stack);
	pthread_mutex_unlock(&s->lock);
	return result;
}

/* s->lock is held; the stack is of this run. */
static int holds(const struct rashpa_stream *s, const struct rashpa_stack *stack)
{
	uint64_t held = s->producer ? 0 :
			s->held[stack->number % s->head.slots] & ~HELD_DONE;

	/* a later one is there in its place */
	if (held > stack->number + 1)
		return fail(ESTALE, "stack %" PRIu64 " was overwritten", stack->number);
	return held == stack->number + 1 ? 0 :
	       fail(EINVAL, "stack %" PRIu64 " is not held: it was released already",
		    stack->number);
}

int rashpa_stream_done(struct rashpa_stream *s, const struct rashpa_stack *stack)
{
	int error;

	pthread_mutex_lock(&s->lock);
	if (ours(s, stack))
		error = holds(s, stack);
	else
		error = fail(ESTALE, "stack %" PRIu64 " belongs to a stream that has ended",
			     stack->number);
	if (!error) {
		s->held[stack->number % s->head.slots] |= HELD_DONE;
		if (!observes(s))
			place_release(s, stack->number, RASHPA_CLAIM_DONE);
	}
	pthread_mutex_unlock(&s->lock);
	return error;
}

static int release(struct rashpa_stream *s, const struct rashpa_stack *stack)
{
	uint64_t *held;
	bool good;
	int error;

	if (!ours(s, stack))
		return fail(ESTALE, "stack %" PRIu64 " belongs to a stream that has ended", stack->number);
	error = holds(s, stack);
	if (error)
		return error;
	held = &s->held[stack->number % s->head.slots];
	/* after rashpa_stream_done() overwriting does not matter */
	good = *held & HELD_DONE || intact(s, stack);
	*held = 0;
	s->stat.held--;
	if (!good) {
		s->stat.lost += stack->images;
		place_count_lost(s, stack->images);
	}
	if (!observes(s))
		place_release(s, stack->number, RASHPA_CLAIM_RELEASED);
	return good ? 0 : fail(ESTALE, "stack %" PRIu64 " was overwritten while it was held",
			       stack->number);
}

int rashpa_stream_release(struct rashpa_stream *s, const struct rashpa_stack *stack)
{
	int error;

	pthread_mutex_lock(&s->lock);
	error = release(s, stack);
	if (error != -EINVAL && s->out)
		s->out--;
	pthread_mutex_unlock(&s->lock);
	return error;
}

/* Stacks up to @to cannot be had any more. */
static void lose(struct rashpa_stream *s, uint64_t to)
{
	uint64_t images = stream_images(&s->head, s->next, to);

	pthread_mutex_lock(&s->lock);
	s->stat.lost += images;
	s->pending += images;
	s->next = to;
	pthread_mutex_unlock(&s->lock);
}

static void take(struct rashpa_stream *s, uint64_t number, struct rashpa_stack *st)
{
	describe(s, number, st);
	pthread_mutex_lock(&s->lock);
	/* the stack that was held there is overwritten: its release will report that */
	if (s->held[st->slot])
		s->stat.held--;
	s->held[st->slot] = st->number + 1;
	s->stat.held++;
	s->out++;
	s->stat.stacks++;
	s->stat.frames += st->images;
	s->stat.skipped = st->skipped;
	s->stat.incomplete += !!(st->flags & RASHPA_STACK_INCOMPLETE);
	s->pending = 0;
	pthread_mutex_unlock(&s->lock);
}

/* Records that were not needed, and what ends the stream. */
static void take_events(struct rashpa_stream *s)
{
	struct rashpa_event event;

	while (stream_event(s, &event)) {
		if (event.kind == RASHPA_SOURCE_GROUP) {
			s->stat.events++;
			s->stat.events_lost = event.lost;
			/* an event that came before the sleep has not ended it */
			if (event.time_ns <= s->woken_ns)
				s->event_ns = event.time_ns;
		} else if (event.kind == RASHPA_SOURCE_DEVICE &&
			   event.time_ns >= s->head.start_ns &&
			   /* what that of an engine means is its producer's to say, or its end */
			   (uint32_t)event.value != RASHPA_DEVICE_EVENT_ENGINE) {
			s->over = event.value == RASHPA_DEVICE_EVENT_GONE ? -ENODEV :
									      -ECONNABORTED;
		}
	}
}

/* Poll for changes without an event, now and then. Return: 0 or a negative errno */
static int look_around(struct rashpa_stream *s)
{
	int64_t now = clock_ns();
	int producer;

	s->woken_ns = now;
	if (now - s->looked < STREAM_TICK_NS)
		return 0;
	s->looked = now;
	producer = stream_has_producer(s);
	if (!producer && !s->over)
		s->over = -EOWNERDEAD;
	place_tick(s);
	return producer < 0 ? producer : 0;
}

/* The stream is over for us, and all that was complete has been taken. */
static int finish(struct rashpa_stream *s)
{
	const uint64_t taken = s->next - s->head.first_stack;
	int over = s->over;

	s->attached = false;
	s->flags &= ~RASHPA_STREAM_FROM_START;
	if (s->next >= s->end ||
	    __atomic_load_n(&s->shared->state, __ATOMIC_ACQUIRE) == RASHPA_STREAM_ENDED)
		return 0;
	switch (-over) {
	case EOWNERDEAD:
		return fail(EOWNERDEAD, "buffer %s: the producer is gone after %" PRIu64 " stacks",
			    s->name, taken);
	case ENODEV:
		return fail(ENODEV, "buffer %s: the function was removed after %" PRIu64 " stacks",
			    s->name, taken);
	default:
		return fail(ECONNABORTED, "buffer %s: the function was stopped after %" PRIu64
			    " stacks", s->name, taken);
	}
}

/* Another stream replaced this one, after @complete stacks. */
static int replaced(struct rashpa_stream *s, uint64_t complete)
{
	if (complete > s->next)
		lose(s, complete);
	s->attached = false;
	s->flags &= ~RASHPA_STREAM_FROM_START;
	return fail(ESTALE, "buffer %s: the producer began another stream after %" PRIu64
		    " known images of this one, %" PRIu64
		    " of them lost: the number of further images is not known", s->name,
		    s->stat.frames + s->stat.lost, s->stat.lost);
}

/* Whether other workers hold stacks of which all are taken, and which may come back. */
static bool waits_for_others(struct rashpa_stream *s)
{
	s->lingers = !observes(s) && place_awaits(s);
	return s->lingers;
}

/* 1: a stack was taken, 0: no stack is ready, or a negative errno. *ended: no more will come. */
static int look(struct rashpa_stream *s, struct rashpa_stack *st, uint64_t *complete, bool *ended)
{
	/* read before the locks, so that they include all stacks complete by then */
	uint32_t state = __atomic_load_n(&s->shared->state, __ATOMIC_ACQUIRE);
	uint64_t least, most, first, number, lost = 0;
	bool found;

	*ended = s->over || state == RASHPA_STREAM_ENDED;
	least = stream_stacks(s, &most);
	/* the records of another stream do not count */
	if (!stream_same(s) || state == RASHPA_STREAM_IDLE)
		return replaced(s, *complete);
	if (!stream_possible(&s->head, most))
		return fail(EPROTO, "buffer %s: a lock record claims %" PRIu64
			    " complete stacks, which is impossible", s->name, most);
	*complete = least;
	first = oldest(s, most);
	if (observes(s)) {
		if (first > s->next && least > s->next)
			lose(s, first < least ? first : least);
		found = least > s->next;
		number = s->flags & RASHPA_STREAM_LATEST ? least - 1 : s->next;
		if (found)
			s->next = number + 1;
	} else {
		found = place_take(s, least, first, &number, &lost);
		pthread_mutex_lock(&s->lock);
		s->stat.lost += lost;
		s->pending += lost;
		pthread_mutex_unlock(&s->lock);
		*ended = *ended && !waits_for_others(s);
	}
	if (found)
		take(s, number, st);
	return found;
}

int rashpa_stream_next_sized(struct rashpa_stream *s, struct rashpa_stack *stack,
			     int64_t timeout_ns, size_t size)
{
	int64_t deadline = 0;
	uint64_t complete = 0;
	struct rashpa_stack taken;
	bool ended, emptied = false;
	int result, error;

	s->event_ns = s->woken_ns = 0;
	if (s->producer)
		return fail(EINVAL, "a producer takes no stacks");
	if (!s->attached) {
		deadline = deadline_of(timeout_ns);
		result = rashpa_stream_begin(s, timeout_ns);
		if (result)
			return result;
	}
	for (;;) {
		if (s->next >= s->end && !waits_for_others(s))
			return finish(s);
		result = look(s, &taken, &complete, &ended);
		if (result > 0)
			sized_copy(stack, size, &taken, sizeof(taken));
		if (result)
			return result;
		if (ended)
			return finish(s);
		/* drop records before a check; those after the last check stay in the queue */
		if (!emptied) {
			take_events(s);
			emptied = true;
			continue;
		}
		/* read the clock only before a wait */
		if (!deadline)
			deadline = deadline_of(timeout_ns);
		s->stat.waits += !!timeout_ns;
		s->event_ns = 0;
		result = stream_sleep(s, deadline);
		if (result && result != -ETIMEDOUT)
			return result;
		/* also without a sleep: a program that only polls must notice it */
		error = look_around(s);
		if (error)
			return error;
		if (result && !s->over)
			return fail(ETIMEDOUT, "buffer %s: no stack came in time, after %" PRIu64,
				    s->name, s->stat.stacks);
		take_events(s);
	}
}

/* --- what it is --- */

void rashpa_stream_get_stat_sized(struct rashpa_stream *s, struct rashpa_stream_stat *stat,
				  size_t size)
{
	struct rashpa_group_info info = { .id = s->group };
	struct rashpa_role role = {};
	uint64_t least, most;

	if (s->group && !rashpa_group_get_info(s->channel, &info))
		s->stat.overruns = info.out_overruns;
	if (!stream_role(s, &role)) {
		s->stat.producer = stream_who(&role, 0);
		s->stat.consumer = stream_who(&role, 1);
	}
	if (!s->stat.consumer)
		s->stat.consumer = place_consumer(s);
	s->stat.state = RASHPA_STREAM_IDLE;
	if (s->known && !s->producer && stream_same(s)) {
		s->stat.consumed = stream_consumed(s);
		s->stat.state = __atomic_load_n(&s->shared->state, __ATOMIC_ACQUIRE);
		least = stream_stacks(s, &most);
		s->stat.behind = least > s->next ? least - s->next : 0;
	}
	pthread_mutex_lock(&s->lock);
	sized_copy(stat, size, &s->stat, sizeof(s->stat));
	pthread_mutex_unlock(&s->lock);
}

int rashpa_stream_lock(const struct rashpa_stream *s, uint32_t index, struct rfpga_lock *record)
{
	if (!s->known || index >= s->head.locks)
		return fail(ERANGE, "there is no lock record %" PRIu32, index);
	if (!stream_lock_read(s, index, record))
		return fail(EAGAIN, "buffer %s: lock record %" PRIu32 " is being written all the time",
			    s->name, index);
	return 0;
}

const struct rashpa_stream_header *rashpa_stream_get_header(const struct rashpa_stream *s)
{
	return s->known ? &s->head : NULL;
}

const struct rashpa_stream_process *rashpa_stream_process_at(const struct rashpa_stream *s,
							     uint32_t index)
{
	return s->known && index < s->head.processes ? &s->process[index] : NULL;
}

int rashpa_stream_await_end_sized(struct rashpa_stream *s, struct rashpa_stream_header *count,
				  int64_t timeout_ns, size_t size)
{
	const int64_t deadline = deadline_of(timeout_ns);
	struct rashpa_stream_header now;
	int result;

	if (!s->known)
		return fail(EINVAL, "no stream has begun");
	for (;;) {
		uint32_t state;
		int producer;

		/* those after the look at the state end the sleep */
		take_events(s);
		state = __atomic_load_n(&s->shared->state, __ATOMIC_ACQUIRE);
		producer = stream_has_producer(s);
		if (producer < 0)
			return producer;
		now = s->head;
		now.sent = s->shared->sent;
		now.dropped = s->shared->dropped;
		now.lost = s->shared->lost;
		now.missed = s->shared->missed;
		sized_copy(count, size, &now, sizeof(now));
		if (!stream_undisturbed(s))
			return fail(ESTALE, "buffer %s: another stream began", s->name);
		if (state == RASHPA_STREAM_ENDED)
			return 0;
		if (!producer)
			return fail(EOWNERDEAD, "buffer %s: the producer is gone", s->name);
		result = stream_sleep(s, deadline);
		if (result == -ETIMEDOUT)
			return fail(ETIMEDOUT, "buffer %s: the producer does not end the stream",
				    s->name);
		if (result)
			return result;
	}
}
