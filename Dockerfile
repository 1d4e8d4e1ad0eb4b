# The service, `rankad serve`, for a container that may write nowhere but to /tmp and to its volume:
#
#   make dist && docker build --tag rankad .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
#     --volume ./data:/data --publish 8000:8000 rankad \
#     serve pump.rankad --host 0.0.0.0 --keys keys --history history.sqlite
#
# docs/service.md, "In a container", says what belongs into the folder data.

ARG PYTHON=3.13-slim-trixie

FROM python:${PYTHON} AS build
COPY dist/rankad-*.whl /wheels/
COPY docker/compile.py /wheels/
# Loops are compiled here, once, into a folder that the service copies when it starts. numba and Python compare times
# of files, of which layers of images keep whole seconds alone.
ENV NUMBA_CACHE_DIR=/opt/rankad/numba
RUN python -m venv /opt/rankad \
 && /opt/rankad/bin/pip install --no-cache-dir --no-compile --disable-pip-version-check \
    "rankad[serve,postgres] @ file://$(echo /wheels/rankad-*.whl)" \
 && find /opt/rankad -name '*.py' -exec touch --date=@1577836800 {} + \
 && /opt/rankad/bin/python -m compileall -q /opt/rankad/lib \
 && /opt/rankad/bin/python /wheels/compile.py \
 && /opt/rankad/bin/pip uninstall --yes --quiet pip

FROM python:${PYTHON}
LABEL org.opencontainers.image.title="rankad" \
      org.opencontainers.image.description="Anomaly detection with a false-alarm rate you choose" \
      org.opencontainers.image.licenses="BSD-3-Clause"
RUN groupadd --system --gid 10001 rankad \
 && useradd --system --uid 10001 --gid rankad --no-create-home --home-dir /nonexistent \
    --shell /usr/sbin/nologin rankad \
 && install --directory --owner rankad --group rankad /data
COPY --from=build /opt/rankad /opt/rankad
COPY docker/start.sh docker/healthcheck.py /opt/rankad/
ENV PATH=/opt/rankad/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CACHE_DIR=/tmp/numba
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
  CMD ["python", "/opt/rankad/healthcheck.py"]
ENTRYPOINT ["sh", "/opt/rankad/start.sh"]
CMD ["serve", "--help"]
