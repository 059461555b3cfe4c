// SPDX-License-Identifier: LGPL-2.1-or-later
#include "processing/sink.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "processing/poni.h"
#include "common/say.h"

#define EV_ANGSTROM	12398.419843320026

void rpu_time_text(char to[RPU_TIME])
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(to, RPU_TIME, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(to + n, RPU_TIME - n, ".%03ldZ", now.tv_nsec / 1000000);
}

static bool ever_valid(const struct rashpa_pipeline *p, size_t pixel)
{
	for (unsigned int i = 0; i < RPU_STAGES; i++) {
		if (p->used[i] && rpu_stages[i]->valid && !rpu_stages[i]->valid(p, pixel))
			return false;
	}
	return true;
}

/* An image of which only that is known goes the way of all images. */
int rpu_mask(const struct rashpa_pipeline *p, uint32_t *mask)
{
	const size_t n = (size_t)p->geometry.width * p->geometry.height, pixels = rpu_pixels(p);
	float *image = rpu_memory(n, sizeof(*image)), *result = rpu_memory(pixels, sizeof(*result));
	int any = -1;

	if (!image || !result)
		goto out;
	for (size_t i = 0; i < n; i++)
		image[i] = ever_valid(p, i) ? 0 : NAN;
	if (p->used[RPU_ASSEMBLE]) {
		p->engine->assemble(&p->assemble.map, image,
				    p->assemble.fine ? p->assemble.fine : result);
		if (p->assemble.fine)
			p->engine->bin(&p->assemble.bin, p->assemble.fine, result);
	} else {
		memcpy(result, image, n * sizeof(*result));
	}
	any = 0;
	for (size_t i = 0; i < pixels; i++) {
		mask[i] = isnan(result[i]) ? RPU_MASKED : 0;
		any |= isnan(result[i]);
	}
out:
	free(image);
	free(result);
	return any;
}

bool rpu_is_whole(const struct rashpa_pipeline *p)
{
	for (unsigned int i = 0; i < RPU_STAGES; i++) {
		const struct rpu_stage *stage = rpu_stages[i];

		if (p->used[i] && stage->changes && !(stage->whole && stage->whole(p)))
			return false;
	}
	return true;
}

void rpu_whole_numbers(const float *from, size_t n, int32_t *to)
{
	for (size_t i = 0; i < n; i++)
		to[i] = isnan(from[i]) ? RPU_NO_NUMBER : from[i] >= 0x1p31f ? INT32_MAX :
			from[i] <= -0x1p31f ? RPU_NO_NUMBER + 1 : (int32_t)from[i];
}

/* pyFAI turns the detector about the axes 1, 2, 3: the beam is where 1 and 2 have brought it to. */
void rpu_know(const struct rashpa_pipeline *p, struct rpu_known *known)
{
	const char *path = *p->integrate.poni ? p->integrate.poni : p->peaks.poni;
	const double *turn;
	char why[WHY_SIZE];
	struct rpu_poni g;

	*known = (struct rpu_known) { .ev = p->pretreat.photon_energy_kev * 1000 };
	if (known->ev)
		known->angstrom = EV_ANGSTROM / known->ev;
	if (!*path || rpu_poni_read(path, &g, why))
		return;
	turn = g.rotation;
	known->place = true;
	known->distance = g.distance / (cos(turn[0]) * cos(turn[1]));
	known->beam_x = (g.poni2 - g.distance * tan(turn[0])) / g.pixel2;
	known->beam_y = (g.poni1 + g.distance * tan(turn[1]) / cos(turn[0])) / g.pixel1;
	known->pixel_x = g.pixel2;
	known->pixel_y = g.pixel1;
	if (!known->ev && g.wavelength > 0) {
		known->angstrom = g.wavelength * 1e10;
		known->ev = EV_ANGSTROM / known->angstrom;
	}
}
