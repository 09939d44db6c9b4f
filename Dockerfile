# syntax=docker/dockerfile:1.17.0
# The image of one service:
#
#   docker build --build-arg SERVICE=client-api --build-arg VERSION=v1.0.0 -t parley/client-api:v1.0.0 .
#
# SERVICE is client-api, widget-api, socket-gateway, processor, panel or parleyctl. The image holds one static binary and the certificates
# of public CAs: no shell, no package manager, no writable files.
ARG GO_VERSION=1.26.8

# The chat widget, which widget-api embeds, and the panel's app.
FROM --platform=$BUILDPLATFORM node:20-bookworm-slim AS web
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
COPY clients/typescript/package.json clients/typescript/
COPY web web
RUN npm ci --silent --no-progress
RUN npm run --silent --workspace web/widget build && npm run --silent --workspace web/panel build

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-bookworm AS build
ARG SERVICE
WORKDIR /src
# go reads the go.mod of every module that the root module names; of testkit and the clients an image has no more.
COPY go.mod go.sum ./
COPY services/client-api/go.mod services/client-api/
COPY services/widget-api/go.mod services/widget-api/
COPY testkit/engines/go.mod testkit/engines/
COPY clients/go/go.mod clients/go/
COPY pkg pkg
COPY proto-events proto-events
COPY services/${SERVICE} services/${SERVICE}
ENV GOWORK=off CGO_ENABLED=0
COPY --from=web /src/services /web
RUN if [ -d "/web/${SERVICE}" ]; then cp -r "/web/${SERVICE}/." "services/${SERVICE}/"; fi
ARG VERSION=dev
ARG COMMIT=
ARG DATE=
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    cd services/${SERVICE} && GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false -o /out/service \
    -tags "$([ "${SERVICE}" = parleyctl ] || echo nosqlite)" \
    -ldflags "-s -w -X github.com/parley-chat/parley/pkg/ops.version=${VERSION} -X github.com/parley-chat/parley/pkg/ops.commit=${COMMIT} -X github.com/parley-chat/parley/pkg/ops.date=${DATE}" \
    ./cmd/${SERVICE} && mkdir /out/keys

FROM scratch
ARG SERVICE
ARG VERSION=dev
ARG COMMIT=
ARG DATE=
LABEL org.opencontainers.image.title="parley ${SERVICE}" \
      org.opencontainers.image.description="Parley, the messaging edge of a chatbot platform: ${SERVICE}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.created="${DATE}"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/service /service
# A new volume mounted here gets the owner of this directory, so that parleyctl can write the visitors' keys.
COPY --from=build --chown=65532:65532 /out/keys /keys
USER 65532:65532
EXPOSE 8080 9090
# The check asks OPS_ADDR. Kubernetes uses its own probes instead; parleyctl has no server.
HEALTHCHECK --interval=10s --timeout=6s --start-period=20s --retries=3 CMD ["/service", "healthcheck"]
ENTRYPOINT ["/service"]
