// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fpga.h"
#include "common/json-out.h"
#include "common/parse.h"
#include "common/say.h"

#define DEPTH_MAX	(UINT64_C(1) << 48)

enum { OPT_PROGRESS = 1024, OPT_GEOMETRY, OPT_DARKS, OPT_DARK_EVERY };

static const struct argp_option options[] = {
	{ "buffer", 'b', "NAME", 0, "the same as BUFFER: the buffer of the stream (required)", 0 },
	{ "dataset", 'd', "FILE[:/PATH]|DIR|generate[:N[:SEED]]", 0,
	  "the images: HDF5 (PATH: which dataset of the file), raw ones, files raw*.bin or "
	  "raw*.bin.zst of a folder, or generated ones (default: $RASHPA_DATA/jungfrau if it "
	  "exists, else generate)", 0 },
	{ "geometry", OPT_GEOMETRY, "WxH[,u8|u16|u32]", 0,
	  "of raw and generated images (default: 1024x512,u16); others say it themselves", 0 },
	{ "images", 'n', "N[stacks]", 0, "end after N images, or stacks (default: no limit)", 0 },
	{ "timeout", 't', "SECONDS", 0, "give up after so long without progress", 0 },
	OPTION_JSON,
	{}
};

const struct argp_option stream_tunes[] = {
	{ "darks", OPT_DARKS, "DATASET", 0, "dark images between those of --dataset", 0 },
	{ "dark-every", OPT_DARK_EVERY, "N", 0, "the last one of N images is dark (default: 2, with darks)", 0 },
	{ "progress", OPT_PROGRESS, NULL, 0, "show progress although stderr is not a terminal", 0 },
	{}
};

void option_u32(struct argp_state *state, const char *what, const char *arg, uint32_t min,
		uint32_t max, uint32_t *value)
{
	if (!parse_u32(arg, value) || *value < min || *value > max)
		argp_error(state, "%s: \"%s\" is not a number from %" PRIu32 " to %" PRIu32,
			   what, arg, min, max);
}

bool value_set(const struct option_value *v, void *input, const char *arg)
{
	void *at = (char *)input + v->at;
	uint64_t number = 0;
	double real = 0;
	bool good;

	switch (v->kind) {
	case VALUE_FLAG:
		*(bool *)at = true;
		return true;
	case VALUE_TEXT:
		*(const char **)at = arg;
		return true;
	case VALUE_REAL:
		good = parse_real(arg, &real);
		break;
	case VALUE_SIZE32:
	case VALUE_SIZE:
		good = parse_size(arg, &number);
		break;
	default:
		good = parse_u64(arg, UINT64_MAX, &number);
	}
	if (v->kind != VALUE_REAL)
		real = number;
	if (!good || real < v->least || real > v->most ||
	    (v->kind == VALUE_POWER && number & (number - 1)))
		return false;
	if (v->kind == VALUE_REAL)
		*(double *)at = real;
	else if (v->kind == VALUE_U64 || v->kind == VALUE_SIZE)
		*(uint64_t *)at = number;
	else if (v->kind == VALUE_U8)
		*(uint8_t *)at = number;
	else if (v->kind == VALUE_U16)
		*(uint16_t *)at = number;
	else
		*(uint32_t *)at = number;
	return true;
}

error_t option_set(const struct option_value *v, int key, const char *arg, struct argp_state *state)
{
	const char *what;

	while (v->key && v->key != key)
		v++;
	if (!v->key)
		return ARGP_ERR_UNKNOWN;
	if (value_set(v, state->input, arg))
		return 0;
	what = v->kind == VALUE_POWER ? "power of two" :
	       v->kind == VALUE_SIZE || v->kind == VALUE_SIZE32 ? "size" : "number";
	if (v->most < 0x1p63)
		argp_error(state, "%s: \"%s\" is not a %s from %.15g to %.15g", v->name, arg, what, v->least, v->most);
	else
		argp_error(state, "%s: \"%s\" is not a %s of %.15g or more", v->name, arg, what, v->least);
	return 0;
}

uint32_t option_word(struct argp_state *state, const char *what, const char *arg, const char *words)
{
	const size_t length = strlen(arg);
	uint32_t n = 0;

	for (const char *w = words; w; n++) {
		if (!strncmp(w, arg, length) && (!w[length] || w[length] == '|'))
			return n;
		w = strchr(w, '|');
		w += !!w;
	}
	argp_error(state, "%s: \"%s\" is not %s", what, arg, words);
	return 0;
}

void option_fpga(struct argp_state *state, const char *what, const char *arg, unsigned int *number)
{
	if (!parse_fpga(arg, number))
		argp_error(state, "%s: \"%s\" is not fpgaN: see rashpactl list", what, arg);
}

void tool_begin(int argc, char **argv)
{
	static char help[] = "--help";

	argp_err_exit_status = EXIT_USAGE;
	check_output_at_exit();
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "-h"))
			argv[i] = help;
	}
}

bool option_tunes(const struct tune *tune, const char *name)
{
	for (; tune->rows; tune++) {
		for (const struct argp_option *row = tune->rows; row->name; row++) {
			if (!strcmp(row->name, name))
				return true;
		}
	}
	return false;
}

static void list_tunes(const struct tune *tune)
{
	for (; tune->rows; tune++) {
		for (const struct argp_option *row = tune->rows; row->name; row++)
			printf("%s%s%s\n\t%s\n", row->name, row->arg ? "=" : "", row->arg ?: "", row->doc);
	}
	exit(EXIT_SUCCESS);
}

error_t option_tune(struct argp_state *state, char *arg, const struct tune *tune)
{
	const size_t length = strcspn(arg, "=");
	char *value = arg[length] ? arg + length + 1 : NULL;

	if (!strcmp(arg, "help"))
		list_tunes(tune);
	for (; tune->rows; tune++) {
		for (const struct argp_option *row = tune->rows; row->name; row++) {
			void *input = state->input;
			error_t err;

			if (strncmp(row->name, arg, length) || row->name[length])
				continue;
			if (!row->arg != !value)
				argp_error(state, "--tune %s %s", row->name,
					   value ? "takes no value" : "needs a value, as KEY=VALUE");
			state->input = tune->input;
			err = tune->parse(row->key, value, state);
			state->input = input;
			return err;
		}
	}
	argp_error(state, "--tune: \"%.*s\" is not one of those that --tune help lists", (int)length, arg);
	return EINVAL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct stream_options *o = state->input;

	switch (key) {
	case 'b':
		o->buffer = arg;
		break;
	case 'd':
		o->dataset = arg;
		break;
	case OPT_GEOMETRY:
		if (!parse_geometry(arg, &o->geometry))
			argp_error(state, "--geometry: \"%s\" is not WxH or WxH,u8|u16|u32, of 1 to 65536 pixels a side",
				   arg);
		break;
	case OPT_DARKS:
		o->darks = arg;
		break;
	case OPT_DARK_EVERY:
		option_u32(state, "dark-every", arg, 2, 1 << 20, &o->dark_every);
		break;
	case 'n':
		if (!parse_depth(arg, DEPTH_MAX, &o->images))
			argp_error(state, "--images: \"%s\" is not a number of images, or of stacks (as 100stacks)",
				   arg);
		break;
	case 't':
		if (!parse_real(arg, &o->timeout))
			argp_error(state, "--timeout: \"%s\" is not a number of seconds", arg);
		break;
	case 'j':
		o->json = true;
		json_to(arg);
		break;
	case OPT_PROGRESS:
		o->progress = true;
		break;
	case ARGP_KEY_ARG:
		if (o->buffer)
			argp_error(state, "\"%s\" is an unexpected argument: write an optional value after =, as in --json=FILE",
				   arg);
		o->buffer = arg;
		break;
	case ARGP_KEY_SUCCESS:	/* behind the end of the tool's own parser */
		if (!o->buffer && !o->without_buffer)
			argp_error(state, "the buffer is missing: use --buffer NAME");
		if (o->dark_every && !o->darks)
			argp_error(state, "--tune dark-every requires --tune darks=DATASET");
		if (!o->dark_every)
			o->dark_every = 2;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

const struct argp stream_argp = { .options = options, .parser = parse, .args_doc = "[BUFFER]" };
