// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/fpga.h"
#include "common/json-out.h"
#include "common/say.h"

#define STATES		3u
#define VALUES_MAX	8u

/* A kind of part: how many exist, and which fields are printed. */
static const struct part {
	const char *one, *list, *kind;
	uint32_t type, size, kind_at, known, status_at;
	struct { const char *name; uint32_t bit; } state[STATES];
	struct { const char *name; size_t at; } value[VALUES_MAX];
} parts[] = {
	{
		"unit", "units", "pretreat",
		RFPGA_BLOCK_UNIT, RFPGA_UNIT_SIZE, RFPGA_UNIT_KIND, RFPGA_UNIT_PRETREAT,
		RFPGA_UNIT_STATUS,
		{
			{ "running", RFPGA_UNIT_RUNNING }, { "waiting", RFPGA_UNIT_WAITING },
			{ "faulted", RFPGA_UNIT_FAULTED },
		},
		{
			{ "images", RFPGA_UNIT_C_IN }, { "results", RFPGA_UNIT_C_OUT },
			{ "dark", RFPGA_UNIT_C_DARK },
			{ "invalid_pixels", RFPGA_UNIT_C_INVALID },
		},
	}, {
		"ring", "rings", "wire",
		RFPGA_BLOCK_RING, RFPGA_RING_SIZE, RFPGA_RING_KIND, RFPGA_RING_WIRE,
		RFPGA_RING_STATUS,
		{
			{ "running", RFPGA_RING_RUNNING }, { "waiting", RFPGA_RING_WAITING },
			{ "faulted", RFPGA_RING_FAULTED },
		},
		{
			{ "events", RFPGA_RING_C_EVENTS }, { "sent", RFPGA_RING_C_SENT },
			{ "received", RFPGA_RING_C_RECEIVED }, { "held", RFPGA_RING_C_HELD },
			{ "late", RFPGA_RING_C_LATE }, { "lost", RFPGA_RING_C_LOST },
			{ "errors", RFPGA_RING_C_ERRORS }, { "bytes", RFPGA_RING_C_BYTES },
		},
	},
};

#define PARTS	(sizeof(parts) / sizeof(parts[0]))

static const char *kind_of(const struct part *p, const struct rashpa_board *f, size_t at)
{
	return rashpa_board_read(f, at + p->kind_at) == p->known ? p->kind : "?";
}

static struct json_object *part_json(const struct part *p, const struct rashpa_board *f, unsigned int n,
				     size_t at)
{
	struct json_object *o = json_object_new_object();
	const uint32_t status = rashpa_board_read(f, at + p->status_at);

	put_int(o, p->one, n);
	put_text(o, "kind", kind_of(p, f, at));
	for (size_t i = 0; i < STATES; i++)
		put_bool(o, p->state[i].name, status & p->state[i].bit);
	for (size_t i = 0; i < VALUES_MAX && p->value[i].name; i++)
		put_u64(o, p->value[i].name, rashpa_board_read64(f, at + p->value[i].at));
	return o;
}

void parts_json(struct json_object *to, const struct rashpa_board *f)
{
	struct rashpa_block b;

	for (const struct part *p = parts; p < parts + PARTS; p++) {
		struct json_object *list = json_object_new_array();

		if (!rashpa_board_find_block(f, p->type, p->size, &b))
			for (unsigned int i = 0; i < b.count; i++)
				json_object_array_add(list,
						      part_json(p, f, i, b.base + i * b.step));
		json_object_object_add(to, p->list, list);
	}
}

static void print_part(const struct part *p, const struct rashpa_board *f, unsigned int n, size_t at)
{
	const uint32_t status = rashpa_board_read(f, at + p->status_at);

	printf("%s %-5u %s", p->one, n, kind_of(p, f, at));
	for (size_t i = 0; i < STATES; i++)
		if (status & p->state[i].bit)
			printf(", %s", p->state[i].name);
	if (!(status & p->state[0].bit))
		printf(", stopped");
	for (size_t i = 0; i < VALUES_MAX && p->value[i].name; i++)
		printf("%s %s %" PRIu64, i ? "" : ",", p->value[i].name,
		       rashpa_board_read64(f, at + p->value[i].at));
	printf("\n");
}

void parts_print(const struct rashpa_board *f)
{
	struct rashpa_block b;

	for (const struct part *p = parts; p < parts + PARTS; p++)
		for (unsigned int i = 0; !rashpa_board_find_block(f, p->type, p->size, &b) && i < b.count;
		     i++)
			print_part(p, f, i, b.base + i * b.step);
}

/* --- rings, repeatedly --- */

static const struct ring_seen *before(const struct rings *r, unsigned int fpga, unsigned int ring)
{
	for (unsigned int i = 0; i < r->n; i++) {
		if (r->seen[i].fpga == fpga && r->seen[i].ring == ring)
			return &r->seen[i];
	}
	return NULL;
}

static void add(struct rings *r, const struct ring_seen *s)
{
	struct ring_seen *more = reallocarray(r->seen, r->n + 1, sizeof(*more));

	if (!more)
		return;
	r->seen = more;
	r->seen[r->n++] = *s;
}

static struct ring_seen look_at_ring(const struct rings *old, const struct rashpa_board *f,
				     unsigned int number, unsigned int n, size_t at)
{
	const uint32_t status = rashpa_board_read(f, at + RFPGA_RING_STATUS);
	const struct ring_seen *b = before(old, number, n);
	struct ring_seen s = {
		.fpga = number, .ring = n, .when = now_ns(),
		.running = status & RFPGA_RING_RUNNING, .waiting = status & RFPGA_RING_WAITING,
		.faulted = status & RFPGA_RING_FAULTED,
		.events = rashpa_board_read64(f, at + RFPGA_RING_C_EVENTS),
		.held = rashpa_board_read64(f, at + RFPGA_RING_C_HELD),
		.late = rashpa_board_read64(f, at + RFPGA_RING_C_LATE),
		.lost = rashpa_board_read64(f, at + RFPGA_RING_C_LOST),
		.errors = rashpa_board_read64(f, at + RFPGA_RING_C_ERRORS),
	};

	if (b && !b->gone && b->events <= s.events && b->when < s.when)
		s.events_per_second = (s.events - b->events) * 1e9 / (s.when - b->when);
	return s;
}

/* Check a board, which may be removed at any time: then it does not answer. */
struct look {
	const struct rings *old;
	struct rings now;
	unsigned int number;
	struct rashpa_board *board;
	bool answers;
};

static void look_at_board(void *arg)
{
	struct look *l = arg;
	struct ring_seen s;
	struct rashpa_board_info info;
	struct rashpa_block b;
	char name[16];

	snprintf(name, sizeof(name), "fpga%u", l->number);
	if (rashpa_board_open(name, &l->board))
		return;
	if (rashpa_board_find_block(l->board, RFPGA_BLOCK_RING, RFPGA_RING_SIZE, &b))
		b.count = 0;
	for (unsigned int k = 0; k < b.count; k++) {
		const size_t at = b.base + k * b.step;

		/* a ring that was never started has no counts */
		if (!rashpa_board_read(l->board, at + RFPGA_RING_RUN))
			continue;
		s = look_at_ring(l->old, l->board, l->number, k, at);
		/* a removed board reads as all ones */
		if (!rashpa_board_get_info(l->board, &info))
			add(&l->now, &s);
	}
	l->answers = !rashpa_board_get_info(l->board, &info);
}

/* Keep the rings of boards that stopped answering: all boards except @answer. */
static void keep_gone(struct rings *now, const struct rings *old, const unsigned int *answer,
		      unsigned int n)
{
	for (unsigned int i = 0; i < old->n; i++) {
		struct ring_seen s = old->seen[i];
		unsigned int k = 0;

		while (k < n && answer[k] != s.fpga)
			k++;
		if (k < n || before(now, s.fpga, s.ring))
			continue;
		s.gone = true;
		s.running = s.waiting = s.faulted = false;
		s.events_per_second = 0;
		add(now, &s);
	}
}

void rings_look(struct rings *r)
{
	struct look l = { .old = r };
	unsigned int *numbers = NULL, answer = 0;
	const int n = rashpa_device_list(&numbers);

	for (int i = 0; i < n; i++) {
		l.number = numbers[i];
		l.board = NULL;
		l.answers = false;
		if (fpga_outlive(look_at_board, &l) && l.answers)
			numbers[answer++] = numbers[i];
		rashpa_board_close(l.board);
	}
	keep_gone(&l.now, r, numbers, answer);
	free(numbers);
	free(r->seen);
	*r = l.now;
}

void rings_free(struct rings *r)
{
	free(r->seen);
	*r = (struct rings) {};
}

struct json_object *rings_json(const struct rings *r)
{
	struct json_object *list = json_object_new_array(), *o;

	for (const struct ring_seen *s = r->seen; s < r->seen + r->n; s++) {
		o = json_object_new_object();
		put_int(o, "fpga", s->fpga);
		put_int(o, "ring", s->ring);
		put_bool(o, "gone", s->gone);
		put_bool(o, "running", s->running);
		put_bool(o, "waiting", s->waiting);
		put_bool(o, "faulted", s->faulted);
		put_u64(o, "events", s->events);
		put_real(o, "events_per_second", s->events_per_second);
		put_u64(o, "held", s->held);
		put_u64(o, "late", s->late);
		put_u64(o, "lost", s->lost);
		put_u64(o, "errors", s->errors);
		json_object_array_add(list, o);
	}
	return list;
}
