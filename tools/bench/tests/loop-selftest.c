// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=20 run=build/tools/loop-selftest */
/*
 * The drives of rashpa-bench loop, with a stand-in for the board: a thread that has a ring in
 * loopback in memory of this process. TAP. Argument: the GPU, for rashpa_gpu_open().
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/loop/loop.h"
#include <rashpa.h>
#include "tests/tap.h"

#define PAGE		4096u
#define DATAGRAMS	400u
#define TICK_NS		1000u

/* words of loop.c */
enum { STOP, END, RECEIVED, SENT, EVENTS, STALE, LATE, DISORDER, CONTENT, DOUBLED, SPUN = 14 };

struct board {
	struct loop *loop;
	volatile uint32_t *word;	/* the memory */
	pthread_t thread;
	bool stop;
	uint32_t events, sent;
	bool wrong;		/* change a word of each datagram */
};

static uint32_t ticks(void)
{
	return now_ns() / TICK_NS;
}

static void event(struct board *b, uint32_t kind, uint32_t offset, uint32_t context)
{
	const struct loop_plan *p = &b->loop->plan;
	const uint32_t slot = b->events & ((1u << p->events_log2) - 1);
	volatile uint32_t *e = b->word + p->events + slot * 8;

	e[0] = context;
	e[2] = offset;
	e[3] = p->words * 4;
	e[4] = kind;
	e[5] = ticks();
	__atomic_store_n(&e[7], RFPGA_RING_GENERATION(p->run, b->events, p->events_log2),
			 __ATOMIC_RELEASE);
	b->events++;
	if (b->loop->drive->launch)
		(void)!write(b->loop->channel, &(uint64_t){ 1 }, sizeof(uint64_t));
}

/* Send one datagram to ourselves. */
static void datagram(struct board *b)
{
	const struct loop_plan *p = &b->loop->plan;
	const uint32_t slot = b->sent & ((1u << p->descriptors_log2) - 1);
	volatile uint32_t *word = b->word, *d = word + p->descriptors + slot * 16;
	const uint32_t from = d[0] / 4;
	uint32_t to;

	event(b, RFPGA_EVENT_SENT, b->sent, d[6]);
	to = (b->events & ((1u << p->events_log2) - 1)) << p->slot_log2;
	for (uint32_t k = 0; k < p->words; k++)
		word[p->receive + to + k] = word[from + k] + (b->wrong && k == 5);
	event(b, RFPGA_EVENT_RECEIVED, to * 4, b->sent);
	b->sent++;
}

static void *board_main(void *arg)
{
	struct board *b = arg;
	const volatile uint32_t *bell = (const volatile uint32_t *)b->loop->page + 4;

	while (!__atomic_load_n(&b->stop, __ATOMIC_RELAXED)) {
		const uint32_t tail = __atomic_load_n(bell, __ATOMIC_ACQUIRE) & 0xffff;

		if (tail != (b->sent & 0xffff))
			datagram(b);
		else
			usleep(10);
	}
	return NULL;
}

static int run_board(struct board *b, struct loop_drive *d, char *why)
{
	struct loop *l = b->loop;
	volatile uint32_t *told = l->word + l->plan.told;
	const uint32_t whole = l->length / 4;
	char other[WHY_SIZE];
	int error;

	pthread_create(&b->thread, NULL, board_main, b);
	error = d->begin(d, l, why);
	/* a datagram that was changed has no answer */
	for (unsigned int ms = 0; !error && ms < 60000 && told[CONTENT] < l->plan.window &&
	     !__atomic_load_n(&told[END], __ATOMIC_ACQUIRE); ms++) {
		usleep(1000);
		loop_get(l, l->plan.told, 16);
	}
	told[STOP] = 1;
	loop_put(l, l->plan.told + STOP, 1);
	error |= d->end(d, error ? other : why);
	__atomic_store_n(&b->stop, true, __ATOMIC_RELAXED);
	pthread_join(b->thread, NULL);
	loop_get(l, 0, whole);
	return error;
}

/* The words that the drive reports become told[]. -1 with the reason. */
static int drive(struct loop *l, struct loop_drive *d, bool wrong, uint32_t told[16], char *why)
{
	struct board b = { .loop = l, .wrong = wrong };
	int error;

	l->kind = &loop_ring;
	l->drive = d;
	l->plan = (struct loop_plan) {
		.descriptors_log2 = 4, .events_log2 = 6, .slot_log2 = 6, .words = 64,
		.run = 7, .total = DATAGRAMS, .window = 4, .stale_at = LOOP_NEVER,
		.tail_at = LOOP_NEVER,
	};
	l->length = 0;
	l->kind->lay_out(l);
	l->word = mmap(NULL, l->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	b.word = l->word;
	if (l->copied) {
		l->gpu = d->gpu;
		if (rashpa_gpu_alloc(d->gpu, l->length, &l->memory))
			return because(why, -1, "%s", rashpa_reason());
		b.word = (volatile uint32_t *)rashpa_gpu_address(l->memory);
	}
	l->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	l->channel = eventfd(0, EFD_CLOEXEC);
	if (l->rings)
		loop_rings_fill(l);
	loop_put(l, 0, l->length / 4);
	error = run_board(&b, d, why);
	memcpy(told, (void *)(uintptr_t)(l->word + l->plan.told), 16 * sizeof(*told));
	return error;
}

static void leave(struct loop *l)
{
	rashpa_gpu_free(l->memory);
	l->memory = NULL;
	munmap((void *)(uintptr_t)l->word, l->length);
	munmap((void *)(uintptr_t)l->page, PAGE);
	close(l->channel);
}

static bool whole(const uint32_t *told)
{
	const uint32_t wanted[] = {
		[END] = 1, [RECEIVED] = DATAGRAMS, [SENT] = DATAGRAMS, [EVENTS] = 2 * DATAGRAMS,
		[DOUBLED] = 0,
	};

	return !memcmp(told + END, wanted + END, (DOUBLED + 1 - END) * sizeof(*told));
}

/* The result of the dummy computation. */
static uint32_t spun(uint32_t rounds)
{
	uint32_t x = rounds;

	for (uint32_t i = 0; i < rounds; i++)
		x = x * 1664525 + 1013904223;
	return x;
}

/* @copied: the memory is the GPU's, which the host does not access. */
static void test_drive(struct loop_drive *d, bool copied)
{
	struct loop l = LOOP_NONE;
	uint32_t told[16];
	char why[WHY_SIZE] = "";

	l.copied = copied;
	ok(!drive(&l, d, false, told, why) && whole(told), "all: %s: all come once and unchanged%s",
	   d->name, why);
	leave(&l);
	ok(!drive(&l, d, true, told, why) && told[CONTENT] == l.plan.window,
	   "changed: %s: changed words are found%s", d->name, why);
	leave(&l);
	l.rings = true;
	l.compute_us = 300;
	ok(!drive(&l, d, false, told, why) && whole(told) && !loop_rings_wrong(&l),
	   "rings: %s: the rings are those of the reference%s", d->name, why);
	ok(l.plan.rounds && told[SPUN] == spun(l.plan.rounds), "compute: %s: each answer computes", d->name);
	l.word[l.plan.fits + 1] ^= 0x7fc00000;
	ok(loop_rings_wrong(&l) == 1, "rings-wrong: %s: a wrong ring is found", d->name);
	leave(&l);
}

int main(int argc, char **argv)
{
	const char *gpu = argc > 1 ? argv[1] : "vulkan";
	struct loop_drive d;
	char why[WHY_SIZE] = "";

	alarm(500);
	loop_by_host(&d);
	test_drive(&d, false);
	for (int launches = 0; launches < 2; launches++) {
		if ((gpu[0] == 'c' ? loop_by_cuda : loop_by_vulkan)(&d, gpu, launches, why)) {
			ok(true, "gpu: a GPU drives # SKIP %s", why);
			continue;
		}
		test_drive(&d, false);
		if (d.copy)
			test_drive(&d, true);
		d.close(&d);
	}
	return tap_end();
}
