// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tests/gpu-libraries/lanes.h"

#include <stdlib.h>
#include <ucontext.h>

#define LANES_MOST	1024
/* bytes; an odd number of cache lines, as stacks would else share the same few places of a cache */
#define STACK		(16384 + 5 * 64)

/* Five times as fast as those of the C library; not for jumps within a function. */
struct place {
	void *word[5];
};

struct lane {
	struct place here;
	ucontext_t first;
	bool begun, running;
	unsigned int barriers;	/* barriers reached */
};

_Thread_local unsigned int lanes_lane, lanes_group;

static _Thread_local struct {
	struct lane *lane;
	char *stacks;
	struct place caller;
	lanes_body body;
	const void *arguments;
} now;

/* The compiler has both in one function for nothing. */
__attribute__((noinline, noreturn))
static void go(struct place *to)
{
	__builtin_longjmp(to->word, 1);
}

__attribute__((noinline))
static void back(void)
{
	struct lane *lane = &now.lane[lanes_lane];

	if (!__builtin_setjmp(lane->here.word))
		go(&now.caller);
}

/* A fiber has one kernel after the other. */
static void fiber(void)
{
	for (;;) {
		now.body(now.arguments);
		now.lane[lanes_lane].running = false;
		back();
	}
}

void lanes_barrier(void)
{
	now.lane[lanes_lane].barriers++;
	back();
}

__attribute__((noinline))
static bool go_on(unsigned int number)
{
	struct lane *lane = &now.lane[number];

	lanes_lane = number;
	if (__builtin_setjmp(now.caller.word))
		return true;
	if (lane->begun)
		go(&lane->here);
	lane->begun = true;
	if (getcontext(&lane->first))
		return false;
	lane->first.uc_stack.ss_sp = now.stacks + number * STACK;
	lane->first.uc_stack.ss_size = STACK;
	makecontext(&lane->first, fiber, 0);
	setcontext(&lane->first);
	return false;
}

static bool run_group(unsigned int lanes)
{
	unsigned int left = lanes;
	bool agreed = true;

	for (unsigned int i = 0; i < lanes; i++) {
		now.lane[i].running = true;
		now.lane[i].barriers = 0;
	}
	for (unsigned int round = 1; left; round++) {
		for (unsigned int i = 0; i < lanes; i++) {
			if (!now.lane[i].running)
				continue;
			if (!go_on(i))
				return false;
			left -= !now.lane[i].running;
			agreed = agreed && (!now.lane[i].running || now.lane[i].barriers == round);
		}
		/* some have ended, and others wait for them */
		agreed = agreed && (!left || left == lanes);
	}
	return agreed;
}

bool lanes_run(lanes_body body, const void *arguments, unsigned int groups, unsigned int lanes)
{
	bool good = lanes <= LANES_MOST;

	if (!now.lane)
		now.lane = calloc(LANES_MOST, sizeof(*now.lane));
	if (!now.stacks)
		now.stacks = malloc(LANES_MOST * STACK);
	if (!now.lane || !now.stacks)
		return false;
	now.body = body;
	now.arguments = arguments;
	for (lanes_group = 0; lanes_group < groups && good; lanes_group++)
		good = run_group(lanes);
	return good;
}
