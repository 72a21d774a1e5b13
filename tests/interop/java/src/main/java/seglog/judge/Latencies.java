package seglog.judge;

import java.util.Arrays;

/** Durations of single calls; those beyond its room are counted, not kept. */
final class Latencies {
  private static final int ROOM = 4 << 20;

  private long[] nanos = new long[1 << 10];
  private int count;

  void add(long durationNanos) {
    if (count < ROOM) {
      if (count == nanos.length) {
        nanos = Arrays.copyOf(nanos, Math.min(ROOM, 2 * count));
      }
      nanos[count++] = durationNanos;
    }
  }

  void addAll(Latencies others) {
    for (int index = 0; index < others.count; index++) {
      add(others.nanos[index]);
    }
  }

  /** Microseconds that {@code share} of the calls did not exceed; 0 without calls. */
  double micros(double share) {
    if (count == 0) {
      return 0;
    }
    long[] sorted = Arrays.copyOf(nanos, count);
    Arrays.sort(sorted);
    return sorted[Math.min(count - 1, (int) (count * share))] / 1e3;
  }
}
