"""Ready-made feeds, for `Session.register_feed`: files, row groups, pages of an HTTP API, items, table formats."""

from sparkfusion.feed.ready.delta import DeltaFiles
from sparkfusion.feed.ready.files import Files
from sparkfusion.feed.ready.http_pages import HttpPages
from sparkfusion.feed.ready.iceberg import IcebergFiles
from sparkfusion.feed.ready.items import Items
from sparkfusion.feed.ready.paging import Cursor, LinkHeader, NextLink, Offset, PageNumber
from sparkfusion.feed.ready.row_groups import RowGroups
from sparkfusion.feed.ready.walk import ListedFile

__all__ = [
    "Cursor",
    "DeltaFiles",
    "Files",
    "HttpPages",
    "IcebergFiles",
    "Items",
    "LinkHeader",
    "ListedFile",
    "NextLink",
    "Offset",
    "PageNumber",
    "RowGroups",
]
