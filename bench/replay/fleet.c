#include "bench/replay/fleet.h"

#include <errno.h>
#include <string.h>

#include "advertiser/describe/hostfile.h"
#include "advertiser/describe/hosts.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/io/file.h"
#include "model/topo/topo_builder.h"

/* --- one host ----------------------------------------------------------- */

/* How many of the topology's cards are of the same model as this one. */
static size_t same_model(const struct topo *topo, const struct device *card)
{
    size_t first, n = topo_count(topo, DEVICE_CARD, &first), same = 0;
    for (size_t i = 0; i < n; i++)
        same += strcmp(topo_device(topo, first + i)->model, card->model) == 0;
    return same;
}

/* Which card goes when there are too many: one of the rarest model (a card
 * apart from the rest, such as that for the north-south traffic), the last of
 * them. */
static size_t card_to_drop(const struct topo *topo, const bool *dropped)
{
    size_t first, n = topo_count(topo, DEVICE_CARD, &first);
    size_t worst = n, rarest = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        size_t same = same_model(topo, topo_device(topo, first + i));
        if (dropped[i] || same > rarest)
            continue;
        rarest = same;
        worst = i;
    }
    return worst;
}

static int limit_cards(struct topo **topo, unsigned max, struct error *err)
{
    size_t first, n = topo_count(*topo, DEVICE_CARD, &first);
    bool dropped[TOPO_CARDS_MAX] = {false};
    if (max == 0 || n <= max)
        return 0;
    for (size_t i = n; i > max; i--)
        dropped[card_to_drop(*topo, dropped)] = true;
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(topo_node(*topo));
    struct topo *less = NULL;
    for (size_t i = 0; i < topo_n_devices(*topo); i++)
        if (i < first || i >= first + n || !dropped[i - first]) {
            const struct device *d = topo_device(*topo, i);
            const struct identity own = topo_identity(*topo, d);
            topo_builder_add(b, d, &own);
        }
    for (int x = 0; x < TOPO_NUMAS_MAX; x++)
        for (int y = x + 1; y < TOPO_NUMAS_MAX; y++)
            if (topo_distance(*topo, x, y))
                topo_builder_distance(b, x, y, topo_distance(*topo, x, y));
    int rc = topo_build(b, &less, err);
    if (rc < 0)
        return rc;
    topo_unref(*topo);
    *topo = less;
    return 0;
}

/* What a shape is called, and its description. */
struct source {
    char *name;
    char *text;
    size_t size;
};

static int source_read(const char *name, struct source *ret_source,
                       struct error *err)
{
    const struct host_shape *known = host_shape_find(name);
    struct source s = {0};
    if (known) {
        s.text = xstrdup(known->text);
        s.size = strlen(known->text);
    } else if (!strchr(name, '/') && !strchr(name, '.')) {
        cleanup_str struct str all = STR_INIT(ERROR_TEXT_MAX / 2);
        for (size_t i = 0; i < n_host_shapes; i++)
            str_addf(&all, "%s, ", host_shapes[i].name);
        return error_set(err, EINVAL,
                         "--shape: has \"%.64s\", may have %sor a "
                         "file",
                         name, str_text(&all));
    } else {
        int rc = file_read(name, HOSTFILE_SIZE_MAX, &s.text, &s.size, err);
        if (rc < 0)
            return error_wrap(err, "--shape");
    }
    s.name = xstrdup(name);
    *ret_source = s;
    return 0;
}

static int host_topo(const struct source *s, const char *node, unsigned cards,
                     struct topo **ret_topo, struct error *err)
{
    struct topo *topo = NULL;
    int rc = hostfile_read(s->text, s->size, node, &topo, err);
    if (rc == 0)
        rc = limit_cards(&topo, cards, err);
    if (rc < 0) {
        topo_unref(topo);
        return error_wrap(err, "shape %s", s->name);
    }
    *ret_topo = topo;
    return 0;
}

static void add_numa(const struct topo *topo, enum device_kind kind, int numa,
                     uint16_t *ret_bits)
{
    size_t first, n = topo_count(topo, kind, &first);
    for (size_t i = 0; i < n && i < 16; i++)
        if (topo_device(topo, first + i)->numa == numa)
            *ret_bits |= (uint16_t)(1u << i);
}

/* INT64_MAX: a NUMA node does not tell. */
static struct host_room host_room(const struct topo *topo)
{
    struct host_room room = {0, 0, INT64_MAX};
    size_t first, n = topo_count(topo, DEVICE_NUMA, &first);
    bool cpus = n > 0, memory = n > 0;
    for (size_t i = 0; i < n; i++) {
        const struct device *numa = topo_device(topo, first + i);
        room.cpu_milli += INT64_C(1000) * numa->cpus;
        room.memory_mib += (int64_t)numa->numa_memory_mib;
        cpus &= numa->cpus > 0;
        memory &= numa->numa_memory_mib > 0;
    }
    room.cpu_milli = cpus ? room.cpu_milli : INT64_MAX;
    room.memory_mib = memory ? room.memory_mib : INT64_MAX;
    return room;
}

static void kind_init(struct host_kind *k, struct topo *topo)
{
    k->topo = topo;
    k->shape = shape_create(topo);
    node_state_init(&k->idle, topo, k->shape);
    k->cards = k->idle.usable;
    k->gpus = (uint16_t)((1u << k->shape->n_gpus) - 1);
    k->room = host_room(topo);
    k->n_numas = k->shape->n_numas;
    for (unsigned i = 0; i < k->n_numas; i++) {
        int numa = k->shape->numa_id[i];
        add_numa(topo, DEVICE_CARD, numa, &k->numa_cards[i]);
        add_numa(topo, DEVICE_GPU, numa, &k->numa_gpus[i]);
    }
}

/* --- rating ------------------------------------------------------------- */

static unsigned nearest(const struct shape *s, unsigned card, unsigned gpus)
{
    unsigned best = RELATION_SYS;
    for (; gpus; gpus &= gpus - 1) {
        unsigned r = s->card_gpu[card][__builtin_ctz(gpus)];
        best = r < best ? r : best;
    }
    return best;
}

static unsigned nearest_card(const struct shape *s, unsigned cards,
                             unsigned gpu)
{
    unsigned best = RELATION_SYS;
    for (; cards; cards &= cards - 1) {
        unsigned r = s->card_gpu[__builtin_ctz(cards)][gpu];
        best = r < best ? r : best;
    }
    return best;
}

void kind_rate(const struct host_kind *kind, uint16_t cards, uint16_t gpus,
               struct choice *ret_choice)
{
    const struct shape *s = kind->shape;
    unsigned worst = 0, numa_worst = RELATION_SYS, best = UINT32_MAX;
    memset(ret_choice, 0, sizeof *ret_choice);
    ret_choice->cards = cards;
    ret_choice->gpus = gpus;
    ret_choice->numa = -1;
    for (unsigned n = 0; n < s->n_numas; n++) {
        unsigned far = 0, sum = 0;
        for (unsigned c = cards; c; c &= c - 1) {
            unsigned r = s->card_numa[__builtin_ctz(c)][n];
            far = r > far ? r : far;
            sum += r;
        }
        unsigned weight = far * TOPO_CARDS_MAX * RELATION_COUNT + sum;
        if (weight >= best)
            continue;
        best = weight;
        numa_worst = far;
        ret_choice->numa = s->numa_id[n];
    }
    for (unsigned c = gpus ? cards : 0; c; c &= c - 1) {
        unsigned r = nearest(s, (unsigned)__builtin_ctz(c), gpus);
        worst = r > worst ? r : worst;
    }
    for (unsigned g = gpus; g; g &= g - 1) {
        unsigned r = nearest_card(s, cards, (unsigned)__builtin_ctz(g));
        worst = r > worst ? r : worst;
    }
    if (!gpus)
        worst = numa_worst;
    ret_choice->relation = (uint8_t)worst;
    ret_choice->cost = 1 + worst; /* only that it fits */
}

unsigned kind_numas(const struct host_kind *kind, uint16_t cards, uint16_t gpus)
{
    unsigned numas = 0;
    for (unsigned i = 0; i < kind->n_numas; i++)
        if ((kind->numa_cards[i] & cards) || (kind->numa_gpus[i] & gpus))
            numas |= 1u << i;
    return numas;
}

/* --- the fabric --------------------------------------------------------- */

static void host_name(size_t i, size_t n, char ret_name[32])
{
    (void)snprintf(ret_name, 32, "host%0*zu", snprintf(NULL, 0, "%zu", n),
                   i + 1);
}

/* "leaf=32,spine=8": hosts below a leaf, leaves below a spine. */
static bool read_tree(const char *text, size_t *ret_leaf, size_t *ret_spine)
{
    char *end;
    if (strncmp(text, "leaf=", 5) != 0)
        return false;
    unsigned long leaf = strtoul(text + 5, &end, 10), spine = 0;
    if (strncmp(end, ",spine=", 7) == 0)
        spine = strtoul(end + 7, &end, 10);
    else if (*end == '\0')
        spine = REPLAY_FABRIC_MAX;
    if (*end || leaf == 0 || leaf > REPLAY_FABRIC_MAX || spine == 0 ||
        spine > REPLAY_FABRIC_MAX)
        return false;
    *ret_leaf = leaf;
    *ret_spine = spine;
    return true;
}

/* As a topology.conf, which the extender reads too. */
static void write_tree(size_t n, size_t leaf, size_t spine, struct str *out)
{
    size_t leaves = (n + leaf - 1) / leaf;
    size_t spines = (leaves + spine - 1) / spine;
    char name[32];
    for (size_t l = 0; l < leaves; l++) {
        str_addf(out, "SwitchName=leaf%zu Nodes=", l + 1);
        for (size_t i = l * leaf; i < n && i < (l + 1) * leaf; i++) {
            host_name(i, n, name);
            str_addf(out, "%s%s", i > l * leaf ? "," : "", name);
        }
        str_add_c(out, '\n');
    }
    for (size_t s = 0; s < spines; s++) {
        str_addf(out, "SwitchName=spine%zu Switches=", s + 1);
        for (size_t l = s * spine; l < leaves && l < (s + 1) * spine; l++)
            str_addf(out, "%sleaf%zu", l > s * spine ? "," : "", l + 1);
        str_add_c(out, '\n');
    }
    if (spines < 2)
        return;
    str_add(out, "SwitchName=core Switches=");
    for (size_t s = 0; s < spines; s++)
        str_addf(out, "%sspine%zu", s ? "," : "", s + 1);
    str_add_c(out, '\n');
}

static int read_fabric(const char *asked, size_t n, struct fabric **ret_fabric,
                       struct error *err)
{
    cleanup_str struct str text = STR_INIT(FABRIC_TEXT_MAX);
    cleanup_free char *file = NULL;
    struct fabric_source source = {.name = "--fabric", .format = FABRIC_SLURM};
    struct fabric_labels labels = {.n_keys = 0};
    size_t leaf = 0, spine = 0;
    if (strcmp(asked, "none") == 0)
        return 0;
    if (read_tree(asked, &leaf, &spine)) {
        write_tree(n, leaf, spine, &text);
        source.text = str_text(&text);
        source.size = text.size;
    } else if (strchr(asked, '=') && access(asked, F_OK) != 0) {
        return error_set(err, EINVAL,
                         "--fabric: is \"%.64s\", must be leaf=HOSTS, "
                         "leaf=HOSTS,spine=LEAVES (1 to %d each), none, or a "
                         "file",
                         asked, REPLAY_FABRIC_MAX);
    } else {
        int rc = file_read(asked, FABRIC_TEXT_MAX, &file, &source.size, err);
        if (rc < 0)
            return error_wrap(err, "--fabric");
        source.name = asked;
        source.text = file;
        source.format = FABRIC_AUTO;
    }
    return fabric_read(&source, 1, &labels, ret_fabric, err);
}

/* --- the whole ---------------------------------------------------------- */

static int read_kinds(struct replay_fleet *f, const struct fleet_config *config,
                      struct source *sources, struct error *err)
{
    const char *at = config->shapes;
    for (;;) {
        size_t size = strcspn(at, ",");
        cleanup_free char *name = xstrndup(at, size);
        struct topo *topo = NULL;
        if (f->n_kinds == REPLAY_KINDS_MAX)
            return error_set(err, EINVAL, "--shape: names more than %d hosts",
                             REPLAY_KINDS_MAX);
        struct source *s = &sources[f->n_kinds];
        int rc = source_read(name, s, err);
        if (rc == 0)
            rc = host_topo(s, "host", config->cards, &topo, err);
        if (rc < 0)
            return rc;
        f->kinds[f->n_kinds].name = s->name;
        kind_init(&f->kinds[f->n_kinds++], topo);
        at += size;
        if (*at++ == '\0')
            return 0;
    }
}

static int publish(struct replay_fleet *f, const struct fleet_config *config,
                   const struct source *sources, struct error *err)
{
    struct snapshot *empty = snapshot_create_empty();
    cleanup_with(draft) struct draft *draft = draft_create(empty);
    cleanup_with(fabric) struct fabric *fabric = NULL;
    snapshot_unref(empty);
    int rc = read_fabric(config->fabric, config->hosts, &fabric, err);
    for (size_t i = 0; i < config->hosts && rc == 0; i++) {
        char name[32];
        cleanup_with(topo) struct topo *topo = NULL;
        host_name(i, config->hosts, name);
        rc = host_topo(&sources[i % f->n_kinds], name, config->cards, &topo,
                       err);
        if (rc < 0)
            break;
        struct node_update update = {
            .name = name,
            .status = NODE_READY,
            .epoch = {.boot_id = "replay", .generation = 1},
            .hash = "0",
            .n_slices = 1,
            .pool_count = 1,
            .topo = topo};
        draft_put_node(draft, &update);
        f->n_cards += topo_count(topo, DEVICE_CARD, &(size_t){0});
        f->n_gpus += topo_count(topo, DEVICE_GPU, &(size_t){0});
    }
    if (rc < 0)
        return rc;
    if (fabric)
        draft_set_fabric(draft, fabric);
    f->idle = draft_commit(steal(&draft));
    f->n = f->idle->n_nodes;
    return 0;
}

void replay_fleet_charge_hosts(struct replay_fleet *f)
{
    struct draft *draft = draft_create(f->idle);
    for (size_t i = 0; i < f->n; i++)
        draft_set_room(draft, snapshot_node(f->idle, i)->name,
                       &fleet_kind(f, i)->room);
    struct snapshot *next = draft_commit(draft);
    snapshot_unref(f->idle);
    f->idle = next;
}

static void count_leaves(struct replay_fleet *f)
{
    size_t n = fabric_n_domains(f->idle->fabric);
    cleanup_free bool *seen = xcalloc(n + 1, sizeof *seen);
    for (size_t i = 0; i < f->n; i++) {
        int32_t leaf = snapshot_leaf(f->idle, i);
        if (leaf == FABRIC_NONE || seen[leaf])
            continue;
        seen[leaf] = true;
        f->n_leaves++;
    }
}

int replay_fleet_init(struct replay_fleet *f, const struct fleet_config *config,
                      struct error *err)
{
    struct source sources[REPLAY_KINDS_MAX] = {{0}};
    *f = (struct replay_fleet){0};
    int rc = read_kinds(f, config, sources, err);
    if (rc == 0)
        rc = publish(f, config, sources, err);
    if (rc == 0 && f->n_cards == 0)
        rc = error_set(err, EINVAL, "--shape: \"%s\" has no card",
                       config->shapes);
    for (size_t i = 0; i < REPLAY_KINDS_MAX; i++) {
        free(sources[i].text);
        if (i >= f->n_kinds)
            free(sources[i].name);
    }
    if (rc < 0)
        replay_fleet_fini(f);
    else
        count_leaves(f);
    f->card_cores = 1;
    for (size_t i = 0; i < f->n_kinds; i++)
        for (unsigned c = 0; c < TOPO_CARDS_MAX; c++)
            if (f->kinds[i].idle.cores[c] > f->card_cores)
                f->card_cores = f->kinds[i].idle.cores[c];
    return rc;
}

void replay_fleet_fini(struct replay_fleet *f)
{
    snapshot_unref(f->idle);
    for (size_t i = 0; i < f->n_kinds; i++) {
        free((char *)f->kinds[i].name);
        topo_unref(f->kinds[i].topo);
        shape_destroy(f->kinds[i].shape);
    }
    *f = (struct replay_fleet){0};
}
