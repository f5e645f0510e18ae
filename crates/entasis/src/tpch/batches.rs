//! The generator's rows as Arrow batches.
//!
//! Keys are BIGINT, other counts INTEGER, amounts DECIMAL(15,2), all texts VARCHAR. No column has NULLs.

use arrow_array::builder::{
    ArrayBuilder, Date32Builder, Decimal128Builder, Int32Builder, Int64Builder, StringViewBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::DataType;
use std::fmt::{Display, Write};
use tpchgen::dates::TPCHDate;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

/// Rows of a batch.
const ROWS: usize = 8192;
/// The type of all amounts.
const AMOUNT: DataType = DataType::Decimal128(15, 2);

/// A batch for each [`ROWS`] rows: the names of the columns, which are those of the row's fields, and what
/// collects each.
macro_rules! batches {
    ($generator:expr, $($field:ident: $column:ident),*) => {{
        let mut rows = $generator.iter();
        Box::new(std::iter::from_fn(move || {
            let mut count = 0;
            $(let mut $field = $column();)*
            for row in rows.by_ref().take(ROWS) {
                count += 1;
                $($field.add(&row.$field);)*
            }
            let columns: [(&str, ArrayRef); _] = [$((stringify!($field), $field.finish())),*];
            (count > 0).then(|| RecordBatch::try_from_iter(columns).expect("the columns have equal lengths"))
        }))
    }};
}

/// The batches of `table` at `scale`, part `part` of `parts` (from 1).
///
/// # Panics
/// If `table` is not one of [`TABLES`](super::TABLES).
pub fn batches(
    table: &str,
    scale: f64,
    part: i32,
    parts: i32,
) -> Box<dyn Iterator<Item = RecordBatch> + Send> {
    match table {
        "region" => batches!(
            RegionGenerator::new(scale, part, parts),
            r_regionkey: key, r_name: text, r_comment: text
        ),
        "nation" => batches!(
            NationGenerator::new(scale, part, parts),
            n_nationkey: key, n_name: text, n_regionkey: key, n_comment: text
        ),
        "supplier" => batches!(
            SupplierGenerator::new(scale, part, parts),
            s_suppkey: key, s_name: text, s_address: text, s_nationkey: key, s_phone: text, s_acctbal: amount,
            s_comment: text
        ),
        "customer" => batches!(
            CustomerGenerator::new(scale, part, parts),
            c_custkey: key, c_name: text, c_address: text, c_nationkey: key, c_phone: text, c_acctbal: amount,
            c_mktsegment: text, c_comment: text
        ),
        "part" => batches!(
            PartGenerator::new(scale, part, parts),
            p_partkey: key, p_name: text, p_mfgr: text, p_brand: text, p_type: text, p_size: number,
            p_container: text, p_retailprice: amount, p_comment: text
        ),
        "partsupp" => batches!(
            PartSuppGenerator::new(scale, part, parts),
            ps_partkey: key, ps_suppkey: key, ps_availqty: number, ps_supplycost: amount, ps_comment: text
        ),
        "orders" => batches!(
            OrderGenerator::new(scale, part, parts),
            o_orderkey: key, o_custkey: key, o_orderstatus: text, o_totalprice: amount, o_orderdate: date,
            o_orderpriority: text, o_clerk: text, o_shippriority: number, o_comment: text
        ),
        "lineitem" => batches!(
            LineItemGenerator::new(scale, part, parts),
            l_orderkey: key, l_partkey: key, l_suppkey: key, l_linenumber: number, l_quantity: whole_amount,
            l_extendedprice: amount, l_discount: amount, l_tax: amount, l_returnflag: text,
            l_linestatus: text,
            l_shipdate: date, l_commitdate: date, l_receiptdate: date, l_shipinstruct: text, l_shipmode: text,
            l_comment: text
        ),
        other => panic!("TPC-H has no table {other}"),
    }
}

/// Collects the values of a column.
struct Column<B, F> {
    builder: B,
    append: F,
}

impl<B: ArrayBuilder, F> Column<B, F> {
    fn add<T>(&mut self, value: &T)
    where
        F: FnMut(&mut B, &T),
    {
        (self.append)(&mut self.builder, value);
    }

    fn finish(mut self) -> ArrayRef {
        self.builder.finish()
    }
}

fn column<B, T, F: FnMut(&mut B, &T)>(builder: B, append: F) -> Column<B, F> {
    Column { builder, append }
}

fn key() -> Column<Int64Builder, impl FnMut(&mut Int64Builder, &i64)> {
    column(Int64Builder::with_capacity(ROWS), |to: &mut Int64Builder, value: &i64| to.append_value(*value))
}

fn number() -> Column<Int32Builder, impl FnMut(&mut Int32Builder, &i32)> {
    column(Int32Builder::with_capacity(ROWS), |to: &mut Int32Builder, value: &i32| to.append_value(*value))
}

fn amounts() -> Decimal128Builder {
    Decimal128Builder::with_capacity(ROWS).with_data_type(AMOUNT)
}

fn amount() -> Column<Decimal128Builder, impl FnMut(&mut Decimal128Builder, &TPCHDecimal)> {
    column(amounts(), |to: &mut Decimal128Builder, value: &TPCHDecimal| to.append_value(value.0.into()))
}

/// An amount that the generator has without decimals.
fn whole_amount() -> Column<Decimal128Builder, impl FnMut(&mut Decimal128Builder, &i64)> {
    column(amounts(), |to: &mut Decimal128Builder, value: &i64| to.append_value(i128::from(*value) * 100))
}

fn date() -> Column<Date32Builder, impl FnMut(&mut Date32Builder, &TPCHDate)> {
    column(Date32Builder::with_capacity(ROWS), |to: &mut Date32Builder, value: &TPCHDate| {
        to.append_value(value.to_unix_epoch());
    })
}

fn text<T: Display>() -> Column<StringViewBuilder, impl FnMut(&mut StringViewBuilder, &T)> {
    let mut written = String::new();
    column(StringViewBuilder::with_capacity(ROWS), move |to: &mut StringViewBuilder, value: &T| {
        written.clear();
        write!(written, "{value}").expect("texts grow");
        to.append_value(&written);
    })
}
