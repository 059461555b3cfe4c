// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/sequence.h"

#include <string.h>

static uint32_t distance(const struct sequence *s, uint32_t from, uint32_t to)
{
	return (to - from) & s->mask;
}

static bool is_behind(const struct sequence *s, uint32_t value)
{
	return distance(s, s->expected, value) > s->mask >> 1;
}

static uint64_t *word(struct sequence *s, uint32_t value)
{
	return s->seen + value % SEQUENCE_WINDOW / 64;
}

static uint64_t bit(uint32_t value)
{
	return UINT64_C(1) << value % 64;
}

static bool is_seen(const struct sequence *s, uint32_t value)
{
	return s->seen[value % SEQUENCE_WINDOW / 64] & bit(value);
}

static bool is_remembered(const struct sequence *s, uint32_t value)
{
	return is_behind(s, value) && distance(s, value, s->expected) <= SEQUENCE_WINDOW;
}

static bool is_hole(const struct sequence *s, uint32_t value)
{
	return is_remembered(s, value) && !is_seen(s, value);
}

/* One at or after the expected one; those between are holes. */
static void take(struct sequence *s, uint32_t value)
{
	uint32_t skipped = distance(s, s->expected, value);

	if (skipped >= SEQUENCE_WINDOW)
		memset(s->seen, 0, sizeof(s->seen));
	else
		for (; s->expected != value; s->expected = (s->expected + 1) & s->mask)
			*word(s, s->expected) &= ~bit(s->expected);
	*word(s, value) |= bit(value);
	s->expected = (value + 1) & s->mask;
}

bool sequence_doubtful(const struct sequence *s, uint32_t value)
{
	return s->begun && value != s->expected && !(s->again && value == s->next_again) &&
	       !is_hole(s, value);
}

static enum order go_back(struct sequence *s, uint32_t value)
{
	if (is_remembered(s, value)) {
		s->again = true;
		s->next_again = (value + 1) & s->mask;
	} else {
		memset(s->seen, 0, sizeof(s->seen));
		s->expected = value;
		take(s, value);
	}
	return ORDER_BACK;
}

enum order sequence_place(struct sequence *s, uint32_t value, const uint32_t *next)
{
	uint32_t after = (s->expected + 1) & s->mask;

	if (!s->begun) {
		s->begun = true;
		s->expected = value;
	}
	if (s->again && value == s->next_again && value != s->expected) {
		s->next_again = (value + 1) & s->mask;
		return ORDER_AGAIN;
	}
	s->again = false;
	if (value == s->expected) {
		take(s, value);
		return ORDER_GOOD;
	}
	if (is_hole(s, value)) {
		*word(s, value) |= bit(value);
		return ORDER_LATE;
	}
	if (next && *next == after) {
		take(s, s->expected);
		return ORDER_WRONG;
	}
	if (!is_behind(s, value)) {
		bool swapped = next && *next == s->expected;

		take(s, value);
		return swapped ? ORDER_AHEAD : ORDER_GAP;
	}
	if (next && *next == ((value + 1) & s->mask) && *next != s->expected)
		return go_back(s, value);
	return is_remembered(s, value) ? ORDER_DUPLICATE : ORDER_WRONG;
}
