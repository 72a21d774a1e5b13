//! The crate `walrus-rust`: blocks of 10 MB with an FNV-1a for each message.
//!
//! Its reader has one place, which goes on only; what it read cannot be read again. Therefore it writes only,
//! and what it wrote is counted in the end.

use crate::log::{Log, Result, Sink};
use crate::request::Request;
use walrus_rust::{FsyncSchedule, ReadConsistency, Walrus};

const TOPIC: &str = "bench";
const READ_BYTES: usize = 4 << 20;

pub struct Wal {
    log: Walrus,
}

impl Wal {
    pub fn open(request: &Request) -> Result<Wal> {
        // It takes its directory, and whether it prints what it does, from the environment.
        std::env::set_var("WALRUS_DATA_DIR", &request.dir);
        std::env::set_var("WALRUS_QUIET", "1");
        let schedule = match request.is_durable {
            true => FsyncSchedule::SyncEach,
            false => FsyncSchedule::NoFsync,
        };
        let reads = ReadConsistency::AtLeastOnce { persist_every: u32::MAX };
        Ok(Wal { log: Walrus::with_consistency_and_schedule(reads, schedule)? })
    }
}

impl Log for Wal {
    fn append(&mut self, bodies: &[Vec<u8>]) -> Result<()> {
        match bodies {
            [body] => self.log.append_for_topic(TOPIC, body)?,
            _ => {
                let slices: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
                self.log.batch_append_for_topic(TOPIC, &slices)?;
            }
        }
        Ok(())
    }

    fn count(&mut self) -> Result<u64> {
        let mut count = 0;
        loop {
            match self.log.batch_read_for_topic(TOPIC, READ_BYTES, true)?.len() {
                0 => return Ok(count),
                found => count += found as u64,
            }
        }
    }

    fn read(&mut self, _place: u64, _wanted: usize, _sink: &mut Sink) -> Result<usize> {
        Err("walrus cannot read at a place".into())
    }
}
