/* settings - the command line of `biga`: every option that some command takes,
 * and which of them were given. */
#ifndef BIGA_CLI_BASE_SETTINGS_H
#define BIGA_CLI_BASE_SETTINGS_H

#include "cli/base/cli.h"
#include "lib/io/conf.h"

/* Where an advertiser has its socket that was not told otherwise. */
#define SETTINGS_SOCKET "/var/lib/biga-advertiser/actuator.sock"

/* What every command takes that asks the extender, or this host's
 * advertiser. */
#define VERB_ASK "server ca cert key token-file"
#define VERB_LOCAL "socket"
/* What takes --json; what can be watched; what lists things, and those in
 * namespaces. */
#define VERB_FORM " output json"
#define VERB_WATCH VERB_FORM " watch"
#define VERB_CHOOSE " selector sort-by"
#define VERB_LIST VERB_WATCH VERB_CHOOSE
#define VERB_LIST_NAMED VERB_LIST " namespace all-namespaces"

/* All of them, in the order of the manual. */
const struct conf_setting *cli_settings_table(size_t *ret_n);

/* Was `name` given on the command line? */
bool cli_is_given(const struct cli *c, const char *name);

/* --timeout in seconds: "90", "90s", "5m" or "2h", up to `max`; `otherwise` when
 * it is not given.  0, or CLI_USAGE, after saying so of `what`. */
int settings_seconds(const struct cli *c, const char *what, int64_t otherwise,
                     int64_t max, int64_t *ret_seconds);

/* Is a setting among those, as in a verb's options? */
bool options_have(const char *options, const char *name);
/* 0 when nothing else was given on the command line; else CLI_USAGE, after
 * saying on stderr what `what` ("card logs") takes. */
int options_check(const struct cli *c, const char *what, const char *options);

#endif
