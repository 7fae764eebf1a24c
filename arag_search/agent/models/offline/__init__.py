"""The offline model: a rule-based reader, and the floor that any real model must beat."""

from arag_search.agent.models.offline.model import RULES, OfflineModel

__all__ = ["RULES", "OfflineModel"]
