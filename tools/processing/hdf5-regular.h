/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* HDF5 opens whatever links and virtual datasets name, and waits if that is a pipe: not so here. */
#ifndef RPU_HDF5_REGULAR_H
#define RPU_HDF5_REGULAR_H

#include <stdbool.h>

#define H5_USE_110_API
#include <hdf5.h>

/* Access to files that are regular ones, for reading; H5Pclose() it. Negative: it failed. */
hid_t rpu_regular_access(void);

/* Name refused in this thread since rpu_regular_access(), as no regular file; or NULL. */
const char *rpu_regular_refused(void);

/* Does a dataset have its numbers in other files, of which one is no regular one? */
bool rpu_regular_storage(hid_t set);

#endif /* RPU_HDF5_REGULAR_H */
