// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=1 run=build/tools/wire-selftest */
/*
 * Tests of the link of a manager and a daemon, both in this process: TAP. To be linked with
 * -Wl,--wrap=now_ns: a limit of ten seconds is over when we say so.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/say.h"
#include "link/wire.h"
#include "tests/tap.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))
#define WAIT_MS		20000		/* longest wait of a test for an event */
#define STEPS		1000		/* turns of a loop; more: it spins */
#define DAY		86400

static char folder[] = "/tmp/wire-selftest.XXXXXX";
static char why[WHY_SIZE];

/* A sentence with this word in it. */
__attribute__((format(printf, 3, 4)))
static void says(const char *sentence, const char *word, const char *format, ...)
{
	char title[512];
	va_list args;

	va_start(args, format);
	vsnprintf(title, sizeof(title), format, args);
	va_end(args);
	if (!ok(strstr(sentence, word), "says: %s", title))
		printf("# it says \"%s\", without \"%s\"\n", sentence, word);
}

static _Noreturn void give_up(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static const char *path_of(const char *name)
{
	static char paths[8][128];
	static unsigned int next;
	char *path = paths[next++ % COUNT(paths)];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static const char *unix_at(const char *name)
{
	static char at[160];

	snprintf(at, sizeof(at), "unix:%s", path_of(name));
	return at;
}

/* --- time --- */

static uint64_t ahead;		/* ns */

__typeof__(now_ns) __real_now_ns, __wrap_now_ns;

unsigned long long __wrap_now_ns(void)
{
	return __real_now_ns() + ahead;
}

static void later(unsigned int ms)
{
	ahead += ms * UINT64_C(1000000);
}

/* --- certificates --- */

struct pair {
	gnutls_x509_crt_t crt;
	gnutls_x509_privkey_t key;
};

struct kind {
	const char *name;		/* also the name of the files */
	const char *common_name;	/* NULL: name */
	const char *dns[10];
	const char *purpose;
	int from, to;			/* days from now; both 0: yesterday to tomorrow */
	bool foreign, authority, revoked;
	const char *raw;		/* of 5 bytes: a second name, in place of dns */
};

static const struct kind kinds[] = {
	{ .name = "server", .dns = { "daemon.lab", "localhost" },
	  .purpose = GNUTLS_KP_TLS_WWW_SERVER },
	{ .name = "client", .common_name = "manager.lab", .purpose = GNUTLS_KP_TLS_WWW_CLIENT },
	{ .name = "any", .common_name = "M\xc3\xbcller", .dns = { "daemon.lab" } },
	{ .name = "expired", .dns = { "daemon.lab" }, .from = -3, .to = -2 },
	{ .name = "early", .dns = { "daemon.lab" }, .from = 2, .to = 3 },
	{ .name = "foreign", .dns = { "daemon.lab" }, .foreign = true },
	{ .name = "revoked", .dns = { "daemon.lab" }, .revoked = true },
	{ .name = "control", .common_name = "a\033[31mb", .dns = { "daemon.lab" } },
	{ .name = "line", .raw = "a\nlab" },
	{ .name = "nul", .raw = "a\0lab" },
	{ .name = "long", .dns = {
		"daemon.lab",
		"a2345678901234567890123456789012345678901.b2345678901234567890123456789012345678901.c2345678901234567890123456789012345678901.lab",
	} },
	{ .name = "many", .dns = { "n0.lab", "n1.lab", "n2.lab", "n3.lab", "n4.lab", "n5.lab",
				   "n6.lab", "n7.lab", "n8.lab", "daemon.lab" } },
};

static void good(int error, const char *what)
{
	if (error < 0) {
		printf("Bail out! %s: %s\n", what, gnutls_strerror(error));
		exit(1);
	}
}

static void write_file(const char *name, const char *end, const gnutls_datum_t *text, mode_t mode)
{
	char file[64];
	FILE *out;

	snprintf(file, sizeof(file), "%s%s", name, end);
	out = fopen(path_of(file), "we");
	if (!out || fwrite(text->data, 1, text->size, out) != text->size || fclose(out) ||
	    chmod(path_of(file), mode))
		give_up(file);
}

static void write_pair(const char *name, const struct pair *p)
{
	gnutls_datum_t text;

	good(gnutls_x509_crt_export2(p->crt, GNUTLS_X509_FMT_PEM, &text), name);
	write_file(name, ".crt", &text, 0644);
	gnutls_free(text.data);
	good(gnutls_x509_privkey_export2(p->key, GNUTLS_X509_FMT_PEM, &text), name);
	write_file(name, ".key", &text, 0600);
	gnutls_free(text.data);
}

static void set_name(gnutls_x509_crt_t crt, gnutls_x509_subject_alt_name_t type,
		     const void *name, size_t size)
{
	good(gnutls_x509_crt_set_subject_alt_name(crt, type, name, size, GNUTLS_FSAN_APPEND),
	     "name");
}

/* GnuTLS itself would not write such a name. */
static void set_raw_name(gnutls_x509_crt_t crt, const char *raw)
{
	unsigned char names[] = "\x30\x13\x82\x0axaemon.lab\x82\x05?????";

	names[4] = 'd';		/* which would go on as a number before it */
	memcpy(names + 16, raw, 5);
	good(gnutls_x509_crt_set_extension_by_oid(crt, "2.5.29.17", names, 21, 0), "name");
}

static void set_names(gnutls_x509_crt_t crt, const struct kind *kind)
{
	static const unsigned char address[] = { 127, 0, 0, 1 };
	const char *name = kind->common_name ? kind->common_name : kind->name;

	good(gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
					   strlen(name)), name);
	for (const char *const *dns = kind->dns; *dns; dns++)
		set_name(crt, GNUTLS_SAN_DNSNAME, *dns, strlen(*dns));
	if (kind->raw)
		set_raw_name(crt, kind->raw);
	if (!strcmp(kind->name, "server"))
		set_name(crt, GNUTLS_SAN_IPADDRESS, address, sizeof(address));
}

/* by NULL: self-signed */
static struct pair make_pair(const struct kind *kind, const struct pair *by)
{
	static unsigned char serial;
	const time_t now = time(NULL);
	struct pair p;

	serial++;
	good(gnutls_x509_privkey_init(&p.key), "key");
	good(gnutls_x509_privkey_generate(p.key, GNUTLS_PK_ECDSA,
					  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
	     "key");
	good(gnutls_x509_crt_init(&p.crt), "certificate");
	good(gnutls_x509_crt_set_version(p.crt, 3), "version");
	good(gnutls_x509_crt_set_serial(p.crt, &serial, 1), "serial");
	gnutls_x509_crt_set_activation_time(p.crt, now + (kind->from ? kind->from : -1) * DAY);
	gnutls_x509_crt_set_expiration_time(p.crt, now + (kind->to ? kind->to : 1) * DAY);
	set_names(p.crt, kind);
	good(gnutls_x509_crt_set_basic_constraints(p.crt, kind->authority, -1), "constraints");
	if (kind->purpose)
		good(gnutls_x509_crt_set_key_purpose_oid(p.crt, kind->purpose, 0), "purpose");
	good(gnutls_x509_crt_set_key_usage(p.crt, kind->authority ?
					   GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN :
					   GNUTLS_KEY_DIGITAL_SIGNATURE), "usage");
	good(gnutls_x509_crt_set_key(p.crt, p.key), "key");
	if (!by)
		by = &p;
	good(gnutls_x509_crt_sign2(p.crt, by->crt, by->key, GNUTLS_DIG_SHA256, 0), "signature");
	write_pair(kind->name, &p);
	return p;
}

static void free_pair(struct pair *p)
{
	gnutls_x509_crt_deinit(p->crt);
	gnutls_x509_privkey_deinit(p->key);
}

static void make_list(const char *name, const struct pair *by, gnutls_x509_crt_t revoked,
		      int from, int to)
{
	const time_t now = time(NULL);
	gnutls_x509_crl_t list;
	gnutls_datum_t text;

	good(gnutls_x509_crl_init(&list), "list");
	good(gnutls_x509_crl_set_version(list, 2), "version");
	good(gnutls_x509_crl_set_this_update(list, now + from * DAY), "time");
	good(gnutls_x509_crl_set_next_update(list, now + to * DAY), "time");
	good(gnutls_x509_crl_set_crt(list, revoked, now - DAY), "revoked");
	good(gnutls_x509_crl_sign2(list, by->crt, by->key, GNUTLS_DIG_SHA256, 0), "signature");
	good(gnutls_x509_crl_export2(list, GNUTLS_X509_FMT_PEM, &text), "list");
	write_file(name, ".crl", &text, 0644);
	gnutls_free(text.data);
	gnutls_x509_crl_deinit(list);
}

static void make_certificates(void)
{
	const struct kind ca = { .name = "ca", .common_name = "authority", .authority = true };
	const struct kind impostor = { .name = "impostor", .common_name = "authority",
				       .authority = true };
	const struct kind other = { .name = "other" };
	struct pair ours = make_pair(&ca, NULL), foreign = make_pair(&impostor, NULL),
		    p = make_pair(&other, NULL);

	free_pair(&p);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		p = make_pair(&kinds[i], kinds[i].foreign ? &foreign : &ours);
		if (kinds[i].revoked) {
			make_list("good", &ours, p.crt, -1, 1);
			make_list("old", &ours, p.crt, -3, -2);
			make_list("foreign", &foreign, p.crt, -1, 1);
		}
		free_pair(&p);
	}
	free_pair(&ours);
	free_pair(&foreign);
}

static int open_keys(const char *authority, const char *name, const char *revoked,
		     struct wire_tls **tls)
{
	char ca[64], crt[64], key[64], crl[64];
	struct wire_files files = { 0 };

	snprintf(ca, sizeof(ca), "%s.crt", authority);
	snprintf(crt, sizeof(crt), "%s.crt", name);
	snprintf(key, sizeof(key), "%s.key", name);
	snprintf(crl, sizeof(crl), "%s.crl", revoked ? revoked : "");
	files.authority = path_of(ca);
	files.certificate = path_of(crt);
	files.key = path_of(key);
	files.revoked = revoked ? path_of(crl) : NULL;
	return wire_tls_open(&files, tls, why);
}

static struct wire_tls *keys(const char *name, const char *revoked)
{
	struct wire_tls *tls;

	if (open_keys("ca", name, revoked, &tls)) {
		printf("Bail out! %s\n", why);
		exit(1);
	}
	return tls;
}

/* --- a loop like that of a manager or a daemon --- */

struct side {
	struct wire *wire;
	bool over;
	char why[WHY_SIZE];
	unsigned int frames;
	size_t bytes;		/* of all frames */
	char *last;		/* frame */
	size_t size;
	bool wrong;		/* no 0 is behind a frame */
};

static void take_all(struct side *s)
{
	const char *frame;
	size_t size;
	int result;

	while (s->wire && !s->over) {
		result = wire_take(s->wire, &frame, &size, s->why);
		s->over = result < 0;
		if (result <= 0)
			return;
		s->frames++;
		s->bytes += size;
		s->size = size;
		s->wrong |= frame[size] != '\0';
		s->last = realloc(s->last, size + 1);
		if (!s->last)
			give_up("memory");
		memcpy(s->last, frame, size);
	}
}

/* One turn; false: nothing came for a long time. */
static bool step(struct side *s, unsigned int n)
{
	struct pollfd fds[2] = { { .fd = -1 }, { .fd = -1 } };
	bool now = false;

	for (unsigned int i = 0; i < n; i++) {
		if (!s[i].wire || s[i].over)
			continue;
		fds[i].fd = wire_fd(s[i].wire);
		fds[i].events = wire_events(s[i].wire);
		now |= wire_pending(s[i].wire) || wire_deadline(s[i].wire) <= now_ns();
	}
	if (poll(fds, n, now ? 0 : WAIT_MS) <= 0 && !now)
		return false;
	for (unsigned int i = 0; i < n; i++)
		take_all(&s[i]);
	return true;
}

static bool drive(struct side *s, unsigned int n, bool (*until)(const struct side *s))
{
	for (unsigned int i = 0; i < STEPS; i++) {
		if (until(s))
			return true;
		if (!step(s, n))
			return false;
	}
	return false;
}

static bool both_ready(const struct side *s)
{
	return wire_ready(s[0].wire) && wire_ready(s[1].wire);
}

static bool both_over(const struct side *s)
{
	return s[0].over && s[1].over;
}

static bool first_over(const struct side *s)
{
	return s[0].over;
}

static bool second_over(const struct side *s)
{
	return s[1].over;
}

static bool one_frame(const struct side *s)
{
	return s[0].frames == 1;
}

static unsigned int awaited;	/* frames */

static bool both_frames(const struct side *s)
{
	return (s[0].frames >= awaited && s[1].frames >= awaited) || s[0].over || s[1].over;
}

static void end(struct side *s)
{
	wire_close(s->wire);
	free(s->last);
	memset(s, 0, sizeof(*s));
}

static struct wire *accept_one(struct wire_listener *listener)
{
	struct pollfd fd = { .fd = listener->fd, .events = POLLIN };
	struct wire *wire = NULL;

	if (poll(&fd, 1, WAIT_MS) != 1 || wire_accept(listener, &wire, why) != 1)
		printf("# accept: %s\n", why);
	return wire;
}

struct place {
	const char *at;
	struct wire_tls *server, *client;
	const char *name;
};

/* [0]: the listener, [1]: the client */
static bool join(const struct place *place, struct side *s)
{
	struct wire_listener listener;

	memset(s, 0, 2 * sizeof(*s));
	strcpy(why, "?");
	if (wire_listen(place->at, place->server, &listener, why))
		return ok(false, "join: %s: %s", place->at, why);
	if (!wire_connect(listener.at, place->client, place->name, &s[1].wire, why))
		s[0].wire = accept_one(&listener);
	wire_unlisten(&listener);
	if (s[0].wire)
		return true;
	end(&s[1]);
	return ok(false, "join-2: %s: %s", place->at, why);
}

/* --- sockets without our code --- */

static int raw_unix(const char *name, bool own)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	strcpy(at.sun_path, path_of(name));
	if (own ? bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 0) :
		  connect(fd, (struct sockaddr *)&at, sizeof(at)))
		give_up(name);
	return fd;
}

static uint16_t port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = { 0 };
	socklen_t size = sizeof(at);

	if (getsockname(fd, &at.any, &size))
		give_up("getsockname");
	return ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
}

/* port 0: it listens, and takes few */
static int raw_tcp(uint16_t port)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	if (port ? connect(fd, (struct sockaddr *)&at, sizeof(at)) :
		   bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 0))
		give_up("raw socket");
	return fd;
}

/* A wire whose other side is a socket. */
static int join_raw(struct side *s, struct wire_tls *tls)
{
	const char *at = tls ? "tls:127.0.0.1:0" : unix_at("raw");
	struct wire_listener listener;
	int fd;

	memset(s, 0, sizeof(*s));
	if (wire_listen(at, tls, &listener, why))
		give_up(why);
	fd = tls ? raw_tcp(port_of(listener.fd)) : raw_unix("raw", false);
	s->wire = accept_one(&listener);
	wire_unlisten(&listener);
	if (!s->wire)
		give_up("accept");
	return fd;
}

static void put(int fd, const void *data, size_t size)
{
	if (send(fd, data, size, MSG_NOSIGNAL) != (ssize_t)size)
		give_up("send");
}

/* --- tests --- */

static void test_addresses(void)
{
	static const struct {
		const char *at, *word;
	} bad[] = {
		{ "plain:192.0.2.1:5000", "use tls:" }, { "plain:[2001:db8::1]:5000", "use tls:" },
		{ "plain:0.0.0.0:5000", "use tls:" }, { "plain:[::]:5000", "use tls:" },
		{ "plain:[::ffff:127.0.0.1]:5000", "use tls:" },
		{ "tls:127.0.0.1:5000", "requires a certificate" },
		{ "tls:5000", "requires a certificate" },
		{ "127.0.0.1:5000", "is not unix:/PATH" }, { "", "is not unix:/PATH" },
		{ "unix:relative", "is not unix:/PATH" }, { "unix:", "is not unix:/PATH" },
		{ "plain:127.0.0.1", "HOST:PORT" }, { "plain:127.0.0.1:", "HOST:PORT" },
		{ "plain:127.0.0.1:65536", "HOST:PORT" }, { "plain:127.0.0.1:+5", "HOST:PORT" },
		{ "plain:127.0.0.1:http", "HOST:PORT" }, { "plain:::1:5000", "HOST:PORT" },
		{ "plain:[::1]", "HOST:PORT" }, { "plain::5000", "HOST:PORT" },
		{ "plain:", "HOST:PORT" },
	};
	struct wire_listener listener;
	struct wire *wire;
	char path[256];

	for (size_t i = 0; i < COUNT(bad); i++) {
		strcpy(why, "no");
		ok(wire_listen(bad[i].at, NULL, &listener, why) == -1 && listener.fd == -1 &&
		   strstr(why, bad[i].word), "no-listening: no listening at \"%s\"", bad[i].at);
		wire_unlisten(&listener);
		strcpy(why, "no");
		ok(wire_connect(bad[i].at, NULL, NULL, &wire, why) == -1 && !wire &&
		   strstr(why, bad[i].word), "no-connecting: no connecting to \"%s\"", bad[i].at);
	}
	memset(path, 'x', sizeof(path));
	memcpy(path, "unix:/", 6);
	path[sizeof(path) - 1] = '\0';
	strcpy(why, "no");
	wire_listen(path, NULL, &listener, why);
	says(why, "107 bytes", "a path that is too long for a socket");
	strcpy(why, "no");
	wire_connect("plain:5000", NULL, NULL, &wire, why);
	says(why, "HOST:PORT", "a host is needed to connect");
	wire_connect("plain:127.0.0.1:0", NULL, NULL, &wire, why);
	says(why, "HOST:PORT", "a port is needed to connect");
}

static bool is_socket(const char *name, mode_t mode)
{
	struct stat st;

	return !lstat(path_of(name), &st) && st.st_mode == (S_IFSOCK | mode);
}

static void test_unix_paths(void)
{
	const mode_t masks[] = { 0, 022, 0777 };
	struct wire_listener listener, second;
	const gnutls_datum_t text = { (unsigned char *)"text", 4 };
	struct stat st;
	int fd;

	for (size_t i = 0; i < COUNT(masks); i++) {
		umask(masks[i]);
		ok(!wire_listen(unix_at("s"), NULL, &listener, why) && is_socket("s", 0660) &&
		   (fcntl(listener.fd, F_GETFD) & FD_CLOEXEC), "mode-0660-mask: mode 0660 where the mask is 0%o",
		   masks[i]);
		ok(umask(022) == masks[i], "mask-before: and the mask is as before");
		wire_unlisten(&listener);
		ok(!is_socket("s", 0660) && errno == ENOENT, "no-listener: it is gone after the listener");
	}
	close(raw_unix("s", true));
	ok(!wire_listen(unix_at("s"), NULL, &listener, why) && is_socket("s", 0660),
	   "socket-dead: a socket of a dead process is replaced");
	strcpy(why, "no");
	ok(wire_listen(unix_at("s"), NULL, &second, why), "socket-living: a socket of a living process is not");
	says(why, "another process listens there already", "and why");
	ok(is_socket("s", 0660), "it-is-still-there: it is still there");
	unlink(path_of("s"));
	fd = raw_unix("s", true);
	wire_unlisten(&listener);
	ok(!lstat(path_of("s"), &st) && S_ISSOCK(st.st_mode), "socket-other: the socket of another process stays");
	ok(wire_listen(unix_at("s"), NULL, &second, why), "even-one-not: even one that is not ours");
	close(fd);
	unlink(path_of("s"));
	write_file("file", "", &text, 0644);
	strcpy(why, "no");
	ok(wire_listen(unix_at("file"), NULL, &listener, why) && !lstat(path_of("file"), &st) &&
	   S_ISREG(st.st_mode) && st.st_size == 4, "no-socket-not: a file that is not a socket is not touched");
	says(why, "is no socket", "and why");
	if (symlink("nowhere", path_of("link")))
		give_up("symlink");
	ok(wire_listen(unix_at("link"), NULL, &listener, why), "link-nowhere: nor a link to nowhere");
	ok(wire_listen(unix_at("none/s"), NULL, &listener, why), "folder: nor is a folder made");
}

static void test_unix_peer(void)
{
	const struct place place = { .at = unix_at("s") };
	struct side s[2];

	if (!join(&place, s))
		return;
	for (unsigned int i = 0; i < 2; i++) {
		const struct wire_peer *peer = wire_other_end(s[i].wire);

		ok(peer->kind == WIRE_UNIX && peer->uid == getuid() && peer->gid == getgid() &&
		   peer->pid == getpid(), "other-side-unix: user and process at the other side of a UNIX socket");
		says(peer->name, "/s, user ", "and its name");
	}
	end(&s[0]);
	end(&s[1]);
}

/* Sends from both sides; the size of each frame, and how many. */
static bool exchange(struct side *s, size_t size, unsigned int n)
{
	char *data = malloc(size);
	bool same = data;

	for (size_t i = 0; data && i < size; i++)
		data[i] = i * 7 + 1;
	s[0].frames = 0;
	s[1].frames = 0;
	for (unsigned int i = 0; same && i < n; i++)
		same = !wire_send(s[0].wire, data, size, why) &&
		       !wire_send(s[1].wire, data, size, why);
	awaited = n;
	same = same && drive(s, 2, both_frames);
	for (unsigned int i = 0; same && i < 2; i++)
		same = s[i].frames == n && s[i].size == size && !s[i].wrong &&
		       !memcmp(s[i].last, data, size) && wire_sent(s[i].wire);
	free(data);
	return same;
}

static bool idle(const struct side *s)
{
	struct pollfd fds[2];

	for (unsigned int i = 0; i < 2; i++) {
		fds[i].fd = wire_fd(s[i].wire);
		fds[i].events = wire_events(s[i].wire);
		if (wire_deadline(s[i].wire) != UINT64_MAX || wire_pending(s[i].wire))
			return false;
	}
	return !poll(fds, 2, 0);
}

static void test_frames(const struct place *place)
{
	struct side s[2];
	char *data = calloc(1, WIRE_MOST + 1);

	if (!data || !join(place, s)) {
		free(data);
		return;
	}
	ok(exchange(s, 1, 1), "frame-one-byte: %s: a frame of one byte, sent before hands are shaken", place->at);
	ok(both_ready(s) && (fcntl(wire_fd(s[0].wire), F_GETFD) & FD_CLOEXEC) &&
	   (fcntl(wire_fd(s[1].wire), F_GETFD) & FD_CLOEXEC), "ready: %s: both are ready", place->at);
	ok(exchange(s, WIRE_MOST, 1), "longest-frame: %s: the longest frame", place->at);
	ok(exchange(s, 65533, 40), "40-frames-65533: %s: 40 frames of 65533 bytes", place->at);
	ok(exchange(s, 11, 2000), "2000-frames-11: %s: 2000 frames of 11 bytes", place->at);
	ok(idle(s), "nothing-wakes-waits: %s: nothing wakes who waits", place->at);
	strcpy(why, "no");
	ok(wire_send(s[0].wire, data, WIRE_MOST + 1, why), "frame-long: %s: a frame that is too long",
	   place->at);
	says(why, "not 1048577", "%s: and why", place->at);
	ok(wire_send(s[0].wire, data, 0, why), "frame-nothing: %s: a frame of nothing", place->at);
	ok(exchange(s, 3, 1), "link: %s: the link goes on", place->at);
	/* frames that were sent before the end arrive */
	ok(!wire_send(s[1].wire, "bye", 3, why), "goodbye: %s: goodbye", place->at);
	end(&s[1]);
	s[0].frames = 0;
	ok(drive(s, 1, first_over) && s[0].frames == 1 && !memcmp(s[0].last, "bye", 3) &&
	   !s[0].why[0], "end-no-reason: %s: it comes, and then the end, which has no reason", place->at);
	strcpy(why, "no");
	ok(wire_send(s[0].wire, "x", 1, why), "nothing-sent: %s: nothing can be sent after the end", place->at);
	says(why, "closed", "%s: and why", place->at);
	ok(!wire_deadline(s[0].wire) && !wire_sent(s[0].wire), "end-once: %s: the end is reported at once",
	   place->at);
	end(&s[0]);
	free(data);
}

/* A peer sends its last words and closes; we notice the end when we send. */
static void test_last_words(const struct place *place)
{
	static char data[100000];
	struct side s[2];

	if (!join(place, s))
		return;
	ok(exchange(s, 1, 1), "end/ready: %s: both are ready", place->at);
	wire_send(s[1].wire, "refused", 7, why);
	for (unsigned int i = 0; i < 30; i++)
		wire_send(s[0].wire, data, sizeof(data), why);
	end(&s[1]);
	s[0].frames = 0;
	for (unsigned int i = 0; i < 3; i++)
		wire_send(s[0].wire, data, sizeof(data), why);
	ok(drive(s, 1, first_over) && s[0].frames == 1 && !memcmp(s[0].last, "refused", 7),
	   "last-words-heard: %s: a sender receives the last words", place->at);
	end(&s[0]);
}

static void test_queue(const struct place *place)
{
	static char data[WIRE_MOST / 2];
	struct side s[2];
	size_t before, most = 0;
	int result = 0;

	if (!join(place, s))
		return;
	ok(exchange(s, 1, 1), "last/ready: %s: both are ready", place->at);
	before = mallinfo2().hblkhd + mallinfo2().uordblks;
	for (unsigned int i = 0; !result && i < 100; i++) {
		result = wire_send(s[0].wire, data, sizeof(data), s[0].why);
		if (mallinfo2().hblkhd + mallinfo2().uordblks > most)
			most = mallinfo2().hblkhd + mallinfo2().uordblks;
	}
	ok(result == -1, "peer-not-read: %s: a peer that does not read has an end", place->at);
	says(s[0].why, "does not read", "%s: and why", place->at);
	ok(most <= before + WIRE_QUEUE + (WIRE_QUEUE >> 4), "waits-no: %s: so much waits, and no more",
	   place->at);
	ok(wire_events(s[0].wire) == 0 && drive(s, 1, first_over), "waits/link: %s: the link is over",
	   place->at);
	says(s[0].why, "does not read", "%s: for the same reason", place->at);
	end(&s[0]);
	end(&s[1]);
}

/* A wire that takes what a socket sends it. */
static void test_raw_frames(void)
{
	static const char frame[] = "\0\0\0\5hello\0\0\0\1!";
	struct side s;
	bool early = false;
	int fd = join_raw(&s, NULL);

	for (unsigned int i = 0; i < 9; i++) {
		early |= s.frames;
		put(fd, frame + i, 1);
		take_all(&s);
		early |= i < 8 && wire_deadline(s.wire) > now_ns() + 10000000000;
	}
	ok(!early && s.frames == 1 && s.size == 5 && !memcmp(s.last, "hello", 5) && !s.wrong,
	   "frame-byte-byte: a frame that comes byte by byte");
	ok(wire_deadline(s.wire) == UINT64_MAX, "time: it has time only while it comes");
	put(fd, frame, sizeof(frame) - 1);
	take_all(&s);
	ok(s.frames == 3 && s.size == 1, "two-together: two that come together");
	close(fd);
	take_all(&s);
	ok(s.over && !s.why[0], "end-after-frame: the end after a frame needs no words");
	end(&s);
}

static void test_bad_frames(void)
{
	static const struct {
		const char *data;
		size_t size;
		bool close;
		const char *word;
	} cases[] = {
		{ "\0\0\0", 4, false, "0 bytes" },
		{ "\0\x10\0\1", 4, false, "not a program" },
		{ "\xff\xff\xff\xff", 4, false, "not a program" },
		{ "GET / HTTP/1.1\r\n", 16, false, "not a program" },
		{ "\0\0\0\5hell", 8, true, "middle of a frame" },
		{ "\0\0", 2, true, "middle of a frame" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct side s;
		const int fd = join_raw(&s, NULL);

		put(fd, cases[i].data, cases[i].size);
		if (cases[i].close)
			shutdown(fd, SHUT_WR);
		ok(drive(&s, 1, first_over) && !s.frames, "no-frame: no frame %zu", i);
		says(s.why, cases[i].word, "and why");
		end(&s);
		close(fd);
	}
}

static void test_frame_limits(void)
{
	struct side s;
	const int fd = join_raw(&s, NULL);
	const size_t before = mallinfo2().hblkhd + mallinfo2().uordblks;

	put(fd, "\0\x10\0\0some", 8);
	take_all(&s);
	ok(!s.over && mallinfo2().hblkhd + mallinfo2().uordblks < before + 65536,
	   "length-claims-takes: a claimed length takes no memory");
	ok(wire_deadline(s.wire) <= now_ns() + WIRE_FRAME_MS * UINT64_C(1000000),
	   "first-byte-frame: from its first byte on a frame has a limit");
	later(WIRE_FRAME_MS - 100);
	put(fd, "more", 4);
	take_all(&s);
	ok(!s.over, "not-early: it is not over too early");
	later(200);
	put(fd, "more", 4);
	take_all(&s);
	ok(s.over, "begin-again-byte: nor does it begin again with each byte");
	says(s.why, "not complete", "and why");
	end(&s);
	close(fd);
}

static void test_connect(void)
{
	const int fd = raw_tcp(0);
	struct wire *wires[64];
	char at[64];
	struct side s = { 0 };
	struct wire *none;
	unsigned int n = 0;

	/* without accept() the queue of the listener fills up: SYN has no answer */
	snprintf(at, sizeof(at), "plain:127.0.0.1:%u", port_of(fd));
	do {
		if (wire_connect(at, NULL, NULL, &wires[n], why))
			give_up(why);
	} while (wire_ready(wires[n]) && ++n < COUNT(wires) - 1);
	s.wire = wires[n];
	take_all(&s);
	ok(!s.over && !wire_ready(s.wire) && wire_events(s.wire) == POLLOUT, "no-answer: no answer yet");
	ok(!wire_send(s.wire, "x", 1, why), "sent-waits: a sent frame waits");
	later(WIRE_BEGIN_MS - 1000);
	take_all(&s);
	ok(!s.over, "ten-seconds: it has ten seconds");
	later(2000);
	take_all(&s);
	ok(s.over, "no: and no more");
	says(s.why, "timed out", "and why");
	end(&s);
	while (n)
		wire_close(wires[--n]);
	close(fd);
	strcpy(why, "no");
	ok(wire_connect(at, NULL, NULL, &none, why), "port-unused: a port without a listener");
	says(why, "no process listens", "and why");
	strcpy(why, "no");
	ok(wire_connect(unix_at("unused"), NULL, NULL, &none, why), "path-unused: a path without a listener");
	says(why, "no process listens", "and why");
}

static void test_unix_full(void)
{
	const int fd = raw_unix("full", true);
	struct wire *wires[16] = { NULL };
	unsigned int n = 0;

	strcpy(why, "no");
	while (n < COUNT(wires) && !wire_connect(unix_at("full"), NULL, NULL, &wires[n], why))
		n++;
	says(why, "too many", "no connection waits in line at a UNIX socket");
	for (n = 0; n < COUNT(wires); n++)
		wire_close(wires[n]);
	close(fd);
	unlink(path_of("full"));
}

/* --- TLS --- */

static void test_files(void)
{
	struct wire_files files = { 0 };
	const gnutls_datum_t text = { (unsigned char *)"text", 4 };
	struct wire_tls *tls;

	strcpy(why, "no");
	ok(wire_tls_open(&files, &tls, why) && !tls, "no-files: no files");
	says(why, "three files", "and why");
	write_file("garbage", ".crt", &text, 0644);
	write_file("garbage", ".crl", &text, 0644);
	strcpy(why, "no");
	ok(open_keys("missing", "client", NULL, &tls), "no-authority: no authority");
	says(why, "missing.crt: No such file", "and why");
	ok(open_keys("garbage", "client", NULL, &tls), "authority-none: an invalid authority");
	says(why, "garbage.crt", "and why");
	ok(open_keys("ca", "missing", NULL, &tls), "no-certificate: no certificate");
	says(why, "missing.crt: No such file", "and why");
	ok(open_keys("ca", "garbage", NULL, &tls), "certificate-none: an invalid certificate");
	says(why, "garbage", "and why");
	ok(open_keys("ca", "client", "missing", &tls), "no-list: no list");
	says(why, "missing.crl: No such file", "and why");
	ok(open_keys("ca", "client", "garbage", &tls), "list-none: an invalid list");
	says(why, "garbage.crl: there is no list", "and why");
	ok(open_keys("ca", "client", "foreign", &tls), "list-foreign: a list of another authority");
	says(why, "foreign.crl: this list of revoked", "and why");
	ok(open_keys("ca", "client", "old", &tls), "list-old: a list that is too old");
	says(why, "too old", "and why");
	files.authority = path_of("ca.crt");
	files.certificate = path_of("client.crt");
	files.key = path_of("server.key");
	ok(wire_tls_open(&files, &tls, why) && !tls, "key-something-else: the key of something else");
	says(why, "is not the key of", "and why");
	files.key = folder;
	ok(wire_tls_open(&files, &tls, why) && !tls, "folder-key: a folder for a key");
	says(why, "is not a file", "and why");
}

static void test_key_modes(void)
{
	static const struct {
		mode_t mode;
		bool good;
	} modes[] = {
		{ 0600, true }, { 0400, true }, { 0640, true }, { 0660, false }, { 0644, false },
		{ 0604, false }, { 0602, false }, { 0601, false },
	};
	struct wire_tls *tls;

	for (size_t i = 0; i < COUNT(modes); i++) {
		if (chmod(path_of("client.key"), modes[i].mode))
			give_up("chmod");
		strcpy(why, "");
		ok(!open_keys("ca", "client", NULL, &tls) == modes[i].good,
		   "key-mode: a key of mode %04o is %s", modes[i].mode, modes[i].good ? "good" : "refused");
		if (!modes[i].good)
			says(why, "chmod 600", "and what is to be done");
		wire_tls_close(tls);
	}
	if (chmod(path_of("client.key"), 0600))
		give_up("chmod");
}

static void test_tls_peers(struct wire_tls *server, struct wire_tls *client)
{
	struct wire_tls *any = keys("any", "good"), *many = keys("many", NULL);
	struct place place = { "tls:127.0.0.1:0", server, client, NULL };
	const struct wire_peer *peer;
	struct side s[2];

	if (join(&place, s)) {
		ok(!wire_ready(s[0].wire) && !wire_ready(s[1].wire) &&
		   !wire_other_end(s[0].wire)->common_name[0], "no-side-first: no side is known at first");
		ok(drive(s, 2, both_ready), "certificate-address: the certificate has the address");
		peer = wire_other_end(s[0].wire);
		ok(peer->kind == WIRE_TLS && !strcmp(peer->common_name, "manager.lab") &&
		   !peer->dns_names, "server-knows-client: the server knows the client's name");
		says(peer->name, ", manager.lab", "which is in messages");
		peer = wire_other_end(s[1].wire);
		ok(!strcmp(peer->common_name, "server") && peer->dns_names == 2 &&
		   !strcmp(peer->dns[0], "daemon.lab") && !strcmp(peer->dns[1], "localhost"),
		   "client-knows-server: the client knows the server's names");
		end(&s[0]);
		ok(drive(&s[1], 1, first_over) && !s[1].why[0], "server-goodbye: the server says goodbye");
		end(&s[1]);
	}
	place = (struct place){ "tls:127.0.0.1:0", any, any, "daemon.lab" };
	if (join(&place, s)) {
		ok(drive(s, 2, both_ready) &&
		   !strcmp(wire_other_end(s[0].wire)->common_name, "M\xc3\xbcller"),
		   "certificate-all-purposes: a certificate for all purposes, other names, and a list of revoked ones");
		end(&s[0]);
		end(&s[1]);
	}
	place = (struct place){ "tls:127.0.0.1:0", many, any, "daemon.lab" };
	if (join(&place, s)) {
		ok(drive(s, 2, both_ready) && wire_other_end(s[1].wire)->dns_names == 8,
		   "eight-names: eight names, of more");
		end(&s[0]);
		end(&s[1]);
	}
	wire_tls_close(any);
	wire_tls_close(many);
}

static void test_everywhere(struct wire_tls *server, struct wire_tls *client)
{
	struct wire_listener listener;
	struct side s[2] = { 0 };
	char at[64];

	ok(!wire_listen("tls:0", server, &listener, why), "listener-all-addresses: a listener at all addresses");
	snprintf(at, sizeof(at), "tls:127.0.0.1:%u", port_of(listener.fd));
	if (wire_connect(at, client, NULL, &s[1].wire, why))
		give_up(why);
	s[0].wire = accept_one(&listener);
	says(wire_other_end(s[0].wire)->name, "tls:127.0.0.1:", "IPv4 is shown as it is");
	ok(drive(s, 2, both_ready), "listener/ready: both are ready");
	end(&s[0]);
	end(&s[1]);
	wire_unlisten(&listener);
}

/* The link ends on both sides, each with its reason. */
static void test_tls_refusals(void)
{
	static const struct {
		const char *title, *server, *server_list, *client, *client_list, *name;
		const char *server_says, *client_says;
	} cases[] = {
		{ "a server that has expired", "expired", NULL, "client", NULL, "daemon.lab",
		  "refuses our certificate: \"Certificate is expired", "has expired" },
		{ "a client that has expired", "server", NULL, "expired", NULL, "daemon.lab",
		  "has expired", "refuses our certificate: \"Certificate is expired" },
		{ "a server that is too early", "early", NULL, "client", NULL, "daemon.lab",
		  "refuses our certificate", "not yet valid" },
		{ "a client that is too early", "server", NULL, "early", NULL, "daemon.lab",
		  "not yet valid", "refuses our certificate" },
		{ "a server of an impostor", "foreign", NULL, "client", NULL, "daemon.lab",
		  "refuses our certificate: \"CA is unknown", "not signed by our authority" },
		{ "a client of an impostor", "server", NULL, "foreign", NULL, "daemon.lab",
		  "not signed by our authority", "refuses our certificate: \"CA is unknown" },
		{ "a server that signed itself", "other", NULL, "client", NULL, "daemon.lab",
		  "refuses our certificate: \"CA is unknown", "not signed by our authority" },
		{ "a client that signed itself", "server", NULL, "other", NULL, "daemon.lab",
		  "not signed by our authority", "refuses our certificate: \"CA is unknown" },
		{ "a server that is revoked", "revoked", NULL, "client", "good", "daemon.lab",
		  "refuses our certificate: \"Certificate was revoked", "is revoked" },
		{ "a client that is revoked", "server", "good", "revoked", NULL, "daemon.lab",
		  "is revoked", "refuses our certificate: \"Certificate was revoked" },
		{ "a client as a server", "client", NULL, "client", NULL, "manager.lab",
		  "refuses our certificate", "another purpose" },
		{ "a server as a client", "server", NULL, "server", NULL, "daemon.lab",
		  "another purpose", "refuses our certificate" },
		{ "a server of another name", "server", NULL, "client", NULL, "other.lab",
		  "refuses our certificate",
		  "is not for the name \"other.lab\", but for \"daemon.lab\"" },
		{ "a server of another address", "any", NULL, "client", NULL, NULL,
		  "refuses our certificate", "is not for the name \"127.0.0.1\"" },
		{ "a server whose name upsets terminals", "control", NULL, "client", NULL,
		  "daemon.lab", "refuses our certificate", "control characters" },
		{ "a client whose name upsets terminals", "server", NULL, "control", NULL,
		  "daemon.lab", "control characters", "refuses our certificate" },
		{ "a client whose name has two lines", "server", NULL, "line", NULL, "daemon.lab",
		  "control characters", "refuses our certificate" },
		{ "a client whose name goes on behind a 0", "server", NULL, "nul", NULL,
		  "daemon.lab", "control characters", "refuses our certificate" },
		{ "a client whose name is too long", "server", NULL, "long", NULL, "daemon.lab",
		  "too long", "refuses our certificate" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct wire_tls *server = keys(cases[i].server, cases[i].server_list),
				*client = keys(cases[i].client, cases[i].client_list);
		const struct place place = { "tls:127.0.0.1:0", server, client, cases[i].name };
		struct side s[2];

		if (join(&place, s)) {
			ok(drive(s, 2, both_over) && !s[0].frames && !s[1].frames, "tls-refusals: %s",
			   cases[i].title);
			says(s[0].why, cases[i].server_says, "the server's reason");
			says(s[1].why, cases[i].client_says, "the client's reason");
			end(&s[0]);
			end(&s[1]);
		}
		wire_tls_close(server);
		wire_tls_close(client);
	}
}

/* A client with a refused certificate sends much at once, and reads only after the server's end. */
static void test_tls_hasty(struct wire_tls *server)
{
	static char data[WIRE_MOST];
	struct wire_tls *client = keys("foreign", NULL);
	const struct place place = { "tls:127.0.0.1:0", server, client, NULL };
	struct side s[2], in_turn[2];

	if (join(&place, s)) {
		in_turn[0] = s[1];
		in_turn[1] = s[0];
		for (unsigned int i = 0; i < 3; i++)
			wire_send(in_turn[0].wire, data, sizeof(data), why);
		ok(drive(in_turn, 2, second_over) && !in_turn[0].over,
		   "server-not-wait: the server does not wait for the end of it");
		end(&in_turn[1]);
		strcpy(why, "no");
		for (unsigned int i = 0; i < 2; i++)
			wire_send(in_turn[0].wire, data, sizeof(data), why);
		ok(drive(in_turn, 1, first_over), "sends-refused: a client that sends much is refused, too");
		says(in_turn[0].why, "refuses our certificate", "and learns why");
		end(&in_turn[0]);
	}
	wire_tls_close(client);
}

/* Two frames that are in one record: poll() knows of none of them, once the first was taken. */
static void test_tls_pending(const struct place *place)
{
	struct side s[2];
	const char *frame;
	size_t size = 0;
	int result;

	if (!join(place, s))
		return;
	wire_send(s[1].wire, "one", 3, why);
	wire_send(s[1].wire, "two", 3, why);
	for (unsigned int i = 0; i < STEPS && !wire_sent(s[1].wire); i++) {
		take_all(&s[1]);
		if (!wire_ready(s[0].wire))
			wire_take(s[0].wire, &frame, &size, why);
	}
	for (result = 0; !result;)
		result = size ? 1 : wire_take(s[0].wire, &frame, &size, why);
	ok(result == 1 && size == 3 && wire_pending(s[0].wire), "read-taken: more has been read than taken");
	ok(wire_take(s[0].wire, &frame, &size, why) == 1 && !memcmp(frame, "two", 4) &&
	   !wire_pending(s[0].wire), "nothing: it is there, and then nothing");
	end(&s[0]);
	end(&s[1]);
}

static void test_no_tls(struct wire_tls *server, struct wire_tls *client)
{
	struct side s;
	struct wire *wire;
	char at[64];
	int fd, other;

	fd = join_raw(&s, server);
	put(fd, "\0\0\0\5hello", 9);
	ok(drive(&s, 1, first_over), "client-not-speak: a client that does not speak TLS");
	says(s.why, "does not speak TLS", "and why");
	end(&s);
	close(fd);
	fd = join_raw(&s, server);
	take_all(&s);
	ok(!s.over && wire_deadline(s.wire) <= now_ns() + WIRE_BEGIN_MS * UINT64_C(1000000) &&
	   wire_events(s.wire) == POLLIN, "client-nothing-time: a client that says nothing has time");
	later(WIRE_BEGIN_MS);
	take_all(&s);
	says(s.why, "handshake", "but not for ever");
	end(&s);
	close(fd);
	fd = join_raw(&s, server);
	close(fd);
	ok(drive(&s, 1, first_over), "client-looks: a client that only asks for the certificate");
	says(s.why, "closed the link during", "and why");
	end(&s);

	fd = raw_tcp(0);
	snprintf(at, sizeof(at), "tls:127.0.0.1:%u", port_of(fd));
	for (unsigned int i = 0; i < 2; i++) {
		if (wire_connect(at, client, NULL, &wire, why))
			give_up(why);
		s = (struct side){ .wire = wire };
		other = accept(fd, NULL, NULL);
		if (!i)
			put(other, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
		shutdown(other, SHUT_WR);
		ok(drive(&s, 1, first_over), "server-not-speak: a server that does not speak TLS");
		says(s.why, i ? "does it speak TLS" : "does not speak TLS", "and why");
		end(&s);
		close(other);
	}
	close(fd);
}

/* --- TLS as others do it --- */

struct other {
	gnutls_session_t session;
	gnutls_certificate_credentials_t own;
	int fd;
};

static void begin_other(struct other *o, int fd, unsigned int flags, const char *priority,
			const char *certificate)
{
	const int on = 1;
	char crt[64], key[64];

	*o = (struct other){ .fd = fd };
	fcntl(fd, F_SETFL, O_NONBLOCK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	good(gnutls_certificate_allocate_credentials(&o->own), "memory");
	snprintf(crt, sizeof(crt), "%s.crt", certificate ? certificate : "");
	snprintf(key, sizeof(key), "%s.key", certificate ? certificate : "");
	if (certificate)
		good(gnutls_certificate_set_x509_key_file(o->own, path_of(crt), path_of(key),
							  GNUTLS_X509_FMT_PEM), certificate);
	good(gnutls_init(&o->session, flags | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL), "TLS");
	good(gnutls_priority_set_direct(o->session, priority, NULL), priority);
	good(gnutls_credentials_set(o->session, GNUTLS_CRD_CERTIFICATE, o->own), "key");
	gnutls_transport_set_int(o->session, fd);
}

static void join_other(struct other *o, struct side *s, struct wire_tls *server,
		       const char *priority, const char *certificate)
{
	begin_other(o, join_raw(s, server), GNUTLS_CLIENT, priority, certificate);
}

static void end_other(struct other *o)
{
	gnutls_deinit(o->session);
	gnutls_certificate_free_credentials(o->own);
	if (o->fd >= 0)
		close(o->fd);
}

static bool settled(const struct side *s)
{
	return s->over || wire_ready(s->wire);
}

/* Shake hands to the end on both sides. Return: the result of @o. */
static int shake_other(struct other *o, struct side *s)
{
	struct pollfd fd = { .fd = o->fd, .events = POLLIN };
	int error;

	for (;;) {
		error = gnutls_handshake(o->session);
		if (error != GNUTLS_E_AGAIN || s->over)
			break;
		take_all(s);
		poll(&fd, 1, 100);
	}
	if (error)
		gnutls_alert_send_appropriate(o->session, error);
	drive(s, 1, settled);
	return error;
}

static ssize_t receive_other(struct other *o, void *to, size_t size)
{
	struct pollfd fd = { .fd = o->fd, .events = POLLIN };
	ssize_t n;

	do {
		n = gnutls_record_recv(o->session, to, size);
	} while (n == GNUTLS_E_AGAIN && poll(&fd, 1, WAIT_MS) > 0);
	return n;
}

static void test_other_versions(struct wire_tls *server)
{
	struct other o;
	struct side s;

	join_other(&o, &s, server, "NORMAL:-VERS-ALL:+VERS-TLS1.1", "client");
	ok(shake_other(&o, &s) && s.over, "client-tls-1: a client of TLS 1.1");
	says(s.why, "our versions of TLS", "and why");
	end(&s);
	end_other(&o);
	join_other(&o, &s, server, "NORMAL:-VERS-ALL:+VERS-TLS1.2", "client");
	ok(!shake_other(&o, &s) && !s.over && wire_ready(s.wire), "client-tls-1-2: a client of TLS 1.2");
	ok(!strcmp(wire_other_end(s.wire)->common_name, "manager.lab"), "name: it has a name");
	shake_other(&o, &s);
	ok(drive(&s, 1, first_over), "wants-shake-hands: it wants another handshake");
	says(s.why, "renegotiation", "and is refused");
	end(&s);
	end_other(&o);
	for (unsigned int i = 0; i < 2; i++) {
		join_other(&o, &s, server, i ? "NORMAL:-VERS-ALL:+VERS-TLS1.2" : "NORMAL", NULL);
		shake_other(&o, &s);
		ok(s.over, "client-without-certificate: a client without a certificate, TLS 1.%u", 3 - i);
		says(s.why, "gives no certificate", "and why");
		end(&s);
		end_other(&o);
	}
}

static void test_other_servers(struct wire_tls *client)
{
	static const struct {
		const char *title, *priority, *certificate, *word;
	} cases[] = {
		{ "a server without a certificate", "NORMAL", NULL, "ended TLS" },
		{ "a server of TLS 1.1", "NORMAL:-VERS-ALL:+VERS-TLS1.1", "server",
		  "our versions of TLS" },
	};
	const int fd = raw_tcp(0);
	char at[64];

	snprintf(at, sizeof(at), "tls:127.0.0.1:%u", port_of(fd));
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct side s = { 0 };
		struct other o;

		if (wire_connect(at, client, NULL, &s.wire, why))
			give_up(why);
		begin_other(&o, accept(fd, NULL, NULL), GNUTLS_SERVER, cases[i].priority,
			    cases[i].certificate);
		ok(shake_other(&o, &s) && s.over, "other-servers: %s", cases[i].title);
		says(s.why, cases[i].word, "and why");
		end(&s);
		end_other(&o);
	}
	close(fd);
}

static void test_other_ends(struct wire_tls *server)
{
	struct other o;
	struct side s;
	char data[8];

	join_other(&o, &s, server, "NORMAL", "client");
	ok(!shake_other(&o, &s) && wire_ready(s.wire), "client-tls-1-3: a client of TLS 1.3");
	good(gnutls_record_send(o.session, "\0\0\0\1!\0\0", 7), "send");
	ok(drive(&s, 1, one_frame), "frame: a frame of it");
	end_other(&o);
	ok(drive(&s, 1, first_over), "dies-middle-frame: it dies in the middle of a frame");
	says(s.why, "middle of a frame", "and why");
	end(&s);
	join_other(&o, &s, server, "NORMAL", "client");
	ok(!shake_other(&o, &s) && wire_ready(s.wire), "client-not-goodbye: a client that does not say goodbye");
	end_other(&o);
	ok(drive(&s, 1, first_over) && !s.why[0], "frame-ends-end: the end of a frame is a proper end");
	end(&s);
	join_other(&o, &s, server, "NORMAL", "client");
	ok(!shake_other(&o, &s) && wire_ready(s.wire), "client-changes-keys: a client that changes its keys");
	good(gnutls_session_key_update(o.session, GNUTLS_KU_PEER), "key update");
	good(gnutls_record_send(o.session, "\0\0\0\1!", 5), "send");
	ok(drive(&s, 1, one_frame), "frame-new-keys: a frame with new keys");
	ok(!wire_send(s.wire, "yes", 3, why) && receive_other(&o, data, 8) == 7 &&
	   !memcmp(data, "\0\0\0\3yes", 7), "new-keys: both go on with new keys");
	put(o.fd, "\x17\3\3\0\x20nonsense nonsense nonsense nonse", 37);
	ok(drive(&s, 1, first_over), "not-encrypted-refused: data not encrypted with them are refused");
	says(s.why, "TLS: ", "and why");
	end(&s);
	end_other(&o);
}

static void test_tls(void)
{
	struct wire_tls *server = keys("server", NULL), *client = keys("client", NULL);
	const struct place place = { "tls:127.0.0.1:0", server, client, NULL };

	test_frames(&place);
	test_last_words(&place);
	test_queue(&place);
	test_tls_pending(&place);
	test_tls_peers(server, client);
	test_everywhere(server, client);
	test_tls_refusals();
	test_tls_hasty(server);
	test_no_tls(server, client);
	test_other_versions(server);
	test_other_servers(client);
	test_other_ends(server);
	wire_tls_close(server);
	wire_tls_close(client);
}

static bool has_ipv6(void)
{
	const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_in6 at = {
		.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};
	const bool has = !bind(fd, (const struct sockaddr *)&at, sizeof(at));

	if (fd >= 0)
		close(fd);
	return has;
}

static unsigned int open_files(void)
{
	DIR *list = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (list && readdir(list))
		n++;
	if (list)
		closedir(list);
	return n;
}

static void remove_folder(void)
{
	DIR *list = opendir(folder);
	const struct dirent *entry;

	while (list && (entry = readdir(list)))
		unlinkat(dirfd(list), entry->d_name, 0);
	if (list)
		closedir(list);
	rmdir(folder);
}

int main(void)
{
	struct place place = { 0 };
	unsigned int files;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!mkdtemp(folder))
		give_up(folder);
	atexit(remove_folder);
	make_certificates();
	files = open_files();
	test_addresses();
	test_unix_paths();
	test_unix_peer();
	place.at = unix_at("s");
	test_frames(&place);
	test_last_words(&place);
	test_queue(&place);
	place.at = "plain:0";
	test_frames(&place);
	test_last_words(&place);
	test_queue(&place);
	place.at = "plain:[::1]:0";
	if (has_ipv6())
		test_frames(&place);
	else
		ok(true, "skip-no-ipv6: %s # SKIP there is no IPv6", place.at);
	test_raw_frames();
	test_bad_frames();
	test_frame_limits();
	test_connect();
	test_unix_full();
	test_files();
	test_key_modes();
	test_tls();
	ok(open_files() == files, "no-file-left: no file is left open");
	return tap_end();
}
