// SPDX-License-Identifier: GPL-2.0-only
#include "path.h"

#define BUS(bdf)	((bdf) >> 8)	/* domain and bus */
#define DEVICE(bdf)	((bdf) >> 3)

enum meeting chains_meet(const struct chain *a, const struct chain *b, uint64_t *where)
{
	*where = 0;
	if (a->at[0] == b->at[0])
		return MEET_SAME;
	for (unsigned int i = 1; i < a->n; i++) {
		for (unsigned int j = 1; j < b->n; j++) {
			if (a->at[i] != b->at[j])
				continue;
			*where = a->at[i];
			if (i == 1 && j == 1 && DEVICE(a->at[0]) == DEVICE(b->at[0]))
				return MEET_DEVICE;
			/* A bridge below a bridge is where a switch begins. */
			return i + 1 < a->n ? MEET_SWITCH : MEET_PORT;
		}
	}
	if (a->n == 1 && b->n == 1 && DEVICE(a->at[0]) == DEVICE(b->at[0]))
		return MEET_DEVICE;
	return BUS(a->at[a->n - 1]) == BUS(b->at[b->n - 1]) ? MEET_BRIDGE : MEET_NOWHERE;
}

const char *meeting_name(enum meeting meeting)
{
	static const char *const names[] = {
		[MEET_SAME] = "same-function", [MEET_DEVICE] = "same-device",
		[MEET_SWITCH] = "switch", [MEET_PORT] = "root-port",
		[MEET_BRIDGE] = "host-bridge", [MEET_NOWHERE] = "processors",
	};

	return names[meeting];
}
