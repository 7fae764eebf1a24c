"""The process that converts files, with its limits and the id of its parent:
``python -m index_jobs.sources.converters SECONDS BYTES PARENT``."""

import sys

from index_jobs.sources.converters.child import main

main(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
