/* Any bytes as a selector: no crash; a refusal says why and makes nothing; an
 * answer is the same each time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/claim/claim_cel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char slice_json[] =
    "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"g.dev\","
    "\"nodeName\":\"n\",\"pool\":{\"name\":\"n\"},\"devices\":[{\"name\":\"d\","
    "\"attributes\":{\"a\":{\"string\":\"x1\"},\"i\":{\"int\":3},"
    "\"t\":{\"bool\":true},\"v\":{\"version\":\"1.2.3\"},"
    "\"l\":{\"strings\":[\"a\"]}},\"capacity\":{\"m\":{\"value\":\"4Gi\"}}}]}}";

static void require(int truth)
{
    if (!truth)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(claim_slice) struct claim_slice *slice = NULL;
    cleanup_with(claim_cel) struct claim_cel *cel = NULL;
    struct error err = {0}, again = {0};
    bool match[2] = {false, false};
    require(claim_slice_read(slice_json, strlen(slice_json), &slice, &err) ==
            0);
    int rc = claim_cel_compile((const char *)data, size, &cel, &err);
    if (rc < 0) {
        require((rc == -EINVAL || rc == -ENOTSUP) && err.code == -rc &&
                err.text[0] && !cel);
        return 0;
    }
    require(strlen(claim_cel_text(cel)) == size);
    rc = claim_cel_eval(cel, slice->devices, slice->driver, &match[0], &err);
    require(rc == 0 || ((rc == -EDOM || rc == -ENOTSUP) && err.code == -rc &&
                        err.text[0]));
    require(rc == claim_cel_eval(cel, slice->devices, slice->driver, &match[1],
                                 &again));
    require(match[0] == match[1] && strcmp(err.text, again.text) == 0);
    return 0;
}
