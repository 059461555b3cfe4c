// SPDX-License-Identifier: LGPL-2.1-or-later
/* An exchange over PMIx, which mpirun and srun --mpi=pmix provide. */
#include "fabric/exchange.h"

#include <errno.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/internal.h"

struct pmix {
	pmix_proc_t me;
	uint32_t size, swaps;
};

static int pmix_error(pmix_status_t status, const char *what)
{
	return fabric_fail(status == PMIX_ERR_TIMEOUT ? ETIMEDOUT : EIO, "PMIx: %s: %s", what,
			   PMIx_Error_string(status));
}

static int pmix_open(struct rashpa_launch *launch, void **link)
{
	struct pmix *p = calloc(1, sizeof(*p));
	pmix_proc_t all;
	pmix_value_t *value;
	pmix_status_t status;

	if (!p)
		return fabric_fail(ENOMEM, "no memory");
	status = PMIx_Init(&p->me, NULL, 0);
	if (status != PMIX_SUCCESS) {
		free(p);
		return fabric_fail(ENOENT, "this process has no rank (PMIx: %s): start it by mpirun, or srun --mpi=pmix, or set RASHPA_MEET=HOST:PORT",
				   PMIx_Error_string(status));
	}
	*link = p;
	PMIX_PROC_CONSTRUCT(&all);
	PMIX_LOAD_PROCID(&all, p->me.nspace, PMIX_RANK_WILDCARD);
	status = PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value);
	if (status != PMIX_SUCCESS)
		return pmix_error(status, "the number of processes is missing");
	p->size = value->data.uint32;
	*launch = (struct rashpa_launch) { .rank = p->me.rank, .size = p->size };
	PMIX_VALUE_RELEASE(value);
	return 0;
}

/* Wait until all processes have come and their data are available. */
static int fence(const struct pmix *p, uint64_t end)
{
	const uint64_t now = fabric_now();
	int seconds = now < end ? (end - now + 999999999) / 1000000000 : 1;
	bool collect = true;
	pmix_info_t info[2];
	pmix_proc_t all;
	pmix_status_t status;

	PMIX_PROC_CONSTRUCT(&all);
	PMIX_LOAD_PROCID(&all, p->me.nspace, PMIX_RANK_WILDCARD);
	PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
	PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
	status = PMIx_Fence(&all, 1, info, 2);
	return status == PMIX_SUCCESS ? 0 : pmix_error(status, "some processes did not come");
}

static int publish(const char *key, const void *pieces, size_t bytes)
{
	pmix_value_t value = { .type = PMIX_BYTE_OBJECT };
	pmix_status_t status;

	value.data.bo.bytes = (void *)(uintptr_t)pieces;	/* which PMIx copies */
	value.data.bo.size = bytes;
	status = PMIx_Put(PMIX_GLOBAL, key, &value);
	if (status == PMIX_SUCCESS)
		status = PMIx_Commit();
	return status == PMIX_SUCCESS ? 0 : pmix_error(status, "addresses cannot be published");
}

/* Get the piece of a peer for this process. */
static int piece_of(const struct pmix *p, const char *key, uint32_t peer, uint32_t bytes, void *piece)
{
	pmix_value_t *value;
	pmix_proc_t whose;
	pmix_status_t status;
	int error = 0;

	PMIX_LOAD_PROCID(&whose, p->me.nspace, peer);
	status = PMIx_Get(&whose, key, NULL, 0, &value);
	if (status != PMIX_SUCCESS)
		return pmix_error(status, "the address of a peer is missing");
	if (value->type != PMIX_BYTE_OBJECT || value->data.bo.size != (size_t)p->size * bytes)
		error = fabric_fail(EPROTO, "rank %u published invalid addresses", peer);
	else
		memcpy(piece, value->data.bo.bytes + (size_t)p->me.rank * bytes, bytes);
	PMIX_VALUE_RELEASE(value);
	return error;
}

static int pmix_swap(void *link, const void *mine, uint32_t bytes, void *theirs, uint64_t end)
{
	struct pmix *p = link;
	char key[32];
	int error;

	/* PMIx keeps what it got for a key, so each swap has another one */
	snprintf(key, sizeof(key), "rashpa.builder.%u", p->swaps++);
	error = bytes ? publish(key, mine, (size_t)p->size * bytes) : 0;
	if (!error)
		error = fence(p, end);
	for (uint32_t i = 0; bytes && i < p->size && !error; i++)
		error = piece_of(p, key, i, bytes, (uint8_t *)theirs + (size_t)i * bytes);
	return error;
}

static void pmix_close(void *link)
{
	if (!link)
		return;
	PMIx_Finalize(NULL, 0);
	free(link);
}

const struct exchange pmix_exchange = {
	.open = pmix_open,
	.swap = pmix_swap,
	.close = pmix_close,
};
