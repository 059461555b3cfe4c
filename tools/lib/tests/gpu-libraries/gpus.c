// SPDX-License-Identifier: LGPL-2.1-or-later
/* What rashpactl doctor says of GPUs: gpus ROOT, where /sys and /proc of another machine are. */
#include <stdio.h>

#include "rashpactl/gpus.h"

int main(int argc, char **argv)
{
	static const char * const verdicts[] = {
		[GPU_GIVES] = "gives", [GPU_NOTE] = "note", [GPU_OTHER] = "other",
	};
	struct gpu gpu[8];
	const unsigned int n = gpus_look(gpu, 8, argc > 1 ? argv[1] : "");

	for (unsigned int i = 0; i < n && i < 8; i++) {
		enum gpu_verdict verdict;
		const char *remedy;
		char text[512], why[256];

		gpu_ask(&gpu[i], why, sizeof(why));
		verdict = gpu_judge(&gpu[i], true, text, sizeof(text), &remedy);
		printf("%s: %s%s%s%s%s\n", verdicts[verdict], text, *why ? "; " : "", why,
		       remedy ? " -> " : "", remedy ? remedy : "");
	}
	return !n;
}
