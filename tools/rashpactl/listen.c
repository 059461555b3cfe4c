// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rashpactl/memory.h"
#include "common/options.h"
#include "common/parse.h"
#include "rashpactl/profile-file.h"
#include "common/say.h"

enum {
	OPT_OF = 512, OPT_SLOTS, OPT_FIRST, OPT_FULL, OPT_DEVICE, OPT_MAP, OPT_ONE_SHOT,
};

enum lock_key {
	KEY_CHANGED, KEY_EQUAL, KEY_REACHED, KEY_STEP, KEY_MASK, KEY_BITS, KEY_VECTOR, KEY_POLL,
	KEY_BUDGET, KEY_LOOK,
};

static const struct argp_option options[] = {
	{ "vector", 'v', "V", 0,
	  "add an interrupt vector (default: all vectors, and the device)", 0 },
	{ "device", OPT_DEVICE, NULL, 0, "state changes of the device", 0 },
	{ "map", OPT_MAP, "ID", OPTION_ARG_OPTIONAL, "state changes of a map, or of all maps", 0 },
	{ "lock", 'l', "BUFFER:OFFSET[,KEY=VALUE]...", 0,
	  "watch a word of a buffer: changed (default), equal=V, reached=V; step=S, mask=M, bits=32|64; "
	  "checked at each interrupt of vector=V (default: 0), or every poll=MICROSECONDS, with budget=N "
	  "thousandths of a CPU, or on request of its producer: look (default for memory)", 0 },
	{ "group", 'g', "N,N...", 0,
	  "one event when all members have reached a position; members are sources, by number in order of "
	  "the command line, from 1", 0 },
	{ "slots", OPT_SLOTS, "N", 0,
	  "number of stacks that fit; a member further ahead has lapped us", 0 },
	{ "first", OPT_FIRST, "N", 0,
	  "position at which a group begins (default: the present positions of its words)", 0 },
	{ "full", OPT_FULL, "N", 0,
	  "report members that are N positions ahead of the acknowledged one", 0 },
	{ "quiet", 'q', NULL, 0, "use the sources that follow for groups only", 0 },
	{ "one-shot", OPT_ONE_SHOT, NULL, 0,
	  "the vectors and locks that follow rest after each event until it is printed", 0 },
	{ "of", OPT_OF, "fpgaM", 0, "the sources that follow belong to this function", 0 },
	{}
};

/* --- words --- */

static uint64_t number(struct argp_state *state, const char *what, const char *text, uint64_t max)
{
	uint64_t value = 0;

	if (!text || !parse_u64(text, max, &value))
		argp_error(state, "%s: \"%s\" is not a number up to %" PRIu64, what, text ? text : "",
			   max);
	return value;
}

static void *more(void *array, size_t n, size_t size)
{
	array = reallocarray(array, n, size);
	if (!array) {
		say("no memory for %zu sources: name fewer", n);
		exit(EXIT_FAILED);
	}
	return array;
}

static struct source *add(struct argp_state *state, struct listen *l, uint32_t kind)
{
	struct source *s;

	if (l->sources == RASHPA_SOURCES_MAX)
		argp_error(state, "there are more than %d sources: divide them between commands",
			   RASHPA_SOURCES_MAX);
	l->source = more(l->source, l->sources + 1, sizeof(*l->source));
	s = &l->source[l->sources++];
	*s = (struct source) { .add = { .kind = kind, .device = -1, .memory = -1 },
			       .fpga = l->of < 0 ? UINT32_MAX : (unsigned int)l->of };
	if (l->quiet)
		s->add.head.flags |= RASHPA_SOURCE_QUIET;
	if (l->one_shot && (kind == RASHPA_SOURCE_VECTOR || kind == RASHPA_SOURCE_LOCK))
		s->add.head.flags |= RASHPA_SOURCE_ONE_SHOT;
	return s;
}

static void condition(struct argp_state *state, struct rashpa_source_add *a, uint32_t which,
		      const char *value)
{
	a->condition = which;
	if (which != RASHPA_CONDITION_CHANGED)
		a->value = number(state, "--lock", value, UINT64_MAX);
}

static void lock_key(struct argp_state *state, struct rashpa_source_add *a, enum lock_key key,
		     const char *value)
{
	switch (key) {
	case KEY_CHANGED:
		condition(state, a, RASHPA_CONDITION_CHANGED, value);
		break;
	case KEY_EQUAL:
		condition(state, a, RASHPA_CONDITION_EQUAL, value);
		break;
	case KEY_REACHED:
		condition(state, a, RASHPA_CONDITION_REACHED, value);
		break;
	case KEY_STEP:
		a->step = number(state, "--lock: step", value, UINT64_MAX);
		break;
	case KEY_MASK:
		a->mask = number(state, "--lock: mask", value, UINT64_MAX);
		break;
	case KEY_BITS:
		a->bits = number(state, "--lock: bits", value, 64);
		break;
	case KEY_VECTOR:
		a->index = number(state, "--lock: vector", value, UINT32_MAX);
		break;
	case KEY_POLL:
		a->period_us = number(state, "--lock: poll", value, RASHPA_PERIOD_MAX);
		a->head.flags |= RASHPA_SOURCE_POLL;
		break;
	case KEY_BUDGET:
		a->budget = number(state, "--lock: budget", value, 1000);
		break;
	case KEY_LOOK:
		a->head.flags |= RASHPA_SOURCE_LOOK;
		break;
	}
}

static void parse_lock(struct argp_state *state, struct listen *l, char *arg)
{
	static char *const keys[] = {
		[KEY_CHANGED] = "changed", [KEY_EQUAL] = "equal", [KEY_REACHED] = "reached",
		[KEY_STEP] = "step", [KEY_MASK] = "mask", [KEY_BITS] = "bits",
		[KEY_VECTOR] = "vector", [KEY_POLL] = "poll", [KEY_BUDGET] = "budget",
		[KEY_LOOK] = "look", NULL,
	};
	struct source *s = add(state, l, RASHPA_SOURCE_LOCK);
	char *rest = strchr(arg, ','), *offset = strchr(arg, ':'), *value;
	int key;

	if (rest)
		*rest++ = '\0';
	if (!offset || offset == arg)
		argp_error(state, "--lock: \"%s\" is not BUFFER:OFFSET", arg);
	*offset++ = '\0';
	s->memory = arg;
	s->add.bits = 64;
	s->add.condition = RASHPA_CONDITION_CHANGED;
	s->add.offset = number(state, "--lock: offset", offset, UINT64_MAX);
	while (rest && *rest) {
		key = getsubopt(&rest, keys, &value);
		if (key < 0)
			argp_error(state, "--lock: \"%s\" is not a key: use changed, equal, reached, step, mask, bits, vector, poll, budget, look",
				   value);
		lock_key(state, &s->add, key, value);
	}
}

static void parse_group(struct argp_state *state, struct listen *l, char *arg)
{
	struct source *s = add(state, l, RASHPA_SOURCE_GROUP);
	char *word;

	while ((word = strsep(&arg, ","))) {
		if (s->members == RASHPA_MEMBERS_MAX)
			argp_error(state, "--group: there are more than %d members",
				   RASHPA_MEMBERS_MAX);
		s->member = more(s->member, s->members + 1, sizeof(*s->member));
		s->member[s->members++] = number(state, "--group", word, RASHPA_SOURCES_MAX);
	}
}

/* A group may name later sources, so check its members at the end. */
static void check_groups(struct argp_state *state, const struct listen *l)
{
	for (unsigned int i = 0; i < l->sources; i++) {
		const struct source *s = &l->source[i];

		for (unsigned int j = 0; j < s->members; j++) {
			uint32_t n = s->member[j];

			if (!n || n > l->sources || l->source[n - 1].members)
				argp_error(state, "--group: %" PRIu32 " is not the place of a source: there are %u",
					   n, l->sources);
		}
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct listen *l = state->input;
	unsigned int of;

	switch (key) {
	case 'v':
		add(state, l, RASHPA_SOURCE_VECTOR)->add.index = number(state, "--vector", arg,
									UINT32_MAX);
		break;
	case OPT_DEVICE:
		add(state, l, RASHPA_SOURCE_DEVICE);
		break;
	case OPT_MAP:
		add(state, l, RASHPA_SOURCE_MAP)->add.index =
			arg ? number(state, "--map", arg, UINT32_MAX) : 0;
		break;
	case 'l':
		parse_lock(state, l, arg);
		break;
	case 'g':
		parse_group(state, l, arg);
		break;
	case OPT_SLOTS:
		l->slots = number(state, "--slots", arg, UINT64_MAX);
		break;
	case OPT_FIRST:
		l->first = number(state, "--first", arg, UINT64_MAX);
		l->has_first = true;
		break;
	case OPT_FULL:
		l->full = number(state, "--full", arg, UINT64_MAX);
		break;
	case OPT_ONE_SHOT:
		l->one_shot = true;
		break;
	case 'q':
		l->quiet = true;
		break;
	case OPT_OF:
		option_fpga(state, "--of", arg, &of);
		l->of = of;
		break;
	case ARGP_KEY_ARG:
		l->memory = !strcmp(arg, "memory");
		if (state->arg_num || (!l->memory && !parse_fpga(arg, &l->number)))
			argp_error(state, "\"%s\" is not fpgaN, or memory", arg);
		snprintf(l->name, sizeof(l->name), l->memory ? "memory" : "fpga%u", l->number);
		break;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "give fpgaN, or memory");
		break;
	case ARGP_KEY_END:
		if (l->memory && !l->sources)
			argp_error(state, "give sources: memory has no vectors");
		check_groups(state, l);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

const struct argp listen_argp = { .options = options, .parser = parse };

/* --- labels --- */

static void label_lock(struct source *s)
{
	const struct rashpa_source_add *a = &s->add;
	int n = snprintf(s->label, sizeof(s->label), "lock %.40s:%" PRIu64 " %s", s->memory,
			 (uint64_t)a->offset, rashpa_condition_name(a->condition));

	if (a->condition != RASHPA_CONDITION_CHANGED && n < LABEL_SIZE)
		snprintf(s->label + n, sizeof(s->label) - n, " %" PRIu64, (uint64_t)a->value);
}

static void label_group(struct source *s)
{
	int n = snprintf(s->label, sizeof(s->label), "group");

	for (unsigned int i = 0; i < s->members && n < LABEL_SIZE; i++)
		n += snprintf(s->label + n, sizeof(s->label) - n, "%c%" PRIu32, i ? ',' : ' ',
			      s->member[i]);
}

/* Names of vectors come from the installed profile of the function. */
static void label_vector(struct source *s, const struct fpga *fpga)
{
	static struct profile profile;
	static uint32_t known;		/* vendor << 16 | device */
	static bool have;
	uint32_t ids = fpga->info.out_vendor << 16 | fpga->info.out_device;
	char why[WHY_SIZE];

	if (ids != known)
		have = profile_find(&profile, fpga->info.out_vendor, fpga->info.out_device,
				    why) == 1;
	known = ids;
	snprintf(s->label, sizeof(s->label), "vector %" PRIu32, (uint32_t)s->add.index);
	if (have && s->add.index < profile.n_vectors)
		snprintf(s->label, sizeof(s->label), "vector %" PRIu32 " (%s)",
			 (uint32_t)s->add.index, profile.vector[s->add.index]);
}

/* Prefix the label with the function, if it is not the channel's. */
static void label_function(struct source *s, unsigned int number)
{
	char text[LABEL_SIZE];

	memcpy(text, s->label, sizeof(text));
	snprintf(s->label, sizeof(s->label), "fpga%u %.80s", number, text);
}

static void label(struct source *s, const struct fpga *fpga)
{
	switch (s->add.kind) {
	case RASHPA_SOURCE_VECTOR:
		label_vector(s, fpga);
		break;
	case RASHPA_SOURCE_LOCK:
		label_lock(s);
		break;
	case RASHPA_SOURCE_GROUP:
		label_group(s);
		break;
	default:
		snprintf(s->label, sizeof(s->label), "%s", rashpa_source_name(s->add.kind));
	}
}

/* --- the channel --- */

/* The function of a source; opened once. NULL after a message. */
static struct fpga *function_of(struct listen *l, unsigned int number)
{
	char why[WHY_SIZE];

	if (number == UINT32_MAX || (number == l->number && !l->memory))
		return &l->fpga;
	for (unsigned int i = 0; i < l->others; i++) {
		if (l->other[i].number == number)
			return &l->other[i];
	}
	if (l->others == LISTEN_FPGAS) {
		fail("--of: more than %d functions", LISTEN_FPGAS);
		return NULL;
	}
	if (fpga_open(&l->other[l->others], number, why)) {
		fail("%s", why);
		return NULL;
	}
	return &l->other[l->others++];
}

/* The word of a LOCK source; 0 if it cannot be read: then the driver reports the error. */
static uint64_t peek(const struct rashpa_source_add *a)
{
	uint64_t page = sysconf(_SC_PAGESIZE), in_page = a->offset % page, word = 0;
	const volatile char *p = mmap(NULL, page, PROT_READ, MAP_SHARED, a->memory,
				      a->offset - in_page);

	if (p == MAP_FAILED)
		return 0;
	if (a->bits == 32 && !(in_page % 4))
		word = *(const volatile uint32_t *)(p + in_page);
	else if (a->bits == 64 && !(in_page % 8))
		word = *(const volatile uint64_t *)(p + in_page);
	munmap((void *)(uintptr_t)p, page);
	return a->mask ? word & a->mask : word;
}

/* A listener that joins in the middle of a stream missed the earlier events. */
static uint64_t group_begin(const struct listen *l, const struct source *group)
{
	uint64_t least = UINT64_MAX;

	for (unsigned int i = 0; i < group->members; i++) {
		const struct source *s = &l->source[group->member[i] - 1];

		least = s->word < least ? s->word : least;
	}
	return l->has_first ? l->first : least;
}

static int add_group(struct listen *l, struct source *s)
{
	struct rashpa_member member[RASHPA_MEMBERS_MAX] = {};
	struct rashpa_group_make group = {
		.members = (uintptr_t)member, .n_members = s->members,
		.member_size = sizeof(member[0]), .slots = l->slots, .full = l->full,
		.first = group_begin(l, s),
	};
	int id;

	s->word = group.first;
	for (unsigned int i = 0; i < s->members; i++)
		member[i].source = l->source[s->member[i] - 1].id;
	id = rashpa_channel_group(l->channel, &group);
	if (id < 0)
		return fail("%s: %s: %s", l->name, s->label, rashpa_reason());
	s->id = id;
	return 0;
}

static int add_source(struct listen *l, struct source *s)
{
	struct memory memory = MEMORY_NONE;
	struct fpga *fpga = function_of(l, s->fpga);
	char why[WHY_SIZE];
	int id;

	if (!fpga)
		return EXIT_FAILED;
	label(s, fpga);
	if (s->add.kind == RASHPA_SOURCE_GROUP)
		return add_group(l, s);
	if (fpga != &l->fpga) {
		label_function(s, fpga->number);
		s->add.device = fpga->device;
	}
	if (s->memory) {
		if (memory_open(&memory, s->memory, O_RDONLY, why))
			return fail("%s", why);
		s->add.memory = memory.fd;
		s->word = s->add.bits == 32 || s->add.bits == 64 ? peek(&s->add) : 0;
	}
	if (fpga == &l->fpga && l->memory && s->add.kind == RASHPA_SOURCE_LOCK &&
	    !(s->add.head.flags & RASHPA_SOURCE_POLL))
		s->add.head.flags |= RASHPA_SOURCE_LOOK;
	id = rashpa_channel_listen(l->channel, &s->add);
	memory_close(&memory);
	if (id < 0)
		return fail("%s: %s: %s", l->name, s->label, rashpa_reason());
	s->id = id;
	return 0;
}

static void add_all(struct listen *l)
{
	unsigned int n = l->fpga.info.out_vectors;

	l->source = more(NULL, n + 1, sizeof(*l->source));
	l->source[l->sources++] = (struct source) {
		.add = { .kind = RASHPA_SOURCE_DEVICE, .device = -1, .memory = -1 },
		.fpga = UINT32_MAX,
	};
	for (unsigned int i = 0; i < n; i++)
		l->source[l->sources++] = (struct source) {
			.add = {
				.kind = RASHPA_SOURCE_VECTOR, .index = i, .device = -1, .memory = -1,
			},
			.fpga = UINT32_MAX,
		};
}

/* Add groups after their members. */
static int add_sources(struct listen *l)
{
	int result = 0;

	for (int groups = 0; groups < 2; groups++) {
		for (unsigned int i = 0; !result && i < l->sources; i++) {
			if (groups == (l->source[i].add.kind == RASHPA_SOURCE_GROUP))
				result = add_source(l, &l->source[i]);
		}
	}
	return result;
}

static int make_channel(struct listen *l)
{
	struct rashpa_channel_make make = { .sources = l->sources };
	int node = l->memory ? rashpa_memory_open() : l->fpga.device;

	l->channel = node < 0 ? node : rashpa_channel_create(node, &make);
	if (l->memory && node >= 0)
		close(node);
	return l->channel;
}

int listen_open(struct listen *listen)
{
	char why[WHY_SIZE];
	int result;

	if (!listen->memory && fpga_open(&listen->fpga, listen->number, why))
		return fail("%s", why);
	if (!listen->sources)
		add_all(listen);
	if (make_channel(listen) < 0)
		result = fail("%s: %s", listen->name, rashpa_reason());
	else if (fcntl(listen->channel, F_SETFL, O_NONBLOCK))
		result = fail("%s: event channel: %s", listen->name, strerror(errno));
	else
		result = add_sources(listen);
	if (result)
		listen_close(listen);
	return result;
}

void listen_close(struct listen *listen)
{
	if (listen->channel >= 0)
		close(listen->channel);
	listen->channel = -1;
	while (listen->others)
		fpga_close(&listen->other[--listen->others]);
	fpga_close(&listen->fpga);
	while (listen->sources)
		free(listen->source[--listen->sources].member);
	free(listen->source);
	listen->source = NULL;
}

const struct source *listen_source(const struct listen *listen, uint32_t id)
{
	for (unsigned int i = 0; i < listen->sources; i++) {
		if (listen->source[i].id == id)
			return &listen->source[i];
	}
	return NULL;
}
