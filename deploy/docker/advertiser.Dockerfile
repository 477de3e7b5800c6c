# The advertiser, and the biga command beside it.
#
#   docker build -f deploy/docker/advertiser.Dockerfile -t biga-advertiser:0.2.0 .
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends make
WORKDIR /src
COPY . .
RUN make --no-print-directory programs PREFIX=/usr \
    && deploy/docker/collect build/biga-advertiser /out \
    && deploy/docker/collect build/biga /out

FROM scratch
COPY --from=build /out /
# hwloc reads PCI and NUMA from the host's sysfs, which every container has
ENTRYPOINT ["/usr/bin/biga-advertiser"]
