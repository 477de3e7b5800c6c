# The style sheet and the script of the pages are a part of the extender.
$(BUILD)/obj/extender/console/console_files.o: extender/console/console.css \
    extender/console/console.js extender/console/replay.js
