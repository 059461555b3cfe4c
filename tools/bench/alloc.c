// SPDX-License-Identifier: LGPL-2.1-or-later
/* Time to allocate a block of zeroed memory, with its descriptor. */
#include "bench/bench.h"
#include "common/parse.h"

/* Allocate, time and free a block. false: it failed, and the report has the reason. */
static bool once(struct bench *bench, const struct source *s, uint64_t size,
		 struct samples *samples)
{
	char why[WHY_SIZE], text[SIZE_TEXT];
	uint64_t start, end;
	int fd = -1;

	start = end = 0;
	if (!memory_suffices(s, size, why)) {
		start = now_ns();
		fd = s->alloc(s, size, why);
		end = now_ns();
	}
	if (fd < 0) {
		report_leave_out(bench->report, s->name, "allocation of %s: %s",
				 format_size(text, size), why);
		return false;
	}
	s->free(s, fd, size);
	samples_add(samples, end - start);
	return true;
}

static void rows(struct bench *bench, uint64_t size, struct samples *samples)
{
	for (size_t i = 0; i < bench->sources; i++) {
		const struct source *ours = &bench->source[i];
		bool alone = true;

		if (!ours->backend || !samples[i].count)
			continue;
		for (size_t j = 0; j < bench->sources; j++) {
			const struct row row = {
				.name = "alloc, zeroed", .backend = ours->backend,
				.peer = bench->source[j].name, .size = size, .unit = UNIT_US,
			};

			if (bench->source[j].backend || !samples[j].count)
				continue;
			report_row(bench->report, &row, &samples[i], &samples[j]);
			alone = false;
		}
		if (alone)
			report_row(bench->report, &(struct row) {
				.name = "alloc, zeroed", .backend = ours->backend, .size = size,
				.unit = UNIT_US,
			}, &samples[i], NULL);
	}
}

void bench_alloc(struct bench *bench, uint64_t size)
{
	struct samples samples[SOURCES_MAX] = {};
	bool out[SOURCES_MAX] = {};
	char text[SIZE_TEXT], why[WHY_SIZE];

	for (size_t i = 0; i < bench->sources; i++) {
		const struct source *s = &bench->source[i];

		out[i] = size < s->least;
		if (out[i] || !pool_reserve(s, size, why))
			continue;
		report_leave_out(bench->report, s->name, "allocation of %s: %s",
				 format_size(text, size), why);
		out[i] = true;
	}
	for (unsigned int r = 0; r < bench->report->repeat; r++) {
		for (size_t i = 0; i < bench->sources && going_on(); i++) {
			size_t k = turn(r, i, bench->sources);

			progress_show(&bench->report->progress, "allocation: %s, round %u of %u, %s",
				      format_size(text, size), r + 1, bench->report->repeat,
				      bench->source[k].name);
			if (!out[k])
				out[k] = !once(bench, &bench->source[k], size, &samples[k]);
		}
	}
	pool_restore();
	rows(bench, size, samples);
	for (size_t i = 0; i < bench->sources; i++)
		samples_free(&samples[i]);
}
