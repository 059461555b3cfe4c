/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Structures that the stages of a pipeline share. */
#ifndef RPU_PIPELINE_H
#define RPU_PIPELINE_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#include "processing/board.h"
#include "processing/engine.h"
#include "processing/gpu.h"
#include "processing/pack.h"
#include "common/json-in.h"
#include "common/say.h"
#include <rashpa-processing.h>
#include "lib/sized.h"

/* All stages, in the order in which an image goes through them: the only list. */
#define RPU_ALL_STAGES(X)						\
	X(RPU_PRETREAT, pretreat) X(RPU_CORRECT, correct) X(RPU_ASSEMBLE, assemble)	\
	X(RPU_PEAKS, peaks) X(RPU_VETO, veto) X(RPU_COMPRESS, compress)	\
	X(RPU_INTEGRATE, integrate) X(RPU_ACCUMULATE, accumulate)

#define RPU_STAGE_INDEX(index, name)	index,
enum rpu_stage_index { RPU_ALL_STAGES(RPU_STAGE_INDEX) RPU_STAGES };

/* Sinks of results; a configuration names any of them. */
enum rpu_sink_index {
	RPU_SINK_RAW, RPU_SINK_STREAMS, RPU_SINK_NEXUS, RPU_SINK_PUBLISH, RPU_SINKS,
};

struct rpu_work;

/**
 * struct rpu_stage - a stage; functions that are NULL are skipped
 * @name: name in configurations and reports
 * @on_gpu: a GPU of the pipeline runs the stage, and may hold the only copy of the image
 * @changes: the stage changes the image, or makes another one
 * @driven: a drive runs the stage on the GPU without the host
 * @read: read the stage's object in the configuration; paths of files by rpu_read_input(), so that
 *	no sink writes them
 * @begin: read files and allocate buffers, when the geometry is known; -1 with the reason
 * @scratch: allocate memory that workers do not share with the pipeline; sets all of its pointers
 * @room: allocate the stage's part of a result; -1: no memory
 * @run: process an image. 1: go on; 0: veto; -1 with the reason in the pipeline's why. Adds to
 *	bytes_in and bytes_out
 * @whole: are whole numbers still whole after the stage? NULL of one that changes the image: no
 * @valid: can a pixel of the raw image be valid? NULL: each
 * @end: release the resources of begin() and scratch(), even after a failure; a worker's of scratch() only
 */
struct rpu_stage {
	const char *name;
	bool on_gpu, changes, driven;
	json_reader read;
	int (*begin)(struct rashpa_pipeline *p, char *why);
	int (*scratch)(struct rashpa_pipeline *p, char *why);
	int (*room)(const struct rashpa_pipeline *p, struct rpu_work *w);
	int (*run)(struct rashpa_pipeline *p, struct rpu_work *w);
	bool (*whole)(const struct rashpa_pipeline *p);
	bool (*valid)(const struct rashpa_pipeline *p, size_t pixel);
	void (*end)(struct rashpa_pipeline *p);
};

#define RPU_STAGE_DECLARED(index, name)	extern const struct rpu_stage rpu_stage_##name;
RPU_ALL_STAGES(RPU_STAGE_DECLARED)
extern const struct rpu_stage * const rpu_stages[RPU_STAGES];

/**
 * struct rpu_sink - a destination of results
 * @name: name in configurations and reports
 * @read: read the sink's object in "sinks" of the configuration: the argument is a struct
 *	rpu_sink_at, whose state is allocated here
 * @open: acquire resources when the pipeline begins; existing data must survive, since the next
 *	sink may be refused; -1 with the reason
 * @start: all sinks are accepted, so existing data may be replaced; -1 with the reason. NULL:
 *	nothing to do
 * @pack: in a worker: pack what put() will write, as the work's packed; NULL: put does it
 * @put: write a result: 0; or -1 with the reason: it is lost. Adds to bytes_out
 * @flush: make results survive the end of this program: 0; or -1 with the reason: results since
 *	the last flush are lost, and are counted here. NULL: put does it
 * @finish: complete the output after the last result: 0, or -1 with the reason
 * @end: release the state, even after a failure
 */
struct rpu_sink {
	const char *name;
	json_reader read;
	int (*open)(struct rashpa_pipeline *p, void *state, char *why);
	int (*start)(struct rashpa_pipeline *p, void *state, char *why);
	void (*pack)(void *state, struct rpu_work *w);
	int (*put)(void *state, const struct rashpa_result *r, struct rashpa_stage_stat *stat,
		   char *why);
	int (*flush)(void *state, struct rashpa_stage_stat *stat, char *why);
	int (*finish)(void *state, char *why);
	void (*end)(void *state);
};

extern const struct rpu_sink rpu_sink_raw, rpu_sink_streams, rpu_sink_nexus, rpu_sink_publish;

struct rpu_file;

struct rpu_sink_at {
	const struct rpu_sink *sink;
	void *state;		/* NULL: the configuration does not name the sink */
	bool only_raw;		/* needs no image but the raw one */
	bool go_on;		/* "on_error": "go_on" */
	bool dead;		/* has failed and reported it */
};

/* "on_error": "stop" or "go_on"; to is the struct rpu_sink_at */
int rpu_read_on_error(struct json_place *at, struct json_object *value, void *to);

/* "sinks": to is the pipeline */
int rpu_sinks_read(struct json_place *at, struct json_object *value, void *to);
/* 0; or a negative errno in a forked process, which lacks the threads of OpenMP. */
int rpu_threads(void);
/* Is this a fork of the process that has opened the pipeline? */
bool rpu_is_elsewhere(const struct rashpa_pipeline *p);
/* Returns a negative errno, with the reason why the pipeline's state refuses a call. */
int rpu_unready(const struct rashpa_pipeline *p);
/* Count the image of a worker, and run what depends on the order of images. */
void rpu_follow(struct rashpa_pipeline *p, struct rpu_work *w);
int rpu_sinks_open(struct rashpa_pipeline *p, char *why);
void rpu_sinks_end(struct rashpa_pipeline *p);

/* A result and the memory that it points to. One free() releases all. */
struct rpu_work {
	const struct rashpa_pipeline *pipeline;
	/* counts of an image that a worker has processed, until put() adds them; stat.stage: NULL then */
	struct rashpa_pipeline_stat stat;
	struct rashpa_stage_stat spent[RPU_STAGES];
	struct rpu_raw raw;
	float *pretreated, *assembled;
	float *image;			/* input of the next stage: one of these */
	struct rpu_csr csr;
	struct rashpa_peak *peak;
	float *intensity, *sigma;
	float *mean, *deviation;
	struct rpu_packer *packer;	/* compresses for a sink, in a worker; or NULL */
	const void *packed;
	size_t packed_bytes;
	/* last: a program with a newer header has a longer one */
	struct rashpa_result result;
};

static inline struct rpu_work *rpu_work_of(const struct rashpa_result *result)
{
	return (struct rpu_work *)((uintptr_t)result - offsetof(struct rpu_work, result));
}

#define RPU_PATH	PATH_MAX
#define RPU_INPUTS	16
#define RPU_MODULES	64
#define RPU_SIDE	65536	/* pixels, at most */

/* First flipped (1: left is right, 2: top is bottom), then rotated clockwise, by degrees. */
struct rpu_turn {
	uint32_t flip, rotate;
};

/* A part of an image, and where it goes. */
struct rpu_module {
	uint32_t x, y, width, height;
	uint32_t to_x, to_y;
	struct rpu_turn turn;
};

struct rashpa_pipeline {
	const struct rashpa_pipeline *of;	/* a worker's pipeline; NULL: it is no worker */
	const struct rpu_engine *engine;
	char board_name[32];		/* board that pretreats; empty: the engine does */
	struct rpu_board *board;	/* set after begin or an offer of memory */
	const struct rpu_gpu_driver *gpu_driver;	/* NULL: stages are the engine's */
	char gpu_name[32];
	struct rpu_gpu *gpu;		/* set after begin or an offer of memory */
	pid_t process;			/* process that has opened the pipeline */
	char why[WHY_SIZE];	/* failure of the last image */
	char refused[WHY_SIZE];	/* failure of begin */
	enum { RPU_OPEN, RPU_BROKEN, RPU_BEGUN, RPU_FINISHED } state;
	struct rashpa_geometry geometry;
	char config[RPU_PATH];		/* file of the configuration, or empty */
	struct {			/* files that stages read */
		const char *path;
		char key[256];
	} input[RPU_INPUTS];
	unsigned int inputs;
	bool used[RPU_STAGES];
	uint32_t width, height;		/* of processed images */

	struct {
		bool jungfrau, whole, move;
		char pedestal[RPU_GAINS][RPU_PATH], gain[RPU_GAINS][RPU_PATH], mask[RPU_PATH];
		unsigned int pedestals, gains;
		double constant_gain;	/* 0: none */
		bool gain_kev, result_kev;
		double photon_energy_kev;	/* 0: not said */
		uint32_t dark_images;	/* images in the mean; 1: only the last one */
		uint32_t saturated;	/* 0: the largest number of the type */
		float *planes;
		struct rpu_calibration calibration;
	} pretreat;
	struct {
		char blank[RPU_PATH];
		struct rpu_correction by;
	} correct;
	struct {
		struct rpu_module module[RPU_MODULES];
		unsigned int modules;
		uint32_t wide_x, wide_y;	/* pixels of a chip; 0: no wide ones */
		struct rpu_turn turn;
		struct rpu_binning bin;
		struct rpu_assembly map;
		float *fine;			/* image before binning; NULL: no binning */
	} assemble;
	struct {
		char poni[RPU_PATH];
		bool has_centre;
		double centre[2];
		uint32_t capacity;
		struct rpu_finder finder;
	} peaks;
	struct {
		double threshold;
		uint64_t pixels;
		uint32_t peaks;
	} veto;
	struct {
		double threshold;
		uint32_t capacity;	/* 0: one of eight pixels */
		struct rpu_bench *bench;
	} compress;
	struct {
		char poni[RPU_PATH];
		uint32_t unit;			/* of enum in stage-integrate.c */
		bool has_range, bbox, solid_angle, polarised;
		double range[2], polarization;
		struct rpu_matrix matrix;
		double *axis;			/* [bins]: middles of bins */
	} integrate;
	struct {
		uint32_t images;
		uint64_t so_far;
		struct rpu_statistics sum;
	} accumulate;

	struct rashpa_pipeline_stat stat;
	struct rashpa_stage_stat stage_stat[RPU_STAGES];

	/* used by the thread that puts results */
	struct rpu_sink_at sink[RPU_SINKS];
	struct rpu_file *file[RPU_SINKS];	/* open files of sinks, or NULL */
	struct rashpa_stage_stat sink_stat[RPU_SINKS];
};

static inline size_t rpu_pixels(const struct rashpa_pipeline *p)
{
	return (size_t)p->width * p->height;
}

/* Memory for vectors, cleared; free() it. */
void *rpu_memory(size_t n, size_t size);

/* Room for all threads; release it by rpu_bench_free(). NULL: no memory. */
struct rpu_bench *rpu_bench_new(uint32_t width, uint32_t capacity);
void rpu_bench_free(struct rpu_bench *bench);

/* Reader for json-in.h: a path, relative to the configuration's folder: char[RPU_PATH]. */
int rpu_read_path(struct json_place *at, struct json_object *value, void *to);
/* The same in the pipeline, of a file that a stage reads: a sink does not write it. */
int rpu_read_input(struct json_place *at, struct json_object *value, void *to);
/* A number from min to max. */
int rpu_read_real(struct json_place *at, struct json_object *value, double min, double max,
		  double *to);
int rpu_read_u32(struct json_place *at, struct json_object *value, uint32_t min, uint32_t max,
		 uint32_t *to);
/* Define such a reader for a table of keys. */
#define RPU_READS(kind, name, min, max)								\
	static int name(struct json_place *at, struct json_object *value, void *to)		\
	{											\
		return rpu_read_##kind(at, value, min, max, to);				\
	}
/* The index of one of these words, in the order of their enum; false or true of two. */
#define RPU_READS_WORD(type, name, ...)								\
	static int name(struct json_place *at, struct json_object *value, void *to)		\
	{											\
		static const char * const words[] = { __VA_ARGS__, NULL };			\
		unsigned int index;								\
												\
		if (json_read_word(at, value, words, &index))					\
			return -1;								\
		*(type *)to = index;								\
		return 0;									\
	}

#endif /* RPU_PIPELINE_H */
