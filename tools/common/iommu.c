// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/iommu.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "common/text-file.h"

#define UNITS	"/sys/class/iommu"
#define GROUPS	"/sys/kernel/iommu_groups"

/* With iommu=pt there are groups, and their devices reach all memory nevertheless. */
static int is_translated(const char *root, const char *group)
{
	char type[32];

	return read_line(type, sizeof(type), "%s" GROUPS "/%s/type", root, group) &&
	       strcmp(type, "identity");
}

static int count(const char *root, const char *folder, int *translated)
{
	struct dirent *entry;
	char path[512];
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s%s", root, folder);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		n++;
		if (translated)
			*translated += is_translated(root, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return n;
}

void iommu_look(struct iommu *iommu, const char *root)
{
	*iommu = (struct iommu) {};
	iommu->units = count(root, UNITS, NULL);
	iommu->groups = count(root, GROUPS, &iommu->translated);
}
