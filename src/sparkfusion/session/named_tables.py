"""The tables that a statement names, found by DataFusion's own parser."""

from __future__ import annotations

from datafusion import SessionConfig, SessionContext
from datafusion.catalog import CatalogProvider, CatalogProviderList, SchemaProvider, Table

from sparkfusion.session.sql_names import Name

_UNSAID = "sparkfusion: not in the text"


def find_table_names(text: str) -> list[Name]:
    """The names of tables in a statement, each once, without those of its own CTEs.

    DataFusion looks every name up before it plans. The context knows no table, so planning fails and nothing runs.

    >>> sorted(find_table_names('with c as (select 1) select * from T, db."U", c where x in (select y from cat.db.v)'))
    [('cat', 'db', 'v'), ('db', 'U'), ('t',)]
    """
    asked = dict[Name, None]()
    config = SessionConfig().with_default_catalog_and_schema(_UNSAID, _UNSAID).with_information_schema(enabled=False)
    context = SessionContext(config)
    context.register_catalog_provider_list(_Catalogs(asked))
    try:
        context.sql(text)
    except BaseException as error:  # native code panics with a BaseException
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
    return [tuple(part for part in name if part != _UNSAID) for name in asked]


class _Catalogs(CatalogProviderList):
    """Has every catalog that it is asked for."""

    def __init__(self, asked: dict[Name, None]) -> None:
        self._asked = asked

    def catalog_names(self) -> set[str]:
        return set()

    def catalog(self, name: str) -> CatalogProvider:
        return _Catalog(self._asked, name)


class _Catalog(CatalogProvider):
    def __init__(self, asked: dict[Name, None], name: str) -> None:
        self._asked = asked
        self._name = name

    def schema_names(self) -> set[str]:
        return set()

    def schema(self, name: str) -> SchemaProvider:  # type: ignore[override]
        return _Schema(self._asked, (self._name, name))


class _Schema(SchemaProvider):
    """Has no table, and remembers for which it was asked."""

    def __init__(self, asked: dict[Name, None], name: Name) -> None:
        self._asked = asked
        self._name = name

    @property
    def table_names(self) -> list[str]:  # type: ignore[override]
        return []

    def table(self, name: str) -> Table | None:
        self._asked[(*self._name, name)] = None
        return None

    def table_exist(self, name: str) -> bool:
        return False
