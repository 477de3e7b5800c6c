# The style sheet and the scripts of the pages are a part of the extender.
$(BUILD)/obj/extender/console/console_files.o: extender/console/console.css \
    extender/console/list.js extender/console/console.js \
    extender/console/replay.js
