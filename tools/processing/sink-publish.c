// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Publishes images in the format of DECTRIS detectors ("Stream V2"): CBOR messages (start, image,
 * end) over ZeroMQ, with arrays of RFC 8746 and DECTRIS's tag for compressed ones. The sink never
 * waits for subscribers: messages that find no room are dropped and counted.
 */
#include <cbor.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <zmq.h>

#include "processing/pack.h"
#include "common/say.h"
#include "processing/sink.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define ENDPOINT	256
#define CHANNEL		64
#define UUID		37
#define LINGER_MS	2000	/* for the last messages */
#define HEAD		1024	/* bytes of a message that are not an array */

/* RFC 8949, RFC 8746, and DECTRIS's */
#define TAG_TIME	0
#define TAG_MATRIX	40
#define TAG_U32		70
#define TAG_I32		78
#define TAG_F32		85
#define TAG_COMPRESSED	56500

enum pattern { PUSH, PUB };

struct publish {
	char endpoint[ENDPOINT], channel[CHANNEL];
	unsigned int pattern, packing;
	uint32_t waiting;		/* messages, for each subscriber, at most */

	uint32_t width, height;
	bool whole;			/* numbers are int32 */
	int32_t *rounded;
	struct rpu_packer *packer;
	uint64_t series;
	char unique[UUID];
	void *context, *socket;
	zmq_msg_t start;		/* not sent yet, for PUSH */
	bool have_start;
};

/* --- the configuration --- */

static int read_endpoint(struct json_place *at, struct json_object *value, void *to)
{
	return json_read_text(at, value, to, ENDPOINT);
}

static int read_channel(struct json_place *at, struct json_object *value, void *to)
{
	return json_read_text(at, value, to, CHANNEL);
}

static int read_pattern(struct json_place *at, struct json_object *value, void *to)
{
	static const char * const words[] = { [PUSH] = "push", [PUB] = "pub", NULL };

	return json_read_word(at, value, words, to);
}

static int read_packing(struct json_place *at, struct json_object *value, void *to)
{
	static const char * const words[] = { "none", "lz4", "bitshuffle-lz4", NULL };
	static const enum rpu_packing packing[] = {
		RPU_PACK_NONE, RPU_PACK_LZ4, RPU_PACK_BITSHUFFLE_LZ4,
	};
	unsigned int index;

	if (json_read_word(at, value, words, &index))
		return -1;
	*(unsigned int *)to = packing[index];
	return 0;
}

RPU_READS(u32, read_waiting, 1, 1 << 20)

static int publish_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rpu_sink_at *s = to;
	struct publish *x = calloc(1, sizeof(*x));
	const struct json_key keys[] = {
		{ "endpoint", true, read_endpoint, x ? x->endpoint : NULL },
		{ "pattern", false, read_pattern, x ? &x->pattern : NULL },
		{ "channel", false, read_channel, x ? x->channel : NULL },
		{ "compression", false, read_packing, x ? &x->packing : NULL },
		{ "waiting", false, read_waiting, x ? &x->waiting : NULL },
		{ "on_error", false, rpu_read_on_error, s },
	};

	if (!x)
		return json_wrong(at, "no memory");
	s->state = x;
	x->waiting = 10;
	strcpy(x->channel, "threshold_1");
	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

/* --- CBOR, one item behind the other --- */

struct cbor {
	uint8_t *data;
	size_t used, room;
};

/* Append a CBOR item. Messages are allocated with enough room. */
#define ITEM(c, kind, ...) \
	((c)->used += cbor_encode_##kind(__VA_ARGS__, (c)->data + (c)->used, (c)->room - (c)->used))

static void put_bytes(struct cbor *c, const void *bytes, size_t n)
{
	memcpy(c->data + c->used, bytes, n);
	c->used += n;
}

static void put_string(struct cbor *c, const char *text)
{
	ITEM(c, string_start, strlen(text));
	put_bytes(c, text, strlen(text));
}

static void put_text(struct cbor *c, const char *key, const char *value)
{
	put_string(c, key);
	put_string(c, value);
}

static void put_number(struct cbor *c, const char *key, uint64_t value)
{
	put_string(c, key);
	ITEM(c, uint, value);
}

static void put_real(struct cbor *c, const char *key, double value)
{
	put_string(c, key);
	ITEM(c, double, value);
}

/* A map of the channel's name to an array of two dimensions, of which the bytes come next. */
static void begin_matrix(struct cbor *c, const struct publish *x, const char *key, uint64_t tag)
{
	put_string(c, key);
	ITEM(c, map_start, 1);
	put_string(c, x->channel);
	ITEM(c, tag, TAG_MATRIX);
	ITEM(c, array_start, 2);
	ITEM(c, array_start, 2);
	ITEM(c, uint, x->height);
	ITEM(c, uint, x->width);
	ITEM(c, tag, tag);
}

static void begin_message(struct cbor *c, const struct publish *x, const char *type, size_t more)
{
	ITEM(c, map_start, 3 + more);
	put_text(c, "type", type);
	put_number(c, "series_id", x->series);
	put_text(c, "series_unique_id", x->unique);
}

/* --- messages --- */

static int sorry(const struct publish *x, char *why)
{
	return because(why, -1, "%s: %s", x->endpoint, zmq_strerror(errno));
}

/* 1: sent; 0: there is no room for it; -1: it failed. */
static int send_now(struct publish *x, zmq_msg_t *message)
{
	while (zmq_msg_send(message, x->socket, ZMQ_DONTWAIT) < 0) {
		if (errno == EAGAIN)
			return 0;
		if (errno != EINTR)
			return -1;
	}
	return 1;
}

/*
 * If a subscriber has no room, the others still get the message. 1: sent to all. ZeroMQ skips a
 * full subscriber until it has room again, so further messages that it misses count as sent.
 */
static int send_all(struct publish *x, zmq_msg_t *message)
{
	int strict = 1, result;

	/* read subscriptions: XPUB, used to count subscribers without room, delivers them */
	while (x->pattern == PUB && zmq_recv(x->socket, NULL, 0, ZMQ_DONTWAIT) >= 0)
		;
	result = send_now(x, message);
	if (result || x->pattern == PUSH)
		return result;
	strict = 0;
	zmq_setsockopt(x->socket, ZMQ_XPUB_NODROP, &strict, sizeof(strict));
	result = send_now(x, message);
	strict = 1;
	zmq_setsockopt(x->socket, ZMQ_XPUB_NODROP, &strict, sizeof(strict));
	return result < 0 ? result : 0;
}

/* The start message goes first, as soon as there is room. */
static int send_in_order(struct publish *x, zmq_msg_t *message)
{
	int result = 1;

	if (x->have_start) {
		result = send_now(x, &x->start);
		x->have_start = result <= 0;
	}
	return result <= 0 ? result : send_all(x, message);
}

/* Make a message of the head, followed by an array of n bytes if the last item is one. */
static int make_message(const struct publish *x, struct cbor *head, const void *bytes, size_t n,
			zmq_msg_t *message, char *why)
{
	uint8_t *to;

	if (zmq_msg_init_size(message, head->used + n))
		return sorry(x, why);
	to = zmq_msg_data(message);
	memcpy(to, head->data, head->used);
	if (n)
		memcpy(to + head->used, bytes, n);
	return 0;
}

static int make_start(struct publish *x, const struct rashpa_pipeline *p, char *why)
{
	const size_t bytes = rpu_pixels(p) * sizeof(uint32_t);
	struct rpu_known known;
	uint32_t *mask = malloc(bytes);
	const int masked = mask ? rpu_mask(p, mask) : -1;
	uint8_t room[HEAD];
	struct cbor c = { .data = room, .room = sizeof(room) };
	char now[RPU_TIME];
	int result;

	if (masked < 0) {
		free(mask);
		return because(why, -1, "%s: no memory", x->endpoint);
	}
	rpu_time_text(now);
	rpu_know(p, &known);
	begin_message(&c, x, "start", 6 + 2 * !!known.ev + 4 * known.place + masked +
		      p->pretreat.jungfrau);
	put_string(&c, "arm_date");
	ITEM(&c, tag, TAG_TIME);
	put_string(&c, now);
	put_string(&c, "channels");
	ITEM(&c, array_start, 1);
	put_string(&c, x->channel);
	put_number(&c, "image_size_x", x->width);
	put_number(&c, "image_size_y", x->height);
	put_string(&c, "pixel_mask_enabled");
	ITEM(&c, bool, masked);
	put_text(&c, "user_data", "rashpa " RASHPA_VERSION);
	if (known.ev) {
		put_real(&c, "incident_energy", known.ev);
		put_real(&c, "incident_wavelength", known.angstrom);
	}
	if (known.place) {
		put_real(&c, "beam_center_x", known.beam_x);
		put_real(&c, "beam_center_y", known.beam_y);
		put_real(&c, "pixel_size_x", known.pixel_x);
		put_real(&c, "pixel_size_y", known.pixel_y);
	}
	if (p->pretreat.jungfrau)
		put_text(&c, "detector_description", "JUNGFRAU");
	if (masked) {
		begin_matrix(&c, x, "pixel_mask", TAG_U32);
		ITEM(&c, bytestring_start, bytes);
	}
	result = make_message(x, &c, mask, masked ? bytes : 0, &x->start, why);
	free(mask);
	return result;
}

static int make_image(struct publish *x, const struct rashpa_result *r, zmq_msg_t *message,
		      size_t *bytes, char *why)
{
	uint8_t room[HEAD];
	struct cbor c = { .data = room, .room = sizeof(room) };
	const void *data = r->image;

	if (x->whole) {
		rpu_whole_numbers(r->image, (size_t)x->width * x->height, x->rounded);
		data = x->rounded;
	}
	data = rpu_pack(x->packer, data, bytes);
	begin_message(&c, x, "image", 2);
	put_number(&c, "image_id", r->frame);
	begin_matrix(&c, x, "data", x->whole ? TAG_I32 : TAG_F32);
	if (x->packing != RPU_PACK_NONE) {
		const bool shuffled = x->packing == RPU_PACK_BITSHUFFLE_LZ4;

		ITEM(&c, tag, TAG_COMPRESSED);
		ITEM(&c, array_start, 3);
		put_string(&c, shuffled ? "bslz4" : "lz4");
		ITEM(&c, uint, shuffled ? sizeof(float) : 0);
	}
	ITEM(&c, bytestring_start, *bytes);
	return make_message(x, &c, data, *bytes, message, why);
}

/* --- a series --- */

/* Set a rising number and a unique name (UUID, version 4). */
static int name_series(struct publish *x, char *why)
{
	uint8_t r[16];
	char *to = x->unique;

	x->series = time(NULL);
	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		return because(why, -1, "no random number: %s", strerror(errno));
	r[6] = (r[6] & 0x0f) | 0x40;
	r[8] = (r[8] & 0x3f) | 0x80;
	for (unsigned int i = 0; i < sizeof(r); i++)
		to += sprintf(to, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", r[i]);
	return 0;
}

static int set_options(struct publish *x)
{
	const int linger = LINGER_MS, one = 1, waiting = x->waiting;

	if (zmq_setsockopt(x->socket, ZMQ_LINGER, &linger, sizeof(linger)) ||
	    zmq_setsockopt(x->socket, ZMQ_IPV6, &one, sizeof(one)) ||
	    zmq_setsockopt(x->socket, ZMQ_SNDHWM, &waiting, sizeof(waiting)))
		return -1;
	/* each subscriber has the first message when it comes */
	return x->pattern == PUB &&
	       (zmq_setsockopt(x->socket, ZMQ_XPUB_NODROP, &one, sizeof(one)) ||
		zmq_setsockopt(x->socket, ZMQ_XPUB_WELCOME_MSG, zmq_msg_data(&x->start),
			       zmq_msg_size(&x->start)));
}

/*
 * ZeroMQ removes what has the name of a socket, whatever it is, and takes of a port what fits into
 * 16 bits.
 */
static int look_at(const char *endpoint, char *why)
{
	static const char ipc[] = "ipc://", tcp[] = "tcp://";
	const char *path = endpoint + strlen(ipc), *port = strrchr(endpoint, ':');
	struct stat there;

	port = port ? port + 1 : endpoint;
	if (!strncmp(endpoint, ipc, strlen(ipc)) && !lstat(path, &there) &&
	    !S_ISSOCK(there.st_mode))
		return because(why, -1, "%s: %s exists, and is no socket", endpoint, path);
	if (!strncmp(endpoint, tcp, strlen(tcp)) && strcmp(port, "*") &&
	    (!*port || strspn(port, "0123456789") != strlen(port) || strlen(port) > 5 ||
	     atoi(port) > UINT16_MAX))
		return because(why, -1, "%s: \"%s\" is no port: give one of up to %d", endpoint,
			       port, UINT16_MAX);
	return 0;
}

static int publish_open(struct rashpa_pipeline *p, void *state, char *why)
{
	struct publish *x = state;

	if (look_at(x->endpoint, why))
		return -1;
	x->width = p->width;
	x->height = p->height;
	x->whole = rpu_is_whole(p);
	x->packer = rpu_packer_new(x->packing, sizeof(float), rpu_pixels(p), 0);
	x->rounded = x->whole ? rpu_memory(rpu_pixels(p), sizeof(*x->rounded)) : NULL;
	if (!x->packer || (x->whole && !x->rounded))
		return because(why, -1, "%s: no memory", x->endpoint);
	if (name_series(x, why) || make_start(x, p, why))
		return -1;
	x->have_start = true;
	x->context = zmq_ctx_new();
	x->socket = x->context ? zmq_socket(x->context, x->pattern == PUB ? ZMQ_XPUB : ZMQ_PUSH) :
		    NULL;
	if (!x->socket || set_options(x) || zmq_bind(x->socket, x->endpoint))
		return sorry(x, why);
	if (x->pattern == PUB) {
		x->have_start = false;
		zmq_msg_close(&x->start);
	}
	return 0;
}

static int publish_put(void *state, const struct rashpa_result *r, struct rashpa_stage_stat *stat,
		       char *why)
{
	struct publish *x = state;
	zmq_msg_t message;
	size_t bytes;
	int result;

	if (make_image(x, r, &message, &bytes, why))
		return -1;
	result = send_in_order(x, &message);
	if (result < 0)
		sorry(x, why);
	zmq_msg_close(&message);	/* empty if sent */
	stat->lost += !result;
	stat->bytes_out += result > 0 ? bytes : 0;
	return result < 0 ? -1 : 0;
}

static int publish_finish(void *state, char *why)
{
	struct publish *x = state;
	uint8_t room[HEAD];
	struct cbor c = { .data = room, .room = sizeof(room) };
	zmq_msg_t message;
	int result;

	begin_message(&c, x, "end", 0);
	if (make_message(x, &c, NULL, 0, &message, why))
		return -1;
	result = send_in_order(x, &message);
	if (result < 0)
		sorry(x, why);
	zmq_msg_close(&message);
	return result < 0 ? -1 : 0;
}

static void publish_end(void *state)
{
	struct publish *x = state;

	if (x->have_start)
		zmq_msg_close(&x->start);
	if (x->socket)
		zmq_close(x->socket);
	if (x->context)
		zmq_ctx_term(x->context);
	rpu_packer_free(x->packer);
	free(x->rounded);
	free(x);
}

const struct rpu_sink rpu_sink_publish = {
	.name = "publish", .read = publish_read, .open = publish_open, .put = publish_put,
	.finish = publish_finish, .end = publish_end,
};
