#include "advertiser/describe/card_models.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/lib/testdata.h"

Test(card_models, known_cards_are_found)
{
    static const struct {
        uint16_t vendor_id, device_id;
        const char *model, *arch;
    } cases[] = {
        {0x15b3, 0xa2d6, "BlueField-2", "arm64"},
        {0x15b3, 0xa2dc, "BlueField-3", "arm64"},
        {0x15b3, 0xa2df, "BlueField-4", "arm64"},
        {0x8086, 0x1452, "IPU E2000", "arm64"},
        {0x1dd8, 0x1002, "Pensando DSC", "arm64"},
        {0x177d, 0xb200, "OCTEON TX2 CN93XX", "arm64"},
        {0x1bcf, 0x001c, "Vector Engine", "ve"},
        {0x8086, 0x225c, "Xeon Phi SE10/7120", "k1om"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct card_model *m = card_model_find(cases[i].vendor_id,
                                                     cases[i].device_id);
        cr_assert(m, "%s", cases[i].model);
        cr_expect_str_eq(m->model, cases[i].model);
        cr_expect_str_eq(m->arch, cases[i].arch);
    }
}

/* A NIC of the same vendor, a virtual function, a management function and
 * the switch of a card are no card. */
Test(card_models, others_are_not)
{
    static const uint16_t ids[][2] = {
        {0x15b3, 0x101f}, {0x15b3, 0x1021}, {0x15b3, 0x101e}, {0x15b3, 0xc2d3},
        {0x15b3, 0x197b}, {0x8086, 0x145c}, {0x1dd8, 0x1000}, {0x1dd8, 0x1003},
        {0x10de, 0x2330}, {0x0000, 0x0000}, {0xffff, 0xffff}};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        cr_expect_null(card_model_find(ids[i][0], ids[i][1]), "%04x:%04x",
                       ids[i][0], ids[i][1]);
}

Test(card_models, no_row_is_there_twice)
{
    for (size_t i = 0; i < n_card_models; i++) {
        const struct card_model *m = &card_models[i];
        cr_expect_eq(card_model_find(m->vendor_id, m->device_id), m, "%s",
                     m->model);
        cr_expect(*m->vendor && *m->model && *m->arch);
    }
}

Test(card_models, roles_follow_class_and_id)
{
    static const struct {
        uint16_t class_id, vendor_id, device_id;
        enum pci_role role;
    } cases[] = {
        {0x0300, 0x1002, 0x66a1, PCI_ROLE_GPU},   /* MI50 */
        {0x0302, 0x10de, 0x2330, PCI_ROLE_GPU},   /* H100 */
        {0x0380, 0x1002, 0x7408, PCI_ROLE_GPU},   /* MI250X */
        {0x1200, 0x1002, 0x74a0, PCI_ROLE_GPU},   /* MI300A */
        {0x1200, 0x1002, 0x74a1, PCI_ROLE_GPU},   /* MI300X */
        {0x1200, 0x1da3, 0x1020, PCI_ROLE_GPU},   /* Gaudi 2 */
        {0x1200, 0x10ee, 0x5004, PCI_ROLE_OTHER}, /* an FPGA */
        {0x0300, 0x1002, 0x515e, PCI_ROLE_OTHER}, /* ES1000 */
        {0x0300, 0x102b, 0x0522, PCI_ROLE_OTHER}, /* Matrox in a BMC */
        {0x0300, 0x102b, 0x0538, PCI_ROLE_OTHER},
        {0x0300, 0x1a03, 0x2000, PCI_ROLE_OTHER}, /* ASPEED */
        {0x0300, 0x1013, 0x00b8, PCI_ROLE_OTHER}, /* QEMU's Cirrus */
        {0x0300, 0x1d0f, 0x1111, PCI_ROLE_OTHER},
        {0x0200, 0x17db, 0x0501, PCI_ROLE_NIC}, /* Slingshot */
        {0x0200, 0x1d0f, 0xefa0, PCI_ROLE_NIC}, /* EFA */
        {0x0207, 0x15b3, 0x101b, PCI_ROLE_NIC}, /* InfiniBand */
        {0x0208, 0x8086, 0x24f0, PCI_ROLE_NIC}, /* Omni-Path */
        {0x0280, 0x15b3, 0x1003, PCI_ROLE_NIC},
        {0x0c06, 0x15b3, 0x6746, PCI_ROLE_NIC},   /* InfiniBand as of old */
        {0x0403, 0x10de, 0x22ba, PCI_ROLE_OTHER}, /* a GPU's audio */
        {0x0680, 0x10de, 0x1af1, PCI_ROLE_OTHER}, /* NVSwitch */
        {0x0108, 0x144d, 0xa808, PCI_ROLE_OTHER},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        cr_expect_eq(
            pci_role(cases[i].class_id, cases[i].vendor_id, cases[i].device_id),
            cases[i].role, "%04x %04x:%04x", cases[i].class_id,
            cases[i].vendor_id, cases[i].device_id);
}

Test(card_models, vendors_have_names)
{
    cr_expect_str_eq(pci_vendor_name(0x10de), "NVIDIA");
    cr_expect_str_eq(pci_vendor_name(0x1234), "");
}

/* The table in the documentation is this one. */
Test(card_models, each_is_documented)
{
    size_t size;
    cleanup_free char *text = testdata_read("schema/cards.md", &size);
    for (size_t i = 0; i < n_card_models; i++) {
        const struct card_model *m = &card_models[i];
        cleanup_free char *row = xasprintf("| `%04x:%04x` | %s %s | `%s` |\n",
                                           m->vendor_id, m->device_id,
                                           m->vendor, m->model, m->arch);
        cr_expect(strstr(text, row), "schema/cards.md lacks %s", row);
    }
}
