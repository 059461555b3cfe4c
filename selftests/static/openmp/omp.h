/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of OpenMP that we call, for an analyzer without a header: gcc's is for gcc. */
#ifndef OMP_H
#define OMP_H

int omp_get_max_threads(void);
int omp_get_num_procs(void);
int omp_get_num_threads(void);
int omp_get_thread_num(void);
void omp_set_num_threads(int threads);

#endif /* OMP_H */
