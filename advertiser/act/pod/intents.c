/* The intents themselves, and their rows as text. */
#include "advertiser/act/pod/intents.h"

#include <stdlib.h>
#include <string.h>

#include "advertiser/act/pod/intents_private.h"
#include "lib/base/json.h"
#include "lib/base/jwrite.h"

enum { UINT31_MAX = 2147483647 };

static char *copy(const char *text)
{
    return xstrdup(text ? text : "");
}

static char *copy_n(const char *text, size_t size, size_t *ret_size)
{
    char *c = xmalloc(size + 1);
    if (size)
        memcpy(c, text, size);
    c[size] = '\0';
    *ret_size = size;
    return c;
}

struct intent *intent_create(const struct act_pod *pod)
{
    struct intent *i = xcalloc(1, sizeof *i);
    i->owner = copy(pod->owner);
    i->namespace = copy(pod->namespace);
    i->name = copy(pod->name);
    i->uid = copy(pod->uid);
    i->place = copy(pod->place);
    i->pair_key = copy(pod->pair_key);
    i->hook = copy(pod->hook);
    i->is_host = pod->is_host;
    i->restarts = pod->restarts;
    i->spec = copy_n(pod->spec, pod->spec ? pod->spec_size : 0, &i->spec_size);
    i->files = copy_n(pod->files, pod->files ? pod->files_size : 0,
                      &i->files_size);
    i->n_env = pod->env.n;
    i->env = xcalloc(i->n_env + 1, sizeof *i->env);
    for (size_t k = 0; k < i->n_env; k++) {
        i->env[k].key = copy(pod->env.list[k].key);
        i->env[k].value = copy(pod->env.list[k].value);
    }
    i->sriov_vfs = pod->sriov_vfs;
    i->held = pod->held;
    i->grace_s = -1;
    return i;
}

void intent_destroy(struct intent *i)
{
    if (!i)
        return;
    for (size_t k = 0; k < i->n_env; k++) {
        free(i->env[k].key);
        free(i->env[k].value);
    }
    free(i->env);
    free(i->owner);
    free(i->namespace);
    free(i->name);
    free(i->uid);
    free(i->place);
    free(i->pair_key);
    free(i->hook);
    free(i->spec);
    free(i->files);
    free(i);
}

struct intent_container *intent_container_find(struct intent *i,
                                               const char *name)
{
    for (size_t k = 0; k < i->n_containers; k++)
        if (strcmp(i->containers[k].name, name) == 0)
            return &i->containers[k];
    return NULL;
}

struct intent_container *intent_container(struct intent *i, const char *name)
{
    struct intent_container *found = intent_container_find(i, name);
    if (found)
        return found;
    if (i->n_containers == INTENT_CONTAINERS_MAX ||
        strlen(name) > INTENT_NAME_MAX)
        return NULL;
    struct intent_container *c = &i->containers[i->n_containers++];
    *c = (struct intent_container){0};
    memcpy(c->name, name, strlen(name));
    return c;
}

/* --- env ---------------------------------------------------------------- */

void intent_env_encode(const struct intent *i, struct str *out)
{
    jwrite_array(out, NULL);
    for (size_t k = 0; k < i->n_env; k++) {
        jwrite_array(out, NULL);
        jwrite_text(out, NULL, i->env[k].key);
        jwrite_text(out, NULL, i->env[k].value);
        jwrite_end_array(out);
    }
    jwrite_end_array(out);
}

int intent_env_decode(struct intent *i, const char *text, size_t size,
                      struct error *err)
{
    cleanup_with(json) cJSON *json = NULL;
    const cJSON *pair;
    int e = json_parse(text, size, &json, err);
    if (e < 0)
        return e;
    if (!cJSON_IsArray(json))
        return error_set(err, EINVAL, "env: not a list");
    i->env = xcalloc((size_t)cJSON_GetArraySize(json) + 1, sizeof *i->env);
    cJSON_ArrayForEach(pair, json)
    {
        const char *key = cJSON_GetStringValue(cJSON_GetArrayItem(pair, 0));
        const char *value = cJSON_GetStringValue(cJSON_GetArrayItem(pair, 1));
        if (!key || !value)
            return error_set(err, EINVAL, "env: not pairs of texts");
        i->env[i->n_env++] = (struct intent_env){xstrdup(key), xstrdup(value)};
    }
    return 0;
}

/* --- progress ----------------------------------------------------------- */

void intent_progress_encode(const struct intent *i, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_bool(out, "held", i->held);
    jwrite_bool(out, "stop", i->stop);
    jwrite_bool(out, "ran", i->ran);
    if (i->keep) /* a program of before would not know it */
        jwrite_bool(out, "keep", true);
    if (i->functions[0]) /* the same */
        jwrite_text(out, "functions", i->functions);
    jwrite_int(out, "grace", i->grace_s);
    jwrite_uint(out, "attempt", i->attempt);
    jwrite_text(out, "state", act_state_name(i->state));
    jwrite_text(out, "sandbox", i->sandbox);
    jwrite_text(out, "boot", i->boot);
    jwrite_text(out, "reason", i->reason);
    jwrite_text(out, "message", i->message);
    jwrite_array(out, "containers");
    for (size_t k = 0; k < i->n_containers; k++) {
        const struct intent_container *c = &i->containers[k];
        jwrite_object(out, NULL);
        jwrite_text(out, "name", c->name);
        jwrite_text(out, "id", c->id);
        jwrite_text(out, "reason", c->reason);
        jwrite_bool(out, "exited", c->exited);
        jwrite_uint(out, "attempt", c->attempt);
        jwrite_uint(out, "restarts", c->restarts);
        jwrite_int(out, "exitCode", c->exit_code);
        jwrite_end_object(out);
    }
    str_add(out, "]}");
}

static void take(struct reader *r, const char *name, char *ret_text,
                 size_t size)
{
    /* what was cut within a character has grown: U+FFFD for each byte */
    const char *text = reader_opt_string(r, name, 3 * size);
    if (text)
        (void)snprintf(ret_text, size, "%s", text);
}

static enum act_state take_state(struct reader *r)
{
    const char *word = reader_string(r, "state", 16);
    for (int s = ACT_WANTED; word && s <= ACT_FAILED; s++)
        if (strcmp(act_state_name((enum act_state)s), word) == 0)
            return (enum act_state)s;
    if (word)
        (void)reader_fail(r, "state", "\"%s\" is none", word);
    return ACT_WANTED;
}

static int container_decode(const cJSON *json, struct intent *i,
                            struct error *err)
{
    struct reader r;
    struct intent_container *c = &i->containers[i->n_containers++];
    reader_init(&r, json, "containers[]", err);
    take(&r, "name", c->name, sizeof c->name);
    take(&r, "id", c->id, sizeof c->id);
    take(&r, "reason", c->reason, sizeof c->reason);
    c->exited = reader_bool(&r, "exited");
    c->attempt = (uint32_t)reader_int(&r, "attempt", 0, UINT32_MAX);
    c->restarts = (uint32_t)reader_int(&r, "restarts", 0, UINT32_MAX);
    c->exit_code = (int32_t)reader_int(&r, "exitCode", INT32_MIN, INT32_MAX);
    return reader_finish_strict(&r);
}

int intent_progress_decode(struct intent *i, const char *text, size_t size,
                           struct error *err)
{
    cleanup_with(json) cJSON *json = NULL;
    struct reader r;
    const cJSON *item;
    int e = json_parse(text, size, &json, err);
    if (e < 0)
        return e;
    reader_init(&r, json, "", err);
    i->held = reader_bool(&r, "held");
    i->stop = reader_bool(&r, "stop");
    i->ran = reader_bool(&r, "ran");
    i->keep = reader_opt_bool(&r, "keep", false);
    i->grace_s = reader_int(&r, "grace", -1, UINT31_MAX);
    i->attempt = (uint32_t)reader_int(&r, "attempt", 0, UINT32_MAX);
    i->state = take_state(&r);
    take(&r, "sandbox", i->sandbox, sizeof i->sandbox);
    take(&r, "boot", i->boot, sizeof i->boot);
    take(&r, "functions", i->functions, sizeof i->functions);
    take(&r, "reason", i->reason, sizeof i->reason);
    take(&r, "message", i->message, sizeof i->message);
    const cJSON *list = reader_array(&r, "containers", INTENT_CONTAINERS_MAX);
    e = reader_finish_strict(&r);
    if (e < 0)
        return e;
    cJSON_ArrayForEach(item, list)
    {
        e = container_decode(item, i, err);
        if (e < 0)
            return e;
    }
    return 0;
}
