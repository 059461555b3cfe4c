// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * HDF5: one dataset of a file, its images read one by one. Which one: that which is named; else
 * the one that NeXus shows (attributes default and signal); else the only one that can be images.
 */
#include "dataset/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* of Debian 12, and the same in later versions */
#define H5_USE_110_API
#include <hdf5.h>

#include "common/say.h"

#define INSIDE		512	/* longest path inside */
#define LISTED		8	/* candidates in a message */
#define HOPS		16	/* of NeXus's default */
#define CACHE_MAX	(1ull << 30)	/* bytes of unpacked chunks */

struct hdf5 {
	hid_t file, set, space, memory, type;
	int rank;
};

static herr_t innermost(unsigned int n, const H5E_error2_t *error, void *data)
{
	if (!n)
		snprintf(data, 160, "%s", error->desc && *error->desc ? error->desc : "unknown");
	return 0;
}

/* Report the library's error. */
static int broken(const struct dataset *d, const char *what, char *why)
{
	char reason[160] = "unknown";

	H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, reason);
	return because(why, -1, "dataset %s: %s: %s", d->source, what, reason);
}

bool dataset_is_hdf5(const char *path)
{
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	return H5Fis_hdf5(path) > 0;
}

/* --- which dataset --- */

enum rank { SHOWN, STACK, IMAGE, RANKS };	/* by priority: NeXus signal, 3-D, 2-D */

struct search {
	unsigned int n[RANKS];
	char name[RANKS][LISTED][INSIDE];
	unsigned long file[RANKS][LISTED];	/* which object it is */
	haddr_t address[RANKS][LISTED];
};

/* Read a string attribute of one line; false if it does not exist. */
static bool text_attribute(hid_t where, const char *name, char *text, size_t room)
{
	hid_t attribute = -1, type = -1, space = -1;
	char *copy = NULL;
	bool found = false;
	size_t size;

	if (H5Aexists(where, name) > 0)
		attribute = H5Aopen(where, name, H5P_DEFAULT);
	if (attribute < 0)
		return false;
	type = H5Aget_type(attribute);
	space = H5Aget_space(attribute);
	if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != 1)
		goto out;
	if (H5Tis_variable_str(type) > 0) {
		found = H5Aread(attribute, type, &copy) >= 0 && copy && strlen(copy) < room;
		if (found)
			strcpy(text, copy);
		if (copy)
			H5free_memory(copy);
		goto out;
	}
	size = H5Tget_size(type);
	if (size && size < room && H5Aread(attribute, type, text) >= 0) {
		text[size] = '\0';
		for (size_t end = strlen(text); end && text[end - 1] == ' '; end--)
			text[end - 1] = '\0';
		found = true;
	}
out:
	H5Sclose(space);
	H5Tclose(type);
	H5Aclose(attribute);
	return found && *text;
}

/* Can it be images? Its dimensions, or 0. */
static unsigned int image_dimensions(hid_t set)
{
	hid_t type = H5Dget_type(set), space = H5Dget_space(set);
	int rank = 0;

	if (H5Tget_class(type) == H5T_INTEGER && H5Sis_simple(space) > 0)
		rank = H5Sget_simple_extent_ndims(space);
	H5Tclose(type);
	H5Sclose(space);
	return rank == 2 || rank == 3 ? rank : 0;
}

/* A path of what is below; false: it is too long. */
static bool below(char *path, const char *group, const char *name)
{
	return snprintf(path, INSIDE, "%s/%s", strcmp(group, "/") ? group : "", name) < INSIDE;
}

/* Which object it is, whatever it is called. */
static bool known(const struct search *s, enum rank rank, const H5O_info_t *info)
{
	for (unsigned int i = 0; i < s->n[rank] && i < LISTED; i++) {
		if (s->address[rank][i] == info->addr && s->file[rank][i] == info->fileno)
			return true;
	}
	return false;
}

/* Look at what may be a dataset; an object that has several names counts once. */
static void consider(struct search *s, hid_t file, const char *path, bool shown)
{
	hid_t set = H5Dopen2(file, path, H5P_DEFAULT);
	unsigned int dimensions, n;
	enum rank rank;
	H5O_info_t info;

	if (set < 0)
		return;
	dimensions = image_dimensions(set);
	rank = shown ? SHOWN : dimensions == 3 ? STACK : IMAGE;
	n = s->n[rank];
	if (dimensions && H5Oget_info(set, &info) >= 0 && !known(s, rank, &info)) {
		if (n < LISTED) {
			s->address[rank][n] = info.addr;
			s->file[rank][n] = info.fileno;
			strcpy(s->name[rank][n], path);
		}
		s->n[rank]++;
	}
	H5Dclose(set);
}

/* Consider the signal of a NeXus group. */
static void consider_signal(struct search *s, hid_t file, const char *path)
{
	hid_t group = H5Gopen2(file, path, H5P_DEFAULT);
	char signal[INSIDE], shown[INSIDE];

	if (group < 0)
		return;
	if (text_attribute(group, "signal", signal, sizeof(signal)) && below(shown, path, signal))
		consider(s, file, shown, true);
	H5Gclose(group);
}

static herr_t visit_object(hid_t file, const char *name, const H5O_info_t *info, void *data)
{
	char path[INSIDE];

	if (!below(path, "/", strcmp(name, ".") ? name : ""))
		return 0;
	if (info->type == H5O_TYPE_GROUP)
		consider_signal(data, file, path);
	else if (info->type == H5O_TYPE_DATASET)
		consider(data, file, path, false);
	return 0;
}

/* Links to other files are no objects of this one. */
static herr_t visit_link(hid_t file, const char *name, const H5L_info_t *info, void *data)
{
	char path[INSIDE];

	if (info->type == H5L_TYPE_EXTERNAL && below(path, "/", name))
		consider(data, file, path, false);
	return 0;
}

/* From the file on, default names the group below that is to be looked at. */
static void follow_default(struct search *s, hid_t file)
{
	char path[INSIDE] = "/", next[INSIDE], name[INSIDE];

	for (int i = 0; i < HOPS; i++) {
		hid_t group = H5Gopen2(file, path, H5P_DEFAULT);
		bool more;

		if (group < 0)
			return;
		more = text_attribute(group, "default", name, sizeof(name)) &&
		       below(next, path, name);
		H5Gclose(group);
		if (!more)
			break;
		strcpy(path, next);
	}
	consider_signal(s, file, path);
}

static int find(const struct dataset *d, const struct hdf5 *h, struct search *s, char *name,
		char *why)
{
	static const char * const which[RANKS] = {
		"datasets that are a signal of NeXus", "3-D integer datasets",
		"2-D integer datasets",
	};
	char list[WHY_SIZE / 2] = "";
	size_t end = 0;
	int rank = 0;

	follow_default(s, h->file);
	if (!s->n[SHOWN]) {
		H5Ovisit(h->file, H5_INDEX_NAME, H5_ITER_NATIVE, visit_object, s);
		H5Lvisit(h->file, H5_INDEX_NAME, H5_ITER_NATIVE, visit_link, s);
	}
	while (rank < RANKS && !s->n[rank])
		rank++;
	if (rank == RANKS)
		return because(why, -1, "dataset %s: it has no 2-D or 3-D dataset of integers: u8, u16 and u32 are possible",
			       d->source);
	if (s->n[rank] == 1) {
		strcpy(name, s->name[rank][0]);
		return 0;
	}
	for (unsigned int i = 0; i < s->n[rank] && i < LISTED && end < sizeof(list); i++)
		end += snprintf(list + end, sizeof(list) - end, "%s%s", i ? ", " : "",
				s->name[rank][i]);
	return because(why, -1, "dataset %s: it has %u %s: name one, as FILE:/PATH: %s%s",
		       d->source, s->n[rank], which[rank], list,
		       s->n[rank] > LISTED || end >= sizeof(list) ? " ..." : "");
}

/* --- what it is --- */

static int take_type(const struct dataset *d, struct hdf5 *h, enum rashpa_pixel *pixel, char *why)
{
	hid_t type = H5Dget_type(h->set);
	H5T_class_t class = H5Tget_class(type);
	size_t size = H5Tget_size(type);
	bool is_signed = class == H5T_INTEGER && H5Tget_sign(type) != H5T_SGN_NONE;

	H5Tclose(type);
	if (class == H5T_FLOAT)
		return because(why, -1, "dataset %s: its pixels are floating-point numbers: u8, u16 and u32 are possible",
			       d->source);
	if (class != H5T_INTEGER)
		return because(why, -1, "dataset %s: its pixels are no numbers: u8, u16 and u32 are possible",
			       d->source);
	if (is_signed || (size != 1 && size != 2 && size != 4))
		return because(why, -1, "dataset %s: its pixels are %c%zu: u8, u16 and u32 are possible",
			       d->source, is_signed ? 'i' : 'u', size * 8);
	h->type = size == 1 ? H5T_NATIVE_UINT8 : size == 2 ? H5T_NATIVE_UINT16 : H5T_NATIVE_UINT32;
	*pixel = size == 1 ? RASHPA_PIXEL_U8 : size == 2 ? RASHPA_PIXEL_U16 : RASHPA_PIXEL_U32;
	return 0;
}

/* Images of a virtual dataset whose file is missing would read as zeros. */
static int check_virtual(const struct dataset *d, hid_t plist, const char *path, char *why)
{
	const char *slash = strrchr(path, '/');
	char name[PATH_MAX], beside[2 * PATH_MAX];
	size_t n = 0;

	if (H5Pget_layout(plist) != H5D_VIRTUAL || H5Pget_virtual_count(plist, &n) < 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (H5Pget_virtual_filename(plist, i, name, sizeof(name)) <= 0 ||
		    !strcmp(name, ".") || strchr(name, '%'))
			continue;
		snprintf(beside, sizeof(beside), "%.*s%s", slash ? (int)(slash + 1 - path) : 0,
			 path, name);
		if (access(beside, R_OK) && access(name, R_OK))
			return because(why, -1, "dataset %s: it is made of other files, and %.200s cannot be read: %s",
				       d->source, name, strerror(errno));
	}
	return 0;
}

/* A filter that is not here is found out when data are read; by then it is late to say how. */
static int check_filters(const struct dataset *d, hid_t plist, char *why)
{
	const int n = H5Pget_nfilters(plist);

	for (int i = 0; i < n; i++) {
		unsigned int flags, config;
		size_t values = 0;
		char name[40] = "";
		int filter = H5Pget_filter2(plist, i, &flags, &values, NULL, sizeof(name), name,
					    &config);

		name[sizeof(name) - 1] = '\0';
		if (filter >= 0 && H5Zfilter_avail(filter) <= 0)
			return because(why, -1, "dataset %s: it is packed with HDF5's filter %d%s%s, which is not here: install its plugin, or name the plugin's folder in HDF5_PLUGIN_PATH",
				       d->source, filter, *name ? ", " : "", name);
	}
	return 0;
}

/* All chunks of an image stay unpacked: the next image may be in the same ones. */
static hid_t chunk_cache(hid_t plist, const hsize_t *size, int rank, size_t pixel)
{
	hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
	hsize_t chunk[3] = { 1, 1, 1 };
	uint64_t bytes = pixel;

	if (H5Pget_layout(plist) != H5D_CHUNKED || H5Pget_chunk(plist, rank, chunk) != rank)
		return access;
	for (int i = 0; i < rank; i++) {
		uint64_t side = chunk[i];

		/* of images only those of a chunk, of an image all */
		if (side && (rank == 2 || i))
			side *= (size[i] + side - 1) / side;
		if (__builtin_mul_overflow(bytes, side, &bytes))
			return access;
	}
	if (bytes > 1 << 20 && bytes <= CACHE_MAX)
		H5Pset_chunk_cache(access, 12289, bytes, 1);
	return access;
}

static int reopen(const struct dataset *d, struct hdf5 *h, const char *name, hid_t plist,
		  const hsize_t *size, size_t pixel, char *why)
{
	hid_t access = chunk_cache(plist, size, h->rank, pixel);

	H5Dclose(h->set);
	h->set = H5Dopen2(h->file, name, access);
	if (h->set < 0)
		broken(d, name, why);
	H5Pclose(access);
	return h->set < 0 ? -1 : 0;
}

static int take_set(struct dataset *d, struct hdf5 *h, const char *path, const char *name,
		    char *why)
{
	hsize_t size[3] = { 1, 1, 1 }, *image;
	enum rashpa_pixel pixel = 0;
	hid_t plist;
	int result;

	h->space = H5Dget_space(h->set);
	h->rank = H5Sis_simple(h->space) > 0 ? H5Sget_simple_extent_ndims(h->space) : 0;
	if (h->rank != 2 && h->rank != 3)
		return because(why, -1, "dataset %s: it has %d dimensions: 2 (height, width) and 3 (images, height, width) are possible",
			       d->source, h->rank);
	H5Sget_simple_extent_dims(h->space, size, NULL);
	if (take_type(d, h, &pixel, why))
		return -1;
	image = size + h->rank - 2;
	if (dataset_set(d, h->rank == 3 ? size[0] : 1, image[1], image[0], pixel, why))
		return -1;
	h->memory = H5Screate_simple(2, image, NULL);
	plist = H5Dget_create_plist(h->set);
	result = check_filters(d, plist, why);
	if (!result)
		result = check_virtual(d, plist, path, why);
	if (!result)
		result = reopen(d, h, name, plist, size, pixel_bytes(pixel), why);
	H5Pclose(plist);
	return result;
}

static int open_set(struct dataset *d, struct hdf5 *h, const char *path, const char *name,
		    char *why)
{
	struct search *s;
	char found[INSIDE] = "";
	int result = 0;

	if (name && strlen(name) >= sizeof(found))
		return because(why, -1, "dataset %s: the path inside is too long", path);
	if (name) {
		strcpy(found, name);
	} else {
		s = calloc(1, sizeof(*s));
		result = s ? find(d, h, s, found, why) :
			     because(why, -1, "dataset %s: no memory", path);
		free(s);
	}
	if (result)
		return result;
	snprintf(d->source, sizeof(d->source), "%.126s:%.126s", path, found);
	h->set = H5Dopen2(h->file, found, H5P_DEFAULT);
	if (h->set < 0)
		return broken(d, "it cannot be opened as a dataset", why);
	return take_set(d, h, path, found, why);
}

static int open_hdf5(struct dataset *d, const char *path, const char *inside, char *why)
{
	struct hdf5 *h = malloc(sizeof(*h));
	hid_t access;

	snprintf(d->source, sizeof(d->source), "%.255s", path);
	d->file = h;
	if (!h)
		return because(why, -1, "dataset %s: no memory", path);
	*h = (struct hdf5) { .file = -1, .set = -1, .space = -1, .memory = -1 };
	access = H5Pcreate(H5P_FILE_ACCESS);
	H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
	/* reading needs none, and file systems that are read-only have none */
	H5Pset_file_locking(access, false, true);
	h->file = H5Fopen(path, H5F_ACC_RDONLY, access);
	/* the next call forgets what the last one found wrong */
	if (h->file < 0)
		broken(d, "it cannot be opened", why);
	H5Pclose(access);
	if (h->file < 0)
		return -1;
	return open_set(d, h, path, inside, why);
}

static int read_hdf5(struct dataset *d, uint32_t number, void *image, char *why)
{
	const struct hdf5 *h = d->file;
	const hsize_t start[3] = { number };
	const hsize_t count[3] = { 1, d->geometry.height, d->geometry.width };
	char what[32];

	if ((h->rank == 3 && H5Sselect_hyperslab(h->space, H5S_SELECT_SET, start, NULL, count,
						 NULL) < 0) ||
	    H5Dread(h->set, h->type, h->memory, h->rank == 3 ? h->space : H5S_ALL, H5P_DEFAULT,
		    image) < 0) {
		snprintf(what, sizeof(what), "image %" PRIu32, number);
		return broken(d, what, why);
	}
	return 0;
}

static void close_hdf5(struct dataset *d)
{
	struct hdf5 *h = d->file;

	if (!h)
		return;
	H5Sclose(h->memory);
	H5Sclose(h->space);
	H5Dclose(h->set);
	H5Fclose(h->file);
	free(h);
}

const struct dataset_format dataset_hdf5 = {
	.open = open_hdf5, .read = read_hdf5, .close = close_hdf5,
};
