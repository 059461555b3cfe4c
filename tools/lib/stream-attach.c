// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: the header of a stream, and its events. */
#include "lib/stream.h"
#include "lib/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LOOKS	16	/* at a record that is being written */

/* --- the header --- */

bool stream_same(const struct rashpa_stream *s)
{
	/* earlier reads come before the check */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&s->shared->magic, __ATOMIC_ACQUIRE) == RASHPA_STREAM_MAGIC &&
	       s->shared->generation == s->head.generation;
}

void stream_copy_words(void *to, const volatile void *from, size_t size)
{
	const volatile uint64_t *in = from;
	uint64_t *out = to;

	for (size_t i = 0; i < size / sizeof(*out); i++)
		out[i] = __atomic_load_n(&in[i], __ATOMIC_RELAXED);
}

/* The same magic, with another number at its end. */
static bool older(uint64_t magic)
{
	const uint64_t other = magic ^ RASHPA_STREAM_MAGIC;

	return other && other << 8 == 0 && magic >> 56 >= '1' && magic >> 56 <= '9';
}

int stream_copy(struct rashpa_stream *s)
{
	struct rashpa_stream_header *h = &s->head;
	struct rashpa_stream_process *process;
	const uint8_t *from;
	int error;

	const uint64_t magic = __atomic_load_n(&s->shared->magic, __ATOMIC_ACQUIRE);

	if (older(magic))
		return fail(EPROTO, "buffer %s: its stream has the format RASHPST%c, but this library knows only RASHPST3: use one version",
			    s->name, (int)(magic >> 56));
	if (magic != RASHPA_STREAM_MAGIC)
		return 0;
	stream_copy_words(h, s->shared, sizeof(*h));
	h->magic = RASHPA_STREAM_MAGIC;
	if (!stream_same(s))
		return 0;
	error = stream_check(h, s->buffer.length);
	if (error)
		return librashpa_prefix(error, "buffer %s: ", s->name);
	h->credit = stream_number(h->credit);
	process = calloc(h->processes, sizeof(*process));
	if (!process)
		return fail(ENOMEM, "no memory for %" PRIu32 " processes", h->processes);
	free(s->process);
	s->process = process;
	from = s->buffer.base + h->process_offset;
	for (uint32_t i = 0; i < h->processes; i++)
		stream_copy_words(&process[i], from + (uint64_t)i * h->process_size,
				  sizeof(*process));
	if (!stream_same(s))
		return 0;
	error = stream_check_processes(h, process);
	return error ? librashpa_prefix(error, "buffer %s: ", s->name) : 1;
}

/*
 * Open the memory that a stream names, if any. Keep an open one of the same name: the program may
 * still hold a stack in it.
 */
int stream_name_memory(struct rashpa_stream *s, struct memory *m, const char *name, bool write)
{
	int error;

	if (m->length && !strcmp(m->name, name))
		return 0;
	if (m->length && s->out)
		return fail(EBUSY, "%" PRIu64 " stacks of streams before are held: release them first",
			    s->out);
	memory_close(m);
	error = *name ? memory_open(s, m, name, write) : 0;
	/* a name without a buffer may be the memory of a program */
	if (error == -ENOENT && m == &s->payload)
		error = payload_open(s, m, name, write);
	strcpy(m->name, name);
	return error;
}

int stream_open_memories(struct rashpa_stream *s, bool write)
{
	const struct rashpa_stream_header *h = &s->head;
	const bool data = !(s->flags & RASHPA_STREAM_NO_DATA);
	uint64_t end;
	int error;

	error = stream_name_memory(s, &s->locks, h->lock_name, s->producer);
	if (!error && data)
		error = stream_name_memory(s, &s->payload, h->payload_name, write);
	if (error)
		return error;
	if (s->locks.base && (h->lock_offset % RFPGA_LOCK_SIZE ||
			      h->lock_offset > s->locks.length ||
			      h->locks * (uint64_t)RFPGA_LOCK_SIZE >
			      s->locks.length - h->lock_offset))
		return fail(EPROTO, "lock memory %s has %" PRIu64
			    " bytes: lock records lie outside", h->lock_name,
			    s->locks.length);
	s->lock_base = (s->locks.base ? s->locks.base : s->buffer.base) + h->lock_offset;
	s->data = NULL;
	if (!data)
		return 0;
	end = (h->slots - 1) * h->slot_stride + stream_extent(h, h->bunch);
	if (*h->payload_name && (h->data_offset > s->payload.length ||
				 end > s->payload.length - h->data_offset))
		return fail(EPROTO, "memory %s has %" PRIu64 " bytes: slots lie outside",
			    h->payload_name, s->payload.length);
	s->data = *h->payload_name ? s->payload.base : s->slots ? s->slots : s->buffer.base;
	if (s->data)
		s->data += h->data_offset;
	return 0;
}

int rashpa_stream_payload(struct rashpa_stream *s)
{
	if (s->flags & RASHPA_STREAM_NO_DATA)
		return fail(EINVAL, "buffer %s: the stream was opened without data", s->name);
	/* they come with the header of the first one */
	if (!s->process)
		return fail(ENODATA, "buffer %s: there was no stream yet", s->name);
	return memory_dmabuf(*s->head.payload_name ? &s->payload : &s->buffer);
}

/* --- lock records --- */

/* Stacks in a lock record; ignore late writes of an earlier run. */
static uint64_t lock_stacks(const struct rashpa_stream *s, uint32_t i)
{
	const volatile uint64_t *word = (const volatile uint64_t *)
					(s->lock_base + (uint64_t)i * RFPGA_LOCK_SIZE);
	uint64_t stacks = __atomic_load_n(word + RFPGA_LOCK_STACKS / 8, __ATOMIC_ACQUIRE);
	uint64_t run = __atomic_load_n(word + RFPGA_LOCK_RUN / 8, __ATOMIC_ACQUIRE);

	return run && run != s->head.run ? s->head.first_stack : stacks;
}

uint64_t stream_stacks(const struct rashpa_stream *s, uint64_t *most)
{
	uint64_t least = UINT64_MAX, stacks;

	*most = 0;
	for (uint32_t i = 0; i < s->head.locks; i++) {
		stacks = lock_stacks(s, i);
		least = stacks < least ? stacks : least;
		*most = stacks > *most ? stacks : *most;
	}
	return least;
}

uint32_t stream_lock_read(const struct rashpa_stream *s, uint32_t lock, struct rfpga_lock *record)
{
	for (int looks = 0; looks < LOOKS; looks++) {
		if (rfpga_lock_read(s->lock_base + (uint64_t)lock * RFPGA_LOCK_SIZE, record))
			return 1;
	}
	return 0;
}

/* --- events --- */

static int add(struct rashpa_stream *s, struct rashpa_source_add *source)
{
	int id = rashpa_channel_listen(s->channel, source);

	if (id > 0)
		s->sources[s->n_sources++] = id;
	return id;
}

/* Words that programs write: the state of the stream, and the consumer's credit. */
static int watch(struct rashpa_stream *s, struct memory *m, uint64_t offset, uint32_t bits)
{
	struct rashpa_source_add source = {
		.head.flags = RASHPA_SOURCE_LOOK,
		.kind = RASHPA_SOURCE_LOCK,
		.device = -1,
		.memory = memory_dmabuf(m),
		.offset = offset,
		.condition = RASHPA_CONDITION_CHANGED,
		.bits = bits,
	};

	return source.memory < 0 ? source.memory : add(s, &source);
}

static struct board *board_of(struct rashpa_stream *s, uint32_t number)
{
	for (uint32_t i = 0; i < s->boards; i++) {
		if (s->board[i].number == number)
			return &s->board[i];
	}
	return NULL;
}

static int open_bells(struct board *b)
{
	struct rashpa_window_make window = {
		.head.flags = RASHPA_WINDOW_BLANK, .name = "doorbells",
	};
	void *base;
	int error;

	b->window = rashpa_device_window(b->device, &window);
	if (b->window < 0)
		return b->window;
	error = rashpa_mmap(b->window, 0, window.out_length, PROT_READ | PROT_WRITE, &base);
	if (error)
		return error;
	b->bells = base;
	b->length = window.out_length;
	return 0;
}

static void close_board(struct board *b)
{
	if (b->bells)
		munmap((void *)(uintptr_t)b->bells, b->length);
	if (b->window >= 0)
		close(b->window);
	if (b->device >= 0)
		close(b->device);
}

/* Observers ring nothing, and a stream that overwrites asks for no credit. */
static int open_board(struct rashpa_stream *s, uint32_t number)
{
	const bool gives = !s->producer && !(s->flags & RASHPA_STREAM_OBSERVE);
	struct board *b = &s->board[s->boards];
	struct rashpa_source_add source = {
		.kind = RASHPA_SOURCE_DEVICE, .device = -1, .memory = -1,
	};
	char name[16];
	int error;

	if (s->boards == STREAM_BOARDS)
		return fail(EPROTO, "the stream has more than %d functions", STREAM_BOARDS);
	*b = (struct board) { .number = number, .window = -1 };
	b->device = rashpa_device_open(number);
	if (b->device < 0)
		return b->device;
	s->boards++;
	/* a listener turns bus mastering on, and a doorbell gives credit to any engine of it */
	snprintf(name, sizeof(name), "fpga%" PRIu32, number);
	error = stream_check_node(s, name, b->device, true);
	if (error)
		return error;
	if (gives)
		error = open_bells(b);
	if (error && s->head.policy == RASHPA_STREAM_OVERWRITE)
		error = 0;
	if (error)
		return librashpa_prefix(error, "fpga%" PRIu32 ": no doorbells: ", number);
	source.device = b->device;
	error = add(s, &source);
	return error < 0 ? error : 0;
}

/* Listen to the lock record that @process ends a stack with; a group makes the events instead. */
static int listen_lock(struct rashpa_stream *s, const struct rashpa_stream_process *p)
{
	struct memory *m = *s->head.lock_name ? &s->locks : &s->buffer;
	struct board *b = board_of(s, p->fpga);
	struct rashpa_source_add source = {
		.head.flags = RASHPA_SOURCE_QUIET | (p->function ? 0 : RASHPA_SOURCE_LOOK),
		.kind = RASHPA_SOURCE_LOCK,
		.index = p->function ? p->vector : 0,
		.device = p->function ? b->device : -1,
		.memory = memory_dmabuf(m),
		.offset = s->head.lock_offset + (uint64_t)p->lock * RFPGA_LOCK_SIZE +
			  RFPGA_LOCK_STACKS,
		.condition = RASHPA_CONDITION_CHANGED,
		.bits = 64,
	};

	return source.memory < 0 ? source.memory : add(s, &source);
}

/* One event for each stack that is complete in all processes. */
static int listen_group(struct rashpa_stream *s)
{
	struct rashpa_member member[RASHPA_STREAM_LOCKS] = {};
	uint64_t seen = 0;
	struct rashpa_group_make group = {
		.members = (uintptr_t)member,
		.member_size = sizeof(member[0]),
		/* other workers of the place release what this one does not see */
		.slots = s->shares ? 0 : s->head.slots,
		.full = RASHPA_FULL_NEVER,
		.first = s->next,
	};
	int id;

	for (uint32_t i = 0; i < s->head.processes; i++) {
		if (seen >> s->process[i].lock & 1)
			continue;
		seen |= UINT64_C(1) << s->process[i].lock;
		id = listen_lock(s, &s->process[i]);
		if (id < 0)
			return id;
		member[group.n_members++].source = id;
	}
	id = rashpa_channel_group(s->channel, &group);
	if (id < 0)
		return id;
	s->group = id;
	return 0;
}

static int driver_listen(struct rashpa_stream *s)
{
	int error = 0;

	for (uint32_t i = 0; i < s->head.processes && !error; i++) {
		const struct rashpa_stream_process *p = &s->process[i];

		if (p->function == RASHPA_STREAM_FPGA && !board_of(s, p->fpga))
			error = open_board(s, p->fpga);
	}
	for (uint32_t i = 0; i < s->head.processes && !error; i++) {
		const struct rashpa_stream_process *p = &s->process[i];
		const struct board *b = p->function ? board_of(s, p->fpga) : NULL;

		if (b && b->bells && (b->length < 8 || p->doorbell_offset > b->length - 8))
			error = fail(EPROTO, "fpga%" PRIu32 ": the doorbell of process %" PRIu32
				     " is outside the window \"doorbells\"", p->fpga, p->number);
	}
	return error ? error : listen_group(s);
}

/* Stop listening to a stream that is over; go on watching the state for the next one, and wakes. */
void stream_forget(struct rashpa_stream *s)
{
	if (s->group)
		rashpa_channel_del(s->channel, s->group);
	s->group = 0;
	while (s->n_sources > 2)
		rashpa_channel_del(s->channel, s->sources[--s->n_sources]);
	while (s->boards)
		close_board(&s->board[--s->boards]);
}

static void set_timer(struct rashpa_stream *s, int64_t at)
{
	const struct itimerspec when = { .it_value = { at / 1000000000, at % 1000000000 } };

	s->due = at;
	if (s->timer >= 0)
		timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

int stream_sleep(struct rashpa_stream *s, int64_t deadline)
{
	const int64_t tick = s->polls || s->lingers ? STREAM_POLL_NS : STREAM_TICK_NS;
	const int64_t now = clock_ns(), left = deadline - now;

	if (now >= s->due)
		set_timer(s, now + tick);
	if (left <= 0)
		return -ETIMEDOUT;
	if (__atomic_exchange_n(&s->wake, false, __ATOMIC_ACQUIRE))
		return fail(EINTR, "buffer %s: another thread ended the wait", s->name);
	return s->buffer.kind->wait(s, left < tick ? left : tick);
}

void rashpa_stream_wake(struct rashpa_stream *s)
{
	__atomic_store_n(&s->wake, true, __ATOMIC_RELEASE);
	s->buffer.kind->interrupt(s);
}

/* The descriptor of the memory, and a timer for changes without an event. */
int rashpa_stream_fd(struct rashpa_stream *s)
{
	struct epoll_event in = { .events = EPOLLIN };
	int set, timer, change, error;

	if (s->set >= 0)
		return s->set;
	change = s->buffer.kind->fd(s);
	if (change < 0)
		return change;
	set = epoll_create1(EPOLL_CLOEXEC);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (set < 0 || timer < 0 || epoll_ctl(set, EPOLL_CTL_ADD, change, &in) ||
	    epoll_ctl(set, EPOLL_CTL_ADD, timer, &in)) {
		error = fail(errno, "buffer %s: no descriptor for poll(): %s", s->name,
			     strerror(errno));
		close(set);
		close(timer);
		return error;
	}
	s->set = set;
	s->timer = timer;
	/* readable at once: a producer without a slot was not notified before */
	set_timer(s, clock_ns());
	return set;
}

int stream_has_producer(struct rashpa_stream *s)
{
	struct rashpa_role role = {};
	int error = stream_role(s, &role);

	return error ? error : !!(role.out_held & RASHPA_ROLE_PRODUCER);
}

/* --- buffers of the driver --- */

static int driver_open(const char *name, bool write)
{
	return rashpa_buffer_open(name, write ? O_RDWR : O_RDONLY);
}

static int driver_length(int node, uint64_t *length)
{
	struct rashpa_info info = { .fd = -1 };
	int error = rashpa_memory_get_info(node, &info);

	*length = info.out_length;
	return error;
}

static int driver_role(struct rashpa_stream *s, struct rashpa_role *role)
{
	return rashpa_buffer_role(s->buffer.node, role);
}

static int driver_attend(struct rashpa_stream *s)
{
	struct rashpa_channel_make make = {
		.sources = sizeof(s->sources) / sizeof(s->sources[0]) + 1,
	};
	int error;

	s->memory = rashpa_memory_open();
	if (s->memory < 0)
		return s->memory;
	s->channel = rashpa_channel_create(s->memory, &make);
	if (s->channel < 0)
		return s->channel;
	error = rashpa_ring_map(s->channel, &make, &s->queue);
	if (error)
		return error;
	error = watch(s, &s->buffer, s->producer ?
		      offsetof(struct rashpa_stream_header, credit) :
		      offsetof(struct rashpa_stream_header, state), s->producer ? 64 : 32);
	if (error >= 0)
		error = add(s, &(struct rashpa_source_add) {
			.kind = RASHPA_SOURCE_SOFTWARE, .device = -1, .memory = -1,
		});
	return error < 0 ? error : 0;
}

static bool driver_event(struct rashpa_stream *s, struct rashpa_event *event)
{
	return rashpa_ring_next(&s->queue, event);
}

static int driver_wait(struct rashpa_stream *s, int64_t ns)
{
	int error = rashpa_ring_wait(&s->queue, ns);

	return error == -ETIMEDOUT ? 0 : error;
}

static void driver_wake(struct rashpa_stream *s, struct memory *m)
{
	if (memory_dmabuf(m) >= 0)
		rashpa_memory_look(s->memory, m->dmabuf);
}

static void driver_interrupt(struct rashpa_stream *s)
{
	rashpa_channel_signal(s->channel, 0);
}

static int driver_fd(struct rashpa_stream *s)
{
	return s->channel;
}

static void driver_leave(struct rashpa_stream *s)
{
	if (s->channel >= 0)
		stream_forget(s);
	rashpa_ring_unmap(&s->queue);
	if (s->memory >= 0)
		close(s->memory);
}

const struct memory_kind memory_driver = {
	.open = driver_open,
	.length = driver_length,
	.dmabuf = rashpa_buffer_dmabuf,
	.role = driver_role,
	.attend = driver_attend,
	.listen = driver_listen,
	.event = driver_event,
	.wait = driver_wait,
	.wake = driver_wake,
	.interrupt = driver_interrupt,
	.fd = driver_fd,
	.leave = driver_leave,
};
