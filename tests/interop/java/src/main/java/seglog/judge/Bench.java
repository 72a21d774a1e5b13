package seglog.judge;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;

/**
 * Measures the real store in its own process, one thread unless said, one queue.
 *
 * <pre>
 *   append   one message a call, asynchronous flush
 *   batch    an outer batch of {@code batchSize} a call, asynchronous flush
 *   sync1    one message a call, each flushed to the device before the call returns
 *   sync     the same from {@code threads} threads at once
 *   pull32   getMessage of 32 from start to end, again and again, every byte copied
 *   random   getMessage of 1 anywhere, every byte copied
 *   fill     writes {@code messageCount} messages for a later reopen; --halt leaves it crashed
 *   reopen   load and start of a filled directory, and its first read and append
 * </pre>
 *
 * <p>Each measures after a warm-up phase (reopen: in a cold process) and prints one {@code bench}
 * line; the rates count messages, the percentiles calls.
 */
final class Bench {
  private static final int PULL_COUNT = 32;

  private final Request request;
  private final Answers answers;
  private final Latencies latencies = new Latencies();
  private final byte[] sink = new byte[8 << 20];

  private Bench(Request request, Answers answers) {
    this.request = request;
    this.answers = answers;
  }

  static void run(Request request, Answers answers) throws Exception {
    Bench bench = new Bench(request, answers);
    switch (request.workload) {
      case "append" -> bench.write(1, "ASYNC_FLUSH");
      case "batch" -> bench.write(request.batchSize, "ASYNC_FLUSH");
      case "sync1" -> bench.write(1, "SYNC_FLUSH");
      case "sync" -> bench.writeTogether();
      case "pull32" -> bench.pull(PULL_COUNT);
      case "random" -> bench.pull(1);
      case "fill" -> bench.fill();
      case "reopen" -> bench.reopen();
      default -> throw new IllegalArgumentException("unknown workload " + request.workload);
    }
  }

  private RealStore open(String flushDiskType) throws Exception {
    Map<String, String> config = new TreeMap<>(request.config);
    config.putIfAbsent("flushDiskType", flushDiskType);
    request.config = config;
    return RealStore.open(request);
  }

  private void write(int batchSize, String flushDiskType) throws Exception {
    try (RealStore store = open(flushDiskType)) {
      BenchQueue queue = new BenchQueue(store.engine(), request, batchSize);
      writeFor(queue, request.warmUpSeconds, request.maxBytes / 4, new Latencies());
      store.awaitDispatchPosition();
      long before = queue.written();
      Stopwatch watch = new Stopwatch();
      writeFor(queue, request.seconds, request.maxBytes, latencies);
      store.awaitDispatchPosition();
      send(queue.written() - before, watch);
    }
  }

  private void writeTogether() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(request.threads);
    try (RealStore store = open("SYNC_FLUSH")) {
      List<BenchQueue> queues = new ArrayList<>();
      for (int thread = 0; thread < request.threads; thread++) {
        queues.add(new BenchQueue(store.engine(), request, 1));
      }
      long before = writeTogetherFor(threads, queues, request.warmUpSeconds, false);
      Stopwatch watch = new Stopwatch();
      long written = writeTogetherFor(threads, queues, request.seconds, true);
      store.awaitDispatchPosition();
      send(written - before, watch);
    } finally {
      threads.shutdown();
    }
  }

  /** Returns how many messages all queues have after it. */
  private long writeTogetherFor(
      ExecutorService threads, List<BenchQueue> queues, double seconds, boolean measured)
      throws Exception {
    List<Future<Latencies>> running = new ArrayList<>();
    for (BenchQueue queue : queues) {
      running.add(
          threads.submit(
              () -> {
                Latencies own = new Latencies();
                writeFor(queue, seconds, request.maxBytes, own);
                return own;
              }));
    }
    for (Future<Latencies> each : running) {
      Latencies own = each.get();
      if (measured) {
        latencies.addAll(own);
      }
    }
    return queues.stream().mapToLong(BenchQueue::written).sum();
  }

  private void writeFor(BenchQueue queue, double seconds, long maxBytes, Latencies into) {
    long before = queue.written();
    long now = System.nanoTime();
    long deadline = now + (long) (seconds * 1e9);
    while (now < deadline && (queue.written() - before) * request.bodyBytes < maxBytes) {
      queue.append();
      long after = System.nanoTime();
      into.add(after - now);
      now = after;
    }
  }

  private void pull(int count) throws Exception {
    try (RealStore store = open("ASYNC_FLUSH")) {
      long chosen = Math.min(300_000, (256L << 20) / Math.max(1, request.bodyBytes));
      fill(store.engine(), request.messageCount > 0 ? request.messageCount : chosen);
      store.awaitDispatch();
      pullFor(store.engine(), count, request.warmUpSeconds, new Latencies());
      Stopwatch watch = new Stopwatch();
      send(pullFor(store.engine(), count, request.seconds, latencies), watch);
    }
  }

  private long pullFor(DefaultMessageStore store, int count, double seconds, Latencies into)
      throws Exception {
    long end = store.getMaxOffsetInQueue(BenchQueue.TOPIC, 0);
    Random random = new Random(1);
    long pulled = 0;
    long next = 0;
    long now = System.nanoTime();
    long deadline = now + (long) (seconds * 1e9);
    while (now < deadline) {
      long from = count == 1 ? random.nextLong(end) : next;
      int found = pullOnce(store, from, count);
      pulled += found;
      next = next + found >= end ? 0 : next + found;
      long after = System.nanoTime();
      into.add(after - now);
      now = after;
    }
    return pulled;
  }

  private int pullOnce(DefaultMessageStore store, long queueOffset, int count) {
    GetMessageResult result =
        store.getMessage("bench", BenchQueue.TOPIC, 0, queueOffset, count, null);
    try {
      for (ByteBuffer record : result.getMessageBufferList()) {
        record.get(sink, 0, record.remaining());
      }
      if (result.getMessageCount() == 0) {
        throw new IllegalStateException(result.getStatus() + " at " + queueOffset);
      }
      return result.getMessageCount();
    } finally {
      result.release();
    }
  }

  private void fill() throws Exception {
    try (RealStore store = open("ASYNC_FLUSH")) {
      Stopwatch watch = new Stopwatch();
      long written = fill(store.engine(), request.messageCount);
      store.awaitDispatch();
      send(written, watch);
      if (request.halt) {
        answers.line("end").put("sound", false).send();
        Runtime.getRuntime().halt(0);
      }
    }
  }

  private long fill(DefaultMessageStore store, long messageCount) throws Exception {
    BenchQueue queue = new BenchQueue(store, request, request.batchSize);
    while (queue.written() < messageCount) {
      queue.append();
    }
    return queue.written();
  }

  private void reopen() throws Exception {
    Stopwatch watch = new Stopwatch();
    try (RealStore store = open("ASYNC_FLUSH")) {
      long held = store.engine().getMaxOffsetInQueue(BenchQueue.TOPIC, 0);
      pullOnce(store.engine(), held - 1, 1);
      new BenchQueue(store.engine(), request, 1).append();
      latencies.add((long) (watch.seconds() * 1e9));
      send(held, watch);
    }
  }

  private void send(long messages, Stopwatch watch) {
    double seconds = watch.seconds();
    answers
        .line("bench")
        .put("system", "rocketmq " + MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION))
        .put("workload", request.workload)
        .put("body_bytes", request.bodyBytes)
        .put("n", messages)
        .put("seconds", round(seconds))
        .put("cpu_seconds", round(watch.cpuSeconds()))
        .put("msgs_per_s", round(messages / seconds))
        .put("p50_us", round(latencies.micros(0.50)))
        .put("p99_us", round(latencies.micros(0.99)))
        .send();
  }

  private static double round(double value) {
    return Math.round(value * 1000) / 1000.0;
  }

  /** Wall and CPU time since it was made. */
  private static final class Stopwatch {
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
}
