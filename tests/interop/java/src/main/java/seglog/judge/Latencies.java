package seglog.judge;

import java.util.Arrays;

/** Durations of single calls; those beyond its room are counted, not kept. */
final class Latencies {
  private final long[] nanos = new long[4 << 20];
  private int count;

  void add(long durationNanos) {
    if (count < nanos.length) {
      nanos[count++] = durationNanos;
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
