// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What people write: profiles, recorded images, numbers and regions, geometries of pyFAI, files of
 * calibration, pipelines. The first byte of an input selects the reader of the rest.
 */
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "must.h"
#include "dataset/dataset.h"
#include "common/parse.h"
#include "rashpactl/profile-file.h"
#include "common/say.h"
#include "processing/plane.h"
#include "processing/poni.h"
#include <rashpa-processing.h>
#include "../static/openmp/omp.h"

#define TEXT_MAX	8192

static char folder[] = "/tmp/text-fuzz.XXXXXX";
static char why[WHY_SIZE];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void clean(void)
{
	chdir("/");
	remove(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	must(mkdtemp(folder));
	atexit(clean);
	return 0;
}

static void write_file(char *path, size_t room, const char *name, const uint8_t *data,
		       size_t size)
{
	int fd;

	snprintf(path, room, "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

static bool ends(const char *text, size_t room)
{
	return memchr(text, '\0', room);
}

static void read_profile(const uint8_t *data, size_t size)
{
	static struct profile p;
	char path[64];
	unsigned int i;
	int err;

	write_file(path, sizeof(path), "profile.json", data, size);
	err = profile_load(&p, path, why);
	unlink(path);
	if (err) {
		must(err == -1 && *why);
		return;
	}
	must(p.n_windows <= RASHPA_PROFILE_WINDOWS_MAX && p.n_steps <= RASHPA_PROFILE_STEPS_MAX &&
	     p.n_vectors <= PROFILE_VECTORS_MAX && p.n_matches <= PROFILE_MATCHES_MAX);
	must(ends(p.name, sizeof(p.name)));
	for (i = 0; i < p.n_windows; i++)
		must(ends(p.window[i].name, sizeof(p.window[i].name)) && p.window[i].bar < 6);
	for (i = 0; i < p.n_vectors; i++)
		must(ends(p.vector[i], sizeof(p.vector[i])));
	for (i = 0; i < p.n_steps; i++)
		must(p.step[i].bar < 6 && p.step[i].flags <= RASHPA_STEP_RESET);
}

static void read_dataset(const char *name, const uint8_t *data, size_t size)
{
	const struct geometry small = { 4, 2, RASHPA_PIXEL_U16 };
	struct dataset d;
	char path[64];
	int err;

	write_file(path, sizeof(path), name, data, size);
	err = dataset_open(&d, folder, &small, why);
	if (!err) {
		must(d.images == 1);
		err = dataset_hold(&d, 1, why);
	}
	unlink(path);
	must(!err || *why);
	dataset_close(&d);
}

/* A geometry that can be read must lead to valid places only. */
static void read_poni(const uint8_t *data, size_t size)
{
	struct rpu_view view;
	char path[64];
	int err;

	write_file(path, sizeof(path), "a.poni", data, size);
	err = rpu_poni_read(path, &view.poni, why);
	unlink(path);
	if (err) {
		must(err == -1 && *why);
		return;
	}
	must(rpu_poni_fits(path, &view.poni, 7, 5, why) <= 0);
	rpu_view_begin(&view);
	for (view.unit = RPU_TTH_DEG; view.unit <= RPU_R_MM; view.unit++) {
		if (view.poni.wavelength || view.unit == RPU_TTH_DEG || view.unit == RPU_R_MM)
			must(isfinite((float)rpu_radius(&view, 65536, 0.5)) &&
			     rpu_radius(&view, 0, 65536) >= 0);
	}
}

/* Three planes of eight pixels: all of them are there, or it is said what is wrong. */
static void read_planes(const uint8_t *data, size_t size)
{
	char path[64];
	const char *paths[] = { path };
	float number[24];
	int err;

	write_file(path, sizeof(path), "plane", data, size);
	err = rpu_planes_read(paths, 1, &(struct rpu_shape) { 3, 2, 4 }, number, why);
	unlink(path);
	must(err ? err == -1 && *why : size >= 12);
}

/* Reading touches no file: paths are opened when the pipeline begins. */
static void read_pipeline(const char *text)
{
	struct rashpa_pipeline *p = NULL;
	int err;

	if (*text != '{')
		return;
	rashpa_fail(0, "");
	err = rashpa_pipeline_open(text, NULL, &p);
	must(err ? err < 0 && *rashpa_reason() && !p : !!p);
	rashpa_pipeline_close(p);
}

/* Run with one thread; no pipeline here starts others. */
int omp_get_max_threads(void) { return 1; }
int omp_get_num_threads(void) { return 1; }
int omp_get_thread_num(void) { return 0; }
void omp_set_num_threads(int threads) { (void)threads; }

static void read_numbers(const char *text)
{
	struct region r, parts[4];
	uint64_t wide;
	uint32_t narrow;
	double real;
	char size[SIZE_TEXT], shape[GEOMETRY_TEXT];
	struct geometry g;

	if (parse_u64(text, 1000, &wide))
		must(wide <= 1000);
	parse_u32(text, &narrow);
	if (parse_mode(text, &narrow))
		must(narrow <= 0666);
	if (parse_size(text, &wide))
		must(strlen(format_size(size, wide)) < sizeof(size));
	if (parse_real(text, &real))
		must(isfinite(real) && real >= 0);
	if (parse_geometry(text, &g))
		must(strlen(format_geometry(shape, &g)) < sizeof(shape));
	if (parse_region(text, &r)) {
		must(!regions_overlap(&r, &r) == !(r.width && r.height));
		if (r.height >= 4)
			split_regions(r.width, r.height, 4, parts);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX + 1];

	if (!size || size > TEXT_MAX)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 7) {
	case 0:
		read_profile(data + 1, size - 1);
		break;
	case 1:
		read_dataset("raw0.bin.zst", data + 1, size - 1);
		break;
	case 2:
		read_dataset("raw0.bin", data + 1, size - 1);
		break;
	case 3:
		read_numbers(text);
		break;
	case 4:
		read_poni(data + 1, size - 1);
		break;
	case 5:
		read_planes(data + 1, size - 1);
		break;
	default:
		read_pipeline(text);
	}
	return 0;
}
