# Limber's command in a container of Debian 12.
#   docker build -t limber .
#   docker run --rm -v "$PWD:/work" limber run my-scene.json
# `limber live` and `--view` listen on the loopback interface: --network host, and --no-open.
FROM debian:12 AS build
COPY . /src
WORKDIR /src
RUN apt-get update && apt-get install -y --no-install-recommends dpkg-dev file && bin/setup run && bin/build release limber_cli limber_manual && cd build/release && cpack -G DEB

FROM debian:12
COPY --from=build /src/build/release/limber_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/limber_*.deb && rm -rf /var/lib/apt/lists/* /tmp/*.deb
WORKDIR /work
ENTRYPOINT ["limber"]
