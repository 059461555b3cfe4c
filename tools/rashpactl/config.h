/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Buffers and boards to set up at every boot: /etc/rashpa/buffers.d, boards.d. */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "rashpactl/create.h"
#include "common/path.h"

struct config_buffer {
	struct create create;
	const char *file;
};

struct config_board {
	char what[BDF_SIZE];		/* as written in the file */
	char bdf[BDF_SIZE];		/* empty: all functions with these ids: */
	uint32_t vendor, device;
	char profile[512];		/* empty: found by the ids */
	bool take;			/* even from another driver */
	const char *file;
};

struct config {
	struct config_buffer *buffer;
	struct config_board *board;
	unsigned int n_buffers, n_boards;
	char **path;			/* names of files, used by entries */
	unsigned int n_paths;
	unsigned int broken;		/* files that could not be read and were reported */
};

/*
 * All files *.conf of the folders buffers.d and boards.d below $RASHPA_CONFIG (default
 * /etc/rashpa), in order of their names. Errors are reported; the rest is loaded.
 */
void config_load(struct config *config);
void config_free(struct config *config);

#endif /* CONFIG_H */
