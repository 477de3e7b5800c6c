/* console_files - the style sheet and the scripts of the pages, as they were
 * when the program was built. */
#ifndef BIGA_EXTENDER_CONSOLE_CONSOLE_FILES_H
#define BIGA_EXTENDER_CONSOLE_CONSOLE_FILES_H

/* NUL-terminated */
extern const char console_css[], list_js[], console_js[], replay_js[];

#endif
