// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: waiting for a word of memory. See rashpa.h. */
#include <rashpa.h>
#include "lib/internal.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#define SPIN_MAX_NS	100000	/* default */
#define SPIN_FIRST_NS	5000
#define BUDGET		250	/* thousandths */
#define BUDGET_NS	100000000ull	/* over how long the budget holds */
#define LOOKS		32	/* between two looks at the clock */
#define UMWAIT_CYCLES	20000	/* at most, between two looks at the clock */
#define LOOK_NS		1000000	/* without a channel */

/* --- the word --- */

/* As the driver sees it: of all positions with these bits, the one nearest to the last. */
static uint64_t position(uint64_t last, uint32_t word)
{
	int32_t way = (int32_t)(word - (uint32_t)last);

	if (way < 0 && last < (uint64_t)-(int64_t)way)
		return last + (uint32_t)way;
	return last + (int64_t)way;
}

static bool wraps(const struct rashpa_wait *w)
{
	return w->bits == 32 && (!w->mask || w->mask == UINT32_MAX) &&
	       w->condition != RASHPA_CONDITION_EQUAL;
}

static bool fulfilled(struct rashpa_wait *w, uint64_t *seen)
{
	uint64_t mask = w->mask ? w->mask : UINT64_MAX;
	uint64_t word = w->bits == 64 ?
			__atomic_load_n((const volatile uint64_t *)w->word, __ATOMIC_ACQUIRE) :
			__atomic_load_n((const volatile uint32_t *)w->word, __ATOMIC_ACQUIRE);

	*seen = word & mask;
	if (wraps(w))
		*seen = w->position = position(w->position, word);
	switch (w->condition) {
	case RASHPA_CONDITION_CHANGED:
		return wraps(w) ? (uint32_t)*seen != (uint32_t)w->value :
				  *seen != (w->value & mask);
	case RASHPA_CONDITION_EQUAL:
		return *seen == w->value;
	default:
		return *seen >= w->value;
	}
}

/* --- one moment --- */

#if defined(__x86_64__)

static bool have_umwait(void)
{
	static int have = -1;	/* the same, whichever thread finds it out */
	unsigned int a, b, c, d;

	if (__atomic_load_n(&have, __ATOMIC_RELAXED) < 0)
		__atomic_store_n(&have, __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & (1u << 5),
				 __ATOMIC_RELAXED);
	return __atomic_load_n(&have, __ATOMIC_RELAXED);
}

/* Waits until the cache line is written, in C0.1, from which the CPU wakes up soonest. */
__attribute__((target("waitpkg")))
static bool umwait(struct rashpa_wait *w, uint64_t *seen)
{
	_umonitor((void *)(uintptr_t)w->word);
	/* A write before the monitor was armed does not wake us. */
	if (fulfilled(w, seen))
		return true;
	_umwait(1, __builtin_ia32_rdtsc() + UMWAIT_CYCLES);
	return fulfilled(w, seen);
}

static void relax(void)
{
	__builtin_ia32_pause();
}

#else

static bool have_umwait(void)
{
	return false;
}

static bool umwait(struct rashpa_wait *w, uint64_t *seen)
{
	return fulfilled(w, seen);
}

static void relax(void)
{
#if defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

#endif

static bool look(struct rashpa_wait *w, uint64_t *seen)
{
	if (have_umwait())
		return umwait(w, seen);
	for (int i = 0; i < LOOKS; i++) {
		if (fulfilled(w, seen))
			return true;
		relax();
	}
	return false;
}

/* --- how long --- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t spin_max(const struct rashpa_wait *w)
{
	return w->spin_max_ns ? w->spin_max_ns : SPIN_MAX_NS;
}

/* Time adds to the budget of spinning, up to a limit. */
static void earn(struct rashpa_wait *w, uint64_t now)
{
	uint32_t budget = w->budget ? w->budget : BUDGET;
	uint64_t most = BUDGET_NS / 1000 * budget;
	uint64_t passed = w->last_ns ? least(now - w->last_ns, BUDGET_NS) : BUDGET_NS;

	w->credit_ns = least(w->credit_ns + passed * budget / 1000, most);
	w->last_ns = now;
}

/*
 * As the halt polling of hypervisors: a wait that slept although spinning would have been
 * possible makes the next one spin longer; one that was longer than any spinning, shorter.
 */
static void adapt(struct rashpa_wait *w, uint64_t took)
{
	uint64_t most = spin_max(w);

	if (took <= most) {
		w->spin_ns = least(w->spin_ns ? 2 * w->spin_ns : SPIN_FIRST_NS, most);
		return;
	}
	w->spin_ns /= 2;
	if (w->spin_ns < SPIN_FIRST_NS)
		w->spin_ns = 0;
}

static bool spin(struct rashpa_wait *w, uint64_t begin, uint64_t limit, uint64_t *seen)
{
	uint64_t spent = 0;
	bool found = false;

	while (!found && spent < limit) {
		found = look(w, seen);
		spent = clock_ns() - begin;
	}
	w->credit_ns -= least(w->credit_ns, spent);
	w->spent_ns += spent;
	return found;
}

/* --- sleeping --- */

/* Take all records away; when the newest was made, or 0. */
static uint64_t drain(struct rashpa_queue *queue)
{
	struct rashpa_event event;
	uint64_t newest = 0;

	while (queue && rashpa_ring_next(queue, &event))
		newest = event.time_ns;
	return newest;
}

/* One sleep of at most so long; 0 or a negative errno. */
static int doze(struct rashpa_wait *w, uint64_t left)
{
	const struct timespec nap = { .tv_nsec = least(left, LOOK_NS) };
	int error;

	if (w->queue) {
		error = rashpa_ring_wait(w->queue, left);
		return error == -ETIMEDOUT ? 0 : error;
	}
	error = clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	return error ? fail(error, "%s", strerror(error)) : 0;
}

static int sleep_until(struct rashpa_wait *w, uint64_t begin, uint64_t end, uint64_t *seen)
{
	uint64_t came = 0, newest, now, left;
	int error;

	w->slept++;
	for (;;) {
		/*
		 * Records first, then the word: a write after this check makes a record that ends
		 * the sleep.
		 */
		newest = drain(w->queue);
		came = newest ? newest : came;
		if (fulfilled(w, seen))
			break;
		now = clock_ns();
		left = end > now ? end - now : 0;
		/* Also without time left: that the function is gone is the better answer. */
		error = doze(w, left);
		if (error)
			return error;
		if (!left) {
			adapt(w, clock_ns() - begin);
			return fail(ETIMEDOUT, "the word did not fulfil the condition in time");
		}
	}
	/* The time of the interrupt excludes the time to wake up. */
	adapt(w, came > begin ? came - begin : clock_ns() - begin);
	return 0;
}

int rashpa_lock_wait(struct rashpa_wait *wait, int64_t timeout_ns, uint64_t *seen)
{
	uint64_t word, begin, end;
	int error = 0;

	if ((wait->bits != 32 && wait->bits != 64) || !wait->word || !wait->condition ||
	    wait->condition > RASHPA_CONDITION_REACHED || wait->budget > 1000)
		return fail(EINVAL, "a word of 32 or 64 bits, a condition and a budget up to 1000 are needed");
	if ((uintptr_t)wait->word % (wait->bits / 8))
		return fail(EINVAL, "the word is not at a multiple of its width");
	if (!fulfilled(wait, &word)) {
		begin = clock_ns();
		end = deadline_of(timeout_ns);
		wait->waits++;
		earn(wait, begin);
		/* the learnt spin time, limited by the budget and by the timeout */
		if (!spin(wait, begin, least(least(wait->spin_ns, wait->credit_ns), end - begin), &word))
			error = sleep_until(wait, begin, end, &word);
	}
	if (error)
		return error;
	if (wait->condition == RASHPA_CONDITION_CHANGED)
		wait->value = word;
	if (seen)
		*seen = word;
	return 0;
}
