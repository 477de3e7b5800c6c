#include "extender/leader/drain_entry.h"

#include <criterion/criterion.h>
#include <string.h>

Test(drain_entry, there_and_back)
{
    struct card_bar drain = {.drains = true,
                             .evict = true,
                             .card = "card-0",
                             .since = "2026-01-02T03:04:05Z",
                             .by = "ann",
                             .reason = "new \"fw\""};
    struct card_bar back = {.card = "card-0"};
    cleanup_str struct str text = STR_INIT(DRAIN_TEXT_MAX);
    char key[DRAIN_KEY_MAX + 1], node[DEMAND_NAME_MAX + 1];
    char card[TOPO_ID_MAX + 1];
    struct error err = {0};
    card_drain_explain(&drain);
    drain_entry_write(&drain, &text);
    cr_assert_eq(drain_entry_read(text.data, text.size, &back, &err), 0, "%s",
                 err.text);
    cr_expect(card_bar_is_same(&drain, &back));
    cr_expect_str_eq(back.by, "ann");
    cr_assert_eq(drain_entry_key("n.a-b", "card-0", key, &err), 0);
    cr_expect_str_eq(key, "n.a-b_card-0");
    cr_assert_eq(drain_entry_read_key(key, node, card, &err), 0);
    cr_expect_str_eq(node, "n.a-b");
    cr_expect_str_eq(card, "card-0");
    cr_assert_eq(drain_entry_key("n", "", key, &err), 0);
    cr_assert_eq(drain_entry_read_key(key, node, card, &err), 0);
    cr_expect_str_eq(node, "n");
    cr_expect_str_eq(card, "");
}

Test(drain_entry, is_written_beside_others)
{
    const struct card_bar drain = {
        .drains = true, .card = "card-0", .since = "S", .reason = "new \"fw\""};
    cleanup_str struct str patch = STR_INIT(DRAIN_TEXT_MAX);
    struct error err = {0};
    cr_assert_eq(drain_entry_patch("n", &drain, &patch, &err), 0);
    cr_expect_str_eq(str_text(&patch),
                     "{\"data\":{\"n_card-0\":\"{\\\"reason\\\":\\\"new "
                     "\\\\\\\"fw\\\\\\\"\\\",\\\"since\\\":\\\"S\\\","
                     "\\\"evict\\\":false}\"}}");
    str_reset(&patch);
    cr_assert_eq(drain_entry_remove("n~/", &drain, &patch, &err), 0);
    cr_expect_str_eq(str_text(&patch),
                     "[{\"op\":\"remove\",\"path\":\"/data/n~0~1_card-0\"}]");
}

Test(drain_entry, what_is_wrong_is_named)
{
    static const char *const keys[] = {"", "_card", "n_"};
    static const char *const texts[][2] = {
        {"", "byte"},
        {"{}", "reason"},
        {"{\"reason\":\"\"}", "reason"},
        {"{\"reason\":\"r\",\"evict\":1}", "evict"},
        {"{\"reason\":\"r\",\"by\":[]}", "by"}};
    char key[DRAIN_KEY_MAX + 1], node[DEMAND_NAME_MAX + 1];
    char card[TOPO_ID_MAX + 1];
    char longest[DEMAND_NAME_MAX + 1];
    struct error err = {0};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        cr_expect_eq(drain_entry_read_key(keys[i], node, card, &err), -EINVAL,
                     "%s", keys[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct card_bar drain = {0};
        cr_expect_eq(
            drain_entry_read(texts[i][0], strlen(texts[i][0]), &drain, &err),
            -EINVAL, "%s", texts[i][0]);
        cr_expect(strstr(err.text, texts[i][1]), "%s", err.text);
    }
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    cr_expect_eq(drain_entry_key(longest, "", key, &err), 0);
    cr_expect_eq(drain_entry_key(longest, "card-0", key, &err), -EINVAL);
    cr_expect(strstr(err.text, "drain the whole node"), "%s", err.text);
}
