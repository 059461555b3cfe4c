/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One stream of operations, played into two device programs: software must see the same state of
 * both. Properties that the interface leaves open are not compared, and streams contain nothing
 * that depends on the faster side.
 */
#ifndef DIFFER_H
#define DIFFER_H

#include "conformance/client.h"

#define DTPS		4u
#define BOUND_ENTRIES	16u		/* entries of each DTP */
#define HOST_ADDR	0x100000000ull
#define AREA		(1u << 20)	/* bytes of each DTP in host memory */
#define RECORDS		(AREA - (64u << 10))	/* offset of records, after payload */
#define HOST_SIZE	(DTPS * AREA)
#define OPS_MAX		1024u

/* Writable registers of a DTP, numbered by their line in the table of stream.c. */
enum {
	R_MODE, R_VECTOR, R_PIXEL_BYTES, R_BUNCH, R_SLOTS, R_SRC_BASE, R_SRC_IMAGES, R_SRC_X,
	R_SRC_Y, R_WIDTH, R_HEIGHT, R_DST_X, R_DST_Y, R_SRC_LINE, R_SRC_IMAGE, R_DST_BASE,
	R_DST_LINE, R_DST_IMAGE, R_DST_SLOT, R_DST_FIRST, R_DST_COUNT, R_LOCK_OFFSET,
	R_LOCK_FIRST, R_LOCK_COUNT, R_IMAGES, R_PERIOD, R_FIRST_STACK, R_FIRST_SLOT,
	R_FIRST_INDEX, R_INDEX_STEP, R_RUN, R_META_OFFSET, R_META_FIRST, R_META_COUNT,
	R_FIRST_FRAME, R_SOURCE, R_SAMPLING, REGS
};

struct reg {
	const char *name;
	uint32_t offset;
	bool pair;
};

extern const struct reg regs[REGS];

enum kind {
	ENTRY,		/* number, address, length, sum, control */
	BOUNDS,		/* DTP, first, limit */
	SET,		/* DTP, register, value */
	START,		/* DTP */
	GROUP,		/* mask */
	STOP,		/* DTP; DTPS: all */
	CREDIT,		/* DTP, value */
	TAGGED,		/* DTP, value, run */
	MASTER,		/* on */
	MAP,		/* offset in host memory, size, flags */
	UNMAP,		/* offset, size */
	RESET,		/* 0: message, 1: FLR, 2: register */
	CLEAR,
	SCRATCH,	/* value */
	COMPARE,
	KINDS
};

struct op {
	enum kind kind;
	uint64_t arg[5];
};

struct stream {
	unsigned int count;
	struct op op[OPS_MAX];
};

/* stream.c */
void stream_add(struct stream *s, enum kind kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		uint64_t e);
bool stream_save(const struct stream *s, const char *path, const char *comment);
void stream_load(struct stream *s, const char *path);	/* ends the program on errors */

/* generate.c */
void generate(struct stream *s, uint64_t seed);

/* play.c: two programs */
struct side {
	const char *name;
	struct client client;
	uint8_t *host;
	int host_fd;
	uint32_t credit[DTPS];		/* last credit that a waiting DTP has read */
};

#define WHY_SIZE	160

extern struct side side[2];
extern bool groups;		/* both sides have groups; else members are started one by one */

/* False: they differ, and @why names the difference. */
bool play(const struct stream *s, char why[WHY_SIZE]);

#endif /* DIFFER_H */
