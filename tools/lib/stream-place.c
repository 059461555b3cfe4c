// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * librashpa: places of consumers, their workers, and the credit of all of them.
 *
 * A place has a count of the stacks that all its workers released. Credit is the least count of the
 * places that are waited for. A process that changes the table of places (joins, leaves, gives up a
 * place) holds the table's lock. Stacks are taken and released without a lock:
 *
 * - A worker claims stack n by a compare-and-swap of the claim of its slot. Then any worker may move
 *   next from n to n + 1: if this one dies in between, the next one does that.
 * - A worker that releases a stack stores that in the claim, looks how far no claim is held, and raises the
 *   place's count. Of two workers that release at once, one sees the other's claim.
 * - The worker that raised the count reads the credit, then the counts of all places, and swaps the credit for
 *   the least one. The upper bits of the credit change with each place that joins, after it is
 *   seen in the table and before it has a count. So the swap fails if a place has joined since the read.
 *   Credit never falls.
 * - The worker that raised the credit rings the doorbells, until the credit that it has rung is the current one.
 *   So the last store of all is the newest one. If it dies before that, the others ring at their
 *   next tick, or the next consumer does.
 *
 * All numbers carry low bits of the generation. A worker that was delayed from one stream to the next
 * changes nothing there: no claim is 0.
 */
#include "lib/stream.h"
#include "lib/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_TABLE	64		/* bytes of the node that are locked */
#define LOCK_WORKER	128
#define LOCK_NS		2000000000ll	/* longest wait for the table */
#define WORKERS		(RASHPA_STREAM_WORKERS + 1)
#define NOBODY		RASHPA_STREAM_WORKERS	/* worker of a claim that one left behind */
#define NUMBER_MASK	((UINT64_C(1) << STREAM_NUMBER_BITS) - 1)
#define RELEASED	RASHPA_CLAIM_RELEASED
#define LOAD(at)	__atomic_load_n(at, __ATOMIC_SEQ_CST)
#define STORE(at, value)	__atomic_store_n(at, value, __ATOMIC_SEQ_CST)

_Static_assert(RASHPA_STREAM_TABLE + sizeof(struct rashpa_stream_table) <= RASHPA_STREAM_TABLES,
	       "the table ends before the other ones");
_Static_assert(sizeof(struct rashpa_stream_place) == 448 && sizeof(struct rashpa_stream_table) % 64 == 0,
	       "a format");

/* False: *old is the current value. */
static bool swap(uint64_t *at, uint64_t *old, uint64_t new)
{
	return __atomic_compare_exchange_n(at, old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static struct rashpa_stream_table *table_of(const struct rashpa_stream *s)
{
	return (struct rashpa_stream_table *)(s->buffer.base + RASHPA_STREAM_TABLE);
}

static struct rashpa_stream_place *place_of(const struct rashpa_stream *s)
{
	return &table_of(s)->place[s->place];
}

static uint64_t *claims_of(const struct rashpa_stream *s, uint32_t place)
{
	return (uint64_t *)(s->buffer.base + s->head.claim_offset) + (uint64_t)place * s->head.slots;
}

/* --- words --- */

static uint64_t stamp(const struct rashpa_stream *s, uint64_t number)
{
	return s->head.generation << STREAM_NUMBER_BITS | number;
}

static bool stamped(const struct rashpa_stream *s, uint64_t word)
{
	return (word ^ stamp(s, word & NUMBER_MASK)) == 0;
}

static uint64_t claim(const struct rashpa_stream *s, uint64_t number, uint32_t worker, uint64_t state)
{
	return s->head.generation << 50 | state << 48 | (uint64_t)worker << STREAM_NUMBER_BITS |
	       (number + 1);
}

static uint32_t claim_state(uint64_t word)
{
	return word >> 48 & 3;
}

static uint32_t claim_worker(uint64_t word)
{
	return word >> STREAM_NUMBER_BITS & 63;
}

/* Number of the stack + 1; 0: of another stream */
static uint64_t claim_number(const struct rashpa_stream *s, uint64_t word)
{
	return (word ^ s->head.generation << 50) >> 50 ? 0 : word & NUMBER_MASK;
}

/* Raise a stamped number. Return: whether it was lower */
static bool raise_to(const struct rashpa_stream *s, uint64_t *at, uint64_t number)
{
	uint64_t old = LOAD(at);

	while (stamped(s, old) && stream_number(old) < number) {
		if (swap(at, &old, stamp(s, number)))
			return true;
	}
	return false;
}

/* --- locks --- */

static int lock_range(const struct rashpa_stream *s, int command, short type, off_t at, off_t length,
		      bool *other)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = length };
	int error = fcntl(s->buffer.node, command, &lock) ? -errno : 0;

	if (command == F_OFD_GETLK) {
		*other = lock.l_type != F_UNLCK;
	} else {
		*other = error == -EAGAIN || error == -EACCES;
		error = *other ? 0 : error;
	}
	return error ? fail(-error, "buffer %s: it cannot be locked: %s", s->name, strerror(-error)) : 0;
}

static off_t lock_of(uint32_t place, uint32_t worker)
{
	return LOCK_WORKER + (off_t)place * WORKERS + worker;
}

/* Only a lock for writing is seen, which needs the right to write. Our own lock is not seen. */
static bool locked(const struct rashpa_stream *s, uint32_t place, uint32_t worker, uint32_t workers)
{
	bool other = false;

	/* unsure: a place in use must not be taken */
	return lock_range(s, F_OFD_GETLK, F_RDLCK, lock_of(place, worker), workers, &other) || other;
}

static int lock_table(const struct rashpa_stream *s, int64_t wait_ns)
{
	const int64_t deadline = deadline_of(wait_ns);
	const struct timespec nap = { .tv_nsec = 100000 };
	bool other;
	int error;

	for (;;) {
		error = lock_range(s, F_OFD_SETLK, F_WRLCK, LOCK_TABLE, 1, &other);
		if (error || !other)
			return error;
		if (clock_ns() >= deadline)
			return fail(EBUSY, "buffer %s: another process locks its table of places", s->name);
		nanosleep(&nap, NULL);
	}
}

static void unlock_table(const struct rashpa_stream *s)
{
	bool other;

	lock_range(s, F_OFD_SETLK, F_UNLCK, LOCK_TABLE, 1, &other);
}

/* --- credit --- */

/* The first stack from @from on with a claim in no later state than @state, or without a claim. */
static uint64_t first_kept(const struct rashpa_stream *s, uint32_t place, uint64_t from, uint32_t state)
{
	const uint64_t *claims = claims_of(s, place);
	const uint64_t next = LOAD(&table_of(s)->place[place].next), end = stream_number(next);
	uint64_t first = end, word, number;

	if (!stamped(s, next))
		return from;
	/* other processes set the distance, so after a leap look at every slot once */
	if (from < end && end - from > s->head.slots) {
		for (uint32_t i = 0; i < s->head.slots; i++) {
			word = LOAD(&claims[i]);
			number = claim_number(s, word);
			if (number > from && number <= first && claim_state(word) <= state)
				first = number - 1;
		}
		return first;
	}
	/* skipped stacks have no claim, and that of an overwritten one is another stack's */
	for (; from < end; from++) {
		word = LOAD(&claims[from % s->head.slots]);
		if (claim_number(s, word) == from + 1 && claim_state(word) <= state)
			break;
	}
	return from;
}

/*
 * The least count of the places that are waited for. Without any: *free, and what is complete, if there
 * are places that may lose. 0: not now
 */
static uint64_t least_count(const struct rashpa_stream *s)
{
	const struct rashpa_stream_table *t = table_of(s);
	uint64_t least = UINT64_MAX, most;
	bool losers = false;

	for (uint32_t i = 0; i < RASHPA_STREAM_PLACES; i++) {
		const struct rashpa_stream_place *p = &t->place[i];
		const uint32_t state = LOAD(&p->state);
		uint64_t count;

		if (state != RASHPA_PLACE_ACTIVE && state != RASHPA_PLACE_JOINS)
			continue;
		if (LOAD(&p->loses)) {
			losers = true;
			continue;
		}
		count = LOAD(&p->credit);
		if (state == RASHPA_PLACE_JOINS || !stamped(s, count))
			return 0;
		count = stream_number(count);
		least = count < least ? count : least;
	}
	if (least == UINT64_MAX)
		return losers ? stream_stacks(s, &most) : 0;
	return least;
}

bool stream_undisturbed(const struct rashpa_stream *s)
{
	return stream_same(s) &&
	       __atomic_load_n(&s->shared->state, __ATOMIC_ACQUIRE) != RASHPA_STREAM_IDLE;
}

static void ring(const struct rashpa_stream *s, uint64_t credit)
{
	/* The number of the run: should it be over before this arrives, the next one ignores it. */
	for (uint32_t i = 0; s->boards && i < s->head.processes; i++) {
		const struct rashpa_stream_process *p = &s->process[i];

		for (uint32_t b = 0; b < s->boards && p->function == RASHPA_STREAM_FPGA; b++) {
			if (s->board[b].number == p->fpga && s->board[b].bells)
				rashpa_doorbell64(s->board[b].bells, p->doorbell_offset,
						  (uint32_t)credit | (uint64_t)s->head.run << 32);
		}
	}
}

void stream_ring(struct rashpa_stream *s)
{
	uint64_t credit, now = stream_credit(s);

	do {
		credit = now;
		if (!stream_undisturbed(s))
			return;
		/* all that was read from the slots, and written into them, is done before */
		__sync_synchronize();
		ring(s, credit);
		__sync_synchronize();
		now = stream_credit(s);
	} while (now != credit);
	/* a producer stores waiting, and looks at credit: one of us sees the other's word */
	if (!s->producer && __atomic_load_n(&s->shared->waiting, __ATOMIC_ACQUIRE))
		stream_tell(s, &s->buffer);
}

void stream_advance(struct rashpa_stream *s)
{
	uint64_t *credit = (uint64_t *)(uintptr_t)&s->shared->credit, old = LOAD(credit), least;

	do {
		least = least_count(s);
		if (least <= stream_number(old) || !stream_same(s))
			return;
	} while (!swap(credit, &old, (old & ~NUMBER_MASK) | (least & NUMBER_MASK)));
	stream_ring(s);
}

/* Count what is released in a place, after a claim has changed. Return: whether it is more */
static bool count_released(const struct rashpa_stream *s, uint32_t place)
{
	struct rashpa_stream_place *p = &table_of(s)->place[place];
	const uint64_t word = LOAD(&p->credit);

	return stamped(s, word) &&
	       raise_to(s, &p->credit, first_kept(s, place, stream_number(word), RASHPA_CLAIM_DONE));
}

/* --- to take stacks, and to release them --- */

static void count_lost(struct rashpa_stream *s, uint64_t from, uint64_t to, uint64_t *lost)
{
	const uint64_t images = stream_images(&s->head, from, to);

	__atomic_fetch_add(&place_of(s)->lost, images, __ATOMIC_RELAXED);
	*lost += images;
}

void place_count_lost(struct rashpa_stream *s, uint64_t images)
{
	if (s->place >= 0)
		__atomic_fetch_add(&place_of(s)->lost, images, __ATOMIC_RELAXED);
}

/* Stacks that may have claims: a worker may have died between its claim and next. */
static void claimed(const struct rashpa_stream *s, uint64_t *from, uint64_t *to)
{
	const struct rashpa_stream_place *p = place_of(s);

	*from = stream_number(LOAD(&p->credit));
	*to = stream_number(LOAD(&p->next)) + 1;
	if (*to > *from && *to - *from > s->head.slots + UINT64_C(1))
		*from = *to - s->head.slots - 1;
}

/* A stack that a worker has left behind. */
static bool take_orphan(struct rashpa_stream *s, uint64_t *number)
{
	struct rashpa_stream_place *p = place_of(s);
	uint64_t *claims = claims_of(s, s->place), seen = LOAD(&p->orphaned), from, to;

	if (seen == s->orphaned)
		return false;
	claimed(s, &from, &to);
	for (; from < to; from++) {
		uint64_t old = claim(s, from, NOBODY, RASHPA_CLAIM_TAKEN);

		if (swap(&claims[from % s->head.slots], &old,
			 claim(s, from, s->worker, RASHPA_CLAIM_TAKEN))) {
			*number = from;
			return true;
		}
	}
	s->orphaned = seen;
	return false;
}

bool place_take(struct rashpa_stream *s, uint64_t least, uint64_t first, uint64_t *number,
		uint64_t *lost)
{
	struct rashpa_stream_place *p = place_of(s);
	uint64_t *claims = claims_of(s, s->place), word, old, n, to;

	while (take_orphan(s, number)) {
		if (*number >= first)
			return true;
		place_release(s, *number, RELEASED);
		count_lost(s, *number, *number + 1, lost);
	}
	for (;;) {
		word = LOAD(&p->next);
		n = stream_number(word);
		if (!stamped(s, word))
			return false;
		s->next = n;
		if (n >= least)
			return false;
		old = LOAD(&claims[n % s->head.slots]);
		to = first < least ? first : least;
		/* claimed, by a worker that may not live to say so; any other number is nonsense */
		if (claim_number(s, old) > n) {
			swap(&p->next, &word,
			     claim_number(s, old) == n + 1 || to <= n ? word + 1 : stamp(s, to));
			continue;
		}
		if (!swap(&claims[n % s->head.slots], &old,
			  claim(s, n, s->worker, n < first ? RELEASED : RASHPA_CLAIM_TAKEN)))
			continue;
		if (n >= first) {
			swap(&p->next, &word, word + 1);
			*number = n;
			s->next = n + 1;
			return true;
		}
		/* too late for it: a place that may lose goes to the newest one */
		if (p->loses)
			to = least - 1;
		if (to <= n || !swap(&p->next, &word, stamp(s, to)))
			to = n + 1;
		count_lost(s, n, to, lost);
		place_release(s, n, RELEASED);
	}
}

void place_release(struct rashpa_stream *s, uint64_t number, uint32_t state)
{
	struct rashpa_stream_place *p = place_of(s);
	uint64_t *at = &claims_of(s, s->place)[number % s->head.slots], old = LOAD(at), done;

	/* a later stack may be there, in a stream that overwrites */
	if (claim_number(s, old) == number + 1 && claim_worker(old) == s->worker)
		swap(at, &old, claim(s, number, s->worker, state));
	/* nor had its first worker moved next, if it died right after its claim */
	raise_to(s, &p->next, number + 1);
	if (state == RASHPA_CLAIM_DONE) {
		done = stream_number(LOAD(&p->consumed));
		number = stream_number(LOAD(&p->credit));
		raise_to(s, &p->consumed, first_kept(s, s->place, done > number ? done : number,
						     RASHPA_CLAIM_TAKEN));
		return;
	}
	if (!count_released(s, s->place))
		return;
	if (s->group)
		rashpa_ring_ack(&s->queue, s->group, stream_number(LOAD(&p->credit)));
	stream_advance(s);
}

/* Stacks that other workers hold may still come back. */
bool place_awaits(const struct rashpa_stream *s)
{
	const uint64_t *claims = claims_of(s, s->place);
	uint64_t from, to, word;

	claimed(s, &from, &to);
	for (; from < to; from++) {
		word = LOAD(&claims[from % s->head.slots]);
		if (claim_number(s, word) == from + 1 && claim_worker(word) != s->worker &&
		    claim_state(word) == RASHPA_CLAIM_TAKEN)
			return true;
	}
	return false;
}

/* --- the table, whose lock is held --- */

/* Claims of a worker that is gone: others take its stacks, and its scratch memory is free. */
static void leave_claims(struct rashpa_stream *s, uint32_t place, uint32_t worker)
{
	uint64_t *claims = claims_of(s, place), old;

	for (uint32_t i = 0; i < s->head.slots; i++) {
		old = LOAD(&claims[i]);
		if (!claim_number(s, old) || claim_worker(old) != worker ||
		    claim_state(old) == RELEASED)
			continue;
		if (claim_state(old) == RASHPA_CLAIM_TAKEN)
			swap(&claims[i], &old, claim(s, claim_number(s, old) - 1, NOBODY,
						     RASHPA_CLAIM_TAKEN));
		else
			swap(&claims[i], &old, claim(s, claim_number(s, old) - 1, NOBODY, RELEASED));
	}
	__atomic_fetch_add(&table_of(s)->place[place].orphaned, 1, __ATOMIC_SEQ_CST);
	count_released(s, place);
}

/* The places that we know are those of this stream. */
static bool knows(const struct rashpa_stream *s)
{
	return s->process && s->head.claim_offset && stream_same(s);
}

static bool lives(const struct rashpa_stream *s, uint32_t place)
{
	return (int32_t)place == s->place || locked(s, place, 0, WORKERS);
}

/* Workers of a place that have died. Without the stream's layout their claims have to wait. */
static void bury(struct rashpa_stream *s, uint32_t place)
{
	struct rashpa_stream_place *p = &table_of(s)->place[place];

	for (uint32_t w = 0; w < RASHPA_STREAM_WORKERS; w++) {
		if (!p->worker[w] || ((int32_t)place == s->place && w == s->worker) ||
		    locked(s, place, w, 1))
			continue;
		if (knows(s))
			leave_claims(s, place, w);
		else if (p->state == RASHPA_PLACE_ACTIVE)
			continue;
		p->worker[w] = 0;
	}
}

/* Is it in use, and does a worker of it live? Else how long has it had none? */
static bool expired(const struct rashpa_stream *s, uint32_t place)
{
	struct rashpa_stream_place *p = &table_of(s)->place[place];
	const uint64_t now = clock_ns();

	if (lives(s, place)) {
		p->left_ns = 0;
		return false;
	}
	if (!p->left_ns || p->left_ns > now)
		p->left_ns = now;
	return now - p->left_ns >= p->keep_ns;
}

static bool others_live(const struct rashpa_stream *s, uint32_t place)
{
	for (uint32_t i = 0; i < RASHPA_STREAM_PLACES; i++) {
		if (i != place && table_of(s)->place[i].state == RASHPA_PLACE_ACTIVE && lives(s, i))
			return true;
	}
	return false;
}

static void free_place(struct rashpa_stream_place *p)
{
	uint64_t *word = (uint64_t *)p;

	STORE(&p->state, RASHPA_PLACE_FREE);
	for (size_t i = 0; i < sizeof(*p) / sizeof(*word); i++)
		__atomic_store_n(&word[i], 0, __ATOMIC_RELAXED);
}

/*
 * A place without a worker stays as long as it asked, and longer without any other consumer: the
 * next one goes on there.
 */
static void look_at(struct rashpa_stream *s, uint32_t place)
{
	struct rashpa_stream_place *p = &table_of(s)->place[place];

	switch (p->state) {
	case RASHPA_PLACE_WAITS:
	case RASHPA_PLACE_JOINS:
		if (!lives(s, place))
			free_place(p);
		return;
	case RASHPA_PLACE_ACTIVE:
		bury(s, place);
		if (expired(s, place) && others_live(s, place)) {
			p->given_up++;
			STORE(&p->state, RASHPA_PLACE_GIVEN_UP);
		}
	}
}

static void look_at_all(struct rashpa_stream *s)
{
	for (uint32_t i = 0; i < RASHPA_STREAM_PLACES; i++)
		look_at(s, i);
}

void place_tick(struct rashpa_stream *s)
{
	if (s->flags & RASHPA_STREAM_OBSERVE || !knows(s) || lock_table(s, 0))
		return;
	if (table_of(s)->magic == RASHPA_PLACES_MAGIC)
		look_at_all(s);
	unlock_table(s);
	stream_advance(s);
	/* one that died may not have rung */
	if (!s->producer && s->head.policy != RASHPA_STREAM_OVERWRITE)
		stream_ring(s);
}

/* The table's bytes may be anything of another program's before. */
static bool empty(const struct rashpa_stream_table *t)
{
	const uint64_t *word = (const uint64_t *)t;

	for (size_t i = 0; i < sizeof(*t) / sizeof(*word); i++) {
		if (word[i])
			return false;
	}
	return true;
}

/* 1: there is a table, 0: its producer makes it, or a negative errno */
static int make_table(struct rashpa_stream *s)
{
	struct rashpa_stream_table *t = table_of(s);
	struct stat st;

	if (fstat(s->buffer.node, &st))
		return fail(errno, "buffer %s: %s", s->name, strerror(errno));
	if (t->magic == RASHPA_PLACES_MAGIC) {
		if (t->device == st.st_dev && t->inode == st.st_ino)
			return 1;
		return fail(EXDEV, "buffer %s: others use it by another node, whose locks are not seen here: use one node (in a container, mount it)",
			    s->name);
	}
	if (!s->producer && (s->shared->magic || !empty(t) || stream_has_producer(s)))
		return 0;
	memset(t, 0, sizeof(*t));
	t->device = st.st_dev;
	t->inode = st.st_ino;
	__atomic_store_n(&t->magic, RASHPA_PLACES_MAGIC, __ATOMIC_RELEASE);
	return 1;
}

static int32_t find(const struct rashpa_stream *s, const char *name)
{
	const struct rashpa_stream_table *t = table_of(s);

	for (int32_t i = 0; i < RASHPA_STREAM_PLACES; i++) {
		if (t->place[i].state != RASHPA_PLACE_FREE &&
		    !strncmp(t->place[i].name, name, RASHPA_PLACE_NAME))
			return i;
	}
	return -1;
}

/* Of those that have no consumer, and are not kept, the one that was left first. */
static int32_t find_room(const struct rashpa_stream *s)
{
	const struct rashpa_stream_table *t = table_of(s);
	int32_t found = -1;

	for (int32_t i = 0; i < RASHPA_STREAM_PLACES; i++) {
		if (t->place[i].state == RASHPA_PLACE_FREE)
			return i;
		if (t->place[i].state != RASHPA_PLACE_WAITS && expired(s, i) &&
		    (found < 0 || t->place[i].left_ns < t->place[found].left_ns))
			found = i;
	}
	return found;
}

static int in_use(const struct rashpa_stream *s, const struct rashpa_stream_place *p, const char *why)
{
	int32_t pid = 0;

	for (uint32_t w = 0; w < RASHPA_STREAM_WORKERS && !pid; w++)
		pid = p->worker[w];
	return fail(EBUSY, "%s has a consumer: process %" PRId32 " %s %s", s->name, pid, why,
		    s->options.name);
}

static bool changes_pixels(const struct rashpa_stream *s)
{
	return (s->flags & (RASHPA_STREAM_WRITE | RASHPA_STREAM_PIN)) == RASHPA_STREAM_WRITE;
}

/* Consumers in other places would see what one writes into a stack. */
static int check_writers(const struct rashpa_stream *s, int32_t place)
{
	const bool writes = changes_pixels(s);

	for (int32_t i = 0; i < RASHPA_STREAM_PLACES; i++) {
		const struct rashpa_stream_place *p = &table_of(s)->place[i];

		if (i != place && p->state && (writes || p->writes) && lives(s, i))
			return in_use(s, p, writes ? "would see what is written into stacks by" :
					    "writes into stacks, also of");
	}
	return 0;
}

/* Become a worker of it. */
static int take_worker(struct rashpa_stream *s, int32_t place)
{
	struct rashpa_stream_place *p = &table_of(s)->place[place];
	bool other = true;
	int error = 0;

	for (uint32_t w = 0; w < p->workers && w < RASHPA_STREAM_WORKERS; w++) {
		error = lock_range(s, F_OFD_SETLK, F_WRLCK, lock_of(place, w), 1, &other);
		if (error || other)
			continue;
		s->place = place;
		s->worker = w;
		s->shares = p->workers > 1;
		/* of one that has died, with claims that are still its own */
		s->inherits = p->worker[w];
		p->worker[w] = getpid();
		p->left_ns = 0;
		return 0;
	}
	return error ? error : in_use(s, p, p->workers > 1 ? "and others work for the place" :
					    "has the place");
}

static int enter(struct rashpa_stream *s)
{
	struct rashpa_stream_table *t = table_of(s);
	const struct rashpa_place_options *o = &s->options;
	const bool loses = s->flags & RASHPA_STREAM_LOSE;
	int32_t place = find(s, o->name);
	struct rashpa_stream_place *p;
	int error = check_writers(s, place);
	bool lived;

	if (error)
		return error;
	if (place >= 0)
		look_at(s, place);
	if (place >= 0 && t->place[place].state == RASHPA_PLACE_FREE)
		place = -1;
	if (place < 0) {
		look_at_all(s);
		place = find_room(s);
		if (place < 0)
			return fail(ENOSPC, "buffer %s: all its %d places have consumers, or are kept for them",
				    s->name, RASHPA_STREAM_PLACES);
		free_place(&t->place[place]);
	}
	p = &t->place[place];
	lived = p->state != RASHPA_PLACE_FREE && lives(s, place);
	if (lived && (!!p->loses != loses || !!p->writes != changes_pixels(s) || p->workers == 1 || o->workers == 1))
		return in_use(s, p, "has the place");
	if (!lived) {
		/* its claims stay, and if it is waited for from now on, it has to join */
		s->returns = p->state == RASHPA_PLACE_LEFT;
		if (p->state == RASHPA_PLACE_FREE || p->state >= RASHPA_PLACE_GIVEN_UP ||
		    (p->loses && !loses) || s->flags & RASHPA_STREAM_FRESH)
			STORE(&p->state, RASHPA_PLACE_WAITS);
		STORE(&p->loses, loses);
		p->writes = changes_pixels(s);
		p->workers = o->workers;
		p->keep_ns = o->keep_ns < 0 ? UINT64_MAX : (uint64_t)o->keep_ns;
		memcpy(p->name, o->name, RASHPA_PLACE_NAME);
	}
	return take_worker(s, place);
}

int place_open(struct rashpa_stream *s)
{
	struct rashpa_role role = { .take = RASHPA_ROLE_CONSUMER };
	int error = lock_table(s, LOCK_NS);

	if (error)
		return error;
	error = make_table(s);
	if (error > 0)
		error = enter(s);
	unlock_table(s);
	/* for display only: it has one holder */
	if (!error)
		stream_role(s, &role);
	return error;
}

/* Where the last place that was waited for stopped, if its consumer is gone and has no successor. */
static int32_t vacant(struct rashpa_stream *s)
{
	for (int32_t i = 0; i < RASHPA_STREAM_PLACES; i++) {
		const struct rashpa_stream_place *p = &table_of(s)->place[i];

		if (i != s->place && p->state == RASHPA_PLACE_ACTIVE && !p->loses &&
		    stamped(s, LOAD(&p->credit)) && expired(s, i))
			return i;
	}
	return -1;
}

/*
 * No claim is 0, which pixels often are: the compare-and-swap of a worker that was delayed until another
 * stream has other things there fails.
 */
static void clear_claims(const struct rashpa_stream *s, uint32_t place, uint32_t places)
{
	uint64_t *claims = claims_of(s, place);

	for (uint64_t i = 0; i < (uint64_t)places * s->head.slots; i++)
		STORE(&claims[i], claim(s, UINT64_MAX, NOBODY, RELEASED));
}

/* Take part in the stream, from the first stack that is not given back. */
static void join(struct rashpa_stream *s)
{
	struct rashpa_stream_place *p = place_of(s);
	uint64_t *credit = (uint64_t *)(uintptr_t)&s->shared->credit, old, start, before;
	int32_t left = p->loses || others_live(s, s->place) ? -1 : vacant(s);

	/* the place stopped here in this stream */
	before = stamped(s, LOAD(&p->credit)) ? stream_consumed_at(s, s->place) : UINT64_MAX;
	STORE(&p->state, RASHPA_PLACE_JOINS);
	old = LOAD(credit);
	while (!swap(credit, &old, old + NUMBER_MASK + 1))
		;
	start = stream_number(old);
	if (left >= 0) {
		const uint64_t done = stream_consumed_at(s, left);

		start = done > start ? done : start;
	}
	/* others may still ask for stacks that this place has had */
	if (before != UINT64_MAX && before > start)
		start = before;
	if (s->flags & RASHPA_STREAM_FROM_START)
		start = s->head.first_stack;
	if (start > before && !s->returns)
		__atomic_fetch_add(&p->lost, stream_images(&s->head, before, start), __ATOMIC_RELAXED);
	clear_claims(s, s->place, 1);
	STORE(&p->next, stamp(s, start));
	STORE(&p->consumed, stamp(s, start));
	STORE(&p->credit, stamp(s, start));
	STORE(&p->state, RASHPA_PLACE_ACTIVE);
	if (left >= 0)
		free_place(&table_of(s)->place[left]);
}

int place_attend(struct rashpa_stream *s)
{
	int error = lock_table(s, LOCK_NS);

	if (error)
		return error;
	/* the claims of an earlier stream may be slots of this one */
	if (!stream_same(s)) {
		unlock_table(s);
		return 0;
	}
	if (s->place < 0) {
		error = make_table(s);
		error = error > 0 ? enter(s) : error ? error : fail(EPROTO, "buffer %s has no table of places", s->name);
	}
	if (!error) {
		look_at_all(s);
		if (place_of(s)->state != RASHPA_PLACE_ACTIVE || !stamped(s, LOAD(&place_of(s)->credit)) ||
		    (s->flags & RASHPA_STREAM_FROM_START && !s->shares))
			join(s);
		else if (s->inherits)
			leave_claims(s, s->place, s->worker);
		s->inherits = false;
		s->next = stream_number(LOAD(&place_of(s)->next));
		s->orphaned = 0;
	}
	unlock_table(s);
	if (error)
		return error;
	stream_advance(s);
	return 1;
}

void place_close(struct rashpa_stream *s)
{
	const int32_t place = s->place;
	struct rashpa_stream_place *p;
	struct rashpa_role role = {};
	bool other;

	/* touch no page of a file that was cut; its locks end with the handle */
	if (place < 0 || stream_role(s, &role) || lock_table(s, LOCK_NS))
		return;
	p = place_of(s);
	if (knows(s))
		leave_claims(s, place, s->worker);
	p->worker[s->worker] = 0;
	lock_range(s, F_OFD_SETLK, F_UNLCK, lock_of(place, s->worker), 1, &other);
	s->place = -1;
	if (!locked(s, place, 0, WORKERS)) {
		p->keep_ns = 0;
		p->left_ns = clock_ns();
		if (p->state != RASHPA_PLACE_ACTIVE)
			free_place(p);
		else if (others_live(s, place))
			STORE(&p->state, RASHPA_PLACE_LEFT);
	}
	unlock_table(s);
	if (knows(s))
		stream_advance(s);
}

int place_prepare(struct rashpa_stream *s)
{
	int error = lock_table(s, LOCK_NS);

	if (error)
		return error;
	error = make_table(s);
	unlock_table(s);
	return error < 0 ? error : 0;
}

int place_reset(struct rashpa_stream *s)
{
	const uint64_t first = stamp(s, s->head.first_stack);
	int error = lock_table(s, LOCK_NS);

	if (error)
		return error;
	for (uint32_t i = 0; i < RASHPA_STREAM_PLACES; i++) {
		struct rashpa_stream_place *p = &table_of(s)->place[i];

		/* workers that are gone have no claims any more */
		for (uint32_t w = 0; w < RASHPA_STREAM_WORKERS; w++) {
			if (p->worker[w] && !locked(s, i, w, 1))
				p->worker[w] = 0;
		}
		if (p->state == RASHPA_PLACE_FREE || p->state >= RASHPA_PLACE_GIVEN_UP ||
		    (!lives(s, i) && (p->state != RASHPA_PLACE_ACTIVE || expired(s, i)))) {
			free_place(p);
			continue;
		}
		p->lost = p->given_up = 0;
		STORE(&p->next, first);
		STORE(&p->consumed, first);
		STORE(&p->credit, first);
		STORE(&p->state, RASHPA_PLACE_ACTIVE);
	}
	clear_claims(s, 0, RASHPA_STREAM_PLACES);
	unlock_table(s);
	return 0;
}

/* --- what is known of places --- */

uint64_t stream_consumed_at(const struct rashpa_stream *s, uint32_t place)
{
	const struct rashpa_stream_place *p = &table_of(s)->place[place];
	const uint64_t done = LOAD(&p->consumed), credit = LOAD(&p->credit);

	if (!stamped(s, done) || !stamped(s, credit))
		return s->head.first_stack;
	return stream_number(done > credit ? done : credit);
}

uint64_t stream_consumed(const struct rashpa_stream *s)
{
	const struct rashpa_stream_table *t = table_of(s);
	uint64_t least = UINT64_MAX, done;

	for (uint32_t i = 0; i < RASHPA_STREAM_PLACES; i++) {
		if (t->place[i].state != RASHPA_PLACE_ACTIVE || t->place[i].loses)
			continue;
		done = stream_consumed_at(s, i);
		least = done < least ? done : least;
	}
	return least == UINT64_MAX ? stream_credit(s) : least;
}

/* Workers of a place that live. */
static uint32_t count_workers(const struct rashpa_stream *s, uint32_t place, int32_t *process)
{
	const struct rashpa_stream_place *p = &table_of(s)->place[place];
	uint32_t n = 0;

	for (uint32_t w = 0; w < RASHPA_STREAM_WORKERS; w++) {
		const int32_t pid = p->worker[w];

		if (!pid || (!((int32_t)place == s->place && w == s->worker) && !locked(s, place, w, 1)))
			continue;
		if (!n++)
			*process = pid;
	}
	return n;
}

int32_t place_consumer(const struct rashpa_stream *s)
{
	int32_t process = 0;

	for (uint32_t i = 0; i < RASHPA_STREAM_PLACES && !process; i++)
		count_workers(s, i, &process);
	return process;
}

static uint64_t count_held(const struct rashpa_stream *s, uint32_t place)
{
	const uint64_t *claims = claims_of(s, place);
	uint64_t n = 0, word;

	for (uint32_t i = 0; i < s->head.slots; i++) {
		word = LOAD(&claims[i]);
		n += claim_number(s, word) && claim_state(word) < RELEASED;
	}
	return n;
}

int rashpa_stream_get_place_sized(struct rashpa_stream *s, uint32_t index,
				  struct rashpa_place_info *to, size_t size)
{
	const struct rashpa_stream_place *p = &table_of(s)->place[index];
	struct rashpa_place_info info = {};
	uint64_t least, most;

	if (index >= RASHPA_STREAM_PLACES)
		return fail(ERANGE, "there is no place %" PRIu32, index);
	if (!s->known || !stream_same(s))
		return fail(ENODATA, "buffer %s: no stream", s->name);
	info.state = LOAD(&p->state);
	if (info.state == RASHPA_PLACE_FREE || info.state > RASHPA_PLACE_LEFT)
		return fail(ENOENT, "buffer %s: place %" PRIu32 " is free", s->name, index);
	memcpy(info.name, p->name, sizeof(info.name));
	stream_make_printable(info.name, sizeof(info.name));
	info.loses = !!p->loses;
	info.workers = count_workers(s, index, &info.process);
	info.workers_max = p->workers;
	info.given_up = p->given_up;
	info.lost = p->lost;
	info.keep_ns = p->keep_ns;
	info.left_ns = p->left_ns;
	info.consumed = stream_consumed_at(s, index);
	if (info.state == RASHPA_PLACE_ACTIVE) {
		least = stream_stacks(s, &most);
		info.behind = least > info.consumed ? least - info.consumed : 0;
		info.held = count_held(s, index);
	}
	sized_copy(to, size, &info, sizeof(info));
	return 0;
}
