/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Does the module that is loaded go with the tools, and with the file it would be loaded from? */
#ifndef VERSIONS_H
#define VERSIONS_H

#include <stddef.h>

#define VERSION_SIZE	64

struct versions {
	const char *tools;
	/* versions of the module; empty: not known, or no module */
	char loaded[VERSION_SIZE], file[VERSION_SIZE];
	/* checksums of the sources by the kernel's build: two of one version may differ */
	char loaded_source[VERSION_SIZE], file_source[VERSION_SIZE];
};

enum versions_verdict { VERSIONS_SAME, VERSIONS_RELOAD, VERSIONS_INSTALL };

/* A sentence for text; *remedy is what to do, or NULL. */
enum versions_verdict versions_judge(const struct versions *v, char *text, size_t size,
				     const char **remedy);

#endif /* VERSIONS_H */
