/* What of a pod's volumes is told to biga-card, and that biga-card makes of it
 * what was wanted. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advertiser/act/card/helper_args.h"
#include "card/card.h"
#include "lib/base/base64.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

enum { BIG = 200000 };

static char big[BIG];
static struct podspec_file files[] = {
    {.path = (char *)"a/b",
     .mode = 0400,
     .data = (char *)"top secret",
     .size = 10},
    {.path = (char *)"none", .mode = 0644},
    {.path = (char *)"big", .mode = 0440, .data = big, .size = BIG},
};
static struct podspec_volume volumes[] = {
    {.name = (char *)"e", .kind = PODSPEC_EMPTY},
    {.name = (char *)"s", .kind = PODSPEC_FILES, .files = files, .n_files = 2},
    {.name = (char *)"m", .kind = PODSPEC_EMPTY, .medium = PODSPEC_MEMORY},
    {.name = (char *)"t",
     .kind = PODSPEC_FILES,
     .files = files + 2,
     .n_files = 1},
};
static const struct podspec spec = {.volumes = volumes, .n_volumes = 4};

/* As the helper is asked and answers. */
static void ask_pad(const char *dir, struct str *out, struct str *text)
{
    cleanup_free char *path = xasprintf("%s.out", dir);
    char id[CARD_PAD_ID_SIZE];
    struct error err = {0};
    size_t n = 0;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    cr_assert_eq(card_pad(dir, helper_args_contents(&spec), fd, id, &err), 0,
                 "%s", err.text);
    close(fd);
    cleanup_free char *data = testdata_read(path, &n);
    (void)unlink(path);
    str_add_n(out, data, n);
    str_addf(text, "pad=%s\n", id);
}

static void expect(const char *dir, const char *name, mode_t mode,
                   const char *data, size_t size)
{
    cleanup_free char *path = xasprintf("%s/volumes/%s", dir, name);
    struct stat st;
    size_t n = 0;
    cr_assert_eq(stat(path, &st), 0, "%s", path);
    cr_expect_eq(st.st_mode & 07777, mode, "%s: %o", name, st.st_mode);
    if (S_ISDIR(st.st_mode))
        return;
    cleanup_free char *got = testdata_read(path, &n);
    cr_assert_eq(n, size, "%s: %zu bytes", name, n);
    cr_expect(size == 0 || memcmp(got, data, size) == 0, "%s", name);
}

Test(act_helper_args, arrives_and_is_hidden_on_the_way)
{
    char *top = tmpdir_create();
    cleanup_free char *dir = xasprintf("%s/u-1", top);
    cleanup_str struct str out = STR_INIT(1 << 20), text = STR_INIT(100);
    cleanup_str struct str clear = STR_INIT(100);
    struct helper_args_pad pad = {0};
    struct helper_args p;
    struct error err = {0};
    for (int i = 0; i < BIG; i++)
        big[i] = (char)(i % 251);
    cr_assert_eq(helper_args_contents(&spec), BIG + 10);
    ask_pad(dir, &out, &text);
    cr_assert_eq(helper_args_pad(&out, &text, BIG + 10, &pad, &err), 0, "%s",
                 err.text);
    helper_args_init(&p, "files", dir);
    helper_args_files(&p, &spec, &pad);
    cr_assert_str_eq(p.argv[0], "/biga-card");
    cr_assert_str_eq(p.argv[1], "files");
    cr_assert_str_eq(p.argv[2], dir);
    base64_add(&clear, "top secret", 10);
    for (size_t i = 0; i < p.n; i++)
        cr_expect(!strstr(p.argv[i], "secret") &&
                      strcmp(p.argv[i], str_text(&clear)) != 0 &&
                      !strstr(p.argv[i], "volumes/m"),
                  "%s", p.argv[i]);
    cr_assert_eq(card_files(dir, p.argv[3], (int)p.n - 4, p.argv + 4, &err), 0,
                 "%s", err.text);
    helper_args_fini(&p);
    expect(dir, "e", 0777, NULL, 0);
    expect(dir, "s", 0755, NULL, 0);
    expect(dir, "s/a", 0755, NULL, 0);
    expect(dir, "s/a/b", 0400, "top secret", 10);
    expect(dir, "s/none", 0644, NULL, 0);
    expect(dir, "t/big", 0440, big, BIG);
    cr_assert_eq(card_remove(dir, &err), 0, "%s", err.text);
    tmpdir_remove(top);
}

Test(act_helper_args, volumes_in_memory_are_elsewhere)
{
    static const char *const wanted[] = {"/biga-card", "memory", "/memory/u",
                                         "m",          "d777",   "0"};
    struct helper_args p;
    cr_assert(helper_args_has(&spec, PODSPEC_DISK));
    cr_assert(helper_args_has(&spec, PODSPEC_MEMORY));
    cr_assert(!helper_args_has(&spec, PODSPEC_HUGEPAGES));
    helper_args_init(&p, "memory", "/memory/u");
    helper_args_memory(&p, &spec);
    cr_assert_eq(p.n, ARRAY_LEN(wanted));
    for (size_t i = 0; i < p.n; i++)
        cr_expect_str_eq(p.argv[i], wanted[i]);
    helper_args_fini(&p);
}

Test(act_helper_args, volumes_of_huge_pages_are_elsewhere_by_size)
{
    static const char *const wanted[] = {"/biga-card", "hugepages", "/h",
                                         "b",          "d777",      "0"};
    struct podspec_volume huge[] = {
        {.name = (char *)"a", .kind = PODSPEC_EMPTY},
        {.name = (char *)"b",
         .kind = PODSPEC_EMPTY,
         .medium = PODSPEC_HUGEPAGES,
         .page = 1 << 21},
        {.name = (char *)"c",
         .kind = PODSPEC_EMPTY,
         .medium = PODSPEC_HUGEPAGES,
         .page = 1 << 30},
    };
    const struct podspec three = {.volumes = huge, .n_volumes = 3};
    struct helper_args p;
    cr_expect(helper_args_has(&three, PODSPEC_HUGEPAGES));
    helper_args_init(&p, "hugepages", "/h");
    helper_args_hugepages(&p, &three, 1 << 21);
    cr_assert_eq(p.n, ARRAY_LEN(wanted));
    for (size_t i = 0; i < p.n; i++)
        cr_expect_str_eq(p.argv[i], wanted[i]);
    helper_args_fini(&p);
    helper_args_init(&p, "files", "/d");
    helper_args_files(&p, &three, NULL);
    cr_expect_eq(p.n, 7u, "the folder a alone");
    helper_args_fini(&p);
}

Test(act_helper_args, folders_alone_need_no_pad)
{
    static const char *const wanted[] = {"/biga-card", "files", "/d", "-",
                                         "volumes/e",  "d777",  "0"};
    const struct podspec empty = {.volumes = volumes, .n_volumes = 1};
    struct helper_args p;
    cr_assert_eq(helper_args_contents(&empty), 0);
    helper_args_init(&p, "files", "/d");
    helper_args_files(&p, &empty, NULL);
    cr_assert_eq(p.n, ARRAY_LEN(wanted));
    for (size_t i = 0; i < p.n; i++)
        cr_expect_str_eq(p.argv[i], wanted[i]);
    helper_args_fini(&p);
}

Test(act_helper_args, a_pad_that_is_none_is_refused)
{
    static const char *const bad[] = {"", "pad=", "pad=00", "biga-card: no"};
    cleanup_str struct str out = STR_INIT(64);
    struct helper_args_pad pad = {0};
    struct error err = {0};
    str_add(&out, "1234");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_str struct str text = STR_INIT(64);
        str_add(&text, bad[i]);
        cr_expect_eq(helper_args_pad(&out, &text, 4, &pad, &err), -EPROTO);
    }
    cleanup_str struct str text = STR_INIT(64);
    str_add(&text, "pad=0123456789abcdef0123456789abcdef\n");
    cr_expect_eq(helper_args_pad(&out, &text, 5, &pad, &err), -EPROTO);
    cr_expect_eq(helper_args_pad(&out, &text, 4, &pad, &err), 0);
    cr_expect_str_eq(pad.id, "0123456789abcdef0123456789abcdef");
}
