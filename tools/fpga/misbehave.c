// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Misbehaviour of DTPs, commanded by the control socket: hardware and buses that send payload, lock
 * record and interrupt in the wrong order, lose or duplicate one of them, or write the payload to
 * the wrong place.
 *
 *   early on|lock|interrupt [US|hold]		the event, or this part of it, is sent before
 *						the last image of its stack
 *   late on [US|hold]				the last image is sent before its event and
 *						arrives after it; FLUSH pushes it
 *   reorder on					send lines of an image in reverse order
 *   twice on|lock|interrupt [US|hold]		the event, or this part of it, is sent twice
 *   lose on|lock|interrupt N			the event, or this part of it, is not sent for
 *						stacks whose STACKS is a multiple of N
 *   early|late|... off				end this misbehaviour
 *   wild ADDRESS|off				payload goes to this bus address, not to
 *						that of the table
 *   torn on [US|hold]				only the first word of a lock record is sent
 *						in time, the rest of the event later
 *   linger on [US|hold]			RUNNING is cleared by a stop while an image is
 *						on its way; FLUSH pushes it
 *   deaf on					ignore its own STOP, but obey that of all DTPs
 *   drop on					writes that the bus refuses vanish without a
 *						fault, as with a real root complex
 *   release					send late parts now
 *   honest					end all of these; for all DTPs, also obey stop
 *						requests again (fault.c: stuck)
 *
 * Each command may end in "dtp N"; else it is for all DTPs. Late parts are sent after US
 * microseconds, or at "release"; until then the DTP waits. With two delays, the longer one
 * counts.
 */
#include "fpga/fpga.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX	8
#define DELAY_US	50000u		/* long enough for wrong software to fail */
#define DELAY_MAX_US	60000000u

struct words {
	char *word[WORDS_MAX];
	unsigned int n, next;
};

/* false: too many words */
static bool split(char *text, struct words *w)
{
	char *rest, *word;

	w->n = w->next = 0;
	for (word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (w->n == WORDS_MAX)
			return false;
		w->word[w->n++] = word;
	}
	return true;
}

static const char *peek(const struct words *w)
{
	return w->next < w->n ? w->word[w->next] : "";
}

static bool take(struct words *w, const char *word)
{
	if (strcmp(peek(w), word))
		return false;
	w->next++;
	return true;
}

static bool take_based(struct words *w, int base, uint64_t least, uint64_t most,
		       uint64_t *value)
{
	const char *text = peek(w);
	uint64_t n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, base);
	if (*text < '0' || *text > '9' || *end || errno || n < least || n > most)
		return false;
	*value = n;
	w->next++;
	return true;
}

static bool take_number(struct words *w, uint64_t least, uint64_t most, uint64_t *value)
{
	return take_based(w, 10, least, most, value);
}

static bool take_switch(struct words *w, bool *on)
{
	*on = take(w, "on");
	return *on || take(w, "off");
}

static bool take_parts(struct words *w, uint32_t *parts)
{
	*parts = 0;
	if (take(w, "on"))
		*parts = FPGA_LOCK | FPGA_INTERRUPT;
	else if (take(w, "lock"))
		*parts = FPGA_LOCK;
	else if (take(w, "interrupt"))
		*parts = FPGA_INTERRUPT;
	else
		return take(w, "off");
	return true;
}

static void take_delay(struct words *w, uint64_t *delay)
{
	uint64_t us = DELAY_US;

	if (take(w, "hold")) {
		*delay = FPGA_HOLD;
		return;
	}
	take_number(w, 0, DELAY_MAX_US, &us);
	*delay = us * 1000 / RFPGA_TICK_NS;
}

static bool take_delayed(struct words *w, bool *on, uint64_t *delay)
{
	if (!take_switch(w, on))
		return false;
	if (*on)
		take_delay(w, delay);
	return true;
}

static bool take_command(struct words *w, struct misbehaviour *m)
{
	if (take(w, "honest")) {
		*m = (struct misbehaviour){ 0 };
		return true;
	}
	if (take(w, "release"))
		return true;
	if (take(w, "reorder"))
		return take_switch(w, &m->reorder);
	if (take(w, "deaf"))
		return take_switch(w, &m->deaf);
	if (take(w, "drop"))
		return take_switch(w, &m->drop);
	if (take(w, "torn"))
		return take_delayed(w, &m->torn, &m->torn_delay);
	if (take(w, "linger"))
		return take_delayed(w, &m->linger, &m->linger_delay);
	if (take(w, "late"))
		return take_delayed(w, &m->late, &m->late_delay);
	if (take(w, "wild")) {
		m->wild = !take(w, "off");
		return !m->wild || take_based(w, 0, 0, UINT64_MAX, &m->wild_addr);
	}
	if (take(w, "lose"))
		return take_parts(w, &m->lose) &&
		       (!m->lose || take_number(w, 1, UINT64_MAX, &m->lose_every));
	if (take(w, "early")) {
		if (!take_parts(w, &m->early))
			return false;
		if (m->early)
			take_delay(w, &m->early_delay);
	} else {
		if (!take(w, "twice") || !take_parts(w, &m->twice))
			return false;
		if (m->twice)
			take_delay(w, &m->twice_delay);
	}
	return true;
}

/* Parse the end of a command; false: invalid words. */
static bool take_dtps(struct fpga *fpga, struct words *w, uint32_t *mask)
{
	uint64_t n = 0;

	*mask = UINT32_MAX;
	if (take(w, "dtp")) {
		if (!take_number(w, 0, fpga->dtps - 1, &n))
			return false;
		*mask = 1u << n;
	}
	return w->next == w->n;
}

bool misbehave(struct fpga *fpga, const char *command)
{
	struct engine *e = &fpga->engine;
	struct misbehaviour trial = { 0 };
	char text[DEVICE_COMMAND_SIZE];
	struct words w, again;
	uint32_t mask;
	unsigned int n;

	if (snprintf(text, sizeof(text), "%s", command) >= (int)sizeof(text) ||
	    !split(text, &w))
		return false;
	again = w;
	if (!take_command(&w, &trial) || !take_dtps(fpga, &w, &mask))
		return false;
	w = again;
	if (take(&w, "honest") && mask == UINT32_MAX)
		engine_set_stuck(fpga, false);
	pthread_mutex_lock(&e->lock);
	for (n = 0; n < fpga->dtps; n++) {
		struct dtp *d = &fpga->dtp[n];

		if (!(mask & 1u << n))
			continue;
		w = again;
		if (!take(&w, "release")) {
			take_command(&w, &d->told);
			d->orders++;
		}
		/* any change releases late parts that would never be sent */
		d->due = 0;
	}
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
	return true;
}
