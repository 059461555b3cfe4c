/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file that a sink writes: what is there stays as it is until all sinks are accepted. */
#ifndef RPU_SINK_FILE_H
#define RPU_SINK_FILE_H

#include "pipeline.h"

/**
 * struct rpu_file - one of them
 * @path: its name
 * @overwrite: what is there may be lost
 * @is_stream: a pipe or a device is taken as well, and an empty file is as good as none
 * @fd: open for writing; -1: it is not
 * @made: it was not there, and the pipeline has not begun: it goes again
 */
struct rpu_file {
	char path[RPU_PATH];
	bool overwrite, is_stream;
	int fd;
	bool made;
};

/*
 * Have it for this sink alone: not for another one, or another process, nor is it what the pipeline
 * reads. It is not emptied. -1 with the reason.
 */
int rpu_file_open(struct rashpa_pipeline *p, enum rpu_sink_index sink, struct rpu_file *f,
		  char *why);

/* Nobody can open it any more. */
bool rpu_file_is_gone(const struct rpu_file *f);

/* As it is; also of one that is not open. -1: errno says what of it may not be there. */
int rpu_file_close(struct rpu_file *f);

#endif /* RPU_SINK_FILE_H */
