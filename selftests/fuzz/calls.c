// SPDX-License-Identifier: LGPL-2.1-or-later
/* ioctls: arguments that are nearly right, at addresses that mostly are. */
#include <sys/syscall.h>

#include "calls.h"

#define NAMES		4	/* few, so that they meet */
#define SENTENCE	(RASHPA_REASON_SIZE + 64)	/* bytes that are checked */

/* Small, so that the machine is not simply used up; seldom more than there is. */
uint64_t length_value(struct rng *r)
{
	if (one_in(r, 32))
		return odd_number(r);
	if (one_in(r, 16))
		return PICK(r, 2 * MIB, 4 * MIB, 8 * MIB);
	return PAGE * (1 + below(r, 16)) + (one_in(r, 24) ? below(r, 4096) : 0);
}

void fill_name(struct rng *r, char *name)
{
	snprintf(name, RASHPA_NAME_SIZE, "fuzz%u", below(r, NAMES));
	if (one_in(r, 32))
		name[below(r, RASHPA_NAME_SIZE)] = (char)PICK(r, '/', '.', ' ', 0x80, '%', 'x');
	if (one_in(r, 64))
		memset(name, 'n', RASHPA_NAME_SIZE - below(r, 2));
}

static void fill_window(struct rng *r, struct rashpa_profile_window *w, uint32_t i)
{
	memset(w, 0, sizeof(*w));
	snprintf(w->name, sizeof(w->name), "w%u", one_in(r, 16) ? 0 : i);
	w->bar = one_in(r, 16) ? below(r, 8) : (uint32_t)PICK(r, 2, 4, 4);
	w->flags = below(r, 2);
	w->offset = PAGE * below(r, 8);
	w->length = PAGE * (1 + below(r, 4));
	w->cache = one_in(r, 8) ? below(r, 5) : 0;
}

/* Waits are short: a sequence is run with locks held. */
static void fill_step(struct rng *r, struct rashpa_profile_step *s, bool last)
{
	memset(s, 0, sizeof(*s));
	s->op = last || one_in(r, 3) ? RASHPA_STEP_WAIT : RASHPA_STEP_WRITE;
	s->offset = s->op == RASHPA_STEP_WRITE ? 0x10 : 0x14;	/* CONTROL, STATUS */
	s->value = s->op == RASHPA_STEP_WRITE;
	s->mask = 1;
	if (s->op == RASHPA_STEP_WAIT) {
		s->value = one_in(r, 8);
		s->timeout_us = one_in(r, 32) ? 1000000 : 1 + below(r, 5000);
	}
	if (one_in(r, 16) && run.iommu)
		s->offset = odd_number(r) & (one_in(r, 2) ? 0xfffc : UINT64_MAX);
	if (one_in(r, 32))
		s->bar = below(r, 8);
	if (one_in(r, 32))
		s->mask = (uint32_t)odd_number(r);
}

static void fill_layout(struct rng *r, struct rashpa_layout *l)
{
	uint32_t *words = (uint32_t *)l;

	*l = fpga_layout;
	if (one_in(r, 4))
		words[below(r, sizeof(*l) / 4)] =
			(uint32_t)odd_number(r) & (one_in(r, 2) ? 0x3c : ~0U);
	if (one_in(r, 4)) {
		l->length_offset = 0;
		l->length_bits = 0;
		l->segment_size = PAGE << below(r, 6);
	}
	if (one_in(r, 4)) {
		l->sum_offset = 0;
		l->sum_bits = 0;
	}
	if (one_in(r, 16))
		memset(l, 0, sizeof(*l));
}

/* Fetches from the board's own memory do not matter; the writes of the kernel do. */
static void fill_fetch(struct rng *r, struct rashpa_fetch *f)
{
	static const struct rashpa_fetch_field fields[] = {
		{ .kind = RASHPA_FETCH_ADDRESS, .bits = 64, .width = 64 },
		{ .kind = RASHPA_FETCH_LENGTH, .offset = 8, .bits = 32, .width = 32 },
		{ .kind = RASHPA_FETCH_NEXT, .offset = 16, .bits = 64, .width = 64 },
		{ .kind = RASHPA_FETCH_CONSTANT, .offset = 12, .bits = 32, .width = 1, .value = 1 },
	};
	static const struct rashpa_fetch_field registers[] = {
		{ .kind = RASHPA_FETCH_ADDRESS, .bits = 64, .width = 64 },
		{ .kind = RASHPA_FETCH_COUNT, .offset = 8, .bits = 32, .width = 32 },
	};
	struct rashpa_fetch_field *to = (struct rashpa_fetch_field *)(f + 1);

	memcpy(to, fields, sizeof(fields));
	memcpy(to + 4, registers, sizeof(registers));
	*f = (struct rashpa_fetch) {
		.stride = 32, .flags = below(r, 2), .descriptor_size = 24,
		.fields = (uintptr_t)to, .registers = (uintptr_t)(to + 4),
		.n_fields = 4, .n_registers = 2,
		.field_size = sizeof(*to), .register_size = sizeof(*to),
	};
	if (one_in(r, 4))
		((uint32_t *)f)[below(r, sizeof(*f) / 4)] = (uint32_t)odd_number(r);
	if (one_in(r, 3))
		((uint32_t *)to)[below(r, 6 * sizeof(*to) / 4)] =
			(uint32_t)odd_number(r) & (one_in(r, 2) ? 0x3f : ~0U);
}

static void fill_table(struct rng *r, struct rashpa_profile_table *t,
		       struct rashpa_layout *layout)
{
	*t = fpga_table;
	if (one_in(r, 2)) {
		fill_fetch(r, (struct rashpa_fetch *)layout);
		t->layout_size = 0;
		t->fetch = (uintptr_t)layout;
		t->fetch_size = sizeof(struct rashpa_fetch);
		if (one_in(r, 16))
			t->fetch_size = (uint32_t)odd_number(r);
		t->layout = one_in(r, 16);
		return;
	}
	fill_layout(r, layout);
	t->layout = (uintptr_t)layout;
	if (one_in(r, 4))
		t->offset = PAGE * below(r, 16);
	if (one_in(r, 4))
		t->length = length_value(r);
	if (one_in(r, 16))
		t->bar = below(r, 8);
	if (one_in(r, 16))
		t->layout = odd_number(r);
	if (one_in(r, 16))
		t->layout_size = (uint32_t)odd_number(r);
}

/* Bounds are in on-board memory, where they are kept; steps are those of the function. */
static void fill_engine(struct rng *r, struct rashpa_profile_engine *e, uint32_t i,
			const char *steps)
{
	memset(e, 0, sizeof(*e));
	snprintf(e->name, sizeof(e->name), "e%u", one_in(r, 16) ? 0 : i);
	e->bar = one_in(r, 32) ? below(r, 8) : 4;
	e->first_offset = (1 << 20) + 8 * i;
	e->limit_offset = e->first_offset + 4;
	e->first = 16 * i;
	e->count = one_in(r, 8) ? below(r, 40) : 16;
	e->steps = (uintptr_t)steps;
	e->n_steps = 2;
	e->step_size = sizeof(struct rashpa_profile_step);
	e->flags = one_in(r, 8);
	if (one_in(r, 4))
		((uint32_t *)e)[below(r, sizeof(*e) / 4)] = (uint32_t)odd_number(r);
}

/* Fill an array in separate memory; returns its address. */
static uint64_t fill_array(struct thread *t, enum type type)
{
	struct rng *r = &t->rng;
	char *side = t->side + (type == T_STEPS ? PAGE : 0);
	uint32_t i;

	/* with the steps, after them */
	if (type == T_TABLES)
		side = t->side + PAGE + PAGE / 2;
	else if (type == T_ENGINES)
		side = t->side + PAGE + PAGE / 4;
	else
		memset(side, 0, PAGE);
	switch (type) {
	case T_WINDOWS:
		for (i = 0; i < 8; i++)
			fill_window(r, (struct rashpa_profile_window *)side + i, i);
		break;
	case T_STEPS:
		for (i = 0; i < 8; i++)
			fill_step(r, (struct rashpa_profile_step *)side + i, i % 2);
		break;
	case T_TABLES:
		fill_table(r, (struct rashpa_profile_table *)side,
			   (struct rashpa_layout *)(side + PAGE / 4));
		break;
	case T_ENGINES:
		for (i = 0; i < 4; i++)
			fill_engine(r, (struct rashpa_profile_engine *)side + i, i,
				    t->side + PAGE);
		break;
	default:
		for (i = 0; i < RASHPA_MEMBERS_MAX; i++)
			((struct rashpa_member *)side)[i].source = one_in(r, 16) ?
								   below(r, 70) : 1 + i;
	}
	if (one_in(r, 16))
		return PICK(r, 0, 1, (uintptr_t)t->side + 2 * PAGE - 8, (uintptr_t)t->arg_ro,
			    UINT64_MAX, 1ULL << 47, 0xffff888000000000);
	return (uintptr_t)side;
}

static uint64_t value_of(struct thread *t, const struct field *f)
{
	struct rng *r = &t->rng;

	switch (f->type) {
	case T_OUT:
		return rng_next(r);
	case T_LENGTH:
		return length_value(r);
	case T_MAYBE_LENGTH:
		return one_in(r, 4) ? length_value(r) : 0;
	case T_OFFSET:
		return one_in(r, 3) ? PAGE * below(r, 16) : 0;
	case T_POWER:
		return one_in(r, 4) ? PAGE << below(r, 12) : 0;
	case T_BELOW:
		return below(r, f->arg);
	case T_RARE:
		return one_in(r, 8) ? 1 + below(r, f->arg) : 0;
	case T_SIZE:
		return one_in(r, 8) ? below(r, 200) : f->arg;
	case T_FD:
		return (uint32_t)pool_fd(t, (enum kind)f->arg);
	case T_MAYBE_FD:
		return one_in(r, 2) ? UINT32_MAX : (uint32_t)pool_fd(t, (enum kind)f->arg);
	case T_ADDRESS:
		return map_address(r);
	case T_WORD:
		return one_in(r, 2) ? below(r, 64) : odd_number(r);
	case T_LINE:
		return 64 * below(r, 64);
	case T_WIDTH:
		return PICK(r, 32, 64);
	case T_PERIOD:
		return one_in(r, 2) ? 0 : 20 + below(r, 5000);
	case T_BAR:
		return one_in(r, 8) ? below(r, 7) : PICK(r, 0, 2, 4);
	case T_ID:
		return one_in(r, 8) ? below(r, 70) : 1 + below(r, 4);
	case T_WINDOWS:
	case T_STEPS:
	case T_TABLES:
	case T_ENGINES:
	case T_MEMBERS:
		return fill_array(t, f->type);
	default:
		return 0;
	}
}

static void fill_fields(struct thread *t, const struct call *c, char *arg)
{
	const struct field *f;
	uint64_t value;

	for (f = c->fields; f->size; f++) {
		if (f->type == T_NAME) {
			if (!f->arg || one_in(&t->rng, f->arg))
				fill_name(&t->rng, arg + f->offset);
		} else if (f->type == T_WINDOW_NAME) {
			if (one_in(&t->rng, 4))
				snprintf(arg + f->offset, f->size, "w%u", below(&t->rng, 4));
		} else {
			value = value_of(t, f);
			memcpy(arg + f->offset, &value, f->size);
		}
	}
}

/* Where one feature makes fields of another meaningless, zero them: else all is EINVAL. */
static void make_sense(struct thread *t, const struct call *c, char *arg)
{
	struct rashpa_head *head = (struct rashpa_head *)arg;
	struct rashpa_source_add *s = (struct rashpa_source_add *)arg;
	struct rashpa_window_make *w = (struct rashpa_window_make *)arg;
	struct rashpa_alloc *a = (struct rashpa_alloc *)arg;

	switch (c->cmd) {
	case RASHPA_IOC_ALLOC:
		if (!(head->flags & RASHPA_ALLOC_MODE))
			a->mode = 0;
		if (!a->name[0])
			head->flags &= ~(uint32_t)RASHPA_ALLOC_EXCLUSIVE;
		break;
	case RASHPA_IOC_WINDOW_MAKE:
		if (w->name[0])
			memset(&w->bar, 0, offsetof(struct rashpa_window_make, name) -
			       offsetof(struct rashpa_window_make, bar));
		break;
	case RASHPA_IOC_SOURCE_ADD:
		if (s->kind == RASHPA_SOURCE_SOFTWARE)
			s->device = -1;
		if (s->kind == RASHPA_SOURCE_SOFTWARE || s->kind == RASHPA_SOURCE_DEVICE)
			s->index = 0;
		if (s->kind != RASHPA_SOURCE_LOCK) {
			s->memory = -1;
			memset(&s->offset, 0,
			       sizeof(*s) - offsetof(struct rashpa_source_add, offset));
			head->flags &= ~(uint32_t)(RASHPA_SOURCE_POLL | RASHPA_SOURCE_LOOK);
		} else if (head->flags & RASHPA_SOURCE_LOOK) {
			head->flags &= ~(uint32_t)RASHPA_SOURCE_POLL;
			s->index = s->period_us = s->budget = 0;
		} else if (head->flags & RASHPA_SOURCE_POLL) {
			s->index = 0;
			s->period_us = s->period_us ? s->period_us : 100;
		} else {
			s->period_us = 0;
			s->budget = 0;
		}
		break;
	}
}

/* One thing or a few are not as they should be. */
static void mutate(struct rng *r, const struct call *c, char *arg)
{
	uint32_t n = 1 + below(r, 3), at;
	uint64_t value;

	while (n--) {
		value = odd_number(r);
		if (one_in(r, 2)) {
			at = below(r, c->size / 8) * 8;
			memcpy(arg + at, &value, 8);
		} else if (one_in(r, 2)) {
			at = below(r, c->size / 4) * 4;
			memcpy(arg + at, &value, 4);
		} else {
			at = below(r, c->size);
			arg[at] ^= (char)(1 << below(r, 8));
		}
	}
}

static void fill_head(struct thread *t, const struct call *c, struct rashpa_head *head,
		      char *sentence)
{
	struct rng *r = &t->rng;

	head->size = c->size;
	head->flags = (uint32_t)rng_next(r) & c->flags & (one_in(r, 2) ? 0 : ~0U);
	if (!one_in(r, 4)) {
		head->reason = (uintptr_t)sentence;
		head->reason_size = (uint32_t)PICK(r, RASHPA_REASON_SIZE, RASHPA_REASON_SIZE, 0, 1,
						   2, 40);
	}
	if (one_in(r, 64))
		head->reason = odd_number(r);
	if (one_in(r, 32))
		head->size = (uint32_t)PICK(r, 0, 4, 8, 24, c->size - 4, c->size - 8, c->size + 8,
					    c->size + 64, PAGE, PAGE + 1, UINT32_MAX);
	if (one_in(r, 64))
		head->flags = (uint32_t)odd_number(r);
}

/* Mostly a good place: the end of a page, exactly. */
static char *place(struct thread *t, const struct call *c, const char *arg)
{
	char *at = t->arg + PAGE - c->size;
	struct rashpa_head head;

	switch (below(&t->rng, 64)) {
	case 0:
		at += 1 + below(&t->rng, c->size);	/* its end cannot be reached */
		memcpy(at, arg, (size_t)(t->arg + PAGE - at));
		return at;
	case 1:
		return t->arg_ro + PAGE - c->size;
	case 2:
		return (char *)(uintptr_t)PICK(&t->rng, 0, 1, UINT64_MAX - 7, 1ULL << 47,
					       0xffff888000000000, (uintptr_t)t->arg + PAGE);
	case 3:
	case 4:
		/* other threads may put their sentences there: do not check it */
		at = run.shared_arg;
		memcpy(&head, arg, sizeof(head));
		head.reason = (uintptr_t)at + PAGE / 2;
		/* never with ours: another thread's call may take it, and write there later */
		memcpy(at + sizeof(head), arg + sizeof(head), c->size - sizeof(head));
		memcpy(at, &head, sizeof(head));
		return at;
	case 5:
		at = t->arg + 1 + below(&t->rng, 7);	/* not aligned */
		break;
	}
	memcpy(at, arg, c->size);
	return at;
}

int next_fd(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	close(fd);
	return fd;
}

/* A sentence ends in NUL, is text, and stays inside its buffer. */
static void check_sentence(struct thread *t, const struct call *c, const char *sentence,
			   uint32_t size)
{
	uint32_t i;

	for (i = size; i < SENTENCE; i++)
		if ((unsigned char)sentence[i] != 0xee)
			finding(t, "%s: byte %u after a sentence of %u", c->name, i, size);
	if (!size || (unsigned char)sentence[0] == 0xee)
		return;
	for (i = 0; i < size && sentence[i]; i++)
		if (sentence[i] < 0x20 || sentence[i] > 0x7e)
			finding(t, "%s: byte %#x in a sentence", c->name, sentence[i]);
	if (i == size)
		finding(t, "%s: a sentence of %u without an end", c->name, size);
}

static void keep_result(struct thread *t, const struct call *c, const char *at)
{
	enum kind kind = c->makes;
	int fd;

	if (!kind)
		return;
	memcpy(&fd, at + c->out_fd, sizeof(fd));
	if (kind == K_CHANNEL && !one_in(&t->rng, 8))
		fcntl(fd, F_SETFL, O_NONBLOCK);
	pool_put(t, fd, kind);
}

static const struct call *pick_call(struct rng *r)
{
	uint32_t total = 0, at, i;

	for (i = 0; i < n_calls; i++)
		total += calls[i].weight;
	at = below(r, total);
	for (i = 0; at >= calls[i].weight; i++)
		at -= calls[i].weight;
	return &calls[i];
}

/* Run one call without privileges: calls that need a capability are refused. */
static void be(uid_t uid)
{
	/* of this thread only, so not by the C library */
	syscall(SYS_setresuid, -1, uid, -1);
}

/* A profile is taken only while there is neither map nor window. */
static void clean_slate(struct thread *t)
{
	struct rashpa_quiesce quiesce = { HEAD(quiesce) };
	char path[32];
	int fd;

	pool_drop_all();
	maps_reset();
	fpga_path(&t->rng, path, sizeof(path));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	ioctl(fd, RASHPA_IOC_QUIESCE, &quiesce);	/* maps that were kept */
	pool_put(t, fd, K_FPGA);
}

void step_ioctl(struct thread *t)
{
	const struct call *c = pick_call(&t->rng);
	char arg[PAGE] __attribute__((aligned(8))) = "", *sentence = t->sentence;
	struct rashpa_head *head = (struct rashpa_head *)arg;
	bool nobody = one_in(&t->rng, 16), bent = one_in(&t->rng, 4);
	unsigned long cmd = c->cmd;
	int fd, before = 0, err, after = 0;
	char *at;

	if (c->cmd == RASHPA_IOC_PROFILE_SET && one_in(&t->rng, 4))
		clean_slate(t);
	fd = pool_fd(t, c->on);
	memset(sentence, 0xee, SENTENCE);
	fill_fields(t, c, arg);
	fill_head(t, c, head, sentence);
	make_sense(t, c, arg);
	if (bent)
		mutate(&t->rng, c, arg);
	if (one_in(&t->rng, 128))
		cmd = one_in(&t->rng, 2) ? rng_next(&t->rng) : cmd ^ 1UL << below(&t->rng, 32);
	at = place(t, c, arg);
	note(t, "%s fd %d%s%s", c->name, fd, bent ? " bent" : "", nobody ? " nobody" : "");

	if (run.threads == 1)
		before = next_fd();
	if (nobody)
		be(65534);
	err = ioctl(fd, cmd, at) ? errno : 0;
	if (nobody)
		be(0);
	t->ring->calls++;
	t->ring->good += !err;
	t->ring->tried[c - calls]++;
	t->ring->served[c - calls] += !err;
	if (err >= 134)
		finding(t, "%s: errno %d", c->name, err);
	if (at != run.shared_arg && head->reason == (uintptr_t)sentence)
		check_sentence(t, c, sentence, err && head->reason_size < SENTENCE ?
			       head->reason_size : err ? RASHPA_REASON_SIZE : 0);
	if (run.threads == 1) {
		after = next_fd();
		if (cmd == c->cmd && err && before != after)
			finding(t, "%s: errno %d, and the next fd is %d after %d", c->name, err,
				after, before);
	}
	/* what other threads may have written over is left to sweep() */
	if (!err && cmd == c->cmd && (at != run.shared_arg || run.threads == 1))
		keep_result(t, c, at);
	else if (run.threads == 1 && before != after)
		close(before);		/* of another call than that which was meant */
}
