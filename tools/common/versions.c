// SPDX-License-Identifier: LGPL-2.1-or-later
#include "versions.h"

#include <stdio.h>
#include <string.h>

enum versions_verdict versions_judge(const struct versions *v, char *text, size_t size,
				     const char **remedy)
{
	const char *loaded = *v->loaded ? v->loaded : "not told";

	*remedy = NULL;
	if (strcmp(v->loaded, v->tools)) {
		snprintf(text, size, "loaded, version %s, but the tools are %s%s%s", loaded,
			 v->tools, *v->file ? ", and the module that is installed is " : "",
			 v->file);
		if (!strcmp(v->file, v->tools)) {
			*remedy = "stop what uses boards, rashpactl buffer remove all buffers, then modprobe -r rashpa; modprobe rashpa; rashpactl apply; or reboot";
			return VERSIONS_RELOAD;
		}
		*remedy = "install driver and tools of one version: upgrade rashpa-dkms, or make install; dkms status rashpa tells what was built";
		return VERSIONS_INSTALL;
	}
	if (*v->loaded_source && *v->file_source && strcmp(v->loaded_source, v->file_source)) {
		snprintf(text, size, "loaded, version %s, but another build of it than the one that is installed",
			 loaded);
		*remedy = "it is loaded at the next boot, or by modprobe -r rashpa; modprobe rashpa";
		return VERSIONS_RELOAD;
	}
	snprintf(text, size, "loaded, version %s", loaded);
	return VERSIONS_SAME;
}
