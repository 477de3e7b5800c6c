#include "router/volume/volume_watch.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/io/clock.h"
#include "tests/lib/card/kubeletdir.h"
#include "tests/lib/tmpdir.h"

static char *top;
static struct volume_watch *w;

static void begin(void)
{
    top = tmpdir_create();
    w = volume_watch_create();
}

static void end(void)
{
    volume_watch_destroy(w);
    tmpdir_remove(top);
}

TestSuite(volume_watch, .init = begin, .fini = end, .timeout = 120);

static uint64_t next(void)
{
    uint64_t id = 0;
    cr_assert_eq(volume_watch_wait(w, INT64_MAX, &id, 1), 1);
    return id;
}

#define UPDATE(volume, text)                         \
    kubeletdir_update(top, "u", "configmap", volume, \
                      (const char *const[]){text, NULL})

static char *folder(const char *volume)
{
    return xasprintf("%s/pods/u/volumes/kubernetes.io~configmap/%s", top,
                     volume);
}

Test(volume_watch, an_update_of_a_volume_is_told)
{
    cleanup_free char *one = folder("one"), *two = folder("two");
    UPDATE("one", "a=1");
    UPDATE("two", "a=1");
    uint64_t a = volume_watch_add(w, one), b = volume_watch_add(w, two);
    cr_expect(a > 0 && b > 0 && a != b);
    UPDATE("two", "a=2");
    cr_expect_eq(next(), b);
    UPDATE("one", "a=2");
    cr_expect_eq(next(), a);
}

Test(volume_watch, a_file_is_told_whoever_is_beside_it)
{
    cleanup_free char *file = xasprintf("%s/etc-hosts", top);
    cleanup_free char *other = xasprintf("%s/other", top);
    cleanup_free char *new = xasprintf("%s/new", top);
    kubeletdir_write(file, "1");
    kubeletdir_write(other, "1");
    uint64_t a = volume_watch_add(w, file), b = volume_watch_add(w, other);
    kubeletdir_write(file, "2");
    cr_expect_eq(next(), a);
    kubeletdir_write(other, "2");
    cr_expect_eq(next(), b);
    kubeletdir_write(new, "3");
    cr_assert_eq(rename(new, file), 0);
    cr_expect_eq(next(), a);
}

Test(volume_watch, what_is_not_there_yet_is_looked_for)
{
    cleanup_free char *one = folder("one");
    uint64_t a = volume_watch_add(w, one);
    cr_expect_eq(next(), a);
    UPDATE("one", "a=1");
    cr_expect_eq(next(), a);
}

Test(volume_watch, who_is_gone_is_not_told)
{
    cleanup_free char *one = folder("one"), *two = folder("two");
    UPDATE("one", "a=1");
    UPDATE("two", "a=1");
    uint64_t a = volume_watch_add(w, one), again = volume_watch_add(w, one);
    uint64_t b = volume_watch_add(w, two);
    volume_watch_remove(w, a);
    UPDATE("one", "a=2");
    cr_expect_eq(next(), again);
    volume_watch_remove(w, again);
    UPDATE("one", "a=3");
    UPDATE("two", "a=3");
    cr_expect_eq(next(), b);
}

Test(volume_watch, a_wake_ends_it)
{
    uint64_t id;
    volume_watch_wake(w);
    cr_expect_eq(volume_watch_wait(w, INT64_MAX, &id, 1), 0);
    cr_expect_eq(volume_watch_wait(w, clock_ms(), &id, 1), 0);
}
