#include "router/volume/volume_listing.h"

#include <criterion/criterion.h>
#include <string.h>

static struct error err;

#define READ(text, tree) volume_listing_read(text, sizeof(text) - 1, tree, &err)

Test(volume_listing, says_what_is_there)
{
    struct volume_tree t;
    cr_assert_eq(READ("f 640 7 8 3 9f memory/b c\0"
                      "l 0 0 0 0 0 memory/a\0"
                      "b c\0"
                      "d 2755 0 0 0 0 disk/d\0"
                      "end 3\0",
                      &t),
                 0, "%s", err.text);
    const struct volume_item *f = volume_tree_find(&t, "memory/b c");
    cr_assert_not_null(f);
    cr_expect(f->type == VOLUME_FILE && f->mode == 0640 && f->uid == 7 &&
              f->gid == 8 && f->size == 3 && f->hash == 0x9f && !f->data);
    cr_expect_str_eq(volume_tree_find(&t, "memory/a")->target, "b c");
    cr_expect_eq(volume_tree_find(&t, "disk/d")->mode, 02755);
    volume_tree_fini(&t);
    cr_expect_eq(READ("end 0\0", &t), 0);
    cr_expect_eq(t.n, 0);
    volume_tree_fini(&t);
}

Test(volume_listing, links_of_others_are_nobodys)
{
    struct volume_tree t;
    cr_assert_eq(READ("l 0 0 0 0 0 disk/a\0/etc\0end 1\0", &t), 0);
    cr_expect_str_eq(volume_tree_find(&t, "disk/a")->target, "?");
    volume_tree_fini(&t);
}

Test(volume_listing, what_is_against_the_form_is_refused)
{
    static const struct {
        const char *text;
        size_t size;
    } bad[] = {
#define BAD(t) {t, sizeof(t) - 1}
        BAD(""),
        BAD("end 0"),
        BAD("end 1\0"),
        BAD("end 0\0x"),
        BAD("d 755 0 0 0 0 disk/a\0"),
        BAD("d 755 0 0 0 0 disk/a\0d 755 0 0 0 0 disk/a\0end 2\0"),
        BAD("x 755 0 0 0 0 disk/a\0end 1\0"),
        BAD("d 10000 0 0 0 0 disk/a\0end 1\0"),
        BAD("d 755 -1 0 0 0 disk/a\0end 1\0"),
        BAD("d 755 4294967296 0 0 0 disk/a\0end 1\0"),
        BAD("f 755 0 0 18446744073709551616 0 disk/a\0end 1\0"),
        BAD("d 755 0 0 0 0 /etc\0end 1\0"),
        BAD("d 755 0 0 0 0 disk/../a\0end 1\0"),
        BAD("d 755 0 0 0 0 other/a\0end 1\0"),
        BAD("d 755 0 0 0 disk/a\0end 1\0"),
        BAD("l 0 0 0 0 0 disk/a\0"),
        BAD("\0end 0\0"),
    };
    struct volume_tree t = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_eq(volume_listing_read(bad[i].text, bad[i].size, &t, &err),
                     -EPROTO, "%zu: %s", i, bad[i].text);
    cr_expect_eq(t.n, 0);
}
