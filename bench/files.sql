-- Statements over files, and the same over tables; "name@engine: text" for one engine. `{data}` is the directory of
-- wide.parquet and wide.csv, `{flights}` the file of flights, `{out}` a path without extension for each engine.
-- Results of names that begin with "df" or "arrow" are taken as such frames, all others as rows in Python.
csv count: SELECT count(*) FROM '{data}/wide.csv'
csv count@polars: pl.scan_csv("{data}/wide.csv").select(pl.len())
csv sum of one column: SELECT sum(x) FROM '{data}/wide.csv'
csv sum of one column@polars: pl.scan_csv("{data}/wide.csv").select(pl.sum("x"))
csv sums of all numbers: SELECT sum(k), sum(key), sum(g), sum(price), sum(x), max(day), max(ts) FROM '{data}/wide.csv'
csv sums of all numbers@polars: pl.scan_csv("{data}/wide.csv", try_parse_dates=True).select(pl.sum("k", "key", "g", "price", "x"), pl.max("day", "ts"))
csv group by text: SELECT tag, count(*), sum(x) FROM '{data}/wide.csv' GROUP BY tag
csv group by text@polars: pl.scan_csv("{data}/wide.csv").group_by("tag").agg(pl.len(), pl.sum("x"))
csv load: CREATE OR REPLACE TABLE loaded AS SELECT * FROM '{data}/wide.csv'
csv load@polars: (loaded := pl.read_csv("{data}/wide.csv", try_parse_dates=True)).lazy().select(pl.len())
csv write: COPY wide TO '{out}.csv'
csv write@polars: wide.sink_csv("{out}.csv", lazy=True)
parquet load: CREATE OR REPLACE TABLE loaded AS SELECT * FROM '{data}/wide.parquet'
parquet load@polars: (loaded := pl.read_parquet("{data}/wide.parquet")).lazy().select(pl.len())
parquet write, each one's default: COPY wide TO '{out}.parquet'
parquet write, each one's default@polars: wide.sink_parquet("{out}.parquet", lazy=True)
parquet write, zstd: COPY wide TO '{out}.parquet' (COMPRESSION zstd)
parquet write, zstd@polars: wide.sink_parquet("{out}.parquet", compression="zstd", lazy=True)
parquet write, snappy: COPY wide TO '{out}.parquet' (COMPRESSION snappy)
parquet write, snappy@polars: wide.sink_parquet("{out}.parquet", compression="snappy", lazy=True)
parquet narrow sum: SELECT sum(x) FROM '{data}/wide.parquet'
parquet narrow sum@polars: pl.scan_parquet("{data}/wide.parquet").select(pl.sum("x"))
parquet max of text: SELECT max(note) FROM '{data}/wide.parquet'
parquet max of text@polars: pl.scan_parquet("{data}/wide.parquet").select(pl.max("note"))
parquet group by 1000 numbers: SELECT g, count(*), sum(x), max(price) FROM '{data}/wide.parquet' GROUP BY g
parquet group by 1000 numbers@polars: pl.scan_parquet("{data}/wide.parquet").group_by("g").agg(pl.len(), pl.sum("x"), pl.max("price"))
parquet group by text: SELECT tag, count(*), sum(x) FROM '{data}/wide.parquet' GROUP BY tag
parquet group by text@polars: pl.scan_parquet("{data}/wide.parquet").group_by("tag").agg(pl.len(), pl.sum("x"))
parquet group by many texts: SELECT count(*), max(n) FROM (SELECT name, count(*) AS n FROM '{data}/wide.parquet' GROUP BY name) t
parquet group by many texts@polars: pl.scan_parquet("{data}/wide.parquet").group_by("name").agg(n=pl.len()).select(pl.len(), pl.max("n"))
parquet all where key = ten rows: SELECT * FROM '{data}/wide.parquet' WHERE key = 4711
parquet all where key = ten rows@polars: pl.scan_parquet("{data}/wide.parquet").filter(pl.col("key") == 4711)
parquet all where text = one row: SELECT * FROM '{data}/wide.parquet' WHERE note = 'note 4711 of the table'
parquet all where text = one row@polars: pl.scan_parquet("{data}/wide.parquet").filter(pl.col("note") == "note 4711 of the table")
parquet all where sorted day =: SELECT count(note), sum(x) FROM '{data}/wide.parquet' WHERE day = DATE '2015-06-01'
parquet all where sorted day =@polars: pl.scan_parquet("{data}/wide.parquet").filter(pl.col("day") == pl.date(2015, 6, 1)).select(pl.count("note"), pl.sum("x"))
parquet top 10 of all columns: SELECT * FROM '{data}/wide.parquet' ORDER BY x LIMIT 10
parquet top 10 of all columns@polars: pl.scan_parquet("{data}/wide.parquet").bottom_k(10, by="x")
table narrow sum: SELECT sum(x) FROM wide
table narrow sum@polars: wide.select(pl.sum("x"))
table max of text: SELECT max(note) FROM wide
table max of text@polars: wide.select(pl.max("note"))
table group by 1000 numbers: SELECT g, count(*), sum(x), max(price) FROM wide GROUP BY g
table group by 1000 numbers@polars: wide.group_by("g").agg(pl.len(), pl.sum("x"), pl.max("price"))
table group by text: SELECT tag, count(*), sum(x) FROM wide GROUP BY tag
table group by text@polars: wide.group_by("tag").agg(pl.len(), pl.sum("x"))
table group by many texts: SELECT count(*), max(n) FROM (SELECT name, count(*) AS n FROM wide GROUP BY name) t
table group by many texts@polars: wide.group_by("name").agg(n=pl.len()).select(pl.len(), pl.max("n"))
table all where key = ten rows: SELECT * FROM wide WHERE key = 4711
table all where key = ten rows@polars: wide.filter(pl.col("key") == 4711)
table all where text = one row: SELECT * FROM wide WHERE note = 'note 4711 of the table'
table all where text = one row@polars: wide.filter(pl.col("note") == "note 4711 of the table")
table top 10 of all columns: SELECT * FROM wide ORDER BY x LIMIT 10
table top 10 of all columns@polars: wide.bottom_k(10, by="x")
flights by carrier: SELECT carrier, count(*), avg(dep_delay) FROM '{flights}' GROUP BY carrier
flights by carrier@polars: pl.scan_parquet("{flights}").group_by("carrier").agg(pl.len(), pl.mean("dep_delay"))
flights all of a plane: SELECT * FROM '{flights}' WHERE tailnum = 'N14228'
flights all of a plane@polars: pl.scan_parquet("{flights}").filter(pl.col("tailnum") == "N14228")
flights 10 latest: SELECT * FROM '{flights}' ORDER BY arr_delay DESC NULLS LAST LIMIT 10
flights 10 latest@polars: pl.scan_parquet("{flights}").top_k(10, by="arr_delay")
df of integers and doubles: SELECT k, x FROM wide
arrow of integers and doubles: SELECT k, x FROM wide
df of 1 M decimals: SELECT price FROM wide LIMIT 1000000
arrow of 1 M decimals: SELECT price FROM wide LIMIT 1000000
df of 1 M intervals: SELECT INTERVAL '1 second' * key AS i FROM wide LIMIT 1000000
arrow of 1 M intervals: SELECT INTERVAL '1 second' * key AS i FROM wide LIMIT 1000000
df of 1 M timestamps: SELECT ts FROM wide LIMIT 1000000
arrow of 1 M timestamps: SELECT ts FROM wide LIMIT 1000000
df of texts: SELECT note FROM wide
arrow of texts: SELECT note FROM wide
df of texts that repeat: SELECT tag FROM wide
arrow of texts that repeat: SELECT tag FROM wide
df of 1 M lists: SELECT [key, g] AS l FROM wide LIMIT 1000000
arrow of 1 M lists: SELECT [key, g] AS l FROM wide LIMIT 1000000
df of 1 M structs: SELECT struct_pack(a := key, b := tag) AS s FROM wide LIMIT 1000000
arrow of 1 M structs: SELECT struct_pack(a := key, b := tag) AS s FROM wide LIMIT 1000000
