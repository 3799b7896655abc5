# Weir in a container: docker run --rm weir compare reno cubic --rate 10mbit --rtt 40ms
FROM python:3.13-slim AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends build-essential curl ca-certificates \
    && curl -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
ENV PATH="/root/.cargo/bin:$PATH"
COPY . /weir
WORKDIR /weir
RUN pip wheel --no-deps --wheel-dir /dist .

FROM python:3.13-slim
COPY --from=build /dist /dist
RUN pip install --no-cache-dir --no-compile /dist/*.whl && rm -r /dist && useradd --create-home weir
USER weir
WORKDIR /home/weir
ENTRYPOINT ["weir"]
CMD ["--help"]
