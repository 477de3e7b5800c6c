# The description of the HTTP interface is a part of the extender.
$(BUILD)/obj/extender/view/openapi.o: schema/openapi.yaml
