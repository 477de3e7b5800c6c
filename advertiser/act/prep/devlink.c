#include "advertiser/act/prep/devlink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hidden_text.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"

enum { WORD_MAX = 4096 }; /* bytes of any text in there */

/* One line, cut. */
static void put(char to[DEVLINK_TEXT_MAX + 1], const char *text)
{
    size_t size = text ? strnlen(text, DEVLINK_TEXT_MAX) : 0;
    if (size > 0)
        memcpy(to, text, size);
    for (size_t i = 0; i < size; i++)
        if (to[i] == '\n' || to[i] == '\t')
            to[i] = '?';
    to[hidden_text_blank(to, size)] = '\0';
}

/* The object `name` of the top. */
static int open_top(const char *json, size_t size, const char *name,
                    cJSON **ret_root, const cJSON **ret_top, struct error *err)
{
    struct reader r;
    int e = json_parse(json, size, ret_root, err);
    if (e < 0)
        return e;
    reader_init(&r, *ret_root, "", err);
    *ret_top = reader_object(&r, name);
    return reader_finish_lenient(&r);
}

/* --- ports ---------------------------------------------------------------- */

static bool is_of(const char *handle, const char *pci)
{
    size_t n = strlen(pci);
    return strncmp(handle, "pci/", 4) == 0 &&
           strncmp(handle + 4, pci, n) == 0 && handle[4 + n] == '/';
}

static bool is_word(const char *text, const char *word)
{
    return text && strcmp(text, word) == 0;
}

static int read_function(const cJSON *json, const char *path,
                         struct devlink_sf *sf, struct error *err)
{
    struct reader r;
    char at[READER_PATH_MAX];
    (void)snprintf(at, sizeof at, "%.150s.function", path);
    reader_init(&r, json, at, err);
    sf->active = is_word(reader_opt_string(&r, "state", WORD_MAX), "active");
    sf->attached = is_word(reader_opt_string(&r, "opstate", WORD_MAX),
                           "attached");
    return reader_finish_lenient(&r);
}

/* 1 when it is a scalable function of the PCI function's own. */
static int read_port(const cJSON *json, struct devlink_sf *sf,
                     struct error *err)
{
    struct reader r;
    char path[READER_PATH_MAX];
    (void)snprintf(path, sizeof path, "port.%.63s", json->string);
    reader_init(&r, json, path, err);
    const char *flavour = reader_opt_string(&r, "flavour", WORD_MAX);
    int64_t controller = reader_opt_int(&r, "controller", 0, UINT32_MAX, 0);
    if (!is_word(flavour, "pcisf") || controller != 0)
        return reader_finish_lenient(&r);
    if (strlen(json->string) > DEVLINK_HANDLE_MAX)
        return reader_fail(&r, NULL, "its handle has more than %d bytes",
                           DEVLINK_HANDLE_MAX);
    (void)snprintf(sf->handle, sizeof sf->handle, "%s", json->string);
    sf->pfnum = (uint32_t)reader_int(&r, "pfnum", 0, UINT32_MAX);
    sf->sfnum = (uint32_t)reader_int(&r, "sfnum", 0, UINT32_MAX);
    const cJSON *function = reader_opt_object(&r, "function");
    int e = reader_finish_lenient(&r);
    if (e == 0 && function)
        e = read_function(function, path, sf, err);
    return e < 0 ? e : 1;
}

int devlink_read_sfs(const char *json, size_t size, const char *pci,
                     struct devlink_sfs *ret_sfs, struct error *err)
{
    cleanup_with(json) cJSON *root = NULL;
    cleanup_free struct devlink_sf *list = NULL;
    const cJSON *ports = NULL, *port;
    size_t n = 0, cap = 0;
    int e = open_top(json, size, "port", &root, &ports, err);
    if (e < 0)
        return e;
    cJSON_ArrayForEach(port, ports)
    {
        struct devlink_sf sf = {.handle = ""};
        e = is_of(port->string, pci) ? read_port(port, &sf, err) : 0;
        if (e < 0)
            return e;
        if (e == 0)
            continue;
        if (n == DEVLINK_PORTS_MAX)
            return error_set(err, E2BIG, "port: more than %d of flavour pcisf",
                             DEVLINK_PORTS_MAX);
        list = xgrow(list, n, &cap, sizeof *list);
        list[n++] = sf;
    }
    *ret_sfs = (struct devlink_sfs){.list = steal(&list), .n = n};
    return 0;
}

/* --- the device ----------------------------------------------------------- */

/* What is told of the function `pci`; NULL: nothing. */
static const cJSON *find_device(const cJSON *top, const char *pci)
{
    const cJSON *x;
    cJSON_ArrayForEach(x, top)
    {
        if (strncmp(x->string, "pci/", 4) == 0 &&
            strcmp(x->string + 4, pci) == 0 && cJSON_IsObject(x))
            return x;
    }
    return NULL;
}

static const char *text_of(const cJSON *object, const char *name)
{
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(x) ? x->valuestring : NULL;
}

/* Drivers call it by one of these. */
static const char *version_of(const cJSON *versions, const char *kind)
{
    const cJSON *of = cJSON_GetObjectItemCaseSensitive(versions, kind);
    const char *version = text_of(of, "fw.version");
    if (!version)
        version = text_of(of, "fw");
    return version ? version : text_of(of, "fw.mgmt");
}

int devlink_read_info(const char *json, size_t size, const char *pci,
                      struct devlink_info *ret_info, struct error *err)
{
    cleanup_with(json) cJSON *root = NULL;
    const cJSON *top = NULL;
    int e = open_top(json, size, "info", &root, &top, err);
    if (e < 0)
        return e;
    const cJSON *device = find_device(top, pci);
    const cJSON *versions = cJSON_GetObjectItemCaseSensitive(device,
                                                             "versions");
    *ret_info = (struct devlink_info){.driver = ""};
    put(ret_info->driver, text_of(device, "driver"));
    put(ret_info->serial, text_of(device, "serial_number"));
    put(ret_info->firmware, version_of(versions, "running"));
    put(ret_info->stored, version_of(versions, "stored"));
    put(ret_info->psid,
        text_of(cJSON_GetObjectItemCaseSensitive(versions, "fixed"),
                "fw.psid"));
    return 0;
}

int devlink_read_eswitch(const char *json, size_t size, const char *pci,
                         char ret_mode[DEVLINK_TEXT_MAX + 1], struct error *err)
{
    cleanup_with(json) cJSON *root = NULL;
    const cJSON *top = NULL;
    int e = open_top(json, size, "dev", &root, &top, err);
    if (e == 0)
        put(ret_mode, text_of(find_device(top, pci), "mode"));
    return e;
}
