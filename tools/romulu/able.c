// SPDX-License-Identifier: LGPL-2.1-or-later
/* What this receiver can, for who plans: measured, on this machine and now. */
#include <stdlib.h>
#include <unistd.h>

#include "common/geometry.h"
#include "common/json-out.h"
#include "daemon/led.h"
#include <rashpa-processing.h>
#include "romulu/romulu.h"
#include "common/say.h"

#define WIDTH		1024
#define HEIGHT		1024
#define MEASURE_NS	100000000ull

/* Bytes of raw images that a pipeline of nothing else makes floating numbers of; 0: it cannot. */
static double measure(const char *name)
{
	const struct rashpa_geometry geometry = {
		.width = WIDTH, .height = HEIGHT, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	};
	uint16_t *image = calloc((size_t)WIDTH * HEIGHT, sizeof(*image));
	struct rashpa_pipeline *pipeline = NULL;
	struct rashpa_result *result = NULL;
	uint64_t begin, images = 0;
	double rate = 0;

	if (!image || rashpa_pipeline_open("{}", name, &pipeline) ||
	    rashpa_pipeline_begin(pipeline, &geometry))
		goto out;
	result = rashpa_result_new(pipeline);
	/* the first image finds nothing in caches, and threads that are not there */
	if (!result || rashpa_pipeline_run(pipeline, image, WIDTH * sizeof(*image), result) < 0)
		goto out;
	begin = now_ns();
	do {
		if (rashpa_pipeline_run(pipeline, image, WIDTH * sizeof(*image), result) < 0)
			goto out;
		images++;
	} while (now_ns() - begin < MEASURE_NS);
	rate = images * 1e9 * WIDTH * HEIGHT * sizeof(*image) / (now_ns() - begin);
out:
	rashpa_result_free(result);
	rashpa_pipeline_close(pipeline);
	free(image);
	return rate;
}

void tell_able(void)
{
	static const char * const names[] = { "cpu", "reference" };
	struct json_object *o = json_object_new_object(), *engines = json_object_new_array();

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct json_object *engine = json_object_new_object();

		put_text(engine, "name", names[i]);
		put_int(engine, "threads", i ? 1 : sysconf(_SC_NPROCESSORS_ONLN));
		put_u64(engine, "bytes_per_second", measure(names[i]));
		json_object_array_add(engines, engine);
	}
	json_object_object_add(o, "engines", engines);
	led_say("able", o);
}
