"""The entry point of the stand-in: a node with the settings of the environment.

As in the official image, a variable whose name is a setting (lower-case words with dots) becomes
that setting, ``OPENSEARCH_JAVA_OPTS`` are flags of Java, and files are in /usr/share/opensearch.
Settings of the security plugin, which a node without it rejects, are left out.
"""

import os
import re
from pathlib import Path

from bench import nodes

HOME = Path("/usr/share/opensearch")


def main() -> None:
    named = {
        name: value
        for name, value in os.environ.items()
        if re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)+", name)
        and value
        and not name.startswith("plugins.security.")
    }
    settings = {
        "network.host": "0.0.0.0",
        "http.port": "9200",
        "transport.port": "9300",
        "discovery.type": "zen",
        **named,
    }
    flags = os.environ.get("OPENSEARCH_JAVA_OPTS", "").split()
    nodes.prepare(HOME, settings, nodes.HEAP, nodes.SHORT_LIVED, *flags)
    nodes.run(HOME, owned=False)


if __name__ == "__main__":
    main()
