#include "extender/view/openapi.h"

/* The assembler finds the file from the root of the repository, where make
 * runs. */
__asm__(".pushsection .rodata\n"
        ".global openapi_yaml\n"
        "openapi_yaml:\n"
        ".incbin \"schema/openapi.yaml\"\n"
        ".byte 0\n"
        ".popsection\n");
