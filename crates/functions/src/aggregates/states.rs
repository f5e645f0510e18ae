//! Accumulators for any number of groups, as the engine sees them.

use super::accumulator::{Accumulator, Call};
use super::kind::Kind;
use super::{distinct, order, pairs, simple, statistics};
use crate::definition::row::{Argument, Row};
use crate::time_zone::TimeZone;
use entasis_vector::aggregate::{ExternalAggregate, GroupStates};
use entasis_vector::meter::Meter;
use entasis_vector::statement::{self, Growth, Looks, STEP};
use entasis_vector::vector::uuid_to_ordered;
use entasis_vector::{CHUNK_ROWS, DataType, Error, Result, Value, Vector};
use std::any::Any;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Bytes of a state whose memory is given back on its own.
const LARGE: usize = 128 << 10;

impl ExternalAggregate for Call {
    fn name(&self) -> &str {
        &self.name
    }

    fn decisive(&self, count: usize) -> Option<RangeInclusive<usize>> {
        matches!(self.kind, Kind::Median).then(|| (count - 1) / 2..=count / 2)
    }

    fn state(&self) -> Result<Box<dyn GroupStates>> {
        fn of<A: Accumulator>(call: &Call) -> Box<dyn GroupStates> {
            Box::new(States::<A> { call: Arc::new(call.clone()), groups: Vec::new(), grown: 0 })
        }
        Ok(match self.kind {
            Kind::First => of::<order::First>(self),
            Kind::Last => of::<order::Last>(self),
            Kind::Extreme { nulls: false, .. } => of::<order::Extreme<false>>(self),
            Kind::Extreme { nulls: true, .. } => of::<order::Extreme<true>>(self),
            Kind::Mode | Kind::Entropy => of::<order::Counts>(self),
            Kind::Quantile { .. } | Kind::Median | Kind::Deviation => of::<order::Sorted>(self),
            Kind::CountIf => of::<simple::CountIf>(self),
            Kind::Product => of::<simple::Product>(self),
            Kind::Mean | Kind::Span => of::<simple::Mean>(self),
            Kind::BitAnd | Kind::BitOr | Kind::BitXor => of::<simple::Bits>(self),
            Kind::Join => of::<simple::Join>(self),
            Kind::List => of::<simple::Listed>(self),
            Kind::ExactSum | Kind::ExactMean | Kind::WeightedMean => of::<statistics::Sums>(self),
            Kind::GeometricMean => of::<statistics::Logarithms>(self),
            Kind::Skewness
            | Kind::Kurtosis
            | Kind::KurtosisOfAll
            | Kind::StandardError
            | Kind::Variance { .. } => of::<statistics::Moments>(self),
            Kind::Covariance { .. } | Kind::Correlation | Kind::Line(_) => of::<pairs::Pairs>(self),
            Kind::Distinct => of::<distinct::Registers>(self),
        })
    }
}

struct States<A> {
    call: Arc<Call>,
    groups: Vec<A>,
    /// Bytes besides the accumulators' own size.
    grown: usize,
}

impl<A: Accumulator> States<A> {
    fn has(&mut self, group_count: usize) {
        if self.groups.len() < group_count {
            self.groups.resize_with(group_count, A::default);
        }
    }
}

impl<A: Accumulator> GroupStates for States<A> {
    fn update(&mut self, args: &[Vector], groups: &[u32], rows: usize, group_count: usize) -> Result<()> {
        self.has(group_count);
        let call = self.call.clone();
        let mut growth = Growth::default();
        let args: Vec<Argument<'_>> =
            args.iter().zip(&call.args).map(|(arg, ty)| Argument::new(arg, *ty)).collect();
        for (at, group) in groups[..rows].iter().enumerate() {
            // No aggregate depends on the zone.
            let row = Row { args: &args, at, result: call.result, zone: TimeZone::UTC };
            if A::TAKES_NULLS || !row.has_null() {
                let own = &mut self.groups[*group as usize];
                let before = own.held();
                own.add(&call, &row)?;
                let after = own.held();
                self.grown = self.grown - before + after;
                growth.add(after.saturating_sub(before))?;
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn GroupStates>, map: &[u32], group_count: usize) -> Result<()> {
        self.has(group_count);
        let other = other.into_any().downcast::<States<A>>();
        let other = other.map_err(|_| Error::internal("states of two different aggregates were merged"))?;
        let (mut growth, mut looks) = (Growth::default(), Looks::default());
        for (theirs, own) in other.groups.into_iter().zip(map) {
            let own = &mut self.groups[*own as usize];
            let (before, freed) = (own.held(), theirs.held());
            looks.after(freed)?;
            own.merge(&self.call, theirs)?;
            let after = own.held();
            self.grown = self.grown - before + after;
            growth.add(after.saturating_sub(before + freed))?;
        }
        Ok(())
    }

    fn add_copies(
        &mut self,
        other: &dyn GroupStates,
        ids: &[u32],
        map: &[u32],
        group_count: usize,
    ) -> Result<bool> {
        self.has(group_count);
        let other = other.as_any().and_then(|other| other.downcast_ref::<States<A>>());
        let other = other.ok_or_else(|| Error::internal("states of two different aggregates were merged"))?;
        let mut growth = Growth::default();
        for (at, (&id, &own)) in ids.iter().zip(map).enumerate() {
            if at % CHUNK_ROWS == 0 {
                statement::check()?;
            }
            if let Some(theirs) = other.groups.get(id as usize) {
                let own = &mut self.groups[own as usize];
                let before = own.held();
                own.merge(&self.call, theirs.clone())?;
                let after = own.held();
                self.grown = self.grown - before + after;
                // A state may be as large as all of its input.
                growth.add(after.saturating_sub(before))?;
            }
        }
        Ok(true)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn finish(&mut self, start: usize, rows: usize, out: &mut Vector) -> Result<()> {
        out.begin(rows.max(CHUNK_ROWS));
        statement::check()?;
        let call = self.call.clone();
        let (mut meter, mut looks) = (Meter::default(), Looks::default());
        for at in 0..rows {
            let value = match self.groups.get_mut(start + at) {
                Some(group) => {
                    let before = group.held();
                    looks.after(before)?;
                    // The result is made while the state is there.
                    let _beside = if before >= STEP { statement::reserve(before)? } else { None };
                    let value = group.result(&call)?;
                    // Small pieces of memory are not given back one by one.
                    if before >= LARGE {
                        self.grown = self.grown - before + group.held();
                    }
                    value
                }
                // No row was added to it here.
                None => A::default().result(&call)?,
            };
            if let Some(bytes) = value.bytes() {
                meter.ask(bytes, out.strings_mut().heap)?;
            }
            match (value, call.result) {
                (Value::Integer(v), DataType::Uuid) => {
                    out.write_value(at, &Value::Integer(uuid_to_ordered(v)))?
                }
                (value, _) => out.write_value(at, &value)?,
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<A>() + self.grown
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
