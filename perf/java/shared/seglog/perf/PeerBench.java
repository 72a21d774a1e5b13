package seglog.perf;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.function.IntSupplier;

/**
 * Measures a peer in its own process, one thread, one queue.
 *
 * <p>Each line on standard input is a request, {@code name=value} with spaces between; each answer is
 * a line of JSON. Workloads: {@code write}, {@code pull} (32 messages a turn, from start to end again
 * and again) and {@code random} (one message anywhere). Each measures after a warm-up phase.
 */
final class PeerBench {
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
  private static final int PULL_COUNT = 32;
  private static final int TURNS_BETWEEN_LOOKS = 32;
  private static final int MIN_RAGGED_BYTES = 64;
  private static final int MAX_RAGGED_BYTES = 2048;
  private static final int RAGGED_STEP = 7919;

  /** Opens a log in an empty directory. */
  @FunctionalInterface
  interface Opener {
    /** Returns a log that is on the disk after each append if it is durable. */
    PeerLog open(String directory, boolean isDurable, boolean isLoop) throws Exception;
  }

  private final Map<String, String> request;
  private String answer;

  private PeerBench(Map<String, String> request) {
    this.request = request;
  }

  /** Answers requests until standard input ends, each over a log of its own. */
  static void serve(Opener opener) throws Exception {
    BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      Map<String, String> request = new HashMap<>();
      for (String pair : line.split(" ")) {
        String[] parts = pair.split("=", 2);
        request.put(parts[0], parts[1]);
      }
      new PeerBench(request).run(opener);
    }
    Runtime.getRuntime().halt(0);
  }

  private void run(Opener opener) throws Exception {
    boolean isDurable = flag("sync");
    try (PeerLog log = opener.open(request.get("dir"), isDurable, flag("loop"))) {
      byte[][] bodies = bodies();
      switch (request.get("workload")) {
        case "write" -> write(log, bodies, isDurable);
        case "pull", "random" -> read(log, bodies);
        default -> throw new IllegalArgumentException(request.get("workload"));
      }
    }
    // Only now: who reads it removes the log's directory.
    System.out.println(answer);
    System.out.flush();
  }

  private void write(PeerLog log, byte[][] bodies, boolean isDurable) {
    int turns = bodies.length == 1 && !isDurable ? TURNS_BETWEEN_LOOKS : 1;
    IntSupplier turn = () -> log.append(bodies);
    long before = repeat(turn, turns, number("warm_up_seconds"));
    boolean isTimed = flag("timed");
    if (isTimed) {
      timeEach(log, bodies[0], (int) number("message_count"));
      return;
    }
    long wall = System.nanoTime();
    long cpu = SYSTEM.getProcessCpuTime();
    long written = repeat(turn, turns, number("seconds"));
    if (log.count() != before + written) {
      throw new IllegalStateException(log.count() + " messages, not " + (before + written));
    }
    answer(written, wall, cpu, "");
  }

  private void timeEach(PeerLog log, byte[] body, int count) {
    long[] taken = new long[count];
    byte[][] one = {body};
    long wall = System.nanoTime();
    long cpu = SYSTEM.getProcessCpuTime();
    for (int number = 0; number < count; number++) {
      long begun = System.nanoTime();
      log.append(one);
      taken[number] = System.nanoTime() - begun;
    }
    answer(count, wall, cpu, Percentiles.json(taken));
  }

  private void read(PeerLog log, byte[][] bodies) {
    long count = (long) number("message_count");
    while (log.count() < count) {
      log.append(bodies);
    }
    boolean isView = flag("view");
    Random random = new Random(1);
    long end = log.count();
    IntSupplier turn =
        request.get("workload").equals("random")
            ? () -> log.read(random.nextLong(end), 1, isView)
            : () -> log.readOn(PULL_COUNT, isView);
    repeat(turn, TURNS_BETWEEN_LOOKS, number("warm_up_seconds"));
    long wall = System.nanoTime();
    long cpu = SYSTEM.getProcessCpuTime();
    answer(repeat(turn, TURNS_BETWEEN_LOOKS, number("seconds")), wall, cpu, "");
  }

  /** Returns the sum of what the turns gave until the time was over or enough was written. */
  private long repeat(IntSupplier turn, int turns, double seconds) {
    long deadline = System.nanoTime() + (long) (seconds * 1e9);
    long most = (long) (number("max_bytes") / number("body_bytes"));
    boolean isWrite = request.get("workload").equals("write");
    long done = 0;
    while (System.nanoTime() < deadline && !(isWrite && done >= most)) {
      for (int each = 0; each < turns; each++) {
        done += turn.getAsInt();
      }
    }
    return done;
  }

  private byte[][] bodies() {
    byte[][] bodies = new byte[(int) number("batch_size")][];
    for (int number = 0; number < bodies.length; number++) {
      int span = MAX_RAGGED_BYTES - MIN_RAGGED_BYTES + 1;
      int ragged = MIN_RAGGED_BYTES + number * RAGGED_STEP % span;
      bodies[number] = new byte[flag("ragged") ? ragged : (int) number("body_bytes")];
      new Random(1).nextBytes(bodies[number]);
    }
    return bodies;
  }

  private double number(String name) {
    return Double.parseDouble(request.get(name));
  }

  private boolean flag(String name) {
    return request.get(name).equals("true");
  }

  private void answer(long messages, long startNanos, long startCpuNanos, String further) {
    double seconds = (System.nanoTime() - startNanos) / 1e9;
    double cpuSeconds = (SYSTEM.getProcessCpuTime() - startCpuNanos) / 1e9;
    answer =
        String.format(
            Locale.ROOT,
            "{\"n\":%d,\"seconds\":%.6f,\"cpu_seconds\":%.6f%s}",
            messages,
            seconds,
            cpuSeconds,
            further);
  }
}
