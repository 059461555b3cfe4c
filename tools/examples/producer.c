// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Stream generated frames; all pixels of a frame have its number: producer BUFFER FRAMES */
#include <err.h>
#include <stdlib.h>
#include <rashpa.h>
#include <rashpa-stream.h>

int main(int argc, char **argv)
{
	struct rashpa_stream_process whole = { .width = 256, .height = 128 };
	struct rashpa_stream_plan plan = {
		.header = { .width = 256, .height = 128, .pixel = RASHPA_PIXEL_U16, .bunch = 8 },
		.process = &whole, .processes = 1,
	};
	struct rashpa_stream *s;
	struct rashpa_stack st;
	int result;

	plan.header.images = argc > 2 ? strtoull(argv[2], NULL, 0) : 1000;
	if (rashpa_stream_create(argc > 1 ? argv[1] : "ring0", &plan, &s) ||
	    rashpa_stream_start(s, 0, 0))
		errx(1, "%s", rashpa_reason());
	while ((result = rashpa_stream_slot(s, &st, -1)) > 0) {
		for (uint32_t i = 0; i < st.images; i++) {
			uint16_t *pixel = rashpa_stack_pixels(&st, i);

			for (uint32_t k = 0; k < st.width * st.height; k++)
				pixel[k] = st.frame + i;
		}
		rashpa_stream_publish(s, &st);
	}
	if (result < 0)
		errx(1, "%s", rashpa_reason());
	rashpa_stream_close(s);
	return 0;
}
