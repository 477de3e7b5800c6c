/* Any bytes as what an extender answers a node, and as one item: no crash;
 * what is accepted is within its limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/pod/item.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct act_item *item)
{
    const struct act_pod *p = &item->pod;
    if (!act_uid_valid(p->uid) || !act_name_valid(p->name) ||
        !act_namespace_valid(p->namespace) || !*p->place ||
        strlen(p->place) > ACT_NAME_MAX || strlen(p->pair_key) > 511 ||
        strchr(p->hook, '/') || p->sriov_vfs < -1 || item->grace_s < -1)
        abort();
    if (item->later && !p->spec)
        return;
    if (p->spec_size < 2 || p->spec[0] != '{' ||
        p->spec[p->spec_size - 1] != '}')
        abort();
    if (p->files && (p->files[0] != '[' || p->files[p->files_size - 1] != ']'))
        abort();
    for (size_t i = 0; i < p->env.n; i++)
        if (!*p->env.list[i].key || strchr(p->env.list[i].key, '=') ||
            strlen(p->env.list[i].value) > ITEM_ENV_VALUE_MAX)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct act_answer answer = {0};
    struct act_item item;
    struct arena arena = {0};
    struct error err = {0};
    /* so that one byte too far is seen */
    char *json = xmemdup(data, size + !size);
    if (act_answer_read(json, size, &answer, &err) == 0) {
        for (size_t i = 0; i < answer.n; i++)
            if (!answer.items[i].fault)
                check(&answer.items[i]);
            else if (!act_uid_valid(answer.items[i].pod.uid))
                abort();
        if (*answer.next && !act_uid_valid(answer.next))
            abort();
        act_answer_fini(&answer);
    } else if (!*err.text || answer.items) {
        abort();
    }
    err.text[0] = '\0';
    if (act_item_read(json, size, "ns", "name", &arena, &item, &err) == 0) {
        check(&item);
        if (item.later || item.fault)
            abort();
    } else if (!*err.text) {
        abort();
    }
    arena_fini(&arena);
    free(json);
    return 0;
}
