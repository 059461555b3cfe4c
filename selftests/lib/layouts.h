/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Layouts of descriptors, for tests in the guest and of the pure part: the fields of one, by a
 * FIELD() of the test, and its bytes as another program would write them.
 */
#ifndef LAYOUTS_H
#define LAYOUTS_H

#define FIELDS_ARRAY							\
	FIELD(ADDRESS, 0, 64, 0, 64), FIELD(LENGTH, 8, 32, 0, 32),	\
	FIELD(CONSTANT, 12, 32, 0, 1, .value = 1),			\
	FIELD(CONSTANT, 12, 32, 1, 1, .value = 1, .flags = RASHPA_FIELD_LAST)

#define FIELDS_PACKED							\
	FIELD(CONSTANT, 0, 64, 0, 1, .value = 1),			\
	FIELD(LENGTH, 0, 64, 1, 11, .unit = 12, .flags = RASHPA_FIELD_MINUS_ONE), \
	FIELD(ADDRESS, 0, 64, 12, 52, .unit = 12)

/* A chain with an end mark, also in its first one; numbers, words in the wrong order. */
#define FIELDS_ODD							\
	FIELD(ADDRESS, 0, 32, 0, 32, .unit = 32), FIELD(ADDRESS, 4, 32, 0, 32), \
	FIELD(INDEX, 8, 32, 0, 16), FIELD(COUNT, 8, 32, 16, 16),	\
	FIELD(LENGTH, 12, 32, 0, 24, .unit = 9, .flags = RASHPA_FIELD_MINUS_ONE), \
	FIELD(CONSTANT, 12, 32, 24, 1, .value = 1, .flags = RASHPA_FIELD_FIRST), \
	FIELD(CONSTANT, 12, 32, 30, 1, .value = 1, .flags = RASHPA_FIELD_NOT_LAST), \
	FIELD(CONSTANT, 12, 32, 31, 1, .value = 1, .flags = RASHPA_FIELD_LAST), \
	FIELD(NEXT, 16, 64, 0, 64)

/* Three words of 32 bits: a size that does not divide a page. */
#define FIELDS_THREE							\
	FIELD(ADDRESS, 0, 32, 0, 32, .unit = 12), FIELD(ADDRESS, 8, 32, 0, 16, .unit = 44), \
	FIELD(LENGTH, 8, 32, 16, 16, .unit = 12), FIELD(SUM, 4, 32, 0, 32, .unit = 12)

struct want {			/* of descriptor i */
	u64 i, n, address, length, sum, next;
};

static void le(uint8_t *d, unsigned int at, u64 value, unsigned int bytes)
{
	while (bytes--) {
		d[at++] = (uint8_t)value;
		value >>= 8;
	}
}

static void expect_array(const struct want *w, uint8_t *d)
{
	le(d, 0, w->address, 8);
	le(d, 8, w->length, 4);
	le(d, 12, w->i == w->n - 1 ? 3 : 1, 4);
}

static void expect_packed(const struct want *w, uint8_t *d)
{
	le(d, 0, w->address | (w->length / 4096 - 1) << 1 | 1, 8);
}

static void expect_odd(const struct want *w, uint8_t *d)
{
	le(d, 0, w->address >> 32, 4);
	le(d, 4, w->address, 4);
	le(d, 8, w->i | w->n << 16, 4);
	le(d, 12, (w->length / 512 - 1) | (w->i ? 0 : 1u << 24) |
	   (w->i == w->n - 1 ? 1u << 31 : 1u << 30), 4);
	le(d, 16, w->next, 8);
	le(d, 24, 0, 8);
}

static void expect_three(const struct want *w, uint8_t *d)
{
	le(d, 0, w->address >> 12, 4);
	le(d, 4, w->sum >> 12, 4);
	le(d, 8, w->address >> 44 | w->length >> 12 << 16, 4);
}

#endif /* LAYOUTS_H */
