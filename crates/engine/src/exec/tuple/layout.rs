//! The layout of tuples: which part of a tuple holds which column, and in what form.

use super::codes::TupleCodes;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{DataType, PhysicalType};

/// The most bytes of a tuple.
pub(super) const LONGEST_TUPLE: usize = u16::MAX as usize;
/// Bytes of a string's view besides the length.
pub(super) const BODY_BYTES: usize = 12;
/// The most bytes for which a known range has fixed length.
const MOST_FIXED: usize = 2;

/// The layout of tuples of certain columns. All tuples of one layout have the same parts.
pub struct TupleLayout {
    pub(super) fields: Vec<TupleField>,
    /// For each column of the rows, its field; keys have none.
    field_of: Vec<Option<usize>>,
    pub(super) codes: TupleCodes,
    /// Where part 2 starts.
    pub(super) codes_at: usize,
    /// Bytes of parts 1 to 3.
    pub(super) fixed: usize,
    /// The most bytes of a tuple; most tuples have nearly as many.
    pub(crate) longest: usize,
}

/// One column in a tuple.
pub(super) struct TupleField {
    /// The column of the rows.
    pub column: usize,
    pub physical: PhysicalType,
    pub nullable: bool,
    pub form: FieldForm,
}

/// How a value is held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FieldForm {
    /// Part 1: a distance of `width` bytes; `null` stands for NULL.
    Fixed { at: usize, width: usize, frame: IntegerFrame, null: Option<u64> },
    /// Part 3: unchanged; a code tells whether it is NULL.
    Plain { at: usize, code: Option<usize> },
    /// Part 4: a distance without its leading zeros.
    Short { code: usize, frame: IntegerFrame },
    /// Part 4: a double, or the float that is equal to it.
    Double { code: usize },
    /// Part 4: the length without its leading zeros. Part 5: the rest of the view.
    Text { code: usize },
}

impl FieldForm {
    /// The code of a length in part 4.
    pub fn length_code(&self) -> Option<usize> {
        match *self {
            FieldForm::Fixed { .. } | FieldForm::Plain { .. } => None,
            FieldForm::Short { code, .. } | FieldForm::Double { code } | FieldForm::Text { code } => {
                Some(code)
            }
        }
    }
}

/// How integers become small unsigned numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum IntegerFrame {
    /// The distance from the least value.
    From(i128),
    /// 0, -1, 1, -2, … are 0, 1, 2, 3, …
    ZigZag,
}

impl TupleLayout {
    /// The layout of the columns that are not keys; `None` if there are none, or too many for a tuple.
    pub fn new(columns: &[ColumnMeta], is_key: &[bool]) -> Option<TupleLayout> {
        let mut lengths: Vec<Vec<u8>> = Vec::new();
        let mut code = |lengths_of: Vec<u8>| {
            lengths.push(lengths_of);
            lengths.len() - 1
        };
        let (mut fixed, mut plain) = (0, 0);
        let mut fields = Vec::new();
        let mut field_of = vec![None; columns.len()];
        for (column, meta) in columns.iter().enumerate().filter(|(column, _)| !is_key[*column]) {
            let nullable = meta.nullable;
            let form = match form_of(meta) {
                Wish::Fixed { width, frame, null } => {
                    fixed += width;
                    FieldForm::Fixed { at: fixed - width, width, frame, null }
                }
                Wish::Plain => {
                    plain += meta.physical.width();
                    // Both codes mean that part 4 has nothing.
                    FieldForm::Plain {
                        at: plain - meta.physical.width(),
                        code: nullable.then(|| code(vec![0, 0])),
                    }
                }
                Wish::Short { lengths, frame } => {
                    FieldForm::Short { code: code(with_null(lengths, nullable)), frame }
                }
                Wish::Double => FieldForm::Double { code: code(with_null(vec![4, 8], nullable)) },
                Wish::Text => FieldForm::Text { code: code(with_null(vec![1, 2, 3, 4], nullable)) },
            };
            field_of[column] = Some(fields.len());
            fields.push(TupleField { column, physical: meta.physical, nullable, form });
        }
        let codes = TupleCodes::new(lengths);
        let codes_at = fixed;
        let plain_at = codes_at + codes.bytes();
        let mut texts = 0;
        for field in &mut fields {
            match &mut field.form {
                FieldForm::Plain { at, .. } => *at += plain_at,
                FieldForm::Text { .. } => texts += 1,
                _ => {}
            }
        }
        let fixed = plain_at + plain;
        let longest = fixed + codes.longest() + texts * BODY_BYTES;
        let fits = longest <= LONGEST_TUPLE && !fields.is_empty();
        fits.then_some(TupleLayout { fields, field_of, codes, codes_at, fixed, longest })
    }

    /// The field that holds a column of the rows; `None` for a key.
    pub(crate) fn field_of(&self, column: usize) -> Option<usize> {
        self.field_of[column]
    }

    /// The columns of the rows that tuples hold.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.fields.iter().map(|field| field.column)
    }

    /// For each of [`TupleLayout::columns`], whether it may have NULLs.
    pub(crate) fn nullable(&self) -> impl Iterator<Item = bool> + '_ {
        self.fields.iter().map(|field| field.nullable)
    }

    /// True if all tuples are equally long.
    pub(super) fn is_fixed(&self) -> bool {
        self.longest == self.fixed
    }

    /// The codes of the strings' lengths, in the order of the strings.
    pub(super) fn texts(&self) -> impl Iterator<Item = usize> + '_ {
        self.fields.iter().filter_map(|field| match field.form {
            FieldForm::Text { code } => Some(code),
            _ => None,
        })
    }
}

/// A [`FieldForm`] before its place is known.
enum Wish {
    Fixed { width: usize, frame: IntegerFrame, null: Option<u64> },
    Plain,
    Short { lengths: Vec<u8>, frame: IntegerFrame },
    Double,
    Text,
}

fn with_null(mut lengths: Vec<u8>, nullable: bool) -> Vec<u8> {
    if nullable {
        lengths.insert(0, 0);
    }
    lengths
}

/// Bytes that `value` needs.
fn bytes_of(value: u128) -> usize {
    (128 - value.leading_zeros()).div_ceil(8) as usize
}

/// The smallest and the largest value that a column of integers may have.
pub(crate) fn range_of(meta: &ColumnMeta) -> Option<(i128, i128)> {
    use PhysicalType as P;
    let (least, most) = match meta.physical {
        P::Bool => (0, 1),
        P::I8 => (i8::MIN.into(), i8::MAX.into()),
        P::I16 => (i16::MIN.into(), i16::MAX.into()),
        P::I32 => (i32::MIN.into(), i32::MAX.into()),
        P::I64 => (i64::MIN.into(), i64::MAX.into()),
        P::U8 => (0, u8::MAX.into()),
        P::U16 => (0, u16::MAX.into()),
        P::U32 => (0, u32::MAX.into()),
        P::U64 => (0, u64::MAX.into()),
        // The bits of a UUID are random.
        P::I128 if meta.ty != DataType::Uuid => (i128::MIN, i128::MAX),
        _ => return None,
    };
    let (min, max) = meta.range.unwrap_or((least, most));
    let (min, max) = (min.max(least), max.min(most));
    // A range without values: all values are NULL.
    Some(if min <= max { (min, max) } else { (0, 0) })
}

fn form_of(meta: &ColumnMeta) -> Wish {
    match meta.physical {
        PhysicalType::F64 => return Wish::Double,
        PhysicalType::Str => return Wish::Text,
        _ => {}
    }
    let Some((min, max)) = range_of(meta) else { return Wish::Plain };
    let span = max.wrapping_sub(min) as u128;
    let width = bytes_of(span.saturating_add(meta.nullable.into()));
    if width <= MOST_FIXED && width <= meta.physical.width() {
        let null = meta.nullable.then_some(span as u64 + 1);
        return Wish::Fixed { width, frame: IntegerFrame::From(min), null };
    }
    if meta.physical.width() <= MOST_FIXED {
        return Wish::Plain;
    }
    // Zigzag makes values around zero short but may cost a bit, so it is used only if the longest values do
    // not become longer.
    let farthest = (max.max(0) as u128 * 2).max(min.unsigned_abs().saturating_sub(1) * 2 + 1);
    let frame = if min < 0 && bytes_of(farthest) <= bytes_of(span) {
        IntegerFrame::ZigZag
    } else {
        IntegerFrame::From(min)
    };
    let longest = bytes_of(span) as u8;
    let lengths = match longest {
        0..=4 => (1..=longest.max(1)).collect(),
        5..=8 => vec![1, 2, 4, longest],
        _ => vec![4, 6, 8, longest],
    };
    Wish::Short { lengths, frame }
}
