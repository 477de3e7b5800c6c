# Packages and images.
.PHONY: deb test-package
deb: setup programs man
	@deploy/package/deb $(BUILD) $(BUILD)

# what they build is built as this was
test-package: programs man
	@scripts/setup --package || true
	@env -u MAKEFLAGS -u MAKELEVEL OPT='$(OPT)' CC='$(CC)' \
	    scripts/run-tests --package $(sort $(wildcard tests/package/*.sh))
