#include "advertiser/act/stream/order.h"

#include <errno.h>
#include <string.h>

#include "advertiser/act/pod/item.h"
#include "lib/base/json.h"
#include "lib/io/rfc3339.h"

void order_destroy(struct order *o)
{
    if (!o)
        return;
    arena_fini(&o->arena);
    free(o);
}

void orders_fini(struct orders *o)
{
    for (size_t i = 0; i < o->n; i++)
        order_destroy(o->list[i]);
    o->n = 0;
}

/* --- one ------------------------------------------------------------------- */

static bool id_valid(const char *id)
{
    size_t n = strspn(id, "0123456789abcdef");
    return n >= 1 && n <= ORDER_ID_MAX && !id[n];
}

static void take_kind(struct reader *r, struct order *o)
{
    static const char *const names[] = {
        [ORDER_EXEC] = "exec",
        [ORDER_ATTACH] = "attach",
        [ORDER_FORWARD] = "portforward",
        [ORDER_LOG] = "log",
    };
    const char *kind = reader_string(r, "kind", 32);
    for (size_t i = 0; kind && i < ARRAY_LEN(names); i++)
        if (strcmp(kind, names[i]) == 0) {
            o->kind = (enum order_kind)i;
            return;
        }
    if (kind)
        (void)reader_fail(r, "kind",
                          "is \"%s\", must be exec, attach, portforward or log",
                          kind);
}

struct text {
    const char *name;
    bool (*valid)(const char *text);
    bool needed;
};

static void take_text(struct reader *r, struct text what, char *to, size_t size)
{
    const char *text = what.needed ? reader_string(r, what.name, size - 1)
                                   : reader_opt_string(r, what.name, size - 1);
    if (!text || (!what.needed && !*text))
        return;
    if (!what.valid(text)) {
        (void)reader_fail(r, what.name, "\"%s\" is none", text);
        return;
    }
    (void)snprintf(to, size, "%s", text);
}

static void take_command(struct reader *r, struct order *o)
{
    const cJSON *x, *list = reader_opt_array(r, "command", ORDER_ARGS_MAX);
    size_t n = list ? (size_t)cJSON_GetArraySize(list) : 0;
    if (n == 0) {
        if (o->kind == ORDER_EXEC)
            (void)reader_fail(r, "command", "is empty: what is to be run?");
        return;
    }
    o->argv = arena_alloc(&o->arena, (n + 1) * sizeof *o->argv);
    cJSON_ArrayForEach(x, list)
    {
        size_t size = cJSON_IsString(x) ? strlen(x->valuestring) : 0;
        if (!cJSON_IsString(x) || size > ORDER_ARG_MAX) {
            (void)reader_fail(r, "command", "must be texts of at most %d bytes",
                              ORDER_ARG_MAX);
            return;
        }
        o->argv[o->n_argv++] = arena_strndup(&o->arena, x->valuestring, size);
    }
    o->argv[n] = NULL;
}

static void take_ports(struct reader *r, struct order *o)
{
    const cJSON *x, *list = reader_opt_array(r, "ports", JOIN_PORTS_MAX);
    cJSON_ArrayForEach(x, list)
    {
        if (!cJSON_IsNumber(x) || x->valuedouble < 1 ||
            x->valuedouble > UINT16_MAX ||
            x->valuedouble != (int32_t)x->valuedouble) {
            (void)reader_fail(r, "ports", "must be numbers from 1 to 65535");
            return;
        }
        o->ports[o->n_ports++] = (int32_t)x->valuedouble;
    }
    if (o->kind == ORDER_FORWARD && o->n_ports == 0)
        (void)reader_fail(r, "ports", "is empty: which are wanted?");
}

static void take_streams(struct reader *r, struct order *o)
{
    o->in = reader_opt_bool(r, "stdin", false);
    o->out = reader_opt_bool(r, "stdout", false);
    o->err = reader_opt_bool(r, "stderr", false);
    o->tty = reader_opt_bool(r, "tty", false);
    if (o->kind != ORDER_EXEC && o->kind != ORDER_ATTACH)
        return;
    if (o->tty)
        o->err = false; /* a terminal has one output */
    if (!o->in && !o->out && !o->err)
        (void)reader_fail(
            r, "stdout", "is false, as are stdin and stderr: one must be true");
}

static void take_log(struct reader *r, struct order *o)
{
    const char *since = reader_opt_string(r, "sinceTime", 64);
    o->follow = reader_opt_bool(r, "follow", false);
    o->previous = reader_opt_bool(r, "previous", false);
    o->log = LOG_WANT_ALL;
    o->log.timestamps = reader_opt_bool(r, "timestamps", false);
    o->log.tail_lines = reader_opt_int(r, "tailLines", -1, INT32_MAX, -1);
    o->log.limit_bytes = reader_opt_int(r, "limitBytes", -1, INT64_MAX, -1);
    o->since_s = reader_opt_int(r, "sinceSeconds", -1, INT32_MAX, -1);
    if (since && *since &&
        !rfc3339_parse_ns(since, strlen(since), &o->log.since_ns))
        (void)reader_fail(r, "sinceTime",
                          "\"%s\" must look like 2026-01-02T03:04:05Z", since);
}

static void read_rest(struct order *o, const cJSON *json)
{
    struct reader r;
    struct error err = {0};
    reader_init(&r, json, "", &err);
    take_kind(&r, o);
    take_text(&r, (struct text){"namespace", act_namespace_valid, true},
              o->namespace, sizeof o->namespace);
    take_text(&r, (struct text){"name", act_name_valid, true}, o->name,
              sizeof o->name);
    take_text(&r, (struct text){"uid", act_uid_valid, false}, o->uid,
              sizeof o->uid);
    take_text(&r, (struct text){"container", act_namespace_valid, false},
              o->container, sizeof o->container);
    take_command(&r, o);
    take_ports(&r, o);
    take_streams(&r, o);
    take_log(&r, o);
    if (reader_finish_lenient(&r) < 0)
        (void)snprintf(o->fault, sizeof o->fault, "%s", err.text);
}

/* --- all ------------------------------------------------------------------- */

static int read_one(const cJSON *json, const struct reader *list, int index,
                    struct order **ret_order, struct error *err)
{
    char path[READER_PATH_MAX];
    struct reader r;
    reader_path(list, "streams", index, path);
    reader_init(&r, json, path, err);
    const char *id = reader_string(&r, "id", ORDER_ID_MAX);
    if (id && !id_valid(id))
        (void)reader_fail(&r, "id", "\"%s\" must be 1 to %d of 0-9 and a-f", id,
                          ORDER_ID_MAX);
    int e = reader_finish_lenient(&r);
    if (e < 0)
        return e;
    struct order *o = xcalloc(1, sizeof *o);
    (void)snprintf(o->id, sizeof o->id, "%s", id);
    read_rest(o, json);
    *ret_order = o;
    return 0;
}

int orders_read(const char *json, size_t size, struct orders *ret_orders,
                struct error *err)
{
    cleanup_with(json) cJSON *root = NULL;
    struct orders all = {.n = 0};
    struct reader r;
    int e = json_parse(json, size, &root, err);
    if (e < 0)
        return e;
    reader_init(&r, root, "", err);
    const cJSON *x, *list = reader_array(&r, "streams", ORDERS_MAX);
    cJSON_ArrayForEach(x, list)
    {
        e = read_one(x, &r, (int)all.n, &all.list[all.n], err);
        if (e < 0)
            break;
        all.n++;
    }
    if (e == 0)
        e = reader_finish_lenient(&r);
    if (e < 0) {
        orders_fini(&all);
        return e;
    }
    *ret_orders = all;
    return 0;
}
