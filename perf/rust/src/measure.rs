//! The workloads.

use crate::log::{Log, Result, Sink};
use crate::request::{next, Request};
use std::time::{Duration, Instant};

const PULL_COUNT: usize = 32;
const TURNS_BETWEEN_LOOKS: u32 = 64;

/// Runs the workload of a request and returns the sample as JSON.
pub fn run(log: &mut dyn Log, request: &Request) -> Result<String> {
    match request.workload.as_str() {
        "write" => write(log, request),
        "pull" | "random" => read(log, request),
        other => Err(format!("no workload is called {other}").into()),
    }
}

fn write(log: &mut dyn Log, request: &Request) -> Result<String> {
    let bodies = request.bodies();
    let before = write_for(log, &bodies, request, request.warm_up_seconds, request.max_bytes / 4)?;
    let watch = Watch::new();
    let written = write_for(log, &bodies, request, request.seconds, request.max_bytes)?;
    let sample = watch.sample(written);
    check(before + written, log.count()?, "messages after writing")?;
    Ok(sample)
}

fn write_for(
    log: &mut dyn Log,
    bodies: &[Vec<u8>],
    request: &Request,
    seconds: f64,
    max_bytes: u64,
) -> Result<u64> {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let turns = if request.is_durable || bodies.len() > 1 { 1 } else { TURNS_BETWEEN_LOOKS };
    let mut written = 0;
    while written == 0 || (Instant::now() < end && written * (request.body_bytes as u64) < max_bytes) {
        for _ in 0..turns {
            log.append(bodies)?;
        }
        written += u64::from(turns) * bodies.len() as u64;
    }
    Ok(written)
}

fn read(log: &mut dyn Log, request: &Request) -> Result<String> {
    let bodies = request.bodies();
    let mut held = 0;
    while held < request.message_count {
        log.append(&bodies)?;
        held += bodies.len() as u64;
    }
    check(held, log.count()?, "messages after filling")?;
    let mut reader = Reader { sink: Sink::new(request.read), held, place: 0, state: 1 };
    let is_random = request.workload == "random";
    reader.read_for(log, is_random, request.warm_up_seconds)?;
    let watch = Watch::new();
    let found = reader.read_for(log, is_random, request.seconds)?;
    Ok(watch.sample(found))
}

struct Reader {
    sink: Sink,
    held: u64,
    place: u64,
    state: u64,
}

impl Reader {
    fn read_for(&mut self, log: &mut dyn Log, is_random: bool, seconds: f64) -> Result<u64> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let wanted = if is_random { 1 } else { PULL_COUNT };
        let mut found = 0;
        while Instant::now() < end || found == 0 {
            for _ in 0..TURNS_BETWEEN_LOOKS {
                if is_random {
                    self.state = next(self.state.wrapping_add(0x9E37_79B9_7F4A_7C15));
                    self.place = self.state % self.held;
                } else if self.place + wanted as u64 > self.held {
                    self.place = 0;
                }
                let got = log.read(self.place, wanted, &mut self.sink)?;
                check(wanted as u64, got as u64, "messages read")?;
                found += got as u64;
                self.place += got as u64;
            }
        }
        check(true, self.sink.seen > 0, "bytes were read")?;
        Ok(found)
    }
}

fn check<T: PartialEq + std::fmt::Display>(expected: T, found: T, what: &str) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(format!("{what}: expected {expected}, found {found}").into())
}

/// Wall and CPU time since it was made.
struct Watch {
    wall: Instant,
    cpu_s: f64,
}

impl Watch {
    fn new() -> Watch {
        Watch { wall: Instant::now(), cpu_s: cpu_seconds() }
    }

    fn sample(&self, operations: u64) -> String {
        let wall_s = self.wall.elapsed().as_secs_f64();
        let cpu_s = cpu_seconds() - self.cpu_s;
        format!("{{\"operations\":{operations},\"wall_s\":{wall_s:.6},\"cpu_s\":{cpu_s:.6}}}")
    }
}

fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it fills the struct that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
