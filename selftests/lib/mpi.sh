# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced where mpirun starts processes on one machine. By default Open MPI refuses root, binds to
# processors and searches for networks.

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,sm PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

# rank_of PROCESS: rank that mpirun gave it; nothing if it has ended
rank_of() { { tr '\0' '\n' <"/proc/$1/environ" | sed -n 's/^PMIX_RANK=//p'; } 2>/dev/null; }
