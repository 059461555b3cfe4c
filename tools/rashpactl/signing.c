// SPDX-License-Identifier: LGPL-2.1-or-later
/* Will this kernel load our module? */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rashpactl/signing.h"

#define SECURE_BOOT	"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

__attribute__((format(printf, 2, 3)))
static FILE *open_file(const char *root, const char *format, ...)
{
	char path[512];
	va_list args;
	int n = snprintf(path, sizeof(path), "%s", root);

	if (n >= (int)sizeof(path))
		return NULL;
	va_start(args, format);
	vsnprintf(path + n, sizeof(path) - n, format, args);
	va_end(args);
	return fopen(path, "re");
}

static void first_line(FILE *file, char *line, int size)
{
	if (!file || !fgets(line, size, file))
		*line = '\0';
	line[strcspn(line, "\n")] = '\0';
}

void signing_state(struct signing *s, const char *root)
{
	char line[128], *mode;
	uint8_t variable[5];	/* four bytes of attributes, one of value */
	FILE *file;

	file = open_file(root, "/sys/firmware/efi/runtime");
	s->efi = file;
	if (file)
		fclose(file);
	file = open_file(root, SECURE_BOOT);
	s->secure_boot = file && fread(variable, 1, sizeof(variable), file) == sizeof(variable) &&
			 variable[4] == 1;
	if (file)
		fclose(file);

	file = open_file(root, "/sys/kernel/security/lockdown");
	first_line(file, line, sizeof(line));
	if (file)
		fclose(file);
	mode = strchr(line, '[');	/* the mode in force is in brackets */
	mode = mode ? strtok(mode, "[]") : NULL;
	snprintf(s->lockdown, sizeof(s->lockdown), "%s", mode ? mode : "");

	file = open_file(root, "/sys/module/module/parameters/sig_enforce");
	first_line(file, line, sizeof(line));
	if (file)
		fclose(file);
	s->by_lockdown = *line != 'Y' && *s->lockdown && strcmp(s->lockdown, "none");
	s->enforced = *line == 'Y' || s->by_lockdown;
}

void signing_key(struct signing *s, const char *root)
{
	char *line = NULL;
	size_t room = 0;
	FILE *file = open_file(root, "/proc/keys");

	s->key = KEY_NOT_TOLD;
	if (!file)
		return;
	/* a user who may not see the kernel's keys sees no asymmetric key at all */
	while (getline(&line, &room, file) > 0) {
		if (!strstr(line, " asymmetri "))
			continue;
		if (*s->signer && strstr(line, s->signer)) {
			s->key = KEY_KNOWN;
			break;
		}
		s->key = KEY_UNKNOWN;
	}
	free(line);
	fclose(file);
}

/* The words of modprobe, which does not know whether the signature or the key is missing. */
#define REFUSED(words)	"this kernel refuses it (" words "): "
#define REJECTED	REFUSED("Key was rejected by service")
#define NOT_PERMITTED	REFUSED("Operation not permitted")
#define SIGN_IT		"sign it, as DKMS does where openssl is installed, and enrol the key " \
			"(Documentation/install.rst)"
#define ENROL_IT	"mokutil --import /var/lib/dkms/mok.pub, or the signer's certificate, " \
			"then reboot and enrol it (Documentation/install.rst)"

enum signing_verdict signing_judge(const struct signing *s, char *text, size_t size,
				   const char **remedy)
{
	static const char *const keys[] = {
		[KEY_NOT_TOLD] = "its keys are not visible to this user",
		[KEY_UNKNOWN] = "it does not know that key",
		[KEY_KNOWN] = "it knows a key of that name",
	};
	const char *boot = s->efi ? "off" : "not there (no UEFI)";
	char module[256] = "";

	if (s->found && *s->signer)
		snprintf(module, sizeof(module), "; rashpa.ko is signed by \"%s\", %s", s->signer,
			 keys[s->key]);
	else if (s->found)
		snprintf(module, sizeof(module), "; rashpa.ko is not signed");
	if (s->secure_boot)
		boot = "on";
	snprintf(text, size, "secure boot %s, lockdown %s, signed modules %s%s",
		 boot,
		 *s->lockdown ? s->lockdown : "not told",
		 s->enforced ? "required" : "not required", module);
	*remedy = NULL;
	if (!s->enforced)
		return s->secure_boot ? SIGNING_NOTE : SIGNING_OK;
	if (!s->found)
		return SIGNING_NOTE;
	if (!*s->signer) {
		*remedy = s->by_lockdown ? NOT_PERMITTED SIGN_IT : REJECTED SIGN_IT;
		return SIGNING_PROBLEM;
	}
	if (s->key == KEY_UNKNOWN) {
		*remedy = s->by_lockdown ? NOT_PERMITTED ENROL_IT : REJECTED ENROL_IT;
		return SIGNING_PROBLEM;
	}
	return SIGNING_OK;
}
