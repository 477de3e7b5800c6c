#include "extender/console/console_files.h"

/* The assembler finds the files from the root of the repository, where make
 * runs. */
__asm__(".pushsection .rodata\n"
        ".global console_css\n"
        "console_css:\n"
        ".incbin \"extender/console/console.css\"\n"
        ".byte 0\n"
        ".global list_js\n"
        "list_js:\n"
        ".incbin \"extender/console/list.js\"\n"
        ".byte 0\n"
        ".global console_js\n"
        "console_js:\n"
        ".incbin \"extender/console/console.js\"\n"
        ".byte 0\n"
        ".global replay_js\n"
        "replay_js:\n"
        ".incbin \"extender/console/replay.js\"\n"
        ".byte 0\n"
        ".popsection\n");
