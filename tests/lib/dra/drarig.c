#include "tests/lib/dra/drarig.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/io/file.h"
#include "model/topo/topo_builder.h"
#include "tests/lib/tmpdir.h"

static void add_card(struct topo_builder *b, uint8_t bus, bool by_claims)
{
    const struct pci_addr functions[] = {{.bus = bus},
                                         {.bus = bus, .function = 2}};
    char id[TOPO_ID_MAX + 1];
    const struct device card = {
        .kind = DEVICE_CARD,
        .id = id,
        .numa = -1,
        .package = -1,
        .has_pci = true,
        .pci = functions[0],
        .root_domain = TOPO_ROOT_NONE,
        .vendor_id = 0x15b3,
        .device_id = 0xa2dc,
        .n_functions = 2,
        .cores = 8,
        .functions = functions,
        .by_claims = by_claims,
    };
    device_id_format(DEVICE_CARD, &functions[0], id);
    topo_builder_add(b, &card, NULL);
}

static struct topo *make_topo(void)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("n1");
    struct topo *topo = NULL;
    const struct device gpu = {.kind = DEVICE_GPU,
                               .id = "gpu-0000-1b-00-0",
                               .numa = -1,
                               .package = -1,
                               .has_pci = true,
                               .pci = {.bus = 0x1b},
                               .root_domain = TOPO_ROOT_NONE};
    add_card(b, 0x17, true);
    add_card(b, 0x18, true);
    add_card(b, 0x19, false);
    topo_builder_add(b, &gpu, NULL);
    if (topo_build(b, &topo, NULL) < 0)
        abort();
    return topo;
}

void drarig_init(struct drarig *r, const char *root)
{
    memset(r, 0, sizeof *r);
    r->own = !root;
    r->root = root ? xstrdup(root) : tmpdir_create();
    r->dir = xasprintf("%s/kubelet/plugins/xpu.biga.dev/claims", r->root);
    r->cdi_dir = xasprintf("%s/run/cdi", r->root);
    r->topo = make_topo();
    r->host = (struct cdi_host){.topo = r->topo, .sysroot = r->root};
    r->grace_ms = 1000;
}

void drarig_fini(struct drarig *r)
{
    drarig_close(r);
    for (size_t i = 0; i < DRARIG_CLAIMS_MAX; i++)
        free(r->claims[i].json);
    topo_unref(r->topo);
    free(r->dir);
    free(r->cdi_dir);
    if (r->own)
        tmpdir_remove(r->root);
    else
        free(r->root);
}

void drarig_open(struct drarig *r)
{
    struct error err = {0};
    const struct dra_claims_config config = {.node = "n1",
                                             .dir = r->dir,
                                             .cdi_dir = r->cdi_dir,
                                             .grace_ms = r->grace_ms,
                                             .look_up = drarig_look_up,
                                             .ctx = r};
    if (dra_claims_open(&config, &r->open, &err) < 0) {
        (void)fprintf(stderr, "drarig: %s\n", err.text);
        abort();
    }
    dra_claims_restore(r->open, &r->host);
}

void drarig_close(struct drarig *r)
{
    dra_claims_close(r->open);
    r->open = NULL;
}

/* --- the API server ------------------------------------------------------- */

int drarig_look_up(void *ctx, const char *namespace, const char *name,
                   struct str *ret_json, struct error *err)
{
    struct drarig *r = ctx;
    r->n_looked_up++;
    if (r->fails)
        return error_set(err, -r->fails, "GET %s/%s: told to fail", namespace,
                         name);
    for (size_t i = 0; i < DRARIG_CLAIMS_MAX; i++)
        if (r->claims[i].json && strcmp(r->claims[i].name, name) == 0) {
            str_add(ret_json, r->claims[i].json);
            return 0;
        }
    return error_set(err, ENOENT, "GET %s/%s: not found", namespace, name);
}

void drarig_claim_json(struct drarig *r, const char *name, const char *json)
{
    size_t at = 0;
    while (at < DRARIG_CLAIMS_MAX && r->claims[at].name[0] &&
           strcmp(r->claims[at].name, name) != 0)
        at++;
    if (at == DRARIG_CLAIMS_MAX)
        abort();
    (void)snprintf(r->claims[at].name, sizeof r->claims[at].name, "%s", name);
    free(r->claims[at].json);
    r->claims[at].json = json ? xstrdup(json) : NULL;
}

void drarig_claim(struct drarig *r, const char *name, const char *uid,
                  const char *cards)
{
    cleanup_str struct str s = STR_INIT(1 << 20);
    cleanup_free char *list = xstrdup(cards ? cards : "");
    unsigned n = 0;
    str_addf(&s,
             "{\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"%s\","
             "\"namespace\":\"default\",\"uid\":\"%s\"},\"spec\":{}",
             name, uid ? uid : "");
    if (*list)
        str_add(&s, ",\"status\":{\"allocation\":{\"devices\":{\"results\":[");
    for (char *rest = list, *card; *list && rest; n++) {
        card = strsep(&rest, ",");
        char *cores = strchr(card, '*');
        if (cores)
            *cores++ = '\0';
        str_addf(&s,
                 "%s{\"request\":\"r%u\",\"driver\":\"xpu.biga.dev\","
                 "\"pool\":\"n1\",\"device\":\"%s\"",
                 n ? "," : "", n, card);
        if (cores)
            str_addf(&s,
                     ",\"shareID\":\"s%u\",\"consumedCapacity\":{"
                     "\"biga.dev/cores\":\"%s\",\"biga.dev/memory\":\"1Gi\"}",
                     n, cores);
        str_add(&s, "}");
    }
    if (n)
        str_add(&s, "]}}}");
    str_add(&s, "}");
    drarig_claim_json(r, name, uid ? str_text(&s) : NULL);
}

/* --- calls ---------------------------------------------------------------- */

struct dra_ref drarig_ref(const char *name, const char *uid)
{
    struct dra_ref ref = {.namespace = "default"};
    (void)snprintf(ref.name, sizeof ref.name, "%s", name);
    (void)snprintf(ref.uid, sizeof ref.uid, "%s", uid);
    return ref;
}

int drarig_prepare(struct drarig *r, const char *name, const char *uid,
                   struct error *err)
{
    struct dra_ref ref = drarig_ref(name, uid);
    const struct dra_record *record = NULL;
    int e = dra_claims_prepare(r->open, &ref, &r->host, &record, err);
    if (e == 0 && (!record || strcmp(record->uid, uid) != 0))
        abort();
    return e;
}

int drarig_unprepare(struct drarig *r, const char *name, const char *uid,
                     struct error *err)
{
    struct dra_ref ref = drarig_ref(name, uid);
    return dra_claims_unprepare(r->open, &ref, err);
}

/* --- the disk ------------------------------------------------------------- */

static char *cdi_path(const struct drarig *r, const char *uid)
{
    return xasprintf("%s/xpu.biga.dev-claim_%s.json", r->cdi_dir, uid);
}

bool drarig_has_record(const struct drarig *r, const char *uid)
{
    cleanup_free char *path = xasprintf("%s/%s.json", r->dir, uid);
    return access(path, F_OK) == 0;
}

bool drarig_has_cdi(const struct drarig *r, const char *uid)
{
    cleanup_free char *path = cdi_path(r, uid);
    return access(path, F_OK) == 0;
}

char *drarig_cdi(const struct drarig *r, const char *uid)
{
    cleanup_free char *path = cdi_path(r, uid);
    char *text = NULL;
    size_t size;
    return file_read(path, CDI_MAX, &text, &size, NULL) < 0 ? xstrdup("")
                                                            : text;
}

static size_t count(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;
    for (const struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        (void)closedir(d);
    return n;
}

size_t drarig_n_files(const struct drarig *r)
{
    return count(r->dir) + count(r->cdi_dir);
}

void drarig_write(const struct drarig *r, const char *path, const char *text)
{
    cleanup_free char *whole = xasprintf("%s/%s", r->root, path);
    cleanup_free char *above = xstrdup(whole);
    *strrchr(above, '/') = '\0';
    if (dra_make_dirs(above, 0755, NULL) < 0)
        abort();
    FILE *f = fopen(whole, "we");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        abort();
}
