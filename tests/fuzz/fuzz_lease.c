/* Any text as a Lease: refused, or what is read is read the same once written
 * again; and whatever it says, it does not make us its holder. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/kube/election.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct election_config config = {"me", 10000, 2000, 6000};

static void check_election(const struct kube_lease *lease)
{
    struct election e;
    struct kube_lease next;
    election_init(&e, &config);
    election_observe(&e, lease, 1000);
    assert(!election_holds(&e, 1000, 0));
    enum election_move move = election_next(&e, 1000);
    assert(move != ELECTION_CREATE && move != ELECTION_RELEASE);
    assert(election_wait_ms(&e, 1000) > 0);
    if (move == ELECTION_WAIT)
        return;
    election_lease(&e, move, "2026-01-02T03:04:05.000006Z", &next);
    assert(strcmp(next.holder, "me") == 0 && next.duration_s == 10);
    assert(strcmp(next.uid, lease->uid) == 0);
    assert(strcmp(next.resource_version, lease->resource_version) == 0);
    assert(next.transitions >= lease->transitions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kube_lease lease, again;
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(65536);
    if (kube_lease_read((const char *)data, size, &lease, &err) < 0) {
        assert(err.text[0]);
        return 0;
    }
    kube_lease_write(&lease, size % 2 ? "node" : NULL, "uid", &out);
    assert(!out.overflow);
    assert(kube_lease_read(out.data, out.size, &again, &err) == 0);
    assert(strcmp(lease.holder, again.holder) == 0);
    assert(strcmp(lease.name, again.name) == 0);
    assert(strcmp(lease.uid, again.uid) == 0);
    assert(strcmp(lease.renewed, again.renewed) == 0);
    assert(lease.duration_s == again.duration_s);
    assert(lease.transitions == again.transitions);
    check_election(&lease);
    return 0;
}
