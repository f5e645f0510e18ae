//! What an aggregate computes.

/// What an aggregate computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The first row's value, NULL or not.
    First,
    /// The last row's value, NULL or not.
    Last,
    /// The first argument in the row where the second is least or greatest.
    Extreme {
        /// Where the second is greatest.
        greatest: bool,
        /// True if rows whose first argument is NULL count.
        nulls: bool,
    },
    /// The most frequent value.
    Mode,
    /// The value at a share of the order, or interpolated between two.
    Quantile {
        /// Interpolated between two values.
        continuous: bool,
    },
    /// The value in the middle, or interpolated between two.
    Median,
    /// Median of the absolute deviations from the median.
    Deviation,
    /// The number of rows for which the argument is true.
    CountIf,
    /// The product of floats.
    Product,
    /// Mean of values that are not numbers: intervals, dates, times.
    Mean,
    /// Sum of intervals.
    Span,
    /// Bits that all values have.
    BitAnd,
    /// Bits that a value has.
    BitOr,
    /// Bits that an odd number of values have.
    BitXor,
    /// Texts one after another, with a separator.
    Join,
    /// A list of all values.
    List,
    /// The sum of floats with compensated rounding errors.
    ExactSum,
    /// The mean of floats with compensated rounding errors.
    ExactMean,
    /// The mean of floats, each with a weight.
    WeightedMean,
    /// The root of the product.
    GeometricMean,
    /// Skewness of a sample.
    Skewness,
    /// Excess kurtosis of a sample.
    Kurtosis,
    /// Excess kurtosis of a population.
    KurtosisOfAll,
    /// Standard error of the mean.
    StandardError,
    /// Entropy of the frequencies of values, in bits.
    Entropy,
    /// Variance, or its square root; of a sample, or of the population.
    Variance {
        /// Of a sample.
        sample: bool,
        /// The standard deviation.
        root: bool,
    },
    /// Covariance of two arguments.
    Covariance {
        /// Of a sample.
        sample: bool,
    },
    /// Pearson's coefficient of correlation.
    Correlation,
    /// `regr_…`
    Line(Line),
    /// An estimate of the number of distinct values.
    Distinct,
}

/// The results of linear regression, and of the sums from which it is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Line {
    AverageX,
    AverageY,
    Count,
    Intercept,
    /// The square of the correlation coefficient.
    Fit,
    Slope,
    /// The sum of the squared deviations of x from its mean.
    SquaresX,
    SquaresY,
    /// The sum of the products of the deviations.
    Products,
}
