/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* --tls: the keys of this side. */
#ifndef TLS_OPTIONS_H
#define TLS_OPTIONS_H

#include <argp.h>

/* A child of a tool's parser; its input is a struct wire_files. */
extern const struct argp tls_argp;

#endif /* TLS_OPTIONS_H */
