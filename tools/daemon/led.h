/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tool's end of its link to a daemon (--led FD): a socket for messages in JSON. The tool
 * reports its state, waits for the daemon's permission to go on, and takes commands. Without a
 * daemon all of this does nothing, and no call waits. led_say() is for any thread, the rest for
 * one.
 */
#ifndef LED_H
#define LED_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#define LED_MOST	65536		/* bytes of a message */
#define LED_STATUS_MS	100		/* from one status to the next */

struct led_command {
	enum led_kind { LED_NONE, LED_ARM, LED_START, LED_PAUSE, LED_RESUME, LED_RATE } kind;
	double rate;			/* images per second */
};

/* The tool ends when the daemon closes its end. 0, or -1 and why. */
int led_open(int fd, char *why);
bool led(void);
/* for poll(); -1: no leader */
int led_fd(void);

/* The next command, or LED_NONE. */
struct led_command led_take(void);
/* Wait for this command. false: the tool must end. */
bool led_await(enum led_kind kind, const volatile bool *stop);

/* {"kind": kind} with members, which are freed; NULL: no members. */
void led_say(const char *kind, struct json_object *members);
/* refuse the last command */
__attribute__((format(printf, 1, 2)))
void led_refuse(const char *format, ...);

/* It is time for a status. */
bool led_due(void);

#endif /* LED_H */
