//! The request, as the harness makes it.

use crate::log::{Read, Result};
use std::collections::HashMap;
use std::path::PathBuf;

const MIN_RAGGED_BYTES: usize = 64;
const MAX_RAGGED_BYTES: usize = 2048;
const RAGGED_STEP: usize = 7919;

pub struct Request {
    pub log: String,
    pub dir: PathBuf,
    pub workload: String,
    pub body_bytes: usize,
    pub batch_size: usize,
    pub message_count: u64,
    pub is_ragged: bool,
    pub is_durable: bool,
    pub read: Read,
    pub seconds: f64,
    pub warm_up_seconds: f64,
    pub max_bytes: u64,
}

impl Request {
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Request> {
        let mut given = HashMap::new();
        for argument in arguments {
            let (name, value) = argument.split_once('=').ok_or("an argument is name=value")?;
            given.insert(name.to_owned(), value.to_owned());
        }
        let text = |name: &str| given.get(name).cloned().ok_or(format!("{name} is missing"));
        let read = match text("read")?.as_str() {
            "view" => Read::View,
            "copy" => Read::Copy,
            "own" => Read::Own,
            other => return Err(format!("nothing is read as {other}").into()),
        };
        Ok(Request {
            log: text("log")?,
            dir: PathBuf::from(text("dir")?),
            workload: text("workload")?,
            body_bytes: text("body_bytes")?.parse()?,
            batch_size: text("batch_size")?.parse()?,
            message_count: text("message_count")?.parse()?,
            is_ragged: text("ragged")?.parse()?,
            is_durable: text("sync")?.parse()?,
            read,
            seconds: text("seconds")?.parse()?,
            warm_up_seconds: text("warm_up_seconds")?.parse()?,
            max_bytes: text("max_bytes")?.parse()?,
        })
    }

    /// Returns the bodies of a batch, of the lengths that `perf/plan/bodies.py` gives them.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        let span = MAX_RAGGED_BYTES - MIN_RAGGED_BYTES + 1;
        (0..self.batch_size)
            .map(|number| match self.is_ragged {
                true => noise(MIN_RAGGED_BYTES + number * RAGGED_STEP % span),
                false => noise(self.body_bytes),
            })
            .collect()
    }
}

/// Returns bytes that nobody can make shorter: an xorshift from a seed that is always the same.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    (0..size)
        .map(|_| {
            state = next(state);
            (state >> 32) as u8
        })
        .collect()
}

pub fn next(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ (state << 17)
}
