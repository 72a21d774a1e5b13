package seglog.perf;

import java.util.Arrays;
import java.util.Locale;

/** Percentiles of single calls. */
final class Percentiles {
  private Percentiles() {}

  /** Returns them as further fields of an answer; sorts what it is given. */
  static String json(long[] nanos) {
    Arrays.sort(nanos);
    return String.format(
        Locale.ROOT,
        ",\"p50_us\":%.3f,\"p99_us\":%.3f,\"p999_us\":%.3f,\"max_us\":%.3f",
        at(nanos, 0.5),
        at(nanos, 0.99),
        at(nanos, 0.999),
        at(nanos, 1));
  }

  private static double at(long[] sorted, double share) {
    return sorted[Math.min(sorted.length - 1, (int) (sorted.length * share))] / 1e3;
  }
}
