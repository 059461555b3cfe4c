// SPDX-License-Identifier: LGPL-2.1-or-later
/* watch: live progress of an experiment; it does not disturb the run. */
#include "manager/manager.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "screen/screen.h"

#define TURN_NS		1000000000ull

static double per_second(const struct party *p, enum count count)
{
	const uint64_t now = p->counts.value[count], before = p->before.value[count];

	/* the first time there is nothing to compare with */
	if (!(p->before.known & 1u << count) || now < before)
		return 0;
	return (now - before) / (TURN_NS / 1e9);
}

static void draw(struct experiment *e)
{
	screen_picture(2);
	screen_line(SCREEN_PLAIN, "experiment %s%s", e->name,
		    screen_fd() < 0 ? "" : "; q ends, arrows scroll");
	screen_line(SCREEN_TITLE, "%-20s %-9s %-12s %12s %10s %9s %10s %10s", "WHO", "ROLE", "STATE",
		    "IMAGES", "IMAGES/S", "LAG", "LOST", "MISSING");
	for (unsigned int i = 0; i < e->parties; i++) {
		struct party *p = &e->party[i];
		const uint64_t *v = p->counts.value;
		const bool bad = v[COUNT_LOST] || v[COUNT_MISSING] || !p->wire;
		char lag[32] = "-";

		if (p->counts.known & 1u << COUNT_LAG)
			snprintf(lag, sizeof(lag), "%" PRIu64 "/%" PRIu64, v[COUNT_LAG],
				 v[COUNT_SLOTS]);
		screen_line(bad ? SCREEN_BAD : SCREEN_PLAIN,
			    "%-20s %-9s %-12s %12" PRIu64 " %10.1f %9s %10" PRIu64 " %10" PRIu64,
			    p->name, p->detector ? "detector" : "receiver",
			    p->wire ? p->state : "gone", v[COUNT_IMAGES],
			    per_second(p, COUNT_IMAGES), lag, v[COUNT_LOST], v[COUNT_MISSING]);
		for (unsigned int k = 0; k < p->links; k++)
			screen_line(SCREEN_PLAIN, "  to %-37s %12" PRIu64 " %31s %10" PRIu64,
				    p->link[k].to, p->link[k].counts.value[COUNT_IMAGES], "",
				    p->link[k].counts.value[COUNT_MISSING]);
		p->before = p->counts;
	}
	screen_show();
}

static bool anybody(const struct experiment *e)
{
	for (unsigned int i = 0; i < e->parties; i++) {
		if (e->party[i].wire)
			return true;
	}
	return false;
}

int watch(struct experiment *e, const struct options *o, const volatile bool *stop)
{
	enum screen_key key = SCREEN_NO_KEY;

	(void)o;
	if (!anybody(e))
		return EXIT_FAILED;
	screen_begin();
	while (!*stop && anybody(e) && key != SCREEN_QUIT) {
		const uint64_t due = now_ns() + TURN_NS;

		draw(e);
		while (!*stop && key != SCREEN_QUIT && now_ns() < due) {
			parties_turn(e, due, screen_fd(), stop);
			while (key != SCREEN_QUIT && (key = screen_key()) != SCREEN_NO_KEY)
				;
		}
	}
	screen_end();
	return anybody(e) ? 0 : fail("no daemon is connected any more");
}
