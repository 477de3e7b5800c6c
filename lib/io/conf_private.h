/* conf_private - what conf.c (reading) and conf_docs.c (printing) share. */
#ifndef BIGA_LIB_IO_CONF_PRIVATE_H
#define BIGA_LIB_IO_CONF_PRIVATE_H

#include "lib/io/conf.h"

enum { CONF_NAME_MAX = 64, CONF_ALLOWED_MAX = 256 };

/* The options that every program has, in this order. */
enum {
    CONF_OWN_CONFIG,
    CONF_OWN_HELP,
    CONF_OWN_VERSION,
    CONF_OWN_DOCS,
    CONF_N_OWN,
};
extern const struct conf_setting conf_own[CONF_N_OWN];

/* "$BIGA_SCHEDULER_LISTEN" (with the dollar sign). */
void conf_env_name(const struct conf_setting *s,
                   char ret_name[CONF_NAME_MAX + 8]);

/* What a setting accepts, in words: "1 to 64", "one of a, b, c". */
void conf_allowed(const struct conf_setting *s,
                  char ret_text[CONF_ALLOWED_MAX]);

/* The setting that was probably meant by a name, or NULL. */
const char *conf_meant(const struct conf_program *p, const char *name,
                       size_t len);

#endif
