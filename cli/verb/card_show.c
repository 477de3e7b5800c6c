/* biga card show: one card of this host, with all that is known of it. */
#include <string.h>

#include "cli/base/host_socket.h"
#include "cli/base/say.h"
#include "cli/verb/card.h"
#include "lib/base/mem.h"

enum { HARDWARE_S = 30 }; /* a few commands, each with its own limit */

struct shown {
    cJSON *card, *hardware, *pods;
};

static void shown_fini(struct shown *s)
{
    cJSON_Delete(s->card);
    cJSON_Delete(s->hardware);
    cJSON_Delete(s->pods);
}

static void line(struct cli *c, const char *name, const char *value)
{
    cli_line(c, "%-12s %s", name, *value ? value : "unknown");
}

/* "8 of 16", "8", "unknown" */
static void number(struct cli *c, const char *name, double n, double max)
{
    char text[64] = "";
    if (n >= 0 && max >= 0)
        (void)snprintf(text, sizeof text, "%.0f of %.0f", n, max);
    else if (n >= 0)
        (void)snprintf(text, sizeof text, "%.0f", n);
    line(c, name, text);
}

/* What runs, and what will after the next reset. */
static void firmware(struct cli *c, const cJSON *hardware)
{
    const char *now = json_text(hardware, "firmware");
    const char *stored = json_text(hardware, "firmwareStored");
    const char *psid = json_text(hardware, "psid");
    bool differs = *stored && strcmp(now, stored) != 0;
    cleanup_str struct str text = STR_INIT(1024);
    str_addf(&text, "%s%s%s%s", now, *psid ? " (" : "", psid, *psid ? ")" : "");
    if (*now && differs)
        str_addf(&text, ", %s after a reset", stored);
    line(c, "firmware", str_text(&text));
}

static void health(struct cli *c, const cJSON *card)
{
    const char *reason = json_text(card, "reason");
    cleanup_str struct str text = STR_INIT(4096);
    str_addf(&text, "%s%s%s", json_text(card, "health"), *reason ? ": " : "",
             reason);
    line(c, "health", str_text(&text));
    line(c, "drained", json_true(card, "drained") ? "yes" : "no");
}

static void flash(struct cli *c, const cJSON *card)
{
    const cJSON *f = cJSON_GetObjectItemCaseSensitive(card, "flash");
    cleanup_str struct str text = STR_INIT(4096);
    if (!f)
        return;
    str_add(&text, json_text(f, "state"));
    if (json_text(f, "phase")[0])
        str_addf(&text, ": %s, %.0f %%", json_text(f, "phase"),
                 json_number(f, "percent"));
    if (json_text(f, "reason")[0])
        str_addf(&text, ": %s", json_text(f, "reason"));
    if (json_text(f, "message")[0])
        str_addf(&text, ": %s", json_text(f, "message"));
    line(c, "flash", str_text(&text));
}

static bool is_there(const cJSON *pod, const cJSON *card)
{
    return strcmp(json_text(pod, "place"), json_text(card, "name")) == 0;
}

static void pods(struct cli *c, const struct shown *s)
{
    const cJSON *pod;
    bool any = false;
    cJSON_ArrayForEach(pod, json_list(s->pods, "items"))
    {
        if (!is_there(pod, s->card))
            continue;
        cli_line(c, "%-12s %s/%s (%s)", any ? "" : "pods",
                 json_text(pod, "namespace"), json_text(pod, "name"),
                 json_text(pod, "state"));
        any = true;
    }
    if (!any)
        line(c, "pods", "none");
}

static void render(struct cli *c, const struct shown *s)
{
    const cJSON *h = s->hardware;
    const char *serial = json_text(s->card, "serial");
    line(c, "card", json_text(s->card, "name"));
    line(c, "pci", json_text(s->card, "pci"));
    line(c, "model", json_text(s->card, "model"));
    line(c, "part", json_text(h, "part"));
    line(c, "serial", *serial ? serial : json_text(h, "serial"));
    firmware(c, h);
    line(c, "mode", json_text(h, "mode"));
    line(c, "eswitch", json_text(h, "eswitch"));
    number(c, "VFs", json_number(h, "sriovVfs"), json_number(h, "sriovVfsMax"));
    number(c, "SFs", json_number(h, "scalableFunctions"), -1);
    line(c, "endpoint", json_text(s->card, "endpoint"));
    line(c, "runtime", json_text(s->card, "runtime"));
    health(c, s->card);
    flash(c, s->card);
    pods(c, s);
}

/* Its own three answers in one object. */
static void as_json(struct cli *c, struct shown *s)
{
    cleanup_with(json) cJSON *all = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(all, "pods");
    cJSON *items = cJSON_GetObjectItemCaseSensitive(s->pods, "items");
    cJSON *pod;
    while ((pod = cJSON_DetachItemFromArray(items, 0)))
        if (is_there(pod, s->card))
            (void)cJSON_AddItemToArray(list, pod);
        else
            cJSON_Delete(pod);
    (void)cJSON_AddItemToObject(all, "card", steal(&s->card));
    (void)cJSON_AddItemToObject(all, "hardware", steal(&s->hardware));
    cleanup_free char *text = cJSON_PrintUnformatted(all);
    str_addf(&c->out, "%s\n", text ? text : "");
}

static int ask(struct host_socket *l, const char *card, struct shown *s)
{
    cleanup_str struct str path = STR_INIT(4096);
    host_socket_card_path(card, "", &path);
    int rc = host_socket_ask(l, "GET", str_text(&path), NULL, 0, &s->card);
    str_add(&path, "/hardware");
    if (rc == 0)
        rc = host_socket_ask(l, "GET", str_text(&path), NULL, HARDWARE_S,
                             &s->hardware);
    return rc ? rc : host_socket_ask(l, "GET", "/v1/pods", NULL, 0, &s->pods);
}

int verb_card_show(struct cli *c, int argc, char **argv)
{
    struct host_socket l;
    struct shown s = {0};
    const bool json = c->set.json;
    (void)argc;
    int rc = host_socket_open(c, &l);
    if (rc)
        return rc;
    c->set.json = false; /* what is asked is for us */
    rc = ask(&l, argv[0], &s);
    c->set.json = json;
    if (rc == 0 && json)
        as_json(c, &s);
    else if (rc == 0)
        render(c, &s);
    shown_fini(&s);
    host_socket_close(&l);
    return rc;
}
