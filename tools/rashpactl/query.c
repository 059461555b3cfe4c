// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl buffer query: largest possible buffer, and remedies */
#include "rashpactl/query.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json-out.h"
#include "common/parse.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"
#include "common/shown.h"

unsigned int ask(int memory, const struct question *q, struct answer *answer)
{
	const uint32_t first = q->backend ? q->backend : RASHPA_BACKEND_CMA;
	const uint32_t last = q->backend ? q->backend : RASHPA_BACKEND_CONTIG;
	struct answer *a = answer;

	for (uint32_t backend = first; backend <= last; backend++, a++) {
		*a = (struct answer) {
			.query.head.flags = q->has_node ? RASHPA_QUERY_NODE : 0,
			.query.node = q->node,
			.query.backend = backend,
		};
		a->error = rashpa_memory_query(memory, &a->query);
		if (!a->error)
			a->error = rashpa_memory_limit(memory, RASHPA_RESOURCE_MEMORY, &a->limit);
		a->query.backend = backend;
		if (a->error)
			snprintf(a->reason, sizeof(a->reason), "%s", rashpa_reason());
	}
	return a - answer;
}

static uint64_t left(uint64_t limit, uint64_t used)
{
	if (!limit)
		return UINT64_MAX;
	return limit > used ? limit - used : 0;
}

uint64_t would_fit(const struct answer *answer, unsigned int n)
{
	uint64_t fit = 0;

	for (const struct answer *a = answer; a < answer + n; a++) {
		const struct rashpa_query *q = &a->query;
		/* CMA does not disclose its layout: the free memory is an upper limit */
		uint64_t most = q->backend == RASHPA_BACKEND_CMA ? q->out_free : q->out_largest;

		if (a->error)
			continue;
		if (most > left(a->limit.out_limit, a->limit.out_used))
			most = left(a->limit.out_limit, a->limit.out_used);
		if (most > left(a->limit.out_user_limit, a->limit.out_user_used))
			most = left(a->limit.out_user_limit, a->limit.out_user_used);
		if (most > fit)
			fit = most;
	}
	return fit;
}

__attribute__((format(printf, 2, 3)))
static void tell(struct json_object *to, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_object_array_add(to, json_object_new_string(text));
}

/* A boot parameter helps if no memory is reserved, or too little. */
static void tell_boot(struct json_object *to)
{
	if (kernel_config("CONFIG_DMA_CMA") == 'n') {
		tell(to, "cma: not in this kernel, so no boot parameter can keep memory back (Debian's kernels have it from 7.2 on)");
		return;
	}
	tell(to, "cma: boot with cma=SIZE to keep memory back, more than the largest buffer");
}

static void tell_limits(struct json_object *to, const struct question *q,
			const struct rashpa_limit *a)
{
	const uint64_t need = q->size ? q->size : 1;
	char limit[SIZE_TEXT], used[SIZE_TEXT];

	if (left(a->out_limit, a->out_used) < need)
		tell(to, "limit: all buffers together hold %s of the %s that the administrator allows: remove some (rashpactl buffer list), or raise /sys/module/rashpa/parameters/limit_mib",
		     format_size(used, a->out_used), format_size(limit, a->out_limit));
	if (left(a->out_user_limit, a->out_user_used) < need)
		tell(to, "limit: your buffers hold %s of the %s that the administrator allows one user: remove some (rashpactl buffer list), or raise /sys/module/rashpa/parameters/user_limit_mib",
		     format_size(used, a->out_user_used),
		     format_size(limit, a->out_user_limit));
}

static void tell_cma(struct json_object *to, const struct question *q, const struct answer *a)
{
	const struct rashpa_query *query = &a->query;
	char free[SIZE_TEXT];

	if (a->error == -EOPNOTSUPP || (!a->error && !query->out_total))
		tell(to, "cma: no memory is kept back");
	else if (a->error)
		tell(to, "cma: %s", a->reason);
	else
		tell(to, "cma: %s free, perhaps in pieces", format_size(free, query->out_free));
	if (a->error ? a->error == -EOPNOTSUPP : !query->out_total || query->out_total < q->size)
		tell_boot(to);
}

static void tell_contig(struct json_object *to, const struct question *q, const struct answer *a)
{
	const struct rashpa_query *query = &a->query;
	const uint64_t want = q->size ? q->size : query->out_free / 2;
	char free[SIZE_TEXT], run[SIZE_TEXT];

	format_size(free, query->out_free);
	format_size(run, query->out_largest);
	if (a->error) {
		tell(to, "contig: %s", a->reason);
		return;
	}
	if (!q->refused)
		tell(to, "contig: %s free, the longest run that looks free or movable is %s", free,
		     run);
	if (q->size > query->out_total)
		tell(to, "contig: the machine has only %s",
		     format_size(run, query->out_total));
	else if ((q->refused || query->out_largest < want) && want <= query->out_free)
		tell(to, "contig: memory is in pieces that cannot be moved: make buffers soon after boot%s",
		     q->has_node ? ", or take another node" : "");
	else if (q->refused || query->out_largest < want)
		tell(to, "contig: other programs hold the memory: end some, or make buffers soon after boot");
}

struct json_object *explain_answers(const struct question *q, const struct answer *answer,
				    unsigned int n)
{
	struct json_object *lines = json_object_new_array();
	const struct answer *good = NULL;

	for (const struct answer *a = answer; a < answer + n; a++) {
		if (a->query.backend == RASHPA_BACKEND_CMA)
			tell_cma(lines, q, a);
		else
			tell_contig(lines, q, a);
		if (!a->error)
			good = a;
	}
	if (good)
		tell_limits(lines, q, &good->limit);
	return lines;
}

static struct json_object *answer_json(const struct answer *a)
{
	const struct rashpa_query *q = &a->query;
	struct json_object *o = json_object_new_object();

	put_text(o, "backend", rashpa_backend_name(q->backend));
	put_text(o, "error", a->error ? a->reason : NULL);
	if (a->error)
		return o;
	put_u64(o, "total_bytes", q->out_total);
	put_u64(o, "free_bytes", q->out_free);
	if (q->backend == RASHPA_BACKEND_CMA)
		put_text(o, "largest_bytes", NULL);
	else
		put_u64(o, "largest_bytes", q->out_largest);
	put_text(o, "area", *q->out_area ? q->out_area : NULL);
	return o;
}

static int print_json(const struct question *q, const struct answer *answer, unsigned int n)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	const struct rashpa_limit *good = NULL;

	if (q->has_node)
		put_int(o, "numa_node", q->node);
	else
		put_text(o, "numa_node", NULL);
	for (const struct answer *a = answer; a < answer + n; a++) {
		json_object_array_add(list, answer_json(a));
		if (!a->error)
			good = &a->limit;
	}
	json_object_object_add(o, "backends", list);
	if (good) {
		put_u64(o, "allocated_bytes", good->out_used);
		put_u64(o, "limit_bytes", good->out_limit);
		put_u64(o, "user_allocated_bytes", good->out_user_used);
		put_u64(o, "user_limit_bytes", good->out_user_limit);
	}
	put_u64(o, "fits_bytes", would_fit(answer, n));
	json_object_object_add(o, "text", explain_answers(q, answer, n));
	return json_finish(o);
}

static void print_held(const char *who, uint64_t held, uint64_t limit)
{
	char text[SIZE_TEXT], most[SIZE_TEXT];

	printf("%s hold %s, %s%s\n", who, format_size(text, held),
	       limit ? "limit " : "no limit", limit ? format_size(most, limit) : "");
}

static void print_text(const struct question *q, const struct answer *answer, unsigned int n)
{
	struct json_object *lines = explain_answers(q, answer, n);
	char fit[SIZE_TEXT];

	for (size_t i = 0; i < json_object_array_length(lines); i++)
		puts(SHOWN(json_object_get_string(json_object_array_get_idx(lines, i))));
	json_object_put(lines);
	for (const struct answer *a = answer; a < answer + n; a++) {
		if (a->error)
			continue;
		print_held("all buffers", a->limit.out_used, a->limit.out_limit);
		print_held("your buffers", a->limit.out_user_used, a->limit.out_user_limit);
		break;
	}
	printf("would fit: %s at most\n", format_size(fit, would_fit(answer, n)));
}

enum { OPT_NODE = 256, OPT_BACKEND };

static const struct argp_option options[] = {
	{ "node", OPT_NODE, "N", 0, "only memory of this NUMA node", 0 },
	{ "backend", OPT_BACKEND, "auto|cma|contig", 0, "only this one (default: auto, both)", 0 },
	OPTION_JSON,
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct question *q = state->input;

	switch (key) {
	case OPT_NODE:
		option_node(state, arg, &q->node);
		q->has_node = true;
		break;
	case OPT_BACKEND:
		option_backend(state, arg, &q->backend);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cmd_buffer_query(int argc, char **argv)
{
	static const struct argp argp = { .options = options, .parser = parse };
	struct question question = {};
	struct answer answer[2];
	unsigned int n, failed = 0;
	int memory, result = 0;

	command_parse(&argp, argc, argv, &question);
	memory = rashpa_memory_open();
	if (memory < 0)
		return fail("%s", rashpa_reason());
	n = ask(memory, &question, answer);
	close(memory);
	for (unsigned int i = 0; i < n; i++)
		failed += answer[i].error != 0;
	if (command_json)
		result = print_json(&question, answer, n);
	else if (failed < n)
		print_text(&question, answer, n);
	if (failed == n) {
		for (unsigned int i = 0; i < n; i++)
			say("%s: %s", rashpa_backend_name(answer[i].query.backend),
			    answer[i].reason);
		result = EXIT_FAILED;
	}
	return result;
}
