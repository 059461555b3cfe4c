/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loop that drives a ring: take an event, process, write a descriptor, ring the doorbell. It is
 * the same for a thread of this machine (host.c) and for a shader (loop.comp), in the common subset
 * of C and GLSL. The including file defines:
 *
 *   OWN		specifier for names that are local to this file
 *   P			the plan (struct loop_plan)
 *   WORD(i)		load word i of the memory, with acquire order
 *   PUT(i, value)	store a word
 *   PUBLISH()		release fence: order earlier stores before later ones
 *   BELL(at, value)	store word number @at of the doorbell page
 *   JUDGES		true: stacks instead of a ring. A constant for a shader
 *
 * The first word of a datagram is its number, and the other words are computed from it. WINDOW
 * datagrams are under way; the return of datagram N lets datagram N + WINDOW go.
 */
#define TX_WORDS	16u	/* words of a descriptor */
#define EVENT_WORDS	8u	/* words of an event */

/* words that the drive reports, starting at P.told */
#define TOLD_STOP	0u	/* set by the watching thread: stop waiting */
#define TOLD_END	1u	/* LOOP_*: result; the last word to be written */
#define TOLD_RECEIVED	2u
#define TOLD_SENT	3u
#define TOLD_EVENTS	4u
#define TOLD_STALE	5u	/* stale descriptors: refused by the board, and sent again */
#define TOLD_LATE	6u
#define TOLD_DISORDER	7u	/* events or datagrams out of order */
#define TOLD_CONTENT	8u	/* datagrams with wrong words */
#define TOLD_DOUBLED	9u
#define TOLD_DETAIL	10u	/* number and status of the event that ended the loop */
#define TOLD_BEGUN	12u	/* 1: the loop runs. Compiling a shader may take long */
#define TOLD_WORDS	16u

#define LOOP_RUNS	0u
#define LOOP_DONE	1u
#define LOOP_STOPPED	2u	/* by TOLD_STOP */
#define LOOP_MISSING	3u	/* the next event came before this one */
#define LOOP_OVERWRITTEN 4u	/* the event was overwritten before it was consumed */
#define LOOP_UNSENT	5u	/* the board could not send */

OWN uint given, seen, sent, received;
OWN bool to_give;			/* drive_give() has a datagram to send */
OWN uint next_number, next_since, next_flags;

OWN void drive_count(uint what)
{
	PUT(P.told + what, WORD(P.told + what) + 1u);
}

OWN uint drive_generation(uint n, uint log2)
{
	return P.run << 16u | ((n >> log2) & 0xffffu);
}

OWN uint drive_content(uint number, uint k)
{
	return number * 2654435761u + k;
}

OWN void drive_plan(uint number, uint since, uint flags)
{
	to_give = true;
	next_number = number;
	next_since = since;
	next_flags = flags;
}

/* Write the next descriptor and its datagram. With next_flags, it answers the tick next_since. */
OWN void drive_give(void)
{
	uint slot = given & ((1u << P.descriptors_log2) - 1u);
	uint at = P.descriptors + slot * TX_WORDS;
	uint data = P.source + (slot << P.slot_log2);

	PUT(data, next_number);
	for (uint k = 1u; k < P.words; k++)
		PUT(data + k, drive_content(next_number, k));
	PUT(at, data * 4u);
	PUT(at + 1u, 0u);
	PUT(at + 2u, P.words * 4u);
	PUT(at + 4u, 0x7f000001u);
	PUT(at + 5u, 9u);
	PUT(at + 6u, next_number);
	PUT(at + 7u, 0u);
	PUT(at + 8u, next_since);
	PUT(at + 9u, next_flags);
	PUBLISH();
	/* with stale_at, leave one descriptor unwritten: the board finds the previous one */
	if (given != P.stale_at)
		PUT(at + 3u, drive_generation(given, P.descriptors_log2));
	given++;
	to_give = false;
}

OWN uint drive_event(uint n)
{
	return P.events + (n & ((1u << P.events_log2) - 1u)) * EVENT_WORDS;
}

OWN bool drive_has(uint n)
{
	return WORD(drive_event(n) + 7u) == drive_generation(n, P.events_log2);
}

/* Wait for the next event. LOOP_RUNS, or the reason to end the loop. */
OWN uint drive_wait(void)
{
	while (!drive_has(seen)) {
		if (WORD(P.told + TOLD_STOP) != 0u)
			return LOOP_STOPPED;
		if (drive_has(seen + (1u << P.events_log2)))
			return LOOP_OVERWRITTEN;
		/* events come in order, so the previous one has come by now, or is missing */
		if (drive_has(seen + 1u) && !drive_has(seen))
			return LOOP_MISSING;
	}
	return LOOP_RUNS;
}

OWN uint drive_sent(uint event)
{
	uint at = P.descriptors + (sent & ((1u << P.descriptors_log2) - 1u)) * TX_WORDS;
	uint status = WORD(event + 4u) >> 16u, number = WORD(at + 6u);

	if (WORD(event + 2u) != sent)
		drive_count(TOLD_DISORDER);
	sent++;
	if ((status & ~5u) != 0u) {
		PUT(P.told + TOLD_DETAIL + 1u, status);
		return LOOP_UNSENT;
	}
	if ((status & 4u) != 0u) {
		drive_count(TOLD_STALE);
		drive_plan(number, WORD(at + 8u), WORD(at + 9u));
		return LOOP_RUNS;
	}
	if ((status & 1u) != 0u)
		drive_count(TOLD_LATE);
	if (WORD(at + 9u) != 0u)
		PUT(P.answers + number, WORD(event + 5u) - WORD(at + 8u));
	return LOOP_RUNS;
}

OWN void drive_received(uint event)
{
	uint data = P.receive + WORD(event + 2u) / 4u, number = WORD(data);
	bool good = WORD(event + 3u) == P.words * 4u && number < P.total;

	if (WORD(event) != received || number != received)
		drive_count(TOLD_DISORDER);
	received++;
	for (uint k = 1u; k < P.words && good; k++)
		good = WORD(data + k) == drive_content(number, k);
	if (!good) {
		drive_count(TOLD_CONTENT);
		return;
	}
	PUT(P.came + number, WORD(P.came + number) + 1u);
	if (WORD(P.came + number) != 1u)
		drive_count(TOLD_DOUBLED);
	if (number + P.window < P.total)
		drive_plan(number + P.window, WORD(event + 5u), 1u);
}

OWN uint drive_tail(void)
{
	/* with tail_at, ring for more descriptors than the ring has */
	if (given >= P.tail_at)
		return given + (2u << P.descriptors_log2);
	return given;
}

OWN uint drive_loop(void)
{
	uint end, event;

	drive_plan(0u, 0u, 0u);
	for (;;) {
		if (to_give)
			drive_give();
		/* fill the window */
		if (seen == 0u && given < P.window && given < P.total) {
			drive_plan(given, 0u, 0u);
			continue;
		}
		PUBLISH();
		BELL(4u, (drive_tail() & 0xffffu) | (seen & 0xffffu) << 16u);
		PUT(P.told + TOLD_RECEIVED, received);
		PUT(P.told + TOLD_SENT, sent);
		PUT(P.told + TOLD_EVENTS, seen);
		if (received == P.total && sent == given)
			return LOOP_DONE;
		end = drive_wait();
		event = drive_event(seen);
		if (end == LOOP_RUNS && (WORD(event + 4u) & 0xffffu) == 2u)
			end = drive_sent(event);
		else if (end == LOOP_RUNS)
			drive_received(event);
		/* the event was read consistently if it is still in place */
		if (end == LOOP_RUNS && !drive_has(seen))
			end = LOOP_OVERWRITTEN;
		if (end != LOOP_RUNS) {
			PUT(P.told + TOLD_DETAIL, seen);
			return end;
		}
		seen++;
	}
}

/*
 * The other loop, for stacks of a DTP: report to the board whether each stack is good, by one store
 * before the credit. Both stores have 32 bits, as the upper words stay as START has left them. A
 * stack is good if its words match the first one.
 */
OWN uint judge_stack(uint k)
{
	uint data = P.receive + (k % P.window << P.slot_log2), first = WORD(data), verdict = 1u;

	for (uint i = 1u; i < P.words; i++) {
		if (WORD(data + i) != drive_content(first, i))
			verdict = 2u;
	}
	return verdict;
}

OWN uint judge_loop(void)
{
	uint verdict;

	for (; received < P.total; received++) {
		/* the word STACKS of the lock record */
		while (WORD(P.events + 14u) <= received) {
			if (WORD(P.told + TOLD_STOP) != 0u)
				return LOOP_STOPPED;
		}
		verdict = judge_stack(received);
		if (verdict != 1u)
			drive_count(TOLD_CONTENT);
		PUBLISH();
		BELL(2u, (received & 0x3fffffffu) | verdict << 30u);
		BELL(0u, received + 1u);
		PUT(P.told + TOLD_EVENTS, received + 1u);
	}
	return LOOP_DONE;
}

OWN void drive(void)
{
	uint end;

	given = 0u;
	seen = 0u;
	sent = 0u;
	received = 0u;
	PUT(P.told + TOLD_BEGUN, 1u);
	if (JUDGES)
		end = judge_loop();
	else
		end = drive_loop();
	PUBLISH();
	PUT(P.told + TOLD_END, end);
}
