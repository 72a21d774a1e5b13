//! The crate `commitlog`: segments of 1 GB with an index entry and a CRC-32C for each message.
//!
//! Its `flush` does not sync the segment: it calls `File::flush`, which does nothing. Therefore it has no row on the
//! disk.

use crate::log::{Log, Result, Sink};
use crate::request::Request;
use commitlog::message::{MessageBuf, MessageSet};
use commitlog::{CommitLog, LogOptions, ReadLimit};

const HEAD_BYTES: usize = 20;
/// A head and the longest body that a bench has.
const MAX_MESSAGE_BYTES: usize = HEAD_BYTES + 2048;

pub struct Commit {
    log: CommitLog,
    batch: MessageBuf,
    message_bytes: usize,
}

impl Commit {
    pub fn open(request: &Request) -> Result<Commit> {
        let mut options = LogOptions::new(&request.dir);
        options.message_max_bytes(request.batch_size * MAX_MESSAGE_BYTES);
        if request.is_durable {
            return Err("commitlog does not sync".into());
        }
        let message_bytes = HEAD_BYTES + request.body_bytes;
        Ok(Commit { log: CommitLog::new(options)?, batch: MessageBuf::default(), message_bytes })
    }
}

impl Log for Commit {
    fn append(&mut self, bodies: &[Vec<u8>]) -> Result<()> {
        self.batch.clear();
        for body in bodies {
            self.batch.push(body).map_err(|error| format!("{error:?}"))?;
        }
        self.log.append(&mut self.batch)?;
        Ok(())
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.log.next_offset())
    }

    fn read(&mut self, place: u64, wanted: usize, sink: &mut Sink) -> Result<usize> {
        // What it gives is shorter than the limit.
        let found = self.log.read(place, ReadLimit::max_bytes(wanted * self.message_bytes + 1))?;
        for message in found.iter() {
            sink.take(message.payload());
        }
        Ok(found.len())
    }
}
