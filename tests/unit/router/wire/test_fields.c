/* What messages are checked for, so that no reader of them refuses what was
 * let through. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/fields.h"

static struct proto_bytes of(const struct str *s)
{
    return (struct proto_bytes){s->data, s->size};
}

/* A container's status with one of each kind. */
static void write_status(struct str *m)
{
    proto_add_text(m, CRI_ContainerStatus_id, "abc");
    size_t metadata = proto_open(m, CRI_ContainerStatus_metadata);
    proto_add_text(m, CRI_ContainerMetadata_name, "n");
    proto_close(m, metadata);
    proto_add_varint(m, CRI_ContainerStatus_state, 1);
    proto_add_pair(m, CRI_ContainerStatus_labels, "k", "v");
    proto_add_pair(m, CRI_ContainerStatus_labels, "k2", "");
    size_t user = proto_open(m, CRI_ContainerStatus_user);
    size_t in = proto_open(m, CRI_ContainerUser_linux);
    proto_add_bytes(m, CRI_LinuxContainerUser_supplemental_groups,
                    (struct proto_bytes){"\x01\x80\x01", 3});
    proto_add_varint(m, CRI_LinuxContainerUser_supplemental_groups, 7);
    proto_close(m, in);
    proto_close(m, user);
}

Test(fields, are_found_by_number)
{
    const struct fields_row *row = fields_find(CRI_PodSandboxStatus, 9);
    cr_assert_not_null(row);
    cr_expect_str_eq(row->name, "runtime_handler");
    cr_expect_eq(row->kind, FIELDS_TEXT);
    row = fields_find(CRI_PodSandboxStatusResponse, 3);
    cr_assert_not_null(row);
    cr_expect_eq(row->kind, FIELDS_MANY);
    cr_expect_eq(row->within, CRI_ContainerStatus);
    cr_expect_null(fields_find(CRI_PodSandboxStatus, 10));
    cr_expect_null(fields_find(CRI_Nothing, 1));
    cr_expect_str_eq(fields_message_name(CRI_ImageSpec), "ImageSpec");
    cr_expect_eq(CRI_ImageSpec_runtime_handler, 19);
}

Test(fields, what_is_right_passes)
{
    cleanup_str struct str m = STR_INIT(1024), copy = STR_INIT(1024);
    struct error err = {0};
    write_status(&m);
    cr_expect_eq(fields_check(CRI_ContainerStatus, of(&m), &err), 0, "%s",
                 err.text);
    fields_copy_known(CRI_ContainerStatus, of(&m), &copy);
    cr_assert_eq(copy.size, m.size);
    cr_expect_arr_eq(copy.data, m.data, m.size);
}

Test(fields, what_is_newer_passes_and_can_be_left_out)
{
    cleanup_str struct str m = STR_INIT(1024), copy = STR_INIT(1024);
    struct error err = {0};
    struct proto_field f;
    write_status(&m);
    proto_add_text(&m, 99, "\xff");
    proto_add_varint(&m, 98, 7);
    size_t image = proto_open(&m, CRI_ContainerStatus_image);
    proto_add_text(&m, CRI_ImageSpec_image, "i");
    proto_add_text(&m, 97, "newer");
    proto_close(&m, image);
    cr_expect_eq(fields_check(CRI_ContainerStatus, of(&m), &err), 0, "%s",
                 err.text);
    fields_copy_known(CRI_ContainerStatus, of(&m), &copy);
    cr_expect_eq(proto_find(of(&copy), 99, PROTO_BYTES, &f, &err), 0);
    cr_expect_eq(proto_find(of(&copy), 98, PROTO_VARINT, &f, &err), 1);
    cr_expect_eq(
        proto_find(of(&copy), CRI_ContainerStatus_image, PROTO_BYTES, &f, &err),
        1);
    cr_expect_eq(f.bytes.size, 3);
}

#define BYTES(text) ((struct proto_bytes){(text), sizeof(text) - 1})

Test(fields, what_a_reader_would_refuse_does_not_pass)
{
    static const struct {
        enum fields_message message;
        struct proto_bytes bytes;
        const char *why;
    } bad[] = {
        {CRI_Container, BYTES("\x0a\x01\xff"), "Container.id: is no text"},
        {CRI_Container, BYTES("\x0a\x01\0"), "Container.id: is no text"},
        {CRI_Container, BYTES("\x08\x01"), "Container.id: is of another type"},
        {CRI_Container, BYTES("\x32\x01x"), "Container.state: is of another"},
        {CRI_Container, BYTES("\x1a\x01\x0a"), "ContainerMetadata: byte 0"},
        {CRI_Container, BYTES("\x1a\x00\x1a\x00"), "metadata: comes twice"},
        {CRI_Container, BYTES("\x42\x03\x0a\x01\xc0"), "Container.labels: has"},
        {CRI_Container, BYTES("\x42\x02\x10\x01"), "Container.labels: has"},
        {CRI_Container, BYTES("\x42\x01\x0a"), "Container.labels: byte 0"},
        {CRI_Container, BYTES("\x0a"), "Container: byte 0"},
        {CRI_LinuxContainerUser, BYTES("\x1a\x01\x80"), "is not packed"},
        {CRI_PsiData, BYTES("\x10\x01"), "PsiData.Avg10: is of another type"},
        {CRI_ListContainersResponse, BYTES("\x0a\x03\x0a\x01\xff"),
         "Container.id"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err = {0};
        cr_expect_eq(fields_check(bad[i].message, bad[i].bytes, &err), -EPROTO,
                     "%zu", i);
        cr_expect(strstr(err.text, bad[i].why), "%zu: %s", i, err.text);
    }
}
