// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-builder: the results of all ranks, printed by rank 0. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "builder/builder.h"
#include "common/json-out.h"
#include "common/say.h"

static uint64_t number(struct json_object *of, const char *key)
{
	return json_object_get_uint64(json_object_object_get(of, key));
}

static double real(struct json_object *of, const char *key)
{
	return json_object_get_double(json_object_object_get(of, key));
}

static void put_sums(struct json_object *to, struct json_object *ranks)
{
	static const char * const sums[] = {
		"sent", "received", "sent_bytes", "received_bytes", "lost", "duplicate", "late", "wrong",
	};

	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		uint64_t sum = 0;

		for (size_t j = 0; j < json_object_array_length(ranks); j++)
			sum += number(json_object_array_get_idx(ranks, j), sums[i]);
		put_u64(to, sums[i], sum);
	}
}

/* Rates of all ranks that receive. */
static void put_rate(struct json_object *to, struct json_object *ranks)
{
	double sum = 0, least = 0, most = 0;
	unsigned int n = 0;

	for (size_t i = 0; i < json_object_array_length(ranks); i++) {
		struct json_object *rank = json_object_array_get_idx(ranks, i);
		const double rate = real(rank, "mean_bytes_per_second");

		if (!number(rank, "received") || !number(rank, "samples"))
			continue;
		least = n && least < rate ? least : rate;
		most = most > rate ? most : rate;
		sum += rate;
		n++;
	}
	put_u64(to, "ranks_measured", n);
	put_real(to, "mean_bytes_per_second", n ? sum / n : 0);
	put_real(to, "least_bytes_per_second", least);
	put_real(to, "most_bytes_per_second", most);
}

static void text(struct json_object *all, struct json_object *ranks)
{
	static const char * const found[] = { "received", "lost", "duplicate", "late", "wrong" };

	printf("rank      sent  received      MB/s  polls/msg  CPU s  low send/receive\n");
	for (size_t i = 0; i < json_object_array_length(ranks); i++) {
		struct json_object *o = json_object_array_get_idx(ranks, i);

		printf("%4zu %9" PRIu64 " %9" PRIu64 " %9.0f %10.1f %6.2f  %d/%d\n", i,
		       number(o, "sent"), number(o, "received"), real(o, "mean_bytes_per_second") / 1e6,
		       real(o, "polls_per_message"), real(o, "cpu_s"),
		       (int)json_object_get_int64(json_object_object_get(o, "send_queue_low")),
		       (int)json_object_get_int64(json_object_object_get(o, "receive_queue_low")));
	}
	if (number(all, "ranks_measured"))
		printf("mean of %u that receive: %.0f MB/s (%.0f to %.0f)\n",
		       (unsigned int)number(all, "ranks_measured"),
		       real(all, "mean_bytes_per_second") / 1e6, real(all, "least_bytes_per_second") / 1e6,
		       real(all, "most_bytes_per_second") / 1e6);
	else
		printf("too short to measure: set --seconds to at least four times --interval\n");
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
		printf("%s%s: %" PRIu64, i ? ", " : "messages ", found[i], number(all, found[i]));
	putchar('\n');
}

int report_traffic(const struct options *o, struct json_object *ranks)
{
	struct json_object *all = json_object_new_object();
	bool bad;

	put_text(all, "command", o->command);
	put_text(all, "transport", o->fabric.transport);
	put_u64(all, "processes", json_object_array_length(ranks));
	put_u64(all, "size", o->size);
	put_u64(all, "jitter_percent", o->jitter);
	put_u64(all, "depth", o->fabric.depth);
	put_u64(all, "buffers", o->one_buffer ? 1 : o->buffers);
	put_bool(all, "verified", o->verify);
	put_sums(all, ranks);
	put_rate(all, ranks);
	bad = number(all, "lost") || number(all, "duplicate") || number(all, "late") ||
	      number(all, "wrong");
	if (!o->json || json_elsewhere())
		text(all, ranks);
	json_object_object_add(all, "ranks", ranks);
	if (!o->json)
		json_object_put(all);
	else if (json_finish(all))
		return EXIT_FAILED;
	return bad ? EXIT_DATA : 0;
}
