# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Everything is built under build/, nothing in the source folders.
#
#   make                module for the running kernel, tools
#   make try            without root, module and virtual machine: frames go through shared memory to a file,
#                       through processing and to a picture; builds what that needs in build/try
#   make install        tools, udev rule, man pages; the module through DKMS
#   make deb            packages for Debian, in build/deb
#   make rpm            the same as RPM, in build/rpm
#   make demo           in a virtual machine: stream detector frames (KERNEL=newest)
#   make demo BOARD=ring  the same with a board that fetches its addresses (array, chain, packed),
#                         or a model of another engine (litepcie, wupper, verilog-pcie,
#                         xilinx-xdma, xilinx-xdma-stream)
#   make demo NETWORK=1 in two of them: the same over RoCE v2, also with packets lost
#   make demo BUILDER=1 in two of them: halves of images, of an FPGA each, are put together;
#                       then by mpirun and by Slurm on both
#   make bench          in a virtual machine: what it costs beside others (KERNEL=newest);
#                       BENCH=network: messages over a network instead; BENCH=process: what
#                       processing images takes, on this machine; BENCH=builder: messages of the
#                       event builder beside MPI; BENCH=gpu: GPUs, on lavapipe; BENCH=record:
#                       the recorder beside fio, on the disk of this folder;
#                       BENCH=page: viewers of rashpa-web, on this machine
#   make docs           the documentation as a site: build/docs/html/index.html
#   make pictures       its pictures, with results of "make bench" if there are any
#   make help           these lines
#   make check          in virtual machines, on the newest kernel: the tests that answer within minutes
#                       (TEST=map_test:segments runs one test, TEST=-l lists all)
#   make check-all      the same and all other tests, on all stock kernels: before a merge
#   make check-nightly  everything three times with half of the processor time, also on a debug kernel;
#                       then soak, fuzz, coverage, kernels and check-packages
#   make check-packages in virtual machines: packages are installed, there after a reboot, upgraded, removed;
#                       Secure Boot; README as it stands (DEBIAN="12 13")
#   make coverage       in virtual machines: which lines of the driver the tests run
#   make kernels        compile for all kernels of Debian 12, 13, backports and sid
#   make fuzz           in a virtual machine and on the host: for FUZZ_MINUTES=20 (SEED=)
#   make soak           in a virtual machine: random work for SOAK_MINUTES=30 (KERNEL=debug,
#                       SOAK_SEED=... to do it again)
#
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
BUILD   := $(CURDIR)/build
KREL    ?= $(shell uname -r)
KDIR    ?= /lib/modules/$(KREL)/build
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
UDEVDIR ?= /etc/udev/rules.d
LIMITS  := /etc/security/limits.d/rashpa.conf
CONFDIRS := $(addprefix $(DESTDIR)/etc/rashpa/,boards.d buffers.d profiles.d)
KERNEL  ?= newest
BENCH   ?=
TEST    ?=
LAB     := selftests/lab/lab
SOAK_MINUTES ?= 30
SOAK_SEED ?=
DEBIAN ?= 12 13
FUZZ_MINUTES ?= 20
SEED ?=
# where the module is built and put; one folder per kernel
MODDIR  ?= $(BUILD)/modules/$(KREL)
DKMSSRC := /usr/src/rashpa-$(VERSION)
NPROC   := $(shell nproc)

.PHONY: abi all help modules tools try selftests install install-tools install-dkms install-source deb rpm \
	uninstall uninstall-dkms lab-build demo bench docs pictures check check-all check-nightly check-packages coverage fuzz kernels soak static clean

all: modules tools

# the lines above
help:
	@sed -n '/^#   make/,/^#$$/{s/^#$$//;s/^#  //p}' $(firstword $(MAKEFILE_LIST))

# Older kernels write objects beside the sources, so the sources are copied first.
modules:
	mkdir -p $(MODDIR)
	cp -r --update Kbuild drivers uapi $(MODDIR)
	$(MAKE) -C $(KDIR) M=$(MODDIR) $(KFLAGS) modules

# MESON: more options of meson; TARGETS: of ninja, "all tests" has the programs of tests, too. Configures again, since meson
# before 1.3 ignores other options of a second setup, and no meson looks for packages that were installed meanwhile. Not
# where root installs from the folder of a user, who could not write there any more.
TARGETS ?= all
tools:
	@mkdir -p $(BUILD)
	@meson setup $(shell [ ! -O $(BUILD)/tools/meson-private/coredata.dat ] || echo --reconfigure) $(BUILD)/tools tools \
		--prefix=$(PREFIX) --libdir=$(LIBDIR) -Dwerror=$(if $(WERROR),true,false) $(MESON) >$(BUILD)/setup.log || \
		{ cat $(BUILD)/setup.log; false; }
	ninja -C $(BUILD)/tools $(filter-out -j,$(filter -j%,$(MAKEFLAGS))) $(if $(V),-v) $(TARGETS)

try:
	@selftests/demo/try.py

# some stand on libraries of the tools
selftests: tools
	$(MAKE) -C selftests O=$(BUILD)/selftests

install: install-tools install-dkms

# The group is there before the rule that names it.
install-tools: tools
	[ -n "$(DESTDIR)" ] || groupadd -rf rashpa
	meson install -C $(BUILD)/tools --no-rebuild --quiet $(if $(DESTDIR),--destdir=$(abspath $(DESTDIR)))
	install -d $(CONFDIRS)
	install -D -m 644 tools/data/udev/70-rashpa.rules $(DESTDIR)$(UDEVDIR)/70-rashpa.rules
	[ -e "$(DESTDIR)$(LIMITS)" ] || install -D -m 644 tools/data/udev/rashpa-limits.conf $(DESTDIR)$(LIMITS)
	$(RELOAD)

# Libraries, rules and units that changed, where somebody runs who reads them. Who cannot be reached reads them
# at the next boot: what was installed is whole, so that is no failure.
RELOAD = [ -n "$(DESTDIR)" ] || ldconfig 2>/dev/null || true; \
	[ -n "$(DESTDIR)" ] || [ ! -d /run/udev ] || \
	{ udevadm control --reload && udevadm trigger --subsystem-match=rashpa; } || true; \
	[ -n "$(DESTDIR)" ] || [ ! -d /run/systemd/system ] || systemctl daemon-reload || true

# The sources are left to DKMS, which builds them again for each new kernel. Versions that
# were there before go, and kernels that had one get the new one. With DESTDIR (packages)
# only the sources are put in place: the package's scripts call dkms.
install-dkms:
	if [ -n "$(DESTDIR)" ]; then \
		$(MAKE) --no-print-directory install-source; \
	else \
		set -e; \
		kernels="$(KREL) $$(dkms status -m rashpa | sed -nE 's/^[^,]*, *([^,]*), .*/\1/p')"; \
		$(MAKE) --no-print-directory uninstall-dkms install-source; \
		dkms add -m rashpa -v $(VERSION); \
		for kernel in $$(echo $$kernels | tr ' ' '\n' | sort -u); do \
			[ ! -d /lib/modules/$$kernel/build ] || \
				dkms install -m rashpa -v $(VERSION) -k $$kernel; \
		done; \
	fi

install-source:
	rm -rf $(DESTDIR)$(DKMSSRC)
	mkdir -p $(DESTDIR)$(DKMSSRC)
	cp -r Kbuild dkms.conf drivers uapi $(DESTDIR)$(DKMSSRC)

uninstall-dkms:
	for version in $$(dkms status -m rashpa | sed -nE 's,^rashpa/([^:,]+).*,\1,p' | sort -u); do \
		dkms remove -m rashpa -v $$version --all; \
		rm -rf /usr/src/rashpa-$$version; \
	done

uninstall:
	-[ -n "$(DESTDIR)" ] || [ ! -d /run/systemd/system ] || \
		systemctl disable --quiet rashpa-apply.service rashpa-metrics.service
	-[ -n "$(DESTDIR)" ] || $(MAKE) --no-print-directory uninstall-dkms
	rm -rf $(DESTDIR)$(DKMSSRC)
	rm -f $(DESTDIR)$(UDEVDIR)/70-rashpa.rules
	! cmp -s tools/data/udev/rashpa-limits.conf "$(DESTDIR)$(LIMITS)" || rm -f $(DESTDIR)$(LIMITS)
	$(MAKE) --no-print-directory tools TARGETS=build.ninja
	meson introspect --installed $(BUILD)/tools | \
		python3 -c 'import json, sys; print(*json.load(sys.stdin).values(), sep="\n")' | \
		sed 's,^,$(DESTDIR),; s,/rashpa/__init__.py$$,/rashpa,' | xargs -d '\n' rm -rf
	rm -rf $(DESTDIR)$(PREFIX)/share/rashpa
	-rmdir --ignore-fail-on-non-empty $(CONFDIRS) $(DESTDIR)/etc/rashpa 2>/dev/null
	$(RELOAD)

deb:
	tools/packaging/deb.sh

rpm:
	tools/packaging/rpm.sh

# These use programs that the lab's core root does not have.
bench check-packages docs fuzz kernels: export RASHPA_FULL := yes

# Compiled with the lab's own compilers and kernel headers: the machine needs none.
lab-build:
	$(LAB) exec --kernel $(KERNEL) -- selftests/build.sh $(KERNEL)

demo:
	$(LAB) exec --kernel $(KERNEL) -- selftests/build.sh --only demo $(KERNEL)
	RASHPA_BOARD=$(BOARD) $(if $(BUILDER),tools/builder/tests/builder-network,selftests/demo/demo$(if $(NETWORK),-network)).sh $(KERNEL)
	$(if $(BUILDER),tools/builder/tests/builder-hosts.sh $(KERNEL))

bench:
	$(MAKE) --no-print-directory lab-build KERNEL=$(KERNEL)
	tools/bench/lab/bench$(BENCH:%=-%).sh $(KERNEL)

# after a struct, flag, call or function was added: write down what the headers promise now
abi:
	$(LAB) exec -- selftests/abi/update.sh

docs:
	$(LAB) exec -- Documentation/build.sh

pictures:
	$(LAB) exec --kernel $(KERNEL) -- selftests/build.sh --only module --only tools $(KERNEL)
	$(LAB) run --kernel $(KERNEL) --iommu on --fpga 1 --no-checks -- Documentation/pictures/guest.sh build/pictures
	$(LAB) exec --full -- tools/python/tests/page.py build/pictures
	$(LAB) exec --full -- Documentation/pictures/make.sh

check:
	selftests/run --tier check $(TEST)

check-all:
	selftests/run --tier all $(TEST)

check-nightly:
	selftests/run --tier nightly $(TEST)
	$(MAKE) soak fuzz coverage kernels check-packages

# two builds, which must be the same
check-packages:
	$(LAB) exec --kernel newest -- env DEB_BUILD_OPTIONS=nocheck make deb
	$(LAB) exec -- env DEB_BUILD_OPTIONS=nocheck tools/packaging/deb.sh --out build/deb-again
	$(LAB) exec --kernel newest --scratch -- selftests/packages/debs.sh build/deb-again
	$(LAB) exec -- make rpm
	$(LAB) exec -- selftests/packages/rpms.sh
	selftests/packages/install.sh
	for debian in $(DEBIAN); do selftests/packages/packages.sh $$debian && selftests/packages/stranger.sh $$debian || exit; done

kernels:
	$(LAB) exec --headers -- selftests/packages/kernels.sh

coverage:
	selftests/run --tier all --coverage $(TEST)

# The kernel that looks closest
soak: KERNEL := debug
soak:
	$(MAKE) --no-print-directory lab-build KERNEL=$(KERNEL)
	selftests/soak/soak.sh $(KERNEL) $(SOAK_MINUTES) $(SOAK_SEED)

fuzz:
	$(MAKE) --no-print-directory lab-build KERNEL="$$(selftests/fuzz/run.sh kernel)"
	$(LAB) exec -- make -s -C selftests/fuzz O=/rashpa/build/selftests/fuzz host
	selftests/fuzz/run.sh $(FUZZ_MINUTES) $(SEED)

clean:
	rm -rf $(BUILD)
