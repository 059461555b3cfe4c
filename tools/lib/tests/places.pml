/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The protocol of stream-place.c: places that join, leave, die and are given up, against the producer's
 * credit. Each access to a word that processes share is a step of its own.
 *
 * Worker 1 of place 0 is there from the beginning to the end. With -D:
 * SHARES: so is worker 0. ALONE: no consumer has place 1. SUCCESSOR: it has a second one, later.
 * DIES: this worker dies at any step, or does not.
 *
 * Assertions: no slot is credited, and none is written, which a place that is waited for still
 * needs; no stack is handed out twice, unless its worker has died. No invalid end state: worker 1
 * gets all stacks to their end.
 */
#ifndef N
#define N	4	/* stacks */
#endif
#define SLOTS	2

/* With one of these the model has to find a mistake. */
#define JOIN_UNSEEN	1	/* a place that joins does not change the credit's word */
#define JOIN_IGNORED	2	/* credit does not wait for it */
#define RING_ONCE	3	/* the doorbell keeps an old credit, and there is no tick */
#define ORPHANS_UNTOLD	4	/* stacks of a dead worker stay where they are */
#define NEXT_ENDS	5	/* nor does anybody look at the one that was just claimed */
#ifndef BROKEN
#define BROKEN	0
#endif

#define NONE	255
#define NOBODY	7	/* worker of a claim that a dead one left */

/* 0, 1: workers of place 0; 2, 3: consumer of place 1, and its successor */
#define WORKERS	4
#define PLACE_OF(w)	((w) / 2)

mtype = { FREE, JOINS, ACTIVE, GIVEN_UP };
mtype = { TAKEN, RELEASED };

byte complete, bell;		/* the hardware: complete stacks, and the last credit that it got */
byte g, joins;			/* the word credit */
mtype state[2] = FREE;
byte next[2], count[2], orphaned[2];
typedef claims { byte stack[SLOTS]; byte worker[SLOTS]; mtype how[SLOTS] };
claims claim[2];
bool lease[WORKERS], dead[WORKERS];
byte lock = NONE;		/* worker that has the table */

/* of the check only */
byte holder[2 * N];		/* place * N + stack: worker + 1 that has it */
bool released[2 * N];
bool over[WORKERS];		/* it ended, or it died */

#define LIVES(w)	(lease[w] && !dead[w])
#define OTHER_LIVES(p)	(state[1 - (p)] == ACTIVE && (LIVES(2 - 2 * (p)) || LIVES(3 - 2 * (p))))
#define KEPT(p, k)	(claim[p].stack[(k) % SLOTS] == (k) + 1 && claim[p].how[(k) % SLOTS] == TAKEN)

/* The hardware, with a program that only looks: no free slot without credit for it */
active proctype hardware()
{
	byte k, p;

	do
	:: complete < N && complete >= bell && complete - bell < SLOTS ->
		atomic {
			k = complete;
			if
			:: k >= SLOTS ->
				for (p : 0 .. 1) {
					/* no place that is waited for still needs the stack that was here */
					assert(!(state[p] == ACTIVE && count[p] <= k - SLOTS));
				}
			:: else
			fi;
			complete++;
			k = 0;
			p = 0
		}
	:: complete == N -> break
	od
}

inline take_lock() { atomic { (lock == NONE || dead[lock]) -> lock = me } }
inline leave_lock() { lock = NONE }

inline ring()
{
	do
	:: c = g;
		bell = c;
		if
		:: g == c || BROKEN == RING_ONCE -> break
		:: else
		fi
	od;
	c = 0
}

inline advance()
{
	do
	:: atomic { og = g; oj = joins };
		least = NONE;
		i = 0;
		do
		:: i < 2 ->
			st = state[i];
			if
			:: st == JOINS && BROKEN != JOIN_IGNORED -> least = 0; break
			:: st == ACTIVE ->
				c = count[i];
				if
				:: c < least -> least = c
				:: else
				fi
			:: else
			fi;
			i++
		:: else -> break
		od;
		if
		:: least == NONE || least <= og -> break
		:: else
		fi;
		if
		:: atomic { g == og && joins == oj ->
				for (i : 0 .. 1) { assert(state[i] != ACTIVE || count[i] >= least) };
				g = least };
			ring();
			break
		:: atomic { else -> skip }
		fi
	od;
	og = 0; oj = 0; least = 0; i = 0; c = 0; st = FREE
}

/* Raise the count of place q as far as nothing is held. */
inline count_released(q)
{
	least = count[q];
	do
	:: least < next[q] && !KEPT(q, least) -> least++
	:: else -> break
	od;
	atomic {
		if
		:: count[q] < least -> count[q] = least; raised = true
		:: else -> raised = false
		fi;
		least = 0
	}
}

/* Claims of worker v are left behind. */
inline leave_claims(q, v)
{
	i = 0;
	do
	:: i < SLOTS ->
		atomic {
			if
			:: claim[q].stack[i] && claim[q].worker[i] == v && claim[q].how[i] == TAKEN ->
				claim[q].worker[i] = NOBODY
			:: else
			fi
		};
		i++
	:: else -> break
	od;
	i = 0;
	if
	:: BROKEN != ORPHANS_UNTOLD -> orphaned[q]++
	:: else
	fi;
	count_released(q)
}

/* The table is locked. Time is over, or not: both are tried. */
inline look_at_all()
{
	v = 0;
	do
	:: v < WORKERS ->
		if
		:: lease[v] && dead[v] && state[PLACE_OF(v)] != FREE ->
			if
			:: state[PLACE_OF(v)] == ACTIVE -> leave_claims(PLACE_OF(v), v)
			:: state[PLACE_OF(v)] == JOINS -> state[PLACE_OF(v)] = FREE
			:: else
			fi;
			lease[v] = false
		:: else
		fi;
		v++
	:: else -> break
	od;
	v = 0;
	do
	:: v < 2 ->
		if
		:: state[v] == ACTIVE && !LIVES(2 * v) && !LIVES(2 * v + 1) && OTHER_LIVES(v) ->
			if
			:: state[v] = GIVEN_UP
			:: v == 1 && !over[3] -> skip	/* kept for its successor */
			fi
		:: else
		fi;
		v++
	:: else -> break
	od;
	v = 0
}

inline join(q)
{
	if
	:: state[q] != ACTIVE ->
		state[q] = JOINS;
		atomic {
			if
			:: BROKEN != JOIN_UNSEEN -> joins++
			:: else
			fi;
			start = g
		};
		i = 0;
		do
		:: i < SLOTS -> claim[q].stack[i] = 0; i++
		:: else -> break
		od;
		i = 0;
		next[q] = start;
		count[q] = start;
		state[q] = ACTIVE;
		start = 0
	:: else
	fi
}

inline hand_out(q, stack)
{
	assert(!released[q * N + stack]);
	assert(!holder[q * N + stack] || dead[holder[q * N + stack] - 1] ||
	       over[holder[q * N + stack] - 1]);
	holder[q * N + stack] = me + 1
}

/* Take a stack: mine; NONE if there was none. */
inline take(q)
{
	mine = NONE;
	if
	:: orphaned[q] != looked ->
		seen = orphaned[q];
		i = count[q];
		/* read later than the count: the range only grows */
		do
		/* a worker may have died between its claim and next */
		:: i < next[q] + (BROKEN != NEXT_ENDS) ->
			if
			:: atomic { KEPT(q, i) && claim[q].worker[i % SLOTS] == NOBODY ->
					claim[q].worker[i % SLOTS] = me; mine = i; hand_out(q, i) };
				break
			:: atomic { else -> i++ }
			fi
		:: else -> looked = seen; break
		od;
		i = 0;
		seen = 0
	:: else
	fi;
	do
	:: mine != NONE -> break
	:: else ->
		k = next[q];
		if
		:: k >= complete -> break
		:: else
		fi;
		old = claim[q].stack[k % SLOTS];
		if
		:: old > k ->
			atomic { if :: next[q] == k -> next[q]++ :: else fi }
		:: else ->
			if
			:: atomic { claim[q].stack[k % SLOTS] == old ->
					claim[q].stack[k % SLOTS] = k + 1;
					claim[q].worker[k % SLOTS] = me;
					claim[q].how[k % SLOTS] = TAKEN;
					hand_out(q, k) };
				mine = k;
				atomic { if :: next[q] == k -> next[q]++ :: else fi }
			:: atomic { else -> skip }
			fi
		fi
	od;
	old = 0;
	k = 0
}

inline release(q)
{
	atomic {
		assert(claim[q].stack[mine % SLOTS] == mine + 1 && claim[q].worker[mine % SLOTS] == me);
		claim[q].how[mine % SLOTS] = RELEASED;
		released[q * N + mine] = true;
		k = mine + 1;
		mine = NONE
	};
	atomic { if :: next[q] < k -> next[q] = k :: else fi; k = 0 };
	count_released(q);
	if
	:: raised -> advance()
	:: else
	fi;
	raised = false
}

#define DEAD_LEFT	((lease[0] && dead[0]) || (lease[1] && dead[1]) || (lease[2] && dead[2]) || (lease[3] && dead[3]))
#define VACANT		(state[1] == ACTIVE && !LIVES(2) && !LIVES(3) && (over[3] || !successor))

bool successor;			/* one will come */

proctype consumer(byte me)
{
	byte i, c, v, k, old, seen, looked, og, oj, least, start, mine = NONE;
	mtype st = FREE;
	bool raised;
	byte q = PLACE_OF(me);

	{
		take_lock();
		look_at_all();
		if
		:: state[q] == GIVEN_UP -> state[q] = FREE
		:: else
		fi;
		lease[me] = true;
		join(q);
		leave_lock();
		advance();
		do
		:: take(q);
			if
			:: mine != NONE -> release(q)
			:: else ->
				if
				/* the end, when all that others hold came back */
				:: next[q] == N && count[q] == N -> break
				/* any event */
				:: next[q] < complete || orphaned[q] != looked
				/* the tick */
				:: BROKEN != RING_ONCE && bell != g || DEAD_LEFT || VACANT || (count[q] > g && state[1 - q] != ACTIVE) ->
					take_lock();
					look_at_all();
					leave_lock();
					advance();
					ring()
				/* leave in mid-run */
				:: me == 2 -> break
				fi
			fi
		od;
		/* close */
		take_lock();
		leave_claims(q, me);
		lease[me] = false;
		over[me] = true;
		if
		:: !LIVES(2 * q) && !LIVES(2 * q + 1) && OTHER_LIVES(q) -> state[q] = FREE
		:: else
		fi;
		leave_lock();
		advance()
	} unless { dead[me] };
	over[me] = true
}

init
{
	/* the first worker is there before the stream */
	atomic {
		state[0] = ACTIVE;
		run consumer(1);
#ifdef SHARES
		run consumer(0);
#endif
#ifndef ALONE
		run consumer(2);
#endif
#ifdef SUCCESSOR
		successor = true
#endif
	}
#ifdef DIES
	if
	:: dead[DIES] = true
	:: skip
	fi;
#endif
#ifdef SUCCESSOR
	(over[2]);
	run consumer(3)
#endif
}

