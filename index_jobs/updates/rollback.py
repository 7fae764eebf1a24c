"""Rolling back: making a name on a server refer to the previous index again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from arag_search.engines.opensearch.address import is_address, parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.site import OpenSearchSite
from index_jobs.build.report import Report
from index_jobs.build.targets import server_only


@dataclass(frozen=True, slots=True)
class RollbackReport(Report):
    """The index that a name refers to now, and the one ``before`` the rollback, which is kept."""

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
    """Replace the live index by the newest older one, atomically.

    Open sessions keep the index that they opened. Raises ArgumentError for a folder,
    IndexNotFoundError if no older index is kept, IndexDamagedError if it is incomplete, BuildError
    if another process switches the name in the meantime, and what a cluster raises.
    """
    if not is_address(location):
        why = "keeps no previous index: it is deleted when no reader holds it"
        raise server_only("--rollback", why, location)
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
