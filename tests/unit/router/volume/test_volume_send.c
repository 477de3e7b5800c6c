#include "router/volume/volume_send.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/base64.h"
#include "tests/lib/card/cardexec.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

static struct error err;
static char *top, *disk, *memory;
static struct cardexec *card;
static struct volume_place place;
static struct volume_tree want;
static struct volume_plan plan;

static void begin(void)
{
    top = tmpdir_create();
    disk = xasprintf("%s/disk/pods/u", top);
    memory = xasprintf("%s/memory/u", top);
    card = cardexec_create();
    place = (struct volume_place){.exec = cardexec_run,
                                  .ctx = card,
                                  .remote = "card-0",
                                  .disk = disk,
                                  .memory = memory};
}

static void end(void)
{
    volume_plan_fini(&plan);
    volume_tree_fini(&want);
    cardexec_destroy(card);
    tmpdir_remove(top);
    free(disk);
    free(memory);
}

TestSuite(volume_send, .init = begin, .fini = end);

static void add(const char *name, enum volume_type type, const char *data,
                size_t size)
{
    const struct volume_item item = {
        .name = name,
        .type = type,
        .mode = type == VOLUME_FOLDER ? 0755 : 0640,
        .uid = geteuid(),
        .gid = getegid(),
        .target = type == VOLUME_LINK ? data : NULL,
        .size = size,
        .data = type == VOLUME_FILE ? data : NULL};
    cr_assert_eq(volume_tree_add(&want, &item, &err), 0, "%s", err.text);
}

static int send_all(const char *at)
{
    struct volume_tree have = {0};
    volume_plan_fini(&plan);
    int rc = volume_send_look(&place, &have, &err);
    if (!rc) {
        cr_assert_eq(volume_tree_sort(&want, &err), 0);
        volume_plan_tree(&plan, at, &want, &have);
        rc = volume_send_plan(&place, &plan, &err);
    }
    volume_tree_fini(&have);
    return rc;
}

static char *content(const char *name)
{
    cleanup_free char *path = xasprintf("%s/%s", memory, name);
    return access(path, R_OK) == 0 ? testdata_read(path, NULL) : NULL;
}

Test(volume_send, what_is_planned_is_there)
{
    cleanup_str struct str hidden = STR_INIT(100);
    add("", VOLUME_FOLDER, NULL, 0);
    add("..1", VOLUME_FOLDER, NULL, 0);
    add("..1/a", VOLUME_FILE, "nobody may see this", 19);
    add("..1/none", VOLUME_FILE, "", 0);
    add(VOLUME_DATA, VOLUME_LINK, "..1", 0);
    add("a", VOLUME_LINK, "..data/a", 0);
    cr_assert_eq(send_all("memory/s"), 0, "%s", err.text);
    cleanup_free char *a = content("s/a"), *none = content("s/..data/none");
    cr_expect_str_eq(a, "nobody may see this");
    cr_expect_str_eq(none, "");
    base64_add(&hidden, "nobody may see this", 18);
    cr_expect(!cardexec_seen(card, "nobody may see this"));
    cr_expect(!cardexec_seen(card, str_text(&hidden)));
    cr_expect_eq(cardexec_calls(card, "volume"), 1);
    /* and then nothing is to be done */
    cr_assert_eq(send_all("memory/s"), 0);
    cr_expect_eq(plan.n, 0);
    cr_expect_eq(cardexec_calls(card, "volume"), 1);
}

Test(volume_send, much_goes_in_several_calls)
{
    size_t size = VOLUME_FILE_MAX;
    cleanup_free char *data = xmalloc(size);
    memset(data, 'x', size);
    add("", VOLUME_FOLDER, NULL, 0);
    for (char name[8] = "0"; name[0] < '5'; name[0]++)
        add(name, VOLUME_FILE, data, size);
    for (unsigned i = 0; i < 3000; i++) {
        cleanup_free char *name = xasprintf("n%u-%0150u", i, i);
        add(name, VOLUME_FILE, "y", 1);
    }
    cr_assert_eq(send_all("memory/s"), 0, "%s", err.text);
    cleanup_free char *last = content("s/4");
    cr_expect(last && strlen(last) == size && !strchr(last, 'y'));
    cr_expect(cardexec_calls(card, "volume") >= 6);
    /* of the 2 MiB that Linux gives where a stack has 8 MiB */
    cr_expect(cardexec_args(card) < 1900000, "%zu", cardexec_args(card));
    cr_assert_eq(send_all("memory/s"), 0);
    cr_expect_eq(plan.n, 0);
}

Test(volume_send, what_fails_is_told_and_done_later)
{
    add("", VOLUME_FOLDER, NULL, 0);
    add("a", VOLUME_FILE, "one", 3);
    cardexec_fail(card, "volume", EAGAIN, 1);
    cr_expect_eq(send_all("memory/s"), -EAGAIN);
    cardexec_fail(card, "volume", ETIMEDOUT, -1);
    cr_expect_eq(send_all("memory/s"), -ETIMEDOUT);
    cr_expect_eq(send_all("memory/s"), 0, "%s", err.text);
    cr_expect_eq(plan.n, 0, "it was done, and nobody had heard of it");
}

Test(volume_send, its_own_words_are_told)
{
    cleanup_free char *file = xasprintf("%s/memory", top);
    FILE *f = fopen(file, "w");
    cr_assert(f && fclose(f) == 0);
    add("", VOLUME_FOLDER, NULL, 0);
    cr_expect_eq(send_all("memory/s"), -EIO);
    cr_expect(strstr(err.text, "biga-card"), "%s", err.text);
    cr_expect(strstr(err.text, "card-0"), "%s", err.text);
    cr_expect(!strchr(err.text, '\n'), "%s", err.text);
}

Test(volume_send, last_is_the_end_of_a_file)
{
    cleanup_str struct str text = STR_INIT(100);
    cr_expect_eq(volume_send_last(&place, "memory/s/a", 4, &text, &err),
                 -ENOENT);
    add("", VOLUME_FOLDER, NULL, 0);
    add("a", VOLUME_FILE, "foobar", 6);
    cr_assert_eq(send_all("memory/s"), 0);
    cr_expect_eq(volume_send_last(&place, "memory/s/a", 4, &text, &err), 0);
    cr_expect_str_eq(str_text(&text), "obar");
}

Test(volume_send, all_of_a_pod_goes)
{
    cleanup_str struct str names = STR_INIT(100);
    cleanup_free char *pods = xasprintf("%s/disk/pods", top);
    cleanup_free char *above = xasprintf("%s/memory", top);
    const struct volume_place all = {.exec = cardexec_run,
                                     .ctx = card,
                                     .remote = "card-0",
                                     .disk = pods,
                                     .memory = above};
    add("", VOLUME_FOLDER, NULL, 0);
    cr_assert_eq(send_all("memory/s"), 0);
    cr_assert_eq(volume_send_pods(&all, &names, &err), 0, "%s", err.text);
    cr_expect_eq(names.size, 4);
    cr_expect_eq(memcmp(str_text(&names), "u\0u\0", 4), 0);
    cr_assert_eq(volume_send_remove(&place, &err), 0, "%s", err.text);
    cr_expect_neq(access(disk, F_OK), 0);
    cr_expect_neq(access(memory, F_OK), 0);
    cr_assert_eq(volume_send_remove(&place, &err), 0, "%s", err.text);
    str_reset(&names);
    cr_assert_eq(volume_send_pods(&all, &names, &err), 0);
    cr_expect_eq(names.size, 0);
}
