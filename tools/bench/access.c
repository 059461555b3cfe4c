// SPDX-License-Identifier: LGPL-2.1-or-later
/* Cost of making a mapping, and its performance: faults, reading, writing. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/bench.h"
#include "common/parse.h"

#define PAGE		4096
/* small blocks are read repeatedly until this many bytes are read */
#define BYTES_LEAST	(UINT64_C(64) << 20)
#define ACCESSES	500000
/* a disk of the module null_blk, which drops all data */
#define NULL_DISK	"/dev/nullb0"

enum what { MMAP, FAULTS, PIN, WRITE, READ, COPY, RANDOM, WHATS };

static const struct {
	const char *name;
	enum unit unit;
} whats[WHATS] = {
	[MMAP] = { "mmap", UNIT_US },
	[FAULTS] = { "faults after mmap", UNIT_FAULTS },
	[PIN] = { "write by O_DIRECT, to a disk that drops it", UNIT_US },
	[WRITE] = { "write, in sequence", UNIT_GBPS },
	[READ] = { "read, in sequence", UNIT_GBPS },
	[COPY] = { "copy, in sequence", UNIT_GBPS },
	[RANDOM] = { "read, at random", UNIT_NS_EACH },
};

/* A block of a source, for all measurements of a size. */
struct block {
	const struct source *source;
	int fd;			/* -1: not measured */
	struct samples samples[WHATS];
};

static volatile uint64_t sink;	/* keeps the compiler from removing reads */

static unsigned int passes(uint64_t size)
{
	return size < BYTES_LEAST ? BYTES_LEAST / size : 1;
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* Reads one byte of each page. Returns the number of page faults. */
static uint64_t touch(const uint8_t *base, uint64_t size)
{
	long before = faults();
	uint64_t sum = 0;

	for (uint64_t i = 0; i < size; i += PAGE)
		sum += *(volatile const uint8_t *)(base + i);
	sink = sum;
	return faults() - before;
}

/* The kernel pins the pages and copies nothing. 0: it cannot, or there is no such disk. */
static uint64_t time_pin(const uint8_t *p, uint64_t size)
{
	int disk = open(NULL_DISK, O_WRONLY | O_DIRECT | O_CLOEXEC);
	uint64_t start = now_ns();
	ssize_t n;

	if (disk < 0)
		return 0;
	n = write(disk, p, size);
	start = now_ns() - start;
	close(disk);
	return n == (ssize_t)size ? start : 0;
}

static uint64_t time_write(uint64_t *p, uint64_t n, unsigned int times)
{
	uint64_t start = now_ns();

	for (unsigned int t = 0; t < times; t++) {
		for (uint64_t i = 0; i < n; i++)
			p[i] = i + 1;
		/* the compiler must not merge passes */
		__asm__ volatile("" : : : "memory");
	}
	return now_ns() - start;
}

static uint64_t time_read(const uint64_t *p, uint64_t n, unsigned int times)
{
	uint64_t start = now_ns(), a = 0, b = 0, c = 0, d = 0;

	for (unsigned int t = 0; t < times; t++) {
		for (uint64_t i = 0; i < n; i += 4) {
			a += p[i];
			b += p[i + 1];
			c += p[i + 2];
			d += p[i + 3];
		}
		__asm__ volatile("" : : : "memory");
	}
	sink = a + b + c + d;
	return now_ns() - start;
}

/* The first half of the block to the second one */
static uint64_t time_copy(uint64_t *p, uint64_t n, unsigned int times)
{
	uint64_t start = now_ns();

	for (unsigned int t = 0; t < times; t++) {
		memcpy(p + n / 2, p, n / 2 * sizeof(*p));
		__asm__ volatile("" : : : "memory");
	}
	return now_ns() - start;
}

/* Each address depends on the previous value, so no access can start early. */
static uint64_t time_random(const uint64_t *p, uint64_t n)
{
	uint64_t start = now_ns(), x = 1;

	for (unsigned int i = 0; i < ACCESSES; i++)
		x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407) +
		    p[(uint64_t)(((unsigned __int128)x * n) >> 64)];
	sink = x;
	return now_ns() - start;
}

static bool measure(struct block *b, uint64_t size)
{
	uint64_t ns, n = size / sizeof(uint64_t);
	uint64_t *p = map_aligned(b->fd, size, &ns);

	if (p == MAP_FAILED)
		return false;
	samples_add(&b->samples[MMAP], ns);
	samples_add(&b->samples[FAULTS], touch((uint8_t *)p, size));
	ns = time_pin((uint8_t *)p, size);
	if (ns)
		samples_add(&b->samples[PIN], ns);
	samples_add(&b->samples[WRITE], time_write(p, n, passes(size)));
	samples_add(&b->samples[READ], time_read(p, n, passes(size)));
	samples_add(&b->samples[COPY], time_copy(p, n, passes(size)));
	samples_add(&b->samples[RANDOM], time_random(p, n));
	munmap(p, size);
	return true;
}

static void leave_out(struct bench *bench, struct block *b, uint64_t size, const char *why)
{
	char text[SIZE_TEXT];

	report_leave_out(bench->report, b->source->name, "mapping of %s: %s",
			 format_size(text, size), why);
	if (b->fd >= 0)
		b->source->free(b->source, b->fd, size);
	b->fd = -1;
}

static void rows(struct bench *bench, uint64_t size, struct block *ours, struct block *theirs)
{
	for (enum what w = 0; w < WHATS; w++) {
		const struct row row = {
			.name = whats[w].name, .backend = ours->source->backend,
			.peer = theirs ? theirs->source->name : NULL,
			.size = size, .unit = whats[w].unit,
			.accesses = w == RANDOM ? ACCESSES :
				    size / (w == COPY ? 2 : 1) * passes(size),
		};

		if (ours->samples[w].count && (!theirs || theirs->samples[w].count))
			report_row(bench->report, &row, &ours->samples[w],
				   theirs ? &theirs->samples[w] : NULL);
	}
}

static void compare(struct bench *bench, uint64_t size, struct block *blocks)
{
	for (size_t i = 0; i < bench->sources; i++) {
		bool alone = true;

		if (!blocks[i].source->backend || !blocks[i].samples[RANDOM].count)
			continue;
		for (size_t j = 0; j < bench->sources; j++) {
			if (blocks[j].source->backend || !blocks[j].samples[RANDOM].count)
				continue;
			rows(bench, size, &blocks[i], &blocks[j]);
			alone = false;
		}
		if (alone)
			rows(bench, size, &blocks[i], NULL);
	}
}

void bench_access(struct bench *bench, uint64_t size)
{
	struct block blocks[SOURCES_MAX] = {};
	char why[WHY_SIZE], text[SIZE_TEXT];

	if (access(NULL_DISK, W_OK))
		report_leave_out(bench->report, whats[PIN].name, "%s: %s: modprobe null_blk",
				 NULL_DISK, strerror(errno));
	for (size_t i = 0; i < bench->sources; i++) {
		struct block *b = &blocks[i];

		b->source = &bench->source[i];
		b->fd = -1;
		/* a growing pool makes no difference for a mapping */
		if (b->source->grow || size < b->source->least || !going_on())
			continue;
		if (memory_suffices(b->source, size, why) ||
		    pool_reserve(b->source, size, why) ||
		    (b->fd = b->source->alloc(b->source, size, why)) < 0)
			leave_out(bench, b, size, why);
	}
	for (unsigned int r = 0; r < bench->report->repeat; r++) {
		for (size_t i = 0; i < bench->sources && going_on(); i++) {
			struct block *b = &blocks[turn(r, i, bench->sources)];

			progress_show(&bench->report->progress, "access: %s, round %u of %u, %s",
				      format_size(text, size), r + 1, bench->report->repeat,
				      b->source->name);
			if (b->fd >= 0 && !measure(b, size))
				leave_out(bench, b, size, strerror(errno));
		}
	}
	compare(bench, size, blocks);
	for (size_t i = 0; i < bench->sources; i++) {
		struct block *b = &blocks[i];

		if (b->fd >= 0)
			b->source->free(b->source, b->fd, size);
		for (enum what w = 0; w < WHATS; w++)
			samples_free(&b->samples[w]);
	}
	pool_restore();
}
