//! The crate `fjall`: a tree of sorted tables with a journal, used as a log whose keys are the offsets.

use crate::log::{Log, Result, Sink};
use crate::request::Request;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

pub struct Lsm {
    database: Database,
    log: Keyspace,
    next: u64,
    is_durable: bool,
}

impl Lsm {
    pub fn open(request: &Request) -> Result<Lsm> {
        let database = Database::builder(&request.dir).open()?;
        let log = database.keyspace("log", KeyspaceCreateOptions::default)?;
        Ok(Lsm { database, log, next: 0, is_durable: request.is_durable })
    }
}

impl Log for Lsm {
    fn append(&mut self, bodies: &[Vec<u8>]) -> Result<()> {
        match bodies {
            [body] => self.log.insert(self.next.to_be_bytes(), body.as_slice())?,
            _ => {
                let mut batch = self.database.batch();
                for (number, body) in (self.next..).zip(bodies) {
                    batch.insert(&self.log, number.to_be_bytes(), body.as_slice());
                }
                batch.commit()?;
            }
        }
        self.next += bodies.len() as u64;
        if self.is_durable {
            self.database.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.log.len()? as u64)
    }

    fn read(&mut self, place: u64, wanted: usize, sink: &mut Sink) -> Result<usize> {
        let key = place.to_be_bytes();
        if wanted == 1 {
            let found = self.log.get(key)?;
            found.iter().for_each(|body| sink.take(body));
            return Ok(usize::from(found.is_some()));
        }
        let mut found = 0;
        for entry in self.log.range(key..).take(wanted) {
            sink.take(&entry.value()?);
            found += 1;
        }
        Ok(found)
    }
}
