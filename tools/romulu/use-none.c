// SPDX-License-Identifier: LGPL-2.1-or-later
/* Stacks are counted, and no pixel is touched. */
#include "romulu/romulu.h"

const struct use use_none = { .name = "count" };
