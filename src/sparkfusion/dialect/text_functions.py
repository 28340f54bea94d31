"""Spark's functions of strings."""

from __future__ import annotations

import re

import pyarrow as pa

from sparkfusion.dialect.conversions import convert
from sparkfusion.dialect.function_forms import Form, Special, expect, prepare
from sparkfusion.dialect.java_regex import checked_pattern, checked_replacement, count_groups
from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.typed_sql import Typed
from sparkfusion.dialect.value_types import STRING, kind_of

_INT = pa.int32()
_COUNT = "case when {1} > 0 then cast({1} as bigint) when {1} <= 0 then 0 end"
_LOCATE = (
    "case when {0} is null or {1} is null then null when {2} is null or {2} < 1 then 0 "
    "when strpos(substr({1}, {2}), {0}) = 0 then 0 "
    "else strpos(substr({1}, {2}), {0}) + {2} - 1 end"
)


def _part(side: str) -> Form:
    """`left` and `right`: empty if the number is not positive."""
    taken = f"{side}({{0}}, cast({{1}} as bigint))"
    empty = "when {0} is not null and {1} is not null then ''"
    return Form(f"case when {{1}} > 0 then {taken} {empty} end", "si", STRING)


TEXT_FORMS: dict[str, tuple[Form, ...]] = {
    "upper": (Form("upper({0})", "s", STRING),),
    "ucase": (Form("upper({0})", "s", STRING),),
    "lower": (Form("lower({0})", "s", STRING),),
    "lcase": (Form("lower({0})", "s", STRING),),
    "length": (Form("character_length({0})", "s", _INT, cast=True),),
    "len": (Form("character_length({0})", "s", _INT, cast=True),),
    "char_length": (Form("character_length({0})", "s", _INT, cast=True),),
    "character_length": (Form("character_length({0})", "s", _INT, cast=True),),
    "octet_length": (Form("octet_length({0})", "s", _INT, cast=True),),
    "bit_length": (Form("bit_length({0})", "s", _INT, cast=True),),
    "trim": (Form("btrim({0}, ' ')", "s", STRING),),
    "btrim": (Form("btrim({0}, ' ')", "s", STRING), Form("btrim({0}, {1})", "ss", STRING)),
    "ltrim": (Form("ltrim({0}, ' ')", "s", STRING), Form("ltrim({1}, {0})", "ss", STRING)),
    "rtrim": (Form("rtrim({0}, ' ')", "s", STRING), Form("rtrim({1}, {0})", "ss", STRING)),
    "left": (_part("left"),),
    "right": (_part("right"),),
    "instr": (Form("strpos({0}, {1})", "ss", _INT, cast=True),),
    "locate": (
        Form("strpos({1}, {0})", "ss", _INT, cast=True),
        Form(_LOCATE, "ssl", _INT, cast=True),
    ),
    "position": (
        Form("strpos({1}, {0})", "ss", _INT, cast=True),
        Form(_LOCATE, "ssl", _INT, cast=True),
    ),
    "replace": (
        Form("case when {1} = '' then {0} else replace({0}, {1}, '') end", "ss", STRING),
        Form("case when {1} = '' and {2} is not null then {0} else replace({0}, {1}, {2}) end", "sss", STRING),
    ),
    "translate": (Form("translate({0}, {1}, {2})", "sss", STRING),),
    "repeat": (Form("repeat({0}, " + _COUNT + ")", "si", STRING),),
    "space": (Form("repeat(' ', case when {0} > 0 then cast({0} as bigint) when {0} <= 0 then 0 end)", "i", STRING),),
    "ascii": (Form("ascii({0})", "s", _INT, cast=True),),
    "lpad": (
        Form("lpad({0}, " + _COUNT + ", ' ')", "si", STRING),
        Form("lpad({0}, " + _COUNT + ", {2})", "sis", STRING),
    ),
    "rpad": (
        Form("rpad({0}, " + _COUNT + ", ' ')", "si", STRING),
        Form("rpad({0}, " + _COUNT + ", {2})", "sis", STRING),
    ),
    "split_part": (Form("split_part({0}, {1}, cast({2} as bigint))", "ssi", STRING),),
    "substring_index": (Form("substring_index({0}, {1}, cast({2} as bigint))", "ssi", STRING),),
    "startswith": (Form("starts_with({0}, {1})", "ss", pa.bool_()),),
    "endswith": (Form("ends_with({0}, {1})", "ss", pa.bool_()),),
    "contains": (Form("contains({0}, {1})", "ss", pa.bool_()),),
    "find_in_set": (Form("find_in_set({0}, {1})", "ss", _INT, cast=True),),
    "levenshtein": (Form("levenshtein({0}, {1})", "ss", _INT, cast=True),),
    "md5": (Form("md5({0})", "s", STRING),),
    "sha2": (Form("sha2({0}, {1})", "si", STRING),),
    "sha1": (Form("sha1({0})", "s", STRING),),
    "sha": (Form("sha1({0})", "s", STRING),),
    "crc32": (Form("crc32({0})", "s", pa.int64(), cast=True),),
    "base64": (Form("base64(cast({0} as bytea))", "s", STRING),),
    "unhex": (Form("unhex({0})", "s", pa.binary()),),
    "soundex": (Form("soundex({0})", "s", STRING),),
}


def _substring(arguments: list[Typed]) -> Typed:
    """`substring`: position 0 counts as 1, and negative positions count from the end. The part before the beginning is
    cut off."""
    expect("substring", arguments, 2, 3)
    text = prepare(arguments[0], "s", "substring").sql
    begin = f"cast({prepare(arguments[1], 'i', 'substring').sql} as bigint)"
    size = f"cast(character_length({text}) as bigint)"
    start = f"case when {begin} > 0 then {begin} when {begin} = 0 then 1 else {size} + {begin} + 1 end"
    if len(arguments) == 2:
        return Typed(f"case when {begin} is not null then substr({text}, greatest({start}, 1)) end", STRING)
    length = f"cast({prepare(arguments[2], 'i', 'substring').sql} as bigint)"
    end = f"({start}) + {length}"
    kept = f"greatest({end} - greatest({start}, 1), 0)"
    known = f"{begin} is not null and {length} is not null"
    return Typed(f"case when {known} then substr({text}, greatest({start}, 1), {kept}) end", STRING)


def _concat(arguments: list[Typed]) -> Typed:
    if not arguments:
        return Typed("''", STRING)
    if any(kind_of(each.type) == "array" for each in arguments):
        raise refuse("concat of arrays", "DataFusion's leaves NULL arrays out, Spark's gives NULL")
    texts = [prepare(each, "s", "concat").sql for each in arguments]
    return Typed(f"({' || '.join(texts)})", STRING)


def _concat_ws(arguments: list[Typed]) -> Typed:
    if not arguments:
        raise wrong("concat_ws takes a separator and strings")
    if any(kind_of(each.type) == "array" for each in arguments):
        raise refuse("concat_ws of arrays", "DataFusion has no equivalent", "use array_join")
    separator, *texts = (prepare(each, "s", "concat_ws").sql for each in arguments)
    if not texts:
        return Typed(f"case when {separator} is not null then '' end", STRING)
    return Typed(f"concat_ws({separator}, {', '.join(texts)})", STRING)


def _split(arguments: list[Typed]) -> Typed:
    """`split`: Spark splits at a regular expression, DataFusion at a text. Only expressions that are plain texts are
    accepted."""
    expect("split", arguments, 2)
    text, pattern = prepare(arguments[0], "s", "split"), arguments[1].value
    plain = re.sub(r"\\([^0-9A-Za-z])|\[([^\\^\]])\]", r"\1\2", pattern) if isinstance(pattern, str) else None
    unescaped = re.sub(r"\\[^0-9A-Za-z]|\[[^\\^\]]\]", "", str(pattern))
    if not plain or re.search(r"[\\.\[\]{}()*+?^$|]", unescaped):
        raise refuse("split at a regular expression", "DataFusion splits only at plain strings")
    at = "'" + plain.replace("'", "''") + "'"
    empty = f"case when {text.sql} = '' then make_array('')"
    return Typed(f"{empty} else string_to_array({text.sql}, {at}) end", pa.list_(STRING))


def _regexp_replace(arguments: list[Typed]) -> Typed:
    expect("regexp_replace", arguments, 3)
    text = prepare(arguments[0], "s", "regexp_replace").sql
    pattern = checked_pattern(arguments[1], "regexp_replace")
    new = checked_replacement(arguments[2].value, "regexp_replace").replace("'", "''")
    return Typed(f"regexp_replace({text}, {pattern.sql}, '{new}', 'g')", STRING)


def _regexp_extract(arguments: list[Typed]) -> Typed:
    """`regexp_extract`: a group of the first match; an empty string if there is no match."""
    expect("regexp_extract", arguments, 2, 3)
    text = prepare(arguments[0], "s", "regexp_extract").sql
    group = arguments[2].value if len(arguments) == 3 else 1
    pattern = checked_pattern(arguments[1], "regexp_extract")
    if not isinstance(group, int) or not 0 <= group <= count_groups(str(pattern.value)):
        raise wrong(f"regexp_extract has no group {group}", "the pattern has fewer groups")
    whole = "'(" + str(pattern.value).replace("'", "''") + ")'"
    found = f"array_element(regexp_match({text}, {whole}), {group + 1})"
    return Typed(f"case when {text} is not null then coalesce({found}, '') end", STRING)


def _regexp_like(arguments: list[Typed]) -> Typed:
    expect("regexp_like", arguments, 2)
    text = prepare(arguments[0], "s", "regexp_like").sql
    return Typed(f"regexp_like({text}, {checked_pattern(arguments[1], 'RLIKE', finds=True).sql})", pa.bool_())


def _regexp_count(arguments: list[Typed]) -> Typed:
    expect("regexp_count", arguments, 2)
    text = prepare(arguments[0], "s", "regexp_count").sql
    counted = f"regexp_count({text}, {checked_pattern(arguments[1], 'regexp_count').sql})"
    return Typed(f"cast(case when {text} is not null then {counted} end as int)", _INT)


def _reverse(arguments: list[Typed]) -> Typed:
    expect("reverse", arguments, 1)
    if kind_of(arguments[0].type) == "array":
        return Typed(f"array_reverse({arguments[0].sql})", arguments[0].type)
    return Typed(f"reverse({convert(arguments[0], STRING).sql})", STRING)


TEXT_SPECIALS: dict[str, Special] = {
    "substring": _substring,
    "substr": _substring,
    "concat": _concat,
    "concat_ws": _concat_ws,
    "split": _split,
    "regexp_replace": _regexp_replace,
    "regexp_extract": _regexp_extract,
    "regexp_like": _regexp_like,
    "regexp": _regexp_like,
    "rlike": _regexp_like,
    "regexp_count": _regexp_count,
    "reverse": _reverse,
}
