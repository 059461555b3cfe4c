// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rashpa.h>
#include "common/shown.h"

/* Samples of one name must be adjacent, so each metric walks over all its objects. */
static void family(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* each byte as \\xNN */
#define LABEL_SIZE	(5 * RASHPA_STREAM_WORD + 3)

/* Escape the value of a label: consumers choose the names of engines and stages. */
static const char *label(char *buf, size_t size, const char *name)
{
	const char *text = SHOWN(name);
	size_t n = 0;

	for (; *text && n + 3 < size; text++) {
		if (*text == '"' || *text == '\\')
			buf[n++] = '\\';
		buf[n++] = *text;
	}
	buf[n] = '\0';
	return buf;
}

/* --- streams --- */

/* Metrics of a running stream. */
struct told {
	uint64_t slots, stacks, consumed, images, bytes, lag, skew, lost, events;
};

static struct told tell(const struct follower *f)
{
	const uint64_t images = f->stacks * f->about.bunch;

	return (struct told) {
		.slots = f->about.slots, .stacks = f->stacks, .consumed = f->consumed,
		.images = images, .bytes = images * follower_image_bytes(f),
		.lag = f->stacks > f->consumed ? f->stacks - f->consumed : 0,
		.skew = f->most - f->stacks, .lost = f->lost, .events = f->told,
	};
}

static void put_states(FILE *to, const struct metrics *m)
{
	static const char *const states[] = {
		"idle", "running", "waiting", "draining", "ended", "dead", "gone",
	};

	family(to, "rashpa_stream_state", "gauge", "1: the stream of the buffer is in this state.");
	for (unsigned int i = 0; i < m->followers; i++) {
		const struct follower *f = &m->follower[i];

		for (unsigned int s = 0; *f->state && s < sizeof(states) / sizeof(states[0]); s++)
			fprintf(to, "rashpa_stream_state{buffer=\"%s\",state=\"%s\"} %d\n", f->name,
				states[s], !strcmp(states[s], f->state));
	}
}

static void put_streams(FILE *to, const struct metrics *m)
{
	static const struct {
		const char *name, *type, *help;
		size_t at;
	} values[] = {
		{ "rashpa_stream_slots", "gauge", "Number of slots for stacks.",
		  offsetof(struct told, slots) },
		{ "rashpa_stream_stacks_total", "counter", "Complete stacks.",
		  offsetof(struct told, stacks) },
		{ "rashpa_stream_consumed_stacks_total", "counter", "Released stacks.",
		  offsetof(struct told, consumed) },
		{ "rashpa_stream_images_total", "counter", "Images of complete stacks.",
		  offsetof(struct told, images) },
		{ "rashpa_stream_bytes_total", "counter", "Bytes of these images.",
		  offsetof(struct told, bytes) },
		{ "rashpa_stream_lag_stacks", "gauge", "Complete stacks that are not yet released.",
		  offsetof(struct told, lag) },
		{ "rashpa_stream_skew_stacks", "gauge",
		  "Distance of the first process to the last one in stacks.",
		  offsetof(struct told, skew) },
		{ "rashpa_stream_lost_images_total", "counter",
		  "Images that were overwritten before their release.",
		  offsetof(struct told, lost) },
		{ "rashpa_stream_events_total", "counter",
		  "Events of the stream's interrupt since the start of watching.",
		  offsetof(struct told, events) },
	};

	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		family(to, values[v].name, values[v].type, values[v].help);
		for (unsigned int i = 0; i < m->followers; i++) {
			const struct follower *f = &m->follower[i];
			struct told t;

			if (!f->stream)
				continue;
			t = tell(f);
			fprintf(to, "%s{buffer=\"%s\"} %" PRIu64 "\n", values[v].name, f->name,
				*(const uint64_t *)((const char *)&t + values[v].at));
		}
	}
}

static void put_latencies(FILE *to, const struct metrics *m)
{
	static const int percentiles[] = { 50, 99, 100 };

	family(to, "rashpa_stream_event_latency_seconds", "gauge",
	       "Time from the interrupt to its record, in the last interval.");
	for (unsigned int i = 0; i < m->followers; i++) {
		const struct follower *f = &m->follower[i];
		struct samples l = f->latency;

		if (!f->stream || !l.count)
			continue;
		samples_sort(&l);
		for (unsigned int p = 0; p < sizeof(percentiles) / sizeof(percentiles[0]); p++)
			fprintf(to, "rashpa_stream_event_latency_seconds{buffer=\"%s\",percentile=\"%d\"} %.9g\n",
				f->name, percentiles[p],
				percentile(l.value, l.count, percentiles[p]) / 1e9);
	}
}

/* --- work reported by consumers --- */

static void put_work(FILE *to, const struct metrics *m)
{
	static const struct {
		const char *name, *type, *help;
		size_t at;
		bool narrow;		/* 32 bits */
	} values[] = {
		{ "rashpa_processing_images_total", "counter", "Images with signal.",
		  offsetof(struct rashpa_stream_work, images), false },
		{ "rashpa_processing_dark_images_total", "counter", "Dark images.",
		  offsetof(struct rashpa_stream_work, dark), false },
		{ "rashpa_processing_vetoed_images_total", "counter", "Images that were not kept.",
		  offsetof(struct rashpa_stream_work, vetoed), false },
		{ "rashpa_processing_lost_results_total", "counter", "Results that were lost.",
		  offsetof(struct rashpa_stream_work, lost), false },
		{ "rashpa_processing_late_results_total", "counter",
		  "Results after their deadline.",
		  offsetof(struct rashpa_stream_work, late), false },
		{ "rashpa_processing_overflows_total", "counter",
		  "Number of overflows.",
		  offsetof(struct rashpa_stream_work, overflow), false },
		{ "rashpa_processing_queue_stacks", "gauge", "Stacks whose results wait for sinks.",
		  offsetof(struct rashpa_stream_work, queue_fill), true },
		{ "rashpa_processing_queue_full_total", "counter",
		  "Stacks whose results had to wait for room in that queue.",
		  offsetof(struct rashpa_stream_work, queue_full), false },
	};
	char engine[LABEL_SIZE];

	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		family(to, values[v].name, values[v].type, values[v].help);
		for (unsigned int i = 0; i < m->followers; i++) {
			const struct follower *f = &m->follower[i];
			const char *at = (const char *)&f->work + values[v].at;

			if (f->stream && f->work.stages)
				fprintf(to, "%s{buffer=\"%s\",engine=\"%s\"} %" PRIu64 "\n",
					values[v].name, f->name,
					label(engine, sizeof(engine), f->work.engine),
					values[v].narrow ? *(const uint32_t *)at :
					*(const uint64_t *)at);
		}
	}
}

static void put_stages(FILE *to, const struct metrics *m)
{
	static const struct {
		const char *name, *help;
		size_t at;
		double unit;
	} values[] = {
		{ "rashpa_stage_images_total", "Images that a stage or sink processed.",
		  offsetof(struct rashpa_stream_stage, images), 1 },
		{ "rashpa_stage_lost_images_total", "Images that it could not keep.",
		  offsetof(struct rashpa_stream_stage, lost), 1 },
		{ "rashpa_stage_seconds_total", "Time that it took.",
		  offsetof(struct rashpa_stream_stage, ns), 1e9 },
		{ "rashpa_stage_read_bytes_total", "Bytes that it read.",
		  offsetof(struct rashpa_stream_stage, bytes_in), 1 },
		{ "rashpa_stage_written_bytes_total", "Bytes that it wrote.",
		  offsetof(struct rashpa_stream_stage, bytes_out), 1 },
	};
	char name[LABEL_SIZE];

	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		family(to, values[v].name, "counter", values[v].help);
		for (unsigned int i = 0; i < m->followers; i++) {
			const struct follower *f = &m->follower[i];

			for (uint32_t k = 0; f->stream && k < f->work.stages; k++) {
				const struct rashpa_stream_stage *s = &f->work.stage[k];

				/* a name may occur twice, with different numbers */
				fprintf(to, "%s{buffer=\"%s\",number=\"%" PRIu32 "\",stage=\"%s\",kind=\"%s\"} %.17g\n",
					values[v].name, f->name, k,
					label(name, sizeof(name), s->name),
					s->kind == RASHPA_STAGE_SINK ? "sink" : "process",
					*(const uint64_t *)((const char *)s + values[v].at) /
					values[v].unit);
			}
		}
	}
}

/* --- boards, and resources --- */

static void put_rings(FILE *to, const struct metrics *m)
{
	static const struct {
		const char *name, *help;
		size_t at;
	} values[] = {
		{ "rashpa_ring_events_total", "Events of a board's ring.",
		  offsetof(struct ring_seen, events) },
		{ "rashpa_ring_held_total", "Events that the board held back.",
		  offsetof(struct ring_seen, held) },
		{ "rashpa_ring_late_total", "Events that it sent late.",
		  offsetof(struct ring_seen, late) },
		{ "rashpa_ring_lost_total", "Events that it lost.",
		  offsetof(struct ring_seen, lost) },
		{ "rashpa_ring_errors_total", "Events that it could not send.",
		  offsetof(struct ring_seen, errors) },
	};

	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		family(to, values[v].name, "counter", values[v].help);
		for (unsigned int i = 0; i < m->rings->n; i++) {
			const struct ring_seen *s = &m->rings->seen[i];

			if (s->gone)
				continue;
			fprintf(to, "%s{fpga=\"fpga%u\",ring=\"%u\"} %" PRIu64 "\n",
				values[v].name, s->fpga, s->ring,
				*(const uint64_t *)((const char *)s + values[v].at));
		}
	}
}

static void put_resources(FILE *to)
{
	struct rashpa_limit limit[RASHPA_RESOURCE_TIMERS + 1];
	bool known[RASHPA_RESOURCE_TIMERS + 1] = {};
	int memory = rashpa_memory_open();

	for (uint32_t r = RASHPA_RESOURCE_MEMORY; memory >= 0 && r <= RASHPA_RESOURCE_TIMERS; r++)
		known[r] = !rashpa_memory_limit(memory, r, &limit[r]);
	if (memory >= 0)
		close(memory);
	family(to, "rashpa_memory_used_bytes", "gauge", "Memory held by all processes.");
	if (known[RASHPA_RESOURCE_MEMORY])
		fprintf(to, "rashpa_memory_used_bytes %" PRIu64 "\n",
			(uint64_t)limit[RASHPA_RESOURCE_MEMORY].out_used);
	family(to, "rashpa_resource_used", "gauge", "Amount of a resource held by all processes.");
	for (uint32_t r = RASHPA_RESOURCE_MEMORY + 1; r <= RASHPA_RESOURCE_TIMERS; r++)
		if (known[r])
			fprintf(to, "rashpa_resource_used{resource=\"%s\"} %" PRIu64 "\n",
				rashpa_resource_name(r), (uint64_t)limit[r].out_used);
	family(to, "rashpa_resource_limit", "gauge", "Limit of the resource; 0: no limit.");
	for (uint32_t r = RASHPA_RESOURCE_MEMORY + 1; r <= RASHPA_RESOURCE_TIMERS; r++)
		if (known[r])
			fprintf(to, "rashpa_resource_limit{resource=\"%s\"} %" PRIu64 "\n",
				rashpa_resource_name(r), (uint64_t)limit[r].out_limit);
}

/* --- all of it --- */

static void put_all(FILE *to, const struct metrics *m)
{
	family(to, "rashpa_build_info", "gauge", "1; the version of rashpactl is the label.");
	fprintf(to, "rashpa_build_info{version=\"%s\"} 1\n", RASHPA_VERSION);
	put_states(to, m);
	put_streams(to, m);
	put_latencies(to, m);
	put_work(to, m);
	put_stages(to, m);
	put_rings(to, m);
	if (m->resources)
		put_resources(to);
}

int metrics_write(const struct metrics *m, const char *file)
{
	char *part;
	FILE *to;
	int bad;

	if (!file) {
		put_all(stdout, m);
		return flush_output() ? -1 : 0;
	}
	/* collectors read *.prom only, so never a partial file */
	if (asprintf(&part, "%s.new", file) < 0) {
		say("no memory");
		return -1;
	}
	/* never write through a link that another user made */
	unlink(part);
	to = fopen(part, "wxe");
	if (!to) {
		say("cannot write %s: %s", part, strerror(errno));
		free(part);
		return -1;
	}
	put_all(to, m);
	/* readable by collectors, whatever the umask */
	bad = ferror(to) || fchmod(fileno(to), 0644);
	bad |= fclose(to);
	if (bad || rename(part, file)) {
		say("cannot write %s: %s", file, strerror(errno));
		unlink(part);
		bad = 1;
	}
	free(part);
	return bad ? -1 : 0;
}
