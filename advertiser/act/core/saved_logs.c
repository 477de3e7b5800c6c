/* What containers wrote last, kept here when their pod is gone from its place:
 * somebody may want to know why it failed. */
#include "advertiser/act/core/saved_logs.h"

#include <errno.h>
#include <string.h>

#include "advertiser/act/card/connection.h"
#include "advertiser/act/card/pod_logs.h"
#include "advertiser/act/core/helper_pod.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"

enum { TAIL_MAX = 64 << 10 }; /* of the file: lines have a head there */

static int save_log(struct actuator *a, const struct pod_access *pod,
                    const struct intent *i, const struct machine_unit *u,
                    struct error *err)
{
    struct str text = STR_INIT(CRI_EXEC_OUTPUT_MAX);
    const struct pod_log ask = {
        .container = u->name, .attempt = u->noted->attempt, .max = TAIL_MAX};
    uint64_t next = 0;
    int r = pod_logs_tail(pod, &ask, &text, &next, err);
    size_t cut = text.size > INTENT_LOG_MAX ? text.size - INTENT_LOG_MAX : 0;
    const struct intent_log log = {
        .uid = i->uid,
        .container = u->name,
        .owner = i->owner,
        .namespace = i->namespace,
        .name = i->name,
        .init = u->init,
        .next = next,
        .text = str_text(&text) + cut,
        .size = text.size - cut,
    };
    if (r == 0)
        r = intents_put_log(a->intents, &log, err);
    str_fini(&text);
    return r;
}

void saved_logs_take(struct place *at, const struct connection *c,
                     struct pod_entry *e)
{
    struct actuator *a = at->a;
    struct error err = {0};
    char id[CRI_ID_MAX + 1];
    bool host = card_is_host(&c->place);
    act_lock(a);
    bool keep = e->intent->keep;
    act_unlock(a);
    if (!keep || (!host && !a->helper_image))
        return;
    const struct pod_access pod = {.place = &c->place,
                                   .dirs = &a->dirs,
                                   .uid = e->intent->uid,
                                   .cri = c->cri,
                                   .helper = id};
    (void)failpoint("act-before-kept");
    for (size_t i = 0; i < e->m.n_units; i++) {
        const struct machine_unit *u = &e->m.units[i];
        if (u->noted->attempt == 0)
            continue; /* it was never made */
        /* a helper may be replaced while another container is read */
        act_lock(a);
        helper_id(a, c->place.name, id);
        act_unlock(a);
        int r = save_log(a, &pod, e->intent, u, &err);
        if (r < 0 && r != -ENOENT) /* removed before: this was tried again */
            log_event(LOG_WARN, "act-log-not-kept", "place", c->place.name,
                      "uid", e->intent->uid, "container", u->name, "error",
                      err.text, NULL);
    }
    act_lock(a);
    e->logs_saved = true;
    act_unlock(a);
    (void)failpoint("act-after-kept");
}

/* --- what others have of it ------------------------------------------------- */

/* Offsets go on from those of the file: whoever has read up to one of them
 * misses nothing, and may see some bytes again. */
int saved_logs_read(struct actuator *a, const struct intent_log *names,
                    uint64_t offset, size_t max, struct str *ret_text,
                    uint64_t *ret_next, struct error *err)
{
    cleanup_str struct str text = STR_INIT(INTENT_LOG_MAX + 1);
    uint64_t next = 0;
    int e = intents_find_log(a->intents, names, &text, &next, err);
    if (e < 0)
        return e;
    uint64_t from = next > text.size ? next - text.size : 0;
    uint64_t at = offset < from ? 0 : offset - from;
    if (at > text.size)
        at = text.size;
    size_t n = text.size - (size_t)at;
    if (n > max)
        n = max;
    str_add_n(ret_text, str_text(&text) + at, n);
    *ret_next = from + at + n;
    return 0;
}
