// SPDX-License-Identifier: LGPL-2.1-or-later
#include "poni.h"

#include <ctype.h>
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define rpu_real double
#include "arithmetic.h"
#include "say.h"

#define LINE	4096
#define LINES	1000

/* Detectors that a file only names. */
static const struct {
	const char *name;
	double pixel;
} known[] = {
	{ "Jungfrau", 0.000075 }, { "Eiger", 0.000075 }, { "Pilatus", 0.000172 },
};

static bool number(const char *text, double *value)
{
	char *end;

	errno = 0;
	*value = strtod(text, &end);
	return end != text && !*end && !errno && isfinite(*value);
}

/* The pixels' size in Detector_config; orientations other than the usual one turn the image. */
static int read_config(const char *path, const char *text, struct rpu_poni *p, char *why)
{
	struct json_object *config = json_tokener_parse(text), *value;
	int result = 0;

	if (!json_object_is_type(config, json_type_object))
		result = because(why, -1, "%s: Detector_config is not an object of JSON", path);
	if (!result && json_object_object_get_ex(config, "orientation", &value) &&
	    json_object_get_int(value) != 3 && json_object_get_int(value) != 0)
		result = because(why, -1, "%s: orientation %d of the detector: only 3 is known; turn images by the stage assemble",
				 path, json_object_get_int(value));
	if (!result && json_object_object_get_ex(config, "pixel1", &value))
		p->pixel1 = json_object_get_double(value);
	if (!result && json_object_object_get_ex(config, "pixel2", &value))
		p->pixel2 = json_object_get_double(value);
	json_object_put(config);
	return result;
}

static int take(const char *path, const char *key, const char *value, struct rpu_poni *p, char *why)
{
	const struct {
		const char *key;
		double *to;
	} numbers[] = {
		{ "PixelSize1", &p->pixel1 }, { "PixelSize2", &p->pixel2 },
		{ "Distance", &p->distance }, { "Poni1", &p->poni1 }, { "Poni2", &p->poni2 },
		{ "Rot1", &p->rotation[0] }, { "Rot2", &p->rotation[1] },
		{ "Rot3", &p->rotation[2] }, { "Wavelength", &p->wavelength },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(numbers[i].key, key))
			continue;
		if (!strcmp(value, "None") && numbers[i].to == &p->wavelength)
			return 0;
		return number(value, numbers[i].to) ? 0 :
		       because(why, -1, "%s: %s: \"%s\" is not a number", path, key, value);
	}
	if (!strcmp(key, "Detector_config"))
		return read_config(path, value, p, why);
	for (size_t i = 0; !strcmp(key, "Detector") && i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strncmp(value, known[i].name, strlen(known[i].name)))
			p->pixel1 = p->pixel2 = known[i].pixel;
	}
	if ((!strcmp(key, "SplineFile") || !strcmp(key, "splineFile")) && strcmp(value, "None"))
		return because(why, -1, "%s: detectors with a spline are not known", path);
	return 0;	/* versions to come may say more */
}

/* Without blanks at both ends. */
static char *trimmed(char *text)
{
	char *end;

	text += strspn(text, " \t\r\n");
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return text;
}

int rpu_poni_read(const char *path, struct rpu_poni *p, char *why)
{
	FILE *file = fopen(path, "re");
	unsigned int lines = 0;
	char line[LINE];
	int result = 0;

	*p = (struct rpu_poni) { .distance = NAN, .poni1 = NAN, .poni2 = NAN };
	if (!file)
		return because(why, -1, "%s: %s", path, strerror(errno));
	while (!result && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (++lines > LINES || (!strchr(line, '\n') && !feof(file))) {
			result = because(why, -1, "%s: lines are too long, or too many", path);
		} else if (*trimmed(line) != '#' && colon) {
			*colon = '\0';
			result = take(path, trimmed(line), trimmed(colon + 1), p, why);
		}
	}
	if (!result && ferror(file))
		result = because(why, -1, "%s: %s", path, strerror(errno));
	fclose(file);
	if (result)
		return result;
	if (isnan(p->distance) || isnan(p->poni1) || isnan(p->poni2))
		return because(why, -1, "%s: Distance, Poni1 or Poni2 is missing: is it a file of pyFAI?",
			       path);
	if (!(p->distance > 0) || !(p->pixel1 > 0) || !(p->pixel2 > 0))
		return because(why, -1, "%s: the distance, and the size of pixels (Detector_config: pixel1, pixel2), must be more than 0",
			       path);
	if (p->wavelength < 0)
		return because(why, -1, "%s: the wavelength is negative", path);
	return 0;
}

void rpu_view_begin(struct rpu_view *v)
{
	for (unsigned int i = 0; i < 3; i++) {
		v->sin[i] = sin(v->poni.rotation[i]);
		v->cos[i] = cos(v->poni.rotation[i]);
	}
}

double rpu_radius(const struct rpu_view *v, double y, double x)
{
	const double p1 = y * v->poni.pixel1 - v->poni.poni1;
	const double p2 = x * v->poni.pixel2 - v->poni.poni2;
	const double t1 = rpu_t1(p1, p2, v->poni.distance, v->sin[0], v->cos[0], v->sin[1],
				 v->cos[1], v->sin[2], v->cos[2]);
	const double t2 = rpu_t2(p1, p2, v->poni.distance, v->sin[0], v->cos[0], v->sin[1],
				 v->cos[1], v->sin[2], v->cos[2]);
	const double t3 = rpu_t3(p1, p2, v->poni.distance, v->sin[0], v->cos[0], v->sin[1],
				 v->cos[1]);
	const double across = hypot(t1, t2), tth = atan2(across, t3);

	switch (v->unit) {
	case RPU_TTH_DEG:
		return tth * 180 / M_PI;
	case RPU_Q_NM:
		return 0.000000004 * M_PI / v->poni.wavelength * sin(tth / 2);
	case RPU_Q_A:
		return 0.0000000004 * M_PI / v->poni.wavelength * sin(tth / 2);
	default:
		return 1000 * across;
	}
}
