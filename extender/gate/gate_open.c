#include "extender/gate/gate_open.h"

#include "lib/base/jwrite.h"

static void write_metadata(const struct gate_placed *p, struct str *out)
{
    jwrite_object(out, "metadata");
    jwrite_text(out, "uid", p->demand.uid);
    jwrite_object(out, "annotations");
    jwrite_text(out, "biga.dev/allocation", p->allocation);
    jwrite_end_object(out);
    jwrite_end_object(out);
}

void gate_open_write(const struct gate_placed *placed, bool by_affinity,
                     struct str *out)
{
    jwrite_object(out, NULL);
    write_metadata(placed, out);
    jwrite_object(out, "spec");
    jwrite_null(out, "schedulingGates");
    if (by_affinity) {
        jwrite_key(out, "affinity");
        pod_needs_write_affinity(placed->pod->needs, placed->node, out);
    }
    jwrite_end_object(out);
    jwrite_end_object(out);
}

void gate_reopen_write(const struct gate_placed *placed, struct str *out)
{
    jwrite_object(out, NULL);
    write_metadata(placed, out);
    jwrite_object(out, "spec");
    jwrite_null(out, "nodeName");
    jwrite_end_object(out);
    jwrite_end_object(out);
}
