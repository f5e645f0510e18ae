-- Ordinary statements over TPC-H's tables: one a line, "name: sql". A second line "name@duckdb: sql" is that engine's way
-- to say the same.
filter: SELECT count(*) FROM lineitem WHERE l_quantity < 10 AND l_discount > 0.05
sums: SELECT sum(l_quantity), sum(l_extendedprice), sum(l_tax) FROM lineitem
case: SELECT sum(CASE WHEN l_quantity > 25 THEN l_extendedprice ELSE 0 END) FROM lineitem
group by two short texts: SELECT l_shipmode, l_shipinstruct, count(*) FROM lineitem GROUP BY 1, 2
group by 1.5 M numbers: SELECT l_orderkey, sum(l_quantity) s FROM lineitem GROUP BY 1 ORDER BY s DESC, 1 LIMIT 5
group by 4.5 M texts: SELECT l_comment, count(*) c FROM lineitem GROUP BY 1 ORDER BY c DESC, 1 LIMIT 5
group by month: SELECT date_trunc('month', l_shipdate) m, count(*) FROM lineitem GROUP BY 1 ORDER BY 1
count distinct numbers: SELECT count(DISTINCT l_orderkey) FROM lineitem
count distinct texts: SELECT count(DISTINCT l_comment) FROM lineitem
count distinct by group: SELECT l_returnflag, count(DISTINCT l_partkey), sum(l_quantity), count(*) FROM lineitem GROUP BY 1
two count distincts: SELECT count(DISTINCT l_partkey), count(DISTINCT l_suppkey) FROM lineitem
median by group: SELECT l_suppkey, median(l_extendedprice) m FROM lineitem GROUP BY 1 ORDER BY m, 1 LIMIT 3
stddev: SELECT l_returnflag, stddev(l_extendedprice) FROM lineitem GROUP BY 1
largest text: SELECT max(l_comment), min(l_shipmode) FROM lineitem
string functions: SELECT count(*), max(upper(substr(l_comment, 1, 10))) FROM lineitem
like: SELECT count(*) FROM lineitem WHERE l_comment LIKE '%special%requests%'
regular expression: SELECT count(*) FROM orders WHERE regexp_like(o_comment, 'spec[a-z]+ req')
regular expression@duckdb: SELECT count(*) FROM orders WHERE regexp_matches(o_comment, 'spec[a-z]+ req')
sort two numbers: SELECT count(*) FROM (SELECT l_orderkey, l_extendedprice FROM lineitem ORDER BY l_extendedprice, l_orderkey OFFSET 1)
sort all columns: SELECT max(l_comment) FROM (SELECT * FROM lineitem ORDER BY l_shipdate, l_extendedprice OFFSET 1)
sort by text: SELECT max(l_orderkey) FROM (SELECT l_comment, l_orderkey FROM lineitem ORDER BY l_comment OFFSET 1)
top 10 of all columns: SELECT * FROM lineitem ORDER BY l_extendedprice DESC, l_orderkey LIMIT 10
join on a key: SELECT count(*) FROM lineitem JOIN orders ON l_orderkey = o_orderkey WHERE o_totalprice > l_extendedprice
join many to many on two keys: SELECT sum(a.l_quantity * b.l_quantity) FROM lineitem a JOIN lineitem b ON a.l_partkey = b.l_partkey AND a.l_suppkey = b.l_suppkey
join on text: SELECT count(*) FROM orders a JOIN orders b ON a.o_comment = b.o_comment
full join: SELECT count(*) FROM orders FULL JOIN customer ON o_custkey = c_custkey
join on an inequality: SELECT count(*) FROM supplier a JOIN supplier b ON a.s_acctbal < b.s_acctbal
semi join: SELECT count(*) FROM orders WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem WHERE l_quantity > 49)
except: SELECT count(*) FROM (SELECT l_orderkey FROM lineitem EXCEPT SELECT o_orderkey FROM orders WHERE o_orderstatus = 'F')
union: SELECT count(*) FROM (SELECT l_partkey FROM lineitem UNION SELECT ps_partkey FROM partsupp)
figures of one join: SELECT (SELECT count(*) FROM lineitem, orders WHERE l_orderkey = o_orderkey AND l_quantity < 30 AND o_orderpriority = '1-URGENT'), (SELECT count(*) FROM lineitem, orders WHERE l_orderkey = o_orderkey AND l_quantity < 30 AND o_orderpriority = '2-HIGH'), (SELECT count(*) FROM lineitem, orders WHERE l_orderkey = o_orderkey AND l_quantity < 30 AND o_orderpriority = '3-MEDIUM'), (SELECT count(*) FROM lineitem, orders WHERE l_orderkey = o_orderkey AND l_quantity < 30 AND o_orderpriority = '5-LOW')
conditions with NULLs: SELECT count(*) FROM lineitem WHERE (nullif(l_quantity, 7) < 10 AND nullif(l_tax, 0.05) > 0.03) OR (nullif(l_linenumber, 3) > 4 AND nullif(l_discount, 0.02) < 0.05)
index: CREATE INDEX IF NOT EXISTS orders_by_customer ON orders (o_custkey)
rows by index: SELECT * FROM orders WHERE o_custkey = 7777
one row by key: SELECT * FROM orders WHERE o_orderkey = 1234567
fetch 1.5 M rows: SELECT o_orderkey, o_totalprice FROM orders
aggregate a Parquet file: SELECT l_returnflag, sum(l_quantity) FROM '{data}/lineitem.parquet' GROUP BY 1
prune a Parquet file: SELECT count(*) FROM '{data}/lineitem.parquet' WHERE l_orderkey BETWEEN 1000 AND 2000
copy a table: CREATE OR REPLACE TABLE copied AS SELECT * FROM lineitem
write Parquet: COPY lineitem TO '{out}.parquet'
write CSV: COPY lineitem TO '{out}.csv'
read CSV: SELECT count(*), sum(l_extendedprice) FROM '{out}.csv'
