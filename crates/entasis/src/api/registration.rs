//! What the host program registers on a connection: relations, functions, and what finds others by name.

use crate::connection::{Connection, Replacement};
use crate::session::host_functions::Function;
use entasis_engine::relation::Relation;
use entasis_vector::{Result, name};
use std::sync::Arc;

impl Connection {
    /// Makes a relation of the host program visible under `name`, before tables of that name.
    pub fn register(&self, name: &str, relation: Arc<dyn Relation>) {
        self.session.register(name, relation);
    }

    /// Undoes [`Connection::register`]. True if there was such a relation.
    pub fn unregister(&self, name: &str) -> bool {
        self.session.unregister(name)
    }

    /// Makes a function callable by the statements of this connection. One of the same name that was created
    /// before is replaced.
    ///
    /// # Errors
    /// Input, if the name is not one, or that of a function of ours.
    pub fn create_function(&self, function: Function) -> Result<()> {
        self.refuse_elsewhere()?;
        self.session.functions.add(function)?;
        self.session.forget_plans();
        Ok(())
    }

    /// Undoes [`Connection::create_function`]. True if there was such a function.
    pub fn drop_function(&self, name: &str) -> bool {
        let was_there = self.session.functions.remove(&name::fold(name));
        self.session.forget_plans();
        was_there
    }

    /// True while this thread runs a function that this connection calls, and in which the connection cannot
    /// be used.
    pub fn is_calling(&self) -> bool {
        self.session.functions.is_calling()
    }

    /// Sets the function that looks up names that are not in the catalog.
    pub fn set_replacement(&self, replacement: Option<Replacement>) {
        *self.session.replacement.write().expect("no panic while locked") = replacement;
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Connection, DataType, Database, Error, Function, Value, arrow_relation};
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn connection() -> Connection {
        Database::in_memory(Config::default()).unwrap().connect()
    }

    /// The only column of a query's result, as integers; -1 for NULL.
    fn integers(connection: &Connection, sql: &str) -> Vec<i128> {
        let rows = connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let integer = |row: Vec<Value>| if let Value::Integer(n) = row[0] { n } else { -1 };
        rows.row_values().map(integer).collect()
    }

    fn refused(connection: &Connection, sql: &str, words: &str) {
        match connection.execute(sql) {
            Ok(_) => panic!("{sql} is not refused"),
            Err(error) => assert!(error.to_string().contains(words), "{sql}: {error}"),
        }
    }

    fn number(value: &Value) -> i128 {
        if let Value::Integer(n) = value { *n } else { panic!("{value:?} is not an integer") }
    }

    fn twice() -> Function {
        let twice = |values: &[Value]| Ok(Value::Integer(2 * number(&values[0])));
        Function::scalar("twice", [DataType::Int64], DataType::Int64, twice)
    }

    /// The sum of the products of two arguments.
    fn dot() -> Function {
        Function::aggregate("dot", [DataType::Int64, DataType::Int64], DataType::Int64, |_, columns| {
            let products = columns[0].iter().zip(&columns[1]).map(|(a, b)| number(a) * number(b));
            Ok(Value::Integer(products.sum()))
        })
    }

    #[test]
    fn scalar_functions_are_called_for_rows_without_nulls() {
        let connection = connection();
        connection.create_function(twice()).unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let arrow = move |arrays: &[ArrayRef]| {
            counted.fetch_add(arrays[0].len(), Ordering::Relaxed);
            let values = arrays[0].as_primitive::<Int64Type>().iter().map(|n| n.map(|n| n + 1));
            Ok(Arc::new(values.collect::<Int64Array>()) as ArrayRef)
        };
        let next = Function::arrow("next", [DataType::Int64], DataType::Int64, arrow);
        connection.create_function(next).unwrap();
        connection
            .execute("CREATE TABLE t AS SELECT CASE WHEN i % 3 <> 0 THEN i END AS n FROM range(9000) r(i)")
            .unwrap();
        let of_sql = integers(&connection, "SELECT 2 * n + 1 FROM t ORDER BY n");
        let of_functions = integers(&connection, "SELECT next(twice(n)) FROM t ORDER BY n");
        let different = of_functions.iter().zip(&of_sql).position(|(own, twin)| own != twin);
        assert_eq!((different, of_functions.len()), (None, of_sql.len()));
        assert_eq!(calls.load(Ordering::Relaxed), 6000, "rows with NULL are not passed");
        assert_eq!(integers(&connection, "SELECT count(*) FROM t WHERE TWICE(n) > 17000"), [333]);
        // Names do not matter, nor do arguments that are cast; those that would need a cast do.
        assert_eq!(integers(&connection, "SELECT \"Twice\"('21')"), [42]);
        refused(&connection, "SELECT twice(1.5)", "twice(BIGINT) does not take (DECIMAL(2,1))");
        refused(&connection, "SELECT twice(n, n) FROM t", "does not take");
        refused(&connection, "SELECT twice(DISTINCT n) FROM t", "not an aggregate");
        refused(&connection, "SELECT thrice(n) FROM t", "there is no function thrice");
    }

    #[test]
    fn what_a_function_gives_is_checked() {
        let connection = connection();
        let gives = |name: &str, result, value: Value| {
            let own = Function::scalar(name, [], result, move |_| Ok(value.clone()));
            connection.create_function(own).unwrap();
        };
        gives("too_large", DataType::Int8, Value::Integer(300));
        gives("no_text", DataType::Varchar, Value::Integer(3));
        gives("no_json", DataType::Json, Value::Text("{".into()));
        gives("no_real", DataType::Float32, Value::Float(1e300));
        gives("no_time", DataType::Time, Value::Integer(1 << 60));
        gives("no_list", DataType::list(DataType::Int64), Value::Bytes(Arc::from([9u8, 9, 9])));
        for name in ["too_large", "no_text", "no_json", "no_real", "no_time", "no_list"] {
            refused(&connection, &format!("SELECT {name}()"), &format!("the function {name}: it gave"));
        }
        let short = Function::arrow("short", [DataType::Int64], DataType::Int64, |_| {
            Ok(Arc::new(Int64Array::from(vec![1])) as ArrayRef)
        });
        connection.create_function(short).unwrap();
        refused(&connection, "SELECT short(i) FROM range(5) r(i)", "it gave 1 values for 5 rows");
        let fails = Function::scalar("fails", [], DataType::Int64, |_| Err(Error::input("no luck")));
        connection.create_function(fails).unwrap();
        refused(&connection, "SELECT fails()", "the function fails: no luck");
        assert_eq!(
            integers(&connection, "SELECT CASE WHEN i < 0 THEN fails() ELSE i END FROM range(2) r(i)"),
            [0, 1]
        );
    }

    #[test]
    fn aggregates_see_the_rows_of_their_groups() {
        let connection = connection();
        connection.create_function(dot()).unwrap();
        connection.execute("CREATE TABLE t AS SELECT i % 7 AS g, i AS a, CASE WHEN i % 5 > 0 THEN i END AS b FROM range(20000) r(i)").unwrap();
        for (own, twin) in [
            ("SELECT dot(a, b) FROM t", "SELECT sum(a * b) FROM t"),
            (
                "SELECT dot(a, b) FROM t GROUP BY g ORDER BY g",
                "SELECT sum(a * b) FROM t GROUP BY g ORDER BY g",
            ),
            ("SELECT dot(a, b) FILTER (WHERE a < 9) FROM t", "SELECT sum(a * b) FILTER (WHERE a < 9) FROM t"),
            ("SELECT dot(DISTINCT g, 1) FROM t", "SELECT sum(DISTINCT g) FROM t"),
            (
                "SELECT dot(a, b) OVER (ORDER BY a ROWS 3 PRECEDING) FROM t WHERE a BETWEEN 1 AND 90 ORDER BY a",
                "SELECT sum(a * b) OVER (ORDER BY a ROWS 3 PRECEDING) FROM t WHERE a BETWEEN 1 AND 90 ORDER BY a",
            ),
            (
                "SELECT dot(a, b) FROM t GROUP BY ROLLUP (g) ORDER BY 1",
                "SELECT sum(a * b) FROM t GROUP BY ROLLUP (g) ORDER BY 1",
            ),
            ("SELECT coalesce(dot(a, b), 0) FROM t WHERE false", "SELECT 0"),
        ] {
            assert_eq!(integers(&connection, own), integers(&connection, twin), "{own}");
        }
        refused(&connection, "SELECT dot(*) FROM t", "dot does not take *");
        refused(&connection, "SELECT dot(a, b IGNORE NULLS) FROM t", "IGNORE NULLS");
        refused(&connection, "SELECT a FROM t WHERE dot(a, b) > 0", "not allowed in WHERE");
        refused(&connection, "SELECT sum(dot(a, b)) FROM t", "nested");
        let ordered = Function::arrow_aggregate("third", [DataType::Int64], DataType::Int64, |arrays| {
            Ok(arrays[0].slice(2, 1))
        });
        connection.create_function(ordered).unwrap();
        assert_eq!(integers(&connection, "SELECT third(a ORDER BY a DESC) FROM t"), [19997]);
    }

    #[test]
    fn table_functions_make_rows() {
        let connection = connection();
        let table = Function::table("numbers", |arguments| {
            let [argument] = arguments else { return Err(Error::input("it takes a number")) };
            let values: Int64Array = (0..number(&argument.value) as i64).collect();
            let batch = RecordBatch::try_from_iter([("n", Arc::new(values) as ArrayRef)]).unwrap();
            Ok(arrow_relation("numbers", &batch.schema(), vec![batch]))
        });
        connection.create_function(table).unwrap();
        assert_eq!(integers(&connection, "SELECT sum(n) FROM numbers(1 + 4)"), [10]);
        assert_eq!(integers(&connection, "SELECT t.n FROM Numbers(count := 3) t WHERE n > 1"), [2]);
        refused(&connection, "SELECT * FROM numbers()", "the function numbers: it takes a number");
        refused(&connection, "SELECT numbers(3)", "there is no function numbers");
    }

    #[test]
    fn functions_belong_to_their_connection() {
        let database = Database::in_memory(Config::default()).unwrap();
        let (own, other) = (database.connect(), database.connect());
        own.create_function(twice()).unwrap();
        refused(&other, "SELECT twice(1)", "there is no function twice");
        own.execute("CREATE TABLE t (n BIGINT)").unwrap();
        own.execute("INSERT INTO t SELECT twice(i) FROM range(3) r(i)").unwrap();
        own.execute("CREATE VIEW v AS SELECT twice(n) AS m FROM t").unwrap();
        assert_eq!(integers(&own, "SELECT sum(m) FROM v"), [12]);
        refused(&other, "SELECT * FROM v", "there is no function twice");
        for declared in [
            "CREATE TABLE c (n BIGINT CHECK (twice(n) > 0))",
            "CREATE TABLE c (n BIGINT DEFAULT twice(1))",
            "ALTER TABLE t ADD CHECK (twice(n) > 0)",
        ] {
            refused(&own, declared, "twice");
        }
        // What is remembered of statements does not outlive a function.
        for _ in 0..3 {
            assert_eq!(integers(&own, "SELECT twice(4)"), [8]);
        }
        let thrice = |values: &[Value]| Ok(Value::Integer(3 * number(&values[0])));
        own.create_function(Function::scalar("TWICE", [DataType::Int64], DataType::Int64, thrice)).unwrap();
        assert_eq!(integers(&own, "SELECT twice(4)"), [12]);
        assert!(own.drop_function("Twice") && !own.drop_function("twice"));
        refused(&own, "SELECT twice(4)", "there is no function twice");
        for name in ["abs", "sum", "row_number", "read_csv", "now", "unnest", "grouping", "current_user", ""]
        {
            let function = Function::scalar(name, [], DataType::Int64, |_| Ok(Value::Null));
            assert!(own.create_function(function).is_err(), "{name}");
        }
    }

    #[test]
    fn a_function_cannot_use_the_connection_that_calls_it() {
        let database = Database::in_memory(Config::default()).unwrap();
        let (own, other) = (Arc::new(database.connect()), database.connect());
        own.execute("CREATE TABLE t AS SELECT 7 AS n").unwrap();
        let inner = Arc::downgrade(&own);
        let lookup = Function::scalar("lookup", [], DataType::Int64, move |_| {
            inner.upgrade().unwrap().execute("SELECT n FROM t").map(|_| Value::Null)
        });
        own.create_function(lookup).unwrap();
        refused(&own, "SELECT lookup()", "a function cannot use the connection that calls it");
        let lookup = Function::scalar("lookup", [], DataType::Int64, move |_| {
            let rows = other.execute("SELECT n FROM t")?;
            Ok(rows.row_values().next().map_or(Value::Null, |row| row[0].clone()))
        });
        own.create_function(lookup).unwrap();
        assert_eq!(integers(&own, "SELECT lookup()"), [7]);
        assert!(!own.is_calling());
    }

    #[test]
    fn volatile_functions_are_called_for_each_row() {
        let connection = connection();
        let calls = Arc::new(AtomicUsize::new(0));
        let count = move |_: &[Value]| Ok(Value::Integer(calls.fetch_add(1, Ordering::Relaxed) as i128));
        connection
            .create_function(Function::scalar("counted", [], DataType::Int64, count).volatile())
            .unwrap();
        assert_eq!(integers(&connection, "SELECT count(DISTINCT counted()) FROM range(100)"), [100]);
        let twice =
            "WITH c AS (SELECT counted() AS n FROM range(3)) SELECT count(*) FROM c a JOIN c b USING (n)";
        assert_eq!(integers(&connection, twice), [3]);
        // A table is made once for all who read it, and not again to tell an error.
        let made = Arc::new(AtomicUsize::new(0));
        let counted = made.clone();
        let table = Function::table("batch", move |_| {
            let number = counted.fetch_add(1, Ordering::Relaxed) as i64;
            let batch =
                RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![number])) as ArrayRef)]);
            let batch = batch.unwrap();
            Ok(arrow_relation("batch", &batch.schema(), vec![batch]))
        });
        connection.create_function(table).unwrap();
        let twice = "WITH c AS (FROM batch()) SELECT count(*) FROM c a JOIN c b USING (n)";
        assert_eq!((integers(&connection, twice), made.load(Ordering::Relaxed)), (vec![1], 1));
        refused(&connection, "SELECT 'x'::INT + n FROM batch()", "cannot cast 'x'");
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }
}
