// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/versions.h"

#include <stdio.h>
#include <string.h>

static const char *const remedies[] = {
	[VERSIONS_RELOAD] =
		"stop what uses boards, rashpactl buffer remove all buffers, then modprobe -r rashpa; modprobe rashpa; rashpactl apply; or reboot",
	[VERSIONS_INSTALL] =
		"install driver and tools of one version: upgrade rashpa-dkms, or make install; dkms status rashpa lists the built modules",
};

enum versions_verdict versions_judge(const struct versions *v, char *text, size_t size,
				     const char **remedy)
{
	const char *loaded = *v->loaded ? v->loaded : "not told";
	enum versions_verdict verdict = VERSIONS_SAME;

	if (strcmp(v->loaded, v->tools)) {
		verdict = strcmp(v->file, v->tools) ? VERSIONS_INSTALL : VERSIONS_RELOAD;
		snprintf(text, size, "loaded, version %s, but the tools are %s%s%s", loaded,
			 v->tools, *v->file ? ", and the module that is installed is " : "",
			 v->file);
	} else if (*v->loaded_source && *v->file_source &&
		   strcmp(v->loaded_source, v->file_source)) {
		verdict = VERSIONS_RELOAD;
		snprintf(text, size,
			 "loaded, version %s, but another build of it than the one that is installed",
			 loaded);
	} else {
		snprintf(text, size, "loaded, version %s", loaded);
	}
	*remedy = remedies[verdict];
	return verdict;
}
