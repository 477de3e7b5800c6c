# The wire form of the CRI: protoc-c makes C of advertiser/cri/cri.proto.
CRI_WIRE := $(BUILD)/advertiser/cri/cri.pb-c

$(CRI_WIRE).c: advertiser/cri/cri.proto | $(BUILD)/.setup
	@mkdir -p $(dir $@)
	$(call say,PROTO,$<)
	$(Q)protoc-c --proto_path=. --c_out=$(BUILD) $<
$(CRI_WIRE).h: $(CRI_WIRE).c ;

# Made code keeps neither our warnings nor our list of banned functions.
$(BUILD)/obj/gen/cri.pb-c.o: $(CRI_WIRE).c
	@mkdir -p $(dir $@)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) -std=c11 $(OPT) $(SAN) -fno-common $(NO_FOLDER) \
	    -fstack-protector-strong $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/libbiga-advertiser.a: $(BUILD)/obj/gen/cri.pb-c.o
# who includes it
$(call obj,$(shell grep -lrE '"[a-z/]*/(cri|cardserver)_private\.h"' \
    --include=*.c advertiser router tests)): | $(CRI_WIRE).h
