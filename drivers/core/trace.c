// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: the code behind the tracepoints.
 */
#include <linux/types.h>

#define CREATE_TRACE_POINTS
#include "core/trace.h"
