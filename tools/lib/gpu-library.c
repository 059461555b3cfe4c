// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: functions of a library that was loaded. */
#include "lib/gpu.h"

#include <dlfcn.h>
#include <string.h>

bool library_load(void *library, void *to, const struct library_function *f, size_t count)
{
	bool found = true;

	for (size_t i = 0; i < count; i++) {
		void *const pointer = dlsym(library, f[i].name);

		memcpy((char *)to + f[i].at, &pointer, sizeof(pointer));
		found = found && pointer;
	}
	return found;
}
