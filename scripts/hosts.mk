# The host descriptions of advertiser/hosts/ as a source file of their own.
HOST_FILES := $(sort $(wildcard advertiser/hosts/*.host))

$(BUILD)/gen/hosts_data.c: $(HOST_FILES) scripts/hosts-embed advertiser/hosts
	@mkdir -p $(dir $@)
	scripts/hosts-embed $(HOST_FILES) > $@

$(BUILD)/obj/gen/hosts_data.o: $(BUILD)/gen/hosts_data.c | $(BUILD)/.setup
	@mkdir -p $(dir $@)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/libbiga-advertiser.a: $(BUILD)/obj/gen/hosts_data.o
