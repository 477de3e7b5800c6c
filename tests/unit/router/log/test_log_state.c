#include "router/log/log_state.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/tmpdir.h"

static struct error err;

static const struct log_state some = {
    .now = {.device = 1, .inode = 22, .base = -7},
    .before = {.device = 1, .inode = 21, .base = 0},
    .kept = 1000,
};

Test(log_state, keys_are_names_of_files)
{
    cr_expect(log_key_ok("uid-1_main.0"));
    cr_expect(!log_key_ok(""));
    cr_expect(!log_key_ok("."));
    cr_expect(!log_key_ok("../x"));
    cr_expect(!log_key_ok("a/b"));
    cr_expect(!log_key_ok("a b"));
    char key[LOG_KEY_MAX + 2];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    cr_expect(!log_key_ok(key));
    cr_expect(log_key_ok(key + 1));
}

Test(log_state, survives_the_disk)
{
    char *top = tmpdir_create();
    struct log_state got = {0};
    int dir = open(top, O_RDONLY | O_DIRECTORY);
    cr_expect_eq(log_state_load(dir, "k", &got, &err), -ENOENT);
    cr_assert_eq(log_state_save(dir, "k", &some, &err), 0, "%s", err.text);
    cr_assert_eq(log_state_load(dir, "k", &got, &err), 0, "%s", err.text);
    cr_expect_eq(memcmp(&got, &some, sizeof got), 0);
    cr_expect_eq(log_state_remove(dir, "k", &err), 0);
    cr_expect_eq(log_state_remove(dir, "k", &err), 0);
    cr_expect_eq(log_state_load(dir, "k", &got, &err), -ENOENT);
    (void)close(dir);
    tmpdir_remove(top);
}

Test(log_state, no_damaged_one_is_taken)
{
    struct str text = STR_INIT(LOG_STATE_TEXT_MAX);
    struct log_state got;
    log_state_encode(&some, &text);
    cr_assert_eq(log_state_decode(text.data, text.size, &got, &err), 0);
    for (size_t i = 0; i < text.size; i++) {
        cr_expect_eq(log_state_decode(text.data, i, &got, &err), -EINVAL);
        text.data[i] ^= 1;
        int rc = log_state_decode(text.data, text.size, &got, &err);
        text.data[i] ^= 1;
        /* but for blanks, which say nothing */
        cr_expect(rc == -EINVAL || memcmp(&got, &some, sizeof got) == 0,
                  "byte %zu", i);
    }
    str_fini(&text);
}

static struct log_resume resume(const struct log_seen *seen, size_t n,
                                size_t named)
{
    struct log_resume r;
    log_state_resume(&some, seen, n, named, &r);
    return r;
}

Test(log_state, the_files_size_decides)
{
    struct log_seen seen[] = {{1, 21, 500}, {1, 22, 2007}, {1, 23, 5}};
    struct log_resume r = resume(seen, 2, 1);
    cr_expect_eq(r.how, LOG_RESUME_SAME);
    cr_expect_eq(r.next, 2000u);
    cr_expect(!r.unsure);
    r = resume(seen, 2, 2);
    cr_expect_eq(r.how, LOG_RESUME_RENAMED, "renamed, and not opened anew");
    cr_expect_eq(r.file, 1u);
    cr_expect_eq(r.next, 2000u);
    r = resume(seen, 3, 2);
    cr_expect_eq(r.how, LOG_RESUME_OTHER, "opened anew, and not noted");
    cr_expect_eq(r.next, 2000u);
}

Test(log_state, a_file_that_is_gone_is_made_up_for)
{
    struct log_seen seen[] = {{1, 21, 1500}, {2, 22, 9000}};
    struct log_resume r = resume(seen, 2, 0);
    cr_expect_eq(r.how, LOG_RESUME_OTHER);
    cr_expect_eq(r.next, 1500u, "the one before was taken back");
    seen[0].size = 100;
    cr_expect_eq(resume(seen, 2, 0).next, 1000u, "but what is durable is");
    cr_expect_eq(resume(seen + 1, 1, 1).next, 1000u);
    cr_expect(resume(seen + 1, 1, 1).unsure);
}
