// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any seconds=11 */
/* test: kernel=debug iommu=on smp=2 seconds=11 */
/* test: tier=nightly iommu=on smp=2 seconds=11 */
/*
 * Random work of several processes at a time: maps of buffers and of other drivers' memory,
 * many channels, buffers of all sizes. Another process fragments memory.
 *
 *   RASHPA_CHURN_SECONDS   how long (3)
 *   RASHPA_CHURN_SEED      seed of random numbers (that of RASHPA_SEED); printed
 *   RASHPA_CHURN_FPGA      which software FPGA (the last one)
 *   RASHPA_CHURN_MIB       the largest buffer (16)
 *   RASHPA_CHURN_JSON      file for the counts
 */
#include "common.h"

#define SECOND_NS	1000000000ULL
#define CHANNELS	48
#define BUFFERS		8
#define HOG		(96 * MIB)

static struct fpga f;
static u64 end_ns, largest_mib;
static unsigned int seed;

/* Counts of the work, shared with the children, each of which writes its own counters. */
static struct counts {
	u64 maps, foreign, channels, events, lost, buffers, refused, largest;
} *done;

static u64 pick(u64 n)
{
	return (u64)rand_r(&seed) % n;
}

static bool goes_on(void)
{
	return tap_ok() && now_ns() < end_ns;
}

static u64 number(const char *name, u64 otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

/* -------------------------------------------------------------- maps ---- */

static void map_some(int fd, u64 length)
{
	u64 pages = length / PAGE, first = pick(pages), n = 1 + pick(pages - first), sum = 0;
	struct rashpa_map_make m = { HEAD(m), .fd = fd, .direction = (uint32_t)pick(3),
				.offset = first * PAGE, .length = n * PAGE,
				.max_segment = pick(2) ? 0 : (1 + pick(64)) * PAGE };
	const struct rashpa_table *table;
	uint32_t i;

	if (!ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL))
		return;
	table = mmap(NULL, m.out_table_size, PROT_READ, MAP_SHARED, m.out_fd, 0);
	if (CHECK(table != MAP_FAILED, "mmap: %s", strerror(errno))) {
		for (i = 0; i < table->count; i++)
			sum += table->segment[i].length;
		CHECK(sum == n * PAGE, "a map of 0x%llx bytes has 0x%llx", (n * PAGE), sum);
		munmap((void *)table, m.out_table_size);
	}
	close(m.out_fd);
}

static void churn_maps(void *unused)
{
	const u64 length = 4 * MIB;
	int own, foreign;

	seed += 1;
	own = buffer_alloc(length, NULL);
	do {
		map_some(own, length);
		done->maps++;
		foreign = foreign_dmabuf(length);
		if (foreign >= 0) {
			map_some(foreign, length);
			close(foreign);
			done->foreign++;
		}
	} while (goes_on());
	close(own);
}

/* ---------------------------------------------------------- channels ---- */

/* Every signal arrives or is counted as lost; there is no third way. */
static void signal_some(int channel, uint32_t depth)
{
	struct rashpa_source_info info = { HEAD(info), .id = 1 };
	u64 n = 1 + pick(2 * depth), got = 0, i;
	struct rashpa_event e;

	for (i = 0; i < n; i++)
		ANSWERED(signal_one(channel, i), 0, NULL);
	while (read(channel, &e, sizeof(e)) == sizeof(e)) {
		CHECK(e.value == got, "value %llu, not %llu", e.value, got);
		got++;
	}
	ANSWERED(call(channel, RASHPA_IOC_SOURCE_INFO, &info), 0, NULL);
	CHECK(info.out_events == n && got + info.out_lost == n,
	      "%llu signals, %llu records, %llu lost", n, got, info.out_lost);
	done->events += got;
	done->lost += info.out_lost;
}

static void churn_channels(void *unused)
{
	int channel[CHANNELS], i;

	seed += 2;
	for (i = 0; i < CHANNELS; i++)
		channel[i] = -1;
	do {
		uint32_t depth = 1U << (1 + pick(6));

		i = (int)pick(CHANNELS);
		if (channel[i] >= 0)
			close(channel[i]);
		channel[i] = fpga_events(&f, depth);
		if (!CHECK(channel[i] >= 0, "EVENTS: %s", reason))
			break;
		fcntl(channel[i], F_SETFL, O_NONBLOCK);
		CHECK(source_add(channel[i], RASHPA_SOURCE_SOFTWARE, 0) == 1, "%s", reason);
		CHECK(source_add(channel[i], RASHPA_SOURCE_VECTOR, (uint32_t)pick(8)) == 2,
		      "%s", reason);
		signal_some(channel[i], depth);
		done->channels++;
	} while (goes_on());
	for (i = 0; i < CHANNELS; i++)
		if (channel[i] >= 0)
			close(channel[i]);
}

/* ----------------------------------------------------------- buffers ---- */

struct slot {
	u64 length, seed;
	char *p;
};

static void slot_free(struct slot *s)
{
	if (!s->p)
		return;
	CHECK(filled(s->p, s->length, s->seed), "a buffer has changed");
	munmap(s->p, s->length);
	s->p = NULL;
}

/* The fd is closed at once: the mapping holds the buffer. */
static void slot_fill(struct slot *s)
{
	/* all sizes alike often, from a page on */
	u64 length = PAGE << pick(20);
	struct rashpa_alloc a = { HEAD(a), .backend = (uint32_t)pick(3) };
	int err;

	if (length > largest_mib * MIB)
		length = largest_mib * MIB;
	a.length = length - pick(length / 2 / PAGE + 1) * PAGE;
	err = call(memory, RASHPA_IOC_ALLOC, &a);
	/* a refusal for want of memory has a reason; a backend may be missing */
	if (err == -ENOMEM || err == -EOPNOTSUPP) {
		CHECK(reason[0], "refused without a reason");
		done->refused += err == -ENOMEM;
		return;
	}
	if (!ANSWERED(err, 0, NULL))
		return;
	s->length = a.out_length;
	s->seed = pick(1000000);
	s->p = map_fd(a.out_fd, s->length);
	close(a.out_fd);
	CHECK(all_zero(s->p, s->length), "a new buffer is not zeroed");
	fill(s->p, s->length, s->seed);
	done->buffers++;
	if (s->length > done->largest)
		done->largest = s->length;
}

static void churn_buffers(void *unused)
{
	struct slot slot[BUFFERS] = {};
	int i;

	seed += 3;
	while (goes_on()) {
		i = (int)pick(BUFFERS);
		slot_free(&slot[i]);
		slot_fill(&slot[i]);
	}
	for (i = 0; i < BUFFERS; i++)
		slot_free(&slot[i]);
}

/* Memory in pieces: every other page of a large range is given back. */
static void churn_hog(void *unused)
{
	char *p;
	size_t i;

	while (now_ns() < end_ns) {
		p = mmap(NULL, HOG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return;
		madvise(p, HOG, MADV_NOHUGEPAGE);
		for (i = 0; i < HOG && now_ns() < end_ns; i += PAGE)
			p[i] = 1;
		for (i = 0; i < HOG && now_ns() < end_ns; i += 2 * PAGE)
			madvise(p + i, PAGE, MADV_DONTNEED);
		munmap(p, HOG);
	}
}

static void write_counts(void)
{
	const char *json = getenv("RASHPA_CHURN_JSON");
	char text[400];
	FILE *out;

	snprintf(text, sizeof(text), "{\"seed\":%u,\"maps\":%llu,\"foreign_maps\":%llu,"
		 "\"channels\":%llu,\"events\":%llu,\"lost\":%llu,\"buffers\":%llu,"
		 "\"refused\":%llu,\"largest\":%llu}", seed, done->maps, done->foreign,
		 done->channels, done->events, done->lost, done->buffers, done->refused,
		 done->largest);
	tap_note("%s", text);
	out = json ? fopen(json, "w") : NULL;
	if (!json || !CHECK(out, "%s", json))
		return;
	fprintf(out, "%s\n", text);
	fclose(out);
}

TEST(churn, "random work of several processes")
{
	static void (* const parts[])(void *) = {
		churn_maps, churn_channels, churn_buffers, churn_hog
	};
	pid_t pid[ARRAY_SIZE(parts)];
	size_t i;

	end_ns = now_ns() + number("RASHPA_CHURN_SECONDS", tap_times(3, 10)) * SECOND_NS;
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		pid[i] = tap_fork_start(parts[i], NULL);
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		tap_fork_end(pid[i]);
	write_counts();
}

void setup(void)
{
	/* run by the soak test, which streams at the same time and measures at its own end */
	if (getenv("RASHPA_CHURN_JSON"))
		not_alone();
	seed = (unsigned int)number("RASHPA_CHURN_SEED", tap_seed());
	largest_mib = number("RASHPA_CHURN_MIB", 16);
	/* the last one: others may stream with the first, which each end of a map would stop */
	if (!fpga_try(&f, (unsigned int)number("RASHPA_CHURN_FPGA", 1)))
		fpga_need(&f);
	done = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (done == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
}
