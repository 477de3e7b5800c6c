# The extender: two stages, nothing in the image but the program and the
# libraries it is linked with.
#
#   docker build -f deploy/docker/extender.Dockerfile -t biga-extender:0.2.0 .
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends make
WORKDIR /src
COPY . .
RUN make --no-print-directory programs PREFIX=/usr \
    && deploy/docker/collect build/biga-extender /out

FROM scratch
COPY --from=build /out /
USER 65532:65532
EXPOSE 8700 8701
ENTRYPOINT ["/usr/bin/biga-extender"]
