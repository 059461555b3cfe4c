/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Short names for making and printing JSON. The printed JSON is always UTF-8. A byte of a text that is no
 * UTF-8 becomes the text \xNN (shown.h).
 */
#ifndef JSON_OUT_H
#define JSON_OUT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

static inline void put_text(struct json_object *to, const char *key, const char *value)
{
	json_object_object_add(to, key, value ? json_object_new_string(value) : NULL);
}

static inline void put_u64(struct json_object *to, const char *key, uint64_t value)
{
	json_object_object_add(to, key, json_object_new_uint64(value));
}

static inline void put_int(struct json_object *to, const char *key, int64_t value)
{
	json_object_object_add(to, key, json_object_new_int64(value));
}

static inline void put_bool(struct json_object *to, const char *key, int value)
{
	json_object_object_add(to, key, json_object_new_boolean(value));
}

void put_real(struct json_object *to, const char *key, double value);
/* "node": "fpgaN", "number": N */
void put_node(struct json_object *to, unsigned int number);
/* four hexadecimal digits, as PCI ids are written */
void put_id(struct json_object *to, const char *key, uint32_t value);
void put_hex(struct json_object *to, const char *key, uint64_t value);

/* Where JSON goes: a file, which is made when there is something to write; NULL or "-": stdout. */
void json_to(const char *file);
/* Is standard output free for text? */
bool json_elsewhere(void);

/* As it is printed. free() it; NULL: no memory. */
char *json_shown(struct json_object *object, int flags);
/* Write all there is, and free it. 0, or EXIT_FAILED after a message. */
int json_finish(struct json_object *object);
/* The same as one line of several. */
int json_line(struct json_object *object);

#endif /* JSON_OUT_H */
