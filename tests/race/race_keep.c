/* The map under many threads: each makes and ends pods on a remote of its own
 * and lists it, two want the same name, readers look at all of it.  Prints what
 * was done; ThreadSanitizer says the rest. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/log.h"
#include "tests/lib/router/keeprig.h"

enum { MAKERS = 4, READERS = 2, RIVALS = 2, LIVES = 150 };

static struct keep *k;
static atomic_bool over;
static atomic_uint n_at_it, n_won;

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "race_keep: %s\n", what);
    exit(1);
}

static void make(struct keeprig *r, struct kept *what,
                 char ret_id[KEPT_ID_MAX + 1])
{
    what->remote = r->name;
    const struct making_calls calls = keeprig_calls(r, k, what);
    struct error err = {0};
    int e = making_run(k, what, &calls, ret_id, &err);
    must(e == 0, err.text);
}

static void *maker(void *arg)
{
    char name[16], uid[32], sandbox[KEPT_ID_MAX + 1], id[KEPT_ID_MAX + 1];
    unsigned me = (unsigned)(uintptr_t)arg;
    struct keeprig *r = xcalloc(1, sizeof *r);
    (void)snprintf(name, sizeof name, "card-%u", me);
    r->name = name;
    r->next_id = (me + 1) << 20;
    for (unsigned i = 0; i < LIVES; i++) {
        (void)snprintf(uid, sizeof uid, "u-%u-%u", me, i);
        struct kept s = keeprig_sandbox(uid, 0);
        make(r, &s, sandbox);
        struct kept c = keeprig_container(uid, sandbox, "c", 0);
        make(r, &c, id);
        must(keeprig_see(r, k).n_gone == 0, "something was lost");
        struct kept *found = keep_find(k, id);
        must(found && strcmp(found->uid, uid) == 0, "it is another's");
        kept_unref(found);
        if (i % 3 == 0)
            continue;
        keeprig_remove(r, sandbox);
        if (i % 3 == 1)
            must(keep_forget(k, sandbox, NULL) == 0, "forget");
        else
            must(keeprig_see(r, k).n_gone == 2, "it is not gone");
        must(!keep_find(k, id), "a container stays without its sandbox");
        if (keeprig_count(r, uid) == 0 && r->n_sent % 40 == 0)
            keep_view_unref(keep_view(k));
        if (i % 20 == 19) { /* the runtime begins anew */
            unsigned next = r->next_id;
            keeprig_fini(r);
            r->name = name;
            r->next_id = next;
            (void)keeprig_see(r, k);
        }
    }
    keeprig_fini(r);
    free(r);
    return NULL;
}

static void *rival(void *arg)
{
    const struct kept s = keeprig_sandbox("the-same", 0);
    (void)arg;
    while (!atomic_load(&over)) {
        enum keep_answer answer;
        struct kept *was = NULL;
        struct error err;
        int e = keep_announce(k, &s, &answer, &was, &err);
        if (e == -EBUSY)
            continue;
        must(e == 0 && !was, "announce");
        must(atomic_fetch_add(&n_at_it, 1) == 0, "two have one name");
        atomic_fetch_add(&n_won, 1);
        atomic_fetch_sub(&n_at_it, 1);
        if (answer == KEEP_SEND)
            keep_unclear(k, &s);
        else
            must(keep_refused(k, &s, NULL) == 0, "refused");
    }
    return NULL;
}

static void *reader(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        struct keep_view *v = keep_view(k);
        for (size_t i = 0; i < keep_view_count(v); i++) {
            const struct kept *one = keep_view_at(v, i);
            cleanup_str struct str seal = STR_INIT(KEPT_SEALED_MAX);
            if (one->state == KEPT_MADE)
                must(keep_view_find(v, one->id) == one, "a view has an order");
            keep_seal(k, one, &seal);
        }
        keep_view_unref(v);
        (void)keep_count(k, "card-0", KEPT_MADE);
    }
    return NULL;
}

int main(void)
{
    const struct keep_config config = {.pod_logs = "/var/log/pods"};
    pthread_t makers[MAKERS], others[READERS + RIVALS];
    log_set_level(LOG_ERROR);
    must(keep_open(&config, &k, NULL) == 0, "open");
    for (uintptr_t i = 0; i < MAKERS; i++)
        must(pthread_create(&makers[i], NULL, maker, (void *)i) == 0, "thread");
    for (size_t i = 0; i < READERS + RIVALS; i++)
        must(pthread_create(&others[i], NULL, i < READERS ? reader : rival,
                            NULL) == 0,
             "thread");
    for (size_t i = 0; i < MAKERS; i++)
        (void)pthread_join(makers[i], NULL);
    atomic_store(&over, true);
    for (size_t i = 0; i < READERS + RIVALS; i++)
        (void)pthread_join(others[i], NULL);
    keep_close(k);
    (void)printf("race_keep: %d pods by %d threads, one name %u times, never "
                 "by two\n",
                 MAKERS * LIVES, MAKERS, atomic_load(&n_won));
    return 0;
}
