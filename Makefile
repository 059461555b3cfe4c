# SPDX-License-Identifier: GPL-2.0-only
#
# Everything is built under build/, nothing in the source folders.
#
#   make                module for the running kernel, tools
#   make install        tools, udev rule, man pages; the module through DKMS
#   make demo           in a virtual machine: stream detector frames (KERNEL=7.2)
#   make bench          in a virtual machine: what it costs beside others (KERNEL=7.2)
#   make docs           the reference of all ioctls from the header, under build/docs
#   make check          in virtual machines: all tests, all kernels
#
VERSION := 0.1.0
BUILD   := $(CURDIR)/build
KREL    ?= $(shell uname -r)
KDIR    ?= /lib/modules/$(KREL)/build
PREFIX  ?= /usr/local
KERNEL  ?= 7.2
KERNELS ?= 6.1 6.12 7.2
LAB     := selftests/lab/lab
# where the module is built and put; one folder per kernel
MODDIR  ?= $(BUILD)/modules/$(KREL)
DKMSSRC := /usr/src/rashpa-$(VERSION)
NPROC   := $(shell nproc)

.PHONY: all modules tools selftests install install-tools install-dkms uninstall \
	lab-build demo bench docs check static clean

all: modules tools

# Older kernels write objects beside the sources, so the sources are copied first.
modules:
	mkdir -p $(MODDIR)
	cp -r --update Kbuild drivers uapi $(MODDIR)
	$(MAKE) -C $(KDIR) M=$(MODDIR) $(KFLAGS) modules

tools:
	$(MAKE) -C tools O=$(BUILD)/tools

selftests:
	$(MAKE) -C selftests O=$(BUILD)/selftests

install: install-tools install-dkms

install-tools:
	$(MAKE) -C tools O=$(BUILD)/tools PREFIX=$(PREFIX) install
	$(MAKE) -C tools/bench O=$(BUILD)/tools PREFIX=$(PREFIX) install
	install -D -m 644 tools/udev/70-rashpa.rules \
		$(DESTDIR)/etc/udev/rules.d/70-rashpa.rules
	install -D -m 644 uapi/linux/rashpa.h $(DESTDIR)$(PREFIX)/include/linux/rashpa.h

install-dkms:
	if [ -n "$$(dkms status rashpa/$(VERSION))" ]; then \
		dkms remove rashpa/$(VERSION) --all; \
	fi
	rm -rf $(DKMSSRC)
	mkdir -p $(DKMSSRC)
	cp -r Kbuild dkms.conf drivers uapi $(DKMSSRC)
	dkms add -m rashpa -v $(VERSION)
	dkms install -m rashpa -v $(VERSION) -k $(KREL)

uninstall:
	-dkms remove -m rashpa -v $(VERSION) --all
	rm -rf $(DKMSSRC)
	rm -f /etc/udev/rules.d/70-rashpa.rules $(PREFIX)/include/linux/rashpa.h
	$(MAKE) -C tools O=$(BUILD)/tools PREFIX=$(PREFIX) uninstall
	$(MAKE) -C tools/bench O=$(BUILD)/tools PREFIX=$(PREFIX) uninstall

# Compiled with the lab's own compilers and kernel headers: the machine needs none.
lab-build:
	$(LAB) exec -- selftests/build.sh $(KERNELS)

demo:
	$(MAKE) --no-print-directory lab-build KERNELS=$(KERNEL)
	selftests/demo.sh $(KERNEL)

bench:
	$(MAKE) --no-print-directory lab-build KERNELS=$(KERNEL)
	selftests/bench.sh $(KERNEL)

docs:
	$(LAB) exec -- Documentation/build.sh

check:
	$(MAKE) --no-print-directory lab-build
	selftests/check.sh $(KERNELS)

clean:
	rm -rf $(BUILD)
