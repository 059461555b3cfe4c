// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rashpa-bench stream: cost of a stack for consumers and workers of a stream in a file; then loss,
 * backlog and latency at fixed rates, alone and with hogs. The sender does not wait: a stack that
 * finds no slot is lost, and latency counts from the time at which a stack was due.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench/settings.h"
#include "common/json-out.h"
#include "common/parse.h"
#include "common/shown.h"
#include <rashpa.h>
#include <rashpa-stream.h>

#define MOST		16u	/* consumers */
#define SLOTS		256u	/* of short stacks */
#define WAKES		20u	/* waits for each repetition */
#define WAKE_NS		500000	/* from one to the next */
#define RATES		16
#define NEAR_NS		50000	/* so long before its time the sender polls */
#define HOGS_MAX	64u
#define HOG_BYTES	(UINT64_C(32) << 20)
#define HOG_FILE	(UINT64_C(512) << 20)

enum hog { ALONE, PROCESSORS, MEMORY, PAGES, HOGS };

static const char * const hog_names[HOGS] = { "alone", "processor hogs", "memory hogs", "page cache" };

struct config {
	struct settings settings;
	uint64_t size[SIZES_MAX];	/* of a stack */
	double rate[RATES];		/* GB/s */
	unsigned int rates;
	double seconds;
	const char *folder;		/* for the file that fills the page cache */
	char path[64];
};

enum { OPT_RATES = OPT_OWN, OPT_TIME, OPT_FOLDER };

static const struct argp_option options[] = {
	{ "rates", OPT_RATES, "GB/s,...", 0, "rates, up to what this memory gives (default: 1,5,10,20)", 0 },
	{ "time", OPT_TIME, "SECONDS", 0, "length of each run at a rate (default: 2)", 0 },
	{ "sizes", 's', "SIZE", 0, "bytes of a stack at these rates (default: 4M)", 0 },
	{ "folder", OPT_FOLDER, "DIR", 0, "where 512 MiB are written for the page cache (default: /var/tmp)", 0 },
	{ "repeat", 'r', "N", 0, "rounds, 1 to 1000 (default: 21)", 0 },
	OPTION_JSON,
	{}
};

static void check_size(struct argp_state *state, const char *word, uint64_t size)
{
	if (size < 4096 || size > 1 << 28 || size % 4096)
		argp_error(state, "--sizes: \"%s\" is not a multiple of 4096 up to 256M", word);
}

static void parse_rates(struct argp_state *state, char *arg, struct config *c)
{
	char *word, *next, *end;

	c->rates = 0;
	for (word = strtok_r(arg, ",", &next); word; word = strtok_r(NULL, ",", &next)) {
		const double rate = strtod(word, &end);

		if (*end || !(rate >= 0.001 && rate <= 1000) || c->rates == RATES)
			argp_error(state, "--rates: \"%s\" is not one of up to %d numbers from 0.001 to 1000", word, RATES);
		c->rate[c->rates++] = rate;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;

	switch (key) {
	case OPT_RATES:
		parse_rates(state, arg, c);
		break;
	case OPT_TIME:
		c->seconds = option_number(state, "--time", arg, 1, 86400);
		break;
	case OPT_FOLDER:
		c->folder = arg;
		break;
	case 's':
		if (option_sizes(state, arg, c->size, check_size) > 1)
			argp_error(state, "--sizes: give one size");
		break;
	default:
		return settings_parse(&c->settings, key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Measure a stream in a file in /dev/shm: processor time, instructions and cache misses that "
	       "a consumer needs to take and release a stack and to wake up for it, for 1 to 16 consumers "
	       "in a place each, and workers of one place; then loss, largest backlog and latency at "
	       "fixed rates, alone and with hogs. Needs no driver.",
};

static struct rashpa_stream *producer(struct config *c, uint64_t bytes, uint32_t slots, uint32_t policy)
{
	const struct rashpa_stream_process whole = { .width = 2048, .height = bytes / 4096 };
	const struct rashpa_stream_plan plan = {
		.header = {
			.width = whole.width, .height = whole.height, .pixel = RASHPA_PIXEL_U16,
			.bunch = 1, .slots = slots, .policy = policy,
		},
		.process = &whole, .processes = 1,
	};
	struct rashpa_stream *s;

	unlink(c->path);
	if (rashpa_stream_create(c->path, &plan, &s)) {
		fail("%s", rashpa_reason());
		return NULL;
	}
	return s;
}

/* --- calls --- */

enum call { TAKE, RELEASE, WAKE, CALLS };

static const char * const call_names[CALLS] = { "take", "release", "wake" };

/* Of a thread, in user space. */
struct counted {
	uint64_t ns, instructions, misses;
};

struct calls {
	struct config *config;
	uint32_t consumers, workers;	/* one of them is 1 */
	pthread_barrier_t barrier;
	_Atomic uint64_t taken;		/* workers take so many together */
	_Atomic uint64_t due;		/* when the last stack was published */
	_Atomic bool failed;
	pthread_mutex_t lock;
	struct counted sum[CALLS];
	uint64_t stacks[CALLS];
	struct samples wake;
	int counters;			/* errno, if there are none */
};

struct consumer {
	struct calls *calls;
	struct rashpa_stream *stream;
	pthread_t thread;
	int instructions, misses;	/* descriptors of perf */
};

static int counter(uint64_t kind, int group)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE, .size = sizeof(attr), .config = kind,
		.exclude_kernel = 1, .exclude_hv = 1,
	};

	return syscall(SYS_perf_event_open, &attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

static void count_now(const struct consumer *o, struct counted *now)
{
	struct timespec time;

	*now = (struct counted) {};
	if (o->instructions >= 0 && (read(o->instructions, &now->instructions, 8) != 8 ||
				     read(o->misses, &now->misses, 8) != 8))
		*now = (struct counted) {};
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	now->ns = time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

static void add_since(struct consumer *o, const struct counted *from, enum call call, uint64_t stacks)
{
	struct calls *c = o->calls;
	struct counted now;

	count_now(o, &now);
	pthread_mutex_lock(&c->lock);
	c->sum[call].ns += now.ns - from->ns;
	c->sum[call].instructions += now.instructions - from->instructions;
	c->sum[call].misses += now.misses - from->misses;
	c->stacks[call] += stacks;
	pthread_mutex_unlock(&c->lock);
}

static void wait_for_all(struct consumer *o, struct calls *c)
{
	struct counted before;
	struct rashpa_stack st;
	uint64_t n = 0;

	count_now(o, &before);
	while (rashpa_stream_next(o->stream, &st, -1) > 0) {
		const uint64_t ns = now_ns() - c->due;

		rashpa_stream_release(o->stream, &st);
		n++;
		pthread_mutex_lock(&c->lock);
		samples_add(&c->wake, ns);
		pthread_mutex_unlock(&c->lock);
	}
	add_since(o, &before, WAKE, n);
}

static void *consume(void *argument)
{
	struct consumer *o = argument;
	struct calls *c = o->calls;
	struct rashpa_stack st[SLOTS];
	struct counted before;

	o->instructions = counter(PERF_COUNT_HW_INSTRUCTIONS, -1);
	o->misses = o->instructions < 0 ? -1 : counter(PERF_COUNT_HW_CACHE_MISSES, -1);
	if (o->misses < 0) {
		c->counters = errno;
		if (o->instructions >= 0)
			close(o->instructions);
		o->instructions = -1;
	}
	/* the first round does not count: pages are mapped then */
	for (unsigned int r = 0; r <= c->config->settings.report->repeat; r++) {
		uint32_t n = 0;

		pthread_barrier_wait(&c->barrier);
		count_now(o, &before);
		while (n < SLOTS && (c->workers == 1 || c->taken++ < SLOTS) &&
		       rashpa_stream_next(o->stream, &st[n], 0) > 0)
			n++;
		if (r)
			add_since(o, &before, TAKE, n);
		c->failed |= c->workers == 1 && n < SLOTS;
		pthread_barrier_wait(&c->barrier);
		count_now(o, &before);
		for (uint32_t i = 0; i < n; i++)
			rashpa_stream_release(o->stream, &st[i]);
		if (r)
			add_since(o, &before, RELEASE, n);
		pthread_barrier_wait(&c->barrier);
	}
	wait_for_all(o, c);
	if (o->instructions >= 0) {
		close(o->instructions);
		close(o->misses);
	}
	return NULL;
}

static bool publish(struct calls *c, struct rashpa_stream *s, uint32_t stacks)
{
	struct rashpa_stack st;

	while (stacks-- && !c->failed) {
		c->failed = rashpa_stream_slot(s, &st, 10000000000) <= 0;
		c->due = now_ns();
		if (!c->failed)
			rashpa_stream_publish(s, &st);
	}
	return !c->failed;
}

static int join_all(struct calls *c, struct consumer *consumer, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		char name[16];
		const struct rashpa_place_options place = {
			.name = name, .workers = c->workers, .flags = RASHPA_STREAM_FROM_START,
		};

		snprintf(name, sizeof(name), "bench%" PRIu32, c->workers > 1 ? 0 : i);
		consumer[i] = (struct consumer) { .calls = c };
		if (rashpa_stream_open_as(c->config->path, &place, &consumer[i].stream))
			return fail("%s", rashpa_reason());
	}
	return 0;
}

static int run_calls(struct calls *c)
{
	const struct timespec pause = { .tv_nsec = WAKE_NS };
	const uint32_t n = c->consumers * c->workers;
	struct consumer consumer[MOST] = {};
	struct rashpa_stream *s = producer(c->config, 4096, SLOTS, RASHPA_STREAM_WAIT);
	int result = !s || rashpa_stream_start(s, 0, 0) ? EXIT_FAILED : join_all(c, consumer, n);

	pthread_mutex_init(&c->lock, NULL);
	pthread_barrier_init(&c->barrier, NULL, n + 1);
	for (uint32_t i = 0; i < n && !result; i++) {
		/* without threads there is no report either */
		if (pthread_create(&consumer[i].thread, NULL, consume, &consumer[i]))
			exit(fail("cannot make a thread"));
	}
	for (unsigned int r = 0; r <= c->config->settings.report->repeat && !result; r++) {
		publish(c, s, SLOTS);
		c->taken = 0;
		pthread_barrier_wait(&c->barrier);
		pthread_barrier_wait(&c->barrier);
		pthread_barrier_wait(&c->barrier);
	}
	for (unsigned int r = 0; r < WAKES * c->config->settings.report->repeat && !result && going_on(); r++) {
		nanosleep(&pause, NULL);
		publish(c, s, 1);
	}
	rashpa_stream_close(s);
	for (uint32_t i = 0; i < n; i++) {
		if (consumer[i].thread)
			pthread_join(consumer[i].thread, NULL);
		rashpa_stream_close(consumer[i].stream);
	}
	pthread_barrier_destroy(&c->barrier);
	pthread_mutex_destroy(&c->lock);
	return c->failed && !result ? fail("stacks did not come: %s", rashpa_reason()) : result;
}

static void tell_latency(struct json_object *to, struct samples *s)
{
	struct json_object *o = json_object_new_object();
	const char * const names[] = { "p50", "p90", "p99", "p99.9", "max" };

	samples_sort(s);
	for (unsigned int i = 0; i < BENCH_PERCENTILES; i++)
		put_u64(o, names[i], percentile(s->value, s->count, bench_percentiles[i]));
	json_object_object_add(to, "latency_ns", o);
}

static double us(const struct samples *s, double p)
{
	return percentile(s->value, s->count, p) / 1e3;
}

static void tell_calls(struct calls *c, struct json_object *list)
{
	const bool text = settings_text(&c->config->settings);

	for (enum call i = 0; i < CALLS; i++) {
		const struct counted *sum = &c->sum[i];
		const double n = c->stacks[i] ?: 1;
		struct json_object *o = json_object_new_object();

		put_u64(o, "places", c->consumers);
		put_u64(o, "workers", c->workers);
		put_text(o, "call", call_names[i]);
		put_real(o, "processor_ns", sum->ns / n);
		if (!c->counters) {
			put_real(o, "instructions", sum->instructions / n);
			put_real(o, "cache_misses", sum->misses / n);
		}
		if (i == WAKE)
			tell_latency(o, &c->wake);
		json_object_array_add(list, o);
		if (!text)
			continue;
		printf("%6" PRIu32 " %7" PRIu32 "  %-7s %10.0f", c->consumers, c->workers, call_names[i], sum->ns / n);
		if (c->counters)
			printf("  %12s %8s", "-", "-");
		else
			printf("  %12.0f %8.2f", sum->instructions / n, sum->misses / n);
		if (i == WAKE)
			printf("   p50 %.1f us, p99 %.1f, p99.9 %.1f", us(&c->wake, 50), us(&c->wake, 99),
			       us(&c->wake, 99.9));
		printf("\n");
	}
}

static int measure_calls(struct config *c, struct json_object *list)
{
	int result = 0;

	if (settings_text(&c->settings))
		printf("%6s %7s  %-7s %10s  %12s %8s\n", "places", "workers", "a stack", "ns of CPU", "instructions",
		       "misses");
	for (unsigned int shared = 0; shared < 2; shared++) {
		for (uint32_t n = 1 + shared; n <= MOST && !result && going_on(); n *= 2) {
			struct calls calls = {
				.config = c, .consumers = shared ? 1 : n, .workers = shared ? n : 1,
			};

			result = run_calls(&calls);
			if (calls.counters)
				report_leave_out(c->settings.report, "instructions and cache misses",
						 "no counters on this machine: %s", strerror(calls.counters));
			if (!result)
				tell_calls(&calls, list);
			samples_free(&calls.wake);
		}
	}
	return result;
}

/* --- rates --- */

struct load {
	struct config *config;
	enum hog hog;
	double rate;
	struct rashpa_stream *consumer;
	uint64_t sent, lost, taken, backlog;
	struct samples latency;
	_Atomic bool over;
	volatile uint64_t sum;		/* of all pixels, so that they are read */
};

static uint64_t add_up(const void *data, size_t bytes)
{
	const uint64_t *word = data;
	uint64_t sum = 0;

	for (size_t i = 0; i < bytes / sizeof(*word); i++)
		sum += word[i];
	return sum;
}

static void *take_all(void *argument)
{
	struct load *l = argument;
	struct rashpa_stream_stat stat;
	struct rashpa_stack st;

	while (rashpa_stream_next(l->consumer, &st, -1) > 0) {
		l->sum += add_up(st.data, *l->config->size);
		samples_add(&l->latency, now_ns() - st.user[0]);
		l->taken++;
		rashpa_stream_get_stat(l->consumer, &stat);
		l->backlog = stat.behind + stat.held > l->backlog ? stat.behind + stat.held : l->backlog;
		rashpa_stream_release(l->consumer, &st);
	}
	return NULL;
}

static void *hog(void *argument)
{
	struct load *l = argument;
	char *block = l->hog == PROCESSORS ? NULL : calloc(2, HOG_BYTES), path[256];
	uint64_t at = 0;
	int fd = -1;

	if (l->hog == PAGES) {
		snprintf(path, sizeof(path), "%s/rashpa-bench-XXXXXX", l->config->folder);
		fd = mkstemp(path);
		if (fd >= 0)
			unlink(path);
	}
	while (!l->over && (block || l->hog == PROCESSORS)) {
		if (l->hog == MEMORY)
			memcpy(block + HOG_BYTES, block, HOG_BYTES);
		if (l->hog != PAGES)
			continue;
		/* dirty pages, which are written back and thrown away */
		if (pwrite(fd, block, HOG_BYTES, at) < 0)
			break;
		at = (at + HOG_BYTES) % HOG_FILE;
		if (!at && ftruncate(fd, 0))
			break;
	}
	if (fd >= 0)
		close(fd);
	free(block);
	return NULL;
}

static void await(uint64_t time)
{
	const uint64_t sleep = time - NEAR_NS;
	const struct timespec until = { sleep / 1000000000, sleep % 1000000000 };

	if (now_ns() < sleep)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	while (now_ns() < time)
		;
}

static void send_all(struct load *l, struct rashpa_stream *s, const void *image)
{
	const double period = *l->config->size / l->rate;	/* ns */
	const uint64_t stacks = l->config->seconds * 1e9 / period, begin = now_ns() + 1000000;
	struct rashpa_stack st;

	for (; l->sent + l->lost < stacks && going_on();) {
		const uint64_t due = begin + (uint64_t)((l->sent + l->lost) * period);

		await(due);
		if (rashpa_stream_slot(s, &st, 0) <= 0) {
			l->lost++;
			continue;
		}
		memcpy(st.data, image, *l->config->size);
		st.user[0] = due;
		rashpa_stream_publish(s, &st);
		l->sent++;
	}
}

static int run_rate(struct load *l, const void *image)
{
	const uint32_t hogs = l->hog == ALONE ? 0 : l->hog == PAGES ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
	struct rashpa_stream *s = producer(l->config, *l->config->size, 32, RASHPA_STREAM_DROP);
	pthread_t consumer, thread[HOGS_MAX];
	uint32_t n = 0;

	if (!s || rashpa_stream_start(s, 0, 0) ||
	    rashpa_stream_open(l->config->path, RASHPA_STREAM_FROM_START, &l->consumer) ||
	    pthread_create(&consumer, NULL, take_all, l)) {
		rashpa_stream_close(l->consumer);
		rashpa_stream_close(s);
		return fail("%s", rashpa_reason());
	}
	while (n < hogs && n < HOGS_MAX && !pthread_create(&thread[n], NULL, hog, l))
		n++;
	send_all(l, s, image);
	rashpa_stream_close(s);
	pthread_join(consumer, NULL);
	l->over = true;
	while (n--)
		pthread_join(thread[n], NULL);
	rashpa_stream_close(l->consumer);
	return 0;
}

static void tell_rate(struct load *l, struct json_object *list)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "load", hog_names[l->hog]);
	put_real(o, "rate_gbyte_per_s", l->rate);
	put_u64(o, "sent", l->sent);
	put_u64(o, "lost", l->lost);
	put_u64(o, "taken", l->taken);
	put_u64(o, "largest_backlog", l->backlog);
	tell_latency(o, &l->latency);
	json_object_array_add(list, o);
	if (settings_text(&l->config->settings))
		printf("%-15s %6.3g GB/s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 "   p50 %.0f us, p99 %.0f, p99.9 %.0f, most %.0f\n",
		       hog_names[l->hog], l->rate, l->sent, l->lost, l->backlog, us(&l->latency, 50),
		       us(&l->latency, 99), us(&l->latency, 99.9), us(&l->latency, 100));
}

/* Bytes that the sender's thread can copy in a nanosecond, to pages that no cache has. */
static double copy_rate(const struct config *c, const void *image)
{
	const uint32_t copies = (UINT64_C(256) << 20) / *c->size + 1;
	char *to = calloc(copies, *c->size);
	uint64_t begin = 0;

	for (uint32_t i = 0; i < 2 * copies && to; i++) {
		if (i == copies)
			begin = now_ns();
		memcpy(to + i % copies * *c->size, image, *c->size);
	}
	begin = now_ns() - begin;
	free(to);
	return to ? (double)copies * *c->size / begin : 0;
}

static int measure_rates(struct config *c, struct json_object *list)
{
	char *image = malloc(*c->size);
	double most;
	int result = 0;

	if (!image)
		return fail("no memory for a stack");
	memset(image, 7, *c->size);
	most = copy_rate(c, image);
	if (settings_text(&c->settings))
		printf("\n%-15s %11s %8s %8s %8s\n", "load", "rate", "sent", "lost", "backlog");
	for (unsigned int i = 0; i < c->rates && !result && going_on(); i++) {
		if (c->rate[i] > most) {
			report_leave_out(c->settings.report, "rate", "%g GB/s: a processor writes %.2f GB/s to this memory",
					 c->rate[i], most);
			continue;
		}
		for (enum hog hog = ALONE; hog < HOGS && !result && going_on(); hog++) {
			struct load l = { .config = c, .hog = hog, .rate = c->rate[i] };

			progress_show(&c->settings.report->progress, "%g GB/s, %s", l.rate, hog_names[hog]);
			result = run_rate(&l, image);
			progress_end(&c->settings.report->progress);
			if (!result)
				tell_rate(&l, list);
			samples_free(&l.latency);
		}
	}
	free(image);
	return result;
}

int cmd_stream(int argc, char **argv)
{
	struct report report = { .repeat = 21, .iommu = -1 };
	struct config c = {
		.settings.report = &report, .size = { 4 << 20 }, .rate = { 1, 5, 10, 20 }, .rates = 4,
		.seconds = 2, .folder = "/var/tmp",
	};
	struct json_object *o, *calls = json_object_new_array(), *rates = json_object_new_array();
	int result;

	argp_parse(&argp, argc, argv, 0, NULL, &c);
	snprintf(c.path, sizeof(c.path), "/dev/shm/rashpa-bench-%d", (int)getpid());
	catch_signals();
	progress_init(&report.progress, true);
	result = measure_calls(&c, calls);
	if (!result)
		result = measure_rates(&c, rates);
	unlink(c.path);
	o = report_json_head(&report, "stream");
	json_object_object_add(o, "calls", calls);
	json_object_object_add(o, "rates", rates);
	report_json_left_out(&report, o);
	if (settings_text(&c.settings))
		report_print_left_out(&report);
	if (!c.settings.json)
		json_object_put(o);
	else if (json_finish(o) && !result)
		result = EXIT_FAILED;
	if (!result)
		result = measured(true, false);
	report_free(&report);
	return result;
}
