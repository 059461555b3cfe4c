// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl profile: check a device profile, without a device */
#include "rashpactl/profile-file.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/json-out.h"
#include "rashpactl/rashpactl.h"

#define DEFAULT_QUIESCE_US	1000000	/* the default of the driver */

/* The schema as text, built in, so that it matches the profiles that this program accepts. */
extern const char profile_schema[];
__asm__(".section .rodata\n"
	".global profile_schema\n"
	"profile_schema:\n"
	".incbin \"" PROFILE_SCHEMA "\"\n"
	".byte 0\n"
	".previous\n");

/* A field of the table's entries; NULL: no such field. */
static struct json_object *put_field(struct json_object *to, const char *name, uint32_t offset,
				     uint32_t bits)
{
	struct json_object *field = bits ? json_object_new_object() : NULL;

	json_object_object_add(to, name, field);
	if (field) {
		put_u64(field, "offset_bytes", offset);
		put_u64(field, "bits", bits);
	}
	return field;
}

static const char *profile_only(const struct rashpa_fetch_field *f)
{
	return f->flags & RASHPA_FIELD_FIRST ? "first" : f->flags & RASHPA_FIELD_LAST ? "last" :
	       f->flags & RASHPA_FIELD_NOT_LAST ? "not last" : NULL;
}

static struct json_object *parts_json(const struct rashpa_fetch_field *f, uint32_t n)
{
	struct json_object *parts = json_object_new_array(), *o;

	for (; n--; f++) {
		o = json_object_new_object();
		put_text(o, "kind", profile_kinds[f->kind]);
		put_u64(o, "offset_bytes", f->offset);
		put_u64(o, "shift", f->shift);
		put_u64(o, "bits", f->width);
		put_u64(o, "unit", f->unit);
		put_bool(o, "minus_one", f->flags & RASHPA_FIELD_MINUS_ONE);
		put_bool(o, "keep", f->flags & RASHPA_FIELD_KEEP);
		put_bool(o, "entry_bit", f->flags & RASHPA_FIELD_ENTRY);
		put_text(o, "only", profile_only(f));
		if (f->kind == RASHPA_FETCH_CONSTANT)
			put_u64(o, "value", f->value);
		json_object_array_add(parts, o);
	}
	return parts;
}

static struct json_object *fetch_json(const struct profile *p)
{
	struct json_object *o = json_object_new_object();
	const struct rashpa_fetch *f = &p->table.fetch;

	put_bool(o, "push", f->flags & RASHPA_FETCH_PUSH);
	put_bool(o, "spread", f->flags & RASHPA_FETCH_SPREAD);
	put_u64(o, "max_segments", f->max_descriptors);
	put_u64(o, "descriptor_bytes", f->descriptor_size);
	put_bool(o, "closed", f->flags & RASHPA_FETCH_CLOSED);
	json_object_object_add(o, "fields", parts_json(p->table.field, f->n_fields));
	json_object_object_add(o, "registers", parts_json(p->table.reg, f->n_registers));
	return o;
}

void put_table(struct json_object *to, const struct profile *profile)
{
	struct json_object *control, *table = NULL;
	const struct rashpa_layout *l;

	if (profile && profile->has_table)
		table = json_object_new_object();
	json_object_object_add(to, "table", table);
	if (!table)
		return;
	l = &profile->table.layout;
	put_text(table, "window", profile->table.window);
	put_u64(table, "offset_bytes", profile->table.offset);
	put_u64(table, "length_bytes", profile->table.length);
	put_u64(table, "stride_bytes", l->stride);
	if (profile->table.fetch.n_registers) {
		json_object_object_add(table, "fetch", fetch_json(profile));
		return;
	}
	put_u64(table, "segment_bytes", l->segment_size);
	put_field(table, "address", l->address_offset, l->address_bits);
	put_field(table, "length", l->length_offset, l->length_bits);
	put_field(table, "sum", l->sum_offset, l->sum_bits);
	control = put_field(table, "control", l->control_offset, l->control_bits);
	if (control) {
		put_u64(control, "set", l->control_set);
		put_u64(control, "clear", l->control_clear);
	}
}

static void print_field(const char *name, uint32_t offset, uint32_t bits)
{
	if (bits)
		printf(", %s %" PRIu32 " bits at %" PRIu32, name, bits, offset);
	else
		printf(", no %s", name);
}

static void print_parts(const char *what, const struct rashpa_fetch_field *f, uint32_t n)
{
	printf("  %s:", what);
	for (; n--; f++) {
		printf(" %s", profile_kinds[f->kind]);
		if (f->kind == RASHPA_FETCH_CONSTANT)
			printf(" 0x%" PRIx64, (uint64_t)f->value);
		printf(" %" PRIu32 " bits at %" PRIu32, f->width, f->offset);
		if (f->shift)
			printf(".%" PRIu32, f->shift);
		if (f->unit)
			printf(" / 2^%" PRIu32, f->unit);
		if (f->flags & RASHPA_FIELD_MINUS_ONE)
			printf(" - 1");
		if (f->flags & RASHPA_FIELD_ENTRY)
			printf(" (bit of the entry)");
		if (profile_only(f))
			printf(" (%s)", profile_only(f));
		if (f->flags & RASHPA_FIELD_KEEP)
			printf(" (kept)");
		printf("%s", n ? "," : "\n");
	}
}

static void print_fetch(const struct profile *p)
{
	const struct rashpa_fetch *f = &p->table.fetch;

	if (f->flags & RASHPA_FETCH_PUSH) {
		printf(f->flags & RASHPA_FETCH_SPREAD ? ", each takes one segment of a map\n" :
		       ", each takes all segments of a map, one after the other\n");
		if (f->max_descriptors)
			printf("  at most %" PRIu32 " segments of a map\n", f->max_descriptors);
		print_parts("words", p->table.reg, f->n_registers);
		return;
	}
	printf(", each with the registers of a ring of descriptors, which the board fetches\n");
	printf("ring: descriptors of %" PRIu32 " bytes%s\n", f->descriptor_size,
	       f->flags & RASHPA_FETCH_CLOSED ? ", the last one leads to the first" : "");
	print_parts("descriptor", p->table.field, f->n_fields);
	print_parts("registers", p->table.reg, f->n_registers);
}

static uint64_t entries(const struct profile *p)
{
	return p->table.fetch.entries ? p->table.fetch.entries :
	       p->table.length / p->table.layout.stride;
}

static void print_profile(const struct profile *profile)
{
	const struct rashpa_layout *l = &profile->table.layout;

	printf("%s: %u windows, %u quiesce steps, %s\n", profile->name, profile->n_windows,
	       profile->n_steps, profile->has_table ? "an address table" : "no address table");
	if (!profile->has_table)
		return;
	if (profile->n_engines)
		printf("engines: %u, each of which is stopped without the others\n",
		       profile->n_engines);
	printf("table: %" PRIu64 " entries of %" PRIu32 " bytes", entries(profile), l->stride);
	if (profile->table.fetch.n_registers) {
		print_fetch(profile);
		return;
	}
	print_field("address", l->address_offset, l->address_bits);
	print_field("length", l->length_offset, l->length_bits);
	print_field("control", l->control_offset, l->control_bits);
	print_field("running sum", l->sum_offset, l->sum_bits);
	if (l->segment_size)
		printf(", segments of %" PRIu64 " bytes", (uint64_t)l->segment_size);
	putchar('\n');
}

static void put_profile(struct json_object *o, const struct profile *profile)
{
	put_text(o, "name", profile->name);
	put_u64(o, "windows", profile->n_windows);
	put_u64(o, "quiesce_steps", profile->n_steps);
	put_u64(o, "engines", profile->n_engines);
	put_table(o, profile);
}

/* Into the list, or as text. */
static void put_note(struct json_object *list, const char *note)
{
	if (list)
		json_object_array_add(list, json_object_new_string(note));
	else
		printf("note: %s\n", note);
}

static bool outlasts(const struct rashpa_profile_step *s, unsigned int n, uint32_t us)
{
	while (n && s[n - 1].timeout_us <= us)
		n--;
	return n;
}

/* The driver takes these, but they are probably mistakes. */
static void put_notes(struct json_object *list, const struct profile *p)
{
	const uint32_t us = p->quiesce_us ? p->quiesce_us : DEFAULT_QUIESCE_US;
	const struct rashpa_fetch *f = &p->table.fetch;
	bool late = outlasts(p->step, p->n_steps, us);

	for (unsigned int i = 0; i < p->n_engines; i++)
		late |= outlasts(p->engine[i].step, p->engine[i].n_steps, us);
	if (!p->n_steps)
		put_note(list, "no quiesce: only a process with CAP_SYS_RAWIO can map memory for the board");
	if (!p->dma_bits)
		put_note(list, "no dma_bits: DMA goes to 32-bit addresses");
	if (late)
		put_note(list, "quiesce_ms ends a wait before its timeout_ms");
	if (f->flags & RASHPA_FETCH_PUSH && !(f->flags & RASHPA_FETCH_SPREAD) &&
	    f->max_descriptors != 1 && entries(p) > 1)
		put_note(list, "push: an entry takes all segments of a map: descriptors need spread, or max 1");
}

struct options {
	const char *path;
	bool schema;
};

enum { OPT_SCHEMA = 256 };

static const struct argp_option options[] = {
	{ "schema", OPT_SCHEMA, NULL, 0, "print the JSON Schema of profiles, for editors", 0 },
	OPTION_JSON,
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case OPT_SCHEMA:
		o->schema = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			return ARGP_ERR_UNKNOWN;
		o->path = arg;
		break;
	case ARGP_KEY_END:
		if (!o->path == !o->schema)
			argp_error(state, "give FILE, or --schema");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cmd_profile(int argc, char **argv)
{
	static const struct argp argp = { .options = options, .parser = parse };
	static struct profile profile;
	struct options o = {};
	struct json_object *top, *notes;
	char why[WHY_SIZE];

	command_parse(&argp, argc, argv, &o);
	if (o.schema) {
		fputs(profile_schema, stdout);
		return 0;
	}
	if (profile_load(&profile, o.path, why))
		return fail("%s", why);
	if (!command_json) {
		print_profile(&profile);
		put_notes(NULL, &profile);
		return 0;
	}
	top = json_object_new_object();
	put_profile(top, &profile);
	notes = json_object_new_array();
	json_object_object_add(top, "notes", notes);
	put_notes(notes, &profile);
	return json_finish(top);
}
