"""Rolling back: a name on a server leads to the index before again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from arag_search.engines.opensearch.address import is_address, parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.site import OpenSearchSite
from index_jobs.build.targets import for_a_server_only


@dataclass(frozen=True, slots=True)
class RollbackReport:
    """The index that a name leads to now, and the one ``before``, which is kept."""

    location: str
    generation: str
    before: str
    created: str
    documents: int
    chunks: int
    fingerprint: str

    def to_json(self) -> str:
        """Return the report as one line of JSON."""
        return json.dumps(asdict(self))

    def to_text(self) -> str:
        """Return the report in words."""
        return (
            f"Rolled back {self.location} to the index of {self.created}: {self.documents:,}"
            f" documents in {self.chunks:,} chunks.\nlive: {self.generation}\nkept: {self.before}"
        )


def roll_back(location: str) -> RollbackReport:
    """Make the newest index that is older than the live one the one that is searched, in one call.

    Open sessions keep the index that they opened. Raises ArgumentError for a folder,
    IndexNotFoundError where none is kept, IndexDamagedError for one that is not whole, BuildError
    where somebody else switched meanwhile, and what a cluster raises.
    """
    if not is_address(location):
        why = "keeps no index before: it is deleted when no reader holds it"
        raise for_a_server_only("--rollback", why, location)
    address = parse_address(location)
    client = Client.connect(address)
    try:
        done = OpenSearchSite(client, address.name, str(address), overwrite=True).roll_back()
    finally:
        client.close()
    return RollbackReport(
        location=location,
        generation=done.now,
        before=done.before,
        created=done.manifest.created,
        documents=done.manifest.documents,
        chunks=done.manifest.chunks,
        fingerprint=done.manifest.fingerprint,
    )
