# A proxy with TLS and passwords in front of a node that has neither.
ARG BASE=python:3.12-slim
FROM ${BASE}
RUN apt-get update -qq && apt-get install -qq -y --no-install-recommends nginx-light >/dev/null
CMD ["nginx", "-g", "daemon off;"]
