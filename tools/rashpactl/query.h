/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How large a buffer can be, and how to make room for a larger one. */
#ifndef QUERY_H
#define QUERY_H

#include <json-c/json.h>
#include <linux/rashpa.h>
#include <stdbool.h>
#include <stdint.h>

/* A query: can a buffer of @size bytes (0: of any size) come from @backend? */
struct question {
	uint64_t size;
	uint32_t node, backend;
	bool has_node;
	bool refused;		/* the driver has reported the amount */
};

/* The answer for one backend; error: a negative errno, explained in reason. */
struct answer {
	struct rashpa_query query;
	struct rashpa_limit limit;	/* of memory; with !error */
	int error;
	char reason[RASHPA_REASON_SIZE];
};

/*
 * Query one backend, or with AUTO both: answer[0], answer[1]. Returns the number of answers; there
 * must be room for two.
 */
unsigned int ask(int memory, const struct question *question, struct answer *answer);

/* Sentences that explain the answers and give remedies: a JSON array of strings. */
struct json_object *explain_answers(const struct question *question, const struct answer *answer,
				    unsigned int n);

/* The longest buffer that may fit, limits included. */
uint64_t would_fit(const struct answer *answer, unsigned int n);

#endif /* QUERY_H */
