package seglog.judge;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.rocketmq.common.MQVersion;

/**
 * Measures the real store in its own process.
 *
 * <pre>
 *   write    {@code batchSize} messages a call from {@code threads} threads
 *   sync     the same, each call flushed to the device before it returns
 *   async    asyncPutMessage with {@code threads} messages in flight, flushed before they count
 *   pull     getMessage of 32 from start to end, again and again, queue by queue in turn
 *   random   getMessage of 1 anywhere
 *   fill     writes {@code messageCount} messages for a later reopen; --halt leaves it crashed
 *   reopen   load and start of a filled directory, and its first read and append
 * </pre>
 *
 * <p>Each but the last two measures after a warm-up phase and prints one {@code bench} line; the rates
 * count messages, the percentiles calls. What is written counts once it is dispatched.
 */
final class Bench {
  private final Request request;
  private final Answers answers;
  private final Latencies latencies = new Latencies();

  private Bench(Request request, Answers answers) {
    this.request = request;
    this.answers = answers;
  }

  static void run(Request request, Answers answers) throws Exception {
    Bench bench = new Bench(request, answers);
    switch (request.workload) {
      case "write" -> bench.write("ASYNC_FLUSH");
      case "sync" -> bench.write("SYNC_FLUSH");
      case "async" -> bench.writeInFlight();
      case "pull", "random" -> bench.read();
      case "fill" -> bench.fill();
      case "reopen" -> bench.reopen();
      default -> throw new IllegalArgumentException("unknown workload " + request.workload);
    }
  }

  private RealStore open(String dir, String flushDiskType) throws Exception {
    Map<String, String> config = new TreeMap<>(request.config);
    config.put("flushDiskType", flushDiskType);
    request.config = config;
    request.dir = dir;
    return RealStore.open(request);
  }

  private void write(String flushDiskType) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(request.threads);
    try (RealStore store = open(request.dir, flushDiskType)) {
      List<BenchQueue> queues = new ArrayList<>();
      for (int thread = 0; thread < request.threads; thread++) {
        queues.add(new BenchQueue(store.engine(), request));
      }
      long before = writeTogether(threads, queues, request.warmUpSeconds, new Latencies());
      store.awaitDispatchPosition();
      long startBytes = store.engine().getMaxPhyOffset();
      Stopwatch watch = new Stopwatch();
      long written = writeTogether(threads, queues, request.seconds, latencies);
      store.awaitDispatchPosition();
      send(written - before, store.engine().getMaxPhyOffset() - startBytes, watch);
    } finally {
      threads.shutdown();
    }
  }

  /** Returns how many messages all queues have after it. */
  private long writeTogether(
      ExecutorService threads, List<BenchQueue> queues, double seconds, Latencies into)
      throws Exception {
    List<Future<Latencies>> running = new ArrayList<>();
    for (BenchQueue queue : queues) {
      running.add(threads.submit(() -> queue.writeFor(seconds, request)));
    }
    for (Future<Latencies> each : running) {
      into.addAll(each.get());
    }
    return queues.stream().mapToLong(BenchQueue::written).sum();
  }

  private void writeInFlight() throws Exception {
    try (RealStore store = open(request.dir, "SYNC_FLUSH")) {
      BenchQueue queue = new BenchQueue(store.engine(), request);
      queue.writeInFlightFor(request.warmUpSeconds, request.threads);
      store.awaitDispatchPosition();
      long before = queue.written();
      long startBytes = store.engine().getMaxPhyOffset();
      Stopwatch watch = new Stopwatch();
      queue.writeInFlightFor(request.seconds, request.threads);
      store.awaitDispatchPosition();
      send(queue.written() - before, store.engine().getMaxPhyOffset() - startBytes, watch);
    }
  }

  private void read() throws Exception {
    try (RealStore store = open(request.dir, "ASYNC_FLUSH")) {
      new BenchQueue(store.engine(), request).writeAtLeast(request.messageCount);
      store.awaitDispatch();
      BenchReader reader = new BenchReader(store.engine(), request);
      reader.readFor(request.warmUpSeconds);
      Stopwatch watch = new Stopwatch();
      send(reader.readFor(request.seconds), 0, watch);
    }
  }

  private void fill() throws Exception {
    try (RealStore store = open(request.dir, "ASYNC_FLUSH")) {
      BenchQueue queue = new BenchQueue(store.engine(), request);
      Stopwatch watch = new Stopwatch();
      queue.writeAtLeast(request.messageCount);
      store.awaitDispatch();
      send(queue.written(), store.engine().getMaxPhyOffset(), watch);
      if (request.halt) {
        answers.line("end").put("sound", false).send();
        Runtime.getRuntime().halt(0);
      }
    }
  }

  private void reopen() throws Exception {
    String dir = request.dir;
    openAnother(dir + "-before");
    Stopwatch watch = new Stopwatch();
    try (RealStore store = open(dir, "ASYNC_FLUSH")) {
      long held = store.engine().getMaxOffsetInQueue(BenchQueue.TOPIC, 0);
      new BenchReader(store.engine(), request).readOnce(0, held - 1, 1);
      new BenchQueue(store.engine(), request).append();
      latencies.add((long) (watch.seconds() * 1e9));
      send(held, 0, watch);
    }
  }

  /** Uses a store once, so that loading classes is no part of what is measured. */
  private void openAnother(String dir) throws Exception {
    Files.createDirectories(Path.of(dir));
    try (RealStore store = open(dir, "ASYNC_FLUSH")) {
      new BenchQueue(store.engine(), request).append();
      store.awaitDispatch();
      new BenchReader(store.engine(), request).readOnce(0, 0, 1);
    }
  }

  private void send(long messages, long logBytes, Stopwatch watch) {
    double seconds = watch.seconds();
    answers
        .line("bench")
        .put("system", "rocketmq " + MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION))
        .put("workload", request.workload)
        .put("n", messages)
        .put("seconds", round(seconds))
        .put("cpu_seconds", round(watch.cpuSeconds()))
        .put("msgs_per_s", round(messages / seconds))
        .put("log_bytes", logBytes)
        .put("p50_us", round(latencies.micros(0.50)))
        .put("p99_us", round(latencies.micros(0.99)))
        .put("p999_us", round(latencies.micros(0.999)))
        .put("max_us", round(latencies.micros(1)))
        .send();
  }

  private static double round(double value) {
    return Math.round(value * 1e6) / 1e6;
  }
}
