//! What the workloads need of a log.

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What is done with a body that was read.
#[derive(Clone, Copy, PartialEq)]
pub enum Read {
    /// Its length is asked for.
    View,
    /// Its bytes go into one buffer, which is used again.
    Copy,
    /// It becomes a vector of its own.
    Own,
}

/// Takes bodies that were read. `seen` makes it impossible to leave the reading out.
pub struct Sink {
    how: Read,
    buffer: Vec<u8>,
    pub seen: u64,
}

impl Sink {
    pub fn new(how: Read) -> Sink {
        Sink { how, buffer: Vec::new(), seen: 0 }
    }

    pub fn take(&mut self, body: &[u8]) {
        self.seen += body.len() as u64;
        match self.how {
            Read::View => {}
            Read::Copy => {
                self.buffer.clear();
                self.buffer.extend_from_slice(body);
                self.seen += u64::from(std::hint::black_box(&self.buffer)[body.len() - 1]);
            }
            Read::Own => {
                let own = std::hint::black_box(body.to_vec());
                self.seen += u64::from(own[own.len() - 1]);
            }
        }
    }
}

/// A log whose messages are numbered from 0. It starts empty.
pub trait Log {
    /// Appends one message or a batch; on the disk when it returns if that was asked for.
    fn append(&mut self, bodies: &[Vec<u8>]) -> Result<()>;

    /// Returns how many messages it holds.
    fn count(&mut self) -> Result<u64>;

    /// Hands over `wanted` messages from a place on; returns how many there were.
    fn read(&mut self, place: u64, wanted: usize, sink: &mut Sink) -> Result<usize>;
}
