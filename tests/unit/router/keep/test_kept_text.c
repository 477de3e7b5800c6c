/* Records as text: the same again, and nothing that was not sealed here. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/lib/router/keeprig.h"

static const struct kept_secret mine = {"one secret of this node"};
static const struct kept_secret other = {"and one of another"};

static void check_same(const struct kept *a, const struct kept *b)
{
    cr_assert_eq(a->kind, b->kind);
    cr_assert_eq(a->attempt, b->attempt);
    cr_assert_eq(a->hash, b->hash);
    cr_assert_eq(a->made_s, b->made_s);
    cr_assert_eq(a->host_network, b->host_network);
    cr_assert_str_eq(a->sandbox_id, b->sandbox_id);
    cr_assert_str_eq(a->remote, b->remote);
    cr_assert_str_eq(a->namespace, b->namespace);
    cr_assert_str_eq(a->name, b->name);
    cr_assert_str_eq(a->uid, b->uid);
    cr_assert_str_eq(a->handler, b->handler);
    cr_assert_str_eq(a->log_directory, b->log_directory);
    cr_assert_str_eq(a->container, b->container);
    cr_assert_str_eq(a->image, b->image);
    cr_assert_str_eq(a->log_path, b->log_path);
}

static void check_round(struct kept k, const char *id)
{
    cleanup_str struct str text = STR_INIT(KEPT_TEXT_MAX);
    cleanup_str struct str sealed = STR_INIT(KEPT_SEALED_MAX);
    cleanup_with(kept) struct kept *whole = kept_with_id(&k, id);
    cleanup_with(kept) struct kept *back = NULL, *said = NULL;
    struct error err = {0};
    bool ours = false;
    kept_text_write(whole, &text);
    cr_assert_eq(kept_text_read(text.data, text.size, &back, &err), 0, "%s",
                 err.text);
    check_same(back, whole);
    cr_assert_str_eq(back->id, id);
    cr_assert_str_eq(back->allocation, whole->allocation);
    cr_assert_eq(back->mounts.size, whole->mounts.size);
    cr_assert_eq(
        memcmp(back->mounts.data, whole->mounts.data, back->mounts.size), 0);
    cr_assert_eq(back->ended.size, *id ? whole->ended.size : 0);
    cr_assert_eq(memcmp(back->ended.data, whole->ended.data, back->ended.size),
                 0);
    kept_seal(whole, &mine, &sealed);
    cr_assert_eq(kept_unseal(str_text(&sealed), &mine, &said, &ours, &err), 0,
                 "%s", err.text);
    cr_assert(ours);
    check_same(said, whole);
    cr_assert_str_eq(said->id, "", "what is sealed is of no id yet");
    cr_assert_eq(said->ended.size, 0, "and has not ended");
}

Test(kept_text, reads_what_it_wrote)
{
    struct kept k = keeprig_sandbox("u-1", 4294967295);
    k.hash = UINT64_MAX;
    k.made_s = 1790000000;
    k.host_network = true;
    k.allocation = "{\"a\":\"\\u0001 \xc3\xa4\"}";
    check_round(k, "");
    check_round(k, "abc");
    k = keeprig_container("u-1", "ab", "c", 0);
    check_round(k, "abd");
    k.ended = (struct proto_bytes){"\x18\x02\0", 3};
    check_round(k, "abd");
}

Test(kept_text, a_seal_is_of_one_node_and_of_every_byte)
{
    cleanup_str struct str text = STR_INIT(KEPT_SEALED_MAX);
    struct kept k = keeprig_container("u-1", "ab", "c", 0);
    bool sealed = true;
    struct kept *said = NULL;
    kept_seal(&k, &mine, &text);
    cr_assert_eq(kept_unseal(text.data, &other, &said, &sealed, NULL), 0);
    cr_assert_not(sealed);
    kept_unref(said);
    for (size_t i = 0; i < text.size; i++) {
        text.data[i] ^= 1;
        said = NULL;
        sealed = false;
        int e = kept_unseal(text.data, &mine, &said, &sealed, NULL);
        cr_assert(e < 0 || !sealed, "byte %zu", i);
        kept_unref(said);
        text.data[i] ^= 1;
    }
    cr_assert_eq(kept_unseal(text.data, &mine, &said, &sealed, NULL), 0);
    cr_assert(sealed, "every byte is as it was");
    kept_unref(said);
}

Test(kept_text, what_makes_an_annotation_too_long_is_left_out)
{
    cleanup_str struct str text = STR_INIT(1 << 20);
    cleanup_free char *mounts = xcalloc(KEPT_MOUNTS_MAX, 1);
    struct kept k = keeprig_container("u-1", "ab", "c", 0);
    cleanup_with(kept) struct kept *said = NULL, *back = NULL;
    cleanup_str struct str row = STR_INIT(KEPT_TEXT_MAX);
    bool sealed = false;
    k.mounts = (struct proto_bytes){mounts, KEPT_MOUNTS_MAX};
    kept_seal(&k, &mine, &text);
    cr_assert_leq(text.size, (size_t)KEPT_SEALED_MAX);
    cr_assert_eq(kept_unseal(text.data, &mine, &said, &sealed, NULL), 0);
    cr_assert(sealed);
    cr_assert_eq(said->mounts.size, 0);
    cr_assert_str_eq(said->log_path, k.log_path);
    kept_text_write(&k, &row);
    cr_assert_eq(kept_text_read(row.data, row.size, &back, NULL), 0);
    cr_assert_eq(back->mounts.size, (size_t)KEPT_MOUNTS_MAX, "it is durable");
}

Test(kept_text, refuses_what_is_none)
{
    static const char *const bad[] = {
        "",
        "v1 ",
        "{}",
        "[]",
        "{\"remote\":\"c\"}",
        "{\"remote\":\"c\",\"namespace\":\"n\",\"name\":\"p\",\"uid\":\"../u\","
        "\"attempt\":0,\"hash\":\"0000000000000000\",\"made\":0}",
        "{\"remote\":\"c\",\"namespace\":\"n\",\"name\":\"p\",\"uid\":\"u\","
        "\"attempt\":-1,\"hash\":\"0000000000000000\",\"made\":0}",
        "{\"remote\":\"c\",\"namespace\":\"n\",\"name\":\"p\",\"uid\":\"u\","
        "\"attempt\":0,\"hash\":\"00000000000000zz\",\"made\":0}",
        "{\"remote\":\"c\",\"namespace\":\"n\",\"name\":\"p\",\"uid\":\"u\","
        "\"attempt\":0,\"hash\":\"0000000000000000\",\"made\":0,"
        "\"container\":\"c\",\"sandbox\":\"a\",\"mounts\":\"!\"}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct kept *k = NULL;
        bool sealed;
        struct error err = {0};
        cr_assert_eq(kept_text_read(bad[i], strlen(bad[i]), &k, &err), -EINVAL,
                     "%s", bad[i]);
        cr_assert(*err.text);
        cr_assert_eq(kept_unseal(bad[i], &mine, &k, &sealed, NULL), -EINVAL);
    }
}
