// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl doctor: check this machine */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/fpga.h"
#include "rashpactl/gpus.h"
#include "common/iommu.h"
#include "common/json-out.h"
#include "common/parse.h"
#include <rashpa.h>
#include "rashpactl/nics.h"
#include "rashpactl/rashpactl.h"
#include "rashpactl/signing.h"
#include "rashpactl/topology.h"
#include "rashpactl/versions.h"

#define GPUS_MOST	64	/* GPUs that are listed */
#define NICS_MOST	64	/* and cards */

enum verdict { OK, NOTE, PROBLEM };

static const char *const verdicts[] = { "ok", "note", "problem" };

struct doctor {
	struct json_object *list;	/* or NULL: text */
	struct utsname uts;
	unsigned int problems;
	bool loaded;
	int memory;			/* node, or a negative errno */
};

/* One finding; remedy may be NULL. */
__attribute__((format(printf, 5, 6)))
static void found(struct doctor *d, const char *check, enum verdict verdict, const char *remedy,
		  const char *format, ...)
{
	struct json_object *o;
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	d->problems += verdict == PROBLEM;
	if (d->list) {
		o = json_object_new_object();
		put_text(o, "check", check);
		put_text(o, "verdict", verdicts[verdict]);
		put_text(o, "text", text);
		put_text(o, "remedy", remedy);
		json_object_array_add(d->list, o);
		return;
	}
	printf("%-8s %-10s %s\n", verdicts[verdict], check, text);
	if (remedy)
		printf("%-8s %-10s -> %s\n", "", "", remedy);
}

/* Is the module installed for a kernel? */
static bool has_module(const char *release)
{
	char *path, *line = NULL;
	size_t room = 0;
	bool result = false;
	FILE *file;

	if (asprintf(&path, "/lib/modules/%s/modules.dep", release) < 0)
		return false;
	file = fopen(path, "re");
	free(path);
	if (!file)
		return false;
	while (!result && getline(&line, &room, file) > 0)
		result = strstr(line, "/rashpa.ko");
	free(line);
	fclose(file);
	return result;
}

static void check_kernel(struct doctor *d)
{
	found(d, "kernel", OK, NULL, "%s %s", d->uts.release, d->uts.machine);
}

/* The loaded module may be older than the installed one. */
static void check_loaded(struct doctor *d)
{
	static const enum verdict verdicts_of[] = {
		[VERSIONS_SAME] = OK, [VERSIONS_RELOAD] = NOTE, [VERSIONS_INSTALL] = PROBLEM,
	};
	struct versions v = { .tools = RASHPA_VERSION };
	enum versions_verdict verdict;
	const char *remedy;
	char text[256];

	read_line(v.loaded, sizeof(v.loaded), "/sys/module/rashpa/version");
	read_line(v.loaded_source, sizeof(v.loaded_source), "/sys/module/rashpa/srcversion");
	module_field(v.file, sizeof(v.file), d->uts.release, "version");
	module_field(v.file_source, sizeof(v.file_source), d->uts.release, "srcversion");
	verdict = versions_judge(&v, text, sizeof(text), &remedy);
	found(d, "module", verdicts_of[verdict], remedy, "%s", text);
}

static void check_module(struct doctor *d)
{
	char others[256] = "";
	struct dirent **releases;
	bool here = false;
	int n;

	d->loaded = !access("/sys/module/rashpa", F_OK);
	if (d->loaded) {
		check_loaded(d);
		return;
	}
	n = scandir("/lib/modules", &releases, NULL, versionsort);
	for (int i = 0; i < n; i++) {
		const char *name = releases[i]->d_name;

		if (*name != '.' && has_module(name)) {
			here |= !strcmp(name, d->uts.release);
			if (strlen(others) + strlen(name) + 2 < sizeof(others))
				strcat(strcat(others, " "), name);
		}
		free(releases[i]);
	}
	if (n >= 0)
		free(releases);
	if (here)
		found(d, "module", PROBLEM, "modprobe rashpa",
		      "not loaded; installed for this kernel");
	else
		found(d, "module", PROBLEM,
		      "install the headers of this kernel and run make install (DKMS), or dkms autoinstall",
		      "not loaded; installed for%s", *others ? others : " no kernel");
}

static void check_signing(struct doctor *d)
{
	static const enum verdict verdicts_of[] = {
		[SIGNING_OK] = OK, [SIGNING_NOTE] = NOTE, [SIGNING_PROBLEM] = PROBLEM,
	};
	struct signing signing = {};
	enum signing_verdict verdict;
	const char *remedy;
	char text[512];

	signing_state(&signing, "");
	signing.found = module_field(signing.signer, sizeof(signing.signer), d->uts.release,
				     "signer");
	signing_key(&signing, "");
	verdict = signing_judge(&signing, text, sizeof(text), &remedy);
	/* the kernel has accepted the loaded module */
	if (d->loaded && verdict == SIGNING_PROBLEM)
		verdict = SIGNING_NOTE;
	found(d, "signing", verdicts_of[verdict], remedy, "%s", text);
}

static void check_iommu(struct doctor *d)
{
	struct iommu iommu;

	iommu_look(&iommu, "");
	if (!iommu.groups)
		found(d, "iommu", NOTE,
		      "boot with intel_iommu=on or amd_iommu=on to keep boards from other memory",
		      "off: a board can write anywhere");
	else if (!iommu.translated)
		found(d, "iommu", NOTE,
		      "boot without iommu=pt, or with iommu.passthrough=0, to keep boards from other memory",
		      "on, but passing through: none of %d groups is translated, so a board can write anywhere",
		      iommu.groups);
	else
		found(d, "iommu", OK, NULL, "on: %d unit%s, %d groups, %d of them translated",
		      iommu.units, iommu.units == 1 ? "" : "s", iommu.groups, iommu.translated);
}

static void check_cma(struct doctor *d)
{
	struct rashpa_query query = { .backend = RASHPA_BACKEND_CMA };
	uint64_t total = meminfo("CmaTotal");
	char have[SIZE_TEXT], left[SIZE_TEXT];
	char config = kernel_config("CONFIG_DMA_CMA");

	if (!total)
		found(d, "cma", config == 'y' ? NOTE : OK,
		      config == 'y' ? "boot with cma=SIZE if buffers must fit at any time" : NULL,
		      "none reserved%s: buffers are assembled at run time",
		      config == 'n' ? ", and this kernel has no CMA" : "");
	else if (d->memory >= 0 && rashpa_memory_query(d->memory, &query))
		found(d, "cma", NOTE, NULL, "%s reserved, but not for us: %s",
		      format_size(have, total), rashpa_reason());
	else
		found(d, "cma", OK, NULL, "%s reserved%s%s, %s free", format_size(have, total),
		      *query.out_area ? " in area " : "", query.out_area,
		      format_size(left, meminfo("CmaFree")));
}

static void check_contig(struct doctor *d)
{
	struct rashpa_query query = { .backend = RASHPA_BACKEND_CONTIG };
	char run[SIZE_TEXT];

	if (d->memory < 0)
		return;
	if (rashpa_memory_query(d->memory, &query))
		found(d, "contig", PROBLEM, NULL, "buffers cannot be assembled at run time: %s",
		      rashpa_reason());
	else if (!query.out_largest)
		found(d, "contig", NOTE, "make buffers soon after boot, or boot with cma=SIZE (kernels with CMA)",
		      "no contiguous memory is left to assemble buffers of");
	else
		found(d, "contig", OK, NULL, "buffers can be assembled at run time, now up to %s",
		      format_size(run, query.out_largest));
}

/* By address: RDMA memory regions, direct I/O. As dma-buf every memory can be registered. */
static void check_register(struct doctor *d)
{
	struct rashpa_query query = {};

	if (d->memory < 0 || rashpa_memory_query(d->memory, &query))
		return;
	if (query.out_backend == RASHPA_BACKEND_CMA)
		found(d, "register", NOTE, "rashpactl buffer create --backend contig for buffers that RDMA or direct I/O registers by address",
		      "buffers come from CMA by default: only as dma-buf");
	else
		found(d, "register", OK, NULL, "buffers can be registered by address (RDMA, direct I/O)");
}

static void check_huge(struct doctor *d)
{
	char size[64], text[SIZE_TEXT];
	uint64_t bytes;

	if (read_line(size, sizeof(size), "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") &&
	    parse_u64(size, UINT64_MAX, &bytes) && bytes)
		found(d, "huge", OK, NULL, "buffers are mapped with entries of %s",
		      format_size(text, bytes));
	else
		found(d, "huge", NOTE, "a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
		      "buffers are mapped page by page: large ones cost many TLB entries");
}

static void check_limits(struct doctor *d)
{
	char all[32], user[32], pin[SIZE_TEXT];
	struct rlimit locked;

	if (!d->loaded)
		return;
	if (!module_parameter(all, sizeof(all), "limit_mib"))
		strcpy(all, "0");
	if (!module_parameter(user, sizeof(user), "user_limit_mib"))
		strcpy(user, "0");
	getrlimit(RLIMIT_MEMLOCK, &locked);
	/* the kernel's check excepts CAP_IPC_LOCK */
	if (locked.rlim_cur == RLIM_INFINITY || !geteuid())
		strcpy(pin, "no limit");
	else
		format_size(pin, locked.rlim_cur);
	found(d, "limits", OK, NULL, "all buffers %s%s, of one user other than root %s%s, pinned by this process %s",
	      strcmp(all, "0") ? all : "no limit", strcmp(all, "0") ? " MiB" : "",
	      strcmp(user, "0") ? user : "no limit", strcmp(user, "0") ? " MiB" : "", pin);
}

static void check_memory(struct doctor *d)
{
	char free[SIZE_TEXT], largest[SIZE_TEXT], allocated[SIZE_TEXT], path[64];
	struct rashpa_limit limit;

	if (d->memory < 0) {
		found(d, "memory", d->loaded ? PROBLEM : NOTE, NULL, "%s", rashpa_reason());
		return;
	}
	if (rashpa_memory_limit(d->memory, RASHPA_RESOURCE_MEMORY, &limit)) {
		found(d, "memory", PROBLEM, NULL, "%s", rashpa_reason());
		return;
	}
	for (uint32_t node = 0; node < 1024; node++) {
		struct rashpa_query query = { .head.flags = RASHPA_QUERY_NODE, .node = node };

		snprintf(path, sizeof(path), "/sys/devices/system/node/node%" PRIu32, node);
		if (access(path, F_OK) && node)
			continue;
		if (rashpa_memory_query(d->memory, &query)) {
			found(d, "memory", NOTE, NULL, "node %" PRIu32 ": %s", node,
			      rashpa_reason());
			continue;
		}
		found(d, "memory", OK, NULL, "node %" PRIu32 ": %s, %s free, longest run %s, buffers hold %s",
		      node, rashpa_backend_name(query.out_backend),
		      format_size(free, query.out_free),
		      query.out_largest ? format_size(largest, query.out_largest) : "not known",
		      format_size(allocated, limit.out_used));
	}
}

/* Without the rule the group cannot use the nodes; the driver itself sets up nodes of buffers. */
static void check_udev(struct doctor *d)
{
	static const char *const folders[] = {
		"/etc/udev/rules.d", "/run/udev/rules.d", "/usr/local/lib/udev/rules.d",
		"/usr/lib/udev/rules.d", "/lib/udev/rules.d",
	};
	char path[128];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/70-rashpa.rules", folders[i]);
		if (access(path, F_OK))
			continue;
		found(d, "udev", OK, NULL, "%s", path);
		return;
	}
	found(d, "udev", NOTE, "make install, or copy tools/data/udev/70-rashpa.rules to /etc/udev/rules.d",
	      "there is no rule 70-rashpa.rules: the nodes belong to root alone");
}

static void check_nodes(struct doctor *d)
{
	const struct group *group = getgrnam("rashpa");
	struct stat st;
	char path[512];

	if (!group)
		found(d, "group", NOTE, "groupadd --system rashpa, and add the users of detectors to it",
		      "there is no group rashpa: only root can use the devices");
	else
		found(d, "group", OK, NULL, "rashpa has id %u", group->gr_gid);
	snprintf(path, sizeof(path), "%s/memory", rashpa_device_directory());
	if (stat(path, &st)) {
		if (d->loaded)
			found(d, "nodes", PROBLEM, "mount devtmpfs on /dev", "%s: %s", path,
			      strerror(errno));
		return;
	}
	if (st.st_mode & 0007)
		found(d, "nodes", PROBLEM, "chmod o= the nodes, and find the udev rule that opened them",
		      "%s has mode %04o: everybody may use it", path, st.st_mode & 07777);
	else if (group && st.st_gid != group->gr_gid)
		found(d, "nodes", NOTE, "install the udev rule (make install) and run udevadm trigger",
		      "%s has mode %04o, but not the group rashpa", path, st.st_mode & 07777);
	else
		found(d, "nodes", OK, NULL, "%s has mode %04o", path, st.st_mode & 07777);
}

/* An engine that does not stop causes a stop of the whole function with all its streams. */
static void check_engines(struct doctor *d, const struct fpga *fpga)
{
	struct rashpa_engine_info e;

	for (uint32_t i = 0; i < fpga->info.out_engines; i++)
		if (!rashpa_device_engine(fpga->device, i, &e) && e.out_failures)
			found(d, "engine", NOTE, "check its quiesce sequence in the profile",
			      "fpga%u: %s did not stop %" PRIu64 " times, and all streams ended",
			      fpga->number, e.out_name, (uint64_t)e.out_failures);
}

static void check_functions(struct doctor *d)
{
	unsigned int *numbers = NULL;
	int n = rashpa_device_list(&numbers);
	char remedy[128], why[WHY_SIZE];

	for (int i = 0; i < n; i++) {
		struct fpga fpga = FPGA_NONE;

		if (fpga_open(&fpga, numbers[i], why)) {
			found(d, "function", PROBLEM, NULL, "%s", why);
			continue;
		}
		if (fpga.info.out_state == RASHPA_STATE_STUCK) {
			snprintf(remedy, sizeof(remedy), "rashpactl fpga reset fpga%u", numbers[i]);
			found(d, "function", PROBLEM, remedy,
			      "fpga%u did not stop its DMA: bus mastering is off", numbers[i]);
		} else if (!(fpga.info.out_flags & RASHPA_DEVICE_PROFILE)) {
			snprintf(remedy, sizeof(remedy),
				 "write a profile, rashpactl unbind fpga%u, rashpactl bind",
				 numbers[i]);
			found(d, "function", NOTE, remedy, "fpga%u has no profile", numbers[i]);
		} else {
			found(d, "function", OK, NULL, "fpga%u is ready, profile applied, %s",
			      numbers[i], fpga.info.out_engines ?
			      "streams end one by one (engines)" :
			      "a stream that ends stops the others (no engines)");
			check_engines(d, &fpga);
		}
		fpga_close(&fpga);
	}
	if (n <= 0)
		found(d, "function", NOTE, "rashpactl list, rashpactl bind", "no function is bound");
	free(numbers);
}

static void check_p2p(struct doctor *d)
{
	char config = kernel_config("CONFIG_PCI_P2PDMA"), bridge[16];

	if (!config)
		found(d, "p2pdma", NOTE, NULL, "the kernel's configuration cannot be read");
	else if (config == 'y')
		found(d, "p2pdma", OK, NULL, "in this kernel");
	else
		found(d, "p2pdma", NOTE, "a kernel with CONFIG_PCI_P2PDMA (Debian's from 7.2)",
		      "not in this kernel: transfers between boards and GPU memory are limited");
	if (!module_parameter(bridge, sizeof(bridge), "p2p_bridge"))
		return;
	found(d, "bridge", OK, NULL, "transfers between boards through the host bridge: %s (parameter p2p_bridge=%s)",
	      !strcmp(bridge, "auto") ? "if the kernel knows that the bridge routes them" :
	      !strcmp(bridge, "allow") ? "allowed" : "refused", bridge);
}

/* Path to a GPU from a bound function, or a network card. */
static void check_way(struct doctor *d, const char *who, uint64_t function, int node,
		      const struct gpu *gpu)
{
	struct chain from, to;
	char port_text[BDF_SIZE];
	uint64_t where = 0, port = 0;

	if (!topology_chain(function, &from) || !topology_chain(gpu->function, &to))
		return;
	if (topology_nodes(node, gpu->node) == NODE_OTHER_SOCKET) {
		found(d, "gpu-way", NOTE, "put both into slots of one processor",
		      "%s to %s: through the interconnect of the processors", who, gpu->bdf);
		return;
	}
	switch (chains_meet(&from, &to, &where)) {
	case MEET_SWITCH:
		if (topology_acs(&from, where, &port) != ACS_REDIRECTS &&
		    topology_acs(&to, where, &port) != ACS_REDIRECTS) {
			found(d, "gpu-way", OK, NULL, "%s to %s: below one switch",
			      who, gpu->bdf);
			return;
		}
		found(d, "gpu-way", NOTE,
		      "boot with pci=disable_acs_redir=PORT if no virtual machine has one of them",
		      "%s to %s: below one switch, but port %s sends requests up to the host bridge (ACS)",
		      who, gpu->bdf, bdf_text(port_text, port));
		return;
	case MEET_NOWHERE:
		found(d, "gpu-way", NOTE, "put both below one host bridge, better below one switch",
		      "%s to %s: through two host bridges, which some machines do not route",
		      who, gpu->bdf);
		return;
	default:
		found(d, "gpu-way", OK, NULL, "%s to %s: through the host bridge, if it is allowed to (line bridge)",
		      who, gpu->bdf);
	}
}

static void check_ways(struct doctor *d, const struct gpu *gpu, const struct nic *nic,
		       unsigned int nics)
{
	unsigned int *numbers = NULL;
	const int n = rashpa_device_list(&numbers);
	char why[WHY_SIZE], who[32];

	for (int i = 0; i < n; i++) {
		struct fpga fpga = FPGA_NONE;
		const struct rashpa_device_info *info = &fpga.info;

		if (fpga_open(&fpga, numbers[i], why))
			continue;	/* check_functions() has reported it */
		snprintf(who, sizeof(who), "fpga%u", numbers[i]);
		check_way(d, who, PCI_BDF(info->out_domain, info->out_bus, info->out_devfn),
			  info->out_node, gpu);
		fpga_close(&fpga);
	}
	free(numbers);
	for (unsigned int i = 0; i < nics; i++) {
		if (*nic[i].bdf)
			check_way(d, nic[i].name, nic[i].function, nic[i].node, gpu);
	}
}

/* Those that could write into memory of GPUs and boards. */
static unsigned int check_nics(struct doctor *d, struct nic *nic)
{
	static const enum verdict verdicts_of[] = { [NIC_OK] = OK, [NIC_NOTE] = NOTE };
	const bool peermem = !access("/sys/module/nvidia_peermem", F_OK);
	unsigned int n = nics_look(nic, NICS_MOST, "");

	n = n < NICS_MOST ? n : NICS_MOST;
	for (unsigned int i = 0; i < n; i++) {
		const char *remedy;
		char text[512];
		const enum nic_verdict verdict = nic_judge(&nic[i], peermem, text, sizeof(text), &remedy);

		found(d, "nic", verdicts_of[verdict], remedy, "%s", text);
	}
	return n;
}

static void check_gpus(struct doctor *d)
{
	static const enum verdict verdicts_of[] = {
		[GPU_GIVES] = OK, [GPU_NOTE] = NOTE, [GPU_OTHER] = OK,
	};
	struct gpu gpu[GPUS_MOST];
	struct nic nic[NICS_MOST];
	const unsigned int nics = check_nics(d, nic), n = gpus_look(gpu, GPUS_MOST, "");
	const bool p2pdma = !n || kernel_config("CONFIG_PCI_P2PDMA") != 'n';

	for (unsigned int i = 0; i < n && i < GPUS_MOST; i++) {
		enum gpu_verdict verdict;
		const char *remedy;
		char text[512], why[WHY_SIZE];

		gpu_ask(&gpu[i], why, sizeof(why));
		verdict = gpu_judge(&gpu[i], p2pdma, text, sizeof(text), &remedy);
		found(d, "gpu", verdicts_of[verdict], remedy, "%s", text);
		if (*why)
			found(d, "gpu", NOTE, "install libnvidia-ml of NVIDIA's driver (nvidia-smi needs it, too)",
			      "%s: %s", gpu[i].bdf, why);
		if (!strcmp(gpu[i].driver, "nvidia") && !gpu[i].windows)
			found(d, "gpu", NOTE,
			      "options nvidia NVreg_RegistryDwords=PeerMappingOverride=1 in /etc/modprobe.d, to allow others",
			      "%s: only root may register windows of boards (doorbells, memory) with it",
			      gpu[i].bdf);
		if (verdict == GPU_GIVES)
			check_ways(d, &gpu[i], nic, nics);
	}
	topology_done();
}

/* @list receives the findings; NULL: print them. Returns the number of problems. */
static unsigned int examine(struct json_object *list)
{
	static void (*const checks[])(struct doctor *) = {
		check_kernel, check_module, check_signing, check_iommu, check_memory, check_contig,
		check_cma, check_register, check_huge, check_limits, check_udev, check_nodes,
		check_functions, check_p2p, check_gpus,
	};
	struct doctor d = { .list = list };

	uname(&d.uts);
	d.memory = rashpa_memory_open();
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		checks[i](&d);
	if (d.memory >= 0)
		close(d.memory);
	return d.problems;
}

struct json_object *doctor_json(unsigned int *problems)
{
	struct json_object *o = json_object_new_object(), *checks = json_object_new_array();

	*problems = examine(checks);
	put_int(o, "problems", *problems);
	json_object_object_add(o, "checks", checks);
	return o;
}

int cmd_doctor(int argc, char **argv)
{
	unsigned int problems;

	command_simple(argc, argv, NULL);
	if (!command_json)
		problems = examine(NULL);
	else if (json_finish(doctor_json(&problems)))
		return EXIT_FAILED;
	return problems ? EXIT_FAILED : 0;
}
