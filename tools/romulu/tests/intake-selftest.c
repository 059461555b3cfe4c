// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tests of what becomes of messages that never come, without a network and without the driver. */
#include <stdlib.h>

#include "lib/tests/fake-driver.h"
#include "romulu/intake.h"
#include "link/tests/network-selftest.h"

#define BUFFER		(UINT64_C(1) << 20)
#define PER_STACK	4		/* messages of a process */
#define STACKS		6
#define FLOWS		2
#define SLOTS		3
#define SETTLE_NS	1000

/* A stream of two processes, in a buffer of files. */
static bool begin(struct intake *in, struct rashpa_stream **stream, uint32_t policy)
{
	static const struct rashpa_stream_process process[FLOWS] = {
		{ .function = RASHPA_STREAM_SOFTWARE, .width = 4, .height = 2,
		  .messages = PER_STACK, .message_lines = 1 },
		{ .function = RASHPA_STREAM_SOFTWARE, .number = 1, .y = 2, .width = 4, .height = 2,
		  .messages = PER_STACK, .message_lines = 1 },
	};
	const struct rashpa_stream_plan plan = {
		.header = {
			.width = 4, .height = 4, .pixel = RASHPA_PIXEL_U16, .bunch = 2,
			.slots = SLOTS, .policy = policy, .images = 2 * STACKS,
		},
		.processes = FLOWS, .process = process,
	};

	intake_init(in);
	in->flows = FLOWS;
	in->close_after = 1;
	in->settle_ns = SETTLE_NS;
	in->flow = calloc(FLOWS, sizeof(*in->flow));
	for (uint32_t i = 0; in->flow && i < FLOWS; i++) {
		in->flow[i].peer = "detector";
		in->flow[i].process = i;
		in->flow[i].per_image = PER_STACK / 2;
		in->flow[i].per_stack = PER_STACK;
	}
	if (!in->flow || rashpa_stream_create("b", &plan, stream) || intake_open(in, *stream) ||
	    rashpa_stream_start(*stream, 0, 0))
		return false;
	intake_begin(in, 0);
	return true;
}

/* All messages below that number arrive, of both processes. */
static bool take(struct intake *in, uint32_t from, uint32_t to)
{
	char why[256];

	for (uint32_t number = from; number < to; number++) {
		for (uint32_t i = 0; i < FLOWS; i++) {
			struct flow *f = &in->flow[i];
			struct place at;

			if (flow_place(f, f->first + number, &at, why))
				return false;
			flow_take(f, &at);
		}
	}
	return true;
}

/* The detector says that it sent so many, and nothing more comes. */
static void end(struct intake *in, uint64_t sent)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < FLOWS; i++) {
		in->flow[i].sent = sent;
		in->flow[i].ended = true;
		last = in->flow[i].moved_ns > last ? in->flow[i].moved_ns : last;
	}
	intake_close_quiet(in, last + SETTLE_NS);
	for (uint32_t i = 0; i < FLOWS; i++)
		flow_count_tail(&in->flow[i]);
}

/* So many messages of the end are lost: all stacks are published, and those are incomplete. */
static void test_tail(uint32_t policy, uint32_t lost)
{
	const uint32_t all = STACKS * PER_STACK, paced = policy == RASHPA_STREAM_WAIT;
	const uint32_t came = (paced ? SLOTS * PER_STACK : all) - lost;
	const uint32_t sent = came + lost, stacks = sent / PER_STACK;
	struct rashpa_stream *stream = NULL;
	struct intake in;
	bool good = begin(&in, &stream, policy) && take(&in, 0, came);

	if (good)
		end(&in, sent);
	ok(good && rashpa_stream_complete(stream) == stacks &&
	   in.incomplete == stacks - came / PER_STACK &&
	   in.flow[0].missing == lost && in.flow[1].missing == lost,
	   "intake-tail-%s-%u: %u messages lost at the end: %u of %u stacks published, %u incomplete",
	   paced ? "wait" : "overwrite", lost, lost,
	   stream ? (unsigned int)rashpa_stream_complete(stream) : 0, stacks,
	   (unsigned int)in.incomplete);
	rashpa_stream_close(stream);
	intake_close(&in);
}

/* A count that no detector can have reached is not believed. */
static void test_absurd(void)
{
	struct rashpa_stream *stream = NULL;
	struct intake in;
	bool good = begin(&in, &stream, RASHPA_STREAM_OVERWRITE) && take(&in, 0, PER_STACK);

	if (good)
		end(&in, UINT64_C(1) << 56);
	ok(good && rashpa_stream_complete(stream) == 1,
	   "intake-tail-absurd: a count of 2^56 messages opens no slot");
	rashpa_stream_close(stream);
	intake_close(&in);
}

void test_intake(void)
{
	const uint32_t policies[] = { RASHPA_STREAM_OVERWRITE, RASHPA_STREAM_WAIT };
	/* a message, a half of a stack, one stack, one and a half, all slots */
	const uint32_t lost[] = { 0, 1, 2, 4, 6, SLOTS * PER_STACK };

	if (fake_driver_load() || !fake_buffer("b", BUFFER)) {
		ok(false, "intake-driver: a buffer of files");
		return;
	}
	for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
		for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
			test_tail(policies[p], lost[i]);
	}
	/* more than there are slots: the oldest ones go to the next stacks */
	test_tail(RASHPA_STREAM_OVERWRITE, STACKS * PER_STACK);
	test_absurd();
	fake_driver_unload();
}
