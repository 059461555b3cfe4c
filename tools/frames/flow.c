// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packets of one queue pair, one after the other: PSN, order of opcodes, lengths, immediates. */
#include <inttypes.h>

#include "frames/check.h"
#include "frames/opcode.h"

static bool is_path_mtu(size_t size)
{
	return size >= PATH_MTU_MIN && size <= PATH_MTU_MAX && !(size & (size - 1));
}

/* ------------------------------------------------- PSN and immediate ---- */

struct wording {
	const char *name;
	int digits;
	enum fault wrong, gap, duplicate, order, back;
};

static const struct wording of_psn = {
	"PSN", 6, FAULT_PSN, FAULT_PSN_GAP, FAULT_PSN_DUPLICATE, FAULT_PSN_ORDER, FAULT_PSN_BACK,
};

static const struct wording of_immediate = {
	"immediate", 8, FAULT_IMMEDIATE, FAULT_IMMEDIATE_GAP, FAULT_IMMEDIATE_DUPLICATE,
	FAULT_IMMEDIATE_ORDER, FAULT_IMMEDIATE_BACK,
};

/* Put a number into its place and say what is wrong with that; how many are missing. */
static enum order place(struct check *c, struct flow *f, struct sequence *s,
			const struct wording *w, uint64_t number, uint32_t value,
			const uint32_t *next, uint64_t *missing)
{
	uint32_t expected = s->expected, n = (value - expected) & s->mask;
	enum order order = sequence_place(s, value, next);
	int d = w->digits;

	switch (order) {
	case ORDER_GAP:
		*missing += n;
		found(c, f, number, w->gap, expected, value, "%s gap: expected 0x%0*" PRIx32
		      ", got 0x%0*" PRIx32 ": %" PRIu32 " missing", w->name, d, expected, d, value,
		      n);
		break;
	case ORDER_AHEAD:
		*missing += n;
		break;
	case ORDER_LATE:
		if (*missing)
			--*missing;
		found(c, f, number, w->order, expected, value, "%s out of order: expected 0x%0*"
		      PRIx32 ", got 0x%0*" PRIx32 ", which comes late", w->name, d, expected, d,
		      value);
		break;
	case ORDER_DUPLICATE:
		found(c, f, number, w->duplicate, expected, value, "%s duplicate: expected 0x%0*"
		      PRIx32 ", got 0x%0*" PRIx32 " once more", w->name, d, expected, d, value);
		break;
	case ORDER_WRONG:
		found(c, f, number, w->wrong, expected, value, "wrong %s: expected 0x%0*" PRIx32
		      ", got 0x%0*" PRIx32, w->name, d, expected, d, value);
		break;
	case ORDER_BACK:
		found(c, f, number, w->back, expected, value, "%s goes back: expected 0x%0*" PRIx32
		      ", got 0x%0*" PRIx32 " and those after it", w->name, d, expected, d, value);
		break;
	default:
		break;
	}
	return order;
}

static void place_immediate(struct check *c, struct flow *f, uint64_t number, uint32_t value,
			    const uint32_t *next)
{
	place(c, f, &f->immediates, &of_immediate, number, value, next, &f->immediates_missing);
}

static void immediate(struct check *c, struct flow *f, const struct packet *p)
{
	if (c->options.no_immediate)
		return;
	if (f->immediate_doubt) {
		f->immediate_doubt = false;
		place_immediate(c, f, f->immediate_number, f->immediate_held, &p->immediate);
	}
	if (sequence_doubtful(&f->immediates, p->immediate)) {
		f->immediate_doubt = true;
		f->immediate_held = p->immediate;
		f->immediate_number = p->number;
	} else {
		place_immediate(c, f, p->number, p->immediate, NULL);
	}
}

/* ------------------------------------------------------------- length ---- */

static bool length_good(struct check *c, struct flow *f, const struct packet *p,
			unsigned int parts)
{
	uint32_t mtu = f->path_mtu ? f->path_mtu : PATH_MTU_MAX;

	if (!f->path_mtu && !(parts & PART_LAST)) {
		if (is_path_mtu(p->payload)) {
			f->path_mtu = (uint32_t)p->payload;
			return true;
		}
		if (p->payload < mtu) {
			found(c, f, p->number, FAULT_LENGTH, mtu, p->payload,
			      "payload: expected a path MTU (256, 512, 1024, 2048, 4096), got %zu bytes",
			      p->payload);
			return false;
		}
	}
	if (p->payload > mtu) {
		found(c, f, p->number, FAULT_MTU, mtu, p->payload,
		      "payload: expected at most %" PRIu32 " bytes, got %zu: larger than the path MTU",
		      mtu, p->payload);
		return false;
	}
	if (!(parts & PART_LAST) && p->payload != mtu) {
		found(c, f, p->number, FAULT_LENGTH, mtu, p->payload,
		      "payload: expected %" PRIu32 " bytes, the path MTU, got %zu", mtu,
		      p->payload);
		return false;
	}
	if ((parts & PART_LAST) && !(parts & PART_FIRST) && !p->payload) {
		found(c, f, p->number, FAULT_LENGTH, 1, 0,
		      "payload of a LAST packet: expected 1 byte or more, got none");
		return false;
	}
	return true;
}

static void message(struct check *c, struct flow *f, const struct packet *p, unsigned int parts)
{
	unsigned int kind = parts & (PART_SEND | PART_WRITE);
	bool begins = parts & PART_FIRST, good = true;
	const char *expected = NULL;
	char opcode[OPCODE_TEXT];

	if ((p->opcode & 0xe0) != (f->opcode & 0xe0))
		expected = f->opcode & 0xe0 ? "one of UC, as before" : "one of RC, as before";
	else if (f->message == MESSAGE_OPEN && (begins || kind != f->kind))
		expected = f->kind == PART_WRITE ? "WRITE MIDDLE or LAST" : "SEND MIDDLE or LAST";
	else if (f->message == MESSAGE_NONE && !begins)
		expected = "FIRST or ONLY";
	if (expected)
		found(c, f, p->number, FAULT_OPCODE, 0, p->opcode,
		      "opcode order: expected %s, got %s", expected,
		      opcode_text(opcode, p->opcode));
	else
		good = !p->lengths_wrong && length_good(c, f, p, parts);

	if (begins) {
		f->kind = kind;
		f->length = p->length;
		f->so_far = 0;
		f->length_known = kind == PART_WRITE;
	}
	if (!good || expected || (!begins && f->message != MESSAGE_OPEN))
		f->length_known = false;
	f->so_far += p->payload;
	if (parts & PART_LAST) {
		if (f->length_known && f->so_far != f->length)
			found(c, f, p->number, FAULT_LENGTH, f->length, f->so_far,
			      "message: expected %" PRIu64 " bytes as its RETH says, got %" PRIu64,
			      f->length, f->so_far);
		f->messages++;
		f->message = MESSAGE_NONE;
	} else if (begins || f->message == MESSAGE_OPEN) {
		f->message = MESSAGE_OPEN;
	} else {
		f->message = MESSAGE_UNKNOWN;
	}
}

/* ------------------------------------------------------------- packet ---- */

/* A READ takes as many PSNs as it has responses. */
static void skip_responses(struct flow *f, const struct packet *p)
{
	if ((p->opcode & 0x1f) != READ_REQUEST || !p->length)
		return;
	if (f->path_mtu)
		f->psn.expected = (p->psn + (p->length - 1) / f->path_mtu + 1) & PSN_MASK;
	else
		f->psn.begun = false;
}

/* The first PSN differs from the given one; the following PSNs may differ, too. */
static void check_first(struct check *c, struct flow *f, const struct packet *p,
			const uint32_t *next)
{
	uint32_t told = f->psn.expected;

	if (p->psn == told || (next && *next == ((told + 1) & PSN_MASK)))
		return;
	found(c, f, p->number, FAULT_PSN, told, p->psn,
	      "wrong first PSN: expected 0x%06" PRIx32 ", got 0x%06" PRIx32, told, p->psn);
	f->psn.begun = false;
	f->message = MESSAGE_UNKNOWN;
}

static void packet(struct check *c, struct flow *f, const struct packet *p, const uint32_t *next)
{
	unsigned int parts = opcode_parts(p->opcode);
	enum order order;

	if (f->first_told)
		check_first(c, f, p, next);
	f->first_told = false;
	order = place(c, f, &f->psn, &of_psn, p->number, p->psn, next, &f->missing);
	switch (order) {
	case ORDER_DUPLICATE:
	case ORDER_BACK:
	case ORDER_AGAIN:
		/* a receiver ignores it */
		return;
	case ORDER_GAP:
	case ORDER_AHEAD:
		f->message = MESSAGE_UNKNOWN;
		break;
	default:
		break;
	}
	if (parts & PART_REQUEST)
		skip_responses(f, p);
	else if (!parts)
		f->message = MESSAGE_UNKNOWN;
	else if (order != ORDER_LATE)
		message(c, f, p, parts);
	if (parts & HAS_IMMEDIATE)
		immediate(c, f, p);
}

void flow_packet(struct check *c, struct flow *f, const struct packet *p)
{
	struct packet now = *p;

	if (f->doubt) {
		f->doubt = false;
		packet(c, f, &f->held, &now.psn);
	}
	/* its number may be what is wrong */
	if (now.icrc_wrong && f->psn.begun)
		now.psn = f->psn.expected;
	if (sequence_doubtful(&f->psn, now.psn)) {
		f->doubt = true;
		f->held = now;
	} else {
		packet(c, f, &now, NULL);
	}
}

void flow_end(struct check *c, struct flow *f)
{
	if (f->doubt)
		packet(c, f, &f->held, NULL);
	f->doubt = false;
	if (f->immediate_doubt)
		place_immediate(c, f, f->immediate_number, f->immediate_held, NULL);
	f->immediate_doubt = false;
}
