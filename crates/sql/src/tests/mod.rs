//! Whole statements against a small catalog: what can be bound, to which plan, and which errors the rest
//! gives.

mod alter;
mod change;
mod definition;

use crate::{Catalog, ROW_ID, Sequence, Statement, bind, parse};
use entasis_engine::common_subplans::decorrelated;
use entasis_engine::plan::{AggregateFunction, JoinKind, Node, Plan, SetKind};
use entasis_engine::relation::{
    Check, ColumnDefault, Definition, ForeignKey, Key, KeyKind, Place, ReferentialAction, Relation,
};
use entasis_functions::Argument;
use entasis_vector::expr::{ArithmeticOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, ErrorKind, Field, Result, Schema, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// TPC-H's tables without NULLs, `t` with a nullable column of every kind, `u` like it, a view and a file.
struct Tables;

const TABLES: [(&str, &str); 13] = [
    ("region", "r_regionkey:int r_name:text r_comment:text"),
    ("nation", "n_nationkey:int n_name:text n_regionkey:int n_comment:text"),
    (
        "customer",
        "c_custkey:int c_name:text c_address:text c_nationkey:int c_phone:text c_acctbal:dec c_mktsegment:text \
         c_comment:text",
    ),
    (
        "supplier",
        "s_suppkey:int s_name:text s_address:text s_nationkey:int s_phone:text s_acctbal:dec s_comment:text",
    ),
    (
        "part",
        "p_partkey:int p_name:text p_mfgr:text p_brand:text p_type:text p_size:int p_container:text \
         p_retailprice:dec p_comment:text",
    ),
    ("partsupp", "ps_partkey:int ps_suppkey:int ps_availqty:int ps_supplycost:dec ps_comment:text"),
    (
        "orders",
        "o_orderkey:int o_custkey:int o_orderstatus:text o_totalprice:dec o_orderdate:date o_orderpriority:text \
         o_clerk:text o_shippriority:int o_comment:text",
    ),
    (
        "lineitem",
        "l_orderkey:int l_partkey:int l_suppkey:int l_linenumber:int l_quantity:dec l_extendedprice:dec \
         l_discount:dec l_tax:dec l_returnflag:text l_linestatus:text l_shipdate:date l_commitdate:date \
         l_receiptdate:date l_shipinstruct:text l_shipmode:text l_comment:text",
    ),
    ("t", "a:int? b:big? s:text? d:date? x:dbl? n:dec? ts:ts? ok:bool? id:uuid? bin:blob? span:span?"),
    ("u", "a:int? b:big? s:text? d:date? Mixed:int?"),
    // A primary key from a sequence, a unique key, defaults and a check.
    ("w", "id:int a:int? b:big? S:text? made:ts?"),
    // Refers to w.
    ("c", "x:int? w_id:int?"),
    // A primary key of two columns; always generated.
    ("g", "p:big q:int r:text?"),
];

fn key(name: &str, columns: &[usize], kind: KeyKind) -> Key {
    Key { name: name.into(), columns: columns.to_vec(), kind }
}

fn identity(sequence: &str, always: bool) -> ColumnDefault {
    ColumnDefault::Identity { sequence: sequence.into(), always }
}

fn definition_of(name: &str) -> Option<Definition> {
    Some(match name {
        "w" => Definition {
            defaults: vec![
                identity("w_id_seq", false),
                ColumnDefault::Expression("7".into()),
                ColumnDefault::Null,
                ColumnDefault::Expression("'a' || 'b'".into()),
                ColumnDefault::Expression("now()".into()),
            ],
            keys: vec![key("w_pkey", &[0], KeyKind::Primary), key("w_b_key", &[2], KeyKind::Unique)],
            checks: vec![
                Check { name: "w_a_check".into(), sql: "a > 0".into() },
                Check { name: "w_check".into(), sql: "b <> a OR s = 'x'".into() },
            ],
            ..Definition::default()
        },
        "c" => Definition {
            foreign_keys: vec![ForeignKey {
                name: "c_w_id_fkey".into(),
                columns: vec![1],
                table: "w".into(),
                references: vec![0],
                on_delete: ReferentialAction::NoAction,
                on_update: ReferentialAction::NoAction,
            }],
            ..Definition::default()
        },
        "g" => Definition {
            defaults: vec![identity("s", true)],
            keys: vec![key("g_pkey", &[0, 1], KeyKind::Primary), key("g_r_idx", &[2], KeyKind::Index)],
            ..Definition::default()
        },
        _ if TABLES.iter().any(|(table, _)| *table == name) => Definition::default(),
        _ => return None,
    })
}

#[derive(Debug)]
struct Counter;

impl Sequence for Counter {
    fn next(&self) -> Result<i64> {
        Ok(1)
    }
    fn current(&self) -> Result<i64> {
        Ok(1)
    }
}

fn table(name: &str) -> Option<Arc<dyn Relation>> {
    let (name, columns) = TABLES.iter().find(|(n, _)| *n == name)?;
    let schema = columns.split_whitespace().map(|column| {
        let (name, ty) = column.split_once(':').expect("name:type");
        let field = match ty.trim_end_matches('?') {
            "int" => DataType::Int32,
            "big" => DataType::Int64,
            "text" => DataType::Varchar,
            "dec" => DataType::Decimal { precision: 15, scale: 2 },
            "date" => DataType::Date,
            "dbl" => DataType::Float64,
            "ts" => DataType::Timestamp,
            "bool" => DataType::Boolean,
            "uuid" => DataType::Uuid,
            "blob" => DataType::Blob,
            _ => DataType::Interval,
        };
        Field { name: name.into(), ty: field, nullable: ty.ends_with('?') }
    });
    Some(Arc::new(Place { name: name.to_string(), schema: schema.collect() }))
}

impl Catalog for Tables {
    fn table(&self, name: &str) -> Option<Arc<dyn Relation>> {
        table(name)
    }
    fn table_with_row_ids(&self, name: &str) -> Option<Arc<dyn Relation>> {
        let mut schema = table(name)?.schema().clone();
        schema.push(Field { name: ROW_ID.into(), ty: DataType::UInt64, nullable: false });
        Some(Arc::new(Place { name: name.into(), schema }))
    }
    fn definition(&self, name: &str) -> Option<Arc<Definition>> {
        definition_of(name).map(Arc::new)
    }
    fn sequence(&self, name: &str) -> Option<Arc<dyn Sequence>> {
        ["s", "w_id_seq"].contains(&name).then(|| Arc::new(Counter) as Arc<dyn Sequence>)
    }
    fn view(&self, name: &str) -> Option<String> {
        match name {
            "v" => Some("SELECT a + 1 AS next, s FROM t EXCEPT SELECT b, s FROM u".into()),
            "endless" => Some("SELECT * FROM endless".into()),
            _ => None,
        }
    }
    fn file(&self, path: &str) -> Result<Arc<dyn Relation>> {
        match path {
            "dir/flights.parquet" => Ok(table("u").expect("there")),
            _ => Err(Error::new(ErrorKind::Io, format!("{path}: no such file"))),
        }
    }
    fn copied_file(&self, _: &str, targets: &[Field], _: &[(String, Value)]) -> Result<Arc<dyn Relation>> {
        Ok(Arc::new(Place { name: "file".into(), schema: targets.to_vec() }))
    }
    fn table_function(&self, name: &str, args: &[(Option<String>, Argument)]) -> Result<Arc<dyn Relation>> {
        match (name, args) {
            (
                "read_csv",
                [
                    (None, Argument::Value(Value::Text(_), _)),
                    (Some(option), Argument::Value(Value::Text(_), _)),
                    (_, Argument::Value(Value::Boolean(true), _)),
                ],
            ) if option == "delim" => Ok(table("u").expect("there")),
            ("read_csv", [(None, Argument::List(files)), (Some(option), Argument::Struct(fields))])
                if files.len() == 2 && option == "types" && fields[0].0 == "A b" =>
            {
                Ok(table("u").expect("there"))
            }
            ("range", [(None, Argument::Value(Value::Integer(-3), DataType::Int64))]) => {
                Ok(table("u").expect("there"))
            }
            _ => Err(Error::input(format!("there is no table function {name}{args:?}"))),
        }
    }
    fn names(&self) -> Vec<String> {
        TABLES.iter().map(|(name, _)| name.to_string()).chain(["v".to_string()]).collect()
    }
    fn table_functions(&self) -> Vec<String> {
        vec!["read_csv".into(), "range".into()]
    }
    fn setting(&self, name: &str) -> Option<String> {
        (name == "threads").then(|| "2".into())
    }
}

fn try_bind(sql: &str) -> Result<Statement> {
    try_bind_with(sql, &[])
}

fn try_bind_with(sql: &str, params: &[(Value, DataType)]) -> Result<Statement> {
    let mut statements = parse(sql)?;
    assert_eq!(statements.len(), 1, "{sql}");
    bind(&statements.remove(0), &Tables, params)
}

/// The plan of a query, decorrelated and checked.
fn plan(sql: &str) -> Plan {
    match try_bind(sql) {
        Ok(Statement::Query(plan)) => {
            check(&plan, sql);
            decorrelated(plan).unwrap()
        }
        Ok(other) => panic!("{sql}: {other:?}"),
        Err(error) => panic!("{sql}: {error:?}"),
    }
}

fn refused(sql: &str) -> Error {
    match try_bind(sql) {
        Ok(statement) => panic!("{sql} binds: {statement:?}"),
        Err(error) => error,
    }
}

/// Checks that, decorrelated, every expression reads only columns of its inputs, with the right types; that
/// comparisons compare equal types; and that no column is produced twice.
fn check(plan: &Plan, sql: &str) {
    let plan = &decorrelated(plan.clone()).unwrap();
    let mut made = HashSet::new();
    check_node(&plan.root, plan, &mut made, sql);
    let root: HashSet<ColumnId> = plan.root.columns().into_iter().collect();
    for output in &plan.output {
        assert!(root.contains(&output.column), "{sql}: output {} is not there\n{plan:?}", output.name);
    }
}

fn check_node(node: &Node, plan: &Plan, made: &mut HashSet<ColumnId>, sql: &str) {
    let mut inputs: HashSet<ColumnId> = HashSet::new();
    for child in node.children() {
        check_node(child, plan, made, sql);
        inputs.extend(child.columns());
    }
    let mut make = |id: ColumnId| assert!(made.insert(id), "{sql}: {id} is made twice");
    let mut exprs: Vec<&Expr> = Vec::new();
    match node {
        Node::Dependent(_) | Node::Recursion(_) => panic!("{sql}: it is correlated still"),
        Node::Scan(scan) => scan.columns.iter().for_each(|(id, _)| make(*id)),
        Node::Values(values) => values.columns.iter().for_each(|id| make(*id)),
        Node::Filter(filter) => exprs.extend(&filter.predicates),
        Node::Project(project) => {
            project.exprs.iter().for_each(|(id, _)| make(*id));
            for (id, expr) in &project.exprs {
                assert_eq!(plan.columns.ty(*id), expr.ty(), "{sql}: {expr}");
            }
            exprs.extend(project.exprs.iter().map(|(_, e)| e));
        }
        Node::Unnest(unnest) => {
            unnest.lists.iter().for_each(|(id, _)| make(*id));
            exprs.extend(unnest.lists.iter().map(|(_, list)| list));
        }
        Node::Join(join) => {
            if let JoinKind::Mark { mark, .. } = join.kind {
                make(mark);
            }
            for key in &join.on {
                assert_eq!(key.left.ty(), key.right.ty(), "{sql}: {key:?}");
                assert!(reads(&key.left, &join.left.columns()), "{sql}: {key:?}");
                assert!(reads(&key.right, &join.right.columns()), "{sql}: {key:?}");
            }
            exprs.extend(join.on.iter().flat_map(|key| [&key.left, &key.right]));
            exprs.extend(&join.residual);
        }
        Node::Aggregate(aggregate) => {
            for (id, call) in &aggregate.aggregates {
                make(*id);
                exprs.extend(call.args.iter().chain(&call.filter));
            }
            aggregate.groups.iter().for_each(|(id, _)| make(*id));
            exprs.extend(aggregate.groups.iter().map(|(_, e)| e));
        }
        Node::Sort(sort) => exprs.extend(sort.keys.iter().map(|key| &key.expr)),
        Node::SetOperation(set) => {
            set.columns.iter().for_each(|id| make(*id));
            for (input, outputs) in &set.inputs {
                assert_eq!(outputs.len(), set.columns.len(), "{sql}");
                let there = input.columns();
                for (own, common) in outputs.iter().zip(&set.columns) {
                    assert!(there.contains(own), "{sql}: {own}");
                    assert_eq!(plan.columns.ty(*own), plan.columns.ty(*common), "{sql}");
                }
            }
        }
        Node::Window(window) => {
            window.calls.iter().for_each(|(id, _)| make(*id));
            exprs.extend(window.exprs());
        }
        Node::Distinct(_) | Node::Limit(_) => {}
    }
    for expr in exprs {
        let inputs: Vec<ColumnId> = inputs.iter().copied().collect();
        assert!(reads(expr, &inputs), "{sql}: {expr} reads what is not there");
        expr.visit(&mut |e| match e {
            Expr::Column { id, ty } => assert_eq!(plan.columns.ty(*id), *ty, "{sql}: {expr}"),
            Expr::Compare { left, right, .. } => assert_eq!(left.ty(), right.ty(), "{sql}: {expr}"),
            _ => {}
        });
    }
}

fn reads(expr: &Expr, columns: &[ColumnId]) -> bool {
    let mut read = Vec::new();
    expr.collect_columns(&mut read);
    read.iter().all(|id| columns.contains(id))
}

fn columns_of(name: &str) -> Vec<DataType> {
    table(name).expect("there").schema().iter().map(|field| field.ty).collect()
}

fn types(sql: &str) -> Vec<String> {
    plan(sql).schema().iter().map(|field| field.ty.to_string()).collect()
}

fn names(sql: &str) -> Vec<String> {
    plan(sql).output.iter().map(|output| output.name.clone()).collect()
}

/// The single value of a query that needs no row.
fn value(sql: &str) -> String {
    let plan = plan(&format!("SELECT {sql} AS v"));
    let Node::Project(project) = &plan.root else { panic!("{sql}: {plan:?}") };
    match &project.exprs[0].1 {
        Expr::Literal { value, ty } => format!("{} {ty}", value.display(*ty)),
        other => format!("{other}"),
    }
}

/// All nodes, parents first.
fn nodes(plan: &Plan) -> Vec<&Node> {
    fn walk<'a>(node: &'a Node, into: &mut Vec<&'a Node>) {
        into.push(node);
        node.children().into_iter().for_each(|child| walk(child, into));
    }
    let mut all = Vec::new();
    walk(&plan.root, &mut all);
    all
}

fn joins(sql: &str) -> Vec<JoinKind> {
    let plan = plan(sql);
    let joins = nodes(&plan).into_iter().filter_map(|node| match node {
        Node::Join(join) => Some(join.kind),
        _ => None,
    });
    joins.collect()
}

// ---- queries ----------------------------------------------------------------------------------------------

#[test]
fn the_22_queries_of_tpch_bind() {
    for number in 1..=22 {
        // The path is relative to the package, where Cargo runs tests: a compiled-in path would be that of
        // another clone with the same target directory.
        let path = format!("../../tests/tpch/queries/q{number:02}.sql");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        for statement in parse(&text).unwrap() {
            match bind(&statement, &Tables, &[]) {
                Ok(Statement::Query(plan)) => check(&plan, &path),
                Ok(_) => {}
                Err(error) => panic!("{path}: {error:?}"),
            }
        }
    }
}

#[test]
fn the_dialect_is_understood() {
    for sql in [
        "FROM t",
        "FROM t WHERE a > 1 ORDER BY b",
        "SELECT * FROM (FROM t) w",
        "FROM t SELECT a",
        "SELECT * EXCLUDE (a, b) FROM t",
        "SELECT * EXCLUDE a FROM t",
        "SELECT * REPLACE (a + 1 AS a) FROM t",
        "SELECT a::BIGINT, CAST(s AS DATE), TRY_CAST(s AS DOUBLE) FROM t",
        "SELECT d + INTERVAL '1' YEAR, d + INTERVAL 3 MONTHS, d - INTERVAL '1 day 2 hours' FROM t",
        "SELECT a FROM t ORDER BY a DESC NULLS FIRST LIMIT 3 OFFSET 2",
        "SELECT a FROM t ORDER BY ALL",
        "SELECT s, count(*) FROM t GROUP BY ALL",
        "SELECT a FROM t FETCH FIRST 3 ROWS ONLY",
        "SELECT X'AB', E'a\\n', '\\xAB'::BLOB, 'f47ac10b-58cc-4372-a567-0e02b2c3d479'::UUID",
        "SELECT DISTINCT ON (s) s, a FROM t ORDER BY s, a",
        "SELECT a, a, a + 1, a + 1 FROM t",
        "SELECT *, a FROM t",
        "SELECT t.a, u.a FROM t, u",
        "SELECT * FROM t JOIN u USING (a) NATURAL JOIN nation",
        "SELECT * FROM t LEFT JOIN u ON t.a = u.a AND t.b < u.b",
        "SELECT * FROM t SEMI JOIN u ON t.a = u.a",
        "SELECT * FROM t ANTI JOIN u USING (a)",
        "SELECT * FROM t FULL JOIN u ON t.a = u.a",
        "SELECT * FROM t CROSS JOIN u",
        "WITH w(k) AS (SELECT a FROM t) SELECT k FROM w WHERE k > 1",
        "VALUES (1, 'a'), (2, NULL)",
        "SELECT * FROM (VALUES (1, 2.5), (2, 3)) AS w(p, q)",
        "VALUES (1), (uuid()::VARCHAR::INT)",
        "SELECT sum(a) FILTER (WHERE ok), count(DISTINCT s), string_agg(s, ',' ORDER BY a) FROM t",
        "SELECT median(x), stddev(x), approx_distinct(s), bit_and(a), corr(x, b) FROM t",
        "SELECT quantile_cont(x, 0.5), percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM t",
        "SELECT first(a ORDER BY b), last(a ORDER BY b), any_value(s), bool_and(ok) FROM t",
        "SELECT CASE a WHEN 1 THEN 'x' WHEN NULL THEN NULL ELSE s END, CASE WHEN ok THEN 1 ELSE 2.5 END FROM t",
        "SELECT a IS DISTINCT FROM b, s LIKE 'a%' ESCAPE '!', s NOT ILIKE '%b', s ~ '^a', ok IS NOT TRUE FROM t",
        "SELECT s || a || NULL, -x, NOT ok, a BETWEEN 1 AND 3, a NOT IN (1, 2, NULL), +a FROM t",
        "SELECT year(d), extract(month FROM d), date_part('dow', ts), date_trunc('month', ts), epoch(ts) FROM t",
        "SELECT substring(s FROM 2 FOR 3), substr(s, 2), trim(s), position('a' IN s), length(s), upper(s) FROM t",
        "SELECT abs(n), floor(n), ceil(x), sqrt(a), round(n, 1), power(a, 2), a % 3, greatest(a, b), nullif(a, 0) FROM t",
        "SELECT coalesce(a, b, 0), ifnull(s, 'x'), strftime(ts, '%Y'), regexp_replace(s, 'a', 'b'), md5(s) FROM t",
        "SELECT now(), current_date, random(), today() FROM t",
        "SELECT id = 'f47ac10b-58cc-4372-a567-0e02b2c3d479', bin, span * 2, d - d, d + 1, ts - ts FROM t",
        "SELECT * FROM 'dir/flights.parquet' WHERE mixed > 1 AND flights.a = 2",
        "SELECT * FROM read_csv('x.csv', delim = '|', header := true)",
        "SELECT * FROM read_csv(['x.csv', 'y.csv'], types = {'A b': 'DATE', c: 'INT'})",
        "SELECT * FROM read_csv(['x.csv', 'y.csv'], types = MAP {'A b': 'DATE'})",
        "SELECT * FROM range(-3)",
        "SELECT next FROM v",
        "SELECT \"A\", T.B FROM \"T\"",
        "SELECT 1 WHERE 1 = 1",
        "SELECT a FROM t WHERE a > ALL (SELECT a FROM u) OR a = ANY (SELECT a FROM u)",
        "SELECT EXISTS (SELECT 1 FROM u WHERE u.a = t.a), a IN (SELECT a FROM u), (SELECT max(a) FROM u) FROM t",
        "SELECT a, s FROM t UNION SELECT b, s FROM u UNION ALL SELECT 1, NULL ORDER BY 1 LIMIT 2",
        "SELECT a FROM t HAVING count(*) > 1",
    ] {
        if let Err(error) = try_bind(sql) {
            assert!(sql.contains("HAVING"), "{sql}: {error:?}");
            continue;
        }
        plan(sql);
    }
}

#[test]
fn types_are_those_of_duckdb_and_postgresql() {
    let sql = "SELECT avg(n), sum(n), sum(a), sum(x), count(*), min(d), n / 2, a / 2, d - d, ts - ts, d + 1, n * n, \
               a + b, extract(year FROM d), epoch(ts), 1.5, 1, uuid() FROM t GROUP BY n, a, d, ts, b";
    let expected = [
        "DOUBLE",
        "DECIMAL(25,2)",
        "BIGINT",
        "DOUBLE",
        "BIGINT",
        "DATE",
        "DOUBLE",
        "INTEGER",
        "BIGINT",
        "INTERVAL",
        "DATE",
        "DECIMAL(30,4)",
        "BIGINT",
        "BIGINT",
        "DOUBLE",
        "DECIMAL(2,1)",
        "INTEGER",
        "UUID",
    ];
    assert_eq!(types(sql), expected);
}

#[test]
fn names_are_as_they_are_written() {
    assert_eq!(
        names("SELECT a, a + 1, count(*) AS \"N\", t.s FROM t GROUP BY a, s"),
        ["a", "a + 1", "N", "s"]
    );
    assert_eq!(names("SELECT Mixed, MIXED AS Other FROM u"), ["Mixed", "Other"]);
    assert_eq!(names("SELECT a, a FROM t"), ["a", "a"]);
    assert_eq!(names("SELECT * FROM (SELECT sum(a) FROM t)"), ["sum(a)"]);
    assert_eq!(names("SELECT t.a, u.a FROM t, u"), ["a", "a"]);
}

#[test]
fn constants_are_computed() {
    assert_eq!(value("date '1994-01-01' + interval '1' year"), "1995-01-01 00:00:00 TIMESTAMP");
    assert_eq!(value("date '1998-12-01' - interval '90' day"), "1998-09-02 00:00:00 TIMESTAMP");
    assert_eq!(value("1 + 2 * 3"), "7 INTEGER");
    assert_eq!(value("0.06 - 0.01"), "0.05 DECIMAL(3,2)");
    assert!(value("lower(upper('x') || 'Y')").contains("lower"));
    assert_eq!(value("md5('a')"), "0cc175b9c0f1b6a831c399e269772661 VARCHAR");
    assert_eq!(value("'12'::INT + 1"), "13 INTEGER");
    assert_eq!(value("1 = 1 AND NULL IS NULL"), "true BOOLEAN");
    assert!(value("9223372036854775807 + 1").contains('+'), "overflow is the engine's to raise");
    assert!(value("1 / 0").contains('/'));
    assert_eq!(value("18446744073709551616"), "18446744073709551616 DECIMAL(20,0)");
}

#[test]
fn a_comparison_is_made_in_the_type_of_the_column() {
    let plan = plan(
        "SELECT a FROM t WHERE n < 24 AND a = 5 AND a IN (1, 2) AND n BETWEEN 0.05 AND 0.07 AND s = 'x'",
    );
    for node in nodes(&plan) {
        if let Node::Filter(filter) = node {
            for predicate in &filter.predicates {
                predicate.visit(&mut |e| assert!(!matches!(e, Expr::Cast { .. }), "{predicate}"));
            }
        }
    }
}

#[test]
fn subqueries_become_joins() {
    let single = |sql: &str| matches!(joins(sql).as_slice(), [JoinKind::Single]);
    assert_eq!(joins("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)"), [JoinKind::Semi]);
    assert_eq!(joins("SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)"), [JoinKind::Anti]);
    assert_eq!(joins("SELECT a FROM t WHERE a IN (SELECT a FROM u)"), [JoinKind::Semi]);
    assert_eq!(joins("SELECT a FROM t WHERE a NOT IN (SELECT a FROM u)"), [JoinKind::NullAwareAnti]);
    assert_eq!(
        joins("SELECT n_name FROM nation WHERE n_regionkey NOT IN (SELECT r_regionkey FROM region)"),
        [JoinKind::Anti]
    );
    assert!(single("SELECT (SELECT max(a) FROM u) FROM t"));
    assert!(single("SELECT (SELECT count(*) FROM u WHERE u.a = t.a) FROM t"));
    assert!(single("SELECT a FROM t WHERE b > (SELECT avg(b) FROM u WHERE u.a = t.a)"));
    let marks = joins("SELECT a FROM t WHERE a > 5 OR a IN (SELECT a FROM u)");
    assert!(matches!(marks.as_slice(), [JoinKind::Mark { null_aware: true, .. }]));
    let marks = joins("SELECT a FROM t WHERE a > 5 OR EXISTS (SELECT 1 FROM u WHERE u.b = t.b)");
    assert!(matches!(marks.as_slice(), [JoinKind::Mark { null_aware: false, .. }]));
}

#[test]
fn correlation_of_every_form_is_removed() {
    for sql in [
        "SELECT (SELECT sum(u.b) FROM u WHERE u.a < t.a) FROM t",
        "SELECT (SELECT count(*) FROM u WHERE u.a < t.a AND u.b = t.b) + 1 FROM t",
        "SELECT a FROM t WHERE a IN (SELECT u.b + t.b FROM u)",
        "SELECT a FROM t WHERE a = (SELECT max(u.a) FROM u, nation WHERE u.b = t.b AND n_nationkey = u.a)",
        "SELECT a FROM t WHERE EXISTS (SELECT a FROM u WHERE u.a = t.a UNION SELECT b FROM u WHERE u.b = t.b)",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a LIMIT 1)",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND EXISTS (SELECT 1 FROM nation WHERE \
         n_nationkey = t.b AND n_regionkey = u.b))",
        "SELECT (SELECT (SELECT max(n_nationkey) FROM nation WHERE n_regionkey = t.a + u.a) FROM u WHERE u.b = t.b) \
         FROM t",
        "SELECT * FROM t, LATERAL (SELECT u.b FROM u WHERE u.a = t.a) w",
        "SELECT * FROM t LEFT JOIN LATERAL (SELECT max(u.b) m FROM u WHERE u.a = t.a) w ON true",
        "SELECT * FROM t, LATERAL (SELECT t.a + u.a AS c FROM u) w",
        "SELECT a FROM t WHERE (SELECT count(*) FROM u WHERE u.a = t.a HAVING count(*) > 1) > 0",
        "SELECT a FROM t WHERE a NOT IN (SELECT u.a FROM u WHERE u.b = t.b)",
        "SELECT a FROM t WHERE EXISTS (SELECT max(a) FROM u WHERE u.a = t.a)",
        "SELECT s, max(a) FROM t GROUP BY s HAVING max(a) > (SELECT min(a) FROM u WHERE u.s = t.s)",
        "SELECT a FROM t WHERE a = (SELECT DISTINCT u.a FROM u WHERE u.b = t.b)",
        "SELECT a FROM t ORDER BY (SELECT max(b) FROM u WHERE u.a = t.a)",
        "SELECT (SELECT b FROM u WHERE u.a = t.a ORDER BY b LIMIT 1) FROM t",
        "SELECT (SELECT b FROM u WHERE u.a = t.a ORDER BY b LIMIT 2) FROM t",
        "SELECT (SELECT u.b + random() FROM u WHERE u.a = t.a ORDER BY b LIMIT 2) FROM t",
        "SELECT * FROM t, LATERAL (SELECT * FROM (SELECT a FROM u WHERE u.a > t.a) u FULL JOIN nation ON n_nationkey = u.a) w",
        "SELECT (WITH RECURSIVE r(n) AS (SELECT t.a UNION ALL SELECT n + 1 FROM r WHERE n < t.b) SELECT sum(n) FROM r) FROM t",
        "SELECT (SELECT max((WITH RECURSIVE r(n) AS (SELECT t.a UNION SELECT n + u.b FROM r WHERE n < t.b) SELECT sum(n) \
         FROM r)) FROM u) FROM t",
    ] {
        plan(sql);
    }
}

#[test]
fn set_operations_are_bags_under_all() {
    let set = |sql: &str| {
        let plan = plan(sql);
        let sets = nodes(&plan).into_iter().filter_map(|node| match node {
            Node::SetOperation(set) => Some((set.kind, set.all, set.inputs.len())),
            _ => None,
        });
        sets.collect::<Vec<_>>()
    };
    assert_eq!(set("SELECT a FROM t INTERSECT ALL SELECT a FROM u"), [(SetKind::Intersect, true, 2)]);
    assert_eq!(set("SELECT a FROM t EXCEPT SELECT b FROM u ORDER BY 1"), [(SetKind::Except, false, 2)]);
    assert_eq!(
        set("SELECT a FROM t EXCEPT ALL (SELECT a FROM u INTERSECT SELECT 1)"),
        [(SetKind::Except, true, 2), (SetKind::Intersect, false, 2)]
    );
    assert_eq!(names("SELECT a FROM t INTERSECT SELECT b FROM u"), ["a"]);
}

#[test]
fn aggregates_are_native_where_they_can_be() {
    let plan = plan("SELECT count(*), count(1), count(a), sum(a), avg(n), min(s) FROM t");
    let Some(Node::Aggregate(aggregate)) = nodes(&plan).into_iter().find(|n| matches!(n, Node::Aggregate(_)))
    else {
        panic!()
    };
    let functions: Vec<&str> = aggregate.aggregates.iter().map(|(_, call)| call.function.name()).collect();
    assert!(functions.contains(&"avg") && functions.contains(&"min"));
    assert!(
        aggregate.aggregates.iter().all(|(_, call)| !matches!(call.function, AggregateFunction::External(_)))
    );
    let sum = aggregate.aggregates.iter().find(|(_, call)| call.function.name() == "sum").unwrap();
    assert_eq!(sum.1.args[0].ty(), DataType::Int32, "the engine widens by itself");
}

#[test]
fn nulls_sort_last() {
    let plan = plan("SELECT a FROM t ORDER BY a, b DESC, s NULLS FIRST");
    let Some(Node::Sort(sort)) = nodes(&plan).into_iter().find(|n| matches!(n, Node::Sort(_))) else {
        panic!()
    };
    let keys: Vec<(bool, bool)> = sort.keys.iter().map(|key| (key.descending, key.nulls_first)).collect();
    assert_eq!(keys, [(false, false), (true, false), (false, true)]);
}

#[test]
fn intervals_stand_on_the_right() {
    let plan = plan("SELECT INTERVAL '1' MONTH + d FROM t");
    let Node::Project(project) = &plan.root else { panic!("{plan:?}") };
    let Expr::Arithmetic { op, left, right, ty } = &project.exprs[0].1 else { panic!("{plan:?}") };
    assert_eq!(
        (*op, left.ty(), right.ty(), *ty),
        (ArithmeticOp::Add, DataType::Date, DataType::Interval, DataType::Timestamp)
    );
}

#[test]
fn parameters_have_values() {
    let params = [(Value::Integer(5), DataType::Int64), (Value::Text("x".into()), DataType::Varchar)];
    for sql in ["SELECT a FROM t WHERE a = $1 AND s = $2 LIMIT $1", "SELECT a FROM t WHERE a = ? AND s = ?"] {
        let Statement::Query(plan) = try_bind_with(sql, &params).unwrap() else { panic!() };
        check(&plan, sql);
    }
    assert!(refused("SELECT $1").message().contains("1 parameter,"));
    assert_eq!(parse("SELECT ?, ?").unwrap()[0].parameters(), 2);
}

// ---- other statements -------------------------------------------------------------------------------------

#[test]
fn statements_say_what_is_to_be_done() {
    let script = "CREATE TABLE n (k INTEGER PRIMARY KEY, \"V\" DECIMAL(10, 2) NOT NULL, UNIQUE (v)); -- comment\n\
                  ;;INSERT INTO t (b, a) VALUES (1, 2), (NULL, 3); DROP TABLE IF EXISTS T, u;\
                  CREATE OR REPLACE VIEW w AS SELECT a FROM t; SHOW TABLES; SET threads = 4; RESET threads;\
                  COPY t TO 'x.csv' (FORMAT csv, HEADER, DELIMITER '|'); COPY t (a, b) FROM 'x.parquet';\
                  SUMMARIZE t; DESCRIBE SELECT a FROM t; DESCRIBE t; EXPLAIN ANALYZE SELECT 1; SHOW threads;\
                  CREATE TABLE w AS SELECT a, NULL AS none FROM t; COPY (SELECT 1) TO 'x.parquet'; SUMMARIZE 'dir/flights.parquet'";
    let statements: Vec<Statement> = parse(script)
        .unwrap()
        .iter()
        .map(|s| bind(s, &Tables, &[]).unwrap_or_else(|e| panic!("{}: {e:?}", s.sql())))
        .collect();
    let mut statements = statements.into_iter();
    let mut next = || statements.next().unwrap();
    let described = |statement| match statement {
        Statement::Query(Plan { root: Node::Values(values), .. }) => values.rows.len(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(next(), Statement::CreateTable { name, columns, definition, .. }
        if name == "n" && &*columns[1].name == "V" && !columns[0].nullable && !columns[1].nullable
            && definition.keys == [key("n_pkey", &[0], KeyKind::Primary), key("n_v_key", &[1], KeyKind::Unique)]));
    let Statement::Insert(insert) = next() else { panic!() };
    assert_eq!(insert.table, "t");
    assert_eq!(insert.plan.schema().iter().map(|f| f.ty).collect::<Vec<_>>(), columns_of("t"));
    assert!(matches!(insert.plan.root, Node::Values(_)), "values are converted at once");
    assert!(matches!(next(), Statement::Drop { names, if_exists: true, .. } if names == ["t", "u"]));
    assert!(
        matches!(next(), Statement::CreateView { sql, or_replace: true, .. } if sql == "SELECT a FROM t")
    );
    assert!(matches!(next(), Statement::ShowTables { of: None, .. }));
    assert!(matches!(next(), Statement::Set { name, value: Value::Integer(4) } if name == "threads"));
    assert!(matches!(next(), Statement::Reset { name } if name == "threads"));
    let Statement::CopyTo { options, .. } = next() else { panic!() };
    assert_eq!(options[1], ("header".to_string(), Value::Boolean(true)));
    assert_eq!(options[2], ("delimiter".to_string(), Value::Text("|".into())));
    assert!(
        matches!(next(), Statement::Insert(crate::Insert { plan, .. }) if plan.output.len() == table("t").unwrap().schema().len())
    );
    assert!(matches!(next(), Statement::Summarize { .. }));
    assert_eq!(described(next()), 1);
    assert_eq!(described(next()), 11);
    assert!(matches!(next(), Statement::Explain { analyze: true, .. }));
    assert!(matches!(next(), Statement::ShowSetting { .. }));
    assert!(
        matches!(next(), Statement::CreateTableAs { plan, .. } if plan.schema()[1].ty == DataType::Int32)
    );
    assert!(matches!(next(), Statement::CopyTo { .. }));
    assert!(matches!(next(), Statement::Summarize { .. }));
    assert_eq!(parse("SELECT 1 ; -- end").unwrap()[0].sql(), "SELECT 1");
}

// ---- errors -----------------------------------------------------------------------------------------------

#[test]
fn errors_name_place_and_remedy() {
    let error = refused("SELECT a\nFROM  custmer");
    assert_eq!(error.message(), "there is no table custmer");
    assert_eq!(error.hint(), Some("did you mean customer?"));
    assert_eq!(error.position().map(|p| (p.line, p.column)), Some((2, 7)));

    let error = refused("SELECT c_custky FROM customer");
    assert_eq!(error.message(), "there is no column c_custky");
    assert_eq!(error.hint(), Some("did you mean c_custkey?"));
    assert_eq!(error.position().map(|p| p.column), Some(8));

    let error = refused("SELECT lenght(s) FROM t");
    assert_eq!(
        (error.message(), error.hint()),
        ("there is no function lenght", Some("did you mean length?"))
    );

    let error = refused("SELECT a FROM t, u");
    assert!(error.message().contains("more than one table"), "{error}");

    let error = refused("SELECT 1 +");
    assert!(error.message().starts_with("syntax error: the statement ends"), "{error}");
    let error = refused("SELEC 1");
    assert!(error.message().starts_with("syntax error at SELEC"), "{error}");
    assert_eq!(error.position().map(|p| p.column), Some(1));

    for sql in
        ["SELECT s + 1 FROM t", "SELECT sum(s) FROM t", "SELECT a FROM t WHERE a", "SELECT avg(ok) FROM t"]
    {
        let text = refused(sql).to_string();
        for jargon in ["Utf8", "Int64", "planning", "DataFusion", "type_coercion", "\n\n", "Date32"] {
            assert!(!text.contains(jargon), "{sql}: {text}");
        }
    }
    assert!(refused("INSERT INTO t (a) VALUES (1, 2)").message().contains("each row has 2 values"));
    assert!(refused("SELECT * FROM 'none.parquet'").message().contains("no such file"));
    assert!(refused("SELECT * FROM endless").message().contains("contains itself"));
}

#[test]
fn what_is_not_there_yet_is_named() {
    for (sql, feature) in [
        (
            "WITH RECURSIVE r AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM r WHERE k < 5 LIMIT 2) SELECT * FROM r",
            "WITH, ORDER BY and LIMIT within r, which reads itself",
        ),
        ("SELECT list_transform(a) FROM t", "the function list_transform"),
        ("CREATE TABLE w (k JSONB)", "column k: JSONB"),
        ("BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE", "the isolation level SERIALIZABLE"),
        ("BEGIN READ ONLY", "READ ONLY transactions"),
        ("ALTER TABLE t CLUSTER BY (a)", "ALTER TABLE … CLUSTER BY"),
        ("INSERT OR ABORT INTO w (b) VALUES (1)", "INSERT OR ABORT"),
        ("CREATE INDEX i ON t (a) WHERE a > 1", "indexes with WHERE"),
    ] {
        let error = refused(sql);
        assert_eq!((error.kind(), error.message()), (ErrorKind::NotSupported, feature), "{sql}");
    }
}

#[test]
fn depth_and_size_have_limits_and_no_stack_overflows() {
    let deep = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(refused(&deep).kind(), ErrorKind::Resource);
    let nested = format!("SELECT {}1{}", "(".repeat(150), ")".repeat(150));
    plan(&nested);
    let chain = format!("SELECT 1{}", " + 1".repeat(250_000));
    assert_eq!(refused(&chain).kind(), ErrorKind::Resource);
    let chain = format!("SELECT a{} FROM t", " + a".repeat(1_000));
    plan(&chain);
    let chain = format!("SELECT a FROM t WHERE a = 0{}", " OR a = 1".repeat(900));
    plan(&chain);
    let rows = format!("VALUES (1){}", ", (2)".repeat(200_000));
    plan(&rows);
    let list = format!("SELECT a FROM t WHERE a IN (0{})", ", 1".repeat(100_000));
    plan(&list);
}
