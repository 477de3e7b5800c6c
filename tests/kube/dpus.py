"""Objects of DPU operators.  Their definitions here are stand-ins in shape:
group, version, kind and fields are the operators', nothing is validated and
no controller stands behind them."""
import crds

DPF = ("provisioning.dpu.nvidia.com", "v1alpha1", "DPU", "dpus")
OPENSHIFT = ("config.openshift.io", "v1", "DataProcessingUnit",
             "dataprocessingunits")

# of one card
HOST = """package 0
  numa 0 cpus=16 memory=64GiB
    root 0000:16
      bridge 0000:16:01.0
        card 0000:17:00.0 id=15b3:a2dc functions=2 cores=16 memory=16GiB
"""


def lone_host(c):
    """A file with the host of one card."""
    file = c.path("lone.host")
    with open(file, "w", encoding="ascii") as f:
        f.write(HOST)
    return file


def define(c, *kinds):
    crds.define(c, *(kinds or (DPF, OPENSHIFT)))


def undefine(c, kind):
    c.api.delete("customresourcedefinitions", None, f"{kind[3]}.{kind[0]}")


def _put(api, kind, name, spec, status):
    group, version, word, plural = kind
    old = api.maybe(plural, "default", name)
    obj = {"apiVersion": f"{group}/{version}", "kind": word,
           "metadata": {"name": name, "namespace": "default"},
           "spec": spec, "status": status}
    if not old:
        return api.create(plural, obj)
    obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    return api.update(plural, obj)


def dpu(api, name, node, phase, pci=None, **more):
    """A DPU of DPF; pci as Biga writes it, "0000:17:00.0"."""
    spec = {"dpuNodeName": node, "dpuDeviceName": name, **more}
    if pci:
        spec["pciAddress"] = pci[:-2].replace(":", "-")
    return _put(api, DPF, name, spec, {"phase": phase})


def unit(api, name, node, ready, side=False):
    """A DataProcessingUnit; ready: None, it has no condition."""
    conditions = [] if ready is None else [{
        "type": "Ready", "status": "True" if ready else "False",
        "reason": "Initialized" if ready else "NotInitialized"}]
    return _put(api, OPENSHIFT, name, {
        "dpuProductName": "NVIDIA BlueField", "isDpuSide": side,
        "nodeName": node}, {"conditions": conditions})
