# The service. It owns one DuckDB file under /data and needs no other state.
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/unstrand
COPY locks/runtime.txt locks/runtime.txt
RUN /opt/unstrand/bin/pip install --no-cache-dir --require-hashes -r locks/runtime.txt
COPY . .
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir hatchling==1.33.0 \
 && /opt/build/bin/python -m hatchling build -t wheel -d /tmp/wheel \
 && /opt/unstrand/bin/pip install --no-cache-dir --no-deps /tmp/wheel/unstrand-*.whl

FROM python:3.12-slim-bookworm
RUN useradd --uid 10001 --create-home unstrand && install -d -o unstrand /data
COPY --from=build /opt/unstrand /opt/unstrand
ENV PATH=/opt/unstrand/bin:$PATH UNSTRAND_DB=/data/unstrand.duckdb HOME=/tmp
USER 10001
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=15s --timeout=3s --start-period=30s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/healthz', timeout=2)"]
ENTRYPOINT ["unstrand"]
CMD ["up"]
