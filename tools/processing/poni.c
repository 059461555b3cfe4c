// SPDX-License-Identifier: LGPL-2.1-or-later
#include "processing/poni.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define rpu_real double
#include "processing/arithmetic.h"
#include "common/say.h"

#define LINE	4096
#define LINES	1000
#define FAR	1000000		/* metres, radians: larger ones could become infinite */
#define NEAR	0.000000001	/* metres: no length is smaller */
#define SHORTEST	(NEAR * NEAR)	/* wavelength */

/* Detectors that a file only names; the first that begins so. */
static const struct {
	const char *name;
	double pixel;
} known[] = {
	{ "Jungfrau", 0.000075 }, { "Eiger", 0.000075 }, { "Pilatus4", 0.00015 },
	{ "Pilatus", 0.000172 },
};

/* Content of a file. The last of repeated lines counts, since pyFAI appends to files. */
struct lines {
	struct rpu_poni p;
	double version;			/* NaN: not told */
	double pixel1, pixel2;		/* of version 1 */
	char detector[64];
	bool config;			/* there is one: pixel sizes and shape are in p */
};

/* With a point, wherever the program is: the user's language may have a comma. */
static bool number(const char *text, double *value)
{
	const locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	char *end;

	if (!c)
		return false;
	errno = 0;
	*value = strtod_l(text, &end, c);
	freelocale(c);
	return end != text && !*end && !errno && fabs(*value) <= FAR;
}

static int read_size(const char *path, struct json_object *config, const char *key, double *to,
		     char *why)
{
	struct json_object *value;

	*to = 0;
	if (!json_object_object_get_ex(config, key, &value) || !value)
		return 0;
	if (!json_object_is_type(value, json_type_double) &&
	    !json_object_is_type(value, json_type_int))
		return because(why, -1, "%s: Detector_config: %s is not a number", path, key);
	*to = json_object_get_double(value);
	return 0;
}

static int read_shape(const char *path, struct json_object *config, struct rpu_poni *p, char *why)
{
	struct json_object *shape;
	int64_t side[2];

	p->width = p->height = 0;
	if (!json_object_object_get_ex(config, "max_shape", &shape) || !shape)
		return 0;
	for (size_t i = 0; i < 2; i++) {
		struct json_object *value = json_object_is_type(shape, json_type_array) ?
					    json_object_array_get_idx(shape, i) : NULL;

		side[i] = json_object_is_type(value, json_type_int) ?
			  json_object_get_int64(value) : 0;
		if (side[i] < 1 || side[i] > INT32_MAX)
			return because(why, -1, "%s: Detector_config: max_shape is not [height, width]",
				       path);
	}
	p->height = side[0];
	p->width = side[1];
	return 0;
}

/* All of the text, or nothing. */
static struct json_object *parse(const char *text)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *root;

	if (!tokener)
		return NULL;
	/* the final NUL tells the parser that this is all */
	root = json_tokener_parse_ex(tokener, text, strlen(text) + 1);
	if (json_tokener_get_error(tokener) != json_tokener_success ||
	    json_tokener_get_parse_end(tokener) < strlen(text)) {
		json_object_put(root);
		root = NULL;
	}
	json_tokener_free(tokener);
	return root;
}

/* Orientations other than the usual one turn the image. */
static int read_config(const char *path, const char *text, struct rpu_poni *p, char *why)
{
	struct json_object *config = parse(text), *value;
	int result = 0;

	if (!json_object_is_type(config, json_type_object))
		result = because(why, -1, "%s: Detector_config is not an object of JSON", path);
	if (!result && json_object_object_get_ex(config, "orientation", &value) && value &&
	    (!json_object_is_type(value, json_type_int) ||
	     (json_object_get_int(value) != 3 && json_object_get_int(value) != 0)))
		result = because(why, -1, "%s: orientation %.20s of the detector: only 3 is known; turn images by the stage assemble",
				 path, json_object_get_string(value));
	if (!result && json_object_object_get_ex(config, "splineFile", &value) && value)
		result = because(why, -1, "%s: detectors with a spline are not known", path);
	if (!result)
		result = read_size(path, config, "pixel1", &p->pixel1, why);
	if (!result)
		result = read_size(path, config, "pixel2", &p->pixel2, why);
	if (!result)
		result = read_shape(path, config, p, why);
	json_object_put(config);
	return result;
}

/* pyFAI does not care for the case of keys. */
static int take(const char *path, const char *key, const char *value, struct lines *l, char *why)
{
	const struct {
		const char *key;
		double *to;
	} numbers[] = {
		{ "poni_version", &l->version },
		{ "PixelSize1", &l->pixel1 }, { "PixelSize2", &l->pixel2 },
		{ "Distance", &l->p.distance }, { "dist", &l->p.distance },
		{ "Poni1", &l->p.poni1 }, { "Poni2", &l->p.poni2 },
		{ "Rot1", &l->p.rotation[0] }, { "Rot2", &l->p.rotation[1] },
		{ "Rot3", &l->p.rotation[2] }, { "Wavelength", &l->p.wavelength },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcasecmp(numbers[i].key, key))
			continue;
		if (!strcmp(value, "None") && numbers[i].to == &l->p.wavelength) {
			l->p.wavelength = 0;
			return 0;
		}
		return number(value, numbers[i].to) ? 0 :
		       because(why, -1, "%s: %s: \"%s\" is not a number of up to a million", path,
			       key, value);
	}
	if (!strcasecmp(key, "Detector_config")) {
		l->config = true;
		return read_config(path, value, &l->p, why);
	}
	if (!strcasecmp(key, "Detector"))
		snprintf(l->detector, sizeof(l->detector), "%s", value);
	if (!strcasecmp(key, "SplineFile") && strcasecmp(value, "None"))
		return because(why, -1, "%s: detectors with a spline are not known", path);
	return 0;	/* files may say more */
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

static int read_lines(const char *path, FILE *file, struct lines *l, char *why)
{
	unsigned int lines = 0;
	char line[LINE];
	int result = 0;

	while (!result && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (++lines > LINES || (!strchr(line, '\n') && !feof(file))) {
			result = because(why, -1, "%s: lines are too long, or too many", path);
		} else if (*trimmed(line) != '#' && colon) {
			*colon = '\0';
			result = take(path, trimmed(line), trimmed(colon + 1), l, why);
		}
	}
	if (!result && ferror(file))
		result = because(why, -1, "%s: %s", path, strerror(errno));
	return result;
}

/* What version 1 says of pixels, or else what everybody knows of the detector. */
static void find_pixels(struct lines *l)
{
	struct rpu_poni *p = &l->p;

	if (!l->config) {
		p->pixel1 = l->pixel1;
		p->pixel2 = l->pixel2;
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strncasecmp(l->detector, known[i].name, strlen(known[i].name)))
			continue;
		p->pixel1 = p->pixel1 ? p->pixel1 : known[i].pixel;
		p->pixel2 = p->pixel2 ? p->pixel2 : known[i].pixel;
		break;
	}
	p->chips_of_256 = !strcasecmp(l->detector, "Jungfrau") ||
			  !strcasecmp(l->detector, "Jungfrau 500k") ||
			  !strcasecmp(l->detector, "Jungfrau500k");
}

static bool is_length(double value, double smallest)
{
	return value >= smallest && value <= FAR;
}

int rpu_poni_read(const char *path, struct rpu_poni *p, char *why)
{
	struct lines l = {
		.p = { .distance = NAN, .poni1 = NAN, .poni2 = NAN }, .version = NAN,
	};
	/* a pipe would be waited for */
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	int result;

	if (!file) {
		because(why, 0, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	result = read_lines(path, file, &l, why);
	fclose(file);
	if (result)
		return result;
	if (!isnan(l.version) && l.version != 1 && l.version != 2 && l.version != 2.1)
		return because(why, -1, "%s: poni_version %g: known are 1, 2 and 2.1", path,
			       l.version);
	find_pixels(&l);
	*p = l.p;
	if (isnan(p->distance) || isnan(p->poni1) || isnan(p->poni2))
		return because(why, -1, "%s: Distance, Poni1 or Poni2 is missing: give a file of pyFAI",
			       path);
	if (!is_length(p->distance, NEAR) || !is_length(p->pixel1, NEAR) ||
	    !is_length(p->pixel2, NEAR))
		return because(why, -1, "%s: the distance, and the size of pixels (Detector_config: pixel1, pixel2), must be more than 0",
			       path);
	if (p->wavelength && !is_length(p->wavelength, SHORTEST))
		return because(why, -1, "%s: a wavelength of %g m is out of range", path, p->wavelength);
	return 0;
}

int rpu_poni_fits(const char *path, const struct rpu_poni *p, uint32_t width, uint32_t height,
		  char *why)
{
	if (p->chips_of_256 && width == 1024 && height == 512)
		return because(why, -1, "%s: a JUNGFRAU's pixels at borders of chips are twice as wide: use the stage assemble, with \"wide_every_x\": 256 and \"wide_every_y\": 256; or name it \"Detector: Detector\" there if they are not",
			       path);
	/* the files of such a one tell the shape before they are brought to their places */
	if (p->width && !(p->chips_of_256 && width == 1030 && height == 514) &&
	    (p->width != width || p->height != height))
		return because(why, -1, "%s: it is of images of %u x %u pixels (max_shape), not of %u x %u",
			       path, p->width, p->height, width, height);
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
