// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/led.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/json-out.h"
#include "common/say.h"
#include "common/stop.h"

static int leader = -1;
static uint64_t told_ns;

int led_open(int fd, char *why)
{
	int type = 0;
	socklen_t size = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_SEQPACKET)
		return because(why, -1, "--led: %d is not a socket of a daemon: leave this option to --daemon",
			       fd);
	/* one that died before this call has closed its end, which is seen when we wait */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM))
		return because(why, -1, "--led: %s", strerror(errno));
	leader = fd;
	return 0;
}

bool led(void)
{
	return leader >= 0;
}

int led_fd(void)
{
	return leader;
}

static enum led_kind kind_of(const char *name)
{
	static const char * const names[] = {
		[LED_ARM] = "arm", [LED_START] = "start", [LED_PAUSE] = "pause",
		[LED_RESUME] = "resume", [LED_RATE] = "rate",
	};

	for (unsigned int i = LED_ARM; name && i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(name, names[i]))
			return i;
	}
	return LED_NONE;
}

struct led_command led_take(void)
{
	struct led_command command = {};
	struct json_object *o;
	char text[1024];
	ssize_t n;

	if (leader < 0)
		return command;
	n = recv(leader, text, sizeof(text) - 1, MSG_DONTWAIT);
	if (!n)		/* the leader has gone: end as if it had asked for that */
		kill(getpid(), SIGTERM);
	if (n <= 0)
		return command;
	text[n] = 0;
	o = json_tokener_parse(text);
	command.kind = kind_of(json_object_get_string(json_object_object_get(o, "kind")));
	command.rate = json_object_get_double(json_object_object_get(o, "rate"));
	json_object_put(o);
	return command;
}

bool led_await(enum led_kind kind, const volatile bool *stop)
{
	struct pollfd pollfd = { .fd = leader, .events = POLLIN };

	while (leader >= 0 && !*stop) {
		stop_poll(&pollfd, 1, UINT64_MAX);
		if (led_take().kind == kind)
			break;
	}
	return !*stop;
}

void led_say(const char *kind, struct json_object *members)
{
	struct json_object *o = members ? members : json_object_new_object();
	const char *text;

	put_text(o, "kind", kind);
	text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	/* a daemon that does not listen must not hold up images */
	if (leader >= 0 && strlen(text) < LED_MOST)
		send(leader, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	json_object_put(o);
}

void led_refuse(const char *format, ...)
{
	struct json_object *o = json_object_new_object();
	char text[WHY_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put_text(o, "text", text);
	led_say("refused", o);
}

bool led_due(void)
{
	uint64_t now;

	if (leader < 0)
		return false;
	now = now_ns();
	if (now - told_ns < LED_STATUS_MS * 1000000ull)
		return false;
	told_ns = now;
	return true;
}
