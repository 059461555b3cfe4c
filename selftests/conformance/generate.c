// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams from a seed. A DTP has at most one error at a time: of two errors, boards may find
 * either one first.
 */
#include "differ.h"

#define PAGE		4096u
#define SEGMENTS	10u		/* maximum segments of a destination */
#define LOCK_ENTRY	14u		/* entry of a DTP for the lock record, */
#define META_ENTRY	15u		/* and for metadata */

struct plan {
	struct stream *s;
	uint64_t random;
	bool master;
	bool group;			/* all configured DTPs start together, */
	uint32_t msix, vector;		/* with the same interrupt for any last member */
	uint64_t length[DTPS];		/* length of the destination's linear space */
	uint32_t segments[DTPS];
	uint64_t segment[DTPS][SEGMENTS];	/* first byte of each in host memory */
	uint64_t sum[DTPS][SEGMENTS];		/* and in the linear space */
	uint32_t run[DTPS];
	uint64_t first_stack[DTPS];
};

static uint64_t draw(struct plan *p, uint64_t limit)
{
	/* splitmix64 */
	uint64_t x = p->random += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (x ^ x >> 31) % limit;
}

static bool chance(struct plan *p, unsigned int percent)
{
	return draw(p, 100) < percent;
}

static void set(struct plan *p, unsigned int n, unsigned int reg, uint64_t value)
{
	stream_add(p->s, SET, n, reg, value, 0, 0);
}

static uint64_t area(unsigned int n)
{
	return HOST_ADDR + (uint64_t)n * AREA;
}

/* Segments in another order than that of their addresses, with gaps between. */
static void write_map(struct plan *p, unsigned int n)
{
	uint32_t count = 1 + (uint32_t)draw(p, SEGMENTS), i, at;
	uint64_t sum = 0, length, room = RECORDS / SEGMENTS & ~(PAGE - 1ull);

	at = (uint32_t)draw(p, count);
	for (i = 0; i < count; i++, at = (at + 3) % SEGMENTS) {
		length = (1 + draw(p, 12)) * PAGE;
		p->sum[n][i] = sum;
		p->segment[n][i] = n * (uint64_t)AREA + at * room;
		stream_add(p->s, ENTRY, n * BOUND_ENTRIES + i, HOST_ADDR + p->segment[n][i], length,
			   sum, 1);
		sum += length;
	}
	stream_add(p->s, ENTRY, n * BOUND_ENTRIES + LOCK_ENTRY, area(n) + RECORDS, PAGE, 0, 1);
	stream_add(p->s, ENTRY, n * BOUND_ENTRIES + META_ENTRY, area(n) + RECORDS + PAGE, 8 * PAGE,
		   0, 1);
	p->length[n] = sum;
	p->segments[n] = count;
}

static uint32_t random_mode(struct plan *p)
{
	uint32_t mode = (uint32_t)draw(p, 64) & (RFPGA_MODE_MSIX | RFPGA_MODE_LOCK |
						 RFPGA_MODE_FLUSH | RFPGA_MODE_META);

	if (chance(p, 30))
		mode |= RFPGA_MODE_FREERUN | (chance(p, p->group ? 4 : 40) ? RFPGA_MODE_DROP : 0);
	return p->group ? (mode & ~RFPGA_MODE_MSIX) | p->msix : mode;
}

/* All in range. False: it does not fit into the destination, which is an error already. */
static bool configure(struct plan *p, unsigned int n)
{
	const uint32_t pixel = 1u << draw(p, 4), width = 1 + (uint32_t)draw(p, 60);
	const uint32_t height = 1 + (uint32_t)draw(p, 12), bunch = 1 + (uint32_t)draw(p, 4);
	const uint32_t slots = 1 + (uint32_t)draw(p, 4), set_size = 1 + (uint32_t)draw(p, 20);
	const uint32_t dst_x = (uint32_t)draw(p, 5), dst_y = (uint32_t)draw(p, 3);
	const uint32_t mode = random_mode(p);
	const uint64_t line = (dst_x + width) * pixel + (chance(p, 50) ? draw(p, 200) : 0);
	const uint64_t image = (dst_y + height) * line + (chance(p, 50) ? draw(p, 3000) : 0);
	const uint64_t first = chance(p, 30) ? 0xfffffffeull + draw(p, 4) : draw(p, 9);
	const uint64_t values[REGS] = {
		[R_MODE] = mode, [R_PIXEL_BYTES] = pixel,
		[R_VECTOR] = p->group ? p->vector : draw(p, CLIENT_VECTORS),
		[R_BUNCH] = bunch, [R_SLOTS] = slots, [R_SRC_BASE] = draw(p, 1 << 16),
		[R_SRC_IMAGES] = set_size, [R_SRC_X] = draw(p, 9), [R_SRC_Y] = draw(p, 9),
		[R_WIDTH] = width, [R_HEIGHT] = height, [R_DST_X] = dst_x, [R_DST_Y] = dst_y,
		[R_SRC_LINE] = chance(p, 30) ? width * pixel : draw(p, 1000),
		[R_SRC_IMAGE] = draw(p, 1 << 16),
		[R_DST_BASE] = chance(p, 50) ? 0 : draw(p, p->length[n] / 4),
		[R_DST_LINE] = line, [R_DST_IMAGE] = image,
		[R_DST_SLOT] = bunch * image + (chance(p, 50) ? draw(p, 5000) : 0),
		[R_DST_FIRST] = n * BOUND_ENTRIES, [R_DST_COUNT] = p->segments[n],
		[R_LOCK_OFFSET] = draw(p, 64) * RFPGA_LOCK_SIZE,
		[R_LOCK_FIRST] = n * BOUND_ENTRIES + LOCK_ENTRY, [R_LOCK_COUNT] = 1,
		[R_IMAGES] = mode & RFPGA_MODE_FREERUN || chance(p, 60) ? 1 + draw(p, 24) : 0,
		[R_PERIOD] = mode & RFPGA_MODE_DROP || chance(p, 30) ? 1 + draw(p, 2000) : 0,
		[R_FIRST_STACK] = first, [R_FIRST_SLOT] = draw(p, slots),
		[R_FIRST_INDEX] = draw(p, set_size), [R_INDEX_STEP] = draw(p, set_size),
		[R_RUN] = chance(p, 60) ? ++p->run[n] : 0,
		[R_META_OFFSET] = draw(p, 16) * RFPGA_META_SIZE,
		[R_META_FIRST] = n * BOUND_ENTRIES + META_ENTRY, [R_META_COUNT] = 1,
		[R_FIRST_FRAME] = draw(p, 1 << 20),
	};
	unsigned int i;

	for (i = 0; i < REGS; i++)
		set(p, n, i, values[i]);
	p->first_stack[n] = first;
	if (!values[R_RUN])
		p->run[n] = 0;
	return values[R_DST_BASE] + slots * values[R_DST_SLOT] + line <= p->length[n];
}

/*
 * Neither places of records, as their ticks would be compared, nor registers that a group must
 * have in common.
 */
static unsigned int any_reg(struct plan *p)
{
	unsigned int reg;

	do {
		reg = (unsigned int)draw(p, REGS);
	} while (reg == R_LOCK_FIRST || reg == R_META_FIRST ||
		 (p->group && (reg == R_MODE || reg == R_VECTOR)));
	return reg;
}

/* Make one value of a DTP invalid, or out of range. */
static void spoil(struct plan *p, unsigned int n)
{
	const unsigned int base = n * BOUND_ENTRIES, some = (unsigned int)draw(p, p->segments[n]);

	switch (draw(p, 8)) {
	case 0:
		set(p, n, any_reg(p), UINT32_MAX);
		break;
	case 1:
		set(p, n, any_reg(p), 0);
		break;
	case 2:
		/* if sums do not ascend, the board may find any entry */
		stream_add(p->s, ENTRY, base + some, area(n), PAGE, p->sum[n][some], 0);
		break;
	case 3:
		set(p, n, R_DST_COUNT, some + 1);
		break;
	case 4:
		stream_add(p->s, BOUNDS, n, base + draw(p, 3), base + draw(p, BOUND_ENTRIES), 0, 0);
		break;
	case 5:
		stream_add(p->s, UNMAP, p->segment[n][some], PAGE, 0, 0, 0);
		break;
	case 6:
		set(p, n, R_SRC_BASE, CLIENT_MEMORY - draw(p, 1 << 14));
		break;
	default:
		stream_add(p->s, ENTRY, base + LOCK_ENTRY, area(n), PAGE, 0, 0);
	}
}

static void give_credit(struct plan *p, unsigned int n)
{
	uint64_t credit = p->first_stack[n] += draw(p, 4);

	if (chance(p, 10))
		credit += 1000;				/* future stacks */
	if (p->run[n] || chance(p, 10))
		stream_add(p->s, TAGGED, n, (uint32_t)credit,
			   p->run[n] - (chance(p, 10) && p->run[n]), 0, 0);
	else
		stream_add(p->s, CREDIT, n, (uint32_t)credit, 0, 0, 0);
}

static void begin(struct plan *p, unsigned int n)
{
	write_map(p, n);
	stream_add(p->s, BOUNDS, n, n * BOUND_ENTRIES, (n + 1) * BOUND_ENTRIES, 0, 0);
	if (configure(p, n) && p->master && chance(p, 15))
		spoil(p, n);
}

static void again(struct plan *p)
{
	stream_add(p->s, RESET, draw(p, 3), 0, 0, 0, 0);
	stream_add(p->s, MAP, 0, HOST_SIZE, 3, 0, 0);
	p->master = chance(p, 85);
	stream_add(p->s, MASTER, p->master, 0, 0, 0, 0);
}

static void turn(struct plan *p)
{
	uint32_t mask = 1 + (uint32_t)draw(p, (1u << DTPS) - 1);
	unsigned int n, i;

	p->group = chance(p, 25);
	p->msix = chance(p, 80) ? RFPGA_MODE_MSIX : 0;
	p->vector = (uint32_t)draw(p, CLIENT_VECTORS);
	for (n = 0; n < DTPS; n++)
		if (mask & 1u << n)
			begin(p, n);
	if (p->group)
		stream_add(p->s, GROUP, mask, 0, 0, 0, 0);
	for (n = 0; n < DTPS && !p->group; n++)
		if (mask & 1u << n)
			stream_add(p->s, START, n, 0, 0, 0, 0);
	for (i = (unsigned int)draw(p, 6); i; i--)
		give_credit(p, (unsigned int)draw(p, DTPS));
	stream_add(p->s, COMPARE, 0, 0, 0, 0, 0);
	if (chance(p, 30))
		stream_add(p->s, SCRATCH, draw(p, 1ull << 32), 0, 0, 0, 0);
	if (chance(p, 20))
		stream_add(p->s, START, draw(p, DTPS), 0, 0, 0, 0);
	stream_add(p->s, STOP, chance(p, 50) ? DTPS : draw(p, DTPS), 0, 0, 0, 0);
	stream_add(p->s, COMPARE, 0, 0, 0, 0, 0);
	stream_add(p->s, STOP, DTPS, 0, 0, 0, 0);
	if (chance(p, 50))
		stream_add(p->s, CLEAR, 0, 0, 0, 0, 0);
	if (chance(p, 30))
		again(p);
}

void generate(struct stream *s, uint64_t seed)
{
	struct plan p = { .s = s, .random = seed, .master = true };
	unsigned int turns = 3;

	s->count = 0;
	while (turns--)
		turn(&p);
	stream_add(s, COMPARE, 0, 0, 0, 0, 0);
}
