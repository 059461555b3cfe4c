// SPDX-License-Identifier: LGPL-2.1-or-later
/* Streams as text: a line for each operation, numbers as in C, "#" begins a comment. */
#include "differ.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REG(name)	{ #name, RFPGA_DTP_##name, false }
#define PAIR(name)	{ #name, RFPGA_DTP_##name, true }
#define SPACE		" \t\r\n"

/* in the order of their numbers */
const struct reg regs[REGS] = {
	REG(MODE), REG(VECTOR), REG(PIXEL_BYTES), REG(BUNCH), REG(SLOTS), PAIR(SRC_BASE),
	REG(SRC_IMAGES), REG(SRC_X), REG(SRC_Y), REG(WIDTH), REG(HEIGHT), REG(DST_X), REG(DST_Y),
	PAIR(SRC_LINE), PAIR(SRC_IMAGE), PAIR(DST_BASE), PAIR(DST_LINE), PAIR(DST_IMAGE),
	PAIR(DST_SLOT), REG(DST_FIRST), REG(DST_COUNT), PAIR(LOCK_OFFSET), REG(LOCK_FIRST),
	REG(LOCK_COUNT), PAIR(IMAGES), PAIR(PERIOD), PAIR(FIRST_STACK), REG(FIRST_SLOT),
	REG(FIRST_INDEX), REG(INDEX_STEP), REG(RUN), PAIR(META_OFFSET), REG(META_FIRST),
	REG(META_COUNT), PAIR(FIRST_FRAME), REG(SOURCE), REG(SAMPLING),
};

static const struct { const char *name; unsigned int args; } kinds[KINDS] = {
	[ENTRY] = { "entry", 5 }, [BOUNDS] = { "bounds", 3 }, [SET] = { "set", 3 },
	[START] = { "start", 1 }, [GROUP] = { "group", 1 }, [STOP] = { "stop", 1 },
	[CREDIT] = { "credit", 2 }, [TAGGED] = { "tagged", 3 }, [MASTER] = { "master", 1 },
	[MAP] = { "map", 3 }, [UNMAP] = { "unmap", 2 }, [RESET] = { "reset", 1 },
	[CLEAR] = { "clear", 0 }, [SCRATCH] = { "scratch", 1 }, [COMPARE] = { "compare", 0 },
};

void stream_add(struct stream *s, enum kind kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		uint64_t e)
{
	if (s->count == OPS_MAX)
		die("more than %u operations in a stream", OPS_MAX);
	s->op[s->count++] = (struct op){ kind, { a, b, c, d, e } };
}

static void print_op(FILE *file, const struct op *op)
{
	unsigned int i;

	fprintf(file, "%s", kinds[op->kind].name);
	for (i = 0; i < kinds[op->kind].args; i++) {
		if (op->kind == SET && i == 1)
			fprintf(file, " %s", regs[op->arg[1]].name);
		else
			fprintf(file, op->arg[i] < 10 ? " %" PRIu64 : " %#" PRIx64, op->arg[i]);
	}
	fprintf(file, "\n");
}

bool stream_save(const struct stream *s, const char *path, const char *comment)
{
	FILE *file = fopen(path, "we");
	unsigned int i;

	if (!file)
		return false;
	fprintf(file, "# %s\n", comment);
	for (i = 0; i < s->count; i++)
		print_op(file, &s->op[i]);
	return !fclose(file);
}

static bool parse_arg(const struct op *op, unsigned int i, const char *word, uint64_t *arg)
{
	char *end;

	if (!word)
		return false;
	if (op->kind == SET && i == 1) {
		for (*arg = 0; *arg < REGS; ++*arg)
			if (!strcmp(regs[*arg].name, word))
				return true;
		return false;
	}
	errno = 0;
	*arg = strtoull(word, &end, 0);
	return *word >= '0' && *word <= '9' && !*end && !errno;
}

/* Do all arguments stay within the limits? */
static bool in_range(const struct op *op)
{
	const uint64_t *a = op->arg;

	switch (op->kind) {
	case ENTRY:
		return a[0] < DTPS * BOUND_ENTRIES;
	case BOUNDS:
	case SET:
	case START:
	case CREDIT:
	case TAGGED:
		return a[0] < DTPS;
	case STOP:
		return a[0] <= DTPS;
	case MAP:
	case UNMAP:
		return a[0] < HOST_SIZE && a[1] && a[1] <= HOST_SIZE - a[0];
	default:
		return true;
	}
}

static bool parse_op(char *line, struct op *op)
{
	char *rest, *word = strtok_r(line, SPACE, &rest);
	unsigned int i;

	for (op->kind = 0; op->kind < KINDS && strcmp(kinds[op->kind].name, word); op->kind++)
		;
	if (op->kind == KINDS)
		return false;
	for (i = 0; i < kinds[op->kind].args; i++)
		if (!parse_arg(op, i, strtok_r(NULL, SPACE, &rest), &op->arg[i]))
			return false;
	return !strtok_r(NULL, SPACE, &rest) && in_range(op);
}

void stream_load(struct stream *s, const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned int number = 0;
	char line[256];

	if (!file)
		die("%s: %s", path, strerror(errno));
	s->count = 0;
	while (fgets(line, sizeof(line), file)) {
		struct op op = { 0 };

		number++;
		line[strcspn(line, "#")] = '\0';
		if (!line[strspn(line, SPACE)])
			continue;
		if (!parse_op(line, &op))
			die("%s:%u: not an operation, or out of range", path, number);
		stream_add(s, op.kind, op.arg[0], op.arg[1], op.arg[2], op.arg[3], op.arg[4]);
	}
	fclose(file);
}
