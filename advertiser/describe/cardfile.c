#include "advertiser/describe/cardfile.h"

#include <string.h>

#include "lib/base/json.h"
#include "lib/io/file.h"

enum { ARCH_MAX = 15, CORES_MAX = 65535, MEMORY_MIB_MAX = 1 << 30 };

/* Ordered: the more particular, the greater. */
enum match { MATCH_NONE, MATCH_ID, MATCH_SERIAL, MATCH_PCI };

struct entry {
    enum match match;
    struct pci_addr pci;
    uint16_t vendor_id, device_id;
    const char *serial;
    struct cardfile_card card;
};

struct cardfile {
    struct arena arena; /* all texts */
    struct entry *entries;
    size_t n_entries;
};

void cardfile_destroy(struct cardfile *file)
{
    if (!file)
        return;
    arena_fini(&file->arena);
    free(file->entries);
    free(file);
}

/* --- reading ------------------------------------------------------------ */

static const char *text_keep(struct cardfile *file, const char *text)
{
    return text ? arena_strndup(&file->arena, text, strlen(text)) : "";
}

static bool id_parse(const char *text, uint16_t *ret_vendor,
                     uint16_t *ret_device)
{
    if (strlen(text) != 9 || text[4] != ':' ||
        strspn(text, "0123456789abcdefABCDEF") != 4 ||
        strspn(text + 5, "0123456789abcdefABCDEF") != 4)
        return false;
    *ret_vendor = (uint16_t)strtoul(text, NULL, 16);
    *ret_device = (uint16_t)strtoul(text + 5, NULL, 16);
    return true;
}

/* "0000:17:00.0", or without the function. */
static bool pci_parse(const char *text, struct pci_addr *ret_pci)
{
    char whole[PCI_ADDR_TEXT_MAX + 2];
    if (strlen(text) >= PCI_ADDR_TEXT_MAX)
        return false;
    const char *end = strchr(text, '.') ? "" : ".0";
    snprintf(whole, sizeof(whole), "%s%s", text, end);
    return pci_addr_parse(whole, ret_pci, NULL) == 0;
}

static int match_read(struct cardfile *file, const cJSON *json,
                      const char *path, struct entry *e, struct error *err)
{
    struct reader r;
    reader_init(&r, json, path, err);
    const char *pci = reader_opt_string(&r, "pci", 32);
    const char *id = reader_opt_string(&r, "id", 32);
    const char *serial = reader_opt_string(&r, "serial", TOPO_TEXT_MAX);
    if ((pci != NULL) + (id != NULL) + (serial != NULL) != 1)
        reader_fail(&r, NULL, "must have exactly one of pci, id and serial");
    if (pci && !pci_parse(pci, &e->pci))
        reader_fail(&r, "pci",
                    "is \"%s\", must be a PCI address like 0000:17:00.0", pci);
    if (id && !id_parse(id, &e->vendor_id, &e->device_id))
        reader_fail(&r, "id", "is \"%s\", must be vendor:device like 15b3:a2dc",
                    id);
    if (serial && !*serial)
        reader_fail(&r, "serial", "must not be empty");
    e->serial = text_keep(file, serial);
    e->match = pci ? MATCH_PCI : serial ? MATCH_SERIAL : MATCH_ID;
    return reader_finish_strict(&r);
}

static int tls_read(struct cardfile *file, const cJSON *json, const char *path,
                    struct cardfile_card *card, struct error *err)
{
    static const char *const names[] = {"ca", "cert", "key"};
    const char **const texts[] = {&card->tls_ca, &card->tls_cert,
                                  &card->tls_key};
    struct reader r;
    reader_init(&r, json, path, err);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *text = reader_string(&r, names[i], CARDFILE_PATH_MAX);
        if (text && *text != '/')
            reader_fail(&r, names[i], "is \"%.64s\", must be an absolute path",
                        text);
        *texts[i] = text_keep(file, text);
    }
    return reader_finish_strict(&r);
}

/* tcp://host:port */
static bool endpoint_valid(const char *text)
{
    static const char scheme[] = "tcp://";
    if (strncmp(text, scheme, sizeof(scheme) - 1) != 0)
        return false;
    const char *host = text + sizeof(scheme) - 1;
    const char *colon = strrchr(host, ':');
    if (!colon || colon == host || strpbrk(host, "/ \t?#@"))
        return false;
    size_t digits = strspn(colon + 1, "0123456789");
    unsigned long port = digits < 6 ? strtoul(colon + 1, NULL, 10) : 0;
    return digits > 0 && colon[1 + digits] == '\0' && port >= 1 &&
           port <= 65535;
}

static bool arch_valid(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    return *text && text[strspn(text, allowed)] == '\0';
}

static void texts_read(struct cardfile *file, struct reader *r,
                       struct cardfile_card *card)
{
    const char *arch = reader_opt_string(r, "arch", ARCH_MAX);
    const char *endpoint = reader_opt_string(r, "endpoint", TOPO_TEXT_MAX);
    if (arch && !arch_valid(arch))
        reader_fail(r, "arch",
                    "is \"%s\", must be like arm64: a to z, 0 to 9, _ and -",
                    arch);
    if (endpoint && !endpoint_valid(endpoint))
        reader_fail(r, "endpoint", "is \"%s\", must be tcp://HOST:PORT",
                    endpoint);
    card->arch = text_keep(file, arch);
    card->endpoint = text_keep(file, endpoint);
    card->model = text_keep(file, reader_opt_string(r, "model", TOPO_TEXT_MAX));
    card->fabric_port =
        text_keep(file, reader_opt_string(r, "fabric-port", TOPO_TEXT_MAX));
}

/* Below /dev, without a way out of it. */
static bool node_valid(const char *path)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:";
    return strncmp(path, "/dev/", 5) == 0 && path[5] &&
           !path[strspn(path, allowed)] && !strstr(path, "/.") &&
           !strstr(path, "//") && strlen(path) <= CARDFILE_NODE_MAX;
}

static int nodes_read(struct cardfile *file, const cJSON *json,
                      const char *path, struct cardfile_card *card,
                      struct error *err)
{
    const char **nodes = arena_alloc(&file->arena,
                                     CARDFILE_NODES_MAX * sizeof *nodes);
    const cJSON *node;
    cJSON_ArrayForEach(node, json)
    {
        const char *text = cJSON_GetStringValue(node);
        size_t i = card->n_device_nodes;
        if (!text || !node_valid(text))
            return error_set(err, EINVAL,
                             "%s[%zu]: is %s%.64s%s, must be a path below /dev "
                             "of at most %d bytes",
                             path, i, text ? "\"" : "no text", text ? text : "",
                             text ? "\"" : "", CARDFILE_NODE_MAX);
        nodes[i] = text_keep(file, text);
        card->n_device_nodes++;
    }
    card->device_nodes = nodes;
    return 0;
}

/* A path, of which parts may be patterns as glob(7) has them. */
static bool glob_valid(const char *path)
{
    char plain[CARDFILE_NODE_MAX + 1];
    size_t size = strlen(path), n = 0;
    bool within = false;
    if (size > CARDFILE_NODE_MAX)
        return false;
    for (const char *p = path; *p; p++) {
        if (within && (*p == '/' || *p == '['))
            return false;
        within = *p == '[' || (within && *p != ']');
        plain[n++] = strchr("*?[]!", *p) ? 'x' : *p;
    }
    plain[n] = '\0';
    return !within && node_valid(plain) &&
           strncmp(path, "/dev/shm/", 9) != 0; /* there anybody makes files */
}

static int globs_read(struct cardfile *file, const cJSON *json,
                      const char *path, struct cardfile_set *set,
                      struct error *err)
{
    const cJSON *glob;
    int n = cJSON_GetArraySize(json);
    if (n < 1 || n > CARDFILE_GLOBS_MAX)
        return error_set(err, EINVAL, "%s: has %d paths, must have 1 to %d",
                         path, n, CARDFILE_GLOBS_MAX);
    cJSON_ArrayForEach(glob, json)
    {
        const char *text = cJSON_GetStringValue(glob);
        if (!text || !glob_valid(text))
            return error_set(err, EINVAL,
                             "%s[%zu]: is %s%.64s%s, must be a path below /dev "
                             "but not /dev/shm, of at most %d bytes, in which "
                             "*, ? and [a-f] are patterns",
                             path, set->n_globs, text ? "\"" : "no text",
                             text ? text : "", text ? "\"" : "",
                             CARDFILE_NODE_MAX);
        set->globs[set->n_globs++] = text_keep(file, text);
    }
    return 0;
}

static int hugepages_read(const cJSON *json, const char *path,
                          struct cardfile_set *set, struct error *err)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, json)
    {
        const char *text = cJSON_GetStringValue(m);
        uint64_t page, bytes;
        if (!hugepages_page_parse(m->string, &page))
            return error_set(err, EINVAL,
                             "%s: has \"%.48s\", must be sizes of pages, such "
                             "as 2Mi or 1Gi",
                             path, m->string);
        if (!text || !hugepages_amount_parse(text, page, &bytes))
            return error_set(err, EINVAL,
                             "%s.%s: is %s%.48s%s, must be whole pages, such "
                             "as \"512Mi\" or \"4Gi\"",
                             path, m->string, text ? "\"" : "no text",
                             text ? text : "", text ? "\"" : "");
        if (!hugepages_add(&set->hugepages, page, bytes))
            return error_set(err, EINVAL, "%s: has more than %d sizes of pages",
                             path, HUGEPAGES_SIZES_MAX);
    }
    return 0;
}

static int capabilities_read(const cJSON *json, const char *path,
                             struct cardfile_set *set, struct error *err)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, json)
    {
        const char *text = cJSON_GetStringValue(m);
        if (!text || strcmp(text, "IPC_LOCK") != 0)
            return error_set(
                err, EINVAL,
                "%s: has %s%.48s%s, must be \"IPC_LOCK\": whatever "
                "else pods may have is for --allow to say",
                path, text ? "\"" : "no text", text ? text : "",
                text ? "\"" : "");
        set->ipc_lock = true;
    }
    return 0;
}

static int set_object_read(struct cardfile *file, const cJSON *json,
                           const char *path, struct cardfile_set *set,
                           struct error *err)
{
    char sub[READER_PATH_MAX];
    struct reader r;
    reader_init(&r, json, path, err);
    const cJSON *pages = reader_opt_object(&r, "hugepages");
    const cJSON *rights = reader_opt_array(&r, "capabilities", 1);
    const cJSON *paths = pages || rights
                             ? reader_opt_array(&r, "paths", CARDFILE_GLOBS_MAX)
                             : reader_array(&r, "paths", CARDFILE_GLOBS_MAX);
    set->share = (uint32_t)reader_opt_int(&r, "share", 1, CARDFILE_SHARE_MAX,
                                          1);
    if (reader_finish_strict(&r) < 0)
        return -EINVAL;
    reader_path(&r, "hugepages", -1, sub);
    int rc = hugepages_read(pages, sub, set, err);
    if (rc == 0) {
        reader_path(&r, "capabilities", -1, sub);
        rc = capabilities_read(rights, sub, set, err);
    }
    if (rc == 0 && paths) {
        reader_path(&r, "paths", -1, sub);
        rc = globs_read(file, paths, sub, set, err);
    }
    if (rc == 0 && set->n_globs + set->hugepages.n + set->ipc_lock == 0)
        return error_set(err, EINVAL, "%s: must give something", path);
    return rc;
}

/* A list of paths, or an object with more. */
static int set_read(struct cardfile *file, const cJSON *json, const char *path,
                    struct cardfile_set *set, struct error *err)
{
    set->share = 1;
    if (cJSON_IsArray(json))
        return globs_read(file, json, path, set, err);
    if (!cJSON_IsObject(json))
        return error_set(err, EINVAL,
                         "%s: must be a list of paths, or an object with paths "
                         "and share",
                         path);
    return set_object_read(file, json, path, set, err);
}

static int sets_read(struct cardfile *file, const cJSON *json, const char *path,
                     struct cardfile_card *card, struct error *err)
{
    struct cardfile_set *sets = arena_alloc(&file->arena,
                                            DEVICE_SETS_MAX * sizeof *sets);
    struct device_sets names = {""};
    const cJSON *m;
    cJSON_ArrayForEach(m, json)
    {
        char sub[READER_PATH_MAX];
        struct cardfile_set *set = &sets[card->n_sets];
        if (!device_set_valid(m->string, strlen(m->string)))
            return error_set(err, EINVAL,
                             "%s: has \"%.48s\", must be names of sets: 1 to "
                             "%d of a-z, 0-9 and '-', no '-' at an end",
                             path, m->string, DEVICE_SET_NAME_MAX);
        if (!device_sets_add(&names, m->string, strlen(m->string)))
            return error_set(err, EINVAL,
                             "%s: has more than %d sets, or their names have "
                             "more than %d bytes with a space between",
                             path, DEVICE_SETS_MAX, DEVICE_SETS_TEXT_MAX);
        memset(set, 0, sizeof *set);
        set->name = text_keep(file, m->string);
        (void)snprintf(sub, sizeof sub, "%s.%s", path, m->string);
        int rc = set_read(file, m, sub, set, err);
        if (rc < 0)
            return rc;
        card->n_sets++;
    }
    card->sets = sets;
    return 0;
}

static bool is_described(const struct cardfile_card *card)
{
    return *card->model || *card->arch || *card->endpoint ||
           *card->fabric_port || *card->tls_ca || card->plaintext ||
           card->cores || card->memory_mib || card->n_device_nodes ||
           card->n_sets;
}

static int entry_read(struct cardfile *file, const cJSON *json, int index,
                      struct error *err)
{
    struct entry *e = &file->entries[index];
    struct cardfile_card *card = &e->card;
    char path[32], sub[READER_PATH_MAX];
    snprintf(path, sizeof(path), "cards[%d]", index);
    struct reader r;
    reader_init(&r, json, path, err);
    const cJSON *match = reader_object(&r, "match");
    const cJSON *tls = reader_opt_object(&r, "tls");
    const cJSON *nodes = reader_opt_array(&r, "device-nodes",
                                          CARDFILE_NODES_MAX);
    const cJSON *sets = reader_opt_object(&r, "devices");
    card->tls_ca = card->tls_cert = card->tls_key = "";
    card->listed = true;
    card->exclude = reader_opt_bool(&r, "exclude", false);
    card->set_aside = !reader_opt_bool(&r, "compute", true);
    if (card->set_aside && !card->exclude)
        reader_fail(&r, "compute",
                    "is false, which may be said of NICs alone: "
                    "give \"exclude\": true beside it");
    card->plaintext = reader_opt_bool(&r, "plaintext", false);
    if (card->plaintext && tls)
        reader_fail(&r, "plaintext", "is true, and there is tls beside it");
    card->cores = (uint32_t)reader_opt_int(&r, "cores", 1, CORES_MAX, 0);
    card->memory_mib = (uint64_t)reader_opt_int(&r, "memory-mib", 1,
                                                MEMORY_MIB_MAX, 0);
    texts_read(file, &r, card);
    int rc = reader_finish_strict(&r);
    if (rc < 0)
        return rc;
    reader_path(&r, "match", -1, sub);
    rc = match_read(file, match, sub, e, err);
    if (rc == 0 && tls) {
        reader_path(&r, "tls", -1, sub);
        rc = tls_read(file, tls, sub, card, err);
    }
    if (rc == 0 && nodes) {
        reader_path(&r, "device-nodes", -1, sub);
        rc = nodes_read(file, nodes, sub, card, err);
    }
    if (rc == 0 && sets) {
        reader_path(&r, "devices", -1, sub);
        rc = sets_read(file, sets, sub, card, err);
    }
    if (rc == 0 && card->exclude && is_described(card))
        rc = reader_fail(&r, NULL, "excludes a card and describes it");
    return rc;
}

int cardfile_parse(const char *json, size_t size, struct cardfile **ret_file,
                   struct error *err)
{
    if (size > CARDFILE_SIZE_MAX)
        return error_set(err, EFBIG, "has %zu bytes, at most %d allowed", size,
                         CARDFILE_SIZE_MAX);
    cleanup_with(json) cJSON *root = NULL;
    int rc = json_parse(json, size, &root, err);
    if (rc < 0)
        return rc;
    struct reader r;
    reader_init(&r, root, "", err);
    const cJSON *cards = reader_array(&r, "cards", CARDFILE_ENTRIES_MAX);
    rc = reader_finish_strict(&r);
    if (rc < 0)
        return rc;

    cleanup_with(cardfile) struct cardfile *file = xcalloc(1, sizeof(*file));
    file->n_entries = (size_t)cJSON_GetArraySize(cards);
    file->entries = xcalloc(file->n_entries + 1, sizeof(*file->entries));
    int index = 0;
    const cJSON *card;
    cJSON_ArrayForEach(card, cards)
    {
        rc = entry_read(file, card, index++, err);
        if (rc < 0)
            return rc;
    }
    *ret_file = steal(&file);
    return 0;
}

int cardfile_load(const char *path, struct cardfile **ret_file,
                  struct error *err)
{
    cleanup_free char *text = NULL;
    size_t size = 0;
    int rc = file_read(path, CARDFILE_SIZE_MAX, &text, &size, err);
    if (rc < 0)
        return rc;
    rc = cardfile_parse(text, size, ret_file, err);
    return rc < 0 ? error_wrap(err, "%s", path) : 0;
}

/* --- looking up --------------------------------------------------------- */

static bool entry_matches(const struct entry *e, const struct cardfile_key *key)
{
    switch (e->match) {
    case MATCH_PCI:
        return e->pci.domain == key->pci.domain && e->pci.bus == key->pci.bus &&
               e->pci.device == key->pci.device;
    case MATCH_SERIAL:
        return key->serial && strcmp(e->serial, key->serial) == 0;
    case MATCH_ID:
        return e->vendor_id == key->vendor_id && e->device_id == key->device_id;
    case MATCH_NONE:
        break;
    }
    return false;
}

/* Lay `from` over `card`: what it says replaces what is there.  With TLS and
 * without is one thing. */
static void card_overlay(struct cardfile_card *card,
                         const struct cardfile_card *from)
{
    const char **const to_texts[] = {
        &card->model,  &card->arch,     &card->fabric_port, &card->endpoint,
        &card->tls_ca, &card->tls_cert, &card->tls_key};
    const char *const texts[] = {
        from->model,  from->arch,     from->fabric_port, from->endpoint,
        from->tls_ca, from->tls_cert, from->tls_key};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (*texts[i])
            *to_texts[i] = texts[i];
    if (from->plaintext)
        card->tls_ca = card->tls_cert = card->tls_key = "";
    if (from->plaintext || *from->tls_ca)
        card->plaintext = from->plaintext;
    if (from->cores)
        card->cores = from->cores;
    if (from->memory_mib)
        card->memory_mib = from->memory_mib;
    if (from->n_device_nodes) {
        card->device_nodes = from->device_nodes;
        card->n_device_nodes = from->n_device_nodes;
    }
    if (from->n_sets) {
        card->sets = from->sets;
        card->n_sets = from->n_sets;
    }
    card->listed = true;
    card->exclude = from->exclude;
    card->set_aside = from->set_aside;
}

void cardfile_find(const struct cardfile *file, const struct cardfile_key *key,
                   struct cardfile_card *ret_card)
{
    *ret_card = (struct cardfile_card){.model = "",
                                       .arch = "",
                                       .fabric_port = "",
                                       .endpoint = "",
                                       .tls_ca = "",
                                       .tls_cert = "",
                                       .tls_key = ""};
    for (int match = MATCH_ID; file && match <= MATCH_PCI; match++)
        for (size_t i = 0; i < file->n_entries; i++)
            if ((int)file->entries[i].match == match &&
                entry_matches(&file->entries[i], key))
                card_overlay(ret_card, &file->entries[i].card);
}

size_t cardfile_addresses(const struct cardfile *file,
                          struct pci_addr *ret_addrs, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < file->n_entries && n < max; i++)
        if (file->entries[i].match == MATCH_PCI)
            ret_addrs[n++] = file->entries[i].pci;
    return n;
}
