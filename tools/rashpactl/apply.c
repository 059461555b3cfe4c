// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl apply: create the configured buffers and bind the configured boards */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rashpactl/bind.h"
#include "rashpactl/config.h"
#include "common/fpga.h"
#include "rashpactl/journal.h"
#include "common/json-out.h"
#include <rashpa.h>

struct apply {
	const char *fpga;	/* apply only the profile of this function; NULL: everything */
	bool check;
	struct json_object *buffers, *boards;
	int result;
};

enum { OPT_CHECK = 256 };

static const struct argp_option options[] = {
	{ "check", OPT_CHECK, NULL, 0, "read the files, change nothing", 0 },
	OPTION_JSON,
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct apply *a = state->input;
	unsigned int number;

	switch (key) {
	case OPT_CHECK:
		a->check = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			return ARGP_ERR_UNKNOWN;
		if (!parse_fpga(arg, &number))
			argp_error(state, "\"%s\" is not fpgaN", arg);
		a->fpga = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* The journal gets what the line is about as a field; the line before gives the reason. */
static void tell_failure(const char *file, const char *field, const char *kind, const char *name,
			 const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "%s=%s", field, name);
	if (!journal_line(LOG_ERR, text, "%s: %s%s is not %s", file, kind, name, what))
		say("%s: %s%s is not %s", file, kind, name, what);
}

/* --- buffers --- */

static void tell_buffer(struct apply *a, const struct create *c)
{
	struct json_object *o;
	char size[SIZE_TEXT], field[RASHPA_NAME_SIZE + 16];

	if (!a->check && !command_json) {
		snprintf(field, sizeof(field), "RASHPA_BUFFER=%s", c->alloc.name);
		if (!journal_line(LOG_INFO, field, "buffer %s: %s%s", c->alloc.name,
				  format_size(size, c->alloc.out_length),
				  c->existed ? ", existed" : ""))
			create_tell(c);
	} else if (!command_json) {
		printf("buffer %s: %s\n", c->alloc.name, format_size(size, c->alloc.length));
	} else if (a->check) {
		o = json_object_new_object();
		put_text(o, "name", c->alloc.name);
		put_u64(o, "length_bytes", c->alloc.length);
		json_object_array_add(a->buffers, o);
	} else {
		json_object_array_add(a->buffers, create_json(c));
	}
}

static void apply_buffers(struct apply *a, struct config *config)
{
	int memory = -1;

	if (!a->check && config->n_buffers) {
		memory = rashpa_memory_open();
		if (memory < 0) {
			a->result = fail("%s", rashpa_reason());
			return;
		}
	}
	for (unsigned int i = 0; i < config->n_buffers; i++) {
		struct create *c = &config->buffer[i].create;

		if (!a->check && create_buffer(memory, c)) {
			tell_failure(config->buffer[i].file, "RASHPA_BUFFER", "the buffer ",
				     c->alloc.name, "there");
			a->result = EXIT_FAILED;
		} else {
			tell_buffer(a, c);
		}
	}
	if (memory >= 0)
		close(memory);
}

/* --- boards --- */

static void tell_board(struct apply *a, const struct config_board *board,
		       const struct pci_function *f)
{
	struct json_object *o;
	char field[32];

	if (!command_json) {
		snprintf(field, sizeof(field), "RASHPA_BOARD=fpga%d", f ? f->fpga : -1);
		if (f && journal_line(LOG_INFO, field, "%s: fpga%d", f->bdf, f->fpga))
			return;
		if (f)
			printf("%s: fpga%d\n", f->bdf, f->fpga);
		else
			printf("board %s%s\n", board->what, board->take ? ", from any driver" : "");
		return;
	}
	o = json_object_new_object();
	put_text(o, "function", board->what);
	put_bool(o, "take", board->take);
	if (f) {
		put_node(o, f->fpga);
		put_text(o, "bdf", f->bdf);
	}
	json_object_array_add(a->boards, o);
}

static bool is_meant(const struct config_board *board, const struct pci_function *f)
{
	if (*board->bdf)
		return !strcmp(board->bdf, f->bdf);
	return board->vendor == f->vendor && board->device == f->device;
}

static int bind_board(const struct config_board *board, struct pci_function *f)
{
	static struct profile profile;
	const struct bind bind = {
		.what = f->bdf,
		.profile = *board->profile ? board->profile : NULL,
		.force = board->take,
		.exist_ok = true,
	};
	bool profiled;

	return bind_function(&bind, f, &profile, &profiled);
}

/*
 * Functions with these ids that are plugged in later also come to the driver, unless another
 * driver takes them; udev then applies their profile (70-rashpa.rules).
 */
static int add_ids(const struct config_board *board)
{
	char ids[32];
	int error;

	snprintf(ids, sizeof(ids), "%04" PRIx32 " %04" PRIx32, board->vendor, board->device);
	error = write_text(ids, PCI_DRIVER "/new_id");
	if (!error || error == -EEXIST)
		return 0;
	return fail("%s: the driver does not take the ids: %s%s", board->what, strerror(-error),
		    error == -ENOENT ? ": load it (modprobe rashpa)" :
		    error == -EACCES ? " (be root)" : "");
}

static void apply_board(struct apply *a, const struct config_board *board)
{
	struct pci_function *list;
	int n, seen = 0;

	if (!*board->bdf && add_ids(board)) {
		a->result = EXIT_FAILED;
		return;
	}
	n = pci_list(&list);
	for (int i = 0; i < n; i++) {
		if (!is_meant(board, &list[i]))
			continue;
		seen++;
		if (bind_board(board, &list[i])) {
			tell_failure(board->file, "RASHPA_FUNCTION", "", list[i].bdf, "bound");
			a->result = EXIT_FAILED;
		} else {
			tell_board(a, board, &list[i]);
		}
	}
	if (n >= 0)
		free(list);
	/* a board named by BDF must exist; one named by ids may be plugged in later */
	if (n < 0 || (!seen && *board->bdf))
		a->result = fail("%s: there is no PCI function %s", board->file, board->what);
}

/* Called by udev: apply the profile to a function that the kernel bound by its ids. */
static void apply_fpga(struct apply *a, const struct config *config)
{
	static const struct config_board none;
	const struct config_board *board = &none;
	struct pci_function *list, function = { .fpga = -1 };
	unsigned int number = 0;
	int n = pci_list(&list);

	parse_fpga(a->fpga, &number);
	for (int i = 0; i < n; i++) {
		if (list[i].fpga == (int)number)
			function = list[i];
	}
	if (n >= 0)
		free(list);
	if (function.fpga < 0) {
		a->result = fail("there is no %s: see rashpactl list", a->fpga);
		return;
	}
	for (unsigned int i = 0; i < config->n_boards; i++) {
		if (is_meant(&config->board[i], &function))
			board = &config->board[i];
	}
	if (bind_board(board, &function))
		a->result = EXIT_FAILED;
	else
		tell_board(a, board, &function);
}

int cmd_apply(int argc, char **argv)
{
	static const struct argp argp = { .options = options, .parser = parse };
	struct apply a = {};
	struct config config;
	struct json_object *o = NULL;

	command_parse(&argp, argc, argv, &a);
	if (command_json) {
		o = json_object_new_object();
		a.buffers = json_object_new_array();
		a.boards = json_object_new_array();
		json_object_object_add(o, "buffers", a.buffers);
		json_object_object_add(o, "boards", a.boards);
	}
	config_load(&config);
	if (config.broken)
		a.result = EXIT_FAILED;
	if (a.fpga) {
		apply_fpga(&a, &config);
	} else {
		apply_buffers(&a, &config);
		for (unsigned int i = 0; i < config.n_boards; i++) {
			if (a.check)
				tell_board(&a, &config.board[i], NULL);
			else
				apply_board(&a, &config.board[i]);
		}
	}
	config_free(&config);
	if (command_json && json_finish(o))
		return EXIT_FAILED;
	return a.result;
}
