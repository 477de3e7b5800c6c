#include "bench/replay/costs_text.h"

/* The assembler finds the file from the root of the repository, where make
 * runs. */
__asm__(".pushsection .rodata\n"
        ".global replay_costs_text\n"
        "replay_costs_text:\n"
        ".incbin \"bench/replay/costs.json\"\n"
        ".byte 0\n"
        ".popsection\n");
