# The image of the service, of two variants, and the image that loads a server.
#
#   docker build -t tandem .                                      ONNX Runtime on the CPU, no PyTorch
#   docker build -t tandem:latest-gpu --build-arg VARIANT=gpu .   PyTorch and ONNX Runtime with CUDA from the wheels
#   docker build -t tandem-loadtest --target loadtest .           `tandem loadtest`
#
# The first and the last are for x86-64 and arm64 (docker buildx build --platform linux/amd64,linux/arm64 …), the second
# for x86-64: `make lock-check` asks for wheels of both.
# docs/deploy.md says how to run them.

ARG BASE_IMAGE=python:3.11-slim-bookworm
ARG VARIANT=cpu


# --- what is needed to build and not to run: pip, the build back end, the sources -----------------------------------
FROM ${BASE_IMAGE} AS builder
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src

# A package index of your own: docker build --secret id=pip,src=$HOME/.config/pip/pip.conf (it stays out of the image).
FROM builder AS loadtest-packages
COPY requirements/loadtest.txt requirements/
RUN --mount=type=cache,target=/root/.cache/pip --mount=type=secret,id=pip,target=/root/.config/pip/pip.conf \
    python -m venv --without-pip /opt/loadtest \
    && pip --python /opt/loadtest/bin/python install --require-hashes --only-binary :all: -r requirements/loadtest.txt
COPY deploy/docker/slim.py deploy/docker/
RUN python deploy/docker/slim.py /opt/loadtest


FROM builder AS compiler
COPY deploy/docker/native /usr/local/bin/
RUN native tools


FROM compiler AS service-packages
ARG VARIANT
ARG TARGETARCH
RUN if [ "$VARIANT-$TARGETARCH" = gpu-arm64 ]; then \
        echo "The GPU image is for linux/amd64 only: build VARIANT=cpu for linux/arm64." >&2; exit 1; \
    fi
COPY requirements/image-${VARIANT}.txt requirements/
# Wheels, each with the hash of the lock; srt alone, which is plain Python, has none. None needs a compiler.
RUN --mount=type=cache,target=/root/.cache/pip --mount=type=secret,id=pip,target=/root/.config/pip/pip.conf \
    python -m venv --without-pip /opt/tandem \
    && pip --python /opt/tandem/bin/python install --require-hashes --only-binary :all: --no-binary srt \
        -r "requirements/image-${VARIANT}.txt"
COPY pyproject.toml README.md LICENSE ./
COPY tandem tandem
COPY models models
COPY training training
COPY service service
COPY deploy deploy
COPY extras extras
# This project, with the build back end that the lock brought; then what only building needed leaves again.
RUN pip --python /opt/tandem/bin/python install --no-deps --no-index --no-build-isolation --no-cache-dir . \
    && pip --python /opt/tandem/bin/python uninstall --yes --quiet \
        hatchling editables pathspec pluggy tomlkit trove-classifiers \
    && python deploy/docker/slim.py /opt/tandem \
    && native build /opt/tandem/bin/python


# --- what both images have: a user without rights, and a program that asks the service whether it is ready ----------
FROM ${BASE_IMAGE} AS base
# Nothing is installed with the base image's own pip: what cannot be run cannot be abused.
RUN python -m pip uninstall --yes --quiet --root-user-action ignore pip setuptools wheel \
    && groupadd --system --gid 10001 tandem \
    && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin tandem
ENV HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
STOPSIGNAL SIGTERM


FROM base AS loadtest
COPY --from=loadtest-packages /opt/loadtest /opt/loadtest
# The code as it is: what `tandem loadtest --url` imports of it needs the packages of the lock and no others.
COPY tandem /opt/loadtest/app/tandem
COPY models /opt/loadtest/app/models
COPY service /opt/loadtest/app/service
COPY deploy /opt/loadtest/app/deploy
COPY extras/__init__.py /opt/loadtest/app/extras/
COPY extras/loadtest /opt/loadtest/app/extras/loadtest
COPY extras/shared /opt/loadtest/app/extras/shared
ENV PATH=/opt/loadtest/bin:$PATH \
    PYTHONPATH=/opt/loadtest/app
USER 10001:10001
WORKDIR /tmp
ENTRYPOINT ["python", "-m", "tandem", "loadtest"]
# Last, so that a new revision builds nothing anew.
ARG VERSION=0.2.0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
ARG SOURCE=
ARG BASE_IMAGE
LABEL org.opencontainers.image.title="Tandem load test" \
      org.opencontainers.image.description="Latency over load of a server, with sentences, documents and bulk work" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"


FROM base AS service-cpu
# nothing of its own


FROM base AS service-gpu
# What the NVIDIA container runtime reads: which devices, and which parts of the driver.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
# The first GPU that it sees; where there is none the log says so, and the CPU computes.
ENV TANDEM_RUNTIME=torch TANDEM_DEVICE=auto


# --- the service ----------------------------------------------------------------------------------------------------
# A stage of this file, which has no tag:
# hadolint ignore=DL3006
FROM service-${VARIANT} AS service
# Folders of the volumes: a new named volume takes owner and permissions from here.
RUN install -d -o 10001 -g 10001 -m 0700 /var/lib/tandem \
    && install -d -o 10001 -g 10001 -m 0755 /srv/tandem/bundles \
    && install -d -o 10001 -g 10001 -m 0700 /srv/tandem/backups /srv/tandem/replicas
COPY --from=service-packages /opt/tandem /opt/tandem
COPY LICENSE deploy/docker/healthcheck.py deploy/docker/replica /opt/tandem/
COPY bundles /opt/tandem/bundles

ENV PATH=/opt/tandem/bin:$PATH \
    ORT_DISABLE_TELEMETRY=1 \
    TANDEM_HOST=0.0.0.0 \
    TANDEM_PORT=8000 \
    TANDEM_DATA=/var/lib/tandem \
    TANDEM_BUNDLES=/srv/tandem/bundles:/opt/tandem/bundles
USER 10001:10001
WORKDIR /var/lib/tandem
VOLUME ["/var/lib/tandem"]
EXPOSE 8000
# Ready, not only alive: this is what `docker compose up --wait` and `depends_on` wait for. Docker restarts nothing for
# being unhealthy; where something does, let it ask /healthz. The timeout is longer than that of the probe sentence.
HEALTHCHECK --interval=5s --timeout=15s --start-period=60s --retries=3 \
    CMD ["/usr/local/bin/python3", "-IS", "/opt/tandem/healthcheck.py"]
ENTRYPOINT ["tandem"]
CMD ["serve"]
# Last, so that a new revision builds nothing anew.
ARG VERSION=0.2.0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
ARG SOURCE=
ARG BASE_IMAGE
LABEL org.opencontainers.image.title="Tandem" \
      org.opencontainers.image.description="Self-hosted translation and summarization over HTTP, with the shipped models" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
