#include "advertiser/act/api/socket_private.h"

#include <inttypes.h>
#include <string.h>

#include "advertiser/act/api/status_json.h"
#include "lib/base/base64.h"
#include "lib/base/json.h"
#include "lib/base/jwrite.h"

enum { ARG_MAX_SIZE = 64 << 10 };

/* The pod as it is after a change. */
static void add_pod(struct call *c)
{
    struct act_pod_status pod;
    if (actuator_find(c->s->a, c->namespace, c->name, &pod) < 0) {
        c->status = 204; /* gone and forgotten meanwhile */
        return;
    }
    status_json_pod(&pod, &c->out);
    str_add_c(&c->out, '\n');
}

void do_want(struct call *c)
{
    struct act_item item;
    c->result = act_item_read(c->body, c->body_size, c->namespace, c->name,
                              &c->arena, &item, &c->err);
    if (c->result == 0 && (item.stop || item.grace_s >= 0))
        c->result = error_set(&c->err, EINVAL,
                              "stop, grace: a pod that is created does not "
                              "end; stop it later");
    if (c->result < 0)
        return;
    item.pod.owner = SOCKET_OWNER;
    c->result = actuator_want(c->s->a, &item.pod, &c->err);
    if (c->result == 0)
        add_pod(c);
}

void do_begin(struct call *c)
{
    c->result = actuator_begin(c->s->a, c->uid, &c->err);
    if (c->result == 0)
        add_pod(c);
}

static void stop(struct call *c, int result)
{
    c->result = result;
    c->status = 202;
    if (c->result == 0)
        add_pod(c);
}

/* It stays known, and what it wrote, too. */
void do_stop(struct call *c)
{
    stop(c, actuator_end(c->s->a, c->uid, c->grace_s, &c->err));
}

void do_delete(struct call *c)
{
    struct act_pod_status pod;
    if (actuator_find(c->s->a, c->namespace, c->name, &pod) == 0 &&
        pod.state == ACT_GONE && strcmp(pod.uid, c->uid) == 0) {
        c->result = actuator_drop_logs(c->s->a, c->uid, &c->err);
        if (c->result == 0)
            c->result = actuator_forget(c->s->a, c->uid, &c->err);
        c->status = 204;
        return;
    }
    stop(c, actuator_unwant(c->s->a, c->uid, c->grace_s, &c->err));
}

void do_drain(struct call *c)
{
    struct act_place_status place;
    c->result = actuator_drain(c->s->a, c->place, c->drain, &c->err);
    if (c->result < 0 || actuator_find_place(c->s->a, c->place, &place) < 0)
        return;
    status_json_place(&place, &c->out);
    str_add_c(&c->out, '\n');
}

/* It goes on when this is answered. */
void do_flash(struct call *c)
{
    struct act_place_status place;
    c->status = 202;
    c->result = actuator_flash(c->s->a, c->place, &c->flash, &c->err);
    if (c->result < 0 || actuator_find_place(c->s->a, c->place, &place) < 0)
        return;
    status_json_place(&place, &c->out);
    str_add_c(&c->out, '\n');
}

void do_hardware(struct call *c)
{
    struct hardware hardware;
    c->result = actuator_hardware(c->s->a, c->place, &hardware, &c->err);
    if (c->result < 0)
        return;
    status_json_hardware(&hardware, &c->out);
    str_add_c(&c->out, '\n');
}

void do_exec(struct call *c)
{
    struct cri_exec exec = {0};
    c->result = actuator_exec(c->s->a, c->namespace, c->name, c->container,
                              c->argv, c->n_argv, c->timeout_s, &exec, &c->err);
    if (c->result == 0) {
        str_addf(&c->out, "{\"exitCode\":%" PRId32 ",\"stdout\":\"",
                 exec.exit_code);
        base64_add(&c->out, str_text(&exec.out), exec.out.size);
        str_add(&c->out, "\",\"stderr\":\"");
        base64_add(&c->out, str_text(&exec.err), exec.err.size);
        str_add(&c->out, "\"}\n");
    }
    cri_exec_fini(&exec);
}

void do_stream(struct call *c)
{
    struct act_stream stream;
    const struct act_stream_ask ask = {
        .kind = ACT_EXEC,
        .namespace = c->namespace,
        .name = c->name,
        .container = c->container,
        .cmd = {.argv = c->argv,
                .n_argv = c->n_argv,
                .streams = {.in = c->stdin_too, .out = true, .err = true}},
        .host_only = true,
    };
    c->result = actuator_stream(c->s->a, &ask, &stream, &c->err);
    if (c->result < 0)
        return;
    jwrite_object(&c->out, NULL);
    jwrite_text(&c->out, "url", stream.url);
    str_add(&c->out, "}\n");
}

/* In base64 whole groups of it: a `biga` of before has no room for what would
 * fill up the last one. */
static void add_base64(struct call *c, const struct act_log *log)
{
    str_addf(&c->out,
             "{\"offset\":%" PRIu64 ",\"next\":%" PRIu64 ",\"attempt\":%" PRIu32
             ",\"data\":\"",
             c->log.offset, log->next, log->attempt);
    base64_add(&c->out, str_text(&log->text), log->text.size);
    str_add(&c->out, "\"}\n");
}

/* The same of the lines that are wanted. */
static int read_lines(struct call *c, const struct act_log_ask *ask,
                      struct act_log *ret_log)
{
    struct log_reader r;
    struct act_log log = {.text = STR_INIT(ACT_LOG_MAX)};
    log_reader_init(&r, ask, &c->want);
    int e = log_reader_next(&r, c->s->a, &log.text, &c->err);
    if (e < 0) {
        str_fini(&log.text);
        return e;
    }
    log.attempt = r.ask.attempt;
    log.next = r.ask.offset;
    *ret_log = log;
    return 0;
}

void do_logs(struct call *c)
{
    struct act_log log;
    struct act_log_ask ask = c->log; /* which others look at, too */
    ask.namespace = c->namespace;
    ask.name = c->name;
    ask.container = c->container;
    if (!c->text && ask.max > 3)
        ask.max -= ask.max % 3;
    c->result = c->picks ? read_lines(c, &ask, &log)
                         : actuator_logs(c->s->a, &ask, &log, &c->err);
    if (c->result < 0)
        return;
    c->next_offset = log.next;
    c->next_attempt = log.attempt;
    if (c->text)
        str_move(&c->out, &log.text);
    else
        add_base64(c, &log);
    str_fini(&log.text);
}

void do_objects(struct call *c)
{
    cleanup_free struct act_object *list = NULL;
    size_t n = 0;
    c->result = actuator_objects(c->s->a, c->place, &list, &n, &c->err);
    if (c->result < 0)
        return;
    str_add(&c->out, "{\"items\":[");
    for (size_t i = 0; i < n; i++)
        status_json_object(&list[i], &c->out);
    str_add(&c->out, "]}\n");
}

/* --- the body of flash ---------------------------------------------------- */

static const char *keep_text(struct call *c, const char *text)
{
    return text ? arena_strndup(&c->arena, text, strlen(text)) : "";
}

int flash_read(struct call *c, const char *json, size_t size, struct error *err)
{
    cleanup_with(json) cJSON *root = NULL;
    struct reader r;
    int result = json_parse(json, size, &root, err);
    if (result < 0)
        return result;
    reader_init(&r, root, "", err);
    c->flash.bfb = keep_text(c, reader_string(&r, "bfb", FLASH_PATH_MAX));
    c->flash.sha256 = keep_text(c,
                                reader_opt_string(&r, "sha256", FLASH_SUM_LEN));
    c->flash.version =
        keep_text(c, reader_opt_string(&r, "version", FLASH_VERSION_MAX));
    c->flash.timeout_ms = 1000 * reader_opt_int(&r, "timeout", 1, FLASH_S_MAX,
                                                FLASH_S);
    c->flash.force = reader_opt_bool(&r, "force", false);
    return reader_finish_strict(&r);
}

/* --- the body of exec ----------------------------------------------------- */

static int argv_read(struct call *c, const cJSON *list, struct reader *r)
{
    const cJSON *x;
    size_t n = (size_t)cJSON_GetArraySize(list);
    if (n == 0)
        return reader_fail(r, "argv", "is empty: what is to be run?");
    c->argv = arena_alloc(&c->arena, (n + 1) * sizeof *c->argv);
    cJSON_ArrayForEach(x, list)
    {
        if (!cJSON_IsString(x))
            return reader_fail(r, "argv", "must be a list of texts");
        size_t size = strlen(x->valuestring);
        if (size > ARG_MAX_SIZE)
            return reader_fail(r, "argv", "one has over %d bytes",
                               ARG_MAX_SIZE);
        c->argv[c->n_argv++] = arena_strndup(&c->arena, x->valuestring, size);
    }
    return 0;
}

int exec_read(struct call *c, const char *json, size_t size, struct error *err)
{
    cleanup_with(json) cJSON *root = NULL;
    struct reader r;
    int result = json_parse(json, size, &root, err);
    if (result < 0)
        return result;
    reader_init(&r, root, "", err);
    const char *container = reader_opt_string(&r, "container", 63);
    const cJSON *argv = reader_array(&r, "argv", SOCKET_ARGS_MAX);
    if (c->run == do_stream)
        c->stdin_too = reader_opt_bool(&r, "stdin", false);
    else
        c->timeout_s = (uint32_t)reader_opt_int(&r, "timeout", 1,
                                                SOCKET_EXEC_S_MAX, 10);
    if (container && *container && !act_namespace_valid(container))
        (void)reader_fail(&r, "container", "\"%s\" is no container's name",
                          container);
    result = reader_finish_strict(&r);
    if (result == 0)
        result = argv_read(c, argv, &r);
    if (result == 0 && container)
        memcpy(c->container, container, strlen(container) + 1);
    return result;
}
