// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: producers of streams, by hardware or by a program. See rashpa-stream.h. */
#include "lib/stream.h"
#include "lib/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FILE_SLOTS	8	/* of a file that has to be made */

/* Random id that differs from all earlier runs, also those of other producers; not 0. */
static uint32_t new_run(void)
{
	uint32_t run;

	if (getrandom(&run, sizeof(run), 0) != sizeof(run))
		run = clock_ns();
	return run | 1;
}

static bool overlap(const struct rashpa_stream_process *a, const struct rashpa_stream_process *b)
{
	return a->x < b->x + b->width && b->x < a->x + a->width &&
	       a->y < b->y + b->height && b->y < a->y + a->height;
}

/* Pixels that no process fills; UINT64_MAX: two fill the same. */
static uint64_t unfilled(const struct rashpa_stream *s)
{
	const struct rashpa_stream_header *h = &s->head;
	uint64_t left = (uint64_t)h->width * h->height;

	for (uint32_t i = 0; i < h->processes; i++) {
		for (uint32_t j = 0; j < i; j++) {
			if (overlap(&s->process[i], &s->process[j]))
				return UINT64_MAX;
		}
		left -= (uint64_t)s->process[i].width * s->process[i].height;
	}
	return left;
}

/* Where the consumer of the last stream stopped. */
static int resume(struct rashpa_stream *s, const struct rashpa_stream_header *plan)
{
	int found = stream_copy(s);

	if (found < 0)
		return librashpa_prefix(found, "there is nothing to resume: ");
	if (!found)
		return fail(ENODATA, "buffer %s: there is nothing to resume: no stream was ever here",
			    s->name);
	if (s->head.bunch != plan->bunch)
		return fail(EINVAL, "buffer %s: the last run had %" PRIu32
			    " images per stack: resume with as many", s->name, s->head.bunch);
	return 0;
}

/* Copy only the fields that the caller sets. */
static void take_plan(struct rashpa_stream *s, const struct rashpa_stream_plan *plan,
		      uint64_t first_stack)
{
	const struct rashpa_stream_header *p = &plan->header;
	struct rashpa_stream_header *h = &s->head;

	*h = (struct rashpa_stream_header) {
		.magic = RASHPA_STREAM_MAGIC,
		.run = new_run(),
		.width = p->width,
		.height = p->height,
		.pixel = p->pixel,
		.bit_depth = p->bit_depth,
		.big_endian = p->big_endian,
		.bunch = p->bunch,
		.slots = p->slots,
		.policy = p->policy,
		.images = p->images,
		.first_stack = first_stack,
		.sampling = p->sampling ? p->sampling : 1,
		.phase = p->phase,
		.unit = p->unit,
		.live = p->live,
		.dataset_images = p->dataset_images,
		.dark_every = p->dark_every,
		.dataset_sum = p->dataset_sum,
		.content = p->content,
		.processes = plan->processes,
		.modules = plan->modules ? plan->modules : 1,
		.tick_tai = p->tick_tai,
		.tick_ns = p->tick_ns,
		.tick_of = p->tick_of,
		.credit = first_stack,
	};
	memcpy(h->dataset, p->dataset, sizeof(h->dataset));
	memcpy(h->lock_name, p->lock_name, sizeof(h->lock_name));
	memcpy(h->payload_name, p->payload_name, sizeof(h->payload_name));
	h->dataset[sizeof(h->dataset) - 1] = '\0';
	h->lock_name[sizeof(h->lock_name) - 1] = '\0';
	h->payload_name[sizeof(h->payload_name) - 1] = '\0';
}

/* The plan of a program, whose structs may be of another version. */
struct wish {
	struct rashpa_stream_plan plan;
	size_t process_size, module_size;	/* elements of its arrays */
};

/* Processes, and how many lock records and messages they have. */
static int take_processes(struct rashpa_stream *s, const struct wish *wish, uint64_t *messages)
{
	const struct rashpa_stream_plan *plan = &wish->plan;
	struct rashpa_stream_header *h = &s->head;
	bool software = true;

	if (!plan->processes || plan->processes > RASHPA_STREAM_PROCESSES ||
	    plan->modules > RASHPA_STREAM_PROCESSES)
		return fail(EINVAL, "%" PRIu32 " processes and %" PRIu32
			    " modules: 1 to %d are possible", plan->processes, plan->modules,
			    RASHPA_STREAM_PROCESSES);
	free(s->process);
	s->process = calloc(plan->processes, sizeof(*s->process));
	if (!s->process)
		return fail(ENOMEM, "no memory for %" PRIu32 " processes", plan->processes);
	*messages = 0;
	for (uint32_t i = 0; i < plan->processes; i++) {
		struct rashpa_stream_process *p = &s->process[i];

		sized_copy(p, sizeof(*p), (const char *)plan->process + i * wish->process_size,
			   wish->process_size);
		software &= p->function == RASHPA_STREAM_SOFTWARE;
		p->message = *messages;
		*messages += p->messages;
	}
	/* a program completes stacks, not parts of them */
	h->locks = software ? 1 : h->processes;
	for (uint32_t i = 0; i < plan->processes; i++)
		s->process[i].lock = software ? 0 : i;
	h->record_size = software ? sizeof(struct rashpa_stream_record) : 0;
	if (h->locks > RASHPA_STREAM_LOCKS)
		return fail(EINVAL, "%" PRIu32 " processes of functions: %d are possible",
			    h->locks, RASHPA_STREAM_LOCKS);
	if (*messages > UINT32_MAX / 2)
		return fail(EINVAL, "%" PRIu64 " messages in a stack are too many", *messages);
	return 0;
}

static int check_plan(const struct rashpa_stream_plan *plan)
{
	if (plan->flags & ~(RASHPA_PLAN_META | RASHPA_PLAN_RESUME))
		return fail(EINVAL, "flags %#" PRIx32 " are not defined", plan->flags);
	if (!plan->header.width || !plan->header.height || !plan->header.bunch ||
	    !stream_pixel_bytes(plan->header.pixel))
		return fail(EINVAL, "the image has no pixels or no type of pixel, or the stack no images");
	return 0;
}

/* A file that is not there yet gets room for the slots of the plan. */
static int make_file(const char *path, const struct wish *wish)
{
	struct rashpa_stream s = {};
	struct rashpa_stream_header *h = &s.head;
	uint64_t messages;
	int error;

	take_plan(&s, &wish->plan, 0);
	error = take_processes(&s, wish, &messages);
	h->slots = h->slots ? h->slots : FILE_SLOTS;
	if (!error && !h->record_size)
		error = fail(ENOTSUP, "file %s: the processes are boards: these write buffers of the driver", path);
	if (!error)
		error = stream_layout(h, messages, wish->plan.flags & RASHPA_PLAN_META, INT64_MAX, INT64_MAX);
	if (!error)
		error = file_make(path, h->claim_offset + h->slots * UINT64_C(8) * RASHPA_STREAM_PLACES);
	free(s.process);
	return error;
}

/*
 * A producer that was killed leaves RUNNING behind, and what is left of any stream is about to be
 * overwritten.
 */
static void retire(struct rashpa_stream *s)
{
	if (s->shared->magic == RASHPA_STREAM_MAGIC) {
		__atomic_store_n(&s->shared->state, RASHPA_STREAM_IDLE, __ATOMIC_RELEASE);
		stream_tell(s, &s->buffer);
	}
}

static void clear_slots(struct rashpa_stream *s)
{
	for (uint32_t i = 0; i < s->head.slots; i++)
		memset(stream_data(s, i), 0,
		       stream_extent(&s->head, s->head.bunch));
}

static int prepare(struct rashpa_stream *s, const struct wish *wish)
{
	const struct rashpa_stream_plan *plan = &wish->plan;
	uint64_t messages = 0, first = plan->header.first_stack, left;
	struct rashpa_role role = { .take = RASHPA_ROLE_PRODUCER };
	int error = 0;

	if (plan->flags & RASHPA_PLAN_RESUME) {
		error = resume(s, &plan->header);
		first = error ? 0 : stream_consumed(s);
	}
	if (error)
		return error;
	take_plan(s, plan, first);
	error = take_processes(s, wish, &messages);
	if (!error)
		error = stream_name_memory(s, &s->payload, s->head.payload_name, true);
	if (!error)
		error = stream_layout(&s->head, messages, plan->flags & RASHPA_PLAN_META,
				      s->buffer.length, s->payload.length);
	if (!error)
		error = stream_check(&s->head, s->buffer.length);
	if (!error)
		error = stream_check_processes(&s->head, s->process);
	if (!error)
		error = stream_open_memories(s, true);
	if (error)
		return error;
	/* other streams may not use what is only for this one */
	if (s->locks.base)
		error = rashpa_buffer_role(s->locks.node, &role);
	if (!error && s->payload.node >= 0)
		error = rashpa_buffer_role(s->payload.node, &role);
	if (error)
		return error;
	left = unfilled(s);
	if (left == UINT64_MAX)
		return fail(EINVAL, "two processes fill the same pixels");
	s->slot = calloc(s->head.slots, sizeof(*s->slot));
	if (!s->slot)
		return fail(ENOMEM, "no memory for %" PRIu32 " slots", s->head.slots);
	retire(s);
	/* pixels that no process writes must not show an old image */
	if (left && s->data)
		clear_slots(s);
	return 0;
}

static void store_tables(struct rashpa_stream *s, const struct wish *wish)
{
	const struct rashpa_stream_header *h = &s->head;
	const struct rashpa_stream_module whole = { .width = h->width, .height = h->height };
	const struct rashpa_stream_plan *plan = &wish->plan;
	const char *from = plan->modules ? (const char *)plan->module : (const char *)&whole;
	const size_t size = plan->modules ? wish->module_size : sizeof(whole);
	uint8_t *to = s->buffer.base + h->module_offset;

	memcpy(s->buffer.base + h->process_offset, s->process, h->processes * sizeof(*s->process));
	for (uint32_t i = 0; i < h->modules; i++)
		sized_copy(to + i * sizeof(whole), sizeof(whole), from + i * size, size);
}

/* Nothing is between the header and the rest, in no version. */
_Static_assert(offsetof(struct rashpa_stream_plan, process) == sizeof(struct rashpa_stream_header),
	       "the rest of a plan follows its header");

int rashpa_stream_create_sized(const char *buffer, const struct rashpa_stream_plan *from,
			       struct rashpa_stream **stream, size_t plan_size,
			       size_t header_size, size_t process_size, size_t module_size)
{
	struct wish wish = { .process_size = process_size, .module_size = module_size };
	struct rashpa_stream_plan *plan = &wish.plan;
	struct rashpa_stream *s;
	int error;

	*stream = NULL;
	if (plan_size < header_size)
		return fail(EINVAL, "a plan of %zu bytes has no header of %zu", plan_size,
			    header_size);
	sized_copy(&plan->header, sizeof(plan->header), from, header_size);
	sized_copy(&plan->process, sizeof(*plan) - sizeof(plan->header),
		   (const char *)from + header_size, plan_size - header_size);
	error = check_plan(plan);
	if (!error && buffer && strchr(buffer, '/'))
		error = make_file(buffer, &wish);
	if (!error)
		error = stream_open(buffer, 0, true, stream);
	if (error)
		return error;
	s = *stream;
	error = place_prepare(s);
	if (!error)
		error = prepare(s, &wish);
	if (!error) {
		/* no process reads the header while magic is 0 */
		__atomic_store_n(&s->shared->magic, 0, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		/* a consumer with the lock still writes claims of the stream before */
		error = place_prepare(s);
	}
	if (!error) {
		store_tables(s, &wish);
		s->next = s->complete = s->head.first_stack;
		s->frame = s->head.first_stack * s->head.bunch;
		s->end = stream_end(&s->head);
		s->close_after = plan->close_after;
		s->close_ns = plan->close_ns;
		s->known = true;
		return 0;
	}
	librashpa_prefix(error, "stream in buffer %s: ", buffer);
	stream_close(s);
	*stream = NULL;
	return error;
}

int rashpa_stream_buffer(const struct rashpa_stream *s)
{
	return s->buffer.node;
}

int rashpa_stream_lock_memory(const struct rashpa_stream *s)
{
	return s->locks.base ? s->locks.node : s->buffer.node;
}

uint64_t rashpa_stream_meta(const struct rashpa_stream *s, uint32_t process)
{
	return s->head.meta_slot ? (uint64_t)(stream_meta(s, process, 0, 0) - s->buffer.base) : 0;
}

/* All records are those of a run that begins. */
static void prepare_locks(struct rashpa_stream *s)
{
	for (uint32_t i = 0; i < s->head.locks; i++) {
		volatile uint64_t *lock = (volatile uint64_t *)
					  (s->lock_base + (uint64_t)i * RFPGA_LOCK_SIZE);

		for (unsigned int word = 0; word < RFPGA_LOCK_SIZE / sizeof(*lock); word++)
			lock[word] = 0;
		lock[RFPGA_LOCK_RUN / sizeof(*lock)] = s->head.run;
		lock[RFPGA_LOCK_BEGUN / sizeof(*lock)] = s->head.first_stack;
		lock[RFPGA_LOCK_STACKS / sizeof(*lock)] = s->head.first_stack;
	}
}

int rashpa_stream_start(struct rashpa_stream *s, uint32_t segments, uint32_t map_class)
{
	const uint64_t joins = s->shared->credit - stream_credit(s) + (UINT64_C(1) << STREAM_NUMBER_BITS);
	struct rashpa_stream_header *h = &s->head;
	int error;

	if (!s->producer || s->started)
		return fail(EINVAL, "the stream is not a producer's, or runs already");
	h->generation = s->shared->generation + 1;
	h->credit = h->first_stack;
	h->segments = segments;
	h->map_class = map_class;
	h->state = RASHPA_STREAM_RUNNING;
	h->start_ns = clock_ns();
	h->magic = 0;
	prepare_locks(s);
	if (h->record_size)
		memset(s->buffer.base + h->record_offset, 0, h->slots * h->record_size);
	error = place_reset(s);
	if (error)
		return error;
	h->credit |= joins;
	memcpy((void *)(uintptr_t)s->shared, h, sizeof(*h));
	s->clocked = 0;
	stream_keep_clock(s, h->start_ns);
	h->credit = h->first_stack;
	h->magic = RASHPA_STREAM_MAGIC;
	__atomic_store_n(&s->shared->magic, RASHPA_STREAM_MAGIC, __ATOMIC_RELEASE);
	__sync_synchronize();
	s->started = true;
	stream_tell(s, &s->buffer);
	return 0;
}

uint64_t rashpa_stream_complete(const struct rashpa_stream *stream)
{
	struct rashpa_stream *s = (struct rashpa_stream *)(uintptr_t)stream;
	uint64_t most;

	if (s->started && !s->ended && stream_same(s) && !pthread_mutex_trylock(&s->lock)) {
		stream_keep_clock(s, clock_ns());
		pthread_mutex_unlock(&s->lock);
	}
	return stream_stacks(s, &most);
}

int rashpa_stream_again(struct rashpa_stream *s, uint64_t *first)
{
	const uint64_t complete = rashpa_stream_complete(s);

	if (!s->producer || !s->started || s->ended)
		return fail(EINVAL, "the stream is not a producer's, or does not run");
	if (!stream_same(s))
		return fail(ESTALE, "buffer %s: another producer began a stream", s->name);
	/* a consumer that wrote too large a value harms only itself */
	if (stream_credit(s) < complete &&
	    (s->head.policy != RASHPA_STREAM_OVERWRITE || place_consumer(s)))
		return fail(EAGAIN, "buffer %s: the consumer still holds stacks", s->name);
	for (uint32_t i = 0; i < s->head.locks; i++) {
		volatile uint64_t *lock = (volatile uint64_t *)
					  (s->lock_base + (uint64_t)i * RFPGA_LOCK_SIZE);

		__atomic_store_n(lock + RFPGA_LOCK_BEGUN / 8, complete, __ATOMIC_RELAXED);
		__atomic_store_n(lock + RFPGA_LOCK_STACKS / 8, complete, __ATOMIC_RELEASE);
	}
	__sync_synchronize();
	*first = complete;
	return 0;
}

int rashpa_stream_end_sized(struct rashpa_stream *s, const struct rashpa_stream_header *from,
			    size_t size)
{
	struct rashpa_stream_header count = { .sent = s->stat.frames };	/* 0 of hardware */

	if (!s->producer || !s->started || s->ended)
		return fail(EINVAL, "the stream is not a producer's, or does not run");
	s->ended = true;
	/* another producer's stream has replaced ours: do not end that one */
	if (!stream_same(s))
		return fail(ESTALE, "buffer %s: another producer began a stream", s->name);
	__atomic_store_n(&s->shared->state, RASHPA_STREAM_DRAINING, __ATOMIC_RELEASE);
	count.dropped = s->stat.skipped / s->head.bunch;
	if (from)
		sized_copy(&count, sizeof(count), from, size);
	__atomic_store_n(&s->shared->sent, count.sent, __ATOMIC_RELAXED);
	__atomic_store_n(&s->shared->dropped, count.dropped, __ATOMIC_RELAXED);
	__atomic_store_n(&s->shared->lost, count.lost, __ATOMIC_RELAXED);
	__atomic_store_n(&s->shared->missed, count.missed, __ATOMIC_RELAXED);
	__atomic_store_n(&s->shared->state, RASHPA_STREAM_ENDED, __ATOMIC_RELEASE);
	stream_tell(s, &s->buffer);
	return 0;
}

/* --- slots that a program fills --- */

static uint32_t messages_of(const struct rashpa_stream *s)
{
	const struct rashpa_stream_process *last = &s->process[s->head.processes - 1];

	return last->message + last->messages;
}

/* Publish all stacks up to the first gap. Called with s->lock held. */
static void tell_complete(struct rashpa_stream *s)
{
	const struct rashpa_stream_header *h = &s->head;
	volatile uint64_t *lock = (volatile uint64_t *)s->lock_base;
	uint64_t before = s->complete;
	struct open_slot *slot;

	while (slot = &s->slot[s->complete % h->slots],
	       slot->number == s->complete + 1 && slot->published)
		s->complete++;
	if (s->complete == before)
		return;
	__atomic_store_n(lock + RFPGA_LOCK_BEGUN / 8, s->complete, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	lock[RFPGA_LOCK_IMAGES / 8] = stream_images(h, h->first_stack, s->complete);
	lock[RFPGA_LOCK_DROPPED / 8] = s->stat.skipped / h->bunch;
	lock[RFPGA_LOCK_FRAME / 8] = s->frame - 1;
	__atomic_store_n(lock + RFPGA_LOCK_STACKS / 8, s->complete, __ATOMIC_RELEASE);
	stream_tell(s, s->locks.base ? &s->locks : &s->buffer);
}

/* s->lock is held. */
static int publish(struct rashpa_stream *s, uint64_t number)
{
	struct open_slot *slot = &s->slot[number % s->head.slots];
	struct rashpa_stream_record *r = stream_record(s, number);

	if (slot->number != number + 1 || slot->published)
		return fail(ESTALE, "stack %" PRIu64 " was published already", number);
	slot->published = true;
	r->missing = slot->left;
	r->time_ns = clock_ns();
	stream_keep_clock(s, r->time_ns);
	__atomic_store_n(&r->stack, number + 1, __ATOMIC_RELEASE);
	s->stat.stacks++;
	s->stat.frames += r->images;
	s->stat.incomplete += !!slot->left;
	tell_complete(s);
	return 0;
}

/* Publish stacks that wait too long for missing messages. Called with s->lock held. */
static void close_late(struct rashpa_stream *s)
{
	int64_t now = s->close_ns ? clock_ns() : 0;

	for (uint64_t k = s->complete; k < s->next; k++) {
		struct open_slot *slot = &s->slot[k % s->head.slots];

		if (slot->number != k + 1 || slot->published)
			continue;
		if ((s->close_after && k + s->close_after < s->next) ||
		    (s->close_ns && now - (int64_t)slot->begun_ns > (int64_t)s->close_ns))
			publish(s, k);
	}
}

/* Whether stack s->next has a free slot. Called with s->lock held. */
static bool has_room(struct rashpa_stream *s)
{
	const struct rashpa_stream_header *h = &s->head;
	uint64_t consumed = stream_credit(s);

	close_late(s);
	/* do not trust the consumer's value: limit it to the complete stacks */
	if (consumed > s->complete)
		consumed = s->complete;
	if (h->policy == RASHPA_STREAM_OVERWRITE)
		consumed = s->complete;
	return s->next < consumed + h->slots;
}

static void begin_slot(struct rashpa_stream *s, struct rashpa_stack *st)
{
	const struct rashpa_stream_header *h = &s->head;
	struct rashpa_stream_record *r = stream_record(s, s->next);
	struct open_slot *slot = &s->slot[s->next % h->slots];

	*st = (struct rashpa_stack) {
		.stream = s,
		.number = s->next,
		.slot = s->next % h->slots,
		.run = h->run,
		.frame = s->frame,
		.images = stream_images(h, s->next, s->next + 1),
		.width = h->width,
		.height = h->height,
		.pixel = h->pixel,
		.pixel_bytes = stream_pixel_bytes(h->pixel),
		.line_stride = h->line_stride,
		.image_stride = h->image_stride,
		.skipped = s->stat.skipped,
	};
	st->data = stream_data(s, st->slot);
	*slot = (struct open_slot) {
		.number = s->next + 1,
		.begun_ns = s->close_ns ? clock_ns() : 0,
		.left = messages_of(s),
	};
	/* readers of the old stack see that its slot was reused */
	__atomic_store_n(&r->begun, s->next + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*r = (struct rashpa_stream_record) {
		.begun = s->next + 1,
		.run = h->run,
		.frame = st->frame,
		.images = st->images,
	};
	if (h->map_slot)
		memset(stream_map(s, s->next), 0, h->map_slot);
	s->next++;
	s->frame += st->images;
}

/* 1: there is, 0: not now */
static int try_slot(struct rashpa_stream *s, struct rashpa_stack *stack)
{
	bool room;

	pthread_mutex_lock(&s->lock);
	room = has_room(s);
	if (room)
		begin_slot(s, stack);
	pthread_mutex_unlock(&s->lock);
	return room;
}

int rashpa_stream_slot_sized(struct rashpa_stream *s, struct rashpa_stack *to, int64_t timeout_ns,
			     size_t size)
{
	const struct rashpa_stream_header *h = &s->head;
	const int64_t deadline = deadline_of(timeout_ns);
	struct rashpa_stack stack = {};
	struct rashpa_event event;
	int result = 0;

	if (!s->producer || !s->started || !h->record_size)
		return fail(EINVAL, "the stream does not run, or no program fills its slots");
	if (s->next >= s->end)
		return 0;
	while (!try_slot(s, &stack)) {
		if (h->policy == RASHPA_STREAM_DROP) {
			s->stat.skipped += h->bunch;
			s->frame += h->bunch;
			return fail(ENOBUFS, "buffer %s: no slot was free: the stack is left out",
				    s->name);
		}
		/* records after the last check stay in the queue */
		while (stream_event(s, &event))
			;
		__atomic_store_n(&s->shared->waiting, 1, __ATOMIC_RELAXED);
		__sync_synchronize();
		if (try_slot(s, &stack))
			break;
		s->stat.waits++;
		result = stream_sleep(s, deadline);
		if (result)
			break;
	}
	/* a program that polls the descriptor goes on waiting */
	if (result != -ETIMEDOUT || s->set < 0)
		__atomic_store_n(&s->shared->waiting, 0, __ATOMIC_RELAXED);
	if (result == -ETIMEDOUT)
		return fail(ETIMEDOUT, "buffer %s: no slot became free in time: is there a consumer (romulu)?",
			    s->name);
	if (result)
		return result;
	sized_copy(to, size, &stack, sizeof(stack));
	return 1;
}

int rashpa_stream_valid(const struct rashpa_stack *stack, uint32_t process, uint32_t message)
{
	struct rashpa_stream *s = stack->stream;
	uint64_t *map, bit, one;
	struct open_slot *slot;
	int result;

	if (!s->producer || !s->head.record_size)
		return fail(EINVAL, "no program fills the slots of this stream");
	if (process >= s->head.processes || message >= s->process[process].messages)
		return fail(ERANGE, "there is no message %" PRIu32 " of process %" PRIu32, message,
			    process);
	bit = s->process[process].message + message;
	one = UINT64_C(1) << bit % 64;
	map = stream_map(s, stack->number) + bit / 64;
	pthread_mutex_lock(&s->lock);
	slot = &s->slot[stack->number % s->head.slots];
	if (slot->number != stack->number + 1) {
		result = fail(ESTALE, "stack %" PRIu64 " has no slot any more", stack->number);
	} else if (*map & one || (!slot->left && !slot->published)) {
		result = fail(EEXIST, "message %" PRIu32 " of process %" PRIu32 " came twice",
			      message, process);
	} else if (slot->published) {
		result = fail(ESTALE, "stack %" PRIu64 " was published already", stack->number);
	} else {
		*map |= one;
		result = --slot->left;
	}
	pthread_mutex_unlock(&s->lock);
	return result;
}

int rashpa_stack_describe_sized(const struct rashpa_stack *stack, uint32_t process, uint32_t index,
				const struct rashpa_image *from, size_t size)
{
	const struct rashpa_stream *s = stack->stream;
	uint32_t word[RFPGA_META_SIZE / 4] = {};
	struct rashpa_image image;
	uint64_t at[2];
	uint32_t lines;

	if (!s->producer)
		return fail(EINVAL, "only a producer describes images");
	if (!s->head.meta_slot)
		return fail(ENODATA, "the stream has no metadata");
	if (process >= s->head.processes || index >= s->head.bunch)
		return fail(ERANGE, "there is no image %" PRIu32 " of process %" PRIu32, index,
			    process);
	sized_copy(&image, sizeof(image), from, size);
	lines = image.missing_lines;
	at[0] = image.frame;
	at[1] = stack->number;
	memcpy(word, at, sizeof(at));
	if (lines)
		word[RFPGA_META_STATUS / 4] = RFPGA_META_LINES |
					      (lines < 0xffff ? lines : 0xffff) << 16;
	word[RFPGA_META_ROLE / 4] = image.role;
	memcpy(word + RFPGA_META_TRIGGER / 4, &image.trigger, sizeof(image.trigger));
	memcpy(word + RFPGA_META_TIME / 4, &image.time, sizeof(image.time));
	word[RFPGA_META_RUN / 4] = s->head.run;
	memcpy(stream_meta(s, process, stack->number, index), word, sizeof(word));
	return 0;
}

int rashpa_stream_publish(struct rashpa_stream *s, const struct rashpa_stack *stack)
{
	struct rashpa_stream_record *r;
	struct open_slot *slot;
	int result;

	if (!s->producer || !s->head.record_size || stack->images > s->head.bunch)
		return fail(EINVAL, "no program fills the slots of this stream, or the stack has too many images");
	r = stream_record(s, stack->number);
	pthread_mutex_lock(&s->lock);
	slot = &s->slot[stack->number % s->head.slots];
	if (slot->number == stack->number + 1 && !slot->published) {
		r->frame = stack->frame;
		r->images = stack->images;
		memcpy(r->user, stack->user, sizeof(r->user));
	}
	result = publish(s, stack->number);
	pthread_mutex_unlock(&s->lock);
	return result;
}
