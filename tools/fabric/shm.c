// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transport between processes of one machine. Each process has a window that its
 * peers write to: a ring of requests for each peer. The receiver copies directly from the buffer of
 * the sender, and acknowledges; so a send completes when the message has arrived. Sockets between
 * all processes pass the files at the beginning, and signal the end of a process. No name stays
 * after a run.
 */
#include "fabric/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define RETRY_NS	2000000		/* between two attempts to reach a peer */
#define LOOK		1024		/* rounds between two checks for lost peers */

static size_t window_bytes(uint32_t size)
{
	const size_t bytes = sizeof(struct shm_window) + size * sizeof(struct shm_ring);

	return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* --- opening --- */

/* An abstract name, which ends with its process. */
static socklen_t address_of(const struct rashpa_launch *l, uint32_t rank, struct sockaddr_un *to)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	int length;

	for (const char *c = l->job; *c; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	*to = (struct sockaddr_un) { .sun_family = AF_UNIX };
	length = snprintf(to->sun_path + 1, sizeof(to->sun_path) - 1, "rashpa-builder.%u.%016llx.%u",
			  geteuid(), (unsigned long long)hash, rank);
	return offsetof(struct sockaddr_un, sun_path) + 1 + length;
}

static int listen_here(struct rashpa_fabric *f, struct shm *s)
{
	struct sockaddr_un here;
	const socklen_t length = address_of(&f->launch, f->launch.rank, &here);

	s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listener < 0)
		return fabric_fail(errno, "cannot create a socket: %s", strerror(errno));
	if (bind(s->listener, (struct sockaddr *)&here, length))
		return errno == EADDRINUSE ?
			fabric_fail(EADDRINUSE, "rank %u of run %s is there already: give each process a different rank, and each run a different name",
				    f->launch.rank, f->launch.job) :
			fabric_fail(errno, "cannot bind the socket: %s", strerror(errno));
	if (listen(s->listener, RASHPA_FABRIC_PEERS))
		return fabric_fail(errno, "cannot listen: %s", strerror(errno));
	return 0;
}

static int make_window(struct rashpa_fabric *f, struct shm *s)
{
	void *at;

	s->window_bytes = window_bytes(f->launch.size);
	s->window_fd = memfd_create("rashpa-builder window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->window_fd < 0 || ftruncate(s->window_fd, s->window_bytes) ||
	    fcntl(s->window_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fabric_fail(errno, "no memory of %zu bytes: %s", s->window_bytes,
				   strerror(errno));
	at = mmap(NULL, s->window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->window_fd, 0);
	if (at == MAP_FAILED)
		return fabric_fail(errno, "no memory of %zu bytes: %s", s->window_bytes,
				   strerror(errno));
	s->window = at;
	f->asleep = &s->window->asleep;
	return 0;
}

static int shm_open_fabric(struct rashpa_fabric *f)
{
	struct shm *s;
	int error = f->options.launch ? 0 : rashpa_launch_read(&f->launch);

	if (error)
		return error;
	if (!f->launch.size || f->launch.size > RASHPA_FABRIC_PEERS)
		return fabric_fail(EINVAL, "a run has 1 to %d processes, not %u",
				   RASHPA_FABRIC_PEERS, f->launch.size);
	s = calloc(1, sizeof(*s));
	if (!s)
		return fabric_fail(ENOMEM, "no memory");
	f->link = s;
	s->probe = SHM_MAGIC;
	s->window_fd = -1;
	s->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->listener = -1;
	if (s->bell < 0 || s->epoll < 0)
		return fabric_fail(errno, "cannot create file descriptors: %s", strerror(errno));
	error = make_window(f, s);
	return error ? error : listen_here(f, s);
}

/* --- hello --- */

static int send_hello(struct rashpa_fabric *f, int socket)
{
	const struct shm *s = f->link;
	struct shm_hello hello = {
		.magic = SHM_MAGIC, .rank = f->launch.rank, .size = f->launch.size,
		.arenas = f->arenas, .probe = (uintptr_t)&s->probe,
	};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * (ARENAS + 2))];
	} control = {};
	struct iovec data = { &hello, sizeof(hello) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
	};
	int fds[ARENAS + 2] = { s->window_fd, s->bell }, n = 2;

	for (uint32_t i = 0; i < f->arenas; i++) {
		hello.length[i] = f->arena[i].length;
		hello.mappable[i] = f->arena[i].fd >= 0;
		if (hello.mappable[i])
			fds[n++] = f->arena[i].fd;
	}
	message.msg_controllen = CMSG_SPACE(sizeof(int) * n);
	control.header = (struct cmsghdr) {
		.cmsg_len = CMSG_LEN(sizeof(int) * n),
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * n);
	if (sendmsg(socket, &message, MSG_NOSIGNAL) != sizeof(hello))
		return fabric_fail(EPIPE, "a peer left while it was connecting: %s", strerror(errno));
	return 0;
}

/* Wait for a socket until the end. */
static bool readable(int socket, uint64_t end)
{
	struct pollfd fd = { .fd = socket, .events = POLLIN };
	const uint64_t now = fabric_now();
	struct timespec most = {};

	if (now < end)
		most = (struct timespec) { (end - now) / 1000000000, (end - now) % 1000000000 };
	return ppoll(&fd, 1, &most, NULL) > 0;
}

/* Files go into fds, followed by -1. 0, or a negative errno without a sentence. */
static int receive_hello(int socket, uint64_t end, struct shm_hello *hello, int fds[ARENAS + 3])
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * (ARENAS + 2))];
	} control;
	struct iovec data = { hello, sizeof(*hello) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	ssize_t got;
	size_t n;

	memset(fds, 0xff, sizeof(int) * (ARENAS + 3));
	if (!readable(socket, end))
		return -ETIMEDOUT;
	got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	c = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), (n < ARENAS + 2 ? n : ARENAS + 2) * sizeof(int));
	}
	if (got < 0)
		return -errno;
	if (got == 0)
		return -EPIPE;
	return got == sizeof(*hello) && hello->magic == SHM_MAGIC &&
	       !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? 0 : -EPROTO;
}

static void close_all(int *fds)
{
	for (; *fds >= 0; fds++)
		close(*fds);
}

/* If the owner can shorten the memory, an access may kill this process. */
static bool lasting(int fd, uint64_t length)
{
	struct stat st;
	int seals;

	if (fstat(fd, &st))
		return false;
	if (S_ISCHR(st.st_mode))
		return true;	/* a device: its mapping fails, or stays */
	seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && seals & F_SEAL_SHRINK && (uint64_t)st.st_size >= length;
}

static int cannot_be(uint32_t rank, const char *what)
{
	return fabric_fail(EPROTO, "rank %u sent an invalid hello: %s", rank, what);
}

static int map_arenas(struct shm_peer *l, const struct shm_hello *h, const int *fd)
{
	l->arenas = h->arenas;
	for (uint32_t i = 0; i < h->arenas; i++) {
		void *at;

		l->length[i] = h->length[i];
		if (!h->mappable[i])
			continue;
		if (*fd < 0 || !h->length[i] || !lasting(*fd, h->length[i]))
			return cannot_be(h->rank, "an arena is missing, empty or not sealed");
		at = mmap(NULL, h->length[i], PROT_READ, MAP_SHARED, *fd++, 0);
		if (at == MAP_FAILED)
			return fabric_fail(errno, "an arena of rank %u cannot be mapped: %s",
					   h->rank, strerror(errno));
		l->base[i] = at;
	}
	return 0;
}

/* Arenas without a file are read through the kernel. Does it permit that? */
static int probe(const struct shm_peer *l, const struct shm_hello *h)
{
	uint64_t word = 0;
	struct iovec here = { &word, sizeof(word) };
	struct iovec there = { (void *)(uintptr_t)h->probe, sizeof(word) };

	for (uint32_t i = 0; i < h->arenas; i++) {
		if (h->mappable[i])
			continue;
		if (process_vm_readv(l->pid, &here, 1, &there, 1, 0) != sizeof(word) ||
		    word != SHM_MAGIC)
			return fabric_fail(EPERM, "the memory that rank %u (process %d) brought cannot be read: use named buffers or rashpa_arena_allocate(), or allow it (kernel.yama.ptrace_scope)",
					   h->rank, l->pid);
		break;
	}
	return 0;
}

static int take_files(struct rashpa_fabric *f, struct shm_peer *l, const struct shm_hello *h,
		      int *fds)
{
	struct shm *s = f->link;
	struct epoll_event event = { .events = EPOLLRDHUP, .data.u32 = h->rank };
	void *at;

	if (fds[0] < 0 || fds[1] < 0 || !lasting(fds[0], s->window_bytes) || h->arenas > ARENAS)
		return cannot_be(h->rank, "its window is missing or not sealed");
	at = mmap(NULL, s->window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	if (at == MAP_FAILED)
		return fabric_fail(errno, "the window of rank %u cannot be mapped: %s", h->rank,
				   strerror(errno));
	l->window = at;
	l->out = &l->window->ring[f->launch.rank];
	l->in = &s->window->ring[h->rank];
	l->bell = fcntl(fds[1], F_DUPFD_CLOEXEC, 0);
	if (l->bell < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, l->socket, &event))
		return fabric_fail(errno, "rank %u: %s", h->rank, strerror(errno));
	return map_arenas(l, h, fds + 2);
}

/* Set up the peer that sent this hello. It owns the socket from now on. */
static int introduce(struct rashpa_fabric *f, int socket, const struct shm_hello *h, int *fds)
{
	struct ucred who = {};
	socklen_t length = sizeof(who);
	struct shm_peer *l = calloc(1, sizeof(*l));
	int error;

	if (!l)
		return fabric_fail(ENOMEM, "no memory");
	getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length);
	l->pid = who.pid;
	l->socket = socket;
	l->bell = -1;
	f->peer[h->rank].link = l;
	error = take_files(f, l, h, fds);
	return error ? error : probe(l, h);
}

/* --- connection --- */

static int missing(const struct rashpa_fabric *f, uint32_t rank)
{
	return fabric_fail(ETIMEDOUT, "rank %u of %u did not come within %u ms: check that all processes of run %s run on this machine, as one user",
			   rank, f->launch.size, f->options.timeout_ms, f->launch.job);
}

static bool same_user(int socket)
{
	struct ucred who;
	socklen_t length = sizeof(who);

	return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) &&
	       (who.uid == geteuid() || !who.uid);
}

static int reach(struct rashpa_fabric *f, uint32_t rank, uint64_t end, int *socket_)
{
	const struct timespec pause = { .tv_nsec = RETRY_NS };
	struct sockaddr_un there;
	const socklen_t length = address_of(&f->launch, rank, &there);
	const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (s < 0)
		return fabric_fail(errno, "cannot create a socket: %s", strerror(errno));
	while (connect(s, (struct sockaddr *)&there, length)) {
		if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR) {
			close(s);
			return fabric_fail(errno, "rank %u: %s", rank, strerror(errno));
		}
		if (fabric_now() >= end) {
			close(s);
			return missing(f, rank);
		}
		nanosleep(&pause, NULL);	/* nothing signals that the peer listens */
	}
	*socket_ = s;
	return 0;
}

static int call(struct rashpa_fabric *f, uint32_t rank, uint64_t end)
{
	struct shm_hello hello;
	int fds[ARENAS + 3], s = -1, error = reach(f, rank, end, &s);

	if (error)
		return error;
	fds[0] = -1;
	error = same_user(s) ? 0 : cannot_be(rank, "the process belongs to another user");
	if (!error)
		error = send_hello(f, s);
	if (!error) {
		error = receive_hello(s, end, &hello, fds);
		if (error == -ETIMEDOUT)
			error = missing(f, rank);
		else if (error)
			error = fabric_fail(-error, "rank %u left", rank);
		else if (hello.rank != rank || hello.size != f->launch.size)
			error = cannot_be(rank, "its rank or its number of processes is wrong");
	}
	if (!error)
		error = introduce(f, s, &hello, fds);
	if (error && !f->peer[rank].link)
		close(s);
	close_all(fds);
	return error;
}

/* Accept a connection, and close it if it is not from a peer. */
static int answer(struct rashpa_fabric *f, uint32_t missing_rank, uint64_t end, bool *came)
{
	const struct shm *s = f->link;
	struct shm_hello hello;
	int fds[ARENAS + 3], socket, error;

	*came = false;
	if (!readable(s->listener, end))
		return missing(f, missing_rank);
	socket = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
	if (socket < 0)
		return 0;
	fds[0] = -1;
	if (!same_user(socket) || receive_hello(socket, end, &hello, fds) ||
	    hello.rank <= f->launch.rank || hello.rank >= f->launch.size ||
	    hello.size != f->launch.size || f->peer[hello.rank].link) {
		close(socket);
		close_all(fds);
		return 0;
	}
	error = introduce(f, socket, &hello, fds);
	if (!error)
		error = send_hello(f, socket);
	close_all(fds);
	*came = true;
	return error;
}

static int shm_connect(struct rashpa_fabric *f, uint64_t end)
{
	struct shm *s = f->link;
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = UINT32_MAX };
	int error = 0;
	bool came;

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->bell, &event))
		return fabric_fail(errno, "cannot add to epoll: %s", strerror(errno));
	for (uint32_t i = 0; i < f->launch.rank && !error; i++)
		error = call(f, i, end);
	for (uint32_t i = f->launch.rank + 1; i < f->launch.size && !error;) {
		if (f->peer[i].link)
			i++;
		else
			error = answer(f, i, end, &came);
	}
	close(s->listener);
	s->listener = -1;
	return error;
}

/* --- the thread --- */

static void lose(struct peer *peer)
{
	struct shm_peer *l = peer->link;
	const struct rashpa_fabric *f = peer->send.fabric;
	const uint32_t blamed = atomic_load(&l->window->blamed);

	/* its window can still be read: it may blame another rank, but not this one */
	peer_gone(peer, blamed && blamed <= f->launch.size && blamed - 1 != f->launch.rank ?
			blamed - 1 : peer->rank);
	queue_end(&peer->send, -EPIPE);
	queue_end(&peer->receive, -EPIPE);
	if (l->socket >= 0)
		close(l->socket);	/* removes it from epoll */
	l->socket = -1;
}

static int shm_begin(struct queue *q, struct peer *peer, unsigned int slot)
{
	struct shm_peer *l = peer->link;
	const struct rashpa_fabric_request *r = &queue_flying(q, slot)->request;
	const struct rashpa_arena *a;
	struct shm_entry *e;

	if (q->receives)
		return 0;
	a = r->pool ? r->pool->arena : arena_of(q->fabric, r->buffer, r->length);
	e = &l->out->entry[l->tail % RASHPA_FABRIC_DEPTH];
	*e = (struct shm_entry) {
		.offset = a->fd < 0 ? (uintptr_t)r->buffer : (uintptr_t)r->buffer -
							     (uintptr_t)a->base,
		.arena = a - q->fabric->arena,
		.length = r->length,
		.tag = r->tag,
	};
	atomic_store_explicit(&l->out->tail, ++l->tail, memory_order_release);
	l->news = true;
	return 0;
}

/* Complete the sends that the peer has taken. */
static bool reap(struct peer *peer, struct shm_peer *l)
{
	const uint32_t head = atomic_load_explicit(&l->out->head, memory_order_acquire);
	struct queue *q = &peer->send;
	bool any = false;

	count(&q->polls, 1);
	if (head - l->acknowledged > l->tail - l->acknowledged) {
		lose(peer);
		return true;
	}
	for (; l->acknowledged != head; l->acknowledged++, any = true) {
		const struct shm_entry *e = &l->out->entry[l->acknowledged % RASHPA_FABRIC_DEPTH];
		const int status = e->status;
		const unsigned int slot = q->order[0];

		queue_done(q, slot, status == 0 || status == -EMSGSIZE ? status : -EIO,
			   status ? 0 : queue_flying(q, slot)->request.length, 0);
	}
	return any;
}

static int copy(const struct shm_peer *l, const struct shm_entry *e, void *to)
{
	struct iovec here = { to, e->length }, there = { (void *)(uintptr_t)e->offset, e->length };

	if (e->arena >= l->arenas)
		return -EIO;
	if (!l->base[e->arena])
		return e->length && process_vm_readv(l->pid, &here, 1, &there, 1, 0) != e->length ?
		       -EIO : 0;
	if (e->offset > l->length[e->arena] || e->length > l->length[e->arena] - e->offset)
		return -EIO;
	memcpy(to, l->base[e->arena] + e->offset, e->length);
	return 0;
}

/* Receive the peer's messages, as far as there is room. */
static bool take(struct peer *peer, struct shm_peer *l)
{
	const uint32_t tail = atomic_load_explicit(&l->in->tail, memory_order_acquire);
	struct queue *q = &peer->receive;
	bool any = false;

	count(&q->polls, 1);
	if (tail - l->head > RASHPA_FABRIC_DEPTH) {
		lose(peer);
		return true;
	}
	while (l->head != tail && q->flying) {
		struct shm_entry *e = &l->in->entry[l->head % RASHPA_FABRIC_DEPTH];
		const struct shm_entry seen = *(volatile struct shm_entry *)e;
		const unsigned int slot = q->order[0];
		const struct rashpa_fabric_request *r = &queue_flying(q, slot)->request;
		const int status = seen.length > r->length ? -EMSGSIZE : copy(l, &seen, r->buffer);

		e->status = status;
		atomic_store_explicit(&l->in->head, ++l->head, memory_order_release);
		queue_done(q, slot, status, status ? 0 : seen.length,
			   seen.tag & RASHPA_FABRIC_TAG);
		any = true;
		l->news = true;
	}
	return any;
}

/* The process of a peer has ended: complete the sends that it took before. */
static void depart(struct peer *peer)
{
	struct shm_peer *l = peer->link;

	if (l->socket >= 0)
		reap(peer, l);
	if (l->socket >= 0)
		lose(peer);
}

static void ring(int bell)
{
	const uint64_t one = 1;

	if (write(bell, &one, sizeof(one)) < 0)
		return;	/* the counter is full: the peer wakes in any case */
}

static bool look(struct rashpa_fabric *f, int timeout_ms)
{
	struct shm *s = f->link;
	struct epoll_event events[16];
	const int n = epoll_wait(s->epoll, events, 16, timeout_ms);
	uint64_t rung;

	for (int i = 0; i < n; i++) {
		if (events[i].data.u32 != UINT32_MAX)
			depart(&f->peer[events[i].data.u32]);
		else if (read(s->bell, &rung, sizeof(rung)) < 0)
			continue;
	}
	return n > 0;
}

static bool shm_poll(struct rashpa_fabric *f, struct peer *peer)
{
	struct shm *s = f->link;
	struct shm_peer *l = peer->link;
	/* look() consumes a ring of the bell, so a round with one must not count as idle */
	bool any = ++s->looks % LOOK == 0 && look(f, 0);

	if (atomic_load_explicit(&peer->gone, memory_order_relaxed))
		return any;
	any |= reap(peer, l);
	if (l->socket >= 0)
		any |= take(peer, l);
	if (l->news && atomic_fetch_or(&l->window->asleep, 0))
		ring(l->bell);
	l->news = false;
	return any;
}

static void shm_sleep(struct rashpa_fabric *f)
{
	look(f, -1);
}

static void shm_blame(struct rashpa_fabric *f, uint32_t peer)
{
	struct shm *s = f->link;

	atomic_store(&s->window->blamed, peer + 1);
}

static void shm_wake(struct rashpa_fabric *f)
{
	struct shm *s = f->link;

	ring(s->bell);
}

static void free_peer(struct shm_peer *l, size_t bytes)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->arenas; i++) {
		if (l->base[i])
			munmap((void *)l->base[i], l->length[i]);
	}
	if (l->window)
		munmap(l->window, bytes);
	if (l->bell >= 0)
		close(l->bell);
	if (l->socket >= 0)
		close(l->socket);
	free(l);
}

static void shm_close(struct rashpa_fabric *f)
{
	struct shm *s = f->link;

	if (!s)
		return;
	for (uint32_t i = 0; f->peer && i < f->launch.size; i++)
		free_peer(f->peer[i].link, s->window_bytes);
	if (s->window)
		munmap(s->window, s->window_bytes);
	if (s->window_fd >= 0)
		close(s->window_fd);
	if (s->listener >= 0)
		close(s->listener);
	if (s->bell >= 0)
		close(s->bell);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s);
}

const struct transport shm_transport = {
	.name = "shm",
	.open = shm_open_fabric,
	.connect = shm_connect,
	.begin = shm_begin,
	.poll = shm_poll,
	.sleep = shm_sleep,
	.blame = shm_blame,
	.wake = shm_wake,
	.close = shm_close,
};
