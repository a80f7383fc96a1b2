# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# mote: see `make help`, and README.md for what each target prints.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
FRAMES  ?=
SECONDS ?= 60
KERNEL  ?= 6.1
CC      ?= gcc
CLANG   ?= clang
BPFTOOL ?= $(or $(shell command -v bpftool),/usr/sbin/bpftool)
CFLAGS  ?= -O2 -g
SAN     ?=
# Breaks the network counting on purpose: PEEK, DEAF or CLEAR; see tests/it/conserve.sh
MUTANT  ?=

VERSION := 0.1.0
HOST_ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
ARCH    := $(HOST_ARCH)

# Another architecture than this machine's: libraries, headers and C library are in a folder of their own.
ifneq ($(ARCH),$(HOST_ARCH))
ifneq ($(ARCH),arm64)
$(error cannot build for ARCH=$(ARCH) on $(HOST_ARCH): only for arm64)
endif
SYSROOT   ?= $(BUILD)/sysroot
MULTIARCH := aarch64-linux-gnu
# CC=clang of the outer make is the native build's
override CC := $(MULTIARCH)-gcc --sysroot=$(SYSROOT)
AR        := $(MULTIARCH)-ar
PKG_CONFIG := PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(MULTIARCH)/pkgconfig \
              PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) pkg-config
# for the libraries of libraries
CROSS_LDFLAGS := -Wl,-rpath-link,$(SYSROOT)/usr/lib/$(MULTIARCH):$(SYSROOT)/lib/$(MULTIARCH)
BPF_INCLUDE := $(SYSROOT)/usr/include/$(MULTIARCH)
SETUP     := ci/setup build cross && ci/sysroot $(SYSROOT) arm64
else
PKG_CONFIG := pkg-config
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
BPF_INCLUDE := /usr/include/$(MULTIARCH)
SETUP     := ci/setup build
endif

# A target that builds needs the compiler and libraries; ci/setup installs what is missing, once.
ifeq ($(filter clean help,$(MAKECMDGOALS)),)
ifneq ($(shell $(SETUP) && echo ok),ok)
$(error ci/setup could not install what the build needs; its message is above)
endif
endif

# msgpack-c's C library is called msgpack up to Debian 12, msgpack-c from 13 on.
MSGPACK := $(shell $(PKG_CONFIG) --exists msgpack-c && echo msgpack-c || echo msgpack)
DEPS    := libbpf liburing inih $(MSGPACK) zlib
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
           -Wwrite-strings -Wvla -Wno-unused-parameter
# Not of malloc() and memset() a calloc(), whose pages would fault when they are first used.
MOTE_CFLAGS := -std=gnu11 -fno-builtin-malloc $(CFLAGS) $(WARN) -D_GNU_SOURCE -DMOTE_VERSION='"$(VERSION)"' \
           -fno-common -fstack-protector-strong $(MUTANT:%=-DMOTE_MUTANT_%) -iquote supervisor -iquote bpf -iquote $(BUILD)/gen \
           $(shell $(PKG_CONFIG) --cflags $(DEPS)) $(SAN)
MOTE_LIBS := $(shell $(PKG_CONFIG) --libs $(DEPS)) -pthread
# Lazy relocations would fault pages after start; the libraries that are not used are not linked.
MOTE_LDFLAGS := -Wl,-z,relro,-z,now -Wl,--as-needed $(CROSS_LDFLAGS) $(LDFLAGS) $(SAN)
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v2 -D__TARGET_ARCH_$(ARCH) -Wall -Wextra \
           -Wno-unused-parameter -Wno-unknown-warning-option $(MUTANT:%=-DMOTE_MUTANT_%) -Ibpf -I$(BPF_INCLUDE)

SUPERVISOR := $(filter-out supervisor/main.c,$(wildcard supervisor/*.c))
# What only the start runs, see supervisor/start.ld
START      := $(addprefix supervisor/,main.c agent.c check.c hello.c privilege.c tier.c) \
              $(wildcard supervisor/host_*.c supervisor/options*.c supervisor/probes*.c)
LIBMOTE    := $(wildcard clients/libmote*.c)
CLIENT     := $(filter-out $(LIBMOTE),$(wildcard clients/*.c))
BPF        := $(filter-out bpf/net.bpf.c bpf/file.bpf.c bpf/walk.bpf.c bpf/cgroup_%.bpf.c,$(wildcard bpf/*.bpf.c))
UNIT       := $(wildcard tests/unit/test_*.c)
HELPERS    := $(wildcard tests/helpers/*.c)
STRESS     := $(filter-out %.bpf.c,$(wildcard tests/slots/*.c))
BENCHES    := $(wildcard bench/*.c)
obj         = $(patsubst %.c,$(BUILD)/%.o,$(1))

all: $(BUILD)/moted $(BUILD)/mote $(BUILD)/libmote.a $(BUILD)/libmote.so $(BUILD)/libmote.pc

## BPF: every bpf/*.bpf.c but those below linked into one object, and its skeleton
$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@
$(BUILD)/gen/mote.bpf.o: $(patsubst %.c,$(BUILD)/%.o,$(BPF))
	@mkdir -p $(@D)
	$(BPFTOOL) gen object $@ $^
$(BUILD)/gen/mote.skel.h: $(BUILD)/gen/mote.bpf.o
	$(BPFTOOL) gen skeleton $< name mote_bpf > $@.tmp && mv $@.tmp $@
# net.bpf.c and file.bpf.c are several objects: a set each, and once more with fetching atomics, for arm64 from 6.1 on
SETS := fentry kprobe $(if $(filter arm64,$(ARCH)),fentry_fetch kprobe_fetch)
SET_OBJECTS := $(SETS:%=net_%) $(SETS:%=file_%)
SET_SKELETONS := $(SET_OBJECTS:%=$(BUILD)/gen/%.skel.h)
define set_rules
$(BUILD)/gen/$(1)_fentry%.o: SET_FLAGS = -DMOTE_FENTRY
$(BUILD)/gen/$(1)_kprobe%.o: SET_FLAGS = -DMOTE_KPROBE
$(BUILD)/gen/$(1)_%_fetch.bpf.o: SET_FLAGS += -DMOTE_FETCH -mcpu=v3
$(BUILD)/gen/$(1)_%.bpf.o: bpf/$(1).bpf.c
	@mkdir -p $$(@D)
	$(CLANG) $(BPF_CFLAGS) $$(SET_FLAGS) -MMD -MP -MT $$@ -MF $$(@:.o=.d) -c $$< -o $$@.clang
	$(BPFTOOL) gen object $$@.tmp $$@.clang && rm $$@.clang && mv $$@.tmp $$@
$(BUILD)/gen/$(1)_%.skel.h: $(BUILD)/gen/$(1)_%.bpf.o
	$(BPFTOOL) gen skeleton $$< name $(1)_$$*_bpf > $$@.tmp && mv $$@.tmp $$@
endef
$(eval $(call set_rules,net))
$(eval $(call set_rules,file))

# The list walk is an object of its own: see bpf/walk.h. Its atomics need v3 (5.12).
$(BUILD)/bpf/walk.bpf.o: BPF_CFLAGS += -mcpu=v3
$(BUILD)/gen/walk.skel.h: $(BUILD)/bpf/walk.bpf.o
	@mkdir -p $(@D)
	$(BPFTOOL) gen skeleton $< name mote_walk_bpf > $@.tmp && mv $@.tmp $@

# So are those of cgroups, which are not in every kernel.
$(BUILD)/gen/cgroup_%.skel.h: $(BUILD)/bpf/cgroup_%.bpf.o
	@mkdir -p $(@D)
	$(BPFTOOL) gen skeleton $< name mote_cgroup_$*_bpf > $@.tmp && mv $@.tmp $@
CGROUP_SKELETONS := $(BUILD)/gen/cgroup_walk.skel.h $(BUILD)/gen/cgroup_events.skel.h

## C
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(MOTE_CFLAGS) -MMD -MP -c $< -o $@
$(call obj,$(SUPERVISOR)): | $(BUILD)/gen/mote.skel.h $(BUILD)/gen/walk.skel.h $(CGROUP_SKELETONS) $(SET_SKELETONS)
bpfobjects: $(BUILD)/gen/mote.bpf.o $(BUILD)/bpf/walk.bpf.o $(BUILD)/bpf/cgroup_walk.bpf.o $(BUILD)/bpf/cgroup_events.bpf.o $(SET_OBJECTS:%=$(BUILD)/gen/%.bpf.o) $(BUILD)/tests/helpers/bpfstat

$(BUILD)/supervisor.a: $(call obj,$(SUPERVISOR))
	@rm -f $@
	$(AR) rcs $@ $^
$(BUILD)/start.o: supervisor/start.ld $(call obj,$(START))
	$(CC) -r -nostdlib -Wl,--build-id=none -o $@ -Wl,-T,$^
$(BUILD)/moted: $(BUILD)/start.o $(BUILD)/supervisor.a
	$(CC) $(MOTE_LDFLAGS) -o $@ $^ $(MOTE_LIBS)

$(BUILD)/gen/docs: gen/docs.c $(BUILD)/supervisor.a
	$(CC) $(MOTE_CFLAGS) $(MOTE_LDFLAGS) -MMD -MP -o $@ $< $(BUILD)/supervisor.a $(MOTE_LIBS)

$(BUILD)/clients/%.pic.o: clients/%.c
	@mkdir -p $(@D)
	$(CC) $(MOTE_CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@
$(BUILD)/libmote.a: $(LIBMOTE:%.c=$(BUILD)/%.pic.o)
	@rm -f $@
	$(AR) rcs $@ $^
$(BUILD)/libmote.so.1: $(LIBMOTE:%.c=$(BUILD)/%.pic.o)
	$(CC) -shared -Wl,-soname,libmote.so.1 $(MOTE_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(MSGPACK))
$(BUILD)/libmote.so: $(BUILD)/libmote.so.1
	ln -sf $(<F) $@
PC := sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@MSGPACK@|$(MSGPACK)|'
$(BUILD)/libmote.pc: dist/libmote.pc.in Makefile
	@mkdir -p $(@D)
	$(PC) $< > $@.tmp && mv $@.tmp $@
$(BUILD)/mote: $(call obj,$(CLIENT)) $(BUILD)/libmote.a
	$(CC) $(MOTE_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(MSGPACK))

## Tests
$(BUILD)/tests/unit/%: tests/unit/%.c $(BUILD)/supervisor.a $(BUILD)/libmote.a
	@mkdir -p $(@D)
	$(CC) $(MOTE_CFLAGS) -iquote tests -iquote clients $(MOTE_LDFLAGS) -MMD -MP -o $@ $< $(BUILD)/supervisor.a \
		$(BUILD)/libmote.a $(MOTE_LIBS) -lcmocka
$(BUILD)/tests/helpers/%: tests/helpers/%.c $(BUILD)/supervisor.a
	@mkdir -p $(@D)
	$(CC) $(MOTE_CFLAGS) $(MOTE_LDFLAGS) -MMD -MP -o $@ $< $(BUILD)/supervisor.a $(MOTE_LIBS)
# The test of cgroups shares no source with moted.
CGROUPDIFF := $(wildcard tests/cgroupdiff/*.c)
$(BUILD)/tests/helpers/cgroupdiff $(BUILD)/tests/helpers/cgroup_same: $(BUILD)/tests/helpers/%: tests/helpers/%.c \
		$(call obj,$(CGROUPDIFF)) $(BUILD)/libmote.a
	@mkdir -p $(@D)
	$(CC) $(MOTE_CFLAGS) -iquote clients $(MOTE_LDFLAGS) -MMD -MP -o $@ $< $(call obj,$(CGROUPDIFF)) \
		$(BUILD)/libmote.a $(MOTE_LIBS)
$(call obj,$(CGROUPDIFF)): MOTE_CFLAGS += -iquote clients
$(BUILD)/tests/helpers/idle_sockets $(BUILD)/tests/helpers/cgroup_churn: $(BUILD)/tests/helpers/%: tests/helpers/%.c \
		$(BUILD)/libmote.a
	@mkdir -p $(@D)
	$(CC) $(MOTE_CFLAGS) -iquote clients $(MOTE_LDFLAGS) -MMD -MP -o $@ $(filter-out %.h,$^) $(MOTE_LIBS)
# The network programs by themselves
NET_PROGRAMS := $(wildcard tests/net_programs/*.c)
$(BUILD)/tests/net_programs/load.o: | $(BUILD)/gen/net_fentry.skel.h $(BUILD)/gen/net_kprobe.skel.h
$(BUILD)/tests/helpers/net_programs: tests/helpers/net_programs.c $(call obj,$(NET_PROGRAMS))
	@mkdir -p $(@D)
	$(CC) $(MOTE_CFLAGS) -iquote tests $(MOTE_LDFLAGS) -MMD -MP -o $@ $(filter-out %.h,$^) $(MOTE_LIBS)
# The byte counts' test is larger than one file.
CONSERVE := $(wildcard tests/conserve/*.c)
$(BUILD)/tests/helpers/conserve: tests/helpers/conserve.c $(call obj,$(CONSERVE)) $(BUILD)/libmote.a
	@mkdir -p $(@D)
	$(CC) $(MOTE_CFLAGS) -iquote clients $(MOTE_LDFLAGS) -MMD -MP -o $@ $(filter-out %.h,$^) $(MOTE_LIBS)
$(call obj,$(CONSERVE)): MOTE_CFLAGS += -iquote clients
OLDER := $(patsubst %,$(BUILD)/tests/conserve/%.o,actor ledger rows watch)
$(BUILD)/tests/helpers/older_sockets: tests/helpers/older_sockets.c $(OLDER) $(BUILD)/libmote.a
	@mkdir -p $(@D)
	$(CC) $(MOTE_CFLAGS) -iquote clients $(MOTE_LDFLAGS) -MMD -MP -o $@ $^ $(MOTE_LIBS)
# and that of files
FILES := $(wildcard tests/files/*.c) tests/conserve/rows.c
$(call obj,$(FILES)): MOTE_CFLAGS += -iquote clients
$(BUILD)/tests/helpers/files $(BUILD)/tests/helpers/edges: $(BUILD)/tests/helpers/%: tests/helpers/%.c \
		$(call obj,$(FILES)) $(BUILD)/libmote.a
	@mkdir -p $(@D)
	$(CC) $(MOTE_CFLAGS) -iquote clients $(MOTE_LDFLAGS) -MMD -MP -o $@ $(filter-out %.h,$^) $(MOTE_LIBS)
$(BUILD)/bench/encode: MOTE_LIBS += -ljansson
$(BUILD)/bench/%: bench/%.c $(BUILD)/supervisor.a $(BUILD)/libmote.a
	@mkdir -p $(@D)
	$(CC) $(MOTE_CFLAGS) -iquote clients $(MOTE_LDFLAGS) -MMD -MP -o $@ $< $(BUILD)/supervisor.a \
		$(BUILD)/libmote.a $(MOTE_LIBS)
# The slots' stress test, with a filler of its own; arm64 from 6.1 on takes the object that fetches
$(BUILD)/tests/slots/filler.bpf.o: tests/slots/filler.bpf.c
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@
$(BUILD)/tests/slots/filler_fetch.bpf.o: tests/slots/filler.bpf.c
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -mcpu=v3 -DMOTE_FETCH -MMD -MP -c $< -o $@
$(BUILD)/gen/slots_%.skel.h: $(BUILD)/tests/slots/%.bpf.o
	@mkdir -p $(@D)
	$(BPFTOOL) gen skeleton $< name slots_$* > $@.tmp && mv $@.tmp $@
STRESS_SKELETONS := $(BUILD)/gen/slots_filler.skel.h $(BUILD)/gen/slots_filler_fetch.skel.h
$(BUILD)/tests/slots/setup.o: | $(STRESS_SKELETONS)
$(BUILD)/tests/helpers/slots: $(call obj,$(STRESS)) $(BUILD)/supervisor.a
	@mkdir -p $(@D)
	$(CC) $(MOTE_LDFLAGS) -o $@ $^ $(MOTE_LIBS)
# PID 1 of a VM: static, for it runs before anything is there
$(BUILD)/vmtests/init: vmtests/init.c
	@mkdir -p $(@D)
	$(CC) $(MOTE_CFLAGS) -MMD -MP -static -o $@ $<
unit: $(patsubst %.c,$(BUILD)/%,$(UNIT))
helpers: $(patsubst %.c,$(BUILD)/%,$(HELPERS)) $(BUILD)/tests/helpers/slots
benches: $(patsubst %.c,$(BUILD)/%,$(BENCHES))
vm: $(BUILD)/moted $(BUILD)/mote $(BUILD)/vmtests/init helpers

test:
	@ci/setup build test
	@+tests/run

stress:
	@$(MAKE) --no-print-directory -s $(BUILD)/tests/helpers/slots
	@$(BUILD)/tests/helpers/slots full

run:
	@$(MAKE) --no-print-directory -s all
	@tests/run-live $(BUILD) $(FRAMES)

bench:
	@ci/setup build test bench
	@$(MAKE) --no-print-directory -s all benches
	@bench/run $(BUILD)

fuzz:
	@ci/setup build fuzz
	@+tests/fuzz/run $(BUILD) $(SECONDS)

vmtest:
	@+vmtests/build $(BUILD) $(KERNEL)
	@MOTE_VM_TESTS=$(TESTS) vmtests/run $(BUILD) $(KERNEL)

# Natively, or in VMs of the kernels that are asked for.
bpfstat:
	@ci/setup build
	@+vmtests/bpfstat $(BUILD) $(if $(filter file,$(origin KERNEL)),,$(KERNEL))

vmtest-refresh:
	@vmtests/refresh $(BUILD)

check:
	@ci/setup build check
	@$(MAKE) --no-print-directory -s $(BUILD)/gen/mote.skel.h $(BUILD)/gen/walk.skel.h $(CGROUP_SKELETONS) $(SET_SKELETONS) $(STRESS_SKELETONS)
	@ci/check $(BUILD)

docs:
	@$(MAKE) --no-print-directory -s all
	@gen/docs $(BUILD)

install: all
	install -Dm755 $(BUILD)/moted $(DESTDIR)$(PREFIX)/sbin/moted
	install -Dm755 $(BUILD)/mote $(DESTDIR)$(PREFIX)/bin/mote
	install -Dm644 clients/libmote.h $(DESTDIR)$(PREFIX)/include/libmote.h
	install -Dm644 $(BUILD)/libmote.a $(DESTDIR)$(PREFIX)/lib/libmote.a
	install -Dm755 $(BUILD)/libmote.so.1 $(DESTDIR)$(PREFIX)/lib/libmote.so.1
	ln -sf libmote.so.1 $(DESTDIR)$(PREFIX)/lib/libmote.so
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	$(PC) dist/libmote.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/libmote.pc
	install -Dm644 dist/mote.conf $(DESTDIR)$(PREFIX)/share/doc/mote/mote.conf
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|/usr/local|$(PREFIX)|' dist/mote.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/mote.service
	install -Dm644 dist/mote.socket $(DESTDIR)$(PREFIX)/lib/systemd/system/mote.socket

clean:
	rm -rf $(BUILD)

help:
	@echo "make               build moted, mote and libmote into $(BUILD)/"
	@echo "make run           build, start moted on a private socket, show live rows [FRAMES=n]"
	@echo "make test          unit and integration tests, and VMs of four kernels"
	@echo "make stress        the long form of the slots' stress test: 5 million keys, every mutant"
	@echo "make bench         measure cost, compare with the floor and with other agents"
	@echo "make fuzz          fuzz every parser [SECONDS=60]"
	@echo "make check         formatting, clang-tidy, cppcheck, include rules"
	@echo "make vmtest        boot Debian kernels in QEMU and test there [KERNEL=6.1, a list, test or all]"
	@echo "make bpfstat       instructions of each BPF program and the verifier's headroom here [KERNEL=, in VMs]"
	@echo "make vmtest-refresh  pin the newest kernels of each series in vmtests/kernels"
	@echo "make docs          write the generated pages in docs/ and dist/mote.conf"
	@echo "make install       [DESTDIR=] [PREFIX=/usr/local]"
	@echo "make clean"
	@echo "Variables: BUILD=build CC=gcc CLANG=clang CFLAGS='-O2 -g' SAN= (sanitizer flags) ARCH=arm64 (cross build)"

.PHONY: all unit helpers benches vm test stress run bench fuzz vmtest bpfstat vmtest-refresh check docs install clean help
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(BUILD) -path '*/peers' -prune -o -type f -name '*.d' -print 2>/dev/null)
