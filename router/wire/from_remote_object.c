/* What one sandbox or container says of itself: of its identity nothing is
 * taken from the remote. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lib/base/hidden_text.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "router/wire/from_remote_private.h"
#include "router/wire/wire_keys.h"

enum { MODE_NODE = 2 }; /* of NamespaceMode */
enum { ADDRESS_MAX = 45 };

/* Where each message has what we look at; 0: nowhere. */
static const struct form {
    enum fields_message message;
    struct made_numbers made;
    uint32_t id, sandbox, metadata, image, handler, log_path, resources;
    uint32_t reason, text, network, linux_status;
    uint32_t created, started, finished;
} forms[] = {
    {
        .message = CRI_PodSandboxStatus,
        .made = {CRI_PodSandboxStatus_labels, CRI_PodSandboxStatus_annotations,
                 0},
        .id = CRI_PodSandboxStatus_id,
        .metadata = CRI_PodSandboxStatus_metadata,
        .created = CRI_PodSandboxStatus_created_at,
        .handler = CRI_PodSandboxStatus_runtime_handler,
        .network = CRI_PodSandboxStatus_network,
        .linux_status = CRI_PodSandboxStatus_linux,
    },
    {
        .message = CRI_PodSandbox,
        .made = {CRI_PodSandbox_labels, CRI_PodSandbox_annotations, 0},
        .id = CRI_PodSandbox_id,
        .metadata = CRI_PodSandbox_metadata,
        .created = CRI_PodSandbox_created_at,
        .handler = CRI_PodSandbox_runtime_handler,
    },
    {
        .message = CRI_ContainerStatus,
        .made = {CRI_ContainerStatus_labels, CRI_ContainerStatus_annotations,
                 CRI_ContainerStatus_mounts},
        .id = CRI_ContainerStatus_id,
        .metadata = CRI_ContainerStatus_metadata,
        .created = CRI_ContainerStatus_created_at,
        .started = CRI_ContainerStatus_started_at,
        .finished = CRI_ContainerStatus_finished_at,
        .image = CRI_ContainerStatus_image,
        .log_path = CRI_ContainerStatus_log_path,
        /* limits of the allocation, which the kubelet would take for a resize
         * of the pod */
        .resources = CRI_ContainerStatus_resources,
        .reason = CRI_ContainerStatus_reason,
        .text = CRI_ContainerStatus_message,
    },
    {
        .message = CRI_Container,
        .made = {CRI_Container_labels, CRI_Container_annotations, 0},
        .id = CRI_Container_id,
        .sandbox = CRI_Container_pod_sandbox_id,
        .metadata = CRI_Container_metadata,
        .created = CRI_Container_created_at,
        .image = CRI_Container_image,
    },
    {
        .message = CRI_ContainerAttributes,
        .made = {CRI_ContainerAttributes_labels,
                 CRI_ContainerAttributes_annotations, 0},
        .id = CRI_ContainerAttributes_id,
        .metadata = CRI_ContainerAttributes_metadata,
    },
    {
        .message = CRI_PodSandboxAttributes,
        .made = {CRI_PodSandboxAttributes_labels,
                 CRI_PodSandboxAttributes_annotations, 0},
        .id = CRI_PodSandboxAttributes_id,
        .metadata = CRI_PodSandboxAttributes_metadata,
    },
};

static const struct form *form_of(enum fields_message m)
{
    size_t i = 0;
    while (forms[i].message != m)
        i++; /* callers ask for these alone */
    return &forms[i];
}

/* --- parts ---------------------------------------------------------------- */

bool from_remote_id_valid(struct proto_bytes id)
{
    for (size_t i = 0; i < id.size; i++)
        if (!((id.data[i] >= '0' && id.data[i] <= '9') ||
              (id.data[i] >= 'a' && id.data[i] <= 'f')))
            return false;
    return id.size == FROM_REMOTE_ID_SIZE;
}

int from_remote_take_id(enum fields_message m, struct proto_bytes message,
                        char ret_id[FROM_REMOTE_ID_SIZE + 1], struct error *err)
{
    struct proto_bytes id = edit_bytes(message, form_of(m)->id);
    if (!from_remote_id_valid(id))
        return error_set(
            err, EPROTO, "%s.id: is \"%.*s\", must be %d of 0-9 and a-f",
            fields_message_name(m), (int)(id.size < 80 ? id.size : 80), id.data,
            FROM_REMOTE_ID_SIZE);
    memcpy(ret_id, id.data, FROM_REMOTE_ID_SIZE);
    ret_id[FROM_REMOTE_ID_SIZE] = '\0';
    return 0;
}

/* The number that an address begins with; behind it `*text` ends. */
static unsigned first_number(const char **text, unsigned base)
{
    unsigned n = 0;
    for (; isxdigit((unsigned char)**text); ++*text) {
        unsigned c = (unsigned char)**text;
        unsigned digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        n = n <= UINT16_MAX && digit < base ? n * base + digit : UINT32_MAX;
    }
    return n;
}

/* The kubelet probes the pod there, and Services lead there: never to the
 * machine that calls it, nor to what its neighbours alone serve.  How it begins
 * tells; whether it parses is the kubelet's business. */
static bool is_address(struct proto_bytes b)
{
    char text[ADDRESS_MAX + 1];
    const char *at = text;
    if (b.size < 2 || b.size > ADDRESS_MAX)
        return false;
    memcpy(text, b.data, b.size);
    text[b.size] = '\0';
    if (text[strspn(text, "0123456789abcdefABCDEF.:")])
        return false;
    if (strchr(text, ':')) {
        unsigned n = first_number(&at, 16);
        return n > 0 && n < 0xff00 && (n & 0xffc0) != 0xfe80;
    }
    unsigned n = first_number(&at, 10);
    at += *at == '.';
    unsigned next = first_number(&at, 10);
    return *at == '.' && n > 0 && n < 224 && n != 127 &&
           !(n == 169 && next == 254);
}

static bool is_identity(const struct proto_field *label)
{
    static const char *const keys[] = {WIRE_POD_NAME, WIRE_POD_NAMESPACE,
                                       WIRE_POD_UID, WIRE_CONTAINER_NAME};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (edit_is_key(label, keys[i]))
            return true;
    return false;
}

/* Texts that are copied have a cap, those of people are cut there. */
static int copy_text(enum fields_message m, const struct proto_field *f,
                     struct error *err)
{
    const struct fields_row *row = fields_find(m, f->number);
    if (!row || row->kind != FIELDS_TEXT ||
        f->bytes.size <= FROM_REMOTE_TEXT_MAX)
        return EDIT_COPY;
    return error_set(err, EPROTO, "%s.%s: has %zu bytes, the limit is %d",
                     fields_message_name(m), row->name, f->bytes.size,
                     FROM_REMOTE_TEXT_MAX);
}

/* They end on a terminal. */
static int cut_text(const struct proto_field *f, struct str *out)
{
    char plain[FROM_REMOTE_REASON_MAX];
    struct proto_bytes b = f->bytes;
    if (b.size > FROM_REMOTE_REASON_MAX) {
        b.size = FROM_REMOTE_REASON_MAX;
        while (b.size > 0 && utf8_inside(b.data[b.size]))
            b.size--;
    }
    memcpy(plain, b.data, b.size);
    b = (struct proto_bytes){plain, hidden_text_blank(plain, b.size)};
    proto_add_bytes(out, f->number, b);
    return EDIT_DROP;
}

/* --- image, network, namespaces ------------------------------------------- */

static int edit_image(void *ctx, const struct proto_field *f, struct str *out,
                      struct error *err)
{
    const char *user_image = ctx;
    (void)out;
    if (f->number == CRI_ImageSpec_runtime_handler ||
        (f->number == CRI_ImageSpec_user_specified_image && user_image))
        return EDIT_DROP;
    return copy_text(CRI_ImageSpec, f, err);
}

static void finish_image(void *ctx, struct str *out)
{
    proto_add_text(out, CRI_ImageSpec_user_specified_image, ctx);
}

static int add_image(const struct proto_field *f, const struct object *o,
                     struct str *out, struct error *err)
{
    const char *user = o->container ? o->container->user_image : NULL;
    return edit_within(f, edit_image, finish_image,
                       user && *user ? (void *)(uintptr_t)user : NULL, out,
                       err);
}

static int edit_network(void *ctx, const struct proto_field *f, struct str *out,
                        struct error *err)
{
    (void)ctx;
    (void)out;
    (void)err;
    if (f->number == CRI_PodSandboxNetworkStatus_ip)
        return is_address(f->bytes) ? EDIT_COPY : EDIT_DROP;
    if (f->number == CRI_PodSandboxNetworkStatus_additional_ips)
        return is_address(edit_bytes(f->bytes, CRI_PodIP_ip)) ? EDIT_COPY
                                                              : EDIT_DROP;
    return EDIT_COPY;
}

static int edit_all_but(void *ctx, const struct proto_field *f, struct str *out,
                        struct error *err)
{
    const uint32_t *number = ctx;
    (void)out;
    (void)err;
    return f->number == *number ? EDIT_DROP : EDIT_COPY;
}

/* As the kubelet asked for it, or it would make another sandbox. */
static void add_namespaces(struct proto_bytes status, uint32_t number,
                           bool host_network, struct str *out)
{
    uint32_t first = CRI_LinuxPodSandboxStatus_namespaces,
             second = CRI_Namespace_options,
             third = CRI_NamespaceOption_network;
    struct proto_bytes linux_status = edit_bytes(status, number),
                       namespaces = edit_bytes(linux_status, first),
                       options = edit_bytes(namespaces, second);
    size_t a = proto_open(out, number);
    (void)edit_fields(linux_status, edit_all_but, &first, out, NULL);
    size_t b = proto_open(out, first);
    (void)edit_fields(namespaces, edit_all_but, &second, out, NULL);
    size_t c = proto_open(out, second);
    (void)edit_fields(options, edit_all_but, &third, out, NULL);
    if (host_network)
        proto_add_varint(out, third, MODE_NODE);
    proto_close(out, c);
    proto_close(out, b);
    proto_close(out, a);
}

/* --- all of it ------------------------------------------------------------ */

struct context {
    const struct form *form;
    const struct object *o;
    struct proto_bytes made;
    bool has_address;
    int64_t created_ns; /* by our clock; 0 not known */
};

static void add_time(struct str *out, uint32_t number, int64_t ns)
{
    if (number && ns)
        proto_add_varint(out, number, (uint64_t)ns);
}

/* 0, not yet, stays that. */
static int64_t our_time(const struct context *c, struct proto_bytes message,
                        uint32_t number)
{
    int64_t theirs = (int64_t)edit_number(message, number), since;
    int64_t created = (int64_t)edit_number(message, c->form->created);
    int64_t now = c->o->container->now_ns, ours;
    if (theirs == 0)
        return 0;
    if (__builtin_sub_overflow(theirs, created, &since) || since < 0)
        since = 0;
    if (__builtin_add_overflow(c->created_ns, since, &ours) ||
        (now && ours > now))
        ours = now ? now : c->created_ns;
    return ours;
}

static void add_times(const struct context *c, struct proto_bytes message,
                      struct str *out)
{
    const struct form *form = c->form;
    if (!c->created_ns || !form->created)
        return;
    add_time(out, form->created, c->created_ns);
    if (!form->started)
        return;
    add_time(out, form->started, our_time(c, message, form->started));
    add_time(out, form->finished, our_time(c, message, form->finished));
}

static bool is_replaced(const struct context *c, uint32_t number)
{
    const struct form *form = c->form;
    return number == form->id || number == form->sandbox ||
           number == form->metadata || number == form->handler ||
           number == form->made.mounts || number == form->log_path ||
           number == form->resources || number == form->linux_status;
}

static bool is_time(const struct context *c, uint32_t number)
{
    const struct form *form = c->form;
    return c->created_ns &&
           (number == form->created || number == form->started ||
            number == form->finished);
}

static int edit_object(void *ctx, const struct proto_field *f, struct str *out,
                       struct error *err)
{
    const struct context *c = ctx;
    const struct form *form = c->form;
    if (is_replaced(c, f->number) || is_time(c, f->number))
        return EDIT_DROP;
    if (f->number == form->made.labels)
        return c->made.size || is_identity(f) ? EDIT_DROP : EDIT_COPY;
    if (f->number == form->made.annotations)
        return c->made.size || edit_is_key(f, WIRE_KEPT) ? EDIT_DROP
                                                         : EDIT_COPY;
    if (f->number == form->image)
        return add_image(f, c->o, out, err);
    if (f->number == form->reason || f->number == form->text)
        return cut_text(f, out);
    if (f->number == form->network)
        return c->has_address
                   ? EDIT_DROP
                   : edit_within(f, edit_network, NULL, NULL, out, err);
    return copy_text(form->message, f, err);
}

static void add_identity_labels(const struct context *c, struct str *out)
{
    const struct known_sandbox *s = c->o->sandbox;
    const struct cri_pair pairs[] = {
        {WIRE_POD_NAME, s->name},
        {WIRE_POD_NAMESPACE, s->namespace},
        {WIRE_POD_UID, s->uid},
        {WIRE_CONTAINER_NAME, c->o->container ? c->o->container->name : ""},
    };
    size_t n = ARRAY_LEN(pairs) - (c->o->container == NULL);
    edit_add_pairs(out, c->form->made.labels, (struct cri_pairs){pairs, n});
}

static void add_metadata(const struct context *c, struct str *out)
{
    const struct known_sandbox *s = c->o->sandbox;
    const struct known_container *container = c->o->container;
    size_t opened = proto_open(out, c->form->metadata);
    if (container) {
        proto_add_text(out, CRI_ContainerMetadata_name, container->name);
        if (container->attempt)
            proto_add_varint(out, CRI_ContainerMetadata_attempt,
                             container->attempt);
    } else {
        proto_add_text(out, CRI_PodSandboxMetadata_name, s->name);
        proto_add_text(out, CRI_PodSandboxMetadata_uid, s->uid);
        proto_add_text(out, CRI_PodSandboxMetadata_namespace, s->namespace);
        if (s->attempt)
            proto_add_varint(out, CRI_PodSandboxMetadata_attempt, s->attempt);
    }
    proto_close(out, opened);
}

static void add_known(const struct context *c, struct proto_bytes message,
                      struct str *out)
{
    const struct form *form = c->form;
    const struct known_sandbox *s = c->o->sandbox;
    const struct known_container *container = c->o->container;
    proto_add_text(out, form->id, container ? container->id : s->id);
    if (form->sandbox)
        proto_add_text(out, form->sandbox, s->id);
    add_metadata(c, out);
    add_times(c, message, out);
    if (c->made.size)
        from_remote_add_made(c->made, &form->made, out);
    else
        add_identity_labels(c, out);
    if (form->handler)
        proto_add_text(out, form->handler, s->handler);
    if (form->log_path && container)
        proto_add_text(out, form->log_path, container->log_path);
    if (c->has_address) {
        size_t opened = proto_open(out, form->network);
        proto_add_text(out, CRI_PodSandboxNetworkStatus_ip, s->address);
        proto_close(out, opened);
    }
    if (form->linux_status)
        add_namespaces(message, form->linux_status, s->host_network, out);
}

int from_remote_add_object(enum fields_message m, struct proto_bytes message,
                           const struct object *o, struct str *out,
                           struct error *err)
{
    const struct form *form = form_of(m);
    const char *address = o->sandbox->address;
    struct context c = {
        .form = form,
        .o = o,
        .made = o->container ? o->container->made : o->sandbox->made,
        .has_address = form->network && address && *address,
        .created_ns = o->container ? o->container->created_ns
                                   : o->sandbox->created_ns,
    };
    int e = edit_fields(message, edit_object, &c, out, err);
    if (e == 0)
        add_known(&c, message, out);
    return e;
}

int from_remote_add_container(const struct proto_field *status,
                              const struct known *known,
                              const struct known_sandbox *sandbox,
                              struct str *out, struct error *err)
{
    char id[FROM_REMOTE_ID_SIZE + 1];
    int e = from_remote_take_id(CRI_ContainerStatus, status->bytes, id, err);
    const struct known_container *c = e == 0 && known
                                          ? known->container(known->ctx, id)
                                          : NULL;
    if (!c || strcmp(c->sandbox->id, sandbox->id) != 0)
        return e;
    const struct object o = {sandbox, c};
    size_t opened = proto_open(out, status->number);
    e = from_remote_add_object(CRI_ContainerStatus, status->bytes, &o, out,
                               err);
    proto_close(out, opened);
    return e;
}
