#include "router/keep/kept_text.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/json.h"
#include "lib/base/jwrite.h"

enum {
    MAC_SIZE = 32,
    HEAD_SIZE = 3 + 2 * MAC_SIZE + 1, /* "v1 ", the MAC, a space */
};

/* --- writing -------------------------------------------------------------- */

static void write_sandbox(const struct kept *k, bool whole, struct str *out)
{
    jwrite_known_text(out, "handler", k->handler);
    jwrite_known_text(out, "logs", k->log_directory);
    if (whole)
        jwrite_known_text(out, "allocation", k->allocation);
    jwrite_bool(out, "hostNetwork", k->host_network);
}

static void write_bytes(const char *name, struct proto_bytes bytes,
                        struct str *out)
{
    cleanup_str struct str text = STR_INIT(2 * KEPT_MOUNTS_MAX);
    if (!bytes.size)
        return;
    base64_add(&text, bytes.data, bytes.size);
    jwrite_text(out, name, str_text(&text));
}

static void write_container(const struct kept *k, bool whole, struct str *out)
{
    jwrite_text(out, "sandbox", k->sandbox_id);
    jwrite_text(out, "container", k->container);
    jwrite_known_text(out, "image", k->image);
    jwrite_known_text(out, "log", k->log_path);
    if (whole)
        write_bytes("mounts", k->mounts, out);
    write_bytes("ended", k->ended, out);
}

/* The hash is text, because JSON's numbers have 53 bits. */
static void write_kept(const struct kept *k, const char *id, bool whole,
                       struct str *out)
{
    char hash[17];
    (void)snprintf(hash, sizeof hash, "%016llx", (unsigned long long)k->hash);
    jwrite_object(out, NULL);
    jwrite_known_text(out, "id", id);
    jwrite_text(out, "remote", k->remote);
    jwrite_text(out, "namespace", k->namespace);
    jwrite_text(out, "name", k->name);
    jwrite_text(out, "uid", k->uid);
    jwrite_uint(out, "attempt", k->attempt);
    jwrite_text(out, "hash", hash);
    jwrite_int(out, "made", k->made_s);
    if (k->kind == KEPT_SANDBOX)
        write_sandbox(k, whole, out);
    else
        write_container(k, whole, out);
    jwrite_end_object(out);
}

void kept_text_write(const struct kept *k, struct str *out)
{
    write_kept(k, k->id, true, out);
}

/* --- reading -------------------------------------------------------------- */

static const char *opt_text(struct reader *r, const char *name, size_t max)
{
    const char *text = reader_opt_string(r, name, max);
    return text ? text : "";
}

static const char *need_text(struct reader *r, const char *name, size_t max)
{
    const char *text = reader_string(r, name, max);
    return text ? text : "";
}

static uint64_t take_hash(struct reader *r)
{
    uint64_t hash = 0;
    const char *text = need_text(r, "hash", 16);
    if (strlen(text) != 16)
        (void)reader_fail(r, "hash", "16 hexadecimal digits are needed");
    for (const char *p = text; *p; p++) {
        if (hex_digit(*p) < 0)
            (void)reader_fail(r, "hash", "\"%.16s\" is not hexadecimal", text);
        hash = hash << 4 | (uint64_t)(hex_digit(*p) & 15);
    }
    return hash;
}

static void take_id(struct reader *r, const char *name,
                    char ret_id[KEPT_ID_MAX + 1])
{
    (void)snprintf(ret_id, KEPT_ID_MAX + 1, "%s",
                   opt_text(r, name, KEPT_ID_MAX));
}

static struct proto_bytes take_bytes(struct reader *r, const char *name,
                                     size_t max, struct str *bytes)
{
    const char *text = opt_text(r, name, 2 * max);
    str_init(bytes, max);
    if (*text && !base64_decode(text, strlen(text), bytes))
        (void)reader_fail(r, name, "is no base64 of at most %zu bytes", max);
    return (struct proto_bytes){str_text(bytes), bytes->size};
}

/* What is of the other kind is not looked at, and so is not let in. */
static void read_sandbox(struct reader *r, struct kept *k)
{
    k->handler = opt_text(r, "handler", KEPT_NAME_MAX);
    k->log_directory = opt_text(r, "logs", KEPT_PATH_MAX);
    k->allocation = opt_text(r, "allocation", KEPT_ALLOCATION_MAX);
    k->host_network = reader_opt_bool(r, "hostNetwork", false);
    k->image = k->log_path = "";
}

struct decoded {
    struct str mounts, ended;
};

static void read_container(struct reader *r, struct kept *k, struct decoded *d)
{
    take_id(r, "sandbox", k->sandbox_id);
    k->image = opt_text(r, "image", KEPT_PATH_MAX);
    k->log_path = opt_text(r, "log", KEPT_PATH_MAX);
    k->mounts = take_bytes(r, "mounts", KEPT_MOUNTS_MAX, &d->mounts);
    if (k->state == KEPT_MADE)
        k->ended = take_bytes(r, "ended", KEPT_ENDED_MAX, &d->ended);
    k->handler = k->log_directory = k->allocation = "";
}

/* Texts are borrowed from the JSON and from `d`. */
static int read_kept(const cJSON *json, struct kept *k, struct decoded *d,
                     struct error *err)
{
    enum { YEAR_9999_S = 253402300799 };
    struct reader r;
    reader_init(&r, json, "", err);
    take_id(&r, "id", k->id);
    k->state = k->id[0] ? KEPT_MADE : KEPT_ANNOUNCED;
    k->remote = need_text(&r, "remote", KEPT_NAME_MAX);
    k->namespace = need_text(&r, "namespace", KEPT_NAME_MAX);
    k->name = need_text(&r, "name", KEPT_NAME_MAX);
    k->uid = need_text(&r, "uid", KEPT_NAME_MAX);
    k->attempt = (uint32_t)reader_int(&r, "attempt", 0, UINT32_MAX);
    k->hash = take_hash(&r);
    k->made_s = reader_int(&r, "made", 0, YEAR_9999_S);
    k->container = opt_text(&r, "container", KEPT_NAME_MAX);
    k->kind = *k->container ? KEPT_CONTAINER : KEPT_SANDBOX;
    if (k->kind == KEPT_SANDBOX)
        read_sandbox(&r, k);
    else
        read_container(&r, k, d);
    return r.failed ? -EINVAL : kept_check(k, err);
}

int kept_text_read(const char *text, size_t size, struct kept **ret_kept,
                   struct error *err)
{
    cleanup_with(json) cJSON *json = NULL;
    struct decoded d = {0};
    struct kept k = {0};
    if (size > KEPT_TEXT_MAX)
        return error_set(err, EINVAL, "kept: has %zu bytes, %d are allowed",
                         size, KEPT_TEXT_MAX);
    if (json_parse(text, size, &json, err) < 0)
        return -EINVAL;
    int e = read_kept(json, &k, &d, err);
    if (e == 0)
        *ret_kept = kept_copy(&k);
    str_fini(&d.mounts);
    str_fini(&d.ended);
    return e;
}

/* --- sealed --------------------------------------------------------------- */

static void mac_of(const struct kept_secret *secret, const char *text,
                   size_t size, char ret_hex[2 * MAC_SIZE + 1])
{
    unsigned char mac[MAC_SIZE];
    if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, secret->bytes, KEPT_SECRET_SIZE,
                         text, size, mac) < 0)
        abort(); /* SHA-256 is always there; else it is out of memory */
    for (size_t i = 0; i < MAC_SIZE; i++)
        (void)snprintf(ret_hex + 2 * i, 3, "%02x", mac[i]);
}

void kept_seal(const struct kept *k, const struct kept_secret *secret,
               struct str *out)
{
    cleanup_str struct str json = STR_INIT(KEPT_SEALED_MAX - HEAD_SIZE);
    char mac[2 * MAC_SIZE + 1];
    write_kept(k, "", true, &json);
    if (json.overflow) {
        str_fini(&json);
        json = STR_INIT(KEPT_SEALED_MAX - HEAD_SIZE);
        write_kept(k, "", false, &json);
    }
    mac_of(secret, str_text(&json), json.size, mac);
    str_addf(out, "v1 %s ", mac);
    str_add_n(out, str_text(&json), json.size);
}

int kept_unseal(const char *text, const struct kept_secret *secret,
                struct kept **ret_kept, bool *ret_sealed, struct error *err)
{
    char mac[2 * MAC_SIZE + 1];
    struct kept *k = NULL;
    size_t size = strnlen(text, KEPT_SEALED_MAX + 1);
    if (size > KEPT_SEALED_MAX || size < HEAD_SIZE ||
        strncmp(text, "v1 ", 3) != 0 || text[HEAD_SIZE - 1] != ' ')
        return error_set(err, EINVAL,
                         "kept: does not begin with \"v1 \" and a seal, or "
                         "has more than %d bytes",
                         KEPT_SEALED_MAX);
    const char *json = text + HEAD_SIZE;
    int e = kept_text_read(json, size - HEAD_SIZE, &k, err);
    if (e < 0)
        return e;
    if (k->state != KEPT_ANNOUNCED) {
        kept_unref(k);
        return error_set(err, EINVAL, "kept: a sealed one has no id");
    }
    mac_of(secret, json, size - HEAD_SIZE, mac);
    *ret_sealed = gnutls_memcmp(mac, text + 3, sizeof mac - 1) == 0;
    *ret_kept = k;
    return 0;
}
