/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Output file of a sink. An existing file stays unchanged until all sinks are accepted. */
#ifndef RPU_SINK_FILE_H
#define RPU_SINK_FILE_H

#include "processing/pipeline.h"

/**
 * struct rpu_file - output file of a sink
 * @path: name of the file
 * @overwrite: an existing file may be overwritten
 * @is_stream: pipes and devices are accepted, too, and an empty file counts as missing
 * @fd: file descriptor for writing; -1: not open
 * @made: the sink created the file; it is removed unless the pipeline begins
 */
struct rpu_file {
	char path[RPU_PATH];
	bool overwrite, is_stream;
	int fd;
	bool made;
};

/*
 * Open the file for this sink alone. A file of another sink or process, or an input of the
 * pipeline, is refused. The file is not emptied. -1 with the reason.
 */
int rpu_file_open(struct rashpa_pipeline *p, enum rpu_sink_index sink, struct rpu_file *f,
		  char *why);

/* Store the reason of a failure, by errno. Returns -1. */
int rpu_file_error(const struct rpu_file *f, char *why);

/* Was the file removed, so that no process can open it? */
bool rpu_file_is_gone(const struct rpu_file *f);

/* Close the file if it is open. -1 with errno: data may be missing. */
int rpu_file_close(struct rpu_file *f);

#endif /* RPU_SINK_FILE_H */
