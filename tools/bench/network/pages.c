// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bench/network/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rashpa.h>
#include "common/say.h"

static const struct kind {
	const char *name;
	uint64_t size;		/* page size; the length is rounded up to a multiple */
	int flags, advice;
} kinds[] = {
	{ "thp", 2 << 20, 0, MADV_HUGEPAGE },
	{ "4K", 4096, 0, MADV_NOHUGEPAGE },
	{ "2M", 2 << 20, MAP_HUGETLB | MAP_HUGE_2MB, -1 },
	{ "1G", 1 << 30, MAP_HUGETLB | MAP_HUGE_1GB, -1 },
};

static const struct kind *find(const char *name)
{
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	}
	return NULL;
}

static int open_buffer(struct pages *p, const char *name, char *why)
{
	struct rashpa_info info = { .fd = -1 };

	p->fd = rashpa_buffer_open(name, O_RDWR);
	if (p->fd < 0 || rashpa_memory_get_info(p->fd, &info))
		return because(why, -1, "buffer %s: %s", name, rashpa_reason());
	p->length = info.out_length;
	p->base = mmap(NULL, p->length, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	if (p->base == MAP_FAILED)
		return because(why, -1, "buffer %s: cannot map it: %s", name, strerror(errno));
	return 0;
}

int pages_open(struct pages *p, const char *kind, const char *buffer, uint64_t length, char *why)
{
	const struct kind *k = find(kind);

	*p = (struct pages) { .base = MAP_FAILED, .fd = -1 };
	if (buffer)
		return open_buffer(p, buffer, why);
	p->length = (length + k->size - 1) / k->size * k->size;
	p->base = mmap(NULL, p->length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | k->flags, -1, 0);
	if (p->base == MAP_FAILED && k->flags)
		return because(why, -1, "no pages of %s: %s: reserve some in /sys/kernel/mm/hugepages",
			       kind, strerror(errno));
	if (p->base == MAP_FAILED)
		return because(why, -1, "no memory of %llu bytes: %s",
			       (unsigned long long)p->length, strerror(errno));
	if (k->advice >= 0)
		madvise(p->base, p->length, k->advice);	/* fails in a kernel without huge pages */
	if (madvise(p->base, p->length, MADV_POPULATE_WRITE))
		return because(why, -1, "no memory of %llu bytes: %s",
			       (unsigned long long)p->length, strerror(errno));
	return 0;
}

void pages_close(struct pages *p)
{
	if (p->base && p->base != MAP_FAILED)
		munmap(p->base, p->length);
	if (p->fd >= 0)
		close(p->fd);
	*p = (struct pages) { .fd = -1 };
}
