# Packages and images.
.PHONY: deb
deb: setup programs man
	@deploy/package/deb $(BUILD) $(BUILD)
