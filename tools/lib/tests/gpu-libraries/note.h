/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is called is written to the file STAND_IN_LOG; STAND_IN has words that change a stand-in. */
#ifndef NOTE_H
#define NOTE_H

#include <stdbool.h>

__attribute__((format(printf, 1, 2)))
void note(const char *format, ...);

bool told(const char *word);

#endif /* NOTE_H */
