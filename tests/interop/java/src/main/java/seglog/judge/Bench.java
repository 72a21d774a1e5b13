package seglog.judge;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;

/**
 * Measures the real store in its own process, one thread, one queue.
 *
 * <pre>
 *   append   one message a call, asynchronous flush
 *   batch    an outer batch of {@code batchSize} a call, asynchronous flush
 *   sync1    one message a call, each flushed to the device before the call returns
 *   pull32   getMessage of 32 from start to end, again and again, every byte copied
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
      case "pull32" -> bench.pull();
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
      BenchQueue queue = new BenchQueue(store.engine(), request.bodyBytes, batchSize);
      writeFor(queue, request.warmUpSeconds, request.maxBytes / 4, new Latencies());
      long before = queue.written();
      long start = System.nanoTime();
      writeFor(queue, request.seconds, request.maxBytes, latencies);
      send(queue.written() - before, (System.nanoTime() - start) / 1e9);
    }
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

  private void pull() throws Exception {
    try (RealStore store = open("ASYNC_FLUSH")) {
      long chosen = Math.min(300_000, (256L << 20) / Math.max(1, request.bodyBytes));
      fill(store.engine(), request.messageCount > 0 ? request.messageCount : chosen);
      store.awaitDispatch();
      pullFor(store.engine(), request.warmUpSeconds, new Latencies());
      long start = System.nanoTime();
      long pulled = pullFor(store.engine(), request.seconds, latencies);
      send(pulled, (System.nanoTime() - start) / 1e9);
    }
  }

  private long pullFor(DefaultMessageStore store, double seconds, Latencies into) throws Exception {
    long end = store.getMaxOffsetInQueue(BenchQueue.TOPIC, 0);
    long pulled = 0;
    long next = 0;
    long now = System.nanoTime();
    long deadline = now + (long) (seconds * 1e9);
    while (now < deadline) {
      int count = pullOnce(store, next);
      pulled += count;
      next = next + count >= end ? 0 : next + count;
      long after = System.nanoTime();
      into.add(after - now);
      now = after;
    }
    return pulled;
  }

  private int pullOnce(DefaultMessageStore store, long queueOffset) {
    GetMessageResult result =
        store.getMessage("bench", BenchQueue.TOPIC, 0, queueOffset, PULL_COUNT, null);
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
      long start = System.nanoTime();
      long written = fill(store.engine(), request.messageCount);
      store.awaitDispatch();
      send(written, (System.nanoTime() - start) / 1e9);
      if (request.halt) {
        answers.line("end").put("sound", false).send();
        Runtime.getRuntime().halt(0);
      }
    }
  }

  private long fill(DefaultMessageStore store, long messageCount) throws Exception {
    BenchQueue queue = new BenchQueue(store, request.bodyBytes, request.batchSize);
    while (queue.written() < messageCount) {
      queue.append();
    }
    return queue.written();
  }

  private void reopen() throws Exception {
    long start = System.nanoTime();
    try (RealStore store = open("ASYNC_FLUSH")) {
      long held = store.engine().getMaxOffsetInQueue(BenchQueue.TOPIC, 0);
      pullOnce(store.engine(), held - 1);
      new BenchQueue(store.engine(), request.bodyBytes, 1).append();
      long duration = System.nanoTime() - start;
      latencies.add(duration);
      send(held, duration / 1e9);
    }
  }

  private void send(long messages, double seconds) {
    answers
        .line("bench")
        .put("system", "rocketmq " + MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION))
        .put("workload", request.workload)
        .put("body_bytes", request.bodyBytes)
        .put("n", messages)
        .put("seconds", round(seconds))
        .put("msgs_per_s", round(messages / seconds))
        .put("p50_us", round(latencies.micros(0.50)))
        .put("p99_us", round(latencies.micros(0.99)))
        .send();
  }

  private static double round(double value) {
    return Math.round(value * 1000) / 1000.0;
  }
}
