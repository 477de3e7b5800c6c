/* The image of a container: is it there, and may it run? */
#include <stdio.h>

#include "advertiser/act/machine/machine_private.h"
#include "lib/base/backoff.h"

/* The image does not do.  What never ran has failed; of what ran no part is
 * ended for another that cannot be begun again: it waits, as a kubelet's, and
 * the image is looked at anew. */
static void image_refused(struct machine *m, struct machine_unit *u,
                          int64_t now, struct machine_step *step,
                          const char *reason, const char *text)
{
    if (!m->intent->ran) {
        machine_fail(m, reason, "%s", text);
        return;
    }
    u->has = IMAGE_UNKNOWN;
    u->pulled = u->looked = false;
    u->image_ms = now + backoff_grown(MACHINE_RETRY_MIN_MS,
                                      MACHINE_RETRY_MAX_MS, ++u->refusals);
    machine_step_wait(step, u->image_ms);
    machine_say(m, reason, "%.400s; it is tried again", text);
}

/* As the kubelet does, since a runtime does not: nobody knows a name's number
 * before the container is there. */
static bool user_refused(struct machine *m, struct machine_unit *u, int64_t now,
                         struct machine_step *step)
{
    char text[ACT_MESSAGE_MAX];
    if (u->uid > 0)
        return false;
    if (u->uid < 0 && u->username[0])
        (void)snprintf(text, sizeof text,
                       "container %s: runAsNonRoot is true, and the user of "
                       "image %.200s is a name, %s, which may be root's: set "
                       "runAsUser, or a number as USER of the image",
                       u->name, u->image, u->username);
    else
        (void)snprintf(text, sizeof text,
                       "container %s: runAsNonRoot is true, and image %.200s "
                       "runs as root (user %s): set runAsUser, or a number as "
                       "USER of the image",
                       u->name, u->image, u->uid == 0 ? "0" : "not given");
    image_refused(m, u, now, step, "RunAsNonRoot", text);
    return true;
}

static void image_missing(struct machine *m, struct machine_unit *u,
                          int64_t now, struct machine_step *step)
{
    char text[ACT_MESSAGE_MAX];
    (void)snprintf(text, sizeof text,
                   "container %s: image %.200s is not on %.100s and "
                   "imagePullPolicy is Never: import it there%s",
                   u->name, u->image, m->intent->place,
                   m->intent->ran ? "" : ", delete the pod and apply it again");
    image_refused(m, u, now, step, "ImageMissing", text);
}

bool machine_next_image(struct machine *m, struct machine_unit *u, int64_t now,
                        struct machine_step *step)
{
    if (u->image_ms > now) {
        machine_step_wait(step, u->image_ms);
        return true;
    }
    if (u->has == IMAGE_PRESENT &&
        (u->pull != PODSPEC_PULL_ALWAYS || u->pulled)) {
        if (!u->looked) /* a registry gives images of other architectures */
            return machine_step_unit(step, MACHINE_LOOK_IMAGE, m, u);
        if (u->non_root && user_refused(m, u, now, step))
            return true;
        u->refusals = 0;
        return false;
    }
    if (u->pull != PODSPEC_PULL_ALWAYS && u->has == IMAGE_UNKNOWN)
        return machine_step_unit(step, MACHINE_LOOK_IMAGE, m, u);
    if (u->pull == PODSPEC_PULL_NEVER) {
        image_missing(m, u, now, step);
        return true;
    }
    if (m->intent->state != ACT_RUNNING)
        machine_move(m, ACT_PULLING);
    return machine_step_unit(step, MACHINE_PULL, m, u);
}
