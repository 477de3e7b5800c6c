/* Which images of a remote go: by use, age and room. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"
#include "router/image/image_shelf.h"
#include "router/wire/fields.h"

enum { MINUTE = 60000, GB = 1000000000 };

static const struct image_rules usual = {
    .high = 85, .low = 80, .min_age_ms = 2 * MINUTE};

struct rig {
    struct image_shelf *shelf;
    struct str images, containers;
    struct image_goes goes[8];
};

static void begin(struct rig *r)
{
    *r = (struct rig){.shelf = image_shelf_create(),
                      .images = STR_INIT(1 << 20),
                      .containers = STR_INIT(1 << 20)};
}

static void end(struct rig *r)
{
    image_shelf_destroy(r->shelf);
    str_fini(&r->images);
    str_fini(&r->containers);
}

static void add_image(struct rig *r, const char *id, const char *name,
                      uint64_t size)
{
    size_t at = proto_open(&r->images, 1);
    proto_add_text(&r->images, CRI_Image_id, id);
    proto_add_text(&r->images, CRI_Image_repo_tags, name);
    proto_add_varint(&r->images, CRI_Image_size, size);
    proto_close(&r->images, at);
}

static void add_container(struct rig *r, const char *image, const char *ref)
{
    size_t at = proto_open(&r->containers, 1), within;
    within = proto_open(&r->containers, CRI_Container_image);
    proto_add_text(&r->containers, CRI_ImageSpec_image, image);
    proto_close(&r->containers, within);
    proto_add_text(&r->containers, CRI_Container_image_ref, ref);
    proto_close(&r->containers, at);
}

static void see(struct rig *r, int64_t now_ms)
{
    struct error err = {0};
    cr_assert_eq(
        image_shelf_see(
            r->shelf, "biga-card:1",
            (struct proto_bytes){r->images.data, r->images.size},
            (struct proto_bytes){r->containers.data, r->containers.size},
            now_ms, &err),
        0, "%s", err.text);
}

/* What goes, as "ID(WHY) ID(WHY)". */
static const char *plan(struct rig *r, const struct image_rules *rules,
                        const struct image_disk *disk, bool full,
                        int64_t now_ms)
{
    static char text[256];
    size_t n = image_shelf_plan(r->shelf, rules, disk, full, now_ms, r->goes,
                                ARRAY_LEN(r->goes));
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       "%s%s(%s)", i ? " " : "", r->goes[i].id, r->goes[i].why);
    return text;
}

Test(image_shelf, those_go_that_were_used_least_recently)
{
    const struct image_disk ok = {100ULL * GB, 16ULL * GB};
    const struct image_disk tight = {100ULL * GB, 15ULL * GB};
    const struct image_disk worse = {100ULL * GB, 10ULL * GB};
    struct rig r;
    begin(&r);
    add_image(&r, "aa", "a:1", 5ULL * GB);
    add_image(&r, "bb", "b:1", 5ULL * GB);
    add_image(&r, "cc", "c:1", 5ULL * GB);
    add_container(&r, "a:1", "aa");
    see(&r, 0);
    str_reset(&r.containers);
    see(&r, 5LL * MINUTE);
    cr_expect_str_eq(plan(&r, &usual, &ok, false, 5LL * MINUTE), "");
    cr_expect_str_eq(plan(&r, &usual, &tight, false, 5LL * MINUTE), "aa(disk)");
    add_container(&r, "a:1", "aa");
    see(&r, 10LL * MINUTE);
    str_reset(&r.containers);
    see(&r, 15LL * MINUTE);
    cr_expect_str_eq(plan(&r, &usual, &tight, false, 15LL * MINUTE), "bb(disk)",
                     "a was used since");
    cr_expect_str_eq(plan(&r, &usual, &worse, false, 15LL * MINUTE),
                     "bb(disk) cc(disk)");
    end(&r);
}

Test(image_shelf, what_is_used_stays_by_any_of_its_names)
{
    static const struct {
        const char *id, *tag, *image, *ref;
    } all[] = {
        {"sha256:aa", "docker.io/library/a:1", "x", "sha256:aa"},
        {"sha256:aa", "docker.io/library/a:1", "x", "aa"},
        {"aa", "docker.io/library/a:latest", "a", ""},
        {"aa", "docker.io/library/a:1", "library/a:1", ""},
        {"aa", "r.example/a:1", "r.example/a:1", ""},
        {"aa", "r.example/a@sha256:bb", "x", "r.example/a@sha256:bb"},
        {"aa", "docker.io/library/biga-card:1", "x", ""},
        {"aa", "registry.k8s.io/pause:3.9", "x", ""},
        {"aa", "docker.io/library/biga-pause:1.0", "x", ""},
    };
    const struct image_disk none = {0, 0};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct rig r;
        begin(&r);
        add_image(&r, all[i].id, all[i].tag, GB);
        add_image(&r, "other", "docker.io/library/zz:latest", GB);
        add_container(&r, all[i].image, all[i].ref);
        see(&r, 0);
        cr_expect_str_eq(plan(&r, &usual, &none, true, 5LL * MINUTE),
                         "other(disk)", "%zu", i);
        end(&r);
    }
}

Test(image_shelf, what_was_just_pulled_stays)
{
    const struct image_disk none = {0, 0};
    struct rig r;
    begin(&r);
    add_image(&r, "aa", "a:1", GB);
    see(&r, 0);
    add_image(&r, "bb", "b:1", GB);
    see(&r, MINUTE);
    cr_expect_str_eq(plan(&r, &usual, &none, true, 2LL * MINUTE), "aa(disk)");
    cr_expect_str_eq(plan(&r, &usual, &none, false, 2LL * MINUTE), "");
    end(&r);
}

Test(image_shelf, by_age_whatever_room_there_is)
{
    struct image_rules rules = usual;
    const struct image_disk empty = {100ULL * GB, 100ULL * GB};
    struct rig r;
    rules.max_age_ms = 60LL * MINUTE;
    begin(&r);
    add_image(&r, "aa", "a:1", GB);
    add_image(&r, "bb", "b:1", GB);
    add_container(&r, "b:1", "bb");
    see(&r, 0);
    str_reset(&r.containers);
    add_container(&r, "b:1", "bb");
    see(&r, 30LL * MINUTE);
    cr_expect_str_eq(plan(&r, &rules, &empty, false, 60LL * MINUTE), "");
    cr_expect_str_eq(plan(&r, &rules, &empty, false, 61LL * MINUTE), "aa(age)");
    str_reset(&r.containers);
    see(&r, 89LL * MINUTE);
    cr_expect_str_eq(plan(&r, &rules, &empty, false, 91LL * MINUTE),
                     "aa(age) bb(age)");
    end(&r);
}

Test(image_shelf, a_disk_that_cannot_be_is_none)
{
    static const struct image_disk all[] = {
        {0, 0}, {99, 0}, {GB, 2ULL * GB}, {UINT64_MAX, UINT64_MAX}};
    struct rig r;
    begin(&r);
    add_image(&r, "aa", "a:1", UINT64_MAX);
    add_image(&r, "bb", "b:1", UINT64_MAX);
    see(&r, 0);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        cr_expect_str_eq(plan(&r, &usual, &all[i], false, 5LL * MINUTE), "");
    end(&r);
}

Test(image_shelf, what_is_no_reply_changes_nothing)
{
    const struct image_disk none = {0, 0};
    struct rig r;
    struct error err = {0};
    char bad[] = "\x0a\x7f";
    begin(&r);
    add_image(&r, "aa", "a:1", GB);
    see(&r, 0);
    const struct proto_bytes good = {r.images.data, r.images.size};
    const struct proto_bytes wrong = {bad, 2}, nothing = {"", 0};
    cr_expect_eq(image_shelf_see(r.shelf, "", wrong, nothing, 1, &err),
                 -EPROTO);
    cr_expect_eq(image_shelf_see(r.shelf, "", good, wrong, 1, &err), -EPROTO);
    cr_expect_str_eq(plan(&r, &usual, &none, true, 5LL * MINUTE), "aa(disk)");
    str_reset(&r.images);
    add_image(&r, "a a", "a:1", GB);
    see(&r, MINUTE);
    cr_expect_str_eq(plan(&r, &usual, &none, true, 5LL * MINUTE), "",
                     "aa is gone, and the other's id is none");
    end(&r);
}

Test(image_shelf, has_a_limit)
{
    const struct image_disk none = {0, 0};
    struct rig r;
    char id[16];
    begin(&r);
    for (int i = 0; i < IMAGE_SHELF_MAX + 1; i++) {
        (void)snprintf(id, sizeof id, "%x", i + 1);
        add_image(&r, id, "", GB);
    }
    see(&r, 0);
    static struct image_goes goes[IMAGE_SHELF_MAX + 2];
    cr_expect_eq(image_shelf_plan(r.shelf, &usual, &none, true, 5LL * MINUTE,
                                  goes, ARRAY_LEN(goes)),
                 IMAGE_SHELF_MAX);
    end(&r);
}
