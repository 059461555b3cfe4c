// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: doorbells. See rashpa.h. */
#include <rashpa.h>

/* Earlier reads and writes are complete before later stores. */
static inline __attribute__((always_inline)) void fence(void)
{
	/* The kernel puts no probe on an instruction with a lock prefix, as a barrier is. */
	__asm__ volatile("nop");
	/* Also for write-combined windows and non-temporal stores: a full barrier. */
#if defined(__aarch64__)
	/* That of the compiler is for CPUs (ish): a function is farther away. */
	__asm__ volatile("dmb osh" ::: "memory");
#else
	__sync_synchronize();
#endif
}

/* Not inline, and not removed: a probe on this symbol is how a trace sees a doorbell. */
__attribute__((noinline))
void rashpa_doorbell(volatile void *window, uint64_t offset, uint32_t value)
{
	fence();
	*(volatile uint32_t *)((volatile char *)window + offset) = value;
}

__attribute__((noinline))
void rashpa_doorbell64(volatile void *window, uint64_t offset, uint64_t value)
{
	fence();
	*(volatile uint64_t *)((volatile char *)window + offset) = value;
}
