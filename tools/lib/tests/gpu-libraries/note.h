/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls are logged to the file STAND_IN_LOG; words in STAND_IN change a stand-in's behaviour. */
#ifndef NOTE_H
#define NOTE_H

#include <stdbool.h>

__attribute__((format(printf, 1, 2)))
void note(const char *format, ...);

bool told(const char *word);

#endif /* NOTE_H */
