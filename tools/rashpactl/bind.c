// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl bind, unbind */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "rashpactl/bind.h"
#include "common/fpga.h"
#include "common/json-out.h"
#include <rashpa.h>

#define NODE_MS		5000

enum { OPT_FORCE = 256, OPT_EXIST_OK };

static const struct argp_option bind_options[] = {
	{ "profile", 'p', "FILE", 0, "device profile (default: found by the ids)", 0 },
	{ "force", OPT_FORCE, NULL, 0, "take the function away from another driver", 0 },
	{ "exist-ok", OPT_EXIST_OK, NULL, 0, "succeed if the function already has its profile", 0 },
	OPTION_JSON,
	{}
};

static error_t parse_bind(int key, char *arg, struct argp_state *state)
{
	struct bind *b = state->input;

	switch (key) {
	case 'p':
		b->profile = arg;
		break;
	case OPT_FORCE:
		b->force = true;
		break;
	case OPT_EXIST_OK:
		b->exist_ok = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* BDF, or vendor:device if there is exactly one that is not bound. */
static int find_function(const char *what, struct pci_function *function)
{
	struct pci_function *list;
	unsigned int vendor, device;
	int end = 0, n, seen = 0, open = 0;
	char bdf[BDF_SIZE];

	if (parse_bdf(what, bdf))
		return pci_read(bdf, function) ? 0 : EXIT_FAILED;
	if (sscanf(what, "%4x:%4x%n", &vendor, &device, &end) != 2 || what[end]) {
		say("\"%s\" is neither BDF (0000:01:00.0) nor VENDOR:DEVICE (1234:5250)", what);
		return EXIT_USAGE;
	}
	n = pci_list(&list);
	for (int i = 0; i < n; i++) {
		if (list[i].vendor != vendor || list[i].device != device)
			continue;
		seen++;
		/* Prefer a function without a driver. */
		if (seen == 1 || list[i].fpga < 0)
			*function = list[i];
		open += list[i].fpga < 0;
	}
	free(list);
	if (n < 0)
		return EXIT_FAILED;
	if (!seen)
		return fail("there is no PCI function %s: see lspci -nn", what);
	if (open > 1)
		return fail("%d functions are %s: name one (rashpactl list)", open, what);
	return 0;
}

/*
 * The node appears first, and the device manager sets its owner and mode some time later: watch
 * the folder until the node can be opened.
 */
static int wait_node(unsigned int number)
{
	uint64_t end = now_ns() + NODE_MS * 1000000ull;
	struct pollfd pollfd = { .events = POLLIN };
	char path[512], event[4096];
	int error;

	snprintf(path, sizeof(path), "%s/fpga%u", rashpa_device_directory(), number);
	pollfd.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (pollfd.fd >= 0)
		inotify_add_watch(pollfd.fd, rashpa_device_directory(), IN_CREATE | IN_ATTRIB);
	while ((error = access(path, R_OK | W_OK) ? errno : 0) && now_ns() < end) {
		poll(&pollfd, 1, 100);
		while (pollfd.fd >= 0 && read(pollfd.fd, event, sizeof(event)) > 0)
			;
	}
	if (pollfd.fd >= 0)
		close(pollfd.fd);
	switch (error) {
	case 0:
		return 0;
	case ENOENT:
		return fail("%s did not appear within %d s: is devtmpfs mounted on /dev?", path,
			    NODE_MS / 1000);
	default:
		return fail("%s could not be opened within %d s: %s (be root, or a member of its group)",
			    path, NODE_MS / 1000, strerror(error));
	}
}

static int release(const char *bdf)
{
	int error = write_text(bdf, PCI_DEVICES "/%s/driver/unbind", bdf);
	int cleared = write_text("\n", PCI_DEVICES "/%s/driver_override", bdf);

	if (error && error != -ENOENT)
		return fail("%s: cannot unbind: %s", bdf, strerror(-error));
	if (cleared)
		return fail("%s: cannot clear driver_override: %s", bdf, strerror(-cleared));
	return 0;
}

/* Driver of a function before us. */
struct before {
	char driver[64], override[64];	/* empty: none */
};

static void remember(struct before *before, const struct pci_function *f)
{
	snprintf(before->driver, sizeof(before->driver), "%s", f->driver);
	read_line(before->override, sizeof(before->override), PCI_DEVICES "/%s/driver_override",
		  f->bdf);
	if (!strcmp(before->override, "(null)"))
		before->override[0] = '\0';
}

/* Restore the previous driver of a function that we cannot use. */
static void give_back(const char *bdf, const struct before *before)
{
	struct pci_function now;
	int error;

	write_text(bdf, PCI_DRIVER "/unbind");	/* refused unless it is bound to us */
	error = write_text(*before->override ? before->override : "\n",
			   PCI_DEVICES "/%s/driver_override", bdf);
	if (error)
		say("%s: cannot set driver_override to \"%s\" again: %s", bdf, before->override,
		    strerror(-error));
	if (!*before->driver || !pci_read(bdf, &now) || *now.driver)
		return;
	error = write_text(bdf, PCI_DRIVERS "/%s/bind", before->driver);
	if (error)
		say("%s: the driver %s does not take it back: %s", bdf, before->driver,
		    strerror(-error));
}

/*
 * Read the named profile, or find one by the ids. This comes before binding, so that a bad profile
 * does not leave a bound function. A profile of another board is refused, because its quiesce
 * sequence would write to wrong registers. Returns 1, 0 (no profile), or -1 after a message.
 */
static int choose(const struct bind *b, const struct pci_function *f, struct profile *profile)
{
	char why[WHY_SIZE], ids[PROFILE_MATCHES_MAX * 12] = "";
	size_t length = 0;
	int found;

	if (b->profile)
		found = profile_load(profile, b->profile, why) ? -1 : 1;
	else
		found = profile_find(profile, f->vendor, f->device, why);
	if (found < 0)
		say("%s", why);
	if (found <= 0 || profile_matches(profile, f->vendor, f->device))
		return found;
	for (unsigned int i = 0; i < profile->n_matches; i++)
		length += snprintf(ids + length, sizeof(ids) - length, "%s%04" PRIx32 ":%04" PRIx32,
				   i ? ", " : "", profile->match[i].vendor,
				   profile->match[i].device);
	say("%s: the profile is for %s, but %s is %04" PRIx32 ":%04" PRIx32 ": use a profile of this board, or add the ids to \"match\"",
	    profile->path, ids, f->bdf, f->vendor, f->device);
	return -1;
}

static int check_free(const struct bind *b, const struct pci_function *f)
{
	if (*f->driver && !b->force)
		return fail("%s is served by the driver %s: give --force to unbind it from there", f->bdf,
			    f->driver);
	if (access(PCI_DRIVER, F_OK))
		return fail("the driver is not loaded: modprobe rashpa");
	return 0;
}

static int take(struct pci_function *f)
{
	int error;

	if (*f->driver) {
		error = write_text(f->bdf, PCI_DEVICES "/%s/driver/unbind", f->bdf);
		if (error)
			return fail("%s: cannot take it from the driver %s: %s", f->bdf, f->driver,
				    strerror(-error));
	}
	error = write_text(f->bdf, PCI_DRIVER "/bind");
	if (error)
		return fail("%s: the driver refused it: %s (see the kernel log)", f->bdf,
			    strerror(-error));
	if (pci_read(f->bdf, f) && f->fpga >= 0)
		return 0;
	return fail("%s: the driver accepted it without making fpgaN: see the kernel log", f->bdf);
}

static int take_over(struct pci_function *f, const struct before *before)
{
	int error = write_text("rashpa", PCI_DEVICES "/%s/driver_override", f->bdf);

	if (error)
		return fail("%s: cannot set driver_override: %s%s", f->bdf, strerror(-error),
			    error == -EACCES ? " (be root)" : "");
	if (!take(f))
		return 0;
	give_back(f->bdf, before);
	return EXIT_FAILED;
}

static int apply(const struct bind *b, const struct pci_function *f, struct profile *profile,
		 int found)
{
	struct fpga fpga = FPGA_NONE;
	char why[WHY_SIZE];
	int result = 0;

	if (!found) {
		say("no profile knows %04" PRIx32 ":%04" PRIx32 ": windows need CAP_SYS_RAWIO, DMA is stopped by bus mastering alone, and goes to 32-bit addresses: write a profile with the dma_bits of the board (too large a number loses data)",
		    f->vendor, f->device);
		return 0;
	}
	if (fpga_open(&fpga, f->fpga, why) || profile_apply(profile, fpga.device, why))
		result = fail("%s%s%s", b->profile ? "" : f->bdf, b->profile ? "" : ": ", why);
	else if (!profile->dma_bits)
		say("%s: no dma_bits: DMA goes to 32-bit addresses", profile->path);
	fpga_close(&fpga);
	return result;
}

enum profiled { UNKNOWN = -1, NO_PROFILE, PROFILE, STUCK };

/* State of a bound function; UNKNOWN after a message. */
static enum profiled profile_state(const struct pci_function *f)
{
	struct fpga fpga = FPGA_NONE;
	char why[WHY_SIZE];
	enum profiled result = UNKNOWN;

	if (fpga_open(&fpga, f->fpga, why))
		say("%s: %s", f->bdf, why);
	else if (!(fpga.info.out_flags & RASHPA_DEVICE_PROFILE))
		result = NO_PROFILE;
	else
		result = fpga.info.out_state == RASHPA_STATE_READY ? PROFILE : STUCK;
	fpga_close(&fpga);
	return result;
}

/* The function is bound already: its profile may be missing, or may not stop it. */
static int complete(const struct bind *b, const struct pci_function *f, struct profile *profile,
		    bool *profiled)
{
	const enum profiled state = profile_state(f);
	int found;

	if (state == UNKNOWN)
		return EXIT_FAILED;
	if (state == PROFILE && b->exist_ok)
		return 0;
	if (state == PROFILE)
		return fail("%s is bound already, as fpga%d: unbind it first (rashpactl unbind fpga%d)",
			    f->bdf, f->fpga, f->fpga);
	found = choose(b, f, profile);
	if (found < 0 || apply(b, f, profile, found))
		return EXIT_FAILED;
	*profiled = found;
	return 0;
}

int bind_function(const struct bind *b, struct pci_function *function, struct profile *profile,
		  bool *profiled)
{
	struct before before;
	int result, found;

	*profiled = false;
	if (function->fpga >= 0) {
		result = wait_node(function->fpga);
		return result ? result : complete(b, function, profile, profiled);
	}
	found = choose(b, function, profile);
	if (found < 0)
		return EXIT_FAILED;
	result = check_free(b, function);
	if (result)
		return result;
	remember(&before, function);
	result = take_over(function, &before);
	if (result)
		return result;
	result = wait_node(function->fpga);
	if (!result)
		result = apply(b, function, profile, found);
	/* registers show why */
	if (result && profile_state(function) == STUCK)
		say("%s stays bound as fpga%d, without DMA, so that its registers can be read (rashpactl fpga read fpga%d BAR:OFFSET); bind it again with a corrected profile",
		    function->bdf, function->fpga, function->fpga);
	else if (result)
		give_back(function->bdf, &before);
	*profiled = found;
	return result;
}

int cmd_bind(int argc, char **argv)
{
	static const struct argp argp = { .options = bind_options, .parser = parse_bind };
	static struct profile profile;
	struct pci_function function;
	struct json_object *o;
	struct bind b = {};
	bool profiled;
	int result;

	command_read(&argp, argc, argv, &b, &b.what);
	result = find_function(b.what, &function);
	if (!result)
		result = bind_function(&b, &function, &profile, &profiled);
	if (result)
		return result;
	if (command_json) {
		o = json_object_new_object();
		put_node(o, function.fpga);
		put_text(o, "bdf", function.bdf);
		put_text(o, "profile", profiled ? profile.name : NULL);
		put_table(o, profiled ? &profile : NULL);
		return json_finish(o);
	}
	printf("fpga%d\n", function.fpga);
	return 0;
}

int cmd_unbind(int argc, char **argv)
{
	const char *what;
	struct pci_function *list, function = { .fpga = -1 };
	unsigned int number;
	char bdf[BDF_SIZE];
	int n;

	command_read(&command_bare, argc, argv, NULL, &what);
	if (parse_bdf(what, bdf)) {
		if (!pci_read(bdf, &function))
			return EXIT_FAILED;
	} else if (parse_fpga(what, &number)) {
		n = pci_list(&list);
		for (int i = 0; i < n; i++) {
			if (list[i].fpga == (int)number)
				function = list[i];
		}
		free(list);
		if (n < 0)
			return EXIT_FAILED;
	} else {
		say("\"%s\" is neither BDF nor fpgaN", what);
		return EXIT_USAGE;
	}
	if (access(PCI_DRIVER, F_OK))
		return fail("the driver is not loaded: modprobe rashpa");
	if (strcmp(function.driver, "rashpa"))
		return fail("%s is not bound to rashpa: see rashpactl list", what);
	return release(function.bdf);
}
