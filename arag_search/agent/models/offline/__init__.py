"""The offline model: a rule-based reader, the baseline that any real model must beat."""

from arag_search.agent.models.offline.model import RULES, OfflineModel

__all__ = ["RULES", "OfflineModel"]
