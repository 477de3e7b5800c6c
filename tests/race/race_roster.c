/* Names are added to the index that rosters share while others look for names
 * in older rosters, and derive rosters of their own from them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/roster/roster.h"
#include "lib/base/mem.h"
#include "lib/base/thread_safety.h"

enum { NAMES = 1500, NAME_SIZE = 16, READERS = 2, LOOKS = 64, DERIVED = 37 };

/* Those of even numbers come, in their order. */
struct shared {
    pthread_mutex_t lock;
    struct roster *now;
    size_t n; /* names that it has */
};

static void die(const char *what)
{
    (void)fprintf(stderr, "race_roster: %s\n", what);
    exit(1);
}

static const char *name_of(size_t number, char name[NAME_SIZE])
{
    (void)snprintf(name, NAME_SIZE, "node-%05zu", number);
    return name;
}

static struct roster *take(struct shared *s, size_t *ret_n)
{
    hold_lock(&s->lock);
    *ret_n = s->n;
    return roster_ref(s->now);
}

/* The roster's, and a name behind the first `at`. */
static struct roster *derive(const struct roster *r, size_t n, size_t at,
                             size_t number)
{
    char name[NAME_SIZE];
    const struct roster_run runs[] = {
        {.n = at},
        {.name = name_of(number, name), .n = 1},
        {.from = at, .n = n - at},
    };
    return roster_derive(r, runs, ARRAY_LEN(runs));
}

static int32_t find(const struct roster *r, size_t number)
{
    char name[NAME_SIZE];
    (void)name_of(number, name);
    return roster_find(r, name, strlen(name));
}

static void look(const struct roster *r, size_t n, unsigned *seed)
{
    for (int i = 0; i < LOOKS; i++) {
        size_t at = (size_t)rand_r(seed) % NAMES;
        int32_t found = find(r, 2 * at);
        if (found != (at < n ? (int32_t)at : ROSTER_NONE))
            die("a name has another place");
    }
}

static void *read_and_derive(void *ctx)
{
    struct shared *s = ctx;
    unsigned seed = 7;
    for (size_t n = 0; n < NAMES;) {
        struct roster *r = take(s, &n);
        look(r, n, &seed);
        if (n > 0 && n % DERIVED == 0) {
            struct roster *own = derive(r, n, n / 2, 2 * (n / 2) - 1);
            look(r, n, &seed);
            if (find(own, 2 * (n / 2) - 1) != (int32_t)(n / 2))
                die("what came here is not found");
            roster_unref(own);
        }
        roster_unref(r);
    }
    return NULL;
}

int main(void)
{
    struct shared s = {.lock = PTHREAD_MUTEX_INITIALIZER,
                       .now = roster_create(NULL, 0)};
    pthread_t readers[READERS];
    for (int i = 0; i < READERS; i++)
        if (pthread_create(&readers[i], NULL, read_and_derive, &s))
            die("no thread");
    for (size_t n = 0; n < NAMES; n++) {
        struct roster *next = derive(s.now, n, n, 2 * n), *old = s.now;
        pthread_mutex_lock(&s.lock);
        s.now = next;
        s.n = n + 1;
        pthread_mutex_unlock(&s.lock);
        roster_unref(old);
    }
    for (int i = 0; i < READERS; i++)
        (void)pthread_join(readers[i], NULL); /* never fails */
    roster_unref(s.now);
    (void)printf("race_roster: %d names came\n", NAMES);
    return 0;
}
