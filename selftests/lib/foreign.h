/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Modules that only tests load: exporters of memory, and importers of ours. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "../modules/rashpa_liar.h"
#include "rig.h"

/* Load rashpa_@name.ko and open /dev/rashpa-@name. NULL, or why it cannot be loaded. */
const char *module_load(const char *name, int *fd);
/* Returns 0 or a negative errno. */
int module_unload(const char *name);

/* The format of the modules: domain << 16 | bus << 8 | devfn. */
uint32_t bdf_of(const struct fpga *fpga);

/* ----------------------------------------------------- calls that wait - */

/* A call in a separate thread, and whether it has returned. */
struct caller {
	pthread_t thread;
	int (*what)(struct caller *c);	/* NULL: the ioctl @cmd on @fd with @arg */
	int fd;
	unsigned long cmd;
	void *arg;
	atomic_int tid;
	atomic_bool done;
	int err;
};

/* Start it: true when it sleeps in @function of the kernel, false if it returns before. */
bool caller_waits(struct caller *c, const char *function);
/* Wait for its end; returns 0 or a negative errno. */
int caller_ends(struct caller *c);

/* ------------------------------------------------------- rashpa_liar ---- */

extern int liar;	/* /dev/rashpa-liar, or -1 */

#define LIAR_LENGTH	((u64)IMAGES * IMAGE)	/* a dataset */

/* Memory of LIAR_LENGTH; kinds with a BAR have @bar's on-board memory. NULL if it does not exist. */
struct rashpa_liar_export liar_memory(uint32_t model, uint32_t kind, const struct fpga *bar);
/* fd of the dma-buf; the test ends where it fails */
int liar_export(struct rashpa_liar_export *arg);
/* One of RASHPA_LIAR_REVOKE, ALLOW, MOVE, COUNT, which is checked to succeed. */
struct rashpa_liar_state liar_tell(unsigned long cmd, int fd, uint32_t kind);
/* A new open file of the module with a fence of @fd, or with @bdf its importer's. */
int liar_fence(unsigned long cmd, int fd, uint32_t bdf);
/* Complete the move of @fence's memory. */
void liar_arrive(int fence);
/* Check that no mapping and no pin is left. */
void liar_is_free(int fd);
void liar_close(int fd);

/**
 * struct lent - an exporter's memory, mapped and programmed
 * @fd: the dma-buf
 * @memory: its host memory
 * @rig: board and map that stream into it
 */
struct lent {
	int fd;
	char *memory;
	struct rig rig;
};

/* @fd: the dma-buf, which lent_down() closes */
void lent_up(struct lent *l, const struct fpga *fpga, int fd);
void lent_down(struct lent *l);

#endif /* FOREIGN_H */
