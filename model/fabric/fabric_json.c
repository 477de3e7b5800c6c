/* Biga's own form of a fabric, schema/fabric.md. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/jscan.h"
#include "model/fabric/fabric_private.h"

struct json_reader {
    const struct fabric_source *source;
    struct fabric_graph *g;
    struct error *err;
    struct jscan s;
    int rc;
    uint8_t *declared; /* per switch */
    size_t *mentioned; /* per switch: where first, in bytes */
    size_t n_declared, declared_cap, mentioned_cap;
    uint8_t *known; /* per host */
    size_t n_known, known_cap;
};

/* The first error stands; the scanner is stopped as well. */
static void json_fail(struct json_reader *r, size_t at)
{
    if (r->rc == 0)
        r->rc = error_wrap(r->err, "%s:%zu", r->source->name,
                           fabric_line(r->source, at));
    jscan_fail(&r->s, "refused", at);
}

static void json_refuse(struct json_reader *r, size_t at, const char *what,
                        const struct jtext *value, const char *wanted)
{
    size_t size = value ? value->size : 0;
    if (r->rc == 0 && value)
        (void)error_set(r->err, EINVAL, "%s: is \"%.*s\", must be %s", what,
                        size > 64 ? 64 : (int)size, value->data, wanted);
    else if (r->rc == 0)
        (void)error_set(r->err, EINVAL, "%s: %s", what, wanted);
    json_fail(r, at);
}

/* A text of at most FABRIC_NAME_MAX bytes. */
static bool read_text(struct json_reader *r, const char *what,
                      char ret_text[FABRIC_NAME_MAX + 1])
{
    struct jtext value;
    size_t at = jscan_offset(&r->s);
    if (!jscan_string(&r->s, &value))
        return false;
    if (value.size == 0 || value.size > FABRIC_NAME_MAX) {
        json_refuse(r, at, what, &value, "1 to 253 bytes long");
        return false;
    }
    (void)jtext_decode(&value, ret_text);
    return true;
}

static int64_t read_number(struct json_reader *r, const char *what, int64_t max)
{
    int64_t value = 0;
    size_t at = jscan_offset(&r->s);
    if (jscan_int64(&r->s, &value) && (value < 0 || value > max)) {
        cleanup_free char *wanted = xasprintf("must be from 0 to %lld",
                                              (long long)max);
        json_refuse(r, at, what, NULL, wanted);
        return 0;
    }
    return value;
}

/* The number of a switch, -1 after an error. */
static int json_switch(struct json_reader *r, const char *what)
{
    char name[FABRIC_NAME_MAX + 1];
    size_t at = jscan_offset(&r->s);
    if (!read_text(r, what, name))
        return -1;
    int number = fabric_graph_switch(r->g, name, strlen(name), NULL, r->err);
    if (number < 0) {
        json_fail(r, at);
        return -1;
    }
    while (r->n_declared <= (size_t)number) {
        r->declared = xgrow(r->declared, r->n_declared, &r->declared_cap, 1);
        r->mentioned = xgrow(r->mentioned, r->n_declared, &r->mentioned_cap,
                             sizeof *r->mentioned);
        r->declared[r->n_declared] = 0;
        r->mentioned[r->n_declared++] = at;
    }
    return number;
}

/* --- switches ----------------------------------------------------------- */

/* Links may stand before the name: they are kept until it is known. */
struct far_ends {
    uint32_t *at;
    size_t n, cap;
};

static void read_links(struct json_reader *r, struct far_ends *ends)
{
    if (!jscan_array(&r->s))
        return;
    while (jscan_element(&r->s)) {
        int to = json_switch(r, "switches[].links[]");
        if (to < 0)
            return;
        ends->at = xgrow(ends->at, ends->n, &ends->cap, sizeof *ends->at);
        ends->at[ends->n++] = (uint32_t)to;
        if (ends->n > FABRIC_LINKS_MAX) {
            json_refuse(r, jscan_offset(&r->s), "switches[].links", NULL,
                        "are too many");
            return;
        }
    }
}

static void read_switch(struct json_reader *r, struct far_ends *ends)
{
    struct jtext key;
    size_t at = jscan_offset(&r->s);
    int number = -1;
    ends->n = 0;
    if (!jscan_object(&r->s))
        return;
    while (jscan_member(&r->s, &key)) {
        if (jtext_is(&key, "name") && number < 0)
            number = json_switch(r, "switches[].name");
        else if (jtext_is(&key, "links") && ends->n == 0)
            read_links(r, ends);
        else
            json_refuse(r, jscan_offset(&r->s), "switches[]: member", &key,
                        "name or links, each once");
    }
    if (r->s.fault)
        return;
    if (number < 0) {
        json_refuse(r, at, "switches[].name", NULL, "required member missing");
        return;
    }
    if (r->declared[number]) {
        (void)error_set(r->err, EINVAL,
                        "switches[].name: \"%.64s\" is there already",
                        r->g->switches[number].name);
        json_fail(r, at);
        return;
    }
    r->declared[number] = 1;
    for (size_t i = 0; i < ends->n && r->rc == 0; i++)
        if (fabric_graph_link(r->g, (uint32_t)number, ends->at[i], r->err) < 0)
            json_fail(r, at);
}

static void read_switches(struct json_reader *r)
{
    struct far_ends ends = {0};
    if (jscan_array(&r->s))
        while (jscan_element(&r->s))
            read_switch(r, &ends);
    free(ends.at);
}

/* --- hosts -------------------------------------------------------------- */

struct json_host {
    int number;
    struct fabric_plug plugs[FABRIC_PORTS_MAX];
    char devices[FABRIC_PORTS_MAX][FABRIC_NAME_MAX + 1];
    size_t n_plugs;
};

/* The next plug to fill, NULL when there are too many. */
static struct fabric_plug *next_plug(struct json_reader *r,
                                     struct json_host *host)
{
    if (host->n_plugs == FABRIC_PORTS_MAX) {
        json_refuse(r, jscan_offset(&r->s), "hosts[].ports", NULL,
                    "at most 16 allowed");
        return NULL;
    }
    struct fabric_plug *plug = &host->plugs[host->n_plugs];
    memset(plug, 0, sizeof *plug);
    host->devices[host->n_plugs][0] = '\0';
    plug->device = host->devices[host->n_plugs++];
    return plug;
}

static void read_guid(struct json_reader *r, uint64_t *ret_guid)
{
    char text[FABRIC_NAME_MAX + 1];
    size_t at = jscan_offset(&r->s);
    if (read_text(r, "hosts[].ports[].guid", text) &&
        !fabric_guid_parse(text, ret_guid)) {
        struct jtext value = {.data = text, .size = strlen(text)};
        json_refuse(r, at, "hosts[].ports[].guid", &value,
                    "up to 16 hex digits, not all zero");
    }
}

static void read_port(struct json_reader *r, struct json_host *host)
{
    struct jtext key;
    size_t at = jscan_offset(&r->s);
    struct fabric_plug *plug = next_plug(r, host);
    bool placed = false;
    if (!plug || !jscan_object(&r->s))
        return;
    while (jscan_member(&r->s, &key)) {
        if (jtext_is(&key, "leaf")) {
            int leaf = json_switch(r, "hosts[].ports[].leaf");
            plug->at = leaf < 0 ? 0 : (uint32_t)leaf;
            placed = true;
        } else if (jtext_is(&key, "device")) {
            (void)read_text(r, "hosts[].ports[].device",
                            host->devices[host->n_plugs - 1]);
        } else if (jtext_is(&key, "guid")) {
            read_guid(r, &plug->guid);
        } else if (jtext_is(&key, "port")) {
            plug->port = (uint8_t)read_number(r, "hosts[].ports[].port", 255);
        } else if (jtext_is(&key, "speed-gbit-s")) {
            plug->speed_gbit_s = (uint32_t)read_number(
                r, "hosts[].ports[].speed-gbit-s", 1000000);
        } else {
            json_refuse(r, jscan_offset(&r->s), "hosts[].ports[]: member", &key,
                        "leaf, device, guid, port or speed-gbit-s");
        }
    }
    if (!r->s.fault && !placed)
        json_refuse(r, at, "hosts[].ports[].leaf", NULL,
                    "required member missing");
}

static void read_name(struct json_reader *r, struct json_host *host)
{
    char name[FABRIC_NAME_MAX + 1];
    size_t at = jscan_offset(&r->s);
    if (!read_text(r, "hosts[].name", name))
        return;
    host->number = fabric_graph_host(r->g, name, strlen(name), r->err);
    if (host->number < 0) {
        json_fail(r, at);
        return;
    }
    while (r->n_known <= (size_t)host->number) {
        r->known = xgrow(r->known, r->n_known, &r->known_cap, 1);
        r->known[r->n_known++] = 0;
    }
    if (r->known[host->number]) {
        struct jtext value = {.data = name, .size = strlen(name)};
        json_refuse(r, at, "hosts[].name", &value, "there once");
    }
    r->known[host->number] = 1;
}

static void read_host(struct json_reader *r)
{
    struct json_host host = {.number = -1};
    struct jtext key;
    size_t at = jscan_offset(&r->s);
    if (!jscan_object(&r->s))
        return;
    while (jscan_member(&r->s, &key)) {
        if (jtext_is(&key, "name") && host.number < 0) {
            read_name(r, &host);
        } else if (jtext_is(&key, "leaf")) {
            struct fabric_plug *plug = next_plug(r, &host);
            int leaf = plug ? json_switch(r, "hosts[].leaf") : -1;
            if (leaf >= 0)
                plug->at = (uint32_t)leaf;
        } else if (jtext_is(&key, "ports")) {
            if (jscan_array(&r->s))
                while (jscan_element(&r->s))
                    read_port(r, &host);
        } else {
            json_refuse(r, jscan_offset(&r->s), "hosts[]: member", &key,
                        "name (once), leaf or ports");
        }
    }
    if (r->s.fault)
        return;
    if (host.number < 0 || host.n_plugs == 0) {
        json_refuse(r, at, host.number < 0 ? "hosts[].name" : "hosts[].leaf",
                    NULL, "required member missing");
        return;
    }
    for (size_t i = 0; i < host.n_plugs && r->rc == 0; i++) {
        host.plugs[i].host = (uint32_t)host.number;
        if (fabric_graph_plug(r->g, &host.plugs[i], r->err) < 0)
            json_fail(r, at);
    }
}

static void read_hosts(struct json_reader *r)
{
    if (jscan_array(&r->s))
        while (jscan_element(&r->s))
            read_host(r);
}

/* --- the whole ---------------------------------------------------------- */

static void read_top(struct json_reader *r)
{
    struct jtext key;
    jscan_init(&r->s, r->source->text, r->source->size);
    if (!jscan_object(&r->s))
        return;
    while (jscan_member(&r->s, &key)) {
        if (jtext_is(&key, "switches"))
            read_switches(r);
        else if (jtext_is(&key, "hosts"))
            read_hosts(r);
        else
            json_refuse(r, jscan_offset(&r->s), "member", &key,
                        "switches or hosts");
    }
}

int fabric_read_json(const struct fabric_source *source, struct fabric_graph *g,
                     struct error *err)
{
    struct error own = {0};
    struct json_reader r = {.source = source, .g = g, .err = &own};
    read_top(&r);
    if (r.rc == 0 && !jscan_end(&r.s)) {
        (void)jscan_error(&r.s, &own);
        r.rc = error_wrap(&own, "%s", source->name);
    }
    for (size_t i = 0; r.rc == 0 && i < r.n_declared; i++)
        if (!r.declared[i])
            r.rc = error_set(&own, EINVAL,
                             "%s:%zu: switch \"%.64s\" is not among switches",
                             source->name, fabric_line(source, r.mentioned[i]),
                             g->switches[i].name);
    free(r.declared);
    free(r.mentioned);
    free(r.known);
    if (r.rc < 0 && err)
        *err = own;
    return r.rc;
}
