/* Records: what is let in, and what two of them have in common. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/lib/router/keeprig.h"

#define ID "0123456789abcdef"

static void check_fails(struct kept k, const char *what)
{
    struct error err = {0};
    cleanup_with(kept) struct kept *copy = kept_copy(&k);
    cr_assert_eq(kept_check(copy, &err), -EINVAL, "%s", what);
    cr_assert(strstr(err.text, what), "%s is not in: %s", what, err.text);
}

Test(kept, a_copy_is_the_same_and_checked)
{
    struct kept k = keeprig_container("u-1", ID, "c", 3);
    cleanup_with(kept) struct kept *a = kept_copy(&k);
    cleanup_with(kept) struct kept *b = kept_with_id(a, "ab");
    char key[KEPT_KEY_SIZE];
    cr_assert_eq(kept_check(a, NULL), 0);
    cr_assert_eq(kept_check(b, NULL), 0);
    cr_assert_eq(a->state, KEPT_ANNOUNCED);
    cr_assert_eq(b->state, KEPT_MADE);
    cr_assert_str_eq(b->id, "ab");
    cr_assert_eq(b->mounts.size, 7);
    cr_assert_eq(memcmp(b->mounts.data, "\0mounts", 7), 0);
    kept_key(b, key);
    cr_assert_str_eq(key, "u-1/c/3");
    k = keeprig_sandbox("u-1", 3);
    kept_key(&k, key);
    cr_assert_str_eq(key, "u-1/3");
}

Test(kept, names_and_paths_are_what_they_must_be)
{
    static const char *const bad[] = {"", "..", "a/b", "a b", "\xc3\xa4"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct kept k = keeprig_container("u", ID, "c", 0);
        k.uid = bad[i];
        check_fails(k, "uid");
        k = keeprig_container("u", ID, "c", 0);
        k.remote = bad[i];
        check_fails(k, "remote");
        k = keeprig_container("u", ID, "c", 0);
        k.container = bad[i];
        check_fails(k, "container");
    }
    struct kept k = keeprig_container("u", ID, "c", 0);
    k.log_path = "/var/log/../etc/shadow";
    check_fails(k, "log_path");
    k.log_path = "relative";
    check_fails(k, "log_path");
    k.log_path = "/a/..";
    check_fails(k, "log_path");
    k = keeprig_container("u", "NOTHEX", "c", 0);
    check_fails(k, "sandbox_id");
    k = keeprig_sandbox("u", 0);
    k.log_directory = "x";
    check_fails(k, "log_directory");
}

Test(kept, ids_are_hexadecimal)
{
    char id[KEPT_ID_MAX + 2];
    cr_assert(kept_id_valid("a"));
    cr_assert_not(kept_id_valid(""));
    cr_assert_not(kept_id_valid("A"));
    cr_assert_not(kept_id_valid("../a"));
    memset(id, 'a', sizeof id - 1);
    id[KEPT_ID_MAX + 1] = '\0';
    cr_assert_not(kept_id_valid(id));
    cr_assert(kept_id_valid(id + 1));
}
