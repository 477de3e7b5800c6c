#include "extender/judge/job_missing.h"

enum { MISSING_TOLD = 3 }; /* pods that are named */

struct missing {
    struct str text;
    size_t n;
};

static void missing_add(struct missing *m, const char *what, int32_t pair)
{
    if (m->n++ < MISSING_TOLD)
        str_addf(&m->text, "%s%s of pair %d", m->n > 1 ? ", " : "", what,
                 (int)pair);
}

/* What the pods of one pair lack when the job has such pods at all. */
static void check_pair(const struct job_member *members, size_t n, int32_t pair,
                       const bool has[ROLE_SERVICE + 1], struct missing *m)
{
    unsigned hosts = 0, xpus = 0, cards = 0, asked = 0;
    for (size_t i = 0; i < n; i++) {
        const struct job_member *d = &members[i];
        if (!d->counted)
            continue;
        hosts += d->role == ROLE_HOST;
        xpus += d->role == ROLE_XPU;
        cards += d->role == ROLE_XPU ? d->cards : 0;
        asked = d->pair_cards > asked ? d->pair_cards : asked;
    }
    if (has[ROLE_HOST] && hosts == 0)
        missing_add(m, "the host pod", pair);
    if (has[ROLE_XPU] && xpus == 0)
        missing_add(m, "the xPU pod", pair);
    else if (xpus > 0 && cards < asked)
        missing_add(m, "an xPU pod for the other cards", pair);
}

bool job_missing(const struct job_member *members, size_t n, int32_t size,
                 const char *word, struct str *out)
{
    struct missing m = {.text = STR_INIT(STR_MAX_DEFAULT)};
    bool has[ROLE_SERVICE + 1] = {false};
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        has[members[i].role] = true;
        has[ROLE_XPU] = has[ROLE_XPU] || members[i].buddy;
    }
    for (int32_t pair = 0; pair < size; pair++) {
        size_t from = at;
        while (at < n && members[at].pair <= pair)
            at++;
        check_pair(members + from, at - from, pair, has, &m);
    }
    if (m.n > 0)
        str_addf(out,
                 "waits until all pods of its %d pairs are %s; missing: %s",
                 (int)size, word, str_text(&m.text));
    if (m.n > MISSING_TOLD)
        str_addf(out, " and %zu more", m.n - MISSING_TOLD);
    str_fini(&m.text);
    return m.n > 0;
}
