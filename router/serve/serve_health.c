/* How remotes fare, told to the node's advertiser by a file. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/io/log.h"
#include "router/serve/serve_private.h"

/* What was told before goes on until there is news of that card, so that a
 * restart of ours gives no capacity back. */
static void take_old(struct serve *s, const struct serve_config *config)
{
    cleanup_free struct health_file *old = xcalloc(1, sizeof *old);
    struct error err = {0};
    int e = health_file_load(s->health_path, old, &err);
    if (e < 0 && e != -ENOENT)
        log_event(LOG_WARN, "health-not-read", "error", err.text, NULL);
    for (size_t i = 0; e == 0 && i < old->n; i++)
        for (size_t j = 0; j < config->n_places; j++)
            if (strcmp(config->places[j].name, old->cards[i].name) == 0)
                (void)health_file_set(&s->health, old->cards[i].name,
                                      old->cards[i].lost, old->cards[i].reason);
}

int serve_health_open(struct serve *s, const struct serve_config *config,
                      struct error *err)
{
    if (!s->config.state)
        return 0;
    cleanup_free char *dir = xasprintf("%s/health", s->config.state);
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        return error_errno(err, errno, "--state: %s", dir);
    s->health_path = xasprintf("%s/cards.json", dir);
    take_old(s, config);
    return 0;
}

void serve_health_tell(struct far *far, struct remote *r,
                       enum act_health health)
{
    struct serve *s = far->s;
    char reason[ACT_MESSAGE_MAX];
    struct error err = {0};
    if (health == ACT_SUSPECT || !s->health_path)
        return;
    (void)remote_health(r, reason);
    hold_lock(&s->telling);
    s->untold |= health_file_set(&s->health, remote_name(r), health == ACT_LOST,
                                 reason);
    if (!s->untold)
        return;
    s->untold = health_file_store(s->health_path, &s->health, &err) < 0;
    if (s->untold)
        log_event(LOG_ERROR, "health-not-written", "error", err.text, NULL);
}
