// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the running kernel and its modules tell about themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "rashpactl.h"

static FILE *open_config(void)
{
	static const char *const paths[] = { "/boot/config-%s", "/lib/modules/%s/config" };
	struct utsname uts;
	FILE *file = NULL;
	char *path;

	uname(&uts);
	for (size_t i = 0; !file && i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (asprintf(&path, paths[i], uts.release) < 0)
			return NULL;
		file = fopen(path, "re");
		free(path);
	}
	return file;
}

char kernel_config(const char *name)
{
	char *line = NULL;
	size_t room = 0, length = strlen(name);
	FILE *file = open_config();
	char result = 'n';

	if (!file)
		return 0;
	while (getline(&line, &room, file) > 0) {
		if (!strncmp(line, name, length) && line[length] == '=')
			result = line[length + 1];
	}
	free(line);
	fclose(file);
	return result;
}

uint64_t meminfo(const char *key)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];
	size_t length = strlen(key);

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, key, length) && line[length] == ':')
			sscanf(line + length + 1, "%llu", &kib);
	}
	if (file)
		fclose(file);
	return kib << 10;
}

bool module_parameter(char *buf, size_t size, const char *name)
{
	return read_line(buf, size, "/sys/module/rashpa/parameters/%s", name);
}
