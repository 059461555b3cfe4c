/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Structs of programs that were built with another version of a header. */
#ifndef SIZED_H
#define SIZED_H

#include <stddef.h>
#include <string.h>

/*
 * Copy a struct of the program into the library's, or the other way round. One of them may be an older
 * version, which is the beginning of the other one. Members that @from does not have become 0.
 */
static inline void sized_copy(void *to, size_t to_size, const void *from, size_t from_size)
{
	const size_t n = to_size < from_size ? to_size : from_size;

	memcpy(to, from, n);
	memset((char *)to + n, 0, to_size - n);
}

#endif /* SIZED_H */
