// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Mappings of the objects, in a range of addresses where nothing else of the process is:
 * threads may take away one another's, and a wrong address hits no stack.
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/uio.h>

#include "fuzz.h"

#define PLACES		24
#define PLACE_SIZE	(2 * MIB)
#define PLAIN		4	/* places that begin as memory of the process, to be pinned */

/* since Linux 5.14 */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif

static char *arena;
static _Atomic bool registers[PLACES];	/* a window may be mapped there */

static __thread sigjmp_buf escape;
static __thread volatile sig_atomic_t armed;

/* ------------------------------------------------------------- faults ---- */

static void on_fault(int number)
{
	static const char text[] = "<3>fuzz: the fuzzer itself faulted\n";
	int fd;

	if (armed)
		siglongjmp(escape, number);
	fd = open("/dev/kmsg", O_WRONLY);
	if (fd >= 0 && write(fd, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(2);
}

void guard_thread(struct thread *t)
{
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

bool guarded(struct thread *t, void (*fn)(void *arg), void *arg)
{
	if (sigsetjmp(escape, 1)) {
		armed = 0;
		t->ring->faults++;
		return false;
	}
	armed = 1;
	fn(arg);
	armed = 0;
	return true;
}

/* ----------------------------------------------------------- mappings ---- */

static void reserve(uint32_t place)
{
	void *p = mmap(arena + place * PLACE_SIZE, PLACE_SIZE,
		       place < PLAIN ? PROT_READ | PROT_WRITE : PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	if (p == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	registers[place] = false;
}

void maps_reset(void)
{
	uint32_t i;

	for (i = 0; i < PLACES; i++)
		reserve(i);
}

void maps_init(void)
{
	arena = mmap(NULL, PLACES * PLACE_SIZE, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	maps_reset();
}

static char *page_of(struct rng *r, uint32_t place)
{
	return arena + place * PLACE_SIZE +
	       PAGE * below(r, one_in(r, 4) ? PLACE_SIZE / PAGE : 16);
}

uint64_t map_address(struct rng *r)
{
	uint64_t address = (uintptr_t)page_of(r, below(r, one_in(r, 4) ? PLACES : PLAIN));

	if (one_in(r, 32))
		address += below(r, 4096);
	if (one_in(r, 64))
		address = PICK(r, 0, PAGE, 1ULL << 47, (1ULL << 47) - PAGE, UINT64_MAX - PAGE + 1);
	return address;
}

static int any_prot(struct rng *r)
{
	return (int)PICK(r, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE,
			 PROT_WRITE, PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC);
}

/* Without an IOMMU, a writable mapping of registers can make a board write anywhere. */
static int prot_at(struct rng *r, uint32_t place)
{
	int prot = any_prot(r);

	return registers[place] && !run.iommu ? prot & ~PROT_WRITE : prot;
}

void step_mmap(struct thread *t)
{
	struct rng *r = &t->rng;
	enum kind kind = PICK(r, K_BUFFER, K_BUFFER, K_BUFFER, K_WINDOW, K_WINDOW, K_MAP, K_CHANNEL,
			      K_CHANNEL, K_NODE, K_MEMORY, K_FPGA, K_OTHER, K_NONE);
	int fd = kind ? pool_fd(t, kind) : -1;
	int flags = (int)PICK(r, MAP_SHARED, MAP_SHARED, MAP_SHARED, MAP_SHARED | MAP_POPULATE,
			      MAP_PRIVATE, MAP_SHARED | MAP_LOCKED);
	uint32_t place = below(r, one_in(r, 8) ? PLACES : PLACES - PLAIN) + PLAIN;
	uint64_t length = length_value(r), offset = one_in(r, 2) ? 0 : PAGE * below(r, 16);
	char *at = arena + place % PLACES * PLACE_SIZE;

	place %= PLACES;
	if (kind == K_NONE)
		flags = MAP_PRIVATE | MAP_ANONYMOUS;
	if (one_in(r, 32))
		offset = odd_number(r);
	note(t, "mmap place %u fd %d %#llx + %#llx", place, fd, (unsigned long long)offset,
	     (unsigned long long)length);
	if (length > PLACE_SIZE) {
		/* must not replace the next mapping; if it succeeds, it is removed at once */
		at = mmap(NULL, length, PROT_READ, flags & ~(MAP_POPULATE | MAP_LOCKED), fd,
			  (off_t)offset);
		if (at != MAP_FAILED)
			munmap(at, length);
		return;
	}
	/* fds change meanwhile: this fd may be a window at the time of the call */
	registers[place] = kind != K_NONE;
	mmap(at, length, prot_at(r, place), flags | MAP_FIXED, fd, (off_t)offset);
}

void step_munmap(struct thread *t)
{
	uint32_t place = below(&t->rng, PLACES);

	note(t, "munmap place %u", place);
	if (one_in(&t->rng, 2))
		mmap(page_of(&t->rng, place), PAGE, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	else
		reserve(place);
}

void step_change(struct thread *t)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_WILLNEED, MADV_DONTFORK, MADV_DOFORK, MADV_REMOVE,
		MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_MERGEABLE, MADV_COLD, MADV_PAGEOUT, MADV_FREE,
		MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_DONTDUMP, MADV_POPULATE_READ,
		MADV_POPULATE_WRITE,
	};
	struct rng *r = &t->rng;
	uint32_t place = below(r, PLACES), other = below(r, PLACES), what = below(r, 8), n;
	char *at = page_of(r, place), *to = arena + other * PLACE_SIZE;
	size_t length = PAGE * (1 + below(r, 16));
	unsigned char resident[PLACE_SIZE / PAGE];

	n = below(r, ARRAY_SIZE(advice));
	if (at + length > arena + (place + 1) * PLACE_SIZE)
		length = PAGE;
	note(t, "change %u place %u + %#zx (%u)", what, place, length, n);
	switch (what) {
	case 0:
	case 1:
		mprotect(at, length, prot_at(r, place));
		break;
	case 2:
		registers[other] = registers[place];
		/* longer, too: nothing may be reached beyond the object */
		if (mremap(at, length, one_in(r, 2) ? length : 2 * length,
			   MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED)
			mmap(at, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 3:
		msync(at, length, MS_SYNC);
		break;
	case 4:
		mlock(at, length);
		munlock(at, length);
		break;
	case 5:
		mincore(at, length, resident);
		break;
	default:
		madvise(at, length, advice[n]);
	}
}

/* -------------------------------------------------------------- touch ---- */

struct touch {
	char *at;
	size_t length, stride;
	uint64_t value;
	bool write;
};

static void touch(void *arg)
{
	const struct touch *w = arg;
	size_t i;

	for (i = 0; i < w->length; i++) {
		volatile uint32_t *p = (volatile uint32_t *)(w->at + i * w->stride);

		if (w->write)
			*p = (uint32_t)w->value;
		else
			(void)*p;
	}
}

void step_touch(struct thread *t)
{
	struct rng *r = &t->rng;
	uint32_t place = below(r, PLACES);
	struct touch w = {
		.at = page_of(r, place) + below(r, 16) * 4, .length = 1 + below(r, 8),
		.stride = PICK(r, 4, 64, PAGE), .value = odd_number(r), .write = one_in(r, 2),
	};
	struct iovec iov = { w.at, 64 };
	char copy[64] = "";
	struct iovec mine = { copy, sizeof(copy) };

	if (w.at + w.length * w.stride >= arena + PLACES * PLACE_SIZE)
		w.length = 1;
	note(t, "touch place %u %s", place, w.write ? "write" : "read");
	/* as a debugger does; the kernel checks the page protection, not the mapping */
	if (one_in(r, 8))
		process_vm_readv(getpid(), &mine, 1, &iov, 1, 0);
	else
		guarded(t, touch, &w);
}
