// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/profile-file.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json-in.h"
#include "common/parse.h"
#include <rashpa.h>
#include "common/say.h"

#ifndef PROFILE_DIR
#define PROFILE_DIR	"/usr/local/share/rashpa/profiles.d"
#endif

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define FIELD_ONLY	(RASHPA_FIELD_FIRST | RASHPA_FIELD_LAST | RASHPA_FIELD_NOT_LAST)
#define PAGE		4096

static int read_name(struct json_place *at, struct json_object *value, void *to)
{
	return json_read_text(at, value, to, RASHPA_PROFILE_NAME_SIZE);
}

/* The driver's rule for names of windows. */
static int read_window_name(struct json_place *at, struct json_object *value, void *to)
{
	if (read_name(at, value, to))
		return -1;
	return name_possible(to) ? 0 : json_wrong(at, "must be letters, digits and . _ -, and not begin with a dot");
}

static int read_title(struct json_place *at, struct json_object *value, void *to)
{
	return json_read_text(at, value, to, sizeof(((struct profile *)0)->name));
}

static int read_bar(struct json_place *at, struct json_object *value, void *to)
{
	if (json_read_u32(at, value, to))
		return -1;
	return *(uint32_t *)to < RASHPA_BARS ? 0 :
	       json_wrong(at, "must be 0 to %d", RASHPA_BARS - 1);
}

static int read_id(struct json_place *at, struct json_object *value, void *to)
{
	if (json_read_u32(at, value, to))
		return -1;
	return *(uint32_t *)to <= 0xffff ? 0 : json_wrong(at, "is not a PCI id (0 to 0xffff)");
}

static int read_reset(struct json_place *at, struct json_object *value, void *to)
{
	bool reset = true;

	if (json_read_bool(at, value, &reset))
		return -1;
	*(bool *)to = !reset;
	return 0;
}

static int read_match(struct json_place *at, struct json_object *value, void *to)
{
	uint32_t *match = to;
	const struct json_key keys[] = {
		{ "vendor", true, read_id, &match[0] },
		{ "device", true, read_id, &match[1] },
	};

	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int read_matches(struct json_place *at, struct json_object *value, void *to)
{
	struct profile *p = to;

	if (json_read_array(at, value, read_match, p->match, sizeof(p->match[0]),
		       PROFILE_MATCHES_MAX, &p->n_matches))
		return -1;
	return p->n_matches ? 0 : json_wrong(at, "names no device");
}

static int read_cache(struct json_place *at, struct json_object *value, void *to)
{
	static const char *const words[] = { "default", "wc", "uc", NULL };
	static const uint32_t caches[] = { RASHPA_CACHE_DEFAULT, RASHPA_CACHE_WC, RASHPA_CACHE_UC };
	uint32_t word;

	if (json_read_word(at, value, words, &word))
		return -1;
	*(uint32_t *)to = caches[word];
	return 0;
}

static int read_page(struct json_place *at, struct json_object *value, void *to)
{
	if (json_read_u64(at, value, to))
		return -1;
	return *(uint64_t *)to % PAGE ? json_wrong(at, "must be a multiple of %d", PAGE) : 0;
}

static int read_power(struct json_place *at, struct json_object *value, void *to)
{
	uint64_t *n = to;

	if (json_read_u64(at, value, to))
		return -1;
	return *n & (*n - 1) ? json_wrong(at, "must be a power of two, or 0 for none") : 0;
}

static int read_boundary(struct json_place *at, struct json_object *value, void *to)
{
	return read_page(at, value, to) || read_power(at, value, to);
}

static int read_window(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_profile_window *w = to;
	bool user = false;
	const struct json_key keys[] = {
		{ "name", true, read_window_name, w->name },
		{ "description", false, json_read_comment, NULL },
		{ "bar", true, read_bar, &w->bar },
		{ "offset", false, read_page, &w->offset },
		{ "length", true, read_page, &w->length },
		{ "cache", false, read_cache, &w->cache },
		{ "user", false, json_read_bool, &user },
	};

	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	w->flags = user ? RASHPA_PWINDOW_USER : 0;
	return 0;
}

static int read_windows(struct json_place *at, struct json_object *value, void *to)
{
	struct profile *p = to;

	if (json_read_array(at, value, read_window, p->window, sizeof(p->window[0]),
		       RASHPA_PROFILE_WINDOWS_MAX, &p->n_windows))
		return -1;
	for (unsigned int i = 1; i < p->n_windows; i++) {
		for (unsigned int j = 0; j < i; j++) {
			if (strcmp(p->window[i].name, p->window[j].name))
				continue;
			json_enter(at, NULL, i);
			return json_wrong(at, "the name \"%s\" is given twice", p->window[i].name);
		}
	}
	return 0;
}

static int read_register(struct json_place *at, struct json_object *value, void *to)
{
	if (json_read_u64(at, value, to))
		return -1;
	return *(uint64_t *)to % 4 ? json_wrong(at, "must be a multiple of 4") : 0;
}

static int read_timeout(struct json_place *at, struct json_object *value, void *to)
{
	uint32_t ms = 0;

	if (json_read_u32(at, value, &ms))
		return -1;
	if (ms < 1 || ms > RASHPA_QUIESCE_US_MAX / 1000)
		return json_wrong(at, "must be 1 to %d milliseconds", RASHPA_QUIESCE_US_MAX / 1000);
	*(uint32_t *)to = ms * 1000;
	return 0;
}

static int read_write_step(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_profile_step *s = to;
	const struct json_key keys[] = {
		{ "bar", true, read_bar, &s->bar },
		{ "offset", true, read_register, &s->offset },
		{ "value", true, json_read_u32, &s->value },
		{ "mask", false, json_read_u32, &s->mask },
	};

	s->op = RASHPA_STEP_WRITE;
	s->mask = UINT32_MAX;
	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

/* What follows if a wait of the whole function is in vain: without this key, the function is stuck. */
static int read_else(struct json_place *at, struct json_object *value, void *to)
{
	const char *text = json_object_get_string(value);

	if (!json_object_is_type(value, json_type_string) || strcmp(text, "reset"))
		return json_wrong(at, "must be \"reset\"");
	*(uint32_t *)to = RASHPA_STEP_RESET;
	return 0;
}

static int read_wait_step(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_profile_step *s = to;
	const struct json_key keys[] = {
		{ "bar", true, read_bar, &s->bar },
		{ "offset", true, read_register, &s->offset },
		{ "value", true, json_read_u32, &s->value },
		{ "mask", false, json_read_u32, &s->mask },
		{ "timeout_ms", true, read_timeout, &s->timeout_us },
		{ "else", false, read_else, &s->flags },
	};

	s->op = RASHPA_STEP_WAIT;
	s->mask = UINT32_MAX;
	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	if (s->value & ~s->mask)
		return json_wrong(at, "value has bits outside the mask, so the wait would never end");
	return 0;
}

static int read_step(struct json_place *at, struct json_object *value, void *to)
{
	const struct json_key keys[] = {
		{ "write", false, read_write_step, to },
		{ "wait", false, read_wait_step, to },
	};

	if (json_object_is_type(value, json_type_object) && json_object_object_length(value) != 1)
		return json_wrong(at, "must be one of {\"write\": ...} and {\"wait\": ...}");
	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int read_sequence(struct json_place *at, struct json_object *value,
			 struct rashpa_profile_step *step, unsigned int max, unsigned int *n)
{
	const struct rashpa_profile_step *last;

	if (json_read_array(at, value, read_step, step, sizeof(*step), max, n))
		return -1;
	last = &step[*n ? *n - 1 : 0];
	if (!*n || (last->op == RASHPA_STEP_WAIT && last->mask))
		return 0;
	json_enter(at, NULL, *n - 1);
	return json_wrong(at, "the last step must wait for a bit that says that nothing is in flight");
}

static int read_steps(struct json_place *at, struct json_object *value, void *to)
{
	struct profile *p = to;

	return read_sequence(at, value, p->step, RASHPA_PROFILE_STEPS_MAX, &p->n_steps);
}

static int read_vectors(struct json_place *at, struct json_object *value, void *to)
{
	struct profile *p = to;

	return json_read_array(at, value, read_name, p->vector, sizeof(p->vector[0]),
			  PROFILE_VECTORS_MAX, &p->n_vectors);
}

static int read_limits(struct json_place *at, struct json_object *value, void *to)
{
	struct profile *p = to;
	const struct json_key keys[] = {
		{ "max_length", false, read_page, &p->max_segment },
		{ "boundary", false, read_boundary, &p->boundary },
		{ "alignment", false, read_power, &p->alignment },
	};

	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int read_dma_bits(struct json_place *at, struct json_object *value, void *to)
{
	if (json_read_u32(at, value, to))
		return -1;
	if (*(uint32_t *)to < 24 || *(uint32_t *)to > 64)
		return json_wrong(at, "must be 24 to 64");
	return 0;
}

/* A field of a table entry: address, length, control or sum. */
struct field {
	uint32_t *offset, *bits;
	bool narrow;		/* 32 bits only */
	uint32_t *set, *clear;	/* NULL: it has no such values */
};

static int read_field(struct json_place *at, struct json_object *value, void *to)
{
	const struct field *f = to;
	const struct json_key keys[] = {
		{ "offset", true, json_read_u32, f->offset },
		{ "bits", true, json_read_u32, f->bits },
		{ "set", true, json_read_u32, f->set },
		{ "clear", true, json_read_u32, f->clear },
	};

	if (json_read_object(at, value, keys, f->set ? 4 : 2))
		return -1;
	if (*f->bits == 32 || (*f->bits == 64 && !f->narrow))
		return 0;
	return json_wrong(at, "bits must be 32%s", f->narrow ? "" : " or 64");
}

/* Inside the entry, and apart from each other. */
static int check_fields(struct json_place *at, const struct field *const field[], size_t n,
			uint32_t stride)
{
	for (size_t i = 0; i < n; i++) {
		const uint32_t offset = *field[i]->offset, size = *field[i]->bits / 8;

		if (offset % 4 || offset > stride || size > stride - offset)
			return json_wrong(at, "a field of %" PRIu32 " bits at %" PRIu32
				     " is not made of 32-bit words, or is outside the stride of %" PRIu32,
				     *field[i]->bits, offset, stride);
		for (size_t j = 0; j < i; j++) {
			if (size && *field[j]->bits &&
			    offset < *field[j]->offset + *field[j]->bits / 8 &&
			    *field[j]->offset < offset + size)
				return json_wrong(at, "two fields overlap at %" PRIu32, offset);
		}
	}
	return 0;
}

const char *const profile_kinds[RASHPA_FETCH_END + 2] = {
	[RASHPA_FETCH_CONSTANT] = "constant", [RASHPA_FETCH_ADDRESS] = "address",
	[RASHPA_FETCH_LENGTH] = "length", [RASHPA_FETCH_SUM] = "sum",
	[RASHPA_FETCH_NEXT] = "next", [RASHPA_FETCH_INDEX] = "index",
	[RASHPA_FETCH_COUNT] = "count", [RASHPA_FETCH_END] = "end",
};

static int read_kind(struct json_place *at, struct json_object *value, void *to)
{
	if (json_read_word(at, value, profile_kinds + RASHPA_FETCH_CONSTANT, to))
		return -1;
	*(uint32_t *)to += RASHPA_FETCH_CONSTANT;
	return 0;
}

static int read_only(struct json_place *at, struct json_object *value, void *to)
{
	static const char *const words[] = { "all", "first", "last", "not last", NULL };
	static const uint32_t flags[] = { 0, RASHPA_FIELD_FIRST, RASHPA_FIELD_LAST,
					  RASHPA_FIELD_NOT_LAST };
	uint32_t word;

	if (json_read_word(at, value, words, &word))
		return -1;
	*(uint32_t *)to = flags[word];
	return 0;
}

static int check_fetch_field(struct json_place *at, const struct rashpa_fetch_field *f)
{
	if (f->bits != 32 && f->bits != 64)
		return json_wrong(at, "bits must be 32 or 64");
	if (f->offset % (f->bits / 8))
		return json_wrong(at, "offset must be a multiple of the word's bytes");
	if (!f->width || f->shift >= f->bits || f->width > f->bits - f->shift)
		return json_wrong(at, "%" PRIu32 " bits from bit %" PRIu32
				  " on are not in a word of %" PRIu32, f->width, f->shift, f->bits);
	if (f->unit > 63 || (f->unit && f->kind == RASHPA_FETCH_CONSTANT))
		return json_wrong(at, "unit must be 0 to 63, and 0 for a constant");
	if (f->kind != RASHPA_FETCH_CONSTANT && f->value)
		return json_wrong(at, "only a constant has a value");
	if (f->width < 64 && f->value >> f->width)
		return json_wrong(at, "the value is wider than %" PRIu32 " bits", f->width);
	if (f->flags & RASHPA_FIELD_MINUS_ONE && f->kind != RASHPA_FETCH_LENGTH &&
	    f->kind != RASHPA_FETCH_COUNT)
		return json_wrong(at, "minus_one is for length and count");
	if (f->flags & (FIELD_ONLY | RASHPA_FIELD_ENTRY) && f->kind != RASHPA_FETCH_CONSTANT)
		return json_wrong(at, "only and entry_bit are for constants");
	if (f->flags & RASHPA_FIELD_ENTRY && (f->bits != 32 || f->width != 1 || !f->value || f->clear))
		return json_wrong(at, "entry_bit is for a constant of width 1, value 1, in 32 bits, without clear");
	return 0;
}

/* The default width is the rest of the word. */
static int read_fetch_field(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_fetch_field *f = to;
	bool minus_one = false, keep = false, entry_bit = false;
	const struct json_key keys[] = {
		{ "kind", true, read_kind, &f->kind },
		{ "description", false, json_read_comment, NULL },
		{ "offset", true, json_read_u32, &f->offset },
		{ "bits", false, json_read_u32, &f->bits },
		{ "shift", false, json_read_u32, &f->shift },
		{ "width", false, json_read_u32, &f->width },
		{ "unit", false, json_read_u32, &f->unit },
		{ "minus_one", false, json_read_bool, &minus_one },
		{ "value", false, json_read_u64, &f->value },
		{ "only", false, read_only, &f->flags },
		{ "clear", false, json_read_u64, &f->clear },
		{ "keep", false, json_read_bool, &keep },
		{ "entry_bit", false, json_read_bool, &entry_bit },
	};

	f->bits = 32;
	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	if (!json_object_object_get_ex(value, "width", NULL) && f->shift < f->bits)
		f->width = f->bits - f->shift;
	f->flags |= (minus_one ? RASHPA_FIELD_MINUS_ONE : 0) | (keep ? RASHPA_FIELD_KEEP : 0) |
		    (entry_bit ? RASHPA_FIELD_ENTRY : 0);
	return check_fetch_field(at, f);
}

static int read_descriptor(struct json_place *at, struct json_object *value, void *to)
{
	struct profile *p = to;

	return json_read_array(at, value, read_fetch_field, p->table.field,
			       sizeof(p->table.field[0]), RASHPA_FETCH_FIELDS_MAX,
			       &p->table.fetch.n_fields);
}

static int read_ring_registers(struct json_place *at, struct json_object *value, void *to)
{
	struct profile *p = to;

	return json_read_array(at, value, read_fetch_field, p->table.reg,
			       sizeof(p->table.reg[0]), RASHPA_FETCH_REGISTERS_MAX,
			       &p->table.fetch.n_registers);
}

static bool fetches(const struct rashpa_fetch_field *f, uint32_t n, uint32_t kind)
{
	for (uint32_t i = 0; i < n; i++)
		if (f[i].kind == kind)
			return true;
	return false;
}

/* Inside the descriptor, and apart from each other. */
static int check_descriptor(struct json_place *at, const struct profile *p)
{
	const struct rashpa_fetch_field *f = p->table.field;
	const uint32_t size = p->table.fetch.descriptor_size;
	unsigned char taken[RASHPA_DESCRIPTOR_SIZE_MAX * 8] = { 0 };

	for (uint32_t i = 0; i < p->table.fetch.n_fields; i++) {
		if (f[i].offset > size || f[i].bits / 8 > size - f[i].offset)
			return json_wrong(at, "field %" PRIu32 " is not in a descriptor of %" PRIu32
					  " bytes", i, size);
		if (f[i].clear || f[i].flags & (RASHPA_FIELD_KEEP | RASHPA_FIELD_ENTRY))
			return json_wrong(at, "field %" PRIu32
					  ": clear, keep and entry_bit are for registers", i);
		for (uint32_t b = f[i].offset * 8 + f[i].shift;
		     b < f[i].offset * 8 + f[i].shift + f[i].width; b++) {
			if (taken[b]++)
				return json_wrong(at, "field %" PRIu32 " overlaps one before it",
						  i);
		}
	}
	return 0;
}

/* Segments tell their length, or all have the same. */
static int check_length(struct json_place *at, const struct rashpa_fetch *f, bool told)
{
	if (told ? f->segment_size != 0 :
		     f->segment_size < PAGE || (f->segment_size & (f->segment_size - 1)))
		return json_wrong(at, told ? "has both a length and segment_size" :
				  "has no length: segment_size must be a power of two, at least 4096");
	return 0;
}

static int check_fetch(struct json_place *at, const struct profile *p)
{
	const struct rashpa_fetch *f = &p->table.fetch;
	const struct rashpa_fetch_field *field = p->table.field;
	const bool length = fetches(field, f->n_fields, RASHPA_FETCH_LENGTH);

	if (!f->descriptor_size || f->descriptor_size % 4 ||
	    f->descriptor_size > RASHPA_DESCRIPTOR_SIZE_MAX)
		return json_wrong(at, "size must be a multiple of 4 up to %d",
				  RASHPA_DESCRIPTOR_SIZE_MAX);
	if (f->max_descriptors > RASHPA_DESCRIPTORS_MAX)
		return json_wrong(at, "max must be %d at most", RASHPA_DESCRIPTORS_MAX);
	if (!fetches(field, f->n_fields, RASHPA_FETCH_ADDRESS))
		return json_wrong(at, "no field has the address");
	if (!fetches(p->table.reg, f->n_registers, RASHPA_FETCH_ADDRESS))
		return json_wrong(at, "no register has the address of the ring");
	if (f->flags && !fetches(field, f->n_fields, RASHPA_FETCH_NEXT))
		return json_wrong(at, "is closed, but no field leads to the next descriptor");
	return check_length(at, f, length) || check_descriptor(at, p);
}

static int read_fetch(struct json_place *at, struct json_object *value, void *to)
{
	struct profile *p = to;
	struct rashpa_fetch *f = &p->table.fetch;
	bool closed = false;
	const struct json_key keys[] = {
		{ "description", false, json_read_comment, NULL },
		{ "size", true, json_read_u32, &f->descriptor_size },
		{ "max", false, json_read_u32, &f->max_descriptors },
		{ "closed", false, json_read_bool, &closed },
		{ "entries", false, json_read_u32, &f->entries },
		{ "segment_size", false, json_read_u64, &f->segment_size },
		{ "fields", true, read_descriptor, p },
		{ "registers", true, read_ring_registers, p },
	};

	if (f->n_registers)
		return json_wrong(at, "fetch and push exclude each other");
	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	f->flags = closed ? RASHPA_FETCH_CLOSED : 0;
	return check_fetch(at, p);
}

static int read_push(struct json_place *at, struct json_object *value, void *to)
{
	struct profile *p = to;
	struct rashpa_fetch *f = &p->table.fetch;
	bool length, spread = false;
	const struct json_key keys[] = {
		{ "description", false, json_read_comment, NULL },
		{ "max", false, json_read_u32, &f->max_descriptors },
		{ "spread", false, json_read_bool, &spread },
		{ "entries", false, json_read_u32, &f->entries },
		{ "segment_size", false, json_read_u64, &f->segment_size },
		{ "words", true, read_ring_registers, p },
	};

	if (f->n_registers)
		return json_wrong(at, "push and fetch exclude each other");
	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	f->flags = RASHPA_FETCH_PUSH | (spread ? RASHPA_FETCH_SPREAD : 0);
	if (f->max_descriptors > RASHPA_DESCRIPTORS_MAX)
		return json_wrong(at, "max must be %d at most", RASHPA_DESCRIPTORS_MAX);
	length = fetches(p->table.reg, f->n_registers, RASHPA_FETCH_LENGTH) ||
		 fetches(p->table.reg, f->n_registers, RASHPA_FETCH_END);
	if (!fetches(p->table.reg, f->n_registers, RASHPA_FETCH_ADDRESS))
		return json_wrong(at, "no word has the address");
	if (fetches(p->table.reg, f->n_registers, RASHPA_FETCH_NEXT))
		return json_wrong(at, "there is no next descriptor");
	return check_length(at, f, length);
}

/* Check the registers of an entry: those of a ring, or of segments that are pushed. */
static int check_ring_registers(struct json_place *at, struct profile *p)
{
	const bool push = p->table.fetch.flags & RASHPA_FETCH_PUSH;
	const struct rashpa_layout *l = &p->table.layout;
	const uint64_t fit = p->table.length / l->stride;
	const uint64_t entries = p->table.fetch.entries ? p->table.fetch.entries : fit ? fit : 1;

	if (l->address_bits || l->length_bits || l->control_bits || l->sum_bits || l->segment_size)
		return json_wrong(at, "fetch or push, and fields of an entry, exclude each other");
	if (p->table.fetch.entries > fit)
		return json_wrong(at, "entries are more than the %" PRIu64 " that fit", fit);
	for (uint32_t i = 0; i < p->table.fetch.n_registers; i++) {
		const struct rashpa_fetch_field *r = &p->table.reg[i];
		const bool bit = r->flags & RASHPA_FIELD_ENTRY;
		/* registers may be apart: those of the last entry are in the table */
		const uint64_t size = bit ? p->table.length : !p->table.fetch.entries ? l->stride :
				      p->table.length - (entries - 1) * l->stride;

		if (r->offset > size || r->bits / 8 > size - r->offset)
			return json_wrong(at, "register %" PRIu32 " is not in the %s of %" PRIu64,
					  i, bit ? "table" : "stride", size);
		if (bit && (!i || entries > 32 - r->shift))
			return json_wrong(at, "register %" PRIu32
					  ": entry_bit is not for the first one, and needs a bit for each entry",
					  i);
		if (!push && (r->kind == RASHPA_FETCH_SUM || r->kind == RASHPA_FETCH_NEXT ||
			      r->kind == RASHPA_FETCH_INDEX || r->kind == RASHPA_FETCH_END))
			return json_wrong(at, "register %" PRIu32
					  " describes a ring: its kind is constant, address, length or count",
					  i);
		if (!push && r->flags & FIELD_ONLY)
			return json_wrong(at, "register %" PRIu32 ": only is for descriptors",
					  i);
	}
	p->table.fetch.stride = l->stride;
	return 0;
}

/* An entry that has an address. */
static int check_layout(struct json_place *at, const struct profile *p)
{
	const struct rashpa_layout *l = &p->table.layout;

	if (!l->address_bits)
		return json_wrong(at, "has neither address nor fetch nor push");
	if (l->length_bits && l->segment_size)
		return json_wrong(at, "has both length_field and segment_size");
	if (!l->length_bits && !l->control_bits)
		return json_wrong(at, "has neither length_field nor control: an entry could not be made invalid");
	if (!l->length_bits &&
	    (l->segment_size < PAGE || l->segment_size & (l->segment_size - 1)))
		return json_wrong(at, "has no length_field: segment_size must be a power of two, at least %d, as long as the board takes an entry to be",
			     PAGE);
	if (l->control_bits && l->control_set == l->control_clear)
		return json_wrong(at, "control: set and clear are the same: an entry could not be made invalid");
	return 0;
}

static int read_table(struct json_place *at, struct json_object *value, void *to)
{
	struct profile *p = to;
	struct rashpa_layout *l = &p->table.layout;
	struct field address = { .offset = &l->address_offset, .bits = &l->address_bits };
	struct field length = { .offset = &l->length_offset, .bits = &l->length_bits };
	struct field control = {
		.offset = &l->control_offset, .bits = &l->control_bits, .narrow = true,
		.set = &l->control_set, .clear = &l->control_clear,
	};
	struct field sum = { .offset = &l->sum_offset, .bits = &l->sum_bits };
	const struct field *const fields[] = { &address, &length, &control, &sum };
	bool upper_first = false, write_only = false;
	const struct json_key keys[] = {
		{ "window", true, read_name, p->table.window },
		{ "offset", false, read_register, &p->table.offset },
		{ "length", true, read_register, &p->table.length },
		{ "stride", true, json_read_u32, &l->stride },
		{ "address", false, read_field, &address },
		{ "length_field", false, read_field, &length },
		{ "segment_size", false, json_read_u64, &l->segment_size },
		{ "control", false, read_field, &control },
		{ "sum", false, read_field, &sum },
		{ "upper_first", false, json_read_bool, &upper_first },
		{ "write_only", false, json_read_bool, &write_only },
		{ "fetch", false, read_fetch, p },
		{ "push", false, read_push, p },
	};

	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	l->flags = (upper_first ? RASHPA_LAYOUT_UPPER_FIRST : 0) |
		   (write_only ? RASHPA_LAYOUT_WRITE_ONLY : 0);
	if (!l->stride || l->stride % 4 || l->stride > PAGE)
		return json_wrong(at, "stride must be a multiple of 4 up to %d", PAGE);
	if (!p->table.length)
		return json_wrong(at, "length must not be 0");
	if (p->table.fetch.n_registers ? check_ring_registers(at, p) : check_layout(at, p))
		return -1;
	if (check_fields(at, fields, ARRAY_SIZE(fields), l->stride))
		return -1;
	p->has_table = true;
	return 0;
}

static int read_bounds(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_profile_engine *e = to;
	const struct json_key keys[] = {
		{ "bar", true, read_bar, &e->bar },
		{ "first", true, read_register, &e->first_offset },
		{ "limit", true, read_register, &e->limit_offset },
	};

	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int read_engine_steps(struct json_place *at, struct json_object *value, void *to)
{
	struct profile_engine *e = to;

	if (read_sequence(at, value, e->step, RASHPA_ENGINE_STEPS_MAX, &e->n_steps))
		return -1;
	for (unsigned int i = 0; i < e->n_steps; i++)
		if (e->step[i].flags)
			return json_wrong(at, "an engine cannot be reset alone: \"else\" is for steps of the board");
	return 0;
}

static int read_engine(struct json_place *at, struct json_object *value, void *to)
{
	struct profile_engine *e = to;
	bool optional = false;
	const struct json_key keys[] = {
		{ "name", true, read_window_name, e->about.name },
		{ "description", false, json_read_comment, NULL },
		{ "bounds", true, read_bounds, &e->about },
		{ "first", false, json_read_u32, &e->about.first },
		{ "count", true, json_read_u32, &e->about.count },
		{ "quiesce", false, read_engine_steps, e },
		{ "optional", false, json_read_bool, &optional },
	};

	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	e->about.flags = optional ? RASHPA_PENGINE_OPTIONAL : 0;
	if (e->about.count && !e->n_steps)
		return json_wrong(at, "has entries of the table, and no quiesce sequence");
	if (!e->about.count && e->about.first)
		return json_wrong(at, "has no entries, but a first one");
	return 0;
}

/* Check each engine; their place in the table is checked when the table is known. */
static int read_engines(struct json_place *at, struct json_object *value, void *to)
{
	struct profile *p = to;

	return json_read_array(at, value, read_engine, p->engine, sizeof(p->engine[0]),
			       RASHPA_PROFILE_ENGINES_MAX, &p->n_engines);
}

/* The end of a range that begins here; a length of 0 is to the end of the BAR. */
static uint64_t range_end(uint64_t offset, uint64_t length)
{
	uint64_t end;

	return !length || __builtin_add_overflow(offset, length, &end) ? UINT64_MAX : end;
}

/* The window of the table holds it, and no user's window reaches it. */
static int check_table(struct json_place *at, const struct profile *p)
{
	const struct rashpa_profile_window *t = NULL, *w;
	uint64_t begin, end;

	for (w = p->window; w < p->window + p->n_windows && !t; w++)
		t = strcmp(w->name, p->table.window) ? NULL : w;
	snprintf(at->key, sizeof(at->key), "table.window");
	if (!t)
		return json_wrong(at, "there is no window \"%s\"", p->table.window);
	begin = t->offset + p->table.offset;
	end = range_end(begin, p->table.length);
	if (begin < t->offset || end > range_end(t->offset, t->length))
		return json_wrong(at, "the table is outside the window \"%s\"", t->name);
	for (w = p->window; w < p->window + p->n_windows; w++) {
		if (w->flags & RASHPA_PWINDOW_USER && w->bar == t->bar && w->offset < end &&
		    begin < range_end(w->offset, w->length))
			return json_wrong(at, "the window \"%s\" is for users and overlaps the table",
				     w->name);
	}
	return 0;
}

static bool window_holds(const struct rashpa_profile_window *w, uint32_t bar, uint64_t offset)
{
	return w->bar == bar && w->offset <= offset && offset < range_end(w->offset, w->length);
}

/* Windows that must not hold its registers. */
static int check_engine_windows(struct json_place *at, const struct profile *p,
				const struct profile_engine *e)
{
	const struct rashpa_profile_window *w;

	for (w = p->window; w < p->window + p->n_windows; w++) {
		if (window_holds(w, e->about.bar, e->about.first_offset) ||
		    window_holds(w, e->about.bar, e->about.limit_offset))
			return json_wrong(at, "the window \"%s\" holds its bounds, which are the kernel's",
					  w->name);
		for (unsigned int i = 0; i < e->n_steps; i++)
			if (w->flags & RASHPA_PWINDOW_USER &&
			    window_holds(w, e->step[i].bar, e->step[i].offset))
				return json_wrong(at, "the window \"%s\" is for users, and has a register of its quiesce sequence",
						  w->name);
	}
	return 0;
}

static int check_engine(struct json_place *at, const struct profile *p, unsigned int i)
{
	const uint64_t entries = p->table.length / p->table.layout.stride;
	const struct rashpa_profile_engine *e = &p->engine[i].about, *other;

	if ((uint64_t)e->first + e->count > entries)
		return json_wrong(at, "its entries are not in the table of %" PRIu64, entries);
	for (unsigned int j = 0; j < i; j++) {
		other = &p->engine[j].about;
		if (!strcmp(e->name, other->name))
			return json_wrong(at, "the name \"%s\" is given twice", e->name);
		if (e->first < (uint64_t)other->first + other->count &&
		    other->first < (uint64_t)e->first + e->count)
			return json_wrong(at, "some of its entries are those of \"%s\"",
					  other->name);
	}
	return check_engine_windows(at, p, &p->engine[i]);
}

static int check_engines(struct json_place *at, const struct profile *p)
{
	size_t outer = json_enter(at, "engines", 0), inner;

	if (p->n_engines && (!p->has_table || !p->n_steps))
		return json_wrong(at, "engines need the key \"%s\" of the whole board: add it",
				  p->has_table ? "quiesce" : "table");
	for (unsigned int i = 0; i < p->n_engines; i++) {
		inner = json_enter(at, NULL, i);
		if (check_engine(at, p, i))
			return -1;
		json_leave(at, inner);
	}
	json_leave(at, outer);
	return 0;
}

static int read_profile(struct json_place *at, struct json_object *value, struct profile *p)
{
	const struct json_key keys[] = {
		/* where editors find the schema (profile.schema.json) */
		{ "$schema", false, json_read_comment, NULL },
		{ "name", true, read_title, p->name },
		{ "description", false, json_read_comment, NULL },
		{ "match", true, read_matches, p },
		{ "disclose", false, json_read_bool, &p->disclose },
		{ "dma_bits", false, read_dma_bits, &p->dma_bits },
		{ "segments", false, read_limits, p },
		{ "windows", false, read_windows, p },
		{ "vectors", false, read_vectors, p },
		{ "quiesce", false, read_steps, p },
		{ "quiesce_ms", false, read_timeout, &p->quiesce_us },
		{ "reset", false, read_reset, &p->no_reset },
		{ "table", false, read_table, p },
		{ "engines", false, read_engines, p },
	};
	struct json_object *match;
	size_t back;

	if (!json_object_is_type(value, json_type_object))
		return because(at->why, -1, "%s: must be one JSON object", at->path);
	/* First of all, so that a broken profile still says whose it is. */
	if (json_object_object_get_ex(value, "match", &match)) {
		back = json_enter(at, "match", 0);
		if (read_matches(at, match, p))
			return -1;
		json_leave(at, back);
	}
	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	if (p->has_table && check_table(at, p))
		return -1;
	at->key[0] = '\0';
	return check_engines(at, p);
}

int profile_load(struct profile *profile, const char *path, char *why)
{
	struct json_place at = { .path = path, .why = why };
	struct json_object *root;
	int result;

	*profile = (struct profile) {};
	snprintf(profile->path, sizeof(profile->path), "%s", path);
	root = json_parse_file(path, why);
	if (!root)
		return -1;
	result = read_profile(&at, root, profile);
	json_object_put(root);
	return result;
}

bool profile_matches(const struct profile *profile, uint32_t vendor, uint32_t device)
{
	for (unsigned int i = 0; i < profile->n_matches; i++) {
		if (profile->match[i].vendor == vendor && profile->match[i].device == device)
			return true;
	}
	return false;
}

/* A schema may lie next to profiles, for editors. */
static int is_profile(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && !fnmatch("*.json", entry->d_name, 0) &&
	       fnmatch("*.schema.json", entry->d_name, 0);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Once a program: profiles are looked up for many functions. */
static void warn(const char *why)
{
	static void *said;
	char *text = strdup(why);
	char **node = text ? tsearch(text, &said, by_text) : NULL;

	if (node && *node == text)
		say("%s: no profile until the file is corrected", why);
	else
		free(text);
}

/* 1 it is this function's, 0 it is not, -1 it would be but is broken. */
static int try_file(struct profile *profile, const char *path, uint32_t vendor, uint32_t device,
		    char *why)
{
	const int error = profile_load(profile, path, why);

	if (profile_matches(profile, vendor, device))
		return error ? error : 1;
	if (error)
		warn(why);
	return 0;
}

static int find_in(struct profile *profile, const char *dir, uint32_t vendor, uint32_t device,
		   char *why)
{
	struct dirent **entries;
	char path[512];
	int n = scandir(dir, &entries, is_profile, alphasort);
	int result = 0;

	if (n < 0)
		return errno == ENOENT ? 0 : because(why, -1, "%s: %s", dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		if (!result) {
			const char *name = entries[i]->d_name;

			if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
				result = because(why, -1, "%s: the path is too long", dir);
			else
				result = try_file(profile, path, vendor, device, why);
		}
		free(entries[i]);
	}
	free(entries);
	return result;
}

int profile_find(struct profile *profile, uint32_t vendor, uint32_t device, char *why)
{
	const char *more = secure_getenv("RASHPA_PROFILES");
	char dirs[4096], *rest = dirs, *dir;
	int result = 0;

	snprintf(dirs, sizeof(dirs), "%s:/etc/rashpa/profiles.d:" PROFILE_DIR, more ? more : "");
	while (!result && (dir = strsep(&rest, ":"))) {
		if (*dir)
			result = find_in(profile, dir, vendor, device, why);
	}
	return result;
}

int profile_apply(const struct profile *profile, int device, char *why)
{
	struct rashpa_profile_engine engine[RASHPA_PROFILE_ENGINES_MAX];
	struct rashpa_profile_window window[RASHPA_PROFILE_WINDOWS_MAX];
	struct rashpa_profile_table table = {
		.length = profile->table.length,
		.layout = (uintptr_t)&profile->table.layout,
		.layout_size = sizeof(profile->table.layout),
	};
	struct rashpa_fetch fetch = profile->table.fetch;
	struct rashpa_profile_set arg = {
		.head.flags = (profile->disclose ? RASHPA_PROFILE_DISCLOSE : 0) |
			      (profile->no_reset ? RASHPA_PROFILE_NO_RESET : 0),
		.windows = (uintptr_t)window,
		.n_windows = profile->n_windows,
		.window_size = sizeof(window[0]),
		.steps = (uintptr_t)profile->step,
		.n_steps = profile->n_steps,
		.step_size = sizeof(profile->step[0]),
		.table = profile->has_table ? (uintptr_t)&table : 0,
		.table_size = profile->has_table ? sizeof(table) : 0,
		.dma_bits = profile->dma_bits,
		.quiesce_us = profile->quiesce_us,
		.max_segment = profile->max_segment,
		.boundary = profile->boundary,
		.alignment = profile->alignment,
		.engines = (uintptr_t)engine,
		.n_engines = profile->n_engines,
		.engine_size = sizeof(engine[0]),
	};
	struct rashpa_region_info region;

	if (fetch.n_registers) {
		fetch.fields = (uintptr_t)profile->table.field;
		fetch.field_size = sizeof(profile->table.field[0]);
		fetch.registers = (uintptr_t)profile->table.reg;
		fetch.register_size = sizeof(profile->table.reg[0]);
		table.layout = table.layout_size = 0;
		table.fetch = (uintptr_t)&fetch;
		table.fetch_size = sizeof(fetch);
	}
	for (unsigned int i = 0; i < profile->n_engines; i++) {
		engine[i] = profile->engine[i].about;
		engine[i].steps = (uintptr_t)profile->engine[i].step;
		engine[i].n_steps = profile->engine[i].n_steps;
		engine[i].step_size = sizeof(profile->engine[i].step[0]);
	}

	memcpy(window, profile->window, sizeof(window));
	for (unsigned int i = 0; i < profile->n_windows; i++) {
		struct rashpa_profile_window *w = &window[i];

		if (w->length)
			continue;
		if (rashpa_device_region(device, w->bar, &region))
			return because(why, -1, "%s: window \"%s\": BAR %u: %s", profile->path,
				       w->name, w->bar, rashpa_reason());
		if (region.out_length <= w->offset)
			return because(why, -1, "%s: window \"%s\" begins at %" PRIu64
				       ", but BAR %u has %" PRIu64 " bytes",
				       profile->path, w->name, (uint64_t)w->offset, w->bar,
				       (uint64_t)region.out_length);
		w->length = region.out_length - w->offset;
	}
	for (unsigned int i = 0; profile->has_table && i < profile->n_windows; i++) {
		if (strcmp(window[i].name, profile->table.window))
			continue;
		if (profile->table.offset > window[i].length ||
		    profile->table.length > window[i].length - profile->table.offset)
			return because(why, -1, "%s: the table is outside the window \"%s\"",
				       profile->path, profile->table.window);
		table.bar = window[i].bar;
		table.offset = window[i].offset + profile->table.offset;
	}
	if (rashpa_device_profile(device, &arg))
		return because(why, -1, "%s: %s", profile->path, rashpa_reason());
	return 0;
}
