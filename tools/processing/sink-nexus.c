// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An HDF5 file in NeXus's layout NXmx that grows while others read it (SWMR). All objects exist
 * before the first result. Small data of each image wait in memory. A flush writes them, and the
 * image numbers last: data of numbered images are complete in the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* of Debian 12, and the same in later versions */
#define H5_USE_110_API
#include <hdf5.h>

#include "processing/pack.h"
#include "common/say.h"
#include "processing/sink-file.h"
#include "processing/sink.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define EVERY_NS	500000000ull	/* a flush, while images come */
#define WAITING		(1u << 16)	/* bytes of a column that wait, and of a chunk */
#define REASON		160

#define BITSHUFFLE	32008
#define BITSHUFFLE_LZ4	2
#define BITSHUFFLE_ZSTD	3
#define ZSTD		32015

/* Kinds of data, in the order of the words below. */
enum what { IMAGES, RAW, COMPRESSED, PROFILES, PEAKS, STATISTICS, WHATS };

/* Rows of numbers, of which each image, or each element, has one. */
struct column {
	hid_t set, type;
	int rank;
	size_t width, bytes;	/* numbers, 0: one, and no dimension; and bytes, of a row */
	hsize_t rows;		/* in the file */
	size_t waiting, room;	/* rows in memory */
	uint8_t *row;
};

/* Images, a chunk each. */
struct stack {
	hid_t set;
	hsize_t images;
	uint32_t width, height;
	size_t number;		/* bytes */
	struct rpu_packer *packer;
};

/* Data per image. A column exists only if its stage is configured. */
enum column_index {
	ELEMENTS, OFFSET, ROW, COLUMN, VALUE,
	INTENSITY, SIGMA,
	PEAK_X, PEAK_Y, PEAK_SUM, PEAK_BACKGROUND, PEAK_SNR, PEAK_PIXELS, PEAK_OFFSET, PEAK_FOUND,
	STATISTICS_FRAME, STATISTICS_IMAGES,
	ABOVE, ROLE, FRAME,	/* this one is written last */
	COLUMNS,
};

struct nexus {
	struct rpu_file kept;	/* locks the output against other writers; HDF5 uses "file" */
	unsigned int packing;
	bool chosen, wanted[WHATS];

	uint32_t width, height;
	bool whole;		/* numbers are int32 */
	int32_t *rounded;
	uint32_t *no_row;	/* row starts of an image without kept pixels */
	uint8_t *lines;		/* of a raw image, without the gaps between them */
	hid_t file, complete, end_time;
	struct column column[COLUMNS];
	struct stack image, mean, deviation;
	uint64_t elements, peaks;
	unsigned long long flushed;	/* time of the last flush */
	uint64_t waiting;		/* images since the last flush */
	char reason[REASON];		/* of what failed first */
};

/* --- the configuration --- */

static int read_what(struct json_place *at, struct json_object *value, void *to)
{
	static const char * const words[] = {
		"images", "raw", "compressed", "profiles", "peaks", "statistics", NULL
	};
	unsigned int index;

	if (json_read_word(at, value, words, &index))
		return -1;
	*(unsigned int *)to = index;
	return 0;
}

static int read_whats(struct json_place *at, struct json_object *value, void *to)
{
	unsigned int what[WHATS], n;
	struct nexus *x = to;

	if (json_read_array(at, value, read_what, what, sizeof(*what), WHATS, &n))
		return -1;
	for (unsigned int i = 0; i < n; i++)
		x->wanted[what[i]] = true;
	x->chosen = true;
	if (x->wanted[RAW] && x->wanted[IMAGES])
		return json_wrong(at, "has raw or images, not both: a file shows one of them");
	return n ? 0 : json_wrong(at, "keeps nothing: name images, results or both");
}

static int read_packing(struct json_place *at, struct json_object *value, void *to)
{
	static const char * const words[] = {
		[RPU_PACK_NONE] = "none", [RPU_PACK_BITSHUFFLE_LZ4] = "bitshuffle-lz4",
		[RPU_PACK_BITSHUFFLE_ZSTD] = "bitshuffle-zstd", [RPU_PACK_ZSTD] = "zstd", NULL,
	};

	return json_read_word(at, value, words, to);
}

static int nexus_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rpu_sink_at *s = to;
	struct nexus *x = calloc(1, sizeof(*x));
	const struct json_key keys[] = {
		{ "file", true, rpu_read_path, x ? x->kept.path : NULL },
		{ "what", false, read_whats, x },
		{ "compression", false, read_packing, x ? &x->packing : NULL },
		{ "overwrite", false, json_read_bool, x ? &x->kept.overwrite : NULL },
		{ "on_error", false, rpu_read_on_error, s },
	};

	if (!x)
		return json_wrong(at, "no memory");
	x->file = -1;
	x->kept.fd = -1;
	s->state = x;
	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	s->only_raw = x->wanted[RAW];	/* unless a stage makes more, which needs the image */
	return 0;
}

/* --- errors of HDF5 --- */

/* The innermost reason, which contains the system's error message. */
static herr_t reason_of(unsigned int n, const H5E_error2_t *error, void *data)
{
	static const char mark[] = "error message = '";
	const char *found = error->desc ? strstr(error->desc, mark) : NULL;

	if (found) {
		found += sizeof(mark) - 1;
		snprintf(data, REASON, "%.*s", (int)strcspn(found, "'"), found);
		return 1;
	}
	if (!n && error->desc)
		snprintf(data, REASON, "%s", error->desc);
	return 0;
}

/* Turn off HDF5's messages, separately for each thread. */
static void quiet(void)
{
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

/* Keep the reason of the first failure, since later failures follow from it. */
static bool fine(struct nexus *x, bool good)
{
	if (!good && !*x->reason) {
		snprintf(x->reason, sizeof(x->reason), "unknown");
		H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, reason_of, x->reason);
	}
	return good;
}

static int broken(const struct nexus *x, char *why)
{
	return because(why, -1, "%s: %s", x->kept.path, *x->reason ? x->reason : "no memory");
}

/* --- groups and attributes --- */

static hid_t text_type(void)
{
	hid_t type = H5Tcopy(H5T_C_S1);

	H5Tset_size(type, H5T_VARIABLE);
	H5Tset_cset(type, H5T_CSET_UTF8);
	return type;
}

static void attributes(struct nexus *x, hid_t at, const char *name, const char * const *values,
		       hsize_t n)
{
	hid_t type = text_type(), space = n ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
	hid_t a = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);

	fine(x, a >= 0 && H5Awrite(a, type, values) >= 0);
	H5Aclose(a);
	H5Sclose(space);
	H5Tclose(type);
}

static void attribute(struct nexus *x, hid_t at, const char *name, const char *value)
{
	attributes(x, at, name, &value, 0);
}

static hid_t group(struct nexus *x, hid_t at, const char *name, const char *class)
{
	hid_t g = H5Gcreate2(at, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

	if (fine(x, g >= 0))
		attribute(x, g, "NX_class", class);
	return g;
}

static void scalar(struct nexus *x, hid_t at, const char *name, hid_t type, const void *value,
		   const char *units)
{
	hid_t space = H5Screate(H5S_SCALAR);
	hid_t set = H5Dcreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

	fine(x, set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
	if (set >= 0 && units)
		attribute(x, set, "units", units);
	H5Dclose(set);
	H5Sclose(space);
}

static void text(struct nexus *x, hid_t at, const char *name, const char *value)
{
	hid_t type = text_type();

	scalar(x, at, name, type, &value, NULL);
	H5Tclose(type);
}

/* --- datasets that grow --- */

static hid_t numbers(const struct nexus *x)
{
	return x->whole ? H5T_STD_I32LE : H5T_IEEE_F32LE;
}

static hid_t raw_numbers(const struct rashpa_pipeline *p)
{
	return p->geometry.pixel == RASHPA_PIXEL_U8 ? H5T_STD_U8LE :
	       p->geometry.pixel == RASHPA_PIXEL_U16 ? H5T_STD_U16LE : H5T_STD_U32LE;
}

static void make_column(struct nexus *x, hid_t at, enum column_index index, const char *name,
			hid_t type, size_t width)
{
	struct column *c = &x->column[index];
	const size_t bytes = (width ? width : 1) * H5Tget_size(type);
	const hsize_t rows = bytes < WAITING ? WAITING / bytes : 1;
	const hsize_t none[] = { 0, width }, most[] = { H5S_UNLIMITED, width };
	const hsize_t chunk[] = { rows, width };
	const int rank = width ? 2 : 1;
	hid_t plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(rank, none, most);

	fine(x, H5Pset_chunk(plist, rank, chunk) >= 0);
	*c = (struct column) {
		.set = H5Dcreate2(at, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT),
		.type = type, .rank = rank, .width = width, .bytes = bytes,
		.room = rows, .row = malloc(rows * bytes),
	};
	fine(x, c->set >= 0 && c->row);
	H5Sclose(space);
	H5Pclose(plist);
}

/* Write the waiting rows. A column that is not configured has no set, and no rows. */
static bool drain(struct nexus *x, enum column_index index)
{
	struct column *c = &x->column[index];
	const hsize_t begin[] = { c->rows, 0 }, count[] = { c->waiting, c->width };
	const hsize_t size[] = { c->rows + c->waiting, c->width };
	hid_t in_file, in_memory;
	bool good;

	if (!c->waiting)
		return true;
	if (!fine(x, H5Dset_extent(c->set, size) >= 0))
		return false;
	in_file = H5Dget_space(c->set);
	in_memory = H5Screate_simple(c->rank, count, NULL);
	H5Sselect_hyperslab(in_file, H5S_SELECT_SET, begin, NULL, count, NULL);
	good = fine(x, H5Dwrite(c->set, c->type, in_memory, in_file, H5P_DEFAULT, c->row) >= 0);
	H5Sclose(in_file);
	H5Sclose(in_memory);
	if (good) {
		c->rows += c->waiting;
		c->waiting = 0;
	}
	return good;
}

/* Writes to a removed file succeed, but their data are lost: check. */
static bool is_there(struct nexus *x)
{
	if (!rpu_file_is_gone(&x->kept))
		return true;
	snprintf(x->reason, sizeof(x->reason), "it, or its folder, was removed");
	return false;
}

/* Numbers of images come last: a reader has all of those that it finds. */
static bool write_all(struct nexus *x)
{
	for (int i = 0; i < FRAME; i++) {
		if (!drain(x, i))
			return false;
	}
	if (!fine(x, H5Fflush(x->file, H5F_SCOPE_LOCAL) >= 0) || !drain(x, FRAME) ||
	    !fine(x, H5Dflush(x->column[FRAME].set) >= 0) || !is_there(x))
		return false;
	x->flushed = now_ns();
	x->waiting = 0;
	return true;
}

static bool append(struct nexus *x, enum column_index index, const void *rows, size_t n)
{
	struct column *c = &x->column[index];

	for (size_t some; c->row && n; n -= some) {
		if (c->waiting == c->room && !(index == FRAME ? write_all(x) : drain(x, index)))
			return false;
		some = n < c->room - c->waiting ? n : c->room - c->waiting;
		memcpy(c->row + c->waiting * c->bytes, rows, some * c->bytes);
		rows = (const uint8_t *)rows + some * c->bytes;
		c->waiting += some;
	}
	return true;
}

/* The filter need not be there: we do its work. A reader needs it. */
static void set_filter(struct nexus *x, hid_t plist, unsigned int bytes)
{
	const bool shuffled = x->packing != RPU_PACK_ZSTD;
	const unsigned int kind = x->packing == RPU_PACK_BITSHUFFLE_LZ4 ? BITSHUFFLE_LZ4 :
				  BITSHUFFLE_ZSTD;
	/* version, bytes of a number, block (its own), kind: a plugin sets the first three */
	const unsigned int values[] = { 0, 5, bytes, 0, kind };
	const bool plugin = shuffled && H5Zfilter_avail(BITSHUFFLE) > 0;
	const unsigned int known = plugin ? 3 : 0;

	if (x->packing == RPU_PACK_NONE)
		return;
	fine(x, H5Pset_filter(plist, shuffled ? BITSHUFFLE : ZSTD, H5Z_FLAG_OPTIONAL,
			      shuffled ? ARRAY_SIZE(values) - known : 0, values + known) >= 0);
}

static void make_stack(struct nexus *x, struct stack *s, hid_t at, const char *name, hid_t type,
		       const char *units)
{
	const hsize_t none[] = { 0, s->height, s->width };
	const hsize_t most[] = { H5S_UNLIMITED, s->height, s->width };
	const hsize_t chunk[] = { 1, s->height, s->width };
	const bool invalid = H5Tequal(type, H5T_STD_I32LE) > 0;
	hid_t plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(3, none, most);
	const int32_t no_number = RPU_NO_NUMBER;
	const float nan = NAN;

	fine(x, H5Pset_chunk(plist, 3, chunk) >= 0);
	if (s != &x->image || !x->wanted[RAW])
		fine(x, H5Pset_fill_value(plist, type, invalid ? (const void *)&no_number : &nan) >= 0);
	s->number = H5Tget_size(type);
	set_filter(x, plist, s->number);
	s->packer = rpu_packer_new(x->packing, s->number, (size_t)s->width * s->height, 0);
	fine(x, s->packer);
	s->set = H5Dcreate2(at, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
	if (fine(x, s->set >= 0))
		attribute(x, s->set, "units", units);
	H5Sclose(space);
	H5Pclose(plist);
}

/* --- the layout --- */

static void make_mask(struct nexus *x, const struct rashpa_pipeline *p, hid_t at)
{
	const hsize_t size[] = { x->height, x->width };
	uint32_t *mask = calloc(size[0] * size[1], sizeof(*mask));
	const int any = mask ? rpu_mask(p, mask) : -1;
	hid_t space, set;

	if (fine(x, any >= 0) && any) {
		space = H5Screate_simple(2, size, NULL);
		set = H5Dcreate2(at, "pixel_mask", H5T_STD_U32LE, space, H5P_DEFAULT, H5P_DEFAULT,
				 H5P_DEFAULT);
		fine(x, set >= 0 && H5Dwrite(set, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT,
					     mask) >= 0);
		H5Dclose(set);
		H5Sclose(space);
	}
	free(mask);
}

static void make_beam(struct nexus *x, const struct rpu_known *known, hid_t instrument)
{
	hid_t beam;

	if (!known->ev)
		return;
	beam = group(x, instrument, "beam", "NXbeam");
	scalar(x, beam, "incident_energy", H5T_NATIVE_DOUBLE, &known->ev, "eV");
	scalar(x, beam, "incident_wavelength", H5T_NATIVE_DOUBLE, &known->angstrom, "angstrom");
	H5Gclose(beam);
}

static void make_place(struct nexus *x, const struct rpu_known *known, hid_t detector)
{
	if (!known->place)
		return;
	scalar(x, detector, "distance", H5T_NATIVE_DOUBLE, &known->distance, "m");
	scalar(x, detector, "beam_center_x", H5T_NATIVE_DOUBLE, &known->beam_x, "pixel");
	scalar(x, detector, "beam_center_y", H5T_NATIVE_DOUBLE, &known->beam_y, "pixel");
	scalar(x, detector, "x_pixel_size", H5T_NATIVE_DOUBLE, &known->pixel_x, "m");
	scalar(x, detector, "y_pixel_size", H5T_NATIVE_DOUBLE, &known->pixel_y, "m");
}

static void make_detector(struct nexus *x, const struct rashpa_pipeline *p, hid_t entry)
{
	const uint32_t bits = 8u << (p->geometry.pixel - RASHPA_PIXEL_U8);
	hid_t instrument = group(x, entry, "instrument", "NXinstrument");
	hid_t detector = group(x, instrument, "detector", "NXdetector");
	const int32_t lowest = RPU_NO_NUMBER + 1;
	const int8_t yes = 1;
	struct rpu_known known;

	rpu_know(p, &known);
	make_beam(x, &known, instrument);
	make_place(x, &known, detector);
	if (x->image.width == x->width && x->image.height == x->height)
		make_mask(x, p, detector);
	scalar(x, detector, "bit_depth_readout", H5T_NATIVE_UINT32, &bits, NULL);
	if (p->pretreat.jungfrau) {
		text(x, detector, "description", "JUNGFRAU");
		text(x, detector, "gain_setting", "auto");
	}
	if (*p->pretreat.mask)
		scalar(x, detector, "pixel_mask_applied", H5T_NATIVE_INT8, &yes, NULL);
	if (x->whole && x->wanted[IMAGES])
		scalar(x, detector, "underload_value", H5T_NATIVE_INT32, &lowest, NULL);
	/* the role: NXmx has no word for it */
	make_column(x, detector, ROLE, "role", H5T_STD_U32LE, 0);
	make_column(x, detector, FRAME, "sequence_number", H5T_STD_U64LE, 0);
	if (p->used[RPU_VETO])
		make_column(x, detector, ABOVE, "pixels_above_threshold", H5T_STD_U64LE, 0);
	H5Gclose(detector);
	H5Gclose(instrument);
}

static void make_images(struct nexus *x, hid_t entry, hid_t type, const char *units)
{
	hid_t data = group(x, entry, "data", "NXdata");

	attribute(x, data, "signal", "data");
	make_stack(x, &x->image, data, "data", type, units);
	fine(x, H5Lcreate_hard(entry, "data/data", entry, "instrument/detector/data", H5P_DEFAULT,
			       H5P_DEFAULT) >= 0);
	H5Gclose(data);
}

static void make_compressed(struct nexus *x, const struct rashpa_pipeline *p, hid_t entry,
			    const char *units)
{
	hid_t data = group(x, entry, "compressed", "NXcollection");

	scalar(x, data, "threshold", H5T_NATIVE_DOUBLE, &p->compress.threshold, units);
	make_column(x, data, ELEMENTS, "elements", H5T_STD_U64LE, 0);
	make_column(x, data, OFFSET, "offset", H5T_STD_U64LE, 0);
	make_column(x, data, ROW, "row", H5T_STD_U32LE, x->height + 1);
	make_column(x, data, COLUMN, "column", H5T_STD_U32LE, 0);
	make_column(x, data, VALUE, "value", numbers(x), 0);
	H5Gclose(data);
}

/* The axis has the name and the unit that pyFAI gives them, "q" and "nm^-1". */
static void make_profiles(struct nexus *x, const struct rashpa_pipeline *p, hid_t entry)
{
	hid_t data = group(x, entry, "profiles", "NXdata"), space, set;
	char name[32] = "", *unit;
	const char *axes[] = { ".", name }, *full;
	const double *axis;
	hsize_t size;
	uint32_t bins;

	axis = rashpa_pipeline_axis(p, &bins, &full);
	snprintf(name, sizeof(name), "%s", full);
	unit = strchr(name, '_');
	*unit++ = '\0';
	attribute(x, data, "signal", "intensity");
	attributes(x, data, "axes", axes, ARRAY_SIZE(axes));
	size = bins;
	space = H5Screate_simple(1, &size, NULL);
	set = H5Dcreate2(data, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	if (fine(x, set >= 0 && H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
					 axis) >= 0))
		attribute(x, set, "units", unit);
	H5Dclose(set);
	H5Sclose(space);
	make_column(x, data, INTENSITY, "intensity", H5T_IEEE_F32LE, bins);
	attribute(x, x->column[INTENSITY].set, "interpretation", "spectrum");
	if (p->integrate.matrix.error != RPU_ERROR_NONE)
		make_column(x, data, SIGMA, "intensity_errors", H5T_IEEE_F32LE, bins);
	H5Gclose(data);
}

static void make_peaks(struct nexus *x, hid_t entry)
{
	hid_t data = group(x, entry, "peaks", "NXcollection");

	make_column(x, data, PEAK_X, "x", H5T_IEEE_F32LE, 0);
	make_column(x, data, PEAK_Y, "y", H5T_IEEE_F32LE, 0);
	make_column(x, data, PEAK_SUM, "sum", H5T_IEEE_F32LE, 0);
	make_column(x, data, PEAK_BACKGROUND, "background", H5T_IEEE_F32LE, 0);
	make_column(x, data, PEAK_SNR, "snr", H5T_IEEE_F32LE, 0);
	make_column(x, data, PEAK_PIXELS, "pixels", H5T_STD_U32LE, 0);
	make_column(x, data, PEAK_OFFSET, "offset", H5T_STD_U64LE, 0);
	make_column(x, data, PEAK_FOUND, "found", H5T_STD_U32LE, 0);
	H5Gclose(data);
}

static void make_statistics(struct nexus *x, hid_t entry, const char *units)
{
	hid_t data = group(x, entry, "statistics", "NXdata");

	attribute(x, data, "signal", "mean");
	make_stack(x, &x->mean, data, "mean", H5T_IEEE_F32LE, units);
	make_stack(x, &x->deviation, data, "deviation", H5T_IEEE_F32LE, units);
	make_column(x, data, STATISTICS_FRAME, "last_sequence_number", H5T_STD_U64LE, 0);
	make_column(x, data, STATISTICS_IMAGES, "images", H5T_STD_U64LE, 0);
	H5Gclose(data);
}

static void make_data(struct nexus *x, const struct rashpa_pipeline *p, hid_t entry)
{
	const char *units = p->pretreat.result_kev ? "keV" : "counts";

	if (x->wanted[IMAGES])
		make_images(x, entry, numbers(x), units);
	if (x->wanted[RAW])
		make_images(x, entry, raw_numbers(p), "counts");
	if (x->wanted[COMPRESSED])
		make_compressed(x, p, entry, units);
	if (x->wanted[PROFILES])
		make_profiles(x, p, entry);
	if (x->wanted[PEAKS])
		make_peaks(x, entry);
	if (x->wanted[STATISTICS])
		make_statistics(x, entry, units);
}

/* What finish() writes; it is there from the beginning, since SWMR wants no new objects. */
static void make_end(struct nexus *x, hid_t entry)
{
	hid_t space = H5Screate(H5S_SCALAR), type = H5Tcopy(H5T_C_S1);

	H5Tset_size(type, RPU_TIME);
	x->end_time = H5Dcreate2(entry, "end_time", type, space, H5P_DEFAULT, H5P_DEFAULT,
				 H5P_DEFAULT);
	x->complete = H5Dcreate2(entry, "complete", H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT,
				 H5P_DEFAULT);
	fine(x, x->end_time >= 0 && x->complete >= 0);
	H5Tclose(type);
	H5Sclose(space);
}

static void make_layout(struct nexus *x, const struct rashpa_pipeline *p)
{
	hid_t root = H5Gopen2(x->file, "/", H5P_DEFAULT);
	hid_t entry = group(x, root, "entry", "NXentry");
	char now[RPU_TIME];

	rpu_time_text(now);
	attribute(x, root, "NX_class", "NXroot");
	attribute(x, root, "default", "entry");
	attribute(x, root, "creator", "rashpa");
	attribute(x, root, "creator_version", RASHPA_VERSION);
	attribute(x, root, "file_time", now);
	attribute(x, entry, "default", x->wanted[IMAGES] || x->wanted[RAW] ? "data" :
		  x->wanted[PROFILES] ? "profiles" : x->wanted[STATISTICS] ? "statistics" :
		  x->wanted[PEAKS] ? "peaks" : "compressed");
	text(x, entry, "definition", "NXmx");
	text(x, entry, "start_time", now);
	text(x, entry, "program_name", "rashpa " RASHPA_VERSION);
	make_end(x, entry);
	make_detector(x, p, entry);
	make_data(x, p, entry);
	H5Gclose(entry);
	H5Gclose(root);
}

/*
 * HDF5 locks what it opens in its own way, and finds after it has emptied the file that it cannot.
 * Where our lock is in its way, as on NFS, which has one kind for both, we go on without.
 */
static bool can_lock(struct nexus *x)
{
	struct flock all = { .l_type = F_UNLCK, .l_whence = SEEK_SET };
	const int fd = open(x->kept.path, O_WRONLY | O_CLOEXEC);
	bool good = fd < 0 || !flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK;

	if (!good && !fcntl(x->kept.fd, F_OFD_SETLK, &all))
		good = !flock(fd, LOCK_EX | LOCK_NB);
	if (fd >= 0)
		close(fd);
	return good;
}

/* Create the file; an existing one is overwritten. */
static bool create(struct nexus *x)
{
	hid_t plist = H5Pcreate(H5P_FILE_ACCESS);

	/* the first one that knows SWMR, for readers from then on */
	H5Pset_libver_bounds(plist, H5F_LIBVER_V110, H5F_LIBVER_V110);
	H5Pset_fclose_degree(plist, H5F_CLOSE_STRONG);
	x->file = H5Fcreate(x->kept.path, H5F_ACC_TRUNC, H5P_DEFAULT, plist);
	fine(x, x->file >= 0);
	H5Pclose(plist);
	return x->file >= 0;
}

static int choose(struct nexus *x, const struct rashpa_pipeline *p, char *why)
{
	static const struct {
		enum rpu_stage_index stage;
		const char *name;
	} maker[WHATS] = {
		[IMAGES] = { RPU_PRETREAT, "pretreat" },
		[COMPRESSED] = { RPU_COMPRESS, "compress" },
		[PROFILES] = { RPU_INTEGRATE, "integrate" },
		[PEAKS] = { RPU_PEAKS, "peaks" },
		[STATISTICS] = { RPU_ACCUMULATE, "accumulate" },
	};

	if (x->wanted[RAW] && (p->gpu_driver || *p->board_name))
		return because(why, -1, "pipeline: sinks.nexus.what: raw images need the engine cpu or reference");
	for (unsigned int i = 0; i < WHATS; i++) {
		if (i == RAW)
			continue;
		if (!x->chosen)
			x->wanted[i] = p->used[maker[i].stage];
		else if (x->wanted[i] && !p->used[maker[i].stage])
			return because(why, -1,
				       "pipeline: sinks.nexus.what: there is no stage \"%s\" that makes it",
				       maker[i].name);
	}
	return 0;
}

static size_t raw_line(const struct rashpa_pipeline *p)
{
	return (size_t)p->geometry.width << (p->geometry.pixel - RASHPA_PIXEL_U8);
}

static int nexus_open(struct rashpa_pipeline *p, void *state, char *why)
{
	struct nexus *x = state;

	if (choose(x, p, why))
		return -1;
	x->width = p->width;
	x->height = p->height;
	x->whole = rpu_is_whole(p);
	x->mean.width = x->deviation.width = x->width;
	x->mean.height = x->deviation.height = x->height;
	x->image.width = x->wanted[RAW] ? p->geometry.width : x->width;
	x->image.height = x->wanted[RAW] ? p->geometry.height : x->height;
	x->lines = x->wanted[RAW] ? malloc(raw_line(p) * p->geometry.height) : NULL;
	x->rounded = x->whole ? rpu_memory(rpu_pixels(p), sizeof(*x->rounded)) : NULL;
	x->no_row = x->wanted[COMPRESSED] ? rpu_memory(x->height + 1, sizeof(*x->no_row)) : NULL;
	if ((x->wanted[RAW] && !x->lines) || (x->whole && !x->rounded) || (x->wanted[COMPRESSED] && !x->no_row))
		return because(why, -1, "%s: no memory", x->kept.path);
	if (rpu_file_open(p, RPU_SINK_NEXUS, &x->kept, why))
		return -1;
	return can_lock(x) ? 0 : because(why, -1, "%s: another program has it open", x->kept.path);
}

static int nexus_start(struct rashpa_pipeline *p, void *state, char *why)
{
	struct nexus *x = state;
	const uint64_t begin = 0;

	quiet();
	if (!create(x))
		return broken(x, why);
	make_layout(x, p);
	x->flushed = now_ns();
	if (!*x->reason && append(x, OFFSET, &begin, 1) && drain(x, OFFSET) &&
	    append(x, PEAK_OFFSET, &begin, 1) && drain(x, PEAK_OFFSET) &&
	    fine(x, H5Fstart_swmr_write(x->file) >= 0))
		return 0;
	return broken(x, why);
}

/* --- results --- */

static const void *as_numbers(struct nexus *x, const float *from, size_t n)
{
	if (!x->whole)
		return from;
	rpu_whole_numbers(from, n, x->rounded);
	return x->rounded;
}

static bool append_chunk(struct nexus *x, struct stack *s, const void *packed, size_t bytes,
			 uint64_t *bytes_out)
{
	const hsize_t size[] = { s->images + 1, s->height, s->width };
	const hsize_t begin[] = { s->images, 0, 0 };

	if (!fine(x, packed && H5Dset_extent(s->set, size) >= 0 &&
		  H5Dwrite_chunk(s->set, H5P_DEFAULT, 0, begin, bytes, packed) >= 0))
		return false;
	s->images++;
	*bytes_out += bytes;
	return true;
}

static bool append_image(struct nexus *x, struct stack *s, const void *image, uint64_t *bytes_out)
{
	size_t bytes;
	const void *packed = rpu_pack(s->packer, image, &bytes);

	return append_chunk(x, s, packed, bytes, bytes_out);
}

/* In a worker: images that need no copy first. */
static void nexus_pack(void *state, struct rpu_work *w)
{
	const struct nexus *x = state;
	const bool raw = x->wanted[RAW];
	const void *image = raw ? w->raw.data : w->image;

	if (x->packing == RPU_PACK_NONE || (raw && w->raw.line_stride != raw_line(w->pipeline)) ||
	    (!raw && (x->whole || !x->wanted[IMAGES])))
		return;
	if (!w->packer)
		w->packer = rpu_packer_new(x->packing, x->image.number,
					   (size_t)x->image.width * x->image.height, 1);
	w->packed = w->packer ? rpu_pack(w->packer, image, &w->packed_bytes) : NULL;
}

/* Straight from where it is, if there are no gaps between its lines. */
static const void *raw_image(struct nexus *x, const struct rpu_work *w)
{
	const size_t line = raw_line(w->pipeline);

	if (w->raw.line_stride == line)
		return w->raw.data;
	for (uint32_t y = 0; y < x->image.height; y++)
		memcpy(x->lines + y * line, (const uint8_t *)w->raw.data + y * w->raw.line_stride, line);
	return x->lines;
}

static bool append_shown(struct nexus *x, const struct rpu_work *w, uint64_t *bytes_out)
{
	const struct rashpa_result *r = &w->result;

	if (w->packed)
		return append_chunk(x, &x->image, w->packed, w->packed_bytes, bytes_out);
	return append_image(x, &x->image, x->wanted[RAW] ? raw_image(x, w) :
			    as_numbers(x, r->image, (size_t)x->width * x->height), bytes_out);
}

/* An image with too many elements is kept empty; "elements" shows their number. */
static bool append_compressed(struct nexus *x, const struct rashpa_result *r, uint64_t *bytes_out)
{
	const size_t n = r->row ? r->elements : 0;

	x->elements += n;
	*bytes_out += n * (sizeof(*r->column) + sizeof(*r->value)) +
		      (x->height + 1) * sizeof(*r->row);
	return append(x, COLUMN, r->column, n) && append(x, VALUE, as_numbers(x, r->value, n), n) &&
	       append(x, ROW, r->row ? r->row : x->no_row, 1) &&
	       append(x, OFFSET, &x->elements, 1) && append(x, ELEMENTS, &r->elements, 1);
}

static bool append_profile(struct nexus *x, const struct rashpa_result *r, uint64_t *bytes_out)
{
	*bytes_out += r->bins * (r->sigma ? 2 : 1) * sizeof(*r->intensity);
	return append(x, INTENSITY, r->intensity, 1) && append(x, SIGMA, r->sigma, 1);
}

static bool append_peaks(struct nexus *x, const struct rashpa_result *r, uint64_t *bytes_out)
{
	x->peaks += r->peaks;
	*bytes_out += r->peaks * sizeof(*r->peak);
	for (const struct rashpa_peak *k = r->peak; k < r->peak + r->peaks; k++) {
		if (!append(x, PEAK_X, &k->x, 1) || !append(x, PEAK_Y, &k->y, 1) ||
		    !append(x, PEAK_SUM, &k->sum, 1) ||
		    !append(x, PEAK_BACKGROUND, &k->background, 1) ||
		    !append(x, PEAK_SNR, &k->snr, 1) || !append(x, PEAK_PIXELS, &k->pixels, 1))
			return false;
	}
	return append(x, PEAK_OFFSET, &x->peaks, 1) && append(x, PEAK_FOUND, &r->peaks_found, 1);
}

static bool append_statistics(struct nexus *x, const struct rashpa_result *r, uint64_t *bytes_out)
{
	return append_image(x, &x->mean, r->mean, bytes_out) &&
	       append_image(x, &x->deviation, r->deviation, bytes_out) &&
	       append(x, STATISTICS_IMAGES, &r->images, 1) &&
	       append(x, STATISTICS_FRAME, &r->frame, 1);
}

static int nexus_flush(void *state, struct rashpa_stage_stat *stat, char *why)
{
	struct nexus *x = state;

	quiet();
	if (!x->waiting || write_all(x))
		return 0;
	stat->lost += x->waiting;
	return broken(x, why);
}

static int nexus_put(void *state, const struct rashpa_result *r, struct rashpa_stage_stat *stat,
		     char *why)
{
	struct nexus *x = state;
	uint64_t bytes = sizeof(r->frame) + sizeof(r->role);
	bool good;

	quiet();
	good = (!(x->wanted[IMAGES] || x->wanted[RAW]) || append_shown(x, rpu_work_of(r), &bytes)) &&
	       (!x->wanted[COMPRESSED] || append_compressed(x, r, &bytes)) &&
	       (!x->wanted[PROFILES] || append_profile(x, r, &bytes)) &&
	       (!x->wanted[PEAKS] || append_peaks(x, r, &bytes)) &&
	       (!x->wanted[STATISTICS] || !r->mean || append_statistics(x, r, &bytes)) &&
	       append(x, ABOVE, &r->above, 1) && append(x, ROLE, &r->role, 1) &&
	       append(x, FRAME, &r->frame, 1);
	if (good) {
		x->waiting++;
		good = now_ns() - x->flushed < EVERY_NS || write_all(x);
		x->waiting -= !good;	/* the caller counts this one */
	}
	if (good) {
		stat->bytes_out += bytes;
		return 0;
	}
	stat->lost += x->waiting;
	return broken(x, why);
}

static int nexus_finish(void *state, char *why)
{
	struct nexus *x = state;
	char now[RPU_TIME] = "";
	const uint8_t yes = 1;
	hid_t type, file;

	quiet();
	if (*x->reason)		/* results were lost: the file stays incomplete */
		return broken(x, why);
	rpu_time_text(now);
	type = H5Dget_type(x->end_time);
	if (write_all(x))
		fine(x, H5Dwrite(x->end_time, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, now) >= 0 &&
		     H5Fflush(x->file, H5F_SCOPE_LOCAL) >= 0 &&
		     H5Dwrite(x->complete, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT,
			      &yes) >= 0);
	H5Tclose(type);
	if (*x->reason)
		return broken(x, why);
	file = x->file;
	x->file = -1;
	if (!fine(x, H5Fclose(file) >= 0))
		return broken(x, why);
	rpu_file_close(&x->kept);
	return 0;
}

static void nexus_end(void *state)
{
	struct nexus *x = state;

	quiet();
	if (x->file >= 0 && !*x->reason)
		write_all(x);
	if (x->file >= 0)
		H5Fclose(x->file);
	rpu_file_close(&x->kept);
	for (int i = 0; i < COLUMNS; i++)
		free(x->column[i].row);
	rpu_packer_free(x->image.packer);
	rpu_packer_free(x->mean.packer);
	rpu_packer_free(x->deviation.packer);
	free(x->lines);
	free(x->rounded);
	free(x->no_row);
	free(x);
}

const struct rpu_sink rpu_sink_nexus = {
	.name = "nexus", .read = nexus_read, .open = nexus_open, .start = nexus_start,
	.pack = nexus_pack, .put = nexus_put, .flush = nexus_flush, .finish = nexus_finish, .end = nexus_end,
};
