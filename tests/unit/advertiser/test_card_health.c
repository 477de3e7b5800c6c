#include "advertiser/card_health.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/card/health_file.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/tmpdir.h"

/* What is published of the second card. */
static void expect(struct card_health *h, const char *health, bool withdrawn)
{
    cleanup_with(topo) struct topo *seen = simhost_topo("n1", 2);
    cleanup_with(topo) struct topo *told = card_health_mark(h, seen);
    cr_assert_str_eq(topo_device(told, 1)->health, health);
    cr_assert_eq(topo_device(told, 1)->unhealthy, withdrawn);
    cr_assert_not(topo_device(told, 0)->unhealthy);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    cr_assert(f);
    cr_assert_geq(fputs(text, f), 0);
    cr_assert_eq(fclose(f), 0);
}

/* The file comes, changes, is broken, and goes. */
Test(card_health, follows_the_file)
{
    char *dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/cards.json", dir);
    cleanup_with(topo) struct topo *topo = simhost_topo("n1", 2);
    const char *id = topo_device(topo, 1)->id;
    struct health_file says = {0};
    struct error err = {0};
    int64_t now_ms = 0;
    struct card_health *h = card_health_create(path, "n1");
    expect(h, "", false);
    cr_assert_eq(card_health_due(h), CARD_HEALTH_LOOK_MS);
    cr_assert(health_file_set(&says, id, true, "no \"answer\"\n"));
    cr_assert_not(health_file_set(&says, id, true, "other words"));
    cr_assert_eq(health_file_store(path, &says, &err), 0, "%s", err.text);
    cr_assert_not(card_health_step(h, now_ms), "not before it is due");
    now_ms += CARD_HEALTH_LOOK_MS;
    cr_assert(card_health_step(h, now_ms));
    expect(h, "lost", true);
    now_ms += CARD_HEALTH_LOOK_MS;
    cr_assert_not(card_health_step(h, now_ms));

    write_text(path, "{\"cards\":[{\"name\":\"a\",\"health\":\"well\"}]}");
    now_ms += CARD_HEALTH_LOOK_MS;
    cr_assert_not(card_health_step(h, now_ms));
    expect(h, "lost", true);
    cr_assert_eq(health_file_load(path, &says, &err), -EINVAL);
    cr_assert(strstr(err.text, "cards[0].health: is \"well\""), "%s", err.text);

    cr_assert(health_file_set(&says, id, false, ""));
    cr_assert_eq(health_file_store(path, &says, &err), 0, "%s", err.text);
    now_ms += CARD_HEALTH_LOOK_MS;
    cr_assert(card_health_step(h, now_ms));
    expect(h, "ready", false);
    cr_assert_eq(remove(path), 0);
    now_ms += CARD_HEALTH_LOOK_MS;
    cr_assert_not(card_health_step(h, now_ms));
    expect(h, "ready", false);
    card_health_destroy(h);
    tmpdir_remove(dir);
}

/* A full table takes no more, and the file is read back as it was. */
Test(card_health, has_a_cap)
{
    char *dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/cards.json", dir);
    struct health_file f = {0}, got = {0};
    struct error err = {0};
    char name[32];
    for (int i = 0; i <= HEALTH_FILE_CARDS_MAX; i++) {
        (void)snprintf(name, sizeof name, "card-%d", i);
        cr_assert_eq(health_file_set(&f, name, i % 2, "why"),
                     i < HEALTH_FILE_CARDS_MAX);
    }
    cr_assert_eq(health_file_load(path, &got, &err), -ENOENT);
    cr_assert_eq(health_file_store(path, &f, &err), 0, "%s", err.text);
    cr_assert_eq(health_file_load(path, &got, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(&f, &got, sizeof f), 0);
    tmpdir_remove(dir);
}
