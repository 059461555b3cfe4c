/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loop that drives a ring: take an event, process, write a descriptor, ring the doorbell. It is
 * the same for a thread of this machine (host.c), a shader (loop.comp) and a kernel (loop.cu), in the
 * common subset of C, GLSL and CUDA. The including file defines:
 *
 *   OWN, OWN_WORDS	specifiers for functions and for variables that are local to this file
 *   P			the plan (struct loop_plan)
 *   WORD(i)		load word i of the memory, with acquire order
 *   PUT(i, value)	store a word
 *   PUBLISH()		release fence: order earlier stores before later ones
 *   BELL(at, value)	store word number @at of the doorbell page
 *   IDLE()		wait for the next event, or return at once
 *   PROCESS(data, to)	drive_process(), or another one that does the same
 *   INT(), FLOAT(), BITS(), SQRT()	conversions, the bits of a float, and the square root
 *   KIND		KIND_*. A constant for a shader
 *   GROUP		number of this thread in a launch
 *
 * The first word of a datagram is its number, and the other words are computed from it, or are hits
 * of a ring. WINDOW datagrams are under way; the return of datagram N lets datagram N + WINDOW go,
 * which is its answer.
 */
#define KIND_RING	0u
#define KIND_STACKS	1u	/* stacks of a DTP */
#define KIND_ONE	2u	/* a launch: drive_one() */

#define RINGS		256u	/* events with different rings */
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
#define TOLD_GOOD	13u	/* KIND_ONE: 1: the datagram is right; 2: it is not */
#define TOLD_SPUN	14u	/* result of the dummy computation */
#define TOLD_WORDS	16u

#define LOOP_RUNS	0u
#define LOOP_DONE	1u
#define LOOP_STOPPED	2u	/* by TOLD_STOP */
#define LOOP_MISSING	3u	/* the next event came before this one */
#define LOOP_OVERWRITTEN 4u	/* the event was overwritten before it was consumed */
#define LOOP_UNSENT	5u	/* the board could not send */

OWN_WORDS uint given, seen, sent, received;
OWN_WORDS bool to_give;			/* drive_give() has a datagram to send */
OWN_WORDS uint next_number, next_since, next_flags;

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

/* Word k of a datagram. Of rings, words 1 to 3 are the answer, which drive_fit() writes. */
OWN uint drive_word(uint number, uint k)
{
	if (P.hits != 0u)
		return WORD(P.hits + (number % RINGS << P.slot_log2) + k);
	return drive_content(number, k);
}

OWN uint drive_slot(uint n)
{
	return P.source + ((n & ((1u << P.descriptors_log2) - 1u)) << P.slot_log2);
}

OWN void drive_fill(uint to, uint number)
{
	PUT(to, number);
	for (uint k = 1u; k < P.words; k++)
		PUT(to + k, drive_word(number, k));
}

OWN float drive_x(uint hit)
{
	return FLOAT(INT(hit << 16u) >> 16);
}

OWN float drive_y(uint hit)
{
	return FLOAT(INT(hit) >> 16);
}

/*
 * Fit a ring to hits, without iterations: the centre (x, y) and radius r with the least sum of
 * (distance^2 - r^2)^2 (Crawford, 1983). The sums are relative to the mean of the hits.
 */
OWN void drive_fit(uint data, uint to)
{
	uint hits = WORD(data + 4u), hit;
	float n, x, y, x0 = 0.0f, y0 = 0.0f;
	float uu = 0.0f, uv = 0.0f, vv = 0.0f, a = 0.0f, b = 0.0f, det;

	if (hits > P.words - 5u)
		hits = P.words - 5u;
	n = FLOAT(hits);
	for (uint k = 0u; k < hits; k++) {
		hit = WORD(data + 5u + k);
		x0 += drive_x(hit) / n;
		y0 += drive_y(hit) / n;
	}
	for (uint k = 0u; k < hits; k++) {
		float u, v;

		hit = WORD(data + 5u + k);
		u = drive_x(hit) - x0;
		v = drive_y(hit) - y0;
		uu += u * u;
		uv += u * v;
		vv += v * v;
		a += 0.5f * u * (u * u + v * v);
		b += 0.5f * v * (u * u + v * v);
	}
	det = uu * vv - uv * uv;
	x = (a * vv - b * uv) / det;
	y = (b * uu - a * uv) / det;
	PUT(to + 1u, BITS(x0 + x));
	PUT(to + 2u, BITS(y0 + y));
	PUT(to + 3u, BITS(SQRT(x * x + y * y + (uu + vv) / n)));
}

/* A computation that takes time. */
OWN void drive_spin(uint rounds)
{
	uint x = rounds;

	for (uint i = 0u; i < rounds; i++)
		x = x * 1664525u + 1013904223u;
	PUT(P.told + TOLD_SPUN, x);
}

/* Check a datagram, compute, and write the answer. Returns whether the datagram is right. */
OWN bool drive_process(uint data, uint to)
{
	uint number = WORD(data);
	bool good = number < P.total;

	for (uint k = P.hits != 0u ? 4u : 1u; k < P.words && good; k++)
		good = WORD(data + k) == drive_word(number, k);
	drive_spin(P.rounds);
	drive_fill(to, number + P.window);
	if (P.hits != 0u)
		drive_fit(data, to);
	return good;
}

OWN void drive_plan(uint number, uint since, uint flags)
{
	to_give = true;
	next_number = number;
	next_since = since;
	next_flags = flags;
}

/* Write the next descriptor; its slot has the datagram. With next_flags, it answers next_since. */
OWN void drive_give(void)
{
	uint slot = given & ((1u << P.descriptors_log2) - 1u);
	uint at = P.descriptors + slot * TX_WORDS;

	PUT(at, drive_slot(given) * 4u);
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
		IDLE();
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
		for (uint k = 0u; k < P.words; k++)
			PUT(drive_slot(given) + k, WORD(drive_slot(sent - 1u) + k));
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
	if (good)
		good = PROCESS(data, drive_slot(given));
	if (!good) {
		drive_count(TOLD_CONTENT);
		return;
	}
	for (uint k = 0u; k < 3u && P.hits != 0u && number >= P.window; k++)
		PUT(P.fits + (number - P.window) * 4u + k, WORD(data + 1u + k));
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

	for (;;) {
		if (to_give)
			drive_give();
		/* fill the window */
		if (seen == 0u && given < P.window && given < P.total) {
			drive_fill(drive_slot(given), given);
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

/* Process the datagram at P.data, into P.to; without one, fit one event in each thread. */
OWN void drive_one(void)
{
	if (P.data == 0u)
		drive_fit(P.hits + (GROUP % RINGS << P.slot_log2), P.fits + GROUP * 4u - 1u);
	else
		PUT(P.told + TOLD_GOOD, drive_process(P.data, P.to) ? 1u : 2u);
}

OWN void drive(void)
{
	uint end;

	given = 0u;
	seen = 0u;
	sent = 0u;
	received = 0u;
	to_give = false;
	if (KIND == KIND_ONE) {
		drive_one();
		return;
	}
	PUT(P.told + TOLD_BEGUN, 1u);
	if (KIND == KIND_STACKS)
		end = judge_loop();
	else
		end = drive_loop();
	PUBLISH();
	PUT(P.told + TOLD_END, end);
}
