// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Print the mean of each frame of a stream: consumer BUFFER */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <rashpa.h>
#include <rashpa-stream.h>

static double mean(const struct rashpa_stack *st, uint32_t image)
{
	const uint16_t *pixel = rashpa_stack_pixels(st, image);
	uint64_t sum = 0, n = (uint64_t)st->width * st->height;

	for (uint64_t i = 0; i < n; i++)	/* this example expects lines without padding */
		sum += pixel[i];
	return (double)sum / n;
}

int main(int argc, char **argv)
{
	struct rashpa_stream *s;
	struct rashpa_stack st;
	int result;

	if (rashpa_stream_open(argc > 1 ? argv[1] : "ring0", 0, &s))
		errx(1, "%s", rashpa_reason());
	while ((result = rashpa_stream_next(s, &st, -1)) > 0) {
		for (uint32_t i = 0; i < st.images; i++)
			printf("%" PRIu64 " %.3f\n", st.frame + i, mean(&st, i));
		rashpa_stream_release(s, &st);
	}
	if (result < 0)
		errx(1, "%s", rashpa_reason());
	rashpa_stream_close(s);
	return 0;
}
