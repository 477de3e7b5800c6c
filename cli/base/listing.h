/* listing - what there is of a kind, as a table for people or as JSON for
 * programs: chosen by --selector, in the order of --sort-by, else of names. */
#ifndef BIGA_CLI_BASE_LISTING_H
#define BIGA_CLI_BASE_LISTING_H

#include "cli/base/cli.h"

enum listing_flags {
    LISTING_RIGHT = 1, /* numbers: aligned to the right */
    LISTING_WIDE = 2,  /* only with -o wide */
    LISTING_AGES = 4,  /* it changes by itself: that is no change */
};

/* Columns are the same whatever there is: scripts count them. */
struct listing_column {
    const char *title; /* one word; "CARDS(FREE/TOTAL)" is also "CARDS" */
    unsigned flags;
    const char *means; /* for the manual: no capital, no full stop */
    const char *path;  /* order by this path, as json_path.h has it; NULL: by
                        * what is shown */
};

struct listing {
    const struct listing_column *columns;
    size_t n_columns;
    /* A cell for each column, the wide ones too. */
    void (*add)(struct table *t, const cJSON *each);
    const char *none; /* the line when there is nothing */
    /* More lines, below the table; NULL: none. */
    void (*below)(struct cli *c, const cJSON *list);
};

/* GET `path`, whose answer has the list as "items", and show it.  An exit code,
 * after saying on stderr what is wrong. */
int listing_get(struct cli *c, const char *path, const struct listing *l);

/* Are --selector and --sort-by such as the list can be asked for?  0, or
 * CLI_USAGE after saying so. */
int listing_check(struct cli *c, const struct listing *l);

/* With -w: what was shown last.  While c->seen is one, listing_get() shows all
 * once, then what is different: rows, or as JSON and YAML
 * {"type": "ADDED" | "MODIFIED" | "DELETED", "object": …}. */
struct listing_seen *listing_seen_create(void);
void listing_seen_destroy(struct listing_seen *s);
/* Has a list been shown? */
bool listing_seen_any(const struct listing_seen *s);

/* Show the list "items" of an answer that is here; the members that
 * --selector does not choose go. */
int listing_show(struct cli *c, cJSON *answer, const struct listing *l);

/* What --selector does not choose goes.  A CLI_USAGE when it is none. */
int listing_choose(struct cli *c, cJSON *list);
/* The same of the list "items" of an answer. */
int listing_choose_items(struct cli *c, cJSON *answer);
/* More rows of a list, beneath those that were written before; `widths` is a
 * zeroed table at first, to be ended. */
void listing_more(struct cli *c, const cJSON *list, const struct listing *l,
                  struct table *widths);

/* A list within another answer: the table as it is, in the order of names.
 * False, and nothing, when it is empty. */
bool listing_table(struct cli *c, const cJSON *list, const struct listing *l);

/* The same of one object. */
void listing_one(struct cli *c, const cJSON *each, const struct listing *l);

/* Does it have this value for the key of a selector, and which?  Its label,
 * else its member (also by path: "cards.idle"), or one of its "pod".  NULL:
 * none; else in `room`. */
const char *listing_value(const cJSON *each, const char *key, struct str *room);

#endif
