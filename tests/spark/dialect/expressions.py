"""Expressions, each a query `select <expression> from <table>`. Spark computes those of a group in one query."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """Expressions over one table, with semicolons between them; `where` leaves out rows where one would fail."""

    table: str
    text: str
    where: str = "true"

    @property
    def expressions(self) -> list[str]:
        return [" ".join(each.split()) for each in self.text.split(";")]


GROUPS = {
    "arithmetic": Group(
        "numbers",
        r"""
            i / j; i div j; i % j; mod(i, j); pmod(i, j); i / 2; 7 / i; d / 2; f / 2; l / j; -i;
            - d; -m; +i; -(-5); - -i; null / 0;
            i * 1; i - j; j + s; s + s; s * s; i + l; l - 1; l * 2; f + i; f + l; f + d; f * f; d * i; d % 2;
            i + 1.5; i * 0.5; try_divide(i, 0); try_divide(m, j); negative(i); i & j; i | j; i ^ j; ~i; i << 2;
            i >> 1; 1 + 2 * 3 - 4 / 2; (1 + 2) * 3; i + null; i - j - 1; '12' + i; pmod(-7, 3);
            pmod(7, -3); -7 % 3; -7 div 2; 1e3 + i; 2L * i; 1S + 1Y
        """,
        "id <> 5 and id <> 4 and i <> 0",
    ),
    "decimals": Group(
        "numbers",
        r"""
            m + n; m - n; m * n; m / n; m % n; m + 1; m / 2; m * i; m / 3; m + 1.5; m * d; m + d; m / d; m - 0.001;
            1.0 / 3; 10 / 3.0; m * m * m; n * n * n; cast(m as decimal(3, 1));
            cast(m as decimal(30, 10)) * cast(n as decimal(20, 10)); cast(m as decimal(38, 10)) / 7; m = 1.25;
            cast(m as decimal(38, 18)) * cast(n as decimal(38, 18)); cast(m as decimal(38, 18)) + 1; m > d; m = d;
            round(m, 1); round(m); round(n, 2); round(n, 5); ceil(m); floor(m); abs(m); m between 1 and 2;
            coalesce(m, n); coalesce(m, i); coalesce(m, d); greatest(m, n, 2); case when b then m else 1 end;
            sign(m); m in (1.25, 2.5, 3); if(b, m, n); -m; m <=> n; m is null
        """,
        "id not in (4, 5) and d <> 0",
    ),
    "rounding and mathematics": Group(
        "numbers",
        r"""
            round(d); round(d, 1); round(1.255D, 2); round(2.5D); round(-2.5D); round(f); round(i); round(2.5);
            round(-2.5); ceil(d); floor(d); ceil(f); ceil(i); floor(l); ceiling(-0.5D); abs(i); abs(d); sqrt(d);
            sqrt(16); cbrt(27); exp(1); ln(d); log(d); log10(100); log2(8); log(2, 8); log(2, i); power(2, i);
            pow(d, 2); sin(d); cos(d); tan(f); asin(f); atan(d); atan2(d, 2); sinh(f); tanh(d); degrees(d);
            radians(d); signum(d); sign(i); pi(); e(); isnan(d); nanvl(d, 1); greatest(i, j); least(i, j, 2);
            greatest(d, i); bin(i); hex(i); bit_count(i); factorial(5)
        """,
        "id not in (4, 5)",
    ),
    "comparisons and choices": Group(
        "numbers",
        r"""
            i = j; i == j; i <> j; i != j; i < j; i >= j; i <=> j; i <=> null; not (i = j); !b; not b; b and i > 0;
            b or i > 0; b is null; b is not null; b is true; b is not true; b = true; i = f; i = d; l > i;
            i in (7, 3, null); i not in (7, 3); i in ('7', '3'); i between 0 and 5; i not between 0 and 5;
            i between '0' and '5'; nvl(i, j); nvl2(i, 1, 2); ifnull(i, 0); coalesce(i, j, 0); nullif(i, 7);
            if(i > 0, 'a', 'b'); if(b, i, d); case i when 7 then 'seven' else 'other' end;
            case when i > 0 then 1 when i < 0 then -1 end; case when b then 1 else 2.5 end; isnull(i);
            isnotnull(i); zeroifnull(i); coalesce(f, i); coalesce(null, i); i is distinct from j; i = '7'; '7' = i;
            d = '1.5'; null; true; 1; 2.5; 1e2; 'x'; coalesce(i, l)
        """,
        "id <> 4",
    ),
    "casts": Group(
        "numbers",
        r"""
            cast(i as bigint); cast(i as double); cast(i as string); cast(i as decimal(12, 2)); cast(i as boolean);
            cast(i as float); cast(d as int); cast(d as bigint); cast(d as decimal(10, 1)); cast(d as float);
            cast(f as double); cast(1.005D as decimal(10, 2)); cast(m as int); cast(m as double);
            cast(m as string); cast(m as decimal(10, 1)); cast(b as int); cast(b as string); cast(l as string);
            int(d); string(i); double(i); boolean(i); i :: bigint; cast(' 12 ' as int); cast('1.5' as double);
            cast('1e3' as double); cast('t' as boolean); cast(' No ' as boolean); cast('1.255' as decimal(4, 2));
            cast('-7' as smallint); cast('2020-1-5' as date); cast('2020-01-05 10:11:12' as timestamp);
            cast('2020-01-05' as timestamp); try_cast('abc' as int); try_cast('12' as int); try_cast('1.5' as int);
            try_cast(l as smallint); try_cast('x' as boolean); try_cast('bad' as date);
            try_cast('1.5' as decimal(4, 1)); cast(null as int); cast('abc' as binary); cast(1 as tinyint);
            cast(array(1, 2) as array<bigint>)
        """,
        "id not in (4, 5)",
    ),
    "strings": Group(
        "texts",
        r"""
            upper(s); lower(s); length(s); char_length(s); octet_length(s); bit_length(s); trim(s); ltrim(s);
            rtrim(s); trim(both 'l' from t); trim(leading 'h' from s); trim(trailing 'o' from s); btrim(s, ' p');
            s || t; s || k; concat(s, t, 'x'); concat(s, k); concat(); concat_ws('-', s, t, 'z'); concat_ws(',');
            concat_ws(t, 'a', 'b'); substring(s, k, 2); substring(s, 0, 2); substring(s, -3, 2);
            substring(s, -10, 7); substring(s, k); substr(s, 2); substr(s from 2 for 3); substring('hello', 2, -1);
            left(s, 2); left(s, k); right(s, 2); right(s, k); instr(s, t); locate(t, s); locate('l', s, 4);
            locate('l', s, k); position('l' in s); position('l', s, 4); instr(s, ''); replace(s, 'l', 'L');
            replace(s, 'l'); replace(s, t, '_'); replace('abc', '', 'x'); translate(s, 'lo', '01');
            translate(s, 'lo', '0'); repeat(t, k); repeat('ab', 2); space(2); reverse(s); lpad(s, 7, 'xy');
            lpad(s, 3, 'x'); rpad(s, 7); lpad(s, k, ''); rpad(s, -1, 'x'); ascii(s); ascii(t); startswith(s, 'he');
            endswith(s, t); contains(s, 'l')
        """,
    ),
    "more of strings": Group(
        "texts",
        r"""
            split(w, ','); split(w, '\\.'); split(w, '[.]'); split_part(w, ',', 2); split_part(w, ',', -1);
            split_part(w, ',', 9); substring_index(w, ',', 2); substring_index(w, ',', -1); find_in_set('b', w);
            levenshtein(s, w); soundex('Miller'); md5(s); sha1(s); sha2(s, 256); crc32(s); hex(s); unhex('4A');
            base64(s); s like 'h%'; s like '%ü%'; s like '_ello'; s not like 'h%'; w like 'a\\_b'; s ilike 'HE%';
            w like 'a!_b%' escape '!'; s like any ('h%', 'x'); s like all ('h%', '%o'); s rlike 'l+';
            s rlike '^h.*o$'; regexp_like(s, '[a-z]{5}'); s regexp 'ü'; s not rlike 'l';
            regexp_replace(w, '[0-9]+', '#'); regexp_replace(w, '([a-z])([0-9])', '$2$1');
            regexp_replace(w, ',', ''); regexp_extract(w, '([a-z])([0-9]+)', 2);
            regexp_extract(w, '([a-z])([0-9]+)'); regexp_extract(w, '[0-9]+', 0); regexp_extract(w, '(q)', 1);
            regexp_count(w, '[a-z]'); regexp_replace(s, '\\w', '*'); s rlike '\\d'; w rlike '\\.'; s = 'hello';
            s > 'a'; s in ('hello', ''); s = ''; num + 1; num = 12; num * 2.5; cast(num as int); coalesce(s, t);
            nvl(s, 'none'); greatest(s, t); 'it''s'; 'a\nb'; "double"; "a\"b"; r'a\nb'; 'a' 'b'; '\u00e9'; `s`; S;
            texts.s; Texts.`S`
        """,
    ),
    "dates": Group(
        "days",
        r"""
            year(day); month(day); day(day); dayofmonth(day); quarter(day); dayofyear(day); dayofweek(day);
            weekday(day); weekofyear(day); hour(at); minute(at); second(at); year(at); extract(year from day);
            extract(dow from day); extract(week from at); extract(hour from at); date_part('month', day);
            date_add(day, 1); date_add(day, n); date_sub(day, n); day + 1; day - n; 1 + day; datediff(day, other);
            date_diff(other, day); add_months(day, 1); add_months(day, n); add_months(day, -1); last_day(day);
            next_day(day, 'MO'); next_day(day, 'friday'); trunc(day, 'MM'); trunc(day, 'year'); trunc(day, 'week');
            trunc(day, 'quarter'); date_trunc('month', at); date_trunc('HOUR', at); date_trunc('week', at);
            date_trunc('day', day); day + interval 1 month; day - interval 1 year; day + interval 3 days;
            day + interval '2' week; at + interval 1 hour; at - interval 90 minutes; at + interval 1 month;
            day + interval 5 hours; interval 1 day + day; at - timestamp '2000-01-01 00:00:00'; day - other;
            day > '2000-01-01'; day = other; at > '2000-01-01'; at >= timestamp '2000-01-01 00:00:00';
            day between '1900-01-01' and '1970-01-01'; day < at; date '2024-01-31'; date '1969-12-31' + 1;
            timestamp '2024-01-31 10:11:12.5'
        """,
    ),
    "patterns and conversions of dates": Group(
        "days",
        r"""
            cast(at as string); cast(day as string); cast(at as date); cast(day as timestamp); date(at);
            date_format(at, 'yyyy-MM-dd HH:mm:ss'); date_format(at, 'yy/M/d h:mm a'); date_format(at, 'EEEE, MMM');
            date_format(day, 'yyyyMM'); date_format(at, 'yyyy\'T\'SSS'); date_format(at, 'D');
            date_format(day, 'E MMMM'); to_date('2020-01-05'); to_date('05/01/2020', 'dd/MM/yyyy');
            to_date(cast(day as string), 'yyyy-MM-dd'); to_date(at); to_timestamp('2020-01-05 10:11:12');
            to_timestamp('2020-01-05 10:11', 'yyyy-MM-dd HH:mm');
            to_timestamp(date_format(at, 'yyyyMMddHHmmss'), 'yyyyMMddHHmmss'); unix_timestamp(at); unix_date(day);
            unix_seconds(at); unix_micros(at); from_unixtime(0); from_unixtime(n, 'yyyy HH'); timestamp_seconds(n);
            timestamp_millis(n); timestamp_micros(n); make_date(2020, 2, 29); date_from_unix_date(n);
            concat(day, '!'); coalesce(day, at); if(day is null, at, day); greatest(day, other); concat(at, '')
        """,
    ),
    "arrays": Group(
        "nested",
        r"""
            size(a); cardinality(a); array_size(words); array(1, 2, 3); array(1, 2.5); array(id, null);
            array('a', 'b'); array(1, 2)[0]; element_at(array(1, 2), -1);
            try_element_at(a, 1); try_element_at(a, -1); try_element_at(a, 9); get(a, 0); get(a, 3); get(a, -1);
            array_contains(a, 1); array_contains(a, 9); array_contains(words, 'ü'); array_position(a, 1);
            array_position(a, 9); array_distinct(a); sort_array(a); sort_array(a, false); array_sort(a);
            array_max(a); array_min(a); array_remove(a, 5); array_compact(a); reverse(a); slice(a, 1, 2);
            slice(a, 2, 2); array_append(a, 9); array_prepend(a, 0); array_join(words, '-');
            array_join(words, '-', '?'); array_except(a, array(1)); a is null; array(array(1), array(2, 3))[1];
            sort_array(array_union(a, array(1, 9))); a = array(5, 5); sort_array(array_intersect(a, array(1, 5)));
            case when size(a) > 0 then a[0] end
        """,
        "id <> 99",
    ),
    "maps and structs": Group(
        "nested",
        r"""
            m['k']; m['q']; m.k; element_at(m, 'k'); element_at(m, 'q'); size(m); map_keys(m); map_values(m);
            map_contains_key(m, 'k'); map('a', 1, 'b', 2)['b']; map(1, 'a')[2]; st.x; st.y; ST.X; nested.st.x;
            st['x']; st.x + 1; named_struct('p', 1, 'q', 'a'); named_struct('p', 1).p; struct(id, 1 as one).one;
            struct(id, st.y); st is null; st.x is null; upper(st.y); map('a', id)
        """,
    ),
}
