#include "advertiser/describe/card_models.h"

#include "lib/base/mem.h"

/* The ids that the host sees, physical functions only: a virtual function
 * has a PCI device of its own and is no second card.
 *
 * Sources: [ids] the PCI ID database, pci-ids.ucw.cz, version 2026.08.22;
 * [linux] the named file under drivers/ of Linux. */
const struct card_model card_models[] = {
    /* NVIDIA BlueField, "integrated ConnectX network controller" [ids] */
    {0x15b3, 0xa2d2, "NVIDIA", "BlueField", "arm64"},
    {0x15b3, 0xa2d6, "NVIDIA", "BlueField-2", "arm64"},    /* [ids] */
    {0x15b3, 0xa2d9, "NVIDIA", "BlueField-3 Lx", "arm64"}, /* [ids] */
    {0x15b3, 0xa2dc, "NVIDIA", "BlueField-3", "arm64"},    /* [ids] */
    {0x15b3, 0xa2df, "NVIDIA", "BlueField-4", "arm64"},    /* [ids] */
    /* Broadcom Stingray SoC adapters (PS225, PS410) [ids] */
    {0x14e4, 0xd802, "Broadcom", "Stingray BCM58802", "arm64"},
    {0x14e4, 0xd804, "Broadcom", "Stingray BCM58804", "arm64"}, /* [ids] */
    /* Cavium, now Marvell: OCTEON III is MIPS64, later ones are Arm */
    {0x177d, 0x9702, "Marvell", "LiquidIO II CN23XX", "mips64"}, /* [ids] */
    /* [linux] net/ethernet/marvell/octeon_ep/octep_main.h, to the end of
     * the vendor: the OCTEON as a PCIe endpoint */
    {0x177d, 0xb100, "Marvell", "OCTEON TX2 CN98XX", "arm64"},
    {0x177d, 0xb200, "Marvell", "OCTEON TX2 CN93XX", "arm64"},
    {0x177d, 0xb400, "Marvell", "OCTEON Fusion CNF95N", "arm64"},
    {0x177d, 0xb900, "Marvell", "OCTEON 10 CN10KA", "arm64"},
    {0x177d, 0xba00, "Marvell", "OCTEON Fusion CNF10KA", "arm64"},
    {0x177d, 0xbc00, "Marvell", "OCTEON Fusion CNF10KB", "arm64"},
    {0x177d, 0xbd00, "Marvell", "OCTEON 10 CN10KB", "arm64"},
    /* NEC SX-Aurora TSUBASA, a vector processor of its own [ids] */
    {0x1bcf, 0x001c, "NEC", "Vector Engine", "ve"},
    /* Fungible DPU adapters FC50, FC100, FC200 [ids] */
    {0x1dad, 0x0108, "Fungible", "FC DPU", "mips64"},
    /* AMD Pensando DSC (Capri, Elba, Salina) [ids]; [linux]
     * net/ethernet/pensando/ionic/ionic.h */
    {0x1dd8, 0x1002, "AMD", "Pensando DSC", "arm64"},
    /* Intel IPU (E2000 "Mount Evans" and later): the idpf physical function
     * that the host gets; [ids] and [linux]
     * net/ethernet/intel/idpf/idpf_devids.h */
    {0x8086, 0x11df, "Intel", "IPU", "arm64"},
    {0x8086, 0x1452, "Intel", "IPU E2000", "arm64"},
    /* Intel Xeon Phi coprocessors: Knights Corner [ids] and [linux] (up to
     * 5.9) misc/mic/host/mic_device.h; 2262 is Knights Landing */
    {0x8086, 0x2250, "Intel", "Xeon Phi 5100", "k1om"},
    {0x8086, 0x225c, "Intel", "Xeon Phi SE10/7120", "k1om"},
    {0x8086, 0x225d, "Intel", "Xeon Phi 3120", "k1om"},
    {0x8086, 0x225e, "Intel", "Xeon Phi 31S1", "k1om"},
    {0x8086, 0x2262, "Intel", "Xeon Phi 7220", "amd64"},
};
const size_t n_card_models = ARRAY_LEN(card_models);

const struct card_model *card_model_find(uint16_t vendor_id, uint16_t device_id)
{
    for (size_t i = 0; i < n_card_models; i++)
        if (card_models[i].vendor_id == vendor_id &&
            card_models[i].device_id == device_id)
            return &card_models[i];
    return NULL;
}

/* [ids] "DSC Capri Upstream Port", "DSC Virtual Downstream Port" */
bool card_models_have_switch(uint16_t vendor_id)
{
    return vendor_id == 0x1dd8;
}

/* Display controllers that only serve a console.  All names from the PCI ID
 * database, version 2026.08.22. */
static const struct {
    uint16_t vendor_id;
    uint16_t first, last; /* device ids */
} consoles[] = {
    {0x1002, 0x4752, 0x4752}, /* ATI Rage XL, on server boards */
    {0x1002, 0x5159, 0x5159}, /* ATI RV100, on server boards */
    {0x1002, 0x515e, 0x515e}, /* ATI ES1000 */
    {0x1013, 0x0000, 0xffff}, /* Cirrus Logic, as QEMU emulates it */
    {0x102b, 0x0000, 0xffff}, /* Matrox: G200e and its kin in BMCs */
    {0x1234, 0x1111, 0x1111}, /* Bochs and QEMU standard VGA */
    {0x126f, 0x0000, 0xffff}, /* Silicon Motion */
    {0x1414, 0x5353, 0x5353}, /* Hyper-V virtual VGA */
    {0x15ad, 0x0405, 0x0710}, /* VMware SVGA */
    {0x18ca, 0x0020, 0x0027}, /* XGI Z7 to Z11 in BMCs */
    {0x19e5, 0x1711, 0x1711}, /* Huawei Hi171x iBMC */
    {0x1a03, 0x0000, 0xffff}, /* ASPEED */
    {0x1af4, 0x1050, 0x1050}, /* virtio GPU */
    {0x1b36, 0x0100, 0x0100}, /* QXL */
    {0x1d0f, 0x1111, 0x1111}, /* Amazon EC2 console VGA */
    {0x80ee, 0xbeef, 0xbeef}, /* VirtualBox */
};

static bool is_console(uint16_t vendor_id, uint16_t device_id)
{
    for (size_t i = 0; i < ARRAY_LEN(consoles); i++)
        if (consoles[i].vendor_id == vendor_id &&
            device_id >= consoles[i].first && device_id <= consoles[i].last)
            return true;
    return false;
}

/* Classes as in the PCI Code and ID Assignment Specification. */
enum {
    CLASS_NETWORK = 0x02,
    CLASS_DISPLAY = 0x03,
    CLASS_INFINIBAND_OLD = 0x0c06, /* a serial bus until 0207 existed */
    CLASS_ACCELERATOR = 0x1200,
};

enum pci_role pci_role(uint16_t class_id, uint16_t vendor_id,
                       uint16_t device_id)
{
    if (class_id >> 8 == CLASS_NETWORK || class_id == CLASS_INFINIBAND_OLD)
        return PCI_ROLE_NIC;
    if (class_id >> 8 == CLASS_DISPLAY)
        return is_console(vendor_id, device_id) ? PCI_ROLE_OTHER : PCI_ROLE_GPU;
    /* AMD's Instinct MI300 and later, and Habana's Gaudi, are processing
     * accelerators; so are FPGAs and DMA engines of other vendors. */
    if (class_id == CLASS_ACCELERATOR &&
        (vendor_id == 0x1002 || vendor_id == 0x1da3))
        return PCI_ROLE_GPU;
    return PCI_ROLE_OTHER;
}

const char *pci_vendor_name(uint16_t vendor_id)
{
    static const struct {
        uint16_t id;
        const char *name;
    } vendors[] = {
        {0x1002, "AMD"},    {0x1022, "AMD"},     {0x10de, "NVIDIA"},
        {0x10df, "Emulex"}, {0x1137, "Cisco"},   {0x14e4, "Broadcom"},
        {0x15b3, "NVIDIA"}, {0x177d, "Marvell"}, {0x17db, "HPE Cray"},
        {0x1924, "AMD"},    {0x19e5, "Huawei"},  {0x1af4, "virtio"},
        {0x1bcf, "NEC"},    {0x1d0f, "Amazon"},  {0x1da3, "Intel Habana"},
        {0x1dd8, "AMD"},    {0x8086, "Intel"},
    };
    for (size_t i = 0; i < ARRAY_LEN(vendors); i++)
        if (vendors[i].id == vendor_id)
            return vendors[i].name;
    return "";
}
