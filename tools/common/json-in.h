/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Read JSON files that people write: errors name their place. */
#ifndef JSON_IN_H
#define JSON_IN_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where we are, for messages. */
struct json_place {
	const char *path;
	char key[256];
	char *why;		/* [WHY_SIZE] */
	void *context;		/* for readers */
};

/* Reads a value to where the last argument points. 0, or -1 with the reason. */
typedef int (*json_reader)(struct json_place *at, struct json_object *value, void *to);

/* One key of an object: its reader and the destination. */
struct json_key {
	const char *name;
	bool required;
	json_reader read;
	void *to;
};

/* The reason, with the place; returns -1. */
__attribute__((format(printf, 2, 3)))
int json_wrong(struct json_place *at, const char *format, ...);

/* Go one step down: key or [index]; returns what to pass to json_leave(). */
size_t json_enter(struct json_place *at, const char *key, int index);
void json_leave(struct json_place *at, size_t length);

/* An object that has the required keys, and no unknown keys. */
int json_read_object(struct json_place *at, struct json_object *object,
		     const struct json_key *keys, size_t n_keys);
/* An array: read each element into the next place of an array. */
int json_read_array(struct json_place *at, struct json_object *array, json_reader read, void *to,
		    size_t size, unsigned int max, unsigned int *count);

/* A number, or a string: "0x10", "32K". */
int json_read_u64(struct json_place *at, struct json_object *value, void *to);
int json_read_u32(struct json_place *at, struct json_object *value, void *to);
int json_read_real(struct json_place *at, struct json_object *value, void *to);
int json_read_bool(struct json_place *at, struct json_object *value, void *to);
/* For people: a string that no program reads. */
int json_read_comment(struct json_place *at, struct json_object *value, void *to);
/* As the others, but for the size: a string, and the rest is cleared. */
int json_read_text(struct json_place *at, struct json_object *value, char *to, size_t size);

/* A string: sets the index of one of words[], which NULL ends. */
int json_read_word(struct json_place *at, struct json_object *value, const char * const *words,
		  unsigned int *index);

/* NULL, with the reason. The text ends with a 0 behind length; path is for messages. */
struct json_object *json_parse_text(const char *path, const char *text, size_t length, char *why);
struct json_object *json_parse_file(const char *path, char *why);

#endif /* JSON_IN_H */
