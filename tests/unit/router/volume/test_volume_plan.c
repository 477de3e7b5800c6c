#include "router/volume/volume_plan.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/str.h"

static struct error err;

static void add(struct volume_tree *t, const char *name, enum volume_type type,
                const char *what)
{
    const struct volume_item item = {
        .name = name,
        .type = type,
        .mode = type == VOLUME_LINK ? 0 : 0640,
        .target = type == VOLUME_LINK ? what : NULL,
        .size = type == VOLUME_FILE ? strlen(what) : 0,
        .data = type == VOLUME_FILE ? what : NULL};
    cr_assert_eq(volume_tree_add(t, &item, &err), 0, "%s", err.text);
}

/* As the kubelet has it: file a=`text` in ..`version`, and maybe a file b. */
static struct volume_tree home(const char *version, const char *text, bool b)
{
    struct volume_tree t = {0};
    cleanup_free char *a = xasprintf("%s/a", version);
    cleanup_free char *other = xasprintf("%s/b", version);
    add(&t, "", VOLUME_FOLDER, "");
    add(&t, version, VOLUME_FOLDER, "");
    add(&t, a, VOLUME_FILE, text);
    add(&t, VOLUME_DATA, VOLUME_LINK, version);
    add(&t, "a", VOLUME_LINK, "..data/a");
    if (b) {
        add(&t, other, VOLUME_FILE, "bee");
        add(&t, "b", VOLUME_LINK, "..data/b");
    }
    cr_assert_eq(volume_tree_sort(&t, &err), 0);
    return t;
}

/* What a remote says once it has that. */
static struct volume_tree there(const struct volume_tree *t, const char *at)
{
    struct volume_tree have = {0};
    for (size_t i = 0; i < t->n; i++) {
        struct volume_item item = t->items[i];
        cleanup_free char *name = *item.name ? xasprintf("%s/%s", at, item.name)
                                             : xstrdup(at);
        item.name = name;
        item.data = NULL;
        cr_assert_eq(volume_tree_add(&have, &item, &err), 0);
    }
    cr_assert_eq(volume_tree_sort(&have, &err), 0);
    return have;
}

/* "make x, write x/a" */
static const char *said(const struct volume_plan *p)
{
    static const char *const verbs[] = {"make", "write", "inplace", "lead",
                                        "drop", "tmpfs", "part"};
    static char text[4096];
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < p->n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %s",
                               i ? ", " : "", verbs[p->steps[i].verb],
                               p->steps[i].name);
    return text;
}

Test(volume_plan, all_is_new)
{
    struct volume_plan p = {0};
    struct volume_tree want = home("..1", "one", false);
    volume_plan_tree(&p, "memory/s", &want, NULL);
    cr_expect_str_eq(said(&p), "make memory/s, make memory/s/..1, write "
                               "memory/s/..1/a, lead memory/s/..data, lead "
                               "memory/s/a");
    volume_plan_fini(&p);
    volume_tree_fini(&want);
}

Test(volume_plan, what_is_there_is_not_sent)
{
    struct volume_plan p = {0};
    struct volume_tree want = home("..1", "one", true);
    struct volume_tree have = there(&want, "disk/s");
    volume_plan_tree(&p, "disk/s", &want, &have);
    cr_expect_eq(p.n, 0, "%s", said(&p));
    volume_plan_tree(&p, "disk/other", &want, &have);
    cr_expect_eq(p.n, want.n);
    volume_plan_fini(&p);
    volume_tree_fini(&want);
    volume_tree_fini(&have);
}

Test(volume_plan, an_update_is_data_then_the_link_then_the_rest)
{
    struct volume_plan p = {0};
    struct volume_tree old = home("..1", "one", true);
    struct volume_tree want = home("..2", "two", false);
    struct volume_tree have = there(&old, "disk/s");
    volume_plan_tree(&p, "disk/s", &want, &have);
    cr_expect_str_eq(said(&p), "make disk/s/..2, write disk/s/..2/a, lead "
                               "disk/s/..data, drop disk/s/b, drop "
                               "disk/s/..1");
    volume_plan_fini(&p);
    volume_tree_fini(&old);
    volume_tree_fini(&want);
    volume_tree_fini(&have);
}

Test(volume_plan, half_an_update_is_finished)
{
    struct volume_plan p = {0};
    struct volume_tree want = home("..2", "two", true);
    struct volume_tree half = {0};
    add(&half, "disk/s", VOLUME_FOLDER, "");
    add(&half, "disk/s/..2", VOLUME_FOLDER, "");
    add(&half, "disk/s/..2/a", VOLUME_FILE, "tw");
    cr_assert_eq(volume_tree_sort(&half, &err), 0);
    volume_plan_tree(&p, "disk/s", &want, &half);
    cr_expect_str_eq(said(&p), "write disk/s/..2/a, write disk/s/..2/b, lead "
                               "disk/s/..data, lead disk/s/a, lead disk/s/b");
    volume_plan_fini(&p);
    volume_tree_fini(&want);
    volume_tree_fini(&half);
}

Test(volume_plan, what_is_in_the_way_goes_first)
{
    struct volume_plan p = {0};
    struct volume_tree want = home("..1", "one", false);
    struct volume_tree have = {0};
    add(&have, "disk/s", VOLUME_FOLDER, "");
    add(&have, "disk/s/..1", VOLUME_FILE, "x");
    add(&have, "disk/s/a", VOLUME_FOLDER, "");
    add(&have, "disk/s/a-b", VOLUME_FOLDER, "");
    add(&have, "disk/s/a/x", VOLUME_FILE, "x");
    add(&have, "disk/s/a-b/x", VOLUME_FILE, "x");
    cr_assert_eq(volume_tree_sort(&have, &err), 0);
    volume_plan_tree(&p, "disk/s", &want, &have);
    cr_expect_str_eq(said(&p), "drop disk/s/..1, make disk/s/..1, write "
                               "disk/s/..1/a, lead disk/s/..data, drop "
                               "disk/s/a, lead disk/s/a, drop disk/s/a-b");
    volume_plan_fini(&p);
    volume_tree_fini(&want);
    volume_tree_fini(&have);
}

Test(volume_plan, a_single_file_stays_in_its_inode)
{
    struct volume_plan p = {0};
    struct volume_tree have = {0}, want = {0};
    add(&want, "", VOLUME_FILE, "one");
    volume_plan_file(&p, "disk/etc-hosts", &want.items[0], NULL);
    cr_expect_str_eq(said(&p), "inplace disk/etc-hosts");
    add(&have, "disk/etc-hosts", VOLUME_FILE, "two");
    volume_plan_file(&p, "disk/etc-hosts", &want.items[0], &have);
    cr_expect_eq(p.n, 2);
    have.items[0].hash = want.items[0].hash;
    volume_plan_file(&p, "disk/etc-hosts", &want.items[0], &have);
    cr_expect_eq(p.n, 2);
    have.items[0].hash = 0; /* it does not say */
    volume_plan_file(&p, "disk/etc-hosts", &want.items[0], &have);
    cr_expect_eq(p.n, 3);
    volume_plan_fini(&p);
    volume_tree_fini(&want);
    volume_tree_fini(&have);
}

Test(volume_plan, what_containers_fill_is_made_once)
{
    struct volume_plan p = {0};
    struct volume_tree have = {0}, want = {0};
    add(&want, "", VOLUME_FOLDER, "");
    volume_plan_own(&p, "disk/e", &want.items[0], 0, NULL);
    volume_plan_own(&p, "memory/e", &want.items[0], 4096, NULL);
    cr_expect_str_eq(said(&p), "make disk/e, tmpfs memory/e");
    cr_expect_eq(p.steps[1].limit, 4096);
    add(&have, "disk/e", VOLUME_FOLDER, "");
    have.items[0].mode = 0777;
    volume_plan_own(&p, "disk/e", &want.items[0], 0, &have);
    cr_expect_eq(p.n, 2);
    volume_plan_fini(&p);
    volume_tree_fini(&want);
    volume_tree_fini(&have);
}

Test(volume_plan, what_former_containers_wrote_goes)
{
    struct volume_plan p = {0};
    struct volume_tree have = {0}, want = {0};
    add(&want, "", VOLUME_FILE, "");
    add(&have, "disk/containers/main", VOLUME_FOLDER, "");
    add(&have, "disk/containers/other/1", VOLUME_FILE, "other");
    for (unsigned i = 1; i < VOLUME_OUTPUTS_MAX; i++) {
        cleanup_free char *name = xasprintf("disk/containers/main/%u", i);
        add(&have, name, VOLUME_FILE, "old");
    }
    cr_assert_eq(volume_tree_sort(&have, &err), 0);
    volume_plan_output(&p, "disk/containers/main/1", &want.items[0], &have);
    cr_expect_eq(p.n, 0);
    volume_plan_output(&p, "disk/containers/main/x", &want.items[0], &have);
    cr_expect_str_eq(said(&p), "write disk/containers/main/x");
    volume_plan_fini(&p);
    add(&have, "disk/containers/main/y", VOLUME_FILE, "old");
    cr_assert_eq(volume_tree_sort(&have, &err), 0);
    volume_plan_output(&p, "disk/containers/main/x", &want.items[0], &have);
    cr_expect_eq(p.n, VOLUME_OUTPUTS_MAX + 1);
    cr_expect_eq(p.steps[0].verb, VOLUME_DROP);
    cr_expect_eq(p.steps[VOLUME_OUTPUTS_MAX].verb, VOLUME_WRITE);
    volume_plan_fini(&p);
    volume_tree_fini(&want);
    volume_tree_fini(&have);
}
