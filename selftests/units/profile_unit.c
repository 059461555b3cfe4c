// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Profiles: checks, and runs of quiesce sequences.
 * test: tier=check where=root seconds=2 run=build/selftests/units/profile_unit
 */
/* a limit of 0 means no limit */
#define readl_poll_timeout(reg, value, condition, sleep_us, timeout_us) ({		\
	const ktime_t _end = (timeout_us) ? ktime_add_us(now, timeout_us) : LLONG_MAX;	\
											\
	while ((value) = readl(reg), !(condition) && now < _end)				\
		now += (sleep_us) * NSEC_PER_USEC;					\
	(condition) ? 0 : -ETIMEDOUT;							\
})
static s64 now;

#include "../../drivers/function/quiesce.c"
#include "../../drivers/function/profile.c"
#include "unit.h"

/* ------------------------------------------------------------ the rest ---- */

#define BAR	(4 * PAGE_SIZE)		/* size of BAR 0 and of BAR 2; the function has no others */

static struct pci_dev pdev;
static struct rashpa_device dev = { .pdev = &pdev };
static u32 registers[BAR / sizeof(u32)];
static u32 *slow;			/* becomes ready_value at ready_at */
static s64 ready_at;
static u32 ready_value;
static int reads, mapped;

ktime_t ktime_get(void) { return now; }
u64 pci_resource_len(struct pci_dev *p, u32 bar) { return BAR; }
bool rashpa_device_reachable(struct rashpa_device *d) { return true; }
int rashpa_check_name(struct rashpa_call *c, const char *name, size_t size) { return 0; }
void pci_iounmap(struct pci_dev *p, void *reg) { mapped--; }
void writel(u32 value, void *at) { *(u32 *)at = value; }

bool rashpa_bar_range_ok(struct rashpa_device *d, u32 bar, u64 offset, u64 length)
{
	return (bar == 0 || bar == 2) && offset <= BAR && length <= BAR - offset;
}

void *pci_iomap_range(struct pci_dev *p, u32 bar, u64 offset, u64 length)
{
	if (mapped == 3)
		return NULL;
	mapped++;
	return (char *)registers + offset;
}

u32 readl(const void *at)
{
	reads++;
	if (at == slow && now >= ready_at)
		return ready_value;
	return *(const u32 *)at;
}

/* --------------------------------------------------------------- steps ---- */

#define WRITE(_at, _value, ...)	{ .op = RASHPA_STEP_WRITE, .offset = (_at), .value = (_value), \
				  .mask = ~0U, __VA_ARGS__ }
#define WAIT(_at, _value, _mask, _us, ...)	{ .op = RASHPA_STEP_WAIT, .offset = (_at),	\
	.value = (_value), .mask = (_mask), .timeout_us = (_us), __VA_ARGS__ }

TEST(steps, "steps of a quiesce sequence are checked")
{
	static const struct {
		struct rashpa_profile_step s;
		int err;
		const char *word;
	} rows[] = {
		{ WRITE(0, 1), 0, "" }, { WAIT(4, 0, 1, 1), 0, "" },
		{ WAIT(4, 0, 1, RASHPA_QUIESCE_US_MAX), 0, "" },
		{ WAIT(4, 0, 1, RASHPA_QUIESCE_US_MAX + 1), -EINVAL, "time limit" },
		{ WAIT(4, 0, 1, 0), -EINVAL, "time limit" }, { WAIT(4, 2, 1, 1), -EINVAL, "mask" },
		{ WAIT(4, 1, 1, 1), 0, "" }, { WAIT(4, 0, 0, 1), 0, "" },
		{ WRITE(0, 1, .timeout_us = 1), -EINVAL, "no time limit" },
		{ WRITE(0, 1, .flags = RASHPA_STEP_RESET), -EINVAL, "flags 0x1" },
		{ WAIT(4, 0, 1, 1, .flags = RASHPA_STEP_RESET), 0, "" },
		{ WAIT(4, 0, 1, 1, .flags = 2), -EINVAL, "flags 0x2" },
		{ WRITE(0, 1, .op = 0), -EINVAL, "operation 0" },
		{ WRITE(0, 1, .op = 3), -EINVAL, "operation 3" },
		{ WRITE(2, 1), -EINVAL, "multiple of 4" }, { WRITE(BAR, 1), -ERANGE, "BAR 0" },
		{ WRITE(BAR - 4, 1), 0, "" }, { WRITE(-4ULL, 1), -ERANGE, "BAR 0" },
		{ WRITE(0, 1, .bar = 1), -ERANGE, "BAR 1" }, { WRITE(0, 1, .bar = 2), 0, "" },
		{ WRITE(0, 1, .bar = ~0U), -ERANGE, "BAR" },
	};
	struct rashpa_profile_step s[3] = { WRITE(0, 1), WRITE(0, 1), WAIT(4, 0, 1, 1) };
	struct rashpa_sequence all = { .step = s, .n = 3 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		s[1] = rows[i].s;
		ANSWERS(rashpa_sequence_check(&call, &dev, "", &all, NULL), rows[i].err, rows[i].word);
		CHECK(!rows[i].err || strstr(call.reason, "step 1"), "row %zu: %s", i, call.reason);
	}
	s[1] = s[0];
	all.n = 2;
	ANSWERS(rashpa_sequence_check(&call, &dev, "engine e", &all, NULL), -EINVAL,
		"engine e, step 1: the last");
	s[1] = s[2];
	s[1].mask = 0;
	ANSWERS(rashpa_sequence_check(&call, &dev, "", &all, NULL), -EINVAL, "step 1: the last");
	all.n = 0;
	ANSWERS(rashpa_sequence_check(&call, &dev, "", &all, NULL), 0, "");
	all = (struct rashpa_sequence) { .step = s + 2, .n = 1 };
	ANSWERS(rashpa_sequence_check(&call, &dev, "", &all, NULL), 0, "");
	/* an engine cannot be reset alone */
	s[2].flags = RASHPA_STEP_RESET;
	ANSWERS(rashpa_sequence_check(&call, &dev, "", &all, NULL), 0, "");
	ANSWERS(rashpa_sequence_check(&call, &dev, "engine e", &all, &dev.profile), -EINVAL, "flags");
}

static int run(const struct rashpa_profile_step *in, u32 n, s64 us)
{
	struct rashpa_sequence s = { .step = malloc(n * sizeof(*in) + 1), .n = n };
	int err;

	memcpy(s.step, in, n * sizeof(*in));
	err = rashpa_sequence_map(&dev, &s) ?: rashpa_sequence_run(&s, ktime_add_us(now, us));
	rashpa_sequence_free(&dev, &s);
	CHECK(!mapped, "registers are mapped still");
	return err;
}

TEST(run, "steps write, wait, and notice an absent function")
{
	static const struct rashpa_profile_step masked[] = { WRITE(0, 0xff, .mask = 0xf0) };
	static const struct rashpa_profile_step whole[] = { WRITE(0, 0xff) };
	static const struct rashpa_profile_step wait[] = { WAIT(4, 0x10, 0xf0, 1000), WRITE(0, 7) };
	static const struct rashpa_profile_step ones[] = { WAIT(4, ~0U, ~0U, 1000) };
	static const struct rashpa_profile_step all[] = { WAIT(4, 0, ~0U, 1000) };
	static const struct rashpa_profile_step low[] = { WAIT(4, 0, 1, 1000) };

	registers[0] = 0x1234;
	CHECK(!run(masked, 1, 0) && registers[0] == 0x12f4, "0x%x", registers[0]);
	reads = 0;
	CHECK(!run(whole, 1, 0) && registers[0] == 0xff && !reads,
	      "a register is read for no reason");
	registers[1] = 0x1f;
	CHECK(!run(wait, 2, 1000) && registers[0] == 7, "0x%x", registers[0]);
	registers[1] = 0x2f;
	registers[0] = 0;
	CHECK(run(wait, 2, 1000) == -ETIMEDOUT && !registers[0], "the step after the time-out was run");
	/* reads of an absent function return all ones, also if a step waits for a set bit */
	registers[1] = ~0U;
	CHECK(run(low, 1, 1000) == -EIO && run(wait, 2, 1000) == -EIO, "a dead function is idle");
	/* at once, unless a step waits for all bits: all ones may mean busy */
	now = 0;
	CHECK(run(low, 1, 1000) == -EIO && !now, "after %lld us", now / NSEC_PER_USEC);
	CHECK(run(all, 1, 1000) == -EIO && now, "busy is taken for dead");
	CHECK(!run(ones, 1, 1000), "all ones are waited for");
	CHECK(!run(ones, 0, 0), "no steps");
}

/* Each step has a limit, and so has the sequence. */
TEST(time, "each step has a time limit, and so has the sequence")
{
	static const struct rashpa_profile_step s[] = { WAIT(4, 0, 1, 1000), WAIT(4, 0, 2, 5000) };
	static const struct { u32 first; s64 at, us; int err; s64 most; } rows[] = {
		{ 3, 900, 9000, 0, 920 }, { 3, 1100, 9000, -ETIMEDOUT, 1020 },
		{ 2, 4000, 9000, 0, 4020 }, { 2, 4000, 3000, -ETIMEDOUT, 3020 },
		{ 0, 4000, 0, 0, 0 }, { 1, 4000, 0, -ETIMEDOUT, 20 },
		{ 1, 4000, -50, -ETIMEDOUT, 20 },
	};
	size_t i;

	slow = &registers[1];
	ready_value = 0;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		int err;

		now = 0;
		registers[1] = rows[i].first;
		ready_at = rows[i].at * NSEC_PER_USEC;
		err = run(s, 2, rows[i].us);
		CHECK(err == rows[i].err && now <= rows[i].most * NSEC_PER_USEC,
		      "row %zu: %d after %lld us",
		      i, err, now / NSEC_PER_USEC);
	}
	slow = NULL;
	dev.profile.quiesce_us = 0;
	mutex_lock(&dev.hw_lock);
	CHECK(rashpa_profile_deadline(&dev) == now + 1000000000, "the default");
	dev.profile.quiesce_us = 7;
	CHECK(rashpa_profile_deadline(&dev) == now + 7000, "the profile's");
	mutex_unlock(&dev.hw_lock);
}

TEST(map_fails, "registers are given back when one cannot be mapped")
{
	static const struct rashpa_profile_step s[5] = { WRITE(0, 1) };

	CHECK(run(s, 5, 0) == -ENOMEM, "a register that is not mapped is used");
}

TEST(answers, "all ones are an answer only if a step waits for them")
{
	static const struct { u32 n, value, is; bool answers; } rows[] = {
		{ 0, 0, 0, true }, { 1, 0, 0, true }, { 1, 0, ~0U, false }, { 1, ~0U, ~0U, true },
		{ 1, 0, 0x7fffffff, true },
	};
	struct rashpa_profile_step step = { };
	void *reg = registers;
	size_t i;

	mutex_lock(&dev.hw_lock);
	dev.profile.quiesce = (struct rashpa_sequence) { .step = &step, .reg = &reg };
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		dev.profile.quiesce.n = rows[i].n;
		step.value = rows[i].value;
		registers[0] = rows[i].is;
		CHECK(rashpa_profile_answers(&dev) == rows[i].answers, "row %zu", i);
	}
	dev.profile.quiesce = (struct rashpa_sequence) { };
	mutex_unlock(&dev.hw_lock);
}

TEST(due, "a step that timed out decides whether a reset is due")
{
	static const struct { u32 at; int err; bool due; } rows[] = {
		{ 0, -ETIMEDOUT, false }, { 1, -ETIMEDOUT, true }, { 1, -EIO, false },
		{ 1, -ENODEV, false },
	};
	struct rashpa_profile_step steps[] = {
		WAIT(0, 0, 1, 1), WAIT(4, 0, 1, 1, .flags = RASHPA_STEP_RESET),
	};
	size_t i;

	mutex_lock(&dev.hw_lock);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		dev.state = RASHPA_STATE_READY;
		dev.profile.quiesce = (struct rashpa_sequence) { .step = steps, .n = 2,
								 .at = rows[i].at };
		CHECK(rashpa_device_set_stuck(&dev, rows[i].err) == RASHPA_DEVICE_EVENT_STUCK &&
		      dev.reset_due == rows[i].due, "row %zu", i);
		/* a second failure changes nothing */
		CHECK(!rashpa_device_set_stuck(&dev, -EIO) && dev.reset_due == rows[i].due,
		      "row %zu, again", i);
	}
	dev.profile.quiesce = (struct rashpa_sequence) { };
	mutex_unlock(&dev.hw_lock);
}

/* ------------------------------------------------------------- windows ---- */

#define WINDOW(_name, _offset, _length, ...)	{ .name = (_name), .offset = (_offset),	\
						  .length = (_length), __VA_ARGS__ }

TEST(windows, "windows are checked")
{
	static const struct {
		struct rashpa_profile_window w;
		int err;
		const char *word;
	} rows[] = {
		{ WINDOW("b", 0, PAGE_SIZE), 0, "" },
		{ WINDOW("a", 0, PAGE_SIZE), -EINVAL, "twice" },
		{ WINDOW("b", 0, BAR), 0, "" },
		{ WINDOW("b", 0, BAR + PAGE_SIZE), -ERANGE, "BAR 0" },
		{ WINDOW("b", 3 * PAGE_SIZE, PAGE_SIZE), 0, "" },
		{ WINDOW("b", 3 * PAGE_SIZE, 2 * PAGE_SIZE), -ERANGE, "BAR 0" },
		{ WINDOW("b", BAR, PAGE_SIZE), -ERANGE, "BAR 0" },
		{ WINDOW("b", -PAGE_SIZE, PAGE_SIZE), -ERANGE, "BAR 0" },
		{ WINDOW("b", PAGE_SIZE, -PAGE_SIZE), -ERANGE, "BAR 0" },
		{ WINDOW("b", 8, PAGE_SIZE), -EINVAL, "pages" },
		{ WINDOW("b", 0, 8), -EINVAL, "pages" },
		{ WINDOW("b", 0, 0), -EINVAL, "pages" },
		{ WINDOW("b", 0, U64_MAX), -EINVAL, "pages" },
		{ WINDOW("b", 0, PAGE_SIZE, .bar = 2), 0, "" },
		{ WINDOW("b", 0, PAGE_SIZE, .bar = 3), -ERANGE, "BAR 3" },
		{ WINDOW("b", 0, PAGE_SIZE, .bar = ~0U), -ERANGE, "BAR" },
		{ WINDOW("b", 0, PAGE_SIZE, .flags = RASHPA_PWINDOW_USER), 0, "" },
		{ WINDOW("b", 0, PAGE_SIZE, .flags = 2), -EINVAL, "flag" },
		{ WINDOW("b", 0, PAGE_SIZE, .__reserved = 1), -EINVAL, "reserved" },
		{ WINDOW("b", 0, PAGE_SIZE, .cache = RASHPA_CACHE_WC), 0, "" },
		{ WINDOW("b", 0, PAGE_SIZE, .cache = RASHPA_CACHE_UC), 0, "" },
		{ WINDOW("b", 0, PAGE_SIZE, .cache = RASHPA_CACHE_UC + 1), -EINVAL, "cache mode" },
		{ WINDOW("b", 0, PAGE_SIZE, .cache = RASHPA_CACHE_CACHED), -EOPNOTSUPP, "cached" },
	};
	struct rashpa_profile_window w[2] = { WINDOW("a", 0, PAGE_SIZE) };
	const struct rashpa_profile profile = { .windows = w, .n_windows = 2 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		w[1] = rows[i].w;
		call.reason[0] = '\0';
		ANSWERS(rashpa_pwindows_check(&call, &dev, &profile), rows[i].err, rows[i].word);
		CHECK(!rows[i].err || strstr(call.reason, "window "), "row %zu: %s", i,
		      call.reason);
	}
}

TEST(cover, "a window that covers a range is found, one for users before others")
{
	static struct rashpa_profile_window w[] = {
		WINDOW("root", 0, 4 * PAGE_SIZE), WINDOW("user", PAGE_SIZE, 2 * PAGE_SIZE,
							 .flags = RASHPA_PWINDOW_USER),
	};
	static const struct { struct rashpa_profile_window range; int is; } rows[] = {
		{ WINDOW("", 0, 4 * PAGE_SIZE), 0 },
		{ WINDOW("", PAGE_SIZE, 4 * PAGE_SIZE), -1 },
		{ WINDOW("", PAGE_SIZE, PAGE_SIZE), 1 },
		{ WINDOW("", PAGE_SIZE, 2 * PAGE_SIZE), 1 },
		{ WINDOW("", PAGE_SIZE, 2 * PAGE_SIZE + 1), 0 },
		{ WINDOW("", PAGE_SIZE - 1, 2), 0 },
		{ WINDOW("", 3 * PAGE_SIZE, 1), 0 },
		{ WINDOW("", 3 * PAGE_SIZE, 0), 1 },
		{ WINDOW("", PAGE_SIZE, PAGE_SIZE, .bar = 2), -1 },
		{ WINDOW("", PAGE_SIZE, U64_MAX), -1 }, { WINDOW("", U64_MAX, 1), -1 },
	};
	size_t i;

	dev.profile.windows = w;
	dev.profile.n_windows = 2;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		CHECK(rashpa_profile_cover(&dev.profile, &rows[i].range) ==
		      (rows[i].is < 0 ? NULL : &w[rows[i].is]), "row %zu", i);
	CHECK(rashpa_profile_find(&dev.profile, "user") == &w[1] &&
	      !rashpa_profile_find(&dev.profile, "use"), "by name");
	dev.profile.n_windows = 0;
}

/* --------------------------------------------------------------- table ---- */

TEST(table, "a table is checked, and overlaps no window for users")
{
	static const struct {
		struct rashpa_profile_table t;
		int err;
		const char *word;
	} rows[] = {
		{ { .offset = 0x1000, .length = 0x1000 }, 0, "" },
		{ { .offset = 0x1004, .length = 0x1000 }, -EINVAL, "window user" },
		{ { .offset = 0x1000, .length = 0x1001 }, -EINVAL, "window user" },
		{ { .offset = 0x3000, .length = 0x1000 }, 0, "" },
		{ { .offset = 0x2ffc, .length = 4 }, -EINVAL, "window user" },
		{ { .offset = 0, .length = BAR }, -EINVAL, "window user" },
		{ { .offset = 0, .length = BAR, .bar = 2 }, 0, "" },
		{ { .offset = 4, .length = BAR, .bar = 2 }, -ERANGE, "outside BAR 2" },
		{ { .offset = -4ULL, .length = 4 }, -ERANGE, "outside" },
		{ { .offset = 0, .length = U64_MAX }, -ERANGE, "outside" },
		{ { .offset = 0, .length = 4, .bar = 1 }, -ERANGE, "BAR 1" },
		{ { .offset = 0, .length = 4, .bar = ~0U }, -ERANGE, "BAR" },
		{ { .offset = 0, .length = 0 }, -EINVAL, "not empty" },
		{ { .offset = 2, .length = 4 }, -EINVAL, "multiple of 4" },
		{ { .offset = 0, .length = 4, .__reserved = 1 }, -EINVAL, "reserved" },
		{ { .offset = 0, .length = 4, .fetch = 8 }, -EINVAL, "descriptor of 0" },
	};
	static const u32 strides[] = { 4096, 0, 2, 33, 4100, ~0U, ~3U };
	struct rashpa_profile_window w[] = {
		WINDOW("root", 0, BAR),
		WINDOW("user", 0x2000, 0x1000, .flags = RASHPA_PWINDOW_USER),
	};
	struct rashpa_profile profile = { .windows = w, .n_windows = 2, .layout = {
		.stride = 8, .address_bits = 32, .length_offset = 4, .length_bits = 32,
	}, .fetch.about.stride = 8 };
	struct rashpa_profile_table t;
	size_t i;

	ANSWERS(rashpa_table_check(&call, &dev, &profile), 0, "");
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		t = rows[i].t;
		profile.table = &t;
		ANSWERS(rashpa_table_check(&call, &dev, &profile), rows[i].err, rows[i].word);
	}
	t = rows[0].t;
	profile.layout.flags = RASHPA_LAYOUT_WRITE_ONLY;
	ANSWERS(rashpa_table_check(&call, &dev, &profile), -EINVAL, "write-only");
	profile.layout.flags = 0;
	for (i = 0; i < ARRAY_SIZE(strides); i++) {
		profile.layout.stride = strides[i];
		ANSWERS(rashpa_table_check(&call, &dev, &profile), i ? -EINVAL : 0,
			i ? "stride of " : "");
	}
}

/* -------------------------------------------------------------- limits ---- */

TEST(limits, "limits of a profile are checked")
{
	static const struct {
		struct rashpa_profile_set p;
		const char *word;	/* NULL: fine */
	} rows[] = {
		{ { .n_windows = 64, .n_steps = 32, .table = 8, .n_engines = 64 }, NULL },
		{ { .n_windows = 65 }, "65 windows" }, { { .n_windows = ~0U }, "windows" },
		{ { .n_steps = 33 }, "33 steps" }, { { .n_steps = ~0U }, "steps" }, { { .table_size = 48 }, "a table" },
		{ { .n_engines = 65, .table = 8, .n_steps = 1 }, "65 engines" },
		{ { .n_engines = 1, .n_steps = 1 }, "a table" },
		{ { .n_engines = 1, .table = 8 }, "quiesce" },
		{ { .dma_bits = 24 }, NULL }, { { .dma_bits = 23 }, "23 bits" },
		{ { .dma_bits = 64 }, NULL },
		{ { .dma_bits = 65 }, "65 bits" }, { { .dma_bits = ~0U }, "bits" },
		{ { .max_segment = U64_MAX }, "max_segment" }, { { .alignment = U64_MAX }, "alignment" },
		{ { .max_segment = 1 }, "max_segment" }, { { .quiesce_us = 10000000 }, NULL },
		{ { .quiesce_us = 10000001 }, "10000001" }, { { .max_segment = 4096 }, NULL },
		{ { .max_segment = 4095 }, "max_segment" }, { { .boundary = 4096 }, NULL },
		{ { .boundary = 2048 }, "boundary" }, { { .boundary = 12288 }, "boundary" },
		{ { .boundary = 1ULL << 63 }, NULL }, { { .alignment = 1 }, NULL },
		{ { .alignment = 1ULL << 63 }, NULL }, { { .alignment = 3 }, "alignment" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		ANSWERS(rashpa_profile_limits(&call, &rows[i].p), rows[i].word ? -EINVAL : 0,
			rows[i].word ?: "");
}
