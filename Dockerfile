# The artifact in a container; it calls make targets only. docs/ARTIFACT.md says how to use it and how to read results.
#
#   docker build -t dp-workbench .
#   docker run --rm -v "$PWD/reproduced:/workbench/results" dp-workbench                # make reproduce
#   docker run --rm dp-workbench make test
FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /workbench
COPY . .
RUN make install
CMD ["make", "reproduce"]
