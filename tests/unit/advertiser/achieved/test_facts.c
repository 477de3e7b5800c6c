/* What is known of pods, and the report of it. */
#include "advertiser/achieved/facts.h"

#include <criterion/criterion.h>
#include <string.h>

#include "advertiser/describe/hostfile.h"

static const char host[] = "package 0\n"
                           "  numa 0 cpus=4 cpu-list=0-3 memory=16GiB\n"
                           "package 1\n"
                           "  numa 1 cpus=4 cpu-list=4-7 memory=16GiB\n";

static struct topo *host_topo(const char *text)
{
    struct topo *topo = NULL;
    struct error err = {0};
    cr_assert_eq(hostfile_read(text, strlen(text), "host0", &topo, &err), 0,
                 "%s", err.text);
    return topo;
}

static void add_pci(struct fact_pcis *p, const char *text)
{
    struct pci_addr addr;
    cr_assert_eq(pci_addr_parse(text, &addr, NULL), 0);
    p->known = true;
    fact_pcis_add(p, &addr);
}

static void set_indexes(struct fact_indexes *f, const char *text)
{
    f->known = true;
    cr_assert_eq(index_set_parse(text, strlen(text), &f->set, NULL), 0);
}

static void expect_report(struct facts *f, const char *host_text,
                          const char *wanted)
{
    cleanup_with(topo) struct topo *topo = host_topo(host_text);
    cleanup_str struct str out = STR_INIT(FACTS_REPORT_MAX);
    facts_sort(f);
    cr_expect_eq(facts_write(f, topo, &out), 0u);
    cr_expect_str_eq(str_text(&out), wanted);
}

Test(facts, are_written_in_order_and_what_is_not_known_is_not)
{
    struct facts f = {0};
    expect_report(&f, host, "{\"node\":\"host0\",\"pods\":[]}");
    cr_assert_not_null(facts_add(&f, "team", "a", ""));
    struct pod_facts *p = facts_add(&f, "default", "pair-0", "6b0c");
    cr_assert_not_null(p);
    add_pci(&p->gpus, "0000:1c:00.0");
    add_pci(&p->gpus, "0000:1B:00.0");
    add_pci(&p->gpus, "1c:00.0");
    p->nics.known = true;
    add_pci(&p->cards, "17:00.0");
    set_indexes(&p->cpus, "2-5");
    set_indexes(&p->memory, "1");
    expect_report(&f, host,
                  "{\"node\":\"host0\",\"pods\":[{\"namespace\":\"default\","
                  "\"name\":\"pair-0\",\"uid\":\"6b0c\","
                  "\"cards\":[\"0000:17:00.0\"],"
                  "\"gpus\":[\"0000:1b:00.0\",\"0000:1c:00.0\"],\"nics\":[],"
                  "\"cpus\":\"2-5\",\"numa\":[0,1],\"memoryNuma\":[1]},"
                  "{\"namespace\":\"team\",\"name\":\"a\"}]}");
    facts_fini(&f);
}

Test(facts, of_cpus_that_the_topology_lacks_the_node_is_not_known)
{
    struct facts f = {0};
    struct pod_facts *p = facts_add(&f, "d", "p", "");
    set_indexes(&p->cpus, "7-8");
    expect_report(&f, host,
                  "{\"node\":\"host0\",\"pods\":[{\"namespace\":\"d\","
                  "\"name\":\"p\",\"cpus\":\"7-8\"}]}");
    set_indexes(&p->cpus, "0");
    expect_report(&f, "package 0\n  numa 0 cpus=4 memory=16GiB\n",
                  "{\"node\":\"host0\",\"pods\":[{\"namespace\":\"d\","
                  "\"name\":\"p\",\"cpus\":\"0\"}]}");
    facts_fini(&f);
}

Test(facts, of_two_pods_of_one_name_neither_is_told)
{
    struct facts f = {0};
    cr_assert_not_null(facts_add(&f, "d", "b", "u-1"));
    cr_assert_not_null(facts_add(&f, "d", "a", ""));
    cr_assert_not_null(facts_add(&f, "d", "b", "u-2"));
    expect_report(&f, host,
                  "{\"node\":\"host0\",\"pods\":[{\"namespace\":\"d\","
                  "\"name\":\"a\"}]}");
    facts_fini(&f);
}

Test(facts, take_names_that_kubernetes_has)
{
    struct facts f = {0};
    char name[255];
    memset(name, 'x', 254);
    name[254] = '\0';
    cr_expect_null(facts_add(&f, "", "a", ""));
    cr_expect_null(facts_add(&f, "a", "", ""));
    cr_expect_null(facts_add(&f, "a", name, ""));
    cr_expect_null(facts_add(&f, name, "a", ""));
    cr_expect_null(facts_add(&f, "a", "a", name));
    cr_expect_not_null(facts_add(&f, "a", name + 1, ""));
    facts_fini(&f);
}

Test(facts, more_devices_than_fit_are_not_known)
{
    struct fact_pcis p = {.known = true};
    struct pci_addr addr = {0};
    for (int i = 0; i <= FACTS_PCI_MAX; i++) {
        cr_expect(p.known);
        addr.bus = (uint8_t)i;
        fact_pcis_add(&p, &addr);
        fact_pcis_add(&p, &addr);
    }
    cr_expect(!p.known);
}

Test(facts, longer_lists_than_fit_are_not_told)
{
    struct facts f = {0};
    struct pod_facts *p = facts_add(&f, "d", "p", "");
    p->cpus.known = p->memory.known = true;
    for (unsigned i = 0; i < INDEX_SET_MAX; i += 2) {
        (void)index_set_add(&p->cpus.set, i);
        (void)index_set_add(&p->memory.set, i);
    }
    expect_report(&f, host,
                  "{\"node\":\"host0\",\"pods\":[{\"namespace\":\"d\","
                  "\"name\":\"p\"}]}");
    facts_fini(&f);
}

Test(facts, more_pods_than_fit_are_left_out)
{
    cleanup_with(topo) struct topo *topo = host_topo(host);
    cleanup_str struct str out = STR_INIT(FACTS_REPORT_MAX);
    struct facts f = {0};
    char name[254];
    for (int i = 0; i < FACTS_PODS_MAX + 3; i++) {
        (void)snprintf(name, sizeof name, "p-%05d", i);
        cr_assert_not_null(facts_add(&f, "d", name, ""));
    }
    facts_sort(&f);
    cr_expect_eq(facts_write(&f, topo, &out), 3u);
    cr_expect_not_null(strstr(str_text(&out), "p-00511\"}]}"));
    facts_fini(&f);
    /* long ones need more than there is */
    for (int i = 0; i < FACTS_PODS_MAX; i++) {
        (void)snprintf(name, sizeof name, "%0253d", i);
        struct pod_facts *p = facts_add(&f, "d", name, "");
        p->cpus.known = true;
        for (unsigned c = 0; c < 1600; c += 2)
            (void)index_set_add(&p->cpus.set, c);
    }
    str_reset(&out);
    cr_expect_gt(facts_write(&f, topo, &out), 300u);
    cr_expect(!out.overflow && out.size <= FACTS_REPORT_MAX);
    cr_expect_str_eq(str_text(&out) + out.size - 2, "]}");
    facts_fini(&f);
}

static struct pod_facts *of_pod(struct facts *f, const char *name,
                                const char *uid, const char *gpu)
{
    struct pod_facts *p = facts_add(f, "d", name, uid);
    add_pci(&p->gpus, gpu);
    return p;
}

Test(facts, count_once_two_looks_agree)
{
    struct facts none = {0}, one = {0}, two = {0};
    (void)of_pod(&one, "a", "u-1", "1b:00.0");
    (void)of_pod(&one, "b", "u-2", "1c:00.0");
    (void)of_pod(&two, "a", "u-1", "1b:00.0");
    (void)of_pod(&two, "b", "u-2", "1d:00.0");
    (void)of_pod(&two, "c", "u-3", "1e:00.0");

    struct facts first = facts_settled(&one, &none, &none);
    cr_expect_eq(first.n, 0u);
    struct facts told = facts_settled(&one, &one, &first);
    cr_assert_eq(told.n, 2u);
    /* b has another now, and c is new; one more look makes sure */
    struct facts next = facts_settled(&two, &one, &told);
    cr_assert_eq(next.n, 2u);
    cr_expect_eq(next.pods[1].gpus.items[0].bus, 0x1c);
    struct facts last = facts_settled(&two, &two, &next);
    cr_assert_eq(last.n, 3u);
    cr_expect_eq(last.pods[1].gpus.items[0].bus, 0x1d);
    /* another pod of that name is not told as the one before */
    (void)snprintf(two.pods[1].uid, sizeof two.pods[1].uid, "u-9");
    struct facts other = facts_settled(&two, &one, &told);
    cr_expect_eq(other.n, 1u);
    facts_fini(&one);
    facts_fini(&two);
    facts_fini(&told);
    facts_fini(&next);
    facts_fini(&last);
    facts_fini(&other);
}

Test(facts, are_equal_when_all_of_them_is)
{
    struct facts f = {0};
    struct pod_facts *p = of_pod(&f, "a", "u-1", "1b:00.0"), q = *p;
    cr_expect(pod_facts_equal(p, &q));
    q.cards.known = true;
    cr_expect(!pod_facts_equal(p, &q));
    q = *p;
    add_pci(&q.gpus, "1c:00.0");
    cr_expect(!pod_facts_equal(p, &q));
    q = *p;
    set_indexes(&q.memory, "0");
    cr_expect(!pod_facts_equal(p, &q));
    q = *p;
    q.name[0] = 'b';
    cr_expect(!pod_facts_equal(p, &q));
    facts_fini(&f);
}

static bool is_u_1(void *ctx, const struct pod_facts *pod)
{
    (void)ctx;
    return strcmp(pod->uid, "u-1") == 0;
}

Test(facts, of_pods_that_live_are_kept)
{
    struct facts now = {0}, told = {0};
    (void)of_pod(&told, "a", "u-1", "1b:00.0");
    (void)of_pod(&told, "b", "u-2", "1c:00.0");
    (void)of_pod(&told, "d", "u-1", "1c:00.0");
    (void)of_pod(&now, "c", "u-3", "1d:00.0");
    (void)of_pod(&now, "d", "u-1", "1e:00.0");
    facts_keep(&now, &told, is_u_1, NULL);
    cr_assert_eq(now.n, 3u);
    cr_expect_str_eq(now.pods[0].name, "a");
    cr_expect_str_eq(now.pods[1].name, "c");
    cr_expect_eq(now.pods[2].gpus.items[0].bus, 0x1e);
    facts_fini(&now);
    facts_fini(&told);
}
