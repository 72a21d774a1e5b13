package seglog.perf;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * The log of a partition, as a broker has it: {@code appendAsLeader} of a batch that a producer has encoded,
 * which is checked and numbered, and {@code read} up to the end of the log.
 */
public final class KafkaLog implements PeerLog {
  private static final int MAX_BATCH_BYTES = 16 << 20;
  private static final int HEAD_BYTES = 128;

  private final UnifiedLog log;
  private final KafkaScheduler scheduler;
  private final boolean isDurable;
  private final boolean isLoop;
  private final byte[] sink = new byte[1 << 16];
  private byte[][] encodedOf;
  private MemoryRecords encoded;
  private long next;

  /** Bytes that were handed out: it must not be possible to leave the reading out. */
  private long seen;

  KafkaLog(String directory, boolean isDurable, boolean isLoop) throws IOException {
    this.isDurable = isDurable;
    this.isLoop = isLoop;
    scheduler = new KafkaScheduler(1);
    scheduler.startup();
    log =
        UnifiedLog.create(
            new File(directory, "bench-0"),
            new LogConfig(Map.of("max.message.bytes", String.valueOf(MAX_BATCH_BYTES))),
            0L,
            0L,
            scheduler,
            new BrokerTopicStats(),
            Time.SYSTEM,
            300_000,
            new ProducerStateManagerConfig(86_400_000, false),
            600_000,
            new LogDirFailureChannel(1),
            true,
            Optional.empty());
  }

  /** Answers requests until standard input ends. */
  public static void main(String[] args) throws Exception {
    PeerBench.serve(KafkaLog::new);
  }

  @Override
  public int append(byte[][] bodies) {
    if (encodedOf != bodies) {
      encoded = encode(bodies);
      encodedOf = bodies;
    }
    // The log numbers a batch in place, and takes such batches only as a producer sends: from 0 on.
    encoded.batches().forEach(batch -> batch.setLastOffset(bodies.length - 1L));
    try {
      log.appendAsLeader(encoded, 0);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    if (isDurable) {
      log.flush(false);
    }
    return bodies.length;
  }

  private static MemoryRecords encode(byte[][] bodies) {
    int size = HEAD_BYTES;
    for (byte[] body : bodies) {
      size += body.length + HEAD_BYTES;
    }
    try (MemoryRecordsBuilder builder =
        MemoryRecords.builder(
            ByteBuffer.allocate(size), Compression.NONE, TimestampType.CREATE_TIME, 0L)) {
      for (byte[] body : bodies) {
        builder.append(System.currentTimeMillis(), null, body);
      }
      return builder.build();
    }
  }

  @Override
  public long count() {
    return log.logEndOffset();
  }

  @Override
  public int readOn(int count, boolean isView) {
    if (next + count > count()) {
      next = 0;
    }
    int found = read(next, count, isView);
    next += found;
    return found;
  }

  @Override
  public int read(long place, int count, boolean isView) {
    try {
      int found = 0;
      long at = place;
      while (found < count) {
        // It gives one batch at least, whole; batches begin before the place that was asked for.
        for (Record record : log.read(at, 1, FetchIsolation.LOG_END, true).records.records()) {
          if (record.offset() >= at && found < count) {
            take(record.value());
            at = record.offset() + 1;
            found++;
          }
        }
      }
      return found;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private void take(ByteBuffer value) {
    int length = value.remaining();
    byte[] into = isLoop ? new byte[length] : sink;
    value.get(into, 0, length);
    seen += length + into[length - 1];
  }

  @Override
  public void close() {
    log.close();
    try {
      scheduler.shutdown();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }
}
