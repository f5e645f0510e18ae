//! The slow twin: one tuple at a time, field by field, adding up lengths one by one (the naive algorithm of
//! section 3.3.3). It shares the layout with the fast code, but not the tables. Values are the bits of their
//! physical types.

use super::layout::{BODY_BYTES, FieldForm, IntegerFrame, TupleField, TupleLayout};
use entasis_vector::PhysicalType;

/// The value as a signed number.
fn signed(physical: PhysicalType, bits: u128) -> i128 {
    use PhysicalType as P;
    match physical {
        P::I8 => (bits as i8).into(),
        P::I16 => (bits as i16).into(),
        P::I32 => (bits as i32).into(),
        P::I64 => (bits as i64).into(),
        _ => bits as i128,
    }
}

fn enter(frame: IntegerFrame, value: i128) -> u128 {
    match frame {
        IntegerFrame::From(min) => value.wrapping_sub(min) as u128,
        IntegerFrame::ZigZag if value < 0 => (-(value + 1)) as u128 * 2 + 1,
        IntegerFrame::ZigZag => value as u128 * 2,
    }
}

fn leave(frame: IntegerFrame, number: u128) -> i128 {
    match frame {
        IntegerFrame::From(min) => min.wrapping_add(number as i128),
        IntegerFrame::ZigZag if number % 2 == 1 => -((number / 2) as i128) - 1,
        IntegerFrame::ZigZag => (number / 2) as i128,
    }
}

/// The number that a field of varying length holds.
fn number_of(field: &TupleField, bits: u128) -> u128 {
    match field.form {
        FieldForm::Short { frame, .. } => enter(frame, signed(field.physical, bits)),
        FieldForm::Double { .. } => {
            let double = f64::from_bits(bits as u64);
            let same = !double.is_nan() && f64::from(double as f32).to_bits() == double.to_bits();
            if same { u128::from((double as f32).to_bits()) } else { bits }
        }
        _ => u128::from(bits as u32),
    }
}

fn code_of(field: &TupleField) -> Option<usize> {
    match field.form {
        FieldForm::Fixed { .. } => None,
        FieldForm::Plain { code, .. } => code,
        FieldForm::Short { code, .. } | FieldForm::Double { code } | FieldForm::Text { code } => Some(code),
    }
}

/// The index in `lengths` of a value's length.
fn code_for(field: &TupleField, lengths: &[u8], bits: Option<u128>) -> usize {
    let Some(bits) = bits else { return 0 };
    let first = usize::from(field.nullable);
    let number = number_of(field, bits);
    let needed = match field.form {
        FieldForm::Plain { .. } => return 1,
        FieldForm::Double { .. } if number >> 32 > 0 || f64::from_bits(bits as u64).is_nan() => 8,
        FieldForm::Double { .. } => 4,
        _ => (0..16).find(|&bytes| number >> (8 * bytes) == 0).unwrap_or(16),
    };
    // A double whose low half is zeros is not a float for that reason.
    let needed = if matches!(field.form, FieldForm::Double { .. }) && number == bits && number != 0 {
        8
    } else {
        needed
    };
    (first..lengths.len()).find(|&code| lengths[code] as usize >= needed).unwrap()
}

/// One row as a tuple.
pub fn encode(layout: &TupleLayout, row: &[Option<u128>]) -> Vec<u8> {
    let mut tuple = vec![0; layout.fixed];
    for (field, bits) in layout.fields.iter().zip(row) {
        match field.form {
            FieldForm::Fixed { at, width, frame, null } => {
                let number = bits
                    .map_or_else(|| null.unwrap().into(), |bits| enter(frame, signed(field.physical, bits)));
                tuple[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
            }
            FieldForm::Plain { at, .. } => {
                let width = field.physical.width();
                tuple[at..at + width].copy_from_slice(&bits.unwrap_or(0).to_le_bytes()[..width]);
            }
            _ => {}
        }
        if let Some(code) = code_of(field) {
            let code = layout.codes.code(code);
            tuple[layout.codes_at + code.byte] |= (code_for(field, &code.lengths, *bits) as u8) << code.shift;
        }
    }
    for &code in layout.codes.order() {
        let i = layout.fields.iter().position(|field| code_of(field) == Some(code)).unwrap();
        let (field, code) = (&layout.fields[i], layout.codes.code(code));
        let length = code.lengths[code_for(field, &code.lengths, row[i])] as usize;
        tuple.extend(&number_of(field, row[i].unwrap_or(0)).to_le_bytes()[..length]);
    }
    for (field, bits) in layout.fields.iter().zip(row) {
        if let (FieldForm::Text { .. }, Some(bits)) = (field.form, bits) {
            let length = (*bits as u32 as usize).min(BODY_BYTES);
            tuple.extend(&bits.to_le_bytes()[4..4 + length]);
        }
    }
    tuple
}

/// The start and length of a code's field: adds up the lengths of all fields before it.
fn place(layout: &TupleLayout, tuple: &[u8], wanted: usize) -> (usize, usize) {
    let mut at = layout.fixed;
    for &i in layout.codes.order() {
        let code = layout.codes.code(i);
        let bits = (code.lengths.len() as f64).log2().ceil() as u32;
        let index = tuple[layout.codes_at + code.byte] >> code.shift & ((1u32 << bits) - 1) as u8;
        let length = code.lengths[index as usize] as usize;
        if i == wanted {
            return (at, length);
        }
        at += length;
    }
    (at, 0)
}

fn load(tuple: &[u8], at: usize, length: usize) -> u128 {
    tuple[at..at + length].iter().rev().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

/// One field of a tuple.
pub fn decode(layout: &TupleLayout, tuple: &[u8], wanted: usize) -> Option<u128> {
    let field = &layout.fields[wanted];
    let cut = |value: i128| value as u128 & (u128::MAX >> (128 - 8 * field.physical.width()));
    match field.form {
        FieldForm::Fixed { at, width, frame, null } => {
            let number = load(tuple, at, width);
            (null.map(u128::from) != Some(number)).then(|| cut(leave(frame, number)))
        }
        FieldForm::Plain { at, code } => {
            let is_null = code.is_some_and(|code| {
                let code = layout.codes.code(code);
                tuple[layout.codes_at + code.byte] >> code.shift & 1 == 0
            });
            (!is_null).then(|| load(tuple, at, field.physical.width()))
        }
        FieldForm::Short { code, frame } => match place(layout, tuple, code) {
            (_, 0) => None,
            (at, length) => Some(cut(leave(frame, load(tuple, at, length)))),
        },
        FieldForm::Double { code } => match place(layout, tuple, code) {
            (_, 0) => None,
            (at, 4) => Some(u128::from(f64::from(f32::from_bits(load(tuple, at, 4) as u32)).to_bits())),
            (at, length) => Some(load(tuple, at, length)),
        },
        FieldForm::Text { code } => {
            let (at, length) = place(layout, tuple, code);
            if length == 0 {
                return None;
            }
            let end = usize::MAX;
            let mut body = place(layout, tuple, end).0;
            for field in &layout.fields[..wanted] {
                if let FieldForm::Text { code } = field.form {
                    let (at, length) = place(layout, tuple, code);
                    body += (load(tuple, at, length) as usize).min(BODY_BYTES);
                }
            }
            let length = load(tuple, at, length);
            Some(length | load(tuple, body, (length as usize).min(BODY_BYTES)) << 32)
        }
    }
}
