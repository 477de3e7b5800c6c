/* Reflectors that are started, looked at from several threads while they list
 * and watch, and stopped at any moment, for some seconds, for ThreadSanitizer
 * to watch.
 *
 *   race_reflector [SECONDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/kube/reflector_private.h"
#include "tests/lib/http/fakeapi.h"

enum { N_READERS = 3, N_KINDS = 3 };

#define LIST(next) \
    "{\"metadata\":{\"resourceVersion\":\"1\"" next "},\"items\":[{},{}]}"
#define EVENT                                                                 \
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"2\"" \
    "}}}\n"

/* Each is met by whichever kind comes first. */
static const struct fakeapi_answer script[] = {
    {.body = LIST(",\"continue\":\"x\"")},
    {.body = LIST(",\"continue\":\"x\""), .end = FAKEAPI_CUT},
    {.body = LIST("")},
    {.status = 500, .body = "no"},
    {.body = LIST("")},
    {.body = LIST("")},
    {.body = LIST("")},
    {.body = EVENT EVENT EVENT EVENT, .end = FAKEAPI_TRICKLE},
    {.body = EVENT EVENT, .end = FAKEAPI_CUT},
    {.status = 410, .body = "{}"},
    {.body = LIST("")},
    {.end = FAKEAPI_REFUSE},
    {.body = EVENT EVENT EVENT, .end = FAKEAPI_HOLD},
};

static const struct reflector_tuning quick = {
    .page = 2,
    .object_max = 4096,
    .list_silence_ms = 300,
    .watch_silence_ms = 50,
    .wait_min_ms = 1,
    .wait_max_ms = 4,
    .short_ms = 0,
    .good_ms = 1000,
};

/* Readers and the one who starts and stops meet here. */
struct stage {
    pthread_rwlock_t lock; /* written to when `reflector` changes */
    struct reflector *reflector;
    atomic_bool stopping;
    atomic_ulong n_looks, n_told;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "race_reflector: %s\n", what);
    abort();
}

static void told(void *ctx, const char *json, size_t size)
{
    struct stage *stage = ctx;
    if (size == 0 || json[0] != '{')
        die("was told what is no object");
    atomic_fetch_add(&stage->n_told, 1);
}

static void look(struct stage *stage)
{
    struct reflector_state state;
    const struct reflector *r = stage->reflector;
    if (!r)
        return;
    bool synced = reflector_is_synced(r);
    for (size_t i = 0; i < reflector_n_kinds(r); i++) {
        reflector_state(r, i, &state);
        if (synced && !state.synced)
            die("was synced and is not");
        if (memchr(state.error, '\0', sizeof state.error) == NULL)
            die("an error without an end");
    }
    atomic_fetch_add(&stage->n_looks, 1);
}

static void *reader_run(void *ctx)
{
    struct stage *stage = ctx;
    while (!atomic_load(&stage->stopping)) {
        pthread_rwlock_rdlock(&stage->lock);
        look(stage);
        pthread_rwlock_unlock(&stage->lock);
        (void)usleep(100);
    }
    return NULL;
}

static void set_reflector(struct stage *stage, struct reflector *r)
{
    pthread_rwlock_wrlock(&stage->lock);
    stage->reflector = r;
    pthread_rwlock_unlock(&stage->lock);
}

/* One life of a reflector, of `us` microseconds. */
static void live(struct stage *stage, unsigned us)
{
    struct reflector_kind kinds[N_KINDS];
    struct reflector *r = NULL;
    struct error err = {0};
    struct fakeapi *api = fakeapi_start(script, ARRAY_LEN(script));
    for (size_t i = 0; i < N_KINDS; i++)
        kinds[i] = (struct reflector_kind){
            .name = "things",
            .path = "/things",
            .handler = {.put = told, .gone = told},
            .ctx = stage,
        };
    if (reflector_start_tuned(fakeapi_config(api), kinds, N_KINDS, &quick, &r,
                              &err) < 0)
        die(err.text);
    set_reflector(stage, r);
    (void)usleep(us);
    set_reflector(stage, NULL);
    reflector_stop(r);
    fakeapi_stop(api);
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3;
    struct stage stage = {.lock = PTHREAD_RWLOCK_INITIALIZER};
    pthread_t readers[N_READERS];
    unsigned lives = 0;
    log_set_level(LOG_ERROR);
    for (size_t i = 0; i < N_READERS; i++)
        if (pthread_create(&readers[i], NULL, reader_run, &stage))
            die("pthread_create");
    int64_t until = clock_ms() + seconds * 1000;
    while (clock_ms() < until || !atomic_load(&stage.n_told))
        live(&stage, lives++ * 3571 % 150000);
    atomic_store(&stage.stopping, true);
    for (size_t i = 0; i < N_READERS; i++)
        pthread_join(readers[i], NULL);
    printf("race_reflector: %u reflectors, %lu looks, %lu objects\n", lives,
           atomic_load(&stage.n_looks), atomic_load(&stage.n_told));
    return atomic_load(&stage.n_told) ? 0 : 1;
}
