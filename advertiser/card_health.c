#include "advertiser/card_health.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/act/card/health_file.h"
#include "advertiser/places.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

struct card_health {
    char *path, *node;
    struct stat seen; /* of the file that was read last; zero: none */
    int64_t due_ms;
    struct health_file says;
    struct error last; /* logged once */
};

struct card_health *card_health_create(const char *path, const char *node)
{
    struct card_health *h = xcalloc(1, sizeof *h);
    h->path = xstrdup(path);
    h->node = xstrdup(node);
    (void)card_health_step(h, 0);
    return h;
}

void card_health_destroy(struct card_health *h)
{
    if (!h)
        return;
    free(h->path);
    free(h->node);
    free(h);
}

int64_t card_health_due(const struct card_health *h)
{
    return h->due_ms;
}

/* Each is a file of its own. */
static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool card_health_step(struct card_health *h, int64_t now_ms)
{
    struct stat st;
    struct error err = {0};
    if (now_ms < h->due_ms)
        return false;
    h->due_ms = now_ms + CARD_HEALTH_LOOK_MS;
    if (stat(h->path, &st) < 0 || is_same(&st, &h->seen))
        return false;
    h->seen = st;
    int r = health_file_load(h->path, &h->says, &err);
    if (r < 0 && strcmp(h->last.text, err.text) != 0)
        log_event(LOG_WARN, "card-health-not-read", "node", h->node, "error",
                  err.text, NULL);
    h->last = err;
    return r == 0;
}

static void fill(struct act_place_status *view,
                 const struct health_file_card *card)
{
    memset(view, 0, sizeof *view);
    memcpy(view->name, card->name, sizeof view->name);
    view->health = card->lost ? ACT_LOST : ACT_READY;
}

struct topo *card_health_mark(struct card_health *h, struct topo *seen)
{
    struct topo *marked = NULL;
    struct error err = {0};
    cleanup_free struct act_place_status *views = xcalloc(HEALTH_FILE_CARDS_MAX,
                                                          sizeof *views);
    for (size_t i = 0; i < h->says.n; i++)
        fill(&views[i], &h->says.cards[i]);
    int r = places_mark(seen, TOPO_RUNS_UNTOLD, views, h->says.n, &marked,
                        &err);
    if (r < 0)
        log_event(LOG_WARN, "card-health-not-told", "node", h->node, "error",
                  err.text, NULL);
    return r == 0 ? marked : topo_ref(seen);
}
