# Packages and images, for this machine's architecture and for another.

# whose libraries are unpacked below build/, not installed; FOREIGN= is none
FOREIGN := $(if $(filter aarch64,$(shell uname -m)),amd64,arm64)
TRIPLET := $(if $(filter arm64,$(FOREIGN)),aarch64,x86_64)-linux-gnu
SYSROOT := $(abspath $(BUILD))/sysroot-$(FOREIGN)
IN_FOREIGN = PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) \
  PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(TRIPLET)/pkgconfig \
  $(AGAIN) BUILD=$(BUILD)-$(FOREIGN) CC='$(TRIPLET)-gcc --sysroot=$(SYSROOT) \
  -L$(SYSROOT)/usr/lib/$(TRIPLET)'

.PHONY: deb deb-foreign foreign images krew test-package
deb: setup programs man
	@deploy/package/deb $(BUILD) $(BUILD)
foreign: setup
	@deploy/package/sysroot $(FOREIGN) $(SYSROOT)
	+@$(IN_FOREIGN) programs
deb-foreign: foreign programs man
	@deploy/package/deb --sysroot $(SYSROOT) --run $(BUILD) \
	    $(BUILD)-$(FOREIGN) $(BUILD)
# of both architectures, where there is a compiler of the other
BOTH = $(if $(FOREIGN),$(if $(shell command -v $(TRIPLET)-gcc),foreign))
BUILDS = $(BUILD) $(if $(filter foreign,$^),$(BUILD)-$(FOREIGN)=$(SYSROOT))
images: setup programs $(BOTH)
	@mkdir -p $(BUILD)/images
	@deploy/package/oci $(BUILD)/images $(BUILDS)
krew: setup programs $(BOTH)
	@deploy/package/krew $(BUILD)/krew '$(KREW_URL)' $(BUILDS)

# what they build is built as this was
test-package: programs man
	@scripts/setup --package || true
	@env -u MAKEFLAGS -u MAKELEVEL OPT='$(OPT)' CC='$(CC)' \
	    scripts/run-tests --package $(sort $(wildcard tests/package/*.sh))
