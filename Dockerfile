# syntax=docker/dockerfile:1
# A static binary in an image without a shell's worth of attack surface beyond what tasks need.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked

# Workers run tasks with a shell, so the image has one; servers do not need it but share the image.
FROM debian:bookworm-slim
RUN useradd --system --uid 10001 --create-home jobq \
 && install -d -o jobq -g jobq /data
COPY --from=build /src/target/release/jobq /usr/local/bin/jobq
USER 10001
WORKDIR /data
VOLUME /data
ENV JOBQ_STORAGE=sqlite:/data/jobq-data
# Healthy while the storage answers.
HEALTHCHECK --interval=30s --timeout=10s CMD ["jobq", "list", "--limit", "1"]
ENTRYPOINT ["jobq"]
CMD ["serve"]
