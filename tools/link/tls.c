// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/say.h"

#define PRIORITY	"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA"
#define RECORD		16384u		/* bytes that one call of GnuTLS takes */
#define NAMES		256		/* most names of a certificate that are checked */

struct wire_tls {
	gnutls_certificate_credentials_t credentials;
	gnutls_priority_t priority;
};

struct tls_link {
	gnutls_session_t session;
	int fd;
	bool verified, shaken, broken;
	char name[256];			/* "": we are the server */
	struct wire_peer peer;		/* only its names are used */
	gnutls_alert_description_t alert;	/* reports `said` to the other side */
	char said[WHY_SIZE];		/* reason to refuse its certificate */
	int error;			/* errno of the last transfer */
	int first;			/* byte that came; -1: none */
	size_t unsent;			/* size of what GnuTLS holds back */
};

/* --- files --- */

/* Check the file first: GnuTLS hardly reports why it cannot read one. */
static int check_file(const char *path, bool key, char *why)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	int error = 0;

	if (fd < 0 || fstat(fd, &st))
		error = because(why, -1, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		error = because(why, -1, "%s is not a file: give one in PEM format", path);
	else if (key && (st.st_mode & 0027))
		error = because(why, -1, "%s: other users can read this key: chmod 600 %s", path, path);
	if (fd >= 0)
		close(fd);
	return error;
}

static int read_authority(struct wire_tls *tls, const char *path, char *why)
{
	int n;

	if (check_file(path, false, why))
		return -1;
	n = gnutls_certificate_set_x509_trust_file(tls->credentials, path, GNUTLS_X509_FMT_PEM);
	return n > 0 ? 0 : because(why, -1, "%s contains no certificate%s%s", path,
				   n ? ": " : "", n ? gnutls_strerror(n) : "");
}

static int read_own(struct wire_tls *tls, const struct wire_files *files, char *why)
{
	int error;

	if (check_file(files->certificate, false, why) || check_file(files->key, true, why))
		return -1;
	error = gnutls_certificate_set_x509_key_file(tls->credentials, files->certificate,
						     files->key, GNUTLS_X509_FMT_PEM);
	if (error == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
		return because(why, -1, "%s is not the key of the certificate %s", files->key,
			       files->certificate);
	return error >= 0 ? 0 : because(why, -1, "the certificate %s and its key %s: %s",
					files->certificate, files->key, gnutls_strerror(error));
}

/* A list that is too old is refused here. One that grows too old later is still used. */
static int read_revoked(struct wire_tls *tls, const char *path, char *why)
{
	const unsigned int flags = GNUTLS_TL_VERIFY_CRL | GNUTLS_TL_NO_DUPLICATES;
	gnutls_x509_trust_list_t trusted;
	gnutls_x509_crl_t *lists = NULL;
	gnutls_datum_t text = { 0 };
	unsigned int n = 0;
	int added = 0, error;

	if (check_file(path, false, why))
		return -1;
	error = gnutls_load_file(path, &text);
	if (error >= 0)
		error = gnutls_x509_crl_list_import2(&lists, &n, &text, GNUTLS_X509_FMT_PEM, 0);
	if (error >= 0) {
		gnutls_certificate_get_trust_list(tls->credentials, &trusted);
		added = gnutls_x509_trust_list_add_crls(trusted, lists, n, flags, 0);
	}
	gnutls_free(lists);
	gnutls_free(text.data);
	if (error < 0 || !n)
		return because(why, -1, "%s: there is no list of revoked certificates in it: %s",
			       path, gnutls_strerror(error));
	return added == (int)n ? 0 :
	       because(why, -1, "%s: this list of revoked certificates is too old, or not signed by the authority of --tls",
		       path);
}

int wire_tls_open(const struct wire_files *files, struct wire_tls **tls, char *why)
{
	struct wire_tls *t;

	*tls = NULL;
	if (!files->authority || !files->certificate || !files->key)
		return because(why, -1, "TLS requires three files: an authority's certificate, our certificate and its key");
	t = calloc(1, sizeof(*t));
	if (!t || gnutls_certificate_allocate_credentials(&t->credentials) ||
	    gnutls_priority_init(&t->priority, PRIORITY, NULL)) {
		wire_tls_close(t);
		return because(why, -1, "GnuTLS has no memory, or does not know %s", PRIORITY);
	}
	if (read_authority(t, files->authority, why) || read_own(t, files, why) ||
	    (files->revoked && read_revoked(t, files->revoked, why))) {
		wire_tls_close(t);
		return -1;
	}
	*tls = t;
	return 0;
}

void wire_tls_close(struct wire_tls *tls)
{
	if (!tls)
		return;
	if (tls->priority)
		gnutls_priority_deinit(tls->priority);
	if (tls->credentials)
		gnutls_certificate_free_credentials(tls->credentials);
	free(tls);
}

/* --- the other's certificate --- */

__attribute__((format(printf, 3, 4)))
static int refuse(struct tls_link *l, gnutls_alert_description_t alert, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(l->said, sizeof(l->said), format, args);
	va_end(args);
	l->alert = alert;
	return GNUTLS_E_CERTIFICATE_ERROR;
}

/* Permit UTF-8 without characters that act on a terminal. */
static bool harmless(const char *text, size_t size)
{
	gnutls_datum_t normal;

	if (!size || strnlen(text, size) < size ||
	    gnutls_utf8_password_normalize((const unsigned char *)text, size, &normal, 0) < 0)
		return false;
	gnutls_free(normal.data);
	return true;
}

static int take_name(struct tls_link *l, const char *text, size_t size, char to[128])
{
	if (size >= 128 || !harmless(text, size))
		return refuse(l, GNUTLS_A_BAD_CERTIFICATE,
			      "a name in its certificate is empty, too long, or has control characters");
	memcpy(to, text, size);
	to[size] = '\0';
	return 0;
}

static int take_common_name(struct tls_link *l, gnutls_x509_crt_t crt)
{
	char text[1024];
	size_t size = sizeof(text);
	const int error = gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0,
							text, &size);

	if (error == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
		return 0;
	return take_name(l, text, error ? 0 : size, l->peer.common_name);
}

/* Ignore names that do not fit. */
static int take_dns_names(struct tls_link *l, gnutls_x509_crt_t crt)
{
	struct wire_peer *peer = &l->peer;
	const unsigned int most = sizeof(peer->dns) / sizeof(peer->dns[0]);
	char text[1024];

	for (unsigned int i = 0; i < NAMES && peer->dns_names < most; i++) {
		size_t size = sizeof(text);
		const int type = gnutls_x509_crt_get_subject_alt_name(crt, i, text, &size, NULL);

		if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
			return 0;
		if (type < 0 && type != GNUTLS_E_X509_UNKNOWN_SAN)
			size = 0;
		else if (type != GNUTLS_SAN_DNSNAME)
			continue;
		if (take_name(l, text, size, peer->dns[peer->dns_names]))
			return GNUTLS_E_CERTIFICATE_ERROR;
		peer->dns_names++;
	}
	return 0;
}

/* Refuse the certificate for its worst fault. */
static int unwanted(struct tls_link *l, unsigned int status)
{
	static const struct {
		unsigned int status;
		gnutls_alert_description_t alert;
		const char *text;
	} faults[] = {
		{ GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNATURE_FAILURE,
		  GNUTLS_A_UNKNOWN_CA, "is not signed by our authority" },
		{ GNUTLS_CERT_REVOKED, GNUTLS_A_CERTIFICATE_REVOKED, "is revoked" },
		{ GNUTLS_CERT_EXPIRED, GNUTLS_A_CERTIFICATE_EXPIRED,
		  "has expired, or its authority's has" },
		{ GNUTLS_CERT_NOT_ACTIVATED, GNUTLS_A_CERTIFICATE_EXPIRED,
		  "is not yet valid: are the clocks right?" },
		{ GNUTLS_CERT_PURPOSE_MISMATCH, GNUTLS_A_UNSUPPORTED_CERTIFICATE,
		  "has another purpose: a client has one for clients, a server one for servers" },
	};
	gnutls_datum_t text = { 0 };

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (status & faults[i].status)
			return refuse(l, faults[i].alert, "its certificate %s", faults[i].text);
	}
	gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
	refuse(l, GNUTLS_A_BAD_CERTIFICATE, "its certificate: %.400s",
	       text.data ? (const char *)text.data : "no memory");
	gnutls_free(text.data);
	return GNUTLS_E_CERTIFICATE_ERROR;
}

static int check_certificate(struct tls_link *l, gnutls_x509_crt_t crt)
{
	const char *purpose = l->name[0] ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT;
	gnutls_typed_vdata_st wanted[] = {
		{ .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)purpose },
		{ .type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *)l->name },
	};
	const unsigned int wrong_name = GNUTLS_CERT_INVALID | GNUTLS_CERT_UNEXPECTED_OWNER;
	unsigned int status = 0;
	const int error = gnutls_certificate_verify_peers(l->session, wanted, l->name[0] ? 2 : 1,
							  &status);

	if (error < 0)
		return refuse(l, GNUTLS_A_BAD_CERTIFICATE, "its certificate cannot be checked: %s",
			      gnutls_strerror(error));
	/* names without a trusted signature are not shown */
	if (status && status != wrong_name)
		return unwanted(l, status);
	if (take_common_name(l, crt) || take_dns_names(l, crt))
		return GNUTLS_E_CERTIFICATE_ERROR;
	if (status)
		return refuse(l, GNUTLS_A_BAD_CERTIFICATE,
			      "its certificate is not for the name \"%s\", but for \"%s\"",
			      l->name, l->peer.dns_names ? l->peer.dns[0] : l->peer.common_name);
	l->verified = true;
	return 0;
}

/* GnuTLS calls this as soon as it has the certificate. */
static int verify(gnutls_session_t session)
{
	struct tls_link *l = gnutls_session_get_ptr(session);
	unsigned int n = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &n);
	gnutls_x509_crt_t crt;
	int result;

	if (!chain || !n || gnutls_certificate_type_get(session) != GNUTLS_CRT_X509)
		return refuse(l, GNUTLS_A_BAD_CERTIFICATE, "it gives no certificate");
	if (gnutls_x509_crt_init(&crt))
		return refuse(l, GNUTLS_A_INTERNAL_ERROR, "no memory for its certificate");
	if (gnutls_x509_crt_import(crt, &chain[0], GNUTLS_X509_FMT_DER))
		result = refuse(l, GNUTLS_A_BAD_CERTIFICATE, "its certificate cannot be read");
	else
		result = check_certificate(l, crt);
	gnutls_x509_crt_deinit(crt);
	return result;
}

/* --- the link --- */

/* Keep errno for GnuTLS. */
static ssize_t pull(gnutls_transport_ptr_t context, void *to, size_t size)
{
	struct tls_link *l = context;
	const ssize_t n = recv(l->fd, to, size, 0);

	l->error = n < 0 && errno != EAGAIN ? errno : 0;
	if (n > 0 && l->first < 0)
		l->first = *(unsigned char *)to;
	return n;
}

static ssize_t push(gnutls_transport_ptr_t context, const void *from, size_t size)
{
	struct tls_link *l = context;
	const ssize_t n = send(l->fd, from, size, MSG_NOSIGNAL);

	l->error = n < 0 && errno != EAGAIN ? errno : 0;
	return n;
}

struct tls_link *tls_begin(struct wire_tls *tls, int fd, const char *name)
{
	/* without FORCE a certificate that the server will not like would not even be sent */
	const unsigned int flags = GNUTLS_NONBLOCK | GNUTLS_NO_TICKETS |
				   (name ? GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT :
					   GNUTLS_SERVER);
	struct tls_link *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->fd = fd;
	l->first = -1;
	snprintf(l->name, sizeof(l->name), "%s", name ? name : "");
	if (gnutls_init(&l->session, flags) ||
	    gnutls_priority_set(l->session, tls->priority) ||
	    gnutls_credentials_set(l->session, GNUTLS_CRD_CERTIFICATE, tls->credentials)) {
		tls_end(l);
		return NULL;
	}
	gnutls_session_set_ptr(l->session, l);
	gnutls_session_set_verify_function(l->session, verify);
	if (!name)
		gnutls_certificate_server_set_request(l->session, GNUTLS_CERT_REQUIRE);
	gnutls_transport_set_ptr(l->session, l);
	gnutls_transport_set_pull_function(l->session, pull);
	gnutls_transport_set_push_function(l->session, push);
	return l;
}

void tls_end(struct tls_link *l)
{
	if (!l)
		return;
	if (l->shaken && !l->broken)
		gnutls_bye(l->session, GNUTLS_SHUT_WR);
	if (l->session)
		gnutls_deinit(l->session);
	free(l);
}

static int alerted(struct tls_link *l, char *why)
{
	const gnutls_alert_description_t alert = gnutls_alert_get(l->session);
	const char *name = gnutls_alert_get_name(alert), *of = "it has ended TLS";

	if ((alert >= GNUTLS_A_BAD_CERTIFICATE && alert <= GNUTLS_A_CERTIFICATE_UNKNOWN) ||
	    alert == GNUTLS_A_UNKNOWN_CA || alert == GNUTLS_A_ACCESS_DENIED ||
	    alert == GNUTLS_A_CERTIFICATE_REQUIRED)
		of = "it refuses our certificate";
	else if (alert == GNUTLS_A_PROTOCOL_VERSION)
		of = "it does not speak our versions of TLS, 1.2 and 1.3";
	return because(why, -1, "%s: \"%s\" (alert %d)", of, name ? name : "?", alert);
}

/* Send the reason to the other side, too, if the link still permits. */
static int broken(struct tls_link *l, int error, char *why)
{
	l->broken = true;
	if (l->error)
		return because(why, -1, "%s", strerror(l->error));
	if (error == GNUTLS_E_FATAL_ALERT_RECEIVED)
		return alerted(l, why);
	if (error == GNUTLS_E_PREMATURE_TERMINATION)
		return because(why, -1, "it has closed the link during the handshake: does it speak TLS?");
	if (l->said[0])
		gnutls_alert_send(l->session, GNUTLS_AL_FATAL, l->alert);
	else
		gnutls_alert_send_appropriate(l->session, error);
	if (l->said[0])
		return because(why, -1, "%s", l->said);
	/* all records of TLS begin with their type */
	if (l->first >= 0 && (l->first < 20 || l->first > 23))
		return because(why, -1, "it does not speak TLS: give it an address with tls: as well");
	if (error == GNUTLS_E_NO_CERTIFICATE_FOUND || error == GNUTLS_E_CERTIFICATE_REQUIRED)
		return because(why, -1, "it gives no certificate");
	if (error == GNUTLS_E_UNSUPPORTED_VERSION_PACKET)
		return because(why, -1, "it does not speak our versions of TLS, 1.2 and 1.3");
	if (error == GNUTLS_E_REHANDSHAKE)
		return because(why, -1, "it asked for a renegotiation, which is not allowed");
	return because(why, -1, "TLS: %s", gnutls_strerror(error));
}

int tls_shake(struct tls_link *l, struct wire_peer *peer, char *why)
{
	const int error = gnutls_handshake(l->session);

	if (error == GNUTLS_E_AGAIN || error == GNUTLS_E_INTERRUPTED ||
	    error == GNUTLS_E_WARNING_ALERT_RECEIVED)
		return 0;
	if (!error && !l->verified)
		refuse(l, GNUTLS_A_INTERNAL_ERROR, "its certificate was not checked");
	if (error || !l->verified)
		return broken(l, error, why);
	l->shaken = true;
	memcpy(peer->common_name, l->peer.common_name, sizeof(peer->common_name));
	memcpy(peer->dns, l->peer.dns, sizeof(peer->dns));
	peer->dns_names = l->peer.dns_names;
	return 1;
}

bool tls_writes(const struct tls_link *l)
{
	return gnutls_record_get_direction(l->session);
}

bool tls_pending(const struct tls_link *l)
{
	return gnutls_record_check_pending(l->session);
}

ssize_t tls_receive(struct tls_link *l, void *to, size_t size, char *why)
{
	const ssize_t n = gnutls_record_recv(l->session, to, size);

	switch (n) {
	case 0:
		return TLS_END;
	case GNUTLS_E_AGAIN:
	case GNUTLS_E_INTERRUPTED:
	case GNUTLS_E_WARNING_ALERT_RECEIVED:
		return 0;
	case GNUTLS_E_PREMATURE_TERMINATION:
		/* it has died; where a frame ends, that is all there is to say */
		if (!l->error)
			return TLS_END;
	}
	return n > 0 ? n : broken(l, n, why);
}

ssize_t tls_transmit(struct tls_link *l, const void *from, size_t size, char *why)
{
	ssize_t n;

	if (l->unsent)
		size = l->unsent;
	else if (size > RECORD)
		size = RECORD;
	n = gnutls_record_send(l->session, from, size);
	l->unsent = 0;
	if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED) {
		l->unsent = size;
		return 0;
	}
	return n > 0 ? n : broken(l, n, why);
}
