/* console_files - the style sheet and the script of the pages, as they were
 * when the program was built. */
#ifndef BIGA_EXTENDER_CONSOLE_CONSOLE_FILES_H
#define BIGA_EXTENDER_CONSOLE_CONSOLE_FILES_H

extern const char console_css[], console_js[], replay_js[]; /* NUL-terminated */

#endif
