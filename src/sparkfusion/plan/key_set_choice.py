"""Which key sets pay: the sources whose keys are computed first, and the scans that they reduce.

See docs/adr/0027-key-sets-reduce-large-scans.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkfusion.plan.column_lineage import (
    Relation,
    RelationColumn,
    Transfer,
    base_node,
    base_scan,
    group_columns,
    has_filter,
    is_filtered_aggregate,
)
from sparkfusion.plan.join_rows import JoinRows, rows_of
from sparkfusion.plan.scan_statistics import most_filter_keys, most_values, projected_bytes, row_count, scanned_column
from sparkfusion.plan.sizing import calls_python
from sparkfusion.plan.wire import PlanNode, encode, file_scan_conf, kind, walk

_LARGER = 2
"""A target must have this many times the rows of its source, and read this many times the bytes. The source is read
twice, for its keys and for its rows."""
_WORTH_A_STAGE = 4
"""A target must read this many times `least_bytes` if its source is read only for the keys. Measured with TPC-H at
scale 1, where targets read 20 to 60 MB: a stage for such keys costs about what it saves."""
_MUCH_LARGER = 8
"""A target must read this many times the bytes of its source if its only gain is to decode fewer rows. The number of
keys is known only when the source has been read."""
_MULTIPLIED = 8
"""A join must make this many rows of each row of a target, on average, so that a target pays that reads little."""
_UNIQUE = 2
"""A key may occur this many times in a source. If keys occur more often, a filter on the source's rows keeps most
keys."""


@dataclass(frozen=True)
class KeySetPolicy:
    """When key sets are used.

    Attributes:
        least_bytes: scans that read less are not reduced; scans that read less than four times as much only by filtered
            aggregates.
        forced: use key sets wherever the answer stays the same, whatever they cost. For tests.
        shuffles: whether repartitioned rows are shuffled between tasks; otherwise one task keeps them in memory.
        many_rows: scans that read less are reduced too if a join makes so many rows of theirs. Two cores make about 20
            million rows a second.
    """

    least_bytes: int
    forced: bool = False
    shuffles: bool = True
    many_rows: int = 50_000_000


def may_pay(root: PlanNode, policy: KeySetPolicy) -> bool:
    """Whether key sets may pay in a plan: a quick check before the search. The search asks DataFusion for the schema of
    each scan and aggregate, which takes longer than planning a small query."""
    nodes = list(walk(root))
    if not any(kind(node) == "hash_join" for node in nodes):
        return False
    largest = max((projected_bytes(conf) for node in nodes if (conf := file_scan_conf(node)) is not None), default=0)
    if policy.forced or largest >= policy.least_bytes * _WORTH_A_STAGE:
        return True
    if largest >= policy.least_bytes and any(map(is_filtered_aggregate, nodes)):
        return True
    return JoinRows(root).multiplies(policy.many_rows, _MULTIPLIED)


class KeySetChoice:
    """Chooses the transfers that are used. Relations are sources in the order of their size, the smallest first."""

    def __init__(self, transfers: list[Transfer], policy: KeySetPolicy, joined: JoinRows) -> None:
        self._policy = policy
        self._joined = joined
        relations = dict.fromkeys(each for t in transfers for each in (t.source.relation, t.target.relation))
        self._bytes = {each: _bytes_read(each) for each in relations}
        self._ranks = {each: rank for rank, each in enumerate(sorted(relations, key=self._order))}
        self._selective = {each: policy.forced or has_filter(each) for each in relations}
        self._at_once = [t for t in transfers if not t.saves and self._is_large(t.target.relation)]
        self._usable = [t for t in transfers if self._may_use(t)]
        self._incoming = {each: self._reductions_of(each) for each in sorted(relations, key=self._ranks.__getitem__)}
        found = [t for t in self._usable if self._pays(t)]
        self._chosen = frozenset(found)  # asked again while the plan is changed, when its scans cannot be looked at
        sources = self._sources_for(found)
        self.reductions = [t for t in found if t.target.relation.inside not in sources]
        self.sources = [each for each in self._sources_for(self.reductions) if each in sources]

    def reductions_before(self, relation: Relation) -> list[Transfer]:
        """The transfers that reduce a relation before its own keys are computed; for an aggregate, those that reduce
        its scans."""
        if not relation.aggregate:
            return self._incoming[relation]
        inner = [each for each in self._incoming if each.inside is relation]
        return [t for each in inner for t in self._incoming[each] if t in self._chosen]

    def only_filters(self, transfer: Transfer) -> bool:
        """Whether the target only gains that it decodes fewer rows, because its next costly operator is the join with
        the source."""
        return not transfer.saves and self._is_large(transfer.target.relation)

    def most_keys(self, relation: Relation) -> int | None:
        """The most keys of a source with which the scans that only decode fewer rows still gain; None if there are no
        such scans."""
        found = [t for t in self.reductions if t.source.relation is relation and self.only_filters(t)]
        return min((_most_filter_keys(t.target) for t in found), default=None)

    def filtered_keys(self, relation: Relation) -> int:
        """The most keys of a source that any of its scans filters by while it decodes."""
        found = [t for t in self.reductions if t.source.relation is relation]
        return max((_most_filter_keys(t.target) for t in found), default=0)

    def used_columns(self, relation: Relation) -> list[int]:
        """The columns of a source that key sets are made of."""
        used = [t for source in self.sources for t in self.reductions_before(source)] + self.reductions
        return sorted({t.source.column for t in used if t.source.relation is relation})

    def _order(self, relation: Relation) -> tuple[int, bool]:
        return self._bytes[relation], relation.aggregate

    def _may_use(self, transfer: Transfer) -> bool:
        if calls_python(encode(transfer.source.relation.node)):
            return False
        return self._policy.forced or _is_nearly_unique(transfer.source)

    def _reductions_of(self, relation: Relation) -> list[Transfer]:
        """The transfers from smaller, selective sources to a relation. Called in the order of sizes, because a reduced
        relation becomes selective itself."""
        rank = self._ranks[relation]
        found = [t for t in self._usable if t.target.relation is relation]
        found = [t for t in found if self._ranks[t.source.relation] < rank and self._selective[t.source.relation]]
        self._selective[relation] = self._selective[relation] or bool(found)
        return found

    def _is_large(self, relation: Relation) -> bool:
        return self._bytes[relation] >= self._policy.least_bytes * _WORTH_A_STAGE

    def _pays(self, transfer: Transfer) -> bool:
        source, target = transfer.source.relation, transfer.target.relation
        if self._policy.forced:
            return self._ranks[source] < self._ranks[target] or source.aggregate
        if not self._selective[source]:
            return False
        if source.aggregate:
            return transfer.saves and self._bytes[target] >= self._policy.least_bytes
        if transfer.saves and self._is_multiplied(target, source):
            return True
        if self._reduces_at_once(target):
            return self._ranks[source] < self._ranks[target]
        if not transfer.saves:
            much_larger = self._bytes[source] * _MUCH_LARGER <= self._bytes[target]
            return much_larger and self._is_large(target) and _most_filter_keys(transfer.target) > 0
        if not self._is_large(target) or self._is_reduced_at_once(target, source):
            return False
        return _is_larger(self._bytes[target], self._bytes[source]) and _has_more_rows(target, source)

    def _is_multiplied(self, target: Relation, source: Relation) -> bool:
        """Whether a join makes many rows of each row of a scan, before these rows meet the source. So a row that is
        left out saves many."""
        if target.aggregate:
            return False
        scan, other = base_node(target), base_node(source)
        least = max(self._policy.many_rows, _MULTIPLIED * rows_of(scan), _LARGER * rows_of(other))
        return self._joined.before(scan, other) >= least

    def _reduces_at_once(self, relation: Relation) -> bool:
        """Whether the first join of a large scan is with this small relation. Reducing the relation costs little, and
        fewer rows of the scan then pass the join."""
        return not self._is_large(relation) and any(t.source.relation is relation for t in self._at_once)

    def _is_reduced_at_once(self, target: Relation, source: Relation) -> bool:
        """Whether the first join of a scan is with a smaller selective relation. That join leaves few rows, so checking
        the keys of all rows in the scan costs more than it saves."""
        first = [t.source.relation for t in self._at_once if t.target.relation is target]
        return any(self._selective[each] and self._bytes[each] <= self._bytes[source] for each in first)

    def _sources_for(self, found: list[Transfer]) -> list[Relation]:
        """The sources of these reductions, and the sources that reduce those, in the order in which they run."""
        needed: dict[Relation, None] = {}
        waiting = [t.source.relation for t in found]
        while waiting:
            relation = waiting.pop()
            if relation not in needed:
                needed[relation] = None
                waiting += [t.source.relation for t in self.reductions_before(relation)]
        return sorted(needed, key=self._ranks.__getitem__)


def _bytes_read(relation: Relation) -> int:
    """The bytes that the largest scan of a relation reads."""
    scans = [conf for node in walk(relation.node) if (conf := file_scan_conf(node)) is not None]
    return max(map(projected_bytes, scans), default=0)


def _is_larger(target: int, source: int) -> bool:
    return source * _LARGER <= target


def _has_more_rows(target: Relation, source: Relation) -> bool:
    """Whether the target's files have more rows, however many columns are read. So a table is never the source for
    itself."""
    rows, fewer = row_count(base_scan(target)), row_count(base_scan(source))
    return rows is not None and fewer is not None and _is_larger(rows, fewer)


def values_of(relation: Relation, column: int) -> int | None:
    """How many different values a column of a source has at most, without its filters; None if that is not known."""
    scanned = None if relation.aggregate else scanned_column(relation.node, column)
    return None if scanned is None else most_values(base_scan(relation), scanned)


def _most_filter_keys(target: RelationColumn) -> int:
    """The most keys that a scan of Parquet files may filter by while it decodes; 0 if it cannot."""
    if target.relation.aggregate:
        return 0
    scan, scanned = base_node(target.relation), scanned_column(target.relation.node, target.column)
    if kind(scan) != "parquet_scan" or scanned is None:
        return 0
    return most_filter_keys(scan.parquet_scan.base_conf, scanned)


def _is_nearly_unique(key: RelationColumn) -> bool:
    """Whether few rows of a source have the same key, so that a filter on its rows leaves few keys."""
    if key.relation.aggregate:
        return group_columns(key.relation) == [key.column]
    values, rows = values_of(key.relation, key.column), row_count(base_scan(key.relation))
    return values is not None and rows is not None and values * _UNIQUE >= rows
