// SPDX-License-Identifier: LGPL-2.1-or-later
/* Transport over MPI. */
#include "fabric/internal.h"

#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Open MPI that survives the loss of a rank (ULFM): mpirun --with-ft ulfm. */
#if defined(OPEN_MPI) && __has_include("mpi-ext.h")
#include <mpi-ext.h>
#endif
#ifdef OMPI_HAVE_MPI_EXT_FTMPI
#define HAS_GONE(class)	((class) == MPIX_ERR_PROC_FAILED || (class) == MPIX_ERR_REVOKED)
#else
#define HAS_GONE(class)	((void)(class), false)	/* the loss of any rank ends the job */
#endif

#define FAILED_NS	50000000	/* between two polls for dead ranks */
#define GONE_NS	1000000000	/* time for MPI to end requests to a dead rank */
#define ALL_NS	20000000	/* testall: time until requests are tested one by one */

struct mpi_peer {
	MPI_Request send[RASHPA_FABRIC_DEPTH], receive[RASHPA_FABRIC_DEPTH];
	uint64_t alone_ns;	/* time of the last test of requests one by one */
	uint64_t gone_ns;	/* time when its death was seen; 0: alive */
};

struct mpi {
	MPI_Comm world;
	bool ours;		/* the library called MPI_Init_thread(), and finalizes MPI */
	uint64_t looked_ns;	/* time of the last poll for dead ranks */
	int failed;		/* number of known dead ranks; -1: MPI cannot report them */
	int (*begin_send)(const void *buffer, int n, MPI_Datatype type, int to, int tag,
			  MPI_Comm comm, MPI_Request *request);
};

static int explain(int error, const char *what)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length;

	if (error == MPI_SUCCESS)
		return 0;
	MPI_Error_string(error, text, &length);
	return fabric_fail(EIO, "MPI: %s: %s", what, text);
}

static int begin_mpi(struct mpi *m)
{
	int begun, ended, level = MPI_THREAD_SINGLE, error = 0;

	MPI_Finalized(&ended);
	if (ended)
		return fabric_fail(EALREADY, "MPI has ended in this process, and cannot start again");
	MPI_Initialized(&begun);
	if (begun) {
		MPI_Query_thread(&level);
	} else {
		setenv(RASHPA_FABRIC_OPENMPI, 0);
		error = explain(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level),
				"initialization failed");
		m->ours = true;
	}
	if (!error && level < MPI_THREAD_SERIALIZED)
		error = fabric_fail(EOPNOTSUPP, "this MPI allows one thread only: initialize it with MPI_THREAD_SERIALIZED");
	return error;
}

static int mpi_open(struct rashpa_fabric *f)
{
	struct mpi *m = calloc(1, sizeof(*m));
	int rank, size, found = 0, *most, error;

	if (!m)
		return fabric_fail(ENOMEM, "no memory");
	m->world = MPI_COMM_NULL;
	f->link = m;
	error = begin_mpi(m);
	if (error)
		return error;
	error = explain(MPI_Comm_dup(MPI_COMM_WORLD, &m->world), "cannot duplicate the communicator");
	if (error)
		return error;
	MPI_Comm_set_errhandler(m->world, MPI_ERRORS_RETURN);
	/* MPI reports a death without a request there, and would end this process by default */
	if (m->ours)
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(m->world, &rank);
	MPI_Comm_size(m->world, &size);
	MPI_Comm_get_attr(m->world, MPI_TAG_UB, &most, &found);
	if (!found || *most < (int)RASHPA_FABRIC_TAG)
		return fabric_fail(EOPNOTSUPP, "the tags of this MPI are too small: %#x is needed",
				   RASHPA_FABRIC_TAG);
	f->launch = (struct rashpa_launch) { .rank = rank, .size = size };
	if (f->options.poll >= RASHPA_FABRIC_WAITSOME && size != 2)
		return fabric_fail(EINVAL, "%d processes that block in MPI would deadlock: use two, or another way to poll",
				   size);
	/* MPI_Isend may complete before the receiver has room: memory may grow */
	m->begin_send = f->options.flags & RASHPA_FABRIC_BUFFERED ? MPI_Isend : MPI_Issend;
	return 0;
}

static int mpi_connect(struct rashpa_fabric *f, uint64_t end)
{
	struct mpi *m = f->link;
	MPI_Request request;
	int done = 0, error;

	for (uint32_t i = 0; i < f->launch.size; i++) {
		struct mpi_peer *l = malloc(sizeof(*l));

		if (!l)
			return fabric_fail(ENOMEM, "no memory");
		for (unsigned int j = 0; j < RASHPA_FABRIC_DEPTH; j++)
			l->send[j] = l->receive[j] = MPI_REQUEST_NULL;
		l->alone_ns = fabric_now();
		f->peer[i].link = l;
	}
	error = explain(MPI_Ibarrier(m->world, &request), "the barrier failed");
	while (!error && !done) {
		error = explain(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "the barrier failed");
		if (!done && fabric_now() > end)
			return fabric_fail(ETIMEDOUT, "some of %u ranks did not come within %u ms",
					   f->launch.size, f->options.timeout_ms);
		if (!done)
			sched_yield();
	}
	return error;
}

/* --- the thread --- */

static MPI_Request *requests(struct queue *q, struct mpi_peer *l)
{
	return q->receives ? l->receive : l->send;
}

/* Convert an error of MPI to the status of a request. */
static int failed(struct peer *peer, int error)
{
	int class;

	MPI_Error_class(error, &class);
	if (HAS_GONE(class)) {
		peer_gone(peer, peer->rank);
		return -EPIPE;
	}
	return class == MPI_ERR_TRUNCATE ? -EMSGSIZE : -EIO;
}

static int mpi_begin(struct queue *q, struct peer *peer, unsigned int slot)
{
	const struct mpi *m = q->fabric->link;
	const struct rashpa_fabric_request *r = &queue_flying(q, slot)->request;
	MPI_Request *request = &requests(q, peer->link)[slot];
	int error;

	if (q->receives)
		error = MPI_Irecv(r->buffer, r->length, MPI_BYTE, r->peer, MPI_ANY_TAG, m->world,
				  request);
	else
		error = m->begin_send(r->buffer, r->length, MPI_BYTE, r->peer, r->tag, m->world,
				      request);
	return error == MPI_SUCCESS ? 0 : failed(peer, error);
}

static void done(struct queue *q, unsigned int slot, int error, const MPI_Status *status)
{
	const struct rashpa_fabric_request *r = &queue_flying(q, slot)->request;
	int length = r->length, tag = 0;

	if (error != MPI_SUCCESS) {
		queue_done(q, slot, failed(&q->fabric->peer[r->peer], error), 0, r->tag);
		return;
	}
	if (q->receives) {
		MPI_Get_count(status, MPI_BYTE, &length);
		tag = status->MPI_TAG;
	}
	queue_done(q, slot, 0, length, tag < 0 ? 0 : tag);
}

/* Completes the oldest requests, up to the first that is not done. */
static bool test(struct queue *q, MPI_Request *request)
{
	bool any = false;
	MPI_Status status;
	int flag, error;

	while (q->flying) {
		const unsigned int slot = q->order[0];

		flag = 0;
		count(&q->polls, 1);
		error = MPI_Test(&request[slot], &flag, &status);
		if (error == MPI_SUCCESS && !flag)
			break;
		done(q, slot, error, &status);
		any = true;
	}
	return any;
}

static bool some(struct queue *q, MPI_Request *request, bool wait)
{
	MPI_Status status[RASHPA_FABRIC_DEPTH];
	int index[RASHPA_FABRIC_DEPTH], n = 0, error;

	count(&q->polls, 1);
	error = wait ? MPI_Waitsome(q->fabric->options.depth, request, &n, index, status) :
		       MPI_Testsome(q->fabric->options.depth, request, &n, index, status);
	if (n == MPI_UNDEFINED)
		return false;
	for (int i = 0; i < n; i++)
		done(q, index[i], error == MPI_ERR_IN_STATUS ? status[i].MPI_ERROR : MPI_SUCCESS,
		     &status[i]);
	return n > 0;
}

/* Completes all requests of a queue, or none. */
static bool all(struct queue *q, struct peer *peer, MPI_Request *request, bool wait)
{
	const uint32_t depth = q->fabric->options.depth;
	MPI_Status status[RASHPA_FABRIC_DEPTH];
	unsigned int slot[RASHPA_FABRIC_DEPTH], n = 0;
	int flag = wait, error;

	count(&q->polls, 1);
	error = wait ? MPI_Waitall(depth, request, status) :
		       MPI_Testall(depth, request, &flag, status);
	if (error == MPI_SUCCESS && !flag)
		return false;
	/* leave out requests that completed before, and wait for older ones */
	for (uint32_t i = 0; i < q->flying; i++) {
		slot[n] = q->order[i];
		n += !(q->ready >> slot[n] & 1);
	}
	/* those that are not done have no error yet */
	for (uint32_t i = 0; i < n; i++) {
		const int own = error == MPI_ERR_IN_STATUS ? status[slot[i]].MPI_ERROR : error;

		if (own == MPI_ERR_PENDING || request[slot[i]] != MPI_REQUEST_NULL)
			continue;
		done(q, slot[i], own, &status[slot[i]]);
		if (i % 8 == 7)
			queue_begin(q, peer);	/* refill the slots that the loop has passed */
	}
	return true;
}

static bool look(struct queue *q, struct peer *peer, bool *alone)
{
	struct mpi_peer *l = peer->link;
	MPI_Request *request = requests(q, l);

	if (!q->flying)
		return false;
	switch (q->fabric->options.poll) {
	case RASHPA_FABRIC_TESTSOME:
	case RASHPA_FABRIC_WAITSOME:
		return some(q, request, q->fabric->options.poll == RASHPA_FABRIC_WAITSOME);
	case RASHPA_FABRIC_TESTALL:
		if (all(q, peer, request, false))
			return true;
		/* at the end of a run, a queue may never complete as a whole */
		if (fabric_now() < l->alone_ns + ALL_NS)
			return false;
		*alone = true;
		return some(q, request, false);
	case RASHPA_FABRIC_WAITALL:
		return all(q, peer, request, true);
	default:
		return test(q, request);
	}
}

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
/* Marks dead ranks as gone, in the order of their deaths, also those without requests. */
static void take_failed(struct rashpa_fabric *f, MPI_Group failed, int n)
{
	struct mpi *m = f->link;
	MPI_Group all;

	MPI_Comm_group(m->world, &all);
	for (; m->failed < n; m->failed++) {
		int rank = MPI_UNDEFINED;

		MPI_Group_translate_ranks(failed, 1, &m->failed, all, &rank);
		if (rank >= 0 && (uint32_t)rank < f->launch.size)
			peer_gone(&f->peer[rank], rank);
	}
	MPI_Group_free(&all);
}

static void find_failed(struct rashpa_fabric *f)
{
	struct mpi *m = f->link;
	MPI_Group failed;
	int n = 0;

	if (m->failed < 0 || fabric_now() < m->looked_ns + FAILED_NS)
		return;
	m->looked_ns = fabric_now();
	if (MPIX_Comm_get_failed(m->world, &failed) != MPI_SUCCESS) {
		m->failed = -1;
		return;
	}
	MPI_Group_size(failed, &n);
	if (n > m->failed)
		take_failed(f, failed, n);
	if (failed != MPI_GROUP_EMPTY)
		MPI_Group_free(&failed);
}
#else
static void find_failed(struct rashpa_fabric *f)
{
	(void)f;
}
#endif

static void cancel(MPI_Request *request, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (request[i] == MPI_REQUEST_NULL)
			continue;
		MPI_Cancel(&request[i]);
		MPI_Request_free(&request[i]);
	}
}

/*
 * Open MPI 5.0 with ULFM never completes some messages to a dead rank. Give them up, as their
 * buffers would never come back.
 */
static bool give_up(struct peer *peer, struct mpi_peer *l)
{
	const uint64_t now = fabric_now();

	if (!l->gone_ns)
		l->gone_ns = now;
	if (now < l->gone_ns + GONE_NS || !(peer->send.flying || peer->receive.flying))
		return false;
	cancel(l->send, RASHPA_FABRIC_DEPTH);
	cancel(l->receive, RASHPA_FABRIC_DEPTH);
	queue_end(&peer->send, -EPIPE);
	queue_end(&peer->receive, -EPIPE);
	return true;
}

static bool mpi_poll(struct rashpa_fabric *f, struct peer *peer)
{
	struct mpi_peer *l = peer->link;
	bool alone = false, any = look(&peer->receive, peer, &alone);

	find_failed(f);
	any |= look(&peer->send, peer, &alone);
	if (atomic_load_explicit(&peer->gone, memory_order_relaxed))
		any |= give_up(peer, l);
	if (alone)
		l->alone_ns = fabric_now();
	return any && f;
}

/* MPI offers nothing to sleep on: yield the processor, and poll again. */
static void mpi_sleep(struct rashpa_fabric *f)
{
	if (!atomic_load_explicit(&f->stop, memory_order_relaxed))
		sched_yield();
}

static void mpi_close(struct rashpa_fabric *f)
{
	struct mpi *m = f->link;
	bool whole = f->running && !f->failed;

	if (!m)
		return;
	for (uint32_t i = 0; f->peer && i < f->launch.size; i++) {
		struct mpi_peer *l = f->peer[i].link;

		if (!l)
			continue;
		cancel(l->receive, RASHPA_FABRIC_DEPTH);
		/*
		 * A send without a matching receive never completes. Nor does a collective call
		 * after a death: ranks that know of it wait for ranks that do not. So this process
		 * exits without MPI_Finalize(), and the launcher treats it as a survivor.
		 */
		whole = whole && !f->peer[i].send.flying && !atomic_load(&f->peer[i].gone);
		free(l);
	}
	if (whole)
		MPI_Comm_free(&m->world);
	if (m->ours && whole)
		MPI_Finalize();
	free(m);
}

const struct transport mpi_transport = {
	.name = "mpi",
	.open = mpi_open,
	.connect = mpi_connect,
	.begin = mpi_begin,
	.poll = mpi_poll,
	.sleep = mpi_sleep,
	.close = mpi_close,
};
