/* What a client sends over HTTP/2: in whatever pieces it comes, its cost and
 * the place in its frames are the same, and the budget stays within limits. */
#include <assert.h>
#include <stdint.h>

#include "lib/h2/h2_meter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct h2_meter whole, part;
    bool paid = true;
    h2_meter_init(&whole, 0);
    h2_meter_init(&part, 0);
    for (size_t i = 0; i < size; i++) {
        paid = h2_meter_feed(&part, data + i, 1, 0) && paid;
        assert(part.budget <= H2_BUDGET_MAX);
    }
    assert(h2_meter_feed(&whole, data, size, 0) == paid);
    assert(whole.preface == part.preface && whole.n_head == part.n_head &&
           whole.payload == part.payload);
    assert((h2_meter_partial_ms(&whole, 7) == 0) ==
           (h2_meter_partial_ms(&part, 7) == 0));
    if (paid)
        assert(whole.budget == part.budget);
    h2_meter_earn(&whole, (unsigned)size);
    assert(whole.budget <= H2_BUDGET_MAX);
    return 0;
}
