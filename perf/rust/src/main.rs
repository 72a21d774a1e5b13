//! Measures a log in Rust in its own process, one thread, one queue.
//!
//! The arguments are the request, `name=value` each; the answer is a line of JSON. Workloads: `write`, `pull` (32
//! messages a turn, from start to end again and again) and `random` (one message anywhere). Each measures after a
//! warm-up phase, and checks what it did.

mod commit_log;
mod fjall_log;
mod log;
mod measure;
mod request;
mod walrus_log;

use log::{Log, Result};
use request::Request;

fn main() -> Result<()> {
    let request = Request::parse(std::env::args().skip(1))?;
    let mut log: Box<dyn Log> = match request.log.as_str() {
        "commitlog" => Box::new(commit_log::Commit::open(&request)?),
        "walrus" => Box::new(walrus_log::Wal::open(&request)?),
        "fjall" => Box::new(fjall_log::Lsm::open(&request)?),
        other => return Err(format!("no log is called {other}").into()),
    };
    let sample = measure::run(log.as_mut(), &request)?;
    println!("{sample}");
    Ok(())
}
