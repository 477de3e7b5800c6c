/* What was found on a place, by the pods that it is of. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/card/labels.h"
#include "advertiser/act/machine/inventory.h"
#include "lib/base/mem.h"

static struct cri_pair *labels_of(const char *uid)
{
    struct cri_pair *list = xcalloc(2, sizeof *list);
    list[0] = (struct cri_pair){xstrdup(ACT_LABEL_CONTAINER), xstrdup("main")};
    list[1] = (struct cri_pair){xstrdup(ACT_LABEL_UID), xstrdup(uid)};
    return list;
}

static struct inventory listed_of(const char *const *uids, size_t n)
{
    struct inventory l = {
        .containers = {xcalloc(n, sizeof(struct cri_container)), n},
        .sandboxes = {xcalloc(n, sizeof(struct cri_sandbox)), n}};
    for (size_t i = 0; i < n; i++) {
        struct cri_container *c = &l.containers.list[i];
        struct cri_sandbox *s = &l.sandboxes.list[i];
        (void)snprintf(c->id, sizeof c->id, "c%zu", n - i);
        (void)snprintf(s->id, sizeof s->id, "5%zu", n - i);
        c->n_labels = s->n_labels = 2;
        c->labels = labels_of(uids[i]);
        s->labels = labels_of(uids[i]);
    }
    return l;
}

Test(act_listed, each_pod_has_its_own)
{
    static const char *const uids[] = {"b", "", "a", "b", "ab"};
    struct inventory l = listed_of(uids, ARRAY_LEN(uids));
    struct machine_found found = {0};
    inventory_sort(&l);
    cr_assert_eq(l.n, 10);
    for (size_t i = 1; i < l.n; i++)
        cr_assert_lt(orphan_order(&l.seen[i - 1], &l.seen[i]), 0);
    inventory_take(&l, "b", &found);
    cr_assert_eq(found.n_sandboxes, 2);
    cr_assert_eq(found.n_containers, 2);
    cr_assert_str_eq(found.containers[0].name, "main");
    machine_found_fini(&found);
    inventory_take(&l, "c", &found);
    inventory_take(&l, "0", &found);
    cr_assert_eq(found.n_sandboxes + found.n_containers, 0);
    inventory_know(&l, "b");
    inventory_know(&l, "zz");
    size_t n = 0;
    for (size_t i = 0; i < l.n; i++) {
        n += l.seen[i].known;
        cr_assert_eq(l.seen[i].known, strcmp(l.seen[i].uid, "b") == 0);
    }
    cr_assert_eq(n, 4);
    inventory_fini(&l);
}

Test(act_listed, a_uid_that_cannot_be_ours_is_none)
{
    char uid[ORPHANS_UID_MAX + 2];
    memset(uid, 'u', sizeof uid - 1);
    uid[sizeof uid - 1] = '\0';
    const char *const uids[] = {uid, uid + 1};
    struct inventory l = listed_of(uids, 2);
    inventory_sort(&l);
    cr_assert_str_eq(l.seen[0].uid, "");
    cr_assert_str_eq(l.seen[3].uid, uid + 1);
    inventory_fini(&l);
}
