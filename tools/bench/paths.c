// SPDX-License-Identifier: LGPL-2.1-or-later
/* Paths of events from a function to a waiting program. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "bench/event.h"
#include <rashpa.h>
#include "common/say.h"

#define RECORDS	16	/* taken by one read() */

/* --- time limit of waits --- */

volatile unsigned int ticks;

static void on_tick(int number)
{
	(void)number;
	ticks++;
}

void ticks_start(unsigned int ms)
{
	/* without SA_RESTART, the signal ends system calls that wait */
	const struct sigaction tick = { .sa_handler = on_tick };
	const struct itimerval every = {
		.it_interval = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 },
		.it_value = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 },
	};

	sigaction(SIGALRM, &tick, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

void stay_on_cpu(void)
{
	cpu_set_t set, one;
	int cpu = CPU_SETSIZE;

	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	/* the last CPU, as the first one has more other work */
	while (cpu-- > 0 && !CPU_ISSET(cpu, &set))
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* --- channel of this driver --- */

static int open_channel(struct path *p, struct rashpa_source_add *source, char *why)
{
	struct rashpa_channel_make events = { .depth = p->depth };
	int error = rashpa_ioctl(p->board->device, RASHPA_IOC_CHANNEL_MAKE, &events,
				 sizeof(events));

	if (error)
		return because(why, -1, "%s", rashpa_reason());
	p->channel = events.out_fd;
	p->ring_size = events.out_ring_size;
	error = rashpa_ioctl(p->channel, RASHPA_IOC_SOURCE_ADD, source, sizeof(*source));
	if (error)
		return because(why, -1, "%s", rashpa_reason());
	p->consumer = mmap(NULL, sizeof(*p->consumer), PROT_READ | PROT_WRITE, MAP_SHARED,
			   p->channel, events.out_consumer);
	return 0;
}

static int vector_open(struct path *p, char *why)
{
	struct rashpa_source_add source = {
		.kind = RASHPA_SOURCE_VECTOR, .device = -1, .memory = -1,
	};

	return open_channel(p, &source, why);
}

static uint64_t read_wait(struct path *p)
{
	struct rashpa_event records[RECORDS];
	ssize_t n = read(p->channel, records, sizeof(records));

	if (n <= 0)
		return 0;
	n /= sizeof(*records);
	p->last = records[n - 1];
	return n;
}

static int eventfd_open(struct path *p, char *why)
{
	/* the program reads only the count of the eventfd, so no records are needed */
	struct rashpa_source_add source = {
		.head.flags = RASHPA_SOURCE_QUIET, .kind = RASHPA_SOURCE_VECTOR,
		.device = -1, .memory = -1,
	};

	if (open_channel(p, &source, why))
		return -1;
	p->eventfd = eventfd(0, EFD_CLOEXEC);
	if (p->eventfd < 0)
		return because(why, -1, "eventfd: %s", strerror(errno));
	if (rashpa_channel_eventfd(p->channel, source.out_id, p->eventfd))
		return because(why, -1, "%s", rashpa_reason());
	return 0;
}

static uint64_t eventfd_wait(struct path *p)
{
	uint64_t n;

	return read(p->eventfd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

static int ring_open(struct path *p, char *why)
{
	void *ring;

	if (vector_open(p, why))
		return -1;
	if (p->consumer == MAP_FAILED)
		return because(why, -1, "mmap of the consumer's page: %s", strerror(errno));
	ring = mmap(NULL, p->ring_size, PROT_READ, MAP_SHARED, p->channel, 0);
	if (ring == MAP_FAILED)
		return because(why, -1, "mmap of the ring: %s", strerror(errno));
	p->ring = ring;
	p->seen = p->consumer->tail;
	return 0;
}

static const struct rashpa_event *ring_record(const struct path *p, uint64_t n)
{
	const struct rashpa_ring *r = p->ring;

	return (const void *)((const uint8_t *)r + r->record +
			      (n & (r->slots - 1)) * r->record_size);
}

static uint64_t ring_wait(struct path *p)
{
	unsigned int now = ticks;
	uint64_t head, n;

	do {
		head = __atomic_load_n(&p->ring->head, __ATOMIC_ACQUIRE);
	} while (head == p->seen && now == ticks);
	n = head - p->seen;
	if (!n)
		return 0;
	p->last = *ring_record(p, head - 1);
	p->seen = head;
	__atomic_store_n(&p->consumer->tail, head, __ATOMIC_RELEASE);
	return n;
}

static void channel_close(struct path *p)
{
	if (p->ring)
		munmap((void *)(uintptr_t)p->ring, p->ring_size);
	if (p->consumer && p->consumer != MAP_FAILED)
		munmap(p->consumer, sizeof(*p->consumer));
	if (p->channel >= 0)
		close(p->channel);
	if (p->eventfd >= 0)
		close(p->eventfd);
}

/* --- the lock record --- */

static int lock_open(struct path *p, char *why)
{
	(void)why;
	p->seen = 0;
	return 0;
}

/* A lock word has no queue: values that are overwritten before they are read are lost. */
static uint64_t lock_wait(struct path *p)
{
	unsigned int now = ticks;
	uint64_t stacks;

	do {
		stacks = board_stacks(p->board);
	} while (stacks == p->seen && now == ticks);
	if (stacks == p->seen)
		return 0;
	p->seen = stacks;
	return 1;
}

static void lock_close(struct path *p)
{
	(void)p;
}

static int poll_open(struct path *p, char *why)
{
	struct rashpa_source_add source = {
		.head.flags = RASHPA_SOURCE_POLL, .kind = RASHPA_SOURCE_LOCK,
		.memory = p->board->dmabuf, .bits = 64,
		.offset = p->board->length - 4096 + RFPGA_LOCK_STACKS,
		.condition = RASHPA_CONDITION_CHANGED, .period_us = p->period_us,
		/* the default limit of the driver for the CPU time of all timers */
		.budget = 100, .device = -1,
	};

	__atomic_store_n(board_lock(p->board) + RFPGA_LOCK_STACKS / 8, 0, __ATOMIC_RELEASE);
	return open_channel(p, &source, why);
}

/* --- the lock record, with a one-shot interrupt --- */

static int one_shot_open(struct path *p, char *why)
{
	struct rashpa_source_add source = {
		.head.flags = RASHPA_SOURCE_ONE_SHOT, .kind = RASHPA_SOURCE_LOCK,
		.memory = p->board->dmabuf, .bits = 64,
		.offset = p->board->length - 4096 + RFPGA_LOCK_STACKS,
		.condition = RASHPA_CONDITION_CHANGED, .device = -1,
	};

	p->seen = 0;
	__atomic_store_n(board_lock(p->board) + RFPGA_LOCK_STACKS / 8, 0, __ATOMIC_RELEASE);
	if (open_channel(p, &source, why))
		return -1;
	p->source = source.out_id;
	return 0;
}

/* A record has the number of complete stacks, so it may stand for several events. */
static uint64_t one_shot_wait(struct path *p)
{
	uint64_t n;

	if (!read_wait(p))
		return 0;
	n = p->last.value - p->seen;
	p->seen = p->last.value;
	return n;
}

static void one_shot_again(struct path *p)
{
	rashpa_channel_arm(p->channel, p->source);
}

/* --- VFIO --- */

static int vfio_path_open(struct path *p, char *why)
{
	p->eventfd = eventfd(0, EFD_CLOEXEC);
	if (p->eventfd < 0)
		return because(why, -1, "eventfd: %s", strerror(errno));
	return vfio_set_eventfd(&p->board->vfio, p->eventfd, why);
}

static void vfio_path_close(struct path *p)
{
	char why[WHY_SIZE];

	vfio_no_eventfd(&p->board->vfio, why);
	if (p->eventfd >= 0)
		close(p->eventfd);
}

/* --- uio_pci_generic --- */

static int uio_path_open(struct path *p, char *why)
{
	if (uio_count(&p->board->uio, &p->seen, why))
		return -1;
	board_clear_intx(p->board);
	return uio_enable(&p->board->uio, true, why);
}

static uint64_t uio_wait(struct path *p)
{
	uint32_t count, n;

	if (read(p->board->uio.device, &count, sizeof(count)) != sizeof(count))
		return 0;
	n = count - (uint32_t)p->seen;
	p->seen = count;
	return n;
}

/* The handler has disabled INTx in the command register. Clear the cause, then enable it again. */
static void uio_again(struct path *p)
{
	char why[WHY_SIZE];

	board_clear_intx(p->board);
	uio_enable(&p->board->uio, true, why);
}

static void uio_path_close(struct path *p)
{
	char why[WHY_SIZE];

	uio_enable(&p->board->uio, false, why);
	board_clear_intx(p->board);
}

/* --- all paths --- */

const struct path_kind path_kinds[PATHS] = {
	[PATH_READ] = { "channel, read", OURS, RFPGA_MODE_MSIX, vector_open, read_wait,
			channel_close, NULL },
	[PATH_EVENTFD] = { "channel, eventfd", OURS, RFPGA_MODE_MSIX, eventfd_open, eventfd_wait,
			   channel_close, NULL },
	[PATH_RING] = { "channel, ring", OURS, RFPGA_MODE_MSIX, ring_open, ring_wait,
			channel_close, NULL },
	[PATH_ONE_SHOT] = { "lock, one-shot", OURS, RFPGA_MODE_MSIX, one_shot_open, one_shot_wait,
			    channel_close, one_shot_again },
	[PATH_LOCK] = { "lock, spinning", OURS, 0, lock_open, lock_wait, lock_close, NULL },
	[PATH_POLL] = { "lock, timer", OURS, 0, poll_open, read_wait, channel_close, NULL },
	[PATH_VFIO] = { "vfio-pci, eventfd", VFIO, RFPGA_MODE_MSIX, vfio_path_open, eventfd_wait,
			vfio_path_close, NULL },
	/* uio_pci_generic does not enable MSI-X, so events come as INTx */
	[PATH_UIO] = { "uio_pci_generic, read", UIO, RFPGA_MODE_MSIX, uio_path_open, uio_wait,
		       uio_path_close, uio_again },
};

/* If this fails, results are valid, but vary more. */
static void pin_interrupt(struct board *b)
{
	static bool said;
	char why[WHY_SIZE];

	if (!board_pin_interrupt(b, why) || said)
		return;
	said = true;
	say("the interrupt is not pinned to a CPU, so results vary more: %s", why);
}

int path_open(struct path *p, char *why)
{
	p->channel = p->eventfd = -1;
	p->ring = NULL;
	p->consumer = NULL;
	p->ring_size = 0;
	p->last = (struct rashpa_event) {};
	if (p->kind->open(p, why)) {
		path_close(p);
		return -1;
	}
	if (p->kind->mode & RFPGA_MODE_MSIX)
		pin_interrupt(p->board);
	return 0;
}

void path_again(struct path *p)
{
	if (p->kind->again)
		p->kind->again(p);
}

void path_close(struct path *p)
{
	p->kind->close(p);
}
