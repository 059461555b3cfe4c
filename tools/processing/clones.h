/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A function as several kinds of processors want it: which one it is, the program finds out. */
#ifndef RPU_CLONES_H
#define RPU_CLONES_H

/* the thread sanitizer is not there yet when it is found out; clang has another word for it */
#ifdef __has_feature
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__
#endif
#endif
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

#endif /* RPU_CLONES_H */
