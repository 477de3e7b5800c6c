# The description of the HTTP interface is a part of the extender.
$(BUILD)/obj/extender/openapi.o: schema/openapi.yaml
