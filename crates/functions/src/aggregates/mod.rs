//! Aggregate functions with states of our own, and the entries of all aggregates on the documentation page.
//!
//! A function is a [`Kind`]: its argument and result types ([`Kind::types`]), and one of the accumulators of
//! [`order`], [`statistics`], [`pairs`], [`distinct`] or [`simple`]. [`states`] keeps one accumulator for
//! each group. Rows in which an argument is NULL are skipped, unless the accumulator takes them.

mod accumulator;
mod distinct;
mod kind;
mod order;
mod page;
mod pairs;
mod selection;
mod simple;
mod states;
mod statistics;

use crate::types::digits;
pub use accumulator::Call;
use entasis_vector::{DataType, Error, Result};
pub use kind::Kind;
use kind::Line;
pub use page::{FUNCTIONS, ROWS};

/// All of our aggregates under each of their names.
pub fn aggregates() -> impl Iterator<Item = (&'static str, Kind)> {
    const NAMES: &[(&[&str], Kind)] = &[
        (&["first_value", "first", "arbitrary"], Kind::First),
        (&["last_value", "last"], Kind::Last),
        (&["arg_max", "max_by", "argmax"], Kind::Extreme { greatest: true, nulls: false }),
        (&["arg_min", "min_by", "argmin"], Kind::Extreme { greatest: false, nulls: false }),
        (&["arg_max_null", "arg_max_nulls_last"], Kind::Extreme { greatest: true, nulls: true }),
        (&["arg_min_null", "arg_min_nulls_last"], Kind::Extreme { greatest: false, nulls: true }),
        (&["mode"], Kind::Mode),
        (&["quantile_disc", "percentile_disc", "quantile"], Kind::Quantile { continuous: false }),
        (
            &[
                "quantile_cont",
                "percentile_cont",
                "approx_quantile",
                "approx_percentile_cont",
                "reservoir_quantile",
            ],
            Kind::Quantile { continuous: true },
        ),
        (&["median", "approx_median"], Kind::Median),
        (&["mad"], Kind::Deviation),
        (&["count_if", "countif"], Kind::CountIf),
        (&["product"], Kind::Product),
        (&["bit_and"], Kind::BitAnd),
        (&["bit_or"], Kind::BitOr),
        (&["bit_xor"], Kind::BitXor),
        (&["string_agg", "group_concat", "listagg"], Kind::Join),
        (&["list", "array_agg"], Kind::List),
        (&["fsum", "kahan_sum", "sumkahan"], Kind::ExactSum),
        (&["favg"], Kind::ExactMean),
        (&["weighted_avg", "wavg"], Kind::WeightedMean),
        (&["geometric_mean", "geomean"], Kind::GeometricMean),
        (&["skewness"], Kind::Skewness),
        (&["kurtosis"], Kind::Kurtosis),
        (&["kurtosis_pop"], Kind::KurtosisOfAll),
        (&["sem"], Kind::StandardError),
        (&["entropy"], Kind::Entropy),
        (&["var_samp", "variance", "var_sample", "var"], Kind::Variance { sample: true, root: false }),
        (&["var_pop", "var_population"], Kind::Variance { sample: false, root: false }),
        (&["stddev", "stddev_samp"], Kind::Variance { sample: true, root: true }),
        (&["stddev_pop"], Kind::Variance { sample: false, root: true }),
        (&["covar_samp", "covar"], Kind::Covariance { sample: true }),
        (&["covar_pop"], Kind::Covariance { sample: false }),
        (&["corr"], Kind::Correlation),
        (&["regr_avgx"], Kind::Line(Line::AverageX)),
        (&["regr_avgy"], Kind::Line(Line::AverageY)),
        (&["regr_count"], Kind::Line(Line::Count)),
        (&["regr_intercept"], Kind::Line(Line::Intercept)),
        (&["regr_r2"], Kind::Line(Line::Fit)),
        (&["regr_slope"], Kind::Line(Line::Slope)),
        (&["regr_sxx"], Kind::Line(Line::SquaresX)),
        (&["regr_sxy"], Kind::Line(Line::Products)),
        (&["regr_syy"], Kind::Line(Line::SquaresY)),
        (&["approx_count_distinct", "approx_distinct"], Kind::Distinct),
    ];
    NAMES.iter().flat_map(|(names, kind)| names.iter().map(move |name| (*name, *kind)))
}

/// Aggregates of the order of their first argument: `WITHIN GROUP (ORDER BY x)` passes it to them.
pub const OF_ORDER: [&str; 8] = [
    "quantile",
    "quantile_disc",
    "quantile_cont",
    "percentile_disc",
    "percentile_cont",
    "approx_quantile",
    "approx_percentile_cont",
    "reservoir_quantile",
];

impl Kind {
    /// The types of the arguments, and that of the result.
    ///
    /// # Errors
    /// Input, if no signature matches.
    pub fn types(self, given: &[DataType]) -> Result<(Vec<DataType>, DataType)> {
        use DataType as T;
        let no_such_call = || Error::input("no such call");
        let one = |wanted: T, result: T| match given {
            [ty] if fits(*ty, wanted) => Ok((vec![wanted], result)),
            _ => Err(no_such_call()),
        };
        match (self, given) {
            (Kind::First | Kind::Last | Kind::Mode, &[ty]) => Ok((vec![ty], ty)),
            (Kind::Extreme { .. }, &[ty, by]) => Ok((vec![ty, by], ty)),
            (Kind::Median, &[ty]) => {
                between(ty).map(|(arg, result)| (vec![arg], result)).ok_or_else(no_such_call)
            }
            (Kind::Deviation, &[ty]) => {
                let (arg, result) = between(ty).ok_or_else(no_such_call)?;
                let spans = matches!(result, T::Timestamp | T::TimestampTz | T::Time);
                Ok((vec![arg], if spans { T::Interval } else { result }))
            }
            // The last argument is true if the order is descending.
            (Kind::Quantile { continuous }, &[ty, share] | &[ty, share, T::Boolean])
                if fits(share, T::Float64) =>
            {
                let (arg, result) = if continuous { between(ty).ok_or_else(no_such_call)? } else { (ty, ty) };
                let mut args = vec![arg, T::Float64];
                args.extend(given.get(2));
                Ok((args, result))
            }
            (Kind::Quantile { continuous: false }, &[ty]) => Ok((vec![ty], ty)),
            (Kind::CountIf, [_]) => one(T::Boolean, T::Int64),
            (Kind::Product | Kind::ExactSum | Kind::ExactMean | Kind::GeometricMean, [_]) => {
                one(T::Float64, T::Float64)
            }
            (Kind::Skewness | Kind::Kurtosis | Kind::KurtosisOfAll | Kind::StandardError, [_]) => {
                one(T::Float64, T::Float64)
            }
            (Kind::Variance { .. }, [_]) => one(T::Float64, T::Float64),
            (Kind::Distinct, &[ty]) => Ok((vec![ty], T::Int64)),
            (Kind::Covariance { .. } | Kind::Correlation | Kind::Line(_), &[y, x])
                if fits(y, T::Float64) && fits(x, T::Float64) =>
            {
                let result = if self == Kind::Line(Line::Count) { T::Int64 } else { T::Float64 };
                Ok((vec![T::Float64; 2], result))
            }
            (Kind::WeightedMean, &[x, weight]) if fits(x, T::Float64) && fits(weight, T::Float64) => {
                Ok((vec![T::Float64; 2], T::Float64))
            }
            (Kind::Entropy, &[ty]) => Ok((vec![ty], T::Float64)),
            (Kind::Mean, &[ty]) => match ty {
                T::Date | T::Timestamp | T::TimestampNs => Ok((vec![T::Timestamp], T::Timestamp)),
                T::TimestampTz | T::Time | T::Interval => Ok((vec![ty], ty)),
                _ => Err(no_such_call()),
            },
            (Kind::Span, [T::Interval]) => Ok((vec![T::Interval], T::Interval)),
            (Kind::BitAnd | Kind::BitOr | Kind::BitXor, &[ty]) => match ty {
                ty if ty.is_integer() => Ok((vec![ty], ty)),
                T::Null => Ok((vec![T::Int64], T::Int64)),
                _ => Err(no_such_call()),
            },
            (Kind::List, &[ty]) => Ok((vec![ty], T::list(ty))),
            (Kind::Join, &[ty]) if ty != T::Blob => Ok((vec![T::Varchar], T::Varchar)),
            (Kind::Join, &[ty, T::Varchar | T::Null]) if ty != T::Blob => {
                Ok((vec![T::Varchar; 2], T::Varchar))
            }
            (Kind::Join, [T::Blob, T::Blob]) => Ok((vec![T::Blob; 2], T::Blob)),
            _ => Err(no_such_call()),
        }
    }
}

/// Whether a value of one type can be used as another without a cast.
fn fits(given: DataType, wanted: DataType) -> bool {
    given == wanted || given == DataType::Null || (wanted == DataType::Float64 && given.is_numeric())
}

/// The type in which values are kept for interpolation, and the type of the result.
fn between(ty: DataType) -> Option<(DataType, DataType)> {
    use DataType as T;
    Some(match ty {
        T::Decimal { .. } => (ty, ty),
        ty if ty.is_integer() && digits(ty) < 16 => (ty, T::Float64),
        ty if ty.is_numeric() || ty == T::Null => (T::Float64, T::Float64),
        T::Date | T::Timestamp | T::TimestampNs => (T::Timestamp, T::Timestamp),
        T::TimestampTz | T::Time | T::Interval => (ty, ty),
        _ => return None,
    })
}
