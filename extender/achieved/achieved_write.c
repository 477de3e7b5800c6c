/* What was achieved, as JSON. */
#include "extender/achieved/achieved.h"
#include "lib/base/jwrite.h"

static void write_devices(struct str *out, const char *key,
                          const struct achieved_devices *d)
{
    if (!d->told)
        return;
    jwrite_array(out, key);
    for (size_t i = 0; i < d->n; i++) {
        char text[PCI_ADDR_TEXT_MAX];
        pci_addr_format(&d->at[i], text);
        jwrite_text(out, NULL, text);
    }
    jwrite_end_array(out);
}

static void write_numas(struct str *out, const char *key,
                        const struct achieved_numas *d)
{
    if (!d->told)
        return;
    jwrite_array(out, key);
    for (size_t i = 0; i < d->n; i++)
        jwrite_uint(out, NULL, d->at[i]);
    jwrite_end_array(out);
}

static void write_facts(struct str *out, const struct achieved_facts *f)
{
    write_devices(out, "cards", &f->cards);
    write_devices(out, "gpus", &f->gpus);
    write_devices(out, "nics", &f->nics);
    if (f->cpus)
        jwrite_text(out, "cpus", f->cpus);
    write_numas(out, "numa", &f->numa);
    write_numas(out, "memoryNuma", &f->memory_numa);
}

void achieved_write(const struct snapshot *s, const struct allocation *a,
                    const struct achieved_report *report, struct str *out)
{
    cleanup_str struct str why = STR_INIT(65536);
    struct achieved x;
    if (a->held)
        return;
    achieved_judge(s, a, report, &x, &why);
    jwrite_object(out, "achieved");
    jwrite_text(out, "state", achieved_state_name(x.state));
    jwrite_text_or_null(out, "relation",
                        x.relation < RELATION_COUNT ? relation_name(x.relation)
                                                    : NULL);
    jwrite_known_text(out, "text", str_text(&why));
    if (x.facts)
        write_facts(out, x.facts);
    jwrite_end_object(out);
}
