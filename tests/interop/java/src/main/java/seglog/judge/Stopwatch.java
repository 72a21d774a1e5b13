package seglog.judge;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/** Wall and CPU time since it was made. */
final class Stopwatch {
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private final long startNanos = System.nanoTime();
  private final long startCpuNanos = SYSTEM.getProcessCpuTime();

  double seconds() {
    return (System.nanoTime() - startNanos) / 1e9;
  }

  double cpuSeconds() {
    return (SYSTEM.getProcessCpuTime() - startCpuNanos) / 1e9;
  }
}
