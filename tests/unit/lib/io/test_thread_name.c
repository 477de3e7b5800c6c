#include "lib/io/thread_name.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

struct named {
    const char *what, *whose, *name;
    pthread_barrier_t *barrier;
};

static void *run(void *arg)
{
    const struct named *n = arg;
    thread_name(n->what, n->whose);
    (void)pthread_barrier_wait(n->barrier); /* it has its name */
    (void)pthread_barrier_wait(n->barrier); /* it was seen */
    return NULL;
}

/* The names of all threads of this process, each in a line. */
static void add_names(struct str *out)
{
    struct dirent *entry;
    char line[64];
    DIR *dir = opendir("/proc/self/task");
    cr_assert_not_null(dir);
    while ((entry = readdir(dir))) {
        cleanup_free char *path = xasprintf("/proc/self/task/%s/comm",
                                            entry->d_name);
        cleanup_file FILE *f = fopen(path, "re");
        if (f && fgets(line, sizeof line, f))
            str_addf(out, "\n%s", line);
    }
    (void)closedir(dir);
}

Test(thread_name, is_seen_from_outside, .timeout = 60)
{
    pthread_barrier_t barrier;
    struct named list[] = {
        {"writer", NULL, "writer", &barrier},
        {"list", "card-0000-17-00", "list 0000-17-00", &barrier},
        {"volumes", "card-0000-17-00", "volumes 17-00", &barrier},
        {"list", "0000:18:00.0", "list 18:00.0", &barrier},
        {"log0", "card0", "log0 card0", &barrier},
        {"sweep", "abcdefghijklmnop", "sweep hijklmnop", &barrier},
        {"as long as it is", "card0", "as long as it i", &barrier},
    };
    pthread_t threads[ARRAY_LEN(list)];
    cleanup_str struct str names = STR_INIT(4096);
    (void)pthread_barrier_init(&barrier, NULL, ARRAY_LEN(list) + 1);
    for (size_t i = 0; i < ARRAY_LEN(list); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run, &list[i]), 0);
    (void)pthread_barrier_wait(&barrier);
    add_names(&names);
    (void)pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        cleanup_free char *line = xasprintf("\n%s\n", list[i].name);
        (void)pthread_join(threads[i], NULL);
        cr_expect(strstr(str_text(&names), line), "no %s in%s", list[i].name,
                  str_text(&names));
    }
    (void)pthread_barrier_destroy(&barrier);
}
