// SPDX-License-Identifier: GPL-2.0-only
#include "locks.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rashpa-fpga.h"
#include "rashpa.h"
#include "say.h"

#define LOOKS	16	/* at a record that is being written */

/* The fd is ours only if the memory is. */
static int open_named(struct locks *l, const char *name, int write, char *why)
{
	const int prot = write ? PROT_READ | PROT_WRITE : PROT_READ;
	struct rashpa_info info = { .fd = -1 };

	l->fd = rashpa_buffer_open(name, write ? O_RDWR : O_RDONLY);
	if (l->fd < 0)
		return because(why, -1, "%s", rashpa_reason());
	if (rashpa_info(l->fd, &info) || rashpa_mmap(l->fd, 0, info.out_length, prot, &l->own)) {
		close(l->fd);
		return because(why, -1, "lock memory %s: %s", name, rashpa_reason());
	}
	l->base = l->own;
	l->length = info.out_length;
	return 0;
}

int locks_open(struct locks *l, const struct rashpa_stream *s, int buffer,
	       const volatile void *head, int write, char *why)
{
	*l = (struct locks) { .fd = buffer, .base = head, .length = s->data_offset };
	if (!*s->lock_name)
		return 0;
	if (open_named(l, s->lock_name, write, why)) {
		*l = (struct locks)LOCKS_NONE;
		return -1;
	}
	for (unsigned int i = 0; i < s->dtps; i++) {
		if (s->dtp[i].lock_offset <= l->length - RFPGA_LOCK_SIZE)
			continue;
		because(why, -1, "lock memory %s has %" PRIu64
			" bytes: dtp[%u].lock_offset %" PRIu64 " is behind its end",
			s->lock_name, l->length, i, (uint64_t)s->dtp[i].lock_offset);
		locks_close(l);
		return -1;
	}
	return 0;
}

void locks_close(struct locks *l)
{
	if (l->own) {
		munmap(l->own, l->length);
		close(l->fd);
	}
	*l = (struct locks)LOCKS_NONE;
}

uint64_t locks_word(const struct locks *l, const struct rashpa_stream *s, unsigned int i,
		    unsigned int word)
{
	return __atomic_load_n((const volatile uint64_t *)(l->base + s->dtp[i].lock_offset + word),
			       __ATOMIC_ACQUIRE);
}

bool locks_read(const struct locks *l, const struct rashpa_stream *s, unsigned int i,
		struct rfpga_lock *lock)
{
	for (int looks = 0; looks < LOOKS; looks++) {
		if (rfpga_lock_read(l->base + s->dtp[i].lock_offset, lock))
			return true;
	}
	return false;
}

uint64_t locks_stacks(const struct locks *l, const struct rashpa_stream *s, uint64_t *most)
{
	uint64_t least = UINT64_MAX, stacks;

	*most = 0;
	for (unsigned int i = 0; i < s->dtps; i++) {
		stacks = locks_word(l, s, i, RFPGA_LOCK_STACKS);
		least = stacks < least ? stacks : least;
		*most = stacks > *most ? stacks : *most;
	}
	return least;
}
