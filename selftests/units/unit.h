/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the tests of single driver files. Each program is one file and includes this once. */
#ifndef UNIT_H
#define UNIT_H

#include "core/call.h"

#include <tap.h>

struct task_struct *current;

static struct rashpa_call call;		/* the ioctl of all tests */

int rashpa_fail(struct rashpa_call *c, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(c->reason, sizeof(c->reason), fmt, args);
	va_end(args);
	return err;
}

/* A call of the driver succeeds (0), or fails with an error, and a word in its sentence. */
#define ANSWERS(is, err, word)	unit_answers(__LINE__, #is, is, err, word)

static inline void unit_answers(int line, const char *what, int is, int err, const char *word)
{
	if (is != err || (err && !strstr(call.reason, word)))
		tap_fail(what, line, "%d instead of %d: \"%s\" without \"%s\"", is, err,
			 call.reason, word);
}

/* Arrays of the test stand for arrays of user space. */
void *rashpa_copy_array(struct rashpa_call *c, u64 from, u32 n, u32 usize, size_t min,
			size_t size)
{
	void *array;

	if (!n)
		return NULL;
	if (usize != size)
		return ERR_PTR(rashpa_fail(c, -EINVAL, "elements of %u bytes", usize));
	array = malloc(n * size);
	return array ? memcpy(array, (void *)from, n * size) : ERR_PTR(-ENOMEM);
}

int rashpa_store_array(struct rashpa_call *c, u64 to, u32 n, u32 usize, size_t min,
		       const void *from, size_t size)
{
	memcpy((void *)to, from, n * size);
	return 0;
}

/* The same numbers in each run. */
static inline u32 unit_random(void)
{
	static u64 state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 33;
}

#endif /* UNIT_H */
