/* What the files that answer share. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_VIEW_PRIVATE_H
#define BIGA_EXTENDER_HISTORY_HISTORY_VIEW_PRIVATE_H

#include "extender/history/history_view.h"

/* Places that were found, whose texts the reader keeps. */
struct view_places {
    struct history_place *items;
    size_t n, cap;
};
void view_places_add(void *ctx, const struct history_place *p);
void view_places_sort(struct view_places *all,
                      int (*compare)(const void *a, const void *b));
int view_compare_pods(const void *a, const void *b);
/* Only those on a card stay, by its line. */
void view_places_keep(struct view_places *all, const char *line);
void view_places_write(const struct view_places *all, struct str *out);
void view_place_write(const struct history_place *p, const char *key,
                      struct str *out);

/* The two parts of "NS/NAME" or "NODE/CARD". */
void view_names(struct str *out, const char *key_a, const char *key_b,
                const char *object);
/* The line of a card of that node; NULL: it has none of that name. */
const char *view_card_find(const char *lines, const char *card);
const char *view_status_word(int status);
/* The members of a node but its name. */
int view_node_write(struct history_reader *r, const struct history_node *n,
                    int64_t ms, struct str *out, struct error *err);
/* "at" and "oldest". */
int view_head(struct history_reader *r, int64_t ms, struct str *out,
              struct error *err);

#endif
