#include "router/remotes.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/describe/cardfile.h"
#include "lib/base/mem.h"
#include "lib/io/file.h"

#define COPY(array, text) (void)snprintf(array, sizeof(array), "%s", text)

enum {
    ADDRESSES_MAX = CARDFILE_ENTRIES_MAX,
    ID_MAX = 16, /* bytes of a file as in "0x15b3\n" */
};

struct loading {
    const struct cardfile *file;
    const char *path;
    struct remotes *r;
};

static int by_name(const void *a, const void *b)
{
    const struct act_place *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static bool is_there(const struct remotes *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->list[i].name, name) == 0)
            return true;
    return false;
}

static void fill(struct act_place *p, const struct cardfile_card *card)
{
    COPY(p->arch, card->arch);
    COPY(p->endpoint, card->endpoint);
    COPY(p->ca, card->tls_ca);
    COPY(p->cert, card->tls_cert);
    COPY(p->key, card->tls_key);
    p->plaintext = card->plaintext;
}

/* The device that the function at `key` belongs to, if it is to be a remote. */
static int add(struct loading *l, const struct cardfile_key *key,
               struct error *err)
{
    struct cardfile_card card;
    struct act_place p = {0};
    char id[TOPO_ID_MAX + 1];
    struct remotes *r = l->r;
    cardfile_find(l->file, key, &card);
    device_id_format(DEVICE_CARD, &key->pci, id);
    if (card.exclude || !*card.endpoint || is_there(r, id))
        return 0;
    if (r->n == REMOTES_MAX)
        return error_set(err, E2BIG,
                         "%s: %s is one card too many, at most %d may have "
                         "an endpoint",
                         l->path, id, REMOTES_MAX);
    COPY(p.name, id);
    pci_addr_format(&key->pci, p.pci);
    fill(&p, &card);
    r->list[r->n++] = p;
    return 0;
}

/* --- what is in this machine ----------------------------------------------- */

static uint16_t read_id(const char *dir, const char *name, const char *member)
{
    cleanup_free char *path = xasprintf("%s/%s/%s", dir, name, member);
    cleanup_free char *text = NULL;
    size_t size;
    return file_read(path, ID_MAX, &text, &size, NULL) == 0
               ? (uint16_t)strtoul(text, NULL, 16)
               : 0;
}

static int any_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* In order of their addresses, so that a device's lowest function is first. A
 * machine without PCI has none. */
static int add_found(struct loading *l, const char *sysfs, struct error *err)
{
    cleanup_free char *dir = xasprintf("%s/bus/pci/devices", sysfs);
    struct dirent **names = NULL;
    int r = 0, n = scandir(dir, &names, any_name, alphasort);
    for (int i = 0; i < n; i++) {
        struct cardfile_key key = {.serial = ""};
        if (r == 0 && pci_addr_parse(names[i]->d_name, &key.pci, NULL) == 0) {
            key.vendor_id = read_id(dir, names[i]->d_name, "vendor");
            key.device_id = read_id(dir, names[i]->d_name, "device");
            r = add(l, &key, err);
        }
        free(names[i]);
    }
    free(names);
    return r;
}

static int add_named(struct loading *l, struct error *err)
{
    cleanup_free struct pci_addr *addrs = xcalloc(ADDRESSES_MAX, sizeof *addrs);
    size_t n = cardfile_addresses(l->file, addrs, ADDRESSES_MAX);
    for (size_t i = 0; i < n; i++) {
        struct cardfile_key key = {.pci = addrs[i], .serial = ""};
        key.pci.function = 0;
        int r = add(l, &key, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int remotes_load(const char *card_file, const char *sysfs,
                 struct remotes *ret_remotes, struct error *err)
{
    cleanup_with(cardfile) struct cardfile *file = NULL;
    cleanup_free struct remotes *r = xcalloc(1, sizeof *r);
    int e = cardfile_load(card_file, &file, err);
    if (e < 0)
        return e;
    struct loading l = {.file = file, .path = card_file, .r = r};
    e = add_found(&l, sysfs ? sysfs : "/sys", err);
    if (e == 0)
        e = add_named(&l, err);
    if (e < 0)
        return e;
    qsort(r->list, r->n, sizeof *r->list, by_name);
    *ret_remotes = *r;
    return 0;
}

void remotes_host(const char *endpoint, const char *const keys[3],
                  struct remotes *ret_remotes)
{
    struct act_place *p = &ret_remotes->list[0];
    memset(ret_remotes, 0, sizeof *ret_remotes);
    ret_remotes->n = 1;
    COPY(p->name, ACT_HOST);
    COPY(p->endpoint, endpoint);
    p->plaintext = !keys;
    if (!keys)
        return;
    COPY(p->ca, keys[0]);
    COPY(p->cert, keys[1]);
    COPY(p->key, keys[2]);
}
