/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Device profiles: what differs from board to board, as JSON. See rashpactl(1). */
#ifndef PROFILE_H
#define PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/rashpa.h>

#define PROFILE_MATCHES_MAX	16
#define PROFILE_VECTORS_MAX	64

struct profile_engine {
	struct rashpa_profile_engine about;	/* but for its steps */
	unsigned int n_steps;
	struct rashpa_profile_step step[RASHPA_ENGINE_STEPS_MAX];
};

struct profile {
	char path[512];
	char name[64];
	unsigned int n_matches;
	struct { uint32_t vendor, device; } match[PROFILE_MATCHES_MAX];
	bool disclose, no_reset;
	uint32_t dma_bits, quiesce_us;
	uint64_t max_segment, boundary, alignment;
	unsigned int n_windows, n_steps, n_vectors;
	/* A length of 0 means: to the end of the BAR. The kernel wants it resolved. */
	struct rashpa_profile_window window[RASHPA_PROFILE_WINDOWS_MAX];
	struct rashpa_profile_step step[RASHPA_PROFILE_STEPS_MAX];
	char vector[PROFILE_VECTORS_MAX][RASHPA_PROFILE_NAME_SIZE];
	bool has_table;
	struct {
		char window[RASHPA_PROFILE_NAME_SIZE];
		uint64_t offset, length;
		struct rashpa_layout layout;
		/* with registers: an entry takes a ring of descriptors, or segments; no layout */
		struct rashpa_fetch fetch;
		struct rashpa_fetch_field field[RASHPA_FETCH_FIELDS_MAX];
		struct rashpa_fetch_field reg[RASHPA_FETCH_REGISTERS_MAX];
	} table;
	unsigned int n_engines;
	struct profile_engine engine[RASHPA_PROFILE_ENGINES_MAX];
};

/* Names of enum rashpa_fetch_kind. */
extern const char *const profile_kinds[];

/*
 * 0, or -1 with the reason in why[WHY_SIZE]: file, line or key, what is wrong. A broken profile
 * has its matches nevertheless, where they can be read.
 */
int profile_load(struct profile *profile, const char *path, char *why);

bool profile_matches(const struct profile *profile, uint32_t vendor, uint32_t device);

/*
 * The first profile for these ids: the directories of $RASHPA_PROFILES (with ':' between
 * them), /etc/rashpa/profiles.d, the installed one; files *.json in order of their names.
 * 1 found, 0 none, -1 with the reason in why[WHY_SIZE]: also if the first one is broken, since
 * the next one would be another board's idea of this one. Broken files that are not for these ids
 * are named in a warning, and passed over.
 */
int profile_find(struct profile *profile, uint32_t vendor, uint32_t device, char *why);

/* Resolve lengths by the BARs of an opened function, and apply. 0 or -1 with the reason. */
int profile_apply(const struct profile *profile, int device, char *why);

#endif /* PROFILE_H */
