"""Plans of trees that tests construct, without the text of a query."""

from __future__ import annotations

from collections.abc import Iterable

from arag_search.plan.clauses import ResolvedPlan
from arag_search.plan.lower import lower, lower_scope
from arag_search.query.tree import Modifier, Node
from tests.support.oracle.engine import LANGUAGE


def planned(tree: Node) -> ResolvedPlan:
    """Return the plan of a tree, whose words match in their normal forms. The oracle runs one with
    patterns too; for other engines these are resolved first."""
    return ResolvedPlan(lower(tree, LANGUAGE))


def written(tree: Node) -> ResolvedPlan:
    """Return the plan of a tree whose words match as they are written."""
    return ResolvedPlan(lower(tree))


def scoped(scope: Iterable[Node | Modifier] | None) -> ResolvedPlan | None:
    """Return the plan of a scope."""
    return None if scope is None else lower_scope(scope, LANGUAGE)
