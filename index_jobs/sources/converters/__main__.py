"""The process that converts files: ``python -m index_jobs.sources.converters SECONDS BYTES``."""

import sys

from index_jobs.sources.converters.child import main

main(float(sys.argv[1]), int(sys.argv[2]))
