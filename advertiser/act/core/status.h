/* status - the status of places and pods, for whoever asks. */
#ifndef BIGA_ADVERTISER_ACT_CORE_STATUS_H
#define BIGA_ADVERTISER_ACT_CORE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/act/card/card.h"
#include "advertiser/act/card/health.h"
#include "advertiser/act/flash/flasher.h"
#include "advertiser/act/pod/pod.h"
#include "advertiser/act/prep/hardware.h"
#include "advertiser/cri/cri.h"
#include "model/topo/card_rights.h"

enum { ACT_CONTAINERS_MAX = 16 };

struct act_place_status {
    char name[ACT_NAME_MAX + 1], pci[PCI_ADDR_TEXT_MAX], endpoint[256];
    struct device_sets devices;         /* that pods get there */
    char rights[CARD_RIGHTS_TEXT_SIZE]; /* that they may have, see there */
    enum act_health health;
    bool drained; /* also while lost */
    char reason[ACT_MESSAGE_MAX];
    char runtime[CRI_TEXT_MAX]; /* "containerd 1.6.20", "" not known yet */
    int64_t since_ms;           /* how long it has been in that health */
    uint32_t n_pods;
    char model[TOPO_TEXT_MAX + 1], serial[TOPO_TEXT_MAX + 1]; /* "" unknown */
    struct flasher_view flash;
};

struct act_place_calls {
    char name[ACT_NAME_MAX + 1]; /* its PCI address; "host" */
    unsigned long long ended[GRPC_OUTCOMES];
};

struct act_container_status {
    char name[64];
    enum cri_container_state state;
    int32_t exit_code;
    uint32_t restarts;
    char reason[CRI_TEXT_MAX];
};

struct act_pod_status {
    char namespace[64], name[ACT_NAME_MAX + 1], uid[64];
    char place[ACT_NAME_MAX + 1];
    char pair_key[512];
    enum act_state state;
    char owner[16];
    bool held;     /* waits for actuator_begin() */
    bool stopping; /* it is not wanted any more */
    bool stale;    /* its place does not answer: as last known */
    bool ready;    /* all containers run */
    bool ran;      /* they all did once, in this attempt or one before */
    uint32_t attempt;
    char reason[ACT_REASON_MAX + 1]; /* "", "ImageMissing", "CardLost" … */
    char message[ACT_MESSAGE_MAX];   /* what to do next */
    char address[64];                /* of the pod, "" not known */
    size_t n_containers;
    struct act_container_status containers[ACT_CONTAINERS_MAX];
    uint64_t version; /* grows with each change, over all pods */
};

#endif
